//! Streams: work in order.

use crate::callback::Once;
use crate::engine::timeout_ns;
use crate::error::{check, name, no_failure};
use crate::handle::{handle, shared_handle};
use crate::tensor::{End, Handles};
use crate::{Engine, Error, ErrorKind, Event, Kernel, Result, Run, Tensor, ThreadPool};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::Duration;
use weir_core::abi::{weir_stream, weir_stream_attr, weir_stream_flags as Flags};
use weir_core::ffi;

shared_handle!(Handle(weir_stream), ffi::weir_stream_retain, ffi::weir_stream_release);

/// An in-order queue of work on one engine.
///
/// On the CPU a stream is *synchronous* unless it is made otherwise: a call does the work, blocks until it is done, and
/// gives its failure. On an *asynchronous* stream, and on every stream of a device, a call queues the work and never
/// blocks. Such a stream keeps its first failure, skips what is queued behind it, and refuses new work until
/// [`clear_error`](Stream::clear_error).
///
/// ```
/// use weir::{Engine, Kernel, Stream, Tensor, ops};
///
/// let cpu = Engine::cpu()?;
/// let stream = Stream::asynchronous(&cpu)?;
/// let product = Kernel::new(&cpu, &ops::Matmul::default())?;
/// let a = Tensor::from_slice(&cpu, &[2, 2], &[1.0_f32, 2.0, 3.0, 4.0])?;
/// let b = Tensor::from_slice(&cpu, &[2, 2], &[5.0_f32, 6.0, 7.0, 8.0])?;
/// let mut c = Tensor::from_slice(&cpu, &[2, 2], &[0.0_f32; 4])?;
/// stream.enqueue(&product, &[&a, &b], &mut [&mut c])?; // returns at once
/// assert_eq!(c.as_slice::<f32>()?, [19.0, 22.0, 43.0, 50.0]); // waits
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    handle: Handle,
    engine: Engine,
    /// No other stream of the process ever has it.
    id: u64,
    is_synchronous: bool,
    shared: Arc<Shared>,
}

/// The clones of a stream have it in common.
#[derive(Debug, Default)]
struct Shared {
    /// The steps of submissions, counted.
    steps: AtomicU64,
    /// How many submissions are in progress; `CLEARING` while the failure is cleared.
    submissions: AtomicU64,
}

const CLEARING: u64 = 1 << 63;

impl Shared {
    /// The waits that submitted work begins with and the work itself are skipped together or not at all. So no failure
    /// is cleared between them: not from here until the result is dropped, nor while they are queued.
    fn begin(&self) -> Result<Submission<'_>> {
        // ORDERING: Acquire and Release pair with those in `clear`.
        let begun = self.submissions.fetch_update(AcqRel, Acquire, |n| (n != CLEARING).then_some(n + 1));
        let text = "the stream has failed, and its failure is being cleared just now";
        begun.map(|_| Submission(self)).map_err(|_| Error::new(ErrorKind::FailedPrecondition, text))
    }

    /// Calls `clear` while no submission is in progress.
    fn clear(&self, clear: impl FnOnce() -> Result<()>) -> Result<()> {
        // ORDERING: Acquire, so that `clear` sees all that was submitted; Release, so that later submissions see it.
        self.submissions.compare_exchange(0, CLEARING, Acquire, Relaxed).map_err(|_| {
            let text = "work is being submitted to the stream just now: its failure was not cleared";
            Error::new(ErrorKind::FailedPrecondition, text)
        })?;
        let result = clear();
        self.submissions.store(0, Release);
        result
    }
}

/// A submission in progress.
struct Submission<'a>(&'a Shared);

impl Drop for Submission<'_> {
    fn drop(&mut self) {
        self.0.submissions.fetch_sub(1, Release);
    }
}

impl Stream {
    /// A stream of the engine's default kind: synchronous on the CPU.
    pub fn new(engine: &Engine) -> Result<Stream> {
        Stream::builder(engine).build()
    }

    /// An asynchronous stream. Without a pool that takes single tasks it starts a thread of its own.
    pub fn asynchronous(engine: &Engine) -> Result<Stream> {
        Stream::builder(engine).asynchronous().build()
    }

    /// Settings for a stream.
    pub fn builder(engine: &Engine) -> StreamBuilder {
        StreamBuilder {
            engine: engine.clone(),
            asynchronous: false,
            name: String::new(),
            priority: 0,
            threadpool: None,
            spin: None,
        }
    }

