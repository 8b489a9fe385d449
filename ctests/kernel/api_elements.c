/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Kernels that compute each element for itself, as a program uses them: functions in place, a comparison that chooses,
 * a network's numbers in fewer bits and back.
 */

#include <fenv.h>
#include <math.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

typedef struct station {
    weir_engine *engine;
    weir_stream *stream;
} station;

static void *data_of(const weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return data;
}

static weir_tensor *values(const station *t, weir_tensor_desc desc, const float *from) {
    weir_tensor *tensor = make_tensor(t->engine, desc);
    memcpy(floats(tensor), from, num_floats(tensor) * sizeof(float));
    return tensor;
}

static void run_once(const station *t, weir_kernel *kernel, weir_tensor *const *in, size_t num_in, weir_tensor *out) {
    CHECK_OK(weir_enqueue(t->stream, kernel, in, num_in, &out, 1));
    weir_kernel_release(kernel);
}

static weir_kernel *eltwise(const station *t, weir_eltwise_op op, float alpha, float beta) {
    weir_eltwise_desc desc = {.struct_size = sizeof desc, .op = op, .alpha = alpha, .beta = beta};
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_eltwise(t->engine, &desc, NULL, &kernel));
    return kernel;
}

static weir_kernel *binary(const station *t, weir_binary_op op) {
    weir_binary_desc desc = {.struct_size = sizeof desc, .op = op};
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_binary(t->engine, &desc, NULL, &kernel));
    return kernel;
}

static double softplus(double x) {
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

/* Each function at the same numbers, once into other memory and once over its input. */
static void check_function(const station *t, weir_eltwise_op op, float alpha, float beta, double (*f)(double)) {
    enum { N = 1001 };
    static float x[N];
    for (int i = 0; i < N; i++) x[i] = (float)(i - 300) * 0.013f;
    weir_tensor *in = values(t, vector_desc(N), x), *out = make_tensor(t->engine, vector_desc(N));
    run_once(t, eltwise(t, op, alpha, beta), &in, 1, out);
    run_once(t, eltwise(t, op, alpha, beta), &in, 1, in);
    CHECK(memcmp(floats(in), floats(out), N * sizeof(float)) == 0);
    for (int i = 0; i < N; i++) {
        double want = f((double)x[i]), got = (double)floats(out)[i];
        CHECK(isnan(want) ? isnan(got) : got == want || fabs(got - want) <= 4e-6 * fabs(want) + 1e-12);
    }
    weir_tensor_release(in);
    weir_tensor_release(out);
}

static double leaky(double x) { return x < 0 ? 0.25 * x : x; }
static double elu(double x) { return x < 0 ? 0.5 * expm1(x) : x; }
static double gelu_erf(double x) { return x * erfc(-x / sqrt(2.0)) / 2; }
static double gelu_tanh(double x) { return x / (1 + exp(-2 * sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x))); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x / (1 + exp(-x)); }
static double square(double x) { return x * x; }
static double negative(double x) { return -x; }
static double clip(double x) { return x < -2 ? -2 : x > 3 ? 3 : x; }
static double linear(double x) { return 2 * x - 3; }
static double power(double x) { return 3 * x * x; }
static double hardsigmoid(double x) { return fmin(fmax(0.25 * x + 0.5, 0), 1); }
static double hardswish(double x) { return x * hardsigmoid(x); }
static double sign(double x) { return (x > 0) - (x < 0); }
static double mish(double x) { return x * tanh(softplus(x)); }

