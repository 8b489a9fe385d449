//! Graphs as they are built: nodes and edges, and rules of what may be where.

use crate::abi::{Handle, Kind};
use crate::api::object::Object;
use crate::operation::Operation;
use crate::space::{self, Owner};
use crate::status::{Code, Result};
use crate::world::World;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;

pub use crate::exec::{Body, Exec};

#[derive(Clone, Debug)]
pub enum Work {
    Operation(Operation),
    /// A graph of the node's own.
    Child(Handle),
    /// What an executable graph was as it was launched in a capture.
    Launched(Arc<Body>),
    Record(Handle),
    Wait(Handle),
    Conditional(Conditional),
}

#[derive(Clone, Debug)]
pub struct Conditional {
    pub handle: u64,
    pub kind: Choice,
    /// Graphs of the node's own.
    pub bodies: Vec<Handle>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    If,
    While,
    Switch,
}

/// A conditional node of a launch.
#[derive(Debug)]
pub struct Condition {
    pub handle: u64,
    pub kind: Choice,
    pub bodies: Vec<Arc<Body>>,
    /// The task behind all bodies.
    pub join: OnceLock<u64>,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub handle: Handle,
    pub work: Work,
    pub after: Vec<Handle>,
}

#[derive(Debug, Default)]
pub struct Graph {
    /// In the order in which they were added.
    pub nodes: Vec<Node>,
    /// The graph that has it as a child or a body.
    pub parent: Option<Handle>,
    /// It is a body of a conditional node, or a child in one.
    pub is_body: bool,
    /// Of a body, and a child in one: the context that all its kernels are of.
    pub context: Option<Handle>,
    /// Conditional handles, those of bodies as well in the graph that has all these.
    pub handles: BTreeMap<u64, Setting>,
    /// What it keeps for the program.
    pub objects: Vec<Arc<Object>>,
}

/// What a conditional handle was made for.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The node is in this graph or in one inside of it.
    pub graph: Handle,
    pub context: Handle,
    /// At each launch.
    pub value: Option<u32>,
}

impl Work {
    /// CUgraphNodeType.
    pub fn kind(&self) -> i32 {
        match self {
            Work::Operation(Operation::Launch(_)) => 0,
            Work::Operation(Operation::Copy(_)) => 1,
            Work::Operation(Operation::Fill(_)) => 2,
            Work::Operation(Operation::Host(_)) => 3,
            Work::Child(_) | Work::Launched(_) => 4,
            Work::Operation(Operation::Allocate(_)) => 10,
            Work::Operation(Operation::Free(_)) => 11,
            Work::Operation(_) => 5,
            Work::Wait(_) => 6,
            Work::Record(_) => 7,
            Work::Conditional(_) => 13,
        }
    }

    pub fn name(&self) -> String {
        match self {
            Work::Operation(Operation::Launch(launch)) => format!("kernel {}", launch.function.name),
            Work::Operation(Operation::Copy(_)) => "copy".to_owned(),
            Work::Operation(Operation::Fill(_)) => "set".to_owned(),
            Work::Operation(Operation::Host(_)) => "host function".to_owned(),
            Work::Operation(_) => "empty".to_owned(),
            Work::Child(_) | Work::Launched(_) => "graph".to_owned(),
            Work::Record(event) => format!("record of {event:?}"),
            Work::Wait(event) => format!("wait for {event:?}"),
            Work::Conditional(conditional) => format!("{:?}", conditional.kind).to_lowercase(),
        }
    }

    /// What bodies of conditional nodes may hold.
    fn may_be_in_body(&self) -> bool {
        match self {
            Work::Operation(Operation::Copy(copy)) => [&copy.to, &copy.from]
                .iter()
                .all(|side| space::look(|space| !matches!(space.owner(side.address), Some(Owner::Pageable)))),
            Work::Operation(Operation::Launch(_) | Operation::Fill(_) | Operation::Nothing) => true,
            Work::Child(_) | Work::Conditional(_) => true,
            Work::Operation(_) | Work::Launched(_) | Work::Record(_) | Work::Wait(_) => false,
        }
    }
}

impl Graph {
    pub fn node(&self, node: Handle) -> Option<&Node> {
        self.nodes.iter().find(|other| other.handle == node)
    }

    /// Whether one node comes before another or is it.
    pub fn leads(&self, from: Handle, to: Handle) -> bool {
        from == to || self.node(to).is_some_and(|node| node.after.iter().any(|before| self.leads(from, *before)))
    }
}

impl World {
    pub fn graph(&mut self, graph: Handle) -> Result<&mut Graph> {
        self.graphs.get_mut(&graph).ok_or(Code::INVALID_HANDLE)
    }

    pub fn new_graph(&mut self, parent: Option<Handle>, is_body: bool) -> Handle {
        let graph = self.name(Kind::Graph);
        let context = parent.and_then(|parent| self.graphs.get(&parent)).and_then(|parent| parent.context);
        self.graphs.insert(graph, Graph { parent, is_body, context, ..Graph::default() });
        graph
    }

