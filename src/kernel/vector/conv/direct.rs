//! Direct convolution, without patches, for groups with few output channels: above all depthwise. A row of the output
//! is a weighted sum of rows of the input, shifted by the taps; a few vectors of it stay in registers.
//!
//! Determinism: an element is the chain over channels and taps in order. The shape decides which elements are computed
//! with vectors.

use super::super::activation;
use super::super::isa::Isa;
use super::super::lanes::Vector;
use super::super::site::{MatrixMut, Site};
use super::super::window::EdgeMode;
use super::shape::{ConvShape, Data, operands};
use crate::base::Result;
use crate::threadpool::Span;
use std::ops::Range;

/// Vectors of a row at once, to hide the latency of an addition.
const STEP: usize = 4;
/// Elements of the output in a piece, or a whole row.
const PIECE: usize = 2048;

pub fn compute(isa: Isa, conv: &ConvShape, data: &Data<'_>, out: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
    assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
    let (rows, width) = (conv.rows.output, conv.columns.output);
    let at_once = (PIECE / width.max(1)).clamp(1, rows.max(1));
    let parts = rows.div_ceil(at_once);
    let items = conv.images * conv.groups * conv.filters * parts;
    if items * width == 0 {
        return Ok(());
    }
    let cost_ns = conv.cost_ns() as f32 / items as f32;
    site.parallel_for(&Span { items, cost_ns, ..Span::default() }, &|claim| {
        for item in claim.begin()..claim.end() {
            let (plane, part) = (item / parts, item % parts);
            let (number, filter) = (plane / conv.filters, plane % conv.filters);
            let of = operands(conv, data, number);
            let weights = &of.weights[filter * conv.depth()..][..conv.depth()];
            let bias = of.bias.map_or(0.0, |bias| bias[filter]);
            for row in part * at_once..((part + 1) * at_once).min(rows) {
                let at = out.data().wrapping_add((plane * rows + row) * width);
                // SAFETY: a claimed row of the output.
                let line = unsafe {
                    at.write_bytes(0, width);
                    std::slice::from_raw_parts_mut(at, width)
                };
                let source = OutputRow { conv, x: of.x, weights, bias, row };
                source.compute(isa, line);
                activation::apply(conv.activation, isa, line);
            }
        }
        Ok(())
    })
}

/// A row of the output of one filter.
struct OutputRow<'a> {
    conv: &'a ConvShape,
    x: &'a [f32],
    weights: &'a [f32],
    bias: f32,
    row: usize,
}

