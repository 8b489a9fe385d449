#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#     gpu/test.sh <program of tests>
#
# Runs the tests of a program on the driver that is there, in one process, since each new one has to begin with the
# device. If that process crashes, hangs or leaves early, those of which it has not told how they went have one each.
# Elsewhere these tests bring the fake driver themselves; what is about that driver alone says that it is skipped.

set -u
export WEIR_TEST_CUDA=1 WEIR_TEST_EXAMPLES=$PWD/examples
program=$1
# Seconds without a word, and of a test that is alone.
patience=${WEIR_TEST_PATIENCE:-20}
work=$(mktemp -d)
all=
finish() {
    [ -z "$all" ] || kill -KILL -- "-$all" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
# Whoever has no more time for it still learns what is known.
trap 'so_far; exit 143' TERM INT
so_far() {
    [ -n "$all" ] || return
    of_each | while read -r test how; do
        case $how in ok) how=passed ;; unknown) how="had begun" ;; esac
        echo "$test: $how"
    done
}

# The output of all, test by test: what one has printed, or how each went, as far as it is known. A test begins with
# "test name ... ", behind which is all that it prints, and then a line "ok" or "FAILED".
of_each() {
    awk -v wanted="${1:-}" '
        function end() {
            if (name != "" && wanted == "") print name, verdict == "ok" && skips ? "skipped" : verdict == "" ? "unknown" : verdict
            name = ""
        }
        function line(text) {
            if (text == "ok" || text == "FAILED" || text ~ /^ignored/) verdict = substr(text, 1, 7) == "ignored" ? "skipped" : text
            if (text ~ /SKIPPED: /) skips = 1
            if (name == wanted) print text
        }
        /^test [^ ]+ .*\.\.\. / || /^test [^ ]+ \.\.\.$/ {
            end(); name = $2; verdict = ""; skips = 0
            text = $0; sub(/^test [^ ]+ (- should panic )?\.\.\. ?/, "", text); line(text); next
        }
        /^failures:$/ || /^test result: / { end() }
        name != "" { line($0) }
        END { end() }' "$work/all"
}

# Tests of the images compare files of the repository.
"$program" --list --format terse | sed -n '/^images::/d; s/: test$//p' >"$work/names"
# A group of processes, so that none of its own outlives it.
set -m
"$program" --test-threads=1 --nocapture --skip images:: >"$work/all" 2>&1 </dev/null &
all=$!
set +m
size=-1 quiet_since=$SECONDS why=
while kill -0 "$all" 2>/dev/null; do
    now=$(stat -c %s "$work/all" 2>/dev/null)
    if [ "$now" != "$size" ]; then
        size=$now quiet_since=$SECONDS
    elif [ $((SECONDS - quiet_since)) -ge "$patience" ]; then
        why="said nothing for $patience s"
        kill -TERM -- "-$all"
        sleep 1
        kill -KILL -- "-$all" 2>/dev/null
        break
    fi
    sleep 0.1
done
{ wait "$all"; } 2>/dev/null
code=$?
all=
case $code in 0 | 101) ;; *) why=${why:-ended with $code} ;; esac

passed=0 failed=0 skipped=0 alone=0
# count <test> <how it went> <words for that>; what it has printed, if it failed, is on standard input.
count() {
    case $2 in
    ok) passed=$((passed + 1)) && echo "$1: passed$3" ;;
    skipped) skipped=$((skipped + 1)) && echo "$1: skipped$3" ;;
    *) failed=$((failed + 1)) && echo "$1: FAILED$3" && cat ;;
    esac
}

# run_alone <test>: its output is in $work/output.
run_alone() {
    WEIR_TEST_ALONE=1 timeout --foreground -k 1 "$patience" "$program" "$1" --exact --nocapture --test-threads=1 \
        >"$work/output" 2>&1 </dev/null
}

of_each >"$work/known"
culprit=$(sed -n 's/ unknown$//p' "$work/known" | tail -n 1)
while read -r test; do
    how=$(awk -v test="$test" '$1 == test { how = $2 } END { print how }' "$work/known")
    case $how in
    ok | skipped) count "$test" $how "" ;;
    FAILED) of_each "$test" >"$work/output" && count "$test" FAILED "" <"$work/output" && echo "$test" >>"$work/again" ;;
    *) echo "$test" >>"$work/unknown" ;;
    esac
done <"$work/names"
if [ -n "$why" ] && [ -n "$culprit" ]; then
    # It may be well alone, and still is what this is about.
    of_each "$culprit" >"$work/output"
    count "$culprit" FAILED " (the process of all $why)" <"$work/output"
elif [ -n "$why" ]; then
    tail -n 20 "$work/all" >"$work/output"
    count "the process of all" FAILED " ($why)" <"$work/output"
fi
touch "$work/unknown"
while read -r test; do
    [ "$test" != "$culprit" ] || [ -z "$why" ] || continue
    alone=$((alone + 1))
    run_alone "$test"
    code=$?
    how=ok
    if [ $code != 0 ]; then how=FAILED; elif grep -q 'SKIPPED: ' "$work/output"; then how=skipped; fi
    [ $code = 0 ] && words=", alone" || words=" ($code), alone"
    count "$test" $how "$words" <"$work/output"
done <"$work/unknown"
# One failure may bring others with it: whoever looks for the first wants to know.
touch "$work/again"
head -n 10 "$work/again" | while read -r test; do
    run_alone "$test" && echo "$test: passes alone" || echo "$test: fails alone, too"
done
[ $alone = 0 ] || echo "$alone of them alone, since the process of all ${why:-left early}"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $((passed + skipped)) -gt 0 ]
