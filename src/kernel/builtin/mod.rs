//! The arithmetic of the built-in operators (`ops` describes them), in f32 except for data movement: how their work is
//! divided. The inner loops are in `vector`.
//!
//! Determinism: the beginning of a piece of work depends on the pool, but each element of a result, and each row
//! reduced to one number, is computed by one piece, in an order that depends only on the shapes.

mod axis;
mod binary;
mod broadcast;
mod cell;
mod chain;
mod conv;
mod conv_int8;
mod conv_transpose;
mod convert;
mod cumsum;
mod eltwise;
mod grid_sample;
mod late;
mod lrn;
mod matmul;
mod matmul_int8;
pub mod movement;
mod nms;
mod nonzero;
mod norm;
mod operation;
mod packed;
mod pooling;
mod quantize;
mod range;
mod reduce;
mod resize;
mod select;
mod sequence;
mod shape;
mod softmax;
mod topk;

pub use late::Late;
pub use operation::{Builtin, BuiltinOperation};
pub use packed::Packed;

use super::KernelContext;
use crate::base::Desc;

/// Minimum cost of a call, in nanoseconds.
const LEAST_NS: u64 = 100;
/// Minimum number of elements in a piece of an elementwise operation: about a microsecond.
const GRAIN: usize = 4 << 10;
/// Time to read or write a float at 40 GB/s, which is between the bandwidths of caches and of memory for one thread.
const NS_PER_FLOAT: f32 = 0.1;

/// The elements of an f32 input.
fn input<'a>(context: &'a KernelContext<'_>, index: usize) -> &'a [f32] {
    let input = context.input(index);
    &input.read::<f32>()[..elements(input.desc())]
}

/// Number of elements of a checked descriptor.
fn elements(desc: &Desc) -> usize {
    desc.elements().unwrap_or(0)
}

/// Time to read and write this many floats.
fn traffic_ns(floats: usize) -> u64 {
    (floats as f32 * NS_PER_FLOAT) as u64
}

#[cfg(all(test, not(loom)))]
mod cell_tests;
#[cfg(all(test, not(loom)))]
pub(super) mod fixture;
#[cfg(all(test, not(loom)))]
mod fixture_elements;
#[cfg(all(test, not(loom)))]
mod matmul_int8_tests;
#[cfg(all(test, not(loom)))]
mod matmul_tests;
#[cfg(all(test, not(loom)))]
mod sequence_tests;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(all(test, not(loom)))]
mod tests_elements;
#[cfg(all(test, not(loom)))]
mod tests_storage;
#[cfg(all(test, not(loom)))]
mod volume_tests;
#[cfg(all(test, not(loom)))]
mod window_tests;
