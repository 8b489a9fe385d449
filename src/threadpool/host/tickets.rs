//! A pool's storage of tickets, and of jobs that want a thread (see `ticket`). `J` is their job.

use super::help_wanted::HelpWanted;
use crate::sync::{Mailbox, Slots};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Whether a closure's work must be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Optional: others do it if the closure does not come, or comes too late and does nothing. After the pool is
    /// closed (`weir_threadpool_close`) it may come when the host's pool is gone, and touches only the library's
    /// memory.
    Wanted,
    /// Optional, and inside the door: the call that brings it does not return before it.
    Within,
    /// Nobody else does it. Closing the pool waits for it.
    Owed,
}

/// The target of a closure's pointer.
pub(super) struct Ticket<J: ?Sized> {
    /// Closures that have not arrived yet.
    pub(super) left: AtomicUsize,
    body: UnsafeCell<Option<TicketBody<J>>>,
    /// Index in the fixed set; None = from the heap.
    place: Option<usize>,
}

/// A ticket's content: `job` with this tag, for a pool to which each closure has a counted reference.
pub(super) struct TicketBody<J: ?Sized> {
    pub(super) job: Arc<J>,
    pub(super) tag: u64,
    pub(super) need: Need,
    pub(super) pool: *const (),
}

const PLACES: usize = Slots::MAX;
/// Jobs that may want a thread at once.
pub(super) const MOST_WANTS: usize = 16;

impl<J: ?Sized> Ticket<J> {
    fn new(place: Option<usize>) -> Ticket<J> {
        Ticket { left: AtomicUsize::new(0), body: UnsafeCell::new(None), place }
    }

    /// Its content.
    ///
    /// # Safety
    /// It was filled, and not all of its closures have arrived.
    pub(super) unsafe fn body(&self) -> Option<&TicketBody<J>> {
        // SAFETY: as demanded of the caller: it is only read now.
        unsafe { (*self.body.get()).as_ref() }
    }
}

/// A pool's tickets.
pub struct Tickets<J: ?Sized> {
    free: Slots,
    fixed: Box<[Ticket<J>]>,
    pub(super) wants: Wants<J>,
}

// SAFETY: a ticket's body is written by the sender that claimed it, before the pool gets it; after that it is only
// read, until the last closure takes it.
unsafe impl<J: ?Sized + Send + Sync> Sync for Tickets<J> {}
// SAFETY: as above; the raw pointer in it is a counted reference.
unsafe impl<J: ?Sized + Send + Sync> Send for Tickets<J> {}

impl<J: ?Sized> std::fmt::Debug for Tickets<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tickets").field("free", &self.free).finish()
    }
}

impl<J: ?Sized> Default for Tickets<J> {
    fn default() -> Self {
        let fixed = (0..PLACES).map(|place| Ticket::new(Some(place))).collect();
        Tickets { free: Slots::new(PLACES), fixed, wants: Wants::default() }
    }
}

impl<J: ?Sized> Tickets<J> {
    /// A ticket for `count` closures.
    pub(super) fn fill(&self, body: TicketBody<J>, count: usize) -> *const Ticket<J> {
        let ticket: *const Ticket<J> = match self.free.claim() {
            Some(place) => &raw const self.fixed[place],
            None => Box::into_raw(Box::new(Ticket::new(None))),
        };
        // SAFETY: the ticket is this thread's until the pool gets it.
        unsafe {
            (*ticket).left.store(count, Relaxed);
            *(*ticket).body.get() = Some(body);
        }
        ticket
    }

    /// Empties and frees a ticket.
    ///
    /// # Safety
    /// The calling thread is the only one that can still reach the ticket.
    pub(super) unsafe fn take(&self, ticket: *const Ticket<J>) -> Option<TicketBody<J>> {
        // SAFETY: as demanded of the caller.
        let body = unsafe { (*(*ticket).body.get()).take() };
        // SAFETY: as demanded of the caller; a ticket without a place came from Box::into_raw in `fill`.
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
pub(super) struct Wants<J: ?Sized> {
    pub(super) free: Slots,
    pub(super) jobs: [Mailbox<(Arc<J>, u64)>; MOST_WANTS],
    pub(super) help_wanted: HelpWanted,
}

impl<J: ?Sized> Default for Wants<J> {
    fn default() -> Self {
        Wants {
            free: Slots::new(MOST_WANTS),
            jobs: [const { Mailbox::new() }; MOST_WANTS],
            help_wanted: HelpWanted::new(),
        }
    }
}
