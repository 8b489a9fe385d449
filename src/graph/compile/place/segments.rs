//! Which segments there are, what each waits for where it is submitted as one, and the nodes that stand for them.
#![forbid(unsafe_code)]

use super::copies::{CopiesSeen, Turn};
use super::placer::{Placer, SegmentsWhy};
use super::region::{OnDevice, Region, Segments};
use super::units::{self, EngineUnits, FEWEST, FEWEST_ALONE, UnitRole};
use crate::base::sort::sort_by_key;
use crate::base::{Reach, Result};
use crate::graph::build::contents::{NodeBody, Value};
use crate::graph::carry::device::device_frame::{Before, ValuePlace};
use crate::graph::carry::device::kernels::Issue;
use crate::graph::carry::device::part;
use crate::graph::carry::device::pick::Verdict;
use crate::graph::carry::device::segment::{self, CopyIn, Onward, Segment};
use crate::graph::plan::streams::{self, DevicePiece};
use crate::kernel::Kernel;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// A piece that is to become a node, or part of one.
pub(in crate::graph) struct IssuedPiece {
    pub node: usize,
    pub issue: Issue,
    /// The node's inputs.
    pub reads: Vec<Value>,
    pub after: Vec<usize>,
}

impl Placer {
    /// Finds the segments of each engine, and an order of all nodes in which each one's lie together.
    pub(in crate::graph) fn cut(
        &mut self,
        region: &Region<'_>,
        order: Vec<u32>,
    ) -> (Vec<Option<EngineUnits>>, Vec<u32>) {
        let none = |placer: &Placer| (0..placer.devices.len()).map(|_| None).collect();
        if !self.wants_segments {
            self.placement.why = self.placement.why.max(SegmentsWhy::Off);
            return (none(self), order);
        }
        let nodes = &region.old.nodes;
        let after: Vec<Vec<usize>> = nodes.iter().map(|node| node.predecessors().collect()).collect();
        let is_issued =
            |node: usize| matches!(&nodes[node].body, NodeBody::Kernel { kernel, .. } if kernel.kernel().is_issued());
        let mut all = none(self);
        for (engine, units) in all.iter_mut().enumerate() {
            let role = |node: usize| match nodes[node].body {
                _ if region.is_piece(node) && region.device[node] == Some(engine) => match region.taken.get(&node) {
                    Some((_, true)) => UnitRole::Piece,
                    None if !is_issued(node) => UnitRole::Piece,
                    _ => UnitRole::Alone,
                },
                NodeBody::Input(_) | NodeBody::Constant(_) => UnitRole::Source,
                _ if !region.joined.is_kept(node) => UnitRole::Source,
                _ => UnitRole::Other,
            };
            let roles: Vec<UnitRole> = (0..nodes.len()).map(role).collect();
            if !roles.contains(&UnitRole::Piece) {
                continue;
            }
            let can_record = self.devices[engine].accelerator().is_some_and(|accelerator| accelerator.can_record());
            let found = can_record.then(|| units::units(&roles, &order, &after)).flatten();
            let why = if can_record { SegmentsWhy::TooShort } else { SegmentsWhy::NoRecordings };
            let fewest = if region.is_alone(engine, &roles) { FEWEST_ALONE } else { FEWEST };
            let found = found.map(|found| EngineUnits { fewest, ..found });
            *units = found.filter(|found| found.units.iter().any(|unit| region.is_worth_recording(unit, found.fewest)));
            self.placement.why = self.placement.why.max(if units.is_some() { SegmentsWhy::Segments } else { why });
        }
        let joined: Vec<Vec<usize>> =
            all.iter().flatten().flat_map(|units: &EngineUnits| units.units.clone()).collect();
        let order = if joined.is_empty() { order } else { units::together(&joined, &order, &after) };
        (all, order)
    }

