//! Kernels: functions over tensors with a checked signature, and the context of their calls.
//!
//! `Kernel` is the trait; `context` is a call as seen from inside; `builtin` holds the arithmetic of the built-in
//! operators, `vector` their inner loops; `cache` reuses kernels.

pub mod builtin;
pub mod cache;
mod call;
mod completion;
mod context;
mod effect;
mod epilogue;
mod issuer;
mod prepared;
#[cfg(all(test, not(loom)))]
mod prepared_tests;
mod stop;
pub mod vector;

pub use call::KernelCall;
pub use completion::{Caller, Completion, Pending, Rest};
pub use context::{Frame, Kept, KernelContext, Outputs, RunContext, Scratch, settled};
pub use effect::Effect;
pub use epilogue::{EpilogueStep, OtherShape};
pub use issuer::{IssuedCall, IssuedFor, Issuer, LateFailure};
pub use prepared::PreparedForms;
pub use stop::{Attached, BeginOutcome, NEVER, Stop, Stoppable};

use crate::base::{Desc, Error, Ref, Result};
use crate::device::Relation;
use crate::memory::Bytes;
use crate::threadpool::{HostCall, ThreadPool};
use std::any::Any;
use std::sync::Arc;

/// The place of a kernel with effects on other ranks in a program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramPlace<'a> {
    /// The kinds of the nodes around it: "while/cond 1/".
    pub nest: &'a str,
    /// The names of the nodes around it, and its own: "loop/step".
    pub path: &'a str,
    /// So many collectives of its first order were added up to this node.
    pub number: u64,
}

/// A function over tensors.
pub trait Kernel: Send + Sync {
    /// The operation's name, for texts and dumps.
    fn name(&self) -> &str;

    fn num_inputs(&self) -> usize;

    fn num_outputs(&self) -> usize;

    /// The descriptors of the outputs for these inputs. Refuses inputs that the kernel cannot take, worded as in
    /// `ops::signature`: `input 1: expected f32[4,8], got f32[4,9]`. `inputs` has `num_inputs` concrete, checked
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

    /// Whether it may share memory with this one. That is asked of kernels that are in place.
    fn in_place_of(&self, _input: usize) -> bool {
        true
    }

    /// The relation between its two inputs, if it is an elementwise comparison and nothing else: a loop may then
    /// compare them itself.
    fn comparison(&self) -> Option<Relation> {
        None
    }

    /// Whether the outputs depend only on the inputs, without side effects: compile may call it, and keep the outputs.
    fn is_pure(&self) -> bool {
        false
    }

    /// Whether every run that reaches it must call it, even if its outputs are unused: others rely on the call.
    fn is_relied_on(&self) -> bool {
        false
    }

    /// Whether it does more than compute outputs, and more than `effects` says: it is called in every whole run.
    fn has_side_effects(&self) -> bool {
        false
    }

    /// The reads and writes of its calls besides their tensors. A kernel with effects is called in every run.
    fn effects(&self) -> &[Effect] {
        &[]
    }

    /// Whether it reads the shapes of its inputs, and none of their elements.
    fn reads_shapes_alone(&self) -> bool {
        false
    }

    /// How many of its last inputs hold settings: `settled` makes a kernel without these of their elements.
    fn num_settings(&self) -> usize {
        0
    }

