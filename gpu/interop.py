#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tensors on a GPU between weir and PyTorch, CuPy and JAX, by DLPack and ctypes.

    interop.py [--fake] [torch|cupy|jax]... [libweir.so]

A library that is not there, or that sees no GPU, is skipped; with --fake, on the fake driver, all of them are. For each of the others: its tensor comes in without a copy, weir computes on
the library's own stream, and the result goes out without a copy. Without names all three are tried.
"""

import ctypes
import gc
import struct
import sys
from ctypes import byref, c_char_p, c_int64, c_uint32, c_uint64, c_void_p, py_object

IS_FAKE = "--fake" in sys.argv
NAMES = ("torch", "cupy", "jax")
wanted = [argument for argument in sys.argv[1:] if argument in NAMES] or NAMES
libraries = [argument for argument in sys.argv[1:] if argument != "--fake" and argument not in NAMES]
weir = ctypes.CDLL(libraries[0] if libraries else "libweir.so.0.1")
weir.weir_last_error_message.restype = c_char_p
capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype, capsule_new.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = c_void_p, [py_object, c_char_p]
capsule_rename = ctypes.pythonapi.PyCapsule_SetName
capsule_rename.argtypes = [py_object, c_char_p]

WEIR_ENGINE_CUDA, WEIR_F32, WEIR_UNAVAILABLE = 2, 1, 14
USED = c_char_p(b"used_dltensor")  # a capsule keeps the pointer
COUNT = 100_003


class TensorDesc(ctypes.Structure):
    _fields_ = [("dtype", c_uint32), ("rank", c_uint32), ("dims", c_int64 * 8)]


def call(name, *arguments):
    if getattr(weir, name)(*arguments) != 0:
        raise RuntimeError(f"{name}: {weir.weir_last_error_message().decode()}")


class Exported:
    """What from_dlpack of the array API asks."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        return self.capsule


def through_weir(engine, relu, capsule, cuda_stream):
    """relu of a tensor, on a stream of the library's (None: on one of weir's, which is waited for)."""
    stream, source, target, managed = c_void_p(), c_void_p(), c_void_p(), c_void_p()
    if cuda_stream is None:
        call("weir_stream_create", engine, c_uint64(0), None, byref(stream))
    else:
        call("weir_stream_wrap_cuda", engine, c_void_p(cuda_stream), None, byref(stream))
    pointer = c_void_p(capsule_pointer(capsule, b"dltensor"))
    call("weir_tensor_from_dlpack_legacy", engine, pointer, c_uint64(0), byref(source))
    capsule_rename(capsule, USED)  # it is weir's now
    desc = TensorDesc(WEIR_F32, 1, (c_int64 * 8)(COUNT))
    call("weir_tensor_create", engine, byref(desc), None, byref(target))
    call("weir_enqueue", stream, relu, byref(source), ctypes.c_size_t(1), byref(target), ctypes.c_size_t(1))
    consumer = None if cuda_stream is None else stream
    call("weir_tensor_to_dlpack_legacy", target, stream, consumer, c_uint64(0), byref(managed))
    for name, handle in (("tensor", source), ("tensor", target), ("stream", stream)):
        getattr(weir, f"weir_{name}_release")(handle)
    return Exported(capsule_new(managed, b"dltensor", None))


def with_torch(engine, relu):
    import torch

    if not torch.cuda.is_available():
        raise ImportError("it sees no GPU")
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            x = torch.randn(COUNT, device="cuda")
            out = through_weir(engine, relu, torch.utils.dlpack.to_dlpack(x), stream.cuda_stream)
            y = torch.utils.dlpack.from_dlpack(out.capsule)
            assert y.device.type == "cuda" and torch.equal(y, torch.relu(x))
    return torch.__version__


def with_cupy(engine, relu):
    import cupy

    with cupy.cuda.Stream(non_blocking=True) as stream:
        x = cupy.random.standard_normal(COUNT, dtype="float32")
        # The stream is CuPy's own: nothing waits for it.
        out = through_weir(engine, relu, x.__dlpack__(stream=-1), stream.ptr)
        y = cupy.from_dlpack(out)
        assert bool((y == cupy.maximum(x, 0)).all())
    return cupy.__version__


def with_jax(engine, relu):
    import jax

    if not any(device.platform == "gpu" for device in jax.devices()):
        raise ImportError("it sees no GPU")
    x = jax.random.normal(jax.random.PRNGKey(1), (COUNT,)).block_until_ready()
    y = jax.numpy.from_dlpack(through_weir(engine, relu, x.__dlpack__(), None))
    assert bool((y == jax.numpy.maximum(x, 0)).all())
    return jax.__version__


def main():
    engine, relu = c_void_p(), c_void_p()
    status = weir.weir_engine_create(c_uint32(WEIR_ENGINE_CUDA), c_uint32(0), None, byref(engine))
    if status != 0:
        print(f"SKIPPED: no CUDA device ({weir.weir_last_error_message().decode()})")
        return
    # struct_size, op (WEIR_ELTWISE_RELU), alpha, beta, reserved
    desc = struct.pack("=QIffI", 24, 1, 0, 0, 0)
    call("weir_kernel_create_eltwise", engine, desc, None, byref(relu))
    if IS_FAKE:
        print("- nobody else is asked: the driver is the fake one, which is weir's alone")
        return
    failed = False
    for package, name, run in zip(NAMES, ("PyTorch", "CuPy", "JAX"), (with_torch, with_cupy, with_jax)):
        if package not in wanted:
            continue
        try:
            print(f"- {name} {run(engine, relu)} and weir share tensors on the GPU, in both directions")
        except ImportError as error:
            print(f"- {name}: not tried, {error}")
        except Exception as error:  # the others are still to be tried
            failed = True
            print(f"- {name}: FAILED: {type(error).__name__}: {error}")
        gc.collect()
    weir.weir_kernel_release(relu)
    weir.weir_engine_release(engine)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
