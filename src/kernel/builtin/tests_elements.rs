//! Elementwise functions and selection, for every storage type: against their definition, on pools, in place.

use super::fixture::refusal;
use super::fixture_elements::*;
use super::*;
use crate::base::dtype;
use crate::kernel::vector::eltwise;
use crate::kernel::vector::isa::Isa;
use crate::memory::View;
use crate::ops::weir_binary_op_value::{self, *};
use crate::ops::weir_eltwise_op_value::{self, *};
use crate::ops::{Binary, Eltwise, Select};

// Eltwise

fn function(op: weir_eltwise_op_value, alpha: f32, beta: f32) -> Builtin<Eltwise> {
    Builtin::new(Eltwise { op, alpha, beta })
}

#[test]
fn functions_take_every_shape_type_and_place() {
    let shapes: [&[i64]; 10] = [
        &[16, 16, 2, 1],
        &[3, 15, 2, 5, 3],
        &[5, 16, 3],
        &[16, 64, 1, 1],
        &[3, 7, 3, 2],
        &[32, 5, 2, 3],
        &[3, 17, 2, 5, 3],
        &[],
        &[1],
        &[0, 3],
    ];
    let ops = [
        function(WEIR_ELTWISE_RELU, 0.25, 0.0),
        function(WEIR_ELTWISE_GELU_ERF, 0.0, 0.0),
        function(WEIR_ELTWISE_EXP, 0.0, 0.0),
        function(WEIR_ELTWISE_CLIP, -2.0, 3.0),
        function(WEIR_ELTWISE_POW, 1.0, 0.7),
        function(WEIR_ELTWISE_MISH, 0.0, 0.0),
        function(WEIR_ELTWISE_SOFTPLUS, -1.0, 0.0),
    ];
    for (f, of) in ops.iter().flat_map(|f| FLOATS.map(|of| (f, of))) {
        for (i, dims) in shapes.iter().enumerate() {
            let x = random(of, dims, i as u64 + 1, 10.0);
            let y = run(f, &[&x]);
            assert_eq!(y.desc, x.desc);
            // The result in f32, whose functions have tests of their own, rounded to the type.
            let floats: Vec<f32> = x.values().iter().map(|&x| x as f32).collect();
            let mut want = floats.clone();
            eltwise::apply(Isa::best(), f, crate::kernel::vector::elements::ElementPair::apart(&floats, &mut want));
            for (&got, &want) in y.values().iter().zip(&want) {
                let want = TypedTensor::rounded(of, f64::from(want));
                assert!(got == want || got.is_nan() && want.is_nan(), "{f:?} {}: {got} for {want}", x.desc.text());
            }
            if f.op != WEIR_ELTWISE_POW && floats.len() > 10 {
                check_trust(&y.values(), 65);
            }
        }
        check_pools(f, &[&random(of, &[3, 20_001], 7, 10.0)]);
    }
}

#[test]
fn functions_refuse_what_they_cannot_do() {
    let f = function(WEIR_ELTWISE_TANH, 0.0, 0.0);
    let text = "input 0: expected f32, f16 or bf16 elements, got s32[2]";
    assert_eq!(refusal(&f, &[Desc::new(dtype::S32, &[2])]), text);
    // An output that begins in the middle of the input.
    let x = TypedTensor::empty(Desc::new(dtype::F32, &[8]));
    let desc = Desc::new(dtype::F32, &[7]);
    // SAFETY: within the words, which are kept.
    let [first, shifted] = [0, 4].map(|at| unsafe { View::new(x.view().data().wrapping_add(at), 28, desc) });
    let error = call(&f, &[first], shifted, None).unwrap_err();
    assert_eq!(error.message(), "output 0 shares a part of its memory with input 0, expected all or nothing");
    assert!(x.words.iter().all(|&word| word == GUARD), "something was written");
}

// Binary

/// A whole number in a type of integers.
fn wrapped(of: u32, x: f64) -> f64 {
    match of {
        dtype::S8 => f64::from(x as i64 as i8),
        dtype::U8 => f64::from(x as i64 as u8),
        _ => x,
    }
}

fn binary_reference(op: weir_binary_op_value, of: u32, a: f64, b: f64) -> f64 {
    let truth = |holds: bool| f64::from(u8::from(holds));
    let value = match op {
        WEIR_BINARY_ADD => a + b,
        WEIR_BINARY_SUB => a - b,
        WEIR_BINARY_MUL => a * b,
        WEIR_BINARY_DIV => a / b,
        WEIR_BINARY_MIN => a.min(b),
        WEIR_BINARY_MAX => a.max(b),
        WEIR_BINARY_POW => a.powf(b),
        WEIR_BINARY_EQ => return truth(a == b),
        WEIR_BINARY_NE => return truth(a != b),
        WEIR_BINARY_LT => return truth(a < b),
        WEIR_BINARY_LE => return truth(a <= b),
        WEIR_BINARY_GT => return truth(a > b),
        WEIR_BINARY_GE => return truth(a >= b),
        WEIR_BINARY_REM => a % b,
    };
    if FLOATS.contains(&of) {
        TypedTensor::rounded(of, f64::from(value as f32))
    } else {
        // Only products leave the bytes.
        TypedTensor::rounded(of, if op == WEIR_BINARY_DIV { value.trunc() } else { wrapped(of, value) })
    }
}

