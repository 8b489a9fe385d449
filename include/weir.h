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
 *   task groups         weir_task_group_create, weir_task_group_spawn, weir_task_group_wait, weir_task_group_cancel
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
 *   everything at once  weir_sync_devices, weir_sync_devices_status, weir_async_scope_begin, weir_time_ns
 *   domain              weir_domain_create, weir_engine_attr_set_domain, weir_sync_domain, weir_engine_get_name
 *   buffer              weir_buffer_create, weir_buffer_import, weir_tensor_create_on_buffer
 *   tensor              weir_tensor_desc, weir_tensor_create, weir_tensor_create_from
 *   kernel              weir_kernel_create_*, weir_enqueue, weir_kernel_context_*
 *   elements            weir_kernel_create_{eltwise,binary,select,convert,quantize,dequantize}
 *   moving elements     weir_kernel_create_transpose, _concat, _slice, _pad, _reshape, _gather
 *   rows and columns    weir_kernel_create_softmax, _reduce, _argmax, _norm
 *   kernel of a device  weir_kernel_create_named
 *   kernel cache        weir_kernel_cache_set_capacity, weir_kernel_cache_get_info
 *   asynchronous kernel weir_host_kernel_desc (compute_async), weir_completion_done
 *   shapes of a run     weir_tensor_create_dynamic*, weir_kernel_context_allocate_output, WEIR_DIM_DYNAMIC
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
 *   failed runs         weir_run_failure, weir_last_failure_get, weir_run_get_failure
 *   exchange            weir_tensor_to_dlpack, weir_tensor_from_dlpack (weir/dlpack.h)
 *   resources           weir_resource_lookup, _list, _delete, _clear, weir_resource_lookup_or_create
 *   variable            weir_variable_create, weir_kernel_create_variable_{read,assign,assign_add}
 *   lookup table        weir_table_create, weir_table_insert, weir_table_find, weir_table_export
 *   figures, profiles   weir_program_get_counters, weir_program_get_node_stats, weir_program_save_profile
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

/** A dimension that only a run knows, or that matches anything in a kernel's signature. */
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
  /** An argument is wrong whatever the state of the library: NULL, wrong handle, unknown enum value or flag bit. */
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
  /** The work was given up because something it depends on failed; the text names the origin. */
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
   * The device has failed for good: everything on it fails with this, waits end, and an engine made anew may work.
   * Abseil has no such code.
   */
  WEIR_DEVICE_LOST = 64,
} weir_status_code;

/** What a pool is like. Fixed for the life of the pool object. */
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
   * Work that was given to the pool runs on its own threads alone. Without it a thread that waits for such work
   * does what has not begun of it, wherever it waits. Requires in_parallel. What the pool refuses is done by the
   * thread that offered it all the same.
   */
  WEIR_THREADPOOL_OWN_THREADS_ONLY = 8,
} weir_threadpool_flags;

/** What weir_threadpool_conformance and weir_device_conformance say of a clause. */
typedef enum weir_conformance_verdict {
  /** Nothing wrong was seen. */
  WEIR_CONFORMANCE_PASS = 0,
  /** The clause is broken; the text says how. */
  WEIR_CONFORMANCE_FAIL = 1,
  /** The pool or device lacks the function that the clause is about. */
  WEIR_CONFORMANCE_NOT_OFFERED = 2,
  /** Legal, and good to know: what the pool is like. */
  WEIR_CONFORMANCE_NOTE = 3,
  /** It could not be tried, because a call before it has not returned. */
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
   * Signed 64-bit integer, two's complement: for keys of tables, indices of gather, and kernels that move elements
   * (transpose, concat, slice, reshape, gather). No kernel computes with it.
   */
  WEIR_S64 = 8,
} weir_dtype_value;

/** Limits of the API. */
typedef enum weir_limit {
  /** Most dimensions of a tensor. */
  WEIR_MAX_RANK = 8,
  /** Most inputs, and most outputs, of one kernel. */
  WEIR_MAX_ARGS = 64,
} weir_limit;

/** Kinds of engines. A build or a machine may lack some: weir_engine_count says how many there are. */
typedef enum weir_engine_kind_value {
  /** The host's processors, through a thread pool or the calling thread. */
  WEIR_ENGINE_CPU = 1,
  /** NVIDIA GPUs through the CUDA driver. */
  WEIR_ENGINE_CUDA = 2,
  /**
   * Devices that the library emulates on a thread of its own, in memory that the host cannot touch: for tests, with
   * an order of work that a seed decides, faults on request, and a checker of the order (weir_emulation).
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
  /** How many elements input `index` has: uint64_t. */
  WEIR_CUDA_ARGUMENT_INPUT_ELEMENTS = 3,
  /** How many elements output `index` has: uint64_t. */
  WEIR_CUDA_ARGUMENT_OUTPUT_ELEMENTS = 4,
  /** The `bytes` bytes at `value`. */
  WEIR_CUDA_ARGUMENT_VALUE = 5,
} weir_cuda_argument_kind_value;

/**
 * Thread modes of engines. In every mode a pool of the call counts before a pool of the stream, and that before the
 * engine's. What they mean for an engine that works on its own, weir_engine_attr_set_thread_mode says.
 */
typedef enum weir_thread_mode_value {
  /**
   * The pool given by weir_engine_attr_set_threadpool, shared with whoever else uses it; without one the calling
   * thread. The default.
   */
  WEIR_THREAD_MODE_GLOBAL = 1,
  /** A built-in pool for this engine alone. It starts with the engine and ends with it. */
  WEIR_THREAD_MODE_PRIVATE = 2,
  /**
   * A built-in pool that all engines of this kind in this mode share. It starts with the first and ends with the
   * last.
   */
  WEIR_THREAD_MODE_KIND = 3,
  /** No pool: the calling thread, whatever the environment says. */
  WEIR_THREAD_MODE_CALLER = 4,
} weir_thread_mode_value;

/** Wait policies: how a thread waits for a device once it has looked for long enough. */
typedef enum weir_wait_policy_value {
  /** Looks and sleeps as is best with the device. */
  WEIR_WAIT_DEFAULT = 0,
  /** Sleeps until the device wakes it. */
  WEIR_WAIT_BLOCK = 1,
  /**
   * Goes on looking, and gives its processor away in between to whoever wants it: least latency, and a processor at
   * work all the time that it waits.
   */
  WEIR_WAIT_YIELD = 2,
} weir_wait_policy_value;

/** How an engine keeps its memory. */
typedef enum weir_memory_mode_value {
  /**
   * The engine gets regions of 1 MiB and more and cuts tensors, scratch and the values of runs out of them; what
   * comes back is kept for the next (weir_engine_trim). The default but of emulated engines.
   */
  WEIR_MEMORY_MODE_POOLED = 1,
  /**
   * Each tensor and so on is one call of the allocator, and is given back at once: for tools that look for errors in
   * memory, and for allocators that are pools themselves. The default of emulated engines.
   */
  WEIR_MEMORY_MODE_DIRECT = 2,
} weir_memory_mode_value;

/** Reasons for which weir starts a thread. There are no others. */
typedef enum weir_thread_origin_value {
  /** weir_threadpool_create_builtin. */
  WEIR_THREAD_ORIGIN_BUILTIN_POOL = 1,
  /** weir_threadpool_create_seeded. */
  WEIR_THREAD_ORIGIN_SEEDED_POOL = 2,
  /**
   * An asynchronous stream whose pool cannot take single tasks, or that has no pool; or the notices (weir_notice) of
   * an engine whose device works on its own.
   */
  WEIR_THREAD_ORIGIN_LANE = 3,
  /** An engine in mode WEIR_THREAD_MODE_PRIVATE. */
  WEIR_THREAD_ORIGIN_ENGINE_POOL = 4,
  /** Engines in mode WEIR_THREAD_MODE_KIND. */
  WEIR_THREAD_ORIGIN_KIND_POOL = 5,
  /** weir_threadpool_conformance, which calls the pool from threads that the pool has never seen. */
  WEIR_THREAD_ORIGIN_CONFORMANCE = 6,
  /** An emulated device, whose work it does. */
  WEIR_THREAD_ORIGIN_DEVICE = 7,
  /**
   * A device that cannot tell when an event was reached, from the first wait on which no thread of the host's is
   * held.
   */
  WEIR_THREAD_ORIGIN_WATCH = 8,
} weir_thread_origin_value;

/** Bits of weir_emulation.flags. */
typedef enum weir_emulation_flags {
  /** The checker follows what operations declare to read and to write, and reports those that nothing orders. */
  WEIR_EMULATION_CHECK = 1,
  /** With CHECK: the later operation of a report fails, late, with FAILED_PRECONDITION. */
  WEIR_EMULATION_STRICT = 2,
  /**
   * The device's thread looks at the clock for the last 60 us before something is due, instead of sleeping: ends of
   * operations are then exact to a microsecond, at the price of a processor.
   */
  WEIR_EMULATION_PRECISE = 4,
} weir_emulation_flags;

/** What an emulated device makes of regions: parts of a program that it may compile to one kernel. */
typedef enum weir_emulation_regions {
  /** It takes none of their nodes. */
  WEIR_EMULATION_REGIONS_NONE = 0,
  /** It compiles them. */
  WEIR_EMULATION_REGIONS_ALL = 1,
  /** It takes three nodes of four, in the region's order, and those from the ninth on for themselves. */
  WEIR_EMULATION_REGIONS_SOME = 2,
  /** It declines each as it is to compile it, with UNIMPLEMENTED. */
  WEIR_EMULATION_REGIONS_DECLINED = 3,
} weir_emulation_regions;

/** What the checker of emulated devices reports. */
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
   * As the first three, but the second one's stream did wait for an event of the other stream: it was recorded
   * before the first operation, too soon.
   */
  WEIR_RACE_RECORDED_TOO_SOON = 7,
  /** A stream waits for an event that nobody has recorded. */
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
  /** Keep the time at which the stream reached the event, for weir_event_elapsed_ns. */
  WEIR_EVENT_TIMING = 1,
} weir_event_flags;

/** Flags of a host kernel. */
typedef enum weir_kernel_flags {
  /** Output i may share memory with an input. Without it overlapping arguments are refused. */
  WEIR_KERNEL_IN_PLACE = 1,
  /** The outputs depend on the inputs alone, and nothing else happens: compile may call it once and keep the outputs. */
  WEIR_KERNEL_PURE = 2,
  /**
   * The body may block: wait for a file, a socket, a lock. No graph with such a kernel is compiled without a pool
   * for it (weir_compile_options_set_blocking_threadpool). A worker of another pool runs it only while that worker
   * waits for it, and only if the pool has not begun it for 50 ms.
   */
  WEIR_KERNEL_MAY_BLOCK = 4,
  /**
   * Shapes may be known only when the body runs. Inputs may leave dimensions open (WEIR_DIM_DYNAMIC) in a graph, as
   * far as `inputs` does; the views that the body gets have the shapes of the run. Outputs that `outputs`, or
   * `infer`, leaves open are allocated by the body (weir_kernel_context_allocate_output); `infer` is not required
   * for them, and may be given open dimensions. Such kernels run as nodes of graphs; on a stream they do if no
   * output is open.
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
  /** C, bias and addend are of f32 also if A and B are of f16 or bf16. */
  WEIR_MATMUL_F32_RESULT = 32,
  /**
   * Factors of f32 may be rounded to TF32 (10 bits of fraction) before they are multiplied, where a device has units
   * for that and is faster with them: on CUDA engines with cuBLASLt. Elsewhere it says nothing. Without it products
   * of f32 are of all bits.
   */
  WEIR_MATMUL_ALLOW_TF32 = 64,
} weir_matmul_flags;

/**
 * Functions of one number x, with the parameters alpha (a) and beta (b) of weir_eltwise_desc as far as they are named
 * here. Infinities give the limits of the function, and a NaN stays a NaN.
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

/** Functions of two numbers. */
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

/** What `co` holds. */
typedef enum weir_gemm_offset_value {
  /** One number, for all elements. */
  WEIR_GEMM_OFFSET_FIXED = 1,
  /** A row of n numbers, which is added to each row of C. */
  WEIR_GEMM_OFFSET_ROW = 2,
  /** A column of m numbers, which is added to each column of C. */
  WEIR_GEMM_OFFSET_COLUMN = 3,
} weir_gemm_offset_value;

/** What is done to each element of a result before it is stored. */
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

/** What lies beyond the ends of an axis. */
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

/** What pooling makes of a window. */
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
  /** The last input, scales[N] of f32, has a scale for each column, beside `scale`. */
  WEIR_MATMUL_INT8_SCALES = 8,
} weir_matmul_int8_flags;

/** What a margin holds. */
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
   * Group: as layer, with mean and variance of all elements of a group of channels, and of what is behind them, one
   * by one for each place in front of the channels. Scale and shift have one element for each channel.
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

/** Reductions. A NaN that is reduced gives a NaN. */
typedef enum weir_reduce_op_value {
  /** The sum; 0 of nothing. */
  WEIR_REDUCE_SUM = 1,
  /** The sum divided by the number of elements; a NaN of nothing. */
  WEIR_REDUCE_MEAN = 2,
  /** The least element; infinity of nothing. */
  WEIR_REDUCE_MIN = 3,
  /** The greatest element; minus infinity of nothing. */
  WEIR_REDUCE_MAX = 4,
  /** The product; 1 of nothing. */
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
   * Where the greatest element is, as s32: its number among those that are reduced to one, in their order in memory.
   * The first of equals, and the first NaN if there is one. Of nothing it is refused.
   */
  WEIR_REDUCE_ARGMAX = 10,
  /** The same of the least element. */
  WEIR_REDUCE_ARGMIN = 11,
} weir_reduce_op_value;

/** Flags of weir_reduce_desc. */
typedef enum weir_reduce_flags {
  /** The axes stay, with one element each. */
  WEIR_REDUCE_KEEP_DIMS = 1,
} weir_reduce_flags;

/** Flags of weir_tensor_to_dlpack and weir_tensor_from_dlpack. */
typedef enum weir_dlpack_flags {
  /**
   * Export: say that it must not be written. Import: take what must not be written; you see to it that nothing
   * writes it.
   */
  WEIR_DLPACK_READ_ONLY = 1,
  /**
   * Export and import: copy the elements, into memory that is the receiver's alone. An import takes any strides
   * then.
   */
  WEIR_DLPACK_COPY = 2,
} weir_dlpack_flags;

/** Kinds of resources. */
typedef enum weir_resource_kind_value {
  /** In a lookup: whatever it is. Never the kind of a resource. */
  WEIR_RESOURCE_ANY = 0,
  /** A tensor that lives between runs. */
  WEIR_RESOURCE_VARIABLE = 1,
  /** A lookup table. */
  WEIR_RESOURCE_TABLE = 2,
  /** An object of the host's. */
  WEIR_RESOURCE_HOST = 3,
} weir_resource_kind_value;

/** Flags of weir_variable_create. */
typedef enum weir_variable_flags {
  /** Exclusive: nodes, streams and the host take turns, and a graph says in which order its nodes do. */
  WEIR_VARIABLE_EXCLUSIVE = 0,
  /**
   * Optimistic: nobody waits. A read sees one value or another, never parts of two; no sum is lost; a graph need say
   * nothing about the order.
   */
  WEIR_VARIABLE_OPTIMISTIC = 1,
} weir_variable_flags;

/** What memory of the host's a device's copies go straight from and to. */
typedef enum weir_pinning {
  /** What weir allocates for it: weir_tensor_create_pinned, weir_buffer_create_pinned. */
  WEIR_PINNING_ALLOCATES = 1,
  /** What others have allocated, too: weir_buffer_pin. */
  WEIR_PINNING_REGISTERS = 2,
} weir_pinning;

/** Kinds of keys. */
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

/** What weir_graph_set_forwarding says of an output, where it is not an input's index. */
typedef enum weir_forwarding_value {
  /**
   * The output takes over an input's memory if the kernel says WEIR_KERNEL_IN_PLACE and is the last who uses it: the
   * default.
   */
  WEIR_FORWARD_AUTO = -1,
  /** It has memory of its own. */
  WEIR_FORWARD_NEVER = -2,
} weir_forwarding_value;

/** Which engine does a node. */
typedef enum weir_placement_value {
  /** As the compile options say, and where these say nothing, the engine of its kernel. */
  WEIR_PLACEMENT_DEFAULT = 0,
  /** The engine of its kernel. */
  WEIR_PLACEMENT_KERNEL = 1,
  /**
   * The one of the program's engines that has the kernel and where the fewest bytes have to be copied: of its
   * inputs, and of outputs that are wanted on an engine that is settled. Constants in the host's memory count as
   * nothing; of equals it is the first in the list that weir_graph_compile was given. Kernels of variables, of other
   * programs, with packed weights, and those that only their engine's device knows (weir_kernel_create_named) stay
   * where they are.
   */
  WEIR_PLACEMENT_ANY = 2,
} weir_placement_value;

/** An allocator of the host's that engines take their memory from. Shared: create, retain, release. */
typedef struct weir_allocator weir_allocator;

/** A stretch of an engine's memory, or of the caller's own, that tensors can lie in. Shared: create, retain, release. */
typedef struct weir_buffer weir_buffer;

/** Settings for weir_graph_compile. Owned: create, destroy. */
typedef struct weir_compile_options weir_compile_options;

/**
 * A call of an asynchronous kernel, until weir_completion_done was called for it. Not an object: it is neither
 * retained nor released.
 */
typedef struct weir_completion weir_completion;

/**
 * What one user of the library waits for and is told of, beside other users in the process. Shared: create, retain,
 * release.
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

/** What a kernel's compute function sees of the call it serves. Valid only during that call. */
typedef struct weir_kernel_context weir_kernel_context;

/** Weights of matrix products, packed once for all kernels and threads that use them. Shared: create, retain, release. */
typedef struct weir_packed_weights weir_packed_weights;

/**
 * A compiled graph: immutable and re-entrant, any number of runs at once. Shared: create (by compile), retain,
 * release.
 */
typedef struct weir_program weir_program;

/**
 * Something that an engine keeps by name: a variable, a lookup table, an object of the host's. Shared: create or look
 * up, retain, release.
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

/** A dense array of numbers in an engine's memory, or over the caller's own. Shared: create, retain, release. */
typedef struct weir_tensor weir_tensor;

/**
 * A pool of threads that belongs to the host (or one of the reference pools). All CPU work runs on one of these or in
 * the calling thread. Shared: create, retain, release.
 */
typedef struct weir_threadpool weir_threadpool;

/** Settings for weir_threadpool_create_builtin. Owned: create, destroy. */
typedef struct weir_threadpool_attr weir_threadpool_attr;

/**
 * The result of a call: 0 (WEIR_OK) or one of the codes of enum weir_status_code. The values up to 16 are those of
 * Abseil's canonical codes (google/abseil status codes), those from 64 on are weir's own; all are ABI for ever.
 */
typedef int32_t weir_status;

/** Counters of the whole library in this process. */
typedef struct weir_runtime_info {
  /** sizeof(weir_runtime_info), set by the caller before the call. */
  size_t struct_size;
  /**
   * Threads that weir has started since it was loaded, whatever for. Threads of the host's pools are the host's
   * and are not counted here; weir_threadpool_get_num_threads asks a pool for them.
   */
  uint64_t threads_started;
  /** Of these, threads that are running now. */
  uint64_t threads_alive;
  /** Heap allocations (malloc, realloc) that weir has made since it was loaded. */
  uint64_t allocations;
  /** Bytes that weir holds on the heap now. */
  uint64_t bytes_in_use;
  /**
   * Thread pools alive. This count and those below fall when the object is gone: of a host's pool, when its
   * `release` has returned.
   */
  uint64_t threadpools;
  /** Engines alive. */
  uint64_t engines;
  /** Streams alive. */
  uint64_t streams;
  /** Events alive. */
  uint64_t events;
  /** Tensors alive. */
  uint64_t tensors;
  /** Kernels alive. */
  uint64_t kernels;
  /** Graphs under construction. */
  uint64_t graphs;
  /** Programs alive. */
  uint64_t programs;
  /** Runs alive: handles of weir_program_start. */
  uint64_t runs;
  /** Attributes and options alive, of all kinds. */
  uint64_t attrs;
  /** Threads running now in built-in pools that the host made. */
  uint64_t threads_of_builtin_pools;
  /** Threads running now in seeded pools. */
  uint64_t threads_of_seeded_pools;
  /** Threads running now for one asynchronous stream, or for the notices of one engine, each. */
  uint64_t threads_of_lanes;
  /** Threads running now in private pools of engines. */
  uint64_t threads_of_engines;
  /** Threads running now in pools that the engines of a kind share. */
  uint64_t threads_of_kinds;
  /** Packed weights alive, handles of kernels not counted. */
  uint64_t packed_weights;
  /** Threads running now for devices: those of emulated ones, and those that watch events. */
  uint64_t threads_of_devices;
  /** Allocators of the host's alive, those too that only engines or their memory refer to. */
  uint64_t allocators;
  /** Buffers alive, those too that only tensors refer to. */
  uint64_t buffers;
  /** Resources: variables, lookup tables, objects of the host's. */
  uint64_t resources;
  /** Those of them whose engine is gone: see weir_resource_get_leaks. */
  uint64_t leaked_resources;
  /** Domains alive, those too that only engines refer to. */
  uint64_t domains;
  /** Groups that are held or have tasks left. */
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
  /** Index in its pool; 0 for a lane. */
  uint32_t index;
  /** Id of its pool, as weir_threadpool_get_id gives it; 0 for a lane. */
  uint64_t pool;
  /** The system's number of the thread (Linux: gettid); 0 if the thread has not come to tell it yet. */
  uint64_t os_id;
  /**
   * Its name, NUL-terminated UTF-8: "weir-pool3-0" (of pool 3), "weir-seeded4-0", "weir-lane-ingest" (of stream
   * 'ingest'), "weir-cpu0-1" (of an engine cpu:0), "weir-kind-cpu-0". The system's own lists show the first 15
   * bytes; if that is not all, the middle is left out and the index is kept.
   */
  char name[32];
  /**
   * For whom it works, NUL-terminated UTF-8, cut if too long: the stream's name, the engine ("cpu:0"), the kind
   * ("cpu"); "" in a pool that the host made.
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
  /** Priority of the stream that the work came from: below 0 = low, 0 = normal, above 0 = high. */
  int32_t priority;
  /** Reserved, 0. */
  uint32_t flags;
} weir_task_hint;

