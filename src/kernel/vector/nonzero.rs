//! The places of elements that are not 0.
//!
//! Elements are words of their size, without the sign of floats. Two regions over blocks: the first counts, the second
//! writes where the counts before it end. The counts lie in the scratch memory of slot 0.

use super::site::{Site, check_scratch};
use crate::base::Result;
use crate::base::desc::MAX_RANK;
use crate::memory::{BytesMut, Shards};
use crate::threadpool::Span;

/// Elements of a block.
const BLOCK: usize = 8 << 10;
/// Time to look at an element, and to write a place's coordinate.
const LOOK_NS: f32 = 0.1;
const WRITE_NS: f32 = 1.0;

/// Elements, and their shape.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    pub bytes: &'a [u8],
    /// Bytes of an element.
    pub size: usize,
    /// Whether the highest bit is a sign that does not count.
    pub signed_zero: bool,
    pub shape: &'a [i64],
}

/// The number of elements of each block that are not 0, then that of those before it.
#[derive(Debug)]
struct Counts(*mut u64);

// SAFETY: pieces write those of their own blocks.
unsafe impl Sync for Counts {}

impl Words<'_> {
    fn elements(&self) -> usize {
        self.bytes.len() / self.size
    }

    fn blocks(&self) -> usize {
        self.elements().div_ceil(BLOCK)
    }

    /// Scratch memory per slot for so many elements.
    pub fn scratch_bytes(elements: usize) -> usize {
        elements.div_ceil(BLOCK) * size_of::<u64>()
    }

    /// Estimated time on one thread.
    pub fn cost_ns(elements: usize, rank: usize) -> u64 {
        // Half of them are assumed to be 0.
        (elements as f32 * (2.0 * LOOK_NS + 0.5 * rank as f32 * WRITE_NS)) as u64
    }

    fn block(&self, number: usize) -> &[u8] {
        let begin = number * BLOCK * self.size;
        &self.bytes[begin..(begin + BLOCK * self.size).min(self.bytes.len())]
    }

    /// Calls `found` with the index of each element of some bytes that is not 0.
    #[inline(always)]
    fn each<const SIZE: usize>(bytes: &[u8], signed: bool, mut found: impl FnMut(usize)) {
        for (i, word) in bytes.chunks_exact(SIZE).enumerate() {
            let mut wide = [0; 8];
            wide[..SIZE].copy_from_slice(word);
            let word = u64::from_le_bytes(wide) << (64 - 8 * SIZE);
            if if signed { word << 1 } else { word } != 0 {
                found(i);
            }
        }
    }

    fn each_of(&self, number: usize, found: impl FnMut(usize)) {
        let (bytes, signed) = (self.block(number), self.signed_zero);
        match self.size {
            1 => Self::each::<1>(bytes, signed, found),
            2 => Self::each::<2>(bytes, signed, found),
            4 => Self::each::<4>(bytes, signed, found),
            _ => Self::each::<8>(bytes, signed, found),
        }
    }

    /// Counts them, in a region of `site`, which has `scratch_bytes` per slot; then `fill` may follow.
    pub fn count(&self, site: &dyn Site) -> Result<usize> {
        check_scratch(site, Words::scratch_bytes(self.elements()));
        let counts = Counts(site.scratch(0).cast());
        let blocks = self.blocks();
        let span = Span { items: blocks, cost_ns: LOOK_NS * BLOCK as f32, ..Span::default() };
        site.parallel_for(&span, &|claim| {
            let counts = &counts;
            for number in claim.begin()..claim.end() {
                let mut count = 0;
                self.each_of(number, |_| count += 1);
                // SAFETY: the block's own count; there are as many as `scratch_bytes` asked for.
                unsafe { counts.0.add(number).write(count) };
            }
            Ok(())
        })?;
        let mut total = 0;
        for number in 0..blocks {
            // SAFETY: written by the region, which is over.
            unsafe { total += std::mem::replace(&mut *counts.0.add(number), total) };
        }
        Ok(total as usize)
    }

    /// Writes the places of `count` elements, which were counted before, in rows of `pitch`; what is left of the rows
    /// becomes -1.
    pub fn fill(&self, count: usize, places: BytesMut<'_>, pitch: usize, site: &dyn Site) -> Result<()> {
        let (counts, rank) = (Counts(site.scratch(0).cast()), self.shape.len());
        let places: Shards<'_, i64> = places.shards(1);
        assert!(count <= pitch && places.len() == rank * pitch, "{count} of {pitch} in {}", places.len());
        let to = Counts(places.as_ptr().cast());
        let cost_ns = BLOCK as f32 * (LOOK_NS + 0.5 * rank as f32 * WRITE_NS);
        site.parallel_for(&Span { items: self.blocks(), cost_ns, ..Span::default() }, &|claim| {
            let (counts, to) = (&counts, &to);
            for number in claim.begin()..claim.end() {
                // SAFETY: what `count` left there.
                let mut column = unsafe { *counts.0.add(number) } as usize;
                let mut at = ElementPlace::new(self.shape, number * BLOCK);
                self.each_of(number, |i| {
                    at.move_to(number * BLOCK + i);
                    for (row, &coordinate) in at.coordinates[..rank].iter().enumerate() {
                        assert!(column < pitch);
                        // SAFETY: inside of the places; columns of other blocks lie before or behind.
                        unsafe { to.0.add(row * pitch + column).write(coordinate as u64) };
                    }
                    column += 1;
                });
            }
            Ok(())
        })?;
        for row in 0..rank {
            for column in count..pitch {
                // SAFETY: inside of the places, and the region is over.
                unsafe { to.0.add(row * pitch + column).write(-1i64 as u64) };
            }
        }
        Ok(())
    }
}

/// The coordinates of an element, which go forward.
struct ElementPlace<'a> {
    shape: &'a [i64],
    index: usize,
    coordinates: [i64; MAX_RANK],
}

impl ElementPlace<'_> {
    fn new(shape: &[i64], index: usize) -> ElementPlace<'_> {
        let (mut left, mut coordinates) = (index as i64, [0; MAX_RANK]);
        for (coordinate, &dim) in coordinates[..shape.len()].iter_mut().zip(shape).rev() {
            *coordinate = left % dim;
            left /= dim;
        }
        ElementPlace { shape, index, coordinates }
    }

    fn move_to(&mut self, index: usize) {
        let mut more = (index - self.index) as i64;
        self.index = index;
        for (coordinate, &dim) in self.coordinates[..self.shape.len()].iter_mut().zip(self.shape).rev() {
            *coordinate += more;
            if *coordinate < dim {
                return;
            }
            more = *coordinate / dim;
            *coordinate %= dim;
        }
    }
}
