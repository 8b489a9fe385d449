//! Every operation against its definition: the source position of each output element.
#![forbid(unsafe_code)]

use super::fixture::{Any, check_pools, run, run_on};
use super::*;
use crate::base::{Code, Error};
use crate::kernel::Kernel;
use crate::kernel::builtin::Builtin;
use crate::kernel::builtin::fixture::refusal;
use crate::ops::weir_pad_mode_value::{self as PadMode, *};
use crate::ops::weir_tile_mode_value::{self as TileMode, *};
use crate::ops::{
    Concat, Gather, Operator, Pad, Reshape, Slice, Tile, Transpose, weir_reshape_desc, weir_slice_desc, weir_tile_desc,
    weir_transpose_desc,
};

const TYPES: [u32; 7] = [1, 2, 3, 4, 5, 6, 7];

/// Calls `body` with each index of a shape.
fn each(shape: &[i64], mut body: impl FnMut(&[i64])) {
    let count: i64 = shape.iter().product();
    let mut index = vec![0; shape.len()];
    for mut number in 0..count {
        for (i, &dim) in index.iter_mut().zip(shape).rev() {
            *i = number % dim;
            number /= dim;
        }
        body(&index);
    }
}

/// Bytes of an element.
fn at(tensor: &Any, bytes: &[u8], index: &[i64]) -> Vec<u8> {
    let size = element(&tensor.desc);
    let number = tensor.desc.shape().iter().zip(index).fold(0, |number, (&dim, &i)| {
        assert!((0..dim).contains(&i), "{index:?} in {}", tensor.desc.text());
        number * dim as usize + i as usize
    });
    bytes[number * size..][..size].to_vec()
}

/// Compares an output with `source`, the input and index of each element; `None` is `fill`.
fn check(kernel: &dyn Kernel, inputs: &[Any], fill: &[u8], source: impl Fn(&[i64]) -> Option<(usize, Vec<i64>)>) {
    let output = run(kernel, inputs);
    let all: Vec<_> = inputs.iter().map(Any::bytes).collect();
    let mut want = Vec::new();
    each(output.desc.shape(), |index| match source(index) {
        Some((input, from)) => want.extend(at(&inputs[input], &all[input], &from)),
        None => want.extend_from_slice(fill),
    });
    let inputs: Vec<_> = inputs.iter().map(|input| input.desc.text()).collect();
    assert!(output.bytes() == want, "{} of {inputs:?} to {}", kernel.name(), output.desc.text());
}

#[test]
fn transpose_puts_dimensions_in_another_order() {
    // The last four are the transpositions of the conformance set.
    let cases: &[(&[i64], &[i32])] = &[
        (&[], &[]),
        (&[5], &[0]),
        (&[3, 4], &[1, 0]),
        (&[3, 4], &[]),
        (&[2, 3, 4], &[]),
        (&[2, 16, 3, 4], &[0, 2, 3, 1]),
        (&[2, 16, 3, 4], &[3, 2, 1, 0]),
        (&[1, 17, 5, 3], &[0, 2, 3, 1]),
        (&[30, 1], &[1, 0]),
        (&[2, 0, 3], &[2, 0, 1]),
        (&[2, 1, 2, 1, 2, 1, 2, 3], &[7, 0, 6, 1, 5, 2, 4, 3]),
        (&[1, 512, 100], &[0, 2, 1]),
        (&[1, 512, 101], &[0, 2, 1]),
        (&[2, 64, 19, 19, 7], &[0, 2, 3, 4, 1]),
        (&[1, 4, 84, 84], &[0, 2, 3, 1]),
        (&[1, 12, 128, 33], &[0, 3, 1, 2]),
    ];
    for &(shape, order) in cases {
        for dtype in TYPES {
            let x = Any::filled(dtype, shape, 1);
            let kernel = transpose(order).unwrap();
            check(&kernel, &[x], &[], |index| {
                let mut from = vec![0; index.len()];
                for (i, &at) in index.iter().enumerate() {
                    from[order.get(i).map_or(index.len() - 1 - i, |&axis| axis as usize)] = at;
                }
                Some((0, from))
            });
        }
    }
}

