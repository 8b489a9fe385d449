//! Values that share memory: random graphs with few outputs, conds and loops, against an interpreter, on pools. Builds
//! with debug assertions check each plan by brute force besides.

#[path = "kit/mod.rs"]
mod kit;

use kit::pools;
use kit::random::Random;
use kit::run::{all_pools, cpu, execute, fact, on};
use std::sync::Arc;
use weir_core::base::{Desc, Ref, Result, dtype};
use weir_core::engine::{BoundKernel, Engine, KernelOptions, Tensor};
use weir_core::graph::{CompileOptions, Forwarding, Graph, NodeId, Program, ValueId};
use weir_core::kernel::{Kernel, KernelContext, Outputs};
use weir_core::threadpool::ThreadPool;

#[derive(Clone, Copy)]
enum What {
    Mix(i32),
    /// Whether the first number is odd.
    IsOdd,
    /// The first number and one.
    Increment,
    IsBelow(i32),
}

impl What {
    fn apply(self, i: usize, inputs: &[&[i32]]) -> i32 {
        match self {
            What::Mix(salt) => inputs.iter().fold(salt ^ i as i32, |x, input| {
                (x.rotate_left(5) ^ input[i % input.len()]).wrapping_mul(0x27d4_eb2d)
            }),
            What::IsOdd => inputs[0][0] & 1,
            What::Increment => inputs[0][0] + 1,
            What::IsBelow(limit) => i32::from(inputs[0][0] < limit),
        }
    }
}

/// Reads what it needs for a number before it writes it, so that it can work in place.
struct Op {
    what: What,
    inputs: usize,
    len: usize,
    in_place: bool,
}

fn desc(len: usize) -> Desc {
    Desc::new(dtype::S32, &[len as i64])
}

impl Kernel for Op {
    fn name(&self) -> &str {
        "op"
    }
    fn num_inputs(&self) -> usize {
        self.inputs
    }
    fn num_outputs(&self) -> usize {
        1
    }
    fn infer(&self, _: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![desc(self.len)])
    }
    fn in_place(&self) -> bool {
        self.in_place
    }
    fn cost_ns(&self, _: &[Desc], _: &[Desc]) -> u64 {
        100_000
    }
    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let output = outputs.only();
        for i in 0..self.len {
            let at = |view: &weir_core::memory::View| {
                let len = view.bytes() / 4;
                // SAFETY: within the view; nobody writes it but this thread, through a pointer as here.
                unsafe { view.data().cast::<i32>().add(i % len).read() }
            };
            let inputs: Vec<[i32; 1]> = context.inputs().iter().map(|view| [at(view)]).collect();
            let inputs: Vec<&[i32]> = inputs.iter().map(|one| &one[..]).collect();
            // SAFETY: as above.
            unsafe { output.data().cast::<i32>().add(i).write(self.what.apply(i, &inputs)) };
        }
        Ok(())
    }
}

enum Node {
    Op { what: What, inputs: Vec<usize>, in_place: bool, len: usize },
    Cond { predicate: usize, inputs: Vec<usize>, branches: [Sketch; 2] },
    While { inputs: Vec<usize>, times: usize, body: Sketch },
}

/// A graph: the lengths of its inputs, nodes whose values are numbered behind the inputs, and outputs.
struct Sketch {
    inputs: Vec<usize>,
    nodes: Vec<Node>,
    outputs: Vec<usize>,
}

