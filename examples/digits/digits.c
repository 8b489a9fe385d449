/* Reads 500 handwritten digits with a small neural network, on threads that belong to this program.
 *
 *     digits [--trace NAME] [folder with digits.bin and weights.bin]
 *
 * The network is a weir graph (network.c). All its work runs on the pool of pool.c, which weir sees through a vtable;
 * batches of 50 digits are queued on an asynchronous stream. Ends with status 1 if fewer than 97.5 % are read right, if
 * weir has started a thread of its own, or if any run after the first has allocated memory. With --trace a few more
 * passes are recorded, in NAME.html and NAME.perfetto.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <inttypes.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir.h>
#include <weir/inspect.h>

#include "weir_check.h"
#include "count_allocations.h"
#include "dataset.h"
#include "network.h"
#include "pool.h"
#include "report.h"
#include "tracing.h"

#ifndef DIGITS_DATA_DIR
#define DIGITS_DATA_DIR "."
#endif

enum { BATCH = 50, MAX_BATCHES = 64, PASSES = 200, TRACED_PASSES = 5, MAX_THREADS = 8 };

static const double GOAL = 97.5; /* per cent */

/* What one run needs: tensors over its rows of the arrays in struct demo. */
struct batch {
    weir_tensor *input;
    weir_tensor *outputs[NETWORK_OUTPUTS];
};

struct demo {
    struct dataset data;
    struct pool *pool;
    int32_t threads;
    weir_threadpool *weir_pool;
    weir_engine *engine;
    weir_stream *stream;
    weir_program *program;
    uint32_t num_batches;
    struct batch batches[MAX_BATCHES];
    float *logits;        /* [count][DIGITS_CLASSES] */
    float *probabilities; /* [count][DIGITS_CLASSES] */
    int32_t *classes;     /* [count] */
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static weir_runtime_info runtime_info(void) {
    weir_runtime_info info = {.struct_size = sizeof info};
    CHECK(weir_runtime_get_info(&info));
    return info;
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

/* An engine that works on this program's pool, and a stream that takes work and returns at once. */
static void open_engine(struct demo *demo) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    demo->threads = processors < 1 ? 1 : processors > MAX_THREADS ? MAX_THREADS : (int32_t)processors;
    demo->pool = pool_create(demo->threads);
    if (demo->pool == NULL) {
        fprintf(stderr, "cannot start %" PRId32 " threads\n", demo->threads);
        exit(1);
    }
    CHECK(pool_to_weir(demo->pool, POOL_BOTH, &demo->weir_pool));

    weir_engine_attr *attr;
    CHECK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK(weir_engine_attr_set_threadpool(attr, demo->weir_pool));
    CHECK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &demo->engine));
    weir_engine_attr_destroy(attr);
    CHECK(weir_stream_create(demo->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &demo->stream));
}

static weir_tensor *tensor_over(struct demo *demo, weir_tensor_desc desc, void *data) {
    weir_tensor *tensor;
    CHECK(weir_tensor_create(demo->engine, &desc, &(weir_memory){.struct_size = sizeof(weir_memory), .data = data}, &tensor));
    return tensor;
}

/* All tensors are made once, over the arrays; the runs only use them. */
static void make_batches(struct demo *demo) {
    const weir_tensor_desc scans = {WEIR_F32, 2, {BATCH, DIGITS_PIXELS}};
    const uint32_t count = demo->data.count;
    demo->num_batches = count / BATCH;
    if (count == 0 || count % BATCH != 0 || demo->num_batches > MAX_BATCHES) {
        fprintf(stderr, "%" PRIu32 " scans do not make up to %d batches of %d\n", count, MAX_BATCHES, BATCH);
        exit(1);
    }
    demo->logits = allocate((size_t)count * DIGITS_CLASSES, sizeof *demo->logits);
    demo->probabilities = allocate((size_t)count * DIGITS_CLASSES, sizeof *demo->probabilities);
    demo->classes = allocate(count, sizeof *demo->classes);
    for (uint32_t b = 0; b < demo->num_batches; b++) {
        struct batch *batch = &demo->batches[b];
        const size_t row = (size_t)b * BATCH;
        void *outputs[NETWORK_OUTPUTS] = {
            [NETWORK_LOGITS] = demo->logits + row * DIGITS_CLASSES,
            [NETWORK_PROBABILITIES] = demo->probabilities + row * DIGITS_CLASSES,
            [NETWORK_CLASSES] = demo->classes + row,
        };
        batch->input = tensor_over(demo, scans, demo->data.pixels + row * DIGITS_PIXELS);
        for (int o = 0; o < NETWORK_OUTPUTS; o++) {
            batch->outputs[o] = tensor_over(demo, network_output_desc(o, BATCH), outputs[o]);
        }
    }
}

