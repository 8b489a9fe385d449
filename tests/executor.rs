//! Random graphs on all kinds of pools, against a plain interpreter.

mod pools;

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use weir::abi::WEIR_TIMEOUT_INFINITE;
use weir::base::{Code, Desc, Error, Ref, Result, dtype};
use weir::device::DeviceKind;
use weir::engine::{BoundKernel, Engine, KernelAttr, Stream, StreamAttr, Tensor};
use weir::graph::{CompileOptions, Graph, Program, RunOptions, ValueId};
use weir::kernel::{Kernel, KernelContext};
use weir::threadpool::{Span, ThreadPool};

/// splitmix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

const LEN: i64 = 5;

fn desc() -> Desc {
    Desc::new(dtype::S32, &[LEN])
}

/// Mixes its inputs; every bit of every input matters, and so does their order.
struct Mix {
    salt: i32,
    inputs: usize,
    outputs: usize,
    fail: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
}

fn mix(salt: i32, output: usize, item: usize, inputs: impl Iterator<Item = i32>) -> i32 {
    inputs.fold(salt ^ (output as i32 * 7919) ^ (item as i32), |x, y| (x.rotate_left(5) ^ y).wrapping_mul(0x27d4_eb2d))
}

impl Kernel for Mix {
    fn name(&self) -> &str {
        "mix"
    }
    fn num_inputs(&self) -> usize {
        self.inputs
    }
    fn num_outputs(&self) -> usize {
        self.outputs
    }
    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![desc(); self.outputs])
    }
    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        self.calls.fetch_add(1, Relaxed);
        if self.fail.load(Relaxed) {
            return Err(Error::new(Code::DataLoss, "asked to fail"));
        }
        // Expensive enough, as it says, for a region of its own.
        let span = Span { items: LEN as usize, cost_ns: 1e4, ..Span::default() };
        for (o, output) in context.outputs().iter().enumerate() {
            let shards = output.shards::<i32>();
            context.parallel_for(&span, &|mut claim| {
                let begin = claim.begin();
                for (i, value) in shards.part(&mut claim, 1).iter_mut().enumerate() {
                    let inputs = context.inputs().iter().map(|input| input.read::<i32>()[begin + i]);
                    *value = mix(self.salt, o, begin + i, inputs);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

struct Case {
    program: Ref<Program>,
    engine: Ref<Engine>,
    inputs: Vec<Ref<Tensor>>,
    expected: Vec<Vec<i32>>,
    fail: Vec<Arc<AtomicBool>>,
    names: Vec<String>,
}

fn tensor(engine: &Ref<Engine>, values: &[i32]) -> Ref<Tensor> {
    let tensor = Tensor::create(Ref::clone(engine), desc()).unwrap();
    // SAFETY: the tensor has LEN elements and nobody else has it.
    unsafe { std::slice::from_raw_parts_mut(tensor.data().cast::<i32>(), LEN as usize).copy_from_slice(values) };
    tensor
}

fn values(tensor: &Tensor) -> Vec<i32> {
    tensor.view().read::<i32>().to_vec()
}

/// A random graph with inputs, constants, kernels, control edges; every third value is an output, some twice.
fn random_case(seed: u64, hop_ns: u64) -> Case {
    let mut random = Random(seed);
    let engine = Engine::create(DeviceKind::Cpu, 0, None).unwrap();
    let mut graph = Graph::new(&format!("random {seed}"));
    let mut known: Vec<(ValueId, Vec<i32>)> = Vec::new();
    let mut inputs = Vec::new();
    for i in 0..2 {
        let data: Vec<i32> = (0..LEN as usize).map(|_| random.below(1 << 30) as i32).collect();
        known.push((graph.add_input(&format!("input{i}"), desc()).unwrap(), data.clone()));
        inputs.push(tensor(&engine, &data));
        known.push((graph.add_constant(&format!("constant{i}"), tensor(&engine, &data[..])).unwrap(), data));
    }
    let (mut nodes, mut fail, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..random.below(60) + 5 {
        let (num_inputs, num_outputs) = (random.below(4), random.below(2) + 1);
        let flag = Arc::new(AtomicBool::new(false));
        let salt = random.below(1 << 20) as i32;
        let kernel =
            Mix { salt, inputs: num_inputs, outputs: num_outputs, fail: Arc::clone(&flag), calls: Arc::default() };
        let bound = BoundKernel::create(Ref::clone(&engine), Arc::new(kernel), &KernelAttr::default());
        let chosen: Vec<usize> = (0..num_inputs).map(|_| random.below(known.len())).collect();
        let ids: Vec<ValueId> = chosen.iter().map(|&c| known[c].0).collect();
        let name = format!("node{n}");
        let node = graph.add_kernel(&name, bound, &ids, num_outputs).unwrap();
        if let Some(before) = (!nodes.is_empty() && random.below(3) == 0).then(|| nodes[random.below(nodes.len())]) {
            graph.add_control_edge(before, node).unwrap();
        }
        nodes.push(node);
        fail.push(flag);
        names.push(name);
        for o in 0..num_outputs {
            let result: Vec<i32> =
                (0..LEN as usize).map(|i| mix(salt, o, i, chosen.iter().map(|&c| known[c].1[i]))).collect();
            known.push((node.output(o), result));
        }
    }
    let mut expected = Vec::new();
    for (i, (id, result)) in known.iter().enumerate() {
        for twice in 0..[1, 0, 0, 2][random.below(4)] {
            graph.add_output(&format!("out{i}.{twice}"), *id).unwrap();
            expected.push(result.clone());
        }
    }
    // Every node reaches an output, so that each one's failure is the run's.
    for (i, node) in nodes.iter().enumerate() {
        graph.add_output(&format!("last{i}"), node.output(0)).unwrap();
        let at = known.iter().position(|(id, _)| *id == node.output(0)).unwrap();
        expected.push(known[at].1.clone());
    }
    let options = CompileOptions { hop_ns: Some(hop_ns), ..CompileOptions::default() };
    let program = Program::compile(&graph, vec![Ref::clone(&engine)], &options).unwrap();
    Case { program, engine, inputs, expected, fail, names }
}

fn run(case: &Case, stream: Option<&Ref<Stream>>, pool: Option<&Ref<ThreadPool>>) -> (Result<()>, Vec<Ref<Tensor>>) {
    let outputs: Vec<_> = case.expected.iter().map(|_| tensor(&case.engine, &[-1; LEN as usize])).collect();
    let options = RunOptions { threadpool: pool.cloned(), ..RunOptions::default() };
    let lookup = |all: &[Ref<Tensor>], i: usize| {
        // SAFETY: a second owner that is never dropped; the first one outlives the call.
        Ok(ManuallyDrop::new(unsafe { std::ptr::read(&all[i]) }))
    };
    let (input, output) = (|i: usize| lookup(&case.inputs, i), |i: usize| lookup(&outputs, i));
    let bound = Program::bind(&case.program, (case.inputs.len(), &input), (outputs.len(), &output)).unwrap();
    let mut result = bound.run(stream.map(|s| &**s), Some(&options));
    if let Some(stream) = stream.filter(|_| result.is_ok()) {
        result = stream.synchronize(WEIR_TIMEOUT_INFINITE);
    }
    (result, outputs)
}

fn check(case: &Case, stream: Option<&Ref<Stream>>, pool: Option<&Ref<ThreadPool>>, what: &str) {
    let (result, outputs) = run(case, stream, pool);
    result.unwrap_or_else(|error| panic!("{what}: {error}"));
    for (i, (output, expected)) in outputs.iter().zip(&case.expected).enumerate() {
        assert_eq!(&values(output), expected, "{what}: output {i}");
    }
}

fn async_stream(engine: &Ref<Engine>) -> Ref<Stream> {
    let mut attr = StreamAttr::new(DeviceKind::Cpu);
    attr.asynchronous = true;
    Stream::create(Ref::clone(engine), attr).unwrap()
}

#[test]
fn random_graphs_give_the_interpreters_values_on_every_pool() {
    let all: Vec<(String, Option<Ref<ThreadPool>>)> = [("no pool".to_owned(), None)]
        .into_iter()
        .chain([1, 2, 5].map(|n| (format!("{n} threads"), Some(pools::of(n)))))
        .chain([("inline".to_owned(), Some(ThreadPool::inline()))])
        .chain((0..12).map(|s| (format!("seeded {s}"), Some(ThreadPool::seeded(s, 3).unwrap()))))
        .collect();
    for seed in 0..40 {
        for hop_ns in [0, 5_000] {
            let case = random_case(seed, hop_ns);
            let stream = async_stream(&case.engine);
            for (name, pool) in &all {
                let what = format!("seed {seed}, hop {hop_ns}, {name}");
                for _ in 0..3 {
                    check(&case, None, pool.as_ref(), &what);
                }
                check(&case, Some(&stream), pool.as_ref(), &format!("{what}, asynchronous"));
            }
        }
    }
}

#[test]
fn a_failed_run_names_its_node_and_leaves_the_program_whole() {
    for seed in 100..130 {
        let case = random_case(seed, 0);
        let mut random = Random(seed);
        for pool in [None, Some(pools::of(3)), Some(ThreadPool::seeded(seed, 2).unwrap())] {
            let bad = random.below(case.fail.len());
            case.fail[bad].store(true, Relaxed);
            let (result, _) = run(&case, None, pool.as_ref());
            let error = result.expect_err("a node failed");
            assert_eq!(error.code(), Code::DataLoss);
            assert_eq!(error.message(), format!("node '{}': asked to fail", case.names[bad]));
            case.fail[bad].store(false, Relaxed);
            check(&case, None, pool.as_ref(), "after a failure");
        }
    }
}

#[test]
fn many_threads_may_run_one_program_at_once() {
    let case = Arc::new(random_case(7, 0));
    let pool = pools::of(2);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (case, pool) = (Arc::clone(&case), Ref::clone(&pool));
            std::thread::spawn(move || {
                let stream = async_stream(&case.engine);
                for i in 0..100 {
                    check(&case, (i % 2 == 0).then_some(&stream), Some(&pool), "concurrent");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// Panics where a kernel of the library must not: the run fails, the process and the program live.
struct Panics(AtomicBool);

impl Kernel for Panics {
    fn name(&self) -> &str {
        "panics"
    }
    fn num_inputs(&self) -> usize {
        0
    }
    fn num_outputs(&self) -> usize {
        1
    }
    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![desc()])
    }
    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        let span = Span { items: 100, cost_ns: 1e4, ..Span::default() };
        let bad = self.0.load(Relaxed);
        context.parallel_for(&span, &|claim| {
            assert!(!bad || claim.end() < 80, "a defect");
            Ok(())
        })?;
        assert!(!bad, "another defect");
        Ok(())
    }
}

#[test]
fn a_panic_in_a_kernel_is_an_error_of_the_run() {
    let engine = Engine::create(DeviceKind::Cpu, 0, None).unwrap();
    let kernel = Arc::new(Panics(AtomicBool::new(true)));
    let bound =
        BoundKernel::create(Ref::clone(&engine), Arc::clone(&kernel) as Arc<dyn Kernel>, &KernelAttr::default());
    let mut graph = Graph::new("panics");
    let node = graph.add_kernel("k", bound, &[], 1).unwrap();
    graph.add_output("out", node.output(0)).unwrap();
    let program = Program::compile(&graph, vec![Ref::clone(&engine)], &CompileOptions::default()).unwrap();
    let case =
        Case { program, engine, inputs: vec![], expected: vec![vec![0; LEN as usize]], fail: vec![], names: vec![] };
    for pool in [None, Some(pools::of(2))] {
        kernel.0.store(true, Relaxed);
        let (result, _) = run(&case, None, pool.as_ref());
        let error = result.expect_err("the kernel panicked");
        assert_eq!(error.code(), Code::Internal);
        assert!(error.message().contains("node 'k'") && error.message().contains("defect"), "{error}");
        kernel.0.store(false, Relaxed);
        assert!(run(&case, None, pool.as_ref()).0.is_ok());
    }
}
