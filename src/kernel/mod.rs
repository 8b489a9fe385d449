//! Kernels: functions over tensors with a checked signature, and what they see of a call.
//!
//! `Kernel` is the trait; `context` is what a call looks like from inside; `signature` compares descriptors and words
//! the refusals; `builtin` holds the built-in operations, `vector` their inner loops; `cache` finds the kernels that
//! were made before.

pub mod builtin;
pub mod cache;
mod call;
mod completion;
mod context;
mod effect;
mod issuer;
pub mod signature;
mod stop;
pub mod vector;

pub use call::KernelCall;
pub use completion::{Caller, Completion, Pending, Rest};
pub use context::{Frame, Kept, KernelContext, Outputs, RunContext, Scratch, settled};
pub use effect::Effect;
pub use issuer::Issuer;
pub use stop::{Attached, Begun, NEVER, Stop, Stoppable};

use crate::base::{Desc, Ref, Result};
use crate::device::Relation;
use crate::threadpool::{HostCall, ThreadPool};
use std::sync::Arc;

/// A function over tensors.
pub trait Kernel: Send + Sync {
    /// The operation's name, for texts and dumps.
    fn name(&self) -> &str;

    fn num_inputs(&self) -> usize;

    fn num_outputs(&self) -> usize;

    /// What the outputs look like for these inputs. Refuses inputs that the kernel cannot take, in the words of
    /// `signature`: `input 1: expected f32[4,8], got f32[4,9]`. `inputs` has `num_inputs` concrete, checked
    /// descriptors.
    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>>;

    /// Scratch memory per slot in bytes, for a call with these descriptors.
    fn scratch_bytes(&self, _inputs: &[Desc], _outputs: &[Desc]) -> usize {
        0
    }

    /// Estimated run time of one call on one thread in nanoseconds; 0 = unknown.
    fn cost_ns(&self, _inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        0
    }

    /// Whether an output may share memory with an input.
    fn in_place(&self) -> bool {
        false
    }

    /// What it compares its two inputs by, element by element, if it does nothing else: a loop may then compare them
    /// itself.
    fn comparison(&self) -> Option<Relation> {
        None
    }

    /// Whether the outputs depend on the inputs alone, and nothing else happens: compile may call it, and keep the
    /// outputs.
    fn is_pure(&self) -> bool {
        false
    }

    /// Whether it is called in every run that comes to it, though nobody uses what it makes: others rely on its having
    /// been called.
    fn is_relied_on(&self) -> bool {
        false
    }

    /// What its calls read and write besides their tensors. A kernel with effects is called in every run.
    fn effects(&self) -> &[Effect] {
        &[]
    }

    /// The same kernel with what it names looked up, for a program: its calls then find that by a pointer. None if it
    /// names nothing.
    fn resolve(&self) -> Result<Option<Arc<dyn Kernel>>> {
        Ok(None)
    }

    /// Whether its calls on a device are not launches of a kernel that the device has, but what `issuer` issues.
    fn is_issued(&self) -> bool {
        false
    }

    /// What issues its calls on a device. What it names is looked up now: for a program once, for a stream at each
    /// call.
    fn issuer(&self) -> Result<Option<Arc<dyn Issuer>>> {
        Ok(None)
    }

    /// Whether inputs may have dimensions that only a run knows, and outputs too: `infer` then takes descriptors that
    /// leave dimensions open (-1) and may give such, and `compute` asks for the memory of each output that is open
    /// (`Outputs::allocate`).
    fn is_open(&self) -> bool {
        false
    }

    /// Does the work. Inputs (`KernelContext::input`) and outputs have the descriptors that `infer` was given and gave.
    /// May run on any thread, several calls at once.
    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()>;

    /// The same as a plain C function, for those who call it often.
    fn call(&self) -> Option<KernelCall> {
        None
    }

    /// Whether the host can do the work. If not, only a device knows how, and `compute` is not for use.
    fn is_on_host(&self) -> bool {
        true
    }

    /// The engine whose work it is, "cuda:0", if not that of the host which calls it.
    fn engine(&self) -> Option<&str> {
        None
    }

    /// Whether `compute` may block its thread, so that no worker must run it.
    fn may_block(&self) -> bool {
        false
    }

    /// The pool whose thread calls it, whatever pool a run has. None: the run's.
    fn launcher(&self) -> Option<&Ref<ThreadPool>> {
        None
    }

    /// Whether a call goes on after its start has returned (`start`), and `compute` is not for use.
    fn is_async(&self) -> bool {
        false
    }

    /// Begins the work of an asynchronous kernel. The context stays valid until `done` is told, which may be from any
    /// thread, and before this returns. An error says that the work was not begun: then `done` is not told.
    fn start(&self, context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()> {
        done.done(self.compute(context, outputs))
    }
}

/// A function of the host's without tensors: a piece of a stream's work, or a node of a graph.
pub trait Task: Send + Sync {
    fn run(&self) -> Result<()>;

    /// The same as a plain C function, for those who call it often.
    fn call(&self) -> Option<HostCall> {
        None
    }

    /// From now on the task owns its argument, and releases it when it dies. Called once the task was accepted.
    fn adopt(&self) {}
}
