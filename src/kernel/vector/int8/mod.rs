//! The matrix product of bytes: C = saturate(alpha * (A - zero_a) * (B - zero_b) + beta * C + offset), 32-bit C.
//!
//! There are three ways, chosen by sizes and transposition. A few rows with a B along N are `thin`; a few rows with a B
//! along K, or few columns, are `dots`: both read B where it is. Otherwise C is cut into tiles, numbered down the
//! columns; a piece of the region is a run of tiles, that is one to three rectangles, and a rectangle is computed in
//! `blocks`.
//!
//! Exact: the sums of up to 32768 numbers along K, with the zero points taken out, fit in 32 bits, and what is computed
//! of them modulo 2^32 is right. Beyond, those of a stretch do, and sums of stretches have 64 bits. So an element
//! depends on its row, its column and the rule alone, not on the instruction set, the way, the blocks, the cut or the
//! pool.
//!
//! Zero points cost a sum of each row and each column: (a - p)(b - q) adds up to ab - p sum(b) - q sum(a) + K p q.
//! Signed A is packed as unsigned, 128 greater, with a zero point 128 greater.
//!
//! Everything lies in the slot's scratch memory. Nothing is allocated.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_low;
mod blocks;
mod dots;
mod finish;
mod lines;
mod micro;
mod panel;
mod panels;
mod plan;
mod scaled;
#[cfg(test)]
mod tests;
mod thin;
#[cfg(target_arch = "x86_64")]
mod vnni;

pub use finish::{Offset, Rule};
pub use panels::BytePanels;
pub use scaled::{Scaled, Store, compute_scaled, scratch_bytes};

use super::held::Held;
use super::isa::Isa;
use super::site::{Matrix, MatrixMut, Site, check_scratch};
use crate::base::Result;
use crate::sync::Claim;
use crate::threadpool::{MAX_SLOTS, Span};
use micro::Set;
use plan::{Plan, Room, Way};
use std::ops::Range;

/// Rows and columns of a tile of the cut: whole tiles of every set of micro-kernels, but for rows of AMX, half of one.
const TILE: (usize, usize) = (48, 64);
const CELL: usize = size_of::<u32>();
/// A cache line, in bytes.
const ROUND: usize = 64;
/// Shorter products gain nothing from small numbers.
const LEAST_LOW: usize = 32;

/// A product to compute.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// [M, K], or [K, M] if it is transposed. Unsigned, or signed as `signed_a` says.
    pub a: Matrix<'a, u8>,
    pub transpose_a: bool,
    pub signed_a: bool,
    /// [K, N], or [N, K] if it is transposed. Signed.
    pub b: Matrix<'a, u8>,
    pub transpose_b: bool,
    /// The same, packed before; then `b` is not looked at.
    pub packed_b: Option<&'a BytePanels>,
    /// Taken off each element of A, and of B. Each is a value that the element's type has.
    pub zero_a: i32,
    pub zero_b: i32,
    pub rule: Rule<'a>,
}

impl Product<'_> {
    /// Scratch memory that `compute` needs per slot, in bytes.
    pub fn scratch_bytes(&self, isa: Isa) -> usize {
        let plan = Plan::new(self, isa);
        let low = match plan.way {
            Way::Blocks => Set::low(isa).map_or(0, |set| self.planned_bytes(&Plan::with(self, set))),
            _ => 0,
        };
        self.planned_bytes(&plan).max(low)
    }

    /// The same where it is known how.
    fn planned_bytes(&self, plan: &Plan) -> usize {
        match plan.way {
            Way::Blocks => plan.room().bytes,
            Way::Thin(way) => thin::bytes(self.m, self.k, self.n, plan.set.depth, way.columns),
            Way::Dots(way) => dots::bytes(if plan.holds_a { self.m } else { self.n }, self.k, way.step, plan.set.depth),
        }
    }

    /// Whether the products of any two neighbours along K add up to 16 bits, because A or B has small numbers alone. As
    /// it seldom is almost so, this looks through little of one that is not.
    fn is_low(&self) -> bool {
        let (Product { m, n, k, a, b, .. }, flip) = (*self, if self.signed_a { 128 } else { 0 });
        // 2 * 127 * 128.
        let low_a = |byte: u8| byte ^ flip < 128;
        // From -64 to 64: 2 * 255 * 64.
        let low_b = |byte: u8| byte.wrapping_add(64) <= 128;
        self.rule.alpha != 0.0
            && k >= LEAST_LOW
            && (a.all(if self.transpose_a { (k, m) } else { (m, k) }, low_a)
                || b.all(if self.transpose_b { (n, k) } else { (k, n) }, low_b))
    }

    /// Estimated time of `compute` on one thread.
    pub fn cost_ns(&self, isa: Isa) -> u64 {
        // Operations per nanosecond; 10 GB/s.
        let rate = match isa {
            Isa::Amx => 1000.0,
            Isa::Avx512Vnni => 500.0,
            Isa::Avx512 | Isa::Avx2 => 100.0,
            Isa::Neon | Isa::Portable => 15.0,
        };
        let [m, n, k] = [self.m, self.n, self.k].map(|size| size as f64);
        (2.0 * m * n * k / rate + (m * k + k * n + 4.0 * m * n) / 10.0) as u64
    }
}