fn sketch(random: &mut Random, inputs: &[usize], outputs: &[usize], depth: usize) -> Sketch {
    let mut lens = inputs.to_vec();
    let mut nodes = Vec::new();
    let any = |random: &mut Random, lens: &[usize]| {
        // Mostly what is new, so that values die.
        let n = lens.len();
        if random.below(4) > 0 { n - 1 - random.below(n.min(4)) } else { random.below(n) }
    };
    for _ in 0..random.below(if depth == 0 { 30 } else { 7 }) + 2 {
        let chosen: Vec<usize> = (0..1 + random.below(3)).map(|_| any(random, &lens)).collect();
        let of = |chosen: &[usize], lens: &[usize]| chosen.iter().map(|&c| lens[c]).collect::<Vec<_>>();
        match random.below(if depth < 2 { 8 } else { 6 }) {
            6 => {
                nodes.push(Node::Op { what: What::IsOdd, inputs: vec![chosen[0]], in_place: false, len: 1 });
                lens.push(1);
                let outputs: Vec<usize> = (0..1 + random.below(2)).map(|_| [1, 16, 40][random.below(3)]).collect();
                let branches = [0, 1].map(|_| sketch(random, &of(&chosen, &lens), &outputs, depth + 1));
                nodes.push(Node::Cond { predicate: lens.len() - 1, inputs: chosen, branches });
                lens.extend(outputs);
            }
            7 => {
                let of = of(&chosen, &lens);
                let body = sketch(random, &of, &of, depth + 1);
                nodes.push(Node::While { inputs: chosen, times: random.below(4), body });
                lens.extend(of);
            }
            _ => {
                let len = [lens[chosen[0]], 1, 16, 40][random.below(4)];
                let what = What::Mix(random.below(1 << 20) as i32);
                nodes.push(Node::Op { what, inputs: chosen, in_place: random.below(3) > 0, len });
                lens.push(len);
            }
        }
    }
    let mut chosen = Vec::new();
    for &len in outputs {
        match (0..lens.len()).rev().find(|&value| lens[value] == len && random.below(3) > 0) {
            Some(value) => chosen.push(value),
            None => {
                let inputs = vec![any(random, &lens)];
                let what = What::Mix(random.below(1 << 20) as i32);
                nodes.push(Node::Op { what, inputs, in_place: true, len });
                lens.push(len);
                chosen.push(lens.len() - 1);
            }
        }
    }
    Sketch { inputs: inputs.to_vec(), nodes, outputs: chosen }
}

fn interpret(sketch: &Sketch, inputs: Vec<Vec<i32>>) -> Vec<Vec<i32>> {
    let mut values = inputs;
    for node in &sketch.nodes {
        let of = |inputs: &[usize], values: &[Vec<i32>]| inputs.iter().map(|&i| values[i].clone()).collect::<Vec<_>>();
        match node {
            Node::Op { what, inputs, len, .. } => {
                let inputs = of(inputs, &values);
                let inputs: Vec<&[i32]> = inputs.iter().map(|input| &input[..]).collect();
                // A number of each input, as the kernel sees it.
                let at = |i: usize| {
                    let one: Vec<&[i32]> = inputs.iter().map(|input| &input[i % input.len()..][..1]).collect();
                    what.apply(i, &one)
                };
                values.push((0..*len).map(at).collect());
            }
            Node::Cond { predicate, inputs, branches } => {
                let inputs = of(inputs, &values);
                values.extend(interpret(&branches[usize::from(values[*predicate][0] != 0)], inputs));
            }
            Node::While { inputs, times, body } => {
                let mut variables = of(inputs, &values);
                (0..*times).for_each(|_| variables = interpret(body, variables.clone()));
                values.extend(variables);
            }
        }
    }
    sketch.outputs.iter().map(|&output| values[output].clone()).collect()
}

struct Build {
    engine: Ref<Engine>,
    names: usize,
}

