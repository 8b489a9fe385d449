/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * weir_program_run_many of programs whose kernels complete later: any number of runs, on any pool, from a thread of the
 * host's, however fast what was started completes. Several are under way at once where there are threads for it. In a
 * worker of a pool the wait is refused.
 */

#include <weir/ops.h>
#include <weir/inspect.h>

#include "later.h"

enum { MOST = 24 };

typedef struct world {
    weir_engine *engine;
    weir_program *program;
    weir_tensor *inputs[MOST], *outputs[MOST];
    later first, second;
} world;

/* x -> later -> relu -> later, y = relu(x + 1) + 1. */
static world *make_world(weir_threadpool *pool, how how) {
    world *w = calloc(1, sizeof *w);
    CHECK(w != NULL);
    weir_tensor_desc desc = vector_desc(WIDTH);
    w->engine = make_engine(pool);
    w->first.how = w->second.how = how;
    weir_kernel *first = make_later_kernel(w->engine, "first", &w->first);
    weir_kernel *second = make_later_kernel(w->engine, "second", &w->second), *relu = NULL;
    weir_graph *graph = make_graph("late");
    weir_value v;
    CHECK_OK(weir_kernel_create_eltwise(w->engine, ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &v));
    CHECK_OK(weir_graph_add_kernel(graph, "first", first, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "relu", relu, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "second", second, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", v));
    w->program = compile(graph, w->engine);
    for (int i = 0; i < MOST; i++) {
        w->inputs[i] = make_tensor(w->engine, desc);
        w->outputs[i] = make_tensor(w->engine, desc);
        fill(w->inputs[i], i);
    }
    weir_kernel_release(first);
    weir_kernel_release(relu);
    weir_kernel_release(second);
    weir_graph_destroy(graph);
    return w;
}

static void free_world(world *w) {
    for (int i = 0; i < MOST; i++) {
        weir_tensor_release(w->inputs[i]);
        weir_tensor_release(w->outputs[i]);
    }
    weir_program_release(w->program);
    weir_engine_release(w->engine);
    free(w);
}

static weir_status run_many(world *w, size_t count) {
    return weir_program_run_many(w->program, count, w->inputs, 1, w->outputs, 1, NULL);
}

static void check_results(world *w, size_t count) {
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < WIDTH; k++) {
            float x = floats(w->inputs[i])[k] + 1;
            CHECK(floats(w->outputs[i])[k] == (x > 0 ? x : 0) + 1);
        }
        memset(floats(w->outputs[i]), 0, WIDTH * sizeof(float));
    }
}

static void test_counts(weir_threadpool *pool) {
    const how ways[] = {INLINE, ELSEWHERE, RACING};
    for (size_t way = 0; way < 3; way++) {
        world *w = make_world(pool, ways[way]);
        for (int round = 0; round < scale(20); round++) {
            for (size_t count = 0; count <= 5; count++) {
                CHECK_OK(run_many(w, count));
                check_results(w, count);
            }
            CHECK_OK(run_many(w, MOST));
            check_results(w, MOST);
        }
        free_world(w);
    }
}

/* The first failure ends the rest; what was started is waited for. */
static void test_failure(weir_threadpool *pool) {
    world *w = make_world(pool, ELSEWHERE);
    w->second.status = WEIR_DATA_LOSS;
    w->second.text = "as planned";
    CHECK_CODE(run_many(w, MOST), WEIR_DATA_LOSS, "program 'late' instance ");
    CHECK_TEXT(weir_last_error_message(), "as planned");
    CHECK(atomic_load(&w->second.begun) >= 1 && atomic_load(&w->second.begun) < MOST);
    w->second.status = WEIR_OK;
    w->second.text = NULL;
    CHECK_OK(run_many(w, MOST));
    check_results(w, MOST);
    free_world(w);
}

/* Two runs are under way before either kernel completes: the second of the two to begin is completed by hand, and then
 * the first. */
typedef struct pair {
    pthread_mutex_t mutex;
    job jobs[2];
    int count;
} pair;

static int32_t begin_in_pairs(void *user, weir_kernel_context *context, weir_completion *done) {
    pair *p = user;
    job both[2];
    int count = 0;
    pthread_mutex_lock(&p->mutex);
    p->jobs[p->count++] = (job){context, done, WEIR_OK, NULL};
    if (p->count == 2) {
        memcpy(both, p->jobs, sizeof both);
        count = 2;
        p->count = 0;
    }
    pthread_mutex_unlock(&p->mutex);
    while (count > 0) finish(&both[--count]);
    return WEIR_OK;
}

static void test_several_at_once(weir_threadpool *pool) {
    pair pairs = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_engine *engine = make_engine(pool);
    weir_host_kernel_desc kernel_desc = make_kernel_desc("pairs", NULL, &pairs);
    weir_kernel *kernel = NULL;
    weir_tensor *inputs[4], *outputs[4];
    weir_graph *graph = make_graph("pairs");
    weir_value v;
    kernel_desc.compute_async = begin_in_pairs;
    kernel_desc.num_inputs = kernel_desc.num_outputs = 1;
    kernel_desc.inputs = kernel_desc.outputs = &desc;
    CHECK_OK(weir_kernel_create_host(engine, &kernel_desc, &kernel));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &v));
    CHECK_OK(weir_graph_add_kernel(graph, "pairs", kernel, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", v));
    weir_program *program = compile(graph, engine);
    for (int i = 0; i < 4; i++) {
        inputs[i] = make_tensor(engine, desc);
        outputs[i] = make_tensor(engine, desc);
        fill(inputs[i], i);
    }
    CHECK_OK(weir_program_run_many(program, 4, inputs, 1, outputs, 1, NULL));
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < WIDTH; k++) CHECK(floats(outputs[i])[k] == floats(inputs[i])[k] + 1);
        weir_tensor_release(inputs[i]);
        weir_tensor_release(outputs[i]);
    }
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    weir_engine_release(engine);
}

/* What a deadline leaves out is not begun. */
static void test_deadline(weir_threadpool *pool) {
    world *w = make_world(pool, ELSEWHERE);
    const weir_run_options options = {.struct_size = sizeof options, .deadline_ns = 1};
    CHECK_CODE(weir_program_run_many(w->program, MOST, w->inputs, 1, w->outputs, 1, &options), WEIR_DEADLINE_EXCEEDED,
               "program 'late' instance 0");
    free_world(w);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    finisher_start();
    test_counts(NULL);
    test_failure(NULL);
    test_deadline(NULL);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        if (kind == POOL_LATE) continue;
        for (int threads = 1; threads <= 3; threads += 2) {
            weir_threadpool *pool = NULL;
            test_pool *of = test_pool_create(kind, threads, &pool);
            test_counts(pool);
            test_failure(pool);
            test_deadline(pool);
            test_several_at_once(pool);
            weir_threadpool_release(pool);
            test_pool_destroy(of);
        }
    }
    finisher_stop();
    check_released(&before);
    return 0;
}
