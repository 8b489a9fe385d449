/* weir/comm.h: graphs and streams whose values cross ranks
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef WEIR_COMM_H
#define WEIR_COMM_H

#include "../weir.h"

/** @file weir/comm.h
 * graphs and streams whose values cross ranks. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Communicator -------------------------------------------------------------------------------------------------
 * A communicator is a set of ranks, mostly processes on one or many machines, that exchange values. weir has no
 * transport: the host lends one, as it lends its threads, by a vtable (weir_comm_vtable); weir/adapters/mpi.h makes
 * one of an MPI communicator, weir/adapters/nccl.h one of NCCL, for the memory of CUDA devices. weir orders the
 * operations, overlaps them with computation, keeps their memory, and ends the runs of all ranks when one fails.
 *
 * An operation is a kernel (weir_kernel_create_communication). In a graph it begins when its input is there and its
 * turn has come, and only what needs its output waits for it. No thread is held meanwhile: whoever waits for a run, a
 * stream or an event makes progress, or a thread of weir's own (WEIR_COMM_OWN_THREAD), or the host
 * (weir_comm_progress).
 *
 * All ranks must begin the operations of a communicator in one order. weir keeps to the order in which they were
 * added; weir_program_agree compares the ranks' programs before they run, and WEIR_COMM_CHECKED each operation while
 * they run.
 *
 * A failure is final. A rank whose run fails, is cancelled, or takes longer than its limit tells all others; their
 * runs end with ABORTED and its text. Every later operation fails with the status of that failure, be it a cancel or
 * a deadline of an earlier run, and a text that says that the communicator is dead (weir_comm_info.dead). Its node is
 * the one that began next. Memory that the transport may still touch is never given back. docs/ranks.md is the guide,
 * and says what each transport can promise.
 */

/** Size of a control message in bytes. */
#define WEIR_COMM_MESSAGE_BYTES 64

/** Operations between ranks. "Rank order" is 0, 1, ... size - 1. */
typedef enum weir_comm_op_value {
  /** Sends the input to rank `peer`, another one: a message to oneself is refused. No output. */
  WEIR_COMM_SEND = 1,
  /** Receives the output, which has the descriptor `desc`, from rank `peer`, another one. No input. */
  WEIR_COMM_RECV = 2,
  /** Every rank's output is the input of rank `peer`. All ranks give an input of that type and shape. */
  WEIR_COMM_BROADCAST = 3,
  /** The output of rank `peer` is the reduction of all ranks' inputs; that of the others is their input. */
  WEIR_COMM_REDUCE = 4,
  /** Every rank's output is the reduction of all ranks' inputs. */
  WEIR_COMM_ALL_REDUCE = 5,
  /** Every rank's output is all ranks' inputs, in rank order, along dimension 0. */
  WEIR_COMM_ALL_GATHER = 6,
  /**
   * The input's dimension 0 is cut into as many parts of one size as there are ranks; the output of rank r is the
   * reduction of all ranks' parts r.
   */
  WEIR_COMM_REDUCE_SCATTER = 7,
  /** The input's dimension 0 is cut as above; part i of rank r's output is part r of rank i's input. */
  WEIR_COMM_ALL_TO_ALL = 8,
  /** Ends on no rank before it has begun on all. No input, no output. */
  WEIR_COMM_BARRIER = 9
} weir_comm_op_value;

/**
 * Reductions. weir's own arithmetic goes in rank order, from rank 0 on, with f16 and bf16 summed as f32 and rounded
 * once; a NaN of any rank makes a minimum and a maximum NaN, and -0 is less than +0. Integers wrap. Of booleans the
 * sum and the maximum are true if one of them is, the product and the minimum if all of them are.
 */
typedef enum weir_comm_reduction_value {
  WEIR_COMM_SUM = 1,
  WEIR_COMM_PRODUCT = 2,
  WEIR_COMM_MIN = 3,
  WEIR_COMM_MAX = 4
} weir_comm_reduction_value;

