//! The executor on empty bodies, beside a serial loop over the same bodies, and what compiling takes:
//! `cargo bench --bench executor`.

#[path = "shapes.rs"]
mod shapes;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use shapes::{Random, Shape, bm_executor, build, chain, compile, empty, fanout, graph, serial, tree, wide};
use std::hint::black_box;
use weir::base::{Error, Ref};
use weir::graph::{Program, RunOptions};
use weir::threadpool::{PoolAttr, ThreadPool};

fn pool(threads: usize) -> Ref<ThreadPool> {
    ThreadPool::builtin(&PoolAttr { num_threads: Some(threads), ..PoolAttr::default() }).unwrap()
}

fn run(program: &Ref<Program>, options: &RunOptions) {
    let none = |_: usize| Err(Error::internal("the shapes have no tensors"));
    Program::bind(program, (0, &none), (0, &none)).unwrap().run(None, Some(options)).unwrap();
}

fn executor(c: &mut Criterion) {
    let shapes: [Shape; 5] = [chain(), wide(), fanout(), tree(), bm_executor("BM_executor(16,1024)", 16, 1024)];
    let alone = RunOptions::default();
    let with_pool = RunOptions { threadpool: Some(pool(1)), ..RunOptions::default() };
    for shape in &shapes {
        let built = build(shape, empty);
        let mut group = c.benchmark_group(shape.name);
        group.throughput(Throughput::Elements(shape.nodes as u64));
        group.bench_function("serial loop", |b| b.iter(|| serial(black_box(&built.nodes))));
        group.bench_function("caller alone", |b| b.iter(|| run(&built.program, &alone)));
        group.bench_function("caller and one pool thread", |b| b.iter(|| run(&built.program, &with_pool)));
        group.finish();
    }
}

/// Tasks that each wait for two earlier ones, near or far.
fn near_and_far(nodes: usize) -> Shape {
    let mut random = Random::new(1729);
    let edges = (1..nodes).flat_map(|i| [(i - random.up_to(i.min(1000)), i), (i - random.up_to(i.min(1000)), i)]);
    Shape { name: "compile", nodes, edges: edges.collect() }
}

fn compiling(c: &mut Criterion) {
    let shape = near_and_far(100_000);
    let (graph, _nodes) = graph(&shape, empty);
    let mut group = c.benchmark_group(shape.name);
    group.throughput(Throughput::Elements(shape.nodes as u64));
    group.bench_function("tasks with two edges each", |b| b.iter_with_large_drop(|| compile(black_box(&graph))));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = executor, compiling
}
criterion_main!(benches);
