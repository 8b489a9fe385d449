/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The built-in kernels against plain loops: odd shapes, transposes, broadcasting, infinities and NaNs, and the same
 * bits on every pool.
 */

#include <math.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "make.h"
#include "test_pools.h"

typedef struct station {
    weir_threadpool *pool;
    weir_engine *engine;
    weir_stream *stream;
} station;

static station station_create(weir_threadpool *pool) {
    station t = {.pool = pool, .engine = make_engine(pool)};
    t.stream = make_stream(t.engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    return t;
}

static void station_destroy(station *t) {
    weir_stream_release(t->stream);
    weir_engine_release(t->engine);
}

static weir_tensor *tensor_of(const station *t, weir_tensor_desc desc, const float *values) {
    weir_tensor *tensor = make_tensor(t->engine, desc);
    memcpy(floats(tensor), values, num_floats(tensor) * sizeof(float));
    return tensor;
}

/* Runs a kernel and gives up the reference to it. */
static void run_once(const station *t, weir_kernel *kernel, weir_tensor *const *in, size_t num_in, weir_tensor *out) {
    CHECK_OK(weir_enqueue(t->stream, kernel, in, num_in, &out, 1));
    weir_kernel_release(kernel);
}

/* Stands for the rectifier among the flags here, in the place of a flag that the test does not set. */
#define RELU WEIR_MATMUL_SUM

static weir_kernel *matmul_kernel(const station *t, uint64_t flags) {
    weir_matmul_desc desc = {.struct_size = sizeof desc, .flags = flags & ~(uint64_t)RELU};
    if (flags & RELU) desc.activation = WEIR_ACTIVATION_RELU;
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_matmul(t->engine, &desc, NULL, &kernel));
    return kernel;
}

/* Whole numbers make every order of summation give the same, so the comparison is exact. */
static void check_matmul(const station *t, int m, int k, int n, uint64_t flags) {
    int ta = (flags & WEIR_MATMUL_TRANSPOSE_A) != 0, tb = (flags & WEIR_MATMUL_TRANSPOSE_B) != 0;
    weir_tensor *in[3] = {make_tensor(t->engine, ta ? matrix_desc(k, m) : matrix_desc(m, k)),
                          make_tensor(t->engine, tb ? matrix_desc(n, k) : matrix_desc(k, n)),
                          make_tensor(t->engine, vector_desc(n))};
    weir_tensor *c = make_tensor(t->engine, matrix_desc(m, n));
    for (int i = 0; i < 3; i++) fill(in[i], i);
    memset(floats(c), 0x7f, (size_t)m * (size_t)n * sizeof(float)); /* what was there does not matter */
    run_once(t, matmul_kernel(t, flags), in, flags & WEIR_MATMUL_BIAS ? 3 : 2, c);
    const float *a = floats(in[0]), *b = floats(in[1]), *bias = floats(in[2]);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            double sum = flags & WEIR_MATMUL_BIAS ? bias[j] : 0;
            for (int p = 0; p < k; p++) {
                sum += (double)(ta ? a[p * m + i] : a[i * k + p]) * (tb ? b[j * k + p] : b[p * n + j]);
            }
            if ((flags & RELU) && sum < 0) sum = 0;
            CHECK((double)floats(c)[i * n + j] == sum);
        }
    }
    for (int i = 0; i < 3; i++) weir_tensor_release(in[i]);
    weir_tensor_release(c);
}

static void test_matmul(const station *t) {
    static const int shapes[][3] = {{1, 1, 1}, {1, 7, 1}, {2, 3, 5},   {17, 31, 13}, {64, 64, 64}, {3, 128, 1},
                                    {1, 5, 9}, {0, 4, 4}, {65, 1, 33}, {4, 0, 3},    {5, 6, 0},    {100, 40, 70}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (uint64_t flags = 0; flags < 16; flags++) check_matmul(t, shapes[s][0], shapes[s][1], shapes[s][2], flags);
    }
}

