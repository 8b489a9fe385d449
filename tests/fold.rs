//! What compile computes itself: kernels of constants, conds and loops that constants decide.

#[path = "kit/mod.rs"]
mod kit;

use kit::run::{cpu, fact, run, scalar, tensor};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_core::base::{Code, Desc, Error, Ref, Result};
use weir_core::engine::{BoundKernel, Engine, KernelOptions};
use weir_core::graph::{CompileOptions, Graph, NodeId, Program, RunOptions, ValueId};
use weir_core::kernel::{Kernel, KernelContext, Outputs, Task};

/// The sum of its inputs and `plus`; negative sums fail.
struct Sum {
    inputs: usize,
    plus: i32,
    pure: bool,
    calls: Arc<AtomicU64>,
}

impl Kernel for Sum {
    fn name(&self) -> &str {
        "sum"
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
    fn is_pure(&self) -> bool {
        self.pure
    }
    fn scratch_bytes(&self, _: &[Desc], _: &[Desc]) -> usize {
        8
    }
    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        self.calls.fetch_add(1, Relaxed);
        assert!(!context.scratch(0).is_null());
        let sum =
            (0..context.inputs().len()).map(|i| outputs.input(context, i).read_integer()).sum::<i32>() + self.plus;
        outputs.only().write_integer(sum);
        if sum < 0 { Err(Error::new(Code::OutOfRange, "below zero")) } else { Ok(()) }
    }
}

struct Build {
    engine: Ref<Engine>,
    calls: Arc<AtomicU64>,
    names: usize,
}

