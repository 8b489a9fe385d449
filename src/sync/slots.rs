//! A set of up to 64 numbered places, claimed and given back without a lock.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering::*};

/// Free places as bits.
#[derive(Debug)]
pub struct Slots {
    free: AtomicU64,
}

impl Slots {
    pub const MAX: usize = 64;

    /// All of the first `count` places free.
    pub const fn new(count: usize) -> Slots {
        Slots { free: AtomicU64::new(mask(count)) }
    }

    /// Claims the lowest free place.
    pub fn claim(&self) -> Option<usize> {
        // ORDERING: Acquire pairs with the Release in `give_back`: what the last holder did with the place is visible.
        let mut free = self.free.load(Relaxed);
        while free != 0 {
            let place = free.trailing_zeros();
            match self.free.compare_exchange_weak(free, free & !(1 << place), Acquire, Relaxed) {
                Ok(_) => return Some(place as usize),
                Err(now) => free = now,
            }
        }
        None
    }

    /// Gives a claimed place back.
    pub fn give_back(&self, place: usize) {
        let before = self.free.fetch_or(1 << place, Release);
        debug_assert_eq!(before & (1 << place), 0, "place {place} given back twice");
    }
}

const fn mask(count: usize) -> u64 {
    if count >= Slots::MAX { u64::MAX } else { (1 << count) - 1 }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_held_once() {
        let slots = Slots::new(3);
        let all: Vec<_> = std::iter::from_fn(|| slots.claim()).collect();
        assert_eq!(all, [0, 1, 2]);
        slots.give_back(1);
        assert_eq!(slots.claim(), Some(1));
        assert_eq!(slots.claim(), None);
    }
}
