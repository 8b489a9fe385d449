/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Lifetimes: objects are released in every order, before and after the work on them is done, and nothing is left over.
 */

#include <pthread.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

/* Everything that a run on a stream needs. */
typedef enum member { POOL, ENGINE, STREAM, EVENT, IN, OUT, KERNEL, GRAPH, PROGRAM, RUN, MEMBERS } member;

typedef struct scene {
    test_pool *host;
    weir_threadpool *pool;
    weir_engine *engine;
    weir_stream *stream;
    weir_event *event;
    weir_tensor *in, *out;
    weir_kernel *kernel;
    weir_graph *graph;
    weir_program *program;
    weir_run *run;
    atomic_int *destroyed; /* task arguments and kernel users that were given back */
} scene;

static int32_t negate_compute(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    for (size_t i = 0; i < out->bytes / sizeof(float); i++) ((float *)out->data)[i] = -((const float *)in->data)[i];
    return WEIR_OK;
}

enum { DESTROYED = 4 }; /* one kernel user, one graph task, one stream task, one tensor's memory */

static scene scene_create(pool_kind kind, atomic_int *destroyed, float *result) {
    scene s = {.destroyed = destroyed};
    weir_tensor_desc desc = vector_desc(16);
    weir_value x, y;
    weir_node node;
    s.host = kind == POOL_LATE ? test_pool_create_exact(kind, 2, &s.pool) : test_pool_create(kind, 2, &s.pool);
    s.engine = make_engine(s.pool);
    s.stream = make_stream(s.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    s.event = make_event(s.engine, WEIR_EVENT_DEFAULT);
    s.in = make_tensor(s.engine, desc);
    fill(s.in, 3);
    CHECK_OK(weir_tensor_create(s.engine, &desc, OVER_UNTIL(result, count_destroy, destroyed), &s.out));
    weir_host_kernel_desc kernel = make_kernel_desc("negate", negate_compute, destroyed);
    kernel.destroy = count_destroy;
    kernel.num_inputs = kernel.num_outputs = 1;
    kernel.inputs = kernel.outputs = &desc;
    CHECK_OK(weir_kernel_create_host(s.engine, &kernel, &s.kernel));
    s.graph = make_graph("scene");
    CHECK_OK(weir_graph_add_input(s.graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_kernel(s.graph, "negate", s.kernel, &x, 1, &y, 1, NULL));
    CHECK_OK(weir_graph_add_task(s.graph, "task", count_run, destroyed, count_destroy, 0, &node));
    CHECK_OK(weir_graph_add_output(s.graph, "y", y));
    s.program = compile(s.graph, s.engine);
    CHECK_OK(weir_enqueue_task(s.stream, count_run, destroyed, count_destroy));
    CHECK_OK(weir_program_start(s.program, s.stream, &s.in, 1, &s.out, 1, NULL, &s.run));
    CHECK_OK(weir_event_record(s.event, s.stream));
    CHECK_OK(weir_stream_wait_event(s.stream, s.event));
    return s;
}

static void release_member(scene *s, member m) {
    switch (m) {
    case POOL:
        weir_threadpool_release(s->pool);
        break;
    case ENGINE:
        weir_engine_release(s->engine);
        break;
    case STREAM:
        weir_stream_release(s->stream);
        break;
    case EVENT:
        weir_event_release(s->event);
        break;
    case IN:
        weir_tensor_release(s->in);
        break;
    case OUT:
        weir_tensor_release(s->out);
        break;
    case KERNEL:
        weir_kernel_release(s->kernel);
        break;
    case GRAPH:
        weir_graph_destroy(s->graph);
        break;
    case PROGRAM:
        weir_program_release(s->program);
        break;
    case RUN:
        weir_run_release(s->run);
        break;
    case MEMBERS:
        break;
    }
}

static uint32_t random_state = 99;

static uint32_t random_below(uint32_t n) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % n;
}

static void shuffle(member order[MEMBERS]) {
    for (int i = 0; i < MEMBERS; i++) order[i] = (member)i;
    for (uint32_t i = MEMBERS - 1; i > 0; i--) {
        uint32_t j = random_below(i + 1);
        member kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* Releases in the given order; a late pool lets the work go after `held` releases, so the rest races with it. */
static void check_order(pool_kind kind, const member order[MEMBERS], int held) {
    weir_runtime_info before = runtime_info();
    float result[16], expected[16];
    atomic_int destroyed = 0;
    memset(result, 0, sizeof result);
    scene s = scene_create(kind, &destroyed, result);
    memcpy(expected, floats(s.in), sizeof expected);
    for (int i = 0; i < MEMBERS; i++) {
        if (i == held) test_pool_let_go(s.host);
        release_member(&s, order[i]);
    }
    test_pool_let_go(s.host);
    /* Two tasks have run, and four things were given back: the counter saw each of them once. */
    EVENTUALLY((void)runtime_info(), atomic_load(&destroyed) == 2 + DESTROYED);
    for (int i = 0; i < 16; i++) CHECK(result[i] == -expected[i]);
    test_pool_destroy(s.host);
    check_released(&before);
    CHECK_EQ(atomic_load(&destroyed), 2 + DESTROYED);
}

static void test_orders(void) {
    static const pool_kind kinds[] = {POOL_LATE, POOL_FIFO, POOL_LIFO, POOL_PARALLEL_FOR, POOL_ASYNCHRONOUS, POOL_FULL};
    member order[MEMBERS];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int first = 0; first < MEMBERS; first++) { /* each one first, the others as made, and as made backwards */
            int n = 0;
            order[n++] = (member)first;
            for (int m = 0; m < MEMBERS; m++) {
                if (m != first) order[n++] = (member)m;
            }
            check_order(kinds[k], order, MEMBERS);
            for (int i = 0; i < MEMBERS; i++) order[i] = (member)(MEMBERS - 1 - i);
        }
        check_order(kinds[k], order, MEMBERS);
        for (int round = 0; round < scale(200); round++) {
            shuffle(order);
            check_order(kinds[k], order, (int)random_below(MEMBERS + 1));
        }
    }
}

/* Settings may go as soon as they were used. */
static void test_settings_go_first(void) {
    weir_runtime_info before = runtime_info();
    weir_engine_attr *engine_attr = NULL;
    weir_stream_attr *stream_attr = NULL;
    weir_engine *engine = NULL;
    weir_stream *stream = NULL;
    weir_kernel *kernel = NULL;
    weir_threadpool *pool = NULL;
    weir_kernel_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_threadpool_create_inline(&pool));
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &engine_attr));
    CHECK_OK(weir_engine_attr_set_threadpool(engine_attr, pool));
    CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_CPU, &stream_attr));
    CHECK_OK(weir_stream_attr_set_threadpool(stream_attr, pool));
    const weir_kernel_options options = {.struct_size = sizeof options, .name = "clip"};
    weir_threadpool_release(pool);
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, engine_attr, &engine));
    weir_engine_attr_destroy(engine_attr);
    CHECK_OK(weir_stream_create(engine, 0, stream_attr, &stream));
    weir_stream_attr_destroy(stream_attr);
    CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), &options, &kernel));
    weir_engine_release(engine);
    CHECK_OK(weir_stream_get_engine(stream, &engine)); /* the stream keeps it, and it keeps the pool */
    CHECK_OK(weir_engine_get_threadpool(engine, &pool));
    int32_t width = 0;
    CHECK_OK(weir_threadpool_get_num_threads(pool, &width));
    CHECK_EQ(width, 1);
    CHECK_OK(weir_kernel_get_info(kernel, &info));
    CHECK(strcmp(info.name, "clip") == 0);
    weir_stream_release(stream);
    weir_kernel_release(kernel);
    check_released(&before);
}

