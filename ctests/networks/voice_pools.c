/* The voice example hears what ONNX Runtime hears, and the same bits on every pool.
 *
 *     voice_pools [folder with weights.bin and clips]
 *
 * Beside each clip lies what ONNX Runtime says about it (reference.py): probabilities, which may differ by 1e-4, and
 * segments, which may not. The clips are heard in the calling thread first; then, from two programs, on pools of five
 * kinds: one whose work changes threads when that pays, and one with a hop cost of 0, so that it does whenever it can.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <weir.h>
#include <weir/inspect.h>

#include "audio.h"
#include "check.h"
#include "listener.h"
#include "model.h"
#include "segments.h"
#include "test_pools.h"
#include "weights.h"

#ifndef VOICE_DATA_DIR
#define VOICE_DATA_DIR "."
#endif

enum { CLIPS = 3, MAX_FRAMES = 256, MAX_SEGMENTS = MAX_FRAMES / 2 + 1, BEGINNING = 8, VARIANTS = 2, POOLS = 5 };

static const double TOLERANCE = 1e-4;

static const char *const clip_names[CLIPS] = {"commands.wav", "go_forward.raw", "go_forward_8k.wav"};

static const struct {
    pool_kind kind;
    int threads;
} pools[POOLS] = {{POOL_FIFO, 3}, {POOL_LIFO, 2}, {POOL_PARALLEL_FOR, 3}, {POOL_FULL, 7}, {POOL_INLINE, 1}};

/* What is said about a sound. */
struct opinion {
    size_t frames, num_segments;
    double expected[MAX_FRAMES];
    float probabilities[MAX_FRAMES];
    struct segment segments[MAX_SEGMENTS];
};

struct clip {
    struct audio audio;
    size_t frames; /* that are heard */
    bool whole;    /* a slow machine hears only the beginning */
    struct opinion reference, alone;
};

static struct clip clips[CLIPS];

static void load_reference(struct opinion *opinion, const char *path) {
    char line[96];
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        long long begin, end;
        if (sscanf(line, "p %lf", &opinion->expected[opinion->frames]) == 1) {
            opinion->frames++;
            CHECK(opinion->frames < MAX_FRAMES);
        } else if (sscanf(line, "s %lld %lld", &begin, &end) == 2) {
            opinion->segments[opinion->num_segments++] = (struct segment){begin, end};
            CHECK(opinion->num_segments < MAX_SEGMENTS);
        } else {
            check_failed(__FILE__, __LINE__, line, "is no line of a reference");
        }
    }
    fclose(file);
}

static void load_clip(struct clip *clip, const char *folder, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/clips/%s", folder, name);
    CHECK_EQ(audio_load(&clip->audio, path), 0);
    const size_t frame = (size_t)clip->audio.rate * 32 / 1000;
    clip->frames = (clip->audio.count + frame - 1) / frame;
    snprintf(path, sizeof path, "%s/clips/%s.txt", folder, name);
    load_reference(&clip->reference, path);
    CHECK_EQ(clip->reference.frames, clip->frames);
    clip->whole = scale(MAX_FRAMES) == MAX_FRAMES;
    clip->frames = clip->whole ? clip->frames : BEGINNING;
}

static void hear(weir_program *program, weir_engine *engine, const struct clip *clip, const weir_run_options *options,
                 struct opinion *opinion) {
    struct listener *listener = listener_create(program, engine, clip->audio.rate, options);
    /* Twice: what was heard before must be forgotten. */
    listener_hear(listener, clip->audio.samples);
    listener_reset(listener);
    opinion->frames = clip->frames;
    for (size_t i = 0; i < clip->frames; i++) {
        opinion->probabilities[i] = listener_hear(listener, clip->audio.samples + i * (size_t)listener_frame(listener));
    }
    opinion->num_segments = find_segments(opinion->probabilities, clip->frames, clip->audio.rate, clip->audio.count,
                                          opinion->segments);
    listener_destroy(listener);
}

static int compare_with_reference(const struct clip *clip, const char *name) {
    const struct opinion *alone = &clip->alone, *reference = &clip->reference;
    double worst = 0;
    int wrong = 0;
    for (size_t i = 0; i < clip->frames; i++) {
        const double error = fabs((double)alone->probabilities[i] - reference->expected[i]);
        worst = error > worst ? error : worst;
        if (!(error <= TOLERANCE)) {
            printf("FAILED %s, frame %zu: %.9g, expected %.9g\n", name, i, (double)alone->probabilities[i],
                   reference->expected[i]);
            wrong++;
        }
    }
    bool same = alone->num_segments == reference->num_segments;
    for (size_t i = 0; same && i < alone->num_segments; i++) {
        same = alone->segments[i].begin == reference->segments[i].begin &&
               alone->segments[i].end == reference->segments[i].end;
    }
    if (clip->whole && !same) {
        printf("FAILED %s: other segments than expected\n", name);
        wrong++;
    }
    printf("%-20s %4zu frames, off by %.2g at most, %zu segments\n", name, clip->frames, worst, alone->num_segments);
    return wrong;
}

static int compare_on_pool(weir_program *const *programs, weir_engine *engine, pool_kind kind, int threads) {
    weir_threadpool *handle;
    int wrong = 0;
    test_pool *pool = test_pool_create(kind, threads, &handle);
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = handle};
    for (int v = 0; v < VARIANTS; v++) {
        for (int c = 0; c < CLIPS; c++) {
            static struct opinion pooled;
            hear(programs[v], engine, &clips[c], &options, &pooled);
            const size_t bytes = clips[c].frames * sizeof pooled.probabilities[0];
            if (memcmp(pooled.probabilities, clips[c].alone.probabilities, bytes) != 0) {
                printf("FAILED %s: other bits on pool %s, variant %d\n", clip_names[c], pool_kind_name(kind), v);
                wrong++;
            }
        }
    }
    weir_threadpool_release(handle);
    const int64_t tasks = test_pool_counters(pool).tasks;
    test_pool_destroy(pool);
    printf("%-20s %4lld tasks, the same bits %s\n", pool_kind_name(kind), (long long)tasks, wrong == 0 ? "" : "NOT");
    return wrong;
}

int main(int argc, char **argv) {
    const weir_runtime_info before = runtime_info();
    const char *folder = argc > 1 ? argv[1] : VOICE_DATA_DIR;
    weir_program *programs[VARIANTS];
    weir_engine *engine;
    struct weights weights;
    char path[1024];
    int wrong = 0;

    snprintf(path, sizeof path, "%s/weights.bin", folder);
    CHECK_EQ(weights_load(&weights, path), 0);
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    const weir_compile_options hop = {.struct_size = sizeof hop, .hop_ns = WEIR_HOP_NONE};
    programs[0] = model_compile(&weights, engine, NULL);
    programs[1] = model_compile(&weights, engine, &hop);
    for (int c = 0; c < CLIPS; c++) {
        load_clip(&clips[c], folder, clip_names[c]);
        hear(programs[0], engine, &clips[c], NULL, &clips[c].alone);
        wrong += compare_with_reference(&clips[c], clip_names[c]);
    }
    for (int p = 0; p < POOLS; p++) {
        wrong += compare_on_pool(programs, engine, pools[p].kind, pools[p].threads);
    }
    for (int v = 0; v < VARIANTS; v++) {
        weir_program_release(programs[v]);
    }
    weir_engine_release(engine);
    for (int c = 0; c < CLIPS; c++) {
        audio_free(&clips[c].audio);
    }
    weights_free(&weights);
    check_released(&before);
    if (wrong > 0) {
        printf("%d FAILED\n", wrong);
    }
    return wrong > 0;
}
