//! The state that all graphs of a program share while they are placed, and the facts for the report.
#![forbid(unsafe_code)]

use super::neighbours::{Neighbour, nobodys_desc};
use crate::base::{Error, Ref, Result};
use crate::engine::{BoundKernel, Engine, Tensor};
use crate::graph::build::contents::{After, Contents, Node, NodeBody};
use crate::graph::carry::device::device_frame::EngineNeeds;
use crate::graph::carry::device::direct;
use crate::graph::carry::device::frames::DeviceFrames;
use crate::graph::carry::device::part::DeviceNodes;
use crate::graph::carry::device::pick::Verdict;
use crate::graph::carry::device::replays::RunCounts;
use crate::graph::plan::actions::Lowered;
use std::sync::Arc;

/// Why a program has segments, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SegmentsWhy {
    #[default]
    NoDevices,
    Off,
    NoRecordings,
    TooShort,
    Segments,
}

impl SegmentsWhy {
    pub fn text(self) -> &'static str {
        match self {
            SegmentsWhy::NoDevices => "no, there are no other engines",
            SegmentsWhy::Off => "no, the compile options say so",
            SegmentsWhy::NoRecordings => "no, no engine records work",
            SegmentsWhy::TooShort => "no, nowhere are there four nodes of an engine's with nothing between them",
            SegmentsWhy::Segments => "yes, where there are four nodes of an engine's or more with nothing between them",
        }
    }
}

/// Why devices have made kernels of several nodes, or why not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Regions {
    #[default]
    NoDevices,
    Off,
    NotTaken,
    TooSmall,
    Declined,
    Compiled,
}

impl Regions {
    pub fn text(self) -> &'static str {
        match self {
            Regions::NoDevices => "no, there are no other engines",
            Regions::Off => "no, the compile options say so",
            Regions::NotTaken => "no, no device makes one kernel of several nodes",
            Regions::TooSmall => "no, nowhere are there two nodes of an engine's that can be one",
            Regions::Declined => "no, the devices decline them",
            Regions::Compiled => "yes, where a device takes them",
        }
    }
}

/// A branch or a loop with work on engines, and who decides in it.
#[derive(Clone, Debug)]
pub struct Decided {
    /// "loop/inner" for one inside of another.
    pub node: String,
    /// None: the host's executor takes it apart.
    pub engine: Option<String>,
    /// Why not the device, if it is not that.
    pub why: Option<String>,
}

impl Decided {
    /// "on cuda:0: by the device"
    pub fn text(&self) -> String {
        match (&self.engine, &self.why) {
            (Some(engine), None) => format!("on {engine}: by the device"),
            (Some(engine), Some(why)) => format!("on {engine}: by the host: {why}"),
            (None, why) => format!("through the host's executor: {}", why.as_deref().unwrap_or("")),
        }
    }
}

/// The facts of placement, for the report.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// Nodes on engines other than the host's.
    pub nodes: u32,
    /// Copies to engines and from them.
    pub uploads: u32,
    pub fetches: u32,
    /// Copies from one engine straight to another, and into outputs on engines.
    pub peer_copies: u32,
    pub deliveries: u32,
    /// Outputs on engines that are written in place.
    pub in_place: u32,
    /// Streams for work, of all engines.
    pub streams: u32,
    /// Events that pieces of work record, and waits of streams for them.
    pub records: u32,
    pub waits: u32,
    /// Memory on engines, and what it would be if no two values shared a byte.
    pub arena_bytes: u64,
    pub value_bytes: u64,
    /// Segments that are recorded; their nodes, the copies to engines in them, and the edges.
    pub segments: u32,
    pub segment_nodes: u32,
    pub segment_copies: u32,
    pub segment_edges: u32,
    pub why: SegmentsWhy,
    /// Sets of nodes that were offered to devices as one, and kernels that these made of such, with the nodes in them.
    pub regions_offered: u32,
    pub regions: u32,
    pub region_nodes: u32,
    pub regions_why: Regions,
    /// Why the first one was declined.
    pub declined: Option<String>,
    /// Kernels inside of branches and loops that are an engine's as a whole.
    pub inner_nodes: u32,
    /// Loops and branches that devices decide in.
    pub device_loops: u32,
    pub device_branches: u32,
    pub decided: Vec<Decided>,
    /// Whether runs on a stream of the engine's are issued to it.
    pub direct: direct::DirectWhy,
    pub runs: Option<Arc<RunCounts>>,
}

