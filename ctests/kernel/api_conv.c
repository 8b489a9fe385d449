/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Convolution, pooling and recurrent cells, as a program would use them: a little network for signals on a stream, and
 * the same as a graph; its numbers against plain loops.
 */

#include <math.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

enum { IN = 3, OUT = 6, TAPS = 3, LEN = 40, CONV_LEN = 20, POOL_LEN = 10, HIDDEN = 5 };

static weir_kernel *conv_kernel(weir_engine *engine) {
    weir_conv_desc desc = {.struct_size = sizeof desc, .flags = WEIR_CONV_BIAS};
    weir_kernel *kernel = NULL;
    desc.activation = WEIR_ACTIVATION_RELU;
    desc.groups = 3;
    desc.strides[0] = 2;
    desc.padding_begin[0] = desc.padding_end[0] = 1;
    CHECK_OK(weir_kernel_create_conv(engine, &desc, NULL, &kernel));
    return kernel;
}

static weir_kernel *pooling_kernel(weir_engine *engine, weir_pooling_op op) {
    weir_pooling_desc desc = {.struct_size = sizeof desc, .op = op, .kernel = {2, 0}, .strides = {2, 0}};
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_pooling(engine, &desc, NULL, &kernel));
    return kernel;
}

static weir_kernel *lstm_kernel(weir_engine *engine, weir_gate_order order) {
    weir_lstm_desc desc = {.struct_size = sizeof desc, .flags = WEIR_LSTM_BIAS, .gate_order = order};
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_lstm(engine, &desc, NULL, &kernel));
    return kernel;
}

