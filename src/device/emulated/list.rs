//! The lists of steps of a recording, as this device keeps them: its own, and those inside of its branches and loops.
//! They are numbered by their places, 0 is the recording's own; a step that has lists of its own knows their numbers,
//! and each of those whose it is.
//!
//! *For the checker* all steps of all lists have a number besides, each step's before those inside of it, and one table
//! says which comes after which. That is enough, whatever runs: what is inside of a loop is behind all of the time
//! before, so only an order within one time can be missing; of a branch one list runs, so each counts as behind the one
//! before it. What may run counts as if it did.

use super::checker::Ranges;
use super::given::{self, Given};
use super::kernel::text;
use super::queue::{Act, Address};
use super::work::Shared;
use crate::abi::{weir_device_step, weir_device_step_list, weir_device_work};
use crate::base::{Error, Reach, Result};
use crate::memory::View;
use std::borrow::Cow;
use std::ops::Range;

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

    fn connect(&mut self, steps: &[Edges<'_>]) {
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
    ///
    /// # Safety
    /// A list of steps of weir's for this device, with what they point to.
    pub(super) unsafe fn of(shared: &Shared, list: &weir_device_step_list) -> Result<(Lists, Vec<Step>)> {
        let checks = shared.checks();
        // SAFETY: as demanded of the caller, here and below.
        let steps = unsafe { edges(given::steps(list)) };
        let mut lists =
            Lists { all: Vec::new(), counts: [0; 3], copies: Vec::new(), reach: Reach::new(0), steps: 0, checks };
        if checks {
            // SAFETY: as above.
            lists.reach = Reach::new(unsafe { count(shared, &steps) }?);
        }
        // SAFETY: as above.
        unsafe { lists.add(shared, &steps, None, &[], false)? };
        let own = std::mem::take(&mut lists.all[0].steps);
        for step in &own {
            lists.copies.push(lists.counts[1] as u32);
            match step.act {
                Act::Launch(_) => lists.counts[0] += 1,
                Act::Copy { .. } => lists.counts[1] += 1,
                Act::Fill { .. } | Act::Nothing => lists.counts[2] += 1,
                Act::Read(_) => {}
            }
        }
        Ok((lists, own))
    }

    /// `behind`: the numbers of the steps that all of the list is behind. `again`: the last step is a loop's, as it is
    /// read in the body.
    ///
    /// # Safety
    /// Steps of weir's for this device, with what they point to.
    unsafe fn add(
        &mut self,
        shared: &Shared,
        steps: &[Edges<'_>],
        owner: Option<Place>,
        behind: &[Range<u32>],
        again: bool,
    ) -> Result<Range<u32>> {
        let last = if again { steps.len() - 1 } else { usize::MAX };
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
            // SAFETY: as demanded of the caller, here and below.
            let given = unsafe { shared.given(step.work) };
            // SAFETY: as above.
            let named = |error: Error| error.within(unsafe { name(step.work) });
            let given = given.map_err(named)?;
            self.all[index].steps.push(shared.step(&given, owner.is_some()).map_err(named)?);
            let (place, own) = (Place { list, step: at as u32 }, number..number + 1);
            let next = self.all.len() as u32;
            let inner = match given.inner {
                _ if at == last => Inner::Again,
                given::Inner::Branch(branches) => {
                    let mut before = vec![own];
                    let mut lists = Vec::with_capacity(branches.len());
                    for list in branches {
                        lists.push(self.all.len() as u32);
                        // SAFETY: as above.
                        before.push(unsafe {
                            self.add(shared, &edges(given::steps(list)), Some(place), &before, false)?
                        });
                    }
                    Inner::Branch(lists.into())
                }
                given::Inner::Loop(body, behind) => {
                    // SAFETY: as above.
                    let mut body = unsafe { edges(body) };
                    body.extend(behind.map(|after| Edges { work: step.work, after }));
                    // SAFETY: as above.
                    unsafe { self.add(shared, &body, Some(place), &[own], behind.is_some())? };
                    Inner::Loop(next)
                }
                given::Inner::None => Inner::None,
            };
            self.all[index].inner.push(inner);
            self.all[index].numbers.push(number..self.steps);
        }
        Ok(begin..self.steps)
    }
}

/// Work, and the steps of its list that are over when it begins.
struct Edges<'a> {
    work: *const weir_device_work,
    after: &'a [usize],
}

/// # Safety
/// Steps of weir's, with what they point to.
unsafe fn edges<'a>(steps: &'a [weir_device_step]) -> Vec<Edges<'a>> {
    // SAFETY: as demanded of the caller.
    steps.iter().map(|step| Edges { work: step.work, after: unsafe { given::after(step) } }).collect()
}

/// # Safety
/// Work of weir's.
unsafe fn name<'a>(work: *const weir_device_work) -> Cow<'a, str> {
    // SAFETY: as demanded of the caller.
    unsafe { text((*work).name) }
}

/// Steps of a list, with those inside of them.
///
/// # Safety
/// Steps of weir's for this device, with what they point to.
unsafe fn count(shared: &Shared, steps: &[Edges<'_>]) -> Result<usize> {
    let mut sum = 0;
    for step in steps {
        // SAFETY: as demanded of the caller.
        sum += 1 + unsafe {
            match shared.given(step.work)?.inner {
                given::Inner::Branch(lists) => {
                    lists.iter().map(|list| count(shared, &edges(given::steps(list)))).sum::<Result<usize>>()?
                }
                given::Inner::Loop(body, behind) => count(shared, &edges(body))? + usize::from(behind.is_some()),
                given::Inner::None => 0,
            }
        };
    }
    Ok(sum)
}

impl Step {
    /// What the step does from now on. Takes no memory if it is like what it did.
    pub(super) fn set(&mut self, given: &Given<'_>) {
        self.act = given.act.clone();
        self.name.clear();
        self.name.push_str(&given.name);
        self.inputs.clear();
        self.inputs.extend(given.inputs.iter().cloned());
        self.outputs.clear();
        self.outputs.extend(given.outputs.iter().cloned());
        self.reads.clear();
        self.writes.clear();
        given.used(&mut self.reads, &mut self.writes);
    }
}

impl Shared {
    /// A step as it is launched each time.
    fn step(&self, given: &Given<'_>, is_inside: bool) -> Result<Step> {
        if let Act::Copy { to, from, bytes } = &given.act
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
        let mut step = Step {
            name: String::new(),
            act: Act::Nothing,
            inputs: Vec::new(),
            outputs: Vec::new(),
            duration_ns: self.settings.duration_ns(given.bytes()),
            reads: Ranges::new(),
            writes: Ranges::new(),
        };
        step.set(given);
        Ok(step)
    }
}