#[test]
fn transpose_refuses_what_is_no_permutation() {
    let text = |order: &[i32]| transpose(order).unwrap_err().message().to_owned();
    assert_eq!(text(&[0, 2]), "desc->permutation[1] is 2, expected 0 to 1");
    assert_eq!(text(&[-1]), "desc->permutation[0] is -1, expected 0 to 0");
    assert_eq!(text(&[1, 0, 1]), "desc->permutation[2] is 1, and so is desc->permutation[0]");
    let x = Desc::new(dtype::F32, &[2, 3]);
    assert_eq!(refusal(&transpose(&[0]).unwrap(), &[x]), "input 0: expected a tensor of rank 1, got f32[2,3]");
}

fn slice(begin: &[i64], end: &[i64], step: &[i64]) -> Builtin<Slice> {
    let all = |values: &[i64]| std::array::from_fn(|i| values.get(i).copied().unwrap_or(0));
    let (rank, begin, end) = (begin.len() as u32, all(begin), all(end));
    let mut desc = weir_slice_desc { struct_size: 0, rank, reserved: 0, begin, end, step: all(step) };
    Builtin::new(Slice::new(&mut desc, None).unwrap())
}

#[test]
fn slice_takes_what_python_takes() {
    const END: i64 = i64::MAX;
    const BEGIN: i64 = i64::MIN;
    // begin, end, step, and the selected positions of 0 to 6.
    let cases: &[(i64, i64, i64, &[i64])] = &[
        (0, END, 1, &[0, 1, 2, 3, 4, 5, 6]),
        (0, END, 0, &[0, 1, 2, 3, 4, 5, 6]),
        (2, 5, 1, &[2, 3, 4]),
        (-3, -1, 1, &[4, 5]),
        (0, 0, 1, &[]),
        (5, 2, 1, &[]),
        (1, END, 3, &[1, 4]),
        (0, 7, 3, &[0, 3, 6]),
        (0, 6, 3, &[0, 3]),
        (6, 7, i64::MAX, &[6]),
        (-100, 100, 4, &[0, 4]),
        (END, BEGIN, -1, &[6, 5, 4, 3, 2, 1, 0]),
        (-1, BEGIN, -2, &[6, 4, 2, 0]),
        (4, 1, -1, &[4, 3, 2]),
        (4, -1, -1, &[]),
        (3, BEGIN, BEGIN, &[3]),
        (7, 7, 1, &[]),
        (END, END, 1, &[]),
        (-8, BEGIN, -1, &[]),
        (-8, END, 1, &[0, 1, 2, 3, 4, 5, 6]),
        (-7, BEGIN, -1, &[0]),
    ];
    for &(begin, end, step, places) in cases {
        for dtype in [dtype::F32, dtype::U8, 5] {
            // Alone, and as the first and the last of several dimensions.
            let of = |index: i64| places[index as usize];
            let x = Any::filled(dtype, &[7], 1);
            let line = slice(&[begin], &[end], &[step]);
            assert_eq!(line.infer(&[x.desc]).unwrap()[0].shape(), [places.len() as i64], "{begin} {end} {step}");
            check(&line, &[x], &[], |i| Some((0, vec![of(i[0])])));
            let first = slice(&[begin, 1, 0], &[end, 4, END], &[step, 2, 1]);
            check(&first, &[Any::filled(dtype, &[7, 5, 3], 2)], &[], |i| Some((0, vec![of(i[0]), 1 + 2 * i[1], i[2]])));
            let last = slice(&[2, END, begin], &[3, BEGIN, end], &[1, -1, step]);
            check(&last, &[Any::filled(dtype, &[4, 3, 7], 3)], &[], |i| Some((0, vec![2, 2 - i[1], of(i[2])])));
        }
    }
    check(&slice(&[], &[], &[]), &[Any::filled(dtype::F32, &[], 1)], &[], |_| Some((0, vec![])));
    let x = Desc::new(dtype::F32, &[2, 3]);
    assert_eq!(refusal(&slice(&[0], &[1], &[1]), &[x]), "input 0: expected a tensor of rank 1, got f32[2,3]");
}

