//! Memory that several values have in turn: one planner for the values of a run on the host and for those in an
//! engine's memory.
//!
//! Both keep lists of free blocks, take the smallest block that is large enough (`cut`), leave what is too much of it,
//! and join neighbours where no block is large enough. A block is free if all uses of the values that were in it are
//! over when the new value's first write begins, whatever the timing. That question has two answers.
//!
//! *Engines ask.* The order of an engine's work is that within streams and of the waits that are really made
//! (`StreamPlan::is_over`), both where pieces are issued one by one and where units are. Clocks answer for any two
//! pieces at once, so `places` keeps one list for all, and each block knows its users. Within a unit that is recorded,
//! edges keep the order (`Arena::overwrites`). Values that copies read or write on streams of their own keep their
//! bytes to themselves. The memory of a branch or a loop is one value of the graph around it.
//!
//! *The host hands on.* A run on the host has an order along the edges of its graph alone. An answer for any two of
//! 100,000 nodes takes a bit for each pair, or a search. So blocks travel along the edges (`compile::layout::memory`):
//! a node owns the blocks in its list, and they are free by then. That is linear, and finds less where work is side by
//! side, since a block goes to one successor.
#![forbid(unsafe_code)]

use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// A value that a piece of work writes.
#[derive(Clone, Debug)]
pub struct StoredValue {
    pub bytes: usize,
    /// The piece that writes it; None: a copy from elsewhere does.
    pub writer: Option<usize>,
    /// Pieces that read it.
    pub readers: Vec<usize>,
    /// It keeps its bytes to itself.
    pub is_kept: bool,
}

/// Memory that may be used again.
#[derive(Clone, Debug)]
pub(in crate::graph) struct FreeBlock<U> {
    pub at: usize,
    pub bytes: usize,
    /// The values that were there, as far as somebody has to ask whether they are over.
    pub users: U,
}

/// Most lists have one block.
pub(in crate::graph) type FreeBlocks<U> = SmallVec<[FreeBlock<U>; 1]>;

/// The users of a block, or none where blocks are free as soon as they are in a list.
pub(in crate::graph) trait Users: Clone {
    fn join(&mut self, other: &Self);
}

impl Users for () {
    fn join(&mut self, (): &()) {}
}

/// Values by number, of which somebody asks whether all their uses are over.
type BlockUsers = SmallVec<[usize; 2]>;

impl Users for BlockUsers {
    fn join(&mut self, other: &Self) {
        // Parts of one block have its users in common.
        other.iter().for_each(|user| {
            if !self.contains(user) {
                self.push(*user)
            }
        });
    }
}

/// Takes so many bytes of the smallest block that is large enough, or of neighbours together where none is. Looks at so
/// many blocks, the last ones: a bound that keeps compile linear. Memory beyond is not used again.
pub(in crate::graph) fn cut<U: Users>(
    free: &mut FreeBlocks<U>,
    bytes: usize,
    window: usize,
    is_free: impl Fn(&FreeBlock<U>) -> bool,
) -> Option<FreeBlock<U>> {
    let best = match best(free, bytes, window, &is_free) {
        Some(best) => best,
        None => {
            join_neighbours(free, window, &is_free);
            best(free, bytes, window, &is_free)?
        }
    };
    let block = &mut free[best];
    if block.bytes == bytes {
        return Some(free.swap_remove(best));
    }
    let taken = FreeBlock { bytes, ..block.clone() };
    (block.at, block.bytes) = (block.at + bytes, block.bytes - bytes);
    Some(taken)
}

fn best<U>(
    free: &FreeBlocks<U>,
    bytes: usize,
    window: usize,
    is_free: impl Fn(&FreeBlock<U>) -> bool,
) -> Option<usize> {
    let from = free.len().saturating_sub(window);
    let mut best: Option<usize> = None;
    for (at, block) in free.iter().enumerate().skip(from) {
        if block.bytes >= bytes && best.is_none_or(|best| block.bytes < free[best].bytes) && is_free(block) {
            best = Some(at);
        }
    }
    best
}

