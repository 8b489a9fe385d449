//! The state of one graph while it is placed, without the graphs inside of its nodes: places of values, the work of
//! each engine, and its order.
#![forbid(unsafe_code)]

use super::edges::JoinedNodes;
use super::placer::Placer;
use super::units::{self, EngineUnits};
use crate::base::Result;
use crate::graph::build::contents::{Contents, Node, NodeBody, Value};
use crate::graph::build::verify::Verified;
use crate::graph::carry::device::device_frame::ValuePlace;
use crate::graph::plan::actions::Lowered;
use crate::graph::plan::arena::StoredValue;
use crate::graph::plan::schedule;
use crate::graph::plan::streams::{self, DevicePiece, StreamPlan};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A graph that is being placed.
pub(in crate::graph) struct Region<'a> {
    pub verified: &'a Verified,
    /// As it was.
    pub old: Contents,
    /// The estimated run time of each node.
    pub costs: Vec<u64>,
    /// As it will be: the nodes of before under their numbers, then new ones.
    pub new: Vec<Node>,
    /// The node that all work comes after, in the outermost graph.
    pub begin: Option<usize>,
    /// It is inside of a branch or a loop: its work is on each engine's first stream.
    pub is_inner: bool,
    /// It is in a loop whose iterations overlap.
    pub overlaps: bool,
    /// For each engine: all of its work in the graphs around comes before or behind this one (`lanes`).
    pub is_alone: Vec<bool>,
    /// Where values are that are handed on between graphs.
    pub handed: HashMap<Value, ValuePlace>,
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
    pub joined: JoinedNodes,
    /// Nodes that are branches or loops, and whether the device decides in them.
    pub taken: HashMap<usize, (Arc<Lowered>, bool)>,
}

/// The work of one engine for the graph.
pub(in crate::graph) struct OnDevice {
    pub engine: usize,
    /// Nodes, in the order of issue.
    pub nodes: Vec<usize>,
    pub pieces: Vec<DevicePiece>,
    pub plan: StreamPlan,
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

/// The segments of an engine in one graph.
#[derive(Debug)]
pub(in crate::graph) struct Segments {
    /// The number of the first, among the engine's.
    pub first: usize,
    /// The positions of each one's pieces.
    pub ranges: Vec<Range<usize>>,
    /// For each position.
    pub of: Vec<usize>,
    /// On which streams they go as one, and whom they wait for.
    pub plan: StreamPlan,
    /// Copies to the engine that are part of one.
    pub copies: HashMap<Value, usize>,
    /// Fewest pieces that are recorded.
    pub fewest: usize,
}

impl Region<'_> {
    pub fn copy_name(&self, value: Value, label: &str) -> String {
        format!("copy of '{}' to {label}", self.old.nodes[value.0].name)
    }

    pub fn is_kernel(&self, node: usize) -> bool {
        matches!(self.old.nodes[node].body, NodeBody::Kernel { .. })
    }

    /// Whether an engine does the node's work, and does not merely have its value.
    pub fn is_piece(&self, node: usize) -> bool {
        self.device[node].is_some() && self.is_kernel(node) && self.joined.is_kept(node)
    }

    /// Whether something on the host waits for an engine.
    pub fn waits(&self) -> bool {
        !self.fetched.is_empty() || !self.done.is_empty() || !self.crossed.is_empty()
    }

    /// Streams that an engine's work here may be spread over; 0 = as many as it takes.
    pub fn max_streams(&self, placer: &Placer, engine: usize) -> usize {
        let engine = &placer.devices[engine];
        let limit = engine.accelerator().map_or(0, |accelerator| accelerator.max_streams());
        if self.is_inner { 1 } else { streams::most(engine.max_streams(), limit) }
    }

