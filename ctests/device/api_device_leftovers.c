/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The rest of a failed run, of a failed copy between devices, or of a trace on a device: it is kept until the device is
 * done with it, whatever has become of the program or the stream, and it goes then.
 */

#include <stdbool.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/resource.h>
#include <weir/trace.h>
#include <weir/device.h>

#include "make.h"
#include "test_device_board.h"

enum { LEN = 16, LOOKS = 8 };

static const uint64_t capabilities = WEIR_DEVICE_OWN_MEMORY | WEIR_DEVICE_PINNED_MEMORY | WEIR_DEVICE_TIMING;

/* The functions of a test device that fail, or answer late, on request. */
static weir_device_vtable inner;
static test_device *held; /* of this one */
static void *_Atomic clock_stream;
static void *_Atomic held_device; /* its first device */
static _Atomic bool is_refusing;  /* launches and records of events */
static _Atomic bool is_lost;      /* each launch loses the device */
static _Atomic bool is_held;      /* no event is reached */
static _Atomic bool holds_cleared; /* it is held from the time at which a stream is cleared */
static _Atomic bool is_clock_held, is_early;
static _Atomic int launches;
static _Atomic bool refuses_fetch; /* the record behind a copy to the host, once */
static _Atomic bool refuses_next;
static _Atomic bool refuses_held; /* records on the first device of `held` */
static _Atomic int looks_left; /* queries for which no event is reached, since the last record; below 0: none */
static void *_Atomic clock_event;

static int32_t open_device(void *ctx, uint32_t index, void **out_device) {
    const int32_t status = inner.device_open(ctx, index, out_device);
    if (status == WEIR_OK && ctx == held) held_device = *out_device;
    return status;
}

static int32_t create_stream(void *device, const weir_device_stream_attr *attr, void **out_stream) {
    const int32_t status = inner.stream_create(device, attr, out_stream);
    if (status == WEIR_OK && strncmp(attr->name, "clock of", 8) == 0) clock_stream = *out_stream;
    return status;
}

static void destroy_stream(void *device, void *stream) {
    if ((is_held && device == held_device) || (is_clock_held && stream == clock_stream)) is_early = true;
    inner.stream_destroy(device, stream);
}

static int32_t clear_error(void *device, void *stream) {
    if (holds_cleared && device == held_device) is_held = true;
    return inner.stream_clear_error(device, stream);
}

static int32_t launch(void *device, void *stream, void *kernel, const weir_device_launch *l) {
    launches++;
    if (is_lost && device != held_device) return WEIR_DEVICE_LOST;
    return is_refusing ? WEIR_UNAVAILABLE : inner.launch(device, stream, kernel, l);
}

static int32_t copy_to_host(void *device, void *stream, void *to, weir_device_address from, uint64_t bytes) {
    if (refuses_fetch) refuses_next = true;
    refuses_fetch = false;
    return inner.copy_to_host(device, stream, to, from, bytes);
}

static int32_t record_event(void *device, void *event, void *stream) {
    if (is_refusing || (refuses_held && device == held_device)) return WEIR_UNAVAILABLE;
    if (refuses_next) {
        refuses_next = false;
        return WEIR_UNAVAILABLE;
    }
    if (looks_left >= 0) looks_left = LOOKS;
    if (stream == clock_stream) clock_event = event;
    return inner.event_record(device, event, stream);
}

static int32_t query_event(void *device, void *event, int32_t *out_reached) {
    int32_t reached = 0;
    const int32_t status = inner.event_query(device, event, &reached);
    if (status != WEIR_OK) return status;
    if ((is_held && device == held_device) || (is_clock_held && event == clock_event)) reached = 0;
    if (looks_left > 0) {
        looks_left--;
        reached = 0;
    }
    *out_reached = reached;
    return WEIR_OK;
}

