/* What the GPU benchmarks share.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef WEIR_BENCH_GPU_BENCH_H
#define WEIR_BENCH_GPU_BENCH_H

#include "raw.h"

double now_ns(void);
/* Both sort. */
double median(double *values, int count);
double quantile(double *values, int count, double part);

/* Two ways of doing the same, which take turns; what each returns is its time in ns. The first round does not count. Prints a row of a
 * table: the medians, and the median of the rounds' ratios. */
typedef double (*timed_fn)(void *with);
void compare(const char *what, timed_fn raw_side, timed_fn weir_side, void *with, int rounds);
void table(const char *title);

extern int quick; /* few rounds: to see that everything runs */

void bench_questions(raw_device *device);
void bench_calls(raw_device *device);
void bench_graphs(raw_device *device);
void bench_loops(raw_device *device);
void bench_memory(raw_device *device);

#endif
