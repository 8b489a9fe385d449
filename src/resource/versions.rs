//! The value of an optimistic variable: a sequence of versions.
//!
//! A reader may hold a version for as long as it likes: it is never written again. The next writer reuses a version
//! that has no holder any more, so there are as many versions as concurrent readers and writers, and none is allocated
//! when as many were needed before.

use crate::base::{Desc, Result};
use crate::memory::{AlignedBuffer, Bytes, BytesMut, View};
use crate::sync::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// Maximum number of unused versions kept.
const MOST_SPARE: usize = 4;

pub(super) struct Version {
    view: View,
    _memory: AlignedBuffer,
}

impl Version {
    /// The value of a version that is or was current: it is not written while it has a holder.
    pub fn value(&self) -> Bytes<'_> {
        // SAFETY: only `Blank` writes, before others can have it.
        unsafe { self.view.as_bytes() }
    }

    fn create(desc: &Desc, what: &str) -> Result<Arc<Version>> {
        let memory = AlignedBuffer::zeroed(desc.bytes()?, what)?;
        // SAFETY: the buffer's, which the version keeps, and which is aligned for every element.
        let view = unsafe { View::new(memory.data(), memory.bytes(), *desc) };
        Ok(Arc::new(Version { view, _memory: memory }))
    }
}

/// A version with exclusive use.
pub(super) struct Blank(Arc<Version>);

impl Blank {
    pub fn value(&mut self) -> BytesMut<'_> {
        // SAFETY: nothing else has it.
        unsafe { self.0.view.as_bytes_mut() }
    }
}

struct VersionState {
    current: Arc<Version>,
    /// Former versions, and rejected ones. Some may still be read.
    spare: SmallVec<[Arc<Version>; MOST_SPARE]>,
}

pub(super) struct Versions {
    desc: Desc,
    state: Mutex<VersionState>,
}

impl Versions {
    pub fn create(desc: &Desc, what: &str, initial: Option<Bytes<'_>>) -> Result<Versions> {
        let mut first = Blank(Version::create(desc, what)?);
        if let Some(initial) = initial {
            first.value().copy_from(initial);
        }
        let Blank(current) = first;
        let state = Mutex::new(VersionState { current, spare: SmallVec::new() });
        Ok(Versions { desc: *desc, state })
    }

    pub fn current(&self) -> Arc<Version> {
        Arc::clone(&self.state.lock().current)
    }

    /// A version with exclusive use, to be written and then published or returned.
    pub fn blank(&self) -> Result<Blank> {
        let mut state = self.state.lock();
        // `get_mut` has seen that the last reader is gone.
        if let Some(at) = state.spare.iter_mut().position(|spare| Arc::get_mut(spare).is_some()) {
            return Ok(Blank(state.spare.swap_remove(at)));
        }
        drop(state);
        Version::create(&self.desc, "a version of a variable").map(Blank)
    }

    /// Makes it the current version; if `in_place_of` is given, only if that is still current. Returns it if not.
    pub fn publish(&self, version: Blank, in_place_of: Option<&Arc<Version>>) -> Result<(), Blank> {
        let mut state = self.state.lock();
        if in_place_of.is_some_and(|old| !Arc::ptr_eq(old, &state.current)) {
            return Err(version);
        }
        let old = std::mem::replace(&mut state.current, version.0);
        let gone = state.put_by(old);
        drop(state);
        drop(gone);
        Ok(())
    }

    pub fn give_back(&self, version: Blank) {
        let gone = self.state.lock().put_by(version.0);
        drop(gone);
    }

    /// Number of versions, with or without readers; those being written are not counted.
    pub fn count(&self) -> usize {
        1 + self.state.lock().spare.len()
    }
}

impl VersionState {
    /// Keeps a version for later; returns one that there is no room for.
    fn put_by(&mut self, version: Arc<Version>) -> Option<Arc<Version>> {
        if self.spare.len() < MOST_SPARE {
            self.spare.push(version);
            return None;
        }
        // A version that is being read is useless to the next writer: it goes with its reader.
        match self.spare.iter_mut().position(|spare| Arc::get_mut(spare).is_none()) {
            Some(at) => Some(std::mem::replace(&mut self.spare[at], version)),
            None => Some(version),
        }
    }
}
