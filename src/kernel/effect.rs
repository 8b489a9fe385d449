//! Side effects of a kernel: reads and writes besides its tensors.
#![forbid(unsafe_code)]

use std::sync::Arc;

/// An object that calls of a kernel read or write.
#[derive(Clone, Debug)]
pub struct Effect {
    /// The object's number, unique in this process.
    pub thing: u64,
    /// "variable 'x' of container 'default'"
    pub name: Arc<str>,
    pub writes: bool,
    /// Whether a graph must state the order of its reads and writes.
    pub is_ordered: bool,
    /// A remedy if it does not: "add a control edge".
    pub remedy: &'static str,
}
