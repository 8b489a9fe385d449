# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forms of operators that combine elements along axes: products, reductions, normalisation, sums, and quantization,
whose scales may belong to an axis."""

import dataclasses
import math

import ml_dtypes
import numpy
from onnx import helper

from onnx_blocks import (
    BYTES, F32, FLOATS, MAX_STEPS, NUMBERS, S32, S64, U8, U64, along, as_held, binary, compare, concat, convert_type,
    cumsum, eltwise, expand, flip, gather, in_f32, matmul, matmul_int8, norm, number, part, reduce, require, reshape,
    select, softmax,
)
from onnx_forms import form
from onnx_graph import constant, held

# ---- Products ----


@form("Gemm")
def _gemm(g, call):
    a, b = call.inputs[:2]
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    c = call.input(2)
    if alpha != 1:
        if b.array is not None and b.dtype in FLOATS:
            b = constant((b.array * alpha).astype(b.dtype))
        else:
            a = eltwise(g, "LINEAR", a, alpha)
    if c is not None and beta != 1:
        c = constant((c.array * beta).astype(c.dtype)) if c.array is not None else eltwise(g, "LINEAR", c, beta)
    transposed = [bool(call.get("transA", 0)), bool(call.get("transB", 0))]
    columns = b.shape[0 if transposed[1] else 1]
    row = c is not None and c.size in (1, columns) and all(dim == 1 for dim in c.shape[:-1])
    bias = reshape(g, expand(g, c, (*c.shape[:-1], columns)), (columns,)) if row else None
    later = c is not None and not row
    y = matmul(g, a, b, bias, *transposed)
    return binary(g, "ADD", y, c) if later else y


def as_matrices(g, product, a, b):
    """A product of vectors, matrices, or batches of them."""
    rows, columns = a.rank > 1, b.rank > 1
    a = a if rows else reshape(g, a, (1, *a.shape))
    b = b if columns else reshape(g, b, (*b.shape, 1))
    y = product(a, b)
    shape = y.shape[:-2] + (y.shape[-2:-1] if rows else ()) + (y.shape[-1:] if columns else ())
    return reshape(g, y, shape)


@form("MatMul")
def _matmul(g, call):
    return as_matrices(g, lambda a, b: matmul(g, a, b), *call.inputs[:2])


def single(array, what):
    require(array.size == 1, f"{what} for each row or column")
    return array.reshape(()).item()


@form("MatMulInteger")
def _matmul_integer(g, call):
    zeros = [single(call.known(place, numpy.zeros(1)), "zero points") for place in (2, 3)]
    product = lambda a, b: matmul_int8(g, a, b, zero_a=int(zeros[0]), zero_b=int(zeros[1]))  # noqa: E731
    return as_matrices(g, product, *call.inputs[:2])


@form("QLinearMatMul")
def _qlinear_matmul(g, call):
    scale_a, scale_b, scale_c = (single(call.known(place), "scales") for place in (1, 4, 6))
    zero_a, zero_b, zero_c = (int(single(call.known(place), "zero points")) for place in (2, 5, 7))
    dtype = call.inputs[7].dtype
    require(dtype in BYTES, f"type {dtype}")

    def product(a, b):
        if b.rank > 2:  # weir has one b for all
            require(a.rank == b.rank and a.shape[:-2] == b.shape[:-2], "broadcasting")
            rows = [[reshape(g, part(g, x, 0, i, i + 1), x.shape[1:]) for x in (a, b)] for i in range(a.shape[0])]
            parts = [product(*both) for both in rows]
            return concat(g, [reshape(g, y, (1, *y.shape)) for y in parts], 0)
        return matmul_int8(g, a, b, dtype, scale_a * scale_b / scale_c, None, zero_a, zero_b, zero_c)

    return as_matrices(g, product, call.inputs[0], call.inputs[3])


# ---- Quantization ----


def quantize(g, x, scale, zero, dtype, axis, back=False):
    require(scale.dtype in FLOATS, f"scales of type {scale.dtype}")
    require(scale.rank < 2, "scales for blocks")
    if held(dtype) == S32 and dtype != S32:
        y = quantize(g, x, scale, zero, S32, axis)
        for op, limit in (("MAX", ml_dtypes.iinfo(dtype).min), ("MIN", ml_dtypes.iinfo(dtype).max)):
            y = binary(g, op, y, number(limit, S32))
        return convert_type(g, y, dtype)
    x = as_held(x)
    integers = x.dtype if back else dtype
    require(integers in BYTES | {S32} and (dtype if back else x.dtype) in FLOATS, f"from {x.dtype} to {dtype}")
    weir = g.weir
    flags = (weir.WEIR_QUANTIZE_DEQUANTIZE if back else 0) | (weir.WEIR_QUANTIZE_ZERO_POINT if zero else 0)
    inputs = [x, convert_type(g, scale, F32)] + ([convert_type(g, zero, S32)] if zero else [])
    members = {"flags": flags, "dtype": g.desc(dtype, ()).dtype, "axis": axis}
    return g.kernel("quantize", members, inputs, dtype, x.shape)


@form("QuantizeLinear")
def _quantize(g, call):
    x, scale, zero = call.inputs[0], call.inputs[1], call.input(2)
    named = call.get("output_dtype", 0)
    dtype = zero.dtype if zero else numpy.dtype(helper.tensor_dtype_to_np_dtype(named)) if named else U8
    if scale.rank < 2:
        return quantize(g, x, scale, zero, dtype, call.get("axis", 1))
    scale, zero = blocks(g, call, scale), blocks(g, call, zero)
    y = eltwise(g, "ROUND", binary(g, "DIV", in_f32(g, x), convert_type(g, scale, F32)))
    y = binary(g, "ADD", y, convert_type(g, zero, F32)) if zero else y
    return quantize(g, y, number(1, F32), None, dtype, 0)


@form("DequantizeLinear")
def _dequantize(g, call):
    x, scale, zero = call.inputs[0], call.inputs[1], call.input(2)
    if scale.rank < 2:
        return quantize(g, x, scale, zero, scale.dtype, call.get("axis", 1), True)
    y, zero = convert_type(g, x, F32), blocks(g, call, zero)
    y = binary(g, "SUB", y, convert_type(g, zero, F32)) if zero else y
    y = binary(g, "MUL", y, convert_type(g, blocks(g, call, scale), F32))
    return convert_type(g, y, scale.dtype)


def blocks(g, call, x):
    """One number for each element, of one for each block along the axis."""
    if x is None:
        return None
    axis, size, length = call.get("axis", 1) % x.rank, call.get("block_size"), call.inputs[0].shape[call.get("axis", 1)]
    places = numpy.minimum(numpy.arange(length) // size, x.shape[axis] - 1)
    return gather(g, x, number(places, S32), axis)


# ---- Normalisation ----


@form("ChannelAffine")
def _channel_affine(g, call):
    x, scale, shift = call.inputs
    channels = scale.shape[0]
    zero, one = constant(numpy.zeros(channels, F32)), constant(numpy.ones(channels, F32))
    return norm(g, "BATCH", x, 1, 0.0, scale, shift, statistics=(zero, one))


@form("BatchNormalization")
def _batch_norm(g, call):
    x, scale, shift, mean, variance = call.inputs
    epsilon = call.get("epsilon", 1e-5)
    if not call.get("training_mode", 0):
        require(not call.wants(1), "training")
        statistics = (convert_type(g, mean, F32), convert_type(g, variance, F32))
        return norm(g, "BATCH", x, 1, epsilon, scale, shift, statistics=statistics)
    axes, momentum = [0, *range(2, x.rank)], call.get("momentum", 0.9)
    now = reduce(g, "MEAN", in_f32(g, x), axes)
    spread = reduce(g, "MEAN", eltwise(g, "SQUARE", binary(g, "SUB", in_f32(g, x), now)), axes)
    now, spread = (reshape(g, value, scale.shape) for value in (now, spread))
    y = norm(g, "BATCH", x, 1, epsilon, scale, shift, statistics=(now, spread))
    running = []
    for before, value in ((mean, now), (variance, spread)):
        kept = eltwise(g, "LINEAR", before, momentum)
        running.append(binary(g, "ADD", kept, convert_type(g, eltwise(g, "LINEAR", value, 1 - momentum), before.dtype)))
    return y, *running


def rows_of(g, x, axis):
    """Mean, and reciprocal of the standard deviation without epsilon's square root: as f32."""
    axes = range(axis, x.rank)
    mean = reduce(g, "MEAN", in_f32(g, x), axes)
    return mean, reduce(g, "MEAN", eltwise(g, "SQUARE", binary(g, "SUB", in_f32(g, x), mean)), axes)


