/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What every adapter must be able to carry: regions, nested regions, asynchronous streams, graphs, several callers.
 */

#ifndef WEIR_CTESTS_EXERCISE_H
#define WEIR_CTESTS_EXERCISE_H

#include "weir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Uses the pool in every way and checks the results. weir starts `lanes` threads for it: one for the asynchronous
 * stream if the pool takes no single tasks, else none. Takes over the caller's reference. */
void exercise_pool(weir_threadpool *pool, uint64_t lanes);

/* Calls each function of the vtable as weir may, then exercises pools made of it: as it is, and with schedule and with
 * parallel_for alone if it has both. The last one releases ctx. */
void exercise_vtable(const weir_threadpool_vtable *vtable, void *ctx);

/* Streams on all of these pools at once, a graph on each; the results are the same as without a pool. */
void exercise_together(weir_threadpool *const *pools, int num_pools);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_CTESTS_EXERCISE_H */
