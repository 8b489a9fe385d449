//! A communicator: operations in one order, one thread that drives the transport, and an end for all ranks when one
//! fails.
//!
//! Any thread submits: it puts the request into the inbox, and drives, if nobody else does (`DrainLock`); the driving
//! thread looks at the inbox again before it leaves. Operations begin in the order in which they were submitted, with
//! one exception: while a collective of several phases is under way, collectives behind it wait, and sends and receives
//! do not. Between submissions the communicator moves when a thread waits (`sync::progress`).
//!
//! Operations in the memory of a device are submitted to its streams by the thread that issues them, which holds the
//! driver meanwhile; so they, too, come one after the other, in the order of the calls. Each has an event behind it,
//! by which the driver knows that it is over. When the communicator fails, those that are not over are given up by the
//! transport's abort: the device goes on with results that are worth nothing, so the run that has them fails, or the
//! stream.
//!
//! A failure is final: an error of the transport, a run that ended with nodes left out, a cancel, a limit, and a run or
//! a stream's call that will not begin, since what was before it in its stream has failed. The rank tells all others
//! (GIVE_UP), ends what is open with that error, and takes no more operations. A rank that hears of it does the same,
//! without telling; what is under way there may end well before, for a moment. Memory of operations that the transport
//! may still use is kept for good. A rank that is late hears of it before it begins anything.
#![forbid(unsafe_code)]

use super::driver::{CommState, TransportDriver};
use super::options::CommOptions;
use super::request::Request;
use super::tickets::RequestTickets;
use super::transport::Transport;
use crate::abi::{weir_comm_flags as Flag, weir_comm_operation};
use crate::base::object::tag;
use crate::base::time::Deadline;
use crate::base::{Code, Error, Kind, Object, Ref, Result, live};
use crate::device::Accelerator;
use crate::kernel::{Completion, IssuedCall, IssuedFor, RunListener, Stop};
use crate::sync::progress::{Progress, Registered};
use crate::sync::thread::{self, ThreadGroup, ThreadOrigin};
use crate::sync::{DrainLock, EventCount, Mutex};
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Weak};

/// A transport may move a piece of a message at each call: it is asked so often before the poller pauses.
const POLLS: u32 = 4;
const LONGEST_EXPECTED_NS: u64 = 20_000_000;
pub struct Communicator {
    state: CommState,
    driver: DrainLock<TransportDriver>,
    /// The number of the run that has it; 0 = none.
    owner: AtomicUsize,
    /// Runs that have failed since another one had it. They have begun nothing, and others need not end for that.
    refused: Mutex<Vec<usize>>,
    /// The only thread that may call the transport; 0 = any.
    thread: u64,
    pub tickets: RequestTickets,
    /// Advanced when it is gone.
    closed: Arc<EventCount>,
}

impl Deref for Communicator {
    type Target = CommState;

    fn deref(&self) -> &CommState {
        &self.state
    }
}

impl Kind for Communicator {
    const TAG: u32 = tag::COMM;
    const NAME: &'static str = "comm";
    const COUNTER: live::Counter = live::Counter::Comms;
}

impl Communicator {
    pub fn create(transport: Arc<dyn Transport>, options: CommOptions) -> Result<Ref<Communicator>> {
        let info = transport.info().clone();
        if options.is_checked && !info.has_control {
            let text = "options->flags says WEIR_COMM_CHECKED, and the transport has no control messages";
            return Err(Error::new(Code::Unimplemented, text));
        }
        let is_of_one_thread = info.has(Flag::WEIR_COMM_ONE_THREAD);
        if options.has_thread && is_of_one_thread {
            let text = "options->flags says WEIR_COMM_OWN_THREAD, and the transport WEIR_COMM_ONE_THREAD";
            return Err(Error::invalid(text));
        }
        let size = info.size;
        let comm = Object::shared(Communicator {
            state: CommState::new(transport, options),
            driver: DrainLock::new(TransportDriver::new(size)),
            owner: AtomicUsize::new(0),
            refused: Mutex::default(),
            thread: if is_of_one_thread { thread::me() } else { 0 },
            tickets: RequestTickets::default(),
            closed: Arc::new(EventCount::new()),
        });
        let weak: Weak<Object<Communicator>> = Arc::downgrade(&comm);
        let _ = comm.registered.set(Registered::new(weak, is_of_one_thread));
        if comm.options().has_thread {
            let (name, owner) = (format!("weir-comm{}", comm.number()), comm.name().to_owned());
            let group = Arc::new(ThreadGroup { origin: ThreadOrigin::Lane, name, owner, pool: 0 });
            let closed = Arc::clone(&comm.closed);
            let started = thread::spawn(&group, None, move || {
                closed.wait(1, 0, Deadline::NEVER);
            });
            started.map_err(|error| {
                Error::new(Code::ResourceExhausted, format!("a thread of communicator '{}': {error}", comm.name()))
            })?;
        }
        Ok(comm)
    }

