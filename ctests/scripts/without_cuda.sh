#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   without_cuda.sh <libweir.so> <weir.h> <soname>
#
# A library that was built without the feature `cuda` has the same functions, and those of CUDA's return UNIMPLEMENTED and speak of this build.

set -eu

"$(dirname "$0")/symbols.sh" "$@"
python3 - "$1" <<'P'
import ctypes, sys

weir = ctypes.CDLL(sys.argv[1])
weir.weir_last_error_message.restype = ctypes.c_char_p
UNIMPLEMENTED, CPU, CUDA = 12, 1, 2
engine, out = ctypes.c_void_p(), ctypes.c_void_p()


def expect(name, *arguments):
    status = getattr(weir, name)(*arguments)
    text = weir.weir_last_error_message().decode()
    assert status == UNIMPLEMENTED and "this build" in text, f"{name} returned {status}: {text}"


expect("weir_engine_create", CUDA, 0, None, ctypes.byref(engine))
assert weir.weir_engine_create(CPU, 0, None, ctypes.byref(engine)) == 0
desc = (ctypes.c_size_t * 64)(200)
info = (ctypes.c_size_t * 64)(256)
expect("weir_stream_wrap_cuda", engine, None, None, ctypes.byref(out))
expect("weir_cuda_get_device_info", engine, info)
attr = ctypes.c_void_p()
assert weir.weir_engine_attr_create(CUDA, ctypes.byref(attr)) == 0
expect("weir_engine_attr_set_cuda_context", attr, None)
weir.weir_engine_attr_destroy(attr)
weir.weir_engine_release(engine)
print("without CUDA: the same functions, UNIMPLEMENTED")
P
