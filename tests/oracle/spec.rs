//! A graph as plain data: what is built, what is interpreted, what is printed when the two disagree.
//!
//! The rules that the interpreter and the library must share:
//!
//! - A graph's nodes are listed in an order in which each comes after what it uses and waits for.
//! - A value may be *dead*: it has none. A node with a dead input is dead, and so is one that waits for a dead node: it
//!   does not run, and all its outputs are dead. Cond, case and while are nodes in this respect: nothing inside runs.
//! - A switch gives its value to output 0 if the predicate is zero, to output 1 if not; the other output is dead. The
//!   switch itself is not, so what waits for it runs.
//! - A merge takes its one live input; without any it is dead. Two live ones are an error of the run. What a merge
//!   waits for only holds it up: it may be dead.
//! - A node that waits for a cond, case or while waits for all that runs inside, and what waits for a node that is
//!   one begins nothing inside before.
//! - A case's index that is negative or too large means the last branch.

use std::fmt;

/// What a value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// s32[5]
    Five,
    /// s32[2,3]
    Six,
    /// bool[1]
    Bool,
    /// u8[], a scalar
    Byte,
    /// s8[1,1]
    Small,
    /// s32[1]
    Int,
    /// s32[?]: how many, only a run says.
    List,
}

impl Type {
    /// Those of a known shape.
    pub const ALL: [Type; 6] = [Type::Five, Type::Six, Type::Bool, Type::Byte, Type::Small, Type::Int];
    /// One in three is a list.
    pub const WITH_LISTS: [Type; 9] = {
        let [a, b, c, d, e, f] = Type::ALL;
        [a, b, c, d, e, f, Type::List, Type::List, Type::List]
    };
    /// Those that can decide something.
    pub const PREDICATES: [Type; 4] = [Type::Bool, Type::Byte, Type::Small, Type::Int];

    /// How many elements; of a list, how many a constant one has, so that all constant ones are alike.
    pub fn len(self) -> usize {
        match self {
            Type::Five => 5,
            Type::Six => 6,
            Type::Bool | Type::Byte | Type::Small | Type::Int => 1,
            Type::List => 3,
        }
    }

    pub fn is_predicate(self) -> bool {
        self.len() == 1
    }
}

/// A value's type and elements, each as an i32 whatever it is in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    pub kind: Type,
    pub items: Vec<i32>,
}

impl Data {
    pub fn new(kind: Type, items: &[i32]) -> Data {
        assert!(kind == Type::List || items.len() == kind.len());
        Data { kind, items: items.to_vec() }
    }

    /// What a leaf sees of it: of a list, how long it is, and then what is in it.
    pub fn seen(self) -> Vec<i32> {
        let mut seen = self.items;
        if self.kind == Type::List {
            seen.insert(0, seen.len() as i32);
        }
        seen
    }

    pub fn is_true(&self) -> bool {
        self.items[0] != 0
    }
}

/// A value of one graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The graph's own input.
    Input(usize),
    /// Node, by its place in the graph, and output.
    Node(usize, usize),
}

/// What a leaf computes; `ops` has the arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Anything to anything: every element of every input matters somewhere.
    Mix { salt: i32 },
    /// A trip count: 0 to `most`, from any inputs.
    Trips { salt: i32, most: i32 },
    /// Input 0 less one.
    Less,
    /// Whether input 0, a counter, is above 0; and with `early`, most times only, by what the others are.
    Again { salt: i32, early: bool },
    /// The sum of the inputs.
    Sum,
}

/// How a leaf goes about it; no effect on what comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Plain,
    /// In a region of its own on the pool.
    Region,
    /// Takes so many microseconds.
    Spin(u32),
}

/// When a leaf is done; no effect on what comes out either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// When its function returns.
    Now,
    /// As a kernel that completes later, and is done before its start returns.
    AtOnce,
    /// When another thread says so.
    Later,
    /// When the next leaf that is begun says so; another thread if none is.
    ByAnother,
    /// When its function returns, in the pool for kernels that may block.
    Blocking,
}

#[derive(Clone, Debug)]
pub enum Kind {
    /// One or several constants under one name, so that any node can be replaced by what it might have given.
    Constant(Vec<Data>),
    /// A kernel. Without outputs it is there for its effect.
    Leaf {
        op: Op,
        effort: Effort,
        manner: Manner,
        in_place: bool,
        /// The hint, in nanoseconds; 0 = none.
        cost_ns: u64,
    },
    /// Neither inputs nor outputs.
    Task,
    /// Inputs: the predicate, then the branches' inputs.
    Cond {
        then: Graph,
        otherwise: Graph,
    },
    /// Inputs: the index, then the branches' inputs.
    Case {
        branches: Vec<Graph>,
    },
    /// Inputs: the variables, then the invariants; as many variables as outputs.
    While {
        condition: Graph,
        body: Graph,
        parallel_iterations: u32,
    },
    /// Inputs: the value, the predicate.
    Switch,
    Merge,
}

#[derive(Clone, Debug)]
pub struct Node {
    /// Unique in the whole spec, subgraphs included.
    pub id: usize,
    pub kind: Kind,
    pub inputs: Vec<Value>,
    /// Nodes of the same graph that this one waits for, by place.
    pub after: Vec<usize>,
    pub outputs: Vec<Type>,
}

