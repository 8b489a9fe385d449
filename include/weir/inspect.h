/* weir/inspect.h: drawings, reports, statistics and figures
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef WEIR_INSPECT_H
#define WEIR_INSPECT_H

#include "../weir.h"

/** @file weir/inspect.h
 * drawings, reports, statistics and figures. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Drawings and reports -----------------------------------------------------------------------------------------
 * Texts to read: what was built, what became of it, and what it costs.
 */

/** Text formats of reports. */
typedef enum weir_report_format_value {
  /** Lines to read. */
  WEIR_REPORT_TEXT = 1,
  /** JSON (RFC 8259). */
  WEIR_REPORT_JSON = 2
} weir_report_format_value;

/** Text formats for dumps. */
typedef enum weir_dump_format_value {
  /** Graphviz DOT. */
  WEIR_DUMP_DOT = 1,
  /** JSON (RFC 8259). */
  WEIR_DUMP_JSON = 2
} weir_dump_format_value;

/** A text format for dumps: one of enum weir_dump_format_value. */
typedef uint32_t weir_dump_format;

/** A text format of reports: one of enum weir_report_format_value. */
typedef uint32_t weir_report_format;

/** Copies a drawing of the graph in its current state, in DOT or JSON. */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_dump(const weir_graph *graph,
                            weir_dump_format format,
                            char *buffer,
                            size_t capacity,
                            size_t *out_length);

/** Copies a drawing of the compiled program, in DOT or JSON. */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_dump(const weir_program *program,
                              weir_dump_format format,
                              char *buffer,
                              size_t capacity,
                              size_t *out_length);

/**
 * Copies a report of the compilation, as text or JSON: nodes and edges left out or added, memory that values share,
 * sizes, the effect of the costs known so far on the use of other threads, the parts kept for partial runs, and the
 * figures of the executed nodes, if any. The members of the JSON are stable; more may be added.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_report(const weir_program *program,
                                weir_report_format format,
                                char *buffer,
                                size_t capacity,
                                size_t *out_length);

/* ---- Statistics ---------------------------------------------------------------------------------------------------
 * Counts and times of a program's runs, and costs that are kept for the next process.
 */

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
 * Fills *out_stats with the time that node `index` has taken. Active runs may be counted in part.
 *
 * Errors: OUT_OF_RANGE (index); FAILED_PRECONDITION if the program was compiled without WEIR_COMPILE_STATISTICS.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_node_stats(const weir_program *program,
                                        size_t index,
                                        weir_node_stats *out_stats);

/**
 * Copies the program's learned costs of nodes and iterations of loops, as text. Runs change it: ask for the length and
 * copy while no run is active, or repeat if the buffer was too small.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_save_costs(const weir_program *program,
                                    char *buffer,
                                    size_t capacity,
                                    size_t *out_length);

/**
 * Loads saved costs and iterations into the program, so that its first run is scheduled as well as later ones;
 * *out_num_known is the number of nodes that they were saved for. Nodes are found by their names; names known to only
 * one side are ignored. No result changes.
 *
 * Errors: INVALID_ARGUMENT (NULL, or no saved costs; the text names the line); then nothing has changed.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_load_costs(weir_program *program,
                                    const char *costs,
                                    size_t *out_num_known);

/* ---- Costs of a pool ----------------------------------------------------------------------------------------------
 * The cost of bringing threads of a pool to work: measured, or given by the host.
 */

/**
 * Measures the cost of bringing in the pool's threads, with a few rounds of empty work. The first region that could be
 * worth a thread does so too; call this to measure at a time of your choice, with the pool as idle as it will be
 * later.
 *
 * Blocking: usually less than a millisecond, a few if the machine is busy, and for as long as the pool keeps a
 * parallel_for. Errors: FAILED_PRECONDITION inside a task of the pool.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_measure(weir_threadpool *pool);

/**
 * The current estimate of the cost of a helper: of a pool that was in use a moment ago, requested as regions would
 * (schedule or parallel_for). Assumed figures until the pool is measured; from then on shared regions refine them.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_get_costs(const weir_threadpool *pool,
                                      weir_threadpool_costs *out_costs);

/* ---- Memory figures -----------------------------------------------------------------------------------------------
 * How much memory an engine holds, and who has it.
 */

/** The host memory that a device copies directly from and to. */
typedef enum weir_pinning_flags {
  /** Memory that weir allocates for it: WEIR_MEMORY_PINNED. */
  WEIR_PINNING_ALLOCATES = 1,
  /** Memory allocated elsewhere, too: weir_buffer_pin. */
  WEIR_PINNING_REGISTERS = 2
} weir_pinning_flags;

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
  /** OR of enum weir_pinning_flags: the memory that can be pinned. 0: the memory for copies is ordinary memory. */
  uint32_t pinning;
  /** 0. */
  uint32_t reserved0;
} weir_memory_info;

