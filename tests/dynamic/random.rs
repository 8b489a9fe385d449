//! Random graphs of lists, with conds, loops and programs inside one another, against an interpreter: on every kind of
//! pool, with other sizes in each run.

use crate::build::{Builder, all_pools, lists};
use weir_core::graph::ValueId;

/// Longer lists are cut.
const LONGEST: usize = 300;

/// xorshift64*
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

/// A graph: its values are the inputs, then one for each output of each node.
#[derive(Debug)]
struct Sketch {
    inputs: usize,
    nodes: Vec<Node>,
    outputs: Vec<usize>,
}

#[derive(Debug)]
enum Node {
    List {
        op: usize,
        inputs: Vec<usize>,
    },
    Cond {
        selector: usize,
        branches: [Sketch; 2],
        inputs: Vec<usize>,
    },
    /// So many turns as the first list is long, at most 4.
    While {
        body: Sketch,
        inputs: Vec<usize>,
    },
    Program {
        inner: Sketch,
        inputs: Vec<usize>,
    },
}

fn compute(op: usize, x: &[Vec<i32>]) -> Vec<i32> {
    let mut list: Vec<i32> = match op {
        0 => x.concat(),
        1 => x[0].iter().copied().filter(|v| v % 2 == 0).collect(),
        2 => x[0][..x[0].len() / 2].to_vec(),
        3 => vec![x.concat().iter().fold(1, |a: i32, &b| a.wrapping_mul(31).wrapping_add(b)); 3],
        4 => x[0].iter().map(|v| v.wrapping_mul(3).wrapping_add(1)).collect(),
        _ => Vec::new(),
    };
    list.truncate(LONGEST);
    list
}

fn sketch(random: &mut Random, inputs: usize, outputs: usize, depth: usize) -> Sketch {
    let (mut nodes, mut values) = (Vec::new(), inputs);
    for _ in 0..2 + random.below(4) {
        let some = |random: &mut Random, n: usize| (0..n).map(|_| random.below(values)).collect::<Vec<_>>();
        let kind = if depth == 0 { 0 } else { random.below(8) };
        let count = 1 + random.below(2);
        let picked = some(random, count);
        let (node, made) = match kind {
            5 => {
                let branches = [(); 2].map(|()| sketch(random, count, 2, depth - 1));
                (Node::Cond { selector: random.below(values), branches, inputs: picked }, 2)
            }
            6 => (Node::While { body: sketch(random, count, count, depth - 1), inputs: picked }, count),
            7 => (Node::Program { inner: sketch(random, count, 1, depth - 1), inputs: picked }, 1),
            _ => (Node::List { op: random.below(6), inputs: picked }, 1),
        };
        nodes.push(node);
        values += made;
    }
    let outputs = (0..outputs).map(|_| random.below(values)).collect();
    Sketch { inputs, nodes, outputs }
}

fn interpret(sketch: &Sketch, inputs: &[Vec<i32>]) -> Vec<Vec<i32>> {
    let mut values = inputs.to_vec();
    for node in &sketch.nodes {
        let of = |list: &[usize]| list.iter().map(|&i| values[i].clone()).collect::<Vec<_>>();
        let made = match node {
            Node::List { op, inputs } => vec![compute(*op, &of(inputs))],
            Node::Cond { selector, branches, inputs } => interpret(&branches[values[*selector].len() % 2], &of(inputs)),
            Node::While { body, inputs } => {
                let mut variables = of(inputs);
                for _ in 0..variables[0].len().min(4) {
                    variables = interpret(body, &variables);
                }
                variables
            }
            Node::Program { inner, inputs } => interpret(inner, &of(inputs)),
        };
        values.extend(made);
    }
    sketch.outputs.iter().map(|&i| values[i].clone()).collect()
}

fn build(sketch: &Sketch, name: &str) -> Builder {
    let mut builder = Builder::new(name);
    let inputs: Vec<ValueId> = (0..sketch.inputs).map(|_| builder.input(&[-1])).collect();
    fill(&mut builder, sketch, inputs);
    builder
}

