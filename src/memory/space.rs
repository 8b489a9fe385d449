//! Address ranges: allocated by best fit, and merged with their free neighbours when they are returned.
//!
//! The memory at the addresses is never touched: it may be a device's, which the host cannot access. So all bookkeeping
//! is kept beside it, in an array of nodes; a range's number is its index there. The ranges of a region, which came
//! from a source in one piece, form a list by address, without gaps. The free ones are in a set ordered by size; among
//! equal sizes the lowest address comes first, so that the same calls give the same addresses. Each call takes O(log
//! n).
#![forbid(unsafe_code)]

use crate::base::{Error, Result};
use std::collections::BTreeSet;

/// No range.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RangeState {
    /// The node is not in use.
    Unused,
    Free,
    Taken,
}

/// One range, with its user's notes.
#[derive(Debug)]
pub(super) struct Range<N> {
    pub address: usize,
    pub bytes: usize,
    /// The neighbours in the region.
    before: u32,
    after: u32,
    pub state: RangeState,
    /// It has not been used since it came from the source.
    pub clean: bool,
    pub note: N,
}

#[derive(Debug)]
pub(super) struct AddressSpace<N> {
    nodes: Vec<Range<N>>,
    /// Nodes that are not in use, linked by `after`.
    unused: u32,
    /// (bytes, address, node) of each free range.
    free: BTreeSet<(usize, usize, u32)>,
    /// Bytes in the largest free range.
    largest: usize,
}

impl<N: Default> AddressSpace<N> {
    pub fn new() -> AddressSpace<N> {
        AddressSpace { nodes: Vec::new(), unused: NONE, free: BTreeSet::new(), largest: 0 }
    }

    /// Adds a region, completely free.
    pub fn add(&mut self, address: usize, bytes: usize, clean: bool) -> Result<u32> {
        let Some(index) = self.node() else {
            return Err(Error::exhausted("the list of regions", size_of::<Range<N>>()));
        };
        let range = &mut self.nodes[index as usize];
        (range.address, range.bytes, range.clean) = (address, bytes, clean);
        (range.before, range.after) = (NONE, NONE);
        self.set_free(index);
        Ok(index)
    }

    /// A range of at least `bytes` bytes: the first part of the smallest free range that fits.
    pub fn take(&mut self, bytes: usize) -> Option<u32> {
        if bytes > self.largest {
            return None;
        }
        let &(_, _, index) = self.free.range((bytes, 0, 0)..).next()?;
        Some(self.take_front(index, bytes))
    }

    /// The first `bytes` bytes of a free range that is large enough.
    pub fn take_front(&mut self, index: u32, bytes: usize) -> u32 {
        self.take_out(index);
        self.nodes[index as usize].state = RangeState::Taken;
        if self.nodes[index as usize].bytes > bytes
            // Without memory for a node the whole range is taken.
            && let Some(rest) = self.node()
        {
            let range = &mut self.nodes[index as usize];
            let (left, address) = (range.bytes - bytes, range.address + bytes);
            let (after, clean) = (std::mem::replace(&mut range.after, rest), range.clean);
            range.bytes = bytes;
            let range = &mut self.nodes[rest as usize];
            (range.address, range.bytes, range.clean) = (address, left, clean);
            (range.before, range.after) = (index, after);
            if let Some(next) = self.nodes.get_mut(after as usize) {
                next.before = rest;
            }
            self.set_free(rest);
        }
        index
    }

    /// Returns a range; the result is its region, if that is now completely free.
    pub fn give(&mut self, index: u32) -> Option<u32> {
        let mut index = index;
        self.nodes[index as usize].note = N::default();
        let (before, after) = (self.nodes[index as usize].before, self.nodes[index as usize].after);
        if self.is_free(after) {
            self.take_out(after);
            self.join(index, after);
        }
        if self.is_free(before) {
            self.take_out(before);
            self.join(before, index);
            index = before;
        }
        self.set_free(index);
        self.is_region(index).then_some(index)
    }

    /// Removes a completely free region.
    pub fn remove(&mut self, index: u32) -> (usize, usize) {
        self.take_out(index);
        let place = (self.nodes[index as usize].address, self.nodes[index as usize].bytes);
        self.drop_node(index);
        place
    }

