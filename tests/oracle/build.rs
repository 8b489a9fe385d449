//! From a spec to a program of the library, through the public interface.
//!
//! Control flow can be built in three ways: out of the library's own nodes (`regions`); the same, but with a program of
//! its own as the one node of each graph inside (`programs`); or as kernels that run other programs (`nested`), which
//! is slow and strict. The last two know no dead values, but say the same.

pub mod nested;
pub mod programs;
pub mod regions;

use super::later::{self, Deferred};
use super::leaves::{Duty, Leaf, desc, tensor};
use super::probe::Board;
use super::random::Random;
use super::spec::{Graph, Kind, Manner, Node, Spec, Value};
use std::sync::Arc;
use weir_core::base::{Ref, Result};
use weir_core::engine::{BoundKernel, Engine, KernelOptions};
use weir_core::graph::{self, CompileOptions, NodeId, Program, ValueId};
use weir_core::kernel::{Kernel, Task};

/// How control flow is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering {
    Nested,
    Programs,
    Regions,
}

impl Lowering {
    pub const ALL: &[Lowering] = &[Lowering::Nested, Lowering::Programs, Lowering::Regions];
}

pub struct Builder<'a> {
    pub engine: &'a Ref<Engine>,
    pub board: &'a Arc<Board>,
    pub lowering: Lowering,
    pub hop_ns: Option<u64>,
    pub partial_runs: usize,
    /// Draws the order in which nodes are added.
    pub seed: u64,
}

/// Compiles the spec. Its leaves write on the board.
pub fn build(spec: &Spec, engine: &Ref<Engine>, board: &Arc<Board>, lowering: Lowering) -> Result<Ref<Program>> {
    let builder =
        Builder { engine, board, lowering, hop_ns: spec.hop_ns, partial_runs: partial_runs(spec), seed: spec.seed };
    let graph = builder.graph("random", &spec.graph)?;
    Program::compile(&graph, vec![Ref::clone(engine)], &builder.options(spec.allow_absent))
}

/// How many parts of a program may be compiled: where there are lists, as it takes its time.
pub fn partial_runs(spec: &Spec) -> usize {
    if spec.has_lists() { 2 } else { 0 }
}

