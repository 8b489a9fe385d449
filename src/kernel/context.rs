//! A kernel's view of the running call.
//!
//! The maker of a context guarantees the validity of the call's memory, so that nothing else has to:
//!
//! ```compile_fail,E0133
//! use weir_core::kernel::{KernelContext, NEVER, Scratch};
//! let context = KernelContext::new(&[], &[], None, Scratch::none(1), &NEVER);
//! ```
//! ```
//! use weir_core::kernel::{KernelContext, NEVER, Scratch};
//! // SAFETY: a call without tensors.
//! let context = unsafe { KernelContext::new(&[], &[], None, Scratch::none(1), &NEVER) };
//! ```
//! ```compile_fail,E0133
//! use weir_core::kernel::Scratch;
//! let scratch = Scratch::new(std::ptr::null_mut(), 0, 1);
//! ```
//! ```
//! use weir_core::kernel::Scratch;
//! // SAFETY: no bytes are nowhere.
//! let scratch = unsafe { Scratch::new(std::ptr::null_mut(), 0, 1) };
//! ```
//!
//! An output has one writer:
//!
//! ```compile_fail,E0499
//! use weir_core::kernel::Outputs;
//! fn twice(mut outputs: Outputs<'_>) {
//!     let (mut a, mut b) = (outputs.get(0), outputs.get(0));
//!     a.write_bytes()[0] = b.write_bytes()[0];
//! }
//! ```
//! ```
//! use weir_core::kernel::Outputs;
//! fn once(mut outputs: Outputs<'_>) {
//!     let mut a = outputs.get(0);
//!     a.write_bytes()[0] = 1;
//! }
//! ```

use super::Stop;
use crate::base::object::tag;
use crate::base::{Code, Desc, Error, Ref, Result, process};
use crate::memory::{Bytes, BytesMut, MemoryBlock, Parts, View, overlaps};
use crate::sync::{Claim, Mailbox, Mutex};
use crate::threadpool::{self, BoxBody, Epilogue, Grid, Span, ThreadPool};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// Scratch memory of a call: `slots` ranges of `bytes` each.
#[derive(Debug)]
pub struct Scratch {
    /// Atomic only so that pieces may share the context: it is never written again.
    data: AtomicPtr<u8>,
    bytes: usize,
    slots: usize,
}

impl Scratch {
    /// `bytes` is rounded up to `stride`; `data` has `slots` times that.
    ///
    /// # Safety
    /// The memory is valid and aligned to `memory::ALIGNMENT` while a call has this or a clone of it, and only one call
    /// at a time has it.
    pub unsafe fn new(data: *mut u8, bytes: usize, slots: usize) -> Scratch {
        Scratch { data: AtomicPtr::new(data), bytes, slots: slots.max(1) }
    }

    /// Slots without memory.
    pub fn none(slots: usize) -> Scratch {
        // SAFETY: zero bytes need no memory.
        unsafe { Scratch::new(std::ptr::null_mut(), 0, slots) }
    }

    /// Distance from one slot's memory to the next.
    pub fn stride(bytes: usize) -> usize {
        bytes.next_multiple_of(crate::memory::ALIGNMENT)
    }
}

impl Clone for Scratch {
    fn clone(&self) -> Scratch {
        Scratch { data: AtomicPtr::new(self.data.load(Relaxed)), bytes: self.bytes, slots: self.slots }
    }
}

/// One call of a kernel. C sees it as `weir_kernel_context`, whose first bytes are the tag.
#[repr(C)]
pub struct KernelContext<'a> {
    tag: u32,
    /// The process in which the call runs.
    born: u32,
    of: CallScope<'a>,
    scratch: Scratch,
    failure: Mailbox<Error>,
    /// Not a variant of `of`, which has two: distinguishing three would cost every call one more comparison.
    run: Option<&'a dyn RunContext>,
}

/// The surroundings of a call.
enum CallScope<'a> {
    Borrowed { inputs: &'a [View], outputs: &'a [View], pool: Option<&'a Ref<ThreadPool>>, stop: &'a Stop },
    Kept(Kept),
}

/// Per-run device state, for the device kernels that the library adds to a program.
pub type Frame = dyn Any + Send + Sync;

/// Services of a run for its calls, besides tensors.
pub trait RunContext: Sync {
    fn frame(&self) -> Option<&Arc<Frame>>;

    /// The memory of the run's values. No later run gets it while somebody keeps it.
    fn values(&self) -> Option<&Arc<MemoryBlock>> {
        None
    }

    /// Whether a tensor is one that the host has given to the run.
    fn is_hosts(&self, _tensor: &View) -> bool {
        false
    }