    pub fn get(&self, index: u32) -> &Range<N> {
        &self.nodes[index as usize]
    }

    pub fn get_mut(&mut self, index: u32) -> &mut Range<N> {
        &mut self.nodes[index as usize]
    }

    /// Bytes in the largest free range.
    pub fn largest(&self) -> usize {
        self.largest
    }

    /// The largest completely free region.
    pub fn free_region(&self) -> Option<u32> {
        self.free.iter().rev().map(|&(_, _, index)| index).find(|&index| self.is_region(index))
    }

    /// The first range of each region.
    pub fn regions(&self) -> impl Iterator<Item = u32> + '_ {
        let is_first = |range: &Range<N>| range.state != RangeState::Unused && range.before == NONE;
        (0..self.nodes.len() as u32).filter(move |&index| is_first(&self.nodes[index as usize]))
    }

    /// The ranges of a region, from its first one on.
    pub fn ranges(&self, first: u32) -> impl Iterator<Item = &Range<N>> + '_ {
        let next = |range: &&Range<N>| self.nodes.get(range.after as usize);
        std::iter::successors(self.nodes.get(first as usize), next)
    }

    /// All ranges, in no order.
    pub fn all(&self) -> impl Iterator<Item = &Range<N>> + '_ {
        self.nodes.iter().filter(|range| range.state != RangeState::Unused)
    }

    fn is_free(&self, index: u32) -> bool {
        self.nodes.get(index as usize).is_some_and(|range| range.state == RangeState::Free)
    }

    fn is_region(&self, index: u32) -> bool {
        let range = &self.nodes[index as usize];
        range.before == NONE && range.after == NONE
    }

    fn set_free(&mut self, index: u32) {
        let range = &mut self.nodes[index as usize];
        range.state = RangeState::Free;
        self.largest = self.largest.max(range.bytes);
        self.free.insert((range.bytes, range.address, index));
    }

    /// Removes a free range from the set.
    fn take_out(&mut self, index: u32) {
        let range = &self.nodes[index as usize];
        self.free.remove(&(range.bytes, range.address, index));
        if range.bytes == self.largest {
            self.largest = self.free.last().map_or(0, |&(bytes, _, _)| bytes);
        }
    }

    /// Merges two neighbours that are in no set.
    fn join(&mut self, first: u32, second: u32) {
        let (bytes, after, clean) = {
            let range = &self.nodes[second as usize];
            (range.bytes, range.after, range.clean)
        };
        let range = &mut self.nodes[first as usize];
        range.bytes += bytes;
        range.after = after;
        range.clean &= clean;
        if let Some(next) = self.nodes.get_mut(after as usize) {
            next.before = first;
        }
        self.drop_node(second);
    }

    /// An unused node; `None` if there is no memory for one.
    fn node(&mut self) -> Option<u32> {
        if self.unused != NONE {
            let index = self.unused;
            self.unused = self.nodes[index as usize].after;
            return Some(index);
        }
        if self.nodes.len() >= NONE as usize || self.nodes.try_reserve(1).is_err() {
            return None;
        }
        let note = N::default();
        self.nodes.push(Range {
            address: 0,
            bytes: 0,
            before: NONE,
            after: NONE,
            state: RangeState::Unused,
            clean: false,
            note,
        });
        Some(self.nodes.len() as u32 - 1)
    }

    fn drop_node(&mut self, index: u32) {
        let unused = self.unused;
        let range = &mut self.nodes[index as usize];
        range.state = RangeState::Unused;
        range.note = N::default();
        range.after = unused;
        self.unused = index;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    impl AddressSpace<u32> {
        /// Checks all invariants of the nodes.
        fn check(&self) {
            let mut free = BTreeSet::new();
            for (i, range) in self.nodes.iter().enumerate().filter(|(_, range)| range.state != RangeState::Unused) {
                assert!(range.bytes > 0);
                if range.state == RangeState::Free {
                    free.insert((range.bytes, range.address, i as u32));
                }
                if let Some(next) = self.nodes.get(range.after as usize) {
                    assert_eq!((next.address, next.before), (range.address + range.bytes, i as u32));
                    assert!(next.state != RangeState::Unused);
                    assert!(range.state == RangeState::Taken || next.state == RangeState::Taken, "two free neighbours");
                }
            }
            assert_eq!(free, self.free);
            assert_eq!(self.largest, free.last().map_or(0, |free| free.0));
        }
    }

    fn next(seed: &mut u64) -> usize {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as usize
    }

    #[test]
    fn random_calls_agree_with_a_search_of_all_free_ranges() {
        for round in 0..40u64 {
            let mut seed = round;
            let mut space = AddressSpace::new();
            // The free ranges, as (bytes, address), computed from a map of units.
            let mut units: Vec<(usize, Vec<bool>)> = Vec::new();
            let mut taken: Vec<(u32, usize, usize)> = Vec::new();
            for step in 0..1500u32 {
                match next(&mut seed) % 16 {
                    0 if units.len() < 6 => {
                        let (address, bytes) = ((units.len() + 1) << 20, 64 * (1 + next(&mut seed) % 200));
                        space.add(address, bytes, true).unwrap();
                        units.push((address, vec![false; bytes / 64]));
                    }
                    1..=8 => {
                        let bytes = 64 * (1 + next(&mut seed) % 40);
                        let runs = units.iter().flat_map(|(address, units)| free_runs(*address, units));
                        let best = runs.filter(|run| run.0 >= bytes).min();
                        let got = space.take(bytes);
                        assert_eq!(got.map(|index| space.get(index).address), best.map(|run| run.1));
                        let Some(index) = got else { continue };
                        assert_eq!(space.get(index).bytes, bytes);
                        space.get_mut(index).note = step;
                        mark(&mut units, space.get(index).address, bytes, true);
                        taken.push((index, space.get(index).address, bytes));
                    }
                    _ if !taken.is_empty() => {
                        let (index, address, bytes) = taken.swap_remove(next(&mut seed) % taken.len());
                        mark(&mut units, address, bytes, false);
                        let region = units.iter().find(|(at, units)| (*at..at + 64 * units.len()).contains(&address));
                        let is_whole = region.is_some_and(|(_, units)| units.iter().all(|&unit| !unit));
                        assert_eq!(space.give(index).is_some(), is_whole);
                    }
                    _ => {}
                }
                space.check();
            }
            for (index, ..) in taken.drain(..) {
                space.give(index);
            }
            let mut left = units.len();
            while let Some(region) = space.free_region() {
                space.remove(region);
                left -= 1;
                space.check();
            }
            assert_eq!((left, space.largest()), (0, 0));
        }
    }

    fn free_runs(address: usize, units: &[bool]) -> Vec<(usize, usize)> {
        let mut runs = Vec::new();
        let mut at = 0;
        while at < units.len() {
            let len = units[at..].iter().take_while(|&&unit| !unit).count();
            if len > 0 {
                runs.push((64 * len, address + 64 * at));
            }
            at += len.max(1);
        }
        runs
    }

    fn mark(units: &mut [(usize, Vec<bool>)], address: usize, bytes: usize, taken: bool) {
        let inside = |(at, units): &&mut (usize, Vec<bool>)| (*at..*at + 64 * units.len()).contains(&address);
        let (at, units) = units.iter_mut().find(inside).unwrap();
        for unit in &mut units[(address - *at) / 64..][..bytes / 64] {
            assert_ne!(*unit, taken, "a range was given twice");
            *unit = taken;
        }
    }

    #[test]
    fn a_range_is_clean_until_somebody_had_a_part_of_it() {
        let mut space = AddressSpace::<u32>::new();
        space.add(4096, 4096, true).unwrap();
        let (a, b) = (space.take(64).unwrap(), space.take(64).unwrap());
        assert!(space.get(a).clean && space.get(b).clean);
        space.get_mut(a).clean = false;
        space.give(a);
        let again = space.take(64).unwrap();
        assert!(!space.get(again).clean);
        space.give(again);
        space.get_mut(b).clean = false;
        let whole = space.give(b).unwrap();
        assert!(!space.get(whole).clean);
        assert_eq!(space.remove(whole), (4096, 4096));
    }
}
