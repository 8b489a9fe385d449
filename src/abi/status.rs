//! Status codes.
//!
//! Chapter: Library.
#![forbid(unsafe_code)]

/// The result of a call: 0 (WEIR_OK) or one of the codes of enum weir_status_value. The values up to 15 are Abseil's
/// canonical codes (google/abseil status codes), those from 64 on are weir's own; all are permanent parts of the ABI.
pub type weir_status = i32;

/// The codes a weir_status can hold.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_status_value {
    /// Success.
    WEIR_OK = 0,
    /// The run or call was cancelled.
    WEIR_CANCELLED = 1,
    /// A host callback failed with a code that weir does not know.
    WEIR_UNKNOWN = 2,
    /// An argument is wrong in any state of the library: NULL, wrong handle, unknown enum value or flag bit.
    WEIR_INVALID_ARGUMENT = 3,
    /// The time given for a wait or a run has passed. The work itself goes on unless the call says otherwise.
    WEIR_DEADLINE_EXCEEDED = 4,
    /// A named thing does not exist.
    WEIR_NOT_FOUND = 5,
    /// A name is already taken.
    WEIR_ALREADY_EXISTS = 6,
    /// The caller may not do this.
    WEIR_PERMISSION_DENIED = 7,
    /// Out of memory, or a limit was reached; the text names the size or the limit.
    WEIR_RESOURCE_EXHAUSTED = 8,
    /// The object is not in a state in which this call is possible.
    WEIR_FAILED_PRECONDITION = 9,
    /// The work was abandoned because something it depends on failed; the text names the origin.
    WEIR_ABORTED = 10,
    /// An index or a size is outside its range, or a size computation overflows. Numbers of threads and the rank of a
    /// tensor are WEIR_INVALID_ARGUMENT instead, where their description says so.
    WEIR_OUT_OF_RANGE = 11,
    /// The library was built without this, or it does not exist for this kind of engine.
    WEIR_UNIMPLEMENTED = 12,
    /// A defect of the library (a caught panic). The text says where; please report it.
    WEIR_INTERNAL = 13,
    /// The thing exists but cannot be used now (no device, no driver).
    WEIR_UNAVAILABLE = 14,
    /// Data was lost or corrupted.
    WEIR_DATA_LOSS = 15,
    /// The device has failed for good: everything on it fails with this, waits end, and a newly created engine may
    /// work. Abseil has no such code.
    WEIR_DEVICE_LOST = 64,
}
