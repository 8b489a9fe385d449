#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tensors between weir and NumPy, by DLPack and ctypes.

    dlpack_numpy.py libweir.so
"""

import ctypes
import gc
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p, py_object

import numpy

weir = ctypes.CDLL(sys.argv[1])
weir.weir_last_error_message.restype = c_char_p
capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype, capsule_new.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = c_void_p, [py_object, c_char_p]
capsule_rename = ctypes.pythonapi.PyCapsule_SetName
capsule_rename.argtypes = [py_object, c_char_p]

WEIR_F32, WEIR_S32, WEIR_U8, WEIR_S8, WEIR_F16, WEIR_BF16, WEIR_BOOL, WEIR_S64 = range(1, 9)
READ_ONLY, COPY = 1, 2
USED = c_char_p(b"used_dltensor")  # a capsule keeps the pointer


class TensorDesc(Structure):
    _fields_ = [("dtype", c_uint32), ("rank", c_uint32), ("dims", c_int64 * 8)]


class RuntimeInfo(Structure):
    _fields_ = [("struct_size", c_size_t), ("counts", c_uint64 * 22)]


def call(name, *arguments):
    function = getattr(weir, name)
    status = function(*arguments)
    if status != 0:
        raise RuntimeError(weir.weir_last_error_message().decode())


def tensors_alive():
    info = RuntimeInfo(ctypes.sizeof(RuntimeInfo))
    call("weir_runtime_get_info", byref(info))
    return info.counts[8]


engine = c_void_p()
call("weir_engine_create", c_uint32(1), c_uint32(0), None, byref(engine))


class Tensor:
    """A weir tensor that other libraries can take: __dlpack__ as the array API standard has it."""

    def __init__(self, handle, stream=None):
        self.handle, self.stream = handle, stream

    def __del__(self):
        weir.weir_tensor_release(self.handle)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        assert stream is None, "the CPU has no streams that others know"
        managed = c_void_p()
        # Without a stream of the consumer's that is weir's, the export waits for the producer.
        call("weir_tensor_to_dlpack_legacy", self.handle, self.stream, None, c_uint64(COPY if copy else 0), byref(managed))
        return capsule_new(managed, b"dltensor", None)

    @staticmethod
    def like(array, dtype):
        handle = c_void_p()
        desc = TensorDesc(dtype, array.ndim, (c_int64 * 8)(*array.shape))
        call("weir_tensor_create", engine, byref(desc), None, byref(handle))
        return Tensor(handle)

    @staticmethod
    def of(array, flags=0):
        capsule = array.__dlpack__()
        handle = c_void_p()
        call("weir_tensor_from_dlpack_legacy", engine, c_void_p(capsule_pointer(capsule, b"dltensor")), c_uint64(flags), byref(handle))
        capsule_rename(capsule, USED)  # it is weir's now
        return Tensor(handle)

    def address(self):
        data = c_void_p()
        call("weir_tensor_get_data", self.handle, byref(data))
        return data.value


def expect_refusal(array, part, flags=0):
    try:
        Tensor.of(array, flags)
    except RuntimeError as error:
        assert part in str(error), error
    else:
        raise AssertionError(f"not refused: {part}")


def main():
    before = tensors_alive()
    pairs = [("float32", WEIR_F32), ("int32", WEIR_S32), ("uint8", WEIR_U8), ("int8", WEIR_S8), ("float16", WEIR_F16), ("bool", WEIR_BOOL), ("int64", WEIR_S64)]
    for name, dtype in pairs:
        array = (numpy.arange(24).reshape(2, 3, 4) % 2).astype(name)
        # In: the same memory, kept by weir when NumPy has let go of it.
        address, expected = array.ctypes.data, array.copy()
        try:
            tensor = Tensor.of(array)
        except BufferError:
            assert name == "bool"  # NumPy exports it since 1.25
            continue
        assert tensor.address() == address
        del array
        gc.collect()
        # And out again.
        back = numpy.from_dlpack(tensor)
        assert back.ctypes.data == address and back.dtype == expected.dtype and (back == expected).all()
        del tensor
        gc.collect()
        assert (back == expected).all() and tensors_alive() == before + 1
        del back
        gc.collect()
        assert tensors_alive() == before, tensors_alive()
        made = Tensor.like(expected, dtype)
        seen = numpy.from_dlpack(made)
        seen_address = seen.ctypes.data
        assert seen_address == made.address() and (seen == 0).all()
        del made, seen
        gc.collect()
        assert tensors_alive() == before
    turned = numpy.arange(6, dtype="float32").reshape(2, 3).T
    expect_refusal(turned, "are not row-major and compact")
    copied = numpy.from_dlpack(Tensor.of(turned, COPY))
    assert copied.flags.c_contiguous and (copied == turned).all()
    stepped = numpy.arange(40, dtype="int32")[::-3]
    assert (numpy.from_dlpack(Tensor.of(stepped, COPY)) == stepped).all()
    for name, text in [("uint64", "uint64"), ("float64", "float64"), ("complex64", "complex64"), ("uint16", "uint16")]:
        expect_refusal(numpy.zeros(3, name), f"elements of {text} have no counterpart")
    assert numpy.from_dlpack(Tensor.of(numpy.zeros((3, 0, 2), "float32"))).shape == (3, 0, 2)
    del copied
    gc.collect()
    assert tensors_alive() == before
    weir.weir_engine_release(engine)
    print(f"NumPy {numpy.__version__} and weir share tensors")


if __name__ == "__main__":
    main()
