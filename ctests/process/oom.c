/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Memory runs out: request k of the library for memory is refused, for each k, and then all from k on, while a script
 * of typical calls runs. Each call succeeds or says RESOURCE_EXHAUSTED; nothing aborts, nothing leaks, and the same
 * script succeeds afterwards.
 */

#include "interpose.h"

#include <weir/comm.h>
#include <weir/domain.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "weir/testing.h"

#if INTERPOSED

/* The script stops at the first call that fails. TRY gives the way out; what was made until then is released. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != WEIR_OK) {                                                                                       \
            what = #call;                                                                                              \
            goto out;                                                                                                  \
        }                                                                                                              \
    } while (0)

static const char *what;

static int32_t one_thread(void *ctx) {
    (void)ctx;
    return 1;
}

static int32_t run_here(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    (void)ctx, (void)hint;
    fn(arg, 0);
    return 0;
}

static int32_t touch_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)slot;
    atomic_fetch_add((atomic_llong *)arg, end - begin);
    return WEIR_OK;
}

static int32_t scratch_compute(void *user, weir_kernel_context *context) {
    void *scratch = NULL;
    int32_t slots = 0;
    (void)user;
    weir_status status = weir_kernel_context_get_num_slots(context, &slots);
    if (status == WEIR_OK) status = weir_kernel_context_get_scratch(context, slots - 1, &scratch);
    if (status == WEIR_OK) memset(scratch, 1, 1000);
    return status;
}

typedef struct cast {
    weir_threadpool *pool;
    weir_domain *domain;
    weir_engine_attr *engine_attr;
    weir_engine *engine;
    weir_stream_attr *stream_attr;
    weir_stream *stream, *asynchronous;
    weir_event *event;
    weir_tensor *tensors[4];
    weir_kernel *matmul, *add, *host;
    weir_call *calls[2];
    weir_graph *graph;
    weir_program *program;
    weir_run *run, *other;
    atomic_llong items;
    atomic_int runs; /* of tasks; not in a frame, since a queue may know it when a call has failed */
} cast;

/* What the host has given away must come back: once if the pool was made, and not at all if it was not. */
static atomic_int pools_made, pools_released;

static void count_release(void *ctx) {
    (void)ctx;
    atomic_fetch_add(&pools_released, 1);
}

/* A notice that was taken is called once for each run or event, and released once. */
static atomic_int notices_taken, notices_called, notices_released;

static void count_call(void *ctx, weir_status status, weir_run *run) {
    (void)ctx, (void)status, (void)run;
    atomic_fetch_add(&notices_called, 1);
}

static void count_notice(void *ctx) {
    (void)ctx;
    atomic_fetch_add(&notices_released, 1);
}

static const weir_notice counted = {.struct_size = sizeof counted, .notify = count_call, .release = count_notice};

static atomic_int nodes_told;

static void count_node(void *ctx, const weir_run_progress *progress) {
    (void)ctx, (void)progress;
    atomic_fetch_add(&nodes_told, 1);
}

static weir_status taken(weir_status status) {
    if (status == WEIR_OK) atomic_fetch_add(&notices_taken, 1);
    return status;
}

static weir_status make_devices(cast *c) {
    static const weir_threadpool_vtable vtable = {
        .struct_size = sizeof vtable, .num_threads = one_thread, .schedule = run_here, .release = count_release};
    weir_status status = WEIR_OK;
    TRY(weir_threadpool_create(&vtable, NULL, NULL, &c->pool));
    atomic_fetch_add(&pools_made, 1);
    TRY(weir_engine_attr_create(WEIR_ENGINE_CPU, &c->engine_attr));
    TRY(weir_engine_attr_set_threadpool(c->engine_attr, c->pool));
    TRY(weir_domain_create("a-name-of-some-length", &c->domain));
    TRY(weir_engine_attr_set_domain(c->engine_attr, c->domain));
    TRY(weir_engine_attr_set_name(c->engine_attr, "another-name"));
    TRY(weir_engine_create(WEIR_ENGINE_CPU, 0, c->engine_attr, &c->engine));
    TRY(weir_stream_attr_create(WEIR_ENGINE_CPU, &c->stream_attr));
    TRY(weir_stream_attr_set_name(c->stream_attr, "a name that is long enough to need memory of its own"));
    TRY(weir_stream_create(c->engine, WEIR_STREAM_DEFAULT, c->stream_attr, &c->stream));
    TRY(weir_stream_create(c->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &c->asynchronous));
    TRY(weir_event_create(c->engine, WEIR_EVENT_TIMING, &c->event));
    for (int i = 0; i < 4; i++) {
        weir_tensor_desc desc = i < 2 ? matrix_desc(8, 8) : i == 2 ? vector_desc(8) : matrix_desc(8, 8);
        TRY(weir_tensor_create(c->engine, &desc, NULL, &c->tensors[i]));
    }
out:
    return status;
}

