#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#     gpu/pack.sh [build tree [kit]]
#
# Makes the kit that gpu/run.sh runs: the library, the bench, the conformance program, tests, and the fake driver. Without a build tree it
# makes one in build/gpu/tree; the tree of ./dev test (build/test) does as well. The kit, build/gpu/kit and the same in kit.tar.gz beside it,
# needs glibc, Python for one step, and nothing else of this machine.

set -eu
cd "$(dirname "$0")/.."
tree=${1:-build/gpu/tree}
kit=${2:-build/gpu/kit}

if [ $# -eq 0 ]; then
    cmake -S . -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWEIR_CARGO_TARGET_DIR="$PWD/build/cargo" -DWEIR_BUILD_EXAMPLES=OFF
    cmake --build "$tree" --target gpu_bench weir_conformance
fi

# The executable of a Rust test.
rust_test() {
    cargo test --locked --workspace --profile checked --no-run --test "$1" --message-format=json 2>/dev/null |
        python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message["target"]["name"] == sys.argv[1]:
        print(message["executable"])
' "$1"
}

rm -rf "$kit"
mkdir -p "$kit/lib" "$kit/bin" "$kit/tests" "$kit/gpu" "$kit/fake"
library=$(ldd "$tree/bench/gpu/gpu_bench" | sed -n 's/.*=> \(.*libweir\.so[^ ]*\) .*/\1/p')
[ -n "$library" ] || { echo "gpu/pack.sh: gpu_bench in $tree finds no libweir" >&2; exit 1; }
cp -L "$library" "$kit/lib/$(basename "$library")"
conformance=$(find "$tree" -name weir_conformance -type f -perm -u+x | head -n 1)
testing=$(ldd "$conformance" | sed -n 's/.*=> \(.*libweir_testing\.so[^ ]*\) .*/\1/p')
[ -n "$testing" ] || { echo "gpu/pack.sh: $conformance finds no libweir_testing" >&2; exit 1; }
cp -L "$testing" "$kit/lib/$(basename "$testing")"
cp "$tree/bench/gpu/gpu_bench" "$conformance" "$kit/bin/"
for name in cuda cuda_networks cuda_operators; do
    executable=$(rust_test "$name")
    [ -n "$executable" ] || { echo "gpu/pack.sh: no test $name" >&2; exit 1; }
    cp "$executable" "$kit/tests/$name"
done
mkdir -p "$kit/examples"
cp -r examples/digits examples/voice "$kit/examples/"
# The tests have built it.
fake=$(find "${CARGO_TARGET_DIR:-target}/checked" -maxdepth 2 -name 'libfake_cuda.so' | head -n 1)
[ -n "$fake" ] || { echo "gpu/pack.sh: no fake driver below target/checked" >&2; exit 1; }
cp "$fake" "$kit/fake/libcuda.so.1"
# One driver in a process, under whichever name it is asked for.
ln -s libcuda.so.1 "$kit/fake/libcuda.so"
blas=$(find "${CARGO_TARGET_DIR:-target}/checked" -maxdepth 2 -name 'libfake_blas.so' | head -n 1)
[ -n "$blas" ] || { echo "gpu/pack.sh: no fake cuBLASLt below target/checked" >&2; exit 1; }
cp "$blas" "$kit/fake/libcublasLt.so"
# The tests have built this, too, if they were run.
nvrtc=$(find "${CARGO_TARGET_DIR:-target}/checked" -name libnvrtc.so -path '*fake-nvrtc*' | head -n 1)
[ -z "$nvrtc" ] || { mkdir "$kit/fake-nvrtc" && cp "$nvrtc" "$kit/fake-nvrtc/"; }
cp gpu/test.sh gpu/interop.py gpu/torch_kernels.py "$kit/gpu/"
strip -s "$kit"/bin/* "$kit"/tests/* "$kit"/fake/*
strip -g "$kit"/lib/*
# In one file, to travel.
tar -C "$kit" -c . | gzip -1 >"$kit.tar.gz"
du -sh "$kit" "$kit.tar.gz"
