//! The lists of steps of a recording, as this device keeps them: its own, and those inside of its branches and loops.
//! They are numbered by their places, 0 is the recording's own; a step that has lists of its own knows their numbers,
//! and each of those whose it is.
//!
//! *For the checker* all steps of all lists have a number besides, each step's before those inside of it, and one table
//! says which comes after which. That is enough, whatever runs: what is inside of a loop is behind all of the time
//! before, so only an order within one time can be missing; of a branch one list runs, so each counts as behind the one
//! before it. What may run counts as if it did.
#![forbid(unsafe_code)]

use super::checker::Ranges;
use super::queue::{Act, Address};
use super::stream;
use super::work::Shared;
use crate::base::{Error, Reach, Result};
use crate::device::{self, Fill, Predicate, Recording, Transfer, Work};
use crate::memory::View;
use std::ops::Range;
use std::sync::Arc;

/// An operation as it is launched each time. A branch or a loop is one that reads an integer.
#[derive(Clone)]
pub(super) struct Step {
    pub name: String,
    pub act: Act,
    pub inputs: Vec<View>,
    pub outputs: Vec<View>,
    pub duration_ns: u64,
    pub reads: Ranges,
    pub writes: Ranges,
}

/// Lists of a step's own, by their numbers.
#[derive(Debug)]
pub(super) enum Inner {
    None,
    /// One of these.
    Branch(Box<[u32]>),
    Loop(u32),
    /// It reads the predicate of the loop whose body it is in, for the next time.
    Again,
}

/// A step of one of the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub list: u32,
    pub step: u32,
}

/// Steps with the edges between them.
#[derive(Default)]
pub(super) struct List {
    /// What does it; None: it is the recording's own.
    pub owner: Option<Place>,
    /// How many steps each one waits for.
    pub after: Vec<u32>,
    pub inner: Vec<Inner>,
    /// The number of each among all steps, and where those inside of it end.
    pub numbers: Vec<Range<u32>>,
    /// The steps of an inner list: those of the recording's own change.
    pub steps: Vec<Step>,
    /// Where each one's followers begin in `next`.
    first: Vec<u32>,
    next: Vec<u32>,
}

impl List {
    pub(super) fn followers(&self, step: usize) -> &[u32] {
        &self.next[self.first[step] as usize..self.first[step + 1] as usize]
    }

    fn connect(&mut self, steps: &[device::Step<'_>]) {
        let after: Vec<Vec<usize>> = steps.iter().map(|step| sorted(step.after)).collect();
        self.after = after.iter().map(|after| after.len() as u32).collect();
        self.first = vec![0; steps.len() + 1];
        after.iter().flatten().for_each(|&before| self.first[before + 1] += 1);
        (0..steps.len()).for_each(|at| self.first[at + 1] += self.first[at]);
        let mut free = self.first.clone();
        self.next = vec![0; free[steps.len()] as usize];
        for (at, after) in after.iter().enumerate() {
            for &before in after {
                self.next[free[before] as usize] = at as u32;
                free[before] += 1;
            }
        }
    }
}

fn sorted(after: &[usize]) -> Vec<usize> {
    let mut after = after.to_vec();
    after.sort_unstable();
    after.dedup();
    after
}

/// All lists of a recording.
pub(super) struct Lists {
    pub all: Vec<List>,
    /// Launches, copies and fills of the recording's own list, and copies before each of its steps.
    pub counts: [u64; 3],
    pub copies: Vec<u32>,
    /// Between all steps by their numbers, if there is a checker.
    pub reach: Reach,
    steps: u32,
    checks: bool,
}

impl Lists {
    /// The lists of a recording, and the steps of its own one.
    pub(super) fn of(shared: &Shared, recording: &Recording<'_>) -> Result<(Lists, Vec<Step>)> {
        recording.check()?;
        let checks = shared.checks();
        let reach = Reach::new(if checks { count(recording.steps) } else { 0 });
        let mut lists = Lists { all: Vec::new(), counts: [0; 3], copies: Vec::new(), reach, steps: 0, checks };
        lists.add(shared, recording.steps, None, &[], None)?;
        for step in recording.steps {
            lists.copies.push(lists.counts[1] as u32);
            match step.work {
                Work::Launch(_) => lists.counts[0] += 1,
                Work::Copy(_) => lists.counts[1] += 1,
                Work::Fill(_) => lists.counts[2] += 1,
                Work::Branch(_) | Work::Loop(_) => {}
            }
        }
        let own = std::mem::take(&mut lists.all[0].steps);
        Ok((lists, own))
    }

