/* weir: a device layer with a C ABI that runs on your threads.
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */


#ifndef WEIR_H
#define WEIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Map
 *
 *   status and errors   weir_status, weir_last_error_message, weir_status_name
 *   library             weir_version, weir_check_version, weir_runtime_get_info, weir_runtime_get_threads
 *   thread pool         weir_threadpool_vtable, weir_threadpool_create*, weir_parallel_for
 *   task groups         weir_task_group_create, weir_task_group_spawn, weir_task_group_synchronize, weir_task_group_cancel
 *   conformance         weir_threadpool_conformance, weir_device_conformance, weir_threadpool_attr_set_checking
 *   engine              weir_engine_attr_*, weir_engine_create, weir_engine_synchronize
 *   device              weir_device_vtable, weir_device_register, weir_device_load, weir_engine_kind_*
 *   emulated devices    weir_engine_attr_set_emulation, weir_emulated_get_races
 *   native handles      weir_engine_get_native_handle, weir_stream_get_native_handle, weir_event_get_native_handle
 *   CUDA                weir_cuda_get_device_info, weir_stream_wrap_cuda, weir_kernel_create_cuda
 *   memory              weir_allocator_create, weir_engine_attr_set_memory_limit, weir_engine_get_memory_info, weir_engine_trim
 *   stream              weir_stream_attr_*, weir_stream_create, weir_enqueue_task, weir_stream_synchronize
 *   copies              weir_enqueue_copy, weir_enqueue_fill
 *   event               weir_event_create, weir_event_record, weir_stream_wait_event
 *   everything at once  weir_sync_devices, weir_async_scope_begin, weir_time_ns
 *   domain              weir_domain_create, weir_engine_attr_set_domain, weir_sync_domain, weir_engine_get_name
 *   buffer              weir_buffer_create, weir_buffer_pin, weir_memory
 *   tensor              weir_tensor_desc, weir_tensor_create, weir_memory
 *   kernel              weir_kernel_create_*, weir_enqueue, weir_kernel_context_*
 *   elements            weir_kernel_create_{eltwise,binary,select,convert,quantize,dequantize}
 *   moving elements     weir_kernel_create_transpose, _concat, _slice, _pad, _reshape, _gather
 *   rows and columns    weir_kernel_create_softmax, _reduce, _argmax, _norm
 *   kernel of a device  weir_kernel_create_named
 *   kernel cache        weir_kernel_cache_set_capacity, weir_kernel_cache_get_info
 *   asynchronous kernel weir_host_kernel_desc (compute_async), weir_completion_done
 *   shapes of a run     weir_tensor_create, weir_kernel_context_allocate_output, WEIR_DIM_DYNAMIC
 *   products            weir_sgemm, weir_gemm_u8s8s32, weir_gemm_s8s8s32
 *   convolution         weir_kernel_create_conv, weir_kernel_create_pooling
 *   recurrent cells     weir_kernel_create_lstm, weir_kernel_create_gru
 *   packed weights      weir_packed_weights_create, weir_matmul_desc (weights)
 *   products of bytes   weir_kernel_create_matmul_int8
 *   graph               weir_graph_create, weir_graph_add_*, weir_graph_compile
 *   placement           weir_graph_set_input_engine, weir_graph_set_output_engine, weir_graph_set_placement
 *   segments            weir_compile_options_set_segments, weir_compile_options_set_device_control
 *   regions             weir_compile_options_set_regions, WEIR_DEVICE_REGIONS
 *   program and run     weir_program_run, weir_program_run_many, weir_program_start, weir_run_*
 *   partial runs        weir_compile_options_set_partial_runs, weir_run_options_set_outputs
 *   runs at once        weir_compile_options_set_max_concurrent_runs, weir_run_options_set_no_wait
 *   notices             weir_notice, weir_run_notify, weir_event_notify, weir_run_options_set_notice
 *   failures            weir_failure, weir_thread_get_failure, weir_stream_get_failure, weir_run_get_failure
 *   exchange            weir_tensor_to_dlpack, weir_tensor_from_dlpack (weir/dlpack.h)
 *   resources           weir_resource_lookup, _list, _delete, _clear, weir_resource_lookup_or_create
 *   variable            weir_variable_create, weir_kernel_create_variable
 *   lookup table        weir_table_create, weir_table_insert, weir_table_find, weir_table_export
 *   figures, costs      weir_program_get_info, weir_program_get_node_stats, weir_program_save_costs
 *
 * Rules for every call
 *
 *   - Calls return a weir_status, 0 = WEIR_OK. Outputs come last; on failure pointer outputs are NULL and nothing
 *     else is written. The text of the failure names the call, the argument or object, and the cause. Nothing ever
 *     aborts the process.
 *   - Shared objects have _create, _retain and _release; settings and builders have _create and _destroy. No call
 *     consumes an argument.
 *   - _release and _destroy take NULL, never block, and may come in any order: children keep their parents alive.
 *   - Handles carry a tag: a handle of the wrong kind is an error status, as far as that can be seen.
 *   - A text is copied into `buffer`, with its NUL; *out_length is its length without. With capacity 0 the call only
 *     tells the length (buffer may be NULL); with a buffer out_length may be NULL. If capacity is too small, the call
 *     fails with OUT_OF_RANGE, and *out_length is set.
 *   - A struct that begins with struct_size may be older or newer than the library; set it to sizeof the struct,
 *     and zero the rest.
 *   - After fork, the child can do what needs no thread, pool or device: products without a pool, and cpu engines,
 *     synchronous streams, kernels, graphs and programs that it makes itself. What it inherited it can only release,
 *     which does nothing. The rest returns FAILED_PRECONDITION once an engine, a pool or a plug-in's device has existed.
 *   - The library stays loaded after dlclose, and does nothing at exit.
 */

/* Of DLPack: dlpack.h or weir/dlpack.h says what is in them. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* WEIR_STATIC: define it when you link the static library on Windows. */
#if defined(_WIN32) && !defined(WEIR_STATIC)
#define WEIR_API __declspec(dllimport)
#else
#define WEIR_API
#endif

/* A status that is ignored is a mistake. For a parser that knows no attributes, define it as nothing before. */
#if !defined(WEIR_NODISCARD)
#if defined(__cplusplus) && __cplusplus >= 201703L
#define WEIR_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define WEIR_NODISCARD __attribute__((warn_unused_result))
#else
#define WEIR_NODISCARD
#endif
#endif


/** Time-outs. All time-outs are relative and in nanoseconds. */
#define WEIR_TIMEOUT_INFINITE UINT64_MAX

/** A dimension that is known only at run time, or that matches anything in a kernel's signature. */
#define WEIR_DIM_DYNAMIC -1

/** Major version of this header. The library's own is in weir_version. */
#define WEIR_VERSION_MAJOR 0

/** Minor version of this header. */
#define WEIR_VERSION_MINOR 1

/** Patch version of this header. */
#define WEIR_VERSION_PATCH 0

/**
 * Number of the binary interface; it is part of the library's soname. Libraries with the same number can replace
 * one another.
 */
#define WEIR_ABI_VERSION 1

/** The codes a weir_status can hold. */
typedef enum weir_status_code {
  /** Success. */
  WEIR_OK = 0,
  /** The run or call was cancelled. */
  WEIR_CANCELLED = 1,
  /** A host callback failed with a code that weir does not know. */
  WEIR_UNKNOWN = 2,
  /** An argument is wrong in any state of the library: NULL, wrong handle, unknown enum value or flag bit. */
  WEIR_INVALID_ARGUMENT = 3,
  /** The time given for a wait or a run has passed. The work itself goes on unless the call says otherwise. */
  WEIR_DEADLINE_EXCEEDED = 4,
  /** A named thing does not exist. */
  WEIR_NOT_FOUND = 5,
  /** A name is already taken. */
  WEIR_ALREADY_EXISTS = 6,
  /** The caller may not do this. */
  WEIR_PERMISSION_DENIED = 7,
  /** Out of memory, or a limit was reached; the text names the size or the limit. */
  WEIR_RESOURCE_EXHAUSTED = 8,
  /** The object is not in a state in which this call is possible. */
  WEIR_FAILED_PRECONDITION = 9,
  /** The work was abandoned because something it depends on failed; the text names the origin. */
  WEIR_ABORTED = 10,
  /** An index or a size is outside its range, or a size computation overflows. */
  WEIR_OUT_OF_RANGE = 11,
  /** The library was built without this, or it does not exist for this kind of engine. */
  WEIR_UNIMPLEMENTED = 12,
  /** A defect of the library (a caught panic). The text says where; please report it. */
  WEIR_INTERNAL = 13,
  /** The thing exists but cannot be used now (no device, no driver). */
  WEIR_UNAVAILABLE = 14,
  /** Data was lost or corrupted. */
  WEIR_DATA_LOSS = 15,
  /**
   * The device has failed for good: everything on it fails with this, waits end, and a newly created engine may
   * work. Abseil has no such code.
   */
  WEIR_DEVICE_LOST = 64,
} weir_status_code;

/** Properties of a pool. Fixed for the life of the pool object. */
typedef enum weir_threadpool_flags {
  /** parallel_for may return before its tasks ran; weir waits with a counter of its own. */
  WEIR_THREADPOOL_ASYNCHRONOUS = 1,
  /**
   * Small pieces of a region are welcome, four per thread or more (Eigen, oneTBB). Without it (OpenMP) there are
   * about two per thread, the first ones large.
   */
  WEIR_THREADPOOL_AUTO_BALANCING = 2,
  /**
   * A parallel_for that waits may be called from inside a task. Without it, and without schedule, a region that
   * starts inside a task of the same pool runs in its caller. (schedule, and an asynchronous parallel_for, may
   * always be called from inside a task.)
   */
  WEIR_THREADPOOL_NESTED = 4,
  /**
   * Only the pool's own threads run work that was given to it. Without this flag a thread that waits for such work,
   * wherever it waits, runs the part that has not begun. Requires in_parallel. Work that the pool refuses still runs
   * in the thread that offered it.
   */
  WEIR_THREADPOOL_OWN_THREADS_ONLY = 8,
} weir_threadpool_flags;

/** The verdict of weir_threadpool_conformance and weir_device_conformance on a clause. */
typedef enum weir_conformance_verdict {
  /** Nothing wrong was seen. */
  WEIR_CONFORMANCE_PASS = 0,
  /** The clause is broken; the text says how. */
  WEIR_CONFORMANCE_FAIL = 1,
  /** The pool or device lacks the function that the clause is about. */
  WEIR_CONFORMANCE_NOT_OFFERED = 2,
  /** Legal, but worth knowing about the pool. */
  WEIR_CONFORMANCE_NOTE = 3,
  /** Not checked, because an earlier call has not returned. */
  WEIR_CONFORMANCE_NOT_CHECKED = 4,
} weir_conformance_verdict;

/** Element types. All are storage types; the built-in kernels compute in f32. */
typedef enum weir_dtype_value {
  /** In a signature: any type. Never the type of a tensor. */
  WEIR_DTYPE_ANY = 0,
  /** IEEE 754 binary32. */
  WEIR_F32 = 1,
  /** Signed 32-bit integer, two's complement. */
  WEIR_S32 = 2,
  /** Unsigned 8-bit integer. */
  WEIR_U8 = 3,
  /** Signed 8-bit integer. */
  WEIR_S8 = 4,
  /** IEEE 754 binary16. */
  WEIR_F16 = 5,
  /** bfloat16: the upper half of a binary32. */
  WEIR_BF16 = 6,
  /** One byte, 0 or 1. */
  WEIR_BOOL = 7,
  /**
   * Signed 64-bit integer, two's complement: for keys of tables, indices of gather, and data movement kernels
   * (transpose, concat, slice, reshape, gather). No kernel computes with it.
   */
  WEIR_S64 = 8,
} weir_dtype_value;

/** Limits of the API. */
typedef enum weir_limit {
  /** Maximum number of dimensions of a tensor. */
  WEIR_MAX_RANK = 8,
  /** Maximum number of inputs, and of outputs, of one kernel. */
  WEIR_MAX_ARGS = 64,
} weir_limit;

/** Kinds of engines. A build or a machine may lack some: weir_engine_count counts the devices of a kind. */
typedef enum weir_engine_kind_value {
  /** The host's processors, through a thread pool or the calling thread. */
  WEIR_ENGINE_CPU = 1,
  /** NVIDIA GPUs through the CUDA driver. */
  WEIR_ENGINE_CUDA = 2,
  /**
   * Devices that the library emulates on a thread of its own, in memory that the host cannot access: for tests, with
   * a seeded order of work, faults on request, and a checker of the order (weir_emulation).
   */
  WEIR_ENGINE_EMULATED = 3,
} weir_engine_kind_value;

/** Optional capabilities of a plug-in's device. */
typedef enum weir_device_capability {
  /** Its memory is a separate address space: the host cannot read or write it, whatever the address is. */
  WEIR_DEVICE_OWN_MEMORY = 1,
  /**
   * Its functions may be called from several threads at once. Otherwise weir serialises all calls for a device with
   * a lock, and makes none that blocks: event_synchronize and event_callback are not used, and event_query is called
   * instead.
   */
  WEIR_DEVICE_CONCURRENT = 2,
  /** Events with WEIR_EVENT_TIMING record times. Requires event_elapsed. */
  WEIR_DEVICE_TIMING = 4,
  /** It copies bytes to and from other devices of the same kind. Requires copy_peer. */
  WEIR_DEVICE_PEER_COPY = 8,
  /** It calls back when an event is reached. Requires event_callback. */
  WEIR_DEVICE_CALLBACK = 16,
  /** It gives out native handles. Requires native_handle. */
  WEIR_DEVICE_NATIVE_HANDLE = 32,
  /**
   * It allocates pinned host memory, from and to which it copies directly. Requires host_allocate and
   * host_deallocate.
   */
  WEIR_DEVICE_PINNED_MEMORY = 64,
  /** It pins host memory that others have allocated. Requires host_register and host_unregister. */
  WEIR_DEVICE_REGISTER_MEMORY = 128,
  /** It tells at once whether all work of a stream is done. Requires stream_query. */
  WEIR_DEVICE_IDLE_QUERY = 256,
  /**
   * It records work once and replays it many times, each time as one submission. Requires record, executable_update,
   * executable_destroy and replay.
   */
  WEIR_DEVICE_RECORDINGS = 512,
  /**
   * Recordings may have branches and loops, which it decides by numbers in its own memory. Only with
   * WEIR_DEVICE_RECORDINGS.
   */
  WEIR_DEVICE_CONTROL_FLOW = 1024,
  /**
   * It prepares launches that are repeated, so that each costs less. Requires prepare, launch_prepared and
   * prepared_destroy.
   */
  WEIR_DEVICE_PREPARED_LAUNCHES = 2048,
  /** Its kernels need scratch memory. Requires kernel_scratch. */
  WEIR_DEVICE_SCRATCH = 4096,
  /**
   * It calls host functions, on a thread of its own, with tensors in memory that the host can touch then. Recipes
   * have a host function (`host_call`), and kernels of weir_kernel_create_host are offered to it, too.
   */
  WEIR_DEVICE_HOST_KERNELS = 8192,
  /**
   * An output of a kernel may share the memory of an input that is like it, where the same kernel of a cpu engine
   * allows that.
   */
  WEIR_DEVICE_IN_PLACE = 16384,
  /** The texts of error_text name the engine and the failed operation: weir adds nothing in front. */
  WEIR_DEVICE_WHOLE_TEXTS = 32768,
  /** Functions that destroy, deallocate or close may be called inside a callback of event_callback. */
  WEIR_DEVICE_ENDS_IN_CALLBACKS = 65536,
  /**
   * Each tensor's memory must come from allocate and go back to deallocate: the memory mode of its engines is
   * WEIR_MEMORY_MODE_DIRECT unless they ask for another.
   */
  WEIR_DEVICE_DIRECT_MEMORY = 131072,
  /** It compiles several nodes of a program to one kernel. Requires region_compile. */
  WEIR_DEVICE_REGIONS = 262144,
} weir_device_capability;

/** Bits of weir_device_vtable.flags. */
typedef enum weir_device_vtable_flags {
  /** weir_engine_create_all leaves out its devices, since they are not devices of the machine. */
  WEIR_DEVICE_UNLISTED = 1,
} weir_device_vtable_flags;

/** Kinds of objects for native_handle of a weir_device_vtable. */
typedef enum weir_device_object {
  /** The device. */
  WEIR_DEVICE_OBJECT_DEVICE = 1,
  /** A stream of it. */
  WEIR_DEVICE_OBJECT_STREAM = 2,
  /** An event of it. */
  WEIR_DEVICE_OBJECT_EVENT = 3,
} weir_device_object;

/** The kinds of steps of a recording. */
typedef enum weir_device_work_kind {
  /** A launch of a kernel. */
  WEIR_DEVICE_WORK_LAUNCH = 1,
  /** A copy. */
  WEIR_DEVICE_WORK_COPY = 2,
  /** A fill: all bytes get one value. */
  WEIR_DEVICE_WORK_FILL = 3,
  /** A branch: one of several lists of steps runs. Only with WEIR_DEVICE_CONTROL_FLOW, like the next one. */
  WEIR_DEVICE_WORK_BRANCH = 4,
  /** A loop: a list of steps is repeated. */
  WEIR_DEVICE_WORK_LOOP = 5,
} weir_device_work_kind;

/** The predicates of a recording's loop. */
typedef enum weir_device_relation {
  /** The integer at the first address is not 0: a WEIR_BOOL, WEIR_U8, WEIR_S8 or WEIR_S32. */
  WEIR_DEVICE_NOT_ZERO = 0,
  /**
   * The number at the first address is equal to the one at the second, both WEIR_F32 or both WEIR_S32; likewise
   * below. A NaN is unequal to all numbers, and neither less nor greater.
   */
  WEIR_DEVICE_EQ = 1,
  /** They are not equal. */
  WEIR_DEVICE_NE = 2,
  /** The first one is less. */
  WEIR_DEVICE_LT = 3,
  /** The first one is less or equal. */
  WEIR_DEVICE_LE = 4,
  /** The first one is greater. */
  WEIR_DEVICE_GT = 5,
  /** The first one is greater or equal. */
  WEIR_DEVICE_GE = 6,
} weir_device_relation;

/** Forms of a kernel's source. */
typedef enum weir_cuda_source_value {
  /** Text of CUDA C++, compiled by NVRTC for the engine's device. The entry must be extern "C". */
  WEIR_CUDA_SOURCE_TEXT = 1,
  /** Text of PTX, compiled by the driver. */
  WEIR_CUDA_SOURCE_PTX = 2,
  /** A CUBIN or fat binary for the engine's device. */
  WEIR_CUDA_SOURCE_BINARY = 3,
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
  WEIR_CUDA_ARGUMENT_VALUE = 5,
} weir_cuda_argument_kind_value;

/**
 * Thread modes of engines. In every mode a pool of the call comes before a pool of the stream, and that before the
 * engine's. weir_engine_attr_set_thread_mode describes the modes of accelerator engines.
 */
typedef enum weir_thread_mode_value {
  /**
   * The default: the pool given by weir_engine_attr_set_threadpool, which others may share; without one the calling
   * thread.
   */
  WEIR_THREAD_MODE_GLOBAL = 1,
  /** A built-in pool for this engine alone. It starts and ends with the engine. */
  WEIR_THREAD_MODE_PRIVATE = 2,
  /**
   * A built-in pool shared by all engines of this kind in this mode. It starts with the first and ends with the
   * last.
   */
  WEIR_THREAD_MODE_KIND = 3,
  /** No pool: the calling thread, regardless of the environment. */
  WEIR_THREAD_MODE_CALLER = 4,
} weir_thread_mode_value;

/** Wait policies: how a thread waits for a device after its spin budget. */
typedef enum weir_wait_policy_value {
  /** Spins and sleeps as suits the device. */
  WEIR_WAIT_DEFAULT = 0,
  /** Sleeps until the device wakes it. */
  WEIR_WAIT_BLOCK = 1,
  /**
   * Keeps polling, and yields the processor in between: least latency, at the price of a busy processor during the
   * wait.
   */
  WEIR_WAIT_YIELD = 2,
} weir_wait_policy_value;

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
  WEIR_MEMORY_MODE_DIRECT = 2,
} weir_memory_mode_value;

/** Where the memory of a tensor or a buffer comes from, if it is not new memory of its engine's. */
typedef enum weir_memory_source_value {
  /** Memory of the caller's that the engine's kernels can reach. */
  WEIR_MEMORY_FOREIGN = 0,
  /** A part of a buffer, for a tensor. */
  WEIR_MEMORY_BUFFER = 1,
  /** New host memory that a device copies directly from and to, for an object of a CPU engine. */
  WEIR_MEMORY_PINNED = 2,
} weir_memory_source_value;

/** Reasons for which weir starts a thread. There are no others. */
typedef enum weir_thread_origin_value {
  /** weir_threadpool_create_builtin. */
  WEIR_THREAD_ORIGIN_BUILTIN_POOL = 1,
  /** weir_threadpool_create_seeded. */
  WEIR_THREAD_ORIGIN_SEEDED_POOL = 2,
  /**
   * An asynchronous stream whose pool cannot take single tasks, or that has no pool; or the notices (weir_notice) of
   * an accelerator's engine.
   */
  WEIR_THREAD_ORIGIN_LANE = 3,
  /** An engine in mode WEIR_THREAD_MODE_PRIVATE. */
  WEIR_THREAD_ORIGIN_ENGINE_POOL = 4,
  /** Engines in mode WEIR_THREAD_MODE_KIND. */
  WEIR_THREAD_ORIGIN_KIND_POOL = 5,
  /** weir_threadpool_conformance, which calls the pool from threads that the pool has never seen. */
  WEIR_THREAD_ORIGIN_CONFORMANCE = 6,
  /** An emulated device, whose work the thread executes. */
  WEIR_THREAD_ORIGIN_DEVICE = 7,
  /** A device that cannot report when an event was reached, from the first wait on that does not hold a host thread. */
  WEIR_THREAD_ORIGIN_WATCH = 8,
} weir_thread_origin_value;

/** Bits of weir_emulation.flags. */
typedef enum weir_emulation_flags {
  /**
   * The checker follows the bytes that operations declare to read and write, and reports conflicts that nothing
   * orders.
   */
  WEIR_EMULATION_CHECK = 1,
  /** With CHECK: the later operation of a report fails, late, with FAILED_PRECONDITION. */
  WEIR_EMULATION_STRICT = 2,
  /**
   * The device's thread polls the clock for the last 60 us before an operation is due, instead of sleeping:
   * operations then end exactly to a microsecond, at the price of a processor.
   */
  WEIR_EMULATION_PRECISE = 4,
} weir_emulation_flags;

/** How an emulated device treats regions: parts of a program that it may compile to one kernel. */
typedef enum weir_emulation_regions {
  /** It claims none of their nodes. */
  WEIR_EMULATION_REGIONS_NONE = 0,
  /** It compiles them. */
  WEIR_EMULATION_REGIONS_ALL = 1,
  /** It claims three nodes of four, in the region's order, and each one from the ninth on separately. */
  WEIR_EMULATION_REGIONS_SOME = 2,
  /** It declines each region when asked to compile it, with UNIMPLEMENTED. */
  WEIR_EMULATION_REGIONS_DECLINED = 3,
} weir_emulation_regions;

/** Kinds of reports by the checker of emulated devices. */
typedef enum weir_emulated_race_kind {
  /** The second operation reads bytes that the first writes, and nothing makes it wait. */
  WEIR_RACE_READ_AFTER_WRITE = 1,
  /** The second operation writes bytes that the first reads, and nothing makes it wait. */
  WEIR_RACE_WRITE_AFTER_READ = 2,
  /** Both write the same bytes, and nothing orders them. */
  WEIR_RACE_WRITE_AFTER_WRITE = 3,
  /** The second operation uses bytes that the host has freed (the first), or never had. */
  WEIR_RACE_USE_AFTER_FREE = 4,
  /** The host frees bytes (the second) that the first operation may still use. */
  WEIR_RACE_FREED_IN_USE = 5,
  /** The second operation uses bytes of a new allocation that the first may still use as a part of an old one. */
  WEIR_RACE_REUSED_IN_USE = 6,
  /**
   * As the first three, although the second operation's stream waited for an event of the other stream: the event
   * was recorded too soon, before the first operation.
   */
  WEIR_RACE_RECORDED_TOO_SOON = 7,
  /** A stream waits for an event that was never recorded. */
  WEIR_RACE_WAIT_BEFORE_RECORD = 8,
  /** weir itself reads or writes pinned memory (the second) that the first operation may still use. */
  WEIR_RACE_HOST_ACCESS = 9,
} weir_emulated_race_kind;

/** Flags of weir_stream_create. */
typedef enum weir_stream_flags {
  /** In order; on the CPU the work runs before the enqueuing call returns. */
  WEIR_STREAM_DEFAULT = 0,
  /** In order; enqueuing calls return at once. The same as weir_stream_attr_set_asynchronous(attr, 1). */
  WEIR_STREAM_ASYNCHRONOUS = 1,
} weir_stream_flags;

/** Flags of weir_event_create. */
typedef enum weir_event_flags {
  /** No time stamp. */
  WEIR_EVENT_DEFAULT = 0,
  /** Records the time at which the stream reached the event, for weir_event_elapsed_ns. */
  WEIR_EVENT_TIMING = 1,
} weir_event_flags;

/** Flags of a host kernel. */
typedef enum weir_kernel_flags {
  /** Output i may share memory with an input. Without this flag overlapping arguments are refused. */
  WEIR_KERNEL_IN_PLACE = 1,
  /**
   * The outputs depend on the inputs alone, and there are no side effects: compile may call it once and keep the
   * outputs.
   */
  WEIR_KERNEL_PURE = 2,
  /**
   * The body may block: wait for a file, a socket, a lock. A graph with such a kernel compiles only with a pool for
   * it (weir_compile_options_set_blocking_threadpool). A worker of another pool runs it only while that worker waits
   * for it, and only if the pool has not begun it for 50 ms.
   */
  WEIR_KERNEL_MAY_BLOCK = 4,
  /**
   * Shapes may be known only when the body runs. In a graph, inputs may leave dimensions open (WEIR_DIM_DYNAMIC) as
   * far as `inputs` does; the body gets views with the shapes of the run. The body allocates outputs that `outputs`
   * or `infer` leaves open (weir_kernel_context_allocate_output); `infer` is not required for them, and may be given
   * open dimensions. Such kernels run as nodes of graphs, and on a stream if no output is open.
   */
  WEIR_KERNEL_DYNAMIC = 8,
} weir_kernel_flags;

/** Flags of weir_matmul_desc. */
typedef enum weir_matmul_flags {
  /** A is given as [..., K, M]. */
  WEIR_MATMUL_TRANSPOSE_A = 1,
  /** B is given as [..., N, K]. */
  WEIR_MATMUL_TRANSPOSE_B = 2,
  /** A third input, bias[N], is added to each row. */
  WEIR_MATMUL_BIAS = 4,
  /**
   * The result is max(x, 0). A NaN stays a NaN. The same as WEIR_ACTIVATION_RELU, and not together with another
   * activation.
   */
  WEIR_MATMUL_RELU = 8,
  /** The last input, of the shape of C, is added. */
  WEIR_MATMUL_SUM = 16,
  /** C, bias and addend are f32 even if A and B are f16 or bf16. */
  WEIR_MATMUL_F32_RESULT = 32,
  /**
   * f32 factors may be rounded to TF32 (10 bits of fraction) before they are multiplied, where the device has units
   * for it and is faster with them: on CUDA engines with cuBLASLt. No effect elsewhere. Without this flag f32
   * products use all bits.
   */
  WEIR_MATMUL_ALLOW_TF32 = 64,
} weir_matmul_flags;

/**
 * Unary functions of x, with the parameters alpha (a) and beta (b) of weir_eltwise_desc where the formula names them.
 * Infinities give the limits of the function, and a NaN stays a NaN.
 */
typedef enum weir_eltwise_op_value {
  /** x where x >= 0, else a x: the rectifier, and with a > 0 the leaky one. */
  WEIR_ELTWISE_RELU = 1,
  /** x where x >= 0, else a (e^x - 1). */
  WEIR_ELTWISE_ELU = 2,
  /** x (1 + erf(x / sqrt 2)) / 2. */
  WEIR_ELTWISE_GELU_ERF = 3,
  /** x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. */
  WEIR_ELTWISE_GELU_TANH = 4,
  /** tanh x. */
  WEIR_ELTWISE_TANH = 5,
  /** 1 / (1 + e^-x). */
  WEIR_ELTWISE_SIGMOID = 6,
  /** x / (1 + e^(-a x)); SiLU with a = 1. */
  WEIR_ELTWISE_SWISH = 7,
  /** e^x. */
  WEIR_ELTWISE_EXP = 8,
  /** The natural logarithm. */
  WEIR_ELTWISE_LOG = 9,
  /** The square root. */
  WEIR_ELTWISE_SQRT = 10,
  /** x x. */
  WEIR_ELTWISE_SQUARE = 11,
  /** |x|. */
  WEIR_ELTWISE_ABS = 12,
  /** -x. */
  WEIR_ELTWISE_NEG = 13,
  /** min(max(x, a), b): b for all x if a > b. Either may be an infinity. */
  WEIR_ELTWISE_CLIP = 14,
  /** a x + b, as IEEE has it: a NaN of an infinity if a is 0. */
  WEIR_ELTWISE_LINEAR = 15,
  /** a x^b, as the pow of C. */
  WEIR_ELTWISE_POW = 16,
  /** min(max(a x + b, 0), 1). */
  WEIR_ELTWISE_HARDSIGMOID = 17,
  /** x min(max(a x + b, 0), 1). */
  WEIR_ELTWISE_HARDSWISH = 18,
  /** The nearest integer, the even one of two. */
  WEIR_ELTWISE_ROUND = 19,
  /** x tanh(ln(1 + e^x)). */
  WEIR_ELTWISE_MISH = 20,
  /** ln(1 + e^(a x)) / a; a is not 0. */
  WEIR_ELTWISE_SOFTPLUS = 21,
} weir_eltwise_op_value;

/** Binary elementwise functions. */
typedef enum weir_binary_op_value {
  /** a + b. */
  WEIR_BINARY_ADD = 1,
  /** a - b. */
  WEIR_BINARY_SUB = 2,
  /** a b. */
  WEIR_BINARY_MUL = 3,
  /** a / b. */
  WEIR_BINARY_DIV = 4,
  /** The lesser one; a NaN if one is NaN. */
  WEIR_BINARY_MIN = 5,
  /** The greater one; a NaN if one is NaN. */
  WEIR_BINARY_MAX = 6,
  /** a^b, as the pow of C. */
  WEIR_BINARY_POW = 7,
  /** a == b. */
  WEIR_BINARY_EQ = 8,
  /** a != b: also if one is NaN, where all other comparisons are false. */
  WEIR_BINARY_NE = 9,
  /** a < b. */
  WEIR_BINARY_LT = 10,
  /** a <= b. */
  WEIR_BINARY_LE = 11,
  /** a > b. */
  WEIR_BINARY_GT = 12,
  /** a >= b. */
  WEIR_BINARY_GE = 13,
} weir_binary_op_value;

/** Flags of weir_quantize_desc and weir_dequantize_desc. */
typedef enum weir_quantize_flags {
  /** A third input, zero_point. Without it zero points are 0. */
  WEIR_QUANTIZE_ZERO_POINT = 1,
} weir_quantize_flags;

/** Shape of the offset in `co`. */
typedef enum weir_gemm_offset_value {
  /** One number, for all elements. */
  WEIR_GEMM_OFFSET_FIXED = 1,
  /** A row of n numbers, added to each row of C. */
  WEIR_GEMM_OFFSET_ROW = 2,
  /** A column of m numbers, added to each column of C. */
  WEIR_GEMM_OFFSET_COLUMN = 3,
} weir_gemm_offset_value;

/** A function applied to each element of a result before it is stored. */
typedef enum weir_activation_value {
  /** Nothing. */
  WEIR_ACTIVATION_NONE = 0,
  /** max(x, 0). A NaN stays a NaN. */
  WEIR_ACTIVATION_RELU = 1,
  /** x / 2 * (1 + erf(x / sqrt 2)). */
  WEIR_ACTIVATION_GELU_ERF = 2,
  /** x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))). */
  WEIR_ACTIVATION_GELU_TANH = 3,
  /** 1 / (1 + e^-x). */
  WEIR_ACTIVATION_SIGMOID = 4,
  /** Hyperbolic tangent. */
  WEIR_ACTIVATION_TANH = 5,
} weir_activation_value;

/** How the dimensions of images and signals are ordered. */
typedef enum weir_data_layout_value {
  /** [N, C, W], or [N, C, H, W]. */
  WEIR_LAYOUT_NCHW = 0,
} weir_data_layout_value;

/** How the dimensions of the weights of a convolution are ordered. */
typedef enum weir_weights_layout_value {
  /** [O, I / groups, KW], or [O, I / groups, KH, KW]. */
  WEIR_LAYOUT_OIHW = 0,
} weir_weights_layout_value;

/** The values assumed beyond the ends of an axis. */
typedef enum weir_padding_value {
  /** Zeros. */
  WEIR_PADDING_ZERO = 0,
  /** The elements mirrored at the first and the last one, which are not repeated. Shorter than the axis. */
  WEIR_PADDING_REFLECT = 1,
} weir_padding_value;

/** Flags of weir_conv_desc. */
typedef enum weir_conv_flags {
  /** A third input, bias[O], is added to each channel. */
  WEIR_CONV_BIAS = 1,
} weir_conv_flags;

/** The value that pooling computes from a window. */
typedef enum weir_pooling_op_value {
  /** The greatest element; NaN if there is one; -infinity for a window without elements. */
  WEIR_POOLING_MAX = 1,
  /** The average over all taps; padding counts as zeros. */
  WEIR_POOLING_AVERAGE = 2,
  /** The average over the elements, without padding; 0 for a window without elements. */
  WEIR_POOLING_AVERAGE_INSIDE = 3,
} weir_pooling_op_value;

/** Flags of weir_pooling_desc. */
typedef enum weir_pooling_flags {
  /** The window is the whole signal or image; the output has one element per channel. The other members are 0. */
  WEIR_POOLING_GLOBAL = 1,
} weir_pooling_flags;

/** How the blocks of the weights and biases of a cell are ordered. */
typedef enum weir_gate_order_value {
  /** As in ONNX. LSTM: input, output, forget, cell. GRU: update, reset, new. */
  WEIR_GATES_ONNX = 0,
  /** As in PyTorch. LSTM: input, forget, cell, output. GRU: reset, update, new. */
  WEIR_GATES_TORCH = 1,
} weir_gate_order_value;

/** Flags of weir_lstm_desc. */
typedef enum weir_lstm_flags {
  /** Two more inputs, the biases of W and of R, [4 H] each, are added to the gates. */
  WEIR_LSTM_BIAS = 1,
} weir_lstm_flags;

/** Flags of weir_gru_desc. */
typedef enum weir_gru_flags {
  /** Two more inputs, the biases of W and of R, [3 H] each, are added to the gates. */
  WEIR_GRU_BIAS = 1,
  /**
   * The reset gate is applied to h * R^T and its bias, not to h: what ONNX calls linear_before_reset, and the only
   * way of PyTorch.
   */
  WEIR_GRU_LINEAR_BEFORE_RESET = 2,
} weir_gru_flags;

/** Flags of weir_packed_weights_desc. */
typedef enum weir_packed_weights_flags {
  /** The tensor is [N, K]. */
  WEIR_PACKED_WEIGHTS_TRANSPOSED = 1,
} weir_packed_weights_flags;

/** Flags of weir_matmul_int8_desc. */
typedef enum weir_matmul_int8_flags {
  /** A is given as [K, M]. */
  WEIR_MATMUL_INT8_TRANSPOSE_A = 1,
  /** B is given as [N, K]. */
  WEIR_MATMUL_INT8_TRANSPOSE_B = 2,
  /** One more input, bias[N] of s32, is added to the sums. */
  WEIR_MATMUL_INT8_BIAS = 4,
  /** The last input, scales[N] of f32, has a scale for each column, besides `scale`. */
  WEIR_MATMUL_INT8_SCALES = 8,
} weir_matmul_int8_flags;

/** Contents of a margin. */
typedef enum weir_pad_mode_value {
  /** One value. */
  WEIR_PAD_CONSTANT = 0,
  /** The tensor, mirrored at its first and its last element, which are not repeated: c b | a b c | b a. */
  WEIR_PAD_REFLECT = 1,
  /** The nearest element of the tensor: a a | a b c | c c. */
  WEIR_PAD_EDGE = 2,
} weir_pad_mode_value;

