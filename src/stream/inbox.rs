//! Many producers, one consumer at a time; no lock, and no allocation while at most 64 items wait.
//!
//! Producers push onto a linked stack by compare-exchange; the consumer takes the whole stack by one swap and
//! reverses it, so items come out in the order of their pushes. Nodes come from a fixed set of 64 (claimed by bit),
//! and from the heap when all are taken. A node is owned by its producer until the push, by the inbox until the
//! swap, then by the consumer, who gives it back as soon as the item is out. There is no A-B-A: producers never
//! read a node that is not theirs, and the consumer takes all at once.

use crate::sync::Slots;
use crate::sync::atomic::AtomicPtr;
use crate::sync::atomic::Ordering::*;
use std::cell::UnsafeCell;
use std::ptr;

const PLACES: usize = Slots::MAX;

#[derive(Debug)]
struct InboxNode<T> {
    next: *mut InboxNode<T>,
    item: Option<T>,
    /// Index in the fixed set; None = from the heap.
    place: Option<usize>,
}

/// The producers' side, and the store of nodes.
#[derive(Debug)]
pub struct Inbox<T> {
    head: AtomicPtr<InboxNode<T>>,
    free: Slots,
    nodes: Box<[UnsafeCell<InboxNode<T>>]>,
}

// SAFETY: nodes are reached by one owner at a time, as the module says; items are Send.
unsafe impl<T: Send> Sync for Inbox<T> {}
// SAFETY: as above; the raw pointers are to nodes that the inbox owns.
unsafe impl<T: Send> Send for Inbox<T> {}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        let node = |place| UnsafeCell::new(InboxNode { next: ptr::null_mut(), item: None, place: Some(place) });
        Inbox {
            head: AtomicPtr::new(ptr::null_mut()),
            free: Slots::new(PLACES),
            nodes: (0..PLACES).map(node).collect(),
        }
    }
}

impl<T> Inbox<T> {
    /// Adds an item at the end.
    pub fn push(&self, item: T) {
        let node = match self.free.claim() {
            Some(place) => {
                let node = self.nodes[place].get();
                // SAFETY: the place was claimed, so the node is this thread's.
                unsafe { (*node).item = Some(item) };
                node
            }
            None => Box::into_raw(Box::new(InboxNode { next: ptr::null_mut(), item: Some(item), place: None })),
        };
        // ORDERING: SeqCst, see `guard` (push against release); it also publishes the node to the swap in `take_all`.
        let mut head = self.head.load(Relaxed);
        loop {
            // SAFETY: not pushed yet, so still this thread's.
            unsafe { (*node).next = head };
            match self.head.compare_exchange_weak(head, node, SeqCst, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Whether nothing was pushed since the last `take_all`. ORDERING: SeqCst, see `guard` (push against release).
    pub fn is_empty(&self) -> bool {
        self.head.load(SeqCst).is_null()
    }

    /// Takes everything pushed so far and hands it to `each`, oldest first. One consumer at a time: the holder of the
    /// queue's drain lock, or the dedicated thread.
    pub fn take_all(&self, mut each: impl FnMut(T)) {
        // ORDERING: SeqCst; the Acquire half pairs with the publication in `push`.
        let mut newest = self.head.swap(ptr::null_mut(), SeqCst);
        let mut oldest = ptr::null_mut();
        while !newest.is_null() {
            // SAFETY: the swap made all these nodes this thread's.
            unsafe {
                let next = (*newest).next;
                (*newest).next = oldest;
                oldest = newest;
                newest = next;
            }
        }
        while !oldest.is_null() {
            // SAFETY: as above; the node is given back only after its last use.
            let (item, place, next) = unsafe { ((*oldest).item.take(), (*oldest).place, (*oldest).next) };
            match place {
                Some(place) => self.free.give_back(place),
                // SAFETY: it came from Box::into_raw in `push`.
                None => drop(unsafe { Box::from_raw(oldest) }),
            }
            if let Some(item) = item {
                each(item);
            }
            oldest = next;
        }
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        self.take_all(drop);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn items_come_out_in_order_beyond_the_fixed_places() {
        let inbox = Inbox::default();
        (0..200).for_each(|i| inbox.push(i));
        let mut seen = Vec::new();
        inbox.take_all(|i| seen.push(i));
        assert_eq!(seen, (0..200).collect::<Vec<_>>());
        assert!(inbox.is_empty());
    }

    #[test]
    fn every_producers_items_keep_their_order() {
        let inbox = Arc::new(Inbox::default());
        let producers: Vec<_> = (0..4u64)
            .map(|p| {
                let inbox = Arc::clone(&inbox);
                std::thread::spawn(move || (0..5000u64).for_each(|i| inbox.push((p, i))))
            })
            .collect();
        let mut next = [0u64; 4];
        while next != [5000; 4] {
            inbox.take_all(|(p, i)| {
                assert_eq!(next[p as usize], i);
                next[p as usize] += 1;
            });
        }
        producers.into_iter().for_each(|p| p.join().unwrap());
    }

    #[test]
    fn what_was_not_taken_is_dropped() {
        let item = Arc::new(());
        let inbox = Inbox::default();
        (0..100).for_each(|_| inbox.push(Arc::clone(&item)));
        drop(inbox);
        assert_eq!(Arc::strong_count(&item), 1);
    }
}
