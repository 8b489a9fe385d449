//! Tensors that somebody has vouched for: what may be read, what may be written, and an output that a region divides
//! among its claims.

use super::View;
use crate::base::{Desc, dtype};
use crate::sync::Claim;
use std::marker::PhantomData;
use std::ptr::NonNull;

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

/// A tensor of the host's that may be read during `'a`: nobody writes it.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Bytes<'a> {
    view: &'a View,
}

impl<'a> Bytes<'a> {
    /// # Safety
    /// As of `View::as_bytes`.
    #[inline]
    pub(super) unsafe fn of(view: &'a View) -> Bytes<'a> {
        Bytes { view }
    }

    #[inline]
    pub fn desc(&self) -> &'a Desc {
        self.view.desc()
    }

    /// What it is.
    #[inline]
    pub fn view(&self) -> &'a View {
        self.view
    }

    #[inline]
    pub fn data(&self) -> *const u8 {
        self.view.data()
    }

    /// How many bytes there are.
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

    /// The bytes, whatever the elements are.
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

/// A tensor of the host's that may be written during `'a`: nobody else reads or writes it.
#[derive(Debug)]
#[repr(transparent)]
pub struct BytesMut<'a> {
    view: &'a View,
}

impl<'a> BytesMut<'a> {
    /// # Safety
    /// As of `View::as_bytes_mut`.
    #[inline]
    pub(super) unsafe fn of(view: &'a View) -> BytesMut<'a> {
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

    /// How many bytes there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.view.bytes()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it is.
    #[inline]
    pub fn view(&self) -> &'a View {
        self.view
    }

    /// Fills it with an input's bytes, as many as both have.
    #[inline]
    pub fn copy_from(&mut self, source: Bytes<'_>) {
        let bytes = self.len().min(source.len());
        // SAFETY: both are alive and large enough, and this one is nobody else's, so that they do not overlap.
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

    /// All of its bytes.
    pub fn write_bytes(&mut self) -> &mut [u8] {
        match self.len() {
            0 => &mut [],
            // SAFETY: writable during 'a, and nobody else's (`of`); borrowed for as long as the slice lives.
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
        // SAFETY: writable (`of`), four bytes, and aligned, as whoever made the view has said.
        unsafe { self.data().cast::<i32>().write(value) }
    }

    /// The elements, to be written in pieces: an item of a region has `per_item` consecutive ones.
    pub fn shards<T: Element>(self, per_item: usize) -> Shards<'a, T> {
        let (data, len) = typed(self.view);
        Shards { data, len, per_item, _life: PhantomData }
    }

    /// The bytes, whatever the elements are, to be written in pieces.
    pub fn byte_shards(self, per_item: usize) -> Shards<'a, u8> {
        match self.len() {
            0 => Shards { data: NonNull::dangling().as_ptr(), len: 0, per_item, _life: PhantomData },
            len => Shards { data: self.data(), len, per_item, _life: PhantomData },
        }
    }
}

/// Where the elements are, and how many.
fn typed<T: Element>(view: &View) -> (*mut T, usize) {
    assert_eq!(view.desc().dtype, T::DTYPE, "a kernel read {} as {}", view.desc().text(), dtype::name(T::DTYPE));
    let (data, len) = (view.data().cast::<T>(), view.bytes() / size_of::<T>());
    assert!(data.is_aligned());
    if len == 0 { (NonNull::dangling().as_ptr(), 0) } else { (data, len) }
}

/// An output that a region divides among its claims. Who gives it to a region gives it away, so that no other region
/// divides it too.
///
/// # Safety
/// The parts of claims that have no item in common have no memory in common, and are nobody else's while the parts
/// live.
pub unsafe trait Parts: Sync {
    /// What a claim has of it.
    type Part;

    /// # Safety
    /// No other part of this output was or will be made of a claim with an item of this one's.
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

// SAFETY: as a mutable slice, of which each claim takes elements of its own.
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

// SAFETY: items have elements of their own, of an output that is nobody else's (`BytesMut`).
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
