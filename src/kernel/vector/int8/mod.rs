//! int8 matrix product: C = saturate(alpha * (A - zero_a) * (B - zero_b) + beta * C + offset), 32-bit C.
//!
//! There are three algorithms, chosen by sizes and transposition. A few rows with a B along N are `thin`; a few rows
//! with a B along K, or few columns, are `dots`: both read B in place. Otherwise C is divided into tiles, numbered down
//! the columns; a piece of the region is a run of tiles, that is one to three rectangles, and a rectangle is computed
//! in `blocks`.
//!
//! Exactness: the sums of up to 32768 numbers along K, with the zero points subtracted, fit in 32 bits, so that
//! arithmetic modulo 2^32 is correct. Beyond that, those of a K block fit, and sums of K blocks have 64 bits. So an
//! element depends only on its row, its column and the rule, not on the instruction set, the algorithm, the blocks, the
//! division or the pool.
//!
//! Zero points cost a sum of each row and each column: (a - p)(b - q) adds up to ab - p sum(b) - q sum(a) + K p q.
//! Signed A is packed as unsigned, 128 greater, with a zero point 128 greater.
//!
//! All working memory is the slot's scratch memory. Nothing is allocated. `windows` and `flat` have convolutions.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_low;
#[cfg(target_arch = "x86_64")]
mod avx2_registers;
#[cfg(target_arch = "x86_64")]
mod avx_vnni;
mod blocks;
mod dots;
mod finish;
mod flat;
mod flat_cells;
mod flat_layout;
mod flat_tile;
mod lines;
mod micro;
mod pack;
mod panel;
mod panels;
mod plan;
mod portable;
mod product;
mod scaled;
mod sets;
#[cfg(all(test, not(loom)))]
mod tests;
mod thin;
mod tile;
#[cfg(target_arch = "x86_64")]
mod vnni;
mod windows;

pub use finish::{Offset, Rule};
pub use pack::pack;
pub use panels::BytePanels;
pub use product::Int8Product;
pub use scaled::{Scaled, Store, compute_scaled, scratch_bytes};
pub use windows::{Int8Filters, Int8Weights, Int8Windows};

use super::held::HeldPanels;
use super::isa::Isa;
use super::site::{MatrixMut, Site, check_scratch};
use crate::base::Result;
use crate::sync::Claim;
use crate::threadpool::{MAX_SLOTS, Span};
use plan::{Int8Algorithm, Int8Plan, ScratchLayout, TILE};
use product::Int8Piece;

/// Computes `product` into `c`, which is [M, N], in a region of `site`, which has `scratch_bytes` per slot.
pub fn compute(isa: Isa, product: &Int8Product<'_>, c: MatrixMut<'_, i32>, site: &dyn Site) -> Result<()> {
    let &Int8Product { m, n, k, .. } = product;
    let b = match product.packed_b {
        Some(packed) => packed.holds(k, n, &sets::of(isa).cut()),
        None => product.b.holds(k, n, product.transpose_b),
    };
    assert!(product.a.holds(m, k, product.transpose_a) && b);
    assert!(c.holds(m, n));
    match product.rule.offset {
        Offset::Fixed(_) => {}
        Offset::Row(row) => assert_eq!(row.len(), n),
        Offset::Column(column) => assert_eq!(column.len(), m),
    }
    let mut plan = Int8Plan::new(product, isa);
    if m * n == 0 {
        return Ok(());
    }
    // The result does not depend on it.
    if let (Int8Algorithm::Blocks, None, Some(set)) = (plan.way, product.packed_b, sets::low(isa))
        && product.is_low()
    {
        plan = Int8Plan::with(product, set);
    }
    check_scratch(site, plan.bytes(product));
    let room = plan.room();
    let cost_ns = product.cost_ns(isa) as f32 / plan.items as f32;
    // The other algorithms begin with A, or read B in runs as long as a piece is wide.
    let span = Span { items: plan.items, cost_ns, coarse: !plan.keeps || !plan.in_place, ..Span::default() };
    let held = [const { HeldPanels::new() }; MAX_SLOTS];
    site.parallel_for(&span, &|claim| {
        let (scratch, held) = (site.scratch(claim.slot()), &held[claim.slot()]);
        let piece = Planned { product, plan: &plan, room: &room, scratch, held, c: c.data(), c_stride: c.stride() };
        // SAFETY: the sizes were compared above. No other claim has these tiles or this slot (Claim), and the
        // slot's memory is as large as `scratch_bytes` asked for.
        unsafe { piece.run(&claim) };
        Ok(())
    })
}

/// A running piece, with its plan.
struct Planned<'a> {
    product: &'a Int8Product<'a>,
    plan: &'a Int8Plan,
    room: &'a ScratchLayout,
    scratch: *mut u8,
    held: &'a HeldPanels,
    c: *mut i32,
    c_stride: usize,
}

/// # Safety
/// For all functions: the scratch memory is as large as the room, `c` has the size of the result; nothing else uses the
/// scratch memory or the claimed tiles meanwhile; rows and columns are of claimed tiles.
impl Planned<'_> {
    unsafe fn run(&self, claim: &Claim) {
        let Int8Plan { tiles_down, items, set, way, holds_a, .. } = *self.plan;
        let Int8Product { m, n, .. } = *self.product;
        assert!(claim.end() <= items);
        // SAFETY: the rows or columns of claimed items, inside C.
        unsafe {
            match way {
                Int8Algorithm::Blocks => {}
                Int8Algorithm::Thin(way) => {
                    return (way.run)(&self.piece(), claim.begin() * way.columns..(claim.end() * way.columns).min(n));
                }
                Int8Algorithm::Dots(way) => {
                    let all = if holds_a { n } else { m };
                    return (way.run)(
                        &self.piece(),
                        claim.begin() * dots::STREAMS..(claim.end() * dots::STREAMS).min(all),
                    );
                }
            }
        }
        (set.enter)();
        let mut tile = claim.begin();
        while tile < claim.end() {
            let (across, down) = (tile / tiles_down, tile % tiles_down);
            let left = claim.end() - tile;
            // Whole columns of tiles are processed together.
            let (rows, columns) = if down == 0 && left >= tiles_down {
                (tiles_down, left / tiles_down)
            } else {
                (left.min(tiles_down - down), 1)
            };
            // Later pieces may need the rest of this column of tiles.
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

    /// The parameters of the algorithms without blocks.
    fn piece(&self) -> Int8Piece<'_> {
        let Planned { product, plan, scratch, held, c, c_stride, .. } = *self;
        Int8Piece { product, holds_a: plan.holds_a, scratch, held, c, c_stride }
    }
}
