#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   header_cdef.sh <weir_cdef.h> <libweir.so> <python>
#
# weir_cdef.h can be read by the C parsers of other languages: Python's cffi declares all of it, and finds each function
# in the library. The types, sizes and offsets in weir_api.json, which lies beside it, are those that cffi makes of it.

set -eu

cdef=$1
library=$2
python=$3

"$python" -c 'import cffi' 2>/dev/null || { echo "SKIPPED: Python has no cffi"; exit 77; }

"$python" - "$cdef" "$library" <<'EOF'
import json
import pathlib
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

api = json.loads((pathlib.Path(sys.argv[1]).parent / "weir_api.json").read_text())
assert names == sorted(function["name"] for function in api["functions"])
for function in api["functions"]:
    declared = ffi.typeof(getattr(library, function["name"]))
    told = [ffi.typeof(parameter["type"]) for parameter in function["parameters"]]
    assert list(declared.args) == told and declared.result == ffi.typeof(function["returns"]), function["name"]
for struct in api["structs"]:
    name = struct["name"]
    assert ffi.sizeof(name) == struct["size"] and ffi.alignof(name) == struct["alignment"], name
    fields = dict(ffi.typeof(name).fields)
    assert list(fields) == [field["name"] for field in struct["fields"]], name
    for field in struct["fields"]:
        told = ffi.typeof(field["type"])
        assert (fields[field["name"]].offset, fields[field["name"]].type) == (field["offset"], told), field["name"]
for value in [value for enum in api["enums"] for value in enum["values"]]:
    assert getattr(library, value["name"]) == value["value"], value["name"]
print(len(names), "functions declared and found by cffi", cffi.__version__)
EOF