    /// Whether something is copied from the host to an engine each time.
    pub fn copies_anew(&self, on: &OnDevice) -> bool {
        on.upload_values.iter().any(|value| !matches!(self.old.nodes[value.0].body, NodeBody::Constant(_)))
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
    pub fn order(&self) -> Vec<u32> {
        schedule::order(&self.old, self.verified, &vec![true; self.old.nodes.len()], &self.costs)
    }

    /// Finds what leaves the engine that it is on, and which outputs are written in place: those that a node of the
    /// same engine computes, each value once.
    pub fn look_at_crossings(&mut self, placer: &Placer) {
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

    /// Which of these nodes read each value, by position.
    fn readers(&self, nodes: &[usize]) -> HashMap<Value, Vec<usize>> {
        let mut readers: HashMap<Value, Vec<usize>> = HashMap::new();
        for (at, &node) in nodes.iter().enumerate() {
            self.old.nodes[node].inputs().iter().for_each(|&value| readers.entry(value).or_default().push(at));
        }
        readers
    }

    /// The values that an engine stores: its nodes' outputs in their order, then copies to it.
    pub fn stored(&self, engine: usize, nodes: &[usize], uploads: &[Value]) -> Result<(Vec<Value>, Vec<StoredValue>)> {
        let mut readers = self.readers(nodes);
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
            stored.push(StoredValue { bytes, writer, readers, is_kept });
            values.push(value);
        }
        Ok((values, stored))
    }

    /// Where a value is on an engine. If it is a run's own tensor, the node that reads it is given it as one more
    /// input.
    pub fn source_on(&self, on: &OnDevice, value: Value, reads: &mut Vec<Value>) -> ValuePlace {
        if let Some(&(_, place)) = on.uploads.get(&value) {
            return ValuePlace::Arena(place);
        }
        if let Some(&handed) = self.handed.get(&value) {
            return handed;
        }
        let own = self.in_place.get(&value).map(|&(_, output)| (value.0, output));
        match &self.old.nodes[value.0].body {
            NodeBody::Constant(tensor) => ValuePlace::Fixed(tensor.data() as usize),
            NodeBody::Input(_) => self.given(value, reads),
            _ => match own {
                Some(own) => self.given(own, reads),
                None => ValuePlace::Arena(on.places.get(&value).copied().unwrap_or(0)),
            },
        }
    }

    fn given(&self, value: Value, reads: &mut Vec<Value>) -> ValuePlace {
        reads.push(value);
        ValuePlace::Input(reads.len() - 1)
    }

    /// Whether an engine does all of the graph, with tensors in its memory.
    pub fn is_alone(&self, engine: usize, roles: &[units::UnitRole]) -> bool {
        let is_there =
            |node: usize| self.device[node] == Some(engine) || !matches!(self.old.nodes[node].body, NodeBody::Input(_));
        let is_home = |home: &Option<usize>| *home == Some(engine);
        !roles.contains(&units::UnitRole::Other) && (0..roles.len()).all(is_there) && self.homes.iter().all(is_home)
    }
}

impl Segments {
    /// The segment of a piece, from 0 in this graph.
    pub fn of(&self, at: usize) -> usize {
        self.of[at]
    }

    pub fn number_of(&self, at: usize) -> usize {
        self.first + self.of[at]
    }

    /// Whether one piece is over when another one begins, whatever the timing; those of one segment may be told to.
    pub fn is_over(&self, before: usize, then: usize) -> bool {
        self.of[before] == self.of[then] || self.plan.is_over(self.of[before], self.of[then])
    }

    pub fn is_copy(&self, value: Value) -> bool {
        self.copies.contains_key(&value)
    }

    /// Which copies to the engine are part of a segment: those that only its pieces read, and that would begin no
    /// sooner by themselves.
    pub fn take_copies(
        &mut self,
        region: &Region<'_>,
        nodes: &[usize],
        units: &EngineUnits,
        uploads: &[Value],
    ) -> Result<()> {
        let readers = region.readers(nodes);
        for value in uploads {
            let at = &readers[value];
            let segment = self.of[at[0]];
            let is_constant = matches!(region.old.nodes[value.0].body, NodeBody::Constant(_));
            let begins_then = units.before.row(value.0) == units.before.row(nodes[at[0]]);
            let has_one = at.iter().all(|&at| self.of[at] == segment)
                && region.is_worth_recording(&nodes[self.ranges[segment].clone()], self.fewest);
            if !is_constant && begins_then && has_one && region.verified.desc(*value).bytes()? > 0 {
                self.copies.insert(*value, segment);
            }
        }
        Ok(())
    }
}
