//! The facts of a program that only compile knows; all others can be seen in the plan.
#![forbid(unsafe_code)]

use super::communicate::Communicated;
use super::fuse::Fusion;
use super::place::choose::EngineChoice;
use super::place::placer::Placement;
use crate::graph::build::options::CompileOptions;

/// Counts of compile's, for the report.
#[derive(Clone, Default)]
pub(in crate::graph) struct CompileFacts {
    pub options: CompileOptions,
    /// Nodes of the graph and of those inside of it.
    pub graph_nodes: usize,
    /// How many programs lie inside one another in the graph.
    pub programs: usize,
    /// Whether a node of the graph, or of those inside of it, does more than compute its outputs.
    pub has_side_effects: bool,
    pub dead_nodes: usize,
    pub folded: usize,
    /// Nodes that could be done at the end of others, of the graph and of those inside of it.
    pub fusions: Vec<Fusion>,
    pub parallel_edges: usize,
    /// Edges, for data or control, that others imply.
    pub implied_edges: usize,
    /// Counters for more arrivals than one can take.
    pub wide_joins: usize,
    /// Variables of loops whose next value is written over the last one.
    pub in_place: usize,
    /// Outputs that took over an input's memory.
    pub forwarded: usize,
    /// Nodes that copy a value into an output.
    pub copies: usize,
    /// Nodes of loops' slots but the first.
    pub copied: usize,
    /// Loops that run fewer iterations at once than they may.
    pub held_back: usize,
    /// Loops that were unrolled.
    pub unrolled: usize,
    pub arena_bytes_unshared: usize,
    /// The work of other engines.
    pub placement: Placement,
    /// Communications, in the order in which they were added.
    pub communications: Vec<Communicated>,
    /// Where nodes are whose engine was open.
    pub choices: Vec<EngineChoice>,
}
