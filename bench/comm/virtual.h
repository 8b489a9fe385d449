/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The model behind bench/comm/virtual.c: what an operation of N ranks takes, and what a layer takes on a rank. Times
 * are in microseconds.
 */

#ifndef WEIR_BENCH_VIRTUAL_H
#define WEIR_BENCH_VIRTUAL_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 32, STEPS = 4, SIZES = 2, CLASSES = 4 };

static const double gradient_bytes[SIZES] = {65536, 4194304};

struct message_class {
    double upto, latency, overhead, gap, add;
};

struct parameters {
    struct message_class classes[CLASSES];
    int num_classes, halving;
    double call, copy, begin, noise_layer, noise_rank;
    double layer[SIZES], update[SIZES], measured[SIZES], measured_mpi[SIZES];
};

/* What an operation takes, and how much of that is there however few bytes it has. */
struct cost {
    double all, latency;
    char by;
};

static inline int read_parameters(const char *path, struct parameters *to) {
    FILE *file = fopen(path, "r");
    char line[256];
    if (!file) return 0;
    memset(to, 0, sizeof *to);
    to->begin = 1;
    while (fgets(line, sizeof line, file)) {
        char key[64] = "";
        double x[5] = {0};
        line[strcspn(line, "#")] = 0;
        const int got = sscanf(line, "%63s %lf %lf %lf %lf %lf", key, &x[0], &x[1], &x[2], &x[3], &x[4]);
        if (got < 2) continue;
        if (!strcmp(key, "message") && got == 6 && to->num_classes < CLASSES) {
            to->classes[to->num_classes++] = (struct message_class){x[0], x[1], x[2], x[3] * 1e-3, x[4] * 1e-3};
        } else if (!strcmp(key, "call")) {
            to->call = x[0];
        } else if (!strcmp(key, "copy")) {
            to->copy = x[0] * 1e-3;
        } else if (!strcmp(key, "begin")) {
            to->begin = x[0];
        } else if (!strcmp(key, "halving")) {
            to->halving = x[0] != 0;
        } else if (!strcmp(key, "noise_layer")) {
            to->noise_layer = x[0];
        } else if (!strcmp(key, "noise_rank")) {
            to->noise_rank = x[0];
        } else if (!strcmp(key, "layer")) {
            memcpy(to->layer, x, sizeof to->layer);
        } else if (!strcmp(key, "update")) {
            memcpy(to->update, x, sizeof to->update);
        } else if (!strcmp(key, "measured")) {
            memcpy(to->measured, x, sizeof to->measured);
        } else if (!strcmp(key, "measured_mpi")) {
            memcpy(to->measured_mpi, x, sizeof to->measured_mpi);
        } else {
            fprintf(stderr, "%s: what is '%s'?\n", path, key);
            fclose(file);
            return 0;
        }
    }
    fclose(file);
    return to->num_classes > 0;
}

static inline const struct message_class *class_of(const struct parameters *of, double bytes) {
    int i = 0;
    while (i + 1 < of->num_classes && bytes > of->classes[i].upto) i++;
    return &of->classes[i];
}

/* An all_reduce: the fastest of a ring, recursive doubling, and, where the network has it, halving and doubling. */
static inline struct cost all_reduce_cost(const struct parameters *of, int ranks, double bytes) {
    const double rounds = ceil(log2(ranks)), share = (ranks - 1.0) / ranks;
    const struct message_class *part = class_of(of, bytes / ranks), *whole = class_of(of, bytes);
    struct cost ring, best;
    if (ranks < 2) return (struct cost){0, 0, '-'};
    ring.by = 'r';
    ring.latency = 2 * (ranks - 1.0) * (part->latency + 2 * part->overhead);
    ring.all = ring.latency + 2 * share * bytes * part->gap + share * bytes * whole->add;
    best.by = 'd';
    best.latency = rounds * (whole->latency + 2 * whole->overhead);
    best.all = best.latency + rounds * bytes * (whole->gap + whole->add);
    if (ring.all < best.all) best = ring;
    if (of->halving) {
        struct cost halving = {0, 0, 'h'};
        double piece = bytes / 2;
        for (int i = 0; i < (int)rounds; i++, piece /= 2) {
            const struct message_class *class = class_of(of, piece);
            halving.latency += 2 * (class->latency + 2 * class->overhead);
            halving.all += 2 * piece * class->gap + piece * whole->add;
        }
        halving.all += halving.latency;
        if (halving.all < best.all) best = halving;
    }
    return best;
}

