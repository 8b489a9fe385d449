//! The kernels that compute each element for itself, for every storage type: against their definition, on pools, in place.
#![forbid(unsafe_code)]

use super::fixture::{pools, refusal};
use super::*;
use crate::base::{Ref, Result, dtype};
use crate::kernel::vector::convert::Stored;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::{binary, eltwise};
use crate::kernel::{Kernel, NEVER, Scratch};
use crate::memory::{Bf16, Bool, Element, F16, View};
use crate::sync::Claim;
use crate::threadpool::{Span, ThreadPool, parallel_for};

const FLOATS: [u32; 3] = [dtype::F32, dtype::BF16, dtype::F16];
const ALL: [u32; 7] = [dtype::F32, dtype::BF16, dtype::F16, dtype::S32, dtype::S8, dtype::U8, dtype::BOOL];

/// Words around each tensor that nobody may write.
const GUARDS: usize = 8;
const GUARD: u64 = 0x7fc0_dead_7fc0_dead;

/// A tensor of any type.
#[derive(Clone, Debug)]
struct Tensor {
    desc: Desc,
    words: Vec<u64>,
}

impl Tensor {
    fn empty(desc: Desc) -> Tensor {
        let words = desc.bytes().unwrap().div_ceil(8);
        Tensor { desc, words: vec![GUARD; words + 2 * GUARDS] }
    }

    fn new(dtype: u32, dims: &[i64], values: &[f64]) -> Tensor {
        let tensor = Tensor::empty(Desc::new(dtype, dims));
        assert_eq!(values.len(), elements(&tensor.desc));
        let view = tensor.view();
        fn fill<T: Element>(view: &View, values: &[f64], of: impl Fn(f64) -> T + Sync) {
            let span = Span { items: values.len(), ..Span::default() };
            let body = |mut claim: Claim| {
                let values = &values[claim.begin()..claim.end()];
                view.shards::<T>().part(&mut claim, 1).iter_mut().zip(values).for_each(|(y, &x)| *y = of(x));
                Ok(())
            };
            parallel_for(None, &span, &body).unwrap();
        }
        match dtype {
            dtype::F32 => fill(&view, values, |x| x as f32),
            dtype::BF16 => fill(&view, values, |x| Bf16::narrowed(x as f32)),
            dtype::F16 => fill(&view, values, |x| F16::narrowed(x as f32)),
            dtype::S32 => fill(&view, values, |x| x as i32),
            dtype::S8 => fill(&view, values, |x| x as i8),
            dtype::U8 => fill(&view, values, |x| x as u8),
            _ => fill(&view, values, |x| Bool(u8::from(x != 0.0))),
        }
        tensor
    }

    fn view(&self) -> View {
        View::new(self.words[GUARDS..].as_ptr().cast_mut().cast(), self.desc.bytes().unwrap(), self.desc)
    }

    fn values(&self) -> Vec<f64> {
        fn of<T: Stored>(view: &View) -> Vec<f64> {
            view.read::<T>().iter().map(|x| f64::from(x.widened())).collect()
        }
        let view = self.view();
        match self.desc.dtype {
            dtype::F32 => of::<f32>(&view),
            dtype::BF16 => of::<Bf16>(&view),
            dtype::F16 => of::<F16>(&view),
            dtype::S32 => view.read::<i32>().iter().map(|&x| f64::from(x)).collect(),
            dtype::S8 => of::<i8>(&view),
            dtype::U8 => of::<u8>(&view),
            _ => of::<Bool>(&view),
        }
    }

    /// A number as an element of this type holds it.
    fn rounded(dtype: u32, x: f64) -> f64 {
        Tensor::new(dtype, &[1], &[x]).values()[0]
    }

    fn check_guards(&self) {
        let whole = self.desc.bytes().unwrap() / 8;
        let (front, back) = (&self.words[..GUARDS], &self.words[self.words.len() - GUARDS..]);
        assert!(front.iter().chain(back).all(|&word| word == GUARD), "{} was written outside", self.desc.text());
        let rest = self.desc.bytes().unwrap() % 8;
        if rest > 0 {
            let mask = u64::MAX << (8 * rest);
            assert_eq!(self.words[GUARDS + whole] & mask, GUARD & mask, "{} was written outside", self.desc.text());
        }
    }
}

