/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Options and questions of runs and programs: options, absent outputs, times of nodes, profiles. How runs end early
 * is in failure_sweep.c.
 */

#include <weir/control.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

static weir_tensor_desc integer(void) {
    return make_desc(WEIR_S32, 1, 1, 0, 0);
}

static int32_t *number(weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return data;
}

static int32_t plus_one(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    if (user != NULL) sleep_ns(*(uint64_t *)user);
    *(int32_t *)out->data = *(const int32_t *)in->data + 1;
    return WEIR_OK;
}

static int32_t below_five(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    *(int32_t *)out->data = *(const int32_t *)in->data < 5;
    return WEIR_OK;
}

static weir_kernel *unary(weir_engine *engine, weir_compute_fn compute, void *user) {
    weir_tensor_desc desc = integer();
    return make_unary_kernel(engine, "unary", compute, user, &desc);
}

/* What a program was compiled with is asked of it; a library that is newer or older than the caller fills what both
 * know. */
static void settings_read_back(void) {
    weir_engine *engine = make_engine(NULL);
    weir_graph *graph = make_graph("empty");
    weir_compile_options kept = {.struct_size = sizeof kept};
    weir_program *program = compile(graph, engine);
    CHECK_OK(weir_program_get_options(program, &kept));
    CHECK(kept.flags == 0 && kept.hop_ns == 0 && kept.blocking_threadpool == NULL && kept.partial_runs == 0);
    CHECK(kept.max_concurrent_runs == 0 && kept.segments == WEIR_SEGMENTS_TIMED && kept.reserved == 0);
    CHECK_EQ(kept.placement, WEIR_PLACEMENT_KERNEL);
    weir_program_release(program);
    const uint64_t hops[] = {1, 1000, WEIR_HOP_NONE};
    for (uint64_t i = 0; i < 16; i++) {
        const weir_compile_options asked = {.struct_size = sizeof asked, .flags = i, .hop_ns = hops[i % 3],
            .partial_runs = 256 * (i % 2), .max_concurrent_runs = (uint32_t)i, .placement = WEIR_PLACEMENT_ANY,
            .segments = (weir_segments)(i % 3)};
        CHECK_OK(weir_graph_compile(graph, &engine, 1, &asked, &program));
        CHECK_OK(weir_program_get_options(program, &kept));
        CHECK(memcmp(&kept, &asked, sizeof kept) == 0);
        weir_program_release(program);
    }
    /* A caller from a later version: what this one does not know must be zero. */
    struct {
        weir_compile_options known;
        uint64_t later;
    } large = {.known = {.struct_size = sizeof large, .hop_ns = 7}};
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &large.known, &program));
    large.later = 1;
    CHECK_OK(weir_program_get_options(program, &large.known));
    CHECK(large.later == 0 && large.known.hop_ns == 7 && large.known.struct_size == sizeof large);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_engine_release(engine);
}