@form("LayerNormalization")
def _layer_norm(g, call):
    x, scale = call.inputs[:2]
    axis, epsilon = call.get("axis", -1) % x.rank, call.get("epsilon", 1e-5)
    shape = x.shape[axis:]
    scale, shift = (expand(g, v, shape) if v else None for v in (scale, call.input(2)))
    y = norm(g, "LAYER", x, axis, epsilon, scale, shift)
    if not call.wants(1) and not call.wants(2):
        return y
    mean, variance = rows_of(g, x, axis)
    deviation = eltwise(g, "POW", eltwise(g, "LINEAR", variance, 1.0, epsilon), 1.0, -0.5)
    return y, mean, deviation


@form("RMSNormalization")
def _rms_norm(g, call):
    x, scale = call.inputs
    axis = call.get("axis", -1) % x.rank
    return norm(g, "RMS", x, axis, call.get("epsilon", 1e-5), expand(g, scale, x.shape[axis:]))


@form("InstanceNormalization")
def _instance_norm(g, call):
    x, scale, shift = call.inputs
    return norm(g, "GROUP", x, 1, call.get("epsilon", 1e-5), scale, shift, x.shape[1])


@form("GroupNormalization")
def _group_norm(g, call):
    x, scale, shift = call.inputs
    groups = call.get("num_groups")
    if scale.shape != (x.shape[1],):  # one for each group
        each = x.shape[1] // groups
        scale, shift = (expand(g, reshape(g, v, (groups, 1)), (groups, each)) for v in (scale, shift))
        scale, shift = (reshape(g, v, (x.shape[1],)) for v in (scale, shift))
    return norm(g, "GROUP", x, 1, call.get("epsilon", 1e-5), scale, shift, groups)


