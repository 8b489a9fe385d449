/* weir/testing.h: what only tests need
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The functions of this header are those of libweir_testing, a library beside libweir: a program that uses them is linked
 * with both.
 */

#ifndef WEIR_TESTING_H
#define WEIR_TESTING_H

#include "../weir.h"

/** @file weir/testing.h
 * what only tests need. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Pools for tests ----------------------------------------------------------------------------------------------
 * Pools with a seeded order.
 */

/**
 * Creates a pool for tests: `num_threads` threads that run tasks in an order drawn from `seed`, delay some, run some
 * inline in the submitting thread and refuse some. Results must not depend on it.
 *
 * Errors: INVALID_ARGUMENT (num_threads outside 1..256); RESOURCE_EXHAUSTED if threads cannot be started.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_threadpool_create_seeded(uint64_t seed,
                                          int32_t num_threads,
                                          weir_threadpool **out_pool);

/* ---- Emulated devices ---------------------------------------------------------------------------------------------
 * A device for tests where there is none: streams that work on their own, memory that the host cannot touch, kernels
 * that run as host functions on a thread of the device's. A seed decides the order of its work, and decides it again;
 * faults come when they are asked for; a checker reports operations that use the same bytes and that nothing orders
 * (docs/emulated.md).
 */

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
  WEIR_EMULATION_PRECISE = 4
} weir_emulation_flags;

/** How an emulated device treats regions: parts of a program that it may compile to one kernel. */
typedef enum weir_emulation_regions_value {
  /** It claims none of their nodes. */
  WEIR_EMULATION_REGIONS_NONE = 0,
  /** It compiles them. */
  WEIR_EMULATION_REGIONS_ALL = 1,
  /** It claims three nodes of four, in the region's order, and each one from the ninth on separately. */
  WEIR_EMULATION_REGIONS_SOME = 2,
  /** It declines each region when asked to compile it, with UNIMPLEMENTED. */
  WEIR_EMULATION_REGIONS_DECLINED = 3
} weir_emulation_regions_value;

/** Kinds of reports by the checker of emulated devices. */
typedef enum weir_emulated_race_kind_value {
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
  WEIR_RACE_HOST_ACCESS = 9
} weir_emulated_race_kind_value;

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
  /** One of enum weir_emulation_regions_value. */
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
  /** One of enum weir_emulated_race_kind_value. */
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
 * Registers emulated devices with libweir, as the kind WEIR_ENGINE_EMULATED ("emulated"). Every program that uses them
 * calls this first; calling it again does nothing. weir_device_load with the path of libweir_testing does the same.
 *
 * Errors: ALREADY_EXISTS if another plug-in has that name.
 */
WEIR_API WEIR_NODISCARD weir_status weir_emulated_register(void);

/**
 * Emulation settings of an engine. The first engine on a device decides; another engine with different settings is
 * refused while the device is alive (after a second, in which its last use may end), and one without settings shares
 * the device.
 *
 * Errors: INVALID_ARGUMENT (NULL, unknown flags, STRICT without CHECK); FAILED_PRECONDITION if the attribute's kind is
 * not EMULATED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_set_emulation(weir_engine_attr *attr,
                                           const weir_emulation *emulation);

/**
 * The emulation that was set, or all 0. In the attributes of an engine: its device's emulation.
 *
 * Errors: FAILED_PRECONDITION if the attribute's kind is not EMULATED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_emulation(const weir_engine_attr *attr,
                                           weir_emulation *out_emulation);

/**
 * Counters of an emulated device since it was created, shared by all engines on it.
 *
 * Errors: FAILED_PRECONDITION if the engine is not an emulated one.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_emulated_get_counters(const weir_engine *engine,
                                       weir_emulated_counters *out_counters);

/**
 * The order in which the device executed its operations: their numbers (1 = the first that was submitted), the latest
 * ones, oldest first. `out_count` receives how many are kept, at most 16384; if capacity is less, the latest
 * `capacity` of them are stored. capacity 0 only asks for the number (numbers may then be NULL). Two runs with the
 * same seed and the same calls have the same order.
 *
 * Errors: FAILED_PRECONDITION if the engine is not an emulated one.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_emulated_get_order(const weir_engine *engine,
                                    uint64_t *numbers,
                                    size_t capacity,
                                    size_t *out_count);

/**
 * The checker's reports on an emulated device (WEIR_EMULATION_CHECK), in the order of their first finding: operations
 * that use the same bytes without being ordered. Findings that differ only in the operations' numbers are one report,
 * with a count; 256 different reports are kept. Set struct_size of the first entry, which is the distance between
 * entries. `out_count` receives the number of reports. capacity 0 only asks for the number (races may then be NULL).
 *
 * Errors: FAILED_PRECONDITION if the engine is not an emulated one; OUT_OF_RANGE if capacity is too small (out_count
 * is set, the entries are left alone).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_emulated_get_races(const weir_engine *engine,
                                    weir_emulated_race *races,
                                    size_t capacity,
                                    size_t *out_count);

/**
 * Clears the reports and their count.
 *
 * Errors: FAILED_PRECONDITION if the engine is not an emulated one.
 */
WEIR_API WEIR_NODISCARD weir_status weir_emulated_clear_races(weir_engine *engine);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TESTING_H */
