//! A kernel call as queue work.

use super::apart::{TensorRange, check_apart, check_whole};
use super::kernel::BoundKernel;
use super::later::LaterCall;
use super::stream::Stream;
use super::tensor::Tensor;
use crate::base::{Code, Desc, Error, Ref, Result};
use crate::kernel::{KernelContext, NEVER, Scratch};
use crate::memory::{MemoryBlock, StreamCache, View};
use crate::ops::signature;
use crate::stream::{Queue, QueueWork};
use crate::sync::Mailbox;
use crate::threadpool::{MAX_SLOTS, ThreadPool};
use smallvec::SmallVec;
use std::sync::Arc;
use std::task::Poll;

/// A call of a kernel, with all resources that must live until it is done.
pub(super) struct QueuedCall {
    kernel: Ref<BoundKernel>,
    inputs: Vec<View>,
    outputs: Vec<View>,
    scratch: Scratch,
    _memory: ScratchOwner,
    _tensors: (Vec<Ref<Tensor>>, Vec<Ref<Tensor>>),
}

/// The owner of the scratch memory of a call.
enum ScratchOwner {
    /// The stream's cache, which has the block back already: later calls on the stream may use it.
    Lane { _cache: Arc<StreamCache> },
    /// The call itself, which is enqueued again and again.
    Call { _block: Option<MemoryBlock> },
}

/// The largest number of slots of a region on this pool.
pub fn scratch_slots(pool: Option<&Ref<ThreadPool>>) -> usize {
    pool.map_or(1, |pool| (pool.max_threads() + 1).min(MAX_SLOTS))
}

/// Tensors of a call that the caller keeps alive.
pub type Borrowed<'a> = SmallVec<[&'a Tensor; 4]>;

/// A call's need of scratch memory.
struct ScratchNeeds {
    bytes: usize,
    slots: usize,
}

impl ScratchNeeds {
    /// Memory for all slots; `allocate` is given how much.
    fn memory(
        &self,
        kernel: &BoundKernel,
        allocate: impl FnOnce(usize) -> Result<MemoryBlock>,
    ) -> Result<Option<MemoryBlock>> {
        if self.bytes == 0 {
            return Ok(None);
        }
        let Some(needed) = Scratch::stride(self.bytes).checked_mul(self.slots) else {
            return Err(Error::out_of_range(format!(
                "kernel '{}': scratch of {} bytes x {} slots",
                kernel.name(),
                self.bytes,
                self.slots
            )));
        };
        allocate(needed).map(Some)
    }

    /// # Safety
    /// The block came from `memory`. It lives as long as a call uses this, and one call at a time does.
    unsafe fn scratch(&self, memory: Option<&MemoryBlock>) -> Scratch {
        // SAFETY: as demanded of the caller; the block has so much.
        unsafe { Scratch::new(memory.map_or(std::ptr::null_mut(), MemoryBlock::data), self.bytes, self.slots) }
    }
}

/// Runs the kernel in this thread, as the next item of a synchronous stream; `cache` has scratch memory of an earlier
/// call. If that is large enough, nothing is allocated.
pub(super) fn now(
    stream: &Stream,
    kernel: &BoundKernel,
    inputs: &[&Tensor],
    outputs: &[&Tensor],
    cache: &Mailbox<MemoryBlock>,
) -> Result<()> {
    let needs = check_named(stream, kernel, inputs, outputs)?;
    let memory = needs.memory(kernel, |bytes| match cache.take().filter(|memory| memory.bytes() >= bytes) {
        Some(memory) => Ok(memory),
        None => stream.engine().memory().allocate(bytes, kernel.scratch_tag()),
    })?;
    // Filled in place: collecting would move them.
    let (mut in_views, mut out_views) = (SmallVec::<[View; 3]>::new(), SmallVec::<[View; 3]>::new());
    inputs.iter().for_each(|tensor| in_views.push(tensor.view().clone()));
    outputs.iter().for_each(|tensor| out_views.push(tensor.view().clone()));
    // SAFETY: the caller keeps the tensors, which were checked for overlap; the host keeps to the stream's order of
    // work. This call has taken the scratch memory.
    let context =
        unsafe { KernelContext::new(&in_views, &out_views, stream.pool(), needs.scratch(memory.as_ref()), &NEVER) };
    let result = stream.queue().run(|| {
        // SAFETY: once.
        let outputs = unsafe { context.outputs() };
        let result = kernel.kernel().compute(&context, outputs);
        result.map_err(|error| error.within(format_args!("kernel '{}'", kernel.name())))
    });
    if let Some(memory) = memory {
        // Full already: then this one is dropped.
        let _ = cache.put(memory);
    }
    result
}

