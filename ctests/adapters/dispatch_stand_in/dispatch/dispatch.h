/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A stand-in for libdispatch, and not libdispatch: the few functions that weir/adapters/dispatch.h calls, on POSIX
 * threads, so that the adapter is compiled and run where libdispatch is not packaged.
 */

#ifndef WEIR_DISPATCH_STAND_IN_H
#define WEIR_DISPATCH_STAND_IN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_DISPATCH_STAND_IN 1

typedef struct dispatch_queue_stand_in *dispatch_queue_t;
typedef void (*dispatch_function_t)(void *);

/* The one global queue; both arguments are ignored. Its threads start with the first task and never end. */
dispatch_queue_t dispatch_get_global_queue(intptr_t identifier, uintptr_t flags);

/* References of the queue, for stand_in_references. */
void dispatch_retain(dispatch_queue_t queue);
void dispatch_release(dispatch_queue_t queue);
long stand_in_references(dispatch_queue_t queue);

/* Runs work(context) once, on a thread of the queue. */
void dispatch_async_f(dispatch_queue_t queue, void *context, dispatch_function_t work);

/* Runs work(context, i) for each i < n, in the caller and on threads of the queue, and returns when all have. */
void dispatch_apply_f(size_t n, dispatch_queue_t queue, void *context, void (*work)(void *, size_t));

#ifdef __cplusplus
}
#endif

#endif /* WEIR_DISPATCH_STAND_IN_H */
