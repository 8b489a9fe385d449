# SPDX-License-Identifier: MIT OR Apache-2.0
"""Imports an ONNX model into a weir graph, through the C interface.

    weir = weir_ctypes.load("libweir.so")
    program = onnx_graph.compile_model(weir, model, threads=1)
    outputs = program.run({"data": array})

All shapes are known at import: what depends on shapes and constants alone is computed here, and is a constant of the
graph. onnx_operators.py names the operators; a node that has no form there is refused, with its name and the reason.
"""

import ctypes
import dataclasses
import pathlib
import sys
from ctypes import byref, c_uint64, c_void_p

import ml_dtypes
import numpy
import onnx_rewriting

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/python"))
from weir_ctypes import create, sized  # noqa: E402

DTYPES = {
    numpy.dtype(numpy.float32): "WEIR_F32",
    numpy.dtype(numpy.int32): "WEIR_S32",
    numpy.dtype(numpy.uint8): "WEIR_U8",
    numpy.dtype(numpy.int8): "WEIR_S8",
    numpy.dtype(numpy.float16): "WEIR_F16",
    numpy.dtype(ml_dtypes.bfloat16): "WEIR_BF16",
    numpy.dtype(numpy.bool_): "WEIR_BOOL",
    numpy.dtype(numpy.int64): "WEIR_S64",
}
# Types that weir lacks, and those that hold all their numbers; uint64 as the s64 of the same bits.
HELD = {
    **{numpy.dtype(t): numpy.dtype(numpy.int32) for t in (numpy.int16, numpy.uint16, ml_dtypes.int4, ml_dtypes.uint4)},
    **{numpy.dtype(t): numpy.dtype(numpy.int32) for t in (ml_dtypes.int2, ml_dtypes.uint2)},
    **{numpy.dtype(t): numpy.dtype(numpy.int64) for t in (numpy.uint32, numpy.uint64)},
}
MAX_RANK = 8


class Refusal(Exception):
    """A node that weir has no form for. `wanted` are names of values that would have to be constants."""

    def __init__(self, reason, wanted=()):
        super().__init__(reason)
        self.reason, self.wanted, self.node = reason, tuple(wanted), None

    def __str__(self):
        return f"{self.node}: {self.reason}" if self.node else self.reason


def held(dtype):
    """The type of weir that holds this one."""
    return HELD.get(dtype, dtype)


@dataclasses.dataclass(eq=False)
class Value:
    """A value of the model: a constant (`array`), or a value of the graph (`id`), or both once a kernel reads it."""

    dtype: numpy.dtype
    shape: tuple
    array: numpy.ndarray = None
    id: int = None
    name: str = ""

    @property
    def rank(self):
        return len(self.shape)

    @property
    def size(self):
        return int(numpy.prod(self.shape, dtype=numpy.int64))


def constant(array):
    array = numpy.ascontiguousarray(array).reshape(numpy.shape(array))
    return Value(array.dtype, array.shape, array)


