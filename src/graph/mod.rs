//! Dataflow graphs: building, compiling, running.
//!
//! A folder imports only folders to its left (`tests/layering.rs`):
//!
//! `build -> plan -> loops -> carry -> compile -> observe -> run`
//!
//! - `build`: a graph as the host has built it, its settings, and what is checked of it.
//! - `plan`: a program as data, which nothing changes once it is compiled.
//! - `loops`: the protocol of loops of which several iterations run at once.
//! - `carry`: `RunState`, which holds everything that one run changes, `Learned`, and the carriers that take a run
//!   through its plan: threads of the host (`carry/host`) and devices (`carry/device`).
//! - `compile`: the passes from a graph to a plan.
//! - `observe`: reports, drawings and learned costs as text.
//! - `run`: programs, and every way to run one.
//!
//! Above them stand `Graph`, which collects nodes (`builder`), and the list of passes (`create`).

mod build;
mod builder;
mod carry;
mod compile;
mod create;
mod loops;
mod observe;
mod plan;
mod run;

pub use build::ids::{NodeId, ValueId};
pub use build::options::{CompileOptions, Forwarding, RunOptions};
pub use builder::Graph;
pub use carry::figures::{NodeStats, ProgramCounters};
pub use compile::communicate::Communicated;
pub use observe::dump::DumpFormat;
pub use observe::report::ReportFormat;
pub use plan::Port;
pub use run::bind::Bound;
pub use run::handle::Run;
pub use run::partial::MOST_PARTS;
pub use run::program::Program;
