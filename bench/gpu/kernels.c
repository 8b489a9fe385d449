/* weir's kernels one by one: the time of a call, and how near that is to what the device can do. Some results of each
 * are compared with what the host makes of the same numbers in double precision.
 *
 * The names say operation, types and shapes, and gpu/torch_kernels.py does what they say with another library.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <math.h>
#include <string.h>
#include <weir/ops.h>

#include "bench.h"
#include "kernels.h"
#include "weir_side.h"

enum { MOST_INPUTS = 3, MOST_BATCHES = 7, SAMPLES = 24 };
/* When the rows that are left are not measured any more. */
static const double MOST_NS = 16e9;

typedef struct operand {
    weir_tensor_desc desc;
    uint32_t base; /* where its numbers begin among all */
    raw_pointer at;
    weir_tensor *tensor;
} operand;

/* One row of the table. */
typedef struct work work;
struct work {
    char name[112];
    weir_kernel *kernel; /* NULL: a copy */
    operand in[MOST_INPUTS], out;
    int inputs;
    double operations; /* 0: bytes are what counts; below that, until `product`: those of a product */
    /* What element `at` of the output should be, and how far from that it may be before it is rounded to its type. */
    double (*expected)(const work *of, int64_t at, double *margin);
    int transpose_b, gelu; /* B is [..., N, K] */
    int64_t stride, padding;
    double scale;
};

typedef struct kernels {
    weir_engine *engine;
    weir_stream *stream;
    void *raw_stream, *draw;
    raw_pointer memory;
    size_t memory_bytes;
    double memory_peak, f32_peak, bf16_peak, s8_peak; /* bytes and operations in a second; 0: unknown */
    double begun;
} kernels;

/* ---- Numbers ---------------------------------------------------------------------------------------- */

