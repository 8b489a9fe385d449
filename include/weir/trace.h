/* weir/trace.h: what ran where and when
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H

#include "../weir.h"

/** @file weir/trace.h
 * what ran where and when. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Trace --------------------------------------------------------------------------------------------------------
 * A trace is a record of each step that is taken: nodes, runs, items of streams, helpers, in every thread, with times
 * of one clock. While none is recorded, a run pays for one read of a word. Recording costs a node about ten
 * nanoseconds, and never a lock, an allocation or a wait: a thread writes into a ring that was made when the trace
 * began. A ring that is full loses records, counts them, and says so in every file. docs/trace.md is the guide.
 *
 * A tool of the host's is told of the same steps while they are made, by functions (weir_trace_set_hooks) or by
 * markers for NVTX and ITT (weir_trace_use_markers).
 */

/** How a trace records. A bit that is not here is refused. */
typedef enum weir_trace_flags {
  /**
   * A full ring overwrites its oldest records: a flight recorder, which is saved when something has gone wrong.
   * Without it the first records are kept, and later ones are lost.
   */
  WEIR_TRACE_KEEP_LAST = 1,
  /** Only runs that ask for this trace (weir_run_options.trace) are part of it, with all that runs inside of them. */
  WEIR_TRACE_ONLY_ASKED = 2
} weir_trace_flags;

/** Formats of saved traces. */
typedef enum weir_trace_format_value {
  /**
   * Perfetto's protocol buffers, for ui.perfetto.dev and trace_processor: a track for each thread, tracks of runs,
   * arrows between threads, a counter of threads in runs.
   */
  WEIR_TRACE_PERFETTO = 1,
  /** Chrome's JSON. */
  WEIR_TRACE_CHROME = 2,
  /** Folded stacks, for flame graphs: "thread;program;node nanoseconds" in each line, without what lies inside. */
  WEIR_TRACE_FOLDED = 3,
  /**
   * A profile for pprof, not compressed, with four values: work, count, waited (of nodes: between ready and begun),
   * and waiting (of threads, with the label cause).
   */
  WEIR_TRACE_PPROF = 4,
  /**
   * Lines to read: of each program what its runs took, what its threads did with their time, why its median and its
   * slowest run took as long as they did, and its nodes.
   */
  WEIR_TRACE_REPORT = 5,
  /**
   * A page to look at, in one file that needs no network: the timeline with the path of a run through it, and the
   * numbers of the report.
   */
  WEIR_TRACE_HTML = 6,
  /** The numbers of the report as JSON. */
  WEIR_TRACE_JSON = 7
} weir_trace_format_value;

/** Flags of weir_trace_node. */
typedef enum weir_trace_node_flags {
  /** A later part of a node that completes later: it began before, perhaps in another thread. */
  WEIR_TRACE_NODE_AGAIN = 1,
  /** At the end: it has failed. */
  WEIR_TRACE_NODE_FAILED = 2,
  /** At the end: it has been started, and completes later. */
  WEIR_TRACE_NODE_LATER = 4
} weir_trace_node_flags;

/** Tools that are told of runs by markers in their own format. */
typedef enum weir_trace_markers {
  /**
   * NVTX, of Nsight Systems and others: ranges in the domain "weir". The variable NVTX_INJECTION64_PATH, which the
   * tool sets, names its library.
   */
  WEIR_TRACE_NVTX = 1,
  /**
   * ITT, of VTune and others: tasks in the domain "weir". The variable INTEL_LIBITTNOTIFY64, which the tool sets,
   * names its library.
   */
  WEIR_TRACE_ITT = 2
} weir_trace_markers;

