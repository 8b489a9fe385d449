# SPDX-License-Identifier: MIT OR Apache-2.0
"""The operators of ONNX by weir's built-in kernels. A form takes the graph and the node with its values, and gives the
values of the outputs."""

import math

import ml_dtypes
import numpy
import onnx
from onnx import helper

import models
import onnx_rewriting
from onnx_graph import Refusal, Value, constant

F32 = numpy.dtype(numpy.float32)
F16 = numpy.dtype(numpy.float16)
BF16 = numpy.dtype(ml_dtypes.bfloat16)
S32 = numpy.dtype(numpy.int32)
S64 = numpy.dtype(numpy.int64)
U8 = numpy.dtype(numpy.uint8)
S8 = numpy.dtype(numpy.int8)
BOOL = numpy.dtype(numpy.bool_)
FLOATS = {F32, F16, BF16}
NUMBERS = FLOATS | {S32, U8, S8}
MAX_ARGS = 64

FORMS = {}


def form(*ops):
    def register(function):
        for op in ops:
            FORMS[op] = function
        return function

    return register


class Call:
    """A node as a form sees it: the values of its inputs, None where one is left out, and its attributes."""

    def __init__(self, graph, node, inputs, scope):
        self.graph, self.node, self.inputs, self.scope = graph, node, inputs, scope
        self.op, self.version = node.op, node.version
        self.outputs = len(node.outputs)

    def get(self, name, default=None):
        return self.node.get(name, default)

    def has(self, index):
        return index < len(self.inputs) and self.inputs[index] is not None

    def input(self, index, default=None):
        return self.inputs[index] if self.has(index) else default

    def known(self, index, default=None):
        """The array of an input that has to be a constant."""
        if not self.has(index):
            return default
        if self.inputs[index].array is None:
            raise Refusal(f"input {index} is no constant", [self.node.inputs[index]])
        return self.inputs[index].array

    def numbers(self, name, index, default=None):
        """A list of integers that is an attribute in older versions, and an input in newer ones."""
        if self.get(name) is not None:
            return [int(number) for number in self.get(name)]
        array = self.known(index)
        return default if array is None else [int(number) for number in array.reshape(-1)]

    def wants(self, name):
        """Whether the model has an output of that number."""
        return name < self.outputs and bool(self.node.outputs[name])


def convert(graph, scope, nodes, values):
    """Adds the nodes to the graph; `values` are those known by name, and receives all others."""
    for node in nodes:
        arrays = {name: values[name].array for name in node.inputs if name in values}
        missing = [name for name in node.inputs if name and name not in values]
        try:
            if missing:
                raise Refusal(f"value '{missing[0]}' is not there")
            found = None
            known = all(array is not None for array in arrays.values())
            if known and node.proto is not None and node.op not in onnx_rewriting.RANDOM and node.domain == "":
                found = folded(scope, node, arrays)
            if found is None:
                inputs = [values[name] if name else None for name in node.inputs]
                call = Call(graph, node, inputs, scope)
                graph.name = node.name
                form_of = FORMS.get(node.op) if node.domain == "" else None
                results = form_of(graph, call) if form_of else by_function(graph, call, values)
                results = results if isinstance(results, (list, tuple)) else [results]
                found = dict(zip(node.outputs, results))
                absent = [name for name in node.outputs if name and found.get(name) is None]
                if absent:
                    raise Refusal(f"output '{absent[0]}'")
        except Refusal as refusal:
            refusal.node = refusal.node or node.name
            raise
        values.update({name: value for name, value in found.items() if name})


def folded(scope, node, arrays):
    if onnx_rewriting.has_graph(node):
        return None
    try:
        found = onnx_rewriting.evaluate(node, arrays, scope.versions)
    except Exception as error:
        raise Refusal(f"not computable: {error}") from error
    if not all(isinstance(value, (numpy.ndarray, numpy.generic)) for value in found.values()):
        raise Refusal("a constant that is no tensor")
    return {name: constant(numpy.asarray(value)) for name, value in found.items()}


def by_function(graph, call, values):
    raise Refusal(f"operator {call.node.domain}{'.' if call.node.domain else ''}{call.op}")


# ---- Building blocks: one kernel, or none for constants ----