    /// A run has it from its first operation on until it ends. `run` is 0 for an operation of a stream. The number of
    /// the run among those with collectives, 0 for a stream.
    fn take_for(&self, run: usize, request: &Request) -> Result<u64> {
        // ORDERING: AcqRel; the next owner comes behind what the last one has submitted.
        let owner = match run {
            0 => self.owner.load(Acquire),
            run => self.owner.compare_exchange(0, run, AcqRel, Acquire).unwrap_or_else(|owner| owner),
        };
        if owner == 0 || owner == run {
            if run == 0 {
                return Ok(0);
            }
            // ORDERING: Relaxed, twice; the run's end and the next run come behind the owner's change.
            self.has_collective.fetch_or(!request.wanted.is_message(), Relaxed);
            return Ok(self.runs.load(Relaxed) + 1);
        }
        if run != 0 {
            self.refused.lock().push(run);
        }
        Err(Error::precondition(format!(
            "{} is in use by another run; runs at once need one each (weir_comm_duplicate)",
            self.label()
        )))
    }

    /// Begins a filled request.
    pub fn submit(&self, request: &Arc<Request>, run: usize) -> Result<()> {
        self.check_alive()?;
        if self.info().on_host.ops == 0 {
            let text = format!("{}: the transport takes no memory of the host", self.label());
            return Err(Error::new(Code::Unimplemented, text));
        }
        request.set_run(self.take_for(run, request)?);
        request.open()?;
        self.begun.fetch_add(1, Relaxed);
        self.open_bytes.fetch_add(request.bytes() as u64, Relaxed);
        self.inbox.lock().requests.push_back(Arc::clone(request));
        let is_first = self.open.fetch_add(1, AcqRel) == 0;
        match self.registered.get() {
            Some(registered) if is_first => registered.opened(),
            Some(registered) if self.is_drivers_thread() => registered.begins(),
            Some(registered) => registered.has_news(),
            None => {}
        }
        let _ = self.driver.call();
        self.drive();
        Ok(())
    }

    /// The call `done` waits for a request; false if that is over already.
    pub fn attach(&self, request: &Arc<Request>, done: Completion, stop: Option<&Arc<Stop>>) -> bool {
        let is_open = request.attach(done, stop);
        if let Some(deadline_ns) = request.deadline_ns().filter(|_| is_open) {
            self.is_due(deadline_ns);
        }
        is_open
    }

    /// Submits operations in a device's memory, as one, to a stream of it.
    pub fn enqueue(
        &self,
        request: &Arc<Request>,
        operations: &[weir_comm_operation],
        call: &IssuedCall<'_>,
        accelerator: &dyn Accelerator,
    ) -> Result<()> {
        let run = match call.issued_for {
            IssuedFor::Run(run, _) => run,
            IssuedFor::Stream(_) => 0,
        };
        self.check_alive()?;
        request.set_run(self.take_for(run, request)?);
        let event = request.event(accelerator)?;
        // Not in the inbox: the stream must have it when this returns. The transport's functions do not block, but for
        // the first operations of one that has yet to connect the ranks.
        let mut driver = loop {
            match self.driver.hold() {
                Some(driver) => break driver,
                None => std::thread::yield_now(),
            }
        };
        self.check_alive()?;
        let submitted = accelerator.within(&mut || {
            let submitted = self.transport().enqueue(operations, call.stream);
            submitted.map_err(|failure| self.failed(&request.label, &failure))?;
            call.stream.record(event)
        });
        let submitted = submitted.and_then(|()| request.open_on_device(call.issued_for));
        if let Err(error) = submitted {
            drop(driver);
            self.give_up(error.clone());
            return Err(error);
        }
        self.begun.fetch_add(1, Relaxed);
        let is_first = self.open.fetch_add(1, AcqRel) == 0;
        let mut earlier = std::mem::take(&mut self.inbox.lock().requests);
        driver.waiting.append(&mut earlier);
        driver.waiting.push_back(Arc::clone(request));
        drop(driver);
        match self.registered.get() {
            Some(registered) if is_first => registered.opened(),
            Some(registered) => registered.begins(),
            None => {}
        }
        let _ = self.driver.call();
        self.drive();
        Ok(())
    }

    /// This rank gives up: all ranks' runs end.
    pub fn give_up(&self, error: Error) {
        let is_first = {
            let mut inbox = self.inbox.lock();
            let is_new = inbox.end.is_none();
            if is_new {
                inbox.end = Some(error);
            }
            // Counted under the lock, before the driver can take it.
            is_new && self.open.fetch_add(1, AcqRel) == 0
        };
        match self.registered.get() {
            Some(registered) if is_first => registered.opened(),
            Some(registered) if !self.is_drivers_thread() => registered.has_news(),
            _ => {}
        }
        let _ = self.driver.call();
        self.drive();
    }

