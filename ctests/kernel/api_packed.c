/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Weights packed once, f32 and s8, used by several kernels, threads and pools; products with leading dimensions and
 * with what follows them; products of bytes in all types.
 */

#include <math.h>
#include <pthread.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

enum { M = 9, K = 70, N = 33 };

static weir_packed_weights *pack(weir_engine *engine, weir_tensor *tensor, uint64_t flags) {
    weir_packed_weights_desc desc = {.struct_size = sizeof desc, .flags = flags};
    weir_packed_weights *weights = NULL;
    CHECK_OK(weir_packed_weights_create(engine, tensor, &desc, &weights));
    return weights;
}

static weir_kernel *matmul_with(weir_engine *engine, uint64_t flags, weir_activation activation, weir_packed_weights *weights) {
    weir_matmul_desc desc = {.struct_size = sizeof desc, .flags = flags, .activation = activation, .weights = weights};
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_matmul(engine, &desc, NULL, &kernel));
    return kernel;
}

static void *bytes(const weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return data;
}

/* relu(A * W + bias + addend): whole numbers make it exact. The weights are packed, and then let go. */
static void test_f32(void) {
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_tensor *b = make_tensor(engine, matrix_desc(N, K));
    weir_tensor *in[3] = {make_tensor(engine, matrix_desc(M, K)), make_tensor(engine, vector_desc(N)),
                          make_tensor(engine, matrix_desc(M, N))};
    weir_tensor *c = make_tensor(engine, matrix_desc(M, N));
    static float w[N * K];
    size_t size = 0;
    fill(b, 5);
    memcpy(w, floats(b), sizeof w);
    for (int i = 0; i < 3; i++) fill(in[i], i);
    weir_packed_weights *weights = pack(engine, b, WEIR_PACKED_WEIGHTS_TRANSPOSED);
    CHECK_OK(weir_packed_weights_get_size(weights, &size));
    CHECK(size >= sizeof w);
    memset(floats(b), 0x7f, sizeof w); /* it is not needed any more */
    weir_tensor_release(b);
    weir_kernel *kernel = matmul_with(engine, WEIR_MATMUL_BIAS | WEIR_MATMUL_SUM, WEIR_ACTIVATION_RELU, weights);
    CHECK_OK(weir_packed_weights_retain(weights));
    weir_packed_weights_release(weights);
    weir_packed_weights_release(weights);
    CHECK_OK(weir_enqueue(stream, kernel, in, 3, &c, 1));
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            float sum = floats(in[1])[j] + floats(in[2])[i * N + j];
            for (int p = 0; p < K; p++) sum += floats(in[0])[i * K + p] * w[j * K + p];
            CHECK(floats(c)[i * N + j] == (sum > 0 ? sum : 0));
        }
    }
    CHECK_CODE(weir_enqueue(stream, kernel, in + 1, 2, &c, 1), WEIR_INVALID_ARGUMENT, "expected 3 inputs, got 2");
    for (int i = 0; i < 3; i++) weir_tensor_release(in[i]);
    weir_tensor_release(c);
    weir_kernel_release(kernel);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* Many threads at once, each with a pool, an engine's stream and a kernel of its own, on the same weights. */
typedef struct user {
    weir_engine *engine;
    weir_packed_weights *weights;
    int index;
    float result[M * N];
} user;

static void *use_weights(void *arg) {
    user *u = (user *)arg;
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create(POOL_FULL, 1 + u->index, &pool);
    weir_stream *stream = make_stream(u->engine, WEIR_STREAM_DEFAULT, pool, NULL);
    weir_kernel *kernel = matmul_with(u->engine, 0, WEIR_ACTIVATION_GELU_TANH, u->weights);
    weir_tensor *a = make_tensor(u->engine, matrix_desc(M, K)), *c = make_tensor(u->engine, matrix_desc(M, N));
    fill(a, 3);
    for (int i = 0; i < 20; i++) CHECK_OK(weir_enqueue(stream, kernel, &a, 1, &c, 1));
    memcpy(u->result, floats(c), sizeof u->result);
    weir_tensor_release(a);
    weir_tensor_release(c);
    weir_kernel_release(kernel);
    weir_stream_release(stream);
    test_pool_let_go(host);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
    return NULL;
}

static void test_shared(void) {
    enum { USERS = 4 };
    static user users[USERS];
    pthread_t threads[USERS];
    weir_engine *engine = make_engine(NULL);
    weir_tensor *b = make_tensor(engine, matrix_desc(K, N));
    fill(b, 4);
    weir_packed_weights *weights = pack(engine, b, 0);
    for (int i = 0; i < USERS; i++) {
        users[i] = (user){.engine = engine, .weights = weights, .index = i};
        CHECK_EQ(pthread_create(&threads[i], NULL, use_weights, &users[i]), 0);
    }
    for (int i = 0; i < USERS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 1; i < USERS; i++) CHECK(memcmp(users[i].result, users[0].result, sizeof users[0].result) == 0);
    weir_packed_weights_release(weights);
    weir_tensor_release(b);
    weir_engine_release(engine);
}