typedef struct sharer {
    weir_tensor *tensor;
    weir_engine *engine;
    weir_threadpool *pool;
} sharer;

static void *share(void *arg) {
    sharer *s = arg;
    for (int i = 0; i < scale(20000); i++) {
        CHECK_OK(weir_tensor_retain(s->tensor));
        CHECK_OK(weir_engine_retain(s->engine));
        CHECK_OK(weir_threadpool_retain(s->pool));
        weir_threadpool_release(s->pool);
        weir_engine_release(s->engine);
        weir_tensor_release(s->tensor);
    }
    return NULL;
}

/* References are counted right when threads take and give them at once. */
static void test_shared_by_threads(void) {
    enum { THREADS = 4 };
    weir_runtime_info before = runtime_info();
    sharer s;
    pthread_t threads[THREADS];
    CHECK_OK(weir_threadpool_create_inline(&s.pool));
    s.engine = make_engine(s.pool);
    s.tensor = make_tensor(s.engine, vector_desc(1));
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, share, &s) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_EQ(runtime_info().tensors, before.tensors + 1);
    weir_tensor_release(s.tensor);
    weir_engine_release(s.engine);
    weir_threadpool_release(s.pool);
    check_released(&before);
}

/* What a call gives up while the caller is still inside of it. */
typedef struct given_up {
    weir_stream *stream;
    weir_threadpool *pool;
    atomic_int done;
} given_up;

