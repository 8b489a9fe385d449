//! Normalisation by neighbouring channels.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, axis, elements};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::columns::WIDTH;
use crate::kernel::vector::convert::{self, Stored};
use crate::kernel::vector::elements::Pairs;
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, F16};
use crate::ops::Lrn;
use crate::threadpool::Span;

/// Time per element, and per square.
const ELEMENT_NS: f32 = 1.0;
const SQUARE_NS: f32 = 0.3;
/// Time per element whose power no roots make.
const POWER_NS: f32 = 12.0;

impl Builtin<Lrn> {
    fn element_ns(&self, channels: usize) -> f32 {
        let power = if [0.5, 0.75, 1.0].contains(&self.beta) { 0.0 } else { POWER_NS };
        ELEMENT_NS + power + SQUARE_NS * self.size.min(channels) as f32
    }

    fn run<T: Stored>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let x = context.input(0);
        let columns = axis::split(1, x.desc())?;
        let (x, channels, before) = (x.read::<T>(), columns.len, (self.size - 1) / 2);
        let cost_ns = self.element_ns(channels) * (channels * columns.inner.min(WIDTH)) as f32;
        let span = Span { items: columns.stretches(), cost_ns, ..Span::default() };
        let factor = self.alpha / self.size as f32;
        context.parallel_into(&span, columns.divide::<T>(Pairs::of(context, outputs)?), |stretches, _| {
            stretches.for_each(|stripe, rows| {
                let width = stripe.width;
                let read = |channel: usize, to: &mut [f32; WIDTH]| {
                    convert::widen(self.isa, &x[stripe.first + channel * stripe.stride..][..width], &mut to[..width]);
                };
                for channel in 0..channels {
                    let (mut sums, mut floats) = ([0.0; WIDTH], [0.0; WIDTH]);
                    let end = channel.saturating_add(self.size - before).min(channels);
                    for other in channel.saturating_sub(before)..end {
                        read(other, &mut floats);
                        sums.iter_mut().zip(&floats).for_each(|(sum, x)| *sum += x * x);
                    }
                    read(channel, &mut floats);
                    let each = floats.iter_mut().zip(&sums).map(|(x, sum)| (x, self.bias + factor * sum));
                    match self.beta {
                        0.5 => each.for_each(|(x, s)| *x /= s.sqrt()),
                        0.75 => each.for_each(|(x, s)| *x /= s.sqrt() * s.sqrt().sqrt()),
                        1.0 => each.for_each(|(x, s)| *x /= s),
                        beta => each.take(width).for_each(|(x, s)| *x /= s.powf(beta)),
                    }
                    convert::narrow(self.isa, &floats[..width], rows.row(channel).y());
                }
            });
            Ok(())
        })
    }
}

impl BuiltinOperation for Builtin<Lrn> {
    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        let element_ns = self.element_ns(inputs[0].dims[1] as usize);
        ((elements(&inputs[0]) as f32 * element_ns) as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        if elements(outputs.desc(0)) == 0 {
            return Ok(());
        }
        match context.inputs()[0].desc().dtype {
            dtype::F32 => self.run::<f32>(context, outputs),
            dtype::F16 => self.run::<F16>(context, outputs),
            _ => self.run::<Bf16>(context, outputs),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::kernel::builtin::fixture::refusal;
    use crate::kernel::builtin::fixture_elements::{self as typed, FLOATS};

    #[test]
    fn each_element_is_divided_by_a_power_of_its_neighbours() {
        for (dims, of) in
            [(&[2, 7, 5, 19][..], FLOATS[0]), (&[3, 4], FLOATS[1]), (&[1, 1, 130], FLOATS[2]), (&[2, 0, 3], FLOATS[0])]
        {
            for (size, beta) in [(5, 0.75), (2, 0.5), (1, 1.0), (30, 0.3)] {
                let kernel = Builtin::new(Lrn { size, alpha: 0.9, beta, bias: 0.5 });
                let x = typed::random(of, dims, 11, 3.0);
                let (values, y) = (x.values(), typed::run(&kernel, &[&x]));
                let (channels, inner) = (dims[1] as usize, dims[2..].iter().product::<i64>() as usize);
                for (i, &y) in y.values().iter().enumerate() {
                    let channel = i / inner % channels;
                    let near = (0..channels).filter(|&c| c + (size - 1) / 2 >= channel && c <= channel + size / 2);
                    let sum: f64 = near.map(|c| values[i + c * inner - channel * inner].powi(2)).sum();
                    let want = values[i] / (0.5 + f64::from(0.9f32) / size as f64 * sum).powf(f64::from(beta));
                    let error = [2e-6, 4e-3, 5e-4][FLOATS.iter().position(|&other| other == of).unwrap()] * want.abs();
                    assert!((y - want).abs() <= error, "{dims:?} {size} {beta} {i}: {y} for {want}");
                }
                typed::check_pools(&kernel, &[&x]);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let kernel = Builtin::new(Lrn { size: 5, alpha: 1.0, beta: 0.75, bias: 1.0 });
        let of = |of, dims: &[i64]| Desc::new(of, dims);
        let text = "input 0: expected a shape with axis 1, got f32[3]";
        assert_eq!(refusal(&kernel, &[of(dtype::F32, &[3])]), text);
        let text = "input 0: expected f32, f16 or bf16 elements, got s32[3,3]";
        assert_eq!(refusal(&kernel, &[of(dtype::S32, &[3, 3])]), text);
    }
}