#[test]
fn concat_puts_tensors_side_by_side() {
    for dtype in TYPES {
        for (axis, sizes) in [(0, &[2, 1, 3][..]), (1, &[2, 1, 3]), (2, &[2, 0, 3, 5]), (-1, &[7]), (-3, &[0, 0])] {
            let place = if axis < 0 { axis + 3 } else { axis } as usize;
            let inputs: Vec<_> = sizes
                .iter()
                .enumerate()
                .map(|(i, &size)| {
                    let mut shape = [4, 3, 5];
                    shape[place] = size;
                    Any::filled(dtype, &shape, i * 77)
                })
                .collect();
            check(&Builtin::new(Concat { axis, inputs: inputs.len() }), &inputs, &[], |index| {
                let (mut input, mut from) = (0, index.to_vec());
                while from[place] >= sizes[input] {
                    from[place] -= sizes[input];
                    input += 1;
                }
                Some((input, from))
            });
        }
    }
}

#[test]
fn concat_puts_rows_of_every_length_side_by_side() {
    for widths in [&[1, 1][..], &[1, 1, 1], &[3, 1, 8, 2], &[4, 30], &[5000, 1], &[1, 20_000]] {
        let rows = if widths.len() > 2 { 3000 } else { 37 };
        for dtype in TYPES {
            let inputs: Vec<_> =
                widths.iter().map(|&width| Any::filled(dtype, &[rows, width], width as usize)).collect();
            let kernel = Builtin::new(Concat { axis: 1, inputs: inputs.len() });
            let (bytes, size) = (inputs.iter().map(Any::bytes).collect::<Vec<_>>(), element(&inputs[0].desc));
            let row = |(i, &width): (usize, &i64)| {
                let row = width as usize * size;
                move |number: usize, bytes: &[Vec<u8>]| bytes[i][number * row..][..row].to_vec()
            };
            let parts: Vec<_> = widths.iter().enumerate().map(row).collect();
            let want: Vec<u8> = (0..rows as usize)
                .flat_map(|i| parts.iter().flat_map(|part| part(i, &bytes)).collect::<Vec<_>>())
                .collect();
            assert!(run(&kernel, &inputs).bytes() == want, "{widths:?} of {dtype}");
            check_pools(&kernel, &inputs);
        }
    }
}

#[test]
fn concat_refuses_what_does_not_fit() {
    let f32s = |dims: &[i64]| Desc::new(dtype::F32, dims);
    let kernel = Builtin::new(Concat { axis: 1, inputs: 2 });
    let text = "input 1: expected f32[2,?,4], got f32[2,3,5]";
    assert_eq!(refusal(&kernel, &[f32s(&[2, 3, 4]), f32s(&[2, 3, 5])]), text);
    let text = "input 1: expected f32[2,?], got s32[2,3]";
    assert_eq!(refusal(&kernel, &[f32s(&[2, 3]), Desc::new(dtype::S32, &[2, 3])]), text);
    assert_eq!(refusal(&kernel, &[f32s(&[2]), f32s(&[2])]), "input 0: expected a shape with axis 1, got f32[2]");
    let huge = f32s(&[0, i64::MAX]);
    assert!(refusal(&kernel, &[huge, huge]).contains("along axis 1 than can be counted"));
}

fn pad(before: &[i64], after: &[i64], mode: PadMode) -> Builtin<Pad> {
    pad_with(before, after, mode, 1.0)
}

fn pad_with(before: &[i64], after: &[i64], mode: PadMode, value: f64) -> Builtin<Pad> {
    let all = |values: &[i64]| std::array::from_fn(|i| values.get(i).copied().unwrap_or(0));
    Builtin::new(Pad { rank: before.len(), before: all(before), after: all(after), mode, value })
}

