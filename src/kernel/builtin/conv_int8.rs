//! int8 convolution.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, elements, input};
use crate::base::desc::ANY_DIM;
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::vector::int8::{Int8Filters, Int8Weights, Int8Windows, Scaled, Store};
use crate::kernel::{KernelContext, Outputs, PreparedForms};
use crate::memory::Bytes;
use crate::ops::windows::MAX_STEP;
use crate::ops::{ConvInt8, Operator};
use std::sync::Arc;

impl Builtin<ConvInt8> {
    /// The sizes for these inputs, or the reason why they do not fit.
    fn sizes(&self, inputs: &[Desc]) -> Result<Int8Windows> {
        let (rows, columns) = self.axes(inputs)?;
        Ok(Int8Windows {
            images: usize::try_from(inputs[0].dims[0]).map_err(|_| Error::out_of_range("input 0: too many images"))?,
            groups: self.groups as usize,
            channels: inputs[1].dims[1] as usize,
            filters: (inputs[1].dims[0] / self.groups) as usize,
            rows,
            columns,
            signed: inputs[0].dtype == dtype::S8,
            zero_x: self.zero_x,
            zero_w: self.zero_w,
            store: match self.dtype {
                dtype::F32 => Store::F32,
                dtype::S8 => Store::S8,
                dtype::U8 => Store::U8,
                _ => Store::S32,
            },
        })
    }

    fn filters(&self) -> Option<&Int8Filters> {
        self.kept()
    }
}

