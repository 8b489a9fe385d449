//! What is known of items that somebody else does in order, when nobody is told of each: events behind some of them,
//! the *milestones*.
//!
//! This is what lies under a lock; the steps around it are the users', and so is the count of items that were issued.
//! Only items with something to let go of are added: the others are numbers, and who issues one of those needs no lock.
//!
//! - *Who issues* adds the item, counts it, and then puts a milestone behind it if one is wanted: by those who asked,
//!   or because `STRIDE` items have none.
//! - *Who wants to know* about an item asks for a milestone at or behind it. If that item is not issued yet, the wish
//!   is noted, and whoever issues it finds it. For those who count without the lock there is a flag outside
//!   (`has_wishes`): who asks sets it and then looks at the count once more, who issues counts and then looks at the
//!   flag, and a fence lies between the two steps of each. So one of them sees the other.
//! - *Who looks* begins with the oldest milestone, asks its event without the lock, and comes back with the answer. One
//!   thread at a time does that, so that items are over in order. Another one that comes meanwhile leaves word and
//!   goes, and who looks must look once more: else an event that was reached between the two, which the other one has
//!   seen, would be nobody's.
//! - A look can also be at all items, where whoever does them can say that nothing is left: without a milestone then.
//! - Reached, the items up to the milestone are taken out one by one and let go of, without the lock; until the last
//!   one is, nobody else looks.
#![forbid(unsafe_code)]

use crate::base::Fifo;

/// So many items lie between two milestones that nobody asked for.
const STRIDE: u64 = 64;

#[derive(Debug)]
pub struct Fence<E> {
    /// The number of the item that it is behind; the first item is 1.
    pub item: u64,
    pub event: E,
    /// Whether the event was made for this.
    pub is_own: bool,
}

/// What asking came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    /// There is one already, the item is over, or there will be one when it is issued.
    Seen,
    /// A milestone is wanted now, behind this item, which is the last one.
    Wanted(u64),
}

/// What became of a look.
#[derive(Debug)]
pub enum Look<E> {
    /// There is nothing to see now.
    Over,
    /// Look again: somebody has left word.
    Again,
    /// So many items are to be taken out, and then the look has an `end`.
    Reached(Fence<E>, u64),
}

/// What became of a look at all items.
#[derive(Debug, PartialEq, Eq)]
pub enum AllLook {
    /// Not all are over.
    Over,
    /// Not all are over, and somebody has left word: the oldest milestone is to be looked at.
    Again,
    /// So many items are to be taken out, and then the look has an `end`.
    Reached(u64),
}

#[derive(Debug)]
pub struct Fences<T, E> {
    /// The last item that is over.
    over: u64,
    /// Items that are not taken out and have something to let go of, with their numbers, oldest first.
    items: Fifo<(u64, T)>,
    milestones: Fifo<Fence<E>>,
    /// Items behind which a milestone is wanted as soon as they are issued; ascending.
    asked: Vec<u64>,
    is_looking: bool,
    /// Somebody came while another one was looking.
    has_word: bool,
}

impl<T, E> Default for Fences<T, E> {
    fn default() -> Self {
        Fences {
            over: 0,
            items: Fifo::default(),
            milestones: Fifo::default(),
            asked: Vec::new(),
            is_looking: false,
            has_word: false,
        }
    }
}

impl<T, E: Clone> Fences<T, E> {
    /// Items under way, of so many that were issued.
    pub fn count(&self, issued: u64) -> u64 {
        issued.saturating_sub(self.over)
    }

    /// The number of the last item that is over.
    pub fn over(&self) -> u64 {
        self.over
    }

    /// Adds item `number`, which has something to let go of.
    pub fn add(&mut self, number: u64, item: T) {
        self.items.push_back((number, item));
    }

    /// Item `number` was issued: whether a milestone is wanted behind it.
    pub fn is_wanted(&mut self, number: u64) -> bool {
        let asked = self.asked.iter().take_while(|&&asked| asked <= number).count();
        self.asked.drain(..asked);
        let is_covered = self.milestones.back().is_some_and(|last| last.item >= number);
        (asked > 0 || Self::is_stride(number)) && !is_covered
    }

    /// Whether a milestone is wanted behind item `number` though nobody has asked for one.
    pub fn is_stride(number: u64) -> bool {
        number.is_multiple_of(STRIDE)
    }

