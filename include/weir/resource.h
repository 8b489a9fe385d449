/* weir/resource.h: what an engine keeps by name between runs
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef WEIR_RESOURCE_H
#define WEIR_RESOURCE_H

#include "../weir.h"

/** @file weir/resource.h
 * what an engine keeps by name between runs. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Resources ----------------------------------------------------------------------------------------------------
 * The objects that an engine keeps by name between runs: variables, lookup tables, objects of yours. A name is in a
 * container, NULL = "default". Names of resources have at most 127 bytes, those of containers 63: letters, digits,
 * '.', '_', '-' and '/', not beginning with '_', '-' or '/'. Creating with name NULL makes a resource without one. A
 * resource is counted: its name holds one reference, handles, programs and queued work hold others. See
 * docs/resources.md.
 */

/** Kinds of resources. */
typedef enum weir_resource_kind_value {
  /** In a lookup: any kind. Never the kind of a resource. */
  WEIR_RESOURCE_ANY = 0,
  /** A tensor that lives between runs. */
  WEIR_RESOURCE_VARIABLE = 1,
  /** A lookup table. */
  WEIR_RESOURCE_TABLE = 2,
  /** A host object. */
  WEIR_RESOURCE_HOST = 3
} weir_resource_kind_value;

/**
 * An object that an engine keeps by name: a variable, a lookup table, a host object. Shared: create or look up,
 * retain, release.
 */
typedef struct weir_resource weir_resource;

/** The kind of a resource: one of enum weir_resource_kind_value. */
typedef uint32_t weir_resource_kind;

/**
 * Creates a resource for weir_resource_lookup_or_create: creates one of `engine` with name NULL and stores the
 * reference in *out_resource, which passes to weir. Returns WEIR_OK or the code of its failure. It may take its time,
 * and create other resources; it must not throw, longjmp or unwind.
 */
typedef weir_status (*weir_resource_build_fn)(void *arg, weir_resource **out_resource);

/** A description of a resource. */
typedef struct weir_resource_info {
  /** sizeof(weir_resource_info), set by the caller before the call. */
  size_t struct_size;
  /**
   * Its id on its engine, an index and a generation, valid while it has its name (or, without one, is alive) and
   * never reused for another resource. It keeps nothing alive (weir_resource_from_id).
   */
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
  weir_tensor_desc desc;
} weir_resource_info;

/**
 * Finds a resource by its name. `container` NULL = "default"; `kind` WEIR_RESOURCE_ANY = any kind.
 *
 * Errors: NOT_FOUND (no such container, or no such resource in it); INVALID_ARGUMENT (NULL, a bad name, another kind).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_lookup(weir_engine *engine,
                                 const char *container,
                                 const char *name,
                                 weir_resource_kind kind,
                                 weir_resource **out_resource);

/**
 * Finds a resource by its name, or creates it: then `build` is called with `arg`, in this thread and once, and the
 * resource that it creates with name NULL gets the name. Threads that look it up meanwhile wait for it; if `build`
 * fails, its code is this call's, and one of them tries in turn. A call in a worker of a pool, or inside of a build
 * function, does not wait but fails.
 *
 * Blocking: while `build` runs here or in another thread. Errors: FAILED_PRECONDITION (another call is making it, and
 * waiting here may block a worker or never end); INVALID_ARGUMENT (NULL, a bad name, another kind, `build` gave no
 * resource, or one with a name or of another engine); the code that `build` returned.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_lookup_or_create(weir_engine *engine,
                                           const char *container,
                                           const char *name,
                                           weir_resource_kind kind,
                                           weir_resource_build_fn build,
                                           void *arg,
                                           weir_resource **out_resource);

/**
 * Keeps a host object: `object` is the host's, weir only hands it out. `type_name` (at most 63 bytes) states its type,
 * so that it is not taken for something else. `destroy` (may be NULL) is called with `object` exactly once, when
 * nothing refers to it any more, in any thread; not if this call fails.
 *
 * Ownership: `object` passes to the resource if `destroy` is given. Errors: ALREADY_EXISTS; INVALID_ARGUMENT (NULL, a
 * bad name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_create_host(weir_engine *engine,
                                      const char *container,
                                      const char *name,
                                      const char *type_name,
                                      void *object,
                                      weir_destroy_fn destroy,
                                      weir_resource **out_resource);

/**
 * The object passed to weir_resource_create_host, if it is of this type.
 *
 * Errors: INVALID_ARGUMENT (NULL, another kind, another type).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_get_host(const weir_resource *resource,
                                   const char *type_name,
                                   void **out_object);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_resource_retain(weir_resource *resource);

/** Gives up one reference. NULL does nothing. A resource with a name stays alive under it. */
WEIR_API void weir_resource_release(weir_resource *resource);

/**
 * Removes a name. The resource ends with its last reference: programs compiled with it continue. Its id is stale at
 * once, and kernels that name it are refused.
 *
 * Blocking: never; a destroy function of the host may run in here. Errors: NOT_FOUND (no such container, or no such
 * resource in it).
 */