static board plug_in_with(const char *name, uint64_t can) {
    board b = {.name = name, .device = test_device_create(can)};
    inner = test_device_vtable();
    weir_device_vtable outer = inner;
    outer.device_open = open_device;
    outer.stream_create = create_stream;
    outer.stream_destroy = destroy_stream;
    outer.stream_clear_error = clear_error;
    outer.launch = launch;
    outer.copy_to_host = copy_to_host;
    outer.event_record = record_event;
    outer.event_query = query_event;
    looks_left = -1;
    is_early = false;
    CHECK(b.device != NULL);
    CHECK_OK(weir_device_register(name, 0, &outer, b.device));
    CHECK_OK(weir_engine_kind_from_name(name, &b.kind));
    return b;
}

static board plug_in_held(const char *name) {
    return plug_in_with(name, capabilities);
}

static weir_engine *engine_on(const board *b) {
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_create(b->kind, 0, NULL, &engine));
    return engine;
}

/* y = x + x on each of these engines; the first one is the cpu's. */
static weir_program *sums(weir_engine *const *engines, size_t num_engines) {
    const weir_tensor_desc desc = vector_desc(LEN);
    weir_graph *graph = make_graph("sums");
    weir_program *program = NULL;
    weir_value x;
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    for (size_t i = 1; i < num_engines; i++) {
        const weir_value both[2] = {x, x};
        weir_kernel *add = NULL;
        weir_value y;
        char name[32];
        (void)snprintf(name, sizeof name, "y%zu", i);
        CHECK_OK(weir_kernel_create_binary(engines[i], BINARY(ADD), NULL, &add));
        CHECK_OK(weir_graph_add_kernel(graph, name, add, both, 2, &y, 1, NULL));
        CHECK_OK(weir_graph_add_output(graph, name, y));
        weir_kernel_release(add);
    }
    CHECK_OK(weir_graph_compile(graph, engines, num_engines, NULL, &program));
    weir_graph_destroy(graph);
    return program;
}

/* The device refuses to tell of an event behind a failed run until the program was released: what the run has used goes
 * when a wait for everything finds it over. */
static void test_refused(void) {
    board on = plug_in_held("board-refusing");
    weir_engine *engines[2] = {make_engine(NULL), engine_on(&on)};
    weir_program *program = sums(engines, 2);
    weir_tensor *x = make_tensor(engines[0], vector_desc(LEN)), *y = make_tensor(engines[0], vector_desc(LEN));
    CHECK_OK(weir_program_run(program, NULL, &x, 1, &y, 1, NULL));
    is_refusing = true;
    CHECK_EQ(weir_program_run(program, NULL, &x, 1, &y, 1, NULL), WEIR_UNAVAILABLE);
    weir_program_release(program);
    is_refusing = false;
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    weir_tensor_release(x);
    weir_tensor_release(y);
    for (int i = 0; i < 2; i++) weir_engine_release(engines[i]);
    pull_out(&on);
}

/* The device tells late of what a failed run has left: a wait that only looks finds it over in the end. */
static void test_looks(void) {
    board on = plug_in_held("board-late");
    weir_engine *engines[2] = {make_engine(NULL), engine_on(&on)};
    weir_program *program = sums(engines, 2);
    weir_tensor *x = make_tensor(engines[0], vector_desc(LEN)), *y = make_tensor(engines[0], vector_desc(LEN));
    CHECK_OK(weir_program_run(program, NULL, &x, 1, &y, 1, NULL));
    is_refusing = true;
    CHECK_EQ(weir_program_run(program, NULL, &x, 1, &y, 1, NULL), WEIR_UNAVAILABLE);
    /* Before anybody may look. */
    looks_left = 0;
    is_refusing = false;
    CHECK_EQ(weir_engine_synchronize(engines[1], 0), WEIR_DEADLINE_EXCEEDED);
    EVENTUALLY(weir_engine_synchronize(engines[1], 0) == WEIR_OK);
    looks_left = -1;
    CHECK_OK(weir_program_run(program, NULL, &x, 1, &y, 1, NULL));
    weir_program_release(program);
    weir_tensor_release(x);
    weir_tensor_release(y);
    for (int i = 0; i < 2; i++) weir_engine_release(engines[i]);
    pull_out(&on);
}

