#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   abi_layout_complete.sh <weir_cdef.h> <weir_testing_cdef.h> <abi_layout.c> <abi_values.h>
#
# They pin the size of every public struct, the offset of each of its members, and the value of every
# enumerator: nothing can be added to the header without a line there.

set -eu

header=$1
testing=$2
shift 2
scripts=$(dirname "$0")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat "$header" "$testing" | "${CC:-cc}" -E -P -x c - >"$work/header"
tr '\n' ' ' <"$work/header" | sed -e 's/[{};]/&\n/g' | awk -f "$scripts/abi_items.awk" | sort >"$work/expected"
if [ ! -s "$work/expected" ]; then
    echo "abi_layout_complete.sh: nothing was found in $header" >&2
    exit 1
fi

sed -n 's/^\(SIZE(weir_[a-z0-9_]*\|OFFSET(weir_[a-z0-9_]*, [a-z0-9_]*\|VALUE(WEIR_[A-Z0-9_]*\).*/\1/p' "$@" |
    sort >"$work/pinned"
if ! diff "$work/expected" "$work/pinned" >"$work/diff"; then
    sed -n -e 's/^< /  not pinned: /p' -e 's/^> /  pinned twice, or not in the header: /p' "$work/diff" >&2
    echo "abi_layout_complete.sh: $* do not match $header" >&2
    exit 1
fi
echo "$(wc -l <"$work/expected") sizes, offsets and values are pinned"
