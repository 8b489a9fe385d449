/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * How far a run is: counts that only grow and fit each other, one call at a time, none once the run is over, whatever
 * pool carries the run and in whatever way; a run that is cancelled from inside; no cost for a run that does not ask.
 */

#include <weir/control.h>
#include <weir/inspect.h>
#include <weir/ops.h>
#include <weir/testing.h>
#include <weir/trace.h>

#include "later.h"

enum { CHAIN = 6 };

static const weir_tensor_desc number = {.dtype = WEIR_S32, .rank = 1, .dims = {1}};

/* What a run has told. */
typedef struct ear {
    atomic_int inside, is_over, calls;
    uint64_t done, total, elapsed_ns, remaining_ns;
    weir_run *run;
    int cancel_at; /* the call that cancels the run; 0 = none */
    char node[128];
} ear;

static void hear(void *ctx, const weir_run_progress *progress) {
    ear *e = ctx;
    CHECK_EQ(progress->struct_size, sizeof *progress);
    CHECK_EQ(atomic_exchange(&e->inside, 1), 0);
    CHECK_EQ(atomic_load(&e->is_over), 0);
    CHECK(progress->nodes_done > e->done);
    CHECK(progress->nodes_total >= e->total);
    CHECK(progress->nodes_done <= progress->nodes_total);
    CHECK(progress->elapsed_ns > e->elapsed_ns);
    CHECK(progress->node[0] != '\0');
    e->done = progress->nodes_done;
    e->total = progress->nodes_total;
    e->elapsed_ns = progress->elapsed_ns;
    e->remaining_ns = progress->estimated_remaining_ns;
    e->run = progress->run;
    memcpy(e->node, progress->node, sizeof e->node);
    if (progress->run != NULL) {
        int32_t done = -1;
        CHECK_OK(weir_run_query(progress->run, &done));
        CHECK_EQ(done, 0);
    }
    /* As inside of every function of the host's. */
    CHECK_CODE(weir_sync_devices(0, NULL, 0, NULL), WEIR_FAILED_PRECONDITION, "callback");
    if (atomic_fetch_add(&e->calls, 1) + 1 == e->cancel_at) CHECK_OK(weir_run_cancel(progress->run));
    atomic_store(&e->inside, 0);
}

static void listen(ear *e, weir_run_options *options) {
    memset(e, 0, sizeof *e);
    options->progress = hear;
    options->progress_ctx = e;
    options->progress_interval_ns = 1;
}

/* Allocates nothing. */
static void count_call(void *ctx, const weir_run_progress *progress) {
    CHECK(progress->nodes_done <= progress->nodes_total);
    atomic_fetch_add((atomic_int *)ctx, 1);
}

/* So that the clock moves on between any two nodes. */
static void take_a_moment(void) {
    const uint64_t begin = now_ns();
    while (now_ns() < begin + 500) continue;
}

typedef int32_t (*function)(int32_t a, int32_t b);

static atomic_int executed; /* kernels of the host's */

static int32_t compute(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    const int32_t *a = in[0].data, *b = num_in > 1 ? in[1].data : a;
    *(int32_t *)out->data = (*(function *)user)(*a, *b);
    take_a_moment();
    atomic_fetch_add(&executed, 1);
    return *(int32_t *)out->data == INT32_MAX ? WEIR_DATA_LOSS : WEIR_OK;
}

static int32_t is_odd(int32_t a, int32_t b) {
    return (void)b, a & 1;
}
static int32_t half(int32_t a, int32_t b) {
    return (void)b, a / 2;
}
static int32_t triple_plus_one(int32_t a, int32_t b) {
    return (void)b, 3 * a + 1;
}
static int32_t is_above_one(int32_t a, int32_t b) {
    return (void)b, a > 1;
}
static int32_t plus_one(int32_t a, int32_t b) {
    return (void)b, a + 1;
}
static int32_t sum(int32_t a, int32_t b) {
    return a + b;
}
static int32_t nothing_good(int32_t a, int32_t b) {
    return (void)b, a == 3 ? INT32_MAX : a;
}

static function fs[] = {is_odd, half, triple_plus_one, is_above_one, plus_one, sum, nothing_good};
enum { IS_ODD, HALF, TRIPLE_PLUS_ONE, IS_ABOVE_ONE, PLUS_ONE, SUM, NOTHING_GOOD };

