/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/trace.h>

#include "weir_check.h"

struct arguments arguments_read(int argc, char **argv) {
    struct arguments arguments = {0};
    bool variant = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "before") == 0 || strcmp(argv[i], "after") == 0) {
            variant = true;
            arguments.after = argv[i][0] == 'a';
        } else if (strcmp(argv[i], "--trace") == 0 && i + 1 < argc) {
            arguments.trace = argv[++i];
        } else {
            variant = false;
            break;
        }
    }
    if (!variant) {
        fprintf(stderr, "usage: %s before|after [--trace NAME]\n", argv[0]);
        exit(2);
    }
    return arguments;
}

weir_engine *engine_with_threads(int32_t threads, uint64_t spin_ns) {
    const weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = threads, .spin_ns = spin_ns};
    weir_threadpool *pool;
    weir_engine_attr *attr;
    weir_engine *engine;
    CHECK(weir_threadpool_create_builtin(&options, &pool));
    CHECK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK(weir_engine_attr_set_threadpool(attr, pool));
    CHECK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    weir_threadpool_release(pool); /* the engine holds it now */
    return engine;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

weir_tensor *tensor_over(weir_engine *engine, const weir_tensor_desc *desc, void *data) {
    const weir_memory mine = {.struct_size = sizeof mine, .data = data};
    weir_tensor *tensor;
    CHECK(weir_tensor_create(engine, desc, &mine, &tensor));
    return tensor;
}

/* The median time of a run, in microseconds. */
static double run_all(weir_program *program, weir_tensor *const *inputs, size_t num_inputs, weir_tensor *output,
                      int runs, void (*between)(void)) {
    double *us = calloc((size_t)runs, sizeof *us);
    if (us == NULL) abort();
    for (int i = 0; i < runs; i++) {
        const uint64_t begin = now_ns();
        CHECK(weir_program_run(program, NULL, inputs, num_inputs, &output, 1, NULL));
        us[i] = (double)(now_ns() - begin) / 1000;
        if (between != NULL) between();
    }
    qsort(us, (size_t)runs, sizeof us[0], by_size);
    const double median = us[runs / 2];
    free(us);
    return median;
}

static void save(weir_trace *trace, const char *name, const char *ending, weir_trace_format format) {
    char path[1024];
    snprintf(path, sizeof path, "%s.%s", name, ending);
    CHECK(weir_trace_save(trace, path, format));
    printf("  the trace is in %s\n", path);
}

void runs_measure(const struct arguments *arguments, weir_program *program, weir_tensor *const *inputs,
                  size_t num_inputs, weir_tensor *output, int runs, void (*between)(void)) {
    run_all(program, inputs, num_inputs, output, runs / 4, between); /* meanwhile weir learns what the nodes cost */
    const double us = run_all(program, inputs, num_inputs, output, runs, between);
    printf("%-6s %8.1f us, the median of %d runs\n", arguments->after ? "after" : "before", us, runs);
    if (arguments->trace == NULL) return;
    weir_trace *trace;
    CHECK(weir_trace_start(NULL, &trace));
    run_all(program, inputs, num_inputs, output, runs, between);
    CHECK(weir_trace_stop(trace));
    save(trace, arguments->trace, "txt", WEIR_TRACE_REPORT);
    save(trace, arguments->trace, "html", WEIR_TRACE_HTML);
    weir_trace_release(trace);
}
