//! Returned blocks that are kept for reuse, by the stream that used them last.
//!
//! A block may be returned while queued work still uses it, with its position in that stream: its mark. Later work on
//! the same stream may have the block at once, because a stream runs in order; all others only when the stream has
//! reached the mark. List 0 is shared: no queued work uses its blocks. The blocks of a stream lie in the order of their
//! return, oldest first; if the oldest is still in use, so is the rest.
//!
//! Small blocks are kept by class. Large ones are kept only until they are free, and then merge with their neighbours.
#![forbid(unsafe_code)]

use super::classes::{CLASSES, Size};
use super::space::{AddressSpace, NONE};
use super::tag::Tag;
use crate::sync::EventCount;
use std::sync::Arc;

/// The progress of a stream.
pub trait Progress: Send + Sync {
    /// Work up to this mark is done, and its writes are visible. Never decreases. Called under a lock: it returns what
    /// it knows, without calling anything.
    fn reached(&self) -> u64;
}

/// A counter of completed work. It is dropped under the lock, too, so it must be all that is kept of a stream.
impl Progress for EventCount {
    fn reached(&self) -> u64 {
        EventCount::reached(self)
    }
}

/// Bookkeeping of a block.
#[derive(Debug)]
pub(super) struct Note {
    pub tag: Tag,
    /// The list that it is in, by stream and class, and its neighbours there.
    kept: Option<(u32, usize)>,
    newer: u32,
    older: u32,
    mark: u64,
}

impl Default for Note {
    fn default() -> Self {
        Note { tag: Tag::Nothing, kept: None, newer: NONE, older: NONE, mark: 0 }
    }
}

impl Note {
    /// The stream whose list it is in.
    pub fn lane(&self) -> Option<u32> {
        self.kept.map(|(lane, _)| lane)
    }
}

#[derive(Clone, Copy)]
struct BlockList {
    newest: u32,
    oldest: u32,
}

/// One list for each class, and one for large blocks.
const LISTS: usize = CLASSES + 1;
const LARGE: usize = CLASSES;
/// Maximum number of large blocks of a stream that a request examines.
const LOOKS: usize = 16;

struct StreamBlocks {
    lists: [BlockList; LISTS],
    /// `None` for the shared list, and for an unused number.
    progress: Option<Arc<dyn Progress>>,
    blocks: usize,
    /// Its stream is gone: the number can be reused when the lists are empty.
    is_closed: bool,
}

impl StreamBlocks {
    fn new(progress: Option<Arc<dyn Progress>>) -> StreamBlocks {
        StreamBlocks { lists: [BlockList { newest: NONE, oldest: NONE }; LISTS], progress, blocks: 0, is_closed: false }
    }

    fn has_reached(&self, mark: u64) -> bool {
        self.progress.as_ref().is_none_or(|progress| progress.reached() >= mark)
    }
}

/// Work that may still use a block: on this stream, up to this mark.
pub(super) type Last = Option<(u32, u64)>;

/// The number of the shared lists.
pub(super) const SHARED: u32 = 0;

pub(super) struct StreamCaches {
    all: Vec<StreamBlocks>,
    /// Bytes in all lists.
    pub bytes: usize,
}

impl StreamCaches {
    pub fn new() -> StreamCaches {
        StreamCaches { all: vec![StreamBlocks::new(None)], bytes: 0 }
    }

    /// Lists for a stream. Without memory for them it uses the shared ones.
    pub fn open(&mut self, progress: Arc<dyn Progress>) -> u32 {
        let unused = |lane: &StreamBlocks| lane.is_closed && lane.blocks == 0;
        if let Some(at) = self.all.iter().position(unused) {
            self.all[at] = StreamBlocks::new(Some(progress));
            return at as u32;
        }
        if self.all.try_reserve(1).is_err() {
            return SHARED;
        }
        self.all.push(StreamBlocks::new(Some(progress)));
        self.all.len() as u32 - 1
    }

    /// The stream is gone; its last blocks may still be in use. The others become shared.
    pub fn close(&mut self, lane: u32, space: &mut AddressSpace<Note>) {
        if lane == SHARED {
            return;
        }
        self.all[lane as usize].is_closed = true;
        for class in 0..CLASSES {
            while let Some(index) = self.done(space, lane, class) {
                self.take_out(space, index);
                self.put(space, index, (SHARED, class), 0);
            }
        }
        self.settle_lane(space, lane);
        let closed = &mut self.all[lane as usize];
        if closed.blocks == 0 {
            closed.progress = None;
        }
    }

