//! A communicator: operations in one order, one thread that drives the transport, and an end for all ranks when one
//! fails.
//!
//! Any thread submits: it puts the request into the inbox, and drives, if nobody else does (`DrainLock`); the driving
//! thread looks at the inbox again before it leaves. Operations begin in the order in which they were submitted, with
//! one exception: while a collective of several phases is under way, collectives behind it wait, and sends and receives
//! do not. Between submissions the communicator moves when a thread waits (`sync::progress`).
//!
//! A failure is final: an error of the transport, a run that has ended with nodes left out, a cancel, a limit. The rank
//! tells all others (GIVE_UP), ends what is open with that error, and takes no more operations. A rank that hears of it
//! does the same, without telling; what is under way there may end well before, for a moment. Memory of operations that
//! the transport may still use is kept for good. A rank that is late hears of it before it begins anything.
#![forbid(unsafe_code)]

use super::active::Active;
use super::inquiry::Inquiry;
use super::lanes::Lanes;
use super::message::{self, ControlMessage, PeerReports};
use super::options::{CommFigures, CommOptions};
use super::request::Request;
use super::tickets::RequestTickets;
use super::transport::{Transport, TransportFailure, TransportInfo};
use crate::abi::weir_comm_flags as Flag;
use crate::base::object::tag;
use crate::base::time::{Deadline, now_ns};
use crate::base::{Code, Error, Kind, Object, Ref, Result, live};
use crate::kernel::{Completion, RunListener};
use crate::sync::progress::{Progress, Registered};
use crate::sync::thread::{self, ThreadGroup, ThreadOrigin};
use crate::sync::{DrainLock, EventCount, Mutex, OnceLock};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Weak};

/// A transport may move a piece of a message at each call: it is asked so often before the poller pauses.
const POLLS: u32 = 4;
/// Stops, limits and control messages are looked at so often.
const LOOK_NS: u64 = 20_000;
/// When another rank has given up, what is under way here may still end well for so long: its part may be there.
const GRACE_NS: u64 = 20_000_000;
const LONGEST_EXPECTED_NS: u64 = 20_000_000;
/// Other ranks have at least so long to say how far they have come.
const LEAST_ANSWER_NS: u64 = 100_000_000;

#[derive(Default)]
struct Submissions {
    requests: VecDeque<Arc<Request>>,
    /// This rank gives up, and why.
    end: Option<Error>,
}

/// Touched by the thread that drives.
struct TransportDriver {
    waiting: VecDeque<Arc<Request>>,
    active: Vec<Active>,
    /// Collectives that have begun.
    sequence: u64,
    looked_ns: u64,
    inquiry: Option<Inquiry>,
    /// Another rank has given up: the error with which this one does, and when.
    dying: Option<(Error, u64)>,
    heard: PeerReports,
    /// Calls that wait for what is over; they are told when the lock is free.
    over: Vec<Completion>,
    /// Requests whose memory the transport may still use.
    lost: Vec<Arc<Request>>,
    lanes: Lanes,
}