/* As the PTX has it. */
static uint32_t mixed(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

static int32_t drawn(uint32_t base, int64_t at) {
    return (int32_t)mixed(base + (uint32_t)at);
}

static double from_bf16(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

/* An element of an input. */
static double element(const operand *of, int64_t at) {
    const int32_t x = drawn(of->base, at);
    const float f = (float)(x >> 8) * 0x1p-23f;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    switch (of->desc.dtype) {
    case WEIR_BF16: return from_bf16((uint16_t)(bits >> 16));
    case WEIR_S8: return (int8_t)x;
    case WEIR_S32: return x >> 16;
    default: return f;
    }
}

static size_t bytes_of(weir_dtype type) {
    return type == WEIR_BF16 ? 2 : type == WEIR_S8 ? 1 : 4;
}

static int64_t count_of(const operand *of) {
    int64_t count = 1;
    for (uint32_t i = 0; i < of->desc.rank; i++) count *= of->desc.dims[i];
    return count;
}

static int64_t last(const operand *of) {
    return of->desc.dims[of->desc.rank - 1];
}

static double expected_copy(const work *w, int64_t at, double *margin) {
    *margin = 0;
    return element(&w->in[0], at);
}

static double expected_sum(const work *w, int64_t at, double *margin) {
    *margin = 0;
    return element(&w->in[0], at) + element(&w->in[1], at);
}

static double gelu(double x) {
    return x * (1 + erf(x / sqrt(2))) / 2;
}

static double expected_gelu(const work *w, int64_t at, double *margin) {
    *margin = 1e-6;
    return gelu(element(&w->in[0], at));
}

static double expected_softmax(const work *w, int64_t at, double *margin) {
    const int64_t columns = last(&w->in[0]), row = at / columns * columns;
    double sum = 0;
    for (int64_t i = 0; i < columns; i++) sum += exp(element(&w->in[0], row + i));
    const double want = exp(element(&w->in[0], at)) / sum;
    *margin = 1e-5 * want;
    return want;
}

static const float EPSILON = 1e-5f;

static double expected_norm(const work *w, int64_t at, double *margin) {
    const int64_t columns = last(&w->in[0]), row = at / columns * columns;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < columns; i++) mean += element(&w->in[0], row + i) / (double)columns;
    for (int64_t i = 0; i < columns; i++) {
        const double off = element(&w->in[0], row + i) - mean;
        variance += off * off / (double)columns;
    }
    const double x = (element(&w->in[0], at) - mean) / sqrt(variance + (double)EPSILON);
    const double want = x * element(&w->in[1], at - row) + element(&w->in[2], at - row);
    *margin = 2e-5 * fmax(1, fabs(want));
    return want;
}

/* Over all that is not in the output: its elements are rows. Exact, since the numbers are multiples of 2^-23. */
static double expected_reduce(const work *w, int64_t at, double *margin) {
    const int64_t columns = count_of(&w->in[0]) / count_of(&w->out);
    int64_t sum = 0;
    for (int64_t i = 0; i < columns; i++) sum += drawn(w->in[0].base, at * columns + i) >> 8;
    const double want = (double)sum * 0x1p-23;
    *margin = 1e-6 * fmax(1, fabs(want));
    return want;
}

static double expected_conv(const work *w, int64_t at, double *margin) {
    const int64_t *x = w->in[0].desc.dims, *filters = w->in[1].desc.dims, *y = w->out.desc.dims;
    const int64_t column = at % y[3], row = at / y[3] % y[2], filter = at / y[3] / y[2] % y[1], image = at / y[3] / y[2] / y[1];
    double sum = 0, size = 0;
    for (int64_t channel = 0; channel < x[1]; channel++) {
        for (int64_t i = 0; i < filters[2]; i++) {
            for (int64_t j = 0; j < filters[3]; j++) {
                const int64_t from_row = row * w->stride + i - w->padding, from_column = column * w->stride + j - w->padding;
                if (from_row < 0 || from_row >= x[2] || from_column < 0 || from_column >= x[3]) continue;
                const double a = element(&w->in[0], ((image * x[1] + channel) * x[2] + from_row) * x[3] + from_column);
                const double b = element(&w->in[1], ((filter * x[1] + channel) * filters[2] + i) * filters[3] + j);
                sum += a * b;
                size += fabs(a * b);
            }
        }
    }
    *margin = 1e-5 * size;
    return sum;
}

static double expected_product(const work *w, int64_t at, double *margin) {
    const operand *a = &w->in[0], *b = &w->in[1];
    const uint32_t rank = w->out.desc.rank;
    const int64_t *dims = w->out.desc.dims, k = last(a), columns = dims[rank - 1], rows = dims[rank - 2];
    const int64_t column = at % columns, row = at / columns % rows;
    /* Which matrices: a leading dimension of 1 stretches. */
    int64_t left = at / columns / rows, of_a = 0, of_b = 0, next_a = 1, next_b = 1;
    for (uint32_t i = rank - 2; i-- > 0;) {
        const int64_t place = left % dims[i];
        left /= dims[i];
        of_a += place % a->desc.dims[i] * next_a;
        of_b += place % b->desc.dims[i] * next_b;
        next_a *= a->desc.dims[i];
        next_b *= b->desc.dims[i];
    }
    double sum = 0, size = 0;
    for (int64_t i = 0; i < k; i++) {
        const double x = element(a, (of_a * rows + row) * k + i);
        const double y = element(b, of_b * k * columns + (w->transpose_b ? column * k + i : i * columns + column));
        sum += x * y;
        size += fabs(x * y);
    }
    if (a->desc.dtype == WEIR_S8) {
        const double want = sum * w->scale * element(&w->in[2], column);
        *margin = 1e-6 * fabs(want);
        return want;
    }
    *margin = 1.2e-5 * size;
    return w->gelu ? gelu(sum + element(&w->in[2], column)) : sum;
}

/* ---- One row ---------------------------------------------------------------------------------------- */

static void fill(kernels *all, operand *of) {
    static uint32_t serial = 0;
    const weir_dtype type = of->desc.dtype;
    uint32_t count = (uint32_t)count_of(of), kind = type == WEIR_BF16 ? 1 : type == WEIR_S8 ? 2 : type == WEIR_S32 ? 3 : 0;
    of->base = ++serial * 0x9e3779b9u;
    void *arguments[] = {&of->at, &count, &of->base, &kind};
    const unsigned blocks = count / 256 < 4096 ? count / 256 + 1 : 4096;
    RAW(cuLaunchKernel(all->draw, blocks, 1, 1, 256, 1, 1, 0, all->raw_stream, arguments, NULL));
}

/* A tensor in what is left of the memory. */
static int place(kernels *all, operand *of, size_t *used) {
    const size_t bytes = (size_t)count_of(of) * bytes_of(of->desc.dtype);
    if (bytes > all->memory_bytes || *used > all->memory_bytes - bytes) return 0;
    of->at = all->memory + *used;
    *used += (bytes + 511) / 512 * 512;
    OK(weir_tensor_create(all->engine, &of->desc, &(weir_memory){.struct_size = sizeof(weir_memory), .data = (void *)(uintptr_t)of->at}, &of->tensor));
    return 1;
}

static weir_status call(kernels *all, work *w) {
    weir_tensor *inputs[MOST_INPUTS];
    for (int i = 0; i < w->inputs; i++) inputs[i] = w->in[i].tensor;
    if (w->kernel == NULL) return weir_enqueue_copy(all->stream, inputs[0], w->out.tensor);
    return weir_enqueue(all->stream, w->kernel, inputs, (size_t)w->inputs, &w->out.tensor, 1);
}

/* The time of so many calls, one behind the other. */
static double calls_ns(kernels *all, work *w, int calls) {
    const double start = now_ns();
    for (int i = 0; i < calls; i++) OK(call(all, w));
    OK(weir_stream_synchronize(all->stream, WEIR_TIMEOUT_INFINITE));
    return now_ns() - start;
}

/* False, with a row that says so, where weir refuses. */
static int does(const work *w, weir_status status) {
    if (status == WEIR_UNIMPLEMENTED) {
        printf("| %s | UNIMPLEMENTED: %s | | |\n", w->name, weir_last_error_message());
        return 0;
    }
    OK(status);
    return 1;
}

static double result(kernels *all, const operand *of, int64_t at) {
    const size_t bytes = bytes_of(of->desc.dtype);
    uint32_t bits = 0;
    RAW(cuMemcpyDtoHAsync_v2(&bits, of->at + (raw_pointer)at * bytes, bytes, all->raw_stream));
    RAW(cuStreamSynchronize(all->raw_stream));
    if (of->desc.dtype == WEIR_BF16) return from_bf16((uint16_t)bits);
    if (of->desc.dtype == WEIR_S8) return (int8_t)bits;
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static void check(kernels *all, const work *w) {
    const int64_t count = count_of(&w->out);
    for (int i = 0; i < SAMPLES; i++) {
        /* The first, the last, and some between. */
        const int64_t at = i == 0 ? 0 : i == 1 ? count - 1 : (int64_t)(mixed((uint32_t)i) % (uint64_t)count);
        double margin = 0, want = w->expected(w, at, &margin);
        const double got = result(all, &w->out, at);
        if (w->out.desc.dtype == WEIR_S8) {
            want = fmin(fmax(want, -128), 127);
            margin += 0.5;
        } else {
            margin += fabs(want) * (w->out.desc.dtype == WEIR_BF16 ? 0x1p-8 : 0x1p-23) + 1e-30;
        }
        /* So that a NaN is wrong, too. */
        if (fabs(got - want) <= margin) {
            if (count == 1) return;
            continue;
        }
        printf("WRONG: %s: element %lld is %.9g, expected %.9g within %.2g\n", w->name, (long long)at, got, want, margin);
        wrong = 1;
        return;
    }
}

static void row(kernels *all, const work *w, double ns) {
    double bytes = (double)count_of(&w->out) * (double)bytes_of(w->out.desc.dtype);
    for (int i = 0; i < w->inputs; i++) bytes += (double)count_of(&w->in[i]) * (double)bytes_of(w->in[i].desc.dtype);
    const weir_dtype type = w->in[0].desc.dtype;
    const double tensor_peak = type == WEIR_BF16 ? all->bf16_peak : type == WEIR_S8 ? all->s8_peak : 0;
    const double peak = w->operations == 0 ? all->memory_peak : tensor_peak > 0 ? tensor_peak : all->f32_peak;
    const double rate = (w->operations > 0 ? w->operations : bytes) / ns * 1e9;
    char of_peak[16] = "";
    if (peak > 0) snprintf(of_peak, sizeof of_peak, "%.1f %%", 100 * rate / peak);
    if (w->operations == 0) printf("| %s | %.2f | %.0f GB/s | %s |\n", w->name, ns / 1e3, rate / 1e9, of_peak);
    else printf("| %s | %.2f | %.2f %s | %s |\n", w->name, ns / 1e3, rate / 1e12, type == WEIR_S8 ? "TOP/s" : "TFLOP/s", of_peak);
    fflush(stdout);
}

/* Measures and checks a call, and gives its kernel back. `made`: what came of making it. */
static void measure(kernels *all, work *w, weir_status made) {
    double took[MOST_BATCHES];
    size_t used = 0;
    int is_placed = 1, i;
    if (!does(w, made)) return;
    if (now_ns() - all->begun > MOST_NS) {
        printf("| %s | left out: no time left | | |\n", w->name);
        weir_kernel_release(w->kernel);
        return;
    }
    for (i = 0; i < w->inputs && is_placed; i++) is_placed = place(all, &w->in[i], &used);
    is_placed = is_placed && place(all, &w->out, &used);
    if (!is_placed) {
        printf("| %s | left out: the device has too little memory | | |\n", w->name);
    } else {
        for (i = 0; i < w->inputs; i++) fill(all, &w->in[i]);
        /* What is not written is no number. */
        const size_t bytes = (size_t)count_of(&w->out) * bytes_of(w->out.desc.dtype);
        RAW(cuMemsetD32Async(w->out.at, 0xffffffff, (bytes + 3) / 4, all->raw_stream));
        RAW(cuStreamSynchronize(all->raw_stream));
        if (does(w, call(all, w))) {
            OK(weir_stream_synchronize(all->stream, WEIR_TIMEOUT_INFINITE));
            /* Batches of about 10 ms; more calls than a queue takes would wait for it. */
            const double once = calls_ns(all, w, 1), fitting = 1e7 / once;
            const int calls = quick ? 1 : fitting < 1 ? 1 : fitting > 200 ? 200 : (int)fitting;
            const int batches = quick ? 1 : once > 5e7 ? 3 : MOST_BATCHES;
            for (i = 0; i < batches; i++) took[i] = calls_ns(all, w, calls) / calls;
            row(all, w, median(took, batches));
            check(all, w);
        }
    }
    for (i = 0; i < w->inputs; i++) weir_tensor_release(w->in[i].tensor);
    weir_tensor_release(w->out.tensor);
    weir_kernel_release(w->kernel);
}

/* ---- What is measured ------------------------------------------------------------------------------- */

static const char *shape(const operand *of, char *text, size_t room) {
    size_t length = (size_t)snprintf(text, room, "%s[", of->desc.dtype == WEIR_BF16 ? "bf16" : of->desc.dtype == WEIR_S8 ? "s8" : "f32");
    for (uint32_t i = 0; i < of->desc.rank; i++) {
        length += (size_t)snprintf(text + length, room - length, i > 0 ? ",%lld" : "%lld", (long long)of->desc.dims[i]);
    }
    snprintf(text + length, room - length, "]");
    return text;
}

static operand vector(weir_dtype type, int64_t count) {
    return (operand){.desc = {type, 1, {count}}};
}

static operand matrix(weir_dtype type, int64_t rows, int64_t columns) {
    return (operand){.desc = {type, 2, {rows, columns}}};
}

/* "<what> <shape of the first input>" */
static void name(work *w, const char *what) {
    char text[64];
    snprintf(w->name, sizeof w->name, "%s %s", what, shape(&w->in[0], text, sizeof text));
}

static void elements(kernels *all, int64_t count) {
    static const weir_dtype types[] = {WEIR_F32, WEIR_BF16};
    weir_status made;
    work copy = {.in = {vector(WEIR_F32, count)}, .out = vector(WEIR_F32, count), .inputs = 1, .expected = expected_copy};
    name(&copy, "copy");
    measure(all, &copy, WEIR_OK);
    for (int t = 0; t < 2; t++) {
        const operand x = vector(types[t], count);
        const weir_binary_desc sum = {.struct_size = sizeof sum, .op = WEIR_BINARY_ADD};
        work w = {.in = {x, x}, .out = x, .inputs = 2, .expected = expected_sum};
        name(&w, "add");
        made = weir_kernel_create_binary(all->engine, &sum, NULL, &w.kernel);
        measure(all, &w, made);
    }
    for (int t = 0; t < 2; t++) {
        const operand x = vector(types[t], count);
        const weir_eltwise_desc desc = {.struct_size = sizeof desc, .op = WEIR_ELTWISE_GELU_ERF};
        work w = {.in = {x}, .out = x, .inputs = 1, .expected = expected_gelu};
        name(&w, "gelu");
        made = weir_kernel_create_eltwise(all->engine, &desc, NULL, &w.kernel);
        measure(all, &w, made);
    }
}

static void rows(kernels *all, int64_t size, int64_t many) {
    static const weir_dtype types[] = {WEIR_F32, WEIR_BF16};
    weir_status made;
    for (int t = 0; t < 2; t++) {
        const operand x = matrix(types[t], size, size);
        const weir_softmax_desc desc = {.struct_size = sizeof desc, .axis = -1};
        work w = {.in = {x}, .out = x, .inputs = 1, .expected = expected_softmax};
        name(&w, "softmax");
        made = weir_kernel_create_softmax(all->engine, &desc, NULL, &w.kernel);
        measure(all, &w, made);
    }
    for (int t = 0; t < 2; t++) {
        const operand x = matrix(types[t], size, size), of_row = vector(types[t], size);
        const weir_norm_desc desc = {.struct_size = sizeof desc,
                                     .flags = WEIR_NORM_SCALE | WEIR_NORM_SHIFT,
                                     .op = WEIR_NORM_LAYER,
                                     .axis = -1,
                                     .epsilon = EPSILON};
        work w = {.in = {x, of_row, of_row}, .out = x, .inputs = 3, .expected = expected_norm};
        name(&w, "layer norm");
        made = weir_kernel_create_norm(all->engine, &desc, NULL, &w.kernel);
        measure(all, &w, made);
    }
    const weir_reduce_desc of_all = {.struct_size = sizeof of_all, .op = WEIR_REDUCE_SUM};
    const weir_reduce_desc of_rows = {.struct_size = sizeof of_rows, .op = WEIR_REDUCE_SUM, .num_axes = 1, .axes = {-1}};
    work one = {.in = {vector(WEIR_F32, many)}, .out = {.desc = {WEIR_F32, 0, {0}}}, .inputs = 1, .expected = expected_reduce};
    name(&one, "sum of all");
    made = weir_kernel_create_reduce(all->engine, &of_all, NULL, &one.kernel);
    measure(all, &one, made);
    work each = {.in = {matrix(WEIR_F32, size, size)}, .out = vector(WEIR_F32, size), .inputs = 1, .expected = expected_reduce};
    name(&each, "sum of rows");
    made = weir_kernel_create_reduce(all->engine, &of_rows, NULL, &each.kernel);
    measure(all, &each, made);
}

/* The name and the rest of a product of A and B, of any leading dimensions. */
static void product(work *w, const char *what) {
    char a[64], b[64];
    if (w->operations < 0) w->operations = 2.0 * (double)count_of(&w->out) * (double)last(&w->in[0]);
    w->expected = expected_product;
    snprintf(w->name, sizeof w->name, "%s %s %s%s", what, shape(&w->in[0], a, sizeof a), shape(&w->in[1], b, sizeof b),
             w->transpose_b ? "^T" : "");
}

static void products(kernels *all) {
    weir_status made;
    /* A layer of bytes: sums, times a scale for each column. */
    static const weir_dtype results[] = {WEIR_F32, WEIR_S8};
    const int64_t m = quick ? 20 : 1024, n = quick ? 24 : 4096, k = quick ? 32 : 4096;
    for (int t = 0; t < 2; t++) {
        const weir_matmul_int8_desc desc = {.struct_size = sizeof desc,
                                            .flags = WEIR_MATMUL_INT8_TRANSPOSE_B | WEIR_MATMUL_INT8_SCALES,
                                            .dtype = results[t],
                                            .scale = 0x1p-12f};
        work w = {.in = {matrix(WEIR_S8, m, k), matrix(WEIR_S8, n, k), vector(WEIR_F32, n)},
                  .out = matrix(results[t], m, n),
                  .inputs = 3,
                  .operations = -1,
                  .transpose_b = 1,
                  .scale = 0x1p-12};
        product(&w, results[t] == WEIR_S8 ? "scaled to s8" : "scaled to f32");
        made = weir_kernel_create_matmul_int8(all->engine, &desc, NULL, &w.kernel);
        measure(all, &w, made);
    }
    /* A layer of a perceptron: product, bias and GELU in one call. */
    static const int64_t layers[][3] = {{2048, 4096, 1024}, {4096, 8192, 4096}}, small_layers[][3] = {{20, 24, 16}, {70, 66, 16}};
    for (int i = 0; i < 2; i++) {
        const int64_t *sizes = quick ? small_layers[i] : layers[i];
        const weir_matmul_desc desc = {.struct_size = sizeof desc,
                                       .flags = WEIR_MATMUL_TRANSPOSE_B | WEIR_MATMUL_BIAS,
                                       .activation = WEIR_ACTIVATION_GELU_ERF};
        work w = {.in = {matrix(WEIR_BF16, sizes[0], sizes[2]), matrix(WEIR_BF16, sizes[1], sizes[2]), vector(WEIR_BF16, sizes[1])},
                  .out = matrix(WEIR_BF16, sizes[0], sizes[1]),
                  .inputs = 3,
                  .operations = -1,
                  .transpose_b = 1,
                  .gelu = 1};
        product(&w, "linear with gelu");
        made = weir_kernel_create_matmul(all->engine, &desc, NULL, &w.kernel);
        measure(all, &w, made);
    }
    /* Attention with keys and values that a group of heads shares: scores, sums of values, and scores of one new token,
     * which are as fast as the keys are read. */
    const int64_t batch = quick ? 2 : 4, heads = quick ? 2 : 8, group = quick ? 3 : 4, length = quick ? 9 : 1024, size = quick ? 16 : 128;
    const int64_t later = quick ? 1 : 16, past = quick ? 40 : 4096;
    for (int i = 0; i < 3; i++) {
        const weir_matmul_desc desc = {.struct_size = sizeof desc, .flags = i == 1 ? 0 : WEIR_MATMUL_TRANSPOSE_B};
        const operand queries = {.desc = {WEIR_BF16, 5, {batch, heads, group, length, size}}};
        const operand keys = {.desc = {WEIR_BF16, 5, {batch, heads, 1, length, size}}};
        const operand scores = {.desc = {WEIR_BF16, 5, {batch, heads, group, length, length}}};
        const operand query = {.desc = {WEIR_BF16, 5, {later, heads, group, 1, size}}};
        const operand past_keys = {.desc = {WEIR_BF16, 5, {later, heads, 1, past, size}}};
        const operand past_scores = {.desc = {WEIR_BF16, 5, {later, heads, group, 1, past}}};
        work w = {.in = {i == 0 ? queries : i == 1 ? scores : query, i == 2 ? past_keys : keys},
                  .out = i == 0 ? scores : i == 1 ? queries : past_scores,
                  .inputs = 2,
                  .operations = i == 2 ? 0 : -1,
                  .transpose_b = i != 1};
        product(&w, "product");
        made = weir_kernel_create_matmul(all->engine, &desc, NULL, &w.kernel);
        measure(all, &w, made);
    }
}

/* The convolutions of ResNet-50 (the stride in a block's 3x3): channels, size, filters, taps, stride. */
static const int64_t windows[][5] = {
    {3, 224, 64, 7, 2},    {64, 56, 64, 1, 1},    {64, 56, 64, 3, 1},    {64, 56, 256, 1, 1},  {256, 56, 64, 1, 1},  {256, 56, 128, 1, 1},
    {128, 56, 128, 3, 2},  {256, 56, 512, 1, 2},  {128, 28, 512, 1, 1},  {512, 28, 128, 1, 1}, {128, 28, 128, 3, 1}, {512, 28, 256, 1, 1},
    {256, 28, 256, 3, 2},  {512, 28, 1024, 1, 2}, {256, 14, 1024, 1, 1}, {1024, 14, 256, 1, 1}, {256, 14, 256, 3, 1}, {1024, 14, 512, 1, 1},
    {512, 14, 512, 3, 2},  {1024, 14, 2048, 1, 2}, {512, 7, 2048, 1, 1}, {2048, 7, 512, 1, 1}, {512, 7, 512, 3, 1},
};
static const int64_t small_windows[][5] = {{3, 11, 9, 7, 2}, {8, 6, 40, 1, 1}, {4, 7, 10, 3, 1}, {4, 7, 12, 3, 2}, {8, 7, 9, 1, 2}};

static void convolutions(kernels *all, int64_t images) {
    const size_t count = quick ? sizeof small_windows / sizeof *small_windows : sizeof windows / sizeof *windows;
    for (size_t i = 0; i < count; i++) {
        const int64_t *of = quick ? small_windows[i] : windows[i];
        const int64_t channels = of[0], size = of[1], filters = of[2], taps = of[3], stride = of[4], padding = taps / 2;
        const int64_t after = (size + 2 * padding - taps) / stride + 1;
        const weir_conv_desc desc = {.struct_size = sizeof desc,
                                     .strides = {stride, stride},
                                     .padding_begin = {padding, padding},
                                     .padding_end = {padding, padding}};
        work w = {.in = {{.desc = {WEIR_F32, 4, {images, channels, size, size}}}, {.desc = {WEIR_F32, 4, {filters, channels, taps, taps}}}},
                  .out = {.desc = {WEIR_F32, 4, {images, filters, after, after}}},
                  .inputs = 2,
                  .operations = 2.0 * (double)(images * filters * after * after) * (double)(channels * taps * taps),
                  .expected = expected_conv,
                  .stride = stride,
                  .padding = padding};
        char x[48], weights[48];
        snprintf(w.name, sizeof w.name, "conv %s %s stride %lld", shape(&w.in[0], x, sizeof x), shape(&w.in[1], weights, sizeof weights),
                 (long long)stride);
        const weir_status made = weir_kernel_create_conv(all->engine, &desc, NULL, &w.kernel);
        measure(all, &w, made);
    }
}

/* ---- What the device can do -------------------------------------------------------------------------- */

/* Operations of tensor cores in a multiprocessor and a cycle, dense; 0 where they are not known, or not the same for all
 * devices of that capability. */
static int tensor_rate(const raw_device *device, weir_dtype type) {
    static const struct {
        int capability, bf16;
    } known[] = {{80, 2048}, {90, 4096}, {100, 8192}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].capability == 10 * device->major + device->minor) return type == WEIR_S8 ? 2 * known[i].bf16 : known[i].bf16;
    }
    return 0;
}

