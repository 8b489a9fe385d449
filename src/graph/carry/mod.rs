//! The state of one run, the costs that all runs have learned, and the carriers, which take a run through its plan.

pub(in crate::graph) mod admission;
pub(in crate::graph) mod arrivals;
pub(in crate::graph) mod calls;
pub(in crate::graph) mod compiled;
pub(in crate::graph) mod counters;
pub(in crate::graph) mod device;
pub(in crate::graph) mod figures;
pub(in crate::graph) mod held;
pub(in crate::graph) mod helpers;
pub(in crate::graph) mod host;
pub(in crate::graph) mod learned;
pub(in crate::graph) mod merged;
#[cfg(all(test, loom))]
mod models_of_branches;
#[cfg(all(test, loom))]
pub(in crate::graph) mod models_of_propagation;
pub(in crate::graph) mod orders;
pub(in crate::graph) mod progress;
pub(in crate::graph) mod queue;
pub(in crate::graph) mod ready_set;
pub(in crate::graph) mod run_hooks;
pub(in crate::graph) mod semaphore;
pub(in crate::graph) mod state;
pub(in crate::graph) mod stretches;
pub(in crate::graph) mod traced;
pub(in crate::graph) mod ways;
