/* weir.h: a device layer with a C ABI that runs on your threads
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A weir lets a stream pass where and as fast as it should. weir gives a program engines to compute on, streams of work,
 * events, kernels and compiled graphs, and does all work of the CPU on a thread pool that the program implements. This
 * page and the chapters below are the core; each header in weir/ adds one thing. The map is at the end of the page.
 *
 * The objects
 *
 *     thread pool  yours, or weir's        domain  whose engines these are
 *          |                                  |
 *          +--------------> engine <----------+        a device: memory, and the means to run kernels
 *                             |
 *          +------------------+------------------+
 *          |                  |                  |
 *        stream             tensor            kernel           a queue in order; an array; a function over tensors
 *          |                  |                  |
 *        event                +------------------+
 *     a point in it           |                  |
 *                      weir_enqueue            graph --compile--> program --run--> run
 *                    one kernel, now     nodes and values      immutable       started, waited for
 *
 * Three programs
 *
 * Run a kernel: a built-in one, in place. A C function becomes a kernel with weir_kernel_create_host.
 *
 *     #include <stdio.h>
 *     #include <weir/ops.h>
 *
 *     int main(void) {
 *         const weir_tensor_desc four = {.dtype = WEIR_F32, .rank = 1, .dims = {4}};
 *         const weir_eltwise_desc relu = {.struct_size = sizeof relu, .op = WEIR_ELTWISE_RELU};
 *         float numbers[] = {-1, 2, -3, 4};
 *         const weir_memory memory = {.struct_size = sizeof memory, .data = numbers};
 *         weir_engine *cpu; weir_stream *stream; weir_kernel *kernel; weir_tensor *tensor;
 *         if (weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu) ||
 *             weir_stream_create(cpu, WEIR_STREAM_DEFAULT, NULL, &stream) ||
 *             weir_kernel_create_eltwise(cpu, &relu, NULL, &kernel) ||
 *             weir_tensor_create(cpu, &four, &memory, &tensor) ||
 *             weir_enqueue(stream, kernel, &tensor, 1, &tensor, 1)) return puts(weir_last_error_message()), 1;
 *         printf("%g %g %g %g\n", numbers[0], numbers[1], numbers[2], numbers[3]);
 *         return 0; // a longer program releases what it has created
 *     }
 *
 * Run a graph: built once, compiled once, run as often as you like. Here its nodes are tasks; kernels are added alike.
 *
 *     #include <stdio.h>
 *     #include <weir.h>
 *
 *     static int32_t say(void *text) {
 *         return puts(text) < 0 ? WEIR_UNKNOWN : WEIR_OK;
 *     }
 *
 *     int main(void) {
 *         weir_engine *cpu; weir_graph *graph; weir_program *program; weir_node before, after;
 *         if (weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu) || weir_graph_create("steps", &graph) ||
 *             weir_graph_add_task(graph, "after", say, "then", NULL, 0, &after) ||
 *             weir_graph_add_task(graph, "before", say, "first", NULL, 0, &before) ||
 *             weir_graph_add_control_edge(graph, before, after) ||
 *             weir_graph_compile(graph, &cpu, 1, NULL, &program) ||
 *             weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL)) return puts(weir_last_error_message()), 1;
 *         return 0;
 *     }
 *
 * Lend a pool: two functions are enough; weir asks for nothing else and starts no thread.
 *
 *     #include <stdio.h>
 *     #include <weir.h>
 *
 *     static int32_t threads(void *pool) {
 *         (void)pool; return 1; // besides the caller
 *     }
 *     static int32_t each(void *pool, int32_t n, weir_task_fn task, void *arg) {
 *         for (int32_t i = 0; i < n; i++) task(arg, i); // on your threads, at once
 *         (void)pool; return 0;
 *     }
 *     static int32_t square(void *squares, int64_t begin, int64_t end, int32_t slot) {
 *         for (int64_t i = begin; i < end; i++) ((int64_t *)squares)[i] = i * i;
 *         (void)slot; return WEIR_OK;
 *     }
 *
 *     int main(void) {
 *         const weir_threadpool_vtable mine = {.struct_size = sizeof mine, .num_threads = threads, .parallel_for = each};
 *         int64_t squares[100];
 *         weir_threadpool *pool;
 *         if (weir_threadpool_create(&mine, NULL, NULL, &pool) || weir_parallel_for(pool, 100, NULL, square, squares))
 *             return puts(weir_last_error_message()), 1;
 *         return printf("%d\n", (int)squares[9]) < 0;
 *     }
 *
 * Rules for every call. A description speaks of these things only where a call differs.
 *
 *   Results      Calls return a weir_status, 0 = WEIR_OK. Outputs come last. On failure pointer outputs are NULL and
 *                nothing else is written; elements of arrays are left as they are. Nothing ever aborts the process.
 *   Errors       INVALID_ARGUMENT: NULL where it is not said to be legal, a handle of another kind, an unknown value or
 *                flag, a reserved member that is not 0, a struct_size below the first one, a text that is not UTF-8.
 *                OUT_OF_RANGE: an array of more elements than memory can hold. "Errors" lists the other codes. The text
 *                of the failure (weir_last_error_message) names the call, the argument or object, and the cause.
 *   Threads      Any thread may call, several at once. Settings and builders (weir_*_attr, weir_graph) are for one
 *                thread at a time per object.
 *   Blocking     Never: a call does not wait for work. Those that do say for what and how long.
 *   Ownership    What a create call gives is the caller's. Shared objects have _create, _retain and _release, settings
 *                and builders _create and _destroy. A get call lends: its result lives as long as the object it
 *                came from. An object takes references to what it needs, so you may release in any order. Texts, arrays
 *                and structs are read during the call, and copied if they are needed later. No call takes an argument
 *                away.
 *   Release      _release and _destroy take NULL, cannot fail and never block.
 *   Texts        A name or a path that is given has at most 8191 bytes (else OUT_OF_RANGE). Names of domains, engines,
 *                resources, containers and types have lower limits of their own (else INVALID_ARGUMENT). A text of a
 *                failure is cut at 8191 bytes. A text that is asked for is copied into `buffer`, with its NUL;
 *                *out_length is its length without. With capacity 0 the call only tells the length (buffer may be
 *                NULL); with a buffer out_length may be NULL. If capacity is too small, the call fails with
 *                OUT_OF_RANGE, `buffer` holds an empty text, and *out_length is set.
 *   Structs      One that begins with struct_size may be older or newer than the library: set it to sizeof the struct,
 *                and zero the rest. What only the caller's header has is refused if it is not 0, and filled with zeros
 *                in outputs.
 *   Pools        The pool of the call counts first, then the stream's, then the engine's, then the calling thread. NULL
 *                stands for the last one.
 *   Fork         The child can do what needs no thread, pool or device: products without a pool, and cpu engines,
 *                synchronous streams, kernels, graphs and programs that it makes itself. Inherited objects it can only
 *                release, which does nothing. The rest returns FAILED_PRECONDITION once an engine, a pool or a plug-in's
 *                device has existed. The library stays loaded after dlclose, and does nothing at exit,
 *                but for the trace that WEIR_TRACE asks for (docs/trace.md).
 *
 * The headers and their chapters
 *
 *     weir.h               objects, library, failures, thread pool, engine, tensor, stream, event, everything at
 *                          once, kernel, shapes that a run decides, graph, program, run
 *     weir/memory.h        memory, buffer, pinned memory
 *     weir/task_group.h    task group
 *     weir/domain.h        domain, scopes
 *     weir/control.h       control flow, loops of single nodes
 *     weir/ops.h           matrix products, elementwise, data movement, reductions and normalisation, convolution,
 *                          recurrent cells, kernel cache, matrix products without an engine
 *     weir/resource.h      resources, variable, lookup table
 *     weir/inspect.h       drawings and reports, statistics, costs of a pool, memory figures, runtime
 *     weir/trace.h         trace
 *     weir/comm.h          communicator
 *     weir/device.h        device, native handles
 *     weir/cuda.h          cuda
 *     weir/dlpack.h        exchange
 *     weir/conformance.h   conformance
 *     weir/testing.h       pools for tests, emulated devices
 */

#ifndef WEIR_H
#define WEIR_H


#include <stddef.h>
#include <stdint.h>

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

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Objects ------------------------------------------------------------------------------------------------------
 * The objects that calls take. Each is a pointer to something that only the library can see.
 */

/** A range of an engine's memory, or of the caller's own, that tensors can lie in. Shared: create, retain, release. */
typedef struct weir_buffer weir_buffer;

/**
 * A kernel with its tensors on a stream, checked once and enqueued as often as needed. Shared: create, retain,
 * release.
 */
typedef struct weir_call weir_call;

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

/** A running call as the kernel's compute function sees it. Valid only during that call. */
typedef struct weir_kernel_context weir_kernel_context;

/**
 * A compiled graph: immutable and re-entrant, any number of runs at once. Shared: create (by compile), retain,
 * release.
 */
typedef struct weir_program weir_program;

/** One run of a program that was started with weir_program_start. Shared: create (by start), retain, release. */
typedef struct weir_run weir_run;

/** An in-order queue of work on one engine. Shared: create, retain, release. */
typedef struct weir_stream weir_stream;

/** Settings for weir_stream_create. Owned: create, destroy. */
typedef struct weir_stream_attr weir_stream_attr;

/** A dense array of numbers in an engine's memory, or over memory of the caller's own. Shared: create, retain, release. */
typedef struct weir_tensor weir_tensor;

/**
 * A thread pool of the host (or one of the reference pools). All CPU work runs on such a pool or in the calling
 * thread. Shared: create, retain, release.
 */
typedef struct weir_threadpool weir_threadpool;

/**
 * A timeline of nodes, runs and streams, from weir_trace_start (weir/trace.h) on. Shared: create (by start), retain,
 * release.
 */
typedef struct weir_trace weir_trace;

/* ---- Library ------------------------------------------------------------------------------------------------------
 * The library's version, and the last failure.
 */

/** No time limit. All time-outs are relative and in nanoseconds. */
#define WEIR_TIMEOUT_INFINITE UINT64_MAX

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
typedef enum weir_status_value {
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
  /**
   * An index or a size is outside its range, or a size computation overflows. Numbers of threads and the rank of a
   * tensor are WEIR_INVALID_ARGUMENT instead, where their description says so.
   */
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
  WEIR_DEVICE_LOST = 64
} weir_status_value;

/**
 * The result of a call: 0 (WEIR_OK) or one of the codes of enum weir_status_value. The values up to 15 are Abseil's
 * canonical codes (google/abseil status codes), those from 64 on are weir's own; all are permanent parts of the ABI.
 */
typedef int32_t weir_status;

/** The version of the running library: major << 16 | minor << 8 | patch. */
WEIR_API uint32_t weir_version(void);

/** The version of the running library as text, "0.1.0". */
WEIR_API const char *weir_version_string(void);

/** The number of the binary interface of the running library (WEIR_ABI_VERSION of its header). */
WEIR_API uint32_t weir_abi_version(void);

/**
 * Whether the running library can serve a program that was written for version `major`.`minor`. Call it first after
 * dlopen.
 *
 * Errors: FAILED_PRECONDITION if the library is older, or another major version (another minor one while major is 0).
 */
WEIR_API WEIR_NODISCARD weir_status weir_check_version(uint32_t major, uint32_t minor);

/** The name of a status code, "INVALID_ARGUMENT"; "UNKNOWN_CODE" for an unknown number. */
WEIR_API const char *weir_status_name(weir_status status);

/**
 * The text of the calling thread's last failed weir call: "weir_stream_create: engine is NULL". Successful calls leave
 * it unchanged. A task that moves between threads (goroutine, virtual thread) must read it before it yields.
 *
 * Ownership: valid until this thread's next failing weir call; never NULL, "" if there is none.
 */
WEIR_API const char *weir_last_error_message(void);

/* ---- Failures -----------------------------------------------------------------------------------------------------
 * How a run failed: the node, its engine, its loop, and what was not begun because of it.
 */