impl Build {
    fn new() -> Build {
        Build { engine: cpu(), names: 0 }
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    fn op(&mut self, graph: &mut Graph, what: What, inputs: &[ValueId], len: usize, in_place: bool) -> NodeId {
        let kernel = Arc::new(Op { what, inputs: inputs.len(), len, in_place });
        let kernel = BoundKernel::create(self.engine.clone(), kernel, &KernelOptions::default()).unwrap();
        graph.add_kernel(&self.name(), kernel, inputs, 1).unwrap()
    }

    fn graph(&mut self, sketch: &Sketch) -> Graph {
        let mut graph = Graph::new("sketch");
        let inputs = sketch.inputs.iter().map(|&len| graph.add_input(&self.name(), desc(len)).unwrap()).collect();
        let values = self.fill(&mut graph, sketch, inputs);
        for &output in &sketch.outputs {
            graph.add_output(&self.name(), values[output]).unwrap();
        }
        graph
    }

    fn fill(&mut self, graph: &mut Graph, sketch: &Sketch, mut values: Vec<ValueId>) -> Vec<ValueId> {
        for node in &sketch.nodes {
            let of = |inputs: &[usize]| inputs.iter().map(|&i| values[i]).collect::<Vec<_>>();
            match node {
                Node::Op { what, inputs, in_place, len } => {
                    values.push(self.op(graph, *what, &of(inputs), *len, *in_place).output(0));
                }
                Node::Cond { predicate, inputs, branches } => {
                    let [otherwise, then] = [&branches[0], &branches[1]].map(|branch| self.graph(branch));
                    let outputs = branches[0].outputs.len();
                    let inputs = of(inputs);
                    let node = graph.add_cond(&self.name(), values[*predicate], &then, &otherwise, &inputs).unwrap();
                    values.extend((0..outputs).map(|output| node.output(output)));
                }
                Node::While { inputs, times, body } => {
                    let inputs = of(inputs);
                    let node = self.add_while(graph, &inputs, *times, body);
                    values.extend((0..inputs.len()).map(|output| node.output(output + 1)));
                }
            }
        }
        values
    }

    /// The variables behind a counter.
    fn add_while(&mut self, graph: &mut Graph, inputs: &[ValueId], times: usize, sketch: &Sketch) -> NodeId {
        let zero = tensor(&self.engine, &[0]);
        let mut variables = vec![graph.add_constant(&self.name(), zero).unwrap()];
        variables.extend(inputs);
        let [mut condition, mut body] = ["condition", "body"].map(Graph::new);
        let counter = condition.add_input(&self.name(), desc(1)).unwrap();
        for &len in &sketch.inputs {
            condition.add_input(&self.name(), desc(len)).unwrap();
        }
        let goes_on = self.op(&mut condition, What::IsBelow(times as i32), &[counter], 1, false);
        condition.add_output("goes on", goes_on.output(0)).unwrap();
        let counter = body.add_input(&self.name(), desc(1)).unwrap();
        let ports = sketch.inputs.iter().map(|&len| body.add_input(&self.name(), desc(len)).unwrap()).collect();
        let next = self.op(&mut body, What::Increment, &[counter], 1, true);
        body.add_output("counter", next.output(0)).unwrap();
        let values = self.fill(&mut body, sketch, ports);
        for &output in &sketch.outputs {
            body.add_output(&self.name(), values[output]).unwrap();
        }
        graph.add_while(&self.name(), &condition, &body, &variables, &[], 1).unwrap()
    }

    fn compile(&self, graph: &Graph) -> Result<Ref<Program>> {
        let options = CompileOptions { hop_ns: Some(0), ..CompileOptions::default() };
        Program::compile(graph, vec![self.engine.clone()], &options)
    }
}

fn tensor(engine: &Ref<Engine>, values: &[i32]) -> Ref<Tensor> {
    let tensor = Tensor::create(engine.clone(), desc(values.len())).unwrap();
    // SAFETY: the tensor has that many elements and nobody else has it.
    unsafe { std::slice::from_raw_parts_mut(tensor.data().cast::<i32>(), values.len()).copy_from_slice(values) };
    tensor
}

fn run(program: &Ref<Program>, inputs: &[Vec<i32>], pool: Option<&Ref<ThreadPool>>) -> Vec<Vec<i32>> {
    let engine = cpu();
    let inputs: Vec<_> = inputs.iter().map(|values| tensor(&engine, values)).collect();
    let outputs: Vec<_> =
        program.outputs().iter().map(|port| Tensor::create(engine.clone(), port.desc).unwrap()).collect();
    execute(program, &inputs, &outputs, &on(pool)).unwrap();
    // SAFETY: the runs are over.
    outputs.iter().map(|tensor| unsafe { tensor.view().as_bytes() }.read::<i32>().to_vec()).collect()
}

#[test]
fn values_share_memory_and_stay_what_they_are() {
    let pools = all_pools();
    let (mut shared, mut unshared, mut forwarded, mut in_place) = (0, 0, 0, 0);
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let sketch = sketch(&mut random, &[16, 1, 40], &[16, 40], 0);
        let inputs: Vec<Vec<i32>> =
            sketch.inputs.iter().map(|&len| (0..len).map(|_| random.below(1 << 30) as i32).collect()).collect();
        let expected = interpret(&sketch, inputs.clone());
        let mut build = Build::new();
        let graph = build.graph(&sketch);
        let program = build.compile(&graph).unwrap();
        shared += fact(&program, "arena_bytes");
        unshared += fact(&program, "arena_bytes_unshared");
        forwarded += fact(&program, "forwarded");
        in_place += fact(&program, "in_place");
        for (i, pool) in pools.iter().enumerate() {
            for _ in 0..3 {
                assert_eq!(run(&program, &inputs, pool.as_ref()), expected, "seed {seed}, pool {i}");
            }
        }
    }
    assert!(shared * 5 < unshared * 4, "{shared} bytes of {unshared}");
    assert!(forwarded > 50 && in_place > 20, "{forwarded} forwarded, {in_place} in place");
}

