//! Elements in other places: always the same bits.

use crate::create::*;
use crate::kit::{Create, Distance, Tensor, check, refusal};
use weir_core::base::dtype;
use weir_core::device::Operation;
use weir_core::ops::*;

const ALL: [u32; 7] = [dtype::F32, dtype::S32, dtype::U8, dtype::S8, dtype::F16, dtype::BF16, dtype::BOOL];

fn padded<const N: usize, T: Copy + Default>(values: &[T]) -> [T; N] {
    std::array::from_fn(|i| values.get(i).copied().unwrap_or_default())
}

fn same<D: Descriptor<Operator: Into<Op>>>(
    operation: &str,
    create: Create<D>,
    desc: &D,
    inputs: &[Tensor],
) -> Vec<String> {
    check(operation, create, desc, inputs, Distance::None)
}

fn transpose(permutation: &[i32]) -> weir_transpose_desc {
    weir_transpose_desc {
        struct_size: size_of::<weir_transpose_desc>(),
        rank: permutation.len() as u32,
        reserved: 0,
        permutation: padded(permutation),
    }
}

#[test]
fn orders_of_dimensions() {
    let run = |dims: &[i64], permutation: &[i32], of: u32| {
        same("transpose", weir_kernel_create_transpose, &transpose(permutation), &[Tensor::random(of, dims, 1)])
    };
    for of in ALL {
        assert!(run(&[40, 35], &[1, 0], of)[0].starts_with("weir_turn_"));
        run(&[2, 3, 4, 5], &[3, 1, 0, 2], of);
    }
    assert_eq!(run(&[3, 9, 2, 10], &[2, 3, 0, 1], dtype::F32), ["weir_turn_4"]);
    assert_eq!(run(&[3, 33, 2, 10], &[0, 3, 2, 1], dtype::U8), ["weir_turn_1"]);
    assert_eq!(run(&[6, 5, 8], &[1, 0, 2], dtype::F16), ["weir_copy_16"]);
    assert_eq!(run(&[2, 3, 4], &[0, 1, 2], dtype::F32), ["weir_copy_16"]);
    assert_eq!(run(&[3, 5, 7], &[], dtype::F32), ["weir_copy_4"]);
    run(&[1, 1], &[1, 0], dtype::F32);
    run(&[], &[], dtype::F32);
    assert!(run(&[0, 4], &[1, 0], dtype::F32).is_empty());
}

#[test]
fn parts() {
    let run = |dims: &[i64], begin: &[i64], end: &[i64], step: &[i64], of: u32| {
        let desc = weir_slice_desc {
            struct_size: size_of::<weir_slice_desc>(),
            rank: dims.len() as u32,
            reserved: 0,
            begin: padded(begin),
            end: padded(end),
            step: padded(step),
        };
        same("slice", weir_kernel_create_slice, &desc, &[Tensor::random(of, dims, 1)])
    };
    const ALL_OF_IT: i64 = i64::MAX;
    for of in ALL {
        run(&[4, 5, 6], &[1, 0, -4], &[3, ALL_OF_IT, -1], &[1, 2, 1], of);
        run(&[4, 5, 6], &[-1, 4, 0], &[i64::MIN, 0, ALL_OF_IT], &[-1, -2, 3], of);
    }
    assert_eq!(run(&[8, 16], &[2, 4], &[6, 12], &[], dtype::F32), ["weir_copy_16"]);
    assert_eq!(run(&[8, 16], &[2, 5], &[6, 12], &[], dtype::F32), ["weir_copy_4"]);
    run(&[1, 288], &[0, 0], &[1, 144], &[], dtype::F32);
    run(&[5], &[1], &[2], &[i64::MAX], dtype::F32);
    run(&[5], &[4], &[3], &[i64::MIN], dtype::F32);
    assert!(run(&[5], &[3], &[3], &[], dtype::F32).is_empty());
}

#[test]
fn side_by_side() {
    for (axis, sizes) in [(0, [2, 3, 1]), (1, [4, 1, 2]), (-1, [3, 5, 0])] {
        for of in ALL {
            let inputs: Vec<_> = sizes
                .iter()
                .enumerate()
                .map(|(i, &size)| {
                    let mut dims = [3, 4, 5];
                    dims[if axis < 0 { 2 } else { axis as usize }] = size;
                    Tensor::random(of, &dims, i as u64)
                })
                .collect();
            let desc = weir_concat_desc { struct_size: size_of::<weir_concat_desc>(), num_inputs: 3, axis };
            same("concat", weir_kernel_create_concat, &desc, &inputs);
        }
    }
}