static void test_functions(const station *t) {
    check_function(t, WEIR_ELTWISE_RELU, 0.25f, 0, leaky);
    check_function(t, WEIR_ELTWISE_ELU, 0.5f, 0, elu);
    check_function(t, WEIR_ELTWISE_GELU_ERF, 0, 0, gelu_erf);
    check_function(t, WEIR_ELTWISE_GELU_TANH, 0, 0, gelu_tanh);
    check_function(t, WEIR_ELTWISE_TANH, 0, 0, tanh);
    check_function(t, WEIR_ELTWISE_SIGMOID, 0, 0, sigmoid);
    check_function(t, WEIR_ELTWISE_SWISH, 1, 0, silu);
    check_function(t, WEIR_ELTWISE_EXP, 0, 0, exp);
    check_function(t, WEIR_ELTWISE_LOG, 0, 0, log);
    check_function(t, WEIR_ELTWISE_SQRT, 0, 0, sqrt);
    check_function(t, WEIR_ELTWISE_SQUARE, 0, 0, square);
    check_function(t, WEIR_ELTWISE_ABS, 0, 0, fabs);
    check_function(t, WEIR_ELTWISE_NEG, 0, 0, negative);
    check_function(t, WEIR_ELTWISE_CLIP, -2, 3, clip);
    check_function(t, WEIR_ELTWISE_LINEAR, 2, -3, linear);
    check_function(t, WEIR_ELTWISE_POW, 3, 2, power);
    check_function(t, WEIR_ELTWISE_HARDSIGMOID, 0.25f, 0.5f, hardsigmoid);
    check_function(t, WEIR_ELTWISE_HARDSWISH, 0.25f, 0.5f, hardswish);
    check_function(t, WEIR_ELTWISE_ROUND, 0, 0, rint);
    check_function(t, WEIR_ELTWISE_MISH, 0, 0, mish);
    check_function(t, WEIR_ELTWISE_SOFTPLUS, 1, 0, softplus);
    check_function(t, WEIR_ELTWISE_ERF, 0, 0, erf);
    check_function(t, WEIR_ELTWISE_FLOOR, 0, 0, floor);
    check_function(t, WEIR_ELTWISE_CEIL, 0, 0, ceil);
    check_function(t, WEIR_ELTWISE_TRUNC, 0, 0, trunc);
    check_function(t, WEIR_ELTWISE_SIGN, 0, 0, sign);
    check_function(t, WEIR_ELTWISE_SIN, 0, 0, sin);
    check_function(t, WEIR_ELTWISE_COS, 0, 0, cos);
    check_function(t, WEIR_ELTWISE_TAN, 0, 0, tan);
    check_function(t, WEIR_ELTWISE_ASIN, 0, 0, asin);
    check_function(t, WEIR_ELTWISE_ACOS, 0, 0, acos);
    check_function(t, WEIR_ELTWISE_ATAN, 0, 0, atan);
    check_function(t, WEIR_ELTWISE_SINH, 0, 0, sinh);
    check_function(t, WEIR_ELTWISE_COSH, 0, 0, cosh);
}

/* Each type, as the header says. */
static void test_types(const station *t) {
    for (weir_dtype dtype = WEIR_F32; dtype <= WEIR_S64; dtype++) {
        weir_tensor *truth = make_tensor(t->engine, make_desc(WEIR_BOOL, 1, 3, 0, 0)), *from = make_tensor(t->engine, vector_desc(3));
        weir_tensor *a = make_tensor(t->engine, make_desc(dtype, 1, 3, 0, 0)), *y = make_tensor(t->engine, make_desc(dtype, 1, 3, 0, 0));
        weir_kernel *select = NULL, *to = NULL, *back = NULL;
        CHECK_OK(weir_kernel_create_select(t->engine, NULL, NULL, &select));
        CHECK_OK(weir_enqueue(t->stream, select, (weir_tensor *[]){truth, a, a}, 3, &y, 1));
        weir_convert_desc desc = {.struct_size = sizeof desc, .dtype = dtype};
        CHECK_OK(weir_kernel_create_convert(t->engine, &desc, NULL, &to));
        CHECK_OK(weir_enqueue(t->stream, to, &from, 1, &y, 1));
        desc.dtype = WEIR_F32;
        CHECK_OK(weir_kernel_create_convert(t->engine, &desc, NULL, &back));
        CHECK_OK(weir_enqueue(t->stream, back, &a, 1, &from, 1));
        weir_kernel_release(select);
        weir_kernel_release(to);
        weir_kernel_release(back);
        weir_tensor_release(truth);
        weir_tensor_release(from);
        weir_tensor_release(a);
        weir_tensor_release(y);
    }
}

