//! Tracks items that a device executes in order without reporting each: *fences* are events behind some of them.
//!
//! This is the data under a lock; its users supply the steps around it and the count of issued items. Only items with
//! something to release are added: the others are numbers, and issuing one of those needs no lock.
//!
//! - *The issuer* adds the item, counts it, and then puts a fence behind it if one is wanted: by threads that asked, or
//!   because `STRIDE` items have none.
//! - *A waiter* for an item asks for a fence at or behind it. If that item is not issued yet, the request is noted, and
//!   its issuer finds it. For issuers that count without the lock there is a flag outside (`has_wishes`): the waiter
//!   sets it and then reads the count again, the issuer counts and then reads the flag, each with a memory fence
//!   between its two steps. So one of them sees the other.
//! - *A looker* begins with the oldest fence, queries its event without the lock, and comes back with the answer. One
//!   thread at a time does that, so that items complete in order. Another one that comes meanwhile leaves a note and
//!   goes, and the looker must look once more: else an event that was reached between the two, as the other one has
//!   seen, would be missed.
//! - A look can also be at all items, without a fence, where the device can report that it is idle. It takes the fences
//!   that were there before the device was asked: behind one that came later, for the same item, the device may already
//!   have more work in front of its event, which is in flight then.
//! - When a fence is reached, the items up to it are taken out one by one and released without the lock; until the last
//!   one is, nobody else looks.
#![forbid(unsafe_code)]

use crate::base::Fifo;

/// Distance in items between two fences that nobody asked for.
const STRIDE: u64 = 64;

#[derive(Debug)]
pub struct Fence<E> {
    /// The number of the item that it is behind; the first item is 1.
    pub item: u64,
    pub event: E,
    /// Whether the event was made for this.
    pub is_own: bool,
}

/// The result of a request for a fence.
#[derive(Debug, PartialEq, Eq)]
pub enum FenceRequest {
    /// There is one already, the item is over, or there will be one when it is issued.
    Seen,
    /// A fence must be recorded now, behind this item, which is the last one.
    Wanted(u64),
}

/// The result of a look.
#[derive(Debug)]
pub enum Look<E> {
    /// There is nothing to see now.
    Over,
    /// Look again: another thread has left a note.
    Again,
    /// So many items are to be taken out, and then the look has an `end`.
    Reached(Fence<E>, u64),
}

/// The result of a look at all items.
#[derive(Debug, PartialEq, Eq)]
pub enum AllLook {
    /// Not all are over.
    Over,
    /// Not all are over, and another thread has left a note: look at the oldest fence.
    Again,
    /// So many items are to be taken out, and then the look has an `end`.
    Reached(u64),
}

#[derive(Debug)]
pub struct Fences<T, E> {
    /// The last item that is over.
    over: u64,
    /// Items that are not taken out and have something to release, with their numbers, oldest first.
    items: Fifo<(u64, T)>,
    fences: Fifo<Fence<E>>,
    /// Items behind which a fence is wanted as soon as they are issued; ascending.
    asked: Vec<u64>,
    is_looking: bool,
    /// A look at all items takes the fences up to this item.
    takes: u64,
    /// A thread came while another one was looking.
    has_word: bool,
}

impl<T, E> Default for Fences<T, E> {
    fn default() -> Self {
        Fences {
            over: 0,
            items: Fifo::default(),
            fences: Fifo::default(),
            asked: Vec::new(),
            is_looking: false,
            takes: 0,
            has_word: false,
        }
    }
}

impl<T, E: Clone> Fences<T, E> {
    /// Items in flight, out of `issued`.
    pub fn count(&self, issued: u64) -> u64 {
        issued.saturating_sub(self.over)
    }

    /// The number of the last item that is over.
    pub fn over(&self) -> u64 {
        self.over
    }

    /// Adds item `number`, which has something to release.
    pub fn add(&mut self, number: u64, item: T) {
        self.items.push_back((number, item));
    }

    /// Item `number` was issued: whether a fence is wanted behind it.
    pub fn is_wanted(&mut self, number: u64) -> bool {
        let asked = self.asked.iter().take_while(|&&asked| asked <= number).count();
        self.asked.drain(..asked);
        let is_covered = self.fences.back().is_some_and(|last| last.item >= number);
        (asked > 0 || Self::is_stride(number)) && !is_covered
    }

    /// Whether a fence is due behind item `number` without a request.
    pub fn is_stride(number: u64) -> bool {
        number.is_multiple_of(STRIDE)
    }

