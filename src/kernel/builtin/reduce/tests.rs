//! Reductions against their definition in f64: the shapes of the conformance set, all types, every level, all pools.

use super::*;
use crate::base::desc::MAX_RANK;
use crate::kernel::builtin::fixture::refusal;
use crate::kernel::builtin::movement::fixture::{Any, check_pools, run};
use crate::kernel::vector::convert::{self, Stored};
use crate::kernel::vector::isa::Isa;
use crate::ops::Operator;

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;
const NUMBERS: [Op; 9] = [
    Op::WEIR_REDUCE_SUM,
    Op::WEIR_REDUCE_MEAN,
    Op::WEIR_REDUCE_MIN,
    Op::WEIR_REDUCE_MAX,
    Op::WEIR_REDUCE_MUL,
    Op::WEIR_REDUCE_NORM_MAX,
    Op::WEIR_REDUCE_NORM_SUM,
    Op::WEIR_REDUCE_NORM_POWER_MAX,
    Op::WEIR_REDUCE_NORM_POWER_SUM,
];

fn operator(op: Op, axes: &[i32]) -> Reduce {
    let mut all = [0; MAX_RANK];
    all[..axes.len()].copy_from_slice(axes);
    Reduce { op, axes: all, num_axes: axes.len(), keep_dims: false, long_indices: false, squares: true, eps: 0.5 }
}

fn reduce(op: Op, axes: &[i32]) -> Builtin<Reduce> {
    Builtin::new(operator(op, axes))
}

/// A tensor of a type with these values, and the values rounded to the type.
fn tensor(of: u32, dims: &[i64], values: &[f32]) -> (Any, Vec<f32>) {
    fn halves<T: Stored>(values: &[f32]) -> (Vec<T>, Vec<f32>) {
        let mut stored: Vec<T> = values.iter().map(|&x| T::narrowed(x)).collect();
        convert::narrow(Isa::PORTABLE, values, &mut stored);
        let floats = stored.iter().map(|x| x.widened()).collect();
        (stored, floats)
    }
    match of {
        dtype::F16 => {
            let (stored, floats) = halves::<F16>(values);
            (Any::halves(of, dims, &stored.iter().map(|x| x.0).collect::<Vec<_>>()), floats)
        }
        dtype::BF16 => {
            let (stored, floats) = halves::<Bf16>(values);
            (Any::halves(of, dims, &stored.iter().map(|x| x.0).collect::<Vec<_>>()), floats)
        }
        _ => (Any::f32(dims, values), values.to_vec()),
    }
}

/// The elements of a tensor as f32.
fn floats(tensor: &Any) -> Vec<f32> {
    match tensor.desc.dtype {
        dtype::F16 => tensor.shorts().iter().map(|&bits| F16(bits).widened()).collect(),
        dtype::BF16 => tensor.shorts().iter().map(|&bits| Bf16(bits).widened()).collect(),
        _ => tensor.floats(),
    }
}

/// A value rounded to the type.
fn stored(of: u32, x: f32) -> f32 {
    match of {
        dtype::F16 => F16::narrowed(x).widened(),
        dtype::BF16 => Bf16::narrowed(x).widened(),
        _ => x,
    }
}

/// The numbers reduced to one, for each element of the output, in their order in memory.
fn groups(dims: &[i64], axes: &[i32], x: &[f32]) -> Vec<Vec<f32>> {
    let reduced: Vec<bool> = (0..dims.len() as i32)
        .map(|i| axes.is_empty() || axes.contains(&i) || axes.contains(&(i - dims.len() as i32)))
        .collect();
    let size = |kept: bool| -> usize {
        dims.iter().zip(&reduced).filter(|(_, r)| **r != kept).map(|(d, _)| *d as usize).product()
    };
    let mut groups = vec![Vec::with_capacity(size(false)); size(true)];
    for (number, &x) in x.iter().enumerate() {
        let (mut rest, mut output, mut step) = (number, 0, 1);
        for (&dim, &reduced) in dims.iter().zip(&reduced).rev() {
            let at = rest % dim as usize;
            rest /= dim as usize;
            if !reduced {
                output += at * step;
                step *= dim as usize;
            }
        }
        groups[output].push(x);
    }
    groups
}

