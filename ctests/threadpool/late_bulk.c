/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A graph on a pool that has parallel_for only, whose other thread comes when everything is done: the caller runs the
 * nodes within its parallel_for, and waits for nobody.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "make.h"

enum { TASKS = 64, RUNS = 50, PATIENCE_MS = 2000 };

static struct {
    atomic_int ran, bulks;
    int all_ran; /* what `ran` is at the end of the run that called parallel_for */
    atomic_int by_caller_in_bulk;
    weir_task_fn fn;
    void *arg;
} s;

static _Thread_local int is_in_bulk;

static int32_t one_thread(void *ctx) {
    (void)ctx;
    return 1;
}

static void *come_late(void *unused) {
    const struct timespec moment = {0, 1000000};
    int ms;
    (void)unused;
    /* If the caller waits for this thread instead of running the nodes, it gets its help after a while, and the check
     * fails. */
    for (ms = 0; ms < PATIENCE_MS && atomic_load(&s.ran) < s.all_ran; ms++) nanosleep(&moment, NULL);
    s.fn(s.arg, 1);
    return NULL;
}

static int32_t parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    pthread_t other;
    int32_t i;
    (void)ctx;
    atomic_fetch_add(&s.bulks, 1);
    s.fn = fn;
    s.arg = arg;
    s.all_ran = (atomic_load(&s.ran) / TASKS + 1) * TASKS;
    if (n > 1 && pthread_create(&other, NULL, come_late, NULL) != 0) return 1;
    is_in_bulk++;
    fn(arg, 0);
    is_in_bulk--;
    if (n > 1) pthread_join(other, NULL);
    for (i = 2; i < n; i++) fn(arg, i);
    return 0;
}

static int32_t work(void *arg) {
    const struct timespec moment = {0, 20000};
    (void)arg;
    nanosleep(&moment, NULL);
    atomic_fetch_add(&s.by_caller_in_bulk, is_in_bulk > 0);
    atomic_fetch_add(&s.ran, 1);
    return 0;
}

int main(void) {
    weir_threadpool_vtable vtable = {0};
    weir_threadpool *pool = NULL;
    weir_engine *engine = make_engine(NULL);
    weir_graph *graph = NULL;
    weir_program *program = NULL;
    int i;

    vtable.struct_size = sizeof vtable;
    vtable.num_threads = one_thread;
    vtable.parallel_for = parallel_for;
    CHECK_OK(weir_threadpool_create(&vtable, NULL, &pool));
    CHECK_OK(weir_graph_create("late", &graph));
    for (i = 0; i < TASKS; i++) {
        weir_node node;
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        CHECK_OK(weir_graph_add_task(graph, name, work, NULL, NULL, 0, &node));
    }
    const weir_compile_options compile = {.struct_size = sizeof compile, .hop_ns = 1};
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &compile, &program));
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = pool};
    for (i = 1; i <= RUNS; i++) {
        CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, &options));
        CHECK(atomic_load(&s.ran) == i * TASKS);
    }
    CHECK(atomic_load(&s.bulks) >= RUNS);
    /* All but the few that come before the pool is asked. */
    CHECK(atomic_load(&s.by_caller_in_bulk) >= RUNS * (TASKS - 4));
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    return 0;
}
