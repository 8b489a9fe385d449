//! Laying one graph out behind what is there already, and the graphs inside of it where they belong.
#![forbid(unsafe_code)]

mod control;
mod late;
mod merge;
mod overlap;

use super::entries::Waits;
use super::flat::{ArrivalSource, Flat, FlatKernel, StorageKind, Val};
use crate::base::{Desc, Error, Result};
use crate::graph::build::contents::{Contents, Node, NodeBody, Value};
use crate::graph::build::verify::{Kinds, Verified};
use crate::graph::compile::fold;
use crate::graph::plan::copy_node::{CopyKernel, CopyOpen};
use crate::graph::plan::schedule;
use crate::graph::plan::{Body, Edge, NO_BIT, Switch};
use crate::kernel::Kernel;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// A graph that was laid out.
pub(super) struct LaidGraph {
    pub outputs: Vec<Val>,
    pub nodes: Range<u32>,
    pub args: Range<u32>,
    /// Nodes without predecessors in here, and the edges to those that wait for late values as well.
    pub roots: Vec<u32>,
    pub guards: Vec<Edge>,
    /// Nodes without successors in here that make no output.
    pub dangling: Vec<ArrivalSource>,
    /// Values that only branches use which may not run, outputs too.
    pub loose: Vec<ArrivalSource>,
}

/// The use that the graph around it has for a graph's output.
#[derive(Clone, Copy)]
pub(super) enum WantedPlace {
    Nothing,
    /// Wherever it is.
    Value,
    /// In this storage.
    In(u32),
}

/// Where a graph lies.
pub(super) struct GraphScope {
    /// Of the names of its nodes: "outer/inner".
    prefix: String,
    /// Whether it is the body of a loop whose iterations overlap: what waits for nothing in it waits for the condition.
    is_guarded: bool,
    /// How many copies of it there are.
    copies: usize,
    /// Whether it lies in no other one: nobody waits for the whole of it.
    is_outermost: bool,
}

impl GraphScope {
    pub fn top() -> GraphScope {
        GraphScope { prefix: String::new(), is_guarded: false, copies: 1, is_outermost: true }
    }

    /// Adds the condition to what a node waits for, if nothing else says that it is true.
    fn guard(&self, sources: &mut Vec<ArrivalSource>) {
        let is_node = |source: &ArrivalSource| matches!(source, ArrivalSource::Node(_) | ArrivalSource::OneOf(_));
        if self.is_guarded && !sources.iter().any(is_node) {
            sources.push(ArrivalSource::Guard);
        }
    }

    /// Whether it lies in a loop whose iterations overlap, however deep. The sources of its values may be promised
    /// there, so nothing begins without some of them.
    fn is_copied(&self) -> bool {
        self.copies > 1
    }

    fn inside(&self, name: &str) -> GraphScope {
        GraphScope {
            prefix: format!("{}{name}/", self.prefix),
            is_guarded: false,
            copies: self.copies,
            is_outermost: false,
        }
    }
}

struct GraphLayout<'a> {
    flat: &'a mut Flat,
    graph: &'a Contents,
    verified: &'a Verified,
    scope: &'a GraphScope,
    /// The first node of this graph.
    first: u32,
    costs: Vec<u64>,
    /// The body of each task that is live.
    tasks: Vec<Body>,
    /// Where each node's values begin in the next two.
    first_value: Vec<u32>,
    values: Vec<Val>,
    /// Whether a live node or a wanted output uses a value.
    used: Vec<bool>,
    /// The arrival that says that a node is done.
    done: Vec<ArrivalSource>,
    /// Nodes that somebody waits for, whatever is chosen; and of those, which values.
    awaited: Vec<bool>,
    awaited_values: Vec<bool>,
    /// Values that branches and merges begin without.
    late: Vec<Value>,
    /// Ends of branches that nobody waits for.
    open_ends: Vec<ArrivalSource>,
    /// Nodes that others wait for without data.
    followed: Vec<bool>,
    /// Where a value must be written.
    bound: HashMap<Value, u32>,
    roots: Vec<u32>,
    guards: Vec<Edge>,
    /// The predecessors of the node at hand.
    sources: Vec<ArrivalSource>,
}