/* x goes to one of two sides; each is an output, and so is a third that is always there. */
static void absent_outputs_are_told(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_kernel *kernel = unary(engine, plus_one, NULL);
    weir_graph *graph = make_graph("sides");
    weir_tensor_desc desc = integer();
    weir_value x, p, sides[2], y;
    const weir_compile_options compiling = {.struct_size = sizeof compiling, .flags = WEIR_COMPILE_ALLOW_ABSENT};
    weir_program *program = NULL;
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_input(graph, "p", &desc, &p));
    CHECK_OK(weir_graph_add_switch(graph, "switch", x, p, &sides[0], &sides[1], NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "no", kernel, &sides[0], 1, &sides[0], 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "yes", kernel, &sides[1], 1, &sides[1], 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "always", kernel, &x, 1, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "no", sides[0]));
    CHECK_OK(weir_graph_add_output(graph, "yes", sides[1]));
    CHECK_OK(weir_graph_add_output(graph, "always", y));
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &compiling, &program));

    weir_tensor *in[2] = {make_tensor(engine, desc), make_tensor(engine, desc)};
    weir_tensor *out[3] = {make_tensor(engine, desc), make_tensor(engine, desc), make_tensor(engine, desc)};
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, pool, "absent");
    uint8_t flags[4];
    weir_run_options options = {.struct_size = sizeof options, .absent = flags, .num_absent = 3};
    for (int round = 0; round < 8; round++) {
        int side = round & 1;
        memset(flags, 9, sizeof flags);
        *number(in[0]) = 40 + round;
        *number(in[1]) = side;
        for (int i = 0; i < 3; i++) *number(out[i]) = -1;
        if (round & 2) {
            weir_run *run = NULL;
            CHECK_OK(weir_program_start(program, stream, in, 2, out, 3, &options, &run));
            CHECK_OK(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE));
            weir_run_release(run);
        } else {
            CHECK_OK(weir_program_run(program, NULL, in, 2, out, 3, &options));
        }
        CHECK_EQ(flags[0], side);
        CHECK_EQ(flags[1], !side);
        CHECK_EQ(flags[2], 0);
        CHECK_EQ(flags[3], 9);
        CHECK_EQ(*number(out[side]), 41 + round);
        CHECK_EQ(*number(out[!side]), -1);
        CHECK_EQ(*number(out[2]), 41 + round);
    }
    options.num_absent = 4;
    CHECK_CODE(weir_program_run(program, NULL, in, 2, out, 3, &options), WEIR_INVALID_ARGUMENT,
               "options->num_absent is 4, the run has 3 outputs");
    options.num_absent = 3;
    options.deadline_ns = 1;
    memset(flags, 9, sizeof flags);
    CHECK_CODE(weir_program_run(program, NULL, in, 2, out, 3, &options), WEIR_DEADLINE_EXCEEDED, NULL);
    CHECK_EQ(flags[0], 9); /* a failed run says nothing */

    weir_stream_release(stream);
    for (int i = 0; i < 2; i++) weir_tensor_release(in[i]);
    for (int i = 0; i < 3; i++) weir_tensor_release(out[i]);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    weir_engine_release(engine);
}

/* x -> slow -> while (below five) plus one -> y */
static weir_program *make_loop(weir_engine *engine, uint64_t flags, uint64_t *slow_ns) {
    weir_kernel *slow = unary(engine, plus_one, slow_ns), *plus = unary(engine, plus_one, NULL);
    weir_kernel *below = unary(engine, below_five, NULL);
    weir_graph *graph = make_graph("main"), *condition = make_graph("condition"), *body = make_graph("body");
    weir_tensor_desc desc = integer();
    weir_value v;
    const weir_compile_options compiling = {.struct_size = sizeof compiling, .flags = flags};
    const weir_while_desc loop = {
        .struct_size = sizeof loop, .cond_graph = condition, .body_graph = body, .variables = &v, .num_variables = 1};
    weir_program *program = NULL;
    CHECK_OK(weir_graph_add_input(condition, "i", &desc, &v));
    CHECK_OK(weir_graph_add_kernel(condition, "below", below, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_output(condition, "go", v));
    CHECK_OK(weir_graph_add_input(body, "i", &desc, &v));
    CHECK_OK(weir_graph_add_kernel(body, "plus", plus, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_output(body, "i", v));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &v));
    CHECK_OK(weir_graph_add_kernel(graph, "slow \\ and\nsteady", slow, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_while(graph, "loop", &loop, &v, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", v));
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &compiling, &program));
    weir_graph_destroy(graph);
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    weir_kernel_release(slow);
    weir_kernel_release(plus);
    weir_kernel_release(below);
    return program;
}

static weir_node_stats stats_of(weir_program *program, const char *name) {
    weir_node_stats stats;
    weir_program_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_program_get_info(program, &info));
    for (size_t i = 0; i < info.num_nodes; i++) {
        memset(&stats, 0, sizeof stats);
        stats.struct_size = sizeof stats;
        CHECK_OK(weir_program_get_node_stats(program, i, &stats));
        if (strcmp(stats.name, name) == 0) return stats;
    }
    check_failed(__FILE__, __LINE__, name, "no such node");
    return stats;
}

static void run_loop(weir_engine *engine, weir_program *program, int times) {
    weir_tensor *in = make_tensor(engine, integer()), *out = make_tensor(engine, integer());
    for (int i = 0; i < times; i++) {
        *number(in) = 0;
        CHECK_OK(weir_program_run(program, NULL, &in, 1, &out, 1, NULL));
        CHECK_EQ(*number(out), 5);
    }
    weir_tensor_release(in);
    weir_tensor_release(out);
}

