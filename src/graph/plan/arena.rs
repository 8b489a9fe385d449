//! Places of values in an engine's memory, for one graph's work on it.
//!
//! Two values share bytes only if every use of the first is over when the first write of the second begins, whatever
//! the timing: by the order within streams and by the waits that are really made (`Plan::is_over`), both where pieces
//! are issued one by one and where units are, not by positions. Within a unit that is recorded, edges see to it
//! (`overwrites`). What copies read or write on streams of their own keeps its bytes to itself.
#![forbid(unsafe_code)]

use std::collections::HashMap;

/// A value that a piece of work writes.
#[derive(Clone, Debug)]
pub struct Stored {
    pub bytes: usize,
    /// The piece that writes it; None: a copy from elsewhere does.
    pub writer: Option<usize>,
    /// Pieces that read it.
    pub readers: Vec<usize>,
    /// It keeps its bytes to itself.
    pub is_kept: bool,
}

/// How many blocks that may be free are looked at: a bound that keeps compile linear.
const WINDOW: usize = 64;

/// Offsets of the values, and bytes in all. `values` are in the order of their writers.
/// `is_over`: whether one piece is over when another one begins, whatever the timing.
pub fn places(values: &[Stored], is_over: impl Fn(usize, usize) -> bool, alignment: usize) -> (Vec<usize>, usize) {
    let mut offsets = vec![0; values.len()];
    let mut end = 0usize;
    let size = |value: &Stored| value.bytes.max(1).next_multiple_of(alignment);
    // Values whose bytes may be taken over, by position in `values`; the oldest first.
    let mut old: Vec<usize> = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let bytes = size(value);
        let fits = |&&candidate: &&usize| {
            let before: &Stored = &values[candidate];
            let Some(then) = value.writer else { return false };
            let uses = before.writer.iter().chain(&before.readers);
            size(before) >= bytes && uses.clone().all(|&piece| piece != then && is_over(piece, then))
        };
        let best = (!value.is_kept).then(|| old.iter().filter(fits).min_by_key(|&&candidate| size(&values[candidate])));
        match best.flatten().copied() {
            Some(taken) => {
                offsets[at] = offsets[taken];
                old.retain(|&candidate| candidate != taken);
            }
            None => {
                offsets[at] = end;
                end += bytes;
            }
        }
        if !value.is_kept {
            old.push(at);
            if old.len() > WINDOW {
                old.remove(0);
            }
        }
    }
    (offsets, end)
}

/// What comes of shared places: pairs of pieces of which the first must be over when the second begins.
pub fn overwrites(values: &[Stored], offsets: &[usize]) -> Vec<(usize, usize)> {
    let mut last: HashMap<usize, usize> = HashMap::new();
    let mut pairs = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let Some((before, then)) = last.insert(offsets[at], at).zip(value.writer) else { continue };
        let before = &values[before];
        pairs.extend(before.writer.iter().chain(&before.readers).map(|&piece| (piece, then)));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::plan::streams::{Piece, Plan, plan};

    fn over(plan: &Plan) -> impl Fn(usize, usize) -> bool {
        |before, then| plan.is_over(before, then)
    }

    #[test]
    fn a_chain_needs_two_blocks_and_what_is_side_by_side_needs_its_own() {
        let chain: Vec<Piece> = (0..10usize)
            .map(|i| Piece { after: i.checked_sub(1).into_iter().collect(), cost_ns: 1, ..Piece::default() })
            .collect();
        let stored = |i: usize, readers: Vec<usize>| Stored { bytes: 100, writer: Some(i), readers, is_kept: false };
        let values: Vec<Stored> = (0..10).map(|i| stored(i, if i < 9 { vec![i + 1] } else { vec![] })).collect();
        let (offsets, bytes) = places(&values, over(&plan(&chain, 1)), 64);
        assert_eq!(bytes, 256, "{offsets:?}");
        let apart: Vec<Piece> = (0..4).map(|_| Piece { after: vec![], cost_ns: 1, ..Piece::default() }).collect();
        let values: Vec<Stored> = (0..4).map(|i| stored(i, vec![])).collect();
        assert_eq!(places(&values, over(&plan(&apart, 4)), 64).1, 4 * 128);
        assert_eq!(places(&values, over(&plan(&apart, 1)), 64).1, 128, "on one stream they come one after the other");
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
            let pieces: Vec<Piece> = (0..n)
                .map(|i| Piece { after: (0..2.min(i)).map(|_| below(i)).collect(), cost_ns: 1, ..Piece::default() })
                .collect();
            let plan = plan(&pieces, 1 + round % 4);
            let values: Vec<Stored> = (0..n)
                .map(|i| Stored {
                    bytes: 1 + below(500),
                    writer: Some(i),
                    readers: (i + 1..n).filter(|&reader| pieces[reader].after.contains(&i)).collect(),
                    is_kept: below(5) == 0,
                })
                .collect();
            let (offsets, bytes) = places(&values, over(&plan), 64);
            let overwrites = overwrites(&values, &offsets);
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