/* Integers as C and NumPy have them, and as the settings say. */
static void test_settings(const station *t) {
    static const int32_t dividends[4] = {7, -7, 5, INT32_MIN}, divisors[4] = {2, 2, 0, -1};
    static const struct {
        weir_binary_op op;
        weir_rounding rounding;
        weir_overflow overflow;
        int32_t want[4];
    } cases[] = {
        {WEIR_BINARY_DIV, WEIR_ROUNDING_ZERO, WEIR_OVERFLOW_WRAP, {3, -3, 0, INT32_MIN}},
        {WEIR_BINARY_DIV, WEIR_ROUNDING_FLOOR, WEIR_OVERFLOW_WRAP, {3, -4, 0, INT32_MIN}},
        {WEIR_BINARY_DIV, WEIR_ROUNDING_NEAREST, WEIR_OVERFLOW_SATURATE, {4, -4, INT32_MAX, INT32_MAX}},
        {WEIR_BINARY_REM, WEIR_ROUNDING_ZERO, WEIR_OVERFLOW_WRAP, {1, -1, 0, 0}},
        {WEIR_BINARY_REM, WEIR_ROUNDING_FLOOR, WEIR_OVERFLOW_WRAP, {1, 1, 0, 0}},
        {WEIR_BINARY_ADD, WEIR_ROUNDING_ZERO, WEIR_OVERFLOW_WRAP, {9, -5, 5, INT32_MAX}},
        {WEIR_BINARY_ADD, WEIR_ROUNDING_ZERO, WEIR_OVERFLOW_SATURATE, {9, -5, 5, INT32_MIN}},
    };
    static const float x[4] = {2.7f, -1.5f, 2.5f, NAN};
    static const int8_t wholes[3][4] = {{2, -1, 2, 0}, {3, -2, 2, 0}, {2, -2, 2, 0}};
    weir_tensor_desc words = make_desc(WEIR_S32, 1, 4, 0, 0);
    weir_tensor *a = make_tensor(t->engine, words), *b = make_tensor(t->engine, words), *y = make_tensor(t->engine, words);
    memcpy(data_of(a), dividends, sizeof dividends);
    memcpy(data_of(b), divisors, sizeof divisors);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_binary_desc desc = {.struct_size = sizeof desc, .op = cases[i].op, .rounding = cases[i].rounding, .overflow = cases[i].overflow};
        weir_kernel *kernel = NULL;
        CHECK_OK(weir_kernel_create_binary(t->engine, &desc, NULL, &kernel));
        run_once(t, kernel, (weir_tensor *[]){a, b}, 2, y);
        CHECK(memcmp(data_of(y), cases[i].want, sizeof cases[i].want) == 0);
    }
    weir_tensor *floating = values(t, vector_desc(4), x), *bytes = make_tensor(t->engine, make_desc(WEIR_S8, 1, 4, 0, 0));
    for (weir_rounding rounding = WEIR_ROUNDING_ZERO; rounding <= WEIR_ROUNDING_FLOOR; rounding++) {
        weir_convert_desc desc = {.struct_size = sizeof desc, .dtype = WEIR_S8, .rounding = rounding};
        weir_kernel *kernel = NULL;
        CHECK_OK(weir_kernel_create_convert(t->engine, &desc, NULL, &kernel));
        run_once(t, kernel, &floating, 1, bytes);
        CHECK(memcmp(data_of(bytes), wholes[rounding], 4) == 0);
    }
    /* Integers wrap around, or stop at the limits. */
    weir_convert_desc desc = {.struct_size = sizeof desc, .dtype = WEIR_S8};
    ((int32_t *)data_of(a))[0] = 300;
    for (desc.overflow = WEIR_OVERFLOW_WRAP; desc.overflow <= WEIR_OVERFLOW_SATURATE; desc.overflow++) {
        weir_kernel *kernel = NULL;
        CHECK_OK(weir_kernel_create_convert(t->engine, &desc, NULL, &kernel));
        run_once(t, kernel, &a, 1, bytes);
        CHECK_EQ(((int8_t *)data_of(bytes))[0], desc.overflow == WEIR_OVERFLOW_WRAP ? 44 : 127);
    }
    weir_tensor *all[] = {a, b, y, floating, bytes};
    for (int i = 0; i < 5; i++) weir_tensor_release(all[i]);
}

