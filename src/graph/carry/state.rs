//! The memory of one run at a time, kept for the next run.

use super::calls::Calls;
use super::compiled::Compiled;
use super::counters::Counters;
use super::figures::{Tally, is_measured};
use super::helpers::Helpers;
use super::learned::Learned;
use super::merged::Merged;
use super::orders::{ABSENT, DEADLINE, FIGURES, INDEPENDENT, Orders, PROGRESS, SERIAL};
use super::progress::RunProgress;
use super::queue::WorkQueue;
use super::ready_set::ReadySet;
use super::traced::TracedRun;
use crate::base::{Code, Desc, Error, Ref, Result, dtype};
use crate::graph::loops::ring::Ring;
use crate::graph::plan::{Place, Plan};
use crate::kernel::{Frame, RunContext, Scratch, Stop};
use crate::memory::{MemoryBlock, Tag, ValueSlot, View, heap};
use crate::stream::Queue;
use crate::sync::ambient::Lineage;
use crate::sync::progress;
use crate::sync::{EventCount, Mailbox, Mutex, OnceLock, RunLatch, Slots};
use crate::threadpool::{HelpRequest, Job, MAX_SLOTS, ThreadPool};
use crate::trace::{NONE, TraceEvent};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Weak};

/// A shared run that is timed: when it began, on the library's clock, and the family of its pool; 0 = none.
#[derive(Default)]
pub(in crate::graph) struct Began {
    at_ns: AtomicU64,
    family: AtomicU64,
}

impl Began {
    pub fn set(&self, family: u64, at_ns: u64) {
        // ORDERING: Relaxed here and below; by the owner of the state alone, which hands it on with an order of its
        // own.
        self.family.store(family, Relaxed);
        self.at_ns.store(at_ns, Relaxed);
    }

    pub fn take(&self) -> Option<(u64, u64)> {
        let at_ns = self.at_ns.load(Relaxed);
        if at_ns == 0 {
            return None;
        }
        self.at_ns.store(0, Relaxed);
        Some((self.family.load(Relaxed), at_ns))
    }
}

/// Programs with more nodes are not sorted: their dear nodes are shown in the order of the array.
pub(in crate::graph) const MOST_SORTED: usize = 1 << 12;
/// A pool's job for a state: it may come long after the run, and keeps no program alive.
#[derive(Default)]
pub(in crate::graph) struct Invitation(OnceLock<Weak<RunState>>);

impl Invitation {
    pub fn sign(&self, state: &Arc<RunState>) {
        let _ = self.0.set(Arc::downgrade(state));
    }

    pub fn state(&self) -> Option<Arc<RunState>> {
        self.0.get().and_then(Weak::upgrade)
    }
}

impl Job for Invitation {
    fn run(self: Arc<Self>, generation: u64, _index: usize, pool: &Ref<ThreadPool>) {
        if let Some(state) = self.state() {
            state.help(generation, pool);
        }
    }
}

/// Continues when a run is closed and its stream is resumed.
pub(in crate::graph) trait CloseListener: Send + Sync {
    /// Called by the last worker out.
    fn closed(&self);
}

/// How a run failed.
#[derive(Default)]
pub(in crate::graph) struct Failure {
    pub error: Option<Error>,
    pub node: Option<u32>,
    /// The innermost loop around the node, by index, and its iterations that were over.
    pub iteration: Option<(u32, u64)>,
    /// Nodes that were not begun because of it. For a cond or a loop that was not begun, only the node itself.
    pub left_out: Vec<u32>,
}