static weir_value apply(weir_engine *engine, weir_graph *graph, const char *of, int f, weir_value a, weir_value b) {
    static int number_of_node;
    char name[64];
    (void)snprintf(name, sizeof name, "%s %d", of, number_of_node++);
    const weir_tensor_desc inputs[] = {number, number};
    weir_value values[] = {a, b}, value = 0;
    weir_kernel *kernel = NULL;
    weir_host_kernel_desc desc = make_kernel_desc(name, compute, &fs[f]);
    desc.num_inputs = b == 0 ? 1 : 2;
    desc.inputs = inputs;
    desc.num_outputs = 1;
    desc.outputs = &number;
    desc.cost_ns = 20000;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, values, desc.num_inputs, &value, 1, NULL));
    weir_kernel_release(kernel);
    return value;
}

static weir_value input(weir_graph *graph, const char *name) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_input(graph, name, &number, &value));
    return value;
}

static weir_graph *branch(weir_engine *engine, const char *name, int f, int length) {
    weir_graph *graph = make_graph(name);
    weir_value x = input(graph, "x");
    x = apply(engine, graph, "f", f, x, 0);
    for (int i = 1; i < length; i++) x = apply(engine, graph, "f", HALF, apply(engine, graph, "s", SUM, x, x), 0);
    CHECK_OK(weir_graph_add_output(graph, "y", x));
    return graph;
}

/* Beside one another: while x > 1: x = x odd ? 3 x + 1 : x / 2, steps += 1; a chain on n; and with `has_switch` n odd ?
 * n + 1 : n / 2 by switch and merge. The branch of odd numbers is longer. */
static weir_program *make_program(weir_engine *engine, int32_t parallel, int has_switch, uint64_t flags) {
    weir_graph *odd = branch(engine, "odd", TRIPLE_PLUS_ONE, 3), *even = branch(engine, "even", HALF, 1);
    weir_graph *condition = make_graph("condition"), *body = make_graph("body"), *graph = make_graph("collatz");
    const weir_compile_options options = {.struct_size = sizeof options, .flags = flags, .partial_runs = 4};
    weir_value x, steps, next, last[2], on_false, on_true, sides[2], merged, index;
    weir_program *program = NULL;
    x = input(condition, "x");
    (void)input(condition, "steps");
    CHECK_OK(weir_graph_add_output(condition, "more", apply(engine, condition, "more", IS_ABOVE_ONE, x, 0)));
    x = input(body, "x");
    steps = input(body, "steps");
    CHECK_OK(weir_graph_add_cond(body, "step", &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc),
        .predicate = apply(engine, body, "is odd", IS_ODD, x, 0), .then_graph = odd, .else_graph = even,
        .inputs = &x, .num_inputs = 1}, &next, 1, NULL));
    CHECK_OK(weir_graph_add_output(body, "x", next));
    CHECK_OK(weir_graph_add_output(body, "steps", apply(engine, body, "count", PLUS_ONE, steps, 0)));

    weir_value variables[2] = {input(graph, "n"), input(graph, "zero")}, chain = variables[0];
    CHECK_OK(weir_graph_add_while(graph, "collatz", &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
        .cond_graph = condition, .body_graph = body, .variables = variables, .num_variables = 2,
        .parallel_iterations = parallel}, last, NULL));
    CHECK_OK(weir_graph_add_output(graph, "steps", last[1]));
    for (int i = 0; i < CHAIN; i++) chain = apply(engine, graph, "link", PLUS_ONE, chain, 0);
    CHECK_OK(weir_graph_add_output(graph, "chain", chain));
    if (has_switch) {
        weir_value parity = apply(engine, graph, "parity", IS_ODD, variables[0], 0);
        CHECK_OK(weir_graph_add_switch(graph, "switch", variables[0], parity, &on_false, &on_true, NULL));
        sides[0] = apply(engine, graph, "halved", HALF, on_false, 0);
        sides[1] = apply(engine, graph, "next", PLUS_ONE, on_true, 0);
        CHECK_OK(weir_graph_add_merge(graph, "merge", sides, 2, &merged, &index, NULL));
        CHECK_OK(weir_graph_add_output(graph, "merged", apply(engine, graph, "with index", SUM, merged, index)));
    }
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &options, &program));
    weir_graph_destroy(odd);
    weir_graph_destroy(even);
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    weir_graph_destroy(graph);
    return program;
}