    /// Whether a thread waits for a fence that is not recorded yet.
    pub fn has_wishes(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Puts a fence behind an item that is not before the last fence's.
    pub fn put(&mut self, fence: Fence<E>) {
        self.fences.push_back(fence);
    }

    /// Requests a fence for item `target`; `issued` reads the count of issued items, and `announce` sets the flag that
    /// there are requests.
    pub fn ask(&mut self, target: u64, issued: impl Fn() -> u64, announce: impl FnOnce()) -> FenceRequest {
        let mut now = issued();
        if now < target {
            if let Err(at) = self.asked.binary_search(&target) {
                self.asked.insert(at, target);
            }
            announce();
            now = issued();
            if now < target {
                return FenceRequest::Seen;
            }
            // The issuer may not have seen the request. If it has, there is one fence too many, which is harmless.
            self.asked.retain(|&asked| asked > now);
        }
        let is_covered = self.fences.back().is_some_and(|last| last.item >= target);
        if target <= self.over || is_covered { FenceRequest::Seen } else { FenceRequest::Wanted(now) }
    }

    /// The first fence at or behind item `target`.
    pub fn covering(&self, target: u64) -> Option<E> {
        self.fences.iter().find(|fence| fence.item >= target).map(|found| found.event.clone())
    }

    /// Begins a look: the event to ask. `None` if there is nothing to look at, or another thread is looking and will
    /// look again.
    pub fn begin(&mut self) -> Option<E> {
        if std::mem::replace(&mut self.is_looking, true) {
            self.has_word = true;
            return None;
        }
        let event = self.fences.front().map(|oldest| oldest.event.clone());
        self.is_looking = event.is_some();
        event
    }

    /// Comes back with the answer.
    pub fn answer(&mut self, is_reached: bool) -> Look<E> {
        if !is_reached {
            self.is_looking = false;
            return if std::mem::take(&mut self.has_word) { Look::Again } else { Look::Over };
        }
        match self.fences.pop_front() {
            Some(fence) => {
                let count = fence.item.saturating_sub(self.over);
                Look::Reached(fence, count)
            }
            None => {
                self.is_looking = false;
                Look::Over
            }
        }
    }

    /// Begins a look at all of the items issued so far, of which `issued` is the last. False if there is none, or
    /// another thread is looking and will look again.
    pub fn begin_all(&mut self, issued: u64) -> bool {
        if issued <= self.over {
            return false;
        }
        if std::mem::replace(&mut self.is_looking, true) {
            self.has_word = true;
            return false;
        }
        let is_covered = self.fences.back().is_some_and(|newest| newest.item >= issued);
        self.takes = if is_covered { issued } else { issued - 1 };
        true
    }

    /// Ends the query for all items up to `last`; the events of fences before it go to `spare`.
    pub fn answer_all(&mut self, last: u64, is_over: bool, mut spare: impl FnMut(Fence<E>)) -> AllLook {
        if !is_over {
            self.is_looking = false;
            return if std::mem::take(&mut self.has_word) { AllLook::Again } else { AllLook::Over };
        }
        while self.fences.front().is_some_and(|oldest| oldest.item <= self.takes) {
            self.fences.pop_front().into_iter().for_each(&mut spare);
        }
        AllLook::Reached(last.saturating_sub(self.over))
    }

    /// Takes out the oldest item, if its number is no larger than this, with its number.
    pub fn take(&mut self, upto: u64) -> Option<(u64, T)> {
        let is_over = self.items.front().is_some_and(|(number, _)| *number <= upto);
        if is_over { self.items.pop_front() } else { None }
    }

    /// All items up to this one are taken out. By the looker.
    pub fn set_over(&mut self, upto: u64) {
        self.over = upto;
    }

    /// All items that the look found are released. The looker looks again.
    pub fn end(&mut self) {
        self.is_looking = false;
        self.has_word = false;
    }

    pub fn is_looking(&self) -> bool {
        self.is_looking
    }

    /// No completion of item `target` will be reported any more. Returns how many items to take out; then this look has
    /// an `end`. `None` if it is not up to this thread: another one looks, there is a fence, or the item is not issued.
    pub fn give_up(&mut self, target: u64, issued: u64) -> Option<u64> {
        let covered = self.fences.back().map_or(0, |last| last.item);
        if self.is_looking || covered >= target || issued < target {
            return None;
        }
        self.fences.clear();
        self.is_looking = true;
        Some(self.count(issued))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn own(item: u64, event: u32) -> Fence<u32> {
        Fence { item, event, is_own: true }
    }

    /// Takes out all up to there, as a looker does.
    fn taken(it: &mut Fences<u64, u32>, upto: u64) -> Vec<u64> {
        let items = std::iter::from_fn(|| it.take(upto)).map(|(number, item)| {
            assert_eq!(number, item);
            item
        });
        let items = items.collect();
        it.set_over(upto);
        it.end();
        items
    }

    #[test]
    fn a_look_at_all_needs_no_fence_and_leaves_none_behind() {
        let mut it = Fences::<u64, u32>::default();
        assert!(!it.begin_all(0));
        // The second one has nothing to release.
        it.add(1, 1);
        it.add(3, 3);
        it.put(own(2, 20));
        assert!(it.begin_all(3));
        // Meanwhile another thread looks in vain, and another item comes.
        assert_eq!(it.begin(), None);
        assert_eq!(it.answer_all(3, false, |_| unreachable!()), AllLook::Again);
        assert!(it.begin_all(3));
        // Its work is with the device, and a thread asks for a fence for the item before: that event is in flight.
        it.put(own(3, 30));
        it.add(4, 4);
        it.put(own(4, 40));
        let mut spare = Vec::new();
        assert_eq!(it.answer_all(3, true, |fence| spare.push(fence.event)), AllLook::Reached(3));
        assert!(it.is_looking());
        assert_eq!((taken(&mut it, 3), spare), (vec![1, 3], vec![20]));
        assert_eq!((it.begin(), it.count(4), it.over()), (Some(30), 1, 3));
        assert!(matches!(it.answer(true), Look::Reached(Fence { event: 30, .. }, 0)));
        assert_eq!(taken(&mut it, 3), [0; 0]);
        assert_eq!((it.begin(), it.count(4)), (Some(40), 1));
    }

    #[test]
    fn items_are_over_in_order_and_wishes_are_found() {
        let mut it = Fences::<u64, u32>::default();
        let announced = std::cell::Cell::new(0);
        let announce = || announced.set(announced.get() + 1);
        assert_eq!(it.ask(2, || 0, announce), FenceRequest::Seen);
        assert!(it.has_wishes());
        it.add(1, 1);
        assert!(!it.is_wanted(1));
        it.add(2, 2);
        assert!(it.is_wanted(2) && !it.has_wishes());
        it.put(own(2, 20));
        it.add(3, 3);
        assert!(!it.is_wanted(3) && it.is_wanted(STRIDE));
        assert_eq!(it.ask(2, || 3, announce), FenceRequest::Seen);
        assert_eq!(it.ask(3, || 3, announce), FenceRequest::Wanted(3));
        assert_eq!(announced.get(), 1);
        it.put(own(3, 30));
        assert_eq!((it.covering(1), it.covering(3), it.covering(4)), (Some(20), Some(30), None));
        assert_eq!(it.begin(), Some(20));
        assert!(matches!(it.answer(true), Look::Reached(Fence { item: 2, .. }, 2)));
        assert_eq!(taken(&mut it, 2), [1, 2]);
        assert_eq!(it.ask(2, || 3, announce), FenceRequest::Seen);
        assert_eq!(it.count(3), 1);
    }

    #[test]
    fn a_request_during_the_issue_puts_the_fence() {
        let mut it = Fences::<u64, u32>::default();
        let issued = std::cell::Cell::new(1);
        // Issued by a thread that has not seen the request.
        assert_eq!(it.ask(2, || issued.get(), || issued.set(3)), FenceRequest::Wanted(3));
        assert!(!it.has_wishes());
    }

    #[test]
    fn who_comes_meanwhile_has_the_other_one_look_again() {
        let mut it = Fences::<u64, u32>::default();
        assert_eq!(it.begin(), None);
        it.add(1, 1);
        it.put(own(1, 10));
        assert_eq!(it.begin(), Some(10));
        assert_eq!(it.begin(), None);
        assert!(it.is_looking());
        assert!(matches!(it.answer(false), Look::Again));
        assert!(matches!((it.begin(), it.answer(false)), (Some(10), Look::Over)));
    }

    #[test]
    fn giving_up_is_for_one_thread_and_for_what_nothing_covers() {
        let mut it = Fences::<u64, u32>::default();
        it.add(1, 1);
        assert_eq!(it.give_up(2, 1), None);
        it.put(own(1, 10));
        assert_eq!(it.give_up(1, 1), None);
        it.add(2, 2);
        assert_eq!(it.give_up(2, 2), Some(2));
        assert_eq!((it.give_up(2, 2), it.begin()), (None, None));
        assert_eq!(taken(&mut it, 2), [1, 2]);
        assert_eq!(it.begin(), None);
        assert!(!it.is_looking());
    }
}
