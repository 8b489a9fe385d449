/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What the programs of MPI's ranks have in common. A launcher runs each of them, once for each rank.
 */

#ifndef WEIR_CTESTS_MPI_RANKS_H
#define WEIR_CTESTS_MPI_RANKS_H

#include <sched.h>

#include <weir/adapters/mpi.h>

#include "check.h"

static int rank, size;

/* Initialises MPI with the level of threads that is named; the launcher's time limit is for programs that do not end,
 * and this one tells where. */
static inline void begin_ranks(int *argc, char ***argv, int threads) {
    int provided = 0;
    CHECK_EQ(MPI_Init_thread(argc, argv, threads, &provided), MPI_SUCCESS);
    CHECK_EQ(provided, threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    alarm(240);
}

static inline void end_ranks(const char *text) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks: %s\n", size, text);
    fflush(stdout);
    CHECK_EQ(MPI_Finalize(), MPI_SUCCESS);
}

/* Ends without MPI_Finalize, which may wait for operations that were given up, and for ranks that are dead. */
static inline void end_open_ranks(void) {
    fflush(NULL);
    sleep_ms(300); /* launchers throw away what they have not passed on by then */
    if (rank == 0) MPI_Abort(MPI_COMM_WORLD, 42);
    for (;;) sleep_ms(10); /* the launcher ends the others */
}

/* Ranks wait for one another without taking the processor from those that are late. */
static inline void meet(void) {
    MPI_Request request;
    MPI_Status status;
    int done = 0;
    CHECK_EQ(MPI_Ibarrier(MPI_COMM_WORLD, &request), MPI_SUCCESS);
    while (!done) {
        CHECK_EQ(MPI_Test(&request, &done, &status), MPI_SUCCESS);
        if (!done) sleep_ns(20000);
    }
}

#endif /* WEIR_CTESTS_MPI_RANKS_H */
