# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forms of operators that move elements, and of those whose results follow from shapes."""

import math

import numpy
from onnx import helper

import onnx_rewriting
from onnx_blocks import (
    F32, NUMBERS, S32, S64, U64, concat, constant, convert_type, expand, fitted, gather, number, pad, part, rearranged,
    repeat, require, reshape, select, slice_of, transpose, value_of,
)
from onnx_forms import form
from onnx_graph import HELD, Refusal, held


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


@form("Identity")
def _identity(_g, call):
    return call.inputs[0]


@form("Dropout")
def _dropout(_g, call):
    x, training = call.inputs[0], call.known(2, numpy.zeros((), bool))
    ratio = call.known(1, numpy.zeros(())) if training else 0
    require(not training or not ratio, "training")
    return x, constant(numpy.ones(x.shape, bool if call.version >= 10 else x.dtype))


@form("Shape")
def _shape(_g, call):
    shape = call.inputs[0].shape
    return constant(numpy.asarray(shape[call.get("start", 0) : call.get("end", len(shape))], S64))


@form("ConstantOfShape", "HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")
def _computed(_g, call):
    """Nothing is left of these when their inputs are constants."""
    for index in range(len(call.inputs)):
        call.known(index)
    raise Refusal("not computed")


@form("Range")
def _range(g, call):
    start = call.inputs[0]
    require(start.dtype in (F32, S32, S64), f"type {start.dtype}")
    return g.kernel("range", {}, call.inputs, start.dtype, (-1,))


@form("Size")
def _size(_g, call):
    return constant(numpy.asarray(call.inputs[0].size, S64))


@form("EyeLike")
def _eye_like(_g, call):
    x = call.inputs[0]
    dtype = helper.tensor_dtype_to_np_dtype(call.get("dtype")) if call.get("dtype") else x.dtype
    return constant(numpy.eye(*x.shape, k=call.get("k", 0)).astype(dtype))


@form("Transpose")
def _transpose(g, call):
    x = call.inputs[0]
    return transpose(g, x, call.get("perm") or range(x.rank)[::-1])


@form("Concat")
def _concat(g, call):
    x = call.inputs[0]
    return concat(g, call.inputs, call.get("axis", 1) % x.rank)


@form("Split")
def _split(g, call):
    x = call.inputs[0]
    axis, count = call.get("axis", 0) % x.rank, len(call.node.outputs)
    sizes = call.numbers("split", 1)
    if not sizes:
        each = math.ceil(x.shape[axis] / call.get("num_outputs", count))
        sizes = [min(each, x.shape[axis] - each * i) for i in range(count)]
    ends = numpy.cumsum(sizes).tolist()
    return [part(g, x, axis, end - size, end) for size, end in zip(sizes, ends)]


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
    far = any(max(b, a) >= dim for b, a, dim in zip(before, after, x.shape) if b or a)
    if mode == "wrap" or mode == "reflect" and far:
        places = numpy.pad(numpy.arange(x.size).reshape(x.shape), list(zip(before, after)), mode)
        return rearranged(g, x, places)
    value = 0.0 if value is None else float(numpy.asarray(value).reshape(()))
    return pad(g, x, before, after, value, mode.upper())


@form("Expand")
def _expand(g, call):
    x = call.inputs[0]
    shape = [int(dim) for dim in call.known(1)]
    return expand(g, x, numpy.broadcast_shapes(x.shape, tuple(shape)))


@form("Tile")
def _tile(g, call):
    return repeat(g, call.inputs[0], call.known(1))


@form("DepthToSpace")
def _depth_to_space(g, call):
    x, size = call.inputs[0], call.get("blocksize")
    batch, channels, height, width = x.shape
    channels //= size * size
    if call.get("mode", "DCR") == "DCR":
        y = reshape(g, x, (batch, size, size, channels, height, width))
        y = transpose(g, y, [0, 3, 4, 1, 5, 2])
    else:
        y = reshape(g, x, (batch, channels, size, size, height, width))
        y = transpose(g, y, [0, 1, 4, 2, 5, 3])
    return reshape(g, y, (batch, channels, height * size, width * size))


