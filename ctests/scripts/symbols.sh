#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   symbols.sh <library> <weir_cdef.h> <soname> [<folder>]
#
# The view that the dynamic linker has of libweir.so or libweir_testing.so: it exports the functions of the header and
# nothing else, its soname is <soname>, it is never unloaded, it needs only the C library and the compiler's runtime (and
# libweir_testing libweir), and no symbol of a glibc later than 2.34. libweir_testing is a plug-in besides. Without its
# lines for debuggers, which installing strips, it names no file in <folder>.

set -eu

library=$1
header=$2
soname=$3
newest_glibc=2.34

fail() {
    echo "symbols.sh: $*" >&2
    exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# In the preprocessed header only declarations have a weir_ name right before a parenthesis, and types of functions that return one: those
# go on with a star.
"${CC:-cc}" -E -P "$header" >"$work/header"
tr '\n' ' ' <"$work/header" | grep -o 'weir_[a-z0-9_]* *([^*]' | sed 's/ *(.*//' | sort -u >"$work/declared"
nm -D --defined-only "$library" >"$work/nm"
awk '$NF != "weir_device_plugin_init" { print $NF }' "$work/nm" | sort -u >"$work/exported"
[ -s "$work/declared" ] || fail "no function was found in $header"
if ! diff "$work/declared" "$work/exported" >"$work/diff"; then
    sed -n -e 's/^< /  declared but not exported: /p' -e 's/^> /  exported but not declared: /p' "$work/diff" >&2
    fail "the library and $header differ"
fi

objcopy --strip-all "$library" "$work/stripped"
if [ -n "${4:-}" ] && strings "$work/stripped" | grep -F "$4/" >"$work/paths"; then
    fail "the library names $(head -n 1 "$work/paths")"
fi

readelf -Wd "$library" >"$work/dynamic"
grep -q "(SONAME).*\[$soname\]" "$work/dynamic" || fail "the soname is not $soname"
grep -q 'FLAGS_1.*NODELETE' "$work/dynamic" || fail "the library could be unloaded (no NODELETE flag)"

beside=none
if [ "$soname" != "${soname#libweir_testing}" ]; then
    beside=${soname%%.*}
    beside=libweir${soname#"$beside"}
fi
# The loader has another name on each kind of machine.
sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$work/dynamic" |
    grep -vxE 'libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|ld-linux[-a-z0-9_]*\.so\.[0-9]+' | grep -vxF "$beside" >"$work/needed" || true
[ ! -s "$work/needed" ] || fail "the library needs $(tr '\n' ' ' <"$work/needed")"

# Weak references may be newer: an older glibc leaves them empty, and the library asks before it uses them.
nm -D --undefined-only --with-symbol-versions "$library" | awk '$1 == "U" { print $2 }' >"$work/undefined"
sed -n 's/^.*@GLIBC_\([0-9.]*\)$/\1/p' "$work/undefined" >"$work/glibc"
[ -s "$work/glibc" ] || fail "no versioned symbol was found"
latest=$({ cat "$work/glibc"; echo $newest_glibc; } | sort -V | tail -n 1)
if [ "$latest" != $newest_glibc ]; then
    grep -F "@GLIBC_$latest" "$work/undefined" >&2
    fail "the library needs glibc $latest; $newest_glibc is the limit"
fi

echo "$(wc -l <"$work/exported") functions exported, as declared; glibc $(sort -V "$work/glibc" | tail -n 1) or later"