WEIR_API WEIR_NODISCARD weir_status weir_resource_delete(weir_engine *engine, const char *container, const char *name);

/**
 * Removes all names of a container, as weir_resource_delete does. A container that does not exist counts as cleared.
 * `out_count` (may be NULL) receives the number of removed names.
 *
 * Blocking: never; destroy functions of the host may run in here.
 */
WEIR_API WEIR_NODISCARD weir_status weir_resource_clear(weir_engine *engine, const char *container, size_t *out_count);

/**
 * Lists the resources of a container, or of all (`container` NULL), in the order of containers and names. Set
 * struct_size of the first entry: it is the distance between entries, and weir stores it in every entry that it fills.
 * `out_count` receives the number of resources. capacity 0 only asks for the number (infos may then be NULL).
 *
 * Errors: INVALID_ARGUMENT (NULL, struct_size, a bad name); OUT_OF_RANGE if capacity is too small (out_count is set,
 * the entries are left alone).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_list(weir_engine *engine,
                               const char *container,
                               weir_resource_info *infos,
                               size_t capacity,
                               size_t *out_count);

/** Fills *out_info with a description of a resource. */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_get_info(const weir_resource *resource,
                                   weir_resource_info *out_info);

/**
 * The resource with this id.
 *
 * Errors: NOT_FOUND (it was destroyed, or never was).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_resource_from_id(weir_engine *engine,
                                  uint64_t id,
                                  weir_resource **out_resource);

/**
 * Copies a list of the resources that were still referenced when their engine ended, and are still now: a line for
 * each, "engine cpu:0: variable 'x' of container 'default' (1 references)". "" if there are none.
 */
WEIR_API WEIR_NODISCARD weir_status weir_resource_get_leaks(char *buffer, size_t capacity, size_t *out_length);

/* ---- Variable -----------------------------------------------------------------------------------------------------
 * A tensor that lives between runs. Kernels read it, assign to it and add to it, as nodes of graphs and with
 * weir_enqueue. In a graph edges must say in which order; two runs at once, or a run and the host, are kept apart by
 * the variable: an exclusive one by a lock that never blocks a worker of a pool, an optimistic one by versions.
 */

/** Flags of weir_variable_create. */
typedef enum weir_variable_flags {
  /** Exclusive: nodes, streams and the host take turns, and a graph states the order of its nodes' accesses. */
  WEIR_VARIABLE_EXCLUSIVE = 0,
  /**
   * Optimistic: nobody waits. A read sees one whole value, never parts of two; no sum is lost; a graph need not
   * state an order.
   */
  WEIR_VARIABLE_OPTIMISTIC = 1
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
   * As ASSIGN, and the input is added to the value: f32, bf16, f16, s64, s32, s8, u8, with the sums of
   * weir_kernel_create_binary. Concurrent additions of several nodes are all included, in some order, which may show
   * in floating point.
   */
  WEIR_VARIABLE_ASSIGN_ADD = 3
} weir_variable_op_value;

/** An operation of a kernel on a variable: one of enum weir_variable_op_value. */
typedef uint32_t weir_variable_op;

/**
 * Creates a variable like `desc`, in the engine's memory. Its initial value is that of `initial`, a tensor like `desc`
 * (NULL: zeros). `flags`: WEIR_VARIABLE_EXCLUSIVE or WEIR_VARIABLE_OPTIMISTIC. `container` NULL = "default"; `name`
 * NULL = without a name.
 *
 * On an accelerator's engine the variable is in the device's memory, and `initial` there or in the host's; the device
 * orders the accesses of all streams and programs one after the other, without a wait on the host (docs/resources.md).
 *
 * Blocking: never; with `initial` on a device until its value is there. Ownership: desc, names and the initial value
 * are copied. Errors: ALREADY_EXISTS; INVALID_ARGUMENT (NULL, a bad name, desc, flags, another shape of `initial`, or
 * one in the memory of another device); FAILED_PRECONDITION (`initial` of a variable on a device, where waiting may
 * block a worker); OUT_OF_RANGE; RESOURCE_EXHAUSTED; errors of the device.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_variable_create(weir_engine *engine,
                                 const char *container,
                                 const char *name,
                                 const weir_tensor_desc *desc,
                                 uint64_t flags,
                                 const weir_tensor *initial,
                                 weir_resource **out_variable);

/**
 * Copies a variable's value into a tensor of the same shape, in the calling thread. The tensor is in the memory of the
 * variable's device, or the host's.
 *
 * Blocking: while a node or another call holds an exclusive variable; in a worker of a pool it spins for a moment and
 * refuses. For a variable on a device: until the copy is done; inside of anything that weir has called it refuses.
 * Errors: INVALID_ARGUMENT (NULL, no variable, another shape, the memory of another device); FAILED_PRECONDITION
 * (waiting here may block a worker); errors of the device.
 */