fn transpose(order: &[i32]) -> Result<Builtin<Transpose>> {
    let permutation = std::array::from_fn(|i| order.get(i).copied().unwrap_or(0));
    let mut desc = weir_transpose_desc { struct_size: 0, rank: order.len() as u32, reserved: 0, permutation };
    Ok(Builtin::new(Transpose::new(&mut desc, None)?))
}

fn reshape(dims: &[i64]) -> Result<Builtin<Reshape>> {
    let all = std::array::from_fn(|i| dims.get(i).copied().unwrap_or(0));
    let mut desc = weir_reshape_desc { struct_size: 0, rank: dims.len() as u32, reserved: 0, dims: all };
    Ok(Builtin::new(Reshape::new(&mut desc, None)?))
}

#[test]
fn pad_fills_a_margin() {
    let cases: &[(&[i64], &[i64], &[i64])] = &[
        (&[5], &[0], &[0]),
        (&[5], &[3], &[4]),
        (&[], &[], &[]),
        (&[4, 6], &[1, 2], &[3, 0]),
        (&[4, 6], &[1, 0], &[3, 0]),
        (&[2, 3, 4, 5], &[0, 1, 2, 0], &[0, 2, 1, 0]),
        (&[3, 3, 3, 3], &[1, 2, 1, 2], &[2, 1, 2, 1]),
        (&[576], &[0], &[64]),
        (&[1, 70, 90], &[0, 3, 3], &[0, 3, 3]),
    ];
    for &(shape, before, after) in cases {
        for dtype in TYPES {
            for mode in [WEIR_PAD_CONSTANT, WEIR_PAD_EDGE, WEIR_PAD_REFLECT] {
                let one: &[u8] = match dtype {
                    1 => &[0, 0, 0x80, 0x3f],
                    2 => &[1, 0, 0, 0],
                    5 => &[0, 0x3c],
                    6 => &[0x80, 0x3f],
                    _ => &[1],
                };
                let x = Any::filled(dtype, shape, 5);
                check(&pad(before, after, mode), &[x], one, |index| {
                    let mut from = Vec::new();
                    for (axis, &i) in index.iter().enumerate() {
                        let (i, size) = (i - before[axis], shape[axis]);
                        from.push(match mode {
                            WEIR_PAD_CONSTANT if !(0..size).contains(&i) => return None,
                            WEIR_PAD_CONSTANT => i,
                            WEIR_PAD_EDGE => i.clamp(0, size - 1),
                            WEIR_PAD_REFLECT => (size - 1 - (size - 1 - i.abs()).abs()).abs(),
                        });
                    }
                    Some((0, from))
                });
            }
        }
    }
    // Only margin.
    let y = run(&pad_with(&[1, 2], &[1, 0], WEIR_PAD_CONSTANT, -7.0), &[Any::filled(dtype::S32, &[0, 3], 1)]);
    assert_eq!(y.integers(), [-7; 10]);
    let y = run(&pad_with(&[1, 2], &[1, 0], WEIR_PAD_CONSTANT, -7.0), &[Any::filled(dtype::S32, &[2, 0], 1)]);
    assert_eq!(y.integers(), [-7; 8]);
}

