#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   doc_adapters.sh <page.md> <include directory> <libweir.so> <header of weir/adapters> <flag>...
#
# Takes the C or C++ block of a page that includes this header, builds it as it stands with these flags and runs it. It
# must succeed and print something.

set -eu

page=$1
include_dir=$2
library=$3
header=$4
shift 4
library_dir=$(dirname "$library")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $header in
*.hpp) language=cpp compiler=${CXX:-c++} standard=-std=c++17 ;;
*) language=c compiler=${CC:-cc} standard=-std=c99 ;;
esac
awk -v want="\`\`\`$language" -v header="<weir/adapters/$header>" '
    /^```/ { if (inside && index(block, header)) { printf "%s", block; exit } inside = ($0 == want); block = ""; next }
    inside { block = block $0 "\n" }' "$page" >"$work/example.$language"
if [ ! -s "$work/example.$language" ]; then
    echo "doc_adapters.sh: $page has no $language block with <weir/adapters/$header>" >&2
    exit 1
fi
"$compiler" $standard -Wall -Wextra -Wpedantic -Werror -pthread "-I$include_dir" "$work/example.$language" "$@" \
    -o "$work/example" "$library" "-Wl,-rpath,$library_dir"
"$work/example" >"$work/output"
cat "$work/output"
if [ ! -s "$work/output" ]; then
    echo "doc_adapters.sh: the example for $header prints nothing" >&2
    exit 1
fi
