//! One graph, without what is inside of its nodes: pieces of work, copies, and the nodes that stand for them.
#![forbid(unsafe_code)]

use super::Placer;
use super::arena::{self, Stored};
use super::kernels::{Before, Done, Fetch, Issue, Source, Upload, token};
use super::plan::{self, Piece, Plan};
use crate::base::{Code, Desc, Error, Result};
use crate::engine::{BoundKernel, KernelAttr};
use crate::graph::builder::{Body, Contents, Node, Value};
use crate::graph::compile;
use crate::graph::verify::{self, Verified};
use crate::kernel::Kernel;
use std::collections::HashMap;
use std::sync::Arc;

/// A graph that is being placed.
struct Region<'a> {
    verified: &'a Verified,
    /// As it was.
    old: Contents,
    /// As it will be: the nodes of before under their numbers, then new ones.
    new: Vec<Node>,
    token: Value,
    /// For each node, the engine that it is on.
    device: Vec<Option<usize>>,
    /// For each node on an engine, its position in that engine's order.
    position: Vec<usize>,
    /// Nodes that bring a value to the host, and nodes that tell when one is done.
    fetched: HashMap<Value, usize>,
    done: HashMap<usize, usize>,
    /// Nodes that have to do with engines.
    work: Vec<usize>,
}

/// What one engine does for the graph.
struct OnDevice {
    engine: usize,
    /// Nodes, in the order of issue.
    nodes: Vec<usize>,
    plan: Plan,
    /// Numbers of the first piece, copy to, and byte of this graph's.
    first_piece: usize,
    /// Values that are copied to it, with the copy's number and place.
    uploads: HashMap<Value, (usize, usize)>,
    /// In the order of `uploads`' numbers.
    upload_values: Vec<Value>,
    /// Where the nodes' outputs are.
    places: HashMap<Value, usize>,
}

impl Placer {
    /// Places a graph's nodes. `first` becomes the node behind all of before; its output is the number of the run's lane. Gives the nodes
    /// that have to do with engines, too.
    pub(super) fn region(&mut self, old: Contents, verified: &Verified, first: Node) -> Result<(Contents, Vec<usize>)> {
        let token = (old.nodes.len(), 0);
        let device: Vec<_> = old.nodes.iter().map(|node| self.device_of(node)).collect();
        self.check(&old, verified, &device)?;
        let mut new = old.nodes.clone();
        new.push(first);
        let position = vec![usize::MAX; old.nodes.len()];
        let (fetched, done, work) = (HashMap::new(), HashMap::new(), Vec::new());
        let mut region = Region { verified, old, new, token, device, position, fetched, done, work };
        self.inner(&mut region)?;
        let order = region.order();
        let mut all = Vec::new();
        for engine in 0..self.devices.len() {
            all.push(self.pieces(&mut region, engine, &order)?);
        }
        self.edges_to_host(&mut region, &all)?;
        for on in &all {
            self.issue(&mut region, on)?;
        }
        let Region { old, new, work, fetched, .. } = region;
        let value = |value: Value| fetched.get(&value).map_or(value, |&fetch| (fetch, 0));
        let outputs = old.outputs.into_iter().map(|(name, output)| (name, value(output))).collect();
        let on_host = |node: usize| matches!(&new[node].body, Body::Kernel { num_outputs, .. } if *num_outputs > 0);
        let forwarding = old.forwarding.into_iter().filter(|((node, _), _)| on_host(*node)).collect();
        Ok((Contents { name: old.name, nodes: new, outputs, forwarding, depth: old.depth }, work))
    }

    /// Refuses what cannot be placed.
    fn check(&self, graph: &Contents, verified: &Verified, device: &[Option<usize>]) -> Result<()> {
        let has_switch = graph.nodes.iter().any(|node| matches!(node.body, Body::Switch { .. }));
        for (index, node) in graph.nodes.iter().enumerate() {
            let Some(engine) = device[index] else { continue };
            let refuse = |why: &str| {
                let label = self.devices[engine].label();
                Err(Error::new(Code::Unimplemented, format!("node '{}': its engine {label} {why}", node.name)))
            };
            if has_switch {
                return refuse("takes no nodes of a graph with switches; use a cond");
            }
            let inputs = node.inputs().iter().map(|&value| verified.desc(value));
            if inputs.chain(&verified.descs[index]).any(|desc| !desc.is_concrete()) {
                return refuse("takes no values whose shape only a run knows");
            }
        }
        Ok(())
    }

