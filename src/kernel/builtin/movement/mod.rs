//! Data movement operations. They compute nothing, and take every element type by its size.

mod concat;
mod gather;
mod gather_elements;
mod gather_nd;
mod one_hot;
mod pad;
mod places;
mod reshape;
mod scatter;
mod slice;
mod tile;
mod transpose;

use super::LEAST_NS;
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::movement::{Movement, StridedDim};
use crate::kernel::{KernelContext, Outputs};
use crate::threadpool::Span;

/// Time to read and write a byte, and minimum bytes of a piece: about a microsecond.
const NS_PER_BYTE: f32 = 0.05;
const GRAIN: usize = 16 << 10;

/// Bytes of an element of a checked descriptor.
fn element(desc: &Desc) -> usize {
    dtype::size(desc.dtype).unwrap_or(1)
}

/// Byte strides of a dense tensor; arbitrary if it has no elements.
fn strides(desc: &Desc) -> [isize; MAX_RANK] {
    let mut strides = [0; MAX_RANK];
    let mut step = element(desc) as isize;
    for (stride, &dim) in strides.iter_mut().zip(desc.shape()).rev() {
        *stride = step;
        step = step.wrapping_mul(dim as isize);
    }
    strides
}

/// Time to read and write an output's bytes.
fn traffic_ns(output: &Desc) -> u64 {
    ((output.bytes().unwrap_or(0) as f32 * NS_PER_BYTE) as u64).max(LEAST_NS)
}

/// The copy of input 0 to output 0 with these source strides for the dimensions of the output.
fn movement(input: &Desc, output: &Desc, from: isize, steps: &[isize]) -> Movement {
    let to = strides(output);
    let mut dims = [StridedDim::default(); MAX_RANK];
    let rank = output.shape().len();
    for (i, dim) in dims[..rank].iter_mut().enumerate() {
        *dim = StridedDim { size: output.shape()[i] as usize, from: steps[i], to: to[i] };
    }
    Movement::new(element(input), &dims[..rank], from, 0)
}

/// Runs a movement in a region.
fn go(movement: &Movement, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
    let span = Span { items: movement.items(), cost_ns: movement.item_ns(), ..Span::default() };
    context.parallel_into(&span, movement.divide(context.input(0), outputs.only()), |part, _| {
        part.run();
        Ok(())
    })
}

/// Fills with copies of a pattern.
fn repeat(pattern: &[u8], out: &mut [u8]) {
    match pattern {
        [byte] => out.fill(*byte),
        &[a, b] => out.as_chunks_mut::<2>().0.fill([a, b]),
        &[a, b, c, d] => out.as_chunks_mut::<4>().0.fill([a, b, c, d]),
        &[a, b, c, d, e, f, g, h] => out.as_chunks_mut::<8>().0.fill([a, b, c, d, e, f, g, h]),
        _ => out.chunks_exact_mut(pattern.len()).for_each(|out| out.copy_from_slice(pattern)),
    }
}

/// A loop over the bytes of an output, in units of some bytes.
fn bytes_span(units: usize, unit: usize) -> Span {
    let unit_ns = (unit as f32 * NS_PER_BYTE).max(1.0);
    Span { items: units, cost_ns: unit_ns, grain: (GRAIN / unit.max(1)).max(1), ..Span::default() }
}

#[cfg(all(test, not(loom)))]
pub mod fixture;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(all(test, not(loom)))]
mod tests_places;
