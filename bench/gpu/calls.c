/* One call: what weir adds to a launch, to a launch that is waited for, to events, and to waits for everything.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "bench.h"
#include "kernels.h"
#include "weir_side.h"

enum { BURST = 500, EVENTS = 1000, SLOTS = 16 };

typedef struct calls {
    void *raw_stream, *function, *event;
    weir_stream *stream;
    weir_event *weir_event;
    weir_kernel *kernel;
    weir_tensor *inputs[2], *outputs[2];
    void *streams[SLOTS];
    weir_stream *weir_streams[SLOTS];
    int dirty;
} calls;

static void launch_raw(calls *c, void *stream) {
    raw_pointer a = 0;
    void *arguments[] = {&a, &a, &a, &a};
    RAW(cuLaunchKernel(c->function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static void launch_weir(calls *c, weir_stream *stream) {
    OK(weir_enqueue(stream, c->kernel, c->inputs, 2, c->outputs, 2));
}

/* A burst is shorter than what the driver queues without waiting; the device catches up untimed. */
static double raw_burst(void *with) {
    calls *c = with;
    const double start = now_ns();
    for (int i = 0; i < BURST; i++) launch_raw(c, c->raw_stream);
    const double took = now_ns() - start;
    RAW(cuStreamSynchronize(c->raw_stream));
    return took / BURST;
}

static double weir_burst(void *with) {
    calls *c = with;
    const double start = now_ns();
    for (int i = 0; i < BURST; i++) launch_weir(c, c->stream);
    const double took = now_ns() - start;
    OK(weir_stream_synchronize(c->stream, WEIR_TIMEOUT_INFINITE));
    return took / BURST;
}

static double raw_launch_and_wait(void *with) {
    calls *c = with;
    const double start = now_ns();
    for (int i = 0; i < 100; i++) {
        launch_raw(c, c->raw_stream);
        RAW(cuStreamSynchronize(c->raw_stream));
    }
    return (now_ns() - start) / 100;
}

static double weir_launch_and_wait(void *with) {
    calls *c = with;
    const double start = now_ns();
    for (int i = 0; i < 100; i++) {
        launch_weir(c, c->stream);
        OK(weir_stream_synchronize(c->stream, WEIR_TIMEOUT_INFINITE));
    }
    return (now_ns() - start) / 100;
}

static double raw_record(void *with) {
    calls *c = with;
    const double start = now_ns();
    for (int i = 0; i < EVENTS; i++) RAW(cuEventRecord(c->event, c->raw_stream));
    const double took = now_ns() - start;
    RAW(cuStreamSynchronize(c->raw_stream));
    return took / EVENTS;
}

static double weir_record(void *with) {
    calls *c = with;
    const double start = now_ns();
    for (int i = 0; i < EVENTS; i++) OK(weir_event_record(c->weir_event, c->stream));
    const double took = now_ns() - start;
    OK(weir_stream_synchronize(c->stream, WEIR_TIMEOUT_INFINITE));
    return took / EVENTS;
}

/* For an event that another stream records once. */
static double raw_wait(void *with) {
    calls *c = with;
    RAW(cuEventRecord(c->event, c->streams[0]));
    const double start = now_ns();
    for (int i = 0; i < EVENTS; i++) RAW(cuStreamWaitEvent(c->raw_stream, c->event, 0));
    const double took = now_ns() - start;
    RAW(cuStreamSynchronize(c->raw_stream));
    return took / EVENTS;
}

static double weir_wait(void *with) {
    calls *c = with;
    OK(weir_event_record(c->weir_event, c->weir_streams[0]));
    const double start = now_ns();
    for (int i = 0; i < EVENTS; i++) OK(weir_stream_wait_event(c->stream, c->weir_event));
    const double took = now_ns() - start;
    OK(weir_stream_synchronize(c->stream, WEIR_TIMEOUT_INFINITE));
    return took / EVENTS;
}

/* The wait alone, behind a kernel that was just launched. */
static double raw_wait_for_kernel(void *with) {
    calls *c = with;
    double took = 0;
    for (int i = 0; i < 100; i++) {
        launch_raw(c, c->raw_stream);
        const double start = now_ns();
        RAW(cuStreamSynchronize(c->raw_stream));
        took += now_ns() - start;
    }
    return took / 100;
}

