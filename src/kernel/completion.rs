//! How a call reports that it is done, before or after its start function has returned.
//!
//! The host's handle is a number: a slot in a table that is never freed, and the generation of the call that has the
//! slot. So no use of a handle, however late, touches freed memory: a second completion of the same call is detected,
//! and one of a call that is long over too, until its slot has served 2^32 calls more. Numbers are odd, unlike pointers
//! to objects.
//!
//! A call may run in *rounds*: it leaves a continuation (`Completion::leave`) before it completes, and that completion
//! only ends a round. The caller then resumes the continuation, under a new handle, and continues past the call when a
//! round has left none.
#![forbid(unsafe_code)]

use super::{KernelContext, Outputs};
use crate::base::{Error, Result, process};
use crate::sync::{Global, Mailbox, OnceLock, Rendezvous};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::*};

/// The starter of calls that complete later.
pub trait Caller: Send + Sync {
    /// The call `tag` has ended with this result. Its effects are visible; its context ends now. Called before anything
    /// continues past the call.
    fn ended(&self, tag: u32, result: Result<()>);

    /// The call `tag` has ended, and its starter has moved on: another thread must be found to continue past it. Called
    /// in the thread that completed it, which is any thread.
    fn came_back(self: Arc<Self>, tag: u32);
}

/// The continuation of a call after a round.
pub trait Rest: Send + Sync {
    /// Resumes the call: as `Kernel::start`, which has begun it.
    fn go_on(self: Arc<Self>, context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()>;
}

#[derive(Default)]
struct CallSlot {
    meeting: Rendezvous,
    caller: Mailbox<Arc<dyn Caller>>,
    /// Stored during a round, before its completion; taken when the caller continues past it.
    rest: Mailbox<Arc<dyn Rest>>,
    tag: AtomicU32,
}

/// The slot through which one call at a time completes. It is returned when this is dropped.
pub struct Pending {
    number: u32,
    place: &'static CallSlot,
}

/// The handle of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    number: u32,
    generation: u32,
}

impl Pending {
    pub fn new() -> Result<Pending> {
        let (number, place) = take_place()?;
        Ok(Pending { number, place })
    }

    /// A call begins. The previous one is over.
    pub fn begin(&self, caller: Arc<dyn Caller>, tag: u32) -> Completion {
        // The cell is empty: the completer of the last call took its contents before it was done.
        let _ = self.place.caller.put(caller);
        self.place.tag.store(tag, Relaxed);
        Completion { number: self.number, generation: self.place.meeting.begin() }
    }

    /// The continuation left by the last round; `None` if the call is over. Only for the thread that continues past it.
    pub fn rest(&self) -> Option<Arc<dyn Rest>> {
        self.place.rest.take()
    }

    /// Whether there is a continuation.
    pub fn has_rest(&self) -> bool {
        self.place.rest.is_full()
    }

    /// The start function has returned: true if the call is done, so that the starter continues past it.
    pub fn returned(&self) -> bool {
        self.place.meeting.returned()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.place.meeting.end();
        drop((self.place.caller.take(), self.place.rest.take()));
        stock().free.lock().push(self.number);
    }
}

impl Completion {
    /// Completes the call. Refused if it was completed already.
    pub fn done(self, result: Result<()>) -> Result<()> {
        let place = place(self.number).filter(|place| place.meeting.claim(self.generation));
        let Some(place) = place else {
            return Err(Error::precondition("done: this call was completed before"));
        };
        let tag = place.tag.load(Relaxed);
        let Some(caller) = place.caller.take() else { return Err(Error::internal("a call without a caller")) };
        caller.ended(tag, result);
        // From here on the slot belongs to another call, unless the starter has moved on.
        if place.meeting.done() {
            caller.came_back(tag);
        }
        Ok(())
    }

    /// With `Some`, the completion of this handle ends a round, and the call resumes with `rest`; with `None` it ends
    /// the call, which is the default. Only before the completion.
    pub fn leave(self, rest: Option<Arc<dyn Rest>>) {
        if let Some(place) = place(self.number) {
            drop(place.rest.take());
            let _ = rest.map(|rest| place.rest.put(rest));
        }
    }

    /// The number that C holds. Never 0.
    pub fn into_number(self) -> usize {
        (self.generation as usize & GENERATIONS) << GENERATION_SHIFT | (self.number as usize) << 1 | 1
    }

