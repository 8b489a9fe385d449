//! What crosses the border to the host's pool: its vtable, and the closures (a C function and a pointer) that weir
//! hands over.
//!
//! `checked`, `checks`, `record` and `frame` are the watch that can be put between weir and a host's pool.

mod call;
mod checked;
mod checks;
mod export;
mod frame;
pub mod group;
mod parallel;
mod record;
mod region;
mod shell;
mod task;
mod ticket;
mod vtable;

pub use call::HostCall;
pub use checked::{Checked, any_guarded, sweep};
pub use checks::{Checks, Conduct};
pub use export::{into_ctx, vtable_of};
pub use parallel::{parallel_for, parallel_for_then};
pub use region::{Epilogue, Regions};
pub use shell::{Life, Shell};
pub use task::Task;
pub use ticket::{Job, Need, Tickets, Want, Wanted};
pub use vtable::HostVtable;
