//! A post: one of the few places where a trace that records is found, and counted while somebody writes to it.
//!
//! All of a post is one word: two flags, and how many writers are there. A writer comes by adding itself, and looks at
//! the word as it was; one that finds no trace leaves again. Whoever takes the last reason to keep the trace away, the
//! trace's owner or a writer, frees it: exactly one thread sees the count at zero with GONE and takes GONE off.
//!
//! | word              | meaning                          | left by                                              |
//! |-------------------|----------------------------------|------------------------------------------------------|
//! | 0                 | free                             | TAKEN by `take`                                      |
//! | TAKEN             | a trace is put here, or stopped  | ON by `open`; GONE by `leave_to_writers`             |
//! | TAKEN, ON         | it records, and writers may come | TAKEN by `close`                                     |
//! | TAKEN, GONE       | its owner has gone, writers not  | TAKEN by the last one, who frees it; then 0          |
//!
//! A child of fork finds its parent's posts as they were; `forget` makes them free, whatever they hold.
#![forbid(unsafe_code)]

use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::*;

const TAKEN: u32 = 1 << 31;
const ON: u32 = 1 << 30;
const GONE: u32 = 1 << 29;
const FLAGS: u32 = TAKEN | ON | GONE;

#[derive(Debug)]
pub struct Post(AtomicU32);

impl Post {
    #[cfg(not(loom))]
    pub const fn new() -> Post {
        Post(AtomicU32::new(0))
    }

    #[cfg(loom)]
    pub fn new() -> Post {
        Post(AtomicU32::new(0))
    }

    /// Takes a free post; false if it is not free.
    pub fn take(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `free`: the last trace is gone.
        self.0.compare_exchange(0, TAKEN, Acquire, Relaxed).is_ok()
    }

    /// From here on writers may come.
    pub fn open(&self) {
        // ORDERING: Release pairs with the Acquire in `enter`: they see what was put here.
        self.0.fetch_or(ON, Release);
    }

    /// No more writers come. Those that are there stay.
    pub fn close(&self) {
        self.0.fetch_and(!ON, Relaxed);
    }

    /// A writer comes; false if there is no trace that records. It leaves in either case.
    pub fn enter(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `open`. One that finds nothing must leave, too: it may be the
        // last.
        self.0.fetch_add(1, Acquire) & ON != 0
    }

    /// A writer leaves. True: the owner has gone, and this writer was the last: it frees what is here, and then the
    /// post.
    #[must_use]
    pub fn leave(&self) -> bool {
        // ORDERING: AcqRel; Release: what this writer did comes before the end, Acquire: if this is the end.
        let before = self.0.fetch_sub(1, AcqRel);
        before == (TAKEN | GONE) + 1 && self.ends()
    }

    /// The owner goes. True if no writer is there: then the owner frees what is here, and then the post.
    #[must_use]
    pub fn leave_to_writers(&self) -> bool {
        self.close();
        let before = self.0.fetch_or(GONE, AcqRel);
        before & !FLAGS == 0 && self.ends()
    }

    /// Of all that see the count at zero, one takes the flag. Another writer may come and find nothing meanwhile; it
    /// sees the count at zero when it leaves.
    fn ends(&self) -> bool {
        self.0.compare_exchange(TAKEN | GONE, TAKEN, AcqRel, Relaxed).is_ok()
    }

    /// The memory that was here is freed. Writers that find nothing may be on their way out.
    pub fn free(&self) {
        self.0.fetch_and(!TAKEN, Release);
    }

    /// In a child of fork, whose one thread calls this: nobody is here.
    pub fn forget(&self) {
        self.0.store(0, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_owner_or_the_last_writer_frees_it() {
        let post = Post::new();
        assert!(!post.enter() && !post.leave());
        assert!(post.take() && !post.enter() && !post.leave());
        post.open();
        assert!(post.enter() && post.enter());
        post.close();
        assert!(!post.enter() && !post.leave() && !post.leave());
        assert!(!post.leave_to_writers());
        assert!(post.leave() && !post.take());
        post.free();
        assert!(post.take());
        post.open();
        assert!(post.leave_to_writers());
        post.free();
        assert!(post.take());
        post.forget();
        assert!(post.take());
    }
}
