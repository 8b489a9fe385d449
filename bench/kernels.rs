//! Kernels alone, without a stream, on one thread beside plain loops that the compiler makes of the same work:
//! `cargo bench --bench kernels`. Prints Markdown: medians over the rounds, in each of which both run, in turn. Beside
//! libraries: `./dev bench kernels`.

use std::hint::black_box;
use std::time::Instant;
use weir_core::base::{Desc, dtype};
use weir_core::kernel::builtin::Builtin;
use weir_core::kernel::vector::activation::Activation;
use weir_core::kernel::{Kernel, KernelContext, NEVER, Scratch};
use weir_core::memory::{AlignedBuffer, View};
use weir_core::ops::weir_eltwise_op_value as Op;
use weir_core::ops::*;

const ROUNDS: usize = 21;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn view(data: &mut [f32], dims: &[i64]) -> View {
    // SAFETY: the callers keep the data as long as the view.
    unsafe { View::new(data.as_mut_ptr().cast(), size_of_val(data), Desc::new(dtype::F32, dims)) }
}

/// Work by plain loops: from one or two inputs to the output.
type Plain<'a> = &'a dyn Fn(&[f32], &[f32], &mut [f32]);

/// A kernel over one or two tables of the same shape.
struct Case<'a> {
    name: String,
    kernel: &'a dyn Kernel,
    dims: [i64; 2],
    inputs: usize,
    /// What a call does, in the unit of the table times nanoseconds.
    amount: f64,
    plain: Plain<'a>,
}

impl Case<'_> {
    fn run(&self) {
        let len = (self.dims[0] * self.dims[1]) as usize;
        let numbers = |seed: usize| (0..len).map(|i| ((i * seed) % 8001) as f32 / 1000.0 - 4.0).collect::<Vec<_>>();
        let (mut x, mut y) = (numbers(7919), numbers(104_729));
        let inputs = [view(&mut x, &self.dims), view(&mut y, &self.dims)];
        let inputs = &inputs[..self.inputs];
        let descs: Vec<_> = inputs.iter().map(|input| *input.desc()).collect();
        let result = self.kernel.infer(&descs).unwrap();
        let size = result[0].bytes().unwrap() / size_of::<f32>();
        let (mut ours, mut theirs) = (vec![0.0f32; size], vec![0.0f32; size]);
        // SAFETY: the numbers outlive the view.
        let outputs = [unsafe { View::new(ours.as_mut_ptr().cast(), size * size_of::<f32>(), result[0]) }];
        let bytes = self.kernel.scratch_bytes(&descs, &result);
        let scratch = AlignedBuffer::zeroed(Scratch::stride(bytes), "scratch").unwrap();
        let ours_once = || {
            // SAFETY: nobody else has the memory.
            unsafe {
                let scratch = Scratch::new(scratch.data(), bytes, 1);
                let context = KernelContext::new(inputs, &outputs, None, scratch, &NEVER);
                self.kernel.compute(&context, context.outputs()).unwrap();
            }
        };
        // SAFETY: nobody writes them.
        let [a, b] = [0, self.inputs - 1].map(|i| unsafe { inputs[i].as_bytes() }.read::<f32>());
        let mut plain_once = || (self.plain)(black_box(a), black_box(b), black_box(&mut theirs));
        let start = Instant::now();
        ours_once();
        plain_once();
        let calls = (2e6 / start.elapsed().as_nanos() as f64).clamp(1.0, 5000.0) as usize;
        let (mut weir, mut loops) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let start = Instant::now();
            (0..calls).for_each(|_| ours_once());
            weir.push(start.elapsed().as_nanos() as f64 / calls as f64);
            let start = Instant::now();
            (0..calls).for_each(|_| plain_once());
            loops.push(start.elapsed().as_nanos() as f64 / calls as f64);
        }
        let ratios = weir.iter().zip(&loops).map(|(weir, loops)| loops / weir).collect();
        let (weir, loops, ratio) = (self.amount / median(weir), self.amount / median(loops), median(ratios));
        // SAFETY: all calls are over.
        let made = unsafe { outputs[0].as_bytes() }.read::<f32>();
        for (i, (a, b)) in made.iter().zip(&theirs).enumerate() {
            assert!((a - b).abs() <= 1e-3 * b.abs().max(1.0), "{}: {a} at {i}, by plain loops {b}", self.name);
        }
        println!("| {} {} x {} | {weir:.1} | {loops:.1} | {ratio:.2} |", self.name, self.dims[0], self.dims[1]);
    }
}

fn head(title: &str) {
    println!("\n### {title}\n\n| | weir | plain loop | ratio |\n|---|--:|--:|--:|");
}

