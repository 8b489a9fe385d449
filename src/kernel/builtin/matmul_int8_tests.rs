//! int8 matrix products against their definition, in all types, on all pools.

use super::fixture::pools;
use super::{Builtin, Packed};
use crate::base::{Desc, Ref, dtype};
use crate::kernel::{Kernel, KernelContext, NEVER, Scratch};
use crate::memory::{AlignedBuffer, View};
use crate::ops::{MatmulInt8, Operator};
use crate::threadpool::ThreadPool;
use std::sync::Arc;

const PLAIN: MatmulInt8 = MatmulInt8 {
    transpose_a: false,
    transpose_b: false,
    bias: false,
    scales: false,
    scale: 1.0,
    zero_a: 0,
    zero_b: 0,
    zero_c: 0,
    dtype: dtype::S32,
    packed: None,
};

/// A tensor of any type, in words of 4 bytes.
fn view(words: &mut [u32], desc: Desc) -> View {
    // SAFETY: the callers keep the words as long as the view.
    unsafe { View::new(words.as_mut_ptr().cast(), desc.bytes().unwrap(), desc) }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let padded = bytes.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_ne_bytes(word)
    });
    padded.collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// The output's bytes.
fn run(kernel: &Builtin<MatmulInt8>, inputs: &[(Desc, Vec<u32>)], pool: Option<&Ref<ThreadPool>>) -> (Desc, Vec<u8>) {
    let descs: Vec<_> = inputs.iter().map(|(desc, _)| *desc).collect();
    let outputs = kernel.infer(&descs).unwrap();
    let mut inputs = inputs.to_vec();
    let views: Vec<_> = inputs.iter_mut().map(|(desc, words)| view(words, *desc)).collect();
    let size = outputs[0].bytes().unwrap();
    let mut out = vec![0x5555_5555; size.div_ceil(4) + 4];
    let out_views = [view(&mut out, outputs[0])];
    let scratch_bytes = kernel.scratch_bytes(&descs, &outputs);
    let memory = AlignedBuffer::zeroed(Scratch::stride(scratch_bytes) * 8, "scratch").unwrap();
    // SAFETY: nothing else uses the memory.
    unsafe {
        let scratch = Scratch::new(memory.data(), scratch_bytes, 8);
        let context = KernelContext::new(&views, &out_views, pool, scratch, &NEVER);
        kernel.compute(&context, context.outputs()).unwrap();
    }
    let all = bytes(&out);
    assert!(all[size..].iter().all(|&byte| byte == 0x55), "{kernel:?} was written outside");
    (outputs[0], all[..size].to_vec())
}

fn random(len: usize, mut state: u32) -> Vec<u8> {
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn check(operator: MatmulInt8, signed_a: bool, (m, k, n): (usize, usize, usize)) {
    let kernel = &Builtin::new(operator);
    let (a, b) = (random(m * k, 1), random(k * n, 2));
    let bias: Vec<i32> = (0..n).map(|j| j as i32 * 1000 - 3000).collect();
    let scales: Vec<f32> = (0..n).map(|j| 0.25 + j as f32 / 64.0).collect();
    let dims = |transposed: bool, rows: usize, columns: usize| {
        if transposed { [columns as i64, rows as i64] } else { [rows as i64, columns as i64] }
    };
    let a_desc = Desc::new(if signed_a { dtype::S8 } else { dtype::U8 }, &dims(kernel.transpose_a, m, k));
    let b_desc = Desc::new(dtype::S8, &dims(kernel.transpose_b, k, n));
    let mut inputs = vec![(a_desc, words(&a))];
    let mut packing = words(&b);
    let packing = view(&mut packing, b_desc);
    // SAFETY: nothing else uses the words.
    let packed = Packed::new(unsafe { packing.as_bytes() }, kernel.transpose_b).unwrap();
    inputs.push((b_desc, words(&b)));
    let column = [n as i64];
    inputs.extend(kernel.bias.then(|| (Desc::new(dtype::S32, &column), bias.iter().map(|&x| x as u32).collect())));
    inputs
        .extend(kernel.scales.then(|| (Desc::new(dtype::F32, &column), scales.iter().map(|x| x.to_bits()).collect())));
    let (desc, got) = run(kernel, &inputs, None);
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let mut sum = 0i64;
        for p in 0..k {
            let a = a[if kernel.transpose_a { p * m + i } else { i * k + p }];
            let a = if signed_a { i64::from(a as i8) } else { i64::from(a) };
            let b = b[if kernel.transpose_b { j * k + p } else { p * n + j }] as i8;
            sum += (a - i64::from(kernel.zero_a)) * (i64::from(b) - i64::from(kernel.zero_b));
        }
        sum += if kernel.bias { i64::from(bias[j]) } else { 0 };
        let scale = f64::from(kernel.scale) * if kernel.scales { f64::from(scales[j]) } else { 1.0 };
        let value = scale * sum as f64;
        let rounded = value.round_ties_even() as i64 + i64::from(kernel.zero_c);
        let at = i * n + j;
        let word = || <[u8; 4]>::try_from(&got[4 * at..4 * at + 4]).unwrap();
        let what = format!("{kernel:?} {m} x {k} x {n}: {i}, {j}");
        match kernel.dtype {
            dtype::S32 => assert_eq!(
                i64::from(i32::from_ne_bytes(word())),
                rounded.clamp(i32::MIN.into(), i32::MAX.into()),
                "{what}"
            ),
            dtype::F32 => assert_eq!(f32::from_ne_bytes(word()), (value + f64::from(kernel.zero_c)) as f32, "{what}"),
            dtype::S8 => assert_eq!(i64::from(got[at] as i8), rounded.clamp(-128, 127), "{what}"),
            _ => assert_eq!(i64::from(got[at]), rounded.clamp(0, 255), "{what}"),
        }
    }
    let of_packed = MatmulInt8 { packed: Some(packed.shape()), transpose_b: false, ..operator };
    let with_packed = Builtin::with_weights(of_packed, Some(Arc::new(packed)));
    let mut without_b = inputs.clone();
    without_b.remove(1);
    assert!(run(&with_packed, &without_b, None) == (desc, got.clone()), "{kernel:?} packed");
    for (name, pool) in pools() {
        assert!(run(kernel, &inputs, Some(&pool)) == (desc, got.clone()), "{kernel:?} on {name}");
        assert!(run(&with_packed, &without_b, Some(&pool)) == (desc, got.clone()), "{kernel:?} packed on {name}");
    }
}

