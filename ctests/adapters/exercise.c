/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "exercise.h"

#include <pthread.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"

enum { ITEMS = 5000, CALLERS = 3, BRANCHES = 6, ROWS = 40, DEPTH = 64, COLUMNS = 24 };

static weir_parallel_hint costly(void) {
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 50000};
    return hint;
}

/* ---- regions ---- */

typedef struct tally {
    weir_threadpool *pool;
    int depth; /* regions inside of each piece, so many deep */
    atomic_int *items;
    atomic_llong inner;
    atomic_int held[256];
} tally;

static int32_t count_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    tally *t = arg;
    CHECK(slot >= 0 && slot < 256 && begin < end);
    CHECK_EQ(atomic_fetch_add(&t->held[slot], 1), 0);
    for (int64_t i = begin; t->items != NULL && i < end; i++) atomic_fetch_add(&t->items[i], 1);
    atomic_fetch_add(&t->inner, end - begin);
    atomic_fetch_sub(&t->held[slot], 1); /* the region inside may take up pieces of this one */
    if (t->depth > 0) {
        tally *nested = calloc(1, sizeof *nested);
        weir_parallel_hint hint = costly();
        CHECK(nested != NULL);
        nested->pool = t->pool;
        nested->depth = t->depth - 1;
        CHECK_OK(weir_parallel_for(t->pool, 9, &hint, count_range, nested));
        CHECK_EQ(atomic_load(&nested->inner), 9);
        free(nested);
    }
    return WEIR_OK;
}

static void run_region(weir_threadpool *pool, int64_t n, int depth) {
    tally *t = calloc(1, sizeof *t);
    atomic_int *items = calloc((size_t)n + 1, sizeof *items);
    weir_parallel_hint hint = costly();
    CHECK(t != NULL && items != NULL);
    t->pool = pool;
    t->depth = depth;
    t->items = items;
    CHECK_OK(weir_parallel_for(pool, n, &hint, count_range, t));
    for (int64_t i = 0; i < n; i++) CHECK_EQ(atomic_load(&items[i]), 1);
    CHECK_EQ(atomic_load(&t->inner), n);
    free(items);
    free(t);
}

static int32_t fail_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg, (void)end, (void)slot;
    return begin == 0 ? WEIR_DATA_LOSS : WEIR_OK;
}

static void run_regions(weir_threadpool *pool) {
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 64, ITEMS};
    weir_parallel_hint hint = costly();
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) run_region(pool, sizes[s], 0);
    run_region(pool, 20, 1);
    run_region(pool, 5, 3);
    CHECK_CODE(weir_parallel_for(pool, 100, &hint, fail_range, NULL), WEIR_DATA_LOSS, "weir_parallel_for");
}

/* ---- a graph: matmul and relu in branches that are added up, and a softmax; beside it a tree of host tasks ---- */

typedef struct network {
    weir_engine *engine;
    weir_program *program;
    atomic_int tasks;
} network;

static weir_value add_kernel(weir_graph *graph, const char *name, weir_kernel *kernel, const weir_value *in, size_t n) {
    weir_value out = 0;
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, in, n, &out, 1, NULL));
    return out;
}

