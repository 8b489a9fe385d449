//! One thread's records. The thread writes, and any thread may read meanwhile.
//!
//! A ring that keeps the first records is an array that is full at some time. One that keeps the last overwrites its
//! oldest record, perhaps while it is read. So the writer publishes how far it has come (`head`) before it touches the
//! next place, with a fence in between; the reader copies, and then looks at `head` again behind a fence of its own. A
//! reader that has seen a word of record n also sees that `head` is at least n: so what it has copied of the place of
//! record n is of use only while `head` is less, and it drops that.

use super::record::Words;
use crate::base::{Error, Result};
use crate::sync::atomic::Ordering::*;
use crate::sync::atomic::{AtomicU64, fence};

/// Longest name of a thread for the system, with its end.
pub(super) const NAME: usize = 16;

/// Rings lie side by side, and each has its cache lines to itself: their threads write with every record.
#[repr(align(128))]
pub struct RecordRing {
    /// Records written, or in a full ring that keeps the first the number of its places.
    head: AtomicU64,
    /// Records that found the ring full.
    lost: AtomicU64,
    keeps_last: bool,
    places: Box<[[AtomicU64; 4]]>,
    /// The system's number of the thread, 0 until the name is there.
    os_id: AtomicU64,
    name: [AtomicU64; NAME / 8],
}

impl RecordRing {
    /// Room for `count` records, a power of two. The memory is not touched.
    pub fn create(count: usize, keeps_last: bool) -> Result<RecordRing> {
        Ok(RecordRing {
            head: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            keeps_last,
            places: zeroed(count)?,
            os_id: AtomicU64::new(0),
            name: std::array::from_fn(|_| AtomicU64::new(0)),
        })
    }

    /// A ring that is always full: only its count of lost records is of use, and threads may share it.
    pub fn of_none() -> RecordRing {
        RecordRing {
            head: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            keeps_last: false,
            places: Box::default(),
            os_id: AtomicU64::new(0),
            name: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Writes one record. Only by the ring's thread.
    #[inline]
    pub fn put(&self, record: Words) {
        // ORDERING: Relaxed; this thread alone writes it.
        let head = self.head.load(Relaxed);
        let mut at = head as usize;
        if self.keeps_last {
            at &= self.places.len() - 1;
        }
        let Some(place) = self.places.get(at) else {
            // ORDERING: Relaxed; a number by itself. Threads without a ring share one.
            self.lost.fetch_add(1, Relaxed);
            return;
        };
        // ORDERING: pairs with the fence in `read`, for the words below and the head of the record before.
        fence(Release);
        // ORDERING: Relaxed; the fence and the head order them.
        place[0].store(record[0], Relaxed);
        place[1].store(record[1], Relaxed);
        place[2].store(record[2], Relaxed);
        place[3].store(record[3], Relaxed);
        // ORDERING: Release pairs with the Acquire in `read`.
        self.head.store(head + 1, Release);
    }

    /// A record is lost.
    pub fn lose(&self) {
        self.lost.fetch_add(1, Relaxed);
    }

    /// Copies the records that are there, the oldest first; returns how many were lost so far.
    pub fn read(&self, into: &mut Vec<Words>) -> Result<u64> {
        self.read_and(into, || fence(Acquire))
    }

    /// `then`: models leave the fence out.
    fn read_and(&self, into: &mut Vec<Words>, then: impl Fn()) -> Result<u64> {
        into.clear();
        let places = self.places.len() as u64;
        // ORDERING: Acquire pairs with the Release in `put`.
        let head = self.head.load(Acquire);
        let first = head.saturating_sub(places);
        let bytes = (head - first) as usize * size_of::<Words>();
        into.try_reserve_exact((head - first) as usize)
            .map_err(|_| Error::exhausted("the records of a thread", bytes))?;
        for number in first..head {
            let place = &self.places[(number % places) as usize];
            into.push(std::array::from_fn(|word| place[word].load(Relaxed)));
        }
        if !self.keeps_last {
            return Ok(self.lost.load(Relaxed));
        }
        // ORDERING: the fence pairs with that in `put`.
        then();
        let after = self.head.load(Relaxed);
        // TraceRecord `after` may be half written, in the place of the one that is so much older.
        let whole = (after + 1).saturating_sub(places);
        into.drain(..(whole.saturating_sub(first) as usize).min(into.len()));
        Ok(whole.max(first))
    }

    /// Records that are lost so far.
    pub fn lost(&self) -> u64 {
        let behind = if self.keeps_last { self.head.load(Relaxed) + 1 } else { 0 };
        self.lost.load(Relaxed) + behind.saturating_sub(self.places.len() as u64)
    }

    /// Records that are there.
    pub fn kept(&self) -> u64 {
        let head = self.head.load(Relaxed);
        head - (head + 1).saturating_sub(self.places.len() as u64).min(if self.keeps_last { head } else { 0 })
    }

    /// Tells whose ring it is. Only by its thread.
    pub fn set_owner(&self, os_id: u64, name: [u8; NAME]) {
        for (word, bytes) in self.name.iter().zip(name.as_chunks::<8>().0) {
            word.store(u64::from_ne_bytes(*bytes), Relaxed);
        }
        // ORDERING: Release pairs with the Acquire in `owner`.
        self.os_id.store(os_id, Release);
    }

    /// The system's number of the thread, and its name; `None` while the thread is about to say so.
    pub fn owner(&self) -> Option<(u64, String)> {
        // ORDERING: Acquire pairs with the Release in `set_owner`.
        let os_id = self.os_id.load(Acquire);
        let mut name = [0; NAME];
        for (word, bytes) in self.name.iter().zip(name.as_chunks_mut::<8>().0) {
            *bytes = word.load(Relaxed).to_ne_bytes();
        }
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        (os_id != 0).then(|| (os_id, String::from_utf8_lossy(&name[..end]).into_owned()))
    }
}

/// Places of zeros, which the system gives without touching them.
#[cfg(not(loom))]
fn zeroed(count: usize) -> Result<Box<[[AtomicU64; 4]]>> {
    use std::alloc::{Layout, alloc_zeroed};
    let exhausted = || Error::exhausted("the records of a thread", count.saturating_mul(size_of::<Words>()));
    let layout = Layout::array::<[AtomicU64; 4]>(count).map_err(|_| exhausted())?;
    if layout.size() == 0 {
        return Ok(Box::default());
    }
    // SAFETY: a layout of more than no bytes. The result is memory of that layout, or NULL; all bits zero are atomics of
    // value zero, and a box of that slice frees the memory with the same layout.
    unsafe {
        let data = alloc_zeroed(layout).cast::<[AtomicU64; 4]>();
        if data.is_null() {
            return Err(exhausted());
        }
        Ok(Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, count)))
    }
}

