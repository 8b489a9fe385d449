/* weir/memory.h: buffers, pinned memory, allocators and limits
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef WEIR_MEMORY_H
#define WEIR_MEMORY_H

#include "../weir.h"

/** @file weir/memory.h
 * buffers, pinned memory, allocators and limits. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Memory -------------------------------------------------------------------------------------------------------
 * An engine's tensors, scratch and the values of runs lie in regions that it gets from the system, or from an
 * allocator of yours, and cuts into blocks. Freed blocks are kept for the next, so that in the steady state nothing
 * is asked for. A limit bounds the regions; beyond it a call fails with RESOURCE_EXHAUSTED, at once, and says what
 * holds the memory. The environment variable WEIR_MEMORY_MODE, pooled or direct, read once per process, is for
 * engines that were given no mode; any other value is INVALID_ARGUMENT where it would be used.
 */

/** How an engine keeps its memory. */
typedef enum weir_memory_mode_value {
  /**
   * The engine allocates regions of 1 MiB and more and cuts tensors, scratch and the values of runs out of them;
   * freed memory is kept for later requests (weir_engine_trim). Default for all engines except emulated ones.
   */
  WEIR_MEMORY_MODE_POOLED = 1,
  /**
   * Each tensor and so on is one call of the allocator, and is given back at once: for tools that look for memory
   * errors, and for allocators that are pools themselves. Default for emulated engines.
   */
  WEIR_MEMORY_MODE_DIRECT = 2
} weir_memory_mode_value;

/** A host-provided allocator that engines take their memory from. Shared: create, retain, release. */
typedef struct weir_allocator weir_allocator;

/**
 * A host-provided allocator for the memory of engines: host memory on CPU engines, device memory on other engines.
 *
 * Copied by weir_allocator_create. The functions may be called from any thread, several at a time. They must not
 * throw, longjmp or unwind, and must not call weir for an engine that they serve. weir holds no lock while it calls
 * them.
 *
 * On an engine of another kind `allocate` returns an address that the engine's device can use, as
 * weir_memory takes one (`data`); the host may be unable to access it. Tensors, scratch and the values of runs lie
 * there; the device's own needs (libraries, recordings) and pinned host memory do not. Memory is given back only when
 * no work submitted to a stream before uses it any more.
 */
typedef struct weir_allocator_vtable {
  /** sizeof(weir_allocator_vtable) of the host's header. Members beyond it read as NULL. */
  size_t struct_size;
  /** Reserved, 0. */
  uint64_t flags;
  /**
   * Alignment of each tensor's address in this memory, in bytes: a power of two up to 2 MiB. 0, and anything less
   * than the engine's own alignment (64 on the CPU), stand for the engine's own, which weir_engine_info has.
   */
  size_t alignment;
  /**
   * Required. Returns `bytes` bytes (never 0) at a multiple of `alignment`, a power of two, with any contents. NULL:
   * out of memory. An address that is not aligned is given back at once, and the call that needed it fails.
   */
  void *(*allocate)(void *ctx, size_t bytes, size_t alignment);
  /** Required. Takes back memory from `allocate`, with the same size and alignment, each address exactly once. */
  void (*deallocate)(void *ctx, void *data, size_t bytes, size_t alignment);
  /**
   * Optional: called exactly once, when all memory was given back and nothing refers to the allocator any more, in
   * the thread that drops the last reference. Never called in a forked child.
   */
  void (*release)(void *ctx);
} weir_allocator_vtable;

/** How an engine keeps its memory: one of enum weir_memory_mode_value. */
typedef uint32_t weir_memory_mode;

/**
 * Creates an allocator from host functions. The vtable is copied; `ctx` is passed to its functions. Any number of
 * engines may use it. weir calls vtable->release(ctx) exactly once, after the last reference is gone and all memory
 * was given back; if this call fails, it is never called.
 *
 * Errors: INVALID_ARGUMENT (NULL, struct_size, flags, alignment, allocate or deallocate missing).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_allocator_create(const weir_allocator_vtable *vtable,
                                  void *ctx,
                                  weir_allocator **out_allocator);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_allocator_retain(weir_allocator *allocator);

/**
 * Gives up one reference. NULL does nothing. Settings, engines and memory from the allocator hold references of their
 * own.
 */
WEIR_API void weir_allocator_release(weir_allocator *allocator);

/**
 * The source of the engine's memory. NULL: the system, or the device (the default). On an engine of another kind than
 * CPU the allocator provides device memory, as a framework's caching allocator does.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_allocator(weir_engine_attr *attr,
                                           weir_allocator *allocator);

/** The allocator that was set, or NULL. */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_allocator(const weir_engine_attr *attr,
                                           weir_allocator **out_allocator);

/**
 * Maximum number of bytes that the engine may reserve: all of its regions together, whether in use or not. A request
 * beyond it makes the engine give back free regions, and fails with RESOURCE_EXHAUSTED if that is not enough.
 * UINT64_MAX: no limit (the default).
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_memory_limit(weir_engine_attr *attr, uint64_t bytes);

/** The limit that was set, or UINT64_MAX. */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_memory_limit(const weir_engine_attr *attr,
                                              uint64_t *out_bytes);