/* max(a - b, 0) where a > b, else b: with a row b for all rows of a. */
static void test_compare_and_select(const station *t) {
    enum { ROWS = 40, COLUMNS = 90 };
    weir_tensor *a = make_tensor(t->engine, matrix_desc(ROWS, COLUMNS)), *b = make_tensor(t->engine, vector_desc(COLUMNS));
    weir_tensor *difference = make_tensor(t->engine, matrix_desc(ROWS, COLUMNS));
    weir_tensor *greater = make_tensor(t->engine, make_desc(WEIR_BOOL, 2, ROWS, COLUMNS, 0));
    weir_tensor *chosen = make_tensor(t->engine, matrix_desc(ROWS, COLUMNS));
    weir_kernel *select = NULL;
    fill(a, 1);
    fill(b, 2);
    run_once(t, binary(t, WEIR_BINARY_SUB), (weir_tensor *[]){a, b}, 2, difference);
    run_once(t, binary(t, WEIR_BINARY_GT), (weir_tensor *[]){a, b}, 2, greater);
    CHECK_OK(weir_kernel_create_select(t->engine, NULL, NULL, &select));
    run_once(t, select, (weir_tensor *[]){greater, difference, b}, 3, chosen);
    const uint8_t *truths = (const uint8_t *)data_of(greater);
    int holds = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        float x = floats(a)[i], y = floats(b)[i % COLUMNS];
        CHECK_EQ(truths[i], x > y);
        CHECK(floats(chosen)[i] == (x > y ? x - y : y));
        holds += truths[i];
    }
    CHECK(holds > 100 && holds < ROWS * COLUMNS - 100);
    run_once(t, binary(t, WEIR_BINARY_MUL), (weir_tensor *[]){a, b}, 2, a); /* over its input */
    for (int i = 0; i < COLUMNS; i++) CHECK(floats(a)[i] == (floats(difference)[i] + floats(b)[i]) * floats(b)[i]);
    weir_tensor_release(a);
    weir_tensor_release(b);
    weir_tensor_release(difference);
    weir_tensor_release(greater);
    weir_tensor_release(chosen);
}

/* A scale for each column, there and back: off by half a step at most, and saturated beyond what a byte holds. */
static void test_quantization(const station *t) {
    static const float x[6] = {1.0f, 10.0f, -0.26f, 1e9f, NAN, -1000.0f}, steps[2] = {0.5f, 4.0f};
    static const int8_t want[6] = {5, -2, 2, 127, 0, -128};
    weir_quantize_desc there = {.struct_size = sizeof there, .flags = WEIR_QUANTIZE_ZERO_POINT, .dtype = WEIR_S8, .axis = -1};
    weir_quantize_desc back = {.struct_size = sizeof back, .flags = WEIR_QUANTIZE_ZERO_POINT | WEIR_QUANTIZE_DEQUANTIZE, .axis = -1};
    weir_tensor *in = values(t, matrix_desc(3, 2), x), *scale = values(t, vector_desc(2), steps);
    weir_tensor *zero = make_tensor(t->engine, make_desc(WEIR_S32, 1, 2, 0, 0));
    weir_tensor *bytes = make_tensor(t->engine, make_desc(WEIR_S8, 2, 3, 2, 0)), *out = make_tensor(t->engine, matrix_desc(3, 2));
    weir_kernel *kernel = NULL;
    ((int32_t *)data_of(zero))[0] = 3;
    ((int32_t *)data_of(zero))[1] = -4;
    CHECK_OK(weir_kernel_create_quantize(t->engine, &there, NULL, &kernel));
    run_once(t, kernel, (weir_tensor *[]){in, scale, zero}, 3, bytes);
    for (int i = 0; i < 6; i++) CHECK_EQ(((int8_t *)data_of(bytes))[i], want[i]);
    CHECK_OK(weir_kernel_create_quantize(t->engine, &back, NULL, &kernel));
    run_once(t, kernel, (weir_tensor *[]){bytes, scale, zero}, 3, out);
    for (int i = 0; i < 3; i++) CHECK(fabsf(floats(out)[i] - x[i]) <= steps[i % 2] / 2);
    CHECK(floats(out)[3] == (127 + 4) * 4.0f && floats(out)[5] == (-128 + 4) * 4.0f);
    weir_tensor_release(in);
    weir_tensor_release(scale);
    weir_tensor_release(zero);
    weir_tensor_release(bytes);
    weir_tensor_release(out);
}

