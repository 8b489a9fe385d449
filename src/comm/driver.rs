//! The driver of a communicator's transport, one thread at a time: it begins operations, asks whether they are over,
//! listens to the other ranks, and ends everything when one fails.
#![forbid(unsafe_code)]

use super::active::Active;
use super::inquiry::Inquiry;
use super::lanes::Lanes;
use super::message::{self, ControlMessage, PeerReports};
use super::options::{CommFigures, CommOptions};
use super::request::Request;
use super::transport::{Message, Transport, TransportFailure, TransportInfo};
use crate::abi::weir_comm_flags as Flag;
use crate::base::time::now_ns;
use crate::base::{Code, Error, Result};
use crate::kernel::Completion;
use crate::sync::progress::Registered;
use crate::sync::{Mutex, OnceLock};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

/// Stops, limits and control messages are looked at so often.
const LOOK_NS: u64 = 20_000;
/// When another rank has given up, what is under way here may still end well for so long: its part may be there.
const GRACE_NS: u64 = 20_000_000;
/// When a limit is over, other ranks have so long to say how far they have come: a rank that waits in the library naps
/// for less.
const ANSWER_NS: u64 = 100_000_000;

#[derive(Default)]
pub struct Submissions {
    pub requests: VecDeque<Arc<Request>>,
    /// This rank gives up, and why.
    pub end: Option<Error>,
}

/// Touched by the thread that drives.
pub struct TransportDriver {
    pub waiting: VecDeque<Arc<Request>>,
    pub active: Vec<Active>,
    /// Collectives that have begun.
    sequence: u64,
    looked_ns: u64,
    inquiry: Option<Inquiry>,
    /// Another rank has given up: the error with which this one does, and when.
    dying: Option<(Error, u64)>,
    heard: PeerReports,
    /// Calls that wait for what is over; they are told when the lock is free.
    pub over: Vec<Completion>,
    /// Requests whose memory the transport may still use.
    pub lost: Vec<Arc<Request>>,
    lanes: Lanes,
}

/// A communicator as all see it: threads that submit, and the one that drives.
pub struct CommState {
    name: String,
    number: u64,
    options: CommOptions,
    info: TransportInfo,
    pub inbox: Mutex<Submissions>,
    dead: OnceLock<Error>,
    /// Operations of a run on a device were given up.
    pub given_up: OnceLock<Error>,
    /// Requests that are not over, and an end that is not told; the bytes of the requests' memory.
    pub open: AtomicU64,
    pub open_bytes: AtomicU64,
    pub begun: AtomicU64,
    /// Runs with collectives that are over; whether the run that has it has had one. Messages are not for all ranks.
    pub runs: AtomicU64,
    pub has_collective: AtomicBool,
    ended: AtomicU64,
    lost_bytes: AtomicU64,
    /// When the driver must look at stops and limits again at the latest.
    due_ns: AtomicU64,
    pub registered: OnceLock<Registered>,
    transport: Arc<dyn Transport>,
}