    /// Another transport over the same ranks. The caller sees to it that the transport may be called now.
    pub fn duplicate_transport(&self) -> Result<Arc<dyn Transport>> {
        self.check_thread()?;
        self.check_alive()?;
        self.transport().duplicate()
    }

    /// A transport among the ranks of a color; so here.
    pub fn split_transport(&self, color: i32, key: i32) -> Result<Option<Arc<dyn Transport>>> {
        self.check_thread()?;
        self.check_alive()?;
        self.transport().split(color, key)
    }

    /// A transport among the ranks that are left.
    pub fn recovered_transport(&self) -> Result<Arc<dyn Transport>> {
        if self.failure().is_none() {
            return Err(Error::precondition(format!("{} is not dead", self.label())));
        }
        self.check_thread()?;
        self.transport().recover()
    }

    pub fn check_thread(&self) -> Result<()> {
        if self.is_drivers_thread() {
            return Ok(());
        }
        let text = format!("{}: its transport is for the thread that created it (WEIR_COMM_ONE_THREAD)", self.label());
        Err(Error::precondition(text))
    }

    /// Whether this thread may call the transport.
    pub fn is_drivers_thread(&self) -> bool {
        self.thread == 0 || self.thread == thread::me()
    }

    /// Drives the transport, if no other thread does; whether anything moved.
    pub fn drive(&self) -> bool {
        if !self.is_drivers_thread() {
            return false;
        }
        let mut moved = false;
        while let Some(mut driver) = self.driver.hold() {
            moved |= driver.step(&self.state);
            let mut over = std::mem::take(&mut driver.over);
            drop(driver);
            let has_over = !over.is_empty();
            for done in over.drain(..) {
                // The call resumes with the request; it was completed by nobody else.
                let _ = done.done(Ok(()));
            }
            if has_over && let Some(mut driver) = self.driver.hold() {
                // Kept for its memory.
                if driver.over.is_empty() {
                    driver.over = over;
                }
            }
            let inbox = self.inbox.lock();
            if inbox.requests.is_empty() && inbox.end.is_none() {
                break;
            }
        }
        moved
    }

    /// Drives for up to `budget_ns`; how many operations are left.
    pub fn progress(&self, budget_ns: u64) -> u64 {
        let deadline = Deadline::after(budget_ns);
        loop {
            self.drive();
            let open = self.open.load(Acquire);
            if open == 0 || deadline.is_past() {
                return open;
            }
            std::thread::yield_now();
        }
    }
}

impl Progress for Object<Communicator> {
    fn poll(&self) -> bool {
        self.open.load(Acquire) > 0 && (0..POLLS).any(|_| self.drive())
    }

    /// A byte may take a nanosecond, up to a bound: waiting is not to become spinning.
    fn expected_ns(&self) -> u64 {
        self.open_bytes.load(Relaxed).min(LONGEST_EXPECTED_NS)
    }

    fn due_ns(&self) -> u64 {
        self.state.due_ns()
    }
}

impl RunListener for Object<Communicator> {
    fn run_ends(&self, run: usize) -> Result<()> {
        let given_up = self.given_up.get().filter(|_| self.owner.load(Acquire) == run);
        given_up.cloned().map_or(Ok(()), Err)
    }

    fn run_ended(&self, run: usize, failure: Option<&Error>) {
        if run != 0 && self.owner.load(Acquire) == run {
            // ORDERING: Relaxed; the next run comes behind the owner's change.
            self.runs.fetch_add(u64::from(self.has_collective.swap(false, Relaxed)), Relaxed);
            // ORDERING: Release pairs with the Acquire in `take_for`.
            self.owner.store(0, Release);
        }
        let Some(error) = failure else { return };
        let was_refused = {
            let mut refused = self.refused.lock();
            let at = refused.iter().position(|refused| *refused == run);
            at.map(|at| refused.swap_remove(at)).is_some()
        };
        if !was_refused && self.failure().is_none() {
            let what = if run == 0 { "what comes next here does not begin" } else { "the run has failed" };
            let text = format!("{}: {what}: {}", self.label(), error.message());
            self.give_up(Error::new(error.code(), text));
        }
    }

    fn holds_outputs(&self) -> bool {
        !self.options().do_tensors_stay
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        self.closed.advance(1);
        if self.open.load(Acquire) > 0
            && let Some(registered) = self.registered.get()
        {
            registered.closed();
        }
        if let Some(mut driver) = self.driver.hold() {
            let active = std::mem::take(&mut driver.active).into_iter().map(|active| active.request);
            // Nobody has asked since a device was done with the others.
            driver.lost.extend(active.filter(|request| !request.wanted.is_on_device));
            // Not even a transport that was released is done with it: MPI writes in any later call.
            std::mem::forget(std::mem::take(&mut driver.lost));
        }
    }
}
