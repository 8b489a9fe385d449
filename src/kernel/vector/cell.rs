//! One step of a recurrent cell: LSTM and GRU.
//!
//! The gates of a hidden unit need no other unit's, so a piece is a block of units for some rows of the batch: the
//! products of x with W and of h with R for its units (`dots`: the weights lie along K, and rows are few), then the
//! biases, the gates' functions and the new state, all in the slot's scratch memory.
//!
//! The exception is a GRU that resets h before the product with R: that product needs r * h of all units, so it takes
//! two regions. The first stores z and r * h behind the scratch memory of slot 0, which no piece of either region uses
//! as its own; the second reads them there.

use super::activation::{self, Activation};
use super::dots::{self, Target};
use super::isa::Isa;
use super::site::{Matrix, MatrixMut, Site, check_scratch};
use crate::base::Result;
use crate::memory::ALIGNMENT;
use crate::threadpool::Span;
use std::ops::Range;

/// Hidden units, and rows of the batch, of a piece: with few rows a piece takes more units, to amortise the functions.
const UNITS: usize = 16;
const ROWS: usize = 32;
const FEW: (usize, usize) = (64, 8);
/// Parts of a piece's scratch memory: four gates, or their inputs.
const PARTS: usize = 4;
const PIECE_BYTES: usize = PARTS * ROWS * UNITS * size_of::<f32>();

/// Sizes of a step, and the order of the gates in the weights.
#[derive(Clone, Copy, Debug)]
pub struct CellSizes {
    pub rows: usize,
    pub inputs: usize,
    pub hidden: usize,
}

/// The operands of a step.
#[derive(Clone, Copy, Debug)]
pub struct CellStep<'a> {
    pub sizes: CellSizes,
    /// [rows, inputs]
    pub x: Matrix<'a, f32>,
    /// [rows, hidden]
    pub h: Matrix<'a, f32>,
    /// [gates * hidden, inputs]
    pub w: Matrix<'a, f32>,
    /// [gates * hidden, hidden]
    pub r: Matrix<'a, f32>,
    /// Of W and of R, [gates * hidden] each.
    pub bias: Option<[&'a [f32]; 2]>,
}

/// The block of the weights for each gate.
#[derive(Clone, Copy, Debug)]
pub struct LstmGates {
    pub input: usize,
    pub output: usize,
    pub forget: usize,
    pub cell: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct GruGates {
    pub update: usize,
    pub reset: usize,
    pub new: usize,
    /// The reset gate is applied to the product of h with R, not to h.
    pub linear_before_reset: bool,
}

impl CellSizes {
    /// Scratch memory per slot of a step of an LSTM, in bytes.
    pub fn lstm_scratch_bytes(&self) -> usize {
        PIECE_BYTES
    }

    /// Scratch memory per slot of a step of a GRU, in bytes.
    pub fn gru_scratch_bytes(&self, gates: &GruGates) -> usize {
        if gates.linear_before_reset { PIECE_BYTES } else { PIECE_BYTES + 2 * self.shared_bytes() }
    }

    fn shared_bytes(&self) -> usize {
        (self.rows * self.hidden * size_of::<f32>()).next_multiple_of(ALIGNMENT)
    }

    /// Estimated time of a step on one thread.
    pub fn cost_ns(&self, gates: usize) -> u64 {
        let units = gates * self.hidden;
        let products = dots::cost_ns(self.rows, units, self.inputs) + dots::cost_ns(self.rows, units, self.hidden);
        // Plus the functions.
        (products + (self.rows * units) as f64 * 1.5) as u64
    }
}

/// A piece of a step: some units for some rows.
struct CellPiece<'a> {
    isa: Isa,
    step: &'a CellStep<'a>,
    rows: Range<usize>,
    units: Range<usize>,
    /// The slot's scratch memory, exclusive to this claim: PARTS parts of ROWS * UNITS floats.
    scratch: *mut f32,
}

