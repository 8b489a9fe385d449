//! Values of branches and loops that stay in an engine's memory: what a loop's body makes there for its next iteration,
//! what branches make there, and what either reads there from outside.
//!
//! A branch or a loop that the host's executor takes apart, and in which an engine does some of the work, gets three
//! kinds of neighbours, kernels of that engine's which compute nothing. All of them, and all the engine's work inside,
//! are on the engine's first stream, so the stream's order is the only one that is needed:
//!
//! ```text
//! Enter: first values -> places | condition, body: Port ... work ... Next: values -> the same places | Leave: places
//! ->
//! ```
//!
//! *Enter* waits for all that is read inside, and copies what has a place of its own there. A *Port* is a value from
//! outside as the graph inside sees it, and no work; a *Mark* is the same for readers that are not on the engine: its
//! event says that the value is there. *Next*, at the end of a body or of a branch, copies what was made to where the
//! next iteration, or the nodes behind, find it. *Leave* stands for what the node has made, and for its end.
//! The node itself no longer has these values: where it had one stands a number that nobody reads.
//!
//! *Nodes that may be skipped* read the host's copy of a value. Next waits for that copy, and not for its readers: a
//! node that waits for a skipped one is skipped too.
//!
//! *Iterations that overlap* have condition and body once for each slot, with places and events of their own. A
//! variable on the engine has one place for all slots, and the number that stands for it on the host says when it is
//! there. Next makes the number, and readers of the place in the next iteration take it too (`Neighbour::variables`).
#![forbid(unsafe_code)]

use super::neighbours::{Handed, HostReader, Neighbour, NeighbourPort, NeighbourRole, nobodys_desc};
use super::placer::Placer;
use crate::base::sort::sort_by_key;
use crate::base::{Desc, Result};
use crate::engine::{BoundKernel, KernelOptions};
use crate::graph::build::contents::{After, Contents, Node, NodeBody, Value};
use crate::graph::build::verify::Verified;
use crate::graph::compile::layout::overlap;
use std::sync::Arc;

/// An input of a node whose value is on an engine inside.
#[derive(Clone, Copy, Debug)]
struct KeptInput {
    input: usize,
    value: Value,
    desc: Desc,
    /// Enter copies it to a place of its own. Else it is read where it is outside.
    is_entered: bool,
    /// The host has it too, and what reads it there goes on doing so.
    is_split: bool,
}

/// An output of a node that is made on an engine.
#[derive(Clone, Copy, Debug)]
struct KeptOutput {
    output: usize,
    desc: Desc,
    place: usize,
}

/// The node that is looked at: a branch or a loop, and an engine that works inside of it.
#[derive(Clone, Copy)]
struct At {
    index: usize,
    engine: usize,
    /// How many variables a loop has; 0 = a branch.
    num_variables: usize,
    /// The first input that graphs inside have.
    first: usize,
}

impl Placer {
    /// Has values of branches and loops stay on engines.
    pub(in crate::graph) fn keep(&mut self, contents: &mut Contents, verified: &Verified) -> Result<()> {
        let is_there =
            |output: &usize| contents.homes.output(*output).is_some_and(|home| self.number_of(home).is_some());
        let homes: Vec<Value> =
            (0..contents.outputs.len()).filter(is_there).map(|output| contents.outputs[output].1).collect();
        self.keep_inside(contents, verified, &homes, 1)
    }

    /// `homes`: values that are outputs which runs have on engines. `copies`: how many there are of this graph.
    fn keep_inside(
        &mut self,
        contents: &mut Contents,
        verified: &Verified,
        homes: &[Value],
        copies: usize,
    ) -> Result<()> {
        for &index in &verified.order {
            let index = index as usize;
            let node = &contents.nodes[index];
            if !node.inner().any(|inner| self.has_work(inner)) {
                continue;
            }
            let inner = &verified.inner[&index];
            let (num_variables, first, slots) = match &node.body {
                NodeBody::While { condition, body, num_variables, parallel_iterations, .. } => {
                    let asked = *parallel_iterations;
                    let choice = overlap::choose(condition, body, inner, *num_variables, asked, copies);
                    (*num_variables, 0, choice.parallel as usize + 1)
                }
                _ => (0, 1, 0),
            };
            // A guard's values go by the host.
            let is_guard = verified.presences.may_be_skipped(index);
            for engine in 0..if is_guard { 0 } else { self.devices.len() } {
                if contents.nodes[index].inner().any(|inner| self.has_work_on(inner, engine)) {
                    self.keep_on(contents, verified, At { index, engine, num_variables, first }, homes)?;
                }
            }
            self.overlap(&mut contents.nodes[index], slots);
            let copies = copies * contents.nodes[index].num_slots();
            for (graph, verified) in contents.nodes[index].inner_mut().into_iter().zip(inner.iter().cycle()) {
                let mut changed = Contents::clone(graph);
                self.keep_inside(&mut changed, verified, &[], copies)?;
                *graph = Arc::new(changed);
            }
        }
        Ok(())
    }

