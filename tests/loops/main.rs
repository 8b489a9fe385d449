//! Loops that run several iterations at once, and loops that compile writes out.

mod ends;
mod inside;
mod kit;
mod overlap;
#[path = "../pools/mod.rs"]
mod pools;
mod unroll;
