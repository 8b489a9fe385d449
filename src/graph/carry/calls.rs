//! A state's nodes that complete later. `pending` describes their states.

use crate::base::{Error, Ref, Result};
use crate::graph::plan::Plan;
use crate::kernel::{Attached, Completion, Frame, Kept, KernelContext, Pending, Scratch, Stop};
use crate::memory::{View, heap};
use crate::stream::Queue;
use crate::sync::{DrainLock, EventCount, Mailbox, Mutex, Returns};
use crate::threadpool::{Job, ThreadPool};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// One node's calls, one after the other.
pub(in crate::graph) struct NodeCall {
    pub pending: Pending,
    pub context: KernelContext<'static>,
    /// For a kernel that may block, or that has a thread of its own.
    pub chain: Option<Arc<CallChain>>,
    /// In this run. ORDERING: Relaxed; the node's completion orders it.
    pub has_failed: AtomicBool,
    /// When the last call began, on the library's clock, in a run that measures; else 0. ORDERING: as above.
    pub began_ns: AtomicU64,
}

/// A run that has chained calls.
pub(in crate::graph) trait OnChain: Send + Sync {
    /// Computes call `call`, whose completion has this number.
    fn compute_chained(&self, call: u32, done: usize);
}

/// A kernel on its way to its pool: for the run it is one that completes later.
pub(in crate::graph) struct CallChain {
    pub call: u32,
    /// The call and its completion, until a thread begins it: one of the pool, or one that waits for the run.
    pub handed: Mailbox<(Arc<dyn OnChain>, usize)>,
    /// When it was handed over. ORDERING: Relaxed; `handed` orders it, and a stale read only means a later claim.
    pub since_ns: AtomicU64,
}

impl CallChain {
    /// Makes the call; false if another thread has begun it.
    pub fn begin(&self) -> bool {
        let handed = self.handed.take();
        let is_mine = handed.is_some();
        if let Some((state, done)) = handed {
            state.compute_chained(self.call, done);
        }
        is_mine
    }
}

impl Job for CallChain {
    /// It may come late, for a call that was begun elsewhere: then it begins the next one, or finds none.
    fn run(self: Arc<Self>, _tag: u64, _index: usize, _pool: &Ref<ThreadPool>) {
        self.begin();
    }
}

/// A state's nodes that complete later. Empty for programs without.
pub(in crate::graph) struct Calls {
    pub list: Box<[NodeCall]>,
    pub returns: Returns,
    /// Advanced when the owner, if it sleeps, must look.
    pub news: EventCount,
    /// Whether the owner is a caller that blocks, and no worker of a pool. ORDERING: Relaxed; set before the run is
    /// opened, which publishes it.
    pub has_waiter: AtomicBool,
    /// The owner, if it is a stream.
    pub stream: Mutex<Option<Arc<Queue>>>,
    /// The synchronous stream that the owner, a caller that blocks, has meanwhile.
    pub holds: Mutex<Option<Arc<Queue>>>,
    /// The owner's event count, if it has several runs at once.
    pub together: Mutex<Option<Arc<EventCount>>>,
    /// The owner, if it is a node of another run.
    pub rounds: Rounds,
    /// The same as the state's, shared with the calls' contexts.
    pub stop: Arc<Stop>,
}

impl Calls {
    /// `scratch` gives the memory of the scratch with that number.
    pub fn create(
        plan: &Plan,
        args: &[View],
        scratch: &dyn Fn(u32) -> Scratch,
        frame: Option<&Arc<Frame>>,
    ) -> Result<Calls> {
        let stop = Arc::new(Stop::default());
        let mut list = Vec::new();
        let bytes = plan.calls.len() * size_of::<NodeCall>();
        list.try_reserve_exact(plan.calls.len()).map_err(|_| Error::exhausted("a run's calls", bytes))?;
        for &(kernel, _) in &plan.calls {
            let node = &plan.kernels[kernel as usize];
            let kernel = plan.kernel(kernel);
            let (inputs, outputs) = (&args[node.inputs()], &args[node.outputs()]);
            heap::probe(size_of_val(inputs) + size_of_val(outputs), "a run's calls")?;
            let kept = Kept {
                // The state's views follow its tensors from run to run; `begin_call` updates these.
                args: inputs.iter().chain(outputs).cloned().collect(),
                bounds: [0, inputs.len(), inputs.len() + outputs.len()],
                pool: Mutex::new(None),
                stop: Arc::clone(&stop),
                frame: frame.cloned(),
            };
            // SAFETY: of the state's tensors, as of `RunState::compute_with`, for calls of one node, one after the
            // other.
            let context = unsafe { KernelContext::kept(kept, scratch(node.scratch)) };
            let call = list.len() as u32;
            let chain = (kernel.may_block() || kernel.launcher().is_some())
                .then(|| Arc::new(CallChain { call, handed: Mailbox::default(), since_ns: AtomicU64::new(0) }));
            list.push(NodeCall {
                pending: Pending::new()?,
                context,
                chain,
                has_failed: AtomicBool::new(false),
                began_ns: AtomicU64::new(0),
            });
        }
        Ok(Calls {
            list: list.into_boxed_slice(),
            returns: Returns::new(),
            news: EventCount::new(),
            has_waiter: AtomicBool::new(false),
            stream: Mutex::new(None),
            holds: Mutex::new(None),
            together: Mutex::new(None),
            rounds: Rounds::new(),
            stop,
        })
    }

    /// From here on nothing begins, because of the failure `cause`, if there is one.
    pub fn stop(&self, cause: Option<&Error>) {
        if !self.list.is_empty() {
            self.stop.set_because(cause);
        }
    }

    /// They belong to the run with this number.
    pub fn set_run(&self, run: usize) {
        if !self.list.is_empty() {
            self.stop.set_run(run);
        }
    }

    /// Nodes begin again.
    pub fn go_on(&self) {
        if !self.list.is_empty() {
            self.stop.clear();
        }
    }

    /// Whether one of them was told that the deadline is past.
    pub fn has_told_late(&self) -> bool {
        self.stop.has_told_late()
    }

    /// Sets the calls' deadline; 0 = never.
    pub fn set_deadline(&self, at_ns: u64) {
        if !self.list.is_empty() {
            self.stop.set_deadline(at_ns);
        }
    }
}

/// A program, for a run that is a call of another one.
pub(in crate::graph) trait StateHome: Send + Sync {
    /// Keeps a `RunState` of this program for a later run.
    fn give_back(&self, state: Arc<dyn Any + Send + Sync>);
}

/// The state that the owner needs of a nested run (`inner`).
pub(in crate::graph) struct NestedRun {
    /// Keeps the program alive, and takes the state back.
    pub home: Arc<dyn StateHome>,
    pub attached: Attached<Arc<Stop>>,
    /// The value that the event count of closed runs will have reached at its end.
    pub closed: u64,
}

/// The owner of a run that is a call of another one, in its rounds.
pub(in crate::graph) struct Rounds {
    pub drain_lock: DrainLock<Option<NestedRun>>,
    /// The completion of the round that is over when the owner is told. There while the drain lock is PARKED.
    pub told: Mailbox<Completion>,
}

impl Rounds {
    pub fn new() -> Rounds {
        Rounds { drain_lock: DrainLock::new(None), told: Mailbox::default() }
    }

    /// There is news for the owner. False if the owner need not be called.
    pub fn tell(&self) -> bool {
        if !self.drain_lock.resume() {
            return false;
        }
        if let Some(done) = self.told.take() {
            // The thread that finds the drain lock parked has this completion for itself.
            let _ = done.done(Ok(()));
        }
        true
    }
}