/// Everything that a run changes. Access:
///
/// - `args`' addresses: set by the binding thread before the run is opened, read by workers inside.
/// - `counters`, `links`, `queues`, `latch`: the workers, as their modules say.
/// - `binding`, `tensors`, `pool`, `handle`, `waiter`: set by the binding or starting thread, taken by the one that
///   completes the run.
pub struct RunState {
    /// For `ambient`: a helper that an inline pool runs on top of a worker of the same run leaves at once. The upper
    /// half is the number of a program that has a bound (`admission`), else 0.
    pub(in crate::graph) id: u64,
    pub(in crate::graph) compiled: Arc<Compiled>,
    pub(in crate::graph) invitation: Arc<Invitation>,
    /// Its index among the program's states; `None` if there was none left.
    pub(in crate::graph) home: Option<usize>,
    pub(in crate::graph) args: Box<[View]>,
    /// When a shared run began. As `runs`.
    pub(in crate::graph) began: Began,
    /// The run's inputs, then its outputs.
    given: Box<[AtomicPtr<u8>]>,
    /// Whether they are values of a run around this one. As `given`.
    is_inside: AtomicBool,
    /// The tensor of each output that the plan holds; null: this run writes it where it is (`held`). As `given`.
    pub(super) held: Box<[AtomicPtr<u8>]>,
    /// A communication that the transport has not given back keeps it (`RunPool::give_state`).
    pub(in crate::graph) arena: Arc<MemoryBlock>,
    /// Its device memory and streams.
    pub(in crate::graph) frame: Option<Arc<Frame>>,
    scratch: Box<[(MemoryBlock, usize)]>,
    /// Scratch memory of each node with open shapes, as large as its calls turned out to need it.
    pub(in crate::graph) open_scratch: Box<[ValueSlot]>,
    slots: usize,

    pub(in crate::graph) counters: Counters,
    pub(in crate::graph) merges: Box<[Merged]>,
    /// The next node on the list that this one is on.
    pub(in crate::graph) links: Box<[AtomicU32]>,
    pub(in crate::graph) queues: Box<[WorkQueue]>,
    /// The ready nodes that all workers see (`shown`): which are ready now; which nodes they may be; each node's index
    /// among those, and the node of each index; how often ranks had been computed then.
    pub(in crate::graph) ready: ReadySet,
    pub(in crate::graph) shown: AtomicU32,
    pub(in crate::graph) dear: AtomicU32,
    pub(in crate::graph) places: Box<[AtomicU32]>,
    pub(in crate::graph) sorted: Box<[AtomicU32]>,
    pub(in crate::graph) ranked: AtomicU32,
    /// Which queues have an owner.
    pub(in crate::graph) owners: Slots,
    pub(in crate::graph) latch: RunLatch,
    /// The runs around the owner. As `runs`.
    pub(in crate::graph) lineage: Lineage,
    pub(in crate::graph) helpers: Helpers,
    /// The run's place in the line for a thread of the pool, and whether there is one.
    pub(in crate::graph) want: Mutex<Option<HelpRequest>>,
    pub(in crate::graph) has_want: AtomicBool,
    /// How much must be waiting for another helper to be asked for, in nanoseconds; grows when helpers find too little.
    pub(in crate::graph) ask_above_ns: AtomicU64,
    /// Advanced when another thread than the caller closed the run.
    pub(in crate::graph) closed: EventCount,

    /// Nodes that complete later.
    pub(in crate::graph) calls: Calls,

    /// Values whose shape a run decides.
    pub(in crate::graph) values: Box<[ValueSlot]>,

    /// The values that are absent in this run, by bit.
    pub(in crate::graph) absent: Box<[AtomicBool]>,
    /// Iterations of each loop that are over; and behind them, for each slot, how many came before the one that has it.
    pub(in crate::graph) iterations: Box<[AtomicU64]>,
    /// When each node became ready, on the library's clock. Empty without statistics.
    pub(in crate::graph) ready_at: Box<[AtomicU64]>,

    /// The slots of each loop whose iterations overlap.
    pub(in crate::graph) rings: Box<[Ring]>,

