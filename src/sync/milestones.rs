//! What is known of items that somebody else does in order, when nobody is told of each: events behind some of them, the *milestones*.
//!
//! This is what lies under a lock; the steps around it are the users'.
//!
//! - *Who issues* adds the item, and then puts a milestone behind it if it is told that one is wanted: by those who asked, or because
//!   `STRIDE` items have none.
//! - *Who wants to know* about an item asks for a milestone at or behind it. If that item is not issued yet, the wish is noted, and whoever
//!   issues it finds it, as both have the lock.
//! - *Who looks* begins with the oldest milestone, asks its event without the lock, and comes back with the answer. One thread at a time
//!   does that, so that items are over in order. Another one that comes meanwhile leaves word and goes, and who looks must look once
//!   more: else an event that was reached between the two, which the other one has seen, would be nobody's.
//! - A look can also be at all items, where whoever does them can say that nothing is left: without a milestone then.
//! - Reached, the items up to the milestone are taken out one by one and let go of, without the lock; until the last one is, nobody else looks.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

/// So many items lie between two milestones that nobody asked for.
const STRIDE: u64 = 64;

#[derive(Debug)]
pub struct Milestone<E> {
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
    Reached(Milestone<E>, u64),
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
pub struct Milestones<T, E> {
    /// Items that were issued so far.
    issued: u64,
    /// Those not taken out, oldest first; the last one is number `issued`.
    items: VecDeque<T>,
    milestones: VecDeque<Milestone<E>>,
    /// Items behind which a milestone is wanted as soon as they are issued; ascending.
    asked: Vec<u64>,
    is_looking: bool,
    /// Somebody came while another one was looking.
    has_word: bool,
}

impl<T, E> Default for Milestones<T, E> {
    fn default() -> Self {
        Milestones {
            issued: 0,
            items: VecDeque::new(),
            milestones: VecDeque::new(),
            asked: Vec::new(),
            is_looking: false,
            has_word: false,
        }
    }
}

impl<T, E: Clone> Milestones<T, E> {
    /// Items under way.
    pub fn count(&self) -> usize {
        self.items.len()
    }

    /// The number of the last item that was taken out.
    fn over(&self) -> u64 {
        self.issued - self.items.len() as u64
    }

    /// Adds an item that was issued. Gives its number, and whether a milestone is wanted behind it.
    pub fn issue(&mut self, item: T) -> (u64, bool) {
        self.issued += 1;
        self.items.push_back(item);
        let asked = self.asked.iter().take_while(|&&asked| asked <= self.issued).count();
        self.asked.drain(..asked);
        (self.issued, asked > 0 || self.issued.is_multiple_of(STRIDE))
    }

    /// Puts a milestone behind an item, which is not in front of the last one.
    pub fn put(&mut self, milestone: Milestone<E>) {
        self.milestones.push_back(milestone);
    }

    /// Somebody wants to know when item `target` is over.
    pub fn ask(&mut self, target: u64) -> Asked {
        if self.issued < target {
            if let Err(at) = self.asked.binary_search(&target) {
                self.asked.insert(at, target);
            }
            return Asked::Seen;
        }
        let is_covered = self.milestones.back().is_some_and(|last| last.item >= target);
        if target <= self.over() || is_covered { Asked::Seen } else { Asked::Wanted(self.issued) }
    }

    /// The first milestone at or behind item `target`.
    pub fn covering(&self, target: u64) -> Option<E> {
        self.milestones.iter().find(|milestone| milestone.item >= target).map(|found| found.event.clone())
    }

    /// Begins a look: the event to ask. None if there is nothing to look at, or somebody else is at it and will look again.
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
        let over = self.over();
        match self.milestones.pop_front() {
            Some(milestone) => {
                let count = milestone.item.saturating_sub(over);
                Look::Reached(milestone, count)
            }
            None => {
                self.is_looking = false;
                Look::Over
            }
        }
    }

    /// Begins a look at all items that were issued so far: the number of the last. None if there is none, or somebody else is at it and
    /// will look again.
    pub fn begin_all(&mut self) -> Option<u64> {
        if self.items.is_empty() {
            return None;
        }
        if std::mem::replace(&mut self.is_looking, true) {
            self.has_word = true;
            return None;
        }
        Some(self.issued)
    }

