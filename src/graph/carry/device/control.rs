//! A branch or a loop on its engine, for the runs of a program: where its values are, and how the device runs it.
//!
//! *By the device* it is some steps of a recording: of the segment's that it is in, or of its own in a run that issues
//! its pieces one by one. *By the host* it runs as `driven` describes. Addresses inside stay in both cases, so a run's
//! own tensors are copied to the piece's memory before it, and from there behind it.

use super::device_frame::{DeviceFrame, ValuePlace};
use crate::base::{Code, Desc, Error, Reach, Result};
use crate::device::{
    Comparison, DeviceStream, Executable, Integer, Launch, Location, Predicate, RecordedBranch, RecordedLoop,
    RecordedStep, RecordedWork, Recording, Transfer,
};
use crate::graph::plan::actions::Lowered;
use crate::graph::plan::actions::{Action, List, Selector, Test, What, Where};
use crate::graph::plan::jumps::JumpProgram;
use crate::memory::View;
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The compiled form of a branch or a loop.
pub(in crate::graph) struct DeviceControl {
    pub engine: usize,
    /// Its number among the engine's.
    pub number: usize,
    /// "node 'loop'"
    pub name: String,
    /// The offset of its memory in the arena.
    pub memory: usize,
    pub lowered: Arc<Lowered>,
    pub by_device: bool,
    /// Whether the host has the device record the work between two decisions.
    pub is_recorded: bool,
    /// The places of inputs and outputs inside: in the arena, or at addresses that stay.
    pub inputs: Vec<ValuePlace>,
    pub outputs: Vec<ValuePlace>,
    /// Inputs and outputs that are a run's own tensors, by number, with their bytes.
    pub copied_in: Vec<(usize, usize)>,
    pub copied_out: Vec<(usize, usize)>,
    pub plan: JumpProgram,
}

impl DeviceControl {
    pub fn address(&self, device_frame: &DeviceFrame, at: Where) -> usize {
        let source = match at {
            Where::Inner(value) => ValuePlace::Arena(self.memory + self.lowered.offsets[value]),
            Where::Input(input) => self.inputs[input],
            Where::Output(output) => self.outputs[output],
            Where::Fixed(address) => ValuePlace::Fixed(address),
        };
        source.lasting(device_frame)
    }

    fn integer(&self, device_frame: &DeviceFrame, selector: &Selector) -> Integer {
        Integer { address: self.address(device_frame, selector.at), dtype: selector.desc.dtype }
    }

    fn predicate(&self, device_frame: &DeviceFrame, test: &Test) -> Predicate {
        match test {
            Test::Integer(selector) => self.integer(device_frame, selector).into(),
            Test::Comparison(relation, both) => Predicate::Comparison(Comparison {
                relation: *relation,
                dtype: both[0].desc.dtype,
                addresses: both.each_ref().map(|number| self.address(device_frame, number.at)),
            }),
        }
    }

    fn view(&self, device_frame: &DeviceFrame, &(at, desc): &(Where, Desc)) -> Result<View> {
        // SAFETY: the device's memory, which the frame keeps; the host only passes the address on.
        Ok(unsafe { View::new(self.address(device_frame, at) as *mut u8, desc.bytes()?, desc) })
    }

    fn views(&self, device_frame: &DeviceFrame, all: &[(Where, Desc)]) -> Result<Vec<View>> {
        all.iter().map(|value| self.view(device_frame, value)).collect()
    }

    /// The number of its steps in a recording.
    pub fn num_steps(&self) -> usize {
        self.copied_in.len() + self.lowered.list.actions.len() + self.copied_out.len()
    }

