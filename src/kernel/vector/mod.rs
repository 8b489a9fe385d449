//! The inner loops of the built-in kernels. They know numbers and addresses, not descriptors or regions. The exception
//! are the matrix products, which divide their own work because their tiles are not contiguous.
//!
//! - `isa`: the instruction sets in use, for all of them; `amx`: whether the process may use AMX.
//! - `gemm`: the matrix product: its division; `piece`: blocks, panels, tiles; `micro`, `tile`: its innermost loop per
//!   instruction set; `pack`: its packing; `thin`, `thin_turned`: a few rows, without packing. `int8`: int8 products;
//!   `halves`: f16 and bf16 products.
//! - `site`: the environment of a product: matrices, scratch memory, a region.
//! - `standalone`: products without an engine, on a pool given by the call.
//! - `eltwise`: unary elementwise functions, in place or not; `elements`: access that allows in place; `functions`:
//!   exponentials, logarithms and the like; `real`: register operations for these.
//! - `softmax`: a few passes along rows, or along a stripe of neighbouring columns.
//! - `softmax_short`: short rows side by side; `softmax_terms`: what both have in common; `softmax_halves`: softmax of
//!   f16 and bf16; `norm`: normalisation.
//! - `dots`: the product of a few rows with weights that lie along K; `panels`: weights packed once.
//! - `finish`: the epilogue of a product; `activation`: sigmoid, tanh and others for it.
//! - `conv`, `pooling`: windows over images and signals; `strip`: the image under a few windows; `sliding`: registers
//!   along them. `cell`: the gates of recurrent cells; `recurrent`: all steps of a sequence, `recurrent_shape`:
//!   its sizes and operands, `recurrent_tile`: its innermost loop.
//! - `lanes`: arithmetic on vectors of every instruction set, for formulas that are written once; `wide`: sixteen lanes
//!   on all of them, for sums with identical bits.
//! - `binary`: binary elementwise functions. `affine`: scales and zero points.
//! - `movement`: copies between layouts, transposition.
//! - `levels`: plain loops, compiled for every instruction set; `reduce`: reductions over any dimensions.
//! - `topk`: the best elements of rows; `nms`: the best boxes; `nonzero`: elements that are not 0.
//! - `grid_sample`: elements at places of a grid.
//! - `transposed`: products that are added up in windows.
//! - `convert`: slices between storage types and f32.
//! - `columns`: mutable access to stripes of columns of an output.

pub mod activation;
pub mod affine;
#[cfg(target_arch = "x86_64")]
mod amx;
pub mod binary;
mod caches;
pub mod cell;
mod column;
pub mod columns;
pub mod conv;
pub mod convert;
mod dots;
pub mod elements;
pub mod eltwise;
pub mod finish;
mod functions;
pub mod gemm;
pub mod grid_sample;
pub mod halves;
mod held;
pub mod int8;
pub mod isa;
mod lanes;
pub mod levels;
pub mod micro;
pub mod movement;
pub mod nms;
pub mod nonzero;
pub mod norm;
mod pack;
pub mod panels;
mod piece;
pub mod pooling;
mod product;
mod real;
pub mod recurrent;
mod recurrent_shape;
mod recurrent_tile;
pub mod reduce;
pub mod site;
mod sliding;
pub mod softmax;
pub mod softmax_halves;
#[cfg(target_arch = "x86_64")]
mod softmax_short;
mod softmax_terms;
pub mod standalone;
mod step;
mod strip;
mod thin;
mod thin_turned;
mod tile;
pub mod topk;
pub mod transposed;
mod wide;

pub use crate::ops::axis as window;

#[cfg(all(test, not(loom)))]
mod gemm_tests;
#[cfg(all(test, not(loom)))]
mod pieces_tests;
