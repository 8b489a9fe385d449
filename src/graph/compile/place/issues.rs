//! The nodes of the host's that copy to an engine and issue its work.
#![forbid(unsafe_code)]

use super::copies::{CopiesSeen, Turn, order_of};
use super::neighbours::{NeighbourRole, nobodys_desc};
use super::placer::Placer;
use super::region::{OnDevice, Region};
use super::segments::IssuedPiece;
use crate::base::Result;
use crate::base::sort::sort_by_key;
use crate::graph::build::contents::{NodeBody, Value};
use crate::graph::carry::device::device_frame::{Before, ValuePlace};
use crate::graph::carry::device::kernels::{Issue, Upload};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

impl Placer {
    /// The variables of a loop that a node on an engine reads or hands on.
    fn variables_of(&self, region: &Region<'_>, node: usize) -> Vec<usize> {
        let node = &region.old.nodes[node];
        let read = node.inputs().iter().map(|&(maker, _)| &region.old.nodes[maker]);
        let ports = read.filter_map(|maker| self.neighbour_of(maker)).filter(|of| of.role == NeighbourRole::Port);
        let all = ports.chain(self.neighbour_of(node)).flat_map(|of| of.variables.iter().copied());
        let mut all: Vec<usize> = all.collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The nodes that copy to an engine and issue its work.
    pub(in crate::graph) fn issue(&mut self, region: &mut Region<'_>, on: &OnDevice) -> Result<()> {
        let engine = on.engine;
        let label = self.devices[engine].label();
        let mut upload_nodes = HashMap::new();
        let mut in_line: HashSet<Value> = HashSet::new();
        // Values that are there when the graph begins are copied in one order, so that a stream behind one copy is
        // behind those before it: inputs in one, and constants, which are copied in the first run only, in another.
        let mut turns: HashMap<Value, Turn> = HashMap::new();
        let mut last: [Option<usize>; 2] = [None; 2];
        let mut count = [0; 2];
        for &value in &on.upload_values {
            let (number, to) = on.uploads[&value];
            let Some(number) = number else {
                upload_nodes.insert(value, region.crossed[&(value, engine)]);
                continue;
            };
            let name = region.copy_name(value, &label);
            let is_recorded = on.segments.as_ref().is_some_and(|segments| segments.is_copy(value));
            let is_constant = matches!(region.old.nodes[value.0].body, NodeBody::Constant(_));
            let (frames, desc) = (Arc::clone(&self.frames), *region.verified.desc(value));
            let is_in_line = !is_constant && region.is_upload_in_line(on, value);
            if is_in_line {
                in_line.insert(value);
            }
            let upload = Arc::new(Upload {
                frames,
                engine,
                label: self.label(engine),
                number,
                to,
                desc,
                is_constant,
                is_recorded,
                stream: is_in_line.then_some(0),
                name: name.clone(),
            });
            self.made.uploads.push(Arc::clone(&upload));
            let source = region.fetched.get(&value).map_or(value, |&fetch| (fetch, 0));
            let mut node = self.node(&name, upload, vec![source], 0)?;
            let turn = order_of(&region.old.nodes[value.0]).filter(|_| !is_in_line);
            if let (Some(order), None) = (turn, region.device[value.0]) {
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
        let mut seen = vec![CopiesSeen::new(on.upload_values.len()); on.plan.num_streams];
        let mut behind: Vec<CopiesSeen> = Vec::with_capacity(on.nodes.len());
        let mut issued = Vec::with_capacity(on.nodes.len());
        let position: HashMap<Value, usize> =
            on.upload_values.iter().enumerate().map(|(at, &value)| (value, at)).collect();
        for (at, &node) in on.nodes.iter().enumerate() {
            let (placed, piece) = (&on.plan.placed[at], on.first_piece + at);
            let old = &region.old.nodes[node];
            let NodeBody::Kernel { kernel, inputs, num_outputs } = &old.body else { continue };
            // Edges of the host's stay; those within the engine are the stream's.
            let is_ours = |before: &usize| region.device[*before] == Some(engine) && region.is_piece(*before);
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
            sort_by_key(&mut copied, |value| std::cmp::Reverse(turns.get(value)));
            for value in copied {
                after.push(upload_nodes[&value]);
                // A value straight from another engine is there when the node is over.
                let Some(number) = on.uploads[&value].0 else { continue };
                if !in_line.contains(&value) && !seen[placed.stream].meet(position[&value], turns.get(&value).copied())
                {
                    before.push(Before::Upload(number));
                    self.placement.waits += 1;
                }
            }
            behind.push(seen[placed.stream].clone());
            after.extend(tails[placed.stream].replace(node));
            if self.neighbour_of(old).is_some_and(|of| of.role == NeighbourRole::Next) {
                // The places that it writes have been read.
                let fetched = region.fetched.iter().map(|(value, &node)| (*value, node));
                let crossed = region.crossed.iter().map(|(&(value, _), &node)| (value, node));
                let places = || (0..*num_outputs).filter_map(|output| region.handed.get(&(node, output)));
                let is_there = |value: &Value| region.handed.get(value).is_some_and(|at| places().any(|to| to == at));
                after.extend(fetched.chain(crossed).filter(|(value, _)| is_there(value)).map(|(_, node)| node));
            }
            after.sort_unstable();
            after.dedup();
            let mut reads = Vec::new();
            let inputs: Vec<_> = inputs
                .iter()
                .map(|&value| (region.source_on(on, value, &mut reads), *region.verified.desc(value)))
                .collect();
            let mut given = Vec::new();
            let mut outputs = Vec::new();
            for output in 0..*num_outputs {
                let (value, desc) = ((node, output), *region.verified.desc((node, output)));
                let own = region.in_place.get(&value).map(|&(_, own)| ValuePlace::Output(own));
                given.extend(own.map(|_| desc));
                outputs.push((own.unwrap_or_else(|| region.source_on(on, value, &mut reads)), desc));
            }
            if region.overlaps {
                let variables = self.variables_of(region, node);
                let ports: Vec<usize> = region.old.inputs().collect();
                reads.extend(variables.iter().map(|&variable| (ports[variable], 0)));
                if self.neighbour_of(old).is_some_and(|of| of.role == NeighbourRole::Next) {
                    given.extend(self.neighbour_of(old).iter().flat_map(|of| &of.variables).map(|_| nobodys_desc()));
                }
            }
            let control = self.control(region, on, (node, &inputs, &outputs))?;
            let issue = Issue {
                control,
                frames: Arc::clone(&self.frames),
                engine,
                label: self.label(engine),
                stream: placed.stream,
                piece,
                before,
                records: self.needs[engine].records[piece],
                kernel: kernel.clone(),
                issuer: kernel.kernel().issuer().map_err(|error| error.within(format_args!("node '{}'", old.name)))?,
                inputs,
                outputs,
                num_inputs: reads.len(),
                given,
                name: format!("node '{}'", old.name),
            };
            issued.push(IssuedPiece { node, issue, reads, after });
        }
        self.join(region, on, issued, &turns)
    }
}