    /// Comes back with the answer for all items up to `last`; the events of milestones that this leaves behind go to `spare`.
    pub fn answer_all(&mut self, last: u64, is_over: bool, mut spare: impl FnMut(Milestone<E>)) -> AllLook {
        if !is_over {
            self.is_looking = false;
            return if std::mem::take(&mut self.has_word) { AllLook::Again } else { AllLook::Over };
        }
        while self.milestones.front().is_some_and(|oldest| oldest.item <= last) {
            self.milestones.pop_front().into_iter().for_each(&mut spare);
        }
        AllLook::Reached(last.saturating_sub(self.over()))
    }

    /// Takes out the oldest item.
    pub fn take(&mut self) -> Option<T> {
        self.items.pop_front()
    }

    /// All that the look has found is let go of. Who looked looks again.
    pub fn end(&mut self) {
        self.is_looking = false;
        self.has_word = false;
    }

    pub fn is_looking(&self) -> bool {
        self.is_looking
    }

    /// Nobody will be told of item `target` any more. So many items are to be taken out, and then the look that this is has an `end`.
    /// None if it is not for this thread: somebody looks, there is a milestone, or the item is not issued.
    pub fn give_up(&mut self, target: u64) -> Option<u64> {
        let covered = self.milestones.back().map_or(0, |last| last.item);
        if self.is_looking || covered >= target || self.issued < target {
            return None;
        }
        self.milestones.clear();
        self.is_looking = true;
        Some(self.items.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(item: u64, event: u32) -> Milestone<u32> {
        Milestone { item, event, is_own: true }
    }

    #[test]
    fn a_look_at_all_needs_no_milestone_and_leaves_none_behind() {
        let mut it = Milestones::<u64, u32>::default();
        assert_eq!(it.begin_all(), None);
        for item in 1..=3 {
            it.issue(item);
        }
        it.put(own(2, 20));
        assert_eq!(it.begin_all(), Some(3));
        // Meanwhile somebody else looks in vain, and another item comes.
        assert_eq!(it.begin(), None);
        assert_eq!(it.answer_all(3, false, |_| unreachable!()), AllLook::Again);
        assert_eq!(it.begin_all(), Some(3));
        it.issue(4);
        it.put(own(4, 40));
        let mut spare = Vec::new();
        assert_eq!(it.answer_all(3, true, |milestone| spare.push(milestone.event)), AllLook::Reached(3));
        assert_eq!((it.take(), it.take(), it.take(), spare), (Some(1), Some(2), Some(3), vec![20]));
        assert!(it.is_looking());
        it.end();
        assert_eq!((it.begin(), it.count()), (Some(40), 1));
    }

    #[test]
    fn items_are_over_in_order_and_wishes_are_found() {
        let mut it = Milestones::<u64, u32>::default();
        assert_eq!(it.ask(2), Asked::Seen);
        assert_eq!(it.issue(1), (1, false));
        assert_eq!(it.issue(2), (2, true));
        it.put(own(2, 20));
        assert_eq!(it.issue(3), (3, false));
        assert_eq!(it.ask(2), Asked::Seen);
        assert_eq!(it.ask(3), Asked::Wanted(3));
        it.put(own(3, 30));
        assert_eq!((it.covering(1), it.covering(3), it.covering(4)), (Some(20), Some(30), None));
        assert_eq!(it.begin(), Some(20));
        assert!(matches!(it.answer(true), Look::Reached(Milestone { item: 2, .. }, 2)));
        assert_eq!((it.take(), it.take()), (Some(1), Some(2)));
        it.end();
        assert_eq!(it.ask(2), Asked::Seen);
        assert_eq!(it.count(), 1);
    }

    #[test]
    fn who_comes_meanwhile_has_the_other_one_look_again() {
        let mut it = Milestones::<u64, u32>::default();
        assert_eq!(it.begin(), None);
        it.issue(1);
        it.put(own(1, 10));
        assert_eq!(it.begin(), Some(10));
        assert_eq!(it.begin(), None);
        assert!(it.is_looking());
        assert!(matches!(it.answer(false), Look::Again));
        assert!(matches!((it.begin(), it.answer(false)), (Some(10), Look::Over)));
    }

    #[test]
    fn giving_up_is_for_one_thread_and_for_what_nothing_covers() {
        let mut it = Milestones::<u64, u32>::default();
        it.issue(1);
        assert_eq!(it.give_up(2), None);
        it.put(own(1, 10));
        assert_eq!(it.give_up(1), None);
        it.issue(2);
        assert_eq!(it.give_up(2), Some(2));
        assert_eq!((it.give_up(2), it.begin()), (None, None));
        assert_eq!((it.take(), it.take(), it.take()), (Some(1), Some(2), None));
        it.end();
        assert_eq!(it.begin(), None);
        assert!(!it.is_looking());
    }
}
