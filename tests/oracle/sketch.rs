//! Specs by hand.

use super::spec::{Data, Effort, Graph, Kind, Manner, Node, Op, Spec, Type, Value};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A graph in the making.
#[derive(Default)]
pub struct Sketch {
    graph: Graph,
}

/// A node of it: its place in the graph, and the id by which it is counted.
#[derive(Clone, Copy)]
pub struct Drawn {
    pub place: usize,
    pub id: usize,
}

impl Drawn {
    pub fn out(self, output: usize) -> Value {
        Value::Node(self.place, output)
    }
}

pub fn input(i: usize) -> Value {
    Value::Input(i)
}

impl Sketch {
    pub fn of(inputs: &[Type]) -> Sketch {
        Sketch { graph: Graph { inputs: inputs.to_vec(), ..Graph::default() } }
    }

    pub fn add(&mut self, kind: Kind, inputs: &[Value], outputs: &[Type]) -> Drawn {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let id = NEXT.fetch_add(1, Relaxed);
        let node = Node { id, kind, inputs: inputs.to_vec(), after: vec![], outputs: outputs.to_vec() };
        self.graph.nodes.push(node);
        Drawn { place: self.graph.nodes.len() - 1, id }
    }

    pub fn leaf(&mut self, op: Op, inputs: &[Value], output: Type) -> Drawn {
        let kind = Kind::Leaf { op, effort: Effort::Plain, manner: Manner::Now, in_place: false, cost_ns: 0 };
        self.add(kind, inputs, &[output])
    }

    pub fn sum(&mut self, inputs: &[Value]) -> Drawn {
        self.leaf(Op::Sum, inputs, Type::Int)
    }

    pub fn constant(&mut self, kind: Type, value: i32) -> Value {
        let data = Data::new(kind, &vec![value; kind.len()]);
        self.add(Kind::Constant(vec![data]), &[], &[kind]).out(0)
    }

    pub fn task(&mut self) -> Drawn {
        self.add(Kind::Task, &[], &[])
    }

    /// A kernel that gives nothing.
    pub fn effect(&mut self, inputs: &[Value]) -> Drawn {
        let kind = Kind::Leaf { op: Op::Sum, effort: Effort::Plain, manner: Manner::Now, in_place: false, cost_ns: 0 };
        self.add(kind, inputs, &[])
    }

    pub fn switch(&mut self, value: Value, predicate: Value) -> Drawn {
        let kind = self.graph.type_of(value);
        self.add(Kind::Switch, &[value, predicate], &[kind, kind])
    }

    pub fn merge(&mut self, inputs: &[Value]) -> Drawn {
        let kind = self.graph.type_of(inputs[0]);
        self.add(Kind::Merge, inputs, &[kind, Type::Int])
    }

    pub fn cond(&mut self, then: Graph, otherwise: Graph, inputs: &[Value]) -> Drawn {
        let outputs = types(&then);
        self.add(Kind::Cond { then, otherwise }, inputs, &outputs)
    }

    pub fn case(&mut self, branches: Vec<Graph>, inputs: &[Value]) -> Drawn {
        let outputs = types(&branches[0]);
        self.add(Kind::Case { branches }, inputs, &outputs)
    }

    pub fn looping(&mut self, condition: Graph, body: Graph, inputs: &[Value], parallel_iterations: u32) -> Drawn {
        let outputs = types(&body);
        self.add(Kind::While { condition, body, parallel_iterations }, inputs, &outputs)
    }

    pub fn wait(&mut self, after: Drawn, before: Drawn) {
        self.graph.nodes[after.place].after.push(before.place);
    }

    pub fn gives(mut self, outputs: &[Value]) -> Graph {
        self.graph.outputs = outputs.to_vec();
        self.graph
    }
}

fn types(graph: &Graph) -> Vec<Type> {
    graph.outputs.iter().map(|&value| graph.type_of(value)).collect()
}

/// The spec of a graph, with these sets of inputs, one number each.
pub fn spec(graph: Graph, sets: &[&[i32]]) -> Spec {
    let mut num_ids = 0;
    graph.visit(&mut |_, node| num_ids = num_ids.max(node.id + 1));
    let data = |(&value, &kind): (&i32, &Type)| Data::new(kind, &vec![value; kind.len()]);
    let inputs = sets.iter().map(|set| set.iter().zip(&graph.inputs).map(data).collect()).collect();
    Spec { seed: 0, graph, inputs, hop_ns: Some(0), allow_absent: true, num_ids }
}
