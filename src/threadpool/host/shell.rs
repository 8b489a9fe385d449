//! What a pool is made of that takes long to make: its tickets and its regions. It is kept for the next pool.
//!
//! A pool that ends leaves a shell in which nothing is under way: closures hold the pool, and so does whoever is in a
//! region. So the next pool takes it as it is. `J` is what a ticket brings. Only `Life` outlives the pool, by those who are on their way out.

use super::group::Crew;
use super::life::Life;
use super::region::{self, Regions};
use super::tickets::Tickets;
use crate::sync::Mailbox;
use std::mem::ManuallyDrop;
use std::sync::Arc;

pub struct Parts<J: ?Sized> {
    pub(in crate::threadpool) life: Arc<Life>,
    pub(in crate::threadpool) tickets: Tickets<J>,
    pub(in crate::threadpool) regions: Regions,
    pub(in crate::threadpool) crew: Crew,
}

/// A pool's parts. Dropped, it puts them into the store for another pool.
pub struct Shell<J: ?Sized + Send + Sync + 'static> {
    parts: ManuallyDrop<Box<Parts<J>>>,
    store: &'static Store<J>,
}

impl<J: ?Sized + Send + Sync> std::fmt::Debug for Shell<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shell").field("life", &self.life).finish_non_exhaustive()
    }
}

impl<J: ?Sized + Send + Sync> std::ops::Deref for Shell<J> {
    type Target = Parts<J>;

    fn deref(&self) -> &Parts<J> {
        &self.parts
    }
}

/// Most that are kept.
const KEPT: usize = 16;

/// What ended pools have left.
pub struct Store<J: ?Sized>([Mailbox<Box<Parts<J>>>; KEPT]);

impl<J: ?Sized> Store<J> {
    pub const fn new() -> Store<J> {
        Store([const { Mailbox::new() }; KEPT])
    }
}

impl<J: ?Sized + Send + Sync> Shell<J> {
    /// For teams of up to so many threads, the caller among them.
    pub fn new(store: &'static Store<J>, most_threads: usize) -> Shell<J> {
        let most_threads = region::most_threads(most_threads);
        for cell in &store.0 {
            let Some(mut parts) = cell.take() else { continue };
            if parts.regions.most_threads() == most_threads {
                // Somebody may still be on the way out of the last pool.
                match Arc::get_mut(&mut parts.life) {
                    Some(life) => *life = Life::default(),
                    None => parts.life = Arc::default(),
                }
                parts.crew.renew();
                return Shell { parts: ManuallyDrop::new(parts), store };
            }
            // Of another size. If its place was taken meanwhile, it is one too many.
            drop(cell.put(parts));
        }
        let regions = Regions::new(most_threads);
        let parts = Parts { life: Arc::default(), tickets: Tickets::default(), regions, crew: Crew::new() };
        Shell { parts: ManuallyDrop::new(Box::new(parts)), store }
    }
}

impl<J: ?Sized + Send + Sync> Drop for Shell<J> {
    fn drop(&mut self) {
        // SAFETY: taken out once, here, and not used after.
        let parts = unsafe { ManuallyDrop::take(&mut self.parts) };
        let _too_many = self.store.0.iter().try_fold(parts, |parts, cell| match cell.put(parts) {
            Ok(()) => Err(()),
            Err(parts) => Ok(parts),
        });
    }
}
