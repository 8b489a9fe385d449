//! Closures on their way through a pool.
//!
//! A pool gets a C function and one pointer. The pointer is a ticket: which job to run, with which tag, how many
//! times, for which pool. Tickets come from a fixed set in the pool, and from the heap when all are out, so that
//! handing work to a pool allocates nothing as a rule.
//!
//! Life of a ticket: filled by the sender (who claimed it), then read by as many closures as were sent (`left`),
//! freed by the last of them before it runs its job, so that the job itself can send again. Each closure out holds
//! one reference to the pool, so the set outlives them. A refused ticket is freed by its sender.
//!
//! A job that finds the budget used up may say that it wants a thread all the same (`Want`): a closure that is done with
//! what it came for, and has given back its part of the budget, does such a job before it leaves the pool's thread. So
//! a run that begins while the helpers of the last one are on their way out is not left alone. Nobody is missed, as on
//! the board of regions (`sync::Board`).

use super::{Task, group, region};
use crate::base::{Object, Ref};
use crate::sync::{Board, HandOff, Slots, ambient};
use crate::threadpool::ThreadPool;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// Something that a pool's thread can do for the library. It must not panic; if it does, the panic ends here and
/// the job counts as done.
pub trait Job: Send + Sync {
    /// `pool` is the one that was asked; `index` counts the closures of one `parallel_for`.
    fn run(self: Arc<Self>, tag: u64, index: usize, pool: &Ref<ThreadPool>);
}

/// Whether a closure's work has to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Others do it if the closure does not come, or comes too late: then it does nothing. That is so once the pool is
    /// closed (`weir_threadpool_close`): it may come when the host's pool is no more, and all that it touches is the
    /// library's.
    Wanted,
    /// The same, and the call that brings it does not return before it has: it is inside of the door.
    Within,
    /// Nobody else does it. A pool is not closed before it is done.
    Owed,
}

struct Ticket {
    /// Closures that have not come yet.
    left: AtomicUsize,
    body: UnsafeCell<Option<Body>>,
    /// Index in the fixed set; None = from the heap.
    place: Option<usize>,
}

struct Body {
    job: Arc<dyn Job>,
    tag: u64,
    need: Need,
    pool: *const Object<ThreadPool>,
}

const PLACES: usize = Slots::MAX;
/// Jobs that may want a thread at once.
const MOST_WANTS: usize = 16;

/// A pool's tickets.
pub struct Tickets {
    free: Slots,
    fixed: Box<[Ticket]>,
    wants: Wants,
}

// SAFETY: a ticket's body is written by the sender that claimed it, before the pool gets it; after that it is only
// read, until the last closure takes it.
unsafe impl Sync for Tickets {}
// SAFETY: as above; the raw pointer in it is a counted reference.
unsafe impl Send for Tickets {}

impl std::fmt::Debug for Tickets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tickets").field("free", &self.free).finish()
    }
}

impl Default for Tickets {
    fn default() -> Self {
        let ticket = |place| Ticket { left: AtomicUsize::new(0), body: UnsafeCell::new(None), place: Some(place) };
        Tickets { free: Slots::new(PLACES), fixed: (0..PLACES).map(ticket).collect(), wants: Wants::default() }
    }
}

impl Tickets {
    /// Makes a closure that will run `job.run(tag, i)` when called with i, to be called `count` times, and offers it
    /// to the pool through `offer`.
    pub fn send(
        &self,
        pool: &Object<ThreadPool>,
        (job, tag, need): (Arc<dyn Job>, u64, Need),
        count: usize,
        offer: impl FnOnce(Task) -> bool,
    ) -> bool {
        let ticket: *const Ticket = match self.free.claim() {
            Some(place) => &raw const self.fixed[place],
            None => {
                Box::into_raw(Box::new(Ticket { left: AtomicUsize::new(0), body: UnsafeCell::new(None), place: None }))
            }
        };
        let pool = std::ptr::from_ref(pool);
        // SAFETY: the ticket is this thread's until the pool gets it. Pools are shared objects (made by
        // Object::shared), and the caller's reference keeps the count above zero while it is raised; each closure
        // gives one reference back in `run`.
        unsafe {
            (*ticket).left.store(count, Relaxed);
            *(*ticket).body.get() = Some(Body { job, tag, need, pool });
            (0..count).for_each(|_| Arc::increment_strong_count(pool));
            (*pool).closures_went_out(count);
        }
        // SAFETY: `run` may be called on any thread, `count` times, and does not unwind.
        let accepted = offer(unsafe { Task::new(run, ticket.cast_mut().cast()) });
        if !accepted {
            // SAFETY: refused means that no closure came or will come, so the ticket and its references are this
            // thread's again. The budget is the caller's to give back.
            unsafe {
                drop(self.take(ticket));
                (0..count).for_each(|_| (*pool).life().closure_left());
                (0..count).for_each(|_| Arc::decrement_strong_count(pool));
            }
        }
        accepted
    }

    /// Empties and frees a ticket.
    ///
    /// # Safety
    /// The calling thread is the only one that can still reach the ticket.
    unsafe fn take(&self, ticket: *const Ticket) -> Option<Body> {
        // SAFETY: as demanded of the caller.
        let body = unsafe { (*(*ticket).body.get()).take() };
        // SAFETY: as demanded of the caller; a ticket without a place came from Box::into_raw in `send`.
        match unsafe { (*ticket).place } {
            Some(place) => self.free.give_back(place),
            None => {
                // SAFETY: as above.
                drop(unsafe { Box::from_raw(ticket.cast_mut()) });
            }
        }
        body
    }
}

