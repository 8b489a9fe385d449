# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the forms of operators are put together from: functions that add one kernel or a few, and compute what they can
of constants. Shapes are known; values are those of onnx_graph."""

import dataclasses
import math

import ml_dtypes
import numpy

from onnx_graph import HELD, Refusal, constant, held

F32 = numpy.dtype(numpy.float32)
F16 = numpy.dtype(numpy.float16)
BF16 = numpy.dtype(ml_dtypes.bfloat16)
S32 = numpy.dtype(numpy.int32)
S64 = numpy.dtype(numpy.int64)
U8 = numpy.dtype(numpy.uint8)
S8 = numpy.dtype(numpy.int8)
U64 = numpy.dtype(numpy.uint64)
BOOL = numpy.dtype(numpy.bool_)
FLOATS = {F32, F16, BF16}
BYTES = {U8, S8}
INTEGERS = BYTES | {S32, S64}
NUMBERS = FLOATS | INTEGERS
MAX_ARGS = 64
MAX_STEPS = 256  # of what is written out step by step


def require(condition, reason):
    if not condition:
        raise Refusal(reason)


def value_of(name, weir, prefix):
    return getattr(weir, f"WEIR_{prefix}_{name}")


# ---- Movement ----


def reshape(g, x, shape):
    shape = tuple(int(dim) for dim in shape)
    if shape == x.shape:
        return x
    if x.array is not None:
        return constant(x.array.reshape(shape))
    return g.kernel("reshape", {"rank": len(shape), "dims": shape}, [x], x.dtype, shape)


def transpose(g, x, order):
    order = [int(axis) % max(x.rank, 1) for axis in order]
    if order == list(range(x.rank)):
        return x
    if x.array is not None:
        return constant(x.array.transpose(order))
    shape = [x.shape[axis] for axis in order]
    # Dimensions of 1 may go anywhere without a copy.
    if [axis for axis in order if x.shape[axis] != 1] == [axis for axis in range(x.rank) if x.shape[axis] != 1]:
        return reshape(g, x, shape)
    return g.kernel("transpose", {"rank": x.rank, "permutation": order}, [x], x.dtype, shape)


def slice_of(g, x, begin, end, step=None):
    """Begin and end as range() takes them, for each dimension; an end of -1 with a negative step goes to the first."""
    step = step or [1] * x.rank
    ranges = [range(b, e, s) for b, e, s in zip(begin, end, step)]
    shape = tuple(len(r) for r in ranges)
    if shape == x.shape and all(s == 1 for s in step):
        return x
    if x.array is not None:
        return constant(x.array[numpy.ix_(*(list(r) for r in ranges))])
    if not math.prod(shape):
        return constant(numpy.zeros(shape, x.dtype))
    end = [-(2**63) if e < 0 else e for e in end]
    return g.kernel("slice", {"rank": x.rank, "begin": begin, "end": end, "step": step}, [x], x.dtype, shape)


def part(g, x, axis, begin, end):
    """The elements from begin to end along one axis."""
    begins, ends = [0] * x.rank, list(x.shape)
    begins[axis], ends[axis] = begin, end
    return slice_of(g, x, begins, ends)


def flip(g, x, axes):
    begin, end, step = [0] * x.rank, list(x.shape), [1] * x.rank
    for axis in axes:
        begin[axis], end[axis], step[axis] = x.shape[axis] - 1, -1, -1
    return slice_of(g, x, begin, end, step) if x.size else x


def pad(g, x, before, after, value=0.0, mode="CONSTANT"):
    if not any(before) and not any(after):
        return x
    shape = [dim + b + a for dim, b, a in zip(x.shape, before, after)]
    members = {"rank": x.rank, "mode": value_of(mode, g.weir, "PAD"), "before": before, "after": after, "value": value}
    return g.kernel("pad", members, [x], x.dtype, shape)


def spread(g, x, axis, stride):
    """x with stride - 1 zeros between its elements along the axis."""
    if stride == 1 or x.shape[axis] == 1:
        return x
    shape = [*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]]
    y = reshape(g, x, shape)
    after = [0] * len(shape)
    after[axis + 1] = stride - 1
    y = pad(g, y, [0] * len(shape), after)
    shape = list(x.shape)
    shape[axis] *= stride
    return part(g, reshape(g, y, shape), axis, 0, (x.shape[axis] - 1) * stride + 1)


def concat(g, values, axis):
    require(len({value.dtype for value in values}) == 1, "types that differ")
    values = [value for value in values if value.shape[axis]] or values[:1]
    if len(values) == 1:
        return values[0]
    if all(value.array is not None for value in values):
        return constant(numpy.concatenate([value.array for value in values], axis))
    if len(values) > MAX_ARGS:
        values = [concat(g, values[i : i + MAX_ARGS], axis) for i in range(0, len(values), MAX_ARGS)]
        return concat(g, values, axis)
    shape = list(values[0].shape)
    shape[axis] = sum(value.shape[axis] for value in values)
    return g.kernel("concat", {"num_inputs": len(values), "axis": axis}, values, values[0].dtype, shape)


def expand(g, x, shape):
    """x, broadcast to the shape."""
    shape = tuple(int(dim) for dim in shape)
    if shape == x.shape:
        return x
    if x.array is not None:
        return constant(numpy.broadcast_to(x.array, shape))
    return g.kernel("tile", {"rank": len(shape), "mode": g.weir.WEIR_TILE_EXPAND, "counts": shape}, [x], x.dtype, shape)


def repeat(g, x, repeats):
    """So many copies of x along each of its axes."""
    repeats = [int(count) for count in repeats]
    if all(count == 1 for count in repeats):
        return x
    if x.array is not None:
        return constant(numpy.tile(x.array, repeats))
    shape = tuple(dim * count for dim, count in zip(x.shape, repeats))
    return g.kernel("tile", {"rank": x.rank, "counts": repeats}, [x], x.dtype, shape)


def gather(g, table, indices, axis):
    """Indices below 0 count from the end."""
    shape = table.shape[:axis] + indices.shape + table.shape[axis + 1 :]
    if table.array is not None and indices.array is not None:
        return constant(numpy.take(table.array, indices.array, axis))
    require(indices.dtype in (S32, S64), f"indices of type {indices.dtype}")
    members = {"axis": axis, "flags": g.weir.WEIR_GATHER_FROM_END}
    return g.kernel("gather", members, [table, indices], table.dtype, shape)


def rearranged(g, x, places):
    """The elements of x at these places of its flat form."""
    places = numpy.asarray(places)
    if not places.size:
        return constant(numpy.zeros(places.shape, x.dtype))
    flat = reshape(g, x, (x.size,))
    return reshape(g, gather(g, flat, constant(places.reshape(-1).astype(S32)), 0), places.shape)


# ---- Elementwise ----


def eltwise(g, op, x, alpha=0.0, beta=0.0):
    require(x.dtype in FLOATS, f"{op.lower()} of type {x.dtype}")
    members = {"op": value_of(op, g.weir, "ELTWISE"), "alpha": alpha, "beta": beta}
    return g.kernel("eltwise", members, [x], x.dtype, x.shape)


COMPARISONS = {"EQ": numpy.equal, "NE": numpy.not_equal, "LT": numpy.less, "LE": numpy.less_equal}
COMPARISONS.update({"GT": numpy.greater, "GE": numpy.greater_equal})
ARITHMETIC = {"ADD": numpy.add, "SUB": numpy.subtract, "MUL": numpy.multiply}
ARITHMETIC.update({"MIN": numpy.minimum, "MAX": numpy.maximum})


def binary(g, op, a, b, rounding="ZERO"):
    """The rounding is that of quotients of integers, and of the quotients that remainders belong to."""
    require(a.dtype == b.dtype, f"types {a.dtype} and {b.dtype}")
    shape = numpy.broadcast_shapes(a.shape, b.shape)
    compares = op in COMPARISONS
    if a.array is not None and b.array is not None and (compares or op in ARITHMETIC):
        with numpy.errstate(all="ignore"):
            result = (COMPARISONS[op] if compares else ARITHMETIC[op])(a.array, b.array)
        return constant(numpy.asarray(result, dtype=BOOL if compares else a.dtype))
    if a.dtype in HELD:
        return binary_held(g, op, a, b, rounding)
    of_bools = compares or op in ("MIN", "MAX")
    require(a.dtype in NUMBERS or (of_bools and a.dtype == BOOL), f"{op.lower()} of type {a.dtype}")
    members = {"op": value_of(op, g.weir, "BINARY"), "rounding": value_of(rounding, g.weir, "ROUNDING")}
    return g.kernel("binary", members, [a, b], BOOL if compares else a.dtype, shape)


def as_held(x):
    """x with weir's type for its own."""
    if x.array is not None:
        return constant(x.array.astype(held(x.dtype)))
    return dataclasses.replace(x, dtype=held(x.dtype))