/** How an operation is done. A bit that is not here is refused. */
typedef enum weir_communication_flags {
  /** The same bits whatever the transport: parts are exchanged, and weir adds them up in rank order. For reductions. */
  WEIR_COMMUNICATION_DETERMINISTIC = 1
} weir_communication_flags;

/** Properties of a transport. Fixed for the life of the communicator. */
typedef enum weir_comm_flags {
  /**
   * Its functions are called only in the thread that called weir_comm_create: while that thread waits in weir, and
   * in weir_comm_progress. Only release is called in the thread that gives up the last reference. Without it they
   * are called in any thread, in one at a time.
   */
  WEIR_COMM_ONE_THREAD = 1,
  /** Its reductions give the same bits in each run. */
  WEIR_COMM_FIXED_ORDER = 2,
  /**
   * When abort has returned, it touches no memory of operations any more. Without it that memory is never given
   * back: it is a loss, but a transport may write there long after it was released.
   */
  WEIR_COMM_ABORT_RELEASES = 4,
  /** test makes no progress by itself: progress is called, too. */
  WEIR_COMM_NEEDS_PROGRESS = 8
} weir_comm_flags;

/** How a communicator is used. A bit that is not here is refused. */
typedef enum weir_comm_option_flags {
  /**
   * A thread of weir's own, counted by weir_runtime_info, makes progress. Without it operations go on while a thread
   * waits in weir (for a run, a stream, an event), and in weir_comm_progress.
   */
  WEIR_COMM_OWN_THREAD = 1,
  /**
   * Each collective operation is compared with that of the rank before, by a control message, before its result is
   * used (on a device: before the run ends): operation, types, shapes, root, branch, place in the program, and
   * number of the run. Of ranks that differ at least one fails, with the names of both operations, and tells all
   * others. Those that agree with the rank before may have finished that operation with OK and a wrong result: their
   * next one fails. docs/ranks.md says what is not told apart. Requires control_send and control_poll.
   */
  WEIR_COMM_CHECKED = 2,
  /**
   * Operations use the tensors of stream calls and of runs where they are: nothing is copied. You promise that their
   * memory stays valid as long as the transport lives, and for good if it has no WEIR_COMM_ABORT_RELEASES: after a
   * failure the transport may still read inputs and write outputs, at any time. A run that fails may have written
   * some of its outputs. Without it those tensors are copied. Values inside of a run need no such promise.
   */
  WEIR_COMM_TENSORS_STAY = 4
} weir_comm_option_flags;

/** Ranks that exchange values over a transport of the host's (weir/comm.h). Shared: create, retain, release. */
typedef struct weir_comm weir_comm;

/** A transport, as get_info describes it. */
typedef struct weir_comm_transport_info {
  /** sizeof(weir_comm_transport_info), set by weir. */
  size_t struct_size;
  /** This process's (or thread's) number among the ranks. */
  int32_t rank;
  /** How many ranks there are, 1 to 65,536. */
  int32_t size;
  /** OR of weir_comm_flags. */
  uint64_t flags;
  /**
   * The operations that `start` takes: bit 1 << weir_comm_op_value of each. SEND and RECV are required; weir builds
   * of them what is missing. 0 for a transport without start.
   */
  uint64_t ops;
  /** The types that it reduces: bit 1 << weir_dtype of each. weir reduces the others itself. */
  uint64_t dtypes;
  /** The reductions that it knows: bit 1 << weir_comm_reduction_value of each. */
  uint64_t reductions;
  /** The largest tag that it takes, at least 32,767. */
  int32_t max_tag;
  /** Reserved, 0. */
  uint32_t reserved;
  /**
   * The most bytes of one message, 64 or more; 0 = no limit. weir divides larger sends, and does larger collectives
   * itself.
   */
  uint64_t max_bytes;
  /** Its name and version, NUL-terminated, for texts: "Open MPI 4.1.4". */
  char name[64];
  /** With enqueue: the kind of the device whose memory and streams it takes, as of weir_engine_info. */
  weir_engine_kind engine_kind;
  /** With enqueue: the device's index. */
  int32_t engine_index;
  /** The operations that enqueue takes, as `ops`. weir builds none of what is missing there. */
  uint64_t device_ops;
  /** The types that it reduces there, as `dtypes`. */
  uint64_t device_dtypes;
  /** The reductions that it knows there, as `reductions`. */
  uint64_t device_reductions;
} weir_comm_transport_info;

