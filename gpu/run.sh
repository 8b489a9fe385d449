#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#     gpu/run.sh [--fake] [kit [out]]
#
# Everything that weir has to show on a GPU, in order of value, in under nine minutes: a step that fails or runs out of its time is
# noted, and the next one begins. The kit (build/gpu/kit, or a kit.tar.gz) was made by gpu/pack.sh, perhaps on another machine; this one needs no
# Rust and no network. The report and the output of each step are in out (build/gpu/report), report.md first.
#
# With --fake it runs on the fake driver that the kit brings, quickly, so that no minute on a GPU is lost to a mistake in here;
# figures then mean nothing, and the report says so. Leaves with 1 if a step failed.

set -u
fake=
[ "${1:-}" = --fake ] && { fake=1; shift; }
root=$(cd "$(dirname "$0")/.." && pwd)
if [ -f "${1:-}" ]; then
    unpacked=$(mktemp -d) && trap 'rm -rf "$unpacked"' EXIT
    tar -C "$unpacked" -xzf "$1" && set -- "$unpacked" "${@:2}"
fi
kit=$(cd "${1:-$root/build/gpu/kit}" 2>/dev/null && pwd) || { echo "gpu/run.sh: no kit in ${1:-build/gpu/kit}; make it with gpu/pack.sh" >&2; exit 2; }
out=${2:-$root/build/gpu/report}
mkdir -p "$out" && out=$(cd "$out" && pwd)
report=$out/report.md
budget=${WEIR_GPU_SECONDS:-520}
begun=$SECONDS
failed=0

have() { command -v "$1" >/dev/null 2>&1; }

# Folders of NVRTC and the cuBLAS libraries that are not where the loader looks: those of the toolkit and of Python packages. They have to be
# named before a process starts.
libraries() {
    {
        find /usr/local/cuda*/ -maxdepth 4 \( -name 'libnvrtc.so*' -o -name 'libcublasLt.so*' \) 2>/dev/null
        if have python3; then
            python3 - <<'P' 2>/dev/null
import glob, site, sys
for folder in {*site.getsitepackages(), site.getusersitepackages()}:
    for name in glob.glob(folder + "/nvidia/*/lib*/libnvrtc.so*") + glob.glob(folder + "/nvidia/*/lib*/libcublasLt.so*"):
        print(name)
P
        fi
    } | while read -r file; do dirname "$file"; done | sort -u | paste -sd:
}

export LD_LIBRARY_PATH="$kit/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
if [ -n "$fake" ]; then
    export LD_LIBRARY_PATH="$kit/fake:$LD_LIBRARY_PATH"
else
    found=$(libraries)
    [ -z "$found" ] || export LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$found"
fi
export WEIR_CUDA_CACHE="$out/cache"

# step <name> <seconds at most> <command...>: runs it with what is left of the time.
step() {
    local name=$1 most=$2 left=$((budget - (SECONDS - begun))) start=$SECONDS code
    shift 2
    [ "$left" -lt "$most" ] && most=$left
    if [ "$most" -lt 2 ]; then
        echo "| $name | not run: no time left | |" >>"$report"
        failed=1
        return
    fi
    timeout -k 5 "$most" "$@" >"$out/$name.log" 2>&1 </dev/null
    code=$?
    local result=passed
    [ $code = 77 ] && result=skipped
    [ $code = 124 ] && result="out of time ($most s)"
    [ $code != 0 ] && [ $code != 77 ] && [ $code != 124 ] && result="FAILED ($code)"
    [ $code = 0 ] || [ $code = 77 ] || failed=1
    [ $code = 0 ] && grep -q '^SKIPPED' "$out/$name.log" && result="skipped: $(grep -m1 '^SKIPPED' "$out/$name.log" | cut -c10-)"
    echo "| $name | $result | $((SECONDS - start)) |" >>"$report"
    printf '%-28s %s\n' "$name" "$result"
}

# Without this a figure cannot be placed.
machine() {
    if [ -n "$fake" ]; then
        echo "On the fake driver: **no figure below was measured on a GPU.**"
    else
        nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total,clocks.max.sm --format=csv 2>/dev/null | sed 's/^/    /'
    fi
    echo "    kernel $(uname -r), $(nproc) processors, glibc $(getconf GNU_LIBC_VERSION 2>/dev/null)"
}

{
    echo "# weir on a GPU: report"
    echo
    machine
    echo
    echo "| step | result | s |"
    echo "|---|---|---|"
} >"$report"

bench=(bin/gpu_bench)
[ -n "$fake" ] && bench+=(--quick)
cd "$kit" || exit 2

step load 30 bin/gpu_bench info
step smoke 30 bin/gpu_bench smoke
step questions 60 "${bench[@]}" questions
step conformance 60 bin/weir_conformance --device cuda
for test in tests/*; do
    [ -x "$test" ] && step "test-$(basename "$test")" 120 bash gpu/test.sh "$test"
done
step bench-calls 40 "${bench[@]}" calls
step bench-graphs 60 "${bench[@]}" graphs
step bench-loops 30 "${bench[@]}" loops
step bench-memory 30 "${bench[@]}" memory
if have python3; then
    step interop 60 python3 gpu/interop.py
else
    echo "| interop | not run: no python3 | |" >>"$report"
fi
if [ -z "$fake" ] && have compute-sanitizer; then
    step sanitizer-smoke 60 compute-sanitizer --error-exitcode 9 bin/gpu_bench smoke
    WEIR_TEST_CUDA=1 WEIR_TEST_EXAMPLES=$PWD/examples step sanitizer-networks 90 \
        compute-sanitizer --error-exitcode 9 tests/cuda_networks --test-threads=1
elif [ -z "$fake" ]; then
    echo "| sanitizer | not run: no compute-sanitizer | |" >>"$report"
fi

{
    echo
    echo "In all $((SECONDS - begun)) s."
    for name in load questions bench-calls bench-graphs bench-loops bench-memory interop; do
        [ -s "$out/$name.log" ] || continue
        echo
        echo "<!-- $name -->"
        cat "$out/$name.log"
    done
    for log in "$out"/*.log; do
        name=$(basename "$log" .log)
        grep -q "^| $name | \(FAILED\|out of time\)" "$report" || continue
        printf '\n## The end of %s\n\n' "$name"
        tail -n 25 "$log" | sed 's/^/    /'
    done
} >"$out/rest"
cat "$out/rest" >>"$report" && rm "$out/rest"
echo "report: $report"
exit $failed
