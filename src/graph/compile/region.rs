//! Laying one graph out behind what is there already, and the graphs inside of it where they belong.

use super::flat::{Flat, FlatKernel, Source, StorageKind, Val};
use super::schedule;
use crate::base::{Desc, Result};
use crate::graph::builder::{Body, Contents, Node, Value};
use crate::graph::copy::Copy;
use crate::graph::layout::{Body as FlatBody, Branch, Loop, Merge, MergeInput, NO_BIT, Release, Select, Switch};
use crate::graph::options::Forwarding;
use crate::graph::verify::Verified;
use crate::kernel::Kernel;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// A graph that was laid out.
pub(super) struct Region {
    pub outputs: Vec<Val>,
    pub nodes: Range<u32>,
    pub args: Range<u32>,
    /// What waits for nothing in here.
    pub roots: Vec<u32>,
    /// What nobody waits for in here, and is no output.
    pub dangling: Vec<Source>,
}

/// What the graph around it wants of a graph's output.
#[derive(Clone, Copy)]
pub(super) enum Want {
    Nothing,
    /// Wherever it is.
    Value,
    /// In this storage.
    In(u32),
}

/// Names of the nodes that compile adds or that are inside of others: "outer/inner".
pub(super) struct Scope {
    prefix: String,
}

impl Scope {
    pub fn top() -> Scope {
        Scope { prefix: String::new() }
    }

    fn inside(&self, name: &str) -> Scope {
        Scope { prefix: format!("{}{name}/", self.prefix) }
    }
}

struct Work<'a> {
    flat: &'a mut Flat,
    graph: &'a Contents,
    verified: &'a Verified,
    scope: &'a Scope,
    costs: Vec<u64>,
    /// Where each node's values begin in the next two.
    first_value: Vec<u32>,
    values: Vec<Val>,
    /// Whether a live node or a wanted output uses a value.
    used: Vec<bool>,
    /// Whose arrival says that a node is done.
    done: Vec<Source>,
    /// Nodes that somebody waits for.
    awaited: Vec<bool>,
    /// Ends of branches that nobody waits for.
    open_ends: Vec<Source>,
    /// Nodes that others wait for without data.
    followed: Vec<bool>,
    /// Where a value must be written.
    bound: HashMap<Value, u32>,
    roots: Vec<u32>,
}

