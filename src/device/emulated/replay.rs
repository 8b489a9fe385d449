//! Recordings on this device, and their launches. A launch is one item in its queue. When its turn comes, any of its operations whose
//! edges allow it may be the next: with a seed a drawn one, without one the earliest by the model, in which they run side by side. What
//! is behind it in the queue comes after all of them.
//!
//! The numbers of a launch's operations follow one another in the order of the recording. One that fails ends the launch: none that
//! was not begun by then is done.
#![forbid(unsafe_code)]

use super::check;
use super::checker::{Inside, Ranges};
use super::queue::{Act, Operation, What};
use super::schedule::Scheduler;
use super::stream::{self, Stream};
use super::work::Shared;
use crate::base::{Error, Reach, Result};
use crate::device::{Executable, Fill, Recording, Transfer, Work};
use crate::memory::View;
use crate::sync::Mutex;
use std::sync::{Arc, Weak};

/// One of the operations, as it is launched each time.
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

/// The edges.
struct Edges {
    /// How many steps each one waits for.
    after: Vec<u32>,
    /// Where each one's followers begin in `next`.
    first: Vec<u32>,
    next: Vec<u32>,
    /// Launches, copies, fills.
    counts: [u64; 3],
    /// Copies before each one.
    copies: Vec<u32>,
    /// If there is a checker.
    reach: Reach,
}

impl Edges {
    fn of(recording: &Recording<'_>, checks: bool) -> Result<Edges> {
        let steps = recording.steps;
        let mut edges = Edges {
            after: Vec::with_capacity(steps.len()),
            first: vec![0; steps.len() + 1],
            next: Vec::new(),
            counts: [0; 3],
            copies: Vec::with_capacity(steps.len()),
            reach: Reach::new(if checks { steps.len() } else { 0 }),
        };
        for (at, step) in steps.iter().enumerate() {
            let mut after = step.after.to_vec();
            after.sort_unstable();
            after.dedup();
            if let Some(&before) = after.last().filter(|&&before| before >= at) {
                let (name, step) = (recording.name, step.work.name());
                return Err(Error::invalid(format!("{name}: step {at}, {step}, comes after step {before}")));
            }
            after.iter().for_each(|&before| edges.first[before + 1] += 1);
            edges.after.push(after.len() as u32);
            edges.copies.push(edges.counts[1] as u32);
            edges.counts[match step.work {
                Work::Launch(_) => 0,
                Work::Copy(_) => 1,
                Work::Fill(_) => 2,
            }] += 1;
            if checks {
                edges.reach.add(at, &mut after);
            }
        }
        (0..steps.len()).for_each(|at| edges.first[at + 1] += edges.first[at]);
        let mut free = edges.first.clone();
        edges.next = vec![0; free[steps.len()] as usize];
        for (at, step) in steps.iter().enumerate() {
            let mut after = step.after.to_vec();
            after.sort_unstable();
            after.dedup();
            for before in after {
                edges.next[free[before] as usize] = at as u32;
                free[before] += 1;
            }
        }
        Ok(edges)
    }

    fn followers(&self, step: usize) -> &[u32] {
        &self.next[self.first[step] as usize..self.first[step + 1] as usize]
    }
}

/// A recording as this device runs it.
pub(super) struct Recorded {
    shared: Arc<Shared>,
    edges: Arc<Edges>,
    /// Launches under way keep what they were made from.
    steps: Mutex<Arc<Vec<Step>>>,
    /// Launches that are over, for use again.
    stock: Arc<Stock>,
}

type Stock = Mutex<Vec<Box<Replay>>>;

/// A launch.
pub(super) struct Replay {
    edges: Arc<Edges>,
    /// None while it lies in the stock.
    steps: Option<Arc<Vec<Step>>>,
    stock: Weak<Stock>,
    /// Numbers of the first operation and the first copy.
    first: u64,
    first_copy: u64,
    /// How many each one still waits for.
    left: Vec<u32>,
    /// When what each one waits for is done, on the modelled clock.
    ready_ns: Vec<u64>,
    ready: Vec<u32>,
    begun: Vec<bool>,
    /// Not done yet.
    undone: usize,
    until: u64,
    /// The checker's verdicts.
    refused: Vec<(u32, Error)>,
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "recording of {}", self.shared.label)
    }
}