fn call(kernel: &dyn Kernel, inputs: &[View], output: View, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
    let outputs = [output];
    let scratch = Scratch::new(std::ptr::null_mut(), 0, 8);
    kernel.compute(&KernelContext::new(inputs, &outputs, pool, scratch, &NEVER))
}

fn run_on(kernel: &dyn Kernel, inputs: &[&Tensor], pool: Option<&Ref<ThreadPool>>) -> Tensor {
    let descs: Vec<_> = inputs.iter().map(|tensor| tensor.desc).collect();
    let outputs = kernel.infer(&descs).unwrap();
    assert!(kernel.cost_ns(&descs, &outputs) >= LEAST_NS && kernel.is_pure());
    let output = Tensor::empty(outputs[0]);
    let views: Vec<_> = inputs.iter().map(|tensor| tensor.view()).collect();
    call(kernel, &views, output.view(), pool).unwrap();
    output.check_guards();
    output
}

/// The result, which is the same on all pools, and in the memory of each input that it fits.
fn run(kernel: &dyn Kernel, inputs: &[&Tensor]) -> Tensor {
    let want = run_on(kernel, inputs, None);
    for i in 0..inputs.len() {
        if kernel.in_place() && inputs[i].desc == want.desc {
            let own: Vec<Tensor> = inputs.iter().map(|&tensor| tensor.clone()).collect();
            let views: Vec<_> = own.iter().map(Tensor::view).collect();
            call(kernel, &views, own[i].view(), None).unwrap();
            assert_eq!(own[i].words, want.words, "{} in the memory of input {i}", kernel.name());
        }
    }
    want
}

fn check_pools(kernel: &dyn Kernel, inputs: &[&Tensor]) {
    let want = run_on(kernel, inputs, None);
    for (name, pool) in pools() {
        let got = run_on(kernel, inputs, Some(&pool));
        assert!(got.words == want.words, "{} on {name}: other bits than without a pool", kernel.name());
    }
}

/// Not more than `percent` of the elements are zeros: else a comparison would show nothing.
fn check_trust(values: &[f64], percent: usize) {
    let zeros = values.iter().filter(|&&x| x == 0.0).count();
    assert!(zeros * 100 <= values.len() * percent, "{zeros} zeros in {}", values.len());
}

fn noise(count: usize, seed: u64, limit: f64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 23) - 1.0
    };
    (0..count).map(|_| next() * limit).collect()
}

fn random(dtype: u32, dims: &[i64], seed: u64, limit: f64) -> Tensor {
    Tensor::new(dtype, dims, &noise(dims.iter().product::<i64>() as usize, seed, limit))
}

/// Whole numbers, none of them 0.
fn whole(dtype: u32, dims: &[i64], seed: u64, limit: f64) -> Tensor {
    let values = noise(dims.iter().product::<i64>() as usize, seed, limit);
    let signed = |x: f64| if dtype == dtype::U8 { x.abs() } else { x };
    let values: Vec<f64> = values.into_iter().map(|x| if x.round() == 0.0 { 1.0 } else { signed(x.round()) }).collect();
    Tensor::new(dtype, dims, &values)
}

// Eltwise

fn function(op: eltwise::Op, alpha: f32, beta: f32) -> Eltwise {
    Eltwise { op, alpha, beta }
}

#[test]
fn functions_take_every_shape_type_and_place() {
    use eltwise::Op::*;
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
        function(Relu, 0.25, 0.0),
        function(GeluErf, 0.0, 0.0),
        function(Exp, 0.0, 0.0),
        function(Clip, -2.0, 3.0),
        function(Pow, 1.0, 0.7),
        function(Mish, 0.0, 0.0),
        function(Softplus, -1.0, 0.0),
    ];
    for (f, of) in ops.iter().flat_map(|f| FLOATS.map(|of| (f, of))) {
        for (i, dims) in shapes.iter().enumerate() {
            let x = random(of, dims, i as u64 + 1, 10.0);
            let y = run(f, &[&x]);
            assert_eq!(y.desc, x.desc);
            // What it is in floats, whose functions have tests of their own, rounded to the type.
            let floats: Vec<f32> = x.values().iter().map(|&x| x as f32).collect();
            let mut want = floats.clone();
            eltwise::apply(Isa::best(), f, crate::kernel::vector::elements::Pair::apart(&floats, &mut want));
            for (&got, &want) in y.values().iter().zip(&want) {
                let want = Tensor::rounded(of, f64::from(want));
                assert!(got == want || got.is_nan() && want.is_nan(), "{f:?} {}: {got} for {want}", x.desc.text());
            }
            if f.op != Pow && floats.len() > 10 {
                check_trust(&y.values(), 65);
            }
        }
        check_pools(f, &[&random(of, &[3, 20_001], 7, 10.0)]);
    }
}