/* The device refuses the event behind a copy to the host's memory, which it makes all the same: the run fails, and not
 * before the copy is over. */
static void test_fetch(void) {
    board on = plug_in_with("board-fetching", WEIR_DEVICE_OWN_MEMORY);
    weir_engine *engines[2] = {make_engine(NULL), engine_on(&on)};
    weir_program *program = sums(engines, 2);
    weir_tensor *x = make_tensor(engines[0], vector_desc(LEN)), *y = make_tensor(engines[0], vector_desc(LEN));
    for (int i = 0; i < LEN; i++) floats(x)[i] = 1;
    CHECK_OK(weir_program_run(program, NULL, &x, 1, &y, 1, NULL));
    test_device_slow(on.device, UINT64_C(20000000));
    refuses_fetch = true;
    CHECK_EQ(weir_program_run(program, NULL, &x, 1, &y, 1, NULL), WEIR_UNAVAILABLE);
    for (int i = 0; i < LEN; i++) floats(y)[i] = 7;
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    for (int i = 0; i < LEN; i++) CHECK_EQ(floats(y)[i], 7);
    CHECK_OK(weir_program_run(program, NULL, &x, 1, &y, 1, NULL));
    for (int i = 0; i < LEN; i++) CHECK_EQ(floats(y)[i], 2);
    weir_program_release(program);
    weir_tensor_release(x);
    weir_tensor_release(y);
    for (int i = 0; i < 2; i++) weir_engine_release(engines[i]);
    pull_out(&on);
}

/* One device of a program is lost, and the other one is not done yet with its part when the program is released. */
static void test_lost_beside(void) {
    board on = plug_in_held("board-held"), lost = plug_in_held("board-lost");
    held = on.device;
    weir_engine *engines[3] = {make_engine(NULL), engine_on(&on), engine_on(&lost)};
    weir_program *program = sums(engines, 3);
    weir_tensor *x = make_tensor(engines[0], vector_desc(LEN)), *y[2];
    for (int i = 0; i < 2; i++) y[i] = make_tensor(engines[0], vector_desc(LEN));
    CHECK_OK(weir_program_run(program, NULL, &x, 1, y, 2, NULL));
    is_lost = true;
    CHECK_EQ(weir_program_run(program, NULL, &x, 1, y, 2, NULL), WEIR_DEVICE_LOST);
    holds_cleared = true;
    weir_program_release(program);
    weir_tensor_release(x);
    for (int i = 0; i < 2; i++) weir_tensor_release(y[i]);
    for (int i = 0; i < 3; i++) weir_engine_release(engines[i]);
    EVENTUALLY(runtime_info().programs == 0 && is_held);
    (void)runtime_info(); /* ends what was let go of inside of callbacks */
    CHECK(!is_early);
    holds_cleared = is_held = is_lost = false;
    pull_out(&lost);
    pull_out(&on);
    CHECK(!is_early);
    held = NULL;
    held_device = NULL;
}

static weir_tensor *made_on(weir_engine *engine, weir_stream *stream) {
    const weir_tensor_desc desc = vector_desc(LEN);
    weir_tensor *tensor = NULL;
    CHECK_OK(weir_tensor_create(engine, &desc, NULL, &tensor));
    CHECK_OK(weir_enqueue_fill(stream, tensor, 1));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    return tensor;
}

static weir_stream *stream_on(weir_engine *engine) {
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &stream));
    return stream;
}

/* A copy between devices of two kinds, on a stream of one of them; the other one refuses all events behind its half,
 * the first or the second. Nothing that it uses goes before it is done, and everything goes then. */
