//! The entry points. Each file has those of one subject, and says only what the real driver's documents do not.

use crate::call::Entry;

mod capture;
mod context;
mod copy;
mod device;
mod event;
mod exec;
mod fake;
mod graph;
mod host;
mod init;
mod launch;
mod memory;
mod module;
mod node;
pub mod object;
mod pool;
mod stream;

pub(crate) static ENTRIES: &[&[Entry]] = &[
    init::ENTRIES,
    device::ENTRIES,
    context::ENTRIES,
    stream::ENTRIES,
    event::ENTRIES,
    memory::ENTRIES,
    pool::ENTRIES,
    host::ENTRIES,
    copy::ENTRIES,
    module::ENTRIES,
    launch::ENTRIES,
    graph::ENTRIES,
    node::ENTRIES,
    exec::ENTRIES,
    object::ENTRIES,
    capture::ENTRIES,
];
