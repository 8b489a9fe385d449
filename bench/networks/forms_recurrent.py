# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forms of recurrent operators: their steps one after the other."""

import numpy

from onnx_blocks import (
    F32, MAX_STEPS, binary, concat, constant, eltwise, matmul, number, part, require, reshape, select, transpose,
)
from onnx_forms import form

BLOCKS = {"LSTM": 4, "GRU": 3, "RNN": 1}
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


@form("LSTM", "GRU", "RNN")
def _recurrent(g, call):
    batch_first = bool(call.get("layout", 0))
    x, weights, recurrent = call.inputs[:3]
    require(x.dtype == F32, f"type {x.dtype}")
    hidden, direction = recurrent.shape[-1], call.get("direction", "forward")
    names = [name.decode() if isinstance(name, bytes) else name for name in call.get("activations") or []]
    defaults = DEFAULTS[call.op] * (2 if direction == "bidirectional" else 1)
    require(names in ([], defaults), f"activations {', '.join(names)}")
    require(call.get("clip") is None and not call.get("input_forget", 0), "clip or input_forget")
    require(not call.has(7), "peepholes")
    x = transpose(g, x, [1, 0, 2]) if batch_first else x
    steps, batch = x.shape[:2]
    require(steps <= MAX_STEPS, "a long sequence")
    lengths = call.known(4) if call.has(4) else numpy.full(batch, steps)
    states, sequences, finals = [], [], []
    for which in range(weights.shape[0]):
        backwards = direction == "reverse" or which == 1
        w, r = (side(g, call, place, which) for place in (1, 2))
        biases = side(g, call, 3, which)
        size = BLOCKS[call.op] * hidden
        biases = [part(g, biases, 0, i * size, (i + 1) * size) for i in range(2)] if biases else []
        state = [initial(g, call, place, which, batch, hidden, batch_first) for place in (5, 6)]
        outputs = {}
        order = range(steps)[::-1] if backwards else range(steps)
        for step in order:
            now = reshape(g, part(g, x, 0, step, step + 1), x.shape[1:])
            after = one_step(g, call, now, state, w, r, biases)
            shown = after[0]
            if (lengths <= step).any():  # sequences that are over keep their state, and show zeros
                goes_on = constant((lengths > step).reshape(batch, 1))
                after = [select(g, goes_on, a, b) for a, b in zip(after, state)]
                shown = select(g, goes_on, shown, number(0, F32))
            state = [*after, *state[len(after) :]]
            outputs[step] = reshape(g, shown, (1, 1, batch, hidden))
        sequences.append(concat(g, [outputs[step] for step in range(steps)], 0))
        finals.append([reshape(g, value, (1, batch, hidden)) for value in state])
    states = [concat(g, list(values), 0) for values in zip(*finals)]
    y = concat(g, sequences, 1)
    if batch_first:
        y = transpose(g, y, [2, 0, 1, 3])
        states = [transpose(g, value, [1, 0, 2]) for value in states]
    return [y, states[0], states[1] if call.op == "LSTM" else None][: 3 if call.op == "LSTM" else 2]


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


def one_step(g, call, x, state, w, r, biases):
    weir, hidden = g.weir, state[0]
    if call.op == "RNN":
        bias = binary(g, "ADD", *biases) if biases else None
        y = matmul(g, x, w, bias, transpose_b=True)
        return [eltwise(g, "TANH", binary(g, "ADD", y, matmul(g, hidden, r, transpose_b=True)))]
    shape = hidden.shape
    if call.op == "LSTM":
        flags = weir.WEIR_LSTM_BIAS if biases else 0
        return g.kernels("lstm", {"flags": flags}, [x, *state, w, r, *biases], F32, [shape, shape])
    flags = weir.WEIR_GRU_BIAS if biases else 0
    flags |= weir.WEIR_GRU_LINEAR_BEFORE_RESET if call.get("linear_before_reset", 0) else 0
    return g.kernels("gru", {"flags": flags}, [x, hidden, w, r, *biases], F32, [shape])