def fitted(g, x, dtype):
    """x, whose type is one of weir that may hold this one, wrapped around as this one does."""
    if dtype not in HELD:
        return x
    info = ml_dtypes.iinfo(dtype)
    if info.bits < 64:
        low, count = number(info.min, x.dtype), number(1 << info.bits, x.dtype)
        x = binary(g, "ADD", binary(g, "REM", binary(g, "SUB", x, low), count, "FLOOR"), low)
    return dataclasses.replace(x, dtype=dtype)


def binary_held(g, op, a, b, rounding):
    dtype, a, b = a.dtype, as_held(a), as_held(b)
    if dtype == U64 and op not in ("ADD", "SUB", "MUL", "EQ", "NE"):
        require(op in COMPARISONS or op in ("MIN", "MAX"), f"{op.lower()} of type {dtype}")
        least = number(-(2**63), S64)  # from there on bits have the order of s64
        y = binary(g, op, binary(g, "ADD", a, least), binary(g, "ADD", b, least))
        y = y if op in COMPARISONS else binary(g, "ADD", y, least)
    else:
        y = binary(g, op, a, b, rounding)
    return y if op in COMPARISONS else fitted(g, y, dtype)


def number(value, dtype):
    return constant(numpy.asarray(value).astype(dtype))


def compare(g, op, x, value):
    return binary(g, op, x, number(value, x.dtype))


