//! Programs on an emulated device: how many times faster several streams are than one where single kernels leave the
//! device idle; what a run takes of the host's thread with segments and without; and what an iteration takes of a loop
//! of which the host and the device do a part each, and what is won where iterations overlap.
//! `cargo bench --bench devices`, with the number of rounds as an optional argument.

#[path = "../tests/kit/emulated.rs"]
mod emulated;

use emulated::Emulation;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Instant;
use weir_core::base::{Desc, Ref, dtype};
use weir_core::device::DeviceKind;
use weir_core::engine::{BoundKernel, Engine, EngineAttr, KernelOptions, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program, ReportFormat, ValueId};
use weir_core::kernel::builtin::Builtin;
use weir_core::kernel::{Kernel, KernelContext, Outputs};
use weir_core::ops::{Binary, Eltwise, weir_binary_op_value as Op, weir_eltwise_op_value};

const CHAINS: usize = 40;
const LENGTH: usize = 50;
const KERNEL_NS: u64 = 100_000;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn cpu() -> Ref<Engine> {
    Engine::create(DeviceKind::CPU, 0, None).unwrap()
}

/// Chains of kernels on a device of its own, and their ends as outputs. Segments would run all of them side by side.
fn program(index: u32, streams: u32, kernel_ns: u64, (chains, length): (usize, usize), segments: bool) -> Ref<Program> {
    let mut attr = EngineAttr::new(DeviceKind::EMULATED);
    attr.device_settings = Some(Emulation { kernel_ns, ..Emulation::default() }.settings());
    attr.set_max_streams(streams).unwrap();
    let engine = Engine::create(DeviceKind::EMULATED, index, Some(&attr)).unwrap();
    let mut graph = Graph::new("chains");
    let x = graph.add_input("x", desc()).unwrap();
    let square =
        Arc::new(Builtin::new(Eltwise { op: weir_eltwise_op_value::WEIR_ELTWISE_TANH, alpha: 0.0, beta: 0.0 }));
    let kernel = BoundKernel::create(engine.clone(), square, &KernelOptions::default()).unwrap();
    for chain in 0..chains {
        let end = (0..length).fold(x, |value, i| {
            graph.add_kernel(&format!("{chain}.{i}"), kernel.clone(), &[value], 1).unwrap().output(0)
        });
        graph.add_output(&format!("end {chain}"), end).unwrap();
    }
    let options = CompileOptions { without_segments: !segments, ..CompileOptions::default() };
    Program::compile(&graph, vec![cpu(), engine], &options).unwrap()
}

fn desc() -> Desc {
    Desc::new(dtype::F32, &[16])
}

fn run(program: &Ref<Program>, input: &Ref<Tensor>, outputs: &[Ref<Tensor>]) -> f64 {
    let start = Instant::now();
    run_with(program, std::slice::from_ref(input), outputs);
    start.elapsed().as_secs_f64()
}

fn run_with(program: &Ref<Program>, inputs: &[Ref<Tensor>], outputs: &[Ref<Tensor>]) {
    // SAFETY: second owners that are never dropped; the first ones outlive the call.
    let lend = |tensor: &Ref<Tensor>| ManuallyDrop::new(unsafe { std::ptr::read(tensor) });
    let (get_in, get_out) = (|i: usize| Ok(lend(&inputs[i])), |i: usize| Ok(lend(&outputs[i])));
    Program::bind(program, (inputs.len(), &get_in), (outputs.len(), &get_out)).unwrap().run(None, None).unwrap();
}

/// Nanoseconds that this thread was on a processor.
fn thread_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Both ways in turn, in rounds of runs: what a run takes of the calling thread, and from begin to end.
fn with_and_without_segments(first: u32, name: &str, shape: (usize, usize), rounds: usize, input: &Ref<Tensor>) {
    const RUNS: usize = 50;
    let outputs: Vec<_> = (0..shape.0).map(|_| Tensor::create(cpu(), desc()).unwrap()).collect();
    let programs = [false, true].map(|segments| program(first + u32::from(segments), 1, 0, shape, segments));
    // Of each way: on the thread, and in all.
    let mut times = [[vec![], vec![]], [vec![], vec![]]];
    for round in 0..=rounds {
        for (program, times) in programs.iter().zip(&mut times) {
            let (start, thread) = (Instant::now(), thread_ns());
            (0..RUNS).for_each(|_| _ = run(program, input, &outputs));
            let all = [(thread_ns() - thread) / 1e3, start.elapsed().as_secs_f64() * 1e6];
            if round > 0 {
                times.iter_mut().zip(all).for_each(|(times, time)| times.push(time / RUNS as f64));
            }
        }
    }
    let [[thread, all], [thread_as_one, all_as_one]] = times.map(|times| times.map(median));
    println!(
        "{name}, {} kernels: {thread:.1} us of the calling thread for a run, {thread_as_one:.1} with segments ({:.1} times less); \
         {all:.0} us from begin to end, {all_as_one:.0} with segments",
        shape.0 * shape.1,
        thread / thread_as_one
    );
}