/** Fills *out_info with current figures of the engine's memory. The cost does not grow with the number of blocks. */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_get_memory_info(const weir_engine *engine,
                                        weir_memory_info *out_info);

/** Resets the peaks to the current values. */
WEIR_API WEIR_NODISCARD weir_status weir_engine_reset_memory_peak(weir_engine *engine);

/**
 * Writes the contents of the engine's memory as JSON: the figures, the uses of blocks with their shares, and each
 * region with its blocks. A block is "used" for something, "kept" for the next request of its size, or "free". For an
 * accelerator's engine also "host_memory", the same for the host memory for copies, and "registered", the memory
 * pinned by weir_buffer_pin. Changes between two calls may make the text longer.
 *
 * Blocking: other requests for the engine's memory wait while the text is made. Errors: RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_dump_memory(const weir_engine *engine,
                                    char *buffer,
                                    size_t capacity,
                                    size_t *out_length);

/* ---- Runtime ------------------------------------------------------------------------------------------------------
 * Threads that the library has started, and objects that it holds.
 */

/** Reasons for which weir starts a thread. There are no others. */
typedef enum weir_thread_origin_value {
  /** weir_threadpool_create_builtin. */
  WEIR_THREAD_ORIGIN_BUILTIN_POOL = 1,
  /**
   * An asynchronous stream whose pool cannot take single tasks, or that has no pool; or the notices (weir_notice) of
   * an accelerator's engine.
   */
  WEIR_THREAD_ORIGIN_LANE = 2,
  /** An engine in mode WEIR_THREAD_MODE_PRIVATE. */
  WEIR_THREAD_ORIGIN_ENGINE_POOL = 3,
  /** Engines in mode WEIR_THREAD_MODE_KIND. */
  WEIR_THREAD_ORIGIN_KIND_POOL = 4,
  /** weir_threadpool_conformance, which calls the pool from threads that the pool has never seen. */
  WEIR_THREAD_ORIGIN_CONFORMANCE = 5,
  /** A device that cannot report when an event was reached, from the first wait on that does not hold a host thread. */
  WEIR_THREAD_ORIGIN_WATCH = 6
} weir_thread_origin_value;

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
  /** Live attributes, of all kinds. */
  uint64_t attrs;
  /** Threads running now in built-in pools created by the host. */
  uint64_t threads_of_builtin_pools;
  /** Dedicated threads running now, each for one asynchronous stream or for the notices of one engine. */
  uint64_t threads_of_lanes;
  /** Threads running now in private pools of engines. */
  uint64_t threads_of_engines;
  /** Threads running now in pools shared by the engines of a kind. */
  uint64_t threads_of_kinds;
  /** Live packed weights; handles of kernels are not counted. */
  uint64_t packed_weights;
  /** Threads running now that watch events of devices. */
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
  /** Traces that were started and not released. */
  uint64_t traces;
  /** Communicators, including those that only kernels refer to. */
  uint64_t comms;
  /** Prepared calls. */
  uint64_t calls;
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
   * Its name, NUL-terminated UTF-8: "weir-pool3-0" (of pool 3), "weir-lane-ingest" (of stream 'ingest'),
   * "weir-cpu0-1" (of an engine cpu:0), "weir-kind-cpu-0". The system's own lists show the first 15 bytes; a longer
   * name loses its middle there and keeps the index.
   */
  char name[32];
  /**
   * The object that it works for, NUL-terminated UTF-8, cut if too long: the stream's name, the engine ("cpu:0"),
   * the kind ("cpu"); "" in a pool created by the host.
   */
  char owner[64];
} weir_thread_info;

/**
 * Fills *out_info with the library's counters: threads by origin, allocations made, live objects by kind. Copies of
 * attributes inside engines and streams count as attributes.
 */
WEIR_API WEIR_NODISCARD weir_status weir_runtime_get_info(weir_runtime_info *out_info);

/**
 * Lists the threads that weir has started and that are running now, in the order of their start. Set struct_size of
 * the first entry: it is the distance between entries, and weir stores it in every entry that it fills. `out_count`
 * receives the number of threads. capacity 0 only asks for the number (infos may then be NULL). Threads may start and
 * end between two calls, so provide a few more entries than were counted. Threads of host pools are not listed.
 *
 * Blocking: never; it may wait for a thread that is just being started. Errors: OUT_OF_RANGE if capacity is too small
 * (out_count is set, the entries are left alone).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_runtime_get_threads(weir_thread_info *infos,
                                     size_t capacity,
                                     size_t *out_count);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INSPECT_H */
