//! A compiled graph.

use super::dump::{self, DumpFormat};
use super::exec::{Flight, Step};
use crate::base::object::tag;
use crate::base::{Desc, Error, Kind, Ref, Result, live};
use crate::engine::{Engine, Tensor};
use crate::kernel::{Kernel, Task};
use crate::sync::{HandOff, OnceLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// An input or output of a program.
#[derive(Clone, Debug)]
pub struct Port {
    pub name: String,
    pub desc: Desc,
}

/// What a node does when it is run.
pub(super) enum Body {
    Kernel(Arc<dyn Kernel>),
    Task(Arc<dyn Task>),
}

/// The part of a node that every run reads. Nodes are numbered in schedule order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// First view of its arguments: inputs, then outputs.
    pub args: u32,
    /// First of its edges; they end where the next node's begin.
    pub edges: u32,
    pub num_inputs: u16,
    pub num_outputs: u16,
    /// Index into `Layout::scratch`, or NO_SCRATCH.
    pub scratch: u32,
}

pub(super) const NO_SCRATCH: u32 = u32::MAX;

/// An edge to a node that may become ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub target: u32,
    /// The counter that this arrival goes to, or DIRECT: the target waits for nothing else.
    pub counter: u32,
}

pub(super) const DIRECT: u32 = u32::MAX;

/// Where a view's memory comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Offset into the step's arena.
    Arena(usize),
    /// A constant, by index.
    Constant(usize),
    /// The run's input or output, by index; set for each run.
    Input(usize),
    Output(usize),
}

/// One argument of one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arg {
    pub desc: Desc,
    pub bytes: usize,
    pub place: Place,
}

/// Everything about a program that no run changes, but for the measured costs.
pub(super) struct Layout {
    pub name: String,
    pub engines: Vec<Ref<Engine>>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub names: Vec<String>,
    pub bodies: Vec<Body>,
    /// One more than there are nodes: the last one closes the edges.
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// Start value of each counter.
    pub counters: Vec<u32>,
    /// Nodes that wait for nothing, the most urgent last.
    pub roots: Vec<u32>,
    pub args: Vec<Arg>,
    pub constants: Vec<Ref<Tensor>>,
    pub arena_bytes: usize,
    /// Scratch bytes per slot of each node that wants some.
    pub scratch: Vec<usize>,
    pub hop_ns: u64,
    /// Estimated or measured run time of each node, in nanoseconds. Statistics: ORDERING Relaxed.
    pub costs: Vec<AtomicU32>,
    /// What a thread that takes a node takes along: its cost and that of everything that is handed over directly
    /// behind it. Nodes too cheap to be worth a thread count as nothing. Follows `costs` (`weigh`). Statistics:
    /// ORDERING Relaxed.
    pub worth: Vec<AtomicU32>,
    /// The costs of all nodes that count, in nanoseconds.
    pub total_ns: AtomicU64,
    /// Runs begun.
    pub runs: AtomicU64,
}

/// A node cheaper than this, in nanoseconds, is no reason to involve another thread: the cache lines that would
/// move cost as much.
const WORTH_A_THREAD_NS: u32 = 50;

impl Layout {
    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    /// Recomputes `worth` and `total_ns` from `costs`. Edges go up, so one pass from the end does.
    pub fn weigh(&self) {
        let mut total = 0;
        for node in (0..self.len()).rev() {
            let cost = self.costs[node].load(Relaxed);
            let counts = if cost < WORTH_A_THREAD_NS { 0 } else { cost };
            total += u64::from(counts);
            let behind = self.edges(node).iter().filter(|edge| edge.counter == DIRECT);
            let worth =
                behind.fold(counts, |worth, edge| worth.saturating_add(self.worth[edge.target as usize].load(Relaxed)));
            self.worth[node].store(worth, Relaxed);
        }
        self.total_ns.store(total, Relaxed);
    }

    /// The edges that leave a node.
    pub fn edges(&self, node: usize) -> &[Edge] {
        &self.edges[self.nodes[node].edges as usize..self.nodes[node + 1].edges as usize]
    }
}

/// Steps that a program keeps for later runs.
const KEPT_STEPS: usize = 32;

/// Runs on streams that may be queued without an allocation.
const KEPT_FLIGHTS: usize = 32;

/// Puts a value into the first empty place; drops it if there is none.
fn put_first<T>(places: &[HandOff<T>], value: T) {
    let _ = places.iter().try_fold(value, |value, place| match place.put(value) {
        Ok(()) => Err(()),
        Err(value) => Ok(value),
    });
}

/// A compiled graph: immutable, shared, any number of runs at once.
pub struct Program {
    pub(super) layout: Arc<Layout>,
    steps: [HandOff<Arc<Step>>; KEPT_STEPS],
    flights: [HandOff<Arc<Flight>>; KEPT_FLIGHTS],
    /// Makes the stock of flights, at the first run on a stream.
    stock: OnceLock<()>,
}

impl Kind for Program {
    const TAG: u32 = tag::PROGRAM;
    const NAME: &'static str = "program";
    const COUNTER: live::Counter = live::Counter::Programs;
}

impl Program {
    pub(super) fn new(layout: Layout) -> Program {
        Program {
            layout: Arc::new(layout),
            steps: std::array::from_fn(|_| HandOff::default()),
            flights: std::array::from_fn(|_| HandOff::default()),
            stock: OnceLock::new(),
        }
    }

    pub fn name(&self) -> &str {
        &self.layout.name
    }

    pub fn inputs(&self) -> &[Port] {
        &self.layout.inputs
    }

    pub fn outputs(&self) -> &[Port] {
        &self.layout.outputs
    }

    /// Number of nodes that a run executes.
    pub fn num_nodes(&self) -> usize {
        self.layout.len()
    }

    /// Port `index`, or an error that says how many there are.
    pub fn port(ports: &[Port], index: usize) -> Result<&Port> {
        ports
            .get(index)
            .ok_or_else(|| Error::out_of_range(format!("index is {index}, the program has {}", ports.len())))
    }

    pub fn dump(&self, format: DumpFormat) -> String {
        dump::program(&self.layout, format)
    }

    /// A step for a run on up to `workers` threads: one that is kept, else a new one.
    pub(super) fn take_step(&self, workers: usize) -> Result<Arc<Step>> {
        for place in &self.steps {
            if let Some(step) = place.take() {
                if step.workers() >= workers {
                    return Ok(step);
                }
                // Made for a narrower pool: let it go, the wider one serves both.
                break;
            }
        }
        Step::create(&self.layout, workers)
    }

    /// Keeps a step for a later run, if there is room.
    pub(super) fn give_step(&self, step: Arc<Step>) {
        put_first(&self.steps, step);
    }

    /// An empty flight. The first call makes as many as are kept, so that later runs allocate nothing while no more
    /// than that many are queued.
    pub(super) fn take_flight(&self) -> Arc<Flight> {
        let make = || Arc::new(Flight::new(self.inputs().len() + self.outputs().len()));
        self.stock.get_or_init(|| self.flights.iter().for_each(|_| self.give_flight(make())));
        self.flights.iter().find_map(HandOff::take).unwrap_or_else(make)
    }

    /// Keeps an empty flight for a later run, if there is room.
    pub(super) fn give_flight(&self, flight: Arc<Flight>) {
        put_first(&self.flights, flight);
    }
}