fn reference(kernel: &Reduce, x: &[f32]) -> f64 {
    let wide = || x.iter().map(|&x| f64::from(x));
    let has_nan = x.iter().any(|x| x.is_nan());
    let power = |x: f64| if kernel.squares { x * x } else { x.abs() };
    let root = |x: f64| if kernel.squares { x.sqrt() } else { x };
    let norm = || wide().map(power).sum::<f64>();
    let eps = f64::from(kernel.eps);
    match kernel.op {
        Op::WEIR_REDUCE_SUM => wide().sum(),
        Op::WEIR_REDUCE_MEAN => wide().sum::<f64>() / x.len() as f64,
        Op::WEIR_REDUCE_MIN | Op::WEIR_REDUCE_MAX if has_nan => f64::NAN,
        Op::WEIR_REDUCE_MIN => wide().fold(f64::INFINITY, f64::min),
        Op::WEIR_REDUCE_MAX => wide().fold(f64::NEG_INFINITY, f64::max),
        Op::WEIR_REDUCE_MUL => wide().product(),
        _ if has_nan => f64::NAN,
        Op::WEIR_REDUCE_NORM_MAX => root(norm().max(eps)),
        Op::WEIR_REDUCE_NORM_SUM => root(norm() + eps),
        Op::WEIR_REDUCE_NORM_POWER_MAX => norm().max(eps),
        _ => norm() + eps,
    }
}

/// The tolerance rule of the conformance set.
fn is_near(got: f32, want: f64, of: u32, tolerance: f64) -> bool {
    let rounded = stored(of, want as f32);
    if got == rounded || (got.is_nan() && want.is_nan()) {
        return true;
    }
    let (got, want) = (f64::from(got), f64::from(rounded));
    let error = (got - want).abs();
    if want.abs() <= 1e-5 { error < tolerance.max(1.19e-7) } else { error / want.abs() <= tolerance }
}

/// Whole numbers, few of them not neutral, so that every order gives the same result: as in the conformance set.
fn data(op: Op, of: u32, count: usize, group: usize) -> Vec<f32> {
    let (most, size, factors) = if of == dtype::F16 { (1000, 8, 1) } else { (10_000, 16, 3) };
    let mut state = 12345u32;
    let mut next = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    (0..count)
        .map(|i| {
            let sign = if next(2) == 0 { -1.0 } else { 1.0 };
            match op {
                Op::WEIR_REDUCE_MUL if (i * 7 + i / 13) % group.max(1) < 20 => sign * (1 << next(factors + 1)) as f32,
                Op::WEIR_REDUCE_MUL => 1.0,
                Op::WEIR_REDUCE_MIN | Op::WEIR_REDUCE_MAX | Op::WEIR_REDUCE_ARGMAX | Op::WEIR_REDUCE_ARGMIN => {
                    sign * next(1000) as f32
                }
                _ if group > most && next(group) >= most => 0.0,
                _ => sign * (1 + next(size)) as f32,
            }
        })
        .collect()
}

const SHAPES: &[(&[i64], &[i32])] = &[
    (&[5, 3, 2, 9], &[0]),
    (&[32, 17, 2, 3], &[2, 3]),
    (&[32, 17, 2, 3], &[0, 2, 3]),
    (&[15, 12, 3, 5], &[1, 2, 3]),
    (&[15, 12, 3, 5], &[]),
    (&[12, 12], &[0]),
    (&[10, 16, 32], &[1]),
    (&[1, 17, 64], &[1]),
    (&[127], &[0]),
    (&[2, 9, 12, 12], &[0, 2, 3]),
    (&[3, 4, 5, 6], &[-3, -1]),
    (&[3, 4, 5, 70], &[0, 2]),
    (&[7], &[]),
    (&[], &[]),
    (&[1, 1], &[0]),
    (&[5, 1, 3], &[1]),
    (&[2, 100], &[0]),
    (&[3, 4096 + 4], &[1]),
    (&[130, 3], &[1]),
    (&[77, 9], &[-1]),
    (&[5, 7, 31], &[2]),
];

