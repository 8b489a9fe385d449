//! The common part of recurrent operators over whole sequences: the direction, and what shapes fit together.
//!
//! Chapter: Recurrent cells.
#![forbid(unsafe_code)]

use super::cell::weir_gate_order_value;
use super::check::value_of;
use super::signature::{self, known};
use crate::base::{Desc, Error, Result, desc::ANY_DIM, dtype};

/// The order in which the steps of a sequence are taken.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_sequence_direction_value {
    /// From the first step to the last one.
    WEIR_SEQUENCE_FORWARD = 0,
    /// From the last step of each sequence to the first one.
    WEIR_SEQUENCE_REVERSE = 1,
    /// Both, each with weights of its own: forward is number 0 and reverse number 1 of the dimension D.
    WEIR_SEQUENCE_BIDIRECTIONAL = 2,
}

/// A direction: one of enum weir_sequence_direction_value.
pub type weir_sequence_direction = u32;

/// Maximum number of inputs: x, W, R, biases, lengths, two states, peepholes.
const MOST_INPUTS: usize = 8;

/// The settings that LSTM and GRU have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sequence {
    pub order: weir_gate_order_value,
    pub direction: weir_sequence_direction_value,
    pub bias: bool,
    pub lengths: bool,
    pub initial: bool,
    pub batch_first: bool,
    /// Bound of what goes into the gates' functions; infinity for none.
    pub clip: f32,
}

/// Sizes of an operator's inputs; open ones are -1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequenceDims {
    pub steps: i64,
    pub rows: i64,
    pub inputs: i64,
    pub hidden: i64,
}

/// The direction with this number.
pub(super) fn direction(direction: weir_sequence_direction) -> Result<weir_sequence_direction_value> {
    value_of!(
        "direction",
        direction,
        weir_sequence_direction_value { WEIR_SEQUENCE_FORWARD, WEIR_SEQUENCE_REVERSE, WEIR_SEQUENCE_BIDIRECTIONAL }
    )
}

/// The bound that a descriptor asks for; 0 is none.
pub(super) fn clip(clip: f32) -> Result<f32> {
    match clip {
        0.0 => Ok(f32::INFINITY),
        clip if clip > 0.0 => Ok(clip),
        clip => Err(Error::invalid(format!("desc->clip is {clip}, expected 0 or a positive number"))),
    }
}

impl Sequence {
    /// Number of directions, D.
    pub fn directions(&self) -> usize {
        1 + usize::from(self.direction == weir_sequence_direction_value::WEIR_SEQUENCE_BIDIRECTIONAL)
    }

    /// Number of inputs with `states` states.
    pub(super) fn num_inputs(&self, states: usize) -> usize {
        3 + usize::from(self.bias) + usize::from(self.lengths) + if self.initial { states } else { 0 }
    }

    /// A state of all directions.
    fn state(&self, rows: i64, hidden: i64) -> Desc {
        let directions = self.directions() as i64;
        let dims = if self.batch_first { [rows, directions, hidden] } else { [directions, rows, hidden] };
        Desc::new(dtype::F32, &dims)
    }

    /// Checks the inputs of a cell with `gates` gates and `states` states; `peepholes` are the last input. Allocates
    /// nothing unless it refuses.
    pub(super) fn dims(&self, inputs: &[Desc], gates: i64, states: usize, peepholes: bool) -> Result<SequenceDims> {
        let (directions, f32s) = (self.directions() as i64, |dims: &[i64]| Desc::new(dtype::F32, dims));
        let mut patterns = [f32s(&[ANY_DIM; 3]); MOST_INPUTS];
        signature::check_fit("input", &patterns[..1], &inputs[..1])?;
        let [first, second, width, ..] = inputs[0].dims;
        let (steps, mut rows) = if self.batch_first { (second, first) } else { (first, second) };
        patterns[1] = f32s(&[directions, ANY_DIM, width]);
        patterns[2] = f32s(&[directions, ANY_DIM, ANY_DIM]);
        signature::check_fit("input", &patterns[..3], &inputs[..3])?;
        let mut hidden = ANY_DIM;
        for (i, weights) in inputs[1..3].iter().enumerate() {
            let all = weights.dims[1];
            if all != ANY_DIM && all % gates != 0 {
                let expected = format!("f32[{directions},a multiple of {gates},?]");
                return Err(signature::mismatch("input", i + 1, &expected, weights));
            }
            hidden = known(hidden, if all == ANY_DIM { ANY_DIM } else { all / gates });
        }
        hidden = known(hidden, inputs[2].dims[2]);
        let mut at = 3 + usize::from(self.bias);
        let lengths = at;
        if self.lengths {
            let of = inputs.get(at).filter(|of| of.shape().len() == 1).map_or(ANY_DIM, |of| of.dims[0]);
            rows = known(rows, of);
            at += 1;
        }
        let first_state = at;
        for state in inputs.iter().skip(at).take(if self.initial { states } else { 0 }) {
            if state.shape().len() == 3 {
                rows = known(rows, state.dims[usize::from(!self.batch_first)]);
                hidden = known(hidden, state.dims[2]);
            }
            at += 1;
        }
        let times = |count: i64| if hidden == ANY_DIM { ANY_DIM } else { hidden.saturating_mul(count) };
        (patterns[1].dims[1], patterns[2].dims[1], patterns[2].dims[2]) = (times(gates), times(gates), hidden);
        if self.bias {
            patterns[3] = f32s(&[directions, times(2 * gates)]);
        }
        if self.lengths {
            patterns[lengths] = Desc::new(dtype::S32, &[rows]);
        }
        patterns[first_state..at].fill(self.state(rows, hidden));
        if peepholes {
            patterns[at] = f32s(&[directions, times(3)]);
        }
        let count = at + usize::from(peepholes);
        signature::check_fit("input", &patterns[..count], inputs)?;
        Ok(SequenceDims { steps, rows, inputs: known(width, inputs[1].dims[2]), hidden })
    }

    /// Output 0 is that of all steps, others are states after the last one.
    pub(super) fn output(&self, dims: &SequenceDims, index: usize) -> Result<Desc> {
        let SequenceDims { steps, rows, hidden, .. } = *dims;
        let directions = self.directions() as i64;
        if index > 0 {
            return self.state(rows, hidden).check_open();
        }
        let all = if self.batch_first { [rows, steps, directions, hidden] } else { [steps, directions, rows, hidden] };
        Desc::new(dtype::F32, &all).check_open()
    }
}
