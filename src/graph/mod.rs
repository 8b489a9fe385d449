//! Dataflow graphs: building, compiling, running.
//!
//! `builder` collects nodes; `compile` checks them and lays a `Program` out in arrays; `exec` runs it. A program is
//! immutable and shared; each run uses a `Step`, which holds everything that changes, and which the program keeps
//! for the next run.
#![forbid(unsafe_code)]

mod builder;
mod compile;
mod copy;
mod dump;
mod dynamics;
mod exec;
mod figures;
mod homes;
mod ids;
mod layout;
mod many;
mod names;
mod nested;
mod options;
mod overlap;
mod partial;
mod place;
mod presence;
mod profile;
mod program;
mod raise;
mod report;
mod shapes;
mod verify;
mod ways;
mod weigh;

pub use builder::Graph;
pub use dump::DumpFormat;
pub use exec::{Bound, Run};
pub use figures::{NodeStats, ProgramCounters};
pub use ids::{NodeId, ValueId};
pub use layout::Port;
pub use options::{CompileOptions, Forwarding, RunOptions};
pub use partial::MOST_PARTS;
pub use program::Program;
pub use report::ReportFormat;
