//! The graphs that the executor benches run: the same shapes and names as in the figures of bench/RESULTS.md.

#![allow(dead_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_core::base::{Ref, Result};
use weir_core::device::DeviceKind;
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Graph, NodeId, Program};
use weir_core::kernel::Task;

/// The work of a node: a counter, or a counter and some time.
pub type Body = fn(&AtomicU64);

/// One increment, as cheap as a body can be.
pub fn empty(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

/// About half a microsecond of arithmetic that no compiler removes.
pub fn half_microsecond(counter: &AtomicU64) {
    spin(counter, SPINS);
}

/// The same for about a microsecond.
pub fn microsecond(counter: &AtomicU64) {
    spin(counter, 2 * SPINS);
}

fn spin(counter: &AtomicU64, times: u32) {
    let mut x = counter.load(Relaxed) | 1;
    for _ in 0..times {
        x = std::hint::black_box(x).wrapping_mul(6364136223846793005).wrapping_add(1);
    }
    counter.store(x, Relaxed);
}

const SPINS: u32 = 420;

/// A node with a counter of its own, through a function pointer.
pub struct Node {
    pub body: Body,
    pub counter: AtomicU64,
}

impl Task for Node {
    fn run(&self) -> Result<()> {
        (self.body)(&self.counter);
        Ok(())
    }
}

/// A graph as edges (from, to), nodes numbered so that every edge goes up.
pub struct Shape {
    pub name: &'static str,
    pub nodes: usize,
    pub edges: Vec<(usize, usize)>,
}

/// A small generator with a fixed seed (splitmix64, Steele, Lea and Flood 2014), so that every run has the same graphs.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// 1 to n.
    pub fn up_to(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize + 1
    }
}

/// 8192 nodes in a row.
pub fn chain() -> Shape {
    let nodes = 8192;
    Shape { name: "chain", nodes, edges: (1..nodes).map(|i| (i - 1, i)).collect() }
}

/// A source, 8192 nodes, a sink.
pub fn wide() -> Shape {
    side_by_side("wide", 8192)
}

/// A source, so many nodes, a sink.
pub fn side_by_side(name: &'static str, middle: usize) -> Shape {
    let edges = (1..=middle).flat_map(|i| [(0, i), (i, middle + 1)]).collect();
    Shape { name, nodes: middle + 2, edges }
}

/// A binary tree of 8191 nodes, from the root down.
pub fn fanout() -> Shape {
    let nodes = 8191;
    Shape { name: "fanout", nodes, edges: (1..nodes).map(|i| ((i - 1) / 2, i)).collect() }
}

/// The same tree, from the leaves up.
pub fn tree() -> Shape {
    let nodes = 8191;
    let flip = |i: usize| nodes - 1 - i;
    Shape { name: "tree", nodes, edges: (1..nodes).rev().map(|i| (flip(i), flip((i - 1) / 2))).collect() }
}

/// TensorFlow's BM_executor(width, depth): per level a random number of the ready nodes, in random order, are
/// joined into one, which fans out to a random number of new ones.
pub fn bm_executor(name: &'static str, width: usize, depth: usize) -> Shape {
    let mut random = Random::new(1729);
    let mut nodes = random.up_to(width);
    let mut ready: Vec<usize> = (0..nodes).collect();
    let mut edges = Vec::new();
    for _ in 0..depth {
        for i in (1..ready.len()).rev() {
            ready.swap(i, random.up_to(i + 1) - 1);
        }
        let joined = random.up_to(ready.len());
        let join = nodes;
        nodes += 1;
        edges.extend(ready.drain(..joined).map(|from| (from, join)));
        for _ in 0..random.up_to(width) {
            edges.push((join, nodes));
            ready.push(nodes);
            nodes += 1;
        }
    }
    Shape { name, nodes, edges }
}

/// A shape as a compiled program, and its nodes.
pub struct Built {
    pub program: Ref<Program>,
    pub nodes: Vec<Arc<Node>>,
}

pub fn build(shape: &Shape, body: Body) -> Built {
    let (graph, nodes) = graph(shape, body);
    Built { program: compile(&graph), nodes }
}

pub fn compile(graph: &Graph) -> Ref<Program> {
    let engine = Engine::create(DeviceKind::CPU, 0, None).unwrap();
    Program::compile(graph, vec![engine], &CompileOptions::default()).unwrap()
}

/// A shape as a graph, and its nodes.
pub fn graph(shape: &Shape, body: Body) -> (Graph, Vec<Arc<Node>>) {
    let mut graph = Graph::new(shape.name);
    let nodes: Vec<Arc<Node>> = (0..shape.nodes).map(|_| Arc::new(Node { body, counter: AtomicU64::new(0) })).collect();
    let ids: Vec<NodeId> = nodes
        .iter()
        .enumerate()
        .map(|(i, node)| graph.add_task(&format!("n{i}"), Arc::clone(node) as Arc<dyn Task>, 0).unwrap())
        .collect();
    for &(from, to) in &shape.edges {
        graph.add_control_edge(ids[from], ids[to]).unwrap();
    }
    (graph, nodes)
}

/// The floor: the same bodies in a loop over pointers.
pub fn serial(nodes: &[Arc<Node>]) {
    for node in nodes {
        let task: &dyn Task = &**node;
        let _ = task.run();
    }
}