static int32_t *integer(weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return data;
}

/* Kernels of a run: conditions, "is odd", "count", the branches, the chain. */
static int kernels_of(int32_t n, int32_t *steps) {
    int kernels = 1 + CHAIN;
    *steps = 0;
    for (int32_t x = n; x > 1; ++*steps) {
        kernels += 3 + (x & 1 ? 5 : 1);
        x = x & 1 ? 3 * x + 1 : x / 2;
    }
    return kernels;
}

static void over(void *ctx, weir_status status, weir_run *run) {
    (void)status, (void)run;
    atomic_store(&((ear *)ctx)->is_over, 1);
}

typedef enum way { HERE, STREAM, STARTED, DETERMINISTIC, INDEPENDENT, LIMITED, TRACED, PART, WAYS } way;

static void test_ways(weir_threadpool *pool, int32_t parallel, int has_switch, uint64_t flags) {
    weir_engine *engine = make_engine(pool);
    weir_program *program = make_program(engine, parallel, has_switch, flags);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_tensor *in[2] = {make_tensor(engine, number), make_tensor(engine, number)}, *out[3];
    const size_t outputs = has_switch ? 3 : 2, part[] = {0, 1};
    const weir_trace_options asked = {.struct_size = sizeof asked, .flags = WEIR_TRACE_ONLY_ASKED};
    weir_trace *trace = NULL;
    ear e;
    for (int i = 0; i < 3; i++) out[i] = make_tensor(engine, number);
    CHECK_OK(weir_trace_start(&asked, &trace));
    for (int32_t n = 1; n <= 2 + scale(8); n++) {
        for (way how = HERE; how < WAYS; how++) {
            weir_run_options options = {.struct_size = sizeof options};
            const weir_notice notice = {.struct_size = sizeof notice, .notify = over, .ctx = &e};
            weir_run *run = NULL;
            int32_t steps = 0;
            const int kernels = kernels_of(n, &steps), is_part = how == PART;
            /* And parity, switch, two sides, merge, what is behind it. */
            const int nodes = kernels + (has_switch && !is_part ? 6 : 0);
            listen(&e, &options);
            atomic_store(&executed, 0);
            *integer(in[0]) = n;
            *integer(in[1]) = 0;
            options.flags = how == DETERMINISTIC ? WEIR_RUN_DETERMINISTIC
                            : how == INDEPENDENT ? WEIR_RUN_FINISH_INDEPENDENT
                                                 : 0;
            if (how == LIMITED) options.deadline_ns = UINT64_C(3600000000000);
            if (how == TRACED) options.trace = trace;
            if (is_part) options.outputs = part, options.num_outputs = 2;
            if (how == STREAM) {
                options.notice = &notice;
                CHECK_OK(weir_program_run(program, stream, in, 2, out, outputs, &options));
                CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
                EVENTUALLY(atomic_load(&e.is_over));
            } else if (how == STARTED) {
                CHECK_OK(weir_program_start(program, stream, in, 2, out, outputs, &options, &run));
                CHECK_OK(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE));
            } else {
                CHECK_OK(weir_program_run(program, NULL, in, 2, out, is_part ? 2 : outputs, &options));
            }
            atomic_store(&e.is_over, 1);
            CHECK_EQ(*integer(out[0]), steps);
            CHECK_EQ(*integer(out[1]), n + CHAIN);
            CHECK_EQ(atomic_load(&executed), kernels + (nodes > kernels ? 3 : 0));
            CHECK(e.run == run);
            if (run != NULL) weir_run_release(run);
            /* One thread tells of every node that runs, and so of the last one. */
            const int is_alone = pool == NULL || how == DETERMINISTIC || how == INDEPENDENT;
            CHECK(atomic_load(&e.calls) > 0);
            CHECK(e.total <= (uint64_t)nodes);
            if (is_alone) {
                CHECK_EQ(e.done, nodes);
                CHECK_EQ(e.total, nodes);
                if (nodes == kernels) CHECK_EQ(atomic_load(&e.calls), nodes);
                if (e.remaining_ns != UINT64_MAX) CHECK_EQ(e.remaining_ns, 0);
            }
            if (n == 1 && how == HERE) CHECK_EQ(e.remaining_ns, UINT64_MAX);
            if (n > 1) CHECK(e.remaining_ns != UINT64_MAX);
        }
    }
    CHECK_OK(weir_trace_stop(trace));
    weir_trace_release(trace);
    for (int i = 0; i < 3; i++) weir_tensor_release(out[i]);
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_stream_release(stream);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* A chain with a kernel somewhere that may fail; with a program of two nodes in it, and one that completes later. */
static weir_program *make_chain(weir_engine *engine, int length, later *l) {
    weir_graph *graph = make_graph("inner");
    weir_value x = input(graph, "x");
    weir_program *inner = NULL, *program = NULL;
    x = apply(engine, graph, "first", PLUS_ONE, x, 0);
    x = apply(engine, graph, "second", PLUS_ONE, x, 0);
    CHECK_OK(weir_graph_add_output(graph, "y", x));
    inner = compile(graph, engine);
    weir_graph_destroy(graph);

    graph = make_graph("chain");
    x = input(graph, "x");
    CHECK_OK(weir_graph_add_program(graph, "inner", inner, &x, 1, &x, 1, NULL));
    for (int i = 0; i < length; i++) {
        const int is_critical = i == length / 2;
        x = apply(engine, graph, is_critical ? "critical" : "link", is_critical ? NOTHING_GOOD : PLUS_ONE, x, 0);
    }
    CHECK_OK(weir_graph_add_output(graph, "y", x));
    if (l != NULL) {
        const weir_tensor_desc desc = vector_desc(WIDTH);
        weir_kernel *kernel = make_later_kernel(engine, "later", l);
        weir_value v;
        CHECK_OK(weir_graph_add_input(graph, "v", &desc, &v));
        static const char *const names[] = {"sooner", "later", "last"};
        for (int i = 0; i < 3; i++) CHECK_OK(weir_graph_add_kernel(graph, names[i], kernel, &v, 1, &v, 1, NULL));
        CHECK_OK(weir_graph_add_output(graph, "w", v));
        weir_kernel_release(kernel);
    }
    program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_program_release(inner);
    return program;
}

