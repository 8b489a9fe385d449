//! Placement: a graph whose kernels are on several engines becomes one for the host's executor.
//!
//! A node is on the engine of its kernel. Nodes on engines that work on their own (`Accelerator`) are replaced by nodes
//! of the host's that issue their work (`kernels`), and copies are put on edges that cross: once for each value and
//! engine that it goes to, begun as soon as the value is there, on streams for copies alone. The result is a graph of
//! the host's kernels, tasks, conds and loops, and all that is true of these is true of it: one executor over all
//! engines, failures, cancelling, time limits, partial and nested runs.
//!
//! *Order.* What one engine does for one graph is a list of pieces, in an order that all edges allow. `plan` says which
//! stream each goes to and which events it waits for; control edges see to it that a stream is given its pieces in that
//! order, and that an event is recorded before anybody waits for it. No edge of the host's waits for work that is
//! merely to be ordered behind other work of the same engine.
//!
//! *Memory.* `arena` gives each value a place in the engine's memory, for each run's frame (`frame`).
//!
//! *Regions*, nodes of one engine that its device would do as one, are offered to it before anything else is looked at
//! (`offer`, `convex`).
//!
//! *Branches and loops* with nothing inside but one engine's kernels are pieces of its work (`qualify`): lists of
//! actions with an order and places of their own (`lower`, `flow`), which the device decides in (`control`), or the
//! host on the device's data (`driven`). The graphs inside of all others are placed each for itself: what goes in and
//! comes out is on the host, but for what stays on an engine (`keep`). A loop whose iterations overlap has its graphs
//! once for each slot, with places and events of their own; all others run their iterations one after the other.
#![forbid(unsafe_code)]

pub(in crate::graph) mod choose;
pub(in crate::graph) mod controls;
pub(in crate::graph) mod convex;
pub(in crate::graph) mod copies;
pub(in crate::graph) mod crossings;
pub(in crate::graph) mod edges;
pub(in crate::graph) mod issues;
pub(in crate::graph) mod keep;
pub(in crate::graph) mod lanes;
pub(in crate::graph) mod lower;
pub(in crate::graph) mod neighbours;
pub(in crate::graph) mod offer;
pub(in crate::graph) mod pass;
pub(in crate::graph) mod placer;
pub(in crate::graph) mod qualify;
pub(in crate::graph) mod region;
pub(in crate::graph) mod segments;
pub(in crate::graph) mod straight;
pub(in crate::graph) mod units;

use super::raise;
use crate::base::{Error, Ref, Result};
use crate::engine::{Engine, Tensor};
use crate::graph::build::contents::{Contents, Node, NodeBody};
use crate::graph::build::options::CompileOptions;
use crate::graph::build::shapes::Answers;
use crate::graph::build::verify::{self, Kinds, Verified};
use crate::graph::carry::compiled::Frames;
use crate::graph::carry::device::ProgramDevices;
use crate::graph::carry::device::device_frame::EngineNeeds;
use crate::graph::carry::device::direct::{Direct, DirectWhy};
pub(in crate::graph) use crate::graph::carry::device::frames::DeviceFrames;
use crate::graph::carry::device::kernels::{Begin, End};
use crate::graph::carry::device::part::DeviceNodes;
use crate::graph::carry::device::pick::Verdict;
use crate::graph::plan::schedule::live;
use crate::kernel::Kernel;
pub(in crate::graph) use choose::choose;
use pass::InPlace;
pub use placer::Placement;
use placer::{Placer, Regions};
use std::sync::Arc;

/// A graph for the host's executor.
pub(in crate::graph) struct PlacedGraph {
    pub contents: Contents,
    /// Those of the host, and those that work on their own.
    pub engines: Vec<Ref<Engine>>,
    pub devices: Vec<Ref<Engine>>,
    pub frames: Arc<DeviceFrames>,
    pub direct: Option<Arc<Direct>>,
    pub placement: Placement,
}

impl PlacedGraph {
    pub fn frames(&self) -> Option<Arc<dyn Frames>> {
        Some(Arc::clone(&self.frames) as Arc<dyn Frames>)
    }

