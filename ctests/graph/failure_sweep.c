/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A graph with parallel branches, a cond and a loop, and for every k: its k-th kernel fails, cancels the run, is in the
 * run when another thread cancels it, or outlasts the deadline. Each time: the right error, the right node and
 * iteration, exactly the right list of what did not run (where one thread runs), nothing run twice or forgotten (where
 * several do), and a program that runs again at once.
 */

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <weir/control.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

enum { ITERATIONS = 2, MAX_NODES = 24, MAX_CALLS = 64 };

typedef enum deed { DEED_NONE, DEED_FAIL, DEED_CANCEL, DEED_CANCELLED, DEED_LATE } deed;

/* What the kernels do and note. */
typedef struct record {
    const char *name; /* as error texts have it */
    atomic_int calls;
} record;

/* The run that goes on. */
static struct {
    atomic_int step;          /* calls of kernels in this run */
    atomic_int order[MAX_CALLS]; /* who they were */
    deed deed;
    int at;
    atomic_int culprit; /* who did it, or -1 */
    atomic_int culprit_calls;
    atomic_int here; /* DEED_CANCELLED: the kernel waits to be cancelled */
    _Atomic(weir_run *) run;
} current;

static record records[MAX_NODES];
static int num_records;

static void do_deed(weir_kernel_context *context) {
    int32_t cancelled = 0;
    if (current.deed == DEED_CANCEL) {
        weir_run *run;
        while ((run = atomic_load(&current.run)) == NULL) sched_yield();
        CHECK_OK(weir_run_cancel(run));
        CHECK_OK(weir_kernel_context_is_cancelled(context, &cancelled));
        CHECK_EQ(cancelled, 1);
    } else if (current.deed == DEED_CANCELLED || current.deed == DEED_LATE) {
        atomic_store(&current.here, 1);
        while (!cancelled) {
            CHECK_OK(weir_kernel_context_is_cancelled(context, &cancelled));
            if (!cancelled) sched_yield();
        }
    }
}

/* The sum of the inputs and one more; "below" compares. The k-th call of a run does the deed. */
static int32_t compute(void *user, weir_kernel_context *context) {
    record *self = user;
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    int step = atomic_fetch_add(&current.step, 1);
    int calls = atomic_fetch_add(&self->calls, 1) + 1;
    int32_t sum = 1;
    CHECK(step < MAX_CALLS);
    atomic_store(&current.order[step], (int)(self - records));
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    for (size_t i = 0; i < num_in; i++) sum += *(const int32_t *)in[i].data;
    if (strstr(self->name, "/below") != NULL) {
        sum = *(const int32_t *)in[0].data < *(const int32_t *)in[1].data;
    }
    *(int32_t *)out->data = sum;
    /* Long enough to be worth another thread. */
    for (uint64_t end = now_ns() + 3000; now_ns() < end;) continue;
    if (current.deed == DEED_NONE || step != current.at) return WEIR_OK;
    atomic_store(&current.culprit_calls, calls);
    atomic_store(&current.culprit, (int)(self - records));
    do_deed(context);
    return current.deed == DEED_FAIL ? WEIR_DATA_LOSS : WEIR_OK;
}

static weir_tensor_desc integer(void) {
    return make_desc(WEIR_S32, 1, 1, 0, 0);
}

static weir_value add(weir_graph *graph, weir_engine *engine, const char *path, const weir_value *inputs, size_t n) {
    weir_tensor_desc like[4] = {integer(), integer(), integer(), integer()};
    weir_host_kernel_desc desc = make_kernel_desc("step", compute, &records[num_records]);
    weir_kernel *kernel = NULL;
    weir_value value;
    const char *name = strrchr(path, '/');
    CHECK(num_records < MAX_NODES);
    records[num_records++].name = path;
    desc.num_inputs = n;
    desc.inputs = like;
    desc.num_outputs = 1;
    desc.outputs = like;
    desc.cost_ns = 2000;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    CHECK_OK(weir_graph_add_kernel(graph, name ? name + 1 : path, kernel, inputs, n, &value, 1, NULL));
    weir_kernel_release(kernel);
    return value;
}

