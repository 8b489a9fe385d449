/* What the three slow programs share: their arguments, and runs that are timed and traced.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef SLOW_RUNS_H
#define SLOW_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

struct arguments {
    bool after;        /* with the change that the trace has led to */
    const char *trace; /* where the files of the trace go; NULL = there is none */
};

/* Reads "before" or "after", and "--trace NAME". Ends the program if they are not understood. */
struct arguments arguments_read(int argc, char **argv);

/* A CPU engine on a pool of its own with so many threads beside the caller's. spin_ns is as in
 * weir_threadpool_options. */
weir_engine *engine_with_threads(int32_t threads, uint64_t spin_ns);

/* Runs the program `runs` times, and prints the median time. `between` (may be NULL) is called behind each run. With a
 * name for the trace as many runs again are recorded, in NAME.txt and NAME.html. */
void runs_measure(const struct arguments *arguments, weir_program *program, weir_tensor *const *inputs,
                  size_t num_inputs, weir_tensor *output, int runs, void (*between)(void));

/* A tensor over an array of the program's. */
weir_tensor *tensor_over(weir_engine *engine, const weir_tensor_desc *desc, void *data);

#endif
