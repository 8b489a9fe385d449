//! The objects that all runs of a program share.
#![forbid(unsafe_code)]

use super::admission::Admission;
use super::figures::{NodeFigures, NodeStats, Tallies};
use super::learned::Learned;
use crate::base::Result;
use crate::engine::Engine;
use crate::graph::plan::Plan;
use crate::kernel::{Frame, RunListener};
use crate::trace::Explained;
use std::sync::Arc;

pub(in crate::graph) struct Compiled {
    pub plan: Plan,
    pub learned: Learned,
    /// Statistics of every node, if they were asked for.
    pub figures: Option<NodeFigures>,
    /// Counts the whole program's runs and those of its parts.
    pub tallies: Arc<Tallies>,
    /// Bounds the concurrent runs of the whole program and of its parts.
    pub admission: Option<Arc<Admission>>,
    /// Set if other engines run some of it.
    pub frames: Option<Arc<dyn Frames>>,
    /// Told how each run ends, and whether nodes in loops have some of them.
    pub listeners: Vec<Arc<dyn RunListener>>,
    pub listens_in_loops: bool,
    /// The part that traces know.
    pub explained: Explained,
}

impl Compiled {
    /// The same for a whole program and its parts, and for no other program that is alive.
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.tallies).addr()
    }

    /// The statistics of the nodes, in the program's order; none for a program without.
    pub fn node_stats(&self) -> impl Iterator<Item = NodeStats> {
        let figures = self.figures.iter();
        figures.flat_map(|figures| {
            (0..self.plan.len()).map_while(|index| Some(figures.of(index)?.told(self.plan.names.get(index))))
        })
    }
}

/// Makes the device memory and streams of runs.
pub(in crate::graph) trait Frames: Send + Sync {
    /// For one run at a time.
    fn make(&self) -> Result<Arc<Frame>>;

    /// Whether this holds of one of the devices' engines.
    fn any_engine(&self, is: &dyn Fn(&Engine) -> bool) -> bool;
}