/**
 * A failure: of the calling thread's last failed call, of a stream, or of a run. Texts are NUL-terminated UTF-8, cut
 * if they are too long.
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
  /** The text: the object and the cause. A thread's begins with the function that failed. */
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

/**
 * Describes the calling thread's last failed weir call: the code that it returned and the text of
 * weir_last_error_message. Node, engine, iteration and the nodes that were not begun are there if a run failed:
 * weir_program_run, weir_run_synchronize, or a call that reported the late error of a stream. Successful calls leave
 * it unchanged.
 *
 * Errors: INVALID_ARGUMENT (NULL, struct_size, not_run NULL with a capacity).
 */
WEIR_API WEIR_NODISCARD weir_status weir_thread_get_failure(weir_failure *failure);

/**
 * The failure of a run that was started with weir_program_start, as of weir_thread_get_failure; code is WEIR_OK until
 * it is done, and if it succeeded. Reading it changes nothing.
 *
 * Errors: INVALID_ARGUMENT (NULL, struct_size, not_run NULL with a capacity).
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_get_failure(const weir_run *run, weir_failure *failure);

/**
 * The stream's failure, as of weir_thread_get_failure; code is WEIR_OK if there is none. Reading it changes nothing.
 *
 * Errors: INVALID_ARGUMENT (NULL, struct_size, not_run NULL with a capacity).
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_get_failure(const weir_stream *stream, weir_failure *failure);

/* ---- Thread pool --------------------------------------------------------------------------------------------------
 * A pool is yours: fill a weir_threadpool_vtable with parallel_for, schedule or both, and weir runs all work on it.
 * NULL stands for "the calling thread" wherever a pool is asked for, but for an engine whose thread mode says
 * otherwise. The pool of the call counts first, then the stream's, then the engine's, then the caller. weir never
 * waits for a closure that your pool has not begun.
 */

/** For weir_threadpool_options.spin_ns: threads without work sleep at once. */
#define WEIR_SPIN_NONE UINT64_MAX

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
  WEIR_THREADPOOL_OWN_THREADS_ONLY = 8
} weir_threadpool_flags;

/**
 * One closure of weir's: call it as task(arg, i). It never unwinds, never blocks on another closure of weir's, and may
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
   * Calls task(arg, i) exactly once for each 0 <= i < n, on any threads, in any order, at once or one after the
   * other. Returns 0 when all have returned (with WEIR_THREADPOOL_ASYNCHRONOUS: when all are accepted), nonzero if
   * none was and will be called.
   */
  int32_t (*parallel_for)(void *ctx, int32_t n, weir_task_fn task, void *arg);
  /**
   * Calls task(arg, 0) exactly once, on any thread, at any time, even before it returns. Returns 0, or nonzero if
   * it refuses: then task is never called and weir does the work elsewhere.
   */
  int32_t (*schedule)(void *ctx, weir_task_fn task, void *arg, const weir_task_hint *hint);
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

/** Options of a new pool. All-zero, and NULL, is the default. */
typedef struct weir_threadpool_options {
  /** sizeof(weir_threadpool_options) of the caller's header. */
  size_t struct_size;
  /**
   * For weir_threadpool_create_builtin: the number of threads, 1 to 256; 0 = one for each processor that this
   * process may use (affinity mask and cgroup limit), or WEIR_NUM_THREADS from the environment.
   */
  int32_t num_threads;
  /**
   * For weir_threadpool_create: 1 = the pool is checked, 0 = not. A pool in checking mode is verified on the work
   * that it gets anyway: a task run twice, lost, or run after refusal, a wrong index, a parallel_for that returns
   * early, threads with a wrong in_parallel or thread_index. A faulty pool never affects weir's work: each piece is
   * still done once. The first clause that it breaks is kept (weir_threadpool_get_broken_clause). From then on the
   * pool gets no more work, the callers do all of it, and weir_parallel_for, weir_stream_synchronize,
   * weir_run_synchronize, and calls on synchronous streams that use the pool return FAILED_PRECONDITION with the
   * clause after finishing their work. A task that the pool accepted and has not begun after five seconds counts as
   * lost, and a later call of weir runs it. Each task costs a few microseconds and an allocation more, also where
   * later calls allocate nothing otherwise.
   */
  int32_t checking;
  /**
   * For weir_threadpool_create_builtin: how long a thread without work spins before it sleeps, in nanoseconds, at
   * most one second; 0 = 20 us, WEIR_SPIN_NONE = not at all.
   */
  uint64_t spin_ns;
  /**
   * The costs of the pool's threads, for a host that knows them; NULL = to be measured. Shared regions refine the
   * figures all the same.
   */
  const weir_threadpool_costs *costs;
} weir_threadpool_options;

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

/** Releases what a callback's context holds. Runs exactly once, after the last use, on any thread. */
typedef void (*weir_destroy_fn)(void *ctx);

/**
 * Creates a pool of host threads. The vtable is copied; `ctx` is passed to its functions. Several pools may exist, and
 * one pool may serve any number of engines and streams. weir calls vtable->release(ctx) exactly once, after the last
 * reference is gone and the last task returned, or in weir_threadpool_close; if this call fails, it is never called.
 * Knowledge about a pool applies to all pools with the same functions, flags and width, so a host may create a pool
 * for each call: that costs no memory after the first, and no system call. options may be NULL; what they say for a
 * built-in pool only is refused.
 *
 * Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, num_threads missing, neither parallel_for nor schedule;
 * options that are not for a host's pool).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_create(const weir_threadpool_vtable *vtable,
                                   void *ctx,
                                   const weir_threadpool_options *options,
                                   weir_threadpool **out_pool);

/**
 * The pool as a vtable: for a library that needs one, for a host that wraps a pool, or for
 * weir_threadpool_conformance. *out_ctx is a reference to the pool, and vtable->release gives it up.
 *
 * Ownership: the caller owns *out_ctx until it calls out_vtable->release(*out_ctx), or passes both to a call that
 * does. Errors: INVALID_ARGUMENT (NULL, out_vtable->struct_size, to be set before the call); FAILED_PRECONDITION if
 * the pool is closed.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_get_vtable(weir_threadpool *pool,
                                       weir_threadpool_vtable *out_vtable,
                                       void **out_ctx);

/**
 * Creates weir's own work-stealing pool. weir_runtime_get_info counts its threads. options may be NULL; what they
 * say for a host's pool only is refused.
 *
 * Errors: INVALID_ARGUMENT (an option's value, or one that is not for a built-in pool; WEIR_NUM_THREADS);
 * RESOURCE_EXHAUSTED if threads cannot be started.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_create_builtin(const weir_threadpool_options *options,
                                           weir_threadpool **out_pool);

/** Creates a pool without threads: all work runs at once in the calling thread. */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_create_inline(weir_threadpool **out_pool);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_retain(weir_threadpool *pool);

/**
 * Gives up one reference. NULL does nothing. Engines, streams and queued work hold references of their own. If the
 * last reference goes inside a task of the pool itself, vtable->release comes with the next call of weir from
 * elsewhere; weir_threadpool_release(NULL) is such a call.
 *
 * Blocking: never (a built-in pool's threads end by themselves).
 */
WEIR_API void weir_threadpool_release(weir_threadpool *pool);

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
 * The host may run them at any later time, after release too: a helper that starts after the close returns at once. If
 * the host drops it instead, the pool's memory (some 40 KB) is never freed.
 *
 * May be called several times and by several threads at once: all return when the first has finished, and later calls
 * succeed at once. DEADLINE_EXCEEDED: a thread was still inside; call again to wait on. With timeout_ns 0 it closes
 * the pool and polls once. A pool of weir's own ends its threads. See docs/call_pools.md for pools that belong to a
 * call.
 *
 * Blocking: until no work of weir's is inside, or timeout_ns have passed (WEIR_TIMEOUT_INFINITE = no limit), and for
 * as long as vtable->release takes. Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION inside of a task of the pool and on
 * a device's thread: then the pool stays open.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_close(weir_threadpool *pool, uint64_t timeout_ns);

/**
 * The current number of threads of the pool: vtable->num_threads, at least 1. The inline pool has 1.
 *
 * Errors: FAILED_PRECONDITION if the pool is closed.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_get_num_threads(const weir_threadpool *pool,
                                            int32_t *out_num_threads);

/** The pool's flags: OR of weir_threadpool_flags. */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_get_flags(const weir_threadpool *pool, uint64_t *out_flags);

/** The pool's id: no other pool in this process ever has it. weir_thread_info.pool is such an id. */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_get_id(const weir_threadpool *pool, uint64_t *out_id);

/**
 * Whether the calling thread runs a task of this pool (1) or not (0), according to vtable->in_parallel, or else to
 * weir's own tasks.
 *
 * Errors: FAILED_PRECONDITION if the pool is closed.
 */
WEIR_API WEIR_NODISCARD weir_status weir_threadpool_in_parallel(const weir_threadpool *pool, int32_t *out_in_parallel);

/**
 * Runs fn over the items 0 <= i < n in pieces, on the pool and in the calling thread, and returns when all are done. A
 * NULL pool means the calling thread alone. `hint` may be NULL. May be called from inside a task of the pool; then it
 * never waits for a piece that no thread has begun. A region that is too small to be worth a thread runs in the
 * caller; the limit follows from the costs of the pool's threads (weir_threadpool_get_costs).
 *
 * Blocking: until all pieces have returned. Errors: OUT_OF_RANGE (n < 0); else the first nonzero status that fn
 * returned; pieces not begun by then are skipped. FAILED_PRECONDITION if a pool in checking mode has broken a clause;
 * then all is done.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_parallel_for(weir_threadpool *pool,
                              int64_t n,
                              const weir_parallel_hint *hint,
                              weir_range_fn fn,
                              void *arg);

/**
 * As weir_parallel_for, over a box of points in 1 to WEIR_MAX_RANK dimensions: 0 <= i[d] < extents[d]. `extents` and
 * `tile` have `rank` elements. Pieces are boxes of whole tiles; tile[d] is the size of a tile in dimension d. With 0
 * (or a NULL tile) weir chooses: whole lines, planes and so on up to about a microsecond of work. hint->cost_ns is per
 * point.
 *
 * Blocking: until all pieces have returned. Errors: INVALID_ARGUMENT (rank, tile, hint); OUT_OF_RANGE (a negative
 * extent, too many points); else the first nonzero status that fn returned; pieces not begun by then are skipped.
 * FAILED_PRECONDITION as of weir_parallel_for.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_parallel_nd(weir_threadpool *pool,
                             int32_t rank,
                             const int64_t *extents,
                             const int64_t *tile,
                             const weir_parallel_hint *hint,
                             weir_box_fn fn,
                             void *arg);

/* ---- Engine -------------------------------------------------------------------------------------------------------
 * An engine is a device: memory, and the means to run kernels. A CPU engine may carry a pool: one of yours, or one
 * that weir starts because its thread mode says so. The environment may decide the rest, read once per process.
 * WEIR_THREAD_MODE: global, private, kind or caller, in any case of letters; for engines that were given neither a
 * mode nor a pool. WEIR_THREAD_COUNT: 0 to 256, as in weir_engine_attr_set_thread_count. Any other value is
 * INVALID_ARGUMENT where it would be used.
 */

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
  WEIR_ENGINE_EMULATED = 3
} weir_engine_kind_value;

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
  WEIR_WAIT_YIELD = 2
} weir_wait_policy_value;

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
  WEIR_THREAD_MODE_CALLER = 4
} weir_thread_mode_value;

/** The kind of an engine: one of enum weir_engine_kind_value. */
typedef uint32_t weir_engine_kind;

/** The source of an engine's threads: one of enum weir_thread_mode_value. */
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

/**
 * The first number of plug-in kinds. Kinds are numbered in the order in which their names were first registered in the
 * process (weir_engine_kind_from_name).
 */
#define WEIR_ENGINE_PLUGIN_FIRST 4096

/** Creates settings for engines of one kind, all default. */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_create(weir_engine_kind kind, weir_engine_attr **out_attr);

