//! Closures on their way through a pool.
//!
//! A pool gets a C function and one pointer. The pointer is a ticket: which job to run, with which tag, how many times,
//! for which pool. Tickets come from a fixed set in the pool, and from the heap when all are out, so that handing work
//! to a pool usually allocates nothing.
//!
//! Life of a ticket: filled by the sender (which claimed it), then read by as many closures as were sent (`left`),
//! freed by the last of them before it runs its job, so that the job itself can send again. Each closure out holds one
//! reference to the pool, so the set outlives them. A refused ticket is freed by its sender.
//!
//! A job that finds the budget used up may register that it wants a thread (`HelpRequest`): a closure that is done with
//! its own work, and has given back its part of the budget, does such a job before it leaves the pool's thread. So a
//! run that begins while the helpers of the last one are on their way out is not left alone. No job is missed, as with
//! regions (`help_wanted`).

use super::RawTask;
use super::tickets::{MOST_WANTS, Need, Ticket, TicketBody, Wants};
use crate::abi::weir_threadpool_flags as F;
use crate::base::{Object, Ref};
use crate::sync::ambient;
use crate::threadpool::pool::{Job, ThreadPool};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::AcqRel;

impl Object<ThreadPool> {
    /// Asks the pool to run `job.run(tag, 0)` once. False if it refuses or cannot: then it will not run.
    pub fn spawn(&self, job: Arc<dyn Job>, tag: u64, cost_ns: u64, priority: i32) -> bool {
        if !self.door().owe() {
            return false;
        }
        self.add_to_budget(1);
        let accepted = self.send_one((job, tag, Need::Owed), cost_ns, priority);
        if !accepted {
            self.door().settle();
        }
        accepted
    }

    /// As `spawn`, for a helper taken from the budget before. If it is refused, it is given back.
    pub fn spawn_taken(&self, job: Arc<dyn Job>, tag: u64, cost_ns: u64) -> bool {
        self.send_one((job, tag, Need::Wanted), cost_ns, 0)
    }

    fn send_one(&self, what: (Arc<dyn Job>, u64, Need), cost_ns: u64, priority: i32) -> bool {
        let accepted = self.send(what, 1, |task| self.offer(task, cost_ns, priority));
        if !accepted {
            self.give_back_helpers(1);
        }
        accepted
    }

    /// Asks the pool to run `job.run(tag, i)` for each `i <= helpers`, through `parallel_for`: the helpers, taken from
    /// the budget, and one more, usually the caller. Blocks until all ran, unless the pool is ASYNCHRONOUS. False if
    /// refused: then none will run, and the helpers are given back.
    pub fn spawn_bulk_taken(&self, job: Arc<dyn Job>, tag: u64, helpers: usize) -> bool {
        self.add_to_budget(1);
        let need = if self.has_flag(F::WEIR_THREADPOOL_ASYNCHRONOUS) { Need::Wanted } else { Need::Within };
        let offer = |task| self.offer_bulk(task, helpers + 1);
        let accepted = self.send((job, tag, need), helpers + 1, offer);
        if !accepted {
            self.give_back_helpers(helpers + 1);
        }
        accepted
    }

    /// Makes a closure that will run `job.run(tag, i)` when called with i, to be called `count` times, and offers it
    /// to the pool through `offer`.
    fn send(
        &self,
        (job, tag, need): (Arc<dyn Job>, u64, Need),
        count: usize,
        offer: impl FnOnce(RawTask) -> bool,
    ) -> bool {
        let pool = std::ptr::from_ref(self);
        // SAFETY: pools are shared objects (made by Object::shared), and the caller's reference keeps the count above
        // zero while it is raised; each closure gives one reference back in `run`.
        (0..count).for_each(|_| unsafe { Arc::increment_strong_count(pool) });
        self.closures_went_out(count);
        let ticket = self.tickets().fill(TicketBody { job, tag, need, pool: pool.cast() }, count);
        // SAFETY: `run` may be called on any thread, `count` times, and does not unwind.
        let accepted = offer(unsafe { RawTask::new(run, ticket.cast_mut().cast()) });
        if !accepted {
            // SAFETY: refused means that no closure came or will come, so the ticket and its references are this
            // thread's again. The budget is the caller's to give back.
            unsafe {
                drop(self.tickets().take(ticket));
                (0..count).for_each(|_| self.life().closure_left());
                (0..count).for_each(|_| Arc::decrement_strong_count(pool));
            }
        }
        accepted
    }
}

/// The result of `want`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelpAnswer {
    /// The next closure that finishes does it.
    Now,
    /// The budget has a thread after all: it is taken, and the caller sends it.
    Granted,
    /// Not registered: it is registered already, or too many jobs are.
    Not,
}

/// A place among the jobs that want a thread. Dropping it withdraws the job.
pub struct HelpRequest {
    pool: Ref<ThreadPool>,
    place: usize,
}