impl CommState {
    pub fn new(transport: Arc<dyn Transport>, options: CommOptions) -> CommState {
        CommState {
            name: options.name.clone(),
            number: crate::resource::next_serial(),
            info: transport.info().clone(),
            inbox: Mutex::default(),
            dead: OnceLock::new(),
            given_up: OnceLock::new(),
            open: AtomicU64::new(0),
            open_bytes: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            has_collective: AtomicBool::new(false),
            ended: AtomicU64::new(0),
            lost_bytes: AtomicU64::new(0),
            due_ns: AtomicU64::new(u64::MAX),
            registered: OnceLock::new(),
            options,
            transport,
        }
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

    pub fn check_alive(&self) -> Result<()> {
        let Some(error) = self.dead.get() else { return Ok(()) };
        let (label, text) = (self.label(), error.message());
        let text = text.strip_prefix(&label).and_then(|text| text.strip_prefix(": ")).unwrap_or(text);
        Err(Error::new(error.code(), format!("{label} is dead: {text}")))
    }

    pub fn due_ns(&self) -> u64 {
        self.due_ns.load(Relaxed)
    }

    /// The driver must look by then. ORDERING: Relaxed; the lock of the list of those that nap orders it.
    pub fn is_due(&self, at_ns: u64) {
        let before_ns = self.due_ns.fetch_min(at_ns, Relaxed);
        self.tell_if(at_ns < before_ns);
    }

    /// The same, by the driver, which has looked.
    fn set_due(&self, at_ns: u64) {
        let before_ns = self.due_ns.swap(at_ns, Relaxed);
        self.tell_if(at_ns < before_ns);
    }

    fn tell_if(&self, is_earlier: bool) {
        if let Some(registered) = self.registered.get().filter(|_| is_earlier) {
            registered.has_news();
        }
    }

    fn one_is_over(&self, request: &Request) {
        self.ended.fetch_add(1, Relaxed);
        self.open_bytes.fetch_sub(request.bytes() as u64, Relaxed);
        self.one_is_closed();
    }

    fn one_is_closed(&self) {
        if self.open.fetch_sub(1, AcqRel) == 1
            && let Some(registered) = self.registered.get()
        {
            registered.closed();
        }
    }

    pub fn failed(&self, what: &str, failure: &TransportFailure) -> Error {
        let rank = failure.rank.map_or(String::new(), |rank| format!("rank {rank}: "));
        Error::new(failure.error.code(), format!("{}: {what}: {rank}{}", self.label(), failure.error.message()))
    }
}

impl TransportDriver {
    pub fn new(size: usize) -> TransportDriver {
        TransportDriver {
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
        }
    }

    /// Whether anything moved.
    pub fn step(&mut self, comm: &CommState) -> bool {
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

    fn try_step(&mut self, comm: &CommState, moved: &mut bool) -> Result<(), (String, TransportFailure)> {
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
            comm.one_is_closed();
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
            comm.set_due(self.due_ns(comm));
        }
        Ok(())
    }

    /// When one of the stops and limits comes that `look` looks at.
    fn due_ns(&self, comm: &CommState) -> u64 {
        let requests = self.active.iter().map(|active| &active.request).chain(&self.waiting);
        let runs = requests.filter_map(|request| request.deadline_ns());
        let limit_ns = Some(comm.options.limit_ns).filter(|&ns| ns > 0);
        let limits = match (&self.inquiry, limit_ns) {
            (Some(inquiry), _) => Some(inquiry.until_ns()),
            (None, Some(ns)) => self.active.iter().map(|active| active.since_ns.saturating_add(ns + 1)).min(),
            (None, None) => None,
        };
        let dying = self.dying.as_ref().map(|(_, until_ns)| *until_ns);
        runs.chain(limits).chain(dying).min().unwrap_or(u64::MAX)
    }

    /// Begins what is next.
    fn begin(&mut self, comm: &CommState) -> Result<(), (String, TransportFailure)> {
        let mut at = 0;
        while at < self.waiting.len() && self.dying.is_none() {
            let is_held = || self.active.iter().any(|active| active.request.phases().len() > 1);
            if !self.waiting[at].wanted.is_message() && is_held() {
                // Messages behind it go on.
                at += 1;
                continue;
            }
            let request = &self.waiting[at];
            let sequence = if request.wanted.is_message() { 0 } else { self.sequence + 1 };
            if sequence > 0 && comm.options.is_checked {
                let (digest, text) = request.shown();
                let next = (comm.info.rank + 1) % comm.info.size;
                // A failure finds it among those that wait, and ends it.
                message::check(sequence, digest, &text).try_for_each(|bytes| send(comm, next, &bytes))?;
                self.heard.begun(sequence, digest, text);
            }
            let Some(request) = self.waiting.remove(at) else { break };
            self.sequence = self.sequence.max(sequence);
            let traces = request.take_traces();
            let traced =
                traces.and_then(|traces| self.lanes.begin(&comm.label(), traces, &request.label, request.bytes()));
            let since_ns = now_ns();
            let mut active = Active { request, phase: 0, tokens: SmallVec::new(), since_ns, sequence, traced };
            let is_submitted = active.request.wanted.is_on_device;
            let started = if is_submitted { Ok(()) } else { active.start_phase(&*comm.transport) };
            self.active.push(active);
            started?;
        }
        Ok(())
    }

