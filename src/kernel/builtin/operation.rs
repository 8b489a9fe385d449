//! The trait of the operators' arithmetic, and the kernel that is an operator: the same for shapes known when it is
//! compiled and for those known only at run time.
//!
//! For open dimensions (-1) each call asks the operator again with the actual shapes; that checks whether they fit, and
//! gives the outputs' and the scratch memory's size. Arithmetic only ever sees known shapes that fit.
#![forbid(unsafe_code)]

use super::chain::Chain;
use super::elements;
use super::packed::Packed;
use crate::abi::weir_limit::WEIR_MAX_ARGS;
use crate::base::{Desc, Error, Result, dtype};
use crate::device::Relation;
use crate::kernel::vector::conv::PackedFilters;
use crate::kernel::vector::isa::Isa;
use crate::kernel::{EpilogueStep, Kernel, KernelContext, Outputs, PreparedForms};
use crate::memory::Bytes;
use crate::ops::Operator;
use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;

/// Number of inputs that all operators but a large concatenation get by with.
const FEW_INPUTS: usize = 8;

/// An operator on the processor.
#[derive(Clone, Debug)]
pub struct Builtin<O> {
    operator: O,
    /// The instruction set of its loops.
    pub(super) isa: Isa,
    /// Packed B of a product.
    pub(super) weights: Option<Arc<Packed>>,
    /// Weights of a convolution that never change, packed for each algorithm that images may come to.
    pub(super) filters: Arc<[PackedFilters]>,
    /// The form in which an operator of another kind keeps weights that never change.
    kept: Option<Arc<dyn Any + Send + Sync>>,
    /// Functions of the f32 result that follow, of which the last inputs are operands.
    end: Option<Arc<Chain>>,
}

impl<O: Operator> Builtin<O> {
    pub fn new(operator: O) -> Builtin<O> {
        Builtin { operator, isa: Isa::best(), weights: None, filters: Arc::default(), kept: None, end: None }
    }

    /// For an operator that was made for packed weights of this shape.
    pub fn with_weights(operator: O, weights: Option<Arc<Packed>>) -> Builtin<O> {
        Builtin { weights, ..Builtin::new(operator) }
    }

    /// The same operator with weights that were packed for it.
    pub(super) fn with_filters(&self, filters: Vec<PackedFilters>) -> Builtin<O> {
        Builtin { filters: filters.into(), ..self.clone() }
    }

    /// The same operator with what was made of weights for it.
    pub(super) fn keeping<T: Any + Send + Sync>(&self, made: Arc<T>) -> Builtin<O> {
        Builtin { kept: Some(made), ..self.clone() }
    }

    /// The kept form of the weights, if there is one.
    pub(super) fn kept<T: Any>(&self) -> Option<&T> {
        self.kept.as_ref()?.downcast_ref()
    }

    /// Another operator of its kind on the same weights.
    pub(super) fn with_operator(&self, operator: O) -> Builtin<O> {
        Builtin { operator, ..self.clone() }
    }

    /// The functions that follow.
    pub(super) fn end(&self) -> Option<&Chain> {
        self.end.as_deref()
    }

    /// The operator's own inputs, which come first.
    fn own(&self) -> usize {
        self.operator.num_inputs()
    }

    #[cfg(all(test, not(loom)))]
    pub fn on(operator: O, isa: Isa) -> Builtin<O> {
        Builtin { isa, ..Builtin::new(operator) }
    }
}

