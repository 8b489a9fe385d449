/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The waits for everything, called where weir has called the host: always the same refusal, at once, whatever thread it
 * is, and whether there is anything to wait for or not.
 */

#include <pthread.h>

#include "make.h"
#include "test_device.h"
#include "test_pools.h"
#include "weir/dlpack.h"
#include "weir/testing.h"
#include <weir/domain.h>
#include <weir/memory.h>
#include <weir/resource.h>
#include <weir/inspect.h>
#include <weir/device.h>

enum { WIDTH = 16, ENGINES = 16 };

static weir_engine *synced; /* the engine that weir_engine_synchronize is asked for */
static weir_domain *empty;  /* a domain that nothing waits for */
static atomic_int refusals; /* rounds of refusals */

static int32_t nothing(void *arg) {
    (void)arg;
    return WEIR_OK;
}

/* Each of the waits for everything. */
static void be_refused(void) {
    static const char text[] = "inside of a kernel, a task or a callback";
    weir_engine_sync results[ENGINES] = {{.struct_size = sizeof results[0]}};
    size_t count = 0;
    uint64_t time = 7, scope = 0;
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_FAILED_PRECONDITION, text);
    CHECK_TEXT(weir_last_error_message(), "weir_sync_devices: ");
    CHECK_CODE(weir_sync_devices(0, NULL, 0, NULL), WEIR_FAILED_PRECONDITION, text);
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, results, ENGINES, &count), WEIR_FAILED_PRECONDITION, text);
    CHECK_CODE(weir_engine_synchronize(synced, 0), WEIR_FAILED_PRECONDITION, text);
    CHECK_CODE(weir_engine_synchronize(synced, WEIR_TIMEOUT_INFINITE), WEIR_FAILED_PRECONDITION, text);
    CHECK_CODE(weir_sync_domain(NULL, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_FAILED_PRECONDITION, text);
    CHECK_CODE(weir_sync_domain(empty, 0, NULL, 0, NULL), WEIR_FAILED_PRECONDITION, text);
    CHECK_TEXT(weir_last_error_message(), "weir_sync_domain: synchronising a domain would wait for itself here");
    CHECK_CODE(weir_sync_domain(empty, WEIR_TIMEOUT_INFINITE, results, ENGINES, &count), WEIR_FAILED_PRECONDITION, text);
    CHECK_OK(weir_async_scope_begin_in(empty, &scope));
    CHECK_CODE(weir_async_scope_end(scope, WEIR_TIMEOUT_INFINITE), WEIR_FAILED_PRECONDITION, text);
    CHECK_OK(weir_async_scope_begin(&scope));
    CHECK_CODE(weir_async_scope_end(scope, WEIR_TIMEOUT_INFINITE), WEIR_FAILED_PRECONDITION, text);
    CHECK_CODE(weir_time_ns(NULL, nothing, NULL, 1, &time), WEIR_FAILED_PRECONDITION, text);
    CHECK_EQ(time, 7);
    atomic_fetch_add(&refusals, 1);
}

/* So many rounds since the last call: who lets go of something last may do so a moment later. And outside all is
 * well. */
static void expect(int rounds) {
    EVENTUALLY(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL) == WEIR_OK && atomic_load(&refusals) >= rounds);
    CHECK_OK(weir_engine_synchronize(synced, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_exchange(&refusals, 0), rounds);
}

static int32_t task(void *arg) {
    (void)arg;
    be_refused();
    return WEIR_OK;
}

static void destroy(void *arg) {
    (void)arg;
    be_refused();
}

static int32_t range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg, (void)slot;
    for (int64_t i = begin; i < end; i++) be_refused();
    return WEIR_OK;
}

static int32_t epilogue(void *arg) {
    return task(arg);
}

static int32_t box(void *arg, const int64_t *begin, const int64_t *end, int32_t slot) {
    return range(arg, begin[0], end[0], slot);
}

static int32_t compute(void *user, weir_kernel_context *context) {
    (void)user, (void)context;
    be_refused();
    return WEIR_OK;
}

static int32_t infer(void *user, const weir_tensor_desc *in, size_t num_in, weir_tensor_desc *out, size_t num_out) {
    (void)user, (void)num_in, (void)num_out;
    out[0] = in[0];
    be_refused();
    return WEIR_OK;
}

