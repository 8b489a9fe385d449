/* weir/conformance.h: checks of pools and devices
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a shared object exports so that the program weir_conformance can check its thread pool:
 *
 *     weir_conformance module.so            calls weir_conformance_pool
 *     weir_conformance module.so symbol     calls another function of the same type
 *
 * The function fills *out_vtable and *out_ctx and returns 0; any other value means that there is no pool. The vtable's
 * release gets *out_ctx back when the check is over.
 */

#ifndef WEIR_CONFORMANCE_H
#define WEIR_CONFORMANCE_H

#include "../weir.h"
#include "comm.h"


/** @file weir/conformance.h
 * checks of pools and devices. */
#ifdef __cplusplus
extern "C"
#endif
/** The one that weir_conformance calls unless it is told another name. The module defines it, not weir. */
int weir_conformance_pool(weir_threadpool_vtable *out_vtable, void **out_ctx);

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Conformance --------------------------------------------------------------------------------------------------
 * Checks of pools and of devices, clause by clause. The program weir_conformance asks them of pools and of plug-ins
 * in shared objects, and a pool in checking mode (weir_threadpool_options.checking) is asked all the time.
 */

/** The verdict of weir_threadpool_conformance, weir_device_conformance and weir_comm_conformance on a clause. */
typedef enum weir_conformance_verdict_value {
  /** Nothing wrong was seen. */
  WEIR_CONFORMANCE_PASS = 0,
  /** The clause is broken; the text says how. */
  WEIR_CONFORMANCE_FAIL = 1,
  /** The pool or device lacks the function that the clause is about. */
  WEIR_CONFORMANCE_NOT_OFFERED = 2,
  /** Legal, but worth knowing about the pool. */
  WEIR_CONFORMANCE_NOTE = 3,
  /** Not checked, because an earlier call has not returned. */
  WEIR_CONFORMANCE_NOT_CHECKED = 4
} weir_conformance_verdict_value;

/**
 * Options of weir_threadpool_conformance, weir_device_conformance and weir_comm_conformance. Zero in a member means
 * the default.
 */
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

/** The result for one clause of docs/threadpool.md, docs/devices.md or docs/ranks.md. */
typedef struct weir_conformance_line {
  /** sizeof(weir_conformance_line), set by weir. */
  size_t struct_size;
  /** The clause, such as "H5". */
  const char *clause;
  /** The requirement that the clause states, or the subject of a note. */
  const char *title;
  /** The observation, for people to read. */
  const char *text;
  /** One of weir_conformance_verdict_value. */
  int32_t verdict;
  /** Reserved, 0. */
  int32_t reserved;
} weir_conformance_line;

/** Receives a line. The line and its texts are valid during the call. */
typedef void (*weir_conformance_fn)(void *report_arg, const weir_conformance_line *line);

/**
 * A function of a module that gives a pool: fills both outputs and returns 0. Its name is weir_conformance_pool, or
 * the one that the program weir_conformance is told.
 */
typedef int (*weir_conformance_pool_fn)(weir_threadpool_vtable *out_vtable, void **out_ctx);

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
weir_status weir_threadpool_conformance(const weir_threadpool_vtable *vtable,
                                        void *ctx,
                                        const weir_conformance_options *options,
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
 * is the caller's. *out_failed is the number of clauses that failed. Errors: OUT_OF_RANGE (index); UNIMPLEMENTED for a
 * CPU engine; the errors of opening the device. A broken clause is no error.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_device_conformance(weir_engine_kind kind,
                                    uint32_t index,
                                    const weir_conformance_options *options,
                                    weir_conformance_fn report,
                                    void *report_arg,
                                    int32_t *out_failed);

/**
 * Checks a transport against docs/ranks.md, and calls `report` once for each clause, in order, and then for notable
 * properties of the transport. All ranks call it, at the same time and with the same options; each reports what it has
 * seen. The vtable and ctx are used as by weir_comm_create, but vtable->release is not called. Nothing else may use
 * the transport meanwhile. An operation that is not over in time ends in a failed clause and not in a hang: its memory
 * is kept for good, and the clauses behind it are not checked. A function of the vtable that never returns is not
 * survived.
 *
 * Thread safety: any thread; the transport's functions are called in it. Blocking: some seconds, in which the thread
 * runs and sleeps; on a bad transport one budget (options->budget_ns) more. Ownership: ctx stays the caller's; the
 * options are copied and may be NULL; report_arg is the caller's. *out_failed is the number of clauses that failed on
 * this rank. Errors: INVALID_ARGUMENT, OUT_OF_RANGE (those of weir_comm_create; report is NULL; unknown options); the
 * status of get_info. A broken clause is no error.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_comm_conformance(const weir_comm_vtable *vtable,
                                  void *ctx,
                                  const weir_conformance_options *options,
                                  weir_conformance_fn report,
                                  void *report_arg,
                                  int32_t *out_failed);

/**
 * The first clause of docs/threadpool.md that a pool in checking mode has broken, and how: "H5: parallel_for ran index
 * 3 of 4 twice". If none is broken, a suspected one: "H9: a wait has slept for 1 s, and the pool has begun none of 2
 * calls that it had accepted: ..."; the pool continues after that. Empty if there is neither, and without checking
 * mode.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_get_broken_clause(const weir_threadpool *pool,
                                              char *buffer,
                                              size_t capacity,
                                              size_t *out_length);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_CONFORMANCE_H */
