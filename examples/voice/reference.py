#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes what Silero VAD says about the clips, as ONNX Runtime computes it: one text file beside each clip.

    pip install numpy onnxruntime packaging
    python3 reference.py silero_vad-6.2.3-py3-none-any.whl

A line is "p" and the probability of a frame of 32 ms, or "s" and the first sample and the end of a segment. Probabilities come
from the wheel's default model; segments from its own function, with the settings that it comes with.
"""

import importlib.util
import pathlib
import sys
import tempfile
import types
import wave
import zipfile

import numpy
import onnxruntime

FRAMES = {16000: (512, 64), 8000: (256, 32)}


def read(path):
    """The rate and the samples, from -1 to 1; stereo becomes its mean."""
    if path.suffix == ".raw":
        return 16000, numpy.frombuffer(path.read_bytes(), "<i2").astype(numpy.float32) / 32768
    with wave.open(str(path)) as sound:
        samples = numpy.frombuffer(sound.readframes(sound.getnframes()), "<i2").astype(numpy.float32) / 32768
        return sound.getframerate(), samples.reshape(-1, sound.getnchannels()).mean(1, dtype=numpy.float32)


def probabilities(session, rate, samples):
    size, context = FRAMES[rate]
    state = numpy.zeros((2, 1, 128), numpy.float32)
    before = numpy.zeros(context, numpy.float32)
    result = []
    for frame in numpy.append(samples, numpy.zeros(-len(samples) % size, numpy.float32)).reshape(-1, size):
        frame = numpy.concatenate([before, frame])
        feed = {"input": frame[None], "state": state, "sr": numpy.array(rate, numpy.int64)}
        probability, state = session.run(None, feed)
        before = frame[-context:]
        result.append(float(probability[0, 0]))
    return result


def segments_of(folder):
    """The wheel's function from probabilities to segments. Its module wants PyTorch, which that function does not use."""
    torch = types.ModuleType("torch")
    torch.Tensor, torch.device, torch.no_grad = object, lambda *_: None, lambda: lambda function: function
    sys.modules.setdefault("torch", torch)
    spec = importlib.util.spec_from_file_location("utils_vad", folder / "silero_vad" / "utils_vad.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.get_speech_timestamps_from_probs


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    clips = pathlib.Path(__file__).resolve().parent / "clips"
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(sys.argv[1]) as wheel:
        wheel.extractall(folder)
        folder = pathlib.Path(folder)
        session = onnxruntime.InferenceSession(str(folder / "silero_vad" / "data" / "silero_vad.onnx"))
        find_segments = segments_of(folder)
        for clip in sorted(path for path in clips.iterdir() if path.suffix in (".wav", ".raw")):
            rate, samples = read(clip)
            found = probabilities(session, rate, samples)
            lines = [f"p {p:.9g}\n" for p in found]
            for segment in find_segments(found, rate, audio_length_samples=len(samples)):
                lines.append(f"s {segment['start']} {segment['end']}\n")
            (clips / (clip.name + ".txt")).write_text("".join(lines))


if __name__ == "__main__":
    main()
