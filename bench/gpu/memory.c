/* Memory: tensors that come and go against the driver's own pool, and copies within the device.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "bench.h"
#include "weir_side.h"

static int calls(void) {
    return quick ? 2 : 200;
}

typedef struct memory {
    void *raw_stream;
    weir_stream *stream;
    weir_engine *engine;
    size_t bytes;
    raw_pointer from, to;
    weir_tensor *source, *target;
} memory;

static double raw_allocate(void *with) {
    memory *m = with;
    const double start = now_ns();
    for (int i = 0; i < calls(); i++) {
        raw_pointer pointer = 0;
        RAW(cuMemAllocAsync(&pointer, m->bytes, m->raw_stream));
        RAW(cuMemFreeAsync(pointer, m->raw_stream));
    }
    const double took = now_ns() - start;
    RAW(cuStreamSynchronize(m->raw_stream));
    return took / calls();
}

static double weir_allocate(void *with) {
    memory *m = with;
    const double start = now_ns();
    for (int i = 0; i < calls(); i++) weir_tensor_release(floats_on(m->engine, (int64_t)(m->bytes / 4)));
    return (now_ns() - start) / calls();
}

static double raw_copy(void *with) {
    memory *m = with;
    const double start = now_ns();
    for (int i = 0; i < 4; i++) RAW(cuMemcpyDtoDAsync_v2(m->to, m->from, m->bytes, m->raw_stream));
    RAW(cuStreamSynchronize(m->raw_stream));
    return (now_ns() - start) / 4;
}

static double weir_copy(void *with) {
    memory *m = with;
    const double start = now_ns();
    for (int i = 0; i < 4; i++) OK(weir_enqueue_copy(m->stream, m->source, m->target));
    OK(weir_stream_synchronize(m->stream, WEIR_TIMEOUT_INFINITE));
    return (now_ns() - start) / 4;
}

/* So that four such buffers fit into what is free, with room to spare. */
static size_t copy_bytes(void) {
    const size_t most = (size_t)8 << 30;
    size_t left = 0, all = 0;
    RAW(cuMemGetInfo_v2(&left, &all));
    if (quick) return 1 << 20;
    return (left / 5 < most ? left / 5 : most) & ~(size_t)255;
}

void bench_memory(raw_device *device) {
    memory m = {.raw_stream = raw_stream(), .engine = cuda_engine(1)};
    m.stream = cuda_stream(m.engine);
    const int keeps = raw_keep_pool(device);
    table(keeps ? "Memory; the driver's own pool keeps what is given back" : "Memory");
    m.bytes = 64 << 10;
    compare("allocate and release 64 KiB (goal: weir 200 ns)", raw_allocate, weir_allocate, &m, 31);
    const double small = alone(weir_allocate, &m, 31);
    m.bytes = 64 << 20;
    compare("allocate and release 64 MiB", raw_allocate, weir_allocate, &m, 31);
    answer(4, "weir's free list: %.0f ns for 64 KiB, %.0f ns for 64 MiB", small, alone(weir_allocate, &m, 31));
    m.bytes = copy_bytes();
    m.from = raw_memory(m.bytes);
    m.to = raw_memory(m.bytes);
    m.source = floats_on(m.engine, (int64_t)(m.bytes / 4));
    m.target = floats_on(m.engine, (int64_t)(m.bytes / 4));
    OK(weir_enqueue_fill(m.stream, m.source, 1));
    RAW(cuMemsetD32Async(m.from, 0x3f8ccccd, m.bytes / 4, m.raw_stream));
    char what[64];
    snprintf(what, sizeof what, "copy %zu MiB within the device (goal: 0.99)", m.bytes >> 20);
    compare(what, raw_copy, weir_copy, &m, 15);
    const double raw_ns = alone(raw_copy, &m, 7), weir_ns = alone(weir_copy, &m, 7), moved = 2 * (double)m.bytes;
    printf("\nRead and written: %.0f GB/s by hand, %.0f GB/s by weir.\n", moved / raw_ns, moved / weir_ns);
    weir_tensor_release(m.source);
    weir_tensor_release(m.target);
    weir_stream_release(m.stream);
    weir_engine_release(m.engine);
    RAW(cuMemFree_v2(m.from));
    RAW(cuMemFree_v2(m.to));
    RAW(cuStreamDestroy_v2(m.raw_stream));
}