impl CellPiece<'_> {
    /// A part of the scratch memory, as a dense matrix of the piece's rows and units.
    #[expect(clippy::mut_from_ref, reason = "scratch memory: callers hold each part once")]
    fn part(&self, index: usize) -> &mut [f32] {
        let size = self.rows.len() * self.units.len();
        assert!(index < PARTS && size <= ROWS * UNITS);
        // SAFETY: the slot's scratch memory, an engine's, whose floats are initialised, has PARTS such parts; they are
        // contiguous, and smaller where a piece is small.
        unsafe { std::slice::from_raw_parts_mut(self.scratch.add(index * size), size) }
    }

    /// part = a * weights of a gate, or += ; plus the gate's bias.
    fn product(&self, part: usize, a: Matrix<'_, f32>, weights: Matrix<'_, f32>, k: usize, gate: usize, add: bool) {
        let (rows, units) = (self.rows.len(), self.units.len());
        let to = Target { data: self.part(part).as_mut_ptr(), row: units, column: 1, add };
        let first = gate * self.step.sizes.hidden + self.units.start;
        // SAFETY: the rows and the gate's units are inside the operands, whose sizes were compared.
        unsafe {
            let a = Matrix::new(a.at(self.rows.start, 0), rows, k, a.stride());
            dots::products(self.isa, (rows, units, k), a, weights, first, &to);
        }
    }

    /// The biases of a gate for W or for R.
    fn biases(&self, which: usize, gate: usize) -> Option<&[f32]> {
        let first = gate * self.step.sizes.hidden + self.units.start;
        self.step.bias.map(|bias| &bias[which][first..][..self.units.len()])
    }

    fn bias(&self, part: usize, which: usize, gate: usize) {
        let Some(bias) = self.biases(which, gate) else { return };
        for row in self.part(part).chunks_exact_mut(self.units.len()) {
            row.iter_mut().zip(bias).for_each(|(x, bias)| *x += bias);
        }
    }

    /// Adds both, one after the other.
    fn both_biases(&self, part: usize, gate: usize) {
        let (Some(of_w), Some(of_r)) = (self.biases(0, gate), self.biases(1, gate)) else { return };
        for row in self.part(part).chunks_exact_mut(self.units.len()) {
            row.iter_mut().zip(of_w.iter().zip(of_r)).for_each(|(x, (w, r))| *x = (*x + w) + r);
        }
    }

    /// part = x * W + h * R with both biases, of a gate.
    fn gate(&self, part: usize, gate: usize) {
        let CellStep { sizes, x, h, w, r, .. } = *self.step;
        self.product(part, x, w, sizes.inputs, gate, false);
        self.product(part, h, r, sizes.hidden, gate, true);
        self.both_biases(part, gate);
    }

    fn apply(&self, part: usize, activation: Activation) {
        activation::apply(activation, self.isa, self.part(part));
    }

    /// The piece's rows: index, and its elements of a matrix.
    fn lines<'m>(&self, of: Matrix<'m, f32>) -> impl Iterator<Item = &'m [f32]> + use<'m> {
        let units = self.units.clone();
        self.rows.clone().map(move |row| &of.row(row)[units.clone()])
    }

    /// Writes a part to the piece's elements of a result.
    fn store(&self, part: &[f32], to: &MatrixMut<'_, f32>) {
        for (row, line) in self.rows.clone().zip(part.chunks_exact(self.units.len())) {
            let at = to.data().wrapping_add(row * to.stride() + self.units.start);
            // SAFETY: the piece's own elements of a result whose size was compared.
            unsafe { std::ptr::copy_nonoverlapping(line.as_ptr(), at, line.len()) };
        }
    }
}

fn check(step: &CellStep<'_>, gates: usize) {
    let CellSizes { rows, inputs, hidden } = step.sizes;
    let weights = gates * hidden;
    assert!(step.x.holds(rows, inputs, false) && step.h.holds(rows, hidden, false), "{:?}", step.sizes);
    assert!(step.w.holds(weights, inputs, false) && step.r.holds(weights, hidden, false), "{:?}", step.sizes);
    assert!(step.bias.is_none_or(|bias| bias.iter().all(|bias| bias.len() == weights)), "{:?}", step.sizes);
}

