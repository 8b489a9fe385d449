//! Memory: the global one, which is the caller's, and the windows that a launch has itself.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::fault::{FaultKind, Trouble};
use crate::program::{LOCAL, PARAMETERS, SHARED, SPAN, Window};

/// How an instruction touches memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Read,
    Write,
    /// Read and written at once.
    Atomic,
}

/// Global memory, with constants and the module's variables.
///
/// # Safety
///
/// A pointer that `translate` gives must be valid for reads of `size` bytes, and of writes unless `access` is a read,
/// until the next call of a method of the trait or until the launch ends. Other threads may use the same bytes, but
/// only by atomic operations.
pub unsafe trait Memory {
    /// Where the `size` bytes (1, 2, 4 or 8, times 2 or 4 for a vector) at a global `address` are on the host. The
    /// address is aligned to `size`; the pointer must be aligned to the element at least. Called once for each access,
    /// so an implementation may take notes of it. The error says what is wrong with the address.
    fn translate(&mut self, address: u64, size: u32, access: Access) -> Result<NonNull<u8>, String>;
}

/// Global memory made of slices.
#[derive(Default)]
pub struct Slice<'a> {
    parts: Vec<(u64, u64, NonNull<u8>)>,
    last: usize,
    slices: PhantomData<&'a mut [u8]>,
}

/// Numbers whose bits all mean something.
pub trait Plain: sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
    macro_rules! plain {
        ($($t:ty),+) => { $(impl Sealed for $t {} impl super::Plain for $t {})+ };
    }
    plain!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);
}

impl<'a> Slice<'a> {
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts `values` at `address`, which should be a multiple of 16, as what a driver allocates is.
    pub fn add<T: Plain>(&mut self, address: u64, values: &'a mut [T]) {
        let bytes = size_of_val(values) as u64;
        self.parts.push((address, bytes, NonNull::from(values).cast()));
    }
}

// SAFETY: each pointer comes from a slice that is borrowed mutably for as long as this lives, and `translate` gives
// only what lies within it.
unsafe impl Memory for Slice<'_> {
    fn translate(&mut self, address: u64, size: u32, _: Access) -> Result<NonNull<u8>, String> {
        let within = |part: &(u64, u64, NonNull<u8>)| {
            let from = address.wrapping_sub(part.0);
            from < part.1 && part.1 - from >= size.into()
        };
        if !self.parts.get(self.last).is_some_and(within) {
            self.last = self.parts.iter().position(within).ok_or("no memory is there")?;
        }
        let (start, _, host) = self.parts[self.last];
        // SAFETY: `within` found the bytes inside of the slice that begins at `host`.
        Ok(unsafe { host.add((address - start) as usize) })
    }
}

/// Bytes of a launch's own, aligned to 16.
#[derive(Default)]
pub struct Bytes {
    words: Vec<u128>,
    length: u64,
}

impl Bytes {
    /// The new length; what is new has all bits set, which is no number.
    pub fn resize(&mut self, length: u64) {
        self.words.resize(length.div_ceil(16) as usize, u128::MAX);
        self.length = length;
    }

