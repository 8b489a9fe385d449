//! The expensive parts of a pool, its tickets and regions, kept for the next pool.
//!
//! A pool that ends leaves an idle shell: closures hold the pool, and so do threads in a region. So the next pool takes
//! it as it is. `J` is a ticket's job. Only `PoolLife` outlives the pool, for closures on their way out.

use super::group::Crew;
use super::life::PoolLife;
use super::region::{self, ParallelRegions};
use super::tickets::Tickets;
use crate::sync::Mailbox;
use std::mem::ManuallyDrop;
use std::sync::Arc;

pub struct ShellParts<J: ?Sized> {
    pub(in crate::threadpool) life: Arc<PoolLife>,
    pub(in crate::threadpool) tickets: Tickets<J>,
    pub(in crate::threadpool) regions: ParallelRegions,
    pub(in crate::threadpool) crew: Crew,
}

/// A pool's parts. Dropped, it puts them into the store for another pool.
pub struct Shell<J: ?Sized + Send + Sync + 'static> {
    parts: ManuallyDrop<Box<ShellParts<J>>>,
    store: &'static ShellStore<J>,
}

impl<J: ?Sized + Send + Sync> std::fmt::Debug for Shell<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shell").field("life", &self.life).finish_non_exhaustive()
    }
}

impl<J: ?Sized + Send + Sync> std::ops::Deref for Shell<J> {
    type Target = ShellParts<J>;

    fn deref(&self) -> &ShellParts<J> {
        &self.parts
    }
}

/// Most that are kept.
const KEPT: usize = 16;

/// The shells of ended pools.
pub struct ShellStore<J: ?Sized>([Mailbox<Box<ShellParts<J>>>; KEPT]);

impl<J: ?Sized> ShellStore<J> {
    pub const fn new() -> ShellStore<J> {
        ShellStore([const { Mailbox::new() }; KEPT])
    }
}

impl<J: ?Sized + Send + Sync> Shell<J> {
    /// For teams of up to so many threads, the caller among them.
    pub fn new(store: &'static ShellStore<J>, most_threads: usize) -> Shell<J> {
        let most_threads = region::most_threads(most_threads);
        for cell in &store.0 {
            let Some(mut parts) = cell.take() else { continue };
            if parts.regions.most_threads() == most_threads {
                // A closure may still be on its way out of the last pool.
                match Arc::get_mut(&mut parts.life) {
                    Some(life) => *life = PoolLife::default(),
                    None => parts.life = Arc::default(),
                }
                parts.crew.renew();
                return Shell { parts: ManuallyDrop::new(parts), store };
            }
            // Of another size. If its cell was filled meanwhile, it is dropped.
            drop(cell.put(parts));
        }
        let regions = ParallelRegions::new(most_threads);
        let parts = ShellParts { life: Arc::default(), tickets: Tickets::default(), regions, crew: Crew::new() };
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
