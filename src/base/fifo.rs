//! A queue that grows in chunks of a bounded size.
//!
//! A `VecDeque` doubles, and a process short of memory dies of the one large request. The chunks here are small enough
//! that the heap's reserve can serve them (`memory::heap`), however long the queue is. Chunks are kept for reuse.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::collections::vec_deque::Iter;
use std::iter::Flatten;

/// Maximum size of a chunk.
const BYTES: usize = 32 << 10;

#[derive(Debug)]
pub struct Fifo<T> {
    /// All but the first and the last are full; none is empty, unless it is the only one.
    pieces: VecDeque<VecDeque<T>>,
    spare: Vec<VecDeque<T>>,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Fifo { pieces: VecDeque::new(), spare: Vec::new() }
    }
}

impl<T> Fifo<T> {
    const PIECE: usize = {
        let items = BYTES / if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        // A power of two, as its memory doubles.
        if items < 16 { 16 } else { 1 << items.ilog2() }
    };

    /// With room for this many items, at most one chunk.
    pub fn with_capacity(items: usize) -> Fifo<T> {
        let mut fifo = Fifo::default();
        fifo.pieces.push_back(VecDeque::with_capacity(items.min(Self::PIECE)));
        fifo
    }

    pub fn push_back(&mut self, item: T) {
        if self.pieces.back().is_none_or(|last| last.len() == Self::PIECE) {
            self.pieces.push_back(self.spare.pop().unwrap_or_default());
        }
        if let Some(last) = self.pieces.back_mut() {
            last.push_back(item);
        }
    }

    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.pieces.front_mut()?;
        let item = first.pop_front();
        if first.is_empty() && self.pieces.len() > 1 {
            self.spare.extend(self.pieces.pop_front());
        }
        item
    }

    pub fn front(&self) -> Option<&T> {
        self.pieces.front()?.front()
    }

    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.pieces.front_mut()?.front_mut()
    }

    pub fn back(&self) -> Option<&T> {
        self.pieces.back()?.back()
    }

    pub fn is_empty(&self) -> bool {
        self.front().is_none()
    }

    pub fn clear(&mut self) {
        while self.pop_front().is_some() {}
    }

    pub fn iter(&self) -> Flatten<Iter<'_, VecDeque<T>>> {
        self.pieces.iter().flatten()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_in_order_however_many_there_are() {
        let (mut fifo, mut model, mut state) = (Fifo::with_capacity(4), VecDeque::new(), 1u64);
        for i in 0..200_000u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Long phases with more pushes than pops, and the reverse.
            let adds = (state >> 40) % 100 < if i / 30_000 % 2 == 0 { 70 } else { 30 };
            if adds {
                fifo.push_back(i);
                model.push_back(i);
            } else {
                assert_eq!(fifo.pop_front(), model.pop_front());
            }
            assert_eq!((fifo.front(), fifo.back(), fifo.is_empty()), (model.front(), model.back(), model.is_empty()));
        }
        assert!(fifo.iter().eq(model.iter()));
        fifo.clear();
        assert!(fifo.is_empty() && fifo.pop_front().is_none() && fifo.front_mut().is_none());
    }

    #[test]
    fn pieces_are_bounded_and_used_again() {
        let mut fifo = Fifo::default();
        for round in 0..3 {
            (0..100_000u64).for_each(|i| fifo.push_back(i));
            assert!(fifo.pieces.iter().all(|piece| piece.capacity() * size_of::<u64>() <= BYTES), "round {round}");
            let pieces = fifo.pieces.len() + fifo.spare.len();
            assert_eq!(pieces, 100_000usize.div_ceil(Fifo::<u64>::PIECE), "round {round}");
            assert!((0..100_000).all(|i| fifo.pop_front() == Some(i)));
        }
    }
}
