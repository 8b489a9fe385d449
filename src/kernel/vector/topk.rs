//! The best elements of rows.
//!
//! An element and its place are one number, the lesser the better, so the order is total and a result does not depend
//! on the way to it. A row is gone through once: what is better than the worst that is known to be needed goes into a
//! buffer; when that is full, the best are kept, and their worst one is the new limit.

use super::site::{Site, check_scratch};
use crate::base::Result;
use crate::memory::{Bf16, BytesMut, Element, F16, Shards};
use crate::threadpool::Span;

/// Elements that are compared with the limit at once.
const CHUNK: usize = 64;

/// An element type that has an order.
pub trait Ordered: Element {
    type Rank: SortRank;

    /// The lesser the better.
    fn rank(self, least: bool) -> Self::Rank;
}

/// The quality of an element.
pub trait SortRank: Copy + Ord + Send + Sync {
    /// With a place, of which the lower one is better.
    type Entry: Copy + Ord;
    const ZERO: Self;

    fn at(self, place: u32) -> Self::Entry;
    fn of(entry: Self::Entry) -> (Self, u32);
}

impl SortRank for i32 {
    type Entry = u64;
    const ZERO: i32 = 0;

    #[inline(always)]
    fn at(self, place: u32) -> u64 {
        u64::from(self as u32 ^ 1 << 31) << 32 | u64::from(place)
    }

    fn of(entry: u64) -> (i32, u32) {
        (((entry >> 32) as u32 ^ 1 << 31) as i32, entry as u32)
    }
}

impl SortRank for i64 {
    type Entry = u128;
    const ZERO: i64 = 0;

    #[inline(always)]
    fn at(self, place: u32) -> u128 {
        u128::from(self as u64 ^ 1 << 63) << 32 | u128::from(place)
    }

    fn of(entry: u128) -> (i64, u32) {
        (((entry >> 32) as u64 ^ 1 << 63) as i64, entry as u32)
    }
}

impl Ordered for f32 {
    type Rank = i32;

    /// Bits that are ordered as the numbers, the zeros alike; a NaN before all.
    #[inline(always)]
    fn rank(self, least: bool) -> i32 {
        let bits = (self + 0.0).to_bits() as i32;
        let up = bits ^ (bits >> 31 & i32::MAX);
        if self.is_nan() { i32::MIN } else { up ^ if least { 0 } else { -1 } }
    }
}

macro_rules! ordered {
    ($($type:ty as $rank:ty: $wide:expr;)*) => {
        $(impl Ordered for $type {
            type Rank = $rank;

            #[inline(always)]
            fn rank(self, least: bool) -> $rank {
                $wide(self, least)
            }
        })*
    };
}

ordered! {
    F16 as i32: |x: F16, least| super::convert::Stored::widened(x).rank(least);
    Bf16 as i32: |x: Bf16, least| super::convert::Stored::widened(x).rank(least);
    i64 as i64: |x: i64, least| x ^ if least { 0 } else { -1 };
    i32 as i32: |x: i32, least| x ^ if least { 0 } else { -1 };
    i8 as i32: |x: i8, least| i32::from(x).rank(least);
    u8 as i32: |x: u8, least| i32::from(x).rank(least);
}

/// Rows of `len` elements that are `stride` apart, of which `count`, at least one, are chosen. There are `outer` blocks
/// of `stride` rows.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub outer: usize,
    pub len: usize,
    pub stride: usize,
    pub count: usize,
    pub least: bool,
}