/** Destroys settings. NULL does nothing. */
WEIR_API void weir_engine_attr_destroy(weir_engine_attr *attr);

/** The kind of engine that the settings are for. */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_get_kind(const weir_engine_attr *attr, weir_engine_kind *out_kind);

/**
 * The pool on which the engine's work runs unless a stream or a call has its own. NULL = none (the default): the
 * thread mode decides, and without one the calling thread does the work. For an accelerator's engine, whose device
 * does the work, it runs the host functions on the engine's streams (weir_enqueue_task).
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_threadpool(weir_engine_attr *attr, weir_threadpool *pool);

/** The pool that was set, or NULL. */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_threadpool(const weir_engine_attr *attr,
                                            weir_threadpool **out_pool);

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
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_thread_mode(weir_engine_attr *attr, weir_thread_mode mode);

/** The mode that was set, or WEIR_THREAD_MODE_GLOBAL. In the attributes of an engine: its actual mode. */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_thread_mode(const weir_engine_attr *attr,
                                             weir_thread_mode *out_mode);

/**
 * Number of threads that weir starts for the engine in mode PRIVATE, and for the first engine of its kind in mode
 * KIND; the other modes start none. 0 = as many as weir_threadpool_create_builtin starts by default. A count that was
 * set comes before WEIR_THREAD_COUNT from the environment; without either it is 0. An engine in mode KIND with a count
 * other than 0 is refused if its kind already has another number of threads; one without a count joins them.
 *
 * Errors: INVALID_ARGUMENT (NULL, count above 256); FAILED_PRECONDITION if the attribute's kind is not CPU: an engine
 * of another kind has one weir thread or none, depending on its mode.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_thread_count(weir_engine_attr *attr, uint32_t count);

/**
 * The number of threads that was set, or 0. In the attributes of an engine that weir has started threads for: the
 * actual number.
 *
 * Errors: FAILED_PRECONDITION if the attribute's kind is not CPU.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_thread_count(const weir_engine_attr *attr,
                                              uint32_t *out_count);

/**
 * Maximum number of streams of the engine over which one run of a program spreads its work on it; 0 = as many as there
 * is parallel work, up to four. 1 is the default: more streams pay off only where single kernels leave the device
 * idle. The program's report (weir_program_report) has the result. A CPU engine ignores it.
 *
 * Errors: INVALID_ARGUMENT (NULL, count above 64).
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_max_streams(weir_engine_attr *attr, uint32_t count);

/** The maximum number of streams that was set, or 1. */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_get_max_streams(const weir_engine_attr *attr, uint32_t *out_count);

/**
 * How threads wait for work on the engine's device, in waits for streams, events, engines and all devices. They poll
 * for spin_ns nanoseconds, at most one second, and then follow the policy. WEIR_WAIT_DEFAULT is the default and takes
 * no spin_ns: a CUDA device is polled for 30 us before a thread sleeps. The spin budget of a stream
 * (weir_stream_attr_set_spin_ns) comes first, and applies to that stream only.
 *
 * Errors: INVALID_ARGUMENT (NULL, unknown policy, spin_ns too large); FAILED_PRECONDITION if the attribute's kind is
 * CPU.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_wait_policy(weir_engine_attr *attr,
                                             weir_wait_policy policy,
                                             uint64_t spin_ns);

/**
 * The policy and the spin budget that were set.
 *
 * Errors: FAILED_PRECONDITION if the attribute's kind is CPU.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_wait_policy(const weir_engine_attr *attr,
                                             weir_wait_policy *out_policy,
                                             uint64_t *out_spin_ns);

/**
 * The number of engines of a kind that this machine offers. A kind that this build or machine lacks has 0; that is no
 * error.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_count(weir_engine_kind kind, uint32_t *out_count);

/**
 * Creates an engine for device `index` of a kind. NULL attr = all default. Several engines for one device may exist.
 * If the thread mode asks for threads, they are started here; if one cannot be started, the others end and the call
 * fails.
 *
 * Blocking: never for CPU engines, except for the time to start threads. For others as long as opening the device
 * takes, and up to a second if the device was just released with other settings. Errors: INVALID_ARGUMENT (also an
 * attr of another kind, a pool together with a mode other than GLOBAL, or a meaningless value of WEIR_THREAD_MODE or
 * WEIR_THREAD_COUNT); OUT_OF_RANGE (index); RESOURCE_EXHAUSTED if threads cannot be started; FAILED_PRECONDITION if
 * engines of this kind already share another number of threads; UNAVAILABLE or UNIMPLEMENTED if this machine or build
 * has no such device.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_create(weir_engine_kind kind,
                               uint32_t index,
                               const weir_engine_attr *attr,
                               weir_engine **out_engine);

/**
 * Creates an engine for each device of this machine, of all kinds, with default settings: in ascending order of kinds
 * and indices, so that the CPU's is the first, as weir_graph_compile expects. Emulated devices are left out: a host
 * creates those itself. *out_count is the number of devices. A call with capacity 0 only asks for it; all engines are
 * created, or none.
 *
 * Blocking: as weir_engine_create, for each. Errors: OUT_OF_RANGE if capacity is not 0 and too small (*out_count is
 * set, no engine is created); those of weir_engine_create, with the name of the device.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_create_all(weir_engine **out_engines,
                                   size_t capacity,
                                   size_t *out_count);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_engine_retain(weir_engine *engine);

/**
 * Gives up one reference. NULL does nothing. Streams, tensors, kernels and programs hold references of their own. The
 * last reference ends the threads of a private pool, and those of the kind if no other engine shares them, even when
 * it goes inside one of their tasks: they finish the queued work and then end by themselves. A reference to the pool
 * (weir_engine_get_threadpool, weir_threadpool_retain) keeps them.
 */
WEIR_API void weir_engine_release(weir_engine *engine);

/**
 * The settings that the engine was created with, with its actual thread mode and thread count.
 *
 * Ownership: do not destroy it.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_get_attr(const weir_engine *engine, const weir_engine_attr **out_attr);

/** The thread pool that the engine's work runs on, whether it was given or started by weir; NULL = the calling thread. */
WEIR_API WEIR_NODISCARD weir_status weir_engine_get_threadpool(const weir_engine *engine, weir_threadpool **out_pool);

/** Fills *out_info with information about the engine's device. */
WEIR_API WEIR_NODISCARD weir_status weir_engine_get_info(const weir_engine *engine, weir_engine_info *out_info);

/**
 * Waits until all work is done that was queued on the engine's streams before this call, but not for later work.
 * Returns the engine's first late error that this call has not returned yet. Streams, domains and weir_sync_devices
 * still report their errors, and their reports take nothing away from this call.
 *
 * Blocking: until done, or timeout_ns have passed (0 = poll once, WEIR_TIMEOUT_INFINITE = no limit). Meanwhile it runs
 * queued work, as weir_stream_synchronize does. Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION if waiting here would
 * block a worker that the work needs, and always inside of anything that weir has called, as of weir_sync_devices;
 * else a late error.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_synchronize(weir_engine *engine, uint64_t timeout_ns);

/* ---- Tensor -------------------------------------------------------------------------------------------------------
 * A tensor is a dense, row-major array in an engine's memory, or over memory of yours.
 */

/** A dimension that is known only at run time, or that matches anything in a kernel's signature. */
#define WEIR_DIM_DYNAMIC -1

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
  /** Signed 64-bit integer, two's complement. */
  WEIR_S64 = 8
} weir_dtype_value;

/** Limits of the API. */
typedef enum weir_limit {
  /** Maximum number of dimensions of a tensor. */
  WEIR_MAX_RANK = 8,
  /** Maximum number of inputs, and of outputs, of one kernel. */
  WEIR_MAX_ARGS = 64
} weir_limit;

/** The source of a tensor's or a buffer's memory, if it is not new memory of its engine. */
typedef enum weir_memory_source_value {
  /** Memory of the caller's that the engine's kernels can reach. */
  WEIR_MEMORY_FOREIGN = 0,
  /** A part of a buffer, for a tensor. */
  WEIR_MEMORY_BUFFER = 1,
  /** New host memory that a device copies directly from and to, for an object of a CPU engine. */
  WEIR_MEMORY_PINNED = 2
} weir_memory_source_value;

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

/** A source of memory: one of enum weir_memory_source_value. */
typedef uint32_t weir_memory_source;

/** Memory for weir_tensor_create and weir_buffer_create. */
typedef struct weir_memory {
  /** sizeof(weir_memory), set by the caller. */
  size_t struct_size;
  /** The source, which says which members below count; the others are 0. */
  weir_memory_source source;
  /** 0. */
  uint32_t reserved;
  /** FOREIGN: the elements, dense and row-major, aligned to the element size. NULL only for no bytes. */
  void *data;
  /**
   * FOREIGN: size of the memory at data; 0 = as large as the object. For a tensor whose shape a run decides it is
   * the most that a run may store.
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
  weir_buffer *buffer;
  /** BUFFER: byte of the buffer that the tensor begins at. */
  size_t offset;
  /**
   * PINNED: an engine. Copies between the object and this engine's memory proceed by themselves, while copies of
   * other memory may be staged, or block the submitting thread. Engines that cannot pin (`pinning` of
   * weir_memory_info is 0), and CPU engines, get ordinary memory; no error is returned. The memory is
   * counted in weir_memory_info of this engine, under its limit, and returns to it; the object may outlive both.
   */
  weir_engine *device;
} weir_memory;

/** A tensor as a kernel sees it. */
typedef struct weir_tensor_view {
  /** First element. */
  void *data;
  /** Size of the data in bytes. */
  size_t bytes;
  /** Element type and shape. */
  weir_tensor_desc desc;
} weir_tensor_view;

/** The name of an element type, "f32"; "?" for an unknown number. */
WEIR_API const char *weir_dtype_name(weir_dtype dtype);

/** The size of an element in bytes. */
WEIR_API WEIR_NODISCARD weir_status weir_dtype_size(weir_dtype dtype, size_t *out_bytes);

/**
 * Creates a tensor. `from` NULL: in new memory of the engine's, zeros on a CPU engine, any contents on others
 * (weir_enqueue_fill); else in the memory that it names, as it is, or zeros in pinned memory.
 *
 * A `desc` with dimensions of WEIR_DIM_DYNAMIC makes a tensor whose shape is decided by the run that writes it: it is
 * passed to runs as an output whose shape is open, and may be an input of such a shape. A run whose output shape does
 * not match `desc` fails. Until a run has succeeded the open dimensions are 0. Its memory is the engine's and grows,
 * or is FOREIGN; weir_tensor_get_desc, weir_tensor_get_data and weir_tensor_get_size describe the last run's output,
 * and addresses obtained before are no longer valid. FOREIGN memory stays where it is: a run whose output does not fit
 * fails with OUT_OF_RANGE and both sizes in its text, and leaves all its dynamic outputs unchanged.
 *
 * Thread safety: any thread; reading a tensor while a run writes it is a race. Blocking: never; as long as the device
 * takes to pin memory, when another region of it is needed. Errors: INVALID_ARGUMENT (NULL, unknown dtype, rank,
 * negative dimension; of from: its source, members that do not belong to it, NULL or misaligned data, a buffer of
 * another engine, PINNED for an engine that is no CPU engine, open dimensions in a buffer or pinned memory);
 * OUT_OF_RANGE if the size overflows, or the memory is too small; UNIMPLEMENTED (open dimensions on an accelerator's
 * engine); RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_tensor_create(weir_engine *engine,
                               const weir_tensor_desc *desc,
                               const weir_memory *from,
                               weir_tensor **out_tensor);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_tensor_retain(weir_tensor *tensor);

/** Gives up one reference. NULL does nothing. Queued work holds references of its own. */
WEIR_API void weir_tensor_release(weir_tensor *tensor);

/** Element type and shape. */
WEIR_API WEIR_NODISCARD weir_status weir_tensor_get_desc(const weir_tensor *tensor, weir_tensor_desc *out_desc);

/**
 * Address of the first element, in the engine's memory; only on a CPU engine may the host use it. Reading or writing
 * it while queued work uses it is a race.
 */