pub struct Communicator {
    name: String,
    number: u64,
    options: CommOptions,
    info: TransportInfo,
    inbox: Mutex<Submissions>,
    driver: DrainLock<TransportDriver>,
    dead: OnceLock<Error>,
    /// The run that has it, by the address of its stop flag; 0 = none.
    owner: AtomicUsize,
    /// The only thread that may call the transport; 0 = any.
    thread: u64,
    /// Requests that are not over, and the bytes of their memory.
    open: AtomicU64,
    open_bytes: AtomicU64,
    begun: AtomicU64,
    ended: AtomicU64,
    lost_bytes: AtomicU64,
    registered: OnceLock<Registered>,
    pub tickets: RequestTickets,
    /// Advanced when it is gone.
    closed: Arc<EventCount>,
    transport: Arc<dyn Transport>,
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
            name: options.name.clone(),
            number: crate::resource::next_serial(),
            info,
            inbox: Mutex::default(),
            driver: DrainLock::new(TransportDriver {
                waiting: VecDeque::new(),
                active: Vec::new(),
                sequence: 0,
                looked_ns: 0,
                inquiry: None,
                dying: None,
                heard: PeerReports::new(size),
                over: Vec::new(),
                lost: Vec::new(),
                lanes: Lanes::default(),
            }),
            dead: OnceLock::new(),
            owner: AtomicUsize::new(0),
            thread: if is_of_one_thread { thread::me() } else { 0 },
            open: AtomicU64::new(0),
            open_bytes: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            lost_bytes: AtomicU64::new(0),
            registered: OnceLock::new(),
            tickets: RequestTickets::default(),
            closed: Arc::new(EventCount::new()),
            options,
            transport,
        });
        let weak: Weak<Object<Communicator>> = Arc::downgrade(&comm);
        let _ = comm.registered.set(Registered::new(weak, is_of_one_thread));
        if comm.options.has_thread {
            let (name, owner) = (format!("weir-comm{}", comm.number), comm.name.clone());
            let group = Arc::new(ThreadGroup { origin: ThreadOrigin::Lane, name, owner, pool: 0 });
            let closed = Arc::clone(&comm.closed);
            let started = thread::spawn(&group, None, move || {
                closed.wait(1, 0, Deadline::NEVER);
            });
            started.map_err(|error| {
                Error::new(Code::ResourceExhausted, format!("a thread of communicator '{}': {error}", comm.name))
            })?;
        }
        Ok(comm)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Unique among what kernels have effects on.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn info(&self) -> &TransportInfo {
        &self.info
    }

    pub fn options(&self) -> &CommOptions {
        &self.options
    }

    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    pub fn figures(&self) -> CommFigures {
        CommFigures {
            begun: self.begun.load(Relaxed),
            ended: self.ended.load(Relaxed),
            quarantined_bytes: self.lost_bytes.load(Relaxed),
            is_dead: self.dead.get().is_some(),
        }
    }

    /// "communicator 'dp' (rank 1 of 4)"
    pub fn label(&self) -> String {
        format!("communicator '{}' (rank {} of {})", self.name, self.info.rank, self.info.size)
    }

    /// The failure after which it takes no more operations.
    pub fn failure(&self) -> Option<&Error> {
        self.dead.get()
    }

    fn check_alive(&self) -> Result<()> {
        let Some(error) = self.dead.get() else { return Ok(()) };
        Err(Error::new(error.code(), format!("{} is dead: {}", self.label(), error.message())))
    }

    /// A run has it from its first operation on until it ends. `run` is 0 for an operation of a stream.
    fn take_for(&self, run: usize) -> Result<()> {
        // ORDERING: AcqRel; the next owner comes behind what the last one has submitted.
        let owner = match run {
            0 => self.owner.load(Acquire),
            run => self.owner.compare_exchange(0, run, AcqRel, Acquire).unwrap_or_else(|owner| owner),
        };
        if owner == 0 || owner == run {
            return Ok(());
        }
        Err(Error::precondition(format!(
            "{} is in use by another run; runs at once need one each (weir_comm_duplicate)",
            self.label()
        )))
    }

    /// Begins a filled request.
    pub fn submit(&self, request: &Arc<Request>, run: usize) -> Result<()> {
        self.check_alive()?;
        self.take_for(run)?;
        request.open()?;
        self.begun.fetch_add(1, Relaxed);
        self.open_bytes.fetch_add(request.bytes() as u64, Relaxed);
        self.inbox.lock().requests.push_back(Arc::clone(request));
        let is_first = self.open.fetch_add(1, AcqRel) == 0;
        match self.registered.get() {
            Some(registered) if is_first => registered.opened(),
            Some(registered) if !self.is_drivers_thread() => registered.has_news(),
            _ => {}
        }
        let _ = self.driver.call();
        self.drive();
        Ok(())
    }

    /// This rank gives up: all ranks' runs end.
    pub fn give_up(&self, error: Error) {
        {
            let mut inbox = self.inbox.lock();
            if inbox.end.is_none() {
                inbox.end = Some(error);
            }
        }
        let _ = self.driver.call();
        self.drive();
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
            moved |= driver.step(self);
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

    fn one_is_over(&self, request: &Request) {
        self.ended.fetch_add(1, Relaxed);
        self.open_bytes.fetch_sub(request.bytes() as u64, Relaxed);
        if self.open.fetch_sub(1, AcqRel) == 1
            && let Some(registered) = self.registered.get()
        {
            registered.closed();
        }
    }

    fn failed(&self, what: &str, failure: &TransportFailure) -> Error {
        let rank = failure.rank.map_or(String::new(), |rank| format!("rank {rank}: "));
        Error::new(failure.error.code(), format!("{}: {what}: {rank}{}", self.label(), failure.error.message()))
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
}

impl RunListener for Object<Communicator> {
    fn run_ended(&self, run: usize, failure: Option<&Error>) {
        let is_owner = self.owner.compare_exchange(run, 0, AcqRel, Acquire).is_ok();
        let Some(error) = failure else { return };
        let is_whole = error.run().is_some_and(|run| run.left_out.is_empty() && run.node.is_some());
        if (is_owner || self.owner.load(Acquire) == 0) && !is_whole && self.dead.get().is_none() {
            let text = format!("{}: the run has failed: {}", self.label(), error.message());
            self.give_up(Error::new(error.code(), text));
        }
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
            driver.lost.extend(active);
            // Not even a transport that was released is done with it: MPI writes in any later call.
            std::mem::forget(std::mem::take(&mut driver.lost));
        }
    }
}

