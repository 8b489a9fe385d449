/* weir/device.h: devices of plug-ins, and the interface below
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef WEIR_DEVICE_H
#define WEIR_DEVICE_H

#include "../weir.h"

/** @file weir/device.h
 * devices of plug-ins, and the interface below. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Device -------------------------------------------------------------------------------------------------------
 * Engines of one kind stand on devices that somebody makes: weir itself, or a plug-in, which is a vtable of C
 * functions (weir_device_vtable) that a program registers, or a library that weir_device_load opens. A plug-in's
 * engines have streams, events, tensors and kernels like all others. After a fork the child leaves plug-ins alone; a
 * library that was loaded is never unloaded. docs/devices.md is the contract.
 */

/** Optional capabilities of a plug-in's device. */
typedef enum weir_device_capability_flags {
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
  WEIR_DEVICE_REGIONS = 262144
} weir_device_capability_flags;

/** Bits of weir_device_vtable.flags. */
typedef enum weir_device_vtable_flags {
  /** weir_engine_create_all leaves out its devices, since they are not devices of the machine. */
  WEIR_DEVICE_UNLISTED = 1
} weir_device_vtable_flags;

/** Kinds of objects for native_handle of a weir_device_vtable. */
typedef enum weir_device_object_value {
  /** The device. */
  WEIR_DEVICE_OBJECT_DEVICE = 1,
  /** A stream of it. */
  WEIR_DEVICE_OBJECT_STREAM = 2,
  /** An event of it. */
  WEIR_DEVICE_OBJECT_EVENT = 3
} weir_device_object_value;

/** The kinds of steps of a recording. */
typedef enum weir_device_work_kind_value {
  /** A launch of a kernel. */
  WEIR_DEVICE_WORK_LAUNCH = 1,
  /** A copy. */
  WEIR_DEVICE_WORK_COPY = 2,
  /** A fill: all bytes get one value. */
  WEIR_DEVICE_WORK_FILL = 3,
  /** A branch: one of several lists of steps runs. Only with WEIR_DEVICE_CONTROL_FLOW, like the next one. */
  WEIR_DEVICE_WORK_BRANCH = 4,
  /** A loop: a list of steps is repeated. */
  WEIR_DEVICE_WORK_LOOP = 5
} weir_device_work_kind_value;

/** The predicates of a recording's loop. */
typedef enum weir_device_relation_value {
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
  WEIR_DEVICE_GE = 6
} weir_device_relation_value;