static void test_copy(bool is_first) {
    board here = plug_in_held("board-here"), there = plug_in_held("board-there");
    held = there.device;
    weir_engine *engines[2] = {engine_on(&here), engine_on(&there)};
    weir_stream *streams[2] = {stream_on(engines[0]), stream_on(engines[1])};
    weir_tensor *tensors[2] = {made_on(engines[0], streams[0]), made_on(engines[1], streams[1])};
    weir_stream_release(streams[1]);
    EVENTUALLY(weir_engine_synchronize(engines[1], 0) == WEIR_OK);
    CHECK(held_device != NULL);
    test_device_slow(there.device, UINT64_C(50000000));
    refuses_held = true;
    CHECK_OK(weir_enqueue_copy(streams[0], tensors[is_first], tensors[!is_first]));
    CHECK_EQ(weir_stream_synchronize(streams[0], WEIR_TIMEOUT_INFINITE), WEIR_UNAVAILABLE);
    CHECK_OK(weir_stream_clear_error(streams[0])); /* what is told from here on is told of what was left */
    weir_stream_release(streams[0]);
    is_held = true;
    for (int i = 0; i < 2; i++) {
        weir_tensor_release(tensors[i]);
        weir_engine_release(engines[i]);
    }
    CHECK_EQ(weir_sync_devices(0, NULL, 0, NULL), WEIR_UNAVAILABLE); /* it still refuses */
    refuses_held = false;
    CHECK_EQ(weir_sync_devices(0, NULL, 0, NULL), WEIR_DEADLINE_EXCEEDED);
    CHECK(!is_early);
    is_held = false;
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    pull_out(&there);
    pull_out(&here);
    CHECK(!is_early);
    held = NULL;
    held_device = NULL;
}

/* The same, and the device is lost before anybody knows that it is done. */
static void test_copy_lost(void) {
    board here = plug_in_held("board-near"), there = plug_in_held("board-far");
    held = there.device;
    weir_engine *engines[2] = {engine_on(&here), engine_on(&there)};
    weir_stream *streams[2] = {stream_on(engines[0]), stream_on(engines[1])};
    weir_tensor *tensors[2] = {made_on(engines[0], streams[0]), made_on(engines[1], streams[1])};
    refuses_held = true;
    CHECK_OK(weir_enqueue_copy(streams[0], tensors[0], tensors[1]));
    CHECK_EQ(weir_stream_synchronize(streams[0], WEIR_TIMEOUT_INFINITE), WEIR_UNAVAILABLE);
    refuses_held = false;
    test_device_plan(there.device, "fill", 1, WEIR_DEVICE_LOST);
    CHECK_EQ(weir_enqueue_fill(streams[1], tensors[1], 2), WEIR_OK);
    CHECK_EQ(weir_stream_synchronize(streams[1], WEIR_TIMEOUT_INFINITE), WEIR_DEVICE_LOST);
    for (int i = 0; i < 2; i++) {
        weir_stream_release(streams[i]);
        weir_tensor_release(tensors[i]);
        weir_engine_release(engines[i]);
    }
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL)); /* a lost device is done */
    pull_out(&there);
    pull_out(&here);
    held = NULL;
    held_device = NULL;
}

/* A trace compares clocks by an event in a stream of its own; the device does not get to it before the trace ends. */
static void test_clock(void) {
    board on = plug_in_held("board-clock");
    weir_engine *engines[2] = {make_engine(NULL), engine_on(&on)};
    weir_program *program = sums(engines, 2);
    weir_tensor *x = make_tensor(engines[0], vector_desc(LEN)), *y = make_tensor(engines[0], vector_desc(LEN));
    weir_trace *trace = NULL;
    CHECK_OK(weir_trace_start(NULL, &trace));
    is_clock_held = true;
    CHECK_OK(weir_program_run(program, NULL, &x, 1, &y, 1, NULL));
    CHECK(clock_stream != NULL);
    CHECK_OK(weir_trace_stop(trace));
    weir_trace_release(trace);
    weir_program_release(program);
    weir_tensor_release(x);
    weir_tensor_release(y);
    for (int i = 0; i < 2; i++) weir_engine_release(engines[i]);
    (void)runtime_info(); /* ends what was let go of inside of callbacks */
    CHECK(!is_early);
    is_clock_held = false;
    pull_out(&on);
    CHECK(!is_early);
}