static int32_t task_gives_up(void *arg) {
    given_up *g = arg;
    weir_stream_release(g->stream);
    atomic_store(&g->done, 1);
    return 0;
}

static int32_t kernel_gives_up(void *user, weir_kernel_context *context) {
    (void)context;
    return task_gives_up(user);
}

static void notice_gives_up(void *context, weir_status status, weir_run *run) {
    (void)run;
    CHECK_EQ(status, WEIR_OK);
    task_gives_up(context);
}

static int32_t region_gives_up(void *arg, int64_t begin, int64_t end, int32_t slot) {
    given_up *g = arg;
    (void)begin, (void)end, (void)slot;
    if (!atomic_exchange(&g->done, 1)) weir_threadpool_release(g->pool);
    return 0;
}

static int32_t does_nothing(void *user, weir_kernel_context *context) {
    (void)user, (void)context;
    return 0;
}

/* The last reference to a call's stream or pool goes in the work of that call: in a task, a kernel, a notice, a region,
 * on pools that do it at once and on threads that are faster than the caller. */
static void test_given_up_by_own_work(void) {
    for (int kind = 0; kind < 3; kind++) {
        weir_threadpool *pool = NULL;
        weir_threadpool_options two = {.struct_size = sizeof two, .num_threads = 2};
        if (kind == 1) CHECK_OK(weir_threadpool_create_inline(&pool));
        if (kind == 2) CHECK_OK(weir_threadpool_create_builtin(&two, &pool));
        weir_engine *engine = make_engine(pool);
        given_up g = {.pool = NULL};
        weir_host_kernel_desc desc = {.struct_size = sizeof desc, .name = "gives up", .compute = kernel_gives_up, .user = &g};
        weir_kernel *kernel = NULL, *nothing = NULL;
        CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
        desc.name = "nothing", desc.compute = does_nothing, desc.user = NULL;
        CHECK_OK(weir_kernel_create_host(engine, &desc, &nothing));
        weir_graph *graph = make_graph("notified");
        CHECK_OK(weir_graph_add_kernel(graph, "nothing", nothing, NULL, 0, NULL, 0, NULL));
        weir_program *program = compile(graph, engine);
        weir_graph_destroy(graph);
        weir_notice notice = {.struct_size = sizeof notice, .notify = notice_gives_up, .ctx = &g};
        weir_run_options told = {.struct_size = sizeof told, .notice = &notice};
        for (int i = 0; i < scale(200); i++) {
            for (int what = 0; what < 3; what++) {
                for (int later = 0; later < 2; later++) {
                    if (kind == 0 && later) continue; /* nobody would do it */
                    if (what == 2 && !later) continue; /* such a run is over when the call returns */
                    atomic_store(&g.done, 0);
                    g.stream = make_stream(engine, later ? WEIR_STREAM_ASYNCHRONOUS : WEIR_STREAM_DEFAULT, NULL, NULL);
                    if (what == 0) CHECK_OK(weir_enqueue_task(g.stream, task_gives_up, &g, NULL));
                    if (what == 1) CHECK_OK(weir_enqueue(g.stream, kernel, NULL, 0, NULL, 0));
                    if (what == 2) CHECK_OK(weir_program_run(program, g.stream, NULL, 0, NULL, 0, &told));
                    EVENTUALLY(atomic_load(&g.done));
                }
            }
        }
        weir_program_release(program);
        weir_kernel_release(kernel);
        weir_kernel_release(nothing);
        weir_engine_release(engine);
        weir_threadpool_release(pool);
        if (kind == 0) continue;
        atomic_store(&g.done, 0);
        if (kind == 1) CHECK_OK(weir_threadpool_create_inline(&g.pool));
        if (kind == 2) CHECK_OK(weir_threadpool_create_builtin(&two, &g.pool));
        weir_parallel_hint dear = {.struct_size = sizeof dear, .cost_ns = 1000};
        CHECK_OK(weir_parallel_for(g.pool, 1000, &dear, region_gives_up, &g));
        CHECK(atomic_load(&g.done));
    }
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_settings_go_first();
    test_shared_by_threads();
    test_orders();
    test_given_up_by_own_work();
    check_released(&before);
    return 0;
}
