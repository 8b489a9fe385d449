/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Tensors: element types, sizes, memory of the engine's and of the caller's.
 */

#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

#if WITH_ASAN
/* A request that no memory can meet is to fail as it does without the sanitizer. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}
#endif

static void test_dtypes(void) {
    static const struct {
        weir_dtype dtype;
        const char *name;
        size_t bytes;
    } types[] = {{WEIR_F32, "f32", 4}, {WEIR_S32, "s32", 4},   {WEIR_U8, "u8", 1},    {WEIR_S8, "s8", 1},
                 {WEIR_F16, "f16", 2}, {WEIR_BF16, "bf16", 2}, {WEIR_BOOL, "bool", 1}, {WEIR_S64, "s64", 8}};
    weir_engine *engine = make_engine(NULL);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t bytes = 0;
        CHECK(strcmp(weir_dtype_name(types[i].dtype), types[i].name) == 0);
        CHECK_OK(weir_dtype_size(types[i].dtype, &bytes));
        CHECK_EQ(bytes, types[i].bytes);
        weir_tensor *tensor = make_tensor(engine, make_desc(types[i].dtype, 3, 2, 3, 5));
        CHECK_OK(weir_tensor_get_size(tensor, &bytes));
        CHECK_EQ(bytes, 30 * types[i].bytes);
        weir_tensor_release(tensor);
    }
    CHECK(strcmp(weir_dtype_name(99), "?") == 0);
    weir_engine_release(engine);
}

/* All zeros, aligned as the engine says, of every rank. */
static void test_engine_memory(void) {
    weir_engine *engine = make_engine(NULL), *seen_engine = NULL;
    weir_engine_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_engine_get_info(engine, &info));
    for (uint32_t rank = 0; rank <= WEIR_MAX_RANK; rank++) {
        weir_tensor_desc desc = make_desc(WEIR_F32, rank, 2, 2, 2), seen;
        size_t bytes = 0;
        void *data = NULL;
        for (uint32_t i = 0; i < WEIR_MAX_RANK; i++) desc.dims[i] = i < rank ? 2 : -77; /* beyond rank: ignored */
        weir_tensor *tensor = make_tensor(engine, desc);
        CHECK_OK(weir_tensor_get_desc(tensor, &seen));
        CHECK_EQ(seen.dtype, WEIR_F32);
        CHECK_EQ(seen.rank, rank);
        for (uint32_t i = 0; i < rank; i++) CHECK_EQ(seen.dims[i], 2);
        CHECK_OK(weir_tensor_get_size(tensor, &bytes));
        CHECK_EQ(bytes, sizeof(float) << rank);
        CHECK_OK(weir_tensor_get_data(tensor, &data));
        CHECK_EQ((uintptr_t)data % info.alignment, 0);
        for (size_t i = 0; i < bytes; i++) CHECK_EQ(((unsigned char *)data)[i], 0);
        memset(data, 1, bytes);
        CHECK_OK(weir_tensor_get_engine(tensor, &seen_engine));
        CHECK(seen_engine == engine);
        weir_tensor_release(tensor);
    }
    weir_engine_release(engine);
}

static void test_empty(void) {
    weir_engine *engine = make_engine(NULL);
    weir_tensor_desc desc = matrix_desc(INT64_MAX, 0); /* a zero anywhere makes it empty, whatever the rest */
    weir_tensor *tensor = make_tensor(engine, desc), *over_nothing = NULL;
    size_t bytes = 1;
    CHECK_OK(weir_tensor_get_size(tensor, &bytes));
    CHECK_EQ(bytes, 0);
    CHECK_OK(weir_tensor_create(engine, &desc, OVER(NULL), &over_nothing));
    weir_tensor_release(over_nothing);
    weir_tensor_release(tensor);
    weir_engine_release(engine);
}

/* The caller's memory: used in place, given back once, after the last work on it, and not at all if the call fails. */
static void test_caller_memory(void) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_exact(POOL_LATE, 1, &pool);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_tensor_desc desc = vector_desc(4);
    float in[4] = {-1, 2, -3, 4}, out[4] = {9, 9, 9, 9};
    atomic_int released = 0;
    weir_tensor *x = NULL, *y = NULL, *none = (weir_tensor *)in;
    weir_kernel *relu = NULL;
    void *data = NULL;
    CHECK_OK(weir_tensor_create(engine, &desc, OVER_UNTIL(in, count_destroy, &released), &x));
    CHECK_OK(weir_tensor_create(engine, &desc, OVER(out), &y));
    CHECK_OK(weir_tensor_get_data(x, &data));
    CHECK(data == in);
    CHECK_CODE(weir_tensor_create(engine, &desc, OVER_UNTIL((char *)in + 1, count_destroy, &released), &none),
               WEIR_INVALID_ARGUMENT, "data");
    CHECK(none == NULL);
    CHECK_EQ(atomic_load(&released), 0);

    CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_enqueue(stream, relu, &x, 1, &y, 1));
    CHECK_OK(weir_tensor_retain(x));
    weir_tensor_release(x);
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_kernel_release(relu);
    CHECK_EQ(atomic_load(&released), 0);
    test_pool_let_go(host);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    EVENTUALLY(atomic_load(&released) == 1);
    CHECK(out[0] == 0 && out[1] == 2 && out[2] == 0 && out[3] == 4);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
    CHECK_EQ(atomic_load(&released), 1);
}

static void test_refusals(void) {
    weir_engine *engine = make_engine(NULL);
    weir_tensor *tensor = (weir_tensor *)engine;
    weir_tensor_desc desc = vector_desc(INT64_MAX);
    CHECK_CODE(weir_tensor_create(engine, &desc, NULL, &tensor), WEIR_OUT_OF_RANGE, "f32[9223372036854775807]");
    CHECK(tensor == NULL);
    desc = make_desc(WEIR_U8, 3, INT64_MAX / 2, 3, 1);
    CHECK_CODE(weir_tensor_create(engine, &desc, NULL, &tensor), WEIR_OUT_OF_RANGE, "weir_tensor_create: ");
    desc = make_desc(WEIR_U8, 1, INT64_C(1) << 60, 0, 0); /* it can be said, but not had */
    CHECK_CODE(weir_tensor_create(engine, &desc, NULL, &tensor), WEIR_RESOURCE_EXHAUSTED, "1152921504606846976");
    desc = vector_desc(-2);
    CHECK_CODE(weir_tensor_create(engine, &desc, NULL, &tensor), WEIR_INVALID_ARGUMENT, "dims[0] is -2");
    desc = make_desc(WEIR_DTYPE_ANY, 1, 1, 0, 0);
    CHECK_CODE(weir_tensor_create(engine, &desc, NULL, &tensor), WEIR_INVALID_ARGUMENT, "dtype");
    desc = make_desc(99, 1, 1, 0, 0);
    CHECK_CODE(weir_tensor_create(engine, &desc, NULL, &tensor), WEIR_INVALID_ARGUMENT, "dtype is 99");
    desc = make_desc(WEIR_F32, WEIR_MAX_RANK + 1, 1, 1, 1);
    CHECK_CODE(weir_tensor_create(engine, &desc, NULL, &tensor), WEIR_INVALID_ARGUMENT, "rank is 9");
    desc = vector_desc(4);
    CHECK_CODE(weir_tensor_create(engine, &desc, OVER(NULL), &tensor), WEIR_INVALID_ARGUMENT, "data");
    CHECK(tensor == NULL);
    weir_engine_release(engine);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_dtypes();
    test_engine_memory();
    test_empty();
    test_caller_memory();
    test_refusals();
    check_released(&before);
    return 0;
}
