# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forms of operators that go element by element."""

import math

import numpy
from onnx import helper

from onnx_blocks import (
    BYTES, FLOATS, S32, U8, binary, cast, ceil, compare, convert_type, eltwise, floor, floor_quotient, gather,
    in_f32, logical, negated, number, require, select, truncated_quotient, whole, wrapped,
)
from onnx_forms import form
from onnx_graph import constant

# Operator -> weir's function, alpha and beta: a number, or an attribute with its default.
UNARY = {
    "LeakyRelu": ("RELU", ("alpha", 0.01)),
    "Elu": ("ELU", ("alpha", 1.0)),
    "Tanh": ("TANH",),
    "Sigmoid": ("SIGMOID",),
    "Swish": ("SWISH", ("alpha", 1.0)),
    "Exp": ("EXP",),
    "Log": ("LOG",),
    "Sqrt": ("SQRT",),
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


@form("Relu")
def _relu(g, call):
    x = call.inputs[0]
    return eltwise(g, "RELU", x) if x.dtype in FLOATS else binary(g, "MAX", x, number(0, x.dtype))


@form("Abs", "Neg")
def _abs(g, call):
    x = call.inputs[0]
    if x.dtype in FLOATS:
        return eltwise(g, call.op.upper(), x)
    if x.dtype == U8 and call.op == "Abs":
        return x
    if call.op == "Neg":
        return whole(g, lambda x: binary(g, "SUB", number(0, S32), x), x)
    return whole(g, lambda x: binary(g, "MAX", x, binary(g, "SUB", number(0, S32), x)), x)


@form("Floor", "Ceil")
def _floor(g, call):
    return (floor if call.op == "Floor" else ceil)(g, call.inputs[0])


@form("Sign")
def _sign(g, call):
    x = call.inputs[0]
    signs = [convert_type(g, compare(g, op, x, 0), x.dtype) for op in ("GT", "LT")]
    y = binary(g, "SUB", *signs)
    return select(g, binary(g, "NE", x, x), x, y) if x.dtype in FLOATS else y


@form("Gelu")
def _gelu(g, call):
    return eltwise(g, "GELU_TANH" if call.get("approximate", "none") == "tanh" else "GELU_ERF", call.inputs[0])


@form("Erf")
def _erf(g, call):
    """Of weir's gelu, x (1 + erf(x / sqrt 2)) / 2, and linear where that is too small a number to divide by."""
    x = in_f32(g, call.inputs[0])
    scaled = eltwise(g, "LINEAR", eltwise(g, "CLIP", x, -6.0, 6.0), math.sqrt(2))
    y = binary(g, "DIV", eltwise(g, "GELU_ERF", scaled), scaled)
    y = eltwise(g, "LINEAR", y, 2.0, -1.0)
    near = compare(g, "LT", eltwise(g, "ABS", x), 2e-3)
    return convert_type(g, select(g, near, eltwise(g, "LINEAR", x, 2 / math.sqrt(math.pi)), y), call.inputs[0].dtype)


@form("Celu")
def _celu(g, call):
    alpha = call.get("alpha", 1.0)
    y = eltwise(g, "ELU", eltwise(g, "LINEAR", call.inputs[0], 1 / alpha), 1.0)
    return eltwise(g, "LINEAR", y, alpha)


@form("Selu")
def _selu(g, call):
    y = eltwise(g, "ELU", call.inputs[0], call.get("alpha", 1.6732631921768188))
    return eltwise(g, "LINEAR", y, call.get("gamma", 1.0507010221481323))


@form("Softsign")
def _softsign(g, call):
    x = call.inputs[0]
    return binary(g, "DIV", x, eltwise(g, "LINEAR", eltwise(g, "ABS", x), 1.0, 1.0))


@form("ThresholdedRelu")
def _thresholded(g, call):
    x = call.inputs[0]
    return select(g, compare(g, "GT", x, call.get("alpha", 1.0)), x, number(0, x.dtype))


@form("Shrink")
def _shrink(g, call):
    x, limit, bias = call.inputs[0], call.get("lambd", 0.5), call.get("bias", 0.0)
    low = select(g, compare(g, "LT", x, -limit), eltwise(g, "LINEAR", x, 1.0, bias), number(0, x.dtype))
    return select(g, compare(g, "GT", x, limit), eltwise(g, "LINEAR", x, 1.0, -bias), low)


@form("PRelu")
def _prelu(g, call):
    x, slope = call.inputs
    return select(g, compare(g, "LT", x, 0), binary(g, "MUL", x, slope), x)


@form("Sinh", "Cosh")
def _sinh(g, call):
    x = in_f32(g, call.inputs[0])
    up, down = eltwise(g, "EXP", x), eltwise(g, "EXP", eltwise(g, "NEG", x))
    y = eltwise(g, "LINEAR", binary(g, "ADD" if call.op == "Cosh" else "SUB", up, down), 0.5)
    if call.op == "Sinh":  # where the difference loses its places: x + x^3 / 6 + x^5 / 120
        square = eltwise(g, "SQUARE", x)
        series = eltwise(g, "LINEAR", binary(g, "MUL", square, eltwise(g, "LINEAR", square, 1 / 120, 1 / 6)), 1.0, 1.0)
        y = select(g, compare(g, "LT", eltwise(g, "ABS", x), 0.25), binary(g, "MUL", x, series), y)
    return convert_type(g, y, call.inputs[0].dtype)


# ---- Two operands ----

ARITHMETIC = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL"}


@form(*ARITHMETIC)
def _arithmetic(g, call):
    return whole(g, lambda a, b: binary(g, ARITHMETIC[call.op], a, b), *call.inputs[:2])


@form("Div")
def _div(g, call):
    a, b = call.inputs[:2]
    if a.dtype in FLOATS:
        return binary(g, "DIV", a, b)
    return whole(g, lambda a, b: truncated_quotient(g, a, b), a, b)


@form("Mod")
def _mod(g, call):
    a, b = call.inputs
    if a.dtype not in FLOATS:
        quotient = truncated_quotient if call.get("fmod", 0) else floor_quotient
        return whole(g, lambda a, b: binary(g, "SUB", a, binary(g, "MUL", quotient(g, a, b), b)), a, b)
    require(call.get("fmod", 0), "a remainder of floats that has the divisor's sign")
    x, y = in_f32(g, a), eltwise(g, "ABS", in_f32(g, b))
    size = eltwise(g, "ABS", x)
    rest = binary(g, "SUB", size, binary(g, "MUL", floor(g, binary(g, "DIV", size, y)), y))
    # The quotient may have been rounded over an integer.
    rest = select(g, compare(g, "LT", rest, 0), binary(g, "ADD", rest, y), rest)
    rest = select(g, binary(g, "GE", rest, y), binary(g, "SUB", rest, y), rest)
    return convert_type(g, select(g, compare(g, "LT", x, 0), eltwise(g, "NEG", rest), rest), a.dtype)


@form("Pow")
def _pow(g, call):
    a, b = call.inputs
    require(a.dtype in FLOATS, f"power of type {a.dtype}")
    if b.array is not None and b.size == 1:
        return eltwise(g, "POW", a, 1.0, float(b.array.reshape(())))
    return binary(g, "POW", a, convert_type(g, constant(b.array.astype(a.dtype)) if b.array is not None else b, a.dtype))


@form("Sum", "Mean", "Max", "Min")
def _several(g, call):
    op = {"Sum": "ADD", "Mean": "ADD"}.get(call.op, call.op.upper())
    y = call.inputs[0]
    for x in call.inputs[1:]:
        y = binary(g, op, y, x)
    return eltwise(g, "LINEAR", y, 1 / len(call.inputs)) if call.op == "Mean" else y


@form("Clip")
def _clip(g, call):
    x = call.inputs[0]
    if call.version < 11:
        return eltwise(g, "CLIP", x, call.get("min", -math.inf), call.get("max", math.inf))
    limits = [call.input(1), call.input(2)]
    if x.dtype in FLOATS and all(limit is None or limit.array is not None for limit in limits):
        low, high = (
            default if limit is None else float(limit.array.reshape(()))
            for limit, default in zip(limits, (-math.inf, math.inf))
        )
        return eltwise(g, "CLIP", x, low, high)
    for op, limit in zip(("MAX", "MIN"), limits):
        x = binary(g, op, x, limit) if limit else x
    return x


COMPARISONS = {"Equal": "EQ", "Less": "LT", "LessOrEqual": "LE", "Greater": "GT", "GreaterOrEqual": "GE"}


@form(*COMPARISONS)
def _compare(g, call):
    return binary(g, COMPARISONS[call.op], *call.inputs)


@form("And", "Or", "Xor")
def _logical(g, call):
    return logical(g, call.op.upper(), *call.inputs)


@form("Not")
def _not(g, call):
    return negated(g, call.inputs[0])


@form("Where")
def _where(g, call):
    return select(g, *call.inputs)


@form("IsNaN")
def _is_nan(g, call):
    x = call.inputs[0]
    require(x.dtype in FLOATS, f"type {x.dtype}")
    return binary(g, "NE", x, x)


@form("IsInf")
def _is_inf(g, call):
    x = call.inputs[0]
    require(x.dtype in FLOATS, f"type {x.dtype}")
    up, down = call.get("detect_positive", 1), call.get("detect_negative", 1)
    if up and down:
        return compare(g, "EQ", eltwise(g, "ABS", x), math.inf)
    if not up and not down:
        return constant(numpy.zeros(x.shape, bool))
    return compare(g, "EQ", x, math.inf if up else -math.inf)


# ---- Types and bits ----


@form("Cast")
def _cast(g, call):
    dtype = numpy.dtype(helper.tensor_dtype_to_np_dtype(call.get("to")))
    return cast(g, call.inputs[0], dtype)


@form("CastLike")
def _cast_like(g, call):
    return cast(g, call.inputs[0], call.inputs[1].dtype)


@form("BitwiseNot")
def _bitwise_not(g, call):
    x = call.inputs[0]
    require(x.dtype in BYTES | {S32}, f"type {x.dtype}")
    return whole(g, lambda x: binary(g, "SUB", number(-1, S32), x), x)


@form("BitShift")
def _bit_shift(g, call):
    x, by = call.inputs
    require(x.dtype == U8, f"type {x.dtype}")
    powers = constant((1 << numpy.minimum(numpy.arange(256), 9)).astype(S32))
    factor = gather(g, powers, convert_type(g, by, S32), 0)
    x = convert_type(g, x, S32)
    if call.get("direction") == "RIGHT":
        return convert_type(g, floor_quotient(g, x, factor), U8)
    return wrapped(g, binary(g, "MUL", x, factor), U8)


@form("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def _bitwise(g, call):
    """Of bytes: looked up."""
    a, b = call.inputs
    require(a.dtype == U8, f"type {a.dtype}")
    operation = {"A": numpy.bitwise_and, "O": numpy.bitwise_or, "X": numpy.bitwise_xor}[call.op[7]]
    table = constant(operation.outer(numpy.arange(256), numpy.arange(256)).reshape(-1).astype(U8))
    row = binary(g, "MUL", convert_type(g, a, S32), number(256, S32))
    return gather(g, table, binary(g, "ADD", row, convert_type(g, b, S32)), 0)


