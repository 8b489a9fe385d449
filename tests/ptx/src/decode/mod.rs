//! From the tree to operations.

mod arithmetic;
mod builder;
mod control;
mod convert;
mod float;
mod link;
mod memory;
mod modifiers;
mod warp;

pub use link::link;