#[test]
fn functions_refuse_what_they_cannot_do() {
    let f = function(eltwise::Op::Tanh, 0.0, 0.0);
    let text = "input 0: expected f32, bf16 or f16 elements, got s32[2]";
    assert_eq!(refusal(&f, &[Desc::new(dtype::S32, &[2])]), text);
    // An output that begins in the middle of the input.
    let x = Tensor::empty(Desc::new(dtype::F32, &[8]));
    let shifted = View::new(x.view().data().wrapping_add(4), 28, Desc::new(dtype::F32, &[7]));
    let error = call(&f, &[View::new(x.view().data(), 28, Desc::new(dtype::F32, &[7]))], shifted, None).unwrap_err();
    assert_eq!(error.message(), "output 0 shares a part of its memory with input 0, expected all or nothing");
    assert!(x.words.iter().all(|&word| word == GUARD), "something was written");
}

// Binary

fn binary_reference(op: binary::Op, of: u32, a: f64, b: f64) -> f64 {
    use binary::Op::*;
    let truth = |holds: bool| f64::from(u8::from(holds));
    let value = match op {
        Add => a + b,
        Sub => a - b,
        Mul => a * b,
        Div => a / b,
        Min => a.min(b),
        Max => a.max(b),
        Pow => a.powf(b),
        Eq => return truth(a == b),
        Ne => return truth(a != b),
        Lt => return truth(a < b),
        Le => return truth(a <= b),
        Gt => return truth(a > b),
        Ge => return truth(a >= b),
    };
    if FLOATS.contains(&of) {
        Tensor::rounded(of, f64::from(value as f32))
    } else {
        Tensor::rounded(of, value.round_ties_even())
    }
}

/// The elements of tensors that stretch to element `number` of an output.
fn picked<const N: usize>(tensors: [&Tensor; N], values: &[Vec<f64>], shape: &[i64], number: i64) -> [f64; N] {
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
    use binary::Op::*;
    let shapes: [(&[i64], &[i64], &[i64]); 12] = [
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
    ];
    for op in [Add, Sub, Mul, Div, Min, Max, Pow, Eq, Ne, Lt, Le, Gt, Ge] {
        let kernel = Binary { op };
        for of in ALL {
            if of == dtype::BOOL && !op.compares() || op == Pow && !FLOATS.contains(&of) {
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
                    let close = op == Pow && (got - want).abs() <= 0.01 * want.abs();
                    assert!(
                        got == want || got.is_nan() && want.is_nan() || close,
                        "{op:?} {} of {a}, {b}: {got} for {want}",
                        y.desc.text()
                    );
                }
                if of != dtype::BOOL && matches!(op, Add | Mul | Min | Max) {
                    check_trust(&y.values(), 30);
                }
            }
        }
    }
}

#[test]
fn functions_of_two_give_the_same_bits_on_all_pools() {
    for of in [dtype::F32, dtype::BF16, dtype::S32, dtype::U8] {
        for (a, b) in [
            (&[100_003][..], &[100_003][..]),
            (&[331, 307], &[307]),
            (&[40_000, 3], &[40_000, 1]),
            (&[7, 1, 30, 41], &[30, 1, 1]),
        ] {
            let (a, b) = (whole(of, a, 1, 50.0), whole(of, b, 2, 50.0));
            for op in [binary::Op::Sub, binary::Op::Le] {
                check_pools(&Binary { op }, &[&a, &b]);
                check_pools(&Binary { op }, &[&b, &a]);
            }
        }
    }
}

