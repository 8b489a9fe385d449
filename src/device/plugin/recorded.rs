//! Recordings as a plug-in is given them, and the executables that it makes of them.

use super::opened::Opened;
use super::owned::{Owned, arguments, c_text, kernel_of, own};
use super::scratch::{ScratchBlock, ScratchPart, StepScratch};
use super::work::{self, kind};
use crate::abi::weir_device_capability_flags as C;
use crate::abi::weir_device_relation_value as R;
use crate::abi::{
    weir_device_branch, weir_device_loop, weir_device_recording, weir_device_step, weir_device_step_list,
    weir_device_work,
};
use crate::base::{Code, Error, Result};
use crate::device::{
    Executable, Predicate, RecordedBranch, RecordedLoop, RecordedStep, RecordedWork, Recording, Relation,
    no_control_flow,
};
use std::any::Any;
use std::ptr;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct PluginExecutable {
    pub(super) owned: Owned,
    /// The scratch memory of its launches.
    scratch: Option<ScratchBlock>,
    /// For each step of its own list: its kind of work, and its part of the scratch memory.
    steps: Vec<(u32, ScratchPart)>,
}

impl PluginExecutable {
    pub(super) fn new(device: &Arc<Opened>, recording: &Recording<'_>) -> Result<PluginExecutable> {
        if !device.can(C::WEIR_DEVICE_RECORDINGS) {
            return Err(Error::new(Code::Unimplemented, "the plug-in's device has no recordings"));
        }
        recording.check().map_err(|error| error.at_engine(device.label()))?;
        let layout = layout(device, recording.steps)?;
        let what = || format!("scratch of {}", recording.name);
        let scratch = (layout.bytes > 0).then(|| ScratchBlock::new(device, layout.bytes, &what())).transpose()?;
        let mut writer = Writer::new(device, scratch.as_ref());
        let name = c_text(recording.name);
        let given = weir_device_recording {
            struct_size: size_of::<weir_device_recording>(),
            name: name.as_ptr(),
            list: writer.list(recording.steps, &layout, 0)?,
        };
        let mut handle = ptr::null_mut();
        let record = device.functions().record;
        device.call("record", || {
            // SAFETY: the plug-in's function and device; the recording lives during the call, as the writer does.
            record.map(|f| unsafe { f(device.handle(), &raw const given, &raw mut handle) })
        })?;
        let owned = Owned { device: Arc::clone(device), handle: device.made("record", handle)? };
        let kinds = recording.steps.iter().map(|step| kind(&step.work) as u32);
        Ok(PluginExecutable { owned, scratch, steps: kinds.zip(layout.steps).collect() })
    }

    /// The plug-in's executable, if it belongs to this device.
    pub(super) fn of<'a>(executable: &'a Arc<dyn Executable>, device: &Arc<Opened>) -> Result<&'a PluginExecutable> {
        own((&**executable as &dyn Any).downcast_ref::<PluginExecutable>(), |executable| &executable.owned, device)
    }
}

impl Executable for PluginExecutable {
    fn update(&self, step: usize, work: &RecordedWork<'_>) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        let Some((kind_before, part)) = self.steps.get(step) else {
            return Err(Error::invalid(format!("step is {step}, the recording has {}", self.steps.len())));
        };
        if *kind_before != kind(work) as u32 {
            return Err(Error::invalid(format!("step {step} cannot become {}", work.name())));
        }
        // Addresses inside a branch or loop never change.
        if matches!(work, RecordedWork::Branch(_) | RecordedWork::Loop(_)) {
            return Ok(());
        }
        let scratch = self.scratch.as_ref().filter(|_| part.bytes > 0);
        let scratch = scratch.map(|block| (block.address() + part.offset, part.bytes));
        work::with(device, work, scratch, |given| {
            device.call("executable_update", || {
                // SAFETY: the plug-in's function and objects; the work lives during the call.
                device.functions().executable_update.map(|f| unsafe { f(device.handle(), *handle, step, given) })
            })
        })?
    }
}

impl Drop for PluginExecutable {
    fn drop(&mut self) {
        let Owned { device, handle } = &self.owned;
        device.let_go(*handle, |device, executable| {
            if let Some(destroy) = device.functions().executable_destroy {
                // SAFETY: the plug-in's function and executable, which nobody uses any more.
                unsafe { destroy(device.handle(), executable) }
            }
        });
    }
}

/// The scratch memory of a list's launches. Refuses branches and loops if the device has none.
fn layout(device: &Arc<Opened>, steps: &[RecordedStep<'_>]) -> Result<StepScratch> {
    let mut parts = Vec::with_capacity(steps.len());
    for step in steps {
        let lists: &[&[RecordedStep<'_>]] = match &step.work {
            RecordedWork::Launch(launch) => {
                let call = arguments(launch, None);
                // SAFETY: a kernel of the device's, and a call of it.
                let bytes = unsafe { device.scratch_bytes(kernel_of(launch, device)?, &call)? };
                parts.push(ScratchPart { bytes, ..ScratchPart::default() });
                continue;
            }
            RecordedWork::Branch(branch) => branch.branches,
            RecordedWork::Loop(again) => &[again.body],
            RecordedWork::Copy(_) | RecordedWork::Fill(_) => &[],
        };
        if !lists.is_empty() && !device.can(C::WEIR_DEVICE_CONTROL_FLOW) {
            return Err(no_control_flow());
        }
        let inside = lists.iter().map(|steps| layout(device, steps)).collect::<Result<Vec<_>>>()?;
        // Only one list of a branch runs, and the iterations of a loop follow each other.
        let bytes = inside.iter().map(|layout| layout.bytes).max().unwrap_or(0);
        parts.push(ScratchPart { bytes, inside, ..ScratchPart::default() });
    }
    StepScratch::of(steps.iter().map(|step| step.after).zip(parts), device.facts().alignment)
}

/// Keeps everything that C is pointed to until it is dropped.
struct Writer<'a> {
    device: &'a Arc<Opened>,
    /// Where its scratch memory begins.
    scratch: usize,
    kept: Vec<*mut dyn Any>,
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        for &kept in &self.kept {
            // SAFETY: from a box that `keep` has released, once.
            drop(unsafe { Box::from_raw(kept) });
        }
    }
}

