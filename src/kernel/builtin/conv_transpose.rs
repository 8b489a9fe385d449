//! Transposed convolution.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, elements, input};
use crate::base::{Desc, Result};
use crate::kernel::vector::site::MatrixMut;
use crate::kernel::vector::transposed::{self, TransposedShape};
use crate::kernel::{EpilogueStep, Kernel, KernelContext, Outputs};
use crate::ops::axis::folded;
use crate::ops::{Activation, ConvTranspose};
use std::sync::Arc;

impl Builtin<ConvTranspose> {
    /// The sizes for these inputs, or the reason why they do not fit.
    fn shape(&self, inputs: &[Desc]) -> Result<TransposedShape> {
        let [slices, rows, columns] = folded(self.axes(inputs)?);
        Ok(TransposedShape {
            images: inputs[0].dims[0] as usize,
            groups: self.groups as usize,
            channels: (inputs[0].dims[1] / self.groups) as usize,
            filters: inputs[1].dims[1] as usize,
            slices,
            rows,
            columns,
            activation: self.activation,
        })
    }
}

impl BuiltinOperation for Builtin<ConvTranspose> {
    fn with_epilogue(&self, step: EpilogueStep, _: &[Desc]) -> Option<Arc<dyn Kernel>> {
        match step {
            EpilogueStep::Unary(function) if self.activation == Activation::NONE => {
                let activation = function.activation()?;
                Some(Arc::new(self.with_operator(ConvTranspose { activation, ..**self })))
            }
            _ => None,
        }
    }

    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        self.shape(inputs).map_or(0, |shape| shape.scratch_bytes(self.isa))
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        self.shape(inputs).map_or(0, |shape| shape.cost_ns()).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let mut inputs = [*context.inputs()[0].desc(); 3];
        for (desc, view) in inputs.iter_mut().zip(context.inputs()) {
            *desc = *view.desc();
        }
        let (shape, out) = (self.shape(&inputs[..self.num_inputs()])?, outputs.only());
        let all = elements(out.desc());
        if all == 0 {
            return Ok(());
        }
        let (x, weights, bias) = (input(context, 0), input(context, 1), self.bias.then(|| input(context, 2)));
        let out = MatrixMut::output(out, all / shape.columns.input, shape.columns.input);
        transposed::compute(self.isa, &shape, (x, weights, bias), out, context)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::dtype;
    use crate::kernel::builtin::fixture::{WordTensor, check_pools, refusal, run};
    use crate::ops::Windows;

    fn kernel(strides: [i64; 2], dilations: [i64; 2], padding: [i64; 4], more: [i64; 2]) -> ConvTranspose {
        let [top, left, bottom, right] = padding;
        let windows = Windows { strides, dilations, begin: [top, left], end: [bottom, right], ..Windows::default() };
        ConvTranspose { windows, more, depth_more: 0, groups: 1, bias: false, activation: Activation::NONE }
    }

    /// Each product is added where it belongs.
    fn reference(of: &ConvTranspose, inputs: &[WordTensor], result: &Desc) -> Vec<f64> {
        let image = |dims: &[i64]| match *dims {
            [n, c, w] => [n, c, 1, w],
            [n, c, h, w] => [n, c, h, w],
            _ => panic!("{dims:?}"),
        };
        let is_image = inputs[0].desc.rank == 4;
        let pair = |pair: [i64; 2], or: i64| if is_image { pair.map(|x| x.max(or)) } else { [or, pair[0].max(or)] };
        let (strides, dilations) = (pair(of.windows.strides, 1), pair(of.windows.dilations, 1));
        let begin = pair(of.windows.begin, 0);
        let ([n, c, h, w], [_, filters, kh, kw]) = (image(inputs[0].desc.shape()), image(inputs[1].desc.shape()));
        let [_, all, oh, ow] = image(result.shape());
        let (x, weights) = (inputs[0].floats(), inputs[1].floats());
        let mut y = vec![0.0; (n * all * oh * ow) as usize];
        for (i, y) in y.iter_mut().enumerate() {
            let channel = i as i64 / (oh * ow) % all;
            *y = inputs.get(2).map_or(0.0, |bias| bias.floats()[channel as usize].into());
        }
        let group = c / of.groups;
        for (at, &x) in x.iter().enumerate() {
            let (column, row) = (at as i64 % w, at as i64 / w % h);
            let (channel, number) = (at as i64 / (w * h) % c, at as i64 / (w * h * c));
            for tap in 0..filters * kh * kw {
                let (filter, ky, kx) = (tap / (kh * kw), tap / kw % kh, tap % kw);
                let oy = row * strides[0] + ky * dilations[0] - begin[0];
                let ox = column * strides[1] + kx * dilations[1] - begin[1];
                if (0..oh).contains(&oy) && (0..ow).contains(&ox) {
                    let to = ((number * all + channel / group * filters + filter) * oh + oy) * ow + ox;
                    y[to as usize] += f64::from(x) * f64::from(weights[(channel * filters * kh * kw + tap) as usize]);
                }
            }
        }
        let negative = of.activation == Activation::RELU;
        y.into_iter().map(|y| if negative { y.max(0.0) } else { y }).collect()
    }

