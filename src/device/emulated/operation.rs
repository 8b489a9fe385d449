//! What a device does one by one: kernels, copies, fills, and looks at its memory.
#![forbid(unsafe_code)]

use super::region::Form;
use crate::base::Error;
use crate::device::{HostAddress, Predicate};
use crate::memory::{AddressReserve, View};
use std::sync::Arc;

/// What an operation does.
#[derive(Clone)]
pub(super) enum Act {
    Nothing,
    /// With its scratch memory.
    Launch(Arc<Form>, usize),
    Copy {
        to: Address,
        from: Address,
        bytes: usize,
    },
    Fill {
        to: usize,
        bytes: usize,
        value: u8,
    },
    /// Reads what a branch or loop goes by.
    Read(Predicate),
}

/// Where a copy reads or writes.
#[derive(Clone)]
pub(super) enum Address {
    Host(HostAddress),
    Own(usize),
    /// On another device.
    Peer(Arc<AddressReserve>, usize),
}

impl Address {
    pub(super) fn number(&self) -> usize {
        match self {
            Address::Host(address) => address.get(),
            Address::Own(address) | Address::Peer(_, address) => *address,
        }
    }
}

/// A kernel, a copy or a fill. Taken from a stock and given back to it, with the room that its lists have.
pub(super) struct Operation {
    /// 1 = the first of the device.
    pub number: u64,
    /// 1 = the device's first copy; 0 for others.
    pub copy: u64,
    pub name: String,
    pub act: Act,
    pub inputs: Vec<View>,
    pub outputs: Vec<View>,
    /// What it takes at least.
    pub duration_ns: u64,
    /// The bytes of a copy that took them when it was submitted.
    pub staged: Option<Vec<u8>>,
    /// The checker's verdict, if operations fail for that.
    pub refused: Option<Error>,
    /// The integer that it has read, or whether what it has compared holds.
    pub found: i64,
}

/// One with room for most: which operation of a program gets which of the stock is a matter of timing.
impl Default for Operation {
    fn default() -> Operation {
        Operation {
            number: 0,
            copy: 0,
            name: String::with_capacity(64),
            act: Act::Nothing,
            inputs: Vec::with_capacity(4),
            outputs: Vec::with_capacity(4),
            duration_ns: 0,
            staged: None,
            refused: None,
            found: 0,
        }
    }
}

impl Operation {
    pub(super) fn clear(&mut self) {
        self.name.clear();
        self.act = Act::Nothing;
        self.inputs.clear();
        self.outputs.clear();
        self.refused = None;
    }
}

/// How many there were.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub operations: u64,
    pub launches: u64,
    pub copies: u64,
    pub pageable_copies: u64,
    pub fills: u64,
    pub waits: u64,
    pub records: u64,
    pub replays: u64,
}