/* Whole numbers make every order of summation give the same, so the comparison is exact. */
static void check_conv_and_pooling(weir_engine *engine, weir_stream *stream) {
    weir_tensor *in[3] = {make_tensor(engine, make_desc(WEIR_F32, 3, 1, IN, LEN)),
                          make_tensor(engine, make_desc(WEIR_F32, 3, OUT, IN / 3, TAPS)),
                          make_tensor(engine, vector_desc(OUT))};
    weir_tensor *y = make_tensor(engine, make_desc(WEIR_F32, 3, 1, OUT, CONV_LEN));
    weir_tensor *z = make_tensor(engine, make_desc(WEIR_F32, 3, 1, OUT, POOL_LEN));
    weir_kernel *conv = conv_kernel(engine), *max = pooling_kernel(engine, WEIR_POOLING_MAX);
    for (int i = 0; i < 3; i++) fill(in[i], i);
    CHECK_OK(weir_enqueue(stream, conv, in, 3, &y, 1));
    CHECK_OK(weir_enqueue(stream, max, &y, 1, &z, 1));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    const float *x = floats(in[0]), *w = floats(in[1]), *bias = floats(in[2]);
    for (int o = 0; o < OUT; o++) {
        for (int p = 0; p < CONV_LEN; p++) {
            float sum = bias[o];
            for (int t = 0; t < TAPS; t++) {
                int at = 2 * p + t - 1;
                if (at >= 0 && at < LEN) sum += x[o / 2 * LEN + at] * w[o * TAPS + t];
            }
            CHECK(floats(y)[o * CONV_LEN + p] == (sum > 0 ? sum : 0));
        }
        for (int p = 0; p < POOL_LEN; p++) {
            const float *pair = floats(y) + o * CONV_LEN + 2 * p;
            CHECK(floats(z)[o * POOL_LEN + p] == fmaxf(pair[0], pair[1]));
        }
    }
    for (int i = 0; i < 3; i++) weir_tensor_release(in[i]);
    weir_tensor_release(y);
    weir_tensor_release(z);
    weir_kernel_release(conv);
    weir_kernel_release(max);
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* Three steps of an LSTM, each from the state of the one before; gates in either order. */
static void check_lstm(weir_engine *engine, weir_stream *stream, weir_gate_order order) {
    static const int gates[2][4] = {{0, 1, 2, 3}, {0, 3, 1, 2}}; /* where input, output, forget and cell are */
    const int *at = gates[order];
    weir_tensor *in[7] = {make_tensor(engine, matrix_desc(1, IN)),          make_tensor(engine, matrix_desc(1, HIDDEN)),
                          make_tensor(engine, matrix_desc(1, HIDDEN)),      make_tensor(engine, matrix_desc(4 * HIDDEN, IN)),
                          make_tensor(engine, matrix_desc(4 * HIDDEN, HIDDEN)), make_tensor(engine, vector_desc(4 * HIDDEN)),
                          make_tensor(engine, vector_desc(4 * HIDDEN))};
    weir_tensor *out[2] = {make_tensor(engine, matrix_desc(1, HIDDEN)), make_tensor(engine, matrix_desc(1, HIDDEN))};
    weir_kernel *lstm = lstm_kernel(engine, order);
    double h[HIDDEN] = {0}, c[HIDDEN] = {0};
    for (int i = 0; i < 7; i++) {
        if (i == 1 || i == 2) continue;
        fill(in[i], i);
        for (size_t j = 0; j < num_floats(in[i]); j++) floats(in[i])[j] /= 16;
    }
    for (int step = 0; step < 3; step++) {
        double old[HIDDEN];
        memcpy(old, h, sizeof h);
        CHECK_OK(weir_enqueue(stream, lstm, in, 7, out, 2));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        for (int j = 0; j < HIDDEN; j++) {
            double gate[4];
            for (int g = 0; g < 4; g++) {
                int row = at[g] * HIDDEN + j;
                gate[g] = floats(in[5])[row] + floats(in[6])[row];
                for (int k = 0; k < IN; k++) gate[g] += floats(in[0])[k] * floats(in[3])[row * IN + k];
                for (int k = 0; k < HIDDEN; k++) gate[g] += old[k] * floats(in[4])[row * HIDDEN + k];
            }
            c[j] = sigmoid(gate[2]) * c[j] + sigmoid(gate[0]) * tanh(gate[3]);
            h[j] = sigmoid(gate[1]) * tanh(c[j]);
            CHECK(fabs(floats(out[0])[j] - h[j]) < 1e-6);
            CHECK(fabs(floats(out[1])[j] - c[j]) < 1e-6);
        }
        memcpy(floats(in[1]), floats(out[0]), sizeof(float) * HIDDEN);
        memcpy(floats(in[2]), floats(out[1]), sizeof(float) * HIDDEN);
    }
    for (int i = 0; i < 7; i++) weir_tensor_release(in[i]);
    for (int i = 0; i < 2; i++) weir_tensor_release(out[i]);
    weir_kernel_release(lstm);
}

/* Kernels are made before there is a pool, and give the same bits with every one: a graph of all of them. */
static void compute_rough(weir_threadpool *pool, float *result) {
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_tensor_desc x_desc = make_desc(WEIR_F32, 3, 2, 9, 400), w_desc = make_desc(WEIR_F32, 3, 33, 3, 5);
    weir_tensor_desc b_desc = vector_desc(33);
    weir_graph *graph = make_graph("signal");
    weir_value values[3], y, z;
    weir_conv_desc conv_desc = {.struct_size = sizeof conv_desc, .flags = WEIR_CONV_BIAS, .groups = 3, .dilations = {2, 0}};
    weir_pooling_desc pooling_desc = {.struct_size = sizeof pooling_desc, .flags = WEIR_POOLING_GLOBAL};
    weir_kernel *conv = NULL, *pooling = NULL;
    conv_desc.activation = WEIR_ACTIVATION_TANH;
    conv_desc.padding = WEIR_PADDING_REFLECT;
    conv_desc.padding_begin[0] = 8;
    pooling_desc.op = WEIR_POOLING_AVERAGE;
    CHECK_OK(weir_kernel_create_conv(engine, &conv_desc, NULL, &conv));
    CHECK_OK(weir_kernel_create_pooling(engine, &pooling_desc, NULL, &pooling));
    CHECK_OK(weir_graph_add_input(graph, "x", &x_desc, &values[0]));
    CHECK_OK(weir_graph_add_input(graph, "weights", &w_desc, &values[1]));
    CHECK_OK(weir_graph_add_input(graph, "bias", &b_desc, &values[2]));
    CHECK_OK(weir_graph_add_kernel(graph, "conv", conv, values, 3, &y, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "pooling", pooling, &y, 1, &z, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    CHECK_OK(weir_graph_add_output(graph, "z", z));
    weir_program *program = compile(graph, engine);
    weir_tensor *in[3] = {make_tensor(engine, x_desc), make_tensor(engine, w_desc), make_tensor(engine, b_desc)};
    weir_tensor *out[2] = {make_tensor(engine, make_desc(WEIR_F32, 3, 2, 33, 400)), make_tensor(engine, make_desc(WEIR_F32, 3, 2, 33, 1))};
    for (int i = 0; i < 3; i++) {
        fill(in[i], i);
        for (size_t j = 0; j < num_floats(in[i]); j++) floats(in[i])[j] *= 0.01f * (float)(1 + j % 7);
    }
    CHECK_OK(weir_program_run(program, stream, in, 3, out, 2, NULL));
    memcpy(result, floats(out[0]), 2 * 33 * 400 * sizeof(float));
    memcpy(result + 2 * 33 * 400, floats(out[1]), 2 * 33 * sizeof(float));
    for (int i = 0; i < 3; i++) weir_tensor_release(in[i]);
    for (int i = 0; i < 2; i++) weir_tensor_release(out[i]);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(conv);
    weir_kernel_release(pooling);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

static void test_same_bits(void) {
    static float expected[2 * 33 * 401], seen[2 * 33 * 401];
    compute_rough(NULL, expected);
    for (int width = 1; width <= 7; width += 3) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create(POOL_FULL, width, &pool);
        compute_rough(pool, seen);
        CHECK(memcmp(expected, seen, sizeof seen) == 0);
        test_pool_let_go(host);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
}

static void test_refusals(weir_engine *engine, weir_stream *stream) {
    weir_kernel *conv = conv_kernel(engine);
    weir_tensor *in[3] = {make_tensor(engine, make_desc(WEIR_F32, 3, 1, IN, LEN)),
                          make_tensor(engine, make_desc(WEIR_F32, 3, OUT, IN, TAPS)), make_tensor(engine, vector_desc(OUT))};
    weir_tensor *y = make_tensor(engine, make_desc(WEIR_F32, 3, 1, OUT, CONV_LEN));
    CHECK_CODE(weir_enqueue(stream, conv, in, 3, &y, 1), WEIR_INVALID_ARGUMENT,
               "kernel 'conv': input 1: expected f32[?,1,?], got f32[6,3,3]");
    for (int i = 0; i < 3; i++) weir_tensor_release(in[i]);
    weir_tensor_release(y);
    weir_kernel_release(conv);
}

/* A place between the edge and the middle of the first element is where it is, and only elements are moved. */
static void test_cubic_border(weir_engine *engine, weir_stream *stream) {
    const weir_grid_sample_desc desc = {
        .struct_size = sizeof desc, .mode = WEIR_RESIZE_CUBIC, .edge = WEIR_GRID_SAMPLE_BORDER};
    weir_tensor_desc image = {.dtype = WEIR_F32, .rank = 4, .dims = {1, 1, 1, 2}}, grid = image, result = image;
    weir_kernel *kernel = NULL;
    grid.dims[2] = 3, grid.dims[3] = 2, result.dims[3] = 3;
    weir_tensor *in[2] = {make_tensor(engine, image), make_tensor(engine, grid)}, *y = make_tensor(engine, result);
    const float places[] = {-1, 0, 1, 0, -5, 0}, expected[] = {-0.09375f, 1.09375f, 0};
    floats(in[0])[1] = 1;
    memcpy(floats(in[1]), places, sizeof places);
    CHECK_OK(weir_kernel_create_grid_sample(engine, &desc, NULL, &kernel));
    CHECK_OK(weir_enqueue(stream, kernel, in, 2, &y, 1));
    for (int i = 0; i < 3; i++) CHECK(floats(y)[i] == expected[i]);
    weir_tensor_release(in[0]), weir_tensor_release(in[1]), weir_tensor_release(y);
    weir_kernel_release(kernel);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    check_conv_and_pooling(engine, stream);
    check_lstm(engine, stream, WEIR_GATES_ONNX);
    check_lstm(engine, stream, WEIR_GATES_TORCH);
    test_refusals(engine, stream);
    test_cubic_border(engine, stream);
    weir_stream_release(stream);
    weir_engine_release(engine);
    test_same_bits();
    check_released(&before);
    return 0;
}