static weir_status make_work(cast *c) {
    weir_status status = WEIR_OK;
    weir_matmul_desc with_bias = {.struct_size = sizeof with_bias, .flags = WEIR_MATMUL_BIAS};
    weir_host_kernel_desc host = make_kernel_desc("scratch", scratch_compute, NULL);
    weir_tensor_desc square = matrix_desc(8, 8);
    weir_value in[3], value;
    weir_node node, task;
    host.scratch_bytes = 1000;
    host.num_inputs = host.num_outputs = 1;
    host.inputs = host.outputs = &square;
    const weir_kernel_options options = {.struct_size = sizeof options, .name = "a name"};
    TRY(weir_kernel_create_matmul(c->engine, &with_bias, &options, &c->matmul));
    TRY(weir_kernel_create_binary(c->engine, BINARY(ADD), NULL, &c->add));
    TRY(weir_kernel_create_host(c->engine, &host, &c->host));
    TRY(weir_graph_create("graph", &c->graph));
    TRY(weir_graph_add_input(c->graph, "x", &square, &in[0]));
    TRY(weir_graph_add_constant(c->graph, "weights", c->tensors[1], &in[1]));
    TRY(weir_graph_add_constant(c->graph, "bias", c->tensors[2], &in[2]));
    TRY(weir_graph_add_kernel(c->graph, "dense", c->matmul, in, 3, &value, 1, &node));
    TRY(weir_graph_add_kernel(c->graph, "host", c->host, &value, 1, &value, 1, NULL));
    TRY(weir_graph_add_task(c->graph, "task", count_run, &c->runs, NULL, 0, &task));
    TRY(weir_graph_add_control_edge(c->graph, node, task));
    TRY(weir_graph_add_output(c->graph, "y", value));
out:
    return status;
}

static weir_status run_work(cast *c) {
    weir_status status = WEIR_OK;
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 100000};
    weir_tensor *squares[2] = {c->tensors[0], c->tensors[1]};
    TRY(weir_parallel_for(c->pool, 100, &hint, touch_range, &c->items));
    CHECK_EQ(atomic_load(&c->items), 100);
    TRY(weir_enqueue_task(c->stream, count_run, &c->runs, NULL));
    TRY(weir_enqueue_task(c->asynchronous, count_run, &c->runs, NULL));
    TRY(weir_enqueue(c->stream, c->add, squares, 2, &c->tensors[3], 1));
    TRY(weir_enqueue(c->asynchronous, c->host, squares, 1, &c->tensors[3], 1));
    TRY(weir_call_create(c->stream, c->add, squares, 2, &c->tensors[3], 1, &c->calls[0]));
    TRY(weir_call_create(c->asynchronous, c->host, squares, 1, &c->tensors[3], 1, &c->calls[1]));
    for (int i = 0; i < 4; i++) TRY(weir_call_enqueue(c->calls[i % 2]));
    TRY(weir_event_record(c->event, c->asynchronous));
    TRY(taken(weir_event_notify(c->event, &counted)));
    TRY(weir_stream_wait_event(c->stream, c->event));
    TRY(weir_event_synchronize(c->event, WEIR_TIMEOUT_INFINITE));
    TRY(weir_stream_synchronize(c->asynchronous, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&c->runs), 2);
out:
    return status;
}

