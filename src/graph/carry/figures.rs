//! Statistics of a program: of its runs, and on request of each node.
#![forbid(unsafe_code)]

use crate::graph::plan::Body;
use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One node's runs. Statistics: ORDERING Relaxed.
#[derive(Debug)]
pub(in crate::graph) struct Figures {
    count: AtomicU64,
    total_ns: AtomicU64,
    min_ns: AtomicU64,
    max_ns: AtomicU64,
    /// Between being ready and beginning. It is 0 in a walk along the array: a node is ready when the walk comes to it.
    waited_ns: AtomicU64,
}

impl Default for Figures {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Figures { count: zero(), total_ns: zero(), min_ns: AtomicU64::new(u64::MAX), max_ns: zero(), waited_ns: zero() }
    }
}

impl Figures {
    pub fn add(&self, ns: u64) {
        self.count.fetch_add(1, Relaxed);
        self.total_ns.fetch_add(ns, Relaxed);
        self.min_ns.fetch_min(ns, Relaxed);
        self.max_ns.fetch_max(ns, Relaxed);
    }

    pub fn add_wait(&self, ns: u64) {
        self.waited_ns.fetch_add(ns, Relaxed);
    }

    /// The statistics, for the node of this name.
    pub fn told(&self, name: &str) -> NodeStats {
        let count = self.count.load(Relaxed);
        NodeStats {
            name: name.to_owned(),
            count,
            total_ns: self.total_ns.load(Relaxed),
            min_ns: if count == 0 { 0 } else { self.min_ns.load(Relaxed) },
            max_ns: self.max_ns.load(Relaxed),
            waited_ns: self.waited_ns.load(Relaxed),
        }
    }
}

/// The statistics of a program's nodes. A program that runs a part of another one shares those of the other's nodes.
#[derive(Debug)]
pub(in crate::graph) struct NodeFigures {
    all: Arc<[Figures]>,
    /// The number of each node among them, or NOT_COUNTED; `None` = its own.
    numbers: Option<Box<[u32]>>,
}

/// For a node that the other program lacks.
pub(in crate::graph) const NOT_COUNTED: u32 = u32::MAX;

impl NodeFigures {
    pub fn new(nodes: usize) -> NodeFigures {
        NodeFigures { all: (0..nodes).map(|_| Figures::default()).collect(), numbers: None }
    }

    /// The same for a program whose nodes have these numbers here.
    pub fn shared(&self, numbers: &[u32]) -> NodeFigures {
        NodeFigures { all: Arc::clone(&self.all), numbers: Some(numbers.into()) }
    }

    #[inline]
    pub fn of(&self, node: usize) -> Option<&Figures> {
        let number = self.numbers.as_ref().map_or(node, |numbers| numbers[node] as usize);
        self.all.get(number)
    }
}

/// A node's statistics, as reported.
#[derive(Clone, Debug)]
pub struct NodeStats {
    pub name: String,
    pub count: u64,
    pub total_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    pub waited_ns: u64,
}

/// How the runs of one state ended. Only the state's owner writes, so it needs no atomic addition, and its cache lines
/// are not shared with another run's thread. ORDERING: Relaxed; statistics.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(in crate::graph) struct Tally {
    begun: AtomicU64,
    ended: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
}

impl Tally {
    /// How many runs began before this one.
    #[inline]
    pub fn begin(&self) -> u64 {
        let begun = self.begun.load(Relaxed);
        self.begun.store(begun + 1, Relaxed);
        begun
    }

    #[inline]
    pub fn ended(&self) {
        self.ended.store(self.ended.load(Relaxed) + 1, Relaxed);
    }

    pub fn failed(&self, cancelled: bool) {
        let counter = if cancelled { &self.cancelled } else { &self.failed };
        counter.store(counter.load(Relaxed) + 1, Relaxed);
    }
}

/// The tallies of all states, and the sums of states that are gone.
#[derive(Debug, Default)]
pub(in crate::graph) struct Tallies(Mutex<(Vec<Arc<Tally>>, [u64; 4])>);

impl Tallies {
    pub fn open(&self) -> Arc<Tally> {
        let tally = Arc::new(Tally::default());
        self.0.lock().0.push(Arc::clone(&tally));
        tally
    }

    pub fn close(&self, tally: &Arc<Tally>) {
        let (open, gone) = &mut *self.0.lock();
        open.retain(|other| !Arc::ptr_eq(other, tally));
        add(gone, tally);
    }

    pub fn sums(&self) -> [u64; 4] {
        let (open, gone) = &*self.0.lock();
        let mut sums = *gone;
        open.iter().for_each(|tally| add(&mut sums, tally));
        sums
    }
}

fn add(sums: &mut [u64; 4], tally: &Tally) {
    for (sum, counter) in sums.iter_mut().zip([&tally.begun, &tally.ended, &tally.failed, &tally.cancelled]) {
        *sum += counter.load(Relaxed);
    }
}

/// The runs of a program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramCounters {
    pub begun: u64,
    pub ended: u64,
    /// Of those that ended.
    pub failed: u64,
    pub cancelled: u64,
}

/// Whether a node computes something, rather than control other nodes.
pub(in crate::graph) fn is_measured(body: &Body) -> bool {
    use Body::{End, Enter, Guard, Move, Next, Retire, Select, Test};
    !matches!(body, Select(_) | End | Enter(_) | Test(_) | Next(_) | Guard(_) | Retire(_) | Move(_))
}