/// A call of the kernel to queue on this stream, and its scratch memory, which goes back to the cache as soon as the
/// call is submitted: later items on the stream run after it.
pub(super) fn work(
    stream: &Stream,
    kernel: Ref<BoundKernel>,
    inputs: Vec<Ref<Tensor>>,
    outputs: Vec<Ref<Tensor>>,
    lane: &Arc<StreamCache>,
) -> Result<(Arc<dyn QueueWork>, Option<MemoryBlock>)> {
    let needs = check_named(stream, &kernel, &borrowed(&inputs), &borrowed(&outputs))?;
    let memory = needs.memory(&kernel, |bytes| lane.allocate(bytes, kernel.scratch_tag()))?;
    // SAFETY: a block of the cache, which the call keeps; its next users come after the call on the stream.
    let scratch = unsafe { needs.scratch(memory.as_ref()) };
    let lane = Arc::clone(lane);
    if kernel.kernel().is_async() {
        return Ok((Arc::new(LaterCall::new(kernel, (inputs, outputs), scratch, lane)?), memory));
    }
    let call = QueuedCall::new(kernel, (inputs, outputs), scratch, ScratchOwner::Lane { _cache: lane });
    Ok((Arc::new(call), memory))
}

/// A call of the kernel with scratch memory of its own, for a kernel that completes when it returns.
pub(super) fn prepared(
    stream: &Stream,
    kernel: Ref<BoundKernel>,
    inputs: Vec<Ref<Tensor>>,
    outputs: Vec<Ref<Tensor>>,
) -> Result<QueuedCall> {
    let needs = check_named(stream, &kernel, &borrowed(&inputs), &borrowed(&outputs))?;
    let block = needs.memory(&kernel, |bytes| stream.engine().memory().allocate(bytes, kernel.scratch_tag()))?;
    // SAFETY: the call keeps the block, and its turns come one after another on the stream.
    let scratch = unsafe { needs.scratch(block.as_ref()) };
    Ok(QueuedCall::new(kernel, (inputs, outputs), scratch, ScratchOwner::Call { _block: block }))
}

pub(super) fn borrowed(tensors: &[Ref<Tensor>]) -> Borrowed<'_> {
    tensors.iter().map(|tensor| &***tensor).collect()
}

impl QueuedCall {
    fn new(
        kernel: Ref<BoundKernel>,
        tensors: (Vec<Ref<Tensor>>, Vec<Ref<Tensor>>),
        scratch: Scratch,
        memory: ScratchOwner,
    ) -> QueuedCall {
        let views = |tensors: &[Ref<Tensor>]| tensors.iter().map(|tensor| tensor.view().clone()).collect();
        let (inputs, outputs) = (views(&tensors.0), views(&tensors.1));
        QueuedCall { kernel, inputs, outputs, scratch, _memory: memory, _tensors: tensors }
    }

    /// Computes it, as the current item of its stream.
    #[inline]
    pub(super) fn compute(&self, queue: &Queue) -> Result<()> {
        // SAFETY: the call keeps the tensors, which were checked for overlap. It runs in stream order, to which the
        // host keeps.
        let result = unsafe {
            let scratch = self.scratch.clone();
            let context = KernelContext::new(&self.inputs, &self.outputs, queue.pool(), scratch, &NEVER);
            self.kernel.kernel().compute(&context, context.outputs())
        };
        result.map_err(|error| error.within(format_args!("kernel '{}'", self.kernel.name())))
    }
}

impl QueueWork for QueuedCall {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        Poll::Ready(self.compute(queue))
    }
}

/// As `check`; every error names the kernel.
fn check_named(stream: &Stream, kernel: &BoundKernel, inputs: &[&Tensor], outputs: &[&Tensor]) -> Result<ScratchNeeds> {
    check(stream, kernel, inputs, outputs).map_err(|error| error.within(format_args!("kernel '{}'", kernel.name())))
}

