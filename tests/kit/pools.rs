//! Pools for tests, and the same tests on other pools: WEIR_TEST_POOL says which pool stands in the place of each one
//! that a test asks for with `of`. The values are those of the C tests: `inline`, `one`, `lifo`, `half`, `seeded:<n>`.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use weir_core::abi::{weir_task_fn, weir_task_hint, weir_threadpool_vtable};
use weir_core::base::Ref;
use weir_core::threadpool::{HostVtable, ThreadPool, ThreadPoolOptions};

/// A pool of `threads` threads, or what WEIR_TEST_POOL says.
pub fn of(threads: usize) -> Ref<ThreadPool> {
    named(&std::env::var("WEIR_TEST_POOL").unwrap_or_default(), threads)
}

/// The pool that this value of WEIR_TEST_POOL stands for.
pub fn named(name: &str, threads: usize) -> Ref<ThreadPool> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    match name {
        "" => builtin(threads),
        "inline" => ThreadPool::inline(),
        "one" => builtin(1),
        "lifo" => host(threads, |_| true),
        "half" => host(threads, |offered| offered.is_multiple_of(2)),
        _ => {
            let seed: u64 = name.strip_prefix("seeded:").and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
                panic!("WEIR_TEST_POOL is '{name}', expected inline, one, lifo, half or seeded:<n>")
            });
            seeded(seed * 1_000_003 + NUMBER.fetch_add(1, Relaxed), threads)
        }
    }
}

/// The pool of libweir_testing.
pub fn seeded(seed: u64, threads: usize) -> Ref<ThreadPool> {
    let (functions, ctx) = weir_testing::start_seeded(seed, threads).unwrap_or_else(|error| panic!("{error:?}"));
    // SAFETY: the two types are one source, compiled twice, and the functions keep the contract.
    let vtable = unsafe { HostVtable::new(std::mem::transmute_copy(&functions), ctx) };
    let pool = ThreadPool::host(vtable.unwrap(), &ThreadPoolOptions::default());
    pool.adopt();
    pool
}

fn builtin(threads: usize) -> Ref<ThreadPool> {
    ThreadPool::builtin(&ThreadPoolOptions { num_threads: Some(threads), ..ThreadPoolOptions::default() }).unwrap()
}

/// A host's pool that takes the newest task first, and takes the task offered after `n` others if `accepts(n)`.
struct Host {
    threads: usize,
    accepts: fn(u64) -> bool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    tasks: Vec<(weir_task_fn, usize)>,
    offered: u64,
    ending: bool,
}

impl Host {
    fn work(&self) {
        let mut state = self.state.lock().unwrap();
        loop {
            if let Some((task, arg)) = state.tasks.pop() {
                drop(state);
                // SAFETY: the pair was accepted by `schedule`, and is called once.
                unsafe { task.unwrap()(arg as *mut c_void, 0) };
                state = self.state.lock().unwrap();
            } else if state.ending {
                return;
            } else {
                state = self.changed.wait(state).unwrap();
            }
        }
    }
}

pub fn host(threads: usize, accepts: fn(u64) -> bool) -> Ref<ThreadPool> {
    let host = Arc::new(Host { threads, accepts, state: Mutex::default(), changed: Condvar::new() });
    for _ in 0..threads {
        let host = Arc::clone(&host);
        std::thread::spawn(move || host.work());
    }
    let vtable = weir_threadpool_vtable {
        struct_size: size_of::<weir_threadpool_vtable>(),
        flags: 0,
        num_threads: Some(num_threads),
        parallel_for: None,
        schedule: Some(schedule),
        in_parallel: None,
        thread_index: None,
        help: None,
        release: Some(release),
        max_threads: None,
    };
    // SAFETY: the functions below keep the contract; `release` takes the reference back.
    let pool = ThreadPool::host(
        unsafe { HostVtable::new(vtable, Arc::into_raw(host).cast_mut().cast()) }.unwrap(),
        &ThreadPoolOptions::default(),
    );
    pool.adopt();
    pool
}

/// # Safety
/// `ctx` came from `host` and was not released.
unsafe fn of_context<'a>(ctx: *mut c_void) -> &'a Host {
    // SAFETY: as demanded of the caller.
    unsafe { &*ctx.cast_const().cast() }
}

unsafe extern "C" fn num_threads(ctx: *mut c_void) -> i32 {
    // SAFETY: weir passes the context that it was given.
    unsafe { of_context(ctx) }.threads as i32
}

unsafe extern "C" fn schedule(ctx: *mut c_void, task: weir_task_fn, arg: *mut c_void, _: *const weir_task_hint) -> i32 {
    // SAFETY: weir passes the context that it was given.
    let host = unsafe { of_context(ctx) };
    let mut state = host.state.lock().unwrap();
    let offered = state.offered;
    state.offered += 1;
    if !(host.accepts)(offered) {
        return 1;
    }
    state.tasks.push((task, arg as usize));
    drop(state);
    host.changed.notify_one();
    0
}

unsafe extern "C" fn release(ctx: *mut c_void) {
    // SAFETY: the reference that `host` gave away; released once.
    let host = unsafe { Arc::from_raw(ctx.cast_const().cast::<Host>()) };
    host.state.lock().unwrap().ending = true;
    host.changed.notify_all();
}
