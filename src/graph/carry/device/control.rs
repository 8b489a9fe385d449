//! A branch or a loop on its engine, for the runs of a program: where its values are, and what it is to the device.
//!
//! *By the device* it is some steps of a recording: of the segment's that it is in, or of one of its own in a run that
//! issues its pieces one by one. *By the host* it goes on as `driven` says. Addresses inside stay in both cases, so
//! what is a run's own tensor is copied from and to memory of the piece's, before and behind.

use super::device_frame::{DeviceFrame, Source};
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

/// What a compilation knows of it.
pub(in crate::graph) struct Control {
    pub engine: usize,
    /// Among the engine's.
    pub number: usize,
    /// "node 'loop'"
    pub name: String,
    /// Where its memory is in the arena.
    pub memory: usize,
    pub lowered: Arc<Lowered>,
    pub by_device: bool,
    /// Whether the host has the device record what lies between two decisions.
    pub is_recorded: bool,
    /// Where inputs and outputs are to what is inside: in the arena, or at addresses that stay.
    pub inputs: Vec<Source>,
    pub outputs: Vec<Source>,
    /// Inputs and outputs that are a run's own, by number, with their bytes.
    pub copied_in: Vec<(usize, usize)>,
    pub copied_out: Vec<(usize, usize)>,
    pub plan: JumpProgram,
}

impl Control {
    pub fn address(&self, on: &DeviceFrame, at: Where) -> usize {
        let source = match at {
            Where::Inner(value) => Source::Arena(self.memory + self.lowered.offsets[value]),
            Where::Input(input) => self.inputs[input],
            Where::Output(output) => self.outputs[output],
            Where::Fixed(address) => Source::Fixed(address),
        };
        source.lasting(on)
    }

    fn integer(&self, on: &DeviceFrame, selector: &Selector) -> Integer {
        Integer { address: self.address(on, selector.at), dtype: selector.desc.dtype }
    }

    fn predicate(&self, on: &DeviceFrame, test: &Test) -> Predicate {
        match test {
            Test::Integer(selector) => self.integer(on, selector).into(),
            Test::Comparison(relation, both) => Predicate::Comparison(Comparison {
                relation: *relation,
                dtype: both[0].desc.dtype,
                addresses: both.each_ref().map(|number| self.address(on, number.at)),
            }),
        }
    }

    fn views(&self, on: &DeviceFrame, all: &[(Where, Desc)]) -> Result<Vec<View>> {
        let view = |&(at, desc): &(Where, Desc)| -> Result<View> {
            // SAFETY: the device's memory, which the frame keeps; the host only hands the address on.
            Ok(unsafe { View::new(self.address(on, at) as *mut u8, desc.bytes()?, desc) })
        };
        all.iter().map(view).collect()
    }

    /// How many steps of a recording it is.
    pub fn num_steps(&self) -> usize {
        self.copied_in.len() + self.lowered.list.actions.len() + self.copied_out.len()
    }

    /// What each of its steps comes after, the first of which has number `first`: all of them after `before`; those
    /// that read what an earlier step has brought to a place, after that one. A copy of a run's own tensor comes before
    /// what uses it, or after what writes it, and no other. Gives the steps that nothing inside follows.
    pub fn edges(
        &self,
        first: usize,
        (mut before, brought): (Vec<usize>, &[(usize, Source)]),
        all: &mut Vec<Vec<usize>>,
    ) -> Vec<usize> {
        let (list, copied) = (&self.lowered.list, self.copied_in.len());
        let reads = |action: &Action, place: &Source| {
            let is_there = |input: &usize| self.inputs[*input] == *place;
            (0..self.inputs.len()).filter(is_there).any(|input| action.touches(Where::Input(input)))
        };
        let is_read = |(_, place): &&(usize, Source)| list.actions.iter().any(|action| reads(action, place));
        before.extend(brought.iter().filter(|brought| !is_read(brought)).map(|(step, _)| *step));
        let brought: Vec<(usize, Source)> = brought.iter().filter(is_read).copied().collect();
        // Numbers in here: what was brought, and then the steps.
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

    /// All of it as one, for a run that issues its pieces; made if need be. None if the host drives it.
    pub fn whole(&self, on: &DeviceFrame) -> Result<Option<Arc<dyn Executable>>> {
        if !self.by_device {
            return Ok(None);
        }
        let mut whole = on.wholes[self.number].lock();
        if whole.is_none() {
            *whole = self.record(on, &self.lowered.list, &[])?;
        }
        Ok(whole.clone())
    }

    /// Has the device record a list, with copies to the host behind it if some are given. None if it will not, or has
    /// refused a recording before.
    pub fn record(&self, on: &DeviceFrame, list: &List, fetch: &[Transfer<'_>]) -> Result<Option<Arc<dyn Executable>>> {
        let (Some(accelerator), None) = (on.engine.accelerator(), on.counts.refusal.get()) else { return Ok(None) };
        let made = Made::new(self, on, list)?;
        let mut steps = made.steps(self, on, list)?.to_vec();
        let last = list.last();
        steps.extend(fetch.iter().map(|transfer| RecordedStep { work: RecordedWork::Copy(*transfer), after: &last }));
        match accelerator.record(&Recording { name: &self.name, steps: &steps }) {
            Ok(executable) => {
                on.counts.recordings.fetch_add(1, Relaxed);
                Ok(Some(executable))
            }
            Err(error) if error.code() == Code::DeviceLost => Err(error),
            Err(error) => {
                let text = format!("engine {}: {}: {}", on.engine.label(), self.name, error.message());
                on.counts.refusal.get_or_init(|| text);
                Ok(None)
            }
        }
    }

    /// Issues the actions of a list that has no lists inside, one after the other.
    pub fn issue(&self, on: &DeviceFrame, stream: &dyn DeviceStream, list: &List) -> Result<()> {
        for action in &list.actions {
            match &action.what {
                What::Launch { kernel, inputs, outputs } => {
                    let Some(kernel) = kernel.on_device() else { return Err(not_there()) };
                    let (inputs, outputs) = (self.views(on, inputs)?, self.views(on, outputs)?);
                    stream.launch(&Launch { name: &action.name, kernel, inputs: &inputs, outputs: &outputs })?;
                }
                What::Copy { from, to, bytes } => stream.copy(&self.transfer(on, action, *from, *to, *bytes))?,
                What::Branch { .. } | What::Loop { .. } => return Err(not_there()),
            }
        }
        Ok(())
    }

    fn transfer<'a>(&self, on: &DeviceFrame, action: &'a Action, from: Where, to: Where, bytes: usize) -> Transfer<'a> {
        let place = |at| Location::Device(self.address(on, at));
        Transfer { name: &action.name, to: place(to), from: place(from), bytes }
    }
}