#[test]
fn values_of_a_margin_are_rounded_to_nearest() {
    let margin =
        |value: f64, dtype: u32| run(&pad_with(&[1], &[0], WEIR_PAD_CONSTANT, value), &[Any::filled(dtype, &[0], 1)]);
    for (value, f16, bf16) in [
        (0.0, 0x0000, 0x0000),
        (-0.0, 0x8000, 0x8000),
        (1.0, 0x3c00, 0x3f80),
        (-2.5, 0xc100, 0xc020),
        (0.1, 0x2e66, 0x3dcd),
        (65504.0, 0x7bff, 0x4780),
        (65519.9, 0x7bff, 0x4780),
        (65520.0, 0x7c00, 0x4780),
        (f64::MAX, 0x7c00, 0x7f80),
        (3.4028235e38, 0x7c00, 0x7f80),
        (3.38e38, 0x7c00, 0x7f7e),
        (f64::NEG_INFINITY, 0xfc00, 0xff80),
        (f64::NAN, 0x7e00, 0x7fc0),
        (5.960464477539063e-8, 0x0001, 0x3380),
        (2.98e-8, 0x0000, 0x3300),
        (3.0e-8, 0x0001, 0x3301),
        (6.1035e-5, 0x0400, 0x3880),
        (6.09e-5, 0x03fe, 0x387f),
        (1e-45, 0x0000, 0x0000),
        (1e-40, 0x0000, 0x0001),
        (2049.0, 0x6800, 0x4500),
        (2051.0, 0x6802, 0x4500),
    ] {
        assert_eq!(margin(value, 5).shorts(), [f16], "{value} as f16");
        assert_eq!(margin(value, 6).shorts(), [bf16], "{value} as bf16");
    }
    assert_eq!(margin(0.1, dtype::F32).floats(), [0.1]);
    assert_eq!(margin(-1e30, dtype::F32).floats(), [-1e30]);
    assert_eq!(margin(-2_147_483_648.0, dtype::S32).integers(), [i32::MIN]);
    let refused =
        |value: f64, dtype: u32| refusal(&pad_with(&[1], &[0], WEIR_PAD_CONSTANT, value), &[Desc::new(dtype, &[2])]);
    let text = "input 0: expected elements that can be 256, the value of the margin, got u8[2]";
    assert_eq!(refused(256.0, dtype::U8), text);
    assert!(refused(-129.0, dtype::S8).starts_with("input 0") && refused(0.5, dtype::S32).starts_with("input 0"));
    assert!(refused(f64::NAN, dtype::S32).starts_with("input 0") && refused(2.0, dtype::BOOL).starts_with("input 0"));
}

#[test]
fn pad_refuses_margins_that_cannot_be_filled() {
    let x = |dims: &[i64]| Desc::new(dtype::F32, dims);
    let text = "input 0: expected at least 4 elements along axis 1 for a margin that mirrors them, got f32[2,3]";
    assert_eq!(refusal(&pad(&[0, 3], &[0, 0], WEIR_PAD_REFLECT), &[x(&[2, 3])]), text);
    let text = "input 0: expected at least 1 elements along axis 0 for a margin of its edge, got f32[0]";
    assert_eq!(refusal(&pad(&[0], &[1], WEIR_PAD_EDGE), &[x(&[0])]), text);
    let text = "input 0: expected a tensor of rank 1, got f32[2,3]";
    assert_eq!(refusal(&pad(&[0], &[1], WEIR_PAD_EDGE), &[x(&[2, 3])]), text);
    let huge = pad_with(&[i64::MAX], &[i64::MAX], WEIR_PAD_CONSTANT, 0.0);
    assert_eq!(refusal(&huge, &[x(&[3])]), "axis 0 has more elements than can be counted");
}

