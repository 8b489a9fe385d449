# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forms of operators that move elements, and of those whose results follow from shapes."""

import math

import numpy
from onnx import helper

import onnx_rewriting
from onnx_blocks import (
    S64, binary, compare, concat, constant, expand, from_start, gather, number, pad, part, rearranged, reduce, require,
    reshape, select, slice_of, transpose,
)
from onnx_forms import form
from onnx_graph import Refusal


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


@form("ConstantOfShape", "Range", "HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")
def _computed(_g, call):
    """Nothing is left of these when their inputs are constants."""
    for index in range(len(call.inputs)):
        call.known(index)
    raise Refusal("not computed")


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
    x = call.inputs[0]
    repeats = [int(count) for count in call.known(1)]
    for axis, count in enumerate(repeats):
        if count != 1 and x.rank < 8:
            shape = (*x.shape[:axis], count, *x.shape[axis:])
            y = expand(g, reshape(g, x, (*x.shape[:axis], 1, *x.shape[axis:])), shape)
            x = reshape(g, y, (*x.shape[:axis], count * x.shape[axis], *x.shape[axis + 1 :]))
    return x


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
    x, axis = call.inputs[0], call.get("axis", 0) % call.inputs[0].rank
    indices = from_start(g, call.inputs[1], x.shape[axis])
    steps = [math.prod(x.shape[a + 1 :]) for a in range(x.rank)]
    grid = numpy.indices(indices.shape)
    base = sum((grid[a] * steps[a] for a in range(x.rank) if a != axis), numpy.zeros(indices.shape, int))
    places = binary(g, "MUL", indices, number(steps[axis], indices.dtype))
    return gather(g, reshape(g, x, (x.size,)), binary(g, "ADD", places, number(base, indices.dtype)), 0)


@form("GatherND")
def _gather_nd(g, call):
    x, batch = call.inputs[0], call.get("batch_dims", 0)
    count = call.inputs[1].shape[-1]
    lengths = x.shape[batch : batch + count]
    rest = x.shape[batch + count :]
    require(x.size and call.inputs[1].size, "nothing to gather")
    steps = [math.prod(lengths[i + 1 :]) for i in range(count)]
    places = binary(g, "MUL", from_start(g, call.inputs[1], lengths), number(steps, S64))
    places = reduce(g, "SUM", places, [places.rank - 1], False)
    rows = numpy.arange(math.prod(x.shape[:batch])).reshape(*x.shape[:batch], *[1] * (places.rank - batch))
    places = binary(g, "ADD", places, number(rows * math.prod(lengths), S64))
    table = reshape(g, x, (x.size // math.prod(rest), *rest))
    return gather(g, table, places, 0)


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
    reduction = call.get("reduction", "none")
    x, updates = call.inputs[0], call.inputs[2]
    targets = scatter_targets(call, x, updates).reshape(-1)
    y, flat = reshape(g, x, (x.size,)), reshape(g, updates, (updates.size,))
    if reduction == "none":
        places = numpy.arange(x.size)
        places[targets] = x.size + numpy.arange(targets.size)
        return reshape(g, rearranged(g, concat(g, [y, flat], 0), places), x.shape)
    op = {"add": "ADD", "mul": "MUL", "max": "MAX", "min": "MIN"}[reduction]
    # Updates of one place one after the other.
    order, seen = numpy.zeros(targets.size, int), {}
    for i, target in enumerate(targets):
        order[i] = seen[target] = seen.get(target, -1) + 1
    for turn in range(order.max(initial=-1) + 1):
        chosen = numpy.flatnonzero(order == turn)
        places, touched = numpy.zeros(x.size, int), numpy.zeros(x.size, bool)
        places[targets[chosen]], touched[targets[chosen]] = chosen, True
        y = select(g, constant(touched), binary(g, op, y, rearranged(g, flat, places)), y)
    return reshape(g, y, x.shape)


def scatter_targets(call, x, updates):
    """The flat place in x of each update."""
    indices = call.known(1).astype(numpy.int64)
    if call.op == "ScatterND":
        count = indices.shape[-1]
        lengths = numpy.asarray(x.shape[:count])
        indices = numpy.where(indices < 0, indices + lengths, indices)
        rest = math.prod(x.shape[count:])
        steps = [math.prod(x.shape[i + 1 : count]) for i in range(count)]
        rows = (indices * steps).sum(-1)
        return (rows[..., None] * rest + numpy.arange(rest)).reshape(updates.shape)
    axis = call.get("axis", 0) % x.rank
    grid = list(numpy.indices(indices.shape))
    grid[axis] = numpy.where(indices < 0, indices + x.shape[axis], indices)
    return numpy.ravel_multi_index(grid, x.shape)


@form("OneHot")
def _one_hot(g, call):
    indices, values = call.inputs[0], call.inputs[2]
    depth = int(call.known(1).reshape(-1)[0])
    axis = call.get("axis", -1) % (indices.rank + 1)
    indices = reshape(g, indices, (*indices.shape[:axis], 1, *indices.shape[axis:]))
    indices = select(g, compare(g, "LT", indices, 0), binary(g, "ADD", indices, number(depth, indices.dtype)), indices)
    places = numpy.arange(depth).reshape([-1 if a == axis else 1 for a in range(indices.rank)])
    hot = binary(g, "EQ", indices, number(places, indices.dtype))
    off, on = (reshape(g, part(g, values, 0, i, i + 1), ()) for i in range(2))
    return select(g, hot, on, off)
