#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The digits network from Python with ctypes and nothing else: weir_ctypes.py declares what weir_api.json tells.

    python3 digits.py libweir.so [folder with digits.bin and weights.bin]

The library may also be named by the environment variable WEIR_LIBRARY. The graph runs twice: on weir's built-in pool
with two threads, and on a pool that is written in Python below, whose parallel_for is a loop. Ends with status 1 if the
two give different bits or fewer than 97.5 % of the held-out digits are read right.
"""

import os
import pathlib
import struct
import sys
from ctypes import addressof, byref, c_float, c_int32, c_int64, c_uint64, c_void_p

import weir_ctypes
from weir_ctypes import create, sized

GOAL = 0.975


def desc(weir, dtype, *dims):
    return weir.weir_tensor_desc(dtype, len(dims), (c_int64 * 8)(*dims))


def over(weir, array):
    """The memory of an array, which must live as long as the tensor on it."""
    return byref(sized(weir.weir_memory, data=addressof(array)))


class Dataset:
    """The held-out scans and the network, see train.py for the formats."""

    def __init__(self, folder):
        raw = (folder / "digits.bin").read_bytes()
        magic, scans, training, height, width = struct.unpack_from("<8s4I", raw)
        if magic != b"WEIRDIGS" or (height, width) != (8, 8):
            raise ValueError("digits.bin is not what it should be")
        size, first = height * width, struct.calcsize("<8s4I")
        self.count = scans - training
        pixels = raw[first + training * size : first + scans * size]
        self.pixels = (c_float * len(pixels))(*pixels)
        self.labels = raw[first + scans * size + training :]

        raw = (folder / "weights.bin").read_bytes()
        magic, layers = struct.unpack_from("<8sI", raw)
        if magic != b"WEIRMLPS":
            raise ValueError("weights.bin is not what it should be")
        self.sizes = struct.unpack_from(f"<{layers + 1}I", raw, 12)
        at = 12 + 4 * (layers + 1)
        self.layers = []
        for inputs, outputs in zip(self.sizes, self.sizes[1:]):
            arrays = []
            for length in (inputs * outputs, outputs):
                arrays.append((c_float * length)(*struct.unpack_from(f"<{length}f", raw, at)))
                at += 4 * length
            self.layers.append(arrays)


class PythonPool:
    """A thread pool whose parallel_for makes the calls one after the other in the thread that asked for them.

    The callbacks must live as long as weir may call them, so this object holds them; `released` says when that is over.
    An exception in a callback does not reach weir: ctypes prints it and returns any number (up to Python 3.11), or 0.
    So callbacks catch what they raise, and return a status.
    """

    def __init__(self, weir):
        self.calls = 0
        self.released = False
        members = weir.members("weir_threadpool_vtable")
        self.vtable = sized(
            weir.weir_threadpool_vtable,
            num_threads=members["num_threads"](lambda _ctx: 2),
            parallel_for=members["parallel_for"](self._parallel_for),
            release=members["release"](self._release),
        )

    def _parallel_for(self, _ctx, count, task, arg):
        for i in range(count):
            task(arg, i)
            self.calls += 1
        return 0

    def _release(self, _ctx):
        self.released = True


class Network:
    """The graph, compiled for an engine that works on the given pool, and one run of it over all scans."""

    def __init__(self, weir, data, pool):
        self.weir, self.data = weir, data
        attr = create(weir.weir_engine_attr_create, weir.WEIR_ENGINE_CPU)
        weir.weir_engine_attr_set_threadpool(attr, pool)
        self.engine = create(weir.weir_engine_create, weir.WEIR_ENGINE_CPU, 0, attr)
        weir.weir_engine_attr_destroy(attr)
        self.graph = create(weir.weir_graph_create, b"digits")
        self.program = self._compile()

    def _tensor(self, shape, array):
        return create(self.weir.weir_tensor_create, self.engine, byref(shape), over(self.weir, array))

    def _constant(self, name, shape, array):
        tensor, value = self._tensor(shape, array), c_uint64()
        self.weir.weir_graph_add_constant(self.graph, name.encode(), tensor, byref(value))
        self.weir.weir_tensor_release(tensor)  # the graph holds it now
        return value.value

    def _call(self, name, kernel, *inputs):
        output = c_uint64()
        values = (c_uint64 * len(inputs))(*inputs)
        self.weir.weir_graph_add_kernel(self.graph, name.encode(), kernel, values, len(inputs), byref(output), 1, None)
        self.weir.weir_kernel_release(kernel)
        return output.value

    def _compile(self):
        weir, sizes = self.weir, self.data.sizes
        value = c_uint64()
        weir.weir_graph_add_input(self.graph, b"scans", byref(desc(weir, weir.WEIR_F32, self.data.count, sizes[0])), byref(value))
        value = value.value
        for number, (weights, bias) in enumerate(self.data.layers, 1):
            inputs, outputs = sizes[number - 1], sizes[number]
            last = weir.WEIR_ACTIVATION_RELU if number < len(self.data.layers) else weir.WEIR_ACTIVATION_NONE
            matmul = sized(weir.weir_matmul_desc, flags=weir.WEIR_MATMUL_BIAS, activation=last)
            kernel = create(weir.weir_kernel_create_matmul, self.engine, byref(matmul), None)
            weights = self._constant(f"weights {number}", desc(weir, weir.WEIR_F32, inputs, outputs), weights)
            bias = self._constant(f"bias {number}", desc(weir, weir.WEIR_F32, outputs), bias)
            value = self._call(f"layer {number}", kernel, value, weights, bias)
        weir.weir_graph_add_output(self.graph, b"logits", value)
        value = self._call("softmax", create(weir.weir_kernel_create_softmax, self.engine, None, None), value)
        argmax = sized(weir.weir_reduce_desc, op=weir.WEIR_REDUCE_ARGMAX, num_axes=1, axes=(c_int32 * 8)(1))
        value = self._call("argmax", create(weir.weir_kernel_create_reduce, self.engine, byref(argmax), None), value)
        weir.weir_graph_add_output(self.graph, b"classes", value)
        options = sized(weir.weir_compile_options, hop_ns=weir.WEIR_HOP_NONE)  # let small work go to the pool too
        return create(weir.weir_graph_compile, self.graph, (c_void_p * 1)(self.engine), 1, byref(options))

    def run(self):
        """Reads all scans: the logits as bytes, and the classes as a list."""
        weir = self.weir
        count, outputs = self.data.count, self.data.sizes[-1]
        logits, classes = (c_float * (count * outputs))(), (c_int32 * count)()
        tensors = [
            self._tensor(desc(weir, weir.WEIR_F32, count, self.data.sizes[0]), self.data.pixels),
            self._tensor(desc(weir, weir.WEIR_F32, count, outputs), logits),
            self._tensor(desc(weir, weir.WEIR_S32, count), classes),
        ]
        given, results = (c_void_p * 1)(tensors[0]), (c_void_p * 2)(*tensors[1:])
        weir.weir_program_run(self.program, None, given, 1, results, 2, None)
        for tensor in tensors:
            weir.weir_tensor_release(tensor)
        return bytes(logits), list(classes)

    def close(self):
        self.weir.weir_program_release(self.program)
        self.weir.weir_graph_destroy(self.graph)
        self.weir.weir_engine_release(self.engine)


def read_on(weir, data, name, pool):
    """Reads the digits on a pool, gives the pool up, and prints how many were right."""
    network = Network(weir, data, pool)
    logits, classes = network.run()
    network.close()
    weir.weir_threadpool_release(pool)
    right = sum(read == written for read, written in zip(classes, data.labels))
    print(f"{name}: {right} of {data.count} digits read right, {right / data.count:.1%}")
    return logits, right / data.count


def builtin_pool(weir, threads):
    options = sized(weir.weir_threadpool_options, num_threads=threads)
    return create(weir.weir_threadpool_create_builtin, byref(options))


def main():
    library = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("WEIR_LIBRARY")
    if library is None:
        sys.exit(__doc__)
    beside = pathlib.Path(__file__).resolve().parent.parent / "digits"
    data = Dataset(pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else beside)
    weir = weir_ctypes.load(library)
    print(f"weir {weir.weir_version_string().decode()} from Python by ctypes")

    logits, accuracy = read_on(weir, data, "built-in pool, 2 threads", builtin_pool(weir, 2))
    host = PythonPool(weir)
    host_pool = create(weir.weir_threadpool_create, byref(host.vtable), None, None)
    host_logits, host_accuracy = read_on(weir, data, "pool written in Python", host_pool)

    problems = []
    if min(accuracy, host_accuracy) < GOAL:
        problems.append(f"fewer than {GOAL:.1%} were read right")
    if logits != host_logits:
        problems.append("the two pools gave different logits")
    if host.calls == 0:
        problems.append("no work reached the pool written in Python")
    if not host.released:
        problems.append("the pool written in Python was not released")
    if problems:
        sys.exit("FAILED: " + "; ".join(problems))
    print(f"the logits are the same bit for bit; the pool written in Python made {host.calls} calls")


if __name__ == "__main__":
    main()
