/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * No ready node waits for the end of another one while a thread is idle: shown without a clock.
 *
 * Two nodes of a graph, neither of which comes before the other, each wait until the other one has begun. The rest does
 * nothing, or takes longer than threads look around for work. Whoever leaves what is ready behind a node that it is in,
 * or asks nobody to come for it, never ends. All graphs of up to five nodes, and a part of those of six, on every kind
 * of pool that has a thread; several runs each, the first of which knows no costs. And runs go on where all but one of
 * the pool's threads are in another run's node, and nobody can come.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "check.h"
#include "test_pools.h"

enum { MOST_NODES = 6, RUNS = 2 };

/* The pool, for who reads of a failure. */
static char where[64];

/* The pair that meets, and whether it has: begun counts both. */
static atomic_int begun;
static atomic_int missed;

/* A lie about costs is found out in a run in which nobody meets: who lies waits for so long only. */
static uint64_t patience_ns;

static int32_t meet(void *arg) {
    (void)arg;
    const uint64_t end = now_ns() + patience_ns;
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&begun) < 2) {
        if (now_ns() > end) {
            atomic_fetch_add(&missed, 1);
            break;
        }
        sleep_ns(20000);
    }
    sleep_ns(50000);
    return WEIR_OK;
}

/* How long the others take: long enough for threads to leave that look for work, or no time at all. */
static uint64_t other_ns;

static int32_t nothing(void *arg) {
    (void)arg;
    if (other_ns > 0) sleep_ns(other_ns);
    return WEIR_OK;
}

/* A graph of `count` nodes: edge (a, b), a < b, is there if its bit is. */
typedef struct shape {
    int count;
    bool edge[MOST_NODES][MOST_NODES];
    bool before[MOST_NODES][MOST_NODES];
} shape;

static shape shape_of(int count, unsigned bits) {
    shape s = {.count = count};
    for (int b = 0; b < count; b++) {
        for (int a = 0; a < b; a++, bits >>= 1) s.edge[a][b] = s.before[a][b] = (bits & 1) != 0;
    }
    for (int via = 0; via < count; via++) {
        for (int a = 0; a < via; a++) {
            for (int b = via + 1; b < count; b++) s.before[a][b] |= s.before[a][via] && s.before[via][b];
        }
    }
    return s;
}

/* The pair with this number of those of which neither comes before the other; false if there are none. */
static bool pair_of(const shape *s, unsigned number, int *first, int *second) {
    int pairs = 0;
    for (int round = 0; round < 2; round++) {
        int at = 0;
        for (int b = 0; b < s->count; b++) {
            for (int a = 0; a < b; a++) {
                if (s->before[a][b]) continue;
                if (round == 1 && at == (int)(number % (unsigned)pairs)) {
                    *first = a, *second = b;
                    return true;
                }
                at++;
            }
        }
        pairs = at;
        if (pairs == 0) return false;
    }
    return false;
}

/* Waits in the first node of another run until it may go on. */
static atomic_int holds;
static atomic_int may_go_on;

static int32_t hold(void *arg) {
    (void)arg;
    atomic_fetch_add(&holds, 1);
    while (atomic_load(&may_go_on) == 0) sleep_ns(100000);
    return WEIR_OK;
}

/* `first` and `second` do this, the others nothing. */
static weir_program *compile_of(weir_engine *cpu, const shape *s, int first, int second, weir_host_fn these,
                                uint64_t cost_ns) {
    weir_graph *graph = NULL;
    weir_program *program = NULL;
    weir_node nodes[MOST_NODES];
    CHECK_OK(weir_graph_create("meets", &graph));
    for (int i = 0; i < s->count; i++) {
        const char name[2] = {(char)('a' + i), 0};
        const bool is_one = i == first || i == second;
        CHECK_OK(weir_graph_add_task(graph, name, is_one ? these : nothing, NULL, NULL, cost_ns, &nodes[i]));
    }
    for (int b = 0; b < s->count; b++) {
        for (int a = 0; a < b; a++) {
            if (s->edge[a][b]) CHECK_OK(weir_graph_add_control_edge(graph, nodes[a], nodes[b]));
        }
    }
    /* On a machine that is busy enough one thread would rightly do both. */
    const weir_compile_options options = {.struct_size = sizeof options, .hop_ns = 1000};
    CHECK_OK(weir_graph_compile(graph, &cpu, 1, &options, &program));
    weir_graph_destroy(graph);
    return program;
}

static weir_program *compile(weir_engine *cpu, const shape *s, int first, int second, uint64_t cost_ns) {
    return compile_of(cpu, s, first, second, meet, cost_ns);
}

/* True if the two have met. */
static bool run(weir_program *program, const weir_run_options *options) {
    atomic_store(&begun, 0);
    atomic_store(&missed, 0);
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, options));
    CHECK_EQ(atomic_load(&begun), 2);
    return atomic_load(&missed) == 0;
}

