//! Recurrent cells over whole sequences: LSTM and GRU.
#![forbid(unsafe_code)]

use super::cell::{gru_gates, lstm_gates};
use super::{Builtin, BuiltinOperation, LEAST_NS, elements, input};
use crate::base::{Desc, Result};
use crate::kernel::vector::recurrent::{
    self, RecurrentCell, RecurrentWeights, SequenceInputs, SequenceOutputs, SequenceShape, SequenceWeights,
};
use crate::kernel::vector::site::MatrixMut;
use crate::kernel::{KernelContext, Outputs, PreparedForms};
use crate::memory::Bytes;
use crate::ops::weir_sequence_direction_value::*;
use crate::ops::{GruSequence, LstmSequence, Operator, Sequence, SequenceDims};
use std::sync::Arc;

/// An operator over sequences.
trait Recurrent: Operator {
    fn settings(&self) -> &Sequence;
    fn peepholes(&self) -> bool;
    fn cell(&self) -> RecurrentCell;
    fn sizes(&self, inputs: &[Desc]) -> Result<SequenceDims>;

    /// The shape of a call; sizes that are open count as 0.
    fn shape(&self, inputs: &[Desc]) -> Result<SequenceShape> {
        let SequenceDims { steps, rows, inputs, hidden } = self.sizes(inputs)?;
        let [steps, rows, inputs, hidden] = [steps, rows, inputs, hidden].map(|dim| usize::try_from(dim).unwrap_or(0));
        let backwards: &'static [bool] = match self.settings().direction {
            WEIR_SEQUENCE_FORWARD => &[false],
            WEIR_SEQUENCE_REVERSE => &[true],
            WEIR_SEQUENCE_BIDIRECTIONAL => &[false, true],
        };
        let batch_first = self.settings().batch_first;
        Ok(SequenceShape { steps, rows, inputs, hidden, backwards, batch_first, cell: self.cell() })
    }
}

impl Recurrent for LstmSequence {
    fn settings(&self) -> &Sequence {
        &self.sequence
    }

    fn peepholes(&self) -> bool {
        self.peepholes
    }

    fn cell(&self) -> RecurrentCell {
        RecurrentCell::Lstm(lstm_gates(self.sequence.order))
    }

    fn sizes(&self, inputs: &[Desc]) -> Result<SequenceDims> {
        self.dims(inputs)
    }
}

impl Recurrent for GruSequence {
    fn settings(&self) -> &Sequence {
        &self.sequence
    }

    fn peepholes(&self) -> bool {
        false
    }

    fn cell(&self) -> RecurrentCell {
        RecurrentCell::Gru(gru_gates(self.sequence.order, self.linear_before_reset))
    }

    fn sizes(&self, inputs: &[Desc]) -> Result<SequenceDims> {
        self.dims(inputs)
    }
}

/// The operator with W and R packed, if they are constants.
fn packed<O: Recurrent>(
    kernel: &Builtin<O>,
    inputs: &[Desc],
    constants: &[Option<Bytes<'_>>],
) -> Result<Option<Builtin<O>>> {
    let &[_, Some(w), Some(r), ..] = constants else { return Ok(None) };
    let shape = kernel.shape(inputs)?;
    if shape.hidden == 0 {
        return Ok(None);
    }
    let [w, r] = [(w, 1), (r, 2)].map(|(weights, i)| &weights.read::<f32>()[..elements(&inputs[i])]);
    Ok(Some(kernel.keeping(Arc::new(RecurrentWeights::new(kernel.isa, &shape, w, r)?))))
}

fn scratch<O: Recurrent>(kernel: &Builtin<O>, inputs: &[Desc]) -> usize {
    let packs = kernel.kept::<RecurrentWeights>().is_none();
    kernel.shape(inputs).map_or(0, |shape| shape.scratch_bytes(kernel.isa, packs))
}

fn compute<O: Recurrent, const N: usize>(
    kernel: &Builtin<O>,
    context: &KernelContext<'_>,
    outputs: Outputs<'_>,
) -> Result<()> {
    const MOST_INPUTS: usize = 8;
    let mut descs = [*context.inputs()[0].desc(); MOST_INPUTS];
    for (desc, view) in descs.iter_mut().zip(context.inputs()) {
        *desc = *view.desc();
    }
    let (settings, shape) = (kernel.settings(), kernel.shape(&descs[..kernel.num_inputs()])?);
    let mut next = 3;
    let mut take = |there: bool| {
        let at = there.then_some(next);
        next += usize::from(there);
        at
    };
    let bias = take(settings.bias);
    let lengths = take(settings.lengths);
    let initial = [take(settings.initial), take(settings.initial && N == 3)];
    let peepholes = take(kernel.peepholes());
    let floats = |at: Option<usize>| at.map(|at| input(context, at));
    let inputs = SequenceInputs {
        x: input(context, 0),
        weights: match kernel.kept() {
            Some(packed) => SequenceWeights::Packed(packed),
            None => SequenceWeights::Plain { w: input(context, 1), r: input(context, 2) },
        },
        bias: floats(bias),
        lengths: lengths.map(|at| &context.input(at).read::<i32>()[..shape.rows]),
        initial: initial.map(floats),
        peepholes: floats(peepholes),
        clip: settings.clip,
    };
    let states = shape.backwards.len() * shape.rows;
    let mut results = outputs.split::<N>().into_iter().enumerate().map(|(i, output)| {
        let rows = if i == 0 { states * shape.steps } else { states };
        MatrixMut::output(output, rows, shape.hidden)
    });
    let (Some(y), Some(h)) = (results.next(), results.next()) else { unreachable!("two outputs or three") };
    let results = SequenceOutputs { y, h, c: results.next() };
    recurrent::compute(kernel.isa, &shape, &inputs, &results, context)
}

impl BuiltinOperation for Builtin<LstmSequence> {
    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        scratch(self, inputs)
    }

    fn prepared(
        &self,
        inputs: &[Desc],
        constants: &[Option<Bytes<'_>>],
        _: &mut PreparedForms,
    ) -> Result<Option<Self>> {
        packed(self, inputs, constants)
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        self.shape(inputs).map_or(0, |shape| shape.cost_ns()).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        compute::<_, 3>(self, context, outputs)
    }
}

impl BuiltinOperation for Builtin<GruSequence> {
    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        scratch(self, inputs)
    }

    fn prepared(
        &self,
        inputs: &[Desc],
        constants: &[Option<Bytes<'_>>],
        _: &mut PreparedForms,
    ) -> Result<Option<Self>> {
        packed(self, inputs, constants)
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        self.shape(inputs).map_or(0, |shape| shape.cost_ns()).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        compute::<_, 2>(self, context, outputs)
    }
}