/// Only where no block is large enough: blocks of equal sizes fit again as they are, and can go different ways.
fn join_neighbours<U: Users>(free: &mut FreeBlocks<U>, window: usize, is_free: impl Fn(&FreeBlock<U>) -> bool) {
    let from = free.len().saturating_sub(window);
    let mut first = from;
    for at in from..free.len() {
        if !is_free(&free[at]) {
            free.swap(first, at);
            first += 1;
        }
    }
    free[first..].sort_unstable_by_key(|block| block.at);
    let mut last = first;
    for at in first + 1..free.len() {
        if free[last].at + free[last].bytes == free[at].at {
            let (left, right) = free.split_at_mut(at);
            left[last].bytes += right[0].bytes;
            left[last].users.join(&right[0].users);
        } else {
            last += 1;
            free.swap(last, at);
        }
    }
    free.truncate(last + 1);
}

/// How many blocks are asked about for a value. There are as many blocks as parts of the arena, and most lists are
/// shorter.
const MOST_ASKED: usize = 256;

/// Places of values in an engine's memory.
#[derive(Debug, Default)]
pub struct Arena {
    /// By value.
    pub offsets: Vec<usize>,
    pub bytes: usize,
    /// Pairs of pieces of which the first must be over when the second begins, which writes where a value of its was.
    pub overwrites: Vec<(usize, usize)>,
}

/// Places values, given in the order of their writers. `is_over`: whether one piece is over when another one begins,
/// whatever the timing.
pub fn places(values: &[StoredValue], is_over: impl Fn(usize, usize) -> bool, alignment: usize) -> Arena {
    let mut arena = Arena::default();
    let mut free: FreeBlocks<BlockUsers> = FreeBlocks::new();
    let uses = |value: usize| values[value].writer.iter().chain(&values[value].readers).copied();
    let size = |value: usize| values[value].bytes.max(1).next_multiple_of(alignment);
    for (number, value) in values.iter().enumerate() {
        let bytes = size(number);
        let block = value.writer.filter(|_| !value.is_kept).and_then(|then| {
            // A part of a block was not used by all its users.
            let was_there = |block: &FreeBlock<BlockUsers>, user: usize| {
                let at = arena.offsets[user];
                at < block.at + block.bytes && block.at < at + size(user)
            };
            let is_free = |block: &FreeBlock<BlockUsers>| {
                let mut users = block.users.iter().filter(|&&user| was_there(block, user));
                users.all(|&user| uses(user).all(|piece| piece != then && is_over(piece, then)))
            };
            let block = cut(&mut free, bytes, MOST_ASKED, is_free)?;
            let users = block.users.iter().filter(|&&user| was_there(&block, user));
            arena.overwrites.extend(users.flat_map(|&user| uses(user)).map(|piece| (piece, then)));
            Some(block.at)
        });
        let at = block.unwrap_or(arena.bytes);
        arena.bytes = arena.bytes.max(at + bytes);
        arena.offsets.push(at);
        if !value.is_kept {
            free.push(FreeBlock { at, bytes, users: smallvec![number] });
        }
    }
    if cfg!(debug_assertions) && values.len() <= MOST_PROVED {
        let range = |value: usize| (0, arena.offsets[value]..arena.offsets[value] + values[value].bytes);
        let comes_first = |a: usize, b: usize| {
            let is_over = |then: usize| uses(a).all(|piece| piece != then && is_over(piece, then));
            !values[a].is_kept && !values[b].is_kept && values[b].writer.is_some_and(is_over)
        };
        prove(values.len(), range, comes_first, |value| format!("{:?}", values[value]));
    }
    arena
}

/// More values are not checked.
const MOST_PROVED: usize = 1000;