impl<'a> Writer<'a> {
    fn new(device: &'a Arc<Opened>, scratch: Option<&ScratchBlock>) -> Writer<'a> {
        Writer { device, scratch: scratch.map_or(0, ScratchBlock::address), kept: Vec::new() }
    }

    /// Keeps a value at a stable address.
    fn keep<T: 'static>(&mut self, value: T) -> *const T {
        let kept = Box::into_raw(Box::new(value));
        self.kept.push(kept);
        kept
    }

    fn keep_all<T: 'static>(&mut self, values: Vec<T>) -> *const T {
        // The elements stay where they are when the list of them moves.
        let first = values.as_ptr();
        self.keep(values);
        first
    }

    fn list(
        &mut self,
        steps: &[RecordedStep<'_>],
        layout: &StepScratch,
        offset: usize,
    ) -> Result<weir_device_step_list> {
        let mut written = Vec::with_capacity(steps.len());
        for (step, part) in steps.iter().zip(&layout.steps) {
            let work = self.work(&step.work, part, offset)?;
            written.push(weir_device_step { work, after: step.after.as_ptr(), num_after: step.after.len() });
        }
        Ok(weir_device_step_list { num_steps: written.len(), steps: self.keep_all(written) })
    }

    /// `offset` is the list's offset in the scratch memory.
    fn work(&mut self, work: &RecordedWork<'_>, part: &ScratchPart, offset: usize) -> Result<*const weir_device_work> {
        let offset = offset + part.offset;
        let name = self.keep(c_text(work.name()));
        // SAFETY: just kept.
        let mut written = work::blank(work, unsafe { (*name).as_ptr() });
        match work {
            RecordedWork::Launch(launch) => {
                written.kernel = kernel_of(launch, self.device)?;
                let scratch = (part.bytes > 0).then_some((self.scratch + offset, part.bytes));
                written.launch = self.keep(arguments(launch, scratch));
            }
            RecordedWork::Copy(transfer) => written.copy = self.keep(work::copy(self.device, transfer)?),
            RecordedWork::Fill(fill) => written.fill = self.keep(work::fill(fill)),
            RecordedWork::Branch(branch) => written.branch = self.branch(branch, part, offset)?,
            RecordedWork::Loop(again) => written.again = self.again(again, part, offset)?,
        }
        Ok(self.keep(written))
    }

    fn branch(
        &mut self,
        branch: &RecordedBranch<'_>,
        part: &ScratchPart,
        offset: usize,
    ) -> Result<*const weir_device_branch> {
        let mut lists = Vec::with_capacity(branch.branches.len());
        for (steps, layout) in branch.branches.iter().zip(&part.inside) {
            lists.push(self.list(steps, layout, offset)?);
        }
        let written = weir_device_branch {
            struct_size: size_of::<weir_device_branch>(),
            choice: branch.choice.address as u64,
            dtype: branch.choice.dtype,
            is_cond: i32::from(branch.is_cond),
            num_branches: lists.len(),
            branches: self.keep_all(lists),
        };
        Ok(self.keep(written))
    }

    fn again(
        &mut self,
        again: &RecordedLoop<'_>,
        part: &ScratchPart,
        offset: usize,
    ) -> Result<*const weir_device_loop> {
        let (relation, dtype, addresses) = match &again.predicate {
            Predicate::Integer(integer) => (R::WEIR_DEVICE_NOT_ZERO, integer.dtype, [integer.address, 0]),
            Predicate::Comparison(comparison) => {
                let relation = match comparison.relation {
                    Relation::Eq => R::WEIR_DEVICE_EQ,
                    Relation::Ne => R::WEIR_DEVICE_NE,
                    Relation::Lt => R::WEIR_DEVICE_LT,
                    Relation::Le => R::WEIR_DEVICE_LE,
                    Relation::Gt => R::WEIR_DEVICE_GT,
                    Relation::Ge => R::WEIR_DEVICE_GE,
                };
                (relation, comparison.dtype, comparison.addresses)
            }
        };
        let body = match &part.inside[..] {
            [layout] => self.list(again.body, layout, offset)?,
            _ => return Err(Error::internal("a loop with another number of bodies than one")),
        };
        let written = weir_device_loop {
            struct_size: size_of::<weir_device_loop>(),
            relation: relation as u32,
            dtype,
            addresses: addresses.map(|address| address as u64),
            body: self.keep(body),
            behind: again.behind.map_or(ptr::null(), <[usize]>::as_ptr),
            num_behind: again.behind.map_or(0, <[usize]>::len),
        };
        Ok(self.keep(written))
    }
}