/// Computes `product` into `c`, which is [M, N], in a region of `site`, which has `scratch_bytes` per slot.
pub fn compute(isa: Isa, product: &Product<'_>, c: MatrixMut<'_, i32>, site: &dyn Site) -> Result<()> {
    let &Product { m, n, k, .. } = product;
    let b = match product.packed_b {
        Some(packed) => packed.holds(k, n, Set::of(isa)),
        None => product.b.holds(k, n, product.transpose_b),
    };
    assert!(product.a.holds(m, k, product.transpose_a) && b);
    assert!(c.holds(m, n));
    match product.rule.offset {
        Offset::Fixed(_) => {}
        Offset::Row(row) => assert_eq!(row.len(), n),
        Offset::Column(column) => assert_eq!(column.len(), m),
    }
    let mut plan = Plan::new(product, isa);
    if m * n == 0 {
        return Ok(());
    }
    // What is computed does not depend on it.
    if let (Way::Blocks, None, Some(set)) = (plan.way, product.packed_b, Set::low(isa))
        && product.is_low()
    {
        plan = Plan::with(product, set);
    }
    check_scratch(site, product.planned_bytes(&plan));
    let room = plan.room();
    let cost_ns = product.cost_ns(isa) as f32 / plan.items as f32;
    // Other ways than blocks begin with A, or read B in runs as long as a piece is wide.
    let span = Span { items: plan.items, cost_ns, coarse: !plan.keeps || !plan.in_place, ..Span::default() };
    let held = [const { Held::new() }; MAX_SLOTS];
    site.parallel_for(&span, &|claim| {
        let (scratch, held) = (site.scratch(claim.slot()), &held[claim.slot()]);
        let piece = Piece { product, plan: &plan, room: &room, scratch, held, c: c.data(), c_stride: c.stride() };
        // SAFETY: the sizes were compared above. No other claim has these tiles or this slot (Claim), and the
        // slot's memory is as large as `scratch_bytes` asked for.
        unsafe { piece.run(&claim) };
        Ok(())
    })
}

/// One piece at work.
struct Piece<'a> {
    product: &'a Product<'a>,
    plan: &'a Plan,
    room: &'a Room,
    scratch: *mut u8,
    held: &'a Held,
    c: *mut i32,
    c_stride: usize,
}

/// # Safety
/// For all functions: the scratch memory is as large as the room, `c` has the size of the result; nobody else uses the
/// scratch memory or the claimed tiles meanwhile; rows and columns are of claimed tiles.
impl Piece<'_> {
    unsafe fn run(&self, claim: &Claim) {
        let Plan { tiles_down, items, set, way, holds_a, .. } = *self.plan;
        let Product { m, n, .. } = *self.product;
        assert!(claim.end() <= items);
        // SAFETY: the rows or columns of claimed items, inside C.
        unsafe {
            match way {
                Way::Blocks => {}
                Way::Thin(way) => {
                    return (way.run)(self, claim.begin() * way.columns..(claim.end() * way.columns).min(n));
                }
                Way::Dots(way) => {
                    let all = if holds_a { n } else { m };
                    return (way.run)(self, claim.begin() * dots::STREAMS..(claim.end() * dots::STREAMS).min(all));
                }
            }
        }
        (set.enter)();
        let mut tile = claim.begin();
        while tile < claim.end() {
            let (across, down) = (tile / tiles_down, tile % tiles_down);
            let left = claim.end() - tile;
            // Whole columns of tiles are taken together.
            let (rows, columns) = if down == 0 && left >= tiles_down {
                (tiles_down, left / tiles_down)
            } else {
                (left.min(tiles_down - down), 1)
            };
            // What follows may want the rest of this column of tiles.
            let kept = (rows < tiles_down && self.plan.keeps).then_some(across);
            // SAFETY: the rows and columns of claimed tiles, inside C.
            unsafe {
                self.rectangle(
                    down * TILE.0..((down + rows) * TILE.0).min(m),
                    across * TILE.1..((across + columns) * TILE.1).min(n),
                    kept,
                );
            }
            tile += rows * columns;
        }
        (set.leave)();
    }

    /// The zero point of A as it is packed.
    fn zero_a(&self) -> i32 {
        self.product.zero_a + if self.product.signed_a { 128 } else { 0 }
    }
}

/// Cuts a range into parts of `size`, the last one maybe smaller.
fn parts(range: &Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = range.end;
    range.clone().step_by(size).map(move |begin| begin..(begin + size).min(end))
}
