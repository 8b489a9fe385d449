/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Memory of engines, as a user writes it: an allocator of one's own, a limit, figures, trim, and what is said when
 * memory is out.
 */

#include <weir/memory.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

/* An allocator that counts what is out, and can be told to fail. */
typedef struct arena {
    atomic_llong blocks, bytes, calls, released;
    atomic_int fail;   /* this many calls from now on give NULL */
    atomic_int skewed; /* this many give an address that is not aligned */
} arena;

static void *arena_allocate(void *ctx, size_t bytes, size_t alignment) {
    arena *a = ctx;
    atomic_fetch_add(&a->calls, 1);
    CHECK(bytes > 0 && alignment >= 64 && (alignment & (alignment - 1)) == 0);
    if (atomic_load(&a->fail) > 0) return atomic_fetch_sub(&a->fail, 1), NULL;
    char *data = NULL;
    size_t ahead = atomic_load(&a->skewed) > 0 ? 8 : 0;
    if (ahead > 0) atomic_fetch_sub(&a->skewed, 1);
    if (posix_memalign((void **)(void *)&data, alignment, bytes + alignment) != 0) return NULL;
    memset(data, 0xee, bytes + alignment);
    atomic_fetch_add(&a->blocks, 1);
    atomic_fetch_add(&a->bytes, (long long)bytes);
    return data + ahead;
}

static void arena_deallocate(void *ctx, void *data, size_t bytes, size_t alignment) {
    arena *a = ctx;
    atomic_fetch_sub(&a->blocks, 1);
    atomic_fetch_sub(&a->bytes, (long long)bytes);
    free((void *)((uintptr_t)data & ~(uintptr_t)(alignment - 1)));
}

static void arena_release(void *ctx) {
    arena *a = ctx;
    CHECK_EQ(atomic_load(&a->blocks), 0); /* everything came back before */
    atomic_fetch_add(&a->released, 1);
}

static weir_allocator *make_allocator(arena *a, size_t alignment) {
    weir_allocator *allocator = NULL;
    const weir_allocator_vtable vtable = {.struct_size = sizeof vtable,
                                          .alignment = alignment,
                                          .allocate = arena_allocate,
                                          .deallocate = arena_deallocate,
                                          .release = arena_release};
    CHECK_OK(weir_allocator_create(&vtable, a, &allocator));
    return allocator;
}

static weir_engine *make_memory_engine(weir_allocator *allocator, uint64_t limit, weir_memory_mode mode) {
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_engine_attr_set_allocator(attr, allocator));
    CHECK_OK(weir_engine_attr_set_memory_limit(attr, limit));
    CHECK_OK(weir_engine_attr_set_memory_mode(attr, mode));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

static weir_memory_info memory_of(weir_engine *engine) {
    weir_memory_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_engine_get_memory_info(engine, &info));
    CHECK(info.in_use <= info.reserved && info.reserved <= info.limit);
    CHECK(info.in_use <= info.peak_in_use && info.reserved <= info.peak_reserved);
    CHECK(info.fragmentation >= 0 && info.fragmentation <= 1);
    return info;
}

static void check_zero(weir_tensor *tensor) {
    void *data = NULL;
    size_t bytes = 0;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    CHECK_OK(weir_tensor_get_size(tensor, &bytes));
    for (size_t i = 0; i < bytes; i++) CHECK_EQ(((unsigned char *)data)[i], 0);
    memset(data, 0xaa, bytes);
}

