/* Finds the speech in a sound with Silero VAD, a small neural network with a memory, on threads that belong to this
 * program.
 *
 *     voice [--svg FILE] [--trace NAME] [sound.wav | sound.raw]
 *
 * The network is a weir graph (model.c): it hears 32 ms at a time, as they would come from a microphone. The program
 * prints when somebody speaks, draws the probability, and measures: in this thread alone, and on the pool of
 * ../digits/pool.c. Ends with status 1 if weir has started a thread of its own, if any step after the first has
 * allocated memory, or if a step in this thread alone has given up the processor. With --trace the sound is heard once
 * more in both ways and recorded, in NAME.html and NAME.perfetto.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RUSAGE_THREAD */
#endif

#include <inttypes.h>
#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <weir.h>
#include <weir/inspect.h>

#include "audio.h"
#include "count_allocations.h"
#include "listener.h"
#include "model.h"
#include "picture.h"
#include "pool.h"
#include "segments.h"
#include "tracing.h"
#include "weights.h"
#include "weir_check.h"

#ifndef VOICE_DATA_DIR
#define VOICE_DATA_DIR "."
#endif

enum { STEPS = 4000, MAX_THREADS = 8 };

/* What was measured while the sound was heard again and again. */
struct timing {
    double p50_us, p99_us;
    uint64_t allocations;      /* in the process, in all steps */
    uint64_t weir_allocations; /* by weir */
    uint64_t switches;         /* times that the thread gave up the processor */
    double idle_cpu;           /* of a core, while nothing is heard: 0 to 1 */
};

static uint64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static uint64_t voluntary_switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)usage.ru_nvcsw;
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

static void hear_all(struct listener *listener, const struct audio *audio, float *probabilities, size_t frames) {
    listener_reset(listener);
    for (size_t i = 0; i < frames; i++) {
        probabilities[i] = listener_hear(listener, audio->samples + i * (size_t)listener_frame(listener));
    }
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double cpu_while_idle(void) {
    const struct timespec pause = {.tv_nsec = 200000000};
    const uint64_t begin = clock_ns(CLOCK_MONOTONIC), used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    nanosleep(&pause, NULL);
    return (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used) / (double)(clock_ns(CLOCK_MONOTONIC) - begin);
}

/* Hears the sound for STEPS frames. The listener has heard it before. */
static struct timing measure(struct listener *listener, const struct audio *audio, size_t frames) {
    static double times[STEPS];
    struct timing timing = {0};
    const uint64_t weir_before = runtime_info().allocations, before = allocations_so_far();
    const uint64_t switches = voluntary_switches();
    listener_reset(listener);
    for (size_t i = 0; i < STEPS; i++) {
        const float *samples = audio->samples + i % frames * (size_t)listener_frame(listener);
        const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
        listener_hear(listener, samples);
        times[i] = (double)(clock_ns(CLOCK_MONOTONIC) - begin) / 1000;
    }
    timing.switches = voluntary_switches() - switches;
    timing.allocations = allocations_so_far() - before;
    timing.weir_allocations = runtime_info().allocations - weir_before;
    timing.idle_cpu = cpu_while_idle();
    qsort(times, STEPS, sizeof times[0], by_size);
    timing.p50_us = times[STEPS / 2];
    timing.p99_us = times[STEPS * 99 / 100];
    return timing;
}

static void print_segments(const struct hearing *hearing) {
    const double rate = hearing->audio->rate;
    printf("\n");
    for (size_t i = 0; i < hearing->num_segments; i++) {
        printf("  speech from %6.2f s to %6.2f s\n", (double)hearing->segments[i].begin / rate,
               (double)hearing->segments[i].end / rate);
    }
    if (hearing->num_segments == 0) {
        printf("  no speech\n");
    }
    printf("\n");
}

static void line(const char *label, const char *format, double alone, double pooled) {
    char columns[2][24];
    snprintf(columns[0], sizeof columns[0], format, alone);
    snprintf(columns[1], sizeof columns[1], format, pooled);
    printf("  %-44s%16s%16s\n", label, columns[0], columns[1]);
}

static void print_timing(const struct timing *alone, const struct timing *pooled, int32_t threads) {
    char pool[32];
    snprintf(pool, sizeof pool, "pool of %" PRId32, threads);
    printf("\n  %-44s%16s%16s\n", "a step of 32 ms of sound", "this thread", pool);
    line("median, us", "%.1f", alone->p50_us, pooled->p50_us);
    line("99th percentile, us", "%.1f", alone->p99_us, pooled->p99_us);
    line("allocations per step, weir", "%g", (double)alone->weir_allocations / STEPS,
         (double)pooled->weir_allocations / STEPS);
    if (allocations_are_counted()) {
        line("allocations per step, in all", "%g", (double)alone->allocations / STEPS,
             (double)pooled->allocations / STEPS);
    }
    line("times per step it gave up the processor", "%g", (double)alone->switches / STEPS,
         (double)pooled->switches / STEPS);
    line("processor time between steps, per cent", "%.1f", 100 * alone->idle_cpu, 100 * pooled->idle_cpu);
    printf("  %-44s%16" PRIu64 "\n\n", "threads started by weir", runtime_info().threads_started);
}

/* The promises of the head of this file, as an exit status. */
static int verdict(const struct timing *alone, const struct timing *pooled) {
    int status = 0;
    fflush(stdout);
    if (runtime_info().threads_started != 0) {
        fprintf(stderr, "FAILED: weir has started %" PRIu64 " threads\n", runtime_info().threads_started);
        status = 1;
    }
    if (alone->allocations + alone->weir_allocations + pooled->allocations + pooled->weir_allocations != 0) {
        fprintf(stderr, "FAILED: memory was allocated in later steps\n");
        status = 1;
    }
    if (alone->switches != 0) {
        fprintf(stderr, "FAILED: %" PRIu64 " steps on one thread gave up the processor\n", alone->switches);
        status = 1;
    }
    return status;
}

/* Hears the sound once more by each of the two, recorded. */
static int trace_both(struct listener *alone, struct listener *pooled, const struct hearing *hearing, const char *name) {
    float *probabilities = allocate(hearing->frames, sizeof *probabilities);
    weir_trace *trace = tracing_start();
    hear_all(alone, hearing->audio, probabilities, hearing->frames);
    hear_all(pooled, hearing->audio, probabilities, hearing->frames);
    free(probabilities);
    return tracing_save(trace, name);
}

/* The same steps on a pool of this program's. Their probabilities are the same bits. With a name both ways are traced,
 * and *out_status is 1 if the files cannot be written. */
static struct timing measure_on_pool(weir_program *program, weir_engine *engine, const struct hearing *alone,
                                     struct listener *alone_listener, int32_t threads, const char *trace,
                                     bool *out_same, int *out_status) {
    struct pool *pool = pool_create(threads);
    weir_threadpool *weir_pool;
    float *probabilities = allocate(alone->frames, sizeof *probabilities);
    if (pool == NULL) {
        fprintf(stderr, "cannot start %" PRId32 " threads\n", threads);
        exit(1);
    }
    CHECK(pool_to_weir(pool, POOL_BOTH, &weir_pool));
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = weir_pool};
    struct listener *listener = listener_create(program, engine, alone->audio->rate, &options);
    hear_all(listener, alone->audio, probabilities, alone->frames);
    *out_same = memcmp(probabilities, alone->probabilities, alone->frames * sizeof *probabilities) == 0;
    const struct timing timing = measure(listener, alone->audio, alone->frames);
    *out_status = trace != NULL ? trace_both(alone_listener, listener, alone, trace) : 0;
    listener_destroy(listener);
    weir_threadpool_release(weir_pool);
    pool_destroy(pool);
    free(probabilities);
    return timing;
}

