#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   dlpack_torch.sh <dlpack_torch.py> <libweir.so> <python>
#
# Tensors between weir and PyTorch, where Python has it, and NumPy. It is not brought: it is more than a gigabyte.

set -eu

test=$1
library=$2
python=$3

if ! "$python" -c 'import torch, numpy' 2>/dev/null; then
    echo "SKIPPED: Python has no PyTorch with NumPy, and nothing is known here of sharing tensors with it"
    exit 77
fi
"$python" "$test" "$library"
