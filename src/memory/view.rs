//! A tensor as kernels see it: address, size, descriptor. A view describes memory and gives none of it away: what reads
//! and writes is made of it where somebody vouches for the memory (module `bytes`).
//!
//! A view is made, pointed elsewhere and reshaped by those alone who say that the memory is there:
//!
//! ```compile_fail,E0133
//! use weir::{base::{Desc, dtype}, memory::View};
//! let mut word = 7i32;
//! let view = View::new((&raw mut word).cast(), 4, Desc::new(dtype::S32, &[1]));
//! ```
//! ```
//! use weir::{base::{Desc, dtype}, memory::View};
//! let mut word = 7i32;
//! // SAFETY: the word outlives the view.
//! let view = unsafe { View::new((&raw mut word).cast(), 4, Desc::new(dtype::S32, &[1])) };
//! ```
//! ```compile_fail,E0133
//! use weir::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! view.set_data(std::ptr::null_mut());
//! ```
//! ```
//! use weir::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! // SAFETY: no bytes are nowhere.
//! unsafe { view.set_data(std::ptr::null_mut()) };
//! ```
//! ```compile_fail,E0133
//! use weir::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! view.reshape(std::ptr::null_mut(), 0, Desc::new(dtype::S32, &[0, 2]));
//! ```
//! ```
//! use weir::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! // SAFETY: no bytes are nowhere, and nobody else has the view.
//! unsafe { view.reshape(std::ptr::null_mut(), 0, Desc::new(dtype::S32, &[0, 2])) };
//! ```
//!
//! A view has nothing to read:
//!
//! ```compile_fail,E0599
//! use weir::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! assert!(view.read::<i32>().is_empty());
//! ```
//! ```compile_fail,E0133
//! use weir::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! assert!(view.as_bytes().read::<i32>().is_empty());
//! ```
//! ```
//! use weir::{base::{Desc, dtype}, memory::View};
//! let view = View::empty(Desc::new(dtype::S32, &[0]));
//! // SAFETY: no bytes are nobody's.
//! assert!(unsafe { view.as_bytes() }.read::<i32>().is_empty());
//! ```

use super::{Bytes, BytesMut};
use crate::abi::weir_tensor_view;
use crate::base::{Desc, dtype};
use std::cell::UnsafeCell;
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

// SAFETY: the descriptor is written by `reshape` alone, whose callers say that nobody reads it meanwhile.
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
    /// A view of `bytes` bytes at `data`, which hold a tensor like `desc`.
    ///
    /// # Safety
    /// The bytes are there, at an address of the host's or of a device's, for as long as this view or a clone of it
    /// points at them. They are aligned as elements of `desc` are.
    pub const unsafe fn new(data: *mut u8, bytes: usize, desc: Desc) -> View {
        View { data: AtomicPtr::new(data), bytes: AtomicUsize::new(bytes), desc: UnsafeCell::new(desc) }
    }

    /// A view of no memory.
    pub const fn empty(desc: Desc) -> View {
        // SAFETY: no bytes are everywhere.
        unsafe { View::new(std::ptr::null_mut(), 0, desc) }
    }

    pub fn data(&self) -> *mut u8 {
        self.data.load(Relaxed)
    }

    /// Points the view elsewhere. ORDERING: Relaxed; the owner of a run binds before it opens the run, and workers
    /// enter with Acquire.
    ///
    /// # Safety
    /// As of `new`, with as many bytes as the view had.
    pub unsafe fn set_data(&self, data: *mut u8) {
        self.data.store(data, Relaxed);
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    pub fn desc(&self) -> &Desc {
        // SAFETY: whoever reshapes the view says that nobody reads it.
        unsafe { &*self.desc.get() }
    }

    /// Makes it a view of another tensor, whose shape may differ.
    ///
    /// # Safety
    /// As of `new`, and nobody else reads the view meanwhile, nor keeps its descriptor: it belongs to whoever runs the
    /// node whose value it is, until others are told.
    pub unsafe fn reshape(&self, data: *mut u8, bytes: usize, desc: Desc) {
        self.data.store(data, Relaxed);
        self.bytes.store(bytes, Relaxed);
        // SAFETY: nobody reads it, as demanded of the caller.
        unsafe { self.desc.get().write(desc) }
    }

    /// The tensor, to be read.
    ///
    /// # Safety
    /// The bytes are the host's and have values, and nobody writes them during `'a`.
    #[inline]
    pub unsafe fn as_bytes(&self) -> Bytes<'_> {
        // SAFETY: as demanded of the caller.
        unsafe { Bytes::of(self) }
    }

    /// The tensor, to be written.
    ///
    /// # Safety
    /// The bytes are the host's and have values, and nobody else reads or writes them during `'a`.
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
        // SAFETY: the descriptor says how large the element is, and whoever made the view that it is aligned.
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
        // SAFETY: whoever made this view or pointed it there has vouched for clones too.
        unsafe { View::new(self.data(), self.bytes(), *self.desc()) }
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
