#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Draws a flame graph from `perf script`: perf script | bench/flame.py > hot-path.svg

Each box is a function, as wide as its share of the samples, on top of the one that called it.
"""

import html
import re
import sys

WIDTH, ROW, SMALLEST = 1000, 18, 0.004


def stacks(lines):
    """The call stacks of the samples, outermost first."""
    stack = []
    for line in lines:
        if line.startswith((" ", "\t")) and line.strip():
            name = re.sub(r"^\s*[0-9a-f]+\s+", "", line.rstrip())
            name = re.sub(r"\s+\([^()]*\)$", "", name)
            name = re.sub(r"\+0x[0-9a-f]+$", "", name)
            name = re.sub(r"::h[0-9a-f]{16}$", "", name)
            # What catching panics puts between two functions.
            if not re.match(r"(catch_unwind|do_call|call_once|__rust_try)\b", name):
                stack.append(name)
        elif not line.strip() and stack:
            yield stack[::-1]
            stack = []
    if stack:
        yield stack[::-1]


def tree(samples):
    root = [0, {}]
    for stack in samples:
        node = root
        node[0] += 1
        for name in stack:
            node = node[1].setdefault(name, [0, {}])
            node[0] += 1
    return root


def boxes(node, total, x=0.0, depth=0):
    """(x, depth, width, name, share) of each box that can be seen."""
    for name, child in sorted(node[1].items(), key=lambda item: -item[1][0]):
        share = child[0] / total
        if share >= SMALLEST:
            yield x, depth, share, name
            yield from boxes(child, total, x, depth + 1)
        x += share


def main():
    root = tree(stacks(sys.stdin))
    if not root[0]:
        sys.exit("flame.py: no samples")
    found = list(boxes(root, root[0]))
    depth = 1 + max(box[1] for box in found)
    height = depth * ROW + 10
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="11">')
    for x, level, share, name in found:
        left, width, top = x * WIDTH, share * WIDTH, height - (level + 1) * ROW - 5
        colour = f"hsl({(hash_of(name) % 40) + 10},80%,{65 + hash_of(name) % 15}%)"
        text = name if len(name) * 6 < width - 4 else name[: max(0, int((width - 4) / 6) - 1)] + "."
        label = html.escape(text) if width > 20 else ""
        print(
            f'<g><title>{html.escape(name)}: {100 * share:.1f} %</title>'
            f'<rect x="{left:.1f}" y="{top}" width="{max(width - 0.5, 0.5):.1f}" height="{ROW - 1}" fill="{colour}"/>'
            f'<text x="{left + 3:.1f}" y="{top + 12}">{label}</text></g>'
        )
    print("</svg>")


def hash_of(name):
    """The same colours in every run."""
    value = 0
    for character in name:
        value = (value * 131 + ord(character)) & 0xFFFFFFFF
    return value


if __name__ == "__main__":
    main()
