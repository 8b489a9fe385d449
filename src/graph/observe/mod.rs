//! Readers of plans and runs: drawings, reports and learned costs as text.
#![forbid(unsafe_code)]

pub(in crate::graph) mod dump;
pub(in crate::graph) mod report;
pub(in crate::graph) mod saved_costs;

use crate::graph::carry::compiled::Compiled;
use crate::graph::compile::facts::CompileFacts;

/// A list of outputs for which the program keeps a partial program.
pub(in crate::graph) struct KeptPart {
    pub outputs: Box<[usize]>,
    pub nodes: usize,
    pub arena_bytes: usize,
}

/// The subject of a report.
pub(in crate::graph) struct Subject<'a> {
    pub compiled: &'a Compiled,
    pub facts: &'a CompileFacts,
    /// `None`: the program keeps no parts.
    pub parts: Option<Vec<KeptPart>>,
}
