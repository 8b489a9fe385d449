//! A run's part in traces: which traces it is of, what explains its records, and when its nodes became ready.
#![forbid(unsafe_code)]

use super::compiled::Compiled;
use super::figures::is_measured;
use crate::engine::Engine;
use crate::graph::plan::{Body, Plan};
use crate::memory::heap;
use crate::sync::OnceLock;
use crate::trace::{Filter, HELPER, NONE, NodeOfTable, Nodes, Traces};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// How a thread came into a run, as in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(in crate::graph) enum Carrier {
    /// One thread, along the plan.
    Walk = 1,
    /// The same, in a run that finishes what does not depend on a failure.
    Independent,
    /// One of several: the thread that opened the run, one that the pool has sent, or one that waits for the run.
    Caller,
    Helper = HELPER,
    Visitor,
}

/// The parts of a word that says when a node became ready: the lower bits of a stamp, and the node that came last.
const STAMP_BITS: u32 = 40;
const STAMP: u64 = (1 << STAMP_BITS) - 1;
const NOBODY: u64 = (1 << (64 - STAMP_BITS)) - 1;

/// A run's part in traces. ORDERING: Relaxed for the words; whoever runs a node got it from the thread that wrote its
/// word, with an order of its own.
#[derive(Default)]
pub(in crate::graph) struct TracedRun {
    pub traces: Traces,
    /// The number of the run around it, or 0. As the orders of the run.
    pub outer: AtomicU32,
    /// When each node became ready, and by which. Made for the first traced run; then later ones have it too.
    pub ready: OnceLock<Box<[AtomicU64]>>,
}

/// The words of a run that say when its nodes became ready, as a thread in it has them at hand. None for want of
/// memory.
pub(in crate::graph) struct ReadyTimes<'a>(&'a [AtomicU64]);

impl TracedRun {
    pub fn ready_times(&self) -> ReadyTimes<'_> {
        ReadyTimes(self.ready.get().map_or(&[], |words| words))
    }
}

impl ReadyTimes<'_> {
    /// The node is ready, by the arrival of `from`.
    #[inline]
    pub fn set(&self, node: u32, stamp: u64, from: u32) {
        if let Some(word) = self.0.get(node as usize) {
            word.store(stamp & STAMP | u64::from(from).min(NOBODY) << STAMP_BITS, Relaxed);
        }
    }

    /// How long before `begin` the node became ready, in ticks, and by which node.
    #[inline]
    pub fn before(&self, node: u32, begin: u64) -> Option<(u64, u32)> {
        let word = self.0.get(node as usize)?.load(Relaxed);
        let from = word >> STAMP_BITS;
        let ticks = begin.wrapping_sub(word) & STAMP;
        // Clocks of two threads that differ by a little.
        let ticks = if ticks > STAMP / 2 { 0 } else { ticks };
        Some((ticks, if from == NOBODY { NONE } else { from as u32 }))
    }
}

impl Compiled {
    /// Whether its runs are part of traces with this filter.
    pub fn is_in(&self, filter: &Filter) -> bool {
        let any = |is: &dyn Fn(&Engine) -> bool| {
            let others = || self.frames.as_ref().is_some_and(|frames| frames.any_engine(is));
            self.plan.engines.iter().any(|engine| is(engine)) || others()
        };
        match *filter {
            Filter::Everything => true,
            Filter::Domain(domain) => any(&|engine| engine.account().domain().number() == domain),
            Filter::Engine(own) => any(&|engine| Arc::as_ptr(engine.account()).addr() == own),
            Filter::Program(program) => self.identity() == program,
            Filter::Asked => false,
        }
    }

    /// The nodes' names. `None` for want of memory.
    pub fn explanation(&self) -> Option<(String, Nodes)> {
        let plan = &self.plan;
        let mut counted_at = heap::filled(plan.len(), "a trace", || None).ok()?;
        // A loop comes before the loops nested in it.
        for (index, looped) in plan.loops.iter().enumerate() {
            for node in looped.first + 1..looped.end {
                counted_at[node as usize] = Some(plan.counts_at(index, node) as u32);
            }
        }
        let mut nodes = Nodes::default();
        for node in 0..plan.len() as u32 {
            let engine = plan.starts_elsewhere(node as usize).then(|| plan.engine_of(node));
            let named = NodeOfTable {
                name: plan.name_of(node),
                counted_at: counted_at[node as usize],
                engine: engine.as_deref(),
                is_told: is_told(&plan.bodies[node as usize]),
            };
            if !nodes.push(&named) {
                return None;
            }
        }
        nodes.set_edges(|edge| each_edge(plan, edge)).then(|| (plan.name.clone(), nodes))
    }
}

/// All edges of a plan, and what nodes release, from and to. A loop's lead back to its condition.
fn each_edge(plan: &Plan, edge: &mut dyn FnMut(u32, u32)) {
    for node in 0..plan.len() {
        let mut to = |target: u32| edge(node as u32, target);
        plan.edges(node).iter().chain(plan.guards(node)).for_each(|edge| to(edge.target));
        plan.started(node).iter().for_each(|start| to(start.edge.target));
        plan.released(node).iter().for_each(|&target| to(target));
        let starts = |release, to: &mut dyn FnMut(u32)| {
            plan.starts(release).iter().for_each(|start| to(start.edge.target));
        };
        match plan.bodies[node] {
            Body::Next(index) => {
                let again = plan.loops[index as usize].release_condition;
                plan.releases[again.first as usize..again.end as usize].iter().for_each(|&target| to(target));
            }
            // An iteration that is the last retires, and iterations retire in their order.
            Body::Guard(slot) => starts(plan.slots[slot as usize].retire, &mut to),
            Body::Retire(index) => {
                let slots = &plan.overlaps[plan.slots[index as usize].overlap as usize].slots;
                let next = if index + 1 == slots.end { slots.start } else { index + 1 };
                starts(plan.slots[next as usize].retire, &mut to);
            }
            _ => {}
        }
    }
}

/// Whether a node is told of when it has run: all but those that only lead to others.
pub(in crate::graph) fn is_told(body: &Body) -> bool {
    is_measured(body) || matches!(body, Body::Move(_))
}