/// A region over the pieces of a step.
fn pieces(
    isa: Isa,
    step: &CellStep<'_>,
    cost_ns: u64,
    site: &dyn Site,
    body: &(dyn Fn(&CellPiece<'_>) + Sync),
) -> Result<()> {
    let CellSizes { rows, hidden, .. } = step.sizes;
    let (most_units, most_rows) = if rows <= FEW.1 { FEW } else { (UNITS, ROWS) };
    let down = rows.div_ceil(most_rows);
    let items = down * hidden.div_ceil(most_units);
    if items == 0 {
        return Ok(());
    }
    check_scratch(site, PIECE_BYTES);
    site.parallel_for(&Span { items, cost_ns: cost_ns as f32 / items as f32, ..Span::default() }, &|claim| {
        let scratch = site.scratch(claim.slot()).cast::<f32>();
        for item in claim.begin()..claim.end() {
            let (across, down) = (item / down, item % down);
            let rows = down * most_rows..((down + 1) * most_rows).min(rows);
            let units = across * most_units..((across + 1) * most_units).min(hidden);
            body(&CellPiece { isa, step, rows, units, scratch });
        }
        Ok(())
    })
}

/// c' = forget * c + input * cell, h' = output * tanh(c'). `site` has `CellSizes::lstm_scratch_bytes` per slot.
pub fn lstm(
    isa: Isa,
    step: &CellStep<'_>,
    gates: LstmGates,
    c: Matrix<'_, f32>,
    (new_h, new_c): (MatrixMut<'_, f32>, MatrixMut<'_, f32>),
    site: &dyn Site,
) -> Result<()> {
    let CellSizes { rows, hidden, .. } = step.sizes;
    check(step, 4);
    assert!(c.holds(rows, hidden, false) && new_h.holds(rows, hidden) && new_c.holds(rows, hidden));
    pieces(isa, step, step.sizes.cost_ns(4), site, &|piece| {
        for (part, (gate, activation)) in [
            (gates.input, Activation::SIGMOID),
            (gates.output, Activation::SIGMOID),
            (gates.forget, Activation::SIGMOID),
            (gates.cell, Activation::TANH),
        ]
        .into_iter()
        .enumerate()
        {
            piece.gate(part, gate);
            piece.apply(part, activation);
        }
        let (input, output, forget, cell) = (piece.part(0), piece.part(1), piece.part(2), piece.part(3));
        for (i, c) in piece.lines(c).enumerate() {
            let at = i * c.len()..(i + 1) * c.len();
            for (((cell, input), forget), c) in
                cell[at.clone()].iter_mut().zip(&input[at.clone()]).zip(&forget[at]).zip(c)
            {
                *cell = forget * c + input * *cell;
            }
        }
        piece.store(cell, &new_c);
        activation::apply(Activation::TANH, isa, cell);
        cell.iter_mut().zip(&*output).for_each(|(h, output)| *h *= output);
        piece.store(cell, &new_h);
    })
}

/// h' = (1 - update) * new + update * h. `site` has `CellSizes::gru_scratch_bytes` per slot.
pub fn gru(isa: Isa, step: &CellStep<'_>, gates: GruGates, new_h: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
    let CellSizes { rows, hidden, .. } = step.sizes;
    check(step, 3);
    assert!(new_h.holds(rows, hidden));
    let cost_ns = step.sizes.cost_ns(3);
    let finish = |piece: &CellPiece<'_>, update: &[f32], new: &mut [f32]| {
        for (i, h) in piece.lines(step.h).enumerate() {
            let at = i * h.len()..(i + 1) * h.len();
            for ((new, update), h) in new[at.clone()].iter_mut().zip(&update[at]).zip(h) {
                *new = (1.0 - update) * *new + update * h;
            }
        }
        piece.store(new, &new_h);
    };
    if gates.linear_before_reset {
        return pieces(isa, step, cost_ns, site, &|piece| {
            piece.gate(0, gates.update);
            piece.gate(1, gates.reset);
            piece.apply(0, Activation::SIGMOID);
            piece.apply(1, Activation::SIGMOID);
            piece.product(2, step.x, step.w, step.sizes.inputs, gates.new, false);
            piece.bias(2, 0, gates.new);
            piece.product(3, step.h, step.r, hidden, gates.new, false);
            piece.bias(3, 1, gates.new);
            let (reset, new, of_h) = (piece.part(1), piece.part(2), piece.part(3));
            new.iter_mut().zip(reset.iter().zip(&*of_h)).for_each(|(new, (reset, of_h))| *new += reset * of_h);
            piece.apply(2, Activation::TANH);
            finish(piece, piece.part(0), piece.part(2));
        });
    }
    check_scratch(site, step.sizes.gru_scratch_bytes(&gates));
    // Behind the scratch memory that pieces use of slot 0.
    let shared = |index: usize| {
        let data = site.scratch(0).wrapping_add(PIECE_BYTES + index * step.sizes.shared_bytes()).cast::<f32>();
        // SAFETY: as large as `gru_scratch_bytes` requested; pieces write disjoint elements.
        unsafe { MatrixMut::new(data, rows, hidden, hidden) }
    };
    pieces(isa, step, cost_ns * 2 / 3, site, &|piece| {
        piece.gate(0, gates.update);
        piece.gate(1, gates.reset);
        piece.apply(0, Activation::SIGMOID);
        piece.apply(1, Activation::SIGMOID);
        piece.store(piece.part(0), &shared(0));
        let reset = piece.part(1);
        for (i, h) in piece.lines(step.h).enumerate() {
            reset[i * h.len()..].iter_mut().zip(h).for_each(|(reset, h)| *reset *= h);
        }
        piece.store(reset, &shared(1));
    })?;
    // SAFETY: the first region has written both, and is over.
    let [update, reset] = [0, 1].map(|i| unsafe { Matrix::new(shared(i).data().cast_const(), rows, hidden, hidden) });
    pieces(isa, step, cost_ns / 3, site, &|piece| {
        piece.product(2, step.x, step.w, step.sizes.inputs, gates.new, false);
        piece.product(2, reset, step.r, hidden, gates.new, true);
        piece.bias(2, 0, gates.new);
        piece.bias(2, 1, gates.new);
        piece.apply(2, Activation::TANH);
        let part = piece.part(0);
        for (i, line) in piece.lines(update).enumerate() {
            part[i * line.len()..][..line.len()].copy_from_slice(line);
        }
        finish(piece, part, piece.part(2));
    })
}