static int32_t saturated(double x, int32_t least, int32_t most) {
    return x < least ? least : x > most ? most : (int32_t)x;
}

/* u8 and s8 A, B as an input and packed; zero points, bias, a scale, in every type of C. */
static void check_int8(weir_engine *engine, weir_stream *stream, weir_dtype a_type, weir_dtype c_type, int packed) {
    weir_matmul_int8_desc desc = {.struct_size = sizeof desc, .flags = WEIR_MATMUL_INT8_BIAS, .dtype = c_type};
    weir_kernel *kernel = NULL;
    weir_tensor *a = make_tensor(engine, make_desc(a_type, 2, M, K, 0)), *b = make_tensor(engine, make_desc(WEIR_S8, 2, K, N, 0));
    weir_tensor *bias = make_tensor(engine, make_desc(WEIR_S32, 1, N, 0, 0)), *c = make_tensor(engine, make_desc(c_type, 2, M, N, 0));
    uint8_t *x = bytes(a);
    int8_t *y = bytes(b);
    int32_t *z = bytes(bias);
    for (int i = 0; i < M * K; i++) x[i] = (uint8_t)(i * 37);
    for (int i = 0; i < K * N; i++) y[i] = (int8_t)(i * 101 % 256 - 128);
    for (int i = 0; i < N; i++) z[i] = 1000 * i - 500;
    weir_packed_weights *weights = packed ? pack(engine, b, 0) : NULL;
    desc.zero_a = 3;
    desc.zero_b = -1;
    desc.zero_c = 2;
    desc.scale = 1.0f / 2048;
    desc.weights = weights;
    CHECK_OK(weir_kernel_create_matmul_int8(engine, &desc, NULL, &kernel));
    weir_packed_weights_release(weights);
    weir_tensor *both[3] = {a, b, bias}, *one[2] = {a, bias};
    CHECK_OK(weir_enqueue(stream, kernel, packed ? one : both, packed ? 2 : 3, &c, 1));
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            int32_t sum = z[j];
            for (int p = 0; p < K; p++) {
                int32_t of_a = a_type == WEIR_U8 ? x[i * K + p] : (int8_t)x[i * K + p];
                sum += (of_a - 3) * (y[p * N + j] + 1);
            }
            double scaled = sum / 2048.0, whole = nearbyint(scaled) + 2;
            void *out = (char *)bytes(c) + (size_t)(i * N + j) * (c_type == WEIR_S32 || c_type == WEIR_F32 ? 4 : 1);
            if (c_type == WEIR_S32) CHECK_EQ(*(int32_t *)out, (int32_t)whole);
            if (c_type == WEIR_F32) CHECK(*(float *)out == (float)(scaled + 2));
            if (c_type == WEIR_S8) CHECK_EQ(*(int8_t *)out, saturated(whole, -128, 127));
            if (c_type == WEIR_U8) CHECK_EQ(*(uint8_t *)out, saturated(whole, 0, 255));
        }
    }
    weir_kernel_release(kernel);
    weir_tensor_release(a);
    weir_tensor_release(b);
    weir_tensor_release(bias);
    weir_tensor_release(c);
}

static void test_int8(weir_threadpool *pool) {
    static const weir_dtype types[] = {WEIR_S32, WEIR_F32, WEIR_S8, WEIR_U8};
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    for (int i = 0; i < 8; i++) {
        check_int8(engine, stream, WEIR_U8, types[i / 2], i % 2);
        check_int8(engine, stream, WEIR_S8, types[i / 2], i % 2);
    }
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* [2, 1, 4, 3] * [5, 3, 6] gives [2, 5, 4, 6]. */
static void test_leading_dimensions(void) {
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_tensor_desc four = make_desc(WEIR_F32, 4, 2, 1, 4), result = make_desc(WEIR_F32, 4, 2, 5, 4);
    four.dims[3] = 3;
    result.dims[3] = 6;
    weir_tensor *in[2] = {make_tensor(engine, four), make_tensor(engine, make_desc(WEIR_F32, 3, 5, 3, 6))};
    weir_tensor *c = make_tensor(engine, result);
    weir_kernel *kernel = matmul_with(engine, 0, WEIR_ACTIVATION_NONE, NULL);
    fill(in[0], 1);
    fill(in[1], 2);
    CHECK_OK(weir_enqueue(stream, kernel, in, 2, &c, 1));
    for (int at = 0; at < 2 * 5 * 4 * 6; at++) {
        int j = at % 6, i = at / 6 % 4, right = at / 24 % 5, left = at / 120;
        float sum = 0;
        for (int p = 0; p < 3; p++) sum += floats(in[0])[(left * 4 + i) * 3 + p] * floats(in[1])[(right * 3 + p) * 6 + j];
        CHECK(floats(c)[at] == sum);
    }
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_tensor_release(c);
    weir_kernel_release(kernel);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create(POOL_FULL, 3, &pool);
    test_f32();
    test_shared();
    test_leading_dimensions();
    test_int8(NULL);
    test_int8(pool);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
    check_released(&before);
    return 0;
}
