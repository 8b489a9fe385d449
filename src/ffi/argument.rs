//! Arguments that are not handles: outputs, strings, arrays, flags, booleans.

use crate::base::text::head;
use crate::base::{Error, Result};
use std::ffi::{CStr, c_char};

/// The most bytes of a name or a path. Texts of failures have several of them, and copies of a text are requests that
/// end the process where they fail: with so few bytes they come from the heap's reserve when memory is short.
pub(super) const MAX_TEXT: usize = 8191;

/// Whether something can be stored there.
fn check_out<T>(out: *const T, argument: &str) -> Result<()> {
    if out.is_null() {
        return Err(Error::null(argument));
    }
    if !out.is_aligned() {
        return Err(Error::invalid(format!("{argument} is not aligned")));
    }
    Ok(())
}

/// An output of pointer type: NULL is stored at once, so a failure leaves NULL behind.
///
/// # Safety
/// `out` is NULL or writable.
pub(super) unsafe fn out_ptr<'a, T>(out: *mut *mut T, argument: &str) -> Result<&'a mut *mut T> {
    check_out(out, argument)?;
    // SAFETY: not NULL, so writable as demanded of the caller.
    unsafe {
        out.write(std::ptr::null_mut());
        Ok(&mut *out)
    }
}

/// As `out_ptr`, for pointers to constant things.
///
/// # Safety
/// `out` is NULL or writable.
pub(super) unsafe fn out_const<'a, T>(out: *mut *const T, argument: &str) -> Result<&'a mut *const T> {
    check_out(out, argument)?;
    // SAFETY: not NULL, so writable as demanded of the caller.
    unsafe {
        out.write(std::ptr::null());
        Ok(&mut *out)
    }
}

/// An output of plain type. It is left alone until the call has succeeded.
///
/// # Safety
/// `out` is NULL or writable.
pub(super) unsafe fn out_value<'a, T: Copy>(out: *mut T, argument: &str) -> Result<OutValue<'a, T>> {
    check_out(out, argument)?;
    Ok(OutValue { out, _life: std::marker::PhantomData })
}

/// A checked output for one result. It may be uninitialised until `set`, so no reference to it exists.
pub(super) struct OutValue<'a, T: Copy> {
    out: *mut T,
    _life: std::marker::PhantomData<&'a mut T>,
}

impl<T: Copy> OutValue<'_, T> {
    pub(super) fn set(self, value: T) {
        // SAFETY: `out_value` checked for NULL and its caller vouched for the rest.
        unsafe { self.out.write(value) }
    }
}

/// A name or a path.
///
/// # Safety
/// `text` is NULL or a NUL-terminated string that lives and stays the same during `'a`.
pub(super) unsafe fn string<'a>(text: *const c_char, argument: &str) -> Result<&'a str> {
    // SAFETY: as demanded of the caller.
    match unsafe { long_string(text, argument) }? {
        text if text.len() > MAX_TEXT => {
            Err(Error::out_of_range(format!("{argument} has {} bytes, expected at most {MAX_TEXT}", text.len())))
        }
        text => Ok(text),
    }
}

/// A text of a failure, cut where it is too long.
///
/// # Safety
/// As `string`.
pub(super) unsafe fn failure_text<'a>(text: *const c_char, argument: &str) -> Result<&'a str> {
    // SAFETY: as demanded of the caller.
    unsafe { long_string(text, argument) }.map(|text| head(text, MAX_TEXT))
}

/// A text of any length. It is not copied.
///
/// # Safety
/// As `string`.
pub(super) unsafe fn long_string<'a>(text: *const c_char, argument: &str) -> Result<&'a str> {
    if text.is_null() {
        return Err(Error::null(argument));
    }
    // SAFETY: not NULL, so NUL-terminated as demanded of the caller.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .map_err(|e| Error::invalid(format!("{argument} is not UTF-8 (bad byte at offset {})", e.valid_up_to())))
}

/// An array argument. `(NULL, 0)` is the empty array.
///
/// # Safety
/// `data` is NULL or points to `len` readable elements that live and stay the same during `'a`.
#[inline(always)]
pub(super) unsafe fn array<'a, T>(data: *const T, len: usize, argument: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() || len > isize::MAX as usize / size_of::<T>().max(1) || !data.is_aligned() {
        return Err(no_array(data.is_null(), data.is_aligned(), len, argument));
    }
    // SAFETY: not NULL, aligned, and readable for `len` elements as demanded of the caller.
    Ok(unsafe { std::slice::from_raw_parts(data, len) })
}

#[cold]
fn no_array(is_null: bool, is_aligned: bool, len: usize, argument: &str) -> Error {
    if is_null {
        Error::invalid(format!("{argument} is NULL, but its length is {len}"))
    } else if is_aligned {
        Error::out_of_range(format!("{argument} has {len} elements, more than memory can hold"))
    } else {
        Error::invalid(format!("{argument} is not aligned"))
    }
}

/// A mutable array argument. `(NULL, 0)` is the empty array.
///
/// # Safety
/// As `array`, and writable by nobody else during `'a`.
pub(super) unsafe fn array_mut<'a, T>(data: *mut T, len: usize, argument: &str) -> Result<&'a mut [T]> {
    // SAFETY: as demanded of the caller.
    unsafe { array(data.cast_const(), len, argument) }?;
    if len == 0 {
        return Ok(&mut []);
    }
    // SAFETY: checked by `array`; exclusive as demanded of the caller.
    Ok(unsafe { std::slice::from_raw_parts_mut(data, len) })
}

/// A boolean argument: 0 or 1.
pub(super) fn boolean(value: i32, argument: &str) -> Result<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Error::invalid(format!("{argument} is {other}, expected 0 or 1"))),
    }
}
