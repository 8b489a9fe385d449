#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#     gpu/run.sh [--fake] [kit [out]]
#
# Everything that weir has to show on a GPU, in order of value, in under eight minutes: a step that fails or runs out of its time is
# noted, and the next one begins. The kit (build/gpu/kit, or a kit.tar.gz) was made by gpu/pack.sh, perhaps on another machine; this one needs no
# Rust and no network. Two files are in out (build/gpu/report), both whole after each step, whatever becomes of the next: report.md, and logs.tgz
# with the output of each step. WEIR_GPU_SECONDS is the time of all steps, WEIR_GPU_STEP_SECONDS that of each at most.
#
# With --fake it runs on the fake driver that the kit brings, quickly, so that no minute on a GPU is lost to a mistake in here;
# figures then mean nothing, and the report says so. Leaves with 1 if a step failed.

set -u
fake=
[ "${1:-}" = --fake ] && { fake=1; shift; }
root=$(cd "$(dirname "$0")/.." && pwd)
# An unpacked kit, what steps say, and what is kept of compiled kernels.
work=$(mktemp -d)
holder=
finish() {
    [ -z "$holder" ] || kill "$holder" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
if [ -f "${1:-}" ]; then
    tar -C "$work" -xzf "$1" && set -- "$work" "${@:2}"
fi
kit=$(cd "${1:-$root/build/gpu/kit}" 2>/dev/null && pwd) || { echo "gpu/run.sh: no kit in ${1:-build/gpu/kit}; make it with gpu/pack.sh" >&2; exit 2; }
out=${2:-$root/build/gpu/report}
mkdir -p "$out" && out=$(cd "$out" && pwd)
report=$out/report.md
budget=${WEIR_GPU_SECONDS:-470}
step_budget=${WEIR_GPU_STEP_SECONDS:-$budget}
begun=$SECONDS
failed=0

have() { command -v "$1" >/dev/null 2>&1; }

# Folders of NVRTC and the cuBLAS libraries that are not where the loader looks: those of the toolkit and of Python packages. They have to be
# named before a process starts.
libraries() {
    {
        timeout 5 find /usr/local/cuda*/ -maxdepth 4 \( -name 'libnvrtc.so*' -o -name 'libcublasLt.so*' \) 2>/dev/null
        if have python3; then
            timeout 5 python3 - <<'P' 2>/dev/null
import glob, site, sys
for folder in {*site.getsitepackages(), site.getusersitepackages()}:
    for name in glob.glob(folder + "/nvidia/*/lib*/libnvrtc.so*") + glob.glob(folder + "/nvidia/*/lib*/libcublasLt.so*"):
        print(name)
P
        fi
    } | while read -r file; do dirname "$file"; done | sort -u | paste -sd:
}

export LD_LIBRARY_PATH="$kit/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# What Python's libraries load is theirs to find: they bring versions of their own.
interop_path=$LD_LIBRARY_PATH
if [ -n "$fake" ]; then
    export LD_LIBRARY_PATH="$kit/fake:$LD_LIBRARY_PATH"
    # As a real driver, which knows no kernels but PTX.
    export FAKE_CUDA_KERNELS=ptx
    interop_path=$LD_LIBRARY_PATH
else
    found=$(libraries)
    [ -z "$found" ] || export LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$found"
fi
export WEIR_CUDA_CACHE="$work/cache"
# A step that is killed loses nothing of what it has said.
export PYTHONUNBUFFERED=1
# JAX would take three quarters of the memory for itself.
export XLA_PYTHON_CLIENT_PREALLOCATE=false

# What the steps have to say is in here until the report is written from it.
said=$work/said
mkdir -p "$said"
rm -f "$report" "$out/logs.tgz"
: >"$said/steps"

note() { printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$said/steps"; }

# Without this a figure cannot be placed.
cd "$kit" || exit 2
machine=$(
    if [ -n "$fake" ]; then
        echo "On the fake driver: **no figure below was measured on a GPU.**"
    else
        timeout 20 nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total,clocks.max.sm --format=csv 2>/dev/null | sed 's/^/    /'
    fi
    echo
    ldd lib/* >"$said/ldd.txt" 2>&1
    echo "    $(date -u +%Y-%m-%d), kernel $(uname -r), $(nproc) processors, $(getconf GNU_LIBC_VERSION 2>/dev/null)"
)

# ---- The report --------------------------------------------------------------------------------------

# The questions of RESULTS.md, with the steps that answer them.
questions='Does PTX of our own that calls `cudaGraphSetConditional` load and run (IF, WHILE, IF-ELSE, SWITCH)?|conditions
Does the driver still take PTX for sm_52?|questions
Can the parameters of a kernel or a memset inside a conditional body be changed through the executable?|conditions
What does the driver'"'"'s own pool cost for an allocation, and what weir'"'"'s free list?|questions bench-memory
Looking, sleeping, a host function or a word in pinned memory: how late does the host know?|bench-latency
From which length of kernels on do several streams win over one, and a CUDA graph over both? Does a branched graph cost more to launch?|bench-dags bench-graphs
What does `cuCtxGetCurrent` cost?|questions'

# What the logs say of question n, or what became of the steps that were to.
answers() {
    local number=$1 steps=$2 found
    found=$(cat "$said"/*.log 2>/dev/null | sed -n "s/^<!-- answer $number: \(.*\) -->\$/\1/p" | awk 'NR > 1 { printf "; " } { printf "%s", $0 }')
    [ -n "$found" ] || found="**open**"
    for name in $steps; do
        awk -F '\t' -v name="$name" '$1 == name && $2 != "passed" { printf " (%s: %s)", $1, $2; known = 1 } $1 == name { known = 1 }
            END { if (!known) printf " (%s: not run)", name }' "$said/steps" >"$said/why"
        found=$found$(cat "$said/why")
    done
    rm -f "$said/why"
    echo "$found"
}

write_report() {
    local number=0 question steps name result seconds
    {
        echo "# weir on a GPU: report"
        echo
        echo "$machine"
        echo
        echo "| step | result | s |"
        echo "|---|---|---|"
        awk -F '\t' '{ printf "| %s | %s | %s |\n", $1, $2, $3 }' "$said/steps"
        echo
        echo "In all $((SECONDS - begun)) s."
        echo
        echo "## Questions"
        echo
        [ -z "$fake" ] || printf 'Answered by the fake driver: **none of this is known of a GPU.**\n\n'
        echo "| question | answer |"
        echo "|---|---|"
        while IFS='|' read -r question steps; do
            number=$((number + 1))
            echo "| $number. $question | $(answers $number "$steps") |"
        done <<Q
$questions
Q
        while IFS=$'\t' read -r name result seconds; do
            [ -s "$said/$name.log" ] || continue
            case $name in
            load* | conditions | questions | bench-* | kernels-torch | interop-*)
                echo
                echo "<!-- $name -->"
                grep -v '^<!-- answer' "$said/$name.log"
                ;;
            esac
            case $result in
            FAILED* | "out of time"*)
                printf '\n## The end of %s\n\n' "$name"
                tail -n 25 "$said/$name.log" | sed 's/^/    /'
                ;;
            esac
        done <"$said/steps"
    } >"$work/report" && cp "$work/report" "$report.new" && mv "$report.new" "$report"
    tar -C "$work" -czf "$out/logs.new" said && mv "$out/logs.new" "$out/logs.tgz"
}

# ---- The steps ---------------------------------------------------------------------------------------

# step <name> <seconds at most> <command...>: runs it with what is left of the time. What outlives its limit is killed with all that it started.
step() {
    local name=$1 most=$2 left=$((budget - (SECONDS - begun))) start=$SECONDS code
    shift 2
    [ "$left" -lt "$most" ] && most=$left
    [ "$step_budget" -lt "$most" ] && most=$step_budget
    if [ "$most" -lt 2 ]; then
        note "$name" "not run: no time left" 0
        failed=1
        write_report
        return
    fi
    timeout -k 2 "$most" "$@" >"$said/$name.log" 2>&1 </dev/null
    code=$?
    local result=passed
    case $code in
    0) grep -q '^SKIPPED' "$said/$name.log" && result="skipped: $(grep -m1 '^SKIPPED' "$said/$name.log" | cut -c10-)" ;;
    77) result=skipped$(sed -n 's/^SKIPPED\(: .*\)/\1/p' "$said/$name.log" | head -n 1) ;;
    # 137: it did not end when it was asked to.
    124 | 137) result="out of time ($most s)" ;;
    *) result="FAILED ($code)" ;;
    esac
    note "$name" "$result" $((SECONDS - start))
    printf '%-28s %s\n' "$name" "$result"
    case $result in
    passed | skipped*) ;;
    *)
        failed=1
        tail -n 5 "$said/$name.log" | sed 's/^/    /'
        ;;
    esac
    write_report
}

bench=(bin/gpu_bench)
[ -n "$fake" ] && bench+=(--quick)
write_report

# The first opening of a device that nobody holds may take seconds, and so may each: one process holds it for the others.
step load 15 bin/gpu_bench info
# Its input never ends: who opens a pipe for both is at its other end, too.
bin/gpu_bench hold <> <(:) >/dev/null 2>&1 &
holder=$!
step load-again 15 bin/gpu_bench info
step smoke 15 bin/gpu_bench smoke
step conditions 20 "${bench[@]}" conditions
step questions 20 "${bench[@]}" questions
for section in latency calls graphs loops products kernels dags memory; do
    case $section in graphs | dags | kernels) most=30 ;; products) most=25 ;; *) most=15 ;; esac
    step "bench-$section" $most "${bench[@]}" $section
done
# Everything that is asked is answered by now.
step conformance 30 bin/weir_conformance --device cuda
for test in cuda_operators cuda_networks cuda; do
    [ -x "tests/$test" ] && step "test-$test" 50 bash gpu/test.sh "tests/$test"
done
if have python3; then
    LD_LIBRARY_PATH=$interop_path step kernels-torch 40 python3 gpu/torch_kernels.py ${fake:+--fake} "$said/bench-kernels.log"
    for package in torch cupy jax; do
        LD_LIBRARY_PATH=$interop_path step "interop-$package" 25 python3 gpu/interop.py ${fake:+--fake} $package
    done
else
    note kernels-torch "not run: no python3" 0
    note interop "not run: no python3" 0
fi
for section in updates branches; do
    step "bench-$section" 15 "${bench[@]}" $section
done
if [ -n "$fake" ]; then
    note sanitizer "not run: the fake driver is no GPU" 0
elif have compute-sanitizer; then
    step sanitizer-smoke 20 compute-sanitizer --error-exitcode 9 bin/gpu_bench smoke
    # cuBLASLt's kernels would be instrumented, too, as they are loaded.
    WEIR_CUDA_BLAS=0 WEIR_TEST_CUDA=1 WEIR_TEST_EXAMPLES=$PWD/examples step sanitizer-networks 40 \
        compute-sanitizer --error-exitcode 9 tests/cuda_networks --test-threads=1
else
    note sanitizer "not run: no compute-sanitizer" 0
fi

write_report
echo "report: $report"
exit $failed