static void convert(const station *t, weir_tensor *in, weir_tensor *out, weir_dtype dtype, float scale) {
    weir_convert_desc desc = {.struct_size = sizeof desc, .dtype = dtype, .scale = scale};
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_convert(t->engine, &desc, NULL, &kernel));
    run_once(t, kernel, &in, 1, out);
}

static void test_storage_types(const station *t) {
    static const float x[4] = {1.0f, 3.14159265f, -65520.0f, 1e-8f};
    weir_tensor *in = values(t, vector_desc(4), x), *out = make_tensor(t->engine, vector_desc(4));
    weir_tensor *bf16 = make_tensor(t->engine, make_desc(WEIR_BF16, 1, 4, 0, 0));
    weir_tensor *f16 = make_tensor(t->engine, make_desc(WEIR_F16, 1, 4, 0, 0));
    weir_tensor *s32 = make_tensor(t->engine, make_desc(WEIR_S32, 1, 4, 0, 0));
    convert(t, in, bf16, WEIR_BF16, 0);
    convert(t, bf16, out, WEIR_F32, 0);
    for (int i = 0; i < 4; i++) CHECK(fabsf(floats(out)[i] - x[i]) <= fabsf(x[i]) / 256);
    convert(t, in, f16, WEIR_F16, 0);
    convert(t, f16, out, WEIR_F32, 0);
    CHECK(floats(out)[0] == 1 && fabsf(floats(out)[1] - x[1]) <= 1e-3f && floats(out)[2] == -INFINITY && floats(out)[3] == 0);
    convert(t, in, s32, WEIR_S32, 1e9f);
    const int32_t *whole = (const int32_t *)data_of(s32);
    CHECK(whole[0] == 1000000000 && whole[1] == INT32_MAX && whole[2] == INT32_MIN && whole[3] == 10);
    run_once(t, eltwise(t, WEIR_ELTWISE_TANH, 0, 0), &bf16, 1, bf16);
    convert(t, bf16, out, WEIR_F32, 0);
    for (int i = 0; i < 4; i++) CHECK(fabs((double)floats(out)[i] - tanh((double)x[i])) <= 0.008);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_tensor_release(bf16);
    weir_tensor_release(f16);
    weir_tensor_release(s32);
}