impl TransportDriver {
    /// Whether anything moved.
    fn step(&mut self, comm: &Communicator) -> bool {
        let mut moved = false;
        if let Err((what, failure)) = self.try_step(comm, &mut moved) {
            // That another rank has given up may show in the operations first. Why, it has told before.
            let _ = self.listen(comm, &mut moved);
            let (error, tells) = match self.dying.take() {
                Some((error, _)) => (error, false),
                None => (comm.failed(&what, &failure), true),
            };
            self.die(comm, error, tells);
            return true;
        }
        moved
    }

    fn try_step(&mut self, comm: &Communicator, moved: &mut bool) -> Result<(), (String, TransportFailure)> {
        let now = now_ns();
        let is_time = now.saturating_sub(self.looked_ns) >= LOOK_NS;
        // Where an operation is not over without control messages, they are read each time.
        let awaits_messages = comm.options.is_checked || self.inquiry.is_some() || self.dying.is_some();
        if comm.dead.get().is_none() && (is_time || awaits_messages) {
            self.listen(comm, moved)?;
        }
        let (mut requests, end) = {
            let mut inbox = comm.inbox.lock();
            (std::mem::take(&mut inbox.requests), inbox.end.take())
        };
        *moved |= !requests.is_empty();
        self.waiting.append(&mut requests);
        if let Some(error) = end {
            self.die(comm, error, true);
        }
        if let Some(error) = comm.dead.get().cloned() {
            self.end_all(comm, &error);
            return Ok(());
        }
        self.begin(comm)?;
        if comm.info.has(Flag::WEIR_COMM_NEEDS_PROGRESS) && !self.active.is_empty() {
            comm.transport.progress().map_err(|failure| ("progress".to_owned(), failure))?;
        }
        self.test(comm, moved)?;
        if let Some((error, until_ns)) = self.dying.clone()
            && (self.active.is_empty() || now_ns() >= until_ns)
        {
            self.die(comm, error, false);
            return Ok(());
        }
        if is_time {
            self.looked_ns = now;
            self.look(comm, now);
        }
        Ok(())
    }

    /// Begins what is next.
    fn begin(&mut self, comm: &Communicator) -> Result<(), (String, TransportFailure)> {
        let mut at = 0;
        while at < self.waiting.len() && self.dying.is_none() {
            let is_held = || self.active.iter().any(|active| active.request.phases().len() > 1);
            if !self.waiting[at].wanted.is_message() && is_held() {
                // Messages behind it go on.
                at += 1;
                continue;
            }
            let Some(request) = self.waiting.remove(at) else { break };
            self.sequence += u64::from(!request.wanted.is_message());
            let sequence = if request.wanted.is_message() { 0 } else { self.sequence };
            if sequence > 0 && comm.options.is_checked {
                let own = ControlMessage::check(sequence, &request.wanted, &request.label);
                let next = (comm.info.rank + 1) % comm.info.size;
                send(comm, next, &own)?;
                self.heard.begun(sequence, &request.label, message::digest(&request.wanted));
            }
            let traces = request.take_traces();
            let traced =
                traces.and_then(|traces| self.lanes.begin(&comm.label(), traces, &request.label, request.bytes()));
            let since_ns = now_ns();
            let mut active = Active { request, phase: 0, tokens: SmallVec::new(), since_ns, sequence, traced };
            let started = active.start_phase(&*comm.transport);
            self.active.push(active);
            started?;
        }
        Ok(())
    }

    fn test(&mut self, comm: &Communicator, moved: &mut bool) -> Result<(), (String, TransportFailure)> {
        let mut at = 0;
        while at < self.active.len() {
            let active = &mut self.active[at];
            let mut i = 0;
            while i < active.tokens.len() {
                let label = || active.request.label.clone();
                if comm.transport.test(active.tokens[i]).map_err(|failure| (label(), failure))? {
                    active.tokens.swap_remove(i);
                    *moved = true;
                } else {
                    i += 1;
                }
            }
            if !active.tokens.is_empty() {
                at += 1;
                continue;
            }
            let phases = active.request.phases();
            if active.phase < phases.len() {
                let concluded = active.request.conclude(&phases[active.phase]);
                let label = || active.request.label.clone();
                concluded.map_err(|error| (label(), TransportFailure { error, rank: None }))?;
                active.phase += 1;
                if active.phase < phases.len() {
                    active.start_phase(&*comm.transport)?;
                    continue;
                }
            }
            if active.sequence > 0 && comm.options.is_checked && !self.heard.agrees(active.sequence) {
                at += 1;
                continue;
            }
            let over = self.active.remove(at);
            self.trace_end(&over, false);
            self.end(comm, &over.request, Ok(()), false);
            *moved = true;
            self.inquiry = None;
            self.begin(comm)?;
        }
        Ok(())
    }

