# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
#
# ./dev bench

bench() {
    need_rust 1.89
    case ${1:-} in
    peers | voice | networks | ocr | comm)
        verb=bench_$1
        shift
        "$verb" "$@"
        return
        ;;
    esac
    need cc=gcc
    if [ "${1:-}" = kernels ]; then
        shift
        [ $# -gt 0 ] || cargo bench --locked --bench kernels
        bench_kernels "$@"
        return
    fi
    cargo bench --locked "$@"
    [ $# -gt 0 ] || { bench_peers; bench_kernels; }
}

has_library() {
    PATH="$PATH:/usr/sbin:/sbin" ldconfig -p | grep -q "$1"
}

# need_library <name of the shared library> <package>: for libraries that are opened at run time.
need_library() {
    compare_with "$1" "$2" has_library "$1"
}

# Sections and options named on the command line say what is run; without any, everything, and then AVX2 alone.
bench_kernels() {
    need_build_tools
    need_header tbb/task_arena.h libtbb-dev
    need_header unsupported/Eigen/CXX11/ThreadPool libeigen3-dev -I/usr/include/eigen3
    need_header oneapi/dnnl/dnnl.hpp libdnnl-dev
    need_library libopenblas.so.0 libopenblas-dev
    need_library libblis.so.4 libblis-dev
    say "building the comparison with kernels of others"
    configure "$build/bench" -DWEIR_BUILD_TESTS=OFF -DWEIR_BUILD_EXAMPLES=OFF -DWEIR_BUILD_BENCH=ON
    cmake --build "$build/bench" --target kernels --parallel "$jobs"
    # Threads that wait for their next loop by spinning leave the processors to the next side soon.
    GOMP_SPINCOUNT=20000
    OPENBLAS_THREAD_TIMEOUT=16
    export GOMP_SPINCOUNT OPENBLAS_THREAD_TIMEOUT
    say "kernels $*"
    "$build/bench/bench/kernels" "$@"
    if [ $# = 0 ]; then
        say "kernels with AVX2 only"
        "$build/bench/bench/kernels" --avx2 peaks sgemm packed batches int8
    fi
}

# Two programs, pools and graphs; sections named on the command line say which. Taskflow, enkiTS and TensorFlow take
# part if WEIR_TASKFLOW_DIR, WEIR_ENKITS_DIR and WEIR_TENSORFLOW_DIR say where they are.
bench_peers() {
    need_build_tools
    need_header tbb/task_arena.h libtbb-dev
    need_header unsupported/Eigen/CXX11/ThreadPool libeigen3-dev -I/usr/include/eigen3
    need_header oneapi/dnnl/dnnl.hpp libdnnl-dev
    named=
    pools=
    graphs=
    for arg in "$@"; do
        case $arg in
        --rounds=*|--quick) pools="$pools $arg" graphs="$graphs $arg" ;;
        --shape=*|--side=*) graphs="$graphs $arg" ;;
        -*) pools="$pools $arg" ;;
        uneven) pools="$pools $arg" graphs="$graphs $arg" named="$named pools graphs" ;; # loops, and graphs
        empty1|empty2|us1|us20|one|control) graphs="$graphs $arg" named="$named graphs" ;;
        mixed|forks|changing|first|paced|networks|data) graphs="$graphs $arg" named="$named graphs" ;;
        *) pools="$pools $arg" named="$named pools" ;;
        esac
    done
    say "building the comparison with other thread pools and executors"
    configure "$build/bench" -DWEIR_BUILD_TESTS=OFF -DWEIR_BUILD_EXAMPLES=OFF -DWEIR_BUILD_BENCH=ON
    cmake --build "$build/bench" --target pools graphs --parallel "$jobs"
    case ${named:-pools} in *pools*)
        say pools
        # shellcheck disable=SC2086 # several words
        "$build/bench/bench/pools" $pools
    esac
    case ${named:-graphs} in *graphs*)
        say graphs
        # shellcheck disable=SC2086
        "$build/bench/bench/graphs" $graphs
    esac
}