static void queue_run(struct demo *demo, uint32_t b) {
    struct batch *batch = &demo->batches[b];
    CHECK(weir_program_run(demo->program, demo->stream, &batch->input, 1, batch->outputs, NETWORK_OUTPUTS, NULL));
}

static void queue_all(struct demo *demo) {
    for (uint32_t b = 0; b < demo->num_batches; b++) {
        queue_run(demo, b);
    }
}

/* The first run, which may allocate. */
static void run_once(struct demo *demo) {
    queue_run(demo, 0);
    CHECK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
}

/* Times all further runs, and counts what is allocated meanwhile. */
static struct timing read_again_and_again(struct demo *demo) {
    struct timing timing = {0};
    uint64_t weir_before = runtime_info().allocations;
    uint64_t process_before = allocations_so_far();
    for (int pass = 0; pass < PASSES; pass++) {
        double begin = now_s();
        queue_all(demo);
        double queued = now_s();
        CHECK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL)); /* without it the clock would stop while the stream still works */
        double done = now_s();
        timing.queued_s += queued - begin;
        timing.done_s += done - begin;
    }
    timing.process_allocations = allocations_so_far() - process_before;
    timing.weir_allocations = runtime_info().allocations - weir_before;
    timing.pool_calls = pool_calls(demo->pool);
    timing.threads_started = runtime_info().threads_started;
    timing.runs = (uint64_t)PASSES * demo->num_batches;
    timing.images = (uint64_t)PASSES * demo->data.count;
    return timing;
}

/* Some more passes, recorded. */
static int trace_some(struct demo *demo, const char *name) {
    weir_trace *trace = tracing_start();
    for (int pass = 0; pass < TRACED_PASSES; pass++) {
        queue_all(demo);
        CHECK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    }
    return tracing_save(trace, name);
}

/* The promises of the head of this file, as an exit status. */
static int verdict(const struct reading *reading, const struct timing *timing) {
    const double accuracy = 100.0 * reading_count_right(reading) / reading->data->count;
    int status = 0;
    fflush(stdout);
    if (accuracy < GOAL) {
        fprintf(stderr, "FAILED: %.1f %% read right, the goal is %.1f %%\n", accuracy, GOAL);
        status = 1;
    }
    if (timing->threads_started != 0) {
        fprintf(stderr, "FAILED: weir has started %" PRIu64 " threads\n", timing->threads_started);
        status = 1;
    }
    if (timing->weir_allocations != 0 || timing->process_allocations != 0) {
        fprintf(stderr, "FAILED: %" PRIu64 " allocations by weir, %" PRIu64 " in all, in %" PRIu64 " later runs\n",
                timing->weir_allocations, timing->process_allocations, timing->runs);
        status = 1;
    }
    return status;
}

static void close_demo(struct demo *demo) {
    for (uint32_t b = 0; b < demo->num_batches; b++) {
        weir_tensor_release(demo->batches[b].input);
        for (int o = 0; o < NETWORK_OUTPUTS; o++) {
            weir_tensor_release(demo->batches[b].outputs[o]);
        }
    }
    weir_program_release(demo->program);
    weir_stream_release(demo->stream);
    weir_engine_release(demo->engine);
    weir_threadpool_release(demo->weir_pool);
    pool_destroy(demo->pool);
    free(demo->classes);
    free(demo->probabilities);
    free(demo->logits);
    dataset_free(&demo->data);
}

int main(int argc, char **argv) {
    static struct demo demo;
    const char *folder = DIGITS_DATA_DIR, *trace = NULL;
    setlocale(LC_CTYPE, "");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0 && i + 1 < argc) {
            trace = argv[++i];
        } else if (argv[i][0] != '-') {
            folder = argv[i];
        } else {
            fprintf(stderr, "usage: %s [--trace NAME] [folder with digits.bin and weights.bin]\n", argv[0]);
            return 2;
        }
    }
    if (dataset_load(&demo.data, folder) != 0) {
        return 1;
    }
    open_engine(&demo);
    demo.program = network_compile(&demo.data, demo.engine, BATCH, NULL);
    make_batches(&demo);

    run_once(&demo);
    const struct timing timing = read_again_and_again(&demo);
    const struct reading reading = {&demo.data, demo.probabilities, demo.classes};
    printf("\n  weir %s: %" PRIu32 " handwritten digits, read on the %" PRId32 " threads of this program's pool\n",
           weir_version_string(), demo.data.count, demo.threads);
    report_reading(&reading);
    report_numbers(&reading, &timing);
    int status = verdict(&reading, &timing);
    if (trace != NULL) {
        status |= trace_some(&demo, trace);
    }
    close_demo(&demo);
    return status;
}
