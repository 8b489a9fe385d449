# SPDX-License-Identifier: MIT OR Apache-2.0
"""oneDNN 3 by its C interface, for single convolutions and poolings: what layers.py needs of it.

Numbers are those of dnnl_types.h, which are the same in all versions 3.x. A layer is made for the layout that oneDNN
chooses by itself ("any", where data is in blocks of channels) or for channels last; what is in plain order is brought
there before the clock runs, as a network would do once.
"""

import ctypes
import os

import numpy

ANY = 1
F32 = 3
FORWARD_INFERENCE = 96
CONVOLUTION_AUTO = 3
ELTWISE_RELU = 0x20
POOLING_MAX, POOLING_AVERAGE = 0x1FF, 0x3FF
SOURCE_DESC, WEIGHTS_DESC, TARGET_DESC = 129, 131, 133
SOURCE, TARGET, WEIGHTS, BIAS = 1, 17, 33, 41
ALLOCATE = ctypes.c_void_p(-1)


class Argument(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int), ("memory", ctypes.c_void_p)]


def numbers(values):
    return (ctypes.c_int64 * 12)(*values)


class OneDnn:
    """One layer, with f32 in plain order at its ends."""

    def __init__(self, path, threads, layer, arrays, channels_last):
        os.environ["OMP_NUM_THREADS"] = str(threads)
        self.library = ctypes.CDLL(path)
        self.engine = self.made("dnnl_engine_create", 1, ctypes.c_size_t(0))
        self.stream = self.made("dnnl_stream_create", self.engine, 1)
        source, target = layer.source_shape, layer.target_shape
        ends = [self.channels_last(shape) if channels_last else self.any(shape) for shape in (source, target)]
        if layer.pooling:
            ends[0] = self.channels_last(source) if channels_last else self.blocked(source)
        fixed = [numbers(values) for values in (layer.strides, [0, 0], layer.pads[:2], layer.pads[2:])]
        if layer.pooling:
            kind = POOLING_MAX if layer.pooling == "max" else POOLING_AVERAGE
            fixed.insert(1, numbers(layer.taps))
            self.desc = self.made("dnnl_pooling_forward_primitive_desc_create", self.engine, FORWARD_INFERENCE, kind,
                                  *ends, *fixed, None)
        else:
            attributes, operations = self.made("dnnl_primitive_attr_create"), self.made("dnnl_post_ops_create")
            zero = ctypes.c_float(0)
            self.call("dnnl_post_ops_append_eltwise", operations, ELTWISE_RELU, zero, zero)
            self.call("dnnl_primitive_attr_set_post_ops", attributes, operations)
            self.desc = self.made("dnnl_convolution_forward_primitive_desc_create", self.engine, FORWARD_INFERENCE,
                                  CONVOLUTION_AUTO, ends[0], self.any(layer.weights_shape(grouped=True)),
                                  self.plain(arrays["bias"].shape), ends[1], *fixed, attributes)
        self.layer = self.made("dnnl_primitive_create", self.desc)
        self.target_shape = target
        self.target = self.memory(self.wanted(TARGET_DESC))
        memories = {SOURCE: self.brought(arrays["x"], SOURCE_DESC), TARGET: self.target}
        if not layer.pooling:
            weights = arrays["weights"].reshape(layer.weights_shape(grouped=True))
            memories[WEIGHTS] = self.brought(weights, WEIGHTS_DESC)
            memories[BIAS] = self.filled(arrays["bias"])
        self.arguments = self.listed(memories)
        self.execute, self.wait = self.library.dnnl_primitive_execute, self.library.dnnl_stream_wait
        self.step()

    def step(self):
        status = self.execute(self.layer, self.stream, len(self.arguments), self.arguments)
        if status or self.wait(self.stream):
            raise RuntimeError(f"oneDNN: status {status}")

    def outputs(self):
        array = numpy.empty(self.target_shape, numpy.float32)
        memory = self.memory(self.plain(array.shape))
        self.reorder(self.target, self.wanted(TARGET_DESC), memory, self.plain(array.shape))
        ctypes.memmove(array.ctypes.data, self.address(memory), array.nbytes)
        return {"y": array}

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: status {status}")

    def made(self, name, *arguments):
        made = ctypes.c_void_p()
        self.call(name, ctypes.byref(made), *arguments)
        return made

    def any(self, shape):
        return self.made("dnnl_memory_desc_create_with_tag", len(shape), numbers(shape), F32, ANY)

    def strided(self, shape, strides):
        return self.made("dnnl_memory_desc_create_with_strides", len(shape), numbers(shape), F32, numbers(strides))

    def plain(self, shape):
        return self.strided(shape, [int(numpy.prod(shape[at + 1:])) for at in range(len(shape))])

    def channels_last(self, shape):
        _, channels, rows, columns = shape
        return self.strided(shape, [rows * columns * channels, 1, columns * channels, channels])

    def blocked(self, shape):
        """In the layout that a convolution before a pooling would leave."""
        channels = shape[1]
        weights = self.any([channels, channels, 3, 3])
        ones = [numbers(values) for values in ([1, 1], [0, 0], [1, 1], [1, 1])]
        desc = self.made("dnnl_convolution_forward_primitive_desc_create", self.engine, FORWARD_INFERENCE,
                         CONVOLUTION_AUTO, self.any(shape), weights, None, self.any(shape), *ones, None)
        query = self.library.dnnl_primitive_desc_query_md
        query.restype = ctypes.c_void_p
        return ctypes.c_void_p(query(desc, TARGET_DESC, 0))

    def wanted(self, what):
        query = self.library.dnnl_primitive_desc_query_md
        query.restype = ctypes.c_void_p
        return ctypes.c_void_p(query(self.desc, what, 0))

    def memory(self, desc):
        return self.made("dnnl_memory_create", desc, self.engine, ALLOCATE)

    def address(self, memory):
        return self.made_of("dnnl_memory_get_data_handle", memory)

    def made_of(self, name, of):
        made = ctypes.c_void_p()
        self.call(name, of, ctypes.byref(made))
        return made

    def filled(self, array):
        array = numpy.ascontiguousarray(array)
        memory = self.memory(self.plain(array.shape))
        ctypes.memmove(self.address(memory), array.ctypes.data, array.nbytes)
        return memory

    def brought(self, array, what):
        memory = self.memory(self.wanted(what))
        self.reorder(self.filled(array), self.plain(array.shape), memory, self.wanted(what))
        return memory

    def reorder(self, source, source_desc, target, target_desc):
        desc = self.made("dnnl_reorder_primitive_desc_create", source_desc, self.engine, target_desc, self.engine, None)
        arguments = self.listed({SOURCE: source, TARGET: target})
        self.call("dnnl_primitive_execute", self.made("dnnl_primitive_create", desc), self.stream, 2, arguments)
        self.call("dnnl_stream_wait", self.stream)

    def listed(self, memories):
        return (Argument * len(memories))(*(Argument(number, memory.value) for number, memory in memories.items()))
