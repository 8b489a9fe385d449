//! Elementwise functions one after the other, in one pass over memory: what compile makes of a chain of nodes. Each
//! block of elements stays in the first-level cache from the first function to the last.
//!
//! It is no operator: only the kernels of elementwise operators make one, when something is to follow them.
#![forbid(unsafe_code)]

use super::{GRAIN, LEAST_NS, NS_PER_FLOAT, elements, input};
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::vector::binary::{self, Operand};
use crate::kernel::vector::elements::ElementPair;
use crate::kernel::vector::eltwise::{apply, element_ns};
use crate::kernel::vector::isa::Isa;
use crate::kernel::{EpilogueStep, Kernel, KernelContext, OtherShape, Outputs};
use crate::threadpool::Span;
use std::sync::Arc;

/// Elements of a block.
const BLOCK: usize = 2048;
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

impl Chain {
    /// A function of the first input, and then a step, if that is worth one pass instead of two.
    pub fn of(isa: Isa, first: EpilogueStep, then: EpilogueStep, inputs: &[Desc]) -> Option<Arc<dyn Kernel>> {
        let is_worth_it = inputs.iter().all(Desc::is_concrete) && elements(&inputs[0]) >= LEAST_ELEMENTS;
        let chain = Chain { steps: Vec::new(), isa }.with_epilogue(first, inputs)?;
        chain.with_epilogue(then, inputs).filter(|_| is_worth_it)
    }

    fn cost_of(&self, step: &EpilogueStep) -> f32 {
        match step {
            EpilogueStep::Unary(of) => element_ns(of, self.isa),
            EpilogueStep::Binary { of, .. } => NS_PER_FLOAT * binary::slowness(of.op, &Desc::new(dtype::F32, &[])),
        }
    }

    fn element_ns(&self) -> f32 {
        NS_PER_FLOAT + self.steps.iter().map(|step| self.cost_of(step)).sum::<f32>()
    }
}

impl Kernel for Chain {
    fn name(&self) -> &str {
        "chain"
    }

    fn num_inputs(&self) -> usize {
        1 + self.steps.iter().filter(|step| matches!(step, EpilogueStep::Binary { .. })).count()
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![inputs[0]])
    }

    fn cost_ns(&self, inputs: &[Desc], _: &[Desc]) -> u64 {
        ((elements(&inputs[0]) as f32 * self.element_ns()) as u64).max(LEAST_NS)
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn with_epilogue(&self, step: EpilogueStep, _: &[Desc]) -> Option<Arc<dyn Kernel>> {
        match step {
            EpilogueStep::Binary { other: OtherShape::Columns, .. } => return None,
            EpilogueStep::Binary { .. } if self.num_inputs() == MOST_INPUTS => return None,
            _ if self.steps.len() == MOST_STEPS => return None,
            _ => {}
        }
        let steps = self.steps.iter().copied().chain([step]).collect();
        Some(Arc::new(Chain { steps, isa: self.isa }))
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let mut inputs = [&[][..]; MOST_INPUTS];
        for (i, to) in inputs.iter_mut().enumerate().take(context.inputs().len()) {
            *to = input(context, i);
        }
        let items = elements(outputs.desc(0));
        if inputs[0].len() != items {
            return Err(Error::internal(format!("{} elements for {items}", inputs[0].len())));
        }
        let span = Span { items, cost_ns: self.element_ns(), grain: GRAIN, ..Span::default() };
        context.parallel_into(&span, outputs.only().shards::<f32>(1), |run, claim| {
            for (number, block) in run.chunks_mut(BLOCK).enumerate() {
                let begin = claim.begin() + number * BLOCK;
                let range = begin..begin + block.len();
                block.copy_from_slice(&inputs[0][range.clone()]);
                let mut others = inputs[1..].iter();
                for step in &self.steps {
                    match step {
                        EpilogueStep::Unary(of) => apply(self.isa, of, ElementPair::in_place(block)),
                        EpilogueStep::Binary { of, is_first, other } => {
                            let Some(elements) = others.next() else { continue };
                            let other = match other {
                                OtherShape::One => Operand::One(elements[0]),
                                _ => Operand::Each(&elements[range.clone()]),
                            };
                            binary::in_place(self.isa, of, block, other, *is_first);
                        }
                    }
                }
            }
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
