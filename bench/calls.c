/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a call costs besides its arithmetic: an empty kernel of the host's, and relu of a few numbers beside a loop in C,
 * each by weir_enqueue and as a prepared call, on a synchronous stream without a pool. In turn, in one process;
 * nanoseconds, the median of several rounds of many calls:
 *
 *     cc -O3 -march=native -Iinclude bench/calls.c -o calls -L<dir> -lweir && LD_LIBRARY_PATH=<dir> ./calls
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "weir.h"
#include "weir/ops.h"

enum { ROUNDS = 201, CALLS = 2000, MOST = 4096 };

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        if ((call) != WEIR_OK) {                                                                                       \
            fprintf(stderr, "%s: %s\n", #call, weir_last_error_message());                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static float x[MOST], y[MOST];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}

/* The same through a pointer that the compiler knows nothing of. */
static void loop(int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0;
}
static void nothing(int64_t n) {
    (void)n;
}

static int32_t empty(void *user, weir_kernel_context *context) {
    (void)user, (void)context;
    return WEIR_OK;
}

/* One row: `arithmetic` in C, the kernel by weir_enqueue, and prepared. */
static void row(const char *name, weir_engine *engine, weir_stream *stream, weir_kernel *kernel, int64_t n,
                void (*volatile arithmetic)(int64_t)) {
    const weir_tensor_desc desc = {.dtype = WEIR_F32, .rank = 1, .dims = {n}};
    const weir_memory from = {.struct_size = sizeof from, .data = x}, to = {.struct_size = sizeof to, .data = y};
    static double bare[ROUNDS], enqueued[ROUNDS], prepared[ROUNDS];
    weir_tensor *in, *out;
    weir_call *call;
    OK(weir_tensor_create(engine, &desc, &from, &in));
    OK(weir_tensor_create(engine, &desc, &to, &out));
    OK(weir_call_create(stream, kernel, &in, 1, &out, 1, &call));
    for (int round = 0; round < ROUNDS; round++) {
        double began = now();
        for (int i = 0; i < CALLS; i++) arithmetic(n);
        bare[round] = (now() - began) / CALLS;
        began = now();
        for (int i = 0; i < CALLS; i++) OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
        enqueued[round] = (now() - began) / CALLS;
        began = now();
        for (int i = 0; i < CALLS; i++) OK(weir_call_enqueue(call));
        prepared[round] = (now() - began) / CALLS;
    }
    const double loop_ns = median(bare), enqueue_ns = median(enqueued), call_ns = median(prepared);
    printf("| %s | %lld | %.1f | %.1f | %.1f | %.1f |\n", name, (long long)n, loop_ns, enqueue_ns, call_ns,
           call_ns - loop_ns);
    weir_call_release(call);
    weir_tensor_release(in);
    weir_tensor_release(out);
}

int main(void) {
    const weir_eltwise_desc rectifier = {.struct_size = sizeof rectifier, .op = WEIR_ELTWISE_RELU};
    const weir_tensor_desc any = {.dtype = WEIR_F32, .rank = 1, .dims = {16}};
    const weir_host_kernel_desc nothing_desc = {.struct_size = sizeof nothing_desc, .name = "empty", .compute = empty,
                                                .num_inputs = 1, .inputs = &any, .num_outputs = 1, .outputs = &any};
    weir_engine *engine;
    weir_stream *stream;
    weir_kernel *relu, *none;
    for (int i = 0; i < MOST; i++) x[i] = (float)(i % 7 - 3);
    OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    OK(weir_stream_create(engine, WEIR_STREAM_DEFAULT, NULL, &stream));
    OK(weir_kernel_create_eltwise(engine, &rectifier, NULL, &relu));
    OK(weir_kernel_create_host(engine, &nothing_desc, &none));
    printf("| kernel | numbers | in C | weir_enqueue | prepared | besides C |\n|---|--:|--:|--:|--:|--:|\n");
    row("empty", engine, stream, none, 16, nothing);
    for (int64_t n = 16; n <= MOST; n *= 4) row("relu", engine, stream, relu, n, loop);
    weir_kernel_release(relu);
    weir_kernel_release(none);
    weir_stream_release(stream);
    weir_engine_release(engine);
    return 0;
}