WEIR_API WEIR_NODISCARD weir_status weir_variable_read(const weir_resource *variable, weir_tensor *tensor);

/**
 * Assigns the value of a tensor of the same shape to a variable, in the calling thread.
 *
 * Blocking: as weir_variable_read. Errors: those of weir_variable_read; RESOURCE_EXHAUSTED.
 */
WEIR_API WEIR_NODISCARD weir_status weir_variable_assign(weir_resource *variable, const weir_tensor *tensor);

/**
 * Creates a kernel that reads or writes a variable. The kernel refers to the variable by its id and does not keep it
 * alive; a program compiled with the kernel does.
 *
 * Kernels of an exclusive variable complete later while another node holds it, so synchronous streams and runs inside
 * of a worker of a pool refuse them; kernels of an optimistic variable, and of a variable on a device, may run
 * anywhere. They run in every run of a program, whether or not their outputs are used.
 *
 * Errors: INVALID_ARGUMENT (NULL, no variable, one of another engine, unknown op, a sum of elements that are no
 * numbers). Calls of the kernel, and weir_graph_compile: NOT_FOUND (the variable was destroyed); of a write
 * RESOURCE_EXHAUSTED, too.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_variable(weir_engine *engine,
                                        const weir_resource *variable,
                                        weir_variable_op op,
                                        const weir_kernel_options *options,
                                        weir_kernel **out_kernel);

/* ---- Lookup table -------------------------------------------------------------------------------------------------
 * 64-bit integers or byte strings to rows of one type and shape.
 */

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
  WEIR_TABLE_SIZE = 3
} weir_table_op_value;

/** Key types of tables. */
typedef enum weir_table_key_value {
  /** Signed 64-bit integers. */
  WEIR_TABLE_KEY_INT64 = 1,
  /** Strings of bytes of any length, any bytes. */
  WEIR_TABLE_KEY_BYTES = 2
} weir_table_key_value;

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
  weir_tensor_desc row;
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

/**
 * Creates an empty table. `container` NULL = "default"; `name` NULL = without a name.
 *
 * Errors: ALREADY_EXISTS; INVALID_ARGUMENT (NULL, a bad name, struct_size, key, row, reserved not 0); OUT_OF_RANGE.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_table_create(weir_engine *engine,
                              const char *container,
                              const char *name,
                              const weir_table_desc *desc,
                              weir_resource **out_table);

/**
 * Inserts rows into a table: row i under key i, in this order; an existing key gets the new row. All rows or, if
 * memory is short, none. `rows` holds keys->count rows, `bytes` bytes.
 *
 * Thread safety: any thread; a find sees all rows of a call or none. Errors: INVALID_ARGUMENT (NULL, no table, keys of
 * another kind, bytes); OUT_OF_RANGE (keys->count); RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_table_insert(weir_resource *table,
                              const weir_table_keys *keys,
                              const void *rows,
                              size_t bytes);

/**
 * Copies the row of each key to `out_rows` (`bytes` bytes, keys->count rows). A missing key gets `default_row` (one
 * row, NULL: zeros). `out_found` (may be NULL) receives the number of keys found. `out_flags` (may be NULL) receives 1
 * or 0 for each key; `out_flags` has keys->count elements.
 *
 * Errors: INVALID_ARGUMENT (NULL, no table, keys of another kind, bytes); OUT_OF_RANGE (keys->count);
 * RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_table_find(const weir_resource *table,
                            const weir_table_keys *keys,
                            const void *default_row,
                            void *out_rows,
                            size_t bytes,
                            size_t *out_found,
                            uint8_t *out_flags);

/**
 * Copies all keys and rows, in ascending order of the keys, as of one moment. The sizes in `contents` are always
 * filled; an array that is NULL with a capacity of 0 is left out.
 *
 * Errors: INVALID_ARGUMENT (NULL, no table, struct_size); OUT_OF_RANGE if an array is too small (the sizes are filled,
 * the arrays left alone); RESOURCE_EXHAUSTED.
 */
WEIR_API WEIR_NODISCARD weir_status weir_table_export(const weir_resource *table, weir_table_contents *contents);

/**
 * Creates a kernel that looks into a table with integer keys, or inserts. The kernel refers to the table by its id and
 * does not keep it alive; a program compiled with the kernel does.
 *
 * A graph must state the order in which its nodes insert into a table, and the order between inserts and lookups
 * (docs/resources.md). The kernels run in every run of a program, whether or not their outputs are used.
 *
 * Errors: INVALID_ARGUMENT (NULL, no table, one of another engine, keys that are byte strings, unknown op);
 * UNIMPLEMENTED (an accelerator's engine). Of its calls, and of weir_graph_compile: NOT_FOUND (the table was
 * destroyed); of an insert RESOURCE_EXHAUSTED, too.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_table(weir_engine *engine,
                                     const weir_resource *table,
                                     weir_table_op op,
                                     const weir_kernel_options *options,
                                     weir_kernel **out_kernel);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_RESOURCE_H */
