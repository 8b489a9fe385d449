#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   conformance.sh <weir_conformance> <exit status> <pattern;...> <argument>...
#
# Runs the program: it must end with this status, and each pattern (an extended regular expression) must match a line of
# its output. With status 0 or 3 no line may say FAIL, and with 3 one says "not checked".

set -u

program=$1
status=$2
patterns=$3
shift 3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$program" "$@" >"$work/output" 2>&1
got=$?
cat "$work/output"
wrong=0
if [ "$got" != "$status" ]; then
    echo "conformance.sh: the exit status is $got, expected $status" >&2
    wrong=1
fi
printf '%s\n' "$patterns" | tr ';' '\n' >"$work/patterns"
while read -r pattern; do
    [ -z "$pattern" ] || grep -Eq -- "$pattern" "$work/output" || {
        echo "conformance.sh: no line matches '$pattern'" >&2
        wrong=1
    }
done <"$work/patterns"
case $status in 0 | 3)
    if grep -q ' FAIL ' "$work/output"; then
        echo "conformance.sh: a clause failed, and the status is $status" >&2
        wrong=1
    fi
    ;;
esac
if [ "$status" = 3 ] && ! grep -q ' not checked ' "$work/output"; then
    echo "conformance.sh: no clause was left unchecked, and the status is 3" >&2
    wrong=1
fi
exit $wrong
