#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   doc_example.sh <page.md> <include directory> <libweir.so>
#
# Takes the first C block of a page, builds it as it stands and runs it. It must succeed and print something.

set -eu

page=$1
include_dir=$2
library=$3
library_dir=$(dirname "$library")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk '/^```/ { if (inside) exit; inside = ($0 ~ /^```c$/); next } inside' "$page" >"$work/example.c"
if [ ! -s "$work/example.c" ]; then
    echo "doc_example.sh: $page has no C block" >&2
    exit 1
fi
"${CC:-cc}" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Werror -pthread "-I$include_dir" \
    "$work/example.c" -o "$work/example" "$library" "-Wl,-rpath,$library_dir"
"$work/example" >"$work/output"
cat "$work/output"
if [ ! -s "$work/output" ]; then
    echo "doc_example.sh: the example of $page prints nothing" >&2
    exit 1
fi
