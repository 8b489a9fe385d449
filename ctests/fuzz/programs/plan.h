/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A random program and how it is run, as plain data: nothing here knows of weir.
 *
 * A plan is drawn from one number. What a failure does not need can be left out afterwards (`drops`), and everything
 * else of the plan stays as it was drawn.
 */

#ifndef WEIR_CTESTS_FUZZ_PROGRAMS_PLAN_H
#define WEIR_CTESTS_FUZZ_PROGRAMS_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- Random numbers ---------------------------------------------------------------------------- */

typedef struct dice {
    uint64_t state;
} dice;

uint64_t roll_bits(dice *d);
/* least to most, both included. */
int roll(dice *d, int least, int most);
/* True in `percent` of 100 cases. */
bool chance(dice *d, int percent);

/* ---- Values ------------------------------------------------------------------------------------ */

enum {
    WIDTH = 4,       /* elements of a VEC */
    MAX_OPEN = 8,    /* elements of an OPEN */
    MAX_INS = 4,     /* inputs of a node */
    MAX_OUTS = 4,    /* outputs of a node */
    MAX_NODES = 16,  /* nodes of a graph */
    MAX_VALUES = 64, /* values of a graph */
    MAX_IDS = 400,   /* nodes of a program, nested ones too */
    SETS = 3,        /* different inputs of the program */
    MAX_PROGRAM_INS = 3,
    MAX_PROGRAM_OUTS = 6,
    MAX_DEVICES = 2
};

typedef enum type {
    VEC,  /* f32[WIDTH], whole numbers */
    PRED, /* s32[1] */
    OPEN, /* f32[?] */
    LEAK  /* a VEC that may be absent, for outputs of the program alone */
} type;

typedef struct val {
    bool absent; /* of a branch that was not taken */
    bool poison; /* what makes it has failed */
    int n;
    float v[MAX_OPEN];
} val;

/* ---- Graphs ------------------------------------------------------------------------------------ */

typedef enum op {
    OP_MIX,      /* host kernel: sums of its inputs */
    OP_PICK,     /* host kernel: a PRED */
    OP_BOUND,    /* host kernel: the counter of a loop, [0, turns, 0, 0] */
    OP_SINK,     /* host kernel without outputs */
    OP_MAKE,     /* host kernel: VEC -> OPEN */
    OP_MAP,      /* host kernel: OPEN -> OPEN */
    OP_FOLD,     /* host kernel: OPEN -> VEC */
    OP_CALL,     /* host kernel that runs a program */
    OP_ADD,      /* built-in kernels */
    OP_SUB,
    OP_MIN,
    OP_MAX,
    OP_RELU,
    OP_ARGMAX,   /* a PRED */
    OP_CONSTANT, /* a constant of the graph */
    OP_TASK,     /* a function without arguments */
    OP_COND,
    OP_CASE,
    OP_WHILE,
    OP_SWITCH, /* a switch, nodes on either side, a merge */
    OP_PROGRAM
} op;

/* How the body of a host kernel ends. */
typedef enum manner {
    AT_ONCE,
    LATER_INSIDE,   /* compute_async, done before it returns */
    LATER_SOON,     /* another thread */
    LATER_LATE,     /* another thread, after a while */
    MAY_BLOCK
} manner;

typedef struct graph_plan graph_plan;

typedef struct node {
    int id;       /* of all nodes of the program */
    op op;
    manner manner;
    int device;   /* -1: the host's */
    bool open_placement;
    bool in_place;
    int forward;  /* WEIR_FORWARD_AUTO, WEIR_FORWARD_NEVER */
    int num_in, ins[MAX_INS]; /* values of the same graph */
    int num_out, first_out;   /* its outputs are values of the graph, one after the other */
    int factor[MAX_INS + 1];
    int fail_modulus;  /* 0: never fails. Else it fails for some inputs. */
    int fail_rest;
    bool fail_early;   /* compute_async itself fails */
    int num_before, before[2]; /* nodes of the same graph that it waits for without data */
    int work_us;
    uint64_t cost_ns;
    int way;           /* OP_CALL: how the program is run */
    int count;         /* OP_CALL: how often */
    int num_graphs;
    graph_plan *graphs[3];
    int num_variables; /* OP_WHILE: the rest of the inputs are invariants */
    int parallel;
    bool in_frame;     /* OP_WHILE: as nodes of a frame, enters and exits and so on, and not as one node */
    bool dropped;
    bool uncounted;    /* inside of an OP_CALL, which is left out if nobody needs it */
    struct node *all_next; /* all nodes of the program */
} node;

