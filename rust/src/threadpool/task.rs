//! Work of weir's as values that run once.

use std::ffi::c_void;
use std::iter::FusedIterator;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering::Release};

pub(crate) type TaskFn = unsafe extern "C" fn(*mut c_void, i32);

/// weir's knowledge of a task. It may help to order tasks, and never changes a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// Estimated nanoseconds; 0 = unknown.
    pub cost_ns: u64,
    /// Of the stream that the work came from: below 0 = low, 0 = normal, above 0 = high.
    pub priority: i32,
}

/// One piece of work. It runs exactly once, in any thread: when it is [run](Task::run), or when it is dropped. It never
/// panics and never waits for another task that has not begun.
#[derive(Debug)]
pub struct Task {
    call: TaskFn,
    arg: *mut c_void,
    index: i32,
    hint: Hint,
    /// Counts the tasks that somebody waits for and that have not returned; NULL if nobody does.
    left: *const AtomicUsize,
}

// SAFETY: weir's tasks may run on any thread, and the argument is used for nothing else.
unsafe impl Send for Task {}

impl Task {
    /// # Safety
    /// `call(arg, index)` may be called once, on any thread, and does not unwind.
    pub(crate) unsafe fn new(call: TaskFn, arg: *mut c_void, index: i32, hint: Hint) -> Task {
        Task { call, arg, index, hint, left: std::ptr::null() }
    }

    /// Runs it here.
    pub fn run(self) {
        drop(self);
    }

    /// weir's knowledge of it.
    pub fn hint(&self) -> Hint {
        self.hint
    }

    /// Whether it is this call that the task stands for, or another one that cannot be told from it.
    pub(crate) fn is(&self, call: TaskFn, arg: *mut c_void, index: i32) -> bool {
        std::ptr::fn_addr_eq(self.call, call) && self.arg == arg && self.index == index && self.left.is_null()
    }

    /// Lets go of it unrun: it was refused.
    pub(crate) fn forget(self) {
        let _ = ManuallyDrop::new(self);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: by the contract of `new`; a task is dropped once, and a refused one never (`forget`).
        unsafe { (self.call)(self.arg, self.index) }
        if !self.left.is_null() {
            // SAFETY: by the contract of `Tasks::new` it lives until it is 0, and this is its last use here. ORDERING:
            // Release pairs with the Acquire of who waits.
            unsafe { (*self.left).fetch_sub(1, Release) };
        }
    }
}

/// The tasks of one `parallel_for`, as an iterator. Those that are left when it is dropped run where it is dropped.
#[derive(Debug)]
pub struct Tasks {
    call: TaskFn,
    arg: *mut c_void,
    next: i32,
    end: i32,
    left: *const AtomicUsize,
}

// SAFETY: as for Task.
unsafe impl Send for Tasks {}

impl Tasks {
    /// # Safety
    /// `call(arg, i)` may be called once for each `0 <= i < n`, on any threads, and does not unwind. `left` is NULL, or
    /// counts the tasks that have not returned: it is `n`, and lives until it is 0 or the tasks were forgotten.
    pub(crate) unsafe fn new(call: TaskFn, arg: *mut c_void, n: i32, left: *const AtomicUsize) -> Tasks {
        Tasks { call, arg, next: 0, end: n, left }
    }

    /// Whether none of the `n` tasks of this call was taken.
    pub(crate) fn are_all(&self, call: TaskFn, arg: *mut c_void, n: i32, left: *const AtomicUsize) -> bool {
        let is_call = std::ptr::fn_addr_eq(self.call, call) && self.arg == arg && self.left == left;
        is_call && self.next == 0 && self.end == n
    }

    /// Lets go of them unrun: they were refused.
    pub(crate) fn forget(self) {
        let _ = ManuallyDrop::new(self);
    }
}

impl Iterator for Tasks {
    type Item = Task;

    fn next(&mut self) -> Option<Task> {
        let index = self.next;
        if index >= self.end {
            return None;
        }
        self.next += 1;
        // SAFETY: by the contract of `new`; each index is drawn once.
        let mut task = unsafe { Task::new(self.call, self.arg, index, Hint::default()) };
        task.left = self.left;
        Some(task)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.end - self.next).unwrap_or(0);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Tasks {}
impl FusedIterator for Tasks {}

impl Drop for Tasks {
    fn drop(&mut self) {
        for task in self.by_ref() {
            task.run();
        }
    }
}