/* The program inside is one node; so is each kernel that completes later, however it does. */
static void test_calls(weir_threadpool *pool) {
    static const how hows[] = {INLINE, ELSEWHERE, RACING};
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    later l = {.how = INLINE};
    weir_program *program = make_chain(engine, CHAIN, &l);
    weir_tensor *in[2] = {make_tensor(engine, number), make_tensor(engine, vector_desc(WIDTH))};
    weir_tensor *out[2] = {make_tensor(engine, number), make_tensor(engine, vector_desc(WIDTH))};
    const uint64_t nodes = 1 + CHAIN + 3;
    ear e;
    fill(in[1], 1);
    *integer(in[0]) = 10;
    for (int round = 0; round < 12 * scale(10); round++) {
        weir_run_options options = {.struct_size = sizeof options};
        weir_run *run = NULL;
        listen(&e, &options);
        l.how = hows[round % 3];
        if (round / 3 % 2) {
            CHECK_OK(weir_program_start(program, stream, in, 2, out, 2, &options, &run));
            CHECK_OK(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE));
            weir_run_release(run);
        } else {
            options.flags = round / 6 % 2 ? WEIR_RUN_DETERMINISTIC : 0;
            CHECK_OK(weir_program_run(program, NULL, in, 2, out, 2, &options));
        }
        atomic_store(&e.is_over, 1);
        CHECK_EQ(*integer(out[0]), 10 + 2 + CHAIN - 1);
        CHECK_EQ(floats(out[1])[3], floats(in[1])[3] + 3);
        CHECK(atomic_load(&e.calls) > 0 && e.total == nodes);
        if (options.flags != 0) CHECK_EQ(e.done, nodes);
    }
    for (int i = 0; i < 2; i++) {
        weir_tensor_release(in[i]);
        weir_tensor_release(out[i]);
    }
    weir_stream_release(stream);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* Ends before the end: nothing is told after it, and the next run begins anew. */
