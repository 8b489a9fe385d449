//! What the host has not waited for: operations that nobody knows to be over when a context or the process ends, and
//! pinned memory that the host writes while a copy may still read it.
//!
//! *The end of the process.* What was submitted and never asked for has not run yet, with a seed none of it, so the
//! checker has not seen it. It runs then, all of it, but for functions of the host's: races are found in work that
//! nobody waits for, too.
//!
//! *Pinned memory.* The bytes that a copy reads are kept as they are when it is submitted. They must be the same until
//! the host has waited for the copy, or another operation has written them, which is for the checker. They are looked
//! at whenever a copy is submitted, before an operation runs alone, and when the host learns of something: so a write
//! that changes nothing, and one that is undone in time, is not found.

use crate::abi::Handle;
use crate::access::Accesses;
use crate::call::stop;
use crate::operation::Operation;
use crate::schedule::{Point, Task};
use crate::settings::{OnFind, SETTINGS};
use crate::space;
use crate::world::{DONE, WORK, World, try_lock};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// An operation that uses memory, until the host knows that it is over.
#[derive(Debug)]
struct Open {
    point: Point,
    name: Arc<str>,
    context: Handle,
}

/// Pinned bytes that a copy reads, as they were when it was submitted.
#[derive(Debug)]
struct Watch {
    bytes: Range<u64>,
    before: Vec<u8>,
    point: Point,
    name: Arc<str>,
}

#[derive(Debug, Default)]
pub struct Waited {
    open: Vec<Open>,
    watches: Vec<Watch>,
}

/// The longest copy that is kept, and the longest time that the end of the process takes.
const MOST: u64 = 1 << 20;
const LAST: Duration = Duration::from_secs(5);

static LEAVING: AtomicBool = AtomicBool::new(false);

/// Whether the process ends: its functions are not called any more.
pub fn is_leaving() -> bool {
    LEAVING.load(SeqCst)
}

/// Pinned bytes as they are now; None if they are none.
fn content(bytes: &Range<u64>) -> Option<Vec<u8>> {
    space::look(|space| {
        space.pinned(bytes.start)?;
        let place = space.translate(bytes).ok()?;
        // SAFETY: so many bytes are there; what another thread of the program writes meanwhile is the mistake that is
        // looked for.
        let read = |at: usize| unsafe { place.at.add(at).read_volatile() };
        Some((0..(bytes.end - bytes.start) as usize).map(read).collect())
    })
}

impl World {
    /// A task was made.
    pub fn opened(&mut self, point: &Point, name: &Arc<str>, context: Handle, operation: &Operation) {
        let uses = |operation: &Operation| {
            matches!(operation, Operation::Launch(_) | Operation::Library(_) | Operation::Copy(_) | Operation::Fill(_))
        };
        if !uses(operation) {
            return;
        }
        self.waited.open.push(Open { point: Arc::clone(point), name: Arc::clone(name), context });
        let Operation::Copy(copy) = operation else { return };
        if SETTINGS.races == OnFind::Off || copy.from.staged.is_some() {
            return;
        }
        self.look_at_pinned();
        for bytes in copy.from.rows(copy.width, copy.height, copy.depth) {
            if let Some(before) = (bytes.end - bytes.start <= MOST).then(|| content(&bytes)).flatten() {
                let (point, name) = (Arc::clone(point), Arc::clone(name));
                self.waited.watches.push(Watch { bytes, before, point, name });
            }
        }
    }

    /// Whether the host has written what a copy may still read. Not while operations run, which may be in the middle of
    /// writing.
    pub fn look_at_pinned(&mut self) {
        if !self.running.is_empty() || self.waited.watches.is_empty() {
            return;
        }
        let mut found = Vec::new();
        for watch in &mut self.waited.watches {
            let Some(now) = content(&watch.bytes).filter(|now| *now != watch.before) else { continue };
            let same = watch.before.iter().zip(&now).take_while(|(before, now)| before == now).count() as u64;
            found.push((watch.bytes.start + same..watch.bytes.end, Arc::clone(&watch.name)));
            watch.before = now;
        }
        for (bytes, name) in found {
            let place = space::look(|space| space.describe(&bytes));
            self.race(format!("the host writes {place} while {name} may still read them; it has not waited for that"));
        }
    }

    /// A task has written these: they are what they should be.
    pub fn wrote(&mut self, task: &Task, accesses: &Accesses) {
        if self.waited.watches.is_empty() {
            return;
        }
        let meets = |bytes: &Range<u64>| {
            accesses.writes().iter().any(|written| written.start < bytes.end && bytes.start < written.end)
        };
        self.waited.watches.retain(|watch| watch.point.id == task.mark.id || !meets(&watch.bytes));
    }

    /// The host knows more.
    pub fn close(&mut self) {
        let Waited { open, watches } = &mut self.waited;
        open.retain(|open| !open.point.is_known(&self.host));
        watches.retain(|watch| !watch.point.is_known(&self.host));
    }

    /// Pinned memory ends.
    pub fn forget_pinned(&mut self, bytes: &Range<u64>) {
        self.waited.watches.retain(|watch| watch.bytes.end <= bytes.start || bytes.end <= watch.bytes.start);
    }

    /// Operations that the host does not know to be over: of a context, or all.
    pub fn unwaited(&self, context: Option<Handle>) -> Vec<String> {
        let is_of = |open: &&Open| context.is_none_or(|context| context == open.context);
        let open = self.waited.open.iter().filter(|open| self.lost(open.context).is_none());
        open.filter(is_of).map(|open| open.name.to_string()).collect()
    }

    /// A context, or the process, ends.
    pub fn report_unwaited(&mut self, context: Option<Handle>, end: &str) {
        let left = self.unwaited(context);
        self.waited.open.retain(|open| context.is_some_and(|context| context != open.context));
        if left.is_empty() || SETTINGS.unwaited == OnFind::Off {
            return;
        }
        let text = format!("not waited for before {end}: {}", left.join("; "));
        match SETTINGS.unwaited {
            OnFind::Abort => stop(&text),
            _ => eprintln!("fake CUDA driver: {text}"),
        }
    }
}

/// The process ends: what was submitted runs, so that the checker sees it.
pub fn drain() {
    let Some(mut world) = try_lock() else { return };
    world.report_unwaited(None, "the end of the process");
    if SETTINGS.races == OnFind::Off {
        return;
    }
    world.look_at_pinned();
    LEAVING.store(true, SeqCst);
    let end = Instant::now() + LAST;
    while world.schedule.has_work() {
        let Some(left) = end.checked_duration_since(Instant::now()) else { break };
        world.schedule.run_all();
        WORK.notify_all();
        world = DONE.wait_timeout(world, left).map_or_else(|error| error.into_inner().0, |(world, _)| world);
    }
}
