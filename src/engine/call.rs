//! A kernel as a piece of a queue's work.

use super::kernel::BoundKernel;
use super::later::LaterCall;
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

/// A call of the kernel on this stream; `cache` has scratch memory of an earlier one.
pub(super) fn work(
    stream: &Stream,
    kernel: Ref<BoundKernel>,
    inputs: Vec<Ref<Tensor>>,
    outputs: Vec<Ref<Tensor>>,
    cache: &Arc<HandOff<Buffer>>,
) -> Result<Arc<dyn Work>> {
    let (scratch_bytes, slots) = check(stream, &kernel, &inputs, &outputs)
        .map_err(|error| error.within(format_args!("kernel '{}'", kernel.name())))?;
    let needed = Scratch::stride(scratch_bytes).checked_mul(slots).ok_or_else(|| {
        Error::out_of_range(format!("kernel '{}': scratch of {scratch_bytes} bytes x {slots} slots", kernel.name()))
    })?;
    let scratch = HandOff::default();
    let mut data = std::ptr::null_mut();
    if needed > 0 {
        let buffer = match cache.take().filter(|buffer| buffer.bytes() >= needed) {
            Some(buffer) => buffer,
            None => Buffer::zeroed(needed, &format!("scratch of kernel '{}'", kernel.name()))?,
        };
        data = buffer.data();
        let _ = scratch.put(buffer);
    }
    let cache = Arc::clone(cache);
    if kernel.kernel().is_async() {
        let scratch = (Scratch::new(data, scratch_bytes, slots), scratch);
        return Ok(Arc::new(LaterCall::new(kernel, (inputs, outputs), scratch, cache)?));
    }
    let views = |tensors: &[Ref<Tensor>]| tensors.iter().map(|tensor| tensor.view().clone()).collect();
    Ok(Arc::new(Call {
        inputs: views(&inputs),
        outputs: views(&outputs),
        kernel,
        scratch,
        scratch_bytes,
        slots,
        cache,
        _tensors: (inputs, outputs),
    }))
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
    if let Some(i) = expected.iter().position(|desc| !desc.is_concrete()) {
        return Err(Error::new(
            Code::Unimplemented,
            format!("only its call knows the shape of output {i}, {}; make it a node of a graph", expected[i].text()),
        ));
    }
    signature::check("output", &expected, &output_descs)?;
    for (what, tensors) in [("input", inputs), ("output", outputs)] {
        for (i, tensor) in tensors.iter().enumerate() {
            check_tensor(what, i, tensor, stream.engine())?;
        }
        check_fixed(what, tensors)?;
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

/// Refuses a tensor whose shape may change until the work is done.
fn check_fixed(what: &str, tensors: &[Ref<Tensor>]) -> Result<()> {
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

/// Refuses an output that shares memory with an input or with another output.
pub fn check_overlaps(
    inputs: usize,
    input: &dyn Fn(usize) -> (*mut u8, usize),
    outputs: usize,
    output: &dyn Fn(usize) -> (*mut u8, usize),
) -> Result<()> {
    if outputs * (inputs + outputs) > FEW_PAIRS && lie_apart(inputs, input, outputs, output) {
        return Ok(());
    }
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

/// So many pairs are compared one by one.
const FEW_PAIRS: usize = 32;
/// Most tensors that are sorted, without an allocation.
const SORTED: usize = 512;

/// Whether no output shares memory with anything. False if that cannot be said without an allocation.
fn lie_apart(
    inputs: usize,
    input: &dyn Fn(usize) -> (*mut u8, usize),
    outputs: usize,
    output: &dyn Fn(usize) -> (*mut u8, usize),
) -> bool {
    if inputs + outputs > SORTED {
        return false;
    }
    let mut all = [(0usize, 0usize, false); SORTED];
    let views = (0..inputs).map(|i| (input(i), false)).chain((0..outputs).map(|o| (output(o), true)));
    let mut len = 0;
    for ((data, bytes), is_output) in views.filter(|((_, bytes), _)| *bytes > 0) {
        all[len] = (data as usize, data as usize + bytes, is_output);
        len += 1;
    }
    let all = &mut all[..len];
    all.sort_unstable();
    // How far anything, and how far an output, reaches that begins before.
    let (mut reach, mut output_reach) = (0, 0);
    for &(begin, end, is_output) in all.iter() {
        if begin < output_reach || is_output && begin < reach {
            return false;
        }
        reach = reach.max(end);
        if is_output {
            output_reach = output_reach.max(end);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_tensors_are_found_to_share_memory_or_not() {
        let memory = vec![0u8; 4096];
        let at = |i: usize| memory.as_ptr().wrapping_add(i).cast_mut();
        let input = |i: usize| (at(16 * i), 24);
        let apart = |o: usize| (at(2048 + 16 * o), 16);
        assert!(check_overlaps(40, &input, 40, &apart).is_ok(), "inputs may share memory");
        let with_input = |o: usize| if o == 39 { (at(16), 4) } else { apart(o) };
        let error = check_overlaps(40, &input, 40, &with_input).unwrap_err();
        assert_eq!(error.message(), "output 39 shares memory with input 0");
        let with_output = |o: usize| if o == 39 { (at(2048 + 17), 4) } else { apart(o) };
        let error = check_overlaps(40, &input, 40, &with_output).unwrap_err();
        assert_eq!(error.message(), "output 39 shares memory with output 1");
    }
}
