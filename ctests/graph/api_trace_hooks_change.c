/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Hooks that come and go while programs run: a run keeps those that were there when it began, and who takes them away
 * waits for nobody.
 */

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "test_pools.h"
#include "traced_programs.h"

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
    weir_engine *engine = make_engine(NULL);
    test_some(engine);
    test_from_inside(engine);
    weir_engine_release(engine);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        weir_threadpool *pool = NULL;
        if (kind == POOL_LATE) continue;
        test_pool *of = test_pool_create(kind, 3, &pool);
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
    check_released(&before);
    return 0;
}
