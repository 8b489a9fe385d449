/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * f16 and bf16 as a program uses them that keeps its weights and what lies between its layers in halves: weights come
 * as floats, are converted and packed; a graph normalises, multiplies with bias and gelu, multiplies again and adds
 * what it began with, gives scores in f32, and beside them a softmax in halves. Compared with the same in f64 that is
 * rounded where halves are stored.
 */

#include <math.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

enum { TOKENS = 19, WIDTH = 96, HIDDEN = 200, CLASSES = 33 };

/* ---- What a host has of its own: halves as bits -------------------------------------------------- */

static double of_bf16(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return (double)x;
}

static double of_f16(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double x = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 ? -x : x;
}

static double of_half(weir_dtype dtype, uint16_t bits) {
    return dtype == WEIR_F16 ? of_f16(bits) : of_bf16(bits);
}

/* Machine epsilon. */
static double unit_of(weir_dtype dtype) {
    return dtype == WEIR_F16 ? 0x1p-10 : 0x1p-7;
}

/* To the nearest one; numbers here are not huge. */
static double rounded(weir_dtype dtype, double x) {
    int exponent, digits = dtype == WEIR_F16 ? 11 : 8, least = dtype == WEIR_F16 ? -24 : -133;
    if (x == 0) return x;
    frexp(x, &exponent);
    double unit = ldexp(1, exponent - digits > least ? exponent - digits : least);
    return nearbyint(x / unit) * unit;
}

/* ---- Making halves of floats --------------------------------------------------------------------- */

typedef struct place {
    weir_engine *engine;
    weir_stream *stream;
    weir_dtype dtype;
    weir_kernel *to_halves;
} place;

static weir_tensor_desc halves_desc(const place *t, uint32_t rank, int64_t d0, int64_t d1) {
    return make_desc(t->dtype, rank, d0, d1, 0);
}

static const uint16_t *bits_of(const weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return data;
}

/* Weights that a file might have, as halves; `values` gets what these are. */
static weir_tensor *load(const place *t, uint32_t rank, int64_t d0, int64_t d1, double size, unsigned seed, double *values) {
    weir_tensor *from = make_tensor(t->engine, make_desc(WEIR_F32, rank, d0, d1, 0));
    weir_tensor *halves = make_tensor(t->engine, halves_desc(t, rank, d0, d1));
    size_t n = num_floats(from);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        floats(from)[i] = (float)(size * ((double)(seed >> 8) / 0x1p23 - 1));
    }
    CHECK_OK(weir_enqueue(t->stream, t->to_halves, &from, 1, &halves, 1));
    for (size_t i = 0; i < n; i++) {
        values[i] = of_half(t->dtype, bits_of(halves)[i]);
        CHECK(values[i] == rounded(t->dtype, (double)floats(from)[i]));
    }
    weir_tensor_release(from);
    return halves;
}

static weir_packed_weights *pack(const place *t, weir_tensor *halves) {
    weir_packed_weights *weights = NULL;
    CHECK_OK(weir_packed_weights_create(t->engine, halves, NULL, &weights));
    weir_tensor_release(halves); /* not needed any more */
    return weights;
}

/* ---- The reference ------------------------------------------------------------------------------- */

static double x[TOKENS * WIDTH], gain[WIDTH], shift[WIDTH], up[WIDTH * HIDDEN], up_bias[HIDDEN], down[HIDDEN * WIDTH],
    score[WIDTH * CLASSES], normed[WIDTH], hidden[HIDDEN], sum[TOKENS * WIDTH], scores[TOKENS * CLASSES];

static void refer(weir_dtype dtype) {
    for (int token = 0; token < TOKENS; token++) {
        const double *row = x + token * WIDTH;
        double mean = 0, variance = 0;
        for (int i = 0; i < WIDTH; i++) mean += row[i] / WIDTH;
        for (int i = 0; i < WIDTH; i++) variance += (row[i] - mean) * (row[i] - mean) / WIDTH;
        for (int i = 0; i < WIDTH; i++) {
            normed[i] = rounded(dtype, (row[i] - mean) / sqrt(variance + 1e-5) * gain[i] + shift[i]);
        }
        for (int j = 0; j < HIDDEN; j++) {
            double y = up_bias[j];
            for (int i = 0; i < WIDTH; i++) y += normed[i] * up[i * HIDDEN + j];
            hidden[j] = rounded(dtype, y / 2 * erfc(-y / sqrt(2)));
        }
        for (int i = 0; i < WIDTH; i++) {
            double y = row[i];
            for (int j = 0; j < HIDDEN; j++) y += hidden[j] * down[j * WIDTH + i];
            sum[token * WIDTH + i] = rounded(dtype, y);
        }
        for (int c = 0; c < CLASSES; c++) {
            double y = 0;
            for (int i = 0; i < WIDTH; i++) y += sum[token * WIDTH + i] * score[i * CLASSES + c];
            scores[token * CLASSES + c] = y;
        }
    }
}

