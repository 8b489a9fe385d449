/* weir_testing_cdef.h: the C interface of libweir_testing, after weir_cdef.h, for ffi.cdef of LuaJIT and for cffi.
 *
 * Generated from the sources of the headers; do not edit. No compiler is to include it: C and C++ have the headers.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

/* weir/testing.h */
weir_status weir_threadpool_create_seeded(uint64_t seed,
                                          int32_t num_threads,
                                          weir_threadpool **out_pool);
typedef enum weir_emulation_flags {
  WEIR_EMULATION_CHECK = 1,
  WEIR_EMULATION_STRICT = 2,
  WEIR_EMULATION_PRECISE = 4
} weir_emulation_flags;
typedef enum weir_emulation_regions_value {
  WEIR_EMULATION_REGIONS_NONE = 0,
  WEIR_EMULATION_REGIONS_ALL = 1,
  WEIR_EMULATION_REGIONS_SOME = 2,
  WEIR_EMULATION_REGIONS_DECLINED = 3
} weir_emulation_regions_value;
typedef enum weir_emulated_race_kind_value {
  WEIR_RACE_READ_AFTER_WRITE = 1,
  WEIR_RACE_WRITE_AFTER_READ = 2,
  WEIR_RACE_WRITE_AFTER_WRITE = 3,
  WEIR_RACE_USE_AFTER_FREE = 4,
  WEIR_RACE_FREED_IN_USE = 5,
  WEIR_RACE_REUSED_IN_USE = 6,
  WEIR_RACE_RECORDED_TOO_SOON = 7,
  WEIR_RACE_WAIT_BEFORE_RECORD = 8,
  WEIR_RACE_HOST_ACCESS = 9
} weir_emulated_race_kind_value;
typedef struct weir_emulation {
  size_t struct_size;
  uint64_t seed;
  uint64_t flags;
  uint64_t latency_ns;
  uint64_t bytes_per_us;
  uint64_t kernel_ns;
  uint64_t memory_bytes;
  uint64_t fail_operation;
  uint64_t fail_copy;
  uint64_t fail_allocation;
  uint64_t lose_operation;
  uint64_t replay_ns;
  uint64_t regions;
  uint64_t fail_region;
} weir_emulation;
typedef struct weir_emulated_counters {
  size_t struct_size;
  uint64_t operations;
  uint64_t completed;
  uint64_t launches;
  uint64_t copies;
  uint64_t fills;
  uint64_t waits;
  uint64_t records;
  uint64_t allocations;
  uint64_t allocations_in_use;
  uint64_t bytes_in_use;
  uint64_t peak_bytes;
  uint64_t races;
  uint64_t replays;
  uint64_t pageable_copies;
  uint64_t pinned_bytes;
  uint64_t regions;
} weir_emulated_counters;
typedef struct weir_emulated_race {
  size_t struct_size;
  uint32_t kind;
  uint32_t reserved;
  uint64_t count;
  uint64_t first_number;
  uint64_t second_number;
  uint64_t offset;
  uint64_t bytes;
  char first_name[64];
  char first_stream[64];
  char second_name[64];
  char second_stream[64];
  char text[512];
} weir_emulated_race;
weir_status weir_emulated_register(void);
weir_status weir_engine_attr_set_emulation(weir_engine_attr *attr,
                                           const weir_emulation *emulation);
weir_status weir_engine_attr_get_emulation(const weir_engine_attr *attr,
                                           weir_emulation *out_emulation);
weir_status weir_emulated_get_counters(const weir_engine *engine,
                                       weir_emulated_counters *out_counters);
weir_status weir_emulated_get_order(const weir_engine *engine,
                                    uint64_t *numbers,
                                    size_t capacity,
                                    size_t *out_count);
weir_status weir_emulated_get_races(const weir_engine *engine,
                                    weir_emulated_race *races,
                                    size_t capacity,
                                    size_t *out_count);
weir_status weir_emulated_clear_races(weir_engine *engine);
