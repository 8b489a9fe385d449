/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Random graphs of cheap kernels, dear ones and some that complete later, on a pool that has a parallel_for only whose
 * caller takes part: the run's caller is now inside of that call and now outside, and what returns may find it on its
 * way out. Each run ends, with the right numbers.
 */

#include <stdbool.h>

#include "later.h"

enum { THREADS = 2, MOST_NODES = 48, RUNS = 12 };

/* ---- the pool ---- */

static struct {
    pthread_t threads[THREADS];
    pthread_mutex_t mutex, calls;
    pthread_cond_t changed;
    weir_task_fn fn;
    void *arg;
    int32_t next, end, left;
    bool ending;
} s = {.mutex = PTHREAD_MUTEX_INITIALIZER, .calls = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Takes indices of the call under way as long as there are some. With the mutex. */
static void take_part(void) {
    while (s.next < s.end) {
        const weir_task_fn fn = s.fn;
        void *const arg = s.arg;
        const int32_t i = s.next++;
        pthread_mutex_unlock(&s.mutex);
        fn(arg, i);
        pthread_mutex_lock(&s.mutex);
        if (--s.left == 0) pthread_cond_broadcast(&s.changed);
    }
}

static void *serve(void *unused) {
    (void)unused;
    pthread_mutex_lock(&s.mutex);
    while (!s.ending) {
        take_part();
        if (!s.ending) pthread_cond_wait(&s.changed, &s.mutex);
    }
    pthread_mutex_unlock(&s.mutex);
    return NULL;
}

static int32_t num_threads(void *ctx) {
    (void)ctx;
    return THREADS;
}

static int32_t parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    (void)ctx;
    pthread_mutex_lock(&s.calls); /* one call at a time */
    pthread_mutex_lock(&s.mutex);
    s.fn = fn, s.arg = arg, s.next = 0, s.end = s.left = n;
    pthread_cond_broadcast(&s.changed);
    take_part();
    while (s.left > 0) pthread_cond_wait(&s.changed, &s.mutex);
    pthread_mutex_unlock(&s.mutex);
    pthread_mutex_unlock(&s.calls);
    return 0;
}

/* ---- the graphs ---- */

static uint64_t seed;

static unsigned draw(unsigned below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % below;
}

static int32_t compute(void *user, weir_kernel_context *context) {
    const uint64_t *ns = user, end = now_ns() + *ns;
    add_one(context);
    while (*ns > 0 && now_ns() < end) continue;
    return WEIR_OK;
}

enum { CHEAP, DEAR, LATER, AT_ONCE, KINDS };

static weir_kernel *kernels[KINDS];

/* A tree of kernels that add one; every leaf is an output. `depths`: what the outputs are above the input. */
static weir_program *random_program(weir_engine *cpu, float *depths, size_t *out_outputs) {
    const weir_tensor_desc desc = vector_desc(WIDTH);
    const int count = 2 + (int)draw(MOST_NODES - 2);
    const unsigned near = 1 + draw(12), dear = 1 + draw(6), late = 1 + draw(4);
    weir_graph *graph = make_graph("takes part");
    weir_value values[MOST_NODES + 1];
    int depth[MOST_NODES + 1] = {0};
    bool has_reader[MOST_NODES + 1] = {false};
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &values[0]));
    for (int i = 1; i <= count; i++) {
        char name[16];
        const int from = i - 1 - (int)draw((unsigned)i < near ? (unsigned)i : near);
        const int kind = draw(8) < late ? (draw(4) == 0 ? AT_ONCE : LATER) : draw(8) < dear ? DEAR : CHEAP;
        snprintf(name, sizeof name, "n%d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, kernels[kind], &values[from], 1, &values[i], 1, NULL));
        depth[i] = depth[from] + 1;
        has_reader[from] = true;
    }
    *out_outputs = 0;
    for (int i = 1; i <= count; i++) {
        char name[16];
        if (has_reader[i]) continue;
        snprintf(name, sizeof name, "y%d", i);
        CHECK_OK(weir_graph_add_output(graph, name, values[i]));
        depths[(*out_outputs)++] = (float)depth[i];
    }
    weir_program *program = NULL;
    const weir_compile_options options = {.struct_size = sizeof options, .hop_ns = 1000};
    CHECK_OK(weir_graph_compile(graph, &cpu, 1, &options, &program));
    weir_graph_destroy(graph);
    return program;
}

static void run_graphs(weir_engine *cpu, int graphs) {
    weir_tensor *x = make_tensor(cpu, vector_desc(WIDTH)), *outputs[MOST_NODES];
    fill(x, 3);
    for (int i = 0; i < MOST_NODES; i++) outputs[i] = make_tensor(cpu, vector_desc(WIDTH));
    for (int g = 0; g < graphs; g++) {
        float depths[MOST_NODES];
        size_t count = 0;
        seed = (uint64_t)g;
        weir_program *program = random_program(cpu, depths, &count);
        for (int run = 0; run < RUNS; run++) {
            CHECK_OK(weir_program_run(program, NULL, &x, 1, outputs, count, NULL));
            for (size_t i = 0; i < count; i++) {
                CHECK(floats(outputs[i])[WIDTH - 1] == floats(x)[WIDTH - 1] + depths[i]);
                memset(floats(outputs[i]), 0, WIDTH * sizeof(float));
            }
        }
        weir_program_release(program);
    }
    weir_tensor_release(x);
    for (int i = 0; i < MOST_NODES; i++) weir_tensor_release(outputs[i]);
}

int main(int argc, char **argv) {
    static uint64_t cheap_ns = 0, dear_ns = 6000;
    static later elsewhere = {.how = ELSEWHERE}, at_once = {.how = INLINE};
    const weir_threadpool_vtable vtable = {
        .struct_size = sizeof vtable, .num_threads = num_threads, .parallel_for = parallel_for};
    const weir_tensor_desc desc = vector_desc(WIDTH);
    weir_threadpool *pool = NULL;
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&s.threads[i], NULL, serve, NULL) == 0);
    finisher_start();
    CHECK_OK(weir_threadpool_create(&vtable, NULL, &pool));
    weir_engine *cpu = make_engine(pool);
    kernels[CHEAP] = make_unary_kernel(cpu, "cheap", compute, &cheap_ns, &desc);
    kernels[DEAR] = make_unary_kernel(cpu, "dear", compute, &dear_ns, &desc);
    kernels[LATER] = make_later_kernel(cpu, "later", &elsewhere);
    kernels[AT_ONCE] = make_later_kernel(cpu, "at once", &at_once);
    run_graphs(cpu, argc > 1 ? atoi(argv[1]) : scale(300));
    for (int i = 0; i < KINDS; i++) weir_kernel_release(kernels[i]);
    weir_engine_release(cpu);
    weir_threadpool_release(pool);
    finisher_stop();
    pthread_mutex_lock(&s.mutex);
    s.ending = true;
    pthread_cond_broadcast(&s.changed);
    pthread_mutex_unlock(&s.mutex);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(s.threads[i], NULL) == 0);
    return 0;
}