fn check(kernel: Builtin<Reduce>, of: u32, dims: &[i64], axes: &[i32], tolerance: f64) {
    let count: i64 = dims.iter().product();
    let values = data(kernel.op, of, count as usize, count as usize / 2);
    let (x, values) = tensor(of, dims, &values);
    let y = floats(&run(&kernel, &[x]));
    let groups = groups(dims, axes, &values);
    assert_eq!(y.len(), groups.len());
    for (i, (&got, group)) in y.iter().zip(&groups).enumerate() {
        let want = reference(&kernel, group);
        assert!(is_near(got, want, of, tolerance), "{kernel:?} of {of} {dims:?}: {i}: {got} for {want}");
    }
    // Not trusted if it could be all zeros.
    let zeros = y.iter().filter(|&&y| y == 0.0).count();
    assert!(y.len() < 10 || zeros * 10 <= y.len() * 3, "{kernel:?} {dims:?}: {zeros} zeros of {}", y.len());
}

#[test]
fn every_operation_on_every_shape_and_level() {
    for isa in Isa::levels() {
        for op in NUMBERS {
            for (of, epsilon) in [(dtype::F32, 1.19e-7), (dtype::F16, 9.77e-4), (dtype::BF16, 7.82e-3)] {
                for &(dims, axes) in SHAPES {
                    for squares in [false, true] {
                        let is_norm = op as u32 >= Op::WEIR_REDUCE_NORM_MAX as u32;
                        if is_norm || squares {
                            let kernel = Builtin::on(Reduce { squares, ..operator(op, axes) }, isa);
                            check(
                                kernel,
                                of,
                                dims,
                                axes,
                                if is_norm && of == dtype::F32 { 5.0 * epsilon } else { epsilon },
                            );
                        }
                    }
                }
            }
        }
    }
}

/// The index of the extreme: the first of equals, or the first NaN.
fn place(x: &[f32], least: bool) -> i32 {
    let beats = |a: f32, b: f32| (if least { a < b } else { a > b }) || (a.is_nan() && !b.is_nan());
    (1..x.len()).fold(0, |best, i| if beats(x[i], x[best]) { i } else { best }) as i32
}

#[test]
fn places_are_those_of_the_first_of_equals_and_the_first_nan() {
    for isa in Isa::levels() {
        for &(dims, axes) in SHAPES {
            for of in [dtype::F32, dtype::F16, dtype::BF16] {
                for (op, least) in [(Op::WEIR_REDUCE_ARGMAX, false), (Op::WEIR_REDUCE_ARGMIN, true)] {
                    let count: i64 = dims.iter().product();
                    let mut values: Vec<f32> =
                        data(op, of, count as usize, 1).iter().map(|x| (x / 300.0).round()).collect();
                    for (i, x) in values.iter_mut().enumerate() {
                        *x = [NAN, INF, -INF, -0.0, 0.0, *x][(i * 7 % 1009).min(5)];
                    }
                    let (x, values) = tensor(of, dims, &values);
                    let got = run(&Builtin::on(operator(op, axes), isa), &[x]).integers();
                    let want: Vec<i32> = groups(dims, axes, &values).iter().map(|x| place(x, least)).collect();
                    assert_eq!(got, want, "{isa:?} {op:?} of {of} {dims:?} {axes:?}");
                }
            }
        }
    }
}