    pub fn into_devices(self) -> ProgramDevices {
        ProgramDevices { engines: self.devices, frames: Some(self.frames), direct: self.direct }
    }
}

/// Places the nodes of a graph that was verified; None if all engines are the host's.
pub(in crate::graph) fn place(
    contents: &Contents,
    verified: &Verified,
    engines: &[Ref<Engine>],
    options: &CompileOptions,
    answers: &mut Answers,
) -> Result<Option<PlacedGraph>> {
    let (devices, hosts): (Vec<_>, Vec<_>) = engines.iter().cloned().partition(|engine| engine.accelerator().is_some());
    if devices.is_empty() {
        return Ok(None);
    }
    let Some(host) = hosts.first().cloned() else {
        return Err(Error::invalid(
            "engines: a program needs a cpu engine among them, for its inputs and outputs and for whatever no other \
             engine does",
        ));
    };
    let needs = |engine: &Ref<Engine>| EngineNeeds {
        engine: Ref::clone(engine),
        arena_bytes: 0,
        num_streams: 0,
        num_paces: 0,
        records: Vec::new(),
        segments: Vec::new(),
        spread: Vec::new(),
        controls: Vec::new(),
        uploads: Vec::new(),
        fetches: Vec::new(),
    };
    let frames = Arc::new(DeviceFrames::new(format!("program '{}'", contents.name)));
    let needs = devices.iter().map(needs).collect();
    let peers = peers(&devices);
    let wants_segments = !options.without_segments;
    let wants_device_control = !options.without_device_control;
    let mut placer = Placer {
        host,
        devices,
        peers,
        frames,
        needs,
        wants_segments,
        way: Verdict::NoSegments,
        wants_device_control,
        wants_regions: !options.without_regions,
        constants: Vec::new(),
        taken: Vec::new(),
        made: DeviceNodes::default(),
        neighbours: Vec::new(),
        placement: Placement::default(),
    };

    verified.keep_answers(contents, answers)?;
    let mut contents = strip(contents, verified);
    if verified.kinds.has(Kinds::SWITCH) && placer.has_work(&contents) {
        contents = placer.structure(contents, engines, answers)?;
    }
    if placer.has_work(&contents) {
        placer.regions(&mut contents, engines, answers)?;
    }
    if contents.nodes.iter().any(|node| node.inner().any(|inner| placer.has_work(inner))) {
        let verified = verify::verify(&contents, engines, true, answers)?;
        placer.take(&mut contents, &verified, "")?;
        let verified = verify::verify(&contents, engines, true, answers)?;
        placer.keep(&mut contents, &verified)?;
    }
    if !placer.has_work(&contents) && contents.homes.is_empty() {
        let Placer { devices, frames, placement, .. } = placer;
        return Ok(Some(PlacedGraph { contents, engines: hosts, devices, frames, direct: None, placement }));
    }
    let verified = verify::verify(&contents, engines, true, answers)?;
    let frames = Arc::clone(&placer.frames);
    let bounds: [Arc<dyn Kernel>; 2] = [Arc::new(Begin), Arc::new(End)];
    let [begin, end] = bounds.clone();
    placer.made.bounds.extend(bounds);
    let first = placer.node("begin on devices", begin, Vec::new(), 0)?;
    let InPlace { mut contents, mut work, skippable, .. } = placer.region(contents, &verified, Some(first), None)?;
    if !skippable.is_empty() {
        // A merge does not mind nodes that are skipped.
        let zero = contents.nodes.len();
        contents.nodes.push(placer.nobodys()?);
        work.push(contents.nodes.len());
        let body = NodeBody::Merge { inputs: vec![(zero, 0)] };
        contents.nodes.push(Node { name: "end of what may be skipped".into(), body, after: skippable.into() });
    }
    let mut last = placer.node("end on devices", end, Vec::new(), 0)?;
    last.after = work.into();
    contents.nodes.push(last);

    let Placer { needs, devices, made, mut placement, way, constants, .. } = placer;
    let direct = made.direct(&contents, &devices, &needs, &frames);
    placement.direct = direct.as_ref().map_or_else(|why| *why, |_| DirectWhy::Direct);
    placement.streams = needs.iter().map(|needs| needs.num_streams as u32).sum();
    let way = if way == Verdict::Open && options.without_trial { Verdict::Fixed } else { way };
    frames.counts.pick.set(way);
    placement.runs = Some(Arc::clone(&frames.counts));
    placement.arena_bytes = needs.iter().map(|needs| needs.arena_bytes as u64).sum();
    needs.iter().try_for_each(|needs| needs.engine.start_launcher())?;
    let _ = frames.constants.set(constants);
    let _ = frames.needs.set(needs);
    Ok(Some(PlacedGraph { contents, engines: hosts, devices, frames, direct: direct.ok().map(Arc::new), placement }))
}