/* Every graph of `count` nodes whose number is a multiple of `step`; another pair each time. */
static void all_graphs(weir_engine *cpu, const weir_run_options *options, int count, unsigned step) {
    const unsigned graphs = 1u << (count * (count - 1) / 2);
    for (unsigned bits = 0; bits < graphs; bits += step) {
        const shape s = shape_of(count, bits);
        int first = 0, second = 0;
        if (!pair_of(&s, bits * 2654435761u >> 16, &first, &second)) continue;
        weir_program *program = compile(cpu, &s, first, second, 0);
        for (int i = 0; i < RUNS; i++) {
            if (run(program, options)) continue;
            fprintf(stderr, "graph %u of %d nodes, %d meets %d, run %d, %s\n", bits, count, first, second, i, where);
            CHECK(false);
        }
        weir_program_release(program);
    }
}

/* Costs that lie: every node says that it takes a nanosecond. A run finds out; those after it meet. */
static void lies(weir_engine *cpu, const weir_run_options *options, unsigned step) {
    patience_ns = 3000000;
    for (unsigned bits = 0; bits < 1024; bits += step) {
        const shape s = shape_of(5, bits);
        int first = 0, second = 0, runs = 0;
        if (!pair_of(&s, bits, &first, &second)) continue;
        weir_program *program = compile(cpu, &s, first, second, 1);
        while (!run(program, options)) CHECK(++runs < 1000);
        weir_program_release(program);
    }
    patience_ns = UINT64_C(20000000000);
}

static void on_pool(weir_engine *cpu, weir_threadpool *pool, unsigned step) {
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = pool};
    for (int count = 2; count <= 4; count++) all_graphs(cpu, &options, count, 1);
    all_graphs(cpu, &options, 5, step);
    all_graphs(cpu, &options, 6, 37 * step);
    lies(cpu, &options, 41 * step);
    other_ns = 200000;
    for (int count = 3; count <= 4; count++) all_graphs(cpu, &options, count, 1);
    all_graphs(cpu, &options, 5, 11 * step);
    other_ns = 0;
}

/* A run in a thread of its own. */
typedef struct aside {
    weir_program *program;
    const weir_run_options *options;
    int runs;
    atomic_int over;
    pthread_t thread;
} aside;

static void *run_aside(void *arg) {
    aside *a = arg;
    for (int i = 0; i < a->runs; i++) CHECK_OK(weir_program_run(a->program, NULL, NULL, 0, NULL, 0, a->options));
    atomic_store(&a->over, 1);
    return NULL;
}

static void begin_aside(aside *a) {
    CHECK_EQ(pthread_create(&a->thread, NULL, run_aside, a), 0);
}

/* All threads of the pool but one are in a node of another run, and no other one can come. */
static void with_one_left(weir_engine *cpu, weir_threadpool *pool, int threads) {
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = pool};
    const shape held = shape_of(threads, 0);
    const uint64_t cost_ns = 1000000;
    for (unsigned bits = 0; bits < 64; bits += 3) {
        const shape s = shape_of(4, bits);
        atomic_store(&holds, 0);
        atomic_store(&may_go_on, 0);
        other_ns = 200000;
        aside holding = {.options = &options, .runs = 1}, going_on = {.options = &options, .runs = 3};
        holding.program = compile_of(cpu, &held, 0, threads - 2, hold, cost_ns);
        going_on.program = compile_of(cpu, &s, -1, -1, nothing, cost_ns);
        begin_aside(&holding);
        EVENTUALLY(atomic_load(&holds) == threads - 1);
        begin_aside(&going_on);
        EVENTUALLY(atomic_load(&going_on.over));
        CHECK_EQ(atomic_load(&holding.over), 0);
        atomic_store(&may_go_on, 1);
        CHECK_EQ(pthread_join(going_on.thread, NULL), 0);
        CHECK_EQ(pthread_join(holding.thread, NULL), 0);
        weir_program_release(going_on.program);
        weir_program_release(holding.program);
        other_ns = 0;
    }
}

int main(void) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_LIFO, POOL_PARALLEL_FOR, POOL_ASYNCHRONOUS, POOL_FULL};
    weir_engine *cpu = NULL;
    patience_ns = UINT64_C(20000000000);
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        /* In a parallel_for that waits the caller may only wait. */
        for (int threads = kinds[i] == POOL_PARALLEL_FOR ? 2 : 1; threads <= 3; threads += is_slow() ? 2 : 1) {
            weir_threadpool *pool = NULL;
            snprintf(where, sizeof where, "%s of %d", pool_kind_name(kinds[i]), threads);
            test_pool *made = test_pool_create_exact(kinds[i], threads, &pool);
            on_pool(cpu, pool, threads == 1 ? 3 : 17);
            if (threads > 1) with_one_left(cpu, pool, threads);
            weir_threadpool_release(pool);
            test_pool_destroy(made);
        }
    }
    for (int threads = 1; threads <= 3; threads += is_slow() ? 2 : 1) {
        snprintf(where, sizeof where, "built-in of %d", threads);
        weir_threadpool *pool = NULL;
        const weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = threads};
        CHECK_OK(weir_threadpool_create_builtin(&options, &pool));
        on_pool(cpu, pool, threads == 1 ? 3 : 17);
        weir_threadpool_release(pool);
    }
    weir_engine_release(cpu);
    return 0;
}
