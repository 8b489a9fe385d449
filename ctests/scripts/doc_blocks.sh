#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   doc_blocks.sh <top of the repository>
#
# Every block of C and C++ in README.md and in docs/ is C and C++: a program compiles as it stands; the statements and
# functions of a part of one compile where doc_blocks.h declares what they use besides. CC is gcc, which knows functions
# inside of functions. What needs headers of others is left out, but names of weir's must be there in all of them.

set -eu

root=$1
scripts=$(cd "$(dirname "$0")" && pwd)

printf 'int f(void) { int g(void) { return 1; } return g(); }' | "${CC:-cc}" -fsyntax-only -x c - 2>/dev/null ||
    { echo "SKIPPED: ${CC:-cc} knows no functions inside of functions"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Blocks whose headers are not weir's and not the C library's.
foreign='omp\.h|<weir/adapters/(openmp|tbb|eigen|dispatch)|tensorflow::|tracy/|MPI_COMM_WORLD'

cd "$root"
for page in README.md docs/*.md docs/guides/*.md; do
    awk -v "to=$work/$(echo "$page" | tr / .)" '
        /^```/ { inside = 0 }
        /^```(c|cpp)$/ { inside = 1; file = to "." NR "." substr($0, 4); next }
        inside { print >file }' "$page"
done

# What docs have for what is up to the reader: a line, or a value, of dots.
filled() {
    sed -e 's/^ *\.\.\. *\(\/\*.*\)\{0,1\}$//' -e 's/= \.\.\./= 0/g' -e 's/, \.\.\.}/}/g' "$1"
}

part() {
    printf '#include "doc_blocks.h"\nint block(void);\nint block(void) {\n#line 1 "%s"\n' "$(basename "$1")"
    filled "$1" | sed 's/^static \(.*(\)/\1/'
    printf '\nreturn 0;\n}\n'
}

cat include/weir.h include/weir.hpp include/weir/*.h include/weir/*.hpp include/weir/adapters/* >"$work/headers"
grep -oE '\bweir_\w+|\bWEIR_\w+' "$work/headers" | sort -u >"$work/known"
programs=0
parts=0
others=0
failed=0
for block in "$work"/*.c "$work"/*.cpp; do
    grep -oE '\bweir_\w+|\bWEIR_\w+' "$block" | sort -u | comm -23 - "$work/known" >"$work/unknown"
    if [ -s "$work/unknown" ]; then
        echo "doc_blocks.sh: $(basename "$block") has what no header has: $(paste -s -d ' ' "$work/unknown")" >&2
        exit 1
    fi
    # Of C++ the names alone, qualified.
    for name in $(grep -oE '\bweir::[a-z_:]*[a-z_]' "$block" | sed 's/.*:://' | sort -u); do
        grep -qw "$name" "$work/headers" && continue
        echo "doc_blocks.sh: $(basename "$block"): there is no weir::$name" >&2
        exit 1
    done
    if grep -qE "$foreign" "$block"; then
        others=$((others + 1))
        continue
    fi
    case $block in
    *.c) compiler="${CC:-cc} -std=gnu11" ;;
    *) compiler="${CXX:-c++} -std=c++17" ;;
    esac
    language=${block##*.}
    page=$(basename "$block" | sed -e 's/^docs\.//' -e 's/\..*//' | tr '[:lower:]' '[:upper:]')
    if grep -q '^int main(' "$block"; then
        cp "$block" "$work/source.$language"
        programs=$((programs + 1))
    else
        part "$block" >"$work/source.$language"
        parts=$((parts + 1))
    fi
    # shellcheck disable=SC2086 # several words
    $compiler -fsyntax-only -Wall -Werror -Wno-unused -Wno-unknown-pragmas -D_POSIX_C_SOURCE=200809L -DWEIR_NODISCARD= \
        "-DDOC_$page=" -Iinclude "-I$scripts" "$work/source.$language" || failed=1
done
[ "$failed" = 0 ] || exit 1
[ "$programs" -gt 0 ] && [ "$parts" -gt 0 ] || { echo "doc_blocks.sh: there are no blocks" >&2; exit 1; }
echo "$programs programs and $parts parts of some compile; $others with headers of others have weir's names right"