impl Placer {
    /// Has all work on engines there whenever its graph is run: switches and merges that are a cond become one, and
    /// whatever else may be skipped goes into a guard, whose values come and go by the host.
    fn structure(&self, contents: Contents, engines: &[Ref<Engine>], answers: &mut Answers) -> Result<Contents> {
        let mut settled = |mut contents: Contents| {
            let verified = verify::verify(&contents, engines, true, answers)?;
            raise::settle(&mut contents, &verified);
            Ok((contents, verified))
        };
        let numbers = [Tensor::of_number(self.host.clone(), 0)?, Tensor::of_number(self.host.clone(), 1)?];
        let (contents, verified) = settled(raise::raise_conds(contents, 0, Some(&numbers))?)?;
        let is_work = |node: &Node| {
            let is_inside = node.inner().any(|inner| self.has_work(inner));
            is_inside || matches!(node.body, NodeBody::Kernel { .. }) && self.device_of(node).is_some()
        };
        Ok(settled(raise::guard(&contents, &verified, &is_work, &numbers[0])?)?.0)
    }

    /// Has devices make one kernel of several nodes, where they take that.
    fn regions(&mut self, contents: &mut Contents, engines: &[Ref<Engine>], answers: &mut Answers) -> Result<()> {
        let takes = self.offers();
        self.placement.regions_why = match takes {
            _ if !self.wants_regions => Regions::Off,
            false => Regions::NotTaken,
            true => Regions::TooSmall,
        };
        if !takes {
            return Ok(());
        }
        let verified = verify::verify(contents, engines, true, answers)?;
        let program = contents.name.clone();
        self.offer(contents, &verified, &program, None)?;
        if self.placement.regions_offered > 0 {
            self.placement.regions_why = self.placement.regions_why.max(Regions::Declined);
        }
        Ok(())
    }
}

/// For each engine the others of its kind that copy straight to it.
fn peers(devices: &[Ref<Engine>]) -> Vec<Vec<usize>> {
    let is_peer = |from: &Engine, to: &Engine| match (from.accelerator(), to.accelerator()) {
        (Some(own), Some(other)) => from.kind() == to.kind() && !from.is_same_device(to) && own.is_peer(other),
        _ => false,
    };
    let from = |to: &Ref<Engine>| (0..devices.len()).filter(|&from| is_peer(&devices[from], to)).collect();
    devices.iter().map(from).collect()
}

/// The graph without the nodes that do not matter; also inside of others.
fn strip(contents: &Contents, verified: &Verified) -> Contents {
    let mut is_kept = live(contents, verified, &vec![true; contents.outputs.len()]);
    contents.inputs().for_each(|input| is_kept[input] = true);
    let all: Vec<usize> = (0..contents.outputs.len()).collect();
    let (mut part, number) = contents.part(&is_kept, &all);
    for (&old, inner) in verified.inner.iter().filter(|(old, _)| is_kept[**old]) {
        let graphs = part.nodes[number[old]].inner_mut().into_iter().zip(inner);
        graphs.for_each(|(graph, verified)| *graph = Arc::new(strip(graph, verified)));
    }
    part
}
