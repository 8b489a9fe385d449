#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds and runs a program against weir as its users do, in a temporary directory:
#
#   run.sh <way> <source> <build> <config> <soname>
#
#   find_package       installs, moves the tree, find_package
#   pkg_config         installs through DESTDIR, moves the tree, pkg-config and make
#   plugin             as find_package, with examples/plugin: its device is checked, and reads digits
#   some_targets       builds an example alone in a tree of its own, in the cargo directory of <build>, and installs that tree
#   add_subdirectory   builds weir as a part of another project, in the cargo directory of <build>
#
# CC and CXX name the compilers.

set -eu

way=$1
source_dir=$2
build_dir=$3
config=$4
soname=$5

fail() {
    echo "consumer/$way: $*" >&2
    exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What was installed works wherever it lies: it is moved before it is used, and must not name the place it came from.
move_tree() {
    mkdir "$work/moved"
    mv "$1" "$work/moved/tree"
    tree=$work/moved/tree
    pc=$(find "$tree" -name weir.pc)
    [ -n "$pc" ] || fail "weir.pc was not installed"
    lib_dir=$(dirname "$(dirname "$pc")")
    for file in "$lib_dir/$soname" "$lib_dir/libweir.so"; do
        [ -L "$file" ] && [ -e "$file" ] || fail "$file is not a link to the library"
    done
    for file in include/weir.h include/weir/ops.h include/weir/weir_api.json include/weir/testing.h include/weir.hpp include/weir/threadpool.hpp include/weir/adapters/openmp.h \
        include/weir/adapters/dispatch.h include/weir/adapters/eigen.hpp include/weir/adapters/std_thread.hpp \
        include/weir/adapters/tbb.hpp share/doc/weir/LICENSE-MIT share/doc/weir/LICENSE-APACHE; do
        [ -f "$tree/$file" ] || fail "$file was not installed"
    done
    # The programs are there if they were built.
    for file in "$lib_dir/$soname" "$tree/bin/weir_trace" "$tree/bin/weir_conformance"; do
        if [ -f "$file" ] && readelf -S "$file" | grep -q -e '\.symtab' -e '\.debug_'; then
            fail "$file is installed with symbols or debug lines"
        fi
    done
    id=$(readelf -n "$lib_dir/$soname" | sed -n 's/.*Build ID: \(..\)/\1\//p')
    [ -n "$id" ] && [ -f "$lib_dir/debug/.build-id/$id.debug" ] || fail "there are no debug lines for the build id $id"
    if grep -rlF -e "$work/" -e "$source_dir" -e "$build_dir" "$pc" "$lib_dir/cmake"; then
        fail "these files name the place where they were built or installed"
    fi
}

# The program asks for the library by its soname and by no path.
check_needed() {
    needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*weir.*\)\]/\1/p')
    [ "$needed" = "$soname" ] || fail "$1 needs '$needed', not '$soname'"
}

case $way in
find_package)
    cmake --install "$build_dir" --config "$config" --prefix "$work/prefix" >"$work/log" || fail "$(cat "$work/log")"
    move_tree "$work/prefix"
    static=OFF
    [ -f "$lib_dir/libweir.a" ] && static=ON
    cmake -S "$source_dir/ctests/consumer/find_package" -B "$work/build" -DCMAKE_BUILD_TYPE="$config" \
        -DCMAKE_PREFIX_PATH="$tree" -DWEIR_EXPECT_STATIC=$static
    cmake --build "$work/build"
    check_needed "$work/build/consumer"
    "$work/build/consumer"
    "$work/build/consumer_cpp"
    "$work/build/consumer_testing"
    "$tree/bin/weir_conformance" --device emulated
    "$tree/bin/weir_trace" -o "$work/trace.html" "$work/build/consumer"
    [ -s "$work/trace.html" ] || fail "weir_trace has written nothing"
    if [ $static = ON ]; then
        "$work/build/consumer_static"
        if readelf -d "$work/build/consumer_static" | grep -q 'NEEDED.*weir'; then
            fail "consumer_static needs the shared library"
        fi
    fi
    ;;
