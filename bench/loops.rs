//! Loops whose iterations overlap, both sides in one run, in turn: `cargo bench --bench loops`, with the number of
//! rounds as an optional argument. The body is a pipeline of two kernels of 20 us: the first makes the next iteration's
//! variable, the second works on what the first has made and gives it to nobody but a sum.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Instant;
use weir_core::base::{Desc, Ref, Result, dtype};
use weir_core::device::DeviceKind;
use weir_core::engine::{BoundKernel, Engine, KernelOptions, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program, RunOptions, ValueId};
use weir_core::kernel::{Kernel, KernelContext, Outputs};
use weir_core::threadpool::{ThreadPool, ThreadPoolOptions};

const ITERATIONS: i32 = 200;

fn scalar() -> Desc {
    Desc::new(dtype::S32, &[1])
}

/// One integer from one or two, and so many nanoseconds of work.
struct Work {
    inputs: usize,
    ns: u64,
    f: fn(&[i32]) -> i32,
}

impl Kernel for Work {
    fn name(&self) -> &str {
        "work"
    }
    fn num_inputs(&self) -> usize {
        self.inputs
    }
    fn num_outputs(&self) -> usize {
        1
    }
    fn infer(&self, _: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![scalar()])
    }
    fn cost_ns(&self, _: &[Desc], _: &[Desc]) -> u64 {
        self.ns.max(20)
    }
    fn in_place(&self) -> bool {
        true
    }
    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let start = Instant::now();
        let inputs: Vec<i32> = (0..self.inputs).map(|i| outputs.input(context, i).read_integer()).collect();
        outputs.only().write_integer((self.f)(&inputs));
        while self.ns > 0 && start.elapsed().as_nanos() < u128::from(self.ns) {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

struct Builder {
    graph: Graph,
    engine: Ref<Engine>,
}

impl Builder {
    fn add(&mut self, name: &str, ns: u64, inputs: &[ValueId], f: fn(&[i32]) -> i32) -> ValueId {
        let kernel = Arc::new(Work { inputs: inputs.len(), ns, f });
        let kernel = BoundKernel::create(self.engine.clone(), kernel, &KernelOptions::default()).unwrap();
        self.graph.add_kernel(name, kernel, inputs, 1).unwrap().output(0)
    }
}

fn tensor(engine: &Ref<Engine>, value: i32) -> Ref<Tensor> {
    let tensor = Tensor::create(engine.clone(), scalar()).unwrap();
    // SAFETY: nobody else has it yet.
    unsafe { tensor.view().as_bytes_mut().write_integer(value) };
    tensor
}

/// The loop, with kernels of `ns` and so many iterations at once.
fn program(engine: &Ref<Engine>, ns: u64, parallel: u32) -> Ref<Program> {
    let new = |name: &str| Builder { graph: Graph::new(name), engine: engine.clone() };
    let ports = |builder: &mut Builder| ["i", "sum", "n"].map(|name| builder.graph.add_input(name, scalar()).unwrap());
    let mut condition = new("condition");
    let [i, _, n] = ports(&mut condition);
    let less = condition.add("less", 0, &[i, n], |x| i32::from(x[0] < x[1]));
    condition.graph.add_output("less", less).unwrap();
    let mut body = new("body");
    let [i, sum, _] = ports(&mut body);
    let next = body.add("first", ns, &[i], |x| x[0] + 1);
    let made = body.add("second", ns, &[next], |x| x[0] * 3);
    let sum = body.add("add", 0, &[sum, made], |x| x[0].wrapping_add(x[1]));
    body.graph.add_output("next", next).unwrap();
    body.graph.add_output("sum", sum).unwrap();
    let mut main = new("main");
    let n = main.graph.add_input("n", scalar()).unwrap();
    let zero = main.graph.add_constant("zero", tensor(engine, 0)).unwrap();
    let looped = main.graph.add_while("loop", &condition.graph, &body.graph, &[zero, zero], &[n], parallel).unwrap();
    main.graph.add_output("sum", looped.output(1)).unwrap();
    Program::compile(&main.graph, vec![engine.clone()], &CompileOptions::default()).unwrap()
}

fn run(program: &Ref<Program>, input: &Ref<Tensor>, output: &Ref<Tensor>, options: &RunOptions) {
    // SAFETY: the copies are never dropped, and do not outlive the originals.
    let borrow = |tensor: &Ref<Tensor>| Ok(ManuallyDrop::new(unsafe { std::ptr::read(tensor) }));
    let (get_in, get_out) = (|_: usize| borrow(input), |_: usize| borrow(output));
    Program::bind(program, (1, &get_in), (1, &get_out)).unwrap().run(None, Some(options)).unwrap();
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    // cargo passes --bench; any number is the count of rounds.
    let rounds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(41);
    let engine = Engine::create(DeviceKind::CPU, 0, None).unwrap();
    // The caller and one thread of the pool.
    let pool =
        ThreadPool::builtin(&ThreadPoolOptions { num_threads: Some(1), ..ThreadPoolOptions::default() }).unwrap();
    let (shared, alone) = (RunOptions { threadpool: Some(pool), ..RunOptions::default() }, RunOptions::default());
    let (input, output) = (tensor(&engine, ITERATIONS), tensor(&engine, 0));
    println!(
        "us per iteration, medians of {rounds} rounds; the last column is one at once on one thread over this one"
    );
    for ns in [20_000, 5_000, 1_000, 0] {
        let sides: Vec<_> = [(1, &alone), (1, &shared), (2, &alone), (2, &shared), (4, &shared)]
            .into_iter()
            .map(|(parallel, options)| (parallel, options, program(&engine, ns, parallel)))
            .collect();
        let mut times = vec![Vec::new(); sides.len()];
        for round in 0..rounds + 8 {
            for ((_, options, program), times) in sides.iter().zip(&mut times) {
                let start = Instant::now();
                run(program, &input, &output, options);
                // The first rounds find out what nodes and ways cost.
                if round >= 8 {
                    times.push(start.elapsed().as_nanos() as f64 / 1e3 / f64::from(ITERATIONS));
                }
            }
        }
        let times: Vec<f64> = times.into_iter().map(median).collect();
        for ((parallel, options, _), time) in sides.iter().zip(&times) {
            let threads = 1 + usize::from(options.threadpool.is_some());
            println!(
                "{:>3} us kernels, {parallel} at once, {threads} threads {time:9.3} {:6.2}",
                ns / 1000,
                times[0] / time
            );
        }
    }
}