/** Flags of weir_softmax_desc. */
typedef enum weir_softmax_flags {
  /** The logarithm of the softmax: x - max - ln(sum). */
  WEIR_SOFTMAX_LOG = 1,
} weir_softmax_flags;

/** Normalisations. */
typedef enum weir_norm_op_value {
  /**
   * Layer: (x - mean) / sqrt(variance + epsilon), with mean and variance of the elements along `axis` and all axes
   * behind it. Scale and shift have the shape of these axes.
   */
  WEIR_NORM_LAYER = 1,
  /** Root mean square: x / sqrt(mean of x * x + epsilon), of the same elements, with the same scale and shift. */
  WEIR_NORM_RMS = 2,
  /**
   * Batch, with given statistics: (x - mean) / sqrt(variance + epsilon), where mean and variance are further inputs,
   * with one element for each element along `axis`, the channels. So have scale and shift.
   */
  WEIR_NORM_BATCH = 3,
  /**
   * Group: as layer, with mean and variance over all elements of a group of channels and of the axes behind them,
   * for each position in front of the channels. Scale and shift have one element for each channel.
   */
  WEIR_NORM_GROUP = 4,
} weir_norm_op_value;

/** Flags of weir_norm_desc. */
typedef enum weir_norm_flags {
  /** The result is multiplied with an input. */
  WEIR_NORM_SCALE = 1,
  /** An input is added to the result, after the multiplication. */
  WEIR_NORM_SHIFT = 2,
} weir_norm_flags;

/** Reductions. A NaN among the elements gives a NaN. */
typedef enum weir_reduce_op_value {
  /** The sum; 0 for no elements. */
  WEIR_REDUCE_SUM = 1,
  /** The sum divided by the number of elements; a NaN for no elements. */
  WEIR_REDUCE_MEAN = 2,
  /** The least element; infinity for no elements. */
  WEIR_REDUCE_MIN = 3,
  /** The greatest element; minus infinity for no elements. */
  WEIR_REDUCE_MAX = 4,
  /** The product; 1 for no elements. */
  WEIR_REDUCE_MUL = 5,
  /** With s the sum of |x| to the power of p: the root of max(s, eps). */
  WEIR_REDUCE_NORM_MAX = 6,
  /** The root of s + eps. */
  WEIR_REDUCE_NORM_SUM = 7,
  /** max(s, eps). */
  WEIR_REDUCE_NORM_POWER_MAX = 8,
  /** s + eps. */
  WEIR_REDUCE_NORM_POWER_SUM = 9,
  /**
   * Index of the greatest element, as s32, among those that are reduced to one, in their order in memory. The first
   * of equals, and the first NaN if there is one. Refused for no elements.
   */
  WEIR_REDUCE_ARGMAX = 10,
  /** Index of the least element, likewise. */
  WEIR_REDUCE_ARGMIN = 11,
} weir_reduce_op_value;

/** Flags of weir_reduce_desc. */
typedef enum weir_reduce_flags {
  /** The reduced axes stay, with one element each. */
  WEIR_REDUCE_KEEP_DIMS = 1,
} weir_reduce_flags;

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
  WEIR_DLPACK_COPY = 2,
} weir_dlpack_flags;

/** Kinds of resources. */
typedef enum weir_resource_kind_value {
  /** In a lookup: any kind. Never the kind of a resource. */
  WEIR_RESOURCE_ANY = 0,
  /** A tensor that lives between runs. */
  WEIR_RESOURCE_VARIABLE = 1,
  /** A lookup table. */
  WEIR_RESOURCE_TABLE = 2,
  /** A host object. */
  WEIR_RESOURCE_HOST = 3,
} weir_resource_kind_value;

/** Flags of weir_variable_create. */
typedef enum weir_variable_flags {
  /** Exclusive: nodes, streams and the host take turns, and a graph states the order of its nodes' accesses. */
  WEIR_VARIABLE_EXCLUSIVE = 0,
  /**
   * Optimistic: nobody waits. A read sees one whole value, never parts of two; no sum is lost; a graph need not
   * state an order.
   */
  WEIR_VARIABLE_OPTIMISTIC = 1,
} weir_variable_flags;

/** Operations of weir_kernel_create_variable. */
typedef enum weir_variable_op_value {
  /** No input; one output, the value as it is when the kernel runs. */
  WEIR_VARIABLE_READ = 1,
  /**
   * One input like the variable, its new value; no output. A write that has begun is completed, even if the run is
   * cancelled.
   */
  WEIR_VARIABLE_ASSIGN = 2,
  /**
   * As ASSIGN, and the input is added to the value: f32, bf16, f16, s32, s8, u8, with the sums of
   * weir_kernel_create_binary. Concurrent additions of several nodes are all included, in some order, which may show
   * in floating point.
   */
  WEIR_VARIABLE_ASSIGN_ADD = 3,
} weir_variable_op_value;

/** Operations of weir_kernel_create_table. */
typedef enum weir_table_op_value {
  /**
   * Inputs: keys, s64 of any shape; the row for missing keys. Outputs: the rows, of the keys' shape followed by the
   * row's; and bool of the keys' shape, whether each key was found. It sees all of an insert or nothing of it.
   */
  WEIR_TABLE_FIND = 1,
  /**
   * Inputs: keys, s64 of any shape; rows, of the keys' shape followed by the row's. No output. As weir_table_insert:
   * in the order of the keys, all or none.
   */
  WEIR_TABLE_INSERT = 2,
  /** No input; one output, a scalar of s64, the number of keys. */
  WEIR_TABLE_SIZE = 3,
} weir_table_op_value;

/** Inputs or outputs of a program. */
typedef enum weir_port_kind_value {
  WEIR_PORT_INPUT = 1,
  WEIR_PORT_OUTPUT = 2,
} weir_port_kind_value;

/** The host memory that a device copies directly from and to. */
typedef enum weir_pinning {
  /** Memory that weir allocates for it: WEIR_MEMORY_PINNED. */
  WEIR_PINNING_ALLOCATES = 1,
  /** Memory allocated elsewhere, too: weir_buffer_pin. */
  WEIR_PINNING_REGISTERS = 2,
} weir_pinning;

/** Key types of tables. */
typedef enum weir_table_key_value {
  /** Signed 64-bit integers. */
  WEIR_TABLE_KEY_INT64 = 1,
  /** Strings of bytes of any length, any bytes. */
  WEIR_TABLE_KEY_BYTES = 2,
} weir_table_key_value;

/** Text formats for dumps. */
typedef enum weir_dump_format_value {
  /** Graphviz DOT. */
  WEIR_DUMP_DOT = 1,
  /** JSON (RFC 8259). */
  WEIR_DUMP_JSON = 2,
} weir_dump_format_value;

/** Text formats of reports. */
typedef enum weir_report_format_value {
  /** Lines to read. */
  WEIR_REPORT_TEXT = 1,
  /** JSON (RFC 8259). */
  WEIR_REPORT_JSON = 2,
} weir_report_format_value;

/** Values of weir_graph_set_forwarding other than the index of an input. */
typedef enum weir_forwarding_value {
  /**
   * The default: the output takes over an input's memory if the kernel has WEIR_KERNEL_IN_PLACE and is the last
   * reader of that input.
   */
  WEIR_FORWARD_AUTO = -1,
  /** The output has memory of its own. */
  WEIR_FORWARD_NEVER = -2,
} weir_forwarding_value;

/** How the engine of a node is chosen. */
typedef enum weir_placement_value {
  /** By the compile options; if they leave it open, the engine of its kernel. */
  WEIR_PLACEMENT_DEFAULT = 0,
  /** The engine of its kernel. */
  WEIR_PLACEMENT_KERNEL = 1,
  /**
   * Among the program's engines that have the kernel, the one with the fewest bytes to copy: of its inputs, and of
   * outputs that are needed on an engine already chosen. Constants in host memory count as nothing; ties go to the
   * first engine in the list given to weir_graph_compile. Kernels of variables, of other programs, with packed
   * weights, and those that only their engine's device knows (weir_kernel_create_named) stay on their own engine.
   */
  WEIR_PLACEMENT_ANY = 2,
} weir_placement_value;

/** A host-provided allocator that engines take their memory from. Shared: create, retain, release. */
typedef struct weir_allocator weir_allocator;

/** A range of an engine's memory, or of the caller's own, that tensors can lie in. Shared: create, retain, release. */
typedef struct weir_buffer weir_buffer;

/** Settings for weir_graph_compile. Owned: create, destroy. */
typedef struct weir_compile_options weir_compile_options;

/**
 * A call of an asynchronous kernel, until weir_completion_done is called for it. Not an object: it is neither retained
 * nor released.
 */
typedef struct weir_completion weir_completion;

/**
 * One user of the library among others in the process: a set of engines with its own waits and errors. Shared: create,
 * retain, release.
 */
typedef struct weir_domain weir_domain;

/** A device that runs kernels and owns memory. Shared: create, retain, release. */
typedef struct weir_engine weir_engine;

/** Settings for weir_engine_create. Owned: create, destroy. */
typedef struct weir_engine_attr weir_engine_attr;

/** A point in a stream that other streams and threads can wait for. Shared: create, retain, release. */
typedef struct weir_event weir_event;

/** A dataflow graph under construction. Owned: create, destroy; one thread at a time. */
typedef struct weir_graph weir_graph;

/** A function over tensors with a checked signature. Shared: create, retain, release. */
typedef struct weir_kernel weir_kernel;

/** Settings for weir_kernel_create_*. Owned: create, destroy. */
typedef struct weir_kernel_attr weir_kernel_attr;

/** A running call as the kernel's compute function sees it. Valid only during that call. */
typedef struct weir_kernel_context weir_kernel_context;

/** Weights of matrix products, packed once for all kernels and threads that use them. Shared: create, retain, release. */
typedef struct weir_packed_weights weir_packed_weights;

/**
 * A compiled graph: immutable and re-entrant, any number of runs at once. Shared: create (by compile), retain,
 * release.
 */
typedef struct weir_program weir_program;

/**
 * An object that an engine keeps by name: a variable, a lookup table, a host object. Shared: create or look up,
 * retain, release.
 */
typedef struct weir_resource weir_resource;

/** One run of a program that was started with weir_program_start. Shared: create (by start), retain, release. */
typedef struct weir_run weir_run;

/** Settings for one run of a program. Owned: create, destroy. */
typedef struct weir_run_options weir_run_options;

/** An in-order queue of work on one engine. Shared: create, retain, release. */
typedef struct weir_stream weir_stream;

/** Settings for weir_stream_create. Owned: create, destroy. */
typedef struct weir_stream_attr weir_stream_attr;

/** Tasks that are spawned while others run, and waited for together. Shared: create, retain, release. */
typedef struct weir_task_group weir_task_group;

/** A dense array of numbers in an engine's memory, or over memory of the caller's own. Shared: create, retain, release. */
typedef struct weir_tensor weir_tensor;

/**
 * A thread pool of the host (or one of the reference pools). All CPU work runs on such a pool or in the calling
 * thread. Shared: create, retain, release.
 */
typedef struct weir_threadpool weir_threadpool;

/** Settings for weir_threadpool_create_builtin. Owned: create, destroy. */
typedef struct weir_threadpool_attr weir_threadpool_attr;

/**
 * The result of a call: 0 (WEIR_OK) or one of the codes of enum weir_status_code. The values up to 16 are Abseil's
 * canonical codes (google/abseil status codes), those from 64 on are weir's own; all are permanent parts of the ABI.
 */
typedef int32_t weir_status;

/** Counters of the whole library in this process. */
typedef struct weir_runtime_info {
  /** sizeof(weir_runtime_info), set by the caller before the call. */
  size_t struct_size;
  /**
   * Threads that weir has started since it was loaded, for any reason. Threads of host pools are not counted; ask a
   * pool for them with weir_threadpool_get_num_threads.
   */
  uint64_t threads_started;
  /** Of these, threads that are running now. */
  uint64_t threads_alive;
  /** Heap allocations (malloc, realloc) that weir has made since it was loaded. */
  uint64_t allocations;
  /** Bytes that weir holds on the heap now. */
  uint64_t bytes_in_use;
  /**
   * Live thread pools. This count and those below fall when the object is gone: for a host pool, when its `release`
   * has returned.
   */
  uint64_t threadpools;
  /** Live engines. */
  uint64_t engines;
  /** Live streams. */
  uint64_t streams;
  /** Live events. */
  uint64_t events;
  /** Live tensors. */
  uint64_t tensors;
  /** Live kernels. */
  uint64_t kernels;
  /** Graphs under construction. */
  uint64_t graphs;
  /** Live programs. */
  uint64_t programs;
  /** Live runs: handles of weir_program_start. */
  uint64_t runs;
  /** Live attributes and options, of all kinds. */
  uint64_t attrs;
  /** Threads running now in built-in pools created by the host. */
  uint64_t threads_of_builtin_pools;
  /** Threads running now in seeded pools. */
  uint64_t threads_of_seeded_pools;
  /** Dedicated threads running now, each for one asynchronous stream or for the notices of one engine. */
  uint64_t threads_of_lanes;
  /** Threads running now in private pools of engines. */
  uint64_t threads_of_engines;
  /** Threads running now in pools shared by the engines of a kind. */
  uint64_t threads_of_kinds;
  /** Live packed weights; handles of kernels are not counted. */
  uint64_t packed_weights;
  /** Threads running now for devices: those of emulated devices, and those that watch events. */
  uint64_t threads_of_devices;
  /** Live host allocators, including those that only engines or their memory refer to. */
  uint64_t allocators;
  /** Live buffers, including those that only tensors refer to. */
  uint64_t buffers;
  /** Resources: variables, lookup tables, host objects. */
  uint64_t resources;
  /** Of these, the ones whose engine is gone: see weir_resource_get_leaks. */
  uint64_t leaked_resources;
  /** Live domains, including those that only engines refer to. */
  uint64_t domains;
  /** Task groups that are held or have tasks left. */
  uint64_t task_groups;
} weir_runtime_info;

/** Why weir started a thread: one of enum weir_thread_origin_value. */
typedef uint32_t weir_thread_origin;

/** A thread that weir has started. */
typedef struct weir_thread_info {
  /** sizeof(weir_thread_info). */
  size_t struct_size;
  /** Why it was started. */
  weir_thread_origin origin;
  /** Index in its pool; 0 for a dedicated thread. */
  uint32_t index;
  /** Id of its pool, as weir_threadpool_get_id returns it; 0 for a dedicated thread. */
  uint64_t pool;
  /** The system's thread id (Linux: gettid); 0 until the new thread has reported it. */
  uint64_t os_id;
  /**
   * Its name, NUL-terminated UTF-8: "weir-pool3-0" (of pool 3), "weir-seeded4-0", "weir-lane-ingest" (of stream
   * 'ingest'), "weir-cpu0-1" (of an engine cpu:0), "weir-kind-cpu-0". The system's own lists show the first 15
   * bytes; a longer name loses its middle there and keeps the index.
   */
  char name[32];
  /**
   * The object that it works for, NUL-terminated UTF-8, cut if too long: the stream's name, the engine ("cpu:0"),
   * the kind ("cpu"); "" in a pool created by the host.
   */
  char owner[64];
} weir_thread_info;

/**
 * One closure of weir's: call it as fn(arg, i). It never unwinds, never blocks on another closure of weir's, and may
 * call back into the pool it runs on.
 */
typedef void (*weir_task_fn)(void *arg, int32_t i);

/** Hints for a closure handed to schedule. They never change a result. */
typedef struct weir_task_hint {
  /** sizeof(weir_task_hint), set by weir. */
  size_t struct_size;
  /** Estimated run time in nanoseconds; 0 = unknown. */
  uint64_t cost_ns;
  /** Priority of the stream that submitted the work: below 0 = low, 0 = normal, above 0 = high. */
  int32_t priority;
  /** Reserved, 0. */
  uint32_t flags;
} weir_task_hint;

/**
 * The host's thread pool. A host provides parallel_for, schedule, or both; weir derives the other.
 *
 * Copied by weir_threadpool_create. All functions may be called from any thread, several at a time, and from inside
 * tasks of the pool. They must not throw, longjmp or unwind. weir holds no lock while it calls them.
 * docs/threadpool.md is the full contract.
 */
typedef struct weir_threadpool_vtable {
  /** sizeof(weir_threadpool_vtable) of the host's header. Members beyond it read as NULL. */
  size_t struct_size;
  /** OR of weir_threadpool_flags. */
  uint64_t flags;
  /**
   * Required. Threads that can run tasks at once, not counting the caller of weir. May change between calls;
   * values below 1 count as 1.
   */
  int32_t (*num_threads)(void *ctx);
  /**
   * Calls fn(arg, i) exactly once for each 0 <= i < n, on any threads, in any order, at once or one after the
   * other. Returns 0 when all have returned (with WEIR_THREADPOOL_ASYNCHRONOUS: when all are accepted), nonzero if
   * none was and will be called.
   */
  int32_t (*parallel_for)(void *ctx, int32_t n, weir_task_fn task, void *arg);
  /**
   * Calls fn(arg, 0) exactly once, on any thread, at any time, even before it returns. Returns 0, or nonzero if
   * it refuses: then fn is never called and weir does the work elsewhere.
   */
  int32_t (*schedule)(void *ctx, weir_task_fn task, void *arg, const struct weir_task_hint *hint);
  /**
   * Optional: nonzero if the calling thread belongs to this pool. Without it weir only knows the tasks that it
   * submitted itself.
   */
  int32_t (*in_parallel)(void *ctx);
  /** Optional: the calling thread's index in the pool, -1 for a foreign thread. */
  int32_t (*thread_index)(void *ctx);
  /** Optional: runs one queued task of the pool in the calling thread; 0 if there was none. */
  int32_t (*help)(void *ctx);
  /**
   * Optional: called exactly once, when the last task has done its work (the thread that ran it may still be on its
   * way out of it) and the last reference is gone. Never called inside a task of this pool: if the last reference
   * goes inside one, the next call of weir from elsewhere makes the call. Never called in a forked child.
   */
  void (*release)(void *ctx);
  /**
   * Optional: an upper bound of num_threads for the life of the pool; bounds scratch memory. Without it weir uses
   * the value of num_threads when scratch is first allocated.
   */
  int32_t (*max_threads)(void *ctx);
} weir_threadpool_vtable;

/**
 * Runs once after all pieces of a region, in the thread that leaves the region last, and not at all if a piece has
 * failed. Returns WEIR_OK, or the status that the region then returns.
 */
typedef int32_t (*weir_epilogue_fn)(void *arg);

/** How weir_parallel_for and its variants split a region. Zero in a member means "you choose". */
typedef struct weir_parallel_hint {
  /** sizeof(weir_parallel_hint) of the caller's header. */
  size_t struct_size;
  /**
   * Estimated nanoseconds per item (per point in several dimensions), fractions too. 0 = unknown: the caller begins
   * alone, and asks for helpers when it has seen what an item costs; the measured cost of a range function is
   * remembered.
   */
  double cost_ns;
  /**
   * Smallest piece worth handing out, in items; 0 = 1. Pieces begin at multiples of it. 0 in several dimensions,
   * where the tile is the grain.
   */
  int64_t grain;
  /** Most slots (threads at once) to use; 0 = the pool's width and the caller. */
  int32_t max_slots;
  /** Reserved, 0. */
  uint32_t flags;
  /** NULL, or a function to run after all pieces, with the same arg. */
  weir_epilogue_fn epilogue;
} weir_parallel_hint;

/**
 * Processes a piece of a region: the items begin <= i < end. `slot` (0 <= slot < the region's number of slots) is held
 * by no other piece that runs at the same time, so it may index scratch memory. Returns WEIR_OK, or a status that
 * stops the pieces that have not started.
 */
typedef int32_t (*weir_range_fn)(void *arg, int64_t begin, int64_t end, int32_t slot);

/**
 * Processes a box of a region over several dimensions: the points with begin[d] <= i[d] < end[d] in each dimension d.
 * Both arrays have as many members as the region has dimensions, and are valid during the call. `slot` and the result
 * are as for weir_range_fn.
 */
typedef int32_t (*weir_box_fn)(void *arg, const int64_t *begin, const int64_t *end, int32_t slot);

/**
 * The costs of bringing threads of a pool to a region, in nanoseconds. A region asks for helpers if they save more
 * than that.
 */
typedef struct weir_threadpool_costs {
  /** sizeof(weir_threadpool_costs), set by the caller. */
  size_t struct_size;
  /** Time that the caller spends on each helper before it can work itself. */
  double submit_ns;
  /** Time from the request until the helper begins. */
  double arrive_ns;
  /** Time from the end of the last piece until the caller continues. */
  double join_ns;
} weir_threadpool_costs;

/**
 * A host function that runs as one piece of work: on a stream (weir_enqueue_task) or as a node of a graph
 * (weir_graph_add_task). Returns WEIR_OK or the code of its failure. Must not throw, longjmp or unwind.
 */
typedef int32_t (*weir_host_fn)(void *arg);

/** Releases what a callback's context holds. Runs exactly once, after the last use, on any thread. */
typedef void (*weir_destroy_fn)(void *ctx);

/**
 * Receives the end of a run, or of the record of an event; called once for each. `status` is how it ended: WEIR_OK,
 * the first node's failure, CANCELLED, DEADLINE_EXCEEDED, or ABORTED if the stream had failed before. `run` is the
 * run, borrowed for the call; NULL for an event, and for a run of weir_program_run. Must not throw, longjmp or unwind.
 */
typedef void (*weir_notify_fn)(void *ctx, weir_status status, struct weir_run *run);

/**
 * How the host is told that something is over: by a function, by an eventfd, or by both, the function first. For
 * weir_run_notify, weir_event_notify and weir_run_options_set_notice.
 *
 * *When.* It is over by then: weir_run_query, or weir_event_query for that record, says 1, and a wait for it returns
 * at once. If the status is not WEIR_OK, weir_last_error_message and weir_thread_get_failure describe the failure
 * inside of the function, and so does weir_run_get_failure if there is a run.
 *
 * *Where.* The function is called
 *
 * - for work on a stream of a CPU engine: in the thread that ends it, which is a worker of the stream's pool, the
 *   stream's own thread, or a thread that waits for it or was refused by the pool. The call is part of the stream's
 *   work: the stream continues after it returns;
 * - for work on a stream of another device: in the engine's notice thread, which weir starts for the first such
 *   function and keeps as long as the engine (WEIR_THREAD_ORIGIN_LANE); one call after the other, in the order of the
 *   ends that weir saw;
 * - for what was over before the asking call: in the calling thread, before that call returns.
 *
 * It is never called on a device's thread, nor while weir holds a lock, nor inside of another such function on the
 * same stack: there it runs after that one. So a function may start the next run, whose function starts another, for
 * ever.
 *
 * *What it may call.* Everything that a host function on that stream may (weir_enqueue_task): it may queue work, start
 * runs, query, and release objects. It should not block: the stream, or the engine's other notices, wait for it. The
 * rules for a wait for one stream, event or run are those of a host function on that stream; waits for everything
 * (weir_sync_devices) are refused with FAILED_PRECONDITION.
 *
 * *The eventfd* gets 1 added, in the same thread, or in the one that finds the end if there is neither function nor
 * release. It remains the host's, must be non-blocking (EFD_NONBLOCK), and must stay open until the notice is over;
 * nothing is added if its counter is already full.
 *
 * *The end.* `release` is called once with `ctx` when weir will not use it again, after the function and the eventfd.
 * If the asking call fails, neither function nor release is called, and the host keeps `ctx`.
 */
