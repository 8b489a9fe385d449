//! Recordings on this device: their submission. A launch is one item in its queue; what becomes of it there is said in
//! `replay`.
//!
//! *Numbers and counts.* The operations of the recording's own list are numbered as they are submitted, one after the
//! other, whether they will be done or not. Those inside of a branch or loop take the device's next number each time
//! they begin, and so does a loop's look at its predicate after each time: how many there are only the run knows.
//!
//! *The checker* is given all steps as they are submitted, those inside once, as though all of them ran: the bytes are
//! the same each time. They go by the number of the branch or loop of the recording's own list that they are inside of.

use super::check;
use super::checker::Inside;
use super::given::Given;
use super::list::{Inner, List, Lists, Step};
use super::queue::Act;
use super::replay::{Replay, Stock};
use super::state::State;
use super::work::Shared;
use crate::abi::weir_device_step_list;
use crate::base::{Error, Result};
use crate::sync::Mutex;
use std::sync::Arc;

/// A recording as this device runs it.
pub(super) struct Recorded {
    shared: Arc<Shared>,
    lists: Arc<Lists>,
    /// Those of its own list. Launches under way keep what they were made from.
    steps: Mutex<Arc<Vec<Step>>>,
    /// Launches that are over, for use again.
    stock: Arc<Stock>,
}

impl Recorded {
    /// # Safety
    /// A list of steps of weir's for this device, with what they point to.
    pub(super) unsafe fn new(shared: &Arc<Shared>, list: &weir_device_step_list) -> Result<Recorded> {
        // SAFETY: as demanded of the caller.
        let (lists, steps) = unsafe { Lists::of(shared, list) }?;
        Ok(Recorded {
            shared: Arc::clone(shared),
            lists: Arc::new(lists),
            steps: Mutex::new(Arc::new(steps)),
            stock: Arc::default(),
        })
    }

    /// Has a step use other addresses from the next launch on.
    pub(super) fn update(&self, step: usize, given: &Given<'_>) -> Result<()> {
        let mut steps = self.steps.lock();
        let steps = Arc::make_mut(&mut steps);
        let count = steps.len();
        let Some(old) = steps.get_mut(step) else {
            return Err(Error::invalid(format!("step is {step}, the recording has {count}")));
        };
        let is_alike = match (&old.act, &given.act) {
            (Act::Launch(_), Act::Launch(_)) => {
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
        old.set(given);
        Ok(())
    }

    /// A launch on a queue, whose operations the checker knows now.
    pub(super) fn launch(&self, state: &mut State, queue: usize) -> Box<Replay> {
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

/// A launch as it is submitted.
struct Entering<'a> {
    shared: &'a Shared,
    lists: &'a Lists,
    queue: usize,
    first: u64,
}

impl Entering<'_> {
    /// Numbers the steps of the recording's own list, and enters those of any list into the checker, if there is one.
    fn list(&self, state: &mut State, list: &List, steps: &[Step], replay: &mut Replay) {
        for (at, step) in steps.iter().enumerate() {
            if list.owner.is_none() {
                state.counts.operations += 1;
            }
            // What a copy inside writes of the host's counts as not written until the launch is over.
            let _ = self.shared.note(state, state.counts.operations, &step.act);
            if self.shared.checks() {
                let number = list.numbers[at].start;
                let inside = Inside { first: self.first, step: number, reach: &self.lists.reach };
                let used = (&step.reads, &step.writes);
                let refused = check::operation(self.shared, state, self.queue, &step.name, used, Some(inside));
                replay.refuse(number, refused);
            }
            let inner = match &list.inner[at] {
                Inner::None | Inner::Again => continue,
                Inner::Branch(lists) => lists,
                Inner::Loop(list) => std::slice::from_ref(list),
            };
            for &inner in inner {
                let inner = &self.lists.all[inner as usize];
                self.list(state, inner, &inner.steps, replay);
            }
        }
    }
}