fn not_there() -> Error {
    Error::internal("an action that is no device's")
}

/// What the steps of a list name, while they are recorded.
pub(in crate::graph) struct Made<'a> {
    views: Vec<[Vec<View>; 2]>,
    inside: Vec<Vec<Made<'a>>>,
    steps: OnceCell<Vec<RecordedStep<'a>>>,
    lists: Vec<OnceCell<Vec<&'a [RecordedStep<'a>]>>>,
}

impl<'a> Made<'a> {
    pub fn new(control: &Control, on: &DeviceFrame, list: &List) -> Result<Made<'a>> {
        let views = |action: &Action| match &action.what {
            What::Launch { inputs, outputs, .. } => Ok([control.views(on, inputs)?, control.views(on, outputs)?]),
            _ => Ok([Vec::new(), Vec::new()]),
        };
        let inside =
            |action: &Action| action.lists().iter().map(|list| Made::new(control, on, list)).collect::<Result<_>>();
        Ok(Made {
            views: list.actions.iter().map(views).collect::<Result<_>>()?,
            inside: list.actions.iter().map(inside).collect::<Result<_>>()?,
            steps: OnceCell::new(),
            lists: list.actions.iter().map(|_| OnceCell::new()).collect(),
        })
    }

    /// What each action of the list is to a device.
    pub fn works(&'a self, control: &'a Control, on: &DeviceFrame, list: &'a List) -> Result<Vec<RecordedWork<'a>>> {
        let mut works = Vec::with_capacity(list.actions.len());
        for (at, action) in list.actions.iter().enumerate() {
            let name = &action.name;
            works.push(match &action.what {
                What::Launch { kernel, .. } => {
                    let Some(kernel) = kernel.on_device() else { return Err(not_there()) };
                    let [inputs, outputs] = &self.views[at];
                    RecordedWork::Launch(Launch { name, kernel, inputs, outputs })
                }
                What::Copy { from, to, bytes } => RecordedWork::Copy(control.transfer(on, action, *from, *to, *bytes)),
                What::Branch { choice, is_cond, branches } => {
                    let lists = self.inside[at].iter().zip(branches);
                    let lists = lists.map(|(made, list)| made.steps(control, on, list)).collect::<Result<_>>()?;
                    let branches = self.lists[at].get_or_init(|| lists);
                    let choice = control.integer(on, choice);
                    RecordedWork::Branch(RecordedBranch { name, choice, is_cond: *is_cond, branches })
                }
                What::Loop { predicate, body, behind } => {
                    let predicate = control.predicate(on, predicate);
                    let body = self.inside[at][0].steps(control, on, body)?;
                    RecordedWork::Loop(RecordedLoop { name, predicate, body, behind: Some(behind) })
                }
            });
        }
        Ok(works)
    }

    fn steps(&'a self, control: &'a Control, on: &DeviceFrame, list: &'a List) -> Result<&'a [RecordedStep<'a>]> {
        let works = self.works(control, on, list)?;
        let step = |(work, action): (RecordedWork<'a>, &'a Action)| RecordedStep { work, after: &action.after };
        Ok(self.steps.get_or_init(|| works.into_iter().zip(&list.actions).map(step).collect()))
    }
}