    /// The engine that the stream is on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Runs a kernel. Tensors are checked against its signature before anything is queued.
    pub fn enqueue(&self, kernel: &Kernel, inputs: &[&Tensor], outputs: &mut [&mut Tensor]) -> Result<()> {
        self.submit(inputs, outputs, |from, into| {
            // SAFETY: live handles. The work keeps them, and their uses are noted.
            check(unsafe {
                ffi::weir_enqueue(self.raw(), kernel.raw(), from.data(), from.len(), into.data(), into.len())
            })?;
            Ok(None)
        })?;
        Ok(())
    }

    /// Copies the elements of a tensor to another one of the same type and shape. They may be on two engines, one of
    /// which is the stream's.
    pub fn copy(&self, source: &Tensor, target: &mut Tensor) -> Result<()> {
        self.submit(&[source], &mut [target], |from, into| {
            // SAFETY: live handles. The work keeps them, and their uses are noted.
            check(unsafe { ffi::weir_enqueue_copy(self.raw(), from.first(), into.first()) })?;
            Ok(None)
        })?;
        Ok(())
    }

    /// Sets every byte of a tensor. A tensor of `bool` takes 0 and 1.
    pub fn fill(&self, tensor: &mut Tensor, byte: u8) -> Result<()> {
        if tensor.desc().dtype() == crate::DType::Bool && byte > 1 {
            return Err(Error::new(ErrorKind::InvalidArgument, format!("the byte {byte} is no bool")));
        }
        self.submit(&[], &mut [tensor], |_, into| {
            // SAFETY: a live handle. The work keeps it, and its use is noted.
            check(unsafe { ffi::weir_enqueue_fill(self.raw(), into.first(), i32::from(byte)) })?;
            Ok(None)
        })?;
        Ok(())
    }

    /// Runs a closure as one piece of the stream's work. A failure or a panic of it is the stream's, with its kind
    /// alone: the C interface has no text for it.
    pub fn task<F: FnOnce() -> Result<()> + Send + 'static>(&self, task: F) -> Result<()> {
        Once::hand_over(task, |call, context, release| {
            // SAFETY: a live handle, and functions for this context.
            unsafe { ffi::weir_enqueue_task(self.raw(), call, context, release) }
        })
    }

    /// Makes later work wait until the event, as last recorded, has been reached. A failure of its stream becomes one
    /// of this stream.
    ///
    /// Blocks on a synchronous stream.
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        // SAFETY: live handles.
        check(unsafe { ffi::weir_stream_wait_event(self.raw(), event.raw()) })
    }

    /// Waits until all work is done that was queued before this call. Gives the stream's failure the first time.
    ///
    /// Blocks, and does queued work meanwhile. Refused with `FailedPrecondition` from the stream's own work, and where
    /// the wait would block a worker that the work needs.
    pub fn synchronize(&self) -> Result<()> {
        self.synchronize_within(None)
    }

    /// As [`synchronize`](Self::synchronize), for at most so long; else `DeadlineExceeded`. The work goes on.
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        self.synchronize_within(Some(timeout))
    }

    fn synchronize_within(&self, timeout: Option<Duration>) -> Result<()> {
        // SAFETY: a live handle.
        check(unsafe { ffi::weir_stream_synchronize(self.raw(), timeout_ns(timeout)) })
    }

    /// Whether everything that is queued so far is done, failed or not.
    pub fn is_done(&self) -> Result<bool> {
        let mut done = 0;
        // SAFETY: a live handle.
        check(unsafe { ffi::weir_stream_query(self.raw(), &raw mut done) })?;
        Ok(done != 0)
    }

    /// Forgets the stream's failure, so that it takes work again. Skipped work stays skipped.
    ///
    /// Refused with `FailedPrecondition` while a call that submits work with tensors to this stream is in progress, and
    /// while work is queued: that is to be skipped first, which [`synchronize`](Self::synchronize) waits for.
    pub fn clear_error(&self) -> Result<()> {
        let mut failure = no_failure();
        // SAFETY: a live handle, and a struct of this size.
        check(unsafe { ffi::weir_stream_get_failure(self.raw(), &raw mut failure) })?;
        if failure.code == 0 {
            return Ok(());
        }
        self.shared.clear(|| {
            // Of a wait and the work behind it, the one may be skipped already and the other not.
            if !self.is_done()? {
                let text = "work that is queued on the stream is not skipped yet: its failure was not cleared";
                return Err(Error::new(ErrorKind::FailedPrecondition, text));
            }
            // SAFETY: a live handle.
            check(unsafe { ffi::weir_stream_clear_error(self.raw()) })
        })
    }

    /// Submits work that reads and writes tensors, in order with what else uses these.
    pub(crate) fn submit(
        &self,
        inputs: &[&Tensor],
        outputs: &mut [&mut Tensor],
        work: impl FnOnce(&Handles, &Handles) -> Result<Option<Run>>,
    ) -> Result<Option<Run>> {
        let (from, into) = (Handles::of(inputs.iter().copied()), Handles::of(outputs.iter().map(|output| &**output)));
        if self.is_synchronous {
            for input in inputs {
                input.wait_written()?;
            }
            for output in outputs.iter() {
                output.wait_unused()?;
            }
            return work(&from, &into);
        }
        let _submission = self.shared.begin()?;
        for input in inputs {
            input.order(self, false)?;
        }
        for output in outputs.iter() {
            if output.is_open() {
                let text = "a tensor that has its shape from runs is no output of queued work";
                return Err(Error::new(ErrorKind::InvalidArgument, text));
            }
            output.order(self, true)?;
        }
        let event = Event::new(&self.engine)?;
        let before = self.step();
        let run = work(&from, &into)?;
        let event = event.record(self).is_ok().then_some(event);
        let end = End::new(event, run.clone(), [before, self.step()]);
        for input in inputs {
            input.note(self, false, &end);
        }
        for output in outputs.iter() {
            output.note(self, true, &end);
        }
        Ok(run)
    }

    /// Numbers that grow: what was queued before a call of this comes before what is queued after a later one.
    fn step(&self) -> u64 {
        // ORDERING: AcqRel orders what threads queue before and after their steps.
        self.shared.steps.fetch_add(1, AcqRel)
    }

    pub(crate) fn raw(&self) -> *mut weir_stream {
        self.handle.raw()
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn is_synchronous(&self) -> bool {
        self.is_synchronous
    }
}

