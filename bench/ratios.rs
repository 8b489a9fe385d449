//! Ratios, both sides in one run: each round runs every variant once, in turn, and the table shows medians over the
//! rounds. `cargo bench --bench ratios`, with the number of rounds as an optional argument.

#[path = "shapes.rs"]
mod shapes;

use shapes::{Body, Shape, bm_executor, build, chain, empty, fanout, half_microsecond, serial, tree, wide};
use std::time::Instant;
use weir_core::base::{Error, Ref};
use weir_core::graph::{Program, RunOptions};
use weir_core::threadpool::{ThreadPool, ThreadPoolOptions};

fn run(program: &Ref<Program>, options: &RunOptions) {
    let none = |_: usize| Err(Error::internal("the shapes have no tensors"));
    Program::bind(program, (0, &none), (0, &none)).unwrap().run(None, Some(options)).unwrap();
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds per node of each variant: serial loop, caller alone, caller and one pool thread.
fn measure(shape: &Shape, body: Body, rounds: usize, pool: &Ref<ThreadPool>) -> [f64; 3] {
    let built = build(shape, body);
    let alone = RunOptions::default();
    let with_pool = RunOptions { threadpool: Some(Ref::clone(pool)), ..RunOptions::default() };
    let variants: [&dyn Fn(); 3] =
        [&|| serial(&built.nodes), &|| run(&built.program, &alone), &|| run(&built.program, &with_pool)];
    variants.iter().for_each(|variant| variant());
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        for (variant, times) in variants.iter().zip(&mut times) {
            let start = Instant::now();
            variant();
            times.push(start.elapsed().as_nanos() as f64 / shape.nodes as f64);
        }
    }
    times.map(median)
}

fn main() {
    // cargo passes --bench; any number is the count of rounds.
    let rounds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(301);
    let pool =
        ThreadPool::builtin(&ThreadPoolOptions { num_threads: Some(1), ..ThreadPoolOptions::default() }).unwrap();
    let shapes = [chain(), wide(), fanout(), tree(), bm_executor("BM_executor(16,1024)", 16, 1024)];
    for (title, body) in [("empty bodies", empty as Body), ("bodies of about half a microsecond", half_microsecond)] {
        println!("{title}, ns per node, medians of {rounds} rounds");
        println!(
            "{:22} {:>8} {:>14} {:>14} {:>9} {:>9}",
            "", "serial", "caller alone", "+ 1 pool thr.", "alone/ser", "pool/ser"
        );
        for shape in &shapes {
            let [serial, alone, pooled] = measure(shape, body, rounds, &pool);
            println!(
                "{:22} {serial:8.2} {alone:14.2} {pooled:14.2} {:9.2} {:9.2}",
                shape.name,
                alone / serial,
                pooled / serial
            );
        }
    }
}