    fn label(&self, engine: usize) -> Arc<str> {
        self.devices[engine].label().into()
    }

    /// A node of the host's.
    pub(super) fn node(
        &self,
        name: &str,
        kernel: Arc<dyn Kernel>,
        inputs: Vec<Value>,
        num_outputs: usize,
    ) -> Result<Node> {
        let kernel = BoundKernel::create(self.host.clone(), kernel, &KernelAttr::default())?;
        Ok(Node { name: name.to_owned(), body: Body::Kernel { kernel, inputs, num_outputs }, after: Vec::new() })
    }

    /// Graphs inside of nodes are given the lane's number as one more input.
    fn inner(&mut self, region: &mut Region<'_>) -> Result<()> {
        for index in 0..region.old.nodes.len() {
            if !region.old.nodes[index].inner().any(|inner| self.has_work(inner)) {
                continue;
            }
            let verified = &region.verified.inner[&index];
            region.new[index].add_inner_input(region.token);
            region.work.push(index);
            for (graph, verified) in region.new[index].inner_mut().into_iter().zip(verified) {
                let input = Node { name: "lane".to_owned(), body: Body::Input(token()), after: Vec::new() };
                let (placed, _) = self.region(Contents::clone(graph), verified, input)?;
                *graph = Arc::new(placed);
            }
        }
        Ok(())
    }

    /// Orders, places and counts what an engine does.
    fn pieces(&mut self, region: &mut Region<'_>, engine: usize, order: &[u32]) -> Result<OnDevice> {
        let is_ours = |region: &Region<'_>, node: usize| region.device[node] == Some(engine) && region.is_kernel(node);
        let nodes: Vec<usize> = order.iter().map(|&node| node as usize).filter(|&node| is_ours(region, node)).collect();
        nodes.iter().enumerate().for_each(|(at, &node)| region.position[node] = at);
        let costs = compile::costs(&region.old, region.verified, &vec![true; region.old.nodes.len()]);
        let pieces: Vec<Piece> = nodes
            .iter()
            .map(|&node| {
                let before = verify::predecessors(&region.old.nodes[node]);
                let after =
                    before.filter(|&before| is_ours(region, before)).map(|before| region.position[before]).collect();
                Piece { after, cost_ns: costs[node] }
            })
            .collect();
        let plan = plan::plan(&pieces, self.devices[engine].max_streams());
        let mut uploads = HashMap::new();
        let mut upload_values = Vec::new();
        let needs = &mut self.needs[engine];
        for &node in &nodes {
            for &value in region.old.nodes[node].inputs() {
                if region.device[value.0] != Some(engine) && !uploads.contains_key(&value) {
                    uploads.insert(value, (needs.uploads.len(), 0));
                    upload_values.push(value);
                    needs.uploads.push(region.verified.desc(value).bytes()?);
                }
            }
        }
        let mut places = HashMap::new();
        let alignment = self.devices[engine].device().alignment().max(64);
        let (values, stored) = region.stored(engine, &nodes, &upload_values)?;
        let (offsets, bytes) = arena::places(&stored, &plan, alignment);
        for (value, offset) in values.iter().zip(&offsets) {
            let place = needs.arena_bytes + offset;
            match uploads.get_mut(value) {
                Some(upload) => upload.1 = place,
                None => drop(places.insert(*value, place)),
            }
        }
        needs.arena_bytes += bytes;
        needs.num_streams = needs.num_streams.max(if nodes.is_empty() { 0 } else { plan.num_streams });
        let first_piece = needs.records.len();
        needs.records.resize(first_piece + nodes.len(), false);
        let facts = &mut self.placement;
        facts.nodes += nodes.len() as u32;
        facts.uploads += upload_values.len() as u32;
        facts.waits += plan.waits as u32;
        facts.records += plan.records as u32;
        facts.value_bytes += stored.iter().map(|value| value.bytes as u64).sum::<u64>();
        Ok(OnDevice { engine, nodes, plan, first_piece, uploads, upload_values, places })
    }