/** Facts about a device, filled by the plug-in. */
typedef struct weir_device_info {
  /** sizeof(weir_device_info), set by weir. A plug-in writes no member that lies beyond it. */
  size_t struct_size;
  /** OR of weir_device_capability_flags. */
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

/**
 * A kernel as a host function, on memory that the host can touch: weir's, for a device to call. It may block, and may
 * call weir. Any thread, several at a time. A code that is not WEIR_OK is the failure of the kernel: then `text` holds
 * the reason, at most `capacity` bytes of NUL-terminated UTF-8.
 */
typedef int32_t (*weir_device_host_call_fn)(void *user,
                                            const weir_tensor_view *inputs,
                                            size_t num_inputs,
                                            const weir_tensor_view *outputs,
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
  const weir_tensor_view *inputs;
  /** How many. */
  size_t num_inputs;
  /** The outputs, likewise. */
  const weir_tensor_view *outputs;
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
  /** One of weir_device_relation_value. */
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
  /** One of weir_device_work_kind_value. */
  uint32_t kind;
  /** Reserved, 0. */
  uint32_t reserved;
  /** Its name for texts, NUL-terminated UTF-8. */
  const char *name;
  /** For a launch: the kernel. */
  void *kernel;
  /** For a launch: its arguments. */
  const weir_device_launch *launch;
  /** The copy. */
  const weir_device_copy *copy;
  /** The fill. */
  const weir_device_fill *fill;
  /** The branch. */
  const weir_device_branch *branch;
  /** The loop. */
  const weir_device_loop *again;
} weir_device_work;

/** A step of a list. This struct never grows. */
typedef struct weir_device_step {
  /** Its work. */
  const weir_device_work *work;
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
  const weir_device_step *steps;
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
  weir_device_step_list list;
} weir_device_recording;

/** A node of a region: one call of a kernel. Values are named by their numbers in the region. This struct never grows. */
typedef struct weir_device_region_node {
  /** Its name for texts, NUL-terminated UTF-8. */
  const char *name;
  /** The recipe of its kernel, as given to kernel_create. */
  const weir_device_recipe *recipe;
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
  weir_tensor_desc desc;
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
  const weir_device_region_node *nodes;
  /** How many. */
  size_t num_nodes;
  /** Its values: inputs, constants, and the outputs of its nodes. */
  const weir_device_region_value *values;
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
 * weir_status_value; if it fails, its outputs are unchanged. All return without waiting for the device, except those
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
  int32_t (*device_info)(void *ctx, void *device, weir_device_info *info);
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
  int32_t (*stream_create)(void *device, const weir_device_stream_attr *attr, void **out_stream);
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
  int32_t (*kernel_create)(void *device, const weir_device_recipe *recipe, void **out_kernel);
  /** Required. Destroys a kernel. No launch of it is in flight. */
  void (*kernel_destroy)(void *device, void *kernel);
  /** Required without work_submit. Launches a kernel. */
  int32_t (*launch)(void *device, void *stream, void *kernel, const weir_device_launch *launch);
  /**
   * Required with WEIR_DEVICE_NATIVE_HANDLE. The handle of an object in the plug-in's native interface: `what` is
   * one of weir_device_object_value, `object` the object (the device itself for WEIR_DEVICE_OBJECT_DEVICE).
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
  int32_t (*record)(void *device, const weir_device_recording *recording, void **out_executable);
  /**
   * Required with WEIR_DEVICE_RECORDINGS. Changes the addresses of a step of the recording's own list, from the next
   * replay on; replays in flight keep the old ones. The kernel, the shapes and the bytes stay the same, and the step
   * is no branch and no loop. If this fails, weir makes the recording anew.
   */
  int32_t (*executable_update)(void *device, void *executable, size_t step, const weir_device_work *work);
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
                     const weir_device_launch *launch,
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
  int32_t (*kernel_scratch)(void *device, void *kernel, const weir_device_launch *launch, uint64_t *out_bytes);
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
  int32_t (*work_submit)(void *device, void *stream, const weir_device_work *work);
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
  int32_t (*region_claim)(void *device, const weir_device_region *region, uint32_t *out_groups);
  /**
   * Required with WEIR_DEVICE_REGIONS, may block. Compiles a region to one kernel. It is launched, prepared,
   * recorded, queried for its scratch memory and destroyed like those of kernel_create, with the region's inputs and
   * outputs. WEIR_UNIMPLEMENTED declines: the region's nodes are launched one by one, and the program's report gives
   * the text. Any other code fails the program's compilation.
   */
  int32_t (*region_compile)(void *device, const weir_device_region *region, void **out_kernel);
} weir_device_vtable;

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
  int32_t (*device_register)(const char *name, int32_t priority, const weir_device_vtable *vtable, void *ctx);
  /** weir_device_replace. */
  int32_t (*device_replace)(const char *name, int32_t priority, const weir_device_vtable *vtable, void *ctx);
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
typedef int32_t (*weir_device_plugin_init_fn)(const weir_device_plugin_api *api);

/**
 * The kind with this name: "cpu", "cuda", "emulated", or a name registered by a plug-in. A name keeps its number for
 * the life of the process, even after its device provider is unregistered.
 *
 * Errors: NOT_FOUND.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_kind_from_name(const char *name, weir_engine_kind *out_kind);

/** The name of a kind, "cpu"; "?" for an unknown number. */
WEIR_API const char *weir_engine_kind_name(weir_engine_kind kind);

/**
 * The kinds that have a device provider, in ascending order; a machine may still have no device of a kind
 * (weir_engine_count). *out_count is the number of kinds; as many as fit are stored. A call with capacity 0 only asks
 * for the number.
 *
 * Errors: OUT_OF_RANGE if capacity is not 0 and too small (*out_count is set).
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
 * Blocking: never; no function of the vtable is called. Ownership: ctx passes to weir if this call succeeds:
 * vtable->release(ctx) is called when the provider is unregistered or replaced, and its last device closed. Errors:
 * INVALID_ARGUMENT (NULL, a required member that is NULL, which the text names, struct_size, name); ALREADY_EXISTS if
 * there is a provider with this priority (weir_device_replace replaces it).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_device_register(const char *name,
                                 int32_t priority,
                                 const weir_device_vtable *vtable,
                                 void *ctx);

/**
 * Replaces the provider that has this priority. Devices that are open stay with the old provider; the new one opens
 * the next.
 *
 * Blocking: as vtable->release of the old provider. Ownership: as weir_device_register. Errors: those of
 * weir_device_register; NOT_FOUND if there is no provider with this priority.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_device_replace(const char *name,
                                int32_t priority,
                                const weir_device_vtable *vtable,
                                void *ctx);

/**
 * Unregisters the provider of this kind and priority. Devices that are open stay until their engines are gone.
 *
 * Blocking: as vtable->release. Ownership: weir gives up the vtable's ctx, see weir_device_register. Errors:
 * NOT_FOUND.
 */
WEIR_API WEIR_NODISCARD weir_status weir_device_unregister(const char *name, int32_t priority);

/**
 * Opens a plug-in library and lets it register its devices: its function weir_device_plugin_init
 * (weir_device_plugin_init_fn) is called in this thread. A loaded library stays loaded for the life of the process:
 * loading it once more does nothing. If it fails, its registrations are undone, and a later call tries again.
 *
 * Thread safety: any thread, but not from inside weir_device_plugin_init of the same library. Blocking: while the
 * library is opened and initialised, here or in another thread. Errors: INVALID_ARGUMENT (NULL, or a library without
 * that function); NOT_FOUND if it cannot be opened (the text is the loader's); UNIMPLEMENTED where libraries cannot be
 * opened; else the status that weir_device_plugin_init returned.
 */
WEIR_API WEIR_NODISCARD weir_status weir_device_load(const char *path);

/**
 * Settings that the engine's device is opened with, in a format defined by its plug-in (device_open_with of
 * weir_device_vtable). The first engine on a device decides: another one with incompatible settings is refused while
 * the device is alive, and one without settings shares it. `bytes` 0 clears the settings.
 *
 * Errors: OUT_OF_RANGE (bytes); RESOURCE_EXHAUSTED. weir_engine_create fails with UNIMPLEMENTED if the device takes no
 * settings.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_device_settings(weir_engine_attr *attr,
                                                 const void *settings,
                                                 size_t bytes);

/**
 * The settings that were set; in the attributes of an engine, its device's actual settings. *out_bytes is their size
 * in bytes, 0 if there are none; as many bytes as fit are stored. A call with capacity 0 only asks for the size.
 *
 * Errors: OUT_OF_RANGE if capacity is not 0 and too small (*out_bytes is set).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_device_settings(const weir_engine_attr *attr,
                                                 void *out_settings,
                                                 size_t capacity,
                                                 size_t *out_bytes);

/**
 * Makes "`function`: `text`" with the code `status` the calling thread's last error, as if weir's function had failed:
 * for libraries on top of weir whose functions fail as weir's do. `function` and `text` are copied; NULL is "". A
 * status that is no error's is UNKNOWN.
 */
WEIR_API void weir_last_error_set(weir_status status, const char *function, const char *text);

/* ---- Native handles -----------------------------------------------------------------------------------------------
 * The names by which the interface below a device knows an engine, a stream or an event of weir's, for work of the
 * host's own beside it.
 */

/**
 * The engine's native device handle. CUDA: the CUcontext. A plug-in: the result of its native_handle. The native
 * address of a tensor is weir_tensor_get_data.
 *
 * Ownership: the handle stays weir's, and lives as long as the engine. Errors: UNIMPLEMENTED if there is no such
 * handle, as on the CPU.
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_get_native_handle(const weir_engine *engine, uint64_t *out_handle);

/**
 * The stream's native handle. CUDA: the CUstream, for the host's own work beside weir's: it runs after work submitted
 * before, unless that waits for something on the host.
 *
 * Ownership: the handle stays weir's, and lives as long as the stream. Errors: UNIMPLEMENTED if there is no such
 * handle, as on the CPU.
 */
WEIR_API WEIR_NODISCARD weir_status weir_stream_get_native_handle(const weir_stream *stream, uint64_t *out_handle);

/**
 * The native handle of the event, as last recorded. CUDA: a CUevent, for streams of the host's own to wait for.
 *
 * Ownership: the handle stays weir's. It lives until the event is recorded again or released. Errors:
 * FAILED_PRECONDITION if the event was never recorded, or the device has not been given the record yet; UNIMPLEMENTED
 * if there is no such handle, as on the CPU.
 */
WEIR_API WEIR_NODISCARD weir_status weir_event_get_native_handle(const weir_event *event, uint64_t *out_handle);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_DEVICE_H */