#[test]
fn every_type_scale_and_zero_point() {
    for dtype in [dtype::S32, dtype::F32, dtype::S8, dtype::U8] {
        for shape in [(1, 1, 1), (10, 30, 20), (2, 65, 47), (61, 70, 90)] {
            let kernel = MatmulInt8 { dtype, ..PLAIN };
            check(kernel, false, shape);
            let kernel = MatmulInt8 { bias: true, zero_a: 1, zero_b: -1, zero_c: 2, ..kernel };
            check(kernel, true, shape);
            check(MatmulInt8 { scale: 0.25, transpose_a: true, ..kernel }, false, shape);
            check(MatmulInt8 { scale: 1.0 / 512.0, scales: true, transpose_b: true, ..kernel }, false, shape);
        }
    }
}

#[test]
fn full_pairs_do_not_saturate_on_the_way() {
    for k in [2usize, 3, 64, 1024] {
        let a = (Desc::new(dtype::U8, &[1, k as i64]), words(&vec![255; k]));
        let b = (Desc::new(dtype::S8, &[k as i64, 1]), words(&vec![127; k]));
        let (_, got) = run(&Builtin::new(PLAIN), &[a, b], None);
        assert_eq!(i32::from_ne_bytes(got.try_into().unwrap()), k as i32 * 255 * 127);
    }
}

/// Sums saturate before anything is added to them, whatever follows.
#[test]
fn sums_beyond_32_bits_saturate_before_bias_and_zero_point() {
    let k = 70_000usize;
    let a = (Desc::new(dtype::U8, &[1, k as i64]), words(&vec![255; k]));
    let b = (Desc::new(dtype::S8, &[k as i64, 1]), words(&vec![127; k]));
    let bias = -2_000_000_000;
    let of = |bytes: &[i32]| bytes.iter().map(|&x| x as u32).collect::<Vec<_>>();
    let (bias, one) = ((Desc::new(dtype::S32, &[1]), of(&[bias])), (Desc::new(dtype::F32, &[1]), vec![1f32.to_bits()]));
    let result = |operator: MatmulInt8, inputs: &[(Desc, Vec<u32>)]| {
        i32::from_ne_bytes(run(&Builtin::new(operator), inputs, None).1.try_into().unwrap())
    };
    let want = i32::MAX - 2_000_000_000;
    assert_eq!(result(MatmulInt8 { bias: true, ..PLAIN }, &[a.clone(), b.clone(), bias.clone()]), want);
    let scaled = MatmulInt8 { bias: true, scales: true, ..PLAIN };
    assert_eq!(result(scaled, &[a.clone(), b.clone(), bias, one]), want);
    assert_eq!(result(MatmulInt8 { zero_c: -5, ..PLAIN }, &[a.clone(), b.clone()]), i32::MAX - 5);
    assert_eq!(result(PLAIN, &[a, b]), i32::MAX);
}

#[test]
fn refusals_name_the_input() {
    let u8s = |dims: &[i64]| Desc::new(dtype::U8, dims);
    let s8s = |dims: &[i64]| Desc::new(dtype::S8, dims);
    let refusal = |operator: &MatmulInt8, inputs: &[Desc]| operator.output(inputs).unwrap_err().message().to_owned();
    let f32s = Desc::new(dtype::F32, &[2, 3]);
    assert_eq!(refusal(&PLAIN, &[f32s, s8s(&[3, 4])]), "input 0: expected u8 or s8 elements, got f32[2,3]");
    assert_eq!(refusal(&PLAIN, &[u8s(&[2, 3]), u8s(&[3, 4])]), "input 1: expected s8[3,?], got u8[3,4]");
    assert_eq!(refusal(&PLAIN, &[u8s(&[2, 3]), s8s(&[4, 4])]), "input 1: expected s8[3,?], got s8[4,4]");
    let zero = MatmulInt8 { zero_a: 200, ..PLAIN };
    assert_eq!(refusal(&zero, &[s8s(&[2, 3]), s8s(&[3, 4])]), "input 0: zero_a is 200, which is no s8");
    let scales = MatmulInt8 { scales: true, ..PLAIN };
    let inputs = [u8s(&[2, 3]), s8s(&[3, 4]), Desc::new(dtype::F32, &[3])];
    assert_eq!(refusal(&scales, &inputs), "input 2: expected f32[4], got f32[3]");
}