impl<O: Operator + 'static> Builtin<O>
where
    Builtin<O>: BuiltinOperation,
{
    /// The same operator with one more function behind it, which its arithmetic applies.
    pub(super) fn ending_with(&self, step: EpilogueStep) -> Option<Arc<dyn Kernel>> {
        let end = self.end.as_deref().unwrap_or(&Chain::new(self.isa)).then(step)?;
        Some(Arc::new(Builtin { end: Some(Arc::new(end)), ..self.clone() }))
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
    /// Scratch memory per slot in bytes. All dimensions are known, but for those of outputs that only a call knows.
    fn scratch_bytes(&self, _inputs: &[Desc], _output: &Desc) -> usize {
        0
    }

    /// Whether the output may be the memory of this input.
    fn in_place_of(&self, _input: usize) -> bool {
        false
    }

    /// The relation between its two inputs, if it is a comparison.
    fn comparison(&self) -> Option<Relation> {
        None
    }

    /// Whether it reads the shapes of its inputs, and none of their elements.
    fn reads_shapes_alone(&self) -> bool {
        false
    }

    /// The step that it is at the end of the kernel that makes its input `position`.
    fn as_epilogue(&self, _inputs: &[Desc], _position: usize) -> Option<EpilogueStep> {
        None
    }

    /// A kernel that does the same for these inputs, and then one step more.
    fn with_epilogue(&self, _step: EpilogueStep, _inputs: &[Desc]) -> Option<Arc<dyn Kernel>> {
        None
    }

    /// The same operator with what it prepares of inputs that are the same in each call.
    fn prepared(
        &self,
        _inputs: &[Desc],
        _constants: &[Option<Bytes<'_>>],
        _forms: &mut PreparedForms,
    ) -> Result<Option<Self>>
    where
        Self: Sized,
    {
        Ok(None)
    }

    /// Estimated run time of one call on one thread in nanoseconds. All dimensions are known.
    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64;

    /// Executes a call. All dimensions are known, and all shapes fit; outputs whose shape does not follow from those of
    /// the inputs are allocated here.
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
        self.own() + self.end().map_or(0, Chain::others)
    }

    fn num_outputs(&self) -> usize {
        self.operator.num_outputs()
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        let inputs = &inputs[..self.own()];
        (0..self.operator.num_outputs()).map(|index| self.operator.output_at(inputs, index)).collect()
    }

    fn scratch_bytes(&self, inputs: &[Desc], outputs: &[Desc]) -> usize {
        // Of open dimensions each call says it (`settled`).
        if is_known(inputs, outputs) { BuiltinOperation::scratch_bytes(self, inputs, &outputs[0]) } else { 0 }
    }

    fn cost_ns(&self, inputs: &[Desc], outputs: &[Desc]) -> u64 {
        if !is_known(inputs, outputs) {
            return 0;
        }
        let end_ns = self.end().map_or(0.0, |end| end.element_ns() * elements(&outputs[0]) as f32);
        BuiltinOperation::cost_ns(self, inputs, &outputs[0]) + end_ns as u64
    }

    fn in_place(&self) -> bool {
        Kernel::in_place_of(self, 0)
    }

    fn in_place_of(&self, input: usize) -> bool {
        input < self.own() && BuiltinOperation::in_place_of(self, input)
    }

    fn comparison(&self) -> Option<Relation> {
        BuiltinOperation::comparison(self)
    }

    fn reads_shapes_alone(&self) -> bool {
        BuiltinOperation::reads_shapes_alone(self)
    }

    fn dim_from(&self, inputs: &[Desc], output: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        self.operator.dim_from(&inputs[..self.own()], output, dim)
    }

    fn as_epilogue(&self, inputs: &[Desc], position: usize) -> Option<EpilogueStep> {
        BuiltinOperation::as_epilogue(self, inputs, position)
    }

    fn with_epilogue(&self, step: EpilogueStep, inputs: &[Desc]) -> Option<Arc<dyn Kernel>> {
        BuiltinOperation::with_epilogue(self, step, inputs)
    }

    fn prepared(
        &self,
        inputs: &[Desc],
        constants: &[Option<Bytes<'_>>],
        forms: &mut PreparedForms,
    ) -> Result<Option<Arc<dyn Kernel>>> {
        let prepared = BuiltinOperation::prepared(self, inputs, constants, forms)?;
        Ok(prepared.map(|kernel| Arc::new(kernel) as Arc<dyn Kernel>))
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match context.is_open() {
            true => self.compute_open(context, outputs, self.own()),
            false => BuiltinOperation::compute(self, context, outputs),
        }
    }
}

impl<O: Operator> Builtin<O>
where
    Builtin<O>: BuiltinOperation,
{
    /// A call of which shapes are known now; its own inputs are the first ones.
    pub(super) fn compute_open(
        &self,
        context: &KernelContext<'_>,
        mut outputs: Outputs<'_>,
        num_inputs: usize,
    ) -> Result<()> {
        let output_at = |inputs: &[Desc], index| self.operator.output_at(inputs, index);
        let scratch_bytes = |inputs: &[Desc], first: &Desc| BuiltinOperation::scratch_bytes(self, inputs, first);
        let bytes = match num_inputs {
            ..=FEW_INPUTS => settled::<FEW_INPUTS>(&output_at, &scratch_bytes, context, num_inputs, &mut outputs)?,
            _ => settled::<{ WEIR_MAX_ARGS as usize }>(&output_at, &scratch_bytes, context, num_inputs, &mut outputs)?,
        };
        BuiltinOperation::compute(self, &context.with_scratch(bytes)?, outputs)
    }
}

fn is_known(inputs: &[Desc], outputs: &[Desc]) -> bool {
    inputs.iter().chain(outputs).all(Desc::is_concrete)
}

/// Checks the actual shapes of a call of at most `N` inputs, and allocates its outputs. Returns the scratch memory per
/// slot that it needs, in bytes. Not compiled for each operator.
fn settled<const N: usize>(
    output_at: &dyn Fn(&[Desc], usize) -> Result<Desc>,
    scratch_bytes: &dyn Fn(&[Desc], &Desc) -> usize,
    context: &KernelContext<'_>,
    num_inputs: usize,
    outputs: &mut Outputs<'_>,
) -> Result<usize> {
    let mut descs = [Desc::new(dtype::F32, &[]); N];
    let views = &context.inputs()[..num_inputs];
    for (desc, view) in descs.iter_mut().zip(views) {
        *desc = *view.desc();
    }
    let inputs = &descs[..num_inputs];
    let first = output_at(inputs, 0)?;
    for i in 0..outputs.count() {
        let output = if i == 0 { first } else { output_at(inputs, i)? };
        let declared = outputs.desc(i);
        if !declared.is_concrete() {
            // The arithmetic allocates the outputs whose size only it knows.
            if output.is_concrete() {
                outputs.allocate(context, i, output.shape())?;
            }
        } else if *declared != output {
            return Err(Error::internal(format!("output {i} was to be {}, and is {}", declared.text(), output.text())));
        }
    }
    Ok(scratch_bytes(inputs, &first))
}
