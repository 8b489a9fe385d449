//! A graph as the host has built it (nodes, values, settings), and its checks.
#![forbid(unsafe_code)]

pub(in crate::graph) mod contents;
pub(in crate::graph) mod ids;
pub(in crate::graph) mod options;
pub(in crate::graph) mod presence;
pub(in crate::graph) mod shapes;
pub(in crate::graph) mod verify;