static weir_kernel *make_kernel(weir_engine *engine, int infers) {
    weir_tensor_desc like = vector_desc(WIDTH);
    weir_host_kernel_desc desc = make_kernel_desc("inside", compute, NULL);
    weir_kernel *kernel = NULL;
    desc.num_inputs = 1;
    desc.inputs = &like;
    desc.num_outputs = 1;
    desc.outputs = &like;
    desc.destroy = destroy;
    if (infers) desc.infer = infer;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    return kernel;
}

/* Kernels and host functions on a stream of the host's. */
static void test_stream(weir_engine *engine, uint64_t flags) {
    weir_stream *stream = make_stream(engine, flags, NULL, NULL);
    weir_kernel *kernel = make_kernel(engine, 0);
    weir_tensor *in = make_tensor(engine, vector_desc(WIDTH)), *out = make_tensor(engine, vector_desc(WIDTH));
    fill(in, 1);
    CHECK_OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
    CHECK_OK(weir_enqueue_task(stream, task, NULL, destroy));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    expect(3);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_kernel_release(kernel);
    expect(1);
    weir_stream_release(stream);
}

/* Nodes of a graph: in one thread, and with helpers; on no stream, and on one. */
static void test_graph(weir_engine *engine, int nodes, int shared) {
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_kernel *kernel = make_kernel(engine, 0);
    weir_graph *graph = make_graph("inside");
    weir_program *program = NULL;
    weir_value x, y;
    weir_tensor *in = make_tensor(engine, desc), *outs[8];
    char name[16];
    CHECK(nodes <= 8);
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    for (int i = 0; i < nodes; i++) {
        snprintf(name, sizeof name, "node %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &x, 1, &y, 1, NULL));
        CHECK_OK(weir_graph_add_output(graph, name, y));
        outs[i] = make_tensor(engine, desc);
    }
    weir_compile_options options = {.struct_size = sizeof options};
    if (shared) options.hop_ns = WEIR_HOP_NONE;
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &options, &program));
    fill(in, 1);
    CHECK_OK(weir_program_run(program, NULL, &in, 1, outs, (size_t)nodes, NULL));
    expect(nodes);
    weir_stream *streams[2] = {make_stream(engine, 0, NULL, NULL), make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL)};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(weir_program_run(program, streams[i], &in, 1, outs, (size_t)nodes, NULL));
        CHECK_OK(weir_stream_synchronize(streams[i], WEIR_TIMEOUT_INFINITE));
        expect(nodes);
        weir_stream_release(streams[i]);
    }
    CHECK_OK(weir_program_run_many(program, 1, &in, 1, outs, (size_t)nodes, NULL));
    expect(nodes);
    weir_tensor_release(in);
    for (int i = 0; i < nodes; i++) weir_tensor_release(outs[i]);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    expect(1);
}

/* A kernel that completes later: as it is started, and on the stream behind it, which the completing thread may be the
 * one to run. */
static int32_t start_later(void *user, weir_kernel_context *context, weir_completion *done) {
    (void)context;
    be_refused();
    *(_Atomic(weir_completion *) *)user = done;
    return WEIR_OK;
}

static void test_completion(weir_engine *engine) {
    weir_tensor_desc like = vector_desc(WIDTH);
    _Atomic(weir_completion *) done = NULL;
    weir_host_kernel_desc desc = make_kernel_desc("later", NULL, &done);
    weir_kernel *kernel = NULL;
    desc.compute_async = start_later;
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = &like;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_tensor *in = make_tensor(engine, like), *out = make_tensor(engine, like);
    fill(in, 1);
    CHECK_OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
    CHECK_OK(weir_enqueue_task(stream, task, NULL, NULL));
    EVENTUALLY(atomic_load(&done) != NULL);
    /* The thread that completes it is the host's own: there it waits, until its time is over. */
    CHECK_CODE(weir_sync_devices(1000000, NULL, 0, NULL), WEIR_DEADLINE_EXCEEDED, NULL);
    CHECK_OK(weir_completion_done(atomic_load(&done), WEIR_OK, NULL));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    expect(2);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_stream_release(stream);
    weir_kernel_release(kernel);
}

