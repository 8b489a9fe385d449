//! The sizes of sequences through a recurrent cell, their operands and packed weights, and the layout of the memory
//! that pieces share.
#![forbid(unsafe_code)]

use super::cell::{GruGates, LstmGates};
use super::conv::PackedFilters;
use super::dots;
use super::gemm::GemmShape;
use super::isa::Isa;
use super::micro::MicroKernels;
use super::panels::Panels;
use super::recurrent_tile::RecurrentTiles;
use super::site::{Matrix, MatrixMut};
use crate::base::Result;
use crate::memory::ALIGNMENT;

/// Rows of a product of x with W: enough for its speed.
const CHUNK_ROWS: usize = 96;
/// Rows of the batch in a piece.
pub(super) const ROWS: usize = 16;
/// Parts of a piece's scratch memory, one for each gate.
pub(super) const PARTS: usize = 4;
/// Time of a gate's function.
const FUNCTION_NS: f64 = 1.5;

/// Sizes, and in which order steps are taken.
#[derive(Clone, Copy, Debug)]
pub struct SequenceShape {
    pub steps: usize,
    pub rows: usize,
    pub inputs: usize,
    pub hidden: usize,
    /// Whether each direction goes from the last step to the first.
    pub backwards: &'static [bool],
    /// x is [rows, steps, inputs], not [steps, rows, inputs].
    pub batch_first: bool,
    pub cell: RecurrentCell,
}

/// The cell, and the block of the weights for each of its gates.
#[derive(Clone, Copy, Debug)]
pub enum RecurrentCell {
    Lstm(LstmGates),
    Gru(GruGates),
}

/// W and R of all directions, packed.
#[derive(Debug)]
pub struct RecurrentWeights {
    /// Of each direction.
    pub(super) w: Vec<Panels>,
    /// Each gate of each direction is a group of filters.
    pub(super) r: PackedFilters,
}

/// W, [directions, gates * hidden, inputs], and R, [directions, gates * hidden, hidden].
#[derive(Clone, Copy, Debug)]
pub enum SequenceWeights<'a> {
    Packed(&'a RecurrentWeights),
    Plain { w: &'a [f32], r: &'a [f32] },
}

/// The operands of a call.
#[derive(Clone, Copy, Debug)]
pub struct SequenceInputs<'a> {
    pub x: &'a [f32],
    pub weights: SequenceWeights<'a>,
    /// [directions, 2 * gates * hidden]
    pub bias: Option<&'a [f32]>,
    /// Steps of each row of the batch.
    pub lengths: Option<&'a [i32]>,
    /// h and c.
    pub initial: [Option<&'a [f32]>; 2],
    /// [directions, 3 * hidden]
    pub peepholes: Option<&'a [f32]>,
    pub clip: f32,
}

/// The results: rows of `hidden` numbers.
#[derive(Debug)]
pub struct SequenceOutputs<'a> {
    pub y: MatrixMut<'a, f32>,
    pub h: MatrixMut<'a, f32>,
    /// Of an LSTM.
    pub c: Option<MatrixMut<'a, f32>>,
}

/// Offsets in the memory that all pieces share, in floats, and its size.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SharedLayout {
    /// Products of x, of each direction.
    pub of_x: usize,
    /// Two buffers, [directions, rows, hidden].
    pub h: usize,
    /// For a GRU in two regions, as above: update, and reset * h.
    pub update: usize,
    pub reset: usize,
    pub r: usize,
    pub floats: usize,
}

impl RecurrentCell {
    pub(super) fn gates(&self) -> usize {
        match self {
            RecurrentCell::Lstm(_) => 4,
            RecurrentCell::Gru(_) => 3,
        }
    }

    fn in_two_regions(&self) -> bool {
        matches!(self, RecurrentCell::Gru(gates) if !gates.linear_before_reset)
    }
}

impl SequenceShape {
    pub(super) fn directions(&self) -> usize {
        self.backwards.len()
    }

    pub(super) fn all_units(&self) -> usize {
        self.cell.gates() * self.hidden
    }

    /// Steps of a chunk.
    pub(super) fn chunk(&self) -> usize {
        (CHUNK_ROWS / self.rows.max(1)).clamp(1, self.steps.max(1))
    }

    /// The products of x of a chunk of `steps`: their shape, and how many there are.
    pub(super) fn product(&self, steps: usize) -> (GemmShape, usize) {
        let (m, count) = if self.batch_first { (steps, self.rows) } else { (steps * self.rows, 1) };
        (GemmShape { m, n: self.all_units(), k: self.inputs, transpose_a: false, transpose_b: true }, count)
    }

