//! The pool for tests: an adversarial but legal host. From a seed it draws whether to refuse a task, run it at once in
//! the caller, or queue it anywhere; its threads take any queued task, and delay some. The same seed gives the same
//! draws; the interleaving of threads is up to the machine.
//!
//! Chapter: Pools for tests.

use crate::abi::*;
use crate::argument::out_ptr;
use crate::base::{Code, Error, Result};
use crate::library::{self, guard, told};
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

const MAX_THREADS: usize = 256;

thread_local! {
    /// The pool (by address) that this thread works for.
    static HOME: Cell<usize> = const { Cell::new(0) };
}

/// A task of weir's: it is called once.
struct Task {
    function: weir_task_fn,
    arg: *mut c_void,
}

// SAFETY: weir's tasks may be called on any thread.
unsafe impl Send for Task {}

impl Task {
    fn run(self) {
        if let Some(function) = self.function {
            // SAFETY: weir gave the function with its argument, and this is the one call.
            unsafe { function(self.arg, 0) };
        }
    }
}

struct SeededPool {
    threads: usize,
    state: Mutex<SeededState>,
    changed: Condvar,
}

struct SeededState {
    random: u64,
    queue: Vec<Task>,
    closing: bool,
}

impl SeededState {
    /// The next draw below `n` (xorshift64*, Marsaglia 2003 and Vigna 2016).
    fn draw(&mut self, n: usize) -> usize {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        ((self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize) % n
    }

    fn take(&mut self) -> Option<Task> {
        if self.queue.is_empty() {
            return None;
        }
        let at = self.draw(self.queue.len());
        Some(self.queue.swap_remove(at))
    }
}

impl SeededPool {
    fn lock(&self) -> MutexGuard<'_, SeededState> {
        self.state.lock()
    }

    fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    fn work(&self) {
        HOME.with(|home| home.set(self.id()));
        let mut state = self.lock();
        loop {
            if let Some(task) = state.take() {
                let pause = state.draw(8);
                drop(state);
                match pause {
                    0 => std::thread::sleep(Duration::from_micros(50)),
                    1 | 2 => std::thread::yield_now(),
                    _ => {}
                }
                task.run();
                state = self.lock();
            } else if state.closing {
                return;
            } else {
                state = self.changed.wait(state);
            }
        }
    }
}

/// The pool behind the context.
///
/// # Safety
/// The context of a pool that was not released.
unsafe fn pool<'a>(ctx: *mut c_void) -> &'a SeededPool {
    // SAFETY: as demanded of the caller; it is the pointer of an Arc.
    unsafe { &*ctx.cast::<SeededPool>() }
}

unsafe extern "C" fn num_threads(ctx: *mut c_void) -> i32 {
    // SAFETY: a call of weir's, with the pool's context.
    unsafe { pool(ctx) }.threads as i32
}

/// 0 if it takes the task.
unsafe extern "C" fn schedule(
    ctx: *mut c_void,
    function: weir_task_fn,
    arg: *mut c_void,
    _hint: *const weir_task_hint,
) -> i32 {
    // SAFETY: as above.
    let pool = unsafe { pool(ctx) };
    let task = Task { function, arg };
    let mut state = pool.lock();
    match state.draw(8) {
        0 => 1,
        1 => {
            drop(state);
            task.run();
            0
        }
        _ => {
            state.queue.push(task);
            drop(state);
            pool.changed.notify_one();
            0
        }
    }
}

unsafe extern "C" fn in_parallel(ctx: *mut c_void) -> i32 {
    i32::from(HOME.try_with(Cell::get).is_ok_and(|home| home == ctx.addr()))
}

unsafe extern "C" fn help(ctx: *mut c_void) -> i32 {
    // SAFETY: as above.
    let task = unsafe { pool(ctx) }.lock().take();
    i32::from(task.is_some_and(|task| {
        task.run();
        true
    }))
}

/// The threads go once they have done what is queued; each holds the pool.
unsafe extern "C" fn release(ctx: *mut c_void) {
    // SAFETY: the reference that `start` gave away, which weir gives back once.
    let pool = unsafe { Arc::from_raw(ctx.cast_const().cast::<SeededPool>()) };
    pool.lock().closing = true;
    pool.changed.notify_all();
}

/// A pool with its functions, for `weir_threadpool_create`. The caller owes it one `release`.
pub fn start(seed: u64, threads: usize) -> Result<(weir_threadpool_vtable, *mut c_void)> {
    // xorshift must not start at 0; the constant spreads small seeds.
    let random = (seed ^ 0x9E37_79B9_7F4A_7C15).max(1);
    let state = SeededState { random, queue: Vec::new(), closing: false };
    let shared = Arc::new(SeededPool { threads, state: Mutex::new(state), changed: Condvar::new() });
    for index in 0..threads {
        let worker = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(format!("weir-seeded-{index}"));
        if let Err(error) = thread.spawn(move || worker.work()) {
            shared.lock().closing = true;
            shared.changed.notify_all();
            let text = format!("cannot start thread {index} of {threads}: {error}");
            return Err(Error::new(Code::ResourceExhausted, text));
        }
    }
    let vtable = weir_threadpool_vtable {
        struct_size: size_of::<weir_threadpool_vtable>(),
        flags: weir_threadpool_flags::WEIR_THREADPOOL_NESTED as u64,
        num_threads: Some(num_threads),
        parallel_for: None,
        schedule: Some(schedule),
        in_parallel: Some(in_parallel),
        thread_index: None,
        help: Some(help),
        release: Some(release),
        max_threads: None,
    };
    Ok((vtable, Arc::into_raw(shared).cast_mut().cast()))
}

/// Creates a pool for tests: `num_threads` threads that run tasks in an order drawn from `seed`, delay some, run some
/// inline in the submitting thread and refuse some. Results must not depend on it.
///
/// Errors: INVALID_ARGUMENT (num_threads outside 1..256); RESOURCE_EXHAUSTED if threads cannot be started.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_create_seeded(
    seed: u64,
    num_threads: i32,
    out_pool: *mut *mut weir_threadpool,
) -> weir_status {
    guard("weir_threadpool_create_seeded", || {
        // SAFETY: the caller's pointer, as documented.
        let out = unsafe { out_ptr(out_pool, "out_pool") }?;
        let threads = usize::try_from(num_threads)
            .ok()
            .filter(|n| (1..=MAX_THREADS).contains(n))
            .ok_or_else(|| Error::invalid(format!("num_threads is {num_threads}, expected 1 to {MAX_THREADS}")))?;
        let (vtable, ctx) = start(seed, threads)?;
        // SAFETY: the functions above keep the contract of a pool.
        let status = unsafe { library::weir_threadpool_create(&raw const vtable, ctx, std::ptr::null(), out) };
        if status != 0 {
            // SAFETY: weir has not taken it.
            unsafe { release(ctx) };
        }
        told(status)
    })
}