impl Node {
    pub fn name(&self) -> String {
        let word = match &self.kind {
            Kind::Constant(_) => "constant",
            Kind::Leaf { .. } => "kernel",
            Kind::Task => "task",
            Kind::Cond { .. } => "cond",
            Kind::Case { .. } => "case",
            Kind::While { .. } => "while",
            Kind::Switch => "switch",
            Kind::Merge => "merge",
        };
        format!("{word}{}", self.id)
    }

    /// Whether it has a body of its own, that is counted.
    pub fn is_leaf(&self) -> bool {
        matches!(self.kind, Kind::Leaf { .. } | Kind::Task)
    }

    /// The graphs inside, each with what it is for.
    pub fn graphs(&self) -> Vec<(&'static str, &Graph)> {
        match &self.kind {
            Kind::Cond { then, otherwise } => vec![("then", then), ("otherwise", otherwise)],
            Kind::Case { branches } => branches.iter().map(|branch| ("branch", branch)).collect(),
            Kind::While { condition, body, .. } => vec![("condition", condition), ("body", body)],
            Kind::Constant(_) | Kind::Leaf { .. } | Kind::Task | Kind::Switch | Kind::Merge => vec![],
        }
    }

    pub fn graphs_mut(&mut self) -> Vec<&mut Graph> {
        match &mut self.kind {
            Kind::Cond { then, otherwise } => vec![then, otherwise],
            Kind::Case { branches } => branches.iter_mut().collect(),
            Kind::While { condition, body, .. } => vec![condition, body],
            Kind::Constant(_) | Kind::Leaf { .. } | Kind::Task | Kind::Switch | Kind::Merge => vec![],
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub inputs: Vec<Type>,
    pub nodes: Vec<Node>,
    pub outputs: Vec<Value>,
}

impl Graph {
    pub fn type_of(&self, value: Value) -> Type {
        match value {
            Value::Input(i) => self.inputs[i],
            Value::Node(n, o) => self.nodes[n].outputs[o],
        }
    }

    /// Every node, those of subgraphs after the node that they are in.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Graph, &'a Node)) {
        for node in &self.nodes {
            see(self, node);
            node.graphs().iter().for_each(|(_, graph)| graph.visit(see));
        }
    }

    pub fn any(&self, test: impl Fn(&Node) -> bool) -> bool {
        let mut found = false;
        self.visit(&mut |_, node| found |= test(node));
        found
    }
}

#[derive(Clone, Debug)]
pub struct Spec {
    pub seed: u64,
    pub graph: Graph,
    /// Sets of inputs; each run takes one of them.
    pub inputs: Vec<Vec<Data>>,
    /// None: what the pool costs.
    pub hop_ns: Option<u64>,
    /// Whether some output may be dead.
    pub allow_absent: bool,
    /// One more than the largest id.
    pub num_ids: usize,
}

impl Spec {
    /// Whether some leaf is done later than its call.
    pub fn has_later(&self) -> bool {
        self.graph.any(|node| matches!(node.kind, Kind::Leaf { manner, .. } if manner != Manner::Now))
    }

    /// Whether some value has a shape that only a run knows.
    pub fn has_lists(&self) -> bool {
        let is_list = |kinds: &[Type]| kinds.contains(&Type::List);
        is_list(&self.graph.inputs) || self.graph.any(|node| is_list(&node.outputs))
    }

    pub fn leaves(&self) -> Vec<&Node> {
        let mut leaves = Vec::new();
        self.graph.visit(&mut |_, node| {
            if node.is_leaf() {
                leaves.push(node);
            }
        });
        leaves
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "seed {}, hop {:?} ns, allow absent: {}", self.seed, self.hop_ns, self.allow_absent)?;
        for (s, set) in self.inputs.iter().enumerate() {
            let set: Vec<String> = set.iter().map(|data| format!("{:?}{:?}", data.kind, data.items)).collect();
            writeln!(out, "inputs {s}: {}", set.join(" "))?;
        }
        write_graph(out, "graph", &self.graph, 0)
    }
}

fn write_graph(out: &mut fmt::Formatter<'_>, what: &str, graph: &Graph, depth: usize) -> fmt::Result {
    let indent = "  ".repeat(depth);
    let value = |value: &Value| match *value {
        Value::Input(i) => format!("in{i}"),
        Value::Node(n, o) => format!("{}.{o}", graph.nodes[n].name()),
    };
    let list = |values: &[Value]| values.iter().map(value).collect::<Vec<_>>().join(", ");
    writeln!(out, "{indent}{what} of {:?}", graph.inputs)?;
    for node in &graph.nodes {
        let how = match &node.kind {
            Kind::Constant(data) => data.iter().map(|data| format!(" {:?}", data.items)).collect(),
            Kind::Leaf { op, effort, manner, in_place, cost_ns } => {
                format!(" {op:?} {effort:?} {manner:?} in_place={in_place} cost={cost_ns}")
            }
            Kind::While { parallel_iterations, .. } => format!(" parallel_iterations={parallel_iterations}"),
            _ => String::new(),
        };
        let after: Vec<String> = node.after.iter().map(|&n| graph.nodes[n].name()).collect();
        let after = if after.is_empty() { String::new() } else { format!(" after {}", after.join(", ")) };
        writeln!(out, "{indent}  {}({}){how} -> {:?}{after}", node.name(), list(&node.inputs), node.outputs)?;
        for (what, inner) in node.graphs() {
            write_graph(out, what, inner, depth + 2)?;
        }
    }
    writeln!(out, "{indent}  gives {}", list(&graph.outputs))
}
