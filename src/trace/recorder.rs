//! The traces that record, and how a thread comes to its ring in them.

use super::active::{self, ActivePlace};
use super::clock::{self, Anchor};
use super::post::Post;
use super::ring::{NAME, RecordRing};
use super::table::Table;
use crate::base::{Code, Error, Result, process, reserve};
use crate::sync::{Mutex, OnceLock, fork, thread};
use std::any::Any;
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Weak};

/// The most traces at once.
pub const MOST_TRACES: usize = 4;

/// The work that a trace is of. Objects are told apart by an address or number of their own, which stays theirs while
/// the trace keeps them (`Recorder::keeps`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All of the process.
    Everything,
    /// Of this number.
    Domain(u32),
    /// By the address of its account.
    Engine(usize),
    /// By the address of what all of its parts share.
    Program(usize),
    /// Only runs that ask for this trace.
    Asked,
}

/// Writes records of work that is over, when somebody wants to read them. One that is patient may wait
/// longer for a device.
pub trait Collect: Send + Sync {
    fn collect(&self, is_patient: bool);
}

/// How a trace records.
pub struct Settings {
    pub filter: Filter,
    /// The object that the filter names.
    pub keeps: Option<Arc<dyn Any + Send + Sync>>,
    /// Whether a full ring overwrites its oldest records.
    pub keeps_last: bool,
    /// Records of each thread, a power of two; and how many threads have rings.
    pub records: usize,
    pub threads: usize,
}

impl Settings {
    /// How many records and threads a host may ask for, and what it gets if it does not say.
    pub const RECORDS: RangeInclusive<usize> = 64..=1 << 26;
    pub const THREADS: RangeInclusive<usize> = 1..=4096;
    pub const DEFAULT_RECORDS: usize = 1 << 16;
    pub const DEFAULT_THREADS: usize = 64;
}

/// A trace: its rings, and what explains their records.
pub struct Recorder {
    /// Never that of another trace.
    pub id: u64,
    pub settings: Settings,
    /// Kept alive by the settings, until the owner goes.
    keeps: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
    pub begin: Anchor,
    /// Set when it is stopped: nothing that begins later belongs to it.
    end: OnceLock<Anchor>,
    rings: Box<[RecordRing]>,
    /// How many rings have a thread.
    claimed: AtomicU32,
    /// Of the threads that found no ring.
    none: RecordRing,
    pub(super) tables: Mutex<Vec<Arc<Table>>>,
    /// Tracks that may have records of work that is over, and have not written them yet.
    sources: Mutex<Vec<Weak<dyn Collect>>>,
}

/// A post, and what it holds.
struct TracePlace {
    post: Post,
    recorder: AtomicPtr<Recorder>,
    /// The process that uses it.
    born: AtomicU32,
}

#[cfg(not(loom))]
static PLACES: [TracePlace; MOST_TRACES] =
    [const { TracePlace { post: Post::new(), recorder: AtomicPtr::new(ptr::null_mut()), born: AtomicU32::new(0) } };
        MOST_TRACES];

/// Models are of other things than the places of this process.
#[cfg(loom)]
static PLACES: [TracePlace; 0] = [];

thread_local! {
    /// The calling thread's ring at each place, and the trace that it is of.
    static RINGS: [Cell<(u64, *const RecordRing)>; MOST_TRACES] =
        const { [const { Cell::new((0, ptr::null())) }; MOST_TRACES] };
}