    /// The segments of an engine's pieces, whose nodes lie together for each.
    pub(in crate::graph) fn segments(
        &mut self,
        region: &Region<'_>,
        engine: usize,
        (nodes, pieces): (&[usize], &[DevicePiece]),
        units: &EngineUnits,
    ) -> Segments {
        let range = |unit: &Vec<usize>| region.position[unit[0]]..region.position[unit[0]] + unit.len();
        let mut ranges: Vec<Range<usize>> = units.units.iter().map(range).collect();
        sort_by_key(&mut ranges, |range| range.start);
        let mut of = vec![0; nodes.len()];
        for (segment, range) in ranges.iter().enumerate() {
            of[range.clone()].fill(segment);
        }
        let whole: Vec<DevicePiece> = ranges
            .iter()
            .enumerate()
            .map(|(segment, range)| {
                let pieces = &pieces[range.clone()];
                let before = pieces.iter().flat_map(|piece| &piece.after).map(|&at| of[at]);
                let after = before.filter(|&before| before != segment).collect();
                let cost_ns = pieces.iter().map(|piece| piece.cost_ns).fold(0, u64::saturating_add);
                DevicePiece { after, cost_ns, is_first: pieces.iter().any(|piece| piece.is_first) }
            })
            .collect();
        let plan = streams::plan(&whole, region.max_streams(self, engine));
        let needs = &mut self.needs[engine];
        let first = needs.segments.len();
        needs.segments.extend(plan.placed.iter().map(|placed| placed.records));
        needs.spread.resize(needs.segments.len(), Vec::new());
        needs.num_streams = needs.num_streams.max(plan.num_streams);
        let facts = &mut self.placement;
        let recorded = ranges.iter().filter(|range| region.is_worth_recording(&nodes[(*range).clone()], units.fewest));
        facts.segments += recorded.clone().count() as u32;
        facts.segment_nodes += recorded.map(|range| range.len() as u32).sum::<u32>();
        Segments { first, ranges, of, plan, copies: HashMap::new(), fewest: units.fewest }
    }

    /// Makes nodes of an engine's pieces: one for each, or one for each segment.
    pub(in crate::graph) fn join(
        &mut self,
        region: &mut Region<'_>,
        on: &OnDevice,
        issued: Vec<IssuedPiece>,
        turns: &HashMap<Value, Turn>,
    ) -> Result<()> {
        let Some(segments) = &on.segments else {
            for IssuedPiece { node, issue, reads, after } in issued {
                let num_outputs = issue.given.len();
                let name = region.old.nodes[node].name.to_string();
                let kernel: Arc<dyn Kernel> = match issue.control {
                    Some(_) => {
                        let segment = Segment::alone(issue);
                        self.made.pieces.push(part::PieceNode::Segment(Arc::clone(&segment)));
                        segment
                    }
                    None => {
                        let issue = Arc::new(issue);
                        self.made.pieces.push(part::PieceNode::Issue(Arc::clone(&issue)));
                        issue
                    }
                };
                let mut placed = self.node(&name, kernel, reads, num_outputs)?;
                placed.after = after.into();
                region.new[node] = placed;
                region.work.push(node);
            }
            return Ok(());
        };
        let position: HashMap<Value, usize> =
            on.upload_values.iter().enumerate().map(|(at, &value)| (value, at)).collect();
        let mut seen = vec![CopiesSeen::new(on.upload_values.len()); segments.plan.num_streams];
        let mut behind: Vec<CopiesSeen> = Vec::with_capacity(segments.ranges.len());
        let mut tails: Vec<Option<usize>> = vec![None; segments.plan.num_streams];
        let mut issued = issued.into_iter();
        for (segment, range) in segments.ranges.iter().enumerate() {
            let placed = &segments.plan.placed[segment];
            let last = on.nodes[range.end - 1];
            let seen = &mut seen[placed.stream];
            let mut before = Vec::new();
            let mut after: Vec<usize> = tails[placed.stream].replace(last).into_iter().collect();
            for &wait in &placed.waits {
                before.push(Before::Segment(segments.first + wait));
                after.push(on.nodes[segments.ranges[wait].end - 1]);
                seen.join(&behind[wait]);
            }
            let reads = on.nodes[range.clone()].iter().flat_map(|&node| region.old.nodes[node].inputs());
            let mut copied: Vec<Value> = reads.copied().filter(|value| on.uploads.contains_key(value)).collect();
            sort_by_key(&mut copied, |value| (std::cmp::Reverse(turns.get(value)), *value));
            copied.dedup();
            let mut copies = Vec::new();
            for value in copied {
                let (number, to) = on.uploads[&value];
                let Some(number) = number else { continue };
                if segments.is_copy(value) {
                    let bytes = region.verified.desc(value).bytes()?;
                    let name = region.copy_name(value, &self.devices[on.engine].label());
                    copies.push((value, CopyIn { upload: number, to, bytes, name }));
                } else if !seen.meet(position[&value], turns.get(&value).copied()) {
                    let is_constant = matches!(region.old.nodes[value.0].body, NodeBody::Constant(_));
                    before.push(if is_constant { Before::Constant(number) } else { Before::Upload(number) });
                }
            }
            behind.push(seen.clone());
            let is_recorded = region.is_worth_recording(&on.nodes[range.clone()], segments.fewest);
            let edges = is_recorded.then(|| on.edges(region, range, &copies));
            if is_recorded {
                let facts = &mut self.placement;
                facts.segment_copies += copies.len() as u32;
                facts.segment_edges += edges.iter().flatten().map(|after| after.len() as u32).sum::<u32>();
            }
            let (mut inputs, mut place_of) = (Vec::new(), HashMap::new());
            let mut given = Vec::new();
            let mut issues = Vec::with_capacity(range.len());
            for IssuedPiece { node, mut issue, reads, after: waits } in issued.by_ref().take(range.len()) {
                after.extend(waits);
                let own = given.len();
                region.joined.join(node, last, own);
                let moved: Vec<ValuePlace> = reads
                    .into_iter()
                    .map(|read| match region.joined.value(read) {
                        (of, output) if of == last => ValuePlace::Output(output),
                        _ => ValuePlace::Input(*place_of.entry(read).or_insert_with(|| {
                            inputs.push(read);
                            inputs.len() - 1
                        })),
                    })
                    .collect();
                for (source, _) in issue.inputs.iter_mut().chain(&mut issue.outputs) {
                    *source = match *source {
                        ValuePlace::Input(input) => moved[input],
                        ValuePlace::Output(output) => ValuePlace::Output(own + output),
                        there => there,
                    };
                }
                given.append(&mut issue.given);
                issues.push(issue);
            }
            after.retain(|&before| region.joined.of(before) != last);
            let first = &region.old.nodes[on.nodes[range.start]].name;
            let name = match range.len() {
                1 => first.to_string(),
                n => format!("{n} nodes from '{first}' to '{}'", region.old.nodes[last].name),
            };
            let (num_inputs, num_outputs) = (inputs.len(), given.len());
            self.spread(on.engine, segments.first + segment, placed.stream, &issues, is_recorded);
            let copies: Vec<CopyIn> = copies.into_iter().map(|(_, copy)| copy).collect();
            let steps = edges.map(|edges| segment::steps(edges, &copies, &issues));
            let own = segment::own(copies.len(), &issues);
            let node = Arc::new_cyclic(|me| Segment {
                rests: Onward::of_pieces(me, &issues),
                frames: Arc::clone(&self.frames),
                engine: on.engine,
                label: self.label(on.engine),
                number: Some(segments.first + segment),
                name: name.clone(),
                issues,
                num_inputs,
                given,
                stream: placed.stream,
                before,
                copies,
                after: steps,
                own,
            });
            self.made.pieces.push(part::PieceNode::Segment(Arc::clone(&node)));
            let mut node = self.node(&name, node, inputs, num_outputs)?;
            node.after = after.into();
            region.new[last] = node;
            region.work.push(last);
        }
        Ok(())
    }
}