static weir_status run_program(cast *c) {
    weir_status status = WEIR_OK;
    weir_run_options options = {.struct_size = sizeof options};
    char text[2048];
    size_t length = 0;
    TRY(weir_graph_compile(c->graph, &c->engine, 1, NULL, &c->program));
    TRY(weir_program_dump(c->program, WEIR_DUMP_JSON, text, sizeof text, &length));
    TRY(weir_program_run(c->program, NULL, &c->tensors[0], 1, &c->tensors[3], 1, NULL));
    options.progress = count_node;
    options.progress_interval_ns = 1;
    const int told = atomic_load(&nodes_told);
    TRY(weir_program_run(c->program, c->stream, &c->tensors[0], 1, &c->tensors[3], 1, &options));
    CHECK(atomic_load(&nodes_told) > told);
    TRY(weir_program_start(c->program, c->asynchronous, &c->tensors[0], 1, &c->tensors[3], 1, NULL, &c->run));
    TRY(taken(weir_run_notify(c->run, &counted)));
    TRY(weir_run_synchronize(c->run, WEIR_TIMEOUT_INFINITE));
    options.notice = &counted;
    TRY(taken(weir_program_run(c->program, c->asynchronous, &c->tensors[0], 1, &c->tensors[3], 1, &options)));
    TRY(taken(weir_program_start(c->program, c->asynchronous, &c->tensors[0], 1, &c->tensors[3], 1, &options, &c->other)));
    TRY(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    TRY(weir_sync_domain(c->domain, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
out:
    return status;
}

static void release_all(cast *c) {
    weir_run_release(c->run);
    weir_run_release(c->other);
    weir_program_release(c->program);
    weir_graph_destroy(c->graph);
    for (int i = 0; i < 2; i++) weir_call_release(c->calls[i]);
    weir_kernel_release(c->matmul);
    weir_kernel_release(c->add);
    weir_kernel_release(c->host);
    for (int i = 0; i < 4; i++) weir_tensor_release(c->tensors[i]);
    weir_event_release(c->event);
    weir_stream_release(c->asynchronous);
    weir_stream_release(c->stream);
    weir_stream_attr_destroy(c->stream_attr);
    weir_engine_release(c->engine);
    weir_engine_attr_destroy(c->engine_attr);
    weir_domain_release(c->domain);
    weir_threadpool_release(c->pool);
}

/* One of the four acts with requests `first` to `last` refused; the acts before it have all they need. Returns how many
 * requests it made. */
static long play(int act, long first, long last) {
    weir_status (*const acts[])(cast *) = {make_devices, make_work, run_work, run_program};
    weir_runtime_info before = runtime_info();
    cast c;
    long requests = 0;
    memset(&c, 0, sizeof c);
    for (int i = 0; i < act; i++) CHECK_OK(acts[i](&c));
    what = "nothing";
    interpose_reset(first, last);
    weir_status status = acts[act](&c);
    requests = atomic_load(&library_requests);
    if (status != WEIR_OK && status != WEIR_RESOURCE_EXHAUSTED) {
        fprintf(stderr, "act %d, requests %ld to %ld refused: %s\n", act, first, last, weir_last_error_message());
        check_failed(__FILE__, __LINE__, what, weir_status_name(status));
    }
    if (first > 0 && status == WEIR_RESOURCE_EXHAUSTED) CHECK_TEXT(weir_last_error_message(), "memory");
    release_all(&c); /* while memory is still short */
    interpose_reset(0, 0);
    check_released(&before); /* also: nobody knows `c` any more */
    CHECK_EQ(atomic_load(&pools_released), atomic_load(&pools_made));
    EVENTUALLY(atomic_load(&notices_called) == atomic_load(&notices_taken));
    EVENTUALLY(atomic_load(&notices_released) == atomic_load(&notices_taken));
    return requests;
}

enum { ACTS = 4 };

static int num_refusals;

static void test_act(int act) {
    long requests = play(act, 0, 0);
    CHECK(requests > 0);
    for (long k = 1; k <= requests; k++) {
        (void)play(act, k, k);
        (void)play(act, k, INT32_MAX);
        (void)play(act, 0, 0);
        num_refusals += 2;
    }
}

/* A product finds its scratch memory before it writes anything, or fails. */
static void test_products(void) {
    static float a[64], b[64];
    static int8_t bytes[64];
    float c[64];
    int32_t integers[64];
    for (int i = 0; i < 64; i++) c[i] = 7, integers[i] = 7;
    interpose_reset(1, INT32_MAX);
    weir_status floats = weir_sgemm(0, 0, 8, 8, 8, 1, a, 8, b, 8, 0, c, 8, NULL);
    weir_status whole = weir_gemm_s8s8s32(0, 0, WEIR_GEMM_OFFSET_FIXED, 8, 8, 8, 1, bytes, 8, 0, bytes, 8, 0, 0, integers,
                                          8, NULL, NULL);
    interpose_reset(0, 0);
    CHECK_EQ(floats, WEIR_RESOURCE_EXHAUSTED);
    CHECK_EQ(whole, WEIR_RESOURCE_EXHAUSTED);
    for (int i = 0; i < 64; i++) CHECK(c[i] == 7 && integers[i] == 7);
    CHECK_OK(weir_sgemm(0, 0, 8, 8, 8, 1, a, 8, b, 8, 0, c, 8, NULL));
    CHECK(c[0] == 0);
    /* What a call has left behind is enough for the next. */
    interpose_reset(1, INT32_MAX);
    floats = weir_sgemm(0, 0, 8, 8, 8, 1, a, 8, b, 8, 1, c, 8, NULL);
    interpose_reset(0, 0);
    CHECK_EQ(floats, WEIR_OK);
}

/* Communicators are made all or none: a call that fails leaves the places of its array as they are. */
static void test_communicators(void) {
    static char mark;
    weir_runtime_info before = runtime_info();
    weir_comm *comms[3];
    weir_status status;
    int refused = 0;
    do {
        for (int last = 0; last < 2; last++) {
            for (int i = 0; i < 3; i++) comms[i] = (weir_comm *)(void *)&mark;
            interpose_reset(refused + 1, last ? INT32_MAX : refused + 1);
            status = weir_comm_create_local(3, NULL, comms);
            interpose_reset(0, 0);
            for (int i = 0; i < 3; i++) CHECK((comms[i] == (weir_comm *)(void *)&mark) == (status != WEIR_OK));
            if (status != WEIR_OK) CHECK_EQ(status, WEIR_RESOURCE_EXHAUSTED);
            for (int i = 0; i < 3 && status == WEIR_OK; i++) weir_comm_release(comms[i]);
        }
        refused++;
    } while (status != WEIR_OK);
    CHECK(refused > 3);
    check_released(&before);
}

/* However much is queued, nobody needs it in one piece. */
static void test_long_queues(void) {
    enum { LONG = 30000, PIECE = 64 << 10 };
    weir_engine *engine = make_engine(NULL), *device = NULL;
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL), *there = NULL;
    gate first = {0};
    atomic_int runs = 0;
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, NULL, &device));
    CHECK_OK(weir_stream_create(device, WEIR_STREAM_ASYNCHRONOUS, NULL, &there));
    weir_event *event = make_event(engine, WEIR_EVENT_DEFAULT);
    weir_tensor *tensor = make_tensor(device, vector_desc(16));
    CHECK_OK(weir_enqueue_task(stream, pass_gate, &first, NULL));
    CHECK_OK(weir_event_record(event, stream));
    CHECK_OK(weir_stream_wait_event(there, event));
    long refused_before = atomic_load(&refused_requests);
    atomic_store(&refuse_above, PIECE);
    for (int i = 0; i < LONG; i++) {
        CHECK_OK(weir_enqueue_task(stream, count_run, &runs, NULL));
        CHECK_OK(weir_enqueue_fill(there, tensor, (uint8_t)i));
    }
    open_gate(&first);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_stream_synchronize(there, WEIR_TIMEOUT_INFINITE));
    atomic_store(&refuse_above, 0);
    CHECK_EQ(atomic_load(&refused_requests), refused_before);
    CHECK_EQ(atomic_load(&runs), LONG);
    weir_tensor_release(tensor);
    weir_event_release(event);
    weir_stream_release(there);
    weir_stream_release(stream);
    weir_engine_release(device);
    weir_engine_release(engine);
}

