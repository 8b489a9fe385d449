//! What a graph must say of the order of its effects: compile refuses exactly the graphs in which two of them that need
//! an order have none.

#[path = "kit/mod.rs"]
mod kit;

use kit::random::Random;
use kit::run::{cpu, scalar};
use std::sync::Arc;
use weir_core::base::{Desc, Ref, Result};
use weir_core::engine::{BoundKernel, Engine, KernelOptions};
use weir_core::graph::{CompileOptions, Graph, NodeId, Program, ValueId};
use weir_core::kernel::{Effect, Kernel, KernelContext, Outputs};

struct Touch {
    inputs: usize,
    effects: Vec<Effect>,
}

impl Kernel for Touch {
    fn name(&self) -> &str {
        "touch"
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
    fn effects(&self) -> &[Effect] {
        &self.effects
    }
    fn compute(&self, _: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        outputs.only().write_integer(0);
        Ok(())
    }
}

/// What a node does to a thing: nothing, a read, or a write.
type Touched = Option<(u64, bool)>;

fn touch(engine: &Ref<Engine>, inputs: usize, touched: Touched) -> Ref<BoundKernel> {
    let effect = |(thing, writes): (u64, bool)| Effect {
        thing,
        name: format!("thing {thing}").into(),
        writes,
        is_ordered: true,
        remedy: "add a control edge",
    };
    let kernel = Touch { inputs, effects: touched.map(effect).into_iter().collect() };
    BoundKernel::create(engine.clone(), Arc::new(kernel), &KernelOptions::default()).unwrap()
}

fn node_of(value: ValueId) -> NodeId {
    NodeId::from(u64::from(value) & !0xffff)
}

/// A node of a drawn graph.
struct Drawn {
    touched: Touched,
    is_cond: bool,
    data: Vec<usize>,
    control: Vec<usize>,
}

/// Which nodes lie on a path from one node to others; the ends of a path from or to a cond have no data.
fn is_behind(nodes: &[Drawn], from: usize, to: usize) -> bool {
    let mut behind = vec![false; nodes.len()];
    for node in from + 1..=to {
        let data = nodes[node].data.iter().map(|&before| (before, false));
        let control = nodes[node].control.iter().map(|&before| (before, true));
        behind[node] = data.chain(control).any(|(before, is_control)| {
            let begins = before == from && (is_control || !nodes[from].is_cond);
            let ends = node != to || is_control || !nodes[to].is_cond;
            ends && (begins || behind[before])
        });
    }
    behind[to]
}

fn has_order(nodes: &[Drawn]) -> bool {
    let conflict = |a: usize, b: usize| match (nodes[a].touched, nodes[b].touched) {
        (Some((x, a)), Some((y, b))) => x == y && (a || b),
        _ => false,
    };
    (0..nodes.len()).all(|to| (0..to).all(|from| !conflict(from, to) || is_behind(nodes, from, to)))
}

fn compiles(nodes: &[Drawn]) -> bool {
    let engine = cpu();
    let mut graph = Graph::new("drawn");
    let predicate = graph.add_input("predicate", scalar()).unwrap();
    let mut values: Vec<ValueId> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let name = format!("n{index}");
        let inputs: Vec<ValueId> = node.data.iter().map(|&before| values[before]).collect();
        let made = match node.is_cond {
            false => graph.add_kernel(&name, touch(&engine, inputs.len(), node.touched), &inputs, 1).unwrap(),
            true => {
                let branches = [node.touched, None].map(|touched| {
                    let mut branch = Graph::new("branch");
                    let x: Vec<ValueId> =
                        (0..inputs.len()).map(|i| branch.add_input(&format!("x{i}"), scalar()).unwrap()).collect();
                    let y = branch.add_kernel("touch", touch(&engine, x.len(), touched), &x, 1).unwrap();
                    branch.add_output("y", y.output(0)).unwrap();
                    branch
                });
                graph.add_cond(&name, predicate, &branches[0], &branches[1], &inputs).unwrap()
            }
        };
        node.control.iter().for_each(|&before| graph.add_control_edge(node_of(values[before]), made).unwrap());
        values.push(made.output(0));
    }
    match Program::compile(&graph, vec![engine], &CompileOptions::default()) {
        Ok(_) => true,
        Err(error) => {
            assert!(error.message().contains("in no order: add a control edge"), "{}", error.message());
            false
        }
    }
}

#[test]
fn a_graph_is_refused_if_two_effects_have_no_order_and_only_then() {
    let (mut refused, mut compiled) = (0, 0);
    for seed in 0..600 {
        let mut random = Random::new(seed);
        let n = 2 + random.below(if seed % 10 == 0 { 400 } else { 12 });
        let (things, most) = (1 + random.below(n), 1 + random.below(4));
        let mut nodes: Vec<Drawn> = Vec::new();
        for index in 0..n {
            let mut before = |nodes: &[Drawn], is_control: bool| -> Vec<usize> {
                // Mostly what an order needs: all that touch the same thing are in a chain.
                let last = index.checked_sub(1).filter(|_| !nodes.is_empty());
                let count = if index == 0 { 0 } else { random.below(most) };
                let drawn: Vec<usize> = (0..count).map(|_| random.below(index)).collect();
                let chained = last.filter(|_| random.below(if is_control { 3 } else { 5 }) > 0);
                drawn.into_iter().chain(chained).collect()
            };
            let (data, control) = (before(&nodes, false), before(&nodes, true));
            let touched = (random.below(3) > 0).then(|| (random.below(things) as u64, random.below(2) == 0));
            nodes.push(Drawn { touched, is_cond: random.below(5) == 0, data, control });
        }
        let expected = has_order(&nodes);
        assert_eq!(compiles(&nodes), expected, "seed {seed}");
        *if expected { &mut compiled } else { &mut refused } += 1;
    }
    println!("{compiled} compiled, {refused} refused");
    assert!(compiled > 100 && refused > 100);
}

/// Things that are read first and written last, with all of a graph in between: more than are looked at together.
#[test]
fn many_things_with_a_long_way_between_their_touches() {
    const THINGS: usize = 700;
    for missing in [None, Some(0), Some(300), Some(THINGS - 1)] {
        let mut nodes: Vec<Drawn> = Vec::new();
        for thing in 0..THINGS {
            let touched = Some((thing as u64, false));
            nodes.push(Drawn { touched, is_cond: false, data: vec![], control: vec![] });
        }
        let read = (0..THINGS).filter(|&thing| Some(thing) != missing);
        nodes.push(Drawn { touched: None, is_cond: false, data: vec![], control: read.collect() });
        for thing in 0..THINGS {
            let touched = Some((thing as u64, true));
            nodes.push(Drawn { touched, is_cond: false, data: vec![THINGS], control: vec![] });
        }
        assert_eq!(compiles(&nodes), missing.is_none(), "{missing:?}");
    }
}