static inline uint64_t mixed(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* exp(deviation * a normal number), with mean 1: the same for the same `what`. */
static inline double noise(uint64_t what, double deviation) {
    const double u = ((double)(mixed(what) >> 11) + 1) / 9007199254740993.0;
    const double v = (double)(mixed(~what) >> 11) / 9007199254740992.0;
    const double normal = sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
    return exp(deviation * normal - deviation * deviation / 2);
}

static inline double layer_time(const struct parameters *of, int size, int rank, int layer) {
    const uint64_t seed = UINT64_C(20260131) * 65536;
    return of->layer[size] * noise(seed + (uint64_t)rank, of->noise_rank) *
           noise(seed + ((uint64_t)rank + 1) * 4096 + (uint64_t)layer, of->noise_layer);
}

/* ---- The same step without weir: events in the order of their times ---- */

enum twin_next { NEXT_KERNEL, NEXT_COPY, NEXT_BEGIN, NEXT_LOOK, NEXT_NONE };

struct twin_rank {
    double clock;
    enum twin_next next;
    int layer, bucket;
    int updated; /* tensors whose weights are changed */
    int ready;   /* tensors whose sums are over, and this rank has seen it */
};

/* The time of a step. Weights are changed behind all layers, as weir does it with one thread: layers are urgent. */
static inline double twin_step(const struct parameters *of, int ranks, int size, int in_bucket) {
    const double bytes = in_bucket * gradient_bytes[size];
    const double takes = all_reduce_cost(of, ranks, bytes).all, copy = in_bucket > 1 ? bytes * of->copy : 0;
    double latest[STEPS * LAYERS] = {0}, ends[STEPS * LAYERS], link = 0, step = 0;
    int begun[STEPS * LAYERS] = {0}, known = 0;
    struct twin_rank *each = calloc((size_t)ranks, sizeof *each);
    if (!each) abort();
    for (;;) {
        struct twin_rank *rank = NULL;
        for (int r = 0; r < ranks; r++)
            if (each[r].next != NEXT_NONE && (!rank || each[r].clock < rank->clock)) rank = &each[r];
        if (!rank) break;
        switch (rank->next) {
        case NEXT_KERNEL:
            if (rank->layer < STEPS * LAYERS && rank->layer / LAYERS == rank->updated / LAYERS) {
                rank->clock += layer_time(of, size, (int)(rank - each), rank->layer++);
                if (rank->layer % in_bucket == 0) rank->next = NEXT_COPY;
            } else if (rank->updated < rank->ready) {
                rank->clock += of->update[size];
                rank->updated++;
            } else if (rank->updated == STEPS * LAYERS) {
                rank->next = NEXT_NONE;
            } else {
                /* It waits for an operation that is known to end, or for the rank that makes it known. */
                if (rank->bucket < known) rank->clock = fmax(rank->clock, ends[rank->bucket]);
                rank->next = rank->bucket < known ? NEXT_LOOK : NEXT_NONE;
            }
            break;
        case NEXT_COPY:
            rank->clock += copy;
            rank->next = NEXT_BEGIN;
            break;
        case NEXT_BEGIN: {
            const int k = rank->layer / in_bucket - 1;
            latest[k] = rank->clock;
            rank->clock += of->call;
            rank->next = NEXT_LOOK;
            if (++begun[k] < ranks) break;
            link = ends[k] = fmax(link, latest[k]) + takes;
            known = k + 1;
            for (int r = 0; r < ranks; r++) {
                if (each[r].next != NEXT_NONE || each[r].updated == STEPS * LAYERS) continue;
                each[r].clock = fmax(each[r].clock, ends[each[r].bucket]);
                each[r].next = NEXT_LOOK;
            }
            break;
        }
        case NEXT_LOOK:
            if (rank->bucket < known && ends[rank->bucket] <= rank->clock) {
                rank->clock += copy;
                rank->bucket++;
                rank->ready += in_bucket;
            } else {
                rank->next = NEXT_KERNEL;
            }
            break;
        case NEXT_NONE: break;
        }
    }
    for (int r = 0; r < ranks; r++) step = fmax(step, each[r].clock);
    free(each);
    return step / STEPS;
}

#endif
