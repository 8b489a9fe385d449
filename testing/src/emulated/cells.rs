//! The last users of each byte: disjoint address ranges in order, each with the last write and the reads since then. A
//! later access of a queue covers the ones before it, so there is at most one for each queue, except for the operations
//! of a replay.
//!
//! A write makes one range of what it covers, so there are never more ranges than a program's accesses have ends. The
//! ranges are in one vector, which keeps its capacity: a program that repeats itself allocates nothing here.
#![forbid(unsafe_code)]

use smallvec::SmallVec;
use std::ops::Range;

/// An operation's use of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteAccess {
    pub slot: u32,
    pub name: u32,
    /// Its position in the slot's queue.
    pub position: u64,
    /// Its step in a launch of a recording.
    pub step: u32,
}

#[derive(Clone, Debug)]
pub(super) struct AccessRange {
    pub start: usize,
    pub end: usize,
    pub write: Option<ByteAccess>,
    pub reads: SmallVec<[ByteAccess; 4]>,
}

impl AccessRange {
    fn empty(start: usize, end: usize) -> AccessRange {
        AccessRange { start, end, write: None, reads: SmallVec::new() }
    }

    pub(super) fn accesses(&self) -> impl Iterator<Item = &ByteAccess> {
        self.write.iter().chain(&self.reads)
    }
}

#[derive(Debug, Default)]
pub(super) struct Cells(Vec<AccessRange>);

impl Cells {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The ranges that share a byte with this one.
    pub(super) fn overlapping(&self, range: &Range<usize>) -> &[AccessRange] {
        let first = self.0.partition_point(|cell| cell.end <= range.start);
        let count = self.0[first..].partition_point(|cell| cell.start < range.end);
        &self.0[first..first + count]
    }

    /// `covers`: whether this access comes after another one of its queue.
    pub(super) fn read(&mut self, range: &Range<usize>, access: ByteAccess, covers: impl Fn(&ByteAccess) -> bool) {
        let covered = self.cover(range);
        for cell in &mut self.0[covered] {
            let is_covered = |read: &ByteAccess| read.slot == access.slot && covers(read);
            match cell.reads.iter().position(is_covered) {
                Some(first) => {
                    cell.reads[first] = access;
                    let mut at = 0;
                    cell.reads.retain(|read| {
                        at += 1;
                        at - 1 <= first || !is_covered(read)
                    });
                }
                None => cell.reads.push(access),
            }
        }
    }

    pub(super) fn write(&mut self, range: &Range<usize>, access: ByteAccess) {
        let covered = self.cover(range);
        let Some(first) = covered.clone().next() else { return };
        self.0.drain(first + 1..covered.end);
        let cell = &mut self.0[first];
        cell.end = range.end;
        cell.write = Some(access);
        cell.reads.clear();
    }

    /// Forgets accesses; ranges without any are removed.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&AccessRange, &ByteAccess) -> bool) {
        self.0.retain_mut(|cell| {
            let write = cell.write.filter(|access| keep(cell, access));
            let kept: SmallVec<[ByteAccess; 4]> =
                cell.reads.iter().filter(|access| keep(cell, access)).copied().collect();
            (cell.write, cell.reads) = (write, kept);
            cell.accesses().next().is_some()
        });
    }

    /// Splits ranges and fills gaps, so that the range is a row of whole cells.
    fn cover(&mut self, range: &Range<usize>) -> Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        let mut first = self.0.partition_point(|cell| cell.end <= range.start);
        if self.split(first, range.start) {
            first += 1;
        }
        let (mut at, mut index) = (range.start, first);
        while at < range.end {
            match self.0.get(index).map(|cell| cell.start) {
                Some(start) if start == at => {
                    self.split(index, range.end);
                }
                next => {
                    let end = next.unwrap_or(range.end).min(range.end);
                    self.0.insert(index, AccessRange::empty(at, end));
                }
            }
            at = self.0[index].end;
            index += 1;
        }
        first..index
    }

    /// Splits the cell with this index in two at an address inside of it.
    fn split(&mut self, index: usize, at: usize) -> bool {
        let Some(cell) = self.0.get_mut(index) else { return false };
        if at <= cell.start || cell.end <= at {
            return false;
        }
        let mut head = cell.clone();
        head.end = at;
        cell.start = at;
        self.0.insert(index, head);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(slot: u32, position: u64) -> ByteAccess {
        ByteAccess { slot, name: 0, position, step: 0 }
    }

    /// For each byte: the write, and the reads by slot.
    type Byte = (Option<u64>, [u64; 3]);

    fn bytes(cells: &Cells, size: usize) -> Vec<Byte> {
        let mut bytes = vec![(None, [0; 3]); size];
        for cell in &cells.0 {
            for byte in &mut bytes[cell.start..cell.end] {
                byte.0 = cell.write.map(|access| access.position);
                cell.reads.iter().for_each(|read| byte.1[read.slot as usize] = read.position);
            }
        }
        bytes
    }

    #[test]
    fn the_same_as_a_table_of_bytes() {
        const SIZE: usize = 24;
        let mut random = 1u64;
        let mut draw = |n: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 33) as usize) % n
        };
        for _ in 0..300 {
            let (mut cells, mut table) = (Cells::default(), vec![(None, [0; 3]); SIZE]);
            for position in 1..40 {
                let start = draw(SIZE);
                let range = start..start + draw(SIZE - start + 1);
                let slot = draw(3);
                let by = access(slot as u32, position);
                match draw(2) {
                    0 => {
                        cells.read(&range, by, |_| true);
                        table[range.clone()].iter_mut().for_each(|byte| byte.1[slot] = position);
                    }
                    _ => {
                        cells.write(&range, by);
                        table[range.clone()].iter_mut().for_each(|byte| *byte = (Some(position), [0; 3]));
                    }
                }
                assert_eq!(bytes(&cells, SIZE), table);
                assert!(cells.0.windows(2).all(|pair| pair[0].end <= pair[1].start));
                assert!(cells.0.iter().all(|cell| cell.start < cell.end));
                let seen =
                    cells.overlapping(&range).iter().map(|cell| cell.end.min(range.end) - cell.start.max(range.start));
                assert_eq!(seen.sum::<usize>(), range.len(), "covered: {range:?}");
            }
            cells.retain(|_, access| access.slot == 1);
            let kept = |byte: &Byte| [0, byte.1[1], 0];
            let expected: Vec<_> = table.iter().map(kept).collect();
            assert_eq!(bytes(&cells, SIZE).iter().map(|byte| byte.1).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_program_that_repeats_itself_adds_nothing() {
        let mut cells = Cells::default();
        let mut round = |base: u64| {
            cells.write(&(0..100), access(0, base));
            cells.read(&(0..30), access(1, base), |_| true);
            cells.read(&(20..70), access(2, base), |_| true);
            cells.write(&(200..300), access(1, base));
            (cells.len(), cells.0.capacity())
        };
        let first = round(1);
        (2..50).for_each(|i| assert_eq!(round(i), first));
    }
}
