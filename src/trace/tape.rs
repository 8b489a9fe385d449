//! A thread's hand at its rings while it works for something that is traced.

use super::active::is_on;
use super::clock;
use super::explained::Explained;
use super::hooks::Told;
use super::names;
use super::record::{LONG, NONE, TraceEvent, TraceRecord, Words};
use super::recorder::{Filter, MOST_TRACES, Visit, leave};
use super::ring::RecordRing;
use super::table::Nodes;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

thread_local! {
    /// The work that the calling thread is at: the places of its traces, as bits, and the frame.
    static WORK: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// The traces that something is of: at each place the trace's number, or 0. Written by the owner of what is traced,
/// before others can see it. ORDERING: Relaxed; the owner hands it on with an order of its own.
#[derive(Debug, Default)]
pub struct Traces {
    ids: [AtomicU64; MOST_TRACES],
    frame: AtomicU32,
    /// The hooks that it has entered (`Told`).
    hooks: AtomicU32,
}

impl Traces {
    /// Finds the traces that want this: those whose filter `wants` it, the one that is `asked` for, and those of the
    /// work around; and enters the hooks that there are. True if there is any of them; it has a frame of its own then.
    #[cold]
    pub fn find(&self, asked: Option<u64>, wants: &dyn Fn(&Filter) -> bool) -> bool {
        let (around, _) = work_around();
        self.ids.iter().for_each(|id| id.store(0, Relaxed));
        debug_assert!(self.told().is_nobody(), "what was here before has not left its hooks");
        let told = Told::enter();
        self.hooks.store(told.bits(), Relaxed);
        let mut any = !told.is_nobody();
        for visit in Visit::all() {
            let recorder = visit.recorder();
            let is_around = around >> visit.at() & 1 == 1;
            if is_around || asked == Some(recorder.id) || wants(&recorder.settings.filter) {
                self.ids[visit.at()].store(recorder.id, Relaxed);
                any = true;
            }
        }
        self.frame.store(if any { next_frame() } else { 0 }, Relaxed);
        any
    }

    /// The same for what has no filter of its own: the traces of everything, and those of the work around.
    #[inline]
    pub fn find_around(&self) {
        if is_on() {
            self.find(None, &|filter| *filter == Filter::Everything);
        } else if self.frame.load(Relaxed) != 0 {
            self.frame.store(0, Relaxed);
        }
    }

    /// Whether there is any, since `find`.
    #[inline]
    pub fn are_there(&self) -> bool {
        self.frame.load(Relaxed) != 0
    }

    /// The hooks that are told of it. For threads that work for it.
    #[inline]
    pub fn told(&self) -> Told {
        Told::of_bits(self.hooks.load(Relaxed))
    }

    /// It is over, and no thread works for it any more: leaves its hooks.
    pub fn leave_hooks(&self) {
        let told = self.told();
        self.hooks.store(0, Relaxed);
        told.leave();
    }

    /// Its own number, or 0.
    pub fn frame(&self) -> u32 {
        self.frame.load(Relaxed)
    }

    /// Whether this trace is among them.
    pub fn has(&self, id: u64) -> bool {
        self.ids.iter().any(|own| own.load(Relaxed) == id)
    }
}

/// A number for a frame.
fn next_frame() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Relaxed).max(1)
}

/// A thread's writer: its ring in each of the traces. They stay while this lives.
#[derive(Debug)]
pub struct Tape {
    rings: [*const RecordRing; MOST_TRACES],
    count: u32,
    /// The places, as bits.
    at: u32,
    frame: u32,
}

impl Tape {
    /// Writes nothing.
    #[inline]
    pub const fn none() -> Tape {
        Tape { rings: [ptr::null(); MOST_TRACES], count: 0, at: 0, frame: 0 }
    }

    /// For the traces of something that this thread works for. Those that have been stopped are left out.
    pub fn open(traces: &Traces) -> Tape {
        let mut tape = Tape { frame: traces.frame.load(Relaxed), ..Tape::none() };
        for (at, id) in traces.ids.iter().enumerate() {
            let id = id.load(Relaxed);
            if id == 0 {
                continue;
            }
            if let Some(visit) = Visit::enter(at)
                && visit.recorder().id == id
            {
                tape.add(visit);
            }
        }
        tape
    }

    /// For all traces of what this thread works for, and of everything.
    pub fn of_thread() -> Tape {
        if is_on() { Tape::of(&|filter| *filter == Filter::Everything) } else { Tape::none() }
    }

