#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the networks of this directory, but for voice.txt, whose costs were measured.

    python3 make.py

The structures are those of the papers. A node costs what its arithmetic takes at 200 GFLOP/s, or what its bytes take
at 20 GB/s if that is longer, and 300 ns more: about one core with AVX-512. Nothing was measured.
"""

import os

FLOPS_A_NS = 200
BYTES_A_NS = 20
CALL_NS = 300
HEAD = """# {what}
# One line a node: its name, its cost in ns, and the nodes that it waits for. Made by make.py, not measured:
# the cost is the arithmetic at 200 GFLOP/s or the bytes at 20 GB/s, whichever is longer, and 300 ns.
"""


class Network:
    def __init__(self):
        self.lines = []
        self.costs = {}

    def add(self, name, flops, floats, *inputs):
        """A node that reads and writes so many 32-bit floats."""
        cost = round(max(flops / FLOPS_A_NS, 4 * floats / BYTES_A_NS) + CALL_NS)
        assert name not in self.costs, name
        assert all(i in self.costs for i in inputs), (name, inputs)
        self.costs[name] = cost
        self.lines.append(" ".join([name, str(cost), *dict.fromkeys(inputs)]))
        return name

    def write(self, name, what):
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, name + ".txt"), "w", encoding="ascii") as file:
            file.write(HEAD.format(what=what))
            file.write("\n".join(self.lines) + "\n")


def transformer_layer(tokens=128, width=768, heads=12, inner=3072):
    """Vaswani et al. 2017, as the encoder of BERT base (Devlin et al. 2018) has it; each head has nodes of its own."""
    net = Network()
    part = width // heads

    def dense(name, x, inputs, outputs):
        product = net.add(name, 2 * tokens * inputs * outputs, tokens * (inputs + outputs) + inputs * outputs, x)
        return net.add(name + "_bias", tokens * outputs, 2 * tokens * outputs, product)

    x = net.add("input", 0, tokens * width)
    q, k, v = (dense(name, x, width, width) for name in ("query", "key", "value"))
    parts = []
    for head in range(heads):
        def of(what, flops, floats, *inputs, head=head):
            return net.add(f"head{head}_{what}", flops, floats, *inputs)

        q_part, k_part, v_part = (of(w, 0, 2 * tokens * part, s) for w, s in (("q", q), ("k", k), ("v", v)))
        scores = of("scores", 2 * tokens * tokens * part, 2 * tokens * part + tokens * tokens, q_part, k_part)
        masked = of("mask", 2 * tokens * tokens, 2 * tokens * tokens, scores)
        weights = of("softmax", 20 * tokens * tokens, 2 * tokens * tokens, masked)
        parts.append(of("values", 2 * tokens * tokens * part, 2 * tokens * part + tokens * tokens, weights, v_part))
    y = net.add("concat", 0, 2 * tokens * width, *parts)
    y = dense("output", y, width, width)
    y = net.add("add1", tokens * width, 3 * tokens * width, y, x)
    y = net.add("norm1", 8 * tokens * width, 2 * tokens * width, y)
    z = dense("inner", y, width, inner)
    z = net.add("gelu", 20 * tokens * inner, 2 * tokens * inner, z)
    z = dense("outer", z, inner, width)
    z = net.add("add2", tokens * width, 3 * tokens * width, z, y)
    net.add("norm2", 8 * tokens * width, 2 * tokens * width, z)
    net.write("transformer_layer", "A layer of a transformer: 128 tokens, width 768, 12 heads, inner width 3072.")


def mobilenet_v2():
    """Sandler et al. 2018, 224 x 224, width 1: normalisation and relu6 are part of the convolutions."""
    net = Network()
    x, side, channels = net.add("image", 0, 3 * 224 * 224), 224, 3

    def conv(name, x, inputs, outputs, kernel, before, after, groups=1):
        flops = 2 * after * after * outputs * kernel * kernel * inputs // groups
        floats = before * before * inputs + after * after * outputs + outputs * kernel * kernel * inputs // groups
        return net.add(name, flops, floats, x)

    x, side, channels = conv("conv0", x, 3, 32, 3, 224, 112), 112, 32
    block = 0
    for expand, outputs, repeats, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):
        for i in range(repeats):
            step = stride if i == 0 else 1
            name, inner, after = f"block{block}", channels * expand, side // step
            y = x if expand == 1 else conv(name + "_expand", x, channels, inner, 1, side, side)
            y = conv(name + "_depthwise", y, inner, inner, 3, side, after, groups=inner)
            y = conv(name + "_project", y, inner, outputs, 1, after, after)
            if step == 1 and channels == outputs:
                y = net.add(name + "_add", after * after * outputs, 3 * after * after * outputs, y, x)
            x, side, channels = y, after, outputs
            block += 1
    x = conv("conv_last", x, 320, 1280, 1, 7, 7)
    x = net.add("mean", 7 * 7 * 1280, 7 * 7 * 1280, x)
    x = net.add("classes", 2 * 1280 * 1000, 1280 * 1000, x)
    net.add("softmax", 20000, 2000, x)
    net.write("mobilenet_v2", "MobileNet v2, one image of 224 x 224.")


class Resnet50:
    """He et al. 2015, one image of 224 x 224: forward, and what goes back."""

    def __init__(self):
        self.forward = Network()
        self.back = []  # functions that add an operator's gradient to the backward network, in forward order
        self.gradients = {}  # of the values: the nodes whose sum they are

    def conv(self, name, x, inputs, outputs, kernel, before, after):
        flops = 2 * after * after * outputs * kernel * kernel * inputs
        floats = before * before * inputs + after * after * outputs + outputs * kernel * kernel * inputs
        weights = outputs * kernel * kernel * inputs

        def back(net, gradient):
            of_weights = net.add(name + "_dw", flops, floats, gradient)
            net.add(name + "_update", 2 * weights, 3 * weights, of_weights)
            if x != "image":
                self.give(x, net.add(name + "_dx", flops, floats, gradient))

        return self.done(self.forward.add(name, flops, floats, x), after * after * outputs, back)

    def elementwise(self, name, size, reads, *inputs):
        """A node of about eight operations for each of `size` values, and a gradient of twice that."""

        def back(net, gradient):
            node = net.add(name + "_d", 16 * size, (reads + 2) * size, gradient)
            for x in inputs:
                self.give(x, node)

        return self.done(self.forward.add(name, 8 * size, (reads + 1) * size, *inputs), size, back)

    def done(self, name, size, back):
        self.back.append((name, size, back))
        return name

    def give(self, value, gradient):
        self.gradients.setdefault(value, []).append(gradient)

    def build(self):
        x = self.forward.add("image", 0, 3 * 224 * 224)
        x = self.conv("conv0", x, 3, 64, 7, 224, 112)
        x = self.elementwise("norm0", 64 * 112 * 112, 1, x)
        x = self.elementwise("pool0", 64 * 112 * 112, 1, x)
        side, channels = 56, 64
        for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
            for block in range(blocks):
                name, after = f"stage{stage}_{block}", side // 2 if stage > 0 and block == 0 else side
                area = after * after
                around = x
                if block == 0:
                    around = self.conv(name + "_around", x, channels, 4 * width, 1, side, after)
                    around = self.elementwise(name + "_around_norm", 4 * width * area, 1, around)
                y = self.conv(name + "_a", x, channels, width, 1, side, side)
                y = self.elementwise(name + "_a_norm", width * side * side, 1, y)
                y = self.conv(name + "_b", y, width, width, 3, side, after)
                y = self.elementwise(name + "_b_norm", width * area, 1, y)
                y = self.conv(name + "_c", y, width, 4 * width, 1, after, after)
                y = self.elementwise(name + "_c_norm", 4 * width * area, 1, y)
                x = self.elementwise(name + "_add_relu", 4 * width * area, 2, y, around)
                side, channels = after, 4 * width
        x = self.elementwise("mean", 2048 * 7 * 7, 1, x)
        x = self.conv("classes", x, 2048, 1000, 1, 1, 1)
        self.elementwise("softmax", 1000, 1, x)
        self.forward.write("resnet50_forward", "ResNet-50 forward, one image of 224 x 224.")

        net = Network()
        last = self.back[-1][0]
        self.give(last, net.add("loss", 1000, 2000))
        for name, size, back in reversed(self.back):
            parts = self.gradients[name]
            # Where several gradients come back, they are added.
            sum_of = parts[0] if len(parts) == 1 else net.add(name + "_sum", size, 3 * size, *parts)
            back(net, sum_of)
        net.write("resnet50_backward", "ResNet-50 backward and the update of its weights, one image of 224 x 224.")


transformer_layer()
mobilenet_v2()
Resnet50().build()