/// The elements of broadcast tensors for element `number` of the output.
fn picked<const N: usize>(tensors: [&TypedTensor; N], values: &[Vec<f64>], shape: &[i64], number: i64) -> [f64; N] {
    let (mut index, mut rest) = (vec![0; shape.len()], number);
    for (i, &dim) in index.iter_mut().zip(shape).rev() {
        (*i, rest) = (rest % dim, rest / dim);
    }
    std::array::from_fn(|n| {
        let dims = tensors[n].desc.shape();
        let index = &index[index.len() - dims.len()..];
        values[n][dims.iter().zip(index).fold(0, |at, (&dim, &i)| at * dim + if dim == 1 { 0 } else { i }) as usize]
    })
}

#[test]
fn functions_of_two_broadcast_as_defined() {
    let shapes: [(&[i64], &[i64], &[i64]); 14] = [
        (&[3, 5, 6, 9], &[3, 5, 6, 9], &[3, 5, 6, 9]),
        (&[5, 3, 2, 9], &[1, 3, 2, 9], &[5, 3, 2, 9]),
        (&[32, 17, 2, 3], &[17, 1, 1], &[32, 17, 2, 3]),
        (&[15, 12, 3, 5], &[1], &[15, 12, 3, 5]),
        (&[5, 3, 1, 9], &[1, 3, 2, 9], &[5, 3, 2, 9]),
        (&[12, 1], &[1, 12], &[12, 12]),
        (&[2, 3, 48], &[1, 3, 48], &[2, 3, 48]),
        (&[2, 700], &[2, 1], &[2, 700]),
        (&[], &[2, 70], &[2, 70]),
        (&[1, 2, 1, 3, 1, 2, 1, 3], &[2, 1, 3, 1, 2, 1, 3, 1], &[2, 2, 3, 3, 2, 2, 3, 3]),
        (&[0, 3], &[1, 3], &[0, 3]),
        (&[], &[], &[]),
        (&[40, 37], &[37], &[40, 37]),
        (&[60, 1], &[60, 40], &[60, 40]),
    ];
    for op in [
        WEIR_BINARY_ADD,
        WEIR_BINARY_SUB,
        WEIR_BINARY_MUL,
        WEIR_BINARY_DIV,
        WEIR_BINARY_MIN,
        WEIR_BINARY_MAX,
        WEIR_BINARY_POW,
        WEIR_BINARY_EQ,
        WEIR_BINARY_NE,
        WEIR_BINARY_LT,
        WEIR_BINARY_LE,
        WEIR_BINARY_GT,
        WEIR_BINARY_GE,
        WEIR_BINARY_REM,
    ] {
        let kernel = Builtin::new(Binary::of(op));
        for of in ALL {
            let takes_bools = op.compares() || matches!(op, WEIR_BINARY_MIN | WEIR_BINARY_MAX);
            if of == dtype::BOOL && !takes_bools || op == WEIR_BINARY_POW && !FLOATS.contains(&of) {
                continue;
            }
            for (i, &(a, b, shape)) in shapes.iter().enumerate() {
                let (a, b) = (whole(of, a, i as u64 + 1, 10.0), whole(of, b, i as u64 + 50, 10.0));
                let y = run(&kernel, &[&a, &b]);
                assert_eq!(y.desc, Desc::new(if op.compares() { dtype::BOOL } else { of }, shape));
                let values = [a.values(), b.values()];
                for (number, &got) in y.values().iter().enumerate() {
                    let [a, b] = picked([&a, &b], &values, shape, number as i64);
                    let want = binary_reference(op, of, a, b);
                    let close = op == WEIR_BINARY_POW && (got - want).abs() <= 0.01 * want.abs();
                    assert!(
                        got == want || got.is_nan() && want.is_nan() || close,
                        "{op:?} {} of {a}, {b}: {got} for {want}",
                        y.desc.text()
                    );
                }
                if of != dtype::BOOL
                    && matches!(op, WEIR_BINARY_ADD | WEIR_BINARY_MUL | WEIR_BINARY_MIN | WEIR_BINARY_MAX)
                {
                    check_trust(&y.values(), 30);
                }
            }
        }
    }
}

