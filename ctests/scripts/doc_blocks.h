/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The names that parts of programs in docs/ use and do not declare. DOC_<page> is defined for the parts of a page.
 */

#ifndef WEIR_CTESTS_DOC_BLOCKS_H
#define WEIR_CTESTS_DOC_BLOCKS_H

#ifdef __cplusplus
#include <weir.hpp>

extern weir::threadpool pool;
extern int left, right, first, middle, last;
int sum(int from, int to);
#else
#include <stdio.h>
#include <weir.h>
#include <weir/comm.h>
#include <weir/conformance.h>
#include <weir/control.h>
#include <weir/cuda.h>
#include <weir/device.h>
#include <weir/domain.h>
#include <weir/inspect.h>
#include <weir/memory.h>
#include <weir/resource.h>
#include <weir/task_group.h>
#include <weir/testing.h>
#include <weir/trace.h>

/* Objects. */
extern weir_threadpool *pool;
extern weir_engine *cpu, *cuda, *engine, *gpu;
#if defined(DOC_EMULATED)
extern weir_engine_attr *attr;
#else
extern weir_stream_attr *attr;
#endif
extern weir_stream *stream;
extern weir_kernel *assign, *kernel, *less, *plus_one, *read, *scale;
extern weir_tensor *input, *output, *inputs[2], *outputs[2];
extern weir_graph *g, *graph;
extern weir_program *program;
extern weir_comm *comm;
extern weir_kernel *all_reduce;

/* Values and nodes of graphs. */
extern weir_value first, goes_on, gradient[4], i, last, limit, more, n, next, now, result, summed[4], value, zero;
extern weir_node after, before, cond, merge;

/* Structs. */
extern const weir_communication sum;
extern const weir_tensor_desc desc, like;
#if defined(DOC_DEVICES)
extern const weir_device_vtable vtable;
#else
extern const weir_threadpool_vtable vtable;
#endif
extern void *client, *context_of_this_call, *ctx, *my_context;
extern weir_status status;
extern uint64_t number;

int failure(void);
void *my_pool_create(int threads);

/* Halves of a task. */
extern int left, right;
int32_t left_half(void *half);
int32_t right_half(void *half);

/* OpenMP. */
int omp_get_max_threads(void);

/* ONNX Runtime, as far as it goes. */
typedef struct OrtStatus OrtStatus;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtApi {
    OrtStatus *(*KernelContext_ParallelFor)(
        const OrtKernelContext *context, void (*fn)(void *, size_t), size_t total, size_t batches, void *data);
    void (*ReleaseStatus)(OrtStatus *status);
} OrtApi;
struct kernel {
    weir_program *program;
};
extern int session_threads;
#endif

#endif