/** An operation between ranks: one of enum weir_comm_op_value. */
typedef uint32_t weir_comm_op;

/** How values are reduced: one of enum weir_comm_reduction_value. */
typedef uint32_t weir_comm_reduction;

/**
 * An operation that a transport starts. Memory is the host's, and stays valid until `test` has reported the end. For
 * enqueue it is the device's.
 */
typedef struct weir_comm_operation {
  /** sizeof(weir_comm_operation), set by weir. */
  size_t struct_size;
  /** The operation. */
  weir_comm_op op;
  /** 0 if nothing is reduced. */
  weir_comm_reduction reduction;
  /** The type of its elements. */
  weir_dtype dtype;
  /** SEND: to; RECV: from; BROADCAST and REDUCE: the root; else 0. */
  int32_t peer;
  /** SEND and RECV. */
  int32_t tag;
  /** Reserved, 0. */
  uint32_t reserved;
  /**
   * Elements: of the message (SEND, RECV, BROADCAST, REDUCE, ALL_REDUCE), of one rank's part (ALL_GATHER,
   * REDUCE_SCATTER, ALL_TO_ALL); 0 for BARRIER.
   */
  uint64_t count;
  /** Size of an element in bytes. */
  size_t element_bytes;
  /**
   * SEND, REDUCE, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, and the root of BROADCAST. Never overlaps
   * `recv`.
   */
  const void *send;
  /** All but SEND and BARRIER; REDUCE writes it on the root alone; BROADCAST on all but the root. */
  void *recv;
} weir_comm_operation;

/**
 * The host's transport between ranks. weir orders the operations, keeps their memory, and says what failed; the
 * transport moves the bytes.
 *
 * Copied by weir_comm_create. Calls for one `ctx` come from one thread at a time, with no lock of weir's that another
 * call of the library needs, except where a member says otherwise; those for several come at once. No function blocks.
 * They must not throw, longjmp or unwind. A status is WEIR_OK or the code of the failure, whose text and rank
 * `last_error` tells. docs/ranks.md is the full contract.
 */