static void test_settings(void) {
    arena a = {0};
    weir_allocator *allocator = make_allocator(&a, 0), *seen = NULL;
    weir_engine_attr *attr = NULL;
    const weir_engine_attr *lent = NULL;
    weir_engine *engine = NULL;
    uint64_t limit = 0;
    weir_memory_mode mode = 9;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_engine_attr_get_allocator(attr, &seen));
    CHECK(seen == NULL);
    CHECK_OK(weir_engine_attr_get_memory_limit(attr, &limit));
    CHECK(limit == UINT64_MAX);
    CHECK_OK(weir_engine_attr_get_memory_mode(attr, &mode));
    CHECK_EQ(mode, WEIR_MEMORY_MODE_POOLED);
    CHECK_OK(weir_engine_attr_set_allocator(attr, allocator));
    CHECK_OK(weir_engine_attr_set_memory_limit(attr, 12345));
    CHECK_OK(weir_engine_attr_set_memory_mode(attr, WEIR_MEMORY_MODE_DIRECT));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &engine));
    CHECK_OK(weir_engine_get_attr(engine, &lent));
    CHECK_OK(weir_engine_attr_get_allocator(lent, &seen));
    CHECK(seen == allocator);
    CHECK_OK(weir_engine_attr_get_memory_limit(lent, &limit));
    CHECK_EQ(limit, 12345);
    CHECK_OK(weir_engine_attr_get_memory_mode(lent, &mode));
    CHECK_EQ(mode, WEIR_MEMORY_MODE_DIRECT);
    CHECK_EQ(memory_of(engine).limit, 12345);
    weir_engine_attr_destroy(attr);
    weir_allocator_release(allocator);
    CHECK_EQ(atomic_load(&a.released), 0);
    weir_engine_release(engine);
    CHECK_EQ(atomic_load(&a.released), 1);
    CHECK_EQ(atomic_load(&a.calls), 0);
}

/* Tensors, scratch and values of runs come from the allocator, and go back to it with the engine and all that is on
 * it. */
static void test_allocator(void) {
    for (weir_memory_mode mode = WEIR_MEMORY_MODE_POOLED; mode <= WEIR_MEMORY_MODE_DIRECT; mode++) {
        arena a = {0};
        weir_allocator *allocator = make_allocator(&a, 256);
        weir_engine *engine = make_memory_engine(allocator, UINT64_MAX, mode);
        weir_engine_info info = {.struct_size = sizeof info};
        weir_allocator_release(allocator);
        CHECK_OK(weir_engine_get_info(engine, &info));
        CHECK_EQ(info.alignment, 256);
        weir_tensor *kept = NULL;
        for (int round = 0; round < 3; round++) {
            weir_tensor *tensors[20];
            for (int i = 0; i < 20; i++) {
                void *data = NULL;
                tensors[i] = make_tensor(engine, vector_desc(1 + 3000 * i));
                CHECK_OK(weir_tensor_get_data(tensors[i], &data));
                CHECK_EQ((uintptr_t)data % 256, 0);
                check_zero(tensors[i]);
            }
            CHECK_EQ(memory_of(engine).blocks, 20 + (round > 0));
            CHECK(memory_of(engine).reserved == (uint64_t)atomic_load(&a.bytes));
            CHECK(memory_of(engine).regions == (uint64_t)atomic_load(&a.blocks));
            for (int i = 1; i < 20; i++) weir_tensor_release(tensors[i]);
            weir_tensor_release(kept);
            kept = tensors[0];
        }
        const weir_memory_info after = memory_of(engine);
        CHECK_EQ(after.blocks, 1);
        CHECK_EQ(after.allocations, 60);
        CHECK_EQ(after.region_allocations, atomic_load(&a.calls));
        if (mode == WEIR_MEMORY_MODE_DIRECT) {
            CHECK_EQ(after.in_use, sizeof(float));
            CHECK_EQ(after.reserved, sizeof(float));
            CHECK_EQ(after.region_allocations, 60);
        } else {
            CHECK(after.region_allocations < 5); /* rounds two and three asked for nothing */
        }
        /* The tensor keeps the engine. */
        weir_engine_release(engine);
        CHECK_EQ(atomic_load(&a.released), 0);
        weir_tensor_release(kept);
        CHECK_EQ(atomic_load(&a.released), 1);
        CHECK_EQ(atomic_load(&a.blocks), 0);
    }
}

