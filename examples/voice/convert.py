#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes weights.bin, the weights of Silero VAD as plain numbers.

    python3 convert.py silero_vad-6.2.3-py3-none-any.whl [weights.bin]

It reads the wheel's default model, silero_vad.onnx, which has a half for 16 kHz and one for 8 kHz (other files of the
wheel have other weights for 8 kHz), and needs nothing but Python. The numbers are copied, not changed. See NOTICE for
their licence.

Format, little-endian:

    char[8] "WEIRVOIC"
    u32     number of tensors: 30, those of TENSORS for 16 kHz, then those for 8 kHz
    u32     0
    for each tensor: u32 rank, u32 dims[3], of which those beyond the rank are 1
    for each tensor: f32 elements, row-major, beginning at a multiple of 64 bytes
"""

import struct
import sys
import zipfile

MODEL = "silero_vad/data/silero_vad.onnx"
HALVES = ("If_0_then_branch__Inline_0__", "If_0_else_branch__Inline_0__")
TENSORS = (
    "stft.forward_basis_buffer",
    "encoder.0.reparam_conv.weight",
    "encoder.0.reparam_conv.bias",
    "encoder.1.reparam_conv.weight",
    "encoder.1.reparam_conv.bias",
    "encoder.2.reparam_conv.weight",
    "encoder.2.reparam_conv.bias",
    "encoder.3.reparam_conv.weight",
    "encoder.3.reparam_conv.bias",
    "decoder.rnn.weight_ih",
    "decoder.rnn.weight_hh",
    "decoder.rnn.bias_ih",
    "decoder.rnn.bias_hh",
    "decoder.decoder.2.weight",
    "decoder.decoder.2.bias",
)
ALIGNMENT = 64


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """The fields of a protocol buffer message: their numbers, and numbers or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at : at + size], at + size
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"field {number} has wire type {wire}")
        yield number, value


def f32_tensor(data):
    """Dims and bytes of a tensor, or None if it is of another type."""
    dims, kind, raw = [], 0, b""
    for number, value in fields(data):
        if number == 1 and isinstance(value, int):
            dims.append(value)
        elif number == 1:  # packed
            at = 0
            while at < len(value):
                dim, at = varint(value, at)
                dims.append(dim)
        elif number == 2:
            kind = value
        elif number == 9:
            raw = bytes(value)
    return (dims, raw) if kind == 1 else None


def constants(graph, found):
    """The f32 constants of a graph and of the graphs inside it: name -> (dims, bytes)."""
    for node in (value for number, value in fields(graph) if number == 1):
        name = ""
        for number, value in fields(node):
            if number == 2:
                name = bytes(value).decode()
            elif number == 5:
                for part, content in fields(value):
                    if part == 5 and (tensor := f32_tensor(content)):
                        found[name] = tensor
                    elif part == 6:
                        constants(content, found)


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    found = {}
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        model = memoryview(wheel.read(MODEL))
    for graph in (value for number, value in fields(model) if number == 7):
        constants(graph, found)
    tensors = [found[half + name] for half in HALVES for name in TENSORS]
    head = b"WEIRVOIC" + struct.pack("<2I", len(tensors), 0)
    for dims, raw in tensors:
        padded = (dims + [1, 1, 1])[:3]
        if len(dims) > 3 or 4 * padded[0] * padded[1] * padded[2] != len(raw):
            raise ValueError(f"a tensor of {dims} has {len(raw)} bytes")
        head += struct.pack("<4I", len(dims), *padded)
    with open(sys.argv[2] if len(sys.argv) > 2 else "weights.bin", "wb") as out:
        for part in [head] + [raw for _, raw in tensors]:
            out.write(part + bytes(-len(part) % ALIGNMENT))


if __name__ == "__main__":
    main()