/** The scope of a trace, and how much it keeps. All-zero, and NULL, is the default: everything in the process. */
typedef struct weir_trace_options {
  /** sizeof(weir_trace_options) of the caller's header. */
  size_t struct_size;
  /** OR of weir_trace_flags. */
  uint64_t flags;
  /** At most one of the three: the trace is of runs and streams of this domain's engines, */
  weir_domain *domain;
  /** of runs and streams of this engine, */
  weir_engine *engine;
  /** or of this program's runs, partial ones included. The trace keeps a reference. */
  weir_program *program;
  /** Records of 32 bytes that are kept of each thread, rounded up to a power of two: 64 to 2^26; 0 = 65,536. */
  size_t records_per_thread;
  /**
   * How many threads and tracks can have records, 1 to 4,096; 0 = 64. Their memory is set aside by
   * weir_trace_start, and the system gives it when it is written to.
   */
  uint32_t threads;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_trace_options;

/** A format of saved traces: one of enum weir_trace_format_value. */
typedef uint32_t weir_trace_format;

/**
 * Receives a piece of a saved trace. A status other than WEIR_OK ends the save, and is what that returns. Must not
 * throw, longjmp or unwind.
 */
typedef weir_status (*weir_trace_write_fn)(void *ctx, const void *data, size_t size);

/** The contents of a trace. */
typedef struct weir_trace_info {
  /** sizeof(weir_trace_info), set by the caller before the call. */
  size_t struct_size;
  /** 1 while it records, 0 when it was stopped. */
  uint32_t recording;
  /** Threads and tracks that have records. */
  uint32_t threads;
  /** Records that are there. */
  uint64_t records;
  /** Records that are lost since a thread's ring was full. */
  uint64_t lost;
  /** Records that are lost since all rings had a thread. */
  uint64_t lost_without_ring;
  /** When it began, on the system's monotonic clock, in nanoseconds. */
  uint64_t begin_ns;
  /** When it was stopped; 0 while it records. */
  uint64_t end_ns;
  /** How far the times in it may be off the system's clock, all together, in nanoseconds. */
  uint64_t clock_error_ns;
  /** The clock of its stamps, NUL-terminated: "TSC", "CNTVCT" or "CLOCK_MONOTONIC". */
  char clock[32];
} weir_trace_info;

/** A thread in a trace, or a track of what no thread does: of a device's stream, of a communicator. */
typedef struct weir_trace_thread {
  /** sizeof(weir_trace_thread), set by the caller before the call. */
  size_t struct_size;
  /** The system's thread id (Linux: gettid); 0 for a track. */
  uint64_t os_id;
  /** Its records that are there. */
  uint64_t records;
  /** Its records that are lost. */
  uint64_t lost;
  /** Its name when its first record was written, NUL-terminated UTF-8; a long one is cut. */
  char name[32];
} weir_trace_thread;

/** A run, as hooks are told of it. The struct is valid during the call; the name as long as the program. */
typedef struct weir_trace_run {
  /** sizeof(weir_trace_run), set by weir. */
  size_t struct_size;
  /** The program's name, NUL-terminated UTF-8. The same address in all runs of the program, so it may be a key. */
  const char *program;
  /** The run's number: no other run, and no region, that is under way in the process has it. */
  uint64_t number;
  /** The number of the run or region inside of which this one was begun; 0 = none. */
  uint64_t outer;
} weir_trace_run;

/** Tells of a run, or of a thread in it. */
typedef void (*weir_trace_run_fn)(void *ctx, const weir_trace_run *run);

/** A node of a run, as hooks are told of it. The struct is valid during the call; the names as long as the program. */
typedef struct weir_trace_node {
  /** sizeof(weir_trace_node), set by weir. */
  size_t struct_size;
  /** The node's name, NUL-terminated UTF-8. The same address in all runs of the program, so it may be a key. */
  const char *name;
  /**
   * NULL; or the name of the engine, of a node that is the engine's work rather than that of the threads in the run:
   * on a device, or a kernel that completes later.
   */
  const char *engine;
  /** The node's number in the program. The copies of a node in iterations side by side have numbers of their own. */
  uint32_t index;
  /** OR of weir_trace_node_flags. */
  uint32_t flags;
} weir_trace_node;

/** Tells of a node. */
typedef void (*weir_trace_node_fn)(void *ctx, const weir_trace_run *run, const weir_trace_node *node);

/** A thread's part in a loop that threads share, as hooks are told of it. Valid during the call. */
typedef struct weir_trace_region {
  /** sizeof(weir_trace_region), set by weir. */
  size_t struct_size;
  /** The loop's number: that of none that is under way, and of no run. */
  uint64_t number;
  /** 1 = the part of a helper, 0 = that of the thread that began the loop, with its wait for the others. */
  uint32_t helps;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_trace_region;

/** Tells of a thread's part in a loop. */
typedef void (*weir_trace_region_fn)(void *ctx, const weir_trace_region *region);

/**
 * Functions of a tracer of the host's, which are called while programs run (weir_trace_set_hooks). A member that is
 * NULL is not called.
 *
 * They are called in the thread that does the work, from any thread, several at a time. weir holds no lock then, with
 * one exception: while a run that one device executes alone is submitted, the lock of its stream is held. Such a run
 * is told of while it is submitted, and its status is that of submitting it.
 *
 * In each thread the pairs of stay, node and region lie in one another; those of run do not, since a run may end in
 * another thread than it began in. They must not throw, longjmp or unwind, and of weir they may call marks, spans and
 * weir_trace_set_hooks. Their time is time of the node or the run.
 */
typedef struct weir_trace_hooks {
  /** sizeof(weir_trace_hooks) of the host's header. Members beyond it read as NULL. */
  size_t struct_size;
  /** A run of a program begins. Nothing else is told of it before. */
  weir_trace_run_fn run_begin;
  /** It is over, with this status, and nothing else is told of it any more. */
  void (*run_end)(void *ctx, const weir_trace_run *run, weir_status status);
  /** The calling thread comes into the run to work in it. */
  weir_trace_run_fn stay_begin;
  /** It leaves the run. It may come again. */
  weir_trace_run_fn stay_end;
  /** The calling thread begins a node of the run. */
  weir_trace_node_fn node_begin;
  /** It has returned from the node: also if that has failed, or completes later. */
  weir_trace_node_fn node_end;
  /** The calling thread begins, or helps in, a loop that threads share (inside of a kernel, or weir_parallel_for). */
  weir_trace_region_fn region_begin;
  /** Its part is over. */
  weir_trace_region_fn region_end;
  /**
   * Called exactly once, when no thread will call any of these functions with this ctx again; on any thread,
   * perhaps inside of the call that took the hooks away. Never called in a forked child.
   */
  weir_destroy_fn release;
} weir_trace_hooks;

/**
 * Begins a trace: from here on the work that it is of writes a record of each step into a ring of the thread's own.
 * Up to four traces record at once, of the same work or of different work. Runs that have begun are not part of it. A
 * trace that was never stopped ends when its last reference is released; what was recorded is gone then.
 *
 * Errors: INVALID_ARGUMENT (two of domain, engine, program and ONLY_ASKED); OUT_OF_RANGE (records_per_thread,
 * threads); RESOURCE_EXHAUSTED (memory, or four traces are there that were not released).
 */
WEIR_API WEIR_NODISCARD weir_status weir_trace_start(const weir_trace_options *options, weir_trace **out_trace);

/**
 * Ends the recording. What begins later is not part of the trace; what is under way then is, as far as it has come
 * when the trace is saved. Stopping a trace that was stopped does nothing.
 *
 * Blocking: for at most a millisecond, in which it reads two clocks, if the trace is younger than that; and if devices
 * are in it, for as long as each takes to reach an event, at most a second.
 */
WEIR_API WEIR_NODISCARD weir_status weir_trace_stop(weir_trace *trace);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_trace_retain(weir_trace *trace);

/**
 * Gives up one reference. NULL does nothing. The last one ends the trace; its memory is given back when no thread
 * writes to it any more.
 */
WEIR_API void weir_trace_release(weir_trace *trace);

/**
 * Saves what the trace holds now, in any state: nothing is taken out of it, and threads may write meanwhile. The file
 * is written beside the path, under a name of its own, and takes its place when all of it is on the disk; so it is
 * there whole or not at all. A path that leads to something else than a file (a pipe, a device) is written to as it
 * is. Each file says how many records were lost.
 *
 * Blocking: as weir_trace_stop, and until it is written. Errors: INVALID_ARGUMENT (also: the path is a directory);
 * NOT_FOUND (no such directory); PERMISSION_DENIED; RESOURCE_EXHAUSTED (the disk is full, the file too large, memory);
 * UNKNOWN for other errors of the system, with its text.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_trace_save(const weir_trace *trace,
                            const char *path,
                            weir_trace_format format);

/**
 * As weir_trace_save, but passes the bytes to a function, in pieces of up to 64 KiB, in order.
 *
 * Blocking: as weir_trace_stop, and until all is passed on. Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED; the status
 * of the function.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_trace_save_to(const weir_trace *trace,
                               weir_trace_format format,
                               weir_trace_write_fn write,
                               void *ctx);

/**
 * Fills *out_info. Threads may write meanwhile: then each figure is one of a recent moment.
 *
 * Blocking: as weir_trace_stop.
 */
WEIR_API WEIR_NODISCARD weir_status weir_trace_get_info(const weir_trace *trace, weir_trace_info *out_info);

/**
 * Fills *out_thread for thread `index` of the trace, in the order of their first records.
 *
 * Errors: OUT_OF_RANGE (index).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_trace_get_thread(const weir_trace *trace,
                                  size_t index,
                                  weir_trace_thread *out_thread);

/**
 * Gives a name of the host's a number, for marks and spans: the same for the same text, in all traces, as long as the
 * process lives.
 *
 * Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED (memory, or there are 65,536 names).
 */
WEIR_API WEIR_NODISCARD weir_status weir_trace_intern(const char *name, uint32_t *out_name);

/**
 * Marks this moment, with a value of the host's. The mark is part of traces of the whole process, and, inside of a
 * node of a run, of the traces that the run is part of. While no trace records, it does nothing.
 */
WEIR_API WEIR_NODISCARD weir_status weir_trace_mark(uint32_t name, uint64_t value);

/**
 * Begins a span of the host's on this thread, which ends with the weir_trace_span_end that belongs to it: spans lie in
 * one another. It is part of the traces that a mark would be part of.
 */
WEIR_API WEIR_NODISCARD weir_status weir_trace_span_begin(uint32_t name);

/** Ends the span that this thread has begun last. An end without a beginning does nothing. */
WEIR_API void weir_trace_span_end(void);

/**
 * From here on these functions are called with ctx while programs run (weir_trace_hooks); NULL takes them away. The
 * struct is copied. There is one set of hooks in the process: a new one takes the place of the one before.
 *
 * A run is told to the hooks that are there when it begins, to its end and in all of its threads; so is a region. Runs
 * that are under way when hooks are set are not told; those that are under way when hooks are taken away still are.
 * What ctx points to may be freed when hooks->release was called: behind the last of those runs. If this call fails,
 * it is never called. May be called from anywhere, also from nodes and hooks. A child of fork has no hooks.
 *
 * While there are no hooks and no trace records, a run pays for one read of a word.
 *
 * Errors: INVALID_ARGUMENT (struct_size, no function); RESOURCE_EXHAUSTED (memory, or runs that do not end keep seven
 * or eight sets of hooks that were taken away).
 */
WEIR_API WEIR_NODISCARD weir_status weir_trace_set_hooks(const weir_trace_hooks *hooks, void *ctx);

/**
 * From here on these tools are told of runs by markers in their own format, and no others: OR of weir_trace_markers; 0
 * is none, as at the start. A tool names its library by a variable of the environment, which this reads; the library
 * is opened, and stays. Markers go beside the host's hooks and traces. Of runs under way the same holds as for hooks.
 * The variable WEIR_TRACE_MARKERS of the environment ("nvtx", "itt", "nvtx,itt") does the same in the first call of
 * the process.
 *
 * Errors: INVALID_ARGUMENT (an unknown bit); NOT_FOUND (the variable is not set, or its library cannot be opened; the
 * text names it); UNAVAILABLE (the library takes no markers); UNIMPLEMENTED (not Linux); RESOURCE_EXHAUSTED as of
 * weir_trace_set_hooks. Then nothing has changed.
 */
WEIR_API WEIR_NODISCARD weir_status weir_trace_use_markers(uint32_t kinds);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRACE_H */
