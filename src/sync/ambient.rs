//! The work on the calling thread's stack: tasks of pools, items of queues, nodes of runs.
//!
//! Used to answer one question: would a wait here block a thread that the work needs? It is never used to find a
//! pool; pools are passed explicitly.
//!
//! Host functions called outside of any such work (a release callback, a node of a single-threaded run) run inside of
//! `call`. It costs less than a frame, and answers only whether the library is on this stack (`is_inside`).

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The work that a frame on a thread's stack belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActiveWork {
    /// A task of the pool with this id.
    Pool(u64),
    /// An item of the queue with this id.
    Queue(u64),
    /// A node of the run with this id.
    Run(u64),
    /// A `parallel_for` by which this thread asked for more workers of the run with this id.
    Bulk(u64),
    /// The run with this id waits for the work that this thread helps with; none of its nodes is on this stack
    /// (`Lineage`).
    Ancestor(u64),
    /// More frames than are remembered (`Lineage`).
    Unknown,
}

thread_local! {
    /// Calls of host functions on this thread's stack.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Host functions may be called while this lives. Holds the counter's address: looking it up is most of the cost.
#[derive(Debug)]
pub struct CallingHost(*const Cell<u32>);

impl Drop for CallingHost {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: of the thread that made it, which this has not left; the cell has no destructor and lives as long as
        // the thread.
        let calls = unsafe { &*self.0 };
        calls.set(calls.get() - 1);
    }
}

/// Host functions may be called from here on.
#[inline(always)]
#[must_use]
pub fn calling() -> CallingHost {
    CALLS.with(|calls| {
        calls.set(calls.get() + 1);
        CallingHost(calls)
    })
}

/// Runs `f`, which calls host functions.
#[inline]
pub fn call<R>(f: impl FnOnce() -> R) -> R {
    let _call = calling();
    f()
}

thread_local! {
    /// How many times this thread is inside of a device's thread: the device's own, or one that reports an event.
    static DEVICES: Cell<u32> = const { Cell::new(0) };
}

/// Runs `f` on a thread that a device needs.
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
    static STACK: [Cell<ActiveWork>; DEPTH] = const { [const { Cell::new(ActiveWork::Pool(0)) }; DEPTH] };
    static TOP: Cell<usize> = const { Cell::new(0) };
}

/// Takes the frame off again when dropped.
#[derive(Debug)]
pub struct ActiveFrame(());

/// Remembers that this thread works for `work` from now on.
#[must_use]
pub fn enter(work: ActiveWork) -> ActiveFrame {
    let _ = TOP.try_with(|top| {
        let depth = top.get();
        if depth < DEPTH {
            let _ = STACK.try_with(|stack| stack[depth].set(work));
        }
        top.set(depth + 1);
    });
    ActiveFrame(())
}

impl Drop for ActiveFrame {
    fn drop(&mut self) {
        let _ = TOP.try_with(|top| top.set(top.get() - 1));
    }
}

