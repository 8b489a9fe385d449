//! Loops that run several iterations at once: the ring of their slots.

#[cfg(all(test, loom))]
mod models;
pub(in crate::graph) mod ring;