/// Jobs that want a thread, with their tags.
struct Wants {
    free: Slots,
    jobs: [HandOff<(Arc<dyn Job>, u64)>; MOST_WANTS],
    board: Board,
}

impl Default for Wants {
    fn default() -> Self {
        Wants { free: Slots::new(MOST_WANTS), jobs: [const { HandOff::new() }; MOST_WANTS], board: Board::new() }
    }
}

/// The answer to a job that wants a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The next closure that is done does it.
    Now,
    /// The budget has a thread after all: it is taken, and the caller's to send.
    Granted,
    /// Nothing: it is wanted already, or too many jobs want one.
    Not,
}

/// A place among the jobs that want a thread. Dropped, the job does not want one any more.
pub struct Want {
    pool: Ref<ThreadPool>,
    place: usize,
}

impl Want {
    /// None if all places are taken.
    pub fn claim(pool: &Ref<ThreadPool>) -> Option<Want> {
        let place = pool.tickets().wants.free.claim()?;
        Some(Want { pool: Arc::clone(pool), place })
    }

    /// Wants a thread for this job, once. `width`: how many threads the pool has.
    pub fn want(&self, job: Arc<dyn Job>, tag: u64, width: usize) -> Wanted {
        let wants = &self.pool.tickets().wants;
        if wants.jobs[self.place].put((job, tag)).is_err() {
            // It was wanted before, and nobody has come since, or comes just now.
            return Wanted::Not;
        }
        wants.board.put_up(self.place);
        if self.pool.take_helpers(1, width) == 0 {
            return Wanted::Now;
        }
        // Some closure may have it already.
        if wants.jobs[self.place].take().is_some() {
            return Wanted::Granted;
        }
        self.pool.give_back_helpers(1);
        Wanted::Now
    }
}

impl Drop for Want {
    fn drop(&mut self) {
        let wants = &self.pool.tickets().wants;
        wants.board.take_down(self.place);
        drop(wants.jobs[self.place].take());
        wants.free.give_back(self.place);
    }
}

impl Wants {
    /// Takes a job that wants a thread, and a part of the budget for it. The caller has given back the part that it had.
    /// A part that was taken in vain is given back, and the board is looked at once more after that. None: no job wants
    /// a thread, or others have the budget.
    fn next(&self, pool: &Ref<ThreadPool>) -> Option<(Arc<dyn Job>, u64)> {
        loop {
            let wanted = self.board.wanted_now();
            if wanted == 0 || pool.take_helpers(1, pool.num_threads()) == 0 {
                return None;
            }
            // First the bit, and then the job: one that is put there between the two has its bit up.
            let next = (0..MOST_WANTS).filter(|place| wanted & (1 << place) != 0).find_map(|place| {
                self.board.take_down(place);
                self.jobs[place].take()
            });
            if next.is_some() {
                return next;
            }
            pool.give_back_helpers(1);
        }
    }
}

/// By a closure that is done with what it came for and has given back its part of the budget; true if it did something.
fn do_what_is_wanted(pool: &Ref<ThreadPool>) -> bool {
    let mut any = false;
    while let Some((job, tag)) = pool.tickets().wants.next(pool) {
        let _ = catch_unwind(AssertUnwindSafe(|| job.run(tag, 0, pool))).map_err(std::mem::forget);
        pool.give_back_helpers(1);
        any = true;
    }
    any
}

/// What pools call for a ticket.
unsafe extern "C" fn run(arg: *mut c_void, index: i32) {
    let ticket = arg.cast_const().cast::<Ticket>();
    // SAFETY: the pool calls this once for each closure it accepted, so the ticket is filled. It is only read here,
    // unless this is the last closure.
    let (job, tag, need, pool) = unsafe {
        let Some(body) = (*(*ticket).body.get()).as_ref() else { return };
        // This closure's own reference, counted in `send`.
        let pool: Ref<ThreadPool> = Arc::from_raw(body.pool);
        let (job, tag, need) = (Arc::clone(&body.job), body.tag, body.need);
        // ORDERING: AcqRel; the last closure frees what the others have read.
        if (*ticket).left.fetch_sub(1, AcqRel) == 1 {
            drop(pool.tickets().take(ticket));
        }
        (job, tag, need, pool)
    };
    serve(pool, need, |pool| job.run(tag, usize::try_from(index).unwrap_or(0), pool));
}

/// What every closure does that holds a reference to the pool and a part of its budget: the work, then whatever else is
/// wanted, and out.
pub(super) fn serve(pool: Ref<ThreadPool>, need: Need, work: impl FnOnce(&Ref<ThreadPool>)) {
    let life = pool.life();
    {
        let inside = life.door.enter();
        let _frame = ambient::enter(ambient::Work::Pool(pool.id()));
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
        // Not on top of other work of the library's, which would have to wait for it.
        if inside.is_some() && ambient::depth() == 1 {
            loop {
                do_what_is_wanted(&pool);
                // While it had a part of the budget for these, a run may have found that none was left.
                let had_some = region::lend_a_hand(&pool) | group::lend_a_hand(&pool);
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
