#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The digits network from Python with ctypes and nothing else.

    python3 digits.py libweir.so [folder with digits.bin and weights.bin]

The library may also be named by the environment variable WEIR_LIBRARY. The graph runs twice: on weir's built-in pool
with two threads, and on a pool that is written in Python below, whose parallel_for is a loop. Ends with status 1 if the
two give different bits or fewer than 97.5 % of the held-out digits are read right.
"""

import ctypes
import os
import pathlib
import struct
import sys
from ctypes import CFUNCTYPE, POINTER, Structure, addressof, byref, sizeof
from ctypes import c_char_p, c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

VERSION = (0, 1)  # the weir.h that the declarations below were written after
GOAL = 0.975

WEIR_F32, WEIR_S32 = 1, 2
WEIR_ENGINE_CPU = 1
WEIR_MATMUL_BIAS, WEIR_MATMUL_RELU = 4, 8


class TensorDesc(Structure):
    _fields_ = [("dtype", c_uint32), ("rank", c_uint32), ("dims", c_int64 * 8)]


class Memory(Structure):
    """weir_memory; members that stay zero make it the caller's memory at `data`."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("source", c_uint32),
        ("reserved", c_uint32),
        ("data", c_void_p),
        ("bytes", c_size_t),
        ("release", c_void_p),
        ("release_ctx", c_void_p),
        ("buffer", c_void_p),
        ("offset", c_size_t),
        ("device", c_void_p),
    ]


class MatmulDesc(Structure):
    _fields_ = [("struct_size", c_size_t), ("flags", c_uint64)]


TaskFn = CFUNCTYPE(None, c_void_p, c_int32)
NumThreadsFn = CFUNCTYPE(c_int32, c_void_p)
ParallelForFn = CFUNCTYPE(c_int32, c_void_p, c_int32, TaskFn, c_void_p)
ReleaseFn = CFUNCTYPE(None, c_void_p)


class ThreadpoolVtable(Structure):
    """Members that stay zero are NULL: weir does without them."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("flags", c_uint64),
        ("num_threads", NumThreadsFn),
        ("parallel_for", ParallelForFn),
        ("schedule", c_void_p),
        ("in_parallel", c_void_p),
        ("thread_index", c_void_p),
        ("help", c_void_p),
        ("release", ReleaseFn),
        ("max_threads", c_void_p),
    ]


# The arguments of every function used here. Those that return a weir_status raise WeirError when it is not 0.
HANDLE, OUT = c_void_p, POINTER(c_void_p)
STATUS_FUNCTIONS = {
    "weir_check_version": [c_uint32, c_uint32],
    "weir_threadpool_attr_create": [OUT],
    "weir_threadpool_attr_set_num_threads": [HANDLE, c_int32],
    "weir_threadpool_create_builtin": [HANDLE, OUT],
    "weir_threadpool_create": [POINTER(ThreadpoolVtable), c_void_p, OUT],
    "weir_engine_attr_create": [c_uint32, OUT],
    "weir_engine_attr_set_threadpool": [HANDLE, HANDLE],
    "weir_engine_create": [c_uint32, c_uint32, HANDLE, OUT],
    "weir_tensor_create": [HANDLE, POINTER(TensorDesc), POINTER(Memory), OUT],
    "weir_kernel_create_matmul": [HANDLE, POINTER(MatmulDesc), HANDLE, OUT],
    "weir_kernel_create_softmax": [HANDLE, c_void_p, HANDLE, OUT],
    "weir_kernel_create_argmax": [HANDLE, c_void_p, HANDLE, OUT],
    "weir_graph_create": [c_char_p, OUT],
    "weir_graph_add_input": [HANDLE, c_char_p, POINTER(TensorDesc), POINTER(c_uint64)],
    "weir_graph_add_constant": [HANDLE, c_char_p, HANDLE, POINTER(c_uint64)],
    "weir_graph_add_kernel": [
        HANDLE,
        c_char_p,
        HANDLE,
        POINTER(c_uint64),
        c_size_t,
        POINTER(c_uint64),
        c_size_t,
        POINTER(c_uint64),
    ],
    "weir_graph_add_output": [HANDLE, c_char_p, c_uint64],
    "weir_compile_options_create": [OUT],
    "weir_compile_options_set_hop_ns": [HANDLE, c_uint64],
    "weir_graph_compile": [HANDLE, OUT, c_size_t, HANDLE, OUT],
    "weir_program_run": [HANDLE, HANDLE, OUT, c_size_t, OUT, c_size_t, HANDLE],
}
VOID_FUNCTIONS = [
    "weir_threadpool_attr_destroy",
    "weir_threadpool_release",
    "weir_engine_attr_destroy",
    "weir_engine_release",
    "weir_tensor_release",
    "weir_kernel_release",
    "weir_graph_destroy",
    "weir_compile_options_destroy",
    "weir_program_release",
]
TEXT_FUNCTIONS = {"weir_version_string": [], "weir_last_error_message": [], "weir_status_name": [c_int32]}


class WeirError(Exception):
    """A weir call failed; the text is the library's own."""