/* An allocator that fails, or gives what is no good, makes the call fail, and nothing is lost. */
static void test_allocator_fails(void) {
    for (weir_memory_mode mode = WEIR_MEMORY_MODE_POOLED; mode <= WEIR_MEMORY_MODE_DIRECT; mode++) {
        arena a = {0};
        weir_allocator *allocator = make_allocator(&a, 0);
        weir_engine *engine = make_memory_engine(allocator, UINT64_MAX, mode);
        weir_tensor *tensor = NULL;
        weir_tensor_desc desc = vector_desc(1000);
        atomic_store(&a.fail, 2); /* of a region, and of no more than is needed */
        CHECK_CODE(weir_tensor_create(engine, &desc, NULL, &tensor), WEIR_RESOURCE_EXHAUSTED,
                   "engine cpu:0: 3.9 KiB (4000 bytes) for tensor f32[1000]: the host's allocator has no more memory");
        atomic_store(&a.fail, 0);
        atomic_store(&a.skewed, 2);
        CHECK_CODE(weir_tensor_create(engine, &desc, NULL, &tensor), WEIR_INTERNAL, "which is not aligned to 64 bytes");
        atomic_store(&a.skewed, 0);
        CHECK_EQ(memory_of(engine).reserved, 0);
        CHECK_EQ(memory_of(engine).blocks, 0);
        CHECK_EQ(atomic_load(&a.bytes), 0);
        /* A region is refused, and what is needed is not: good enough. */
        atomic_store(&a.fail, mode == WEIR_MEMORY_MODE_POOLED);
        CHECK_OK(weir_tensor_create(engine, &desc, NULL, &tensor));
        check_zero(tensor);
        weir_tensor_release(tensor);
        weir_engine_release(engine);
        weir_allocator_release(allocator);
        CHECK_EQ(atomic_load(&a.released), 1);
    }
}

/* The limit holds for all regions together, the text says who has the memory, and what is free makes room. */
static void test_limit(void) {
    weir_engine *engine = make_memory_engine(NULL, 16 << 20, WEIR_MEMORY_MODE_POOLED);
    weir_tensor *tensors[3] = {NULL}, *refused = NULL;
    const weir_tensor_desc large = matrix_desc(1024, 1024), most = matrix_desc(3 * 1024, 1024), all = matrix_desc(4 * 1024, 1024);
    for (int i = 0; i < 3; i++) tensors[i] = make_tensor(engine, large);
    CHECK_CODE(weir_tensor_create(engine, &most, NULL, &refused), WEIR_RESOURCE_EXHAUSTED,
               "engine cpu:0: 12 MiB (12582912 bytes) for tensor f32[3072,1024]: limit 16 MiB, in use 12 MiB, largest free block ");
    CHECK_CODE(weir_tensor_create(engine, &most, NULL, &refused), WEIR_RESOURCE_EXHAUSTED,
               "most is held by 3 x tensor f32[1024,1024] (12 MiB)");
    CHECK(refused == NULL);
    weir_tensor_release(tensors[0]);
    weir_tensor_release(tensors[1]);
    CHECK_CODE(weir_tensor_create(engine, &all, NULL, &refused), WEIR_RESOURCE_EXHAUSTED, "in use 4 MiB");
    weir_tensor_release(tensors[2]);
    for (int i = 0; i < 3; i++) {
        weir_tensor *whole = make_tensor(engine, all); /* regions went back to make room for it */
        check_zero(whole);
        CHECK_EQ(memory_of(engine).reserved, 16 << 20);
        weir_tensor_release(whole);
    }
    CHECK_EQ(memory_of(engine).in_use, 0);
    weir_engine_release(engine);
}

static void test_figures_and_trim(void) {
    weir_engine *engine = make_memory_engine(NULL, UINT64_MAX, WEIR_MEMORY_MODE_POOLED);
    CHECK_EQ(memory_of(engine).reserved, 0);
    CHECK(memory_of(engine).limit == UINT64_MAX);
    weir_tensor *tensors[8];
    for (int i = 0; i < 8; i++) tensors[i] = make_tensor(engine, vector_desc(1 << 20));
    const weir_memory_info full = memory_of(engine);
    CHECK_EQ(full.blocks, 8);
    CHECK_EQ(full.in_use, 32 << 20);
    for (int i = 0; i < 8; i += 2) weir_tensor_release(tensors[i]);
    const weir_memory_info half = memory_of(engine);
    CHECK_EQ(half.in_use, 16 << 20);
    CHECK_EQ(half.peak_in_use, 32 << 20);
    CHECK(half.largest_free >= 4 << 20 && half.largest_free <= half.reserved - half.in_use);
    CHECK(half.fragmentation > 0);
    CHECK_OK(weir_engine_reset_memory_peak(engine));
    CHECK_EQ(memory_of(engine).peak_in_use, 16 << 20);
    for (int i = 1; i < 8; i += 2) weir_tensor_release(tensors[i]);
    const weir_memory_info none = memory_of(engine);
    CHECK_EQ(none.in_use, 0);
    CHECK(none.reserved == full.reserved); /* kept for the next */
    CHECK_OK(weir_engine_trim(engine, none.reserved));
    CHECK(memory_of(engine).reserved == none.reserved);
    CHECK_OK(weir_engine_trim(engine, 8 << 20));
    CHECK(memory_of(engine).reserved <= 8 << 20);
    CHECK_OK(weir_engine_trim(engine, 0));
    CHECK_EQ(memory_of(engine).reserved, 0);
    CHECK_EQ(memory_of(engine).regions, 0);
    CHECK(memory_of(engine).peak_reserved == full.peak_reserved);
    weir_engine_release(engine);
}

