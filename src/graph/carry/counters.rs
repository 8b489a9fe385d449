//! A state's arrival counters, laid out so that neighbours are on different cache lines.
//!
//! Neighbouring nodes of a program are run by different threads where a list was cut, and their counters have
//! neighbouring numbers. Eight words share a cache line of 64 bytes: if they were eight neighbours, two threads that
//! arrive at their own nodes would take the line from each other at each arrival (about 100 ns, as much as all other
//! costs of a node). So a block of eight times L counters, L a power of two, is laid out in L lines by columns: number
//! i is in line i mod L, and counters that share a line are L numbers apart. A block is not larger than 4 KiB, so
//! neighbours are near enough to each other for a thread that runs them all.
#![forbid(unsafe_code)]

use super::arrivals::Arrivals;
use crate::base::Result;
use crate::memory::heap;
use std::ops::Index;

/// Words in a cache line, as a power of two.
const WORDS_LOG2: u32 = 3;
/// The most lines in a block, as a power of two.
const LINES_LOG2: u32 = 6;

pub(in crate::graph) struct Counters {
    words: Box<[Arrivals]>,
    lines_log2: u32,
}

impl Counters {
    /// Counters with these start values.
    pub fn new(starts: &[u32]) -> Result<Counters> {
        let lines_log2 = lines_log2_of(starts.len());
        // By place: the start value of the number that is there.
        let mut place = 0;
        let start = || {
            let number = number_at(place, lines_log2);
            place += 1;
            Arrivals::new(starts.get(number).copied().unwrap_or(1))
        };
        let words = heap::filled(padded(starts.len()), "a run's counters", start)?;
        Ok(Counters { words, lines_log2 })
    }

    /// The size of this many counters.
    pub fn bytes(count: usize) -> usize {
        padded(count) * size_of::<Arrivals>()
    }
}

impl Index<usize> for Counters {
    type Output = Arrivals;

    #[inline]
    fn index(&self, number: usize) -> &Arrivals {
        &self.words[place_of(number, self.lines_log2)]
    }
}

fn lines_log2_of(count: usize) -> u32 {
    let lines = count.div_ceil(1 << WORDS_LOG2).next_power_of_two();
    lines.trailing_zeros().min(LINES_LOG2)
}

fn padded(count: usize) -> usize {
    count.next_multiple_of(1 << (lines_log2_of(count) + WORDS_LOG2))
}

#[inline]
fn place_of(number: usize, lines_log2: u32) -> usize {
    let (lines, words) = ((1 << lines_log2) - 1, (1 << WORDS_LOG2) - 1);
    let block = number >> (lines_log2 + WORDS_LOG2) << (lines_log2 + WORDS_LOG2);
    block | (number & lines) << WORDS_LOG2 | (number >> lines_log2) & words
}

fn number_at(place: usize, lines_log2: u32) -> usize {
    let (lines, words) = ((1 << lines_log2) - 1, (1 << WORDS_LOG2) - 1);
    let block = place >> (lines_log2 + WORDS_LOG2) << (lines_log2 + WORDS_LOG2);
    block | (place & words) << lines_log2 | (place >> WORDS_LOG2) & lines
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        for lines_log2 in 0..=LINES_LOG2 {
            let n = 3 << (lines_log2 + WORDS_LOG2);
            let mut taken = vec![false; n];
            for number in 0..n {
                let place = place_of(number, lines_log2);
                assert_eq!(number_at(place, lines_log2), number);
                assert!(!std::mem::replace(&mut taken[place], true));
            }
        }
    }

    #[test]
    fn neighbours_share_no_line() {
        let counters = Counters::new(&(1..=1000).collect::<Vec<u32>>()).unwrap();
        let line = |number: usize| (&raw const counters[number] as usize - &raw const counters.words[0] as usize) / 64;
        for number in 0..999 {
            assert!((number + 1..1000.min(number + 32)).all(|other| line(number) != line(other)), "{number}");
        }
        // Small programs do not pay for large blocks.
        assert!(Counters::bytes(20) <= 2 * 20 * 8);
    }

    #[test]
    fn counters_begin_as_they_are_to() {
        let starts: Vec<u32> = (1..=777).collect();
        let counters = Counters::new(&starts).unwrap();
        for (number, start) in starts.iter().enumerate() {
            let ready = |amount| {
                counters[number].arrive(amount, false, *start) == crate::graph::carry::arrivals::Arrival::Ready
            };
            assert!(*start == 1 || !ready(*start - 1));
            assert!(ready(1));
        }
    }
}
