/* Matrix products: weir's kernels against cuBLASLt, called directly with the same numbers in the same process.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <dlfcn.h>
#include <math.h>
#include <string.h>
#include <weir/ops.h>
#include <weir/cuda.h>

#include "bench.h"
#include "weir_side.h"

/* cudaDataType_t, cublasComputeType_t, and attributes. */
enum { LT_F32 = 0, LT_S8 = 3, LT_S32 = 10, LT_BF16 = 14 };
enum { LT_COMPUTE_F32 = 68, LT_COMPUTE_S32 = 72, LT_COMPUTE_TF32 = 77 };
enum { LT_TRANSPOSE_A = 3, LT_BATCH = 5, LT_STRIDE = 6, LT_WORKSPACE = 1, LT_REDUCTIONS = 3, LT_COMPUTE_TYPE = 2, LT_ALIGNMENT_A = 5, LT_ALIGNMENT_D = 8 };

typedef struct lt_proposal {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} lt_proposal;

#define LT_FUNCTIONS(X) \
    X(cublasLtCreate, (void **)) \
    X(cublasLtDestroy, (void *)) \
    X(cublasLtMatmulDescCreate, (void **, int, int)) \
    X(cublasLtMatmulDescDestroy, (void *)) \
    X(cublasLtMatmulDescSetAttribute, (void *, int, const void *, size_t)) \
    X(cublasLtMatrixLayoutCreate, (void **, int, uint64_t, uint64_t, int64_t)) \
    X(cublasLtMatrixLayoutDestroy, (void *)) \
    X(cublasLtMatrixLayoutSetAttribute, (void *, int, const void *, size_t)) \
    X(cublasLtMatmulPreferenceCreate, (void **)) \
    X(cublasLtMatmulPreferenceDestroy, (void *)) \
    X(cublasLtMatmulPreferenceSetAttribute, (void *, int, const void *, size_t)) \
    X(cublasLtMatmulAlgoGetHeuristic, (void *, void *, void *, void *, void *, void *, void *, int, lt_proposal *, int *)) \
    X(cublasLtMatmul, (void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *, void *, \
                       void *, void *, const uint64_t *, void *, size_t, void *))

static struct {
#define LT_MEMBER(name, args) int(*name) args;
    LT_FUNCTIONS(LT_MEMBER)
#undef LT_MEMBER
} lt;