/**
 * A host's thread pool. A host gives parallel_for, schedule, or both; weir derives the other.
 *
 * Copied by weir_threadpool_create. All functions may be called from any thread, several at a time, and from inside
 * tasks of the pool. They must not throw, longjmp or unwind. weir holds no lock while it calls them.
 * docs/threadpool.md is the contract in full.
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
   * Optional: nonzero if the calling thread belongs to this pool. Without it weir knows only the tasks it handed
   * over itself.
   */
  int32_t (*in_parallel)(void *ctx);
  /** Optional: the calling thread's index in the pool, -1 for a foreign thread. */
  int32_t (*thread_index)(void *ctx);
  /** Optional: runs one queued task of the pool in the calling thread; 0 if there was none. */
  int32_t (*help)(void *ctx);
  /**
   * Optional: called exactly once, when the last task has done its work (the thread that ran it may still be on its
   * way out of it) and the last reference is gone; never inside a task of this pool: if the last reference goes
   * inside one, with the next call of weir from elsewhere. Never called in a forked child.
   */
  void (*release)(void *ctx);
  /**
   * Optional: an upper bound of num_threads for the life of the pool; bounds scratch memory. Without it weir uses
   * what num_threads says when scratch is first made.
   */
  int32_t (*max_threads)(void *ctx);
} weir_threadpool_vtable;

/**
 * What comes after all pieces of a region: runs once, in the thread that comes out of the region last, and not at
 * all if a piece has failed. Returns WEIR_OK, or what the region then returns.
 */
typedef int32_t (*weir_epilogue_fn)(void *arg);

/** How weir_parallel_for and its like split a region. Zero in a member means "you choose". */
typedef struct weir_parallel_hint {
  /** sizeof(weir_parallel_hint) of the caller's header. */
  size_t struct_size;
  /**
   * Estimated nanoseconds per item (per point in several dimensions), fractions too; 0 = unknown. Then the
   * caller begins alone, and asks for helpers when it has seen what an item costs; what a range function took is
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
  /** NULL, or what is to run after all pieces, with the same arg. */
  weir_epilogue_fn epilogue;
} weir_parallel_hint;

/**
 * A piece of a region: do the items begin <= i < end. `slot` (0 <= slot < the region's number of slots) is held by no
 * other piece that runs at the same time, so it may index scratch memory. Returns WEIR_OK, or a status that stops
 * the pieces that have not started.
 */
typedef int32_t (*weir_range_fn)(void *arg, int64_t begin, int64_t end, int32_t slot);

/**
 * A box of a region over several dimensions: do the points with begin[d] <= i[d] < end[d] in each dimension d. Both
 * arrays have as many members as the region has dimensions, and live during the call. `slot` and the result are as for
 * weir_range_fn.
 */
typedef int32_t (*weir_box_fn)(void *arg, const int64_t *begin, const int64_t *end, int32_t slot);

/**
 * What it costs to bring threads of a pool to a region, in nanoseconds. A region asks for helpers if they save more
 * than that.
 */
typedef struct weir_threadpool_costs {
  /** sizeof(weir_threadpool_costs), set by the caller. */
  size_t struct_size;
  /** What the caller spends on each helper before it can work itself. */
  double submit_ns;
  /** From the asking until the helper begins. */
  double arrive_ns;
  /** From the end of the last piece until the caller goes on. */
  double join_ns;
} weir_threadpool_costs;

/**
 * A host function that is run as one piece of work: by a stream (weir_enqueue_task) or as a node of a graph
 * (weir_graph_add_task). Returns WEIR_OK or the code of its failure. Must not throw, longjmp or unwind.
 */
typedef int32_t (*weir_host_fn)(void *arg);

/** Releases what a callback's context holds. Runs exactly once, after the last use, on any thread. */
typedef void (*weir_destroy_fn)(void *ctx);

/**
 * Is told that a run, or the record of an event, is over; called once for each. `status` is how it ended: WEIR_OK,
 * the first node's failure, CANCELLED, DEADLINE_EXCEEDED, or ABORTED if the stream had failed before. `run` is the
 * run, borrowed for the call; NULL for an event, and for a run of weir_program_run. Must not throw, longjmp or
 * unwind.
 */
typedef void (*weir_notify_fn)(void *ctx, weir_status status, struct weir_run *run);

/**
 * How the host is told that something is over: by a function, by an eventfd, or by both, the function first. For
 * weir_run_notify, weir_event_notify and weir_run_options_set_notice.
 *
 * *When.* It is over by then: weir_run_query, or weir_event_query for the record that was meant, says 1, and a wait
 * for it does not wait. With another status than WEIR_OK, weir_last_error_message and weir_last_failure_get tell the
 * failure inside of the function, and weir_run_error, if there is a run.
 *
 * *Where.* The function is called
 *
 * - for work on a stream of the host's: in the thread that ends it, which is a worker of the stream's pool, the
 *   stream's lane, or a thread that waits for it or was refused by the pool. It is a part of the stream's work: the
 *   stream goes on when it has returned;
 * - for work on a stream of a device (not of a CPU engine): in a lane of the engine's, a thread that weir starts for
 *   the first such function and keeps as long as the engine (WEIR_THREAD_ORIGIN_LANE); one after the other, in the
 *   order of the ends that weir saw;
 * - for what was over before the call that asks: in the calling thread, before that call returns.
 *
 * It is called on no device's thread, under no lock of weir's, and never inside of another such function on the same
 * stack: there it comes behind that one. So a function may begin the next run, and that one's the next, for ever.
 *
 * *What it may call.* Everything that a host function on that stream may (weir_enqueue_task): it may queue work,
 * start runs, ask, and let go of objects. It should not block: the stream, or the engine's other notices, wait for
 * it. A wait for one stream, event or run is as in a host function on that stream; waits for everything
 * (weir_sync_devices) are refused with FAILED_PRECONDITION.
 *
 * *The eventfd* gets 1 added, in the same thread, or in the one that finds the end if there is neither function nor
 * release. It stays the host's, is not blocking (EFD_NONBLOCK), and stays open until the notice is over; if its
 * counter is full already nothing is added.
 *
 * *The end.* `release` is called once with `ctx` when weir will not use it again, behind the function and the
 * eventfd. If the call that asks fails, neither function nor release is called, and the host keeps `ctx`.
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

/** How weir_threadpool_conformance and weir_device_conformance go about it. Zero in a member means the default. */
typedef struct weir_conformance_options {
  /** sizeof(weir_conformance_options) of the caller's header. */
  size_t struct_size;
  /**
   * How long a clause waits for tasks that do not come, in nanoseconds; default 2 s, at most 100 s. A call of the
   * pool that takes five times as long counts as one that never returns.
   */
  uint64_t budget_ns;
  /** For what is drawn: lengths of tasks and pauses. */
  uint64_t seed;
  /** How often each thing is tried; default 16, at most 100000. */
  int32_t rounds;
  /** Reserved, 0. */
  uint32_t flags;
} weir_conformance_options;

/** What is said of a clause of docs/threadpool.md, or of docs/devices.md. */
typedef struct weir_conformance_line {
  /** sizeof(weir_conformance_line), set by weir. */
  size_t struct_size;
  /** The clause, such as "H5". */
  const char *clause;
  /** What the clause asks for, or what a note is about. */
  const char *title;
  /** What was seen, for people to read. */
  const char *text;
  /** One of weir_conformance_verdict. */
  int32_t verdict;
  /** Reserved, 0. */
  int32_t reserved;
} weir_conformance_line;

/** Takes a line. It and its texts live during the call. */
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
  /** The device's memory in bytes; 0 = not known. */
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

/** How a device is emulated. All members 0: as fast as its thread can, nothing fails, nothing is checked. */
typedef struct weir_emulation {
  /** sizeof(weir_emulation). */
  size_t struct_size;
  /**
   * 0: the device works by itself, in modelled time. Other values: it works only while somebody waits for or asks
   * about an event of it, takes no time, and the seed decides which queue goes on; the same seed and the same calls
   * give the same order.
   */
  uint64_t seed;
  /** Bits of enum weir_emulation_flags. */
  uint64_t flags;
  /** What each operation (kernel, copy, fill) takes at least, in nanoseconds. */
  uint64_t latency_ns;
  /** What copies and fills take besides: bytes in a microsecond; 0 = no time. */
  uint64_t bytes_per_us;
  /**
   * What a kernel takes besides, in nanoseconds. Its computation on the host is part of this, and more if it takes
   * longer.
   */
  uint64_t kernel_ns;
  /** Memory of the device in bytes; 0 = 1 GiB. Host memory is taken only for what is used. */
  uint64_t memory_bytes;
  /**
   * The operation with this number (1 = the first that was submitted to the device; kernels, copies and fills count)
   * fails late, with INTERNAL. 0 = none, also in the next three.
   */
  uint64_t fail_operation;
  /** The copy with this number fails late, with INTERNAL; only copies count. */
  uint64_t fail_copy;
  /** The allocation with this number fails with RESOURCE_EXHAUSTED; those of pinned memory count too. */
  uint64_t fail_allocation;
  /** The device is lost as it comes to the operation with this number. */
  uint64_t lose_operation;
  /** What each launch of a recording takes before the first of its operations begins, in nanoseconds. */
  uint64_t replay_ns;
  /** One of enum weir_emulation_regions. */
  uint64_t regions;
  /** The region with this number that the device is to compile fails with INTERNAL. 0 = none. */
  uint64_t fail_region;
} weir_emulation;

/** Counts of an emulated device, since it was made. */
typedef struct weir_emulated_counters {
  /** sizeof(weir_emulated_counters). */
  size_t struct_size;
  /**
   * Kernels, copies and fills submitted, and each time that a branch or loop of a recording reads what it goes by.
   * Those inside of a branch or loop count, here and below, as they begin.
   */
  uint64_t operations;
  /** Of these, done or passed over because of a failure. */
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
  /** Allocations made, those of pinned memory too. */
  uint64_t allocations;
  /** Allocations alive. */
  uint64_t allocations_in_use;
  /** Bytes of these. */
  uint64_t bytes_in_use;
  /** The most of them at one time. */
  uint64_t peak_bytes;
  /** Reports of the checker, each as often as it was found. */
  uint64_t races;
  /** Recordings submitted, each as often as it was; their operations are counted above. */
  uint64_t replays;
  /** Copies from and to memory of the host's that is not pinned. */
  uint64_t pageable_copies;
  /** Bytes of the host's memory that are pinned for the device now. */
  uint64_t pinned_bytes;
  /** Regions that it has compiled to one kernel. */
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
  /** Times that operations with these names on these streams were found so. */
  uint64_t count;
  /** Number of the first operation; of a free: of the last operation submitted before. */
  uint64_t first_number;
  /** Number of the second operation, likewise. */
  uint64_t second_number;
  /** First byte, from the start of the allocation; an address if the bytes are the host's. */
  uint64_t offset;
  /** How many bytes, in one piece. */
  uint64_t bytes;
  /** The first operation, NUL-terminated UTF-8, cut if too long: "kernel 'add'", "free". */
  char first_name[64];
  /** Its stream; "" for what the host did. */
  char first_stream[64];
  /** The second operation. */
  char second_name[64];
  /** Its stream. */
  char second_stream[64];
  /** All of it in words. */
  char text[512];
} weir_emulated_race;

/**
 * An allocator of the host's, for the memory of engines: of the host's on CPU engines, of the engine's device on others.
 *
 * Copied by weir_allocator_create. The functions may be called from any thread, several at a time. They must not
 * throw, longjmp or unwind, and must not call weir for an engine that they serve. weir holds no lock while it calls
 * them.
 *
 * On an engine of another kind `allocate` gives an address that the engine's device can use, as weir_tensor_create_from
 * takes one, and the host may be unable to touch it. Tensors, scratch and the values of runs lie there; what the
 * device needs for itself (libraries, recordings) and pinned memory of the host's do not. What is given back is used by
 * nothing that a stream was given before.
 */
typedef struct weir_allocator_vtable {
  /** sizeof(weir_allocator_vtable) of the host's header. Members beyond it read as NULL. */
  size_t struct_size;
  /** Reserved, 0. */
  uint64_t flags;
  /**
   * What the address of each tensor in this memory shall be a multiple of, in bytes: a power of two up to 2 MiB. 0,
   * and anything less than the engine's own alignment (64 on the CPU), stand for the engine's own. weir_engine_info tells it.
   */
  size_t alignment;
  /**
   * Required. `bytes` bytes (never 0) at a multiple of `alignment`, a power of two; what they hold does not matter.
   * NULL: there is no more. An address that is not aligned is given back at once, and the call that needed it fails.
   */
  void *(*allocate)(void *ctx, size_t bytes, size_t alignment);
  /** Required. Takes back what `allocate` gave for the same numbers, each address exactly once. */
  void (*deallocate)(void *ctx, void *data, size_t bytes, size_t alignment);
  /**
   * Optional: called exactly once, when everything was given back and nothing refers to the allocator any more, in
   * the thread that let go of it last. Never called in a forked child.
   */
  void (*release)(void *ctx);
} weir_allocator_vtable;

/** How an engine keeps its memory: one of enum weir_memory_mode_value. */
typedef uint32_t weir_memory_mode;

/** What an engine's memory is like at one moment. Sizes are in bytes. */
typedef struct weir_memory_info {
  /** sizeof(weir_memory_info), set by the caller before the call. */
  size_t struct_size;
  /** Most that may be reserved; UINT64_MAX = no limit. */
  uint64_t limit;
  /** In tensors, buffers, scratch and the values of runs, rounded up to the sizes of blocks. */
  uint64_t in_use;
  /** The most that was ever in use, or was since weir_engine_reset_memory_peak. */
  uint64_t peak_in_use;
  /** In regions, whether in use or not. */
  uint64_t reserved;
  /** The most that was ever reserved, or was since weir_engine_reset_memory_peak. */
  uint64_t peak_reserved;
  /** The largest piece that is free, without what is kept for requests of its size. */
  uint64_t largest_free;
  /** Blocks in use. */
  uint64_t blocks;
  /** Regions. */
  uint64_t regions;
  /** Blocks given out since the engine was made. */
  uint64_t allocations;
  /** Regions asked for and got since the engine was made: calls of the allocator. */
  uint64_t region_allocations;
  /** 1 - largest_free / (reserved - in_use); 0 if nothing is free. */
  double fragmentation;
  /**
   * Most of the host's memory that may be reserved for copies (weir_engine_attr_set_pinned_limit); UINT64_MAX = no
   * limit. This and what follows is 0 for an engine that works in the host's memory, but for the limit, which is
   * that of all its memory.
   */
  uint64_t host_limit;
  /** Of the host's memory, in tensors and buffers that are pinned for this engine, and in what programs copy through. */
  uint64_t host_in_use;
  /** The most of it that was ever in use, or was since weir_engine_reset_memory_peak. */
  uint64_t host_peak_in_use;
  /** Of the host's memory, in regions for copies, whether in use or not. */
  uint64_t host_reserved;
  /** Bytes of buffers that weir_buffer_pin has pinned for this engine. */
  uint64_t registered;
  /** OR of enum weir_pinning: what is pinned. 0: the memory for copies is ordinary memory. */
  uint32_t pinning;
  /** 0. */
  uint32_t reserved0;
} weir_memory_info;

/** How the synchronisation of one engine ended. */
typedef struct weir_engine_sync {
  /** sizeof(weir_engine_sync), set by the caller in the first entry of an array. */
  size_t struct_size;
  /** WEIR_OK, DEADLINE_EXCEEDED, or the code of the engine's first late error. */
  weir_status status;
  /** 0. */
  uint32_t reserved;
  /** The engine's name behind a word: "engine cpu:0", "engine torch/encoder". */
  char engine[64];
  /** The text of the failure, as far as it fits. */
  char message[256];
} weir_engine_sync;

/**
 * The body of a host kernel. Inputs, outputs, scratch and the pool come from `context`, which is valid until the
 * function returns. Returns WEIR_OK or the code of its failure; weir_kernel_context_fail adds a text. May run on any
 * thread, several calls at once. Must not throw, longjmp or unwind.
 */
typedef int32_t (*weir_compute_fn)(void *user, struct weir_kernel_context *context);

/**
 * Computes a host kernel's output descriptors from its input descriptors, when they depend on them. Must give the same
 * answer for the same inputs. Returns WEIR_OK, or the code with which these inputs are refused.
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
  /** What each input must look like (WEIR_DTYPE_ANY and -1 match anything), or NULL for no check. Copied. */
  const struct weir_tensor_desc *inputs;
  /** Number of outputs, at most WEIR_MAX_ARGS. */
  size_t num_outputs;
  /** What the outputs look like; NULL if `infer` says so. Copied. */
  const struct weir_tensor_desc *outputs;
  /**
   * Optional: computes the outputs' descriptors. Required if num_outputs > 0 and `outputs` is NULL or has a -1, but
   * for dimensions that stay open until the body runs (WEIR_KERNEL_DYNAMIC).
   */
  weir_infer_fn infer;
  /** Estimated run time in nanoseconds; 0 = unknown, then the executor measures. */
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
 * both of f32, f16 or bf16; C, bias and addend are of the same type, or of f32 with WEIR_MATMUL_F32_RESULT. Sums are
 * of f32, and rounded once at the end. Leading dimensions are aligned at the last one and broadcast: a dimension of 1
 * stretches. In a graph, dimensions of the inputs of this and of weir's other kernels may be open (WEIR_DIM_DYNAMIC):
 * then the run checks whether they fit.
 *
 * Inputs: A; B, unless there are packed `weights`; with WEIR_MATMUL_BIAS bias; with WEIR_MATMUL_SUM addend. Output: C.
 */
typedef struct weir_matmul_desc {
  /** sizeof(weir_matmul_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_matmul_flags. */
  uint64_t flags;
  /** What is done to each element of C at last. */
  weir_activation activation;
  /** Reserved, 0. */
  uint32_t reserved;
  /**
   * B, packed from the type of A, in the place of the input; NULL = B is an input. With it the kernel takes no
   * WEIR_MATMUL_TRANSPOSE_B: the weights were packed one way or the other.
   */
  struct weir_packed_weights *weights;
} weir_matmul_desc;

/**
 * Sum of two tensors, with broadcasting: shapes are aligned at the last dimension, and a dimension of 1 stretches.
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

/** What is known of an engine's CUDA device. */
typedef struct weir_cuda_device_info {
  /** sizeof(weir_cuda_device_info) of the caller's header. */
  size_t struct_size;
  /** Version of CUDA that the driver is for: 12040 = 12.4. */
  int32_t driver_version;
  /** Compute capability: 9 and 0 for 9.0. */
  uint32_t capability_major;
  /** See capability_major. */
  uint32_t capability_minor;
  /** How many multiprocessors. */
  uint32_t multiprocessors;
  /** Most threads of a block. */
  uint32_t max_threads_per_block;
  /** Most bytes of shared memory of a block. */
  uint32_t max_shared_bytes;
  /** Memory of the device, in bytes. */
  uint64_t memory_bytes;
  /** Memory of it that is free now, in bytes, for all processes. */
  uint64_t free_bytes;
  /** 1: memory comes from a pool of the driver's, and giving it back does not wait for the device. */
  uint32_t has_memory_pool;
  /** Reserved, 0. */
  uint32_t reserved;
  /** The device's UUID, the same in each process. */
  uint8_t uuid[16];
  /** "0000:3b:00.0", with its NUL. */
  char pci_bus_id[32];
  /** The driver's name for it, UTF-8, with its NUL; cut off if it is longer. */
  char name[128];
  /**
   * Who does matrix products: "cuBLASLt 13.0", or "built-in: " and why, with its NUL; cut off if it is longer. ""
   * before the first kernel of products was made: the library is looked for then.
   */
  char products[128];
} weir_cuda_device_info;

/** What the source of a kernel is: one of enum weir_cuda_source_value. */
typedef uint32_t weir_cuda_source;

/** What an argument of a kernel is: one of enum weir_cuda_argument_kind_value. */
typedef uint32_t weir_cuda_argument_kind;