# Two ranks of the user's MPI, on processors of their own.
bench_comm() {
    need_build_tools
    get want_mpi
    say "building the comparison with MPI"
    configure "$build/bench-comm" -DWEIR_BUILD_TESTS=OFF -DWEIR_BUILD_EXAMPLES=OFF -DWEIR_BUILD_BENCH_COMM=ON
    cmake --build "$build/bench-comm" --parallel "$jobs"
    if [ "${1:-}" = virtual ]; then
        shift
        [ $# -gt 0 ] || set -- 8 64 1024
        say "programs of $* ranks in virtual time"
        "$build/bench-comm/bench/comm_virtual" bench/comm/parameters.txt "$@"
        return
    fi
    for program in all_reduce step; do
        say "$program"
        on_ranks 2 "$build/bench-comm/bench/comm_$program" "$@"
    done
}

# The voice model beside ONNX Runtime. The wheels come by pip: ONNX Runtime only where Python does not find it.
bench_voice() {
    need_build_tools
    need python3=python3
    python=python3
    mkdir -p "$build/voice"
    if ! python3 -c 'import numpy, onnxruntime' 2>/dev/null; then
        python=$build/voice/venv/bin/python
        if ! "$python" -c 'import numpy, onnxruntime' 2>/dev/null; then
            say "installing ONNX Runtime in build/voice/venv"
            python3 -c 'import ensurepip' 2>/dev/null || apt_install python3-venv
            python3 -m venv "$build/voice/venv"
            "$python" -m pip install --quiet numpy onnxruntime==1.31.1
        fi
    fi
    wheel=$build/voice/silero_vad-6.2.3-py3-none-any.whl
    [ -e "$wheel" ] || "$python" -m pip download --quiet --no-deps --dest "$build/voice" silero-vad==6.2.3
    say "building what is compared"
    configure "$build/bench-voice" -DWEIR_BUILD_TESTS=OFF -DWEIR_BUILD_EXAMPLES=OFF -DWEIR_BUILD_BENCH_VOICE=ON
    cmake --build "$build/bench-voice" --target voice_bench count_allocations --parallel "$jobs"
    say "voice: a few minutes"
    "$python" bench/voice/voice.py "$build/bench-voice/bench" "$wheel" "$@"
}

# Whole networks beside ONNX Runtime; with the word operators the onnx package's tests by weir's kernels; with the word
# int8 single convolutions of bytes, with volumes those and poolings of volumes. The wheels come by pip.
bench_networks() {
    need cc=gcc python3=python3
    networks_python numpy onnx onnxruntime || die "pip cannot bring ONNX Runtime"
    say "building libweir"
    cargo build --locked --release
    if [ "${1:-}" = operators ]; then
        shift
        say "the tests of operators"
        "$python" bench/networks/node_tests.py "$target/release/libweir.so" "$@"
        return
    fi
    if [ "${1:-}" = int8 ]; then
        shift
        say "int8 convolutions: a few minutes"
        "$python" bench/networks/int8_convolutions.py "$target/release/libweir.so" "$@"
        return
    fi
    if [ "${1:-}" = volumes ]; then
        shift
        say "single layers of volumes: a minute"
        "$python" bench/networks/volumes.py "$target/release/libweir.so" "$@"
        return
    fi
    if [ "${1:-}" = layers ]; then
        shift
        onednn_library || die "pip cannot bring oneDNN"
        say "single layers: ten minutes"
        "$python" bench/networks/layers.py "$target/release/libweir.so" "$onednn" "$@"
        return
    fi
    networks_download || die "pip cannot bring the networks"
    say "networks: a few minutes"
    "$python" bench/networks/networks.py "$target/release/libweir.so" "$networks_wheel" "$@"
}

# The program that reads pages, with its networks run by weir and by ONNX Runtime.
bench_ocr() {
    need_build_tools
    need python3=python3
    ocr_networks || die "pip cannot bring the networks"
    networks_python numpy onnx onnxruntime && networks_download || die "pip cannot bring ONNX Runtime"
    say "building what is compared"
    configure "$build/bench-ocr" -DWEIR_BUILD_TESTS=OFF -DWEIR_BUILD_EXAMPLES=OFF -DWEIR_BUILD_BENCH_OCR=ON
    cmake --build "$build/bench-ocr" --target ocr_weir ocr_elsewhere --parallel "$jobs"
    say "ocr: a few minutes"
    "$python" bench/ocr/ocr.py "$build/bench-ocr/bench" "$ocr_file" "$networks_wheel" examples/ocr/page.png "$@"
}
