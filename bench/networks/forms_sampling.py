# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forms of operators that take samples between elements, and of those that overlap what they take."""

import itertools
import math

import numpy
import onnx
import onnx.reference
from onnx import helper

from onnx_blocks import (
    BYTES, F32, FLOATS, S32, along, binary, compare, concat, convert_type, eltwise, gather, in_f32, matmul,
    number, pad, part, polynomial, require, reshape, select, slice_of, spread, transpose, value_of,
)
from onnx_forms import form
from onnx_graph import constant


@form("Resize", "Upsample")
def _resize(g, call):
    """The last two axes at once, others one after the other; what weir has no kernel for by indices or matrices."""
    x = call.inputs[0]
    scales, sizes, axes = resize_scales(call, x)
    line = Line(call, 1, 1.0, 1, 0.0, 1.0)
    if line.mode == "tf_crop_and_resize" or call.get("antialias", 0):
        return resize_otherwise(g, call, x, scales, sizes, axes)
    changed = [axis for axis in range(x.rank) if sizes[axis] != x.shape[axis] or scales[axis] != 1]
    mode = {"nearest": "NEAREST", "linear": "LINEAR", "bilinear": "LINEAR", "cubic": "CUBIC"}[call.get("mode", "nearest")]
    require(mode == "NEAREST" or x.dtype in FLOATS | BYTES, f"interpolation of type {x.dtype}")
    a = call.get("cubic_coeff_a", -0.75)
    require(a != 0, "a cubic coefficient of 0")
    weir = g.weir
    members = {
        "flags": weir.WEIR_RESIZE_EXCLUDE_OUTSIDE if call.get("exclude_outside", 0) else 0,
        "mode": value_of(mode, weir, "RESIZE"),
        "coordinates": value_of(line.mode.upper(), weir, "RESIZE"),
        "rounding": value_of(line.rounding.removeprefix("round_").upper(), weir, "RESIZE"),
        "cubic": a,
    }
    if line.mode == "align_corners" and any(sizes[axis] != scales[axis] * x.shape[axis] for axis in changed):
        # ONNX has the corners of an output that is no whole number of elements long.
        members["coordinates"] = weir.WEIR_RESIZE_ASYMMETRIC
        corners = [(scale * dim - 1, dim - 1, size) for scale, dim, size in zip(scales, x.shape, sizes)]
        scales = [long / short if long * short and size > 1 else 1.0 for long, short, size in corners]
    last = [axis for axis in changed if axis >= x.rank - 2]
    steps = [last] if len(last) == 2 else [[axis] for axis in last]
    steps += [[axis] for axis in changed if axis < x.rank - 2]
    y = in_f32(g, x) if len(steps) > 1 and mode != "NEAREST" and x.dtype in FLOATS else x
    for step in steps:
        shape = [sizes[axis] if axis in step else dim for axis, dim in enumerate(y.shape)]
        # A single axis is the height of images as wide as what follows it.
        first, wide = step[0], math.prod(y.shape[step[0] + 1 :])
        images = y if len(step) == 2 else reshape(g, y, (math.prod(y.shape[:first]), y.shape[first], wide))
        turned = (*images.shape[:-2], *shape[-2:]) if len(step) == 2 else (images.shape[0], sizes[first], wide)
        # Scales that are those of the sizes are not said, so that places are exact.
        said = [0.0 if scales[axis] == sizes[axis] / x.shape[axis] else scales[axis] for axis in step]
        both = {"sizes": [sizes[axis] for axis in step], "scales": said}
        y = reshape(g, g.kernel("resize", {**members, **both}, [images], y.dtype, turned), shape)
    return convert_type(g, y, x.dtype)