/* Leading dimensions of A are rows: [2, 3, 4] * [4, 5] gives [2, 3, 5]. */
static void test_matmul_leading_dimensions(const station *t) {
    weir_tensor *in[2] = {make_tensor(t->engine, make_desc(WEIR_F32, 3, 2, 3, 4)),
                          make_tensor(t->engine, matrix_desc(4, 5))};
    weir_tensor *c = make_tensor(t->engine, make_desc(WEIR_F32, 3, 2, 3, 5));
    fill(in[0], 1);
    fill(in[1], 2);
    run_once(t, matmul_kernel(t, 0), in, 2, c);
    for (int row = 0; row < 6; row++) {
        for (int j = 0; j < 5; j++) {
            float sum = 0;
            for (int p = 0; p < 4; p++) sum += floats(in[0])[row * 4 + p] * floats(in[1])[p * 5 + j];
            CHECK(floats(c)[row * 5 + j] == sum);
        }
    }
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_tensor_release(c);
}

static void check_refused(const station *t, weir_kernel *kernel, weir_tensor_desc a, weir_tensor_desc b,
                          weir_tensor_desc out, const char *part) {
    weir_tensor *in[2] = {make_tensor(t->engine, a), make_tensor(t->engine, b)}, *c = make_tensor(t->engine, out);
    CHECK_CODE(weir_enqueue(t->stream, kernel, in, 2, &c, 1), WEIR_INVALID_ARGUMENT, part);
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_tensor_release(c);
}

static void test_matmul_refusals(const station *t) {
    weir_kernel *kernel = matmul_kernel(t, 0);
    check_refused(t, kernel, matrix_desc(2, 3), matrix_desc(4, 5), matrix_desc(2, 5), "f32[4,5]");
    check_refused(t, kernel, matrix_desc(2, 3), vector_desc(3), matrix_desc(2, 5), "input 1");
    check_refused(t, kernel, make_desc(WEIR_S32, 2, 2, 3, 0), matrix_desc(3, 5), matrix_desc(2, 5), "s32[2,3]");
    check_refused(t, kernel, matrix_desc(2, 3), matrix_desc(3, 5), matrix_desc(5, 2), "output 0");
    check_refused(t, kernel, matrix_desc(2, 3), matrix_desc(3, 5), make_desc(WEIR_S32, 2, 2, 5, 0), "output 0");
    weir_kernel_release(kernel);
}

static weir_kernel *add_kernel(const station *t) {
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_binary(t->engine, BINARY(ADD), NULL, &kernel));
    return kernel;
}

/* The index in a tensor of rank `rank` of the element that stretches to position `at` of the rank-3 result. */
static size_t stretched(const weir_tensor_desc *desc, const int64_t at[3]) {
    size_t index = 0;
    for (uint32_t i = 0; i < desc->rank; i++) {
        int64_t place = desc->dims[i] == 1 ? 0 : at[3 - desc->rank + i];
        index = index * (size_t)desc->dims[i] + (size_t)place;
    }
    return index;
}

static void check_add(const station *t, weir_tensor_desc a, weir_tensor_desc b, int64_t d0, int64_t d1, int64_t d2) {
    uint32_t rank = a.rank > b.rank ? a.rank : b.rank;
    int64_t dims[3] = {d0, d1, d2};
    weir_tensor_desc out = {.dtype = WEIR_F32, .rank = rank};
    for (uint32_t i = 0; i < rank; i++) out.dims[i] = dims[3 - rank + i];
    weir_tensor *in[2] = {make_tensor(t->engine, a), make_tensor(t->engine, b)}, *c = make_tensor(t->engine, out);
    fill(in[0], 3);
    fill(in[1], 4);
    run_once(t, add_kernel(t), in, 2, c);
    size_t i = 0;
    for (int64_t x = 0; x < d0; x++) {
        for (int64_t y = 0; y < d1; y++) {
            for (int64_t z = 0; z < d2; z++, i++) {
                int64_t at[3] = {x, y, z};
                CHECK(floats(c)[i] == floats(in[0])[stretched(&a, at)] + floats(in[1])[stretched(&b, at)]);
            }
        }
    }
    CHECK_EQ(i, num_floats(c));
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_tensor_release(c);
}

