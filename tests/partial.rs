//! Runs that compute a part of a program's outputs: random graphs, each node counted, on pools and streams.

#[path = "kit/mod.rs"]
mod kit;

use kit::pools;
use kit::random::Random;
use kit::run::{cpu, integer, lend, scalar, tensor};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use weir_core::base::{Code, Desc, Error, Ref, Result};
use weir_core::device::DeviceKind;
use weir_core::engine::{BoundKernel, Engine, KernelOptions, Stream, StreamAttr};
use weir_core::graph::{CompileOptions, Graph, NodeId, Program, ReportFormat, RunOptions, ValueId};
use weir_core::kernel::{Kernel, KernelContext, Outputs, Task};
use weir_core::threadpool::ThreadPool;

/// The sum of its inputs and one; counted.
struct Plus {
    inputs: usize,
    calls: Arc<AtomicU32>,
}

impl Kernel for Plus {
    fn name(&self) -> &str {
        "plus"
    }

    fn num_inputs(&self) -> usize {
        self.inputs
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![scalar()])
    }

    fn in_place(&self) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        self.calls.fetch_add(1, Relaxed);
        let inputs = (0..context.inputs().len()).map(|i| outputs.input(context, i).read_integer());
        let sum = inputs.fold(1i32, i32::wrapping_add);
        outputs.only().write_integer(sum);
        Ok(())
    }
}

struct Tick(Arc<AtomicU32>);

impl Task for Tick {
    fn run(&self) -> Result<()> {
        self.0.fetch_add(1, Relaxed);
        Ok(())
    }
}

/// Runs these outputs, or all. An input that is None fails the run if anybody looks at it.
fn run(
    program: &Ref<Program>,
    inputs: &[Option<i32>],
    (wanted, pool): (&[usize], Option<&Ref<ThreadPool>>),
    stream: Option<&Ref<Stream>>,
) -> Result<Vec<i32>> {
    let engine = cpu();
    let inputs: Vec<_> = inputs.iter().map(|value| value.map(|value| tensor(&engine, value))).collect();
    let options = RunOptions { threadpool: pool.cloned(), ..RunOptions::default() };
    let count = if wanted.is_empty() { program.outputs().len() } else { wanted.len() };
    let outputs: Vec<_> = (0..count).map(|_| tensor(&engine, -99)).collect();
    let get_in = |i: usize| inputs[i].as_ref().map(lend).ok_or_else(|| Error::null("an input"));
    let get_out = |i: usize| Ok(lend(&outputs[i]));
    let part = if wanted.is_empty() { None } else { Some(program.part(wanted)?) };
    let program = part.as_ref().unwrap_or(program);
    Program::bind(program, (inputs.len(), &get_in), (count, &get_out))?.run(stream.map(|s| &**s), Some(&options))?;
    if let Some(stream) = stream {
        stream.queue().synchronize(u64::MAX)?;
    }
    Ok(outputs.iter().map(|tensor| integer(tensor)).collect())
}

/// One node of a random graph: what it is, and what it waits for.
enum Node {
    Input(usize),
    Sum(Vec<usize>),
    /// If the first is odd, one more than the second, else the second and two.
    Cond(usize, usize),
    Task,
}

struct Sketch {
    nodes: Vec<Node>,
    /// Control edges.
    after: Vec<Vec<usize>>,
    outputs: Vec<usize>,
    num_inputs: usize,
}

