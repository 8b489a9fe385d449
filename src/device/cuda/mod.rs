//! CUDA devices.

mod images;
mod operators;
pub mod plan;
mod walk;

pub use operators::operator;
