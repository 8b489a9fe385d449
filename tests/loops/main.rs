//! Loops that run several iterations at once, and loops that compile writes out.

mod ends;
mod inside;
#[path = "../kit/mod.rs"]
mod kit;
mod overlap;
mod pipeline;
mod unroll;
