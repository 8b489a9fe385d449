/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Kernels that move elements, reduce dimensions and normalise, as a program uses them: an attention-like block on a
 * stream, refusals at run time, and a graph in which a reshape copies nothing.
 */

#include <fenv.h>
#include <math.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

typedef struct place {
    weir_engine *engine;
    weir_stream *stream;
} place;

/* Runs a kernel and gives up the reference to it. */
static void run_once(const place *t, weir_kernel *kernel, weir_tensor *const *in, size_t num_in, weir_tensor *out) {
    CHECK_OK(weir_enqueue(t->stream, kernel, in, num_in, &out, 1));
    weir_kernel_release(kernel);
}

static void *bytes_of(const weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return data;
}

/* [2, 37, 5] bytes with the last two dimensions exchanged. */
static void test_transpose(const place *t) {
    weir_transpose_desc desc = {.struct_size = sizeof desc, .rank = 3, .permutation = {0, 2, 1}};
    weir_kernel *kernel = NULL;
    weir_tensor *x = make_tensor(t->engine, make_desc(WEIR_U8, 3, 2, 37, 5));
    weir_tensor *y = make_tensor(t->engine, make_desc(WEIR_U8, 3, 2, 5, 37));
    uint8_t *from = bytes_of(x), *to = bytes_of(y);
    for (int i = 0; i < 2 * 37 * 5; i++) from[i] = (uint8_t)i;
    CHECK_OK(weir_kernel_create_transpose(t->engine, &desc, NULL, &kernel));
    run_once(t, kernel, &x, 1, y);
    for (int b = 0; b < 2; b++) {
        for (int i = 0; i < 37; i++) {
            for (int j = 0; j < 5; j++) CHECK_EQ(to[(b * 5 + j) * 37 + i], from[(b * 37 + i) * 5 + j]);
        }
    }
    CHECK_OK(weir_kernel_create_transpose(t->engine, NULL, NULL, &kernel)); /* turned round: [5, 37, 2] */
    CHECK_CODE(weir_enqueue(t->stream, kernel, &x, 1, &y, 1), WEIR_INVALID_ARGUMENT,
               "output 0: expected u8[5,37,2], got u8[2,5,37]");
    weir_kernel_release(kernel);
    weir_tensor_release(x);
    weir_tensor_release(y);
}

/* A signal, its last 4 samples mirrored behind it, cut into two halves and put together the other way round. */
static void test_pad_slice_concat(const place *t) {
    weir_pad_desc pad = {.struct_size = sizeof pad, .rank = 1, .mode = WEIR_PAD_REFLECT, .after = {4}};
    weir_slice_desc front = {.struct_size = sizeof front, .rank = 1, .end = {8}};
    weir_slice_desc back = {.struct_size = sizeof back, .rank = 1, .begin = {-1}, .end = {7}, .step = {-1}};
    weir_concat_desc concat = {.struct_size = sizeof concat, .num_inputs = 2, .axis = -1};
    static const float expected[16] = {8, 9, 10, 11, 10, 9, 8, 7, 0, 1, 2, 3, 4, 5, 6, 7};
    weir_kernel *kernel = NULL;
    weir_tensor *x = make_tensor(t->engine, vector_desc(12)), *padded = make_tensor(t->engine, vector_desc(16));
    weir_tensor *halves[2] = {make_tensor(t->engine, vector_desc(8)), make_tensor(t->engine, vector_desc(8))};
    weir_tensor *y = make_tensor(t->engine, vector_desc(16));
    for (int i = 0; i < 12; i++) floats(x)[i] = (float)i;
    CHECK_OK(weir_kernel_create_pad(t->engine, &pad, NULL, &kernel));
    run_once(t, kernel, &x, 1, padded);
    CHECK(floats(padded)[12] == 10 && floats(padded)[15] == 7);
    CHECK_OK(weir_kernel_create_slice(t->engine, &back, NULL, &kernel)); /* backwards: 7 8 9 10 11 10 9 8 */
    run_once(t, kernel, &padded, 1, halves[0]);
    CHECK(floats(halves[0])[0] == 7 && floats(halves[0])[7] == 8);
    back.begin[0] = 8, back.end[0] = INT64_MAX, back.step[0] = 0;
    CHECK_OK(weir_kernel_create_slice(t->engine, &back, NULL, &kernel));
    run_once(t, kernel, &padded, 1, halves[0]);
    CHECK_OK(weir_kernel_create_slice(t->engine, &front, NULL, &kernel));
    run_once(t, kernel, &padded, 1, halves[1]);
    CHECK_OK(weir_kernel_create_concat(t->engine, &concat, NULL, &kernel));
    run_once(t, kernel, halves, 2, y);
    for (int i = 0; i < 16; i++) CHECK(floats(y)[i] == expected[i]);
    weir_tensor_release(x);
    weir_tensor_release(padded);
    weir_tensor_release(halves[0]);
    weir_tensor_release(halves[1]);
    weir_tensor_release(y);
}