    /// Has the iterations of a loop overlap where they wait for engines: by so many slots, of which each has graphs of
    /// its own.
    fn overlap(&self, node: &mut Node, slots: usize) {
        let NodeBody::While { condition, body, parallel_iterations, copies, .. } = &mut node.body else { return };
        let graphs = [&*condition, &*body];
        let constants = graphs.iter().map(|graph| constant_bytes(graph)).fold(0, usize::saturating_add);
        let fits = constants.saturating_mul(slots) <= MOST_CONSTANT_BYTES;
        let crosses = || graphs.iter().any(|graph| self.crosses(graph));
        if slots < 3 || !fits || !crosses() {
            *parallel_iterations = 1;
            return;
        }
        let copy = || [Arc::clone(condition), Arc::clone(body)];
        *copies = (1..slots).map(|_| copy()).collect();
    }

    /// Whether a value goes from the host to an engine, or back, each time that a graph is run.
    fn crosses(&self, contents: &Contents) -> bool {
        let place = |node: usize| self.device_of(&contents.nodes[node]);
        let is_constant = |node: usize| matches!(contents.nodes[node].body, NodeBody::Constant(_));
        contents.nodes.iter().any(|node| {
            let to = self.device_of(node);
            let mut inputs = node.inputs().iter().filter(|value| !is_constant(value.0));
            matches!(node.body, NodeBody::Kernel { .. }) && inputs.any(|value| place(value.0) != to)
                || node.inner().any(|inner| self.crosses(inner))
        })
    }

    fn has_work_on(&self, contents: &Contents, engine: usize) -> bool {
        let is_there =
            |node: &Node| matches!(node.body, NodeBody::Kernel { .. }) && self.device_of(node) == Some(engine);
        contents.nodes.iter().any(|node| is_there(node) || node.inner().any(|inner| self.has_work_on(inner, engine)))
    }