typedef struct value {
    type type;
    int node; /* -1: an input */
} value;

struct graph_plan {
    int num_inputs, num_values, num_nodes, num_outputs;
    value values[MAX_VALUES]; /* the inputs first */
    node nodes[MAX_NODES];
    int outputs[MAX_PROGRAM_OUTS];
    bool has_absent;  /* an output may be absent */
    bool later;       /* kernels that complete later or may block, nested ones too */
    bool opens;       /* values of open shape */
    bool devices;     /* nodes on devices */
};

/* ---- Pools ------------------------------------------------------------------------------------- */

typedef enum pool_source { POOL_NONE, POOL_BUILTIN, POOL_WEIR_INLINE, POOL_WEIR_SEEDED, POOL_OWN, POOL_SAME } pool_source;

typedef enum pool_order { FIFO, LIFO, ANY_ORDER } pool_order;

/* Who a pool is for. */
typedef enum role { FOR_ENGINE, FOR_STREAM, FOR_RUN, FOR_BLOCKING, ROLES } role;

typedef struct pool_plan {
    pool_source source;
    role same_as;
    int threads;
    /* POOL_OWN */
    bool schedule, parallel_for, asynchronous, in_parallel, thread_index, help, nested, balancing;
    bool runs_inline;
    pool_order order;
    int refuses;  /* percent of the calls */
    int late_us;  /* a task is held back for up to this long */
    bool takes_jobs; /* callers run on its threads */
    uint64_t seed;
} pool_plan;

/* ---- Callers ----------------------------------------------------------------------------------- */

enum { MAX_CALLERS = 4, MAX_ACTS = 7, MAX_STREAMS = 3 };

typedef enum where { OUTSIDE, POOL_JOB, STREAM_TASK } where;

typedef struct stream_plan {
    int device; /* -1: the host's */
    bool asynchronous;
    bool pool;
    int priority;
} stream_plan;

typedef enum act_kind {
    ACT_RUN,        /* weir_program_run without a stream */
    ACT_RUN_STREAM, /* weir_program_run on a stream */
    ACT_START,      /* weir_program_start */
    ACT_MANY,       /* weir_program_run_many */
    ACT_KERNEL,     /* weir_enqueue */
    ACT_TASK,       /* weir_enqueue_task */
    ACT_TASK_RUNS,  /* weir_enqueue_task of a function that runs the program */
    ACT_TASK_WAITS, /* weir_enqueue_task of a function that waits for another stream */
    ACT_EVENT,      /* recorded on one stream, waited for on another, and by the caller */
    ACT_SYNC_STREAM,
    ACT_SYNC_ENGINE,
    ACT_SYNC_ALL,
    ACT_KINDS
} act_kind;

/* How the host is told of the end of a run or an event. */
typedef enum tell { NOT_TOLD, BY_OPTIONS, BY_CALL } tell;

typedef enum after_start { WAIT_NOW, WAIT_LATER, CANCEL_NOW, CANCEL_SOON, LET_GO } after_start;

typedef struct act {
    int id;
    act_kind kind;
    int stream, other; /* of the caller's */
    int set;
    bool run_pool;
    uint64_t deadline_ns;
    unsigned outputs;  /* bits of a partial run; 0 = all */
    bool deterministic, finish_independent, no_wait, flags;
    after_start then;
    int count;
    manner manner;
    tell tell;
    bool follows; /* the host is told of each node */
    bool dropped;
} act;

typedef struct caller_plan {
    int id;
    where where;
    role pool;   /* POOL_JOB */
    int stream;  /* STREAM_TASK: of the caller's own */
    int num_streams;
    stream_plan streams[MAX_STREAMS];
    int num_acts;
    act acts[MAX_ACTS];
    bool dropped;
} caller_plan;

typedef struct device_plan {
    uint64_t seed;
    uint64_t latency_ns, kernel_ns;
    bool strict;
    int max_streams;
    uint64_t regions; /* one of weir_emulation_regions_value */
    bool dropped;
} device_plan;

/* ---- Features ---------------------------------------------------------------------------------- */