#[cfg(loom)]
fn zeroed(count: usize) -> Result<Box<[[AtomicU64; 4]]>> {
    Ok((0..count).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect())
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// A thread writes four records into two places while another reads: what that keeps is whole, in order, and with
    /// what it says is lost it is all that was there. The last of the four overwrites one that a reader keeps. The
    /// thread that loom begins with is the writer: loom takes no note of a load that a thread's own one has followed.
    fn reading_while_written(then: fn()) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let ring = Arc::new(RecordRing::create(2, true).unwrap());
            let reader = {
                let ring = Arc::clone(&ring);
                thread::spawn(move || {
                    let mut read = Vec::new();
                    let lost = ring.read_and(&mut read, then).unwrap();
                    for (record, number) in read.iter().zip(lost + 1..) {
                        assert_eq!(*record, [number; 4], "a record of two");
                    }
                })
            };
            (1..5).for_each(|number| ring.put([number; 4]));
            reader.join().unwrap();
            let mut read = Vec::new();
            assert_eq!((ring.read_and(&mut read, then).unwrap(), &read[..]), (3, &[[4; 4]][..]));
        });
    }

    #[test]
    fn models_of_rings_reading_while_written() {
        reading_while_written(|| fence(Acquire));
    }

    #[test]
    #[should_panic(expected = "a record of two")]
    fn models_of_rings_without_a_fence_behind_the_copy() {
        reading_while_written(|| ());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_keeps_the_first_or_the_last() {
        for keeps_last in [false, true] {
            let ring = RecordRing::create(8, keeps_last).unwrap();
            let mut read = Vec::new();
            for number in 0..5 {
                ring.put([number; 4]);
            }
            assert_eq!(ring.read(&mut read).unwrap(), 0);
            assert_eq!(read, (0..5).map(|number| [number; 4]).collect::<Vec<_>>());
            for number in 5..20 {
                ring.put([number; 4]);
            }
            let lost = ring.read(&mut read).unwrap();
            // The oldest may always be about to be overwritten.
            let (expected, expected_lost) = if keeps_last { (13..20, 13) } else { (0..8, 12) };
            assert_eq!(read, expected.map(|number| [number; 4]).collect::<Vec<_>>());
            assert_eq!(lost, expected_lost);
        }
        let none = RecordRing::of_none();
        none.put([1; 4]);
        let mut read = Vec::new();
        assert_eq!((none.read(&mut read).unwrap(), read.len()), (1, 0));
    }

    #[test]
    fn what_is_read_while_it_is_written_is_whole() {
        use std::sync::atomic::AtomicBool;
        let ring = RecordRing::create(64, true).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..2_000_000).for_each(|number| ring.put([number; 4]));
                is_over.store(true, Relaxed);
            });
            let (mut read, mut before) = (Vec::new(), 0);
            while !is_over.load(Relaxed) {
                let lost = ring.read(&mut read).unwrap();
                assert!(lost >= before);
                before = lost;
                for (record, number) in read.iter().zip(lost..) {
                    assert_eq!(*record, [number; 4]);
                }
            }
        });
        assert_eq!(ring.owner(), None);
        ring.set_owner(12, *b"worker-3\0\0\0\0\0\0\0\0");
        assert_eq!(ring.owner(), Some((12, "worker-3".to_owned())));
    }
}
