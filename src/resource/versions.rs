//! The value of an optimistic variable: one version after the other.
//!
//! Whoever holds a version may read it as long as they like: it is never written again. A version that nobody holds any
//! more is written by the next writer, so there are as many as there are readers and writers at once, and none is made
//! when as many were needed before.

use crate::base::{Desc, Result};
use crate::memory::{Buffer, View};
use crate::sync::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// Versions that nobody uses are kept up to this number.
const MOST_SPARE: usize = 4;

pub(super) struct Version {
    pub view: View,
    _memory: Buffer,
}

impl Version {
    fn create(desc: &Desc, what: &str) -> Result<Arc<Version>> {
        let memory = Buffer::zeroed(desc.bytes()?, what)?;
        Ok(Arc::new(Version { view: View::new(memory.data(), memory.bytes(), *desc), _memory: memory }))
    }
}

struct State {
    current: Arc<Version>,
    /// Versions that were current, or were not to be. Some may still be read.
    spare: SmallVec<[Arc<Version>; MOST_SPARE]>,
}

pub(super) struct Versions {
    desc: Desc,
    state: Mutex<State>,
}

impl Versions {
    pub fn create(desc: &Desc, what: &str) -> Result<Versions> {
        let current = Version::create(desc, what)?;
        let state = Mutex::new(State { current, spare: SmallVec::new() });
        Ok(Versions { desc: *desc, state })
    }

    pub fn current(&self) -> Arc<Version> {
        Arc::clone(&self.state.lock().current)
    }

    /// One that nobody else has, to be written and then published or given back.
    pub fn blank(&self) -> Result<Arc<Version>> {
        let mut state = self.state.lock();
        // `get_mut` has seen that the last reader is gone.
        if let Some(at) = state.spare.iter_mut().position(|spare| Arc::get_mut(spare).is_some()) {
            return Ok(state.spare.swap_remove(at));
        }
        drop(state);
        Version::create(&self.desc, "a version of a variable")
    }

    /// Makes it the current version; of `in_place_of`, if that is given, and only if that is still current. Gives it
    /// back if not.
    pub fn publish(&self, version: Arc<Version>, in_place_of: Option<&Arc<Version>>) -> Result<(), Arc<Version>> {
        let mut state = self.state.lock();
        if in_place_of.is_some_and(|old| !Arc::ptr_eq(old, &state.current)) {
            return Err(version);
        }
        let old = std::mem::replace(&mut state.current, version);
        let gone = state.put_by(old);
        drop(state);
        drop(gone);
        Ok(())
    }

    pub fn give_back(&self, version: Arc<Version>) {
        let gone = self.state.lock().put_by(version);
        drop(gone);
    }

    /// How many there are, read or not; those that are being written are not counted.
    pub fn count(&self) -> usize {
        1 + self.state.lock().spare.len()
    }
}

impl State {
    /// Keeps a version for later; gives back one that there is no room for.
    fn put_by(&mut self, version: Arc<Version>) -> Option<Arc<Version>> {
        if self.spare.len() < MOST_SPARE {
            self.spare.push(version);
            return None;
        }
        // One that is read is of no use to the next writer: it goes with its reader.
        match self.spare.iter_mut().position(|spare| Arc::get_mut(spare).is_none()) {
            Some(at) => Some(std::mem::replace(&mut self.spare[at], version)),
            None => Some(version),
        }
    }
}
