# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
#
# What the verbs of ./dev need, and how they get it.

# The command that lets apt-get run as root; fails if there is none.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

can_install() {
    have apt-get && { [ "$(id -u)" = 0 ] || { have sudo && sudo -n true 2>/dev/null; }; }
}

# apt_install <package>...
apt_install() {
    can_install || die "please install these packages (names of Debian and Ubuntu), then try again: $*"
    say "installing $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update ||
        die "apt-get update failed; please install these packages yourself: $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" ||
        die "apt-get install failed; please install these packages yourself: $*"
}

# What a verb needs is collected first, and installed or asked for all at once: wants_... notes what is missing, `get`
# installs it. What is missing then although its package is there ends the verb: nothing is left out because a tool is
# missing that apt has.
missing=
unmet=

# want <package> <what it is for> <command>...: notes the package if the command fails.
want() {
    package=$1
    for_what=$2
    shift 2
    "$@" >/dev/null 2>&1 && return
    case " $missing " in *" $package "*) ;; *) missing="$missing $package" ;; esac
    unmet="$unmet
  $for_what (package $package)"
}

# want_commands <command>=<package>...
want_commands() {
    for pair in "$@"; do
        want "${pair#*=}" "the command ${pair%%=*}" have "${pair%%=*}"
    done
}

finds_header() {
    header=$1
    shift
    echo "#include <$header>" | c++ -std=c++17 "$@" -x c++ -fsyntax-only -
}

# want_header <name in #include> <package> <compiler flag>...
want_header() {
    name=$1
    package=$2
    shift 2
    want "$package" "the header <$name>" finds_header "$name" "$@"
}

# get <function that wants>: installs what it wants. A compiler that comes only now says then which headers are missing.
get() {
    for round in 1 2 3; do
        missing=
        unmet=
        "$@"
        [ -n "$missing" ] || return 0
        # shellcheck disable=SC2086 # several words
        [ "$round" = 3 ] || apt_install $missing
    done
    die "these are still missing after their packages were installed:$unmet"
}

# need <command>=<package>...: installs the packages of the commands that are missing.
need() {
    get want_commands "$@"
}

# at_least <version> <wanted>
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# A C and a C++ compiler with the headers of the C library, CMake and Ninja.
want_build_tools() {
    want_commands cc=gcc c++=g++ make=make cmake=cmake ninja=ninja-build nm=binutils
    want libc6-dev "the headers of the C library" finds_c_headers
    want_certificates
}

# cargo asks crates.io, and believes whom the system believes. Other systems than Debian's kind have that file
# elsewhere.
want_certificates() {
    ! have apt-get || want ca-certificates "the certificates of the web" test -e "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}"
}

finds_c_headers() {
    echo '#include <stdio.h>' | cc -E -
}

check_cmake() {
    version=$(cmake --version | sed -n 's/^cmake version //p')
    at_least "$version" 3.22 || die "CMake is $version; weir needs 3.22 or later"
}

need_build_tools() {
    get want_build_tools
    check_cmake
}

# Which version a library or a compiler has is the user's choice; that it is there is not.
want_test_tools() {
    want_build_tools
    want_commands valgrind=valgrind pkg-config=pkg-config python3=python3 doxygen=doxygen dot=graphviz \
        clang=clang clang++=clang llvm-symbolizer=llvm readelf=binutils abidw=abigail-tools abidiff=abigail-tools \
        diff=diffutils gzip=gzip tar=tar node=nodejs go=golang-go luajit=luajit
    want_browser
    want_both_mpis
    # ctests/scripts/ranks_ulfm.sh and trace_readers.py ask pip for another MPI and for readers of traces.
    want python3-venv "Python's venv with pip" python3 -c 'import ensurepip'
    want_header tbb/task_arena.h libtbb-dev
    want_header unsupported/Eigen/CXX11/ThreadPool libeigen3-dev -I/usr/include/eigen3
    want_header uv.h libuv1-dev
    for compiler in clang cc; do
        want "$(openmp_of $compiler)" "OpenMP of $compiler" links_openmp $compiler
    done
    # The tests use whichever Python has them: find_python.
    want "python3-numpy python3-cffi" "NumPy and cffi for one and the same Python" find_python numpy, cffi
}