static int32_t double_scratch(void *user, weir_kernel_context *context) {
    (void)user;
    void *scratch = NULL;
    const weir_tensor_view *inputs = NULL, *outputs = NULL;
    size_t count = 0;
    weir_status status = weir_kernel_context_get_scratch(context, 0, &scratch);
    if (status == WEIR_OK) status = weir_kernel_context_get_inputs(context, &inputs, &count);
    if (status == WEIR_OK) status = weir_kernel_context_get_outputs(context, &outputs, &count);
    if (status != WEIR_OK) return status;
    memcpy(scratch, inputs[0].data, inputs[0].bytes);
    for (size_t i = 0; i < inputs[0].bytes / sizeof(float); i++)
        ((float *)outputs[0].data)[i] = 2 * ((float *)scratch)[i];
    return WEIR_OK;
}

static char *dump_of(weir_engine *engine) {
    size_t length = 0;
    CHECK_OK(weir_engine_dump_memory(engine, NULL, 0, &length));
    char *text = malloc(length + 1);
    CHECK(text != NULL);
    CHECK_OK(weir_engine_dump_memory(engine, text, length + 1, &length));
    CHECK_EQ(strlen(text), length);
    return text;
}

/* A thousand calls that wait on an asynchronous stream share one scratch memory, because they run one after the
 * other. */
static void test_scratch_of_a_stream(void) {
    enum { CALLS = 1000, N = 1000 };
    weir_engine *engine = make_memory_engine(NULL, UINT64_MAX, WEIR_MEMORY_MODE_POOLED);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    const weir_tensor_desc desc = vector_desc(N);
    weir_host_kernel_desc of = make_kernel_desc("twice", double_scratch, NULL);
    weir_kernel *kernel = NULL;
    of.num_inputs = of.num_outputs = 1;
    of.inputs = of.outputs = &desc;
    of.scratch_bytes = N * sizeof(float);
    CHECK_OK(weir_kernel_create_host(engine, &of, &kernel));
    weir_tensor *in = make_tensor(engine, desc), *out = make_tensor(engine, desc);
    float *from = NULL, *to = NULL;
    CHECK_OK(weir_tensor_get_data(in, (void **)(void *)&from));
    CHECK_OK(weir_tensor_get_data(out, (void **)(void *)&to));
    for (int i = 0; i < N; i++) from[i] = (float)i;
    const uint64_t before = memory_of(engine).in_use;
    for (int i = 0; i < CALLS; i++) CHECK_OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    for (int i = 0; i < N; i++) CHECK(to[i] == 2 * from[i]);
    CHECK(memory_of(engine).peak_in_use <= before + 2 * N * sizeof(float));
    CHECK_EQ(memory_of(engine).blocks, 2);
    /* On a synchronous stream the scratch stays with the stream, and the dump says what it is. */
    weir_stream *here = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    CHECK_OK(weir_enqueue(here, kernel, &in, 1, &out, 1));
    char *text = dump_of(engine);
    CHECK_TEXT(text, "{\"name\":\"engine cpu:0\",\"in_use\":");
    CHECK_TEXT(text, "{\"for\":\"tensor f32[1000]\",\"blocks\":2,\"bytes\":");
    CHECK_TEXT(text, "{\"for\":\"scratch of kernel 'twice'\",\"blocks\":1,\"bytes\":");
    CHECK_TEXT(text, "\"state\":\"free\"");
    free(text);
    weir_stream_release(here);
    weir_stream_release(stream);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_kernel_release(kernel);
    CHECK_EQ(memory_of(engine).in_use, 0);
    weir_engine_release(engine);
}

