/* weir/cuda.h: engines on the devices of the CUDA driver
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef WEIR_CUDA_H
#define WEIR_CUDA_H

#include "../weir.h"

/** @file weir/cuda.h
 * engines on the devices of the CUDA driver. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- CUDA ---------------------------------------------------------------------------------------------------------
 * Engines of kind WEIR_ENGINE_CUDA stand on the devices of the CUDA driver, which is looked for at run time: a
 * machine without one, or with one older than CUDA 12.0, has no such engines, and the failure of weir_engine_create
 * says why. They work in the primary context, as the runtime library of CUDA does, or in one of yours; streams and
 * events go both ways. The streams of weir do not wait for the legacy default stream, nor it for them. The
 * environment variable WEIR_CUDA_SYNC=1 has each call wait for its work, to find what fails. Matrix products are
 * those of cuBLASLt where that is installed; WEIR_CUDA_BLAS=0 leaves it alone, and with WEIR_CUDA_BLAS=1 a kernel of
 * products is not made without it (UNAVAILABLE). docs/cuda.md has the rules.
 */

/** Forms of a kernel's source. */
typedef enum weir_cuda_source_value {
  /** Text of CUDA C++, compiled by NVRTC for the engine's device. The entry must be extern "C". */
  WEIR_CUDA_SOURCE_TEXT = 1,
  /** Text of PTX, compiled by the driver. */
  WEIR_CUDA_SOURCE_PTX = 2,
  /** A CUBIN or fat binary for the engine's device. */
  WEIR_CUDA_SOURCE_BINARY = 3
} weir_cuda_source_value;

/** Kinds of arguments. */
typedef enum weir_cuda_argument_kind_value {
  /** The address of input `index`: a pointer. */
  WEIR_CUDA_ARGUMENT_INPUT = 1,
  /** The address of output `index`: a pointer. */
  WEIR_CUDA_ARGUMENT_OUTPUT = 2,
  /** The number of elements of input `index`: uint64_t. */
  WEIR_CUDA_ARGUMENT_INPUT_ELEMENTS = 3,
  /** The number of elements of output `index`: uint64_t. */
  WEIR_CUDA_ARGUMENT_OUTPUT_ELEMENTS = 4,
  /** The `bytes` bytes at `value`. */
  WEIR_CUDA_ARGUMENT_VALUE = 5
} weir_cuda_argument_kind_value;

/** Properties of an engine's CUDA device. */
typedef struct weir_cuda_device_info {
  /** sizeof(weir_cuda_device_info) of the caller's header. */
  size_t struct_size;
  /** The CUDA version that the driver supports: 12040 = 12.4. */
  int32_t driver_version;
  /** Compute capability: 9 and 0 for 9.0. */
  uint32_t capability_major;
  /** See capability_major. */
  uint32_t capability_minor;
  /** Number of multiprocessors. */
  uint32_t multiprocessors;
  /** Most threads of a block. */
  uint32_t max_threads_per_block;
  /** Most bytes of shared memory of a block. */
  uint32_t max_shared_bytes;
  /** Memory of the device, in bytes. */
  uint64_t memory_bytes;
  /** Free bytes of that memory now, for all processes. */
  uint64_t free_bytes;
  /** 1: memory comes from the driver's pool, and freeing it does not wait for the device. */
  uint32_t has_memory_pool;
  /** Reserved, 0. */
  uint32_t reserved;
  /** The device's UUID, the same in each process. */
  uint8_t uuid[16];
  /** "0000:3b:00.0", with its NUL. */
  char pci_bus_id[32];
  /** The driver's name for the device, UTF-8, with its NUL; cut off if it is longer. */
  char name[128];
  /**
   * The implementation of matrix products: "cuBLASLt 13.0", or "built-in: " and the reason, with its NUL; cut off if
   * it is longer. "" before the first kernel of products is created: the library is looked up then.
   */
  char products[128];
} weir_cuda_device_info;

/** The form of a kernel's source: one of enum weir_cuda_source_value. */
typedef uint32_t weir_cuda_source;

/** The kind of a kernel's argument: one of enum weir_cuda_argument_kind_value. */
typedef uint32_t weir_cuda_argument_kind;

/** An argument of a kernel, in the order of the entry's parameters. */
typedef struct weir_cuda_argument {
  /** The argument's kind. */
  weir_cuda_argument_kind kind;
  /** Index of the input or output; 0 for a value. */
  uint32_t index;
  /** A value, copied; NULL for the others. */
  const void *value;
  /** Bytes of a value, at most 4096; 0 for the others. */
  size_t bytes;
} weir_cuda_argument;

