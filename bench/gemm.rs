//! The standalone products on each instruction set of this machine, and on a pool: `cargo bench --bench gemm`, with the
//! number of rounds as an optional argument. Prints Markdown: medians over the rounds, in each of which every variant
//! runs once, in turn.

use std::time::Instant;
use weir_core::base::Ref;
use weir_core::kernel::vector::gemm::{self, GemmShape};
use weir_core::kernel::vector::int8::{Int8Product, Offset, Rule};
use weir_core::kernel::vector::isa::Isa;
use weir_core::kernel::vector::micro::Scale;
use weir_core::kernel::vector::site::{Matrix, MatrixMut};
use weir_core::kernel::vector::standalone;
use weir_core::threadpool::{ThreadPool, ThreadPoolOptions};

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Operations per nanosecond of each variant.
fn rates(operations: f64, rounds: usize, variants: &mut [Box<dyn FnMut() + '_>]) -> Vec<f64> {
    let repeat = (2e8 / operations).clamp(1.0, 2000.0) as usize;
    let mut times = vec![Vec::new(); variants.len()];
    for _ in 0..rounds {
        for (variant, times) in variants.iter_mut().zip(&mut times) {
            let start = Instant::now();
            (0..repeat).for_each(|_| variant());
            times.push(start.elapsed().as_secs_f64());
        }
    }
    times.into_iter().map(|times| operations * repeat as f64 / median(times) / 1e9).collect()
}

fn row(name: &str, rates: &[f64]) {
    let cells: Vec<_> = rates.iter().map(|rate| format!("{rate:.1}")).collect();
    println!("| {name} | {} |", cells.join(" | "));
}

fn bytes(size: usize, rounds: usize, pool: &Ref<ThreadPool>) {
    let len = size * size;
    let a: Vec<u8> = (0..len).map(|i| (i * 7 % 256) as u8).collect();
    let b: Vec<u8> = (0..len).map(|i| (i * 5 % 256) as u8).collect();
    let product = Int8Product {
        m: size,
        n: size,
        k: size,
        a: Matrix::dense(&a, size, size),
        transpose_a: false,
        signed_a: false,
        b: Matrix::dense(&b, size, size),
        transpose_b: false,
        packed_b: None,
        zero_a: 0,
        zero_b: 0,
        rule: Rule { alpha: 1.0, beta: 0.0, offset: Offset::Fixed(0) },
    };
    let levels = Isa::available().map(|isa| (isa, None));
    let variants = levels.chain([(Isa::best(), Some(pool))]);
    let mut variants: Vec<Box<dyn FnMut()>> = variants
        .map(|(isa, pool)| {
            let mut c = vec![0i32; len];
            let product = &product;
            Box::new(move || {
                standalone::bytes_with(isa, pool, product, MatrixMut::dense(&mut c, size, size)).unwrap();
            }) as Box<dyn FnMut()>
        })
        .collect();
    let operations = 2.0 * (size as f64).powi(3);
    row(&format!("u8 x s8 {size}"), &rates(operations, rounds, &mut variants));
}

fn floats(size: usize, rounds: usize, pool: &Ref<ThreadPool>) {
    let len = size * size;
    let a: Vec<f32> = (0..len).map(|i| (i * 7 % 13) as f32 - 6.0).collect();
    let product = gemm::GemmProduct {
        shape: GemmShape { m: size, n: size, k: size, transpose_a: false, transpose_b: false },
        a: Matrix::dense(&a, size, size),
        b: Matrix::dense(&a, size, size),
        scale: Scale { alpha: 1.0, beta: 0.0 },
        bias: None,
        relu: false,
    };
    let levels = Isa::available().map(|isa| (isa, None));
    let mut variants: Vec<Box<dyn FnMut()>> = levels
        .chain([(Isa::best(), Some(pool))])
        .map(|(isa, pool)| {
            let mut c = vec![0f32; len];
            let product = &product;
            Box::new(move || {
                standalone::f32_with(isa, pool, product, MatrixMut::dense(&mut c, size, size)).unwrap();
            }) as Box<dyn FnMut()>
        })
        .collect();
    let operations = 2.0 * (size as f64).powi(3);
    row(&format!("f32 {size}"), &rates(operations, rounds, &mut variants));
}

fn main() {
    let rounds = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(15);
    let pool =
        ThreadPool::builtin(&ThreadPoolOptions { num_threads: Some(1), ..ThreadPoolOptions::default() }).unwrap();
    let names: Vec<_> = Isa::available().filter_map(Isa::name).collect();
    println!("Operations per nanosecond of square products, one thread; last the best one and one pool thread\n");
    println!("| | {} | {:?} x 2 |", names.join(" | "), Isa::best());
    println!("|---{}|", "|---".repeat(names.len() + 1));
    for size in [64, 128, 256, 512, 1024] {
        bytes(size, rounds, &pool);
    }
    for size in [64, 128, 256, 512, 1024] {
        floats(size, rounds, &pool);
    }
}