/// x, then `n` kernels in a row.
fn chain(build: &mut Build, graph: &mut Graph, n: usize, in_place: bool) -> Vec<NodeId> {
    let mut value = graph.add_input("x", desc(256)).unwrap();
    let mut nodes = Vec::new();
    for _ in 0..n {
        nodes.push(build.op(graph, What::Mix(1), &[value], 256, in_place));
        value = nodes[nodes.len() - 1].output(0);
    }
    graph.add_output("y", value).unwrap();
    nodes
}

#[test]
fn a_chain_needs_two_values_and_in_place_none() {
    for (in_place, bytes, forwarded) in [(false, 2 * 1024, 0), (true, 0, 99)] {
        let mut build = Build::new();
        let mut graph = Graph::new("chain");
        chain(&mut build, &mut graph, 100, in_place);
        let program = build.compile(&graph).unwrap();
        // In place everything lies in the output.
        assert_eq!((fact(&program, "arena_bytes"), fact(&program, "forwarded")), (bytes, forwarded));
        assert_eq!(fact(&program, "arena_bytes_unshared"), 99 * 1024);
    }
}

#[test]
fn layers_that_split_and_join_need_no_more_memory_the_more_there_are() {
    let bytes = |layers: usize| {
        let mut build = Build::new();
        let mut graph = Graph::new("layers");
        let mut value = graph.add_input("x", desc(256)).unwrap();
        for _ in 0..layers {
            let inner: Vec<ValueId> = (0..5)
                .map(|_| {
                    let first = build.op(&mut graph, What::Mix(2), &[value], 256, false).output(0);
                    build.op(&mut graph, What::Mix(3), &[first], 256, false).output(0)
                })
                .collect();
            value = build.op(&mut graph, What::Mix(4), &inner, 256, false).output(0);
        }
        graph.add_output("y", value).unwrap();
        fact(&build.compile(&graph).unwrap(), "arena_bytes")
    };
    assert_eq!(bytes(10), bytes(40));
    assert!(bytes(40) <= 12 * 1024, "{}", bytes(40));
}

#[test]
fn a_residual_block_ends_what_it_skips() {
    let bytes = |blocks: usize| {
        let mut build = Build::new();
        let mut graph = Graph::new("residual");
        let x = graph.add_input("x", desc(256)).unwrap();
        let mut value = build.op(&mut graph, What::Mix(1), &[x], 256, false).output(0);
        for _ in 0..blocks {
            let mut inner = value;
            for salt in 0..3 {
                inner = build.op(&mut graph, What::Mix(salt), &[inner], 256, false).output(0);
            }
            value = build.op(&mut graph, What::Mix(9), &[inner, value], 256, false).output(0);
        }
        graph.add_output("y", value).unwrap();
        fact(&build.compile(&graph).unwrap(), "arena_bytes")
    };
    assert_eq!(bytes(2), 3 * 1024);
    assert_eq!(bytes(50), 3 * 1024);
}

