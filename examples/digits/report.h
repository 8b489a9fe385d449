/* What the digits demo prints.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef DIGITS_REPORT_H
#define DIGITS_REPORT_H

#include <stdint.h>

#include "dataset.h"

/* What the network said about each scan of a dataset. */
struct reading {
    const struct dataset *data;
    const float *probabilities; /* [count][DIGITS_CLASSES] */
    const int32_t *classes;     /* [count] */
};

/* What was measured while the digits were read again and again. */
struct timing {
    uint64_t runs;
    uint64_t images;
    double queued_s;              /* until the last run of each pass was queued, summed up */
    double done_s;                /* until weir_sync_devices had returned, summed up */
    uint64_t pool_calls;          /* tasks that this program's pool has run */
    uint64_t threads_started;     /* by weir */
    uint64_t weir_allocations;    /* by weir, in all these runs */
    uint64_t process_allocations; /* by anybody */
};

uint32_t reading_count_right(const struct reading *reading);

/* Which digit was read as which, and a few that were misread, drawn. For terminals of 80 columns. */
void report_reading(const struct reading *reading);

/* Accuracy, speed, and what weir took from this process to get there. */
void report_numbers(const struct reading *reading, const struct timing *timing);

#endif