WEIR_API WEIR_NODISCARD weir_status weir_tensor_get_data(const weir_tensor *tensor, void **out_data);

/** Size of the elements in bytes. */
WEIR_API WEIR_NODISCARD weir_status weir_tensor_get_size(const weir_tensor *tensor, size_t *out_bytes);

/** The engine whose memory the tensor is in. */
WEIR_API WEIR_NODISCARD weir_status weir_tensor_get_engine(const weir_tensor *tensor, weir_engine **out_engine);

/* ---- Stream -------------------------------------------------------------------------------------------------------
 * A stream is an in-order queue on an engine. On the CPU it is synchronous unless asked otherwise: calls run in the
 * calling thread and return their own errors. An asynchronous stream that fails keeps its first error, skips what is
 * queued behind it, reports it once when it is waited for, and refuses new work until the error is cleared. The queue
 * has no bound: whoever submits faster than the stream works fills the memory.
 */

/** Flags of weir_stream_create. */
typedef enum weir_stream_flags {
  /** In order; on the CPU the work runs before the enqueuing call returns. */
  WEIR_STREAM_DEFAULT = 0,
  /** In order; enqueuing calls return at once. The same as weir_stream_attr_set_asynchronous(attr, 1). */
  WEIR_STREAM_ASYNCHRONOUS = 1
} weir_stream_flags;

/**
 * A host function that runs as one piece of work: on a stream (weir_enqueue_task) or as a node of a graph
 * (weir_graph_add_task). Returns WEIR_OK or the code of its failure. Must not throw, longjmp or unwind.
 */
typedef int32_t (*weir_host_fn)(void *arg);

/**
 * Receives the end of a run, or of the record of an event; called once for each. `status` is how it ended: WEIR_OK,
 * the first node's failure, CANCELLED, DEADLINE_EXCEEDED, or ABORTED if the stream had failed before. `run` is the
 * run, borrowed for the call; NULL for an event, and for a run of weir_program_run. Must not throw, longjmp or unwind.
 */
typedef void (*weir_notify_fn)(void *ctx, weir_status status, weir_run *run);

/**
 * How the host is told that something is over: by a function, by an eventfd, or by both, the function first. For
 * weir_run_notify, weir_event_notify, weir_task_group_notify and weir_run_options.
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

/** Creates settings for streams on engines of one kind, all default. */
WEIR_API WEIR_NODISCARD weir_status weir_stream_attr_create(weir_engine_kind kind, weir_stream_attr **out_attr);

/** Destroys settings. NULL does nothing. */
WEIR_API void weir_stream_attr_destroy(weir_stream_attr *attr);

/** The kind of engine that the settings are for. */
WEIR_API WEIR_NODISCARD weir_status weir_stream_attr_get_kind(const weir_stream_attr *attr, weir_engine_kind *out_kind);

/**
 * The pool on which the stream's work runs. NULL (the default) = the engine's pool, else the calling thread. On a
 * device's stream it runs the host functions (weir_enqueue_task).
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_attr_set_threadpool(weir_stream_attr *attr, weir_threadpool *pool);

/** The pool that was set, or NULL. */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_attr_get_threadpool(const weir_stream_attr *attr,
                                            weir_threadpool **out_pool);

/** Whether enqueuing calls return before the work is done (1) or after it (0, the default on the CPU). */
WEIR_API WEIR_NODISCARD weir_status weir_stream_attr_set_asynchronous(weir_stream_attr *attr, int32_t asynchronous);

/** The value set by weir_stream_attr_set_asynchronous. */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_attr_get_asynchronous(const weir_stream_attr *attr,
                                              int32_t *out_asynchronous);

/**
 * How long a thread that waits for the stream spins before it sleeps, in nanoseconds; 0 = not at all. Default 20 us,
 * at most one second.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_attr_set_spin_ns(weir_stream_attr *attr, uint64_t spin_ns);

/** The spin budget that was set, in nanoseconds. */
WEIR_API WEIR_NODISCARD weir_status weir_stream_attr_get_spin_ns(const weir_stream_attr *attr, uint64_t *out_spin_ns);

/**
 * Priority, -100 to 100; 0 = normal (the default). The pool receives it as weir_task_hint.priority.
 *
 * Errors: OUT_OF_RANGE.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_attr_set_priority(weir_stream_attr *attr, int32_t priority);

/** The priority that was set. */
WEIR_API WEIR_NODISCARD weir_status weir_stream_attr_get_priority(const weir_stream_attr *attr, int32_t *out_priority);

/** A name for error texts, UTF-8. Without one a stream is called "stream 7". */
WEIR_API WEIR_NODISCARD weir_status weir_stream_attr_set_name(weir_stream_attr *attr, const char *name);

/** Copies the name that was set, "" if none. */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_attr_get_name(const weir_stream_attr *attr,
                                      char *buffer,
                                      size_t capacity,
                                      size_t *out_length);

/**
 * Creates a stream on an engine. NULL attr = all default. `flags` is OR of weir_stream_flags and adds to the
 * attribute. An asynchronous stream needs a pool that takes single tasks; on any other pool, or without one, it starts
 * one dedicated thread, which weir_runtime_get_info counts. On a pool that runs closures at once, or refuses them, the
 * work runs in the enqueuing call after all; what a function of a stream enqueues runs behind that function.
 *
 * Errors: RESOURCE_EXHAUSTED if a dedicated thread cannot be started.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_stream_create(weir_engine *engine,
                               uint64_t stream_flags,
                               const weir_stream_attr *attr,
                               weir_stream **out_stream);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_stream_retain(weir_stream *stream);

/**
 * Gives up one reference. NULL does nothing. Queued work still runs; only weir_engine_synchronize and
 * weir_sync_devices can then report its errors.
 */
WEIR_API void weir_stream_release(weir_stream *stream);

/** The engine that the stream is on. */
WEIR_API WEIR_NODISCARD weir_status weir_stream_get_engine(const weir_stream *stream, weir_engine **out_engine);

/** The thread pool that was set for the stream, or NULL if none was (then the engine's is used). There is no setter. */
WEIR_API WEIR_NODISCARD weir_status weir_stream_get_threadpool(const weir_stream *stream, weir_threadpool **out_pool);

/**
 * The settings that the stream was created with.
 *
 * Ownership: do not destroy it.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_get_attr(const weir_stream *stream, const weir_stream_attr **out_attr);

/**
 * Runs fn(arg) as one piece of the stream's work. If it returns anything but WEIR_OK, an asynchronous stream has
 * failed. `destroy` (may be NULL) is called with arg after fn returned, or when fn is skipped after a failure; not if
 * this call is refused. (A failure of fn itself is no refusal.) On a device's stream fn runs when the device has
 * reached it, on the pool of the stream or its engine, or on a thread of the stream's own if neither takes single
 * tasks; later work is submitted to the device when fn has returned.
 *
 * Blocking: until fn returned on a synchronous stream, never on an asynchronous one. Ownership: arg passes to the
 * stream if destroy is given. Errors: FAILED_PRECONDITION if the stream has failed, or if a synchronous stream is used
 * from inside its own work; on a synchronous stream also fn's status.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_enqueue_task(weir_stream *stream,
                              weir_host_fn fn,
                              void *arg,
                              weir_destroy_fn destroy);

/**
 * Waits until all work is done that was queued on the stream before this call. Returns the stream's failure the first
 * time; after that WEIR_OK, while the stream stays failed (weir_stream_get_failure) and refuses work until
 * weir_stream_clear_error.
 *
 * Blocking: until done, or timeout_ns have passed (0 = poll once, WEIR_TIMEOUT_INFINITE = no limit). It runs work that
 * has not begun in this thread, and so may end late by one item of it; with a time-out it leaves that to the stream's
 * pool for 50 ms first (docs/waiting.md). Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION if called from the stream's
 * own work, or in a worker of a pool while no thread is doing the work; else the stream's failure.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_synchronize(weir_stream *stream, uint64_t timeout_ns);

/** Whether everything queued so far is done (1) or not (0), regardless of failure. */
WEIR_API WEIR_NODISCARD weir_status weir_stream_query(const weir_stream *stream, int32_t *out_done);

/**
 * Clears the stream's failure, for device synchronisation too. Work enqueued from now on runs again; work enqueued
 * before stays skipped.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_clear_error(weir_stream *stream);

/**
 * Makes the stream's later work wait until the event, as last recorded before this call, has been reached. An event
 * that was never recorded is no wait. If the event's stream had failed, an asynchronous stream fails with ABORTED and
 * the origin's text; a synchronous one returns them.
 *
 * Blocking: never on an asynchronous stream; on a synchronous one until the event is reached. Errors:
 * FAILED_PRECONDITION if the stream has failed, or if a synchronous stream's wait would block a worker or, as the
 * event's stream waits for this one, never end.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_wait_event(weir_stream *stream, weir_event *event);

/**
 * Copies the elements of one tensor to another of the same type and shape. The two may be on two engines: then the
 * stream is of one of them, and of a device if one of them is. Between devices that cannot reach each other's memory,
 * above all those of two kinds, the copy goes through host memory: it then begins when the stream has reached it, on a
 * stream created for it, and the stream continues when it is over. CPU tensors that a device copies from or to must
 * stay alive and unchanged until the copy is done.
 *
 * Blocking: until done on a synchronous stream, never on others. Ownership: the work holds references to both tensors
 * until it is done. Errors: INVALID_ARGUMENT (also another type or shape, memory in common, a dynamic tensor, engines
 * that the stream cannot reach); FAILED_PRECONDITION if the stream has failed, or if a synchronous stream is used from
 * inside its own work; errors of the device, at once or late.
 */
WEIR_API WEIR_NODISCARD weir_status weir_enqueue_copy(weir_stream *stream, weir_tensor *source, weir_tensor *target);

/**
 * Sets every byte of a tensor to `value`. The tensor is on the stream's device; CPU engines share theirs.
 *
 * Blocking: until done on a synchronous stream, never on others. Ownership: the work holds a reference to the tensor
 * until it is done. Errors: INVALID_ARGUMENT (also value not 0 to 255, a dynamic tensor, a tensor of another device);
 * FAILED_PRECONDITION if the stream has failed, or if a synchronous stream is used from inside its own work; errors of
 * the device, at once or late.
 */
WEIR_API WEIR_NODISCARD weir_status weir_enqueue_fill(weir_stream *stream, weir_tensor *tensor, int32_t value);

/* ---- Event --------------------------------------------------------------------------------------------------------
 * An event marks a point in a stream, for other streams and threads to wait for, and for time.
 */

/** Flags of weir_event_create. */
typedef enum weir_event_flags {
  /** No time stamp. */
  WEIR_EVENT_DEFAULT = 0,
  /** Records the time at which the stream reached the event, for weir_event_elapsed_ns. */
  WEIR_EVENT_TIMING = 1
} weir_event_flags;

/** Creates an event, not yet recorded. `event_flags` is OR of weir_event_flags. */
WEIR_API
WEIR_NODISCARD
weir_status weir_event_create(weir_engine *engine,
                              uint64_t event_flags,
                              weir_event **out_event);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_event_retain(weir_event *event);

/** Gives up one reference. NULL does nothing. A recorded event may be released before it is reached. */
WEIR_API void weir_event_release(weir_event *event);

/**
 * Records the event after everything queued on the stream so far. Recording again moves it; waits that began for the
 * earlier record still wait for that one.
 *
 * Blocking: never on an asynchronous stream. Errors: INVALID_ARGUMENT (also a stream of another device than the
 * event's); FAILED_PRECONDITION if a synchronous stream is used from inside its own work. On a failed stream the
 * record is legal, and the event carries the failure.
 */
WEIR_API WEIR_NODISCARD weir_status weir_event_record(weir_event *event, weir_stream *stream);

/**
 * Whether the event, as last recorded, has been reached (1) or not (0). An event that was never recorded counts as
 * reached.
 */
WEIR_API WEIR_NODISCARD weir_status weir_event_query(const weir_event *event, int32_t *out_done);

