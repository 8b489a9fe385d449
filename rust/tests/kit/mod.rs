//! Pools of every kind, tensors and numbers for the tests.
#![allow(dead_code, reason = "no test uses all of it")]

use std::sync::{Arc, Condvar, Mutex};
use weir::threadpool::{Pool, Task};
use weir::{Engine, EngineKind, Result, Tensor, TensorDesc, ThreadPool};

/// Threads that take the task which came last.
struct Lifo(Arc<(Mutex<Stack>, Condvar)>);

#[derive(Default)]
struct Stack {
    tasks: Vec<Task>,
    closed: bool,
}

impl Lifo {
    fn start(threads: usize) -> Lifo {
        let shared = Arc::<(Mutex<Stack>, Condvar)>::default();
        for _ in 0..threads {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                let (stack, changed) = &*shared;
                loop {
                    let waits = |stack: &mut Stack| stack.tasks.is_empty() && !stack.closed;
                    let mut stack = changed.wait_while(stack.lock().unwrap(), waits).unwrap();
                    let Some(task) = stack.tasks.pop() else { return };
                    drop(stack);
                    task.run();
                }
            });
        }
        Lifo(shared)
    }
}

impl Pool for Lifo {
    fn num_threads(&self) -> usize {
        2
    }
    fn schedule(&self, task: Task) -> std::result::Result<(), Task> {
        self.0.0.lock().unwrap().tasks.push(task);
        self.0.1.notify_one();
        Ok(())
    }
}

impl Drop for Lifo {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().closed = true;
        self.0.1.notify_all();
    }
}

/// Runs each task in the call that schedules it.
struct AtOnce;

impl Pool for AtOnce {
    fn num_threads(&self) -> usize {
        1
    }
    fn schedule(&self, task: Task) -> std::result::Result<(), Task> {
        task.run();
        Ok(())
    }
}

/// Takes nothing.
struct Refusing;

impl Pool for Refusing {
    fn num_threads(&self) -> usize {
        3
    }
}

/// A CPU engine without a pool, and one on each kind of pool.
pub fn engines() -> Vec<Engine> {
    let pools = [
        ThreadPool::inline(),
        ThreadPool::builtin(1),
        ThreadPool::builtin(3),
        ThreadPool::new(Lifo::start(1)),
        ThreadPool::new(Lifo::start(2)),
        ThreadPool::new(AtOnce),
        ThreadPool::new(Refusing),
    ];
    let on = |pool: Result<ThreadPool>| Engine::builder(EngineKind::Cpu).threadpool(&pool.unwrap()).build().unwrap();
    std::iter::once(Engine::cpu().unwrap()).chain(pools.map(on)).collect()
}

/// A pool of so many threads that takes the task which came last.
pub fn lifo(threads: usize) -> ThreadPool {
    ThreadPool::new(Lifo::start(threads)).unwrap()
}

pub fn numbers(engine: &Engine, numbers: &[f32]) -> Tensor {
    Tensor::from_slice(engine, &[numbers.len()], numbers).unwrap()
}

pub fn desc(len: usize) -> TensorDesc {
    TensorDesc::of::<f32>(&[len])
}

/// xorshift: the same numbers for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end
    }
}