/* ---- The program --------------------------------------------------------------------------------- */

static weir_value add(weir_graph *graph, const char *name, weir_kernel *kernel, const weir_value *in, size_t num_in) {
    weir_value y;
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, in, num_in, &y, 1, NULL));
    weir_kernel_release(kernel);
    return y;
}

static weir_value add_constant(weir_graph *graph, const char *name, weir_tensor *tensor) {
    weir_value value;
    CHECK_OK(weir_graph_add_constant(graph, name, tensor, &value));
    weir_tensor_release(tensor);
    return value;
}

static weir_program *build(const place *t) {
    weir_norm_desc norm = {.struct_size = sizeof norm, .op = WEIR_NORM_LAYER, .axis = -1, .epsilon = 1e-5f,
                           .flags = WEIR_NORM_SCALE | WEIR_NORM_SHIFT};
    weir_matmul_desc product = {.struct_size = sizeof product};
    weir_softmax_desc softmax = {.struct_size = sizeof softmax, .axis = -1};
    weir_tensor_desc tokens = halves_desc(t, 2, TOKENS, WIDTH);
    weir_graph *graph = make_graph("halves");
    weir_kernel *kernel = NULL;
    weir_value in, n[3], h[2], y[2], logits, shares;
    CHECK_OK(weir_graph_add_input(graph, "x", &tokens, &in));

    n[0] = in;
    n[1] = add_constant(graph, "gain", load(t, 1, WIDTH, 0, 1.5, 2, gain));
    n[2] = add_constant(graph, "shift", load(t, 1, WIDTH, 0, 0.5, 3, shift));
    CHECK_OK(weir_kernel_create_norm(t->engine, &norm, NULL, &kernel));
    h[0] = add(graph, "norm", kernel, n, 3);

    h[1] = add_constant(graph, "up bias", load(t, 1, HIDDEN, 0, 0.3, 5, up_bias));
    product.flags = WEIR_MATMUL_BIAS;
    product.activation = WEIR_ACTIVATION_GELU_ERF;
    product.weights = pack(t, load(t, 2, WIDTH, HIDDEN, 0.2, 4, up));
    CHECK_OK(weir_kernel_create_matmul(t->engine, &product, NULL, &kernel));
    weir_packed_weights_release(product.weights); /* the kernel holds them */
    y[0] = add(graph, "up", kernel, h, 2);

    product.flags = WEIR_MATMUL_SUM;
    product.activation = WEIR_ACTIVATION_NONE;
    product.weights = pack(t, load(t, 2, HIDDEN, WIDTH, 0.2, 6, down));
    y[1] = in;
    CHECK_OK(weir_kernel_create_matmul(t->engine, &product, NULL, &kernel));
    weir_packed_weights_release(product.weights);
    y[0] = add(graph, "down", kernel, y, 2);
    CHECK_OK(weir_graph_add_output(graph, "y", y[0]));

    product.flags = WEIR_MATMUL_F32_RESULT;
    product.weights = NULL;
    y[1] = add_constant(graph, "classes", load(t, 2, WIDTH, CLASSES, 0.2, 7, score));
    CHECK_OK(weir_kernel_create_matmul(t->engine, &product, NULL, &kernel));
    logits = add(graph, "score", kernel, y, 2);
    CHECK_OK(weir_graph_add_output(graph, "logits", logits));

    CHECK_OK(weir_kernel_create_softmax(t->engine, &softmax, NULL, &kernel));
    shares = add(graph, "softmax", kernel, y, 1);
    CHECK_OK(weir_graph_add_output(graph, "shares", shares));
    weir_program *program = compile(graph, t->engine);
    weir_graph_destroy(graph);
    return program;
}