def resize_otherwise(g, call, x, scales, sizes, axes):
    """One axis after the other: rows by their indices, or times the matrix of the interpolation."""
    regions = [(0.0, 1.0)] * x.rank
    if call.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        ends = call.known(1).reshape(2, -1)
        for i, axis in enumerate(axes):
            regions[axis] = float(ends[0, i]), float(ends[1, i])
    lines = {}
    for axis in reversed(axes):
        if sizes[axis] != x.shape[axis] or scales[axis] != 1 or regions[axis] != (0, 1):
            lines[axis] = Line(call, x.shape[axis], scales[axis], sizes[axis], *regions[axis])
    nearest = call.get("mode", "nearest") == "nearest"
    require(nearest or x.dtype in FLOATS, f"interpolation of type {x.dtype}")
    y = x if nearest else in_f32(g, x)
    for axis, line in lines.items():
        y = gather(g, y, number(line.nearest(), S32), axis) if nearest else along(g, y, axis, line.matrix())
    outside = numpy.zeros(y.shape, bool)
    for axis, line in lines.items():
        outside |= line.outside().reshape([-1 if a == axis else 1 for a in range(x.rank)])
    if outside.any():
        y = select(g, constant(outside), number(call.get("extrapolation_value", 0.0), y.dtype), y)
    return convert_type(g, y, x.dtype)


def resize_scales(call, x):
    """Scale and size of each axis, and the axes that are named."""
    if call.op == "Upsample":
        scales, sizes = call.get("scales"), None
        scales = call.known(1) if scales is None else scales
    elif call.version < 11:
        scales, sizes = call.known(1), None
    else:
        scales, sizes = call.known(2), call.known(3)
        scales = scales if scales is not None and scales.size else None
    axes = [axis % x.rank for axis in call.get("axes") or range(x.rank)]
    all_scales, all_sizes = [1.0] * x.rank, list(x.shape)
    if scales is None:
        ratios = [int(size) / x.shape[axis] for axis, size in zip(axes, sizes)]
        policy = call.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            sizes = [math.floor(ratio * x.shape[axis] + 0.5) for axis in axes]
            ratios = [ratio] * len(axes)
        for axis, size, ratio in zip(axes, sizes, ratios):
            all_scales[axis], all_sizes[axis] = ratio, int(size)
    else:
        for axis, scale in zip(axes, scales):
            all_scales[axis], all_sizes[axis] = float(scale), math.floor(float(scale) * x.shape[axis])
    return all_scales, all_sizes, axes


