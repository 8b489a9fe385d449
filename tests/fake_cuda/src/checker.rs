//! The checker: whether each operation is ordered behind those whose bytes it uses.
//!
//! It knows for each range of bytes the last write and the reads since then. An operation's accesses come when it has
//! run, those of a kernel as it made them; what ran before it and used the same bytes (one of both writing) must be in
//! its clock. Two operations that nothing orders are found in whichever order they ran, unless one of them has not run
//! at all.
//!
//! Ranges are disjoint and in order. A write makes one range of what it covers.

use crate::clock::{Clock, Epoch};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Access {
    epoch: Epoch,
    name: Arc<str>,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    end: u64,
    write: Option<Access>,
    /// One for each chain at most: a later one covers those before it.
    reads: Vec<Access>,
}

/// An operation that nothing orders behind another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    pub bytes: Range<u64>,
    /// "reads" or "writes".
    pub first_does: &'static str,
    pub first: Arc<str>,
    pub second_does: &'static str,
}

#[derive(Debug, Default)]
pub struct Checker {
    cells: BTreeMap<u64, Cell>,
}

impl Checker {
    /// An operation has used these bytes. Gives what it is not ordered behind: one of each other operation.
    pub fn access(
        &mut self,
        epoch: Epoch,
        clock: &Clock,
        name: &Arc<str>,
        bytes: &Range<u64>,
        is_write: bool,
    ) -> Vec<Race> {
        let mut races: Vec<Race> = Vec::new();
        if bytes.is_empty() {
            return races;
        }
        self.split(bytes.start);
        self.split(bytes.end);
        let second_does = if is_write { "writes" } else { "reads" };
        let mut add = |range: Range<u64>, access: &Access, first_does| {
            if access.epoch == epoch || access.epoch.is_before(clock) {
                return;
            }
            match races.iter_mut().find(|race| race.first == access.name && race.bytes.end == range.start) {
                Some(race) => race.bytes.end = range.end,
                None => races.push(Race { bytes: range, first_does, first: Arc::clone(&access.name), second_does }),
            }
        };
        for (&start, cell) in self.cells.range(bytes.clone()) {
            cell.write.iter().for_each(|access| add(start..cell.end, access, "writes"));
            if is_write {
                cell.reads.iter().for_each(|access| add(start..cell.end, access, "reads"));
            }
        }
        let access = Access { epoch, name: Arc::clone(name) };
        if is_write {
            self.remove(bytes);
            self.cells.insert(bytes.start, Cell { end: bytes.end, write: Some(access), reads: Vec::new() });
        } else {
            self.fill(bytes);
            for cell in self.cells.range_mut(bytes.clone()).map(|(_, cell)| cell) {
                match cell.reads.iter_mut().find(|read| read.epoch.chain == epoch.chain) {
                    Some(read) => *read = access.clone(),
                    None => cell.reads.push(access.clone()),
                }
            }
        }
        races
    }

    /// The bytes begin a new life. Those of a block that a stream has freed stay known until then: an operation that ran
    /// beside the free tells of its accesses later.
    pub fn forget(&mut self, bytes: &Range<u64>) {
        self.split(bytes.start);
        self.split(bytes.end);
        self.remove(bytes);
    }

    /// What has used these bytes and is not in the clock.
    pub fn users(&self, clock: &Clock, bytes: &Range<u64>) -> Vec<Arc<str>> {
        let before = self.cells.range(..bytes.start).next_back().filter(|(_, cell)| cell.end > bytes.start);
        let cells = before.into_iter().chain(self.cells.range(bytes.clone())).map(|(_, cell)| cell);
        let accesses = cells.flat_map(|cell| cell.write.iter().chain(&cell.reads));
        let mut names: Vec<_> =
            accesses.filter(|access| !access.epoch.is_before(clock)).map(|access| Arc::clone(&access.name)).collect();
        names.sort();
        names.dedup();
        names
    }

    fn remove(&mut self, bytes: &Range<u64>) {
        let starts: Vec<u64> = self.cells.range(bytes.clone()).map(|(start, _)| *start).collect();
        starts.iter().for_each(|start| {
            self.cells.remove(start);
        });
    }

    /// No cell reaches over this address.
    fn split(&mut self, at: u64) {
        let Some((_, cell)) = self.cells.range_mut(..at).next_back() else { return };
        if cell.end > at {
            let tail = cell.clone();
            cell.end = at;
            self.cells.insert(at, tail);
        }
    }

    /// The range is a row of whole cells.
    fn fill(&mut self, bytes: &Range<u64>) {
        let (mut at, mut gaps) = (bytes.start, Vec::new());
        for (&start, cell) in self.cells.range(bytes.clone()) {
            if start > at {
                gaps.push(at..start);
            }
            at = cell.end;
        }
        if at < bytes.end {
            gaps.push(at..bytes.end);
        }
        for gap in gaps {
            self.cells.insert(gap.start, Cell { end: gap.end, ..Cell::default() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Chains;

    #[derive(Default)]
    struct Test {
        checker: Checker,
        chains: Chains,
    }

    impl Test {
        /// Gives the operation's clock, and what it is not ordered behind.
        fn run(&mut self, name: &str, after: &[&Clock], bytes: Range<u64>, is_write: bool) -> (Clock, Vec<String>) {
            let mut clock = Clock::default();
            after.iter().for_each(|other| clock.join(other));
            let epoch = self.chains.place(&mut clock, 0);
            let races = self.checker.access(epoch, &clock, &name.into(), &bytes, is_write);
            let text = |race: &Race| format!("{} {:?} {}", race.first, race.bytes, race.first_does);
            (clock, races.iter().map(text).collect())
        }
    }

    #[test]
    fn what_is_ordered_is_fine() {
        let mut test = Test::default();
        let (a, races) = test.run("a", &[], 0..100, true);
        assert!(races.is_empty());
        let (b, races) = test.run("b", &[&a], 0..50, false);
        assert!(races.is_empty());
        let (c, races) = test.run("c", &[&a], 20..100, false);
        assert!(races.is_empty(), "readers need no order");
        let (_, races) = test.run("d", &[&b, &c], 0..100, true);
        assert!(races.is_empty());
    }

    #[test]
    fn a_missing_order_is_found_with_the_bytes() {
        let mut test = Test::default();
        let (a, _) = test.run("a", &[], 0..100, true);
        assert_eq!(test.run("b", &[], 90..200, false).1, ["a 90..100 writes"]);
        let (c, races) = test.run("c", &[&a], 95..120, true);
        assert_eq!(races, ["b 95..120 reads"]);
        assert_eq!(test.run("d", &[&c], 0..10, true).1, [""; 0], "c is after a");
        assert_eq!(test.run("e", &[&a], 0..120, true).1, ["d 0..10 writes", "b 90..95 reads", "c 95..120 writes"]);
    }

    #[test]
    fn a_new_life_begins_without_users() {
        let mut test = Test::default();
        test.run("a", &[], 0..100, true);
        let none = Clock::default();
        assert_eq!(test.checker.users(&none, &(50..60)).len(), 1);
        test.checker.forget(&(40..60));
        assert!(test.checker.users(&none, &(40..60)).is_empty());
        assert!(test.run("b", &[], 40..60, true).1.is_empty());
        assert_eq!(test.run("c", &[], 30..45, false).1, ["a 30..40 writes", "b 40..45 writes"]);
    }
}
