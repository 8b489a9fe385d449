# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forms of recurrent operators: a kernel for all steps, or those of an RNN one after the other."""

import numpy

from onnx_blocks import (
    F32, MAX_STEPS, binary, concat, constant, eltwise, matmul, number, part, require, reshape, select, transpose,
    value_of,
)
from onnx_forms import form

DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


def check(call):
    """Refuses settings that no kernel has."""
    require(call.inputs[0].dtype == F32, f"type {call.inputs[0].dtype}")
    names = [name.decode() if isinstance(name, bytes) else name for name in call.get("activations") or []]
    defaults = DEFAULTS[call.op] * (2 if call.get("direction", "forward") == "bidirectional" else 1)
    known = [name.lower() for name in names] in ([], [name.lower() for name in defaults])
    require(known, f"activations {', '.join(names)}")
    require(not call.get("input_forget", 0), "input_forget")


@form("LSTM", "GRU")
def _sequence(g, call):
    check(call)
    weir, op = g.weir, call.op
    x, weights, recurrent = call.inputs[:3]
    hidden, directions = recurrent.shape[-1], weights.shape[0]
    first = bool(call.get("layout", 0))
    steps, batch = x.shape[:2][:: -1 if first else 1]
    state = (batch, directions, hidden) if first else (directions, batch, hidden)
    y = (batch, steps, directions, hidden) if first else (steps, directions, batch, hidden)
    inputs, flags = [x, weights, recurrent], []
    states = [5, 6] if op == "LSTM" else [5]
    for place, flag in ((3, "BIAS"), (4, "LENGTHS")):
        if call.has(place):
            inputs.append(call.inputs[place])
            flags.append(flag)
    if any(call.has(place) for place in states):
        inputs += [call.input(place, constant(numpy.zeros(state, F32))) for place in states]
        flags.append("STATES")
    if call.has(7):
        inputs.append(call.inputs[7])
        flags.append("PEEPHOLES")
    flags += ["BATCH_FIRST"] * first
    flags += ["LINEAR_BEFORE_RESET"] * bool(call.get("linear_before_reset", 0))
    direction = call.get("direction", "forward").upper()
    members = {
        "flags": sum(getattr(weir, f"WEIR_{op}_SEQUENCE_{flag}") for flag in flags),
        "direction": value_of(direction, weir, "SEQUENCE"),
        "clip": call.get("clip") or 0.0,
    }
    shapes = [y, state, state] if op == "LSTM" else [y, state]
    return g.kernels(f"{op.lower()}_sequence", members, inputs, F32, shapes)


@form("RNN")
def _recurrent(g, call):
    check(call)
    require(call.get("clip") is None, "clip")
    batch_first = bool(call.get("layout", 0))
    x, weights, recurrent = call.inputs[:3]
    hidden, direction = recurrent.shape[-1], call.get("direction", "forward")
    x = transpose(g, x, [1, 0, 2]) if batch_first else x
    steps, batch = x.shape[:2]
    require(steps <= MAX_STEPS, "a long sequence")
    lengths = call.known(4) if call.has(4) else numpy.full(batch, steps)
    sequences, finals = [], []
    for which in range(weights.shape[0]):
        backwards = direction == "reverse" or which == 1
        w, r = (side(g, call, place, which) for place in (1, 2))
        biases = side(g, call, 3, which)
        biases = [part(g, biases, 0, i * hidden, (i + 1) * hidden) for i in range(2)] if biases else []
        state = initial(g, call, 5, which, batch, hidden, batch_first)
        outputs = {}
        order = range(steps)[::-1] if backwards else range(steps)
        for step in order:
            now = reshape(g, part(g, x, 0, step, step + 1), x.shape[1:])
            shown = after = one_step(g, now, state, w, r, biases)
            if (lengths <= step).any():  # sequences that are over keep their state, and show zeros
                goes_on = constant((lengths > step).reshape(batch, 1))
                after = select(g, goes_on, after, state)
                shown = select(g, goes_on, after, number(0, F32))
            state = after
            outputs[step] = reshape(g, shown, (1, 1, batch, hidden))
        sequences.append(concat(g, [outputs[step] for step in range(steps)], 0))
        finals.append(reshape(g, state, (1, batch, hidden)))
    y, state = concat(g, sequences, 1), concat(g, finals, 0)
    if batch_first:
        y, state = transpose(g, y, [2, 0, 1, 3]), transpose(g, state, [1, 0, 2])
    return [y, state]


def side(g, call, place, which):
    """An input's part for one direction."""
    if not call.has(place):
        return None
    x = call.inputs[place]
    return reshape(g, part(g, x, 0, which, which + 1), x.shape[1:])


def initial(g, call, place, which, batch, hidden, batch_first):
    if not call.has(place):
        return constant(numpy.zeros((batch, hidden), F32))
    x = transpose(g, call.inputs[place], [1, 0, 2]) if batch_first else call.inputs[place]
    return reshape(g, part(g, x, 0, which, which + 1), (batch, hidden))


def one_step(g, x, hidden, w, r, biases):
    bias = binary(g, "ADD", *biases) if biases else None
    y = matmul(g, x, w, bias, transpose_b=True)
    return eltwise(g, "TANH", binary(g, "ADD", y, matmul(g, hidden, r, transpose_b=True)))
