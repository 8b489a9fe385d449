//! The bound on a program's concurrent runs: which run may begin, which waits, and which must not wait.
//!
//! A run takes a permit when it begins and gives it back when it is over (`semaphore`). When all are taken,
//!
//! - a run in the calling thread sleeps until it gets one, if the thread is inside of nothing of the library's: then it
//!   holds nothing for which others could wait, so no circle can close. Inside of a task of a pool, of a stream's work
//!   or of a run of a program with a bound it spins and helps the pool for a while, and is then refused. Either way it
//!   works for the runs in front of it. That work may itself wait, for a run that is behind it in the line: so it is
//!   not in the line meanwhile, and returns to its place;
//! - a run on an asynchronous stream was accepted by the queue already. When it is drained it joins the line and
//!   answers *pending*: the stream is held up, and no thread is. The run that leaves hands it the permit and resumes
//!   the stream. Submitting never blocks; for back-pressure at the call, the host asks not to wait, and is refused
//!   while as many runs as allowed are queued or in flight.
//!
//! A run that begins inside of a run of the same program belongs to it and takes no permit: it would wait for itself.
//! So do programs that are nodes, and runs that a kernel makes through its context: the outer run cannot continue
//! without them. A thread knows what it is inside of by the ids of runs on its stack (`sync::ambient`), whose upper
//! half is the program's number.
//!
//! One wait is left that could close a circle: a kernel of the program sleeps, outside of a pool, until a stream is
//! done on which a run of its own program waits for a permit. The queue says what it waits for, and such a sleep is
//! refused (`stream::wait`).
#![forbid(unsafe_code)]

use super::semaphore::Semaphore;
use crate::base::time::Deadline;
use crate::base::{Code, Error, Ref, Result};
use crate::stream::{JoinOutcome, Joinable, Queue, help_briefly};
use crate::sync::{EventCount, Mutex, ambient};
use crate::threadpool::{self, ThreadPool, ThreadPoolOptions};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Arc, Weak};

/// How long a thread spins before it sleeps.
const LOOK_NS: u64 = 20_000;
/// How long it sleeps before it checks whether it can help the runs that have a permit.
const LOOK_AGAIN_NS: u64 = 10_000_000;

/// A run on a stream that waits in the line.
pub(in crate::graph) trait Queued: Send + Sync {
    /// Called by the run that leaves, which hands over its permit.
    fn admit(&self, permit: Permit, queue: &Arc<Queue>);
}

/// An entry of the line.
pub(in crate::graph) enum LineEntry {
    Thread(Arc<EventCount>),
    Queued(Arc<dyn Queued>, Arc<Queue>),
}

pub(in crate::graph) struct Admission {
    /// The upper half of the runs' ids; never 0.
    pub number: u32,
    most: u32,
    permits: Semaphore<LineEntry>,
    /// Runs that are queued, wait or are in flight. ORDERING: Relaxed; it limits.
    accepted: AtomicU32,
    /// The streams of runs that are in the line or have a permit.
    queues: Mutex<Vec<Weak<Queue>>>,
}

/// Counts a run from its acceptance to its end.
pub(in crate::graph) struct Accepted(Arc<Admission>);

impl Drop for Accepted {
    fn drop(&mut self) {
        self.0.accepted.fetch_sub(1, Relaxed);
    }
}

/// The right to run.
pub(in crate::graph) struct Permit {
    of: Arc<Admission>,
    /// Set for a run on a stream.
    queue: Option<Weak<Queue>>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.iter().for_each(|queue| self.of.over(queue));
        match self.of.permits.leave() {
            None => {}
            Some(LineEntry::Thread(wake_up)) => wake_up.advance(1),
            Some(LineEntry::Queued(run, queue)) => {
                let permit = Permit { of: Arc::clone(&self.of), queue: Some(Arc::downgrade(&queue)) };
                run.admit(permit, &queue);
            }
        }
    }
}

/// Both, for runs that begin at once.
pub(in crate::graph) struct Admitted {
    // Dropped in this order.
    _permit: Permit,
    _accepted: Accepted,
}

/// The parameters of a request for a permit.
pub(in crate::graph) struct Asks<'a> {
    pub name: &'a str,
    pub no_wait: bool,
    pub pool: Option<&'a Ref<ThreadPool>>,
    /// On the library's clock; 0 = never.
    pub deadline_at_ns: u64,
}