#[test]
fn reshape_keeps_the_elements() {
    for (shape, into, want) in [
        (&[2, 3, 4][..], &[24][..], &[24][..]),
        (&[2, 3, 4], &[4, -1, 2], &[4, 3, 2]),
        (&[5], &[-1], &[5]),
        (&[1], &[], &[]),
        (&[], &[1, 1], &[1, 1]),
        (&[0, 3], &[5, 0], &[5, 0]),
        (&[0, 3], &[5, -1], &[5, 0]),
        (&[2, 3, 4], &[-2, -1], &[2, 12]),
        (&[0, 3, 4], &[-2, 2, -1], &[0, 2, 6]),
    ] {
        for dtype in TYPES {
            let x = Any::filled(dtype, shape, 1);
            let y = run(&reshape(into).unwrap(), std::slice::from_ref(&x));
            assert_eq!((y.desc.shape(), y.bytes()), (want, x.bytes()));
        }
    }
    let refused = |shape: &[i64], into: &[i64]| refusal(&reshape(into).unwrap(), &[Desc::new(dtype::F32, shape)]);
    assert_eq!(refused(&[2, 3], &[7]), "input 0: expected as many elements as f32[7] has, got f32[2,3]");
    assert_eq!(refused(&[2, 3], &[4, -1]), "input 0: expected as many elements as f32[4,?] has, got f32[2,3]");
    assert_eq!(refused(&[0], &[0, -1]), "input 0: expected as many elements as f32[0,?] has, got f32[0]");
    assert!(refused(&[2], &[1 << 40, 1 << 40]).contains("more elements than memory can hold"));
    let text = |into: &[i64]| reshape(into).unwrap_err().message().to_owned();
    assert_eq!(text(&[2, -3]), "desc->dims[1] is -3, expected -2 (as in the input), -1 (the rest), 0 or more");
    assert_eq!(text(&[-1, 3, -1]), "desc->dims[2] is -1, and so is desc->dims[0]");
}

fn tile(mode: TileMode, counts: &[i64]) -> Result<Builtin<Tile>> {
    let all = std::array::from_fn(|i| counts.get(i).copied().unwrap_or(0));
    let mut desc = weir_tile_desc { struct_size: 0, rank: counts.len() as u32, mode: mode as u32, counts: all };
    Ok(Builtin::new(Tile::new(&mut desc, None)?))
}

#[test]
fn tile_repeats_and_expands() {
    // Shape, counts, and the shape that comes of it; the last ones are longer than a piece.
    let repeated: &[(&[i64], &[i64], &[i64])] = &[
        (&[], &[], &[]),
        (&[], &[3], &[3]),
        (&[5], &[], &[5]),
        (&[5], &[3], &[15]),
        (&[2, 3], &[2], &[2, 6]),
        (&[3], &[2, 4], &[2, 12]),
        (&[2, 3, 4], &[1, 1, 1], &[2, 3, 4]),
        (&[2, 3, 4], &[2, 1, 3], &[4, 3, 12]),
        (&[2, 3, 4], &[1, 5, 1], &[2, 15, 4]),
        (&[2, 3, 4], &[0, 2, 1], &[0, 6, 4]),
        (&[2, 0, 4], &[2, 3, 1], &[4, 0, 4]),
        (&[2, 2, 2, 2, 2, 2, 2, 2], &[2, 2, 2, 2, 2, 2, 2, 2], &[4, 4, 4, 4, 4, 4, 4, 4]),
        (&[700, 1], &[1, 3], &[700, 3]),
        (&[300, 3], &[3, 30], &[900, 90]),
        (&[3, 7], &[50, 90], &[150, 630]),
        (&[2, 9000], &[3, 2], &[6, 18000]),
    ];
    let expanded: &[(&[i64], &[i64], &[i64])] = &[
        (&[], &[2, 3], &[2, 3]),
        (&[3, 1], &[-1, 4], &[3, 4]),
        (&[3, 1], &[1, 4], &[3, 4]),
        (&[3, 4], &[3, 1], &[3, 4]),
        (&[4], &[2, 3, -1], &[2, 3, 4]),
        (&[2, 3, 1], &[5], &[2, 3, 5]),
        (&[1, 3], &[0, 3], &[0, 3]),
        (&[2, 1, 3, 1, 4], &[2, 6, 3, 5, 4], &[2, 6, 3, 5, 4]),
        (&[1, 2, 1, 2, 1, 2, 1, 2], &[3, 2, 3, 2, 3, 2, 3, 2], &[3, 2, 3, 2, 3, 2, 3, 2]),
        (&[90, 1, 70, 1], &[90, 2, 70, 2], &[90, 2, 70, 2]),
        (&[20000, 1], &[-1, 2], &[20000, 2]),
        (&[40, 1], &[40, 1001], &[40, 1001]),
        (&[3, 1, 5000], &[3, 4, 5000], &[3, 4, 5000]),
        (&[1], &[70000], &[70000]),
    ];
    for (mode, cases) in [(WEIR_TILE_REPEAT, repeated), (WEIR_TILE_EXPAND, expanded)] {
        for &(shape, counts, want) in cases {
            for dtype in TYPES {
                let (x, kernel) = (Any::filled(dtype, shape, 1), tile(mode, counts).unwrap());
                assert_eq!(kernel.infer(&[x.desc]).unwrap()[0].shape(), want, "{shape:?} by {counts:?}");
                let more = want.len() - shape.len();
                check(&kernel, std::slice::from_ref(&x), &[], |index| {
                    Some((0, index[more..].iter().zip(shape).map(|(at, size)| at % size).collect()))
                });
                check_pools(&kernel, &[x]);
            }
        }
    }
}

