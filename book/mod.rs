//! What is made from `src/abi`, `src/ops`, `src/ffi` and `testing/src` by the build.

#[cfg(feature = "headers")]
pub mod headers;
pub mod left_out;
pub mod operators;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
