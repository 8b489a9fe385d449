/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What callers have under way, and whether it may end as it does.
 */

#ifndef WEIR_CTESTS_FUZZ_PROGRAMS_CALLERS_H
#define WEIR_CTESTS_FUZZ_PROGRAMS_CALLERS_H

#include <stdbool.h>

#include "world.h"

enum { MAX_TENSORS = 4 * MAX_PROGRAM_OUTS };

/* Work of an act that may go on when the call has returned. */
typedef struct pending {
    struct caller *caller;
    const act *act;
    int stream;     /* -1: none */
    bool issued;    /* its tensors are there */
    bool is_run;    /* of the program, else a kernel */
    bool tainted;   /* its stream may have failed before */
    atomic_bool settled; /* its end is known */
    bool good;      /* it succeeded, so its outputs count */
    int copies, num_out;
    weir_tensor *outs[MAX_TENSORS];
    weir_tensor *in;
    val kernel_in;
    weir_run *run;
    weir_run_options options;
    size_t indices[MAX_PROGRAM_OUTS];
    weir_event *event;
    uint8_t flags[MAX_PROGRAM_OUTS];
    bool asks;      /* to be told of its end */
    bool will_tell; /* and is going to be */
    bool of_run;
    atomic_int tells, releases;
    atomic_bool following; /* it is being told how far it is */
    unsigned long long nodes_done, nodes_total;
} pending;

typedef struct caller {
    world *w;
    const caller_plan *plan;
    bool inside;    /* of a pool's task, or of something that weir has called */
    weir_stream *streams[MAX_STREAMS];
    bool tainted[MAX_STREAMS]; /* something may have failed there */
    weir_stream *carrier;
    pending pendings[MAX_ACTS];
    pthread_t thread;
    atomic_bool over;
} caller;

/* ---- Judgement --------------------------------------------------------------------------------- */

/* Whether a run of this act may fail late. */
bool may_fail(const world *w, const act *a);
bool is_late_failure(weir_status s);
/* The status and the thread's message, until the next call in this thread. */
const char *what_said(weir_status status);
/* The program's output that is number k of this run. */
int output_index(const pending *p, int k);
/* What lies on devices, by a copy: from a thread that is inside of nothing. */
void compare_device(const pending *p);
/* The run or kernel has succeeded. */
void judge_good(pending *p);
/* How a run ended, or that its call was refused. */
void judge(pending *p, weir_status status);

/* Checks what a run says of how far it is. */
void told_how_far(void *ctx, const weir_run_progress *progress);

/* ---- Notices ----------------------------------------------------------------------------------- */

/* What has the end of this told, once; checked by check_notices, behind the end of streams and runs. */
weir_notice notice_of(pending *p, bool of_run);
void check_notices(const caller *c);

#endif /* WEIR_CTESTS_FUZZ_PROGRAMS_CALLERS_H */