fn bound(on: &Ref<Engine>, kernel: impl Kernel + 'static) -> Ref<BoundKernel> {
    BoundKernel::create(on.clone(), Arc::new(kernel), &KernelOptions::default()).unwrap()
}

fn tanh(on: &Ref<Engine>) -> Ref<BoundKernel> {
    bound(on, Builtin::new(Eltwise { op: weir_eltwise_op_value::WEIR_ELTWISE_TANH, alpha: 0.0, beta: 0.0 }))
}

fn sum(on: &Ref<Engine>) -> Ref<BoundKernel> {
    bound(on, Builtin::new(Binary::of(Op::WEIR_BINARY_ADD)))
}

/// A counter, vectors, and the counter's limit and step.
fn loop_inputs(graph: &mut Graph, vectors: &[&str]) -> Vec<ValueId> {
    let one = Desc::new(dtype::S32, &[1]);
    let own = vectors.iter().map(|&name| (name, desc()));
    let all = [("i", one)].into_iter().chain(own).chain([("n", one), ("step", one)]);
    all.map(|(name, desc)| graph.add_input(name, desc).unwrap()).collect()
}

/// i < n, on the host.
fn more(vectors: &[&str]) -> Graph {
    let mut graph = Graph::new("more");
    let inputs = loop_inputs(&mut graph, vectors);
    let less = bound(&cpu(), Builtin::new(Binary::of(Op::WEIR_BINARY_LT)));
    let more = graph.add_kernel("less", less, &[inputs[0], inputs[vectors.len() + 1]], 1).unwrap().output(0);
    graph.add_output("more", more).unwrap();
    graph
}

/// A loop of these variables and a counter that the host counts.
fn looped(body: &Graph, vectors: &[&str], at_once: u32, engine: Ref<Engine>) -> Ref<Program> {
    let mut graph = Graph::new(body.name());
    let inputs = loop_inputs(&mut graph, vectors);
    let (variables, invariants) = inputs.split_at(vectors.len() + 1);
    let looped = graph.add_while("loop", &more(vectors), body, variables, invariants, at_once).unwrap();
    (0..variables.len()).for_each(|output| graph.add_output(&output.to_string(), looped.output(output)).unwrap());
    Program::compile(&graph, vec![cpu(), engine], &CompileOptions::default()).unwrap()
}

fn number(value: i32) -> Ref<Tensor> {
    let tensor = Tensor::create(cpu(), Desc::new(dtype::S32, &[1])).unwrap();
    // SAFETY: the tensor's own four bytes, which nobody else has.
    unsafe { tensor.data().cast::<i32>().write(value) };
    tensor
}

/// while (i < n) (i, x) = (i + 1, f(x)): the counter is the host's, f the device's. If it is `crossed`, the host
/// computes with what the device has made, in each iteration.
fn counted_loop(index: u32, crossed: bool) -> Ref<Program> {
    let engine = Engine::create(DeviceKind::EMULATED, index, None).unwrap();
    let mut body = Graph::new("counted loop");
    let inputs = loop_inputs(&mut body, &["x"]);
    let [i, x, _, step] = inputs[..] else { unreachable!() };
    let i = body.add_kernel("count", sum(&cpu()), &[i, step], 1).unwrap().output(0);
    let mut x = body.add_kernel("there", tanh(&engine), &[x], 1).unwrap().output(0);
    if crossed {
        x = body.add_kernel("here", tanh(&cpu()), &[x], 1).unwrap().output(0);
    }
    body.add_output("i", i).unwrap();
    body.add_output("x", x).unwrap();
    looped(&body, &["x"], 1, engine)
}

/// What an iteration takes, from begin to end and of the calling thread, on the calling thread alone.
fn loops(index: u32, rounds: usize) {
    const ITERATIONS: i32 = 10_000;
    let inputs = [number(0), Tensor::create(cpu(), desc()).unwrap(), number(ITERATIONS), number(1)];
    let outputs = [number(0), Tensor::create(cpu(), desc()).unwrap()];
    for (crossed, text) in [(false, "stays on the device"), (true, "comes to the host and goes back each time")] {
        let program = counted_loop(index, crossed);
        let (mut all, mut thread) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let (start, own) = (Instant::now(), thread_ns());
            run_with(&program, &inputs, &outputs);
            if round > 0 {
                all.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(ITERATIONS));
                thread.push((thread_ns() - own) / 1e3 / f64::from(ITERATIONS));
            }
        }
        let (all, thread) = (median(all), median(thread));
        println!("loop whose value {text}: {all:.2} us an iteration, {thread:.2} of the calling thread");
    }
}

/// The host's part of an iteration: so much of its time.
#[derive(Debug)]
struct Busy {
    inputs: usize,
}

impl Kernel for Busy {
    fn name(&self) -> &str {
        "busy"
    }