    /// The predecessors of each of its steps, the first of which has number `first`: all of them follow `before`; those
    /// that read a value that an earlier step has copied follow that step. A copy of a run's own tensor precedes only
    /// its readers, or follows only its writer. Returns the steps without successors inside.
    pub fn edges(
        &self,
        first: usize,
        (mut before, brought): (Vec<usize>, &[(usize, ValuePlace)]),
        all: &mut Vec<Vec<usize>>,
    ) -> Vec<usize> {
        let (list, copied) = (&self.lowered.list, self.copied_in.len());
        let reads = |action: &Action, place: &ValuePlace| {
            let is_there = |input: &usize| self.inputs[*input] == *place;
            (0..self.inputs.len()).filter(is_there).any(|input| action.touches(Where::Input(input)))
        };
        let is_read = |(_, place): &&(usize, ValuePlace)| list.actions.iter().any(|action| reads(action, place));
        before.extend(brought.iter().filter(|brought| !is_read(brought)).map(|(step, _)| *step));
        let brought: Vec<(usize, ValuePlace)> = brought.iter().filter(is_read).copied().collect();
        // Numbers in here: the copies that came before, and then the steps.
        let (outside, num_steps) = (brought.len(), self.num_steps());
        let (mut reach, mut is_last) = (Reach::new(outside + num_steps), vec![true; outside + num_steps]);
        let actions = list.actions.iter().map(|action| {
            let brought = (0..outside).filter(|&at| reads(action, &brought[at].1));
            let copies = (0..copied).filter(|&copy| action.touches(Where::Input(self.copied_in[copy].0)));
            let inside = copies.chain(action.after.iter().map(|before| copied + before));
            brought.chain(inside.map(|step| outside + step)).collect()
        });
        let copies_out = self.copied_out.iter().map(|&(output, _)| {
            let writers = list.writers([Where::Output(output)].into_iter());
            writers.into_iter().map(|writer| outside + copied + writer).collect()
        });
        let steps = (0..copied).map(|_| Vec::new()).chain(actions).chain(copies_out);
        for (step, mut after) in steps.enumerate() {
            reach.add(outside + step, &mut after);
            after.iter().for_each(|&before| is_last[before] = false);
            let is_first = after.iter().all(|&before| before < outside);
            let after = after.into_iter().map(|at| if at < outside { brought[at].0 } else { first + at - outside });
            all.push(before.iter().copied().filter(|_| is_first).chain(after).collect());
        }
        (0..num_steps).filter(|&step| is_last[outside + step]).map(|step| first + step).collect()
    }

    /// All of it as one recording, for a run that issues its pieces; made if need be. `None` if the host drives it.
    pub fn whole(&self, device_frame: &DeviceFrame) -> Result<Option<Arc<dyn Executable>>> {
        if !self.by_device {
            return Ok(None);
        }
        let mut whole = device_frame.wholes[self.number].lock();
        if whole.is_none() {
            *whole = self.record(device_frame, &self.lowered.list, &[])?;
        }
        Ok(whole.clone())
    }

    /// Has the device record a list, with copies to the host behind it if some are given. `None` if it refuses, or has
    /// refused a recording before.
    pub fn record(
        &self,
        device_frame: &DeviceFrame,
        list: &List,
        fetch: &[Transfer<'_>],
    ) -> Result<Option<Arc<dyn Executable>>> {
        let (Some(accelerator), None) = (device_frame.engine.accelerator(), device_frame.counts.refusal.get()) else {
            return Ok(None);
        };
        let made = RecordedViews::new(self, device_frame, list)?;
        let mut steps = made.steps(self, device_frame, list)?.to_vec();
        let last = list.last();
        steps.extend(fetch.iter().map(|transfer| RecordedStep { work: RecordedWork::Copy(*transfer), after: &last }));
        match accelerator.record(&Recording { name: &self.name, steps: &steps }) {
            Ok(executable) => {
                device_frame.counts.recordings.fetch_add(1, Relaxed);
                Ok(Some(executable))
            }
            Err(error) if error.code() == Code::DeviceLost => Err(error),
            Err(error) => {
                let error = error.within(&self.name).at_engine(&device_frame.engine.label());
                device_frame.counts.refusal.get_or_init(|| error.message().to_owned());
                Ok(None)
            }
        }
    }

    /// Issues the actions of a list without nested lists, one after the other.
    pub fn issue(&self, device_frame: &DeviceFrame, stream: &dyn DeviceStream, list: &List) -> Result<()> {
        for action in &list.actions {
            match &action.what {
                What::Launch { kernel, inputs, outputs } => {
                    let Some(kernel) = kernel.on_device() else { return Err(not_there()) };
                    device_frame.views.with(|views| {
                        let mut all = inputs.iter().chain(outputs);
                        all.try_for_each(|value| self.view(device_frame, value).map(|view| views.push(view)))?;
                        let (inputs, outputs) = views.split_at(inputs.len());
                        stream.launch(&Launch { name: &action.name, kernel, inputs, outputs })
                    })?;
                }
                What::Copy { from, to, bytes } => {
                    stream.copy(&self.transfer(device_frame, action, *from, *to, *bytes))?
                }
                What::Branch { .. } | What::Loop { .. } => return Err(not_there()),
            }
        }
        Ok(())
    }

    fn transfer<'a>(
        &self,
        device_frame: &DeviceFrame,
        action: &'a Action,
        from: Where,
        to: Where,
        bytes: usize,
    ) -> Transfer<'a> {
        let place = |at| Location::Device(self.address(device_frame, at));
        Transfer { name: &action.name, to: place(to), from: place(from), bytes }
    }
}