    /// Once it is set, no node begins.
    pub(in crate::graph) stop: Stop,
    pub(in crate::graph) failure: Mutex<Failure>,
    /// Whether this run measures its nodes, and its times replace the known costs. As `helpers`.
    pub(in crate::graph) measuring: AtomicBool,
    pub(in crate::graph) believes: AtomicBool,
    /// When the last run of this state began, in ticks. As `helpers`.
    pub(in crate::graph) last: AtomicU64,
    /// The special orders of this run, as bits of `orders`; usually 0.
    pub(in crate::graph) care: AtomicU32,
    pub(in crate::graph) orders: Mutex<Orders>,
    /// Written by the thread that collects a run's result.
    pub(in crate::graph) tally: Arc<Tally>,
    /// The nodes that depend on a failure, in a run that finishes the rest. Empty until there is one.
    pub(in crate::graph) poisoned: Mutex<Vec<bool>>,

    /// The pool of a run that is shared with threads that wait for its stream.
    pub(in crate::graph) visitors: Mutex<Option<Ref<ThreadPool>>>,
    /// Its part in traces.
    pub(in crate::graph) traced: TracedRun,
    /// How far it is, for a host that asks.
    pub(in crate::graph) progress: RunProgress,
    /// Continues when another thread than the queued run's closed the run.
    pub(in crate::graph) waiter: Mailbox<(Arc<dyn CloseListener>, Arc<Queue>)>,
}

impl RunState {
    /// Memory for runs of up to `workers` workers, with this index among the program's states.
    pub fn create(compiled: &Arc<Compiled>, workers: usize, home: Option<usize>) -> Result<Arc<RunState>> {
        heap::whole(|| RunState::try_to_create(compiled, workers, home))
    }

