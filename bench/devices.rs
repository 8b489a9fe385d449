//! Programs on an emulated device: how many times faster several streams are than one where single kernels leave the device idle.
//! `cargo bench --bench devices`, with the number of rounds as an optional argument.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Instant;
use weir::base::{Desc, Ref, dtype};
use weir::device::DeviceKind;
use weir::device::emulated::Emulation;
use weir::engine::{BoundKernel, Engine, EngineAttr, KernelAttr, Tensor};
use weir::graph::{CompileOptions, Graph, Program, ReportFormat};
use weir::kernel::builtin::Eltwise;
use weir::kernel::vector::eltwise::Op;

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

/// Forty chains of fifty kernels on a device of its own.
fn program(index: u32, streams: u32) -> Ref<Program> {
    let mut attr = EngineAttr::new(DeviceKind::EMULATED);
    attr.emulation = Some(Emulation { kernel_ns: KERNEL_NS, ..Emulation::default() });
    attr.set_max_streams(streams).unwrap();
    let engine = Engine::create(DeviceKind::EMULATED, index, Some(&attr)).unwrap();
    let mut graph = Graph::new("chains");
    let x = graph.add_input("x", desc()).unwrap();
    let square = Arc::new(Eltwise { op: Op::Tanh, alpha: 0.0, beta: 0.0 });
    let kernel = BoundKernel::create(engine.clone(), square, &KernelAttr::default()).unwrap();
    for chain in 0..CHAINS {
        let end = (0..LENGTH).fold(x, |value, i| {
            graph.add_kernel(&format!("{chain}.{i}"), kernel.clone(), &[value], 1).unwrap().output(0)
        });
        graph.add_output(&format!("end {chain}"), end).unwrap();
    }
    Program::compile(&graph, vec![cpu(), engine], &CompileOptions::default()).unwrap()
}

fn desc() -> Desc {
    Desc::new(dtype::F32, &[16])
}

fn run(program: &Ref<Program>, input: &Ref<Tensor>, outputs: &[Ref<Tensor>]) -> f64 {
    // SAFETY: second owners that are never dropped; the first ones outlive the call.
    let lend = |tensor: &Ref<Tensor>| ManuallyDrop::new(unsafe { std::ptr::read(tensor) });
    let start = Instant::now();
    let (get_in, get_out) = (|_: usize| Ok(lend(input)), |i: usize| Ok(lend(&outputs[i])));
    Program::bind(program, (1, &get_in), (CHAINS, &get_out)).unwrap().run(None, None).unwrap();
    start.elapsed().as_secs_f64()
}

fn main() {
    // cargo passes --bench; any number is the count of rounds.
    let rounds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(5);
    let input = Tensor::create(cpu(), desc()).unwrap();
    let outputs: Vec<_> = (0..CHAINS).map(|_| Tensor::create(cpu(), desc()).unwrap()).collect();
    let programs: Vec<_> = [1, 2, 4].into_iter().zip(0..).map(|(k, index)| (k, program(index, k))).collect();
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
}
