//! Edges that leave an engine: to the host, to another engine, and to a run's own tensors.
#![forbid(unsafe_code)]

use super::neighbours::NeighbourRole;
use super::placer::Placer;
use super::region::Segments;
use super::region::{OnDevice, Region};
use crate::base::{Error, Result};
use crate::graph::build::contents::Value;
use crate::graph::carry::device::device_frame::ValuePlace;
use crate::graph::carry::device::replays::ValueWriter;
use crate::graph::carry::device::to_host::{Carry, CopyEnd, Done};
use crate::kernel::Kernel;
use std::sync::Arc;

impl Placer {
    /// Brings values to the host that it, or an engine out of reach, reads; and has nodes of the host's wait for work
    /// without data.
    pub(in crate::graph) fn edges_to_host(&mut self, region: &mut Region<'_>, all: &[OnDevice]) -> Result<()> {
        for value in region.wanted_on_host.clone() {
            let name = format!("fetch of '{}'", region.old.nodes[value.0].name);
            let fetch = self.carry(region, all, value, CopyEnd::Host(ValuePlace::Output(0)), true, &name)?;
            region.fetched.insert(value, fetch);
            self.placement.fetches += 1;
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
                let is_entered =
                    self.neighbour_of(&region.old.nodes[before]).is_some_and(|of| of.role == NeighbourRole::Enter);
                if region.is_piece(before) && region.device[index] != region.device[before] && !is_entered {
                    region.new[index].after[at] = self.done(region, all, before)?;
                }
            }
            // Work that is done for its effects alone is over before the run is.
            if region.is_piece(index) && region.old.nodes[index].num_outputs() == 0 {
                self.done(region, all, index)?;
            }
        }
        Ok(())
    }

    /// Copies values straight from one engine to another that reads them.
    pub(in crate::graph) fn edges_to_peers(&mut self, region: &mut Region<'_>, all: &[OnDevice]) -> Result<()> {
        for on in all {
            for &value in &on.upload_values {
                if !region.is_straight(self, value, on.engine) {
                    continue;
                }
                let (_, place) = on.uploads[&value];
                let name = region.copy_name(value, &self.devices[on.engine].label());
                let to = CopyEnd::Peer(on.engine, ValuePlace::Arena(place));
                let copy = self.carry(region, all, value, to, false, &name)?;
                region.crossed.insert((value, on.engine), copy);
                self.placement.peer_copies += 1;
            }
        }
        Ok(())
    }

    /// The graph's outputs: those on engines are written in place, or copied there.
    pub(in crate::graph) fn outputs(
        &mut self,
        region: &mut Region<'_>,
        all: &[OnDevice],
    ) -> Result<Vec<(String, Value)>> {
        let mut outputs = region.old.outputs.clone();
        for (number, (name, output)) in outputs.iter_mut().enumerate() {
            let value = *output;
            *output = match region.homes[number] {
                None => region.fetched.get(&value).map_or(value, |&fetch| (fetch, 0)),
                Some(_) if region.in_place.get(&value).is_some_and(|&(of, _)| of == number) => {
                    self.done(region, all, value.0)?;
                    self.placement.in_place += 1;
                    (value.0, region.in_place[&value].1)
                }
                Some(home) => (self.deliver(region, all, value, home, &format!("copy to output '{name}'"))?, 0),
            };
        }
        Ok(outputs)
    }

    /// A node that copies a value into a run's own tensor on engine `home`.
    fn deliver(
        &mut self,
        region: &mut Region<'_>,
        all: &[OnDevice],
        value: Value,
        home: usize,
        name: &str,
    ) -> Result<usize> {
        self.placement.deliveries += 1;
        let output = ValuePlace::Output(0);
        match region.device[value.0] {
            Some(engine) if engine == home => self.carry(region, all, value, CopyEnd::Own(output), true, name),
            Some(_) if region.is_straight(self, value, home) => {
                self.carry(region, all, value, CopyEnd::Peer(home, output), true, name)
            }
            _ => {
                let from = region.fetched.get(&value).map_or(value, |&fetch| (fetch, 0));
                let number = self.next_fetch(home, region.verified.desc(value).bytes()?);
                let copy = Carry {
                    frames: Arc::clone(&self.frames),
                    engine: home,
                    label: self.label(home),
                    number,
                    from: CopyEnd::Host(ValuePlace::Input(0)),
                    to: CopyEnd::Own(output),
                    writer: None,
                    stream: None,
                    num_inputs: 1,
                    has_output: true,
                    desc: *region.verified.desc(value),
                    name: name.to_owned(),
                };
                let node = self.node(name, Arc::new(copy), vec![from], 1)?;
                region.new.push(node);
                let number = region.new.len() - 1;
                let is_skippable = region.verified.presences.may_be_absent(value);
                if is_skippable { &mut region.skippable } else { &mut region.work }.push(number);
                Ok(number)
            }
        }
    }

    /// A node that copies a value of an engine's, on that engine.
    fn carry(
        &mut self,
        region: &mut Region<'_>,
        all: &[OnDevice],
        value: Value,
        to: CopyEnd,
        has_output: bool,
        name: &str,
    ) -> Result<usize> {
        let engine = region.device[value.0].unwrap_or(0);
        let staged = if matches!(to, CopyEnd::Host(_)) { region.verified.desc(value).bytes()? } else { 0 };
        let number = self.next_fetch(engine, staged);
        let is_in_line = matches!(to, CopyEnd::Host(_)) && region.is_fetch_in_line(&all[engine], value);
        let writer = self.follow(region, all, value.0, is_in_line);
        let mut inputs = Vec::new();
        let from = CopyEnd::Own(region.source_on(&all[engine], value, &mut inputs));
        let copy = Carry {
            frames: Arc::clone(&self.frames),
            engine,
            label: self.label(engine),
            number,
            from,
            to,
            writer: writer.filter(|_| !is_in_line),
            stream: is_in_line.then_some(0),
            num_inputs: inputs.len(),
            has_output,
            desc: *region.verified.desc(value),
            name: name.to_owned(),
        };
        let mut node = self.node(name, Arc::new(copy), inputs, usize::from(has_output))?;
        node.after = writer.is_some().then_some(value.0).into_iter().collect();
        Ok(region.push_work(node))
    }

    /// Has the host wait for work, too, that it needs nothing of, as a write to a variable: a run, or an iteration, is
    /// over when all of it is. A piece that is awaited covers those before it on the engine.
    pub(in crate::graph) fn ends(&mut self, region: &mut Region<'_>, all: &[OnDevice]) -> Result<()> {
        for on in all {
            let mut covered = Covered::new(on);
            let is_ours = |node: &&usize| region.device[**node] == Some(on.engine);
            region.awaited.iter().filter(is_ours).for_each(|&node| covered.add(on, region.position[node]));
            for at in (0..on.nodes.len()).rev() {
                if !covered.has(on, at) {
                    self.done(region, all, on.nodes[at])?;
                    covered.add(on, at);
                }
            }
        }
        Ok(())
    }

    /// A node that completes when the work of another one is done.
    fn done(&mut self, region: &mut Region<'_>, all: &[OnDevice], before: usize) -> Result<usize> {
        if let Some(&done) = region.done.get(&before) {
            return Ok(done);
        }
        let engine = region.device[before].unwrap_or(0);
        let number = self.next_fetch(engine, 0);
        let is_in_line = region.is_end_in_line(&all[engine], before);
        let Some(writer) = self.follow(region, all, before, is_in_line) else {
            return Err(Error::internal("the end of work that nobody does"));
        };
        let name = format!("end of '{}'", region.old.nodes[before].name);
        let (writer, stream) = if is_in_line { (None, Some(0)) } else { (Some(writer), None) };
        let (frames, label) = (Arc::clone(&self.frames), self.label(engine));
        let done = Done { frames, engine, label, number, writer, stream };
        let done: Arc<dyn Kernel> = Arc::new(done);
        self.made.bounds.push(Arc::clone(&done));
        let mut node = self.node(&name, done, Vec::new(), 0)?;
        node.after = std::iter::once(before).collect();
        region.done.insert(before, region.new.len());
        Ok(region.push_work(node))
    }

    /// The number of one more that is asked of an engine's stream of fetches, with so many bytes from or to the host's
    /// memory.
    fn next_fetch(&mut self, engine: usize, bytes: usize) -> usize {
        self.needs[engine].fetches.push(bytes);
        self.needs[engine].fetches.len() - 1
    }

    /// Something follows a node's work: what does it, if anything does, which then records, unless that is in line.
    fn follow(
        &mut self,
        region: &mut Region<'_>,
        all: &[OnDevice],
        node: usize,
        is_in_line: bool,
    ) -> Option<ValueWriter> {
        let engine = region.device[node].filter(|_| region.is_piece(node))?;
        let (on, at) = (&all[engine], region.position[node]);
        let piece = on.first_piece + at;
        self.needs[engine].records[piece] |= !is_in_line;
        region.awaited.push(node);
        let segment = on.segments.as_ref().map(|segments| segments.number_of(at));
        if let Some(segment) = segment {
            self.needs[engine].segments[segment] = true;
        }
        Some(ValueWriter { piece, segment })
    }
}

impl Region<'_> {
    /// Whether another engine's value comes to this one without the host.
    pub fn is_straight(&self, placer: &Placer, value: Value, to: usize) -> bool {
        self.device[value.0].is_some_and(|from| placer.peers[to].contains(&from))
    }
}

/// The pieces that are over on an engine when some are, whichever way a run goes: on each stream, and in segments.
struct Covered {
    pieces: Vec<u32>,
    segments: Vec<u32>,
}

impl Covered {
    fn new(on: &OnDevice) -> Covered {
        let segments = on.segments.as_ref().map_or(0, |segments| segments.plan.num_streams);
        Covered { pieces: vec![0; on.plan.num_streams], segments: vec![0; segments] }
    }

    fn add(&mut self, on: &OnDevice, at: usize) {
        on.plan.cover(at, &mut self.pieces);
        if let Some(segments) = &on.segments {
            segments.plan.cover(segments.of(at), &mut self.segments);
        }
    }

    fn has(&self, on: &OnDevice, at: usize) -> bool {
        let is_in = |segments: &Segments| segments.plan.is_covered(segments.of(at), &self.segments);
        on.plan.is_covered(at, &self.pieces) && on.segments.as_ref().is_none_or(is_in)
    }
}