static void network_create(network *net, weir_threadpool *pool) {
    weir_matmul_desc matmul_desc = {.struct_size = sizeof matmul_desc};
    weir_softmax_desc softmax_desc = {.struct_size = sizeof softmax_desc};
    weir_kernel *matmul = NULL, *add = NULL, *relu = NULL, *softmax = NULL;
    weir_tensor_desc x_desc = matrix_desc(ROWS, DEPTH);
    weir_graph *graph = make_graph("network");
    weir_node tree[31];
    weir_value x = 0, sum = 0;

    atomic_init(&net->tasks, 0);
    net->engine = make_engine(pool);
    CHECK_OK(weir_kernel_create_matmul(net->engine, &matmul_desc, NULL, &matmul));
    CHECK_OK(weir_kernel_create_binary(net->engine, BINARY(ADD), NULL, &add));
    CHECK_OK(weir_kernel_create_eltwise(net->engine, ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_kernel_create_softmax(net->engine, &softmax_desc, NULL, &softmax));
    CHECK_OK(weir_graph_add_input(graph, "x", &x_desc, &x));
    for (int i = 0; i < BRANCHES; i++) {
        char name[16];
        weir_tensor *weights = make_tensor(net->engine, matrix_desc(DEPTH, COLUMNS));
        weir_value pair[2] = {x, 0};
        fill(weights, i);
        snprintf(name, sizeof name, "w%d", i);
        CHECK_OK(weir_graph_add_constant(graph, name, weights, &pair[1]));
        weir_tensor_release(weights);
        snprintf(name, sizeof name, "dense%d", i);
        pair[1] = add_kernel(graph, name, matmul, pair, 2);
        snprintf(name, sizeof name, "relu%d", i);
        pair[1] = add_kernel(graph, name, relu, &pair[1], 1);
        snprintf(name, sizeof name, "sum%d", i);
        pair[0] = sum;
        sum = i == 0 ? pair[1] : add_kernel(graph, name, add, pair, 2);
    }
    CHECK_OK(weir_graph_add_output(graph, "y", add_kernel(graph, "scores", softmax, &sum, 1)));
    for (int i = 0; i < 31; i++) {
        char name[16];
        snprintf(name, sizeof name, "task%d", i);
        CHECK_OK(weir_graph_add_task(graph, name, count_run, &net->tasks, NULL, 20000, &tree[i]));
        if (i > 0) CHECK_OK(weir_graph_add_control_edge(graph, tree[(i - 1) / 2], tree[i]));
    }
    const weir_compile_options options = {
        .struct_size = sizeof options, .hop_ns = WEIR_HOP_NONE}; /* everything is worth handing over */
    CHECK_OK(weir_graph_compile(graph, &net->engine, 1, &options, &net->program));
    weir_graph_destroy(graph);
    weir_kernel_release(matmul);
    weir_kernel_release(add);
    weir_kernel_release(relu);
    weir_kernel_release(softmax);
}

static void network_destroy(network *net) {
    weir_program_release(net->program);
    weir_engine_release(net->engine);
}

/* The result that the calling thread gets alone. */
static void expected_result(float *result) {
    network net;
    weir_tensor *x, *y;
    network_create(&net, NULL);
    x = make_tensor(net.engine, matrix_desc(ROWS, DEPTH));
    y = make_tensor(net.engine, matrix_desc(ROWS, COLUMNS));
    fill(x, 7);
    CHECK_OK(weir_program_run(net.program, NULL, &x, 1, &y, 1, NULL));
    CHECK_EQ(atomic_load(&net.tasks), 31);
    memcpy(result, floats(y), sizeof(float) * ROWS * COLUMNS);
    weir_tensor_release(x);
    weir_tensor_release(y);
    network_destroy(&net);
}

static void run_network(const network *net, weir_stream *stream, const float *expected) {
    weir_tensor *x = make_tensor(net->engine, matrix_desc(ROWS, DEPTH));
    weir_tensor *y = make_tensor(net->engine, matrix_desc(ROWS, COLUMNS));
    fill(x, 7);
    CHECK_OK(weir_program_run(net->program, stream, &x, 1, &y, 1, NULL));
    if (stream != NULL) CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK(memcmp(floats(y), expected, sizeof(float) * ROWS * COLUMNS) == 0); /* the same bits on every pool */
    weir_tensor_release(x);
    weir_tensor_release(y);
}

/* ---- streams ---- */

typedef struct order {
    weir_threadpool *pool;
    int next;
} order;

static int32_t next_in_order(void *arg) {
    order *o = arg;
    if (++o->next % 16 == 0) run_region(o->pool, 64, 1);
    return WEIR_OK;
}

static void queue_in_order(weir_stream *stream, order *o, int n) {
    for (int i = 0; i < n; i++) CHECK_OK(weir_enqueue_task(stream, next_in_order, o, NULL));
}

static void run_stream(weir_threadpool *pool, const network *net, const float *expected) {
    weir_stream *stream = make_stream(net->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "exercise");
    order o = {.pool = pool};
    queue_in_order(stream, &o, 128);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(o.next, 128);
    run_network(net, stream, expected);
    queue_in_order(stream, &o, 32);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    CHECK_EQ(o.next, 160);
    weir_stream_release(stream);
}

/* ---- all of it ---- */

typedef struct caller {
    weir_threadpool *pool;
    const network *net;
    const float *expected;
    pthread_t thread;
} caller;

static void *call(void *arg) {
    const caller *c = arg;
    for (int round = 0; round < scale(40); round++) {
        run_region(c->pool, 200, round % 3);
        run_network(c->net, NULL, c->expected);
    }
    return NULL;
}

void exercise_pool(weir_threadpool *pool, uint64_t lanes) {
    static float expected[ROWS * COLUMNS];
    const uint64_t started = runtime_info().threads_started;
    caller callers[CALLERS];
    network net;
    int32_t inside = 1;
    CHECK_OK(weir_threadpool_in_parallel(pool, &inside));
    CHECK_EQ(inside, 0);
    expected_result(expected);
    network_create(&net, pool);
    for (int round = 0; round < scale(20); round++) {
        run_regions(pool);
        run_network(&net, NULL, expected);
    }
    run_stream(pool, &net, expected);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (caller){.pool = pool, .net = &net, .expected = expected};
        CHECK(pthread_create(&callers[i].thread, NULL, call, &callers[i]) == 0);
    }
    for (int i = 0; i < CALLERS; i++) pthread_join(callers[i].thread, NULL);
    CHECK_EQ(atomic_load(&net.tasks) % 31, 0);
    network_destroy(&net);
    weir_threadpool_release(pool);
    CHECK_EQ(runtime_info().threads_started - started, lanes);
}

