#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Single f32 convolutions with bias and relu, and poolings: weir beside ONNX Runtime and oneDNN 3.

    python3 layers.py libweir.so libdnnl.so.3 [--threads N] [--batch B] [--layers a,b] [--runs N] [--seconds S]

All convolutions of ResNet-50, and those of MobileNetV2 and Inception v3 that differ. Each side has a process of its own,
and they take turns as in networks.py. weir and ONNX Runtime have a model of one node with data in plain order; oneDNN
has its data in the layout that it likes best, in blocks of channels or with channels last: bringing data there is not
counted. The last columns compare the fastest runs with those of the best of the others.
"""

import argparse
import dataclasses
import pathlib
import statistics
import sys
import tempfile

import networks
import numpy
import onednn

TOLERANCE = 1e-4


@dataclasses.dataclass
class Layer:
    channels: int
    filters: int
    size: tuple
    taps: tuple
    stride: int = 1
    pads: tuple = None  # top, left, bottom, right; None: as many that a stride of 1 keeps the size
    groups: int = 1
    pooling: str = None  # max, average
    batch: int = 1

    def __post_init__(self):
        if self.pads is None:
            self.pads = (self.taps[0] // 2, self.taps[1] // 2) * 2
        self.strides = (self.stride, self.stride)

    @property
    def source_shape(self):
        return (self.batch, self.channels, *self.size)

    @property
    def target_shape(self):
        sizes = [(self.size[at] + self.pads[at] + self.pads[at + 2] - self.taps[at]) // self.stride + 1 for at in (0, 1)]
        return (self.batch, self.filters, *sizes)

    def weights_shape(self, grouped=False):
        if grouped and self.groups > 1:
            return (self.groups, self.filters // self.groups, self.channels // self.groups, *self.taps)
        return (self.filters, self.channels // self.groups, *self.taps)

    def operations(self):
        depth = 0.5 if self.pooling else self.channels // self.groups
        return int(2 * numpy.prod(self.target_shape) * depth * self.taps[0] * self.taps[1])


def square(channels, filters, side, taps, stride=1, pad=None):
    return Layer(channels, filters, (side, side), (taps, taps), stride, None if pad is None else (pad,) * 4)


def depthwise(channels, side, stride=1, taps=3):
    return Layer(channels, channels, (side, side), (taps, taps), stride, groups=channels)


def pool(kind, channels, side, taps, stride, pad=0):
    return Layer(channels, channels, (side, side), (taps, taps), stride, (pad,) * 4, pooling=kind)


RESNET_50 = [
    square(3, 64, 224, 7, 2),
    square(64, 64, 56, 1), square(64, 64, 56, 3), square(64, 256, 56, 1), square(256, 64, 56, 1),
    square(256, 128, 56, 1), square(128, 128, 56, 3, 2), square(256, 512, 56, 1, 2),
    square(512, 128, 28, 1), square(128, 128, 28, 3), square(128, 512, 28, 1),
    square(512, 256, 28, 1), square(256, 256, 28, 3, 2), square(512, 1024, 28, 1, 2),
    square(1024, 256, 14, 1), square(256, 256, 14, 3), square(256, 1024, 14, 1),
    square(1024, 512, 14, 1), square(512, 512, 14, 3, 2), square(1024, 2048, 14, 1, 2),
    square(2048, 512, 7, 1), square(512, 512, 7, 3), square(512, 2048, 7, 1),
]
MOBILENET_V2 = [
    square(32, 16, 112, 1), square(16, 96, 112, 1), square(96, 24, 56, 1), square(144, 24, 56, 1),
    square(192, 32, 28, 1), square(64, 384, 14, 1), square(384, 96, 14, 1), square(160, 960, 7, 1),
    square(320, 1280, 7, 1),
]
INCEPTION_V3 = [
    square(3, 32, 299, 3, 2, 0), square(32, 64, 147, 3), square(80, 192, 73, 3, 1, 0), square(48, 64, 35, 5),
    square(96, 96, 35, 3), square(288, 384, 35, 3, 2, 0), Layer(128, 128, (17, 17), (1, 7)),
    Layer(192, 192, (17, 17), (7, 1)), square(768, 192, 17, 1), square(1280, 320, 8, 1), square(448, 384, 8, 3),
    Layer(384, 384, (8, 8), (1, 3)),
]
DEPTHWISE = [
    depthwise(32, 112), depthwise(96, 112, 2), depthwise(144, 56), depthwise(144, 56, 2), depthwise(192, 28),
    depthwise(192, 28, 2), depthwise(384, 14), depthwise(576, 14, 2), depthwise(960, 7),
    depthwise(240, 28, 1, 5), depthwise(96, 80, 1, 5),
]
POOLING = [
    pool("max", 64, 112, 3, 2, 1), pool("max", 64, 55, 3, 2), pool("max", 192, 28, 3, 1, 1), pool("max", 64, 224, 2, 2),
    pool("average", 192, 35, 3, 1, 1), pool("average", 256, 28, 2, 2), pool("average", 2048, 7, 7, 1),
]
FAMILIES = {"resnet50": RESNET_50, "mobilenet": MOBILENET_V2, "inception": INCEPTION_V3, "depthwise": DEPTHWISE,
            "pooling": POOLING}


def name_of(family, layer):
    taps, size = (" x ".join(map(str, pair)) for pair in (layer.taps, layer.size))
    family = f"{family} {layer.pooling}" if layer.pooling else family
    target = "" if layer.filters == layer.channels and family != "resnet50" else f" to {layer.filters}"
    return f"{family} {taps}, {layer.channels} x {size}{target}" + (f", stride {layer.stride}" if layer.stride > 1 else "")


def arrays_of(layer):
    random = numpy.random.default_rng(1)
    made = {"x": random.normal(size=layer.source_shape)}
    if not layer.pooling:
        deviation = numpy.sqrt(2 / numpy.prod(layer.weights_shape()[1:]))
        made["weights"] = random.normal(size=layer.weights_shape()) * deviation
        made["bias"] = random.normal(size=layer.filters)
    return {name: array.astype(numpy.float32) for name, array in made.items()}


def save(layer, arrays, path):
    """Writes a model of one layer."""
    from onnx import TensorProto, helper, numpy_helper, save

    settings = {"pads": layer.pads, "strides": layer.strides, "kernel_shape": layer.taps}
    if layer.pooling:
        average = {} if layer.pooling == "max" else {"count_include_pad": 0}
        kind = "MaxPool" if layer.pooling == "max" else "AveragePool"
        nodes = [helper.make_node(kind, ["x"], ["y"], **settings, **average)]
    else:
        nodes = [helper.make_node("Conv", ["x", "weights", "bias"], ["sums"], **settings, group=layer.groups),
                 helper.make_node("Relu", ["sums"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, layer.source_shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, layer.target_shape)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items() if name != "x"],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def measure(layer, settings, path):
    """Milliseconds of each side's fastest run: weir, ONNX Runtime, oneDNN with blocks, and with channels last."""
    arrays = arrays_of(layer)
    save(layer, arrays, path)
    model = (False, settings, str(path), {"x": arrays["x"].shape}, {"x": arrays["x"]})
    peer = (settings.onednn, settings.threads, layer, arrays)
    with networks.process(networks.Weir, *model) as weir, networks.process(networks.OnnxRuntime, *model) as theirs:
        with networks.process(onednn.OneDnn, *peer, False) as blocks, networks.process(onednn.OneDnn, *peer, True) as last:
            sides = weir, theirs, blocks, last
            times = networks.take_turns(settings, *sides)
            outputs = [ask("outputs") for ask in sides]
    for side, other in zip(("ONNX Runtime", "oneDNN", "oneDNN, channels last"), outputs[1:]):
        error = networks.compare(outputs[0], other)
        if not error < TOLERANCE:
            raise networks.Failure(f"differs by {error:.1e} from {side}")
    return [min(side) for side in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="libweir.so")
    parser.add_argument("onednn", help="libdnnl.so.3")
    parser.add_argument("--threads", type=int, default=1, help="threads of each side, the caller's among them")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--layers", default="", help="parts of names, separated by commas; default all")
    parser.add_argument("--runs", type=int, default=50, help="the least number of runs of each side")
    parser.add_argument("--seconds", type=float, default=0.5, help="the least time for each side of a layer")
    parser.add_argument("--blocks", type=int, default=5, help="how often the sides take turns")
    settings = parser.parse_args()
    parts = settings.layers.split(",")
    print(f"threads {settings.threads}, batch {settings.batch}; us of the fastest run; above 1: weir is faster\n")
    print("| | weir | GFLOP/s | ONNX Runtime | oneDNN, blocks | oneDNN, channels last | best / weir |")
    print("|---|--:|--:|--:|--:|--:|--:|", flush=True)
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        for family, layers in FAMILIES.items():
            for layer in layers:
                name = name_of(family, layer)
                if not any(part in name for part in parts):
                    continue
                layer = dataclasses.replace(layer, batch=settings.batch)
                try:
                    weir, *others = measure(layer, settings, pathlib.Path(folder) / "layer.onnx")
                except networks.Failure as failure:
                    sys.exit(f"{name}: {failure}")
                ratio = min(others) / weir
                ratios.setdefault(family, []).append(ratio)
                cells = " | ".join(f"{other * 1e3:.1f}" for other in others)
                rate = layer.operations() / weir / 1e6
                print(f"| {name} | {weir * 1e3:.1f} | {rate:.1f} | {cells} | {ratio:.2f} |", flush=True)
    if not ratios:
        sys.exit(f"no layer's name has any of: {settings.layers}")
    dense = [ratio for family in ("resnet50", "mobilenet", "inception") for ratio in ratios.get(family, [])]
    for kind, found in {"convolutions": dense, **ratios}.items():
        if found:
            print(f"{kind}: geometric mean {statistics.geometric_mean(found):.2f}, least {min(found):.2f}")


if __name__ == "__main__":
    main()