    fn trace_end(&mut self, active: &Active, failed: bool) {
        if let Some(traced) = &active.traced {
            self.lanes.end(traced, active.since_ns, failed);
        }
    }

    fn end(&mut self, comm: &Communicator, request: &Arc<Request>, result: Result<()>, is_lost: bool) {
        self.over.extend(request.end(result, is_lost));
        comm.one_is_over(request);
    }

    /// Reads control messages.
    fn listen(&mut self, comm: &Communicator, moved: &mut bool) -> Result<(), (String, TransportFailure)> {
        let polled = |failure| ("control_poll".to_owned(), failure);
        while let Some((peer, bytes)) = comm.transport.control_poll().map_err(polled)? {
            *moved = true;
            match self.heard.note(peer, &bytes) {
                None => {}
                Some(ControlMessage::GiveUp { text, .. }) => {
                    let text = format!("{}: rank {peer} gave up: {text}", comm.label());
                    let until_ns = now_ns() + GRACE_NS;
                    self.dying.get_or_insert_with(|| (Error::new(Code::Aborted, text), until_ns));
                }
                Some(ControlMessage::Ask) => send(comm, peer, &ControlMessage::State { sequence: self.sequence })?,
                Some(ControlMessage::State { sequence }) => {
                    if let Some(inquiry) = &mut self.inquiry {
                        inquiry.answer(peer, sequence);
                    }
                }
                Some(ControlMessage::Check { .. }) => {}
            }
        }
        if let Some((sequence, own, other)) = self.heard.contradiction() {
            let peer = (comm.info.rank + comm.info.size - 1) % comm.info.size;
            let text = format!(
                "{}: operation {sequence} is {own} here, and {other} on rank {peer}: the ranks' operations differ",
                comm.label()
            );
            self.die(comm, Error::precondition(text), true);
        }
        Ok(())
    }

    /// Looks at stops and limits.
    fn look(&mut self, comm: &Communicator, now: u64) {
        let stopped = self.active.iter().map(|active| &active.request).chain(&self.waiting);
        let stopped = stopped.filter_map(|request| Some((request.label.clone(), request.stopped()?))).next();
        if let Some((label, error)) = stopped {
            let text = format!("{}: {label}: {}", comm.label(), error.message());
            return self.die(comm, Error::new(error.code(), text), true);
        }
        let limit = comm.options.limit_ns;
        if limit == 0 {
            return;
        }
        match &self.inquiry {
            None => {
                let late = self.active.iter().find(|active| now.saturating_sub(active.since_ns) > limit);
                let Some(late) = late else { return };
                let answer_ns = if comm.info.has_control { LEAST_ANSWER_NS.max(limit / 4) } else { 0 };
                let label = late.request.label.clone();
                self.inquiry = Some(Inquiry::new(&comm.info, label, late.sequence, now + answer_ns));
                for peer in (0..comm.info.size).filter(|&peer| peer != comm.info.rank) {
                    // A rank that cannot be asked is one that did not answer.
                    let _ = send(comm, peer, &ControlMessage::Ask);
                }
            }
            Some(inquiry) if inquiry.is_over(now) => {
                let text = format!("{}: {}", comm.label(), inquiry.verdict(limit));
                self.die(comm, Error::new(Code::DeadlineExceeded, text), true);
            }
            Some(_) => {}
        }
    }

    /// It takes no more operations, and what is open ends.
    fn die(&mut self, comm: &Communicator, error: Error, tells: bool) {
        if comm.dead.set(error.clone()).is_err() {
            return;
        }
        if tells && comm.info.has_control {
            for peer in (0..comm.info.size).filter(|&peer| peer != comm.info.rank) {
                for bytes in message::give_up(&error) {
                    // A rank that cannot be told has its limit.
                    let _ = comm.transport.control_send(peer, &bytes);
                }
            }
        }
        comm.transport.abort();
        self.end_all(comm, &error);
    }

    fn end_all(&mut self, comm: &Communicator, error: &Error) {
        let is_lost = !comm.info.has(Flag::WEIR_COMM_ABORT_RELEASES);
        for active in std::mem::take(&mut self.active) {
            self.trace_end(&active, true);
            self.end(comm, &active.request, Err(error.clone()), is_lost);
            if is_lost {
                comm.lost_bytes.fetch_add(active.request.bytes() as u64, Relaxed);
                self.lost.push(active.request);
            }
        }
        for request in std::mem::take(&mut self.waiting) {
            self.end(comm, &request, Err(error.clone()), false);
        }
    }
}

fn send(comm: &Communicator, peer: usize, note: &ControlMessage) -> Result<(), (String, TransportFailure)> {
    let sent = comm.transport.control_send(peer, &note.bytes());
    sent.map_err(|failure| ("control_send".to_owned(), failure))
}
