//! The right to write the outputs of a call.

use super::KernelContext;
use crate::base::{Desc, Result};
use crate::memory::{Bytes, BytesMut, View};

/// The outputs of one call. There is one of these in a call, so that what it gives is nobody else's.
#[derive(Debug)]
pub struct Outputs<'a> {
    views: &'a [View],
}

impl<'a> Outputs<'a> {
    /// # Safety
    /// Nobody else reads or writes these tensors during `'a`, but the same call an input whose memory they share; no
    /// two share memory.
    #[inline]
    pub(super) unsafe fn new(views: &'a [View]) -> Outputs<'a> {
        Outputs { views }
    }

    fn check(&self, context: &KernelContext<'_>) {
        assert!(std::ptr::eq(self.views, context.to_write()), "outputs of another call");
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.views.len()
    }

    pub fn desc(&self, index: usize) -> &Desc {
        self.views[index].desc()
    }

    /// What they are.
    pub fn views(&self) -> &[View] {
        self.views
    }

    /// One of them.
    #[inline]
    pub fn get(&mut self, index: usize) -> BytesMut<'_> {
        // SAFETY: nobody else's (`new`), and this is borrowed for as long as that lives.
        unsafe { self.views[index].as_bytes_mut() }
    }

    /// All of them.
    #[inline]
    pub fn split<const N: usize>(self) -> [BytesMut<'a>; N] {
        assert_eq!(self.views.len(), N, "outputs of a call");
        // SAFETY: nobody else's (`new`); no two share memory, and what gave them is gone.
        std::array::from_fn(|i| unsafe { self.views[i].as_bytes_mut() })
    }

    /// The only one.
    #[inline]
    pub fn only(self) -> BytesMut<'a> {
        let [output] = self.split();
        output
    }

    /// An input, whatever memory it has: nothing is written while it is read.
    pub fn input<'s>(&'s self, context: &'s KernelContext<'_>, index: usize) -> Bytes<'s> {
        self.check(context);
        // SAFETY: nobody writes it but through an output that shares its memory (`KernelContext::new`), and those are
        // borrowed.
        unsafe { context.inputs()[index].as_bytes() }
    }

    /// Memory for one whose shape the call decides.
    pub fn allocate(&mut self, context: &KernelContext<'_>, index: usize, dims: &[i64]) -> Result<*mut u8> {
        self.check(context);
        // SAFETY: what this has given, descriptors too, is gone while it is borrowed.
        unsafe { context.allocate_output(index, dims) }
    }
}