/**
 * Waits until the event, as last recorded before this call, has been reached. Returns at once if it was never
 * recorded.
 *
 * Blocking: until reached, or timeout_ns have passed (0 = poll once, WEIR_TIMEOUT_INFINITE = no limit). Meanwhile it
 * runs queued work, as weir_stream_synchronize does. Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION if waiting here
 * would block a worker that the work needs; else the failure of the stream that the event was recorded on, each time.
 */
WEIR_API WEIR_NODISCARD weir_status weir_event_synchronize(weir_event *event, uint64_t timeout_ns);

/**
 * Tells the host when the event, as last recorded before this call, has been reached, as weir_run_notify does for a
 * run. The status is the failure, up to there, of the stream that it was recorded on. If it was never recorded, or has
 * been reached, the notice arrives before the call returns. Recording again, or releasing the event, does not affect
 * earlier notices.
 *
 * Blocking: never; the function and release run here if the event has been reached. Ownership: `notice` is read during
 * the call; its ctx is released with `release`. Errors: INVALID_ARGUMENT (NULL, neither function nor eventfd, an
 * event_fd that is no eventfd or that blocks); RESOURCE_EXHAUSTED (also if the notice thread of an engine cannot be
 * started).
 */
WEIR_API WEIR_NODISCARD weir_status weir_event_notify(weir_event *event, const weir_notice *notice);

/**
 * Nanoseconds from `start` to `end` on the monotonic clock; negative if end was reached first.
 *
 * Errors: FAILED_PRECONDITION if either lacks WEIR_EVENT_TIMING, was never recorded, or has not been reached yet.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_event_elapsed_ns(const weir_event *start,
                                  const weir_event *end,
                                  int64_t *out_ns);

/* ---- Everything at once -------------------------------------------------------------------------------------------
 * One call before you read the clock.
 */

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
 * Blocking: until done or timeout_ns (WEIR_TIMEOUT_INFINITE, 0 = poll once) have passed; in a thread of a pool that
 * the work needs, it helps or refuses. Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION if weir has called the caller,
 * or if waiting here would block a worker that the work needs; a late error (results are filled all the same, and the
 * code is that of the first engine whose status is not WEIR_OK); OUT_OF_RANGE if capacity is too small (out_count is
 * set, nothing was waited for; with capacity 0 `results` is not looked at); INVALID_ARGUMENT (out_count NULL although
 * results or capacity is given, results NULL with a capacity, struct_size).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_sync_devices(uint64_t timeout_ns,
                              weir_engine_sync *results,
                              size_t capacity,
                              size_t *out_count);

/**
 * Measures `fn`, which queues work on `stream`: calls it `repetitions` times, each time on an idle stream, until the
 * stream is idle again, and stores these times in nanoseconds: `out_times` has `repetitions` elements. `stream` NULL =
 * all streams of all engines. A time always includes the wait: if work that was queued meanwhile on another stream of
 * the same domain is not done, the call fails. Use the median; the first times include cold caches and clocks.
 *
 * Thread safety: any thread; other work on the stream counts. Blocking: until all is done. Errors: INVALID_ARGUMENT
 * (NULL, no repetitions); OUT_OF_RANGE (more repetitions than memory can hold times of); FAILED_PRECONDITION (another
 * stream, or as of weir_sync_devices); the status that `fn` returned; a late error of the stream.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_time_ns(weir_stream *stream,
                         weir_host_fn fn,
                         void *arg,
                         size_t repetitions,
                         uint64_t *out_times);

/* ---- Kernel -------------------------------------------------------------------------------------------------------
 * A kernel is a function over tensors with a checked signature: a C function of yours, which sees its call through a
 * weir_kernel_context, one that a device knows by name, or a built-in one (weir/ops.h).
 */

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
   * it (weir_compile_options.blocking_threadpool). A worker of another pool runs it only while that worker waits
   * for it, and only if the pool has not begun it for 50 ms.
   */
  WEIR_KERNEL_MAY_BLOCK = 4,
  /**
   * Shapes may be known only when the body runs. In a graph, inputs may leave dimensions open (WEIR_DIM_DYNAMIC) as
   * far as `inputs` does; the body gets views with the shapes of the run. The body allocates outputs that `outputs`
   * or `infer` leaves open (weir_kernel_context_allocate_output); `infer` is not required for them, and may be given
   * open dimensions. Such kernels run as nodes of graphs, and on a stream if no output is open.
   */
  WEIR_KERNEL_DYNAMIC = 8
} weir_kernel_flags;

/**
 * The body of a host kernel. Inputs, outputs, scratch and the pool come from `context`, which is valid until the
 * function returns. Returns WEIR_OK or the code of its failure; weir_kernel_context_fail adds a text. May run on any
 * thread, several calls at once. Must not throw, longjmp or unwind.
 */
typedef int32_t (*weir_compute_fn)(void *user, weir_kernel_context *context);

/**
 * Computes a host kernel's output descriptors from its input descriptors, when they depend on them. Must give the same
 * answer for the same inputs. Returns WEIR_OK, or the code with which it refuses these inputs.
 */
typedef int32_t (*weir_infer_fn)(void *user,
                                 const weir_tensor_desc *inputs,
                                 size_t num_inputs,
                                 weir_tensor_desc *outputs,
                                 size_t num_outputs);

/**
 * Begins the work of an asynchronous host kernel, and returns without waiting for it. When the work is done, from any
 * thread and at any time, also before this function returns, the host calls weir_completion_done with `done`, once.
 * Until then `context`, the tensors and the scratch memory stay valid. Returns WEIR_OK, or the code of a failure to
 * begin; then the call has failed and weir_completion_done must not be called. May run on any thread, several calls at
 * once. Must not block, throw, longjmp or unwind.
 */
typedef int32_t (*weir_compute_async_fn)(void *user, weir_kernel_context *context, weir_completion *done);

/** A kernel that the host implements. */
typedef struct weir_host_kernel_desc {
  /** sizeof(weir_host_kernel_desc) of the caller's header. */
  size_t struct_size;
  /** Name for error texts and dumps, UTF-8; copied. NULL = "host". */
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
  const weir_tensor_desc *inputs;
  /** Number of outputs, at most WEIR_MAX_ARGS. */
  size_t num_outputs;
  /** Descriptors of the outputs; NULL if `infer` computes them. Copied. */
  const weir_tensor_desc *outputs;
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
  const weir_tensor_desc *inputs;
  /** Number of outputs, at most WEIR_MAX_ARGS. */
  size_t num_outputs;
  /** The outputs' descriptors; NULL if `infer` computes them. Copied. */
  const weir_tensor_desc *outputs;
  /** Optional: computes the outputs' descriptors. Required if num_outputs > 0 and `outputs` is NULL or has a -1. */
  weir_infer_fn infer;
  /** First argument of `infer`. */
  void *user;
  /** Optional: releases `user` when the kernel dies. Not called if the creation fails. */
  weir_destroy_fn destroy;
} weir_named_kernel_desc;

/** Options of a new kernel. All-zero, and NULL, is the default. */
typedef struct weir_kernel_options {
  /** sizeof(weir_kernel_options) of the caller's header. */
  size_t struct_size;
  /** A name for error texts and dumps, UTF-8, which is copied; NULL or "" = the name of the operation, "matmul". */
  const char *name;
  /**
   * Estimated run time of one call, in nanoseconds; 0 = the kernel's own estimate. It guides scheduling and never
   * changes a result.
   */
  uint64_t cost_ns;
  /**
   * Names of members of a built-in kernel's descriptor whose values are read from input tensors at each call instead
   * of from the descriptor, with blanks between them: "begin end step". NULL or "" = none. Each name adds one input
   * after the usual ones, in this order: as many numbers as the member has, s32 or s64 for integers and f32 for
   * floats, of rank 1, or 0 for one number. In the descriptor such a member is 0, or what may stand there until a
   * call has read the tensor. The call checks it as the creation would. Where shapes depend on such members, all
   * dimensions of the outputs are open, for nodes of graphs alone; where the tensors are constants compile knows
   * them as well. For engines of the processor, with these members:
   *
   * eltwise: alpha, beta. slice: begin, end, step. pad: before, after, value. reshape: dims. reduce: axes,
   * num_axes of them. cumsum: axis. topk: k, axis. one_hot: depth. resize: sizes, scales. nms: most_boxes,
   * most_overlap, least_score. tile: counts.
   */
  const char *settings;
} weir_kernel_options;

/**
 * Creates a kernel from a function of the host's.
 *
 * Ownership: desc->user passes to the kernel if desc->destroy is given. Errors: INVALID_ARGUMENT (NULL engine, desc or
 * compute, struct_size, unknown flags, bad signature, bad UTF-8); OUT_OF_RANGE (num_inputs, num_outputs).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_host(weir_engine *engine,
                                    const weir_host_kernel_desc *desc,
                                    weir_kernel **out_kernel);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_retain(weir_kernel *kernel);

/** Gives up one reference. NULL does nothing. Graphs, programs and queued work hold references of their own. */
WEIR_API void weir_kernel_release(weir_kernel *kernel);

/** Describes the kernel. */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_get_info(const weir_kernel *kernel, weir_kernel_info *out_info);

/**
 * Computes the descriptors of the kernel's outputs for inputs of these types and shapes.
 *
 * Errors: INVALID_ARGUMENT (also inputs that the kernel refuses; the text names the input).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_infer(const weir_kernel *kernel,
                              const weir_tensor_desc *inputs,
                              size_t num_inputs,
                              weir_tensor_desc *out_outputs,
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
 * Blocking: until the kernel is done on a synchronous stream, never on an asynchronous one. Ownership: an asynchronous
 * stream, or a kernel with compute_async, takes references to kernel and tensors; else the caller keeps them alive
 * until the call returns. The arrays are copied. Errors: INVALID_ARGUMENT (NULL, count, dtype, shape, overlap, a
 * kernel or a tensor of another device than the stream's; the text names the argument); OUT_OF_RANGE (more than
 * WEIR_MAX_ARGS); FAILED_PRECONDITION if the stream has failed, or for a kernel with compute_async on a synchronous
 * stream in a worker of a pool; RESOURCE_EXHAUSTED; on a synchronous stream also the kernel's own status.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_enqueue(weir_stream *stream,
                         weir_kernel *kernel,
                         weir_tensor *const *inputs,
                         size_t num_inputs,
                         weir_tensor *const *outputs,
                         size_t num_outputs);

/**
 * Prepares a call: a kernel with its tensors on a stream. All that weir_enqueue checks is checked here, once, and the
 * scratch memory that the kernel wants is allocated here. For calls that are repeated with the same tensors, whose
 * numbers may change: besides the kernel's own time a call costs about a third of what weir_enqueue does.
 *
 * Ownership: the call holds references to stream, kernel and tensors; the arrays are copied. Errors: those of
 * weir_enqueue for arguments; RESOURCE_EXHAUSTED (scratch memory).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_call_create(weir_stream *stream,
                             weir_kernel *kernel,
                             weir_tensor *const *inputs,
                             size_t num_inputs,
                             weir_tensor *const *outputs,
                             size_t num_outputs,
                             weir_call **out_call);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_call_retain(weir_call *call);

/** Gives up one reference. NULL does nothing. Queued work holds references of its own. */
WEIR_API void weir_call_release(weir_call *call);

/**
 * Runs a prepared call on its stream, as weir_enqueue would with the same arguments. Any thread may enqueue a call,
 * also before earlier turns are done: its turns come one after another, in the order of the stream.
 *
 * Blocking: as weir_enqueue. Errors: FAILED_PRECONDITION, RESOURCE_EXHAUSTED and the kernel's own status, as
 * weir_enqueue.
 */
WEIR_API WEIR_NODISCARD weir_status weir_call_enqueue(weir_call *call);

