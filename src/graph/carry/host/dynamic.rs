//! Values whose shape only a run knows (`plan::dynamics`): in nodes, and at a run's two ends.
//!
//! A node takes the values that its slots hold when it begins, without being told: edges order it behind their
//! producers. A run's inputs are put into their slots when it begins, with the shapes that they have then; its outputs
//! are taken out when it has succeeded, all or none of them, so that a run that fails or was stopped leaves them as
//! they were.

use crate::base::{Desc, Error, Ref, Result, dtype};
use crate::engine::Tensor;
use crate::graph::carry::state::RunState;
use crate::graph::plan::{DynamicNode, Merge, Port, Write};
use crate::kernel::{Frame, KernelContext, Outputs, RunContext, Scratch, settled};
use crate::memory::{MemoryBlock, Tag, ValueSlot, View};
use crate::sync::Mutex;
use crate::threadpool::ThreadPool;
use std::ops::Deref;
use std::sync::Arc;

/// The outputs of a call, for its kernel.
struct OpenOutputs<'a> {
    state: &'a RunState,
    node: &'a DynamicNode,
    scratch: &'a ValueSlot,
    views: &'a [View],
    /// The last refusal: its text is better than the status that the kernel makes of it.
    refused: Mutex<Option<Error>>,
}

impl OpenOutputs<'_> {
    fn try_to_make(&self, index: usize, dims: &[i64]) -> Result<*mut u8> {
        let state = self.state;
        let Some(view) = self.views.get(index) else {
            return Err(Error::out_of_range(format!("index is {index}, the call has {} outputs", self.views.len())));
        };
        let declared = |write: &Write| state.plan().desc(write.arg).0;
        let is_open = |write: &&Write| usize::from(write.output) == index && !declared(write).is_concrete();
        let Some(write) = self.node.writes.iter().find(is_open) else { return Err(settled(index, view)) };
        let declared = declared(write);
        let named = |error: Error| error.within(format_args!("output {index}"));
        let desc = Desc::new(declared.dtype, dims).check().map_err(named)?;
        if !declared.matches(&desc) {
            return Err(Error::invalid(format!("output {index}: expected {}, got {}", declared.text(), desc.text())));
        }
        let slot = &state.values[write.slot as usize];
        let more = |bytes: usize| state.grow(bytes, self.node.node, index, &desc);
        // SAFETY: the node has the slot, and the view with it; the kernel asks before it has either.
        let Some(data) = unsafe { slot.allocate(desc, &more) }.map_err(named)? else {
            return Err(Error::precondition(format!("output {index} was allocated before in this call")));
        };
        // SAFETY: as above; the memory is the slot's.
        unsafe { view.reshape(data, slot.view().bytes(), desc) };
        Ok(data)
    }
}

impl RunContext for OpenOutputs<'_> {
    fn frame(&self) -> Option<&Arc<Frame>> {
        self.state.frame.as_ref()
    }

    fn is_open(&self) -> bool {
        true
    }

    fn make(&self, index: usize, dims: &[i64]) -> Result<*mut u8> {
        self.try_to_make(index, dims).map_err(|error| {
            *self.refused.lock() = Some(error.clone());
            error.within(format_args!("node '{}'", self.state.plan().name_of(self.node.node)))
        })
    }

    fn scratch(&self, bytes: usize) -> Result<Scratch> {
        let (state, slots) = (self.state, self.state.workers());
        let all = Scratch::stride(bytes)
            .checked_mul(slots)
            .and_then(|all| i64::try_from(all).ok())
            .ok_or_else(|| Error::out_of_range(format!("scratch of {bytes} bytes x {slots} slots")))?;
        let more = |bytes: usize| {
            let what = format!("scratch of node '{}'", state.plan().name_of(self.node.node));
            state.plan().engines[0].memory().allocate(bytes, Tag::text(what))
        };
        // SAFETY: the slot is the node's, of which one call at a time runs; and that asks once.
        let data = unsafe { self.scratch.allocate(Desc::new(dtype::U8, &[all]), &more) }?;
        let data = data.ok_or_else(|| Error::internal("a call that asks for scratch memory twice"))?;
        // SAFETY: as above; the slot has it until the node's next call begins.
        Ok(unsafe { Scratch::new(data, bytes, slots) })
    }
}

impl RunState {
    fn grow(&self, bytes: usize, node: u32, index: usize, desc: &Desc) -> Result<MemoryBlock> {
        let what = format!("output {index} of node '{}', {}", self.plan().name_of(node), desc.text());
        self.plan().engines[0].memory().allocate(bytes, Tag::text(what))
    }