    /// `None` if it is not the number of a call.
    pub fn from_number(number: usize) -> Option<Completion> {
        let place = (number & ((1 << GENERATION_SHIFT) - 1)) >> 1;
        let generation = (number >> GENERATION_SHIFT) as u32;
        let completion = Completion { number: u32::try_from(place).ok()?, generation };
        (number & 1 == 1 && self::place(completion.number).is_some()).then_some(completion)
    }
}

const GENERATION_SHIFT: u32 = usize::BITS / 2;
const GENERATIONS: usize = usize::MAX >> GENERATION_SHIFT;

/// Slots come in chunks, each twice as large as the one before.
const FIRST_PIECE: u32 = 64;
const PIECES: usize = (GENERATION_SHIFT - 7) as usize;

/// A chunk of slots, and the process whose calls they are for: a child of fork allocates chunks of its own after those
/// of the parent.
struct SlotChunk {
    born: u32,
    places: Box<[CallSlot]>,
}

struct SlotTable {
    pieces: [OnceLock<SlotChunk>; PIECES],
    free: Global<Vec<u32>>,
}

fn stock() -> &'static SlotTable {
    static STOCK: SlotTable = SlotTable { pieces: [const { OnceLock::new() }; PIECES], free: Global::new(Vec::new) };
    &STOCK
}

/// The chunk of a number, and the chunk's first number.
fn piece_of(number: u32) -> (usize, u32) {
    let piece = (u64::from(number) / u64::from(FIRST_PIECE) + 1).ilog2();
    (piece as usize, (FIRST_PIECE << piece) - FIRST_PIECE)
}

fn place(number: u32) -> Option<&'static CallSlot> {
    let (piece, first) = piece_of(number);
    let piece = stock().pieces.get(piece)?.get().filter(|piece| piece.born == process::generation())?;
    piece.places.get((number - first) as usize)
}

fn take_place() -> Result<(u32, &'static CallSlot)> {
    let stock = stock();
    let mut free = stock.free.lock();
    if free.is_empty() {
        let made = stock.pieces.iter().take_while(|piece| piece.get().is_some()).count();
        let Some(piece) = stock.pieces.get(made) else {
            return Err(Error::exhausted("the calls that complete later", usize::MAX));
        };
        let (first, len) = ((FIRST_PIECE << made) - FIRST_PIECE, FIRST_PIECE << made);
        // Room for all existing numbers: returning one allocates nothing.
        free.try_reserve((first + len) as usize)
            .map_err(|_| Error::exhausted("the calls that complete later", (first + len) as usize * 4))?;
        let places = crate::memory::heap::filled(len as usize, "the calls that complete later", CallSlot::default)?;
        let _ = piece.set(SlotChunk { born: process::generation(), places });
        free.extend((first..first + len).rev());
    }
    let number = free.pop().and_then(|number| place(number).map(|place| (number, place)));
    number.ok_or_else(|| Error::internal("a stock without places"))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen {
        ended: AtomicU32,
        came_back: AtomicU32,
    }

    impl Caller for Seen {
        fn ended(&self, tag: u32, _result: Result<()>) {
            self.ended.fetch_add(tag, Relaxed);
        }
        fn came_back(self: Arc<Self>, tag: u32) {
            self.came_back.fetch_add(tag, Relaxed);
        }
    }

    #[test]
    fn late_completions_are_found() {
        let seen = Arc::new(Seen::default());
        let pending = Pending::new().unwrap();
        let first = pending.begin(seen.clone(), 1);
        assert_eq!(Completion::from_number(first.into_number()), Some(first));
        assert!(first.done(Ok(())).is_ok() && pending.returned());
        assert!(first.done(Ok(())).is_err());
        let second = pending.begin(seen.clone(), 10);
        assert!(!pending.returned());
        assert!(first.done(Ok(())).is_err());
        assert!(second.done(Ok(())).is_ok() && second.done(Ok(())).is_err());
        drop(pending);
        assert!(second.done(Ok(())).is_err());
        let next = Pending::new().unwrap();
        let third = next.begin(seen.clone(), 100);
        assert!(second.done(Ok(())).is_err() && third != second);
        drop(next);
        assert_eq!((seen.ended.load(Relaxed), seen.came_back.load(Relaxed)), (11, 10));
        assert_eq!(Arc::strong_count(&seen), 1);
    }

    #[test]
    fn numbers_are_no_pointers() {
        for number in [0, 2, 8, usize::MAX, usize::MAX - 1] {
            assert_eq!(Completion::from_number(number), None, "{number:#x}");
        }
        let many: Vec<_> = (0..1000).map(|_| Pending::new().unwrap()).collect();
        let mut numbers: Vec<_> = many.iter().map(|pending| pending.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 1000);
    }
}
