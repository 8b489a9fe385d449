//! The passes from a graph to a program.

pub(in crate::graph) mod communicate;
pub(in crate::graph) mod facts;
pub(in crate::graph) mod fold;
pub(in crate::graph) mod fuse;
pub(in crate::graph) mod layout;
pub(in crate::graph) mod place;
pub(in crate::graph) mod raise;
mod sizes;
