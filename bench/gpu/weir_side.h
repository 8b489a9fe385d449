/* weir's side of the GPU benchmarks: an engine, a stream, and the same kernels as the raw side.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef WEIR_BENCH_GPU_WEIR_SIDE_H
#define WEIR_BENCH_GPU_WEIR_SIDE_H

#include <stdio.h>
#include <stdlib.h>

#include <weir.h>

#define OK(call) \
    do { \
        const weir_status status_ = (call); \
        if (status_ != WEIR_OK) { \
            fprintf(stderr, "%s:%d: %s gives %s: %s\n", __FILE__, __LINE__, #call, weir_status_name(status_), \
                    weir_last_error_message()); \
            exit(1); \
        } \
    } while (0)

weir_engine *cuda_engine(uint32_t max_streams);
weir_engine *cuda_engine_waiting(weir_wait_policy policy, uint64_t spin_ns);
weir_stream *cuda_stream(weir_engine *engine);
/* f32[count] on the engine. */
weir_tensor *floats_on(weir_engine *engine, int64_t count);
uint64_t address_of(const weir_tensor *tensor);

/* Nothing, with two inputs and two outputs of `count` floats. */
weir_kernel *empty_kernel(weir_engine *engine, int64_t count);
/* One input, one output of `count` floats: output = input + 1. */
weir_kernel *add_one_kernel(weir_engine *engine, int64_t count);
/* One to three inputs, one output of one float: `blocks` blocks of 32 threads that work for so many cycles. */
weir_kernel *spin_kernel(weir_engine *engine, uint64_t cycles, uint32_t blocks, size_t inputs);
/* Two inputs, one output of one bool: whether the first is less. The built-in one: a loop can do it itself. */
weir_kernel *less_kernel(weir_engine *engine);

/* What a program says of who decides in its first branch or loop. In memory of its own until the next call. */
const char *decision(const weir_program *program);

#endif
