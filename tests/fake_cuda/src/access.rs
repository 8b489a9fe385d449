//! Which bytes an operation has used, and the memory as a kernel sees it.

use crate::space::{self, Place};
use std::ops::Range;

/// Ranges of bytes, gathered as they come; those that follow one another closely become one.
#[derive(Debug, Default)]
struct Ranges {
    ranges: Vec<Range<u64>>,
    /// So many are worth putting in order.
    many: usize,
}

impl Ranges {
    fn add(&mut self, new: Range<u64>) {
        // Threads of a block take turns with a few rows of memory.
        let touching = |old: &&mut Range<u64>| old.start <= new.start && new.start <= old.end;
        if let Some(old) = self.ranges.iter_mut().rev().take(8).find(touching) {
            old.end = old.end.max(new.end);
            return;
        }
        self.ranges.push(new);
        if self.ranges.len() > self.many.max(4096) {
            self.merge();
            self.many = 2 * self.ranges.len();
        }
    }

    fn merge(&mut self) {
        self.ranges.sort_by_key(|range| range.start);
        self.ranges.dedup_by(|next, last| {
            let touches = next.start <= last.end;
            if touches {
                last.end = last.end.max(next.end);
            }
            touches
        });
    }
}

#[derive(Debug, Default)]
pub struct Accesses {
    reads: Ranges,
    writes: Ranges,
}

impl Accesses {
    pub fn read(&mut self, bytes: Range<u64>) {
        self.reads.add(bytes);
    }

    pub fn write(&mut self, bytes: Range<u64>) {
        self.writes.add(bytes);
    }

    /// Puts the ranges in order, without overlaps.
    pub fn finish(&mut self) {
        self.reads.merge();
        self.writes.merge();
    }

    pub fn reads(&self) -> &[Range<u64>] {
        &self.reads.ranges
    }

    pub fn writes(&self) -> &[Range<u64>] {
        &self.writes.ranges
    }
}

/// The memory that a kernel reaches, which remembers what was used.
#[derive(Debug, Default)]
pub struct Memory {
    pub accesses: Accesses,
    /// The blocks that were found last, with their ranges of addresses.
    found: Vec<(Range<u64>, Place)>,
}

impl Memory {
    /// Where these bytes are; they count as used.
    pub fn at(&mut self, address: u64, size: u64, is_write: bool) -> Result<*mut u8, String> {
        let Some(end) = address.checked_add(size) else {
            return Err(format!("{size} bytes at {address:#x}, which are not the device's"));
        };
        let bytes = address..end;
        let is_in = |range: &Range<u64>| range.start <= bytes.start && bytes.end <= range.end;
        let at = match self.found.iter().find(|(range, _)| is_in(range)) {
            Some((range, place)) => place.at.wrapping_add((bytes.start - range.start) as usize),
            None => {
                let (whole, place) = space::look(|space| {
                    // An access over the end is to be told as such.
                    space.translate(&bytes)?;
                    let whole = space.around(bytes.start).unwrap_or(bytes.clone());
                    Ok::<_, String>((whole.clone(), space.translate(&whole)?))
                })?;
                let at = place.at.wrapping_add((bytes.start - whole.start) as usize);
                if self.found.len() == 8 {
                    self.found.remove(0);
                }
                self.found.push((whole, place));
                at
            }
        };
        if is_write {
            self.accesses.write(bytes)
        } else {
            self.accesses.read(bytes)
        }
        Ok(at)
    }

    pub fn read<const N: usize>(&mut self, address: u64) -> Result<[u8; N], String> {
        let at = self.at(address, N as u64, false)?;
        // SAFETY: so many bytes of a live block are there.
        Ok(unsafe { at.cast::<[u8; N]>().read_unaligned() })
    }

    pub fn write(&mut self, address: u64, value: &[u8]) -> Result<(), String> {
        let at = self.at(address, value.len() as u64, true)?;
        // SAFETY: as above, and they are no part of `value`, which is the driver's own.
        unsafe { at.copy_from_nonoverlapping(value.as_ptr(), value.len()) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Handle;

    #[test]
    fn ranges_become_few() {
        let mut accesses = Accesses::default();
        for i in 0..100 {
            // Two rows in turn, the second one backwards.
            accesses.read(i * 4..i * 4 + 4);
            accesses.read(2000 - i * 4..2004 - i * 4);
        }
        accesses.finish();
        assert_eq!(accesses.reads(), [0..400, 1604..2004]);
        assert!(accesses.writes().is_empty());
    }

    #[test]
    fn far_accesses_do_not_pile_up() {
        let mut ranges = Ranges::default();
        for i in 0..100_000u64 {
            ranges.add((i * 7919) % 10_000 * 4..(i * 7919) % 10_000 * 4 + 4);
        }
        assert!(ranges.ranges.len() < 25_000, "{}", ranges.ranges.len());
        ranges.merge();
        assert_eq!(ranges.ranges, [0..40_000]);
    }

    #[test]
    fn a_kernels_memory_is_the_devices() {
        let block = space::with(|space| space.allocate("test", 64, 0, Handle::NULL, None)).unwrap();
        let mut memory = Memory::default();
        memory.write(block + 4, &7u32.to_le_bytes()).unwrap();
        assert_eq!(memory.read::<4>(block + 4).unwrap(), 7u32.to_le_bytes());
        assert_eq!(memory.read::<4>(block).unwrap(), [0xff; 4], "new memory is full of ones");
        let why = memory.read::<8>(block + 60).unwrap_err();
        assert!(why.contains("past its end"), "{why}");
        assert!(memory.read::<4>(16).unwrap_err().contains("not the device's"));
        memory.accesses.finish();
        assert_eq!(memory.accesses.reads(), [block..block + 8]);
        assert_eq!(memory.accesses.writes(), [block + 4..block + 8]);
    }
}