def require(condition, reason):
    if not condition:
        raise Refusal(reason)


def value_of(name, weir, prefix):
    return getattr(weir, f"WEIR_{prefix}_{name}")


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
    end = [-(2**63) if e < 0 else e for e in end]
    return g.kernel("slice", {"rank": x.rank, "begin": begin, "end": end, "step": step}, [x], x.dtype, shape)


def part(g, x, axis, begin, end):
    """The elements from begin to end along one axis."""
    begins, ends = [0] * x.rank, list(x.shape)
    begins[axis], ends[axis] = begin, end
    return slice_of(g, x, begins, ends)


def pad(g, x, before, after, value=0.0, mode="CONSTANT"):
    if not any(before) and not any(after):
        return x
    shape = [dim + b + a for dim, b, a in zip(x.shape, before, after)]
    members = {"rank": x.rank, "mode": value_of(mode, g.weir, "PAD"), "before": before, "after": after, "value": value}
    return g.kernel("pad", members, [x], x.dtype, shape)


def concat(g, values, axis):
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


def eltwise(g, op, x, alpha=0.0, beta=0.0):
    require(x.dtype in FLOATS, f"{op.lower()} of type {x.dtype}")
    members = {"op": value_of(op, g.weir, "ELTWISE"), "alpha": alpha, "beta": beta}
    return g.kernel("eltwise", members, [x], x.dtype, x.shape)


COMPARISONS = {"EQ": numpy.equal, "NE": numpy.not_equal, "LT": numpy.less, "LE": numpy.less_equal}
COMPARISONS.update({"GT": numpy.greater, "GE": numpy.greater_equal})
ARITHMETIC = {"ADD": numpy.add, "SUB": numpy.subtract, "MUL": numpy.multiply}
ARITHMETIC.update({"MIN": numpy.minimum, "MAX": numpy.maximum})


def binary(g, op, a, b):
    require(a.dtype == b.dtype, f"types {a.dtype} and {b.dtype}")
    shape = numpy.broadcast_shapes(a.shape, b.shape)
    compares = op in COMPARISONS
    if a.array is not None and b.array is not None and (compares or op in ARITHMETIC):
        with numpy.errstate(all="ignore"):
            result = (COMPARISONS[op] if compares else ARITHMETIC[op])(a.array, b.array)
        return constant(numpy.asarray(result, dtype=BOOL if compares else a.dtype))
    require(a.dtype in NUMBERS or (compares and a.dtype == BOOL), f"{op.lower()} of type {a.dtype}")
    return g.kernel("binary", {"op": value_of(op, g.weir, "BINARY")}, [a, b], BOOL if compares else a.dtype, shape)


def number(value, dtype):
    return constant(numpy.asarray(value).astype(dtype))


def convert_type(g, x, dtype, scale=0.0, shift=0.0):
    """weir's conversion: integers are rounded and saturate."""
    if x.dtype == dtype and not scale and not shift:
        return x
    if x.array is not None and not scale and not shift and dtype in FLOATS:
        return constant(x.array.astype(dtype))
    require(x.dtype != S64 and dtype != S64, f"conversion from {x.dtype} to {dtype}")
    dtype_number = g.desc(dtype, ()).dtype
    return g.kernel("convert", {"dtype": dtype_number, "scale": scale, "shift": shift}, [x], dtype, x.shape)


def select(g, condition, a, b):
    require(a.dtype == b.dtype, f"types {a.dtype} and {b.dtype}")
    require(a.dtype != S64, "a choice of type int64")
    shape = numpy.broadcast_shapes(condition.shape, a.shape, b.shape)
    return g.kernel("select", {}, [condition, a, b], a.dtype, shape)


def expand(g, x, shape):
    """x, broadcast to the shape."""
    shape = tuple(int(dim) for dim in shape)
    if shape == x.shape:
        return x
    if x.array is not None:
        return constant(numpy.broadcast_to(x.array, shape))
    if x.dtype == S64:
        return rearranged(g, x, numpy.broadcast_to(numpy.arange(x.size).reshape(x.shape), shape))
    return select(g, constant(numpy.ones(shape, BOOL)), x, x)