/// Lays a graph out. `inputs` are the values of its inputs.
pub(super) fn lay(
    flat: &mut Flat,
    graph: &Contents,
    verified: &Verified,
    inputs: &[Val],
    want: &[WantedPlace],
    scope: &GraphScope,
) -> Result<LaidGraph> {
    let (first, first_arg) = (flat.bodies.len() as u32, flat.args.len() as u32);
    let wanted: Vec<bool> = want.iter().map(|want| !matches!(want, WantedPlace::Nothing)).collect();
    let live = schedule::live(graph, verified, &wanted);
    let costs = schedule::costs(graph, verified, &live);
    let order = schedule::order(graph, verified, &live, &costs);
    flat.facts.dead_nodes += live.iter().filter(|live| !**live).count();
    let n = graph.nodes.len();
    let mut first_value = Vec::with_capacity(n);
    let num_values = graph.nodes.iter().fold(0, |sum, node| {
        first_value.push(sum);
        sum + node.num_outputs() as u32
    });
    let nothing = Val { storage: 0, source: ArrivalSource::Nobody, bit: NO_BIT };
    let tasks = flat.take_tasks(graph, &live);
    flat.reserve(order.len(), verified.kinds.has(Kinds::KERNEL));
    let mut work = GraphLayout {
        flat,
        graph,
        verified,
        scope,
        first,
        costs,
        tasks,
        first_value,
        values: vec![nothing; num_values as usize],
        used: vec![false; num_values as usize],
        done: vec![ArrivalSource::Nobody; n],
        awaited: vec![false; n],
        awaited_values: vec![false; num_values as usize],
        late: Vec::new(),
        open_ends: Vec::new(),
        followed: vec![false; n],
        bound: HashMap::new(),
        roots: Vec::new(),
        guards: Vec::new(),
        sources: Vec::new(),
    };
    work.look_ahead(&live, &wanted);
    for (index, input) in graph.inputs().zip(inputs) {
        work.set((index, 0), *input);
    }
    work.bind_outputs(want);
    for &index in &order {
        work.add(index as usize)?;
    }
    let outputs = work.outputs(want)?;
    let dangling = if scope.is_outermost { Vec::new() } else { work.dangling(&order, want) };
    let loose = work.loose(&|_| false);
    let (roots, guards) = (std::mem::take(&mut work.roots), std::mem::take(&mut work.guards));
    let end = work.flat.bodies.len() as u32;
    let args = first_arg..work.flat.args.len() as u32;
    Ok(LaidGraph { outputs, nodes: first..end, args, roots, guards, dangling, loose })
}