    /// Whether the call has shapes that were unknown at compile time.
    fn is_open(&self) -> bool {
        false
    }

    /// Allocates output `index`, whose shape only the call knows, with these dimensions, once per call; returns the
    /// address. Not for calls without open shapes.
    fn make(&self, index: usize, _dims: &[i64]) -> Result<*mut u8> {
        Err(Error::internal(format!("output {index} is not open")))
    }

    /// Scratch memory of so many bytes per slot, in place of that which the call has. Not for calls without open
    /// shapes.
    fn scratch(&self, _bytes: usize) -> Result<Scratch> {
        Err(Error::internal("the call's scratch memory has its size"))
    }
}

/// The call's surroundings for calls that outlive the function that began them: shared with them, and reused by later
/// calls. the next.
pub struct Kept {
    pub args: Arc<[View]>,
    /// Indices in `args` of the first input, the first output, and the end.
    pub bounds: [usize; 3],
    /// The pool of the active call.
    pub pool: Mutex<Option<Ref<ThreadPool>>>,
    pub stop: Arc<Stop>,
    pub frame: Option<Arc<Frame>>,
}

impl<'a> KernelContext<'a> {
    pub const TAG: u32 = tag::KERNEL_CONTEXT;

    /// `stop` is set once the result is not needed any more.
    ///
    /// # Safety
    /// For views of host memory that the kernel reads or writes: the bytes are valid and initialised during the call.
    /// Nothing writes an input, except the call itself through an output that shares its memory. Nothing else uses an
    /// output, and no two outputs share memory. The scratch memory is the call's alone.
    #[inline]
    pub unsafe fn new(
        inputs: &'a [View],
        outputs: &'a [View],
        pool: Option<&'a Ref<ThreadPool>>,
        scratch: Scratch,
        stop: &'a Stop,
    ) -> KernelContext<'a> {
        let of = CallScope::Borrowed { inputs, outputs, pool, stop };
        KernelContext {
            tag: Self::TAG,
            born: process::generation(),
            of,
            scratch,
            failure: Mailbox::default(),
            run: None,
        }
    }

    /// A context with the services of a run.
    ///
    /// # Safety
    /// As of `new`, and `run` returns memory with exclusive use.
    pub unsafe fn of_run(
        (inputs, outputs): (&'a [View], &'a [View]),
        pool: Option<&'a Ref<ThreadPool>>,
        scratch: Scratch,
        stop: &'a Stop,
        run: &'a dyn RunContext,
    ) -> KernelContext<'a> {
        // SAFETY: as demanded of the caller.
        let context = unsafe { KernelContext::new(inputs, outputs, pool, scratch, stop) };
        KernelContext { run: Some(run), ..context }
    }

    /// Whether the call has shapes that were unknown at compile time.
    pub fn is_open(&self) -> bool {
        self.run.is_some_and(|run| run.is_open())
    }

    /// The memory of the run's values. The run's own inputs and outputs, constants and values of open shapes are
    /// elsewhere.
    pub fn values(&self) -> Option<&Arc<MemoryBlock>> {
        self.run?.values()
    }

    /// Whether a tensor is one that the host has given to the run.
    pub fn is_hosts(&self, tensor: &View) -> bool {
        self.run.is_some_and(|run| run.is_hosts(tensor))
    }

    /// The run's device state; `None` if the run has none of this type.
    pub fn frame<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let frame = match &self.of {
            CallScope::Borrowed { .. } => self.run?.frame()?,
            CallScope::Kept(kept) => kept.frame.as_ref()?,
        };
        Arc::clone(frame).downcast().ok()
    }

    /// Allocates an output whose shape the call decides.
    ///
    /// # Safety
    /// Nothing uses the output or its descriptor meanwhile.
    pub unsafe fn allocate_output(&self, index: usize, dims: &[i64]) -> Result<*mut u8> {
        if let Some(run) = self.run.filter(|run| run.is_open()) {
            return run.make(index, dims);
        }
        match self.to_write().get(index) {
            None => Err(Error::out_of_range(format!("index is {index}, the call has {} outputs", self.num_outputs()))),
            Some(view) => Err(settled(index, view)),
        }
    }

    /// The same call with scratch memory of at least so many bytes per slot, as its shapes turned out to need them.
    pub fn with_scratch(&self, bytes: usize) -> Result<KernelContext<'_>> {
        let scratch = match self.run {
            Some(run) if bytes > self.scratch.bytes => run.scratch(bytes)?,
            _ => self.scratch.clone(),
        };
        let CallScope::Borrowed { inputs, outputs, pool, stop } = self.of else {
            return Err(Error::internal("a call of open shapes that completes later"));
        };
        let of = CallScope::Borrowed { inputs, outputs, pool, stop };
        Ok(KernelContext { tag: self.tag, born: self.born, of, scratch, failure: Mailbox::default(), run: self.run })
    }

    /// For successive calls that complete later.
    ///
    /// # Safety
    /// As of `new` for each of them, until it is done.
    pub unsafe fn kept(kept: Kept, scratch: Scratch) -> KernelContext<'static> {
        KernelContext {
            tag: Self::TAG,
            born: process::generation(),
            of: CallScope::Kept(kept),
            scratch,
            failure: Mailbox::default(),
            run: None,
        }
    }

    /// Sets the pool of the call that begins, or `None` when it ends; returns the previous one. For kept contexts only.
    pub fn set_pool(&self, pool: Option<&Ref<ThreadPool>>) -> Option<Ref<ThreadPool>> {
        match &self.of {
            CallScope::Borrowed { .. } => None,
            CallScope::Kept(kept) => std::mem::replace(&mut *kept.pool.lock(), pool.cloned()),
        }
    }

    /// Whether the call began in a process that this one was forked from.
    pub fn is_inherited(&self) -> bool {
        self.born != process::generation()
    }

    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// The descriptors and addresses of the inputs.
    #[inline]
    pub fn inputs(&self) -> &[View] {
        match &self.of {
            CallScope::Borrowed { inputs, .. } => inputs,
            CallScope::Kept(kept) => &kept.args[kept.bounds[0]..kept.bounds[1]],
        }
    }

    #[inline]
    pub(super) fn to_write(&self) -> &[View] {
        match &self.of {
            CallScope::Borrowed { outputs, .. } => outputs,
            CallScope::Kept(kept) => &kept.args[kept.bounds[1]..kept.bounds[2]],
        }
    }

    /// An input, for reading. Not available for an input that shares memory with an output: a kernel that may work in
    /// place computes from addresses (`vector::elements`).
    pub fn input(&self, index: usize) -> Bytes<'_> {
        let (view, place) = (&self.inputs()[index], |view: &View| (view.data(), view.bytes()));
        assert!(
            !self.to_write().iter().any(|output| overlaps(place(output), place(view))),
            "input {index} is an output too"
        );
        // SAFETY: nothing writes an input except through an output that shares its memory (`new`), and none does.
        unsafe { view.as_bytes() }
    }

    #[inline]
    pub fn num_outputs(&self) -> usize {
        self.to_write().len()
    }

    /// The address of an output.
    #[inline]
    pub fn output_data(&self, index: usize) -> *mut u8 {
        self.to_write()[index].data()
    }

    /// The views of the outputs.
    ///
    /// # Safety
    /// No descriptor of an output is kept until the kernel allocates it (`allocate_output`).
    #[inline]
    pub unsafe fn output_views(&self) -> &[View] {
        self.to_write()
    }

    /// The right to write the call's outputs, for the kernel.
    ///
    /// # Safety
    /// Nothing else has it while this lives, and the call lasts as long.
    #[inline]
    pub unsafe fn outputs(&self) -> Outputs<'_> {
        // SAFETY: as demanded of the caller, and of that of `new`.
        unsafe { Outputs::new(self.to_write()) }
    }

    /// Calls `f` with the call's pool.
    pub fn with_pool<R>(&self, f: impl FnOnce(Option<&Ref<ThreadPool>>) -> R) -> R {
        match &self.of {
            CallScope::Borrowed { pool, .. } => f(*pool),
            CallScope::Kept(kept) => {
                let pool = kept.pool.lock().clone();
                f(pool.as_ref())
            }
        }
    }

    /// Maximum number of concurrent pieces in a region of this call.
    pub fn num_slots(&self) -> usize {
        self.scratch.slots
    }

    /// Bytes of scratch memory in a slot.
    pub fn scratch_bytes(&self) -> usize {
        self.scratch.bytes
    }

    /// The scratch memory of a slot; NULL if the kernel has none.
    pub fn scratch(&self, slot: usize) -> *mut u8 {
        assert!(slot < self.scratch.slots, "slot {slot} of {}", self.scratch.slots);
        if self.scratch.bytes == 0 {
            return std::ptr::null_mut();
        }
        self.scratch.data.load(Relaxed).wrapping_add(slot * Scratch::stride(self.scratch.bytes))
    }

    /// Whether the result is not needed any more: a hint to stop early. A run that says so does not succeed.
    pub fn is_cancelled(&self) -> bool {
        self.stop().is_set() || self.stop().tells_late()
    }

    /// The stop flag of the call; runs inside of it are attached to it.
    pub fn stop(&self) -> &Stop {
        match &self.of {
            CallScope::Borrowed { stop, .. } => stop,
            CallScope::Kept(kept) => &kept.stop,
        }
    }

    /// The stop flag for users that outlive the function that began the call; `None` if the call does not.
    pub fn kept_stop(&self) -> Option<&Arc<Stop>> {
        match &self.of {
            CallScope::Borrowed { .. } => None,
            CallScope::Kept(kept) => Some(&kept.stop),
        }
    }

    /// A region on the call's pool, with the call's slots. No more pieces are handed out once the run is cancelled.
    pub fn parallel_for(&self, span: &Span, body: &(dyn Fn(Claim) -> Result<()> + Sync)) -> Result<()> {
        self.parallel_for_then(span, body, None)
    }

    /// As `parallel_for`, over an output: each claim receives its part of it.
    pub fn parallel_into<P: Parts>(
        &self,
        span: &Span,
        parts: P,
        body: impl Fn(P::Part, &Claim) -> Result<()> + Sync,
    ) -> Result<()> {
        self.parallel_for(span, &|claim| {
            // SAFETY: the output was given to this region alone, and no two claims of it share an item.
            let part = unsafe { parts.part(&claim) };
            body(part, &claim)
        })
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
        self.with_pool(|pool| threadpool::parallel_for_then(pool, &span, &body, epilogue))
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
        self.with_pool(|pool| threadpool::parallel_nd(pool, grid, point_ns, self.slots(max_slots), body, epilogue))
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

    /// Keeps the first failure text of a host kernel.
    pub fn fail(&self, error: Error) {
        // A second failure is dropped: the first one counts.
        let _ = self.failure.put(error);
    }

    /// Whether `fail` has kept a failure.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failure.is_full()
    }

    /// The failure that `fail` kept.
    pub fn take_failure(&self) -> Option<Error> {
        self.failure.take()
    }
}

