//! Copies text from the library into a buffer of the caller's.

use super::argument::out_value;
use crate::base::{Error, Result};
use std::ffi::c_char;

/// Copies `text` and a NUL into `buffer`. `out_length` (may be NULL if a buffer is given) receives the length without
/// the NUL, also when the buffer is too small. A call with capacity 0 only asks for the length.
///
/// # Safety
/// `buffer` is NULL or has `capacity` writable bytes; `out_length` is NULL or writable.
pub(super) unsafe fn copy(text: &str, buffer: *mut c_char, capacity: usize, out_length: *mut usize) -> Result<()> {
    if buffer.is_null() && capacity > 0 {
        return Err(Error::invalid(format!("buffer is NULL, but capacity is {capacity}")));
    }
    if capacity == 0 && out_length.is_null() {
        return Err(Error::null("out_length"));
    }
    if !out_length.is_null() {
        // SAFETY: not NULL, so writable as demanded of the caller.
        unsafe { out_value(out_length, "out_length") }?.set(text.len());
    }
    if capacity == 0 {
        return Ok(());
    }
    if capacity <= text.len() {
        // SAFETY: capacity > 0 bytes are writable.
        unsafe { buffer.write(0) };
        return Err(Error::out_of_range(format!("capacity is {capacity}, the text needs {} bytes", text.len() + 1)));
    }
    // SAFETY: text.len() + 1 <= capacity bytes are writable.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, text.len());
        buffer.add(text.len()).write(0);
    }
    Ok(())
}