/// The queues and runs on the stack of the thread that began a run or a region. They all wait for the helpers, so
/// helpers count as inside of them, too.
///
/// Written by the opener before the run is open; read by threads that have entered.
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
    /// Remembers the work on this thread's stack. Only before any helper can enter.
    #[inline]
    pub fn note(&self) {
        // ORDERING: Relaxed here and in `enter`; opening and entering order them.
        if depth() > 0 || self.len.load(Relaxed) > 0 {
            self.note_frames();
        }
    }

    fn note_frames(&self) {
        let (mut frames, mut len) = ([ActiveWork::Unknown; LINEAGE], 0);
        let is_known = each_frame(|frame| {
            let frame = match frame {
                ActiveWork::Pool(_) | ActiveWork::Bulk(_) => return,
                ActiveWork::Run(id) => ActiveWork::Ancestor(id),
                ActiveWork::Queue(_) | ActiveWork::Ancestor(_) => frame,
                ActiveWork::Unknown => return len = LINEAGE + 1,
            };
            if !frames.iter().take(len).any(|known| *known == frame) {
                frames.get_mut(len).into_iter().for_each(|place| *place = frame);
                len += 1;
            }
        });
        let mut runs = 0;
        for (i, frame) in frames.iter().enumerate() {
            if let ActiveWork::Queue(id) | ActiveWork::Ancestor(id) = *frame {
                self.ids[i].store(id, Relaxed);
                runs |= u64::from(matches!(frame, ActiveWork::Ancestor(_))) << i;
            }
        }
        self.runs.store(runs, Relaxed);
        self.len.store(if is_known { len } else { LINEAGE + 1 }, Relaxed);
    }

    /// Whether the run with this id is among them, as far as is known. For a thread that has entered.
    pub fn has_run(&self, id: u64) -> bool {
        let (len, runs) = (self.len.load(Relaxed), self.runs.load(Relaxed));
        len <= LINEAGE && (0..len).any(|i| runs >> i & 1 == 1 && self.ids[i].load(Relaxed) == id)
    }

    /// Puts the remembered frames on the stack of this thread, a helper.
    #[inline]
    #[must_use]
    pub fn enter(&self) -> InheritedFrames {
        let len = self.len.load(Relaxed);
        if len > LINEAGE {
            enter(ActiveWork::Unknown).leave_open();
            return InheritedFrames(1);
        }
        for (i, id) in self.ids.iter().enumerate().take(len) {
            let id = id.load(Relaxed);
            let is_run = self.runs.load(Relaxed) >> i & 1 == 1;
            enter(if is_run { ActiveWork::Ancestor(id) } else { ActiveWork::Queue(id) }).leave_open();
        }
        InheritedFrames(len)
    }
}

/// Takes so many frames off again when dropped.
#[derive(Debug)]
pub struct InheritedFrames(usize);

impl Drop for InheritedFrames {
    fn drop(&mut self) {
        let _ = TOP.try_with(|top| top.set(top.get() - self.0));
    }
}

impl ActiveFrame {
    /// Left on the stack; the `InheritedFrames` that holds its position takes it off.
    fn leave_open(self) {
        std::mem::forget(self);
    }
}

/// Shows each frame of this thread; false if there are more than are remembered.
fn each_frame(mut see: impl FnMut(ActiveWork)) -> bool {
    let depth = depth();
    let shown = STACK.try_with(|stack| stack.iter().take(depth).for_each(|frame| see(frame.get())));
    depth <= DEPTH && shown.is_ok()
}

/// How many frames of the library's work are on this thread's stack.
pub fn depth() -> usize {
    TOP.try_with(Cell::get).unwrap_or(0)
}

/// Whether this thread is working for `work`.
pub fn within(work: ActiveWork) -> bool {
    any(|frame| frame == work)
}

/// Whether this thread's work for the run with this id is inside a `parallel_for`, and not yet inside a node.
pub fn within_bulk_of(run: u64) -> bool {
    let depth = TOP.try_with(Cell::get).unwrap_or(0);
    let of_run = |frame: &Cell<ActiveWork>| [ActiveWork::Run(run), ActiveWork::Bulk(run)].contains(&frame.get());
    let innermost = |stack: &[Cell<ActiveWork>]| stack.iter().rev().find(|frame| of_run(frame)).map(Cell::get);
    depth <= DEPTH
        && STACK.try_with(|stack| innermost(&stack[..depth])).is_ok_and(|found| found == Some(ActiveWork::Bulk(run)))
}

/// Whether this thread is inside a task of any pool.
pub fn within_any_pool() -> bool {
    any(|frame| matches!(frame, ActiveWork::Pool(_)))
}

/// Whether this thread is inside an item of any queue.
pub fn within_any_queue() -> bool {
    any(|frame| matches!(frame, ActiveWork::Queue(_)))
}

/// Whether this thread is inside a run of the program with this number, which runs carry in the upper half of their ids
/// (0 = none).
pub fn within_runs_of(program: u32) -> bool {
    any(|frame| match frame {
        ActiveWork::Run(id) | ActiveWork::Ancestor(id) => id >> 32 == u64::from(program),
        frame => frame == ActiveWork::Unknown,
    })
}