    /// A kernel that reads or writes values of open shapes.
    pub(in crate::graph) fn compute_dynamic(&self, index: usize, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
        let plan = self.plan();
        let node = &plan.dynamics.nodes[index];
        let kernel = &plan.kernels[node.kernel as usize];
        let (inputs, views) = (&self.args[kernel.inputs()], &self.args[kernel.outputs()]);
        for &(arg, slot) in &node.reads {
            let value = self.values[slot as usize].view();
            // SAFETY: the argument is this node's alone, and the value stays while the node runs.
            unsafe { self.args[arg as usize].reshape(value.data(), value.bytes(), *value.desc()) };
        }
        for write in &node.writes {
            let (slot, &(desc, bytes)) = (&self.values[write.slot as usize], plan.desc(write.arg));
            // SAFETY: this node makes the value, behind all readers of the last one.
            unsafe { slot.begin() };
            let mut data = std::ptr::null_mut();
            if desc.is_concrete() {
                let more = |bytes: usize| self.grow(bytes, node.node, write.output.into(), &desc);
                // SAFETY: as above.
                data = unsafe { slot.allocate(desc, &more) }?.unwrap_or(data);
            }
            // SAFETY: as above; without memory it has no bytes yet.
            unsafe { self.args[write.arg as usize].reshape(data, if data.is_null() { 0 } else { bytes }, desc) };
        }
        let own = &self.open_scratch[index];
        // SAFETY: the node's, whose last call is over.
        unsafe { own.begin() };
        let outputs = OpenOutputs { state: self, node, scratch: own, views, refused: Mutex::default() };
        let scratch = self.scratch(kernel.scratch);
        // SAFETY: as of `compute_with`; slots give memory that nobody else has.
        let result = unsafe {
            let context = KernelContext::of_run((inputs, views), pool, scratch, &self.stop, &outputs);
            plan.distinct[kernel.kernel as usize].compute(&context, context.outputs())
        };
        if let Err(error) = result {
            let refused = outputs.refused.lock().take().filter(|refused| refused.code() == error.code());
            return Err(refused.unwrap_or(error));
        }
        match node.writes.iter().find(|write| !write.is_unused && !self.values[write.slot as usize].is_made()) {
            None => Ok(()),
            Some(write) => Err(Error::precondition(format!(
                "output {}, {}, was not allocated by the kernel (weir_kernel_context_allocate_output)",
                write.output,
                plan.desc(write.arg).0.text()
            ))),
        }
    }

    /// A merge of values in slots. The value stays where it is: its readers come before the next write there, which is
    /// an iteration or a run later. But a value in the arena lasts only until the merge has read it.
    pub(in crate::graph) fn merge_dynamic(&self, merge: &Merge, winner: usize) -> Result<()> {
        let open = &self.plan().dynamics.merges[merge.open as usize];
        let input = &self.args[merge.inputs[winner].view as usize];
        if let Some(slot) = open.inputs[winner] {
            let value = self.values[slot as usize].view();
            // SAFETY: the argument is this node's alone, and the value stays while the node runs.
            unsafe { input.reshape(value.data(), value.bytes(), *value.desc()) };
        }
        let made_anew = |slot: u32, output: usize, desc: Desc| {
            let slot = &self.values[slot as usize];
            // SAFETY: this node makes the value, behind all readers of the last one.
            unsafe {
                slot.begin();
                slot.allocate(desc, &|bytes| self.grow(bytes, merge.node, output, &desc))?;
            }
            Ok::<_, Error>(slot.view())
        };
        // SAFETY: the input was made before this node, which makes the outputs; they are different memory.
        let (copy, count) = unsafe {
            (
                |to: &View| to.as_bytes_mut().copy_from(input.as_bytes()),
                |to: &View| to.as_bytes_mut().write_integer(winner as i32),
            )
        };
        match open.value {
            None => copy(&self.args[merge.value as usize]),
            Some(slot) if open.inputs[winner].is_some() && !open.is_handed_on => {
                // SAFETY: this node makes the value, and the input's slot keeps its memory as long as it is read.
                unsafe { self.values[slot as usize].point(input) }
            }
            Some(slot) => copy(made_anew(slot, 0, *input.desc())?),
        }
        match open.index {
            None => count(&self.args[merge.index as usize]),
            Some(slot) => count(made_anew(slot, 1, Desc::new(dtype::S32, &[1]))?),
        }
        Ok(())
    }

