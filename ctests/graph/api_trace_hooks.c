/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Hooks: each node that runs has one beginning and one end, in one thread, well nested; on every kind of pool, with
 * loops, conds, nested programs, regions, nodes that complete later, failures and cancels. Hooks come and go while
 * programs run.
 */

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <weir/control.h>
#include <weir/trace.h>

#include "later.h"

/* ---- A tracer ---- */

typedef struct frame {
    enum { STAY, NODE, REGION } kind;
    const void *key; /* the tracer's and, of a node, its name's address */
    uint64_t number;
} frame;

static _Thread_local struct {
    frame frames[256];
    int depth;
} stack;

static void push(frame f) {
    CHECK(stack.depth < 256);
    stack.frames[stack.depth++] = f;
}

static void pop(frame f) {
    CHECK(stack.depth > 0);
    const frame *top = &stack.frames[--stack.depth];
    CHECK(top->kind == f.kind && top->key == f.key && top->number == f.number);
}

/* The stay, of this run, that the calling thread is in. */
static int is_in(uint64_t run) {
    for (int i = stack.depth - 1; i >= 0; i--) {
        if (stack.frames[i].kind == STAY) return stack.frames[i].number == run;
    }
    return 0;
}

enum { MOST_NAMES = 8 };

typedef struct tracer {
    atomic_long runs, runs_ended, ok, cancelled, failed;
    atomic_long stays, stays_ended, nodes, nodes_ended, again, later, failed_nodes;
    atomic_long regions, regions_ended, helps;
    atomic_long inside;          /* runs with a run around them */
    atomic_long named[MOST_NAMES]; /* nodes by the first letter of their name, from 'a' on */
    atomic_int released;
} tracer;

static void check_run(tracer *t, const weir_trace_run *run) {
    CHECK_EQ(atomic_load(&t->released), 0);
    CHECK_EQ(run->struct_size, sizeof *run);
    CHECK(run->program != NULL && run->program[0] != 0 && run->number != 0 && run->outer != run->number);
}

static void run_begin(void *ctx, const weir_trace_run *run) {
    tracer *t = ctx;
    check_run(t, run);
    atomic_fetch_add(&t->runs, 1);
    if (run->outer != 0) atomic_fetch_add(&t->inside, 1);
}

static void run_end(void *ctx, const weir_trace_run *run, weir_status status) {
    tracer *t = ctx;
    check_run(t, run);
    atomic_fetch_add(&t->runs_ended, 1);
    atomic_fetch_add(status == WEIR_OK ? &t->ok : status == WEIR_CANCELLED ? &t->cancelled : &t->failed, 1);
}

static void stay_begin(void *ctx, const weir_trace_run *run) {
    tracer *t = ctx;
    check_run(t, run);
    atomic_fetch_add(&t->stays, 1);
    push((frame){STAY, t, run->number});
}

static void stay_end(void *ctx, const weir_trace_run *run) {
    tracer *t = ctx;
    check_run(t, run);
    pop((frame){STAY, t, run->number});
    atomic_fetch_add(&t->stays_ended, 1);
}

static void node_begin(void *ctx, const weir_trace_run *run, const weir_trace_node *node) {
    tracer *t = ctx;
    check_run(t, run);
    CHECK_EQ(node->struct_size, sizeof *node);
    CHECK(node->name != NULL && (node->engine == NULL || strncmp(node->engine, "cpu", 3) == 0));
    CHECK(is_in(run->number));
    push((frame){NODE, node->name, run->number});
    if (node->flags & WEIR_TRACE_NODE_AGAIN) {
        CHECK_EQ(node->flags, WEIR_TRACE_NODE_AGAIN);
        atomic_fetch_add(&t->again, 1);
        return;
    }
    CHECK_EQ(node->flags, 0);
    atomic_fetch_add(&t->nodes, 1);
    const char *name = strrchr(node->name, '/') != NULL ? strrchr(node->name, '/') + 1 : node->name;
    if (name[0] >= 'a' && name[0] < 'a' + MOST_NAMES) atomic_fetch_add(&t->named[name[0] - 'a'], 1);
}