/* Loops on a pool: whichever thread a piece comes to. */
static void test_regions(weir_threadpool *pool) {
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 1000000, .epilogue = epilogue};
    int64_t extents[2] = {8, 4};
    CHECK_OK(weir_parallel_for(pool, 8, &hint, range, NULL));
    expect(9);
    CHECK_OK(weir_parallel_for(pool, 1, NULL, range, NULL));
    expect(1);
    CHECK_OK(weir_parallel_nd(pool, 2, extents, extents, NULL, box, NULL));
    expect(8);
}

static void delete_inside(DLManagedTensorVersioned *managed) {
    (void)managed;
    be_refused();
}

static void *allocate(void *ctx, size_t bytes, size_t alignment) {
    (void)ctx;
    be_refused();
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void deallocate(void *ctx, void *data, size_t bytes, size_t alignment) {
    (void)ctx, (void)bytes, (void)alignment;
    be_refused();
    free(data);
}

/* Memory of the host's: as it is taken, and as it is given back, by whatever call that is. */
static void test_memory(weir_engine *engine) {
    static float data[WIDTH];
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_tensor *tensor = NULL;
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    CHECK_OK(weir_tensor_create(engine, &desc, OVER_UNTIL(data, destroy, NULL), &tensor));
    weir_tensor_release(tensor);
    expect(1);
    /* The last one to hold it is the stream. */
    gate held = {0};
    CHECK_OK(weir_tensor_create(engine, &desc, OVER_UNTIL(data, destroy, NULL), &tensor));
    CHECK_OK(weir_enqueue_task(stream, pass_gate, &held, NULL));
    CHECK_OK(weir_enqueue_fill(stream, tensor, 1));
    weir_tensor_release(tensor);
    open_gate(&held);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    expect(1);
    int64_t shape[1] = {WIDTH};
    DLManagedTensorVersioned managed = {{1, 1}, NULL, delete_inside, 0, {data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0}};
    CHECK_OK(weir_tensor_from_dlpack(engine, &managed, 0, &tensor));
    weir_tensor_release(tensor);
    expect(1);
    CHECK_OK(weir_tensor_from_dlpack(engine, &managed, WEIR_DLPACK_COPY, &tensor));
    expect(1);
    weir_tensor_release(tensor);
    weir_stream_release(stream);

    weir_allocator_vtable vtable = {.struct_size = sizeof vtable, .allocate = allocate, .deallocate = deallocate, .release = destroy};
    weir_allocator *allocator = NULL;
    weir_engine_attr *attr = NULL;
    weir_engine *own = NULL;
    CHECK_OK(weir_allocator_create(&vtable, NULL, &allocator));
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_engine_attr_set_allocator(attr, allocator));
    CHECK_OK(weir_engine_attr_set_memory_mode(attr, WEIR_MEMORY_MODE_DIRECT));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &own));
    tensor = make_tensor(own, desc);
    weir_tensor_release(tensor);
    weir_engine_attr_destroy(attr);
    weir_engine_release(own);
    weir_allocator_release(allocator);
    expect(3);
}

/* What the host is asked for besides. */
static int32_t build(void *arg, weir_resource **out) {
    (void)arg, (void)out;
    be_refused();
    return WEIR_NOT_FOUND;
}

