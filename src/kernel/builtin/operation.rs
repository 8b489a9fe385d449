//! What a built-in operation says of itself, and the kernel that it is: the same for shapes that are known when it is
//! compiled and for those that only a run knows.
//!
//! An operation says what its output looks like, and says it also when dimensions are open (-1): as much as is known,
//! with nothing refused that may turn out to fit. What is open then, each call asks again with the shapes that have
//! come; that says whether they fit after all, and how large the output is. An operation's own code only ever sees
//! shapes that are known and fit.
#![forbid(unsafe_code)]

use crate::base::{Desc, Error, Result, dtype};
use crate::device::Relation;
use crate::kernel::{Kernel, KernelContext, Outputs};

/// Most inputs of an operation.
const MOST_INPUTS: usize = 5;

/// A function of tensors with one output, which depends on nothing but them.
pub trait Operation: Send + Sync {
    fn name(&self) -> &str;

    /// At most 5.
    fn num_inputs(&self) -> usize;

    /// What the output looks like, or why the inputs are refused, in the words of `signature`. Inputs may leave
    /// dimensions open, and then the output may. Allocates nothing unless it refuses.
    fn output(&self, inputs: &[Desc]) -> Result<Desc>;

    /// Scratch memory per slot in bytes; where dimensions are open, as much as any sizes need.
    fn scratch_bytes(&self, _inputs: &[Desc], _output: &Desc) -> usize {
        0
    }

    /// Whether the output may share memory with an input.
    fn in_place(&self) -> bool {
        false
    }

    /// What it compares its two inputs by, if it does that.
    fn comparison(&self) -> Option<Relation> {
        None
    }

    /// Estimated run time of one call on one thread in nanoseconds. Nothing is open.
    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64;

    /// Does the work. Nothing is open, and all fits.
    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()>;
}

impl<O: Operation> Kernel for O {
    fn name(&self) -> &str {
        Operation::name(self)
    }

    fn num_inputs(&self) -> usize {
        Operation::num_inputs(self)
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![self.output(inputs)?])
    }

    fn scratch_bytes(&self, inputs: &[Desc], outputs: &[Desc]) -> usize {
        Operation::scratch_bytes(self, inputs, &outputs[0])
    }

    fn cost_ns(&self, inputs: &[Desc], outputs: &[Desc]) -> u64 {
        let is_known = inputs.iter().chain(outputs).all(Desc::is_concrete);
        if is_known { Operation::cost_ns(self, inputs, &outputs[0]) } else { 0 }
    }

    fn in_place(&self) -> bool {
        Operation::in_place(self)
    }

    fn comparison(&self) -> Option<Relation> {
        Operation::comparison(self)
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
        Operation::compute(self, context, outputs)
    }
}

/// Looks at the shapes of a call, and gets its output's memory.
fn settle(operation: &impl Operation, context: &KernelContext<'_>, outputs: &mut Outputs<'_>) -> Result<()> {
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
