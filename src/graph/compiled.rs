//! What all runs of a program share.
#![forbid(unsafe_code)]

use super::exec::Admission;
use super::figures::{NodeFigures, Tallies};
use super::learned::Learned;
use super::plan::Plan;
use crate::base::Result;
use crate::kernel::Frame;
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
    /// If other engines do some of it.
    pub frames: Option<Arc<dyn Frames>>,
}

/// What runs have on devices.
pub(in crate::graph) trait Frames: Send + Sync {
    /// For one run at a time.
    fn make(&self) -> Result<Arc<Frame>>;
}
