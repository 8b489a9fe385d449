# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
#
# ./dev fuzz

# fuzz [kernels|programs] [minutes [seed]]
fuzz() {
    need_build_tools
    need_rust 1.89
    case ${1:-} in
    kernels | programs) what=$1 && shift ;;
    *) what=kernels ;;
    esac
    minutes=${1:-10}
    seed=${2:-$(date +%s)}
    "fuzz_$what"
}

fuzz_kernels() {
    # shellcheck disable=SC2086 # two words
    configure "$build/sanitize" -DWEIR_BUILD_STATIC=ON "-DWEIR_SANITIZE=address;undefined" -DWEIR_BUILD_TESTS=ON -DWEIR_BUILD_EXAMPLES=ON $sanitized
    cmake --build "$build/sanitize" --target fuzz_kernels --parallel "$jobs"
    share=$(awk "BEGIN { print $minutes / 4 }")
    for isa in portable avx2 avx_vnni avx512_vnni; do
        say "fuzz, up to $isa, $share minutes, seed $seed"
        WEIR_MAX_ISA=$isa "$build/sanitize/ctests/fuzz_kernels" --seed "$seed" --minutes "$share"
        seed=$((seed + 1))
    done
}

# All that is built is built before the first program is tried; each build goes on where the numbers of the one before
# end at the latest.
fuzz_programs() {
    need clang=clang llvm-symbolizer=llvm gdb=gdb
    configure "$build/test" -DWEIR_BUILD_STATIC=ON -DWEIR_BUILD_TESTS=ON -DWEIR_BUILD_EXAMPLES=ON
    cmake --build "$build/test" --target fuzz_programs --parallel "$jobs"
    # shellcheck disable=SC2086 # two words
    configure "$build/sanitize" -DWEIR_BUILD_STATIC=ON "-DWEIR_SANITIZE=address;undefined" -DWEIR_BUILD_TESTS=ON -DWEIR_BUILD_EXAMPLES=ON $sanitized
    cmake --build "$build/sanitize" --target fuzz_programs --parallel "$jobs"
    builds="test sanitize"
    if why=$(no_race_detector); then
        say "no ThreadSanitizer: $why"
    else
        configure_race_tests
        cmake --build "$build/race" --target fuzz_programs --parallel "$jobs"
        builds="$builds race"
    fi
    found=0
    for tree in $builds; do
        share=$(awk "BEGIN { print $minutes / (\"$tree\" == \"test\" ? 2 : 4) }")
        say "fuzz programs, build/$tree, $share minutes, from number $seed on"
        [ "$tree" = test ] || export WEIR_MEMORY_MODE=direct
        TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1 \
            "$build/$tree/ctests/fuzz_programs" --seed "$seed" --minutes "$share" --jobs "$jobs" --findings 20 || found=1
        seed=$((seed + 10000000))
    done
    [ "$found" = 0 ] || die "there are findings, see above"
}