class Graph:
    """A weir graph under construction."""

    def __init__(self, weir, engine):
        self.weir, self.engine = weir, engine
        self.graph = create(weir.weir_graph_create, b"model")
        self.kinds = {}  # of each node, by its name
        self.name = ""  # of the model's node that kernels are now added for
        self.count = 0

    def desc(self, dtype, shape):
        dtype = held(dtype)
        if dtype not in DTYPES:
            raise Refusal(f"type {dtype}")
        if len(shape) > MAX_RANK:
            raise Refusal(f"rank {len(shape)}")
        dims = (ctypes.c_int64 * MAX_RANK)(*shape)
        return self.weir.weir_tensor_desc(getattr(self.weir, DTYPES[dtype]), len(shape), dims)

    def input(self, name, dtype, shape):
        return Value(dtype, tuple(shape), id=self.add_input(name, self.desc(dtype, shape)), name=name)

    def output(self, name, value):
        self.add_output(name, self.use(value))

    def use(self, value):
        """The value's number in the graph; a constant is added to it."""
        if value.id is None:
            value.id = self.add_constant(self.desc(value.dtype, value.shape), value.array.astype(held(value.dtype)))
        return value.id

    def add_input(self, name, desc):
        value = c_uint64()
        self.weir.weir_graph_add_input(self.graph, name.encode(), byref(desc), byref(value))
        return value.value

    def add_output(self, name, number):
        self.weir.weir_graph_add_output(self.graph, name.encode(), number)

    def add_constant(self, desc, array):
        tensor = Tensor(self.weir, self.engine, desc, array.dtype)
        tensor.array[...] = array
        number = c_uint64()
        self.count += 1
        name = f"constant {self.count}".encode()
        self.weir.weir_graph_add_constant(self.graph, name, tensor.handle, byref(number))
        tensor.release()
        return number.value

    def kernel(self, operator, members, inputs, dtype, shape, kind=None):
        """Adds a built-in kernel, by its descriptor's members; the result is its output."""
        return self.kernels(operator, members, inputs, dtype, [shape], kind)[0]

    def kernels(self, operator, members, inputs, dtype, shapes, kind=None):
        """A kernel with several outputs, of one type or of one each."""
        dtypes = dtype if isinstance(dtype, list) else [dtype] * len(shapes)
        for of, shape in zip(dtypes, shapes):
            self.desc(of, shape)  # refuses what weir has no type for
        numbers = [self.use(value) for value in inputs]
        desc = sized(getattr(self.weir, f"weir_{operator}_desc"))
        for member, value in members.items():
            if isinstance(value, (list, tuple)):
                getattr(desc, member)[: len(value)] = value
            else:
                setattr(desc, member, value)
        outputs = self.add_kernel(operator, desc, numbers, len(shapes), kind or operator)
        return [Value(of, tuple(map(int, shape)), id=output) for of, shape, output in zip(dtypes, shapes, outputs)]

    def add_kernel(self, operator, desc, numbers, num_outputs, kind):
        """The numbers of the kernel's outputs."""
        weir = self.weir
        kernel = create(getattr(weir, f"weir_kernel_create_{operator}"), self.engine, byref(desc), None)
        self.count += 1
        name = f"{self.count} {self.name}"[:120]
        self.kinds[name] = kind
        outputs = (c_uint64 * num_outputs)()
        values = (c_uint64 * len(numbers))(*numbers)
        weir.weir_graph_add_kernel(
            self.graph, name.encode(), kernel, values, len(numbers), outputs, len(outputs), None
        )
        weir.weir_kernel_release(kernel)
        return list(outputs)

    def compile(self, inputs, outputs, statistics=False):
        weir = self.weir
        flags = weir.WEIR_COMPILE_STATISTICS if statistics else 0
        options = sized(weir.weir_compile_options, flags=flags)
        program = create(weir.weir_graph_compile, self.graph, (c_void_p * 1)(self.engine), 1, byref(options))
        return Program(self, program, inputs, outputs)

    def close(self):
        self.weir.weir_graph_destroy(self.graph)


class Tensor:
    """A tensor in the engine's memory, and that memory as an array. A dimension of -1 is decided by each run."""

    def __init__(self, weir, engine, desc, dtype):
        self.weir, self.dtype = weir, dtype
        self.handle = create(weir.weir_tensor_create, engine, byref(desc), None)
        self.open = -1 in desc.dims[: desc.rank]
        self.fixed = None if self.open else self.found(desc)

    @property
    def array(self):
        if not self.open:
            return self.fixed
        desc = self.weir.weir_tensor_desc()
        self.weir.weir_tensor_get_desc(self.handle, byref(desc))
        return self.found(desc)

    def found(self, desc):
        shape = tuple(desc.dims[: desc.rank])
        size = int(numpy.prod(shape, dtype=numpy.int64)) * self.dtype.itemsize
        data = c_void_p()
        self.weir.weir_tensor_get_data(self.handle, byref(data))
        memory = (ctypes.c_char * size).from_address(data.value) if size else bytearray()
        return numpy.frombuffer(memory, numpy.uint8).view(self.dtype).reshape(shape)

    def release(self):
        self.weir.weir_tensor_release(self.handle)