impl GraphLayout<'_> {
    fn at(&self, (node, output): Value) -> usize {
        self.first_value[node] as usize + output
    }

    fn value(&self, value: Value) -> Val {
        self.values[self.at(value)]
    }

    fn set(&mut self, value: Value, val: Val) {
        let at = self.at(value);
        self.values[at] = val;
    }

    fn look_ahead(&mut self, live: &[bool], wanted: &[bool]) {
        let graph = self.graph;
        // Only conds ask who is followed.
        let kinds = self.verified.kinds;
        let nodes = if kinds.is_tasks() { &[] } else { &graph.nodes[..] };
        for (_, node) in nodes.iter().enumerate().filter(|(index, _)| live[*index]) {
            for value in node.inputs() {
                let at = self.at(*value);
                self.used[at] = true;
            }
            node.after.iter().for_each(|&before| self.followed[before] = true);
        }
        for ((_, value), _) in graph.outputs.iter().zip(wanted).filter(|(_, wanted)| **wanted) {
            let at = self.at(*value);
            self.used[at] = true;
        }
    }

    /// An output that a node of this graph computes is written where it is wanted, once; others are copied there.
    fn bind_outputs(&mut self, want: &[WantedPlace]) {
        for ((_, value), want) in self.graph.outputs.iter().zip(want) {
            let computed = !matches!(
                self.graph.nodes[value.0].body,
                NodeBody::Input(_) | NodeBody::Constant(_) | NodeBody::Switch { .. }
            );
            if let (WantedPlace::In(storage), true) = (want, computed) {
                self.bound.entry(*value).or_insert(*storage);
            }
        }
    }

    fn add(&mut self, index: usize) -> Result<()> {
        let (graph, verified) = (self.graph, self.verified);
        let node = &graph.nodes[index];
        match &node.body {
            NodeBody::Input(_) => Ok(()),
            NodeBody::Constant(tensor) => {
                let constant = self.flat.constants.len();
                self.flat.constants.push(tensor.clone());
                let storage = self.flat.storage(tensor.desc(), StorageKind::Constant(constant))?;
                self.set((index, 0), Val { storage, source: ArrivalSource::Nobody, bit: NO_BIT });
                Ok(())
            }
            NodeBody::Task { .. } => {
                let id = self.push(self.tasks[index], index);
                self.arrive(id, node);
                self.skip_bit(id, index);
                self.done[index] = ArrivalSource::Node(id);
                Ok(())
            }
            NodeBody::Kernel { kernel, .. } => self.add_kernel(index, kernel.kernel(), &verified.descs[index]),
            NodeBody::Switch { inputs } => self.add_switch(index, inputs),
            NodeBody::Merge { inputs } => self.add_merge(index, inputs),
            NodeBody::Case { branches, is_cond, .. } => self.add_case(index, branches, *is_cond),
            NodeBody::While { num_variables, parallel_iterations, .. } => {
                self.add_while(index, *num_variables, *parallel_iterations)
            }
            NodeBody::Cyclic { .. } => Err(Error::internal(format!("node '{}' was not raised", node.name))),
        }
    }

    fn push(&mut self, body: Body, index: usize) -> u32 {
        let name = &self.graph.nodes[index].name;
        let cost = match body {
            Body::Call(..) | Body::Task(_) | Body::Kernel(_) | Body::Async(_) => self.costs[index],
            _ => 0,
        };
        self.flat.push(body, &[&self.scope.prefix, name], cost)
    }

    /// Makes a flat node wait for what a node of the graph waits for.
    fn arrive(&mut self, id: u32, node: &Node) {
        let mut sources = std::mem::take(&mut self.sources);
        sources.clear();
        self.add_sources(node.inputs(), node, &mut sources);
        self.wait_for(id, &mut sources);
        self.sources = sources;
    }

    /// The same, and for other sources.
    fn arrive_behind(&mut self, id: u32, node: &Node, mut sources: Vec<ArrivalSource>) {
        sources.extend(self.sources(node.inputs(), node));
        self.wait_for(id, &mut sources);
    }

    /// The arrivals that say that these values are there, and that a node's predecessors without data are done.
    fn sources(&mut self, values: &[Value], node: &Node) -> Vec<ArrivalSource> {
        let mut sources = Vec::with_capacity(values.len() + node.after.len());
        self.add_sources(values, node, &mut sources);
        sources
    }

    fn add_sources(&mut self, values: &[Value], node: &Node, sources: &mut Vec<ArrivalSource>) {
        for &value in values {
            let at = self.at(value);
            (self.awaited[value.0], self.awaited_values[at]) = (true, true);
            sources.push(self.value(value).source);
        }
        for &before in &node.after {
            self.awaited[before] = true;
            sources.push(self.done[before]);
        }
    }

    fn wait_for(&mut self, id: u32, sources: &mut Vec<ArrivalSource>) {
        self.scope.guard(sources);
        match self.flat.wait_inside(id, sources, self.first) {
            Waits::Release => self.roots.push(id),
            Waits::Guard(guard) => self.guards.push(guard),
            Waits::Sources => {}
        }
    }

    /// The bit of a node that can be skipped.
    fn skip_bit(&mut self, id: u32, index: usize) -> u32 {
        if !self.verified.presences.may_be_skipped(index) {
            return NO_BIT;
        }
        let node = &self.graph.nodes[index];
        let mut needs: Vec<u32> = node.after.iter().map(|&before| self.node_bit(before)).collect();
        if !matches!(node.body, NodeBody::Merge { .. }) {
            needs.extend(node.inputs().iter().map(|value| self.value(*value).bit));
        }
        needs.sort_unstable();
        needs.dedup();
        self.flat.may_be_skipped(id, &needs)
    }

    /// The bit that says that a predecessor without data was skipped.
    fn node_bit(&self, index: usize) -> u32 {
        match self.done[index] {
            ArrivalSource::Node(id) => self.flat.absence.own.get(id as usize).copied().unwrap_or(NO_BIT),
            ArrivalSource::OneOf(list) => {
                // The node that speaks for a cond or a loop when none of its parts runs is the last of the list.
                let last = self.flat.alternatives[list as usize].last();
                last.and_then(|id| self.flat.absence.own.get(*id as usize)).copied().unwrap_or(NO_BIT)
            }
            ArrivalSource::Nobody | ArrivalSource::Carried(_) | ArrivalSource::Guard => NO_BIT,
        }
    }

    fn add_kernel(&mut self, index: usize, kernel: &Arc<dyn Kernel>, descs: &[Desc]) -> Result<()> {
        let node = &self.graph.nodes[index];
        let resolved = kernel.resolve().map_err(|error| error.within(format_args!("node '{}'", node.name)))?;
        let kernel = resolved.as_ref().unwrap_or(kernel);
        let prepared = self.prepared(node, kernel)?;
        let kernel = prepared.as_ref().unwrap_or(kernel);
        let number = self.flat.kernels.len() as u32;
        let body = if kernel.is_async() || kernel.may_block() || kernel.launcher().is_some() {
            Body::Async(self.flat.calls.len() as u32)
        } else {
            Body::Kernel(number)
        };
        let id = self.push(body, index);
        if let Body::Async(_) = body {
            self.flat.calls.push((number, id));
        }
        self.arrive(id, node);
        let bit = self.skip_bit(id, index);
        let args = self.flat.args.len() as u32;
        for value in node.inputs() {
            let storage = self.value(*value).storage;
            self.flat.arg(self.verified.desc(*value), storage)?;
        }
        for (output, desc) in descs.iter().enumerate() {
            let storage = self.storage_of((index, output), desc)?;
            self.flat.arg(desc, storage)?;
            self.set((index, output), Val { storage, source: ArrivalSource::Node(id), bit });
        }
        self.done[index] = ArrivalSource::Node(id);
        let number_of_kernel = self.flat.kernel(kernel)?;
        self.flat.kernels.push(FlatKernel {
            kernel: number_of_kernel,
            args,
            num_inputs: node.inputs().len() as u16,
            num_outputs: descs.len() as u16,
            node: id,
            forwarding: self.graph.forwarding_of(index, descs.len()),
        });
        Ok(())
    }

    /// The kernel with what it makes of constants.
    fn prepared(&mut self, node: &Node, kernel: &Arc<dyn Kernel>) -> Result<Option<Arc<dyn Kernel>>> {
        let constant = |value: &Value| match &self.graph.nodes[value.0].body {
            NodeBody::Constant(tensor) => Some(fold::elements(tensor)),
            _ => None,
        };
        let constants: Vec<_> = node.inputs().iter().map(constant).collect();
        if constants.iter().all(Option::is_none) {
            return Ok(None);
        }
        let descs: Vec<Desc> = node.inputs().iter().map(|value| *self.verified.desc(*value)).collect();
        let prepared = kernel.prepared(&descs, &constants, &mut self.flat.prepared);
        prepared.map_err(|error| error.within(format_args!("node '{}'", node.name)))
    }

    /// Where a value is written: where it is wanted, else in a storage of its own.
    fn storage_of(&mut self, value: Value, desc: &Desc) -> Result<u32> {
        match self.bound.get(&value) {
            Some(&storage) => Ok(storage),
            None => self.flat.storage(desc, StorageKind::Arena),
        }
    }

    fn add_switch(&mut self, index: usize, [value, predicate]: &[Value; 2]) -> Result<()> {
        let id = self.push(Body::Switch(self.flat.switches.len() as u32), index);
        self.arrive(id, &self.graph.nodes[index]);
        self.skip_bit(id, index);
        let sides = [self.flat.bit(), self.flat.bit()];
        let (passed, decides) = (self.value(*value), self.value(*predicate));
        let predicate = self.flat.arg(self.verified.desc(*predicate), decides.storage)?;
        self.flat.switches.push(Switch { predicate, sides });
        for (output, bit) in sides.into_iter().enumerate() {
            self.set((index, output), Val { storage: passed.storage, source: ArrivalSource::Node(id), bit });
        }
        self.done[index] = ArrivalSource::Node(id);
        Ok(())
    }

    /// The outputs as they were wanted.
    fn outputs(&mut self, want: &[WantedPlace]) -> Result<Vec<Val>> {
        let mut outputs = Vec::with_capacity(want.len());
        let nothing = Val { storage: 0, source: ArrivalSource::Nobody, bit: NO_BIT };
        let mut written: HashSet<u32> = HashSet::new();
        for ((name, value), want) in self.graph.outputs.iter().zip(want) {
            let have = match want {
                WantedPlace::Nothing => nothing,
                _ => self.value(*value),
            };
            outputs.push(match *want {
                WantedPlace::In(storage) if have.storage != storage || written.contains(&storage) => {
                    self.add_copy(name, *value, have, storage)?
                }
                WantedPlace::In(storage) => {
                    written.insert(storage);
                    have
                }
                _ => have,
            });
        }
        Ok(outputs)
    }

    fn add_copy(&mut self, output: &str, value: Value, from: Val, storage: u32) -> Result<Val> {
        self.add_copy_of(&format!("copy to output '{output}'"), value, from, storage)
    }

    /// A node that copies a value.
    fn add_copy_of(&mut self, name: &str, value: Value, from: Val, storage: u32) -> Result<Val> {
        let desc = *self.verified.desc(value);
        let name = format!("{}{name}", self.scope.prefix);
        let number = self.flat.kernels.len() as u32;
        let id = self.flat.push(Body::Kernel(number), &[&name], CopyKernel.cost_ns(&[desc], &[desc]));
        let at = self.at(value);
        (self.awaited[value.0], self.awaited_values[at]) = (true, true);
        self.wait_for(id, &mut vec![from.source]);
        let bit = if from.bit == NO_BIT { NO_BIT } else { self.flat.may_be_skipped(id, &[from.bit]) };
        let args = self.flat.arg(&desc, from.storage)?;
        self.flat.arg(&desc, storage)?;
        let kernel: Arc<dyn Kernel> = if desc.is_concrete() { Arc::new(CopyKernel) } else { Arc::new(CopyOpen) };
        let kernel = self.flat.kernel(&kernel)?;
        self.flat.kernels.push(FlatKernel {
            kernel,
            args,
            num_inputs: 1,
            num_outputs: 1,
            node: id,
            forwarding: Vec::new(),
        });
        self.flat.facts.copies += 1;
        Ok(Val { storage, source: ArrivalSource::Node(id), bit })
    }

    fn dangling(&self, order: &[u32], want: &[WantedPlace]) -> Vec<ArrivalSource> {
        let mut is_output = vec![false; self.graph.nodes.len()];
        for ((_, value), want) in self.graph.outputs.iter().zip(want) {
            is_output[value.0] |= !matches!(want, WantedPlace::Nothing);
        }
        let leads_nowhere = |&index: &usize| {
            // A cond's outputs are used, or it has ends.
            let is_case = matches!(self.graph.nodes[index].body, NodeBody::Case { .. });
            !self.awaited[index] && !is_output[index] && !is_case
        };
        let nodes = order.iter().map(|&index| index as usize).filter(leads_nowhere).map(|index| self.done[index]);
        let outputs = self.graph.outputs.iter().zip(want).filter(|(_, want)| !matches!(want, WantedPlace::Nothing));
        let outputs: HashSet<Value> = outputs.map(|((_, value), _)| *value).collect();
        let loose = self.loose(&|value| outputs.contains(&value));
        nodes
            .chain(self.open_ends.iter().copied())
            .chain(loose)
            .filter(|source| *source != ArrivalSource::Nobody)
            .collect()
    }

    /// The late values of this graph's nodes that nobody waits for, but for those that something else sees to.
    fn loose(&self, seen_to: &dyn Fn(Value) -> bool) -> Vec<ArrivalSource> {
        let is_loose = |value: &Value| {
            let is_awaited = match self.graph.nodes[value.0].body {
                NodeBody::Input(_) | NodeBody::Constant(_) => true,
                // Its outputs come one by one, but before its end.
                NodeBody::Case { .. } => self.awaited_values[self.at(*value)] || self.followed[value.0],
                _ => self.awaited[value.0],
            };
            !is_awaited && !seen_to(*value)
        };
        self.late.iter().filter(|value| is_loose(value)).map(|value| self.value(*value).source).collect()
    }
}