#[test]
fn tile_knows_what_it_can_of_open_shapes() {
    let infer = |mode, counts: &[i64], dims: &[i64]| {
        let output = tile(mode, counts).unwrap().infer(&[Desc::new(dtype::U8, dims)]);
        output.map(|output| output[0].text())
    };
    assert_eq!(infer(WEIR_TILE_REPEAT, &[2, 1, 0], &[-1, -1, -1]).unwrap(), "u8[?,?,0]");
    assert_eq!(infer(WEIR_TILE_EXPAND, &[5, 1, -1], &[-1, -1]).unwrap(), "u8[5,?,?]");
    assert_eq!(infer(WEIR_TILE_EXPAND, &[5, 7], &[-1, 1]).unwrap(), "u8[5,7]");
    let huge = infer(WEIR_TILE_REPEAT, &[i64::MAX], &[2]).unwrap_err();
    assert_eq!((huge.code(), huge.message()), (Code::OutOfRange, "axis 0 has more elements than can be counted"));
    let dims = |counts: &[i64], own: &[i64]| {
        let (kernel, x) = (tile(WEIR_TILE_EXPAND, counts).unwrap(), Desc::new(dtype::U8, own));
        let rank = kernel.infer(&[x]).unwrap()[0].shape().len();
        (0..rank).map(|dim| Kernel::dim_from(&kernel, &[x], 0, dim)[0]).collect::<Vec<_>>()
    };
    assert_eq!(dims(&[4, 1, 3], &[-1, 1]), [None, Some((0, 0)), None]);
    assert_eq!(dims(&[3], &[-1, 1]), [Some((0, 0)), None]);
}

#[test]
fn tile_refuses_what_does_not_fit() {
    let text = |mode, counts: &[i64]| tile(mode, counts).unwrap_err().message().to_owned();
    assert_eq!(text(WEIR_TILE_REPEAT, &[2, -1]), "desc->counts[1] is -1, expected 0 or more");
    assert_eq!(text(WEIR_TILE_EXPAND, &[-2]), "desc->counts[0] is -2, expected -1 (as in the input), 0 or more");
    let kernel = tile(WEIR_TILE_EXPAND, &[2, -1, 4]).unwrap();
    let refused = refusal(&kernel, &[Desc::new(dtype::F32, &[3, 5, 4])]);
    assert_eq!(refused, "input 0: expected a shape that broadcasts with f32[2,1,4], got f32[3,5,4]");
}

#[test]
fn gather_takes_rows_by_their_numbers() {
    for dtype in TYPES {
        for (table, axis, shape) in [
            (&[7][..], 0, &[10][..]),
            (&[7, 3], 0, &[2, 5]),
            (&[7, 64], 0, &[10]),
            (&[4, 7, 3], 1, &[10]),
            (&[4, 7], -1, &[5, 2]),
            (&[7, 3], 0, &[]),
            (&[7, 3], 0, &[0]),
            (&[7, 0], 0, &[10]),
            (&[0, 7, 2], 1, &[10]),
        ] {
            let place = if axis < 0 { axis + table.len() as i32 } else { axis } as usize;
            let count = shape.iter().product::<i64>();
            let indices: Vec<i32> = (0..count as i32).map(|i| i * 5 % 7).collect();
            let inputs = [Any::filled(dtype, table, 1), Any::s32(shape, &indices)];
            check(&Builtin::new(Gather { axis, from_end: false }), &inputs, &[], |index| {
                let number = shape.iter().zip(&index[place..]).fold(0, |number, (&dim, &i)| number * dim + i);
                let row = i64::from(indices[number as usize]);
                Some((0, [&index[..place], &[row], &index[place + shape.len()..]].concat()))
            });
        }
    }
}

