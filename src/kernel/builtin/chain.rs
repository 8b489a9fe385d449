//! Elementwise functions one after the other, in one pass over memory: what compile makes of a chain of nodes. Each
//! block of elements stays in the first-level cache from the first function to the last.
//!
//! It is no operator: the kernels of elementwise operators make one when something is to follow them, and others end
//! with one.
#![forbid(unsafe_code)]

use super::{GRAIN, LEAST_NS, NS_PER_FLOAT, elements, input};
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::vector::binary::{self, Operand};
use crate::kernel::vector::elements::{ElementPair, Pairs};
use crate::kernel::vector::eltwise::{apply, element_ns};
use crate::kernel::vector::isa::Isa;
use crate::kernel::{EpilogueStep, Kernel, KernelContext, OtherShape, Outputs};
use crate::threadpool::Span;
use std::sync::Arc;

/// Elements of a block.
pub const BLOCK: usize = 2048;
/// Smaller results are in a near cache anyway.
const LEAST_ELEMENTS: usize = 16 << 10;
/// Most inputs of a chain.
const MOST_INPUTS: usize = 8;
/// Most functions of a chain. A pass over memory is little beside so many, and a node's name has one of each.
const MOST_STEPS: usize = 32;

/// Functions of the first input, each of what the one before it gave; binary ones also of the next input.
#[derive(Clone, Debug)]
pub struct Chain {
    steps: Vec<EpilogueStep>,
    isa: Isa,
}

/// A chain at the end of a kernel: a function of the number of an element, and of some from there on.
pub type End<'a, T> = dyn Fn(usize, &mut [T]) + Sync + 'a;

impl Chain {
    /// A function of the first input, and then a step, if that is worth one pass instead of two.
    pub fn of(isa: Isa, first: EpilogueStep, then: EpilogueStep, inputs: &[Desc]) -> Option<Arc<dyn Kernel>> {
        let is_worth_it = inputs.iter().all(Desc::is_concrete) && elements(&inputs[0]) >= LEAST_ELEMENTS;
        let chain = Chain::new(isa).then(first)?.then(then)?;
        is_worth_it.then(|| Arc::new(chain) as Arc<dyn Kernel>)
    }

    /// Without a function so far.
    pub fn new(isa: Isa) -> Chain {
        Chain { steps: Vec::new(), isa }
    }

    /// The same with one function more, if there is room.
    pub fn then(&self, step: EpilogueStep) -> Option<Chain> {
        match step {
            EpilogueStep::Binary { other: OtherShape::Columns, .. } => return None,
            EpilogueStep::Binary { .. } if self.others() + 1 == MOST_INPUTS => return None,
            _ if self.steps.len() == MOST_STEPS => return None,
            _ => {}
        }
        Some(Chain { steps: self.steps.iter().copied().chain([step]).collect(), isa: self.isa })
    }

    /// Inputs besides the first.
    pub fn others(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, EpilogueStep::Binary { .. })).count()
    }

    /// Applies the functions to elements, the first of which is number `begin`; the other inputs are the call's last.
    pub fn apply(&self, context: &KernelContext<'_>, begin: usize, elements: &mut [f32]) {
        for (number, block) in elements.chunks_mut(BLOCK).enumerate() {
            let begin = begin + number * BLOCK;
            let mut others = context.inputs().len() - self.others()..;
            for step in &self.steps {
                match step {
                    EpilogueStep::Unary(of) => apply(self.isa, of, ElementPair::in_place(block)),
                    EpilogueStep::Binary { of, is_first, other } => {
                        let Some(elements) = others.next().map(|other| input(context, other)) else { continue };
                        let other = match other {
                            OtherShape::One => Operand::One(elements[0]),
                            _ => Operand::Each(&elements[begin..begin + block.len()]),
                        };
                        binary::in_place(self.isa, of, block, other, *is_first);
                    }
                }
            }
        }
    }

    fn cost_of(&self, step: &EpilogueStep) -> f32 {
        match step {
            EpilogueStep::Unary(of) => element_ns(of, self.isa),
            EpilogueStep::Binary { of, .. } => NS_PER_FLOAT * binary::slowness(of.op, &Desc::new(dtype::F32, &[])),
        }
    }

    /// Time for an element that is in a near cache.
    pub fn element_ns(&self) -> f32 {
        self.steps.iter().map(|step| self.cost_of(step)).sum::<f32>()
    }
}

impl Kernel for Chain {
    fn name(&self) -> &str {
        "chain"
    }

    fn num_inputs(&self) -> usize {
        1 + self.others()
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![inputs[0]])
    }

    fn cost_ns(&self, inputs: &[Desc], _: &[Desc]) -> u64 {
        ((elements(&inputs[0]) as f32 * (NS_PER_FLOAT + self.element_ns())) as u64).max(LEAST_NS)
    }

    fn in_place(&self) -> bool {
        true
    }

    fn in_place_of(&self, input: usize) -> bool {
        input == 0
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn with_epilogue(&self, step: EpilogueStep, _: &[Desc]) -> Option<Arc<dyn Kernel>> {
        self.then(step).map(|chain| Arc::new(chain) as Arc<dyn Kernel>)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (count, items) = (elements(context.inputs()[0].desc()), elements(outputs.desc(0)));
        if count != items {
            return Err(Error::internal(format!("{count} elements for {items}")));
        }
        let cost_ns = NS_PER_FLOAT + self.element_ns();
        let span = Span { items, cost_ns, grain: GRAIN, ..Span::default() };
        context.parallel_into(&span, Pairs::<f32, f32>::of(context, outputs)?, |mut some, claim| {
            some.for_chunks(BLOCK, |at, mut block| self.apply(context, claim.begin() + at, block.copied()));
            Ok(())
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ops::weir_binary_op_value::*;
    use crate::ops::weir_eltwise_op_value::*;
    use crate::ops::{Binary, Eltwise};

    fn unary(op: crate::ops::weir_eltwise_op_value) -> EpilogueStep {
        EpilogueStep::Unary(Eltwise { op, alpha: 0.0, beta: 0.0 })
    }

    #[test]
    fn is_made_for_what_leaves_the_cache() {
        let step = EpilogueStep::Binary { of: Binary::of(WEIR_BINARY_SUB), is_first: false, other: OtherShape::One };
        let of = |dims: &[i64]| {
            let inputs = [Desc::new(dtype::F32, dims)];
            Chain::of(Isa::best(), unary(WEIR_ELTWISE_EXP), step, &inputs)
        };
        let chain = of(&[4, 4096]).unwrap();
        assert_eq!((chain.num_inputs(), chain.name()), (2, "chain"));
        assert!(of(&[4, 4095]).is_none() && of(&[-1, 4096]).is_none());
        let columns =
            EpilogueStep::Binary { of: Binary::of(WEIR_BINARY_ADD), is_first: true, other: OtherShape::Columns };
        assert!(chain.with_epilogue(columns, &[]).is_none());
    }
}
