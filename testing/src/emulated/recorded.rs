//! Recordings on this device: their submission. A launch is one item in its queue; `replay` runs it.
//!
//! *Numbers and counts.* The operations of the recording's own list are numbered in order as they are submitted,
//! whether they will run or not. Operations inside a branch or loop take the device's next number each time they begin,
//! and so does each later reading of a loop's predicate: only the run knows how many there are.
//!
//! *The checker* is given all steps as they are submitted, inner steps once, as though all of them ran: the bytes are
//! the same each time. Inner steps are reported under the number of the enclosing branch or loop of the recording's own
//! list.

use super::check;
use super::checker::{Inside, Ranges};
use super::given::{self, Given};
use super::kernel::text;
use super::list::{InnerLists, Lists, ReplayStep, StepList, StepPlace};
use super::operation::{Act, Address};
use super::replay::{Replay, Stock};
use super::shared::SharedDevice;
use super::state::DeviceState;
use crate::abi::{weir_device_step, weir_device_step_list, weir_device_work};
use crate::base::{Error, Reach, Result};
use crate::sync::Mutex;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// A recording as this device runs it.
pub(super) struct Recorded {
    shared: Arc<SharedDevice>,
    lists: Arc<Lists>,
    /// Those of its own list. Launches in flight keep the version that they were made from.
    steps: Mutex<Arc<Vec<ReplayStep>>>,
    /// Finished launches, for reuse.
    stock: Arc<Stock>,
}

impl Recorded {
    /// # Safety
    /// A list of steps of weir's for this device, with what they point to.
    pub(super) unsafe fn new(shared: &Arc<SharedDevice>, list: &weir_device_step_list) -> Result<Recorded> {
        // SAFETY: as demanded of the caller.
        let (lists, steps) = unsafe { Builder::build(shared, list) }?;
        Ok(Recorded {
            shared: Arc::clone(shared),
            lists: Arc::new(lists),
            steps: Mutex::new(Arc::new(steps)),
            stock: Arc::default(),
        })
    }

    /// Changes a step's addresses from the next launch on.
    pub(super) fn update(&self, step: usize, given: &Given<'_>) -> Result<()> {
        let mut steps = self.steps.lock();
        let steps = Arc::make_mut(&mut steps);
        let count = steps.len();
        let Some(old) = steps.get_mut(step) else {
            return Err(Error::invalid(format!("step is {step}, the recording has {count}")));
        };
        let is_alike = match (&old.act, &given.act) {
            (Act::Launch(..), Act::Launch(..)) => {
                (old.inputs.len(), old.outputs.len()) == (given.inputs.len(), given.outputs.len())
            }
            (Act::Copy { bytes, .. }, Act::Copy { bytes: new, .. })
            | (Act::Fill { bytes, .. }, Act::Fill { bytes: new, .. }) => bytes == new,
            // It stays as it was.
            (Act::Read(_), Act::Read(_)) => return Ok(()),
            (old, new) => std::mem::discriminant(old) == std::mem::discriminant(new),
        };
        if !is_alike {
            return Err(Error::invalid(format!("step {step}, {}, cannot become {}", old.name, given.name)));
        }
        set(old, given);
        Ok(())
    }

    /// A launch on a queue, whose operations the checker knows now.
    pub(super) fn launch(&self, state: &mut DeviceState, queue: usize) -> Box<Replay> {
        let shared = &self.shared;
        let steps = Arc::clone(&self.steps.lock());
        let known = self.stock.lock().pop();
        let mut replay = known.unwrap_or_else(|| Replay::new(&self.lists, &self.stock));
        let first = state.counts.operations + 1;
        replay.begin(Arc::clone(&steps), first, state.counts.copies + 1, shared.settings.replay_ns);
        let [launches, copies, fills] = self.lists.counts;
        state.counts.launches += launches;
        state.counts.copies += copies;
        state.counts.fills += fills;
        state.counts.replays += 1;
        let entering = Entering { shared, lists: &self.lists, queue, first };
        entering.list(state, &self.lists.all[0], &steps, &mut replay);
        replay
    }
}