static void node_end(void *ctx, const weir_trace_run *run, const weir_trace_node *node) {
    tracer *t = ctx;
    check_run(t, run);
    pop((frame){NODE, node->name, run->number});
    if (node->flags & WEIR_TRACE_NODE_FAILED) atomic_fetch_add(&t->failed_nodes, 1);
    if (node->flags & WEIR_TRACE_NODE_AGAIN) return;
    if (node->flags & WEIR_TRACE_NODE_LATER) atomic_fetch_add(&t->later, 1);
    atomic_fetch_add(&t->nodes_ended, 1);
}

static void region_begin(void *ctx, const weir_trace_region *region) {
    tracer *t = ctx;
    CHECK_EQ(atomic_load(&t->released), 0);
    CHECK_EQ(region->struct_size, sizeof *region);
    CHECK(region->number != 0);
    push((frame){REGION, t, region->number});
    atomic_fetch_add(region->helps ? &t->helps : &t->regions, 1);
}

static void region_end(void *ctx, const weir_trace_region *region) {
    tracer *t = ctx;
    CHECK_EQ(atomic_load(&t->released), 0);
    pop((frame){REGION, t, region->number});
    atomic_fetch_add(&t->regions_ended, 1);
}

static void release(void *ctx) {
    tracer *t = ctx;
    CHECK_EQ(t->runs, t->runs_ended);
    CHECK_EQ(t->stays, t->stays_ended);
    CHECK_EQ(t->nodes, t->nodes_ended);
    CHECK_EQ(t->regions + t->helps, t->regions_ended);
    CHECK(t->stays >= t->runs && t->ok + t->cancelled + t->failed == t->runs);
    /* The last step: the test may use it for something else now. */
    CHECK_EQ(atomic_fetch_add(&t->released, 1), 0);
}

static const weir_trace_hooks all = {
    .struct_size = sizeof all, .run_begin = run_begin, .run_end = run_end, .stay_begin = stay_begin,
    .stay_end = stay_end, .node_begin = node_begin, .node_end = node_end, .region_begin = region_begin,
    .region_end = region_end, .release = release};

static void begin(tracer *t) {
    memset(t, 0, sizeof *t);
    CHECK_OK(weir_trace_set_hooks(&all, t));
}

/* What was begun under these hooks is over, but helpers of pools may be on their way out. */
static void end(tracer *t) {
    CHECK_OK(weir_trace_set_hooks(NULL, NULL));
    EVENTUALLY(atomic_load(&t->released) == 1);
    CHECK_EQ(stack.depth, 0);
}

/* ---- Programs ---- */

static atomic_long ran[MOST_NAMES];

static int32_t piece(void *arg, int64_t first, int64_t behind, int32_t slot) {
    (void)arg, (void)slot;
    for (int64_t i = first; i < behind; i++) sleep_ns(1000);
    return WEIR_OK;
}

/* What "b" to "e" do; the others add 1. */
static int32_t add(void *user, weir_kernel_context *context) {
    const int letter = (int)(uintptr_t)user - 'a';
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    atomic_fetch_add(&ran[letter], 1);
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    const int32_t x = *(const int32_t *)in[0].data;
    *(int32_t *)out[0].data = letter == 1 ? x > 0 : letter == 2 ? x - 1 : letter == 4 ? x : x + 1;
    if (letter != 3) return WEIR_OK;
    const weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 100000};
    return weir_kernel_context_parallel_for(context, 8, &hint, piece, NULL);
}

static const weir_tensor_desc number = {.dtype = WEIR_S32, .rank = 1, .dims = {1}};

/* Adds a node by this name, whose first letter says what it does. */
static weir_value apply(weir_engine *engine, weir_graph *graph, const char *name, weir_value x) {
    weir_kernel *kernel = NULL;
    weir_host_kernel_desc desc = make_kernel_desc(name, add, (void *)(uintptr_t)name[0]);
    weir_value y;
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = &number;
    desc.cost_ns = 20000;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &x, 1, &y, 1, NULL));
    weir_kernel_release(kernel);
    return y;
}

enum { WIDE = 6, TURNS = 5, OUTPUTS = WIDE + 2 };

/* WIDE chains of an "a" and a "d", which is a loop that threads share; a loop of TURNS turns with "b" as its condition,
 * and "e" and "c" in its body; a node "h" that is a program of two "f". */
