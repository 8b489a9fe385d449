/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Convolution and pooling of volumes, [N, C, D, H, W]: against plain loops, at the end of which a sum and an activation
 * are computed in a program. And programs that know no volumes: their shorter descriptors give what they gave.
 */

#include <stddef.h>
#include <weir/inspect.h>
#include <weir/ops.h>

#include "make.h"
#include "test_pools.h"

enum { N = 2, C = 6, O = 4, D = 5, H = 7, W = 9, GROUPS = 2, KD = 3, KH = 3, KW = 3, OD = 3, OH = 7, OW = 9 };

static weir_tensor_desc volume_desc(int64_t n, int64_t c, int64_t d, int64_t h, int64_t w) {
    weir_tensor_desc desc = make_desc(WEIR_F32, 5, n, c, d);
    desc.dims[3] = h;
    desc.dims[4] = w;
    return desc;
}

static weir_conv_desc conv_settings(void) {
    weir_conv_desc desc = {.struct_size = sizeof desc, .groups = GROUPS, .padding_begin = {1, 1}, .padding_end = {1, 1}};
    desc.depth_stride = 2;
    desc.depth_padding_begin = desc.depth_padding_end = 1;
    return desc;
}

static const weir_pooling_desc POOLING = {
    .struct_size = sizeof POOLING, .op = WEIR_POOLING_MAX, .kernel = {3, 2}, .strides = {2, 2}, .depth_kernel = 2};
enum { PD = 2, PH = 3, PW = 4 };

/* y = relu(conv(x) + more), and the maxima of y. */
static void compute_by_loops(const float *x, const float *w, const float *more, float *y, float *z) {
    for (int i = 0; i < N * O * OD * OH * OW; i++) {
        int column = i % OW, row = i / OW % OH, slice = i / OW / OH % OD, o = i / OW / OH / OD % O, n = i / OW / OH / OD / O;
        float sum = 0;
        for (int k = 0; k < C / GROUPS * KD * KH * KW; k++) {
            int tap = k % (KD * KH * KW), c = k / (KD * KH * KW) + o / (O / GROUPS) * (C / GROUPS);
            int d = 2 * slice + tap / (KH * KW) - 1, h = row + tap / KW % KH - 1, at = column + tap % KW - 1;
            if (d < 0 || d >= D || h < 0 || h >= H || at < 0 || at >= W) continue;
            sum += x[(((n * C + c) * D + d) * H + h) * W + at] * w[o * (C / GROUPS * KD * KH * KW) + k];
        }
        sum += more[i];
        y[i] = sum > 0 ? sum : 0;
    }
    for (int i = 0; i < N * O * PD * PH * PW; i++) {
        int column = i % PW, row = i / PW % PH, slice = i / PW / PH % PD, plane = i / PW / PH / PD;
        z[i] = -1;
        for (int tap = 0; tap < 2 * 3 * 2; tap++) {
            int d = slice + tap / 6, h = 2 * row + tap / 2 % 3, at = 2 * column + tap % 2;
            float one = y[((plane * OD + d) * OH + h) * OW + at];
            if (one > z[i]) z[i] = one;
        }
    }
}

