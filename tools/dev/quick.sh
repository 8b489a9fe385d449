# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
#
# ./dev test quick: what a small change touches, in a build of its own that is not optimised and that only grows.
# ./dev test ranks: the programs of several ranks, in the build of ./dev test.

# The files that differ from the last commit, or else those of the last commit.
changed_files() {
    changed=$(git diff --name-only HEAD && git ls-files --others --exclude-standard)
    [ -n "$changed" ] || changed=$(git diff --name-only HEAD~1 HEAD)
    echo "$changed"
}

# The folders of ctests that test a room of src, or what else a file belongs to.
folders_of() {
    case $1 in
    ctests/common/*) echo threadpool stream graph device ;;
    ctests/fuzz/*) echo fuzz ;;
    ctests/adapters/* | ctests/consumer/* | ctests/header/* | ctests/misbehaving/* | ctests/scripts/*) ;;
    ctests/*/*.c*) echo "$1" | cut -d/ -f2 ;;
    src/threadpool/* | src/sync/* | src/base/*) echo threadpool stream ;;
    src/memory/*) echo memory ;;
    src/device/*) echo device ;;
    src/kernel/* | src/ops/*) echo kernel ;;
    src/stream/* | src/engine/*) echo stream sync ;;
    src/comm/*) echo comm ;;
    src/resource/*) echo resource ;;
    src/graph/*) echo graph device networks ;;
    src/abi/* | src/ffi/* | book/*) echo bad_input process ;;
    include/*.hpp) echo cpp ;;
    examples/ranks/*) echo comm ;;
    examples/*) echo networks ;;
    esac
}

test_quick() {
    get want_build_tools
    check_cmake
    need_rust 1.89
    need_components
    mkdir -p "$build"
    log=$build/quick.log
    files=$(changed_files)
    rooms=$(echo "$files" | sed -n 's,^src/\([a-z]*\)/.*,\1::,p' | sort -u | paste -s -d ' ')
    folders=$(for file in $files; do folders_of "$file"; done | tr ' ' '\n' | sort -u | paste -s -d ' ')

    check "cargo fmt" cargo fmt --all --check
    if [ -n "$rooms" ]; then
        # shellcheck disable=SC2086 # two words, or none
        check "cargo clippy, the library and its tests" cargo clippy --locked --lib --tests -- $deny
        # shellcheck disable=SC2086 # several words
        run_rust_tests "unit tests of $rooms" cargo test --locked --lib -- $rooms
    fi
    run_rust_tests "the order of the rooms" cargo test --locked --test layering
    if [ -n "$folders" ]; then
        # shellcheck disable=SC2086 # several words
        check "build the C tests of $folders" build_quick_tests $folders
        # Frames of code that is not optimised are large: few rounds also mean little depth.
        WEIR_TEST_SCALE=small
        export WEIR_TEST_SCALE
        run_ctests "C tests of $folders" "$build/quick" --parallel "$ctest_jobs" --label-exclude valgrind \
            --label-regex "^($(echo "$folders" | tr ' ' '|'))\$"
    fi
    summary
}

# build_quick_tests <folder>...
build_quick_tests() {
    configure "$build/quick" -DCMAKE_BUILD_TYPE=Debug -DWEIR_WERROR=ON -DWEIR_BUILD_TESTS=ON -DWEIR_BUILD_EXAMPLES=ON &&
        cmake --build "$build/quick" --parallel "$jobs" --target $(printf 'tests_%s ' "$@")
}

test_ranks() {
    get want_ranks_tools
    check_cmake
    need_rust 1.89
    need_components
    mkdir -p "$build"
    log=$build/ranks.log
    check "build the programs of several ranks" build_ranks_tests
    run_ctests "programs of several ranks, with both MPIs" "$build/test" --parallel "$ctest_jobs" \
        --label-exclude valgrind --label-regex '^comm$'
    summary
}

build_ranks_tests() {
    configure "$build/test" -DWEIR_WERROR=ON -DWEIR_BUILD_TESTS=ON -DWEIR_BUILD_EXAMPLES=ON &&
        cmake --build "$build/test" --parallel "$jobs" --target tests_comm
}