static weir_program *make_program(weir_engine *engine, int32_t parallel) {
    weir_graph *condition = make_graph("condition"), *body = make_graph("body"), *inner = make_graph("inner");
    weir_graph *graph = make_graph("outer");
    weir_value x, y, last;
    char names[2][8];
    CHECK_OK(weir_graph_add_input(condition, "x", &number, &x));
    CHECK_OK(weir_graph_add_output(condition, "goes on", apply(engine, condition, "b", x)));
    CHECK_OK(weir_graph_add_input(body, "x", &number, &x));
    CHECK_OK(weir_graph_add_output(body, "x", apply(engine, body, "c", apply(engine, body, "e", x))));
    CHECK_OK(weir_graph_add_input(inner, "x", &number, &x));
    CHECK_OK(weir_graph_add_output(inner, "y", apply(engine, inner, "f", apply(engine, inner, "f too", x))));
    weir_program *program = compile(inner, engine);
    CHECK_OK(weir_graph_add_input(graph, "x", &number, &x));
    for (int i = 0; i < WIDE; i++) {
        (void)snprintf(names[0], sizeof names[0], "a %d", i);
        (void)snprintf(names[1], sizeof names[1], "d %d", i);
        y = apply(engine, graph, names[1], apply(engine, graph, names[0], x));
        CHECK_OK(weir_graph_add_output(graph, names[1], y));
    }
    CHECK_OK(weir_graph_add_while(graph, "loop", &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
        .cond_graph = condition, .body_graph = body, .variables = &x, .num_variables = 1,
        .parallel_iterations = parallel}, &last, NULL));
    CHECK_OK(weir_graph_add_program(graph, "h", program, &x, 1, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "last", last));
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    weir_program_release(program);
    program = compile(graph, engine);
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    weir_graph_destroy(inner);
    weir_graph_destroy(graph);
    return program;
}

static void make_feed(weir_engine *engine, weir_tensor *in, weir_tensor **out, int32_t turns) {
    void *x = NULL;
    CHECK_OK(weir_tensor_get_data(in, &x));
    *(int32_t *)x = turns;
    for (int i = 0; i < OUTPUTS; i++) out[i] = make_tensor(engine, number);
}

typedef struct text {
    char *data;
    size_t size;
} text;

static int32_t collect(void *ctx, const void *data, size_t size) {
    text *t = ctx;
    t->data = realloc(t->data, t->size + size + 1);
    CHECK(t->data != NULL);
    memcpy(t->data + t->size, data, size);
    t->size += size;
    t->data[t->size] = 0;
    return WEIR_OK;
}

static long occurrences(const char *in, const char *what) {
    long count = 0;
    for (const char *at = strstr(in, what); at != NULL; at = strstr(at + 1, what)) count++;
    return count;
}

/* Spans of a category, which are those lines of the text that are no instants. Takes the text apart. */
static long spans(const text *of, const char *is_of) {
    long count = 0;
    for (char *line = strtok(of->data, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strstr(line, is_of) != NULL && strstr(line, "\"ph\":\"X\"") != NULL) count++;
    }
    return count;
}

static long regions;