impl Recorder {
    /// Begins a trace. What it keeps of each thread is allocated here.
    pub fn start(mut settings: Settings) -> Result<(Arc<Recorder>, usize)> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        clock::choose();
        let mut rings = Vec::new();
        let bytes = settings.threads * size_of::<RecordRing>();
        rings.try_reserve_exact(settings.threads).map_err(|_| Error::exhausted("a trace", bytes))?;
        for _ in 0..settings.threads {
            rings.push(RecordRing::create(settings.records, settings.keeps_last)?);
        }
        let Some(at) = free_place() else {
            let text = format!("{MOST_TRACES} traces are being recorded, or were not released");
            return Err(Error::new(Code::ResourceExhausted, text));
        };
        let place = &PLACES[at];
        let recorder = Arc::new(Recorder {
            id: NEXT.fetch_add(1, Relaxed),
            keeps: Mutex::new(settings.keeps.take()),
            settings,
            begin: Anchor::now(),
            end: OnceLock::new(),
            rings: rings.into_boxed_slice(),
            claimed: AtomicU32::new(0),
            none: RecordRing::of_none(),
            tables: Mutex::default(),
            sources: Mutex::default(),
        });
        // ORDERING: Relaxed; `open` publishes it.
        place.recorder.store(Arc::into_raw(Arc::clone(&recorder)).cast_mut(), Relaxed);
        place.post.open();
        ActivePlace::Trace(at).set();
        Ok((recorder, at))
    }

    /// Ends it: what begins from here on is of no trace. Threads that are writing now write on, to no effect.
    pub fn stop(&self, at: usize) {
        if self.end.get().is_some() {
            return;
        }
        self.collect(true);
        let end = self.begin.behind();
        // The first thread's word counts.
        if self.end.set(end).is_ok() {
            ActivePlace::Trace(at).clear();
            PLACES[at].post.close();
        }
    }

    /// The second pair of a stamp and a time: of its end, or of now.
    pub fn end_anchor(&self) -> Anchor {
        self.end.get().copied().unwrap_or_else(|| self.begin.behind())
    }

    /// Its owner goes.
    pub fn abandon(&self, at: usize) {
        ActivePlace::Trace(at).clear();
        // Work that is over lets go of it. Work that is not keeps the trace, and what that is of may be all that ends
        // the work's stream. Nothing that begins from here on asks for the filter.
        if !fork::forked() {
            self.collect(false);
            let kept = self.keeps.lock().take();
            drop(kept);
        }
        if PLACES[at].post.leave_to_writers() {
            free(at);
        }
    }

    /// The end, if it was stopped.
    pub fn end(&self) -> Option<u64> {
        self.end.get().map(|end| end.stamp)
    }

    pub fn rings(&self) -> impl Iterator<Item = &RecordRing> {
        let claimed = self.claimed.load(Relaxed) as usize;
        self.rings.iter().take(claimed)
    }

    /// Records of threads that found no ring.
    pub fn lost_without_ring(&self) -> u64 {
        self.none.lost()
    }

    /// The calling thread's ring, or the one for those that find none.
    fn ring_of_thread(&self, at: usize) -> *const RecordRing {
        RINGS
            .try_with(|rings| {
                let (id, ring) = rings[at].get();
                if id == self.id {
                    return ring;
                }
                let ring = &raw const *self.ring(self.claim(owner));
                rings[at].set((self.id, ring));
                ring
            })
            .unwrap_or(&raw const self.none)
    }

    /// The number of a ring for this owner, or that of none.
    #[cold]
    pub(super) fn claim(&self, owner: impl FnOnce() -> (u64, [u8; NAME])) -> usize {
        let most = self.rings.len() as u32;
        let claimed = self.claimed.fetch_update(Relaxed, Relaxed, |claimed| (claimed < most).then_some(claimed + 1));
        match claimed {
            Ok(number) => {
                let ring = &self.rings[number as usize];
                let (owner, name) = owner();
                ring.set_owner(owner, name);
                number as usize
            }
            Err(most) => most as usize,
        }
    }

    /// The ring of this number, or the one for those that found none.
    pub(super) fn ring(&self, number: usize) -> &RecordRing {
        self.rings.get(number).unwrap_or(&self.none)
    }

    /// Has this asked for its records before they are read.
    pub(super) fn add_source(&self, source: Weak<dyn Collect>) {
        let mut sources = self.sources.lock();
        sources.retain(|source| source.strong_count() > 0);
        if sources.try_reserve(1).is_ok() {
            sources.push(source);
        }
    }

    /// Has those that write late write what they can.
    pub(super) fn collect(&self, is_patient: bool) {
        let sources = self.sources.lock().clone();
        sources.iter().filter_map(Weak::upgrade).for_each(|source| source.collect(is_patient));
    }

    /// Adds what explains records, once. For a run's first record in this trace, not for later ones.
    pub(super) fn explain(&self, table: &Arc<Table>) -> bool {
        let mut tables = self.tables.lock();
        if tables.iter().any(|known| known.number == table.number) {
            return true;
        }
        if tables.len() == tables.capacity() {
            let Ok(longer) = reserve::whole(|| longer(&tables)) else { return false };
            *tables = longer;
        }
        tables.push(Arc::clone(table));
        true
    }
}

