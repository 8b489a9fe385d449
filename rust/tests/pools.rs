//! Regions on pools written in Rust, well behaved and not: each item once, and the pool dropped once.

mod common;

use common::{Threads, Way};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use weir::ThreadPool;
use weir::threadpool::{Features, Pool, Task, vtable};

const WAYS: [Way; 7] = [Way::Queue, Way::Refuse, Way::Drop, Way::Panic, Way::QueueAndPanic, Way::Swap, Way::TakeOne];

fn region(pool: &ThreadPool, n: usize, depth: u32) {
    let items: Vec<AtomicU32> = (0..n).map(|_| AtomicU32::new(0)).collect();
    let slots = pool.num_threads().unwrap() + 1;
    pool.parallel_for(n, 100_000.0, |range, slot| {
        assert!(slot < slots);
        for i in range {
            items[i].fetch_add(1, Relaxed);
        }
        if depth > 0 {
            region(pool, 7, depth - 1);
        }
    })
    .unwrap();
    for item in &items {
        assert_eq!(item.load(Relaxed), 1);
    }
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not come true");
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Runs regions on it, from several threads too, and waits until weir has dropped it.
fn exercise(pool: Threads) {
    let dropped = Arc::clone(&pool.dropped);
    let pool = ThreadPool::new(pool).unwrap();
    for n in [0, 1, 2, 3, 64, 1000] {
        region(&pool, n, 0);
    }
    region(&pool, 9, 2);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..50).for_each(|_| region(&pool, 100, 1)));
        }
    });
    drop(pool.clone());
    drop(pool);
    // The last closure may have been on its way out: then the next call of weir drops the pool.
    eventually("the pool's end", || {
        drop(ThreadPool::new(Nothing).map(|_| ()));
        *dropped.lock().unwrap() > 0
    });
    assert_eq!(*dropped.lock().unwrap(), 1);
}

/// A pool that refuses everything.
struct Nothing;

impl Pool for Nothing {
    fn num_threads(&self) -> usize {
        0
    }
}

#[test]
fn pools_that_take_single_tasks() {
    for way in WAYS {
        for threads in [1, 3] {
            // A pool that keeps a task keeps itself: weir drops no pool with tasks.
            if way != Way::Swap {
                exercise(Threads::new(way, Features::default(), threads));
            }
        }
    }
}

#[test]
fn pools_that_take_loops() {
    let base = Features { schedule: false, parallel_for: true, asynchronous: true, ..Features::default() };
    for way in WAYS {
        exercise(Threads::new(way, base, 2));
    }
    // A parallel_for that should wait and does not is waited for.
    for way in WAYS {
        exercise(Threads::new(way, Features { asynchronous: false, ..base }, 2));
    }
    // A loop that is given up in part runs in its caller.
    for way in [Way::Drop, Way::Refuse, Way::Panic] {
        exercise(Threads::new(way, Features { asynchronous: false, nested: true, ..base }, 2));
    }
}

#[test]
fn a_task_that_comes_back_late_is_not_lost() {
    let pool = ThreadPool::new(Threads::new(Way::Swap, Features::default(), 2)).unwrap();
    for _ in 0..100 {
        region(&pool, 100, 1);
    }
}

#[test]
fn a_panic_in_the_body_goes_on_in_the_caller() {
    let pool = ThreadPool::new(Threads::new(Way::Queue, Features::default(), 2)).unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| pool.parallel_for(100, 100_000.0, |_, _| panic!("in a piece"))));
    assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"in a piece"));
    region(&pool, 100, 1);
}

#[test]
fn a_pool_without_a_way_in_is_refused_and_dropped() {
    let neither = Features { schedule: false, ..Features::default() };
    let pool = Threads::new(Way::Queue, neither, 1);
    let dropped = Arc::clone(&pool.dropped);
    let error = ThreadPool::new(pool).unwrap_err();
    assert!(error.message().contains("schedule"), "{error}");
    assert!(error.to_string().contains("INVALID_ARGUMENT"), "{error}");
    assert_eq!(*dropped.lock().unwrap(), 1);
}

/// Every answer is a panic.
struct Panicking;

impl Pool for Panicking {
    fn num_threads(&self) -> usize {
        panic!("num_threads")
    }
    fn schedule(&self, _task: Task) -> Result<(), Task> {
        panic!("schedule")
    }
    fn features(&self) -> Features {
        Features { in_parallel: true, thread_index: true, help: true, max_threads: true, ..Features::default() }
    }
    fn in_parallel(&self) -> bool {
        panic!("in_parallel")
    }
    fn thread_index(&self) -> Option<usize> {
        panic!("thread_index")
    }
    fn help(&self) -> bool {
        panic!("help")
    }
    fn max_threads(&self) -> usize {
        panic!("max_threads")
    }
}

impl Drop for Panicking {
    fn drop(&mut self) {
        panic!("drop");
    }
}

