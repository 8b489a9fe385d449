//! What the calling thread is working for: the pools whose tasks, the queues whose turns and the runs whose nodes
//! are on its stack.
//!
//! Used to answer one question: would a wait here block a thread that the work needs? It is never used to find a
//! pool; pools are passed explicitly.
//!
//! Functions of the host's that no work has on the stack, such as a release callback or a node of a run that one thread
//! does alone, are called inside of `call`: it costs less than a frame, and answers the one question whether this is
//! the host's own stack (`is_inside`).

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What a stack frame of weir's works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A task of the pool with this id.
    Pool(u64),
    /// An item of the queue with this id.
    Queue(u64),
    /// A node of the run with this id.
    Run(u64),
    /// A `parallel_for` that this thread has called for more workers of the run with this id.
    Bulk(u64),
    /// A run with this id waits for what this thread helps with, and none of its nodes is on this stack (`Lineage`).
    Ancestor(u64),
    /// More than is remembered (`Lineage`).
    Unknown,
}

thread_local! {
    /// Calls of the host's functions that are on this thread's stack.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Functions of the host's may be called while this lives. By the address, since finding it is most of what this costs.
#[derive(Debug)]
pub struct Call(*const Cell<u32>);

impl Drop for Call {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: of the thread that made it, which this has not left; the cell has no destructor and lives as long as
        // the thread.
        let calls = unsafe { &*self.0 };
        calls.set(calls.get() - 1);
    }
}

/// Functions of the host's are called from here on.
#[inline(always)]
#[must_use]
pub fn calling() -> Call {
    CALLS.with(|calls| {
        calls.set(calls.get() + 1);
        Call(calls)
    })
}

/// Does something in which functions of the host's are called.
#[inline]
pub fn call<R>(f: impl FnOnce() -> R) -> R {
    let _call = calling();
    f()
}

thread_local! {
    /// How often this thread is a device's: its own, or that of somebody who tells of an event.
    static DEVICES: Cell<u32> = const { Cell::new(0) };
}

/// Does something on a thread that a device needs.
pub fn on_device_thread<R>(f: impl FnOnce() -> R) -> R {
    call(|| {
        DEVICES.with(|devices| devices.set(devices.get() + 1));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
        DEVICES.with(|devices| devices.set(devices.get() - 1));
        result.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    })
}

/// Whether a device needs this thread: a wait here may hold up the very thing that is waited for.
pub fn within_device() -> bool {
    DEVICES.with(Cell::get) > 0
}

/// Whether the library has called what this thread does: a wait for everything would wait for itself.
pub fn is_inside() -> bool {
    CALLS.with(Cell::get) > 0 || depth() > 0
}

/// Frames remembered per thread. Deeper ones are counted, and then every question is answered with yes, the safe side.
const DEPTH: usize = 64;

thread_local! {
    static STACK: [Cell<Work>; DEPTH] = const { [const { Cell::new(Work::Pool(0)) }; DEPTH] };
    static TOP: Cell<usize> = const { Cell::new(0) };
}

/// Takes the frame off again when dropped.
#[derive(Debug)]
pub struct Frame(());

/// Remembers that this thread works for `work` from now on.
#[must_use]
pub fn enter(work: Work) -> Frame {
    let _ = TOP.try_with(|top| {
        let depth = top.get();
        if depth < DEPTH {
            let _ = STACK.try_with(|stack| stack[depth].set(work));
        }
        top.set(depth + 1);
    });
    Frame(())
}

impl Drop for Frame {
    fn drop(&mut self) {
        let _ = TOP.try_with(|top| top.set(top.get() - 1));
    }
}

/// What the thread was inside of that began a run or a region: queues and runs. All of it waits for whoever helps, so
/// helpers are inside of it, too.
///
/// Written by who opens, before it is open; read by who has entered.
#[derive(Debug, Default)]
pub struct Lineage {
    len: AtomicUsize,
    ids: [AtomicU64; LINEAGE],
    /// Bit i: number i is a run's, not a queue's.
    runs: AtomicU64,
}