/** An argument of a kernel, in the order of the entry's parameters. */
typedef struct weir_cuda_argument {
  /** A kind of arguments. */
  weir_cuda_argument_kind kind;
  /** Which input or output; 0 for a value. */
  uint32_t index;
  /** A value, copied; NULL for the others. */
  const void *value;
  /** Bytes of a value, at most 4096; 0 for the others. */
  size_t bytes;
} weir_cuda_argument;

/** A kernel of the host's for a CUDA engine. */
typedef struct weir_cuda_kernel_desc {
  /** sizeof(weir_cuda_kernel_desc) of the caller's header. */
  size_t struct_size;
  /** The source; copied. */
  const void *source;
  /** Its bytes; 0 = it is text that ends with a NUL. */
  size_t source_bytes;
  /** A form of source. */
  weir_cuda_source source_kind;
  /** Bytes of dynamic shared memory of each block. */
  uint32_t shared_bytes;
  /** The kernel's name in the source, UTF-8. */
  const char *entry;
  /** Options for the compiler, with WEIR_CUDA_SOURCE_TEXT alone; NULL = none. weir itself says for which device. */
  const char *const *options;
  /** How many options. */
  size_t num_options;
  /** Blocks. {0, 0, 0}: so many in a row that each element of output 0 has a thread. */
  uint32_t grid[3];
  /** Threads of a block. */
  uint32_t block[3];
  /** The arguments; copied. */
  const struct weir_cuda_argument *arguments;
  /** How many arguments. */
  size_t num_arguments;
  /** Number of inputs, at most WEIR_MAX_ARGS. */
  size_t num_inputs;
  /** What each input must look like (WEIR_DTYPE_ANY and -1 match anything), or NULL for no check. Copied. */
  const struct weir_tensor_desc *inputs;
  /** Number of outputs, at most WEIR_MAX_ARGS. */
  size_t num_outputs;
  /** What the outputs look like; NULL if `infer` says so. Copied. */
  const struct weir_tensor_desc *outputs;
  /** Optional: computes the outputs' descriptors. Required if num_outputs > 0 and `outputs` is NULL or has a -1. */
  weir_infer_fn infer;
  /** First argument of `infer`. */
  void *user;
  /** Optional: releases `user` when the kernel dies. Not called if the creation fails. */
  weir_destroy_fn destroy;
  /**
   * WEIR_KERNEL_IN_PLACE, or 0. With it an output may be the memory of an input that is like it: loops then write a
   * variable in place.
   */
  uint64_t flags;
} weir_cuda_kernel_desc;

/** A function of one number: one of enum weir_eltwise_op_value. */
typedef uint32_t weir_eltwise_op;

/**
 * A function of each element. f32, bf16 or f16; computed in f32. Input: x. Output: as x, in the same memory or in
 * other.
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

/** A function of two numbers: one of enum weir_binary_op_value. */
typedef uint32_t weir_binary_op;

/**
 * A function of the elements of two tensors, with broadcasting: shapes are aligned at the last dimension, and a
 * dimension of 1 stretches. Inputs: a and b, both f32, bf16, f16, s32, s8 or u8; for WEIR_BINARY_EQ and the others
 * that compare also bool. Output: of the same type, or bool if the function compares; it may be the memory of an
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
 * Elements of a where a condition holds, else of b, with broadcasting of all three as in weir_binary_desc. Inputs:
 * condition, bool; a and b of one type, which may be each but s64. Output: of that type.
 */
typedef struct weir_select_desc {
  /** sizeof(weir_select_desc) of the caller's header. */
  size_t struct_size;
} weir_select_desc;

/**
 * A tensor in another storage type: x scale + shift, from and to each type but s64. Input: x. Output: the same shape.
 *
 * Computed in f32; an integer is rounded to nearest, ties to even, and saturates, a NaN is 0, and as a bool everything
 * but 0 is 1. With scale 1 and shift 0 what both types can hold stays exactly what it is, s32 too.
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
  /** The axis of scale and zero_point, if they are not of one element; negative counts from the end, -1 = last. */
  int32_t axis;
} weir_quantize_desc;

/**
 * The way back: (x - zero_point) scale. Inputs: x, s8, u8 or s32; scale and zero_point as in weir_quantize_desc.
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
 * Another order of dimensions: dimension i of the output is dimension permutation[i] of the input.
 *
 * Input: x. Output: as x, with its dimensions in that order.
 */
typedef struct weir_transpose_desc {
  /** sizeof(weir_transpose_desc) of the caller's header. */
  size_t struct_size;
  /** Number of dimensions of x; 0 = any number, and their order is turned round. */
  uint32_t rank;
  /** Reserved, 0. */
  uint32_t reserved;
  /** Each of 0 to rank - 1 once. */
  int32_t permutation[8];
} weir_transpose_desc;

/**
 * Tensors one after the other along an axis. They have one type, and the same size in all other dimensions.
 *
 * Inputs: num_inputs tensors. Output: as they are, and as long along the axis as all of them together.
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
 * A part of a tensor: in each dimension the elements from begin on, step apart, up to end, which is not among them.
 *
 * Places below zero count from the end. Places outside of the tensor mean the nearest inside: INT64_MAX as end is "to
 * the last", and with a negative step INT64_MIN is "to the first". Input: x. Output: the part.
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
  /** The distance; 0 = 1. Below zero it goes backwards, from begin down to end. */
  int64_t step[8];
} weir_slice_desc;

/** What the margin of a weir_pad_desc holds: one of enum weir_pad_mode_value. */
typedef uint32_t weir_pad_mode;

/**
 * A tensor with a margin: `before` elements in front and `after` behind in each dimension.
 *
 * A margin that mirrors is smaller than the dimension. Input: x. Output: x with the margin.
 */
typedef struct weir_pad_desc {
  /** sizeof(weir_pad_desc) of the caller's header. */
  size_t struct_size;
  /** Number of dimensions of x. */
  uint32_t rank;
  /** One of weir_pad_mode_value. */
  weir_pad_mode mode;
  /** Elements in front in each dimension, 0 or more. */
  int64_t before[8];
  /** Elements behind in each dimension, 0 or more. */
  int64_t after[8];
  /**
   * What a WEIR_PAD_CONSTANT margin holds, as an element of x: floats are rounded to the nearest, an integer type
   * must hold it.
   */
  double value;
} weir_pad_desc;

/**
 * The same elements, in their order, in another shape. In a graph the output takes over the memory of the input where
 * it can, and then nothing is copied; on a stream x may be its own output.
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
  /** The output's shape. One dimension may be -1: what the others leave. */
  int64_t dims[8];
} weir_reshape_desc;

/**
 * Rows of a table by their numbers: an embedding.
 *
 * Inputs: table; indices, s32 or s64, of any shape. Output: the table with the indices' shape in the place of the
 * axis. A call with an index below 0 or beyond the axis fails with OUT_OF_RANGE, which names it, and writes nothing.
 * On a CUDA engine that is a late failure of the stream or run, and the rows of such indices are zeros.
 */
typedef struct weir_gather_desc {
  /** sizeof(weir_gather_desc) of the caller's header. */
  size_t struct_size;
  /** The axis of the table that the indices count along; negative counts from the end, -1 = last. */
  int32_t axis;
  /** Reserved, 0. */
  int32_t reserved;
} weir_gather_desc;

/** What weir_kernel_create_reduce computes: one of enum weir_reduce_op_value. */
typedef uint32_t weir_reduce_op;

/**
 * Reduces some dimensions, each to one element. f32, f16 and bf16; computed in f32 or wider, in an order that depends
 * on the shape alone.
 *
 * Input: x. Output: the shape of x without the axes, or with 1 in their place; of the type of x, but for the places of
 * elements, which are s32.
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

/** What weir_kernel_create_norm computes: one of enum weir_norm_op_value. */
typedef uint32_t weir_norm_op;

/**
 * Normalisation, then times scale and plus shift on request. The variance is that of the elements themselves: divided
 * by their number.
 *
 * Inputs: x, f32, f16 or bf16; for WEIR_NORM_BATCH mean and variance, f32; with WEIR_NORM_SCALE scale; with
 * WEIR_NORM_SHIFT shift: f32, or both of the type of x. Output: as x. Whatever the types are, all is computed in f32
 * or wider, and rounded once.
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
   * Number of groups of WEIR_NORM_GROUP, which divides that of the channels; as many make an instance normalisation.
   * For other operations 0.
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
  /** What lies beyond the ends. */
  weir_padding padding;
  /** What is done to each element of the output. */
  weir_activation activation;
  /** Channels are divided into so many groups; 0 = 1. Both C and O are multiples of it. */
  int64_t groups;
  /** Elements from one window to the next; 0 = 1. */
  int64_t strides[2];
  /** Elements from one tap to the next; 0 = 1. */
  int64_t dilations[2];
  /** Elements before the first one. */
  int64_t padding_begin[2];
  /** Elements behind the last one. */
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
  /** What is made of a window. */
  weir_pooling_op op;
  /** How x and the output are ordered. */
  weir_data_layout data_layout;
  /** Taps of a window. */
  int64_t kernel[2];
  /** Elements from one window to the next; 0 = 1. */
  int64_t strides[2];
  /** Elements from one tap to the next; 0 = 1. */
  int64_t dilations[2];
  /** Elements before the first one; fewer than the window spans. */
  int64_t padding_begin[2];
  /** Elements behind the last one; fewer than the window spans. */
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

/** How weights are packed: B of a matrix product, from a tensor [K, N] of f32, f16, bf16 or s8. */
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
 * with a scale of 1, so is the rest; otherwise it is computed in f64 and rounded to the nearest integer, a half to the
 * even one. A C of f32 is not rounded to an integer.
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
  /** Taken off each element of A; a value of its type. */
  int32_t zero_a;
  /** Taken off each element of B: -128 to 127. */
  int32_t zero_b;
  /** Added to each element of C at last. */
  int32_t zero_c;
  /** Reserved, 0. */
  uint32_t reserved;
  /**
   * B, packed from s8, in the place of the input; NULL = B is an input. Not together with
   * WEIR_MATMUL_INT8_TRANSPOSE_B.
   */
  struct weir_packed_weights *weights;
} weir_matmul_int8_desc;

