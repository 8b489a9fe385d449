//! Marks of a thread that has taken from the allocator's reserve in its present call. `memory::heap` has the reserve,
//! and says why nothing from it may outlive the call.
#![forbid(unsafe_code)]

use super::error::{Code, Error, Result};
use std::cell::Cell;
use std::ptr;

const TOUCHED: u8 = 1;
const IN_WHOLE: u8 = 2;

thread_local! {
    /// Whether this thread took from the reserve since it entered the library, and whether it is in `whole`. No
    /// destructor: usable at any time.
    static STATUS: Cell<u8> = const { Cell::new(0) };
}

fn status() -> u8 {
    STATUS.try_with(Cell::get).unwrap_or(0)
}

/// An address that is the calling thread's own as long as it lives, or 0.
#[inline]
pub fn address_of_thread() -> u64 {
    STATUS.try_with(|status| ptr::from_ref(status) as u64).unwrap_or(0)
}

/// A call begins: the mark of earlier ones is cleared.
#[inline]
pub fn begin_call() {
    let _ = STATUS.try_with(|status| status.set(0));
}

/// This thread has taken from the reserve.
pub fn touch() {
    let _ = STATUS.try_with(|status| status.set(status.get() | TOUCHED));
}

/// Whether this thread is in `whole`.
pub fn is_in_whole() -> bool {
    status() & IN_WHOLE != 0
}

/// Called before something new is handed out: fails if this call used the reserve.
pub fn check() -> Result<()> {
    if status() & TOUCHED != 0 { Err(short()) } else { Ok(()) }
}

/// Builds an object that outlives the call: fails if any part of it would come from the reserve, which could then not
/// become whole again. Since nothing of it stays there, the reserve serves larger requests meanwhile.
pub fn whole<T>(make: impl FnOnce() -> Result<T>) -> Result<T> {
    struct RestoreStatus(u8);
    impl Drop for RestoreStatus {
        fn drop(&mut self) {
            let _ = STATUS.try_with(|status| status.set(status.get() & TOUCHED | self.0));
        }
    }
    let _before = RestoreStatus(STATUS.try_with(|status| status.replace(IN_WHOLE)).unwrap_or(0));
    make().and_then(|made| check().map(|()| made))
}

pub fn short() -> Error {
    Error::new(Code::ResourceExhausted, "out of memory")
}
