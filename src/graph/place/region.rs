//! One graph, without what is inside of its nodes: pieces of work, copies, and the nodes that stand for them.
#![forbid(unsafe_code)]

use super::Placer;
use super::arena::{self, Stored};
use super::carry::Pace;
use super::edges::Joined;
use super::keep::{Port, Role};
use super::kernels::Source;
use super::lane::Needs;
use super::lower::Lowered;
use super::plan::{self, Piece, Plan};
use super::segments::Segments;
use super::units::Units;
use crate::base::{Code, Desc, Error, Result, dtype};
use crate::engine::{BoundKernel, KernelAttr, Tensor};
use crate::graph::compile;
use crate::graph::contents::{After, Body, Contents, Node, Value};
use crate::graph::verify::Verified;
use crate::kernel::Kernel;
use std::collections::HashMap;
use std::sync::Arc;

/// A graph that is being placed.
pub(super) struct Region<'a> {
    pub verified: &'a Verified,
    /// As it was.
    pub old: Contents,
    /// As it will be: the nodes of before under their numbers, then new ones.
    pub new: Vec<Node>,
    /// The node that all work comes after, in the outermost graph.
    begin: Option<usize>,
    /// It is inside of a branch or a loop: its work is on each engine's first stream.
    is_inner: bool,
    /// It is in a loop whose iterations overlap.
    pub overlaps: bool,
    /// Where values are that are handed on between graphs.
    pub handed: HashMap<Value, Source>,
    /// For each node, the engine that it is on.
    pub device: Vec<Option<usize>>,
    /// For each node on an engine, its position in that engine's order.
    pub position: Vec<usize>,
    /// For each output of the graph, the engine that the runs' tensor is on.
    pub homes: Vec<Option<usize>>,
    /// Values that are written into a run's own tensor: of which output of the graph, and which output of their node
    /// they become.
    pub in_place: HashMap<Value, (usize, usize)>,
    /// Values on engines that come to the host, and all that copies read; ascending.
    pub wanted_on_host: Vec<Value>,
    pub copied: Vec<Value>,
    /// Nodes that copy a value straight to an engine.
    pub crossed: HashMap<(Value, usize), usize>,
    /// Nodes that bring a value to the host, and nodes that tell when one is done.
    pub fetched: HashMap<Value, usize>,
    pub done: HashMap<usize, usize>,
    /// Nodes on engines whose end something on the host waits for.
    pub awaited: Vec<usize>,
    /// Nodes that have to do with engines: those that are always run, and the others.
    pub work: Vec<usize>,
    pub skippable: Vec<usize>,
    /// Pieces that are part of segments.
    pub joined: Joined,
    /// Nodes that are branches or loops, and whether the device decides in them.
    pub taken: HashMap<usize, (Arc<Lowered>, bool)>,
}

/// What one engine does for the graph.
pub(super) struct OnDevice {
    pub engine: usize,
    /// Nodes, in the order of issue.
    pub nodes: Vec<usize>,
    pub pieces: Vec<Piece>,
    pub plan: Plan,
    /// For each piece, those that must be over because it writes where their values were.
    pub overwritten: Vec<Vec<usize>>,
    /// None: nothing is submitted as one.
    pub segments: Option<Segments>,
    /// Numbers of the first piece, copy to, and byte of this graph's.
    pub first_piece: usize,
    /// Values that are copied to it, with the place, and the copy's number if it comes from the host.
    pub uploads: HashMap<Value, (Option<usize>, usize)>,
    /// In the order of `uploads`' numbers.
    pub upload_values: Vec<Value>,
    /// Where the nodes' outputs are.
    pub places: HashMap<Value, usize>,
}

/// A graph that was placed.
pub(super) struct InPlace {
    pub contents: Contents,
    /// The nodes that have to do with engines: those that are always run, and the others.
    pub work: Vec<usize>,
    pub skippable: Vec<usize>,
    /// Something on the host waits for an engine.
    waits: bool,
}