typedef struct weir_comm_vtable {
  /** sizeof(weir_comm_vtable) of the host's header. Members beyond it read as NULL. */
  size_t struct_size;
  /** Required. Fills *out_info, whose struct_size says how much of it weir knows. Called once. */
  weir_status (*get_info)(void *ctx, weir_comm_transport_info *out_info);
  /**
   * Required, unless there is enqueue. Begins an operation, and stores what `test` is called with. Operations begin
   * in the order of these calls.
   */
  weir_status (*start)(void *ctx, const weir_comm_operation *operation, void **out_request);
  /**
   * Required with start. Whether the operation is done; makes progress. After a 1, and after a failure, the request
   * is gone.
   */
  weir_status (*test)(void *ctx, void *request, int32_t *out_done);
  /** Optional: makes progress with all operations, for a transport that says WEIR_COMM_NEEDS_PROGRESS. */
  weir_status (*progress)(void *ctx);
  /**
   * Optional: sends a message of WEIR_COMM_MESSAGE_BYTES bytes, which are copied, to a rank, beside all operations.
   * It goes out without further calls, or in later ones. Without it and control_poll a rank hears of another one's
   * failure only by what its operations report, or by its limit.
   */
  weir_status (*control_send)(void *ctx, int32_t peer, const void *message);
  /** Optional: takes one control message that has come, if there is one. Messages of one rank come in order. */
  weir_status (*control_poll)(void *ctx, int32_t *out_peer, void *out_message, int32_t *out_got);
  /**
   * Optional: a transport of its own over the same ranks, for runs at once. Collective, and it may block. It is
   * called in the thread of weir_comm_duplicate, maybe while another thread is in another function; so is split.
   */
  weir_status (*duplicate)(void *ctx, void **out_ctx);
  /**
   * Optional: a transport among the ranks that pass the same color, ordered by key, then by rank; a color below 0
   * gives none (*out_ctx = NULL). Collective, and it may block.
   */
  weir_status (*split)(void *ctx, int32_t color, int32_t key, void **out_ctx);
  /**
   * Optional: gives up all operations that are open. No other function but recover, last_error and release is called
   * afterwards.
   */
  void (*abort)(void *ctx);
  /**
   * Optional: after abort, a transport among the ranks that are left, in their order. Collective among them, and it
   * may block.
   */
  weir_status (*recover)(void *ctx, void **out_ctx);
  /**
   * Optional: the rank that the last failure is about (-1 = unknown), and its text, NUL-terminated within
   * `capacity` bytes.
   */
  void (*last_error)(void *ctx, int32_t *out_rank, char *text, size_t capacity);
  /**
   * Optional: called once, when the communicator is gone, for `ctx` and for each one that duplicate, split and
   * recover have made; in any thread, also with WEIR_COMM_ONE_THREAD: the last reference may be a run's.
   */
  void (*release)(void *ctx);
  /**
   * Optional: submits operations on the device's memory to a stream of it, and returns: they begin when the stream's
   * earlier work is done, its later work waits for them, and they count as one. `stream` is its native handle (CUDA:
   * the CUstream, and the context of the device is current). SEND and RECV have no tag: messages between two ranks
   * come in their order. `send` and `recv` are different, or the same for ALL_REDUCE, REDUCE and BROADCAST. All
   * ranks' calls come in one order, from any thread, and never while another function is called. It may wait, within
   * a limit of the transport's, until the ranks are connected. After abort the streams go on: what was submitted
   * ends, with any result.
   */
  weir_status (*enqueue)(void *ctx, const weir_comm_operation *operations, size_t num_operations, uint64_t stream);
} weir_comm_vtable;

/** Options of weir_comm_create and weir_comm_create_local. NULL and all-zero are the defaults. */
typedef struct weir_comm_options {
  /** sizeof(weir_comm_options) of the caller's header. */
  size_t struct_size;
  /** For texts, NUL-terminated UTF-8; NULL = "comm". The same on all ranks. */
  const char *name;
  /** OR of weir_comm_option_flags. */
  uint64_t flags;
  /**
   * The longest that an operation may take from its begin on, in nanoseconds; then the other ranks are asked how far
   * they have come, for 100 ms at most, and all ranks' runs end. 0 = no limit. It counts while another rank has not
   * begun the operation, for whatever reason: it must exceed the longest time by which ranks come apart, for
   * instance because one computes.
   */
  uint64_t limit_ns;
} weir_comm_options;

/** A communicator's figures. */
typedef struct weir_comm_info {
  /** sizeof(weir_comm_info), set by the caller before the call. */
  size_t struct_size;
  /** This rank. */
  int32_t rank;
  /** How many ranks there are. */
  int32_t size;
  /** The transport's weir_comm_flags. */
  uint64_t flags;
  /** Operations that were begun. */
  uint64_t begun;
  /** Those of them that are over. */
  uint64_t ended;
  /** The operations (bit 1 << weir_comm_op_value) that weir builds of sends and receives. */
  uint64_t built;
  /** Bytes of operations that were given up, and that the transport may still use. */
  uint64_t quarantined_bytes;
  /** 1 if an operation has failed or was given up: the communicator takes no more of them. */
  uint32_t dead;
  /** 1 if weir_comm_recover may work. */
  uint32_t recoverable;
  /** The transport's name, NUL-terminated. */
  char transport[64];
  /** The operations (bit 1 << weir_comm_op_value) that it does in a device's memory. */
  uint64_t device_ops;
} weir_comm_info;

/**
 * The operation of a kernel (weir_kernel_create_communication). All-zero members have the meaning that is said for
 * them.
 */
