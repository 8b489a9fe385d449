#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   abi.sh check <top of the repository> weir <libweir.so>
#   abi.sh renew <top of the repository> weir
#
# The binary interface is the one that docs/abi/weir-<version>.abi describes, says abidiff of libabigail. C programs see
# the types of the headers, and the library's own debug information has none of them. So the headers are made into a
# library of their own, in which each function of weir_cdef.h is defined and does nothing. It exports the same functions
# as <libweir.so>. With another name than weir this is for that library: its functions are in <name>_cdef.h.

set -eu

verb=$1
root=$2
part=$3
include_dir=$root/include
cdef=$include_dir/weir/${part}_cdef.h

for tool in abidw abidiff; do
    command -v $tool >/dev/null || { echo "SKIPPED: there is no $tool (package abigail-tools)"; exit 77; }
done

scripts=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "abi.sh: $*" >&2
    exit 1
}

# number <macro>
number() {
    sed -n "s/^#define $1 \([0-9]*\).*/\1/p" "$include_dir/weir.h"
}
soname=lib$part.so.$(number WEIR_VERSION_MAJOR).$(number WEIR_ABI_VERSION)
name=docs/abi/$part-$(number WEIR_VERSION_MAJOR).$(number WEIR_VERSION_MINOR).abi
kept=$root/$name

# The headers that weir.h includes, without what differs between systems and compilers.
echo 'typedef __SIZE_TYPE__ size_t;' >"$work/stddef.h"
for type in INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 INTPTR UINTPTR; do
    echo "typedef __${type}_TYPE__ $(echo $type | tr '[:upper:]' '[:lower:]')_t;"
done >"$work/stdint.h"

# All headers as one source, a statement on each line. A prototype stands outside of braces, and has no others in it.
write_stub() {
    sed -n 's,^/\* \(weir[a-z_/]*\.h\) \*/$,#include <\1>,p' "$cdef" >"$work/all.c"
    [ -s "$work/all.c" ] || fail "$cdef names no headers"
    grep -o 'weir_[a-z0-9_]*(' "$cdef" | tr -d '(' >"$work/names"
    "${CC:-cc}" -std=c99 -E -P -nostdinc -DWEIR_NODISCARD= "-I$include_dir" "-I$work" "$work/all.c" >"$work/headers"
    awk 'FNR == NR { names[$0] = 1; next }
        { gsub(/[ \t\n]+/, " "); sub(/^ /, "") }
        $0 == "" { next }
        { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
        /^typedef/ || !/\([^()]*\)$/ || !(name in names) { print $0 ";"; next }
        { print $0 (/^void weir_/ ? " { }" : " { return 0; }") }' "$work/names" RS=';' "$work/headers"
}

# describe <stub.c> <result.abi>
describe() {
    cp "$1" "$work/weir.c"
    (cd "$work" && "${CC:-cc}" -std=c99 -g -O0 -fPIC -shared -nostdinc -nostdlib -fno-eliminate-unused-debug-types \
        "-Wl,-soname,$soname" weir.c -o libstub.so)
    abidw --load-all-types --no-architecture --no-show-locs --no-comp-dir-path --no-corpus-path --no-elf-needed \
        --no-write-default-sizes --type-id-style hash --out-file "$2" "$work/libstub.so"
}

# same <old.abi> <new.abi>: leaves what it has to say in $work/report.
same() {
    status=0
    abidiff --non-reachable-types --harmless --no-default-suppression "$1" "$2" >"$work/report" 2>&1 || status=$?
    # 4 and 8 are differences; what else it ends with are errors of its own.
    case $status in
    0) ;;
    4 | 8 | 12) return 1 ;;
    *) cat "$work/report" >&2; fail "abidiff ends with $status" ;;
    esac
}

# verdict <old.abi> <stub.c>: says "same", "addition" or "change".
verdict() {
    describe "$2" "$work/new.abi"
    if same "$1" "$work/new.abi"; then
        echo same
        return
    fi
    mv "$work/report" "$work/differences"
    awk -f "$scripts/abi_old_part.awk" "$1" "$2" >"$work/old_part.c"
    # A part that no compiler takes has lost what the rest needs.
    if describe "$work/old_part.c" "$work/old_part.abi" 2>/dev/null && same "$1" "$work/old_part.abi"; then
        echo addition
    else
        echo change
    fi
}

write_stub >"$work/stub.c"
describe "$work/stub.c" "$work/now.abi"

if [ "$verb" = renew ]; then
    mkdir -p "$(dirname "$kept")"
    cp "$work/now.abi" "$kept"
    echo "$name describes the interface of $soname"
    exit
fi

library=$4
nm -D --defined-only "$work/libstub.so" | awk '{ print $NF }' | sort >"$work/declared"
# The function of plug-ins is for libweir.
nm -D --defined-only "$library" | awk '$NF != "weir_device_plugin_init" { print $NF }' | sort >"$work/exported"
if ! diff "$work/declared" "$work/exported" >"$work/diff"; then
    sed -n -e 's/^< /  declared but not exported: /p' -e 's/^> /  exported but not declared: /p' "$work/diff" >&2
    fail "the headers and $library differ"
fi

# Does this see what it is for? Each line is what must be said of a change, and the change.
[ "$part" != weir ] || while read -r expected change; do
    sed "$change" "$work/stub.c" >"$work/changed.c"
    ! cmp -s "$work/stub.c" "$work/changed.c" || fail "the test changes nothing any more: $change"
    found=$(verdict "$work/now.abi" "$work/changed.c")
    [ "$found" = "$expected" ] || fail "found '$found' where '$expected' was made by: $change"
done <<'EOF'
change / weir_version(/d
change /weir_parallel_for(/s/int64_t/int32_t/
change s/^int64_t iteration;/int64_t inserted; &/
change s/^int64_t iteration;/int32_t iteration;/
change s/^size_t not_run_capacity;/int32_t *not_run_capacity;/;s/^} weir_failure;/int64_t appended;\n&/
change s/^} weir_tensor_view;/int32_t appended;\n&/
change s/WEIR_DATA_LOSS = 15/WEIR_DATA_LOSS = 17/
change s/WEIR_DATA_LOSS = 15,//
addition s/^} weir_failure;/int64_t appended;\n&/
addition s/WEIR_DATA_LOSS = 15,/& WEIR_ADDED = 17,/
addition $s/$/\nvoid weir_added(void) { }/
addition $s/$/\ntypedef struct weir_added { size_t struct_size;\nint32_t member;\n} weir_added;/
EOF

[ -e "$kept" ] || fail "there is no $name: './dev abi' makes it"
found=$(verdict "$kept" "$work/stub.c")
[ "$found" = same ] || cat "$work/differences" >&2
renew="renew $name with './dev abi', and commit it"
case $found in
same) echo "the interface of $soname is that of $name: $(wc -l <"$work/declared") functions" ;;
addition) fail "a compatible addition: $renew" ;;
*)
    grep -q " soname='$soname'" "$kept" || fail "the soname is $soname now: $renew"
    echo "abi.sh: an incompatible change: programs that were compiled before cannot use this library." >&2
    fail "if $soname has been published, raise WEIR_ABI_VERSION too; $renew"
    ;;
esac
