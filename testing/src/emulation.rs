//! Emulated devices: settings and counters.
//!
//! Chapter: Emulated devices.
#![forbid(unsafe_code)]
#![allow(non_camel_case_types)]

use std::ffi::c_char;

/// Bits of weir_emulation.flags.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_emulation_flags {
    /// The checker follows the bytes that operations declare to read and write, and reports conflicts that nothing
    /// orders.
    WEIR_EMULATION_CHECK = 1,
    /// With CHECK: the later operation of a report fails, late, with FAILED_PRECONDITION.
    WEIR_EMULATION_STRICT = 2,
    /// The device's thread polls the clock for the last 60 us before an operation is due, instead of sleeping:
    /// operations then end exactly to a microsecond, at the price of a processor.
    WEIR_EMULATION_PRECISE = 4,
}

/// How an emulated device treats regions: parts of a program that it may compile to one kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_emulation_regions_value {
    /// It claims none of their nodes.
    WEIR_EMULATION_REGIONS_NONE = 0,
    /// It compiles them.
    WEIR_EMULATION_REGIONS_ALL = 1,
    /// It claims three nodes of four, in the region's order, and each one from the ninth on separately.
    WEIR_EMULATION_REGIONS_SOME = 2,
    /// It declines each region when asked to compile it, with UNIMPLEMENTED.
    WEIR_EMULATION_REGIONS_DECLINED = 3,
}

/// Settings of an emulated device. All members 0: as fast as its thread can, nothing fails, nothing is checked.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_emulation {
    /// sizeof(weir_emulation).
    pub struct_size: usize,
    /// 0: the device runs freely, in modelled time. Other values: it runs only while some thread waits for or queries
    /// one of its events, takes no time, and the seed decides which queue goes next; the same seed and the same calls
    /// give the same order.
    pub seed: u64,
    /// Bits of enum weir_emulation_flags.
    pub flags: u64,
    /// Minimum duration of each operation (kernel, copy, fill), in nanoseconds.
    pub latency_ns: u64,
    /// Bandwidth that adds to the duration of copies and fills, in bytes per microsecond; 0 = no time.
    pub bytes_per_us: u64,
    /// Duration added to each kernel, in nanoseconds. It includes the kernel's computation on the host, and grows if
    /// that takes longer.
    pub kernel_ns: u64,
    /// Memory of the device in bytes; 0 = 1 GiB. Host memory is used only for the part in use.
    pub memory_bytes: u64,
    /// The operation with this number (1 = the first that was submitted to the device; kernels, copies and fills count)
    /// fails late, with INTERNAL. 0 = none; the same holds for the next three members.
    pub fail_operation: u64,
    /// The copy with this number fails late, with INTERNAL; only copies count.
    pub fail_copy: u64,
    /// The allocation with this number fails with RESOURCE_EXHAUSTED; those of pinned memory count too.
    pub fail_allocation: u64,
    /// The device is lost when it reaches the operation with this number.
    pub lose_operation: u64,
    /// Duration of each launch of a recording before its first operation begins, in nanoseconds.
    pub replay_ns: u64,
    /// One of enum weir_emulation_regions_value.
    pub regions: u64,
    /// Compiling the region with this number fails with INTERNAL. 0 = none.
    pub fail_region: u64,
}

/// Kinds of reports by the checker of emulated devices.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_emulated_race_kind_value {
    /// The second operation reads bytes that the first writes, and nothing makes it wait.
    WEIR_RACE_READ_AFTER_WRITE = 1,
    /// The second operation writes bytes that the first reads, and nothing makes it wait.
    WEIR_RACE_WRITE_AFTER_READ = 2,
    /// Both write the same bytes, and nothing orders them.
    WEIR_RACE_WRITE_AFTER_WRITE = 3,
    /// The second operation uses bytes that the host has freed (the first), or never had.
    WEIR_RACE_USE_AFTER_FREE = 4,
    /// The host frees bytes (the second) that the first operation may still use.
    WEIR_RACE_FREED_IN_USE = 5,
    /// The second operation uses bytes of a new allocation that the first may still use as a part of an old one.
    WEIR_RACE_REUSED_IN_USE = 6,
    /// As the first three, although the second operation's stream waited for an event of the other stream: the event
    /// was recorded too soon, before the first operation.
    WEIR_RACE_RECORDED_TOO_SOON = 7,
    /// A stream waits for an event that was never recorded.
    WEIR_RACE_WAIT_BEFORE_RECORD = 8,
    /// weir itself reads or writes pinned memory (the second) that the first operation may still use.
    WEIR_RACE_HOST_ACCESS = 9,
}

/// A report of the checker.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_emulated_race {
    /// sizeof(weir_emulated_race).
    pub struct_size: usize,
    /// One of enum weir_emulated_race_kind_value.
    pub kind: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// How often operations with these names on these streams were reported.
    pub count: u64,
    /// Number of the first operation; of a free: of the last operation submitted before.
    pub first_number: u64,
    /// Number of the second operation, likewise.
    pub second_number: u64,
    /// First byte, from the start of the allocation; an address if the bytes are the host's.
    pub offset: u64,
    /// Number of bytes, contiguous.
    pub bytes: u64,
    /// The first operation, NUL-terminated UTF-8, cut if too long: "kernel 'add'", "free".
    pub first_name: [c_char; 64],
    /// Its stream; "" for actions of the host.
    pub first_stream: [c_char; 64],
    /// The second operation.
    pub second_name: [c_char; 64],
    /// Its stream.
    pub second_stream: [c_char; 64],
    /// The whole report as text.
    pub text: [c_char; 512],
}

/// Counters of an emulated device since it was created.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_emulated_counters {
    /// sizeof(weir_emulated_counters).
    pub struct_size: usize,
    /// Kernels, copies and fills submitted, plus each evaluation of a branch or loop condition of a recording.
    /// Operations inside a branch or loop count, here and below, when they begin.
    pub operations: u64,
    /// Of these, the ones completed or skipped because of a failure.
    pub completed: u64,
    /// Kernels submitted.
    pub launches: u64,
    /// Copies submitted.
    pub copies: u64,
    /// Fills submitted.
    pub fills: u64,
    /// Waits for events submitted.
    pub waits: u64,
    /// Records of events submitted.
    pub records: u64,
    /// Allocations made, pinned memory included.
    pub allocations: u64,
    /// Live allocations.
    pub allocations_in_use: u64,
    /// Bytes of these.
    pub bytes_in_use: u64,
    /// Peak of bytes_in_use.
    pub peak_bytes: u64,
    /// Reports of the checker, with their counts.
    pub races: u64,
    /// Submissions of recordings; their operations are counted above.
    pub replays: u64,
    /// Copies from and to host memory that is not pinned.
    pub pageable_copies: u64,
    /// Bytes of host memory that are pinned for the device now.
    pub pinned_bytes: u64,
    /// Regions compiled to one kernel.
    pub regions: u64,
}