/* Numbers that were rounded twice on the way may be a unit or two apart. */
static void test_block(const place *t) {
    weir_program *program = build(t);
    weir_tensor *in = load(t, 2, TOKENS, WIDTH, 2, 1, x);
    weir_tensor *out[3] = {make_tensor(t->engine, halves_desc(t, 2, TOKENS, WIDTH)),
                           make_tensor(t->engine, matrix_desc(TOKENS, CLASSES)),
                           make_tensor(t->engine, halves_desc(t, 2, TOKENS, WIDTH))};
    double unit = unit_of(t->dtype), worst = 0;
    refer(t->dtype);
    CHECK_OK(weir_program_run(program, t->stream, &in, 1, out, 3, NULL));
    for (int i = 0; i < TOKENS * WIDTH; i++) {
        double error = fabs(of_half(t->dtype, bits_of(out[0])[i]) - sum[i]);
        worst = fmax(worst, error / fmax(1, fabs(sum[i])));
    }
    CHECK(worst <= 2 * unit);
    for (int i = 0; i < TOKENS * CLASSES; i++) CHECK(fabs((double)floats(out[1])[i] - scores[i]) <= 6 * unit);
    for (int token = 0; token < TOKENS; token++) {
        const uint16_t *row = bits_of(out[0]) + token * WIDTH, *got = bits_of(out[2]) + token * WIDTH;
        double total = 0;
        for (int i = 0; i < WIDTH; i++) total += exp(of_half(t->dtype, row[i]));
        for (int i = 0; i < WIDTH; i++) {
            double share = exp(of_half(t->dtype, row[i])) / total;
            CHECK(fabs(of_half(t->dtype, got[i]) - share) <= 0.51 * unit * share + 0x1p-25);
        }
    }
    for (int i = 0; i < 3; i++) weir_tensor_release(out[i]);
    weir_tensor_release(in);
    weir_program_release(program);
}

/* Halves of both kinds do not mix, and a refusal says so. */
static void test_refusals(const place *t) {
    weir_dtype other = t->dtype == WEIR_F16 ? WEIR_BF16 : WEIR_F16;
    weir_matmul_desc product = {.struct_size = sizeof product};
    weir_kernel *kernel = NULL;
    weir_tensor *in[2] = {make_tensor(t->engine, halves_desc(t, 2, 4, 5)), make_tensor(t->engine, make_desc(other, 2, 5, 6, 0))};
    weir_tensor *out = make_tensor(t->engine, halves_desc(t, 2, 4, 6));
    CHECK_OK(weir_kernel_create_matmul(t->engine, &product, NULL, &kernel));
    CHECK_CODE(weir_enqueue(t->stream, kernel, in, 2, &out, 1), WEIR_INVALID_ARGUMENT,
               t->dtype == WEIR_F16 ? "input 1: expected f16[5,?], got bf16[5,6]" : "input 1: expected bf16[5,?], got f16[5,6]");
    weir_kernel_release(kernel);
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_tensor_release(out);
}

/* Without products to add up there is the bias, also of a transposed A, which has no elements then. */
static void test_empty_sums(const place *t) {
    weir_matmul_desc product = {.struct_size = sizeof product, .flags = WEIR_MATMUL_TRANSPOSE_A | WEIR_MATMUL_BIAS};
    double values[3];
    weir_kernel *kernel = NULL;
    weir_tensor *in[3] = {make_tensor(t->engine, halves_desc(t, 2, 0, 67)), make_tensor(t->engine, halves_desc(t, 2, 0, 3)),
                          load(t, 1, 3, 0, 5, 9, values)};
    weir_tensor *out = make_tensor(t->engine, halves_desc(t, 2, 67, 3));
    CHECK_OK(weir_kernel_create_matmul(t->engine, &product, NULL, &kernel));
    CHECK_OK(weir_enqueue(t->stream, kernel, in, 3, &out, 1));
    for (int i = 0; i < 67 * 3; i++) CHECK(of_half(t->dtype, bits_of(out)[i]) == values[i % 3]);
    weir_kernel_release(kernel);
    for (int i = 0; i < 3; i++) weir_tensor_release(in[i]);
    weir_tensor_release(out);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create(POOL_FULL, 3, &pool);
    place t = {.engine = make_engine(pool)};
    t.stream = make_stream(t.engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        t.dtype = i == 0 ? WEIR_F16 : WEIR_BF16;
        weir_convert_desc convert = {.struct_size = sizeof convert, .dtype = t.dtype};
        CHECK_OK(weir_kernel_create_convert(t.engine, &convert, NULL, &t.to_halves));
        test_block(&t);
        test_empty_sums(&t);
        test_refusals(&t);
        weir_kernel_release(t.to_halves);
    }
    weir_stream_release(t.stream);
    weir_engine_release(t.engine);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
    check_released(&before);
    return 0;
}