impl Placement {
    /// A device declines a region.
    pub(super) fn declined(&mut self, why: &Error) {
        self.regions_why = self.regions_why.max(Regions::Declined);
        self.declined.get_or_insert_with(|| why.message().to_owned());
    }
}

/// A branch or a loop that an engine does as a whole.
pub(in crate::graph) struct TakenNode {
    pub kernel: Ref<BoundKernel>,
    pub lowered: Arc<Lowered>,
    pub by_device: bool,
}

/// The state that all graphs of a program share while they are placed.
pub(in crate::graph) struct Placer {
    pub host: Ref<Engine>,
    /// Engines that work on their own.
    pub devices: Vec<Ref<Engine>>,
    /// For each of them, the others that can copy to it.
    pub peers: Vec<Vec<usize>>,
    pub frames: Arc<DeviceFrames>,
    /// One for each of them.
    pub needs: Vec<EngineNeeds>,
    pub wants_segments: bool,
    /// The verdict so far on the way that segments go.
    pub way: Verdict,
    pub wants_device_control: bool,
    pub wants_regions: bool,
    /// Those in the engines' memory.
    pub constants: Vec<Ref<Tensor>>,
    /// Branches and loops that engines do as a whole.
    pub taken: Vec<TakenNode>,
    pub made: DeviceNodes,
    /// Kernels that hand values on from and to branches and loops.
    pub neighbours: Vec<Neighbour>,
    pub placement: Placement,
}

impl Placer {
    /// Which of the engines that work on their own a node is on.
    pub fn device_of(&self, node: &Node) -> Option<usize> {
        let engine = match &node.body {
            NodeBody::Kernel { kernel, .. } => kernel.engine(),
            NodeBody::Constant(tensor) => tensor.engine(),
            _ => return None,
        };
        self.number_of(engine)
    }

    /// The number of an engine that works on its own.
    pub fn number_of(&self, engine: &Engine) -> Option<usize> {
        self.devices.iter().position(|device| device.is_same_device(engine))
    }

    /// Whether there is anything in a graph, or inside of it, that an engine other than the host's does or has.
    pub fn has_work(&self, contents: &Contents) -> bool {
        contents
            .nodes
            .iter()
            .any(|node| self.device_of(node).is_some() || node.inner().any(|inner| self.has_work(inner)))
    }

    /// The branch or the loop behind a node's kernel, if it is one.
    pub fn taken(&self, node: &Node) -> Option<&TakenNode> {
        let NodeBody::Kernel { kernel, .. } = &node.body else { return None };
        self.taken.iter().find(|taken| std::ptr::eq(&raw const *taken.kernel, &raw const **kernel))
    }

    /// A number of the host's that stands where a value is an engine's.
    pub fn nobodys(&self) -> Result<Node> {
        let tensor = Tensor::create(self.host.clone(), nobodys_desc())?;
        Ok(Node { name: "nobody's".into(), body: NodeBody::Constant(tensor), after: After::new() })
    }

    /// The neighbour behind a node's kernel, if it hands values on.
    pub fn neighbour_of(&self, node: &Node) -> Option<&Neighbour> {
        let NodeBody::Kernel { kernel, .. } = &node.body else { return None };
        self.neighbours.iter().find(|known| std::ptr::eq(&raw const **kernel, &raw const *known.kernel))
    }
}
