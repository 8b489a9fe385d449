#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   dlpack_numpy.sh <dlpack_numpy.py> <libweir.so> <python> <folder>
#
# Tensors between weir and NumPy. A Python without NumPy gets it in an environment of its own in <folder>, where that can be. (Not a folder
# called numpy: Python would take that for the module.)

set -eu

test=$1
library=$2
python=$3
folder=$4

if ! "$python" -c 'import numpy' 2>/dev/null; then
    own=$folder/numpy-env/bin/python
    if ! "$own" -c 'import numpy' 2>/dev/null; then
        "$python" -m venv "$folder/numpy-env" >/dev/null 2>&1 && "$own" -m pip install --quiet numpy >/dev/null 2>&1 || {
            echo "SKIPPED: Python has no NumPy, and pip cannot bring it"
            exit 77
        }
    fi
    python=$own
fi
"$python" "$test" "$library"
