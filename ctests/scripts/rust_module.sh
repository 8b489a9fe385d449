#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   rust_module.sh <cargo> <source> <program>
#
# Builds the rayon module of the crate weir in the source tree's own target directory, where ./dev test has built all
# that it needs, and lets a program load it.

set -eu

cargo=$1
source_dir=$2
program=$3

cd "$source_dir"
module=$("$cargo" build --locked --workspace --features weir/half --profile checked --example conformance_rayon --message-format=json |
    sed -n 's/.*"filenames":\["\([^"]*libconformance_rayon\.so\)".*/\1/p')
[ -f "$module" ] || {
    echo "rust_module.sh: cargo built no libconformance_rayon.so" >&2
    exit 1
}
"$program" "$module"
