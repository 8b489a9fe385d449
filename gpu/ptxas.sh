#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#     gpu/ptxas.sh [ptxas]
#
# Assembles all PTX of the library and of its tests with NVIDIA's assembler, for each architecture that it knows from
# sm_75 on, and fails if one is refused or spills registers: each built-in kernel alone, as the library loads it. No GPU
# is needed. Without an argument the assembler is the
# one on the path, else that of PyPI's wheel nvidia-cuda-nvcc, which pip brings into build/gpu/ptxas.

set -eu
cd "$(dirname "$0")/.."
ptxas=${1:-$(command -v ptxas || true)}
if [ -z "$ptxas" ]; then
    folder=build/gpu/ptxas
    ptxas=$(find "$folder" -name ptxas -type f 2>/dev/null | head -n 1)
    if [ -z "$ptxas" ]; then
        if ! python3 -m pip install --quiet --no-deps --target "$folder" nvidia-cuda-nvcc; then
            echo "SKIPPED: no ptxas: pip cannot bring nvidia-cuda-nvcc" >&2
            exit 0
        fi
        ptxas=$(find "$folder" -name ptxas -type f | head -n 1)
        chmod +x "$ptxas"
    fi
fi
"$ptxas" --version | tail -n 2 | head -n 1
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
# What a module declares, which stands before its first kernel, and one kernel.
for module in gpu/kernels/*.ptx; do
    name=$(basename "$module" .ptx)
    [ "$name" != control ] || { cp "$module" "$made/"; continue; }
    awk -v to="$made/$name-" '/^\.visible \.entry/ { kernels += 1; file = to kernels ".ptx"; printf "%s", head >file }
        kernels { print >file } !kernels { head = head $0 "\n" }' "$module"
done
cp tests/cuda/kernels.ptx "$made/"
assembled=0
for arch in 75 80 86 87 89 90 90a 100 103 110 120 121; do
    "$ptxas" --help | grep -q "sm_$arch[^0-9a-z]" || { echo "sm_$arch: this ptxas does not know it"; continue; }
    for ptx in "$made"/*.ptx; do
        # What sets conditions calls a function that the driver has.
        "$ptxas" -c -v -arch "sm_$arch" -o "$made/out" "$ptx" >"$made/said" 2>&1 ||
            { cat "$made/said" >&2; echo "gpu/ptxas.sh: $(basename "$ptx"): refused for sm_$arch" >&2; exit 1; }
        if grep -E '[1-9][0-9]* bytes spill' "$made/said" >&2; then
            echo "gpu/ptxas.sh: $(basename "$ptx"): spills for sm_$arch" >&2
            exit 1
        fi
        assembled=$((assembled + 1))
    done
done
[ "$assembled" -gt 0 ] || { echo "gpu/ptxas.sh: nothing was assembled" >&2; exit 1; }
echo "$assembled images, no spills"
