//! The matrix product on one thread beside the driver of the gemm-f32 crate, in turn, medians:
//! `cargo bench --bench matmul`.

use std::time::Instant;
use weir::base::{Desc, dtype};
use weir::kernel::vector::activation::Activation;
use weir::kernel::{Kernel, KernelContext, NEVER, Scratch, builtin::Matmul};
use weir::memory::{AlignedBuffer, View};

struct Case {
    m: usize,
    n: usize,
    k: usize,
    transpose_b: bool,
}

fn filled(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i * 7 % 13) as f32 - 6.0).collect()
}

fn view(data: &mut [f32], dims: [usize; 2]) -> View {
    let desc = Desc::new(dtype::F32, &dims.map(|dim| dim as i64));
    // SAFETY: the callers keep the data as long as the view.
    unsafe { View::new(data.as_mut_ptr().cast(), size_of_val(data), desc) }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// GFLOP/s of weir and of the crate's driver.
fn measure(case: &Case) -> (f64, f64) {
    let &Case { m, n, k, transpose_b } = case;
    let (mut a, mut b) = (filled(m * k), filled(k * n));
    let (mut ours, mut theirs) = (vec![0f32; m * n], vec![0f32; m * n]);
    let kernel = Matmul {
        transpose_a: false,
        transpose_b,
        bias: false,
        sum: false,
        activation: Activation::None,
        wide: false,
        weights: None,
    };
    let inputs = [view(&mut a, [m, k]), view(&mut b, if transpose_b { [n, k] } else { [k, n] })];
    let outputs = [view(&mut ours, [m, n])];
    let descs = (inputs.each_ref().map(|v| *v.desc()), outputs.each_ref().map(|v| *v.desc()));
    let bytes = kernel.scratch_bytes(&descs.0, &descs.1);
    let scratch = AlignedBuffer::zeroed(Scratch::stride(bytes), "scratch").unwrap();
    let gemm = gemm_f32::gemm::f32::get_gemm_fn();
    // Row-major B, or its transpose: strides of columns and rows.
    let (b_columns, b_rows) = if transpose_b { (k as isize, 1) } else { (1, n as isize) };
    let (a, b, c) = (a.as_ptr(), b.as_ptr(), theirs.as_mut_ptr());
    let repeat = (20_000_000 / (m * n * k)).clamp(1, 1000);
    let (mut weir, mut other) = (Vec::new(), Vec::new());
    for _ in 0..31 {
        let start = Instant::now();
        for _ in 0..repeat {
            // SAFETY: nobody else has the memory.
            unsafe {
                let scratch = Scratch::new(scratch.data(), bytes, 1);
                let context = KernelContext::new(&inputs, &outputs, None, scratch, &NEVER);
                kernel.compute(&context, context.outputs()).unwrap();
            }
        }
        weir.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        for _ in 0..repeat {
            let none = gemm_common::Parallelism::None;
            // The driver wants a product whose columns are contiguous: the transposed one, with the operands swapped.
            // SAFETY: the three arrays have m x k, k x n and m x n elements, with these strides, and do not overlap.
            unsafe {
                gemm(
                    n, m, k, c, n as isize, 1, false, b, b_rows, b_columns, a, k as isize, 1, 0.0, 1.0, false, false,
                    false, none,
                );
            }
        }
        other.push(start.elapsed().as_secs_f64());
    }
    assert_eq!(ours, theirs, "small integers: both are exact");
    let gflops = |seconds: f64| 2.0 * (m * n * k * repeat) as f64 / seconds / 1e9;
    (gflops(median(weir)), gflops(median(other)))
}

fn main() {
    println!("{:28} {:>8} {:>8} {:>6}   GFLOP/s, one thread", "M x N x K", "weir", "gemm-f32", "ratio");
    for (m, n, k) in [(64, 64, 64), (256, 256, 256), (1024, 1024, 1024), (50, 64, 96), (8, 1024, 1024), (1, 1024, 1024)]
    {
        for transpose_b in [false, true] {
            let (weir, other) = measure(&Case { m, n, k, transpose_b });
            let name = format!("{m} x {n} x {k}{}", if transpose_b { ", B transposed" } else { "" });
            println!("{name:28} {weir:8.1} {other:8.1} {:6.2}", weir / other);
        }
    }
}