    fn keep_on(&mut self, contents: &mut Contents, verified: &Verified, at: At, homes: &[Value]) -> Result<()> {
        let At { index, engine, num_variables, first } = at;
        let (held, outputs) = self.what_is_kept(contents, verified, at, homes);
        let node = contents.nodes[index].clone();
        let mut ports: Vec<(KeptInput, NeighbourPort)> = Vec::with_capacity(held.len());
        for held in held {
            let port = match held.is_entered {
                true => NeighbourPort::Own(self.place_on(engine, &held.desc)?),
                false => NeighbourPort::Outer(held.value),
            };
            ports.push((held, port));
        }
        let own = |input: usize| {
            ports.iter().find_map(|(held, port)| match port {
                NeighbourPort::Own(place) if held.input == input => Some(*place),
                _ => None,
            })
        };
        let mut made = Vec::with_capacity(outputs.len());
        for (output, desc) in outputs {
            // A loop's value is where its next iteration, or nobody, reads it.
            let place = match own(output).filter(|_| num_variables > 0) {
                Some(place) => place,
                None => self.place_on(engine, &desc)?,
            };
            made.push(KeptOutput { output, desc, place });
        }
        if !ports.is_empty() {
            let name = format!("enter '{}'", node.name);
            // Those that are copied come first.
            sort_by_key(&mut ports, |(held, _)| !held.is_entered);
            let inputs = ports.iter().map(|(held, _)| held.value).collect();
            let entered = ports.iter().filter(|(held, _)| held.is_entered);
            let values = entered.map(|(held, port)| (held.desc, *port)).collect();
            let enter = self.neighbour(engine, &name, NeighbourRole::Enter, inputs, values, node.after.clone())?;
            let number = contents.nodes.len();
            contents.nodes.push(enter);
            contents.nodes[index].after.push(number);
        }
        let mut inner: Vec<Contents> = node.inner().map(|inner| Contents::clone(inner)).collect();
        let all_verified = verified.inner[&index].iter().cycle();
        for (number, (graph, verified)) in inner.iter_mut().zip(all_verified).enumerate() {
            let readers = self.open(graph, verified, at, &ports)?;
            if num_variables == 0 || number == 1 {
                self.hand_on(graph, at, &made, readers)?;
            }
        }
        // Nobody on the host reads these any more.
        let nobodys = contents.nodes.len();
        contents.nodes.push(self.nobodys()?);
        for (held, _) in ports.iter().filter(|(held, _)| !held.is_split) {
            contents.nodes[index].inputs_mut()[held.input] = (nobodys, 0);
            for graph in &mut inner {
                let input = graph.inputs().nth(held.input - first);
                input.into_iter().for_each(|input| graph.nodes[input].body = NodeBody::Input(nobodys_desc()));
            }
        }
        for (graph, changed) in contents.nodes[index].inner_mut().into_iter().zip(inner) {
            *graph = Arc::new(changed);
        }
        // Values that are read inside are read until here.
        let read = ports.iter().filter(|(held, _)| !held.is_entered).map(|(held, _)| held.value).collect();
        let values = made.iter().map(|made| (made.desc, NeighbourPort::Own(made.place))).collect();
        let name = format!("leave '{}'", node.name);
        let leave =
            self.neighbour(engine, &name, NeighbourRole::Leave, read, values, std::iter::once(index).collect())?;
        let number = contents.nodes.len();
        for (at, made) in made.iter().enumerate() {
            contents.rewire((index, made.output), (number, at));
        }
        contents
            .nodes
            .iter_mut()
            .filter(|other| other.after.contains(&index))
            .for_each(|other| other.after.push(number));
        contents.nodes.push(leave);
        Ok(())
    }

    /// Which inputs and outputs of a node an engine has.
    fn what_is_kept(
        &self,
        contents: &Contents,
        verified: &Verified,
        At { index, engine, num_variables, first }: At,
        homes: &[Value],
    ) -> (Vec<KeptInput>, Vec<(usize, Desc)>) {
        let node = &contents.nodes[index];
        let inner: Vec<&Contents> = node.inner().map(|inner| &**inner).collect();
        let is_there = |value: Value| self.value_on(contents, value.0) == Some(engine);
        // Its address is known when a run is given it, and no sooner.
        let is_runs = |value: Value| {
            homes.contains(&value) || is_there(value) && matches!(contents.nodes[value.0].body, NodeBody::Input(_))
        };
        let (mut held, mut made) = (Vec::new(), Vec::new());
        let bodies = if num_variables > 0 { &inner[1..2] } else { &inner[..] };
        for output in 0..node.num_outputs() {
            let desc = *verified.desc((index, output));
            if !desc.is_concrete() || !bodies.iter().all(|body| self.makes_on(body, body.outputs[output].1, engine)) {
                continue;
            }
            if num_variables > 0 {
                let value = node.inputs()[output];
                if desc_of(contents, verified, value) != Some(desc) {
                    continue;
                }
                held.push(KeptInput { input: output, value, desc, is_entered: true, is_split: false });
            }
            made.push((output, desc));
        }
        for (input, &value) in node.inputs().iter().enumerate().skip(num_variables.max(first)) {
            let Some(desc) = desc_of(contents, verified, value).filter(Desc::is_concrete) else { continue };
            let is_read = inner.iter().any(|graph| self.reads_on(graph, input - first, engine));
            // The host's are copied inside, where a branch may not be taken.
            if is_read && (num_variables > 0 || is_there(value)) {
                held.push(KeptInput { input, value, desc, is_entered: is_runs(value), is_split: !is_there(value) });
            }
        }
        (held, made)
    }

