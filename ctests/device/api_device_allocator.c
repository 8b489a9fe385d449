/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * An allocator of the host's for a device's memory, as a framework has one: it gets one large piece of the device's
 * memory, and lends parts of it to an engine of that device.
 */

#include <stdbool.h>
#include <weir/memory.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "make.h"

enum { ARENA = 4 << 20, MOST = 256, LEN = 1000, RUNS = 4 };

typedef struct part {
    size_t begin, bytes;
} part;

/* First fit. */
typedef struct arena {
    uintptr_t base;
    part parts[MOST];
    size_t count, in_use, peak;
    atomic_int calls, released, fail, skewed;
    atomic_flag lock;
} arena;

static void hold(arena *a) {
    while (atomic_flag_test_and_set(&a->lock)) {}
}

static void *lend(void *ctx, size_t bytes, size_t alignment) {
    arena *a = ctx;
    void *data = NULL;
    CHECK(bytes > 0 && alignment >= 1 && (alignment & (alignment - 1)) == 0);
    if (atomic_load(&a->fail) > 0) return atomic_fetch_sub(&a->fail, 1), NULL;
    hold(a);
    a->calls++;
    size_t at = 0, begin = 0;
    for (; at <= a->count; at++) {
        begin = (size_t)(((a->base + begin + alignment - 1) & ~(uintptr_t)(alignment - 1)) - a->base);
        if (begin + bytes <= (at == a->count ? (size_t)ARENA : a->parts[at].begin)) break;
        if (at < a->count) begin = a->parts[at].begin + a->parts[at].bytes;
    }
    if (at <= a->count && a->count < MOST) {
        memmove(&a->parts[at + 1], &a->parts[at], (a->count - at) * sizeof(part));
        a->parts[at] = (part){begin, bytes};
        a->count++;
        a->in_use += bytes;
        if (a->in_use > a->peak) a->peak = a->in_use;
        /* NOLINTNEXTLINE(performance-no-int-to-ptr) an address of the device's */
        data = (void *)(a->base + begin);
    }
    atomic_flag_clear(&a->lock);
    if (data != NULL && atomic_load(&a->skewed) > 0) {
        atomic_fetch_sub(&a->skewed, 1);
        return (char *)data + 1;
    }
    return data;
}

static void take_back(void *ctx, void *data, size_t bytes, size_t alignment) {
    arena *a = ctx;
    size_t at = 0;
    hold(a);
    const size_t begin = (size_t)((uintptr_t)data - a->base) & ~(size_t)1;
    while (at < a->count && a->parts[at].begin != begin) at++;
    CHECK(at < a->count && a->parts[at].bytes == bytes && alignment >= 1);
    a->in_use -= bytes;
    a->count--;
    memmove(&a->parts[at], &a->parts[at + 1], (a->count - at) * sizeof(part));
    atomic_flag_clear(&a->lock);
}

static void release(void *ctx) {
    arena *a = ctx;
    CHECK_EQ(a->count, 0);
    a->released++;
}

static weir_engine *make_device(weir_allocator *allocator, uint64_t limit, weir_memory_mode mode) {
    const weir_emulation emulation = {.struct_size = sizeof emulation, .flags = WEIR_EMULATION_CHECK};
    weir_engine_attr *attr = NULL;
    weir_allocator *seen = NULL;
    weir_engine *device = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_attr_set_allocator(attr, allocator));
    CHECK_OK(weir_engine_attr_get_allocator(attr, &seen));
    CHECK(seen == allocator);
    CHECK_OK(weir_engine_attr_set_memory_limit(attr, limit));
    CHECK_OK(weir_engine_attr_set_memory_mode(attr, mode));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, attr, &device));
    weir_engine_attr_destroy(attr);
    return device;
}

static bool is_lent(const arena *a, weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return (uintptr_t)data >= a->base && (uintptr_t)data < a->base + ARENA;
}

/* Kernels and copies on a stream. */
static void test_stream(weir_engine *cpu, weir_engine *device, const arena *a) {
    weir_stream *stream = NULL;
    weir_kernel *relu = NULL;
    weir_tensor *x = make_tensor(cpu, vector_desc(LEN)), *there = make_tensor(device, vector_desc(LEN));
    weir_tensor *result = make_tensor(device, vector_desc(LEN));
    weir_tensor *y = make_tensor(cpu, vector_desc(LEN));
    CHECK(is_lent(a, there) && is_lent(a, result));
    CHECK_OK(weir_stream_create(device, WEIR_STREAM_ASYNCHRONOUS, NULL, &stream));
    CHECK_OK(weir_kernel_create_eltwise(device, ELTWISE(RELU), NULL, &relu));
    for (int i = 0; i < LEN; i++) floats(x)[i] = (float)(i - LEN / 2);
    CHECK_OK(weir_enqueue_copy(stream, x, there));
    CHECK_OK(weir_enqueue(stream, relu, &there, 1, &result, 1));
    CHECK_OK(weir_enqueue_copy(stream, result, y));
    /* The stream keeps what it uses. */
    weir_tensor_release(there);
    weir_tensor_release(result);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    for (int i = 0; i < LEN; i++) CHECK(floats(y)[i] == (i < LEN / 2 ? 0 : (float)(i - LEN / 2)));
    weir_kernel_release(relu);
    weir_stream_release(stream);
    weir_tensor_release(x);
    weir_tensor_release(y);
}