#[test]
fn forwarding_is_forbidden_and_reserved_by_name() {
    let mut build = Build::new();
    let mut graph = Graph::new("forwarding");
    let nodes = chain(&mut build, &mut graph, 4, true);
    graph.set_forwarding(nodes[1], 0, Forwarding::Never).unwrap();
    assert_eq!(fact(&build.compile(&graph).unwrap(), "forwarded"), 2);
    graph.set_forwarding(nodes[1], 0, Forwarding::ByLastUse).unwrap();
    for node in &nodes[1..] {
        graph.set_forwarding(*node, 0, Forwarding::Reserved(0)).unwrap();
    }
    assert_eq!(fact(&build.compile(&graph).unwrap(), "forwarded"), 3);
    graph.set_forwarding(nodes[0], 0, Forwarding::Reserved(0)).unwrap();
    let refusal = |graph: &Graph| match build.compile(graph) {
        Ok(_) => panic!("compiled"),
        Err(error) => error.message().to_owned(),
    };
    let name = "node 'n1': output 0 cannot take over the memory of input 0: ";
    assert_eq!(refusal(&graph), format!("{name}the input is not memory of the program's own"));
    graph.set_forwarding(nodes[0], 0, Forwarding::ByLastUse).unwrap();
    graph.add_output("also", nodes[1].output(0)).unwrap();
    assert!(refusal(&graph).contains("node 'n3': output 0 cannot take over"), "{}", refusal(&graph));
    assert!(graph.set_forwarding(nodes[0], 1, Forwarding::Never).unwrap_err().message().contains("output is 1"));
    assert!(graph.set_forwarding(nodes[0], 0, Forwarding::Reserved(1)).unwrap_err().message().contains("input is 1"));

    let mut graph = Graph::new("two readers");
    let x = graph.add_input("x", desc(16)).unwrap();
    let made = build.op(&mut graph, What::Mix(1), &[x], 16, true).output(0);
    let a = build.op(&mut graph, What::Mix(2), &[made], 16, true);
    let b = build.op(&mut graph, What::Mix(3), &[made], 16, true);
    let both = build.op(&mut graph, What::Mix(4), &[a.output(0), b.output(0)], 16, true);
    graph.add_output("y", both.output(0)).unwrap();
    graph.set_forwarding(b, 0, Forwarding::Reserved(0)).unwrap();
    let message = match build.compile(&graph) {
        Ok(_) => panic!("compiled"),
        Err(error) => error.message().to_owned(),
    };
    assert!(message.ends_with("others may use the input at the same time or later"), "{message}");
    // In order it can be done.
    graph.add_control_edge(a, b).unwrap();
    graph.set_forwarding(a, 0, Forwarding::Never).unwrap();
    assert!(build.compile(&graph).is_ok());
}

/// Random graphs in which a node demands its first input: taken exactly if all other readers come before it by edges,
/// and with the numbers of the same graph without the demand.
#[test]
fn a_reserved_input_is_taken_over_where_its_other_readers_come_before() {
    let (mut random, pools) = (Random::new(7), all_pools());
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..500 {
        let n = 4 + random.below(8);
        let edges: Vec<[usize; 2]> = (1..n).map(|node| [random.below(node), random.below(node)]).collect();
        let demanding = 1 + random.below(n - 1);
        let wanted = edges[demanding - 1][0];
        let make = |build: &mut Build, reserved: bool| {
            let mut graph = Graph::new("reserved");
            let x = graph.add_input("x", desc(16)).unwrap();
            let mut values = vec![build.op(&mut graph, What::Mix(1), &[x], 16, false).output(0)];
            let mut read = vec![false; n];
            for (node, &[a, b]) in (1..n).zip(&edges) {
                let is_demanding = node == demanding;
                let own = build.op(&mut graph, What::Mix(node as i32), &[values[a], values[b]], 16, is_demanding);
                let how = if reserved { Forwarding::Reserved(0) } else { Forwarding::Never };
                if is_demanding {
                    graph.set_forwarding(own, 0, how).unwrap();
                }
                values.push(own.output(0));
                [a, b].into_iter().for_each(|from| read[from] = true);
            }
            for (node, _) in read.iter().enumerate().filter(|(_, read)| !**read) {
                graph.add_output(&format!("y{node}"), values[node]).unwrap();
            }
            build.compile(&graph)
        };
        let mut behind = vec![false; n];
        behind[demanding] = true;
        for node in (1..n).rev().filter(|&node| node <= demanding) {
            if behind[node] {
                edges[node - 1].iter().for_each(|&from| behind[from] = true);
            }
        }
        let reads = |node: usize| edges[node - 1].contains(&wanted);
        let may = (1..n).all(|node| node == demanding || !reads(node) || behind[node]);
        let mut build = Build::new();
        let plain = make(&mut build, false).unwrap();
        match make(&mut build, true) {
            Ok(program) => {
                assert!(may, "{edges:?}, {demanding}");
                assert_eq!(fact(&program, "forwarded"), 1);
                for pool in &pools {
                    let inputs = [(0..16).collect::<Vec<i32>>()];
                    let pool = pool.as_ref();
                    assert_eq!(run(&program, &inputs, pool), run(&plain, &inputs, pool), "{edges:?}, {demanding}");
                }
                taken += 1;
            }
            Err(error) => {
                assert!(!may, "{edges:?}, {demanding}: {}", error.message());
                refused += 1;
            }
        }
    }
    assert!(taken > 100 && refused > 100, "{taken} taken, {refused} refused");
}

