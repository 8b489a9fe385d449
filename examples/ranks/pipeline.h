/* The network of ../voice in three parts, each on a rank of its own, and several clips on their way through them.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef RANKS_PIPELINE_H
#define RANKS_PIPELINE_H

#include <stdbool.h>

#include <weir/comm.h>

enum { PIPELINE_RANKS = 3, PIPELINE_CLIPS = 8, PIPELINE_FRAMES = 62 }; /* 2 seconds of each clip */

/* What rank 0 knows afterwards. */
struct pipeline_result {
    double seconds;       /* by the three ranks */
    double alone_seconds; /* by rank 0 alone, as the voice example hears it */
    bool same;            /* whether all probabilities are the same bits */
};

/* Hears all clips. The three ranks of the communicator call it. Returns 0, or -1 after saying on stderr which file
 * cannot be read. Ends the process if something else fails. */
int pipeline_run(weir_engine *engine, weir_comm *comm, struct pipeline_result *result);

#endif
