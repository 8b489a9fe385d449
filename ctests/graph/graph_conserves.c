/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A run is work-conserving: while a thread is idle, no ready node waits for the end of another one. Without a clock.
 *
 * Some nodes of a random graph are long: they end when the test lets them, and it lets one end only when as many are
 * under way as there are threads, or when all have begun that could have. A node could have begun if all long nodes that
 * come before it have ended, whatever short ones lie between. So a run that leaves a node behind another one stays
 * where it is, and the test says which node nobody came for.
 *
 * A pool that has a parallel_for only, and waits in it, is left out: who has left that call cannot be called again before
 * all have.
 */

#include <pthread.h>
#include <stdbool.h>

#include "check.h"
#include "test_pools.h"

enum { MOST_NODES = 40, RUNS = 4 };

typedef struct node {
    bool is_long, has_begun, may_end, has_ended;
} node;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static node nodes[MOST_NODES];
static bool before[MOST_NODES][MOST_NODES];
static int count, num_threads;
static char where[96];

static uint64_t seed;

static unsigned draw(unsigned below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % below;
}

static int32_t work(void *arg) {
    node *self = arg;
    if (!self->is_long) return WEIR_OK;
    /* No shorter than what is shown to other threads, however fast the test is. */
    sleep_ns(20000);
    pthread_mutex_lock(&lock);
    self->has_begun = true;
    pthread_cond_broadcast(&changed);
    while (!self->may_end) pthread_cond_wait(&changed, &lock);
    self->has_ended = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return WEIR_OK;
}

/* A long node that could have begun and has not; -1: there is none. */
static int left_behind(void) {
    for (int i = 0; i < count; i++) {
        bool is_due = nodes[i].is_long && !nodes[i].has_begun;
        for (int j = 0; j < i && is_due; j++) is_due = !before[j][i] || !nodes[j].is_long || nodes[j].has_ended;
        if (is_due) return i;
    }
    return -1;
}

static int under_way(int *out_list) {
    int number = 0;
    for (int i = 0; i < count; i++) {
        if (nodes[i].is_long && nodes[i].has_begun && !nodes[i].has_ended) out_list[number++] = i;
    }
    return number;
}

/* Lets the long nodes of one run end, one after the other. */
static void *let_end(void *arg) {
    (void)arg;
    pthread_mutex_lock(&lock);
    for (;;) {
        int list[MOST_NODES];
        const uint64_t give_up = now_ns() + UINT64_C(30000000000);
        int number = under_way(list);
        while (number < num_threads && left_behind() >= 0) {
            if (now_ns() > give_up) {
                fprintf(stderr, "%d of %d threads are in a node, and nobody comes for node %d of %d (%s)\n", number,
                        num_threads, left_behind(), count, where);
                check_failed(__FILE__, __LINE__, "no ready node is left behind", "is false");
            }
            const uint64_t until = now_ns() + 100000000;
            struct timespec wake;
            clock_gettime(CLOCK_REALTIME, &wake);
            wake.tv_nsec += (long)(until - now_ns());
            if (wake.tv_nsec >= 1000000000) wake.tv_nsec -= 1000000000, wake.tv_sec++;
            pthread_cond_timedwait(&changed, &lock, &wake);
            number = under_way(list);
        }
        if (number == 0) break;
        const int ends = list[draw((unsigned)number)];
        nodes[ends].may_end = true;
        pthread_cond_broadcast(&changed);
        while (!nodes[ends].has_ended) pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static weir_program *random_program(weir_engine *cpu) {
    weir_graph *graph = NULL;
    weir_program *program = NULL;
    weir_node ids[MOST_NODES];
    const unsigned density = 1 + draw(12), longs = 2 + draw(6), hints = draw(3);
    count = 2 + (int)draw(MOST_NODES - 2);
    CHECK_OK(weir_graph_create("conserves", &graph));
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        nodes[i] = (node){.is_long = draw(8) < longs};
        /* No costs, some that are of the right order, or the wrong way round. */
        const uint64_t cost_ns = hints == 0 ? 0 : nodes[i].is_long == (hints == 1) ? 100000 : 100;
        CHECK_OK(weir_graph_add_task(graph, name, work, &nodes[i], NULL, cost_ns, &ids[i]));
        for (int j = 0; j < i; j++) {
            before[j][i] = draw(64) < density;
            if (before[j][i]) CHECK_OK(weir_graph_add_control_edge(graph, ids[j], ids[i]));
        }
    }
    for (int via = 0; via < count; via++) {
        for (int i = via + 1; i < count; i++) {
            for (int j = 0; j < via; j++) before[j][i] |= before[j][via] && before[via][i];
        }
    }
    /* On a machine that is busy enough one thread would rightly do everything. */
    const weir_compile_options options = {.struct_size = sizeof options, .hop_ns = 1000};
    CHECK_OK(weir_graph_compile(graph, &cpu, 1, &options, &program));
    weir_graph_destroy(graph);
    /* What costs that are the wrong way round hide is found out by a run. */
    if (hints == 2) {
        for (int i = 0; i < count; i++) nodes[i].may_end = true;
        for (int i = 0; i < 3; i++) CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    }
    return program;
}

static void on_pool(weir_engine *cpu, weir_threadpool *pool, const char *name, int threads, int graphs) {
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = pool};
    num_threads = threads;
    for (int g = 0; g < graphs; g++) {
        seed = (uint64_t)g * 1000 + (uint64_t)threads;
        weir_program *program = random_program(cpu);
        for (int i = 0; i < RUNS; i++) {
            snprintf(where, sizeof where, "%s with %d threads, graph %d, run %d", name, threads, g, i);
            for (int n = 0; n < count; n++) nodes[n] = (node){.is_long = nodes[n].is_long};
            pthread_t controller;
            CHECK(pthread_create(&controller, NULL, let_end, NULL) == 0);
            CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, &options));
            CHECK(pthread_join(controller, NULL) == 0);
            for (int n = 0; n < count; n++) CHECK(!nodes[n].is_long || nodes[n].has_ended);
        }
        weir_program_release(program);
    }
}

int main(int argc, char **argv) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_LIFO, POOL_ASYNCHRONOUS, POOL_FULL};
    const int graphs = argc > 1 ? atoi(argv[1]) : scale(28);
    weir_engine *cpu = NULL;
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (int threads = 2; threads <= 8; threads += 3) {
            weir_threadpool *pool = NULL;
            test_pool *made = test_pool_create_exact(kinds[i], threads, &pool);
            /* The caller is one more. */
            on_pool(cpu, pool, pool_kind_name(kinds[i]), threads + 1, graphs);
            weir_threadpool_release(pool);
            test_pool_destroy(made);
        }
    }
    for (int threads = 1; threads <= 7; threads += 3) {
        weir_threadpool_attr *attr = NULL;
        weir_threadpool *pool = NULL;
        CHECK_OK(weir_threadpool_attr_create(&attr));
        CHECK_OK(weir_threadpool_attr_set_num_threads(attr, threads));
        CHECK_OK(weir_threadpool_create_builtin(attr, &pool));
        weir_threadpool_attr_destroy(attr);
        on_pool(cpu, pool, "built-in", threads + 1, 2 * graphs);
        weir_threadpool_release(pool);
    }
    weir_engine_release(cpu);
    return 0;
}