/// The output for places.
#[derive(Debug)]
pub enum TopkPlaces<'a> {
    S32(Shards<'a, i32>),
    S64(Shards<'a, i64>),
}

impl Rows {
    /// Entries of a buffer.
    fn capacity(count: usize, len: usize) -> usize {
        len.min(count + count.max(CHUNK))
    }

    /// Scratch memory that `choose` needs per slot, in bytes.
    pub fn scratch_bytes<T: Ordered>(count: usize, len: usize) -> usize {
        Rows::capacity(count, len) * size_of::<<T::Rank as SortRank>::Entry>()
    }

    /// Chooses the best elements of each row of x, in a region of a site that has `scratch_bytes` per slot, at this
    /// cost of a row.
    pub fn choose<T: Ordered>(
        &self,
        x: &[T],
        values: BytesMut<'_>,
        places: &TopkPlaces<'_>,
        cost_ns: f32,
        site: &dyn Site,
    ) -> Result<()> {
        let Rows { outer, len, stride, count, least } = *self;
        let (items, capacity, values) = (outer * stride, Rows::capacity(count, len), values.shards::<T>(1));
        let room = match places {
            TopkPlaces::S32(places) => places.len(),
            TopkPlaces::S64(places) => places.len(),
        };
        assert!(1 <= count && count <= len && len <= i32::MAX as usize);
        assert!(x.len() >= items * len && values.len().min(room) >= items * count);
        check_scratch(site, Rows::scratch_bytes::<T>(count, len));
        let span = Span { items, cost_ns, ..Span::default() };
        site.parallel_for(&span, &|claim| {
            let memory = site.scratch(claim.slot()).cast::<<T::Rank as SortRank>::Entry>();
            // SAFETY: scratch memory of the slot, which the claim has for itself: aligned, initialised, and large
            // enough, as compared above. All bytes are values of an entry.
            let buffer = unsafe { std::slice::from_raw_parts_mut(memory, capacity) };
            for item in claim.begin()..claim.end() {
                let (block, column) = (item / stride, item % stride);
                let row = &x[block * len * stride + column..][..(len - 1) * stride + 1];
                let best = best(row, stride, count, least, buffer);
                for (i, &entry) in best.iter().enumerate() {
                    let (place, to) = (T::Rank::of(entry).1, (block * count + i) * stride + column);
                    // SAFETY: `to` is below items * count, which both outputs have, and of this item alone: the items
                    // of a region are in one claim each, and the outputs were given to this region.
                    unsafe {
                        values.as_ptr().add(to).write(row[place as usize * stride]);
                        match places {
                            TopkPlaces::S32(places) => places.as_ptr().add(to).write(place as i32),
                            TopkPlaces::S64(places) => places.as_ptr().add(to).write(place.into()),
                        }
                    }
                }
            }
            Ok(())
        })
    }
}

/// The best elements of a row, in order.
fn best<'b, T: Ordered>(
    row: &[T],
    stride: usize,
    count: usize,
    least: bool,
    buffer: &'b mut [<T::Rank as SortRank>::Entry],
) -> &'b [<T::Rank as SortRank>::Entry] {
    let (len, mut filled, mut limit) = (row.len().div_ceil(stride), 0, None);
    for first in (0..len).step_by(CHUNK) {
        let mut ranks = [T::Rank::ZERO; CHUNK];
        let ranks = &mut ranks[..CHUNK.min(len - first)];
        match stride {
            1 => ranks.iter_mut().zip(&row[first..]).for_each(|(rank, &x)| *rank = x.rank(least)),
            _ => {
                let elements = row[first * stride..].iter().step_by(stride);
                ranks.iter_mut().zip(elements).for_each(|(rank, &x)| *rank = x.rank(least));
            }
        }
        // Of equals the first one is better, and that is in the buffer.
        if limit.is_some_and(|limit| !ranks.iter().fold(false, |any, &rank| any | (rank < limit))) {
            continue;
        }
        for (i, &rank) in ranks.iter().enumerate() {
            if limit.is_some_and(|limit| rank >= limit) {
                continue;
            }
            buffer[filled] = rank.at((first + i) as u32);
            filled += 1;
            if filled == buffer.len() && filled > count {
                let (_, &mut worst, _) = buffer.select_nth_unstable(count - 1);
                (filled, limit) = (count, Some(T::Rank::of(worst).0));
            }
        }
    }
    if filled > count {
        buffer[..filled].select_nth_unstable(count - 1);
    }
    buffer[..count].sort_unstable();
    &buffer[..count]
}
