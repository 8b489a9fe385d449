//! What crosses the border to the host's pool: its vtable, and the closures (a C function and a pointer) that weir
//! hands over.

mod region;
mod task;
mod ticket;
mod vtable;

pub use region::{DEFAULT_HOP_NS, MAX_SLOTS, Regions, Span, parallel_for};
pub use task::Task;
pub use ticket::{Job, Tickets};
pub use vtable::HostVtable;