impl Sketch {
    fn random(seed: u64) -> Sketch {
        let mut random = Random::new(seed);
        let num_inputs = 1 + random.below(4);
        let mut sketch = Sketch {
            nodes: (0..num_inputs).map(Node::Input).collect(),
            after: Vec::new(),
            outputs: vec![],
            num_inputs,
        };
        sketch.after.resize(num_inputs, Vec::new());
        for _ in 0..3 + random.below(25) {
            let values: Vec<usize> =
                (0..sketch.nodes.len()).filter(|&i| !matches!(sketch.nodes[i], Node::Task)).collect();
            let mut value = || values[random.below(values.len())];
            let node = match (value(), value()) {
                (a, b) if (a + b) % 7 == 0 => Node::Cond(a, b),
                (a, b) if (a + b) % 5 == 0 => Node::Task.or_sum(a, b),
                (a, b) => Node::Sum(vec![a, b]),
            };
            let after = match random.below(3) {
                0 => vec![random.below(sketch.nodes.len())],
                _ => Vec::new(),
            };
            sketch.nodes.push(node);
            sketch.after.push(after);
        }
        let values: Vec<usize> = (0..sketch.nodes.len()).filter(|&i| !matches!(sketch.nodes[i], Node::Task)).collect();
        for _ in 0..1 + random.below(6) {
            sketch.outputs.push(values[random.below(values.len())]);
        }
        sketch
    }

    fn value(&self, node: usize, inputs: &[i32]) -> i32 {
        match &self.nodes[node] {
            Node::Input(i) => inputs[*i],
            Node::Sum(from) => from.iter().fold(1i32, |sum, &node| sum.wrapping_add(self.value(node, inputs))),
            Node::Cond(a, b) => {
                let (a, b) = (self.value(*a, inputs), self.value(*b, inputs));
                b.wrapping_add(if a != 0 { 1 } else { 2 })
            }
            Node::Task => unreachable!("a task has no value"),
        }
    }

    /// Whether a node's value is used by what is needed, or is asked for. A cond that is only waited for computes
    /// nothing.
    fn is_used(&self, node: usize, needed: &[bool], outputs: &[usize]) -> bool {
        let uses = |other: &Node| match other {
            Node::Sum(from) => from.contains(&node),
            Node::Cond(a, b) => *a == node || *b == node,
            Node::Input(_) | Node::Task => false,
        };
        outputs.iter().any(|&output| self.outputs[output] == node)
            || self.nodes.iter().zip(needed).any(|(other, needed)| *needed && uses(other))
    }

    /// What these outputs depend on.
    fn needed(&self, outputs: &[usize]) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        let mut to_do: Vec<usize> = outputs.iter().map(|&output| self.outputs[output]).collect();
        while let Some(node) = to_do.pop() {
            if std::mem::replace(&mut needed[node], true) {
                continue;
            }
            to_do.extend(&self.after[node]);
            match &self.nodes[node] {
                Node::Sum(from) => to_do.extend(from),
                Node::Cond(a, b) => to_do.extend([a, b]),
                Node::Input(_) | Node::Task => {}
            }
        }
        needed
    }
}

impl Node {
    fn or_sum(self, a: usize, b: usize) -> Node {
        if a > b { self } else { Node::Sum(vec![b]) }
    }
}

/// The graph of a sketch, and how often each of its nodes was run.
struct Built {
    graph: Graph,
    calls: Vec<Arc<AtomicU32>>,
}

fn plus(engine: &Ref<Engine>, inputs: usize, calls: &Arc<AtomicU32>) -> Ref<BoundKernel> {
    let kernel = Arc::new(Plus { inputs, calls: Arc::clone(calls) });
    BoundKernel::create(engine.clone(), kernel, &KernelOptions::default()).unwrap()
}

/// A graph that adds so much to its input, one a node; the last of them is counted.
fn branch(name: &str, engine: &Ref<Engine>, steps: usize, calls: &Arc<AtomicU32>) -> Graph {
    let mut graph = Graph::new(name);
    let mut value = graph.add_input("x", scalar()).unwrap();
    for step in 0..steps {
        let counted = if step + 1 == steps { Arc::clone(calls) } else { Arc::default() };
        let node = graph.add_kernel(&format!("{name}{step}"), plus(engine, 1, &counted), &[value], 1).unwrap();
        value = node.output(0);
    }
    graph.add_output("y", value).unwrap();
    graph
}

