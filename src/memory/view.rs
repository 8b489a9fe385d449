//! A tensor as kernels see it: address, size, descriptor. A view describes memory without giving access to it: `Bytes`
//! and `BytesMut`, which read and write, are made from it by code that guarantees that the memory may be accessed.
//!
//! Creating, redirecting and reshaping a view are unsafe, because the caller guarantees that the memory is valid:
//!
//! ```compile_fail,E0133
//! use weir_core::{base::{Desc, dtype}, memory::View};
//! let mut word = 7i32;
//! let view = View::new((&raw mut word).cast(), 4, Desc::new(dtype::S32, &[1]));
//! ```
//! ```
//! use weir_core::{base::{Desc, dtype}, memory::View};
//! let mut word = 7i32;
//! // SAFETY: the word outlives the view.
//! let view = unsafe { View::new((&raw mut word).cast(), 4, Desc::new(dtype::S32, &[1])) };
//! ```
//! ```compile_fail,E0133
//! use weir_core::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! view.set_data(std::ptr::null_mut());
//! ```
//! ```
//! use weir_core::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! // SAFETY: no bytes are nowhere.
//! unsafe { view.set_data(std::ptr::null_mut()) };
//! ```
//! ```compile_fail,E0133
//! use weir_core::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! view.reshape(std::ptr::null_mut(), 0, Desc::new(dtype::S32, &[0, 2]));
//! ```
//! ```
//! use weir_core::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! // SAFETY: no bytes are nowhere, and nobody else has the view.
//! unsafe { view.reshape(std::ptr::null_mut(), 0, Desc::new(dtype::S32, &[0, 2])) };
//! ```
//!
//! A view itself cannot be read:
//!
//! ```compile_fail,E0599
//! use weir_core::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! assert!(view.read::<i32>().is_empty());
//! ```
//! ```compile_fail,E0133
//! use weir_core::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! assert!(view.as_bytes().read::<i32>().is_empty());
//! ```
//! ```
//! use weir_core::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! // SAFETY: no bytes are nobody's.
//! assert!(unsafe { view.as_bytes() }.read::<i32>().is_empty());
//! ```

use crate::abi::weir_tensor_view;
use crate::base::{Desc, dtype};
use crate::sync::Claim;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// `weir_tensor_view` with an address that can be set while others hold a reference; so can the shape of values that
/// are sized at run time.
#[repr(C)]
#[derive(Debug)]
pub struct View {
    data: AtomicPtr<u8>,
    bytes: AtomicUsize,
    desc: UnsafeCell<Desc>,
}

// SAFETY: only `reshape` writes the descriptor, and its callers guarantee that nothing reads it meanwhile.
unsafe impl Sync for View {}

// C reads a View as a weir_tensor_view.
const _: () = {
    assert!(size_of::<View>() == size_of::<weir_tensor_view>());
    assert!(align_of::<View>() == align_of::<weir_tensor_view>());
    assert!(offset_of!(View, data) == offset_of!(weir_tensor_view, data));
    assert!(offset_of!(View, bytes) == offset_of!(weir_tensor_view, bytes));
    assert!(offset_of!(View, desc) == offset_of!(weir_tensor_view, desc));
};

impl View {
    /// A view of `bytes` bytes at `data`, holding a tensor like `desc`.
    ///
    /// # Safety
    /// The bytes are valid, at an address of the host or of a device, for as long as this view or a clone of it points
    /// at them. They are aligned as elements of `desc` are.
    pub const unsafe fn new(data: *mut u8, bytes: usize, desc: Desc) -> View {
        View { data: AtomicPtr::new(data), bytes: AtomicUsize::new(bytes), desc: UnsafeCell::new(desc) }
    }

    /// A view of no memory.
    pub const fn empty(desc: Desc) -> View {
        // SAFETY: zero bytes are valid at any address.
        unsafe { View::new(std::ptr::null_mut(), 0, desc) }
    }

    pub fn data(&self) -> *mut u8 {
        self.data.load(Relaxed)
    }