impl Builder<'_> {
    #[allow(clippy::needless_update, reason = "there may be more options than these")]
    pub fn options(&self, allow_absent: bool) -> CompileOptions {
        CompileOptions {
            hop_ns: self.hop_ns,
            allow_absent,
            partial_runs: self.partial_runs,
            blocking_pool: Some(later::blocking_pool()),
            ..CompileOptions::default()
        }
    }

    pub fn graph(&self, name: &str, spec: &Graph) -> Result<graph::Graph> {
        let mut graph = graph::Graph::new(name);
        let mut inputs = Vec::new();
        for (i, &kind) in spec.inputs.iter().enumerate() {
            inputs.push(graph.add_input(&format!("input{i}"), desc(kind))?);
        }
        let mut known: Vec<Option<Added>> = spec.nodes.iter().map(|_| None).collect();
        for place in self.order(spec) {
            let node = &spec.nodes[place];
            let values: Vec<ValueId> = node.inputs.iter().map(|&value| look_up(value, &inputs, &known)).collect();
            known[place] = Some(self.node(&mut graph, spec, node, &values)?);
        }
        // Control edges last: they may lead from nodes added later to nodes added before.
        for (place, node) in spec.nodes.iter().enumerate() {
            for &before in &node.after {
                let nodes = (&known[before], &known[place]);
                let (Some(before), Some(after)) = nodes else { unreachable!("all nodes were added") };
                if let (Some(before), Some(after)) = (before.node, after.node) {
                    graph.add_control_edge(before, after)?;
                }
            }
        }
        for (i, &value) in spec.outputs.iter().enumerate() {
            graph.add_output(&format!("output{i}"), look_up(value, &inputs, &known))?;
        }
        Ok(graph)
    }

    /// Places of the nodes in an order in which each comes after its data; not that of the spec.
    fn order(&self, spec: &Graph) -> Vec<usize> {
        let mut random = Random::new(self.seed ^ spec.nodes.len() as u64);
        let mut users = vec![Vec::new(); spec.nodes.len()];
        let mut waiting = vec![0; spec.nodes.len()];
        for (place, node) in spec.nodes.iter().enumerate() {
            for value in &node.inputs {
                if let Value::Node(n, _) = value {
                    users[*n].push(place);
                    waiting[place] += 1;
                }
            }
        }
        let mut ready: Vec<usize> = (0..spec.nodes.len()).filter(|&place| waiting[place] == 0).collect();
        let mut order = Vec::new();
        while !ready.is_empty() {
            let place = ready.swap_remove(random.below(ready.len()));
            order.push(place);
            for &user in &users[place] {
                waiting[user] -= 1;
                if waiting[user] == 0 {
                    ready.push(user);
                }
            }
        }
        order
    }

    fn node(&self, graph: &mut graph::Graph, spec: &Graph, node: &Node, values: &[ValueId]) -> Result<Added> {
        let name = node.name();
        let id = match &node.kind {
            Kind::Constant(data) => {
                let add = |(o, data)| graph.add_constant(&format!("{name}.{o}"), tensor(self.engine, data));
                let outputs = data.iter().enumerate().map(add).collect::<Result<_>>()?;
                return Ok(Added { node: None, outputs });
            }
            Kind::Leaf { op, effort, manner, in_place, cost_ns } => {
                let leaf = Arc::new(Leaf {
                    id: node.id,
                    op: *op,
                    effort: *effort,
                    in_place: *in_place,
                    cost_ns: *cost_ns,
                    inputs: node.inputs.iter().map(|&value| spec.type_of(value)).collect(),
                    outputs: node.outputs.clone(),
                    board: Arc::clone(self.board),
                });
                match manner {
                    // A kernel that runs programs waits for them, and must not wait in a worker for what completes
                    // later.
                    Manner::Now => self.kernel(graph, &name, leaf, values)?,
                    _ if self.lowering == Lowering::Nested => self.kernel(graph, &name, leaf, values)?,
                    &manner => self.kernel(graph, &name, Arc::new(Deferred { leaf, manner }), values)?,
                }
            }
            Kind::Task => {
                let duty = Duty { id: node.id, board: Arc::clone(self.board) };
                graph.add_task(&name, Arc::new(duty) as Arc<dyn Task>, 0)?
            }
            Kind::Cond { .. } | Kind::Case { .. } | Kind::While { .. } | Kind::Switch | Kind::Merge => {
                match self.lowering {
                    Lowering::Nested => self.add_nested(graph, spec, node, values)?,
                    Lowering::Programs | Lowering::Regions => self.add_region(graph, node, values)?,
                }
            }
        };
        Ok(Added { node: Some(id), outputs: (0..node.outputs.len()).map(|o| id.output(o)).collect() })
    }

    pub fn kernel(
        &self,
        graph: &mut graph::Graph,
        name: &str,
        kernel: Arc<dyn Kernel>,
        values: &[ValueId],
    ) -> Result<NodeId> {
        let outputs = kernel.num_outputs();
        let kernel = BoundKernel::create(Ref::clone(self.engine), kernel, &KernelOptions::default()).unwrap();
        graph.add_kernel(name, kernel, values, outputs)
    }
}

/// Waits for a node, so that it is not left out although nobody uses its outputs.
struct Keep;

impl Task for Keep {
    fn run(&self) -> Result<()> {
        Ok(())
    }
}

/// What became of a node of a spec.
struct Added {
    /// None: constants, which nothing can wait for.
    node: Option<NodeId>,
    outputs: Vec<ValueId>,
}

fn look_up(value: Value, inputs: &[ValueId], known: &[Option<Added>]) -> ValueId {
    match value {
        Value::Input(i) => inputs[i],
        Value::Node(n, o) => known[n].as_ref().expect("nodes are added after their data").outputs[o],
    }
}
