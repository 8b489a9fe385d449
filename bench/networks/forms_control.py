# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forms of operators with graphs inside: branches and loops whose course is known are written out."""

import numpy
from onnx import numpy_helper

import onnx_rewriting
from onnx_blocks import BOOL, MAX_STEPS, S64, concat, constant, flip, part, require, reshape, select
from onnx_forms import convert, form
from onnx_graph import Refusal


def inside(g, call, graph, given=()):
    """The outputs of a nested graph, for these values as its inputs."""
    values = dict(call.values)
    values.update({tensor.name: constant(numpy_helper.to_array(tensor)) for tensor in graph.initializer})
    values.update(dict(zip((value.name for value in graph.input), given)))
    nodes = onnx_rewriting.read_nodes(graph.node, call.scope.versions)
    outputs = [value.name for value in graph.output]
    onnx_rewriting.leave_out_unread(nodes, outputs)
    try:
        convert(g, call.scope, nodes, values)
    except Refusal as refusal:
        origins = onnx_rewriting.origins(nodes, refusal.wanted)
        outer = [name for name in origins if name in call.values]
        inner = any(value.name in origins for value in graph.input)
        refusal.wanted = outer + ([name for name in call.node.inputs if name] if inner else [])
        raise
    return [values[name] for name in outputs]


@form("If")
def _if(g, call):
    condition = call.inputs[0]
    branches = [call.get("then_branch"), call.get("else_branch")]
    if condition.array is not None:
        return inside(g, call, branches[0 if condition.array.reshape(()) else 1])
    sides = [inside(g, call, branch) for branch in branches]
    require(all(a.shape == b.shape for a, b in zip(*sides)), "branches whose results differ in shape")
    condition = reshape(g, condition, ())
    return [select(g, condition, a, b) for a, b in zip(*sides)]


@form("Loop")
def _loop(g, call):
    """As many steps as are known at import."""
    trips, condition = call.known(0), call.known(1)
    goes_on = condition is None or bool(condition.reshape(()))
    limit = int(trips.reshape(())) if trips is not None else None
    body, state, rows, step = call.get("body"), list(call.inputs[2:]), [], 0
    while goes_on and (limit is None or step < limit):
        require(step < MAX_STEPS, "a long loop")
        given = [constant(numpy.asarray(step, S64)), constant(numpy.asarray(True, BOOL)), *state]
        keeps, *results = inside(g, call, body, given)
        require(keeps.array is not None, "a condition that only a run knows")
        goes_on = bool(keeps.array.reshape(()))
        state, row = results[: len(state)], results[len(state) :]
        rows.append([reshape(g, value, (1, *value.shape)) for value in row])
        step += 1
    require(rows or len(call.node.outputs) == len(state), "a loop without a step")
    return state + [concat(g, list(values), 0) for values in zip(*rows)]


@form("Scan")
def _scan(g, call):
    count, body = call.get("num_scan_inputs"), call.get("body")
    old = call.version < 9  # with lengths, and a batch in front
    inputs = call.inputs[1:] if old else call.inputs
    require(not old or not call.has(0), "lengths of sequences")
    state, sequences = list(inputs[:-count]), list(inputs[-count:])
    if old:
        return scan_batch(g, call, body, state, sequences)
    return scan(g, call, body, state, sequences)


def scan(g, call, body, state, sequences):
    count = len(sequences)
    axes = [axis % x.rank for axis, x in zip(call.get("scan_input_axes") or [0] * count, sequences)]
    steps = sequences[0].shape[axes[0]]
    require(0 < steps <= MAX_STEPS, "a long sequence")
    turned = call.get("scan_input_directions") or [0] * count
    sequences = [flip(g, x, [axis]) if turn else x for x, axis, turn in zip(sequences, axes, turned)]
    rows = []
    for step in range(steps):
        now = [part(g, x, axis, step, step + 1) for x, axis in zip(sequences, axes)]
        now = [reshape(g, x, x.shape[:axis] + x.shape[axis + 1 :]) for x, axis in zip(now, axes)]
        results = inside(g, call, body, [*state, *now])
        state, row = results[: len(state)], results[len(state) :]
        rows.append(row)
    found = []
    outputs = list(zip(*rows))
    places = call.get("scan_output_axes") or [0] * len(outputs)
    turned = call.get("scan_output_directions") or [0] * len(outputs)
    for values, axis, turn in zip(outputs, places, turned):
        axis %= values[0].rank + 1
        values = [reshape(g, value, (*value.shape[:axis], 1, *value.shape[axis:])) for value in values]
        y = concat(g, values, axis)
        found.append(flip(g, y, [axis]) if turn else y)
    return state + found


def scan_batch(g, call, body, state, sequences):
    batch = sequences[0].shape[0]
    found = []
    for row in range(batch):
        one = [[reshape(g, part(g, x, 0, row, row + 1), x.shape[1:]) for x in side] for side in (state, sequences)]
        found.append([reshape(g, y, (1, *y.shape)) for y in scan(g, call, body, *one)])
    return [concat(g, list(values), 0) for values in zip(*found)]