/* The nodes that the bodies, the hooks and a trace have counted are the same ones. */
static void test_counts(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_stream *streams[2] = {NULL, make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL)};
    weir_tensor *in = make_tensor(engine, number), *out[OUTPUTS];
    make_feed(engine, in, out, TURNS);
    for (int32_t parallel = 1; parallel <= 3; parallel += 2) {
        weir_program *program = make_program(engine, parallel);
        static tracer t;
        weir_trace *trace = NULL;
        const int rounds = scale(20);
        for (int i = 0; i < MOST_NAMES; i++) atomic_store(&ran[i], 0);
        begin(&t);
        CHECK_OK(weir_trace_start(NULL, &trace));
        for (int s = 0; s < 2; s++) {
            for (int i = 0; i < rounds; i++) {
                CHECK_OK(weir_program_run(program, streams[s], &in, 1, out, OUTPUTS, NULL));
            }
            if (s > 0) CHECK_OK(weir_stream_synchronize(streams[s], WEIR_TIMEOUT_INFINITE));
        }
        CHECK_OK(weir_trace_stop(trace));
        end(&t);
        text told = {NULL, 0};
        CHECK_OK(weir_trace_save_to(trace, WEIR_TRACE_CHROME, collect, &told));
        weir_trace_release(trace);
        CHECK_EQ(t.runs, 2 * 2 * rounds);
        CHECK_EQ(t.ok, t.runs);
        CHECK_EQ(t.inside, 2 * rounds);
        CHECK_EQ(ran[0], 2 * rounds * WIDE);
        CHECK_EQ(ran[1], 2 * rounds * (TURNS + 1));
        CHECK_EQ(ran[2], 2 * rounds * TURNS);
        for (int i = 0; i < 6; i++) CHECK_EQ(t.named[i], ran[i]);
        CHECK_EQ(t.named['h' - 'a'], 2 * rounds);
        CHECK(t.regions <= ran[3]);
        regions += t.regions;
        CHECK_EQ(t.failed_nodes, 0);
        CHECK_EQ(t.nodes + t.again, occurrences(told.data, "\"cat\":\"node\""));
        CHECK_EQ(t.regions + t.helps, occurrences(told.data, "\"cat\":\"region\""));
        free(told.data);
        weir_program_release(program);
    }
    weir_tensor_release(in);
    for (int i = 0; i < OUTPUTS; i++) weir_tensor_release(out[i]);
    weir_stream_release(streams[1]);
    weir_engine_release(engine);
}

static long parts;

/* Nodes that complete later, in every way; nested two deep, so that they have later parts. */
static void test_later(weir_threadpool *pool) {
    static const how ways[] = {INLINE, ELSEWHERE, RACING, REFUSED};
    weir_engine *engine = make_engine(pool);
    const weir_tensor_desc desc = vector_desc(WIDTH);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_tensor *in = make_tensor(engine, desc), *out[2] = {make_tensor(engine, desc), make_tensor(engine, desc)};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        later l = {.how = ways[way]};
        weir_kernel *kernel = make_later_kernel(engine, "later", &l);
        weir_program *program = NULL;
        static tracer t;
        const int rounds = scale(20), is_refused = ways[way] == REFUSED;
        for (int depth = 0; depth < 3; depth++) {
            weir_graph *graph = make_graph(depth == 0 ? "one" : depth == 1 ? "two" : "three");
            weir_value x, y[2];
            CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
            for (int i = 0; i < 2; i++) {
                const char *name = i == 0 ? "g" : "g too";
                if (depth == 0) CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &x, 1, y, 1, NULL));
                else CHECK_OK(weir_graph_add_program(graph, name, program, &x, 1, y, 2, NULL));
                CHECK_OK(weir_graph_add_output(graph, i == 0 ? "y" : "z", y[0]));
            }
            weir_program *outer = compile(graph, engine);
            weir_program_release(program);
            weir_graph_destroy(graph);
            program = outer;
        }
        weir_trace *trace = NULL;
        text told = {NULL, 0};
        /* Each completion of RACING is a thread. */
        const weir_trace_options many = {.struct_size = sizeof many, .threads = 256, .records_per_thread = 4096};
        begin(&t);
        CHECK_OK(weir_trace_start(&many, &trace));
        for (int i = 0; i < rounds; i++) {
            weir_stream *on = i % 2 == 0 ? NULL : stream;
            const weir_status status = weir_program_run(program, on, &in, 1, out, 2, NULL);
            const weir_status late = on != NULL ? weir_stream_synchronize(on, WEIR_TIMEOUT_INFINITE) : WEIR_OK;
            CHECK_EQ(on != NULL ? late : status, is_refused ? WEIR_UNAVAILABLE : WEIR_OK);
            if (on != NULL) CHECK_OK(weir_stream_clear_error(on));
        }
        CHECK_OK(weir_trace_stop(trace));
        end(&t);
        CHECK_OK(weir_trace_save_to(trace, WEIR_TRACE_CHROME, collect, &told));
        weir_trace_release(trace);
        CHECK_EQ(t.nodes + t.again, spans(&told, "\"cat\":\"node\""));
        free(told.data);
        parts += t.again;
        if (is_refused) {
            CHECK(t.failed >= rounds && t.failed_nodes >= rounds);
        } else {
            CHECK_EQ(t.runs, rounds * 7);
            CHECK_EQ(t.ok, t.runs);
            CHECK_EQ(t.nodes, rounds * 14);
            CHECK_EQ(atomic_load(&l.begun), rounds * 8);
            CHECK_EQ(t.failed_nodes, 0);
        }
        weir_kernel_release(kernel);
        weir_program_release(program);
    }
    weir_tensor_release(in);
    weir_tensor_release(out[0]);
    weir_tensor_release(out[1]);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* gate, and behind it a "c" each; beside it a "d" that fails if told to. */
