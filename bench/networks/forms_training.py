# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forms of the steps of optimizers, for a number of steps that is known."""

from onnx_blocks import binary, eltwise, require
from onnx_forms import form


def scaled(g, x, factor, shift=0.0):
    return eltwise(g, "LINEAR", x, float(factor), float(shift))


@form("Adagrad", "Adam", "Momentum")
def _step(g, call):
    rate, turn = call.inputs[0], int(call.known(1).reshape(()))
    step = {"Adagrad": adagrad, "Adam": adam, "Momentum": momentum}[call.op]
    groups = {"Adagrad": 3, "Adam": 4, "Momentum": 3}[call.op]
    rest = call.inputs[2:]
    count = len(rest) // groups
    results = []
    for i in range(count):
        x, gradient, *state = rest[i::count]
        gradient = binary(g, "ADD", scaled(g, x, call.get("norm_coefficient", 0.0)), gradient)
        results.append(step(g, call, rate, turn, x, gradient, *state))
    return [values[place] for place in range(len(results[0])) for values in results]


def adagrad(g, call, rate, turn, x, gradient, h):
    h = binary(g, "ADD", h, eltwise(g, "SQUARE", gradient))
    root = scaled(g, eltwise(g, "SQRT", h), 1, call.get("epsilon", 0.0))
    rate = scaled(g, rate, 1 / (1 + turn * call.get("decay_factor", 0.0)))
    change = binary(g, "DIV", binary(g, "MUL", rate, gradient), root)
    return binary(g, "SUB", x, change), h


def adam(g, call, rate, turn, x, gradient, v, h):
    alpha, beta = call.get("alpha", 0.9), call.get("beta", 0.999)
    v = binary(g, "ADD", scaled(g, v, alpha), scaled(g, gradient, 1 - alpha))
    h = binary(g, "ADD", scaled(g, h, beta), scaled(g, eltwise(g, "SQUARE", gradient), 1 - beta))
    root = scaled(g, eltwise(g, "SQRT", h), 1, call.get("epsilon", 0.0))
    if turn > 0:
        rate = scaled(g, rate, (1 - beta**turn) ** 0.5 / (1 - alpha**turn))
    x = binary(g, "SUB", x, binary(g, "MUL", rate, binary(g, "DIV", v, root)))
    after = call.get("norm_coefficient_post", 0.0)
    return (scaled(g, x, 1 - after) if after else x), v, h


def momentum(g, call, rate, turn, x, gradient, v):
    mode = call.get("mode")
    require(mode in ("standard", "nesterov"), f"mode {mode}")
    alpha, beta = call.get("alpha"), call.get("beta") if turn > 0 else 1
    v = binary(g, "ADD", scaled(g, v, alpha), scaled(g, gradient, beta))
    change = v if mode == "standard" else binary(g, "ADD", gradient, scaled(g, v, alpha))
    return binary(g, "SUB", x, binary(g, "MUL", rate, change)), v