    /// For the traces whose filter `wants` it, and those of what this thread works for.
    pub fn of(wants: &dyn Fn(&Filter) -> bool) -> Tape {
        let mut tape = Tape::none();
        let (around, frame) = work_around();
        tape.frame = frame;
        for visit in Visit::all() {
            if around >> visit.at() & 1 == 1 || wants(&visit.recorder().settings.filter) {
                tape.add(visit);
            }
        }
        tape
    }

    /// The same, for something with a frame of its own.
    pub fn of_own_frame(wants: &dyn Fn(&Filter) -> bool) -> Tape {
        let mut tape = Tape::of(wants);
        tape.frame = next_frame();
        tape
    }

    fn add(&mut self, visit: Visit) {
        self.rings[self.count as usize] = visit.ring();
        self.count += 1;
        self.at |= 1 << visit.at();
        visit.keep();
    }

    pub fn is_blank(&self) -> bool {
        self.count == 0
    }

    pub fn frame(&self) -> u32 {
        self.frame
    }

    /// Gives the traces what explains an object.
    pub fn explain(&self, object: &Explained, make: &dyn Fn() -> Option<(String, Nodes)>) {
        for visit in (0..MOST_TRACES).filter(|at| self.at >> at & 1 == 1).filter_map(Visit::enter) {
            object.to(&visit, make);
        }
    }

    /// Until the result is dropped, this thread works for these traces.
    pub fn work(&self) -> Working {
        work_for(self.at, self.frame)
    }

    #[inline]
    fn put(&self, words: Words) {
        for ring in &self.rings[..(self.count as usize).min(MOST_TRACES)] {
            // SAFETY: of a visit that lasts until this is dropped, and of this thread: a tape is not sent to others.
            unsafe { &**ring }.put(words);
        }
    }

    #[inline]
    pub fn record(&self, record: TraceRecord) {
        if record.is_long() {
            return self.record_long(record);
        }
        self.put(record.words());
    }

    #[cold]
    fn record_long(&self, record: TraceRecord) {
        self.put(record.extend());
        self.put(TraceRecord { flags: record.flags | LONG, ..record }.words());
    }

    /// A record of this moment and of this tape's frame; `with` fills in the rest.
    #[cold]
    pub fn note(&self, event: TraceEvent, with: impl FnOnce(TraceRecord) -> TraceRecord) {
        if self.count > 0 {
            self.record(with(TraceRecord::new(event, self.frame, clock::now())));
        }
    }
}

impl Drop for Tape {
    #[inline]
    fn drop(&mut self) {
        if self.at != 0 {
            (0..MOST_TRACES).filter(|at| self.at >> at & 1 == 1).for_each(leave);
        }
    }
}

/// Until the result is dropped, this thread works for the traces at these places.
pub(super) fn work_for(at: u32, frame: u32) -> Working {
    let is_own = (at, frame) != (0, 0);
    Working(WORK.try_with(|work| if is_own { work.replace((at, frame)) } else { work.get() }).unwrap_or_default())
}

/// An engine's memory, by its name, has so many bytes now.
#[inline]
pub fn memory(name: &str, bytes: usize) {
    if is_on() {
        note_memory(name, bytes);
    }
}

#[cold]
fn note_memory(name: &str, bytes: usize) {
    let object = names::intern(name).unwrap_or(NONE);
    let memory = |record| TraceRecord { object, ..record }.with_number(bytes as u64);
    Tape::of_thread().note(TraceEvent::Memory, memory);
}

/// Makes a kernel, which takes time; `name` is that of what was made.
#[inline]
pub fn made<T, E>(carrier: u16, make: impl FnOnce() -> Result<T, E>, name: impl FnOnce(&T) -> String) -> Result<T, E> {
    if !is_on() {
        return make();
    }
    let begin = clock::now();
    let made = make()?;
    note_made(carrier, begin, &name(&made));
    Ok(made)
}

#[cold]
fn note_made(carrier: u16, begin: u64, name: &str) {
    let tape = Tape::of_thread();
    let object = names::intern(name).unwrap_or(NONE);
    let length = clock::now().wrapping_sub(begin);
    tape.record(TraceRecord { length, object, carrier, ..TraceRecord::new(TraceEvent::Make, tape.frame(), begin) });
}

/// The work that this thread is at: the places of its traces, as bits, and the frame.
pub(super) fn work_around() -> (u32, u32) {
    WORK.try_with(Cell::get).unwrap_or_default()
}

/// The frame that this thread works for, or 0.
pub fn frame_around() -> u32 {
    work_around().1
}

/// Undoes `Tape::work` when dropped.
#[derive(Debug)]
pub struct Working((u32, u32));

impl Drop for Working {
    fn drop(&mut self) {
        let _ = WORK.try_with(|work| work.set(self.0));
    }
}