    /// Brings values to the host that it, or another engine, reads; and has nodes of the host's wait for work without data.
    fn edges_to_host(&mut self, region: &mut Region<'_>, all: &[OnDevice]) -> Result<()> {
        for value in region.wanted_on_host() {
            self.fetch(region, all, value)?;
        }
        for index in 0..region.old.nodes.len() {
            if region.device[index].is_none() {
                let inputs = region.old.nodes[index].inputs().to_vec();
                for (at, value) in inputs.iter().enumerate() {
                    if let Some(&fetch) = region.fetched.get(value) {
                        region.new[index].inputs_mut()[at] = (fetch, 0);
                    }
                }
            }
            for at in 0..region.old.nodes[index].after.len() {
                let before = region.old.nodes[index].after[at];
                if region.is_piece(before) && region.device[index] != region.device[before] {
                    region.new[index].after[at] = self.done(region, all, before)?;
                }
            }
        }
        Ok(())
    }

    fn fetch(&mut self, region: &mut Region<'_>, all: &[OnDevice], value: Value) -> Result<()> {
        let Some(engine) = region.device[value.0] else { return Ok(()) };
        let bytes = region.verified.desc(value).bytes()?;
        let (number, piece) = self.follow(region, all, (engine, bytes), value.0);
        let name = format!("fetch of '{}'", region.old.nodes[value.0].name);
        let from = region.source(all, engine, value);
        let desc = *region.verified.desc(value);
        let lanes = Arc::clone(&self.lanes);
        let fetch =
            Fetch { lanes, engine, label: self.label(engine), number, from, writer: piece, desc, name: name.clone() };
        let mut node = self.node(&name, Arc::new(fetch), vec![region.token], 1)?;
        node.after = if piece.is_some() { vec![value.0] } else { Vec::new() };
        region.fetched.insert(value, region.new.len());
        region.push_work(node);
        self.placement.fetches += 1;
        Ok(())
    }

    /// A node that completes when the work of another one is done.
    fn done(&mut self, region: &mut Region<'_>, all: &[OnDevice], before: usize) -> Result<usize> {
        if let Some(&done) = region.done.get(&before) {
            return Ok(done);
        }
        let engine = region.device[before].unwrap_or(0);
        let (number, piece) = self.follow(region, all, (engine, 0), before);
        let name = format!("end of '{}'", region.old.nodes[before].name);
        let done = Done {
            lanes: Arc::clone(&self.lanes),
            engine,
            label: self.label(engine),
            number,
            piece: piece.unwrap_or(0),
        };
        let mut node = self.node(&name, Arc::new(done), vec![region.token], 0)?;
        node.after = vec![before];
        region.done.insert(before, region.new.len());
        Ok(region.push_work(node))
    }

    /// Something, a copy of so many bytes, follows a node's work on the stream of fetches: its number, and the piece, if the node is
    /// one, which then records.
    fn follow(
        &mut self,
        region: &Region<'_>,
        all: &[OnDevice],
        (engine, bytes): (usize, usize),
        node: usize,
    ) -> (usize, Option<usize>) {
        let needs = &mut self.needs[engine];
        let piece = region.is_piece(node).then(|| all[engine].first_piece + region.position[node]);
        if let Some(piece) = piece {
            needs.records[piece] = true;
        }
        needs.fetches.push(bytes);
        (needs.fetches.len() - 1, piece)
    }