static void test_add(const station *t) {
    weir_tensor_desc cube = make_desc(WEIR_F32, 3, 5, 3, 7), scalar = make_desc(WEIR_F32, 0, 0, 0, 0);
    check_add(t, cube, cube, 5, 3, 7);
    check_add(t, cube, scalar, 5, 3, 7);
    check_add(t, scalar, cube, 5, 3, 7);
    check_add(t, scalar, scalar, 1, 1, 1);
    check_add(t, cube, vector_desc(7), 5, 3, 7);
    check_add(t, vector_desc(7), cube, 5, 3, 7);
    check_add(t, cube, matrix_desc(3, 1), 5, 3, 7);
    check_add(t, make_desc(WEIR_F32, 3, 5, 1, 7), matrix_desc(3, 1), 5, 3, 7);
    check_add(t, matrix_desc(3, 1), matrix_desc(1, 4), 1, 3, 4);
    check_add(t, matrix_desc(0, 4), matrix_desc(1, 4), 1, 0, 4);
    check_add(t, matrix_desc(200, 300), vector_desc(300), 1, 200, 300);
    weir_kernel *kernel = add_kernel(t);
    check_refused(t, kernel, matrix_desc(2, 3), matrix_desc(2, 4), matrix_desc(2, 4), "f32[2,4]");
    check_refused(t, kernel, matrix_desc(2, 3), vector_desc(3), vector_desc(3), "output 0");
    weir_kernel_release(kernel);
}

static void test_relu(const station *t) {
    const float values[7] = {-1, 0, 2.5f, NAN, INFINITY, -INFINITY, -0.0f};
    weir_tensor *x = tensor_of(t, vector_desc(7), values), *y = make_tensor(t->engine, vector_desc(7));
    weir_kernel *relu = NULL;
    CHECK_OK(weir_kernel_create_eltwise(t->engine, ELTWISE(RELU), NULL, &relu));
    run_once(t, relu, &x, 1, y);
    const float *r = floats(y);
    CHECK(r[0] == 0 && r[1] == 0 && r[2] == 2.5f && isnan(r[3]) && r[4] == INFINITY && r[5] == 0 && r[6] == 0);
    weir_tensor_release(x);
    weir_tensor_release(y);

    const float nan_row[2] = {NAN, 1}, ones[2] = {1, -3}; /* the rectifier of a product keeps a NaN too */
    weir_tensor *in[2] = {tensor_of(t, matrix_desc(2, 1), nan_row), tensor_of(t, matrix_desc(1, 2), ones)};
    weir_tensor *c = make_tensor(t->engine, matrix_desc(2, 2));
    run_once(t, matmul_kernel(t, RELU), in, 2, c);
    CHECK(isnan(floats(c)[0]) && isnan(floats(c)[1]) && floats(c)[2] == 1 && floats(c)[3] == 0);
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_tensor_release(c);
}

static weir_kernel *softmax_kernel(const station *t, int32_t axis) {
    weir_softmax_desc desc = {.struct_size = sizeof desc, .axis = axis};
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_softmax(t->engine, &desc, NULL, &kernel));
    return kernel;
}

static weir_kernel *argmax_kernel(const station *t, int32_t axis) {
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_reduce(t->engine, ARGMAX(axis), NULL, &kernel));
    return kernel;
}

/* The sum of the series, good for the small numbers of `fill`. */
static double exponential(double x) {
    double sum = 1, term = 1;
    for (int i = 1; i < 80; i++) {
        term *= x / i;
        sum += term;
    }
    return sum;
}

/* [4, 5, 6] along each axis: element (o, i) of the row at `axis` is o * length * inner + j * inner + i. */
static void check_rows(const station *t, int32_t axis) {
    const int64_t dims[3] = {4, 5, 6};
    int32_t place = axis < 0 ? axis + 3 : axis;
    size_t length = (size_t)dims[place], inner = 1, outer = 1;
    weir_tensor_desc without = {.dtype = WEIR_S32, .rank = 2};
    for (int i = 0, d = 0; i < 3; i++) {
        if (i < place) outer *= (size_t)dims[i];
        if (i > place) inner *= (size_t)dims[i];
        if (i != place) without.dims[d++] = dims[i];
    }
    weir_tensor *x = make_tensor(t->engine, make_desc(WEIR_F32, 3, 4, 5, 6));
    weir_tensor *y = make_tensor(t->engine, make_desc(WEIR_F32, 3, 4, 5, 6)), *best = make_tensor(t->engine, without);
    void *best_data = NULL;
    fill(x, 5);
    run_once(t, softmax_kernel(t, axis), &x, 1, y);
    run_once(t, argmax_kernel(t, axis), &x, 1, best);
    CHECK_OK(weir_tensor_get_data(best, &best_data));
    for (size_t row = 0; row < outer * inner; row++) {
        size_t first = row / inner * length * inner + row % inner, greatest = 0;
        double sum = 0;
        for (size_t j = 0; j < length; j++) {
            sum += exponential((double)floats(x)[first + j * inner]);
            if (floats(x)[first + j * inner] > floats(x)[first + greatest * inner]) greatest = j;
        }
        for (size_t j = 0; j < length; j++) {
            double expected = exponential((double)floats(x)[first + j * inner]) / sum;
            CHECK(fabs((double)floats(y)[first + j * inner] - expected) <= 1e-6);
        }
        CHECK_EQ(((int32_t *)best_data)[row], greatest);
    }
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_tensor_release(best);
}

