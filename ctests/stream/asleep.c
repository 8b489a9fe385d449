/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A thread that waits sleeps: while a run, a group or a device has something long under way, all threads of the process
 * together take a small part of the time of one processor, whatever they wait for and however many they are. By
 * getrusage, over so long a time that looking around, which is bounded, does not count.
 */

#include <pthread.h>
#include <sys/resource.h>
#include <weir/task_group.h>
#include <weir/ops.h>
#include <weir/testing.h>

#include "make.h"
#include "test_pools.h"

enum { LONG_MS = 150, THREADS = 4 };

static uint64_t cpu_ns(void) {
    struct rusage use;
    CHECK(getrusage(RUSAGE_SELF, &use) == 0);
    const int64_t seconds = use.ru_utime.tv_sec + use.ru_stime.tv_sec, us = use.ru_utime.tv_usec + use.ru_stime.tv_usec;
    return (uint64_t)(seconds * 1000000 + us) * 1000;
}

/* The processor time of the process from the moment on at which something long has begun until just before its end. */
static uint64_t taken_ns;

static int32_t take_long(void *arg) {
    (void)arg;
    sleep_ns(LONG_MS * UINT64_C(100000)); /* until all others have looked around */
    const uint64_t before = cpu_ns();
    sleep_ns(LONG_MS * UINT64_C(900000));
    taken_ns = cpu_ns() - before;
    return WEIR_OK;
}

static int32_t nothing(void *arg) {
    (void)arg;
    return WEIR_OK;
}

static void check_asleep(const char *where, const char *what, int number) {
    /* Valgrind translates what runs for the first time, which a busy machine may put off until then, and is a process
     * of one thread. */
    const uint64_t percent = taken_ns * 100 / (LONG_MS * UINT64_C(900000)), most = under_valgrind() ? 75 : 25;
    if (percent > most && !(under_valgrind() && number == 0)) {
        fprintf(stderr, "%s, %s, time %d: %d %% of a processor while nothing is to be done\n", where, what, number,
                (int)percent);
        check_failed(__FILE__, __LINE__, "the threads that wait sleep", "is false");
    }
    taken_ns = UINT64_MAX / 1000;
}

/* Some cheap nodes before, beside and behind the long one. */
static weir_program *one_long_node(weir_engine *cpu) {
    weir_graph *graph = make_graph("long");
    weir_node before[8], long_node, behind;
    CHECK_OK(weir_graph_add_task(graph, "long", take_long, NULL, NULL, 0, &long_node));
    CHECK_OK(weir_graph_add_task(graph, "behind", nothing, NULL, NULL, 0, &behind));
    CHECK_OK(weir_graph_add_control_edge(graph, long_node, behind));
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "cheap %d", i);
        CHECK_OK(weir_graph_add_task(graph, name, nothing, NULL, NULL, 0, &before[i]));
        CHECK_OK(weir_graph_add_control_edge(graph, before[i], i % 2 == 0 ? long_node : behind));
    }
    weir_program *program = compile(graph, cpu);
    weir_graph_destroy(graph);
    return program;
}

static void *wait_for_run(void *run) {
    CHECK_OK(weir_run_synchronize((weir_run *)run, WEIR_TIMEOUT_INFINITE));
    return NULL;
}

static void in_runs(weir_engine *cpu, weir_threadpool *pool, const char *where) {
    weir_program *program = one_long_node(cpu);
    weir_stream *stream = make_stream(cpu, WEIR_STREAM_ASYNCHRONOUS, pool, NULL);
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = pool};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, &options));
        check_asleep(where, "a run in its caller", i);
    }
    for (int i = 0; i < 2; i++) {
        weir_run *run = NULL;
        pthread_t waiters[THREADS];
        CHECK_OK(weir_program_start(program, stream, NULL, 0, NULL, 0, &options, &run));
        for (int t = 0; t < THREADS; t++) CHECK(pthread_create(&waiters[t], NULL, wait_for_run, run) == 0);
        for (int t = 0; t < THREADS; t++) CHECK(pthread_join(waiters[t], NULL) == 0);
        check_asleep(where, "a run for which four threads wait", i);
        weir_run_release(run);
    }
    weir_stream_release(stream);
    weir_program_release(program);
}

static void in_a_group(weir_threadpool *pool, const char *where) {
    weir_task_group *group = NULL;
    CHECK_OK(weir_task_group_create(pool, &group));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(weir_task_group_spawn(group, take_long, NULL, NULL));
        for (int n = 0; n < 20; n++) CHECK_OK(weir_task_group_spawn(group, nothing, NULL, NULL));
        CHECK_OK(weir_task_group_synchronize(group));
        check_asleep(where, "a task group", i);
    }
    weir_task_group_release(group);
}

/* A run that waits for a device. */
static void beside_a_device(weir_engine *cpu, weir_threadpool *pool, const char *where) {
    const weir_emulation emulation = {
        .struct_size = sizeof emulation, .kernel_ns = LONG_MS * UINT64_C(1000000)};
    const weir_tensor_desc desc = vector_desc(16);
    weir_engine_attr *attr = NULL;
    weir_engine *device = NULL, *engines[2];
    weir_kernel *relu = NULL;
    weir_program *program = NULL;
    weir_value in, out;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, attr, &device));
    weir_engine_attr_destroy(attr);
    engines[0] = cpu, engines[1] = device;
    weir_graph *graph = make_graph("device");
    CHECK_OK(weir_kernel_create_eltwise(device, ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_graph_add_input(graph, "in", &desc, &in));
    CHECK_OK(weir_graph_add_kernel(graph, "relu", relu, &in, 1, &out, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "out", out));
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = pool};
    weir_tensor *tensors[] = {make_tensor(cpu, desc), make_tensor(cpu, desc)};
    fill(tensors[0], 1);
    for (int i = 0; i < 3; i++) {
        const uint64_t before = cpu_ns();
        CHECK_OK(weir_program_run(program, NULL, tensors, 1, &tensors[1], 1, &options));
        taken_ns = cpu_ns() - before;
        /* The first one makes what the others use. */
        if (i > 0) check_asleep(where, "a run that waits for a device", i);
    }
    for (int i = 0; i < 2; i++) weir_tensor_release(tensors[i]);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(relu);
    weir_engine_release(device);
}

static void on_pool(weir_engine *cpu, weir_threadpool *pool, const char *where) {
    in_runs(cpu, pool, where);
    in_a_group(pool, where);
    beside_a_device(cpu, pool, where);
    /* Nothing at all. */
    take_long(NULL);
    check_asleep(where, "nothing under way", 0);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    static const pool_kind kinds[] = {POOL_FIFO, POOL_PARALLEL_FOR, POOL_ASYNCHRONOUS, POOL_FULL};
    weir_engine *cpu = NULL;
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        weir_threadpool *pool = NULL;
        test_pool *made = test_pool_create_exact(kinds[i], THREADS, &pool);
        on_pool(cpu, pool, pool_kind_name(kinds[i]));
        weir_threadpool_release(pool);
        test_pool_destroy(made);
    }
    weir_threadpool *builtin = NULL;
    CHECK_OK(weir_threadpool_create_builtin(NULL, &builtin));
    on_pool(cpu, builtin, "built-in");
    weir_threadpool_release(builtin);
    weir_engine_release(cpu);
    return 0;
}
