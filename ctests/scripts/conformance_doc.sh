#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   conformance_doc.sh <page.md> <weir_conformance> <misbehaving.so>
#
# Runs each "$ weir_conformance" of the page. The lines below it must be lines of the output, up to the verdict: what
# follows tells of numbers and times, and differs from run to run.

set -eu

page=$1
program=$2
module=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# "$ arguments" and the lines of clauses, in the order of the page.
awk '/^```/ { inside = !inside; next }
     inside && /^\$ weir_conformance / { sub(/^\$ weir_conformance /, ""); print "$ " $0 }
     inside && /^[HW][0-9]+ / { print }' "$page" >"$work/shown"

runs=0
lines=0
while IFS= read -r line; do
    case $line in
    '$ '*)
        arguments=$(printf '%s' "${line#??}" | sed "s|misbehaving\.so|$module|")
        status=0
        # shellcheck disable=SC2086
        "$program" $arguments >"$work/output" 2>&1 || status=$?
        case $status in 0 | 1 | 3) ;; *) cat "$work/output" >&2; exit 1 ;; esac
        cut -c 1-75 "$work/output" | sed 's/ *$//' >"$work/lines"
        runs=$((runs + 1))
        ;;
    *)
        wanted=$(printf '%s' "$line" | cut -c 1-75 | sed 's/ *$//')
        if ! grep -qxF -- "$wanted" "$work/lines"; then
            echo "conformance_doc.sh: $page shows a line that weir_conformance $arguments does not print:" >&2
            echo "  $wanted" >&2
            cat "$work/output" >&2
            exit 1
        fi
        lines=$((lines + 1))
        ;;
    esac
done <"$work/shown"
[ $runs -gt 0 ] && [ $lines -gt $runs ] || { echo "conformance_doc.sh: $page shows no output" >&2; exit 1; }
echo "$lines lines of $runs runs are as shown"