static void nodes_are_timed(weir_threadpool *pool) {
    uint64_t slow_ns = 200000;
    weir_engine *engine = make_engine(pool);
    weir_program *program = make_loop(engine, WEIR_COMPILE_STATISTICS, &slow_ns), *without = make_loop(engine, 0, &slow_ns);
    weir_node_stats slow, below, plus, loop;
    enum { RUNS = 10 };
    CHECK_EQ(stats_of(program, "loop").min_ns, 0);
    run_loop(engine, program, RUNS);
    slow = stats_of(program, "slow \\ and\nsteady");
    below = stats_of(program, "loop/condition/below");
    plus = stats_of(program, "loop/body/plus");
    loop = stats_of(program, "loop");
    CHECK_EQ(slow.count, RUNS);
    CHECK_EQ(below.count, 5 * RUNS);
    CHECK_EQ(plus.count, 4 * RUNS);
    CHECK_EQ(loop.count, 0);
    CHECK(slow.min_ns > slow_ns / 2 && slow.min_ns <= slow.max_ns);
    CHECK(slow.total_ns >= slow.count * slow.min_ns && slow.total_ns <= slow.count * slow.max_ns);
    CHECK(below.total_ns >= below.count * below.min_ns && below.total_ns <= below.count * below.max_ns);
    CHECK_CODE(weir_program_get_node_stats(without, 0, &slow), WEIR_FAILED_PRECONDITION, "compiled without statistics");
    weir_program_release(program);
    weir_program_release(without);
    weir_engine_release(engine);
}

static int32_t sleep_a_little(void *arg) {
    (void)arg;
    sleep_ns(1000000);
    return WEIR_OK;
}

/* Four tasks that wait for nothing: with two workers at most, two of them are ready for as long as another one
 * takes. */
static void waits_are_counted(weir_threadpool *pool) {
    enum { TASKS = 4, RUNS = 3 };
    weir_engine *engine = make_engine(pool);
    weir_graph *graph = make_graph("waiting");
    const weir_compile_options compiling = {
        .struct_size = sizeof compiling, .flags = WEIR_COMPILE_STATISTICS, .hop_ns = WEIR_HOP_NONE};
    const weir_run_options alone = {.struct_size = sizeof alone, .flags = WEIR_RUN_DETERMINISTIC};
    weir_program *program = NULL;
    weir_node node;
    char name[16];
    for (int i = 0; i < TASKS; i++) {
        (void)snprintf(name, sizeof name, "task %d", i);
        CHECK_OK(weir_graph_add_task(graph, name, sleep_a_little, NULL, NULL, 1000000, &node));
    }
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &compiling, &program));
    for (int shared = 0; shared < 2; shared++) {
        uint64_t waited = 0, count = 0;
        for (int i = 0; i < RUNS; i++) CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, shared ? NULL : &alone));
        for (size_t i = 0; i < TASKS; i++) {
            weir_node_stats stats = {.struct_size = sizeof stats};
            CHECK_OK(weir_program_get_node_stats(program, i, &stats));
            waited += stats.waited_ns;
            count += stats.count;
        }
        CHECK_EQ(count, (shared ? 2 : 1) * TASKS * RUNS);
        if (shared && pool != NULL) {
            CHECK(waited >= RUNS * 2 * 900000u);
        } else {
            CHECK_EQ(waited, 0);
        }
    }
    char report[8192];
    CHECK_OK(weir_program_report(program, WEIR_REPORT_JSON, report, sizeof report, NULL));
    CHECK_TEXT(report, "\"node_statistics\":[\n{\"name\":\"task 0\",\"count\":6,\"total_ns\":");
    CHECK_TEXT(report, "\"waited_ns\":");
    CHECK_OK(weir_program_report(program, WEIR_REPORT_TEXT, report, sizeof report, NULL));
    CHECK_TEXT(report, "ready before they began");
    CHECK_TEXT(report, " 'task 3'");
    weir_graph_destroy(graph);
    weir_program_release(program);
    weir_engine_release(engine);
}

static char *save(weir_program *program) {
    size_t length = 0;
    CHECK_OK(weir_program_save_costs(program, NULL, 0, &length));
    char *text = malloc(length + 1);
    CHECK(text != NULL);
    CHECK_OK(weir_program_save_costs(program, text, length + 1, &length));
    CHECK_EQ(strlen(text), length);
    return text;
}