    fn num_inputs(&self) -> usize {
        self.inputs
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, _inputs: &[Desc]) -> weir_core::base::Result<Vec<Desc>> {
        Ok(vec![desc()])
    }

    fn cost_ns(&self, _inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        HALF_NS
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> weir_core::base::Result<()> {
        let start = Instant::now();
        let mut output = outputs.only();
        output.copy_from(context.input(0));
        while start.elapsed().as_nanos() < u128::from(HALF_NS) {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

const HALF_NS: u64 = 200_000;

/// while (i < n) (i, x, y) = (i + 1, there(x, ..), ..): the host and the device take equally long. The device needs
/// what the host makes, or the host what the device makes, and neither needs it in the next iteration.
fn halves(index: u32, at_once: u32, is_fetched: bool) -> Ref<Program> {
    let mut attr = EngineAttr::new(DeviceKind::EMULATED);
    attr.device_settings = Some(Emulation { kernel_ns: HALF_NS, ..Emulation::default() }.settings());
    let engine = Engine::create(DeviceKind::EMULATED, index, Some(&attr)).unwrap();
    let here = |inputs| bound(&cpu(), Busy { inputs });
    let mut body = Graph::new("halves");
    let inputs = loop_inputs(&mut body, &["x", "y"]);
    let [i, x, y, _, step] = inputs[..] else { unreachable!() };
    let next = body.add_kernel("count", sum(&cpu()), &[i, step], 1).unwrap().output(0);
    let (x, y) = if is_fetched {
        let x = body.add_kernel("there", tanh(&engine), &[x], 1).unwrap().output(0);
        (x, body.add_kernel("here", here(2), &[y, x], 1).unwrap().output(0))
    } else {
        let made = body.add_kernel("here", here(2), &[y, i], 1).unwrap().output(0);
        (body.add_kernel("there", sum(&engine), &[x, made], 1).unwrap().output(0), y)
    };
    [("i", next), ("x", x), ("y", y)].into_iter().for_each(|(name, value)| body.add_output(name, value).unwrap());
    looped(&body, &["x", "y"], at_once, engine)
}

/// The gain of iterations that overlap, where the host and the device have equally much to do.
fn overlapped(first: u32, rounds: usize) {
    const ITERATIONS: i32 = 500;
    let floats = || Tensor::create(cpu(), desc()).unwrap();
    let inputs = [number(0), floats(), floats(), number(ITERATIONS), number(1)];
    let outputs = [number(0), floats(), floats()];
    let forms = [(false, "the device needs what the host makes"), (true, "the host needs what the device makes")];
    for (is_fetched, text) in forms {
        let programs = [1, 4].map(|at_once| halves(first + at_once / 4, at_once, is_fetched));
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=rounds {
            for (program, times) in programs.iter().zip(&mut times) {
                let start = Instant::now();
                run_with(program, &inputs, &outputs);
                if round > 0 {
                    times.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(ITERATIONS));
                }
            }
        }
        let [one, four] = times.map(median);
        println!("{text}, 200 us each: {one:.0} us an iteration, {four:.0} with 4 at once ({:.2} times)", one / four);
    }
}

fn main() {
    emulated::register();
    // cargo passes --bench; any number is the count of rounds.
    let rounds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(5);
    let input = Tensor::create(cpu(), desc()).unwrap();
    let outputs: Vec<_> = (0..CHAINS).map(|_| Tensor::create(cpu(), desc()).unwrap()).collect();
    let programs: Vec<_> = [1, 2, 4]
        .into_iter()
        .zip(0..)
        .map(|(k, index)| (k, program(index, k, KERNEL_NS, (CHAINS, LENGTH), false)))
        .collect();
    let mut times = vec![Vec::new(); programs.len()];
    for _ in 0..rounds {
        for ((_, program), times) in programs.iter().zip(&mut times) {
            times.push(run(program, &input, &outputs));
        }
    }
    let times: Vec<f64> = times.into_iter().map(median).collect();
    let ideal = (CHAINS * LENGTH) as f64 * KERNEL_NS as f64 / 1e9;
    println!("{CHAINS} chains of {LENGTH} emulated kernels of 100 us, medians of {rounds} rounds");
    for ((streams, program), time) in programs.iter().zip(&times) {
        let report = program.report(ReportFormat::Json);
        let engines = &report[report.find("\"engines\":").unwrap()..];
        println!(
            "{streams} streams: {:.1} ms, {:.2} of one stream's speed, {:.2} of the ideal; {}",
            time * 1e3,
            times[0] / time,
            ideal / *streams as f64 / time,
            &engines[..engines.find('}').unwrap() + 1]
        );
    }
    with_and_without_segments(3, "a chain", (1, 1000), rounds, &input);
    with_and_without_segments(5, "40 chains side by side", (40, 25), rounds, &input);
    loops(7, rounds);
    overlapped(5, rounds);
}