/* The values of a program's runs lie there, and the second run asks for nothing. */
static void test_program(weir_engine *cpu, weir_engine *device, arena *a) {
    const weir_tensor_desc desc = vector_desc(LEN);
    const weir_eltwise_desc tanh = {.struct_size = sizeof tanh, .op = WEIR_ELTWISE_TANH};
    weir_engine *engines[2] = {cpu, device};
    weir_graph *graph = make_graph("lent");
    weir_kernel *kernel = NULL;
    weir_program *program = NULL;
    weir_value value;
    CHECK_OK(weir_kernel_create_eltwise(device, &tanh, NULL, &kernel));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &value));
    for (int i = 0; i < 5; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "tanh %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &value, 1, &value, 1, NULL));
    }
    CHECK_OK(weir_graph_add_output(graph, "y", value));
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_tensor *x = make_tensor(cpu, desc), *y = make_tensor(cpu, desc);
    float first[LEN];
    for (int i = 0; i < LEN; i++) floats(x)[i] = (float)i / LEN;
    int calls = 0;
    for (int run = 0; run < RUNS; run++) {
        CHECK_OK(weir_program_run(program, NULL, &x, 1, &y, 1, NULL));
        if (run == 0) {
            memcpy(first, floats(y), sizeof first);
            calls = a->calls;
        }
        CHECK(memcmp(first, floats(y), sizeof first) == 0);
        CHECK_EQ(a->calls, calls);
    }
    CHECK(a->in_use > 0);
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_program_release(program);
    weir_kernel_release(kernel);
    weir_graph_destroy(graph);
}

static void test_refusals(weir_engine *device, arena *a) {
    const weir_tensor_desc desc = vector_desc(LEN);
    weir_tensor *tensor = NULL;
    /* A region, and the request alone; in mode direct there is only that. */
    atomic_store(&a->fail, 2);
    CHECK_CODE(weir_tensor_create(device, &desc, NULL, &tensor), WEIR_RESOURCE_EXHAUSTED,
               "the host's allocator has no more memory");
    atomic_store(&a->fail, 0);
    const size_t in_use = a->in_use;
    atomic_store(&a->skewed, 2);
    CHECK_CODE(weir_tensor_create(device, &desc, NULL, &tensor), WEIR_INTERNAL, "which is not aligned to");
    atomic_store(&a->skewed, 0);
    CHECK_EQ(a->in_use, in_use);
    CHECK(tensor == NULL);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info started = runtime_info();
    weir_engine *cpu = make_engine(NULL), *owner = make_device(NULL, UINT64_MAX, WEIR_MEMORY_MODE_DIRECT);
    weir_tensor *all = make_tensor(owner, vector_desc(ARENA / 4));
    void *base = NULL;
    CHECK_OK(weir_tensor_get_data(all, &base));
    for (weir_memory_mode mode = WEIR_MEMORY_MODE_POOLED; mode <= WEIR_MEMORY_MODE_DIRECT; mode++) {
        arena a = {.base = (uintptr_t)base, .lock = ATOMIC_FLAG_INIT};
        weir_allocator *allocator = NULL;
        const weir_allocator_vtable vtable = {
            .struct_size = sizeof vtable, .allocate = lend, .deallocate = take_back, .release = release};
        CHECK_OK(weir_allocator_create(&vtable, &a, &allocator));
        weir_engine *device = make_device(allocator, ARENA / 2, mode);
        weir_allocator_release(allocator);
        test_refusals(device, &a);
        test_stream(cpu, device, &a);
        test_program(cpu, device, &a);
        /* A limit holds here, too. */
        const weir_tensor_desc large = vector_desc(ARENA / 4);
        weir_tensor *none = NULL;
        CHECK_CODE(weir_tensor_create(device, &large, NULL, &none), WEIR_RESOURCE_EXHAUSTED, "limit 2 MiB");
        CHECK(a.peak <= ARENA / 2);
        CHECK_OK(weir_engine_trim(device, 0));
        weir_engine_release(device);
        /* A thread of the device's may hold it for a moment longer. */
        for (int i = 0; i < 10000 && atomic_load(&a.released) == 0; i++) sleep_ns(1000000);
        CHECK_EQ(a.released, 1);
        CHECK_EQ(a.in_use, 0);
    }
    weir_tensor_release(all);
    weir_engine_release(owner);
    weir_engine_release(cpu);
    check_released(&started);
    return 0;
}
