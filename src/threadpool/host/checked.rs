//! A host's pool with a checker between it and weir (see `checks`).

use super::checks::{Checks, Conduct};
use super::keys::{self, Watched};
use super::record::TaskOwner;
use super::vtable::width;
use super::{HostVtable, PoolLife, RawTask, frame};
use crate::sync::ambient;
use crate::threadpool::backend::Backend;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Weak};

/// Live pools in checking mode.
static GUARDED: AtomicUsize = AtomicUsize::new(0);

/// A checked pool.
#[derive(Debug)]
pub struct Checked {
    checks: Arc<Checks>,
    /// `None` only during the drop.
    host: Option<HostVtable>,
    conduct: Conduct,
}

impl Checked {
    pub fn new(host: HostVtable, conduct: Conduct) -> Checked {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let number = NEXT.fetch_add(1, Relaxed);
        let checks = Arc::new(Checks::new(number, host.calls(), conduct));
        keys::add(number, Arc::downgrade(&checks) as Weak<dyn Watched>);
        if conduct == Conduct::Guard {
            GUARDED.fetch_add(1, Relaxed);
        }
        Checked { checks, host: Some(host), conduct }
    }

    pub fn checks(&self) -> &Arc<Checks> {
        &self.checks
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        if !self.checks.is_released() {
            self.checks.releasing();
            drop(self.host.take());
            self.checks.released();
        }
        if self.conduct == Conduct::Guard {
            GUARDED.fetch_sub(1, Relaxed);
        }
    }
}

impl Backend for Checked {
    fn adopt(&self) {
        self.host.iter().for_each(Backend::adopt);
    }

    fn watch_through(&self, life: &Arc<PoolLife>) {
        self.checks.watch_through(Arc::clone(life));
    }

    /// The pool was closed: tasks that have not begun are dropped.
    fn end(&self) {
        self.checks.take_back(0);
        self.checks.releasing();
        self.host.iter().for_each(Backend::end);
        self.checks.released();
    }

    fn flags(&self) -> u64 {
        self.checks.flags()
    }

    fn num_threads(&self) -> usize {
        width(self.checks.num_threads())
    }

    fn max_threads(&self) -> usize {
        let now = self.num_threads();
        self.checks.max_threads().map_or(now, |max| width(max).max(now))
    }

    fn has_schedule(&self) -> bool {
        self.checks.has_schedule()
    }

    fn schedule(&self, task: RawTask, cost_ns: u64, priority: i32) -> bool {
        let body = Arc::new(move |index| task.run(index));
        !self.checks.is_shut() && self.checks.schedule(body, TaskOwner::Weir, cost_ns, priority)
    }

    fn has_bulk(&self) -> bool {
        self.checks.has_parallel_for()
    }

    fn bulk(&self, n: usize, task: RawTask) -> bool {
        let body = Arc::new(move |index| task.run(index));
        !self.checks.is_shut() && self.checks.parallel_for(n, body, TaskOwner::Weir)
    }

    fn in_parallel(&self) -> bool {
        let by_index = || self.checks.thread_index().is_some_and(|index| index >= 0);
        self.checks.in_parallel().unwrap_or_else(by_index)
    }

    fn knows_its_threads(&self) -> bool {
        self.checks.knows_its_threads()
    }

    fn help(&self) -> bool {
        !self.checks.is_shut() && self.checks.help().0
    }
}

/// Whether any pool is in checking mode.
pub fn any_guarded() -> bool {
    GUARDED.load(Relaxed) > 0
}