    /// The same kernel for these settings, without the inputs that hold them.
    fn settled(&self, _settings: &[Bytes<'_>]) -> Result<Arc<dyn Kernel>> {
        Err(Error::internal("a kernel without settings is settled"))
    }

    /// The dimension of an input that an open dimension of an output always is (`Operator::dim_from`).
    fn dim_from(&self, _inputs: &[Desc], _output: usize, _dim: usize) -> [Option<(usize, usize)>; 2] {
        [None; 2]
    }

    /// The step that it is at the end of the kernel that makes its input `position`, for a compile that joins the two.
    fn as_epilogue(&self, _inputs: &[Desc], _position: usize) -> Option<EpilogueStep> {
        None
    }

    /// A kernel that does the same for these inputs, and then one step more, with the bits that the step makes of the
    /// result.
    fn with_epilogue(&self, _step: EpilogueStep, _inputs: &[Desc]) -> Option<Arc<dyn Kernel>> {
        None
    }

    /// Whether it begins what is done elsewhere, and returns (`Halves::begin`). Its inputs, and the places of its
    /// results, are wanted behind one another in memory.
    fn is_first_half(&self) -> bool {
        false
    }

    /// The input whose memory this output takes over, if that can be; `None`: the first one that can be.
    fn takes_over(&self, _output: usize) -> Option<usize> {
        None
    }

    /// Its calls in a graph begin one after the other, in the order in which they were added, with those of kernels
    /// that have one of the same numbers.
    fn orders(&self) -> [Option<u64>; 2] {
        [None; 2]
    }

    /// Whether all ranks take part in it.
    fn is_collective(&self) -> bool {
        false
    }

    /// The same kernel for a place in a program.
    fn inside(&self, _place: &ProgramPlace<'_>) -> Option<Arc<dyn Kernel>> {
        None
    }

    /// The two kernels that a graph has in its place: one that begins the work, and one that ends it later.
    fn halves(&self) -> Option<Halves> {
        None
    }

    /// Told how each run ends that has this kernel in its program, and of a stream's call that never begins.
    fn listeners(&self) -> &[Arc<dyn RunListener>] {
        &[]
    }

    /// The kernel as a type of its room's.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// The same kernel with the objects that it names resolved, for a program: its calls then use pointers. `None` if
    /// it names nothing.
    fn resolve(&self) -> Result<Option<Arc<dyn Kernel>>> {
        Ok(None)
    }

    /// The same kernel with what it can prepare of inputs that are the same in each call, for a program. `constants`
    /// has these, and None for the others; `forms` what other kernels of the program made of them. `None` if there is
    /// nothing to prepare.
    fn prepared(
        &self,
        _inputs: &[Desc],
        _constants: &[Option<Bytes<'_>>],
        _forms: &mut PreparedForms,
    ) -> Result<Option<Arc<dyn Kernel>>> {
        Ok(None)
    }

    /// Whether its calls on a device are issued by `issuer` instead of launching a kernel that the device has.
    fn is_issued(&self) -> bool {
        false
    }

    /// The issuer of its calls on a device. Names are resolved now: for a program once, for a stream at each call.
    fn issuer(&self) -> Result<Option<Arc<dyn Issuer>>> {
        Ok(None)
    }

    /// Whether inputs and outputs may have dimensions known only at run time: `infer` then accepts and returns
    /// descriptors with open dimensions (-1), and `compute` allocates each open output (`Outputs::allocate`).
    fn is_open(&self) -> bool {
        false
    }

    /// Executes a call. Inputs (`KernelContext::input`) and outputs have the descriptors of `infer`'s arguments and
    /// result. May run on any thread, several calls at once.
    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()>;

    /// The same as a plain C function, for frequent callers.
    fn call(&self) -> Option<KernelCall> {
        None
    }

    /// Whether the host can execute it. If not, only a device can, and `compute` must not be called.
    fn is_on_host(&self) -> bool {
        true
    }

    /// The engine that executes it, "cuda:0", if not that of the calling host.
    fn engine(&self) -> Option<&str> {
        None
    }

    /// Whether `compute` may block its thread, so that no worker must run it.
    fn may_block(&self) -> bool {
        false
    }

    /// The pool whose thread calls it, regardless of the run's pool. `None`: the run's.
    fn launcher(&self) -> Option<&Ref<ThreadPool>> {
        None
    }

    /// Whether a call continues after its start has returned (`start`), and `compute` must not be called.
    fn is_async(&self) -> bool {
        false
    }

    /// Begins the work of an asynchronous kernel. The context stays valid until `done` is completed, which may happen
    /// on any thread, and before this returns. An error means that the work was not begun: `done` is then not
    /// completed.
    fn start(&self, context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()> {
        done.done(self.compute(context, outputs))
    }
}

/// A kernel that begins its work in one node, and ends it in another one.
pub struct Halves {
    /// Takes the inputs, and gives a ticket, one s64, and the places of the outputs. It has the effects of the whole.
    /// Its inputs and places are the operation's until `end` is over.
    pub begin: Arc<dyn Kernel>,
    /// Takes the places, the ticket and the inputs, and gives the outputs, where the places are if that can be.
    pub end: Arc<dyn Kernel>,
}

/// An object that must know how runs end. A run inside of a node belongs to the run around it, and has no end of its
/// own.
pub trait RunListener: Send + Sync {
    /// A run is about to end well: an error has it fail. `run` is its number (`Stop::run`).
    fn run_ends(&self, run: usize) -> Result<()>;

    /// A run is over. With `failure` it has failed, and may have left out calls that the listener must know of. 0 is
    /// the number of what has never begun: a run, or a call of a stream's.
    fn run_ended(&self, run: usize, failure: Option<&Error>);

    /// Whether the host's tensors get the outputs of a run when it has ended well, and nothing before.
    fn holds_outputs(&self) -> bool;
}

/// A host function without tensors: a piece of a stream's work, or a node of a graph.
pub trait Task: Send + Sync {
    fn run(&self) -> Result<()>;

    /// The same as a plain C function, for frequent callers.
    fn call(&self) -> Option<HostCall> {
        None
    }

    /// From now on the task owns its argument, and releases it when it dies. Called once the task was accepted.
    fn adopt(&self) {}
}
