#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   front_page.sh <include directory> <libweir.so>
#
# The programs on the first page of weir.h: each is built as it stands and run. It must succeed and print something.

set -eu

include_dir=$1
library=$2
expected=3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A program is indented by four, begins with its first #include and ends with the last line before one that is not.
sed -n '1,/^ \*\/$/s/^ \* \{0,1\}//p' "$include_dir/weir.h" | awk -v "work=$work" '
    /^    #include/ && !inside { inside = 1; number++ }
    inside && /^[^ ]/ { inside = 0 }
    inside { print substr($0, 5) >(work "/program" number ".c") }'
number=0
for program in "$work"/program*.c; do
    "${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror -pthread "-I$include_dir" "$program" -o "$work/program" "$library" \
        "-Wl,-rpath,$(dirname "$library")"
    "$work/program" >"$work/output"
    cat "$work/output"
    [ -s "$work/output" ] || { echo "front_page.sh: a program prints nothing" >&2; exit 1; }
    number=$((number + 1))
done
[ "$number" = $expected ] || { echo "front_page.sh: $number programs, expected $expected" >&2; exit 1; }