static weir_program *make_gated(weir_engine *engine, gate *g, int fails) {
    weir_graph *graph = make_graph("gated");
    weir_node first, node;
    static atomic_int counter;
    CHECK_OK(weir_graph_add_task(graph, "gate", pass_gate, g, NULL, 0, &first));
    for (int i = 0; i < 3; i++) {
        const char *names[] = {"c", "c too", "c three"};
        CHECK_OK(weir_graph_add_task(graph, names[i], count_run, &counter, NULL, 0, &node));
        CHECK_OK(weir_graph_add_control_edge(graph, first, node));
    }
    if (fails) CHECK_OK(weir_graph_add_task(graph, "d", fail_with_data_loss, NULL, NULL, 0, NULL));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

/* `is_threaded`: a run that waits leaves this thread alone. */
static void test_failures(weir_threadpool *pool, bool is_threaded) {
    weir_engine *engine = make_engine(pool);
    gate open = {.open = 1}, shut = {.open = 0};
    weir_program *failing = make_gated(engine, &open, 1), *waiting = make_gated(engine, &shut, 0);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    static tracer t;
    const weir_run_options independent = {.struct_size = sizeof independent, .flags = WEIR_RUN_FINISH_INDEPENDENT};
    begin(&t);
    for (int i = 0; i < 8; i++) {
        const weir_run_options *options = i % 2 == 0 ? NULL : &independent;
        CHECK_CODE(weir_program_run(failing, NULL, NULL, 0, NULL, 0, options), WEIR_DATA_LOSS, "'d'");
    }
    end(&t);
    CHECK_EQ(t.runs, 8);
    CHECK_EQ(t.failed, 8);
    CHECK_EQ(t.failed_nodes, 8);
    CHECK_EQ(t.named['d' - 'a'], 8);

    if (is_threaded) {
        weir_run *run = NULL;
        begin(&t);
        CHECK_OK(weir_program_start(waiting, stream, NULL, 0, NULL, 0, NULL, &run));
        EVENTUALLY(atomic_load(&shut.begun) > 0);
        CHECK_OK(weir_run_cancel(run));
        open_gate(&shut);
        CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_CANCELLED, "");
        weir_run_release(run);
        end(&t);
        CHECK_EQ(t.cancelled, 1);
        CHECK_EQ(t.nodes, 1);
        CHECK_EQ(t.failed_nodes, 0);
    }
    open_gate(&shut);
    begin(&t);
    const weir_run_options soon = {.struct_size = sizeof soon, .deadline_ns = 1};
    CHECK_CODE(weir_program_run(waiting, NULL, NULL, 0, NULL, 0, &soon), WEIR_DEADLINE_EXCEEDED, "");
    end(&t);
    CHECK(t.failed == t.runs && t.nodes == 0);
    weir_stream_release(stream);
    weir_program_release(failing);
    weir_program_release(waiting);
    weir_engine_release(engine);
}

/* ---- Hooks that come and go ---- */