class Program:
    """A compiled model with tensors for its inputs and outputs."""

    def __init__(self, graph, program, inputs, outputs):
        self.weir, self.graph, self.program = graph.weir, graph, program
        self.tensors = [
            {k: Tensor(self.weir, graph.engine, graph.desc(v.dtype, v.shape), held(v.dtype)) for k, v in side.items()}
            for side in (inputs, outputs)
        ]
        self.handles = [(c_void_p * len(side))(*(t.handle for t in side.values())) for side in self.tensors]
        self.dtypes = {name: value.dtype for name, value in outputs.items()}

    def set_inputs(self, arrays):
        for name, tensor in self.tensors[0].items():
            tensor.array[...] = arrays[name]

    def step(self):
        """One run, on the inputs as they are."""
        given, results = self.handles
        self.weir.weir_program_run(self.program, None, given, len(given), results, len(results), None)

    def outputs(self):
        return {name: tensor.array.astype(self.dtypes[name]) for name, tensor in self.tensors[1].items()}

    def run(self, arrays):
        self.set_inputs(arrays)
        self.step()
        return self.outputs()

    def node_stats(self):
        """(node, kind, runs, nanoseconds of the shortest) of each node that runs have gone through."""
        weir, info = self.weir, sized(self.weir.weir_program_info)
        weir.weir_program_get_info(self.program, byref(info))
        for index in range(info.num_nodes):
            stats = sized(weir.weir_node_stats)
            weir.weir_program_get_node_stats(self.program, index, byref(stats))
            name = stats.name.decode()
            yield name, self.graph.kinds.get(name.split("+")[0], "other"), stats.count, stats.min_ns

    def report(self):
        length = ctypes.c_size_t()
        arguments = (self.program, self.weir.WEIR_REPORT_TEXT)
        self.weir.weir_program_report(*arguments, None, 0, byref(length))
        text = ctypes.create_string_buffer(length.value + 1)
        self.weir.weir_program_report(*arguments, text, len(text), None)
        return text.value.decode()

    def close(self):
        for side in self.tensors:
            for tensor in side.values():
                tensor.release()
        self.weir.weir_program_release(self.program)
        self.graph.close()
        self.weir.weir_engine_release(self.graph.engine)


def make_engine(weir, threads):
    """A CPU engine whose work is done by so many threads, the caller of a run among them."""
    attr = create(weir.weir_engine_attr_create, weir.WEIR_ENGINE_CPU)
    if threads > 1:
        options = sized(weir.weir_threadpool_options, num_threads=threads - 1)
        pool = create(weir.weir_threadpool_create_builtin, byref(options))
        weir.weir_engine_attr_set_threadpool(attr, pool)
        weir.weir_threadpool_release(pool)
    engine = create(weir.weir_engine_create, weir.WEIR_ENGINE_CPU, 0, attr)
    weir.weir_engine_attr_destroy(attr)
    return engine


def add_model(graph, model, shapes=None, constants=None):
    """Adds a model to a graph; `shapes` are those of inputs, and `constants` inputs that are known now. The result are
    its inputs and outputs, by name."""
    import onnx_operators  # which needs this module

    source = onnx_rewriting.Source(model, constants or {})
    onnx_rewriting.rewrite(source)
    inputs = {}
    values = {name: constant(array) for name, array in source.constants.items()}
    for name, (dtype, shape) in source.inputs.items():
        shape = (shapes or {}).get(name, shape)
        if shape is None or any(dim is None for dim in shape):
            raise Refusal(f"input '{name}' has an open shape")
        inputs[name] = values[name] = graph.input(name, dtype, shape)
    onnx_operators.convert(graph, source, source.nodes, values)
    outputs = {name: values[name] for name in source.outputs}
    for name, value in outputs.items():
        graph.output(name, value)
    return inputs, outputs


def compile_model(weir, model, threads=1, shapes=None, constants=None, statistics=False):
    """Imports and compiles a model; see add_model."""
    graph = Graph(weir, make_engine(weir, threads))
    try:
        inputs, outputs = add_model(graph, model, shapes, constants)
        program = graph.compile(inputs, outputs, statistics)
    except Exception:
        graph.close()
        weir.weir_engine_release(graph.engine)
        raise
    program.folded = all(value.array is not None for value in outputs.values())
    return program
