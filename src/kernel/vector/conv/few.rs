//! Convolution with few filters in a group, above all depthwise: registers along the rows of the output.
//!
//! Determinism: an element is the chain bias + x * weight over channels and taps in order.
#![forbid(unsafe_code)]

use super::super::activation::Activation;
use super::super::isa::Isa;
use super::super::site::{MatrixMut, Site};
use super::super::sliding::{Filters, Sliding, Weighted, WindowEnds};
use super::output::finish;
use super::shape::{ConvShape, Data};
use crate::base::Result;
use crate::ops::weir_activation_value::{WEIR_ACTIVATION_CLIP, WEIR_ACTIVATION_RELU};

fn sliding(conv: &ConvShape) -> Sliding {
    let ConvShape { images, groups, channels, filters, slices, rows, columns, .. } = *conv;
    Sliding { images: images * groups, channels, filters, slices, rows, columns }
}

pub fn scratch_bytes(conv: &ConvShape) -> usize {
    sliding(conv).scratch_bytes::<Weighted>()
}

pub fn compute(isa: Isa, conv: &ConvShape, data: &Data<'_>, out: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
    // Bounds are applied before results are stored, which saves a pass over them, unless an addend comes first.
    let bounds = match conv.activation {
        _ if data.addend.is_some() => None,
        Activation { function: WEIR_ACTIVATION_RELU, .. } => Some([0.0, f32::INFINITY]),
        Activation { function: WEIR_ACTIVATION_CLIP, alpha, beta } => Some([alpha, beta]),
        _ => None,
    };
    let activation = if bounds.is_some() { Activation::NONE } else { conv.activation };
    let finish = |at: usize, run: &mut [f32]| {
        let addend = data.addend.map(|addend| &addend[at..at + run.len()]);
        finish(isa, activation, addend, run);
    };
    let (count, first) = (conv.groups * conv.filters, data.bias.unwrap_or_default());
    let filters = Filters { count, weights: data.weights, first, otherwise: 0.0 };
    let ends = WindowEnds { filters, divisors: None, bounds, finish: &finish };
    sliding(conv).compute::<Weighted>(isa, data.x, &ends, out, conv.cost_ns(), site)
}
