//! A hash index: finds numbers by hash, beside a list with the keys that the caller keeps.
//!
//! Growing moves eight bytes for each entry without reading the list: with a million names it would have to read every
//! one.
#![forbid(unsafe_code)]

use super::{Error, Result};

/// Mixes two words into one: every bit of the result depends on every bit of both.
#[inline]
pub fn mix(a: u64, b: u64) -> u64 {
    let wide = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd6e8_feb8_6659_fd93);
    (wide >> 64) as u64 ^ wide as u64
}

/// The hash of a text. `seed` must be unknown to an attacker who chooses the texts.
#[inline]
pub fn hash(seed: u64, text: &[u8]) -> u64 {
    let mut hash = mix(seed, text.len() as u64);
    let mut words = text.chunks_exact(8);
    for word in &mut words {
        hash = mix(hash, u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    let last = words.remainder().iter().rev().fold(0u64, |last, &byte| last << 8 | u64::from(byte));
    mix(hash, last)
}

/// An open-addressing table. A lookup that fails reads only the marks, many of which fit into a cache.
#[derive(Clone, Debug, Default)]
pub struct HashIndex {
    /// A byte of each hash; `FREE` where there is none.
    marks: Vec<u8>,
    /// The low half of each hash, and the number.
    slots: Vec<(u32, u32)>,
    len: usize,
}

const FREE: u8 = 0;
const FEWEST: usize = 16;

#[inline]
fn mark(hash: u64) -> u8 {
    (hash >> 56) as u8 | 1
}

impl HashIndex {
    /// The number with this hash for which `is` holds.
    #[inline]
    pub fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let (mask, mark) = (self.marks.len().wrapping_sub(1), mark(hash));
        let mut at = hash as u32 as usize & mask;
        // Some slots are always free, so the loop ends.
        while let Some(&other) = self.marks.get(at).filter(|mark| **mark != FREE) {
            if other == mark && self.slots[at].0 == hash as u32 && is(self.slots[at].1) {
                return Some(self.slots[at].1);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Makes room for the next `insert`. `what` is for the error.
    #[inline]
    pub fn reserve(&mut self, what: &str) -> Result<()> {
        if (self.len + 1) * 4 > self.marks.len() * 3 { self.grow(what) } else { Ok(()) }
    }

    #[cold]
    fn grow(&mut self, what: &str) -> Result<()> {
        let count = (self.marks.len() * 2).max(FEWEST);
        let exhausted = |_| Error::exhausted(what, count * (size_of::<(u32, u32)>() + 1));
        let (mut marks, mut slots) = (Vec::new(), Vec::new());
        marks.try_reserve_exact(count).map_err(exhausted)?;
        slots.try_reserve_exact(count).map_err(exhausted)?;
        marks.resize(count, FREE);
        slots.resize(count, (0, 0));
        let old = std::mem::replace(self, HashIndex { marks, slots, len: self.len });
        for (&mark, &slot) in old.marks.iter().zip(&old.slots).filter(|(mark, _)| **mark != FREE) {
            self.put(mark, slot);
        }
        Ok(())
    }

    /// Adds a number that is not in the index, after a `reserve`.
    #[inline]
    pub fn insert(&mut self, hash: u64, number: u32) {
        self.len += 1;
        self.put(mark(hash), (hash as u32, number));
    }

    #[inline]
    fn put(&mut self, mark: u8, slot: (u32, u32)) {
        let mask = self.marks.len() - 1;
        let mut at = slot.0 as usize & mask;
        while self.marks[at] != FREE {
            at = (at + 1) & mask;
        }
        (self.marks[at], self.slots[at]) = (mark, slot);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_found() {
        let names: Vec<String> = (0..3000).map(|i| format!("node {i}")).collect();
        let mut index = HashIndex::default();
        assert_eq!(index.find(1, |_| true), None);
        for (number, name) in names.iter().enumerate() {
            index.reserve("names").unwrap();
            index.insert(hash(7, name.as_bytes()), number as u32);
        }
        let find = |name: &str| index.find(hash(7, name.as_bytes()), |number| names[number as usize] == name);
        assert!((0..3000).all(|i| find(&names[i]) == Some(i as u32)));
        assert_eq!(find("node 3000"), None);
    }

    #[test]
    fn equal_hashes_are_told_apart() {
        let mut index = HashIndex::default();
        for number in 0..100 {
            index.reserve("numbers").unwrap();
            index.insert(5, number);
        }
        assert!((0..100).all(|number| index.find(5, |found| found == number) == Some(number)));
        assert_eq!(index.find(5, |number| number == 100), None);
    }

    #[test]
    fn texts_that_differ_a_little_have_other_hashes() {
        let texts = ["", "\0", "\0\0", "a", "a\0", "b", "12345678", "12345678\0", "12345679", "123456781"];
        let hashes: std::collections::HashSet<u64> = texts.iter().map(|text| hash(3, text.as_bytes())).collect();
        assert_eq!(hashes.len(), texts.len());
        assert_ne!(hash(3, b"a"), hash(4, b"a"));
    }
}