void exercise_together(weir_threadpool *const *pools, int num_pools) {
    enum { MOST = 8 };
    static float expected[ROWS * COLUMNS];
    network nets[MOST];
    weir_stream *streams[MOST];
    order orders[MOST];
    CHECK(num_pools <= MOST);
    expected_result(expected);
    for (int i = 0; i < num_pools; i++) {
        network_create(&nets[i], pools[i]);
        streams[i] = make_stream(nets[i].engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        orders[i] = (order){.pool = pools[(i + 1) % num_pools]}; /* its regions go to another pool */
    }
    for (int round = 0; round < scale(20); round++) {
        for (int i = 0; i < num_pools; i++) queue_in_order(streams[i], &orders[i], 64);
        for (int i = 0; i < num_pools; i++) run_network(&nets[i], streams[i], expected);
        for (int i = 0; i < num_pools; i++) queue_in_order(streams[i], &orders[i], 32);
    }
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    for (int i = 0; i < num_pools; i++) {
        CHECK_EQ(orders[i].next, scale(20) * 96);
        weir_stream_release(streams[i]);
        network_destroy(&nets[i]);
    }
}

/* ---- the vtable by itself ---- */

typedef struct marks {
    const weir_threadpool_vtable *vtable;
    void *ctx;
    atomic_int ran[64];
    atomic_int total;
    int nested;
} marks;

static void mark(void *arg, int32_t i) {
    marks *m = arg;
    const weir_threadpool_vtable *v = m->vtable;
    CHECK(i >= 0 && i < 64);
    atomic_fetch_add(&m->ran[i], 1);
    if (v->thread_index != NULL && v->in_parallel != NULL) {
        const int32_t index = v->thread_index(m->ctx);
        CHECK_EQ(v->in_parallel(m->ctx) != 0, index >= 0);
        CHECK(index < v->num_threads(m->ctx));
    }
    if (m->nested) {
        marks inside = {.vtable = v, .ctx = m->ctx};
        CHECK_EQ(v->parallel_for(m->ctx, 5, mark, &inside), 0);
        for (int k = 0; k < 64; k++) CHECK_EQ(atomic_load(&inside.ran[k]), k < 5);
    }
    atomic_fetch_add(&m->total, 1);
}

static void call_parallel_for(const weir_threadpool_vtable *v, void *ctx) {
    static const int32_t sizes[] = {1, 2, 3, 4, 5, 8, 64};
    const int may_nest = (v->flags & WEIR_THREADPOOL_NESTED) != 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int32_t n = sizes[s];
        for (int nested = 0; nested <= may_nest; nested++) {
            marks m = {.vtable = v, .ctx = ctx, .nested = nested};
            CHECK_EQ(v->parallel_for(ctx, n, mark, &m), 0);
            CHECK_EQ(atomic_load(&m.total), n); /* all have returned */
            for (int k = 0; k < 64; k++) CHECK_EQ(atomic_load(&m.ran[k]), k < n);
        }
    }
}

