//! The types of the C interface.

#[path = "../../src/abi/mod.rs"]
mod of_weir;

pub use crate::emulation::*;
pub use of_weir::*;
