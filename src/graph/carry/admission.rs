//! A program that has no more than so many runs at once: who may begin, who waits, and who may not wait.
//!
//! A run takes a place when it begins and gives it back when it is over (`sync::Semaphore`). When all are taken,
//!
//! - a run in the calling thread sleeps until its turn comes, if the thread is inside of nothing of the library's: then
//!   it holds nothing that others could wait for, so no circle can close. Inside of a task of a pool, of a stream's
//!   work or of a run of a program with a bound it looks and helps the pool for a while, and is refused then;
//! - a run on an asynchronous stream has been taken by the queue already. When its turn comes there it leaves word in
//!   the line and answers *pending*: the stream is held up, and no thread is. Whoever leaves hands it the place and
//!   resumes the stream. Submitting never blocks; who wants to be held back there asks not to wait, and is refused
//!   while as many runs as may go on are queued or under way.
//!
//! A run that begins inside of a run of the same program belongs to it and takes no place: it would wait for itself. So
//! do programs that are nodes, and runs that a kernel makes through its context: the outer run cannot go on without
//! them. Threads know what they are inside of by the ids of runs on their stack (`sync::ambient`), whose upper half is
//! the program's number.
//!
//! One wait is left that could close a circle: a kernel of the program sleeps, outside of a pool, until a stream is
//! done on which a run of its own program waits for a place. The queue says what it waits for, and such a sleep is
//! refused (`stream::wait`).
#![forbid(unsafe_code)]

use super::semaphore::Semaphore;
use crate::base::time::Deadline;
use crate::base::{Code, Error, Ref, Result};
use crate::stream::{JoinOutcome, Joinable, Queue, help_briefly};
use crate::sync::{EventCount, Mutex, ambient};
use crate::threadpool::{self, ThreadPool, ThreadPoolAttr};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Arc, Weak};

/// How long a thread looks before it sleeps.
const LOOK_NS: u64 = 20_000;
/// How long it sleeps before it looks whether it can do something for those that have a place.
const LOOK_AGAIN_NS: u64 = 10_000_000;

/// A run on a stream, which has left word in the line.
pub(in crate::graph) trait Queued: Send + Sync {
    /// By the run that leaves: its place is this one's now.
    fn admit(&self, place: Place, queue: &Arc<Queue>);
}

/// Who waits.
pub(in crate::graph) enum Waiter {
    Thread(Arc<EventCount>),
    Queued(Arc<dyn Queued>, Arc<Queue>),
}

pub(in crate::graph) struct Admission {
    /// In the upper half of the runs' ids; never 0.
    pub number: u32,
    most: u32,
    places: Semaphore<Waiter>,
    /// Runs that are queued, wait or go on. ORDERING: Relaxed; it limits.
    accepted: AtomicU32,
    /// The streams of runs that are in the line or have a place.
    queues: Mutex<Vec<Weak<Queue>>>,
}

/// A run was accepted, and is not over.
pub(in crate::graph) struct Accepted(Arc<Admission>);

impl Drop for Accepted {
    fn drop(&mut self) {
        self.0.accepted.fetch_sub(1, Relaxed);
    }
}

/// The right to go on.
pub(in crate::graph) struct Place {
    of: Arc<Admission>,
    /// Of a run on a stream.
    queue: Option<Weak<Queue>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.iter().for_each(|queue| self.of.over(queue));
        match self.of.places.leave() {
            None => {}
            Some(Waiter::Thread(gate)) => gate.advance(1),
            Some(Waiter::Queued(run, queue)) => {
                let place = Place { of: Arc::clone(&self.of), queue: Some(Arc::downgrade(&queue)) };
                run.admit(place, &queue);
            }
        }
    }
}

/// Both, for runs that begin at once.
pub(in crate::graph) struct Admitted {
    // Dropped in this order.
    _place: Place,
    _accepted: Accepted,
}

/// What a run that finds no place is to know.
pub(in crate::graph) struct Asks<'a> {
    pub name: &'a str,
    pub no_wait: bool,
    pub pool: Option<&'a Ref<ThreadPool>>,
    /// On the library's clock; 0 = never.
    pub deadline_at_ns: u64,
}

