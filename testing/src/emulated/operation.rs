//! The device's operations: kernels, copies, fills, and reads of its memory.
#![forbid(unsafe_code)]

use super::region::Form;
use super::reserve::AddressReserve;
use crate::base::Error;
use crate::memory::View;
use crate::predicate::Predicate;
use std::sync::Arc;

/// The action of an operation.
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
    /// Reads the predicate of a branch or loop.
    Read(Predicate),
}

/// A host address that is valid until the copy is done, for each time that it is made.
#[derive(Clone, Copy)]
pub(super) struct HostAddress(usize);

impl HostAddress {
    /// Of memory that weir vouches for: nobody writes a source meanwhile, and nobody else uses a target.
    pub(super) fn new(address: usize) -> HostAddress {
        HostAddress(address)
    }

    pub(super) fn get(self) -> usize {
        self.0
    }
}

/// The source or target of a copy.
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

/// A kernel, a copy or a fill. Taken from a pool of operations and returned to it, with its lists' capacity.
pub(super) struct DeviceOperation {
    /// The device's first is 1.
    pub number: u64,
    /// The device's first copy is 1; 0 for others.
    pub copy: u64,
    pub name: String,
    pub act: Act,
    pub inputs: Vec<View>,
    pub outputs: Vec<View>,
    /// Its minimum duration.
    pub duration_ns: u64,
    /// The bytes of a copy that were staged as it was submitted.
    pub staged: Option<Vec<u8>>,
    /// The checker's error, if operations fail because of races.
    pub refused: Option<Error>,
    /// The integer that it has read, or whether the comparison holds.
    pub found: i64,
}

/// Reserves room for most operations: timing decides which of a program's operations gets which object of the pool.
impl Default for DeviceOperation {
    fn default() -> DeviceOperation {
        DeviceOperation {
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

impl DeviceOperation {
    pub(super) fn clear(&mut self) {
        self.name.clear();
        self.act = Act::Nothing;
        self.inputs.clear();
        self.outputs.clear();
        self.refused = None;
    }
}

/// How many of each kind there were.
#[derive(Clone, Copy, Default)]
pub(super) struct OperationCounts {
    pub operations: u64,
    pub launches: u64,
    pub copies: u64,
    pub pageable_copies: u64,
    pub fills: u64,
    pub waits: u64,
    pub records: u64,
    pub replays: u64,
}