fn build(sketch: &Sketch) -> Built {
    let engine = cpu();
    let mut graph = Graph::new("random");
    let calls: Vec<Arc<AtomicU32>> = sketch.nodes.iter().map(|_| Arc::default()).collect();
    let mut values: Vec<Option<ValueId>> = Vec::new();
    let mut ids: Vec<Option<NodeId>> = Vec::new();
    for (i, node) in sketch.nodes.iter().enumerate() {
        let name = format!("n{i}");
        let value = |node: &usize| values[*node].unwrap();
        let id = match node {
            Node::Input(_) => {
                values.push(Some(graph.add_input(&name, scalar()).unwrap()));
                ids.push(None);
                continue;
            }
            Node::Sum(from) => {
                let from: Vec<_> = from.iter().map(value).collect();
                graph.add_kernel(&name, plus(&engine, from.len(), &calls[i]), &from, 1).unwrap()
            }
            Node::Cond(a, b) => {
                let (then, otherwise) = (branch("then", &engine, 1, &calls[i]), branch("else", &engine, 2, &calls[i]));
                graph.add_cond(&name, value(a), &then, &otherwise, &[value(b)]).unwrap()
            }
            Node::Task => graph.add_task(&name, Arc::new(Tick(Arc::clone(&calls[i]))), 0).unwrap(),
        };
        values.push((!matches!(node, Node::Task)).then(|| id.output(0)));
        for &before in &sketch.after[i] {
            if let Some(before) = ids[before] {
                graph.add_control_edge(before, id).unwrap();
            }
        }
        ids.push(Some(id));
    }
    for (i, &output) in sketch.outputs.iter().enumerate() {
        graph.add_output(&format!("y{i}"), values[output].unwrap()).unwrap();
    }
    Built { graph, calls }
}

fn compiled(graph: &Graph, partial_runs: usize) -> Ref<Program> {
    let options = CompileOptions { partial_runs, hop_ns: Some(0), ..CompileOptions::default() };
    Program::compile(graph, vec![cpu()], &options).unwrap()
}

/// Each list of outputs gives what the whole gives, runs what it needs and nothing else, and looks at no other input.
#[test]
fn a_part_is_what_its_outputs_need() {
    let pools = [None, Some(pools::seeded(5, 2)), Some(pools::of(2))];
    let engine = cpu();
    let mut attr = StreamAttr::new(DeviceKind::CPU);
    attr.asynchronous = true;
    attr.set_threadpool(Some(pools::of(2)));
    let stream = Stream::create(engine, attr).unwrap();
    for seed in 0..300 {
        let sketch = Sketch::random(seed);
        let built = build(&sketch);
        let program = compiled(&built.graph, 3);
        let mut random = Random::new(seed ^ 0xabcd);
        let inputs: Vec<i32> = (0..sketch.num_inputs).map(|_| random.below(3) as i32 - 1).collect();
        for round in 0..8 {
            let mut outputs: Vec<usize> = (0..sketch.outputs.len()).filter(|_| random.below(2) == 0).collect();
            if outputs.is_empty() {
                outputs.push(random.below(sketch.outputs.len()));
            }
            if random.below(2) == 0 {
                outputs.reverse();
            }
            let needed = sketch.needed(&outputs);
            let given: Vec<_> = inputs.iter().zip(&needed).map(|(value, needed)| needed.then_some(*value)).collect();
            let expected: Vec<i32> = outputs.iter().map(|&o| sketch.value(sketch.outputs[o], &inputs)).collect();
            let before: Vec<u32> = built.calls.iter().map(|calls| calls.load(Relaxed)).collect();
            let on = (round % 2 == 1).then_some(&stream);
            let got = run(&program, &given, (&outputs, pools[round % pools.len()].as_ref()), on).unwrap();
            assert_eq!(got, expected, "seed {seed}, outputs {outputs:?}");
            for (i, node) in sketch.nodes.iter().enumerate().filter(|(_, node)| !matches!(node, Node::Input(_))) {
                let times = built.calls[i].load(Relaxed) - before[i];
                let is_cond = matches!(node, Node::Cond(..));
                let expected = needed[i] && (!is_cond || sketch.is_used(i, &needed, &outputs));
                assert_eq!(times, u32::from(expected), "seed {seed}, outputs {outputs:?}, node {i}");
            }
        }
    }
}

