#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   header_cdef.sh <weir_cdef.h> <libweir.so> <python>
#
# weir_cdef.h can be read by the C parsers of other languages: Python's cffi declares all of it, and finds each function
# in the library.

set -eu

cdef=$1
library=$2
python=$3

"$python" -c 'import cffi' 2>/dev/null || { echo "SKIPPED: Python has no cffi"; exit 77; }

"$python" - "$cdef" "$library" <<'EOF'
import re
import sys
import cffi

text = open(sys.argv[1]).read()
ffi = cffi.FFI()
ffi.cdef(text)
library = ffi.dlopen(sys.argv[2])
names = sorted(set(re.findall(r"\b(weir_[a-z0-9_]+)\s*\((?!\*)", text)))
assert names, "no function was found"
for name in names:
    getattr(library, name)
assert library.WEIR_INVALID_ARGUMENT == 3
print(len(names), "functions declared and found by cffi", cffi.__version__)
EOF
