//! What all runs of a program share.
#![forbid(unsafe_code)]

use super::admission::Admission;
use super::figures::{NodeFigures, NodeStats, Tallies};
use super::learned::Learned;
use crate::base::Result;
use crate::graph::plan::Plan;
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

impl Compiled {
    /// The figures of the nodes, in the program's order; none for a program without.
    pub fn node_stats(&self) -> impl Iterator<Item = NodeStats> {
        let figures = self.figures.iter();
        figures.flat_map(|figures| {
            (0..self.plan.len()).map_while(|index| Some(figures.of(index)?.told(self.plan.names.get(index))))
        })
    }
}

/// What runs have on devices.
pub(in crate::graph) trait Frames: Send + Sync {
    /// For one run at a time.
    fn make(&self) -> Result<Arc<Frame>>;
}