/**
 * The inputs, an array of num_inputs views.
 *
 * Thread safety: any thread, during the call. Ownership: borrowed, valid until compute returns.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_get_inputs(const weir_kernel_context *context,
                                           const weir_tensor_view **out_views,
                                           size_t *out_count);

/**
 * The outputs, an array of num_outputs views.
 *
 * Thread safety: any thread, during the call. Ownership: borrowed, valid until compute returns.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_get_outputs(const weir_kernel_context *context,
                                            const weir_tensor_view **out_views,
                                            size_t *out_count);

/**
 * The number of slots that a region of this call can have: pieces that run at once, the calling thread included.
 *
 * Thread safety: any thread, during the call.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_get_num_slots(const weir_kernel_context *context,
                                              int32_t *out_num_slots);

/**
 * The scratch memory of a slot: desc->scratch_bytes bytes, aligned to 64, contents undefined; NULL if
 * scratch_bytes is 0. Slot 0 may be used outside of a region.
 *
 * Thread safety: any thread, during the call. Ownership: borrowed, valid until compute returns. Errors: OUT_OF_RANGE
 * (slot).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_get_scratch(const weir_kernel_context *context,
                                            int32_t slot,
                                            void **out_scratch);

/**
 * As weir_parallel_for, on the pool and with the slots of this call.
 *
 * Thread safety: any thread, during the call. Blocking: until all pieces have returned. Errors: OUT_OF_RANGE (n < 0);
 * CANCELLED if the run was cancelled; else the first nonzero status that fn returned.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_parallel_for(const weir_kernel_context *context,
                                             int64_t n,
                                             const weir_parallel_hint *hint,
                                             weir_range_fn fn,
                                             void *arg);

/**
 * As weir_parallel_nd, on the pool and with the slots of this call. `extents` and `tile` have `rank` elements; `tile`
 * may be NULL.
 *
 * Thread safety: any thread, during the call. Blocking: until all pieces have returned. Errors: OUT_OF_RANGE;
 * CANCELLED if the run was cancelled; else the first nonzero status that fn returned.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_parallel_nd(const weir_kernel_context *context,
                                            int32_t rank,
                                            const int64_t *extents,
                                            const int64_t *tile,
                                            const weir_parallel_hint *hint,
                                            weir_box_fn fn,
                                            void *arg);

/**
 * Whether the run was cancelled or has failed elsewhere (1), so that the result is not needed any more, or not (0).
 *
 * Thread safety: any thread, during the call.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_is_cancelled(const weir_kernel_context *context,
                                             int32_t *out_cancelled);

/**
 * Makes the kernel fail with a code and a text, regardless of the status that compute returns. The first failure
 * counts.
 *
 * Thread safety: any thread, during the call. Errors: INVALID_ARGUMENT (NULL, bad UTF-8, code is WEIR_OK or no code).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_fail(weir_kernel_context *context,
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
 * Thread safety: any thread, once per call. Blocking: never. Later nodes normally run on threads of the pool or in the
 * thread that waits. They run inside this call only if the run's pool runs tasks at once, or refuses them and
 * the run is on an asynchronous stream. Ownership: done ends here. Errors: INVALID_ARGUMENT (NULL, no completion,
 * status is no code, bad UTF-8); FAILED_PRECONDITION if the call was completed before.
 */
WEIR_API WEIR_NODISCARD weir_status weir_completion_done(weir_completion *done, weir_status status, const char *text);

/**
 * Creates a kernel that only the engine's device knows, see weir_named_kernel_desc: one of a plug-in's own. options
 * may be NULL; without a name in them the kernel has the name of the operation.
 *
 * Ownership: desc->user passes to the kernel if desc->destroy is given. Errors: INVALID_ARGUMENT (NULL, struct_size,
 * bad signature, bad UTF-8); OUT_OF_RANGE (num_inputs, num_outputs); UNIMPLEMENTED if the device has no such kernel,
 * or the engine is a CPU engine; else errors of the device.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_named(weir_engine *engine,
                                     const weir_named_kernel_desc *desc,
                                     const weir_kernel_options *options,
                                     weir_kernel **out_kernel);

/**
 * Runs a program `count` times in a region of this call, and returns when all runs are over: run i reads inputs[i *
 * num_inputs ...] and writes outputs[i * num_outputs ...]. So `inputs` has count * num_inputs elements, and `outputs`
 * has count * num_outputs elements. The runs share the pool of the call, and may run at once,
 * so no two runs may share an output. All tensors are checked before the first run begins. The first failure is
 * returned; active runs then end after their running kernels, and the rest is not begun. A cancel or a deadline of the
 * surrounding run ends these runs too. `count` may differ from call to call; 0 does nothing.
 *
 * Thread safety: any thread, during the call. Blocking: until all runs are over. Errors: those of weir_program_run,
 * with the number of the run; OUT_OF_RANGE (count); CANCELLED if the run was cancelled; FAILED_PRECONDITION for a
 * program with kernels that complete later, in a worker of a pool.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_run_program(const weir_kernel_context *context,
                                            weir_program *program,
                                            size_t count,
                                            weir_tensor *const *inputs,
                                            size_t num_inputs,
                                            weir_tensor *const *outputs,
                                            size_t num_outputs);

/* ---- Shapes that a run decides ------------------------------------------------------------------------------------
 * An output may have a shape that only its kernel knows, when it runs: what a tokenizer, a filter or a search finds.
 * Such dimensions are WEIR_DIM_DYNAMIC in every description; the kernel says what they are and gets memory, those
 * behind it see them in their views, and the host reads them from a dynamic tensor.
 */

/**
 * Sets the shape of an open output (WEIR_KERNEL_DYNAMIC), and returns its memory, aligned to 64, contents undefined:
 * once for each such output, before compute returns. `dims` has `rank` elements, which must agree with the declared
 * dimensions; 0 is a legal dimension. From then on the output's view (weir_kernel_context_get_outputs) has address,
 * size and shape. The kernel fails if an open output is not allocated, unless nothing in the graph uses it.
 *
 * The memory belongs to the program and is kept from run to run; it grows, with memory of the engine's, when a run
 * needs more than all runs before.
 *
 * Thread safety: any thread, during the call. Ownership: *out_data is borrowed, valid until compute returns. Errors:
 * INVALID_ARGUMENT (NULL, dims against the declared shape; the text names node and output); OUT_OF_RANGE (index, size
 * overflows); FAILED_PRECONDITION (an output of a fixed shape, or allocated before); RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_allocate_output(const weir_kernel_context *context,
                                                size_t index,
                                                const int64_t *dims,
                                                size_t rank,
                                                void **out_data);

/**
 * Frees the memory that the program keeps for later runs: all values, and the blocks of dynamic ones, which otherwise
 * stay as large as the largest run needed. The next run allocates again. Active runs keep theirs.
 */
WEIR_API WEIR_NODISCARD weir_status weir_program_trim(weir_program *program);

/* ---- Graph --------------------------------------------------------------------------------------------------------
 * A graph is built once, from inputs, constants, kernels, tasks and control edges, and compiled. Nodes have names,
 * and every refusal uses them.
 */

/** Values of weir_graph_set_forwarding other than the index of an input. */
typedef enum weir_forwarding_value {
  /**
   * The default: the output takes over an input's memory if the kernel has WEIR_KERNEL_IN_PLACE and is the last
   * reader of that input.
   */
  WEIR_FORWARD_AUTO = -1,
  /** The output has memory of its own. */
  WEIR_FORWARD_NEVER = -2
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
  WEIR_PLACEMENT_ANY = 2
} weir_placement_value;

/** A value in a graph under construction: one output of one node. Meaningful only for the graph that gave it. */
typedef uint64_t weir_value;

/** A node in a graph under construction. Meaningful only for the graph that gave it. */
typedef uint64_t weir_node;

/** The placement of a node: one of enum weir_placement_value. */
typedef uint32_t weir_placement;

/** Creates an empty graph. `name` (may be NULL) appears in error texts and dumps. */
WEIR_API WEIR_NODISCARD weir_status weir_graph_create(const char *name, weir_graph **out_graph);

/** Destroys a graph under construction. NULL does nothing. Programs compiled from it live on. */
WEIR_API void weir_graph_destroy(weir_graph *graph);

/**
 * Adds an input: a tensor that is passed to each run. Runs take inputs in the order in which they were added.
 * Dimensions of `desc` may be WEIR_DIM_DYNAMIC: each run passes a tensor that fits.
 *
 * Errors: INVALID_ARGUMENT (NULL, bad UTF-8, empty name, bad desc); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_input(weir_graph *graph,
                                 const char *name,
                                 const weir_tensor_desc *desc,
                                 weir_value *out_value);

/**
 * Adds a constant. The program keeps the tensor; its contents must not change any more. It may be in the memory of any
 * engine that the program is compiled for: nodes of that engine read it in place. It is copied to other engines.
 *
 * Errors: ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_constant(weir_graph *graph,
                                    const char *name,
                                    weir_tensor *tensor,
                                    weir_value *out_value);

/**
 * Adds a kernel call. Types and shapes are checked by weir_graph_compile. out_outputs receives the num_outputs values;
 * out_node (may be NULL) receives the node, for control edges. Values of nodes added later cannot be used here, so
 * only control edges can close a cycle, which is an error of compile. weir_graph_set_back_edge closes a loop.
 *
 * Errors: INVALID_ARGUMENT (NULL, foreign value, number of inputs or outputs); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_kernel(weir_graph *graph,
                                  const char *name,
                                  weir_kernel *kernel,
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
 * At most 16 programs lie inside one another: the run of each is on the stack of the run around it, and so many have
 * room in 256 KiB.
 *
 * Errors: INVALID_ARGUMENT (NULL, foreign value, number of inputs or outputs, a program with outputs that may be
 * absent); ALREADY_EXISTS (name); OUT_OF_RANGE (more programs inside one another).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_program(weir_graph *graph,
                                   const char *name,
                                   weir_program *program,
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
 * Ownership: arg passes to the graph if destroy is given. Errors: ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_task(weir_graph *graph,
                                const char *name,
                                weir_host_fn fn,
                                void *arg,
                                weir_destroy_fn destroy,
                                uint64_t cost_ns,
                                weir_node *out_node);

/**
 * Makes `to` wait for `from`, without data.
 *
 * Errors: INVALID_ARGUMENT (foreign node, an edge to itself).
 */
WEIR_API WEIR_NODISCARD weir_status weir_graph_add_control_edge(weir_graph *graph, weir_node from, weir_node to);

/**
 * Sets whether output `output` of a kernel takes over the memory of an input: `input` is WEIR_FORWARD_AUTO (the
 * default), WEIR_FORWARD_NEVER, or the index of the input whose memory it must be; weir_graph_compile refuses the
 * graph if that is impossible.
 *
 * Errors: INVALID_ARGUMENT (foreign node, no kernel, input below WEIR_FORWARD_NEVER); OUT_OF_RANGE (output, input).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_set_forwarding(weir_graph *graph,
                                      weir_node node,
                                      int32_t output,
                                      int32_t input);

/**
 * Makes a value an output of the graph: each run writes it into a tensor that it is passed. Runs take outputs in the
 * order in which they were added.
 *
 * Errors: INVALID_ARGUMENT (foreign value); ALREADY_EXISTS (name of another output).
 */
WEIR_API WEIR_NODISCARD weir_status weir_graph_add_output(weir_graph *graph, const char *name, weir_value value);

/* ---- Program ------------------------------------------------------------------------------------------------------
 * A program is a compiled graph: immutable, shared, and re-entrant.
 */

/** For weir_compile_options.hop_ns: bringing work to another thread costs nothing. */
#define WEIR_HOP_NONE UINT64_MAX