/// Checks a call that needs no host scratch memory; every error names the kernel.
pub(super) fn check_all(stream: &Stream, kernel: &BoundKernel, inputs: &[&Tensor], outputs: &[&Tensor]) -> Result<()> {
    check_named(stream, kernel, inputs, outputs).map(drop)
}

/// Checks tensors and kernel against each other and against the stream.
fn check(stream: &Stream, kernel: &BoundKernel, inputs: &[&Tensor], outputs: &[&Tensor]) -> Result<ScratchNeeds> {
    if !kernel.engine().is_same_device(stream.engine()) {
        return Err(Error::invalid(format!(
            "it is of engine {}, stream '{}' is on engine {}",
            kernel.engine().label(),
            stream.queue().name(),
            stream.engine().label()
        )));
    }
    let bytes = match kernel.known_scratch_bytes(inputs, outputs) {
        Some(bytes) => bytes,
        None => check_signature(kernel, inputs, outputs)?,
    };
    for (what, tensors) in [("input", inputs), ("output", outputs)] {
        for (i, tensor) in tensors.iter().enumerate() {
            check_tensor(what, i, tensor, stream.engine())?;
        }
        check_fixed(what, tensors)?;
    }
    if kernel.kernel().may_block() && stream.queue().is_on_pool() {
        return Err(Error::precondition(format!(
            "it may block a worker of the pool of stream '{}'; use a synchronous stream, or a graph with a pool for \
             kernels that block",
            stream.queue().name()
        )));
    }
    let in_place = kernel.kernel().in_place() && kernel.on_device().is_none_or(|on_device| on_device.in_place());
    let may_share = |i: usize| in_place && kernel.kernel().in_place_of(i);
    let place = |tensor: &Tensor| TensorRange::host(tensor.data(), tensor.bytes());
    let to_read = |i: usize| if may_share(i) { TensorRange::NOWHERE } else { place(inputs[i]) };
    check_apart(inputs.len(), to_read, outputs.len(), |o| place(outputs[o]))?;
    // Kernels of the host's may know what to do with memory that is shared in part.
    if in_place && kernel.is_builtin() {
        check_whole(inputs.len(), |i| place(inputs[i]), outputs.len(), |o| place(outputs[o]))?;
    }
    Ok(ScratchNeeds { bytes, slots: scratch_slots(stream.pool()) })
}

/// Infers the kernel's outputs from these inputs, and compares; gives scratch bytes per slot.
#[cold]
fn check_signature(kernel: &BoundKernel, inputs: &[&Tensor], outputs: &[&Tensor]) -> Result<usize> {
    let descs = |tensors: &[&Tensor]| tensors.iter().map(|tensor| *tensor.desc()).collect::<Vec<Desc>>();
    let (inputs, outputs) = (descs(inputs), descs(outputs));
    let expected = kernel.infer_unnamed(&inputs)?;
    if let Some(i) = expected.iter().position(|desc| !desc.is_concrete()) {
        return Err(Error::new(
            Code::Unimplemented,
            format!("only its call knows the shape of output {i}, {}; make it a node of a graph", expected[i].text()),
        ));
    }
    signature::check("output", &expected, &outputs)?;
    let bytes = kernel.kernel().scratch_bytes(&inputs, &outputs);
    kernel.know(inputs, outputs, bytes);
    Ok(bytes)
}

/// Refuses a tensor whose shape may change until the work is done.
fn check_fixed(what: &str, tensors: &[&Tensor]) -> Result<()> {
    match tensors.iter().position(|tensor| tensor.open().is_some()) {
        Some(i) => Err(Error::invalid(format!("{what} {i} is a dynamic tensor, expected one of a fixed shape"))),
        None => Ok(()),
    }
}

/// Refuses a tensor that is not in the engine's memory.
pub fn check_tensor(what: &str, index: usize, tensor: &Tensor, engine: &super::Engine) -> Result<()> {
    if tensor.engine().is_same_device(engine) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{what} {index} is in the memory of engine {}, expected {}",
        tensor.engine().label(),
        engine.label()
    )))
}