/**
 * How the engine keeps its memory: one of enum weir_memory_mode_value. A mode that was set comes before
 * WEIR_MEMORY_MODE from the environment.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_memory_mode(weir_engine_attr *attr, weir_memory_mode mode);

/** The mode that was set, or WEIR_MEMORY_MODE_POOLED. In the attributes of an engine: its actual mode. */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_memory_mode(const weir_engine_attr *attr,
                                             weir_memory_mode *out_mode);

/**
 * Gives back regions that are completely free, the largest first, until at most `bytes_to_keep` bytes are reserved or
 * no region is free; likewise the host memory that an accelerator's engine has for copies. Memory in use does not
 * move. Releasing the engine and everything on it gives back all memory.
 *
 * Blocking: as long as the system or the allocator takes to free the regions.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_trim(weir_engine *engine, uint64_t bytes_to_keep);

/* ---- Buffer -------------------------------------------------------------------------------------------------------
 * A buffer is memory without a shape: of the engine's, or of yours, which is given back to you by a callback. Tensors
 * lie in it where you say.
 */

/**
 * Creates a buffer of `bytes` bytes: memory without a shape, with any contents; 0 bytes are legal. `from` NULL: new
 * memory of the engine's, with its alignment; else FOREIGN or PINNED memory.
 *
 * Blocking: never; as long as the device takes to pin memory, when another region of it is needed. Errors:
 * INVALID_ARGUMENT (NULL; of from: its source, members that do not belong to it, NULL data unless bytes is 0, PINNED
 * for an engine that is no CPU engine); OUT_OF_RANGE (no memory at this address is that large, or the memory is too
 * small); RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_buffer_create(weir_engine *engine,
                               size_t bytes,
                               const weir_memory *from,
                               weir_buffer **out_buffer);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_buffer_retain(weir_buffer *buffer);

/** Gives up one reference. NULL does nothing. Tensors on the buffer hold references of their own. */
WEIR_API void weir_buffer_release(weir_buffer *buffer);

/** Address of the first byte, in the engine's memory. Reading or writing it while queued work uses it is a race. */
WEIR_API WEIR_NODISCARD weir_status weir_buffer_get_data(const weir_buffer *buffer, void **out_data);

/** Size in bytes. */
WEIR_API WEIR_NODISCARD weir_status weir_buffer_get_size(const weir_buffer *buffer, size_t *out_bytes);

/** The engine whose memory the buffer is in, or whose kernels reach it. */
WEIR_API WEIR_NODISCARD weir_status weir_buffer_get_engine(const weir_buffer *buffer, weir_engine **out_engine);

/* ---- Pinned memory ------------------------------------------------------------------------------------------------
 * Host memory that a device copies from and to directly.
 */

/**
 * Pins existing memory, above all that of the caller (WEIR_MEMORY_FOREIGN), for copies by `device`, until the buffer
 * ends: before its release function is called. Pinning is slow, so pin memory that is used often. A buffer may be
 * pinned for several engines, one after the other.
 *
 * Blocking: as long as the device takes. Errors: INVALID_ARGUMENT (NULL, a buffer of an engine that is no CPU engine,
 * a part of it is pinned); ALREADY_EXISTS (all of it is); UNIMPLEMENTED (the engine's device does not do this:
 * `pinning` of weir_memory_info lacks WEIR_PINNING_REGISTERS); RESOURCE_EXHAUSTED.
 */
WEIR_API WEIR_NODISCARD weir_status weir_buffer_pin(weir_buffer *buffer, weir_engine *device);

/**
 * Stores 1 if `device` copies directly from and to the buffer's memory, else 0. It searches the device's pinned
 * memory: ask once, not for each copy.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_buffer_is_pinned(const weir_buffer *buffer,
                                  const weir_engine *device,
                                  int32_t *out_pinned);

/** As weir_buffer_is_pinned, for a tensor's memory. */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_is_pinned(const weir_tensor *tensor,
                                  const weir_engine *device,
                                  int32_t *out_pinned);

/**
 * Maximum number of bytes of host memory that the engine may reserve for copies: regions of pinned memory, whether in
 * use or not. Memory pinned by weir_buffer_pin does not count. A request beyond it fails with RESOURCE_EXHAUSTED, as
 * with weir_engine_attr_set_memory_limit. UINT64_MAX: no limit (the default).
 *
 * Errors: FAILED_PRECONDITION if the attribute's kind is CPU.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_pinned_limit(weir_engine_attr *attr, uint64_t bytes);

/**
 * The limit that was set, or UINT64_MAX.
 *
 * Errors: FAILED_PRECONDITION if the attribute's kind is CPU.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_pinned_limit(const weir_engine_attr *attr,
                                              uint64_t *out_bytes);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_MEMORY_H */