impl Executable for Recorded {
    fn update(&self, step: usize, work: &Work<'_>) -> Result<()> {
        let mut steps = self.steps.lock();
        let steps = Arc::make_mut(&mut steps);
        let count = steps.len();
        let Some(old) = steps.get_mut(step) else {
            return Err(Error::invalid(format!("step is {step}, the recording has {count}")));
        };
        let act = self.shared.act(work)?;
        let is_alike = match (&old.act, &act) {
            (Act::Launch(_), Act::Launch(_)) => {
                matches!(work, Work::Launch(launch)
                    if (old.inputs.len(), old.outputs.len()) == (launch.inputs.len(), launch.outputs.len()))
            }
            (Act::Copy { bytes, .. }, Act::Copy { bytes: new, .. })
            | (Act::Fill { bytes, .. }, Act::Fill { bytes: new, .. }) => bytes == new,
            (old, new) => std::mem::discriminant(old) == std::mem::discriminant(new),
        };
        if !is_alike {
            return Err(Error::invalid(format!("step {step}, {}, cannot become {}", old.name, work.name())));
        }
        old.set(act, work);
        Ok(())
    }
}

impl Step {
    /// What the step does from now on. Takes no memory if it is like what it did.
    fn set(&mut self, act: Act, work: &Work<'_>) {
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
        }
    }
}

impl Recorded {
    pub(super) fn new(shared: &Arc<Shared>, recording: &Recording<'_>) -> Result<Recorded> {
        let edges = Edges::of(recording, shared.checks())?;
        let steps =
            recording.steps.iter().map(|step| shared.step(&step.work).map_err(|error| error.within(step.work.name())));
        Ok(Recorded {
            edges: Arc::new(edges),
            steps: Mutex::new(Arc::new(steps.collect::<Result<_>>()?)),
            stock: Arc::default(),
            shared: Arc::clone(shared),
        })
    }

    pub(super) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    fn blank(&self) -> Box<Replay> {
        let steps = Arc::clone(&self.steps.lock());
        let known = self.stock.lock().pop();
        let mut replay = known.unwrap_or_else(|| {
            let n = steps.len();
            Box::new(Replay {
                edges: Arc::clone(&self.edges),
                steps: None,
                stock: Arc::downgrade(&self.stock),
                first: 0,
                first_copy: 0,
                left: Vec::with_capacity(n),
                ready_ns: Vec::with_capacity(n),
                ready: Vec::with_capacity(n),
                begun: Vec::with_capacity(n),
                undone: 0,
                until: 0,
                refused: Vec::new(),
            })
        });
        replay.begin(steps);
        replay
    }

    /// Puts a launch into a queue, and its operations into the checker.
    pub(super) fn submit(&self, stream: &Stream) -> Result<()> {
        let shared = &self.shared;
        let mut replay = self.blank();
        let mut state = shared.open()?;
        replay.first = state.counts.operations + 1;
        replay.first_copy = state.counts.copies + 1;
        let [launches, copies, fills] = self.edges.counts;
        state.counts.launches += launches;
        state.counts.copies += copies;
        state.counts.fills += fills;
        state.counts.replays += 1;
        if copies > 0 {
            let steps = replay.steps.clone();
            for (step, number) in steps.iter().flat_map(|steps| steps.iter()).zip(replay.first..) {
                let _ = shared.note(&mut state, number, &step.act);
            }
        }
        if shared.checks() {
            let steps = replay.steps.clone();
            for (at, step) in steps.iter().flat_map(|steps| steps.iter()).enumerate() {
                state.counts.operations += 1;
                let inside = Inside { first: replay.first, step: at, reach: &self.edges.reach };
                let used = (&step.reads, &step.writes);
                let refused = check::operation(shared, &mut state, stream.index, &step.name, used, Some(inside));
                replay.refused.extend(refused.map(|refused| (at as u32, refused)));
            }
        } else {
            state.counts.operations += launches + copies + fills;
        }
        state.push(stream.index, shared.time_ns(), What::Replay(replay));
        drop(state);
        shared.submitted();
        Ok(())
    }
}

