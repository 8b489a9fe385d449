//! Blocks that came back and are kept for who comes next, by the stream that used them last.
//!
//! A block may be given back while work that uses it is still queued, with its place in that stream: its mark. Work
//! behind it on the same stream may have the block at once, because a stream runs in order; everybody else only when
//! the stream has got to the mark. Lane 0 is nobody's: nothing that is queued uses its blocks. In a lane blocks lie in
//! the order in which they came, the oldest first; if the oldest is still in use, so is the rest.
//!
//! Small blocks are kept by class. Large ones are kept only until they are free, and then join their neighbours.
#![forbid(unsafe_code)]

use super::classes::{CLASSES, Size};
use super::space::{NONE, Space};
use super::tag::Tag;
use crate::sync::EventCount;
use std::sync::Arc;

/// How far a stream has got.
pub trait Progress: Send + Sync {
    /// Work up to this mark is done, and what it wrote can be seen. Never less than before. Asked under a lock: it
    /// looks at what it knows, and calls nobody.
    fn reached(&self) -> u64;
}

/// A count of what is done. It is dropped under the lock, too, so it must be all that is kept of a stream.
impl Progress for EventCount {
    fn reached(&self) -> u64 {
        EventCount::reached(self)
    }
}

/// What is noted of a block.
#[derive(Debug)]
pub(super) struct Note {
    pub tag: Tag,
    /// The list that it is in: lane and class, and its neighbours there.
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
    /// The lane in which it is kept.
    pub fn lane(&self) -> Option<u32> {
        self.kept.map(|(lane, _)| lane)
    }
}

#[derive(Clone, Copy)]
struct List {
    newest: u32,
    oldest: u32,
}

/// One list for each class, and one for large blocks.
const LISTS: usize = CLASSES + 1;
const LARGE: usize = CLASSES;
/// So many large blocks of a lane are looked at.
const LOOKS: usize = 16;

struct StreamCache {
    lists: [List; LISTS],
    /// None for lane 0, and for a lane whose number is free.
    progress: Option<Arc<dyn Progress>>,
    blocks: usize,
    /// Its stream is gone: the number is free again when the lane is empty.
    is_closed: bool,
}

impl StreamCache {
    fn new(progress: Option<Arc<dyn Progress>>) -> StreamCache {
        StreamCache { lists: [List { newest: NONE, oldest: NONE }; LISTS], progress, blocks: 0, is_closed: false }
    }

    fn has_reached(&self, mark: u64) -> bool {
        self.progress.as_ref().is_none_or(|progress| progress.reached() >= mark)
    }
}

/// Work that may still use a block: on this lane, up to this mark.
pub(super) type Last = Option<(u32, u64)>;

/// Nobody's lane.
pub(super) const SHARED: u32 = 0;

pub(super) struct StreamCaches {
    all: Vec<StreamCache>,
    /// Bytes in all lists.
    pub bytes: usize,
}

impl StreamCaches {
    pub fn new() -> StreamCaches {
        StreamCaches { all: vec![StreamCache::new(None)], bytes: 0 }
    }

    /// A lane for a stream. Without memory for one it shares everybody's.
    pub fn open(&mut self, progress: Arc<dyn Progress>) -> u32 {
        let unused = |lane: &StreamCache| lane.is_closed && lane.blocks == 0;
        if let Some(at) = self.all.iter().position(unused) {
            self.all[at] = StreamCache::new(Some(progress));
            return at as u32;
        }
        if self.all.try_reserve(1).is_err() {
            return SHARED;
        }
        self.all.push(StreamCache::new(Some(progress)));
        self.all.len() as u32 - 1
    }

    /// The stream is gone; what it used last may still be in use. Blocks that are not become everybody's.
    pub fn close(&mut self, lane: u32, space: &mut Space<Note>) {
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

    /// Keeps a block that came back. False if it is free already, and large.
    pub fn keep(&mut self, space: &mut Space<Note>, index: u32, class: Option<usize>, last: Last) -> bool {
        let last = last.filter(|&(lane, mark)| !self.all[lane as usize].has_reached(mark));
        match (class, last) {
            (Some(class), Some((lane, mark))) => self.put(space, index, (lane, class), mark),
            (Some(class), None) => self.put(space, index, (SHARED, class), 0),
            (None, Some((lane, mark))) => self.put(space, index, (lane, LARGE), mark),
            (None, None) => return false,
        }
        true
    }

    /// A block of this size that work on `lane` may use from now on, and who may still use it if it is not free of use:
    /// the same lane, up to a mark.
    pub fn take(&mut self, space: &mut Space<Note>, size: Size, lane: u32) -> Option<(u32, Last)> {
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

    /// Frees the large blocks that are not in use any more.
    pub fn settle(&mut self, space: &mut Space<Note>) {
        for lane in 1..self.all.len() as u32 {
            self.settle_lane(space, lane);
        }
    }

    fn settle_lane(&mut self, space: &mut Space<Note>, lane: u32) {
        while let Some(index) = self.done(space, lane, LARGE) {
            self.take_out(space, index);
            space.give(index);
        }
    }

    /// Frees all that is kept and not in use.
    pub fn flush(&mut self, space: &mut Space<Note>) {
        for lane in 0..self.all.len() as u32 {
            for list in 0..LISTS {
                while let Some(index) = self.done(space, lane, list) {
                    self.take_out(space, index);
                    space.give(index);
                }
            }
        }
    }

    /// Frees all that is kept: nobody is there any more to use it.
    pub fn empty(&mut self, space: &mut Space<Note>) {
        self.all.iter_mut().for_each(|lane| lane.progress = None);
        self.flush(space);
    }

    /// The oldest block of a list, if it is not in use any more.
    fn done(&self, space: &Space<Note>, lane: u32, list: usize) -> Option<u32> {
        let of = &self.all[lane as usize];
        let index = Some(of.lists[list].oldest).filter(|&index| index != NONE)?;
        of.has_reached(space.get(index).note.mark).then_some(index)
    }

    fn put(&mut self, space: &mut Space<Note>, index: u32, (lane, list): (u32, usize), mark: u64) {
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

    fn take_out(&mut self, space: &mut Space<Note>, index: u32) {
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