static weir_value input(weir_graph *graph, const char *name) {
    weir_tensor_desc desc = integer();
    weir_value value;
    CHECK_OK(weir_graph_add_input(graph, name, &desc, &value));
    return value;
}

/* What is left out when a node fails and the rest is finished, by name: the node, then those. */
static const char *const dependants[][8] = {
    {"a", "b1", "b2", "b3", "side", "choice", "join", "tail"},
    {"b1", "choice", "join", "tail"},
    {"b2", "side"},
    {"b3", "join", "tail"},
    {"side"},
    {"choice/then/t1", "choice/then/t2", "choice/then/t4", "join", "tail"},
    {"choice/then/t2", "choice/then/t4", "join", "tail"},
    {"choice/then/t3", "choice/then/t4", "join", "tail"},
    {"choice/then/t4", "join", "tail"},
    {"loop/condition/below", "join", "tail"},
    {"loop/body/l1", "loop/body/l2", "join", "tail"},
    {"loop/body/l2", "join", "tail"},
    {"loop/body/l3", "join", "tail"},
    {"join", "tail"},
    {"tail"},
};

/* a -> b1, b2 -> side, b3; a choice by b1; beside them a loop; join of choice, loop and b3; tail. */
static weir_program *make_program(weir_engine *engine) {
    weir_graph *graph = make_graph("sweep"), *yes = make_graph("yes"), *no = make_graph("no");
    weir_graph *condition = make_graph("condition"), *body = make_graph("body");
    weir_program *program = NULL;
    weir_value v[4];
    num_records = 0;

    v[3] = input(yes, "y");
    v[0] = add(yes, engine, "choice/then/t1", &v[3], 1);
    v[0] = add(yes, engine, "choice/then/t2", &v[0], 1);
    v[1] = add(yes, engine, "choice/then/t3", &v[3], 1);
    CHECK_OK(weir_graph_add_output(yes, "out", add(yes, engine, "choice/then/t4", v, 2)));
    v[0] = input(no, "y");
    CHECK_OK(weir_graph_add_output(no, "out", add(no, engine, "choice/else/f1", v, 1)));

    v[0] = input(condition, "i");
    (void)input(condition, "v");
    v[1] = input(condition, "n");
    CHECK_OK(weir_graph_add_output(condition, "go", add(condition, engine, "loop/condition/below", v, 2)));
    v[3] = input(body, "i");
    v[0] = input(body, "v");
    v[1] = input(body, "n");
    v[0] = add(body, engine, "loop/body/l1", v, 1);
    v[0] = add(body, engine, "loop/body/l2", v, 2);
    CHECK_OK(weir_graph_add_output(body, "i", add(body, engine, "loop/body/l3", &v[3], 1)));
    CHECK_OK(weir_graph_add_output(body, "v", v[0]));

    weir_value x = input(graph, "x"), n = input(graph, "n"), join[3], looped[2];
    weir_value a = add(graph, engine, "a", &x, 1);
    weir_value b1 = add(graph, engine, "b1", &a, 1), b2 = add(graph, engine, "b2", &a, 1);
    join[0] = add(graph, engine, "b3", &a, 1);
    CHECK_OK(weir_graph_add_output(graph, "side", add(graph, engine, "side", &b2, 1)));
    CHECK_OK(weir_graph_add_cond(graph, "choice", &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc),
        .predicate = b1, .then_graph = yes, .else_graph = no, .inputs = &a, .num_inputs = 1}, &join[1], 1, NULL));
    v[0] = v[1] = x;
    CHECK_OK(weir_graph_add_while(graph, "loop", &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
        .cond_graph = condition, .body_graph = body, .variables = v, .num_variables = 2, .invariants = &n,
        .num_invariants = 1}, looped, NULL));
    join[2] = looped[1];
    v[0] = add(graph, engine, "join", join, 3);
    CHECK_OK(weir_graph_add_output(graph, "tail", add(graph, engine, "tail", v, 1)));

    const weir_compile_options options = {
        .struct_size = sizeof options, .hop_ns = WEIR_HOP_NONE}; /* share whatever there is */
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &options, &program));
    weir_graph_destroy(graph);
    weir_graph_destroy(yes);
    weir_graph_destroy(no);
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    return program;
}

