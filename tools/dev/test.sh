# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
#
# ./dev test

# Counts of ./dev test. A check is one of the steps that have no count of their own.
checks=0
rust_tests=0
c_tests=0
header_compiles=0
failed=0
skipped=0
step=
began=0
times=
ahead=

# begin <name of the step>
begin() {
    end_step
    step=$1
    began=$(date +%s)
    say "$step"
}

# Notes how long the step took.
end_step() {
    [ -z "$step" ] || times="$times$(($(date +%s) - began)) s  $step
"
    step=
}

summary() {
    end_step
    printf '\nSteps that took longest:\n%s' "$(printf '%s' "$times" | sort -rn | head -n 12 | sed 's/^/  /')"
    printf '\n\n'
    printf 'Checks           %5d\n' "$checks"
    printf 'Rust tests       %5d\n' "$rust_tests"
    printf 'C and C++ tests  %5d\n' "$c_tests"
    printf 'Header compiles  %5d\n' "$header_compiles"
    [ -z "${python:-}" ] || "$python" ctests/scripts/interface.py . || true
    printf '%d passed, %d failed' $((checks + rust_tests + c_tests + header_compiles)) "$failed"
    if [ "$skipped" -gt 0 ]; then
        printf ', %d skipped' "$skipped"
    fi
    printf '\n'
}

give_up() {
    [ "$failed" -gt 0 ] || failed=1
    # Their children end by themselves.
    # shellcheck disable=SC2086 # several processes
    [ -z "$ahead" ] || kill $ahead 2>/dev/null || true
    printf '\n./dev test: FAILED in the step "%s", see above. The steps after it were not run.\n' "$step" >&2
    summary
    exit 1
}

skip() {
    printf 'SKIPPED: %s\n' "$*"
    skipped=$((skipped + 1))
}

# check <name> <command>...
check() {
    begin "$1"
    shift
    "$@" || give_up
    checks=$((checks + 1))
}

# ahead <name> <command>...: runs it beside the steps that follow, until `caught_up <name>`.
ahead() {
    name=$1
    shift
    rm -f "$build/$name.status"
    {
        status=0
        "$@" >"$build/$name.log" 2>&1 || status=$?
        echo "$status" >"$build/$name.status"
    } &
    ahead="$ahead $!"
    echo $! >"$build/$name.pid"
}

# join <name>: waits for it.
join() {
    begin "wait for what ran beside these: $1"
    wait "$(cat "$build/$1.pid")"
}

# caught_up <name>: shows what it said after `join`, and returns its status.
caught_up() {
    cat "$build/$1.log"
    return "$(cat "$build/$1.status")"
}

# idly <function>: gets a processor only while nobody else wants it.
idly() {
    me=$(exec sh -c 'echo $PPID')
    if have chrt; then
        chrt --idle --pid 0 "$me"
    else
        renice -n 19 -p "$me"
    fi
    "$@"
}

# logged <command>...: shows the output, keeps it in $log, and returns the command's own status.
logged() {
    { "$@" 2>&1; echo $? >"$log.status"; } | tee "$log"
    return "$(cat "$log.status")"
}

# Sums column $2 of the lines of $log that match $1.
sum() {
    sed -n "s/$1/\\$2/p" "$log" | awk '{ n += $1 } END { print n + 0 }'
}

# run_rust_tests <name of the step> <command>...
run_rust_tests() {
    begin "$1"
    shift
    ok=0
    logged "$@" || ok=1
    result='^test result: [A-Za-z]*\. \([0-9]*\) passed; \([0-9]*\) failed; \([0-9]*\) ignored.*'
    passed=$(sum "$result" 1)
    rust_tests=$((rust_tests + passed))
    failed=$((failed + $(sum "$result" 2)))
    skipped=$((skipped + $(sum "$result" 3)))
    [ $ok = 0 ] || give_up
    [ "$passed" -gt 0 ] || { echo "no Rust test was run" >&2; give_up; }
}

