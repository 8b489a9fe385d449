//! The inner loops of the built-in kernels. They know numbers and addresses, not descriptors or regions; the
//! exception is `gemm`, which cuts its own work because its tiles are not contiguous.
//!
//! - `gemm`: the matrix product: blocks, panels, tiles; `micro`: its innermost loop per instruction set; `pack`:
//!   its copying.
//! - `elementwise`: sums and rectifiers over slices.
//! - `softmax`, `argmax`: one pass or two along rows, or along a stretch of neighbouring columns.
//! - `columns`: mutable access to a stretch of columns of an output.

pub mod argmax;
pub mod columns;
pub mod elementwise;
pub mod gemm;
mod micro;
mod pack;
pub mod softmax;

#[cfg(test)]
mod gemm_tests;