handle!(Attr(weir_stream_attr), ffi::weir_stream_attr_destroy);

/// Settings for a stream, from [`Stream::builder`]. All have a default.
#[derive(Clone, Debug)]
#[must_use = "a stream is made by `build`"]
pub struct StreamBuilder {
    engine: Engine,
    asynchronous: bool,
    name: String,
    priority: i32,
    threadpool: Option<ThreadPool>,
    spin: Option<Duration>,
}

impl StreamBuilder {
    /// Calls that submit work return before it is done.
    pub fn asynchronous(mut self) -> Self {
        self.asynchronous = true;
        self
    }

    /// A name for texts; without one a stream is called `stream 7`.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// -100 to 100; 0 is normal. A pool sees it in [`Hint`](crate::threadpool::Hint).
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// The pool that the stream's work runs on, in place of the engine's.
    pub fn threadpool(mut self, pool: &ThreadPool) -> Self {
        self.threadpool = Some(pool.clone());
        self
    }

    /// How long a thread that waits for the stream spins before it sleeps; at most a second.
    pub fn spin(mut self, time: Duration) -> Self {
        self.spin = Some(time);
        self
    }

    /// Makes the stream.
    pub fn build(self) -> Result<Stream> {
        // ORDERING: each number is drawn once, and nothing else hangs on it.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let info = self.engine.info()?;
        let text = name(&self.name)?;
        let flags = if self.asynchronous { Flags::WEIR_STREAM_ASYNCHRONOUS } else { Flags::WEIR_STREAM_DEFAULT };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the argument is a place for the handle.
        check(unsafe { ffi::weir_stream_attr_create(info.kind.code(), &raw mut raw) })?;
        // SAFETY: a new object of this function's.
        let attr = unsafe { Attr::from_raw(raw) }?;
        // SAFETY: live handles, and a text that lives during the call.
        let handle = unsafe {
            check(ffi::weir_stream_attr_set_name(attr.raw(), text.as_ptr()))?;
            check(ffi::weir_stream_attr_set_priority(attr.raw(), self.priority))?;
            if let Some(pool) = &self.threadpool {
                check(ffi::weir_stream_attr_set_threadpool(attr.raw(), pool.raw()))?;
            }
            if let Some(time) = self.spin {
                check(ffi::weir_stream_attr_set_spin_ns(attr.raw(), timeout_ns(Some(time))))?;
            }
            let mut stream = std::ptr::null_mut();
            check(ffi::weir_stream_create(self.engine.raw(), flags as u64, attr.raw(), &raw mut stream))?;
            Handle::from_raw(stream)?
        };
        let is_synchronous = info.kind == crate::EngineKind::Cpu && !self.asynchronous;
        let (id, shared) = (NEXT.fetch_add(1, Relaxed), Arc::default());
        Ok(Stream { handle, engine: self.engine, id, is_synchronous, shared })
    }
}
