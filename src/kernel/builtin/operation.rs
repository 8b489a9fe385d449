//! The trait of the operators' arithmetic, and the kernel that is an operator: the same for shapes known when it is
//! compiled and for those known only at run time.
//!
//! For open dimensions (-1) each call asks the operator again with the actual shapes; that checks whether they fit, and
//! gives the output's size. Arithmetic only ever sees known shapes that fit.
#![forbid(unsafe_code)]

use super::packed::Packed;
use crate::base::{Desc, Error, Result, dtype};
use crate::device::Relation;
use crate::kernel::vector::conv::PackedFilters;
use crate::kernel::vector::isa::Isa;
use crate::kernel::{Kernel, KernelContext, Outputs};
use crate::memory::Bytes;
use crate::ops::Operator;
use std::ops::Deref;
use std::sync::Arc;

/// Maximum number of inputs of an operator that takes open dimensions.
const MOST_INPUTS: usize = 5;

/// An operator on the processor.
#[derive(Clone, Debug)]
pub struct Builtin<O> {
    operator: O,
    /// The instruction set of its loops.
    pub(super) isa: Isa,
    /// Packed B of a product.
    pub(super) weights: Option<Arc<Packed>>,
    /// Packed weights of a convolution that never change.
    pub(super) filters: Option<Arc<PackedFilters>>,
}

impl<O: Operator> Builtin<O> {
    pub fn new(operator: O) -> Builtin<O> {
        Builtin { operator, isa: Isa::best(), weights: None, filters: None }
    }

    /// For an operator that was made for packed weights of this shape.
    pub fn with_weights(operator: O, weights: Option<Arc<Packed>>) -> Builtin<O> {
        Builtin { weights, ..Builtin::new(operator) }
    }

    /// The same operator with weights that were packed for it.
    pub(super) fn with_filters(&self, filters: PackedFilters) -> Builtin<O> {
        Builtin { filters: Some(Arc::new(filters)), ..self.clone() }
    }

    #[cfg(test)]
    pub fn on(operator: O, isa: Isa) -> Builtin<O> {
        Builtin { isa, ..Builtin::new(operator) }
    }
}

impl<O> Deref for Builtin<O> {
    type Target = O;

    fn deref(&self) -> &O {
        &self.operator
    }
}

/// The arithmetic of an operator: a pure function of tensors.
pub trait BuiltinOperation: Send + Sync {
    /// Scratch memory per slot in bytes; for open dimensions, enough for any size.
    fn scratch_bytes(&self, _inputs: &[Desc], _output: &Desc) -> usize {
        0
    }

    /// Whether the output may share memory with an input.
    fn in_place(&self) -> bool {
        false
    }

    /// The relation between its two inputs, if it is a comparison.
    fn comparison(&self) -> Option<Relation> {
        None
    }

    /// The same operator with what it prepares of inputs that are the same in each call.
    fn prepared(&self, _inputs: &[Desc], _constants: &[Option<Bytes<'_>>]) -> Result<Option<Self>>
    where
        Self: Sized,
    {
        Ok(None)
    }

    /// Estimated run time of one call on one thread in nanoseconds. All dimensions are known.
    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64;

    /// Executes a call. All dimensions are known, and all shapes fit.
    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()>;
}

impl<O: Operator + 'static> Kernel for Builtin<O>
where
    Builtin<O>: BuiltinOperation,
{
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn num_inputs(&self) -> usize {
        self.operator.num_inputs()
    }

    fn num_outputs(&self) -> usize {
        self.operator.num_outputs()
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        (0..self.operator.num_outputs()).map(|index| self.operator.output_at(inputs, index)).collect()
    }

    fn scratch_bytes(&self, inputs: &[Desc], outputs: &[Desc]) -> usize {
        BuiltinOperation::scratch_bytes(self, inputs, &outputs[0])
    }

    fn cost_ns(&self, inputs: &[Desc], outputs: &[Desc]) -> u64 {
        let is_known = inputs.iter().chain(outputs).all(Desc::is_concrete);
        if is_known { BuiltinOperation::cost_ns(self, inputs, &outputs[0]) } else { 0 }
    }

    fn in_place(&self) -> bool {
        BuiltinOperation::in_place(self)
    }

    fn comparison(&self) -> Option<Relation> {
        BuiltinOperation::comparison(self)
    }

    fn prepared(&self, inputs: &[Desc], constants: &[Option<Bytes<'_>>]) -> Result<Option<Arc<dyn Kernel>>> {
        let prepared = BuiltinOperation::prepared(self, inputs, constants)?;
        Ok(prepared.map(|kernel| Arc::new(kernel) as Arc<dyn Kernel>))
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        O::IS_OPEN
    }

    fn compute(&self, context: &KernelContext<'_>, mut outputs: Outputs<'_>) -> Result<()> {
        if context.is_open() {
            settle(&self.operator, context, &mut outputs)?;
        }
        BuiltinOperation::compute(self, context, outputs)
    }
}

/// Checks the actual shapes of a call, and allocates its outputs.
fn settle(operator: &impl Operator, context: &KernelContext<'_>, outputs: &mut Outputs<'_>) -> Result<()> {
    let mut descs = [Desc::new(dtype::F32, &[]); MOST_INPUTS];
    for (desc, view) in descs.iter_mut().zip(context.inputs()) {
        *desc = *view.desc();
    }
    for index in 0..outputs.count() {
        let output = operator.output_at(&descs[..context.inputs().len()], index)?;
        let declared = outputs.desc(index);
        if !declared.is_concrete() {
            outputs.allocate(context, index, output.shape())?;
        } else if *declared != output {
            let (declared, output) = (declared.text(), output.text());
            return Err(Error::internal(format!("output {index} was to be {declared}, and is {output}")));
        }
    }
    Ok(())
}