    pub fn add_node(&mut self, graph: Handle, after: &[Handle], work: Work) -> Result<Handle> {
        let found = self.graph(graph)?;
        if after.iter().any(|before| found.node(*before).is_none()) {
            return Err(Code::INVALID_VALUE);
        }
        if found.is_body && !work.may_be_in_body() {
            return Err(Code::INVALID_VALUE);
        }
        if let (Some(context), Work::Operation(Operation::Launch(launch))) = (found.context, &work)
            && launch.function.context != context
        {
            return Err(Code::INVALID_VALUE);
        }
        let mut after = after.to_vec();
        let count = after.len();
        after.sort();
        after.dedup();
        if after.len() != count {
            return Err(Code::INVALID_VALUE);
        }
        let handle = self.name(Kind::Node);
        self.graph(graph)?.nodes.push(Node { handle, work, after });
        Ok(handle)
    }

    /// The graph that a node is in.
    pub fn graph_of(&self, node: Handle) -> Result<Handle> {
        let found = self.graphs.iter().find(|(_, graph)| graph.node(node).is_some());
        found.map(|(graph, _)| *graph).ok_or(Code::INVALID_VALUE)
    }

    pub fn node(&mut self, node: Handle) -> Result<&mut Node> {
        let graph = self.graph_of(node)?;
        let nodes = &mut self.graph(graph)?.nodes;
        nodes.iter_mut().find(|other| other.handle == node).ok_or(Code::INVALID_VALUE)
    }

    fn has_conditional(&self, graph: Handle) -> bool {
        self.graphs.get(&graph).is_some_and(|graph| {
            graph.nodes.iter().any(|node| match &node.work {
                Work::Conditional(_) => true,
                Work::Child(child) => self.has_conditional(*child),
                _ => false,
            })
        })
    }

    /// A copy, as a child of `parent` or on its own; also gives which node became which.
    pub fn clone_graph(&mut self, graph: Handle, parent: Option<Handle>) -> Result<(Handle, BTreeMap<Handle, Handle>)> {
        if self.graph(graph)?.handles.is_empty() && !self.has_conditional(graph) {
            let is_body = parent.and_then(|parent| self.graphs.get(&parent)).is_some_and(|parent| parent.is_body);
            let found = self.graph(graph)?;
            let (nodes, objects) = (found.nodes.clone(), found.objects.clone());
            let copy = self.new_graph(parent, is_body);
            self.graph(copy)?.objects = objects;
            let mut became = BTreeMap::new();
            for node in nodes {
                let work = match node.work {
                    Work::Child(child) => Work::Child(self.clone_graph(child, Some(copy))?.0),
                    work => work,
                };
                let after: Vec<Handle> = node.after.iter().filter_map(|before| became.get(before).copied()).collect();
                let new = self.add_node(copy, &after, work);
                if new.is_err() {
                    self.destroy_graph(copy)?;
                }
                became.insert(node.handle, new?);
            }
            return Ok((copy, became));
        }
        Err(Code::NOT_SUPPORTED)
    }

    /// With the graphs that are its nodes' own.
    pub fn destroy_graph(&mut self, graph: Handle) -> Result {
        self.graphs.remove(&graph).ok_or(Code::INVALID_HANDLE)?;
        let own: Vec<Handle> =
            self.graphs.iter().filter(|(_, other)| other.parent == Some(graph)).map(|(own, _)| *own).collect();
        own.iter().try_for_each(|own| self.destroy_graph(*own))
    }

    /// Whether a graph is another one or inside of it.
    pub fn is_inside(&self, graph: Handle, of: Handle) -> bool {
        let parent = self.graphs.get(&graph).and_then(|graph| graph.parent);
        graph == of || parent.is_some_and(|parent| self.is_inside(parent, of))
    }

    /// The graph that has all these: a conditional handle is kept there.
    pub fn root(&self, graph: Handle) -> Handle {
        match self.graphs.get(&graph).and_then(|graph| graph.parent) {
            Some(parent) => self.root(parent),
            None => graph,
        }
    }
}

/// Graphs that a call is at work on, with its thread: no two may at the same time.
static USED: Mutex<Vec<(Handle, ThreadId)>> = Mutex::new(Vec::new());

/// A call is at work on a graph while this is there.
pub struct InUse(Handle);

impl InUse {
    pub fn new(graph: Handle) -> InUse {
        let me = std::thread::current().id();
        let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
        if used.iter().any(|(other, thread)| *other == graph && *thread != me) {
            crate::call::stop(&format!(
                "two threads use {graph:?} at the same time: a graph is for one thread at a time"
            ));
        }
        used.push((graph, me));
        drop(used);
        // Others come by now if they do at all.
        std::thread::yield_now();
        InUse(graph)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let me = std::thread::current().id();
        let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = used.iter().position(|(graph, thread)| *graph == self.0 && *thread == me) {
            used.swap_remove(index);
        }
    }
}
