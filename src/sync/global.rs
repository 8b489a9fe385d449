//! Process-wide state under a lock; a child of fork starts with a fresh one.
//!
//! When a process forks, another thread may hold the lock or be half way through a change. That thread does not exist
//! in the child, and the parent's objects are refused there. So the first thread that locks in the child writes the
//! initial value, under a lock that is free. The old value is neither read nor dropped any more.
//!
//! The state says for which process (generation g) the value was made: 2 g + 2 it is made, 2 g + 1 a thread is making
//! it, less than that it belongs to an earlier process, or there is none yet. If the process forks again meanwhile, the
//! making thread is missing in that child, which sees an earlier generation's number.

use super::futex;
use super::lock::{Mutex, MutexGuard};
use crate::base::process;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering::*};

pub struct Global<T> {
    state: AtomicU32,
    initial: fn() -> T,
    value: UnsafeCell<MaybeUninit<Mutex<T>>>,
}

// SAFETY: the value is written by the one thread that has taken the state to `making`, and reached through its mutex
// behind that.
unsafe impl<T: Send> Sync for Global<T> {}

impl<T> Global<T> {
    /// `initial` allocates nothing and cannot fail.
    pub const fn new(initial: fn() -> T) -> Global<T> {
        Global { state: AtomicU32::new(0), initial, value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// As `Mutex::lock`.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let made = 2 * process::generation() + 2;
        // ORDERING: Acquire pairs with the Release in `make`.
        if self.state.load(Acquire) != made {
            self.make(made);
        }
        // SAFETY: made for this process, so nobody writes it as a whole before the next fork, which leaves this thread
        // behind.
        unsafe { (*self.value.get()).assume_init_ref() }.lock()
    }

    #[cold]
    fn make(&self, made: u32) {
        let making = made - 1;
        loop {
            let state = self.state.load(Acquire);
            if state == made {
                return;
            }
            if state == making {
                futex::wait(&self.state, making, None);
            } else if self.state.compare_exchange(state, making, Acquire, Relaxed).is_ok() {
                // SAFETY: this thread alone has taken the state here. The old value belongs to another process, and is
                // not dropped.
                unsafe { (*self.value.get()).write(Mutex::new((self.initial)())) };
                self.state.store(made, Release);
                futex::wake(&self.state, u32::MAX);
                return;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn all_threads_meet_one_value() {
        static GLOBAL: Global<Vec<usize>> = Global::new(Vec::new);
        let push = |i| std::thread::spawn(move || GLOBAL.lock().push(i));
        let threads: Vec<_> = (0..8).map(push).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let mut all = GLOBAL.lock().clone();
        all.sort_unstable();
        assert_eq!(all, (0..8).collect::<Vec<_>>());
    }
}