/// What is around a graph inside of a node.
pub(super) struct Around<'a> {
    region: &'a Region<'a>,
    all: &'a [OnDevice],
    /// It is the body of a loop whose condition waits for no engine.
    is_repeated: bool,
    /// It is in a loop whose iterations overlap.
    overlaps: bool,
    /// It is a guard's, whose end nothing on an engine stands for.
    is_guard: bool,
}

/// Most bytes that the slots of a loop may have together on an engine of which nobody knows how much memory it has.
const MOST_SLOT_BYTES: usize = 256 << 20;

impl Placer {
    /// Places a graph's nodes. All work on engines comes after `begin`, which becomes the node behind all of before.
    pub(super) fn region(
        &mut self,
        old: Contents,
        verified: &Verified,
        begin: Option<Node>,
        around: Option<Around<'_>>,
    ) -> Result<InPlace> {
        let mut device: Vec<_> = old.nodes.iter().map(|node| self.device_of(node)).collect();
        for (number, input) in old.inputs().enumerate() {
            device[input] = old.homes.input(number).and_then(|home| self.number_of(home));
        }
        let home = |output: usize| old.homes.output(output).and_then(|home| self.number_of(home));
        let homes = (0..old.outputs.len()).map(home).collect();
        let mut new = old.nodes.clone();
        let number = begin.is_some().then_some(old.nodes.len());
        new.extend(begin);
        let taken = old.nodes.iter().enumerate().filter_map(|(index, node)| {
            let taken = self.taken(node)?;
            Some((index, (Arc::clone(&taken.lowered), taken.by_device)))
        });
        let mut region = Region {
            taken: taken.collect(),
            verified,
            begin: number,
            is_inner: around.is_some(),
            overlaps: around.as_ref().is_some_and(|around| around.overlaps),
            handed: HashMap::new(),
            device,
            homes,
            position: vec![usize::MAX; old.nodes.len()],
            old,
            new,
            in_place: HashMap::new(),
            wanted_on_host: Vec::new(),
            copied: Vec::new(),
            crossed: HashMap::new(),
            fetched: HashMap::new(),
            done: HashMap::new(),
            awaited: Vec::new(),
            work: Vec::new(),
            skippable: Vec::new(),
            joined: Joined::default(),
        };
        region.joined = Joined::none(region.new.len());
        self.check(&region)?;
        self.settle(&mut region, around.as_ref())?;
        region.look_at_crossings(self);
        let (units, order) = self.cut(&region, region.order());
        let mut all = Vec::new();
        for (engine, units) in units.iter().enumerate() {
            all.push(self.pieces(&mut region, engine, &order, units.as_ref())?);
        }
        self.inner(&mut region, &all)?;
        self.edges_to_host(&mut region, &all)?;
        self.edges_to_peers(&mut region, &all)?;
        let mut outputs = self.outputs(&mut region, &all)?;
        for (node, variables) in self.handed_on(&region) {
            variables.iter().enumerate().for_each(|(at, &variable)| outputs[variable].1 = (node, at));
        }
        // Inside, the order of the streams is that of the iterations; but what is copied from the host is copied once
        // what was copied before is not needed any more.
        let is_guarded = around.as_ref().is_some_and(|around| around.is_guard);
        if !region.is_inner || is_guarded || all.iter().any(|on| region.copies_anew(on)) {
            self.ends(&mut region, &all)?;
        }
        if around.as_ref().is_some_and(|around| around.is_repeated) && !region.waits() {
            self.paces(&mut region, &all)?;
        }
        for on in &all {
            self.issue(&mut region, on)?;
        }
        let waits = region.waits();
        let Region { old, mut new, work, skippable, device, joined, begin, .. } = region;
        for &node in work.iter().chain(&skippable) {
            new[node].after.extend(begin);
        }
        self.hold_constants(&mut new)?;
        let on_host = |node: usize| device[node].is_none() && matches!(&old.nodes[node].body, Body::Kernel { .. });
        let number = joined.apply(&mut new);
        let value = |value: Value| (number[joined.of(value.0)], joined.value(value).1);
        let outputs = outputs.into_iter().map(|(name, output)| (name, value(output))).collect();
        let forwarding = old.forwarding.iter().filter(|((node, _), _)| on_host(*node));
        let forwarding =
            forwarding.map(|(&(node, output), &forwarding)| ((number[node], output), forwarding)).collect();
        let [work, skippable] = [work, skippable].map(|nodes| nodes.into_iter().map(|node| number[node]).collect());
        let contents = Contents { name: old.name, nodes: new, outputs, forwarding, homes: old.homes, depth: old.depth };
        Ok(InPlace { contents, work, skippable, waits })
    }