/* The trace of a program is released while the device works for a run of it: it does not keep the program. */
static void test_trace(void) {
    board on = plug_in_held("board-traced");
    held = on.device;
    weir_engine *engines[2] = {make_engine(NULL), engine_on(&on)};
    weir_program *program = sums(engines, 2);
    weir_stream *stream = make_stream(engines[0], WEIR_STREAM_ASYNCHRONOUS, NULL, "runs");
    weir_tensor *x = make_tensor(engines[0], vector_desc(LEN)), *y = make_tensor(engines[0], vector_desc(LEN));
    weir_trace *trace = NULL;
    weir_run *run = NULL;
    const weir_trace_options options = {.struct_size = sizeof options, .program = program};
    CHECK_OK(weir_trace_start(&options, &trace));
    is_held = true;
    launches = 0;
    CHECK_OK(weir_program_start(program, stream, &x, 1, &y, 1, NULL, &run));
    EVENTUALLY(launches > 0);
    weir_trace_release(trace);
    is_held = false;
    CHECK_OK(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE));
    weir_run_release(run);
    weir_stream_release(stream);
    weir_program_release(program);
    weir_tensor_release(x);
    weir_tensor_release(y);
    for (int i = 0; i < 2; i++) weir_engine_release(engines[i]);
    pull_out(&on);
    held = NULL;
    held_device = NULL;
}

/* The device refuses the event behind an assignment of a variable: nobody knows when that is over. What it uses stays
 * when the variable ends, until the device is lost. */
static void test_variable(void) {
    const weir_tensor_desc desc = vector_desc(LEN);
    board on = plug_in_with("board-variable", WEIR_DEVICE_OWN_MEMORY | WEIR_DEVICE_CONCURRENT);
    weir_engine *cpu = make_engine(NULL), *engine = engine_on(&on), *again = NULL;
    weir_tensor *x = make_tensor(cpu, desc);
    weir_resource *variable = NULL;
    weir_stream *stream = NULL;
    CHECK_OK(weir_variable_create(engine, NULL, "refused", &desc, 0, x, &variable));
    is_refusing = true;
    CHECK_EQ(weir_variable_assign(variable, x), WEIR_UNAVAILABLE);
    is_refusing = false;
    CHECK_CODE(weir_variable_assign(variable, x), WEIR_FAILED_PRECONDITION, "the variable is lost");
    weir_resource_release(variable);
    CHECK_OK(weir_resource_delete(engine, NULL, "refused"));
    EVENTUALLY(alive(&on) == 3); /* the device, a block of memory and the variable's stream */
    test_device_plan(on.device, "stream_create", 1, WEIR_DEVICE_LOST);
    CHECK_EQ(weir_stream_create(engine, 0, NULL, &stream), WEIR_DEVICE_LOST);
    weir_engine_release(engine);
    CHECK_EQ(alive(&on), 3);
    again = engine_on(&on);
    CHECK_OK(weir_variable_create(again, NULL, "next", &desc, 0, x, &variable));
    weir_resource_release(variable);
    CHECK_OK(weir_resource_delete(again, NULL, "next"));
    weir_engine_release(again);
    weir_tensor_release(x);
    weir_engine_release(cpu);
    pull_out(&on);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_refused();
    test_looks();
    test_fetch();
    test_lost_beside();
    test_copy(false);
    test_copy(true);
    test_copy_lost();
    test_clock();
    test_trace();
    test_variable();
    check_released(&before);
    return 0;
}