#[test]
fn functions_of_two_refuse_what_they_cannot_do() {
    let (add, pow) = (Binary { op: binary::Op::Add }, Binary { op: binary::Op::Pow });
    let of = |of, dims: &[i64]| Desc::new(of, dims);
    let text = "input 1: expected a shape that broadcasts with s8[2,3], got s8[2]";
    assert_eq!(refusal(&add, &[of(dtype::S8, &[2, 3]), of(dtype::S8, &[2])]), text);
    let text = "input 1: expected f16 elements, as input 0 has, got f32[2]";
    assert_eq!(refusal(&add, &[of(dtype::F16, &[2]), of(dtype::F32, &[2])]), text);
    let text = "input 0: expected elements that are numbers, got bool[2]";
    assert_eq!(refusal(&add, &[of(dtype::BOOL, &[2]), of(dtype::BOOL, &[2])]), text);
    let text = "input 0: expected f32, bf16 or f16 elements, got s32[2]";
    assert_eq!(refusal(&pow, &[of(dtype::S32, &[2]), of(dtype::S32, &[2])]), text);
    // An output in the memory of an operand that stretches over it.
    let y = Tensor::empty(of(dtype::F32, &[4]));
    let one = View::new(y.view().data(), 4, of(dtype::F32, &[1]));
    let error = call(&add, &[y.view(), one], y.view(), None).unwrap_err();
    assert_eq!(error.message(), "output 0 shares a part of its memory with input 1, expected all or nothing");
}

// Select

#[test]
fn a_choice_is_made_for_each_element_of_every_type() {
    let shapes: [(&[i64], &[i64], &[i64], &[i64]); 7] = [
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
            let condition = Tensor::new(dtype::BOOL, condition, &truths);
            let (a, b) = (whole(of, a, 1, 100.0), whole(of, b, 2, 100.0));
            let y = run(&Select, &[&condition, &a, &b]);
            assert_eq!(y.desc, Desc::new(of, shape));
            let values = [condition.values(), a.values(), b.values()];
            for (number, &got) in y.values().iter().enumerate() {
                let [c, a, b] = picked([&condition, &a, &b], &values, shape, number as i64);
                assert_eq!(got, if c != 0.0 { a } else { b }, "{}", y.desc.text());
            }
        }
        let condition =
            Tensor::new(dtype::BOOL, &[300, 1], &noise(300, 3, 1.0).iter().map(|x| x.max(0.0)).collect::<Vec<_>>());
        check_pools(&Select, &[&condition, &whole(of, &[300, 111], 1, 100.0), &whole(of, &[111], 2, 100.0)]);
    }
    let of = |of| Desc::new(of, &[2]);
    let text = "input 0: expected bool elements, got u8[2]";
    assert_eq!(refusal(&Select, &[of(dtype::U8), of(dtype::F32), of(dtype::F32)]), text);
    let text = "input 2: expected f32 elements, as input 1 has, got s32[2]";
    assert_eq!(refusal(&Select, &[of(dtype::BOOL), of(dtype::F32), of(dtype::S32)]), text);
}

// Convert

#[test]
fn conversions_round_and_saturate_between_all_types() {
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
        let x = Tensor::new(from, &[3, 11], &interesting);
        for (scale, shift) in [(1.0f32, 0.0f32), (0.25, 0.0), (4_294_967_295.0, 0.0), (2.0, -1.0)] {
            let y = run(&Convert { dtype: to, scale, shift }, &[&x]);
            assert_eq!(y.desc, Desc::new(to, &[3, 11]));
            for (&x, &got) in x.values().iter().zip(&y.values()) {
                // Through a float, but for what both types hold as it is.
                let float =
                    if (scale, shift) == (1.0, 0.0) && from == to { x } else { f64::from(x as f32 * scale + shift) };
                let want = if FLOATS.contains(&to) || to == dtype::BOOL {
                    Tensor::rounded(to, float)
                } else {
                    Tensor::rounded(to, float.round_ties_even())
                };
                assert!(
                    got == want || got.is_nan() && want.is_nan(),
                    "{} to {}: {x} x {scale} + {shift}: {got} for {want}",
                    x,
                    y.desc.text()
                );
            }
        }
        let convert = Convert { dtype: to, scale: 0.5, shift: 1.0 };
        check_pools(&convert, &[&random(from, &[20_011], 5, 200.0)]);
    }
    let plain = Convert { dtype: dtype::S32, scale: 1.0, shift: 0.0 };
    let exact: Vec<f64> = vec![16_777_217.0, -2_147_483_647.0, 5.0];
    assert_eq!(run(&plain, &[&Tensor::new(dtype::S32, &[3], &exact)]).values(), exact);
}

// Quantize

