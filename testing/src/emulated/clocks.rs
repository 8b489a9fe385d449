//! Vector clocks: each says which operations are known to be done. A clock has one component for each queue: the
//! position up to which everything in that queue happens before the clock's owner. Each queue has a clock, each record
//! of an event keeps its queue's, and the host's clock is joined with an event's when the host sees that event reached.
#![forbid(unsafe_code)]

/// Positions in queues, by the queues' slots. Positions begin at 1; a missing one is 0.
#[derive(Clone, Debug, Default)]
pub(super) struct VectorClock(Vec<u64>);

impl VectorClock {
    pub(super) fn at(&self, slot: usize) -> u64 {
        self.0.get(slot).copied().unwrap_or(0)
    }

    pub(super) fn set(&mut self, slot: usize, position: u64) {
        if self.0.len() <= slot {
            self.0.resize(slot + 1, 0);
        }
        self.0[slot] = position;
    }

    /// Joins the knowledge of both.
    pub(super) fn join(&mut self, other: &VectorClock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(mine, other)| *mine = (*mine).max(*other));
    }

    pub(super) fn copy_from(&mut self, other: &VectorClock) {
        self.0.clone_from(&other.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_knows_what_either_knew() {
        let (mut a, mut b) = (VectorClock::default(), VectorClock::default());
        a.set(2, 5);
        b.set(0, 7);
        b.set(2, 3);
        b.join(&a);
        assert_eq!((b.at(0), b.at(1), b.at(2), b.at(9)), (7, 0, 5, 0));
        a.join(&b);
        assert_eq!((a.at(0), a.at(2)), (7, 5));
        a.copy_from(&VectorClock::default());
        assert_eq!(a.at(2), 0);
    }
}