fn fill(builder: &mut Builder, sketch: &Sketch, mut values: Vec<ValueId>) {
    for (i, node) in sketch.nodes.iter().enumerate() {
        let name = format!("{i}");
        let of = |list: &[usize]| list.iter().map(|&i| values[i]).collect::<Vec<_>>();
        let made = match node {
            Node::List { op: 3, inputs } => {
                // A shape that is known, of inputs that may be open.
                let inputs: Vec<(ValueId, &[i64])> = of(inputs).into_iter().map(|value| (value, &[-1][..])).collect();
                builder.node(&name, &inputs, &[&[3]], true, |context, outputs| {
                    crate::build::write(outputs.only(), &compute(3, &crate::build::inputs(context)));
                    Ok(())
                })
            }
            Node::List { op, inputs } => {
                let op = *op;
                vec![builder.list(&of(inputs), move |x| compute(op, x))]
            }
            Node::Cond { selector, branches, inputs } => {
                let [otherwise, then] = branches.each_ref().map(|branch| build(branch, "branch").graph);
                let odd = builder.number(&[values[*selector]], |x| x[0].len() as i32 % 2);
                let node = builder.graph.add_cond(&name, odd, &then, &otherwise, &of(inputs)).unwrap();
                (0..2).map(|output| node.output(output)).collect()
            }
            Node::While { body, inputs } => {
                let inputs = of(inputs);
                let (mut variables, mut graphs) = (inputs.clone(), [Builder::new("condition"), Builder::new("body")]);
                variables.push(builder.number(&[inputs[0]], |x| x[0].len().min(4) as i32));
                for (graph, is_body) in graphs.iter_mut().zip([false, true]) {
                    let lists: Vec<ValueId> = inputs.iter().map(|_| graph.input(&[-1])).collect();
                    let left = graph.input(&[1]);
                    if is_body {
                        fill(graph, body, lists);
                        let left = graph.number(&[left], |x| x[0][0] - 1);
                        graph.output(left);
                    } else {
                        let goes_on = graph.number(&[left], |x| i32::from(x[0][0] > 0));
                        graph.output(goes_on);
                    }
                }
                let [condition, body] = graphs;
                let node = builder.graph.add_while(&name, &condition.graph, &body.graph, &variables, &[], 1).unwrap();
                (0..inputs.len()).map(|output| node.output(output)).collect()
            }
            Node::Program { inner, inputs } => {
                let program = build(inner, "inner").compile();
                let node = builder.graph.add_program(&name, &program, &of(inputs), inner.outputs.len()).unwrap();
                (0..inner.outputs.len()).map(|output| node.output(output)).collect()
            }
        };
        values.extend(made);
    }
    sketch.outputs.iter().for_each(|&i| builder.output(values[i]));
}

#[test]
fn random_graphs_of_lists_are_what_an_interpreter_says() {
    // One for every hundred of the oracle's.
    let oracle: Option<u64> = std::env::var("WEIR_ORACLE_GRAPHS").ok().and_then(|n| n.parse().ok());
    let graphs = oracle.map_or(150, |n| n.div_ceil(100));
    let pools = all_pools();
    let mut compiled = 0;
    for seed in 1..=graphs {
        let mut random = Random(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(seed));
        let sketch = sketch(&mut random, 2, 3, 3);
        let builder = build(&sketch, "main");
        let program = match builder.try_compile() {
            Ok(program) => program,
            Err(error) => panic!("seed {seed}: {}\n{sketch:#?}", error.message()),
        };
        compiled += 1;
        for (i, pool) in pools.iter().enumerate() {
            for round in 0..3 {
                let inputs: Vec<Vec<i32>> = (0..2)
                    .map(|_| (0..random.below(if round == 1 { 2 } else { 20 }) as i32).map(|v| v * 5 % 13).collect())
                    .collect();
                let expected = interpret(&sketch, &inputs);
                let got = lists(&program, &inputs, pool.as_ref()).unwrap_or_else(|error| {
                    panic!("seed {seed}, pool {i}: {}\n{sketch:#?}", error.message());
                });
                assert_eq!(got, expected, "seed {seed}, pool {i}, inputs {inputs:?}\n{sketch:#?}");
            }
        }
    }
    assert!(compiled > 0);
}
