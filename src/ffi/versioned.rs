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

/// Size and alignment of a struct, as this version knows it. The work is done on bytes, once for all types.
struct Known {
    size: usize,
    first_size: usize,
    align: usize,
}

impl Known {
    const fn of<T: Versioned>() -> Known {
        Known { size: size_of::<T>(), first_size: T::FIRST_SIZE, align: align_of::<T>() }
    }
}

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
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: as demanded of the caller; the value has room for a T, and the zero tail is valid (trait contract).
    unsafe {
        copy_in(ptr.cast(), value.as_mut_ptr().cast(), &Known::of::<T>(), argument)?;
        Ok(value.assume_init())
    }
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
    // SAFETY: as demanded of the caller; a T has as many bytes.
    unsafe { copy_out(std::ptr::from_ref(value).cast(), ptr.cast(), &Known::of::<T>(), argument) }
}

/// As `write`, for an array: struct_size of the first element is that of all, and is stored into each filled element.
///
/// # Safety
/// `ptr` is NULL or points to `values.len()` elements of the first one's `struct_size` writable bytes.
pub(super) unsafe fn write_array<T: Versioned>(ptr: *mut T, values: &[T], argument: &str) -> Result<()> {
    // SAFETY: as demanded of the caller.
    let size = unsafe { check_size(ptr.cast(), &Known::of::<T>(), argument) }?;
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
/// As `read`, and `to` points to as many writable bytes as the struct is known to have, which are zero.
unsafe fn copy_in(ptr: *const u8, to: *mut u8, known: &Known, argument: &str) -> Result<()> {
    // SAFETY: as demanded of the caller.
    let size = unsafe { check_size(ptr, known, argument) }?;
    let both = size.min(known.size);
    // SAFETY: the caller vouches for `size` readable bytes, and for the known ones at `to`.
    let tail = unsafe {
        std::ptr::copy_nonoverlapping(ptr, to, both);
        std::slice::from_raw_parts(ptr.add(both), size - both)
    };
    if tail.iter().any(|&byte| byte != 0) {
        return Err(Error::invalid(format!(
            "{argument} sets members that this version of weir does not know (struct_size {size}, known {both})"
        )));
    }
    Ok(())
}

/// # Safety
/// As `write`, and `from` points to as many readable bytes as the struct is known to have.
unsafe fn copy_out(from: *const u8, ptr: *mut u8, known: &Known, argument: &str) -> Result<()> {
    // SAFETY: as demanded of the caller.
    let size = unsafe { check_size(ptr, known, argument) }?;
    let both = size.min(known.size);
    let head = size_of::<usize>();
    // SAFETY: both sides have as many bytes, and no fewer than the first size, which is no less than the head.
    unsafe {
        std::ptr::copy_nonoverlapping(from.add(head), ptr.add(head), both - head);
        std::ptr::write_bytes(ptr.add(both), 0, size - both);
    }
    Ok(())
}

/// # Safety
/// `ptr` is NULL or points to at least a readable size_t.
unsafe fn check_size(ptr: *const u8, known: &Known, argument: &str) -> Result<usize> {
    if ptr.is_null() {
        return Err(Error::null(argument));
    }
    if !ptr.addr().is_multiple_of(known.align) {
        return Err(Error::invalid(format!("{argument} is not aligned")));
    }
    // SAFETY: every versioned struct starts with its size_t size.
    let size = unsafe { ptr.cast::<usize>().read() };
    // A struct of any version is as long as its alignment says: no size ends inside of a pointer.
    if size < known.first_size || size > ABSURD || !size.is_multiple_of(known.align) {
        return Err(Error::invalid(format!(
            "{argument}->struct_size is {size}, expected {} (at least {})",
            known.size, known.first_size
        )));
    }
    Ok(size)
}
