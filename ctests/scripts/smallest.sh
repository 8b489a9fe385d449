#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   smallest.sh <libweir.so> <weir_cdef.h> <soname>
#
# A library that was built without any feature has all functions. Those of engines, kernels and graphs return
# UNIMPLEMENTED, name the feature, and leave NULL in their outputs; pools and products without an engine work.

set -eu

"$(dirname "$0")/symbols.sh" "$1" "$2" "$3"
python3 - "$1" <<'P'
import ctypes, sys

weir = ctypes.CDLL(sys.argv[1])
weir.weir_last_error_message.restype = ctypes.c_char_p
UNIMPLEMENTED, CPU = 12, 1


def refused(name, feature, *arguments):
    out = ctypes.c_void_p(1)
    status = getattr(weir, name)(*arguments, ctypes.byref(out))
    text = weir.weir_last_error_message().decode()
    assert status == UNIMPLEMENTED and text.startswith(name + ": ") and f"'{feature}'" in text, f"{name}: {status}, {text}"
    assert out.value is None, name


refused("weir_engine_create", "engines", CPU, 0, None)
refused("weir_stream_create", "engines", None, ctypes.c_uint64(0), None)
refused("weir_kernel_create_softmax", "kernels", None, None, None)
refused("weir_graph_create", "graph", None)
weir.weir_engine_release(None)

# A region of a pool with threads of its own, and a product on it.
RANGE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int32)
pool, squares = ctypes.c_void_p(), (ctypes.c_int64 * 1000)()


@RANGE
def square(_, begin, end, slot):
    for i in range(begin, end):
        squares[i] = i * i
    return 0


assert weir.weir_threadpool_create_builtin(None, ctypes.byref(pool)) == 0
assert weir.weir_parallel_for(pool, ctypes.c_int64(1000), None, square, None) == 0
assert list(squares) == [i * i for i in range(1000)]
rows, columns = 64, 48
a = (ctypes.c_float * (rows * columns))(*[i % 7 - 3 for i in range(rows * columns)])
b = (ctypes.c_float * (columns * columns))(*[i % 5 - 2 for i in range(columns * columns)])
c = (ctypes.c_float * (rows * columns))()
m, n = ctypes.c_int64(rows), ctypes.c_int64(columns)
status = weir.weir_sgemm(0, 0, m, n, n, ctypes.c_float(1), a, n, b, n, ctypes.c_float(0), c, n, pool)
assert status == 0, weir.weir_last_error_message()
weir.weir_threadpool_release(pool)
for i in range(rows):
    for j in range(columns):
        expected = sum(a[i * columns + k] * b[k * columns + j] for k in range(columns))
        assert c[i * columns + j] == expected, (i, j)
print("refused by name; pools and products work")
P
