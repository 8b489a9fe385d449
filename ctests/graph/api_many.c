/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Many runs of one program at once: as many as a kernel's input says, inside of one another, failing, cancelled; and
 * from outside.
 */

#include <pthread.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

enum { MOST = 1000, FAILS_AT = 17 };

static weir_tensor_desc scalar(void) {
    return vector_desc(1);
}

/* The program that is run many times: y = x + 1, on one number. What its kernel does besides: */
typedef struct leaf {
    atomic_int calls;
    atomic_int fails_at;   /* fails for this number; -1 = never */
    atomic_int holds;      /* waits until its run is cancelled */
    atomic_int cancelled;  /* how often it was */
} leaf;

static int32_t add_one(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    leaf *l = user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    float x = *(const float *)in[0].data;
    atomic_fetch_add(&l->calls, 1);
    if (x == (float)atomic_load(&l->fails_at)) {
        CHECK_OK(weir_kernel_context_fail(context, WEIR_DATA_LOSS, "this one fails"));
        return WEIR_OK;
    }
    int32_t cancelled = 0;
    for (int i = 0; atomic_load(&l->holds) && !cancelled; i++) {
        CHECK_OK(weir_kernel_context_is_cancelled(context, &cancelled));
        sleep_ns(50000);
        CHECK(i < 200000); /* nobody comes */
    }
    if (cancelled) atomic_fetch_add(&l->cancelled, 1);
    *(float *)out[0].data = x + 1;
    return WEIR_OK;
}

static weir_program *make_leaf(weir_engine *engine, leaf *l) {
    weir_tensor_desc desc = scalar();
    weir_kernel *kernel = make_unary_kernel(engine, "leaf", add_one, l, &desc);
    weir_graph *graph = make_graph("leaf");
    weir_value v;
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &v));
    CHECK_OK(weir_graph_add_kernel(graph, "add one", kernel, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "add another", kernel, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", v));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    return program;
}

/* A kernel that runs a program as often as its input says, on the numbers 0, 10, 20 ... of its own, and gives the sum of what comes
   out. */
typedef struct spawner {
    weir_program *program;
    weir_tensor *ins[MOST], *outs[MOST];
    atomic_int busy;
    weir_status last;
} spawner;

static int32_t spawn(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    spawner *s = user;
    CHECK_EQ(atomic_exchange(&s->busy, 1), 0);
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    size_t times = (size_t)*(const float *)in[0].data;
    CHECK(times <= MOST);
    s->last = weir_kernel_context_run_program(context, s->program, times, s->ins, 1, s->outs, 1);
    if (s->last != WEIR_OK) {
        CHECK_OK(weir_kernel_context_fail(context, s->last, weir_last_error_message()));
    }
    float sum = 0;
    for (size_t i = 0; i < times; i++) sum += *floats(s->outs[i]);
    *(float *)out[0].data = sum;
    atomic_store(&s->busy, 0);
    return WEIR_OK;
}

static weir_program *make_spawner(weir_engine *engine, spawner *s, const char *name) {
    weir_tensor_desc desc = scalar();
    weir_kernel *kernel = make_unary_kernel(engine, name, spawn, s, &desc);
    weir_graph *graph = make_graph(name);
    weir_value v;
    CHECK_OK(weir_graph_add_input(graph, "times", &desc, &v));
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "sum", v));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    for (int i = 0; i < MOST; i++) {
        s->ins[i] = make_tensor(engine, desc), s->outs[i] = make_tensor(engine, desc);
        *floats(s->ins[i]) = (float)(10 * i);
    }
    return program;
}

static void free_spawner(spawner *s) {
    for (int i = 0; i < MOST; i++) {
        weir_tensor_release(s->ins[i]);
        weir_tensor_release(s->outs[i]);
    }
}

/* What `times` runs of the leaf give together: each one 10 * i + 2. */
static float sum_of(int times) {
    return (float)(10 * times * (times - 1) / 2 + 2 * times);
}

typedef struct world {
    weir_engine *engine;
    leaf leaf;
    spawner inner, outer;
    weir_program *leaves, *spawning, *twice;
    weir_tensor *in, *out;
} world;

