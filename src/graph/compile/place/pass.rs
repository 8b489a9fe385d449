//! Places one graph, and those inside of its nodes: pieces of work, copies, and the nodes that stand for them.
#![forbid(unsafe_code)]

use super::edges::JoinedNodes;
use super::neighbours::{NeighbourPort, NeighbourRole};
use super::placer::Placer;
use super::region::{OnDevice, Region};
use super::units::EngineUnits;
use crate::base::{Code, Desc, Error, Result, dtype};
use crate::engine::{BoundKernel, KernelOptions, Tensor};
use crate::graph::build::contents::{After, Contents, Node, NodeBody, Value};
use crate::graph::build::verify::Verified;
use crate::graph::carry::device::device_frame::{EngineNeeds, ValuePlace};
use crate::graph::carry::device::to_host::Pace;
use crate::graph::plan::arena::{self, Arena};
use crate::graph::plan::schedule;
use crate::graph::plan::streams::{self, DevicePiece};
use crate::kernel::Kernel;
use std::collections::HashMap;
use std::sync::Arc;

/// A graph that was placed.
pub(in crate::graph) struct InPlace {
    pub contents: Contents,
    /// The nodes that have to do with engines: those that are always run, and the others.
    pub work: Vec<usize>,
    pub skippable: Vec<usize>,
    /// Something on the host waits for an engine.
    waits: bool,
}

/// The surroundings of a graph inside of a node.
pub(in crate::graph) struct Around<'a> {
    region: &'a Region<'a>,
    all: &'a [OnDevice],
    /// It is the body of a loop whose condition waits for no engine.
    is_repeated: bool,
    /// It is in a loop whose iterations overlap.
    overlaps: bool,
    is_alone: Vec<bool>,
    /// It is a guard's, whose end nothing on an engine stands for.
    is_guard: bool,
}

/// Most bytes that the slots of a loop may have together on an engine of which nobody knows how much memory it has.
const MOST_SLOT_BYTES: usize = 256 << 20;

impl Placer {
    /// Places a graph's nodes. All work on engines comes after `begin`, which becomes the node behind all of before.
    pub(in crate::graph) fn region(
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
            is_alone: around.as_ref().map_or_else(|| vec![true; self.devices.len()], |around| around.is_alone.clone()),
            handed: HashMap::new(),
            device,
            homes,
            position: vec![usize::MAX; old.nodes.len()],
            costs: schedule::costs(&old, verified, &vec![true; old.nodes.len()]),
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
            joined: JoinedNodes::default(),
        };
        region.joined = JoinedNodes::none(region.new.len());
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
        let on_host = |node: usize| device[node].is_none() && matches!(&old.nodes[node].body, NodeBody::Kernel { .. });
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

    pub(in crate::graph) fn label(&self, engine: usize) -> Arc<str> {
        self.devices[engine].label().into()
    }

    /// A node of the host's.
    pub(in crate::graph) fn node(
        &self,
        name: &str,
        kernel: Arc<dyn Kernel>,
        inputs: Vec<Value>,
        num_outputs: usize,
    ) -> Result<Node> {
        let kernel = BoundKernel::create(self.host.clone(), kernel, &KernelOptions::default())?;
        Ok(Node { name: name.into(), body: NodeBody::Kernel { kernel, inputs, num_outputs }, after: After::new() })
    }

    /// Constants on engines are held besides the nodes, none of which has one any more for an input. Another stands in
    /// its place, for nobody.
    fn hold_constants(&mut self, nodes: &mut [Node]) -> Result<()> {
        for node in nodes {
            if self.device_of(node).is_some()
                && let NodeBody::Constant(tensor) = &mut node.body
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
            let is_loop = matches!(region.old.nodes[index].body, NodeBody::While { .. });
            let overlaps = region.old.nodes[index].num_slots() > 1;
            let is_guard = region.verified.presences.may_be_skipped(index);
            let is_alone = region.alone_in(index, all);
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
                let (is_repeated, is_alone) = (is_body && !waits, is_alone.clone());
                let around = Around { region: &*region, all, is_repeated, overlaps, is_alone, is_guard };
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
        let neighbour = |node| self.neighbour_of(node).filter(|of| region.overlaps && of.role == NeighbourRole::Next);
        let nodes = region.old.nodes.iter().enumerate();
        nodes.filter_map(|(index, node)| Some((index, &neighbour(node)?.variables[..]))).collect()
    }

    /// Slots that engines have memory for, if the first one took what is more than `used`.
    fn most_slots(&self, used: &[usize]) -> usize {
        let most = |needs: &EngineNeeds, used: usize| {
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
                    (NeighbourPort::Own(place), _) => ValuePlace::Arena(place),
                    (NeighbourPort::Outer(value), Some(Around { region, all, .. })) => {
                        region.source_on(&all[engine], value, &mut Vec::new())
                    }
                    (NeighbourPort::Outer(_), None) => return Err(Error::internal("a port in the outermost graph")),
                };
                region.handed.insert((index, output), source);
            }
            if neighbour.role == NeighbourRole::Port {
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
            let (frames, marks) = (Arc::clone(&self.frames), [first, first + 1]);
            let pace = Pace { frames, engine: on.engine, label: self.label(on.engine), number, marks };
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
        units: Option<&EngineUnits>,
    ) -> Result<OnDevice> {
        let is_ours = |region: &Region<'_>, node: usize| region.device[node] == Some(engine) && region.is_piece(node);
        let nodes: Vec<usize> = order.iter().map(|&node| node as usize).filter(|&node| is_ours(region, node)).collect();
        nodes.iter().enumerate().for_each(|(at, &node)| region.position[node] = at);
        let pieces: Vec<DevicePiece> = nodes
            .iter()
            .map(|&node| {
                let before = region.old.nodes[node].predecessors();
                let after =
                    before.filter(|&before| is_ours(region, before)).map(|before| region.position[before]).collect();
                let is_first = self.neighbour_of(&region.old.nodes[node]).is_some();
                DevicePiece { after, cost_ns: region.costs[node], is_first }
            })
            .collect();
        let plan = streams::plan(&pieces, region.max_streams(self, engine));
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
        let Arena { offsets, bytes, overwrites } = arena::places(&stored, is_over, alignment);
        let mut overwritten = vec![Vec::new(); nodes.len()];
        overwrites.into_iter().for_each(|(before, then)| overwritten[then].push(before));
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