/* What is refused names the input and the cause, and writes nothing. */
static void test_refusals(const station *t) {
    weir_tensor *x = make_tensor(t->engine, vector_desc(8)), *part = NULL, *s32 = NULL, *bytes = NULL;
    weir_tensor_desc seven = vector_desc(7);
    fill(x, 1);
    float before = floats(x)[3];
    weir_tensor *head = NULL;
    CHECK_OK(weir_tensor_create(t->engine, &seven, OVER(floats(x)), &head));
    CHECK_OK(weir_tensor_create(t->engine, &seven, OVER(floats(x) + 1), &part));
    weir_kernel *kernel = eltwise(t, WEIR_ELTWISE_EXP, 0, 0);
    CHECK_CODE(weir_enqueue(t->stream, kernel, &head, 1, &part, 1), WEIR_INVALID_ARGUMENT, "shares a part of its memory with input 0");
    CHECK(floats(x)[3] == before);
    /* At once, also where the work would begin later. */
    weir_stream *later = make_stream(t->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_call *call = NULL;
    CHECK_CODE(weir_enqueue(later, kernel, &head, 1, &part, 1), WEIR_INVALID_ARGUMENT, "shares a part of its memory with input 0");
    CHECK_CODE(weir_call_create(later, kernel, &head, 1, &part, 1, &call), WEIR_INVALID_ARGUMENT, "shares a part of its memory with input 0");
    CHECK(call == NULL && floats(x)[3] == before);
    CHECK_OK(weir_stream_synchronize(later, WEIR_TIMEOUT_INFINITE));
    weir_stream_release(later);
    s32 = make_tensor(t->engine, make_desc(WEIR_S32, 1, 8, 0, 0));
    CHECK_CODE(weir_enqueue(t->stream, kernel, &s32, 1, &s32, 1), WEIR_INVALID_ARGUMENT, "input 0: expected f32, f16 or bf16 elements, got s32[8]");
    weir_kernel_release(kernel);
    kernel = binary(t, WEIR_BINARY_LT);
    bytes = make_tensor(t->engine, make_desc(WEIR_BOOL, 1, 8, 0, 0));
    CHECK_CODE(weir_enqueue(t->stream, kernel, (weir_tensor *[]){x, s32}, 2, &bytes, 1), WEIR_INVALID_ARGUMENT, "input 1: expected f32 elements");
    weir_kernel_release(kernel);
    weir_tensor_release(x);
    weir_tensor_release(head);
    weir_tensor_release(part);
    weir_tensor_release(s32);
    weir_tensor_release(bytes);
}

/* A program may have floating-point exceptions unmasked: numbers that raise none do so at no length, in rests of
 * registers either. */
static void test_exceptions(const station *t) {
    static const weir_eltwise_op functions[] = {WEIR_ELTWISE_SQRT, WEIR_ELTWISE_LOG, WEIR_ELTWISE_SIN,
        WEIR_ELTWISE_EXP, WEIR_ELTWISE_TANH, WEIR_ELTWISE_ABS};
    static const weir_binary_op pairs[] = {WEIR_BINARY_ADD, WEIR_BINARY_SUB, WEIR_BINARY_MUL, WEIR_BINARY_DIV};
    float numbers[40];
    for (int i = 0; i < 40; i++) numbers[i] = 0.25F + 0.0625F * (float)i;
    for (int64_t n = 1; n <= 40; n++) {
        weir_tensor *x = values(t, make_desc(WEIR_F32, 1, n, 0, 0), numbers);
        weir_tensor *in[] = {x, x};
        for (size_t i = 0; i < sizeof functions / sizeof *functions + sizeof pairs / sizeof *pairs; i++) {
            size_t pair = i - sizeof functions / sizeof *functions;
            bool is_function = i < sizeof functions / sizeof *functions;
            weir_kernel *kernel = is_function ? eltwise(t, functions[i], 0, 0) : binary(t, pairs[pair]);
            weir_tensor *y = make_tensor(t->engine, make_desc(WEIR_F32, 1, n, 0, 0));
            feclearexcept(FE_ALL_EXCEPT);
            run_once(t, kernel, in, is_function ? 1 : 2, y);
            CHECK(fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW) == 0);
            weir_tensor_release(y);
        }
        weir_tensor_release(x);
    }
}

static void test_all_on(weir_threadpool *pool) {
    station t = {.engine = make_engine(pool)};
    t.stream = make_stream(t.engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    test_functions(&t);
    test_types(&t);
    test_settings(&t);
    if (pool == NULL) test_exceptions(&t);
    test_compare_and_select(&t);
    test_quantization(&t);
    test_storage_types(&t);
    test_refusals(&t);
    weir_stream_release(t.stream);
    weir_engine_release(t.engine);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create(POOL_FULL, 3, &pool);
    test_all_on(NULL);
    test_all_on(pool);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
    check_released(&before);
    return 0;
}
