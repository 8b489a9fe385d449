//! Past costs of loops without an estimate: a small table from the loop's function to nanoseconds per item.
//!
//! Each entry is one word, so that it is read and written whole: the upper half is a tag of the function, the lower
//! half the cost as an f32. Two functions that hash to the same entry evict each other; then a loop is explored again.
//! The figures only steer, so nothing more is promised.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Entries of a table of loops.
const LOOPS: usize = 256;
/// A figure is rewritten only if it has moved by more than this part: others may be reading the cache line.
const MOVED: f32 = 16.0;
/// No item is believed to cost less, in nanoseconds.
const LEAST_NS: f32 = 0.01;

#[derive(Debug)]
pub struct Sites<const ENTRIES: usize = LOOPS> {
    table: [AtomicU64; ENTRIES],
}

thread_local! {
    /// Uses of tables by this thread: a count of all would be written by many threads at once.
    static USES: Cell<u32> = const { Cell::new(0) };
}

impl<const ENTRIES: usize> Default for Sites<ENTRIES> {
    fn default() -> Self {
        Sites { table: [const { AtomicU64::new(0) }; ENTRIES] }
    }
}

/// The entry of a site, and its tag there.
#[inline(always)]
fn place<const ENTRIES: usize>(site: usize) -> (usize, u64) {
    const { assert!(ENTRIES.is_power_of_two()) };
    // Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4).
    let hash = (site as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((hash >> (64 - ENTRIES.trailing_zeros())) as usize, (hash >> 16 & 0xFFFF_FFFF) | 1)
}

impl<const ENTRIES: usize> Sites<ENTRIES> {
    /// As if new.
    pub fn forget(&self) {
        self.table.iter().for_each(|word| word.store(0, Relaxed));
    }

    /// The past cost of an item of this site, in nanoseconds. Sites are addresses; 0 is none.
    #[inline]
    pub fn get(&self, site: usize) -> Option<f32> {
        let (at, tag) = place::<ENTRIES>(site);
        // ORDERING: Relaxed, as all here: a word is a whole figure, and no data depends on it.
        let word = self.table[at].load(Relaxed);
        (site != 0 && word >> 32 == tag).then(|| f32::from_bits(word as u32))
    }

    /// Records an item's duration. A known figure moves to the geometric mean, so that it follows in a few steps, up as
    /// well as down, and one delayed call is soon forgotten.
    pub fn put(&self, site: usize, item_ns: f32) {
        if site == 0 || !item_ns.is_finite() {
            return;
        }
        let (at, tag) = place::<ENTRIES>(site);
        let item_ns = item_ns.max(LEAST_NS);
        let old = self.get(site);
        let item_ns = old.map_or(item_ns, |old| (old * item_ns).sqrt());
        if old.is_some_and(|old| (item_ns - old).abs() < old / MOVED) {
            return;
        }
        self.table[at].store(tag << 32 | u64::from(item_ns.to_bits()), Relaxed);
    }

    /// As `put`, for costs that differ widely around their mean: a known figure moves towards the mean of all, of which
    /// a few large ones may be the most.
    pub fn put_mean(&self, site: usize, item_ns: f32) {
        let (at, tag) = place::<ENTRIES>(site);
        let item_ns = item_ns.max(LEAST_NS);
        let item_ns = self.get(site).map_or(item_ns, |old| old + (item_ns - old) / 8.0);
        self.table[at].store(tag << 32 | u64::from(item_ns.to_bits()), Relaxed);
    }
}

/// Whether to measure a known figure again: once in `uses` uses by this thread, and not always the same ones where
/// several loops alternate.
pub fn is_due(uses: u32) -> bool {
    let count = USES.with(|count| count.replace(count.get().wrapping_add(1)));
    // Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4).
    count.wrapping_mul(0x9E37_79B9) <= u32::MAX / uses
}

thread_local! {
    /// How many loops of unknown cost enclose this thread's work, whichever threads they began in.
    static LEVEL: Cell<usize> = const { Cell::new(0) };
}
/// Deeper loops count as those of this level.
const LEVELS: usize = 31;

/// A loop of unknown cost, whose items run one level deeper: the cost of a function that runs itself in parallel
/// differs by level, so each level has its own entry.
#[derive(Clone, Copy, Debug)]
pub struct Level(usize);

impl Level {
    pub fn of_caller() -> Level {
        Level(LEVEL.get())
    }

    /// No two functions are so far apart, so the sum is a site of its own.
    pub fn site(self, f: usize) -> usize {
        f.wrapping_add(self.0 << (usize::BITS - 6))
    }

    #[inline]
    pub fn within<T>(self, f: impl FnOnce() -> T) -> T {
        LEVEL.with(|level| {
            let before = level.replace((self.0 + 1).min(LEVELS));
            // No guard: a host's function does not unwind.
            let result = f();
            level.set(before);
            result
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn figures_are_kept_apart_and_follow_what_is_seen() {
        let sites = Sites::<LOOPS>::default();
        assert_eq!(sites.get(0x1000), None);
        sites.put(0x1000, 100.0);
        sites.put(0x2000, 7.0);
        sites.put(0, 3.0);
        assert_eq!((sites.get(0x1000), sites.get(0x2000), sites.get(0)), (Some(100.0), Some(7.0), None));
        let is_about = |site, ns: f32| (sites.get(site).unwrap() - ns).abs() < ns / 7.0;
        (0..20).for_each(|_| sites.put(0x1000, 10.0));
        assert!(is_about(0x1000, 10.0));
        sites.put(0x1000, 1000.0);
        assert!(is_about(0x1000, 100.0));
        (0..8).for_each(|_| sites.put(0x1000, 10.0));
        assert!(is_about(0x1000, 10.0));
        (0..100).for_each(|i| sites.put_mean(0x3000, if i % 10 == 9 { 1000.0 } else { 0.0 }));
        assert!((50.0..250.0).contains(&sites.get(0x3000).unwrap()));
        (0..1000).for_each(|i| sites.put(0x5000 + 16 * i, 1.0));
        assert!(sites.get(0x1000).is_none() || is_about(0x1000, 10.0), "a figure of another site");
    }
}
