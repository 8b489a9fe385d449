/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What the benchmarks of MPI's ranks have in common.
 */

#ifndef WEIR_BENCH_RANKS_H
#define WEIR_BENCH_RANKS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/adapters/mpi.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != WEIR_OK) {                                                                                       \
            fprintf(stderr, "%s: %s\n", #call, weir_last_error_message());                                             \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

/* In seconds. */
static inline double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static inline int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double median(double *of, int number) {
    qsort(of, (size_t)number, sizeof *of, by_size);
    return of[number / 2];
}

/* Full of ones. */
static inline weir_tensor *make_tensor(weir_engine *engine, int64_t elements, float **out_data) {
    const weir_tensor_desc desc = {.dtype = WEIR_F32, .rank = 1, .dims = {elements}};
    weir_tensor *tensor = NULL;
    void *data = NULL;
    MUST(weir_tensor_create(engine, &desc, NULL, &tensor));
    MUST(weir_tensor_get_data(tensor, &data));
    for (int64_t i = 0; i < elements; i++) ((float *)data)[i] = 1;
    *out_data = data;
    return tensor;
}

#endif
