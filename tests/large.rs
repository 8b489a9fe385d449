//! Graphs of many nodes: what a program and a run of it take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_core::base::{Ref, Result};
use weir_core::device::DeviceKind;
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Graph, Program, ReportFormat};
use weir_core::kernel::Task;

struct Count(Arc<AtomicU64>);

impl Task for Count {
    fn run(&self) -> Result<()> {
        self.0.fetch_add(1, Relaxed);
        Ok(())
    }
}

/// Tasks that each wait for two earlier ones, near or far.
fn tasks(n: usize, counter: &Arc<AtomicU64>) -> Graph {
    let mut graph = Graph::new("large");
    let mut nodes = Vec::with_capacity(n);
    let mut random = 1u64;
    for i in 0..n {
        let node = graph.add_task(&format!("t{i}"), Arc::new(Count(Arc::clone(counter))), 100).unwrap();
        for _ in 0..2 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if i > 0 {
                let back = 1 + (random >> 33) as usize % i.min(1000);
                graph.add_control_edge(nodes[i - back], node).unwrap();
            }
        }
        nodes.push(node);
    }
    graph
}

fn compile(graph: &Graph) -> Ref<Program> {
    let engine = Engine::create(DeviceKind::CPU, 0, None).unwrap();
    Program::compile(graph, vec![engine], &CompileOptions::default()).unwrap()
}

fn run(program: &Ref<Program>) {
    let none = |_| unreachable!("the program has no tensors");
    Program::bind(program, (0, &none), (0, &none)).unwrap().run(None, None).unwrap();
}

/// A number of the report's, times 10.
fn tenths(program: &Program, key: &str) -> usize {
    let report = program.report(ReportFormat::Json);
    let at = report.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key} in {report}")) + key.len() + 3;
    let number: String = report[at..].chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    (number.parse::<f64>().unwrap() * 10.0) as usize
}

#[test]
fn a_program_takes_few_bytes_per_node_and_edge() {
    let counter = Arc::default();
    let program = compile(&tasks(10_000, &counter));
    let (node, edge, step) = (
        tenths(&program, "program_bytes_per_node"),
        tenths(&program, "program_bytes_per_edge"),
        tenths(&program, "step_bytes_per_node"),
    );
    assert!(node <= 760 && edge <= 80 && step <= 160, "{node} {edge} {step}, in tenths of bytes");
    run(&program);
    assert_eq!(counter.load(Relaxed), 10_000);
}

/// Seconds without optimizations.
#[test]
#[cfg_attr(debug_assertions, ignore = "slow without optimizations")]
fn a_million_nodes_compile_and_run() {
    let counter = Arc::default();
    let program = compile(&tasks(1_000_000, &counter));
    for runs in 1..=3 {
        run(&program);
        assert_eq!(counter.load(Relaxed), runs * 1_000_000);
    }
}