    /// Redirects the view. ORDERING: Relaxed; the owner of a run binds before it opens the run, and workers enter with
    /// Acquire.
    ///
    /// # Safety
    /// As of `new`, with the size that the view has.
    pub unsafe fn set_data(&self, data: *mut u8) {
        self.data.store(data, Relaxed);
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    pub fn desc(&self) -> &Desc {
        // SAFETY: a caller of `reshape` guarantees that nothing reads it meanwhile.
        unsafe { &*self.desc.get() }
    }

    /// Turns it into a view of another tensor, whose shape may differ.
    ///
    /// # Safety
    /// As of `new`, and nothing else reads the view meanwhile, or keeps its descriptor: it belongs to the thread that
    /// runs the node whose value it is, until others are notified.
    pub unsafe fn reshape(&self, data: *mut u8, bytes: usize, desc: Desc) {
        self.data.store(data, Relaxed);
        self.bytes.store(bytes, Relaxed);
        // SAFETY: nobody reads it, as demanded of the caller.
        unsafe { self.desc.get().write(desc) }
    }

    /// The tensor, for reading.
    ///
    /// # Safety
    /// The bytes are initialised host memory, and nothing writes them during `'a`.
    #[inline]
    pub unsafe fn as_bytes(&self) -> Bytes<'_> {
        // SAFETY: as demanded of the caller.
        unsafe { Bytes::of(self) }
    }

    /// The tensor, for writing.
    ///
    /// # Safety
    /// The bytes are initialised host memory, and nothing else reads or writes them during `'a`.
    #[inline]
    pub unsafe fn as_bytes_mut(&self) -> BytesMut<'_> {
        // SAFETY: as demanded of the caller.
        unsafe { BytesMut::of(self) }
    }

    /// The first element of an integer type.
    ///
    /// # Safety
    /// As of `as_bytes`, and there is an element.
    #[inline]
    pub unsafe fn integer(&self) -> i32 {
        // SAFETY: the descriptor states the element's size, and the maker of the view guarantees its alignment.
        unsafe {
            match self.desc().dtype {
                dtype::S32 => self.data().cast::<i32>().read(),
                dtype::S8 => i32::from(self.data().cast::<i8>().read()),
                _ => i32::from(self.data().read()),
            }
        }
    }
}

impl Clone for View {
    fn clone(&self) -> View {
        // SAFETY: the code that made or redirected this view has guaranteed it for clones too.
        unsafe { View::new(self.data(), self.bytes(), *self.desc()) }
    }
}

/// Whether two memory ranges share a byte.
pub fn overlaps(a: (*mut u8, usize), b: (*mut u8, usize)) -> bool {
    let ((a, a_len), (b, b_len)) = ((a.0 as usize, a.1), (b.0 as usize, b.1));
    a_len > 0 && b_len > 0 && a < b + b_len && b < a + a_len
}

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

/// A host tensor that may be read during `'a`: nothing writes it.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Bytes<'a> {
    view: &'a View,
}

impl<'a> Bytes<'a> {
    /// # Safety
    /// As of `View::as_bytes`.
    #[inline]
    unsafe fn of(view: &'a View) -> Bytes<'a> {
        Bytes { view }
    }

    #[inline]
    pub fn desc(&self) -> &'a Desc {
        self.view.desc()
    }

    /// Its descriptor.
    #[inline]
    pub fn view(&self) -> &'a View {
        self.view
    }

    #[inline]
    pub fn data(&self) -> *const u8 {
        self.view.data()
    }

    /// Size in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.view.bytes()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements.
    pub fn read<T: Element>(&self) -> &'a [T] {
        let (data, len) = typed(self.view);
        // SAFETY: readable during 'a, and not written meanwhile (`of`).
        unsafe { std::slice::from_raw_parts(data, len) }
    }

    /// The bytes, for any element type.
    pub fn read_bytes(&self) -> &'a [u8] {
        match self.len() {
            0 => &[],
            // SAFETY: readable during 'a, and not written meanwhile (`of`).
            len => unsafe { std::slice::from_raw_parts(self.data(), len) },
        }
    }

    /// The first element of an integer type.
    pub fn read_integer(&self) -> i32 {
        assert!(
            self.len() >= if self.desc().dtype == dtype::S32 { 4 } else { 1 },
            "a number of {}",
            self.desc().text()
        );
        // SAFETY: readable (`of`), and there is an element.
        unsafe { self.view.integer() }
    }
}

/// A host tensor that may be written during `'a`: nothing else reads or writes it.
#[derive(Debug)]
#[repr(transparent)]
pub struct BytesMut<'a> {
    view: &'a View,
}