typedef struct sweep {
    weir_engine *engine;
    weir_program *program;
    weir_tensor *inputs[2], *outputs[2];
    int32_t expected[2];
    int order[MAX_CALLS]; /* who runs in one thread */
    int num_calls;
    char *top[MAX_NODES]; /* the nodes that are inside of no other, in the program's order */
    size_t num_top;
    uint64_t ended, failed, cancelled;
} sweep;

/* How a run failed, and the names of what was not run. */
typedef struct outcome {
    weir_failure failure;
    char *names[MAX_NODES];
} outcome;

static outcome outcome_of(weir_run *run) {
    outcome o;
    memset(&o, 0, sizeof o);
    o.failure.struct_size = sizeof o.failure;
    char names[MAX_NODES * 64];
    o.failure.not_run = names;
    o.failure.not_run_capacity = sizeof names;
    CHECK_OK(run ? weir_run_get_failure(run, &o.failure) : weir_thread_get_failure(&o.failure));
    CHECK(o.failure.num_not_run <= MAX_NODES && o.failure.not_run_bytes <= sizeof names);
    const char *name = names;
    for (size_t i = 0; i < o.failure.num_not_run; i++) {
        o.names[i] = strdup(name);
        name += strlen(name) + 1;
    }
    return o;
}

static void outcome_end(outcome *o) {
    for (size_t i = 0; i < o->failure.num_not_run; i++) free(o->names[i]);
}

static int listed(const outcome *o, const char *name) {
    int found = 0;
    for (size_t i = 0; i < o->failure.num_not_run; i++) found += strcmp(o->names[i], name) == 0;
    return found;
}

static bool is_inside(const char *name, const char *node) {
    size_t n = strlen(node);
    return strncmp(name, node, n) == 0 && name[n] == '/';
}

static void prepare(deed what, int at) {
    atomic_store(&current.step, 0);
    current.deed = what;
    current.at = at;
    atomic_store(&current.culprit, -1);
    atomic_store(&current.here, 0);
    atomic_store(&current.run, NULL);
    for (int i = 0; i < num_records; i++) atomic_store(&records[i].calls, 0);
}

static weir_status run(sweep *s, const weir_run_options *options) {
    return weir_program_run(s->program, NULL, s->inputs, 2, s->outputs, 2, options);
}

static int32_t *number(weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return data;
}

/* What ran, what failed and what is listed are together what should have run, each once. */
static void check_partition(const outcome *o) {
    int below = 0, in_body = 0;
    for (int i = 0; i < num_records; i++) {
        const char *name = records[i].name;
        int calls = atomic_load(&records[i].calls), left = listed(o, name);
        CHECK(left <= 1);
        if (strchr(name, '/') == NULL) {
            CHECK_EQ(calls + left, 1);
        } else if (listed(o, is_inside(name, "choice") ? "choice" : "loop") || strstr(name, "/else/") != NULL) {
            CHECK_EQ(calls + left, 0);
        } else if (is_inside(name, "choice")) {
            CHECK_EQ(calls + left, 1);
        } else if (strstr(name, "/below") != NULL) {
            below = calls + left;
            in_body = below - left;
        }
    }
    for (int i = 0; i < num_records; i++) {
        if (!is_inside(records[i].name, "loop/body") || listed(o, "loop")) continue;
        int calls = atomic_load(&records[i].calls), left = listed(o, records[i].name);
        if (below == ITERATIONS + 1) {
            CHECK(calls == ITERATIONS && left == 0); /* the last one asks whether to go on, and does not */
        } else if (below > in_body) {
            CHECK(calls == in_body && left == 0); /* the condition was left out */
        } else {
            CHECK(calls == below - left || (calls == below - 1 && left == 0)); /* in the body, or just before it */
        }
    }
}