# Pages of traces are looked at in it. Ubuntu has Chromium as a snap only, which sees no files of tests: there the test
# takes a browser that the user has installed otherwise, or is skipped.
want_browser() {
    finds_browser || grep -qs '^ID=ubuntu' /etc/os-release || want_commands chromium=chromium
}

finds_browser() {
    have chromium || have chromium-browser || have google-chrome-stable || have google-chrome
}

# The MPIs that the programs of several ranks are run with.
want_both_mpis() {
    want_commands mpicc.openmpi=openmpi-bin mpirun.openmpi=openmpi-bin mpicc.mpich=mpich mpiexec.mpich=mpich \
        timeout=coreutils
    want libopenmpi-dev "the header and the library of Open MPI" links_mpi mpicc.openmpi
    want libmpich-dev "the header and the library of MPICH" links_mpi mpicc.mpich
}

# What ./dev test ranks needs.
want_ranks_tools() {
    want_build_tools
    want_both_mpis
}

# An MPI for the ranks example: the user's, whichever it is.
want_mpi() {
    want_commands mpirun=openmpi-bin
    want libopenmpi-dev "mpicc, with the header and the library of an MPI" links_mpi mpicc
}

# links_mpi <compiler>
links_mpi() {
    mkdir -p "$build" && printf '#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n' |
        "$1" -x c - -o "$build/has_mpi"
}

links_openmp() {
    mkdir -p "$build" && printf '#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n' |
        "$1" -fopenmp -x c - -o "$build/has_openmp"
}

# openmp_of <compiler>: the package with its OpenMP. Each version of clang has its own; gcc's comes with it.
openmp_of() {
    have "$1" || {
        [ "$1" = cc ] && echo gcc || echo libomp-dev
        return
    }
    major=$("$1" -dumpversion | sed 's/\..*//')
    if ! "$1" --version | grep -q clang; then
        echo gcc
    elif [ -n "$(apt-cache madison "libomp-$major-dev" 2>/dev/null)" ]; then
        echo "libomp-$major-dev"
    else
        echo libomp-dev
    fi
}

# find_python <module>...: the Python that has these modules, in $python: the user's, else the system's.
find_python() {
    for python in python3 /usr/bin/python3; do
        "$python" -c "import $*" 2>/dev/null && return
    done
    return 1
}

# compare_with <what> <package> <command>...: what a benchmark compares weir with. Where it is not and cannot be
# installed the others are compared.
compare_with() {
    what=$1
    package=$2
    shift 2
    "$@" >/dev/null 2>&1 && return
    if can_install; then
        apt_install "$package"
    else
        skip "what needs $what: please install $package"
    fi
}

# need_header <name in #include> <package> <compiler flag>...
need_header() {
    name=$1
    package=$2
    shift 2
    compare_with "<$name>" "$package" finds_header "$name" "$@"
}

# need_rust <version>. The library uses the AVX-512 intrinsics, which are stable since 1.89.
need_rust() {
    have cargo || PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    get want_certificates
    how="install rustup from your distribution or from rustup.rs, then run: rustup toolchain install stable"
    if ! have cargo || ! have rustc; then
        can_install || die "weir is written in Rust: $how"
        as_root apt-get -qq update || die "apt-get update failed; $how"
        # Debian 13 and later and Ubuntu 24.04 and later package rustup.
        [ -n "$(apt-cache madison rustup 2>/dev/null)" ] || die "this system packages no rustup; $how"
        need rustup=rustup
        rustup toolchain install stable || die "rustup could not install a toolchain"
    fi
    version=$(rustc --version | sed 's/^rustc \([0-9.]*\).*/\1/')
    at_least "$version" "$1" || die "rustc is $version; this needs $1 or later: $how"
}

# rustfmt and clippy, which some installations of Rust lack, and how strict they are.
need_components() {
    for component in rustfmt clippy; do
        cargo "${component#rust}" --version >/dev/null 2>&1 || { have rustup && rustup component add "$component"; } ||
            die "cargo ${component#rust} is missing: rustup component add $component"
    done
    # Later versions know lints that nobody here has seen: these are shown, and end nothing.
    deny="-D warnings"
    if ! at_least "$linted" "$version"; then
        say "rustc is $version: lints are shown, but are no errors, as they are with $linted and before"
        deny=
    fi
}

# The newest Rust whose lints this source has been checked with.
linted=1.95.99