/* Bytes in a second that a copy by the driver reads and writes. */
static double copied_peak(kernels *all) {
    double took[5];
    const size_t bytes = all->memory_bytes / 2 & ~(size_t)511;
    for (int i = 0; i < 5; i++) {
        const double start = now_ns();
        RAW(cuMemcpyDtoDAsync_v2(all->memory + bytes, all->memory, bytes, all->raw_stream));
        RAW(cuStreamSynchronize(all->raw_stream));
        took[i] = now_ns() - start;
    }
    return 2 * (double)bytes / median(took, 5) * 1e9;
}

static void find_peaks(kernels *all, const raw_device *device) {
    int memory_khz = 0, bus_bits = 0;
    const int capability = 10 * device->major + device->minor, lanes = capability <= 80 ? 64 : 128;
    const double cycles = 1e3 * device->clock_khz * device->sms;
    if (raw.cuDeviceGetAttribute(&memory_khz, RAW_MEMORY_KHZ, device->device) != 0) memory_khz = 0;
    if (raw.cuDeviceGetAttribute(&bus_bits, RAW_BUS_BITS, device->device) != 0) bus_bits = 0;
    all->memory_peak = 2e3 * memory_khz * bus_bits / 8;
    const int is_copied = all->memory_peak == 0;
    if (is_copied) all->memory_peak = copied_peak(all);
    all->f32_peak = cycles * 2 * lanes;
    all->bf16_peak = cycles * tensor_rate(device, WEIR_BF16);
    all->s8_peak = cycles * tensor_rate(device, WEIR_S8);
    printf("\nPeaks, at the clocks that the driver names: memory %.0f GB/s%s, f32 %.1f TFLOP/s (%d lanes in a multiprocessor)",
           all->memory_peak / 1e9, is_copied ? " (it names none: what a copy of the driver's reads and writes)" : "",
           all->f32_peak / 1e12, lanes);
    if (all->bf16_peak > 0) {
        printf(", tensor cores %.0f TFLOP/s in bf16 and %.0f TOP/s in s8, dense.\n", all->bf16_peak / 1e12, all->s8_peak / 1e12);
    } else {
        printf(". Rows in bf16 and s8 are compared with the peak of f32, too: the rate of the tensor cores is not known.\n");
    }
    printf("Bytes are those that must be read and written once. Calls are issued one behind the other on the same tensors: what\n"
           "fits into a cache may stay there, and a call cannot take less time than the host needs to issue it.\n\n");
}