/* The list as it must be when the run ended behind call k in one thread. */
static void check_exactly(const sweep *s, const outcome *o, int k) {
    const char *culprit = records[s->order[k]].name, *slash = strrchr(culprit, '/');
    size_t at = 0, part = slash ? (size_t)(slash - culprit) + 1 : 0;
    for (int j = k + 1; part > 0 && j < s->num_calls; j++) {
        const char *name = records[s->order[j]].name;
        if (strncmp(name, culprit, part) != 0) break;
        CHECK(at < o->failure.num_not_run);
        CHECK_TEXT(o->names[at++], name);
    }
    for (size_t t = 0; t < s->num_top; t++) {
        bool begun = false;
        for (int j = 0; j <= k; j++) {
            const char *name = records[s->order[j]].name;
            begun |= strcmp(name, s->top[t]) == 0 || is_inside(name, s->top[t]);
        }
        if (begun) continue;
        CHECK(at < o->failure.num_not_run);
        CHECK_TEXT(o->names[at++], s->top[t]);
    }
    CHECK_EQ(at, o->failure.num_not_run);
}

static void check_where(const outcome *o) {
    const char *name = records[atomic_load(&current.culprit)].name;
    CHECK(strcmp(o->failure.node, name) == 0);
    CHECK(strcmp(o->failure.engine, "cpu:0") == 0);
    if (is_inside(name, "loop")) {
        CHECK(strcmp(o->failure.loop_node, "loop") == 0);
        CHECK_EQ(o->failure.iteration, atomic_load(&current.culprit_calls) - 1);
    } else {
        CHECK(strcmp(o->failure.loop_node, "") == 0);
        CHECK_EQ(o->failure.iteration, -1);
    }
}

static void check_counters(sweep *s, weir_status code) {
    weir_program_info info = {.struct_size = sizeof info};
    s->ended += 1;
    s->cancelled += code == WEIR_CANCELLED;
    s->failed += code != WEIR_OK && code != WEIR_CANCELLED;
    CHECK_OK(weir_program_get_info(s->program, &info));
    CHECK_EQ(info.begun, s->ended);
    CHECK_EQ(info.ended, s->ended);
    CHECK_EQ(info.failed, s->failed);
    CHECK_EQ(info.cancelled, s->cancelled);
    CHECK_EQ(info.running, 0);
}

static void check_again(sweep *s, const weir_run_options *options) {
    prepare(DEED_NONE, 0);
    *number(s->outputs[0]) = *number(s->outputs[1]) = -1;
    CHECK_OK(run(s, options));
    CHECK_EQ(*number(s->outputs[0]), s->expected[0]);
    CHECK_EQ(*number(s->outputs[1]), s->expected[1]);
    CHECK_EQ(atomic_load(&current.step), s->num_calls);
    check_counters(s, WEIR_OK);
}

