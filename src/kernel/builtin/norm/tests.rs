//! Normalisations against their definition in f64, on every level and all pools.

use super::*;
use crate::kernel::builtin::fixture::{WordTensor, check_pools, refusal, run};
use crate::ops::Operator;

const OPS: [Op; 4] = [Op::WEIR_NORM_LAYER, Op::WEIR_NORM_RMS, Op::WEIR_NORM_BATCH, Op::WEIR_NORM_GROUP];

fn operator(op: Op, axis: i32, groups: usize) -> Norm {
    Norm { op, axis, groups, epsilon: 1e-3, scale: true, shift: true }
}

fn norm(op: Op, axis: i32, groups: usize) -> Builtin<Norm> {
    Builtin::new(operator(op, axis, groups))
}

/// x, and the kernel's other inputs.
fn inputs(kernel: &Norm, dims: &[i64]) -> Vec<WordTensor> {
    let at = if kernel.axis < 0 { kernel.axis + dims.len() as i32 } else { kernel.axis } as usize;
    let of_channels = [Op::WEIR_NORM_BATCH, Op::WEIR_NORM_GROUP].contains(&kernel.op);
    let shape = if of_channels { &dims[at..=at] } else { &dims[at..] };
    let others = (1..kernel.num_inputs()).map(|i| {
        let values: Vec<f32> = WordTensor::random(shape, 7 + i as u64).floats().iter().map(|x| x + 1.5).collect();
        WordTensor::f32(shape, &values)
    });
    let x: Vec<f32> = WordTensor::random(dims, 3).floats().iter().map(|x| 3.0 * x + 0.7).collect();
    [WordTensor::f32(dims, &x)].into_iter().chain(others).collect()
}

fn reference(kernel: &Norm, inputs: &[WordTensor]) -> Vec<f64> {
    let dims = inputs[0].desc.shape();
    let at = if kernel.axis < 0 { kernel.axis + dims.len() as i32 } else { kernel.axis } as usize;
    let wide = |i: usize| -> Vec<f64> { inputs[i].floats().iter().map(|&x| f64::from(x)).collect() };
    let (x, inner) = (wide(0), dims[at + 1..].iter().product::<i64>() as usize);
    let channels = dims[at] as usize;
    let others: Vec<_> = (1..inputs.len()).map(wide).collect();
    let first = kernel.first_affine() - 1;
    let epsilon = f64::from(kernel.epsilon);
    let len = match kernel.op {
        Op::WEIR_NORM_GROUP => channels / kernel.groups * inner,
        _ => channels * inner,
    };
    let statistics: Vec<_> = x
        .chunks(len.max(1))
        .map(|row| {
            let mean = row.iter().sum::<f64>() / len as f64;
            let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / len as f64;
            (mean, variance, row.iter().map(|x| x * x).sum::<f64>() / len as f64)
        })
        .collect();
    (0..x.len())
        .map(|i| {
            let channel = i / inner % channels;
            let constant =
                if matches!(kernel.op, Op::WEIR_NORM_BATCH | Op::WEIR_NORM_GROUP) { channel } else { i % len };
            let (mean, variance, squares) = statistics[i / len];
            let (mean, power) = match kernel.op {
                Op::WEIR_NORM_RMS => (0.0, squares),
                Op::WEIR_NORM_BATCH => (others[0][channel], others[1][channel]),
                _ => (mean, variance),
            };
            let scale = if kernel.scale { others[first][constant] } else { 1.0 };
            let shift = if kernel.shift { others[first + usize::from(kernel.scale)][constant] } else { 0.0 };
            (x[i] - mean) / (power + epsilon).sqrt() * scale + shift
        })
        .collect()
}

fn check(kernel: &Builtin<Norm>, dims: &[i64]) {
    let inputs = inputs(kernel, dims);
    let y = run(kernel, &inputs).floats();
    let want = reference(kernel, &inputs);
    assert_eq!(y.len(), want.len());
    for (i, (&got, &want)) in y.iter().zip(&want).enumerate() {
        // The result may be a difference of larger numbers: of a product of ones and the shift.
        let error = (f64::from(got) - want).abs();
        assert!(error <= 2e-6 * want.abs().max(1.0), "{kernel:?} {dims:?}: {i}: {got} for {want}");
    }
    assert!(y.len() < 10 || y.iter().filter(|&&y| y == 0.0).count() * 10 <= 3 * y.len());
}

