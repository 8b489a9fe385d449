#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Single f32 convolutions and poolings of volumes: weir beside ONNX Runtime.

    python3 volumes.py libweir.so [--threads N] [--layers a,b] [--runs N] [--seconds S]

Layers of networks for videos and scans. Each side has a process of its own, with a model of one layer, and they take
turns as in networks.py. The last column compares the fastest runs.
"""

import argparse
import dataclasses
import pathlib
import statistics
import sys
import tempfile

import networks
import numpy
from onnx import TensorProto, helper, numpy_helper, save

TOLERANCE = 1e-4


@dataclasses.dataclass
class Layer:
    kind: str  # Conv, ConvTranspose, MaxPool, AveragePool, GlobalAveragePool
    shape: tuple  # of x
    taps: tuple = (1, 1, 1)
    filters: int = 0
    strides: tuple = (1, 1, 1)
    pads: tuple = (0, 0, 0)
    groups: int = 1

    def name(self):
        to = f" to {self.filters}" if self.filters else ""
        groups = f", {self.groups} groups" if self.groups > 1 else ""
        stride = "" if self.strides == (1, 1, 1) else f", stride {by(self.strides)}"
        return f"{self.kind} {by(self.taps)}, {by(self.shape[1:])}{to}{stride}{groups}"


def by(numbers):
    return "x".join(map(str, numbers))


def same(kind, shape, taps, filters, strides=(1, 1, 1), groups=1):
    return Layer(kind, (1, *shape), taps, filters, strides, tuple(tap // 2 for tap in taps), groups)


LAYERS = [
    same("Conv", (3, 16, 112, 112), (3, 3, 3), 64),
    same("Conv", (3, 16, 112, 112), (3, 7, 7), 64, (1, 2, 2)),
    same("Conv", (64, 8, 28, 28), (3, 3, 3), 64),
    same("Conv", (64, 8, 56, 56), (1, 3, 3), 64),
    same("Conv", (64, 8, 56, 56), (3, 1, 1), 64),
    same("Conv", (128, 8, 28, 28), (3, 3, 3), 128, (2, 2, 2)),
    same("Conv", (256, 4, 14, 14), (3, 3, 3), 256),
    same("Conv", (512, 2, 7, 7), (3, 3, 3), 512),
    same("Conv", (64, 8, 28, 28), (1, 1, 1), 256),
    same("Conv", (64, 8, 28, 28), (1, 1, 1), 128, (2, 2, 2)),
    same("Conv", (1, 64, 64, 64), (3, 3, 3), 32),
    same("Conv", (32, 32, 32, 32), (3, 3, 3), 2),
    same("Conv", (54, 16, 56, 56), (3, 3, 3), 54, (1, 1, 1), 54),
    same("Conv", (108, 16, 28, 28), (3, 3, 3), 108, (1, 2, 2), 108),
    same("Conv", (64, 8, 28, 28), (5, 5, 5), 64, (1, 1, 1), 64),
    same("Conv", (128, 8, 28, 28), (3, 3, 3), 128, (1, 1, 1), 4),
    Layer("ConvTranspose", (1, 64, 16, 16, 16), (2, 2, 2), 32, (2, 2, 2)),
    Layer("ConvTranspose", (1, 64, 16, 16, 16), (4, 4, 4), 32, (2, 2, 2), (1, 1, 1)),
    Layer("MaxPool", (1, 64, 16, 56, 56), (3, 3, 3), 0, (2, 2, 2), (1, 1, 1)),
    Layer("MaxPool", (1, 64, 16, 112, 112), (1, 2, 2), 0, (1, 2, 2)),
    Layer("MaxPool", (1, 128, 8, 28, 28), (2, 2, 2), 0, (2, 2, 2)),
    Layer("MaxPool", (1, 192, 8, 28, 28), (3, 3, 3), 0, (1, 1, 1), (1, 1, 1)),
    Layer("AveragePool", (1, 64, 16, 56, 56), (2, 2, 2), 0, (2, 2, 2)),
    Layer("AveragePool", (1, 192, 8, 28, 28), (3, 3, 3), 0, (1, 1, 1), (1, 1, 1)),
    Layer("GlobalAveragePool", (1, 512, 8, 7, 7)),
]


def model_of(layer, path):
    """Writes a model of one layer; returns x."""
    random = numpy.random.default_rng(1)
    arrays = {}
    if layer.filters:
        of_group = layer.shape[1] // layer.groups
        transposed = layer.kind == "ConvTranspose"
        shape = (layer.shape[1], layer.filters) if transposed else (layer.filters, of_group)
        deviation = numpy.sqrt(2 / (of_group * numpy.prod(layer.taps)))
        arrays["weights"] = random.normal(size=(*shape, *layer.taps)) * deviation
        arrays["bias"] = random.normal(size=layer.filters)
    settings = {}
    if not layer.kind.startswith("Global"):
        settings = {"kernel_shape": layer.taps, "strides": layer.strides, "pads": layer.pads * 2}
    if layer.filters:
        settings["group"] = layer.groups
    arrays = {name: array.astype(numpy.float32) for name, array in arrays.items()}
    nodes = [helper.make_node(layer.kind, ["x", *arrays], ["sums"], **settings)]
    nodes.append(helper.make_node("Relu", ["sums"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, layer.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 5)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return random.normal(size=layer.shape).astype(numpy.float32)


def measure(layer, settings, path):
    """Milliseconds of each side's fastest run."""
    x = model_of(layer, path)
    model = (False, settings, str(path), {"x": x.shape}, {"x": x})
    with networks.process(networks.Weir, *model) as weir, networks.process(networks.OnnxRuntime, *model) as theirs:
        times = networks.take_turns(settings, weir, theirs)
        error = networks.compare(*(ask("outputs") for ask in (weir, theirs)))
    if not error < TOLERANCE:
        raise networks.Failure(f"differs by {error:.1e} from ONNX Runtime")
    return [min(side) for side in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="libweir.so")
    parser.add_argument("--threads", type=int, default=1, help="threads of each side, the caller's among them")
    parser.add_argument("--layers", default="", help="parts of names, separated by commas; default all")
    parser.add_argument("--runs", type=int, default=20, help="the least number of runs of each side")
    parser.add_argument("--seconds", type=float, default=0.5, help="the least time for each side of a layer")
    parser.add_argument("--blocks", type=int, default=5, help="how often the sides take turns")
    settings = parser.parse_args()
    parts, ratios = settings.layers.split(","), []
    print(f"threads {settings.threads}; us of the fastest run; above 1: weir is faster\n")
    print("| | weir | ONNX Runtime | ONNX Runtime / weir |\n|---|--:|--:|--:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for layer in LAYERS:
            if not any(part in layer.name() for part in parts):
                continue
            try:
                weir, theirs = measure(layer, settings, pathlib.Path(folder) / "layer.onnx")
            except networks.Failure as failure:
                sys.exit(f"{layer.name()}: {failure}")
            ratios.append(theirs / weir)
            print(f"| {layer.name()} | {weir * 1e3:.1f} | {theirs * 1e3:.1f} | {ratios[-1]:.2f} |", flush=True)
    if not ratios:
        sys.exit(f"no layer's name has any of: {settings.layers}")
    print(f"\ngeometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
