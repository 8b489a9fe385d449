//! Regions over several dimensions: a box of points, cut into tiles, on the loop of one dimension.
//!
//! The tiles are numbered in row-major order, and that row of numbers is the loop. A piece is a run of tiles; it is
//! handed out as few, large boxes: a run of n tiles is cut where it begins or ends inside a line, a plane and so on,
//! so a piece of a grid of rank r is at most 2r - 1 boxes.
#![forbid(unsafe_code)]

use super::host::{Epilogue, parallel_for_then};
use super::pool::ThreadPool;
use super::span::Span;
use crate::base::{Error, Ref, Result};

/// Most dimensions of a region, as of a tensor.
pub const MAX_RANK: usize = crate::abi::weir_limit::WEIR_MAX_RANK as usize;

/// Duration of a tile whose size the library chooses, in nanoseconds: that of a smallest piece.
const TILE_NS: f32 = 1_000.0;
/// Points of such a tile if the cost of a point is unknown.
const TILE_POINTS: f32 = 256.0;

/// Corners: one number for each dimension, and 0 beyond the rank.
pub type Corner = [i64; MAX_RANK];

/// A box of points in tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    rank: usize,
    extents: Corner,
    tile: Corner,
    /// Tiles along each dimension.
    counts: Corner,
    /// All tiles, and the points of a whole one.
    tiles: usize,
    points: usize,
}

impl Grid {
    /// A grid of these extents (not negative). A tile's size of 0 in a dimension is chosen from what a point costs.
    pub fn new(extents: &[i64], tile: Option<&[i64]>, point_ns: f32) -> Result<Grid> {
        let rank = extents.len();
        if rank == 0 || rank > MAX_RANK {
            return Err(Error::invalid(format!("rank is {rank}, expected 1 to {MAX_RANK}")));
        }
        let mut grid =
            Grid { rank, extents: [0; MAX_RANK], tile: [0; MAX_RANK], counts: [0; MAX_RANK], tiles: 1, points: 1 };
        let target = if point_ns > 0.0 { TILE_NS / point_ns } else { TILE_POINTS };
        let mut volume = 1i64;
        for d in (0..rank).rev() {
            let extent = extents[d];
            let wanted = tile.map_or(0, |tile| tile[d]);
            if extent < 0 {
                return Err(Error::out_of_range(format!("extents[{d}] is {extent}, expected 0 or more")));
            }
            if wanted < 0 {
                return Err(Error::invalid(format!("tile[{d}] is {wanted}, expected 0 or more")));
            }
            volume = volume
                .checked_mul(extent.max(1))
                .ok_or_else(|| Error::out_of_range("the points of all dimensions together overflow"))?;
            // Whole lines, planes and so on, while they are small enough.
            let room = (target / grid.points as f32).clamp(1.0, i64::MAX as f32) as i64;
            let size = if wanted == 0 { room } else { wanted }.clamp(1, extent.max(1));
            grid.extents[d] = extent;
            grid.tile[d] = size;
            grid.counts[d] = extent / size + i64::from(extent % size != 0);
            // In range, since the volume is.
            grid.points *= size as usize;
            grid.tiles *= grid.counts[d] as usize;
        }
        Ok(grid)
    }

    /// The loop over the tiles.
    fn span(&self, point_ns: f32, max_slots: usize) -> Span {
        Span { items: self.tiles, cost_ns: point_ns * self.points as f32, grain: 1, max_slots, ..Span::default() }
    }

    /// Hands the tiles `begin..end` out as boxes: their lower corners and the points behind their upper ones.
    fn boxes(&self, begin: usize, end: usize, each: &mut dyn FnMut(&Corner, &Corner) -> Result<()>) -> Result<()> {
        let mut at = begin;
        while at < end {
            // The largest block of whole inner dimensions that begins here and fits: `block` tiles, along `d`.
            let (mut d, mut block, mut rest) = (self.rank - 1, 1, at);
            while d > 0 {
                let count = self.counts[d] as usize;
                if rest % count != 0 || block * count > end - at {
                    break;
                }
                (rest, block, d) = (rest / count, block * count, d - 1);
            }
            let count = self.counts[d] as usize;
            let along = ((end - at) / block).min(count - rest % count);
            let (mut low, mut high) = ([0; MAX_RANK], [0; MAX_RANK]);
            high[d + 1..self.rank].copy_from_slice(&self.extents[d + 1..self.rank]);
            let first = (rest % count) as i64;
            low[d] = first * self.tile[d];
            high[d] = ((first + along as i64) * self.tile[d]).min(self.extents[d]);
            let mut outer = rest / count;
            for o in (0..d).rev() {
                let index = (outer % self.counts[o] as usize) as i64;
                outer /= self.counts[o] as usize;
                low[o] = index * self.tile[o];
                high[o] = (low[o] + self.tile[o]).min(self.extents[o]);
            }
            each(&low, &high)?;
            at += along * block;
        }
        Ok(())
    }
}

