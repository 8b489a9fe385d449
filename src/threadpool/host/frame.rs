//! Whether the calling thread is in a call, or in a task, of a checked pool.
//!
//! A task that runs inside a call (`schedule`, `parallel_for`, `help`) runs on a thread that need not be the pool's.
#![forbid(unsafe_code)]

use std::cell::Cell;

#[derive(Clone, Copy)]
struct PoolFrame {
    /// The pool whose function this thread is in; 0 = none.
    call: usize,
    /// Tasks that this call has run here.
    ran: u32,
    /// The pool whose task this thread is in; 0 = none.
    task: usize,
}

thread_local! {
    static FRAME: Cell<PoolFrame> = const { Cell::new(PoolFrame { call: 0, ran: 0, task: 0 }) };
}

/// Restores the previous frame when dropped.
pub(super) struct FrameRestore(PoolFrame);

impl Drop for FrameRestore {
    fn drop(&mut self) {
        FRAME.set(self.0);
    }
}

impl FrameRestore {
    /// Tasks that ran here since the call began.
    pub(super) fn ran(&self) -> u32 {
        FRAME.get().ran
    }
}

/// This thread calls pool `number`.
pub(super) fn call(number: usize) -> FrameRestore {
    let before = FRAME.get();
    FRAME.set(PoolFrame { call: number, ran: 0, ..before });
    FrameRestore(before)
}

/// This thread runs a task of pool `number`, outside of all calls.
pub(super) fn task(number: usize) -> FrameRestore {
    let before = FRAME.get();
    FRAME.set(PoolFrame { call: 0, ran: 0, task: number });
    FrameRestore(before)
}

/// A task of pool `number` arrives; true if inside a call of that pool.
pub(super) fn came(number: usize) -> bool {
    let frame = FRAME.get();
    if frame.call == number {
        FRAME.set(PoolFrame { ran: frame.ran + 1, ..frame });
    }
    frame.call == number
}

/// Whether this thread runs a task of pool `number`.
pub(super) fn in_task(number: usize) -> bool {
    FRAME.get().task == number
}

/// Whether this thread is in a call or a task of any watched pool.
pub(super) fn busy() -> bool {
    let frame = FRAME.get();
    frame.call != 0 || frame.task != 0
}
