//! The inner loops of the built-in kernels. They know numbers and addresses, not descriptors or regions; the
//! exception are the matrix products, which cut their own work because their tiles are not contiguous.
//!
//! - `isa`: which instruction sets are used, for all of them.
//! - `gemm`: the matrix product: blocks, panels, tiles; `micro`: its innermost loop per instruction set; `pack`:
//!   its copying. `int8`: the same of bytes.
//! - `site`: where a product is computed, and on what: matrices, scratch memory, a region.
//! - `standalone`: products that belong to no engine, on a pool given by the call.
//! - `elementwise`: sums and rectifiers over slices.
//! - `softmax`, `argmax`: a few passes along rows, or along a stretch of neighbouring columns.
//! - `dots`: the product of a few rows with weights that lie along K; `panels`: weights packed once.
//! - `finish`: what follows a product; `functions`: sigmoid, tanh and their kind.
//! - `conv`, `pooling`: windows over images and signals. `cell`: the gates of recurrent cells.
//! - `lanes`: arithmetic on vectors of every instruction set, for formulas that are written once.
//! - `columns`: mutable access to a stretch of columns of an output.

pub mod argmax;
pub mod cell;
pub mod columns;
pub mod conv;
mod dots;
pub mod elementwise;
pub mod finish;
pub mod functions;
pub mod gemm;
pub mod int8;
pub mod isa;
mod lanes;
pub mod micro;
mod pack;
pub mod panels;
pub mod pooling;
pub mod site;
pub mod softmax;
pub mod standalone;
pub mod window;

#[cfg(test)]
mod gemm_tests;
