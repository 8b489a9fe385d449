//! A tensor as kernels see it: address, size, descriptor; and typed access for the built-in kernels.
//!
//! Access is safe to call but rests on the rules of the API, which the border and the executor keep: a view covers
//! `bytes` readable and writable bytes that stay alive during the call; an output overlaps no input and no other
//! output of the same call (checked when work is enqueued or bound); nobody else writes a tensor while work that
//! uses it runs (the documented duty of the host).

use crate::abi::weir_tensor_view;
use crate::base::{Desc, dtype};
use crate::sync::Claim;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// `weir_tensor_view` with an address that can be set while others hold a reference; of values whose shape a run
/// decides the shape, too.
#[repr(C)]
#[derive(Debug)]
pub struct View {
    data: AtomicPtr<u8>,
    bytes: AtomicUsize,
    desc: UnsafeCell<Desc>,
}

// SAFETY: the descriptor is written by `reshape` alone, which the module's rules allow to one thread while nobody
// reads: the node that makes a value, and those behind it along edges.
unsafe impl Sync for View {}

// C reads a View as a weir_tensor_view.
const _: () = {
    assert!(size_of::<View>() == size_of::<weir_tensor_view>());
    assert!(align_of::<View>() == align_of::<weir_tensor_view>());
    assert!(offset_of!(View, data) == offset_of!(weir_tensor_view, data));
    assert!(offset_of!(View, bytes) == offset_of!(weir_tensor_view, bytes));
    assert!(offset_of!(View, desc) == offset_of!(weir_tensor_view, desc));
};

/// An element type with its dtype number.
///
/// # Safety
/// Every bit pattern is a value of the type.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    const DTYPE: u32;
}

// SAFETY: every bit pattern is a value.
unsafe impl Element for f32 {
    const DTYPE: u32 = dtype::F32;
}
// SAFETY: every bit pattern is a value.
unsafe impl Element for i32 {
    const DTYPE: u32 = dtype::S32;
}

impl View {
    /// A view of `bytes` bytes at `data`, which hold a tensor like `desc`.
    pub fn new(data: *mut u8, bytes: usize, desc: Desc) -> View {
        View { data: AtomicPtr::new(data), bytes: AtomicUsize::new(bytes), desc: UnsafeCell::new(desc) }
    }

    pub fn data(&self) -> *mut u8 {
        self.data.load(Relaxed)
    }

    /// Points the view elsewhere. ORDERING: Relaxed; the owner of a run binds before it opens the run, and workers
    /// enter with Acquire.
    pub fn set_data(&self, data: *mut u8) {
        self.data.store(data, Relaxed);
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    pub fn desc(&self) -> &Desc {
        // SAFETY: the module's rules: nobody reshapes a view that others read.
        unsafe { &*self.desc.get() }
    }

    /// Makes it a view of another tensor, whose shape may differ. Only by the one thread that has the view: whoever
    /// runs the node that it belongs to, before others are told.
    pub fn reshape(&self, data: *mut u8, bytes: usize, desc: Desc) {
        self.data.store(data, Relaxed);
        self.bytes.store(bytes, Relaxed);
        // SAFETY: the module's rules, as said above.
        unsafe { self.desc.get().write(desc) }
    }

    /// Fills an output with an input's bytes, as many as both have.
    pub fn copy_from(&self, source: &View) {
        let bytes = self.bytes().min(source.bytes());
        // SAFETY: the module's rules: both are alive and large enough, and an output overlaps no input.
        unsafe {
            match bytes {
                0 => {}
                // One move, where a call would cost more.
                4 => self.data().cast::<u32>().write_unaligned(source.data().cast::<u32>().read_unaligned()),
                8 => self.data().cast::<u64>().write_unaligned(source.data().cast::<u64>().read_unaligned()),
                _ => std::ptr::copy_nonoverlapping(source.data(), self.data(), bytes),
            }
        }
    }

    /// Writes an output in the calling thread: `f` is given all of its bytes.
    pub fn write_bytes(&self, f: impl FnOnce(&mut [u8])) {
        match self.bytes() {
            0 => f(&mut []),
            // SAFETY: the module's rules: alive and writable in all its bytes, and nobody else's while the kernel runs
            // whose output it is.
            bytes => f(unsafe { std::slice::from_raw_parts_mut(self.data(), bytes) }),
        }
    }

    /// Sets every byte of an output.
    pub fn fill(&self, value: u8) {
        if self.bytes() > 0 {
            // SAFETY: the module's rules: alive, and writable in all its bytes.
            unsafe { std::ptr::write_bytes(self.data(), value, self.bytes()) }
        }
    }

    /// The first element of an input of an integer type.
    pub fn read_integer(&self) -> i32 {
        // SAFETY: the module's rules: readable during the call; the descriptor says how large the element is, and
        // memory of an engine or a checked tensor is aligned for it.
        unsafe {
            match self.desc().dtype {
                dtype::S32 => self.data().cast::<i32>().read(),
                dtype::S8 => i32::from(self.data().cast::<i8>().read()),
                _ => i32::from(self.data().read()),
            }
        }
    }

    /// Writes the one element of an s32 output.
    pub fn write_integer(&self, value: i32) {
        assert_eq!((self.desc().dtype, self.bytes()), (dtype::S32, 4));
        // SAFETY: the module's rules: writable during the call, four bytes, aligned.
        unsafe { self.data().cast::<i32>().write(value) }
    }

    fn typed<T: Element>(&self) -> (*mut T, usize) {
        assert_eq!(self.desc().dtype, T::DTYPE, "a kernel read {} as {}", self.desc().text(), dtype::name(T::DTYPE));
        let (data, len) = (self.data().cast::<T>(), self.bytes() / size_of::<T>());
        assert!(data.is_aligned());
        if len == 0 { (std::ptr::NonNull::dangling().as_ptr(), 0) } else { (data, len) }
    }

    /// The elements of an input.
    pub fn read<T: Element>(&self) -> &[T] {
        let (data, len) = self.typed();
        // SAFETY: the module's rules: readable during the call, and not written meanwhile.
        unsafe { std::slice::from_raw_parts(data, len) }
    }

    /// The elements of an output, to be written in pieces.
    pub fn shards<T: Element>(&self) -> Shards<'_, T> {
        let (data, len) = self.typed();
        Shards { data, len, _life: PhantomData }
    }