    /// The engine that a node's values are on.
    fn value_on(&self, contents: &Contents, node: usize) -> Option<usize> {
        match contents.nodes[node].body {
            NodeBody::Input(_) => {
                let number = contents.inputs().position(|input| input == node)?;
                contents.homes.input(number).and_then(|home| self.number_of(home))
            }
            _ => self.device_of(&contents.nodes[node]),
        }
    }

    /// Whether an engine makes a value of this graph.
    fn makes_on(&self, contents: &Contents, (index, output): Value, engine: usize) -> bool {
        let node = &contents.nodes[index];
        match &node.body {
            NodeBody::Kernel { .. } => self.device_of(node) == Some(engine),
            NodeBody::Case { branches, .. } => {
                branches.iter().all(|branch| self.makes_on(branch, branch.outputs[output].1, engine))
            }
            NodeBody::While { body, .. } => self.makes_on(body, body.outputs[output].1, engine),
            _ => false,
        }
    }

    /// Whether an engine reads an input of this graph, here or inside of its nodes.
    fn reads_on(&self, contents: &Contents, input: usize, engine: usize) -> bool {
        let Some(input) = contents.inputs().nth(input) else { return false };
        contents.nodes.iter().any(|node| {
            let mut reads = (0..node.inputs().len()).filter(|&at| node.inputs()[at].0 == input);
            match &node.body {
                NodeBody::Kernel { .. } => self.device_of(node) == Some(engine) && reads.next().is_some(),
                NodeBody::Case { branches, .. } => reads
                    .filter_map(|at| at.checked_sub(1))
                    .any(|at| branches.iter().any(|inner| self.reads_on(inner, at, engine))),
                _ => reads.any(|at| node.inner().any(|inner| self.reads_on(inner, at, engine))),
            }
        })
    }

    /// Puts ports into a graph. Gives the nodes that read them, in all runs.
    fn open(
        &mut self,
        graph: &mut Contents,
        verified: &Verified,
        at: At,
        ports: &[(KeptInput, NeighbourPort)],
    ) -> Result<After> {
        let At { engine, num_variables, first, .. } = at;
        let inputs: Vec<usize> = graph.inputs().collect();
        let mut readers = After::new();
        for &(KeptInput { input, desc, is_split, .. }, port) in ports {
            let from = (inputs[input - first], 0);
            let (mut here, mut others) = (Vec::new(), Vec::new());
            for (index, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.inputs().contains(&from)) {
                if matches!(node.body, NodeBody::Kernel { .. }) && self.device_of(node) == Some(engine) {
                    here.push(index);
                } else if !is_split || node.inner().any(|inner| self.has_work_on(inner, engine)) {
                    others.push(index);
                }
            }
            let is_output = !is_split && graph.outputs.iter().any(|(_, value)| *value == from);
            if here.is_empty() && others.is_empty() && !is_output {
                continue;
            }
            let name = graph.nodes[from.0].name.to_string();
            let value = vec![(desc, port)];
            let node = self.neighbour(
                engine,
                &format!("port of '{name}'"),
                NeighbourRole::Port,
                Vec::new(),
                value.clone(),
                After::new(),
            )?;
            self.goes_by((input < num_variables).then_some(input));
            let number = (graph.nodes.len(), 0);
            graph.nodes.push(node);
            here.iter().for_each(|&index| graph.nodes[index].reread(from, number));
            if !others.is_empty() || is_output {
                let mark = self.neighbour(
                    engine,
                    &format!("mark of '{name}'"),
                    NeighbourRole::Mark,
                    vec![number],
                    value,
                    After::new(),
                )?;
                let marked = (graph.nodes.len(), 0);
                graph.nodes.push(mark);
                readers.push(marked.0);
                others.iter().for_each(|&index| graph.nodes[index].reread(from, marked));
                // Readers that may be skipped take the host's copy; a node that waits for one is skipped with it.
                let count = others.len();
                others.retain(|&index| !verified.presences.may_be_skipped(index));
                if others.len() < count {
                    readers.push(graph.nodes.len());
                    graph.nodes.push(self.host_reader(&name, marked)?);
                }
                if is_output {
                    graph.outputs.iter_mut().filter(|(_, value)| *value == from).for_each(|(_, value)| *value = marked);
                }
            }
            readers.extend(here.into_iter().chain(others));
        }
        readers.sort_unstable();
        readers.dedup();
        Ok(readers)
    }