/** Flags of a compilation. Other bits are refused. */
typedef enum weir_compile_flags {
  /**
   * Outputs of the program may be absent (weir_graph_add_switch). A run leaves the tensor of an absent output
   * unchanged; weir_run_options has a list that tells which were absent.
   */
  WEIR_COMPILE_ALLOW_ABSENT = 1,
  /**
   * The program keeps figures of every node (weir_program_get_node_stats): each run reads the clock twice for each
   * node. Without it there is no cost.
   */
  WEIR_COMPILE_STATISTICS = 2,
  /**
   * With this flag the host, not the device, decides each branch and iteration, so a cancelled run can end between
   * two iterations. A branch or a loop (weir_graph_add_cond, _case, _while) that contains only kernels of one
   * accelerator's engine is work of that engine: its values stay there. The host reads back only the predicate and
   * issues the work that follows, without holding a thread. Without the flag a device that records and supports
   * branches and loops decides itself; then a cancel or the time limit of a run does not end a loop before it ends
   * by itself. Results are the same; weir_program_report says for each node who decides, and why.
   */
  WEIR_COMPILE_NO_DEVICE_CONTROL = 4,
  /**
   * Devices are not offered regions. Without it, nodes on a plug-in's device that takes regions
   * (WEIR_DEVICE_REGIONS) with no other node between them are offered to it together, also inside of branches and
   * loops. It may compile some of them to one kernel, which is then one node of the program with all of their names.
   * Results are the same if the device computes the same; weir_program_report has the numbers offered and taken, and
   * the reasons.
   */
  WEIR_COMPILE_NO_REGIONS = 8,
  /**
   * Elementwise nodes stay apart. Without it, an activation or a sum on a cpu engine whose input is a matrix product
   * or a convolution of weir's, and which alone reads it, becomes the end of that node (its activation, its bias or
   * its addend), also inside of branches and loops: one node of the program with the names of both, "conv1+relu1".
   * Large elementwise nodes behind one another become one, which goes over memory once. Results are the same bit by
   * bit, but for which NaN a sum of two NaN is; weir_program_report has the nodes, and the reasons for others that
   * stay apart.
   */
  WEIR_COMPILE_NO_FUSION = 16
} weir_compile_flags;

/**
 * A segment is at least four nodes of one device with no other node between them. The second run of the program makes
 * the device record it, with the copies of inputs that only it reads, and later runs submit the recording by one call.
 * Results are the same; weir_program_report has the number of recordings, or why there are none.
 */
typedef enum weir_segments_value {
  /**
   * Recorded; but where the nodes may be spread over several streams (weir_engine_attr_set_max_streams) the program
   * times some of its first runs both ways, and keeps the faster one.
   */
  WEIR_SEGMENTS_TIMED = 0,
  /** Every run issues each node by itself. */
  WEIR_SEGMENTS_NEVER = 1,
  /** Recorded wherever the device can. */
  WEIR_SEGMENTS_ALWAYS = 2
} weir_segments_value;

/** Inputs or outputs of a program. */
typedef enum weir_port_kind_value {
  WEIR_PORT_INPUT = 1,
  WEIR_PORT_OUTPUT = 2
} weir_port_kind_value;

/** Inputs or outputs of a program: one of enum weir_port_kind_value. */
typedef uint32_t weir_port_kind;

/** Whether work on devices is recorded: one of enum weir_segments_value. */
typedef uint32_t weir_segments;