    /// The bytes of an input, whatever its elements are.
    pub fn read_bytes(&self) -> &[u8] {
        match self.bytes() {
            0 => &[],
            // SAFETY: the module's rules: readable during the call, and not written meanwhile.
            len => unsafe { std::slice::from_raw_parts(self.data(), len) },
        }
    }

    /// The bytes of an output, whatever its elements are, to be written in pieces.
    pub fn byte_shards(&self) -> Shards<'_, u8> {
        match self.bytes() {
            0 => Shards { data: std::ptr::NonNull::dangling().as_ptr(), len: 0, _life: PhantomData },
            len => Shards { data: self.data(), len, _life: PhantomData },
        }
    }
}

impl Clone for View {
    fn clone(&self) -> View {
        View::new(self.data(), self.bytes(), *self.desc())
    }
}

/// The elements of an output. Each claim of a region opens its own part.
#[derive(Clone, Copy, Debug)]
pub struct Shards<'a, T> {
    data: *mut T,
    len: usize,
    _life: PhantomData<&'a mut [T]>,
}

// SAFETY: parts are disjoint, because claims are.
unsafe impl<T: Send> Send for Shards<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shards<'_, T> {}

impl<T: Element> Shards<'_, T> {
    /// The elements of the claimed items, where each item is `per_item` consecutive elements.
    pub fn part<'c>(&self, claim: &'c mut Claim, per_item: usize) -> &'c mut [T] {
        let begin = claim.begin() * per_item;
        let end = claim.end() * per_item;
        assert!(begin <= end && end <= self.len, "items {begin}..{end} of {}", self.len);
        // SAFETY: in bounds; no other claim covers these items (Claim), and this one is borrowed for as long as the
        // slice lives.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(begin), end - begin) }
    }

    /// The first element, for kernels that compute addresses themselves.
    pub fn as_ptr(&self) -> *mut T {
        self.data
    }
}

/// Whether two stretches of memory share a byte.
pub fn overlaps(a: (*mut u8, usize), b: (*mut u8, usize)) -> bool {
    let ((a, a_len), (b, b_len)) = ((a.0 as usize, a.1), (b.0 as usize, b.1));
    a_len > 0 && b_len > 0 && a < b + b_len && b < a + a_len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_about_bytes() {
        let memory = [0u8; 16];
        let at = |i: usize| memory.as_ptr().wrapping_add(i).cast_mut();
        assert!(overlaps((at(0), 8), (at(7), 4)));
        assert!(!overlaps((at(0), 8), (at(8), 4)));
        assert!(!overlaps((at(0), 0), (at(0), 4)));
    }
}