/* An embedding, and a word that is not in it: the text names it, and the output stays as it was. */
static void test_gather(const place *t) {
    weir_gather_desc desc = {.struct_size = sizeof desc, .axis = 0};
    weir_tensor *in[2] = {make_tensor(t->engine, matrix_desc(10, 4)), make_tensor(t->engine, make_desc(WEIR_S32, 1, 3, 0, 0))};
    weir_tensor *y = make_tensor(t->engine, matrix_desc(3, 4));
    int32_t *words = bytes_of(in[1]);
    weir_kernel *kernel = NULL;
    for (int i = 0; i < 40; i++) floats(in[0])[i] = (float)i;
    words[0] = 7, words[1] = 0, words[2] = 9;
    CHECK_OK(weir_kernel_create_gather(t->engine, &desc, NULL, &kernel));
    CHECK_OK(weir_enqueue(t->stream, kernel, in, 2, &y, 1));
    for (int i = 0; i < 12; i++) CHECK(floats(y)[i] == (float)(words[i / 4] * 4 + i % 4));
    words[0] = 1, words[1] = 10;
    CHECK_CODE(weir_enqueue(t->stream, kernel, in, 2, &y, 1), WEIR_OUT_OF_RANGE,
               "input 1: element 1 is 10, expected an index from 0 to 9 along axis 0 of input 0, f32[10,4]");
    CHECK(floats(y)[0] == 28);
    weir_kernel_release(kernel);
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_tensor_release(y);
}

static void test_reduce(const place *t) {
    weir_reduce_desc desc = {.struct_size = sizeof desc, .op = WEIR_REDUCE_SUM, .num_axes = 2, .axes = {0, -1}};
    weir_tensor *x = make_tensor(t->engine, make_desc(WEIR_F32, 3, 4, 3, 100));
    weir_tensor *y = make_tensor(t->engine, vector_desc(3)), *one = make_tensor(t->engine, make_desc(WEIR_S32, 3, 1, 1, 1));
    double sums[3] = {0}, squares[3] = {0};
    weir_kernel *kernel = NULL;
    fill(x, 3);
    for (int i = 0; i < 1200; i++) {
        double value = (double)floats(x)[i];
        sums[i / 100 % 3] += value;
        squares[i / 100 % 3] += value * value;
    }
    CHECK_OK(weir_kernel_create_reduce(t->engine, &desc, NULL, &kernel));
    run_once(t, kernel, &x, 1, y);
    for (int i = 0; i < 3; i++) CHECK((double)floats(y)[i] == sums[i]);
    desc.op = WEIR_REDUCE_NORM_SUM, desc.p = 2, desc.eps = 0.5f;
    CHECK_OK(weir_kernel_create_reduce(t->engine, &desc, NULL, &kernel));
    run_once(t, kernel, &x, 1, y);
    for (int i = 0; i < 3; i++) CHECK(fabs((double)floats(y)[i] - sqrt(squares[i] + 0.5)) < 1e-4);
    floats(x)[777] = NAN;
    desc = (weir_reduce_desc){.struct_size = sizeof desc, .op = WEIR_REDUCE_ARGMAX, .flags = WEIR_REDUCE_KEEP_DIMS};
    CHECK_OK(weir_kernel_create_reduce(t->engine, &desc, NULL, &kernel));
    run_once(t, kernel, &x, 1, one);
    CHECK_EQ(*(int32_t *)bytes_of(one), 777);
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_tensor_release(one);
}