    /// Keeps a returned block. False if it is large and no longer in use.
    pub fn keep(&mut self, space: &mut AddressSpace<Note>, index: u32, class: Option<usize>, last: Last) -> bool {
        let last = last.filter(|&(lane, mark)| !self.all[lane as usize].has_reached(mark));
        match (class, last) {
            (Some(class), Some((lane, mark))) => self.put(space, index, (lane, class), mark),
            (Some(class), None) => self.put(space, index, (SHARED, class), 0),
            (None, Some((lane, mark))) => self.put(space, index, (lane, LARGE), mark),
            (None, None) => return false,
        }
        true
    }

    /// A block of this size that work on `lane` may use from now on, and the work that may still use it: on the same
    /// stream, up to a mark.
    pub fn take(&mut self, space: &mut AddressSpace<Note>, size: Size, lane: u32) -> Option<(u32, Last)> {
        let found = match size.class {
            Some(class) => {
                let own = || Some(self.all[lane as usize].lists[class].newest).filter(|&index| index != NONE);
                let everybodys = || Some(self.all[SHARED as usize].lists[class].newest).filter(|&index| index != NONE);
                let others = || (1..self.all.len() as u32).find_map(|lane| self.done(space, lane, class));
                own().or_else(everybodys).or_else(others)?
            }
            None => {
                let fits = |index: &u32| {
                    let bytes = space.get(*index).bytes;
                    bytes >= size.bytes && bytes - size.bytes <= size.bytes / 4
                };
                let older = |&index: &u32| Some(space.get(index).note.older).filter(|&index| index != NONE);
                let newest = Some(self.all[lane as usize].lists[LARGE].newest).filter(|&index| index != NONE);
                std::iter::successors(newest, older).take(LOOKS).find(fits)?
            }
        };
        let note = &space.get(found).note;
        let last = note.kept.filter(|kept| kept.0 == lane && lane != SHARED).map(|(lane, _)| (lane, note.mark));
        self.take_out(space, found);
        Some((found, last))
    }

    /// Frees the large blocks that are no longer in use.
    pub fn settle(&mut self, space: &mut AddressSpace<Note>) {
        for lane in 1..self.all.len() as u32 {
            self.settle_lane(space, lane);
        }
    }

    fn settle_lane(&mut self, space: &mut AddressSpace<Note>, lane: u32) {
        while let Some(index) = self.done(space, lane, LARGE) {
            self.take_out(space, index);
            space.give(index);
        }
    }

    /// Frees all kept blocks that are not in use.
    pub fn flush(&mut self, space: &mut AddressSpace<Note>) {
        for lane in 0..self.all.len() as u32 {
            for list in 0..LISTS {
                while let Some(index) = self.done(space, lane, list) {
                    self.take_out(space, index);
                    space.give(index);
                }
            }
        }
    }

    /// Frees all kept blocks: no user is left.
    pub fn empty(&mut self, space: &mut AddressSpace<Note>) {
        self.all.iter_mut().for_each(|lane| lane.progress = None);
        self.flush(space);
    }

    /// The oldest block of a list, if it is no longer in use.
    fn done(&self, space: &AddressSpace<Note>, lane: u32, list: usize) -> Option<u32> {
        let of = &self.all[lane as usize];
        let index = Some(of.lists[list].oldest).filter(|&index| index != NONE)?;
        of.has_reached(space.get(index).note.mark).then_some(index)
    }

    fn put(&mut self, space: &mut AddressSpace<Note>, index: u32, (lane, list): (u32, usize), mark: u64) {
        let of = &mut self.all[lane as usize];
        let older = std::mem::replace(&mut of.lists[list].newest, index);
        match older {
            NONE => of.lists[list].oldest = index,
            older => space.get_mut(older).note.newer = index,
        }
        of.blocks += 1;
        let range = space.get_mut(index);
        self.bytes += range.bytes;
        range.note = Note { tag: Tag::Nothing, kept: Some((lane, list)), newer: NONE, older, mark };
    }

    fn take_out(&mut self, space: &mut AddressSpace<Note>, index: u32) {
        let range = space.get_mut(index);
        let Some((lane, list)) = range.note.kept.take() else { return };
        let (newer, older) = (range.note.newer, range.note.older);
        self.bytes -= range.bytes;
        let of = &mut self.all[lane as usize];
        of.blocks -= 1;
        if of.is_closed && of.blocks == 0 {
            of.progress = None;
        }
        match newer {
            NONE => of.lists[list].newest = older,
            newer => space.get_mut(newer).note.older = older,
        }
        match older {
            NONE => of.lists[list].oldest = newer,
            older => space.get_mut(older).note.newer = newer,
        }
    }
}

impl std::fmt::Debug for StreamCaches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StreamCaches({} lanes, {} bytes)", self.all.len(), self.bytes)
    }
}