/// Lays a graph out. `inputs` are the values of its inputs.
pub(super) fn lay(
    flat: &mut Flat,
    graph: &Contents,
    verified: &Verified,
    inputs: &[Val],
    want: &[Want],
    scope: &Scope,
) -> Result<Region> {
    let (first, first_arg) = (flat.bodies.len() as u32, flat.args.len() as u32);
    let wanted: Vec<bool> = want.iter().map(|want| !matches!(want, Want::Nothing)).collect();
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
    let nothing = Val { storage: 0, source: Source::Nobody, bit: NO_BIT };
    let mut work = Work {
        flat,
        graph,
        verified,
        scope,
        costs,
        first_value,
        values: vec![nothing; num_values as usize],
        used: vec![false; num_values as usize],
        done: vec![Source::Nobody; n],
        awaited: vec![false; n],
        open_ends: Vec::new(),
        followed: vec![false; n],
        bound: HashMap::new(),
        roots: Vec::new(),
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
    let dangling = work.dangling(&order, want);
    let roots = std::mem::take(&mut work.roots);
    let end = work.flat.bodies.len() as u32;
    let args = first_arg..work.flat.args.len() as u32;
    Ok(Region { outputs, nodes: first..end, args, roots, dangling })
}

impl Work<'_> {
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
        for (_, node) in graph.nodes.iter().enumerate().filter(|(index, _)| live[*index]) {
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
    fn bind_outputs(&mut self, want: &[Want]) {
        for ((_, value), want) in self.graph.outputs.iter().zip(want) {
            let computed =
                !matches!(self.graph.nodes[value.0].body, Body::Input(_) | Body::Constant(_) | Body::Switch { .. });
            if let (Want::In(storage), true) = (want, computed) {
                self.bound.entry(*value).or_insert(*storage);
            }
        }
    }

    fn add(&mut self, index: usize) -> Result<()> {
        let (graph, verified) = (self.graph, self.verified);
        let node = &graph.nodes[index];
        match &node.body {
            Body::Input(_) => Ok(()),
            Body::Constant(tensor) => {
                let constant = self.flat.constants.len();
                self.flat.constants.push(tensor.clone());
                let storage = self.flat.storage(tensor.desc(), StorageKind::Constant(constant))?;
                self.set((index, 0), Val { storage, source: Source::Nobody, bit: NO_BIT });
                Ok(())
            }
            Body::Task { task, .. } => {
                let number = self.flat.tasks.len() as u32;
                self.flat.tasks.push(Arc::clone(task));
                let body = task.call().map_or(FlatBody::Task(number), |call| FlatBody::Call(number, call));
                let id = self.push(body, index);
                self.arrive(id, node);
                self.skip_bit(id, index);
                self.done[index] = Source::Node(id);
                Ok(())
            }
            Body::Kernel { kernel, .. } => self.add_kernel(index, kernel.kernel(), &verified.descs[index]),
            Body::Switch { inputs } => self.add_switch(index, inputs),
            Body::Merge { inputs } => self.add_merge(index, inputs),
            Body::Case { branches, is_cond, .. } => self.add_case(index, branches, *is_cond),
            Body::While { condition, body, num_variables, .. } => {
                self.add_while(index, condition, body, *num_variables)
            }
        }
    }

    fn push(&mut self, body: FlatBody, index: usize) -> u32 {
        let name = &self.graph.nodes[index].name;
        let cost = match body {
            FlatBody::Call(..) | FlatBody::Task(_) | FlatBody::Kernel(_) | FlatBody::Async(_) => self.costs[index],
            _ => 0,
        };
        self.flat.push(body, &[&self.scope.prefix, name], cost)
    }

    /// Makes a flat node wait for what a node of the graph waits for.
    fn arrive(&mut self, id: u32, node: &Node) {
        let mut sources = Vec::with_capacity(node.inputs().len() + node.after.len());
        for value in node.inputs() {
            self.awaited[value.0] = true;
            sources.push(self.value(*value).source);
        }
        for &before in &node.after {
            self.awaited[before] = true;
            sources.push(self.done[before]);
        }
        if !self.flat.wait_for(id, &mut sources) {
            self.roots.push(id);
        }
    }

    /// The bit of a node that can be skipped.
    fn skip_bit(&mut self, id: u32, index: usize) -> u32 {
        if !self.verified.presences.may_be_skipped(index) {
            return NO_BIT;
        }
        let node = &self.graph.nodes[index];
        let mut needs: Vec<u32> = node.after.iter().map(|&before| self.node_bit(before)).collect();
        if !matches!(node.body, Body::Merge { .. }) {
            needs.extend(node.inputs().iter().map(|value| self.value(*value).bit));
        }
        needs.sort_unstable();
        needs.dedup();
        self.flat.may_be_skipped(id, &needs)
    }

    /// What says that a node that is waited for without data was skipped.
    fn node_bit(&self, index: usize) -> u32 {
        match self.done[index] {
            Source::Node(id) => self.flat.absence.own.get(id as usize).copied().unwrap_or(NO_BIT),
            Source::OneOf(list) => {
                // The node that speaks for a cond or a loop when none of its parts runs is the last of the list.
                let last = self.flat.alternatives[list as usize].last();
                last.and_then(|id| self.flat.absence.own.get(*id as usize)).copied().unwrap_or(NO_BIT)
            }
            Source::Nobody => NO_BIT,
        }
    }

    fn add_kernel(&mut self, index: usize, kernel: &Arc<dyn Kernel>, descs: &[Desc]) -> Result<()> {
        let node = &self.graph.nodes[index];
        let number = self.flat.kernels.len() as u32;
        let body = if kernel.is_async() || kernel.may_block() {
            FlatBody::Async(self.flat.calls.len() as u32)
        } else {
            FlatBody::Kernel(number)
        };
        let id = self.push(body, index);
        if let FlatBody::Async(_) = body {
            self.flat.calls.push((number, id));
        }
        self.arrive(id, node);
        let bit = self.skip_bit(id, index);
        let args = self.flat.args.len() as u32;
        for value in node.inputs() {
            let storage = self.value(*value).storage;
            self.flat.arg(*self.verified.desc(*value), storage);
        }
        for (output, desc) in descs.iter().enumerate() {
            let storage = self.storage_of((index, output), desc)?;
            self.flat.arg(*desc, storage);
            self.set((index, output), Val { storage, source: Source::Node(id), bit });
        }
        self.done[index] = Source::Node(id);
        self.flat.kernels.push(FlatKernel {
            kernel: Arc::clone(kernel),
            args,
            num_inputs: node.inputs().len() as u16,
            num_outputs: descs.len() as u16,
            node: id,
            forwarding: self.forwarding(index, descs.len()),
        });
        Ok(())
    }

    fn forwarding(&self, index: usize, num_outputs: usize) -> Vec<(u16, Forwarding)> {
        let said = &self.graph.forwarding;
        let outputs = if said.is_empty() { 0 } else { num_outputs };
        (0..outputs).filter_map(|output| Some((output as u16, *said.get(&(index, output))?))).collect()
    }

    /// Where a value is written: where it is wanted, else in a storage of its own.
    fn storage_of(&mut self, value: Value, desc: &Desc) -> Result<u32> {
        match self.bound.get(&value) {
            Some(&storage) => Ok(storage),
            None => self.flat.storage(desc, StorageKind::Arena),
        }
    }

    fn add_switch(&mut self, index: usize, [value, predicate]: &[Value; 2]) -> Result<()> {
        let id = self.push(FlatBody::Switch(self.flat.switches.len() as u32), index);
        self.arrive(id, &self.graph.nodes[index]);
        self.skip_bit(id, index);
        let sides = [self.flat.bit(), self.flat.bit()];
        let (passed, decides) = (self.value(*value), self.value(*predicate));
        let predicate = self.flat.arg(*self.verified.desc(*predicate), decides.storage);
        self.flat.switches.push(Switch { predicate, sides });
        for (output, bit) in sides.into_iter().enumerate() {
            self.set((index, output), Val { storage: passed.storage, source: Source::Node(id), bit });
        }
        self.done[index] = Source::Node(id);
        Ok(())
    }

    fn add_merge(&mut self, index: usize, inputs: &[Value]) -> Result<()> {
        let id = self.push(FlatBody::Merge(self.flat.merges.len() as u32), index);
        self.arrive(id, &self.graph.nodes[index]);
        let bit = self.skip_bit(id, index);
        let desc = *self.verified.desc((index, 0));
        let mut from = Vec::with_capacity(inputs.len());
        for value in inputs {
            let input = self.value(*value);
            let made_by = match input.source {
                Source::Nobody => NO_BIT,
                Source::Node(node) => node,
                Source::OneOf(list) => self.flat.alternatives[list as usize].last().copied().unwrap_or(NO_BIT),
            };
            from.push(MergeInput { view: self.flat.arg(desc, input.storage), bit: input.bit, from: made_by });
        }
        let mut views = [0; 2];
        for output in 0..2 {
            let desc = *self.verified.desc((index, output));
            let storage = self.storage_of((index, output), &desc)?;
            views[output] = self.flat.arg(desc, storage);
            self.set((index, output), Val { storage, source: Source::Node(id), bit });
        }
        self.flat.merges.push(Merge { inputs: from, value: views[0], index: views[1] });
        self.done[index] = Source::Node(id);
        Ok(())
    }

    fn add_case(&mut self, index: usize, branches: &[Arc<Contents>], is_cond: bool) -> Result<()> {
        let node = &self.graph.nodes[index];
        let number = self.flat.selects.len();
        let id = self.push(FlatBody::Select(number as u32), index);
        self.arrive(id, node);
        let bit = self.skip_bit(id, index);
        let selector = node.inputs()[0];
        let selector = self.flat.arg(*self.verified.desc(selector), self.value(selector).storage);
        self.flat.selects.push(Select { selector, branches: Vec::new(), end: 0, uncounted: 0, is_cond });

        let inputs: Vec<Val> = node.inputs()[1..].iter().map(|value| self.value(*value).from_outside()).collect();
        let mut want = Vec::new();
        for (output, desc) in self.verified.descs[index].iter().enumerate() {
            let value = (index, output);
            let is_used = self.used[self.at(value)];
            want.push(if is_used { Want::In(self.storage_of(value, desc)?) } else { Want::Nothing });
        }
        let mut regions = Vec::with_capacity(branches.len());
        for (i, (graph, verified)) in branches.iter().zip(&self.verified.inner[&index]).enumerate() {
            let name = match (is_cond, i) {
                (true, 0) => format!("{}/else", node.name),
                (true, _) => format!("{}/then", node.name),
                (false, i) => format!("{}/{i}", node.name),
            };
            let scope = self.scope.inside(&name);
            regions.push(lay(self.flat, graph, verified, &inputs, &want, &scope)?);
        }
        let ends = self.add_ends(index, &regions, want.iter().all(|want| matches!(want, Want::Nothing)));
        let mut laid = Vec::with_capacity(regions.len());
        for (i, region) in regions.iter().enumerate() {
            let mut first = region.roots.clone();
            if let Some(ends) = &ends {
                first.extend(ends[i].1.then_some(ends[i].0));
            }
            laid.push(Branch {
                nodes: region.nodes.clone(),
                release: self.flat.release(&first),
                args: region.args.clone(),
                bound: 0..0,
            });
        }
        let end = self.flat.bodies.len() as u32;
        let select = &mut self.flat.selects[number];
        (select.branches, select.end) = (laid, end);

        for (output, want) in want.iter().enumerate() {
            let Want::In(storage) = *want else { continue };
            let sources: Vec<Source> = regions.iter().map(|region| region.outputs[output].source).collect();
            let source = self.flat.one_of(&sources, &[id]);
            self.set((index, output), Val { storage, source, bit });
        }
        let done = match &ends {
            Some(ends) => {
                let ends: Vec<Source> = ends.iter().map(|end| Source::Node(end.0)).collect();
                self.flat.one_of(&ends, &[id])
            }
            None => self.flat.one_of(&[], &[id]),
        };
        self.done[index] = done;
        if ends.is_some() && !self.followed[index] {
            self.open_ends.push(done);
        }
        Ok(())
    }

    /// A node behind each branch, if something waits for the whole of it, or would be waited for by nobody. With each: whether it
    /// waits for nothing but the choice.
    fn add_ends(&mut self, index: usize, regions: &[Region], has_no_outputs: bool) -> Option<Vec<(u32, bool)>> {
        let followed = self.followed[index];
        if !followed && !has_no_outputs && regions.iter().all(|region| region.dangling.is_empty()) {
            return None;
        }
        let mut ends = Vec::with_capacity(regions.len());
        for region in regions {
            let id = self.push(FlatBody::End, index);
            let mut sources = region.dangling.clone();
            if followed {
                sources.extend(region.outputs.iter().map(|output| output.source));
            }
            let waits = self.flat.wait_for(id, &mut sources);
            ends.push((id, !waits));
        }
        Some(ends)
    }

    fn add_while(&mut self, index: usize, condition: &Contents, body: &Contents, num_variables: usize) -> Result<()> {
        let node = &self.graph.nodes[index];
        let number = self.flat.loops.len();
        let enter = self.push(FlatBody::Enter(number as u32), index);
        self.arrive(enter, node);
        let bit = self.skip_bit(enter, index);
        self.flat.loops.push(Loop {
            enter: Vec::new(),
            next: Vec::new(),
            predicate: 0,
            condition: 0..0,
            body: 0..0,
            release_condition: Release::default(),
            release_body: Release::default(),
            first: enter,
            end: 0,
            uncounted: 0,
            stop: 0,
            iterations: AtomicU32::new(8),
        });
        let mut inputs: Vec<Val> = node.inputs().iter().map(|value| self.value(*value).from_outside()).collect();
        let mut first_values = Vec::with_capacity(num_variables);
        for (i, input) in inputs.iter_mut().enumerate().take(num_variables) {
            let desc = *self.verified.desc(node.inputs()[i]);
            let storage = self.storage_of((index, i), &desc)?;
            first_values.push((self.flat.arg(desc, input.storage), self.flat.arg(desc, storage)));
            input.storage = storage;
        }
        let [inner_condition, inner_body] = &self.verified.inner[&index][..] else {
            unreachable!("a loop has two graphs")
        };

        let scope = self.scope.inside(&format!("{}/condition", node.name));
        let tested = lay(self.flat, condition, inner_condition, &inputs, &[Want::Value], &scope)?;
        let test = self.push(FlatBody::Test(number as u32), index);
        let mut sources = tested.dangling.clone();
        sources.push(tested.outputs[0].source);
        let waits = self.flat.wait_for(test, &mut sources);
        let mut roots = tested.roots.clone();
        roots.extend((!waits).then_some(test));
        let release_condition = self.flat.release(&roots);
        let predicate = self.flat.arg(*inner_condition.desc(condition.outputs[0].1), tested.outputs[0].storage);

        let (want, next_values) = self.next_values(body, &inputs, num_variables)?;
        let scope = self.scope.inside(&format!("{}/body", node.name));
        let run = lay(self.flat, body, inner_body, &inputs, &want, &scope)?;
        let next = self.push(FlatBody::Next(number as u32), index);
        let mut sources = run.dangling.clone();
        sources.extend(run.outputs.iter().map(|output| output.source));
        let waits = self.flat.wait_for(next, &mut sources);
        let mut roots = run.roots.clone();
        roots.extend((!waits).then_some(next));
        let release_body = self.flat.release(&roots);

        let stop = self.flat.release(&[test]).first;
        let end = self.flat.bodies.len() as u32;
        let looped = &mut self.flat.loops[number];
        looped.stop = stop;
        looped.enter = first_values;
        looped.next = next_values;
        looped.predicate = predicate;
        (looped.condition, looped.body) = (tested.nodes, run.nodes);
        (looped.release_condition, looped.release_body) = (release_condition, release_body);
        looped.end = end;

        let source = self.flat.one_of(&[Source::Node(test)], &[enter]);
        for (i, input) in inputs.iter().enumerate().take(num_variables) {
            self.set((index, i), Val { storage: input.storage, source, bit });
        }
        self.done[index] = source;
        Ok(())
    }

    /// Where the body writes the variables' next values, and which must be copied behind it. A variable that the body
    /// gives back unchanged stays where it is. One that nothing in the body reads, or only the kernel that computes its next
    /// value and can do so in place, is written at once.
    fn next_values(
        &mut self,
        body: &Contents,
        inputs: &[Val],
        num_variables: usize,
    ) -> Result<(Vec<Want>, Vec<(u32, u32)>)> {
        let ports: Vec<usize> = body.inputs().collect();
        let mut readers: HashMap<usize, Vec<usize>> = HashMap::new();
        for (reader, node) in body.nodes.iter().enumerate() {
            node.inputs().iter().for_each(|value| readers.entry(value.0).or_default().push(reader));
        }
        let outputs = |of: usize| body.outputs.iter().filter(move |(_, value)| value.0 == of).count();
        let (mut want, mut copies) = (Vec::new(), Vec::new());
        for i in 0..num_variables {
            let (port, (maker, output)) = (ports[i], body.outputs[i].1);
            let Body::Input(desc) = &body.nodes[port].body else { unreachable!("ports are inputs") };
            if maker == port {
                want.push(Want::Nothing);
                continue;
            }
            let none = Vec::new();
            let read_by = readers.get(&port).unwrap_or(&none);
            let in_place = match &body.nodes[maker].body {
                Body::Kernel { kernel, inputs: maker_inputs, .. } => {
                    let only_reader = read_by.iter().all(|&reader| reader == maker) && kernel.kernel().in_place();
                    let may = match body.forwarding.get(&(maker, output)) {
                        None | Some(Forwarding::ByLastUse) => output == 0,
                        Some(Forwarding::Never) => false,
                        Some(Forwarding::Reserved(input)) => maker_inputs[usize::from(*input)] == (port, 0),
                    };
                    (read_by.is_empty() || only_reader && may) && outputs(port) == 0 && outputs(maker) == 1
                }
                _ => false,
            };
            if in_place {
                self.flat.facts.in_place += 1;
                want.push(Want::In(inputs[i].storage));
                continue;
            }
            let storage = self.flat.storage(desc, StorageKind::Arena)?;
            want.push(Want::In(storage));
            copies.push((self.flat.arg(*desc, storage), self.flat.arg(*desc, inputs[i].storage)));
        }
        Ok((want, copies))
    }

    /// The outputs as they were wanted.
    fn outputs(&mut self, want: &[Want]) -> Result<Vec<Val>> {
        let mut outputs = Vec::with_capacity(want.len());
        let nothing = Val { storage: 0, source: Source::Nobody, bit: NO_BIT };
        let mut written: Vec<u32> = Vec::new();
        for ((name, value), want) in self.graph.outputs.iter().zip(want) {
            let have = match want {
                Want::Nothing => nothing,
                _ => self.value(*value),
            };
            outputs.push(match *want {
                Want::In(storage) if have.storage != storage || written.contains(&storage) => {
                    self.add_copy(name, *value, have, storage)?
                }
                Want::In(storage) => {
                    written.push(storage);
                    have
                }
                _ => have,
            });
        }
        Ok(outputs)
    }

    fn add_copy(&mut self, output: &str, value: Value, from: Val, storage: u32) -> Result<Val> {
        let desc = *self.verified.desc(value);
        let name = format!("{}copy to output '{output}'", self.scope.prefix);
        let number = self.flat.kernels.len() as u32;
        let id = self.flat.push(FlatBody::Kernel(number), &[&name], Copy.cost_ns(&[desc], &[desc]));
        self.awaited[value.0] = true;
        if !self.flat.wait_for(id, &mut vec![from.source]) {
            self.roots.push(id);
        }
        let bit = if from.bit == NO_BIT { NO_BIT } else { self.flat.may_be_skipped(id, &[from.bit]) };
        let args = self.flat.arg(desc, from.storage);
        self.flat.arg(desc, storage);
        let kernel: Arc<dyn Kernel> = Arc::new(Copy);
        self.flat.kernels.push(FlatKernel {
            kernel,
            args,
            num_inputs: 1,
            num_outputs: 1,
            node: id,
            forwarding: Vec::new(),
        });
        self.flat.facts.copies += 1;
        Ok(Val { storage, source: Source::Node(id), bit })
    }

    fn dangling(&self, order: &[u32], want: &[Want]) -> Vec<Source> {
        let mut is_output = vec![false; self.graph.nodes.len()];
        for ((_, value), want) in self.graph.outputs.iter().zip(want) {
            is_output[value.0] |= !matches!(want, Want::Nothing);
        }
        let leads_nowhere = |&index: &usize| {
            // A cond's outputs are used, or it has ends.
            let is_case = matches!(self.graph.nodes[index].body, Body::Case { .. });
            !self.awaited[index] && !is_output[index] && !is_case
        };
        let nodes = order.iter().map(|&index| index as usize).filter(leads_nowhere).map(|index| self.done[index]);
        nodes.chain(self.open_ends.iter().copied()).filter(|source| *source != Source::Nobody).collect()
    }
}