    /// Refuses what cannot be placed.
    fn check(&self, region: &Region<'_>) -> Result<()> {
        let Region { old: graph, verified, .. } = region;
        let nodes = graph.nodes.iter().enumerate().filter_map(|(index, node)| {
            let inputs = node.inputs().iter().map(|&value| verified.desc(value));
            let is_known = inputs.chain(&verified.descs[index]).all(Desc::is_concrete);
            Some((region.device[index]?, "node", node.name.as_str(), is_known))
        });
        let outputs = graph.outputs.iter().zip(&region.homes).filter_map(|((name, value), home)| {
            Some(((*home)?, "output", name.as_str(), verified.desc(*value).is_concrete()))
        });
        let Some((engine, what, name, _)) = nodes.chain(outputs).find(|(.., is_known)| !is_known) else {
            return Ok(());
        };
        let label = self.devices[engine].label();
        let text = format!("{what} '{name}': its engine {label} takes no values whose shape only a run knows");
        Err(Error::new(Code::Unimplemented, text))
    }

    pub(super) fn label(&self, engine: usize) -> Arc<str> {
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
        Ok(Node { name: name.into(), body: Body::Kernel { kernel, inputs, num_outputs }, after: After::new() })
    }

    /// Constants on engines are held besides the nodes, none of which has one any more for an input. Another stands in
    /// its place, for nobody.
    fn hold_constants(&mut self, nodes: &mut [Node]) -> Result<()> {
        for node in nodes {
            if self.device_of(node).is_some()
                && let Body::Constant(tensor) = &mut node.body
            {
                let nobodys = Tensor::create(self.host.clone(), Desc::new(dtype::S32, &[1]))?;
                self.constants.push(std::mem::replace(tensor, nobodys));
            }
        }
        Ok(())
    }

    /// Graphs inside of nodes are placed each for itself.
    fn inner(&mut self, region: &mut Region<'_>, all: &[OnDevice]) -> Result<()> {
        for index in 0..region.old.nodes.len() {
            if !region.old.nodes[index].inner().any(|inner| self.has_work(inner)) {
                continue;
            }
            let verified = &region.verified.inner[&index];
            let is_loop = matches!(region.old.nodes[index].body, Body::While { .. });
            let overlaps = region.old.nodes[index].num_slots() > 1;
            let is_guard = region.verified.presences.may_be_skipped(index);
            let used: Vec<usize> = self.needs.iter().map(|needs| needs.arena_bytes).collect();
            let (mut graphs, mut waits) = (Vec::new(), false);
            let mut facts = None;
            for (graph, verified) in region.old.nodes[index].inner().zip(verified) {
                // A loop's condition and its body, once for each slot; what was placed is told of the first.
                let is_body = is_loop && graphs.len() % 2 == 1;
                if overlaps && graphs.len() == 2 {
                    let most = self.most_slots(&used);
                    region.new[index].limit_slots(most);
                    facts = Some(self.placement.clone());
                }
                if is_loop && graphs.len() == 2 * region.new[index].num_slots() {
                    break;
                }
                let around = Around { region: &*region, all, is_repeated: is_body && !waits, overlaps, is_guard };
                let placed = self.region(Contents::clone(graph), verified, None, Some(around))?;
                waits = placed.waits && !is_body;
                graphs.push(Arc::new(placed.contents));
            }
            if let Some(facts) = facts {
                self.placement = facts;
            }
            if is_guard { &mut region.skippable } else { &mut region.work }.push(index);
            region.new[index].inner_mut().into_iter().zip(graphs).for_each(|(graph, placed)| *graph = placed);
        }
        Ok(())
    }

