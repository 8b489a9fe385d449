//! Binary elementwise functions at every level: rows of every kind and length, in place or not.
#![forbid(unsafe_code)]

use super::*;

const OPS: [Op; 12] = [
    Op::WEIR_BINARY_ADD,
    Op::WEIR_BINARY_SUB,
    Op::WEIR_BINARY_MUL,
    Op::WEIR_BINARY_DIV,
    Op::WEIR_BINARY_MIN,
    Op::WEIR_BINARY_MAX,
    Op::WEIR_BINARY_EQ,
    Op::WEIR_BINARY_NE,
    Op::WEIR_BINARY_LT,
    Op::WEIR_BINARY_LE,
    Op::WEIR_BINARY_GT,
    Op::WEIR_BINARY_GE,
];

fn reference(op: Op, a: f32, b: f32) -> f32 {
    let truth = |holds: bool| f32::from(u8::from(holds));
    match op {
        Op::WEIR_BINARY_ADD => a + b,
        Op::WEIR_BINARY_SUB => a - b,
        Op::WEIR_BINARY_MUL => a * b,
        Op::WEIR_BINARY_DIV => a / b,
        Op::WEIR_BINARY_MIN | Op::WEIR_BINARY_MAX if a.is_nan() || b.is_nan() => f32::NAN,
        Op::WEIR_BINARY_MIN => a.min(b),
        Op::WEIR_BINARY_MAX => a.max(b),
        Op::WEIR_BINARY_POW => a.powf(b),
        Op::WEIR_BINARY_EQ => truth(a == b),
        Op::WEIR_BINARY_NE => truth(a != b),
        Op::WEIR_BINARY_LT => truth(a < b),
        Op::WEIR_BINARY_LE => truth(a <= b),
        Op::WEIR_BINARY_GT => truth(a > b),
        Op::WEIR_BINARY_GE => truth(a >= b),
    }
}

/// Numbers of which many pairs are equal, unordered, or have a NaN result.
fn numbers(len: usize, mut state: u32) -> Vec<f32> {
    const SPECIAL: [f32; 8] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, 1.0, -1.0, 3e38, 1e-40];
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let kind = (state >> 8) as usize % 16;
            SPECIAL.get(kind).copied().unwrap_or((state >> 16) as f32 / 65_536.0 * 7.0 - 3.0)
        })
        .collect()
}

fn same(got: f32, want: f32) -> bool {
    got == want || got.is_nan() && want.is_nan()
}

#[test]
fn every_level_and_length_does_what_floats_do() {
    for isa in Isa::available() {
        for (op, len) in OPS.into_iter().flat_map(|op| (0..70).chain([300]).map(move |len| (op, len))) {
            let (a, b) = (numbers(len, 1), numbers(len, 2));
            let mut y = [b.as_slice(), &[7.0; 20]].concat();
            block(isa, op, &a, &mut y[..len]);
            assert!(y[len..].iter().all(|&guard| guard == 7.0), "{isa:?} {op:?} {len}: written outside");
            for i in 0..len {
                let want = reference(op, a[i], b[i]);
                assert!(same(y[i], want), "{isa:?} {op:?} {}, {}: {} for {want}", a[i], b[i], y[i]);
            }
        }
    }
}

#[test]
fn integers_wrap_round_and_saturate() {
    let pairs = [
        (i32::MAX, 1),
        (i32::MIN, -1),
        (7, 2),
        (-7, 2),
        (5, 2),
        (3, 0),
        (-3, 0),
        (0, 0),
        (1 << 30, 4),
        (16_777_217, 1),
    ];
    let (a, b): (Vec<i32>, Vec<i32>) = pairs.into_iter().unzip();
    let of = |op| {
        let mut y = b.clone();
        integers(op, &a, &mut y);
        y
    };
    assert_eq!(of(Op::WEIR_BINARY_ADD)[..2], [i32::MIN, i32::MAX]);
    assert_eq!(of(Op::WEIR_BINARY_SUB)[2..4], [5, -9]);
    assert_eq!(of(Op::WEIR_BINARY_MUL)[8], 0);
    assert_eq!(of(Op::WEIR_BINARY_DIV), [i32::MAX, i32::MAX, 4, -4, 2, i32::MAX, i32::MIN, 0, 1 << 28, 16_777_217]);
    assert_eq!((of(Op::WEIR_BINARY_MIN)[0], of(Op::WEIR_BINARY_MAX)[0]), (1, i32::MAX));
    let mut less = vec![Bool(9); a.len()];
    compare_integers(Op::WEIR_BINARY_LT, &[16_777_216, 3], &[16_777_217, 3], &mut less[..2]);
    assert_eq!(less[..3], [Bool(1), Bool(0), Bool(9)]);
}