/// The function that runs on a box, in a slot.
pub type BoxBody<'a> = &'a (dyn Fn(&Corner, &Corner, usize) -> Result<()> + Sync);

/// Runs `body` over all boxes of the grid; then the epilogue. Each point costs about `point_ns` (0 = unknown).
pub fn parallel_nd(
    pool: Option<&Ref<ThreadPool>>,
    grid: &Grid,
    point_ns: f32,
    max_slots: usize,
    body: BoxBody<'_>,
    epilogue: Option<Epilogue<'_>>,
) -> Result<()> {
    let pieces = |claim: crate::sync::Claim| {
        grid.boxes(claim.begin(), claim.end(), &mut |low, high| body(low, high, claim.slot()))
    };
    parallel_for_then(pool, &grid.span(point_ns, max_slots), &pieces, epilogue)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn points(low: &Corner, high: &Corner, rank: usize) -> Vec<Vec<i64>> {
        (0..rank).fold(vec![vec![]], |all, d| {
            all.into_iter()
                .flat_map(|point| (low[d]..high[d]).map(move |i| [point.clone(), vec![i]].concat()))
                .collect()
        })
    }

    #[test]
    fn any_run_of_tiles_is_few_boxes_and_each_point_is_in_one() {
        let shapes: [(&[i64], &[i64]); 6] = [
            (&[7], &[2]),
            (&[5, 7], &[2, 3]),
            (&[3, 1, 4], &[1, 1, 3]),
            (&[2, 3, 4], &[1, 1, 1]),
            (&[4, 6], &[4, 6]),
            (&[2, 2, 3, 2], &[1, 2, 2, 1]),
        ];
        for (extents, tile) in shapes {
            let grid = Grid::new(extents, Some(tile), 1.0).unwrap();
            for cut in 0..=grid.tiles {
                let mut seen = Vec::new();
                for (begin, end) in [(0, cut), (cut, grid.tiles)] {
                    let mut boxes = 0;
                    grid.boxes(begin, end, &mut |low, high| {
                        boxes += 1;
                        seen.extend(points(low, high, extents.len()));
                        Ok(())
                    })
                    .unwrap();
                    assert!(boxes < 2 * extents.len(), "{extents:?} by {tile:?}: {boxes} boxes");
                }
                let all = seen.len() as i64;
                seen.sort();
                seen.dedup();
                assert_eq!((seen.len() as i64, all), (extents.iter().product(), extents.iter().product()));
            }
        }
    }

    #[test]
    fn tiles_of_the_librarys_choice_are_whole_lines_if_a_line_is_cheap() {
        let grid = Grid::new(&[64, 32, 16], None, 1.0).unwrap();
        assert_eq!(grid.tile[..3], [1, 32, 16]);
        assert_eq!(Grid::new(&[64, 10_000], None, 1.0).unwrap().tile[..2], [1, 1000]);
        assert_eq!(Grid::new(&[64, 10_000], None, 1e6).unwrap().tile[..2], [1, 1]);
        assert_eq!(Grid::new(&[8, 4], Some(&[0, 3]), 1e-3).unwrap().tile[..2], [8, 3]);
    }

    #[test]
    fn no_points_no_boxes() {
        for extents in [&[0][..], &[3, 0], &[0, 5]] {
            let grid = Grid::new(extents, None, 1.0).unwrap();
            parallel_nd(None, &grid, 1.0, 0, &|_, _, _| panic!("a box"), None).unwrap();
        }
        assert!(Grid::new(&[i64::MAX, 2], None, 1.0).is_err());
        assert!(Grid::new(&[], None, 1.0).is_err() && Grid::new(&[1; 9], None, 1.0).is_err());
    }
}
