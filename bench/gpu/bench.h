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

/* The median time of one way, without the first round. */
double alone(timed_fn side, void *with, int rounds);

/* A part of the answer to one of the seven questions of gpu/RESULTS.md, for gpu/run.sh to put into its table. */
void answer(int question, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How long a spin of so many cycles takes by the clocks of the device itself, without its start and its end: cycles that it counts, times what
 * a cycle takes, which a long kernel finds. */
typedef struct spin_clock {
    double ns_per_cycle;
} spin_clock;
spin_clock measure_clock(const raw_device *device);
uint64_t spin_cycles(spin_clock clock, double us);
/* The median of `count` kernels that ran alone. */
double spin_ns(spin_clock clock, uint64_t cycles, unsigned blocks, int count);

extern int quick; /* few rounds: to see that everything runs */
extern int wrong; /* something did not do what it should: the program ends with 1 when it has said all */

void bench_conditions(raw_device *device);
void bench_questions(raw_device *device);
void bench_latency(raw_device *device);
void bench_calls(raw_device *device);
void bench_graphs(raw_device *device);
void bench_dags(raw_device *device);
void bench_updates(raw_device *device);
void bench_loops(raw_device *device);
void bench_branches(raw_device *device);
void bench_memory(raw_device *device);
void bench_products(raw_device *device);
void bench_kernels(raw_device *device);

#endif