static weir_status fail(void *arg) {
    (void)arg;
    return WEIR_DATA_LOSS;
}

/* A run that fails while memory is short leaves many names behind. They refuse no later call. */
static void test_a_long_failure(void) {
    enum { NODES = 4000, NAME = 600 };
    static char name[NAME + 16];
    weir_engine *engine = make_engine(NULL);
    weir_graph *graph = make_graph("long names");
    weir_node first, node;
    atomic_int runs = 0;
    CHECK_OK(weir_graph_add_task(graph, "first", fail, NULL, NULL, 0, &first));
    for (int i = 0; i < NODES; i++) {
        memset(name, 'n', NAME);
        snprintf(name + NAME, sizeof name - NAME, "%d", i);
        CHECK_OK(weir_graph_add_task(graph, name, count_run, &runs, NULL, 0, &node));
        CHECK_OK(weir_graph_add_control_edge(graph, first, node));
    }
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    for (int short_again = 0; short_again < 2; short_again++) {
        CHECK_CODE(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL), WEIR_DATA_LOSS, "first");
        interpose_reset(1, INT32_MAX);
        CHECK_CODE(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL), WEIR_DATA_LOSS, "first");
        if (!short_again) interpose_reset(0, 0);
        weir_program_info info = {.struct_size = sizeof info};
        CHECK_OK(weir_program_get_info(program, &info));
        weir_failure failure = {.struct_size = sizeof failure};
        CHECK_OK(weir_thread_get_failure(&failure));
        CHECK_EQ(failure.code, WEIR_DATA_LOSS);
        if (!short_again) CHECK_EQ(failure.num_not_run, NODES);
        interpose_reset(0, 0);
    }
    CHECK_EQ(atomic_load(&runs), 0);
    weir_program_release(program);
    weir_engine_release(engine);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    weir_runtime_info before = runtime_info();
    if (!interpose_start()) {
        puts("valgrind owns malloc here: nothing can be refused");
        return 0;
    }
    for (int act = 0; act < ACTS; act++) (void)play(act, 0, 0); /* what is made once per process is made here */
    for (int act = 0; act < ACTS; act++) test_act(act);
    CHECK(num_refusals > 100);
    test_products();
    test_communicators();
    test_long_queues();
    test_a_long_failure();
    check_released(&before);
    return 0;
}

#else

int main(void) {
    CHECK_OK(weir_emulated_register());
    puts("a sanitizer owns malloc here: nothing can be refused");
    return 0;
}

#endif