/// A check of a plan by brute force, for builds with debug assertions: panics if two values share memory and none of
/// them is over when the other begins. It knows nothing of how the plan was made. `range` says in which memory a value
/// is, and where.
pub(in crate::graph) fn prove(
    values: usize,
    range: impl Fn(usize) -> (u64, Range<usize>),
    comes_first: impl Fn(usize, usize) -> bool,
    text: impl Fn(usize) -> String,
) {
    for a in 0..values {
        let (memory, own) = range(a);
        for b in 0..a {
            let (other, there) = range(b);
            let are_apart = memory != other || own.start >= there.end || there.start >= own.end;
            assert!(
                are_apart || comes_first(a, b) || comes_first(b, a),
                "values {b} and {a} share memory: {} and {}",
                text(b),
                text(a)
            );
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::graph::plan::streams::{self, DevicePiece, StreamPlan};

    fn over(plan: &StreamPlan) -> impl Fn(usize, usize) -> bool {
        |before, then| plan.is_over(before, then)
    }

    #[test]
    fn a_chain_needs_two_blocks_and_what_is_side_by_side_needs_its_own() {
        let chain: Vec<DevicePiece> = (0..10usize)
            .map(|i| DevicePiece {
                after: i.checked_sub(1).into_iter().collect(),
                cost_ns: 1,
                ..DevicePiece::default()
            })
            .collect();
        let stored =
            |i: usize, readers: Vec<usize>| StoredValue { bytes: 100, writer: Some(i), readers, is_kept: false };
        let values: Vec<StoredValue> = (0..10).map(|i| stored(i, if i < 9 { vec![i + 1] } else { vec![] })).collect();
        let arena = places(&values, over(&streams::plan(&chain, 1)), 64);
        assert_eq!(arena.bytes, 256, "{arena:?}");
        let apart: Vec<DevicePiece> =
            (0..4).map(|_| DevicePiece { after: vec![], cost_ns: 1, ..DevicePiece::default() }).collect();
        let values: Vec<StoredValue> = (0..4).map(|i| stored(i, vec![])).collect();
        assert_eq!(places(&values, over(&streams::plan(&apart, 4)), 64).bytes, 4 * 128);
        assert_eq!(
            places(&values, over(&streams::plan(&apart, 1)), 64).bytes,
            128,
            "on one stream they come one after the other"
        );
    }

    #[test]
    fn many_values_of_all_sizes_take_little_more_than_what_is_in_use_at_once() {
        let mut state = 4711u64;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let n = 4000;
        let after: Vec<Vec<usize>> = (0..n).map(|i| (0..2.min(i)).map(|_| i - 1 - below(i.min(6))).collect()).collect();
        let mut values: Vec<StoredValue> = (0..n)
            .map(|i| StoredValue { bytes: 1 + below(20_000), writer: Some(i), readers: Vec::new(), is_kept: false })
            .collect();
        after.iter().enumerate().for_each(|(i, after)| after.iter().for_each(|&from| values[from].readers.push(i)));
        let is_live = |value: &StoredValue, at: usize| {
            value.writer.into_iter().chain(value.readers.iter().copied()).max().is_some_and(|last| last >= at)
        };
        let live = |at: usize| values[..=at].iter().filter(|value| is_live(value, at)).map(|v| v.bytes).sum::<usize>();
        let most = (0..n).step_by(7).map(live).max().unwrap();
        let arena = places(&values, |before, then| before < then, 64);
        assert!(arena.bytes < 2 * most, "{} bytes, of which {most} are in use at once", arena.bytes);
    }

    #[test]
    fn values_that_share_bytes_are_never_in_use_at_once() {
        let mut state = 4711u64;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        for round in 0..300 {
            let n = 2 + below(40);
            let pieces: Vec<DevicePiece> = (0..n)
                .map(|i| DevicePiece {
                    after: (0..2.min(i)).map(|_| below(i)).collect(),
                    cost_ns: 1,
                    ..DevicePiece::default()
                })
                .collect();
            let plan = streams::plan(&pieces, 1 + round % 4);
            let values: Vec<StoredValue> = (0..n)
                .map(|i| StoredValue {
                    bytes: 1 + below(500),
                    writer: Some(i),
                    readers: (i + 1..n).filter(|&reader| pieces[reader].after.contains(&i)).collect(),
                    is_kept: below(5) == 0,
                })
                .collect();
            let Arena { offsets, bytes, overwrites } = places(&values, over(&plan), 64);
            assert!(overwrites.iter().all(|&(before, then)| plan.is_over(before, then)));
            for b in 0..n {
                assert!(offsets[b] + values[b].bytes <= bytes);
                for a in 0..b {
                    let apart =
                        offsets[a] + values[a].bytes <= offsets[b] || offsets[b] + values[b].bytes <= offsets[a];
                    let over = !values[a].is_kept
                        && !values[b].is_kept
                        && values[a].readers.iter().chain(&values[a].writer).all(|&piece| plan.is_over(piece, b));
                    assert!(apart || over, "round {round}: values {a} and {b}");
                }
            }
        }
    }
}