/** The kernel cache of this process in numbers. */
typedef struct weir_kernel_cache_info {
  /** sizeof(weir_kernel_cache_info), set by the caller before the call. */
  size_t struct_size;
  /** Most kernels that are kept; 0 = there is no cache. */
  uint64_t capacity;
  /** Kernels in the cache now. */
  uint64_t entries;
  /** Creations that found their kernel, since the library was loaded. */
  uint64_t hits;
  /** Creations that had to make it. */
  uint64_t misses;
  /** Creations that found another thread making it, and waited for that. */
  uint64_t shared_builds;
  /** Kernels that made room for others, or went as the capacity was lowered. */
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

/** Where a node is run: one of enum weir_placement_value. */
typedef uint32_t weir_placement;

/** A text format of reports: one of enum weir_report_format_value. */
typedef uint32_t weir_report_format;

/** What a node has taken, over all runs since the program was compiled. */
typedef struct weir_node_stats {
  /** sizeof(weir_node_stats), set by the caller before the call. */
  size_t struct_size;
  /**
   * How often it was run, in a loop once for each iteration; always 0 for the nodes that only steer others (cond,
   * case, while).
   */
  uint64_t count;
  /** Nanoseconds of all runs together, of the shortest and of the longest; a look at the clock is taken off. */
  uint64_t total_ns;
  /** The shortest; 0 while count is 0. */
  uint64_t min_ns;
  /** The longest. */
  uint64_t max_ns;
  /** The node's name, NUL-terminated UTF-8, cut if too long. */
  char name[128];
  /**
   * Nanoseconds of all runs together between the node being ready, all that it waits for being done, and its
   * beginning. 0 for runs that one thread makes along the nodes' order: there a node is ready when its turn comes.
   */
  uint64_t waited_ns;
} weir_node_stats;

/** The runs of a program since it was compiled. */
typedef struct weir_program_counters {
  /** sizeof(weir_program_counters), set by the caller before the call. */
  size_t struct_size;
  /** Runs that have begun. One that was cancelled before its turn in a stream never does. */
  uint64_t begun;
  /** Runs that have ended. */
  uint64_t ended;
  /** Of those, the ones that failed, also by a deadline, but were not cancelled. */
  uint64_t failed;
  /** Of those that have ended, the ones that were cancelled. */
  uint64_t cancelled;
  /** Runs that have begun and not ended. */
  uint64_t running;
} weir_program_counters;

/** How a run failed. Names are NUL-terminated UTF-8, cut if too long; the text of the error has them whole. */
typedef struct weir_run_failure {
  /** sizeof(weir_run_failure), set by the caller before the call. */
  size_t struct_size;
  /** The run's code; WEIR_OK if no run has failed, and then the rest is empty. */
  weir_status code;
  /** Reserved, 0. */
  int32_t reserved;
  /** Iterations of the innermost loop around the node that were over; -1 if the node is in no loop. */
  int64_t iteration;
  /**
   * How many nodes were not begun because of it. Of what is inside of a cond, case or while that was not begun only
   * that node itself counts.
   */
  size_t num_not_run;
  /** The node that failed; "" if the run was cancelled or its deadline has passed. */
  char node[128];
  /** The node of that loop, or "". */
  char loop_node[128];
  /** The engine that the node ran on (its name, "cpu:0"), or "". */
  char engine[64];
} weir_run_failure;

/** The kind of a resource: one of enum weir_resource_kind_value. */
typedef uint32_t weir_resource_kind;

/**
 * Makes a resource for weir_resource_lookup_or_create: creates one of `engine` with name NULL and stores the reference
 * in *out_resource, which passes to weir. Returns WEIR_OK or the code of its failure. It may take its time, and make
 * other resources; it must not throw, longjmp or unwind.
 */
typedef weir_status (*weir_resource_build_fn)(void *arg, struct weir_resource **out_resource);

/** A resource in words and numbers. */
typedef struct weir_resource_info {
  /** sizeof(weir_resource_info), set by the caller before the call. */
  size_t struct_size;
  /** Index and generation, see weir_resource_from_id. */
  uint64_t id;
  /** What it is. */
  weir_resource_kind kind;
  /** 1: a variable for optimistic use. */
  uint32_t optimistic;
  /** References now, without the container's: handles, programs, work under way. */
  uint64_t references;
  /** Memory that it holds, in bytes; 0 for objects of the host's. */
  uint64_t bytes;
  /** Rows of a table. */
  uint64_t rows;
  /** Its container, "" if it has no name. */
  char container[64];
  /** Its name, "" if it has none. */
  char name[128];
  /** The type of an object of the host's, as it was given. */
  char type_name[64];
  /** Element type and shape of a variable, or of a table's rows. */
  struct weir_tensor_desc desc;
} weir_resource_info;

/** What the keys of a table are: one of enum weir_table_key_value. */
typedef uint32_t weir_table_key;

/** What a table is made of. */
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

/** Keys of one call: `integers` or `bytes` with `lengths`, as the table has them; what is not used is NULL. */
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

/** Where weir_table_export puts a table's contents. Arrays that are NULL with a capacity of 0 are not wanted. */
typedef struct weir_table_contents {
  /** sizeof(weir_table_contents), set by the caller. */
  size_t struct_size;
  /** Room for keys in `integers` or `lengths`, set by the caller. */
  size_t capacity;
  /** Out: number of rows in the table. */
  size_t count;
  /** Keys in ascending order, for a table of integers. */
  int64_t *integers;
  /** Lengths of the keys, for a table of byte strings. */
  size_t *lengths;
  /** The byte strings one behind the other, in ascending order. */
  void *bytes;
  /** Room in `bytes`, set by the caller. */
  size_t bytes_capacity;
  /** Out: bytes of all keys together. */
  size_t bytes_size;
  /** The rows in the order of the keys. */
  void *rows;
  /** Room in `rows` in bytes, set by the caller. */
  size_t rows_capacity;
  /** Out: bytes of all rows together. */
  size_t rows_size;
} weir_table_contents;


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
 * Kinds from plug-ins have this number or a higher one, by the order in which their names were first registered in the
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
 * The name of a status code, "INVALID_ARGUMENT"; "UNKNOWN_CODE" for a number that is none.
 *
 * Thread safety: any thread. Blocking: never. Ownership: static text. Errors: none.
 */
WEIR_API const char *weir_status_name(weir_status status);

/**
 * The text of the calling thread's last failed weir call: "weir_stream_create: engine is NULL". Successful calls
 * leave it. A task that moves between threads (goroutine, virtual thread) must read it before it yields.
 *
 * Thread safety: any thread. Blocking: never.
 * Ownership: valid until this thread's next failing weir call; never NULL, "" if there is none. Errors: none.
 */
WEIR_API const char *weir_last_error_message(void);

/**
 * Copies the calling thread's last error text, with its NUL, into `buffer`. `out_length` receives the length without
 * NUL. capacity 0 asks for the length only (then buffer may be NULL); with a buffer out_length may be NULL.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if capacity is too small (out_length is set, the text kept).
 */
WEIR_API WEIR_NODISCARD weir_status weir_last_error_copy(char *buffer, size_t capacity, size_t *out_length);

/**
 * Fills `info` with the library's counters: threads by origin, allocations made, objects alive by kind. Copies of
 * attributes inside engines and streams count as attributes.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT (NULL, or a struct_size below the first published one).
 */
WEIR_API WEIR_NODISCARD weir_status weir_runtime_get_info(struct weir_runtime_info *out_info);

/**
 * Lists the threads that weir has started and that are running now, in the order of their start. Set struct_size of
 * the first entry: it is the distance between entries, and weir stores it in all that it fills. `out_count` receives
 * the number of threads. capacity 0 asks for the number only (then infos may be NULL). Threads may start and end
 * between two calls, so ask for a few more than were counted. The threads of your own pools are not listed.
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
 * Makes a pool of the host's threads. The vtable is copied; `ctx` is passed to its functions. Several pools may
 * exist, and one pool may serve any number of engines and streams. weir calls vtable->release(ctx) exactly once,
 * after the last reference went and the last task returned, or in weir_threadpool_close; if this call fails, it is
 * never called. What weir learns about a pool it learns about all pools with the same functions, flags and width, so a
 * pool may be made for each call of the host's: that costs no memory after the first, and no system call.
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
 * As weir_threadpool_create, with settings; NULL attr: all default. A setting that is for the built-in pool alone
 * (num_threads, spin_ns) is refused.
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
 * The first clause of docs/threadpool.md that a pool in checking mode has broken, and how, as weir_last_error_copy
 * copies it: "H5: parallel_for ran index 3 of 4 twice". If none was, what looks as if one will be: "H9: a wait has
 * slept for 1 s, and the pool has begun none of 2 calls that it had accepted: ..."; the pool goes on with that. Empty
 * if there is neither, and without checking mode.
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
 * The pool as a vtable: for a library that wants one, for a host that wraps a pool, or for
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
 * Makes weir's own work-stealing pool. weir_runtime_get_info counts its threads. NULL attr: as many threads as
 * this process may use processors (affinity mask and cgroup limit), or WEIR_NUM_THREADS from the environment.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_pool; attr is copied.
 * Errors: INVALID_ARGUMENT (also if attr sets checking); RESOURCE_EXHAUSTED if threads cannot be started.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_create_builtin(const struct weir_threadpool_attr *attr,
                                           struct weir_threadpool **out_pool);

/**
 * Makes a pool without threads: whatever is handed to it runs at once in the calling thread.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_pool.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_create_inline(struct weir_threadpool **out_pool);

/**
 * Makes a pool for tests: `num_threads` threads that run tasks in an order drawn from `seed`, delay some, run some
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
 * Ends the use of a pool, for a host that owns it: when this returns WEIR_OK weir calls none of the vtable's functions
 * any more, on any thread, and vtable->release has been called, once. The handle stays valid until it is released.
 *
 * From the call on, also if it ends early: whoever asks for work on the pool (a region, a product, a run, a stream
 * with that pool, an engine that is made with it) gets FAILED_PRECONDITION, which names the pool by the number of
 * weir_threadpool_get_id. What is under way goes on without further help from the pool: regions and runs in the
 * threads that they have, streams in the threads that submit and wait. The call waits until no thread of weir's work
 * is inside of the pool any more: calls of the vtable, tasks that have begun, and the turns of streams and the kernels
 * that may block which the pool has accepted. Helpers that the pool has accepted and not begun are not waited for. The
 * host may run them at any later time, after release too: they look at memory of weir's, find the pool closed, and
 * return. A host that throws them away instead leaves the pool's memory (some 40 KB) behind.
 *
 * May be called several times and by several threads at once: all return when the first is through, and later calls
 * succeed at once. DEADLINE_EXCEEDED: something was still inside; call again to wait on. With timeout_ns 0 it closes
 * the pool and looks once. A pool of weir's own ends its threads. See docs/call_pools.md for pools that belong to a
 * call.
 *
 * Thread safety: any thread. Blocking: until nothing of weir's is inside, or timeout_ns have passed
 * (WEIR_TIMEOUT_INFINITE = no limit), and for as long as vtable->release takes. Ownership: none passes.
 * Errors: INVALID_ARGUMENT; DEADLINE_EXCEEDED; FAILED_PRECONDITION inside of a task of the pool and on a device's
 * thread: then the pool stays open.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_close(struct weir_threadpool *pool, uint64_t timeout_ns);

/**
 * How many threads the pool has now: vtable->num_threads, at least 1. The inline pool has 1.
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
 * The pool's number: no other pool in this process has it, then or later. weir_thread_info.pool is such a number.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_get_id(const struct weir_threadpool *pool, uint64_t *out_id);

/**
 * Whether the calling thread runs a task of this pool (1) or not (0): what vtable->in_parallel says, or what weir
 * knows of its own tasks.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the pool is closed.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_in_parallel(const struct weir_threadpool *pool,
                                        int32_t *out_in_parallel);

/**
 * Runs fn over the items 0 <= i < n in pieces, on the pool and in the calling thread, and returns when all are
 * done. A NULL pool means the calling thread alone. `hint` may be NULL. May be called from inside a task of the
 * pool; then it never waits for a piece that no thread has begun. A region that is too small to be worth a thread
 * runs in the caller; how small that is follows from what the pool's threads cost (weir_threadpool_get_costs).
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
 * boxes of whole tiles; tile[d] is the size of a tile in dimension d, 0 (or a NULL tile) leaves it to weir, which
 * takes whole lines, planes and so on up to about a microsecond of work. hint->cost_ns is per point.
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
 * Measures what it costs to bring the pool's threads, with a few rounds of empty work. The first region that could
 * be worth a thread does so too; call this to have it done at a time of your choice, with the pool as idle as it
 * will be later.
 *
 * Thread safety: any thread. Blocking: less than a millisecond as a rule, a few if the
 * machine is busy, and for as long as the pool keeps a parallel_for. Ownership: none.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION inside a task of the pool.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_measure(struct weir_threadpool *pool);

/**
 * What bringing a helper costs, as weir knows it now: of a pool that was in use a moment ago, in the way in which
 * regions would ask (schedule or parallel_for). Assumed figures until the pool is measured; from then on shared
 * regions refine them.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_get_costs(const struct weir_threadpool *pool,
                                      struct weir_threadpool_costs *out_costs);

/**
 * Makes settings, all default. num_threads and spin_ns are for weir_threadpool_create_builtin, checking is for
 * weir_threadpool_create_with_attr; either refuses what is for the other, so that nothing is silently left out.
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
 * How long a thread of the pool without work looks around before it sleeps, in nanoseconds; 0 = not at all.
 * Default 20 us, at most one second.
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
 * Whether weir watches a host's pool (1) or not (0, the default). A pool in checking mode is verified on the work
 * that it gets anyway: a task run twice, lost, or run after refusal, a wrong index, a parallel_for that returns
 * early, threads that do not know where they belong. What the pool does wrong never reaches weir's work: each piece
 * is still done once. The first clause that it breaks is kept (weir_threadpool_get_broken_clause). From then on the
 * pool is asked for nothing more, the callers do all work, and weir_parallel_for, weir_stream_synchronize,
 * weir_run_wait, and calls on synchronous streams that use the pool return FAILED_PRECONDITION with the clause when
 * they have done their work. A task that the pool accepted and has not begun after five seconds counts as lost, and
 * is run by a later call of weir. Each task costs a few microseconds more; without checking mode nothing does.
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
 * What the pool's threads cost, for a host that knows: then weir does not measure them. Shared regions refine the
 * figures all the same. NULL costs: to be measured, the default.
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
 * Makes a group of tasks: weir_task_group_spawn adds tasks, weir_task_group_wait does what has not begun of them and
 * waits for the rest. Helpers come from `pool`, within its budget: inside of a kernel or a region the threads are
 * shared with it. NULL: the tasks are run by the threads that spawn and wait.
 *
 * A group takes no memory after the first ones of its thread, nor does a task. A thread holds 256 tasks that have not
 * begun, of all its groups; what it spawns beyond that is run by weir_task_group_spawn itself. At most 64 threads hold
 * tasks at a time; on others each task is run by its spawn. A group that is made inside of a task belongs to that
 * task's group: cancelling that one stops this one, too, and a wait for that one helps with this one.
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
 * skipped and their arguments destroyed, now or where they would have begun; those that have go on. A group with a
 * notice (weir_task_group_notify) goes on whole, until that is told.
 *
 * Thread safety: any thread, also a task of the group. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_task_group_release(struct weir_task_group *group);

/**
 * Adds a task: fn(arg), once, on any thread that may work for the pool, now or later; this call may run it itself. It
 * does where much is waiting already and tasks of this function have turned out small, and where there is no room.
 * Lock nothing around a spawn that the task locks, too. A status other than WEIR_OK stops the group: tasks that have
 * not begun are skipped, and weir_task_group_wait returns it. Tasks may spawn into their own group. `destroy`, if it
 * is not NULL, is called once with `arg` when the task is done or skipped.
 *
 * Thread safety: any thread; who spawns from outside of the group's tasks holds a reference, and does so before the
 * wait that is to cover it. Blocking: never, but for what the task does if it is run here. Ownership: `arg` until it
 * is destroyed. Errors: INVALID_ARGUMENT; then `arg` stays with the caller.
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
 * Waits until all tasks are done that were spawned before, and those that they spawned into the group. It does what
 * has not begun of them, and of groups that were made inside of them; never anything else. It sleeps only for what
 * other threads are running, after a look of 20 us. Then the group is as new and may be used again.
 *
 * The stack grows with the depth of tasks that wait inside of one another, as that of a recursive function would: by
 * less than 1 KiB for each, besides what the tasks themselves need.
 *
 * On a pool with WEIR_THREADPOOL_OWN_THREADS_ONLY another thread does none of the work, and sleeps; it does what the
 * pool refuses.
 *
 * Thread safety: any thread; of several that wait at once for a group that was stopped, one is told why.
 * Blocking: until the tasks are done. Ownership: none.
 * Errors: the first status other than WEIR_OK that a task returned; CANCELLED (weir_task_group_cancel);
 * INVALID_ARGUMENT; FAILED_PRECONDITION in a task of the group itself, or of one that was made inside of its tasks.
 */
WEIR_API WEIR_NODISCARD weir_status weir_task_group_wait(struct weir_task_group *group);

/**
 * Has tasks skipped that have not begun, of this group and of groups that were made inside of its tasks. Those that
 * run go on, and can ask (weir_task_group_is_stopped). It holds until a wait has returned CANCELLED, or a notice was
 * told; so a cancel that comes before the first spawn is not lost. A group that a task has stopped keeps that status.
 *
 * Thread safety: any thread, also a task of the group. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_task_group_cancel(struct weir_task_group *group);

/**
 * Whether tasks of the group that have not begun are skipped (1) or not (0): it was cancelled, a task of it has
 * failed, or so for a group that it was made inside of. For long tasks that end early then.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_task_group_is_stopped(const struct weir_task_group *group,
                                       int32_t *out_stopped);

/**
 * Has the host told, once, when all is done that was spawned: for who must not wait. Call it behind the last spawn
 * from outside; if nothing is left then, the notice is told before this call returns. The notice has the status that a wait
 * would return, and no run. From this call on the pool sees to the tasks: it owes a thread for them. If it refuses, or
 * there is none, this call does those that have not begun, and so does each spawn behind it. The group is as new
 * behind the notice.
 *
 * Thread safety: any thread. Blocking: never, but for the tasks that it does on a pool that refuses them. Ownership:
 * `notice` is read during the call; its ctx is released with `release`. Until it is told the notice holds the group.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if there is a notice already; RESOURCE_EXHAUSTED.
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
 * Checks a pool against docs/threadpool.md, and calls `report` once for each clause, in order, and then for what is
 * notable of the pool. The vtable and ctx are taken as weir_threadpool_create takes them: vtable->release(ctx) is
 * called at the end, which is checked too. Nobody else may use the pool meanwhile. A pool that loses tasks or does
 * not return ends in a failed clause and not in a hang; a pool that does not return is never released.
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
 * copies and kernels do what they promise. It takes the device at its own functions, so it asks the same of a
 * plug-in's devices as of weir's own. A device that hangs ends in a failed clause and not in a hang. Nothing else
 * should use the device meanwhile.
 *
 * Thread safety: any thread, but no callback of a device. Blocking: a second or so on a good device; on a bad one up
 * to some budgets (options->budget_ns) for each clause. Ownership: the options are copied and may be NULL; report_arg
 * is the caller's. *out_failed is the number of clauses that failed. Errors: INVALID_ARGUMENT (NULL, unknown kind or
 * options); OUT_OF_RANGE (index); UNIMPLEMENTED for a CPU engine; what opening the device gives. A broken clause is no
 * error.
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
 * Makes settings for engines of one kind, all default.
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
 * The kind of engine that these settings are for.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_kind(const struct weir_engine_attr *attr,
                                      weir_engine_kind *out_kind);

/**
 * The pool on which the engine's work runs unless a stream or a call says otherwise. NULL = none was given (the
 * default): then the thread mode decides, and without one the calling thread does the work. Of other engines, whose
 * device does the work, the functions of the host's that its streams are given (weir_enqueue_task) run on it.
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
 * Where the engine's threads come from: one of enum weir_thread_mode_value. A mode that was set counts before
 * WEIR_THREAD_MODE from the environment; so does a pool that was given. A pool goes with mode GLOBAL only:
 * weir_engine_create refuses it together with another mode.
 *
 * Of an engine that works on its own (not CPU) it says who launches its part of programs: copies, kernels, recordings.
 * GLOBAL and CALLER: whoever runs the program's nodes on the host. PRIVATE and KIND: one thread, of this engine or of
 * all of its kind in this mode, which starts when the first program is compiled for the engine, and ends with the last
 * who may need it; WEIR_DEVICE_THREAD_COUNT in the environment asks for more. What is not set
 * WEIR_DEVICE_THREAD_MODE says for these engines, and a pool, which is for functions of the host's on their streams,
 * goes with each mode.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT (NULL, unknown mode).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_thread_mode(struct weir_engine_attr *attr,
                                             weir_thread_mode mode);

/**
 * The mode that was set, or WEIR_THREAD_MODE_GLOBAL. In the attributes of an engine: the mode that it is in.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_thread_mode(const struct weir_engine_attr *attr,
                                             weir_thread_mode *out_mode);

/**
 * How many threads weir starts for the engine in mode PRIVATE, and for the first engine of its kind in mode KIND; the
 * other modes start none. 0 = as many as weir_threadpool_create_builtin starts by default. A count that was set
 * counts before WEIR_THREAD_COUNT from the environment; without either it is 0. An engine in mode KIND that was given
 * another number, not 0, than the threads that its kind has already is refused; one that was given none joins them.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL,
 * count above 256); FAILED_PRECONDITION if the attribute's kind is not CPU: an engine of another kind has one thread
 * of weir's or none, as its mode says.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_thread_count(struct weir_engine_attr *attr, uint32_t count);

/**
 * The number of threads that was set, or 0. In the attributes of an engine that weir has started threads for: their
 * number.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the attribute's kind is not CPU.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_thread_count(const struct weir_engine_attr *attr,
                                              uint32_t *out_count);

/**
 * Over how many streams of the engine a program's work on it may be spread, for each run at once; 0 = as many as there
 * is work side by side, up to four. 1 is the default: more streams pay for themselves only where single kernels leave
 * the device idle. What compile makes of it is in the program's report (weir_program_report). A CPU engine has no use
 * for it.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT (NULL, count above 64).
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_max_streams(struct weir_engine_attr *attr, uint32_t count);

/**
 * The number of streams that was set, or 1.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_max_streams(const struct weir_engine_attr *attr,
                                             uint32_t *out_count);

/**
 * What the engine's device is opened with, in a form of its plug-in's (device_open_with of weir_device_vtable). The
 * first engine on a device decides: another one with settings that do not fit is refused as long as the device lives,
 * and one without any shares it. `bytes` 0 takes them back.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the bytes are copied. Errors:
 * INVALID_ARGUMENT; weir_engine_create gives UNIMPLEMENTED if the device takes none.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_device_settings(struct weir_engine_attr *attr,
                                                 const void *settings,
                                                 size_t bytes);

/**
 * The settings that were set; in the attributes of an engine those that its device has settled. *out_bytes is how many
 * bytes they have, 0 if there are none; as many as there is room for are stored. A call with capacity 0 only asks.
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
 * How threads wait for work on the engine's device, in waits for streams, events, engines and all devices. They look
 * for spin_ns nanoseconds, at most one second, and then do as the policy says. WEIR_WAIT_DEFAULT is the default and
 * takes no spin_ns: a CUDA device is asked for 30 us before a thread sleeps. The spin budget of a stream
 * (weir_stream_attr_set_spin_ns) comes first, and is the stream's alone.
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
 * The policy and the time to look that were set.
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
 * How many engines of a kind this machine offers. A kind that this build or machine lacks has 0; that is no error.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL, unknown kind).
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_count(weir_engine_kind kind, uint32_t *out_count);

/**
 * Makes an engine for device `index` of a kind. NULL attr = all default. Several engines for one device may exist.
 * If the thread mode asks for threads, they are started here; if one cannot be started, those before it end again and
 * there is no engine.
 *
 * Thread safety: any thread. Blocking: never for CPU engines, but starting threads takes its time. For others as long
 * as opening the device takes, and up to a second if one with other settings has just been let go of. Ownership: the
 * caller owns one reference to *out_engine; attr is copied. Errors: INVALID_ARGUMENT (also an attr of another kind, a
 * pool together with a mode other than GLOBAL, or a value of WEIR_THREAD_MODE or WEIR_THREAD_COUNT that means
 * nothing); OUT_OF_RANGE (index); RESOURCE_EXHAUSTED if threads cannot be started; FAILED_PRECONDITION if engines of
 * this kind share another number of threads already; UNAVAILABLE or UNIMPLEMENTED if this machine or build has no such
 * device.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_create(weir_engine_kind kind,
                               uint32_t index,
                               const struct weir_engine_attr *attr,
                               struct weir_engine **out_engine);

/**
 * Makes an engine for each device of this machine, of all kinds, with default settings: in ascending order of kinds
 * and indices, so that the CPU's is the first, as weir_graph_compile wants it. Emulated devices are left out: a host
 * that wants one makes it. *out_count is how many there are. A call with capacity 0 only asks; all are made, or none.
 *
 * Thread safety: any thread. Blocking: as weir_engine_create, for each. Ownership: the caller owns one reference to
 * each of out_engines. Errors: INVALID_ARGUMENT (NULL); OUT_OF_RANGE if capacity is not 0 and too small (*out_count is
 * set, no engine is made); those of weir_engine_create, with the name of the device.
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
 * Gives up one reference. NULL does nothing. Streams, tensors, kernels and programs hold references of their own.
 * The last reference ends the threads of a private pool, and those of the kind if no other engine shares them, also
 * when it goes inside a task of theirs: they do what is queued and then end by themselves. A reference to the pool
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
 * The settings that the engine was made with. Thread mode and thread count are in it as they were settled.
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
 * The thread pool that the engine's work runs on, whether it was given or weir has started it; NULL = the calling
 * thread.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_pool is borrowed and lives as long as the engine.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_get_threadpool(const struct weir_engine *engine,
                                       struct weir_threadpool **out_pool);

/**
 * Fills `out_info` with facts about the engine's device.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_get_info(const struct weir_engine *engine,
                                 struct weir_engine_info *out_info);

/**
 * Waits until everything is done that was queued before this call on the engine's streams, and for nothing later.
 * Returns the engine's first late error that this call has not returned yet. It takes nothing away from what streams,
 * domains and weir_sync_devices report, nor they from it.
 *
 * Thread safety: any thread. Blocking: until done, or timeout_ns have passed (0 = look once, WEIR_TIMEOUT_INFINITE
 * = no limit). It works meanwhile, as weir_stream_synchronize does. Ownership: none.
 * Errors: INVALID_ARGUMENT; DEADLINE_EXCEEDED; FAILED_PRECONDITION if waiting here would block a worker that the
 * work needs, and always inside of what weir has called, as of weir_sync_devices; else a late error.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_synchronize(struct weir_engine *engine, uint64_t timeout_ns);


/* ---- Device ------------------------------------------------------------------------------------------------------
 * Engines of one kind stand on devices that somebody makes: weir itself, or a plug-in, which is a vtable of C
 * functions (weir_device_vtable) that a program registers, or a library that weir_device_load opens. A plug-in's
 * engines have streams, events, tensors and kernels like all others. After a fork the child leaves plug-ins
 * alone; a library that was loaded is never unloaded. docs/devices.md is the contract.
 */

/**
 * The kind with this name: "cpu", "cuda", "emulated", or the one under which a plug-in has registered. A name keeps
 * its number for the life of the process, also when nobody makes its devices any more.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL, UTF-8); NOT_FOUND.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_kind_from_name(const char *name, weir_engine_kind *out_kind);

/**
 * The name of a kind, "cpu"; "?" for a number that is none.
 *
 * Thread safety: any thread. Blocking: never. Ownership: static text. Errors: none.
 */
WEIR_API const char *weir_engine_kind_name(weir_engine_kind kind);

/**
 * The kinds that somebody makes devices of, in ascending order; a machine may still have none of a kind
 * (weir_engine_count). *out_count is how many there are; as many as there is room for are stored. A call with capacity
 * 0 only asks.
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
 * Makes the devices of a vtable known as a kind of engines: a new one, or one more maker of a kind that there is. The
 * maker with the highest priority makes the devices; weir's own have priority 0. A maker of the kind "cpu" stands in
 * the place of the host's own device: the host's threads do the work of its engines, as ever, and their tensors have
 * memory of its host_allocate (WEIR_DEVICE_PINNED_MEMORY). Of its vtable nothing else is used but device_count,
 * device_open, device_close, device_info, error_text and what belongs to settings, and nothing else is required.
 * `name` has 1 to 32 of a-z, 0-9, '_' and '-', the first one a letter.
 *
 * Thread safety: any thread. Blocking: never; no function of the vtable is called. Ownership: the vtable is copied;
 * ctx passes to weir if this call succeeds: vtable->release(ctx) is called when it is unregistered or replaced, and
 * its last device closed. Errors: INVALID_ARGUMENT (NULL, a required member that is NULL, which the text names,
 * struct_size, name); ALREADY_EXISTS if there is a maker with this priority (weir_device_replace takes its place).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_device_register(const char *name,
                                 int32_t priority,
                                 const struct weir_device_vtable *vtable,
                                 void *ctx);

/**
 * Puts a vtable in the place of the maker that has this priority. Devices that are open stay what they are; the next
 * ones that are made are the new maker's.
 *
 * Thread safety: any thread. Blocking: as vtable->release of the one that goes. Ownership: as weir_device_register.
 * Errors: those of weir_device_register; NOT_FOUND if there is no maker with this priority.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_device_replace(const char *name,
                                int32_t priority,
                                const struct weir_device_vtable *vtable,
                                void *ctx);

/**
 * Takes the maker of this kind and priority away. Devices that are open stay until their engines are gone.
 *
 * Thread safety: any thread. Blocking: as vtable->release. Ownership: weir lets go of the vtable's ctx, see
 * weir_device_register. Errors: INVALID_ARGUMENT (NULL, UTF-8); NOT_FOUND.
 */
WEIR_API WEIR_NODISCARD weir_status weir_device_unregister(const char *name, int32_t priority);

/**
 * Opens a plug-in library and has it register its devices: its function weir_device_plugin_init
 * (weir_device_plugin_init_fn) is called in this thread. A library that has been loaded stays so for the life of the
 * process, and is not asked again: loading it once more does nothing. If it fails, what it has registered is taken
 * back, and a later call asks it again.
 *
 * Thread safety: any thread, but not from inside weir_device_plugin_init of the same library. Blocking: while the
 * library is opened and asked, or while another thread does so. Ownership: none. Errors: INVALID_ARGUMENT (NULL, or a
 * library without that function); NOT_FOUND if it cannot be opened (the text is the loader's); UNIMPLEMENTED where
 * libraries cannot be opened; else what weir_device_plugin_init has returned.
 */
WEIR_API WEIR_NODISCARD weir_status weir_device_load(const char *path);


/* ---- Emulated devices --------------------------------------------------------------------------------------------
 * A device for tests where there is none: streams that work on their own, memory that the host cannot touch,
 * kernels that run as host functions on a thread of the device's. A seed decides the order of its work, and
 * decides it again; faults come when they are asked for; a checker reports operations that use the same bytes
 * and that nothing orders (docs/emulated.md).
 */

/**
 * How the device of an emulated engine is emulated. The first engine on a device decides; another one with other
 * settings is refused as long as the device lives (after a second, in which what is left of its last use may end), and
 * one without any shares it.
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
 * The emulation that was set, or all 0. In the attributes of an engine: how its device is emulated.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the attribute's kind is not EMULATED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_emulation(const struct weir_engine_attr *attr,
                                           struct weir_emulation *out_emulation);

/**
 * Counts of an emulated device, since it was made; all engines on it share them.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the engine is not an emulated one.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_emulated_get_counters(const struct weir_engine *engine,
                                       struct weir_emulated_counters *out_counters);

/**
 * The order in which the device came to its operations: their numbers (1 = the first that was submitted), the latest
 * ones, the oldest first. `out_count` receives how many are kept, at most 16384; if capacity is less, the latest
 * `capacity` of them are given. capacity 0 asks for the number only (then numbers may be NULL). Two runs with the same
 * seed and the same calls have the same order.
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
 * What the checker has found on an emulated device (WEIR_EMULATION_CHECK), in the order in which it was first found:
 * operations that use the same bytes and that nothing orders. Finds that are alike but for the operations' numbers are
 * one report, with a count; 256 different reports are kept. Set struct_size of the first entry, which is the distance
 * between entries. `out_count` receives the number of reports. capacity 0 asks for the number only (then races may be
 * NULL).
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
 * Forgets the reports and their count.
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
 * What the interface below calls the engine's device. CUDA: the CUcontext. A plug-in: what its native_handle says. The
 * address of a tensor is weir_tensor_get_data.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the handle stays weir's, and lives as long as the engine.
 * Errors: INVALID_ARGUMENT; UNIMPLEMENTED if it has no such handle, as the CPU.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_get_native_handle(const struct weir_engine *engine,
                                          uint64_t *out_handle);

/**
 * What the interface below calls the stream. CUDA: the CUstream, for work of the host's own beside weir's: it runs
 * behind what was submitted before, unless that waits for something on the host.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the handle stays weir's, and lives as long as the stream.
 * Errors: INVALID_ARGUMENT; UNIMPLEMENTED if it has no such handle, as on the CPU.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_get_native_handle(const struct weir_stream *stream,
                                          uint64_t *out_handle);

/**
 * What the interface below calls the event, as recorded last. CUDA: a CUevent, for streams of the host's own to wait
 * for.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the handle stays weir's. It lives until the event is recorded
 * again or released. Errors: INVALID_ARGUMENT; FAILED_PRECONDITION if the event was never recorded, or the device has
 * not been given the record yet; UNIMPLEMENTED if it has no such handle, as on the CPU.
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
 * Makes an allocator of the host's functions. The vtable is copied; `ctx` is passed to its functions. Any number of
 * engines may use it. weir calls vtable->release(ctx) exactly once, after the last reference went and everything was
 * given back; if this call fails, it is never called.
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
 * Gives up one reference. NULL does nothing. Settings, engines and the memory that came from it hold references of
 * their own.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_allocator_release(struct weir_allocator *allocator);

/**
 * Where the engine's memory comes from. NULL: the system, or the device (the default). On an engine of another kind
 * than CPU the allocator gives memory of the engine's device, such as a caching allocator of the framework's does.
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
 * The most bytes that the engine may reserve: all of its regions together, whether in use or not. A request beyond it
 * makes the engine give back regions that are free, and fails with RESOURCE_EXHAUSTED if that is not enough.
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
 * How the engine keeps its memory: one of enum weir_memory_mode_value. A mode that was set counts before
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
 * The mode that was set, or WEIR_MEMORY_MODE_POOLED. In the attributes of an engine: the mode that it is in.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_memory_mode(const struct weir_engine_attr *attr,
                                             weir_memory_mode *out_mode);

/**
 * Fills `out_info` with figures of the engine's memory at this moment. It takes no longer when there are many blocks.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set. Errors:
 * INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_get_memory_info(const struct weir_engine *engine,
                                        struct weir_memory_info *out_info);

/**
 * Makes the peaks what is in use and reserved now.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_reset_memory_peak(struct weir_engine *engine);

/**
 * Gives back regions that are free as a whole, the largest first, until at most `bytes_to_keep` bytes are reserved or
 * no region is free; the same for the host's memory that a device's engine has for copies. Nothing that is in use
 * moves. Releasing the engine and all that is on it gives back everything.
 *
 * Thread safety: any thread. Blocking: as long as the system or the allocator takes to take the regions. Ownership:
 * none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_trim(struct weir_engine *engine, uint64_t bytes_to_keep);

/**
 * Writes what the engine's memory holds, as JSON: the figures, the uses of blocks with their shares, and each region
 * with its blocks. A block is "used" for something, "kept" for the next request of its size, or "free". Of a device's
 * engine also "host_memory", the same of the host's memory for copies, and "registered", what weir_buffer_pin has
 * pinned. `buffer` and `capacity` are as in weir_last_error_copy; what changes between two calls may make the text
 * longer.
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
 * Makes settings for streams on engines of one kind, all default.
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
 * The kind of engine that these settings are for.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_attr_get_kind(const struct weir_stream_attr *attr,
                                      weir_engine_kind *out_kind);

/**
 * The pool on which the stream's work runs. NULL (the default) = the engine's pool, else the calling thread. Of a
 * stream whose work a device does, the functions of the host's (weir_enqueue_task) run on it.
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
 * What weir_stream_attr_set_asynchronous set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_attr_get_asynchronous(const struct weir_stream_attr *attr,
                                              int32_t *out_asynchronous);

/**
 * How long a thread that waits for the stream looks around before it sleeps, in nanoseconds; 0 = not at all.
 * Default 20 us, at most one second.
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
 * Priority, -100 to 100; 0 = normal (the default). It travels to the pool as weir_task_hint.priority.
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
 * Copies the name that was set, "" if none, as weir_last_error_copy copies its text.
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
 * Makes a stream on an engine. NULL attr = all default. `flags` is OR of weir_stream_flags and adds to the
 * attribute. An asynchronous stream needs something to run it: a pool that takes single tasks; on any other pool,
 * or on none, it starts one thread of its own (a lane), which weir_runtime_get_info counts. On a pool that runs
 * closures at once, or refuses them, the work runs in the enqueuing call after all.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_stream; attr is copied.
 * Errors: INVALID_ARGUMENT (also an attr of another kind, unknown flags); RESOURCE_EXHAUSTED if a lane cannot be
 * started.
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
 * Gives up one reference. NULL does nothing. Work that is queued still runs; its errors can then only be seen by
 * weir_engine_synchronize and weir_sync_devices.
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
 * The thread pool that was set for the stream, or NULL if none was (then the engine's counts). There is no setter.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_pool is borrowed and lives as long as the stream.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_get_threadpool(const struct weir_stream *stream,
                                       struct weir_threadpool **out_pool);

/**
 * The settings that the stream was made with.
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
 * failed. `destroy` (may be NULL) is called with arg after fn returned, or when fn is skipped behind a failure; not if
 * this call is refused. (A failure of fn itself is no refusal.) Where a device does the stream's work, fn runs when
 * the device has got there, on the pool of the stream or its engine, or on a thread of the stream's own if there is
 * none that takes single tasks; what is behind fn is given to the device when fn has returned.
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
 * Waits until everything is done that was queued on the stream before this call. Returns the stream's failure the
 * first time it sees it; after that, WEIR_OK, while the stream stays failed (weir_stream_error) and refuses work
 * until weir_stream_clear_error.
 *
 * Thread safety: any thread. Blocking: until done, or timeout_ns have passed (0 = look once, WEIR_TIMEOUT_INFINITE =
 * no limit). It does what has not begun of the work here, and may so end late by one item of it; with a time-out it
 * leaves that to the stream's pool for 50 ms first (docs/waiting.md). Ownership: none. Errors: INVALID_ARGUMENT;
 * DEADLINE_EXCEEDED; FAILED_PRECONDITION if called from the stream's own work, or in a worker of a pool while nobody
 * is at the work; else the stream's failure.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_synchronize(struct weir_stream *stream, uint64_t timeout_ns);

/**
 * Whether everything queued so far is done (1) or not (0). Says nothing of failure.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_query(const struct weir_stream *stream, int32_t *out_done);

/**
 * The stream's failure: its code (WEIR_OK if there is none) and, as weir_last_error_copy copies it, its text.
 * Reading it changes nothing.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if capacity is too small (out_code and out_length are set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_error(const struct weir_stream *stream,
                              weir_status *out_code,
                              char *buffer,
                              size_t capacity,
                              size_t *out_length);

/**
 * Forgets the stream's failure, for device synchronisation too. Work enqueued from now on runs again; what was
 * enqueued before stays skipped.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_clear_error(struct weir_stream *stream);

/**
 * Makes the stream's later work wait until the event, as last recorded before this call, has been reached. An
 * event that was never recorded is no wait. If the event's stream had failed, an asynchronous stream fails with
 * ABORTED and the origin's text; a synchronous one returns them.
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
 * Makes an event, not recorded. `event_flags` is OR of weir_event_flags.
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
 * Puts the event behind everything queued on the stream so far. Recording again moves it; those who wait for the
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
 * Thread safety: any thread. Blocking: until reached, or timeout_ns have passed (0 = look once,
 * WEIR_TIMEOUT_INFINITE = no limit). It works meanwhile, as weir_stream_synchronize does.
 * Ownership: none.
 * Errors: INVALID_ARGUMENT; DEADLINE_EXCEEDED; FAILED_PRECONDITION if waiting here would block a worker that the
 * work needs; else the failure of the stream that the event was recorded on, each time.
 */
WEIR_API WEIR_NODISCARD weir_status weir_event_synchronize(struct weir_event *event, uint64_t timeout_ns);

/**
 * Has the host told when the event, as last recorded before this call, has been reached, as weir_run_notify does for
 * a run. The status is the failure of the stream that it was recorded on, up to there. If it was never recorded, or
 * is reached, the host is told before the call returns. Recording again changes nothing for notices of before, and
 * releasing the event neither.
 *
 * Thread safety: any thread. Blocking: never; the function and release, if the event is reached. Ownership: `notice`
 * is read during the call; its ctx is released with `release`.
 * Errors: INVALID_ARGUMENT (NULL, neither function nor eventfd, an event_fd that is none or that blocks);
 * RESOURCE_EXHAUSTED (also if the lane for notices of an engine cannot be started).
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
 * Waits until everything is done that was queued before this call, on every stream of every engine, and for nothing
 * later: it returns although other threads keep submitting. Call it before you read the clock. Returns the first late
 * error of each engine that this call, in any of its forms, has not returned yet: the first one's code, and the texts
 * of all. It takes nothing away from what streams, engines and domains report themselves. What devices do for runs of
 * programs is covered, too.
 *
 * Inside of a kernel, a task, a region's function, or any callback that weir has called, this is refused at once, as
 * are all waits for everything: what calls is part of everything. weir_stream_synchronize and weir_event_synchronize
 * may be possible there.
 *
 * Thread safety: any thread. Blocking: until done; in a thread of a pool that the work needs it helps or refuses.
 * Ownership: none. Errors: FAILED_PRECONDITION if weir has called the caller, or if waiting here would block a worker
 * that the work needs; else a late error.
 */
WEIR_API WEIR_NODISCARD weir_status weir_sync_devices(void);

/**
 * As weir_sync_devices, for at most timeout_ns (0 = look once).
 *
 * Thread safety: any thread. Blocking: until done or timeout_ns have passed. Ownership: none.
 * Errors: DEADLINE_EXCEEDED; those of weir_sync_devices.
 */
WEIR_API WEIR_NODISCARD weir_status weir_sync_devices_timeout(uint64_t timeout_ns);

/**
 * As weir_sync_devices_timeout, with an answer for each engine, in the order in which they were made. What each engine
 * must have done is noted before the first is waited for, so they all go on at once; an engine that is late does not
 * hide how the others ended. Set struct_size of the first entry: it is the distance between entries. out_count
 * receives the number of engines.
 *
 * Thread safety: any thread. Blocking: until done or timeout_ns (WEIR_TIMEOUT_INFINITE, 0 = look once) have passed.
 * Ownership: the caller's array. Errors: the code of the first engine that has not WEIR_OK (results are filled then,
 * too); FAILED_PRECONDITION as of weir_sync_devices; OUT_OF_RANGE if capacity is too small (out_count is set, nothing
 * was waited for); INVALID_ARGUMENT (NULL, struct_size).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_sync_devices_status(uint64_t timeout_ns,
                                     struct weir_engine_sync *results,
                                     size_t capacity,
                                     size_t *out_count);

/**
 * Begins a scope: what fails late from here on, on any asynchronous stream, is told by weir_async_scope_end. Scopes
 * may lie inside one another, and in several threads; a failure is told by the first that ends. *out_scope is a
 * number, and nothing has to be released. weir_async_scope_begin_in is for the streams of a domain alone.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL).
 */
WEIR_API WEIR_NODISCARD weir_status weir_async_scope_begin(uint64_t *out_scope);

/**
 * Ends a scope: waits for all that was queued on any stream before this call, and returns the first failure since the
 * scope began that neither another scope nor weir_sync_devices has returned, with the texts of the others.
 * weir_sync_devices does not return these again; failures from before the scope are left for it, and domains, engines
 * and streams report theirs all the same. In a scope of weir_async_scope_begin_in all this is said of the domain's
 * streams and weir_sync_domain. Of streams that failed and were released inside of the scope the latest 64 are told.
 * If the time is over the scope goes on, and may be ended again.
 *
 * Thread safety: any thread. Blocking: until done or timeout_ns have passed. Ownership: none.
 * Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION as of weir_sync_devices; else a late error.
 */
WEIR_API WEIR_NODISCARD weir_status weir_async_scope_end(uint64_t scope, uint64_t timeout_ns);

/**
 * Measures `fn`, which queues work on `stream`: calls it `repetitions` times, each time from a moment when the stream
 * has nothing to do to one when it has done everything again, and stores these times in nanoseconds. `stream` NULL =
 * all streams of all engines. There is no time without the wait: if something was queued meanwhile on another stream
 * of the same domain and that is not done, the call fails. Take the median, and give the first ones to caches and
 * clocks.
 *
 * Thread safety: any thread; other work on the stream counts. Blocking: until all is done. Ownership: the caller's
 * array of `repetitions` numbers. Errors: INVALID_ARGUMENT (NULL, no repetitions); FAILED_PRECONDITION (another
 * stream, or as of weir_sync_devices); what `fn` returned; a late error of the stream.
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
 * Makes a domain. `name` is for texts: 1 to 24 letters, digits, '.', '_' and '-'. Two users need not know of each
 * other: if another domain alive has the name, this one's is followed by a number, as in "torch#2". Engines are put
 * into a domain by weir_engine_attr_set_domain.
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
 * Copies the domain's name, which no other domain alive has, as weir_last_error_copy copies its text.
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
 * The domain that the engine is made in. NULL: the default domain, that of all who ask for none.
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
 * The engine's name in texts, in place of its device's: as of weir_domain_create, or "" for none (the default). If
 * another engine of the domain has it, this one's is followed by a number, as in "encoder#2". Engines that are given
 * none share their device's name, "cpu:0".
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied. Errors:
 * INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_name(struct weir_engine_attr *attr, const char *name);

/**
 * Copies the name that was set, "" if none, as weir_last_error_copy copies its text.
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
 * Copies the engine's name as all texts say it, as weir_last_error_copy copies its text: the one that it was given,
 * else its device's, behind the domain's: "cpu:0", "encoder", "torch/cpu:0", "torch/encoder#2". Engines of two domains
 * never have the same name; in one domain engines that were given none may.
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
 * Waits until everything is done that was queued before this call on the streams of the domain's engines, and for
 * nothing later, nor for what others queue elsewhere. NULL: the default domain. Returns the first late error of each
 * of these engines that this call and weir_sync_domain_status have not returned yet: the first one's code, and the
 * texts of all. It takes nothing away from what streams, engines and weir_sync_devices report, nor they from it.
 *
 * What runs of programs have given to these engines up to now is covered, whoever runs them; the rest of such a run is
 * if it was started on a stream of the domain. Work that waits for another domain's (an event, a run over engines of
 * both) is waited for with that.
 *
 * Inside of what weir has called this is refused, as of weir_sync_devices.
 *
 * Thread safety: any thread. Blocking: until done or timeout_ns (WEIR_TIMEOUT_INFINITE, 0 = look once) have passed; in
 * a thread of a pool that the work needs it helps or refuses. Ownership: none.
 * Errors: INVALID_ARGUMENT; DEADLINE_EXCEEDED; FAILED_PRECONDITION as of weir_sync_devices; else a late error.
 */
WEIR_API WEIR_NODISCARD weir_status weir_sync_domain(const struct weir_domain *domain, uint64_t timeout_ns);

/**
 * As weir_sync_domain, with an answer for each engine of the domain, as of weir_sync_devices_status.
 *
 * Thread safety: any thread. Blocking: as of weir_sync_domain. Ownership: the caller's array.
 * Errors: the code of the first engine that has not WEIR_OK (results are filled then, too); FAILED_PRECONDITION as of
 * weir_sync_devices; OUT_OF_RANGE if capacity is too small (out_count is set, nothing was waited for);
 * INVALID_ARGUMENT (NULL, struct_size).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_sync_domain_status(const struct weir_domain *domain,
                                    uint64_t timeout_ns,
                                    struct weir_engine_sync *results,
                                    size_t capacity,
                                    size_t *out_count);

/**
 * Begins a scope, as weir_async_scope_begin, of what fails late on streams of the domain's engines. NULL: the default
 * domain. weir_async_scope_end waits for these streams alone, and what it tells weir_sync_domain does not tell again.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_async_scope_begin_in(const struct weir_domain *domain, uint64_t *out_scope);


/* ---- Buffer ------------------------------------------------------------------------------------------------------
 * A buffer is memory without a shape: of the engine's, or of yours, which is given back to you by a callback.
 * Tensors lie in it where you say.
 */

/**
 * Makes a buffer of `bytes` bytes in the engine's memory, aligned as the engine says. It holds anything. 0 bytes are
 * legal.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_buffer.
 * Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_buffer_create(struct weir_engine *engine,
                               size_t bytes,
                               struct weir_buffer **out_buffer);

/**
 * Makes a buffer of the caller's memory, which the engine's kernels can reach. `release` (may be NULL) is called with
 * `release_ctx` exactly once, when nothing uses the memory any more: no reference to the buffer, no tensor on it, no
 * queued work with such a tensor. It is called in the thread that lets go of it last: one that releases a handle, or
 * one that works for a stream or a run. It is not called if this call fails.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_buffer; the memory must
 * live until release is called, or, without release, until nothing uses it any more. Errors: INVALID_ARGUMENT (NULL
 * data unless bytes is 0); OUT_OF_RANGE (no memory at this address is that large).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_buffer_import(struct weir_engine *engine,
                               void *data,
                               size_t bytes,
                               weir_destroy_fn release,
                               void *release_ctx,
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
 * The engine whose memory the buffer is in, or that it was imported for.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_engine is borrowed and lives as long as the buffer.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_buffer_get_engine(const struct weir_buffer *buffer,
                                   struct weir_engine **out_engine);

/**
 * Makes a tensor of the bytes of a buffer from `offset` on, as they are. Any number of tensors may lie on a buffer,
 * also over one another; a call of a kernel still refuses an output that shares memory with its other tensors.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_tensor; desc is copied,
 * and the tensor keeps the buffer. Errors: INVALID_ARGUMENT (dtype, rank, negative dimension, an address that is not
 * aligned to the element size); OUT_OF_RANGE if the tensor reaches beyond the buffer's end.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_create_on_buffer(struct weir_buffer *buffer,
                                         const struct weir_tensor_desc *desc,
                                         size_t offset,
                                         struct weir_tensor **out_tensor);


/* ---- Tensor ------------------------------------------------------------------------------------------------------
 * A tensor is a dense, row-major array in an engine's memory, or over memory of yours.
 */

/**
 * The name of an element type, "f32"; "?" for a number that is none.
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
 * Makes a tensor in the engine's memory: of zeros on a CPU engine, of any contents on others (weir_enqueue_fill).
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_tensor; desc is copied.
 * Errors: INVALID_ARGUMENT (unknown dtype, rank, negative dimension); OUT_OF_RANGE if the size overflows;
 * RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_create(struct weir_engine *engine,
                               const struct weir_tensor_desc *desc,
                               struct weir_tensor **out_tensor);

/**
 * Makes a tensor over memory of the caller's, which the engine's device can use: `data` holds the elements, dense and
 * row-major, aligned to the element size. `release` (may be NULL) is called with `release_ctx` exactly once, when
 * nothing uses the memory any more; not if this call fails.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_tensor; the memory
 * must live until release is called, or, without release, until the tensor and all work on it are gone.
 * Errors: INVALID_ARGUMENT (NULL data unless the tensor is empty, alignment, dtype, rank, negative dimension);
 * OUT_OF_RANGE.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_create_from(struct weir_engine *engine,
                                    const struct weir_tensor_desc *desc,
                                    void *data,
                                    weir_destroy_fn release,
                                    void *release_ctx,
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
 * Makes a tensor of zeros in memory of the host's that copies by `device` go straight from and to: they go on by
 * themselves, while copies of other memory may be staged, or hold up the thread that asks for them. `engine` is a CPU
 * engine: to it, and to programs, this is a tensor like any other. `device` is any engine; if its device pins no
 * memory (`pinning` of weir_memory_info is 0), or is the host, the tensor is in ordinary memory, so the same program
 * serves all. The memory is counted in weir_memory_info of `device`, under its limit, and goes back to it.
 *
 * Thread safety: any thread. Blocking: as long as the device takes to pin memory, when a region more is needed.
 * Ownership: the caller owns one reference to *out_tensor, which may outlive both engines; desc is copied. Errors:
 * INVALID_ARGUMENT (NULL, an engine that is no CPU engine, unknown dtype, rank, negative dimension); OUT_OF_RANGE if
 * the size overflows; RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_create_pinned(struct weir_engine *engine,
                                      const struct weir_tensor_desc *desc,
                                      struct weir_engine *device,
                                      struct weir_tensor **out_tensor);

/**
 * As weir_tensor_create_pinned, without a shape: `bytes` bytes that hold anything. 0 bytes are legal.
 *
 * Thread safety: any thread. Blocking: as weir_tensor_create_pinned. Ownership: the caller owns one reference to
 * *out_buffer. Errors: INVALID_ARGUMENT (NULL, an engine that is no CPU engine); RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_buffer_create_pinned(struct weir_engine *engine,
                                      size_t bytes,
                                      struct weir_engine *device,
                                      struct weir_buffer **out_buffer);

/**
 * Pins memory that is there, that of weir_buffer_import above all, for copies by `device`, until the buffer ends:
 * before its release function is called. It takes its time, so pin what is used often. A buffer may be pinned for
 * several engines, one after the other.
 *
 * Thread safety: any thread. Blocking: as long as the device takes. Ownership: none. Errors: INVALID_ARGUMENT (NULL, a
 * buffer of an engine that is no CPU engine, a part of it is pinned); ALREADY_EXISTS (all of it is); UNIMPLEMENTED
 * (the engine's device does not do this: `pinning` of weir_memory_info lacks WEIR_PINNING_REGISTERS);
 * RESOURCE_EXHAUSTED.
 */
WEIR_API WEIR_NODISCARD weir_status weir_buffer_pin(struct weir_buffer *buffer, struct weir_engine *device);

/**
 * Stores 1 if copies by `device` go straight from and to the buffer's memory, else 0. It looks through the device's
 * pinned memory: ask once, not for each copy.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_buffer_is_pinned(const struct weir_buffer *buffer,
                                  const struct weir_engine *device,
                                  int32_t *out_pinned);

/**
 * The same of a tensor's memory.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_is_pinned(const struct weir_tensor *tensor,
                                  const struct weir_engine *device,
                                  int32_t *out_pinned);

/**
 * The most bytes of the host's memory that the engine may reserve for copies: regions of pinned memory, whether in use
 * or not. What weir_buffer_pin pins does not count. A request beyond it fails with RESOURCE_EXHAUSTED, as with
 * weir_engine_attr_set_memory_limit. UINT64_MAX: no limit (the default).
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
 * Copies the elements of one tensor to another of the same type and shape. The two may be of two engines: then the
 * stream is of one of them, and of a device if one of them is. Between devices that do not reach one another's memory,
 * those of two kinds above all, the copy goes through the host's: it then begins when the stream has got there, on a
 * stream that is made for it, and the stream goes on when it is over. Tensors of a CPU engine that a device copies
 * from or to must stay, and stay as they are, until the copy is done.
 *
 * Thread safety: any thread. Blocking: until done on a synchronous stream, never on others. Ownership: the work holds
 * references to both tensors until it is done. Errors: INVALID_ARGUMENT (also another type or shape, memory in common,
 * a dynamic tensor, engines that the stream cannot reach); FAILED_PRECONDITION if the stream has failed, or if a
 * synchronous stream is used from inside its own work; what the device says, at once or late.
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
 * inside its own work; what the device says, at once or late.
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
 * Makes settings for kernels, all default.
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
 * A name for error texts and dumps, UTF-8. Without one a kernel is called after its operation, "matmul".
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied. Errors:
 * INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_attr_set_name(struct weir_kernel_attr *attr, const char *name);

/**
 * Copies the name that was set, "" if none, as weir_last_error_copy copies its text.
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
 * Makes a kernel from a function of the host's.
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
 * Makes a matrix product, see weir_matmul_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no
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
 * Makes a sum of two tensors, see weir_add_desc. desc may be NULL.
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
 * Makes a rectifier, see weir_relu_desc. desc may be NULL.
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
 * Makes a softmax, see weir_softmax_desc. NULL desc = the last axis.
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
 * Makes an argmax, see weir_argmax_desc. NULL desc = the last axis.
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
 * Copies the kernel's name, as weir_last_error_copy copies its text.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if capacity is too small (out_length is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_get_name(const struct weir_kernel *kernel,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *out_length);

/**
 * How many inputs and outputs the kernel has.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_get_arity(const struct weir_kernel *kernel,
                                  size_t *out_num_inputs,
                                  size_t *out_num_outputs);

/**
 * Computes what the kernel's outputs look like for inputs of these types and shapes.
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
 * A kernel with compute_async stays in front of the stream until its call is completed: what is behind it begins then,
 * a wait for the stream waits for it, and its failure is the stream's. Whoever completes it goes on; a stream that is
 * released meanwhile ends when its work has.
 *
 * Thread safety: any thread. Blocking: until the kernel is done on a synchronous stream, never on an asynchronous one.
 * Ownership: an asynchronous stream, or a kernel with compute_async, takes references to kernel and tensors; else they
 * are the caller's until the call returns. The arrays are copied. Errors: INVALID_ARGUMENT (NULL, count, dtype, shape,
 * engine, overlap; the text names the argument); OUT_OF_RANGE (more than WEIR_MAX_ARGS); FAILED_PRECONDITION if the
 * stream has failed, or for a kernel with compute_async on a synchronous stream in a worker of a pool;
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
 * Makes a kernel that only the engine's device knows, see weir_named_kernel_desc: one of a plug-in's own. attr may be
 * NULL; without a name in it the kernel is called after the operation.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and attr
 * are copied; desc->user passes to the kernel if desc->destroy is given. Errors: INVALID_ARGUMENT (NULL, struct_size,
 * bad signature, bad UTF-8); OUT_OF_RANGE (num_inputs, num_outputs); UNIMPLEMENTED if the device has no such kernel,
 * or the engine is a CPU engine; else what the device says.
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
 * What is known of a CUDA engine's device.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set by the caller. Errors:
 * INVALID_ARGUMENT (NULL, struct_size); UNIMPLEMENTED if the engine is of another kind, or the build is without CUDA;
 * what the driver says.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_cuda_get_device_info(const struct weir_engine *engine,
                                      struct weir_cuda_device_info *out_info);

/**
 * The CUcontext that an engine is to work in; NULL (the default) = the device's primary context, which weir retains
 * and whose flags it leaves alone. It must be of the device of the engine's index, and no other engine may be on that
 * device with another context.
 *
 * Thread safety: one thread at a time per object. Blocking: never.
 * Ownership: the context stays the caller's, who keeps it until the engine and all that is on it are gone.
 * Errors: INVALID_ARGUMENT; UNIMPLEMENTED if the attribute's kind is not CUDA, or the build is without CUDA.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_cuda_context(struct weir_engine_attr *attr, void *context);

/**
 * Makes a stream of weir's on a CUstream of the caller's. NULL or (CUstream)1 = the legacy default stream, (CUstream)2
 * = the default stream of the thread that submits. What the caller puts there besides runs in the order of the calls.
 * Work that is enqueued while the caller captures the CUstream becomes part of the caller's graph, and the graph keeps
 * all that this work uses. Work that cannot be captured is refused (docs/cuda.md). attr may be NULL; its priority does
 * not count.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_stream; cuda_stream
 * stays the caller's, who keeps it until what was submitted is done and the last reference gone, and if that was let
 * go of during a capture, until the graph is gone. Errors:
 * INVALID_ARGUMENT (also a stream of another context, an attr of another kind); UNIMPLEMENTED if the engine is of
 * another kind, or the build is without CUDA; what the driver says.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_wrap_cuda(struct weir_engine *engine,
                                  void *cuda_stream,
                                  const struct weir_stream_attr *attr,
                                  struct weir_stream **out_stream);

/**
 * What is submitted from now on waits for a CUevent of the caller's, as recorded last when this call is issued.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the event stays the caller's, who keeps it until this call
 * was issued: when it returns, unless something in front of it waits for the host. Errors: INVALID_ARGUMENT;
 * UNIMPLEMENTED if the stream's engine is of another kind, or the build is without CUDA; what is wrong with the event
 * is the stream's error.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_wait_cuda_event(struct weir_stream *stream, void *cuda_event);

/**
 * Records a CUevent of the caller's behind all that was submitted so far.
 *
 * Thread safety: any thread. Blocking: never. Ownership: as weir_stream_wait_cuda_event.
 * Errors: as weir_stream_wait_cuda_event.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_record_cuda_event(struct weir_stream *stream, void *cuda_event);

/**
 * Makes a kernel from source of the caller's: CUDA C++, PTX or a binary. It is loaded, and compiled if need be, in
 * this call; a launch fills in addresses and counts and nothing else. What NVRTC compiles is kept on disk, in the
 * folder that the environment variable WEIR_CUDA_CACHE names (empty = nowhere), else in weir/cuda where the user's
 * caches are; it is read only if nobody but this user can have written it. attr may be NULL; without a name in it the
 * kernel is called after its entry.
 *
 * Thread safety: any thread. Blocking: while it is compiled and loaded. Ownership: the caller owns one reference to
 * *out_kernel; desc, what it points to and attr are copied; desc->user passes to the kernel if desc->destroy is given.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, signature, block, arguments that are not the entry's as far as the
 * driver knows them; a source with mistakes: the text is what the compiler says); OUT_OF_RANGE; NOT_FOUND if there is
 * no such entry; UNAVAILABLE without NVRTC; UNIMPLEMENTED if the engine is of another kind, the source not for its
 * device, or the build without CUDA; what the driver says.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_cuda(struct weir_engine *engine,
                                    const struct weir_cuda_kernel_desc *desc,
                                    const struct weir_kernel_attr *attr,
                                    struct weir_kernel **out_kernel);

/**
 * Makes a function of each element, see weir_eltwise_desc.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and attr
 * are copied. Errors: INVALID_ARGUMENT (NULL, struct_size, unknown op, a parameter that is NaN or that the function
 * has not, alpha 0 for WEIR_ELTWISE_SOFTPLUS, reserved not 0, WEIR_MAX_ISA).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_eltwise(struct weir_engine *engine,
                                       const struct weir_eltwise_desc *desc,
                                       const struct weir_kernel_attr *attr,
                                       struct weir_kernel **out_kernel);

/**
 * Makes a function of two tensors, see weir_binary_desc.
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
 * Makes a choice between two tensors, see weir_select_desc. desc may be NULL.
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
 * Makes a conversion to another storage type, see weir_convert_desc.
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
 * Makes a quantization, see weir_quantize_desc.
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
 * Makes the way back from a quantization, see weir_dequantize_desc.
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
 * Makes a transposition, see weir_transpose_desc. NULL desc = the dimensions in reverse order.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and
 * attr are copied.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, reserved not 0, a dimension named twice); OUT_OF_RANGE (rank above
 * WEIR_MAX_RANK, a dimension that is none).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_transpose(struct weir_engine *engine,
                                         const struct weir_transpose_desc *desc,
                                         const struct weir_kernel_attr *attr,
                                         struct weir_kernel **out_kernel);

/**
 * Makes a concatenation, see weir_concat_desc.
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
 * Makes a slice, see weir_slice_desc.
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
 * Makes a padding, see weir_pad_desc.
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
 * Makes a reshape, see weir_reshape_desc.
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
 * Makes a gather, see weir_gather_desc. NULL desc = axis -1.
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
 * Makes a reduction, see weir_reduce_desc.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; desc and attr
 * are copied. Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, unknown op, p of a norm other than 1 and 2,
 * eps below 0 or a NaN, p or eps of what is no norm, WEIR_MAX_ISA); OUT_OF_RANGE (num_axes above WEIR_MAX_RANK, an
 * axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_reduce(struct weir_engine *engine,
                                      const struct weir_reduce_desc *desc,
                                      const struct weir_kernel_attr *attr,
                                      struct weir_kernel **out_kernel);

/**
 * Makes a normalisation, see weir_norm_desc.
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
 * Makes a convolution, see weir_conv_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no bias, no
 * padding, strides of 1.
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
 * Makes a pooling, see weir_pooling_desc. Shapes are checked when it is enqueued or compiled.
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
 * Makes a step of an LSTM, see weir_lstm_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no
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
 * Makes a step of a GRU, see weir_gru_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no biases,
 * gates in the order of ONNX, reset before the product.
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
 * transposed. Kernels take the result in the place of the input B; any number of them, on any pools and threads. How
 * it is packed depends on the size, the type and the instruction set alone. The tensor is read before this returns,
 * and not needed any more.
 *
 * Thread safety: any thread; nobody writes the tensor meanwhile. Blocking: never, but it takes the time to copy the
 * tensor. Ownership: the caller owns one reference to *out_weights; kernels hold references of their own.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, another type or rank, a tensor of another engine's
 * device, WEIR_MAX_ISA); FAILED_PRECONDITION (a dynamic tensor); OUT_OF_RANGE; RESOURCE_EXHAUSTED.
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
 * Makes a matrix product of bytes, see weir_matmul_int8_desc. Shapes are checked when it is enqueued or compiled. NULL
 * desc = sums of 32 bits, no zero points.
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
 * Sets how many kernels are kept, 0 to 1048576; 0 = there is no cache. It counts before WEIR_KERNEL_CACHE_CAPACITY
 * from the environment; without either it is 1024. Kernels that are too many are let go of, those first that were used
 * longest ago.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: OUT_OF_RANGE.
 */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_cache_set_capacity(size_t capacity);

/**
 * How many kernels are kept at most.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none.
 * Errors: INVALID_ARGUMENT (NULL, a value of WEIR_KERNEL_CACHE_CAPACITY that means nothing).
 */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_cache_get_capacity(size_t *out_capacity);

/**
 * Fills `out_info` with the cache's capacity, its size and what it has done.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT (NULL, struct_size, a value of WEIR_KERNEL_CACHE_CAPACITY that means nothing).
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
 * How many slots a region of this call can have: pieces that run at once, the calling thread included.
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
 * Whether the run was cancelled or has failed elsewhere (1), so that the result is not wanted any more, or not (0).
 *
 * Thread safety: any thread, during the call. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_is_cancelled(const struct weir_kernel_context *context,
                                             int32_t *out_cancelled);

/**
 * Makes the kernel fail with a code and a text, whatever compute returns afterwards. The first failure counts.
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
 * Says that a call of an asynchronous kernel is done. `status` is WEIR_OK or the code of its failure, `text` (may be
 * NULL) says why it failed; what weir_kernel_context_fail was told before counts more. From here on the context and
 * the tensors are not the call's any more.
 *
 * The handle is no object: a second call for the same handle is refused and does nothing, also when the graph, the
 * program and the kernel are long gone, as long as not 2^32 later calls were made in its place.
 *
 * Thread safety: any thread, once per call. Blocking: never; the nodes behind are run by threads of the pool, or by
 * the one that waits for the run, and here only if the run's pool runs what it is given in the calling thread, or
 * refuses it and the run is on an asynchronous stream. Ownership: done ends here; text is copied. Errors:
 * INVALID_ARGUMENT (NULL, no completion, status is no code, bad UTF-8); FAILED_PRECONDITION if the call was completed
 * before.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_completion_done(struct weir_completion *done,
                                 weir_status status,
                                 const char *text);

/**
 * Runs a program `count` times in a region of this call, and returns when all runs are over: run i reads inputs[i *
 * num_inputs ...] and writes outputs[i * num_outputs ...]. The runs share the pool of the call, and may run at once,
 * so no output may be that of another run too. All tensors are checked before the first run begins. The first failure
 * is returned; runs that go on then end after their running kernels, and the rest is not begun. A cancel or a deadline
 * of the run that this call is in ends these runs too. `count` is free to differ from call to call; 0 does nothing.
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
 * Makes a tensor whose shape is decided by the run that writes it: it is given to runs as an output whose shape is
 * open. At least one dimension of `desc` is WEIR_DIM_DYNAMIC; a run that makes another shape than `desc` allows fails.
 * Until a run has succeeded the open dimensions are 0. Its memory is the engine's and grows; weir_tensor_get_desc,
 * weir_tensor_get_data and weir_tensor_get_size tell what the last run made, and addresses that were asked for before
 * are not valid any more. It can be an input whose shape is open too.
 *
 * Thread safety: any thread; to ask while a run writes it is a race. Blocking: never. Ownership: the caller owns one
 * reference to *out_tensor; desc is copied. Errors: INVALID_ARGUMENT (NULL, unknown dtype, rank, no open dimension).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_create_dynamic(struct weir_engine *engine,
                                       const struct weir_tensor_desc *desc,
                                       struct weir_tensor **out_tensor);

/**
 * The same over `capacity` bytes of the caller's at `data`, aligned to the element size; the address stays. A run that
 * makes more than has room fails with OUT_OF_RANGE and both sizes in its text, and leaves all its dynamic outputs as
 * they were. `release` (may be NULL) is called with `release_ctx` exactly once, when nothing uses the memory any more;
 * not if this call fails.
 *
 * Thread safety: any thread; to ask while a run writes it is a race. Blocking: never. Ownership: the caller owns one
 * reference to *out_tensor; the memory must live until release is called, or, without release, until the tensor and
 * all work on it are gone. Errors: INVALID_ARGUMENT (NULL, alignment, unknown dtype, rank, no open dimension).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_create_dynamic_from(struct weir_engine *engine,
                                            const struct weir_tensor_desc *desc,
                                            void *data,
                                            size_t capacity,
                                            weir_destroy_fn release,
                                            void *release_ctx,
                                            struct weir_tensor **out_tensor);

/**
 * Says the shape of an output that is open (WEIR_KERNEL_DYNAMIC), and gives its memory, aligned to 64, contents
 * undefined: once for each such output, before compute returns. `dims` are the `rank` dimensions, which must agree
 * with what is declared; 0 is a legal dimension. From here on the output's view (weir_kernel_context_get_outputs) has
 * address, size and shape. An output that is not allocated is a failure of the kernel, unless nothing in the graph
 * uses it.
 *
 * The memory belongs to the program and is kept from run to run; it grows when a run needs more than all runs before,
 * with memory of the engine's.
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
 * Gives back the memory that the program keeps for later runs: all values, and the blocks of dynamic ones, which
 * otherwise stay as large as a run needed them. The next run allocates again. Runs that are under way keep what they
 * have.
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
 * stored as k x m, with transpose_b = 1 B as n x k; otherwise they are 0. All matrices are row-major, with lda, ldb
 * and ldc elements from row to row. Any size may be 0, and a matrix without elements may be NULL. With beta = 0 C is
 * not read, with alpha = 0 or k = 0 A and B are not; NaN and infinity, in alpha and beta too, go the way of IEEE 754.
 * C must not overlap A or B.
 *
 * The work is shared on `pool`, or done in the calling thread if pool is NULL. The bits of C depend on the arguments
 * and the instruction set, never on the pool. The second and later calls of a size allocate nothing: the library
 * keeps scratch memory for them, at most about a megabyte for each thread that was in such a call at once.
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
 * C = saturate(round(alpha * (op(A) - ao) * (op(B) - bo) + beta * C + offset)) with unsigned A, signed B and 32-bit C.
 * ao is taken off every element of A, bo off every element of B. Sizes, transposes and strides are those of
 * weir_sgemm. The offset is what `co` holds, according to `offsetc` (weir_gemm_offset_value): 1, n or m numbers. A
 * NULL co is an offset of 0.
 *
 * The sum of products is exact for every k on every processor: nothing saturates or wraps on the way. With alpha and
 * beta 0 or 1 the rest is exact too. Otherwise it is computed in f64 as (alpha * sum + beta * C) + offset, each step
 * rounded to nearest even, and then rounded to the nearest integer, a half to the even one. What is beyond 32 bits
 * becomes INT32_MAX or INT32_MIN. With beta = 0 C is not read, with alpha = 0 or k = 0 A and B are not.
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
 * Makes an empty graph. `name` (may be NULL) appears in error texts and dumps.
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
 * Adds an input: a tensor that each run is given. Runs take inputs in the order in which they were added. Dimensions
 * of `desc` may be WEIR_DIM_DYNAMIC: each run gives a tensor that fits.
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
 * engine that the program is compiled for: nodes of that engine read it where it is. To other engines it is copied.
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
 * Adds a kernel call. Types and shapes are checked by weir_graph_compile. out_outputs receives the num_outputs
 * values; out_node (may be NULL) receives the node, for control edges. Values of nodes added later may not be used
 * here: to close a cycle is an error of compile, and only control edges can. A loop is closed by
 * weir_graph_set_back_edge.
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
 * Adds another program as one node: its inputs and outputs are the program's. It runs on the pool of the run that it
 * is in, and its helpers count among that run's. The failure of a node inside names both: "node 'outer': node 'inner':
 * ...". A cancel or a deadline of the run ends the inner run too, after its running kernels.
 *
 * A program with kernels that complete later or may block is a node that completes later: no thread waits while the
 * inner run does, and what holds for programs with such kernels holds for the graph. Kernels that may block run on the
 * pool that the inner program was compiled with.
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
 * Says whether output `output` of a kernel takes over the memory of an input: `input` is WEIR_FORWARD_AUTO (the
 * default), WEIR_FORWARD_NEVER, or the index of the input whose memory it must be; weir_graph_compile refuses the
 * graph where that cannot be.
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
 * Makes a value an output of the graph: each run writes it into a tensor that it is given. Runs take outputs in
 * the order in which they were added.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied.
 * Errors: INVALID_ARGUMENT (foreign value); ALREADY_EXISTS (name of another output).
 */
WEIR_API WEIR_NODISCARD weir_status weir_graph_add_output(struct weir_graph *graph, const char *name, weir_value value);

/**
 * Copies a drawing of the graph as it is now, in DOT or JSON, as weir_last_error_copy copies its text.
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
 * Adds a choice of two graphs: each run runs then_graph if predicate (one element of bool, u8, s8 or s32) is not 0,
 * else else_graph. Both have as many inputs as `inputs` has values, and get these in their order; both have
 * num_outputs outputs, alike in type and shape, which become the node's. A graph inside sees nothing of the graph
 * around it but its inputs.
 *
 * The node begins when predicate and inputs are there. Each output is there as soon as the branch has computed it; a
 * control edge from the node waits for the whole branch. A branch that is not taken costs nothing.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: both graphs are copied, they may be
 * changed or destroyed afterwards; name is copied. Errors: INVALID_ARGUMENT (NULL, foreign value, number of inputs or
 * outputs); ALREADY_EXISTS (name); OUT_OF_RANGE (more than 32 graphs inside one another). Types and shapes are checked
 * by weir_graph_compile.
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
 * Adds a choice of several graphs: each run runs branches[index] (index: one element of bool, u8, s8 or s32), and the
 * last one if index is less than 0 or too large. Everything else is as with weir_graph_add_cond.
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
 * which stay the same in all iterations. body_graph has num_variables outputs, like the variables in type and shape.
 * The node's outputs are the variables' last values; without an iteration, their first. parallel_iterations is how
 * many iterations may run at once where their data allow it, at least 1; it never changes a result. With more than 1,
 * tasks and kernels without outputs of different iterations may run at the same time and in any order, the program
 * keeps so many copies of the loop's values and one more, and compile may choose a smaller number (weir_program_report
 * says which, and why). A short loop whose number of iterations follows from constants is written out: its nodes are
 * then called "name/iteration/node".
 *
 * The node begins when all variables and invariants are there.
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
 * out_false; the other one is absent. A node with an absent input, or that waits for a node which was skipped, is
 * skipped, and its outputs are absent, until weir_graph_add_merge brings the two sides together. Where both sides can
 * be said as graphs, weir_graph_add_cond costs less. Nodes on other engines than the CPU's may be skipped as any
 * other: where switches and merges are not a cond's, their values come and go by the host. out_node (may be NULL)
 * receives the node.
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
 * Adds a merge: passes on the one of its inputs that is there, and its index (s32[1]; out_index may be NULL). The
 * shape is what the inputs have in common: one may be open (WEIR_DIM_DYNAMIC) where another is not. If all are absent
 * it is skipped; a skipped node that it waits for without data does not matter. Two inputs that are both there are an
 * error of the run (FAILED_PRECONDITION) that names the nodes which made them. out_node (may be NULL) receives the
 * node.
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
 * Adds an enter: brings a value into the frame `frame_name`. This and the next five functions say a loop by its edges,
 * as graphs of TensorFlow's first control flow do; weir_graph_compile makes a loop of each frame, as
 * weir_graph_add_while would, and refuses what is none with the nodes' names (docs/control_flow.md has all rules).
 *
 * What takes values of a frame is in it, up to the exits; enters of values of one frame that have the same frame_name
 * lead into one frame. A frame has one loop cond. Each of its variables has an enter, a loop merge, a switch whose
 * predicate is the loop cond, a next iteration and, if its last value is wanted, an exit. With is_constant (0 or 1) the
 * value is the same in all iterations and goes to any node of the frame. Constants need no enter. parallel_iterations
 * is as for weir_graph_add_while, and the same for all enters of a frame. If the value is absent the whole loop is
 * skipped, and what its exits give is absent. out_node (may be NULL) receives the node; it may wait for nodes outside of
 * the frame.
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
 * Adds the merge of a loop's variable: gives the value of an enter in the first iteration, and later that of the next
 * iteration which weir_graph_set_back_edge says. Each loop merge needs one. A merge that is of no loop is
 * weir_graph_add_merge.
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
 * Says where a loop merge takes its value from after the first iteration: the output of a next iteration, which was
 * added after the merge.
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
 * Adds a loop cond: its loop goes on while predicate (one element of bool, u8, s8 or s32) is not 0. A switch of
 * weir_graph_add_switch that has its output for a predicate is of the loop: out_true is the variable in an iteration that
 * takes place, out_false goes to exits and to nothing else. Other switches, and merges, may be in a loop as anywhere.
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
 * Adds a next iteration: gives the value to the loop merges that have it as their back edge, in the iteration that
 * follows.
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
 * Adds an exit: gives the last value of a loop's variable to the frame around, or to the graph. `value` is out_false of a
 * switch that passes on a loop merge by the loop cond. A control edge from out_node waits for the whole loop.
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
 * Says that runs are given input `input`, by number in the order in which inputs were added, in memory of `engine`:
 * nodes on that engine read the tensor in place, others read a copy, made once for each engine. NULL, the default, is
 * the engine of the program's own, a CPU engine. The engine must be among those of weir_graph_compile, and runs refuse
 * a tensor that is on another one. A program with inputs or outputs on other engines than the CPU's is no node of
 * another graph (weir_graph_add_program).
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
 * Says that runs are given output `output`, by number in the order in which outputs were added, in memory of `engine`.
 * If a node on that engine computes the value, it writes it into the tensor; else it is copied there as soon as it is
 * done. The rest as for weir_graph_set_input_engine.
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
 * Says which engine does a node of a kernel: one of enum weir_placement_value. The compile report
 * (weir_program_report) says which one was chosen for each node that was open, and why; the same graph and the same
 * list of engines give the same choice.
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
 * The same for all nodes of which weir_graph_set_placement says nothing, in graphs inside of others too. Default:
 * WEIR_PLACEMENT_KERNEL.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_placement(struct weir_compile_options *options,
                                               weir_placement placement);

/**
 * What weir_compile_options_set_placement set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_placement(const struct weir_compile_options *options,
                                               weir_placement *out_placement);

/**
 * The engine in whose memory runs are given input `index`.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_engine is borrowed and lives as long as the program.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE (index).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_input_engine(const struct weir_program *program,
                                          size_t index,
                                          struct weir_engine **out_engine);

/**
 * The engine in whose memory runs are given output `index`.
 *
 * Thread safety: any thread. Blocking: never. Ownership: *out_engine is borrowed and lives as long as the program.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE (index).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_output_engine(const struct weir_program *program,
                                           size_t index,
                                           struct weir_engine **out_engine);


/* ---- Program -----------------------------------------------------------------------------------------------------
 * A program is a compiled graph: immutable, shared, and re-entrant.
 */

/**
 * Makes settings for weir_graph_compile, all default.
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
 * What it costs to bring work to another thread of the pool, in nanoseconds. Ready work worth less stays on the thread
 * that made it ready. Default UINT64_MAX: what the pool of each run costs, as far as that is known; then runs that
 * turn out to be faster on the caller alone are made there. It never changes a result.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_hop_ns(struct weir_compile_options *options,
                                            uint64_t hop_ns);

/**
 * What weir_compile_options_set_hop_ns set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_hop_ns(const struct weir_compile_options *options,
                                            uint64_t *out_hop_ns);

/**
 * Whether outputs of the program may be absent (weir_graph_add_switch): 0 (the default) or 1. A run leaves the tensor
 * of an absent output as it is; weir_run_options_set_absent says which ones were.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_allow_absent(struct weir_compile_options *options,
                                                  int32_t allow);

/**
 * What weir_compile_options_set_allow_absent set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_allow_absent(const struct weir_compile_options *options,
                                                  int32_t *out_allow);

/**
 * The pool for kernels that may block (WEIR_KERNEL_MAY_BLOCK): each runs as one task of it, and keeps no other thread
 * meanwhile. A thread that waits for one does it itself if the pool has not begun it for 50 ms, unless the pool has
 * WEIR_THREADPOOL_OWN_THREADS_ONLY. It must be able to take single tasks (schedule, or an ASYNCHRONOUS parallel_for),
 * and has best as many threads as kernels may block at once. If it refuses one, the kernel runs in the caller of a
 * synchronous run that is no worker of a pool; else the node fails with UNAVAILABLE. NULL (the default) = no such
 * pool: then graphs with such kernels are not compiled.
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
 * Compiles a graph for engines: checks it whole, and puts it into the order and the arrays that runs use. Kernels
 * on which no output, no task and no kernel without outputs depends are left out. The graph may be changed and
 * compiled again. options may be NULL.
 *
 * A node runs on the engine of its kernel, unless weir_graph_set_placement or the options leave it open. The first CPU
 * engine among `engines` is the program's own: inputs and outputs are in its memory, unless
 * weir_graph_set_input_engine or weir_graph_set_output_engine say otherwise, and its pool is the one that runs use by
 * default. Values that nodes on different engines share are copied, once for each engine, as soon as they are there
 * and while other work goes on; the program keeps memory and streams on the other engines for each run that goes on at
 * once (weir_engine_attr_set_max_streams). Of a branch or a loop of which the host does a part, values that one engine
 * makes and reads stay in its memory; the others are copied. A loop with parallel_iterations K whose values cross
 * between the host and an engine overlaps its iterations: it has memory on the engine for K + 1 of them, or for fewer
 * where that would be more than an eighth of it. weir_program_report counts copies, streams, events and waits.
 *
 * Thread safety: one thread at a time per graph. Blocking: never. Ownership: the caller owns one reference to
 * *out_program; the program takes references to kernels, constants and engines. Errors: INVALID_ARGUMENT, with the
 * names of the nodes: a cycle, an input with a wrong dtype or shape, a kernel or constant of a device that none of the
 * engines is for, no CPU engine; UNIMPLEMENTED for nodes on other engines than the CPU's with values whose shape only
 * a run knows, and for a kernel that completes later or may block (weir_host_kernel_desc) whose inputs or outputs have
 * such a shape: it is given its arguments, and memory for its outputs, when the graph is compiled; FAILED_PRECONDITION
 * for a kernel that may block, without a pool for such; OUT_OF_RANGE if sizes overflow; RESOURCE_EXHAUSTED.
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
 * How many inputs and outputs a run takes.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_arity(const struct weir_program *program,
                                   size_t *out_num_inputs,
                                   size_t *out_num_outputs);

/**
 * Element type and shape of input `index`.
 *
 * Thread safety: any thread. Blocking: never. Ownership: copied. Errors: INVALID_ARGUMENT; OUT_OF_RANGE (index).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_input_desc(const struct weir_program *program,
                                        size_t index,
                                        struct weir_tensor_desc *out_desc);

/**
 * Element type and shape of output `index`.
 *
 * Thread safety: any thread. Blocking: never. Ownership: copied. Errors: INVALID_ARGUMENT; OUT_OF_RANGE (index).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_output_desc(const struct weir_program *program,
                                         size_t index,
                                         struct weir_tensor_desc *out_desc);

/**
 * Copies a drawing of the compiled program, in DOT or JSON, as weir_last_error_copy copies its text.
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
 * Copies a report of what compile made of the graph, as text or JSON, as weir_last_error_copy copies its text: nodes
 * and edges that were left out or added, memory that values share, sizes, what the costs that are known by now mean
 * for other threads, the parts that are kept for partial runs, and, if it has them, the figures of the nodes that were
 * run. The members of the JSON stay what they are; more may be added.
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
 * run reads the clock twice for each node; without, it costs nothing.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_statistics(struct weir_compile_options *options,
                                                int32_t statistics);

/**
 * What weir_compile_options_set_statistics set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_statistics(const struct weir_compile_options *options,
                                                int32_t *out_statistics);

/**
 * How many nodes a run goes through: those that compile has kept, with those inside of others, and with copies of what
 * is inside of loops whose iterations overlap; what is known of a node is told of its first copy.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_num_nodes(const struct weir_program *program,
                                       size_t *out_num_nodes);

/**
 * Fills *out_stats with what node `index` has taken. Runs that go on meanwhile may be counted in part.
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
 * Fills *out_counters with how many runs have begun, ended, failed, and go on.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set. Errors:
 * INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_counters(const struct weir_program *program,
                                      struct weir_program_counters *out_counters);

/**
 * Copies what the program has learned of its nodes' costs and its loops' iterations, as text, as weir_last_error_copy
 * copies its text. Runs change it: ask for the length and copy while no run goes on, or ask again when it was too
 * short.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if capacity is too small (out_length is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_save_profile(const struct weir_program *program,
                                      char *buffer,
                                      size_t capacity,
                                      size_t *out_length);

/**
 * Gives the program the costs and iterations of a profile, so that its first run is scheduled as well as later ones;
 * *out_num_known is the number of nodes that the profile knew. Nodes are found by their names; what only one side
 * knows is left alone. No result changes.
 *
 * Thread safety: any thread. Blocking: never. Ownership: profile is copied. Errors: INVALID_ARGUMENT (NULL, or no
 * profile; the text names the line), and then nothing has changed.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_load_profile(struct weir_program *program,
                                      const char *profile,
                                      size_t *out_num_known);

/**
 * Whether work on devices is recorded: 1 (the default), 0, or 2. Where four nodes or more of one device have no other
 * node between them, the second run of the program has the device record them, with the copies of inputs that only
 * they read, and later runs submit the recording by one call. With 1, where such nodes may be spread over several
 * streams (weir_engine_attr_set_max_streams), the program times some of its first runs both ways, and keeps to the
 * faster one; with 2 it does not try streams. Results are the same. With 0, or where a device does not record, every
 * run issues each node by itself. The program's report (weir_program_report) says how many there are, or why not, and
 * which way it is.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_segments(struct weir_compile_options *options,
                                              int32_t segments);

/**
 * What weir_compile_options_set_segments set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_segments(const struct weir_compile_options *options,
                                              int32_t *out_segments);

/**
 * Whether devices decide in branches and loops: 1 (the default), or 0. A branch or a loop (weir_graph_add_cond,
 * weir_graph_add_case, weir_graph_add_while) with nothing inside but kernels of one engine that works on its own is
 * work of that engine: its values stay there. With 1, and where the device records and knows branches and loops, it
 * decides itself, and the host is not asked; then a cancel or the time limit of a run does not end a loop before it
 * ends by itself. With 0, or where the device does not decide, the host has the predicate alone brought back and
 * issues what follows, no thread is held, and a run ends between two iterations if it is cancelled or late. Results
 * are the same. The program's report (weir_program_report) says who decides in which node, and why.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_device_control(struct weir_compile_options *options,
                                                    int32_t device_control);

/**
 * What weir_compile_options_set_device_control set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_device_control(const struct weir_compile_options *options,
                                                    int32_t *out_device_control);

/**
 * Whether devices are offered regions: 1 (the default), or 0. With 1, and where a plug-in's device takes regions
 * (WEIR_DEVICE_REGIONS), nodes on it that have no other node between them are offered to it together, also inside of
 * branches and loops: it may make one kernel of them, or of some, which is one node of the program then and goes by
 * all of their names. With 0 each node is a call of its own. Results are the same where the device computes the same.
 * The program's report (weir_program_report) says how many were offered and taken, and why one was declined.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_regions(struct weir_compile_options *options,
                                             int32_t regions);

/**
 * What weir_compile_options_set_regions set.
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
 * Makes settings for a run, all default. They may serve any number of runs.
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
 * The pool for this run; it comes before the stream's and the engine's. NULL (the default) = theirs.
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
 * Runs one program now: everything that the inputs determine is written into the outputs, or into those of them that
 * the options ask for (weir_run_options_set_outputs). The run is one piece of the stream's work; a NULL stream means:
 * in this thread, with helpers from the pool (run options, else the program's first engine). The first node that fails
 * ends the run, and the error names it. The second and later runs allocate nothing, while no more than 32 runs of the
 * program are queued on streams and no more than so many as before run at once; with open shapes, while no value is
 * larger than before.
 *
 * On a stream of a device that the program was compiled for, the run begins when the device has done what was enqueued
 * before, and what is enqueued later begins when the run is over. If that device does all of the program, the run is
 * given to the stream in this call, as a kernel is (docs/placement.md); otherwise the host's part runs on the stream's
 * pool, as functions do (weir_enqueue_task), with helpers from it or from the program's first engine. On another
 * stream, or without one, tensors on devices must be ready when the run begins.
 *
 * An output whose shape is open (WEIR_DIM_DYNAMIC) goes to a dynamic tensor (weir_tensor_create_dynamic), or to a
 * tensor of just the shape that the run makes. It is written when the run has succeeded, and not else.
 *
 * Thread safety: any thread; any number of runs of one program at once, on outputs of their own. Blocking: until done
 * with a NULL or synchronous stream; never on an asynchronous one. Ownership: the tensors stay alive until the run is
 * done; the arrays are copied; options may be NULL. Errors: INVALID_ARGUMENT (NULL, count, dtype, shape, engine,
 * overlap of an output with an input or another output; the text names input or output; options with a notice and no
 * asynchronous stream); FAILED_PRECONDITION if the stream has failed, or the host is capturing it and
 * the run cannot be part of that (docs/cuda.md); RESOURCE_EXHAUSTED;
 * when it blocks, also the failure of a node, and FAILED_PRECONDITION or OUT_OF_RANGE if a tensor has no room for an
 * output of open shape.
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
 * As weir_program_run on an asynchronous stream, with a handle to wait for this run alone, to cancel it, and to
 * read its error. The failure of a run that was started this way belongs to the handle and not to the stream: the
 * stream goes on.
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
 * the program's first engine); runs may go on at once, so no output may be that of another run too. All tensors are
 * checked before the first run begins. Of a program with kernels that complete later the calling thread begins several
 * runs, as many as there are threads, and goes on with whichever something comes back to; helpers take part in each.
 * The first failure is returned; runs that go on then end after their running kernels, and the rest is not begun.
 * Options are those of each run, a deadline counts from the call. Inside of kernels weir_kernel_context_run_program
 * does the same with the kernel's pool.
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
 * Gives up one reference. NULL does nothing. The run itself goes on.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_run_release(struct weir_run *run);

/**
 * Waits until the run is done, and returns how it ended.
 *
 * Thread safety: any thread. Blocking: until done, or timeout_ns have passed (0 = look once, WEIR_TIMEOUT_INFINITE
 * = no limit). It works in the run meanwhile, as weir_stream_synchronize does. Ownership: none.
 * Errors: INVALID_ARGUMENT; DEADLINE_EXCEEDED (the run goes on); FAILED_PRECONDITION if waiting here would block a
 * worker that the run needs; else how the run ended: the first node's failure, CANCELLED, or ABORTED if the stream
 * had failed before it.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_wait(struct weir_run *run, uint64_t timeout_ns);

/**
 * Whether the run is done (1) or not (0). Says nothing of failure.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_query(const struct weir_run *run, int32_t *out_done);

/**
 * Has the host told when the run is done: by a function that is called once, or an eventfd, or both (weir_notice says
 * when and on which thread). A run that is done is told of before the call returns. Any number of notices may wait
 * for one run, and are told in their order. They are the run's and not the handle's: they come also if all handles
 * were released. To miss no run and save the call, see weir_run_options_set_notice.
 *
 * Thread safety: any thread. Blocking: never; the function and release, if the run is done. Ownership: `notice` is
 * read during the call; its ctx is released with `release`.
 * Errors: INVALID_ARGUMENT (NULL, neither function nor eventfd, an event_fd that is none or that blocks);
 * RESOURCE_EXHAUSTED.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_notify(struct weir_run *run, const struct weir_notice *notice);

/**
 * Asks the run to end: kernels that run now come to their end, nothing else is begun, and the outputs are
 * undefined. A run that is done is left alone. The program can be run again at once.
 *
 * Thread safety: any thread. Blocking: never (weir_run_wait waits for the end). Ownership: none. Errors:
 * INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_cancel(struct weir_run *run);

/**
 * How the run ended: its code (WEIR_OK while it is not done, and if it succeeded) and, as weir_last_error_copy
 * copies it, the text, which names the node. Reading it changes nothing.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if capacity is too small (out_code and out_length are set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_error(const struct weir_run *run,
                           weir_status *out_code,
                           char *buffer,
                           size_t capacity,
                           size_t *out_length);

/**
 * How long the run may take, in nanoseconds from the call of weir_program_run or weir_program_start, time in the
 * stream's queue included; 0 (the default) = no limit. When it is over nothing more is begun: the run ends after the
 * kernels that run then, with DEADLINE_EXCEEDED, and to them weir_kernel_context_is_cancelled says 1. A run that had
 * nothing left to begin succeeds. There is no timer: with a deadline the clock is read before each node, and without
 * one it costs nothing.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_set_deadline_ns(struct weir_run_options *options,
                                             uint64_t deadline_ns);

/**
 * What weir_run_options_set_deadline_ns set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_get_deadline_ns(const struct weir_run_options *options,
                                             uint64_t *out_deadline_ns);

/**
 * Where to say which outputs were absent: when a run has succeeded, flags[i] is 1 if output i was absent (its tensor
 * is left as it was), else 0. A run that fails leaves the flags alone. count is the number of the program's outputs;
 * NULL and 0 = do not say (the default). Outputs can only be absent if weir_compile_options_set_allow_absent allows
 * it.
 *
 * Thread safety: one thread at a time per object. Blocking: never.
 * Ownership: the flags are the caller's; they stay alive until every run with these options is done, and runs that
 * overlap take options of their own. Errors: INVALID_ARGUMENT (NULL); weir_program_run and weir_program_start say
 * INVALID_ARGUMENT if count is not the number of outputs.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_set_absent(struct weir_run_options *options,
                                        uint8_t *flags,
                                        size_t count);

/**
 * What weir_run_options_set_absent set: NULL and 0 if nothing.
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
 * Whether the run takes one thread and goes through the nodes in the program's order: 1, or 0 (the default). Nodes
 * that share state outside of their tensors then meet it in the same order in every run, and of several nodes that
 * would fail it is always the same one that does. Kernels may still use the pool for their regions, which changes no
 * result. Kernels that complete later, and work on devices, are started in their turn and waited for one by one in
 * that thread. So weir_program_run refuses such a run of a program with some (FAILED_PRECONDITION) where that would
 * block a worker of a thread pool: in one, and on an asynchronous stream with a pool that takes single tasks.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_set_deterministic(struct weir_run_options *options,
                                               int32_t deterministic);

/**
 * What weir_run_options_set_deterministic set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_get_deterministic(const struct weir_run_options *options,
                                               int32_t *out_deterministic);

/**
 * Whether a run that fails still runs the nodes that do not depend on the failure: 1, or 0 (the default: nothing more
 * is begun). What waits for a failed node is left out, and so is what waits for that; a loop that something fails in
 * ends. The first failure in the program's order is the run's. Outputs that depend on no failed node are written. Such
 * a run takes one thread, as if deterministic, and is refused where that is. A cancel or a deadline still ends it.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_set_finish_independent(struct weir_run_options *options,
                                                    int32_t finish);

/**
 * What weir_run_options_set_finish_independent set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_get_finish_independent(const struct weir_run_options *options,
                                                    int32_t *out_finish);

/**
 * Has the host told of the end of every run with these options, so that none is missed and no second call is needed:
 * as if weir_run_notify were called in weir_program_start, and the same for a run of weir_program_run on an
 * asynchronous stream, whose failure the stream keeps as well. NULL (the default) = nobody is told. If the call that
 * starts a run returns WEIR_OK, the run is told of once; if not, it is not. From its second time on a run with a
 * notice allocates no more than one without.
 *
 * Runs that are over when their call returns have no notice: weir_program_run without a stream or on a synchronous
 * one, and weir_program_run_many, refuse such options (INVALID_ARGUMENT).
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: `notice` is read during the call;
 * `release` is called once with its ctx, when the options have another notice or are destroyed, and all runs with
 * this one were told of.
 * Errors: INVALID_ARGUMENT (neither function nor eventfd, an event_fd that is none or that blocks);
 * RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_set_notice(struct weir_run_options *options,
                                        const struct weir_notice *notice);

/**
 * What weir_run_options_set_notice set; with neither function nor eventfd if nothing.
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
 * Whether runs may ask for a part of the program's outputs (weir_run_options_set_outputs), and how many different
 * lists of outputs the program keeps compiled for them: 1 to 256, or 0 (the default) for no such runs. With it the
 * program keeps the nodes of the graph, constants too, as long as it lives. The first run with a list compiles what
 * that list needs, later ones find it; when as many lists are kept as may be, one that was not asked for of late goes,
 * and is compiled again when it comes back. Each list that is kept counts as a program in weir_runtime_info.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT;
 * OUT_OF_RANGE (more than 256).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_partial_runs(struct weir_compile_options *options,
                                                  size_t max_lists);

/**
 * What weir_compile_options_set_partial_runs set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_partial_runs(const struct weir_compile_options *options,
                                                  size_t *out_max_lists);

/**
 * The outputs that a run computes, by their numbers in the program, for a program compiled with
 * weir_compile_options_set_partial_runs: the run then takes `count` tensors as its outputs, of these outputs in this
 * order, and runs only the nodes that they depend on, along edges for data and for control. All else is left out,
 * tasks and kernels without outputs too, unless one of these outputs comes behind them; what is inside of a cond, a
 * case or a loop that is run is run as always. The run takes the program's inputs all the same, but those that no node
 * of it needs are not looked at, and may be NULL. Where a list is as long as the program's outputs (flags for absent
 * outputs), it is as long as `indices` here. NULL and 0 (the default) = all outputs, and everything that has effects.
 *
 * The program's counters and its figures of nodes count such runs too. What it learns of costs
 * (weir_program_save_profile) is of whole runs; a part begins with what is known of the whole, and then learns for
 * itself.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: the indices are copied. Errors:
 * INVALID_ARGUMENT (a number twice; NULL); RESOURCE_EXHAUSTED. Those who run say OUT_OF_RANGE if the program has no
 * such output, and FAILED_PRECONDITION if it was compiled without partial runs; the first run with a list may say
 * RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_set_outputs(struct weir_run_options *options,
                                         const size_t *indices,
                                         size_t count);

/**
 * What weir_run_options_set_outputs set: NULL and 0 if nothing.
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
 * How many runs of the program may go on at once; 0 (the default) = any number. Runs of parts of its outputs count
 * too. One more run waits, in the order in which they come:
 *
 * - in the calling thread (a NULL or synchronous stream) it sleeps until another run is over, or its deadline. Inside
 *   of a task of a thread pool, of a stream's work, or of a run of a program with such a bound it does not sleep: it
 *   helps the pool and looks for a while, and is then refused with FAILED_PRECONDITION;
 * - an asynchronous stream takes it as ever, and the call does not block; when its turn comes there, the stream waits,
 *   without a thread. To be held back at the call, see weir_run_options_set_no_wait.
 *
 * A run that begins inside of a run of the same program is part of it, and takes no place of its own; so are programs
 * as nodes (weir_graph_add_program) and weir_kernel_context_run_program. A call of weir_program_run_many waits for one
 * place, and uses as many more as are free then. A thread of the host's that completes a kernel later is inside of
 * nothing: it must not wait for a run of the program that its kernel is part of. A kernel that waits, outside of a
 * pool, for a stream on which a run of its own program waits for a place is refused (FAILED_PRECONDITION).
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_set_max_concurrent_runs(struct weir_compile_options *options,
                                                         uint32_t max_runs);

/**
 * What weir_compile_options_set_max_concurrent_runs set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_compile_options_get_max_concurrent_runs(const struct weir_compile_options *options,
                                                         uint32_t *out_max_runs);

/**
 * Whether a run of a program with a bound (weir_compile_options_set_max_concurrent_runs) is refused with
 * RESOURCE_EXHAUSTED at the call, where it would have to wait: 1, or 0 (the default). In the calling thread that is
 * while as many runs go on as may; on an asynchronous stream while as many are queued on streams or go on.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_options_set_no_wait(struct weir_run_options *options, int32_t no_wait);

/**
 * What weir_run_options_set_no_wait set.
 *
 * Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_options_get_no_wait(const struct weir_run_options *options,
                                         int32_t *out_no_wait);

/**
 * Fills *out_failure with what is known of the run behind the calling thread's last failed weir call: of
 * weir_program_run, weir_run_wait, or a call that reported the late error of a stream. If that call failed for another
 * reason, or none has, code is WEIR_OK and the rest empty. Successful calls leave it.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT (NULL, or a struct_size below the first published one).
 */
WEIR_API WEIR_NODISCARD weir_status weir_last_failure_get(struct weir_run_failure *out_failure);

/**
 * Copies the name of a node that was not begun, of the failure that weir_last_failure_get describes, as
 * weir_last_error_copy copies its text; index is below num_not_run, in the order of the program.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if there is no such index, or capacity is too small (then out_length is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_last_failure_copy_not_run(size_t index,
                                           char *buffer,
                                           size_t capacity,
                                           size_t *out_length);

/**
 * As weir_last_failure_get, of a run that was started with weir_program_start. Its code is WEIR_OK while it is not
 * done, and if it succeeded.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT (NULL, or a struct_size below the first published one).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_get_failure(const struct weir_run *run,
                                 struct weir_run_failure *out_failure);

/**
 * As weir_last_failure_copy_not_run, of a run that was started with weir_program_start.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
 * Errors: INVALID_ARGUMENT; OUT_OF_RANGE if there is no such index, or capacity is too small (then out_length is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_run_copy_not_run(const struct weir_run *run,
                                  size_t index,
                                  char *buffer,
                                  size_t capacity,
                                  size_t *out_length);


/* ---- Exchange ----------------------------------------------------------------------------------------------------
 * Tensors to and from other libraries, by DLPack: the same memory, with an owner that is told once when it is
 * not used any more. The structs are those of dlpack.h, or of weir/dlpack.h.
 */

/**
 * Gives a tensor to another library: a DLManagedTensorVersioned of DLPack 1.0 over the same memory, row-major, with
 * strides. The other calls its deleter, once and on any thread; until then the memory stays. `producer` (may be NULL)
 * is the stream on which the tensor is written: with `consumer`, a stream of weir's, that stream waits for what
 * `producer` has queued so far, and nothing blocks; without, this call waits for it. So a program that implements
 * `__dlpack__(stream=None)` passes its stream and NULL. Later work on `producer` is not kept away from the receiver.
 * Memory of a CUDA engine is kDLCUDA, and a receiver's own stream becomes a consumer by weir_stream_wrap_cuda; that of
 * an emulated one is kDLExtDev. `flags`: of weir_dlpack_flags.
 *
 * Thread safety: any thread. Blocking: until `producer` has done what it was given, if there is no `consumer` or a
 * copy is made; else never. Ownership: *out_managed is the caller's until its deleter is called; it holds a reference
 * to the tensor. Errors: INVALID_ARGUMENT (NULL, unknown flags, a dynamic tensor); UNIMPLEMENTED (memory that DLPack
 * has no name for, a copy of a device's); those of weir_stream_synchronize and weir_stream_wait_event.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_to_dlpack(struct weir_tensor *tensor,
                                  struct weir_stream *producer,
                                  struct weir_stream *consumer,
                                  uint64_t flags,
                                  struct DLManagedTensorVersioned **out_managed);

/**
 * As weir_tensor_to_dlpack, as a DLManagedTensor for libraries that know no other. It cannot say that it must not be
 * written, nor that it is a copy.
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
 * Makes a tensor over another library's memory. Elements are float32, float16, bfloat16, int32, int8, uint8 or bool;
 * others are refused by name. Strides must be row-major and compact, unless WEIR_DLPACK_COPY asks for a copy. Memory
 * that must not be written is taken as a copy, or with WEIR_DLPACK_READ_ONLY. The memory must be the engine's: the
 * host's for a CPU engine (kDLCPU, kDLCUDAHost), kDLCUDA with the engine's index for a CUDA engine, kDLExtDev for an
 * emulated one; there WEIR_DLPACK_COPY is not done. The contents must be there, or ordered before the stream that uses
 * them: ask the other library for the export on the stream None, or on that stream's native handle.
 *
 * Thread safety: any thread. Blocking: never. Ownership: on success *managed is weir's, which calls its deleter once,
 * when nothing uses the memory any more, in any thread (with WEIR_DLPACK_COPY in this call); on failure it stays the
 * caller's. Errors: INVALID_ARGUMENT (NULL, flags, elements, strides, rank, device, alignment); FAILED_PRECONDITION
 * (it must not be written); UNIMPLEMENTED (another major version, an engine whose memory DLPack has no name for);
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
 * Finds a resource by its name. `container` NULL = "default"; `kind` WEIR_RESOURCE_ANY = whatever it is.
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
 * Finds a resource by its name, or has it made: then `build` is called with `arg`, in this thread and once, and what
 * it creates with name NULL gets the name. Threads that ask meanwhile wait for it; if it fails, its code is this
 * call's, and one of them tries in turn. A call in a worker of a pool, or inside of a build function, does not wait
 * but fails.
 *
 * Thread safety: any thread. Blocking: while `build` runs here or in another thread. Ownership: the caller owns one
 * reference to *out_resource. Errors: FAILED_PRECONDITION (another call is making it, and waiting here may block a
 * worker or never end); INVALID_ARGUMENT (NULL, a bad name, another kind, `build` gave no resource, or one with a name
 * or of another engine); what `build` returned.
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
 * Keeps an object of the host's: `object` is yours, weir only hands it out. `type_name` (at most 63 bytes) says what
 * it is, so that it is not taken for something else. `destroy` (may be NULL) is called with `object` exactly once,
 * when nothing refers to it any more, in any thread; not if this call fails.
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
 * The object that weir_resource_create_host was given, if it is of this type.
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
 * Gives up one reference. NULL does nothing. A resource with a name lives on under it.
 *
 * Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
 */
WEIR_API void weir_resource_release(struct weir_resource *resource);

/**
 * Takes a name away. The resource ends with its last reference: programs that were compiled with it go on. Its id is
 * stale at once, and kernels that name it are refused.
 *
 * Thread safety: any thread. Blocking: never; a destroy function of the host's may run in here. Ownership: none.
 * Errors: NOT_FOUND (no such container, or no such resource in it); INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_delete(struct weir_engine *engine,
                                 const char *container,
                                 const char *name);

/**
 * Takes all names of a container away, as weir_resource_delete does. A container that there is not is as good as
 * cleared. `out_count` (may be NULL) receives how many names there were.
 *
 * Thread safety: any thread. Blocking: never; destroy functions of the host's may run in here. Ownership: none.
 * Errors: INVALID_ARGUMENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_clear(struct weir_engine *engine,
                                const char *container,
                                size_t *out_count);

/**
 * Lists the resources of a container, or of all (`container` NULL), in the order of containers and names. Set
 * struct_size of the first entry: it is the distance between entries, and weir stores it in all that it fills.
 * `out_count` receives how many there are. capacity 0 asks for the number only (then infos may be NULL).
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
 * Fills `out_info` with what a resource is.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
 * Errors: INVALID_ARGUMENT (NULL, struct_size).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_get_info(const struct weir_resource *resource,
                                   struct weir_resource_info *out_info);

/**
 * A number that names the resource on its engine as long as it has its name (or, without one, lives), and nothing else
 * ever: an index and a generation. It keeps nothing alive.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
 */
WEIR_API WEIR_NODISCARD weir_status weir_resource_get_id(const struct weir_resource *resource, uint64_t *out_id);

/**
 * The resource with this number.
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
 * each, "engine cpu:0: variable 'x' of container 'default' (1 references)", as weir_last_error_copy copies its text.
 * "" if there are none.
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
 * Makes a variable like `desc`, in the engine's memory. Its first value is that of `initial`, a tensor like `desc`
 * (NULL: zeros). `flags`: WEIR_VARIABLE_EXCLUSIVE or WEIR_VARIABLE_OPTIMISTIC. `container` NULL = "default"; `name`
 * NULL = without a name.
 *
 * On an engine whose device works on its own the variable is in the device's memory, and `initial` there or in the
 * host's; the accesses of all streams and programs come one after the other there, and nobody waits for them on the
 * host (docs/resources.md).
 *
 * Thread safety: any thread. Blocking: never; with `initial` on a device until its value is there. Ownership: the
 * caller owns one reference to *out_variable; desc, names and the initial value are copied. Errors: ALREADY_EXISTS;
 * INVALID_ARGUMENT (NULL, a bad name, desc, flags, another shape of `initial`, or one in the memory of another
 * engine); FAILED_PRECONDITION (`initial` of a variable on a device, where waiting may block a worker); OUT_OF_RANGE;
 * RESOURCE_EXHAUSTED; what the device fails with.
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
 * Thread safety: any thread. Blocking: while a node or another call has an exclusive variable; in a worker of a pool
 * it looks for a moment and refuses. Of a variable on a device: until the copy is done; inside of anything that weir
 * has called it refuses. Ownership: none. Errors: INVALID_ARGUMENT (NULL, no variable, another shape, the memory of
 * another engine); FAILED_PRECONDITION (waiting here may block a worker); what the device fails with.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_variable_read(const struct weir_resource *variable,
                               struct weir_tensor *tensor);

/**
 * Gives a variable the value of a tensor of the same shape, in the calling thread.
 *
 * Thread safety: any thread. Blocking: as weir_variable_read. Ownership: the value is copied.
 * Errors: those of weir_variable_read; RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_variable_assign(struct weir_resource *variable,
                                 const struct weir_tensor *tensor);

/**
 * Makes a kernel that reads a variable: no input, one output, the value as it is when the kernel runs. The kernel
 * knows the variable by its id and does not keep it alive; a program does that was compiled with the kernel.
 *
 * Kernels of an exclusive variable complete later when another node has it, so they are not for synchronous streams
 * and runs inside of a worker of a pool; those of an optimistic one are for any place, and so are those of a variable
 * on a device. They run in every run of a program, whether or not anybody uses what they read.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; attr is copied.
 * Errors: INVALID_ARGUMENT (NULL, no variable, one of another engine). Of its calls, and of weir_graph_compile:
 * NOT_FOUND (the variable was destroyed).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_variable_read(struct weir_engine *engine,
                                             const struct weir_resource *variable,
                                             const struct weir_kernel_attr *attr,
                                             struct weir_kernel **out_kernel);

/**
 * Makes a kernel that gives a variable a value: one input like the variable, no output. Otherwise as
 * weir_kernel_create_variable_read. A value that was begun to be written is written whole, also if the run is
 * cancelled.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; attr is copied.
 * Errors: those of weir_kernel_create_variable_read.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_variable_assign(struct weir_engine *engine,
                                               const struct weir_resource *variable,
                                               const struct weir_kernel_attr *attr,
                                               struct weir_kernel **out_kernel);

/**
 * Makes a kernel that adds to a variable: one input like the variable, no output. f32, bf16, f16, s32, s8, u8, with
 * the sums of weir_kernel_create_binary. Sums of several nodes at once are all in it, in some order: in floating point
 * the order may show. Otherwise as weir_kernel_create_variable_assign.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; attr is copied.
 * Errors: those of weir_kernel_create_variable_read; INVALID_ARGUMENT (elements that are no numbers).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_variable_assign_add(struct weir_engine *engine,
                                                   const struct weir_resource *variable,
                                                   const struct weir_kernel_attr *attr,
                                                   struct weir_kernel **out_kernel);


/* ---- Lookup table ------------------------------------------------------------------------------------------------
 * 64-bit integers or byte strings to rows of one type and shape.
 */

/**
 * Makes an empty table. `container` NULL = "default"; `name` NULL = without a name.
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
 * Puts rows into a table: row i under key i, in this order; a key that is there gets the new row. All or, without the
 * memory, none. `rows` holds keys->count rows, `bytes` bytes.
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
 * Copies the row of each key to `out_rows` (`bytes` bytes, keys->count rows). A key that is not there gets
 * `default_row` (one row, NULL: zeros). `out_found` (may be NULL) receives how many keys were there, `out_flags` (may
 * be NULL) 1 or 0 for each key.
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
 * How many keys there are.
 *
 * Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL, no table).
 */
WEIR_API WEIR_NODISCARD weir_status weir_table_size(const struct weir_resource *table, size_t *out_count);

/**
 * Copies all keys and rows, in ascending order of the keys, as they are at one moment. The sizes in `contents` are
 * filled in any case; an array that is NULL with a capacity of 0 is left out.
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
 * Makes a kernel that looks keys up in a table whose keys are integers. Inputs: keys, s64 of any shape; a row for keys
 * that are not there. Outputs: the rows, of the keys' shape followed by the row's; and bool of the keys' shape,
 * whether each was there. It sees all of an insert or nothing of it. The kernel knows the table by its id and does not
 * keep it alive; a program does that was compiled with the kernel.
 *
 * A graph must say in which order its nodes insert into a table, and in which order they insert and look
 * (docs/resources.md). The kernels run in every run of a program, whether or not anybody uses what they find.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; attr is copied.
 * Errors: INVALID_ARGUMENT (NULL, no table, one of another engine, keys that are byte strings); UNIMPLEMENTED (an
 * engine whose work the host does not do). Of its calls, and of weir_graph_compile: NOT_FOUND (the table was
 * destroyed).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_table_find(struct weir_engine *engine,
                                          const struct weir_resource *table,
                                          const struct weir_kernel_attr *attr,
                                          struct weir_kernel **out_kernel);

/**
 * Makes a kernel that inserts into a table whose keys are integers. Inputs: keys, s64 of any shape; rows, of the keys'
 * shape followed by the row's. No output. As weir_table_insert: in the order of the keys, all or none. Otherwise as
 * weir_kernel_create_table_find.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; attr is copied.
 * Errors: those of weir_kernel_create_table_find; of its calls RESOURCE_EXHAUSTED, too.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_table_insert(struct weir_engine *engine,
                                            const struct weir_resource *table,
                                            const struct weir_kernel_attr *attr,
                                            struct weir_kernel **out_kernel);

/**
 * Makes a kernel that tells how many keys a table has: no input, one output, a scalar of s64. Otherwise as
 * weir_kernel_create_table_find.
 *
 * Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; attr is copied.
 * Errors: those of weir_kernel_create_table_find.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_table_size(struct weir_engine *engine,
                                          const struct weir_resource *table,
                                          const struct weir_kernel_attr *attr,
                                          struct weir_kernel **out_kernel);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WEIR_H */
