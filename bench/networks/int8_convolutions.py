#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""int8 convolutions, weir beside ONNX Runtime's QLinearConv: the layers of usual networks, one at a time.

    python3 int8_convolutions.py libweir.so [--threads N] [--batch B] [--layers a,b] [--runs N] [--seconds S]
                                 [--reduced]

Activations are u8, weights s8 with a scale for each filter, as a normal distribution gives them. Each side has a process
of its own, and they take turns as in networks.py. The last column is the share of elements that differ by more than 1:
without VNNI ONNX Runtime's sums of two products saturate at 16 bits, unless weights have 7 bits (--reduced).
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

import networks
import numpy

# name: channels, filters, side of the image, taps, stride, groups
LAYERS = {
    "depthwise 32 x 112": (32, 32, 112, 3, 1, 32),
    "depthwise 96 x 112, stride 2": (96, 96, 112, 3, 2, 96),
    "depthwise 144 x 56": (144, 144, 56, 3, 1, 144),
    "depthwise 192 x 28": (192, 192, 28, 3, 1, 192),
    "depthwise 192 x 28, stride 2": (192, 192, 28, 3, 2, 192),
    "depthwise 384 x 14": (384, 384, 14, 3, 1, 384),
    "depthwise 576 x 14, stride 2": (576, 576, 14, 3, 2, 576),
    "depthwise 960 x 7": (960, 960, 7, 3, 1, 960),
    "depthwise 240 x 28, 5 x 5": (240, 240, 28, 5, 1, 240),
    "depthwise 240 x 28, 5 x 5, stride 2": (240, 240, 28, 5, 2, 240),
    "3 x 3, 64 x 56": (64, 64, 56, 3, 1, 1),
    "3 x 3, 128 x 28": (128, 128, 28, 3, 1, 1),
    "3 x 3, 256 x 14": (256, 256, 14, 3, 1, 1),
    "3 x 3, 512 x 7": (512, 512, 7, 3, 1, 1),
    "1 x 1, 64 to 256 x 56": (64, 256, 56, 1, 1, 1),
    "1 x 1, 256 to 64 x 56": (256, 64, 56, 1, 1, 1),
    "1 x 1, 512 to 128 x 28": (512, 128, 28, 1, 1, 1),
    "1 x 1, 1024 to 256 x 14": (1024, 256, 14, 1, 1, 1),
    "1 x 1, 96 to 24 x 56": (96, 24, 56, 1, 1, 1),
    "1 x 1, 320 to 1280 x 7": (320, 1280, 7, 1, 1, 1),
    "7 x 7, 3 to 64 x 224, stride 2": (3, 64, 224, 7, 2, 1),
}


def save(layer, settings, path):
    """Writes a model of one node. Returns its input."""
    from onnx import TensorProto, helper, numpy_helper, save

    channels, filters, side, taps, stride, groups = layer
    random = numpy.random.default_rng(1)
    weights = random.normal(size=(filters, channels // groups, taps, taps))
    scales = numpy.abs(weights).max((1, 2, 3)) / (63 if settings.reduced else 127)
    weights = numpy.rint(weights / scales.reshape(-1, 1, 1, 1)).astype(numpy.int8)
    x = random.integers(0, 256, (settings.batch, channels, side, side)).astype(numpy.uint8)
    depth = channels // groups * taps * taps
    constants = {
        "x_scale": numpy.float32(0.02),
        "x_zero": numpy.uint8(121),
        "weights": weights,
        "w_scale": scales.astype(numpy.float32),
        "w_zero": numpy.zeros(filters, numpy.int8),
        "y_scale": numpy.float32(0.02 * depth**0.5),
        "y_zero": numpy.uint8(117),
        "bias": random.integers(-2000, 2000, filters).astype(numpy.int32),
    }
    pads = [taps // 2] * 4
    node = helper.make_node("QLinearConv", ["x", *constants], ["y"], pads=pads, strides=[stride] * 2, group=groups)
    graph = helper.make_graph(
        [node],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
        [numpy_helper.from_array(numpy.asarray(array), name) for name, array in constants.items()],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return x


def measure(layer, settings, path):
    inputs = {"x": save(layer, settings, path)}
    arguments = (settings, str(path), {"x": inputs["x"].shape}, inputs)
    with networks.process(networks.OnnxRuntime, False, *arguments) as theirs:
        with networks.process(networks.Weir, False, *arguments) as ours:
            times = networks.take_turns(settings, theirs, ours)
            found, expected = (ask("outputs")["y"].astype(numpy.int32) for ask in (ours, theirs))
    return times, (numpy.abs(found - expected) > 1).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="libweir.so")
    parser.add_argument("--threads", type=int, default=1, help="threads of each side, the caller's among them")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--layers", default="", help="parts of names, separated by commas; default all")
    parser.add_argument("--runs", type=int, default=100, help="the least number of runs of each side")
    parser.add_argument("--seconds", type=float, default=1.0, help="the least time for each side of a layer")
    parser.add_argument("--blocks", type=int, default=10, help="how often the sides take turns")
    parser.add_argument("--reduced", action="store_true", help="weights of 7 bits")
    settings = parser.parse_args()
    parts = settings.layers.split(",")
    print("| | GMAC | median ORT ms | weir ms | ORT / weir | fastest ORT ms | weir ms | ORT / weir | weir GMAC/s | differ |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, layer in LAYERS.items():
            if not any(part in name for part in parts):
                continue
            try:
                times, differ = measure(layer, settings, pathlib.Path(folder) / "layer.onnx")
            except networks.Failure as failure:
                sys.exit(f"{name}: {failure}")
            (ort, weir), (ort_min, weir_min) = (map(figure, times) for figure in (statistics.median, min))
            channels, filters, side, taps, stride, groups = layer
            gmac = settings.batch * filters * (side // stride) ** 2 * channels // groups * taps * taps / 1e9
            ratios.setdefault(name.split(" ")[0], []).append(ort_min / weir_min)
            print(f"| {name} | {gmac:.4f} | {ort:.3f} | {weir:.3f} | {ort / weir:.2f} | {ort_min:.3f} | {weir_min:.3f} | "
                  f"{ort_min / weir_min:.2f} | {gmac / weir_min * 1e3:.1f} | {differ:.1%} |", flush=True)
    for kind, of in ratios.items():
        print(f"geometric mean, {kind}: {statistics.geometric_mean(of):.2f}")


if __name__ == "__main__":
    main()