/// x -> a -> y0, x -> b -> y1, and so on.
fn fan(width: usize, calls: &Arc<AtomicU32>) -> Graph {
    let engine = cpu();
    let mut graph = Graph::new("fan");
    let x = graph.add_input("x", scalar()).unwrap();
    for i in 0..width {
        let node = graph.add_kernel(&format!("k{i}"), plus(&engine, 1, calls), &[x], 1).unwrap();
        graph.add_output(&format!("y{i}"), node.output(0)).unwrap();
    }
    graph
}

fn kept(program: &Program) -> usize {
    program.report(ReportFormat::Json).matches("\"outputs\":").count()
}

/// More lists than are kept, from several threads at once: always right, and never more than are kept.
#[test]
fn lists_come_and_go() {
    const WIDTH: usize = 12;
    let calls = Arc::default();
    let program = compiled(&fan(WIDTH, &calls), 4);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let program = &program;
            scope.spawn(move || {
                let mut random = Random::new(thread);
                for round in 0..400 {
                    let outputs = [random.below(WIDTH)];
                    assert_eq!(run(program, &[Some(round)], (&outputs, None), None).unwrap(), [round + 1]);
                }
            });
        }
    });
    assert_eq!(calls.load(Relaxed), 4 * 400);
    assert_eq!(kept(&program), 4);
    let counters = program.counters();
    assert_eq!((counters.begun, counters.ended, counters.failed), (1600, 1600, 0));
}

/// A list that is asked for again and again stays while others come and go.
#[test]
fn what_is_asked_for_stays() {
    let calls = Arc::default();
    let program = compiled(&fan(40, &calls), 4);
    for other in 1..40 {
        for outputs in [0, other] {
            assert_eq!(run(&program, &[Some(1)], (&[outputs], None), None).unwrap(), [2]);
        }
        assert!(program.report(ReportFormat::Json).contains("\"outputs\":[0]"), "after {other}");
    }
    assert!(kept(&program) <= 4);
}

#[test]
fn refusals_name_the_cause() {
    let calls = Arc::default();
    let graph = fan(3, &calls);
    let (with, without) = (compiled(&graph, 1), compiled(&graph, 0));
    let refused = |program: &Ref<Program>, outputs: &[usize]| {
        let error = run(program, &[Some(1)], (outputs, None), None).unwrap_err();
        (error.code(), error.message().to_owned())
    };
    let (code, message) = refused(&without, &[0]);
    assert_eq!(code, Code::FailedPrecondition);
    assert!(message.contains("program 'fan' was compiled without partial runs"), "{message}");
    let (code, message) = refused(&with, &[0, 3]);
    assert_eq!(code, Code::OutOfRange);
    assert!(message.contains("options->outputs[1] is 3, the program has 3 outputs"), "{message}");
    let error = run(&with, &[None], (&[1], None), None).unwrap_err();
    assert!(error.message().contains("an input"), "{}", error.message());
    assert_eq!(calls.load(Relaxed), 0);
}

/// The figures of a node are those of all runs that it was in.
#[test]
fn figures_count_partial_runs() {
    let calls = Arc::default();
    let compile = CompileOptions { partial_runs: 2, statistics: true, ..CompileOptions::default() };
    let program = Program::compile(&fan(3, &calls), vec![cpu()], &compile).unwrap();
    for _ in 0..2 {
        run(&program, &[Some(1)], (&[], None), None).unwrap();
    }
    // The second pair takes the places of the first.
    for outputs in [[0, 1], [1, 2], [0, 2], [2, 0]] {
        run(&program, &[Some(1)], (&outputs, None), None).unwrap();
    }
    let count = |name: &str| {
        let nodes = (0..program.num_nodes()).map(|i| program.node_stats(i).unwrap());
        nodes.filter(|stats| stats.name == name).map(|stats| stats.count).sum::<u64>()
    };
    assert_eq!([count("k0"), count("k1"), count("k2")], [5, 4, 5]);
    assert_eq!(program.counters().ended, 6);
}