static void test_norm_and_log_softmax(const place *t) {
    weir_norm_desc norm = {.struct_size = sizeof norm, .op = WEIR_NORM_LAYER, .axis = -1, .flags = WEIR_NORM_SHIFT};
    weir_softmax_desc softmax = {.struct_size = sizeof softmax, .axis = -1, .flags = WEIR_SOFTMAX_LOG};
    weir_tensor *in[2] = {make_tensor(t->engine, matrix_desc(3, 4)), make_tensor(t->engine, vector_desc(4))};
    weir_tensor *y = make_tensor(t->engine, matrix_desc(3, 4));
    weir_kernel *kernel = NULL;
    for (int i = 0; i < 12; i++) floats(in[0])[i] = (float)(i % 2 == 0 ? 5 : 1); /* mean 3, variance 4 */
    for (int i = 0; i < 4; i++) floats(in[1])[i] = (float)i;
    CHECK_OK(weir_kernel_create_norm(t->engine, &norm, NULL, &kernel));
    run_once(t, kernel, in, 2, y);
    for (int i = 0; i < 12; i++) CHECK(floats(y)[i] == (float)(i % 4 + (i % 2 == 0 ? 1 : -1)));
    CHECK_OK(weir_kernel_create_softmax(t->engine, &softmax, NULL, &kernel));
    run_once(t, kernel, in, 1, y);
    for (int i = 0; i < 12; i++) {
        double expected = (i % 2 == 0 ? 0 : -4) - log(2 + 2 * exp(-4));
        CHECK(fabs((double)floats(y)[i] - expected) < 1e-6);
    }
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_tensor_release(y);
}

/* From both ends, with the element and without. */
static void test_cumsum(const place *t) {
    static const float x[6] = {1, 2, 4, 8, 16, 32};
    static const float want[4][6] = {{1, 3, 7, 8, 24, 56}, {0, 1, 3, 0, 8, 24}, {7, 6, 4, 56, 48, 32}, {6, 4, 0, 48, 32, 0}};
    weir_tensor *in = make_tensor(t->engine, matrix_desc(2, 3)), *out = make_tensor(t->engine, matrix_desc(2, 3));
    memcpy(floats(in), x, sizeof x);
    for (uint64_t flags = 0; flags < 4; flags++) {
        weir_cumsum_desc desc = {.struct_size = sizeof desc, .axis = 1, .flags = flags};
        weir_kernel *kernel = NULL;
        CHECK_OK(weir_kernel_create_cumsum(t->engine, flags == 0 ? NULL : &desc, NULL, &kernel));
        run_once(t, kernel, &in, 1, out);
        CHECK(memcmp(floats(out), want[flags], sizeof x) == 0);
    }
    weir_tensor_release(in);
    weir_tensor_release(out);
}

