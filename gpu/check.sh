#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#     gpu/check.sh [kit]
#
# That gpu/run.sh loses nothing when a step hangs or crashes, and that the tests pass on each kind of machine: on the
# fake driver, with the kit's bench in a wrapper that does so. Then each question has an answer, except those whose
# steps were spoilt, and the report says which.

set -eu
cd "$(dirname "$0")/.."
kit=$(cd "${1:-build/gpu/kit}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/kit/bin" "$work/kit/tests"
for part in lib fake gpu examples; do ln -s "$kit/$part" "$work/kit/$part"; done
ln -s "$kit/bin/gpu_bench" "$work/kit/bin/real"
printf '#!/bin/sh\nexit 0\n' >"$work/kit/bin/weir_conformance"
# One that hangs and does not end when it is asked to, one that crashes in the middle of a line, and one that is wrong.
cat >"$work/kit/bin/gpu_bench" <<'P'
#!/bin/bash
case "$*" in
*questions*) trap '' TERM; echo begun; while :; do sleep 1; done ;;
*calls*) printf 'half a li'; kill -SEGV $$ ;;
*updates*) echo "WRONG: by intent"; exit 1 ;;
*graphs* | *dags* | *loops* | *branches* | *memory* | *products*) echo left out ;;
*) exec "$(dirname "$0")/real" "$@" ;;
esac
P
chmod +x "$work/kit/bin/"*

fail() {
    echo "gpu/check.sh: $*" >&2
    cat "$work/out/report.md" >&2
    exit 1
}

start=$SECONDS code=0
WEIR_GPU_STEP_SECONDS=${WEIR_GPU_STEP_SECONDS:-4} gpu/run.sh --fake "$work/kit" "$work/out" >"$work/said" 2>&1 || code=$?
[ $code = 1 ] || fail "run.sh left with $code, not with 1"
report=$work/out/report.md
says() { grep -qE "$1" "$report" || fail "the report has no line $1"; }
says '^\| questions \| out of time \([0-9]+ s\) \|'
says '^\| bench-calls \| FAILED \(139\) \|'
says '^\| bench-updates \| FAILED \(1\) \|'
says '^    WRONG: by intent$'
for step in load smoke conditions conformance bench-latency bench-kernels bench-memory; do says "^\| $step \| passed \|"; done
says '^\| kernels-torch \| skipped: .* [1-9][0-9]* rows were there'
says 'no figure below was measured on a GPU'
says 'none of this is known of a GPU'
says '^\| 1\. .*\| IF yes; WHILE yes; IF-ELSE yes; SWITCH yes \|'
says '^\| 2\. .*\| \*\*open\*\* \(questions: out of time'
says '^\| 3\. .*kernel in IF works'
says '^\| 7\. .*\| \*\*open\*\* \(questions: out of time'
[ "$(grep -cE '^\| [1-7]\. ' "$report")" = 7 ] || fail "not seven questions"

# With no time at all there still is a report.
code=0
WEIR_GPU_SECONDS=0 gpu/run.sh --fake "$work/kit" "$work/out" >"$work/said" 2>&1 || code=$?
[ $code = 1 ] || fail "run.sh left with $code, not with 1"
says '^\| bench-memory \| not run: no time left \|'

# A program of tests that crashes in the middle, or hangs, loses that test and no other.
cat >"$work/program" <<'P'
#!/bin/bash
tests=(images::a well::a well::skips spoilt::b well::b wrong::b)
[[ " $* " == *" --list "* ]] && { printf '%s: test\n' "${tests[@]}"; exit 0; }
one=$1
[[ $one == --* ]] && one=
[ -n "$one" ] && [ -z "${WEIR_TEST_ALONE:-}" ] && exit 3
code=0
for test in "${tests[@]:1}"; do
    [ -z "$one" ] || [ "$test" = "$one" ] || continue
    printf 'test %s ... ' "$test"
    case $test in
    *skips) printf 'SKIPPED: by intent\nok\n' ;;
    spoilt*) printf 'the word look\n'; eval "$SPOIL" ;;
    wrong*) printf 'a panic\nFAILED\n'; code=101 ;;
    *) echo ok ;;
    esac
done
printf '\ntest result: so so\n'
exit $code
P
chmod +x "$work/program"
# tests_say <how one is spoilt> <line>...: lines that gpu/test.sh says of it.
tests_say() {
    local code=0 line
    SPOIL=$1 WEIR_TEST_PATIENCE=2 bash gpu/test.sh "$work/program" >"$work/tests" 2>&1 || code=$?
    shift
    [ $code = 1 ] || { cat "$work/tests" >&2; echo "gpu/check.sh: test.sh left with $code, not with 1" >&2; exit 1; }
    for line in "$@"; do
        grep -qxF "$line" "$work/tests" || { cat "$work/tests" >&2; echo "gpu/check.sh: test.sh has no line '$line'" >&2; exit 1; }
    done
}
others=("well::a: passed" "well::skips: skipped" "well::b: passed, alone" "wrong::b: FAILED (101), alone" "the word look"
    "2 passed, 2 failed, 1 skipped")
tests_say 'kill -SEGV $$' "spoilt::b: FAILED (the process of all ended with 139)" "${others[@]}"
tests_say 'sleep 60' "spoilt::b: FAILED (the process of all said nothing for 2 s)" "${others[@]}"
tests_say 'exit 0' "well::a: passed" "spoilt::b: passed, alone" "3 passed, 1 failed, 1 skipped"
tests_say 'echo ok' "well::b: passed" "wrong::b: FAILED" "a panic" "wrong::b: fails alone, too" "3 passed, 1 failed, 1 skipped"

# Tests on machines as they are: without Rust, with the one library that a driver must bring, with a compiler of CUDA's
# and without.
mkdir "$work/driver"
cp "$kit/fake/libcuda.so.1" "$work/driver/"
tests_of() {
    local what=$1 folders=$2 code=0
    (cd "$kit" && PATH=/usr/bin:/bin FAKE_CUDA_KERNELS=ptx LD_LIBRARY_PATH="$kit/lib:$folders" bash gpu/test.sh tests/cuda) >"$work/tests" 2>&1 || code=$?
    [ $code = 0 ] || { cat "$work/tests" >&2; echo "gpu/check.sh: $what: tests/cuda failed" >&2; exit 1; }
    echo "$what: $(tail -n 1 "$work/tests")"
}
tests_of "libcuda.so.1 alone, no Rust, no NVRTC" "$work/driver"
if [ -d "$kit/fake-nvrtc" ]; then
    tests_of "libcuda.so.1 and NVRTC, no Rust" "$work/driver:$kit/fake-nvrtc"
else
    echo "SKIPPED: with NVRTC: the kit has none; it is there when the tests have run"
fi
echo "a step that hangs, one that crashes and one that is wrong: the others ran, the report is whole ($((SECONDS - start)) s)"