def convert_type(g, x, dtype, scale=0.0, shift=0.0, rounding="ZERO"):
    if x.dtype == dtype and not scale and not shift:
        return x
    floats = {x.dtype, dtype} & FLOATS
    known = all(held(t) in NUMBERS | {BOOL} for t in (x.dtype, dtype)) and not (floats and U64 in (x.dtype, dtype))
    require(known, f"conversion from {x.dtype} to {dtype}")
    if x.array is not None and not scale and not shift and rounding == "ZERO":
        with numpy.errstate(all="ignore"):
            return constant(x.array.astype(dtype))
    if x.dtype in HELD or dtype in HELD:
        return fitted(g, convert_type(g, as_held(x), held(dtype), scale, shift, rounding), dtype)
    members = {"dtype": g.desc(dtype, ()).dtype, "scale": scale, "shift": shift}
    members["rounding"] = value_of(rounding, g.weir, "ROUNDING")
    return g.kernel("convert", members, [x], dtype, x.shape)


def select(g, condition, a, b):
    require(a.dtype == b.dtype, f"types {a.dtype} and {b.dtype}")
    shape = numpy.broadcast_shapes(condition.shape, a.shape, b.shape)
    if all(value.array is not None for value in (condition, a, b)):
        return constant(numpy.where(condition.array, a.array, b.array))
    return g.kernel("select", {}, [condition, a, b], a.dtype, shape)


def in_f32(g, x):
    """x as f32, for kernels that have no other type."""
    require(x.dtype in FLOATS, f"type {x.dtype}")
    return convert_type(g, x, F32)


def polynomial(g, x, coefficients):
    """Coefficients from the constant one on."""
    *rest, before, last = coefficients
    y = eltwise(g, "LINEAR", x, last, before)
    for coefficient in reversed(rest):
        y = eltwise(g, "LINEAR", binary(g, "MUL", y, x), 1.0, coefficient)
    return y


def negated(g, x):
    return binary(g, "EQ", x, number(False, BOOL))


# ---- Reductions, normalisation, products ----


