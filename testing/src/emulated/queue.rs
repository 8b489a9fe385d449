//! Items in a queue of the device.
#![forbid(unsafe_code)]

use super::core::Core;
use super::operation::DeviceOperation;
use super::replay::Replay;
use crate::base::{Error, Fifo};
use std::sync::Arc;

pub(super) enum ItemKind {
    Operation(Box<DeviceOperation>),
    /// Operations, some of which may run in any order.
    Replay(Box<Replay>),
    /// Waits until the event was reached for this time.
    Wait(Arc<Core>, u64),
    Record(Arc<Core>),
    /// Clears the failure.
    Clear,
}

pub(super) struct Item {
    /// Its number among all items of the device.
    pub sequence: u64,
    /// The modelled time of its submission.
    pub issued_ns: u64,
    pub what: ItemKind,
}

/// An operation that has begun.
pub(super) struct Busy {
    /// When it is done; `None` while its function runs.
    pub until: Option<u64>,
    pub failure: Option<Error>,
}

pub(super) struct EmulatedQueue {
    pub name: String,
    pub priority: i32,
    /// The queue's slot in the checker, if there is one.
    pub slot: usize,
    pub items: Fifo<Item>,
    pub busy: Option<Busy>,
    /// The modelled time at which the last item was done.
    pub time: u64,
    pub failure: Option<Error>,
    /// A stream can still submit to it.
    pub is_open: bool,
}

impl EmulatedQueue {
    pub(super) fn is_over(&self) -> bool {
        !self.is_open && self.items.is_empty() && self.busy.is_none()
    }
}