    fn try_to_create(compiled: &Arc<Compiled>, workers: usize, home: Option<usize>) -> Result<Arc<RunState>> {
        let plan = &compiled.plan;
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = compiled.admission.as_ref().map_or(0, |admission| u64::from(admission.number));
        let name = &plan.name;
        let memory = plan.engines[0].memory();
        let arena =
            memory.allocate(plan.arena_bytes, Tag::text(format!("values of program '{name}'"))).map(Arc::new)?;
        let mut args = Vec::new();
        args.try_reserve_exact(plan.args.len())
            .map_err(|_| Error::exhausted("a run's arguments", plan.args.len() * size_of::<View>()))?;
        for arg in &plan.args {
            let data = match arg.place {
                Place::Arena(offset) => arena.at(offset),
                Place::Constant(index) => plan.constants[index].data(),
                Place::Input(_) | Place::Output(_) | Place::Slot(_) => std::ptr::null_mut(),
            };
            let (desc, bytes) = plan.descs[arg.desc as usize];
            // SAFETY: at offsets of the arena and in constants, which the state keeps. A view without an address gets
            // one before it is read.
            args.push(unsafe { View::new(data, bytes, desc) });
        }
        let slots = workers.clamp(1, MAX_SLOTS);
        let mut scratch = heap::room(plan.scratch.len(), "a run's scratch")?;
        for &bytes in &plan.scratch {
            let total = Scratch::stride(bytes)
                .checked_mul(slots)
                .ok_or_else(|| Error::out_of_range(format!("scratch of {bytes} bytes x {slots} slots")))?;
            scratch.push((memory.allocate(total, Tag::text(format!("scratch of program '{name}'")))?, bytes));
        }
        let scratch = scratch.into_boxed_slice();
        let frame = compiled.frames.as_ref().map(|frames| frames.make()).transpose()?;
        let calls = Calls::create(plan, &args, &|index| scratch_of(&scratch, slots, index), frame.as_ref())?;
        let rings = plan.overlaps.iter().map(|overlap| Ring::create(overlap.count() - 1)).collect::<Result<_>>()?;
        let n = plan.len();
        let sorted = if n <= MOST_SORTED { n } else { 0 };
        let counters = Counters::new(&plan.counters)?;
        let mut words = plan.merges.iter();
        let merges = heap::filled(plan.merges.len(), "a run's merges", || Merged::new(words.next()))?;
        let state = Arc::new(RunState {
            invitation: Arc::default(),
            id: number << 32 | NEXT.fetch_add(1, Relaxed) & u64::from(u32::MAX),
            compiled: Arc::clone(compiled),
            home,
            args: args.into_boxed_slice(),
            given: heap::filled(plan.inputs.len() + plan.outputs.len(), "a run's tensors", || {
                AtomicPtr::new(std::ptr::null_mut())
            })?,
            began: Began::default(),
            is_inside: AtomicBool::new(false),
            held: heap::filled(plan.held.len(), "a run's tensors", || AtomicPtr::new(std::ptr::null_mut()))?,
            arena,
            frame: frame.clone(),
            scratch,
            open_scratch: heap::filled(plan.dynamics.nodes.len(), "a run's scratch", || {
                ValueSlot::new(Desc::new(dtype::U8, &[0]))
            })?,
            slots,
            counters,
            merges,
            links: heap::filled(n, "a run's lists", || AtomicU32::new(0))?,
            ready: ReadySet::create(n)?,
            shown: AtomicU32::new(0),
            dear: AtomicU32::new(0),
            places: heap::filled(sorted, "a run's order", || AtomicU32::new(0))?,
            sorted: heap::filled(sorted, "a run's order", || AtomicU32::new(0))?,
            ranked: AtomicU32::new(0),
            queues: heap::filled(slots, "a run's queues", WorkQueue::new)?,
            owners: Slots::new(slots),
            latch: RunLatch::new(),
            lineage: Lineage::default(),
            helpers: Helpers::default(),
            want: Mutex::default(),
            has_want: AtomicBool::new(false),
            ask_above_ns: AtomicU64::new(0),
            closed: EventCount::new(),
            calls,
            values: {
                let mut descs = plan.dynamics.slots.iter();
                let known = || ValueSlot::new(descs.next().copied().unwrap_or(Desc::new(0, &[])));
                heap::filled(plan.dynamics.slots.len(), "a run's values", known)?
            },
            absent: heap::filled(plan.absence.bits as usize, "a run's bits", || AtomicBool::new(false))?,
            iterations: heap::filled(plan.loops.len() + plan.slots.len(), "a run's loops", || AtomicU64::new(0))?,
            ready_at: heap::filled(if compiled.figures.is_some() { n } else { 0 }, "a run's figures", || {
                AtomicU64::new(0)
            })?,
            rings,
            stop: Stop::default(),
            failure: Mutex::new(Failure::default()),
            measuring: AtomicBool::new(false),
            believes: AtomicBool::new(false),
            last: AtomicU64::new(0),
            care: AtomicU32::new(0),
            orders: Mutex::default(),
            tally: compiled.tallies.open(),
            poisoned: Mutex::default(),
            visitors: Mutex::default(),
            traced: TracedRun::default(),
            progress: RunProgress::default(),
            waiter: Mailbox::default(),
        });
        state.invitation.sign(&state);
        Ok(state)
    }

    #[inline]
    pub(in crate::graph) fn plan(&self) -> &Plan {
        &self.compiled.plan
    }

    #[inline]
    pub(in crate::graph) fn learned(&self) -> &Learned {
        &self.compiled.learned
    }

    /// The most workers in a run of this state.
    pub fn workers(&self) -> usize {
        self.slots
    }

    /// Points the arguments at a run's inputs and outputs. `around`: it is one inside of a node of the run with this
    /// number, or of none (0), over its values. Its orders were taken before (`obey`).
    ///
    /// # Safety
    /// The caller owns the state, which is closed. The tensors have the sizes of the ports, and are the run's until it
    /// is over.
    pub(in crate::graph) unsafe fn bind(
        &self,
        around: Option<usize>,
        input: impl Fn(usize) -> *mut u8,
        output: impl Fn(usize) -> *mut u8,
    ) {
        let num_inputs = self.plan().inputs.len();
        self.is_inside.store(around.is_some(), Relaxed);
        let run = around.filter(|&run| run != 0).unwrap_or_else(|| self.own_run());
        self.stop.set_run(run);
        self.calls.set_run(run);
        for (i, given) in self.given.iter().enumerate() {
            // ORDERING: Relaxed; published with the run.
            given.store(if i < num_inputs { input(i) } else { output(i - num_inputs) }, Relaxed);
        }
        if !self.plan().held.is_empty() {
            self.hold_outputs(&self.given[num_inputs..], around.is_none());
        }
        self.point(&(0..self.plan().always_bound));
    }

