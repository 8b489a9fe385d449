/* The CUDA driver as it is: its functions, looked up by name, with the few types that the benchmarks need. No header of CUDA's is
 * needed to build this, and no library to start it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef WEIR_BENCH_GPU_RAW_H
#define WEIR_BENCH_GPU_RAW_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t raw_pointer; /* CUdeviceptr */

/* CUDA_KERNEL_NODE_PARAMS_v2 */
typedef struct raw_kernel_node {
    void *function;
    unsigned grid[3], block[3], shared_bytes;
    void **params, **extra;
    void *kernel, *context;
} raw_kernel_node;

/* CUDA_MEMSET_NODE_PARAMS */
typedef struct raw_memset_node {
    raw_pointer to;
    size_t pitch;
    unsigned value, element_bytes;
    size_t width, height;
} raw_memset_node;

/* CUgraphNodeParams, of which only the conditional kind is used here */
typedef struct raw_node {
    int type, reserved0[3];
    uint64_t handle;
    int condition;
    unsigned size;
    void **bodies;
    void *context;
    uint64_t reserved1[25];
    uint64_t reserved2;
} raw_node;

enum { RAW_NODE_CONDITIONAL = 13, RAW_IF = 0, RAW_WHILE = 1, RAW_SWITCH = 2 };
enum { RAW_CLOCK_KHZ = 13, RAW_SMS = 16, RAW_MEMORY_KHZ = 36, RAW_BUS_BITS = 37, RAW_MAJOR = 75, RAW_MINOR = 76 };
enum { RAW_POOL_KEEPS = 4, RAW_HOST_MAPPED = 2, RAW_ASSIGN_DEFAULT = 1 };
enum { RAW_STREAM_NON_BLOCKING = 1, RAW_EVENT_DEFAULT = 0, RAW_EVENT_BLOCKING = 1, RAW_EVENT_NO_TIMING = 2 };

#define RAW_FUNCTIONS(X) \
    X(cuInit, (unsigned)) \
    X(cuDriverGetVersion, (int *)) \
    X(cuGetErrorName, (int, const char **)) \
    X(cuDeviceGetCount, (int *)) \
    X(cuDeviceGet, (int *, int)) \
    X(cuDeviceGetName, (char *, int, int)) \
    X(cuDeviceGetAttribute, (int *, int, int)) \
    X(cuDeviceTotalMem_v2, (size_t *, int)) \
    X(cuDevicePrimaryCtxRetain, (void **, int)) \
    X(cuDevicePrimaryCtxRelease_v2, (int)) \
    X(cuCtxGetCurrent, (void **)) \
    X(cuCtxSetCurrent, (void *)) \
    X(cuStreamCreateWithPriority, (void **, unsigned, int)) \
    X(cuStreamDestroy_v2, (void *)) \
    X(cuStreamSynchronize, (void *)) \
    X(cuStreamQuery, (void *)) \
    X(cuStreamWaitEvent, (void *, void *, unsigned)) \
    X(cuLaunchHostFunc, (void *, void (*)(void *), void *)) \
    X(cuEventCreate, (void **, unsigned)) \
    X(cuEventDestroy_v2, (void *)) \
    X(cuEventRecord, (void *, void *)) \
    X(cuEventQuery, (void *)) \
    X(cuEventSynchronize, (void *)) \
    X(cuEventElapsedTime, (float *, void *, void *)) \
    X(cuMemAlloc_v2, (raw_pointer *, size_t)) \
    X(cuMemFree_v2, (raw_pointer)) \
    X(cuMemGetInfo_v2, (size_t *, size_t *)) \
    X(cuMemAllocAsync, (raw_pointer *, size_t, void *)) \
    X(cuMemFreeAsync, (raw_pointer, void *)) \
    X(cuMemHostAlloc, (void **, size_t, unsigned)) \
    X(cuMemFreeHost, (void *)) \
    X(cuMemHostGetDevicePointer_v2, (raw_pointer *, void *, unsigned)) \
    X(cuMemcpyHtoDAsync_v2, (raw_pointer, const void *, size_t, void *)) \
    X(cuMemcpyDtoHAsync_v2, (void *, raw_pointer, size_t, void *)) \
    X(cuMemcpyDtoDAsync_v2, (raw_pointer, raw_pointer, size_t, void *)) \
    X(cuMemsetD32Async, (raw_pointer, unsigned, size_t, void *)) \
    X(cuModuleLoadDataEx, (void **, const void *, unsigned, int *, void **)) \
    X(cuModuleUnload, (void *)) \
    X(cuModuleGetFunction, (void **, void *, const char *)) \
    X(cuLaunchKernel, \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **)) \
    X(cuGraphCreate, (void **, unsigned)) \
    X(cuGraphDestroy, (void *)) \
    X(cuGraphAddKernelNode_v2, (void **, void *, void *const *, size_t, const raw_kernel_node *)) \
    X(cuGraphAddMemsetNode, (void **, void *, void *const *, size_t, const raw_memset_node *, void *)) \
    X(cuGraphInstantiateWithFlags, (void **, void *, uint64_t)) \
    X(cuGraphExecDestroy, (void *)) \
    X(cuGraphLaunch, (void *, void *)) \
    X(cuGraphExecKernelNodeSetParams_v2, (void *, void *, const raw_kernel_node *)) \
    X(cuGraphExecMemsetNodeSetParams, (void *, void *, const raw_memset_node *, void *)) \
    X(cuGraphExecUpdate_v2, (void *, void *, void *))