typedef struct weir_communication {
  /** sizeof(weir_communication) of the caller's header. */
  size_t struct_size;
  /** The operation. */
  weir_comm_op op;
  /** For REDUCE, ALL_REDUCE and REDUCE_SCATTER; 0 = WEIR_COMM_SUM. */
  weir_comm_reduction reduction;
  /** The other rank of SEND and RECV, never this one, and the root of BROADCAST and REDUCE; 0 for the others. */
  int32_t peer;
  /**
   * For SEND and RECV: a message is received by an operation with its tag, 0 to 16,383, in the order in which they
   * were sent.
   */
  int32_t tag;
  /** For RECV: the type and shape of what comes. */
  weir_tensor_desc desc;
  /** OR of weir_communication_flags. */
  uint64_t flags;
  /** For ALL_REDUCE: so many inputs, and outputs, of one type, which are sent as one message (a bucket); 0 = 1. */
  size_t num_tensors;
} weir_communication;

/**
 * Creates a communicator over a transport of the host's. Each rank creates one; the call itself does not communicate.
 *
 * Ownership: the vtable is copied; `ctx` passes to the communicator, which calls release for it when it is gone, on
 * success alone. Errors: INVALID_ARGUMENT (NULL, a required function is missing, flags that do not go together);
 * OUT_OF_RANGE (what get_info says); UNIMPLEMENTED (WEIR_COMM_CHECKED without control messages); the status of
 * get_info.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_comm_create(const weir_comm_vtable *vtable,
                             void *ctx,
                             const weir_comm_options *options,
                             weir_comm **out_comm);

/**
 * Creates a communicator for each of `size` ranks in this process, for tests, and for ranks that are threads. A rank
 * is used in one thread at a time, or several ranks in one. Reductions are in rank order, and a send waits for its
 * receive. weir_comm_split and weir_comm_recover of such a rank wait for all others, so these need a thread each.
 *
 * `out_comms` has `size` elements, for the communicators in rank order. Errors: INVALID_ARGUMENT; OUT_OF_RANGE (size
 * is not 1 to 4096).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_comm_create_local(int32_t size,
                                   const weir_comm_options *options,
                                   weir_comm **out_comms);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_comm_retain(weir_comm *comm);

/**
 * Gives up one reference. NULL does nothing. Kernels keep their communicator, and so does a call of a stream or a run
 * that waits for an operation: without a limit one that never ends keeps it, its tensors and the transport for good.
 * The transport is released with the last reference.
 */
WEIR_API void weir_comm_release(weir_comm *comm);

/** Fills *out_info. Operations may begin and end meanwhile: then each figure is one of a recent moment. */
WEIR_API WEIR_NODISCARD weir_status weir_comm_get_info(const weir_comm *comm, weir_comm_info *out_info);

/**
 * Creates a communicator among the same ranks, with operations of its own, for runs at once. All ranks call it, in the
 * same order among their calls of this kind. `options` NULL: as for `comm`.
 *
 * The transport's duplicate is called at once, beside what weir's other threads do with `comm`: unless the transport
 * allows that, no operation of `comm` is open meanwhile, and it has no thread of weir's own.
 *
 * Blocking: as the transport's duplicate; never for local ranks. Errors: FAILED_PRECONDITION (in another thread, for a
 * transport that says WEIR_COMM_ONE_THREAD); UNIMPLEMENTED (the transport has no duplicate); that of a dead
 * communicator; the transport's.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_comm_duplicate(weir_comm *comm,
                                const weir_comm_options *options,
                                weir_comm **out_comm);

/**
 * Creates a communicator among the ranks that pass the same `color`, ordered by `key`, then by their rank. A color
 * below 0 gives none: *out_comm is NULL. All ranks call it. `options` NULL: as for `comm`.
 *
 * The transport's split is called as its duplicate is by weir_comm_duplicate.
 *
 * Blocking: as the transport's split, which waits for all ranks. Errors: UNIMPLEMENTED (the transport has no split);
 * otherwise as weir_comm_duplicate.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_comm_split(weir_comm *comm,
                            int32_t color,
                            int32_t key,
                            const weir_comm_options *options,
                            weir_comm **out_comm);

/**
 * Makes progress with the communicator's operations for up to `budget_ns`, and returns at once when none is left.
 * *out_pending receives how many are left. A host whose threads do not wait in weir calls it now and then; for a
 * transport that says WEIR_COMM_ONE_THREAD, in that thread.
 *
 * Blocking: for at most `budget_ns`.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_comm_progress(weir_comm *comm,
                               uint64_t budget_ns,
                               int32_t *out_pending);

/**
 * Gives up: operations that are open, here and on all other ranks, end with ABORTED and this text, and the
 * communicator takes no more of them. `text` (may be NULL) says why. In any thread; where the transport is for another
 * one (WEIR_COMM_ONE_THREAD), that one tells the other ranks, as soon as it waits in weir or calls weir_comm_progress.
 */