fn not_there() -> Error {
    Error::internal("an action that is no device's")
}

/// The views and names of a list's steps, while they are recorded.
pub(in crate::graph) struct RecordedViews<'a> {
    views: Vec<[Vec<View>; 2]>,
    inside: Vec<Vec<RecordedViews<'a>>>,
    steps: OnceCell<Vec<RecordedStep<'a>>>,
    lists: Vec<OnceCell<Vec<&'a [RecordedStep<'a>]>>>,
}

impl<'a> RecordedViews<'a> {
    pub fn new(control: &DeviceControl, device_frame: &DeviceFrame, list: &List) -> Result<RecordedViews<'a>> {
        let views = |action: &Action| match &action.what {
            What::Launch { inputs, outputs, .. } => {
                Ok([control.views(device_frame, inputs)?, control.views(device_frame, outputs)?])
            }
            _ => Ok([Vec::new(), Vec::new()]),
        };
        let inside = |action: &Action| {
            action.lists().iter().map(|list| RecordedViews::new(control, device_frame, list)).collect::<Result<_>>()
        };
        Ok(RecordedViews {
            views: list.actions.iter().map(views).collect::<Result<_>>()?,
            inside: list.actions.iter().map(inside).collect::<Result<_>>()?,
            steps: OnceCell::new(),
            lists: list.actions.iter().map(|_| OnceCell::new()).collect(),
        })
    }

    /// The device's work for each action of the list.
    pub fn works(
        &'a self,
        control: &'a DeviceControl,
        device_frame: &DeviceFrame,
        list: &'a List,
    ) -> Result<Vec<RecordedWork<'a>>> {
        let mut works = Vec::with_capacity(list.actions.len());
        for (at, action) in list.actions.iter().enumerate() {
            let name = &action.name;
            works.push(match &action.what {
                What::Launch { kernel, .. } => {
                    let Some(kernel) = kernel.on_device() else { return Err(not_there()) };
                    let [inputs, outputs] = &self.views[at];
                    RecordedWork::Launch(Launch { name, kernel, inputs, outputs })
                }
                What::Copy { from, to, bytes } => {
                    RecordedWork::Copy(control.transfer(device_frame, action, *from, *to, *bytes))
                }
                What::Branch { choice, is_cond, branches } => {
                    let lists = self.inside[at].iter().zip(branches);
                    let lists =
                        lists.map(|(made, list)| made.steps(control, device_frame, list)).collect::<Result<_>>()?;
                    let branches = self.lists[at].get_or_init(|| lists);
                    let choice = control.integer(device_frame, choice);
                    RecordedWork::Branch(RecordedBranch { name, choice, is_cond: *is_cond, branches })
                }
                What::Loop { predicate, body, behind } => {
                    let predicate = control.predicate(device_frame, predicate);
                    let body = self.inside[at][0].steps(control, device_frame, body)?;
                    RecordedWork::Loop(RecordedLoop { name, predicate, body, behind: Some(behind) })
                }
            });
        }
        Ok(works)
    }

    fn steps(
        &'a self,
        control: &'a DeviceControl,
        device_frame: &DeviceFrame,
        list: &'a List,
    ) -> Result<&'a [RecordedStep<'a>]> {
        let works = self.works(control, device_frame, list)?;
        let step = |(work, action): (RecordedWork<'a>, &'a Action)| RecordedStep { work, after: &action.after };
        Ok(self.steps.get_or_init(|| works.into_iter().zip(&list.actions).map(step).collect()))
    }
}