static void sweep_begin(sweep *s) {
    memset(s, 0, sizeof *s);
    s->engine = make_engine(NULL);
    s->program = make_program(s->engine);
    for (int i = 0; i < 2; i++) {
        s->inputs[i] = make_tensor(s->engine, integer());
        s->outputs[i] = make_tensor(s->engine, integer());
    }
    *number(s->inputs[0]) = 0;
    *number(s->inputs[1]) = ITERATIONS;
    prepare(DEED_NONE, 0);
    CHECK_OK(run(s, NULL));
    s->num_calls = atomic_load(&current.step);
    CHECK_EQ(s->num_calls, 11 + 4 * ITERATIONS + 1);
    for (int i = 0; i < s->num_calls; i++) s->order[i] = atomic_load(&current.order[i]);
    for (int i = 0; i < 2; i++) s->expected[i] = *number(s->outputs[i]);
    check_counters(s, WEIR_OK);

    /* A run whose time is over before it begins leaves out everything. */
    const weir_run_options options = {.struct_size = sizeof options, .deadline_ns = 1};
    prepare(DEED_NONE, 0);
    CHECK_CODE(run(s, &options), WEIR_DEADLINE_EXCEEDED, "the run was given 1 ns");
    outcome o = outcome_of(NULL);
    CHECK_EQ(o.failure.code, WEIR_DEADLINE_EXCEEDED);
    CHECK(o.failure.node[0] == 0 && o.failure.engine[0] == 0 && o.failure.iteration == -1);
    CHECK_EQ(atomic_load(&current.step), 0);
    s->num_top = o.failure.num_not_run;
    for (size_t i = 0; i < s->num_top; i++) s->top[i] = strdup(o.names[i]);
    CHECK_EQ(s->num_top, 9);
    outcome_end(&o);
    check_counters(s, WEIR_DEADLINE_EXCEEDED);
}

static void sweep_end(sweep *s) {
    for (size_t i = 0; i < s->num_top; i++) free(s->top[i]);
    for (int i = 0; i < 2; i++) {
        weir_tensor_release(s->inputs[i]);
        weir_tensor_release(s->outputs[i]);
    }
    weir_program_release(s->program);
    weir_engine_release(s->engine);
}

/* Kernel k fails, or outlasts the deadline, in a run in this thread with helpers from a pool. */
static void sweep_here(sweep *s, weir_threadpool *pool, bool deterministic) {
    const bool exact = pool == NULL || deterministic;
    const weir_run_options options = {
        .struct_size = sizeof options, .threadpool = pool, .flags = deterministic ? WEIR_RUN_DETERMINISTIC : 0};
    weir_run_options late = options;
    late.deadline_ns = 2000000;
    for (int k = 0; k < s->num_calls; k++) {
        prepare(DEED_FAIL, k);
        weir_status failed = run(s, &options);
        CHECK_CODE(failed, WEIR_DATA_LOSS, records[atomic_load(&current.culprit)].name);
        outcome o = outcome_of(NULL);
        CHECK_EQ(o.failure.code, WEIR_DATA_LOSS);
        check_where(&o);
        check_partition(&o);
        if (exact) CHECK_EQ(atomic_load(&current.culprit), s->order[k]);
        if (exact) check_exactly(s, &o, k);
        outcome_end(&o);
        check_counters(s, WEIR_DATA_LOSS);
        check_again(s, &options);

        prepare(DEED_LATE, k);
        weir_status code = run(s, &late);
        if (code == WEIR_OK) {
            CHECK_EQ(atomic_load(&current.step), s->num_calls); /* nothing was left to begin */
        } else {
            CHECK_EQ(code, WEIR_DEADLINE_EXCEEDED);
            o = outcome_of(NULL);
            CHECK(o.failure.node[0] == 0);
            check_partition(&o);
            if (exact && atomic_load(&current.culprit) >= 0) check_exactly(s, &o, k);
            outcome_end(&o);
        }
        check_counters(s, code);
        check_again(s, &options);
    }
}

/* Kernel k cancels the run, or is in it when this thread does. */
static void sweep_cancels(sweep *s, weir_threadpool *pool, deed what) {
    weir_stream *stream = make_stream(s->engine, WEIR_STREAM_ASYNCHRONOUS, pool, "sweep");
    for (int k = 0; k < s->num_calls; k++) {
        weir_run *handle = NULL;
        prepare(what, k);
        CHECK_OK(weir_program_start(s->program, stream, s->inputs, 2, s->outputs, 2, NULL, &handle));
        atomic_store(&current.run, handle);
        if (what == DEED_CANCELLED) {
            while (!atomic_load(&current.here)) sched_yield();
            CHECK_OK(weir_run_cancel(handle));
        }
        CHECK_CODE(weir_run_synchronize(handle, WEIR_TIMEOUT_INFINITE), WEIR_CANCELLED, "cancelled");
        outcome o = outcome_of(handle), last = outcome_of(NULL);
        CHECK_EQ(o.failure.code, WEIR_CANCELLED);
        CHECK(o.failure.node[0] == 0);
        CHECK_EQ(last.failure.num_not_run, o.failure.num_not_run);
        check_partition(&o);
        if (pool == NULL) check_exactly(s, &o, k);
        outcome_end(&o);
        outcome_end(&last);
        weir_run_release(handle);
        check_counters(s, WEIR_CANCELLED);
        check_again(s, NULL);
    }
    weir_stream_release(stream);
}