impl Admission {
    /// `None` if there is no bound.
    pub fn create(most: u32) -> Option<Arc<Admission>> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed) % (u32::MAX - 1) + 1;
        let admission = || Admission {
            number,
            most,
            permits: Semaphore::new(most),
            accepted: AtomicU32::new(0),
            queues: Mutex::default(),
        };
        (most > 0).then(|| Arc::new(admission()))
    }

    /// Whether a run that begins in this thread is part of one that has a permit.
    pub fn is_inside(&self) -> bool {
        ambient::within_runs_of(self.number)
    }

    fn full(&self, asks: &Asks<'_>) -> Error {
        let Asks { name, .. } = asks;
        let most = self.most;
        Error::new(
            Code::ResourceExhausted,
            format!(
                "program '{name}' has as many runs under way as it may have at once, {most}, and the run is not to wait"
            ),
        )
    }

    /// Counts a run that is going to begin, now or later.
    pub(in crate::graph) fn accept(self: &Arc<Self>, asks: &Asks<'_>) -> Result<Accepted> {
        let limit = if asks.no_wait { self.most } else { u32::MAX };
        let one_more = |accepted: u32| (accepted < limit).then(|| accepted + 1);
        match self.accepted.fetch_update(Relaxed, Relaxed, one_more) {
            Ok(_) => Ok(Accepted(Arc::clone(self))),
            Err(_) => Err(self.full(asks)),
        }
    }

    /// A permit for a run in this thread; waits for one if it may.
    pub fn enter(self: &Arc<Self>, asks: &Asks<'_>) -> Result<Option<Admitted>> {
        if self.is_inside() {
            return Ok(None);
        }
        if self.permits.try_enter() {
            return Ok(Some(self.admitted()));
        }
        if asks.no_wait {
            return Err(self.full(asks));
        }
        let wake_up = Arc::new(EventCount::new());
        let entry = || LineEntry::Thread(Arc::clone(&wake_up));
        let is_it = |waiter: &LineEntry| matches!(waiter, LineEntry::Thread(other) if Arc::ptr_eq(other, &wake_up));
        let Some(place) = self.permits.enter_or_wait(entry) else { return Ok(Some(self.admitted())) };
        let has_permit = Cell::new(false);
        let is_called = || has_permit.get() || wake_up.reached() > 0;
        // Whether there was work.
        let works = |work: &dyn Fn() -> bool| {
            let is_in_line = self.permits.withdraw(is_it).is_some();
            let has_worked = is_in_line && work();
            has_permit.set(!is_in_line || self.permits.return_to(place, entry));
            has_worked
        };
        let in_work = ambient::depth() > 0 || threadpool::within_any();
        let deadline = if asks.deadline_at_ns > 0 { Deadline::at(asks.deadline_at_ns) } else { Deadline::NEVER };
        while !is_called() && !deadline.is_past() && works(&|| self.help()) {}
        if in_work {
            let pool = asks.pool.filter(|pool| pool.in_parallel());
            let help_pool = || pool.is_some_and(|pool| works(&|| pool.help()));
            help_briefly(&is_called, &help_pool, ThreadPoolOptions::default().spin_ns);
        } else {
            // The runs in front of it may be ready, but find only threads of their pool that wait here.
            while !is_called() && !deadline.is_past() {
                if !wake_up.wait(1, LOOK_NS, deadline.earlier(Deadline::after(LOOK_AGAIN_NS))) {
                    works(&|| self.help());
                }
            }
        }
        if is_called() || self.permits.withdraw(is_it).is_none() {
            return Ok(Some(self.admitted()));
        }
        let (name, most) = (asks.name, self.most);
        if in_work {
            return Err(Error::precondition(format!(
                "program '{name}' has as many runs under way as it may have at once, {most}, and this thread must not \
                 wait for one to end: it is inside of a task of a pool, of a stream's work or of a run, which they may \
                 need"
            )));
        }
        Err(Error::new(
            Code::DeadlineExceeded,
            format!("the time of the run was over before program '{name}' had less than {most} runs under way"),
        ))
    }

    /// Works for the runs that have a permit or are in front; false if there was nothing to do.
    fn help(&self) -> bool {
        let queues: SmallVec<[Arc<Queue>; 8]> = self.queues.lock().iter().filter_map(Weak::upgrade).collect();
        queues.iter().any(Queue::help)
    }

    /// The caller has a permit.
    fn admitted(self: &Arc<Self>) -> Admitted {
        self.accepted.fetch_add(1, Relaxed);
        Admitted { _permit: Permit { of: Arc::clone(self), queue: None }, _accepted: Accepted(Arc::clone(self)) }
    }

    /// Up to `count` permits more, as far as they are free.
    pub fn more(self: &Arc<Self>, count: usize) -> More {
        let count = (0..count).take_while(|_| self.permits.try_enter()).count();
        More { of: Arc::clone(self), count }
    }

    /// A permit for a run on a stream, or a place in the line.
    pub(in crate::graph) fn enter_or_wait(
        self: &Arc<Self>,
        run: &Arc<dyn Queued>,
        queue: &Arc<Queue>,
    ) -> Option<Permit> {
        self.queues.lock().push(Arc::downgrade(queue));
        let waiter = || LineEntry::Queued(Arc::clone(run), Arc::clone(queue));
        let queue = Some(Arc::downgrade(queue));
        self.permits.enter_or_wait(waiter).is_none().then(|| Permit { of: Arc::clone(self), queue })
    }

    /// A run on this stream is over, or has left the line.
    fn over(&self, queue: &Weak<Queue>) {
        let mut queues = self.queues.lock();
        if let Some(at) = queues.iter().position(|other| other.ptr_eq(queue)) {
            queues.swap_remove(at);
        }
    }

    /// Takes a run on a stream out of the line.
    pub(in crate::graph) fn withdraw(&self, run: &Arc<dyn Queued>) {
        let is_this = |other: &Arc<dyn Queued>| std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(run));
        let is_it = |waiter: &LineEntry| matches!(waiter, LineEntry::Queued(other, _) if is_this(other));
        if let Some(LineEntry::Queued(_, queue)) = self.permits.withdraw(is_it) {
            self.over(&Arc::downgrade(&queue));
            queue.share(None);
        }
    }
}

/// A thread that waits for a stream whose run is in the line works for the runs in front of it.
impl Joinable for Admission {
    fn join(self: Arc<Self>, _part: u64, may_work: bool) -> JoinOutcome {
        if may_work && self.help() { JoinOutcome::Worked } else { JoinOutcome::Nobody }
    }
}

/// Permits that are given back together.
pub(in crate::graph) struct More {
    of: Arc<Admission>,
    pub count: usize,
}

impl Drop for More {
    fn drop(&mut self) {
        (0..self.count).for_each(|_| drop(Permit { of: Arc::clone(&self.of), queue: None }));
    }
}