/// Frames that a run or a region remembers. With more of them its helpers do not sleep.
const LINEAGE: usize = 6;

impl Lineage {
    /// Remembers what this thread is inside of. Only while nobody else is inside of what opens.
    #[inline]
    pub fn note(&self) {
        // ORDERING: Relaxed here and in `enter`; opening and entering order them.
        if depth() > 0 || self.len.load(Relaxed) > 0 {
            self.note_frames();
        }
    }

    fn note_frames(&self) {
        let (mut frames, mut len) = ([Work::Unknown; LINEAGE], 0);
        let is_known = each_frame(|frame| {
            let frame = match frame {
                Work::Pool(_) | Work::Bulk(_) => return,
                Work::Run(id) => Work::Ancestor(id),
                Work::Queue(_) | Work::Ancestor(_) => frame,
                Work::Unknown => return len = LINEAGE + 1,
            };
            if !frames.iter().take(len).any(|known| *known == frame) {
                frames.get_mut(len).into_iter().for_each(|place| *place = frame);
                len += 1;
            }
        });
        let mut runs = 0;
        for (i, frame) in frames.iter().enumerate() {
            if let Work::Queue(id) | Work::Ancestor(id) = *frame {
                self.ids[i].store(id, Relaxed);
                runs |= u64::from(matches!(frame, Work::Ancestor(_))) << i;
            }
        }
        self.runs.store(runs, Relaxed);
        self.len.store(if is_known { len } else { LINEAGE + 1 }, Relaxed);
    }

    /// Remembers it for this thread, which helps.
    #[inline]
    #[must_use]
    pub fn enter(&self) -> Frames {
        let len = self.len.load(Relaxed);
        if len > LINEAGE {
            enter(Work::Unknown).leave_open();
            return Frames(1);
        }
        for (i, id) in self.ids.iter().enumerate().take(len) {
            let id = id.load(Relaxed);
            let is_run = self.runs.load(Relaxed) >> i & 1 == 1;
            enter(if is_run { Work::Ancestor(id) } else { Work::Queue(id) }).leave_open();
        }
        Frames(len)
    }
}

/// Takes so many frames off again when dropped.
#[derive(Debug)]
pub struct Frames(usize);

impl Drop for Frames {
    fn drop(&mut self) {
        let _ = TOP.try_with(|top| top.set(top.get() - self.0));
    }
}

impl Frame {
    /// Who has the frame's place in a `Frames` takes it off.
    fn leave_open(self) {
        std::mem::forget(self);
    }
}

/// Shows each frame of this thread; false if there are more than are remembered.
fn each_frame(mut see: impl FnMut(Work)) -> bool {
    let depth = depth();
    let shown = STACK.try_with(|stack| stack.iter().take(depth).for_each(|frame| see(frame.get())));
    depth <= DEPTH && shown.is_ok()
}

/// How many frames of the library's work are on this thread's stack.
pub fn depth() -> usize {
    TOP.try_with(Cell::get).unwrap_or(0)
}

/// Whether this thread is working for `work`.
pub fn within(work: Work) -> bool {
    any(|frame| frame == work)
}

/// Whether what this thread does for the run with this id is to be in a `parallel_for`, and not yet a node.
pub fn within_bulk_of(run: u64) -> bool {
    let depth = TOP.try_with(Cell::get).unwrap_or(0);
    let of_run = |frame: &Cell<Work>| [Work::Run(run), Work::Bulk(run)].contains(&frame.get());
    let innermost = |stack: &[Cell<Work>]| stack.iter().rev().find(|frame| of_run(frame)).map(Cell::get);
    depth <= DEPTH
        && STACK.try_with(|stack| innermost(&stack[..depth])).is_ok_and(|found| found == Some(Work::Bulk(run)))
}

/// Whether this thread is inside a task of any pool.
pub fn within_any_pool() -> bool {
    any(|frame| matches!(frame, Work::Pool(_)))
}

