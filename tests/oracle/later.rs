//! Leaves that are done later than their calls, and the threads that see to it.

use super::leaves::{Leaf, see};
use super::ops;
use super::pools;
use super::probe::failure;
use super::spec::Manner;
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::time::{Duration, Instant};
use weir_core::base::{Desc, Ref, Result};
use weir_core::kernel::{Completion, Kernel, KernelContext, Outputs};
use weir_core::threadpool::ThreadPool;

pub type Job = Box<dyn FnOnce() + Send>;

/// Threads that do what they are told, some time later, in whatever order.
#[derive(Default)]
struct Desk {
    jobs: Mutex<Vec<(Instant, Job)>>,
    changed: Condvar,
}

const CLERKS: usize = 2;

impl Desk {
    fn work(&self) {
        let mut jobs = self.jobs.lock().unwrap();
        loop {
            let now = Instant::now();
            if let Some(due) = jobs.iter().rposition(|(due, _)| *due <= now) {
                let (_, job) = jobs.swap_remove(due);
                drop(jobs);
                job();
                jobs = self.jobs.lock().unwrap();
                continue;
            }
            let pause = jobs.iter().map(|(due, _)| *due - now).min();
            jobs = match pause {
                Some(pause) => self.changed.wait_timeout(jobs, pause).unwrap().0,
                None => self.changed.wait(jobs).unwrap(),
            };
        }
    }
}

/// Does this so much later, in a thread that belongs to nobody.
pub fn after(pause: Duration, job: Job) {
    static DESK: LazyLock<Arc<Desk>> = LazyLock::new(|| {
        let desk = Arc::new(Desk::default());
        for _ in 0..CLERKS {
            let desk = Arc::clone(&desk);
            std::thread::spawn(move || desk.work());
        }
        desk
    });
    DESK.jobs.lock().unwrap().push((Instant::now() + pause, job));
    DESK.changed.notify_one();
}

/// Runs the kernels that may block.
pub fn blocking_pool() -> Ref<ThreadPool> {
    static POOL: LazyLock<Ref<ThreadPool>> = LazyLock::new(|| pools::named("", 2));
    Ref::clone(&POOL)
}

/// A leaf that is done as its manner says.
pub struct Deferred {
    pub leaf: Arc<Leaf>,
    pub manner: Manner,
}

/// A context that stays until the call is done.
struct Lasting(*const KernelContext<'static>);

// SAFETY: a context may be used from any thread.
unsafe impl Send for Lasting {}

impl Lasting {
    /// # Safety
    /// The call is not done when this is used.
    unsafe fn of(context: &KernelContext<'_>) -> Lasting {
        Lasting(std::ptr::from_ref(context).cast())
    }

    fn get(&self) -> &KernelContext<'static> {
        // SAFETY: as promised to `of`.
        unsafe { &*self.0 }
    }
}

impl Kernel for Deferred {
    fn name(&self) -> &str {
        "deferred"
    }
    fn num_inputs(&self) -> usize {
        self.leaf.num_inputs()
    }
    fn num_outputs(&self) -> usize {
        self.leaf.num_outputs()
    }
    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        self.leaf.infer(inputs)
    }
    fn cost_ns(&self, inputs: &[Desc], outputs: &[Desc]) -> u64 {
        self.leaf.cost_ns(inputs, outputs)
    }
    fn in_place(&self) -> bool {
        self.leaf.in_place()
    }
    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        self.leaf.compute(context, outputs)
    }
    fn may_block(&self) -> bool {
        self.manner == Manner::Blocking
    }
    fn is_async(&self) -> bool {
        self.manner != Manner::Blocking
    }

    fn start(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let leaf = Arc::clone(&self.leaf);
        let inputs: Vec<Vec<i32>> =
            context.inputs().iter().zip(&leaf.inputs).map(|(view, &kind)| see(view, kind)).collect();
        let fails = leaf.board.begin(leaf.id, ops::sight(&inputs));
        if fails && leaf.id.is_multiple_of(2) {
            // Not begun at all.
            return Err(failure());
        }
        let (id, board) = (leaf.id, Arc::clone(&leaf.board));
        // SAFETY: used before `done` is told.
        let context = unsafe { Lasting::of(context) };
        let job: Job = Box::new(move || {
            // SAFETY: nothing was done with what was given with the call, and the call goes on until `done` is told.
            let mut outputs = unsafe { context.get().outputs() };
            let result = if fails { Err(failure()) } else { leaf.work(context.get(), &mut outputs, &inputs) };
            leaf.board.end(leaf.id);
            done.done(result).expect("the call was not completed before");
            assert!(done.done(Ok(())).is_err(), "{id} completes twice");
        });
        match self.manner {
            Manner::Now | Manner::AtOnce | Manner::Blocking => job(),
            Manner::Later => after(Duration::from_micros(id as u64 % 4 * 5), job),
            Manner::ByAnother => {
                board.leave_to_another(job);
                after(Duration::from_micros(20), Box::new(move || board.end_another()));
            }
        }
        Ok(())
    }
}
