//! Structs that begin with their size, so that caller and library may be of different versions.

use crate::base::{Error, Result};
use crate::ops::Descriptor;
use std::mem::MaybeUninit;

/// A versioned struct that the host fills.
///
/// # Safety
/// The type is repr(C), begins with its `struct_size: usize`, and all-zero bytes are a valid value of it.
pub(super) unsafe trait Versioned: Copy {
    /// The size that the first published header had.
    const FIRST_SIZE: usize;
}

macro_rules! versioned {
    ($($name:ident : $last:ident : $last_type:ty),* $(,)?) => {
        // SAFETY: plain repr(C) structs of integers, raw pointers and optional function pointers.
        $(unsafe impl Versioned for crate::abi::$name {
            const FIRST_SIZE: usize = std::mem::offset_of!(crate::abi::$name, $last) + size_of::<$last_type>();
        })*
    };
}

// SAFETY: as of `Descriptor`.
unsafe impl<D: Descriptor> Versioned for D {
    const FIRST_SIZE: usize = size_of::<D>();
}

// The last member of each struct in the first published header; later members are optional.
versioned! {
    weir_threadpool_vtable: release: usize,
    weir_parallel_hint: flags: u32,
    weir_conformance_options: flags: u32,
    weir_device_vtable: release: usize,
    weir_named_kernel_desc: destroy: usize,
    weir_threadpool_costs: join_ns: f64,
    weir_threadpool_options: costs: *const crate::abi::weir_threadpool_costs,
    weir_kernel_options: cost_ns: u64,
    weir_host_kernel_desc: flags: u64,
    weir_packed_weights_desc: flags: u64,
    weir_kernel_cache_info: evictions: u64,
    weir_runtime_info: attrs: u64,
    weir_allocator_vtable: release: usize,
    weir_memory: device: *mut crate::abi::weir_engine,
    weir_memory_info: fragmentation: f64,
    weir_thread_info: owner: [std::ffi::c_char; 64],
    weir_failure: not_run_capacity: usize,
    weir_program_info: running: u64,
    weir_port_info: name: [std::ffi::c_char; 128],
    weir_kernel_info: name: [std::ffi::c_char; 128],
    weir_notice: reserved: u32,
    weir_cond_desc: num_inputs: usize,
    weir_case_desc: num_inputs: usize,
    weir_while_desc: reserved: u32,
    weir_compile_options: reserved: u32,
    weir_run_options: notice: *const crate::abi::weir_notice,
    weir_node_stats: name: [std::ffi::c_char; 128],
    weir_engine_sync: message: [std::ffi::c_char; 256],
    weir_resource_info: desc: crate::abi::weir_tensor_desc,
    weir_table_desc: row: crate::abi::weir_tensor_desc,
    weir_table_keys: lengths: *const usize,
    weir_table_contents: rows_size: usize,
    weir_engine_info: name: [std::ffi::c_char; 64],
    weir_emulation: lose_operation: u64,
    weir_emulated_race: text: [std::ffi::c_char; 512],
    weir_emulated_counters: races: u64,
    weir_cuda_kernel_desc: destroy: usize,
    weir_cuda_device_info: name: [std::ffi::c_char; 128],
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
