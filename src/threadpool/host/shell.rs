//! What a pool is made of that takes long to make: its tickets and its regions. It is kept for the next pool.
//!
//! A pool that ends leaves a shell in which nothing is under way: closures hold the pool, and so does whoever is in a
//! region. So the next pool takes it as it is. Only `Life` outlives the pool, by those who are on their way out.

use super::group::Crew;
use super::region::{self, Regions};
use super::ticket::Tickets;
use crate::sync::{Budget, Door, Gate, HandOff};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

/// What is known of a pool beyond its end.
#[derive(Debug, Default)]
pub struct Life {
    /// Closures that hold a reference to the pool: queued, running, or on their way out.
    pub(in crate::threadpool) closures: AtomicUsize,
    /// Closures that have not done their work.
    pub(in crate::threadpool) budget: Budget,
    pub(in crate::threadpool) gone: AtomicBool,
    /// To the host's functions. Calls of them and closures that have begun are inside; closures that must be run are
    /// owed.
    pub(in crate::threadpool) door: Door,
    /// Whether somebody sees to the end of the closed pool, and when that has come.
    pub(in crate::threadpool) ending: AtomicBool,
    pub(in crate::threadpool) ended: Gate,
}

impl Life {
    /// A closure has let go of the pool.
    pub(in crate::threadpool) fn closure_left(&self) {
        // ORDERING: Release pairs with the Acquire in `Watch::wait`.
        self.closures.fetch_sub(1, Release);
    }
}

#[derive(Debug)]
pub struct Parts {
    pub(in crate::threadpool) life: Arc<Life>,
    pub(in crate::threadpool) tickets: Tickets,
    pub(in crate::threadpool) regions: Regions,
    pub(in crate::threadpool) crew: Crew,
}

/// A pool's parts. Dropped, it keeps them for another pool.
#[derive(Debug)]
pub struct Shell(ManuallyDrop<Box<Parts>>);

impl std::ops::Deref for Shell {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// Most that are kept.
const KEPT: usize = 16;
static STORE: [HandOff<Box<Parts>>; KEPT] = [const { HandOff::new() }; KEPT];

impl Shell {
    /// For teams of up to so many threads, the caller among them.
    pub fn new(most_threads: usize) -> Shell {
        let most_threads = region::most_threads(most_threads);
        for cell in &STORE {
            let Some(mut parts) = cell.take() else { continue };
            if parts.regions.most_threads() == most_threads {
                // Somebody may still be on the way out of the last pool.
                match Arc::get_mut(&mut parts.life) {
                    Some(life) => *life = Life::default(),
                    None => parts.life = Arc::default(),
                }
                parts.crew.renew();
                return Shell(ManuallyDrop::new(parts));
            }
            // Of another size. If its place was taken meanwhile, it is one too many.
            drop(cell.put(parts));
        }
        let regions = Regions::new(most_threads);
        let parts = Parts { life: Arc::default(), tickets: Tickets::default(), regions, crew: Crew::new() };
        Shell(ManuallyDrop::new(Box::new(parts)))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // SAFETY: taken out once, here, and not used after.
        let parts = unsafe { ManuallyDrop::take(&mut self.0) };
        let _too_many = STORE.iter().try_fold(parts, |parts, cell| match cell.put(parts) {
            Ok(()) => Err(()),
            Err(parts) => Ok(parts),
        });
    }
}
