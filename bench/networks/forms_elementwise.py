# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forms of operators that go element by element."""

import math

import numpy
from onnx import helper

from onnx_blocks import (
    FLOATS, S32, S64, U8, as_held, binary, compare, convert_type, eltwise, fitted, gather, in_f32, negated, number,
    polynomial, require, select,
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
    **{name: (name.upper(),) for name in ("Erf", "Floor", "Ceil", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan")},
    **{name: (name.upper(),) for name in ("Sinh", "Cosh")},
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
    if x.dtype.kind == "u" and call.op == "Abs":
        return x
    negative = binary(g, "SUB", number(0, x.dtype), x)
    return negative if call.op == "Neg" else binary(g, "MAX", x, negative)


@form("Sign")
def _sign(g, call):
    x = call.inputs[0]
    if x.dtype in FLOATS:
        return eltwise(g, "SIGN", x)
    y = binary(g, "MIN", x, number(1, x.dtype))
    return y if x.dtype.kind == "u" else binary(g, "MAX", y, number(-1, x.dtype))


@form("Gelu")
def _gelu(g, call):
    return eltwise(g, "GELU_TANH" if call.get("approximate", "none") == "tanh" else "GELU_ERF", call.inputs[0])


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

ARITHMETIC = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Div": "DIV", "And": "MIN", "Or": "MAX", "Xor": "NE"}


@form(*ARITHMETIC)
def _arithmetic(g, call):
    return binary(g, ARITHMETIC[call.op], *call.inputs[:2])


@form("Mod")
def _mod(g, call):
    return binary(g, "REM", *call.inputs, "ZERO" if call.get("fmod", 0) else "FLOOR")


@form("Pow")
def _pow(g, call):
    a, b = call.inputs
    if a.dtype not in FLOATS:
        return integer_power(g, a, call.known(1))
    if b.array is not None and b.size == 1:
        return eltwise(g, "POW", a, 1.0, float(b.array.reshape(())))
    return binary(g, "POW", a, convert_type(g, b, a.dtype))


def integer_power(g, x, exponents):
    """By squares: exact, and wrapping around."""
    bits = exponents.astype(numpy.int64)
    require((bits == exponents).all() and (bits >= 0).all(), "exponents that are no natural numbers")
    y = constant(numpy.ones(numpy.broadcast_shapes(x.shape, bits.shape), x.dtype))
    while bits.any():
        y = select(g, constant(bits % 2 == 1), binary(g, "MUL", y, x), y)
        x, bits = binary(g, "MUL", x, x), bits // 2
    return y


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
    return convert_type(g, call.inputs[0], dtype)


@form("CastLike")
def _cast_like(g, call):
    return convert_type(g, call.inputs[0], call.inputs[1].dtype)


@form("BitwiseNot")
def _bitwise_not(g, call):
    x = call.inputs[0]
    return binary(g, "SUB", number(numpy.iinfo(x.dtype).max if x.dtype.kind == "u" else -1, x.dtype), x)


@form("BitShift")
def _bit_shift(g, call):
    """In two steps: a shift by all bits is two by half of them, and the type holds the factors of these."""
    x, by = call.inputs
    bits = x.dtype.itemsize * 8
    factors = number(1 << numpy.arange(bits // 2 + 1), x.dtype)
    by = convert_type(g, by, S64)
    by = select(g, binary(g, "MIN", compare(g, "GE", by, 0), compare(g, "LT", by, bits)), by, number(bits, S64))
    half = binary(g, "DIV", by, number(2, S64))
    for step in (half, binary(g, "SUB", by, half)):
        op = "MUL" if call.get("direction") == "LEFT" else "DIV"
        x = binary(g, op, x, gather(g, factors, step, 0), "FLOOR")
    return x


@form("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def _bitwise(g, call):
    """Looked up, byte by byte."""
    dtype, (a, b) = call.inputs[0].dtype, (as_held(x) for x in call.inputs)
    operation = {"A": numpy.bitwise_and, "O": numpy.bitwise_or, "X": numpy.bitwise_xor}[call.op[7]]
    byte, total = numpy.arange(256, dtype=numpy.uint8), number(0, a.dtype)
    table = constant(operation.outer(byte, byte).reshape(-1))
    for place in range(dtype.itemsize):
        step = number(256**place, a.dtype)
        row, column = (convert_type(g, binary(g, "DIV", x, step, "FLOOR"), U8) for x in (a, b))
        row, column = binary(g, "MUL", convert_type(g, row, S32), number(256, S32)), convert_type(g, column, S32)
        y = convert_type(g, gather(g, table, binary(g, "ADD", row, column), 0), a.dtype)
        total = binary(g, "ADD", total, binary(g, "MUL", y, step))
    return fitted(g, total, dtype)


@form("BitCast")
def _bit_cast(g, call):
    x, dtype = call.inputs[0], numpy.dtype(helper.tensor_dtype_to_np_dtype(call.get("to")))
    integers = x.dtype.kind in "biu" and dtype.kind in "iu" and x.dtype.itemsize == dtype.itemsize
    require(integers, f"the bits of {x.dtype} as {dtype}")
    return convert_type(g, x, dtype)


# ---- Inverses of hyperbolic functions ----


def odd_series(g, x, coefficients, y):
    """y, and x (c0 + c1 x^2 + ...) where x is small."""
    series = binary(g, "MUL", x, polynomial(g, eltwise(g, "SQUARE", x), coefficients))
    return select(g, compare(g, "LT", eltwise(g, "ABS", x), 0.1), series, y)


def log_of_sum(g, x, shift):
    """ln(x + sqrt(x^2 + shift))."""
    root = eltwise(g, "SQRT", eltwise(g, "LINEAR", eltwise(g, "SQUARE", x), 1.0, shift))
    return eltwise(g, "LOG", binary(g, "ADD", x, root))


@form("Asinh", "Acosh", "Atanh")
def _area(g, call):
    x = in_f32(g, call.inputs[0])
    if call.op == "Acosh":
        y = log_of_sum(g, x, -1.0)
    elif call.op == "Asinh":
        y = binary(g, "MUL", eltwise(g, "SIGN", x), log_of_sum(g, eltwise(g, "ABS", x), 1.0))
        y = odd_series(g, x, [1.0, -1 / 6, 3 / 40, -15 / 336], y)
    else:
        above, below = eltwise(g, "LINEAR", x, 1.0, 1.0), eltwise(g, "LINEAR", x, -1.0, 1.0)
        y = eltwise(g, "LINEAR", eltwise(g, "LOG", binary(g, "DIV", above, below)), 0.5)
        y = odd_series(g, x, [1.0, 1 / 3, 1 / 5, 1 / 7], y)
    return convert_type(g, y, call.inputs[0].dtype)
