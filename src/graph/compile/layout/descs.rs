//! Descriptors, each once: most of a graph's values look alike.
#![forbid(unsafe_code)]

use crate::base::index::{HashIndex, mix};
use crate::base::{Desc, Result};

/// The descriptors, and how many bytes a tensor has that looks like it: none if a run decides.
#[derive(Default)]
pub(super) struct Descs {
    pub list: Vec<(Desc, usize)>,
    index: HashIndex,
    /// The one that was asked for last.
    last: u32,
}

impl Descs {
    /// The number of a descriptor.
    pub fn number(&mut self, desc: &Desc) -> Result<u32> {
        if self.list.get(self.last as usize).is_some_and(|(last, _)| last == desc) {
            return Ok(self.last);
        }
        let kind = u64::from(desc.dtype) << 32 | u64::from(desc.rank);
        let hash = desc.shape().iter().fold(kind, |hash, &dim| mix(hash, dim as u64));
        let found = self.index.find(hash, |number| self.list[number as usize].0 == *desc);
        self.last = match found {
            Some(number) => number,
            None => {
                let bytes = if desc.is_concrete() { desc.bytes()? } else { 0 };
                self.index.reserve("the descriptors of a program")?;
                self.index.insert(hash, self.list.len() as u32);
                self.list.push((*desc, bytes));
                self.list.len() as u32 - 1
            }
        };
        Ok(self.last)
    }

    pub fn get(&self, number: u32) -> &Desc {
        &self.list[number as usize].0
    }

    pub fn bytes(&self, number: u32) -> usize {
        self.list[number as usize].1
    }
}