/* What older drivers lack. */
#define RAW_OPTIONAL(X) \
    X(cuDeviceGetDefaultMemPool, (void **, int)) \
    X(cuMemPoolSetAttribute, (void *, int, void *)) \
    X(cuStreamWriteValue32_v2, (void *, raw_pointer, uint32_t, unsigned)) \
    X(cuGraphConditionalHandleCreate, (uint64_t *, void *, void *, unsigned, unsigned)) \
    X(cuGraphAddNode_v2, (void **, void *, void *const *, const void *, size_t, raw_node *))

typedef struct raw_table {
#define RAW_MEMBER(name, args) int(*name) args;
    RAW_FUNCTIONS(RAW_MEMBER)
    RAW_OPTIONAL(RAW_MEMBER)
#undef RAW_MEMBER
} raw_table;

extern raw_table raw;

typedef struct raw_device {
    char name[128];
    int version, device, sms, clock_khz, major, minor;
    size_t memory_bytes;
    void *context; /* the primary one; current on the thread that opened it */
} raw_device;

/* False, with a text on stdout, where there is no device; ends the program where the driver is not what it should be. */
int raw_open(raw_device *device);

const char *raw_error(int code);

/* A kernel out of PTX; NULL if the driver does not take it, with the code in `code` (which may be NULL). */
void *raw_kernel(const char *ptx, const char *entry, void **module, int *code);

void *raw_stream(void);
void *raw_event(unsigned flags);
raw_pointer raw_memory(size_t bytes);
/* A kernel node of a graph; `after` is `count` nodes. */
void *raw_node_of(void *graph, void *function, unsigned blocks, unsigned threads, void **arguments, void *const *after, size_t count);
/* Instantiates a graph, and destroys it. */
void *raw_executable(void *graph);
/* What is given back to the driver's pool stays with it, as it does with weir's. False without such a pool. */
int raw_keep_pool(const raw_device *device);

#define RAW(call) \
    do { \
        const int raw_code_ = raw.call; \
        if (raw_code_ != 0) { \
            fprintf(stderr, "%s:%d: %s gives %s\n", __FILE__, __LINE__, #call, raw_error(raw_code_)); \
            exit(1); \
        } \
    } while (0)

#endif