#[test]
fn functions_of_two_give_the_same_bits_on_all_pools() {
    for of in [dtype::F32, dtype::BF16, dtype::S64, dtype::S32, dtype::U8] {
        for (a, b) in [
            (&[100_003][..], &[100_003][..]),
            (&[331, 307], &[307]),
            (&[40_000, 3], &[40_000, 1]),
            (&[7, 1, 30, 41], &[30, 1, 1]),
        ] {
            let (a, b) = (whole(of, a, 1, 50.0), whole(of, b, 2, 50.0));
            for op in [WEIR_BINARY_SUB, WEIR_BINARY_LE, WEIR_BINARY_REM] {
                check_pools(&Builtin::new(Binary::of(op)), &[&a, &b]);
                check_pools(&Builtin::new(Binary::of(op)), &[&b, &a]);
            }
        }
    }
}

#[test]
fn functions_of_two_refuse_what_they_cannot_do() {
    let (add, pow) = (Builtin::new(Binary::of(WEIR_BINARY_ADD)), Builtin::new(Binary::of(WEIR_BINARY_POW)));
    let of = |of, dims: &[i64]| Desc::new(of, dims);
    let text = "input 1: expected a shape that broadcasts with s8[2,3], got s8[2]";
    assert_eq!(refusal(&add, &[of(dtype::S8, &[2, 3]), of(dtype::S8, &[2])]), text);
    let text = "input 1: expected f16 elements, as input 0 has, got f32[2]";
    assert_eq!(refusal(&add, &[of(dtype::F16, &[2]), of(dtype::F32, &[2])]), text);
    let text = "input 0: expected elements that are numbers, got bool[2]";
    assert_eq!(refusal(&add, &[of(dtype::BOOL, &[2]), of(dtype::BOOL, &[2])]), text);
    let text = "input 0: expected f32, f16 or bf16 elements, got s32[2]";
    assert_eq!(refusal(&pow, &[of(dtype::S32, &[2]), of(dtype::S32, &[2])]), text);
    // An output in the memory of an operand that is broadcast over it.
    let y = TypedTensor::empty(of(dtype::F32, &[4]));
    // SAFETY: within the words, which are kept.
    let one = unsafe { View::new(y.view().data(), 4, of(dtype::F32, &[1])) };
    let error = call(&add, &[y.view(), one], y.view(), None).unwrap_err();
    assert_eq!(error.message(), "output 0 shares a part of its memory with input 1, expected all or nothing");
}

// Select

#[test]
fn a_choice_is_made_for_each_element_of_every_type() {
    type Dims = &'static [i64];
    let shapes: [(Dims, Dims, Dims, Dims); 7] = [
        (&[3, 70], &[3, 70], &[3, 70], &[3, 70]),
        (&[3, 1], &[3, 70], &[70], &[3, 70]),
        (&[70], &[3, 1], &[1], &[3, 70]),
        (&[], &[5], &[5], &[5]),
        (&[2, 3], &[], &[], &[2, 3]),
        (&[4, 1, 3], &[2, 1], &[4, 2, 3], &[4, 2, 3]),
        (&[0], &[1], &[1], &[0]),
    ];
    for of in ALL {
        for &(condition, a, b, shape) in &shapes {
            let truths: Vec<f64> =
                noise(condition.iter().product::<i64>() as usize, 3, 1.0).iter().map(|x| x.max(0.0)).collect();
            let condition = TypedTensor::new(dtype::BOOL, condition, &truths);
            let (a, b) = (whole(of, a, 1, 100.0), whole(of, b, 2, 100.0));
            let y = run(&Builtin::new(Select), &[&condition, &a, &b]);
            assert_eq!(y.desc, Desc::new(of, shape));
            let values = [condition.values(), a.values(), b.values()];
            for (number, &got) in y.values().iter().enumerate() {
                let [c, a, b] = picked([&condition, &a, &b], &values, shape, number as i64);
                assert_eq!(got, if c != 0.0 { a } else { b }, "{}", y.desc.text());
            }
        }
        let condition = TypedTensor::new(
            dtype::BOOL,
            &[300, 1],
            &noise(300, 3, 1.0).iter().map(|x| x.max(0.0)).collect::<Vec<_>>(),
        );
        check_pools(
            &Builtin::new(Select),
            &[&condition, &whole(of, &[300, 111], 1, 100.0), &whole(of, &[111], 2, 100.0)],
        );
    }
    let of = |of| Desc::new(of, &[2]);
    let text = "input 0: expected bool elements, got u8[2]";
    assert_eq!(refusal(&Builtin::new(Select), &[of(dtype::U8), of(dtype::F32), of(dtype::F32)]), text);
    let text = "input 2: expected f32 elements, as input 1 has, got s32[2]";
    assert_eq!(refusal(&Builtin::new(Select), &[of(dtype::BOOL), of(dtype::F32), of(dtype::S32)]), text);
}