@form("LpNormalization")
def _lp_norm(g, call):
    x, p = call.inputs[0], call.get("p", 2)
    require(p in (1, 2), f"p of {p}")
    size = reduce(g, "NORM_SUM" if p == 2 else "NORM_POWER_SUM", x, [call.get("axis", -1)], p=float(p))
    zero = compare(g, "EQ", size, 0)
    return select(g, zero, number(0, x.dtype), binary(g, "DIV", x, size))


@form("Softmax", "LogSoftmax")
def _softmax(g, call):
    x = call.inputs[0]
    log = call.op == "LogSoftmax"
    if call.version >= 13:
        return softmax(g, x, call.get("axis", -1), log)
    flat = reshape(g, x, halves(x, call.get("axis", 1)))
    return reshape(g, softmax(g, flat, 1, log), x.shape)


def halves(x, axis):
    axis += x.rank if axis < 0 else 0
    return math.prod(x.shape[:axis]), math.prod(x.shape[axis:])


@form("Hardmax")
def _hardmax(g, call):
    x = call.inputs[0]
    old = call.version < 13
    y = reshape(g, x, halves(x, call.get("axis", 1))) if old else x
    axis = 1 if old else call.get("axis", -1) % x.rank
    best = reduce(g, "ARGMAX", y, [axis])
    return reshape(g, convert_type(g, binary(g, "EQ", numbered(y, axis), best), x.dtype), x.shape)


def numbered(x, axis):
    """0, 1, 2 along an axis."""
    return constant(numpy.arange(x.shape[axis], dtype=S64).reshape([-1 if a == axis else 1 for a in range(x.rank)]))


# ---- Reductions ----

REDUCTIONS = {"ReduceSum": "SUM", "ReduceMean": "MEAN", "ReduceMax": "MAX", "ReduceMin": "MIN", "ReduceProd": "MUL"}

