//! A program nested in another one: its nodes run on the pool of the kernel that they are in.
//!
//! The nested run has a state of its own and joins before the kernel returns. Its helpers come out of the same budget
//! as all others of the pool, so nesting asks for no more threads than there are. It ends with the outer run: a stop of
//! the outer run stops it too (`kernel::Stop`), and it has the same deadline.
//!
//! A program with kernels that complete later or may block is such a kernel itself: its node is started, and ends when
//! the nested run does (`carry::host::inner`). Kernels that may block go to the pool for which the nested program was
//! compiled.
//!
//! A program with communications takes its turn among those of the outer graph as a whole (`compile::communicate`). Its
//! runs have the number of the outer run (`Stop::run`), which has the communicators; only that one's end is told.

use super::program::Program;
use crate::base::{Code, Desc, Error, Ref, Result};
use crate::device::Operation;
use crate::engine::{BoundKernel, KernelIdentity, KernelOptions, scratch_slots};
use crate::graph::carry::calls::StateHome;
use crate::graph::carry::host::execute::Outer;
use crate::graph::plan::NO_BIT;
use crate::kernel::{Completion, Effect, Kernel, KernelContext, Outputs, RunListener};
use crate::ops::signature;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Most programs inside one another. A run of each is on the stack of the run around it, and so is its release.
pub(in crate::graph) const MOST_PROGRAMS: usize = 16;

pub(in crate::graph) struct Nested {
    program: Ref<Program>,
}

impl Nested {
    /// The program as a kernel.
    pub fn kernel(program: &Ref<Program>) -> Result<Ref<BoundKernel>> {
        let plan = program.plan();
        if program.facts.programs + 1 >= MOST_PROGRAMS {
            let text = format!("program '{}': more than {MOST_PROGRAMS} programs lie inside one another", plan.name);
            return Err(Error::out_of_range(text));
        }
        if plan.output_bits.iter().any(|&bit| bit != NO_BIT) {
            return Err(Error::invalid(format!("program '{}' has outputs that may be absent", plan.name)));
        }
        if let Some(port) = plan.inputs.iter().chain(&plan.outputs).find(|port| port.engine.is_some()) {
            let home = port.engine.as_ref().map_or(String::new(), |engine| engine.label());
            let text = format!("program '{}' has '{}' on engine {home}, which no node takes", plan.name, port.name);
            return Err(Error::new(Code::Unimplemented, text));
        }
        let kernel = Arc::new(Nested { program: Ref::clone(program) });
        // Devices call host functions on threads that must not wait.
        let operation = KernelIdentity { is_bound: true, ..KernelIdentity::of(Operation::Host) };
        BoundKernel::create_as(Ref::clone(&plan.engines[0]), kernel, operation, &KernelOptions::default())
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

    fn has_side_effects(&self) -> bool {
        self.program.facts.has_side_effects
    }

    fn effects(&self) -> &[Effect] {
        &self.program.plan().effects
    }

    /// Those of the program, which hear of the runs around the node.
    fn listeners(&self) -> &[Arc<dyn RunListener>] {
        &self.program.runs.compiled.listeners
    }

    /// The program's communications.
    fn as_any(&self) -> Option<&dyn Any> {
        Some(&self.program.facts.communications)
    }

    fn is_open(&self) -> bool {
        !self.program.plan().dynamics.is_empty()
    }

    fn cost_ns(&self, _inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        self.program.runs.compiled.learned.total_ns.load(Relaxed)
    }

    fn compute(&self, context: &KernelContext<'_>, mut outputs: Outputs<'_>) -> Result<()> {
        context.with_pool(|pool| {
            let state = self.program.runs.take_state(scratch_slots(pool))?;
            let inputs = context.inputs();
            let outer = Outer { stop: context.stop(), failed: None };
            // SAFETY: nobody else has the state, and the call has the tensors until the inner run is over.
            let result = unsafe {
                state.take_shapes(|i| Ok(&inputs[i])).and_then(|()| {
                    state.run_over(pool, |i| inputs[i].data(), |o| context.output_data(o), outer)?;
                    state.publish_to(context, &mut outputs)
                })
            };
            self.program.runs.give_state(state);
            result
        })
    }

    fn is_async(&self) -> bool {
        !self.program.plan().calls.is_empty()
    }

    fn start(&self, context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()> {
        if !self.is_async() {
            return done.done(self.compute(context, outputs));
        }
        let state = self.program.runs.take_state(context.with_pool(scratch_slots))?;
        let inputs = context.inputs();
        // SAFETY: nobody else has the state, and the call has the tensors until the inner run is over.
        let begun = unsafe {
            state.take_shapes(|i| Ok(&inputs[i])).and_then(|()| {
                state.bind(Some(context.stop().run()), |i| inputs[i].data(), |o| context.output_data(o));
                state.start_inside(Ref::clone(&self.program) as Arc<dyn StateHome>, context, outputs, done)
            })
        };
        if begun.is_err() {
            self.program.runs.give_state(state);
        }
        begun
    }
}