#[test]
fn panics_of_a_pool_stay_in_it() {
    let pool = ThreadPool::new(Panicking).unwrap();
    assert_eq!(pool.num_threads().unwrap(), 1);
    assert!(!pool.in_parallel().unwrap());
    region(&pool, 100, 2);
    let (table, ctx) = vtable(Panicking);
    // SAFETY: the functions of the vtable with their context, which is released once.
    unsafe {
        assert_eq!(table.max_threads.unwrap()(ctx), 1);
        assert_eq!(table.in_parallel.unwrap()(ctx), 0);
        assert_eq!(table.thread_index.unwrap()(ctx), -1);
        assert_eq!(table.help.unwrap()(ctx), 0);
        table.release.unwrap()(ctx);
    }
}

unsafe extern "C" fn count(arg: *mut std::ffi::c_void, i: i32) {
    // SAFETY: the tests below pass their counters.
    let runs = unsafe { &*arg.cast::<[AtomicUsize; 4]>() };
    runs[usize::try_from(i).unwrap()].fetch_add(1, SeqCst);
}

/// However a pool treats a task: what the vtable accepts runs once, and what it refuses never.
#[test]
fn accepted_runs_once_and_refused_never() {
    for way in WAYS {
        let features = Features { parallel_for: true, asynchronous: true, ..Features::default() };
        let (table, ctx) = vtable(Threads::new(way, features, 2));
        let single = [const { AtomicUsize::new(0) }; 4];
        let looped = [const { AtomicUsize::new(0) }; 4];
        let (single_arg, looped_arg) = ((&raw const single).cast_mut().cast(), (&raw const looped).cast_mut().cast());
        // SAFETY: the functions of the vtable with their context; the counters outlive the pool, which ends here.
        let accepted = unsafe {
            let answers = [
                table.schedule.unwrap()(ctx, Some(count), single_arg, std::ptr::null()),
                table.parallel_for.unwrap()(ctx, 4, Some(count), looped_arg),
            ];
            table.release.unwrap()(ctx);
            answers.map(|answer| answer == 0)
        };
        assert_eq!(accepted, [way != Way::Refuse; 2], "{way:?}");
        assert_eq!(single.map(|n| n.into_inner()), [usize::from(accepted[0]), 0, 0, 0], "{way:?}");
        assert_eq!(looped.map(|n| n.into_inner()), [usize::from(accepted[1]); 4], "{way:?}");
    }
}

/// Weir relies on a `parallel_for` that is not asynchronous: its tasks use what its caller has.
#[test]
fn a_loop_that_returns_too_early_is_waited_for() {
    for way in WAYS {
        let features = Features { parallel_for: true, ..Features::default() };
        let (table, ctx) = vtable(Threads::new(way, features, 2));
        for _ in 0..100 {
            let runs = [const { AtomicUsize::new(0) }; 4];
            let arg = (&raw const runs).cast_mut().cast();
            // SAFETY: the function of the vtable with its context; the counters live until it has returned.
            let status = unsafe { table.parallel_for.unwrap()(ctx, 4, Some(count), arg) };
            let expected = if way == Way::Refuse { (1, 0) } else { (0, 1) };
            assert_eq!(status, expected.0, "{way:?}");
            assert_eq!(runs.map(|n| n.into_inner()), [expected.1; 4], "{way:?}");
        }
        // SAFETY: once.
        unsafe { table.release.unwrap()(ctx) };
    }
}

/// A pool that keeps the tasks beyond its end.
#[test]
fn tasks_that_outlive_their_pool_are_waited_for() {
    struct Keeping(std::sync::mpsc::Sender<weir::threadpool::Tasks>);
    impl Pool for Keeping {
        fn num_threads(&self) -> usize {
            2
        }
        fn features(&self) -> Features {
            Features { schedule: false, parallel_for: true, ..Features::default() }
        }
        fn parallel_for(&self, tasks: weir::threadpool::Tasks) -> Result<(), weir::threadpool::Tasks> {
            self.0.send(tasks).map_err(|back| back.0)
        }
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    let late = std::thread::spawn(move || {
        for tasks in receiver {
            std::thread::sleep(Duration::from_millis(1));
            drop(tasks);
        }
    });
    for _ in 0..20 {
        let pool = ThreadPool::new(Keeping(sender.clone())).unwrap();
        region(&pool, 100, 0);
    }
    drop(sender);
    drop(ThreadPool::new(Nothing).map(|_| ())); // the pools end with the next call of weir, if not before
    late.join().unwrap();
}

#[test]
fn hints_arrive() {
    struct Seen(Arc<Mutex<Vec<u64>>>);
    impl Pool for Seen {
        fn num_threads(&self) -> usize {
            1
        }
        fn schedule(&self, task: Task) -> Result<(), Task> {
            self.0.lock().unwrap().push(task.hint().cost_ns);
            Err(task)
        }
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let pool = ThreadPool::new(Seen(Arc::clone(&seen))).unwrap();
    region(&pool, 100, 0);
    let seen = seen.lock().unwrap();
    assert!(!seen.is_empty() && seen.iter().all(|&ns| ns >= 100_000), "{seen:?}");
}