@form("SpaceToDepth")
def _space_to_depth(g, call):
    x, size = call.inputs[0], call.get("blocksize")
    batch, channels, height, width = x.shape
    y = reshape(g, x, (batch, channels, height // size, size, width // size, size))
    y = transpose(g, y, [0, 3, 5, 1, 2, 4] if call.get("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4])
    return reshape(g, y, (batch, channels * size * size, height // size, width // size))


@form("Trilu")
def _trilu(g, call):
    x = call.inputs[0]
    shift = int(call.known(1, numpy.zeros((), int)).reshape(()))
    kept = numpy.ones(x.shape[-2:], bool)
    kept = numpy.triu(kept, shift) if call.get("upper", 1) else numpy.tril(kept, shift)
    return select(g, constant(kept), x, number(0, x.dtype)) if x.size else x


# ---- Indices ----


@form("Gather")
def _gather(g, call):
    table, indices = call.inputs
    return gather(g, table, indices, call.get("axis", 0) % table.rank)


@form("GatherElements")
def _gather_elements(g, call):
    x, indices = call.inputs
    members = {"axis": call.get("axis", 0), "flags": g.weir.WEIR_GATHER_ELEMENTS_FROM_END}
    return g.kernel("gather_elements", members, [x, as_indices(g, indices)], x.dtype, indices.shape)


@form("GatherND")
def _gather_nd(g, call):
    x, indices = call.inputs
    batch, depth = call.get("batch_dims", 0), indices.shape[-1]
    members = {"batch_dims": batch, "flags": g.weir.WEIR_GATHER_ND_FROM_END}
    shape = (*indices.shape[:-1], *x.shape[batch + depth :])
    return g.kernel("gather_nd", members, [x, as_indices(g, indices)], x.dtype, shape)


def as_indices(g, x):
    return x if x.dtype in (S32, S64) else convert_type(g, x, S64)


def by_places(g, call, moved):
    """An operator that only moves elements of these inputs, or leaves zeros: the reference moves their numbers."""
    node, arrays, start = call.node, {}, 1
    for index, name in enumerate(node.inputs):
        if not name:
            continue
        if index in moved:
            x = call.inputs[index]
            arrays[name] = numpy.arange(start, start + x.size).reshape(x.shape)
            start += x.size
        else:
            arrays[name] = call.known(index)
    try:
        places = next(iter(onnx_rewriting.evaluate(node, arrays, call.scope.versions).values()))
    except Exception as error:
        raise Refusal(f"cannot be computed: {error}") from error
    flat = [reshape(g, call.inputs[index], (call.inputs[index].size,)) for index in moved]
    if (places == 0).any():
        flat.insert(0, number([0], flat[0].dtype))
    else:
        places = places - 1
    return rearranged(g, concat(g, flat, 0), places)


@form("ReverseSequence", "Compress")
def _one_moved(g, call):
    return by_places(g, call, [0])


@form("MaxUnpool")
def _max_unpool(g, call):
    return by_places(g, call, [0])


@form("TensorScatter")
def _tensor_scatter(g, call):
    return by_places(g, call, [0, 1])


@form("ScatterElements", "ScatterND", "Scatter")
def _scatter(g, call):
    (x, indices, updates), weir = call.inputs, g.weir
    reduction, by_element = call.get("reduction", "none"), call.op != "ScatterND"
    require(reduction == "none" or x.dtype in NUMBERS or x.dtype in HELD and x.dtype != U64, f"reduction of {x.dtype}")
    members = {
        "flags": weir.WEIR_SCATTER_FROM_END,
        "mode": weir.WEIR_SCATTER_ELEMENTS if by_element else weir.WEIR_SCATTER_ND,
        "reduction": value_of(reduction.upper(), weir, "SCATTER"),
        "axis": call.get("axis", 0) if by_element else 0,
    }
    y = g.kernel("scatter", members, [x, as_indices(g, indices), updates], held(x.dtype), x.shape)
    return fitted(g, y, x.dtype)


@form("OneHot")
def _one_hot(g, call):
    indices, values = call.inputs[0], call.inputs[2]
    depth = int(call.known(1).reshape(-1)[0])
    axis = call.get("axis", -1) % (indices.rank + 1)
    members = {"axis": axis, "depth": depth, "flags": g.weir.WEIR_ONE_HOT_FROM_END}
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    return g.kernel("one_hot", members, [as_indices(g, indices), values], values.dtype, shape)


@form("NonZero")
def _nonzero(g, call):
    x = call.inputs[0]
    require(x.rank > 0, "a single number")  # which NonZero takes for a list of one
    return g.kernels("nonzero", {"flags": g.weir.WEIR_NONZERO_EXACT}, [x], S64, [(x.rank, -1), (1,)])[:1]


@form("NonMaxSuppression")
def _non_max_suppression(g, call):
    boxes, scores = call.inputs[:2]
    most, overlap, least = (call.known(place) for place in (2, 3, 4))
    most = 0 if most is None else int(most.reshape(-1)[0])
    if most <= 0:
        return constant(numpy.zeros((0, 3), S64))
    flags = g.weir.WEIR_NMS_EXACT | (g.weir.WEIR_NMS_CENTERS if call.get("center_point_box", 0) else 0)
    flags |= g.weir.WEIR_NMS_SCORE_BOUND if least is not None else 0
    members = {
        "flags": flags,
        "most_boxes": most,
        "most_overlap": 0.0 if overlap is None else float(overlap.reshape(-1)[0]),
        "least_score": 0.0 if least is None else float(least.reshape(-1)[0]),
    }
    return g.kernels("nms", members, [boxes, scores], S64, [(-1, 3), (1,)])[:1]
