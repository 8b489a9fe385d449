//! The executor on empty bodies, beside a serial loop over the same bodies; constants with readers, and a run that is
//! given two numbers and gives one, as TensorFlow's BM_const_identity and BM_FeedInputFetchOutput have them; and what
//! compiling takes: `cargo bench --bench executor`.

#[path = "shapes.rs"]
mod shapes;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use shapes::{Random, Shape, bm_executor, build, chain, compile, empty, fanout, graph, serial, tree, wide};
use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use weir_core::base::{Desc, Error, Ref, Result, dtype};
use weir_core::device::DeviceKind;
use weir_core::engine::{BoundKernel, Engine, KernelOptions, Stream, StreamAttr, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program, RunOptions};
use weir_core::kernel::builtin::Builtin;
use weir_core::kernel::{Kernel, KernelContext, Outputs};
use weir_core::ops::{Binary, weir_binary_op_value};
use weir_core::threadpool::{ThreadPool, ThreadPoolOptions};

fn pool(threads: usize) -> Ref<ThreadPool> {
    ThreadPool::builtin(&ThreadPoolOptions { num_threads: Some(threads), ..ThreadPoolOptions::default() }).unwrap()
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

/// Takes a number and keeps it.
struct Identity(AtomicI32);

impl Kernel for Identity {
    fn name(&self) -> &str {
        "identity"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn num_outputs(&self) -> usize {
        0
    }

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn compute(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        self.0.store(context.input(0).read_integer(), Relaxed);
        Ok(())
    }
}

fn cpu() -> Ref<Engine> {
    Engine::create(DeviceKind::CPU, 0, None).unwrap()
}

fn bound(kernel: Arc<dyn Kernel>) -> Ref<BoundKernel> {
    BoundKernel::create(cpu(), kernel, &KernelOptions::default()).unwrap()
}

/// So many constants with so many readers each. Items are nodes, constants too, as TensorFlow counts them.
fn const_identity(c: &mut Criterion) {
    let with_pool = RunOptions { threadpool: Some(pool(1)), ..RunOptions::default() };
    for (width, readers) in [(1, 1), (1, 100), (100, 1), (100, 100)] {
        let (mut graph, mut kernels) = (Graph::new("const_identity"), Vec::new());
        for i in 0..width {
            let tensor = Tensor::create(cpu(), Desc::new(dtype::S32, &[1])).unwrap();
            let constant = graph.add_constant(&format!("const {i}"), tensor).unwrap();
            for j in 0..readers {
                let identity = Arc::new(Identity(AtomicI32::new(0)));
                let kernel = bound(Arc::clone(&identity) as Arc<dyn Kernel>);
                graph.add_kernel(&format!("identity {i} {j}"), kernel, &[constant], 0).unwrap();
                kernels.push(identity);
            }
        }
        let program = Program::compile(&graph, vec![cpu()], &CompileOptions::default()).unwrap();
        let mut group = c.benchmark_group(format!("BM_const_identity({width},{readers})"));
        group.throughput(Throughput::Elements((1 + readers) * width));
        group.bench_function("serial loop", |b| {
            b.iter(|| kernels.iter().for_each(|kernel| kernel.0.store(black_box(0), Relaxed)));
        });
        group.bench_function("caller alone", |b| b.iter(|| run(&program, &RunOptions::default())));
        group.bench_function("caller and one pool thread", |b| b.iter(|| run(&program, &with_pool)));
        group.finish();
    }
}

/// Two numbers in, their sum out; and the same kernel called on a stream.
fn feed_and_fetch(c: &mut Criterion) {
    let number = || Tensor::create(cpu(), Desc::new(dtype::F32, &[1])).unwrap();
    let (inputs, output) = ([number(), number()], number());
    let sum = bound(Arc::new(Builtin::new(Binary::of(weir_binary_op_value::WEIR_BINARY_ADD))));
    let mut graph = Graph::new("feed and fetch");
    let fed = ["x", "y"].map(|name| graph.add_input(name, *output.desc()).unwrap());
    let node = graph.add_kernel("sum", Ref::clone(&sum), &fed, 1).unwrap();
    graph.add_output("sum", node.output(0)).unwrap();
    let program = Program::compile(&graph, vec![cpu()], &CompileOptions::default()).unwrap();
    let stream = Stream::create(cpu(), StreamAttr::new(DeviceKind::CPU)).unwrap();
    // SAFETY: second owners that are never dropped; the first ones outlive the calls.
    let lend = |tensor: &Ref<Tensor>| ManuallyDrop::new(unsafe { std::ptr::read(tensor) });
    let mut group = c.benchmark_group("BM_FeedInputFetchOutput");
    group.bench_function("kernel on a stream", |b| {
        b.iter(|| stream.call(&sum, &[&inputs[0], &inputs[1]], &[&output]).unwrap());
    });
    group.bench_function("run", |b| {
        b.iter(|| {
            let (feed, fetch) = (|i: usize| Ok(lend(&inputs[i])), |_: usize| Ok(lend(&output)));
            Program::bind(&program, (2, &feed), (1, &fetch)).unwrap().run(None, None).unwrap();
        });
    });
    group.finish();
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
    targets = executor, const_identity, feed_and_fetch, compiling
}
criterion_main!(benches);