static int32_t negate(void *user, weir_kernel_context *context) {
    (void)user;
    const weir_tensor_view *inputs = NULL, *outputs = NULL;
    size_t count = 0;
    weir_status status = weir_kernel_context_get_inputs(context, &inputs, &count);
    if (status == WEIR_OK) status = weir_kernel_context_get_outputs(context, &outputs, &count);
    if (status != WEIR_OK) return status;
    for (size_t i = 0; i < inputs[0].bytes / sizeof(float); i++)
        ((float *)outputs[0].data)[i] = -((const float *)inputs[0].data)[i];
    return WEIR_OK;
}

/* The values of a program's runs are the engine's memory too: they count, and a limit that they break is an error of
 * the run. */
static void test_values_of_runs(void) {
    enum { N = 1 << 18 };
    weir_engine *engine = make_memory_engine(NULL, 8 << 20, WEIR_MEMORY_MODE_POOLED);
    weir_graph *graph = make_graph("large");
    weir_program *program = NULL;
    weir_value value;
    const weir_tensor_desc desc = vector_desc(N);
    weir_kernel *kernel = make_unary_kernel(engine, "negate", negate, NULL, &desc);
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &value));
    for (int i = 0; i < 6; i++) {
        char name[32];
        snprintf(name, sizeof name, "negate%d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &value, 1, &value, 1, NULL));
    }
    CHECK_OK(weir_graph_add_output(graph, "y", value));
    program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_tensor *x = make_tensor(engine, desc), *y = NULL, *crowd = make_tensor(engine, vector_desc(6 * N));
    float *out = calloc(N, sizeof *out);
    CHECK(out != NULL);
    CHECK_OK(weir_tensor_create(engine, &desc, OVER(out), &y));
    for (int i = 0; i < N; i++) floats(x)[i] = (float)i;
    /* Two places for six values, and room for one. */
    CHECK_CODE(weir_program_run(program, NULL, &x, 1, &y, 1, NULL), WEIR_RESOURCE_EXHAUSTED,
               "engine cpu:0: 2 MiB (2097152 bytes) for values of program 'large': limit 8 MiB, in use 7 MiB");
    CHECK_CODE(weir_program_run(program, NULL, &x, 1, &y, 1, NULL), WEIR_RESOURCE_EXHAUSTED,
               "most is held by tensor f32[1572864] (6 MiB), tensor f32[262144] (1 MiB)");
    weir_tensor_release(crowd);
    CHECK_OK(weir_program_run(program, NULL, &x, 1, &y, 1, NULL));
    for (int i = 0; i < N; i++) CHECK(out[i] == (float)i);
    char *text = dump_of(engine);
    CHECK_TEXT(text, "{\"for\":\"values of program 'large'\",\"blocks\":1,\"bytes\":2097152}");
    free(text);
    weir_program_release(program);
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_kernel_release(kernel);
    CHECK_EQ(memory_of(engine).in_use, 0);
    weir_engine_release(engine);
    free(out);
}