impl OutputRow<'_> {
    fn compute(&self, isa: Isa, out: &mut [f32]) {
        match isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has AVX-512.
            Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => unsafe { self.avx512(out) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has AVX2 and FMA.
            Isa::Avx2 => unsafe { self.avx2(out) },
            _ => self.portable(out),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn avx512(&self, out: &mut [f32]) {
        // SAFETY: the processor has AVX-512.
        unsafe { self.vectors::<std::arch::x86_64::__m512>(out) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn avx2(&self, out: &mut [f32]) {
        // SAFETY: the processor has AVX2 and FMA.
        unsafe { self.vectors::<std::arch::x86_64::__m256>(out) }
    }

    /// Calls `f` with each row of the input under the window, and its weights.
    #[inline(always)]
    fn each_line(&self, mut f: impl FnMut(&[f32], &[f32])) {
        let (rows, columns) = (&self.conv.rows, &self.conv.columns);
        let plane = rows.input * columns.input;
        for channel in 0..self.conv.channels {
            let x = &self.x[channel * plane..][..plane];
            let weights = &self.weights[channel * rows.taps * columns.taps..][..rows.taps * columns.taps];
            for tap in 0..rows.taps {
                if let Some(at) = rows.element(self.row, tap) {
                    f(&x[at * columns.input..][..columns.input], &weights[tap * columns.taps..][..columns.taps]);
                }
            }
        }
    }

    /// One element at a time.
    #[inline(always)]
    fn elements(&self, windows: Range<usize>, out: &mut [f32]) {
        let columns = self.conv.columns;
        for window in windows {
            let mut sum = self.bias;
            self.each_line(|x, weights| {
                for (tap, weight) in weights.iter().enumerate() {
                    sum += columns.element(window, tap).map_or(0.0, |at| x[at]) * weight;
                }
            });
            out[window] = sum;
        }
    }

    /// Tap after tap over the whole row, which the compiler vectorises if the stride is 1 or 2.
    #[inline(always)]
    fn portable(&self, out: &mut [f32]) {
        let columns = self.conv.columns;
        out.fill(self.bias);
        self.each_line(|x, weights| {
            for (tap, weight) in weights.iter().enumerate() {
                let inside = columns.inside(tap);
                if !inside.is_empty() {
                    let at = inside.start * columns.stride + tap * columns.dilation - columns.before;
                    let out = &mut out[inside.clone()];
                    match columns.stride {
                        1 => add::<1>(&x[at..], *weight, out),
                        2 => add::<2>(&x[at..], *weight, out),
                        stride => {
                            out.iter_mut().zip(x[at..].iter().step_by(stride)).for_each(|(out, x)| *out += x * weight);
                        }
                    }
                }
                if columns.edge == EdgeMode::Reflect {
                    for window in (0..inside.start).chain(inside.end..columns.output) {
                        out[window] += columns.element(window, tap).map_or(0.0, |at| x[at]) * weight;
                    }
                }
            }
        });
    }

    /// # Safety
    /// The processor has the instructions of V.
    #[inline(always)]
    unsafe fn vectors<V: Vector>(&self, out: &mut [f32]) {
        let columns = self.conv.columns;
        let interior = columns.interior();
        if columns.stride != 1 || interior.len() < V::LANES {
            return self.portable(out);
        }
        self.elements(0..interior.start, out);
        let mut at = interior.start;
        // SAFETY: whole vectors of the interior, with elements under all of their taps. The last one may overlap the
        // previous one: it computes the same values.
        unsafe {
            while at + STEP * V::LANES <= interior.end {
                self.block::<V, STEP>(at, out);
                at += STEP * V::LANES;
            }
            // The remainder in one pass.
            let left = interior.end - at;
            if left > 3 * V::LANES {
                self.block::<V, 3>(at, out);
                at += 3 * V::LANES;
            } else if left > 2 * V::LANES {
                self.block::<V, 2>(at, out);
                at += 2 * V::LANES;
            } else if left > V::LANES {
                self.block::<V, 1>(at, out);
                at += V::LANES;
            }
            if at < interior.end {
                self.block::<V, 1>(interior.end - V::LANES, out);
            }
        }
        self.elements(interior.end..columns.output, out);
    }

    /// COUNT vectors of the row from `first` on.
    ///
    /// # Safety
    /// As `vectors`; the windows are in the interior.
    #[inline(always)]
    unsafe fn block<V: Vector, const COUNT: usize>(&self, first: usize, out: &mut [f32]) {
        let columns = &self.conv.columns;
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut sums = [V::splat(self.bias); COUNT];
            self.each_line(|x, weights| {
                // The first tap of the interior has an element under it, so this is in the row.
                let x = x.as_ptr().add(first - columns.before);
                for (tap, &weight) in weights.iter().enumerate() {
                    let x = x.wrapping_add(tap * columns.dilation);
                    for (i, sum) in sums.iter_mut().enumerate() {
                        *sum = V::load(x.wrapping_add(i * V::LANES)).mul_add(V::splat(weight), *sum);
                    }
                }
            });
            for (i, sum) in sums.into_iter().enumerate() {
                sum.store(out.as_mut_ptr().add(first + i * V::LANES));
            }
        }
    }
}

/// out += weight * x, for every STRIDE-th x. In chunks, which the compiler vectorises.
#[inline(always)]
fn add<const STRIDE: usize>(x: &[f32], weight: f32, out: &mut [f32]) {
    let chunks = x.chunks_exact(STRIDE);
    let whole = chunks.len().min(out.len());
    for (out, chunk) in out.iter_mut().zip(chunks) {
        *out += chunk[0] * weight;
    }
    // The last chunk may be partial.
    if let Some(out) = out.get_mut(whole) {
        *out += x[whole * STRIDE] * weight;
    }
}