    /// Points some of the bound arguments at the given tensors. By the owner, or by the thread that takes a branch.
    #[inline]
    pub(in crate::graph) fn point(&self, bound: &Range<u32>) {
        for &arg in &self.plan().bound[bound.start as usize..bound.end as usize] {
            let given = match self.plan().args[arg as usize].place {
                Place::Input(i) => i,
                Place::Output(o) => self.plan().inputs.len() + o,
                Place::Arena(_) | Place::Constant(_) | Place::Slot(_) => continue,
            };
            // SAFETY: the memory of a port of this size, which is the run's (`bind`).
            unsafe { self.args[arg as usize].set_data(self.given[given].load(Relaxed)) };
        }
    }

    /// The scratch memory of a node.
    pub(in crate::graph) fn scratch(&self, index: u32) -> Scratch {
        scratch_of(&self.scratch, self.slots, index)
    }

    /// A node is ready, in a run that may have statistics.
    pub(in crate::graph) fn is_ready(&self, node: usize, now_ns: u64) {
        if let Some(ready_at) = self.ready_at.get(node) {
            // ORDERING: Relaxed; read by the thread that runs the node, which got it with an order of its own.
            ready_at.store(now_ns, Relaxed);
        }
    }

    /// The node begins, and may have been ready for a while.
    pub(in crate::graph) fn begun(&self, node: usize, now_ns: u64) {
        if let Some(ready_at) = self.ready_at.get(node) {
            self.waited(node, now_ns.saturating_sub(ready_at.load(Relaxed)));
        }
    }

    /// So long was the node ready before it began.
    pub(in crate::graph) fn waited(&self, node: usize, ns: u64) {
        if let Some(figures) = &self.compiled.figures
            && is_measured(&self.plan().bodies[node])
            && let Some(figures) = figures.of(self.plan().origin(node as u32) as usize)
        {
            figures.add_wait(ns);
        }
    }

    /// Keeps the first failure and stops the rest.
    pub(in crate::graph) fn fail(&self, node: Option<u32>, error: Error) {
        self.keep_failure(node, error);
        if !self.is_independent() {
            self.stop();
        }
    }

    pub(in crate::graph) fn keep_failure(&self, node: Option<u32>, error: Error) {
        let mut failure = self.failure.lock();
        if failure.error.is_none() {
            let iteration = node.and_then(|node| self.loops_around(node).next());
            (failure.error, failure.node, failure.iteration) = (Some(error), node, iteration);
            drop(failure);
            self.note_in_trace(TraceEvent::Failure, node.unwrap_or(NONE));
        }
    }

    /// A node was not begun because the run has stopped.
    #[cold]
    pub(in crate::graph) fn left_out(&self, node: u32) {
        let mut failure = self.failure.lock();
        if failure.left_out.try_reserve(1).is_ok() {
            failure.left_out.push(node);
        }
    }

    /// From here on no node begins, because of the run's failure, if it has one.
    pub(in crate::graph) fn stop(&self) {
        let cause = self.failure.lock().error.clone();
        self.stop_because(cause.as_ref());
    }

    /// The same because of this failure, if there is one. ORDERING: Relaxed; a thread that sees it late begins one node
    /// more.
    pub(in crate::graph) fn stop_because(&self, cause: Option<&Error>) {
        self.stop.set_because(cause);
        self.calls.stop(cause);
        progress::may_end();
    }

    /// The number of a run of this state that is not inside of another one.
    pub(in crate::graph) fn own_run(&self) -> usize {
        std::ptr::from_ref(&self.stop).addr()
    }
}