/// Branches of a case with `lengths` values of 1 KiB in a row, the last of which it gives; inner ones with a cond of
/// two such branches.
#[test]
fn branches_of_which_one_runs_have_the_same_memory() {
    let values = |build: &mut Build, n: usize| {
        let mut graph = Graph::new("branch");
        chain(build, &mut graph, n, false);
        graph
    };
    let mut build = Build::new();
    let mut bytes = |lengths: &[usize]| {
        let branches: Vec<Graph> = lengths.iter().map(|&n| values(&mut build, n)).collect();
        let mut graph = Graph::new("case");
        let index = graph.add_input("index", desc(1)).unwrap();
        let x = graph.add_input("x", desc(256)).unwrap();
        let all: Vec<&Graph> = branches.iter().collect();
        let case = graph.add_case("case", index, &all, &[x]).unwrap();
        let before = build.op(&mut graph, What::Mix(1), &[x], 256, false).output(0);
        let after = build.op(&mut graph, What::Mix(2), &[case.output(0), before], 256, false).output(0);
        graph.add_output("y", after).unwrap();
        let program = build.compile(&graph).unwrap();
        let input: Vec<i32> = (0..256).collect();
        for index in 0..lengths.len() {
            let expected = run(&program, &[vec![index as i32], input.clone()], None);
            let pool = pools::of(2);
            (0..5).for_each(|_| assert_eq!(run(&program, &[vec![index as i32], input.clone()], Some(&pool)), expected));
        }
        fact(&program, "arena_bytes")
    };
    // Two values in a branch are in use at a time, or one, or none: the last is the case's output.
    let one = bytes(&[5]);
    assert_eq!(one, 4 * 1024);
    assert_eq!(bytes(&[5, 5, 5, 5]), one);
    assert_eq!(bytes(&[1, 5, 2]), one);
    assert_eq!(bytes(&[2, 1]), 3 * 1024); // In branches of branches, and behind them.
    let mut build = Build::new();
    let mut bytes = |inner: &[usize; 2]| {
        let branches = inner.map(|n| values(&mut build, n));
        let mut outer = Graph::new("outer");
        let index = outer.add_input("index", desc(1)).unwrap();
        let x = outer.add_input("x", desc(256)).unwrap();
        let before = build.op(&mut outer, What::Mix(3), &[x], 256, false).output(0);
        let case = outer.add_cond("cond", index, &branches[0], &branches[1], &[before]).unwrap();
        let after = build.op(&mut outer, What::Mix(4), &[case.output(0), before], 256, false).output(0);
        outer.add_output("y", after).unwrap();
        let mut graph = Graph::new("main");
        let index = graph.add_input("index", desc(1)).unwrap();
        let x = graph.add_input("x", desc(256)).unwrap();
        let case = graph.add_case("case", index, &[&outer, &outer, &outer], &[index, x]).unwrap();
        graph.add_output("y", case.output(0)).unwrap();
        fact(&build.compile(&graph).unwrap(), "arena_bytes")
    };
    assert!(bytes(&[5, 5]) < 5 * 1024 && bytes(&[5, 3]) == bytes(&[5, 5]));
}