/// Looks for tasks that pools in checking mode have lost. Runs them, so it must not be called inside a task.
pub fn sweep() {
    if !any_guarded() || frame::busy() || ambient::within_any_pool() {
        return;
    }
    keys::all().iter().for_each(|pool| pool.sweep());
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::abi::{weir_task_fn, weir_task_hint, weir_threadpool_vtable};
    use crate::base::Ref;
    use crate::base::time::Deadline;
    use crate::sync::Mutex;
    use crate::threadpool::{Job, ThreadPool, ThreadPoolOptions};
    use std::ffi::c_void;
    use std::sync::atomic::AtomicU32;

    /// A pool that keeps what it is given.
    struct Keeper {
        kept: Mutex<Vec<(weir_task_fn, usize)>>,
        in_parallel: Option<unsafe extern "C" fn(*mut c_void) -> i32>,
    }

    unsafe extern "C" fn two(_ctx: *mut c_void) -> i32 {
        2
    }

    unsafe extern "C" fn no(_ctx: *mut c_void) -> i32 {
        0
    }

    unsafe extern "C" fn keep(
        ctx: *mut c_void,
        task: weir_task_fn,
        arg: *mut c_void,
        _hint: *const weir_task_hint,
    ) -> i32 {
        // SAFETY: the context is the keeper, which outlives the pool.
        unsafe { &*ctx.cast_const().cast::<Keeper>() }.kept.lock().push((task, arg.expose_provenance()));
        0
    }

    impl Keeper {
        fn new(in_parallel: Option<unsafe extern "C" fn(*mut c_void) -> i32>) -> Keeper {
            Keeper { kept: Mutex::default(), in_parallel }
        }

        fn pool(&self) -> Ref<ThreadPool> {
            let vtable = weir_threadpool_vtable {
                struct_size: size_of::<weir_threadpool_vtable>(),
                flags: 0,
                num_threads: Some(two),
                parallel_for: None,
                schedule: Some(keep),
                in_parallel: self.in_parallel,
                thread_index: None,
                help: None,
                release: None,
                max_threads: None,
            };
            // SAFETY: the functions do what the contract asks for, but for the end of tasks.
            let host = unsafe { HostVtable::new(vtable, std::ptr::from_ref(self).cast_mut().cast()) }.unwrap();
            ThreadPool::host(host, &ThreadPoolOptions { checking: true, ..ThreadPoolOptions::default() })
        }

        fn run_all(&self) {
            for (task, arg) in std::mem::take(&mut *self.kept.lock()) {
                // SAFETY: kept by `keep`, and run once.
                unsafe { task.unwrap()(std::ptr::with_exposed_provenance_mut(arg), 0) };
            }
        }
    }

    struct Count(AtomicU32);

    impl Job for Count {
        fn run(self: Arc<Self>, _tag: u64, _index: usize, _pool: &Ref<ThreadPool>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    fn sleep_until(deadline: Deadline) -> bool {
        while !deadline.is_past() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        false
    }

    #[test]
    fn a_wait_tells_of_a_pool_that_begins_nothing() {
        for (in_parallel, missing) in [(None, true), (Some(no as unsafe extern "C" fn(*mut c_void) -> i32), false)] {
            let keeper = Keeper::new(in_parallel);
            let pool = keeper.pool();
            let count = Arc::new(Count(AtomicU32::new(0)));
            assert!(pool.spawn(Arc::clone(&count) as Arc<dyn Job>, 0, 0, 0));
            assert!(!pool.watched(Deadline::after(300_000_000), sleep_until));
            assert_eq!(pool.broken_clause(), None, "it is late at most");
            // A second of the clock may pass while the process stands still, and then nobody has looked.
            let wait_once_more = |_| {
                assert!(!pool.watched(Deadline::after(1_500_000_000), sleep_until));
                pool.broken_clause()
            };
            let told = (0..20).find_map(wait_once_more).unwrap();
            assert!(told.starts_with("H9: a wait has slept for 1 s, and the pool has begun none of 1 calls"), "{told}");
            assert_eq!(told.contains("neither in_parallel nor thread_index"), missing, "{told}");
            assert!(pool.intact().is_ok(), "no clause is broken");
            keeper.run_all();
            assert_eq!(count.0.load(Relaxed), 1);
        }
    }
}
