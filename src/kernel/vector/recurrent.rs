//! Whole sequences through a recurrent cell: LSTM and GRU.
//!
//! The products of x with W do not need the steps before: those of a *chunk* of steps are one product (`gemm`), [rows,
//! gates * hidden] in memory that all threads see. Then the steps follow one another, a region each. A piece of it is
//! a block of hidden units of one direction, all of their gates, for some rows of the batch: the products of h with R
//! (`recurrent_tile`), what was computed of x, the biases, the gates' functions and the new state. So a step needs one
//! region; a GRU that resets h before the product needs two, as `cell` does.
//!
//! h lies in two buffers, which take turns: pieces read all units of the old one and write their own of the new one.
//! These buffers, the products of x, and R, if it had to be packed for this call, lie behind the scratch memory of slot
//! 0, which no piece uses as its own.
//!
//! Determinism: an element is one chain over K from zero, then what belongs to x, then the bias of R; chunks and pieces
//! depend on the shapes alone, and no element depends on them.

use super::activation::{self, Activation};
use super::cell::{GruGates, LstmGates};
use super::conv::pack_filters;
use super::finish::ProductEpilogue;
use super::gemm::{self, GemmBatch, OperandB, Operands};
use super::isa::Isa;
use super::micro::{MicroKernels, Scale};
use super::recurrent_shape::{PARTS, ROWS, SharedLayout};
pub use super::recurrent_shape::{
    RecurrentCell, RecurrentWeights, SequenceInputs, SequenceOutputs, SequenceShape, SequenceWeights,
};
use super::recurrent_tile::{GateSums, RecurrentTiles};
use super::site::{Matrix, MatrixMut, Site, check_scratch};
use crate::base::Result;
use crate::threadpool::Span;
use std::ops::Range;

/// A call, and where its memory is.
struct SequenceCall<'a> {
    isa: Isa,
    tiles: RecurrentTiles,
    shape: &'a SequenceShape,
    inputs: &'a SequenceInputs<'a>,
    outputs: &'a SequenceOutputs<'a>,
    layout: SharedLayout,
    /// The shared memory.
    shared: *mut f32,
    /// Packed R.
    r: *const f32,
    site: &'a dyn Site,
}

// SAFETY: pieces of a region read and write different parts of the memory that the addresses name.
unsafe impl Sync for SequenceCall<'_> {}

/// A step of all directions.
#[derive(Clone, Copy)]
struct RecurrentStep {
    /// Its number, counted in the order in which steps are taken.
    number: usize,
    /// The steps whose products of x are there, counted likewise.
    begin: usize,
    end: usize,
    /// Number of steps of the longest sequence.
    all: usize,
}

/// A piece of a step.
#[derive(Clone)]
struct StepPiece {
    direction: usize,
    /// Its step, as x and the output have it, and that step's place among the products of x.
    time: usize,
    place: usize,
    /// Number of steps whose products of x are there.
    chunk: usize,
    /// The buffer with the old h.
    old: usize,
    block: usize,
    units: Range<usize>,
    rows: Range<usize>,
    /// The slot's scratch memory.
    scratch: *mut f32,
}