/* A run keeps the hooks that were there when it began. So eight runs under way keep eight. */
static void test_runs_keep_hooks(weir_threadpool *pool) {
    enum { MOST = 8 };
    static tracer t[MOST + 1];
    weir_engine *engine = make_engine(pool);
    gate g = {.open = 0};
    weir_program *program = make_gated(engine, &g, 0);
    weir_stream *streams[MOST];
    weir_run *runs[MOST];
    for (int i = 0; i < MOST; i++) {
        streams[i] = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        begin(&t[i]);
        CHECK_OK(weir_program_start(program, streams[i], NULL, 0, NULL, 0, NULL, &runs[i]));
        EVENTUALLY(atomic_load(&g.begun) == i + 1);
    }
    memset(&t[MOST], 0, sizeof t[MOST]);
    CHECK_CODE(weir_trace_set_hooks(&all, &t[MOST]), WEIR_RESOURCE_EXHAUSTED, "8 hooks");
    for (int i = 0; i < MOST; i++) CHECK(t[i].runs == 1 && t[i].nodes == 1 && t[i].released == 0);
    open_gate(&g);
    for (int i = 0; i < MOST; i++) {
        CHECK_OK(weir_run_synchronize(runs[i], WEIR_TIMEOUT_INFINITE));
        weir_run_release(runs[i]);
    }
    /* The last are still there. */
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    end(&t[MOST - 1]);
    for (int i = 0; i < MOST; i++) {
        EVENTUALLY(atomic_load(&t[i].released) == 1);
        CHECK_EQ(t[i].nodes, i == MOST - 1 ? 8 : 4);
        weir_stream_release(streams[i]);
    }
    CHECK_EQ(t[MOST].runs + t[MOST].released, 0);
    weir_program_release(program);
    weir_engine_release(engine);
}

static int32_t take_away(void *arg) {
    tracer *t = arg;
    CHECK_OK(weir_trace_set_hooks(NULL, NULL));
    CHECK_EQ(atomic_load(&t->released), 0);
    return WEIR_OK;
}

/* The same in a hook, which also leaves a mark. */
static uint32_t mark;

static void mark_and_take_away(void *ctx, const weir_trace_run *run, const weir_trace_node *node) {
    node_begin(ctx, run, node);
    CHECK_OK(weir_trace_mark(mark, 7));
    CHECK_OK(take_away(ctx));
}

static void test_from_inside(weir_engine *engine) {
    static tracer t;
    weir_graph *graph = make_graph("inside");
    weir_node first, node;
    static atomic_int counter;
    CHECK_OK(weir_graph_add_task(graph, "a", take_away, &t, NULL, 0, &first));
    CHECK_OK(weir_graph_add_task(graph, "b", count_run, &counter, NULL, 0, &node));
    CHECK_OK(weir_graph_add_control_edge(graph, first, node));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    begin(&t);
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    CHECK_EQ(t.released, 1);
    CHECK_EQ(t.nodes, 2);

    weir_trace_hooks hooks = all;
    weir_trace *trace = NULL;
    text told = {NULL, 0};
    memset(&t, 0, sizeof t);
    hooks.node_begin = mark_and_take_away;
    CHECK_OK(weir_trace_intern("a mark of a hook", &mark));
    CHECK_OK(weir_trace_start(NULL, &trace));
    CHECK_OK(weir_trace_set_hooks(&hooks, &t));
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    CHECK_EQ(t.released, 1);
    CHECK_EQ(t.nodes, 2);
    CHECK_OK(weir_trace_save_to(trace, WEIR_TRACE_CHROME, collect, &told));
    CHECK_EQ(occurrences(told.data, "a mark of a hook"), 2);
    free(told.data);
    weir_trace_release(trace);
    weir_program_release(program);
}

/* A child of fork has none of them. */
static void test_fork(void) {
    static tracer t;
    if (WITH_TSAN) return;
    begin(&t);
    fflush(NULL);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        static tracer own;
        weir_engine *engine = make_engine(NULL);
        gate g = {.open = 1};
        weir_program *program = make_gated(engine, &g, 0);
        CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
        CHECK_EQ(t.runs + t.released, 0);
        begin(&own);
        CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
        end(&own);
        CHECK_EQ(own.nodes, 4);
        CHECK_EQ(t.runs + t.released, 0);
        weir_program_release(program);
        weir_engine_release(engine);
        /* What it inherited and left alone is no leak, and no checker of memory looks at it then. */
        raise(SIGKILL);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    end(&t);
}

static atomic_int over;

static void *run_on(void *arg) {
    weir_engine *engine = arg;
    weir_tensor *in = make_tensor(engine, number), *out[OUTPUTS];
    weir_program *program = make_program(engine, 2);
    make_feed(engine, in, out, 2);
    while (!atomic_load(&over)) CHECK_OK(weir_program_run(program, NULL, &in, 1, out, OUTPUTS, NULL));
    CHECK_EQ(stack.depth, 0);
    weir_program_release(program);
    weir_tensor_release(in);
    for (int i = 0; i < OUTPUTS; i++) weir_tensor_release(out[i]);
    return NULL;
}

