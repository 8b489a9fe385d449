//! What compile has done, as text and as JSON.
#[derive(Clone, Debug, Default)]
pub(in crate::graph) struct Compiled {}