static void test_program(weir_threadpool *pool, uint64_t flags) {
    static float y[N * O * OD * OH * OW], z[N * O * PD * PH * PW];
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_tensor_desc x_desc = volume_desc(N, C, D, H, W), w_desc = volume_desc(O, C / GROUPS, KD, KH, KW);
    weir_tensor_desc y_desc = volume_desc(N, O, OD, OH, OW), z_desc = volume_desc(N, O, PD, PH, PW);
    weir_conv_desc conv = conv_settings();
    const weir_binary_desc sum = {.struct_size = sizeof sum, .op = WEIR_BINARY_ADD};
    const weir_eltwise_desc relu = {.struct_size = sizeof relu, .op = WEIR_ELTWISE_RELU};
    weir_kernel *kernels[4] = {NULL};
    weir_graph *graph = make_graph("volumes");
    weir_value in[3], value[4], of_sum[2];
    CHECK_OK(weir_kernel_create_conv(engine, &conv, NULL, &kernels[0]));
    CHECK_OK(weir_kernel_create_binary(engine, &sum, NULL, &kernels[1]));
    CHECK_OK(weir_kernel_create_eltwise(engine, &relu, NULL, &kernels[2]));
    CHECK_OK(weir_kernel_create_pooling(engine, &POOLING, NULL, &kernels[3]));
    CHECK_OK(weir_graph_add_input(graph, "x", &x_desc, &in[0]));
    CHECK_OK(weir_graph_add_input(graph, "weights", &w_desc, &in[1]));
    CHECK_OK(weir_graph_add_input(graph, "more", &y_desc, &in[2]));
    CHECK_OK(weir_graph_add_kernel(graph, "conv1", kernels[0], in, 2, &value[0], 1, NULL));
    of_sum[0] = value[0], of_sum[1] = in[2];
    CHECK_OK(weir_graph_add_kernel(graph, "add1", kernels[1], of_sum, 2, &value[1], 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "relu1", kernels[2], &value[1], 1, &value[2], 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "pool1", kernels[3], &value[2], 1, &value[3], 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", value[2]));
    CHECK_OK(weir_graph_add_output(graph, "z", value[3]));
    weir_compile_options options = {.struct_size = sizeof options, .flags = flags};
    weir_program *program = NULL;
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &options, &program));
    static char report[16 << 10];
    CHECK_OK(weir_program_report(program, WEIR_REPORT_TEXT, report, sizeof report, NULL));
    CHECK((strstr(report, " 2 done at the end of others\n") != NULL) == (flags == 0));
    weir_tensor *inputs[3] = {make_tensor(engine, x_desc), make_tensor(engine, w_desc), make_tensor(engine, y_desc)};
    weir_tensor *outputs[2] = {make_tensor(engine, y_desc), make_tensor(engine, z_desc)};
    for (int i = 0; i < 3; i++) fill(inputs[i], i);
    CHECK_OK(weir_program_run(program, stream, inputs, 3, outputs, 2, NULL));
    /* Whole numbers make every order of summation give the same. */
    compute_by_loops(floats(inputs[0]), floats(inputs[1]), floats(inputs[2]), y, z);
    CHECK(num_floats(outputs[0]) == sizeof y / sizeof *y && memcmp(y, floats(outputs[0]), sizeof y) == 0);
    CHECK(num_floats(outputs[1]) == sizeof z / sizeof *z && memcmp(z, floats(outputs[1]), sizeof z) == 0);
    for (int i = 0; i < 3; i++) weir_tensor_release(inputs[i]);
    for (int i = 0; i < 2; i++) weir_tensor_release(outputs[i]);
    for (int i = 0; i < 4; i++) weir_kernel_release(kernels[i]);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

static void run(weir_engine *engine, weir_kernel *kernel, const weir_tensor_desc *descs, size_t count, weir_tensor_desc out, float *result) {
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_tensor *in[2] = {NULL}, *y = make_tensor(engine, out);
    for (size_t i = 0; i < count; i++) in[i] = make_tensor(engine, descs[i]), fill(in[i], (int)i);
    CHECK_OK(weir_enqueue(stream, kernel, in, count, &y, 1));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    memcpy(result, floats(y), num_floats(y) * sizeof *result);
    for (size_t i = 0; i < count; i++) weir_tensor_release(in[i]);
    weir_tensor_release(y);
    weir_stream_release(stream);
}

/* A program that was compiled when descriptors ended where the members of depth begin: the bytes behind are its own. */
static void test_old_programs(weir_engine *engine) {
    static float expected[4096], seen[4096];
    weir_tensor_desc x = make_desc(WEIR_F32, 4, 1, 2, 8), w = make_desc(WEIR_F32, 4, 4, 2, 3), y = make_desc(WEIR_F32, 4, 1, 4, 4);
    weir_tensor_desc in[2] = {x, w}, transposed[2] = {x, w}, big = make_desc(WEIR_F32, 4, 1, 2, 17), pooled = make_desc(WEIR_F32, 4, 1, 2, 4);
    in[0].dims[3] = transposed[0].dims[3] = 10, in[1].dims[3] = transposed[1].dims[3] = 3, y.dims[3] = 5;
    transposed[1].dims[0] = 2, big.dims[3] = 21, pooled.dims[3] = 5;
    weir_conv_desc conv = {.struct_size = sizeof conv, .strides = {2, 2}, .padding_begin = {1, 1}, .padding_end = {1, 1}};
    weir_conv_transpose_desc transpose = {.struct_size = sizeof transpose, .strides = {2, 2}};
    weir_pooling_desc pooling = {.struct_size = sizeof pooling, .op = WEIR_POOLING_AVERAGE, .kernel = {2, 2}, .strides = {2, 2}};
    for (int is_old = 0; is_old < 2; is_old++) {
        float *result = is_old ? seen : expected;
        weir_kernel *kernels[3] = {NULL};
        memset(result, 0, sizeof expected);
        if (is_old) {
            conv.struct_size = offsetof(weir_conv_desc, depth_stride);
            transpose.struct_size = offsetof(weir_conv_transpose_desc, depth_stride);
            pooling.struct_size = offsetof(weir_pooling_desc, depth_kernel);
            memset(&conv.depth_stride, 0xa5, sizeof conv - conv.struct_size);
            memset(&transpose.depth_stride, 0xa5, sizeof transpose - transpose.struct_size);
            memset(&pooling.depth_kernel, 0xa5, sizeof pooling - pooling.struct_size);
        }
        CHECK(!is_old || (conv.struct_size == 112 && transpose.struct_size == 120 && pooling.struct_size == 104));
        CHECK_OK(weir_kernel_create_conv(engine, &conv, NULL, &kernels[0]));
        CHECK_OK(weir_kernel_create_conv_transpose(engine, &transpose, NULL, &kernels[1]));
        CHECK_OK(weir_kernel_create_pooling(engine, &pooling, NULL, &kernels[2]));
        run(engine, kernels[0], in, 2, y, result);
        run(engine, kernels[1], transposed, 2, big, result + 1024);
        run(engine, kernels[2], in, 1, pooled, result + 2048);
        for (int i = 0; i < 3; i++) weir_kernel_release(kernels[i]);
    }
    CHECK(memcmp(expected, seen, sizeof seen) == 0);
    /* Nothing of a larger struct is silently ignored. */
    struct { weir_conv_desc known; int64_t more; } newer = {{.struct_size = sizeof newer}, 1};
    weir_kernel *kernel = NULL;
    CHECK_CODE(weir_kernel_create_conv(engine, &newer.known, NULL, &kernel), WEIR_INVALID_ARGUMENT,
               "desc sets members that this version of weir does not know (struct_size 152, known 144)");
}

int main(void) {
    weir_runtime_info before = runtime_info();
    weir_engine *engine = make_engine(NULL);
    test_old_programs(engine);
    weir_engine_release(engine);
    test_program(NULL, 0);
    test_program(NULL, WEIR_COMPILE_NO_FUSION);
    for (int width = 1; width <= 7; width += 3) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create(POOL_FULL, width, &pool);
        test_program(pool, 0);
        test_pool_let_go(host);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
    check_released(&before);
    return 0;
}