def reduce(g, op, x, axes, keep=True, p=0.0):
    places = op in ("ARGMAX", "ARGMIN")
    of_bools = places or op in ("MAX", "MIN")
    known = FLOATS if op.startswith("NORM") else NUMBERS | {BOOL} if of_bools else NUMBERS
    require(x.dtype in known, f"reduction of type {x.dtype}")
    axes = sorted({int(axis) % x.rank for axis in axes}) if x.rank else []
    kept = [1 if axis in axes else dim for axis, dim in enumerate(x.shape)]
    shape = [dim for axis, dim in enumerate(kept) if keep or axis not in axes]
    if not axes:
        x = reshape(g, x, (*x.shape, 1))
        axes, keep = [x.rank - 1], False
    members = {
        "flags": keep * g.weir.WEIR_REDUCE_KEEP_DIMS | places * g.weir.WEIR_REDUCE_S64_INDICES,
        "op": value_of(op, g.weir, "REDUCE"),
        "num_axes": len(axes),
        "axes": axes,
        "p": p,
    }
    return g.kernel("reduce", members, [x], S64 if places else x.dtype, shape)


def matmul(g, a, b, bias=None, transpose_a=False, transpose_b=False):
    require(a.dtype in FLOATS, f"product of type {a.dtype}")
    require(a.dtype == b.dtype, f"types {a.dtype} and {b.dtype}")
    rows = a.shape[-1 if transpose_a else -2]
    columns = b.shape[-2 if transpose_b else -1]
    shape = (*numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2]), rows, columns)
    weir = g.weir
    flags = transpose_a * weir.WEIR_MATMUL_TRANSPOSE_A | transpose_b * weir.WEIR_MATMUL_TRANSPOSE_B
    flags |= weir.WEIR_MATMUL_BIAS if bias else 0
    return g.kernel("matmul", {"flags": flags}, [a, b, bias] if bias else [a, b], a.dtype, shape)


def matmul_int8(g, a, b, dtype=S32, scale=0.0, scales=None, zero_a=0, zero_b=0, zero_c=0):
    """a is u8 or s8, b too: what weir takes as b is s8."""
    require(a.dtype in BYTES and b.dtype in BYTES, f"product of types {a.dtype} and {b.dtype}")
    if b.dtype == U8:
        b, zero_b = convert_type(g, b, S8, 1.0, -128.0), zero_b - 128
    weir = g.weir
    members = {
        "flags": weir.WEIR_MATMUL_INT8_SCALES if scales else 0,
        "dtype": g.desc(dtype, ()).dtype,
        "scale": scale,
        "zero_a": zero_a,
        "zero_b": zero_b,
        "zero_c": zero_c,
    }
    shape = (*numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    return g.kernel("matmul_int8", members, [a, b, scales] if scales else [a, b], dtype, shape)


def along(g, x, axis, matrix):
    """The rows of x along an axis times a constant matrix."""
    order = [a for a in range(x.rank) if a != axis] + [axis]
    y = transpose(g, x, order)
    flat = reshape(g, y, (y.size // y.shape[-1], y.shape[-1]))
    y = reshape(g, matmul(g, flat, constant(matrix.astype(x.dtype))), (*y.shape[:-1], matrix.shape[1]))
    return transpose(g, y, [order.index(a) for a in range(x.rank)])


def softmax(g, x, axis, log=False):
    require(x.dtype in FLOATS, f"softmax of type {x.dtype}")
    members = {"axis": axis, "flags": g.weir.WEIR_SOFTMAX_LOG if log else 0}
    return g.kernel("softmax", members, [x], x.dtype, x.shape)


def norm(g, op, x, axis, epsilon, scale=None, shift=None, groups=0, statistics=()):
    require(x.dtype in FLOATS, f"normalisation of type {x.dtype}")
    flags = (g.weir.WEIR_NORM_SCALE if scale else 0) | (g.weir.WEIR_NORM_SHIFT if shift else 0)
    members = {"flags": flags, "op": value_of(op, g.weir, "NORM"), "axis": axis, "groups": groups, "epsilon": epsilon}
    further = [value for value in (scale, shift) if value]
    return g.kernel("norm", members, [x, *statistics, *further], x.dtype, x.shape)


def cumsum(g, x, axis, exclusive=False, reverse=False):
    require(x.dtype in FLOATS | {S32, S64}, f"sums of type {x.dtype}")
    flags = exclusive * g.weir.WEIR_CUMSUM_EXCLUSIVE | reverse * g.weir.WEIR_CUMSUM_REVERSE
    return g.kernel("cumsum", {"axis": axis, "flags": flags}, [x], x.dtype, x.shape)