impl HelpRequest {
    /// `None` if all places are taken.
    pub fn claim(pool: &Ref<ThreadPool>) -> Option<HelpRequest> {
        let place = pool.tickets().wants.free.claim()?;
        Some(HelpRequest { pool: Arc::clone(pool), place })
    }

    /// Registers that this job wants a thread, once. `width`: the pool's number of threads.
    pub fn want(&self, job: Arc<dyn Job>, tag: u64, width: usize) -> HelpAnswer {
        let wants = &self.pool.tickets().wants;
        if wants.jobs[self.place].put((job, tag)).is_err() {
            // It is registered already, or a closure is taking it just now.
            return HelpAnswer::Not;
        }
        wants.help_wanted.set(self.place);
        if self.pool.take_helpers(1, width) == 0 {
            return HelpAnswer::Now;
        }
        // A closure may have taken it already.
        if wants.jobs[self.place].take().is_some() {
            return HelpAnswer::Granted;
        }
        self.pool.give_back_helpers(1);
        HelpAnswer::Now
    }
}

impl Drop for HelpRequest {
    fn drop(&mut self) {
        let wants = &self.pool.tickets().wants;
        wants.help_wanted.clear(self.place);
        drop(wants.jobs[self.place].take());
        wants.free.give_back(self.place);
    }
}

impl Wants<dyn Job> {
    /// Takes a job that wants a thread, and a part of the budget for it. The caller has given back its own part. A part
    /// taken in vain is given back, and then the bits are read once more. `None`: no job wants a thread, or others have
    /// the budget.
    fn next(&self, pool: &Ref<ThreadPool>) -> Option<(Arc<dyn Job>, u64)> {
        loop {
            let wanted = self.help_wanted.wanted_now();
            if wanted == 0 || pool.take_helpers(1, pool.num_threads()) == 0 {
                return None;
            }
            // First the bit, then the job: a job put there in between has its bit set.
            let next = (0..MOST_WANTS).filter(|place| wanted & (1 << place) != 0).find_map(|place| {
                self.help_wanted.clear(place);
                self.jobs[place].take()
            });
            if next.is_some() {
                return next;
            }
            pool.give_back_helpers(1);
        }
    }
}

/// By a closure that is done with its own work and has given back its part of the budget; true if it did something.
fn do_what_is_wanted(pool: &Ref<ThreadPool>) -> bool {
    let mut any = false;
    while let Some((job, tag)) = pool.tickets().wants.next(pool) {
        let _ = catch_unwind(AssertUnwindSafe(|| job.run(tag, 0, pool))).map_err(std::mem::forget);
        pool.give_back_helpers(1);
        any = true;
    }
    any
}

/// The C function that pools call for a ticket.
unsafe extern "C" fn run(arg: *mut c_void, index: i32) {
    let ticket = arg.cast_const().cast::<Ticket<dyn Job>>();
    // SAFETY: the pool calls this once for each closure it accepted, so the ticket is filled. It is only read here,
    // unless this is the last closure.
    let (job, tag, need, pool) = unsafe {
        let Some(body) = (*ticket).body() else { return };
        // This closure's own reference, counted in `send`.
        let pool: Ref<ThreadPool> = Arc::from_raw(body.pool.cast());
        let (job, tag, need) = (Arc::clone(&body.job), body.tag, body.need);
        // ORDERING: AcqRel; the last closure frees what the others have read.
        if (*ticket).left.fetch_sub(1, AcqRel) == 1 {
            drop(pool.tickets().take(ticket));
        }
        (job, tag, need, pool)
    };
    serve(pool, need, |pool| job.run(tag, usize::try_from(index).unwrap_or(0), pool));
}

/// The steps of every closure that holds a reference to the pool and a part of its budget: its own work, then other
/// pending work, and out.
pub(super) fn serve(pool: Ref<ThreadPool>, need: Need, work: impl FnOnce(&Ref<ThreadPool>)) {
    let life = pool.life();
    {
        let inside = life.door.enter();
        let _frame = ambient::enter(ambient::ActiveWork::Pool(pool.id()));
        if (inside.is_some() || need != Need::Wanted)
            && let Err(payload) = catch_unwind(AssertUnwindSafe(|| work(&pool)))
        {
            // Its destructor could panic again.
            std::mem::forget(payload);
        }
        if need == Need::Owed {
            life.door.settle();
        }
        pool.give_back_helpers(1);
        // Not on top of other library work, which would have to wait for it.
        if inside.is_some() && ambient::depth() == 1 {
            loop {
                do_what_is_wanted(&pool);
                // While it had a part of the budget for these, a run may have found none left.
                let had_some = pool.hands().iter().fold(false, |had_some, hand| hand(&pool) | had_some);
                if !had_some || !do_what_is_wanted(&pool) {
                    break;
                }
            }
        }
        drop(inside);
        drop(pool);
    }
    life.closure_left();
}