static double weir_wait_for_kernel(void *with) {
    calls *c = with;
    double took = 0;
    for (int i = 0; i < 100; i++) {
        launch_weir(c, c->stream);
        const double start = now_ns();
        OK(weir_stream_synchronize(c->stream, WEIR_TIMEOUT_INFINITE));
        took += now_ns() - start;
    }
    return took / 100;
}

static double raw_idle(void *with) {
    calls *c = with;
    const double start = now_ns();
    for (int i = 0; i < 1000; i++) RAW(cuStreamSynchronize(c->raw_stream));
    return (now_ns() - start) / 1000;
}

static double weir_idle(void *with) {
    calls *c = with;
    const double start = now_ns();
    for (int i = 0; i < 1000; i++) OK(weir_stream_synchronize(c->stream, WEIR_TIMEOUT_INFINITE));
    return (now_ns() - start) / 1000;
}

static double raw_all(void *with) {
    calls *c = with;
    double took = 0;
    for (int i = 0; i < 20; i++) {
        for (int s = 0; s < c->dirty; s++) launch_raw(c, c->streams[s]);
        const double start = now_ns();
        for (int s = 0; s < c->dirty; s++) RAW(cuStreamSynchronize(c->streams[s]));
        took += now_ns() - start;
    }
    return took / 20;
}

static double weir_all(void *with) {
    calls *c = with;
    double took = 0;
    for (int i = 0; i < 20; i++) {
        for (int s = 0; s < c->dirty; s++) launch_weir(c, c->weir_streams[s]);
        const double start = now_ns();
        OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
        took += now_ns() - start;
    }
    return took / 20;
}

void bench_calls(raw_device *device) {
    (void)device;
    calls c = {.raw_stream = raw_stream(), .event = raw_event(RAW_EVENT_NO_TIMING)};
    weir_engine *engine = cuda_engine(1);
    void *module = NULL;
    c.function = raw_kernel(PTX_PLAIN, "empty", &module, NULL);
    c.stream = cuda_stream(engine);
    c.kernel = empty_kernel(engine, 16);
    OK(weir_event_create(engine, 0, &c.weir_event));
    for (int i = 0; i < 2; i++) {
        c.inputs[i] = floats_on(engine, 16);
        c.outputs[i] = floats_on(engine, 16);
    }
    for (int i = 0; i < SLOTS; i++) {
        c.streams[i] = raw_stream();
        c.weir_streams[i] = cuda_stream(engine);
    }
    table("Calls");
    compare("enqueue an empty kernel, bursts of 500 (goal: + 50 ns)", raw_burst, weir_burst, &c, 31);
    compare("launch to completion (goal: 1.03)", raw_launch_and_wait, weir_launch_and_wait, &c, 31);
    compare("record an event", raw_record, weir_record, &c, 31);
    compare("have a stream wait for an event of another", raw_wait, weir_wait, &c, 31);
    compare("wait for a stream with an empty kernel", raw_wait_for_kernel, weir_wait_for_kernel, &c, 31);
    compare("wait for an idle stream", raw_idle, weir_idle, &c, 15);
    for (c.dirty = 1; c.dirty <= SLOTS; c.dirty *= 4) {
        char what[96];
        snprintf(what, sizeof what, "sync_devices, %d streams with an empty kernel each (goal: 1)", c.dirty);
        compare(what, raw_all, weir_all, &c, 31);
    }
    for (int i = 0; i < SLOTS; i++) {
        RAW(cuStreamDestroy_v2(c.streams[i]));
        weir_stream_release(c.weir_streams[i]);
    }
    for (int i = 0; i < 2; i++) {
        weir_tensor_release(c.inputs[i]);
        weir_tensor_release(c.outputs[i]);
    }
    weir_event_release(c.weir_event);
    weir_kernel_release(c.kernel);
    weir_stream_release(c.stream);
    weir_engine_release(engine);
    RAW(cuModuleUnload(module));
    RAW(cuEventDestroy_v2(c.event));
    RAW(cuStreamDestroy_v2(c.raw_stream));
}