class Line:
    """How one axis is resized."""

    def __init__(self, call, length, scale, size, begin, end):
        self.call, self.length, self.scale, self.size, self.begin, self.end = call, length, scale, size, begin, end
        old = call.op == "Upsample" or call.version < 11
        self.mode = "asymmetric" if old else call.get("coordinate_transformation_mode", "half_pixel")
        self.rounding = "floor" if old else call.get("nearest_mode", "round_prefer_floor")

    def places(self):
        """Where the results lie among the elements."""
        at, length, size = numpy.arange(self.size, dtype=numpy.float64), self.length, self.size
        if self.mode == "half_pixel" or self.mode == "pytorch_half_pixel" and size > 1:
            return (at + 0.5) / self.scale - 0.5
        if self.mode == "half_pixel_symmetric":
            return length / 2 * (1 - size / (self.scale * length)) + (at + 0.5) / self.scale - 0.5
        if self.mode == "align_corners" and size > 1:
            return at * (length - 1) / (size - 1)
        if self.mode == "asymmetric":
            return at / self.scale
        if self.mode == "tf_crop_and_resize":
            if size == 1:
                return numpy.asarray([0.5 * (self.begin + self.end) * (length - 1)])
            return self.begin * (length - 1) + at * (self.end - self.begin) * (length - 1) / (size - 1)
        require(self.mode in ("pytorch_half_pixel", "align_corners"), f"coordinates {self.mode}")
        return numpy.zeros(size)

    def outside(self):
        """The results that lie in front of the first element or behind the last one."""
        if self.mode != "tf_crop_and_resize":
            return numpy.zeros(self.size, bool)
        places = self.places()
        return (places < 0) | (places > self.length - 1)

    def nearest(self):
        places = self.places()
        rounded = {
            "round_prefer_floor": numpy.ceil(places - 0.5),
            "round_prefer_ceil": numpy.floor(places + 0.5),
            "floor": numpy.floor(places),
            "ceil": numpy.ceil(places),
        }[self.rounding]
        return numpy.clip(rounded, 0, self.length - 1).astype(int)

    def matrix(self):
        """Of the interpolation: what the reference makes of rows with a single 1."""
        names = ("mode", "cubic_coeff_a", "exclude_outside", "antialias")
        attributes = {name: self.call.get(name) for name in names if self.call.get(name) is not None}
        attributes["coordinate_transformation_mode"] = self.mode
        node = helper.make_node("Resize", ["x", "roi", "scales"], ["y"], **attributes)
        inputs = {
            "x": numpy.eye(self.length, dtype=numpy.float32),
            "roi": numpy.asarray([0, self.begin, 1, self.end], numpy.float32),
            "scales": numpy.asarray([1, self.scale], numpy.float32),
        }
        given = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, x.shape) for name, x in inputs.items()]
        graph = helper.make_graph([node], "resize", given, [onnx.ValueInfoProto(name="y")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
        y = onnx.reference.ReferenceEvaluator(model).run(None, inputs)[0]
        require(y.shape[1] == self.size, f"a size of {self.size} by the scale {self.scale}")
        return y


@form("GridSample")
def _grid_sample(g, call):
    """A kernel for images; otherwise the elements around each point, times weights that its place gives them."""
    x, grid = in_f32(g, call.inputs[0]), in_f32(g, call.inputs[1])
    mode, padding, corners = call.get("mode", "linear"), call.get("padding_mode", "zeros"), call.get("align_corners", 0)
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    dims, points = x.shape[2:], grid.shape[:-1]
    if len(dims) == 2 and x.size:
        members = {
            "flags": g.weir.WEIR_GRID_SAMPLE_ALIGN_CORNERS if corners else 0,
            "mode": value_of(mode.upper(), g.weir, "RESIZE"),
            "edge": value_of(padding.upper(), g.weir, "GRID_SAMPLE"),
        }
        y = g.kernel("grid_sample", members, [x, grid], F32, (*x.shape[:2], *points[1:]))
        return convert_type(g, y, call.inputs[0].dtype)
    count = len(dims)
    axes = []
    for axis, length in enumerate(dims):
        at = reshape(g, part(g, grid, grid.rank - 1, count - 1 - axis, count - axis), points)
        half = (length - 1) / 2 if corners else length / 2
        at = eltwise(g, "LINEAR", at, half, (length - 1) / 2)
        axes.append(taps(g, at, length, mode, padding, corners))
    table = transpose(g, x, [0, *range(2, x.rank), 1])
    table = reshape(g, table, (x.shape[0] * math.prod(dims), x.shape[1]))
    base = numpy.arange(x.shape[0]).reshape(-1, *[1] * count) * math.prod(dims)
    total = sampled(g, table, base, dims, axes, points)
    return convert_type(g, transpose(g, total, [0, count + 1, *range(1, count + 1)]), call.inputs[0].dtype)


def sampled(g, table, base, dims, axes, points):
    """The sum over all combinations of the axes' taps of rows of the table times the weights."""
    total = None
    for chosen in itertools.product(*axes):
        index, weight = number(base, S32), None
        for axis, (place, factor) in enumerate(chosen):
            step = number(math.prod(dims[axis + 1 :]), S32)
            index = binary(g, "ADD", index, binary(g, "MUL", convert_type(g, place, S32), step))
            if factor is not None:
                weight = factor if weight is None else binary(g, "MUL", weight, factor)
        term = gather(g, table, index, 0)
        if weight is not None:
            term = binary(g, "MUL", term, reshape(g, weight, (*points, 1)))
        total = term if total is None else binary(g, "ADD", total, term)
    return total


def taps(g, at, length, mode, padding, corners):
    """Indices as f32, and weights, of the elements of one axis that a point is made of; None is a weight of 1."""
    low, high = (0.0, length - 1.0) if corners else (-0.5, length - 0.5)
    at = eltwise(g, "ROUND", at) if mode == "nearest" else at
    if padding == "border":
        at = eltwise(g, "CLIP", at, 0.0, length - 1.0)
    elif padding == "reflection":
        at = reflected(g, at, low, high)
    if mode == "nearest":
        found = [(at, None)]
    else:
        first = eltwise(g, "FLOOR", at)
        rest = binary(g, "SUB", at, first)
        if mode in ("linear", "bilinear"):
            found = [(first, eltwise(g, "LINEAR", rest, -1.0, 1.0)), (eltwise(g, "LINEAR", first, 1.0, 1.0), rest)]
        else:
            found = [
                (eltwise(g, "LINEAR", first, 1.0, float(i - 1)) if i != 1 else first, polynomial(g, rest, weights))
                for i, weights in enumerate(CUBIC)
            ]
    result = []
    for place, weight in found:
        if padding == "zeros":
            inside = binary(g, "MIN", compare(g, "GE", place, 0), compare(g, "LE", place, length - 1))
            inside = convert_type(g, inside, F32)
            weight = inside if weight is None else binary(g, "MUL", weight, inside)
        elif padding == "reflection":
            place = reflected(g, place, low, high)
        result.append((eltwise(g, "CLIP", place, 0.0, length - 1.0), weight))
    return result


# Weights of four neighbours as polynomials of the place between the inner two, for the coefficient -0.75.
CUBIC = ([0.0, -0.75, 1.5, -0.75], [1.0, 0.0, -2.25, 1.25], [0.0, 0.75, 1.5, -1.25], [0.0, 0.0, -0.75, 0.75])


def reflected(g, at, low, high):
    period = 2 * (high - low)
    if period == 0:
        return eltwise(g, "CLIP", at, low, low)
    t = eltwise(g, "LINEAR", at, 1.0, -low)
    t = binary(g, "SUB", t, eltwise(g, "LINEAR", eltwise(g, "FLOOR", eltwise(g, "LINEAR", t, 1 / period)), period))
    t = binary(g, "MIN", t, eltwise(g, "LINEAR", t, -1.0, period))
    return eltwise(g, "LINEAR", t, 1.0, low)


@form("DeformConv")
def _deform_conv(g, call):
    """Samples for each tap of each window, side by side, and a product with the weights."""
    x, weights, offset = (in_f32(g, value) for value in call.inputs[:3])
    require(x.rank == 4, f"convolution of {x.rank - 2} dimensions")
    groups, offset_groups = call.get("group", 1), call.get("offset_group", 1)
    (batch, channels, *dims), kernel, sizes = x.shape, weights.shape[2:], offset.shape[2:]
    strides, dilations = (list(call.get(name) or [1, 1]) for name in ("strides", "dilations"))
    begin = list(call.get("pads") or [0] * 4)[:2]
    count, each = math.prod(kernel), channels // offset_groups
    split = (batch, offset_groups, count, 2, *sizes)
    offset = reshape(g, offset, split)
    mask = reshape(g, in_f32(g, call.inputs[4]), (*split[:3], *sizes)) if call.has(4) else None
    axes = []
    for axis in range(2):
        grid = numpy.indices((*kernel, *sizes))
        at = grid[2 + axis] * strides[axis] - begin[axis] + grid[axis] * dilations[axis]
        at = number(at.reshape(count, *sizes), F32)
        moved = reshape(g, part(g, offset, 3, axis, axis + 1), (*split[:3], *sizes))
        axes.append(taps(g, binary(g, "ADD", moved, at), dims[axis], "linear", "zeros", False))
    table = transpose(g, reshape(g, x, (batch, offset_groups, each, *dims)), [0, 1, 3, 4, 2])
    table = reshape(g, table, (batch * offset_groups * math.prod(dims), each))
    base = numpy.arange(batch * offset_groups).reshape(batch, offset_groups, 1, 1, 1) * math.prod(dims)
    y = sampled(g, table, base, dims, axes, (*split[:3], *sizes))
    y = binary(g, "MUL", y, reshape(g, mask, (*mask.shape, 1))) if mask else y
    y = transpose(g, y, [0, 1, 5, 2, 3, 4])  # batch, channels, taps, places
    y = reshape(g, y, (batch, groups, channels // groups * count, math.prod(sizes)))
    rows = reshape(g, weights, (1, groups, weights.shape[0] // groups, weights.size // weights.shape[0]))
    y = reshape(g, matmul(g, rows, y), (batch, weights.shape[0], *sizes))
    if call.has(3):
        y = binary(g, "ADD", y, reshape(g, in_f32(g, call.inputs[3]), (weights.shape[0], 1, 1)))
    return convert_type(g, y, call.inputs[0].dtype)


@form("Col2Im")
def _col2im(g, call):
    """Each tap of the blocks is spread over the image; the images of all taps are added."""
    x = call.inputs[0]
    image, block = ([int(dim) for dim in call.known(place)] for place in (1, 2))
    rank = len(image)
    strides, dilations = (list(call.get(name) or [1] * rank) for name in ("strides", "dilations"))
    pads = list(call.get("pads") or [0] * 2 * rank)
    spans = [(k - 1) * d + 1 for k, d in zip(block, dilations)]
    counts = [(image[i] + pads[i] + pads[rank + i] - spans[i]) // strides[i] + 1 for i in range(rank)]
    taps_of_block, channels = math.prod(block), x.shape[1] // math.prod(block)
    columns = reshape(g, x, (x.shape[0], channels, taps_of_block, *counts))
    total = None
    for number_of_tap, tap in enumerate(itertools.product(*map(range, block))):
        y = part(g, columns, 2, number_of_tap, number_of_tap + 1)
        y = reshape(g, y, (x.shape[0], channels, *counts))
        for axis in range(rank):
            y = spread(g, y, axis + 2, strides[axis])
        before = [tap[i] * dilations[i] - pads[i] for i in range(rank)]
        y = placed(g, y, [0, 0, *before], [*y.shape[:2], *image])
        total = y if total is None else binary(g, "ADD", total, y)
    return total


def placed(g, x, before, shape):
    """x in a larger tensor of zeros that begins so far in front of it, or behind its beginning."""
    after = [size - b - dim for size, b, dim in zip(shape, before, x.shape)]
    x = slice_of(g, x, [max(-b, 0) for b in before], [dim - max(-a, 0) for dim, a in zip(x.shape, after)])
    return pad(g, x, [max(b, 0) for b in before], [max(a, 0) for a in after])


@form("STFT")
def _stft(g, call):
    """Frames of the signal times the matrix of the transform, with the window in it."""
    x, step = call.inputs[0], int(call.known(1).reshape(()))
    window = call.input(2)
    length = call.known(3)
    length = int(length.reshape(())) if length is not None else window.shape[0] if window else x.shape[1]
    frames = 1 + (x.shape[1] - length) // step
    places = numpy.arange(frames)[:, None] * step + numpy.arange(length)
    parts = [reshape(g, part(g, x, 2, i, i + 1), x.shape[:2]) for i in range(x.shape[2])]
    parts = [gather(g, one, number(places, S32), 1) for one in parts]
    parts = [binary(g, "MUL", one, window) if window else one for one in parts]
    angles = numpy.outer(numpy.arange(length), numpy.arange(length)) * (2 * numpy.pi / length)
    shown = length // 2 + 1 if call.get("onesided", 1) else length
    real, imaginary = numpy.cos(angles)[:, :shown], -numpy.sin(angles)[:, :shown]
    y = [along(g, parts[0], 2, real), along(g, parts[0], 2, imaginary)]
    if len(parts) == 2:
        y[0] = binary(g, "SUB", y[0], along(g, parts[1], 2, imaginary))
        y[1] = binary(g, "ADD", y[1], along(g, parts[1], 2, real))
    return concat(g, [reshape(g, one, (*one.shape, 1)) for one in y], 3)