#define LT(call) \
    do { \
        const int lt_status_ = lt.call; \
        if (lt_status_ != 0) { \
            fprintf(stderr, "%s:%d: %s gives cuBLAS status %d\n", __FILE__, __LINE__, #call, lt_status_); \
            exit(1); \
        } \
    } while (0)

static int lt_open(void) {
    static const char *const names[] = {"libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12"};
    void *library = NULL;
    for (int i = 0; i < 3 && library == NULL; i++) library = dlopen(names[i], RTLD_NOW);
    if (library == NULL) {
        printf("SKIPPED: products, there is no libcublasLt (its folder has to be in LD_LIBRARY_PATH)\n");
        return 0;
    }
#define RESOLVE(name, args) \
    do { \
        void *found = dlsym(library, #name); \
        if (found == NULL) { \
            fprintf(stderr, "libcublasLt has no " #name "\n"); \
            exit(1); \
        } \
        memcpy(&lt.name, &found, sizeof found); \
    } while (0);
    LT_FUNCTIONS(RESOLVE)
#undef RESOLVE
    return 1;
}

typedef struct product {
    const char *name;
    weir_dtype factors, result;
    int lt_factors, lt_result, lt_compute;
    uint64_t flags;
} product;

typedef struct products {
    void *handle, *raw_stream;
    weir_engine *engine, *cpu;
    weir_stream *stream;
    raw_pointer workspace;
    size_t workspace_bytes;
    /* The one that is measured. */
    void *operation, *factor, *result;
    lt_proposal proposal;
    int is_whole, calls, rows, rows_of_same_bits;
    weir_kernel *kernel;
    weir_tensor *a, *b, *c;
    raw_pointer raw_a, raw_b, raw_c;
} products;

static uint32_t draw(void) {
    static uint64_t state = 0x9e3779b97f4a7c15u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

/* The same random numbers on the device for both sides: zeros would be faster. */
static weir_tensor *matrices(products *all, weir_dtype type, int64_t batch, int64_t n, raw_pointer *raw_copy) {
    const weir_tensor_desc many = {type, 3, {batch, n, n}}, one = {type, 2, {n, n}}, desc = batch > 1 ? many : one;
    const size_t count = (size_t)(batch * n * n), bytes = type == WEIR_F32 || type == WEIR_S32 ? 4 : type == WEIR_BF16 ? 2 : 1;
    weir_tensor *tensor = NULL, *from = NULL;
    char *data = malloc(count * bytes);
    if (data == NULL) {
        fprintf(stderr, "no memory for %zu numbers\n", count);
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        const float x = (float)(int32_t)draw() / 2147483648.0f;
        uint32_t bits;
        memcpy(&bits, &x, 4);
        if (bytes == 4) memcpy(data + 4 * i, &bits, 4);
        const uint16_t half = (uint16_t)(bits >> 16);
        if (bytes == 2) memcpy(data + 2 * i, &half, 2);
        if (bytes == 1) data[i] = (char)(bits >> 3);
    }
    OK(weir_tensor_create(all->engine, &desc, NULL, &tensor));
    OK(weir_tensor_create(all->cpu, &desc, &(weir_memory){.struct_size = sizeof(weir_memory), .data = data}, &from));
    OK(weir_enqueue_copy(all->stream, from, tensor));
    OK(weir_stream_synchronize(all->stream, WEIR_TIMEOUT_INFINITE));
    *raw_copy = raw_memory(count * bytes);
    RAW(cuMemcpyHtoDAsync_v2(*raw_copy, data, count * bytes, all->raw_stream));
    RAW(cuStreamSynchronize(all->raw_stream));
    weir_tensor_release(from);
    free(data);
    return tensor;
}

static double raw_products(void *with) {
    products *all = with;
    const float one = 1, zero = 0;
    const int whole_one = 1, whole_zero = 0;
    const void *alpha = all->is_whole ? (const void *)&whole_one : &one, *beta = all->is_whole ? (const void *)&whole_zero : &zero;
    void *const a = (void *)(uintptr_t)all->raw_a, *const b = (void *)(uintptr_t)all->raw_b, *const c = (void *)(uintptr_t)all->raw_c;
    const double start = now_ns();
    for (int i = 0; i < all->calls; i++) {
        /* Columns are rows here: the factors change places. */
        LT(cublasLtMatmul(all->handle, all->operation, alpha, b, all->factor, a, all->factor, beta, c, all->result, c, all->result,
                          all->proposal.algorithm, (void *)(uintptr_t)all->workspace, all->workspace_bytes, all->raw_stream));
    }
    RAW(cuStreamSynchronize(all->raw_stream));
    return (now_ns() - start) / all->calls;
}

static double weir_products(void *with) {
    products *all = with;
    weir_tensor *const inputs[] = {all->a, all->b};
    const double start = now_ns();
    for (int i = 0; i < all->calls; i++) OK(weir_enqueue(all->stream, all->kernel, inputs, 2, &all->c, 1));
    OK(weir_stream_synchronize(all->stream, WEIR_TIMEOUT_INFINITE));
    return (now_ns() - start) / all->calls;
}

static weir_kernel *product_kernel(products *all, const product *of) {
    weir_kernel *kernel = NULL;
    if (of->factors == WEIR_S8) {
        const weir_matmul_int8_desc desc = {.struct_size = sizeof desc, .flags = of->flags, .dtype = WEIR_S32};
        OK(weir_kernel_create_matmul_int8(all->engine, &desc, NULL, &kernel));
    } else {
        const weir_matmul_desc desc = {.struct_size = sizeof desc, .flags = of->flags};
        OK(weir_kernel_create_matmul(all->engine, &desc, NULL, &kernel));
    }
    return kernel;
}

static void layout(void **out, int type, int64_t batch, int64_t n) {
    const int32_t count = (int32_t)batch;
    const int64_t stride = n * n;
    LT(cublasLtMatrixLayoutCreate(out, type, (uint64_t)n, (uint64_t)n, n));
    if (batch == 1) return;
    LT(cublasLtMatrixLayoutSetAttribute(*out, LT_BATCH, &count, sizeof count));
    LT(cublasLtMatrixLayoutSetAttribute(*out, LT_STRIDE, &stride, sizeof stride));
}

/* False where the library cannot do it. */
static int prepare(products *all, const product *of, int64_t batch, int64_t n) {
    const int transpose = of->factors == WEIR_S8;
    const uint32_t reductions = LT_COMPUTE_TYPE;
    const uint64_t most = all->workspace_bytes;
    void *preference = NULL;
    int found = 0;
    all->is_whole = transpose;
    LT(cublasLtMatmulDescCreate(&all->operation, of->lt_compute, transpose ? LT_S32 : LT_F32));
    LT(cublasLtMatmulDescSetAttribute(all->operation, LT_TRANSPOSE_A, &transpose, sizeof transpose));
    layout(&all->factor, of->lt_factors, batch, n);
    layout(&all->result, of->lt_result, batch, n);
    LT(cublasLtMatmulPreferenceCreate(&preference));
    LT(cublasLtMatmulPreferenceSetAttribute(preference, LT_WORKSPACE, &most, sizeof most));
    /* Sums are rounded once, as weir's are. */
    LT(cublasLtMatmulPreferenceSetAttribute(preference, LT_REDUCTIONS, &reductions, sizeof reductions));
    /* What weir says of addresses, too. */
    for (int which = LT_ALIGNMENT_A; which <= LT_ALIGNMENT_D; which++) {
        const uint32_t alignment = 64;
        LT(cublasLtMatmulPreferenceSetAttribute(preference, which, &alignment, sizeof alignment));
    }
    const int status = lt.cublasLtMatmulAlgoGetHeuristic(all->handle, all->operation, all->factor, all->factor, all->result, all->result,
                                                         preference, 1, &all->proposal, &found);
    LT(cublasLtMatmulPreferenceDestroy(preference));
    return status == 0 && found > 0;
}

static double number(weir_dtype type, const char *data, size_t at) {
    uint32_t bits = 0;
    float x;
    memcpy(&bits, data + at * (type == WEIR_BF16 ? 2 : 4), type == WEIR_BF16 ? 2 : 4);
    if (type == WEIR_S32) return (int32_t)bits;
    if (type == WEIR_BF16) bits <<= 16;
    memcpy(&x, &bits, 4);
    return x;
}

/* What both sides made of the same factors: all of it, or pieces of a large result, the first and the last among them.
 * 2: the same bits; 1: the same but for rounding, if the library took another algorithm; 0: not the same. */
static int same(products *all, const product *of, const char *what, int64_t batch, int64_t n) {
    enum { PIECE = 1 << 16, PIECES = 16 };
    static char by_hand[4 * PIECE], by_weir[4 * PIECE];
    const size_t count = (size_t)(batch * n * n), bytes = of->result == WEIR_BF16 ? 2 : 4;
    const size_t pieces = (count + PIECE - 1) / PIECE, looked_at = pieces < PIECES ? pieces : PIECES;
    /* Factors are below 1. A sum is rounded with each of n products, TF32 rounds the factors, and bf16 the result. */
    const double of_sums = of->result == WEIR_S32 ? 0 : of->flags & WEIR_MATMUL_ALLOW_TF32 ? 1e-3 * sqrt((double)n) : 2e-6 * (double)n;
    int same_bits = 1;
    for (size_t i = 0; i < looked_at; i++) {
        const size_t from = (looked_at == 1 ? 0 : i * (pieces - 1) / (looked_at - 1)) * PIECE;
        const size_t length = count - from < PIECE ? count - from : PIECE;
        RAW(cuMemcpyDtoHAsync_v2(by_hand, all->raw_c + from * bytes, length * bytes, all->raw_stream));
        RAW(cuMemcpyDtoHAsync_v2(by_weir, address_of(all->c) + from * bytes, length * bytes, all->raw_stream));
        RAW(cuStreamSynchronize(all->raw_stream));
        if (memcmp(by_hand, by_weir, length * bytes) == 0) continue;
        same_bits = 0;
        for (size_t at = 0; at < length; at++) {
            const double x = number(of->result, by_hand, at), y = number(of->result, by_weir, at);
            const double most = of_sums + (of->result == WEIR_BF16 ? 0x1p-7 * fmax(fabs(x), fabs(y)) : 0);
            /* So that a NaN is wrong, too. */
            if (fabs(x - y) <= most) continue;
            printf("WRONG: %s: element %zu is %.9g by weir and %.9g by hand, which may differ by %.2g\n", what, from + at, y, x, most);
            wrong = 1;
            return 0;
        }
    }
    return 1 + same_bits;
}

static void measure(products *all, const product *of, int64_t batch, int64_t n) {
    const double operations = 2 * (double)batch * (double)n * (double)n * (double)n;
    char what[96];
    if (batch == 1) snprintf(what, sizeof what, "%s, %lld^3 (goal: 0.99 as fast)", of->name, (long long)n);
    else snprintf(what, sizeof what, "%s, %lld x %lld^3 in one call", of->name, (long long)batch, (long long)n);
    if (prepare(all, of, batch, n)) {
        /* About 10 ms at 200 TFLOP/s; more calls than a queue takes would wait for it. */
        const double calls = 2e12 / operations;
        all->calls = quick ? 2 : calls < 3 ? 3 : calls > 200 ? 200 : (int)calls;
        all->kernel = product_kernel(all, of);
        all->a = matrices(all, of->factors, batch, n, &all->raw_a);
        all->b = matrices(all, of->factors, batch, n, &all->raw_b);
        all->c = matrices(all, of->result, batch, n, &all->raw_c);
        compare(what, raw_products, weir_products, all, 11);
        const int how = same(all, of, what, batch, n);
        all->rows++;
        all->rows_of_same_bits += how == 2;
        if (!quick && n >= 4096) {
            const double raw_ns = alone(raw_products, all, 5), weir_ns = alone(weir_products, all, 5);
            printf("<!-- %s, %lld^3: %.0f TOP/s by hand, %.0f by weir -->\n", of->name, (long long)n, operations / raw_ns / 1e3,
                   operations / weir_ns / 1e3);
        }
        weir_tensor *const used[] = {all->a, all->b, all->c};
        for (int i = 0; i < 3; i++) weir_tensor_release(used[i]);
        RAW(cuMemFree_v2(all->raw_a));
        RAW(cuMemFree_v2(all->raw_b));
        RAW(cuMemFree_v2(all->raw_c));
        weir_kernel_release(all->kernel);
    } else {
        printf("| %s | cuBLASLt does not do it | | | |\n", what);
    }
    LT(cublasLtMatrixLayoutDestroy(all->factor));
    LT(cublasLtMatrixLayoutDestroy(all->result));
    LT(cublasLtMatmulDescDestroy(all->operation));
}

void bench_products(raw_device *device) {
    static const product kinds[] = {
        {"bf16", WEIR_BF16, WEIR_BF16, LT_BF16, LT_BF16, LT_COMPUTE_F32, 0},
        {"f32", WEIR_F32, WEIR_F32, LT_F32, LT_F32, LT_COMPUTE_F32, 0},
        {"f32 with TF32 allowed", WEIR_F32, WEIR_F32, LT_F32, LT_F32, LT_COMPUTE_TF32, WEIR_MATMUL_ALLOW_TF32},
        {"s8 to s32, B transposed", WEIR_S8, WEIR_S32, LT_S8, LT_S32, LT_COMPUTE_S32, WEIR_MATMUL_INT8_TRANSPOSE_B},
    };
    if (!lt_open()) return;
    products all = {.raw_stream = raw_stream(), .engine = cuda_engine(1)};
    weir_cuda_device_info info = {.struct_size = sizeof info};
    all.stream = cuda_stream(all.engine);
    all.workspace_bytes = device->major >= 9 ? 32u << 20 : 4u << 20;
    all.workspace = raw_memory(all.workspace_bytes);
    OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &all.cpu));
    LT(cublasLtCreate(&all.handle));
    weir_kernel_release(product_kernel(&all, &kinds[0]));
    OK(weir_cuda_get_device_info(all.engine, &info));
    if (strncmp(info.products, "cuBLASLt", 8) != 0) {
        printf("weir does products itself: %s\n", info.products);
        wrong = 1;
    }
    char title[192];
    snprintf(title, sizeof title, "Matrix products, random numbers: cuBLASLt by hand, and weir (%.80s)", info.products);
    table(title);
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        for (int64_t n = quick ? 8 : 128; n <= (quick ? 16 : 8192); n *= 2) {
            measure(&all, &kinds[kind], 1, n);
        }
        if (kinds[kind].factors != WEIR_S8) measure(&all, &kinds[kind], 64, quick ? 8 : 128);
    }
    printf("\nThe same bits on both sides in %d of %d rows; the others are compared within what rounding makes.\n",
           all.rows_of_same_bits, all.rows);
    LT(cublasLtDestroy(all.handle));
    RAW(cuMemFree_v2(all.workspace));
    RAW(cuStreamDestroy_v2(all.raw_stream));
    weir_stream_release(all.stream);
    weir_engine_release(all.engine);
    weir_engine_release(all.cpu);
}