/* Kernel k fails, and all runs that does not depend on it. */
static void sweep_finishing(sweep *s, weir_threadpool *pool) {
    weir_run_options options = {
        .struct_size = sizeof options, .threadpool = pool, .flags = WEIR_RUN_FINISH_INDEPENDENT};
    for (int k = 0; k < s->num_calls; k++) {
        prepare(DEED_FAIL, k);
        weir_status failed = run(s, &options);
        CHECK_CODE(failed, WEIR_DATA_LOSS, records[s->order[k]].name);
        outcome o = outcome_of(NULL);
        check_where(&o);
        size_t row = 0, n = 1;
        while (strcmp(dependants[row][0], o.failure.node) != 0) CHECK(++row < sizeof dependants / sizeof *dependants);
        for (; n < 8 && dependants[row][n] != NULL; n++) CHECK_EQ(listed(&o, dependants[row][n]), 1);
        CHECK_EQ(o.failure.num_not_run, n - 1);
        if (!is_inside(o.failure.node, "loop")) check_partition(&o);
        if (listed(&o, "side") == 0 && strcmp(o.failure.node, "side") != 0) {
            CHECK_EQ(*number(s->outputs[0]), s->expected[0]);
        }
        outcome_end(&o);
        check_counters(s, WEIR_DATA_LOSS);
        check_again(s, &options);
    }
    /* It is no failure that stops a run which is cancelled or late. */
    options.deadline_ns = 1;
    prepare(DEED_NONE, 0);
    CHECK_CODE(run(s, &options), WEIR_DEADLINE_EXCEEDED, NULL);
    check_counters(s, WEIR_DEADLINE_EXCEEDED);
}

int main(void) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_LIFO, POOL_PARALLEL_FOR, POOL_ASYNCHRONOUS, POOL_INLINE, POOL_HALF, POOL_SEEDED};
    weir_runtime_info before, after;
    sweep s;
    memset(&before, 0, sizeof before);
    before.struct_size = sizeof before;
    after = before;
    CHECK_OK(weir_runtime_get_info(&before));

    sweep_begin(&s);
    sweep_here(&s, NULL, false);
    sweep_finishing(&s, NULL);
    sweep_cancels(&s, NULL, DEED_CANCEL);
    sweep_cancels(&s, NULL, DEED_CANCELLED);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create(kinds[i], 2, &pool);
        sweep_here(&s, pool, false);
        sweep_here(&s, pool, true);
        sweep_finishing(&s, pool);
        if (test_pool_kind(host) == POOL_FIFO) EVENTUALLY(test_pool_counters(host).tasks > 0);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
    for (int i = 0; i < 2; i++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_threaded(kinds[i], 2, &pool);
        sweep_cancels(&s, pool, DEED_CANCEL);
        sweep_cancels(&s, pool, DEED_CANCELLED);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
    sweep_end(&s);

    CHECK_OK(weir_runtime_get_info(&after));
    CHECK_EQ(after.programs, before.programs);
    CHECK_EQ(after.runs, before.runs);
    CHECK_EQ(after.tensors, before.tensors);
    CHECK_EQ(after.kernels, before.kernels);
    CHECK_EQ(after.threadpools, before.threadpools);
    puts("ok");
    return 0;
}
