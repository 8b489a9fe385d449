//! Creates an LSTM over whole sequences, see weir_lstm_sequence_desc. NULL desc = forward, neither biases nor initial
//! states, gates in the order of ONNX.
//!
//! Errors: INVALID_ARGUMENT (unknown flags, gate order or direction, a clip that is negative or NaN, reserved not 0).
//!
//! Chapter: Recurrent cells.
#![forbid(unsafe_code)]

use super::cell::{self, weir_gate_order};
use super::check::{flags, reserved};
use super::operator::{Operator, PackedShape, zeroed};
use super::sequence::{self, Sequence, SequenceDims, weir_sequence_direction};
use crate::base::{Desc, Result};

/// Flags of weir_lstm_sequence_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_lstm_sequence_flags {
    /// An input more, [D, 8 H]: the biases of W, then those of R.
    WEIR_LSTM_SEQUENCE_BIAS = 1,
    /// An input more, s32[N]: the number of steps of each sequence. Behind its end a sequence keeps its states, and the
    /// output of these steps is 0. A number below 0 counts as 0, one above T as T.
    WEIR_LSTM_SEQUENCE_LENGTHS = 2,
    /// Two inputs more, the states before the first step, h and c. Without them they are 0.
    WEIR_LSTM_SEQUENCE_STATES = 4,
    /// An input more, [D, 3 H], in the order input, output, forget: these times c, the old one for the gates of input
    /// and forget and the new one for that of the output, are added to the gates.
    WEIR_LSTM_SEQUENCE_PEEPHOLES = 8,
    /// The batch is the first dimension of x, the output and the states.
    WEIR_LSTM_SEQUENCE_BATCH_FIRST = 16,
}

/// An LSTM over whole sequences in f32: all steps of weir_lstm_desc, one after the other, in one or both directions.
///
/// Inputs, in this order: x[T, N, I], W[D, 4 H, I], R[D, 4 H, H], and as flags say biases, lengths, h[D, N, H] and
/// c[D, N, H], peepholes. Outputs: h after each step [T, D, N, H], the last h [D, N, H] and the last c [D, N, H]. D is
/// 2 for WEIR_SEQUENCE_BIDIRECTIONAL, else 1. With WEIR_LSTM_SEQUENCE_BATCH_FIRST x is [N, T, I], states are [N, D, H],
/// and the output is [N, T, D, H].
///
/// W and R that are constants of a graph are packed by compile. Others are read and packed in each run: R takes scratch
/// memory of its size for each thread then.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_lstm_sequence_desc {
    /// sizeof(weir_lstm_sequence_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_lstm_sequence_flags.
    pub flags: u64,
    /// How the blocks of W, R and the biases are ordered.
    pub gate_order: weir_gate_order,
    /// The order of the steps.
    pub direction: weir_sequence_direction,
    /// Arguments of the gates' functions are bounded to -clip and clip; 0 = not at all.
    pub clip: f32,
    /// Reserved, 0.
    pub reserved: u32,
}

/// Sequences through an LSTM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LstmSequence {
    pub sequence: Sequence,
    pub peepholes: bool,
}

impl LstmSequence {
    /// The sizes of inputs that fit.
    pub fn dims(&self, inputs: &[Desc]) -> Result<SequenceDims> {
        self.sequence.dims(inputs, 4, 2, self.peepholes)
    }
}

impl Operator for LstmSequence {
    type Desc = weir_lstm_sequence_desc;
    const NAME: &'static str = "lstm_sequence";
    const DEFAULT: Option<weir_lstm_sequence_desc> = Some(zeroed());

    fn new(desc: &mut weir_lstm_sequence_desc, _: Option<PackedShape>) -> Result<LstmSequence> {
        use weir_lstm_sequence_flags::*;
        let all = [
            WEIR_LSTM_SEQUENCE_BIAS,
            WEIR_LSTM_SEQUENCE_LENGTHS,
            WEIR_LSTM_SEQUENCE_STATES,
            WEIR_LSTM_SEQUENCE_PEEPHOLES,
            WEIR_LSTM_SEQUENCE_BATCH_FIRST,
        ];
        let bits = flags(desc.flags, all.iter().fold(0, |all, &flag| all | flag as u64), "desc->flags")?;
        reserved(desc.reserved)?;
        let has = |flag: weir_lstm_sequence_flags| bits & flag as u64 != 0;
        let sequence = Sequence {
            order: cell::order(desc.gate_order)?,
            direction: sequence::direction(desc.direction)?,
            bias: has(WEIR_LSTM_SEQUENCE_BIAS),
            lengths: has(WEIR_LSTM_SEQUENCE_LENGTHS),
            initial: has(WEIR_LSTM_SEQUENCE_STATES),
            batch_first: has(WEIR_LSTM_SEQUENCE_BATCH_FIRST),
            clip: sequence::clip(desc.clip)?,
        };
        Ok(LstmSequence { sequence, peepholes: has(WEIR_LSTM_SEQUENCE_PEEPHOLES) })
    }

    fn num_inputs(&self) -> usize {
        self.sequence.num_inputs(2) + usize::from(self.peepholes)
    }

    fn num_outputs(&self) -> usize {
        3
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        self.output_at(inputs, 0)
    }

    fn output_at(&self, inputs: &[Desc], index: usize) -> Result<Desc> {
        self.sequence.output(&self.dims(inputs)?, index)
    }
}
