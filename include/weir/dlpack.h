/* weir/dlpack.h: tensors to and from other libraries
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The structs are those of DLPack 1.0, for programs without dlpack.h: the layout is the specification's. A program that
 * has dlpack.h includes it first.
 */

#ifndef WEIR_DLPACK_H
#define WEIR_DLPACK_H

#include "../weir.h"


/** @file weir/dlpack.h
 * tensors to and from other libraries. */
#ifndef DLPACK_DLPACK_H_

typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLExtDev = 12, kDLCUDAManaged = 13 } DLDeviceType;

typedef struct DLDevice {
    int32_t device_type;
    int32_t device_id;
} DLDevice;

typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLOpaqueHandle = 3, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6 } DLDataTypeCode;

typedef struct DLDataType {
    uint8_t code; /* a DLDataTypeCode */
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major and compact */
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLPackVersion {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif /* DLPACK_DLPACK_H_ */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Exchange -----------------------------------------------------------------------------------------------------
 * Tensors to and from other libraries, by DLPack: the same memory, with an owner that is told once when it is not
 * used any more.
 */

/** Flags of weir_tensor_to_dlpack and weir_tensor_from_dlpack. */
typedef enum weir_dlpack_flags {
  /**
   * Export: mark the tensor read-only. Import: accept memory that must not be written; the caller makes sure that
   * nothing writes it.
   */
  WEIR_DLPACK_READ_ONLY = 1,
  /**
   * Export and import: copy the elements into memory that only the receiver owns. An import then accepts any
   * strides.
   */
  WEIR_DLPACK_COPY = 2
} weir_dlpack_flags;

/**
 * Exports a tensor to another library: a DLManagedTensorVersioned of DLPack 1.0 over the same memory, row-major, with
 * strides. The receiver calls its deleter, once and on any thread; the memory stays until then. `producer` (may be
 * NULL) is the stream that writes the tensor. With `consumer`, a stream of weir's, that stream waits for the work that
 * `producer` has queued so far, and nothing blocks; without, this call waits for it. So a program that implements
 * `__dlpack__(stream=None)` passes its stream and NULL. Later work on `producer` is not kept away from the receiver.
 * Memory of a CUDA engine is kDLCUDA, and a receiver's own stream becomes a consumer by weir_stream_wrap_cuda; that of
 * an emulated engine is kDLExtDev. `flags`: of weir_dlpack_flags.
 *
 * Blocking: until `producer` has finished the work queued so far, if there is no `consumer` or a copy is made; else
 * never. Ownership: *out_managed is the caller's until its deleter is called; it holds a reference to the tensor.
 * Errors: INVALID_ARGUMENT (NULL, unknown flags, a dynamic tensor); UNIMPLEMENTED (memory that DLPack has no name for,
 * a copy of device memory); those of weir_stream_synchronize and weir_stream_wait_event.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_to_dlpack(weir_tensor *tensor,
                                  weir_stream *producer,
                                  weir_stream *consumer,
                                  uint64_t flags,
                                  struct DLManagedTensorVersioned **out_managed);

/**
 * As weir_tensor_to_dlpack, as a DLManagedTensor for libraries that know no other. It cannot express that it is
 * read-only, nor that it is a copy.
 *
 * Blocking: as weir_tensor_to_dlpack. Ownership: as there. Errors: as there.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_to_dlpack_legacy(weir_tensor *tensor,
                                         weir_stream *producer,
                                         weir_stream *consumer,
                                         uint64_t flags,
                                         struct DLManagedTensor **out_managed);

/**
 * Creates a tensor over another library's memory. Elements are float32, float16, bfloat16, int64, int32, int8, uint8
 * or bool; others are refused by name. Strides must be row-major and compact, unless WEIR_DLPACK_COPY asks for a copy.
 * Read-only memory is accepted with WEIR_DLPACK_COPY or WEIR_DLPACK_READ_ONLY. The memory must be the engine's: the
 * host's for a CPU engine (kDLCPU, kDLCUDAHost), kDLCUDA with the engine's index for a CUDA engine, kDLExtDev for an
 * emulated one; for the latter two WEIR_DLPACK_COPY is not implemented. The contents must be there, or ordered before
 * the stream that uses them: ask the other library for the export on the stream None, or on that stream's native
 * handle.
 *
 * Ownership: on success *managed is weir's, which calls its deleter once, when nothing uses the memory any more, in
 * any thread (with WEIR_DLPACK_COPY in this call); on failure it stays the caller's. Errors: INVALID_ARGUMENT (NULL,
 * flags, elements, strides, rank, device, alignment); FAILED_PRECONDITION (it is read-only); UNIMPLEMENTED (another
 * major version, an engine whose memory DLPack has no name for); OUT_OF_RANGE; RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_from_dlpack(weir_engine *engine,
                                    struct DLManagedTensorVersioned *managed,
                                    uint64_t flags,
                                    weir_tensor **out_tensor);

/**
 * As weir_tensor_from_dlpack, from a DLManagedTensor, which says nothing about writing.
 *
 * Ownership: as weir_tensor_from_dlpack. Errors: as there.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_from_dlpack_legacy(weir_engine *engine,
                                           struct DLManagedTensor *managed,
                                           uint64_t flags,
                                           weir_tensor **out_tensor);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_DLPACK_H */
