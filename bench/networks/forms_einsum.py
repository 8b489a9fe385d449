# SPDX-License-Identifier: MIT OR Apache-2.0
"""The form of Einsum: diagonals, sums over letters of one operand alone, and a product for each further operand."""

import math

import numpy

from onnx_blocks import FLOATS, matmul, rearranged, reduce, require, reshape, transpose
from onnx_forms import form


@form("Einsum")
def _einsum(g, call):
    operands = list(call.inputs)
    require(all(x.dtype in FLOATS for x in operands), f"einsum of type {operands[0].dtype}")
    terms, result = parse(call.get("equation").replace(" ", ""), operands)
    terms = [diagonal(g, x, letters) for x, letters in zip(operands, terms)]
    x, letters = terms[0]
    for i, (other, other_letters) in enumerate(terms[1:], 1):
        later = set(result).union(*(letters for _, letters in terms[i + 1 :]))
        x, letters = product(g, x, letters, other, other_letters, later)
    x, letters = summed(g, x, letters, set(result))
    return transpose(g, x, [letters.index(letter) for letter in result])


def parse(equation, operands):
    """The letters of each operand and of the result; those of an ellipsis are digits."""
    left, arrow, right = equation.partition("->")
    terms = []
    for text, x in zip(left.split(","), operands):
        if "..." in text:
            count = x.rank - len(text) + 3
            text = text.replace("...", "".join(str(9 - i) for i in reversed(range(count))))
        terms.append(text)
    hidden = "".join(sorted({letter for text in terms for letter in text if letter.isdigit()}))
    if not arrow:
        everything = "".join(terms)
        right = hidden + "".join(sorted(c for c in set(everything) if everything.count(c) == 1 and c.isalpha()))
    return terms, right.replace("...", hidden)


def diagonal(g, x, letters):
    """x without letters that come twice."""
    unique = "".join(dict.fromkeys(letters))
    if len(unique) == len(letters):
        return x, letters
    places = numpy.arange(x.size).reshape(x.shape)
    return rearranged(g, x, numpy.einsum(f"{letters}->{unique}", places)), unique


def summed(g, x, letters, kept):
    axes = [axis for axis, letter in enumerate(letters) if letter not in kept]
    x = reduce(g, "SUM", x, axes, False) if axes else x
    return x, "".join(letter for letter in letters if letter in kept)


def product(g, a, a_letters, b, b_letters, later):
    a, a_letters = summed(g, a, a_letters, later | set(b_letters))
    b, b_letters = summed(g, b, b_letters, later | set(a_letters))
    batch = [c for c in a_letters if c in b_letters and c in later]
    inner = [c for c in a_letters if c in b_letters and c not in later]
    rows = [c for c in a_letters if c not in b_letters]
    columns = [c for c in b_letters if c not in a_letters]
    sizes = dict(zip(a_letters, a.shape))
    for letter, dim in zip(b_letters, b.shape):
        sizes[letter] = max(sizes.get(letter, 1), dim)
    require(all(sizes[c] == dim for c, dim in zip(a_letters + b_letters, a.shape + b.shape)), "broadcasting")
    counts = [math.prod(sizes[c] for c in group) for group in (batch, rows, inner, columns)]
    a = transpose(g, a, [a_letters.index(c) for c in batch + rows + inner])
    b = transpose(g, b, [b_letters.index(c) for c in batch + inner + columns])
    y = matmul(g, reshape(g, a, counts[:3]), reshape(g, b, (counts[0], *counts[2:])))
    letters = batch + rows + columns
    return reshape(g, y, [sizes[c] for c in letters]), "".join(letters)