#[test]
fn special_values_count_wherever_they_are() {
    for isa in Isa::levels() {
        for len in [1, 5, 16, 100, 4200] {
            for at in (0..len).step_by(1 + len / 8) {
                for value in [NAN, -NAN, INF, -INF, -0.0] {
                    // Few enough that their product stays in range.
                    let mut x = vec![if len > 100 { 1.0 } else { 1.5 }; len];
                    x[at] = value;
                    let twice: Vec<f32> = x.iter().flat_map(|&x| [x, x]).collect();
                    for op in NUMBERS {
                        let row = run(&Builtin::on(operator(op, &[0]), isa), &[Any::f32(&[len as i64], &x)]).floats();
                        let columns =
                            run(&Builtin::on(operator(op, &[0]), isa), &[Any::f32(&[len as i64, 2], &twice)]).floats();
                        let want = reference(&reduce(op, &[]), &x);
                        for got in [row[0], columns[0], columns[1]] {
                            assert!(
                                is_near(got, want, dtype::F32, 6e-7),
                                "{isa:?} {op:?} {len} {value} at {at}: {got}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn long_sums_are_exact_and_the_same_on_every_level() {
    let x = vec![128.0; (1 << 18) + 4099];
    // f32 sums of more than 2^24 would lose ones.
    let long = [x.len() as i64];
    let tensor = Any::f32(&long, &x);
    let y = run(&reduce(Op::WEIR_REDUCE_SUM, &[]), std::slice::from_ref(&tensor)).floats();
    assert_eq!(y, [(128.0 * x.len() as f64) as f32]);
    let rough: Vec<f32> = (0..70_003).map(|i| (i as f32 * 0.7).sin() * 3.0).collect();
    for dims in [&[70_003][..], &[3, 23_333], &[23_333, 3], &[2, 1000, 35]] {
        let x = Any::f32(dims, &rough[..dims.iter().product::<i64>() as usize]);
        for axes in [&[][..], &[0], &[-1], &[0, -1]] {
            let axes = if dims.len() == 1 { &[][..] } else { axes };
            for op in [Op::WEIR_REDUCE_SUM, Op::WEIR_REDUCE_MAX, Op::WEIR_REDUCE_NORM_SUM] {
                let portable = run(&Builtin::on(operator(op, axes), Isa::PORTABLE), std::slice::from_ref(&x)).bytes();
                for isa in Isa::levels() {
                    let got = run(&Builtin::on(operator(op, axes), isa), std::slice::from_ref(&x)).bytes();
                    assert!(got == portable, "{isa:?} {op:?} {dims:?} {axes:?}");
                }
            }
        }
    }
}

/// The numbers of a row of up to 4096 reduced in the order that is the same everywhere: to sixty-four lanes, sixteen if
/// there are no more numbers, and then in pairs.
fn in_order(op: Op, x: &[f32]) -> f64 {
    let neutral = [1.0, f64::INFINITY, f64::NEG_INFINITY, 0.0][match op {
        Op::WEIR_REDUCE_MUL => 0,
        Op::WEIR_REDUCE_MIN => 1,
        Op::WEIR_REDUCE_MAX => 2,
        _ => 3,
    }];
    let in_f64 = |op| op == Op::WEIR_REDUCE_MUL || op == Op::WEIR_REDUCE_NORM_POWER_SUM;
    let merged = |a: f64, b: f64| match op {
        Op::WEIR_REDUCE_MUL => a * b,
        Op::WEIR_REDUCE_MIN if b < a || b.is_nan() && !a.is_nan() => b,
        Op::WEIR_REDUCE_MAX if b > a || b.is_nan() && !a.is_nan() => b,
        Op::WEIR_REDUCE_MIN | Op::WEIR_REDUCE_MAX => a,
        _ => a + b,
    };
    // A lane rounds to f32 unless it is one of f64.
    let lane = |a: f64, b: f64| if in_f64(op) { merged(a, b) } else { f64::from(merged(a, b) as f32) };
    let number = |x: f32| match op {
        Op::WEIR_REDUCE_NORM_POWER_SUM => f64::from(x) * f64::from(x),
        _ => f64::from(x),
    };
    let (quads, rest) = x.as_chunks::<64>();
    let mut lanes = [neutral; 64];
    for quad in quads {
        lanes.iter_mut().zip(quad).for_each(|(to, &x)| *to = lane(*to, number(x)));
    }
    for i in 0..16 {
        let pairs = [lane(lanes[i], lanes[i + 16]), lane(lanes[i + 32], lanes[i + 48])];
        lanes[i] = lane(pairs[0], pairs[1]);
    }
    for sixteen in rest.chunks(16) {
        lanes.iter_mut().zip(sixteen).for_each(|(to, &x)| *to = lane(*to, number(x)));
    }
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] = merged(lanes[i], lanes[i + half]);
        }
    }
    lanes[0]
}

#[test]
fn rows_side_by_side_have_the_bits_of_the_one_order() {
    let lengths = (1..=67).chain([79, 80, 127, 128, 130, 1000, 1024, 1025, 4096]);
    for (len, isa) in lengths.flat_map(|len| Isa::levels().map(move |isa| (len, isa))) {
        for rows in [1, 3, 16, 17, 70] {
            let mut state = (len * 100 + rows) as u32;
            let values: Vec<f32> = (0..rows * len)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    match state >> 8 & 0x3ff {
                        0 => NAN,
                        1 => INF,
                        2..20 => -0.0,
                        20..40 => 0.0,
                        _ => ((state >> 8) as f32 / 8_388_608.0 - 1.0) * f32::powi(2.0, (state >> 20 & 3) as i32),
                    }
                })
                .collect();
            for of in [dtype::F32, dtype::F16] {
                let (x, values) = tensor(of, &[rows as i64, len as i64], &values);
                for op in [
                    Op::WEIR_REDUCE_SUM,
                    Op::WEIR_REDUCE_MIN,
                    Op::WEIR_REDUCE_MAX,
                    Op::WEIR_REDUCE_MUL,
                    Op::WEIR_REDUCE_NORM_POWER_SUM,
                ] {
                    let kernel = Builtin::on(Reduce { eps: 0.0, ..operator(op, &[1]) }, isa);
                    // Longer rows of other types come in parts.
                    if of != dtype::F32 && len > 1024 {
                        continue;
                    }
                    let got = floats(&run(&kernel, std::slice::from_ref(&x)));
                    for (i, (got, row)) in got.iter().zip(values.chunks(len)).enumerate() {
                        let want = stored(of, in_order(op, row) as f32);
                        let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                        assert!(same, "{isa:?} {op:?} of {of}, row {i} of {rows} x {len}: {got} for {want}");
                    }
                }
                for (op, least) in [(Op::WEIR_REDUCE_ARGMAX, false), (Op::WEIR_REDUCE_ARGMIN, true)] {
                    let got = run(&Builtin::on(operator(op, &[1]), isa), std::slice::from_ref(&x)).integers();
                    let want: Vec<i32> = values.chunks(len).map(|x| place(x, least)).collect();
                    assert_eq!(got, want, "{isa:?} {op:?} of {of}, {rows} x {len}");
                }
            }
        }
    }
}

#[test]
fn nothing_gives_what_the_operation_begins_with() {
    for (op, want) in NUMBERS.into_iter().zip([0.0, NAN, INF, -INF, 1.0, 0.5f32.sqrt(), 0.5f32.sqrt(), 0.5, 0.5]) {
        let y = run(&reduce(op, &[1]), &[Any::f32(&[3, 0, 2], &[])]);
        assert_eq!(y.desc.shape(), [3, 2]);
        assert!(y.floats().iter().all(|&y| y == want || (y.is_nan() && want.is_nan())), "{op:?}: {:?}", y.floats());
        assert_eq!(run(&reduce(op, &[1]), &[Any::f32(&[0, 5], &[])]).floats(), [0f32; 0]);
        // More elements than can be counted, but none exists.
        assert_eq!(run(&reduce(op, &[1, 2]), &[Any::f32(&[0, 1 << 40, 1 << 40], &[])]).floats(), [0f32; 0]);
    }
}

#[test]
fn axes_stay_as_ones_on_request() {
    let x = Desc::new(dtype::BF16, &[2, 3, 4]);
    let kept = |axes: &[i32], op| Reduce { keep_dims: true, ..operator(op, axes) }.output(&[x]).unwrap();
    assert_eq!(kept(&[-1, 0], Op::WEIR_REDUCE_SUM), Desc::new(dtype::BF16, &[1, 3, 1]));
    assert_eq!(kept(&[], Op::WEIR_REDUCE_MAX), Desc::new(dtype::BF16, &[1, 1, 1]));
    assert_eq!(kept(&[1], Op::WEIR_REDUCE_ARGMIN), Desc::new(dtype::S32, &[2, 1, 4]));
    assert_eq!(operator(Op::WEIR_REDUCE_SUM, &[]).output(&[x]).unwrap(), Desc::new(dtype::BF16, &[]));
}

#[test]
fn what_does_not_fit_is_refused() {
    let f32s = |dims: &[i64]| Desc::new(dtype::F32, dims);
    let sum = |axes: &[i32], x: Desc| refusal(&reduce(Op::WEIR_REDUCE_SUM, axes), &[x]);
    assert_eq!(sum(&[2], f32s(&[2, 3])), "input 0: expected a shape with axis 2, got f32[2,3]");
    let text =
        "input 0: expected a shape in which the axes are different, where axis -1 is one that was named, got f32[2,3]";
    assert_eq!(sum(&[1, -1], f32s(&[2, 3])), text);
    let text = "input 0: expected elements that are numbers, got bool[2]";
    assert_eq!(sum(&[0], Desc::new(dtype::BOOL, &[2])), text);
    let text = "input 0: expected f32, f16 or bf16 elements, got s32[2]";
    assert_eq!(refusal(&reduce(Op::WEIR_REDUCE_NORM_MAX, &[0]), &[Desc::new(dtype::S32, &[2])]), text);
    let text = "input 0: expected 1 to 2147483647 elements along the axes together, got f32[2,0]";
    assert_eq!(refusal(&reduce(Op::WEIR_REDUCE_ARGMAX, &[1]), &[f32s(&[2, 0])]), text);
    assert!(refusal(&reduce(Op::WEIR_REDUCE_ARGMIN, &[]), &[f32s(&[0, 3])]).contains("1 to 2147483647"));
}

const INTEGERS: [u32; 5] = [dtype::S64, dtype::S32, dtype::S8, dtype::U8, dtype::BOOL];
const OF_INTEGERS: [Op; 7] = [
    Op::WEIR_REDUCE_SUM,
    Op::WEIR_REDUCE_MEAN,
    Op::WEIR_REDUCE_MIN,
    Op::WEIR_REDUCE_MAX,
    Op::WEIR_REDUCE_MUL,
    Op::WEIR_REDUCE_ARGMAX,
    Op::WEIR_REDUCE_ARGMIN,
];

/// A type of integers with these values' lowest bits, and the numbers that they are.
fn integers(of: u32, dims: &[i64], values: &[i64]) -> (Any, Vec<i64>) {
    let size = dtype::size(of).unwrap();
    let low = |x: i64| match of {
        dtype::S32 => i64::from(x as i32),
        dtype::S8 => i64::from(x as i8),
        dtype::U8 => i64::from(x as u8),
        dtype::BOOL => x & 1,
        _ => x,
    };
    let numbers: Vec<i64> = values.iter().map(|&x| low(x)).collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()[..size].to_vec()).collect();
    (Any::new(Desc::new(of, dims), &bytes), numbers)
}

/// The elements of a tensor of integers.
fn whole(tensor: &Any) -> Vec<i64> {
    let of = tensor.desc.dtype;
    let number = |bytes: &[u8]| {
        let mut all = [if of != dtype::U8 && bytes[bytes.len() - 1] > 127 { 255 } else { 0 }; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        i64::from_le_bytes(all)
    };
    tensor.bytes().chunks(dtype::size(of).unwrap()).map(number).collect()
}

#[test]
fn integers_are_exact_on_every_shape_and_level() {
    let mut state = 5u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 20) % below
    };
    for &(dims, axes) in SHAPES.iter().chain(&[(&[17, 53, 71][..], &[1][..]), (&[70_001], &[]), (&[3, 0], &[1])]) {
        let count: i64 = dims.iter().product();
        let values: Vec<i64> =
            (0..count).map(|i| ((random(1 << 44) as i64).wrapping_mul(613_566_757) >> random(60)) | i & 1).collect();
        // The numbers' places, group by group.
        let places = groups(dims, axes, &(0..count).map(|i| i as f32).collect::<Vec<_>>());
        for (of, op) in INTEGERS.into_iter().flat_map(|of| OF_INTEGERS.map(|op| (of, op))) {
            let is_place = [Op::WEIR_REDUCE_ARGMAX, Op::WEIR_REDUCE_ARGMIN].contains(&op);
            let is_extreme = [Op::WEIR_REDUCE_MIN, Op::WEIR_REDUCE_MAX].contains(&op);
            if of == dtype::BOOL && !is_place && !is_extreme || is_place && count == 0 {
                continue;
            }
            let (x, numbers) = integers(of, dims, &values);
            let (least, greatest) = match of {
                dtype::S64 => (i64::MIN, i64::MAX),
                dtype::S32 => (i32::MIN.into(), i32::MAX.into()),
                dtype::S8 => (-128, 127),
                dtype::U8 => (0, 255),
                _ => (0, 1),
            };
            let want: Vec<i64> = places
                .iter()
                .map(|places| {
                    let numbers: Vec<i64> = places.iter().map(|&place| numbers[place as usize]).collect();
                    let sum = numbers.iter().fold(0, |sum: i64, &x| sum.wrapping_add(x));
                    let first = |of: Option<&i64>| numbers.iter().position(|x| Some(x) == of).unwrap_or(0) as i64;
                    match op {
                        Op::WEIR_REDUCE_SUM => sum,
                        Op::WEIR_REDUCE_MEAN => sum.checked_div(numbers.len() as i64).unwrap_or(0),
                        Op::WEIR_REDUCE_MIN => numbers.iter().copied().min().unwrap_or(greatest),
                        Op::WEIR_REDUCE_MAX => numbers.iter().copied().max().unwrap_or(least),
                        Op::WEIR_REDUCE_MUL => numbers.iter().fold(1, |product: i64, &x| product.wrapping_mul(x)),
                        Op::WEIR_REDUCE_ARGMAX => first(numbers.iter().max()),
                        _ => first(numbers.iter().min()),
                    }
                })
                .collect();
            for (isa, long_indices) in Isa::levels().flat_map(|isa| [(isa, false), (isa, true)]) {
                if long_indices && !is_place {
                    continue;
                }
                let kernel = Builtin::on(Reduce { squares: false, eps: 0.0, long_indices, ..operator(op, axes) }, isa);
                let y = run(&kernel, std::slice::from_ref(&x));
                let indices = if long_indices { dtype::S64 } else { dtype::S32 };
                assert_eq!(y.desc.dtype, if is_place { indices } else { of });
                let want = if is_place { want.clone() } else { integers(of, &[want.len() as i64], &want).1 };
                assert_eq!(whole(&y), want, "{isa:?} {op:?} of {} {dims:?} {axes:?}", dtype::name(of));
            }
            if count > 60_000 && of != dtype::S8 {
                check_pools(&reduce(op, axes), std::slice::from_ref(&x));
            }
        }
    }
}