impl Replay {
    fn begin(&mut self, steps: Arc<Vec<Step>>) {
        let n = steps.len();
        self.steps = Some(steps);
        self.left.clone_from(&self.edges.after);
        self.ready_ns.clear();
        self.ready_ns.resize(n, 0);
        self.begun.clear();
        self.begun.resize(n, false);
        self.ready.clear();
        self.ready.extend((0..n as u32).filter(|&step| self.edges.after[step as usize] == 0));
        (self.undone, self.until) = (n, 0);
        self.refused.clear();
    }

    /// Whether nothing of it is left, and it may go.
    pub(super) fn is_over(&self) -> bool {
        self.undone == 0
    }

    /// When the last one is done, of those that have run.
    pub(super) fn until(&self) -> u64 {
        self.until
    }

    /// The operation that begins next by the model, and when what it waits for is done.
    pub(super) fn earliest(&self) -> Option<(usize, u64)> {
        let ready = self.ready.iter().enumerate();
        ready.map(|(at, &step)| (at, self.ready_ns[step as usize])).min_by_key(|&(at, time)| (time, self.ready[at]))
    }

    /// The place in `ready` of the one that the seed draws.
    pub(super) fn drawn(&self, scheduler: &mut Scheduler) -> usize {
        scheduler.draw(self.ready.len())
    }

    /// Takes one of those that are ready: gives the step, and when what it waits for is done; and makes an operation of it.
    pub(super) fn take(&mut self, at: usize, operation: &mut Operation) -> (usize, u64) {
        let step = self.ready.swap_remove(at) as usize;
        self.begun[step] = true;
        operation.number = self.first + step as u64;
        operation.copy = 0;
        if let Some(from) = self.steps.as_ref().map(|steps| &steps[step]) {
            if matches!(from.act, Act::Copy { .. }) {
                operation.copy = self.first_copy + u64::from(self.edges.copies[step]);
            }
            operation.name.push_str(&from.name);
            operation.act = from.act.clone();
            operation.inputs.extend(from.inputs.iter().cloned());
            operation.outputs.extend(from.outputs.iter().cloned());
            operation.duration_ns = from.duration_ns;
        }
        let refused = self.refused.iter().position(|(of, _)| *of as usize == step);
        operation.refused = refused.map(|at| self.refused.swap_remove(at).1);
        (step, self.ready_ns[step])
    }

    /// A step has run: those that it was the last one for are ready.
    pub(super) fn done(&mut self, step: usize, until: u64) {
        self.undone -= 1;
        self.until = self.until.max(until);
        for &next in self.edges.followers(step) {
            let next = next as usize;
            self.ready_ns[next] = self.ready_ns[next].max(until);
            self.left[next] -= 1;
            if self.left[next] == 0 {
                self.ready.push(next as u32);
            }
        }
    }

    /// Those of its operations.
    pub(super) fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.begun.len() as u64
    }

    /// The numbers of those that were not begun.
    pub(super) fn passed_over(&self) -> impl Iterator<Item = u64> {
        self.begun.iter().zip(self.first..).filter(|(begun, _)| !**begun).map(|(_, number)| number)
    }

    /// It is over: others may be made of it.
    pub(super) fn keep(mut self: Box<Self>) {
        self.steps = None;
        if let Some(stock) = self.stock.upgrade() {
            stock.lock().push(self);
        }
    }
}

impl Shared {
    /// What work does; everything that a submission checks is checked.
    fn act(&self, work: &Work<'_>) -> Result<Act> {
        match work {
            Work::Launch(launch) => Ok(Act::Launch(Arc::clone(&self.kernel_of(launch)?.function))),
            Work::Copy(transfer) => self.copy_of(transfer),
            Work::Fill(fill) => self.fill_of(fill),
        }
    }

    /// A step as it is launched each time.
    fn step(&self, work: &Work<'_>) -> Result<Step> {
        let act = self.act(work)?;
        let bytes = match work {
            Work::Launch(_) => None,
            Work::Copy(Transfer { bytes, .. }) | Work::Fill(Fill { bytes, .. }) => Some(*bytes),
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
