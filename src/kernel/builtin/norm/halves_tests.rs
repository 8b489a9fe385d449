//! Normalisations of 16-bit floats: the f32 result, rounded once.

use super::*;
use crate::kernel::builtin::fixture::refusal;
use crate::kernel::builtin::fixture_elements::{TypedTensor, check_pools, run_on};
use crate::ops::Operator;

const OPS: [Op; 4] = [Op::WEIR_NORM_LAYER, Op::WEIR_NORM_RMS, Op::WEIR_NORM_BATCH, Op::WEIR_NORM_GROUP];
const HALVES: [u32; 2] = [dtype::F16, dtype::BF16];

fn operator(op: Op, axis: i32) -> Norm {
    let groups = if op == Op::WEIR_NORM_GROUP { 3 } else { 0 };
    Norm { op, axis, groups, epsilon: 1e-3, scale: true, shift: true }
}

fn norm(op: Op, axis: i32) -> Builtin<Norm> {
    Builtin::new(operator(op, axis))
}

/// Numbers from -2 to 2 with an offset.
fn noise(count: usize, seed: u32, offset: f64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 22) - 2.0 + offset
    };
    (0..count).map(|_| next()).collect()
}

/// x of a type, the statistics, and scale and shift of another type.
fn inputs(kernel: &Norm, dims: &[i64], of: u32, affine: u32) -> Vec<TypedTensor> {
    let of_channels = [Op::WEIR_NORM_BATCH, Op::WEIR_NORM_GROUP].contains(&kernel.op);
    let at = kernel.axis as usize;
    let shape = if of_channels { &dims[at..=at] } else { &dims[at..] };
    let numbers = |dims: &[i64], of: u32, seed: u32, offset: f64| {
        TypedTensor::new(of, dims, &noise(dims.iter().product::<i64>() as usize, seed, offset))
    };
    let others = (1..kernel.num_inputs()).map(|i| {
        let of = if i < kernel.first_affine() { dtype::F32 } else { affine };
        numbers(shape, of, 7 + i as u32, 2.5)
    });
    [numbers(dims, of, 3, 0.7)].into_iter().chain(others).collect()
}

fn as_floats(inputs: &[TypedTensor]) -> Vec<TypedTensor> {
    inputs.iter().map(|tensor| TypedTensor::new(dtype::F32, tensor.desc.shape(), &tensor.values())).collect()
}

fn run(kernel: &Builtin<Norm>, inputs: &[TypedTensor]) -> TypedTensor {
    run_on(kernel, &inputs.iter().collect::<Vec<_>>(), None)
}

#[test]
fn what_floats_give_rounded_once() {
    let cases: &[(&[i64], i32)] =
        &[(&[3, 9], 1), (&[3, 129], 1), (&[2, 6, 5], 1), (&[2, 6, 4, 17], 1), (&[2, 300, 3], 1), (&[1, 4101], 1)];
    for isa in Isa::levels() {
        for op in OPS {
            for (dims, axis) in cases {
                for (scale, shift) in [(false, false), (true, false), (false, true), (true, true)] {
                    for of in HALVES {
                        for affine in [dtype::F32, of] {
                            let kernel = Builtin::on(Norm { scale, shift, ..operator(op, *axis) }, isa);
                            let inputs = inputs(&kernel, dims, of, affine);
                            let (got, floats) = (run(&kernel, &inputs).values(), run(&kernel, &as_floats(&inputs)));
                            let want = TypedTensor::new(of, dims, &floats.values()).values();
                            assert!(got == want, "{kernel:?} {dims:?} of {of} with {affine}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn squares_beyond_the_type_do_not_count() {
    // 300 squared is beyond f16, and 1e30 squared beyond f32.
    for (of, size) in [(dtype::F16, 300.0), (dtype::BF16, 1e30)] {
        for op in [Op::WEIR_NORM_RMS, Op::WEIR_NORM_LAYER] {
            if op == Op::WEIR_NORM_LAYER && of == dtype::BF16 {
                continue; // squared differences are floats
            }
            let kernel = Builtin::new(Norm { scale: false, shift: false, ..operator(op, 1) });
            let values: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { size } else { -size }).collect();
            let y = run(&kernel, &[TypedTensor::new(of, &[1, 40], &values)]).values();
            assert!(y.iter().zip(&values).all(|(y, x)| *y == x.signum()), "{of} {op:?}: {y:?}");
        }
    }
}

#[test]
fn a_nan_spreads_through_its_row() {
    for of in HALVES {
        let mut x = noise(120, 5, 0.0);
        (x[45], x[100]) = (f64::NAN, f64::INFINITY);
        for op in [Op::WEIR_NORM_LAYER, Op::WEIR_NORM_GROUP] {
            let groups = usize::from(op == Op::WEIR_NORM_GROUP);
            let kernel = Builtin::new(Norm { scale: false, shift: false, groups, ..operator(op, 1) });
            let y = run(&kernel, &[TypedTensor::new(of, &[3, 40], &x)]).values();
            for (i, y) in y.iter().enumerate() {
                assert_eq!(y.is_nan(), i >= 40, "{of} {op:?} {i}: {y}");
            }
        }
    }
}

#[test]
fn the_same_bits_on_all_pools_and_levels() {
    for op in OPS {
        for of in HALVES {
            for dims in [[37, 30, 71], [41, 60, 1]] {
                let kernel = norm(op, 1);
                let inputs = inputs(&kernel, &dims, of, of);
                check_pools(&kernel, &inputs.iter().collect::<Vec<_>>());
                let want = run(&kernel, &inputs);
                for isa in Isa::levels() {
                    assert!(run(&Builtin::on(*kernel, isa), &inputs).words == want.words, "{op:?} of {of} on {isa:?}");
                }
            }
        }
    }
}

#[test]
fn scale_and_shift_are_floats_or_alike() {
    let of = |dtype: u32, dims: &[i64]| Desc::new(dtype, dims);
    let (x, floats, halves) = (of(dtype::F16, &[2, 6, 4]), of(dtype::F32, &[6, 4]), of(dtype::F16, &[6, 4]));
    let layer = norm(Op::WEIR_NORM_LAYER, 1);
    for affine in [floats, halves] {
        assert_eq!(layer.output(&[x, affine, affine]).unwrap(), x);
    }
    let text = "input 1: expected f32[6,4] or f16[6,4], got bf16[6,4]";
    assert_eq!(refusal(&layer, &[x, of(dtype::BF16, &[6, 4]), floats]), text);
    let text = "input 2: expected f16[6,4], got f32[6,4]";
    assert_eq!(refusal(&layer, &[x, halves, floats]), text);
    let text = "input 2: expected f32[6,4], got f16[6,4]";
    assert_eq!(refusal(&layer, &[x, floats, halves]), text);
    let text = "input 1: expected f32[6], got f16[6]";
    let (one, halves) = (of(dtype::F32, &[6]), of(dtype::F16, &[6]));
    assert_eq!(refusal(&norm(Op::WEIR_NORM_BATCH, 1), &[x, halves, one, halves, halves]), text);
    let text = "input 0: expected f32, f16 or bf16 elements, got s32[6]";
    assert_eq!(refusal(&layer, &[of(dtype::S32, &[6]), one, one]), text);
}