def open_library(path):
    """Loads weir and declares what is used of it.

    A ctypes call gives up the interpreter lock and a callback takes it, whichever thread it comes from. So pools and
    Python get along.
    """
    weir = ctypes.CDLL(path)

    def check(status, function, _arguments):
        if status != 0:
            name, text = weir.weir_status_name(status).decode(), weir.weir_last_error_message().decode()
            raise WeirError(f"{function.__name__}: {name}: {text}")

    for name, arguments in TEXT_FUNCTIONS.items():
        getattr(weir, name).argtypes, getattr(weir, name).restype = arguments, c_char_p
    for name in VOID_FUNCTIONS:
        getattr(weir, name).argtypes, getattr(weir, name).restype = [HANDLE], None
    for name, arguments in STATUS_FUNCTIONS.items():
        function = getattr(weir, name)
        function.argtypes, function.restype, function.errcheck = arguments, c_int32, check
    weir.weir_check_version(*VERSION)
    return weir


def create(function, *arguments):
    """Calls a weir_*_create* function and returns the handle that it gives."""
    handle = c_void_p()
    function(*arguments, byref(handle))
    return handle


def desc(dtype, *dims):
    return TensorDesc(dtype, len(dims), (c_int64 * 8)(*dims))


def over(array):
    """The memory of an array, which must live as long as the tensor on it."""
    return Memory(struct_size=sizeof(Memory), data=addressof(array))


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
    An exception in a callback does not reach weir: ctypes prints it and returns 0. So callbacks had better not raise.
    """

    def __init__(self):
        self.calls = 0
        self.released = False
        self.vtable = ThreadpoolVtable(
            struct_size=ctypes.sizeof(ThreadpoolVtable),
            num_threads=NumThreadsFn(lambda _ctx: 2),
            parallel_for=ParallelForFn(self._parallel_for),
            release=ReleaseFn(self._release),
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
        attr = create(weir.weir_engine_attr_create, WEIR_ENGINE_CPU)
        weir.weir_engine_attr_set_threadpool(attr, pool)
        self.engine = create(weir.weir_engine_create, WEIR_ENGINE_CPU, 0, attr)
        weir.weir_engine_attr_destroy(attr)
        self.graph = create(weir.weir_graph_create, b"digits")
        self.program = self._compile()

    def _tensor(self, shape, array):
        return create(self.weir.weir_tensor_create, self.engine, byref(shape), byref(over(array)))

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
        weir.weir_graph_add_input(self.graph, b"scans", byref(desc(WEIR_F32, self.data.count, sizes[0])), byref(value))
        value = value.value
        for number, (weights, bias) in enumerate(self.data.layers, 1):
            inputs, outputs = sizes[number - 1], sizes[number]
            flags = WEIR_MATMUL_BIAS | (WEIR_MATMUL_RELU if number < len(self.data.layers) else 0)
            matmul = MatmulDesc(ctypes.sizeof(MatmulDesc), flags)
            kernel = create(weir.weir_kernel_create_matmul, self.engine, byref(matmul), None)
            weights = self._constant(f"weights {number}", desc(WEIR_F32, inputs, outputs), weights)
            bias = self._constant(f"bias {number}", desc(WEIR_F32, outputs), bias)
            value = self._call(f"layer {number}", kernel, value, weights, bias)
        weir.weir_graph_add_output(self.graph, b"logits", value)
        value = self._call("softmax", create(weir.weir_kernel_create_softmax, self.engine, None, None), value)
        value = self._call("argmax", create(weir.weir_kernel_create_argmax, self.engine, None, None), value)
        weir.weir_graph_add_output(self.graph, b"classes", value)
        options = create(weir.weir_compile_options_create)
        weir.weir_compile_options_set_hop_ns(options, 0)  # let small work go to the pool too
        program = create(weir.weir_graph_compile, self.graph, (c_void_p * 1)(self.engine), 1, options)
        weir.weir_compile_options_destroy(options)
        return program

    def run(self):
        """Reads all scans: the logits as bytes, and the classes as a list."""
        count, outputs = self.data.count, self.data.sizes[-1]
        logits, classes = (c_float * (count * outputs))(), (c_int32 * count)()
        tensors = [
            self._tensor(desc(WEIR_F32, count, self.data.sizes[0]), self.data.pixels),
            self._tensor(desc(WEIR_F32, count, outputs), logits),
            self._tensor(desc(WEIR_S32, count), classes),
        ]
        given, results = (c_void_p * 1)(tensors[0]), (c_void_p * 2)(*tensors[1:])
        self.weir.weir_program_run(self.program, None, given, 1, results, 2, None)
        for tensor in tensors:
            self.weir.weir_tensor_release(tensor)
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
    attr = create(weir.weir_threadpool_attr_create)
    weir.weir_threadpool_attr_set_num_threads(attr, threads)
    pool = create(weir.weir_threadpool_create_builtin, attr)
    weir.weir_threadpool_attr_destroy(attr)
    return pool


def main():
    library = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("WEIR_LIBRARY")
    if library is None:
        sys.exit(__doc__)
    beside = pathlib.Path(__file__).resolve().parent.parent / "digits"
    data = Dataset(pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else beside)
    weir = open_library(library)
    print(f"weir {weir.weir_version_string().decode()} from Python by ctypes")

    logits, accuracy = read_on(weir, data, "built-in pool, 2 threads", builtin_pool(weir, 2))
    host = PythonPool()
    host_pool = create(weir.weir_threadpool_create, byref(host.vtable), None)
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