/* Tensors on a buffer share its bytes, and keep it. */
static void test_buffers(void) {
    weir_engine *engine = make_memory_engine(NULL, UINT64_MAX, WEIR_MEMORY_MODE_POOLED), *seen = NULL;
    weir_buffer *buffer = NULL, *empty = NULL;
    weir_engine_info info = {.struct_size = sizeof info};
    weir_tensor *all = NULL, *part = NULL;
    const weir_tensor_desc eight = vector_desc(8), three = vector_desc(3);
    void *data = NULL;
    size_t bytes = 0;
    CHECK_OK(weir_engine_get_info(engine, &info));
    CHECK_OK(weir_buffer_create(engine, 8 * sizeof(float), NULL, &buffer));
    CHECK_OK(weir_buffer_create(engine, 0, NULL, &empty));
    CHECK_OK(weir_buffer_get_size(empty, &bytes));
    CHECK_EQ(bytes, 0);
    weir_buffer_release(empty);
    CHECK_OK(weir_buffer_get_size(buffer, &bytes));
    CHECK_EQ(bytes, 8 * sizeof(float));
    CHECK_OK(weir_buffer_get_engine(buffer, &seen));
    CHECK(seen == engine);
    CHECK_OK(weir_buffer_get_data(buffer, &data));
    CHECK_EQ((uintptr_t)data % info.alignment, 0);
    for (int i = 0; i < 8; i++) ((float *)data)[i] = (float)i;
    CHECK_OK(weir_tensor_create(engine, &eight, ON_BUFFER(buffer, 0), &all));
    CHECK_OK(weir_tensor_create(engine, &three, ON_BUFFER(buffer, 4 * sizeof(float)), &part));
    CHECK(floats(all) == data && floats(part) == (float *)data + 4);
    floats(part)[0] = 44;
    CHECK(floats(all)[4] == 44 && floats(all)[5] == 5);
    char *text = dump_of(engine);
    CHECK_TEXT(text, "{\"for\":\"buffer\",\"blocks\":1,");
    free(text);
    weir_engine_release(engine);
    weir_buffer_release(buffer);
    weir_tensor_release(all);
    CHECK(floats(part)[2] == 6);
    weir_tensor_release(part);
}

static int32_t wait_for_gate(void *user, weir_kernel_context *context) {
    (void)context;
    return pass_gate(user);
}

/* The caller's memory is given back once, when nothing uses it any more: no handle, no tensor, no work that is
 * queued. */
static void test_imported(void) {
    float memory[16] = {1, 2, 3, 4};
    atomic_int released = 0;
    gate g = {0};
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    const weir_tensor_desc desc = vector_desc(4);
    weir_kernel *kernel = make_unary_kernel(engine, "wait", wait_for_gate, &g, &desc);
    weir_buffer *buffer = NULL;
    weir_tensor *in = NULL, *out = NULL;
    CHECK_CODE(weir_buffer_create(engine, 4, OVER_UNTIL(NULL, count_destroy, &released), &buffer), WEIR_INVALID_ARGUMENT, "data is NULL");
    CHECK_EQ(atomic_load(&released), 0);
    CHECK_OK(weir_buffer_create(engine, sizeof memory, OVER_UNTIL(memory, count_destroy, &released), &buffer));
    CHECK_OK(weir_tensor_create(engine, &desc, ON_BUFFER(buffer, 0), &in));
    CHECK_OK(weir_tensor_create(engine, &desc, ON_BUFFER(buffer, 32), &out));
    CHECK(floats(in)[3] == 4);
    CHECK_OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
    weir_buffer_release(buffer);
    weir_tensor_release(in);
    weir_tensor_release(out);
    EVENTUALLY(atomic_load(&g.begun) == 1);
    CHECK_EQ(atomic_load(&released), 0);
    open_gate(&g);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&released), 1);
    /* Over one another is legal, and an output over an input is not. */
    CHECK_OK(weir_buffer_create(engine, sizeof memory, OVER(memory), &buffer));
    CHECK_OK(weir_tensor_create(engine, &desc, ON_BUFFER(buffer, 0), &in));
    CHECK_OK(weir_tensor_create(engine, &desc, ON_BUFFER(buffer, 8), &out));
    CHECK_CODE(weir_enqueue(stream, kernel, &in, 1, &out, 1), WEIR_INVALID_ARGUMENT, "output 0 shares memory with input 0");
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_buffer_release(buffer);
    weir_kernel_release(kernel);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

int main(void) {
    test_settings();
    test_allocator();
    test_allocator_fails();
    test_limit();
    test_figures_and_trim();
    test_scratch_of_a_stream();
    test_values_of_runs();
    test_buffers();
    test_imported();
    weir_runtime_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_runtime_get_info(&info));
    CHECK_EQ(info.engines, 0);
    CHECK_EQ(info.allocators, 0);
    CHECK_EQ(info.buffers, 0);
    return 0;
}
