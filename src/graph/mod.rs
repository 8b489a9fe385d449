//! Dataflow graphs: building, compiling, running.
//!
//! `builder` collects nodes; `compile` checks them and lays a `Program` out in arrays; `exec` runs it. A program is
//! immutable and shared; each run uses a `RunState`, which holds everything that changes, and which the program keeps
//! for the next run.

mod builder;
mod compile;
mod compiled;
mod contents;
mod copy;
mod create;
mod dump;
mod exec;
mod facts;
mod figures;
mod ids;
mod learned;
mod many;
mod nested;
mod options;
mod partial;
mod place;
mod plan;
mod presence;
mod profile;
mod program;
mod raise;
mod report;
mod run_pool;
mod shapes;
mod verify;
mod ways;

pub use builder::Graph;
pub use dump::DumpFormat;
pub use exec::{Bound, Run};
pub use figures::{NodeStats, ProgramCounters};
pub use ids::{NodeId, ValueId};
pub use options::{CompileOptions, Forwarding, RunOptions};
pub use partial::MOST_PARTS;
pub use plan::Port;
pub use program::Program;
pub use report::ReportFormat;