impl Placer {
    /// Notes over which streams a segment is spread, and what that means for the way that segments go.
    fn spread(&mut self, engine: usize, segment: usize, stream: usize, issues: &[Issue], is_recorded: bool) {
        let issued: BTreeSet<usize> = issues.iter().map(|issue| issue.stream).collect();
        let is_spread = is_recorded && issued.len() > 1;
        let has_control = issues.iter().any(|issue| issue.control.is_some());
        self.way = match self.way {
            Verdict::Control => Verdict::Control,
            _ if has_control => Verdict::Control,
            Verdict::NoSegments | Verdict::OneStream if is_spread => Verdict::Open,
            Verdict::NoSegments if is_recorded => Verdict::OneStream,
            way => way,
        };
        self.needs[engine].spread[segment] =
            issued.into_iter().chain([stream]).collect::<BTreeSet<_>>().into_iter().collect();
    }
}

impl OnDevice {
    /// The predecessors of each step of a segment's recording: its copies, then its pieces. Edges that others imply are
    /// left out.
    fn edges(&self, region: &Region<'_>, range: &Range<usize>, copies: &[(Value, CopyIn)]) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new(); copies.len()];
        let mut reach = Reach::new(copies.len() + range.len());
        let step = |at: usize| copies.len() + at - range.start;
        for at in range.clone() {
            let inputs = region.old.nodes[self.nodes[at]].inputs();
            let copied = copies.iter().enumerate().filter(|(_, (value, _))| inputs.contains(value));
            let mut after: Vec<usize> = copied.map(|(step, _)| step).collect();
            let pieces = self.pieces[at].after.iter().chain(self.overwritten[at].iter());
            after.extend(pieces.filter(|before| range.contains(before)).map(|&before| step(before)));
            reach.add(step(at), &mut after);
            all.push(after);
        }
        all
    }
}