/// The refusal to allocate an output whose shape is fixed by compile.
pub fn settled(index: usize, view: &View) -> Error {
    Error::precondition(format!("output {index} is {}, has its memory, and is not to be allocated", view.desc().text()))
}

/// The outputs of one call. A call has only one of these, so its results are exclusive.
#[derive(Debug)]
pub struct Outputs<'a> {
    views: &'a [View],
}

impl<'a> Outputs<'a> {
    /// # Safety
    /// Nothing else reads or writes these tensors during `'a`, except the same call an input whose memory they share;
    /// no two share memory.
    #[inline]
    pub(super) unsafe fn new(views: &'a [View]) -> Outputs<'a> {
        Outputs { views }
    }

    fn check(&self, context: &KernelContext<'_>) {
        assert!(std::ptr::eq(self.views, context.to_write()), "outputs of another call");
    }

    /// Number of outputs.
    pub fn count(&self) -> usize {
        self.views.len()
    }

    pub fn desc(&self, index: usize) -> &Desc {
        self.views[index].desc()
    }

    /// Views of the outputs.
    pub fn views(&self) -> &[View] {
        self.views
    }

    /// One output.
    #[inline]
    pub fn get(&mut self, index: usize) -> BytesMut<'_> {
        // SAFETY: exclusive (`new`), and this is borrowed for as long as that lives.
        unsafe { self.views[index].as_bytes_mut() }
    }

    /// All outputs.
    #[inline]
    pub fn split<const N: usize>(self) -> [BytesMut<'a>; N] {
        assert_eq!(self.views.len(), N, "outputs of a call");
        // SAFETY: exclusive (`new`); no two share memory, and their source is consumed.
        std::array::from_fn(|i| unsafe { self.views[i].as_bytes_mut() })
    }

    /// The only output.
    #[inline]
    pub fn only(self) -> BytesMut<'a> {
        let [output] = self.split();
        output
    }

    /// An input with any memory: nothing is written while it is read.
    pub fn input<'s>(&'s self, context: &'s KernelContext<'_>, index: usize) -> Bytes<'s> {
        self.check(context);
        // SAFETY: nothing writes it except through an output that shares its memory (`KernelContext::new`), and those
        // are borrowed.
        unsafe { context.inputs()[index].as_bytes() }
    }

    /// Allocates an output whose shape the call decides.
    pub fn allocate(&mut self, context: &KernelContext<'_>, index: usize, dims: &[i64]) -> Result<*mut u8> {
        self.check(context);
        // SAFETY: everything obtained from this, descriptors too, is gone while it is borrowed.
        unsafe { context.allocate_output(index, dims) }
    }
}