    /// Bytes of a slot that are its own.
    pub(super) fn own_bytes(&self, micro: &MicroKernels) -> usize {
        // The last chunk may have any number of steps: sequences may be shorter than x.
        let products = (1..=self.chunk()).map(|steps| {
            let (shape, count) = self.product(steps);
            shape.scratch_bytes_of(count, micro)
        });
        let parts = PARTS * ROWS * RecurrentTiles::of(micro.isa).units() * size_of::<f32>();
        products.max().unwrap_or(0).max(parts).next_multiple_of(ALIGNMENT)
    }

    pub(super) fn layout(&self, units: usize, packs: bool) -> SharedLayout {
        let mut floats = 0;
        let mut take = |count: usize| {
            let at = floats;
            floats += count.next_multiple_of(ALIGNMENT / size_of::<f32>());
            at
        };
        let state = self.directions() * self.rows * self.hidden;
        let of_x = take(self.directions() * self.chunk() * self.rows * self.all_units());
        let h = take(2 * state);
        let [update, reset] = if self.cell.in_two_regions() { [take(state), take(state)] } else { [0; 2] };
        let packed = self.directions() * self.cell.gates() * self.hidden.next_multiple_of(units) * self.hidden;
        let r = if packs { take(packed) } else { 0 };
        SharedLayout { of_x, h, update, reset, r, floats }
    }

    /// Scratch memory per slot, in bytes; `packs` if R is not packed yet.
    pub fn scratch_bytes(&self, isa: Isa, packs: bool) -> usize {
        let layout = self.layout(RecurrentTiles::of(isa).units(), packs);
        self.own_bytes(&MicroKernels::of(isa)) + layout.floats * size_of::<f32>()
    }

    /// Estimated time of a step of all directions on one thread, without the products of x.
    pub(super) fn step_ns(&self) -> f64 {
        let units = self.directions() * self.all_units();
        dots::cost_ns(self.rows, units, self.hidden) + (self.rows * units) as f64 * FUNCTION_NS
    }

    /// Estimated time on one thread.
    pub fn cost_ns(&self) -> u64 {
        let (product, count) = self.product(self.steps);
        let products = (self.directions() * count) as u64 * product.cost_ns();
        products + (self.steps as f64 * self.step_ns()) as u64
    }

    /// Index of a state's row.
    pub(super) fn state_row(&self, direction: usize, row: usize) -> usize {
        if self.batch_first { row * self.directions() + direction } else { direction * self.rows + row }
    }

    /// Index of a row of the output.
    pub(super) fn output_row(&self, step: usize, direction: usize, row: usize) -> usize {
        match self.batch_first {
            true => (row * self.steps + step) * self.directions() + direction,
            false => (step * self.directions() + direction) * self.rows + row,
        }
    }
}

impl RecurrentWeights {
    /// Packs W and R of these sizes.
    pub fn new(isa: Isa, shape: &SequenceShape, w: &[f32], r: &[f32]) -> Result<RecurrentWeights> {
        let (directions, units, hidden) = (shape.directions(), shape.all_units(), shape.hidden);
        assert_eq!((w.len(), r.len()), (directions * units * shape.inputs, directions * units * hidden));
        let micro = MicroKernels::of(isa);
        let of = |number: usize| {
            let w = Matrix::dense(&w[number * units * shape.inputs..], units, shape.inputs);
            Panels::new_with(&micro, w, shape.inputs, units, true)
        };
        let w = (0..directions).map(of).collect::<Result<Vec<_>>>()?;
        let r = PackedFilters::new(isa, RecurrentTiles::of(isa).units(), directions * shape.cell.gates(), hidden, r)?;
        Ok(RecurrentWeights { w, r })
    }

    /// Whether they were packed for such a call.
    pub fn fits(&self, isa: Isa, shape: &SequenceShape) -> bool {
        let (units, gates) = (RecurrentTiles::of(isa).units(), shape.directions() * shape.cell.gates());
        let (k, n, width) = (shape.inputs, shape.all_units(), MicroKernels::of(isa).width);
        self.w.len() == shape.directions()
            && self.w.iter().all(|w| w.holds(k, n, width))
            && self.r.fits(units, gates, shape.hidden, shape.hidden)
    }
}