impl RunState {
    /// Takes the orders of the next run. Only by the owner of a closed state.
    #[inline]
    pub(in crate::graph) fn obey(&self, orders: Option<&Orders>) {
        let figures = if self.compiled.figures.is_some() { FIGURES } else { 0 };
        // ORDERING: Relaxed; published to helpers by `open`.
        self.care.store(orders.map_or(0, |orders| orders.care) | figures, Relaxed);
        let deadline = orders.map_or(0, |orders| orders.deadline_at_ns);
        self.stop.set_deadline(deadline);
        self.calls.set_deadline(deadline);
        if let Some(orders) = orders {
            *self.orders.lock() = *orders;
            orders.progress.as_ref().inspect(|listener| self.begin_progress(listener));
        }
    }

    pub(in crate::graph) fn cares(&self, about: u32) -> bool {
        self.care.load(Relaxed) & about != 0
    }

    /// Whether nodes are checked one by one.
    pub(in crate::graph) fn is_careful(&self) -> bool {
        self.cares(DEADLINE | FIGURES | PROGRESS)
    }

    /// Whether one thread is to run everything.
    pub(in crate::graph) fn is_serial(&self) -> bool {
        self.cares(SERIAL)
    }

    /// Whether a failure stops only the nodes that depend on it.
    pub(in crate::graph) fn is_independent(&self) -> bool {
        self.cares(INDEPENDENT)
    }

    /// Before a node of a careful run: stops the run if its deadline is past.
    pub(in crate::graph) fn look_at_clock(&self, node: u32) {
        if !self.is_stopped() && self.stop.is_late() {
            self.expire(node);
        }
    }

    #[cold]
    fn expire(&self, node: u32) {
        let ns = self.orders.lock().deadline_ns;
        let name = self.plan().name_of(node);
        let text = format!("the run was given {ns} ns, and they were over before node '{name}'");
        self.keep_failure(None, Error::new(Code::DeadlineExceeded, text));
        self.stop();
    }

    /// A kernel was told of the deadline, and may have ended early; all nodes are over.
    #[cold]
    pub(in crate::graph) fn expire_for_a_kernel(&self) {
        let ns = self.orders.lock().deadline_ns;
        let text = format!("the run was given {ns} ns, and a kernel was told that they are over");
        self.keep_failure(None, Error::new(Code::DeadlineExceeded, text));
        self.stop();
    }

    /// A kernel that ended early because of the deadline, or a run inside of it, did not fail: the run did.
    #[cold]
    pub(in crate::graph) fn ended_late(&self, node: u32, error: &Error) -> bool {
        let late = matches!(error.code(), Code::Cancelled | Code::DeadlineExceeded) && self.stop.is_late();
        if late {
            self.expire(node);
        }
        late
    }

    /// After a closed run: reports what was asked for, and clears the orders.
    pub(in crate::graph) fn report(&self, succeeded: bool) {
        if !self.cares(DEADLINE | ABSENT) {
            return;
        }
        let orders = std::mem::take(&mut *self.orders.lock());
        if let Some(flags) = orders.absent.filter(|_| succeeded) {
            for (i, &bit) in self.plan().output_bits.iter().enumerate() {
                flags.set(i, self.is_absent(bit));
            }
        }
    }
}

impl RunContext for RunState {
    fn frame(&self) -> Option<&Arc<Frame>> {
        self.frame.as_ref()
    }

    fn values(&self) -> Option<&Arc<MemoryBlock>> {
        Some(&self.arena)
    }

    fn is_hosts(&self, tensor: &View) -> bool {
        let is_given = || self.given.iter().any(|given| given.load(Relaxed) == tensor.data());
        !self.is_inside.load(Relaxed) && is_given()
    }
}

impl Drop for RunState {
    fn drop(&mut self) {
        self.compiled.tallies.close(&self.tally);
    }
}

fn scratch_of(all: &[(MemoryBlock, usize)], slots: usize, index: u32) -> Scratch {
    match all.get(index as usize) {
        // SAFETY: the state's, and so large; nodes that may run at once have scratch memory of their own.
        Some((buffer, bytes)) => unsafe { Scratch::new(buffer.data(), *bytes, slots) },
        None => Scratch::none(slots),
    }
}