def gather(g, table, indices, axis):
    shape = table.shape[:axis] + indices.shape + table.shape[axis + 1 :]
    if table.array is not None and indices.array is not None:
        return constant(numpy.take(table.array, indices.array, axis))
    return g.kernel("gather", {"axis": axis}, [table, indices], table.dtype, shape)


def rearranged(g, x, places):
    """The elements of x at these places of its flat form."""
    places = numpy.asarray(places)
    if not places.size:
        return constant(numpy.zeros(places.shape, x.dtype))
    flat = reshape(g, x, (x.size,))
    return reshape(g, gather(g, flat, constant(places.reshape(-1).astype(S32)), 0), places.shape)


def reduce(g, op, x, axes, keep=True, p=0.0):
    require(x.dtype in FLOATS, f"reduction of type {x.dtype}")
    axes = sorted({int(axis) % x.rank for axis in axes}) if x.rank else []
    kept = [1 if axis in axes else dim for axis, dim in enumerate(x.shape)]
    if not axes:
        x, axes = reshape(g, x, (*x.shape, 1)), [x.rank]
        kept = [*kept, 1]
    shape = [dim for axis, dim in enumerate(kept) if keep or axis not in axes]
    dtype = S32 if op in ("ARGMAX", "ARGMIN") else x.dtype
    members = {
        "flags": g.weir.WEIR_REDUCE_KEEP_DIMS if keep else 0,
        "op": value_of(op, g.weir, "REDUCE"),
        "num_axes": len(axes),
        "axes": axes,
        "p": p,
    }
    return g.kernel("reduce", members, [x], dtype, shape)


def matmul(g, a, b, bias=None, activation="NONE", transpose_a=False, transpose_b=False):
    require(a.dtype in FLOATS, f"product of type {a.dtype}")
    require(a.dtype == b.dtype, f"types {a.dtype} and {b.dtype}")
    rows = a.shape[-1 if transpose_a else -2]
    columns = b.shape[-2 if transpose_b else -1]
    shape = (*numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2]), rows, columns)
    weir = g.weir
    flags = transpose_a * weir.WEIR_MATMUL_TRANSPOSE_A | transpose_b * weir.WEIR_MATMUL_TRANSPOSE_B
    flags |= weir.WEIR_MATMUL_BIAS if bias else 0
    members = {"flags": flags, "activation": value_of(activation, weir, "ACTIVATION")}
    return g.kernel("matmul", members, [a, b, bias] if bias else [a, b], a.dtype, shape)


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


def in_f32(g, x):
    """x as f32, for kernels that have no other type."""
    require(x.dtype in FLOATS, f"type {x.dtype}")
    return convert_type(g, x, F32)


# ---- Convolution and pooling ----


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


