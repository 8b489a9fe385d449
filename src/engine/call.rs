//! A kernel as a piece of a queue's work.

use super::kernel::BoundKernel;
use super::stream::Stream;
use super::tensor::Tensor;
use crate::base::{Code, Desc, Error, Ref, Result};
use crate::kernel::{KernelContext, NEVER, Scratch, signature};
use crate::memory::{Buffer, View, overlaps};
use crate::stream::{Queue, Work};
use crate::sync::HandOff;
use crate::threadpool::{MAX_SLOTS, ThreadPool};
use std::sync::Arc;
use std::task::Poll;

/// One call of a kernel, with everything that must live until it is done.
pub(super) struct Call {
    kernel: Ref<BoundKernel>,
    inputs: Vec<View>,
    outputs: Vec<View>,
    scratch: HandOff<Buffer>,
    scratch_bytes: usize,
    slots: usize,
    /// Where the scratch memory goes afterwards.
    cache: Arc<HandOff<Buffer>>,
    _tensors: (Vec<Ref<Tensor>>, Vec<Ref<Tensor>>),
}

/// How many slots a region on this pool can have.
pub fn scratch_slots(pool: Option<&Ref<ThreadPool>>) -> usize {
    pool.map_or(1, |pool| (pool.max_threads() + 1).min(MAX_SLOTS))
}

impl Call {
    pub(super) fn new(
        stream: &Stream,
        kernel: Ref<BoundKernel>,
        inputs: Vec<Ref<Tensor>>,
        outputs: Vec<Ref<Tensor>>,
        cache: &Arc<HandOff<Buffer>>,
    ) -> Result<Call> {
        let (scratch_bytes, slots) = check(stream, &kernel, &inputs, &outputs)
            .map_err(|error| error.within(format_args!("kernel '{}'", kernel.name())))?;
        let needed = Scratch::stride(scratch_bytes).checked_mul(slots).ok_or_else(|| {
            Error::out_of_range(format!("kernel '{}': scratch of {scratch_bytes} bytes x {slots} slots", kernel.name()))
        })?;
        let scratch = HandOff::default();
        if needed > 0 {
            let buffer = match cache.take().filter(|buffer| buffer.bytes() >= needed) {
                Some(buffer) => buffer,
                None => Buffer::zeroed(needed, &format!("scratch of kernel '{}'", kernel.name()))?,
            };
            let _ = scratch.put(buffer);
        }
        let views = |tensors: &[Ref<Tensor>]| tensors.iter().map(|tensor| tensor.view().clone()).collect();
        Ok(Call {
            inputs: views(&inputs),
            outputs: views(&outputs),
            kernel,
            scratch,
            scratch_bytes,
            slots,
            cache: Arc::clone(cache),
            _tensors: (inputs, outputs),
        })
    }
}

impl Work for Call {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        let buffer = self.scratch.take();
        let data = buffer.as_ref().map_or(std::ptr::null_mut(), Buffer::data);
        let scratch = Scratch::new(data, self.scratch_bytes, self.slots);
        let context = KernelContext::new(&self.inputs, &self.outputs, queue.pool(), scratch, &NEVER);
        let result = self.kernel.kernel().compute(&context);
        if let Some(buffer) = buffer {
            // Full already: then this one is let go.
            let _ = self.cache.put(buffer);
        }
        Poll::Ready(result.map_err(|error| error.within(format_args!("kernel '{}'", self.kernel.name()))))
    }
}

/// Checks tensors and kernel against each other and against the stream; gives scratch bytes per slot, and slots.
fn check(
    stream: &Stream,
    kernel: &BoundKernel,
    inputs: &[Ref<Tensor>],
    outputs: &[Ref<Tensor>],
) -> Result<(usize, usize)> {
    if !kernel.engine().is_same_device(stream.engine()) {
        return Err(Error::invalid(format!(
            "it is of engine {}, stream '{}' is on engine {}",
            kernel.engine().label(),
            stream.queue().name(),
            stream.engine().label()
        )));
    }
    let descs = |tensors: &[Ref<Tensor>]| tensors.iter().map(|tensor| *tensor.desc()).collect::<Vec<Desc>>();
    let (input_descs, output_descs) = (descs(inputs), descs(outputs));
    let expected = kernel.infer_unnamed(&input_descs)?;
    signature::check("output", &expected, &output_descs)?;
    for (what, tensors) in [("input", inputs), ("output", outputs)] {
        for (i, tensor) in tensors.iter().enumerate() {
            check_tensor(what, i, tensor, stream.engine())?;
        }
    }
    if kernel.kernel().is_async() {
        return Err(Error::new(
            Code::Unimplemented,
            "it completes later, and such a kernel can't be enqueued on a stream yet; make it a node of a graph",
        ));
    }
    if kernel.kernel().may_block() && stream.queue().is_on_pool() {
        return Err(Error::precondition(format!(
            "it may block a worker of the pool of stream '{}'; use a synchronous stream, or a graph with a pool for kernels that block",
            stream.queue().name()
        )));
    }
    if !kernel.kernel().in_place() {
        let view = |tensors: &[Ref<Tensor>], i: usize| (tensors[i].data(), tensors[i].bytes());
        check_overlaps(inputs.len(), &|i| view(inputs, i), outputs.len(), &|i| view(outputs, i))?;
    }
    Ok((kernel.kernel().scratch_bytes(&input_descs, &output_descs), scratch_slots(stream.pool())))
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

/// Refuses an output that shares memory with an input or with another output.
pub fn check_overlaps(
    inputs: usize,
    input: &dyn Fn(usize) -> (*mut u8, usize),
    outputs: usize,
    output: &dyn Fn(usize) -> (*mut u8, usize),
) -> Result<()> {
    for o in 0..outputs {
        if let Some(i) = (0..inputs).find(|&i| overlaps(input(i), output(o))) {
            return Err(Error::invalid(format!("output {o} shares memory with input {i}")));
        }
        if let Some(p) = (0..o).find(|&p| overlaps(output(p), output(o))) {
            return Err(Error::invalid(format!("output {o} shares memory with output {p}")));
        }
    }
    Ok(())
}