/* A fresh program knows what the old one has measured, says the same, and computes the same. */
static void costs_are_handed_on(weir_threadpool *pool) {
    uint64_t slow_ns = 300000;
    weir_engine *engine = make_engine(pool);
    weir_program *old = make_loop(engine, 0, &slow_ns), *fresh = make_loop(engine, 0, &slow_ns);
    size_t known = 0;
    run_loop(engine, old, 4);
    char *costs = save(old), *before = save(fresh);
    CHECK(strcmp(costs, before) != 0);
    CHECK_TEXT(costs, "weir costs 1\n");
    CHECK_TEXT(costs, " - slow \\\\ and\\nsteady\n");
    CHECK_TEXT(costs, " 4 loop\n");
    unsigned long cost = strtoul(strchr(costs, '\n') + 1, NULL, 10);
    CHECK(cost > slow_ns / 2);
    CHECK_OK(weir_program_load_costs(fresh, costs, &known));
    CHECK_EQ(known, 4);
    char *after = save(fresh);
    CHECK(strcmp(costs, after) == 0);
    run_loop(engine, fresh, 4);

    /* What is unknown is left alone, and what is broken changes nothing. */
    CHECK_OK(weir_program_load_costs(fresh, "weir costs 1\n10 - nobody\n12345 - loop/body/plus\n", &known));
    CHECK_EQ(known, 1);
    char *mixed = save(fresh);
    CHECK_TEXT(mixed, "12345 - loop/body/plus\n");
    CHECK_CODE(weir_program_load_costs(fresh, "weir costs 1\n7 - loop/body/plus\nx\n", &known), WEIR_INVALID_ARGUMENT,
               "line 3");
    char *kept = save(fresh);
    CHECK(strcmp(mixed, kept) == 0);
    free(costs), free(before), free(after), free(mixed), free(kept);
    weir_program_release(old);
    weir_program_release(fresh);
    weir_engine_release(engine);
}

/* The failure belongs to the last failed call of this thread, and to no other. */
static void the_last_failure_is_the_last(void) {
    static const char all[] = "slow \\ and\nsteady\0loop";
    weir_engine *engine = make_engine(NULL);
    weir_program *program = make_loop(engine, 0, NULL);
    weir_tensor *in = make_tensor(engine, integer()), *out = make_tensor(engine, integer());
    const weir_run_options options = {.struct_size = sizeof options, .deadline_ns = 1};
    weir_failure failure = {.struct_size = sizeof failure};
    char names[64];
    memset(names, '?', sizeof names);
    CHECK_CODE(weir_program_run(program, NULL, &in, 1, &out, 1, &options), WEIR_DEADLINE_EXCEEDED, "1 ns");
    CHECK_OK(weir_thread_get_failure(&failure));
    CHECK_EQ(failure.code, WEIR_DEADLINE_EXCEEDED);
    CHECK(strcmp(failure.message, weir_last_error_message()) == 0);
    CHECK_EQ(failure.num_not_run, 2);
    CHECK_EQ(failure.not_run_bytes, sizeof all);
    /* Names that do not fit are left out, and those that fit are whole. */
    failure.not_run = names;
    failure.not_run_capacity = sizeof all - 1;
    CHECK_OK(weir_thread_get_failure(&failure));
    CHECK_EQ(strlen(names), strlen(all));
    CHECK(names[strlen(all) + 1] == '?');
    failure.not_run_capacity = sizeof names;
    CHECK_OK(weir_thread_get_failure(&failure));
    CHECK_EQ(failure.not_run_bytes, sizeof all);
    CHECK(memcmp(names, all, sizeof all) == 0 && names[sizeof all] == '?');
    /* Another failure takes its place. */
    CHECK_CODE(weir_program_run(program, NULL, NULL, 0, &out, 1, NULL), WEIR_INVALID_ARGUMENT, "input");
    CHECK_OK(weir_thread_get_failure(&failure));
    CHECK_EQ(failure.code, WEIR_INVALID_ARGUMENT);
    CHECK_TEXT(failure.message, "weir_program_run: ");
    CHECK_EQ(failure.num_not_run, 0);
    CHECK_EQ(failure.not_run_bytes, 0);
    CHECK_EQ(failure.iteration, -1);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* A deadline counts from the call: a run that waits too long in its stream begins nothing. */
static void waiting_counts(void) {
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "waiting");
    weir_program *program = make_loop(engine, WEIR_COMPILE_STATISTICS, NULL);
    weir_tensor *in = make_tensor(engine, integer()), *out = make_tensor(engine, integer());
    const weir_run_options options = {.struct_size = sizeof options, .deadline_ns = 1000000};
    weir_run *run = NULL;
    weir_failure failure = {.struct_size = sizeof failure};
    gate g;
    memset(&g, 0, sizeof g);
    memset(&failure, 0, sizeof failure);
    failure.struct_size = sizeof failure;
    CHECK_OK(weir_enqueue_task(stream, pass_gate, &g, NULL));
    CHECK_OK(weir_program_start(program, stream, &in, 1, &out, 1, &options, &run));
    CHECK_OK(weir_run_get_failure(run, &failure));
    CHECK_EQ(failure.code, WEIR_OK);
    sleep_ns(2000000);
    open_gate(&g);
    CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_DEADLINE_EXCEEDED, "1000000 ns");
    CHECK_OK(weir_run_get_failure(run, &failure));
    CHECK_EQ(failure.num_not_run, 2);
    CHECK_EQ(stats_of(program, "loop/body/plus").count, 0);
    weir_run_release(run);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_program_release(program);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* Asks until it is told that nobody wants its result, and then does without one. */
