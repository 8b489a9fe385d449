#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   without_cuda.sh <libweir.so> <weir_cdef.h> <soname> <libweir.so with CUDA>
#
# A library that was built without the feature `cuda` has the same functions, and those of CUDA's return UNIMPLEMENTED and speak of this build.
# To the dynamic linker the feature is nothing: the same libraries are needed, the same functions exported, the same versions of glibc.

set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts=$(dirname "$0")
for library in "$1" "$4"; do
    name=$([ "$library" = "$1" ] && echo without || echo with)
    "$scripts/symbols.sh" "$library" "$2" "$3"
    {
        readelf -Wd "$library" | sed -n 's/.*(\(NEEDED\|SONAME\|RPATH\|RUNPATH\)).*\[\(.*\)\]/\1 \2/p' | sort
        nm -D --defined-only "$library" | awk '{ print "exports " $NF }' | sort
        nm -D --undefined-only --with-symbol-versions "$library" | sed -n 's/.*@\(GLIBC_[0-9.]*\)$/\1/p' | sort -uV | tail -n 1
    } >"$work/$name"
done
if ! diff "$work/without" "$work/with"; then
    echo "without_cuda.sh: the feature changes what the dynamic linker sees" >&2
    exit 1
fi
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
print("without CUDA: the same functions, UNIMPLEMENTED; the dynamic linker sees no difference")
P
