/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The pools of this directory. Each breaks one clause, or is odd and legal.
 */

#ifndef WEIR_CTESTS_MISBEHAVING_POOLS_H
#define WEIR_CTESTS_MISBEHAVING_POOLS_H

#include "base.h"

#define POOL(name) int name(weir_threadpool_vtable *out_vtable, void **out_ctx)

/* broken_tasks.c */
POOL(lossy);         /* H4: drops every eighth task of schedule */
POOL(duplicating);   /* H4: runs every eighth task of schedule twice */
POOL(wrong_index);   /* H4: calls a task of schedule with another index than 0 */
POOL(leaving_out);   /* H5: parallel_for leaves its last index out */
POOL(wrong_count);   /* H5: parallel_for runs as many indices as there are threads, and the index n */
POOL(repeating);     /* H5: parallel_for runs index 0 twice */
POOL(early);         /* H6: parallel_for returns when its tasks are queued */
POOL(after_refusal); /* H7: refuses every fourth call of schedule, and runs it */
POOL(locking);       /* H8, H12: keeps its lock while tasks run in their caller */
POOL(forgetful);     /* H9: wakes no thread for a task that comes while all sleep; the next call does */
POOL(after_release); /* H13: runs its last task again in release */

/* broken_answers.c */
POOL(wide);              /* H2: has more threads than it says */
POOL(caller_counted);    /* H2: num_threads counts the caller of parallel_for */
POOL(growing);           /* H3: num_threads goes beyond max_threads */
POOL(index_beyond);      /* H3: thread_index is not below max_threads */
POOL(outside);           /* H10: in_parallel says 0 in its own threads */
POOL(inside_everywhere); /* H10: in_parallel says 1 in every thread */
POOL(shared_index);      /* H10: all threads have the same index */
POOL(help_lies);         /* H11: help returns 1 and runs nothing */
POOL(help_denies);       /* H11: help runs a task and returns 0 */

/* legal.c */
POOL(in_caller);  /* runs everything in its caller */
POOL(lifo);       /* the newest task first */
POOL(delaying);   /* two milliseconds before each task */
POOL(half);       /* refuses every second call */
POOL(one_thread); /* one thread, schedule only */
POOL(only_bulk);  /* a parallel_for that waits, and nothing else */
POOL(posting);    /* an asynchronous parallel_for, and nothing else */
POOL(refusing);   /* refuses every call */
POOL(anonymous);  /* neither in_parallel nor thread_index */
POOL(team);       /* a parallel_for whose caller is one of the team */
POOL(breathing);  /* num_threads changes all the time, within max_threads */

#undef POOL

#endif /* WEIR_CTESTS_MISBEHAVING_POOLS_H */