static void world_create(world *w, weir_threadpool *pool) {
    memset(w, 0, sizeof *w);
    atomic_store(&w->leaf.fails_at, -1);
    w->engine = make_engine(pool);
    w->inner.program = w->leaves = make_leaf(w->engine, &w->leaf);
    w->outer.program = w->spawning = make_spawner(w->engine, &w->inner, "spawner");
    w->twice = make_spawner(w->engine, &w->outer, "spawner of spawners");
    w->in = make_tensor(w->engine, scalar());
    w->out = make_tensor(w->engine, scalar());
}

static void world_destroy(world *w) {
    weir_program_release(w->twice);
    weir_program_release(w->spawning);
    weir_program_release(w->leaves);
    weir_tensor_release(w->in);
    weir_tensor_release(w->out);
    free_spawner(&w->inner);
    free_spawner(&w->outer);
    weir_engine_release(w->engine);
}

static weir_status run(world *w, weir_program *program, int times) {
    *floats(w->in) = (float)times;
    *floats(w->out) = -1;
    return weir_program_run(program, NULL, &w->in, 1, &w->out, 1, NULL);
}

static void test_numbers(world *w) {
    const int numbers[] = {0, 1, scale(MOST), 3, 0, scale(200)};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        atomic_store(&w->leaf.calls, 0);
        CHECK_OK(run(w, w->spawning, numbers[i]));
        CHECK_EQ(atomic_load(&w->leaf.calls), 2 * numbers[i]);
        CHECK(*floats(w->out) == sum_of(numbers[i]));
    }
    /* Twice nested: one at a time, since the inner kernel's tensors are its own. */
    *floats(w->outer.ins[0]) = 30;
    atomic_store(&w->leaf.calls, 0);
    CHECK_OK(run(w, w->twice, 1));
    CHECK_EQ(atomic_load(&w->leaf.calls), 60);
    CHECK(*floats(w->out) == sum_of(30));
}

static void test_failure(world *w) {
    atomic_store(&w->leaf.fails_at, 10 * FAILS_AT);
    for (int i = 0; i < scale(20); i++) {
        atomic_store(&w->inner.busy, 0);
        CHECK_CODE(run(w, w->spawning, 20 + scale(MOST - 20)), WEIR_DATA_LOSS, "node 'spawner': ");
        CHECK_TEXT(weir_last_error_message(), "program 'leaf' instance 17: node 'add one': ");
        CHECK_TEXT(weir_last_error_message(), "this one fails");
        CHECK(atomic_load(&w->leaf.calls) > 0);
    }
    *floats(w->outer.ins[0]) = 30;
    CHECK_CODE(run(w, w->twice, 1), WEIR_DATA_LOSS, "program 'spawner' instance 0: node 'spawner': ");
    CHECK_TEXT(weir_last_error_message(), "program 'leaf' instance 17: node 'add one': ");
    atomic_store(&w->leaf.fails_at, -1);
    test_numbers(w);
}

static void *cancel_later(void *arg) {
    weir_run *cancelled = arg;
    sleep_ns(3000000);
    CHECK_OK(weir_run_cancel(cancelled));
    return NULL;
}

/* Kernels of the inner runs that wait until they are cancelled: the cancel of the outer run reaches them, one or two runs
   down. */
static void test_cancel(world *w, weir_threadpool *pool, int depth) {
    weir_program *program = depth == 1 ? w->spawning : w->twice;
    weir_run *started = NULL;
    pthread_t thread;
    atomic_store(&w->leaf.holds, 1);
    atomic_store(&w->leaf.cancelled, 0);
    *floats(w->outer.ins[0]) = 200;
    *floats(w->in) = depth == 1 ? 200 : 1;
    weir_run_options options = {.struct_size = sizeof options};
    /* An inline pool begins the run here and never comes back to cancel it: a deadline reaches it the same way. It may be over
       before the first kernel begins, if the machine is busy. */
    for (uint64_t ns = 10000000; atomic_load(&w->leaf.cancelled) == 0; ns *= 2) {
        CHECK(ns < 20000000000u);
        atomic_store(&w->leaf.calls, 0);
        options.deadline_ns = ns;
        CHECK_CODE(weir_program_run(program, NULL, &w->in, 1, &w->out, 1, &options), WEIR_DEADLINE_EXCEEDED, "");
        CHECK(atomic_load(&w->leaf.calls) < 200);
    }

    /* A cancel, on a stream that has a thread of its own. */
    options.deadline_ns = 0;
    options.threadpool = pool;
    atomic_store(&w->leaf.cancelled, 0);
    atomic_store(&w->leaf.calls, 0);
    weir_engine *engine = make_engine(NULL);
    weir_stream *lane = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    CHECK_OK(weir_program_start(program, lane, &w->in, 1, &w->out, 1, &options, &started));
    CHECK(pthread_create(&thread, NULL, cancel_later, started) == 0);
    CHECK_CODE(weir_run_synchronize(started, WEIR_TIMEOUT_INFINITE), WEIR_CANCELLED, "");
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(atomic_load(&w->leaf.calls) < 200);
    atomic_store(&w->leaf.holds, 0);
    weir_run_release(started);
    weir_stream_release(lane);
    weir_engine_release(engine);
    test_numbers(w);
}