static void test_busy(weir_threadpool *pool) {
    enum { THREADS = 3, TRACERS = 16 };
    static tracer t[TRACERS];
    weir_engine *engine = make_engine(pool);
    pthread_t threads[THREADS];
    atomic_store(&over, 0);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&threads[i], NULL, run_on, engine), 0);
    long told = 0;
    for (int i = 0; i < scale(200); i++) {
        tracer *own = &t[i % TRACERS];
        /* It was replaced long ago. */
        if (i >= TRACERS) EVENTUALLY(atomic_load(&own->released) == 1);
        told += atomic_load(&own->runs);
        memset(own, 0, sizeof *own);
        weir_status status;
        while ((status = weir_trace_set_hooks(&all, own)) == WEIR_RESOURCE_EXHAUSTED) sleep_ns(100000);
        CHECK_EQ(status, WEIR_OK);
        if (i % 4 == 0) EVENTUALLY(atomic_load(&own->runs) > 0);
        if (i % 3 == 0) CHECK_OK(weir_trace_set_hooks(NULL, NULL));
    }
    CHECK_OK(weir_trace_set_hooks(NULL, NULL));
    atomic_store(&over, 1);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    const int used = scale(200) < TRACERS ? scale(200) : TRACERS;
    for (int i = 0; i < used; i++) {
        EVENTUALLY(atomic_load(&t[i].released) == 1);
        told += t[i].runs;
    }
    CHECK(told > 0);
    weir_engine_release(engine);
}

/* The second run under hooks asks for no memory, nor does one behind them. */
static void test_allocations(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    gate g = {.open = 1};
    weir_program *program = make_gated(engine, &g, 0);
    static tracer t;
    for (int i = 0; i < 8; i++) CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    begin(&t);
    uint64_t before = 0;
    for (int i = 0; i < 50; i++) {
        if (i == 1) before = runtime_info().allocations;
        CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    }
    CHECK_EQ(runtime_info().allocations, before);
    end(&t);
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    CHECK_EQ(runtime_info().allocations, before);
    CHECK_EQ(t.nodes, 200);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* Members that are NULL are not called; a program of the host's may have an older header. */
static void test_some(weir_engine *engine) {
    static tracer t;
    gate g = {.open = 1};
    weir_program *program = make_gated(engine, &g, 0);
    const weir_trace_hooks some = {.struct_size = sizeof some, .run_end = run_end};
    CHECK_OK(weir_trace_set_hooks(&some, &t));
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    CHECK_OK(weir_trace_set_hooks(NULL, NULL));
    CHECK_EQ(t.ok, 1);
    CHECK_EQ(t.runs + t.nodes, 0);
    /* A struct of a newer header, in which a member is set that this library does not know. */
    struct {
        weir_trace_hooks known;
        void *newer;
    } newer = {some, &t};
    newer.known.struct_size = sizeof newer;
    CHECK_CODE(weir_trace_set_hooks(&newer.known, &t), WEIR_INVALID_ARGUMENT, "does not know");
    weir_program_release(program);
}

int main(void) {
    const weir_runtime_info before = runtime_info();
    finisher_start();
    only_once = 1;
    weir_engine *engine = make_engine(NULL);
    test_some(engine);
    test_from_inside(engine);
    weir_engine_release(engine);
    test_counts(NULL);
    test_later(NULL);
    test_failures(NULL, true);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        weir_threadpool *pool = NULL;
        if (kind == POOL_LATE) continue;
        test_pool *of = test_pool_create(kind, 3, &pool);
        test_counts(pool);
        test_later(pool);
        test_failures(pool, pool_kind_is_threaded(test_pool_kind(of)));
        test_busy(pool);
        weir_threadpool_release(pool);
        test_pool_destroy(of);
    }
    weir_threadpool *pool = NULL;
    test_pool *of = test_pool_create_exact(POOL_FULL, 8, &pool);
    test_runs_keep_hooks(pool);
    test_allocations(pool);
    weir_threadpool_release(pool);
    test_pool_destroy(of);
    test_fork();
    finisher_stop();
    CHECK(regions > 0 && parts > 0);
    check_released(&before);
    return 0;
}
