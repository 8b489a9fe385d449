/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * One program as weir knows it, while it is tried.
 */

#ifndef WEIR_CTESTS_FUZZ_PROGRAMS_WORLD_H
#define WEIR_CTESTS_FUZZ_PROGRAMS_WORLD_H

#include <pthread.h>
#include <stdbool.h>

#include "plan.h"
#include "weir.h"

/* ---- Findings ---------------------------------------------------------------------------------- */

/* What a child process tells the one that started it, in memory that both see. */
typedef struct report {
    _Atomic uint64_t number;   /* the program being tried */
    _Atomic uint64_t programs, acts, runs, refusals, failures, bodies, skipped;
    _Atomic uint64_t features[FEATURES], pools[32], callers[3];
    char kind[64], text[1000]; /* of a finding */
} report;

extern report *told;

/* Says what is wrong, and ends the process. `kind` is what shrinking keeps to. */
_Noreturn void finding(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Something has been done: the watchdog looks at this. */
void watch_progress(void);
/* What the main thread is at. */
void watch_phase(const char *phase);
void watch_start(double patience_s);
void watch_begin(const plan *p);
void watch_end(void);
extern double slowness;
/* How long to wait for what must come, before the watchdog says that nothing comes. */
uint64_t watch_limit_ns(void);

/* What the fuzzer does wrong on purpose, to see that it is found: "result", "order", "hang", "leak"; NULL: nothing. */
extern const char *planted;
bool is_planted(const char *what);

uint64_t clock_ns(void);
void doze_us(int us);
void doze_longer(int *us); /* from call to call, so that a long wait is no spin */

/* A call of weir that has no reason to fail. */
#define MUST(call) must((call), #call)
void must(weir_status status, const char *what);

/* ---- Pools ------------------------------------------------------------------------------------- */

typedef struct own_pool own_pool;

/* The pool of a plan, NULL for none; *out_own is NULL but for POOL_OWN. */
weir_threadpool *pool_make(const pool_plan *plan, own_pool **out_own);
/* A task of the host's own, on a thread of the pool's. */
void own_pool_post(own_pool *pool, void (*job)(void *), void *arg);
/* Waits until weir has released it. */
void own_pool_end(own_pool *pool);
/* What the pool is like, for the counts: below 32. */
int pool_class(const pool_plan *plan);
extern const char *const pool_class_names[32];

/* ---- The world --------------------------------------------------------------------------------- */

/* What bodies know of their node. */
typedef struct body {
    const node *node;
    struct world *world;
    atomic_uint begun, ended;
    const struct body *after[2]; /* nodes of the host's that must have ended before */
    weir_program *program;       /* OP_CALL, OP_PROGRAM */
} body;

typedef struct world {
    const plan *plan;
    weir_threadpool *pools[ROLES];
    own_pool *own[ROLES];
    weir_engine *cpu;
    weir_engine *devices[MAX_DEVICES];
    weir_program *program;
    body bodies[MAX_IDS];
    weir_tensor *inputs[SETS][MAX_PROGRAM_INS];
    val values[SETS][MAX_PROGRAM_INS];
    outcome expected[SETS];
    weir_kernel *mixes[4]; /* for ACT_KERNEL, by manner */
    body mix_bodies[4];
    node mix_nodes[4];
    atomic_uint left;      /* completions under way */
    atomic_uint effects[MAX_IDS]; /* how often runs that succeeded ought to have called tasks and sinks */
    _Atomic bool calm;     /* so far no run was refused, failed or stopped */
    _Atomic bool late_errors; /* streams may have failed */
    bool refused;          /* the library cannot compile a part of the program, and says so */
    bool lenient_blocking; /* the blocking pool may refuse */
} world;

/* The engines, kernels, graphs and programs. False if the library says that it cannot do this, which it may. */
bool build_world(world *w, const plan *p);
void end_world(world *w);

/* ---- Bodies ------------------------------------------------------------------------------------ */

weir_kernel *body_kernel(body *b, weir_engine *engine);
int32_t body_task(void *arg);
void later_start(void);
void later_stop(void);
/* An input or output of the host's. */
weir_tensor *vec_tensor(weir_engine *engine);
void vec_write(weir_tensor *t, const val *v);

/* ---- Callers ----------------------------------------------------------------------------------- */

/* All that the callers do, until each has come to its end; what they left over is waited for here, and compared. */
void callers_run(world *w);

void count_refusal(void);

void try_program(const plan *p);

#endif /* WEIR_CTESTS_FUZZ_PROGRAMS_WORLD_H */
