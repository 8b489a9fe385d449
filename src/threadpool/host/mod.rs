//! The border to the host's pool: its vtable, and the closures (a C function and a pointer) that weir hands over.
//!
//! `checked`, `checks`, `keys`, `record` and `frame` are the checker that can be put between weir and a host's pool.

mod budget;
mod call;
mod checked;
mod checks;
mod export;
mod frame;
pub mod group;
mod help_wanted;
mod keys;
mod life;
#[cfg(all(test, loom))]
mod models_of_regions;
mod parallel;
mod record;
mod region;
mod shell;
mod task;
mod ticket;
mod tickets;
mod vtable;

pub use call::HostCall;
pub use checked::{Checked, any_guarded, sweep};
pub use checks::{Checks, Conduct};
pub use export::{into_ctx, vtable_of};
pub use life::PoolLife;
pub use parallel::{help_region_of, help_wanted, lend_a_hand, parallel_for, parallel_for_then};
pub use region::{Epilogue, ParallelRegions};
pub use shell::{Shell, ShellStore};
pub use task::RawTask;
pub use ticket::{HelpAnswer, HelpRequest};
pub use tickets::Tickets;
pub use vtable::HostVtable;