static int32_t impatient(void *user, weir_kernel_context *context) {
    int32_t cancelled = 0;
    while (*(int *)user && !cancelled) CHECK_OK(weir_kernel_context_is_cancelled(context, &cancelled));
    return *(int *)user ? WEIR_OK : plus_one(NULL, context);
}

/* A run that has told its last kernel that the time is over does not succeed; the next one does. */
static void told_is_told(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "told");
    int asks = 1;
    weir_kernel *kernel = unary(engine, impatient, &asks);
    weir_graph *graph = make_graph("one"), *outer = make_graph("outer");
    const weir_tensor_desc desc = integer();
    weir_value v;
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &v));
    CHECK_OK(weir_graph_add_kernel(graph, "impatient", kernel, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", v));
    weir_program *programs[2] = {compile(graph, engine), NULL};
    CHECK_OK(weir_graph_add_input(outer, "x", &desc, &v));
    CHECK_OK(weir_graph_add_program(outer, "inner", programs[0], &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_output(outer, "y", v));
    programs[1] = compile(outer, engine);
    weir_tensor *in = make_tensor(engine, desc), *out = make_tensor(engine, desc);
    const weir_run_options options = {.struct_size = sizeof options, .deadline_ns = 1000000};
    *number(in) = 41;
    for (int i = 0; i < 8; i++) {
        weir_program *program = programs[i % 2];
        weir_stream *on = i % 4 < 2 ? NULL : stream;
        asks = 1;
        weir_status status = weir_program_run(program, on, &in, 1, &out, 1, &options);
        if (on != NULL && status == WEIR_OK) status = weir_stream_synchronize(on, WEIR_TIMEOUT_INFINITE);
        CHECK_CODE(status, WEIR_DEADLINE_EXCEEDED, "1000000 ns");
        if (on != NULL) CHECK_OK(weir_stream_clear_error(on));
        asks = 0;
        const weir_run_options calm = {.struct_size = sizeof calm, .deadline_ns = UINT64_C(1000000000000)};
        CHECK_OK(weir_program_run(program, on, &in, 1, &out, 1, i < 4 ? NULL : &calm));
        if (on != NULL) CHECK_OK(weir_stream_synchronize(on, WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(*number(out), 42);
        *number(out) = 0;
    }
    for (int i = 0; i < 2; i++) weir_program_release(programs[i]);
    weir_graph_destroy(graph);
    weir_graph_destroy(outer);
    weir_kernel_release(kernel);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

int main(void) {
    settings_read_back();
    told_is_told(NULL);
    the_last_failure_is_the_last();
    waiting_counts();
    waits_are_counted(NULL);
    for (int i = 0; i < 2; i++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create(i == 0 ? POOL_FIFO : POOL_INLINE, 1, &pool);
        waits_are_counted(pool);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
    for (int i = 0; i < 2; i++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create(i == 0 ? POOL_FIFO : POOL_INLINE, 2, &pool);
        absent_outputs_are_told(pool);
        told_is_told(pool);
        nodes_are_timed(pool);
        costs_are_handed_on(pool);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
    puts("ok");
    return 0;
}