    /// Nodes that say when variables of a loop are there for the next iteration, which may be under way already. They
    /// have an output for each.
    fn handed_on<'a>(&'a self, region: &Region<'_>) -> Vec<(usize, &'a [usize])> {
        let neighbour = |node| self.neighbour_of(node).filter(|of| region.overlaps && of.role == Role::Next);
        let nodes = region.old.nodes.iter().enumerate();
        nodes.filter_map(|(index, node)| Some((index, &neighbour(node)?.variables[..]))).collect()
    }

    /// Slots that engines have memory for, if the first one took what is more than `used`.
    fn most_slots(&self, used: &[usize]) -> usize {
        let most = |needs: &Needs, used: usize| {
            let most = match needs.engine.device().memory_bytes() {
                0 => MOST_SLOT_BYTES,
                bytes => (bytes / 8) as usize,
            };
            most / (needs.arena_bytes - used).max(1)
        };
        self.needs.iter().zip(used).map(|(needs, &used)| most(needs, used)).min().unwrap_or(1)
    }

    /// Where values are that are handed on.
    fn settle(&self, region: &mut Region<'_>, around: Option<&Around<'_>>) -> Result<()> {
        for (index, node) in region.old.nodes.iter().enumerate() {
            let Some((neighbour, engine)) = self.neighbour_of(node).zip(region.device[index]) else { continue };
            for (output, port) in neighbour.ports.iter().enumerate() {
                let source = match (*port, around) {
                    (Port::Own(place), _) => Source::Arena(place),
                    (Port::Outer(value), Some(Around { region, all, .. })) => {
                        region.source_on(&all[engine], value, &mut Vec::new())
                    }
                    (Port::Outer(_), None) => return Err(Error::internal("a port in the outermost graph")),
                };
                region.handed.insert((index, output), source);
            }
            if neighbour.role == Role::Port {
                region.joined.leave_out(index);
            }
        }
        Ok(())
    }

    /// Keeps the host from issuing iterations without end.
    fn paces(&mut self, region: &mut Region<'_>, all: &[OnDevice]) -> Result<()> {
        for on in all.iter().filter(|on| !on.nodes.is_empty()) {
            let needs = &mut self.needs[on.engine];
            let (number, first) = (needs.num_paces, needs.fetches.len());
            needs.num_paces += 1;
            needs.fetches.extend([0, 0]);
            let (lanes, marks) = (Arc::clone(&self.lanes), [first, first + 1]);
            let pace = Pace { lanes, engine: on.engine, label: self.label(on.engine), number, marks };
            let mut node = self.node("pace", Arc::new(pace), Vec::new(), 0)?;
            node.after = on.nodes.last().copied().into_iter().collect();
            region.push_work(node);
        }
        Ok(())
    }

    /// Orders, places and counts what an engine does.
    fn pieces(
        &mut self,
        region: &mut Region<'_>,
        engine: usize,
        order: &[u32],
        units: Option<&Units>,
    ) -> Result<OnDevice> {
        let is_ours = |region: &Region<'_>, node: usize| region.device[node] == Some(engine) && region.is_piece(node);
        let nodes: Vec<usize> = order.iter().map(|&node| node as usize).filter(|&node| is_ours(region, node)).collect();
        nodes.iter().enumerate().for_each(|(at, &node)| region.position[node] = at);
        let costs = compile::costs(&region.old, region.verified, &vec![true; region.old.nodes.len()]);
        let pieces: Vec<Piece> = nodes
            .iter()
            .map(|&node| {
                let before = region.old.nodes[node].predecessors();
                let after =
                    before.filter(|&before| is_ours(region, before)).map(|before| region.position[before]).collect();
                let is_first = self.neighbour_of(&region.old.nodes[node]).is_some();
                Piece { after, cost_ns: costs[node], is_first }
            })
            .collect();
        let plan = plan::plan(&pieces, region.max_streams(self, engine));
        let mut segments = units.map(|units| self.segments(region, engine, (&nodes, &pieces), units));
        let mut uploads = HashMap::new();
        let mut upload_values = Vec::new();
        let (needs, peers) = (&mut self.needs[engine], &self.peers);
        for &node in &nodes {
            for &value in region.old.nodes[node].inputs() {
                if region.device[value.0] == Some(engine) || uploads.contains_key(&value) {
                    continue;
                }
                let is_straight = peers[engine].iter().any(|&peer| region.device[value.0] == Some(peer));
                uploads.insert(value, ((!is_straight).then_some(needs.uploads.len()), 0));
                upload_values.push(value);
                if !is_straight {
                    needs.uploads.push(region.verified.desc(value).bytes()?);
                }
            }
        }
        let mut places = HashMap::new();
        let alignment = self.devices[engine].device().alignment().max(64);
        let (values, stored) = region.stored(engine, &nodes, &upload_values)?;
        let is_over = |before: usize, then: usize| {
            plan.is_over(before, then) && segments.as_ref().is_none_or(|segments| segments.is_over(before, then))
        };
        let (offsets, bytes) = arena::places(&stored, is_over, alignment);
        let mut overwritten = vec![Vec::new(); nodes.len()];
        arena::overwrites(&stored, &offsets).into_iter().for_each(|(before, then)| overwritten[then].push(before));
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
        let is_counted = |node: &&usize| region.taken.contains_key(*node) || region.handed.contains_key(&(**node, 0));
        facts.nodes -= nodes.iter().filter(is_counted).count() as u32;
        facts.uploads += uploads.values().filter(|(number, _)| number.is_some()).count() as u32;
        facts.waits += plan.waits as u32;
        facts.records += plan.records as u32;
        facts.value_bytes += stored.iter().map(|value| value.bytes as u64).sum::<u64>();
        if let Some((segments, units)) = segments.as_mut().zip(units) {
            segments.take_copies(region, &nodes, units, &upload_values)?;
        }
        Ok(OnDevice { engine, nodes, pieces, plan, overwritten, segments, first_piece, uploads, upload_values, places })
    }
}