# run_ctests <name of the step> <build directory> <ctest option>...
run_ctests() {
    begin "$1"
    tree=$2
    shift 2
    ok=0
    logged ctest --test-dir "$tree" --output-on-failure --stop-on-failure --no-tests=error "$@" || ok=1
    # "  3/40 Test  #3: name ....   Passed    0.01 sec"; what is neither passed nor skipped has failed.
    line='^ *[0-9]*\/[0-9]* *Test *#[0-9]*: '
    headers=$(grep "${line}header\\." "$log" | grep -c '   Passed ' || true)
    header_compiles=$((header_compiles + headers))
    c_tests=$((c_tests + $(grep "$line" "$log" | grep -c '   Passed ' || true) - headers))
    skips=$(grep "$line" "$log" | grep -c '\*\*\*Skipped' || true)
    skipped=$((skipped + skips))
    failed=$((failed + $(grep "$line" "$log" | grep -vc -e '   Passed ' -e '\*\*\*Skipped' || true)))
    [ $ok = 0 ] || give_up
}

test_all() {
    get want_test_tools
    check_cmake
    find_python numpy, cffi
    python=$(command -v "$python")
    need_rust 1.89
    need_components
    mkdir -p "$build"
    log=$build/test.log
    # A header that is not the one the sources make is an error in the builds of the workspace below.
    WEIR_HEADER_CHECK=1
    export WEIR_HEADER_CHECK

    # The library as users get it: one rustc, one processor, half of the time of the steps until the tests. No test may
    # run meanwhile: tests take their time by themselves.
    ahead library build_library "$build/test" -DWEIR_BUILD_STATIC=ON
    check "cargo fmt" cargo fmt --all --check
    # Wherever cargo is called below it is for the tests of the whole workspace and with this profile: without tests, or
    # a package by itself, takes its dependencies with fewer features, and all is built once more.
    # shellcheck disable=SC2086 # two words, or none
    check "cargo clippy" cargo clippy --locked --workspace --features weir/half --profile checked --all-targets -- $deny
    check "cargo doc" env RUSTDOCFLAGS="$deny" cargo doc --locked --workspace --features weir/half --profile checked --no-deps
    check "doxygen" doxygen_run
    check "the links of the reference" "$python" ctests/scripts/doc_links.py "$build/doc/html" docs
    check "build the Rust tests" cargo test --locked --workspace --features weir/half --profile checked --no-run
    check "build the loom models" build_loom
    join library
    check "the library as users get it" caught_up library
    # The models compute and never wait, as compilers do. Tests wait for one another and for clocks: what they leave over
    # is enough for both, which get nothing else, so that the tests take no notice of them.
    ahead features idly without_features
    ahead loom idly run_loom
    # The library, the crate weir, PTX on the CPU, the fake CUDA driver. The oracle goes through 30,000 graphs, and the
    # built-in kernels are compared with references in all shapes, at once: what they take without being told is a part
    # of that.
    run_rust_tests "cargo test, 30,000 random graphs, built-in kernels in all shapes" env WEIR_ORACLE_GRAPHS=30000 WEIR_CONFORMANCE=all \
        cargo test --locked --workspace --features weir/half --profile checked
    check "the rayon example" "$target/checked/examples/rayon"
    # The oracle goes through pools of its own: it need not be repeated with others.
    for pool in inline one lifo half seeded:1; do
        run_rust_tests "Rust tests with the pool replaced: $pool" env WEIR_TEST_POOL="$pool" \
            cargo test --locked --workspace --profile checked --test executor --test limits
    done
    join features
    check "a build without CUDA, and one without engines" caught_up features
    check "build the C and C++ tests" build_tests "$build/test" -DWEIR_BUILD_STATIC=ON \
        "-DWEIR_FAKE_CUDA=$beside_tests/libfake_cuda.so" \
        "-DWEIR_RAYON_MODULE=$target/checked/examples/libconformance_rayon.so"
    # As the models: tests wait more than they compute.
    if why=$(no_race_detector); then
        skip "ThreadSanitizer: $why"
    else
        ahead race idly build_race_library
    fi
    run_ctests "C and C++ tests, other pools, header compiles, scripts, consumers, valgrind" "$build/test" --parallel "$ctest_jobs"
    # What a machine with a GPU is to run, so that no minute there is lost to a mistake in the script. It waits, too.
    check "pack what runs on a GPU" gpu/pack.sh "$build/test" "$build/gpu/kit"
    ahead gpu test_gpu_kit
    # shellcheck disable=SC2086 # two words
    check "build the C tests with AddressSanitizer and UndefinedBehaviorSanitizer" \
        build_tests "$build/sanitize" -DWEIR_BUILD_STATIC=ON "-DWEIR_SANITIZE=address;undefined" $sanitized
    run_ctests "C tests with AddressSanitizer and UndefinedBehaviorSanitizer" "$build/sanitize" --parallel "$ctest_jobs"
    if [ -z "$why" ]; then
        join race
        check "build the library with ThreadSanitizer" caught_up race
        check "build the C tests with ThreadSanitizer" build_race_tests
        run_ctests "C tests with ThreadSanitizer" "$build/race" --parallel "$ctest_jobs"
    fi
    join gpu
    check "gpu/run.sh on the fake driver, and with steps that hang and crash" caught_up gpu
    join loom
    run_rust_tests "loom models" caught_up loom
    summary
}