/* The failure of one ends the others that go on. */
static void test_failure_stops_the_rest(world *w) {
    atomic_store(&w->leaf.fails_at, 0);
    atomic_store(&w->leaf.holds, 1);
    CHECK_CODE(run(w, w->spawning, 2), WEIR_DATA_LOSS, "program 'leaf' instance 0: node 'add one': ");
    atomic_store(&w->leaf.holds, 0);
    atomic_store(&w->leaf.fails_at, -1);
}

static void test_from_outside(world *w, weir_threadpool *pool) {
    spawner *s = &w->inner;
    uint8_t flag = 0;
    weir_run_options options = {.struct_size = sizeof options, .threadpool = pool};
    static const size_t numbers[] = {0, 1, MOST, 7};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        for (size_t k = 0; k < numbers[i]; k++) *floats(s->outs[k]) = -1;
        atomic_store(&w->leaf.calls, 0);
        CHECK_OK(weir_program_run_many(w->leaves, numbers[i], s->ins, 1, s->outs, 1, i % 2 ? &options : NULL));
        CHECK_EQ(atomic_load(&w->leaf.calls), 2 * (int)numbers[i]);
        for (size_t k = 0; k < numbers[i]; k++) CHECK(*floats(s->outs[k]) == (float)(10 * k + 2));
    }
    /* Later calls ask for no memory. */
    uint64_t before = runtime_info().allocations;
    if (pool == NULL) {
        for (int i = 0; i < 10; i++) CHECK_OK(weir_program_run_many(w->leaves, MOST, s->ins, 1, s->outs, 1, &options));
        CHECK_EQ(runtime_info().allocations, before);
    }
    atomic_store(&w->leaf.fails_at, 10 * FAILS_AT);
    CHECK_CODE(weir_program_run_many(w->leaves, MOST, s->ins, 1, s->outs, 1, &options), WEIR_DATA_LOSS,
               "weir_program_run_many: program 'leaf' instance 17: node 'add one': ");
    atomic_store(&w->leaf.fails_at, -1);
    atomic_store(&w->leaf.holds, 1);
    options.deadline_ns = 5000000;
    CHECK_CODE(weir_program_run_many(w->leaves, MOST, s->ins, 1, s->outs, 1, &options), WEIR_DEADLINE_EXCEEDED,
               "program 'leaf' instance ");
    atomic_store(&w->leaf.holds, 0);
    options.deadline_ns = 0;
    options.absent = &flag, options.num_absent = 1;
    CHECK_CODE(weir_program_run_many(w->leaves, 1, s->ins, 1, s->outs, 1, &options), WEIR_INVALID_ARGUMENT,
               "options->absent is given, which is for one run");
}

static void test_all(weir_threadpool *pool) {
    world *w = malloc(sizeof *w);
    CHECK(w != NULL);
    world_create(w, pool);
    test_numbers(w);
    test_failure(w);
    test_failure_stops_the_rest(w);
    test_cancel(w, pool, 1);
    test_cancel(w, pool, 2);
    test_from_outside(w, pool);
    world_destroy(w);
    free(w);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_all(NULL);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            weir_threadpool *pool = NULL;
            if (kind == POOL_LATE) continue;
            test_pool *of = test_pool_create(kind, threads, &pool);
            test_all(pool);
            weir_threadpool_release(pool);
            test_pool_destroy(of);
        }
    }
    check_released(&before);
    puts("ok");
    return 0;
}