    /// The nodes that copy to an engine and issue its work.
    fn issue(&mut self, region: &mut Region<'_>, on: &OnDevice) -> Result<()> {
        let engine = on.engine;
        let label = self.devices[engine].label();
        let mut upload_nodes = HashMap::new();
        // What is there when the graph begins is copied in one order, so that who waits for one copy need not wait for those before:
        // inputs in one, and constants, which are copied in the first run only, in one of their own.
        let mut turns: HashMap<Value, Turn> = HashMap::new();
        let mut last: [Option<usize>; 2] = [None; 2];
        let mut count = [0; 2];
        for &value in &on.upload_values {
            let (number, to) = on.uploads[&value];
            let name = format!("copy of '{}' to {label}", region.old.nodes[value.0].name);
            let is_constant = matches!(region.old.nodes[value.0].body, Body::Constant(_));
            let (lanes, desc) = (Arc::clone(&self.lanes), *region.verified.desc(value));
            let upload =
                Upload { lanes, engine, label: self.label(engine), number, to, desc, is_constant, name: name.clone() };
            let source = region.fetched.get(&value).map_or(value, |&fetch| (fetch, 0));
            let mut node = self.node(&name, Arc::new(upload), vec![source, region.token], 0)?;
            if let Some(order) = order_of(&region.old.nodes[value.0]) {
                node.after.extend(last[order].replace(region.new.len()));
                count[order] += 1;
                turns.insert(value, (order, count[order]));
            }
            upload_nodes.insert(value, region.push_work(node));
        }
        for (at, placed) in on.plan.placed.iter().enumerate() {
            let piece = on.first_piece + at;
            self.needs[engine].records[piece] |= placed.records;
        }
        let mut tails: Vec<Option<usize>> = vec![None; on.plan.num_streams];
        let mut seen = vec![Copies::new(on.upload_values.len()); on.plan.num_streams];
        let mut behind: Vec<Copies> = Vec::with_capacity(on.nodes.len());
        let position: HashMap<Value, usize> =
            on.upload_values.iter().enumerate().map(|(at, &value)| (value, at)).collect();
        for (at, &node) in on.nodes.iter().enumerate() {
            let (placed, piece) = (&on.plan.placed[at], on.first_piece + at);
            let old = &region.old.nodes[node];
            let Body::Kernel { kernel, inputs, num_outputs } = &old.body else { continue };
            // Edges of the host's stay; those within the engine are the stream's.
            let is_ours = |before: &usize| region.device[*before] == Some(engine) && region.is_kernel(*before);
            let kept = region.new[node].after.iter().zip(&old.after).filter(|(_, before)| !is_ours(before));
            let mut after: Vec<usize> = kept.map(|(new, _)| *new).collect();
            let mut before = Vec::new();
            for &wait in &placed.waits {
                before.push(Before::Piece(on.first_piece + wait));
                after.push(on.nodes[wait]);
                seen[placed.stream].join(&behind[wait]);
            }
            let mut copied: Vec<Value> =
                inputs.iter().copied().filter(|value| on.uploads.contains_key(value)).collect();
            // The last of those in one order first.
            copied.sort_by_key(|value| std::cmp::Reverse(turns.get(value)));
            for value in copied {
                after.push(upload_nodes[&value]);
                if !seen[placed.stream].meet(position[&value], turns.get(&value).copied()) {
                    before.push(Before::Upload(on.uploads[&value].0));
                    self.placement.waits += 1;
                }
            }
            behind.push(seen[placed.stream].clone());
            after.extend(tails[placed.stream].replace(node));
            after.sort_unstable();
            after.dedup();
            let place =
                |value: Value| -> (Source, Desc) { (region.source_on(on, value), *region.verified.desc(value)) };
            let issue = Issue {
                lanes: Arc::clone(&self.lanes),
                engine,
                label: self.label(engine),
                stream: placed.stream,
                piece,
                before,
                records: self.needs[engine].records[piece],
                kernel: kernel.clone(),
                inputs: inputs.iter().map(|&value| place(value)).collect(),
                outputs: (0..*num_outputs).map(|output| place((node, output))).collect(),
                name: format!("node '{}'", old.name),
            };
            let mut placed_node = self.node(&old.name, Arc::new(issue), vec![region.token], 0)?;
            placed_node.after = after;
            region.new[node] = placed_node;
            region.work.push(node);
        }
        Ok(())
    }
}

/// A copy's place: in which order, and where in it, from 1.
type Turn = (usize, usize);

/// The order of copies that a value has a turn in.
fn order_of(node: &Node) -> Option<usize> {
    match node.body {
        Body::Input(_) => Some(0),
        Body::Constant(_) => Some(1),
        _ => None,
    }
}

