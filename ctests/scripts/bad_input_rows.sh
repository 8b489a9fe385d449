#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   bad_input_rows.sh <libweir.so> <libweir_testing.so> <source>...
#
# Every exported function has a row in the sources of the bad-input test: a line that begins with ROW(weir_function, ...
# Operators have rows by the list of operators.h.

set -eu

library=$1
testing=$2
shift 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --defined-only "$library" >"$work/nm"
nm -D --defined-only "$testing" >>"$work/nm"
# The function of plug-ins is for libweir.
awk '$NF ~ /^weir_/ && $NF != "weir_device_plugin_init" { print $NF }' "$work/nm" | sort -u >"$work/exported"
sed -n -e 's/^[[:space:]]*ROW(\(weir_[a-z0-9_]*\).*/\1/p' \
    -e 's/^[[:space:]]*X(\([a-z0-9_]*\), [01]).*/weir_kernel_create_\1/p' "$@" | sort >"$work/rows"
sort -u "$work/rows" >"$work/covered"

if [ ! -s "$work/exported" ] || ! diff "$work/exported" "$work/covered" >"$work/diff"; then
    sed -n -e 's/^< /  no row: /p' -e 's/^> /  a row for something that is not exported: /p' "$work/diff" >&2
    echo "bad_input_rows.sh: the rows do not cover the library" >&2
    exit 1
fi
echo "$(wc -l <"$work/rows") rows for $(wc -l <"$work/exported") functions"