static void test_questions(weir_engine *engine) {
    weir_resource *resource = NULL;
    weir_graph *graph = make_graph("asks");
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_kernel *kernel = make_kernel(engine, 1);
    weir_value x, y;
    CHECK_CODE(weir_resource_lookup_or_create(engine, NULL, "r", WEIR_RESOURCE_HOST, build, NULL, &resource), WEIR_NOT_FOUND, NULL);
    expect(1);
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_kernel(graph, "node", kernel, &x, 1, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    weir_program *program = compile(graph, engine);
    CHECK(atomic_exchange(&refusals, 0) > 0);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    expect(1);
}

/* Devices: their own thread runs host kernels, and calls back; a stream that waits for them may be drained there. */
static void test_device_stream(weir_engine *engine, weir_engine *host, int runs_host_kernels) {
    weir_stream *stream = NULL;
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_tensor *in = make_tensor(engine, desc), *out = make_tensor(engine, desc);
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &stream));
    CHECK_OK(weir_enqueue_fill(stream, in, 0));
    if (runs_host_kernels) {
        weir_kernel *kernel = make_kernel(engine, 0);
        CHECK_OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        weir_kernel_release(kernel);
        expect(2);
    }
    CHECK_OK(weir_enqueue_task(stream, task, NULL, destroy));
    CHECK_OK(weir_enqueue_fill(stream, in, 1));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    expect(2);

    /* Behind an event of the device's; with a pool that refuses the stream is drained by whoever tells of the event. */
    weir_threadpool *pool = NULL;
    test_pool *refusing = test_pool_create_exact(POOL_REFUSING, 1, &pool);
    weir_event *event = make_event(engine, WEIR_EVENT_DEFAULT);
    weir_stream *behind = make_stream(host, WEIR_STREAM_ASYNCHRONOUS, pool, NULL);
    for (int i = 0; i < 8; i++) {
        CHECK_OK(weir_enqueue_fill(stream, out, i));
        CHECK_OK(weir_event_record(event, stream));
        CHECK_OK(weir_stream_wait_event(behind, event));
        CHECK_OK(weir_enqueue_task(behind, task, NULL, NULL));
    }
    CHECK_OK(weir_stream_synchronize(behind, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    expect(8);
    weir_stream_release(behind);
    weir_threadpool_release(pool);
    test_pool_destroy(refusing);

    /* Memory of the host's that the device's work was the last to hold. */
    static float data[WIDTH];
    weir_tensor *lent = NULL;
    CHECK_OK(weir_tensor_create(host, &desc, OVER_UNTIL(data, destroy, NULL), &lent));
    CHECK_OK(weir_enqueue_copy(stream, out, lent));
    weir_tensor_release(lent);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    expect(1);
    CHECK_OK(weir_tensor_create(host, &desc, OVER_UNTIL(data, destroy, NULL), &lent));
    CHECK_OK(weir_enqueue_copy(stream, out, lent));
    weir_tensor_release(lent);
    expect(1);
    weir_event_release(event);
    weir_stream_release(stream);
    weir_tensor_release(in);
    weir_tensor_release(out);
}

static void test_devices(weir_engine *host) {
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, NULL, &engine));
    test_device_stream(engine, host, 1);
    weir_engine_release(engine);

    static const uint64_t capabilities[] = {WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_CALLBACK, WEIR_DEVICE_CONCURRENT, 0};
    static const char *const names[] = {"calling", "watched", "serial"};
    for (int i = 0; i < 3; i++) {
        test_device *device = test_device_create(capabilities[i] | WEIR_DEVICE_OWN_MEMORY);
        weir_device_vtable vtable = test_device_vtable();
        weir_engine_kind kind;
        CHECK_OK(weir_device_register(names[i], 0, &vtable, device));
        CHECK_OK(weir_engine_kind_from_name(names[i], &kind));
        CHECK_OK(weir_engine_create(kind, 0, NULL, &engine));
        test_device_stream(engine, host, 0);
        weir_engine_release(engine);
        CHECK_OK(weir_device_unregister(names[i], 0));
        EVENTUALLY(runtime_info().engines > 0 && test_device_alive(device) == 0 && test_device_releases(device) == 1);
        test_device_destroy(device);
    }
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    weir_runtime_info before = runtime_info();
    weir_engine *plain = make_engine(NULL);
    synced = plain;
    CHECK_OK(weir_domain_create("empty", &empty));
    test_stream(plain, 0);
    test_stream(plain, WEIR_STREAM_ASYNCHRONOUS); /* a lane */
    test_graph(plain, 1, 0);
    test_graph(plain, 8, 0);
    test_completion(plain);
    test_regions(NULL);
    test_memory(plain);
    test_questions(plain);
    static const pool_kind kinds[] = {POOL_FIFO, POOL_PARALLEL_FOR, POOL_FULL, POOL_INLINE, POOL_REFUSING};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_exact(kinds[k], 2, &pool);
        weir_engine *engine = make_engine(pool);
        test_stream(engine, 0);
        test_stream(engine, WEIR_STREAM_ASYNCHRONOUS);
        for (int round = 0; round < 4; round++) test_graph(engine, 8, 1);
        test_completion(engine);
        test_regions(pool);
        weir_engine_release(engine);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
    test_devices(plain);
    weir_engine_release(plain);
    weir_domain_release(empty);
    check_released(&before);
    puts("nothing waits for itself");
    return 0;
}