/* What --without leaves out, and what is counted. */
typedef enum feature {
    F_DEVICES,
    F_LATER,
    F_BLOCK,
    F_FAIL,
    F_OPEN,
    F_SWITCH,
    F_COND,
    F_WHILE,
    F_FRAME,       /* loops as nodes of frames */
    F_PLACED_SWITCH, /* switches of programs with devices */
    F_PROGRAM,
    F_CALL,
    F_TASK,
    F_PARTIAL,
    F_CANCEL,
    F_DEADLINE,
    F_MANY,
    F_LATER_MANY,  /* run_many of programs with kernels that complete later */
    F_BOUND,       /* max_concurrent_runs */
    F_JOBS,        /* callers on threads of pools */
    F_NAMELESS,    /* jobs on pools that cannot say who their threads are */
    F_STREAM_TASK, /* callers that are functions of a stream's */
    F_TASK_RUNS,
    F_TASK_WAITS,
    F_DEVICE_TASK, /* functions on the streams of devices that run programs or wait */
    F_SYNC,
    F_ABSENT,
    F_PLACED_OPTIONS, /* deterministic and finish_independent of programs with devices or later kernels */
    F_PORTS,       /* inputs and outputs on devices */
    F_POOLS,       /* pools at all */
    F_NOTICE,      /* the host is told of ends */
    F_PROGRESS,    /* and of how far runs are */
    FEATURES
} feature;

extern const char *const feature_names[FEATURES];

/* What is left out: a set of features, and names of nodes (n12), acts (a3), callers (c1), devices (d0), pools (p0 to
 * p3) and outputs (o2). */
typedef struct drops {
    bool without[FEATURES];
    bool nodes[MAX_IDS], acts[MAX_CALLERS * MAX_ACTS], callers[MAX_CALLERS], devices[MAX_DEVICES], pools[ROLES];
    bool outputs[MAX_PROGRAM_OUTS];
} drops;

/* Reads a list with commas; false and a message if it is none. */
bool read_drops(drops *d, const char *list);
bool read_without(drops *d, const char *list);

/* ---- The plan ---------------------------------------------------------------------------------- */

typedef struct plan {
    uint64_t number;
    graph_plan *graph;
    node *all;
    int num_ids;
    graph_plan *owned[MAX_IDS]; /* all graphs, to free them */
    int num_owned;
    pool_plan pools[ROLES];
    int num_devices;
    device_plan devices[MAX_DEVICES];
    int input_device[MAX_PROGRAM_INS], output_device[MAX_PROGRAM_OUTS]; /* -1: the host's */
    int num_callers;
    caller_plan callers[MAX_CALLERS];
    /* Compile options. */
    int hop; /* -1: the default */
    int partial_lists;
    int max_runs;
    int segments, device_control; /* segments: one of enum weir_segments_value */
    bool statistics, any_placement;
    bool uses[FEATURES];
    bool plain; /* nothing on devices, nothing that completes later */
    bool calm; /* no run is cancelled, fails, or is refused half way */
} plan;

plan *plan_draw(uint64_t number, const drops *d);
/* What plan_draw ends with. */
void plan_leave_out(plan *p, const drops *d);
void plan_free(plan *p);
void plan_print(FILE *to, const plan *p);
const char *op_name(op op);
bool op_is_host(op op);

/* ---- What must come of it ---------------------------------------------------------------------- */

/* A number from 0 to 996, of any float. */
int whole(float x);
/* What a body computes; 0, or the node fails. */
bool node_fails(const node *n, const val *ins);
void node_apply(const node *n, const val *ins, val *outs);
/* The part of a SINK and so on that others can see is counted by the callers of these. */

typedef struct outcome {
    val outputs[MAX_PROGRAM_OUTS];
    bool fails[MAX_IDS];    /* nodes that can be the first to fail */
    bool some_fail;
    bool must_fail;         /* an effect, not counting the outputs */
    bool unsure;            /* nothing is said of outputs that are poisoned */
    uint32_t effects[MAX_IDS]; /* how often tasks and sinks are called, if nothing fails */
} outcome;

void reference_run(const graph_plan *g, const val *inputs, outcome *out);

/* The program's inputs. */
void plan_inputs(const plan *p, int set, val *inputs);

#endif /* WEIR_CTESTS_FUZZ_PROGRAMS_PLAN_H */
