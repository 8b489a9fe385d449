/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A plug-in's device for tests, in the process: each stream is a thread with a queue, addresses are no pointers, and
 * every function can be made to fail or to misbehave. It calls no function of weir's, so that it may also be part of a
 * library that is loaded.
 */

#ifndef WEIR_CTESTS_TEST_DEVICE_H
#define WEIR_CTESTS_TEST_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "weir.h"
#include "weir/device.h"

enum { TEST_DEVICES = 2, TEST_ALIGNMENT = 64 };

/* What it does wrong. */
typedef enum test_fault {
    NO_FAULT,
    UNORDERED,         /* now and then does the second before the first */
    EARLY_EVENTS,      /* an event is reached when it is recorded */
    FORGOTTEN_EVENTS,  /* every 16th record is lost */
    EARLY_SYNCHRONIZE, /* a wait for an event says that it is reached when its time is over */
    IGNORED_WAITS,     /* streams do not wait for events */
    LOSSY_COPIES,      /* copies of more than a page leave out their last byte */
    OFF_BY_ONE,        /* fills set one byte too many */
    MISALIGNED,        /* every fourth address is 8 too high */
    OVERLAPPING,       /* now and then an allocation gives the last one's memory */
    BOUNDLESS,         /* has as much memory as anybody asks for */
    SWALLOWED_ERRORS,  /* events do not give failures */
    UNPROPAGATED,      /* a stream that waits for a failed event goes on as if nothing was */
    GOING_ON,          /* what lies behind a failure is done */
    NEVER_CLEARED,     /* a failure stays for ever */
    LOST_CALLBACKS,    /* every fourth callback is never called */
    DOUBLE_CALLBACKS,  /* callbacks are called twice */
    EARLY_CALLBACKS,   /* callbacks are called at once */
    BACKWARDS,         /* time runs backwards */
    ANY_KERNEL,        /* has a kernel of every name */
    WRONG_KERNEL,      /* subtracts instead of adding */
    GREEDY_DESTROY,    /* a stream that is destroyed takes with it what others have queued */
    STAGED_PINNED,     /* copies from pinned memory take the bytes that are there when they are asked for */
    EARLY_IDLE,        /* streams are always idle */
    NO_EDGES,          /* a replay does its steps in any order */
    STALE_UPDATES,     /* an update of a recording changes nothing */
    WRONG_BRANCH,      /* the last branch is done instead of the first */
    ONCE_MORE,         /* a loop is done once, whatever its predicate says */
    STALE_PREPARED,    /* what was prepared before is launched again */
    MUTE,              /* what a function of the host's says of its failure is lost */
    FORGETFUL_BATCHES, /* fills of a batch are not done */
    HASTY_REGIONS,     /* a kernel of a region leaves out the last node */
    GREEDY_KERNELS,    /* a kernel that is destroyed spoils the others, until another one is made */
    GREEDY_EXECUTABLES, /* an executable that is destroyed empties the others, until another one is made */
    LAPSING_PREPARED,  /* what was prepared is not launched if it is destroyed before its turn comes */
    RENAMED_ERRORS,    /* a stream that waits for a failed event gives another failure */
    SPILLING_SCRATCH,  /* writes one byte behind its scratch memory */
    TRUSTING_SCRATCH,  /* expects that scratch memory is 0 */
    UNSTEADY_SCRATCH,  /* the scratch memory that it asks for depends on addresses */
    CLEARING_OUTPUTS   /* fills an output with 0 before it computes it */
} test_fault;

typedef struct test_device test_device;

/* Makes the context for a vtable. `capabilities` as in weir_device_info; CONCURRENT, TIMING, PEER_COPY, CALLBACK,
 * NATIVE_HANDLE, PINNED_MEMORY, REGISTER_MEMORY, IDLE_QUERY, RECORDINGS, CONTROL_FLOW, PREPARED_LAUNCHES, SCRATCH, HOST_KERNELS and
 * REGIONS are honoured. NULL if there is no memory. */
test_device *test_device_create(uint64_t capabilities);

/* Frees it. Nobody uses it any more. */
void test_device_destroy(test_device *device);

weir_device_vtable test_device_vtable(void);

/* Before it is used. */
void test_device_misbehave(test_device *device, test_fault fault);

/* The call number `call` (1 = the next) of a function, a member of the vtable, fails with this status; "work" stands
 * for the `call`th thing that the device does, which then fails late. 0 forgets it. test_device_hit says whether it
 * came to pass. */
void test_device_plan(test_device *device, const char *function, int call, int32_t status);
bool test_device_hit(test_device *device);

/* How many devices, streams, events, kernels and blocks of memory are alive; calls of release; threads that are in a
 * function now, at most. */
int test_device_alive(test_device *device);
int test_device_releases(test_device *device);
int test_device_most_callers(test_device *device);

/* How many bytes may be allocated (1 GiB); how long each copy, fill and launch takes at least, in nanoseconds (0). */
void test_device_limit(test_device *device, uint64_t bytes);
void test_device_slow(test_device *device, uint64_t ns);

/* The streams that info gives (0); whether recordings with branches and loops are refused, with UNIMPLEMENTED. */
void test_device_max_streams(test_device *device, uint32_t count);
void test_device_refuse_control(test_device *device, bool refuse);

/* The operation whose nodes it does not take into regions; NULL: it takes all. */
void test_device_leave_alone(test_device *device, const char *operation);

/* How often it was asked for something, and did it. */
typedef struct test_device_counts {
    int recordings, updates, prepared, queries, regions, region_nodes;
    uint64_t replays;
} test_device_counts;
test_device_counts test_device_count(test_device *device);

/* Bytes of the host's memory that are pinned now, allocated and registered. */
uint64_t test_device_pinned(test_device *device);

#endif /* WEIR_CTESTS_TEST_DEVICE_H */