plugin)
    cmake --install "$build_dir" --config "$config" --prefix "$work/prefix" >"$work/log" || fail "$(cat "$work/log")"
    move_tree "$work/prefix"
    cmake -S "$source_dir/examples/plugin" -B "$work/build" -DCMAKE_BUILD_TYPE="$config" -DCMAKE_PREFIX_PATH="$tree" \
        -DCMAKE_C_FLAGS=-Werror
    cmake --build "$work/build"
    if readelf -d "$work/build/remote.so" | grep -q 'NEEDED.*weir'; then
        fail "the plug-in is linked against the library"
    fi
    "$work/build/remote_digits" "$work/build/remote.so" "$source_dir/examples/digits"
    "$tree/bin/weir_conformance" --plugin "$work/build/remote.so" remote
    ;;
pkg_config)
    prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:[A-Z]*=//p' "$build_dir/CMakeCache.txt")
    DESTDIR=$work/stage cmake --install "$build_dir" --config "$config" >"$work/log" || fail "$(cat "$work/log")"
    move_tree "$work/stage$prefix"
    PKG_CONFIG_PATH=$(dirname "$pc")
    export PKG_CONFIG_PATH
    header_version=$(sed -n 's/^#define WEIR_VERSION_[A-Z]* //p' "$tree/include/weir.h" | paste -sd. -)
    [ "$(pkg-config --modversion weir)" = "$header_version" ] || fail "weir.pc is not of version $header_version"
    make -C "$work" -f "$source_dir/ctests/consumer/pkg_config/Makefile" SOURCE="$source_dir/ctests/consumer/main.c" \
        LDFLAGS="-Wl,-rpath,$lib_dir" consumer
    check_needed "$work/consumer"
    "$work/consumer"
    ;;
some_targets)
    # The same settings as in <build>, so that cargo finds its work done.
    cargo_dir=$(sed -n 's/^WEIR_CARGO_TARGET_DIR:PATH=//p' "$build_dir/CMakeCache.txt")
    static=$(sed -n 's/^WEIR_BUILD_STATIC:BOOL=//p' "$build_dir/CMakeCache.txt")
    cmake -S "$source_dir" -B "$work/build" -DCMAKE_BUILD_TYPE="$config" -DWEIR_CARGO_TARGET_DIR="$cargo_dir" \
        -DWEIR_BUILD_STATIC="$static" -DWEIR_BUILD_TESTS=OFF -DWEIR_BUILD_EXAMPLES=ON >"$work/log" || fail "$(cat "$work/log")"
    cmake --build "$work/build" --target dlopen_digits weir_cargo
    cmake --install "$work/build" --config "$config" --prefix "$work/first" >"$work/log" || fail "$(cat "$work/log")"
    [ ! -e "$work/first/bin/weir_conformance" ] || fail "weir_conformance was installed and not built"
    move_tree "$work/first"
    "$work/build/examples/dlopen_digits" "$lib_dir/$soname" >/dev/null
    # A tree that has it installs it.
    cmake --build "$work/build" --target weir_conformance
    cmake --install "$work/build" --config "$config" --prefix "$work/second" >"$work/log" || fail "$(cat "$work/log")"
    "$work/second/bin/weir_conformance" --builtin 1 >/dev/null
    ;;
add_subdirectory)
    # The same settings as in <build>, so that cargo finds its work done.
    cargo_dir=$(sed -n 's/^WEIR_CARGO_TARGET_DIR:PATH=//p' "$build_dir/CMakeCache.txt")
    static=$(sed -n 's/^WEIR_BUILD_STATIC:BOOL=//p' "$build_dir/CMakeCache.txt")
    cmake -S "$source_dir/ctests/consumer/add_subdirectory" -B "$work/build" -DCMAKE_BUILD_TYPE="$config" \
        -DWEIR_SOURCE_DIR="$source_dir" -DWEIR_CARGO_TARGET_DIR="$cargo_dir" -DWEIR_BUILD_STATIC="$static"
    cmake --build "$work/build"
    check_needed "$work/build/consumer"
    "$work/build/consumer"
    ;;
*)
    fail "unknown way"
    ;;
esac