void bench_kernels(raw_device *device) {
    kernels all = {.raw_stream = raw_stream(), .engine = cuda_engine(1)};
    void *module = NULL;
    int code = 0;
    size_t left = 0, whole = 0;
    all.stream = cuda_stream(all.engine);
    all.draw = raw_kernel(PTX_DRAW, "draw", &module, &code);
    if (all.draw == NULL) {
        printf("WRONG: the kernel that draws numbers: %s\n", raw_error(code));
        wrong = 1;
        return;
    }
    /* Numbers to be summed up; three tensors of elements have three quarters of that. */
    int64_t many = quick ? 1 << 14 : 1 << 28;
    RAW(cuMemGetInfo_v2(&left, &whole));
    while (4 * (size_t)many > left / 2) many /= 2;
    all.memory_bytes = 4 * (size_t)many + (1 << 20);
    all.memory = raw_memory(all.memory_bytes);
    printf("\n## Kernels one by one, random numbers\n");
    find_peaks(&all, device);
    printf("| kernel | us | rate | of the peak |\n|---|---|---|---|\n");
    all.begun = now_ns();
    const int64_t size = quick ? 40 : 4096;
    elements(&all, many / 4);
    rows(&all, size, many);
    products(&all);
    convolutions(&all, quick ? 2 : 1);
    if (!quick) convolutions(&all, 32);
    printf("\n%.1f s.\n", (now_ns() - all.begun) / 1e9);
    RAW(cuMemFree_v2(all.memory));
    RAW(cuModuleUnload(module));
    RAW(cuStreamDestroy_v2(all.raw_stream));
    weir_stream_release(all.stream);
    weir_engine_release(all.engine);
}