impl SequenceCall<'_> {
    /// A region over the pieces of a step; each takes `gates` of the gates.
    fn region(&self, step: RecurrentStep, gates: usize, body: &(dyn Fn(&StepPiece) + Sync)) -> Result<()> {
        let SequenceShape { rows, hidden, backwards, .. } = *self.shape;
        let (wide, down) = (self.tiles.units(), rows.div_ceil(ROWS));
        let blocks = hidden.div_ceil(wide);
        let items = backwards.len() * blocks * down;
        let cost_ns = self.shape.step_ns() as f32 / items as f32 * gates as f32 / self.shape.cell.gates() as f32;
        self.site.parallel_for(&Span { items, cost_ns, ..Span::default() }, &|claim| {
            let scratch = self.site.scratch(claim.slot()).cast::<f32>();
            for item in claim.begin()..claim.end() {
                let (part, block, direction) = (item % down, item / down % blocks, item / down / blocks);
                let back = backwards[direction];
                body(&StepPiece {
                    direction,
                    time: if back { step.all - 1 - step.number } else { step.number },
                    place: if back { step.end - 1 - step.number } else { step.number - step.begin },
                    chunk: step.end - step.begin,
                    old: step.number % 2,
                    block,
                    units: block * wide..((block + 1) * wide).min(hidden),
                    rows: part * ROWS..((part + 1) * ROWS).min(rows),
                    scratch,
                });
            }
            Ok(())
        })
    }

    /// The address of a row of a shared buffer, [directions, rows, hidden].
    fn state(&self, buffer: usize, direction: usize, row: usize) -> *mut f32 {
        self.shared.wrapping_add(buffer + (direction * self.shape.rows + row) * self.shape.hidden)
    }

    /// h: the old one is number `old`.
    fn h(&self, which: usize, direction: usize, row: usize) -> *mut f32 {
        let SequenceShape { rows, hidden, .. } = *self.shape;
        self.state(self.layout.h + which % 2 * self.shape.directions() * rows * hidden, direction, row)
    }

    /// Products of x for a row of the batch in a step of a chunk.
    fn of_x(&self, piece: &StepPiece, row: usize) -> *mut f32 {
        let SequenceShape { rows, batch_first, .. } = *self.shape;
        let index = if batch_first { row * piece.chunk + piece.place } else { piece.place * rows + row };
        let first = piece.direction * self.shape.chunk() * rows;
        self.shared.wrapping_add(self.layout.of_x + (first + index) * self.shape.all_units())
    }

    /// Biases of R.
    fn bias(&self, direction: usize) -> Option<&[f32]> {
        let all = self.shape.all_units();
        self.inputs.bias.map(|bias| &bias[(2 * direction + 1) * all..][..all])
    }

    /// Whether a step of a row belongs to its sequence.
    fn is_inside(&self, time: usize, row: usize) -> bool {
        self.inputs.lengths.is_none_or(|lengths| lengths[row] > time as i32)
    }

    /// The products of x of the steps of a chunk.
    fn products_of_x(&self, step: RecurrentStep, micro: &MicroKernels) -> Result<()> {
        let SequenceShape { steps, rows, inputs, backwards, batch_first, .. } = *self.shape;
        let (units, chunk) = (self.shape.all_units(), step.end - step.begin);
        let (shape, count) = self.shape.product(chunk);
        for (direction, &back) in backwards.iter().enumerate() {
            let first = if back { step.all - step.end } else { step.begin };
            let columns = self.inputs.bias.map(|bias| &bias[2 * direction * units..][..units]);
            let operands = |number: usize| {
                let from = if batch_first { number * steps + first } else { first * rows };
                Operands {
                    a: Matrix::dense(&self.inputs.x[from * inputs..], shape.m, inputs),
                    b: match self.inputs.weights {
                        SequenceWeights::Packed(weights) => OperandB::Panels(&weights.w[direction]),
                        SequenceWeights::Plain { w, .. } => {
                            OperandB::Matrix(Matrix::dense(&w[direction * units * inputs..], units, inputs))
                        }
                    },
                    finish: ProductEpilogue { columns, ..ProductEpilogue::default() },
                }
            };
            let to = self.layout.of_x + direction * self.shape.chunk() * rows * units;
            // SAFETY: the direction's part of the shared memory, which only this product uses now.
            let c = unsafe { MatrixMut::new(self.shared.wrapping_add(to), shape.m * count, units, units) };
            let scale = Scale { alpha: 1.0, beta: 0.0 };
            gemm::compute_batch_with(*micro, &GemmBatch { shape, count, scale, operands: &operands }, c, self.site)?;
        }
        Ok(())
    }

    /// Packs R into the shared memory, gate by gate.
    fn pack(&self, r: &[f32]) -> Result<()> {
        let (hidden, units) = (self.shape.hidden, self.tiles.units());
        let (from, to) = (hidden * hidden, hidden.next_multiple_of(units) * hidden);
        let items = self.shape.directions() * self.shape.cell.gates();
        // Each number is read and written at 10 GB/s.
        let span = Span { items, cost_ns: (from + to) as f32 * 0.4, ..Span::default() };
        self.site.parallel_for(&span, &|claim| {
            for item in claim.begin()..claim.end() {
                let address = self.shared.wrapping_add(self.layout.r + item * to);
                // SAFETY: the item's part of the shared memory, initialised as scratch memory is.
                let packed = unsafe { std::slice::from_raw_parts_mut(address, to) };
                pack_filters(self.isa, units, &r[item * from..][..from], hidden, 0..hidden, packed);
            }
            Ok(())
        })
    }

    /// Sums of gates in the first parts of the piece's scratch memory: of `h`, a buffer, with R, and, where `of_x` says
    /// so, of x.
    fn sums<const N: usize>(&self, piece: &StepPiece, h: *const f32, gates: [(usize, bool); N]) {
        let hidden = self.shape.hidden;
        let (wide, bias) = (self.tiles.units(), self.bias(piece.direction));
        let blocks = hidden.div_ceil(wide);
        let stride = match self.shape.batch_first {
            true => piece.chunk * self.shape.all_units(),
            false => self.shape.all_units(),
        };
        let all = gates.map(|(gate, of_x)| {
            let panel = ((piece.direction * self.shape.cell.gates() + gate) * blocks + piece.block) * hidden * wide;
            let first = gate * hidden + piece.units.start;
            GateSums {
                panel: self.r.wrapping_add(panel),
                more: of_x.then(|| self.of_x(piece, piece.rows.start).wrapping_add(first).cast_const()),
                bias: bias.map(|bias| bias[first..][..piece.units.len()].as_ptr()),
            }
        });
        let size = (piece.rows.len(), piece.units.len(), hidden);
        // SAFETY: the panel of a gate's units; the rows of h, of the products of x and the biases are inside of theirs;
        // the slot's scratch memory has parts for four gates of so many units and rows. Nothing writes what is read.
        unsafe { self.tiles.sums(size, h, &all, stride, piece.scratch) }
    }

    /// Part `index` of the piece's scratch memory, rows of `pitch` floats; `count` neighbouring parts.
    #[expect(clippy::mut_from_ref, reason = "scratch memory: callers hold each part once")]
    fn parts<'p>(&self, piece: &'p StepPiece, index: usize, count: usize) -> &'p mut [f32] {
        let size = piece.rows.len() * self.tiles.pitch(piece.units.len());
        assert!(index + count <= PARTS && size <= ROWS * self.tiles.units());
        // SAFETY: the slot's scratch memory is the piece's, has so many parts, and its floats are initialised.
        unsafe { std::slice::from_raw_parts_mut(piece.scratch.add(index * size), count * size) }
    }

    fn clipped(&self, part: &mut [f32]) {
        let clip = self.inputs.clip;
        if clip < f32::INFINITY {
            part.iter_mut().for_each(|x| *x = x.clamp(-clip, clip));
        }
    }

    fn apply(&self, activation: Activation, part: &mut [f32]) {
        self.clipped(part);
        activation::apply(activation, self.isa, part);
    }

    /// The piece's units of a row of a shared buffer or a result, whose address this is.
    ///
    /// # Safety
    /// The row is there, and nobody writes these units during `'p`.
    unsafe fn units<'p>(&self, piece: &'p StepPiece, row: *const f32) -> &'p [f32] {
        // SAFETY: as demanded of the caller.
        unsafe { std::slice::from_raw_parts(row.add(piece.units.start), piece.units.len()) }
    }

    /// Writes the piece's units of a row.
    ///
    /// # Safety
    /// The row is there, and no other piece has these units.
    unsafe fn store(&self, piece: &StepPiece, row: *mut f32, values: &[f32]) {
        assert_eq!(values.len(), piece.units.len());
        // SAFETY: as demanded of the caller; scratch memory and results do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), row.add(piece.units.start), values.len()) };
    }

    /// Stores new states: rows of `pitch` floats. Where a sequence is over, h stays and the output is 0.
    fn finish(&self, piece: &StepPiece, new: &[f32]) {
        let (hidden, pitch) = (self.shape.hidden, self.tiles.pitch(piece.units.len()));
        let zeros = [0.0; 256];
        for (row, new) in piece.rows.clone().zip(new.chunks_exact(pitch)) {
            let inside = self.is_inside(piece.time, row);
            let output = self.shape.output_row(piece.time, piece.direction, row) * hidden;
            // SAFETY: the piece's units of rows of the old h, the new one and the output.
            unsafe {
                let old = self.units(piece, self.h(piece.old, piece.direction, row));
                let new = if inside { &new[..piece.units.len()] } else { old };
                self.store(piece, self.h(piece.old + 1, piece.direction, row), new);
                let shown = if inside { new } else { &zeros[..piece.units.len()] };
                self.store(piece, self.outputs.y.data().wrapping_add(output), shown);
            }
        }
    }

    /// The sums of gates += c times their peepholes.
    fn peep(&self, piece: &StepPiece, part: &mut [f32], which: usize, c: impl Fn(usize) -> *const f32) {
        let Some(peepholes) = self.inputs.peepholes else { return };
        let hidden = self.shape.hidden;
        let weights = &peepholes[(3 * piece.direction + which) * hidden + piece.units.start..][..piece.units.len()];
        let pitch = self.tiles.pitch(piece.units.len());
        for (i, line) in part.chunks_exact_mut(pitch).enumerate() {
            // SAFETY: `c` gives rows of at least these units, which nobody writes now.
            let c = unsafe { std::slice::from_raw_parts(c(i), weights.len()) };
            line.iter_mut().zip(weights.iter().zip(c)).for_each(|(x, (weight, c))| *x += weight * c);
        }
    }

    fn lstm(&self, step: RecurrentStep, gates: LstmGates, to_c: &MatrixMut<'_, f32>) -> Result<()> {
        let hidden = self.shape.hidden;
        self.region(step, 4, &|piece| {
            let h = self.h(piece.old, piece.direction, piece.rows.start);
            let gates = [gates.input, gates.forget, gates.output, gates.cell];
            self.sums(piece, h, gates.map(|gate| (gate, true)));
            let pitch = self.tiles.pitch(piece.units.len());
            let c_row = |i: usize| {
                let row = self.shape.state_row(piece.direction, piece.rows.start + i);
                to_c.data().wrapping_add(row * hidden + piece.units.start)
            };
            let peeps = self.inputs.peepholes.is_some();
            if peeps {
                self.peep(piece, self.parts(piece, 0, 1), 0, |i| c_row(i).cast_const());
                self.peep(piece, self.parts(piece, 1, 1), 2, |i| c_row(i).cast_const());
            }
            let sigmoids = self.parts(piece, 0, if peeps { 2 } else { 3 });
            self.apply(Activation::SIGMOID, sigmoids);
            self.apply(Activation::TANH, self.parts(piece, 3, 1));
            let (input, forget, cell) = (self.parts(piece, 0, 1), self.parts(piece, 1, 1), self.parts(piece, 3, 1));
            let lines = cell.chunks_exact_mut(pitch).zip(input.chunks_exact(pitch)).zip(forget.chunks_exact(pitch));
            for (i, ((cell, input), forget)) in lines.enumerate() {
                // SAFETY: the piece's units of a row of c, which no other piece has.
                let c = unsafe { std::slice::from_raw_parts_mut(c_row(i), piece.units.len()) };
                for (((cell, input), forget), c) in cell.iter_mut().zip(input).zip(forget).zip(&*c) {
                    *cell = forget * c + input * *cell;
                }
                if self.is_inside(piece.time, piece.rows.start + i) {
                    c.copy_from_slice(&cell[..c.len()]);
                }
            }
            if peeps {
                let cell = cell.as_ptr();
                let output = self.parts(piece, 2, 1);
                self.peep(piece, output, 1, |i| cell.wrapping_add(i * pitch));
                self.apply(Activation::SIGMOID, output);
            }
            activation::apply(Activation::TANH, self.isa, cell);
            cell.iter_mut().zip(&*self.parts(piece, 2, 1)).for_each(|(h, output)| *h *= output);
            self.finish(piece, cell);
        })
    }

    /// h' = (1 - update) * new + update * h.
    fn blend(&self, piece: &StepPiece, update: &[f32], new: &mut [f32]) {
        let pitch = self.tiles.pitch(piece.units.len());
        for ((row, new), update) in piece.rows.clone().zip(new.chunks_exact_mut(pitch)).zip(update.chunks_exact(pitch))
        {
            // SAFETY: the piece's units of the old h.
            let h = unsafe { self.units(piece, self.h(piece.old, piece.direction, row)) };
            new.iter_mut().zip(update).zip(h).for_each(|((new, update), h)| *new = (1.0 - update) * *new + update * h);
        }
        self.finish(piece, new);
    }

    fn gru(&self, step: RecurrentStep, gates: GruGates) -> Result<()> {
        let hidden = self.shape.hidden;
        if gates.linear_before_reset {
            return self.region(step, 3, &|piece| {
                let h = self.h(piece.old, piece.direction, piece.rows.start);
                self.sums(piece, h, [(gates.update, true), (gates.reset, true), (gates.new, false)]);
                self.apply(Activation::SIGMOID, self.parts(piece, 0, 2));
                let pitch = self.tiles.pitch(piece.units.len());
                let (reset, new) = (self.parts(piece, 1, 1), self.parts(piece, 2, 1));
                let lines = piece.rows.clone().zip(new.chunks_exact_mut(pitch)).zip(reset.chunks_exact(pitch));
                for ((row, new), reset) in lines {
                    let of_x = self.of_x(piece, row).wrapping_add(gates.new * hidden);
                    // SAFETY: the gate's products of x, which were computed before.
                    let of_x = unsafe { self.units(piece, of_x) };
                    new.iter_mut().zip(reset).zip(of_x).for_each(|((new, reset), of_x)| *new = of_x + reset * *new);
                }
                self.apply(Activation::TANH, new);
                self.blend(piece, self.parts(piece, 0, 1), new);
            });
        }
        self.region(step, 2, &|piece| {
            let h = self.h(piece.old, piece.direction, piece.rows.start);
            self.sums(piece, h, [(gates.update, true), (gates.reset, true)]);
            self.apply(Activation::SIGMOID, self.parts(piece, 0, 2));
            let pitch = self.tiles.pitch(piece.units.len());
            let (update, reset) = (self.parts(piece, 0, 1), self.parts(piece, 1, 1));
            let lines = piece.rows.clone().zip(update.chunks_exact(pitch)).zip(reset.chunks_exact_mut(pitch));
            for ((row, update), reset) in lines {
                // SAFETY: the piece's units of the old h, and of two buffers that other pieces write elsewhere.
                unsafe {
                    let h = self.units(piece, self.h(piece.old, piece.direction, row));
                    reset.iter_mut().zip(h).for_each(|(reset, h)| *reset *= h);
                    self.store(piece, self.state(self.layout.update, piece.direction, row), &update[..h.len()]);
                    self.store(piece, self.state(self.layout.reset, piece.direction, row), &reset[..h.len()]);
                }
            }
        })?;
        self.region(step, 1, &|piece| {
            let reset = self.state(self.layout.reset, piece.direction, piece.rows.start);
            self.sums(piece, reset, [(gates.new, true)]);
            let pitch = self.tiles.pitch(piece.units.len());
            let (new, update) = (self.parts(piece, 0, 1), self.parts(piece, 1, 1));
            self.apply(Activation::TANH, new);
            for (row, line) in piece.rows.clone().zip(update.chunks_exact_mut(pitch)) {
                // SAFETY: the piece's units, which the region before has written.
                let from = unsafe { self.units(piece, self.state(self.layout.update, piece.direction, row)) };
                line[..from.len()].copy_from_slice(from);
            }
            self.blend(piece, update, new);
        })
    }

    /// Copies states, or zeros, to where steps read them.
    fn begin(&self) {
        let SequenceShape { rows, hidden, .. } = *self.shape;
        for (direction, row) in (0..self.shape.directions()).flat_map(|d| (0..rows).map(move |row| (d, row))) {
            let at = self.shape.state_row(direction, row) * hidden;
            let c = self.outputs.c.as_ref().map(|c| c.data().wrapping_add(at));
            let to = [Some(self.h(0, direction, row)), c];
            for (from, to) in self.inputs.initial.into_iter().zip(to) {
                let Some(to) = to else { continue };
                // SAFETY: a row of the first buffer of h, or of the result c; nothing else is at either yet.
                unsafe {
                    match from {
                        Some(from) => std::ptr::copy_nonoverlapping(from[at..][..hidden].as_ptr(), to, hidden),
                        None => to.write_bytes(0, hidden),
                    }
                }
            }
        }
    }

    /// Copies the last h to the result, and sets the output of steps from `steps` on to 0.
    fn end(&self, steps: usize) {
        let SequenceShape { rows, hidden, .. } = *self.shape;
        for (direction, row) in (0..self.shape.directions()).flat_map(|d| (0..rows).map(move |row| (d, row))) {
            let to = self.outputs.h.data().wrapping_add(self.shape.state_row(direction, row) * hidden);
            // SAFETY: rows of results that no piece uses any more.
            unsafe {
                std::ptr::copy_nonoverlapping(self.h(steps, direction, row).cast_const(), to, hidden);
                for step in steps..self.shape.steps {
                    let at = self.shape.output_row(step, direction, row) * hidden;
                    self.outputs.y.data().wrapping_add(at).write_bytes(0, hidden);
                }
            }
        }
    }
}

