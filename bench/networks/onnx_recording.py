# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes ONNX models as files that a C program makes weir graphs of (examples/ocr/model_file.c), for pictures of any
size.

    networks = [onnx_recording.Network("detect", model, "x", (1, 3, None, None), unit=32)]
    path.write_bytes(onnx_recording.encode(networks, text=b""))

A model is imported at a few sizes of its input, without a library: what weir would be asked for is written down. Where
the recordings differ, a number follows height and width, as base + rows * (height / unit) + columns * (width / unit).
Two more sizes confirm it.

The file consists of 64-bit words, little-endian, and of the constants' elements behind them, each constant at a
multiple of 64 bytes. A number is three words: base, rows, columns. An operator's settings are its descriptor, byte for
byte.

    "WEIRNETS", number of networks, bytes of the text, the text
    for each network: name (1 word), unit, number of items, items:
        0 input     dtype, rank, a number for each dimension
        1 constant  dtype, rank, dimensions, first byte in the file
        2 steps     length (a number), divisor: s32, element i is i / divisor
        3 kernel    operator (2 words), numbers of: words of settings, inputs, outputs, changes;
                    settings, inputs, changes: a word of the settings, and the number that it becomes
        4 output    value

Inputs, constants, steps and the outputs of kernels are the values, in the order of the items.
"""

import ctypes
import dataclasses
import struct

import numpy
from onnx_graph import Graph, Refusal, add_model

import weir_ctypes  # onnx_graph knows where it is

INPUT, CONSTANT, STEPS, KERNEL, OUTPUT = range(5)
ALIGNMENT = 64


@dataclasses.dataclass
class Network:
    name: str
    model: object  # of the onnx package
    input: str
    shape: tuple  # batch, channels, height, width; None for what is open
    unit: int = 1  # that open dimensions are multiples of


@dataclasses.dataclass
class Item:
    kind: int
    words: list = dataclasses.field(default_factory=list)  # what may differ from size to size
    inputs: tuple = ()
    name: str = ""
    num_outputs: int = 1
    array: numpy.ndarray = None

    def form(self):
        """What is the same at all sizes."""
        return self.kind, self.name, self.inputs, self.num_outputs, len(self.words)


class Recording(Graph):
    """A graph that only notes what it is asked for."""

    def __init__(self, weir):
        self.weir, self.items, self.values, self.name = weir, [], 0, ""

    def note(self, item):
        self.items.append(item)
        first, self.values = self.values, self.values + item.num_outputs
        return list(range(first, self.values))

    def add_input(self, _name, desc):
        return self.note(Item(INPUT, [desc.dtype, desc.rank, *desc.dims[: desc.rank]]))[0]

    def add_output(self, _name, number):
        self.note(Item(OUTPUT, inputs=(number,), num_outputs=0))

    def add_constant(self, desc, array):
        return self.note(Item(CONSTANT, [desc.dtype, desc.rank, *desc.dims[: desc.rank]], array=array))[0]

    def add_kernel(self, operator, desc, numbers, num_outputs, _kind):
        settings = bytes(desc) + bytes(-ctypes.sizeof(desc) % 8)
        words = list(struct.unpack(f"<{len(settings) // 8}q", settings))
        return self.note(Item(KERNEL, words, tuple(numbers), operator, num_outputs))


def record(network, height, width):
    recording = Recording(weir_ctypes.Weir())
    shape = (*network.shape[:2], height, width)
    add_model(recording, network.model, {network.input: shape})
    return recording.items


def sizes_of(network):
    """Sizes to record: one, one more row and column of units if they are open, and two to confirm; in units."""
    open_height, open_width = (dim is None for dim in network.shape[2:])
    height, width = (10 if dim is None else dim // network.unit for dim in network.shape[2:])
    steps = [(0, 0), (1, 0), (0, 1), (3, 5), (7, 2)]
    return [(height + rows * open_height, width + columns * open_width) for rows, columns in steps]


def follow(found, sizes):
    """The number that has these values at these sizes."""
    (height, width), *_ = sizes
    rows = found[1] - found[0] if sizes[1] != sizes[0] else 0
    columns = found[2] - found[0] if sizes[2] != sizes[0] else 0
    base = found[0] - rows * height - columns * width
    if any(base + rows * h + columns * w != value for (h, w), value in zip(sizes, found)):
        raise Refusal(f"a number that does not follow the size: {found}")
    return [base, rows, columns]


def steps_of(arrays, lengths):
    """The words of a constant whose length follows the size."""
    divisor = int(numpy.argmax(arrays[0] != 0)) or 1
    for array in arrays:
        if array.dtype != numpy.int32 or array.ndim != 1 or (array != numpy.arange(len(array)) // divisor).any():
            raise Refusal(f"a constant of {array.dtype}{array.shape} that follows the size, and is no steps")
    return [STEPS, *lengths, divisor]


def item_words(items, sizes, place):
    """An item, from its recordings at all sizes; `place` gives an array its place in the file."""
    first = items[0]
    if any(item.form() != first.form() for item in items):
        raise Refusal(f"another kernel at another size: {first.name}")
    numbers = [follow(found, sizes) for found in zip(*(item.words for item in items))]
    if first.kind == INPUT:
        return [INPUT, *first.words[:2], *sum(numbers[2:], [])]
    if first.kind == OUTPUT:
        return [OUTPUT, *first.inputs]
    if first.kind == CONSTANT:
        if all(numpy.array_equal(item.array, first.array) for item in items):
            return [CONSTANT, *first.words, place(first.array)]
        return steps_of([item.array for item in items], numbers[2])
    changes = [[index, *number] for index, number in enumerate(numbers) if number[1] or number[2]]
    counts = [len(first.words), len(first.inputs), first.num_outputs, len(changes)]
    return [KERNEL, *text_words(first.name, 2), *counts, *first.words, *first.inputs, *sum(changes, [])]


def text_words(text, count):
    text = text.encode()
    if len(text) > 8 * count:
        raise Refusal(f"the name '{text.decode()}' is too long")
    return list(struct.unpack(f"<{count}q", text.ljust(8 * count, b"\0")))


class Elements:
    """The constants behind the words; the same elements are there only once."""

    def __init__(self):
        self.bytes, self.places = bytearray(), {}

    def place(self, array):
        raw = array.tobytes()
        if raw not in self.places:
            self.bytes += bytes(-len(self.bytes) % ALIGNMENT)
            self.places[raw] = len(self.bytes)
            self.bytes += raw
        return self.places[raw]


def network_words(network, elements):
    sizes = sizes_of(network)
    recordings = [record(network, h * network.unit, w * network.unit) for h, w in sizes]
    if len({len(items) for items in recordings}) != 1:
        raise Refusal(f"{network.name}: other kernels at other sizes")
    items = [item_words(found, sizes, elements.place) for found in zip(*recordings)]
    return [*text_words(network.name, 1), network.unit, len(items)], items


def encode(networks, text):
    elements = Elements()
    parts = [network_words(network, elements) for network in networks]
    text += bytes(-len(text) % 8)
    count = 3 + len(text) // 8 + sum(len(head) + sum(map(len, items)) for head, items in parts)
    begin = 8 * count + -8 * count % ALIGNMENT
    out = bytearray(struct.pack("<8s2q", b"WEIRNETS", len(networks), len(text)) + text)
    for head, items in parts:
        out += struct.pack(f"<{len(head)}q", *head)
        for item in items:
            if item[0] == CONSTANT:
                item[-1] += begin
            out += struct.pack(f"<{len(item)}q", *item)
    return bytes(out.ljust(begin, b"\0") + elements.bytes)