#[test]
fn the_same_bits_on_all_pools() {
    let rough: Vec<f32> = (0..17 * 53 * 71).map(|i| (i as f32 * 0.7).sin() * 3.0).collect();
    let cubes = [Any::f32(&[17, 53, 71], &rough), tensor(dtype::BF16, &[17, 53, 71], &rough).0];
    for x in &cubes {
        for axes in [&[][..], &[0], &[1], &[2], &[0, 2]] {
            for op in [Op::WEIR_REDUCE_SUM, Op::WEIR_REDUCE_ARGMAX] {
                check_pools(&reduce(op, axes), std::slice::from_ref(x));
            }
        }
    }
}

/// In units in the last place of the largest sum of numbers of one sign: `docs/kernels.md` promises them.
#[test]
fn sums_of_one_sign_are_close_along_rows_and_columns() {
    let mut state = 1u32;
    for len in [2, 8, 17, 34, 64, 100, 128, 129, 256, 1000, 20_000] {
        let across = 200_000_usize.div_ceil(len).min(5000);
        let x: Vec<f32> = (0..len * across)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                0.1 + (state >> 8) as f32 / 16_777_216.0
            })
            .collect();
        let (len_dim, across_dim) = (len as i64, across as i64);
        for (axis, dims, bound) in [(1, [across_dim, len_dim], 1.2), (0, [len_dim, across_dim], 4.0)] {
            let y = run(&reduce(Op::WEIR_REDUCE_SUM, &[axis]), &[Any::f32(&dims, &x)]);
            for (i, &got) in y.floats().iter().enumerate() {
                let at = |k: usize| if axis == 1 { i * len + k } else { k * across + i };
                let want: f64 = (0..len).map(|k| f64::from(x[at(k)])).sum();
                let rounded = want as f32;
                let unit = f64::from(rounded.next_up()) - f64::from(rounded);
                let error = (f64::from(got) - want).abs() / unit;
                assert!(error <= bound, "axis {axis} of {dims:?}: {got} for {want}, {error:.2} units");
            }
        }
    }
}