@form(*REDUCTIONS, "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
def _reduce(g, call):
    x = call.inputs[0]
    axes, keep = call.numbers("axes", 1), bool(call.get("keepdims", 1))
    if not axes:
        if call.get("noop_with_empty_axes", 0):
            require(call.op in REDUCTIONS, "no axes")
            return x
        axes = range(x.rank)
    axes = sorted({axis % max(x.rank, 1) for axis in axes})
    if call.op in REDUCTIONS:
        return reduce(g, REDUCTIONS[call.op], x, axes, keep)
    if call.op == "ReduceL1":
        return reduce(g, "NORM_POWER_SUM", x, axes, keep, 1.0)
    if call.op == "ReduceL2":
        return reduce(g, "NORM_SUM", x, axes, keep, 2.0)
    if call.op == "ReduceSumSquare":
        return reduce(g, "NORM_POWER_SUM", x, axes, keep, 2.0)
    if call.op == "ReduceLogSum":
        return eltwise(g, "LOG", reduce(g, "SUM", x, axes, keep))
    most = reduce(g, "MAX", x, axes)
    infinite = compare(g, "EQ", eltwise(g, "ABS", most), math.inf)
    most = select(g, infinite, number(0, x.dtype), most)
    y = eltwise(g, "LOG", reduce(g, "SUM", eltwise(g, "EXP", binary(g, "SUB", x, most)), axes))
    y = binary(g, "ADD", y, most)
    return y if keep else reshape(g, y, [dim for axis, dim in enumerate(y.shape) if axis not in axes])


@form("Det")
def _det(g, call):
    """By the minors of the first row, for small matrices."""
    x = call.inputs[0]
    require(x.shape[-1] <= 4, "the determinant of a large matrix")
    return reshape(g, determinant(g, x), x.shape[:-2])


def determinant(g, x):
    size, last = x.shape[-1], x.rank - 1
    if size == 1:
        return x
    below, total = part(g, x, last - 1, 1, size), None
    for column in range(size):
        minor = concat(g, [part(g, below, last, 0, column), part(g, below, last, column + 1, size)], last)
        first = part(g, part(g, x, last - 1, 0, 1), last, column, column + 1)
        term = binary(g, "MUL", first, determinant(g, minor))
        total = term if total is None else binary(g, "SUB" if column % 2 else "ADD", total, term)
    return total


@form("ArgMax", "ArgMin")
def _arg(g, call):
    x = call.inputs[0]
    axis, keep = call.get("axis", 0) % x.rank, bool(call.get("keepdims", 1))
    if not call.get("select_last_index", 0):
        return reduce(g, call.op.upper(), x, [axis], keep)
    y = reduce(g, call.op.upper(), flip(g, x, [axis]), [axis], keep)
    return binary(g, "SUB", number(x.shape[axis] - 1, S64), y)


@form("CumSum", "CumProd")
def _cumsum(g, call):
    x, axis = call.inputs[0], int(call.known(1).reshape(())) % call.inputs[0].rank
    exclusive, reverse = bool(call.get("exclusive", 0)), bool(call.get("reverse", 0))
    if call.op == "CumSum":
        return cumsum(g, x, axis, exclusive, reverse)
    length = x.shape[axis]
    require(length <= MAX_STEPS, "a long axis")
    places = range(length)[::-1] if reverse else range(length)
    parts, shape = {}, [1 if a == axis else dim for a, dim in enumerate(x.shape)]
    total = constant(numpy.ones(shape, x.dtype))
    for place in places:
        after = binary(g, "MUL", total, part(g, x, axis, place, place + 1))
        parts[place] = total if exclusive else after
        total = after
    return concat(g, [parts[place] for place in range(length)], axis)


@form("TopK")
def _top_k(g, call):
    x, count = call.inputs[0], int(call.known(1).reshape(-1)[0]) if call.version >= 10 else call.get("k")
    axis, weir = call.get("axis", -1) % x.rank, g.weir
    require(held(x.dtype) in NUMBERS, f"order of type {x.dtype}")
    least = number(-(2**63), S64)  # from there on bits of u64 have the order of s64
    y = binary(g, "ADD", as_held(x), least) if x.dtype == U64 else x
    flags = weir.WEIR_TOPK_S64_INDICES | (0 if call.get("largest", 1) else weir.WEIR_TOPK_LEAST)
    shape = [count if a == axis else dim for a, dim in enumerate(x.shape)]
    members = {"axis": axis, "k": count, "flags": flags}
    values, places = g.kernels("topk", members, [y], [y.dtype, S64], [shape, shape])
    values = binary(g, "ADD", values, least) if x.dtype == U64 else values
    return dataclasses.replace(values, dtype=x.dtype), places


@form("DFT")
def _dft(g, call):
    """By the matrix of the transform: real and imaginary parts side by side."""
    x = call.inputs[0]
    length = call.known(1)
    axis = call.get("axis", 1) if call.version < 20 else int(call.known(2, numpy.asarray(-2)).reshape(()))
    axis %= x.rank
    inverse, half = bool(call.get("inverse", 0)), bool(call.get("onesided", 0))
    whole = 2 * (x.shape[axis] - 1) if inverse and half else x.shape[axis]
    size = int(length.reshape(())) if length is not None else whole
    if x.shape[axis] > size:
        x = part(g, x, axis, 0, size)
    angles = numpy.outer(numpy.arange(x.shape[axis]), numpy.arange(size)) * (2 * numpy.pi / size)
    factor = 1 / size if inverse else 1
    real, imaginary = numpy.cos(angles) * factor, numpy.sin(angles) * (factor if inverse else -factor)
    if half and inverse:  # the other side is its mirror image
        count = min(x.shape[axis], size // 2 + 1)
        x = part(g, x, axis, 0, count)
        twice = numpy.full((count, 1), 2.0)
        twice[0] = 1
        twice[size // 2 :] = 1 if size % 2 == 0 else 2
        parts = [part(g, x, x.rank - 1, i, i + 1) for i in range(2)]
        y = [along(g, one, axis, matrix[:count] * twice) for one, matrix in zip(parts, (real, imaginary))]
        return binary(g, "SUB", *y)
    if half:
        real, imaginary = real[:, : size // 2 + 1], imaginary[:, : size // 2 + 1]
    parts = [part(g, x, x.rank - 1, i, i + 1) for i in range(x.shape[-1])]
    y = [along(g, parts[0], axis, real), along(g, parts[0], axis, imaginary)]
    if len(parts) == 2:
        y[0] = binary(g, "SUB", y[0], along(g, parts[1], axis, imaginary))
        y[1] = binary(g, "ADD", y[1], along(g, parts[1], axis, real))
    return concat(g, y, x.rank - 1)