/* Rows with infinities and NaNs, and one whose exponentials would overflow. */
static void test_special_rows(const station *t) {
    static const float rows[6][3] = {{1000, 1000, 999},      {0, INFINITY, 1},  {-INFINITY, -INFINITY, -INFINITY},
                                     {1, NAN, INFINITY}, {-INFINITY, 2, 2}, {NAN, 1, NAN}};
    static const int32_t greatest[6] = {0, 1, 0, 1, 1, 0};
    static const int becomes_nan[6] = {0, 1, 1, 1, 0, 1};
    weir_tensor *x = tensor_of(t, matrix_desc(6, 3), rows[0]), *y = make_tensor(t->engine, matrix_desc(6, 3));
    weir_tensor *best = make_tensor(t->engine, make_desc(WEIR_S32, 1, 6, 0, 0));
    void *best_data = NULL;
    run_once(t, softmax_kernel(t, -1), &x, 1, y);
    run_once(t, argmax_kernel(t, -1), &x, 1, best);
    CHECK_OK(weir_tensor_get_data(best, &best_data));
    for (int row = 0; row < 6; row++) {
        const float *r = floats(y) + 3 * row;
        CHECK_EQ(((int32_t *)best_data)[row], greatest[row]);
        for (int i = 0; i < 3; i++) CHECK((isnan(r[i]) != 0) == becomes_nan[row]);
        if (!becomes_nan[row]) CHECK(fabsf(r[0] + r[1] + r[2] - 1) < 1e-6f);
    }
    CHECK(fabsf(floats(y)[0] - 0.4223188f) < 1e-5f && floats(y)[12] == 0 && floats(y)[13] == 0.5f);
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_tensor_release(best);
}

static void test_axis_refusals(const station *t) {
    weir_tensor *x = make_tensor(t->engine, matrix_desc(2, 3)), *y = make_tensor(t->engine, matrix_desc(2, 3));
    weir_kernel *kernel = softmax_kernel(t, 2);
    CHECK_CODE(weir_enqueue(t->stream, kernel, &x, 1, &y, 1), WEIR_INVALID_ARGUMENT, "axis");
    weir_kernel_release(kernel);
    kernel = argmax_kernel(t, -3);
    CHECK_CODE(weir_enqueue(t->stream, kernel, &x, 1, &y, 1), WEIR_INVALID_ARGUMENT, "axis");
    weir_kernel_release(kernel);
    weir_tensor_release(x);
    weir_tensor_release(y);
}

/* Numbers whose sum depends on the order of summation. */
static void fill_rough(weir_tensor *tensor, unsigned seed) {
    uint32_t state = seed * 2654435761u + 12345u;
    for (size_t i = 0; i < num_floats(tensor); i++) {
        state = state * 1664525u + 1013904223u;
        floats(tensor)[i] = (float)(state >> 8) / 4194304.0f - 2.0f;
    }
}

enum { ROWS = 150, INNER = 210, COLUMNS = 90 };

/* matmul with bias, then softmax: the results, to compare bit by bit. */
static void compute_rough(weir_threadpool *pool, float *results) {
    station t = station_create(pool);
    weir_tensor *in[3] = {make_tensor(t.engine, matrix_desc(ROWS, INNER)),
                          make_tensor(t.engine, matrix_desc(INNER, COLUMNS)),
                          make_tensor(t.engine, vector_desc(COLUMNS))};
    weir_tensor *c = make_tensor(t.engine, matrix_desc(ROWS, COLUMNS));
    weir_tensor *y = make_tensor(t.engine, matrix_desc(ROWS, COLUMNS));
    for (unsigned i = 0; i < 3; i++) fill_rough(in[i], i);
    run_once(&t, matmul_kernel(&t, WEIR_MATMUL_BIAS), in, 3, c);
    run_once(&t, softmax_kernel(&t, -1), &c, 1, y);
    memcpy(results, floats(c), ROWS * COLUMNS * sizeof(float));
    memcpy(results + ROWS * COLUMNS, floats(y), ROWS * COLUMNS * sizeof(float));
    for (int i = 0; i < 3; i++) weir_tensor_release(in[i]);
    weir_tensor_release(c);
    weir_tensor_release(y);
    station_destroy(&t);
}