impl BuiltinOperation for Builtin<ConvInt8> {
    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        self.sizes(inputs).map_or(0, |sizes| sizes.scratch_bytes(self.isa, self.filters()))
    }

    fn prepared(
        &self,
        inputs: &[Desc],
        constants: &[Option<Bytes<'_>>],
        _: &mut PreparedForms,
    ) -> Result<Option<Self>> {
        let Some(weights) = constants[1] else { return Ok(None) };
        let (mut x, axes) = (inputs[0], 2..inputs[0].shape().len());
        x.dims[axes].iter_mut().filter(|dim| **dim == ANY_DIM).for_each(|dim| *dim = MAX_STEP);
        (x.dims[0], x.dims[1]) = (1, inputs[1].dims[1] * self.groups);
        let weights = &weights.read_bytes()[..elements(&inputs[1])];
        let filters = self.sizes(&[x, inputs[1]])?.packed(self.isa, weights)?;
        Ok(filters.map(|filters| self.keeping(Arc::new(filters))))
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        self.sizes(inputs).map_or(0, |sizes| sizes.cost_ns(self.isa)).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let descs = [0, 1].map(|i| *context.inputs()[i].desc());
        let (sizes, out) = (self.sizes(&descs)?, outputs.only());
        if elements(out.desc()) == 0 {
            return Ok(());
        }
        let filters = descs[1].dims[0] as usize;
        let scaled = Scaled {
            store: sizes.store,
            scale: self.scale,
            scales: self.scales.then(|| input(context, self.num_inputs() - 1)),
            bias: self.bias.then(|| &context.input(2).read::<i32>()[..filters]),
            zero: self.zero_y,
        };
        let bytes = |index: usize| &context.input(index).read_bytes()[..elements(&descs[index])];
        let weights = match self.filters() {
            Some(filters) => Int8Weights::Packed(filters),
            None => Int8Weights::Plain(bytes(1)),
        };
        sizes.compute(self.isa, bytes(0), weights, &scaled, out, context)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::kernel::builtin::fixture::{pools, refusal};
    use crate::kernel::builtin::fixture_elements::{TypedTensor, noise, prepared, run_all_on};
    use crate::kernel::vector::isa::Isa;
    use crate::ops::axis::EdgeMode;
    use crate::ops::{AxisSettings, Windows};

    const NO_DEPTH: AxisSettings = AxisSettings { stride: 0, dilation: 0, begin: 0, end: 0 };
    const PLAIN: ConvInt8 = ConvInt8 {
        windows: Windows {
            strides: [0; 2],
            dilations: [0; 2],
            begin: [0; 2],
            end: [0; 2],
            depth: NO_DEPTH,
            edge: EdgeMode::Zero,
        },
        groups: 1,
        bias: false,
        scales: false,
        scale: 1.0,
        zero_x: 0,
        zero_w: 0,
        zero_y: 0,
        dtype: dtype::S32,
    };

    const fn windows(strides: [i64; 2], dilations: [i64; 2], begin: [i64; 2], end: [i64; 2]) -> ConvInt8 {
        ConvInt8 { windows: Windows { strides, dilations, begin, end, depth: NO_DEPTH, edge: EdgeMode::Zero }, ..PLAIN }
    }

    /// The elements by their definition, with exact sums.
    fn reference(of: &ConvInt8, inputs: &[&TypedTensor], shape: &[i64]) -> Vec<f64> {
        let image = |dims: &[i64]| match *dims {
            [n, c, w] => [n, c, 1, w],
            [n, c, h, w] => [n, c, h, w],
            _ => panic!("{dims:?}"),
        };
        let is_image = shape.len() == 4;
        let pair = |pair: [i64; 2], or: i64| if is_image { pair.map(|x| x.max(or)) } else { [or, pair[0].max(or)] };
        let (strides, dilations, begin) =
            (pair(of.windows.strides, 1), pair(of.windows.dilations, 1), pair(of.windows.begin, 0));
        let ([_, c, h, w], [o, i, kh, kw]) = (image(inputs[0].desc.shape()), image(inputs[1].desc.shape()));
        let [n, _, oh, ow] = image(shape);
        let (x, weights) = (inputs[0].values(), inputs[1].values());
        let bias = if of.bias { inputs[2].values() } else { vec![0.0; o as usize] };
        let scales = if of.scales { inputs[inputs.len() - 1].values() } else { vec![1.0; o as usize] };
        let mut y = vec![];
        for at in 0..n * o * oh * ow {
            let (column, row, filter, image) = (at % ow, at / ow % oh, at / ow / oh % o, at / ow / oh / o);
            let mut sum = 0i64;
            for tap in 0..i * kh * kw {
                let channel = filter / (o / of.groups) * i + tap / (kh * kw);
                let down = row * strides[0] + tap / kw % kh * dilations[0] - begin[0];
                let across = column * strides[1] + tap % kw * dilations[1] - begin[1];
                if (0..h).contains(&down) && (0..w).contains(&across) {
                    let x = x[(((image * c + channel) * h + down) * w + across) as usize] as i64;
                    let weight = weights[(filter * i * kh * kw + tap) as usize] as i64;
                    sum += (x - i64::from(of.zero_x)) * (weight - i64::from(of.zero_w));
                }
            }
            let value = (sum as f64 + bias[filter as usize]) * (f64::from(of.scale) * scales[filter as usize]);
            let whole = value.round_ties_even() + f64::from(of.zero_y);
            y.push(match of.dtype {
                dtype::F32 => f64::from((value + f64::from(of.zero_y)) as f32),
                dtype::S8 => whole.clamp(-128.0, 127.0),
                dtype::U8 => whole.clamp(0.0, 255.0),
                _ => whole.clamp(i32::MIN.into(), i32::MAX.into()),
            });
        }
        y
    }

    /// Bytes of every value.
    fn bytes(of: u32, dims: &[i64], seed: u64) -> TypedTensor {
        let shift = if of == dtype::U8 { 128.0 } else { 0.0 };
        let all = noise(dims.iter().product::<i64>() as usize, seed, 128.0);
        TypedTensor::new(of, dims, &all.into_iter().map(|x| x.floor() + shift).collect::<Vec<_>>())
    }

    #[test]
    fn elements_are_exact() {
        let cases: [(ConvInt8, &[i64], &[i64]); 16] = [
            (PLAIN, &[1, 1, 1, 1], &[1, 1, 1, 1]),
            (PLAIN, &[2, 8, 7, 9], &[5, 8, 1, 1]),
            (PLAIN, &[1, 3, 20, 31], &[70, 3, 1, 1]),
            (PLAIN, &[1, 12, 40, 40], &[130, 12, 1, 1]),
            (windows([1, 1], [1, 1], [1, 1], [1, 1]), &[1, 16, 14, 14], &[33, 16, 3, 3]),
            (windows([1, 1], [1, 1], [1, 1], [1, 1]), &[2, 5, 7, 300], &[9, 5, 3, 3]),
            (windows([2, 2], [1, 1], [3, 3], [2, 3]), &[1, 3, 25, 33], &[16, 3, 7, 7]),
            (windows([2, 1], [2, 3], [0, 4], [3, 1]), &[1, 6, 19, 17], &[7, 6, 3, 2]),
            (windows([3, 0], [2, 0], [5, 0], [4, 0]), &[2, 4, 61], &[10, 4, 5]),
            (windows([1, 1], [1, 1], [4, 4], [4, 4]), &[1, 2, 3, 3], &[3, 2, 3, 3]),
            (ConvInt8 { groups: 3, ..windows([1, 1], [1, 1], [1, 1], [1, 1]) }, &[1, 6, 9, 9], &[12, 2, 3, 3]),
            (ConvInt8 { groups: 6, ..windows([1, 1], [1, 1], [1, 1], [1, 1]) }, &[2, 6, 9, 21], &[6, 1, 3, 3]),
            (ConvInt8 { groups: 4, ..windows([2, 2], [1, 1], [1, 1], [1, 1]) }, &[1, 4, 15, 14], &[8, 1, 3, 3]),
            (ConvInt8 { groups: 2, ..windows([3, 2], [2, 3], [4, 5], [1, 0]) }, &[1, 2, 23, 40], &[2, 1, 5, 4]),
            (ConvInt8 { groups: 2, ..windows([2, 0], [1, 0], [2, 0], [2, 0]) }, &[2, 2, 40000], &[4, 1, 5]),
            (windows([1, 1], [1, 1], [0, 0], [0, 0]), &[1, 600, 3, 3], &[4, 600, 3, 3]),
        ];
        for (number, (of, x_dims, w_dims)) in cases.into_iter().enumerate() {
            for kind in 0..4 {
                let x_type = if kind % 2 == 0 { dtype::U8 } else { dtype::S8 };
                let of = ConvInt8 {
                    zero_x: [0, -128, 255, 7][kind],
                    zero_w: [0, 0, -128, 127][kind],
                    zero_y: [0, 3, 100, -9][kind],
                    bias: kind > 1,
                    scales: kind % 2 == 1,
                    scale: [1.0, 3e-4, 1e-4, 0.01][kind],
                    dtype: [dtype::S32, dtype::S8, dtype::U8, dtype::F32][kind],
                    ..of
                };
                let (x, weights) = (bytes(x_type, x_dims, 1), bytes(dtype::S8, w_dims, 2));
                compare(&of, &x, &weights, &format!("case {number}, {kind}"));
            }
        }
    }

    #[test]
    fn depthwise_is_exact_for_all_widths() {
        let taps: [[i64; 2]; 5] = [[3, 3], [5, 5], [1, 4], [2, 1], [7, 6]];
        for width in 1..=40 {
            let (w, [kh, kw]) = (width as usize, taps[width as usize % 5]);
            let (stride, dilation) = ([1, 2, 1, 2, 3][w % 7 % 5], [1, 1, 2][w % 3]);
            // Padding as it is usual, and none at all behind an image that is shorter than its windows.
            let before = [(kh - 1) * dilation / 2, ((kw - 1) * dilation).min(3)];
            let after = [(kh - 1) * dilation, ((kw - 1) * dilation + 1 - width - before[1]).max([0, 2][w % 2])];
            let (signed, multiplier) = (w % 3 == 1, 1 + (w % 4) as i64 / 3);
            let of = ConvInt8 {
                groups: 3,
                zero_x: if signed { [-128, 127][w % 2] } else { [255, 0, 128][w % 3] },
                zero_w: [0, -128, 127, 5][w / 3 % 4],
                zero_y: [0, -50][w % 2],
                bias: w % 5 == 0,
                scales: w % 2 == 0,
                scale: [1.0, 2e-4][w % 2],
                dtype: [dtype::S32, dtype::U8, dtype::S8, dtype::F32][w % 4],
                ..windows([stride; 2], [dilation; 2], before, after)
            };
            let x = bytes(if signed { dtype::S8 } else { dtype::U8 }, &[2, 3, 1 + width % 9, width], 3);
            compare(&of, &x, &bytes(dtype::S8, &[3 * multiplier, 1, kh, kw], 4), &format!("width {width}"));
        }
    }

    #[test]
    fn the_greatest_sums_are_exact() {
        let full = |of: u32, dims: &[i64], value: &dyn Fn(usize) -> f64| {
            TypedTensor::new(of, dims, &(0..dims.iter().product::<i64>() as usize).map(value).collect::<Vec<_>>())
        };
        // As many products as 32 bits can hold, all at an end; and pairs of weights that are too much for 16 bits, in
        // some places or in all.
        let shapes: [(&[i64], &[i64], i64); 5] = [
            (&[1, 1 << 15, 1, 1], &[7, 1 << 15, 1, 1], 1),
            (&[1, 1, 181, 181], &[1, 1, 181, 181], 1),
            (&[1, 40, 4, 9], &[13, 40, 1, 1], 1),
            (&[1, 18, 5, 5], &[10, 9, 3, 3], 2),
            (&[2, 3, 9, 9], &[5, 3, 3, 3], 1),
        ];
        for (number, (x_dims, w_dims, groups)) in shapes.into_iter().enumerate() {
            for kind in 0..6 {
                let (x_value, zero_x) = [(255.0, 0), (0.0, 255)][kind % 2];
                let every = [1, 1, 5, 7, 23, 3][kind];
                let (most, zero_w) =
                    [(-128.0, 127), (127.0, -128), (127.0, 0), (-128.0, 0), (127.0, 0), (-128.0, 0)][kind];
                let of = ConvInt8 { groups, zero_x, zero_w, ..PLAIN };
                let x = full(dtype::U8, x_dims, &|_| x_value);
                let low = |i: usize| if zero_w == 0 { (i % 9) as f64 - 4.0 } else { most };
                let weights = full(dtype::S8, w_dims, &|i| if i / 3 % every == 0 { most } else { low(i) });
                compare(&of, &x, &weights, &format!("greatest, case {number}, {kind}"));
            }
        }
    }

    /// Compares the elements with those by the definition, on each level and, on the best, on each pool, with packed
    /// filters too.
    fn compare(of: &ConvInt8, x: &TypedTensor, weights: &TypedTensor, name: &str) {
        let filters = weights.desc.dims[0];
        let bias: Vec<f64> = (0..filters).map(|i| (i * 1000 - 3000) as f64).collect();
        let scales: Vec<f64> = (0..filters).map(|i| 0.25 + i as f64 / 64.0).collect();
        let bias = TypedTensor::new(dtype::S32, &[filters], &bias);
        let scales = TypedTensor::new(dtype::F32, &[filters], &scales);
        let mut inputs = vec![x, weights];
        inputs.extend(of.bias.then_some(&bias));
        inputs.extend(of.scales.then_some(&scales));
        for isa in Isa::available() {
            let kernel = Builtin::on(*of, isa);
            let got = run_all_on(&kernel, &inputs, None).remove(0);
            assert_eq!(got.values(), reference(of, &inputs, got.desc.shape()), "{name}, {isa:?}: {of:?}");
            let packed = prepared(&kernel, &inputs, &[1]);
            assert_eq!(packed.is_none(), weights.desc.dims[1] == 1, "{name}");
            for kernel in [Some(kernel), packed].into_iter().flatten() {
                let alone = run_all_on(&kernel, &inputs, None).remove(0);
                assert!(alone.words == got.words, "{name}, {isa:?}, packed");
                for (pool_name, pool) in pools().into_iter().filter(|_| isa == Isa::best()) {
                    let on = run_all_on(&kernel, &inputs, Some(&pool)).remove(0);
                    assert!(on.words == got.words, "{name} on {pool_name}");
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (x, w) = (|dims: &[i64]| Desc::new(dtype::U8, dims), |dims: &[i64]| Desc::new(dtype::S8, dims));
        let of = Builtin::new(ConvInt8 { bias: true, ..PLAIN });
        let bias = Desc::new(dtype::S32, &[3]);
        let text = "input 1: expected s8[?,2,?,?], got u8[3,2,1,1]";
        assert_eq!(refusal(&of, &[x(&[1, 2, 4, 4]), x(&[3, 2, 1, 1]), bias]), text);
        let text = "input 1: expected s8[?,2,?,?], got s8[3,1,1,1]";
        assert_eq!(refusal(&of, &[x(&[1, 2, 4, 4]), w(&[3, 1, 1, 1]), bias]), text);
        let text = "input 2: expected s32[4], got s32[3]";
        assert_eq!(refusal(&of, &[x(&[1, 2, 4, 4]), w(&[4, 2, 1, 1]), bias]), text);
        let signed = Builtin::new(ConvInt8 { zero_x: -1, ..PLAIN });
        assert_eq!(refusal(&signed, &[x(&[1, 2, 4, 4]), w(&[4, 2, 1, 1])]), "input 0: zero_x is -1, which is no u8");
    }
}