/// Whether this thread is inside a run of any program with a number.
pub fn within_numbered_run() -> bool {
    any(|frame| match frame {
        ActiveWork::Run(id) | ActiveWork::Ancestor(id) => id >> 32 != 0,
        frame => frame == ActiveWork::Unknown,
    })
}

/// The queues whose items this thread is running.
pub fn queues() -> Vec<u64> {
    let depth = TOP.try_with(Cell::get).unwrap_or(0).min(DEPTH);
    let queue = |frame: &Cell<ActiveWork>| match frame.get() {
        ActiveWork::Queue(id) => Some(id),
        _ => None,
    };
    STACK.try_with(|stack| stack[..depth].iter().filter_map(queue).collect()).unwrap_or_default()
}

fn any(is: impl Fn(ActiveWork) -> bool) -> bool {
    let depth = TOP.try_with(Cell::get).unwrap_or(0);
    depth > DEPTH || STACK.try_with(|stack| stack[..depth].iter().any(|frame| is(frame.get()))).unwrap_or(false)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn frames_end_with_their_scope() {
        assert!(!within(ActiveWork::Pool(7)));
        {
            let _outer = enter(ActiveWork::Pool(7));
            let _inner = enter(ActiveWork::Queue(9));
            assert!(within(ActiveWork::Pool(7)) && within(ActiveWork::Queue(9)) && !within(ActiveWork::Queue(7)));
            assert!(within_any_pool());
        }
        assert!(!within(ActiveWork::Pool(7)) && !within_any_pool());
    }

    #[test]
    fn calls_and_frames_are_inside_until_they_end() {
        assert!(!is_inside());
        call(|| {
            assert!(call(is_inside) && is_inside() && depth() == 0);
        });
        assert!(std::panic::catch_unwind(|| call(|| panic!("as planned"))).is_err());
        assert!(!is_inside());
        let frame = enter(ActiveWork::Run(1));
        assert!(is_inside());
        drop(frame);
        assert!(!is_inside());
    }

    #[test]
    fn a_node_within_a_bulk_is_a_node() {
        let _run = enter(ActiveWork::Run(7));
        assert!(!within_bulk_of(7));
        let _bulk = enter(ActiveWork::Bulk(7));
        let _pool = enter(ActiveWork::Pool(1));
        assert!(within_bulk_of(7) && !within_bulk_of(8));
        let _again = enter(ActiveWork::Run(7));
        assert!(!within_bulk_of(7));
    }

    #[test]
    fn helpers_are_inside_of_what_the_owner_is() {
        let lineage = Lineage::default();
        let ask = || {
            let inside = || {
                let _frames = lineage.enter();
                (within(ActiveWork::Queue(7)), within_runs_of(9), within(ActiveWork::Unknown), queues())
            };
            std::thread::scope(|scope| scope.spawn(|| (inside(), depth())).join().unwrap())
        };
        lineage.note();
        assert_eq!(ask(), ((false, false, false, vec![]), 0));
        let frames =
            [ActiveWork::Queue(7), ActiveWork::Pool(1), ActiveWork::Run(9 << 32), ActiveWork::Queue(7)].map(enter);
        lineage.note();
        assert_eq!(ask(), ((true, true, false, vec![7]), 0));
        let more: Vec<_> = (20..30).map(|id| enter(ActiveWork::Queue(id))).collect();
        lineage.note();
        assert_eq!(ask(), ((false, true, true, vec![]), 0));
        drop((frames, more));
        lineage.note();
        assert_eq!(ask(), ((false, false, false, vec![]), 0));
    }

    #[test]
    fn too_deep_a_stack_answers_yes() {
        let _frames: Vec<_> = (0..=DEPTH).map(|_| enter(ActiveWork::Run(1))).collect();
        assert!(within(ActiveWork::Pool(42)));
    }
}