impl Admission {
    /// None if there is no bound.
    pub fn create(most: u32) -> Option<Arc<Admission>> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed) % (u32::MAX - 1) + 1;
        let admission = || Admission {
            number,
            most,
            places: Semaphore::new(most),
            accepted: AtomicU32::new(0),
            queues: Mutex::default(),
        };
        (most > 0).then(|| Arc::new(admission()))
    }

    /// Whether a run that begins in this thread is part of one that has a place.
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

    /// A place for a run in this thread; waits for one where it may.
    pub fn enter(self: &Arc<Self>, asks: &Asks<'_>) -> Result<Option<Admitted>> {
        if self.is_inside() {
            return Ok(None);
        }
        if self.places.try_enter() {
            return Ok(Some(self.admitted()));
        }
        if asks.no_wait {
            return Err(self.full(asks));
        }
        let gate = Arc::new(EventCount::new());
        if self.places.enter_or_wait(|| Waiter::Thread(Arc::clone(&gate))) {
            return Ok(Some(self.admitted()));
        }
        let in_work = ambient::depth() > 0 || threadpool::within_any();
        let deadline = if asks.deadline_at_ns > 0 { Deadline::at(asks.deadline_at_ns) } else { Deadline::NEVER };
        while gate.reached() == 0 && !deadline.is_past() && self.help() {}
        let called = if in_work {
            let spin_ns = ThreadPoolAttr::default().spin_ns;
            help_briefly(&|| gate.reached() > 0, asks.pool, spin_ns)
        } else {
            // Those in front of it may go on and find no thread of their pool that does not wait here.
            loop {
                let called = gate.wait(1, LOOK_NS, deadline.earlier(Deadline::after(LOOK_AGAIN_NS)));
                if called || deadline.is_past() {
                    break called;
                }
                self.help();
            }
        };
        let is_it = |waiter: &Waiter| matches!(waiter, Waiter::Thread(other) if Arc::ptr_eq(other, &gate));
        if called || self.places.withdraw(is_it).is_none() {
            return Ok(Some(self.admitted()));
        }
        let (name, most) = (asks.name, self.most);
        if in_work {
            return Err(Error::precondition(format!(
                "program '{name}' has as many runs under way as it may have at once, {most}, and this thread must not wait for one to end: it is inside of a task of a pool, of a stream's work or of a run, which they may need"
            )));
        }
        Err(Error::new(
            Code::DeadlineExceeded,
            format!("the time of the run was over before program '{name}' had less than {most} runs under way"),
        ))
    }

    /// Does something of what the runs wait for that have a place or are in front; false if there was nothing to do.
    fn help(&self) -> bool {
        let queues: SmallVec<[Arc<Queue>; 8]> = self.queues.lock().iter().filter_map(Weak::upgrade).collect();
        queues.iter().any(Queue::help)
    }

    /// The caller has a place.
    fn admitted(self: &Arc<Self>) -> Admitted {
        self.accepted.fetch_add(1, Relaxed);
        Admitted { _place: Place { of: Arc::clone(self), queue: None }, _accepted: Accepted(Arc::clone(self)) }
    }

    /// Up to `count` places more, as far as they are free.
    pub fn more(self: &Arc<Self>, count: usize) -> More {
        let count = (0..count).take_while(|_| self.places.try_enter()).count();
        More { of: Arc::clone(self), count }
    }

    /// A place for a run on a stream, or one in the line.
    pub(in crate::graph) fn enter_or_wait(
        self: &Arc<Self>,
        run: &Arc<dyn Queued>,
        queue: &Arc<Queue>,
    ) -> Option<Place> {
        self.queues.lock().push(Arc::downgrade(queue));
        let waiter = || Waiter::Queued(Arc::clone(run), Arc::clone(queue));
        let queue = Some(Arc::downgrade(queue));
        self.places.enter_or_wait(waiter).then(|| Place { of: Arc::clone(self), queue })
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
        let is_it = |waiter: &Waiter| matches!(waiter, Waiter::Queued(other, _) if std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(run)));
        if let Some(Waiter::Queued(_, queue)) = self.places.withdraw(is_it) {
            self.over(&Arc::downgrade(&queue));
            queue.share(None);
        }
    }
}

/// Who waits for a stream whose run is in the line does what is in front of it.
impl Joinable for Admission {
    fn join(self: Arc<Self>, _part: u64, may_work: bool) -> JoinOutcome {
        if may_work && self.help() { JoinOutcome::Worked } else { JoinOutcome::Nobody }
    }
}

/// Semaphore that are given back together.
pub(in crate::graph) struct More {
    of: Arc<Admission>,
    pub count: usize,
}

impl Drop for More {
    fn drop(&mut self) {
        (0..self.count).for_each(|_| drop(Place { of: Arc::clone(&self.of), queue: None }));
    }
}
