#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes digits.bin and weights.bin, the two files that the digits examples read.

    python3 -m venv venv && venv/bin/pip install numpy scikit-learn && venv/bin/python train.py

The data are the 1797 scans of scikit-learn's load_digits(), see NOTICE. A fixed shuffle puts 1297 of them into the
training part; the other 500 are held out: nothing is trained, tuned or selected on them, and this script looks at
them once, to print the result. The numbers below were chosen with --validate, which trains on 1037 of the 1297 and
measures on the remaining 260.

The network is 64 -> 96 -> 48 -> 10 with relu between the layers and softmax at the end, trained with Adam on scans that
are shifted and noised a little. Training runs in float64 on one BLAS thread from fixed seeds, so the same
versions of NumPy and its BLAS on the same processor write the same bytes.

File formats, all little-endian:

    digits.bin    char[8] "WEIRDIGS", u32 scans, u32 scans for training, u32 height, u32 width,
                  u8 pixels[scans][height][width] (0 = paper, 16 = ink), u8 labels[scans].
                  The scans for training come first, those held out after them.
    weights.bin   char[8] "WEIRMLPS", u32 layers, u32 sizes[layers + 1],
                  then for each layer f32 weights[inputs][outputs], f32 bias[outputs].
                  The network takes pixels as they are, 0 to 16.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the order of a sum must not depend on the number of processors

import argparse
import pathlib
import struct

import numpy as np
from sklearn.datasets import load_digits

SCANS, TRAINING = 1797, 1297
SIZES = (64, 96, 48, 10)
SPLIT_SEED, TRAIN_SEED = 20190501, 1
EPOCHS, BATCH, PEAK_RATE, WEIGHT_DECAY = 240, 64, 2e-3, 1e-4
SHIFT, NOISE, SMOOTHING = 0.3, 0.1, 0.05
MAX_PIXEL = 16.0


def load():
    """All scans in the order of digits.bin: pixels u8 [1797, 64] and labels u8 [1797]."""
    digits = load_digits()
    assert digits.data.shape == (SCANS, SIZES[0])
    order = np.random.Generator(np.random.PCG64(SPLIT_SEED)).permutation(SCANS)
    return digits.data.astype(np.uint8)[order], digits.target.astype(np.uint8)[order]


def moved(rows, rng):
    """Shifts each scan by a part of a pixel in both directions (bilinear, paper outside) and adds noise."""
    count = len(rows)
    padded = np.pad(rows.reshape(count, 8, 8), ((0, 0), (1, 1), (1, 1)))
    for axis in (1, 2):
        shift = np.clip(rng.normal(0.0, SHIFT, (count, 1, 1)), -1.0, 1.0)
        toward = np.where(shift > 0, np.roll(padded, 1, axis), np.roll(padded, -1, axis))
        padded = (1 - np.abs(shift)) * padded + np.abs(shift) * toward
    return padded[:, 1:9, 1:9].reshape(count, -1) + rng.normal(0.0, NOISE, rows.shape)


def forward(layers, rows):
    """The activations of each layer; the last are the logits."""
    activations = [rows]
    for depth, (weights, bias) in enumerate(layers):
        sums = activations[-1] @ weights + bias
        activations.append(sums if depth == len(layers) - 1 else np.maximum(sums, 0))
    return activations


def gradients(layers, rows, targets):
    """The gradient of the mean cross entropy with respect to each weight matrix and bias."""
    activations = forward(layers, rows)
    shifted = np.exp(activations[-1] - activations[-1].max(axis=1, keepdims=True))
    delta = (shifted / shifted.sum(axis=1, keepdims=True) - targets) / len(rows)
    result = []
    for depth in reversed(range(len(layers))):
        result.append((activations[depth].T @ delta, delta.sum(axis=0)))
        delta = (delta @ layers[depth][0].T) * (activations[depth] > 0)
    return result[::-1]


def train(pixels, labels):
    """Adam with decoupled weight decay and a cosine learning rate; returns [(weights, bias), ...] in float64."""
    rng = np.random.Generator(np.random.PCG64(TRAIN_SEED))
    rows = pixels / MAX_PIXEL
    targets = np.eye(SIZES[-1])[labels] * (1 - SMOOTHING) + SMOOTHING / SIZES[-1]
    layers = [[rng.normal(0.0, np.sqrt(2.0 / a), (a, b)), np.zeros(b)] for a, b in zip(SIZES, SIZES[1:])]
    first = [[np.zeros_like(p) for p in layer] for layer in layers]
    second = [[np.zeros_like(p) for p in layer] for layer in layers]
    steps = EPOCHS * (len(rows) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(rows))
        for begin in range(0, len(rows) - BATCH + 1, BATCH):
            pick = order[begin : begin + BATCH]
            step += 1
            rate = PEAK_RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            for at, grads in enumerate(gradients(layers, moved(rows[pick], rng), targets[pick])):
                for which, grad in enumerate(grads):
                    m, v, p = first[at][which], second[at][which], layers[at][which]
                    m += 0.1 * (grad - m)
                    v += 0.001 * (grad * grad - v)
                    p -= rate * (m / (1 - 0.9**step) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8))
                    if which == 0:
                        p -= rate * WEIGHT_DECAY * p
    return layers


def as_written(layers):
    """The layers in float32, with the division of the pixels by 16 folded into the first (exact: a power of two)."""
    scaled = [(layers[0][0] / MAX_PIXEL, layers[0][1])] + layers[1:]
    return [(weights.astype("<f4"), bias.astype("<f4")) for weights, bias in scaled]


def accuracy(layers, pixels, labels):
    """How many of the scans the written network reads right, computed in float32."""
    return np.mean(forward(as_written(layers), pixels.astype(np.float32))[-1].argmax(axis=1) == labels)


def write(folder, pixels, labels, layers):
    with open(folder / "digits.bin", "wb") as out:
        out.write(b"WEIRDIGS" + struct.pack("<4I", SCANS, TRAINING, 8, 8) + pixels.tobytes() + labels.tobytes())
    with open(folder / "weights.bin", "wb") as out:
        out.write(b"WEIRMLPS" + struct.pack(f"<I{len(SIZES)}I", len(SIZES) - 1, *SIZES))
        for weights, bias in as_written(layers):
            out.write(weights.tobytes() + bias.tobytes())


def main():
    parser = argparse.ArgumentParser(description="Trains the network of the digits examples.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent)
    parser.add_argument("--validate", action="store_true", help="measure on a fifth of the training part")
    options = parser.parse_args()
    pixels, labels = load()
    if options.validate:
        kept = TRAINING * 4 // 5
        layers = train(pixels[:kept], labels[:kept])
        result = accuracy(layers, pixels[kept:TRAINING], labels[kept:TRAINING])
        print(f"validation: {result:.2%} of {TRAINING - kept}")
        return
    layers = train(pixels[:TRAINING], labels[:TRAINING])
    print(f"training: {accuracy(layers, pixels[:TRAINING], labels[:TRAINING]):.2%} of {TRAINING}")
    print(f"held out: {accuracy(layers, pixels[TRAINING:], labels[TRAINING:]):.2%} of {SCANS - TRAINING}")
    write(options.out, pixels, labels, layers)


if __name__ == "__main__":
    main()