#[test]
fn gather_refuses_an_index_by_name() {
    let refused = |table: &[i64], axis: i32, indices: &[i32]| -> Error {
        let inputs = [Any::filled(dtype::F32, table, 1), Any::s32(&[indices.len() as i64], indices)];
        run_on(&Builtin::new(Gather { axis, from_end: false }), &inputs, None).unwrap_err()
    };
    let error = refused(&[7, 3], 0, &[0, 6, 7, -1]);
    assert_eq!(error.code(), Code::OutOfRange);
    let text = "input 1: element 2 is 7, expected an index from 0 to 6 along axis 0 of input 0, f32[7,3]";
    assert_eq!(error.message(), text);
    assert!(
        refused(&[7, 3], 1, &[0, -1]).message().starts_with("input 1: element 1 is -1, expected an index from 0 to 2")
    );
    // Even if nothing is written.
    assert!(refused(&[0, 3], 0, &[0]).message().contains("element 0 is 0"));
    assert!(refused(&[2, 0], 0, &[5]).message().contains("element 0 is 5"));
    let table = Desc::new(dtype::F32, &[2, 3]);
    let text = "input 1: expected s32 or s64 elements, got f32[2,3]";
    assert_eq!(refusal(&Builtin::new(Gather { axis: 0, from_end: false }), &[table, table]), text);
    let text = "input 0: expected a shape with axis 2, got f32[2,3]";
    assert_eq!(
        refusal(&Builtin::new(Gather { axis: 2, from_end: false }), &[table, Desc::new(dtype::S32, &[2])]),
        text
    );
}

#[test]
fn the_same_bytes_on_all_pools() {
    let cube = || Any::filled(dtype::F32, &[17, 33, 71], 1);
    let bytes = || Any::filled(dtype::U8, &[37, 53, 71], 1);
    for order in [&[2, 1, 0], &[0, 2, 1], &[2, 0, 1]] {
        check_pools(&transpose(order).unwrap(), &[cube()]);
        check_pools(&transpose(order).unwrap(), &[bytes()]);
    }
    check_pools(&slice(&[16, 2, 70], &[1, 30, 3], &[-2, 3, -1]), &[cube()]);
    check_pools(&slice(&[1, 2, 3], &[36, 50, 60], &[1, 1, 1]), &[bytes()]);
    for mode in [WEIR_PAD_CONSTANT, WEIR_PAD_REFLECT, WEIR_PAD_EDGE] {
        check_pools(&pad(&[1, 2, 3], &[3, 2, 1], mode), &[cube()]);
        check_pools(&pad(&[0, 9, 0], &[0, 5, 0], mode), &[bytes()]);
    }
    for axis in 0..3 {
        check_pools(&Builtin::new(Concat { axis, inputs: 2 }), &[cube(), cube()]);
        let indices: Vec<i32> = (0..400).map(|i| i * 31 % 37).collect();
        check_pools(&Builtin::new(Gather { axis, from_end: false }), &[bytes(), Any::s32(&[4, 100], &indices)]);
    }
    for counts in [&[1, 1, 3], &[1, 3, 1], &[2, 1, 2]] {
        check_pools(&tile(WEIR_TILE_REPEAT, counts).unwrap(), &[cube()]);
        check_pools(&tile(WEIR_TILE_REPEAT, counts).unwrap(), &[bytes()]);
    }
    check_pools(&reshape(&[-1]).unwrap(), &[cube()]);
}
