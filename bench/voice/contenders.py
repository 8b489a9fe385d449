# SPDX-License-Identifier: MIT OR Apache-2.0
"""Who hears the sound, each in a process of its own: weir, ONNX Runtime, and two that do nothing of it.

A contender has `prepare(frame)`, which brings the samples to where it wants them, and `step()`, which is timed.
"""

import ctypes
import gc
import os
import resource
import time
import wave

import numpy

FRAME, CONTEXT, RATE = 512, 64, 16000
clock = time.perf_counter_ns


def read_frames(path):
    """The frames of a mono WAV file at 16 kHz, the last one filled up with zeros."""
    with wave.open(str(path)) as sound:
        assert (sound.getframerate(), sound.getnchannels()) == (RATE, 1)
        samples = numpy.frombuffer(sound.readframes(sound.getnframes()), "<i2").astype(numpy.float32) / 32768
    return numpy.append(samples, numpy.zeros(-len(samples) % FRAME, numpy.float32)).reshape(-1, FRAME)


class Nothing:
    """The loop around the others."""

    def __init__(self, _paths):
        pass

    def prepare(self, frame):
        pass

    def step(self):
        pass

    def probability(self):
        return None


class Weir:
    def __init__(self, paths, threads):
        self.library = ctypes.CDLL(str(paths["library"]))
        self.library.voice_open.restype = ctypes.c_void_p
        self.library.voice_probability.restype = ctypes.c_float
        session = self.library.voice_open(str(paths["weights"]).encode(), RATE, threads)
        if not session:
            raise RuntimeError("weir cannot read its weights")
        self.session = ctypes.c_void_p(session)
        self.hear = self.library.voice_step
        self.hear.restype = None

    def prepare(self, frame):
        self.samples = ctypes.c_void_p(frame.ctypes.data)

    def step(self):
        self.hear(self.session, self.samples)

    def probability(self):
        return self.library.voice_probability(self.session)


def bind(session, inputs, outputs):
    """Inputs and outputs lie in memory of ours, where the session finds them without a copy."""
    import onnxruntime

    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    for name, array in outputs.items():
        binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    return binding


class OnnxRuntime:
    """A model of the wheel, with as little around it as Python allows: two bindings that hand the state to one another."""

    def __init__(self, paths, model, threads, spinning):
        self.make_session(str(paths["models"] / model), threads, spinning)
        self.samples = numpy.zeros((1, CONTEXT + FRAME), numpy.float32)
        self.result = numpy.zeros((1, 1), numpy.float32)
        states = [numpy.zeros((2, 1, 128), numpy.float32) for _ in range(2)]
        rate = numpy.array(RATE, numpy.int64)
        self.turns = [
            bind(
                self.session,
                {"input": self.samples, "state": states[turn], "sr": rate},
                {"output": self.result, "stateN": states[1 - turn]},
            )
            for turn in range(2)
        ]
        self.run, self.turn = self.session.run_with_iobinding, 0

    def make_session(self, model, threads, spinning):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "1" if spinning else "0")
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def prepare(self, frame):
        self.samples[0, :CONTEXT] = self.samples[0, FRAME:]
        self.samples[0, CONTEXT:] = frame
        self.binding = self.turns[self.turn]
        self.turn = 1 - self.turn

    def step(self):
        self.run(self.binding)

    def probability(self):
        return float(self.result[0, 0])


def field(number, value):
    """A field of a protocol buffer message: a number, a text or a message."""
    varint = lambda n: bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def identity_model():
    """An ONNX model with the inputs and outputs of the other one that passes two of them on."""

    def info(name, kind, dims):
        shape = b"".join(field(1, field(1, dim)) for dim in dims)
        return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))

    node = lambda source, target: field(1, field(1, source) + field(2, target) + field(4, "Identity"))
    graph = node("state", "stateN") + node("input", "output") + field(2, "identity")
    graph += field(11, info("input", 1, (1, 1))) + field(11, info("state", 1, (2, 1, 128))) + field(11, info("sr", 7, ()))
    graph += field(12, info("output", 1, (1, 1))) + field(12, info("stateN", 1, (2, 1, 128)))
    return field(1, 8) + field(8, field(2, 16)) + field(7, graph)


class Identity(OnnxRuntime):
    """ONNX Runtime without work: what the way from Python to a session and back costs."""

    def __init__(self, _paths):
        self.make_session(identity_model(), 1, False)
        arrays = [numpy.zeros((1, 1), numpy.float32), numpy.zeros((2, 1, 128), numpy.float32)]
        rate = numpy.array(RATE, numpy.int64)
        inputs = {"input": arrays[0], "state": arrays[1], "sr": rate}
        outputs = {"output": numpy.zeros_like(arrays[0]), "stateN": numpy.zeros_like(arrays[1])}
        self.binding, self.run = bind(self.session, inputs, outputs), self.session.run_with_iobinding

    def prepare(self, frame):
        pass

    def probability(self):
        return None


KINDS = {"nothing": Nothing, "identity": Identity, "weir": Weir, "onnx": OnnxRuntime}


def usage():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_nvcsw, used.ru_nivcsw


def hear(contender, frames, steps, pace_ns):
    """`steps` frames, one after the other or one every `pace_ns`: what each took, and what the process used."""
    times, voluntary, involuntary = [0] * steps, 0, 0
    gc.collect()
    gc.disable()
    cpu, begin = time.process_time_ns(), clock()
    before = usage()
    for i in range(steps):
        contender.prepare(frames[i % len(frames)])
        if pace_ns:
            time.sleep(max(0, begin + i * pace_ns - clock()) / 1e9)
            before = usage()  # the sleep is a switch of ours
        start = clock()
        contender.step()
        times[i] = clock() - start
        if pace_ns:
            after = usage()
            voluntary, involuntary = voluntary + after[0] - before[0], involuntary + after[1] - before[1]
    if not pace_ns:
        after = usage()
        voluntary, involuntary = after[0] - before[0], after[1] - before[1]
    wall = clock() - begin
    gc.enable()
    return {
        "times": times,
        "cpu": (time.process_time_ns() - cpu) / wall,
        "voluntary": voluntary,
        "involuntary": involuntary,
    }


def serve(pipe, paths, kind, arguments):
    """A process with one contender: does what comes through the pipe."""
    contender = KINDS[kind](paths, *arguments)
    frames = read_frames(paths["clip"])
    hear(contender, frames, 2 * len(frames), 0)  # so that everything is there
    while (order := pipe.recv()) is not None:
        if order == "probabilities":
            result = []
            for frame in frames:
                contender.prepare(frame)
                contender.step()
                result.append(contender.probability())
        elif order == "allocations":
            count = ctypes.CDLL(None).allocations_so_far
            count.restype = ctypes.c_uint64
            before, steps = count(), 10 * len(frames)
            for i in range(steps):
                contender.prepare(frames[i % len(frames)])
                contender.step()
            result = (count() - before) / steps
        else:
            result = hear(contender, frames, *order)
        pipe.send(result)


def be_busy():
    """A host that has other things to do."""
    parent = os.getppid()
    while os.getppid() == parent:
        sum(range(100000))