/** A host-provided kernel for a CUDA engine. */
typedef struct weir_cuda_kernel_desc {
  /** sizeof(weir_cuda_kernel_desc) of the caller's header. */
  size_t struct_size;
  /** The source; copied. */
  const void *source;
  /** Its bytes; 0 = it is text that ends with a NUL. */
  size_t source_bytes;
  /** The form of the source. */
  weir_cuda_source source_kind;
  /** Bytes of dynamic shared memory of each block. */
  uint32_t shared_bytes;
  /** The kernel's name in the source, UTF-8. */
  const char *entry;
  /** Compiler options, with WEIR_CUDA_SOURCE_TEXT only; NULL = none. weir adds the target architecture itself. */
  const char *const *options;
  /** Number of options. */
  size_t num_options;
  /** Blocks. {0, 0, 0}: a one-dimensional grid large enough that each element of output 0 has a thread. */
  uint32_t grid[3];
  /** Threads of a block. */
  uint32_t block[3];
  /** The arguments; copied. */
  const weir_cuda_argument *arguments;
  /** Number of arguments. */
  size_t num_arguments;
  /** Number of inputs, at most WEIR_MAX_ARGS. */
  size_t num_inputs;
  /** Pattern that each input must match (WEIR_DTYPE_ANY and -1 match anything), or NULL for no check. Copied. */
  const weir_tensor_desc *inputs;
  /** Number of outputs, at most WEIR_MAX_ARGS. */
  size_t num_outputs;
  /** Descriptors of the outputs; NULL if `infer` computes them. Copied. */
  const weir_tensor_desc *outputs;
  /** Optional: computes the outputs' descriptors. Required if num_outputs > 0 and `outputs` is NULL or has a -1. */
  weir_infer_fn infer;
  /** First argument of `infer`. */
  void *user;
  /** Optional: releases `user` when the kernel dies. Not called if the creation fails. */
  weir_destroy_fn destroy;
  /**
   * WEIR_KERNEL_IN_PLACE, or 0. With it an output may share the memory of an input of the same type and shape: loops
   * then update a variable in place.
   */
  uint64_t flags;
} weir_cuda_kernel_desc;

/**
 * Fills *out_info with properties of a CUDA engine's device.
 *
 * Errors: UNIMPLEMENTED if the engine is of another kind, or the build is without CUDA; errors of the driver.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_cuda_get_device_info(const weir_engine *engine,
                                      weir_cuda_device_info *out_info);

/**
 * The CUcontext that an engine works in; NULL (the default) = the device's primary context, which weir retains and
 * whose flags it leaves alone. It must be of the device with the engine's index, and no other engine may be on that
 * device with another context.
 *
 * Ownership: the context stays the caller's, who keeps it until the engine and all objects on it are gone. Errors:
 * UNIMPLEMENTED if the attribute's kind is not CUDA, or the build is without CUDA.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_cuda_context(weir_engine_attr *attr, void *context);

/**
 * Creates a weir stream on a CUstream of the caller's. NULL or (CUstream)1 = the legacy default stream, (CUstream)2 =
 * the default stream of the submitting thread. The caller's own work on it runs in the order of the calls. Work that
 * is enqueued while the caller captures the CUstream becomes part of the caller's graph, and the graph keeps
 * everything that this work uses. Work that cannot be captured is refused (docs/cuda.md). attr may be NULL; its
 * priority is ignored.
 *
 * Ownership: cuda_stream stays the caller's, who keeps it until the submitted work is done and the last reference
 * gone, and if that was released during a capture, until the graph is gone. Errors: INVALID_ARGUMENT (also a stream of
 * another context, an attr of another kind); UNIMPLEMENTED if the engine is of another kind, or the build is without
 * CUDA; errors of the driver.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_wrap_cuda(weir_engine *engine,
                                  void *cuda_stream,
                                  const weir_stream_attr *attr,
                                  weir_stream **out_stream);

/**
 * Makes later work on the stream wait for a CUevent of the caller's, as last recorded when this call is issued.
 *
 * Ownership: the event stays the caller's, who keeps it until this call has been issued: when it returns, unless
 * something in front of it waits for the host. Errors: UNIMPLEMENTED if the stream's engine is of another kind, or the
 * build is without CUDA; an error of the event becomes the stream's.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_wait_cuda_event(weir_stream *stream, void *cuda_event);

/**
 * Records a CUevent of the caller's after all work submitted so far.
 *
 * Ownership: as weir_stream_wait_cuda_event. Errors: as weir_stream_wait_cuda_event.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_record_cuda_event(weir_stream *stream, void *cuda_event);

/**
 * Creates a kernel from source code of the caller's: CUDA C++, PTX or a binary. It is compiled, if necessary, and
 * loaded in this call; a launch only fills in addresses and counts. The output of NVRTC is cached on disk, in the
 * folder that the environment variable WEIR_CUDA_CACHE names (empty = no cache), else in weir/cuda in the user's cache
 * folder; a file is read only if nobody but this user can have written it. options may be NULL; without a name in them
 * the kernel has the name of its entry.
 *
 * Blocking: while it is compiled and loaded. Ownership: desc, the data it points to and options are copied; desc->user
 * passes to the kernel if desc->destroy is given. Errors: INVALID_ARGUMENT (NULL, struct_size, signature, block,
 * arguments that do not match the entry as far as the driver knows them; a source with errors: the text is the
 * compiler's); OUT_OF_RANGE; NOT_FOUND if there is no such entry; UNAVAILABLE without NVRTC; UNIMPLEMENTED if the
 * engine is of another kind, the source not for its device, or the build without CUDA; errors of the driver.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_cuda(weir_engine *engine,
                                    const weir_cuda_kernel_desc *desc,
                                    const weir_kernel_options *options,
                                    weir_kernel **out_kernel);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_CUDA_H */
