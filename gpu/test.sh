#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#     gpu/test.sh <program of tests>
#
# Runs each test of a program in a process of its own, on the driver that is there. Elsewhere these tests bring the fake driver
# themselves; what is about that driver alone says that it is skipped.

set -u
export WEIR_TEST_CUDA=1 WEIR_TEST_EXAMPLES=$PWD/examples
passed=0 failed=0 skipped=0
# Tests of the images compare files of the repository.
for test in $("$1" --list --format terse | sed -n '/^images::/d; s/: test$//p'); do
    output=$(timeout --foreground -k 1 20 "$1" "$test" --exact --nocapture --test-threads=1 2>&1)
    code=$?
    if [ $code != 0 ]; then
        failed=$((failed + 1))
        printf '%s: FAILED (%d)\n%s\n' "$test" $code "$output"
    elif [[ $output == *"SKIPPED: "* ]]; then
        skipped=$((skipped + 1))
        echo "$test: skipped"
    else
        passed=$((passed + 1))
        echo "$test: passed"
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $((passed + skipped)) -gt 0 ]