    /// Next values become a loop's variables, and the variables' memory is reused for the next values after these.
    pub(in crate::graph) fn move_values(&self, index: usize) -> Result<()> {
        for &(from, to) in &self.plan().dynamics.moves[index] {
            // SAFETY: this node follows those that made and read the values, so it has both slots.
            unsafe { self.values[from as usize].exchange(&self.values[to as usize]) };
        }
        Ok(())
    }

    /// Puts a run's inputs into their slots.
    ///
    /// # Safety
    /// The caller owns the state, which is closed; the inputs stay as they are until the run is over.
    pub(in crate::graph) unsafe fn take_shapes<T: Deref<Target = View>>(
        &self,
        input: impl Fn(usize) -> Result<T>,
    ) -> Result<()> {
        let inputs = self.plan().dynamics.inputs.iter();
        for &(index, slot) in inputs.filter(|(index, _)| self.plan().needs_input(*index as usize)) {
            let port = &self.plan().inputs[index as usize];
            let view = input(index as usize)?;
            if !port.desc.matches(view.desc()) {
                return Err(mismatch("input", index as usize, port, view.desc()));
            }
            // SAFETY: as demanded of the caller.
            unsafe { self.values[slot as usize].point(&view) };
        }
        Ok(())
    }

    /// The shape of an output whose port is open, after a run that has succeeded; `None` if it is absent.
    fn made(&self, output: u32, slot: u32) -> Option<&ValueSlot> {
        (!self.is_absent(self.plan().output_bits[output as usize])).then(|| &self.values[slot as usize])
    }

    /// Hands a run's outputs to their tensors, after a run that has succeeded: all, or none if one has no room.
    ///
    /// # Safety
    /// The caller owns the state, which is closed, and nobody else uses the tensors.
    pub(in crate::graph) unsafe fn publish<T: Deref<Target = Ref<Tensor>>>(
        &self,
        output: impl Fn(usize) -> Result<T>,
    ) -> Result<()> {
        let outputs = || {
            let all = self.plan().dynamics.outputs.iter();
            all.filter_map(|&(output, slot)| Some((output as usize, self.made(output, slot)?)))
        };
        for (index, slot) in outputs() {
            let name = &self.plan().outputs[index].name;
            let named = |error: Error| error.within(format_args!("output {index} '{name}'"));
            output(index)?.check_room(slot.view().desc()).map_err(named)?;
        }
        for (index, slot) in outputs() {
            // SAFETY: as demanded of the caller.
            unsafe { output(index)?.receive(slot) }?;
        }
        Ok(())
    }

    /// The same for a nested program; they are the outputs of its kernel.
    ///
    /// # Safety
    /// As of `publish`.
    pub(in crate::graph) unsafe fn publish_to(
        &self,
        context: &KernelContext<'_>,
        outputs: &mut Outputs<'_>,
    ) -> Result<()> {
        for &(output, slot) in &self.plan().dynamics.outputs {
            let (slot, output) = (&self.values[slot as usize], output as usize);
            outputs.allocate(context, output, slot.view().desc().shape())?;
            // SAFETY: the run has made it, and is over.
            unsafe { slot.copy_to(outputs.get(output)) }?;
        }
        Ok(())
    }
}

fn mismatch(what: &str, index: usize, port: &Port, got: &Desc) -> Error {
    let Port { name, desc, .. } = port;
    Error::invalid(format!("{what} {index} '{name}': expected {}, got {}", desc.text(), got.text()))
}

/// Checks a tensor for an input or output, if one of the two shapes is open. The shape of a dynamic tensor is looked at
/// when the run begins.
#[cold]
pub(in crate::graph) fn check_port(what: &str, index: usize, port: &Port, tensor: &Tensor) -> Result<()> {
    let Some(open) = tensor.open() else {
        return match port.desc.matches(tensor.desc()) {
            true => Ok(()),
            false => Err(mismatch(what, index, port, tensor.desc())),
        };
    };
    if port.desc.is_concrete() {
        let (name, desc) = (&port.name, port.desc.text());
        return Err(Error::invalid(format!(
            "{what} {index} '{name}': expected {desc} in a tensor of a fixed shape, got a dynamic tensor"
        )));
    }
    match port.desc.join(open.pattern()) {
        Some(_) => Ok(()),
        None => Err(mismatch(what, index, port, open.pattern())),
    }
}
