//! What all runs of a program share.
#![forbid(unsafe_code)]

use super::exec::Admission;
use super::figures::{NodeFigures, Tallies};
use super::learned::Learned;
use super::plan::Plan;
use std::sync::Arc;

pub(in crate::graph) struct Compiled {
    pub plan: Plan,
    pub learned: Learned,
    /// Figures of every node, if they were asked for.
    pub figures: Option<NodeFigures>,
    /// Of the whole program's runs and of those of its parts.
    pub tallies: Arc<Tallies>,
    /// The bound on runs at once, of the whole program's and of those of its parts.
    pub admission: Option<Arc<Admission>>,
}