static void test_same_bits(void) {
    static float expected[2 * ROWS * COLUMNS], seen[2 * ROWS * COLUMNS];
    compute_rough(NULL, expected);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (int width = 1; width <= 7; width += 3) {
            weir_threadpool *pool = NULL;
            test_pool *host = test_pool_create((pool_kind)kind, width, &pool);
            compute_rough(pool, seen);
            CHECK(memcmp(expected, seen, sizeof seen) == 0);
            test_pool_let_go(host);
            weir_threadpool_release(pool);
            test_pool_destroy(host);
        }
    }
    for (uint64_t seed = 0; seed < (uint64_t)scale(100); seed++) {
        weir_threadpool *pool = NULL;
        CHECK_OK(weir_threadpool_create_seeded(seed, 1 + (int32_t)(seed % 5), &pool));
        compute_rough(pool, seen);
        CHECK(memcmp(expected, seen, sizeof seen) == 0);
        weir_threadpool_release(pool);
    }
}

/* What a call of this thread needs was made in the first one: scratch memory, and what the kernel makes of the
 * shapes. */
static void test_later_calls_allocate_nothing(const station *t) {
    weir_kernel *matmul = matmul_kernel(t, 0), *relu = NULL;
    weir_eltwise_desc desc = {.struct_size = sizeof desc, .op = WEIR_ELTWISE_RELU};
    CHECK_OK(weir_kernel_create_eltwise(t->engine, &desc, NULL, &relu));
    weir_tensor *in[2] = {make_tensor(t->engine, matrix_desc(40, 30)), make_tensor(t->engine, matrix_desc(30, 50))};
    weir_tensor *c = make_tensor(t->engine, matrix_desc(40, 50));
    weir_tensor *other = make_tensor(t->engine, matrix_desc(30, 50));
    for (int i = 0; i < 2; i++) fill(in[i], i);
    uint64_t allocations = 0;
    for (int i = 0; i < 100; i++) {
        CHECK_OK(weir_enqueue(t->stream, matmul, in, 2, &c, 1));
        CHECK_OK(weir_enqueue(t->stream, relu, &c, 1, &c, 1));
        if (i == 0) allocations = runtime_info().allocations;
    }
    CHECK_EQ(runtime_info().allocations, allocations);
    /* A kernel that knows one shape takes others, and refuses what it refused. */
    CHECK_OK(weir_enqueue(t->stream, relu, &in[1], 1, &other, 1));
    for (size_t i = 0; i < num_floats(other); i++) CHECK_EQ(floats(other)[i], fmaxf(floats(in[1])[i], 0));
    CHECK_CODE(weir_enqueue(t->stream, relu, &in[1], 1, &c, 1), WEIR_INVALID_ARGUMENT,
                "kernel 'relu': output 0: expected f32[30,50], got f32[40,50]");
    CHECK_CODE(weir_enqueue(t->stream, relu, &c, 1, &other, 1), WEIR_INVALID_ARGUMENT, "kernel 'relu': output 0");
    CHECK_CODE(weir_enqueue(t->stream, relu, &c, 1, in, 2), WEIR_INVALID_ARGUMENT, "kernel 'relu': expected 1 outputs, got 2");
    weir_tensor_release(other);
    weir_tensor_release(c);
    for (int i = 0; i < 2; i++) weir_tensor_release(in[i]);
    weir_kernel_release(relu);
    weir_kernel_release(matmul);
}

static void test_all_on(weir_threadpool *pool) {
    station t = station_create(pool);
    test_matmul(&t);
    test_matmul_leading_dimensions(&t);
    test_matmul_refusals(&t);
    test_add(&t);
    test_relu(&t);
    if (pool == NULL) test_later_calls_allocate_nothing(&t);
    for (int32_t axis = -3; axis < 3; axis++) check_rows(&t, axis);
    test_special_rows(&t);
    test_axis_refusals(&t);
    station_destroy(&t);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create(POOL_FULL, 3, &pool);
    test_all_on(NULL);
    test_all_on(pool);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
    test_same_bits();
    check_released(&before);
    return 0;
}