/// Copies that a stream is behind: of those in an order how many, and the others one by one.
#[derive(Clone)]
struct Copies {
    ordered: [usize; 2],
    others: Vec<u64>,
}

impl Copies {
    fn new(count: usize) -> Copies {
        Copies { ordered: [0; 2], others: vec![0; count.div_ceil(64)] }
    }

    fn join(&mut self, other: &Copies) {
        self.ordered.iter_mut().zip(other.ordered).for_each(|(mine, theirs)| *mine = theirs.max(*mine));
        self.others.iter_mut().zip(&other.others).for_each(|(mine, theirs)| *mine |= theirs);
    }

    /// Whether it was behind this one already; it is from now on.
    fn meet(&mut self, position: usize, turn: Option<Turn>) -> bool {
        if let Some((order, turn)) = turn {
            let before = self.ordered[order];
            self.ordered[order] = before.max(turn);
            return before >= turn;
        }
        let (word, bit) = (position / 64, 1 << (position % 64));
        let before = self.others[word] & bit != 0;
        self.others[word] |= bit;
        before
    }
}

impl Region<'_> {
    fn is_kernel(&self, node: usize) -> bool {
        matches!(self.old.nodes[node].body, Body::Kernel { .. })
    }

    /// Whether an engine does the node's work, and does not merely have its value.
    fn is_piece(&self, node: usize) -> bool {
        self.device[node].is_some() && self.is_kernel(node)
    }

    fn push_work(&mut self, node: Node) -> usize {
        self.new.push(node);
        self.work.push(self.new.len() - 1);
        self.new.len() - 1
    }

    /// An order that all edges allow, the longest path to the end first.
    fn order(&self) -> Vec<u32> {
        let live = vec![true; self.old.nodes.len()];
        let costs = compile::costs(&self.old, self.verified, &live);
        compile::order(&self.old, self.verified, &live, &costs)
    }

    /// Values on engines that the host reads, or another engine, or who runs the graph.
    fn wanted_on_host(&self) -> Vec<Value> {
        let mut wanted: Vec<Value> = self.old.outputs.iter().map(|(_, value)| *value).collect();
        for (index, node) in self.old.nodes.iter().enumerate() {
            wanted.extend(node.inputs().iter().filter(|value| self.device[value.0] != self.device[index]));
        }
        wanted.retain(|value| self.device[value.0].is_some());
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// What an engine stores: its nodes' outputs in their order, then what is copied to it.
    fn stored(&self, engine: usize, nodes: &[usize], uploads: &[Value]) -> Result<(Vec<Value>, Vec<Stored>)> {
        let mut readers: HashMap<Value, Vec<usize>> = HashMap::new();
        for (at, &node) in nodes.iter().enumerate() {
            self.old.nodes[node].inputs().iter().for_each(|&value| readers.entry(value).or_default().push(at));
        }
        let wanted = self.wanted_on_host();
        let (mut values, mut stored) = (Vec::new(), Vec::new());
        let outputs = nodes.iter().enumerate().flat_map(|(at, &node)| {
            (0..self.old.nodes[node].num_outputs()).map(move |output| ((node, output), Some(at)))
        });
        for (value, writer) in outputs.chain(uploads.iter().map(|&value| (value, None))) {
            let is_kept =
                writer.is_none() || self.device[value.0] == Some(engine) && wanted.binary_search(&value).is_ok();
            let readers = readers.remove(&value).unwrap_or_default();
            stored.push(Stored { bytes: self.verified.desc(value).bytes()?, writer, readers, is_kept });
            values.push(value);
        }
        Ok((values, stored))
    }

    fn source(&self, all: &[OnDevice], engine: usize, value: Value) -> Source {
        self.source_on(&all[engine], value)
    }

    fn source_on(&self, on: &OnDevice, value: Value) -> Source {
        if let Some(&(_, place)) = on.uploads.get(&value) {
            return Source::Arena(place);
        }
        match &self.old.nodes[value.0].body {
            Body::Constant(tensor) => Source::Fixed(tensor.data() as usize),
            _ => Source::Arena(on.places.get(&value).copied().unwrap_or(0)),
        }
    }
}
