//! Running programs.

pub mod atomic;
pub mod block;
pub mod call;
pub mod fault;
pub mod memory;
pub mod thread;
pub mod warp;