/// Computes all steps in regions of `site`, which has `SequenceShape::scratch_bytes` per slot.
pub fn compute(
    isa: Isa,
    shape: &SequenceShape,
    inputs: &SequenceInputs<'_>,
    outputs: &SequenceOutputs<'_>,
    site: &dyn Site,
) -> Result<()> {
    let SequenceShape { steps, rows, hidden, cell, .. } = *shape;
    let (directions, units) = (shape.directions(), shape.all_units());
    let (micro, tiles) = (MicroKernels::of(isa), RecurrentTiles::of(isa));
    let states = directions * rows;
    let fits = |floats: Option<&[f32]>, len: usize| floats.is_none_or(|floats| floats.len() == len);
    assert!(inputs.x.len() == steps * rows * shape.inputs && fits(inputs.bias, 2 * directions * units), "{shape:?}");
    assert!(inputs.initial.iter().all(|state| fits(*state, states * hidden)), "{shape:?}");
    assert!(fits(inputs.peepholes, 3 * directions * hidden), "{shape:?}");
    assert!(inputs.lengths.is_none_or(|lengths| lengths.len() == rows), "{shape:?}");
    assert!(outputs.y.holds(steps * states, hidden) && outputs.h.holds(states, hidden), "{shape:?}");
    assert!(outputs.c.as_ref().is_none_or(|c| c.holds(states, hidden)), "{shape:?}");
    if states * hidden == 0 {
        return Ok(());
    }
    let plain = match inputs.weights {
        SequenceWeights::Packed(weights) => {
            assert!(weights.fits(isa, shape), "{shape:?}");
            None
        }
        SequenceWeights::Plain { w, r } => {
            assert!((w.len(), r.len()) == (directions * units * shape.inputs, directions * units * hidden));
            Some(r)
        }
    };
    check_scratch(site, shape.scratch_bytes(isa, plain.is_some()));
    let layout = shape.layout(tiles.units(), plain.is_some());
    let shared = site.scratch(0).wrapping_add(shape.own_bytes(&micro)).cast::<f32>();
    let r = match inputs.weights {
        SequenceWeights::Packed(weights) => weights.r.at(0, 0, 0),
        SequenceWeights::Plain { .. } => shared.wrapping_add(layout.r).cast_const(),
    };
    let call = SequenceCall { isa, tiles, shape, inputs, outputs, layout, shared, r, site };
    let longest = inputs.lengths.and_then(|lengths| lengths.iter().max().copied());
    let all = longest.map_or(steps, |longest| usize::try_from(longest).unwrap_or(0).min(steps));
    call.begin();
    if let Some(r) = plain.filter(|_| all > 0) {
        call.pack(r)?;
    }
    for begin in (0..all).step_by(shape.chunk()) {
        let end = (begin + shape.chunk()).min(all);
        call.products_of_x(RecurrentStep { number: begin, begin, end, all }, &micro)?;
        for number in begin..end {
            let step = RecurrentStep { number, begin, end, all };
            match (cell, &outputs.c) {
                (RecurrentCell::Lstm(gates), Some(c)) => call.lstm(step, gates, c)?,
                (RecurrentCell::Gru(gates), None) => call.gru(step, gates)?,
                _ => unreachable!("an LSTM has a result c, a GRU has none"),
            }
        }
    }
    call.end(all);
    Ok(())
}