static void test_ends(weir_threadpool *pool) {
    enum { LENGTH = 24 };
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_program *program = make_chain(engine, LENGTH, NULL);
    weir_tensor *in = make_tensor(engine, number), *out = make_tensor(engine, number);
    const uint64_t nodes = 1 + LENGTH;
    for (int round = 0; round < scale(40); round++) {
        weir_run_options options = {.struct_size = sizeof options};
        weir_run *run = NULL;
        ear e;
        /* Cancelled from inside, by the handle that the call gives: it may be known nowhere else yet. */
        listen(&e, &options);
        e.cancel_at = 1 + round % 5;
        *integer(in) = 100;
        CHECK_OK(weir_program_start(program, stream, &in, 1, &out, 1, &options, &run));
        CHECK_EQ(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_CANCELLED);
        atomic_store(&e.is_over, 1);
        CHECK_EQ(atomic_load(&e.calls), e.cancel_at);
        CHECK_EQ(e.done, e.cancel_at);
        CHECK_EQ(e.total, nodes);
        weir_run_release(run);
        /* A node fails: it makes 3 of 1 + 2 + 12 links, so 3 - 14 goes in. */
        listen(&e, &options);
        *integer(in) = 3 - 2 - LENGTH / 2;
        weir_status status = round % 2 ? weir_program_run(program, NULL, &in, 1, &out, 1, &options)
                                       : weir_program_start(program, stream, &in, 1, &out, 1, &options, &run);
        if (round % 2 == 0) {
            CHECK_OK(status);
            status = weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE);
            weir_run_release(run);
        }
        CHECK_EQ(status, WEIR_DATA_LOSS);
        atomic_store(&e.is_over, 1);
        CHECK_EQ(e.done, 1 + LENGTH / 2);
        CHECK_EQ(e.total, nodes);
        /* What does not depend on it: here that is nothing, but the failed node is over. */
        listen(&e, &options);
        options.flags = WEIR_RUN_FINISH_INDEPENDENT;
        CHECK_EQ(weir_program_run(program, NULL, &in, 1, &out, 1, &options), WEIR_DATA_LOSS);
        atomic_store(&e.is_over, 1);
        CHECK_EQ(e.done, 2 + LENGTH / 2);
        /* All is well again. */
        listen(&e, &options);
        options.flags = 0;
        *integer(in) = 100;
        CHECK_OK(weir_program_run(program, NULL, &in, 1, &out, 1, &options));
        atomic_store(&e.is_over, 1);
        CHECK_EQ(atomic_load(&e.calls), nodes);
        CHECK_EQ(e.done, nodes);
        CHECK(strncmp(e.node, "link ", 5) == 0);
    }
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_stream_release(stream);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* No more calls than intervals; none in a run that is shorter than one. */
static void test_intervals(void) {
    enum { LENGTH = 400 };
    weir_engine *engine = make_engine(NULL);
    weir_program *program = make_chain(engine, LENGTH, NULL);
    weir_tensor *in = make_tensor(engine, number), *out = make_tensor(engine, number);
    const uint64_t intervals[] = {1, 20000, 50000, 1000000, 0, UINT64_C(3600000000000), UINT64_MAX};
    *integer(in) = 100;
    for (size_t i = 0; i < sizeof intervals / sizeof *intervals; i++) {
        weir_run_options options = {.struct_size = sizeof options};
        const uint64_t interval = intervals[i] == 0 ? 100000000 : intervals[i];
        ear e;
        listen(&e, &options);
        options.progress_interval_ns = intervals[i];
        const uint64_t begin = now_ns();
        CHECK_OK(weir_program_run(program, NULL, &in, 1, &out, 1, &options));
        CHECK((uint64_t)atomic_load(&e.calls) <= (now_ns() - begin) / interval);
        if (i == 0) CHECK_EQ(atomic_load(&e.calls), 1 + LENGTH);
        if (i >= 5) CHECK_EQ(atomic_load(&e.calls), 0);
    }
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* A run that asks allocates when it is the first, one that does not never does for it. */
static void test_no_allocations(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_program *program = make_program(engine, 1, 1, 0);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_tensor *in[2] = {make_tensor(engine, number), make_tensor(engine, number)}, *out[3];
    for (int i = 0; i < 3; i++) out[i] = make_tensor(engine, number);
    *integer(in[0]) = 7;
    *integer(in[1]) = 0;
    for (int round = 0; round < 3 + scale(20); round++) {
        atomic_int calls = 0;
        const weir_run_options options = {.struct_size = sizeof options, .progress = count_call,
            .progress_ctx = &calls, .progress_interval_ns = 1};
        CHECK_OK(weir_program_run(program, NULL, in, 2, out, 3, NULL));
        const uint64_t before = runtime_info().allocations;
        CHECK_OK(weir_program_run(program, NULL, in, 2, out, 3, NULL));
        if (round > 0) CHECK_EQ(runtime_info().allocations, before);
        CHECK_OK(weir_program_run(program, NULL, in, 2, out, 3, &options));
        if (round > 0) CHECK_EQ(runtime_info().allocations, before);
        CHECK_OK(weir_program_run(program, stream, in, 2, out, 3, &options));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        if (round > 0) CHECK_EQ(runtime_info().allocations, before);
        CHECK(atomic_load(&calls) > 1);
    }
    for (int i = 0; i < 3; i++) weir_tensor_release(out[i]);
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_stream_release(stream);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* A chain on a device between two chains on the host, in a run here and on a stream of either. */
static void test_device(weir_threadpool *pool) {
    weir_engine *cpu = make_engine(pool), *device = NULL;
    const weir_emulation emulation = {.struct_size = sizeof emulation, .flags = WEIR_EMULATION_CHECK};
    const weir_tensor_desc desc = vector_desc(WIDTH);
    weir_engine_attr *attr = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, attr, &device));
    weir_engine_attr_destroy(attr);
    weir_engine *engines[2] = {cpu, device};
    weir_stream *streams[3] = {NULL, make_stream(cpu, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL), NULL};
    CHECK_OK(weir_stream_create(device, WEIR_STREAM_ASYNCHRONOUS, NULL, &streams[2]));

    weir_graph *graph = make_graph("device between");
    weir_kernel *there = NULL, *here = NULL;
    weir_program *program = NULL;
    weir_value x;
    CHECK_OK(weir_kernel_create_eltwise(device, ELTWISE(RELU), NULL, &there));
    CHECK_OK(weir_kernel_create_eltwise(cpu, ELTWISE(RELU), NULL, &here));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    for (int i = 0; i < 3 * CHAIN; i++) {
        weir_kernel *kernel = i / CHAIN == 1 ? there : here;
        char name[32];
        (void)snprintf(name, sizeof name, "%s %d", kernel == there ? "there" : "here", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &x, 1, &x, 1, NULL));
    }
    CHECK_OK(weir_graph_add_output(graph, "y", x));
    const weir_compile_options compiling = {.struct_size = sizeof compiling, .flags = WEIR_COMPILE_NO_FUSION};
    CHECK_OK(weir_graph_compile(graph, engines, 2, &compiling, &program));
    weir_graph_destroy(graph);
    weir_kernel_release(there);
    weir_kernel_release(here);

    weir_tensor *in = make_tensor(cpu, desc), *out = make_tensor(cpu, desc);
    fill(in, 2);
    for (int round = 0; round < 3 * scale(20); round++) {
        weir_run_options options = {.struct_size = sizeof options};
        ear e;
        listen(&e, &options);
        CHECK_OK(weir_program_run(program, streams[round % 3], &in, 1, &out, 1, &options));
        if (streams[round % 3] != NULL) CHECK_OK(weir_stream_synchronize(streams[round % 3], WEIR_TIMEOUT_INFINITE));
        atomic_store(&e.is_over, 1);
        CHECK(atomic_load(&e.calls) > 0);
        CHECK(e.total > 2 * CHAIN);
        if (pool == NULL && round % 3 == 0) CHECK_EQ(e.done, e.total);
        for (int i = 0; i < WIDTH; i++) CHECK_EQ(floats(out)[i], floats(in)[i] < 0 ? 0 : floats(in)[i]);
    }
    weir_tensor_release(in);
    weir_tensor_release(out);
    for (int i = 1; i < 3; i++) weir_stream_release(streams[i]);
    weir_program_release(program);
    weir_engine_release(device);
    weir_engine_release(cpu);
}

static void test_on(weir_threadpool *pool) {
    for (int32_t parallel = 1; parallel <= 3; parallel++) test_ways(pool, parallel, 0, 0);
    test_ways(pool, 1, 1, 0);
    test_ways(pool, 2, 1, WEIR_COMPILE_STATISTICS);
    test_calls(pool);
    test_ends(pool);
    test_device(pool);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    only_once = 1;
    finisher_start();
    test_on(NULL);
    test_intervals();
    test_no_allocations(NULL);
    for (int kind = 0; kind < POOL_LATE; kind++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create((pool_kind)kind, 2, &pool);
        test_on(pool);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
    finisher_stop();
    check_released(&before);
    puts("ok");
    return 0;
}