impl Region<'_> {
    pub fn copy_name(&self, value: Value, label: &str) -> String {
        format!("copy of '{}' to {label}", self.old.nodes[value.0].name)
    }

    pub fn is_kernel(&self, node: usize) -> bool {
        matches!(self.old.nodes[node].body, Body::Kernel { .. })
    }

    /// Whether an engine does the node's work, and does not merely have its value.
    pub fn is_piece(&self, node: usize) -> bool {
        self.device[node].is_some() && self.is_kernel(node) && self.joined.is_kept(node)
    }

    /// Whether something on the host waits for an engine.
    fn waits(&self) -> bool {
        !self.fetched.is_empty() || !self.done.is_empty() || !self.crossed.is_empty()
    }

    /// Streams that an engine's work here may be spread over; 0 = as many as it takes.
    pub fn max_streams(&self, placer: &Placer, engine: usize) -> usize {
        let engine = &placer.devices[engine];
        let limit = engine.accelerator().map_or(0, |accelerator| accelerator.max_streams());
        if self.is_inner { 1 } else { plan::most(engine.max_streams(), limit) }
    }

    /// Whether something is copied from the host to an engine each time.
    fn copies_anew(&self, on: &OnDevice) -> bool {
        on.upload_values.iter().any(|value| !matches!(self.old.nodes[value.0].body, Body::Constant(_)))
    }

    /// Whether pieces that lie together are recorded.
    pub fn is_worth_recording(&self, nodes: &[usize], fewest: usize) -> bool {
        nodes.len() >= fewest || nodes.iter().any(|node| matches!(self.taken.get(node), Some((_, true))))
    }

    pub fn push_work(&mut self, node: Node) -> usize {
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

    /// Finds what leaves the engine that it is on, and which outputs are written in place: those that a node of the
    /// same engine computes, each value once.
    fn look_at_crossings(&mut self, placer: &Placer) {
        let mut crossing = Vec::new();
        for (index, node) in self.old.nodes.iter().enumerate() {
            crossing.extend(node.inputs().iter().map(|&value| (value, self.device[index])));
        }
        let mut own: HashMap<usize, usize> = HashMap::new();
        for (number, ((_, value), home)) in self.old.outputs.iter().zip(&self.homes).enumerate() {
            let is_computed_there = home.is_some()
                && self.device[value.0] == *home
                && self.is_piece(value.0)
                && !self.handed.contains_key(value);
            if is_computed_there && !self.in_place.contains_key(value) {
                self.in_place.insert(*value, (number, 0));
                continue;
            }
            if home.is_some() && self.device[value.0] == *home {
                self.copied.push(*value);
            }
            crossing.push((*value, *home));
        }
        // In the order of the nodes' outputs, as the nodes will have them.
        let mut values: Vec<Value> = self.in_place.keys().copied().collect();
        values.sort_unstable();
        for value in values {
            let next = own.entry(value.0).or_default();
            self.in_place.entry(value).and_modify(|(_, at)| *at = *next);
            *next += 1;
        }
        crossing.retain(|(value, to)| self.device[value.0].is_some() && self.device[value.0] != *to);
        self.copied.extend(crossing.iter().map(|(value, _)| *value));
        let by_host = |(value, to): &&(Value, Option<usize>)| to.is_none_or(|to| !self.is_straight(placer, *value, to));
        self.wanted_on_host = crossing.iter().filter(by_host).map(|(value, _)| *value).collect();
        for list in [&mut self.copied, &mut self.wanted_on_host] {
            list.sort_unstable();
            list.dedup();
        }
    }

    /// What an engine stores: its nodes' outputs in their order, then what is copied to it.
    fn stored(&self, engine: usize, nodes: &[usize], uploads: &[Value]) -> Result<(Vec<Value>, Vec<Stored>)> {
        let mut readers: HashMap<Value, Vec<usize>> = HashMap::new();
        for (at, &node) in nodes.iter().enumerate() {
            self.old.nodes[node].inputs().iter().for_each(|&value| readers.entry(value).or_default().push(at));
        }
        let (mut values, mut stored) = (Vec::new(), Vec::new());
        let outputs = nodes.iter().enumerate().flat_map(|(at, &node)| {
            let memory = usize::from(self.taken.contains_key(&node));
            (0..self.old.nodes[node].num_outputs() + memory).map(move |output| ((node, output), Some(at)))
        });
        for (value, writer) in outputs.chain(uploads.iter().map(|&value| (value, None))) {
            if writer.is_some() && (self.in_place.contains_key(&value) || self.handed.contains_key(&value)) {
                continue;
            }
            let is_kept =
                writer.is_none() || self.device[value.0] == Some(engine) && self.copied.binary_search(&value).is_ok();
            let readers = readers.remove(&value).unwrap_or_default();
            let bytes = match self.verified.descs[value.0].get(value.1) {
                Some(desc) => desc.bytes()?,
                None => self.memory_of(engine, value.0)?,
            };
            stored.push(Stored { bytes, writer, readers, is_kept });
            values.push(value);
        }
        Ok((values, stored))
    }

    /// Where a value is on an engine. If it is a run's own tensor, the node that reads it is given it as one more
    /// input.
    pub fn source_on(&self, on: &OnDevice, value: Value, reads: &mut Vec<Value>) -> Source {
        if let Some(&(_, place)) = on.uploads.get(&value) {
            return Source::Arena(place);
        }
        if let Some(&handed) = self.handed.get(&value) {
            return handed;
        }
        let own = self.in_place.get(&value).map(|&(_, output)| (value.0, output));
        match &self.old.nodes[value.0].body {
            Body::Constant(tensor) => Source::Fixed(tensor.data() as usize),
            Body::Input(_) => self.given(value, reads),
            _ => match own {
                Some(own) => self.given(own, reads),
                None => Source::Arena(on.places.get(&value).copied().unwrap_or(0)),
            },
        }
    }

    fn given(&self, value: Value, reads: &mut Vec<Value>) -> Source {
        reads.push(value);
        Source::Input(reads.len() - 1)
    }
}
