//! Structs that begin with their size, so that caller and library may be of different versions.

use crate::base::{Error, Result};
use std::mem::MaybeUninit;

/// A versioned struct that the host fills.
///
/// # Safety
/// The type is repr(C), begins with its `struct_size: usize`, and all-zero bytes are a valid value of it.
pub(super) unsafe trait Versioned: Copy {
    /// The size that the first published header had.
    const FIRST_SIZE: usize;
}

/// A size beyond which a struct_size is taken for garbage rather than for a newer header.
const ABSURD: usize = 4096;

/// Copies the first `struct_size` bytes that both sides know; the rest reads as zero. Bytes that only the caller knows
/// must be zero, so that no request is silently ignored.
///
/// # Safety
/// `ptr` is NULL or points to `struct_size` readable bytes.
#[inline]
pub(super) unsafe fn read<T: Versioned>(ptr: *const T, argument: &str) -> Result<T> {
    // Caller and library usually have the same version. SAFETY: a pointer that is not NULL points to a struct_size
    // first, and then to as many bytes.
    if !ptr.is_null() && ptr.is_aligned() && unsafe { ptr.cast::<usize>().read() } == size_of::<T>() {
        // SAFETY: as above.
        return Ok(unsafe { ptr.read() });
    }
    // SAFETY: as demanded of the caller.
    let size = unsafe { check_size(ptr, argument) }?;
    let known = size.min(size_of::<T>());
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: `known` bytes are readable at ptr and writable in value; the zero tail is valid for T (trait contract).
    let value = unsafe {
        std::ptr::copy_nonoverlapping(ptr.cast::<u8>(), value.as_mut_ptr().cast::<u8>(), known);
        value.assume_init()
    };
    // SAFETY: the caller vouches for `size` readable bytes.
    let tail = unsafe { std::slice::from_raw_parts(ptr.cast::<u8>().add(known), size - known) };
    if tail.iter().any(|&byte| byte != 0) {
        return Err(Error::invalid(format!(
            "{argument} sets members that this version of weir does not know (struct_size {size}, known {known})"
        )));
    }
    Ok(value)
}

/// As `read`, with NULL for "all default".
///
/// # Safety
/// As `read`.
#[inline]
pub(super) unsafe fn read_opt<T: Versioned>(ptr: *const T, argument: &str) -> Result<Option<T>> {
    if ptr.is_null() {
        return Ok(None);
    }
    // SAFETY: as demanded of the caller.
    unsafe { read(ptr, argument) }.map(Some)
}

/// As `read_opt`, in place where caller and library have the same version, and else in `copy`.
///
/// # Safety
/// As `read`, and the struct does not change during `'a`.
#[allow(dead_code, reason = "only runs have options to be read so, and some builds have no runs")]
#[inline(always)]
pub(super) unsafe fn borrow_opt<'a, T: Versioned>(
    ptr: *const T,
    copy: &'a mut MaybeUninit<T>,
    argument: &str,
) -> Result<Option<&'a T>> {
    if ptr.is_null() {
        return Ok(None);
    }
    // SAFETY: a pointer that is not NULL points to a struct_size first, and then to as many bytes.
    if ptr.is_aligned() && unsafe { ptr.cast::<usize>().read() } == size_of::<T>() {
        // SAFETY: as above.
        return Ok(Some(unsafe { &*ptr }));
    }
    // SAFETY: as demanded of the caller.
    Ok(Some(copy.write(unsafe { read(ptr, argument) }?)))
}

/// As `read`, with NULL for a struct of zeros.
///
/// # Safety
/// As `read`.
pub(super) unsafe fn read_or_zero<T: Versioned>(ptr: *const T, argument: &str) -> Result<T> {
    // SAFETY: as demanded of the caller; all-zero bytes are a valid value (trait contract).
    unsafe { read_opt(ptr, argument).map(|value| value.unwrap_or_else(|| MaybeUninit::zeroed().assume_init())) }
}

/// Fills a struct that the caller owns, as far as the caller's header knows it. struct_size stays unchanged.
///
/// # Safety
/// `ptr` is NULL or points to `struct_size` writable bytes.
pub(super) unsafe fn write<T: Versioned>(ptr: *mut T, value: &T, argument: &str) -> Result<()> {
    // SAFETY: as demanded of the caller.
    let size = unsafe { check_size(ptr.cast_const(), argument) }?;
    let known = size.min(size_of::<T>());
    let head = size_of::<usize>();
    // SAFETY: both sides have `known` bytes, and known >= FIRST_SIZE >= head.
    unsafe {
        let from = std::ptr::from_ref(value).cast::<u8>().add(head);
        std::ptr::copy_nonoverlapping(from, ptr.cast::<u8>().add(head), known - head);
        std::ptr::write_bytes(ptr.cast::<u8>().add(known), 0, size - known);
    }
    Ok(())
}

/// As `write`, for an array: struct_size of the first element is that of all, and is stored into each filled element.
///
/// # Safety
/// `ptr` is NULL or points to `values.len()` elements of the first one's `struct_size` writable bytes.
pub(super) unsafe fn write_array<T: Versioned>(ptr: *mut T, values: &[T], argument: &str) -> Result<()> {
    // SAFETY: as demanded of the caller.
    let size = unsafe { check_size(ptr.cast_const(), argument) }?;
    if !size.is_multiple_of(align_of::<T>()) {
        return Err(Error::invalid(format!("{argument}->struct_size is {size}, which no array element can have")));
    }
    for (i, value) in values.iter().enumerate() {
        // SAFETY: element i is writable as demanded of the caller, and aligned, as the first one and the size are.
        unsafe {
            let element = ptr.cast::<u8>().add(i * size);
            element.cast::<usize>().write(size);
            write(element.cast::<T>(), value, argument)?;
        }
    }
    Ok(())
}

/// # Safety
/// `ptr` is NULL or points to at least a readable size_t.
unsafe fn check_size<T: Versioned>(ptr: *const T, argument: &str) -> Result<usize> {
    if ptr.is_null() {
        return Err(Error::null(argument));
    }
    if !ptr.is_aligned() {
        return Err(Error::invalid(format!("{argument} is not aligned")));
    }
    // SAFETY: every versioned struct starts with its size_t size.
    let size = unsafe { ptr.cast::<usize>().read() };
    if size < T::FIRST_SIZE || size > ABSURD {
        return Err(Error::invalid(format!(
            "{argument}->struct_size is {size}, expected {} (at least {})",
            size_of::<T>(),
            T::FIRST_SIZE
        )));
    }
    Ok(size)
}