    fn test(&mut self, comm: &CommState, moved: &mut bool) -> Result<(), (String, TransportFailure)> {
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
            let is_reached = active.request.wanted.is_on_device.then(|| active.request.is_reached());
            let is_reached = is_reached.unwrap_or(Ok(true)).map_err(|error| {
                let failure = TransportFailure { error, rank: None };
                (active.request.label.clone(), failure)
            })?;
            if !active.tokens.is_empty() || !is_reached {
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
            // A late operation stays late when another one beside it ends.
            self.inquiry.take_if(|inquiry| inquiry.is_about(&over.request));
            self.begin(comm)?;
        }
        Ok(())
    }

    fn trace_end(&mut self, active: &Active, failed: bool) {
        if let Some(traced) = &active.traced {
            self.lanes.end(traced, active.since_ns, failed);
        }
    }

    fn end(&mut self, comm: &CommState, request: &Arc<Request>, result: Result<()>, is_lost: bool) {
        self.over.extend(request.end(result, is_lost));
        if request.wanted.is_on_device {
            request.close_on_device();
        }
        comm.one_is_over(request);
    }

    /// Reads control messages.
    fn listen(&mut self, comm: &CommState, moved: &mut bool) -> Result<(), (String, TransportFailure)> {
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
                Some(ControlMessage::Ask) => {
                    send(comm, peer, &ControlMessage::State { sequence: self.sequence }.bytes())?
                }
                Some(ControlMessage::State { sequence }) => {
                    if let Some(inquiry) = &mut self.inquiry {
                        inquiry.answer(peer, sequence);
                    }
                }
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
    fn look(&mut self, comm: &CommState, now: u64) {
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
                let answer_ns = if comm.info.has_control { ANSWER_NS } else { 0 };
                self.inquiry = Some(Inquiry::new(&comm.info, &late.request, late.sequence, now + answer_ns));
                for peer in (0..comm.info.size).filter(|&peer| peer != comm.info.rank) {
                    // A rank that cannot be asked is one that did not answer.
                    let _ = send(comm, peer, &ControlMessage::Ask.bytes());
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
    fn die(&mut self, comm: &CommState, error: Error, tells: bool) {
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
        self.tell_devices(comm, &error);
        comm.transport.abort();
        self.end_all(comm, &error);
    }

    /// Operations on devices are about to be given up: before a device can say that it is done with them.
    fn tell_devices(&self, comm: &CommState, error: &Error) {
        let all = self.active.iter().map(|active| &active.request).chain(&self.waiting);
        for request in all.filter(|request| request.wanted.is_on_device && !matches!(request.is_reached(), Ok(true))) {
            let text = format!("{}: {}", request.label, error.message());
            if request.is_of_run() {
                let _ = comm.given_up.set(Error::new(error.code(), text));
            } else if let Some(stream) = request.stream() {
                stream.fail(Error::new(error.code(), text));
            }
        }
    }

    fn end_all(&mut self, comm: &CommState, error: &Error) {
        let keeps = !comm.info.has(Flag::WEIR_COMM_ABORT_RELEASES);
        for active in std::mem::take(&mut self.active) {
            self.trace_end(&active, true);
            let is_lost = keeps && !active.request.wanted.is_on_device;
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

fn send(comm: &CommState, peer: usize, bytes: &Message) -> Result<(), (String, TransportFailure)> {
    let sent = comm.transport.control_send(peer, bytes);
    sent.map_err(|failure| ("control_send".to_owned(), failure))
}