static void call_schedule(const weir_threadpool_vtable *v, void *ctx) {
    marks m = {.vtable = v, .ctx = ctx};
    const weir_task_hint hint = {.struct_size = sizeof hint};
    int accepted = 0;
    for (int i = 0; i < 3000; i++) accepted += v->schedule(ctx, mark, &m, &hint) == 0;
    EVENTUALLY(accepted > 0 || (accepted += v->schedule(ctx, mark, &m, &hint) == 0) > 0); /* others may fill it up */
    while (v->help != NULL && v->help(ctx) != 0) {
    }
    EVENTUALLY(atomic_load(&m.total) == accepted);
    CHECK_EQ(atomic_load(&m.ran[0]), accepted);
}

static void *call_vtable(void *arg) {
    const marks *m = arg;
    const weir_threadpool_vtable *v = m->vtable;
    for (int round = 0; round < scale(10); round++) {
        CHECK(v->num_threads(m->ctx) >= 1);
        if (v->max_threads != NULL) CHECK(v->max_threads(m->ctx) >= v->num_threads(m->ctx));
        if (v->in_parallel != NULL) CHECK_EQ(v->in_parallel(m->ctx), 0);
        if (v->thread_index != NULL) CHECK_EQ(v->thread_index(m->ctx), -1);
        if (v->parallel_for != NULL) call_parallel_for(v, m->ctx);
        if (v->schedule != NULL) call_schedule(v, m->ctx);
    }
    return NULL;
}

/* A pool of some of the functions; weir gives it back before this returns. */
static void exercise_part(weir_threadpool_vtable vtable, void *ctx) {
    const weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    CHECK_OK(weir_threadpool_create(&vtable, ctx, NULL, &pool));
    exercise_pool(pool, vtable.schedule == NULL ? 1 : 0);
    check_released(&before);
}

void exercise_vtable(const weir_threadpool_vtable *vtable, void *ctx) {
    marks m = {.vtable = vtable, .ctx = ctx};
    pthread_t threads[CALLERS];
    CHECK_EQ(vtable->struct_size, sizeof *vtable);
    call_vtable(&m);
    for (int i = 0; i < CALLERS; i++) CHECK(pthread_create(&threads[i], NULL, call_vtable, &m) == 0);
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    if (vtable->schedule != NULL && vtable->parallel_for != NULL) {
        weir_threadpool_vtable part = *vtable;
        part.release = NULL; /* ctx is needed again */
        part.schedule = NULL;
        exercise_part(part, ctx);
        part.schedule = vtable->schedule;
        part.parallel_for = NULL;
        exercise_part(part, ctx);
    }
    exercise_part(*vtable, ctx);
}
