/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Fork: the child may only let go of what it inherited, its other calls with that say so, it ends cleanly, and the
 * parent goes on. What the child can do by itself: fork_busy.c.
 */

#include <sys/wait.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"

typedef struct inherited {
    weir_threadpool *pool;
    weir_engine *engine;
    weir_stream *stream;
    weir_event *event;
    weir_tensor *tensor;
    weir_kernel *kernel;
    weir_graph *graph;
    weir_program *program;
} inherited;

static inherited make_all(void) {
    inherited i = {.pool = NULL};
    weir_tensor_desc desc = vector_desc(4);
    weir_value x, y;
    CHECK_OK(weir_threadpool_create_builtin(NULL, &i.pool));
    i.engine = make_engine(i.pool);
    i.stream = make_stream(i.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    i.event = make_event(i.engine, WEIR_EVENT_DEFAULT);
    i.tensor = make_tensor(i.engine, desc);
    CHECK_OK(weir_kernel_create_eltwise(i.engine, ELTWISE(RELU), NULL, &i.kernel));
    i.graph = make_graph("inherited");
    CHECK_OK(weir_graph_add_input(i.graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_kernel(i.graph, "relu", i.kernel, &x, 1, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(i.graph, "y", y));
    i.program = compile(i.graph, i.engine);
    return i;
}

static void release_all(inherited *i) {
    weir_program_release(i->program);
    weir_graph_destroy(i->graph);
    weir_kernel_release(i->kernel);
    weir_tensor_release(i->tensor);
    weir_event_release(i->event);
    weir_stream_release(i->stream);
    weir_engine_release(i->engine);
    weir_threadpool_release(i->pool);
}

/* A call that the child may not make: refused at once, whatever it would do. */
#define REFUSED(call) CHECK_CODE(call, WEIR_FAILED_PRECONDITION, "fork")

static void check_refusals(inherited *i) {
    weir_stream *stream = i->stream;
    weir_threadpool *pool = i->pool;
    weir_tensor *tensor = i->tensor;
    weir_value value = 7;
    int32_t done = 7;
    atomic_int runs = 0;
    REFUSED(weir_enqueue_task(i->stream, count_run, &runs, count_destroy));
    REFUSED(weir_stream_synchronize(i->stream, WEIR_TIMEOUT_INFINITE));
    REFUSED(weir_stream_query(i->stream, &done));
    REFUSED(weir_stream_clear_error(i->stream));
    REFUSED(weir_engine_synchronize(i->engine, WEIR_TIMEOUT_INFINITE));
    REFUSED(weir_event_record(i->event, i->stream));
    REFUSED(weir_event_synchronize(i->event, WEIR_TIMEOUT_INFINITE));
    REFUSED(weir_enqueue(i->stream, i->kernel, &i->tensor, 1, &i->tensor, 1));
    REFUSED(weir_program_run(i->program, NULL, &i->tensor, 1, &i->tensor, 1, NULL));
    REFUSED(weir_stream_create(i->engine, 0, NULL, &stream));
    REFUSED(weir_threadpool_create_inline(&pool));
    REFUSED(weir_tensor_create(i->engine, &(weir_tensor_desc){.dtype = WEIR_F32}, NULL, &tensor));
    REFUSED(weir_tensor_retain(i->tensor));
    REFUSED(weir_graph_add_input(i->graph, "z", &(weir_tensor_desc){.dtype = WEIR_F32}, &value));
    CHECK(done == 7 && value == 7 && atomic_load(&runs) == 0);
}

static void child(inherited *i) {
    check_refusals(i);
    release_all(i);
    weir_stream_release(NULL);
    /* What cannot fail still answers. */
    CHECK(strcmp(weir_status_name(WEIR_OK), "OK") == 0);
    CHECK_EQ(weir_abi_version(), WEIR_ABI_VERSION);
    CHECK_EQ(weir_version(), WEIR_VERSION_MAJOR << 16 | WEIR_VERSION_MINOR << 8 | WEIR_VERSION_PATCH);
    if (under_valgrind() || WITH_ASAN) { /* to them, what belonged to threads that are not here is a leak */
        execl("/bin/true", "true", (char *)NULL);
        _Exit(1);
    }
    exit(0); /* with destructors and atexit, as a child that came to its end would */
}

/* The child ends by itself, and soon: a wait for threads that do not exist there would be without end. */
static void check_child(inherited *i) {
    int status = -1;
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) child(i);
    EVENTUALLY(waitpid(pid, &status, WNOHANG) == pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

static void check_parent_goes_on(inherited *i) {
    weir_tensor *out = make_tensor(i->engine, vector_desc(4));
    atomic_int runs = 0;
    fill(i->tensor, 1);
    CHECK_OK(weir_enqueue_task(i->stream, count_run, &runs, NULL));
    CHECK_OK(weir_program_run(i->program, i->stream, &i->tensor, 1, &out, 1, NULL));
    CHECK_OK(weir_stream_synchronize(i->stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&runs), 1);
    for (int n = 0; n < 4; n++) CHECK(floats(out)[n] == (floats(i->tensor)[n] > 0 ? floats(i->tensor)[n] : 0));
    weir_tensor_release(out);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    inherited i = make_all();
    check_child(&i); /* before the pool and the stream had work */
    check_parent_goes_on(&i);
    check_child(&i); /* and after it */
    gate held = {.result = WEIR_OK};
    CHECK_OK(weir_enqueue_task(i.stream, pass_gate, &held, NULL));
    EVENTUALLY(atomic_load(&held.begun));
    check_child(&i); /* while the stream is at work */
    open_gate(&held);
    check_parent_goes_on(&i);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    release_all(&i);
    check_released(&before);
    return 0;
}