/** How a graph is compiled. All-zero, and NULL, is the default. */
typedef struct weir_compile_options {
  /** sizeof(weir_compile_options) of the caller's header. */
  size_t struct_size;
  /** OR of weir_compile_flags. */
  uint64_t flags;
  /**
   * The cost of bringing work to another thread of the pool, in nanoseconds: ready work that is cheaper stays on the
   * thread that made it ready. 0 = the pool's own costs in each run, as far as they are known; runs that turn out to
   * be faster on the caller alone then stay there. WEIR_HOP_NONE = nothing. It never changes a result.
   */
  uint64_t hop_ns;
  /**
   * The pool for kernels that may block (WEIR_KERNEL_MAY_BLOCK): each runs as one task of it, without holding
   * another thread. A thread that waits for such a kernel runs it itself if the pool has not begun it for 50 ms,
   * unless the pool has WEIR_THREADPOOL_OWN_THREADS_ONLY. The pool must take single tasks (schedule, or an
   * ASYNCHRONOUS parallel_for), and should have as many threads as kernels may block at once. If it refuses one, the
   * kernel runs in the thread that came to it, or in the caller of a synchronous run: unless that is a worker of a
   * pool, or the pool has WEIR_THREADPOOL_OWN_THREADS_ONLY. Else the node fails with UNAVAILABLE. NULL = none:
   * graphs with such kernels do not compile. The program keeps a reference.
   */
  weir_threadpool *blocking_threadpool;
  /**
   * The most lists of outputs for which the program keeps compiled parts, so that runs may ask for a part of its
   * outputs (weir_run_options.outputs): 1 to 256, or 0 for no such runs. With it the program keeps the nodes of the
   * graph, constants included, as long as it lives. The first run with a list compiles its part, and later runs find
   * it; beyond the maximum a list that was not used recently is dropped, and compiled again if it comes back. Each
   * list that is kept counts as a program in weir_runtime_info.
   */
  size_t partial_runs;
  /**
   * The most runs of the program at once, partial ones included; 0 = no limit. A run beyond the limit waits, first
   * come, first served:
   *
   * - in the calling thread (a NULL or synchronous stream) it sleeps until another run is over, or its deadline.
   *   Inside of a task of a thread pool, of a stream's work, or of a run of a program with such a limit it does not
   *   sleep: it helps the pool and spins for a while, and is then refused with FAILED_PRECONDITION;
   * - an asynchronous stream accepts it, and waits without holding a thread when its turn comes.
   *
   * WEIR_RUN_NO_WAIT refuses it instead. A run that begins inside of a run of the same program is part of it and
   * does not count; so are programs as nodes (weir_graph_add_program) and weir_kernel_context_run_program.
   * weir_program_run_many waits for one slot, and uses as many more as are free then. weir cannot know that a thread
   * which calls weir_completion_done works for a run. Such a thread must not wait for a run of the same program. A
   * kernel that waits, outside of a pool, for a stream on which a run of its own program waits for a slot is refused
   * (FAILED_PRECONDITION).
   */
  uint32_t max_concurrent_runs;
  /**
   * The placement of all nodes without weir_graph_set_placement, in nested graphs too: one of enum
   * weir_placement_value. WEIR_PLACEMENT_DEFAULT is WEIR_PLACEMENT_KERNEL here.
   */
  weir_placement placement;
  /** Whether work on devices is recorded: one of enum weir_segments_value. */
  weir_segments segments;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_compile_options;

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

/** An input or output of a program. */
typedef struct weir_port_info {
  /** sizeof(weir_port_info), set by the caller before the call. */
  size_t struct_size;
  /** Element type and shape. */
  weir_tensor_desc desc;
  /** The engine in whose memory runs receive it; borrowed, it lives as long as the program. */
  weir_engine *engine;
  /** Its name, NUL-terminated UTF-8, cut if too long. */
  char name[128];
} weir_port_info;

/**
 * Declares that runs receive input or output `index`, in the order in which they were added, in memory of `engine`.
 * Nodes on that engine read an input in place, others read a copy, made once for each engine. A node on that engine
 * writes an output directly into the tensor; otherwise the value is copied there as soon as it is done. NULL, the
 * default, is the program's own engine, a CPU engine. The engine must be among those of weir_graph_compile, and runs
 * refuse a tensor on another one. A program with inputs or outputs on other engines than the CPU's cannot be a node of
 * another graph (weir_graph_add_program).
 *
 * Errors: OUT_OF_RANGE (index).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_set_port_engine(weir_graph *graph,
                                       weir_port_kind kind,
                                       size_t index,
                                       weir_engine *engine);

/**
 * Sets how the engine of a kernel's node is chosen: one of enum weir_placement_value. The compile report
 * (weir_program_report) shows the choice for each node that was open, and the reason; the same graph and the same list
 * of engines give the same choice.
 *
 * Errors: INVALID_ARGUMENT (foreign node, no kernel, placement).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_set_placement(weir_graph *graph,
                                     weir_node node,
                                     weir_placement placement);

/**
 * Compiles a graph for engines: verifies it, and lays it out for runs. Kernels on which no output, no task and no
 * kernel without outputs depends are left out. The graph may be changed and compiled again. options may be NULL.
 *
 * A node runs on the engine of its kernel, unless weir_graph_set_placement or the options leave it open. The first CPU
 * engine among `engines` is the program's own: inputs and outputs are in its memory, unless weir_graph_set_port_engine
 * says otherwise, and runs use its pool by default. Values shared by nodes on different engines are copied, once for
 * each engine, as soon as they are available and while other work continues; the program keeps memory and streams on
 * the other engines for each concurrent run (weir_engine_attr_set_max_streams). In a branch or a loop that the host
 * executes in part, values that one engine computes and reads stay in its memory; the others are copied. A loop with
 * parallel_iterations K whose values cross between the host and an engine overlaps its iterations: it has memory on
 * the engine for K + 1 of them, or for fewer where that would be more than an eighth of it. weir_program_report counts
 * copies, streams, events and waits.
 *
 * Thread safety: one thread at a time per graph. Ownership: the program takes references to kernels, constants and
 * engines. Errors: INVALID_ARGUMENT, with the names of the nodes: a cycle, an input with a wrong dtype or shape, a
 * kernel or constant of a device that none of the engines is for, no CPU engine; UNIMPLEMENTED for nodes on other
 * engines than the CPU's with values whose shape is known only at run time, and for a kernel that completes later or
 * may block (weir_host_kernel_desc) with inputs or outputs of such a shape: its arguments and the memory for its
 * outputs are fixed when the graph is compiled; FAILED_PRECONDITION for a kernel that may block, without a pool for
 * such; OUT_OF_RANGE if sizes overflow; RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_compile(const weir_graph *graph,
                               weir_engine *const *engines,
                               size_t num_engines,
                               const weir_compile_options *options,
                               weir_program **out_program);

/**
 * Fills *out_options with what the program was compiled with. A placement that was left open is
 * WEIR_PLACEMENT_KERNEL.
 *
 * Ownership: its pool is borrowed and lives as long as the program.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_options(const weir_program *program,
                                     weir_compile_options *out_options);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_program_retain(weir_program *program);

/** Gives up one reference. NULL does nothing. Runs hold references of their own. */
WEIR_API void weir_program_release(weir_program *program);

/** Describes the program: its ports and nodes, and the runs that have begun, ended, failed, and are active. */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_info(const weir_program *program,
                                  weir_program_info *out_info);

/**
 * Describes input or output `index` of the program.
 *
 * Ownership: its engine is borrowed. Errors: OUT_OF_RANGE (index).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_get_port(const weir_program *program,
                                  weir_port_kind kind,
                                  size_t index,
                                  weir_port_info *out_info);

/* ---- Run ----------------------------------------------------------------------------------------------------------
 * A run reads the program's inputs and writes its outputs. It allocates nothing from the second time on.
 */

/** How a run goes. A bit that is not here is refused. */
typedef enum weir_run_flags {
  /**
   * The run takes one thread and executes the nodes in the program's order. Nodes that share state outside of their
   * tensors then access it in the same order in every run, and if several nodes would fail, it is always the same
   * one that does. Kernels may still use the pool for their regions, which changes no result. Kernels that complete
   * later, and work on devices, are started in their turn and waited for one by one in that thread. So
   * weir_program_run refuses such a run of a program that contains these (FAILED_PRECONDITION) where that would
   * block a worker of a thread pool: in one, and on an asynchronous stream with a pool that takes single tasks.
   */
  WEIR_RUN_DETERMINISTIC = 1,
  /**
   * A run that fails still executes the nodes that do not depend on the failure; without it nothing more is begun.
   * Nodes that depend on a failed node, directly or not, are left out; a loop with a failure inside ends. The first
   * failure in the program's order is the run's. Outputs that depend on no failed node are written. Such a run takes
   * one thread, as if deterministic, and is refused in the same cases. A cancel or a deadline still ends it.
   * A device on which work of the run has failed does no more of it; a region or a segment of a device is one node.
   */
  WEIR_RUN_FINISH_INDEPENDENT = 2,
  /**
   * A run that would have to wait for others (weir_compile_options.max_concurrent_runs) is refused at the call with
   * RESOURCE_EXHAUSTED: in the calling thread while as many runs are active as the limit allows, on an asynchronous
   * stream while as many are queued on streams or active.
   */
  WEIR_RUN_NO_WAIT = 4
} weir_run_flags;

/** How far a run is (weir_run_options.progress). */
typedef struct weir_run_progress {
  /** sizeof(weir_run_progress), set by the library: a newer one may have more members than the caller's header. */
  size_t struct_size;
  /** The run, borrowed for the call, for instance to cancel it; NULL for a run of weir_program_run. */
  weir_run *run;
  /**
   * Nodes that are over: each kernel, task or other node that computes, in a loop once for each iteration. Conds,
   * cases and loops themselves do not count. A node that is passed over because an input is absent counts. A program
   * as a node, a node that fusion has made of several, and work that a device does as one piece are one node each;
   * work that is only handed to a device is over when it is handed over. More of them with each report.
   */
  uint64_t nodes_done;
  /**
   * These, and all that are known to come: those outside of branches and loops, of each branch that was taken and of
   * each iteration that has begun. So it grows while branches and iterations begin, and never shrinks. When a run
   * succeeds all of them are over.
   */
  uint64_t nodes_total;
  /** Nanoseconds since the run began; time in a stream's queue does not count. */
  uint64_t elapsed_ns;
  /**
   * How much longer the run takes, by the costs and the iterations that the program had learned, or was told, when
   * the run began: the nodes that are over have taken elapsed_ns, the rest is expected at the same rate. UINT64_MAX
   * if costs were unknown, and in a program with loops if no run had been measured.
   */
  uint64_t estimated_remaining_ns;
  /** The node that has just come to its end, NUL-terminated UTF-8, cut if too long. */
  char node[128];
} weir_run_progress;

/**
 * Receives how far a run is (weir_run_options.progress). `progress` is valid during the call. Must not throw, longjmp
 * or unwind.
 */
typedef void (*weir_progress_fn)(void *ctx, const weir_run_progress *progress);

/**
 * Options of one run. All-zero, and NULL, is the default. It is read during the call: only the
 * bytes of `absent` must stay.
 */
typedef struct weir_run_options {
  /** sizeof(weir_run_options) of the caller's header. */
  size_t struct_size;
  /** OR of weir_run_flags. */
  uint64_t flags;
  /**
   * Time limit of the run, not a point in time: nanoseconds from the call on, including time in the stream's queue;
   * 0 = none. When it expires nothing more is begun: the run ends after the running kernels, with DEADLINE_EXCEEDED,
   * and to them weir_kernel_context_is_cancelled says 1. A run that had nothing left to begin, and that has told no
   * kernel so, succeeds. There is no timer: with a deadline the clock is read before each node.
   */
  uint64_t deadline_ns;
  /**
   * The pool for this run, before the stream's and the engine's; NULL = those. A run that goes on after the call
   * keeps a reference.
   */
  weir_threadpool *threadpool;
  /**
   * The outputs to compute, by their indices in the program, each once; NULL = all, and everything with side
   * effects. For a program compiled with weir_compile_options.partial_runs. The run takes num_outputs tensors as its
   * outputs, for these in this order, and executes only the nodes that they depend on, along data and control edges.
   * Everything else is left out, including tasks and kernels without outputs, unless one of these outputs depends on
   * them; the inside of a cond, a case or a loop that runs is complete as always. The run still takes all of the
   * program's inputs, but those that none of its nodes needs are ignored and may be NULL.
   *
   * Such runs count in the program's counters and node figures. The costs that the program learns
   * (weir_program_save_costs) are those of whole runs; a part begins with the costs known for the whole, and then
   * learns its own.
   */
  const size_t *outputs;
  /** Length of `outputs`. */
  size_t num_outputs;
  /**
   * NULL, or one byte for each output of the run: when it has succeeded, absent[i] is 1 if output i was absent (its
   * tensor is left unchanged), else 0. A run that fails leaves the bytes alone. They stay the caller's, and alive
   * until the run is done. Outputs can only be absent with WEIR_COMPILE_ALLOW_ABSENT.
   */
  uint8_t *absent;
  /** Length of `absent`: the number of outputs of the run. */
  size_t num_absent;
  /**
   * NULL, or how the host is told of the run's end: as by weir_run_notify, but none is missed, no second call is
   * needed, and a run of weir_program_run on an asynchronous stream can have it, which also keeps the failure.
   * There is exactly one notice, and one `release` after it, if the call returns WEIR_OK, and neither otherwise: the
   * host keeps ctx then. Runs that are over when their call returns have none: weir_program_run without a stream or
   * on a synchronous one, and weir_program_run_many, refuse it.
   */
  const weir_notice *notice;
  /** NULL, or a trace that the run is to be part of, whatever that is a trace of (weir_trace_start). */
  weir_trace *trace;
  /**
   * NULL, or a function that is told how far the run is, at most once in each progress_interval_ns, and not at all
   * by a shorter run. A thread that works for the run calls it, between two nodes, and the thread's next node waits
   * for it; there is never more than one call at once, and none once the run is over: all come before its notice,
   * and before a wait for the run returns. A run that has failed, was cancelled or is late makes no more.
   *
   * There is no timer: with it a clock is read at each node, and while all threads of the run are in long kernels,
   * or wait for a device, nothing is reported. What it may call is what a host kernel of the run may; it may cancel
   * the run, and must not wait for it. The first such runs of a program allocate counters; a run for which there
   * is no memory fails with RESOURCE_EXHAUSTED. It is for one run: weir_program_run_many refuses it.
   */
  weir_progress_fn progress;
  /** For `progress`; alive until the run is over. */
  void *progress_ctx;
  /** The shortest time between two calls of `progress`, and before the first; 0 = 100 ms. 1 = at each node. */
  uint64_t progress_interval_ns;
} weir_run_options;

/**
 * Runs one program now: the values that the inputs determine are written into the outputs, or into those of
 * options->outputs. The run is one piece of the stream's work; with a NULL stream it runs in this thread, with helpers
 * from the pool (run options, else the program's first engine). The first node that fails ends the run, and the error
 * names it. The second and later runs allocate nothing, while at most 32 runs of the program are queued on streams and
 * no more than before run at once; with open shapes, while no value is larger than before; and on no pool in checking
 * mode, which allocates for each task.
 *
 * On a stream of a device that the program was compiled for, the run begins when the device has finished the work
 * enqueued before, and work enqueued later begins when the run is over. If that device executes the whole program,
 * this call submits the run to the stream, as a kernel (docs/placement.md); otherwise the host's part runs on the
 * stream's pool, as host functions do (weir_enqueue_task), with helpers from it or from the program's first engine. On
 * another stream, or without one, tensors on devices must be ready when the run begins.
 *
 * An output whose shape is open (WEIR_DIM_DYNAMIC) goes to a dynamic tensor (weir_tensor_create), or to a tensor of
 * exactly the run's shape. It is written only if the run succeeds.
 *
 * Thread safety: any thread; any number of runs of one program at once, with separate outputs. Blocking: until done
 * with a NULL or synchronous stream; never on an asynchronous one. Ownership: the tensors stay alive until the run is
 * done; options may be NULL. Errors: INVALID_ARGUMENT (NULL, count, dtype, shape, a tensor of another device, overlap
 * of an output with an input or another output; the text names input or output); FAILED_PRECONDITION if the stream has
 * failed, if the host is capturing it and the run cannot be part of that (docs/cuda.md), or for options->outputs
 * without partial runs; OUT_OF_RANGE for an output that the program does not have; RESOURCE_EXHAUSTED; if it blocks,
 * also the failure of a node, DEADLINE_EXCEEDED after options->deadline_ns, and FAILED_PRECONDITION or OUT_OF_RANGE if
 * a tensor is too small for an output of open shape.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_run(weir_program *program,
                             weir_stream *stream,
                             weir_tensor *const *inputs,
                             size_t num_inputs,
                             weir_tensor *const *outputs,
                             size_t num_outputs,
                             const weir_run_options *options);

/**
 * As weir_program_run on an asynchronous stream, with a handle to wait for this run alone, to cancel it, and to read
 * its error. The failure of such a run belongs to the handle and not to the stream: the stream continues.
 *
 * Ownership: else as weir_program_run. Errors: those of weir_program_run; INVALID_ARGUMENT if the stream is NULL or
 * not asynchronous.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_start(weir_program *program,
                               weir_stream *stream,
                               weir_tensor *const *inputs,
                               size_t num_inputs,
                               weir_tensor *const *outputs,
                               size_t num_outputs,
                               const weir_run_options *options,
                               weir_run **out_run);

/**
 * Runs one program `count` times, and returns when all runs are over: run i reads inputs[i * num_inputs ...] and
 * writes outputs[i * num_outputs ...]. So `inputs` has count * num_inputs elements, and `outputs` has count *
 * num_outputs elements. The calling thread takes part, with helpers from the pool (run options, else
 * the program's first engine). Runs may overlap, so no two runs may share an output. All tensors are checked before
 * the first run begins. If the program has kernels that complete later, the calling thread begins several runs, as
 * many as there are threads, and continues whichever run has news; helpers take part in each. Runs that communicate
 * with other ranks come one after the other, in the order of their numbers. The first failure is returned; active runs
 * then end after their running kernels, and the rest is not begun. Options are those of each run; a deadline counts
 * from the call. Inside of kernels weir_kernel_context_run_program does the same with the kernel's pool.
 *
 * Blocking: until all runs are over. Ownership: the tensors stay alive and the arrays are only read during the call;
 * options may be NULL. Errors: those of weir_program_run, with the number of the run (FAILED_PRECONDITION for kernels
 * that complete later in a worker of a pool comes before anything is run); OUT_OF_RANGE (count); INVALID_ARGUMENT also
 * for options->absent, options->notice and options->progress.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_run_many(weir_program *program,
                                  size_t count,
                                  weir_tensor *const *inputs,
                                  size_t num_inputs,
                                  weir_tensor *const *outputs,
                                  size_t num_outputs,
                                  const weir_run_options *options);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_run_retain(weir_run *run);

/** Gives up one reference. NULL does nothing. The run itself continues. */
WEIR_API void weir_run_release(weir_run *run);

/**
 * Waits until the run is done, and returns its status.
 *
 * Blocking: until done, or timeout_ns have passed (0 = poll once, WEIR_TIMEOUT_INFINITE = no limit). Meanwhile it
 * works on the run, as weir_stream_synchronize does. Errors: DEADLINE_EXCEEDED if
 * timeout_ns have passed (the run continues), and as the status of a run that has passed its own deadline_ns (the run
 * is over): weir_run_query tells the two apart; FAILED_PRECONDITION if waiting here would block a worker that the run
 * needs; else the status of the run: the first node's failure, CANCELLED, or ABORTED if the stream had failed before
 * it.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_synchronize(weir_run *run, uint64_t timeout_ns);

/** Whether the run is done (1) or not (0), regardless of failure. */
WEIR_API WEIR_NODISCARD weir_status weir_run_query(const weir_run *run, int32_t *out_done);

/**
 * Tells the host when the run is done: by a function that is called once, or an eventfd, or both (weir_notice says
 * when and on which thread). If the run is done already, the notice arrives before the call returns. A run may have
 * any number of notices, which arrive in order. They belong to the run, not to the handle, and arrive even if all
 * handles were released. To ask in the call that starts the run, see weir_run_options.
 *
 * Blocking: never; the function and release run here if the run is done. Ownership: `notice` is read during the call;
 * its ctx is released with `release`. Errors: INVALID_ARGUMENT (NULL, neither function nor eventfd, an event_fd that
 * is no eventfd or that blocks); RESOURCE_EXHAUSTED.
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_notify(weir_run *run, const weir_notice *notice);

/**
 * Cancels the run: running kernels come to their end, nothing else is begun, and the outputs are undefined. A run that
 * is done is left alone. The program can be run again at once.
 *
 * Blocking: never (weir_run_synchronize waits for the end).
 */
WEIR_API WEIR_NODISCARD weir_status weir_run_cancel(weir_run *run);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_H */
