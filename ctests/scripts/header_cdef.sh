#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   header_cdef.sh <weir_cdef.h> <libweir.so> <weir_testing_cdef.h> <libweir_testing.so> <python>
#
# Both headers can be read by the C parsers of other languages: Python's cffi declares all of them, and finds each
# function in its library. The types, sizes and offsets in weir_api.json, which lies beside it, are those that cffi makes of it.

set -eu

cdef=$1
library=$2
testing_cdef=$3
testing=$4
python=$5

"$python" -c 'import cffi' 2>/dev/null || { echo "SKIPPED: Python has no cffi"; exit 77; }

"$python" - "$cdef" "$library" "$testing_cdef" "$testing" <<'EOF'
import json
import pathlib
import re
import sys
import cffi

ffi = cffi.FFI()
libraries = {}
for cdef, path in zip(sys.argv[1::2], sys.argv[2::2]):
    text = open(cdef).read()
    ffi.cdef(text)
    names = set(re.findall(r"\b(weir_[a-z0-9_]+)\s*\((?!\*)", text))
    assert names, f"no function was found in {cdef}"
    libraries[path] = names
opened = [(ffi.dlopen(path), names) for path, names in libraries.items()]
library = opened[0][0]
found = {name: getattr(of, name) for of, names in opened for name in names}
assert library.WEIR_INVALID_ARGUMENT == 3

api = json.loads((pathlib.Path(sys.argv[1]).parent / "weir_api.json").read_text())
assert sorted(found) == sorted(function["name"] for function in api["functions"])
for function in api["functions"]:
    declared = ffi.typeof(found[function["name"]])
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
print(len(found), "functions declared and found by cffi", cffi.__version__)
EOF
