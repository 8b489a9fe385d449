# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forms of operators that go element by element."""

import math

import numpy
from onnx import helper

from onnx_blocks import (
    BOOL, BYTES, FLOATS, S32, U8, binary, cast, ceil, compare, convert_type, eltwise, floor, floor_quotient, gather,
    in_f32, logical, negated, number, polynomial, require, select, truncated_quotient, whole, wrapped,
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
    x, y = in_f32(g, a), eltwise(g, "ABS", in_f32(g, b))
    size = eltwise(g, "ABS", x)
    rest = binary(g, "SUB", size, binary(g, "MUL", floor(g, binary(g, "DIV", size, y)), y))
    # The quotient may have been rounded over an integer.
    rest = select(g, compare(g, "LT", rest, 0), binary(g, "ADD", rest, y), rest)
    rest = select(g, binary(g, "GE", rest, y), binary(g, "SUB", rest, y), rest)
    rest = select(g, compare(g, "EQ", y, math.inf), size, rest)
    rest = select(g, compare(g, "LT", x, 0), eltwise(g, "NEG", rest), rest)
    if not call.get("fmod", 0):  # the divisor's sign
        divisor = in_f32(g, b)
        opposite = binary(g, "NE", compare(g, "LT", rest, 0), compare(g, "LT", divisor, 0))
        opposite = logical(g, "AND", opposite, compare(g, "NE", rest, 0))
        rest = select(g, opposite, binary(g, "ADD", rest, divisor), rest)
    return convert_type(g, rest, a.dtype)


@form("Pow")
def _pow(g, call):
    a, b = call.inputs
    require(a.dtype in FLOATS, f"power of type {a.dtype}")
    if b.array is not None and b.size == 1:
        return eltwise(g, "POW", a, 1.0, float(b.array.reshape(())))
    return binary(g, "POW", a, cast(g, b, a.dtype))


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
    require(x.dtype in BYTES | {S32}, f"type {x.dtype}")
    bits, whole_x, by = x.dtype.itemsize * 8, convert_type(g, x, S32), convert_type(g, by, S32)
    within = logical(g, "AND", compare(g, "GE", by, 0), compare(g, "LT", by, bits))
    powers = constant((1 << numpy.arange(bits, dtype=numpy.int64)).astype(S32))
    place = binary(g, "MIN", binary(g, "MAX", by, number(0, S32)), number(bits - 1, S32))
    factor = gather(g, powers, place, 0)
    if call.get("direction") == "LEFT":
        shifted = wrapped(g, binary(g, "MUL", whole_x, factor), x.dtype)
        return select(g, within, shifted, number(0, x.dtype))
    beyond = select(g, compare(g, "LT", whole_x, 0), number(-1, S32), number(0, S32))
    # By 31 s32 has only its sign left, and 2^31 is no number of it.
    within = logical(g, "AND", within, compare(g, "LT", by, 31))
    shifted = select(g, within, floor_quotient(g, whole_x, factor), beyond)
    return convert_type(g, shifted, x.dtype)


@form("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def _bitwise(g, call):
    """Of bytes: looked up."""
    a, b = call.inputs
    require(a.dtype in BYTES, f"type {a.dtype}")
    operation = {"A": numpy.bitwise_and, "O": numpy.bitwise_or, "X": numpy.bitwise_xor}[call.op[7]]
    low = 0 if a.dtype == U8 else -128
    numbers = numpy.arange(low, low + 256)
    table = constant(operation.outer(numbers, numbers).reshape(-1).astype(a.dtype))
    row, column = (binary(g, "SUB", convert_type(g, x, S32), number(low, S32)) for x in (a, b))
    place = binary(g, "ADD", binary(g, "MUL", row, number(256, S32)), column)
    return gather(g, table, place, 0)


@form("BitCast")
def _bit_cast(g, call):
    x, dtype = call.inputs[0], numpy.dtype(helper.tensor_dtype_to_np_dtype(call.get("to")))
    require(x.dtype in BYTES | {BOOL} and dtype in BYTES, f"the bits of {x.dtype} as {dtype}")
    return cast(g, x, dtype)


# ---- Functions of angles ----


# Pi / 2 in parts whose products with small integers are exact in f32.
HALF_PI = (1.5703125, 4.837512969970703e-4, 7.549789948768648e-8)


def sine(g, x, quarter):
    """The sine of x plus so many quarters of a turn."""
    turns = eltwise(g, "ROUND", eltwise(g, "LINEAR", x, 2 / math.pi))
    for piece in HALF_PI:
        x = binary(g, "SUB", x, eltwise(g, "LINEAR", turns, piece))
    square = eltwise(g, "SQUARE", x)
    even = polynomial(g, square, [1.0, -1 / 2, 1 / 24, -1 / 720, 1 / 40320])
    odd = binary(g, "MUL", x, polynomial(g, square, [1.0, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880]))
    turns = eltwise(g, "LINEAR", turns, 1.0, float(quarter))
    turns = binary(g, "SUB", turns, eltwise(g, "LINEAR", floor(g, eltwise(g, "LINEAR", turns, 0.25)), 4.0))
    crosswise = binary(g, "NE", compare(g, "EQ", turns, 1), compare(g, "EQ", turns, 3))
    y = select(g, crosswise, even, odd)
    return select(g, compare(g, "GE", turns, 2), eltwise(g, "NEG", y), y)


def arctangent(g, x):
    size = eltwise(g, "ABS", x)
    large = compare(g, "GT", size, 1)
    small = select(g, large, eltwise(g, "POW", size, 1.0, -1.0), size)
    upper = compare(g, "GT", small, math.tan(math.pi / 8))
    turned = binary(g, "DIV", eltwise(g, "LINEAR", small, 1.0, -1.0), eltwise(g, "LINEAR", small, 1.0, 1.0))
    part = select(g, upper, turned, small)
    square = eltwise(g, "SQUARE", part)
    y = binary(g, "MUL", part, polynomial(g, square, [(-1) ** i / (2 * i + 1) for i in range(9)]))
    y = select(g, upper, eltwise(g, "LINEAR", y, 1.0, math.pi / 4), y)
    y = select(g, large, eltwise(g, "LINEAR", y, -1.0, math.pi / 2), y)
    return select(g, compare(g, "LT", x, 0), eltwise(g, "NEG", y), y)


def odd_series(g, x, limit, coefficients, y):
    """y, and x (c0 + c1 x^2 + ...) where x is small."""
    series = binary(g, "MUL", x, polynomial(g, eltwise(g, "SQUARE", x), coefficients))
    return select(g, compare(g, "LT", eltwise(g, "ABS", x), limit), series, y)


def rooted(g, x, shift):
    """sqrt(x^2 + shift)."""
    return eltwise(g, "SQRT", eltwise(g, "LINEAR", eltwise(g, "SQUARE", x), 1.0, shift))


@form("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh", "Sinh", "Cosh")
def _angles(g, call):
    return convert_type(g, angles(g, call.op, in_f32(g, call.inputs[0])), call.inputs[0].dtype)


def angles(g, op, x):
    if op in ("Sin", "Cos"):
        return sine(g, x, 0 if op == "Sin" else 1)
    if op == "Tan":
        return binary(g, "DIV", sine(g, x, 0), sine(g, x, 1))
    if op == "Atan":
        return arctangent(g, x)
    above, below = eltwise(g, "LINEAR", x, 1.0, 1.0), eltwise(g, "LINEAR", x, -1.0, 1.0)
    if op == "Asin":
        return arctangent(g, binary(g, "DIV", x, eltwise(g, "SQRT", binary(g, "MUL", above, below))))
    if op == "Acos":
        return eltwise(g, "LINEAR", arctangent(g, eltwise(g, "SQRT", binary(g, "DIV", below, above))), 2.0)
    if op == "Atanh":
        y = eltwise(g, "LINEAR", eltwise(g, "LOG", binary(g, "DIV", above, below)), 0.5)
        return odd_series(g, x, 0.1, [1.0, 1 / 3, 1 / 5, 1 / 7], y)
    if op == "Acosh":
        return eltwise(g, "LOG", binary(g, "ADD", x, rooted(g, x, -1.0)))
    if op == "Asinh":
        size = eltwise(g, "ABS", x)
        y = eltwise(g, "LOG", binary(g, "ADD", size, rooted(g, x, 1.0)))
        y = select(g, compare(g, "LT", x, 0), eltwise(g, "NEG", y), y)
        return odd_series(g, x, 0.1, [1.0, -1 / 6, 3 / 40, -15 / 336], y)
    up, down = eltwise(g, "EXP", x), eltwise(g, "EXP", eltwise(g, "NEG", x))
    y = eltwise(g, "LINEAR", binary(g, "ADD" if op == "Cosh" else "SUB", up, down), 0.5)
    return y if op == "Cosh" else odd_series(g, x, 0.5, [1.0, 1 / 6, 1 / 120, 1 / 5040], y)