# Other flags for rustc would throw away what the other steps built, hence the target directory. No model is of a kernel
# or of CUDA, and compiling these takes longer than running all models.
loom="test --locked --package weir-core --profile models --no-default-features --features graph --target-dir target/loom --lib"

build_loom() {
    # shellcheck disable=SC2086 # several words
    RUSTFLAGS="--cfg loom" cargo $loom --no-run
}

# One at a time: loom maps and unmaps a stack for each thread of each order that it tries, and in a process with threads
# of its own that takes twice the processor time of all the rest.
run_loom() {
    # shellcheck disable=SC2086 # several words
    RUSTFLAGS="--cfg loom" cargo $loom models -- --test-threads=1
}

# The library with and without features, which look alike to the dynamic linker, in a directory of their own: beside them
# the tests run. They do next to nothing and are not optimised. Each feature compiles without the others that it does not
# ask for (the loom models have graph alone).
without_features() (
    export CARGO_TARGET_DIR="$target/features"
    soname="libweir.so.$(sed -n 's/^#define WEIR_VERSION_MAJOR \([0-9]*\).*/\1/p' include/weir.h).$(sed -n 's/^#define WEIR_ABI_VERSION \([0-9]*\).*/\1/p' include/weir.h)"
    profile="--locked --package weir-capi --profile checked --no-default-features"
    without="cargo rustc $profile --lib --crate-type cdylib --config profile.checked.opt-level=0"
    smaller=$CARGO_TARGET_DIR/checked/libweir.so
    # shellcheck disable=SC2086 # several words
    cargo check $profile --features engines && cargo check $profile --features kernels &&
        cargo check $profile --features cuda &&
        $without --features graph,kernels &&
        ctests/scripts/without_cuda.sh "$smaller" include/weir/weir_cdef.h "$soname" "$build/cargo/release/libweir.so" &&
        $without &&
        ctests/scripts/smallest.sh "$smaller" include/weir/weir_cdef.h "$soname"
)

# Says why ThreadSanitizer cannot be used here; fails if it can.
no_race_detector() {
    if ! ls "$(rustc --print target-libdir)"/librustc*_rt.tsan.a >/dev/null 2>&1; then
        echo "rustc brings no runtime for this target"
    elif ! RUSTC_BOOTSTRAP=1 rustc -Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --print cfg \
        >/dev/null 2>&1; then
        echo "this rustc does not know the flags: $(rustc --version)"
    else
        return 1
    fi
}

# C programs only, but CMake looks for a C++ compiler in any case.
configure_race_tests() {
    # shellcheck disable=SC2086 # two words
    configure "$build/race" -DCMAKE_C_COMPILER=clang -DWEIR_SANITIZE=thread -DWEIR_WERROR=ON -DWEIR_BUILD_TESTS=ON -DWEIR_BUILD_EXAMPLES=OFF -DWEIR_INSTALL=OFF $sanitized
}

build_race_library() {
    configure_race_tests && cmake --build "$build/race" --target weir_thread_sanitized_cargo
}

build_race_tests() {
    cmake --build "$build/race" --parallel "$jobs"
}

test_gpu_kit() {
    gpu/run.sh --fake "$build/gpu/kit" "$build/gpu/report" && gpu/check.sh "$build/gpu/kit"
}

# build_library <directory> <option>...: what build_tests begins with.
build_library() {
    configure "$@" "-DWEIR_PYTHON=$python" -DWEIR_WERROR=ON -DWEIR_BUILD_TESTS=ON -DWEIR_BUILD_EXAMPLES=ON && cmake --build "$1" --target weir_cargo
}

# build_tests <directory> <option>...
build_tests() {
    configure "$@" "-DWEIR_PYTHON=$python" -DWEIR_WERROR=ON -DWEIR_BUILD_TESTS=ON -DWEIR_BUILD_EXAMPLES=ON && cmake --build "$1" --parallel "$jobs"
}