    /// Whether somebody waits for a milestone that is not there.
    pub fn has_wishes(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Puts a milestone behind an item, which is not in front of the last one.
    pub fn put(&mut self, milestone: Fence<E>) {
        self.milestones.push_back(milestone);
    }

    /// Somebody wants to know when item `target` is over; `issued` looks how many were issued, and `announce` sets the
    /// flag that there are wishes.
    pub fn ask(&mut self, target: u64, issued: impl Fn() -> u64, announce: impl FnOnce()) -> Asked {
        let mut now = issued();
        if now < target {
            if let Err(at) = self.asked.binary_search(&target) {
                self.asked.insert(at, target);
            }
            announce();
            now = issued();
            if now < target {
                return Asked::Seen;
            }
            // Who has issued it may not have seen the wish. If it has, two milestones are one too many, and that is
            // all.
            self.asked.retain(|&asked| asked > now);
        }
        let is_covered = self.milestones.back().is_some_and(|last| last.item >= target);
        if target <= self.over || is_covered { Asked::Seen } else { Asked::Wanted(now) }
    }

    /// The first milestone at or behind item `target`.
    pub fn covering(&self, target: u64) -> Option<E> {
        self.milestones.iter().find(|milestone| milestone.item >= target).map(|found| found.event.clone())
    }

    /// Begins a look: the event to ask. None if there is nothing to look at, or somebody else is at it and will look
    /// again.
    pub fn begin(&mut self) -> Option<E> {
        if std::mem::replace(&mut self.is_looking, true) {
            self.has_word = true;
            return None;
        }
        let event = self.milestones.front().map(|oldest| oldest.event.clone());
        self.is_looking = event.is_some();
        event
    }

    /// Comes back with the answer.
    pub fn answer(&mut self, is_reached: bool) -> Look<E> {
        if !is_reached {
            self.is_looking = false;
            return if std::mem::take(&mut self.has_word) { Look::Again } else { Look::Over };
        }
        match self.milestones.pop_front() {
            Some(milestone) => {
                let count = milestone.item.saturating_sub(self.over);
                Look::Reached(milestone, count)
            }
            None => {
                self.is_looking = false;
                Look::Over
            }
        }
    }

    /// Begins a look at all of the items issued so far, of which `issued` is the last. False if there is none, or
    /// somebody else is at it and will look again.
    pub fn begin_all(&mut self, issued: u64) -> bool {
        if issued <= self.over {
            return false;
        }
        if std::mem::replace(&mut self.is_looking, true) {
            self.has_word = true;
            return false;
        }
        true
    }

    /// Comes back with the answer for all items up to `last`; the events of milestones that this leaves behind go to
    /// `spare`.
    pub fn answer_all(&mut self, last: u64, is_over: bool, mut spare: impl FnMut(Fence<E>)) -> AllLook {
        if !is_over {
            self.is_looking = false;
            return if std::mem::take(&mut self.has_word) { AllLook::Again } else { AllLook::Over };
        }
        while self.milestones.front().is_some_and(|oldest| oldest.item <= last) {
            self.milestones.pop_front().into_iter().for_each(&mut spare);
        }
        AllLook::Reached(last.saturating_sub(self.over))
    }

    /// Takes out the oldest item, if its number is no larger than this, with its number.
    pub fn take(&mut self, upto: u64) -> Option<(u64, T)> {
        let is_over = self.items.front().is_some_and(|(number, _)| *number <= upto);
        if is_over { self.items.pop_front() } else { None }
    }

    /// All items up to this one are taken out. By who looks.
    pub fn set_over(&mut self, upto: u64) {
        self.over = upto;
    }

    /// All that the look has found is let go of. Who looked looks again.
    pub fn end(&mut self) {
        self.is_looking = false;
        self.has_word = false;
    }

    pub fn is_looking(&self) -> bool {
        self.is_looking
    }

    /// Nobody will be told of item `target` any more. So many items are to be taken out, and then the look that this is
    /// has an `end`. None if it is not for this thread: somebody looks, there is a milestone, or the item is not
    /// issued.
    pub fn give_up(&mut self, target: u64, issued: u64) -> Option<u64> {
        let covered = self.milestones.back().map_or(0, |last| last.item);
        if self.is_looking || covered >= target || issued < target {
            return None;
        }
        self.milestones.clear();
        self.is_looking = true;
        Some(self.count(issued))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(item: u64, event: u32) -> Fence<u32> {
        Fence { item, event, is_own: true }
    }

    /// Takes out all up to there, as who looks does.
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
    fn a_look_at_all_needs_no_milestone_and_leaves_none_behind() {
        let mut it = Fences::<u64, u32>::default();
        assert!(!it.begin_all(0));
        // The second one has nothing to let go of.
        it.add(1, 1);
        it.add(3, 3);
        it.put(own(2, 20));
        assert!(it.begin_all(3));
        // Meanwhile somebody else looks in vain, and another item comes.
        assert_eq!(it.begin(), None);
        assert_eq!(it.answer_all(3, false, |_| unreachable!()), AllLook::Again);
        assert!(it.begin_all(3));
        it.add(4, 4);
        it.put(own(4, 40));
        let mut spare = Vec::new();
        assert_eq!(it.answer_all(3, true, |milestone| spare.push(milestone.event)), AllLook::Reached(3));
        assert!(it.is_looking());
        assert_eq!((taken(&mut it, 3), spare), (vec![1, 3], vec![20]));
        assert_eq!((it.begin(), it.count(4), it.over()), (Some(40), 1, 3));
    }

    #[test]
    fn items_are_over_in_order_and_wishes_are_found() {
        let mut it = Fences::<u64, u32>::default();
        let announced = std::cell::Cell::new(0);
        let announce = || announced.set(announced.get() + 1);
        assert_eq!(it.ask(2, || 0, announce), Asked::Seen);
        assert!(it.has_wishes());
        it.add(1, 1);
        assert!(!it.is_wanted(1));
        it.add(2, 2);
        assert!(it.is_wanted(2) && !it.has_wishes());
        it.put(own(2, 20));
        it.add(3, 3);
        assert!(!it.is_wanted(3) && it.is_wanted(STRIDE));
        assert_eq!(it.ask(2, || 3, announce), Asked::Seen);
        assert_eq!(it.ask(3, || 3, announce), Asked::Wanted(3));
        assert_eq!(announced.get(), 1);
        it.put(own(3, 30));
        assert_eq!((it.covering(1), it.covering(3), it.covering(4)), (Some(20), Some(30), None));
        assert_eq!(it.begin(), Some(20));
        assert!(matches!(it.answer(true), Look::Reached(Fence { item: 2, .. }, 2)));
        assert_eq!(taken(&mut it, 2), [1, 2]);
        assert_eq!(it.ask(2, || 3, announce), Asked::Seen);
        assert_eq!(it.count(3), 1);
    }

    #[test]
    fn who_asks_while_it_is_issued_puts_the_milestone() {
        let mut it = Fences::<u64, u32>::default();
        let issued = std::cell::Cell::new(1);
        // Issued by somebody who has not seen the wish.
        assert_eq!(it.ask(2, || issued.get(), || issued.set(3)), Asked::Wanted(3));
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