    /// Hands on what a body or a branch has made, behind all that read what it replaces.
    fn hand_on(&mut self, graph: &mut Contents, at: At, made: &[KeptOutput], readers: After) -> Result<()> {
        if made.is_empty() {
            return Ok(());
        }
        let inputs = made.iter().map(|made| graph.outputs[made.output].1).collect();
        let values = made.iter().map(|made| (made.desc, NeighbourPort::Own(made.place))).collect();
        let next = self.neighbour(at.engine, "next values", NeighbourRole::Next, inputs, values, readers)?;
        self.goes_by(made.iter().map(|made| made.output).filter(|output| *output < at.num_variables));
        graph.nodes.push(next);
        // A loop's variable, or a number, stands where nobody looks.
        let variables: Vec<usize> = graph.inputs().collect();
        let number = graph.nodes.len();
        if at.num_variables == 0 {
            graph.nodes.push(self.nobodys()?);
        }
        for made in made {
            let stands = if at.num_variables == 0 { number } else { variables[made.output] };
            graph.outputs[made.output].1 = (stands, 0);
        }
        Ok(())
    }

    /// A reader on the host.
    fn host_reader(&self, name: &str, value: Value) -> Result<Node> {
        let kernel = BoundKernel::create(self.host.clone(), Arc::new(HostReader), &KernelOptions::default())?;
        let body = NodeBody::Kernel { kernel, inputs: vec![value], num_outputs: 0 };
        Ok(Node { name: format!("'{name}' on the host").into(), body, after: After::new() })
    }

    /// Memory of an engine's in each frame, for one value alone.
    fn place_on(&mut self, engine: usize, desc: &Desc) -> Result<usize> {
        let alignment = self.devices[engine].device().alignment().max(64);
        let needs = &mut self.needs[engine];
        let place = needs.arena_bytes.next_multiple_of(alignment);
        needs.arena_bytes = place + desc.bytes()?.next_multiple_of(alignment);
        Ok(place)
    }

    fn neighbour(
        &mut self,
        engine: usize,
        name: &str,
        role: NeighbourRole,
        inputs: Vec<Value>,
        values: Vec<(Desc, NeighbourPort)>,
        after: After,
    ) -> Result<Node> {
        let (outputs, ports): (Vec<Desc>, Vec<NeighbourPort>) = values.into_iter().unzip();
        let num_outputs = outputs.len();
        let handed = Handed { role, num_inputs: inputs.len(), outputs };
        let kernel = BoundKernel::create(self.devices[engine].clone(), Arc::new(handed), &KernelOptions::default())?;
        self.neighbours.push(Neighbour { kernel: kernel.clone(), role, ports, variables: Vec::new() });
        Ok(Node { name: name.into(), body: NodeBody::Kernel { kernel, inputs, num_outputs }, after })
    }

    /// The neighbour that was made last has to do with these variables of the loop.
    fn goes_by(&mut self, variables: impl IntoIterator<Item = usize>) {
        if let Some(last) = self.neighbours.last_mut() {
            last.variables.extend(variables);
        }
    }
}

/// Most bytes of constants in the slots of a loop: engines have them once for each.
const MOST_CONSTANT_BYTES: usize = 1 << 20;

fn constant_bytes(contents: &Contents) -> usize {
    let own = |node: &Node| match &node.body {
        NodeBody::Constant(tensor) if tensor.engine().accelerator().is_none() => tensor.desc().bytes().unwrap_or(0),
        _ => node.inner().map(|inner| constant_bytes(inner)).fold(0, usize::saturating_add),
    };
    contents.nodes.iter().map(own).fold(0, usize::saturating_add)
}

/// The shape of a value, also of a node that was added since the graph was verified.
fn desc_of(contents: &Contents, verified: &Verified, (node, output): Value) -> Option<Desc> {
    if verified.descs.has(node) {
        return verified.descs[node].get(output).copied();
    }
    match &contents.nodes[node].body {
        NodeBody::Kernel { kernel, .. } => kernel.kernel().infer(&[]).ok()?.get(output).copied(),
        NodeBody::Constant(tensor) => Some(*tensor.desc()),
        _ => None,
    }
}
