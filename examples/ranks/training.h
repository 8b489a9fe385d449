/* The digits' network in training, on all ranks of a communicator: each has a part of every batch.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef RANKS_TRAINING_H
#define RANKS_TRAINING_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/comm.h>

#include "dataset.h"
#include "step.h"

/* The longest that ranks wait for one another, in nanoseconds. */
#define RANKS_LIMIT_NS (UINT64_C(60) * 1000000000)

struct training {
    const struct dataset *data; /* pixels from 0 to 1 */
    uint32_t *order;            /* in which an epoch takes them */
    int64_t epoch;              /* whose order it is, or -1 */
    weir_engine *engine;
    weir_stream *stream;        /* for operations between ranks that are in no graph */
    weir_comm *comm;            /* another one when a rank has died */
    int32_t rank, size;         /* in this communicator */
    weir_program *program;
    weir_tensor *inputs[2][STEP_INPUTS]; /* by turn: this rank's part of the batch, and the parameters */
    int turn;                            /* a step reads these parameters, and writes the others */
    int64_t step;                        /* steps that were made */
};

/* Begins with the weights of rank 0. All ranks call it; it keeps the communicator. Ends the process if it fails. */
void training_begin(struct training *training, weir_engine *engine, weir_comm *comm, const struct dataset *data);

/* Trains for so many times all scans. When ranks die the others go on without them if the transport can; if not, says
 * why on stderr and returns -1. With `dies` this rank is the one, in the middle. */
int training_run(struct training *training, int epochs, bool dies);

/* Whether all ranks have the same bits. All ranks call it. */
bool training_is_same(const struct training *training);

/* How many of these scans the network reads right. */
uint32_t training_count_right(const struct training *training, const struct dataset *data);

void training_end(struct training *training);

#endif