    /// `behind`: the numbers of the steps that all of the list is behind. `again`: a loop's step, as it is read in the
    /// body.
    fn add(
        &mut self,
        shared: &Shared,
        steps: &[device::Step<'_>],
        owner: Option<Place>,
        behind: &[Range<u32>],
        again: Option<device::Step<'_>>,
    ) -> Result<Range<u32>> {
        // The last one's number, if that is it.
        let last = again.map_or(usize::MAX, |_| steps.len());
        let with_again;
        let steps = match again {
            None => steps,
            Some(again) => {
                with_again = steps.iter().copied().chain([again]).collect::<Vec<_>>();
                &with_again
            }
        };
        let index = self.all.len();
        let (list, begin) = (index as u32, self.steps);
        self.all.push(List { owner, ..List::default() });
        self.all[index].connect(steps);
        for (at, step) in steps.iter().enumerate() {
            let number = self.steps;
            self.steps += 1;
            if self.checks {
                let numbers = &self.all[index].numbers;
                let before = step.after.iter().map(|&before| numbers[before].clone());
                let before = before.chain(behind.iter().filter(|_| step.after.is_empty()).cloned());
                let mut before: Vec<usize> = before.flatten().map(|number| number as usize).collect();
                self.reach.add(number as usize, &mut before);
            }
            let made = shared.step(&step.work, owner.is_some());
            self.all[index].steps.push(made.map_err(|error| error.within(step.work.name()))?);
            let (place, own) = (Place { list, step: at as u32 }, number..number + 1);
            let next = self.all.len() as u32;
            let inner = match &step.work {
                _ if at == last => Inner::Again,
                Work::Branch(branch) => {
                    let mut before = vec![own];
                    let mut lists = Vec::with_capacity(branch.branches.len());
                    for steps in branch.branches {
                        lists.push(self.all.len() as u32);
                        before.push(self.add(shared, steps, Some(place), &before, None)?);
                    }
                    Inner::Branch(lists.into())
                }
                Work::Loop(again) => {
                    let read = again.behind.map(|behind| device::Step { work: step.work, after: behind });
                    self.add(shared, again.body, Some(place), &[own], read)?;
                    Inner::Loop(next)
                }
                Work::Launch(_) | Work::Copy(_) | Work::Fill(_) => Inner::None,
            };
            self.all[index].inner.push(inner);
            self.all[index].numbers.push(number..self.steps);
        }
        Ok(begin..self.steps)
    }
}

/// Steps of a list, with those inside of them.
fn count(steps: &[device::Step<'_>]) -> usize {
    let inside = |step: &device::Step<'_>| match &step.work {
        Work::Branch(branch) => branch.branches.iter().map(|steps| count(steps)).sum(),
        Work::Loop(again) => count(again.body) + usize::from(again.behind.is_some()),
        Work::Launch(_) | Work::Copy(_) | Work::Fill(_) => 0,
    };
    steps.iter().map(|step| 1 + inside(step)).sum()
}

impl Step {
    /// What the step does from now on. Takes no memory if it is like what it did.
    pub(super) fn set(&mut self, act: Act, work: &Work<'_>) {
        self.act = act;
        self.name.clear();
        self.name.push_str(work.name());
        self.inputs.clear();
        self.outputs.clear();
        self.reads.clear();
        self.writes.clear();
        let (reads, writes) = (&mut self.reads, &mut self.writes);
        match work {
            Work::Launch(launch) => {
                self.inputs.extend(launch.inputs.iter().cloned());
                self.outputs.extend(launch.outputs.iter().cloned());
                stream::used(launch, reads, writes);
            }
            Work::Copy(transfer) => stream::moved(transfer, reads, writes),
            Work::Fill(fill) => stream::filled(fill, writes),
            Work::Branch(_) | Work::Loop(_) => {
                if let Act::Read(what) = self.act {
                    reads.extend(what.reads().map(|(from, bytes)| stream::range(from, bytes)));
                }
            }
        }
    }
}

impl Shared {
    /// What work does; everything that a submission checks is checked.
    pub(super) fn act(&self, work: &Work<'_>) -> Result<Act> {
        match work {
            Work::Launch(launch) => Ok(Act::Launch(Arc::clone(&self.kernel_of(launch)?.function))),
            Work::Copy(transfer) => self.copy_of(transfer),
            Work::Fill(fill) => self.fill_of(fill),
            Work::Branch(branch) => self.read_of("its choice", branch.choice.into()),
            Work::Loop(again) => self.read_of("its predicate", again.predicate),
        }
    }

    fn read_of(&self, what: &str, predicate: Predicate) -> Result<Act> {
        for (address, bytes) in predicate.reads() {
            self.address(what, &device::Place::Device(address), bytes)?;
        }
        Ok(Act::Read(predicate))
    }

    /// A step as it is launched each time.
    fn step(&self, work: &Work<'_>, is_inside: bool) -> Result<Step> {
        let act = self.act(work)?;
        if let Act::Copy { to, from, bytes } = &act
            && is_inside
        {
            let pins = self.pins.lock();
            let is_fit = |address: &Address| match *address {
                Address::Own(_) => true,
                Address::Host(at) => pins.cover(at.get(), *bytes),
                Address::Peer(..) => false,
            };
            if !is_fit(to) || !is_fit(from) {
                return Err(Error::invalid(
                    "a copy inside of a branch or loop must be between bytes of the device's or of pinned memory",
                ));
            }
        }
        let bytes = match work {
            Work::Launch(_) => None,
            Work::Copy(Transfer { bytes, .. }) | Work::Fill(Fill { bytes, .. }) => Some(*bytes),
            Work::Branch(_) | Work::Loop(_) => Some(0),
        };
        let mut step = Step {
            name: String::new(),
            act: Act::Nothing,
            inputs: Vec::new(),
            outputs: Vec::new(),
            duration_ns: self.settings.duration_ns(bytes),
            reads: Ranges::new(),
            writes: Ranges::new(),
        };
        step.set(act, work);
        Ok(step)
    }
}