    #[test]
    fn products_are_added_where_they_belong() {
        let plain = kernel([0; 2], [0; 2], [0; 4], [0; 2]);
        let cases: [(ConvTranspose, &[i64], &[i64]); 12] = [
            (plain, &[1, 1, 3, 3], &[1, 2, 3, 3]),
            (kernel([2, 2], [1, 1], [1, 1, 1, 1], [0; 2]), &[2, 20, 9, 13], &[20, 7, 4, 4]),
            (kernel([2, 2], [1, 1], [1, 1, 1, 1], [1, 1]), &[1, 5, 6, 40], &[5, 30, 3, 3]),
            (kernel([2, 2], [1, 1], [0; 4], [0; 2]), &[1, 64, 40, 40], &[64, 24, 2, 2]),
            (kernel([3, 2], [2, 1], [0, 2, 3, 0], [2, 1]), &[1, 3, 5, 7], &[3, 4, 3, 5]),
            (kernel([5, 5], [1, 1], [0; 4], [4, 4]), &[1, 2, 4, 3], &[2, 3, 2, 2]),
            (kernel([1, 1], [3, 3], [3, 3, 3, 3], [0; 2]), &[1, 2, 9, 9], &[2, 2, 3, 3]),
            (kernel([2, 2], [1, 1], [3, 3, 2, 1], [0; 2]), &[2, 3, 6, 600], &[3, 2, 4, 4]),
            (ConvTranspose { groups: 4, ..kernel([2, 2], [0; 2], [1, 1, 1, 1], [0; 2]) }, &[2, 4, 8, 8], &[4, 1, 4, 4]),
            (ConvTranspose { groups: 2, ..kernel([2, 2], [0; 2], [0; 4], [0; 2]) }, &[1, 6, 5, 5], &[6, 3, 3, 3]),
            (kernel([4, 0], [0; 2], [2, 0, 2, 0], [1, 0]), &[2, 16, 50], &[16, 9, 8]),
            (kernel([1, 0], [0; 2], [0; 4], [0; 2]), &[1, 1, 1], &[1, 1, 1]),
        ];
        for (of, x, weights) in cases {
            for (bias, activation) in [(false, Activation::NONE), (true, Activation::RELU)] {
                let of = ConvTranspose { bias, activation, ..of };
                let kernel = Builtin::new(of);
                let mut inputs = vec![WordTensor::random(x, 1), WordTensor::random(weights, 2)];
                if bias {
                    inputs.push(WordTensor::random(&[weights[1] * of.groups], 3));
                }
                let y = run(&kernel, &inputs);
                let want = reference(&of, &inputs, &y.desc);
                for (i, (y, want)) in y.floats().into_iter().zip(want).enumerate() {
                    let error = 2e-6 * (x[1] * weights[2..].iter().product::<i64>()) as f64;
                    assert!((f64::from(y) - want).abs() <= error, "{x:?} {weights:?} {i}: {y} for {want}");
                }
                check_pools(&kernel, &inputs);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let of = |dims: &[i64]| Desc::new(dtype::F32, dims);
        let plain = Builtin::new(kernel([2, 2], [0; 2], [2; 4], [0; 2]));
        let text = "input 1: expected f32[3,?,?,?], got f32[4,3,2,2]";
        assert_eq!(refusal(&plain, &[of(&[1, 3, 4, 4]), of(&[4, 3, 2, 2])]), text);
        let text = "input 0: dimension 2 of f32[1,3,1,4] makes 2 elements, of which 4 cannot be left out";
        assert_eq!(refusal(&plain, &[of(&[1, 3, 1, 4]), of(&[3, 3, 2, 2])]), text);
        let text = "input 0: expected an image, f32[?,?,?,?], as desc has settings of two axes, got f32[1,3,4]";
        assert_eq!(refusal(&plain, &[of(&[1, 3, 4]), of(&[3, 3, 2])]), text);
    }
}
