//! Posts, with loom.

use super::post::Post;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::*;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// The memory that a post keeps: read by writers, written by the one who frees it.
struct Kept {
    post: Post,
    value: UnsafeCell<u32>,
    freed: AtomicU32,
}

// SAFETY: of a model, which finds accesses that are not ordered.
unsafe impl Sync for Kept {}
// SAFETY: as above.
unsafe impl Send for Kept {}

impl Kept {
    fn free(&self) {
        // SAFETY: the model says if another thread is at it.
        self.value.with_mut(|value| unsafe { *value = 0 });
        self.freed.fetch_add(1, Relaxed);
        self.post.free();
    }

    fn write(&self) {
        if self.post.enter() {
            // SAFETY: as above.
            self.value.with(|value| assert_eq!(unsafe { *value }, 7, "a trace that is freed"));
        }
        if self.post.leave() {
            self.free();
        }
    }
}

#[test]
fn models_of_posts_a_trace_is_freed_once_behind_its_last_writer() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let kept = Arc::new(Kept { post: Post::new(), value: UnsafeCell::new(0), freed: AtomicU32::new(0) });
        assert!(kept.post.take() && !kept.post.take());
        // SAFETY: no other thread is there.
        kept.value.with_mut(|value| unsafe { *value = 7 });
        kept.post.open();
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let kept = Arc::clone(&kept);
                thread::spawn(move || kept.write())
            })
            .collect();
        if kept.post.leave_to_writers() {
            kept.free();
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(kept.freed.load(Relaxed), 1);
        assert!(kept.post.take(), "it is not free again");
    });
}
