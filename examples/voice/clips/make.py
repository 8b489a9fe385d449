#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes the clips of the voice example from recordings that come with PocketSphinx.

    python3 make.py /usr/share/pocketsphinx/test/data

The folder is the one of Debian's package pocketsphinx-testdata. See ../NOTICE for the recordings' licence.

    go_forward.raw       goforward.raw as it is: 16-bit samples at 16 kHz
    commands.wav         goforward.raw, then numbers.raw
    go_forward_8k.wav    goforward.raw at 8 kHz, in stereo: the right side is half as loud
"""

import array
import math
import pathlib
import sys
import wave


def read(path):
    samples = array.array("h", path.read_bytes())
    if sys.byteorder == "big":
        samples.byteswap()
    return samples


def write(name, rate, channels, samples):
    with wave.open(name, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(b"".join(sample.to_bytes(2, "little", signed=True) for sample in samples))


def half_rate(samples):
    """Every second sample behind a low pass: a sinc of half the band in a window of 63 taps."""
    middle = 31
    taps = []
    for i in range(2 * middle + 1):
        x = (i - middle) * math.pi / 2
        window = 0.5 - 0.5 * math.cos(2 * math.pi * (i + 1) / (2 * middle + 2))
        taps.append((math.sin(x) / x if x else 1.0) * window)
    scale = sum(taps)
    padded = [0] * middle + list(samples) + [0] * middle
    sums = (sum(map(lambda a, b: a * b, taps, padded[i : i + len(taps)])) for i in range(0, len(samples), 2))
    return [max(-32768, min(32767, round(s / scale))) for s in sums]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source, here = pathlib.Path(sys.argv[1]), pathlib.Path(__file__).parent
    forward, numbers = read(source / "goforward.raw"), read(source / "numbers.raw")
    (here / "go_forward.raw").write_bytes((source / "goforward.raw").read_bytes())
    write(str(here / "commands.wav"), 16000, 1, forward + numbers)
    write(str(here / "go_forward_8k.wav"), 8000, 2, [s for left in half_rate(forward) for s in (left, left // 2)])


if __name__ == "__main__":
    main()