/// Whether this thread is inside an item of any queue.
pub fn within_any_queue() -> bool {
    any(|frame| matches!(frame, Work::Queue(_)))
}

/// Whether this thread is inside a run of the program with this number, which runs carry in the upper half of their ids
/// (0 = none).
pub fn within_runs_of(program: u32) -> bool {
    any(|frame| match frame {
        Work::Run(id) | Work::Ancestor(id) => id >> 32 == u64::from(program),
        frame => frame == Work::Unknown,
    })
}

/// Whether this thread is inside a run of any program with a number.
pub fn within_numbered_run() -> bool {
    any(|frame| match frame {
        Work::Run(id) | Work::Ancestor(id) => id >> 32 != 0,
        frame => frame == Work::Unknown,
    })
}

/// The queues whose items this thread is running.
pub fn queues() -> Vec<u64> {
    let depth = TOP.try_with(Cell::get).unwrap_or(0).min(DEPTH);
    let queue = |frame: &Cell<Work>| match frame.get() {
        Work::Queue(id) => Some(id),
        _ => None,
    };
    STACK.try_with(|stack| stack[..depth].iter().filter_map(queue).collect()).unwrap_or_default()
}

fn any(is: impl Fn(Work) -> bool) -> bool {
    let depth = TOP.try_with(Cell::get).unwrap_or(0);
    depth > DEPTH || STACK.try_with(|stack| stack[..depth].iter().any(|frame| is(frame.get()))).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_end_with_their_scope() {
        assert!(!within(Work::Pool(7)));
        {
            let _outer = enter(Work::Pool(7));
            let _inner = enter(Work::Queue(9));
            assert!(within(Work::Pool(7)) && within(Work::Queue(9)) && !within(Work::Queue(7)));
            assert!(within_any_pool());
        }
        assert!(!within(Work::Pool(7)) && !within_any_pool());
    }

    #[test]
    fn calls_and_frames_are_inside_until_they_end() {
        assert!(!is_inside());
        call(|| {
            assert!(call(is_inside) && is_inside() && depth() == 0);
        });
        assert!(std::panic::catch_unwind(|| call(|| panic!("as planned"))).is_err());
        assert!(!is_inside());
        let frame = enter(Work::Run(1));
        assert!(is_inside());
        drop(frame);
        assert!(!is_inside());
    }

    #[test]
    fn a_node_within_a_bulk_is_a_node() {
        let _run = enter(Work::Run(7));
        assert!(!within_bulk_of(7));
        let _bulk = enter(Work::Bulk(7));
        let _pool = enter(Work::Pool(1));
        assert!(within_bulk_of(7) && !within_bulk_of(8));
        let _again = enter(Work::Run(7));
        assert!(!within_bulk_of(7));
    }

    #[test]
    fn helpers_are_inside_of_what_the_owner_is() {
        let lineage = Lineage::default();
        let ask = || {
            let inside = || {
                let _frames = lineage.enter();
                (within(Work::Queue(7)), within_runs_of(9), within(Work::Unknown), queues())
            };
            std::thread::scope(|scope| scope.spawn(|| (inside(), depth())).join().unwrap())
        };
        lineage.note();
        assert_eq!(ask(), ((false, false, false, vec![]), 0));
        let frames = [Work::Queue(7), Work::Pool(1), Work::Run(9 << 32), Work::Queue(7)].map(enter);
        lineage.note();
        assert_eq!(ask(), ((true, true, false, vec![7]), 0));
        let more: Vec<_> = (20..30).map(|id| enter(Work::Queue(id))).collect();
        lineage.note();
        assert_eq!(ask(), ((false, true, true, vec![]), 0));
        drop((frames, more));
        lineage.note();
        assert_eq!(ask(), ((false, false, false, vec![]), 0));
    }

    #[test]
    fn too_deep_a_stack_answers_yes() {
        let _frames: Vec<_> = (0..=DEPTH).map(|_| enter(Work::Run(1))).collect();
        assert!(within(Work::Pool(42)));
    }
}
