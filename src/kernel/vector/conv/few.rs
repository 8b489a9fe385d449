//! Convolution with few filters in a group, above all depthwise: registers along the rows of the output.
//!
//! Determinism: an element is the chain bias + x * weight over channels and taps in order.
#![forbid(unsafe_code)]

use super::super::isa::Isa;
use super::super::site::{MatrixMut, Site};
use super::super::sliding::{Sliding, Weighted, WindowEnds};
use super::output::finish;
use super::shape::{ConvShape, Data};
use crate::base::Result;

fn sliding(conv: &ConvShape) -> Sliding {
    let ConvShape { images, groups, channels, filters, rows, columns, .. } = *conv;
    Sliding { images: images * groups, channels, filters, rows, columns }
}

pub fn scratch_bytes(conv: &ConvShape) -> usize {
    sliding(conv).scratch_bytes::<Weighted>()
}

pub fn compute(isa: Isa, conv: &ConvShape, data: &Data<'_>, out: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
    let filter = |image: usize, filter: usize| {
        let filter = image % conv.groups * conv.filters + filter;
        let weights = &data.weights[filter * conv.depth()..][..conv.depth()];
        (weights, data.bias.map_or(0.0, |bias| bias[filter]))
    };
    let finish = |at: usize, run: &mut [f32]| {
        let addend = data.addend.map(|addend| &addend[at..at + run.len()]);
        finish(isa, conv.activation, addend, run);
    };
    let ends = WindowEnds { weights: data.weights, filter: &filter, divisor: None, finish: &finish };
    sliding(conv).compute::<Weighted>(isa, data.x, &ends, out, conv.cost_ns(), site)
}
