//! The pool for tests: an adversarial but legal host. From a seed it draws whether to refuse a task, run it at once in
//! the caller, or queue it anywhere; its threads take any queued task, and delay some. The same seed gives the same
//! draws; the interleaving of threads is up to the machine.
#![forbid(unsafe_code)]

use super::backend::Backend;
use super::host::RawTask;
use crate::abi::weir_threadpool_flags as F;
use crate::base::{Code, Error, Result};
use crate::sync::{Condvar, Mutex, MutexGuard, thread};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

thread_local! {
    /// The pool (by address) that this thread works for.
    static HOME: Cell<usize> = const { Cell::new(0) };
}

#[derive(Debug)]
pub struct Seeded {
    shared: Arc<SeededShared>,
    threads: usize,
}

#[derive(Debug)]
struct SeededShared {
    state: Mutex<SeededState>,
    changed: Condvar,
}

#[derive(Debug)]
struct SeededState {
    random: u64,
    queue: Vec<RawTask>,
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

    fn take(&mut self) -> Option<RawTask> {
        if self.queue.is_empty() {
            return None;
        }
        let at = self.draw(self.queue.len());
        Some(self.queue.swap_remove(at))
    }
}

impl SeededShared {
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
                task.run(0);
                state = self.lock();
            } else if state.closing {
                return;
            } else {
                state = self.changed.wait(state);
            }
        }
    }
}

impl Seeded {
    pub fn start(seed: u64, threads: usize, group: thread::ThreadGroup) -> Result<Seeded> {
        // xorshift must not start at 0; the constant spreads small seeds.
        let random = (seed ^ 0x9E37_79B9_7F4A_7C15).max(1);
        let state = SeededState { random, queue: Vec::new(), closing: false };
        let shared = Arc::new(SeededShared { state: Mutex::new(state), changed: Condvar::new() });
        let pool = Seeded { shared: Arc::clone(&shared), threads };
        let group = Arc::new(group);
        for index in 0..threads {
            let shared = Arc::clone(&shared);
            thread::spawn(&group, Some(index), move || {
                shared.work();
            })
            .map_err(|error| {
                Error::new(Code::ResourceExhausted, format!("cannot start thread {index} of {threads}: {error}"))
            })?;
        }
        Ok(pool)
    }
}

impl Backend for Seeded {
    fn flags(&self) -> u64 {
        F::WEIR_THREADPOOL_NESTED as u64
    }

    fn num_threads(&self) -> usize {
        self.threads
    }

    fn max_threads(&self) -> usize {
        self.threads
    }

    fn has_schedule(&self) -> bool {
        true
    }

    fn schedule(&self, task: RawTask, _cost_ns: u64, _priority: i32) -> bool {
        let mut state = self.shared.lock();
        match state.draw(8) {
            0 => false,
            1 => {
                drop(state);
                task.run(0);
                true
            }
            _ => {
                state.queue.push(task);
                drop(state);
                self.shared.changed.notify_one();
                true
            }
        }
    }

    fn has_bulk(&self) -> bool {
        false
    }

    fn bulk(&self, _n: usize, _task: RawTask) -> bool {
        false
    }

    fn in_parallel(&self) -> bool {
        HOME.try_with(Cell::get).is_ok_and(|pool| pool == self.shared.id())
    }

    fn may_end_inside(&self) -> bool {
        true
    }

    fn end(&self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
    }

    fn help(&self) -> bool {
        let task = self.shared.lock().take();
        task.is_some_and(|task| {
            task.run(0);
            true
        })
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        self.end();
    }
}