#[test]
fn margins() {
    let run = |mode: weir_pad_mode_value, dims: &[i64], before: &[i64], after: &[i64], value: f64, of: u32| {
        let desc = weir_pad_desc {
            struct_size: size_of::<weir_pad_desc>(),
            rank: dims.len() as u32,
            mode: mode as u32,
            before: padded(before),
            after: padded(after),
            value,
        };
        same("pad", weir_kernel_create_pad, &desc, &[Tensor::random(of, dims, 1)]);
    };
    use weir_pad_mode_value::*;
    for of in ALL.into_iter().chain([dtype::S64]) {
        run(WEIR_PAD_CONSTANT, &[2, 3, 4], &[1, 0, 2], &[0, 2, 3], 1.0, of);
        if of == dtype::S64 {
            run(WEIR_PAD_CONSTANT, &[2, 3], &[1, 0], &[0, 2], -5e18, of);
        }
        run(WEIR_PAD_REFLECT, &[3, 4, 5], &[2, 0, 3], &[1, 3, 4], 0.0, of);
        run(WEIR_PAD_EDGE, &[3, 4, 5], &[2, 0, 7], &[1, 3, 0], 0.0, of);
    }
    for value in [0.1, -65520.0, 65519.0, 1e-7, 3e-8, -1e300, f64::NAN] {
        for of in [dtype::F32, dtype::F16, dtype::BF16] {
            run(WEIR_PAD_CONSTANT, &[2], &[3], &[1], value, of);
        }
    }
    run(WEIR_PAD_CONSTANT, &[0, 2], &[1, 0], &[1, 0], -3.0, dtype::S8);
}

#[test]
fn other_shapes() {
    for (of, name) in [(dtype::F32, "weir_copy_16"), (dtype::U8, "weir_copy_8")] {
        let desc = weir_reshape_desc {
            struct_size: size_of::<weir_reshape_desc>(),
            rank: 2,
            reserved: 0,
            dims: padded(&[8, -1]),
        };
        let x = Tensor::random(of, &[2, 3, 4], 1);
        assert_eq!(same("reshape", weir_kernel_create_reshape, &desc, &[x]), [name]);
    }
}

#[test]
fn rows_by_their_numbers() {
    let gathered = |of: u32, dims: &[i64], axis: i32, shape: &[i64], is_long: bool, flags: u64| {
        let desc = weir_gather_desc { axis, flags, ..Gather::DEFAULT.unwrap() };
        let rank = dims.len() as i32;
        let size = dims[((axis + rank) % rank) as usize];
        let index = |i: usize| (i as i64 * 7 + 3) % size - if flags != 0 && i.is_multiple_of(2) { size } else { 0 };
        let indices = match is_long {
            true => Tensor::s64(shape, index),
            false => Tensor::s32(shape, |i| index(i) as i32),
        };
        same("gather", weir_kernel_create_gather, &desc, &[Tensor::random(of, dims, 1), indices])
    };
    let run = |of: u32, dims: &[i64], axis: i32, shape: &[i64], is_long: bool| {
        gathered(of, dims, axis, shape, is_long, weir_gather_flags::WEIR_GATHER_FROM_END as u64);
        gathered(of, dims, axis, shape, is_long, 0)
    };
    for of in ALL.into_iter().chain([dtype::S64]) {
        for is_long in [false, true] {
            run(of, &[5, 7], 0, &[4], is_long);
            run(of, &[5, 7], -1, &[2, 3], is_long);
            run(of, &[3, 4, 6], 1, &[9], is_long);
            run(of, &[3, 4, 16], 1, &[], is_long);
        }
    }
    assert_eq!(run(dtype::F32, &[100, 64], 0, &[3, 5], false), ["weir_gather_16"]);
    assert_eq!(run(dtype::F16, &[9, 6], 0, &[4], false), ["weir_gather_4"]);
    assert_eq!(run(dtype::U8, &[9, 5], 0, &[4], true), ["weir_gather_1"]);
    assert_eq!(run(dtype::S64, &[9, 3], 0, &[4], true), ["weir_gather_8"]);
    // Nothing is gathered, and the indices are looked at all the same.
    assert_eq!(run(dtype::F32, &[4, 0], 0, &[3], false), ["weir_gather_16"]);
    assert!(run(dtype::F32, &[4, 2], 0, &[0], false).is_empty());
}

#[test]
fn what_there_is_not_is_said() {
    assert!(refusal(Operation::Host, 1).contains("functions of the host's"));
    assert!(refusal(Operation::Named("sort", &[]), 1).contains("'sort'"));
    let packed = Some(PackedShape { dtype: dtype::F32, k: 1, n: 1 });
    let (_, described) = Described::new::<Matmul>(&mut Matmul::DEFAULT.unwrap(), packed).unwrap();
    assert!(refusal(Operation::Builtin(&described), 1).contains("packed weights"));
    let sine = crate::kit::described(&crate::elements::eltwise(weir_eltwise_op_value::WEIR_ELTWISE_SIN, 0.0, 0.0));
    assert!(refusal(Operation::Builtin(&sine), 1).contains("no sine"));
}
