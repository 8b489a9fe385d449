#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   static_link.sh <include directory> <libweir.a> <library>...
#
# Programs with all of weir in them: a product on a pool and nothing else, of which the linker keeps what it needs, and
# those on the first page of weir.h, linked with -static; and a plug-in. The libraries are those of weir.pc (pkg-config
# --static). CC is the compiler, musl-gcc too.

set -eu

include_dir=$1
archive=$2
shift 2
libraries=$(printf -- '-l%s ' "$@")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# link <source> <option>...
link() {
    source=$1
    shift
    # shellcheck disable=SC2086 # several words
    "${CC:-cc}" -std=c11 -O2 -Wall -Wextra -Wpedantic -Werror -DWEIR_STATIC -ffunction-sections "-I$include_dir" "$source" \
        -o "$work/program" "$archive" "$@" -Wl,--gc-sections $libraries 2>"$work/log" || { cat "$work/log" >&2 && return 1; }
}

cat >"$work/product.c" <<'C'
#include <stdio.h>
#include <weir.h>
#include <weir/ops.h>

int main(void) {
    weir_threadpool *pool = NULL;
    float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4];
    if (weir_threadpool_create_builtin(NULL, &pool) != WEIR_OK) return 1;
    if (weir_sgemm(0, 0, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2, pool) != WEIR_OK) return 2;
    weir_threadpool_release(pool);
    return c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50 ? 0 : 3;
}
C
link "$work/product.c"
"$work/program"
WEIR_TRACE=report "$work/program" 2>"$work/report"
grep -q '^weir trace: ' "$work/report" || { echo "static_link.sh: no trace by the environment" >&2 && exit 1; }
strip "$work/program"
alone=$(wc -c <"$work/program")

# A plug-in with all of weir in it writes its trace when it is unloaded. The C library musl unloads nothing.
cat >"$work/plugin.c" <<'C'
#include <weir/trace.h>

int plugin_call(void);

int plugin_call(void) {
    uint32_t name;
    return weir_trace_intern("a name", &name);
}
C
cat >"$work/host.c" <<'C'
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    void *plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *symbol = plugin != NULL ? dlsym(plugin, "plugin_call") : NULL;
    int (*call)(void);
    memcpy(&call, &symbol, sizeof call);
    if (call == NULL || call() != 0 || dlclose(plugin) != 0) return 1;
    if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != NULL) return 0;
    _exit(0);
}
C
link "$work/plugin.c" -shared -fPIC
mv "$work/program" "$work/plugin.so"
"${CC:-cc}" "$work/host.c" -o "$work/host" -ldl
WEIR_TRACE=report "$work/host" "$work/plugin.so" 2>"$work/report"
grep -q '^weir trace: ' "$work/report" || { echo "static_link.sh: no trace of a plug-in" >&2 && exit 1; }

sed -n '1,/^ \*\/$/s/^ \* \{0,1\}//p' "$include_dir/weir.h" | awk -v "work=$work" '
    /^    #include/ && !inside { inside = 1; number++ }
    inside && /^[^ ]/ { inside = 0 }
    inside { print substr($0, 5) >(work "/page" number ".c") }'
number=0
for program in "$work/product.c" "$work"/page*.c; do
    link "$program" -static
    if readelf -d "$work/program" | grep -q NEEDED; then
        echo "static_link.sh: $program needs shared libraries" >&2
        exit 1
    fi
    "$work/program" >"$work/output"
    cat "$work/output"
    number=$((number + 1))
done
[ "$number" = 4 ] || { echo "static_link.sh: $number programs, expected 4" >&2; exit 1; }
echo "$number programs run without a shared library; a product on a pool alone takes $alone bytes"