#[test]
fn quantization_has_scales_for_all_or_for_each_index() {
    for (way, froms, tos) in [
        (Way::Quantize, FLOATS, [dtype::S8, dtype::U8, dtype::S32]),
        (Way::Dequantize, [dtype::S8, dtype::U8, dtype::S32], FLOATS),
    ] {
        for (from, to) in froms.into_iter().flat_map(|from| tos.map(|to| (from, to))) {
            for (dims, axis, count) in [
                (&[2, 5, 7][..], 0, 2),
                (&[2, 5, 7], 1, 5),
                (&[2, 5, 7], -1, 7),
                (&[2, 5, 7], -1, 1),
                (&[3, 700], 0, 3),
                (&[700, 3], 1, 3),
                (&[1], 0, 1),
            ] {
                for zero_point in [false, true] {
                    check_quantization(Quantization { way, dtype: to, zero_point, axis }, from, dims, count);
                }
            }
        }
    }
}

fn check_quantization(kernel: Quantization, from: u32, dims: &[i64], count: i64) {
    let x = whole(from, dims, 1, 120.0);
    let scales = Tensor::new(
        dtype::F32,
        &[count],
        &(0..count).map(|i| f64::powi(0.5, i as i32 % 4 - 1) * 1.25).collect::<Vec<_>>(),
    );
    let zeros = Tensor::new(dtype::S32, &[count], &(0..count).map(|i| (i * 37 % 100 - 50) as f64).collect::<Vec<_>>());
    let inputs = if kernel.zero_point { vec![&x, &scales, &zeros] } else { vec![&x, &scales] };
    let y = run(&kernel, &inputs);
    let axis = kernel.axis.rem_euclid(dims.len() as i32) as usize;
    let inner: usize = dims[axis + 1..].iter().product::<i64>() as usize;
    for (i, (&x, &got)) in x.values().iter().zip(&y.values()).enumerate() {
        let channel = if count == 1 { 0 } else { i / inner % count as usize };
        let scale = scales.values()[channel] as f32;
        let zero = if kernel.zero_point { zeros.values()[channel] as f32 } else { 0.0 };
        let want = match kernel.way {
            Way::Quantize => (x as f32 / scale).round_ties_even() + zero,
            Way::Dequantize => (x as f32 - zero) * scale,
        };
        assert_eq!(
            got,
            Tensor::rounded(kernel.dtype, f64::from(want)),
            "{kernel:?} of {} at {i}: {x}, {scale}, {zero}",
            y.desc.text()
        );
    }
}

#[test]
fn quantization_gives_the_same_bits_on_all_pools_and_refuses_other_scales() {
    let kernel = |way, dtype| Quantization { way, dtype, zero_point: true, axis: 1 };
    let (scales, zeros) =
        (Tensor::new(dtype::F32, &[41], &vec![0.7; 41]), Tensor::new(dtype::S32, &[41], &noise(41, 2, 30.0)));
    check_pools(&kernel(Way::Quantize, dtype::S8), &[&random(dtype::F32, &[30, 41, 29], 1, 100.0), &scales, &zeros]);
    check_pools(&kernel(Way::Dequantize, dtype::F32), &[&random(dtype::S8, &[900, 41], 1, 100.0), &scales, &zeros]);
    let quantize = kernel(Way::Quantize, dtype::U8);
    let of = |of, dims: &[i64]| Desc::new(of, dims);
    let x = of(dtype::F32, &[2, 3]);
    let text = "input 1: expected f32[1] or f32[3], got f32[2]";
    assert_eq!(refusal(&quantize, &[x, of(dtype::F32, &[2]), of(dtype::S32, &[2])]), text);
    let text = "input 2: expected s32[1] or s32[3], got u8[3]";
    assert_eq!(refusal(&quantize, &[x, of(dtype::F32, &[3]), of(dtype::U8, &[3])]), text);
    let text = "input 2: expected as many elements as input 1, f32[3], has, got s32[1]";
    assert_eq!(refusal(&quantize, &[x, of(dtype::F32, &[3]), of(dtype::S32, &[1])]), text);
    let text = "input 0: expected f32, bf16 or f16 elements, got s8[2,3]";
    assert_eq!(refusal(&quantize, &[of(dtype::S8, &[2, 3]), x, x]), text);
}

#[test]
fn numbers_that_are_none_become_zero_or_the_limit() {
    let kernel = Quantization { way: Way::Quantize, dtype: dtype::S8, zero_point: false, axis: 0 };
    let x = Tensor::new(dtype::F32, &[4], &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e30]);
    let y = run(&kernel, &[&x, &Tensor::new(dtype::F32, &[], &[1.0])]);
    assert_eq!(y.values(), [0.0, 127.0, -128.0, 127.0]);
}