typedef struct weir_notice {
  /** sizeof(weir_notice) of the caller's header. */
  size_t struct_size;
  /** The function; NULL = none. */
  weir_notify_fn notify;
  /** For `notify` and `release`. */
  void *ctx;
  /** NULL = none. */
  weir_destroy_fn release;
  /** The eventfd; 0 = none. */
  int32_t event_fd;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_notice;

/** Options of weir_threadpool_conformance and weir_device_conformance. Zero in a member means the default. */
typedef struct weir_conformance_options {
  /** sizeof(weir_conformance_options) of the caller's header. */
  size_t struct_size;
  /**
   * How long a clause waits for tasks that do not come, in nanoseconds; default 2 s, at most 100 s. A call of the
   * pool that takes five times as long counts as one that never returns.
   */
  uint64_t budget_ns;
  /** Seed of the random lengths of tasks and pauses. */
  uint64_t seed;
  /** How often each check is repeated; default 16, at most 100000. */
  int32_t rounds;
  /** Reserved, 0. */
  uint32_t flags;
} weir_conformance_options;

/** The result for one clause of docs/threadpool.md or docs/devices.md. */
typedef struct weir_conformance_line {
  /** sizeof(weir_conformance_line), set by weir. */
  size_t struct_size;
  /** The clause, such as "H5". */
  const char *clause;
  /** The requirement that the clause states, or the subject of a note. */
  const char *title;
  /** The observation, for people to read. */
  const char *text;
  /** One of weir_conformance_verdict. */
  int32_t verdict;
  /** Reserved, 0. */
  int32_t reserved;
} weir_conformance_line;

/** Receives a line. The line and its texts are valid during the call. */
typedef void (*weir_conformance_fn)(void *report_arg, const struct weir_conformance_line *line);

/** The kind of an engine: one of enum weir_engine_kind_value. */
typedef uint32_t weir_engine_kind;

/** Where the threads of an engine come from: one of enum weir_thread_mode_value. */
typedef uint32_t weir_thread_mode;

/** How threads wait for the device of an engine: one of enum weir_wait_policy_value. */
typedef uint32_t weir_wait_policy;

/** Facts about an engine. */
typedef struct weir_engine_info {
  /** sizeof(weir_engine_info), set by the caller before the call. */
  size_t struct_size;
  /** Kind of the engine. */
  uint32_t kind;
  /** Index among the engines of its kind. */
  uint32_t index;
  /** Processors that this process may use (from the affinity mask and the cgroup limit). */
  uint32_t num_processors;
  /** Reserved, 0. */
  uint32_t reserved;
  /** Alignment of memory that the engine allocates, in bytes. */
  uint64_t alignment;
  /** Name of the device, NUL-terminated UTF-8. */
  char name[64];
  /** The engine's thread mode: one of enum weir_thread_mode_value. */
  uint32_t thread_mode;
  /** Threads of the pool that weir has started for the engine or for its kind; 0 in the other modes. */
  uint32_t thread_count;
  /** The device's memory in bytes; 0 = unknown. */
  uint64_t memory_bytes;
} weir_engine_info;

/** Facts about a device, filled by the plug-in. */
typedef struct weir_device_info {
  /** sizeof(weir_device_info), set by weir. A plug-in writes no member that lies beyond it. */
  size_t struct_size;
  /** OR of weir_device_capability. */
  uint64_t capabilities;
  /** Its memory in bytes; 0 = not known. */
  uint64_t memory_bytes;
  /** Every address that allocate gives is a multiple of it: a power of two, from 16 to 1048576. */
  uint64_t alignment;
  /** A name for people, NUL-terminated UTF-8. */
  char name[64];
  /**
   * The most streams that it can use well: a program's work is spread over no more, whatever its engine's attributes
   * say. 0 = weir decides. Copies to and from the host may use additional streams.
   */
  uint32_t max_streams;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_device_info;

/** An address in a device's memory. Only the device may be able to read and write there; 0 is none. */
typedef uint64_t weir_device_address;

/** Attributes of a device's stream, filled by weir. */
typedef struct weir_device_stream_attr {
  /** sizeof(weir_device_stream_attr), set by weir. */
  size_t struct_size;
  /** A name for texts, NUL-terminated UTF-8; lives during the call. */
  const char *name;
  /** -100 to 100, more is sooner. A hint. */
  int32_t priority;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_device_stream_attr;

/** A callback of weir's for when an event is reached: the plug-in calls it once. */
typedef void (*weir_device_callback_fn)(void *arg);

/** An element type: one of enum weir_dtype_value. */
typedef uint32_t weir_dtype;

/**
 * Element type and shape of a dense, row-major tensor. rank 0 is a scalar.
 *
 * In a kernel's signature dtype WEIR_DTYPE_ANY and a dimension of WEIR_DIM_DYNAMIC (-1) match anything. An input of a
 * graph, a variable of a loop, the output of a kernel with WEIR_KERNEL_DYNAMIC and a dynamic tensor may have such
 * dimensions too: each run has its own. Texts show them as "f32[?,128]".
 */
typedef struct weir_tensor_desc {
  /** Element type. */
  weir_dtype dtype;
  /** Number of dimensions, at most WEIR_MAX_RANK. */
  uint32_t rank;
  /** Dimensions, the slowest first; those from `rank` on are ignored. */
  int64_t dims[8];
} weir_tensor_desc;

/** A tensor as a kernel sees it. */
typedef struct weir_tensor_view {
  /** First element. */
  void *data;
  /** Size of the data in bytes. */
  size_t bytes;
  /** Element type and shape. */
  struct weir_tensor_desc desc;
} weir_tensor_view;

/**
 * A kernel as a host function, on memory that the host can touch: weir's, for a device to call. It may block, and may
 * call weir. Any thread, several at a time. A code that is not WEIR_OK is the failure of the kernel: then `text` holds
 * the reason, at most `capacity` bytes of NUL-terminated UTF-8.
 */
typedef int32_t (*weir_device_host_call_fn)(void *user,
                                            const struct weir_tensor_view *inputs,
                                            size_t num_inputs,
                                            const struct weir_tensor_view *outputs,
                                            size_t num_outputs,
                                            char *text,
                                            size_t capacity);

/** The recipe of a device's kernel, filled by weir. All of it lives during the call. */
typedef struct weir_device_recipe {
  /** sizeof(weir_device_recipe), set by weir. */
  size_t struct_size;
  /**
   * The operation, NUL-terminated: "matmul" stands for weir_kernel_create_matmul, and so on; any other name comes
   * from weir_kernel_create_named.
   */
  const char *operation;
  /**
   * For weir's own operations the descriptor, such as weir_matmul_desc for "matmul", checked and with all members of
   * this version of weir: its struct_size says how much that is. Otherwise the attributes that
   * weir_kernel_create_named was given. NULL if there are none. Aligned to 8 bytes.
   */
  const void *attributes;
  /** Bytes of the attributes. */
  size_t attributes_bytes;
  /** Number of inputs. */
  size_t num_inputs;
  /** Number of outputs. */
  size_t num_outputs;
  /**
   * With WEIR_DEVICE_HOST_KERNELS: a host function that computes the same; NULL if there is none. Lives as long as
   * `host_user` is retained.
   */
  weir_device_host_call_fn host_call;
  /** First argument of the functions here. */
  void *host_user;
  /** Keeps `host_user` alive beyond kernel_create, until host_release is called for it. */
  weir_destroy_fn host_retain;
  /** Any thread. */
  weir_destroy_fn host_release;
} weir_device_recipe;

/**
 * One launch of a kernel, filled by weir. All of it lives during the call; the memory of the tensors until the launch
 * is done.
 */
typedef struct weir_device_launch {
  /** sizeof(weir_device_launch), set by weir. */
  size_t struct_size;
  /** The inputs. `data` is an address in the device's memory. */
  const struct weir_tensor_view *inputs;
  /** How many. */
  size_t num_inputs;
  /** The outputs, likewise. */
  const struct weir_tensor_view *outputs;
  /** How many. */
  size_t num_outputs;
  /**
   * Scratch memory of the device, as much as kernel_scratch has asked for, with any contents, aligned as device_info
   * says, and exclusive to this launch until it is done; 0 if none. Not set in a call of kernel_scratch.
   */
  weir_device_address scratch;
  /** How many bytes. */
  uint64_t scratch_bytes;
} weir_device_launch;

/**
 * A copy of a recording. Each end is in the memory of `device`, of another device of this vtable (with
 * WEIR_DEVICE_PEER_COPY), or, if the device is NULL, of the host: then the address is a pointer as a number.
 */
typedef struct weir_device_copy {
  /** sizeof(weir_device_copy), set by weir. */
  size_t struct_size;
  /** How many; 0 = no effect. */
  uint64_t bytes;
  /** The device whose memory is written; NULL = the host's. */
  void *to_device;
  /** Its address. */
  weir_device_address to;
  /** The device whose memory is read; NULL = the host's. */
  void *from_device;
  /** Its address. */
  weir_device_address from;
} weir_device_copy;

/** A fill of a recording. */
typedef struct weir_device_fill {
  /** sizeof(weir_device_fill), set by weir. */
  size_t struct_size;
  /** The address in the device's memory. */
  weir_device_address to;
  /** How many; 0 = no effect. */
  uint64_t bytes;
  /** The value of each byte. */
  uint8_t value;
  /** Reserved, 0. */
  uint8_t reserved[7];
} weir_device_fill;

/**
 * A branch of a recording: an integer in the device's memory, read when the branch's turn comes, chooses the list that
 * runs.
 */
typedef struct weir_device_branch {
  /** sizeof(weir_device_branch), set by weir. */
  size_t struct_size;
  /** The address of the integer, in the device's memory. */
  weir_device_address choice;
  /** Its type: WEIR_BOOL, WEIR_U8, WEIR_S8 or WEIR_S32. */
  uint32_t dtype;
  /**
   * 1: there are two lists; the first runs if the integer is 0, and the second if it is not. 0: the list with that
   * number runs, or the last one if there is none.
   */
  int32_t is_cond;
  /** The lists. */
  const struct weir_device_step_list *branches;
  /** How many, 1 or more. */
  size_t num_branches;
} weir_device_branch;

/**
 * A loop of a recording: its body runs as long as a predicate holds. The predicate is read from the device's memory
 * before each iteration, also the first. An iteration ends before the next one begins.
 */
typedef struct weir_device_loop {
  /** sizeof(weir_device_loop), set by weir. */
  size_t struct_size;
  /** One of weir_device_relation. */
  uint32_t relation;
  /** The type of the numbers that are read. */
  uint32_t dtype;
  /** Their addresses in the device's memory. WEIR_DEVICE_NOT_ZERO uses only the first one. */
  weir_device_address addresses[2];
  /** The steps of an iteration. */
  const struct weir_device_step_list *body;
  /**
   * Steps of the body after which the predicate may be read for the next iteration: every step that writes it is one
   * of these or comes before one of them. NULL: it is read after all steps.
   */
  const size_t *behind;
  /** How many. */
  size_t num_behind;
} weir_device_loop;

/** The work of a step. The member for its kind is set, and the others are NULL. */
typedef struct weir_device_work {
  /** sizeof(weir_device_work), set by weir. */
  size_t struct_size;
  /** One of weir_device_work_kind. */
  uint32_t kind;
  /** Reserved, 0. */
  uint32_t reserved;
  /** Its name for texts, NUL-terminated UTF-8. */
  const char *name;
  /** For a launch: the kernel. */
  void *kernel;
  /** For a launch: its arguments. */
  const struct weir_device_launch *launch;
  /** The copy. */
  const struct weir_device_copy *copy;
  /** The fill. */
  const struct weir_device_fill *fill;
  /** The branch. */
  const struct weir_device_branch *branch;
  /** The loop. */
  const struct weir_device_loop *again;
} weir_device_work;

/** A step of a list. This struct never grows. */
typedef struct weir_device_step {
  /** Its work. */
  const struct weir_device_work *work;
  /** Numbers of earlier steps of its own list that are over when it begins. */
  const size_t *after;
  /** How many. */
  size_t num_after;
} weir_device_step;

/**
 * Steps. Each may begin when the steps that it names are over; otherwise they run in any order, or side by side. This
 * struct never grows.
 */
typedef struct weir_device_step_list {
  /** The steps. */
  const struct weir_device_step *steps;
  /** How many; there may be none. */
  size_t num_steps;
} weir_device_step_list;

/**
 * A recording, filled by weir. All of it lives during the call; its kernels and memory as long as the executable that
 * is made of it.
 */
typedef struct weir_device_recording {
  /** sizeof(weir_device_recording), set by weir. */
  size_t struct_size;
  /** Its name for texts, NUL-terminated UTF-8. */
  const char *name;
  /** Its steps. */
  struct weir_device_step_list list;
} weir_device_recording;

/** A node of a region: one call of a kernel. Values are named by their numbers in the region. This struct never grows. */
typedef struct weir_device_region_node {
  /** Its name for texts, NUL-terminated UTF-8. */
  const char *name;
  /** The recipe of its kernel, as given to kernel_create. */
  const struct weir_device_recipe *recipe;
  /** The kernel that kernel_create made. It lives as long as the region's kernel. */
  void *kernel;
  /** The values that it reads. */
  const size_t *inputs;
  /** How many. */
  size_t num_inputs;
  /** The values that it computes: each value is computed by one node at most. */
  const size_t *outputs;
  /** How many. */
  size_t num_outputs;
  /** Numbers of earlier nodes that are over when it begins, besides those that compute what it reads. */
  const size_t *after;
  /** How many. */
  size_t num_after;
} weir_device_region_node;

/** A value of a region. This struct never grows. */
typedef struct weir_device_region_value {
  /** Its type and its shape, without open dimensions. */
  struct weir_tensor_desc desc;
  /**
   * The address of a constant in the device's memory, valid as long as the region's kernel; its bytes are there and
   * never change. 0 for other values.
   */
  weir_device_address constant;
} weir_device_region_value;

/**
 * A part of a program that a device may compile to one kernel, filled by weir: a convex subgraph with nodes of this
 * device only, so no path leaves it and comes back. All of it lives during the call; its kernels and constants as long
 * as the kernel that is made of it.
 */
typedef struct weir_device_region {
  /** sizeof(weir_device_region), set by weir. */
  size_t struct_size;
  /** Its name for texts, NUL-terminated UTF-8. */
  const char *name;
  /** Its nodes, each behind those that it waits for. */
  const struct weir_device_region_node *nodes;
  /** How many. */
  size_t num_nodes;
  /** Its values: inputs, constants, and the outputs of its nodes. */
  const struct weir_device_region_value *values;
  /** How many. */
  size_t num_values;
  /** The input values: the inputs of each launch, in this order. No constant is among them. */
  const size_t *inputs;
  /** How many. */
  size_t num_inputs;
  /** The values that are read outside: the outputs of each launch, in this order. All others stay inside. */
  const size_t *outputs;
  /** How many. */
  size_t num_outputs;
} weir_device_region;

/**
 * The devices of one kind, brought by a plug-in. docs/devices.md is the full contract.
 *
 * Copied by weir_device_register. `ctx` is the context registered with it; `device`, `stream`, `event` and `kernel`
 * come from the create functions, and are not NULL. Every function that can fail returns WEIR_OK or a code of
 * weir_status_code; if it fails, its outputs are unchanged. All return without waiting for the device, except those
 * that say "may block". All may be called from any thread, and at the same time for different devices. A device with
 * WEIR_DEVICE_CONCURRENT allows concurrent calls too, but only one thread at a time issues to a stream, and no object
 * is destroyed while it is in use. The functions must not throw, longjmp or unwind, and must not call weir, except for
 * the callback that they are given. Functions that destroy, deallocate, close or release are never called inside such
 * a callback, so they may join the thread that runs it. No function is called in a forked child.
 *
 * A stream does its work in order. Work fails late: the events behind it, on this stream and on streams that wait for
 * such an event, give the failure when they are queried, and later work is not done until stream_clear_error.
 * WEIR_DEVICE_LOST from any function means that the device has failed for good: from then on weir only destroys,
 * deallocates and closes, even objects that queued work uses.
 */
typedef struct weir_device_vtable {
  /** sizeof(weir_device_vtable) of the plug-in's header. Members beyond it read as NULL. */
  size_t struct_size;
  /** OR of weir_device_vtable_flags. */
  uint64_t flags;
  /** Required. The current number of devices. */
  int32_t (*device_count)(void *ctx, uint32_t *out_count);
  /** Required, may block. Opens device `index`. weir opens each device once at a time. */
  int32_t (*device_open)(void *ctx, uint32_t index, void **out_device);
  /** Required, may block. Closes the device. All of its objects have been destroyed. */
  void (*device_close)(void *ctx, void *device);
  /** Required. Facts about the device, which stay the same until it is closed. */
  int32_t (*device_info)(void *ctx, void *device, struct weir_device_info *info);
  /**
   * Optional. The reason for the last failure on this thread: writes at most `capacity` bytes of NUL-terminated
   * UTF-8. Also of a late failure that an event has just given.
   */
  void (*error_text)(void *ctx, char *buffer, size_t capacity);
  /**
   * Required, may block. Allocates `bytes` (1 or more) of memory with any contents, aligned as device_info says.
   * `name` names the purpose, and lives during the call. WEIR_RESOURCE_EXHAUSTED if there is no room.
   */
  int32_t (*allocate)(void *device, uint64_t bytes, const char *name, weir_device_address *out_address);
  /** Required, may block. Frees memory: an address and the bytes that it was allocated with. No issued work uses it. */
  void (*deallocate)(void *device, weir_device_address address, uint64_t bytes);
  /** Required. Creates a stream. */
  int32_t (*stream_create)(void *device, const struct weir_device_stream_attr *attr, void **out_stream);
  /** Required, may block. Destroys a stream. All of its work is done, unless the device is lost. */
  void (*stream_destroy)(void *device, void *stream);
  /** Required. Makes the stream work again after a failure. */
  int32_t (*stream_clear_error)(void *device, void *stream);
  /**
   * Required. Creates an event; as long as it is not recorded it counts as reached. `flags`: WEIR_EVENT_TIMING if
   * the device has WEIR_DEVICE_TIMING, or 0.
   */
  int32_t (*event_create)(void *device, uint64_t flags, void **out_event);
  /** Required. Destroys an event that is not in flight. */
  void (*event_destroy)(void *device, void *event);
  /** Required. Records the event behind all work issued to the stream so far. The event is not in flight. */
  int32_t (*event_record)(void *device, void *event, void *stream);
  /** Required. Makes later work of the stream wait, on the device, for the event as it was recorded last. */
  int32_t (*event_wait)(void *device, void *event, void *stream);
  /**
   * Required. Stores 1 if the event was reached, else 0. A code that is not WEIR_OK is the failure of the work
   * before the event, which counts as reached.
   */
  int32_t (*event_query)(void *device, void *event, int32_t *out_reached);
  /**
   * Optional, may block: like event_query, but waits until the event is reached, for `timeout_ns` at most. Several
   * threads may wait for one event. Without it weir polls event_query.
   */
  int32_t (*event_synchronize)(void *device, void *event, uint64_t timeout_ns, int32_t *out_reached);
  /** Required with WEIR_DEVICE_TIMING. Nanoseconds from `start` to `end`, both with timing, recorded and reached. */
  int32_t (*event_elapsed)(void *device, void *start, void *end, int64_t *out_nanoseconds);
  /**
   * Required with WEIR_DEVICE_CALLBACK. Calls `callback(arg)` once, when the event as it was recorded last is
   * reached, and also if it fails or the device is lost; on any thread, and at once if the event is already reached.
   * The callback may call functions of this vtable, so no lock that they need may be held. If this function fails,
   * the callback is never called.
   */
  int32_t (*event_callback)(void *device, void *event, weir_device_callback_fn callback, void *arg);
  /** Required without work_submit. Copies bytes from host memory, which stays unchanged until the copy is done. */
  int32_t (*copy_to_device)(void *device, void *stream, weir_device_address to, const void *from, uint64_t bytes);
  /**
   * Required without work_submit. Copies bytes to host memory. They are there when a later event of the stream is
   * reached.
   */
  int32_t (*copy_to_host)(void *device, void *stream, void *to, weir_device_address from, uint64_t bytes);
  /** Required without work_submit. Copies bytes within the device's memory; the two ranges do not overlap. */
  int32_t (*copy_on_device)(void *device, void *stream, weir_device_address to, weir_device_address from, uint64_t bytes);
  /**
   * Required with WEIR_DEVICE_PEER_COPY, unless there is work_submit. Copies bytes between the memories of two
   * devices of this vtable; `device` is one of them.
   */
  int32_t (*copy_peer)(void *device,
                       void *stream,
                       void *to_device,
                       weir_device_address to,
                       void *from_device,
                       weir_device_address from,
                       uint64_t bytes);
  /** Required without work_submit. Sets bytes of the device's memory. */
  int32_t (*fill)(void *device, void *stream, weir_device_address to, uint8_t value, uint64_t bytes);
  /**
   * Required. Creates the device's kernel of an operation, for any shapes that the operation takes.
   * WEIR_UNIMPLEMENTED if it has none.
   */
  int32_t (*kernel_create)(void *device, const struct weir_device_recipe *recipe, void **out_kernel);
  /** Required. Destroys a kernel. No launch of it is in flight. */
  void (*kernel_destroy)(void *device, void *kernel);
  /** Required without work_submit. Launches a kernel. */
  int32_t (*launch)(void *device, void *stream, void *kernel, const struct weir_device_launch *launch);
  /**
   * Required with WEIR_DEVICE_NATIVE_HANDLE. The handle of an object in the plug-in's native interface: `what` is
   * one of weir_device_object, `object` the object (the device itself for WEIR_DEVICE_OBJECT_DEVICE).
   */
  int32_t (*native_handle)(void *device, uint32_t what, void *object, uint64_t *out_handle);
  /** Optional, may block. Called once, after the vtable was unregistered or replaced and its last device was closed. */
  void (*release)(void *ctx);
  /**
   * Required with WEIR_DEVICE_PINNED_MEMORY, may block. Allocates `bytes` (1 or more) of host memory, aligned to 64
   * bytes, with any contents. Copies from and to it are asynchronous: copy_to_device and copy_to_host return without
   * waiting for them. `name` names the purpose, and lives during the call. WEIR_RESOURCE_EXHAUSTED if there is no
   * room.
   */
  int32_t (*host_allocate)(void *device, uint64_t bytes, const char *name, void **out_data);
  /**
   * Required with WEIR_DEVICE_PINNED_MEMORY, may block. Frees it, with the bytes that it was allocated with. No copy
   * uses it.
   */
  void (*host_deallocate)(void *device, void *data, uint64_t bytes);
  /**
   * Required with WEIR_DEVICE_REGISTER_MEMORY, may block. Pins host memory, at any address and of any size, so that
   * it is like that of host_allocate; no byte of it is registered yet.
   */
  int32_t (*host_register)(void *device, void *data, uint64_t bytes);
  /** Required with WEIR_DEVICE_REGISTER_MEMORY, may block. Unpins a whole registered range. No copy uses it. */
  void (*host_unregister)(void *device, void *data, uint64_t bytes);
  /**
   * Required with WEIR_DEVICE_IDLE_QUERY. Stores 1 if all work issued to the stream is done and nothing of it has
   * failed, else 0. A code that is not WEIR_OK counts as 0: an event reports the failure.
   */
  int32_t (*stream_query)(void *device, void *stream, int32_t *out_idle);
  /**
   * Required with WEIR_DEVICE_RECORDINGS, may block. Makes an executable of a recording. WEIR_UNIMPLEMENTED, or any
   * other code but WEIR_DEVICE_LOST, refuses this recording: weir then issues its steps one after the other, and the
   * program's report gives the text.
   */
  int32_t (*record)(void *device, const struct weir_device_recording *recording, void **out_executable);
  /**
   * Required with WEIR_DEVICE_RECORDINGS. Changes the addresses of a step of the recording's own list, from the next
   * replay on; replays in flight keep the old ones. The kernel, the shapes and the bytes stay the same, and the step
   * is no branch and no loop. If this fails, weir makes the recording anew.
   */
  int32_t (*executable_update)(void *device, void *executable, size_t step, const struct weir_device_work *work);
  /** Required with WEIR_DEVICE_RECORDINGS, may block. Destroys an executable. No replay of it is in flight. */
  void (*executable_destroy)(void *device, void *executable);
  /**
   * Required with WEIR_DEVICE_RECORDINGS. Runs all steps, behind earlier work of the stream and before later work.
   * Replays of one executable come one after the other, on one stream at a time. A step that fails ends the replay,
   * and the failure is reported late, as everywhere.
   */
  int32_t (*replay)(void *device, void *stream, void *executable);
  /**
   * Required with WEIR_DEVICE_PREPARED_LAUNCHES. Prepares a launch for launch_prepared, which may repeat it any
   * number of times, on one stream. `before` is NULL or a prepared launch that is no longer needed: success consumes
   * it, and it may be reused as the result. WEIR_UNIMPLEMENTED if this launch cannot be prepared: weir then launches
   * it each time.
   */
  int32_t (*prepare)(void *device,
                     void *kernel,
                     const struct weir_device_launch *launch,
                     void *before,
                     void **out_prepared);
  /**
   * Required with WEIR_DEVICE_PREPARED_LAUNCHES. Launches it. The device takes what it needs of it now: it may be
   * destroyed or consumed while the launch is in flight.
   */
  int32_t (*launch_prepared)(void *device, void *stream, void *prepared);
  /**
   * Required with WEIR_DEVICE_PREPARED_LAUNCHES, may block. Destroys a prepared launch, before its kernel is
   * destroyed.
   */
  void (*prepared_destroy)(void *device, void *prepared);
  /**
   * Required with WEIR_DEVICE_SCRATCH. The scratch memory that a launch needs, in bytes: it depends on types and
   * shapes, not on addresses. weir provides it with the launch (`scratch` of weir_device_launch), so that launches
   * allocate nothing.
   */
  int32_t (*kernel_scratch)(void *device, void *kernel, const struct weir_device_launch *launch, uint64_t *out_bytes);
  /**
   * Optional, may block. Like device_open, with the settings of weir_engine_attr_set_device_settings, in the
   * plug-in's own format; `bytes` is 0 if none were set. Without it a device has no settings.
   */
  int32_t (*device_open_with)(void *ctx, uint32_t index, const void *settings, size_t bytes, void **out_device);
  /**
   * Optional. The settings of a device, with defaults filled in: stores their size in bytes, and copies them if
   * `capacity` is at least that.
   */
  int32_t (*device_settings)(void *device, void *settings, size_t capacity, size_t *out_bytes);
  /**
   * Optional. Fails if another engine with these settings may not share the device. Without it the settings must
   * have the same bytes.
   */
  int32_t (*device_fits)(void *device, const void *settings, size_t bytes);
  /**
   * Optional, replaces launch, copy_to_device, copy_to_host, copy_on_device, copy_peer and fill, which may then be
   * NULL. Submits a launch, a copy or a fill, with its name.
   */
  int32_t (*work_submit)(void *device, void *stream, const struct weir_device_work *work);
  /**
   * Optional. Later work issued to the device, on any stream, may be deferred until batch_end. Batches of several
   * threads overlap. No thread waits for the device inside one.
   */
  void (*batch_begin)(void *device);
  /** Required with batch_begin. Ends a batch. */
  void (*batch_end)(void *device);
  /** Optional, may block. The plug-in keeps at most this many bytes of the memory that deallocate was given. */
  void (*memory_trim)(void *device, uint64_t keep_bytes);
  /**
   * Optional. weir is about to read (`writes` 0) or write (1) bytes of pinned memory: a device that checks looks
   * whether a copy in flight may use them. `name` names the user, and lives during the call.
   */
  void (*host_used)(void *device, const void *data, uint64_t bytes, int32_t writes, const char *name);
  /**
   * Optional. If this thread's latest failure was WEIR_ABORTED, because of a failure on another stream: the code of
   * that failure.
   */
  int32_t (*error_origin)(void *ctx);
  /**
   * Optional, and called only with WEIR_DEVICE_REGIONS. Says which nodes of a region the device would compile:
   * stores a number for each node, 0 to leave it alone. weir makes new regions from the nodes with one number each,
   * and none from those with 0. Without this function all nodes go together. WEIR_UNIMPLEMENTED leaves all of them
   * alone, as 0 for each does; any other code fails the program's compilation.
   */
  int32_t (*region_claim)(void *device, const struct weir_device_region *region, uint32_t *out_groups);
  /**
   * Required with WEIR_DEVICE_REGIONS, may block. Compiles a region to one kernel. It is launched, prepared,
   * recorded, queried for its scratch memory and destroyed like those of kernel_create, with the region's inputs and
   * outputs. WEIR_UNIMPLEMENTED declines: the region's nodes are launched one by one, and the program's report gives
   * the text. Any other code fails the program's compilation.
   */
  int32_t (*region_compile)(void *device, const struct weir_device_region *region, void **out_kernel);
} weir_device_vtable;

/** Settings of an emulated device. All members 0: as fast as its thread can, nothing fails, nothing is checked. */
typedef struct weir_emulation {
  /** sizeof(weir_emulation). */
  size_t struct_size;
  /**
   * 0: the device runs freely, in modelled time. Other values: it runs only while some thread waits for or queries
   * one of its events, takes no time, and the seed decides which queue goes next; the same seed and the same calls
   * give the same order.
   */
  uint64_t seed;
  /** Bits of enum weir_emulation_flags. */
  uint64_t flags;
  /** Minimum duration of each operation (kernel, copy, fill), in nanoseconds. */
  uint64_t latency_ns;
  /** Bandwidth that adds to the duration of copies and fills, in bytes per microsecond; 0 = no time. */
  uint64_t bytes_per_us;
  /**
   * Duration added to each kernel, in nanoseconds. It includes the kernel's computation on the host, and grows if
   * that takes longer.
   */
  uint64_t kernel_ns;
  /** Memory of the device in bytes; 0 = 1 GiB. Host memory is used only for the part in use. */
  uint64_t memory_bytes;
  /**
   * The operation with this number (1 = the first that was submitted to the device; kernels, copies and fills count)
   * fails late, with INTERNAL. 0 = none; the same holds for the next three members.
   */
  uint64_t fail_operation;
  /** The copy with this number fails late, with INTERNAL; only copies count. */
  uint64_t fail_copy;
  /** The allocation with this number fails with RESOURCE_EXHAUSTED; those of pinned memory count too. */
  uint64_t fail_allocation;
  /** The device is lost when it reaches the operation with this number. */
  uint64_t lose_operation;
  /** Duration of each launch of a recording before its first operation begins, in nanoseconds. */
  uint64_t replay_ns;
  /** One of enum weir_emulation_regions. */
  uint64_t regions;
  /** Compiling the region with this number fails with INTERNAL. 0 = none. */
  uint64_t fail_region;
} weir_emulation;

/** Counters of an emulated device since it was created. */
typedef struct weir_emulated_counters {
  /** sizeof(weir_emulated_counters). */
  size_t struct_size;
  /**
   * Kernels, copies and fills submitted, plus each evaluation of a branch or loop condition of a recording.
   * Operations inside a branch or loop count, here and below, when they begin.
   */
  uint64_t operations;
  /** Of these, the ones completed or skipped because of a failure. */
  uint64_t completed;
  /** Kernels submitted. */
  uint64_t launches;
  /** Copies submitted. */
  uint64_t copies;
  /** Fills submitted. */
  uint64_t fills;
  /** Waits for events submitted. */
  uint64_t waits;
  /** Records of events submitted. */
  uint64_t records;
  /** Allocations made, pinned memory included. */
  uint64_t allocations;
  /** Live allocations. */
  uint64_t allocations_in_use;
  /** Bytes of these. */
  uint64_t bytes_in_use;
  /** Peak of bytes_in_use. */
  uint64_t peak_bytes;
  /** Reports of the checker, with their counts. */
  uint64_t races;
  /** Submissions of recordings; their operations are counted above. */
  uint64_t replays;
  /** Copies from and to host memory that is not pinned. */
  uint64_t pageable_copies;
  /** Bytes of host memory that are pinned for the device now. */
  uint64_t pinned_bytes;
  /** Regions compiled to one kernel. */
  uint64_t regions;
} weir_emulated_counters;

/** A report of the checker. */
typedef struct weir_emulated_race {
  /** sizeof(weir_emulated_race). */
  size_t struct_size;
  /** One of enum weir_emulated_race_kind. */
  uint32_t kind;
  /** Reserved, 0. */
  uint32_t reserved;
  /** How often operations with these names on these streams were reported. */
  uint64_t count;
  /** Number of the first operation; of a free: of the last operation submitted before. */
  uint64_t first_number;
  /** Number of the second operation, likewise. */
  uint64_t second_number;
  /** First byte, from the start of the allocation; an address if the bytes are the host's. */
  uint64_t offset;
  /** Number of bytes, contiguous. */
  uint64_t bytes;
  /** The first operation, NUL-terminated UTF-8, cut if too long: "kernel 'add'", "free". */
  char first_name[64];
  /** Its stream; "" for actions of the host. */
  char first_stream[64];
  /** The second operation. */
  char second_name[64];
  /** Its stream. */
  char second_stream[64];
  /** The whole report as text. */
  char text[512];
} weir_emulated_race;

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

/** Figures of an engine's memory at one moment. Sizes are in bytes. */
typedef struct weir_memory_info {
  /** sizeof(weir_memory_info), set by the caller before the call. */
  size_t struct_size;
  /** Maximum that may be reserved; UINT64_MAX = no limit. */
  uint64_t limit;
  /** Bytes in tensors, buffers, scratch and the values of runs, rounded up to the sizes of blocks. */
  uint64_t in_use;
  /** Peak of in_use since the engine was created, or since weir_engine_reset_memory_peak. */
  uint64_t peak_in_use;
  /** Bytes in regions, whether in use or not. */
  uint64_t reserved;
  /** Peak of reserved since the engine was created, or since weir_engine_reset_memory_peak. */
  uint64_t peak_reserved;
  /** The largest free piece, not counting blocks kept for requests of their size. */
  uint64_t largest_free;
  /** Blocks in use. */
  uint64_t blocks;
  /** Regions. */
  uint64_t regions;
  /** Blocks handed out since the engine was created. */
  uint64_t allocations;
  /** Regions obtained since the engine was created: calls of the allocator. */
  uint64_t region_allocations;
  /** 1 - largest_free / (reserved - in_use); 0 if nothing is free. */
  double fragmentation;
  /**
   * Maximum of host memory that may be reserved for copies (weir_engine_attr_set_pinned_limit); UINT64_MAX = no
   * limit. For an engine that works in host memory this is the limit of all its memory, and the members below are 0.
   */
  uint64_t host_limit;
  /** Host memory in tensors and buffers that are pinned for this engine, and in staging memory of programs. */
  uint64_t host_in_use;
  /** Peak of host_in_use since the engine was created, or since weir_engine_reset_memory_peak. */
  uint64_t host_peak_in_use;
  /** Host memory in regions for copies, whether in use or not. */
  uint64_t host_reserved;
  /** Bytes of buffers that weir_buffer_pin has pinned for this engine. */
  uint64_t registered;
  /** OR of enum weir_pinning: the memory that can be pinned. 0: the memory for copies is ordinary memory. */
  uint32_t pinning;
  /** 0. */
  uint32_t reserved0;
} weir_memory_info;

/** The result of synchronising one engine. */
typedef struct weir_engine_sync {
  /** sizeof(weir_engine_sync), set by the caller in the first entry of an array. */
  size_t struct_size;
  /** WEIR_OK, DEADLINE_EXCEEDED, or the code of the engine's first late error. */
  weir_status status;
  /** 0. */
  uint32_t reserved;
  /** The engine's name after the word "engine": "engine cpu:0", "engine torch/encoder". */
  char engine[64];
  /** The text of the failure, cut if too long. */
  char message[256];
} weir_engine_sync;

/** Where memory comes from: one of enum weir_memory_source_value. */
typedef uint32_t weir_memory_source;

/** Memory for weir_tensor_create and weir_buffer_create. */
typedef struct weir_memory {
  /** sizeof(weir_memory), set by the caller. */
  size_t struct_size;
  /** Which of the members below count; those of other sources are 0. */
  weir_memory_source source;
  /** 0. */
  uint32_t reserved;
  /** FOREIGN: the elements, dense and row-major, aligned to the element size. NULL only for no bytes. */
  void *data;
  /**
   * FOREIGN: size of the memory at data; 0 = as large as the object. For a tensor whose shape a run decides it is the
   * most that a run may store.
   */
  size_t bytes;
  /**
   * FOREIGN, may be NULL: called with release_ctx exactly once, when nothing uses the memory any more: no reference
   * to the object, no tensor on the buffer, no queued work with such a tensor. It is called in the thread that drops
   * the last use: one that releases a handle, or one that works for a stream or a run. Not called if the creation
   * fails. Without it the memory must live until nothing uses it any more.
   */
  weir_destroy_fn release;
  /** Argument of release. */
  void *release_ctx;
  /**
   * BUFFER: a buffer of the same engine, which the tensor keeps. Any number of tensors may lie on a buffer and
   * overlap; a call of a kernel still refuses an output that shares memory with its other tensors.
   */
  struct weir_buffer *buffer;
  /** BUFFER: byte of the buffer that the tensor begins at. */
  size_t offset;
  /**
   * PINNED: an engine. Copies between the object and this engine's memory proceed by themselves, while copies of
   * other memory may be staged, or block the submitting thread. If its device pins no memory (`pinning` of
   * weir_memory_info is 0), or is the host, the memory is ordinary, so the same program works everywhere. It is
   * counted in weir_memory_info of this engine, under its limit, and returns to it; the object may outlive both.
   */
  struct weir_engine *device;
} weir_memory;

/**
 * The body of a host kernel. Inputs, outputs, scratch and the pool come from `context`, which is valid until the
 * function returns. Returns WEIR_OK or the code of its failure; weir_kernel_context_fail adds a text. May run on any
 * thread, several calls at once. Must not throw, longjmp or unwind.
 */
typedef int32_t (*weir_compute_fn)(void *user, struct weir_kernel_context *context);

/**
 * Computes a host kernel's output descriptors from its input descriptors, when they depend on them. Must give the same
 * answer for the same inputs. Returns WEIR_OK, or the code with which it refuses these inputs.
 */
typedef int32_t (*weir_infer_fn)(void *user,
                                 const struct weir_tensor_desc *inputs,
                                 size_t num_inputs,
                                 struct weir_tensor_desc *outputs,
                                 size_t num_outputs);

/**
 * Begins the work of an asynchronous host kernel, and returns without waiting for it. When the work is done, from any
 * thread and at any time, also before this function returns, the host calls weir_completion_done with `done`, once.
 * Until then `context`, the tensors and the scratch memory stay valid. Returns WEIR_OK, or the code of a failure to
 * begin; then the call has failed and weir_completion_done must not be called. May run on any thread, several calls at
 * once. Must not block, throw, longjmp or unwind.
 */
typedef int32_t (*weir_compute_async_fn)(void *user, struct weir_kernel_context *context, struct weir_completion *done);

/** A kernel that the host implements. */
typedef struct weir_host_kernel_desc {
  /** sizeof(weir_host_kernel_desc) of the caller's header. */
  size_t struct_size;
  /** Name for error texts and dumps, UTF-8; copied. */
  const char *name;
  /** The body. Either this or `compute_async` is given. */
  weir_compute_fn compute;
  /** First argument of `compute` and `infer`. */
  void *user;
  /** Optional: releases `user` when the kernel dies. Not called if the creation fails. */
  weir_destroy_fn destroy;
  /** Number of inputs, at most WEIR_MAX_ARGS. */
  size_t num_inputs;
  /** Pattern that each input must match (WEIR_DTYPE_ANY and -1 match anything), or NULL for no check. Copied. */
  const struct weir_tensor_desc *inputs;
  /** Number of outputs, at most WEIR_MAX_ARGS. */
  size_t num_outputs;
  /** Descriptors of the outputs; NULL if `infer` computes them. Copied. */
  const struct weir_tensor_desc *outputs;
  /**
   * Optional: computes the outputs' descriptors. Required if num_outputs > 0 and `outputs` is NULL or has a -1,
   * except for dimensions that stay open until the body runs (WEIR_KERNEL_DYNAMIC).
   */
  weir_infer_fn infer;
  /** Estimated run time in nanoseconds; 0 = unknown: the executor measures it. */
  uint64_t cost_ns;
  /** Scratch memory per slot, in bytes (weir_kernel_context_get_scratch). */
  size_t scratch_bytes;
  /** OR of weir_kernel_flags. */
  uint64_t flags;
  /** The beginning of a body that completes later. Such kernels run as nodes of graphs and on streams (weir_enqueue). */
  weir_compute_async_fn compute_async;
} weir_host_kernel_desc;

/** An activation: one of enum weir_activation_value. */
typedef uint32_t weir_activation;

/**
 * Matrix product: C[..., M, N] = activation(A[..., M, K] * B[..., K, N] + bias[N] + addend[..., M, N]). A and B are
 * both of f32, f16 or bf16; C, bias and addend are of the same type, or of f32 with WEIR_MATMUL_F32_RESULT.
 * Accumulators are f32, rounded once at the end. Leading dimensions are aligned at the last one and broadcast: a
 * dimension of 1 is broadcast. In a graph, dimensions of the inputs of this and of weir's other kernels may be open
 * (WEIR_DIM_DYNAMIC): then the run checks whether they fit.
 *
 * Inputs: A; B, unless there are packed `weights`; with WEIR_MATMUL_BIAS bias; with WEIR_MATMUL_SUM addend. Output: C.
 */
typedef struct weir_matmul_desc {
  /** sizeof(weir_matmul_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_matmul_flags. */
  uint64_t flags;
  /** The function applied to each element of C at the end. */
  weir_activation activation;
  /** Reserved, 0. */
  uint32_t reserved;
  /**
   * B, packed from the type of A, in place of the input; NULL = B is an input. Excludes WEIR_MATMUL_TRANSPOSE_B: the
   * orientation was fixed when the weights were packed.
   */
  struct weir_packed_weights *weights;
} weir_matmul_desc;

/**
 * Sum of two tensors, with broadcasting: shapes are aligned at the last dimension, and a dimension of 1 is broadcast.
 * f32. Inputs: a, b. Output: a + b.
 */
typedef struct weir_add_desc {
  /** sizeof(weir_add_desc) of the caller's header. */
  size_t struct_size;
} weir_add_desc;

/** Rectifier: max(x, 0), element by element; a NaN stays a NaN. f32. Input: x. Output: as x. */
typedef struct weir_relu_desc {
  /** sizeof(weir_relu_desc) of the caller's header. */
  size_t struct_size;
} weir_relu_desc;

/**
 * Softmax along one axis: exp(x - max) / sum; or its logarithm. f32, f16 and bf16, computed in f32. Input: x. Output:
 * as x. A row whose greatest element is an infinity or that holds a NaN becomes NaN.
 */
typedef struct weir_softmax_desc {
  /** sizeof(weir_softmax_desc) of the caller's header. */
  size_t struct_size;
  /** The axis; negative counts from the end, -1 = last. */
  int32_t axis;
  /** Reserved, 0. */
  int32_t reserved;
  /** OR of weir_softmax_flags. */
  uint64_t flags;
} weir_softmax_desc;

/**
 * Index of the greatest element along one axis; the first of equals, and the first NaN if there is one.
 * Input: x, f32. Output: s32, the shape of x without the axis.
 */
typedef struct weir_argmax_desc {
  /** sizeof(weir_argmax_desc) of the caller's header. */
  size_t struct_size;
  /** The axis; negative counts from the end, -1 = last. */
  int32_t axis;
  /** Reserved, 0. */
  int32_t reserved;
} weir_argmax_desc;

/** A kernel. */
typedef struct weir_kernel_info {
  /** sizeof(weir_kernel_info), set by the caller before the call. */
  size_t struct_size;
  /** Number of inputs. */
  size_t num_inputs;
  /** Number of outputs. */
  size_t num_outputs;
  /** Its name, NUL-terminated UTF-8, cut if too long. */
  char name[128];
} weir_kernel_info;

/** A kernel that only the device of an engine knows, by its name. */
typedef struct weir_named_kernel_desc {
  /** sizeof(weir_named_kernel_desc) of the caller's header. */
  size_t struct_size;
  /** The device's name for the operation, UTF-8; copied. Not one of weir's own operations. */
  const char *operation;
  /** Attributes in the device's own format; NULL = none. */
  const void *attributes;
  /** Bytes of the attributes. */
  size_t attributes_bytes;
  /** Number of inputs, at most WEIR_MAX_ARGS. */
  size_t num_inputs;
  /** The descriptor that each input must match (WEIR_DTYPE_ANY and -1 match anything), or NULL for no check. Copied. */
  const struct weir_tensor_desc *inputs;
  /** Number of outputs, at most WEIR_MAX_ARGS. */
  size_t num_outputs;
  /** The outputs' descriptors; NULL if `infer` computes them. Copied. */
  const struct weir_tensor_desc *outputs;
  /** Optional: computes the outputs' descriptors. Required if num_outputs > 0 and `outputs` is NULL or has a -1. */
  weir_infer_fn infer;
  /** First argument of `infer`. */
  void *user;
  /** Optional: releases `user` when the kernel dies. Not called if the creation fails. */
  weir_destroy_fn destroy;
} weir_named_kernel_desc;

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
  const struct weir_cuda_argument *arguments;
  /** Number of arguments. */
  size_t num_arguments;
  /** Number of inputs, at most WEIR_MAX_ARGS. */
  size_t num_inputs;
  /** Pattern that each input must match (WEIR_DTYPE_ANY and -1 match anything), or NULL for no check. Copied. */
  const struct weir_tensor_desc *inputs;
  /** Number of outputs, at most WEIR_MAX_ARGS. */
  size_t num_outputs;
  /** Descriptors of the outputs; NULL if `infer` computes them. Copied. */
  const struct weir_tensor_desc *outputs;
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

/** A unary elementwise function: one of enum weir_eltwise_op_value. */
typedef uint32_t weir_eltwise_op;

/**
 * Unary elementwise kernel for f32, bf16 or f16, computed in f32. Input: x. Output: as x, in the same memory or in
 * other memory.
 */
typedef struct weir_eltwise_desc {
  /** sizeof(weir_eltwise_desc) of the caller's header. */
  size_t struct_size;
  /** The function. */
  weir_eltwise_op op;
  /** A parameter of the function; 0 if it has none. */
  float alpha;
  /** A second one; 0 if it has none. */
  float beta;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_eltwise_desc;

/** A binary elementwise function: one of enum weir_binary_op_value. */
typedef uint32_t weir_binary_op;

/**
 * Binary elementwise kernel with broadcasting: shapes are aligned at the last dimension, and a
 * dimension of 1 is broadcast. Inputs: a and b, both f32, bf16, f16, s32, s8 or u8; for WEIR_BINARY_EQ and the other
 * comparisons also bool. Output: of the same type, or bool if the function compares; it may be the memory of an
 * operand that has the output's shape and type.
 *
 * Floats and bytes are computed in f32. Bytes saturate and are rounded to nearest, ties to even; a quotient that is a
 * NaN is 0 as an integer. s32 is computed exactly and wraps around; its quotients are those of f64, rounded and
 * saturated in the same way. Integers have no WEIR_BINARY_POW.
 */
typedef struct weir_binary_desc {
  /** sizeof(weir_binary_desc) of the caller's header. */
  size_t struct_size;
  /** The function. */
  weir_binary_op op;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_binary_desc;

/**
 * Elementwise choice: a where the condition holds, else b, with broadcasting of all three as in weir_binary_desc.
 * Inputs: condition, bool; a and b of one type, any but s64. Output: of that type.
 */
typedef struct weir_select_desc {
  /** sizeof(weir_select_desc) of the caller's header. */
  size_t struct_size;
} weir_select_desc;

/**
 * Conversion to another storage type: x scale + shift, between all types but s64. Input: x. Output: the same shape.
 *
 * Computed in f32. An integer is rounded to nearest, ties to even, and saturates; a NaN becomes 0; as a bool
 * everything but 0 becomes 1. With scale 1 and shift 0, values that both types can hold are exact, in s32 too.
 */
typedef struct weir_convert_desc {
  /** sizeof(weir_convert_desc) of the caller's header. */
  size_t struct_size;
  /** The type of the output, not s64. */
  weir_dtype dtype;
  /** The factor; 0 stands for 1. */
  float scale;
  /** Added after that. */
  float shift;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_convert_desc;

/**
 * Quantization: round(x / scale) + zero_point, saturated. Inputs: x, f32, bf16 or f16; scale, f32; with
 * WEIR_QUANTIZE_ZERO_POINT zero_point, s32. Output: the shape of x, s8, u8 or s32.
 *
 * scale and zero_point have one element (of rank 0 or 1), for the whole tensor, or as many as x has along the axis.
 * Rounding is to nearest, ties to even; a NaN becomes 0. A zero point beyond 2^24 is rounded to f32.
 */
typedef struct weir_quantize_desc {
  /** sizeof(weir_quantize_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_quantize_flags. */
  uint64_t flags;
  /** The type of the output. */
  weir_dtype dtype;
  /** The axis of scale and zero_point, unless they have one element; negative counts from the end, -1 = last. */
  int32_t axis;
} weir_quantize_desc;

/**
 * Dequantization: (x - zero_point) scale. Inputs: x, s8, u8 or s32; scale and zero_point as in weir_quantize_desc.
 * Output: the shape of x, f32, bf16 or f16. Computed in f32.
 */
typedef struct weir_dequantize_desc {
  /** sizeof(weir_dequantize_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_quantize_flags. */
  uint64_t flags;
  /** The type of the output; 0 stands for WEIR_F32. */
  weir_dtype dtype;
  /** As in weir_quantize_desc. */
  int32_t axis;
} weir_dequantize_desc;

/**
 * Transposition: dimension i of the output is dimension permutation[i] of the input.
 *
 * Input: x. Output: x with its dimensions in that order.
 */
typedef struct weir_transpose_desc {
  /** sizeof(weir_transpose_desc) of the caller's header. */
  size_t struct_size;
  /** Number of dimensions of x; 0 = any number, in reverse order. */
  uint32_t rank;
  /** Reserved, 0. */
  uint32_t reserved;
  /** A permutation of 0 to rank - 1. */
  int32_t permutation[8];
} weir_transpose_desc;

/**
 * Concatenation of tensors along an axis. They have one type, and the same size in all other dimensions.
 *
 * Inputs: num_inputs tensors. Output: as the inputs; its size along the axis is the sum of theirs.
 */
typedef struct weir_concat_desc {
  /** sizeof(weir_concat_desc) of the caller's header. */
  size_t struct_size;
  /** 1 to WEIR_MAX_ARGS. */
  uint32_t num_inputs;
  /** The axis; negative counts from the end, -1 = last. */
  int32_t axis;
} weir_concat_desc;

/**
 * Slice of a tensor: in each dimension the elements from begin on, at a distance of step, up to end, which is
 * excluded.
 *
 * Negative positions count from the end. Positions outside of the tensor are clamped: INT64_MAX as end means "to the
 * last", and with a negative step INT64_MIN means "to the first". Input: x. Output: the slice.
 */
typedef struct weir_slice_desc {
  /** sizeof(weir_slice_desc) of the caller's header. */
  size_t struct_size;
  /** Number of dimensions of x. */
  uint32_t rank;
  /** Reserved, 0. */
  uint32_t reserved;
  /** The first element in each dimension. */
  int64_t begin[8];
  /** Where each dimension ends. */
  int64_t end[8];
  /** The distance; 0 = 1. A negative step goes backwards, from begin down to end. */
  int64_t step[8];
} weir_slice_desc;

/** The contents of the margin of a weir_pad_desc: one of enum weir_pad_mode_value. */
typedef uint32_t weir_pad_mode;

/**
 * Padding: a margin of `before` elements in front and `after` behind in each dimension.
 *
 * A reflecting margin is smaller than the dimension. Input: x. Output: x with the margin.
 */
typedef struct weir_pad_desc {
  /** sizeof(weir_pad_desc) of the caller's header. */
  size_t struct_size;
  /** Number of dimensions of x. */
  uint32_t rank;
  /** One of weir_pad_mode_value. */
  weir_pad_mode mode;
  /** Elements added in front in each dimension, 0 or more. */
  int64_t before[8];
  /** Elements added behind in each dimension, 0 or more. */
  int64_t after[8];
  /**
   * The element of a WEIR_PAD_CONSTANT margin. Floats are rounded to the nearest; an integer type must be able to
   * hold it.
   */
  double value;
} weir_pad_desc;

/**
 * The same elements, in their order, in another shape. In a graph the output takes over the memory of the input where
 * possible, and nothing is copied; on a stream x may be its own output.
 *
 * Input: x. Output: x in the shape.
 */
typedef struct weir_reshape_desc {
  /** sizeof(weir_reshape_desc) of the caller's header. */
  size_t struct_size;
  /** Number of dimensions of the output. */
  uint32_t rank;
  /** Reserved, 0. */
  uint32_t reserved;
  /** The output's shape. One dimension may be -1: it follows from the number of elements. */
  int64_t dims[8];
} weir_reshape_desc;

/**
 * Gather: rows of a table by their indices, as for an embedding.
 *
 * Inputs: table; indices, s32 or s64, of any shape. Output: the table with the indices' shape in place of the axis. A
 * call with an index below 0 or beyond the axis fails with OUT_OF_RANGE, which names it, and writes nothing. On a CUDA
 * engine that is a late failure of the stream or run, and the rows of such indices are zeros.
 */
typedef struct weir_gather_desc {
  /** sizeof(weir_gather_desc) of the caller's header. */
  size_t struct_size;
  /** The axis of the table that the indices select from; negative counts from the end, -1 = last. */
  int32_t axis;
  /** Reserved, 0. */
  int32_t reserved;
} weir_gather_desc;

/** A reduction: one of enum weir_reduce_op_value. */
typedef uint32_t weir_reduce_op;

/**
 * Reduces some dimensions, each to one element. f32, f16 and bf16; computed in f32 or wider, in an order that depends
 * only on the shape.
 *
 * Input: x. Output: the shape of x without the axes, or with 1 in their place; of the type of x, or s32 for indices.
 */
typedef struct weir_reduce_desc {
  /** sizeof(weir_reduce_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_reduce_flags. */
  uint64_t flags;
  /** One of weir_reduce_op_value. */
  weir_reduce_op op;
  /** Number of axes; 0 = all. */
  uint32_t num_axes;
  /** The axes that are reduced, in any order; negative ones count from the end. */
  int32_t axes[8];
  /** The power of a norm: 1 or 2. For other operations 0. */
  float p;
  /** The eps of a norm, 0 or more. For other operations 0. */
  float eps;
} weir_reduce_desc;

/** A normalisation: one of enum weir_norm_op_value. */
typedef uint32_t weir_norm_op;

/**
 * Normalisation, then times scale and plus shift on request. The variance is that of the elements themselves: divided
 * by their number.
 *
 * Inputs: x, f32, f16 or bf16; for WEIR_NORM_BATCH mean and variance, f32; with WEIR_NORM_SCALE scale; with
 * WEIR_NORM_SHIFT shift: f32, or both of the type of x. Output: as x. All types are computed in f32 or wider, and
 * rounded once.
 */
typedef struct weir_norm_desc {
  /** sizeof(weir_norm_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_norm_flags. */
  uint64_t flags;
  /** One of weir_norm_op_value. */
  weir_norm_op op;
  /** The first axis that is normalised, or the axis of the channels; negative counts from the end, -1 = last. */
  int32_t axis;
  /**
   * Number of groups of WEIR_NORM_GROUP, a divisor of the number of channels; equal to it for an instance
   * normalisation. 0 for other operations.
   */
  uint32_t groups;
  /** Added to the variance, 0 or more. */
  float epsilon;
} weir_norm_desc;

/** A layout of data: one of enum weir_data_layout_value. */
typedef uint32_t weir_data_layout;

/** A layout of weights: one of enum weir_weights_layout_value. */
typedef uint32_t weir_weights_layout;

/** A kind of padding: one of enum weir_padding_value. */
typedef uint32_t weir_padding;

/**
 * Convolution of signals [N, C, W] or images [N, C, H, W] in f32: each element of output channel o is the sum, over
 * the input channels of its group and the taps of the window, of weights times elements (a cross-correlation: nothing
 * is mirrored), plus the bias, then the activation.
 *
 * Inputs: x; weights [O, C / groups, KW] or [O, C / groups, KH, KW]; with WEIR_CONV_BIAS bias[O]. Output: [N, O, OW]
 * or [N, O, OH, OW], where OW = (W + begin + end - ((KW - 1) * dilation + 1)) / stride + 1, rounded down.
 *
 * Members of two numbers are for H and W of images; of signals the first one counts, and the second must be 0.
 */
typedef struct weir_conv_desc {
  /** sizeof(weir_conv_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_conv_flags. */
  uint64_t flags;
  /** How x and the output are ordered. */
  weir_data_layout data_layout;
  /** How the weights are ordered. */
  weir_weights_layout weights_layout;
  /** The values assumed beyond the ends. */
  weir_padding padding;
  /** The function applied to each element of the output. */
  weir_activation activation;
  /** Number of groups that the channels are divided into; 0 = 1. Both C and O are multiples of it. */
  int64_t groups;
  /** Distance from one window to the next, in elements; 0 = 1. */
  int64_t strides[2];
  /** Distance from one tap to the next, in elements; 0 = 1. */
  int64_t dilations[2];
  /** Elements of padding before the first one. */
  int64_t padding_begin[2];
  /** Elements of padding behind the last one. */
  int64_t padding_end[2];
} weir_conv_desc;

/** A kind of pooling: one of enum weir_pooling_op_value. */
typedef uint32_t weir_pooling_op;

/**
 * Pooling of signals [N, C, W] or images [N, C, H, W] in f32, channel by channel. Input: x. Output: [N, C, OW] or [N,
 * C, OH, OW], as large as that of a convolution with such windows.
 *
 * Members of two numbers are for H and W of images; of signals the first one counts, and the second must be 0.
 */
typedef struct weir_pooling_desc {
  /** sizeof(weir_pooling_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_pooling_flags. */
  uint64_t flags;
  /** The value computed from a window. */
  weir_pooling_op op;
  /** How x and the output are ordered. */
  weir_data_layout data_layout;
  /** Taps of a window. */
  int64_t kernel[2];
  /** Distance from one window to the next, in elements; 0 = 1. */
  int64_t strides[2];
  /** Distance from one tap to the next, in elements; 0 = 1. */
  int64_t dilations[2];
  /** Elements of padding before the first one; fewer than the window spans. */
  int64_t padding_begin[2];
  /** Elements of padding behind the last one; fewer than the window spans. */
  int64_t padding_end[2];
} weir_pooling_desc;

/** An order of gates: one of enum weir_gate_order_value. */
typedef uint32_t weir_gate_order;

/**
 * One step of an LSTM in f32. With the gates i, o, f (sigmoid) and g (tanh), each of x * W^T + h * R^T of its block:
 * c' = f * c + i * g, h' = o * tanh(c').
 *
 * Inputs: x[N, I], h[N, H], c[N, H], W[4 H, I], R[4 H, H] and, with WEIR_LSTM_BIAS, the biases. Outputs: h'[N, H],
 * c'[N, H].
 */
typedef struct weir_lstm_desc {
  /** sizeof(weir_lstm_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_lstm_flags. */
  uint64_t flags;
  /** How the blocks of W, R and the biases are ordered. */
  weir_gate_order gate_order;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_lstm_desc;

/**
 * One step of a GRU in f32. With the gates z (update) and r (reset), sigmoids of x * W^T + h * R^T of their blocks,
 * and n = tanh(x * W^T + (r * h) * R^T) of its block, or tanh(x * W^T + r * (h * R^T)) as flags say: h' = (1 - z) * n
 * + z * h.
 *
 * Inputs: x[N, I], h[N, H], W[3 H, I], R[3 H, H] and, with WEIR_GRU_BIAS, the biases. Output: h'[N, H].
 */
typedef struct weir_gru_desc {
  /** sizeof(weir_gru_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_gru_flags. */
  uint64_t flags;
  /** How the blocks of W, R and the biases are ordered. */
  weir_gate_order gate_order;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_gru_desc;

/** Descriptor of packed weights: B of a matrix product, packed from a tensor [K, N] of f32, f16, bf16 or s8. */
typedef struct weir_packed_weights_desc {
  /** sizeof(weir_packed_weights_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_packed_weights_flags. */
  uint64_t flags;
} weir_packed_weights_desc;

/**
 * Matrix product of bytes: C[..., M, N] = saturate(round(scale * scales[N] * ((A[..., M, K] - zero_a) * (B[K, N] -
 * zero_b) + bias[N])) + zero_c), with A of u8 or s8 and B of s8.
 *
 * The sums of products are exact for every K on every processor, and then saturate at 32 bits. Without scales, and
 * with a scale of 1, the rest is exact too; otherwise it is computed in f64 and rounded to the nearest integer, ties
 * to even. A C of f32 is not rounded to an integer.
 *
 * Inputs: A; B, unless there are packed `weights`; with WEIR_MATMUL_INT8_BIAS bias; with WEIR_MATMUL_INT8_SCALES
 * scales. Output: C.
 */
typedef struct weir_matmul_int8_desc {
  /** sizeof(weir_matmul_int8_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_matmul_int8_flags. */
  uint64_t flags;
  /** The type of C: WEIR_S32 (also if it is 0), WEIR_F32, WEIR_S8 or WEIR_U8. */
  weir_dtype dtype;
  /** Finite; 0 = 1. */
  float scale;
  /** Zero point of A, subtracted from each element; a value of its type. */
  int32_t zero_a;
  /** Zero point of B, subtracted from each element: -128 to 127. */
  int32_t zero_b;
  /** Zero point of C, added to each element at the end. */
  int32_t zero_c;
  /** Reserved, 0. */
  uint32_t reserved;
  /** B, packed from s8, in place of the input; NULL = B is an input. Excludes WEIR_MATMUL_INT8_TRANSPOSE_B. */
  struct weir_packed_weights *weights;
} weir_matmul_int8_desc;

/** Counters of this process's kernel cache. */
typedef struct weir_kernel_cache_info {
  /** sizeof(weir_kernel_cache_info), set by the caller before the call. */
  size_t struct_size;
  /** Maximum number of kernels kept; 0 = no cache. */
  uint64_t capacity;
  /** Kernels in the cache now. */
  uint64_t entries;
  /** Creations that found their kernel in the cache, since the library was loaded. */
  uint64_t hits;
  /** Creations that had to build the kernel. */
  uint64_t misses;
  /** Creations that found another thread building the kernel, and waited for it. */
  uint64_t shared_builds;
  /** Kernels evicted to make room, or because the capacity was lowered. */
  uint64_t evictions;
} weir_kernel_cache_info;

/** Which offset weir_gemm_u8s8s32 and weir_gemm_s8s8s32 add to C: one of enum weir_gemm_offset_value. */
typedef uint32_t weir_gemm_offset;

/** A value in a graph under construction: one output of one node. Meaningful only for the graph that gave it. */
typedef uint64_t weir_value;

/** A node in a graph under construction. Meaningful only for the graph that gave it. */
typedef uint64_t weir_node;

/** A text format for dumps: one of enum weir_dump_format_value. */
typedef uint32_t weir_dump_format;

/** Where a node runs: one of enum weir_placement_value. */
typedef uint32_t weir_placement;

/** A program, and the runs that it has had since it was compiled. */
typedef struct weir_program_info {
  /** sizeof(weir_program_info), set by the caller before the call. */
  size_t struct_size;
  /** Number of inputs of a run. */
  size_t num_inputs;
  /** Number of outputs of a run. */
  size_t num_outputs;
  /**
   * Number of nodes that a run goes through: those that compile has kept, including nested ones, and copies of the
   * inside of loops whose iterations overlap; the figures of such a node are those of its first copy.
   */
  size_t num_nodes;
  /** Runs that have begun. A run cancelled before its turn in a stream never begins. */
  uint64_t begun;
  /** Runs that have ended. */
  uint64_t ended;
  /** Of these, the ones that failed, deadlines included, but were not cancelled. */
  uint64_t failed;
  /** Of these, the ones that were cancelled. */
  uint64_t cancelled;
  /** Runs that have begun and not ended. */
  uint64_t running;
} weir_program_info;

/** Inputs or outputs of a program: one of enum weir_port_kind_value. */
typedef uint32_t weir_port_kind;

/** An input or output of a program. */
typedef struct weir_port_info {
  /** sizeof(weir_port_info), set by the caller before the call. */
  size_t struct_size;
  /** Element type and shape. */
  struct weir_tensor_desc desc;
  /** The engine in whose memory runs receive it; borrowed, it lives as long as the program. */
  struct weir_engine *engine;
  /** Its name, NUL-terminated UTF-8, cut if too long. */
  char name[128];
} weir_port_info;

/** A text format of reports: one of enum weir_report_format_value. */
typedef uint32_t weir_report_format;

/** Time that a node has taken, over all runs since the program was compiled. */
typedef struct weir_node_stats {
  /** sizeof(weir_node_stats), set by the caller before the call. */
  size_t struct_size;
  /** How often it ran, in a loop once for each iteration; always 0 for control nodes (cond, case, while). */
  uint64_t count;
  /** Total nanoseconds of all runs; the cost of reading the clock is subtracted. */
  uint64_t total_ns;
  /** Nanoseconds of the shortest run; 0 while count is 0. */
  uint64_t min_ns;
  /** Nanoseconds of the longest run. */
  uint64_t max_ns;
  /** The node's name, NUL-terminated UTF-8, cut if too long. */
  char name[128];
  /**
   * Total nanoseconds between the node becoming ready (all that it waits for is done) and its beginning. 0 for runs
   * that one thread makes in the nodes' order: there a node becomes ready when its turn comes.
   */
  uint64_t waited_ns;
} weir_node_stats;

/**
 * A failure: of the calling thread's last failed call, of a stream, or of a run. Texts are NUL-terminated UTF-8, cut if
 * they are too long.
 */
typedef struct weir_failure {
  /** sizeof(weir_failure), set by the caller before the call. */
  size_t struct_size;
  /** WEIR_OK if there is no failure, and then the rest is empty. */
  weir_status code;
  /** Reserved, 0. */
  int32_t reserved;
  /** Of a run: completed iterations of the innermost loop around the node; -1 if the node is in no loop. */
  int64_t iteration;
  /** Of a run: the node that failed; "" if the run was cancelled or its deadline has passed. */
  char node[128];
  /** The node of the innermost loop, or "". */
  char loop_node[128];
  /** The engine that the node ran on (its name, "cpu:0"), or "". */
  char engine[64];
  /** What happened to which object, and why. A thread's begins with the function that failed. */
  char message[1024];
  /**
   * Of a run: number of nodes that were not begun because of the failure. A cond, case or while that was not begun
   * counts as one node, whatever is inside.
   */
  size_t num_not_run;
  /** Bytes that their names take, each with a NUL. */
  size_t not_run_bytes;
  /** Set by the caller: NULL, or where the names go, one after the other in the order of the program, those that fit. */
  char *not_run;
  /** Bytes at not_run, set by the caller. */
  size_t not_run_capacity;
} weir_failure;

/** The kind of a resource: one of enum weir_resource_kind_value. */
typedef uint32_t weir_resource_kind;

/**
 * Creates a resource for weir_resource_lookup_or_create: creates one of `engine` with name NULL and stores the
 * reference in *out_resource, which passes to weir. Returns WEIR_OK or the code of its failure. It may take its time,
 * and create other resources; it must not throw, longjmp or unwind.
 */
typedef weir_status (*weir_resource_build_fn)(void *arg, struct weir_resource **out_resource);

/** A description of a resource. */
typedef struct weir_resource_info {
  /** sizeof(weir_resource_info), set by the caller before the call. */
  size_t struct_size;
  /** Index and generation, see weir_resource_from_id. */
  uint64_t id;
  /** Its kind. */
  weir_resource_kind kind;
  /** 1: a variable for optimistic use. */
  uint32_t optimistic;
  /** References now, not counting the container's: handles, programs, work in flight. */
  uint64_t references;
  /** Memory that it holds, in bytes; 0 for host objects. */
  uint64_t bytes;
  /** Number of rows of a table. */
  uint64_t rows;
  /** Its container, "" if it has no name. */
  char container[64];
  /** Its name, "" if it has none. */
  char name[128];
  /** The type name of a host object. */
  char type_name[64];
  /** Element type and shape of a variable, or of a table's rows. */
  struct weir_tensor_desc desc;
} weir_resource_info;

/** An operation of a kernel on a variable: one of enum weir_variable_op_value. */
typedef uint32_t weir_variable_op;

/** The key type of a table: one of enum weir_table_key_value. */
typedef uint32_t weir_table_key;

/** Descriptor of a table. */
typedef struct weir_table_desc {
  /** sizeof(weir_table_desc), set by the caller. */
  size_t struct_size;
  /** Kind of the keys. */
  weir_table_key key;
  /** 0. */
  uint32_t reserved;
  /** Element type and shape of each row. */
  struct weir_tensor_desc row;
} weir_table_desc;

/** Keys of one call: `integers`, or `bytes` with `lengths`, according to the table's key type; the others are NULL. */
typedef struct weir_table_keys {
  /** sizeof(weir_table_keys), set by the caller. */
  size_t struct_size;
  /** Number of keys. */
  size_t count;
  /** `count` integers, or NULL. */
  const int64_t *integers;
  /** `count` byte strings, or NULL. */
  const void *const *bytes;
  /** Their lengths, if `bytes` is given. */
  const size_t *lengths;
} weir_table_keys;

/** Output arrays of weir_table_export. Arrays that are NULL with a capacity of 0 are left out. */
typedef struct weir_table_contents {
  /** sizeof(weir_table_contents), set by the caller. */
  size_t struct_size;
  /** Capacity of `integers` or `lengths`, in keys, set by the caller. */
  size_t capacity;
  /** Out: number of rows in the table. */
  size_t count;
  /** Keys in ascending order, for a table of integers. */
  int64_t *integers;
  /** Lengths of the keys, for a table of byte strings. */
  size_t *lengths;
  /** The byte strings, contiguous, in ascending order of the keys. */
  void *bytes;
  /** Capacity of `bytes`, set by the caller. */
  size_t bytes_capacity;
  /** Out: total bytes of all keys. */
  size_t bytes_size;
  /** The rows in the order of the keys. */
  void *rows;
  /** Capacity of `rows` in bytes, set by the caller. */
  size_t rows_capacity;
  /** Out: total bytes of all rows. */
  size_t rows_size;
} weir_table_contents;

/** An operation of a kernel on a table: one of enum weir_table_op_value. */
typedef uint32_t weir_table_op;


/* ---- Library -----------------------------------------------------------------------------------------------------
 * Which library this is, what the last failure was, and what the library has started and holds.
 */

/**
 * weir's functions for a plug-in library, which therefore need not be linked against weir. Lives as long as the
 * process.
 */
typedef struct weir_device_plugin_api {
  /** sizeof(weir_device_plugin_api), set by weir. */
  size_t struct_size;
  /** weir_version(). */
  uint32_t version;
  /** weir_abi_version(). */
  uint32_t abi_version;
  /** weir_device_register. */
  int32_t (*device_register)(const char *name, int32_t priority, const struct weir_device_vtable *vtable, void *ctx);
  /** weir_device_replace. */
  int32_t (*device_replace)(const char *name, int32_t priority, const struct weir_device_vtable *vtable, void *ctx);
  /** weir_device_unregister. */
  int32_t (*device_unregister)(const char *name, int32_t priority);
  /** weir_last_error_message: the reason for a failure of one of the above. */
  const char *(*last_error_message)(void);
  /** Sets the text for a failure of weir_device_plugin_init, and may be called only there; the text is copied. */
  void (*fail)(const char *text);
} weir_device_plugin_api;

/**
 * The symbol "weir_device_plugin_init" of a library for weir_device_load. Registers the library's devices. Returns
 * WEIR_OK, or a code: then all of its registrations are undone.
 */
typedef int32_t (*weir_device_plugin_init_fn)(const struct weir_device_plugin_api *api);

/**
 * The first number of plug-in kinds. Kinds are numbered in the order in which their names were first registered in the
 * process (weir_engine_kind_from_name).
 */
#define WEIR_ENGINE_PLUGIN_FIRST 4096

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the running library: major << 16 | minor << 8 | patch.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: none.
 */
WEIR_API uint32_t weir_version(void);

/**
 * The version of the running library as text, "0.1.0".
 *
 * Thread safety: any thread. Blocking: never. Ownership: static text. Errors: none.
 */
WEIR_API const char *weir_version_string(void);

/**
 * The number of the binary interface of the running library (WEIR_ABI_VERSION of its header).
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: none.
 */
WEIR_API uint32_t weir_abi_version(void);

/**
 * Whether the running library can serve a program that was written for version `major`.`minor`. Call it first after
 * dlopen.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none.
 * Errors: FAILED_PRECONDITION if the library is older, or another major version (another minor one while major is 0).
 */
WEIR_API WEIR_NODISCARD weir_status weir_check_version(uint32_t major, uint32_t minor);

/**
 * The name of a status code, "INVALID_ARGUMENT"; "UNKNOWN_CODE" for an unknown number.
 *
 * Thread safety: any thread. Blocking: never. Ownership: static text. Errors: none.
 */
WEIR_API const char *weir_status_name(weir_status status);

/**
 * The text of the calling thread's last failed weir call: "weir_stream_create: engine is NULL". Successful calls leave
 * it unchanged. A task that moves between threads (goroutine, virtual thread) must read it before it yields.
 *
 * Thread safety: any thread. Blocking: never.
 * Ownership: valid until this thread's next failing weir call; never NULL, "" if there is none. Errors: none.
 */
WEIR_API const char *weir_last_error_message(void);

/**
 * Fills *out_info with the library's counters: threads by origin, allocations made, live objects by kind. Copies of
 * attributes inside engines and streams count as attributes.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT (NULL, or a struct_size below the first published one).
 */
WEIR_API WEIR_NODISCARD weir_status weir_runtime_get_info(struct weir_runtime_info *out_info);

/**
 * Lists the threads that weir has started and that are running now, in the order of their start. Set struct_size of
 * the first entry: it is the distance between entries, and weir stores it in every entry that it fills. `out_count`
 * receives the number of threads. capacity 0 only asks for the number (infos may then be NULL). Threads may start and
 * end between two calls, so provide a few more entries than were counted. Threads of host pools are not listed.
 *
 * Thread safety: any thread. Blocking: never; it may wait for a thread that is just being started.
 * Ownership: the caller's array.
 * Errors: INVALID_ARGUMENT (NULL, or a struct_size below the first published one); OUT_OF_RANGE if capacity is too
 * small (out_count is set, the entries are left alone).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_runtime_get_threads(struct weir_thread_info *infos,
                                     size_t capacity,
                                     size_t *out_count);


/* ---- Thread pool -------------------------------------------------------------------------------------------------
 * A pool is yours: fill a weir_threadpool_vtable with parallel_for, schedule or both, and weir runs all work on
 * it. NULL stands for "the calling thread" wherever a pool is asked for, but for an engine whose thread mode
 * says otherwise. What counts first: the pool of the call, then of the stream, then of the engine, then the
 * caller. weir never waits for a closure that your pool has not begun.
 */

/**
 * Creates a pool of host threads. The vtable is copied; `ctx` is passed to its functions. Several pools may exist, and
 * one pool may serve any number of engines and streams. weir calls vtable->release(ctx) exactly once, after the last
 * reference is gone and the last task returned, or in weir_threadpool_close; if this call fails, it is never called.
 * Knowledge about a pool applies to all pools with the same functions, flags and width, so a host may create a pool
 * for each call: that costs no memory after the first, and no system call.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_pool.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, num_threads missing, neither parallel_for nor schedule).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_create(const struct weir_threadpool_vtable *vtable,
                                   void *ctx,
                                   struct weir_threadpool **out_pool);

/**
 * As weir_threadpool_create, with settings; NULL attr: all default. Settings for the built-in pool only (num_threads,
 * spin_ns) are refused.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_pool; attr is copied.
 * Errors: those of weir_threadpool_create; INVALID_ARGUMENT (attr sets num_threads or spin_ns).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_create_with_attr(const struct weir_threadpool_vtable *vtable,
                                             void *ctx,
                                             const struct weir_threadpool_attr *attr,
                                             struct weir_threadpool **out_pool);

/**
 * The first clause of docs/threadpool.md that a pool in checking mode has broken, and how: "H5: parallel_for ran index
 * 3 of 4 twice". If none is broken, a suspected one: "H9: a wait has slept for 1 s, and the pool has begun none of 2
 * calls that it had accepted: ..."; the pool continues after that. Empty if there is neither, and without checking
 * mode.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if capacity is too small (out_length is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_get_broken_clause(const struct weir_threadpool *pool,
                                              char *buffer,
                                              size_t capacity,
                                              size_t *out_length);

/**
 * The pool as a vtable: for a library that needs one, for a host that wraps a pool, or for
 * weir_threadpool_conformance. *out_ctx is a reference to the pool, and vtable->release gives it up.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns *out_ctx until it calls
 * out_vtable->release(*out_ctx), or passes both to a call that does. Errors: INVALID_ARGUMENT (NULL,
 * out_vtable->struct_size, to be set before the call); FAILED_PRECONDITION if the pool is closed.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_get_vtable(struct weir_threadpool *pool,
                                       struct weir_threadpool_vtable *out_vtable,
                                       void **out_ctx);

/**
 * Creates weir's own work-stealing pool. weir_runtime_get_info counts its threads. NULL attr: one thread for each
 * processor that this process may use (affinity mask and cgroup limit), or WEIR_NUM_THREADS from the environment.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_pool; attr is copied.
 * Errors: INVALID_ARGUMENT (also if attr sets checking); RESOURCE_EXHAUSTED if threads cannot be started.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_create_builtin(const struct weir_threadpool_attr *attr,
                                           struct weir_threadpool **out_pool);

/**
 * Creates a pool without threads: all work runs at once in the calling thread.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_pool.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_create_inline(struct weir_threadpool **out_pool);

/**
 * Creates a pool for tests: `num_threads` threads that run tasks in an order drawn from `seed`, delay some, run some
 * inline in the submitting thread and refuse some. Results must not depend on it. Its threads are counted.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_pool.
 * Errors: INVALID_ARGUMENT (num_threads outside 1..256); RESOURCE_EXHAUSTED if threads cannot be started.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_create_seeded(uint64_t seed,
                                          int32_t num_threads,
                                          struct weir_threadpool **out_pool);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_retain(struct weir_threadpool *pool);

/**
 * Gives up one reference. NULL does nothing. Engines, streams and queued work hold references of their own. If the
 * last reference goes inside a task of the pool itself, vtable->release comes with the next call of weir from
 * elsewhere; weir_threadpool_release(NULL) is such a call.
 *
 * Thread safety: any thread. Blocking: never (a built-in pool's threads end by themselves). Ownership: one
 * reference less.
 * Errors: none.
 */
WEIR_API void weir_threadpool_release(struct weir_threadpool *pool);

/**
 * Ends the use of a pool, for a host that owns it: after this has returned WEIR_OK weir never calls the vtable's
 * functions again, on any thread, and vtable->release has been called, once. The handle stays valid until it is
 * released.
 *
 * From the call on, even if it times out, work on the pool is refused: a region, a product, a run, a stream with that
 * pool, or an engine created with it gets FAILED_PRECONDITION, which names the pool by the number of
 * weir_threadpool_get_id. Work in flight continues without further help from the pool: regions and runs in the threads
 * that they have, streams in the threads that submit and wait. The call waits until no thread doing weir's work is
 * inside of the pool any more: calls of the vtable, tasks that have begun, and the turns of streams and the kernels
 * that may block which the pool has accepted. It does not wait for helpers that the pool has accepted and not begun.
 * The host may run them at any later time, after release too: they look at memory of weir's, find the pool closed, and
 * return. A host that discards them instead leaves the pool's memory (some 40 KB) behind.
 *
 * May be called several times and by several threads at once: all return when the first has finished, and later calls
 * succeed at once. DEADLINE_EXCEEDED: a thread was still inside; call again to wait on. With timeout_ns 0 it closes
 * the pool and polls once. A pool of weir's own ends its threads. See docs/call_pools.md for pools that belong to a
 * call.
 *
 * Thread safety: any thread. Blocking: until no work of weir's is inside, or timeout_ns have passed
 * (WEIR_TIMEOUT_INFINITE = no limit), and for as long as vtable->release takes. Ownership: none passes. Errors:
 * INVALID_ARGUMENT; DEADLINE_EXCEEDED; FAILED_PRECONDITION inside of a task of the pool and on a device's thread: then
 * the pool stays open.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_close(struct weir_threadpool *pool, uint64_t timeout_ns);

/**
 * The current number of threads of the pool: vtable->num_threads, at least 1. The inline pool has 1.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the pool is closed.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_get_num_threads(const struct weir_threadpool *pool,
                                            int32_t *out_num_threads);

/**
 * The pool's flags: OR of weir_threadpool_flags.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_get_flags(const struct weir_threadpool *pool, uint64_t *out_flags);

/**
 * The pool's id: no other pool in this process ever has it. weir_thread_info.pool is such an id.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_get_id(const struct weir_threadpool *pool, uint64_t *out_id);

/**
 * Whether the calling thread runs a task of this pool (1) or not (0), according to vtable->in_parallel, or else to
 * weir's own tasks.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the pool is closed.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_in_parallel(const struct weir_threadpool *pool,
                                        int32_t *out_in_parallel);

/**
 * Runs fn over the items 0 <= i < n in pieces, on the pool and in the calling thread, and returns when all are done. A
 * NULL pool means the calling thread alone. `hint` may be NULL. May be called from inside a task of the pool; then it
 * never waits for a piece that no thread has begun. A region that is too small to be worth a thread runs in the
 * caller; the limit follows from the costs of the pool's threads (weir_threadpool_get_costs).
 *
 * Thread safety: any thread. Blocking: until all pieces have returned. Ownership: arg is the caller's.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE (n < 0); else the first nonzero status that fn returned; pieces not begun
 * by then are skipped. FAILED_PRECONDITION if a pool in checking mode has broken a clause; then all is done.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_parallel_for(struct weir_threadpool *pool,
                              int64_t n,
                              const struct weir_parallel_hint *hint,
                              weir_range_fn fn,
                              void *arg);

/**
 * As weir_parallel_for, over a box of points in 1 to WEIR_MAX_RANK dimensions: 0 <= i[d] < extents[d]. Pieces are
 * boxes of whole tiles; tile[d] is the size of a tile in dimension d. With 0 (or a NULL tile) weir chooses: whole
 * lines, planes and so on up to about a microsecond of work. hint->cost_ns is per point.
 *
 * Thread safety: any thread. Blocking: until all pieces have returned. Ownership: arg is the caller's; the arrays are
 * only read during the call.
 * Errors: INVALID_ARGUMENT (rank, tile, hint); OUT_OF_RANGE (a negative extent, too many points); else the first
 * nonzero status that fn returned; pieces not begun by then are skipped. FAILED_PRECONDITION as of weir_parallel_for.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_parallel_nd(struct weir_threadpool *pool,
                             int32_t rank,
                             const int64_t *extents,
                             const int64_t *tile,
                             const struct weir_parallel_hint *hint,
                             weir_box_fn fn,
                             void *arg);

/**
 * Measures the cost of bringing in the pool's threads, with a few rounds of empty work. The first region that could be
 * worth a thread does so too; call this to measure at a time of your choice, with the pool as idle as it will be
 * later.
 *
 * Thread safety: any thread. Blocking: usually less than a millisecond, a few if the machine is busy, and for as long
 * as the pool keeps a parallel_for. Ownership: none. Errors: INVALID_ARGUMENT; FAILED_PRECONDITION inside a task of
 * the pool.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_measure(struct weir_threadpool *pool);

/**
 * The current estimate of the cost of a helper: of a pool that was in use a moment ago, requested as regions would
 * (schedule or parallel_for). Assumed figures until the pool is measured; from then on shared regions refine them.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_get_costs(const struct weir_threadpool *pool,
                                      struct weir_threadpool_costs *out_costs);

/**
 * Creates settings, all default. num_threads and spin_ns are for weir_threadpool_create_builtin, checking is for
 * weir_threadpool_create_with_attr; either refuses the other's settings, so that none is silently ignored.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns *out_attr. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_attr_create(struct weir_threadpool_attr **out_attr);

/**
 * Destroys settings. NULL does nothing.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: ends here. Errors: none.
 */
WEIR_API void weir_threadpool_attr_destroy(struct weir_threadpool_attr *attr);

/**
 * Number of threads, 1 to 256; 0 = the default (see weir_threadpool_create_builtin).
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_attr_set_num_threads(struct weir_threadpool_attr *attr,
                                                 int32_t num_threads);

/**
 * The number of threads that was set; 0 = the default.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_attr_get_num_threads(const struct weir_threadpool_attr *attr,
                                                 int32_t *out_num_threads);

/**
 * How long a thread of the pool without work spins before it sleeps, in nanoseconds; 0 = not at all. Default 20 us, at
 * most one second.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_attr_set_spin_ns(struct weir_threadpool_attr *attr,
                                             uint64_t spin_ns);

/**
 * The spin budget that was set, in nanoseconds.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_attr_get_spin_ns(const struct weir_threadpool_attr *attr,
                                             uint64_t *out_spin_ns);

/**
 * Whether weir checks a host's pool (1) or not (0, the default). A pool in checking mode is verified on the work that
 * it gets anyway: a task run twice, lost, or run after refusal, a wrong index, a parallel_for that returns early,
 * threads with a wrong in_parallel or thread_index. A faulty pool never affects weir's work: each piece is still done
 * once. The first clause that it breaks is kept (weir_threadpool_get_broken_clause). From then on the pool gets no
 * more work, the callers do all of it, and weir_parallel_for, weir_stream_synchronize, weir_run_synchronize, and calls on
 * synchronous streams that use the pool return FAILED_PRECONDITION with the clause after finishing their work. A task
 * that the pool accepted and has not begun after five seconds counts as lost, and a later call of weir runs it. Each
 * task costs a few microseconds more; without checking mode there is no cost.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_attr_set_checking(struct weir_threadpool_attr *attr,
                                              int32_t checking);

/**
 * Whether checking mode was set (1) or not (0).
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_attr_get_checking(const struct weir_threadpool_attr *attr,
                                              int32_t *out_checking);

/**
 * The costs of the pool's threads, for a host that knows them: weir then does not measure them. Shared regions refine
 * the figures all the same. NULL costs: to be measured, the default.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: costs is copied.
 * Errors: INVALID_ARGUMENT (a figure below 0 or not finite).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_attr_set_costs(struct weir_threadpool_attr *attr,
                                           const struct weir_threadpool_costs *costs);

/**
 * The costs that were set; all members 0 if none were.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_attr_get_costs(const struct weir_threadpool_attr *attr,
                                           struct weir_threadpool_costs *out_costs);

/**
 * Creates a group of tasks: weir_task_group_spawn adds tasks, weir_task_group_synchronize runs those that have not begun and
 * waits for the rest. Helpers come from `pool`, within its budget: inside of a kernel or a region the threads are
 * shared with it. NULL: the tasks run in the threads that spawn and wait.
 *
 * Groups and tasks allocate no memory after the first groups of a thread. A thread holds at most 256 tasks that have
 * not begun, of all its groups; weir_task_group_spawn runs further ones itself. At most 64 threads hold tasks at a
 * time; on others each task runs in its spawn. A group that is created inside of a task is nested in that task's
 * group: cancelling the outer group stops it too, and a wait for the outer group helps with it.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_group; the group holds
 * the pool. Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the pool is closed; RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_task_group_create(struct weir_threadpool *pool,
                                   struct weir_task_group **out_group);

/**
 * As weir_task_group_create, on the pool of a kernel's call. The group may be used until the kernel returns.
 *
 * Thread safety: the kernel's thread. Blocking: never. Ownership: the caller owns one reference to *out_group.
 * Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_create_task_group(struct weir_kernel_context *context,
                                                  struct weir_task_group **out_group);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_task_group_retain(struct weir_task_group *group);

/**
 * Gives up one reference. NULL does nothing. If it was the last one and tasks are left, those that have not begun are
 * skipped and their arguments destroyed, now or when they would have begun; running tasks continue. A group with a
 * notice (weir_task_group_notify) continues whole, until the notice has arrived.
 *
 * Thread safety: any thread, also a task of the group. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_task_group_release(struct weir_task_group *group);

/**
 * Adds a task: fn(arg), once, on any thread that may work for the pool, now or later. This call may run it itself:
 * where many tasks are waiting already and tasks of this function have turned out small, and where there is no room.
 * Do not hold a lock during a spawn that the task takes too. A status other than WEIR_OK stops the group: tasks that
 * have not begun are skipped, and weir_task_group_synchronize returns it. Tasks may spawn into their own group. `destroy`, if
 * it is not NULL, is called once with `arg` when the task is done or skipped.
 *
 * Thread safety: any thread; a caller outside of the group's tasks holds a reference, and spawns before the wait that
 * is to cover the task. Blocking: never, except for the task if it runs here. Ownership: `arg` until it is destroyed.
 * Errors: INVALID_ARGUMENT; then `arg` stays with the caller.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_task_group_spawn(struct weir_task_group *group,
                                  weir_host_fn fn,
                                  void *arg,
                                  weir_destroy_fn destroy);

/**
 * As weir_task_group_spawn, with a copy of `size` bytes at `data`, 40 at most: `fn` is called with the address of a
 * copy, which is aligned as a uint64_t and lives during the call.
 *
 * Thread safety: as weir_task_group_spawn. Blocking: as there. Ownership: `data` is read during the call.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if size is above 40.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_task_group_spawn_copy(struct weir_task_group *group,
                                       weir_host_fn fn,
                                       const void *data,
                                       size_t size);

/**
 * Waits until all tasks are done that were spawned before, and those that they spawned into the group. It runs those
 * that have not begun, and tasks of groups nested in them; never anything else. It sleeps only while other threads run
 * the rest, after spinning for 20 us. Then the group is as new and may be used again.
 *
 * The stack grows with the depth of tasks that wait inside of one another, like that of a recursive function: by less
 * than 1 KiB for each, besides the needs of the tasks themselves.
 *
 * On a pool with WEIR_THREADPOOL_OWN_THREADS_ONLY a foreign thread runs none of the work, and sleeps; it runs only
 * tasks that the pool refuses.
 *
 * Thread safety: any thread; of several that wait at once for a stopped group, one receives the status. Blocking:
 * until the tasks are done. Ownership: none. Errors: the first status other than WEIR_OK that a task returned;
 * CANCELLED (weir_task_group_cancel); INVALID_ARGUMENT; FAILED_PRECONDITION in a task of the group itself, or of one
 * that was made inside of its tasks.
 */
WEIR_API WEIR_NODISCARD weir_status weir_task_group_synchronize(struct weir_task_group *group);

/**
 * Cancels the group: tasks that have not begun, of this group and of groups nested in its tasks, are skipped. Running
 * tasks continue, and can ask (weir_task_group_is_stopped). It holds until a wait has returned CANCELLED, or a notice
 * has reported it, so a cancel before the first spawn is not lost. A group that a task has stopped keeps that status.
 *
 * Thread safety: any thread, also a task of the group. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_task_group_cancel(struct weir_task_group *group);

/**
 * Whether tasks of the group that have not begun are skipped (1) or not (0): the group, or one that it is nested in,
 * was cancelled or had a task that failed. Long tasks can use it to end early.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_task_group_is_stopped(const struct weir_task_group *group,
                                       int32_t *out_stopped);

/**
 * Tells the host, once, when all spawned tasks are done: for callers that must not wait. Call it after the last spawn
 * from outside; if nothing is left then, the notice arrives before this call returns. The notice has the status that a
 * wait would return, and no run. From this call on the pool owes the tasks a thread. If it refuses, or there is none,
 * this call runs the tasks that have not begun, and so does each later spawn. The group is as new after the notice.
 *
 * Thread safety: any thread. Blocking: never, except for the tasks that it runs on a pool that refuses them.
 * Ownership: `notice` is read during the call; its ctx is released with `release`. The notice holds the group until it
 * has arrived. Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if there is a notice already; RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_task_group_notify(struct weir_task_group *group,
                                   const struct weir_notice *notice);


/* ---- Conformance -------------------------------------------------------------------------------------------------
 * Does a pool, or a device, keep its side of the contract? The program weir_conformance asks this of pools and
 * of plug-ins in shared objects, and a pool in checking mode (weir_threadpool_attr_set_checking) is asked all
 * the time.
 */

/**
 * Checks a pool against docs/threadpool.md, and calls `report` once for each clause, in order, and then for notable
 * properties of the pool. The vtable and ctx are used as by weir_threadpool_create: vtable->release(ctx) is called at
 * the end, which is checked too. Nothing else may use the pool meanwhile. A pool that loses tasks or does not return
 * ends in a failed clause and not in a hang; a pool that does not return is never released.
 *
 * Thread safety: any thread, but none of the pool. Blocking: a second or so on a good pool; on a bad one up to some
 * budgets (options->budget_ns) for each clause. Ownership: ctx passes to weir, if this call succeeds; the options are
 * copied and may be NULL; report_arg is the caller's. *out_failed is the number of clauses that failed.
 * Errors: INVALID_ARGUMENT (those of weir_threadpool_create; report is NULL; unknown options); then release is not
 * called. A broken clause is no error.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_conformance(const struct weir_threadpool_vtable *vtable,
                                        void *ctx,
                                        const struct weir_conformance_options *options,
                                        weir_conformance_fn report,
                                        void *report_arg,
                                        int32_t *out_failed);

/**
 * Checks a device against docs/devices.md, and calls `report` once for each clause, in order: whether streams, events,
 * copies and kernels keep their contract. It calls the device's own functions, so plug-in devices and weir's own pass
 * the same checks. A device that hangs ends in a failed clause and not in a hang. Nothing else should use the device
 * meanwhile.
 *
 * Thread safety: any thread, but no callback of a device. Blocking: a second or so on a good device; on a bad one up
 * to some budgets (options->budget_ns) for each clause. Ownership: the options are copied and may be NULL; report_arg
 * is the caller's. *out_failed is the number of clauses that failed. Errors: INVALID_ARGUMENT (NULL, unknown kind or
 * options); OUT_OF_RANGE (index); UNIMPLEMENTED for a CPU engine; the errors of opening the device. A broken clause is
 * no error.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_device_conformance(weir_engine_kind kind,
                                    uint32_t index,
                                    const struct weir_conformance_options *options,
                                    weir_conformance_fn report,
                                    void *report_arg,
                                    int32_t *out_failed);


/* ---- Engine ------------------------------------------------------------------------------------------------------
 * An engine is a device: memory, and the means to run kernels. A CPU engine may carry a pool: one of yours, or
 * one that weir starts because its thread mode says so. What the settings leave open the environment may decide,
 * read once per process. WEIR_THREAD_MODE: global, private, kind or caller, in any case of letters; for engines
 * that were given neither a mode nor a pool. WEIR_THREAD_COUNT: 0 to 256, as in
 * weir_engine_attr_set_thread_count. Any other value is INVALID_ARGUMENT where it would be used.
 */

/**
 * Creates settings for engines of one kind, all default.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns *out_attr.
 * Errors: INVALID_ARGUMENT (NULL, unknown kind).
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_create(weir_engine_kind kind, struct weir_engine_attr **out_attr);

/**
 * Destroys settings. NULL does nothing.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: ends here. Errors: none.
 */
WEIR_API void weir_engine_attr_destroy(struct weir_engine_attr *attr);

/**
 * The kind of engine that the settings are for.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_kind(const struct weir_engine_attr *attr,
                                      weir_engine_kind *out_kind);

/**
 * The pool on which the engine's work runs unless a stream or a call has its own. NULL = none (the default): the
 * thread mode decides, and without one the calling thread does the work. For an accelerator's engine, whose device
 * does the work, it runs the host functions on the engine's streams (weir_enqueue_task).
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the attribute takes a reference of
 * its own.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_threadpool(struct weir_engine_attr *attr,
                                            struct weir_threadpool *pool);

/**
 * The pool that was set, or NULL.
 *
 * Thread safety: one thread at a time per object. Blocking: never.
 * Ownership: *out_pool is borrowed and lives as long as the attribute keeps it; retain it to keep it longer.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_threadpool(const struct weir_engine_attr *attr,
                                            struct weir_threadpool **out_pool);

/**
 * Source of the engine's threads: one of enum weir_thread_mode_value. A mode that was set comes before
 * WEIR_THREAD_MODE from the environment; so does a pool that was set. A pool is compatible with mode GLOBAL only:
 * weir_engine_create refuses it together with another mode.
 *
 * For an accelerator's engine (not CPU) the mode decides which thread submits its part of programs: copies, kernels,
 * recordings. GLOBAL and CALLER: whichever thread runs the program's nodes on the host. PRIVATE and KIND: one thread,
 * of this engine or of all of its kind in this mode, which starts when the first program is compiled for the engine,
 * and ends with the last possible user; WEIR_DEVICE_THREAD_COUNT in the environment asks for more. If no mode is set,
 * WEIR_DEVICE_THREAD_MODE decides for these engines. A pool, which is for host functions on their streams, is
 * compatible with every mode.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT (NULL, unknown mode).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_thread_mode(struct weir_engine_attr *attr,
                                             weir_thread_mode mode);

/**
 * The mode that was set, or WEIR_THREAD_MODE_GLOBAL. In the attributes of an engine: its actual mode.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_thread_mode(const struct weir_engine_attr *attr,
                                             weir_thread_mode *out_mode);

/**
 * Number of threads that weir starts for the engine in mode PRIVATE, and for the first engine of its kind in mode
 * KIND; the other modes start none. 0 = as many as weir_threadpool_create_builtin starts by default. A count that was
 * set comes before WEIR_THREAD_COUNT from the environment; without either it is 0. An engine in mode KIND with a count
 * other than 0 is refused if its kind already has another number of threads; one without a count joins them.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL,
 * count above 256); FAILED_PRECONDITION if the attribute's kind is not CPU: an engine of another kind has one weir
 * thread or none, depending on its mode.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_thread_count(struct weir_engine_attr *attr, uint32_t count);

/**
 * The number of threads that was set, or 0. In the attributes of an engine that weir has started threads for: the
 * actual number.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the attribute's kind is not CPU.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_thread_count(const struct weir_engine_attr *attr,
                                              uint32_t *out_count);

/**
 * Maximum number of streams of the engine over which one run of a program spreads its work on it; 0 = as many as there
 * is parallel work, up to four. 1 is the default: more streams pay off only where single kernels leave the device
 * idle. The program's report (weir_program_report) has the result. A CPU engine ignores it.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT (NULL, count above 64).
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_max_streams(struct weir_engine_attr *attr, uint32_t count);

/**
 * The maximum number of streams that was set, or 1.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_max_streams(const struct weir_engine_attr *attr,
                                             uint32_t *out_count);

/**
 * Settings that the engine's device is opened with, in a format defined by its plug-in (device_open_with of
 * weir_device_vtable). The first engine on a device decides: another one with incompatible settings is refused while
 * the device is alive, and one without settings shares it. `bytes` 0 clears the settings.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the bytes are copied. Errors:
 * INVALID_ARGUMENT; weir_engine_create fails with UNIMPLEMENTED if the device takes no settings.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_device_settings(struct weir_engine_attr *attr,
                                                 const void *settings,
                                                 size_t bytes);

/**
 * The settings that were set; in the attributes of an engine, its device's actual settings. *out_bytes is their size
 * in bytes, 0 if there are none; as many bytes as fit are stored. A call with capacity 0 only asks for the size.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the caller's bytes.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if capacity is not 0 and too small (*out_bytes is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_device_settings(const struct weir_engine_attr *attr,
                                                 void *out_settings,
                                                 size_t capacity,
                                                 size_t *out_bytes);

/**
 * How threads wait for work on the engine's device, in waits for streams, events, engines and all devices. They poll
 * for spin_ns nanoseconds, at most one second, and then follow the policy. WEIR_WAIT_DEFAULT is the default and takes
 * no spin_ns: a CUDA device is polled for 30 us before a thread sleeps. The spin budget of a stream
 * (weir_stream_attr_set_spin_ns) comes first, and applies to that stream only.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL,
 * unknown policy, spin_ns too large); FAILED_PRECONDITION if the attribute's kind is CPU.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_wait_policy(struct weir_engine_attr *attr,
                                             weir_wait_policy policy,
                                             uint64_t spin_ns);

/**
 * The policy and the spin budget that were set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the attribute's kind is CPU.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_wait_policy(const struct weir_engine_attr *attr,
                                             weir_wait_policy *out_policy,
                                             uint64_t *out_spin_ns);

/**
 * The number of engines of a kind that this machine offers. A kind that this build or machine lacks has 0; that is no
 * error.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL, unknown kind).
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_count(weir_engine_kind kind, uint32_t *out_count);

/**
 * Creates an engine for device `index` of a kind. NULL attr = all default. Several engines for one device may exist.
 * If the thread mode asks for threads, they are started here; if one cannot be started, the others end and the call
 * fails.
 *
 * Thread safety: any thread. Blocking: never for CPU engines, except for the time to start threads. For others as long
 * as opening the device takes, and up to a second if the device was just released with other settings. Ownership: the
 * caller owns one reference to *out_engine; attr is copied. Errors: INVALID_ARGUMENT (also an attr of another kind, a
 * pool together with a mode other than GLOBAL, or a meaningless value of WEIR_THREAD_MODE or WEIR_THREAD_COUNT);
 * OUT_OF_RANGE (index); RESOURCE_EXHAUSTED if threads cannot be started; FAILED_PRECONDITION if engines of this kind
 * already share another number of threads; UNAVAILABLE or UNIMPLEMENTED if this machine or build has no such device.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_create(weir_engine_kind kind,
                               uint32_t index,
                               const struct weir_engine_attr *attr,
                               struct weir_engine **out_engine);

/**
 * Creates an engine for each device of this machine, of all kinds, with default settings: in ascending order of kinds
 * and indices, so that the CPU's is the first, as weir_graph_compile expects. Emulated devices are left out: a host
 * creates those itself. *out_count is the number of devices. A call with capacity 0 only asks for it; all engines are
 * created, or none.
 *
 * Thread safety: any thread. Blocking: as weir_engine_create, for each. Ownership: the caller owns one reference to
 * each of out_engines. Errors: INVALID_ARGUMENT (NULL); OUT_OF_RANGE if capacity is not 0 and too small (*out_count is
 * set, no engine is created); those of weir_engine_create, with the name of the device.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_create_all(struct weir_engine **out_engines,
                                   size_t capacity,
                                   size_t *out_count);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_retain(struct weir_engine *engine);

/**
 * Gives up one reference. NULL does nothing. Streams, tensors, kernels and programs hold references of their own. The
 * last reference ends the threads of a private pool, and those of the kind if no other engine shares them, even when
 * it goes inside one of their tasks: they finish the queued work and then end by themselves. A reference to the pool
 * (weir_engine_get_threadpool, weir_threadpool_retain) keeps them.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_engine_release(struct weir_engine *engine);

/**
 * The engine's kind.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_get_kind(const struct weir_engine *engine, weir_engine_kind *out_kind);

/**
 * The engine's index among the devices of its kind.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_get_index(const struct weir_engine *engine, uint32_t *out_index);

/**
 * The settings that the engine was created with, with its actual thread mode and thread count.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_attr is borrowed and lives as long as the engine; do
 * not destroy it.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_get_attr(const struct weir_engine *engine,
                                 const struct weir_engine_attr **out_attr);

/**
 * The thread pool that the engine's work runs on, whether it was given or started by weir; NULL = the calling thread.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_pool is borrowed and lives as long as the engine.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_get_threadpool(const struct weir_engine *engine,
                                       struct weir_threadpool **out_pool);

/**
 * Fills *out_info with information about the engine's device.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_get_info(const struct weir_engine *engine,
                                 struct weir_engine_info *out_info);

/**
 * Waits until all work is done that was queued on the engine's streams before this call, but not for later work.
 * Returns the engine's first late error that this call has not returned yet. Streams, domains and weir_sync_devices
 * still report their errors, and their reports take nothing away from this call.
 *
 * Thread safety: any thread. Blocking: until done, or timeout_ns have passed (0 = poll once, WEIR_TIMEOUT_INFINITE =
 * no limit). Meanwhile it runs queued work, as weir_stream_synchronize does. Ownership: none. Errors:
 * INVALID_ARGUMENT; DEADLINE_EXCEEDED; FAILED_PRECONDITION if waiting here would block a worker that the work needs,
 * and always inside of anything that weir has called, as of weir_sync_devices; else a late error.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_synchronize(struct weir_engine *engine, uint64_t timeout_ns);


/* ---- Device ------------------------------------------------------------------------------------------------------
 * Engines of one kind stand on devices that somebody makes: weir itself, or a plug-in, which is a vtable of C
 * functions (weir_device_vtable) that a program registers, or a library that weir_device_load opens. A plug-in's
 * engines have streams, events, tensors and kernels like all others. After a fork the child leaves plug-ins
 * alone; a library that was loaded is never unloaded. docs/devices.md is the contract.
 */

/**
 * The kind with this name: "cpu", "cuda", "emulated", or a name registered by a plug-in. A name keeps its number for
 * the life of the process, even after its device provider is unregistered.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL, UTF-8); NOT_FOUND.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_kind_from_name(const char *name, weir_engine_kind *out_kind);

/**
 * The name of a kind, "cpu"; "?" for an unknown number.
 *
 * Thread safety: any thread. Blocking: never. Ownership: static text. Errors: none.
 */
WEIR_API const char *weir_engine_kind_name(weir_engine_kind kind);

/**
 * The kinds that have a device provider, in ascending order; a machine may still have no device of a kind
 * (weir_engine_count). *out_count is the number of kinds; as many as fit are stored. A call with capacity 0 only asks
 * for the number.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's array.
 * Errors: INVALID_ARGUMENT (NULL); OUT_OF_RANGE if capacity is not 0 and too small (*out_count is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_kind_list(weir_engine_kind *out_kinds,
                                  size_t capacity,
                                  size_t *out_count);

/**
 * Registers the devices of a vtable as a kind of engines: a new kind, or one more provider of an existing kind. The
 * provider with the highest priority opens the devices; weir's own has priority 0. A provider of the kind "cpu"
 * replaces the host's own device: host threads still do the work of its engines, and their tensors have memory of its
 * host_allocate (WEIR_DEVICE_PINNED_MEMORY). From its vtable only device_count, device_open, device_close,
 * device_info, error_text and the functions for settings are used, and no others are required. `name` has 1 to 32 of
 * a-z, 0-9, '_' and '-', the first one a letter.
 *
 * Thread safety: any thread. Blocking: never; no function of the vtable is called. Ownership: the vtable is copied;
 * ctx passes to weir if this call succeeds: vtable->release(ctx) is called when the provider is unregistered or
 * replaced, and its last device closed. Errors: INVALID_ARGUMENT (NULL, a required member that is NULL, which the text
 * names, struct_size, name); ALREADY_EXISTS if there is a provider with this priority (weir_device_replace replaces
 * it).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_device_register(const char *name,
                                 int32_t priority,
                                 const struct weir_device_vtable *vtable,
                                 void *ctx);

/**
 * Replaces the provider that has this priority. Devices that are open stay with the old provider; the new one opens
 * the next.
 *
 * Thread safety: any thread. Blocking: as vtable->release of the old provider. Ownership: as weir_device_register.
 * Errors: those of weir_device_register; NOT_FOUND if there is no provider with this priority.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_device_replace(const char *name,
                                int32_t priority,
                                const struct weir_device_vtable *vtable,
                                void *ctx);

/**
 * Unregisters the provider of this kind and priority. Devices that are open stay until their engines are gone.
 *
 * Thread safety: any thread. Blocking: as vtable->release. Ownership: weir gives up the vtable's ctx, see
 * weir_device_register. Errors: INVALID_ARGUMENT (NULL, UTF-8); NOT_FOUND.
 */
WEIR_API WEIR_NODISCARD weir_status weir_device_unregister(const char *name, int32_t priority);

/**
 * Opens a plug-in library and lets it register its devices: its function weir_device_plugin_init
 * (weir_device_plugin_init_fn) is called in this thread. A loaded library stays loaded for the life of the process:
 * loading it once more does nothing. If it fails, its registrations are undone, and a later call tries again.
 *
 * Thread safety: any thread, but not from inside weir_device_plugin_init of the same library. Blocking: while the
 * library is opened and initialised, here or in another thread. Ownership: none. Errors: INVALID_ARGUMENT (NULL, or a
 * library without that function); NOT_FOUND if it cannot be opened (the text is the loader's); UNIMPLEMENTED where
 * libraries cannot be opened; else the status that weir_device_plugin_init returned.
 */
WEIR_API WEIR_NODISCARD weir_status weir_device_load(const char *path);


/* ---- Emulated devices --------------------------------------------------------------------------------------------
 * A device for tests where there is none: streams that work on their own, memory that the host cannot touch,
 * kernels that run as host functions on a thread of the device's. A seed decides the order of its work, and
 * decides it again; faults come when they are asked for; a checker reports operations that use the same bytes
 * and that nothing orders (docs/emulated.md).
 */

/**
 * Emulation settings of an engine. The first engine on a device decides; another engine with different settings is
 * refused while the device is alive (after a second, in which its last use may end), and one without settings shares
 * the device.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the struct is copied. Errors:
 * INVALID_ARGUMENT (NULL, unknown flags, STRICT without CHECK); FAILED_PRECONDITION if the attribute's kind is not
 * EMULATED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_emulation(struct weir_engine_attr *attr,
                                           const struct weir_emulation *emulation);

/**
 * The emulation that was set, or all 0. In the attributes of an engine: its device's emulation.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the attribute's kind is not EMULATED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_emulation(const struct weir_engine_attr *attr,
                                           struct weir_emulation *out_emulation);

/**
 * Counters of an emulated device since it was created, shared by all engines on it.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the engine is not an emulated one.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_emulated_get_counters(const struct weir_engine *engine,
                                       struct weir_emulated_counters *out_counters);

/**
 * The order in which the device executed its operations: their numbers (1 = the first that was submitted), the latest
 * ones, oldest first. `out_count` receives how many are kept, at most 16384; if capacity is less, the latest
 * `capacity` of them are stored. capacity 0 only asks for the number (numbers may then be NULL). Two runs with the
 * same seed and the same calls have the same order.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's array.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the engine is not an emulated one.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_emulated_get_order(const struct weir_engine *engine,
                                    uint64_t *numbers,
                                    size_t capacity,
                                    size_t *out_count);

/**
 * The checker's reports on an emulated device (WEIR_EMULATION_CHECK), in the order of their first finding: operations
 * that use the same bytes without being ordered. Findings that differ only in the operations' numbers are one report,
 * with a count; 256 different reports are kept. Set struct_size of the first entry, which is the distance between
 * entries. `out_count` receives the number of reports. capacity 0 only asks for the number (races may then be NULL).
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's array. Errors: INVALID_ARGUMENT;
 * FAILED_PRECONDITION if the engine is not an emulated one; OUT_OF_RANGE if capacity is too small (out_count is set,
 * the entries are left alone).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_emulated_get_races(const struct weir_engine *engine,
                                    struct weir_emulated_race *races,
                                    size_t capacity,
                                    size_t *out_count);

/**
 * Clears the reports and their count.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the engine is not an emulated one.
 */
WEIR_API WEIR_NODISCARD weir_status weir_emulated_clear_races(struct weir_engine *engine);


/* ---- Native handles ----------------------------------------------------------------------------------------------
 * What the interface below a device calls an engine, a stream or an event of weir's, for work of the host's own
 * beside it.
 */

/**
 * The engine's native device handle. CUDA: the CUcontext. A plug-in: the result of its native_handle. The native
 * address of a tensor is weir_tensor_get_data.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the handle stays weir's, and lives as long as the engine.
 * Errors: INVALID_ARGUMENT; UNIMPLEMENTED if there is no such handle, as on the CPU.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_get_native_handle(const struct weir_engine *engine,
                                          uint64_t *out_handle);

/**
 * The stream's native handle. CUDA: the CUstream, for the host's own work beside weir's: it runs after work submitted
 * before, unless that waits for something on the host.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the handle stays weir's, and lives as long as the stream.
 * Errors: INVALID_ARGUMENT; UNIMPLEMENTED if there is no such handle, as on the CPU.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_get_native_handle(const struct weir_stream *stream,
                                          uint64_t *out_handle);

/**
 * The native handle of the event, as last recorded. CUDA: a CUevent, for streams of the host's own to wait for.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the handle stays weir's. It lives until the event is recorded
 * again or released. Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the event was never recorded, or the device has
 * not been given the record yet; UNIMPLEMENTED if there is no such handle, as on the CPU.
 */
WEIR_API WEIR_NODISCARD weir_status weir_event_get_native_handle(const struct weir_event *event, uint64_t *out_handle);


/* ---- Memory ------------------------------------------------------------------------------------------------------
 * An engine's tensors, scratch and the values of runs lie in regions that it gets from the system, or from an
 * allocator of yours, and cuts into blocks. What comes back is kept for the next, so that in the steady state
 * nothing is asked for. A limit bounds the regions; beyond it a call fails with RESOURCE_EXHAUSTED, at once, and
 * says what holds the memory. The environment variable WEIR_MEMORY_MODE, pooled or direct, read once per
 * process, is for engines that were given no mode; any other value is INVALID_ARGUMENT where it would be used.
 */

/**
 * Creates an allocator from host functions. The vtable is copied; `ctx` is passed to its functions. Any number of
 * engines may use it. weir calls vtable->release(ctx) exactly once, after the last reference is gone and all memory
 * was given back; if this call fails, it is never called.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_allocator.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, flags, alignment, allocate or deallocate missing).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_allocator_create(const struct weir_allocator_vtable *vtable,
                                  void *ctx,
                                  struct weir_allocator **out_allocator);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_allocator_retain(struct weir_allocator *allocator);

/**
 * Gives up one reference. NULL does nothing. Settings, engines and memory from the allocator hold references of their
 * own.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_allocator_release(struct weir_allocator *allocator);

/**
 * The source of the engine's memory. NULL: the system, or the device (the default). On an engine of another kind than
 * CPU the allocator provides device memory, as a framework's caching allocator does.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the attribute takes a reference of its
 * own. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_allocator(struct weir_engine_attr *attr,
                                           struct weir_allocator *allocator);

/**
 * The allocator that was set, or NULL.
 *
 * Thread safety: one thread at a time per object. Blocking: never.
 * Ownership: *out_allocator is borrowed and lives as long as the attribute keeps it; retain it to keep it longer.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_allocator(const struct weir_engine_attr *attr,
                                           struct weir_allocator **out_allocator);

/**
 * Maximum number of bytes that the engine may reserve: all of its regions together, whether in use or not. A request
 * beyond it makes the engine give back free regions, and fails with RESOURCE_EXHAUSTED if that is not enough.
 * UINT64_MAX: no limit (the default).
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_memory_limit(struct weir_engine_attr *attr, uint64_t bytes);

/**
 * The limit that was set, or UINT64_MAX.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_memory_limit(const struct weir_engine_attr *attr,
                                              uint64_t *out_bytes);

/**
 * How the engine keeps its memory: one of enum weir_memory_mode_value. A mode that was set comes before
 * WEIR_MEMORY_MODE from the environment.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT (NULL, unknown mode).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_memory_mode(struct weir_engine_attr *attr,
                                             weir_memory_mode mode);

/**
 * The mode that was set, or WEIR_MEMORY_MODE_POOLED. In the attributes of an engine: its actual mode.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_memory_mode(const struct weir_engine_attr *attr,
                                             weir_memory_mode *out_mode);

/**
 * Fills *out_info with current figures of the engine's memory. The cost does not grow with the number of blocks.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set. Errors:
 * INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_get_memory_info(const struct weir_engine *engine,
                                        struct weir_memory_info *out_info);

/**
 * Resets the peaks to the current values.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_reset_memory_peak(struct weir_engine *engine);

/**
 * Gives back regions that are completely free, the largest first, until at most `bytes_to_keep` bytes are reserved or
 * no region is free; likewise the host memory that an accelerator's engine has for copies. Memory in use does not
 * move. Releasing the engine and everything on it gives back all memory.
 *
 * Thread safety: any thread. Blocking: as long as the system or the allocator takes to free the regions. Ownership:
 * none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_trim(struct weir_engine *engine, uint64_t bytes_to_keep);

/**
 * Writes the contents of the engine's memory as JSON: the figures, the uses of blocks with their shares, and each
 * region with its blocks. A block is "used" for something, "kept" for the next request of its size, or "free". For an
 * accelerator's engine also "host_memory", the same for the host memory for copies, and "registered", the memory
 * pinned by weir_buffer_pin. Changes between two calls may make the text longer.
 *
 * Thread safety: any thread. Blocking: other requests for the engine's memory wait while the text is made. Ownership:
 * the caller's buffer. Errors: INVALID_ARGUMENT; OUT_OF_RANGE if capacity is too small (*out_length is set);
 * RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_dump_memory(const struct weir_engine *engine,
                                    char *buffer,
                                    size_t capacity,
                                    size_t *out_length);


/* ---- Stream ------------------------------------------------------------------------------------------------------
 * A stream is an in-order queue on an engine. On the CPU it is synchronous unless asked otherwise: calls run in
 * the calling thread and return their own errors. An asynchronous stream that fails keeps its first error, skips
 * what is queued behind it, reports it once when it is waited for, and refuses new work until the error is
 * cleared. The queue has no bound: whoever submits faster than the stream works fills the memory.
 */

/**
 * Creates settings for streams on engines of one kind, all default.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns *out_attr.
 * Errors: INVALID_ARGUMENT (NULL, unknown kind).
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_attr_create(weir_engine_kind kind, struct weir_stream_attr **out_attr);

/**
 * Destroys settings. NULL does nothing.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: ends here. Errors: none.
 */
WEIR_API void weir_stream_attr_destroy(struct weir_stream_attr *attr);

/**
 * The kind of engine that the settings are for.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_attr_get_kind(const struct weir_stream_attr *attr,
                                      weir_engine_kind *out_kind);

/**
 * The pool on which the stream's work runs. NULL (the default) = the engine's pool, else the calling thread. On a
 * device's stream it runs the host functions (weir_enqueue_task).
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the attribute takes a reference of
 * its own.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_attr_set_threadpool(struct weir_stream_attr *attr,
                                            struct weir_threadpool *pool);

/**
 * The pool that was set, or NULL.
 *
 * Thread safety: one thread at a time per object. Blocking: never.
 * Ownership: *out_pool is borrowed and lives as long as the attribute keeps it; retain it to keep it longer.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_attr_get_threadpool(const struct weir_stream_attr *attr,
                                            struct weir_threadpool **out_pool);

/**
 * Whether enqueuing calls return before the work is done (1) or after it (0, the default on the CPU).
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_attr_set_asynchronous(struct weir_stream_attr *attr,
                                              int32_t asynchronous);

/**
 * The value set by weir_stream_attr_set_asynchronous.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_attr_get_asynchronous(const struct weir_stream_attr *attr,
                                              int32_t *out_asynchronous);

/**
 * How long a thread that waits for the stream spins before it sleeps, in nanoseconds; 0 = not at all. Default 20 us,
 * at most one second.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_attr_set_spin_ns(struct weir_stream_attr *attr, uint64_t spin_ns);

/**
 * The spin budget that was set, in nanoseconds.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_attr_get_spin_ns(const struct weir_stream_attr *attr,
                                         uint64_t *out_spin_ns);

/**
 * Priority, -100 to 100; 0 = normal (the default). The pool receives it as weir_task_hint.priority.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_attr_set_priority(struct weir_stream_attr *attr, int32_t priority);

/**
 * The priority that was set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_attr_get_priority(const struct weir_stream_attr *attr,
                                          int32_t *out_priority);

/**
 * A name for error texts, UTF-8. Without one a stream is called "stream 7".
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied. Errors:
 * INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_attr_set_name(struct weir_stream_attr *attr, const char *name);

/**
 * Copies the name that was set, "" if none.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if capacity is too small (out_length is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_attr_get_name(const struct weir_stream_attr *attr,
                                      char *buffer,
                                      size_t capacity,
                                      size_t *out_length);

/**
 * Creates a stream on an engine. NULL attr = all default. `flags` is OR of weir_stream_flags and adds to the
 * attribute. An asynchronous stream needs a pool that takes single tasks; on any other pool, or without one, it starts
 * one dedicated thread, which weir_runtime_get_info counts. On a pool that runs closures at once, or refuses them, the
 * work runs in the enqueuing call after all.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_stream; attr is copied.
 * Errors: INVALID_ARGUMENT (also an attr of another kind, unknown flags); RESOURCE_EXHAUSTED if a dedicated thread
 * cannot be started.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_create(struct weir_engine *engine,
                               uint64_t stream_flags,
                               const struct weir_stream_attr *attr,
                               struct weir_stream **out_stream);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_retain(struct weir_stream *stream);

/**
 * Gives up one reference. NULL does nothing. Queued work still runs; only weir_engine_synchronize and
 * weir_sync_devices can then report its errors.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_stream_release(struct weir_stream *stream);

/**
 * The engine that the stream is on.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_engine is borrowed and lives as long as the stream.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_get_engine(const struct weir_stream *stream,
                                   struct weir_engine **out_engine);

/**
 * The thread pool that was set for the stream, or NULL if none was (then the engine's is used). There is no setter.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_pool is borrowed and lives as long as the stream.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_get_threadpool(const struct weir_stream *stream,
                                       struct weir_threadpool **out_pool);

/**
 * The settings that the stream was created with.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_attr is borrowed and lives as long as the stream; do
 * not destroy it.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_get_attr(const struct weir_stream *stream,
                                 const struct weir_stream_attr **out_attr);

/**
 * Runs fn(arg) as one piece of the stream's work. If it returns anything but WEIR_OK, an asynchronous stream has
 * failed. `destroy` (may be NULL) is called with arg after fn returned, or when fn is skipped after a failure; not if
 * this call is refused. (A failure of fn itself is no refusal.) On a device's stream fn runs when the device has
 * reached it, on the pool of the stream or its engine, or on a thread of the stream's own if neither takes single
 * tasks; later work is submitted to the device when fn has returned.
 *
 * Thread safety: any thread. Blocking: until fn returned on a synchronous stream, never on an asynchronous one.
 * Ownership: arg passes to the stream if destroy is given.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the stream has failed, or if a synchronous stream is used from
 * inside its own work; on a synchronous stream also fn's status.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_enqueue_task(struct weir_stream *stream,
                              weir_host_fn fn,
                              void *arg,
                              weir_destroy_fn destroy);

/**
 * Waits until all work is done that was queued on the stream before this call. Returns the stream's failure the first
 * time; after that WEIR_OK, while the stream stays failed (weir_stream_get_failure) and refuses work until
 * weir_stream_clear_error.
 *
 * Thread safety: any thread. Blocking: until done, or timeout_ns have passed (0 = poll once, WEIR_TIMEOUT_INFINITE =
 * no limit). It runs work that has not begun in this thread, and so may end late by one item of it; with a time-out it
 * leaves that to the stream's pool for 50 ms first (docs/waiting.md). Ownership: none. Errors: INVALID_ARGUMENT;
 * DEADLINE_EXCEEDED; FAILED_PRECONDITION if called from the stream's own work, or in a worker of a pool while no
 * thread is doing the work; else the stream's failure.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_synchronize(struct weir_stream *stream, uint64_t timeout_ns);

/**
 * Whether everything queued so far is done (1) or not (0), regardless of failure.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_query(const struct weir_stream *stream, int32_t *out_done);

/**
 * Clears the stream's failure, for device synchronisation too. Work enqueued from now on runs again; work enqueued
 * before stays skipped.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_clear_error(struct weir_stream *stream);

/**
 * Makes the stream's later work wait until the event, as last recorded before this call, has been reached. An event
 * that was never recorded is no wait. If the event's stream had failed, an asynchronous stream fails with ABORTED and
 * the origin's text; a synchronous one returns them.
 *
 * Thread safety: any thread. Blocking: never on an asynchronous stream; on a synchronous one until the event is
 * reached.
 * Ownership: none.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the stream has failed, or if a synchronous stream's wait would
 * block a worker.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_wait_event(struct weir_stream *stream, struct weir_event *event);


/* ---- Event -------------------------------------------------------------------------------------------------------
 * An event marks a point in a stream, for other streams and threads to wait for, and for time.
 */

/**
 * Creates an event, not yet recorded. `event_flags` is OR of weir_event_flags.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_event.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_event_create(struct weir_engine *engine,
                              uint64_t event_flags,
                              struct weir_event **out_event);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_event_retain(struct weir_event *event);

/**
 * Gives up one reference. NULL does nothing. A recorded event may be released before it is reached.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_event_release(struct weir_event *event);

/**
 * Records the event after everything queued on the stream so far. Recording again moves it; waits that began for the
 * earlier record still wait for that one.
 *
 * Thread safety: any thread. Blocking: never on an asynchronous stream. Ownership: none.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if a synchronous stream is used from inside its own work. On a
 * failed stream the record is legal, and the event carries the failure.
 */
WEIR_API WEIR_NODISCARD weir_status weir_event_record(struct weir_event *event, struct weir_stream *stream);

/**
 * Whether the event, as last recorded, has been reached (1) or not (0). An event that was never recorded counts as
 * reached.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_event_query(const struct weir_event *event, int32_t *out_done);

/**
 * Waits until the event, as last recorded before this call, has been reached. Returns at once if it was never
 * recorded.
 *
 * Thread safety: any thread. Blocking: until reached, or timeout_ns have passed (0 = poll once, WEIR_TIMEOUT_INFINITE
 * = no limit). Meanwhile it runs queued work, as weir_stream_synchronize does. Ownership: none. Errors:
 * INVALID_ARGUMENT; DEADLINE_EXCEEDED; FAILED_PRECONDITION if waiting here would block a worker that the work needs;
 * else the failure of the stream that the event was recorded on, each time.
 */
WEIR_API WEIR_NODISCARD weir_status weir_event_synchronize(struct weir_event *event, uint64_t timeout_ns);

/**
 * Tells the host when the event, as last recorded before this call, has been reached, as weir_run_notify does for a
 * run. The status is the failure, up to there, of the stream that it was recorded on. If it was never recorded, or has
 * been reached, the notice arrives before the call returns. Recording again, or releasing the event, does not affect
 * earlier notices.
 *
 * Thread safety: any thread. Blocking: never; the function and release run here if the event has been reached.
 * Ownership: `notice` is read during the call; its ctx is released with `release`. Errors: INVALID_ARGUMENT (NULL,
 * neither function nor eventfd, an event_fd that is no eventfd or that blocks); RESOURCE_EXHAUSTED (also if the notice
 * thread of an engine cannot be started).
 */
WEIR_API WEIR_NODISCARD weir_status weir_event_notify(struct weir_event *event, const struct weir_notice *notice);

/**
 * Nanoseconds from `start` to `end` on the monotonic clock; negative if end was reached first.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if either lacks WEIR_EVENT_TIMING, was never recorded, or has not
 * been reached yet.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_event_elapsed_ns(const struct weir_event *start,
                                  const struct weir_event *end,
                                  int64_t *out_ns);


/* ---- Everything at once ------------------------------------------------------------------------------------------
 * One call before you read the clock.
 */

/**
 * Waits until all work is done that was queued before this call, on every stream of every engine, but not for later
 * work: it returns although other threads keep submitting. Call it before you read the clock. Returns the first late
 * error of each engine that this call has not returned yet: the code of the first, and the texts of all. Streams,
 * engines and domains still report their errors themselves. Work of devices for runs of programs is covered too.
 *
 * `results` (NULL, 0 and NULL: none wanted) receives an entry for each engine, in the order of their creation. Set
 * struct_size of the first: it is the distance between entries. *out_count is the number of engines. The work to wait
 * for is noted on all engines before the first wait, so all proceed at once, and a late engine does not hide the
 * results of the others.
 *
 * Inside of a kernel, a task, a region's function, or any callback that weir has called, this is refused at once, as
 * are all waits for everything: the caller is part of everything. weir_stream_synchronize and weir_event_synchronize
 * may be possible there.
 *
 * Thread safety: any thread. Blocking: until done or timeout_ns (WEIR_TIMEOUT_INFINITE, 0 = poll once) have passed; in
 * a thread of a pool that the work needs, it helps or refuses. Ownership: the caller's array. Errors:
 * DEADLINE_EXCEEDED; FAILED_PRECONDITION if weir has called the caller, or if waiting here would block a worker that
 * the work needs; a late error (results are filled all the same, and the code is that of the first engine whose status
 * is not WEIR_OK); OUT_OF_RANGE if capacity is too small (out_count is set, nothing was waited for); INVALID_ARGUMENT
 * (results or out_count NULL where the other is not, struct_size).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_sync_devices(uint64_t timeout_ns,
                              struct weir_engine_sync *results,
                              size_t capacity,
                              size_t *out_count);

/**
 * Begins a scope: weir_async_scope_end reports the late failures from here on, on any asynchronous stream. Scopes may
 * be nested, and overlap in several threads; the first that ends reports a failure. *out_scope is a number, and
 * nothing has to be released. weir_async_scope_begin_in is for the streams of one domain.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL).
 */
WEIR_API WEIR_NODISCARD weir_status weir_async_scope_begin(uint64_t *out_scope);

/**
 * Ends a scope: waits for all work queued on any stream before this call, and returns the first failure since the
 * scope began that neither another scope nor weir_sync_devices has returned, with the texts of the others.
 * weir_sync_devices does not return these again; it still returns failures from before the scope, and domains, engines
 * and streams report theirs all the same. In a scope of weir_async_scope_begin_in the same holds for the domain's
 * streams and weir_sync_domain. Of streams that failed and were released inside of the scope the latest 64 are
 * reported. After a time-out the scope continues, and may be ended again.
 *
 * Thread safety: any thread. Blocking: until done or timeout_ns have passed. Ownership: none.
 * Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION as of weir_sync_devices; else a late error.
 */
WEIR_API WEIR_NODISCARD weir_status weir_async_scope_end(uint64_t scope, uint64_t timeout_ns);

/**
 * Measures `fn`, which queues work on `stream`: calls it `repetitions` times, each time on an idle stream, until the
 * stream is idle again, and stores these times in nanoseconds. `stream` NULL = all streams of all engines. A time
 * always includes the wait: if work that was queued meanwhile on another stream of the same domain is not done, the
 * call fails. Use the median; the first times include cold caches and clocks.
 *
 * Thread safety: any thread; other work on the stream counts. Blocking: until all is done. Ownership: the caller's
 * array of `repetitions` numbers. Errors: INVALID_ARGUMENT (NULL, no repetitions); FAILED_PRECONDITION (another
 * stream, or as of weir_sync_devices); the status that `fn` returned; a late error of the stream.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_time_ns(struct weir_stream *stream,
                         weir_host_fn fn,
                         void *arg,
                         size_t repetitions,
                         uint64_t *out_times);


/* ---- Domain ------------------------------------------------------------------------------------------------------
 * Two users of the library in one process, a framework and a plug-in of it, say, need not wait for each other
 * nor be told of each other's failures: each makes a domain, its engines in it, and waits for the domain. Who
 * asks for none is in the default domain. A late failure is told once by its stream, once by its engine, once by
 * its domain and once by weir_sync_devices; none of them takes it away from another. docs/waiting.md has the
 * rules.
 */

/**
 * Creates a domain. `name` is for texts: 1 to 24 letters, digits, '.', '_' and '-'. Two users need not know of each
 * other: if another live domain has the name, this one's gets a number, as in "torch#2". weir_engine_attr_set_domain
 * puts engines into a domain.
 *
 * Thread safety: any thread. Blocking: never. Ownership: name is copied; the caller owns one reference to *out_domain.
 * Errors: INVALID_ARGUMENT (NULL, no such name); RESOURCE_EXHAUSTED (memory, or 16 million domains were made).
 */
WEIR_API WEIR_NODISCARD weir_status weir_domain_create(const char *name, struct weir_domain **out_domain);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_domain_retain(struct weir_domain *domain);

/**
 * Gives up one reference. NULL does nothing. Settings and engines hold references of their own.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_domain_release(struct weir_domain *domain);

/**
 * Copies the domain's name, which is unique among live domains.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if the buffer is too small.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_domain_get_name(const struct weir_domain *domain,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *out_length);

/**
 * The domain that the engine is created in. NULL: the default domain, shared by all that set none.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the attribute takes a reference of its
 * own.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_domain(struct weir_engine_attr *attr,
                                        struct weir_domain *domain);

/**
 * The domain that was set, or NULL.
 *
 * Thread safety: one thread at a time per object. Blocking: never.
 * Ownership: *out_domain is borrowed and lives as long as the attribute keeps it; retain it to keep it longer.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_domain(const struct weir_engine_attr *attr,
                                        struct weir_domain **out_domain);

/**
 * The engine's name in texts, instead of its device's: as in weir_domain_create, or "" for none (the default). If
 * another engine of the domain has it, this one's gets a number, as in "encoder#2". Engines without a name of their
 * own share their device's name, "cpu:0".
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied. Errors:
 * INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_name(struct weir_engine_attr *attr, const char *name);

/**
 * Copies the name that was set, "" if none.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if the buffer is too small.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_name(const struct weir_engine_attr *attr,
                                      char *buffer,
                                      size_t capacity,
                                      size_t *out_length);

/**
 * Copies the engine's name as all texts print it: its own name, else its device's, after the domain's: "cpu:0",
 * "encoder", "torch/cpu:0", "torch/encoder#2". Engines of two domains never have the same name; in one domain engines
 * without a name of their own may.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if the buffer is too small.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_get_name(const struct weir_engine *engine,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *out_length);

/**
 * As weir_sync_devices, for the streams of the domain's engines only. It does not wait for other domains' work. NULL:
 * the default domain. Returns the first late error of each of these engines that this call has not returned yet: the
 * code of the first, and the texts of all. Streams, engines and weir_sync_devices still report their errors, and their
 * reports take nothing away from this call.
 *
 * Work that runs of programs have submitted to these engines so far is covered, no matter which user started them; the
 * rest of such a run is covered if it was started on a stream of the domain. Work that waits for another domain's (an
 * event, a run over engines of both) is waited for with that.
 *
 * Thread safety: any thread. Blocking: as weir_sync_devices. Ownership: the caller's array. Errors: those of
 * weir_sync_devices; INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_sync_domain(const struct weir_domain *domain,
                             uint64_t timeout_ns,
                             struct weir_engine_sync *results,
                             size_t capacity,
                             size_t *out_count);

/**
 * Begins a scope, as weir_async_scope_begin, for late failures on streams of the domain's engines. NULL: the default
 * domain. weir_async_scope_end waits for these streams only, and failures that it returns are not returned again by
 * weir_sync_domain. Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_async_scope_begin_in(const struct weir_domain *domain, uint64_t *out_scope);


/* ---- Buffer ------------------------------------------------------------------------------------------------------
 * A buffer is memory without a shape: of the engine's, or of yours, which is given back to you by a callback.
 * Tensors lie in it where you say.
 */

/**
 * Creates a buffer of `bytes` bytes: memory without a shape, with any contents; 0 bytes are legal. `from` NULL: new
 * memory of the engine's, with its alignment; else FOREIGN or PINNED memory.
 *
 * Thread safety: any thread. Blocking: never; as long as the device takes to pin memory, when another region of it is
 * needed. Ownership: the caller owns one reference to *out_buffer; from is copied. Errors: INVALID_ARGUMENT (NULL; of
 * from: its source, members that do not belong to it, NULL data unless bytes is 0, PINNED for an engine that is no CPU
 * engine); OUT_OF_RANGE (no memory at this address is that large, or the memory is too small); RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_buffer_create(struct weir_engine *engine,
                               size_t bytes,
                               const struct weir_memory *from,
                               struct weir_buffer **out_buffer);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_buffer_retain(struct weir_buffer *buffer);

/**
 * Gives up one reference. NULL does nothing. Tensors on the buffer hold references of their own.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_buffer_release(struct weir_buffer *buffer);

/**
 * Address of the first byte, in the engine's memory. Reading or writing it while queued work uses it is a race.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_data is borrowed and lives as long as the buffer.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_buffer_get_data(const struct weir_buffer *buffer, void **out_data);

/**
 * Size in bytes.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_buffer_get_size(const struct weir_buffer *buffer, size_t *out_bytes);

/**
 * The engine whose memory the buffer is in, or whose kernels reach it.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_engine is borrowed and lives as long as the buffer.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_buffer_get_engine(const struct weir_buffer *buffer,
                                   struct weir_engine **out_engine);


/* ---- Tensor ------------------------------------------------------------------------------------------------------
 * A tensor is a dense, row-major array in an engine's memory, or over memory of yours.
 */

/**
 * The name of an element type, "f32"; "?" for an unknown number.
 *
 * Thread safety: any thread. Blocking: never. Ownership: static text. Errors: none.
 */
WEIR_API const char *weir_dtype_name(weir_dtype dtype);

/**
 * The size of an element in bytes.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL, unknown type).
 */
WEIR_API WEIR_NODISCARD weir_status weir_dtype_size(weir_dtype dtype, size_t *out_bytes);

/**
 * Creates a tensor. `from` NULL: in new memory of the engine's, zeros on a CPU engine, any contents on others
 * (weir_enqueue_fill); else in the memory that it names, as it is, or zeros in pinned memory.
 *
 * A `desc` with dimensions of WEIR_DIM_DYNAMIC makes a tensor whose shape is decided by the run that writes it: it is
 * passed to runs as an output whose shape is open, and may be an input of such a shape. A run whose output shape does
 * not match `desc` fails. Until a run has succeeded the open dimensions are 0. Its memory is the engine's and grows, or
 * is FOREIGN; weir_tensor_get_desc, weir_tensor_get_data and weir_tensor_get_size describe the last run's output, and
 * addresses obtained before are no longer valid. FOREIGN memory stays where it is: a run whose output does not fit
 * fails with OUT_OF_RANGE and both sizes in its text, and leaves all its dynamic outputs unchanged.
 *
 * Thread safety: any thread; reading a tensor while a run writes it is a race. Blocking: never; as long as the device
 * takes to pin memory, when another region of it is needed. Ownership: the caller owns one reference to *out_tensor;
 * desc and from are copied. Errors: INVALID_ARGUMENT (NULL, unknown dtype, rank, negative dimension; of from: its
 * source, members that do not belong to it, NULL or misaligned data, a buffer of another engine, PINNED for an engine
 * that is no CPU engine, open dimensions in a buffer or pinned memory); OUT_OF_RANGE if the size overflows, or the
 * memory is too small; UNIMPLEMENTED (open dimensions on an accelerator's engine); RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_create(struct weir_engine *engine,
                               const struct weir_tensor_desc *desc,
                               const struct weir_memory *from,
                               struct weir_tensor **out_tensor);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_tensor_retain(struct weir_tensor *tensor);

/**
 * Gives up one reference. NULL does nothing. Queued work holds references of its own.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_tensor_release(struct weir_tensor *tensor);

/**
 * Element type and shape.
 *
 * Thread safety: any thread. Blocking: never. Ownership: copied. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_get_desc(const struct weir_tensor *tensor,
                                 struct weir_tensor_desc *out_desc);

/**
 * Address of the first element, in the engine's memory; only on a CPU engine may the host use it. Reading or writing
 * it while queued work uses it is a race.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_data is borrowed and lives as long as the tensor.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_tensor_get_data(const struct weir_tensor *tensor, void **out_data);

/**
 * Size of the elements in bytes.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_tensor_get_size(const struct weir_tensor *tensor, size_t *out_bytes);

/**
 * The engine whose memory the tensor is in.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_engine is borrowed and lives as long as the tensor.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_get_engine(const struct weir_tensor *tensor,
                                   struct weir_engine **out_engine);

/**
 * Pins existing memory, above all that of the caller (WEIR_MEMORY_FOREIGN), for copies by `device`, until the buffer
 * ends: before its release function is called. Pinning is slow, so pin memory that is used often. A buffer may be
 * pinned for several engines, one after the other.
 *
 * Thread safety: any thread. Blocking: as long as the device takes. Ownership: none. Errors: INVALID_ARGUMENT (NULL, a
 * buffer of an engine that is no CPU engine, a part of it is pinned); ALREADY_EXISTS (all of it is); UNIMPLEMENTED
 * (the engine's device does not do this: `pinning` of weir_memory_info lacks WEIR_PINNING_REGISTERS);
 * RESOURCE_EXHAUSTED.
 */
WEIR_API WEIR_NODISCARD weir_status weir_buffer_pin(struct weir_buffer *buffer, struct weir_engine *device);

/**
 * Stores 1 if `device` copies directly from and to the buffer's memory, else 0. It searches the device's pinned
 * memory: ask once, not for each copy.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_buffer_is_pinned(const struct weir_buffer *buffer,
                                  const struct weir_engine *device,
                                  int32_t *out_pinned);

/**
 * As weir_buffer_is_pinned, for a tensor's memory.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_is_pinned(const struct weir_tensor *tensor,
                                  const struct weir_engine *device,
                                  int32_t *out_pinned);

/**
 * Maximum number of bytes of host memory that the engine may reserve for copies: regions of pinned memory, whether in
 * use or not. Memory pinned by weir_buffer_pin does not count. A request beyond it fails with RESOURCE_EXHAUSTED, as
 * with weir_engine_attr_set_memory_limit. UINT64_MAX: no limit (the default).
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the attribute's kind is CPU.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_pinned_limit(struct weir_engine_attr *attr, uint64_t bytes);

/**
 * The limit that was set, or UINT64_MAX.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the attribute's kind is CPU.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_pinned_limit(const struct weir_engine_attr *attr,
                                              uint64_t *out_bytes);

/**
 * Copies the elements of one tensor to another of the same type and shape. The two may be on two engines: then the
 * stream is of one of them, and of a device if one of them is. Between devices that cannot reach each other's memory,
 * above all those of two kinds, the copy goes through host memory: it then begins when the stream has reached it, on a
 * stream created for it, and the stream continues when it is over. CPU tensors that a device copies from or to must
 * stay alive and unchanged until the copy is done.
 *
 * Thread safety: any thread. Blocking: until done on a synchronous stream, never on others. Ownership: the work holds
 * references to both tensors until it is done. Errors: INVALID_ARGUMENT (also another type or shape, memory in common,
 * a dynamic tensor, engines that the stream cannot reach); FAILED_PRECONDITION if the stream has failed, or if a
 * synchronous stream is used from inside its own work; errors of the device, at once or late.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_enqueue_copy(struct weir_stream *stream,
                              struct weir_tensor *source,
                              struct weir_tensor *target);

/**
 * Sets every byte of a tensor of the stream's engine to `value`.
 *
 * Thread safety: any thread. Blocking: until done on a synchronous stream, never on others. Ownership: the work holds
 * a reference to the tensor until it is done. Errors: INVALID_ARGUMENT (also value not 0 to 255, a dynamic tensor, a
 * tensor of another engine); FAILED_PRECONDITION if the stream has failed, or if a synchronous stream is used from
 * inside its own work; errors of the device, at once or late.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_enqueue_fill(struct weir_stream *stream,
                              struct weir_tensor *tensor,
                              int32_t value);


/* ---- Kernel ------------------------------------------------------------------------------------------------------
 * A kernel is a function over tensors with a checked signature: one of the built-in ones, or a C function of
 * yours, which sees its call through a weir_kernel_context.
 */

/**
 * Creates settings for kernels, all default.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns *out_attr. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_attr_create(struct weir_kernel_attr **out_attr);

/**
 * Destroys settings. NULL does nothing.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: ends here. Errors: none.
 */
WEIR_API void weir_kernel_attr_destroy(struct weir_kernel_attr *attr);

/**
 * A name for error texts and dumps, UTF-8. Without one a kernel has the name of its operation, "matmul".
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied. Errors:
 * INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_attr_set_name(struct weir_kernel_attr *attr, const char *name);

/**
 * Copies the name that was set, "" if none.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if capacity is too small (out_length is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_attr_get_name(const struct weir_kernel_attr *attr,
                                      char *buffer,
                                      size_t capacity,
                                      size_t *out_length);

/**
 * Estimated run time of one call, in nanoseconds; 0 = the kernel's own estimate (the default). It guides
 * scheduling and never changes a result.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_attr_set_cost_ns(struct weir_kernel_attr *attr, uint64_t cost_ns);

/**
 * The run time that was set, in nanoseconds.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_attr_get_cost_ns(const struct weir_kernel_attr *attr,
                                         uint64_t *out_cost_ns);

/**
 * Creates a kernel from a function of the host's.
 *
 * Thread safety: any thread. Blocking: never.
 * Ownership: the caller owns one reference to *out_kernel; desc is copied; desc->user passes to the kernel if
 * desc->destroy is given.
 * Errors: INVALID_ARGUMENT (NULL engine, desc or compute, struct_size, unknown flags, bad signature, bad UTF-8);
 * OUT_OF_RANGE (num_inputs, num_outputs).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_host(struct weir_engine *engine,
                                    const struct weir_host_kernel_desc *desc,
                                    struct weir_kernel **out_kernel);

/**
 * Creates a matrix product, see weir_matmul_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no
 * flags.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied, and the kernel keeps desc->weights alive.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags or activation, reserved not 0, weights that are of s8,
 * are to be transposed or are of another engine's device, WEIR_MAX_ISA).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_matmul(struct weir_engine *engine,
                                      const struct weir_matmul_desc *desc,
                                      const struct weir_kernel_attr *attr,
                                      struct weir_kernel **out_kernel);

/**
 * Creates a sum of two tensors, see weir_add_desc. desc may be NULL.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_add(struct weir_engine *engine,
                                   const struct weir_add_desc *desc,
                                   const struct weir_kernel_attr *attr,
                                   struct weir_kernel **out_kernel);

/**
 * Creates a rectifier, see weir_relu_desc. desc may be NULL.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_relu(struct weir_engine *engine,
                                    const struct weir_relu_desc *desc,
                                    const struct weir_kernel_attr *attr,
                                    struct weir_kernel **out_kernel);

/**
 * Creates a softmax, see weir_softmax_desc. NULL desc = the last axis.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and attr
 * are copied. Errors: INVALID_ARGUMENT (NULL, struct_size, reserved not 0, unknown flags, WEIR_MAX_ISA); OUT_OF_RANGE
 * (axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_softmax(struct weir_engine *engine,
                                       const struct weir_softmax_desc *desc,
                                       const struct weir_kernel_attr *attr,
                                       struct weir_kernel **out_kernel);

/**
 * Creates an argmax, see weir_argmax_desc. NULL desc = the last axis.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, reserved not 0); OUT_OF_RANGE (axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_argmax(struct weir_engine *engine,
                                      const struct weir_argmax_desc *desc,
                                      const struct weir_kernel_attr *attr,
                                      struct weir_kernel **out_kernel);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_retain(struct weir_kernel *kernel);

/**
 * Gives up one reference. NULL does nothing. Graphs, programs and queued work hold references of their own.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_kernel_release(struct weir_kernel *kernel);

/**
 * Describes the kernel.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set. Errors:
 * INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_get_info(const struct weir_kernel *kernel,
                                 struct weir_kernel_info *out_info);

/**
 * Computes the descriptors of the kernel's outputs for inputs of these types and shapes.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's arrays.
 * Errors: INVALID_ARGUMENT (also inputs that the kernel refuses; the text names the input).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_infer(const struct weir_kernel *kernel,
                              const struct weir_tensor_desc *inputs,
                              size_t num_inputs,
                              struct weir_tensor_desc *out_outputs,
                              size_t num_outputs);

/**
 * Runs a kernel on a stream. The tensors are checked against the kernel's signature before anything is queued, and
 * they stay alive until the work is done. An output may share memory with an input only if the kernel says
 * WEIR_KERNEL_IN_PLACE.
 *
 * A kernel with compute_async blocks the stream until its call is completed: later work begins then, a wait for the
 * stream waits for it, and its failure is the stream's. The completing thread continues the stream; a stream that is
 * released meanwhile ends when its work has.
 *
 * Thread safety: any thread. Blocking: until the kernel is done on a synchronous stream, never on an asynchronous one.
 * Ownership: an asynchronous stream, or a kernel with compute_async, takes references to kernel and tensors; else the
 * caller keeps them alive until the call returns. The arrays are copied. Errors: INVALID_ARGUMENT (NULL, count, dtype,
 * shape, engine, overlap; the text names the argument); OUT_OF_RANGE (more than WEIR_MAX_ARGS); FAILED_PRECONDITION if
 * the stream has failed, or for a kernel with compute_async on a synchronous stream in a worker of a pool;
 * RESOURCE_EXHAUSTED; on a synchronous stream also the kernel's own status.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_enqueue(struct weir_stream *stream,
                         struct weir_kernel *kernel,
                         struct weir_tensor *const *inputs,
                         size_t num_inputs,
                         struct weir_tensor *const *outputs,
                         size_t num_outputs);

/**
 * Creates a kernel that only the engine's device knows, see weir_named_kernel_desc: one of a plug-in's own. attr may
 * be NULL; without a name in it the kernel has the name of the operation.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and attr
 * are copied; desc->user passes to the kernel if desc->destroy is given. Errors: INVALID_ARGUMENT (NULL, struct_size,
 * bad signature, bad UTF-8); OUT_OF_RANGE (num_inputs, num_outputs); UNIMPLEMENTED if the device has no such kernel,
 * or the engine is a CPU engine; else errors of the device.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_named(struct weir_engine *engine,
                                     const struct weir_named_kernel_desc *desc,
                                     const struct weir_kernel_attr *attr,
                                     struct weir_kernel **out_kernel);


/* ---- CUDA --------------------------------------------------------------------------------------------------------
 * Engines of kind WEIR_ENGINE_CUDA stand on the devices of the CUDA driver, which is looked for at run time: a
 * machine without one, or with one older than CUDA 12.0, has no such engines, and the failure of
 * weir_engine_create says why. They work in the primary context, as the runtime library of CUDA does, or in one
 * of yours; streams and events go both ways. The streams of weir do not wait for the legacy default stream, nor
 * it for them. The environment variable WEIR_CUDA_SYNC=1 has each call wait for its work, to find what fails.
 * Matrix products are those of cuBLASLt where that is installed; WEIR_CUDA_BLAS=0 leaves it alone, and with
 * WEIR_CUDA_BLAS=1 a kernel of products is not made without it (UNAVAILABLE). docs/cuda.md has the rules.
 */

/**
 * Fills *out_info with properties of a CUDA engine's device.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set by the caller. Errors:
 * INVALID_ARGUMENT (NULL, struct_size); UNIMPLEMENTED if the engine is of another kind, or the build is without CUDA;
 * errors of the driver.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_cuda_get_device_info(const struct weir_engine *engine,
                                      struct weir_cuda_device_info *out_info);

/**
 * The CUcontext that an engine works in; NULL (the default) = the device's primary context, which weir retains and
 * whose flags it leaves alone. It must be of the device with the engine's index, and no other engine may be on that
 * device with another context.
 *
 * Thread safety: one thread at a time per object. Blocking: never.
 * Ownership: the context stays the caller's, who keeps it until the engine and all objects on it are gone. Errors:
 * INVALID_ARGUMENT; UNIMPLEMENTED if the attribute's kind is not CUDA, or the build is without CUDA.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_cuda_context(struct weir_engine_attr *attr, void *context);

/**
 * Creates a weir stream on a CUstream of the caller's. NULL or (CUstream)1 = the legacy default stream, (CUstream)2 =
 * the default stream of the submitting thread. The caller's own work on it runs in the order of the calls. Work that
 * is enqueued while the caller captures the CUstream becomes part of the caller's graph, and the graph keeps
 * everything that this work uses. Work that cannot be captured is refused (docs/cuda.md). attr may be NULL; its
 * priority is ignored.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_stream; cuda_stream
 * stays the caller's, who keeps it until the submitted work is done and the last reference gone, and if that was
 * released during a capture, until the graph is gone. Errors: INVALID_ARGUMENT (also a stream of another context, an
 * attr of another kind); UNIMPLEMENTED if the engine is of another kind, or the build is without CUDA; errors of the
 * driver.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_wrap_cuda(struct weir_engine *engine,
                                  void *cuda_stream,
                                  const struct weir_stream_attr *attr,
                                  struct weir_stream **out_stream);

/**
 * Makes later work on the stream wait for a CUevent of the caller's, as last recorded when this call is issued.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the event stays the caller's, who keeps it until this call
 * has been issued: when it returns, unless something in front of it waits for the host. Errors: INVALID_ARGUMENT;
 * UNIMPLEMENTED if the stream's engine is of another kind, or the build is without CUDA; an error of the event becomes
 * the stream's.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_wait_cuda_event(struct weir_stream *stream, void *cuda_event);

/**
 * Records a CUevent of the caller's after all work submitted so far.
 *
 * Thread safety: any thread. Blocking: never. Ownership: as weir_stream_wait_cuda_event.
 * Errors: as weir_stream_wait_cuda_event.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_record_cuda_event(struct weir_stream *stream, void *cuda_event);

/**
 * Creates a kernel from source code of the caller's: CUDA C++, PTX or a binary. It is compiled, if necessary, and
 * loaded in this call; a launch only fills in addresses and counts. The output of NVRTC is cached on disk, in the
 * folder that the environment variable WEIR_CUDA_CACHE names (empty = no cache), else in weir/cuda in the user's cache
 * folder; a file is read only if nobody but this user can have written it. attr may be NULL; without a name in it the
 * kernel has the name of its entry.
 *
 * Thread safety: any thread. Blocking: while it is compiled and loaded. Ownership: the caller owns one reference to
 * *out_kernel; desc, the data it points to and attr are copied; desc->user passes to the kernel if desc->destroy is
 * given. Errors: INVALID_ARGUMENT (NULL, struct_size, signature, block, arguments that do not match the entry as far
 * as the driver knows them; a source with errors: the text is the compiler's); OUT_OF_RANGE; NOT_FOUND if there is no
 * such entry; UNAVAILABLE without NVRTC; UNIMPLEMENTED if the engine is of another kind, the source not for its
 * device, or the build without CUDA; errors of the driver.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_cuda(struct weir_engine *engine,
                                    const struct weir_cuda_kernel_desc *desc,
                                    const struct weir_kernel_attr *attr,
                                    struct weir_kernel **out_kernel);

/**
 * Creates a unary elementwise function, see weir_eltwise_desc.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and attr
 * are copied. Errors: INVALID_ARGUMENT (NULL, struct_size, unknown op, a parameter that is NaN or that the function
 * does not have, alpha 0 for WEIR_ELTWISE_SOFTPLUS, reserved not 0, WEIR_MAX_ISA).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_eltwise(struct weir_engine *engine,
                                       const struct weir_eltwise_desc *desc,
                                       const struct weir_kernel_attr *attr,
                                       struct weir_kernel **out_kernel);

/**
 * Creates a binary elementwise function, see weir_binary_desc.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, unknown op, reserved not 0, WEIR_MAX_ISA).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_binary(struct weir_engine *engine,
                                      const struct weir_binary_desc *desc,
                                      const struct weir_kernel_attr *attr,
                                      struct weir_kernel **out_kernel);

/**
 * Creates an elementwise choice between two tensors, see weir_select_desc. desc may be NULL.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_select(struct weir_engine *engine,
                                      const struct weir_select_desc *desc,
                                      const struct weir_kernel_attr *attr,
                                      struct weir_kernel **out_kernel);

/**
 * Creates a conversion to another storage type, see weir_convert_desc.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, dtype, scale or shift that is NaN, reserved not 0, WEIR_MAX_ISA).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_convert(struct weir_engine *engine,
                                       const struct weir_convert_desc *desc,
                                       const struct weir_kernel_attr *attr,
                                       struct weir_kernel **out_kernel);

/**
 * Creates a quantization, see weir_quantize_desc.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, dtype, WEIR_MAX_ISA); OUT_OF_RANGE (axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_quantize(struct weir_engine *engine,
                                        const struct weir_quantize_desc *desc,
                                        const struct weir_kernel_attr *attr,
                                        struct weir_kernel **out_kernel);

/**
 * Creates a dequantization, see weir_dequantize_desc.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, dtype, WEIR_MAX_ISA); OUT_OF_RANGE (axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_dequantize(struct weir_engine *engine,
                                          const struct weir_dequantize_desc *desc,
                                          const struct weir_kernel_attr *attr,
                                          struct weir_kernel **out_kernel);

/**
 * Creates a transposition, see weir_transpose_desc. NULL desc = the dimensions in reverse order.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, reserved not 0, a dimension named twice); OUT_OF_RANGE (rank above
 * WEIR_MAX_RANK, a dimension that does not exist).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_transpose(struct weir_engine *engine,
                                         const struct weir_transpose_desc *desc,
                                         const struct weir_kernel_attr *attr,
                                         struct weir_kernel **out_kernel);

/**
 * Creates a concatenation, see weir_concat_desc.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size); OUT_OF_RANGE (num_inputs, axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_concat(struct weir_engine *engine,
                                      const struct weir_concat_desc *desc,
                                      const struct weir_kernel_attr *attr,
                                      struct weir_kernel **out_kernel);

/**
 * Creates a slice, see weir_slice_desc.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, reserved not 0); OUT_OF_RANGE (rank above WEIR_MAX_RANK).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_slice(struct weir_engine *engine,
                                     const struct weir_slice_desc *desc,
                                     const struct weir_kernel_attr *attr,
                                     struct weir_kernel **out_kernel);

/**
 * Creates a padding, see weir_pad_desc.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and attr
 * are copied. Errors: INVALID_ARGUMENT (NULL, struct_size, unknown mode, a margin below 0); OUT_OF_RANGE (rank above
 * WEIR_MAX_RANK).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_pad(struct weir_engine *engine,
                                   const struct weir_pad_desc *desc,
                                   const struct weir_kernel_attr *attr,
                                   struct weir_kernel **out_kernel);

/**
 * Creates a reshape, see weir_reshape_desc.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and attr
 * are copied. Errors: INVALID_ARGUMENT (NULL, struct_size, reserved not 0, a dimension below -1, two that are -1);
 * OUT_OF_RANGE (rank above WEIR_MAX_RANK).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_reshape(struct weir_engine *engine,
                                       const struct weir_reshape_desc *desc,
                                       const struct weir_kernel_attr *attr,
                                       struct weir_kernel **out_kernel);

/**
 * Creates a gather, see weir_gather_desc. NULL desc = axis -1.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, reserved not 0); OUT_OF_RANGE (axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_gather(struct weir_engine *engine,
                                      const struct weir_gather_desc *desc,
                                      const struct weir_kernel_attr *attr,
                                      struct weir_kernel **out_kernel);

/**
 * Creates a reduction, see weir_reduce_desc.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and attr
 * are copied. Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, unknown op, p of a norm other than 1 and 2,
 * eps below 0 or a NaN, p or eps of a reduction other than a norm, WEIR_MAX_ISA); OUT_OF_RANGE (num_axes above
 * WEIR_MAX_RANK, an axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_reduce(struct weir_engine *engine,
                                      const struct weir_reduce_desc *desc,
                                      const struct weir_kernel_attr *attr,
                                      struct weir_kernel **out_kernel);

/**
 * Creates a normalisation, see weir_norm_desc.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and attr
 * are copied. Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, unknown op, groups 0 of a group
 * normalisation or not 0 of another one, epsilon below 0 or a NaN, WEIR_MAX_ISA); OUT_OF_RANGE (axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_norm(struct weir_engine *engine,
                                    const struct weir_norm_desc *desc,
                                    const struct weir_kernel_attr *attr,
                                    struct weir_kernel **out_kernel);

/**
 * Creates a convolution, see weir_conv_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no bias,
 * no padding, strides of 1.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, layouts, padding or activation, WEIR_MAX_ISA);
 * OUT_OF_RANGE (negative or enormous numbers).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_conv(struct weir_engine *engine,
                                    const struct weir_conv_desc *desc,
                                    const struct weir_kernel_attr *attr,
                                    struct weir_kernel **out_kernel);

/**
 * Creates a pooling, see weir_pooling_desc. Shapes are checked when it is enqueued or compiled.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, op or layout, windows beside WEIR_POOLING_GLOBAL);
 * OUT_OF_RANGE (negative or enormous numbers, a window without taps, padding as long as the window).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_pooling(struct weir_engine *engine,
                                       const struct weir_pooling_desc *desc,
                                       const struct weir_kernel_attr *attr,
                                       struct weir_kernel **out_kernel);

/**
 * Creates a step of an LSTM, see weir_lstm_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no
 * biases, gates in the order of ONNX.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags or gate order, reserved not 0, WEIR_MAX_ISA).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_lstm(struct weir_engine *engine,
                                    const struct weir_lstm_desc *desc,
                                    const struct weir_kernel_attr *attr,
                                    struct weir_kernel **out_kernel);

/**
 * Creates a step of a GRU, see weir_gru_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no
 * biases, gates in the order of ONNX, reset before the product.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags or gate order, reserved not 0, WEIR_MAX_ISA).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_gru(struct weir_engine *engine,
                                   const struct weir_gru_desc *desc,
                                   const struct weir_kernel_attr *attr,
                                   struct weir_kernel **out_kernel);

/**
 * Packs the weights of matrix products: a tensor [K, N] of f32, f16, bf16 or s8, as desc says; NULL desc = not
 * transposed. Any number of kernels, on any pools and threads, take the result in place of the input B. The packed
 * layout depends only on the size, the type and the instruction set. The tensor is read before this returns, and not
 * needed any more.
 *
 * Thread safety: any thread, while nothing writes the tensor. Blocking: never, but it takes the time to copy the
 * tensor. Ownership: the caller owns one reference to *out_weights; kernels hold references of their own. Errors:
 * INVALID_ARGUMENT (NULL, struct_size, unknown flags, another type or rank, a tensor of another engine's device,
 * WEIR_MAX_ISA); FAILED_PRECONDITION (a dynamic tensor); OUT_OF_RANGE; RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_packed_weights_create(struct weir_engine *engine,
                                       const struct weir_tensor *tensor,
                                       const struct weir_packed_weights_desc *desc,
                                       struct weir_packed_weights **out_weights);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_packed_weights_retain(struct weir_packed_weights *weights);

/**
 * Gives up one reference. NULL does nothing. Kernels made with the weights keep them.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_packed_weights_release(struct weir_packed_weights *weights);

/**
 * Size of the packed weights in bytes.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_packed_weights_get_size(const struct weir_packed_weights *weights,
                                         size_t *out_bytes);

/**
 * Creates an int8 matrix product, see weir_matmul_int8_desc. Shapes are checked when it is enqueued or compiled. NULL
 * desc = 32-bit sums, no zero points.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and attr
 * are copied, and the kernel keeps desc->weights alive. Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags or
 * type, reserved not 0, a scale that is not finite, weights that are not s8, are to be transposed or are of another
 * engine's device, WEIR_MAX_ISA); OUT_OF_RANGE (zero points).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_matmul_int8(struct weir_engine *engine,
                                           const struct weir_matmul_int8_desc *desc,
                                           const struct weir_kernel_attr *attr,
                                           struct weir_kernel **out_kernel);


/* ---- Kernel cache ------------------------------------------------------------------------------------------------
 * Who creates a built-in kernel that was created before, for the same device and with the same settings, is
 * given the same kernel in a handle of its own: name, cost and engine are the handle's. The cache keeps no
 * engine, pool or packed weights alive, and is empty when the last engine is released. Kernels of the host are
 * not in it. The environment variable WEIR_KERNEL_CACHE_CAPACITY, 0 to 1048576, says how many kernels are kept
 * if weir_kernel_cache_set_capacity does not; it is read once per process, and any other value is
 * INVALID_ARGUMENT where a built-in kernel is created.
 */

/**
 * Sets the maximum number of kernels kept, 0 to 1048576; 0 = no cache. It comes before WEIR_KERNEL_CACHE_CAPACITY from
 * the environment; without either it is 1024. Excess kernels are released, least recently used first.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: OUT_OF_RANGE.
 */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_cache_set_capacity(size_t capacity);

/**
 * The maximum number of kernels kept.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT (NULL, a meaningless value of WEIR_KERNEL_CACHE_CAPACITY).
 */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_cache_get_capacity(size_t *out_capacity);

/**
 * Fills *out_info with the cache's capacity, size and counters.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, a meaningless value of WEIR_KERNEL_CACHE_CAPACITY).
 */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_cache_get_info(struct weir_kernel_cache_info *out_info);

/**
 * The inputs, an array of num_inputs views.
 *
 * Thread safety: any thread, during the call. Blocking: never. Ownership: borrowed, valid until compute returns.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_get_inputs(const struct weir_kernel_context *context,
                                           const struct weir_tensor_view **out_views,
                                           size_t *out_count);

/**
 * The outputs, an array of num_outputs views.
 *
 * Thread safety: any thread, during the call. Blocking: never. Ownership: borrowed, valid until compute returns.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_get_outputs(const struct weir_kernel_context *context,
                                            const struct weir_tensor_view **out_views,
                                            size_t *out_count);

/**
 * The number of slots that a region of this call can have: pieces that run at once, the calling thread included.
 *
 * Thread safety: any thread, during the call. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_get_num_slots(const struct weir_kernel_context *context,
                                              int32_t *out_num_slots);

/**
 * The scratch memory of a slot: desc->scratch_bytes bytes, aligned to 64, contents undefined; NULL if
 * scratch_bytes is 0. Slot 0 may be used outside of a region.
 *
 * Thread safety: any thread, during the call. Blocking: never. Ownership: borrowed, valid until compute returns.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE (slot).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_get_scratch(const struct weir_kernel_context *context,
                                            int32_t slot,
                                            void **out_scratch);

/**
 * As weir_parallel_for, on the pool and with the slots of this call.
 *
 * Thread safety: any thread, during the call. Blocking: until all pieces have returned. Ownership: arg is the
 * caller's.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE (n < 0); CANCELLED if the run was cancelled; else the first nonzero
 * status that fn returned.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_parallel_for(const struct weir_kernel_context *context,
                                             int64_t n,
                                             const struct weir_parallel_hint *hint,
                                             weir_range_fn fn,
                                             void *arg);

/**
 * As weir_parallel_nd, on the pool and with the slots of this call.
 *
 * Thread safety: any thread, during the call. Blocking: until all pieces have returned. Ownership: arg is the
 * caller's; the arrays are only read during the call.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE; CANCELLED if the run was cancelled; else the first nonzero status that fn
 * returned.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_parallel_nd(const struct weir_kernel_context *context,
                                            int32_t rank,
                                            const int64_t *extents,
                                            const int64_t *tile,
                                            const struct weir_parallel_hint *hint,
                                            weir_box_fn fn,
                                            void *arg);

/**
 * Whether the run was cancelled or has failed elsewhere (1), so that the result is not needed any more, or not (0).
 *
 * Thread safety: any thread, during the call. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_is_cancelled(const struct weir_kernel_context *context,
                                             int32_t *out_cancelled);

/**
 * Makes the kernel fail with a code and a text, regardless of the status that compute returns. The first failure
 * counts.
 *
 * Thread safety: any thread, during the call. Blocking: never. Ownership: message is copied.
 * Errors: INVALID_ARGUMENT (NULL, bad UTF-8, code is WEIR_OK or no code).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_fail(struct weir_kernel_context *context,
                                     weir_status code,
                                     const char *message);

/**
 * Completes a call of an asynchronous kernel. `status` is WEIR_OK or the code of its failure, `text` (may be NULL) is
 * the reason of the failure; an earlier weir_kernel_context_fail takes precedence. From here on the context and the
 * tensors no longer belong to the call.
 *
 * The handle is not an object: a second call for the same handle is refused and does nothing, even when the graph, the
 * program and the kernel are long gone, unless 2^32 later calls have taken its place.
 *
 * Thread safety: any thread, once per call. Blocking: never; later nodes run on threads of the pool, or in the thread
 * that waits for the run, and here only if the run's pool runs submitted work in the calling thread, or refuses it and
 * the run is on an asynchronous stream. Ownership: done ends here; text is copied. Errors: INVALID_ARGUMENT (NULL, no
 * completion, status is no code, bad UTF-8); FAILED_PRECONDITION if the call was completed before.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_completion_done(struct weir_completion *done,
                                 weir_status status,
                                 const char *text);

/**
 * Runs a program `count` times in a region of this call, and returns when all runs are over: run i reads inputs[i *
 * num_inputs ...] and writes outputs[i * num_outputs ...]. The runs share the pool of the call, and may run at once,
 * so no two runs may share an output. All tensors are checked before the first run begins. The first failure is
 * returned; active runs then end after their running kernels, and the rest is not begun. A cancel or a deadline of the
 * surrounding run ends these runs too. `count` may differ from call to call; 0 does nothing.
 *
 * Thread safety: any thread, during the call. Blocking: until all runs are over. Ownership: the arrays are only read
 * during the call. Errors: those of weir_program_run, with the number of the run; OUT_OF_RANGE (count); CANCELLED if
 * the run was cancelled; FAILED_PRECONDITION for a program with kernels that complete later, in a worker of a pool.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_run_program(const struct weir_kernel_context *context,
                                            struct weir_program *program,
                                            size_t count,
                                            struct weir_tensor *const *inputs,
                                            size_t num_inputs,
                                            struct weir_tensor *const *outputs,
                                            size_t num_outputs);


/* ---- Shapes that a run decides -----------------------------------------------------------------------------------
 * An output may have a shape that only its kernel knows, when it runs: what a tokenizer, a filter or a search
 * finds. Such dimensions are WEIR_DIM_DYNAMIC in every description; the kernel says what they are and gets
 * memory, those behind it see them in their views, and the host reads them from a dynamic tensor.
 */

/**
 * Sets the shape of an open output (WEIR_KERNEL_DYNAMIC), and returns its memory, aligned to 64, contents undefined:
 * once for each such output, before compute returns. `dims` are the `rank` dimensions, which must agree with the
 * declared ones; 0 is a legal dimension. From then on the output's view (weir_kernel_context_get_outputs) has address,
 * size and shape. The kernel fails if an open output is not allocated, unless nothing in the graph uses it.
 *
 * The memory belongs to the program and is kept from run to run; it grows, with memory of the engine's, when a run
 * needs more than all runs before.
 *
 * Thread safety: any thread, during the call. Blocking: never. Ownership: *out_data is borrowed, valid until compute
 * returns. Errors: INVALID_ARGUMENT (NULL, dims against the declared shape; the text names node and output);
 * OUT_OF_RANGE (index, size overflows); FAILED_PRECONDITION (an output of a fixed shape, or allocated before);
 * RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_allocate_output(const struct weir_kernel_context *context,
                                                size_t index,
                                                const int64_t *dims,
                                                size_t rank,
                                                void **out_data);

/**
 * Frees the memory that the program keeps for later runs: all values, and the blocks of dynamic ones, which otherwise
 * stay as large as the largest run needed. The next run allocates again. Active runs keep theirs.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_program_trim(struct weir_program *program);


/* ---- Matrix products without an engine ---------------------------------------------------------------------------
 * Functions in the style of BLAS, for code that has arrays and a pool and wants nothing else. Each call says
 * which pool shares its work; NULL is the calling thread alone. The results do not depend on it. They use the
 * best instruction set of the processor up to the one that the environment variable WEIR_MAX_ISA names when the
 * first product is made: portable, neon, avx2, avx512, avx512_vnni or amx. The registers of AMX are given by the
 * system to a whole process, which costs it larger signal frames: weir asks for them only if the variable says
 * amx, and uses them too if the process has asked before (docs/kernels.md).
 */

/**
 * C = alpha * op(A) * op(B) + beta * C in f32, where op(A) is m x k and op(B) is k x n. With transpose_a = 1 A is
 * stored as k x m, with transpose_b = 1 B as n x k; otherwise they are 0. All matrices are row-major, with row strides
 * lda, ldb and ldc in elements. Any size may be 0, and a matrix without elements may be NULL. With beta = 0 C is not
 * read, with alpha = 0 or k = 0 A and B are not; NaN and infinity, in alpha and beta too, follow IEEE 754. C must not
 * overlap A or B.
 *
 * The work runs on `pool`, or in the calling thread if pool is NULL. The bits of C depend on the arguments and the
 * instruction set, never on the pool. The second and later calls of a size allocate nothing: the library keeps scratch
 * memory for them, at most about a megabyte for each thread that was in such a call at once.
 *
 * Thread safety: any thread, also inside tasks of the pool. Blocking: until C is written. Ownership: none passes.
 * Errors: INVALID_ARGUMENT (WEIR_MAX_ISA too); OUT_OF_RANGE (a matrix larger than memory); RESOURCE_EXHAUSTED. On all
 * of them C is untouched.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_sgemm(int32_t transpose_a,
                       int32_t transpose_b,
                       int64_t m,
                       int64_t n,
                       int64_t k,
                       float alpha,
                       const float *a,
                       int64_t lda,
                       const float *b,
                       int64_t ldb,
                       float beta,
                       float *c,
                       int64_t ldc,
                       struct weir_threadpool *pool);

/**
 * Integer GEMM: C = saturate(round(alpha * (op(A) - ao) * (op(B) - bo) + beta * C + offset)) with unsigned A, signed B
 * and 32-bit C. The zero points ao and bo are subtracted from every element of A and B. Sizes, transposes and strides
 * are those of weir_sgemm. `co` holds the offset, 1, n or m numbers according to `offsetc` (weir_gemm_offset_value). A
 * NULL co is an offset of 0.
 *
 * The sum of products is exact for every k on every processor: nothing saturates or wraps on the way. With alpha and
 * beta 0 or 1 the rest is exact too. Otherwise it is computed in f64 as (alpha * sum + beta * C) + offset, each step
 * rounded to nearest even, and then rounded to the nearest integer, ties to even. Results beyond 32 bits become
 * INT32_MAX or INT32_MIN. With beta = 0 C is not read, with alpha = 0 or k = 0 A and B are not.
 *
 * Thread safety: any thread, also inside tasks of the pool. Blocking: until C is written. Ownership: none passes.
 * Errors: as weir_sgemm, and INVALID_ARGUMENT for an alpha or beta that is not finite. On all of them C is untouched.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_gemm_u8s8s32(int32_t transpose_a,
                              int32_t transpose_b,
                              weir_gemm_offset offsetc,
                              int64_t m,
                              int64_t n,
                              int64_t k,
                              float alpha,
                              const uint8_t *a,
                              int64_t lda,
                              uint8_t ao,
                              const int8_t *b,
                              int64_t ldb,
                              int8_t bo,
                              float beta,
                              int32_t *c,
                              int64_t ldc,
                              const int32_t *co,
                              struct weir_threadpool *pool);

/**
 * As weir_gemm_u8s8s32, with signed A.
 *
 * Thread safety: any thread, also inside tasks of the pool. Blocking: until C is written. Ownership: none passes.
 * Errors: as weir_gemm_u8s8s32.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_gemm_s8s8s32(int32_t transpose_a,
                              int32_t transpose_b,
                              weir_gemm_offset offsetc,
                              int64_t m,
                              int64_t n,
                              int64_t k,
                              float alpha,
                              const int8_t *a,
                              int64_t lda,
                              int8_t ao,
                              const int8_t *b,
                              int64_t ldb,
                              int8_t bo,
                              float beta,
                              int32_t *c,
                              int64_t ldc,
                              const int32_t *co,
                              struct weir_threadpool *pool);


/* ---- Graph -------------------------------------------------------------------------------------------------------
 * A graph is built once, from inputs, constants, kernels, tasks and control edges, and compiled. Nodes have
 * names, and every refusal uses them.
 */

/**
 * Creates an empty graph. `name` (may be NULL) appears in error texts and dumps.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns *out_graph; name is copied.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_graph_create(const char *name, struct weir_graph **out_graph);

/**
 * Destroys a graph under construction. NULL does nothing. Programs compiled from it live on.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: ends here. Errors: none.
 */
WEIR_API void weir_graph_destroy(struct weir_graph *graph);

/**
 * Adds an input: a tensor that is passed to each run. Runs take inputs in the order in which they were added.
 * Dimensions of `desc` may be WEIR_DIM_DYNAMIC: each run passes a tensor that fits.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name and desc are copied.
 * Errors: INVALID_ARGUMENT (NULL, bad UTF-8, empty name, bad desc); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_input(struct weir_graph *graph,
                                 const char *name,
                                 const struct weir_tensor_desc *desc,
                                 weir_value *out_value);

/**
 * Adds a constant. The program keeps the tensor; its contents must not change any more. It may be in the memory of any
 * engine that the program is compiled for: nodes of that engine read it in place. It is copied to other engines.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the graph takes a reference to the
 * tensor.
 * Errors: INVALID_ARGUMENT; ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_constant(struct weir_graph *graph,
                                    const char *name,
                                    struct weir_tensor *tensor,
                                    weir_value *out_value);

/**
 * Adds a kernel call. Types and shapes are checked by weir_graph_compile. out_outputs receives the num_outputs values;
 * out_node (may be NULL) receives the node, for control edges. Values of nodes added later cannot be used here, so
 * only control edges can close a cycle, which is an error of compile. weir_graph_set_back_edge closes a loop.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the graph takes a reference to the
 * kernel; name is copied.
 * Errors: INVALID_ARGUMENT (NULL, foreign value, number of inputs or outputs); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_kernel(struct weir_graph *graph,
                                  const char *name,
                                  struct weir_kernel *kernel,
                                  const weir_value *inputs,
                                  size_t num_inputs,
                                  weir_value *out_outputs,
                                  size_t num_outputs,
                                  weir_node *out_node);

/**
 * Adds another program as one node: its inputs and outputs are the program's. It runs on the pool of the surrounding
 * run, and its helpers count among that run's. The failure of a node inside names both: "node 'outer': node 'inner':
 * ...". A cancel or a deadline of the run ends the inner run too, after its running kernels.
 *
 * A program with kernels that complete later or may block is a node that completes later: no thread waits for the
 * inner run, and the rules for programs with such kernels hold for the graph. Kernels that may block run on the pool
 * that the inner program was compiled with.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the graph takes a reference to the
 * program; name is copied. Errors: INVALID_ARGUMENT (NULL, foreign value, number of inputs or outputs, a program with
 * outputs that may be absent); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_program(struct weir_graph *graph,
                                   const char *name,
                                   struct weir_program *program,
                                   const weir_value *inputs,
                                   size_t num_inputs,
                                   weir_value *out_outputs,
                                   size_t num_outputs,
                                   weir_node *out_node);

/**
 * Adds a plain C function, called as fn(arg) in each run when everything that it depends on by control edges is done.
 * It has no inputs and no outputs. `cost_ns` is its estimated run time, 0 = unknown. `destroy` (may be NULL) is called
 * with arg when graph and programs are gone. Calls of several runs may overlap. out_node (may be NULL) receives the
 * node, for control edges.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: arg passes to the graph if destroy
 * is given.
 * Errors: INVALID_ARGUMENT; ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_task(struct weir_graph *graph,
                                const char *name,
                                weir_host_fn fn,
                                void *arg,
                                weir_destroy_fn destroy,
                                uint64_t cost_ns,
                                weir_node *out_node);

/**
 * Makes `to` wait for `from`, without data.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT (foreign node, an edge to itself).
 */
WEIR_API WEIR_NODISCARD weir_status weir_graph_add_control_edge(struct weir_graph *graph, weir_node from, weir_node to);

/**
 * Sets whether output `output` of a kernel takes over the memory of an input: `input` is WEIR_FORWARD_AUTO (the
 * default), WEIR_FORWARD_NEVER, or the index of the input whose memory it must be; weir_graph_compile refuses the
 * graph if that is impossible.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT (foreign node, no kernel, input below WEIR_FORWARD_NEVER); OUT_OF_RANGE (output, input).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_set_forwarding(struct weir_graph *graph,
                                      weir_node node,
                                      int32_t output,
                                      int32_t input);

/**
 * Makes a value an output of the graph: each run writes it into a tensor that it is passed. Runs take outputs in the
 * order in which they were added.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied.
 * Errors: INVALID_ARGUMENT (foreign value); ALREADY_EXISTS (name of another output).
 */
WEIR_API WEIR_NODISCARD weir_status weir_graph_add_output(struct weir_graph *graph, const char *name, weir_value value);

/**
 * Copies a drawing of the graph in its current state, in DOT or JSON.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT (unknown format); OUT_OF_RANGE if capacity is too small (out_length is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_dump(const struct weir_graph *graph,
                            weir_dump_format format,
                            char *buffer,
                            size_t capacity,
                            size_t *out_length);

/**
 * Adds a branch between two graphs: each run executes then_graph if predicate (one element of bool, u8, s8 or s32) is
 * not 0, else else_graph. Both have as many inputs as `inputs` has values, and receive them in order; both have
 * num_outputs outputs with the same types and shapes, which become the node's. A nested graph sees only its inputs of
 * the graph around it.
 *
 * The node begins when predicate and inputs are available. Each output is available as soon as the branch has computed
 * it; a control edge from the node waits for the whole branch. A branch that is not taken costs nothing.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: both graphs are copied, they may be
 * changed or destroyed afterwards; name is copied. Errors: INVALID_ARGUMENT (NULL, foreign value, number of inputs or
 * outputs); ALREADY_EXISTS (name); OUT_OF_RANGE (more than 32 levels of nesting). Types and shapes are checked by
 * weir_graph_compile.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_cond(struct weir_graph *graph,
                                const char *name,
                                weir_value predicate,
                                const struct weir_graph *then_graph,
                                const struct weir_graph *else_graph,
                                const weir_value *inputs,
                                size_t num_inputs,
                                weir_value *out_outputs,
                                size_t num_outputs,
                                weir_node *out_node);

/**
 * Adds a branch between several graphs: each run executes branches[index] (index: one element of bool, u8, s8 or s32),
 * and the last one if index is less than 0 or too large. Everything else is as with weir_graph_add_cond.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the graphs are copied; name is copied.
 * Errors: as weir_graph_add_cond; INVALID_ARGUMENT if num_branches is 0.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_case(struct weir_graph *graph,
                                const char *name,
                                weir_value index,
                                const struct weir_graph *const *branches,
                                size_t num_branches,
                                const weir_value *inputs,
                                size_t num_inputs,
                                weir_value *out_outputs,
                                size_t num_outputs,
                                weir_node *out_node);

/**
 * Adds a loop: while cond_graph's output (one element of bool, u8, s8 or s32) is not 0, body_graph computes the
 * variables' next values. Both graphs have num_variables + num_invariants inputs: the variables, then the invariants,
 * which stay the same in all iterations. body_graph has num_variables outputs, with the variables' types and shapes.
 * The node's outputs are the variables' final values; without an iteration, their initial ones. parallel_iterations,
 * at least 1, is how many iterations may run at once where their data allow it; it never changes a result. With more
 * than 1, tasks and kernels without outputs of different iterations may run at the same time and in any order, the
 * program keeps one more copy of the loop's values than that, and compile may choose a smaller number
 * (weir_program_report says which, and why). A short loop whose number of iterations follows from constants is
 * unrolled: its nodes are then called "name/iteration/node".
 *
 * The node begins when all variables and invariants are available.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: both graphs are copied; name is copied.
 * Errors: as weir_graph_add_cond; INVALID_ARGUMENT if parallel_iterations is less than 1.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_while(struct weir_graph *graph,
                                 const char *name,
                                 const struct weir_graph *cond_graph,
                                 const struct weir_graph *body_graph,
                                 const weir_value *variables,
                                 size_t num_variables,
                                 const weir_value *invariants,
                                 size_t num_invariants,
                                 int32_t parallel_iterations,
                                 weir_value *out_outputs,
                                 weir_node *out_node);

/**
 * Adds a switch: the value goes to out_true if predicate (one element of bool, u8, s8 or s32) is not 0, else to
 * out_false; the other one is absent. A node with an absent input, or that waits for a skipped node, is skipped, and
 * its outputs are absent, until weir_graph_add_merge joins the two sides. Where both sides can be expressed as graphs,
 * weir_graph_add_cond costs less. Nodes on other engines than the CPU's may be skipped as any other: where switches
 * and merges do not form a cond, their values travel through the host. out_node (may be NULL) receives the node.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied. Errors: INVALID_ARGUMENT
 * (NULL, foreign value); ALREADY_EXISTS (name). weir_graph_compile refuses outputs that can be absent, unless
 * weir_compile_options_set_allow_absent.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_switch(struct weir_graph *graph,
                                  const char *name,
                                  weir_value value,
                                  weir_value predicate,
                                  weir_value *out_false,
                                  weir_value *out_true,
                                  weir_node *out_node);

/**
 * Adds a merge: passes on whichever of its inputs is present, and its index (s32[1]; out_index may be NULL). The shape
 * is what the inputs have in common: one may be open (WEIR_DIM_DYNAMIC) where another is not. If all are absent the
 * merge is skipped; a skipped node that it waits for without data does not matter. Two present inputs are an error of
 * the run (FAILED_PRECONDITION) that names the nodes which computed them. out_node (may be NULL) receives the node.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied.
 * Errors: INVALID_ARGUMENT (NULL, foreign value, num_inputs is 0); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_merge(struct weir_graph *graph,
                                 const char *name,
                                 const weir_value *inputs,
                                 size_t num_inputs,
                                 weir_value *out_value,
                                 weir_value *out_index,
                                 weir_node *out_node);

/**
 * Adds an enter: brings a value into the frame `frame_name`. This and the next five functions express a loop by its
 * edges, as graphs of TensorFlow's original control flow do; weir_graph_compile turns each frame into a loop, as
 * weir_graph_add_while would, and refuses malformed frames with the nodes' names (docs/control_flow.md has all rules).
 *
 * Every node that takes values of a frame is in it, up to the exits; enters of values of one frame that have the same
 * frame_name lead into one frame. A frame has one loop cond. Each of its variables has an enter, a loop merge, a
 * switch whose predicate is the loop cond, a next iteration and, if its last value is needed, an exit. With
 * is_constant (0 or 1) the value is the same in all iterations and goes to any node of the frame. Constants need no
 * enter. parallel_iterations is as for weir_graph_add_while, and the same for all enters of a frame. If the value is
 * absent the whole loop is skipped, and the values of its exits are absent. out_node (may be NULL) receives the node;
 * it may wait for nodes outside of the frame.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: both names are copied.
 * Errors: INVALID_ARGUMENT (NULL, foreign value, empty frame_name, is_constant, parallel_iterations less than 1);
 * ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_enter(struct weir_graph *graph,
                                 const char *name,
                                 weir_value value,
                                 const char *frame_name,
                                 int32_t is_constant,
                                 int32_t parallel_iterations,
                                 weir_value *out_value,
                                 weir_node *out_node);

/**
 * Adds the merge of a loop's variable: passes on the value of an enter in the first iteration, and later the value of
 * the next iteration that weir_graph_set_back_edge connects. Each loop merge needs one. For a merge outside of loops
 * see weir_graph_add_merge.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied.
 * Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_loop_merge(struct weir_graph *graph,
                                      const char *name,
                                      weir_value value,
                                      weir_value *out_value,
                                      weir_node *out_node);

/**
 * Connects a loop merge to its value after the first iteration: the output of a next iteration, which was added after
 * the merge.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT (foreign node or value, no loop merge, no next iteration); ALREADY_EXISTS (it has one).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_set_back_edge(struct weir_graph *graph,
                                     weir_node loop_merge,
                                     weir_value next_iteration);

/**
 * Adds a loop cond: its loop continues while predicate (one element of bool, u8, s8 or s32) is not 0. A switch of
 * weir_graph_add_switch that has its output for a predicate belongs to the loop: out_true is the variable in an
 * iteration that takes place, out_false goes to exits and to nothing else. Other switches, and merges, may be in a
 * loop as anywhere.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied.
 * Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_loop_cond(struct weir_graph *graph,
                                     const char *name,
                                     weir_value predicate,
                                     weir_value *out_value,
                                     weir_node *out_node);

/**
 * Adds a next iteration: passes the value to the loop merges that have it as their back edge, in the following
 * iteration.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied.
 * Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_next_iteration(struct weir_graph *graph,
                                          const char *name,
                                          weir_value value,
                                          weir_value *out_value,
                                          weir_node *out_node);

/**
 * Adds an exit: passes the last value of a loop's variable to the surrounding frame, or to the graph. `value` is
 * out_false of a switch of the loop cond on a loop merge. A control edge from out_node waits for the whole loop.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied.
 * Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_exit(struct weir_graph *graph,
                                const char *name,
                                weir_value value,
                                weir_value *out_value,
                                weir_node *out_node);

/**
 * Declares that runs receive input `input`, by index in the order in which inputs were added, in memory of `engine`:
 * nodes on that engine read the tensor in place, others read a copy, made once for each engine. NULL, the default, is
 * the program's own engine, a CPU engine. The engine must be among those of weir_graph_compile, and runs refuse a
 * tensor on another one. A program with inputs or outputs on other engines than the CPU's cannot be a node of another
 * graph (weir_graph_add_program).
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the graph takes a reference to the
 * engine. Errors: INVALID_ARGUMENT; OUT_OF_RANGE (input).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_set_input_engine(struct weir_graph *graph,
                                        size_t input,
                                        struct weir_engine *engine);

/**
 * Declares that runs receive output `output`, by index in the order in which outputs were added, in memory of
 * `engine`. A node on that engine writes its value directly into the tensor; otherwise the value is copied there as
 * soon as it is done. The rest as for weir_graph_set_input_engine.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the graph takes a reference to the
 * engine. Errors: INVALID_ARGUMENT; OUT_OF_RANGE (output).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_set_output_engine(struct weir_graph *graph,
                                         size_t output,
                                         struct weir_engine *engine);

/**
 * Sets how the engine of a kernel's node is chosen: one of enum weir_placement_value. The compile report
 * (weir_program_report) shows the choice for each node that was open, and the reason; the same graph and the same list
 * of engines give the same choice.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT (foreign node, no kernel, placement).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_set_placement(struct weir_graph *graph,
                                     weir_node node,
                                     weir_placement placement);

/**
 * The placement of all nodes without weir_graph_set_placement, in nested graphs too. Default: WEIR_PLACEMENT_KERNEL.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_placement(struct weir_compile_options *options,
                                               weir_placement placement);

/**
 * The placement set by weir_compile_options_set_placement.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_placement(const struct weir_compile_options *options,
                                               weir_placement *out_placement);


/* ---- Program -----------------------------------------------------------------------------------------------------
 * A program is a compiled graph: immutable, shared, and re-entrant.
 */

/**
 * Creates settings for weir_graph_compile, all default.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns *out_options. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_compile_options_create(struct weir_compile_options **out_options);

/**
 * Destroys settings. NULL does nothing.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: ends here. Errors: none.
 */
WEIR_API void weir_compile_options_destroy(struct weir_compile_options *options);

/**
 * The cost of bringing work to another thread of the pool, in nanoseconds. Ready work that is cheaper stays on the
 * thread that made it ready. Default UINT64_MAX: the pool's own costs in each run, as far as they are known; runs that
 * turn out to be faster on the caller alone then stay there. It never changes a result.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_hop_ns(struct weir_compile_options *options,
                                            uint64_t hop_ns);

/**
 * The cost set by weir_compile_options_set_hop_ns.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_hop_ns(const struct weir_compile_options *options,
                                            uint64_t *out_hop_ns);

/**
 * Whether outputs of the program may be absent (weir_graph_add_switch): 0 (the default) or 1. A run leaves the tensor
 * of an absent output unchanged; weir_run_options_set_absent reports which outputs were absent.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_allow_absent(struct weir_compile_options *options,
                                                  int32_t allow);

/**
 * The value set by weir_compile_options_set_allow_absent.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_allow_absent(const struct weir_compile_options *options,
                                                  int32_t *out_allow);

/**
 * The pool for kernels that may block (WEIR_KERNEL_MAY_BLOCK): each runs as one task of it, without holding another
 * thread. A thread that waits for such a kernel runs it itself if the pool has not begun it for 50 ms, unless the pool
 * has WEIR_THREADPOOL_OWN_THREADS_ONLY. The pool must take single tasks (schedule, or an ASYNCHRONOUS parallel_for),
 * and should have as many threads as kernels may block at once. If it refuses one, the kernel runs in the caller of a
 * synchronous run that is no worker of a pool; else the node fails with UNAVAILABLE. NULL (the default) = no such
 * pool: graphs with such kernels do not compile.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the options, and programs compiled with
 * them, take references of their own.
 * Errors: INVALID_ARGUMENT (also a pool that takes no single tasks).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_blocking_threadpool(struct weir_compile_options *options,
                                                         struct weir_threadpool *pool);

/**
 * The pool that was set, or NULL.
 *
 * Thread safety: one thread at a time per object. Blocking: never.
 * Ownership: *out_pool is borrowed and lives as long as the options keep it. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_blocking_threadpool(const struct weir_compile_options *options,
                                                         struct weir_threadpool **out_pool);

/**
 * Compiles a graph for engines: verifies it, and lays it out for runs. Kernels on which no output, no task and no
 * kernel without outputs depends are left out. The graph may be changed and compiled again. options may be NULL.
 *
 * A node runs on the engine of its kernel, unless weir_graph_set_placement or the options leave it open. The first CPU
 * engine among `engines` is the program's own: inputs and outputs are in its memory, unless
 * weir_graph_set_input_engine or weir_graph_set_output_engine say otherwise, and runs use its pool by default. Values
 * shared by nodes on different engines are copied, once for each engine, as soon as they are available and while other
 * work continues; the program keeps memory and streams on the other engines for each concurrent run
 * (weir_engine_attr_set_max_streams). In a branch or a loop that the host executes in part, values that one engine
 * computes and reads stay in its memory; the others are copied. A loop with parallel_iterations K whose values cross
 * between the host and an engine overlaps its iterations: it has memory on the engine for K + 1 of them, or for fewer
 * where that would be more than an eighth of it. weir_program_report counts copies, streams, events and waits.
 *
 * Thread safety: one thread at a time per graph. Blocking: never. Ownership: the caller owns one reference to
 * *out_program; the program takes references to kernels, constants and engines. Errors: INVALID_ARGUMENT, with the
 * names of the nodes: a cycle, an input with a wrong dtype or shape, a kernel or constant of a device that none of the
 * engines is for, no CPU engine; UNIMPLEMENTED for nodes on other engines than the CPU's with values whose shape is
 * known only at run time, and for a kernel that completes later or may block (weir_host_kernel_desc) with inputs or
 * outputs of such a shape: its arguments and the memory for its outputs are fixed when the graph is compiled;
 * FAILED_PRECONDITION for a kernel that may block, without a pool for such; OUT_OF_RANGE if sizes overflow;
 * RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_compile(const struct weir_graph *graph,
                               struct weir_engine *const *engines,
                               size_t num_engines,
                               const struct weir_compile_options *options,
                               struct weir_program **out_program);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_program_retain(struct weir_program *program);

/**
 * Gives up one reference. NULL does nothing. Runs hold references of their own.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_program_release(struct weir_program *program);

/**
 * Describes the program: its ports and nodes, and the runs that have begun, ended, failed, and are active.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set. Errors:
 * INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_info(const struct weir_program *program,
                                  struct weir_program_info *out_info);

/**
 * Describes input or output `index` of the program.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set; its engine is borrowed.
 * Errors: INVALID_ARGUMENT (NULL, unknown kind, struct_size); OUT_OF_RANGE (index).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_port(const struct weir_program *program,
                                  weir_port_kind kind,
                                  size_t index,
                                  struct weir_port_info *out_info);

/**
 * Copies a drawing of the compiled program, in DOT or JSON.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT (unknown format); OUT_OF_RANGE if capacity is too small (out_length is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_dump(const struct weir_program *program,
                              weir_dump_format format,
                              char *buffer,
                              size_t capacity,
                              size_t *out_length);

/**
 * Copies a report of the compilation, as text or JSON: nodes and edges left out or added, memory that values share,
 * sizes, the effect of the costs known so far on the use of other threads, the parts kept for partial runs, and the
 * figures of the executed nodes, if any. The members of the JSON are stable; more may be added.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT (unknown format); OUT_OF_RANGE if capacity is too small (out_length is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_report(const struct weir_program *program,
                                weir_report_format format,
                                char *buffer,
                                size_t capacity,
                                size_t *out_length);

/**
 * Whether the program keeps figures of every node (weir_program_get_node_stats): 1, or 0 (the default). With them each
 * run reads the clock twice for each node; without, there is no cost.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_statistics(struct weir_compile_options *options,
                                                int32_t statistics);

/**
 * The value set by weir_compile_options_set_statistics.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_statistics(const struct weir_compile_options *options,
                                                int32_t *out_statistics);

/**
 * Fills *out_stats with the time that node `index` has taken. Active runs may be counted in part.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE (index); FAILED_PRECONDITION if the program was compiled without
 * weir_compile_options_set_statistics.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_node_stats(const struct weir_program *program,
                                        size_t index,
                                        struct weir_node_stats *out_stats);

/**
 * Copies the program's learned costs of nodes and iterations of loops, as text. Runs change it: ask for the length and
 * copy while no run is active, or repeat if the buffer was too small.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if capacity is too small (out_length is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_save_costs(const struct weir_program *program,
                                    char *buffer,
                                    size_t capacity,
                                    size_t *out_length);

/**
 * Loads saved costs and iterations into the program, so that its first run is scheduled as well as later ones;
 * *out_num_known is the number of nodes that they were saved for. Nodes are found by their names; names known to only
 * one side are ignored. No result changes.
 *
 * Thread safety: any thread. Blocking: never. Ownership: costs is copied. Errors: INVALID_ARGUMENT (NULL, or no saved
 * costs; the text names the line); then nothing has changed.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_load_costs(struct weir_program *program,
                                    const char *costs,
                                    size_t *out_num_known);

/**
 * Whether work on devices is recorded: 1 (the default), 0, or 2. Where at least four nodes of one device have no other
 * node between them, the second run of the program makes the device record them, with the copies of inputs that only
 * they read, and later runs submit the recording by one call. With 1, where such nodes may be spread over several
 * streams (weir_engine_attr_set_max_streams), the program times some of its first runs both ways, and keeps the faster
 * one; with 2 it does not try streams. Results are the same. With 0, or where a device cannot record, every run issues
 * each node by itself. The program's report (weir_program_report) has the number of recordings, or why there are none,
 * and the chosen way.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_segments(struct weir_compile_options *options,
                                              int32_t segments);

/**
 * The value set by weir_compile_options_set_segments.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_segments(const struct weir_compile_options *options,
                                              int32_t *out_segments);

/**
 * Whether devices evaluate branches and loops themselves: 1 (the default), or 0. A branch or a loop
 * (weir_graph_add_cond, weir_graph_add_case, weir_graph_add_while) that contains only kernels of one accelerator's
 * engine is work of that engine: its values stay there. With 1, and where the device records and supports branches and
 * loops, it decides itself, without the host; then a cancel or the time limit of a run does not end a loop before it
 * ends by itself. With 0, or where the device does not decide, the host reads back only the predicate and issues the
 * work that follows, without holding a thread, and a cancelled or late run ends between two iterations. Results are
 * the same. The program's report (weir_program_report) shows for each node whether host or device decides, and why.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_device_control(struct weir_compile_options *options,
                                                    int32_t device_control);

/**
 * The value set by weir_compile_options_set_device_control.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_device_control(const struct weir_compile_options *options,
                                                    int32_t *out_device_control);

/**
 * Whether devices are offered regions: 1 (the default), or 0. With 1, and where a plug-in's device takes regions
 * (WEIR_DEVICE_REGIONS), nodes on it with no other node between them are offered to it together, also inside of
 * branches and loops. It may compile all or some of them to one kernel, which is then one node of the program with all
 * of their names. With 0 each node is a separate call. Results are the same if the device computes the same. The
 * program's report (weir_program_report) has the numbers offered and taken, and the reasons for declined ones.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_regions(struct weir_compile_options *options,
                                             int32_t regions);

/**
 * The value set by weir_compile_options_set_regions.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_regions(const struct weir_compile_options *options,
                                             int32_t *out_regions);


/* ---- Run ---------------------------------------------------------------------------------------------------------
 * A run reads the program's inputs and writes its outputs. It allocates nothing from the second time on.
 */

/**
 * Creates settings for a run, all default. They may serve any number of runs.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns *out_options. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_options_create(struct weir_run_options **out_options);

/**
 * Destroys settings. NULL does nothing.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: ends here. Errors: none.
 */
WEIR_API void weir_run_options_destroy(struct weir_run_options *options);

/**
 * The pool for this run; it comes before the stream's and the engine's. NULL (the default) = those.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the options take a reference of
 * their own.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_set_threadpool(struct weir_run_options *options,
                                            struct weir_threadpool *pool);

/**
 * The pool that was set, or NULL.
 *
 * Thread safety: one thread at a time per object. Blocking: never.
 * Ownership: *out_pool is borrowed and lives as long as the options keep it. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_get_threadpool(const struct weir_run_options *options,
                                            struct weir_threadpool **out_pool);

/**
 * Runs one program now: the values that the inputs determine are written into the outputs, or into those selected by
 * the options (weir_run_options_set_outputs). The run is one piece of the stream's work; with a NULL stream it runs in
 * this thread, with helpers from the pool (run options, else the program's first engine). The first node that fails
 * ends the run, and the error names it. The second and later runs allocate nothing, while at most 32 runs of the
 * program are queued on streams and no more than before run at once; with open shapes, while no value is larger than
 * before.
 *
 * On a stream of a device that the program was compiled for, the run begins when the device has finished the work
 * enqueued before, and work enqueued later begins when the run is over. If that device executes the whole program,
 * this call submits the run to the stream, as a kernel (docs/placement.md); otherwise the host's part runs on the
 * stream's pool, as host functions do (weir_enqueue_task), with helpers from it or from the program's first engine. On
 * another stream, or without one, tensors on devices must be ready when the run begins.
 *
 * An output whose shape is open (WEIR_DIM_DYNAMIC) goes to a dynamic tensor (weir_tensor_create_dynamic), or to a
 * tensor of exactly the run's shape. It is written only if the run succeeds.
 *
 * Thread safety: any thread; any number of runs of one program at once, with separate outputs. Blocking: until done
 * with a NULL or synchronous stream; never on an asynchronous one. Ownership: the tensors stay alive until the run is
 * done; the arrays are copied; options may be NULL. Errors: INVALID_ARGUMENT (NULL, count, dtype, shape, engine,
 * overlap of an output with an input or another output; the text names input or output; options with a notice and no
 * asynchronous stream); FAILED_PRECONDITION if the stream has failed, or the host is capturing it and the run cannot
 * be part of that (docs/cuda.md); RESOURCE_EXHAUSTED; if it blocks, also the failure of a node, and
 * FAILED_PRECONDITION or OUT_OF_RANGE if a tensor is too small for an output of open shape.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_run(struct weir_program *program,
                             struct weir_stream *stream,
                             struct weir_tensor *const *inputs,
                             size_t num_inputs,
                             struct weir_tensor *const *outputs,
                             size_t num_outputs,
                             const struct weir_run_options *options);

/**
 * As weir_program_run on an asynchronous stream, with a handle to wait for this run alone, to cancel it, and to read
 * its error. The failure of such a run belongs to the handle and not to the stream: the stream continues.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_run; else as
 * weir_program_run.
 * Errors: those of weir_program_run; INVALID_ARGUMENT if the stream is NULL or not asynchronous.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_start(struct weir_program *program,
                               struct weir_stream *stream,
                               struct weir_tensor *const *inputs,
                               size_t num_inputs,
                               struct weir_tensor *const *outputs,
                               size_t num_outputs,
                               const struct weir_run_options *options,
                               struct weir_run **out_run);

/**
 * Runs one program `count` times, and returns when all runs are over: run i reads inputs[i * num_inputs ...] and
 * writes outputs[i * num_outputs ...]. The calling thread takes part, with helpers from the pool (run options, else
 * the program's first engine). Runs may overlap, so no two runs may share an output. All tensors are checked before
 * the first run begins. If the program has kernels that complete later, the calling thread begins several runs, as
 * many as there are threads, and continues whichever run has news; helpers take part in each. The first failure is
 * returned; active runs then end after their running kernels, and the rest is not begun. Options are those of each
 * run; a deadline counts from the call. Inside of kernels weir_kernel_context_run_program does the same with the
 * kernel's pool.
 *
 * Thread safety: any thread. Blocking: until all runs are over. Ownership: the tensors stay alive and the arrays are
 * only read during the call; options may be NULL. Errors: those of weir_program_run, with the number of the run
 * (FAILED_PRECONDITION for kernels that complete later in a worker of a pool comes before anything is run);
 * OUT_OF_RANGE (count); INVALID_ARGUMENT also for options with flags for absent outputs or with a notice.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_run_many(struct weir_program *program,
                                  size_t count,
                                  struct weir_tensor *const *inputs,
                                  size_t num_inputs,
                                  struct weir_tensor *const *outputs,
                                  size_t num_outputs,
                                  const struct weir_run_options *options);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_retain(struct weir_run *run);

/**
 * Gives up one reference. NULL does nothing. The run itself continues.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_run_release(struct weir_run *run);

/**
 * Waits until the run is done, and returns its status.
 *
 * Thread safety: any thread. Blocking: until done, or timeout_ns have passed (0 = poll once, WEIR_TIMEOUT_INFINITE =
 * no limit). Meanwhile it works on the run, as weir_stream_synchronize does. Ownership: none. Errors:
 * INVALID_ARGUMENT; DEADLINE_EXCEEDED (the run continues); FAILED_PRECONDITION if waiting here would block a worker
 * that the run needs; else the status of the run: the first node's failure, CANCELLED, or ABORTED if the stream had
 * failed before it.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_synchronize(struct weir_run *run, uint64_t timeout_ns);

/**
 * Whether the run is done (1) or not (0), regardless of failure.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_query(const struct weir_run *run, int32_t *out_done);

/**
 * Tells the host when the run is done: by a function that is called once, or an eventfd, or both (weir_notice says
 * when and on which thread). If the run is done already, the notice arrives before the call returns. A run may have
 * any number of notices, which arrive in order. They belong to the run, not to the handle, and arrive even if all
 * handles were released. To set a notice for every run without this call, see weir_run_options_set_notice.
 *
 * Thread safety: any thread. Blocking: never; the function and release run here if the run is done. Ownership:
 * `notice` is read during the call; its ctx is released with `release`. Errors: INVALID_ARGUMENT (NULL, neither
 * function nor eventfd, an event_fd that is no eventfd or that blocks); RESOURCE_EXHAUSTED.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_notify(struct weir_run *run, const struct weir_notice *notice);

/**
 * Cancels the run: running kernels come to their end, nothing else is begun, and the outputs are undefined. A run that
 * is done is left alone. The program can be run again at once.
 *
 * Thread safety: any thread. Blocking: never (weir_run_synchronize waits for the end). Ownership: none. Errors:
 * INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_cancel(struct weir_run *run);

/**
 * Time limit of the run, in nanoseconds from the call of weir_program_run or weir_program_start, including time in the
 * stream's queue; 0 (the default) = no limit. When it expires nothing more is begun: the run ends after the running
 * kernels, with DEADLINE_EXCEEDED, and to them weir_kernel_context_is_cancelled says 1. A run that had nothing left to
 * begin succeeds. There is no timer: with a deadline the clock is read before each node, and without one there is no
 * cost.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_set_deadline_ns(struct weir_run_options *options,
                                             uint64_t deadline_ns);

/**
 * The limit set by weir_run_options_set_deadline_ns.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_get_deadline_ns(const struct weir_run_options *options,
                                             uint64_t *out_deadline_ns);

/**
 * Flags that report absent outputs: when a run has succeeded, flags[i] is 1 if output i was absent (its tensor is left
 * unchanged), else 0. A run that fails leaves the flags alone. count is the number of the program's outputs; NULL and
 * 0 = no report (the default). Outputs can only be absent if weir_compile_options_set_allow_absent allows it.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the flags are the caller's; they stay
 * alive until every run with these options is done, and runs that overlap need separate options. Errors:
 * INVALID_ARGUMENT (NULL); weir_program_run and weir_program_start fail with INVALID_ARGUMENT if count is not the
 * number of outputs.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_set_absent(struct weir_run_options *options,
                                        uint8_t *flags,
                                        size_t count);

/**
 * The flags set by weir_run_options_set_absent: NULL and 0 if none.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the flags are the caller's of set.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_get_absent(const struct weir_run_options *options,
                                        uint8_t **out_flags,
                                        size_t *out_count);

/**
 * Whether the run takes one thread and executes the nodes in the program's order: 1, or 0 (the default). Nodes that
 * share state outside of their tensors then access it in the same order in every run, and if several nodes would fail,
 * it is always the same one that does. Kernels may still use the pool for their regions, which changes no result.
 * Kernels that complete later, and work on devices, are started in their turn and waited for one by one in that
 * thread. So weir_program_run refuses such a run of a program that contains these (FAILED_PRECONDITION) where that
 * would block a worker of a thread pool: in one, and on an asynchronous stream with a pool that takes single tasks.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_set_deterministic(struct weir_run_options *options,
                                               int32_t deterministic);

/**
 * The value set by weir_run_options_set_deterministic.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_get_deterministic(const struct weir_run_options *options,
                                               int32_t *out_deterministic);

/**
 * Whether a run that fails still executes the nodes that do not depend on the failure: 1, or 0 (the default: nothing
 * more is begun). Nodes that depend on a failed node, directly or not, are left out; a loop with a failure inside
 * ends. The first failure in the program's order is the run's. Outputs that depend on no failed node are written. Such
 * a run takes one thread, as if deterministic, and is refused in the same cases. A cancel or a deadline still ends it.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_set_finish_independent(struct weir_run_options *options,
                                                    int32_t finish);

/**
 * The value set by weir_run_options_set_finish_independent.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_get_finish_independent(const struct weir_run_options *options,
                                                    int32_t *out_finish);

/**
 * Tells the host about the end of every run with these options, so that none is missed and no second call is needed:
 * as if weir_run_notify were called in weir_program_start, and the same for a run of weir_program_run on an
 * asynchronous stream, which also keeps the failure. NULL (the default) = no notice. There is exactly one notice if
 * the call that starts a run returns WEIR_OK, and none otherwise. From its second time on a run with a notice
 * allocates no more than one without.
 *
 * Runs that are over when their call returns have no notice: weir_program_run without a stream or on a synchronous
 * one, and weir_program_run_many, refuse such options (INVALID_ARGUMENT).
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: `notice` is read during the call;
 * `release` is called once with its ctx, when the options have another notice or are destroyed, and the notices of all
 * runs with this one have arrived. Errors: INVALID_ARGUMENT (neither function nor eventfd, an event_fd that is no
 * eventfd or that blocks); RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_set_notice(struct weir_run_options *options,
                                        const struct weir_notice *notice);

/**
 * The notice set by weir_run_options_set_notice; with neither function nor eventfd if none.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the caller's struct, struct_size set;
 * ctx stays the options'.
 * Errors: INVALID_ARGUMENT (NULL, or a struct_size below the first published one).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_get_notice(const struct weir_run_options *options,
                                        struct weir_notice *out_notice);

/**
 * Maximum number of different output lists for which the program keeps compiled parts, so that runs may ask for a part
 * of its outputs (weir_run_options_set_outputs): 1 to 256, or 0 (the default) for no such runs. With it the program
 * keeps the nodes of the graph, constants included, as long as it lives. The first run with a list compiles the part
 * that the list needs, and later runs find it; when the maximum is reached, a list that was not used recently is
 * dropped, and compiled again if it comes back. Each list that is kept counts as a program in weir_runtime_info.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT;
 * OUT_OF_RANGE (more than 256).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_partial_runs(struct weir_compile_options *options,
                                                  size_t max_lists);

/**
 * The value set by weir_compile_options_set_partial_runs.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_partial_runs(const struct weir_compile_options *options,
                                                  size_t *out_max_lists);

/**
 * Selects the outputs that a run computes, by their indices in the program, for a program compiled with
 * weir_compile_options_set_partial_runs: the run then takes `count` tensors as its outputs, for these outputs in this
 * order, and executes only the nodes that they depend on, along data and control edges. Everything else is left out,
 * including tasks and kernels without outputs, unless one of these outputs depends on them; the inside of a cond, a
 * case or a loop that runs is complete as always. The run still takes all of the program's inputs, but those that none
 * of its nodes needs are ignored and may be NULL. Lists of the length of the program's outputs (flags for absent
 * outputs) have the length of `indices` here. NULL and 0 (the default) = all outputs, and everything with side
 * effects.
 *
 * Such runs count in the program's counters and node figures. The costs that the program learns
 * (weir_program_save_costs) are those of whole runs; a part begins with the costs known for the whole, and then
 * learns its own.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the indices are copied. Errors:
 * INVALID_ARGUMENT (a duplicate index; NULL); RESOURCE_EXHAUSTED. The running call fails with OUT_OF_RANGE if the
 * program has no such output, and with FAILED_PRECONDITION if it was compiled without partial runs; the first run with
 * a list may fail with RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_set_outputs(struct weir_run_options *options,
                                         const size_t *indices,
                                         size_t count);

/**
 * The list set by weir_run_options_set_outputs: NULL and 0 if none.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: *out_indices is borrowed and stays until
 * the options are changed or destroyed. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_get_outputs(const struct weir_run_options *options,
                                         const size_t **out_indices,
                                         size_t *out_count);

/**
 * Maximum number of concurrent runs of the program; 0 (the default) = no limit. Runs of parts of its outputs count
 * too. A run beyond the limit waits, first come, first served:
 *
 * - in the calling thread (a NULL or synchronous stream) it sleeps until another run is over, or its deadline. Inside
 *   of a task of a thread pool, of a stream's work, or of a run of a program with such a limit it does not sleep: it
 *   helps the pool and spins for a while, and is then refused with FAILED_PRECONDITION;
 * - an asynchronous stream accepts it as usual, and the call does not block; when its turn comes, the stream waits
 *   without holding a thread. To be refused at the call instead, see weir_run_options_set_no_wait.
 *
 * A run that begins inside of a run of the same program is part of it and does not count; so are programs as nodes
 * (weir_graph_add_program) and weir_kernel_context_run_program. A call of weir_program_run_many waits for one slot,
 * and uses as many more as are free then. A host thread that completes a kernel later is inside of nothing: it must
 * not wait for a run of the program that its kernel is part of. A kernel that waits, outside of a pool, for a stream
 * on which a run of its own program waits for a slot is refused (FAILED_PRECONDITION).
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_max_concurrent_runs(struct weir_compile_options *options,
                                                         uint32_t max_runs);

/**
 * The limit set by weir_compile_options_set_max_concurrent_runs.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_max_concurrent_runs(const struct weir_compile_options *options,
                                                         uint32_t *out_max_runs);

/**
 * Whether a run of a program with a limit (weir_compile_options_set_max_concurrent_runs) is refused at the call with
 * RESOURCE_EXHAUSTED where it would have to wait: 1, or 0 (the default). In the calling thread that is while as many
 * runs are active as the limit allows; on an asynchronous stream while as many are queued on streams or active.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_options_set_no_wait(struct weir_run_options *options, int32_t no_wait);

/**
 * The value set by weir_run_options_set_no_wait.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_get_no_wait(const struct weir_run_options *options,
                                         int32_t *out_no_wait);

/**
 * Describes the calling thread's last failed weir call: the code that it returned and the text of
 * weir_last_error_message. Node, engine, iteration and the nodes that were not begun are there if a run failed:
 * weir_program_run, weir_run_synchronize, or a call that reported the late error of a stream. Successful calls leave it
 * unchanged.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct and buffer.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, not_run NULL with a capacity).
 */
WEIR_API WEIR_NODISCARD weir_status weir_thread_get_failure(struct weir_failure *failure);

/**
 * The stream's failure, as of weir_thread_get_failure; code is WEIR_OK if there is none. Reading it changes nothing.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct and buffer.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, not_run NULL with a capacity).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_get_failure(const struct weir_stream *stream,
                                    struct weir_failure *failure);

/**
 * The failure of a run that was started with weir_program_start, as of weir_thread_get_failure; code is WEIR_OK until
 * it is done, and if it succeeded. Reading it changes nothing.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct and buffer.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, not_run NULL with a capacity).
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_get_failure(const struct weir_run *run, struct weir_failure *failure);


/* ---- Exchange ----------------------------------------------------------------------------------------------------
 * Tensors to and from other libraries, by DLPack: the same memory, with an owner that is told once when it is
 * not used any more. The structs are those of dlpack.h, or of weir/dlpack.h.
 */

/**
 * Exports a tensor to another library: a DLManagedTensorVersioned of DLPack 1.0 over the same memory, row-major, with
 * strides. The receiver calls its deleter, once and on any thread; the memory stays until then. `producer` (may be
 * NULL) is the stream that writes the tensor. With `consumer`, a stream of weir's, that stream waits for the work that
 * `producer` has queued so far, and nothing blocks; without, this call waits for it. So a program that implements
 * `__dlpack__(stream=None)` passes its stream and NULL. Later work on `producer` is not kept away from the receiver.
 * Memory of a CUDA engine is kDLCUDA, and a receiver's own stream becomes a consumer by weir_stream_wrap_cuda; that of
 * an emulated engine is kDLExtDev. `flags`: of weir_dlpack_flags.
 *
 * Thread safety: any thread. Blocking: until `producer` has finished the work queued so far, if there is no `consumer`
 * or a copy is made; else never. Ownership: *out_managed is the caller's until its deleter is called; it holds a
 * reference to the tensor. Errors: INVALID_ARGUMENT (NULL, unknown flags, a dynamic tensor); UNIMPLEMENTED (memory
 * that DLPack has no name for, a copy of device memory); those of weir_stream_synchronize and weir_stream_wait_event.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_to_dlpack(struct weir_tensor *tensor,
                                  struct weir_stream *producer,
                                  struct weir_stream *consumer,
                                  uint64_t flags,
                                  struct DLManagedTensorVersioned **out_managed);

/**
 * As weir_tensor_to_dlpack, as a DLManagedTensor for libraries that know no other. It cannot express that it is
 * read-only, nor that it is a copy.
 *
 * Thread safety: any thread. Blocking: as weir_tensor_to_dlpack. Ownership: as there. Errors: as there.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_to_dlpack_legacy(struct weir_tensor *tensor,
                                         struct weir_stream *producer,
                                         struct weir_stream *consumer,
                                         uint64_t flags,
                                         struct DLManagedTensor **out_managed);

/**
 * Creates a tensor over another library's memory. Elements are float32, float16, bfloat16, int32, int8, uint8 or bool;
 * others are refused by name. Strides must be row-major and compact, unless WEIR_DLPACK_COPY asks for a copy.
 * Read-only memory is accepted with WEIR_DLPACK_COPY or WEIR_DLPACK_READ_ONLY. The memory must be the engine's: the
 * host's for a CPU engine (kDLCPU, kDLCUDAHost), kDLCUDA with the engine's index for a CUDA engine, kDLExtDev for an
 * emulated one; for the latter two WEIR_DLPACK_COPY is not implemented. The contents must be there, or ordered before
 * the stream that uses them: ask the other library for the export on the stream None, or on that stream's native
 * handle.
 *
 * Thread safety: any thread. Blocking: never. Ownership: on success *managed is weir's, which calls its deleter once,
 * when nothing uses the memory any more, in any thread (with WEIR_DLPACK_COPY in this call); on failure it stays the
 * caller's. Errors: INVALID_ARGUMENT (NULL, flags, elements, strides, rank, device, alignment); FAILED_PRECONDITION
 * (it is read-only); UNIMPLEMENTED (another major version, an engine whose memory DLPack has no name for);
 * OUT_OF_RANGE; RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_from_dlpack(struct weir_engine *engine,
                                    struct DLManagedTensorVersioned *managed,
                                    uint64_t flags,
                                    struct weir_tensor **out_tensor);

/**
 * As weir_tensor_from_dlpack, from a DLManagedTensor, which says nothing about writing.
 *
 * Thread safety: any thread. Blocking: never. Ownership: as weir_tensor_from_dlpack. Errors: as there.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_from_dlpack_legacy(struct weir_engine *engine,
                                           struct DLManagedTensor *managed,
                                           uint64_t flags,
                                           struct weir_tensor **out_tensor);


/* ---- Resources ---------------------------------------------------------------------------------------------------
 * What an engine keeps by name between runs: variables, lookup tables, objects of yours. A name is in a
 * container, NULL = "default". Names of resources have at most 127 bytes, those of containers 63: letters,
 * digits, '.', '_', '-' and '/', not beginning with '_', '-' or '/'. Creating with name NULL makes a resource
 * without one. A resource is counted: its name holds one reference, handles, programs and queued work hold
 * others. See docs/resources.md.
 */

/**
 * Finds a resource by its name. `container` NULL = "default"; `kind` WEIR_RESOURCE_ANY = any kind.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_resource.
 * Errors: NOT_FOUND (no such container, or no such resource in it); INVALID_ARGUMENT (NULL, a bad name, another kind).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_lookup(struct weir_engine *engine,
                                 const char *container,
                                 const char *name,
                                 weir_resource_kind kind,
                                 struct weir_resource **out_resource);

/**
 * Finds a resource by its name, or creates it: then `build` is called with `arg`, in this thread and once, and the
 * resource that it creates with name NULL gets the name. Threads that look it up meanwhile wait for it; if `build`
 * fails, its code is this call's, and one of them tries in turn. A call in a worker of a pool, or inside of a build
 * function, does not wait but fails.
 *
 * Thread safety: any thread. Blocking: while `build` runs here or in another thread. Ownership: the caller owns one
 * reference to *out_resource. Errors: FAILED_PRECONDITION (another call is making it, and waiting here may block a
 * worker or never end); INVALID_ARGUMENT (NULL, a bad name, another kind, `build` gave no resource, or one with a name
 * or of another engine); the code that `build` returned.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_lookup_or_create(struct weir_engine *engine,
                                           const char *container,
                                           const char *name,
                                           weir_resource_kind kind,
                                           weir_resource_build_fn build,
                                           void *arg,
                                           struct weir_resource **out_resource);

/**
 * Keeps a host object: `object` is the host's, weir only hands it out. `type_name` (at most 63 bytes) states its type,
 * so that it is not taken for something else. `destroy` (may be NULL) is called with `object` exactly once, when
 * nothing refers to it any more, in any thread; not if this call fails.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_resource; `object`
 * passes to the resource if `destroy` is given. Errors: ALREADY_EXISTS; INVALID_ARGUMENT (NULL, a bad name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_create_host(struct weir_engine *engine,
                                      const char *container,
                                      const char *name,
                                      const char *type_name,
                                      void *object,
                                      weir_destroy_fn destroy,
                                      struct weir_resource **out_resource);

/**
 * The object passed to weir_resource_create_host, if it is of this type.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_object is borrowed and lives as long as the resource.
 * Errors: INVALID_ARGUMENT (NULL, another kind, another type).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_get_host(const struct weir_resource *resource,
                                   const char *type_name,
                                   void **out_object);

/**
 * Takes one more reference.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_resource_retain(struct weir_resource *resource);

/**
 * Gives up one reference. NULL does nothing. A resource with a name stays alive under it.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_resource_release(struct weir_resource *resource);

/**
 * Removes a name. The resource ends with its last reference: programs compiled with it continue. Its id is stale at
 * once, and kernels that name it are refused.
 *
 * Thread safety: any thread. Blocking: never; a destroy function of the host may run in here. Ownership: none. Errors:
 * NOT_FOUND (no such container, or no such resource in it); INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_delete(struct weir_engine *engine,
                                 const char *container,
                                 const char *name);

/**
 * Removes all names of a container, as weir_resource_delete does. A container that does not exist counts as cleared.
 * `out_count` (may be NULL) receives the number of removed names.
 *
 * Thread safety: any thread. Blocking: never; destroy functions of the host may run in here. Ownership: none. Errors:
 * INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_clear(struct weir_engine *engine,
                                const char *container,
                                size_t *out_count);

/**
 * Lists the resources of a container, or of all (`container` NULL), in the order of containers and names. Set
 * struct_size of the first entry: it is the distance between entries, and weir stores it in every entry that it fills.
 * `out_count` receives the number of resources. capacity 0 only asks for the number (infos may then be NULL).
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's array. Errors: INVALID_ARGUMENT (NULL,
 * struct_size, a bad name); OUT_OF_RANGE if capacity is too small (out_count is set, the entries are left alone).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_list(struct weir_engine *engine,
                               const char *container,
                               struct weir_resource_info *infos,
                               size_t capacity,
                               size_t *out_count);

/**
 * Fills *out_info with a description of a resource.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT (NULL, struct_size).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_get_info(const struct weir_resource *resource,
                                   struct weir_resource_info *out_info);

/**
 * The resource's id on its engine, an index and a generation, valid while it has its name (or, without one, is alive)
 * and never reused for another resource. It keeps nothing alive.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_resource_get_id(const struct weir_resource *resource, uint64_t *out_id);

/**
 * The resource with this id.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_resource.
 * Errors: NOT_FOUND (it was destroyed, or never was); INVALID_ARGUMENT (NULL).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_from_id(struct weir_engine *engine,
                                  uint64_t id,
                                  struct weir_resource **out_resource);

/**
 * Copies a list of the resources that were still referenced when their engine ended, and are still now: a line for
 * each, "engine cpu:0: variable 'x' of container 'default' (1 references)". "" if there are none.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if capacity is too small (out_length is set).
 */
WEIR_API WEIR_NODISCARD weir_status weir_resource_get_leaks(char *buffer, size_t capacity, size_t *out_length);


/* ---- Variable ----------------------------------------------------------------------------------------------------
 * A tensor that lives between runs. Kernels read it, assign to it and add to it, as nodes of graphs and with
 * weir_enqueue. In a graph edges must say in which order; two runs at once, or a run and the host, are kept
 * apart by the variable: an exclusive one by a lock that never blocks a worker of a pool, an optimistic one by
 * versions.
 */

/**
 * Creates a variable like `desc`, in the engine's memory. Its initial value is that of `initial`, a tensor like `desc`
 * (NULL: zeros). `flags`: WEIR_VARIABLE_EXCLUSIVE or WEIR_VARIABLE_OPTIMISTIC. `container` NULL = "default"; `name`
 * NULL = without a name.
 *
 * On an accelerator's engine the variable is in the device's memory, and `initial` there or in the host's; the device
 * orders the accesses of all streams and programs one after the other, without a wait on the host (docs/resources.md).
 *
 * Thread safety: any thread. Blocking: never; with `initial` on a device until its value is there. Ownership: the
 * caller owns one reference to *out_variable; desc, names and the initial value are copied. Errors: ALREADY_EXISTS;
 * INVALID_ARGUMENT (NULL, a bad name, desc, flags, another shape of `initial`, or one in the memory of another
 * engine); FAILED_PRECONDITION (`initial` of a variable on a device, where waiting may block a worker); OUT_OF_RANGE;
 * RESOURCE_EXHAUSTED; errors of the device.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_variable_create(struct weir_engine *engine,
                                 const char *container,
                                 const char *name,
                                 const struct weir_tensor_desc *desc,
                                 uint64_t flags,
                                 const struct weir_tensor *initial,
                                 struct weir_resource **out_variable);

/**
 * Copies a variable's value into a tensor of the same shape, in the calling thread. The tensor is in the memory of the
 * variable's engine, or the host's.
 *
 * Thread safety: any thread. Blocking: while a node or another call holds an exclusive variable; in a worker of a pool
 * it spins for a moment and refuses. For a variable on a device: until the copy is done; inside of anything that weir
 * has called it refuses. Ownership: none. Errors: INVALID_ARGUMENT (NULL, no variable, another shape, the memory of
 * another engine); FAILED_PRECONDITION (waiting here may block a worker); errors of the device.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_variable_read(const struct weir_resource *variable,
                               struct weir_tensor *tensor);

/**
 * Assigns the value of a tensor of the same shape to a variable, in the calling thread.
 *
 * Thread safety: any thread. Blocking: as weir_variable_read. Ownership: the value is copied.
 * Errors: those of weir_variable_read; RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_variable_assign(struct weir_resource *variable,
                                 const struct weir_tensor *tensor);

/**
 * Creates a kernel that reads or writes a variable. The kernel refers to the variable by its id and does not keep it
 * alive; a program compiled with the kernel does.
 *
 * Kernels of an exclusive variable complete later while another node holds it, so synchronous streams and runs inside
 * of a worker of a pool refuse them; kernels of an optimistic variable, and of a variable on a device, may run
 * anywhere. They run in every run of a program, whether or not their outputs are used.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; attr is copied.
 * Errors: INVALID_ARGUMENT (NULL, no variable, one of another engine, unknown op, a sum of elements that are no
 * numbers). Calls of the kernel, and weir_graph_compile: NOT_FOUND (the variable was destroyed); of a write
 * RESOURCE_EXHAUSTED, too.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_variable(struct weir_engine *engine,
                                        const struct weir_resource *variable,
                                        weir_variable_op op,
                                        const struct weir_kernel_attr *attr,
                                        struct weir_kernel **out_kernel);


/* ---- Lookup table ------------------------------------------------------------------------------------------------
 * 64-bit integers or byte strings to rows of one type and shape.
 */

/**
 * Creates an empty table. `container` NULL = "default"; `name` NULL = without a name.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_table; desc and names
 * are copied. Errors: ALREADY_EXISTS; INVALID_ARGUMENT (NULL, a bad name, struct_size, key, row, reserved not 0);
 * OUT_OF_RANGE.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_table_create(struct weir_engine *engine,
                              const char *container,
                              const char *name,
                              const struct weir_table_desc *desc,
                              struct weir_resource **out_table);

/**
 * Inserts rows into a table: row i under key i, in this order; an existing key gets the new row. All rows or, if
 * memory is short, none. `rows` holds keys->count rows, `bytes` bytes.
 *
 * Thread safety: any thread; a find sees all rows of a call or none. Blocking: never. Ownership: keys and rows are
 * copied. Errors: INVALID_ARGUMENT (NULL, no table, keys of another kind, bytes); RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_table_insert(struct weir_resource *table,
                              const struct weir_table_keys *keys,
                              const void *rows,
                              size_t bytes);

/**
 * Copies the row of each key to `out_rows` (`bytes` bytes, keys->count rows). A missing key gets `default_row` (one
 * row, NULL: zeros). `out_found` (may be NULL) receives the number of keys found, `out_flags` (may be NULL) 1 or 0 for
 * each key.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's arrays.
 * Errors: INVALID_ARGUMENT (NULL, no table, keys of another kind, bytes).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_table_find(const struct weir_resource *table,
                            const struct weir_table_keys *keys,
                            const void *default_row,
                            void *out_rows,
                            size_t bytes,
                            size_t *out_found,
                            uint8_t *out_flags);

/**
 * The number of keys.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL, no table).
 */
WEIR_API WEIR_NODISCARD weir_status weir_table_size(const struct weir_resource *table, size_t *out_count);

/**
 * Copies all keys and rows, in ascending order of the keys, as of one moment. The sizes in `contents` are always
 * filled; an array that is NULL with a capacity of 0 is left out.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct and arrays. Errors: INVALID_ARGUMENT
 * (NULL, no table, struct_size); OUT_OF_RANGE if an array is too small (the sizes are filled, the arrays left alone);
 * RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_table_export(const struct weir_resource *table,
                              struct weir_table_contents *contents);

/**
 * Creates a kernel that looks into a table with integer keys, or inserts. The kernel refers to the table by its id and
 * does not keep it alive; a program compiled with the kernel does.
 *
 * A graph must state the order in which its nodes insert into a table, and the order between inserts and lookups
 * (docs/resources.md). The kernels run in every run of a program, whether or not their outputs are used.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; attr is copied.
 * Errors: INVALID_ARGUMENT (NULL, no table, one of another engine, keys that are byte strings, unknown op);
 * UNIMPLEMENTED (an accelerator's engine). Of its calls, and of weir_graph_compile: NOT_FOUND (the table was
 * destroyed); of an insert RESOURCE_EXHAUSTED, too.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_table(struct weir_engine *engine,
                                     const struct weir_resource *table,
                                     weir_table_op op,
                                     const struct weir_kernel_attr *attr,
                                     struct weir_kernel **out_kernel);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WEIR_H */