#[test]
fn every_normalisation_on_every_level() {
    for isa in Isa::levels() {
        for op in OPS {
            for (scale, shift) in [(false, false), (true, false), (false, true), (true, true)] {
                let cases: &[(&[i64], i32, usize)] = &[
                    (&[3, 5], -1, 1),
                    (&[3, 128], 1, 4),
                    (&[2, 6, 5], 1, 3),
                    (&[2, 6, 5], -1, 1),
                    (&[2, 6, 4, 17], 1, 2),
                    (&[2, 300, 3], 1, 100),
                    (&[5, 300], 1, 3),
                    (&[1, 4100], 1, 1),
                    (&[7], 0, 7),
                    (&[2, 1, 9], 1, 1),
                ];
                for &(dims, axis, groups) in cases {
                    let groups = if op == Op::WEIR_NORM_GROUP { groups } else { 0 };
                    check(&Builtin::on(Norm { scale, shift, ..operator(op, axis, groups) }, isa), dims);
                }
            }
        }
    }
}

#[test]
fn nothing_is_normalised_to_nothing() {
    for op in OPS {
        for dims in [[0, 4, 3], [2, 4, 0], [2, 0, 3]] {
            let groups = if op == Op::WEIR_NORM_GROUP { 2 } else { 0 };
            let kernel = norm(op, 1, groups);
            assert_eq!(run(&kernel, &inputs(&kernel, &dims)).floats(), [0f32; 0]);
        }
    }
}

#[test]
fn a_nan_spreads_as_far_as_its_statistics() {
    let mut x = vec![1.0; 40];
    x[3] = f32::NAN;
    x[30] = f32::INFINITY;
    let plain = |op, axis, groups| Builtin::new(Norm { scale: false, shift: false, ..operator(op, axis, groups) });
    for (kernel, bad) in
        [(plain(Op::WEIR_NORM_LAYER, 1, 0), [0..10, 30..40]), (plain(Op::WEIR_NORM_GROUP, 1, 2), [0..5, 30..35])]
    {
        let y = run(&kernel, &[WordTensor::f32(&[4, 10], &x)]).floats();
        for (i, y) in y.iter().enumerate() {
            assert_eq!(y.is_nan(), bad.iter().any(|bad| bad.contains(&i)), "{kernel:?} {i}: {y}");
        }
    }
}

#[test]
fn the_same_bits_on_all_pools_and_levels() {
    for op in OPS {
        let groups = if op == Op::WEIR_NORM_GROUP { 5 } else { 0 };
        for (axis, dims) in [(1, [37, 30, 71]), (-1, [37, 53, 40])] {
            let kernel = norm(op, axis, groups);
            let inputs = inputs(&kernel, &dims);
            check_pools(&kernel, &inputs);
            let want = run(&kernel, &inputs);
            for isa in Isa::levels() {
                assert!(run(&Builtin::on(*kernel, isa), &inputs).bits() == want.bits(), "{op:?} on {isa:?}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let f32s = |dims: &[i64]| Desc::new(dtype::F32, dims);
    let (x, one) = (f32s(&[2, 6, 4]), f32s(&[6]));
    let refused = |op, groups, inputs: &[Desc]| refusal(&norm(op, 1, groups), inputs);
    let text = "input 1: expected f32[6,4], got f32[6]";
    assert_eq!(refused(Op::WEIR_NORM_LAYER, 0, &[x, one, one]), text);
    let text = "input 2: expected f32[6], got f32[4]";
    assert_eq!(refused(Op::WEIR_NORM_GROUP, 3, &[x, one, f32s(&[4])]), text);
    let text = "input 0: expected a multiple of 4 channels along axis 1, got f32[2,6,4]";
    assert_eq!(refused(Op::WEIR_NORM_GROUP, 4, &[x, one, one]), text);
    let text = "input 4: expected f32[6], got f32[5]";
    assert_eq!(refused(Op::WEIR_NORM_BATCH, 0, &[x, one, one, one, f32s(&[5])]), text);
    let text = "input 0: expected a shape with axis 1, got f32[6]";
    assert_eq!(refused(Op::WEIR_NORM_RMS, 0, &[one, one, one]), text);
    let text = "input 1: expected f32[6,4], got s32[6,4]";
    assert_eq!(refused(Op::WEIR_NORM_RMS, 0, &[x, Desc::new(dtype::S32, &[6, 4]), one]), text);
}