    pub fn clear(&mut self) {
        self.words.clear();
        self.length = 0;
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn of(bytes: &[u8]) -> Self {
        let mut found = Self::default();
        found.resize(bytes.len() as u64);
        found.write(0, bytes);
        found
    }

    fn slice(&mut self) -> &mut [u8] {
        // SAFETY: the words are initialised and have at least so many bytes; u8 has no alignment.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.length as usize) }
    }

    /// Panics if out of range, as `write` does: the offsets are those of decoding.
    pub fn read(&mut self, offset: u64, size: usize) -> Vec<u8> {
        self.slice()[offset as usize..][..size].to_vec()
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.slice()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn at(&mut self, offset: u64, size: u32, name: &str) -> Result<*mut u8, Trouble> {
        if offset >= self.length || self.length - offset < size.into() {
            return Err(Trouble::new(
                FaultKind::IllegalAddress,
                format!("{size} bytes at {offset:#x} of {name}, which has {} bytes", self.length),
            ));
        }
        // SAFETY: the offset was just compared with the length.
        Ok(unsafe { self.words.as_mut_ptr().cast::<u8>().add(offset as usize) })
    }
}

/// All that a thread can reach.
pub struct Reach<'a> {
    pub memory: &'a mut dyn Memory,
    pub shared: &'a mut Bytes,
    pub local: &'a mut Bytes,
    pub parameters: &'a mut Bytes,
    /// Where the current call's part of local memory begins.
    pub frame: u64,
}

impl Reach<'_> {
    /// The host's bytes of an access; valid for it until anything of the launch's memory changes.
    #[inline]
    pub fn place(&mut self, window: Window, address: u64, size: u32, access: Access) -> Result<*mut u8, Trouble> {
        if address & u64::from(size - 1) != 0 {
            let text = format!("address {address:#x} is not a multiple of the {size} bytes that are accessed");
            return Err(Trouble::new(FaultKind::MisalignedAddress, text));
        }
        match window {
            Window::Global => self.global(address, size, access),
            Window::Shared => self.shared.at(address, size, "shared memory"),
            Window::Local => self.local.at(address, size, "local memory"),
            Window::Frame => self.local.at(self.frame.wrapping_add(address), size, "local memory"),
            Window::Parameters => self.parameter(address, size, access),
            Window::Generic => match address {
                SHARED.. if address - SHARED < SPAN => self.shared.at(address - SHARED, size, "shared memory"),
                LOCAL.. if address - LOCAL < SPAN => self.local.at(address - LOCAL, size, "local memory"),
                PARAMETERS.. if address - PARAMETERS < SPAN => self.parameter(address - PARAMETERS, size, access),
                _ => self.global(address, size, access),
            },
        }
    }

    fn parameter(&mut self, address: u64, size: u32, access: Access) -> Result<*mut u8, Trouble> {
        if access != Access::Read {
            return Err(Trouble::new(FaultKind::IllegalAddress, "a kernel's parameters are only read".to_string()));
        }
        self.parameters.at(address, size, "the kernel's parameters")
    }

    fn global(&mut self, address: u64, size: u32, access: Access) -> Result<*mut u8, Trouble> {
        match self.memory.translate(address, size, access) {
            Ok(host) => Ok(host.as_ptr()),
            Err(why) => {
                let what = match access {
                    Access::Read => "read",
                    Access::Write => "write",
                    Access::Atomic => "atomic operation",
                };
                Err(Trouble::new(FaultKind::IllegalAddress, format!("{what} of {size} bytes at {address:#x}: {why}")))
            }
        }
    }
}

/// Reads an element of 1, 2, 4 or 8 bytes.
///
/// # Safety
///
/// `from` is valid for that read and aligned to it; other threads access the bytes by atomic operations alone.
#[inline]
pub unsafe fn load(from: *mut u8, size: u32) -> u64 {
    // ORDERING: relaxed, as plain accesses of a kernel are; what orders them is the launch's end, or a host's lock.
    let order = Ordering::Relaxed;
    // SAFETY: the caller promises validity and alignment.
    unsafe {
        match size {
            1 => AtomicU8::from_ptr(from).load(order).into(),
            2 => AtomicU16::from_ptr(from.cast()).load(order).into(),
            4 => AtomicU32::from_ptr(from.cast()).load(order).into(),
            _ => AtomicU64::from_ptr(from.cast()).load(order),
        }
    }
}

/// Writes an element of 1, 2, 4 or 8 bytes.
///
/// # Safety
///
/// As for `load`, and valid for the write.
#[inline]
pub unsafe fn store(to: *mut u8, size: u32, value: u64) {
    // ORDERING: relaxed, as in `load`.
    let order = Ordering::Relaxed;
    // SAFETY: the caller promises validity and alignment.
    unsafe {
        match size {
            1 => AtomicU8::from_ptr(to).store(value as u8, order),
            2 => AtomicU16::from_ptr(to.cast()).store(value as u16, order),
            4 => AtomicU32::from_ptr(to.cast()).store(value as u32, order),
            _ => AtomicU64::from_ptr(to.cast()).store(value, order),
        }
    }
}