/// The calling thread's number and name.
fn owner() -> (u64, [u8; NAME]) {
    let os_id = thread::os_id();
    (if os_id == 0 { thread::me() } else { os_id }, thread::name())
}

/// A copy with twice the room.
fn longer<T: Clone>(all: &[T]) -> Result<Vec<T>> {
    let mut longer = Vec::new();
    longer.try_reserve_exact((2 * all.len()).max(16)).map_err(|_| reserve::short())?;
    longer.extend_from_slice(all);
    Ok(longer)
}

fn free_place() -> Option<usize> {
    let generation = process::generation();
    for (at, place) in PLACES.iter().enumerate() {
        // A child of fork has nothing of what its parent recorded. The first thread that sees it makes the place free.
        let born = place.born.load(Relaxed);
        if born != generation && place.born.compare_exchange(born, generation, Relaxed, Relaxed).is_ok() {
            ActivePlace::Trace(at).clear();
            place.post.forget();
        }
    }
    PLACES.iter().position(|place| place.post.take())
}

/// Nobody uses what is here.
fn free(at: usize) {
    let recorder = PLACES[at].recorder.swap(ptr::null_mut(), Relaxed);
    if !recorder.is_null() {
        // SAFETY: from `Arc::into_raw`, taken out once. The post says that no writer is here.
        drop(unsafe { Arc::from_raw(recorder.cast_const()) });
    }
    PLACES[at].post.free();
}

/// A writer's stay at a place: while it lives, so does the trace that records there.
#[derive(Debug)]
pub struct Visit {
    at: usize,
    recorder: *const Recorder,
}

impl Visit {
    /// `None` if no trace of this process records at this place.
    pub fn enter(at: usize) -> Option<Visit> {
        let place = PLACES.get(at)?;
        if place.born.load(Relaxed) != process::generation() {
            // Of the process that this one was forked from: one bit less to look at.
            ActivePlace::Trace(at).clear();
            return None;
        }
        if !place.post.enter() {
            leave(at);
            return None;
        }
        Some(Visit { at, recorder: place.recorder.load(Relaxed) })
    }

    /// All places at which a trace records.
    pub fn all() -> impl Iterator<Item = Visit> {
        active::traces().filter_map(Visit::enter)
    }

    pub fn at(&self) -> usize {
        self.at
    }

    /// A reference to the trace, which may outlive the visit.
    pub(super) fn share(&self) -> Arc<Recorder> {
        // SAFETY: the pointer is from `Arc::into_raw`, and its reference stays while this visit lasts.
        unsafe {
            Arc::increment_strong_count(self.recorder);
            Arc::from_raw(self.recorder)
        }
    }

    pub fn recorder(&self) -> &Recorder {
        // SAFETY: the post was open when this writer came, so the recorder is there, and stays until it leaves.
        unsafe { &*self.recorder }
    }

    /// The calling thread's ring here. It lives as long as this visit.
    pub fn ring(&self) -> *const RecordRing {
        self.recorder().ring_of_thread(self.at)
    }

    /// The visit goes on without this value, until `leave`.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        leave(self.at);
    }
}

/// Ends a visit.
pub(super) fn leave(at: usize) {
    if PLACES[at].post.leave() {
        free(at);
    }
}