/* Relu, a reshape, and a transposition in a graph; and a tensor that is reshaped to itself on a stream. */
static void test_reshape(const place *t) {
    weir_reshape_desc desc = {.struct_size = sizeof desc, .rank = 2, .dims = {3, -1}};
    weir_tensor_desc line = vector_desc(12);
    weir_kernel *relu = NULL, *reshape = NULL, *transpose = NULL;
    weir_graph *graph = make_graph("reshape");
    weir_value x, h, r, y;
    weir_tensor *in = make_tensor(t->engine, line), *out = make_tensor(t->engine, matrix_desc(4, 3));
    CHECK_OK(weir_kernel_create_eltwise(t->engine, ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_kernel_create_reshape(t->engine, &desc, NULL, &reshape));
    CHECK_OK(weir_kernel_create_transpose(t->engine, NULL, NULL, &transpose));
    CHECK_OK(weir_graph_add_input(graph, "x", &line, &x));
    CHECK_OK(weir_graph_add_kernel(graph, "relu", relu, &x, 1, &h, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "reshape", reshape, &h, 1, &r, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "transpose", transpose, &r, 1, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    weir_program *program = compile(graph, t->engine);
    for (int i = 0; i < 12; i++) floats(in)[i] = (float)(i - 4);
    CHECK_OK(weir_program_run(program, t->stream, &in, 1, &out, 1, NULL));
    for (int i = 0; i < 12; i++) CHECK(floats(out)[i % 4 * 3 + i / 4] == (float)(i > 4 ? i - 4 : 0));
    weir_program_release(program);
    weir_graph_destroy(graph);

    void *memory = floats(in);
    weir_tensor *same = NULL;
    weir_tensor_desc as = matrix_desc(3, 4);
    CHECK_OK(weir_tensor_create(t->engine, &as, OVER(memory), &same));
    CHECK_OK(weir_enqueue(t->stream, reshape, &in, 1, &same, 1));
    CHECK(floats(same)[11] == 7);
    weir_tensor_release(same);
    weir_kernel_release(relu);
    weir_kernel_release(reshape);
    weir_kernel_release(transpose);
    weir_tensor_release(in);
    weir_tensor_release(out);
}

/* A program may have floating-point exceptions unmasked: rows of numbers that raise none do so at no length, however
 * many are computed side by side. */
static void test_exceptions(const place *t) {
    static const weir_reduce_op ops[] = {WEIR_REDUCE_SUM, WEIR_REDUCE_MEAN, WEIR_REDUCE_MAX, WEIR_REDUCE_MUL,
        WEIR_REDUCE_NORM_SUM, WEIR_REDUCE_ARGMAX};
    for (int64_t n = 1; n <= 40; n++) {
        for (int64_t rows = 1; rows <= 19; rows += 3) {
            weir_tensor_desc matrix = matrix_desc(rows, n);
            weir_tensor *x = make_tensor(t->engine, matrix), *y = make_tensor(t->engine, matrix);
            for (int64_t i = 0; i < rows * n; i++) floats(x)[i] = 0.75F + 0.0625F * (float)(i % 9);
            feclearexcept(FE_ALL_EXCEPT);
            for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
                weir_reduce_desc desc = {.struct_size = sizeof desc, .op = ops[i], .num_axes = 1, .axes = {1}};
                desc.p = ops[i] == WEIR_REDUCE_NORM_SUM ? 2 : 0;
                weir_kernel *kernel = NULL;
                weir_dtype dtype = ops[i] == WEIR_REDUCE_ARGMAX ? WEIR_S32 : WEIR_F32;
                weir_tensor *one = make_tensor(t->engine, make_desc(dtype, 1, rows, 0, 0));
                CHECK_OK(weir_kernel_create_reduce(t->engine, &desc, NULL, &kernel));
                run_once(t, kernel, &x, 1, one);
                weir_tensor_release(one);
            }
            for (uint64_t flags = 0; flags <= WEIR_SOFTMAX_LOG; flags++) {
                weir_softmax_desc desc = {.struct_size = sizeof desc, .axis = -1, .flags = flags};
                weir_kernel *kernel = NULL;
                CHECK_OK(weir_kernel_create_softmax(t->engine, &desc, NULL, &kernel));
                run_once(t, kernel, &x, 1, y);
            }
            for (weir_pooling_op op = WEIR_POOLING_MAX; op <= WEIR_POOLING_AVERAGE_INSIDE; op++) {
                weir_pooling_desc desc = {.struct_size = sizeof desc, .op = op, .kernel = {3, 3}, .strides = {1, 1},
                    .padding_begin = {1, 1}, .padding_end = {1, 1}};
                weir_tensor_desc image = make_desc(WEIR_F32, 4, 1, 1, rows);
                image.dims[3] = n;
                weir_kernel *kernel = NULL;
                weir_tensor *from = make_tensor(t->engine, image), *to = make_tensor(t->engine, image);
                memcpy(floats(from), floats(x), num_floats(x) * sizeof(float));
                CHECK_OK(weir_kernel_create_pooling(t->engine, &desc, NULL, &kernel));
                run_once(t, kernel, &from, 1, to);
                weir_tensor_release(from);
                weir_tensor_release(to);
            }
            CHECK_EQ(fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW), 0);
            weir_tensor_release(x);
            weir_tensor_release(y);
        }
    }
}

int main(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create(POOL_FULL, 3, &pool);
    place t = {.engine = make_engine(pool)};
    t.stream = make_stream(t.engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    test_transpose(&t);
    test_pad_slice_concat(&t);
    test_gather(&t);
    test_reduce(&t);
    test_norm_and_log_softmax(&t);
    test_cumsum(&t);
    test_reshape(&t);
    weir_stream_release(t.stream);
    weir_engine_release(t.engine);
    /* In the calling thread, whose exceptions are looked at. */
    t.engine = make_engine(NULL);
    t.stream = make_stream(t.engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    test_exceptions(&t);
    weir_stream_release(t.stream);
    weir_engine_release(t.engine);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
    check_released(&before);
    return 0;
}
