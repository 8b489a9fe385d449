//! Places of the storages.

use super::flat::{Flat, StorageKind};
use crate::base::{Error, Result};
use crate::graph::layout::Place;
use crate::memory::ALIGNMENT;

pub(super) struct Places {
    pub of: Vec<Place>,
    pub arena_bytes: usize,
}

pub(super) fn places(flat: &mut Flat) -> Result<Places> {
    let mut arena_bytes = 0usize;
    let mut of = Vec::with_capacity(flat.storages.len());
    for storage in &flat.storages {
        of.push(match storage.kind {
            StorageKind::Arena => {
                let at = arena_bytes;
                arena_bytes = at
                    .checked_add(storage.bytes)
                    .and_then(|end| end.checked_next_multiple_of(ALIGNMENT))
                    .ok_or_else(|| Error::out_of_range("the program's values are larger than memory can hold"))?;
                Place::Arena(at)
            }
            StorageKind::Constant(i) => Place::Constant(i),
            StorageKind::Input(i) => Place::Input(i),
            StorageKind::Output(i) => Place::Output(i),
        });
    }
    flat.facts.arena_bytes_unshared = arena_bytes;
    Ok(Places { of, arena_bytes })
}
