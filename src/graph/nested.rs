//! A program inside of another one, and many runs of one at once: their nodes run on the pool of the kernel that they are in.
//!
//! The inner run has a step of its own and joins before the kernel returns. Its helpers come out of the same budget as all others of the
//! pool, so nesting asks for no more threads than there are. A cancel of the outer run takes effect when the inner
//! run is over.

use super::exec::Bound;
use super::layout::NO_BIT;
use super::program::Program;
use crate::base::{Code, Desc, Error, Ref, Result};
use crate::engine::{BoundKernel, KernelAttr, scratch_slots};
use crate::kernel::{Kernel, KernelContext, signature};
use crate::threadpool::Span;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(super) struct Nested {
    program: Ref<Program>,
}

impl Nested {
    /// The program as a kernel.
    pub fn kernel(program: &Ref<Program>) -> Result<Ref<BoundKernel>> {
        let layout = &program.layout;
        if !layout.calls.is_empty() {
            return Err(Error::new(
                Code::Unimplemented,
                format!(
                    "program '{}' has kernels that complete later or may block, and can't be a node yet",
                    layout.name
                ),
            ));
        }
        if layout.output_bits.iter().any(|&bit| bit != NO_BIT) {
            return Err(Error::invalid(format!("program '{}' has outputs that may be absent", layout.name)));
        }
        let kernel = Arc::new(Nested { program: Ref::clone(program) });
        Ok(BoundKernel::create(Ref::clone(&layout.engines[0]), kernel, &KernelAttr::default()))
    }
}

impl Kernel for Nested {
    fn name(&self) -> &str {
        self.program.name()
    }

    fn num_inputs(&self) -> usize {
        self.program.inputs().len()
    }

    fn num_outputs(&self) -> usize {
        self.program.outputs().len()
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        let expected: Vec<Desc> = self.program.inputs().iter().map(|port| port.desc).collect();
        signature::check("input", &expected, inputs)?;
        Ok(self.program.outputs().iter().map(|port| port.desc).collect())
    }

    fn is_open(&self) -> bool {
        !self.program.layout.dynamics.is_empty()
    }

    fn cost_ns(&self, _inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        self.program.layout.total_ns.load(Relaxed)
    }

    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        context.with_pool(|pool| {
            let step = self.program.take_step(scratch_slots(pool))?;
            let (inputs, outputs) = (context.inputs(), context.outputs());
            let result = step.take_shapes(|i| Ok(&inputs[i])).and_then(|()| {
                step.run_over(pool, |i| inputs[i].data(), |o| outputs[o].data())?;
                step.publish_to(context)
            });
            self.program.give_step(step);
            result
        })
    }
}

/// What is done with an instance's tensors once they are checked.
type Then<'a> = &'a dyn Fn(&Bound<'_>) -> Result<()>;

impl Program {
    /// Runs the program `count` times in a region of a kernel's call, each time as `with` binds it; the first error wins. All are checked before
    /// the first is run.
    pub fn run_many(
        program: &Ref<Program>,
        context: &KernelContext<'_>,
        count: usize,
        with: &(dyn Fn(usize, Then<'_>) -> Result<()> + Sync),
    ) -> Result<()> {
        let named = |error: Error, i: usize| error.within(format_args!("program '{}' instance {i}", program.name()));
        for i in 0..count {
            with(i, &|_| Ok(())).map_err(|error| named(error, i))?;
        }
        let cost_ns = program.layout.total_ns.load(Relaxed) as f32;
        let span = Span { items: count, cost_ns, grain: 1, ..Span::default() };
        context.parallel_for(&span, &|claim| {
            for i in claim.begin()..claim.end() {
                let run = |bound: &Bound<'_>| context.with_pool(|pool| bound.run_here(pool));
                with(i, &run).map_err(|error| named(error, i))?;
            }
            Ok(())
        })
    }
}