impl<'a> BytesMut<'a> {
    /// # Safety
    /// As of `View::as_bytes_mut`.
    #[inline]
    unsafe fn of(view: &'a View) -> BytesMut<'a> {
        BytesMut { view }
    }

    #[inline]
    pub fn desc(&self) -> &'a Desc {
        self.view.desc()
    }

    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.view.data()
    }

    /// Size in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.view.bytes()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its descriptor.
    #[inline]
    pub fn view(&self) -> &'a View {
        self.view
    }

    /// Copies an input's bytes, as many as both have.
    #[inline]
    pub fn copy_from(&mut self, source: Bytes<'_>) {
        let bytes = self.len().min(source.len());
        // SAFETY: both are alive and large enough, and this one is exclusive, so that they do not overlap.
        unsafe {
            match bytes {
                0 => {}
                // A single move, where a call would cost more.
                4 => self.data().cast::<u32>().write_unaligned(source.data().cast::<u32>().read_unaligned()),
                8 => self.data().cast::<u64>().write_unaligned(source.data().cast::<u64>().read_unaligned()),
                _ => std::ptr::copy_nonoverlapping(source.data(), self.data(), bytes),
            }
        }
    }

    /// All of its bytes.
    pub fn write_bytes(&mut self) -> &mut [u8] {
        match self.len() {
            0 => &mut [],
            // SAFETY: writable during 'a, and exclusive (`of`); borrowed for as long as the slice lives.
            len => unsafe { std::slice::from_raw_parts_mut(self.data(), len) },
        }
    }

    /// Its elements.
    pub fn write<T: Element>(&mut self) -> &mut [T] {
        let (data, len) = typed(self.view);
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(data, len) }
    }

    /// Sets every byte.
    pub fn fill(&mut self, value: u8) {
        self.write_bytes().fill(value);
    }

    /// Writes the one element of an s32 output.
    #[inline]
    pub fn write_integer(&mut self, value: i32) {
        assert_eq!((self.desc().dtype, self.len()), (dtype::S32, 4));
        // SAFETY: writable (`of`), four bytes, and aligned, as the maker of the view guarantees.
        unsafe { self.data().cast::<i32>().write(value) }
    }

    /// The elements, to be written in parts: an item of a region has `per_item` consecutive ones.
    pub fn shards<T: Element>(self, per_item: usize) -> Shards<'a, T> {
        let (data, len) = typed(self.view);
        Shards { data, len, per_item, _life: PhantomData }
    }

    /// The bytes, for any element type, to be written in parts.
    pub fn byte_shards(self, per_item: usize) -> Shards<'a, u8> {
        match self.len() {
            0 => Shards { data: NonNull::dangling().as_ptr(), len: 0, per_item, _life: PhantomData },
            len => Shards { data: self.data(), len, per_item, _life: PhantomData },
        }
    }
}

/// Address and number of the elements.
fn typed<T: Element>(view: &View) -> (*mut T, usize) {
    assert_eq!(view.desc().dtype, T::DTYPE, "a kernel read {} as {}", view.desc().text(), dtype::name(T::DTYPE));
    let (data, len) = (view.data().cast::<T>(), view.bytes() / size_of::<T>());
    assert!(data.is_aligned());
    if len == 0 { (NonNull::dangling().as_ptr(), 0) } else { (data, len) }
}

/// An output that a region divides among its claims. A region takes ownership of it, so that no other region divides it
/// too.
///
/// # Safety
/// The parts of claims without a common item do not share memory, and are exclusive while they live.
pub unsafe trait Parts: Sync {
    /// A claim's part of it.
    type Part;

    /// # Safety
    /// No other part of this output was or will be made for a claim that shares an item with this one.
    unsafe fn part(&self, claim: &Claim) -> Self::Part;
}

/// The elements of an output. Each claim of a region opens its own part.
#[derive(Debug)]
pub struct Shards<'a, T> {
    data: *mut T,
    len: usize,
    per_item: usize,
    _life: PhantomData<&'a mut [T]>,
}

// SAFETY: like a mutable slice, of which each claim takes elements of its own.
unsafe impl<T: Send> Send for Shards<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shards<'_, T> {}

impl<'a, T> Shards<'a, T> {
    /// The first element, for kernels that compute addresses themselves.
    pub fn as_ptr(&self) -> *mut T {
        self.data
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

// SAFETY: items have elements of their own, of an output with exclusive use (`BytesMut`).
unsafe impl<'a, T: Send> Parts for Shards<'a, T> {
    type Part = &'a mut [T];

    unsafe fn part(&self, claim: &Claim) -> &'a mut [T] {
        let (items, per_item) = (claim.begin()..claim.end(), self.per_item);
        let end = items.end.checked_mul(per_item).filter(|&end| items.start <= items.end && end <= self.len);
        let Some(end) = end else { panic!("items {items:?} of {per_item} elements of {}", self.len) };
        let begin = items.start * per_item;
        // SAFETY: in bounds, and no other part has these elements, as demanded of the caller.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(begin), end - begin) }
    }
}

#[cfg(all(test, not(loom)))]
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