fn unary(op: Op, rows: i64, plain: impl Fn(f32) -> f32) {
    let kernel = Builtin::new(Eltwise { op, alpha: 0.0, beta: 0.0 });
    let amount = 8.0 * (rows * 1024) as f64;
    let plain = |x: &[f32], _: &[f32], y: &mut [f32]| x.iter().zip(y).for_each(|(&x, y)| *y = plain(x));
    Case { name: format!("{op:?}"), kernel: &kernel, dims: [rows, 1024], inputs: 1, amount, plain: &plain }.run();
}

fn softmax(row: (&[f32], &mut [f32])) {
    let most = row.0.iter().fold(f32::NEG_INFINITY, |most, &x| most.max(x));
    let mut sum = 0.0;
    for (&x, y) in row.0.iter().zip(&mut *row.1) {
        *y = (x - most).exp();
        sum += *y;
    }
    row.1.iter_mut().for_each(|y| *y /= sum);
}

fn layer_norm(row: (&[f32], &mut [f32])) {
    let len = row.0.len() as f32;
    let mean = row.0.iter().sum::<f32>() / len;
    let variance = row.0.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / len;
    let scale = 1.0 / (variance + 1e-5).sqrt();
    row.0.iter().zip(row.1).for_each(|(x, y)| *y = (x - mean) * scale);
}

fn by_rows(x: &[f32], y: &mut [f32], row: impl Fn((&[f32], &mut [f32]))) {
    x.chunks(1024).zip(y.chunks_mut(1024)).for_each(row);
}

fn tables(rows: i64) {
    let (dims, bytes) = ([rows, 1024], 4.0 * (rows * 1024) as f64);
    unary(Op::WEIR_ELTWISE_RELU, rows, |x| x.max(0.0));
    unary(Op::WEIR_ELTWISE_EXP, rows, f32::exp);
    unary(Op::WEIR_ELTWISE_TANH, rows, f32::tanh);
    unary(Op::WEIR_ELTWISE_SIGMOID, rows, |x| 1.0 / (1.0 + (-x).exp()));
    let case = |name: &str, kernel: &dyn Kernel, inputs, bytes, plain: Plain<'_>| {
        Case { name: name.into(), kernel, dims, inputs, amount: bytes, plain }.run();
    };
    let add = |x: &[f32], y: &[f32], z: &mut [f32]| x.iter().zip(y).zip(z).for_each(|((x, y), z)| *z = x + y);
    case("add", &Builtin::new(Binary::of(weir_binary_op_value::WEIR_BINARY_ADD)), 2, 3.0 * bytes, &add);
    let copy = Builtin::new(Reshape { rank: 1, shape: [rows * 1024, 0, 0, 0, 0, 0, 0, 0] });
    case("copy, memcpy", &copy, 1, 2.0 * bytes, &|x, _, y| y.copy_from_slice(x));
    let kernel = Builtin::new(Softmax { axis: -1, log: false });
    case("softmax", &kernel, 1, 2.0 * bytes, &|x, _, y| by_rows(x, y, softmax));
    let op = weir_norm_op_value::WEIR_NORM_LAYER;
    let kernel = Builtin::new(Norm { op, axis: -1, groups: 0, epsilon: 1e-5, scale: false, shift: false });
    case("layer norm", &kernel, 1, 2.0 * bytes, &|x, _, y| by_rows(x, y, layer_norm));
    let op = weir_reduce_op_value::WEIR_REDUCE_SUM;
    let kernel = Builtin::new(Reduce { op, ..Reduce::argmax(1) });
    case("sum of rows", &kernel, 1, bytes, &|x, _, y| {
        x.chunks(1024).zip(y).for_each(|(row, y)| *y = row.iter().sum());
    });
    case("transpose", &Builtin::new(Transpose { rank: None, permutation: [0; 8] }), 1, 2.0 * bytes, &|x, _, y| {
        let columns = y.len() / 1024;
        for (i, row) in x.chunks(1024).enumerate() {
            row.iter().enumerate().for_each(|(j, &x)| y[j * columns + i] = x);
        }
    });
}

fn products(size: i64) {
    let kernel = Builtin::new(Matmul {
        transpose_a: false,
        transpose_b: false,
        bias: false,
        sum: false,
        activation: Activation::NONE,
        wide: false,
        tf32: false,
        packed: None,
    });
    let plain = |a: &[f32], b: &[f32], c: &mut [f32]| {
        let size = size as usize;
        for (a, c) in a.chunks(size).zip(c.chunks_mut(size)) {
            c.fill(0.0);
            for (a, b) in a.iter().zip(b.chunks(size)) {
                c.iter_mut().zip(b).for_each(|(c, b)| *c += a * b);
            }
        }
    };
    let amount = 2.0 * (size as f64).powi(3);
    Case { name: "matmul".into(), kernel: &kernel, dims: [size, size], inputs: 2, amount, plain: &plain }.run();
}

fn main() {
    head("Kernels over tables, GB/s of what is read and written");
    tables(64);
    tables(1024);
    head("Products, GFLOP/s");
    [16, 64, 256, 1024].into_iter().for_each(products);
}
