//! Device synchronisation: one call for everything.

use super::guard::guard;
use crate::abi::*;
use crate::engine;

/// Waits until everything is done that was queued before this call, on every stream of every engine, and for
/// nothing later: it returns although other threads keep submitting. Call it before you read the clock. Returns the
/// first late error of each engine that no engine or device synchronisation has returned yet: the first one's code,
/// and the texts of all; the streams keep theirs.
///
/// Thread safety: any thread. Blocking: until done; in a task of a pool that the work needs it helps or refuses.
/// Ownership: none.
/// Errors: FAILED_PRECONDITION if waiting here would block a worker that the work needs; else a late error.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn weir_sync_devices() -> weir_status {
    guard("weir_sync_devices", || engine::sync_devices(WEIR_TIMEOUT_INFINITE))
}

/// As weir_sync_devices, for at most timeout_ns (0 = look once).
///
/// Thread safety: any thread. Blocking: until done or timeout_ns have passed. Ownership: none.
/// Errors: DEADLINE_EXCEEDED; those of weir_sync_devices.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn weir_sync_devices_timeout(timeout_ns: u64) -> weir_status {
    guard("weir_sync_devices_timeout", || engine::sync_devices(timeout_ns))
}