/// Builds the lists of a recording.
struct Builder<'a> {
    shared: &'a SharedDevice,
    lists: Lists,
    /// How many numbers were given out.
    steps: u32,
}

impl Builder<'_> {
    /// The lists, and the steps of the recording's own one.
    ///
    /// # Safety
    ///
    /// A list of weir's steps for this device, with everything that they point to.
    unsafe fn build(shared: &SharedDevice, list: &weir_device_step_list) -> Result<(Lists, Vec<ReplayStep>)> {
        // SAFETY: as demanded of the caller, here and below.
        let steps = unsafe { edges(given::steps(list)) };
        // SAFETY: as above.
        let numbers = if shared.checks() { unsafe { count(shared, &steps) }? } else { 0 };
        let lists = Lists { all: Vec::new(), counts: [0; 3], copies: Vec::new(), reach: Reach::new(numbers) };
        let mut builder = Builder { shared, lists, steps: 0 };
        // SAFETY: as above.
        unsafe { builder.add(&steps, None, &[], false)? };
        let mut lists = builder.lists;
        let own = std::mem::take(&mut lists.all[0].steps);
        for step in &own {
            lists.copies.push(lists.counts[1] as u32);
            match step.act {
                Act::Launch(..) => lists.counts[0] += 1,
                Act::Copy { .. } => lists.counts[1] += 1,
                Act::Fill { .. } | Act::Nothing => lists.counts[2] += 1,
                Act::Read(_) => {}
            }
        }
        Ok((lists, own))
    }

    /// `behind`: the numbers of the steps that all of the list comes after. `again`: the last step is the enclosing
    /// loop's predicate, read in the body.
    ///
    /// # Safety
    /// Steps of weir's for this device, with what they point to.
    unsafe fn add(
        &mut self,
        steps: &[Edges<'_>],
        owner: Option<StepPlace>,
        behind: &[Range<u32>],
        again: bool,
    ) -> Result<Range<u32>> {
        let last = if again { steps.len() - 1 } else { usize::MAX };
        let index = self.lists.all.len();
        let (list, begin) = (index as u32, self.steps);
        self.lists.all.push(StepList::of(owner));
        let after: Vec<&[usize]> = steps.iter().map(|step| step.after).collect();
        self.lists.all[index].connect(&after);
        for (at, step) in steps.iter().enumerate() {
            let number = self.steps;
            self.steps += 1;
            if self.shared.checks() {
                let numbers = &self.lists.all[index].numbers;
                let before = step.after.iter().map(|&before| numbers[before].clone());
                let before = before.chain(behind.iter().filter(|_| step.after.is_empty()).cloned());
                let mut before: Vec<usize> = before.flatten().map(|number| number as usize).collect();
                self.lists.reach.add(number as usize, &mut before);
            }
            // SAFETY: as demanded of the caller, here and below.
            let given = unsafe { self.shared.given(step.work) };
            // SAFETY: as above.
            let named = |error: Error| error.within(unsafe { name(step.work) });
            let given = given.map_err(named)?;
            self.lists.all[index].steps.push(step_of(self.shared, &given, owner.is_some()).map_err(named)?);
            let (place, own) = (StepPlace { list, step: at as u32 }, number..number + 1);
            let next = self.lists.all.len() as u32;
            let inner = match given.inner {
                _ if at == last => InnerLists::Again,
                given::GivenLists::Branch(branches) => {
                    let mut before = vec![own];
                    let mut lists = Vec::with_capacity(branches.len());
                    for list in branches {
                        lists.push(self.lists.all.len() as u32);
                        // SAFETY: as above.
                        before.push(unsafe { self.add(&edges(given::steps(list)), Some(place), &before, false)? });
                    }
                    InnerLists::Branch(lists.into())
                }
                given::GivenLists::Loop(body, behind) => {
                    // SAFETY: as above.
                    let mut body = unsafe { edges(body) };
                    body.extend(behind.map(|after| Edges { work: step.work, after }));
                    // SAFETY: as above.
                    unsafe { self.add(&body, Some(place), &[own], behind.is_some())? };
                    InnerLists::Loop(next)
                }
                given::GivenLists::None => InnerLists::None,
            };
            self.lists.all[index].inner.push(inner);
            self.lists.all[index].numbers.push(number..self.steps);
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

/// The number of a list's steps, with their inner steps.
///
/// # Safety
/// Steps of weir's for this device, with what they point to.
unsafe fn count(shared: &SharedDevice, steps: &[Edges<'_>]) -> Result<usize> {
    let mut sum = 0;
    for step in steps {
        // SAFETY: as demanded of the caller.
        sum += 1 + unsafe {
            match shared.given(step.work)?.inner {
                given::GivenLists::Branch(lists) => {
                    lists.iter().map(|list| count(shared, &edges(given::steps(list)))).sum::<Result<usize>>()?
                }
                given::GivenLists::Loop(body, behind) => count(shared, &edges(body))? + usize::from(behind.is_some()),
                given::GivenLists::None => 0,
            }
        };
    }
    Ok(sum)
}

/// Changes the step's work. Allocates nothing if the new work is like the old one.
fn set(step: &mut ReplayStep, given: &Given<'_>) {
    step.act = given.act.clone();
    step.name.clear();
    step.name.push_str(&given.name);
    step.inputs.clear();
    step.inputs.extend(given.inputs.iter().cloned());
    step.outputs.clear();
    step.outputs.extend(given.outputs.iter().cloned());
    step.reads.clear();
    step.writes.clear();
    given.used(&mut step.reads, &mut step.writes);
}

/// A step as it is launched each time.
fn step_of(shared: &SharedDevice, given: &Given<'_>, is_inside: bool) -> Result<ReplayStep> {
    if let Act::Copy { to, from, bytes } = &given.act
        && is_inside
    {
        let pins = shared.pins.lock();
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
    let mut step = ReplayStep {
        name: String::new(),
        act: Act::Nothing,
        inputs: Vec::new(),
        outputs: Vec::new(),
        duration_ns: shared.settings.duration_ns(given.bytes()),
        reads: Ranges::new(),
        writes: Ranges::new(),
    };
    set(&mut step, given);
    Ok(step)
}

/// A launch as it is submitted.
struct Entering<'a> {
    shared: &'a SharedDevice,
    lists: &'a Lists,
    queue: usize,
    first: u64,
}

impl Entering<'_> {
    /// Numbers the steps of the recording's own list, and enters those of any list into the checker, if there is one.
    fn list(&self, state: &mut DeviceState, list: &StepList, steps: &[ReplayStep], replay: &mut Replay) {
        for (at, step) in steps.iter().enumerate() {
            if list.owner.is_none() {
                state.counts.operations += 1;
            }
            // Host memory that an inner copy writes counts as not written until the launch is over.
            let _ = self.shared.note(state, state.counts.operations, &step.act);
            if self.shared.checks() {
                let number = list.numbers[at].start;
                let inside = Inside { first: self.first, step: number, reach: &self.lists.reach };
                let used = (&step.reads, &step.writes);
                let refused = match &step.act {
                    Act::Launch(form, scratch) => {
                        let launch = (&*step.name, &**form, (&step.inputs[..], &step.outputs[..], *scratch));
                        check::launch(self.shared, state, self.queue, launch, used, Some(inside))
                    }
                    _ => check::operation(self.shared, state, self.queue, &step.name, used, Some(inside)),
                };
                replay.refuse(number, refused);
            }
            let inner = match &list.inner[at] {
                InnerLists::None | InnerLists::Again => continue,
                InnerLists::Branch(lists) => lists,
                InnerLists::Loop(list) => std::slice::from_ref(list),
            };
            for &inner in inner {
                let inner = &self.lists.all[inner as usize];
                self.list(state, inner, &inner.steps, replay);
            }
        }
    }
}