WEIR_API WEIR_NODISCARD weir_status weir_comm_abort(weir_comm *comm, const char *text);

/**
 * After a failure: creates a communicator among the ranks that are left, in their order, if the transport can
 * (weir_comm_info.recoverable). All of them call it. `options` NULL: as for `comm`.
 *
 * Blocking: as the transport's recover. Errors: FAILED_PRECONDITION (comm is not dead, or in another thread, for a
 * transport that says WEIR_COMM_ONE_THREAD); UNIMPLEMENTED (the transport
 * has no recover: the ranks can only end); the transport's.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_comm_recover(weir_comm *comm,
                              const weir_comm_options *options,
                              weir_comm **out_comm);

/**
 * Creates a kernel that communicates, for weir_graph_add_kernel and weir_enqueue. Its inputs and outputs are those
 * of its operation. On all ranks the operations of a communicator begin in one order: in a graph that in which they
 * were added, and on a stream that of the calls. Between streams, and between a stream and a run, it is the order in
 * which they come to their turn: only one stream, an event between them, or a wait makes it the same on all ranks.
 * No thread is held while one is under way.
 *
 * `engine` says whose memory it takes. An engine of the CPU: values of other engines are copied to and from it, and in
 * a graph the operation is a node that completes later, so the rules for such nodes hold. The engine of the device
 * that the transport takes (weir_comm_transport_info.engine_kind): the operation goes to the device's streams, in
 * their order, and the host does not wait for it. A run has the communicator until it ends; another run with it at the
 * same time fails.
 *
 * Tensors in the host's memory get the outputs of a run with such kernels when it has ended well, and nothing if it
 * fails; docs/ranks.md has the exceptions.
 *
 * Ownership: the kernel keeps the communicator. Errors: INVALID_ARGUMENT (also: the transport takes no memory of the
 * engine); OUT_OF_RANGE (peer, num_tensors, and tag, which is 0 on a device); UNIMPLEMENTED (an operation that the
 * transport does not do on the device, and WEIR_COMMUNICATION_DETERMINISTIC there).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_communication(weir_engine *engine,
                                             weir_comm *comm,
                                             const weir_communication *desc,
                                             const weir_kernel_options *options,
                                             weir_kernel **out_kernel);

/**
 * Compares the program with those of the other ranks: whether all do the same collectives in the same order, with the
 * types and shapes of all tensors, whether each send has its receive of the same type and size, and whether nothing
 * waits for itself. Collectives that are equal are told apart by their nodes' names, if all ranks have the same names.
 * All ranks call it, with their programs; it
 * communicates a little. Operations on other communicators are not looked at.
 *
 * Blocking: until all ranks have answered, or `limit_ns` has passed; then the communicator is dead. Errors:
 * FAILED_PRECONDITION (with the first operation that differs, a message without its counterpart, or the circle, and
 * the ranks; the same on every rank but for its own number); DEADLINE_EXCEEDED; the communicator's.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_program_agree(const weir_program *program,
                               weir_comm *comm,
                               uint64_t limit_ns);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_COMM_H */
