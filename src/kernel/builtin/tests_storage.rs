//! Conversions between storage types, and quantization: against their definition, on pools.
#![forbid(unsafe_code)]

use super::fixture::refusal;
use super::fixture_elements::*;
use super::*;
use crate::base::dtype;
use crate::kernel::vector::isa::Isa;
use crate::ops::*;

// Convert

fn settings() -> impl Iterator<Item = (weir_rounding_value, weir_overflow_value)> {
    use weir_overflow_value::*;
    use weir_rounding_value::*;
    [WEIR_ROUNDING_ZERO, WEIR_ROUNDING_NEAREST, WEIR_ROUNDING_FLOOR]
        .into_iter()
        .flat_map(|rounding| [WEIR_OVERFLOW_WRAP, WEIR_OVERFLOW_SATURATE].map(|overflow| (rounding, overflow)))
}

/// A conversion as the header defines it.
fn converted(from: u32, x: f64, of: &Convert) -> f64 {
    use weir_overflow_value::*;
    use weir_rounding_value::*;
    let is_plain = (of.scale, of.shift) == (1.0, 0.0);
    let is_whole = |of: u32| [dtype::S64, dtype::S32, dtype::S8, dtype::U8, dtype::BOOL].contains(&of);
    if is_plain && from == of.dtype {
        return x;
    }
    if is_plain && is_whole(from) && is_whole(of.dtype) && of.overflow == WEIR_OVERFLOW_WRAP {
        return match of.dtype {
            dtype::S32 => f64::from(x as i64 as i32),
            dtype::S8 => f64::from(x as i64 as i8),
            dtype::U8 => f64::from(x as i64 as u8),
            _ => TypedTensor::rounded(of.dtype, x),
        };
    }
    if is_plain && is_whole(from) && is_whole(of.dtype) {
        return TypedTensor::rounded(of.dtype, x);
    }
    // All else goes through f32.
    let float = f64::from(x as f32 * of.scale + of.shift);
    match of.rounding {
        _ if FLOATS.contains(&of.dtype) || of.dtype == dtype::BOOL => TypedTensor::rounded(of.dtype, float),
        WEIR_ROUNDING_ZERO => TypedTensor::rounded(of.dtype, float.trunc()),
        WEIR_ROUNDING_NEAREST => TypedTensor::rounded(of.dtype, float.round_ties_even()),
        WEIR_ROUNDING_FLOOR => TypedTensor::rounded(of.dtype, float.floor()),
    }
}

#[test]
fn conversions_round_and_wrap_or_saturate_between_all_types() {
    let interesting = [
        0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        126.5,
        127.5,
        128.0,
        -128.5,
        -129.0,
        254.5,
        255.5,
        256.0,
        300.0,
        -300.0,
        65504.0,
        65520.0,
        1e5,
        1e-3,
        16_777_217.0,
        2_147_483_647.0,
        -2_147_483_648.0,
        3e9,
        -3e9,
        1e30,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        100.0,
        3.0,
    ];
    for (from, to) in ALL.into_iter().flat_map(|from| ALL.map(|to| (from, to))) {
        let x = TypedTensor::new(from, &[3, 11], &interesting);
        for (scale, shift) in [(1.0f32, 0.0f32), (0.25, 0.0), (4_294_967_295.0, 0.0), (2.0, -1.0)] {
            let y = run(&Builtin::new(Convert { scale, shift, ..Convert::to(to) }), &[&x]);
            assert_eq!(y.desc, Desc::new(to, &[3, 11]));
            for (&x, &got) in x.values().iter().zip(&y.values()) {
                let want = converted(from, x, &Convert { scale, shift, ..Convert::to(to) });
                assert!(
                    got == want || got.is_nan() && want.is_nan(),
                    "{} to {}: {x} x {scale} + {shift}: {got} for {want}",
                    dtype::name(from),
                    y.desc.text()
                );
            }
            for (rounding, overflow) in settings() {
                let of = Convert { scale, shift, rounding, overflow, ..Convert::to(to) };
                for isa in Isa::levels() {
                    let y = run(&Builtin::on(of, isa), &[&x]);
                    for (&x, &got) in x.values().iter().zip(&y.values()) {
                        let want = converted(from, x, &of);
                        assert!(
                            got == want || got.is_nan() && want.is_nan(),
                            "{isa:?} {of:?} of {x}: {got} for {want}"
                        );
                    }
                }
            }
        }
        let convert = Builtin::new(Convert { scale: 0.5, shift: 1.0, ..Convert::to(to) });
        check_pools(&convert, &[&random(from, &[20_011], 5, 200.0)]);
    }
    let plain = Builtin::new(Convert::to(dtype::S32));
    let exact: Vec<f64> = vec![16_777_217.0, -2_147_483_647.0, 5.0];
    assert_eq!(run(&plain, &[&TypedTensor::new(dtype::S32, &[3], &exact)]).values(), exact);
}

// Quantize