static int hear(const struct weights *weights, const struct audio *audio, const char *name, const char *svg,
                const char *trace) {
    const int32_t frame = audio->rate * 32 / 1000;
    const size_t frames = (audio->count + (size_t)frame - 1) / (size_t)frame;
    float *probabilities = allocate(frames, sizeof *probabilities);
    struct segment *segments = allocate(frames / 2 + 1, sizeof *segments);
    struct hearing hearing = {name, audio, probabilities, frames, segments, 0};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int32_t threads = processors < 2 ? 2 : processors > MAX_THREADS ? MAX_THREADS : (int32_t)processors;
    bool same;
    int traced;

    weir_engine *engine; /* without a pool: work is done by the thread that calls */
    CHECK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    weir_program *program = model_compile(weights, engine, NULL);
    struct listener *listener = listener_create(program, engine, audio->rate, NULL);
    hear_all(listener, audio, probabilities, frames);
    hearing.num_segments = find_segments(probabilities, frames, audio->rate, audio->count, segments);
    printf("\n  weir %s: is there speech in %s, %.1f s at %" PRId32 " kHz?\n\n", weir_version_string(), name,
           (double)audio->count / audio->rate, audio->rate / 1000);
    picture_print(&hearing);
    print_segments(&hearing);
    int status = svg != NULL ? picture_write_svg(&hearing, svg) : 0;

    const struct timing alone = measure(listener, audio, frames);
    const struct timing pooled =
        measure_on_pool(program, engine, &hearing, listener, threads, trace, &same, &traced);
    print_timing(&alone, &pooled, threads);
    status |= traced | verdict(&alone, &pooled);
    if (!same) {
        fprintf(stderr, "FAILED: the pool's probabilities are other bits\n");
        status = 1;
    }
    listener_destroy(listener);
    weir_program_release(program);
    weir_engine_release(engine);
    free(segments);
    free(probabilities);
    return status;
}

int main(int argc, char **argv) {
    const char *path = VOICE_DATA_DIR "/clips/commands.wav", *svg = NULL, *trace = NULL;
    struct weights weights;
    struct audio audio;
    setlocale(LC_CTYPE, "");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--svg") == 0 && i + 1 < argc) {
            svg = argv[++i];
        } else if (strcmp(argv[i], "--trace") == 0 && i + 1 < argc) {
            trace = argv[++i];
        } else if (argv[i][0] != '-') {
            path = argv[i];
        } else {
            fprintf(stderr, "usage: %s [--svg FILE] [--trace NAME] [sound.wav | sound.raw]\n", argv[0]);
            return 2;
        }
    }
    if (audio_load(&audio, path) != 0) {
        return 1;
    }
    if (weights_load(&weights, VOICE_DATA_DIR "/weights.bin") != 0) {
        audio_free(&audio);
        return 1;
    }
    const char *slash = strrchr(path, '/');
    const int status = hear(&weights, &audio, slash == NULL ? path : slash + 1, svg, trace);
    weights_free(&weights);
    audio_free(&audio);
    return status;
}