impl Build {
    fn new() -> Build {
        Build { engine: cpu(), calls: Arc::default(), names: 0 }
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    fn sum(&mut self, graph: &mut Graph, inputs: &[ValueId], plus: i32, pure: bool) -> NodeId {
        let kernel = Arc::new(Sum { inputs: inputs.len(), plus, pure, calls: Arc::clone(&self.calls) });
        let kernel = BoundKernel::create(self.engine.clone(), kernel, &KernelOptions::default()).unwrap();
        graph.add_kernel(&self.name(), kernel, inputs, 1).unwrap()
    }

    fn constant(&mut self, graph: &mut Graph, value: i32) -> ValueId {
        let tensor = tensor(&self.engine, value);
        graph.add_constant(&self.name(), tensor).unwrap()
    }

    fn compile(&self, graph: &Graph) -> Ref<Program> {
        Program::compile(graph, vec![self.engine.clone()], &CompileOptions::default()).unwrap()
    }

    fn run(&self, program: &Ref<Program>, inputs: &[i32]) -> Result<Vec<i32>> {
        run(program, inputs, &RunOptions::default())
    }
}

#[test]
fn pure_kernels_of_constants_are_called_once() {
    let mut build = Build::new();
    let mut graph = Graph::new("constants");
    let x = graph.add_input("x", scalar()).unwrap();
    let two = build.constant(&mut graph, 2);
    let a = build.sum(&mut graph, &[two, two], 1, true).output(0);
    let b = build.sum(&mut graph, &[a], 10, true).output(0);
    let c = build.sum(&mut graph, &[x, b], 0, true).output(0);
    graph.add_output("c", c).unwrap();
    graph.add_output("b", b).unwrap();
    let program = build.compile(&graph);
    assert_eq!((fact(&program, "folded"), fact(&program, "program")), (2, 2));
    assert_eq!(build.calls.swap(0, Relaxed), 2);
    for x in [5, 6] {
        assert_eq!(build.run(&program, &[x]).unwrap(), [x + 15, 15]);
    }
    assert_eq!(build.calls.load(Relaxed), 2);
}

#[test]
fn what_is_not_pure_or_fails_is_left_to_the_runs() {
    let mut build = Build::new();
    let mut graph = Graph::new("left");
    let two = build.constant(&mut graph, 2);
    let a = build.sum(&mut graph, &[two], 1, false).output(0);
    let b = build.sum(&mut graph, &[two], -10, true);
    graph.add_output("a", a).unwrap();
    graph.add_output("b", b.output(0)).unwrap();
    let program = build.compile(&graph);
    assert_eq!((fact(&program, "folded"), fact(&program, "program")), (0, 2));
    let error = build.run(&program, &[]).unwrap_err();
    assert_eq!(error.message(), "node 'n3': below zero");
}

#[test]
fn a_kernel_that_waits_stays() {
    let mut build = Build::new();
    let mut graph = Graph::new("waits");
    let two = build.constant(&mut graph, 2);
    let a = build.sum(&mut graph, &[two], 1, false);
    let b = build.sum(&mut graph, &[two], 1, true);
    graph.add_control_edge(a, b).unwrap();
    graph.add_output("b", b.output(0)).unwrap();
    assert_eq!(fact(&build.compile(&graph), "folded"), 0);
}

/// Notes when it ran.
struct Note(Arc<AtomicU64>, u64);

impl Task for Note {
    fn run(&self) -> Result<()> {
        self.0.store(self.0.load(Relaxed) * 10 + self.1, Relaxed);
        Ok(())
    }
}

#[test]
fn a_constant_chooses_a_branch_for_good() {
    // A choice that waits stays one: a user of its values comes behind what it waits for.
    let cases = [(0, 105, "43", false), (1, 7, "23", false), (0, 105, "143", true), (1, 7, "123", true)];
    for (selector, expected, notes, waits) in cases {
        let mut build = Build::new();
        let noted = Arc::new(AtomicU64::new(0));
        let note = |n: u64| Arc::new(Note(Arc::clone(&noted), n));
        let mut then = Graph::new("then");
        let x = then.add_input("x", scalar()).unwrap();
        let y = build.sum(&mut then, &[x], 2, true);
        then.add_output("y", y.output(0)).unwrap();
        then.add_task("note", note(2), 0).unwrap();
        let mut otherwise = Graph::new("else");
        let x = otherwise.add_input("x", scalar()).unwrap();
        let y = build.sum(&mut otherwise, &[x], 100, false);
        otherwise.add_output("y", y.output(0)).unwrap();
        otherwise.add_task("note", note(4), 0).unwrap();

        let mut graph = Graph::new("outer");
        let x = graph.add_input("x", scalar()).unwrap();
        let predicate = build.constant(&mut graph, selector);
        let first = graph.add_task("first", note(1), 0).unwrap();
        let cond = graph.add_cond("cond", predicate, &then, &otherwise, &[x]).unwrap();
        let last = graph.add_task("last", note(3), 0).unwrap();
        if waits {
            graph.add_control_edge(first, cond).unwrap();
        }
        graph.add_control_edge(cond, last).unwrap();
        graph.add_output("y", cond.output(0)).unwrap();
        let program = build.compile(&graph);
        assert_eq!((fact(&program, "conds"), fact(&program, "folded")), (usize::from(waits), usize::from(!waits)));
        assert_eq!(build.run(&program, &[5]).unwrap(), [expected]);
        let noted = noted.load(Relaxed).to_string();
        let noted = if waits { noted } else { noted.replace('1', "") };
        assert_eq!(noted, notes);
    }
}

#[test]
fn constants_are_known_inside_of_branches_and_loops() {
    let mut build = Build::new();
    let mut branch = Graph::new("branch");
    let x = branch.add_input("x", scalar()).unwrap();
    let k = branch.add_input("k", scalar()).unwrap();
    let k = build.sum(&mut branch, &[k], 1, true);
    let y = build.sum(&mut branch, &[x, k.output(0)], 0, true);
    branch.add_output("y", y.output(0)).unwrap();
    let mut graph = Graph::new("outer");
    let x = graph.add_input("x", scalar()).unwrap();
    let k = build.constant(&mut graph, 10);
    let cond = graph.add_cond("cond", x, &branch, &branch, &[x, k]).unwrap();
    graph.add_output("y", cond.output(0)).unwrap();
    let program = build.compile(&graph);
    assert_eq!((fact(&program, "conds"), fact(&program, "folded")), (1, 2));
    build.calls.store(0, Relaxed);
    assert_eq!(build.run(&program, &[5]).unwrap(), [16]);
    assert_eq!(build.calls.load(Relaxed), 1);
}

#[test]
fn a_loop_that_never_begins_is_its_inputs() {
    // While the variable is below 0, which nobody can be told from outside.
    for (starts_at, loops) in [(Some(0), 0), (None, 1)] {
        let mut build = Build::new();
        let mut condition = Graph::new("condition");
        let x = condition.add_input("x", scalar()).unwrap();
        let goes_on = build.sum(&mut condition, &[x], 0, true);
        condition.add_output("goes on", goes_on.output(0)).unwrap();
        let mut body = Graph::new("body");
        let x = body.add_input("x", scalar()).unwrap();
        let y = build.sum(&mut body, &[x], -1, true);
        body.add_output("y", y.output(0)).unwrap();
        let mut graph = Graph::new("outer");
        let input = graph.add_input("x", scalar()).unwrap();
        let first = starts_at.map_or(input, |value| build.constant(&mut graph, value));
        let looped = graph.add_while("loop", &condition, &body, &[first], &[], 1).unwrap();
        let sum = build.sum(&mut graph, &[looped.output(0), input], 100, true);
        graph.add_output("y", sum.output(0)).unwrap();
        let program = build.compile(&graph);
        assert_eq!(fact(&program, "loops"), loops);
        assert_eq!(build.run(&program, &[3]).unwrap(), [103]);
    }
}