#[test]
fn quantization_has_scales_for_all_or_for_each_index() {
    for (dequantize, froms, tos) in
        [(false, FLOATS, [dtype::S8, dtype::U8, dtype::S32]), (true, [dtype::S8, dtype::U8, dtype::S32], FLOATS)]
    {
        for (from, to) in froms.into_iter().flat_map(|from| tos.map(|to| (from, to))) {
            for (dims, axis, count) in [
                (&[2, 5, 7][..], 0, 2),
                (&[2, 5, 7], 1, 5),
                (&[2, 5, 7], -1, 7),
                (&[2, 5, 7], -1, 1),
                (&[3, 700], 0, 3),
                (&[700, 3], 1, 3),
                (&[40, 3, 25], 1, 3),
                (&[4, 3, 63], 1, 3),
                (&[2, 3, 1300], 1, 3),
                (&[3, 700], 1, 700),
                (&[1], 0, 1),
            ] {
                for zero_point in [false, true] {
                    check_quantization(
                        Builtin::new(Quantize { dequantize, dtype: to, zero_point, axis }),
                        from,
                        dims,
                        count,
                    );
                }
            }
        }
    }
}

fn check_quantization(kernel: Builtin<Quantize>, from: u32, dims: &[i64], count: i64) {
    let x = whole(from, dims, 1, 120.0);
    let scales = TypedTensor::new(
        dtype::F32,
        &[count],
        &(0..count).map(|i| f64::powi(0.5, i as i32 % 4 - 1) * 1.25).collect::<Vec<_>>(),
    );
    let zeros =
        TypedTensor::new(dtype::S32, &[count], &(0..count).map(|i| (i * 37 % 100 - 50) as f64).collect::<Vec<_>>());
    let inputs = if kernel.zero_point { vec![&x, &scales, &zeros] } else { vec![&x, &scales] };
    let y = run(&kernel, &inputs);
    let axis = kernel.axis.rem_euclid(dims.len() as i32) as usize;
    let inner: usize = dims[axis + 1..].iter().product::<i64>() as usize;
    for (i, (&x, &got)) in x.values().iter().zip(&y.values()).enumerate() {
        let channel = if count == 1 { 0 } else { i / inner % count as usize };
        let scale = scales.values()[channel] as f32;
        let zero = if kernel.zero_point { zeros.values()[channel] as f32 } else { 0.0 };
        let want = match kernel.dequantize {
            false => (x as f32 / scale).round_ties_even() + zero,
            true => (x as f32 - zero) * scale,
        };
        assert_eq!(
            got,
            TypedTensor::rounded(kernel.dtype, f64::from(want)),
            "{kernel:?} of {} at {i}: {x}, {scale}, {zero}",
            y.desc.text()
        );
    }
}

#[test]
fn quantization_gives_the_same_bits_on_all_pools_and_refuses_other_scales() {
    let kernel = |dequantize, dtype| Builtin::new(Quantize { dequantize, dtype, zero_point: true, axis: 1 });
    let (scales, zeros) =
        (TypedTensor::new(dtype::F32, &[41], &vec![0.7; 41]), TypedTensor::new(dtype::S32, &[41], &noise(41, 2, 30.0)));
    check_pools(&kernel(false, dtype::S8), &[&random(dtype::F32, &[30, 41, 29], 1, 100.0), &scales, &zeros]);
    check_pools(&kernel(true, dtype::F32), &[&random(dtype::S8, &[900, 41], 1, 100.0), &scales, &zeros]);
    let quantize = kernel(false, dtype::U8);
    let of = |of, dims: &[i64]| Desc::new(of, dims);
    let x = of(dtype::F32, &[2, 3]);
    let text = "input 1: expected f32[1] or f32[3], got f32[2]";
    assert_eq!(refusal(&quantize, &[x, of(dtype::F32, &[2]), of(dtype::S32, &[2])]), text);
    let text = "input 2: expected s32[1] or s32[3], got u8[3]";
    assert_eq!(refusal(&quantize, &[x, of(dtype::F32, &[3]), of(dtype::U8, &[3])]), text);
    let text = "input 2: expected as many elements as input 1, f32[3], has, got s32[1]";
    assert_eq!(refusal(&quantize, &[x, of(dtype::F32, &[3]), of(dtype::S32, &[1])]), text);
    let text = "input 0: expected f32, f16 or bf16 elements, got s8[2,3]";
    assert_eq!(refusal(&quantize, &[of(dtype::S8, &[2, 3]), x, x]), text);
}

#[test]
fn numbers_that_are_none_become_zero_or_the_limit() {
    let kernel = Builtin::new(Quantize { dequantize: false, dtype: dtype::S8, zero_point: false, axis: 0 });
    let x = TypedTensor::new(dtype::F32, &[4], &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e30]);
    let y = run(&kernel, &[&x, &TypedTensor::new(dtype::F32, &[], &[1.0])]);
    assert_eq!(y.values(), [0.0, 127.0, -128.0, 127.0]);
}
