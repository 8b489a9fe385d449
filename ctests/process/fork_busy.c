/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Fork while other threads are anywhere in the library: making and releasing engines, pools, lanes, kernels, programs
 * and variables. The child computes products, makes what it needs itself and runs it; it never waits for a lock of a
 * thread that is not there. From the first thread and from another one, as Python's multiprocessing does.
 */

#include <pthread.h>
#include <sys/wait.h>
#include <stdbool.h>
#include <weir/control.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "weir/testing.h"

enum { N = 12, SIZE = N * N, BUSY = 3 };

static atomic_int stop;
static atomic_long loops[BUSY];

static void check_product(void) {
    float a[SIZE], b[SIZE], c[SIZE];
    for (int i = 0; i < SIZE; i++) a[i] = (float)(i % 5), b[i] = (float)(i % 3), c[i] = 7;
    CHECK_OK(weir_sgemm(0, 0, N, N, N, 1, a, N, b, N, 0, c, N, NULL));
    for (int i = 0; i < SIZE; i++) {
        float sum = 0;
        for (int k = 0; k < N; k++) sum += a[i / N * N + k] * b[k * N + i % N];
        CHECK(c[i] == sum);
    }
}

/* An engine, kernels, a graph with a cond, a program, runs, a stream, a variable: x -> relu(x + x). */
static void make_and_run(weir_threadpool *pool) {
    const weir_tensor_desc desc = vector_desc(16), flag_desc = make_desc(WEIR_BOOL, 1, 1, 0, 0);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, 0, NULL, NULL);
    weir_event *event = make_event(engine, WEIR_EVENT_DEFAULT);
    weir_kernel *add = NULL, *relu = NULL;
    weir_tensor *tensors[4];
    weir_graph *branches[2];
    weir_value x, y, flag, out;
    CHECK_OK(weir_kernel_create_binary(engine, BINARY(ADD), NULL, &add));
    CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &relu));
    weir_tensor *given[2] = {make_tensor(engine, flag_desc), make_tensor(engine, desc)};
    for (int i = 0; i < 4; i++) tensors[i] = make_tensor(engine, desc);
    void *is_set = NULL;
    CHECK_OK(weir_tensor_get_data(given[0], &is_set));
    *(uint8_t *)is_set = 1;
    fill(given[1], 3);
    for (int side = 0; side < 2; side++) {
        weir_value pair[2];
        branches[side] = make_graph(side == 0 ? "then" : "else");
        CHECK_OK(weir_graph_add_input(branches[side], "x", &desc, &pair[0]));
        pair[1] = pair[0];
        CHECK_OK(weir_graph_add_kernel(branches[side], "add", add, pair, 2, &y, 1, NULL));
        if (side == 0) CHECK_OK(weir_graph_add_kernel(branches[side], "relu", relu, &y, 1, &y, 1, NULL));
        CHECK_OK(weir_graph_add_output(branches[side], "y", y));
    }
    weir_graph *graph = make_graph("made here");
    CHECK_OK(weir_graph_add_input(graph, "flag", &flag_desc, &flag));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_cond(graph, "cond", &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc),
        .predicate = flag, .then_graph = branches[0], .else_graph = branches[1], .inputs = &x, .num_inputs = 1}, &out,
        1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", out));
    weir_program *program = compile(graph, engine);
    for (int run = 0; run < 3; run++) {
        weir_stream *where = run == 1 ? stream : NULL;
        CHECK_OK(weir_program_run(program, where, given, 2, &tensors[run], 1, NULL));
        for (int i = 0; i < 16; i++) {
            float expected = 2 * floats(given[1])[i];
            CHECK(floats(tensors[run])[i] == (expected > 0 ? expected : 0));
        }
    }
    CHECK_OK(weir_enqueue(stream, add, (weir_tensor *[]){given[1], given[1]}, 2, &tensors[3], 1));
    CHECK_OK(weir_event_record(event, stream));
    CHECK_OK(weir_event_synchronize(event, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    for (int i = 0; i < 16; i++) CHECK(floats(tensors[3])[i] == 2 * floats(given[1])[i]);
    weir_program_release(program);
    weir_graph_destroy(graph);
    for (int side = 0; side < 2; side++) weir_graph_destroy(branches[side]);
    for (int i = 0; i < 4; i++) weir_tensor_release(tensors[i]);
    for (int i = 0; i < 2; i++) weir_tensor_release(given[i]);
    weir_kernel_release(add);
    weir_kernel_release(relu);
    weir_event_release(event);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* What the others do meanwhile: each of them holds every list of the process's at some time. */
static void *be_busy(void *arg) {
    int number = *(int *)arg;
    while (!atomic_load(&stop)) {
        atomic_int runs = 0;
        weir_threadpool *pool = NULL;
        CHECK_OK(weir_threadpool_create_builtin(NULL, &pool));
        make_and_run(number == 0 ? pool : NULL);
        weir_engine *engine = make_engine(number == 1 ? pool : NULL);
        weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        CHECK_OK(weir_enqueue_task(stream, count_run, &runs, NULL));
        if (number == 2) CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        weir_stream_release(stream);
        weir_engine_release(engine);
        weir_threadpool_release(pool);
        check_product();
        CHECK_EQ(atomic_load(&runs), 1);
        atomic_fetch_add(&loops[number], 1);
    }
    return NULL;
}

/* Made by the parent, and of no use to the child. */
static weir_engine *inherited;

static void child(void) {
    weir_engine *engine = NULL;
    weir_stream *stream = NULL;
    weir_threadpool *pool = NULL;
    weir_tensor *tensor = NULL;
    check_product();
    for (int round = 0; round < 2; round++) make_and_run(NULL);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    CHECK_CODE(weir_tensor_create(inherited, &(weir_tensor_desc){.dtype = WEIR_F32}, NULL, &tensor), WEIR_FAILED_PRECONDITION,
               "engine is of the process that this one was forked from");
    CHECK_CODE(weir_threadpool_create_builtin(NULL, &pool), WEIR_FAILED_PRECONDITION, "was forked");
    CHECK_CODE(weir_threadpool_create_inline(&pool), WEIR_FAILED_PRECONDITION, "was forked");
    CHECK_CODE(weir_engine_create(WEIR_ENGINE_EMULATED, 0, NULL, &engine), WEIR_FAILED_PRECONDITION, "was forked");
    CHECK_CODE(weir_engine_create(WEIR_ENGINE_PLUGIN_FIRST, 0, NULL, &engine), WEIR_FAILED_PRECONDITION, "was forked");
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    CHECK_CODE(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &stream), WEIR_FAILED_PRECONDITION, "was forked");
    CHECK(stream == NULL && pool == NULL && tensor == NULL);
    weir_engine_release(inherited);
    CHECK_EQ(runtime_info().engines, 1);
    weir_engine_release(engine);
    weir_runtime_info info = runtime_info();
    CHECK(info.engines == 0 && info.streams == 0 && info.tensors == 0 && info.kernels == 0 && info.programs == 0);
    CHECK(info.graphs == 0 && info.threadpools == 0 && info.threads_alive == 0);
    /* What the threads that are not here had in hand is lost to this process, and a checker of leaks would say so. */
    execl("/bin/true", "true", (char *)NULL);
    CHECK(false);
}

/* Forks so many times; a child that hangs is ended by its alarm, and found. */
static void *fork_often(void *arg) {
    int rounds = *(int *)arg;
    for (int round = 0; round < rounds; round++) {
        int status = -1;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(60);
            child();
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        if (WIFSIGNALED(status)) fprintf(stderr, "round %d: signal %d\n", round, WTERMSIG(status));
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 0);
    }
    return NULL;
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    pthread_t threads[BUSY], forker;
    int numbers[BUSY], rounds = scale(100);
    if (under_valgrind()) rounds = 2;
    weir_runtime_info before = runtime_info();
    inherited = make_engine(NULL);
    for (int i = 0; i < BUSY; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, be_busy, &numbers[i]) == 0);
    }
    for (int i = 0; i < BUSY; i++) EVENTUALLY(atomic_load(&loops[i]) > 0);
    fork_often(&rounds);
    CHECK(pthread_create(&forker, NULL, fork_often, &rounds) == 0);
    CHECK(pthread_join(forker, NULL) == 0);
    atomic_store(&stop, 1);
    for (int i = 0; i < BUSY; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    weir_engine_release(inherited);
    check_released(&before);
    return 0;
}