def conv(g, x, weights, bias, strides, dilations, begin, end, sizes, groups=1, activation="NONE"):
    rank = x.rank - 2
    require(rank in (1, 2), f"convolution of {rank} dimensions")
    members = {
        "flags": g.weir.WEIR_CONV_BIAS if bias else 0,
        "activation": value_of(activation, g.weir, "ACTIVATION"),
        "groups": groups,
        "strides": strides,
        "dilations": dilations,
        "padding_begin": begin,
        "padding_end": end,
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
    activation = call.get("activation", "NONE")
    y = conv(g, *arguments, strides, dilations, begin, end, sizes, groups, activation)
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
        begin = [t - t // 2 if auto == "SAME_LOWER" else t // 2 for t in total]
    else:
        pads = list(call.get("pads") or [0] * 2 * rank) if auto != "VALID" else [0] * 2 * rank
        begin = pads[:rank]
        sizes = [f + e - b - a for f, e, b, a in zip(full, extra, begin, pads[rank:])]
    outputs = weights.shape[1] * groups
    bias = in_f32(g, call.inputs[2]) if call.has(2) else None
    exact = groups == 1 and rank == 2 and kernel == tuple(strides) and sizes == full and not any(begin)
    if exact and bias is None or exact and bias.array is not None:
        return convert_type(g, by_pixels(g, x, weights, bias, kernel), call.inputs[0].dtype)
    # As a convolution of x with zeros between its elements, by the mirrored weights.
    split = (groups, weights.shape[0] // groups, weights.shape[1], *kernel)
    mirrored = reshape(g, weights, split)
    axes = range(3, 3 + rank)
    mirrored = transpose(g, mirrored, [0, 2, 1, *axes])
    mirrored = reshape(g, mirrored, (outputs, weights.shape[0] // groups, *kernel))
    mirrored = flip(g, mirrored, range(2, 2 + rank))
    for axis, stride in enumerate(strides, 2):
        x = spread(g, x, axis, stride)
    before = [span - 1 - b for span, b in zip(spans, begin)]
    after = [size - 1 + span - b - dim for size, span, b, dim in zip(sizes, spans, before, x.shape[2:])]
    cut = [(max(-b, 0), dim - max(-a, 0)) for b, a, dim in zip(before, after, x.shape[2:])]
    x = slice_of(g, x, [0, 0, *(c[0] for c in cut)], [*x.shape[:2], *(c[1] for c in cut)])
    before, after = ([max(margin, 0) for margin in side] for side in (before, after))
    y = conv(g, x, mirrored, bias, [1] * rank, dilations, before, after, sizes, groups)
    return convert_type(g, y, call.inputs[0].dtype)


def by_pixels(g, x, weights, bias, kernel):
    """Windows that do not overlap: a product for each pixel, whose results are put in their places."""
    channels, outputs = weights.shape[:2]
    (height, width), (rows, columns) = x.shape[2:], kernel
    flat = reshape(g, transpose(g, weights, [1, 2, 3, 0]), (outputs * rows * columns, channels, 1, 1))
    bias = constant(numpy.repeat(bias.array, rows * columns)) if bias else None
    y = conv(g, x, flat, bias, [1, 1], [1, 1], [0, 0], [0, 0], [height, width])
    y = reshape(g, y, (x.shape[0], outputs, rows, columns, height, width))
    y = transpose(g, y, [0, 1, 4, 2, 5, 3])
    return reshape(g, y, (x.shape[0], outputs, height * rows, width * columns))


def flip(g, x, axes):
    begin, end, step = [0] * x.rank, list(x.shape), [1] * x.rank
    for axis in axes:
        begin[axis], end[axis], step[axis] = x.shape[axis] - 1, -1, -1
    return slice_of(g, x, begin, end, step) if x.size else x


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


def pooling(g, op, x, kernel, strides, dilations, begin, end, sizes):
    members = {
        "op": value_of(op, g.weir, "POOLING"),
        "kernel": kernel,
        "strides": strides,
        "dilations": dilations,
        "padding_begin": begin,
        "padding_end": end,
    }
    return g.kernel("pooling", members, [x], F32, (*x.shape[:2], *sizes))


def pooled(g, call, x, op):
    """x is f32; windows as the node says."""
    kernel = list(call.get("kernel_shape"))
    rank = x.rank - 2
    require(rank in (1, 2), f"pooling of {rank} dimensions")
    ceil = bool(call.get("ceil_mode", 0))
    strides, dilations, begin, end, sizes = window(call, x.shape[2:], kernel, ceil)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    # What the last windows reach beyond the padding, or leave of it.
    needed = [(n - 1) * s + span - dim - b for n, s, span, dim, b in zip(sizes, strides, spans, x.shape[2:], begin)]
    if op == "AVERAGE" and any(n > e for n, e in zip(needed, end)):
        x, op = pad(g, x, [0, 0, *begin], [0, 0, *end]), "AVERAGE_INSIDE"
        needed, begin = [max(n - e, 0) for n, e in zip(needed, end)], [0] * rank
    end = [max(n, 0) for n in needed]
    outside = any(b >= span or e >= span for b, e, span in zip(begin, end, spans))
    if outside or any(n < 0 for n in needed):
        require(op != "AVERAGE_INSIDE" or not outside, "padding as long as the window")
        if outside:
            x = pad(g, x, [0, 0, *begin], [0, 0, *end], -math.inf if op == "MAX" else 0.0)
            begin, end = [0] * rank, [0] * rank
    return pooling(g, op, x, kernel, strides, dilations, begin, end, sizes)


@form("MaxPool")
def _max_pool(g, call):
    x = call.inputs[0]
    require(not call.wants(1), "indices of a pooling")
    require(x.dtype in FLOATS | {U8, S8}, f"pooling of type {x.dtype}")
    return convert_type(g, pooled(g, call, convert_type(g, x, F32), "MAX"), x.dtype)


@form("AveragePool")
def _average_pool(g, call):
    x = call.inputs[0]
    op = "AVERAGE" if call.get("count_include_pad", 0) else "AVERAGE_INSIDE"
    return convert_type(g, pooled(g, call, in_f32(g, x), op), x.dtype)


@form("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(g, call):
    x = call.inputs[0]
    op = "MAX" if call.op == "GlobalMaxPool" else "AVERAGE"
    if x.rank not in (3, 4):
        return reduce(g, "MAX" if op == "MAX" else "MEAN", x, range(2, x.rank))
    members = {"op": value_of(op, g.weir, "POOLING"), "flags": g.weir.WEIR_POOLING_GLOBAL}
    shape = (*x.shape[:2], *[1] * (x.rank - 2))
    return convert_type(g, g.kernel("pooling", members, [in_f32(g, x)], F32, shape), x.dtype)


@form("LRN")
def _lrn(g, call):
    """Sums over neighbouring channels are averages of windows over an image whose rows are the channels."""
    x, size = call.inputs[0], call.get("size")
    alpha, beta, bias = call.get("alpha", 1e-4), call.get("beta", 0.75), call.get("bias", 1.0)
    channels = x.shape[1]
    y = eltwise(g, "SQUARE", in_f32(g, x))
    y = reshape(g, y, (x.shape[0], 1, channels, x.size // (x.shape[0] * channels)))
    before = (size - 1) // 2
    begin, end = [before, 0], [size - 1 - before, 0]
    y = pooling(g, "AVERAGE", y, [size, 1], [1, 1], [1, 1], begin, end, y.shape[2:])
    y = eltwise(g, "LINEAR", reshape(g, y, x.shape), alpha, bias)
    return binary(g, "MUL", x, convert_type(g, eltwise(g, "POW", y, 1.0, -beta), x.dtype))


# ---- Products ----


@form("Gemm")
def _gemm(g, call):
    a, b = call.inputs[:2]
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    c = call.input(2)
    activation = call.get("activation", "NONE")
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
    y = matmul(g, a, b, bias, "NONE" if later else activation, *transposed)
    if later:
        y = binary(g, "ADD", y, c)
        y = y if activation == "NONE" else eltwise(g, activation, y)
    return y


@form("MatMul")
def _matmul(g, call):
    a, b = call.inputs[:2]
    rows, columns = a.rank > 1, b.rank > 1
    a = a if rows else reshape(g, a, (1, *a.shape))
    b = b if columns else reshape(g, b, (*b.shape, 1))
    y = matmul(g, a, b, call.input(2), call.get("activation", "NONE"))
    shape = y.shape[:-2] + (y.shape[-2:-1] if rows else ()) + (y.shape[-1:] if columns else ())
    return reshape(g, y, shape)


# ---- Elementwise ----

# Operator -> weir's function, alpha and beta: a number, or an attribute with its default.
UNARY = {
    "Relu": ("RELU",),
    "LeakyRelu": ("RELU", ("alpha", 0.01)),
    "Elu": ("ELU", ("alpha", 1.0)),
    "Tanh": ("TANH",),
    "Sigmoid": ("SIGMOID",),
    "Swish": ("SWISH", ("alpha", 1.0)),
    "Exp": ("EXP",),
    "Log": ("LOG",),
    "Sqrt": ("SQRT",),
    "Abs": ("ABS",),
    "Neg": ("NEG",),
    "HardSigmoid": ("HARDSIGMOID", ("alpha", 0.2), ("beta", 0.5)),
    "HardSwish": ("HARDSWISH", ("alpha", 1 / 6), ("beta", 0.5)),
    "Round": ("ROUND",),
    "Mish": ("MISH",),
    "Softplus": ("SOFTPLUS", 1.0),
    "Reciprocal": ("POW", 1.0, -1.0),
    "Linear": ("LINEAR", ("scale", 1.0), ("shift", 0.0)),
}


@form(*UNARY)
def _unary(g, call):
    op, *parameters = UNARY[call.op]
    parameters = [call.get(*p) if isinstance(p, tuple) else p for p in parameters]
    return eltwise(g, op, call.inputs[0], *parameters)


BINARY = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Div": "DIV"}


@form(*BINARY)
def _binary(g, call):
    a, b = call.inputs[:2]
    return binary(g, BINARY[call.op], a, b)


@form("Sum")
def _sum(g, call):
    y = call.inputs[0]
    for x in call.inputs[1:]:
        y = binary(g, "ADD", y, x)
    return y


@form("Clip")
def _clip(g, call):
    x = call.inputs[0]
    if call.version < 11:
        limits = [call.get("min"), call.get("max")]
    else:
        limits = [call.known(1), call.known(2)]
    low, high = (default if limit is None else float(limit) for limit, default in zip(limits, (-math.inf, math.inf)))
    return eltwise(g, "CLIP", x, low, high)


@form("ChannelAffine")
def _channel_affine(g, call):
    x, scale, shift = call.inputs
    channels = scale.shape[0]
    zero, one = constant(numpy.zeros(channels, F32)), constant(numpy.ones(channels, F32))
    return norm(g, "BATCH", x, 1, 0.0, scale, shift, statistics=(zero, one))


# ---- Normalisation and reductions ----


@form("BatchNormalization")
def _batch_norm(g, call):
    x, scale, shift, mean, variance = call.inputs
    require(not call.get("training_mode", 0) and not call.wants(1), "training")
    statistics = (convert_type(g, mean, F32), convert_type(g, variance, F32))
    return norm(g, "BATCH", x, 1, call.get("epsilon", 1e-5), scale, shift, statistics=statistics)


@form("LayerNormalization")
def _layer_norm(g, call):
    x, scale = call.inputs[:2]
    require(not call.wants(1), "statistics of a normalisation")
    axis = call.get("axis", -1) % x.rank
    shape = x.shape[axis:]
    scale, shift = (reshape(g, expand(g, v, shape), shape) if v else None for v in (scale, call.input(2)))
    return norm(g, "LAYER", x, axis, call.get("epsilon", 1e-5), scale, shift)


@form("Softmax", "LogSoftmax")
def _softmax(g, call):
    x = call.inputs[0]
    log = call.op == "LogSoftmax"
    if call.version >= 13:
        return softmax(g, x, call.get("axis", -1), log)
    axis = call.get("axis", 1) % max(x.rank, 1)
    flat = reshape(g, x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
    return reshape(g, softmax(g, flat, 1, log), x.shape)


@form("ReduceMean")
def _reduce(g, call):
    x = call.inputs[0]
    axes = call.numbers("axes", 1, range(x.rank))
    return reduce(g, "MEAN", x, axes, bool(call.get("keepdims", 1)))


# ---- Movement ----


@form("Reshape")
def _reshape(g, call):
    x = call.inputs[0]
    shape = call.numbers("shape", 1)
    if not call.get("allowzero", 0):
        shape = [x.shape[axis] if dim == 0 else dim for axis, dim in enumerate(shape)]
    rest = math.prod(dim for dim in shape if dim != -1)
    return reshape(g, x, [x.size // rest if dim == -1 else dim for dim in shape])


@form("Flatten")
def _flatten(g, call):
    x = call.inputs[0]
    axis = call.get("axis", 1)
    axis += x.rank if axis < 0 else 0
    return reshape(g, x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@form("Squeeze")
def _squeeze(g, call):
    x = call.inputs[0]
    axes = call.numbers("axes", 1)
    axes = [a % x.rank for a in axes] if axes is not None else [a for a, dim in enumerate(x.shape) if dim == 1]
    return reshape(g, x, [dim for axis, dim in enumerate(x.shape) if axis not in axes])


@form("Unsqueeze")
def _unsqueeze(g, call):
    x = call.inputs[0]
    axes = call.numbers("axes", 1)
    rank = x.rank + len(axes)
    axes, dims = {axis % rank for axis in axes}, iter(x.shape)
    return reshape(g, x, [1 if axis in axes else next(dims) for axis in range(rank)])


@form("Identity", "Dropout")
def _identity(g, call):
    if call.op == "Dropout":
        training = call.input(2)
        require(training is None or training.array is not None and not training.array, "training")
        require(not call.wants(1), "mask of a dropout")
    return call.inputs[0]


@form("Shape")
def _shape(g, call):
    shape = call.inputs[0].shape
    return constant(numpy.asarray(shape[call.get("start", 0) : call.get("end", len(shape))], S64))


@form("Transpose")
def _transpose(g, call):
    x = call.inputs[0]
    return transpose(g, x, call.get("perm") or range(x.rank)[::-1])


@form("Concat")
def _concat(g, call):
    x = call.inputs[0]
    return concat(g, call.inputs, call.get("axis", 1) % x.rank)


@form("Slice")
def _slice(g, call):
    x = call.inputs[0]
    starts, ends = call.numbers("starts", 1), call.numbers("ends", 2)
    axes = call.numbers("axes", 3) or list(range(len(starts)))
    steps = call.numbers("steps", 4) or [1] * len(starts)
    begin, end, step = [0] * x.rank, list(x.shape), [1] * x.rank
    for start, stop, axis, by in zip(starts, ends, axes, steps):
        axis %= x.rank
        begin[axis], end[axis], step[axis] = slice(start, stop, by).indices(x.shape[axis])
    return slice_of(g, x, begin, end, step)


@form("Pad")
def _pad(g, call):
    x = call.inputs[0]
    pads = call.numbers("pads", 1) if call.version >= 2 else list(call.get("paddings"))
    mode = call.get("mode", "constant")
    axes = [axis % x.rank for axis in call.numbers("axes", 3, range(x.rank))]
    value = call.get("value", 0.0) if call.version < 11 else call.known(2)
    before, after = [0] * x.rank, [0] * x.rank
    for i, axis in enumerate(axes):
        before[axis], after[axis] = pads[i], pads[i + len(axes)]
    begin = [max(-b, 0) for b in before]
    x = slice_of(g, x, begin, [dim - max(-a, 0) for dim, a in zip(x.shape, after)])
    before, after = ([max(margin, 0) for margin in side] for side in (before, after))
    if mode == "wrap":
        places = numpy.pad(numpy.arange(x.size).reshape(x.shape), list(zip(before, after)), "wrap")
        return rearranged(g, x, places)
    return pad(g, x, before, after, float(value or 0), mode.upper())


@form("Resize", "Upsample")
def _resize(g, call):
    x = call.inputs[0]
    require(call.get("mode", "nearest") == "nearest", f"mode {call.get('mode')}")
    if call.op == "Upsample":
        scales, sizes = call.get("scales"), None
        scales = list(call.known(1).reshape(-1)) if scales is None else scales
    elif call.version < 11:
        scales, sizes = list(call.known(1)), None
    else:
        scales = call.known(2)
        scales = list(scales) if scales is not None and scales.size else None
        sizes = call.known(3)
    require(call.get("axes") is None, "axes")
    sizes = [int(s) for s in sizes] if scales is None else [math.floor(d * s) for d, s in zip(x.shape, scales)]
    scales = scales or [n / d for n, d in zip(sizes, x.shape)]
    old = call.op == "Upsample" or call.version < 11
    place = "asymmetric" if old else call.get("coordinate_transformation_mode", "half_pixel")
    rounding = "floor" if old else call.get("nearest_mode", "round_prefer_floor")
    indices = [nearest(d, n, s, place, rounding) for d, n, s in zip(x.shape, sizes, scales)]
    return rearranged(g, x, numpy.arange(x.size).reshape(x.shape)[numpy.ix_(*indices)])


def nearest(length, size, scale, place, rounding):
    at = numpy.arange(size, dtype=numpy.float64)
    if place in ("half_pixel", "half_pixel_symmetric"):
        at = (at + 0.5) / scale - 0.5
    elif place == "pytorch_half_pixel":
        at = (at + 0.5) / scale - 0.5 if size > 1 else numpy.zeros(size)
    elif place == "align_corners":
        at = at * (length - 1) / (size - 1) if size > 1 else numpy.zeros(size)
    elif place == "asymmetric":
        at = at / scale
    else:
        raise Refusal(f"coordinates {place}")
    rounded = {
        "round_prefer_floor": numpy.ceil(at - 0.5),
        "round_prefer_ceil": numpy.floor(at + 0.5),
        "floor": numpy.floor(at),
        "ceil": numpy.ceil(at),
    }[rounding]
    return numpy.clip(rounded, 0, length - 1).astype(int)
