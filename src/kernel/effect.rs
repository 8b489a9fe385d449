//! What a kernel reads and writes besides its tensors.
#![forbid(unsafe_code)]

use std::sync::Arc;

/// One thing that calls of a kernel read or write.
#[derive(Clone, Debug)]
pub struct Effect {
    /// The thing, by a number that nothing else in this process has.
    pub thing: u64,
    /// "variable 'x' of container 'default'"
    pub name: Arc<str>,
    pub writes: bool,
    /// Whether a graph must say in which order it is read and written.
    pub is_ordered: bool,
    /// What may be done if it does not: "add a control edge".
    pub remedy: &'static str,
}
