//! The trait of built-in operations, and the kernel that runs one: the same for shapes known when it is compiled and
//! for those known only at run time.
//!
//! An operation computes the descriptor of its output, also when dimensions are open (-1): as far as it is known, and
//! without refusing shapes that may turn out to fit. For open dimensions each call asks again with the actual shapes;
//! that checks whether they fit, and gives the output's size. An operation's own code only ever sees known shapes that
//! fit.
#![forbid(unsafe_code)]

use crate::base::{Desc, Error, Result, dtype};
use crate::device::Relation;
use crate::kernel::{Kernel, KernelContext, Outputs};

/// Maximum number of inputs of an operation.
const MOST_INPUTS: usize = 5;

/// A pure function of tensors with one output.
pub trait BuiltinOperation: Send + Sync {
    fn name(&self) -> &str;

    /// At most 5.
    fn num_inputs(&self) -> usize;

    /// The descriptor of the output, or the reason for refusing the inputs, worded as in `signature`. Inputs may leave
    /// dimensions open, and then the output may. Allocates nothing unless it refuses.
    fn output(&self, inputs: &[Desc]) -> Result<Desc>;

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

    /// Estimated run time of one call on one thread in nanoseconds. All dimensions are known.
    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64;

    /// Executes a call. All dimensions are known, and all shapes fit.
    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()>;
}

impl<O: BuiltinOperation> Kernel for O {
    fn name(&self) -> &str {
        BuiltinOperation::name(self)
    }

    fn num_inputs(&self) -> usize {
        BuiltinOperation::num_inputs(self)
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![self.output(inputs)?])
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

    fn is_pure(&self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, mut outputs: Outputs<'_>) -> Result<()> {
        if context.is_open() {
            settle(self, context, &mut outputs)?;
        }
        BuiltinOperation::compute(self, context, outputs)
    }
}

/// Checks the actual shapes of a call, and allocates its output.
fn settle(operation: &impl BuiltinOperation, context: &KernelContext<'_>, outputs: &mut Outputs<'_>) -> Result<()> {
    let mut descs = [Desc::new(dtype::F32, &[]); MOST_INPUTS];
    for (desc, view) in descs.iter_mut().zip(context.inputs()) {
        *desc = *view.desc();
    }
    let output = operation.output(&descs[..context.inputs().len()])?;
    let declared = outputs.desc(0);
    if !declared.is_concrete() {
        outputs.allocate(context, 0, output.shape())?;
    } else if *declared != output {
        return Err(Error::internal(format!("output 0 was to be {}, and is {}", declared.text(), output.text())));
    }
    Ok(())
}
