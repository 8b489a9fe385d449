# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forms of operators with windows: convolution, pooling, and what is made of them."""

import math

import numpy

import models
from forms_rows import quantize
from onnx_blocks import (
    BYTES, F32, FLOATS, S8, S32, S64, U8, binary, convert_type, eltwise, flip, gather, in_f32, pad, reduce, require,
    reshape, slice_of, spread, transpose, value_of,
)
from onnx_forms import form
from onnx_graph import constant


def window(call, spatial, kernel, ceil=False):
    """Strides, dilations and padding of a window, with automatic padding made explicit."""
    rank = len(spatial)
    strides = list(call.get("strides") or [1] * rank)
    dilations = list(call.get("dilations") or [1] * rank)
    pads = list(call.get("pads") or [0] * 2 * rank)
    begin, end = pads[:rank], pads[rank:]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    auto = call.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        total = [max((math.ceil(i / s) - 1) * s + span - i, 0) for i, s, span in zip(spatial, strides, spans)]
        less = [t // 2 for t in total]
        begin, end = (less, [t - h for t, h in zip(total, less)])
        if auto == "SAME_LOWER":
            begin, end = end, begin
    elif auto == "VALID":
        begin, end = [0] * rank, [0] * rank
    sizes = []
    for i in range(rank):
        steps = (spatial[i] + begin[i] + end[i] - spans[i]) / strides[i]
        size = (math.ceil(steps) if ceil else math.floor(steps)) + 1
        if ceil and (size - 1) * strides[i] >= spatial[i] + begin[i]:
            size -= 1  # no window begins in the margin behind
        sizes.append(size)
    return strides, dilations, begin, end, sizes


def members_of(**settings):
    """The members of a descriptor, of which those of the depth of volumes are apart."""
    names = {
        "kernel": "depth_kernel",
        "strides": "depth_stride",
        "dilations": "depth_dilation",
        "padding_begin": "depth_padding_begin",
        "padding_end": "depth_padding_end",
        "more": "depth_more",
    }
    members = {}
    for name, values in settings.items():
        if len(values) == 3:
            members[names[name]], *values = values
        members[name] = values
    return members


def conv(g, x, weights, bias, strides, dilations, begin, end, sizes, groups=1):
    rank = x.rank - 2
    require(rank in (1, 2, 3), f"convolution of {rank} dimensions")
    members = {
        "flags": g.weir.WEIR_CONV_BIAS if bias else 0,
        "groups": groups,
        **members_of(strides=strides, dilations=dilations, padding_begin=begin, padding_end=end),
    }
    inputs = [x, weights, bias] if bias else [x, weights]
    shape = (x.shape[0], weights.shape[0], *sizes)
    return g.kernel("conv", members, inputs, F32, shape, models.conv_kind(x.shape[1], weights.shape[2:], groups))


@form("Conv")
def _conv(g, call):
    x, weights = call.inputs[:2]
    groups = call.get("group", 1)
    strides, dilations, begin, end, sizes = window(call, x.shape[2:], weights.shape[2:])
    arguments = [in_f32(g, value) if value else None for value in (x, weights, call.input(2))]
    y = conv(g, *arguments, strides, dilations, begin, end, sizes, groups)
    return convert_type(g, y, x.dtype)


@form("ConvTranspose")
def _conv_transpose(g, call):
    x, weights = (in_f32(g, value) for value in call.inputs[:2])
    rank, groups = x.rank - 2, call.get("group", 1)
    kernel, spatial = weights.shape[2:], x.shape[2:]
    strides = list(call.get("strides") or [1] * rank)
    dilations = list(call.get("dilations") or [1] * rank)
    extra = list(call.get("output_padding") or [0] * rank)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    full = [(i - 1) * s + span for i, s, span in zip(spatial, strides, spans)]
    sizes = call.get("output_shape")
    auto = call.get("auto_pad", "NOTSET")
    if sizes or auto in ("SAME_UPPER", "SAME_LOWER"):
        sizes = list(sizes[-rank:]) if sizes else [i * s for i, s in zip(spatial, strides)]
        total = [f + e - size for f, e, size in zip(full, extra, sizes)]
        begin = [t // 2 if auto == "SAME_UPPER" else t - t // 2 for t in total]
    else:
        pads = list(call.get("pads") or [0] * 2 * rank) if auto != "VALID" else [0] * 2 * rank
        begin = pads[:rank]
        sizes = [f + e - b - a for f, e, b, a in zip(full, extra, begin, pads[rank:])]
    outputs = weights.shape[1] * groups
    bias = in_f32(g, call.inputs[2]) if call.has(2) else None
    after = [f + e - b - size for f, e, b, size in zip(full, extra, begin, sizes)]
    if rank > 3 or min(begin) < 0:
        y = by_zeros(g, x, weights, bias, (strides, dilations, begin, sizes, groups))
        return convert_type(g, y, call.inputs[0].dtype)
    weir, inputs = g.weir, [x, weights] + ([bias] if bias else [])
    members = {
        "flags": weir.WEIR_CONV_TRANSPOSE_BIAS if bias else 0,
        "groups": groups,
        **members_of(
            strides=strides,
            dilations=dilations,
            padding_begin=begin,
            padding_end=[max(a, 0) for a in after],
            more=[e + max(-a, 0) for e, a in zip(extra, after)],
        ),
    }
    y = g.kernel("conv_transpose", members, inputs, F32, (x.shape[0], outputs, *sizes))
    return convert_type(g, y, call.inputs[0].dtype)


def by_zeros(g, x, weights, bias, settings):
    """As a convolution of x with zeros between its elements, by the mirrored weights."""
    strides, dilations, begin, sizes, groups = settings
    rank, kernel = x.rank - 2, weights.shape[2:]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    split = (groups, weights.shape[0] // groups, weights.shape[1], *kernel)
    mirrored = reshape(g, weights, split)
    axes = range(3, 3 + rank)
    mirrored = transpose(g, mirrored, [0, 2, 1, *axes])
    mirrored = reshape(g, mirrored, (weights.shape[1] * groups, weights.shape[0] // groups, *kernel))
    mirrored = flip(g, mirrored, range(2, 2 + rank))
    for axis, stride in enumerate(strides, 2):
        x = spread(g, x, axis, stride)
    before = [span - 1 - b for span, b in zip(spans, begin)]
    after = [size - 1 + span - b - dim for size, span, b, dim in zip(sizes, spans, before, x.shape[2:])]
    cut = [(max(-b, 0), dim - max(-a, 0)) for b, a, dim in zip(before, after, x.shape[2:])]
    x = slice_of(g, x, [0, 0, *(c[0] for c in cut)], [*x.shape[:2], *(c[1] for c in cut)])
    before, after = ([max(margin, 0) for margin in side] for side in (before, after))
    return conv(g, x, mirrored, bias, [1] * rank, dilations, before, after, sizes, groups)


def pooling(g, op, x, kernel, strides, dilations, begin, end, sizes):
    members = {
        "op": value_of(op, g.weir, "POOLING"),
        **members_of(kernel=kernel, strides=strides, dilations=dilations, padding_begin=begin, padding_end=end),
    }
    return g.kernel("pooling", members, [x], F32, (*x.shape[:2], *sizes))


def pooled(g, call, x, op):
    """Pooling of x, f32, by the node's windows."""
    kernel = list(call.get("kernel_shape"))
    rank = x.rank - 2
    require(rank in (1, 2, 3), f"pooling of {rank} dimensions")
    return by_windows(g, x, op, kernel, *window(call, x.shape[2:], kernel, bool(call.get("ceil_mode", 0))))


def by_windows(g, x, op, kernel, strides, dilations, begin, end, sizes):
    rank = len(kernel)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    # What the last windows reach beyond the padding, or leave of it.
    needed = [(n - 1) * s + span - dim - b for n, s, span, dim, b in zip(sizes, strides, spans, x.shape[2:], begin)]
    if op == "AVERAGE" and any(n > e for n, e in zip(needed, end)):
        x, op = pad(g, x, [0, 0, *begin], [0, 0, *end]), "AVERAGE_INSIDE"
        needed, begin = [n - e for n, e in zip(needed, end)], [0] * rank
    end = [max(n, 0) for n in needed]
    if any(b >= span or e >= span for b, e, span in zip(begin, end, spans)):
        require(op != "AVERAGE_INSIDE", "padding as long as the window")
        x = pad(g, x, [0, 0, *begin], [0, 0, *end], -math.inf if op == "MAX" else 0.0)
        begin, end = [0] * rank, [0] * rank
    return pooling(g, op, x, kernel, strides, dilations, begin, end, sizes)


@form("MaxPool")
def _max_pool(g, call):
    x = call.inputs[0]
    require(x.dtype in FLOATS | BYTES, f"pooling of type {x.dtype}")
    y = convert_type(g, x, F32)
    if call.wants(1):
        return max_with_places(g, call, y, x.dtype)
    return convert_type(g, pooled(g, call, y, "MAX"), x.dtype)


def max_with_places(g, call, x, dtype):
    """The windows side by side in one more dimension, where the maximum and its place are looked for."""
    spatial, kernel = x.shape[2:], list(call.get("kernel_shape"))
    strides, dilations, begin, _, sizes = window(call, spatial, kernel, bool(call.get("ceil_mode", 0)))
    rank, size = len(kernel), math.prod(spatial)
    grid = numpy.indices((*sizes, *kernel)).reshape(2 * rank, math.prod(sizes), math.prod(kernel))
    at = [grid[a] * strides[a] - begin[a] + grid[rank + a] * dilations[a] for a in range(rank)]
    inside = numpy.logical_and.reduce([(a >= 0) & (a < dim) for a, dim in zip(at, spatial)])
    axes = range(rank) if not call.get("storage_order", 0) else reversed(range(rank))
    places = sum(a * math.prod(spatial[axis + 1 :]) for axis, a in enumerate(at))
    named, step = 0, 1
    for axis in reversed(list(axes)):
        named, step = named + at[axis] * step, step * spatial[axis]
    images = math.prod(x.shape[:2])
    flat = pad(g, reshape(g, x, (images, size)), [0, 0], [0, 1], -math.inf)
    taps = gather(g, flat, constant(numpy.where(inside, places, size).astype(S32)), 1)
    best = reduce(g, "MAX", taps, [2], False)
    # The number of a tap of all windows of all images, and what that is called.
    windows = math.prod(sizes)
    base = numpy.arange(images * windows, dtype=S64).reshape(images, windows) * math.prod(kernel)
    chosen = binary(g, "ADD", reduce(g, "ARGMAX", taps, [2], False), constant(base))
    names = (named[None] + (numpy.arange(images) * size)[:, None, None]).reshape(-1)
    shape = (*x.shape[:2], *sizes)
    indices = gather(g, constant(names.astype(S64)), chosen, 0)
    return convert_type(g, reshape(g, best, shape), dtype), reshape(g, indices, shape)


@form("AveragePool")
def _average_pool(g, call):
    x = call.inputs[0]
    op = "AVERAGE" if call.get("count_include_pad", 0) else "AVERAGE_INSIDE"
    return convert_type(g, pooled(g, call, in_f32(g, x), op), x.dtype)


@form("LpPool")
def _lp_pool(g, call):
    x, p = call.inputs[0], float(call.get("p", 2))
    y = eltwise(g, "POW", eltwise(g, "ABS", in_f32(g, x)), 1.0, p)
    y = pooled(g, call, y, "AVERAGE")
    y = eltwise(g, "LINEAR", y, float(math.prod(call.get("kernel_shape"))))
    return convert_type(g, eltwise(g, "POW", y, 1.0, 1 / p), x.dtype)


@form("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(g, call):
    x = call.inputs[0]
    op = "MAX" if call.op == "GlobalMaxPool" else "AVERAGE"
    if x.rank not in (3, 4, 5):
        return reduce(g, "MAX" if op == "MAX" else "MEAN", x, range(2, x.rank))
    members = {"op": value_of(op, g.weir, "POOLING"), "flags": g.weir.WEIR_POOLING_GLOBAL}
    shape = (*x.shape[:2], *[1] * (x.rank - 2))
    return convert_type(g, g.kernel("pooling", members, [in_f32(g, x)], F32, shape), x.dtype)


@form("LRN")
def _lrn(g, call):
    x, defaults = call.inputs[0], {"size": 0, "alpha": 1e-4, "beta": 0.75, "bias": 1.0}
    require(x.dtype in FLOATS, f"normalisation of type {x.dtype}")
    return g.kernel("lrn", {name: call.get(name, value) for name, value in defaults.items()}, [x], x.dtype, x.shape)


@form("ConvInteger", "QLinearConv")
def _conv_integer(g, call):
    """Zero points of weights that differ from filter to filter go into f32, which holds small sums exactly."""
    quantized = call.op == "QLinearConv"
    x, weights = call.inputs[0], call.inputs[3 if quantized else 1]
    places = (2, 5) if quantized else (2, 3)
    require(x.dtype in BYTES and weights.dtype in BYTES, f"types {x.dtype} and {weights.dtype}")
    zero_x, zero_w = (call.known(place, numpy.zeros((), x.dtype)).astype(numpy.int32).reshape(-1) for place in places)
    steps = window(call, x.shape[2:], weights.shape[2:])
    scales, zero_y, dtype = None, 0, S32
    if quantized:
        scale_x, scale_w, scale_y = (call.known(place).astype(numpy.float64).reshape(-1) for place in (1, 4, 6))
        scales = numpy.broadcast_to(scale_x * scale_w / scale_y, weights.shape[0]).astype(F32)
        zero_y, dtype = int(call.known(7).reshape(-1)[0]), call.inputs[7].dtype
    bias = call.inputs[8] if quantized and call.has(8) else None
    if x.rank in (3, 4) and (zero_w == zero_w[0]).all():
        zeros = int(zero_x[0]), int(zero_w[0]), zero_y
        return conv_int8(g, x, weights, bias, scales, zeros, dtype, steps, call.get("group", 1))
    return by_floats(g, call, (zero_x, zero_w), bias, scales, steps)


def conv_int8(g, x, weights, bias, scales, zeros, dtype, steps, groups):
    """x and weights are u8 or s8: what weir takes as weights is s8."""
    zero_x, zero_w, zero_y = zeros
    if weights.dtype == U8:
        weights, zero_w = convert_type(g, weights, S8, 1.0, -128.0), zero_w - 128
    weir, (strides, dilations, begin, end, sizes) = g.weir, steps
    flags = (weir.WEIR_CONV_INT8_BIAS if bias else 0) | (weir.WEIR_CONV_INT8_SCALES if scales is not None else 0)
    members = {
        "flags": flags,
        "dtype": g.desc(dtype, ()).dtype,
        "zero_x": zero_x,
        "zero_w": zero_w,
        "zero_y": zero_y,
        "groups": groups,
        "strides": strides,
        "dilations": dilations,
        "padding_begin": begin,
        "padding_end": end,
    }
    inputs = [x, weights, *([bias] if bias else []), *([constant(scales)] if scales is not None else [])]
    return g.kernel("conv_int8", members, inputs, dtype, (x.shape[0], weights.shape[0], *sizes))


def by_floats(g, call, zeros, bias, scales, steps):
    quantized = call.op == "QLinearConv"
    x, weights = call.inputs[0], call.inputs[3 if quantized else 1]
    require(math.prod(weights.shape[1:]) * 255 * 255 < 2**24, "sums that f32 cannot hold exactly")
    images = convert_type(g, x, F32, 1.0, -float(zeros[0][0]))
    taps = convert_type(g, weights, F32)
    taps = binary(g, "SUB", taps, constant(zeros[1].astype(F32).reshape(-1, *[1] * (weights.rank - 1))))
    bias = convert_type(g, bias, F32) if bias else None
    strides, dilations, begin, end, sizes = steps
    y = conv(g, images, taps, bias, strides, dilations, begin, end, sizes, call.get("group", 1))
    if not quantized:
        return convert_type(g, y, S32, rounding="NEAREST")
    return quantize(g, y, constant(1 / scales), call.inputs[7], call.inputs[7].dtype, 1)
