//! What a kernel sees of the call it serves.
#![forbid(unsafe_code)]

use super::Stop;
use crate::base::object::tag;
use crate::base::{Code, Error, Ref, Result};
use crate::memory::View;
use crate::sync::{Claim, HandOff};
use crate::threadpool::{self, BoxBody, Epilogue, Grid, Span, ThreadPool};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// Scratch memory of a call: `slots` stretches of `bytes` each.
#[derive(Debug)]
pub struct Scratch {
    /// Atomic only so that pieces may share the context: it is never written again.
    data: AtomicPtr<u8>,
    bytes: usize,
    slots: usize,
}

impl Scratch {
    /// `bytes` is rounded up to the stride that `stride` gives; `data` has `slots` times that.
    pub fn new(data: *mut u8, bytes: usize, slots: usize) -> Scratch {
        Scratch { data: AtomicPtr::new(data), bytes, slots: slots.max(1) }
    }

    /// Distance from one slot's memory to the next.
    pub fn stride(bytes: usize) -> usize {
        bytes.next_multiple_of(crate::memory::ALIGNMENT)
    }
}

/// One call of a kernel. C sees it as `weir_kernel_context`, whose first bytes are the tag.
#[repr(C)]
pub struct KernelContext<'a> {
    tag: u32,
    inputs: &'a [View],
    outputs: &'a [View],
    pool: Option<&'a Ref<ThreadPool>>,
    scratch: Scratch,
    stop: &'a Stop,
    failure: HandOff<Error>,
}

impl<'a> KernelContext<'a> {
    pub const TAG: u32 = tag::KERNEL_CONTEXT;

    /// `stop` is set once the result is not wanted any more.
    pub fn new(
        inputs: &'a [View],
        outputs: &'a [View],
        pool: Option<&'a Ref<ThreadPool>>,
        scratch: Scratch,
        stop: &'a Stop,
    ) -> KernelContext<'a> {
        KernelContext { tag: Self::TAG, inputs, outputs, pool, scratch, stop, failure: HandOff::default() }
    }

    pub fn tag(&self) -> u32 {
        self.tag
    }

    pub fn inputs(&self) -> &'a [View] {
        self.inputs
    }

    pub fn outputs(&self) -> &'a [View] {
        self.outputs
    }

    /// Pieces that may run at once in a region of this call.
    pub fn num_slots(&self) -> usize {
        self.scratch.slots
    }

    /// The scratch memory of a slot; NULL if the kernel has none.
    pub fn scratch(&self, slot: usize) -> *mut u8 {
        assert!(slot < self.scratch.slots, "slot {slot} of {}", self.scratch.slots);
        if self.scratch.bytes == 0 {
            return std::ptr::null_mut();
        }
        self.scratch.data.load(Relaxed).wrapping_add(slot * Scratch::stride(self.scratch.bytes))
    }

    /// Whether the result is not wanted any more: a hint to stop early.
    pub fn is_cancelled(&self) -> bool {
        self.stop.is_set() || self.stop.is_late()
    }

    /// A region on the call's pool, with the call's slots. Pieces stop being handed out when the run is cancelled.
    pub fn parallel_for(&self, span: &Span, body: &(dyn Fn(Claim) -> Result<()> + Sync)) -> Result<()> {
        self.parallel_for_then(span, body, None)
    }

    /// As `parallel_for`, and then the epilogue.
    pub fn parallel_for_then(
        &self,
        span: &Span,
        body: &(dyn Fn(Claim) -> Result<()> + Sync),
        epilogue: Option<Epilogue<'_>>,
    ) -> Result<()> {
        let span = Span { max_slots: self.slots(span.max_slots), ..*span };
        let body = |claim| self.unless_cancelled(|| body(claim));
        threadpool::parallel_for_then(self.pool, &span, &body, epilogue)
    }

    /// As `parallel_for_then`, over several dimensions.
    pub fn parallel_nd(
        &self,
        grid: &Grid,
        point_ns: f32,
        max_slots: usize,
        body: BoxBody<'_>,
        epilogue: Option<Epilogue<'_>>,
    ) -> Result<()> {
        let body: BoxBody<'_> = &|low, high, slot| self.unless_cancelled(|| body(low, high, slot));
        threadpool::parallel_nd(self.pool, grid, point_ns, self.slots(max_slots), body, epilogue)
    }

    fn slots(&self, wanted: usize) -> usize {
        if wanted == 0 { self.num_slots() } else { wanted.min(self.num_slots()) }
    }

    fn unless_cancelled(&self, body: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::new(Code::Cancelled, "cancelled"));
        }
        body()
    }

    /// Keeps the first failure that a host kernel words itself.
    pub fn fail(&self, error: Error) {
        // A second failure is dropped: the first one counts.
        let _ = self.failure.put(error);
    }

    /// The failure that `fail` kept.
    pub fn take_failure(&self) -> Option<Error> {
        self.failure.take()
    }
}
