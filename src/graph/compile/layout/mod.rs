//! From a graph to a program's arrays.
//!
//! 0. `raise` (a module beside this one): loops that are said by their edges become whiles.
//! 1. `verify`: an order, types and shapes, what can be absent; `effects`: what is done to variables has an order.
//! 2. `place` (a module beside this one): what other engines do becomes nodes of the host's that issue it.
//!    `fold`: what constants decide is decided. `fuse`: elementwise nodes become the end of the nodes before them.
//! 3. `schedule`: in each graph, keep what matters; the longest path to the end first.
//! 4. `region`: lay all graphs out in one array, a case's branches and a loop's parts behind their first node, with
//!    edges and storages. Inputs and constants are no nodes of a run, parallel edges are one arrival, a value that is
//!    an output is written in place, a variable of a loop where its kernel allows it. A branch need not wait for what
//!    some of it can do without (`entries`).
//! 5. `joins`: what waits for one other has no counter, wide joins have a tree of two levels.
//! 6. `memory`: places in the arena, shared where the order along the edges allows it, and by branches of which one
//!    runs.
#![forbid(unsafe_code)]

pub(in crate::graph) mod accesses;
pub(in crate::graph) mod buckets;
pub(in crate::graph) mod descs;
pub(in crate::graph) mod dynamic;
pub(in crate::graph) mod entries;
pub(in crate::graph) mod flat;
pub(in crate::graph) mod held;
pub(in crate::graph) mod joins;
pub(in crate::graph) mod memory;
pub(in crate::graph) mod overlap;
pub(in crate::graph) mod overlay;
#[cfg(debug_assertions)]
mod proof;
pub(in crate::graph) mod region;
pub(in crate::graph) mod views;

use super::facts::CompileFacts;
use super::{fold, fuse};
use crate::base::index::{HashIndex, mix};
use crate::base::sort::sort_by_key;
use crate::base::{Desc, Ref, Result};
use crate::engine::Engine;
use crate::graph::build::contents::Contents;
use crate::graph::build::options::CompileOptions;
use crate::graph::build::shapes::Answers;
use crate::graph::build::verify::{self, Kinds, Verified};
use crate::graph::carry::admission::Admission;
use crate::graph::carry::compiled::Compiled;
use crate::graph::carry::figures::NodeFigures;
use crate::graph::carry::learned::Learned;
use crate::graph::plan::effects;
use crate::graph::plan::{Body, DIRECT, Edge, HeldOutput, KernelNode, NO_BIT, NO_SCRATCH, Plan, Port, origins};
use crate::kernel::RunListener;
use crate::memory::heap;
use crate::trace::Explained;
use flat::{ArrivalSource, Flat, StorageKind, Val};
use joins::Joins;
use region::{GraphScope, LaidGraph, WantedPlace};
use std::borrow::Cow;
use std::sync::Arc;
use views::{PlanViews, ViewLists};

/// Most bytes that compile needs, per node and per edge. They are asked for in one piece first, so that a graph too
/// large for the memory left is a status and not a failure in the middle.
pub(in crate::graph) const BYTES_PER_NODE: usize = 512;

/// The graph without what compile can compute.
pub(in crate::graph) fn folded<'a>(
    contents: &'a Contents,
    verified: Verified,
    engines: &[Ref<Engine>],
    options: &CompileOptions,
    facts: &mut CompileFacts,
    answers: &mut Answers,
) -> Result<(Cow<'a, Contents>, Verified)> {
    let (mut now, mut verified) = (Cow::Borrowed(contents), verified);
    // Shapes that became known make more of the graph known.
    while let Some(fold::Folded { contents, nodes, unrolled, has_settled, .. }) = fold::fold(&now, &verified) {
        verified.keep_answers(&now, answers)?;
        facts.folded += nodes;
        facts.unrolled += unrolled;
        heap::probe(contents.size().saturating_mul(BYTES_PER_NODE), "compiling the graph")?;
        verified = verify::verify(&contents, engines, options.allow_absent, answers)?;
        now = Cow::Owned(contents);
        if !has_settled {
            break;
        }
    }
    Ok((now, verified))
}

/// The same with elementwise nodes at the end of the nodes before them.
pub(in crate::graph) fn fused<'a>(
    (contents, verified): (Cow<'a, Contents>, Verified),
    engines: &[Ref<Engine>],
    options: &CompileOptions,
    facts: &mut CompileFacts,
    answers: &mut Answers,
) -> Result<(Cow<'a, Contents>, Verified)> {
    if options.without_fusion {
        return Ok((contents, verified));
    }
    let (fused, fusions) = fuse::fuse(&contents, &verified)?;
    facts.fusions = fusions;
    let Some(fused) = fused else { return Ok((contents, verified)) };
    verified.keep_answers(&contents, answers)?;
    let verified = verify::verify(&fused, engines, options.allow_absent, answers)?;
    Ok((Cow::Owned(fused), verified))
}

/// Lays the graph out.
pub(in crate::graph) fn compile(
    graph: &Contents,
    verified: &Verified,
    engines: Vec<Ref<Engine>>,
    options: &CompileOptions,
    facts: CompileFacts,
) -> Result<(Compiled, CompileFacts)> {
    let mut flat = Flat { has_absence: verified.kinds.has(Kinds::SWITCH), facts, ..Flat::default() };
    let mut inputs = Vec::new();
    for (i, index) in graph.inputs().enumerate() {
        let storage = flat.storage(&verified.descs[index][0], StorageKind::Input(i))?;
        inputs.push(Val { storage, source: ArrivalSource::Nobody, bit: NO_BIT });
    }
    let mut want = Vec::new();
    for (i, (_, value)) in graph.outputs.iter().enumerate() {
        want.push(WantedPlace::In(flat.storage(verified.desc(*value), StorageKind::Output(i))?));
    }
    let region = region::lay(&mut flat, graph, verified, &inputs, &want, &GraphScope::top())?;
    add_end(&mut flat, &region);
    finish(flat, &region, graph, verified, engines, options)
}

/// Waits for outputs that one of several branches computes, so that a run has one end for all of them; and for what
/// only branches use that may not run, or merges.
fn add_end(flat: &mut Flat, region: &LaidGraph) {
    let is_one_of = |source: &ArrivalSource| matches!(source, ArrivalSource::OneOf(_));
    let mut sources: Vec<ArrivalSource> = region.outputs.iter().map(|output| output.source).filter(is_one_of).collect();
    sources.extend(&region.loose);
    if !sources.is_empty() {
        let end = flat.push(Body::End, &["outputs"], 0);
        flat.wait_for(end, &mut sources);
        flat.end = Some(end);
    }
}

fn finish(
    mut flat: Flat,
    region: &LaidGraph,
    graph: &Contents,
    verified: &Verified,
    engines: Vec<Ref<Engine>>,
    options: &CompileOptions,
) -> Result<(Compiled, CompileFacts)> {
    let n = flat.bodies.len();
    flat.facts.wide_joins = flat.joins.wide;
    let (counters, first_leaf, leaf_of) = std::mem::take(&mut flat.joins).finish();
    let counted = counters.len() as u32;
    // Deliveries to another iteration's nodes say nothing about the order within one.
    dynamic::mark(&mut flat)?;
    let (first_edge, firm_edge, edges) = rows(n, &flat, &[], first_leaf, counted);
    let firm = memory::EdgeRows { edges: &edges, starts: &firm_edge, ends: &first_edge[1..] };
    let places = memory::places(&mut flat, &firm)?;
    #[cfg(debug_assertions)]
    proof::check(&flat, &places);
    let (first_edge, edges) = match std::mem::take(&mut flat.deliveries) {
        none if none.is_empty() => (first_edge, edges),
        all => {
            let (first_edge, _, edges) = rows(n, &flat, &all, first_leaf, counted);
            (first_edge, edges)
        }
    };
    overlap::finish(&mut flat, first_leaf, &leaf_of, counted);
    let degree = |node: u32| first_edge[node as usize + 1] - first_edge[node as usize];
    for select in &mut flat.selects {
        let first_end = select.branches.last().map_or(select.end, |branch| branch.nodes.end);
        select.is_early = select.branches.iter().any(|branch| !branch.guards.is_empty() || !branch.drops.is_empty());
        select.uncounted = u32::from(first_end < select.end && degree(first_end) == 0);
    }
    for looped in &mut flat.loops {
        let last = flat.overlaps.get(looped.overlap as usize).map_or(looped.condition.end, |overlap| overlap.exit);
        looped.uncounted = u32::from(degree(last) == 0);
    }
    let ends = ends(&flat, &degree);
    let facts = std::mem::take(&mut flat.facts);
    let views = views::lay(&mut flat, &places)?;
    let (kernels, scratch) = kernels(&flat, &views)?;
    if flat.has_absence {
        flat.absence.starts.push(flat.absence.needs.len() as u32);
    }
    let mut loops_by_end: Vec<u32> = (0..flat.loops.len() as u32).collect();
    // Of two that end together the first one is around the other.
    sort_by_key(&mut loops_by_end, |&index| std::cmp::Reverse(flat.loops[index as usize].end));
    let mut plan = Plan {
        name: graph.name.clone(),
        engines,
        inputs: graph
            .inputs()
            .enumerate()
            .map(|(i, index)| port(&graph.nodes[index].name, verified.descs[index][0], graph.homes.input(i)))
            .collect(),
        outputs: graph
            .outputs
            .iter()
            .enumerate()
            .map(|(o, (name, value))| port(name, *verified.desc(*value), graph.homes.output(o)))
            .collect(),
        output_bits: region.outputs.iter().map(|output| output.bit).collect(),
        effects: effects::of(graph, verified),
        names: flat.names,
        bodies: flat.bodies,
        tasks: flat.tasks,
        kernels,
        distinct: flat.distinct,
        calls: flat.calls,
        selects: flat.selects,
        loops: flat.loops,
        origins: origins(&flat.overlaps, n),
        overlaps: flat.overlaps,
        slots: flat.slots,
        starts: flat.starts,
        switches: flat.switches,
        merges: flat.merges,
        dynamics: flat.dynamics,
        merge_edges: flat.merge_edges,
        absence: flat.absence,
        first_edge,
        edges,
        releases: flat.releases,
        guards: flat.guards,
        drops: flat.drops,
        counters,
        first_leaf,
        leaf_of,
        // The most urgent goes to the end, where it is popped first.
        roots: region.roots.iter().rev().copied().collect(),
        ends,
        args: views.args,
        picks: views.picks,
        descs: flat.descs.list,
        bound: views.bound,
        always_bound: views.always,
        constants: flat.constants,
        arena_bytes: places.arena_bytes,
        held: Vec::new(),
        scratch,
        hop_ns: options.hop_ns,
        blocking_pool: options.blocking_pool.clone(),
        is_parallel: false,
        loops_by_end,
        not_needed: Vec::new(),
    };
    plan.shrink();
    plan.is_parallel = plan.has_forks();
    let (mut listeners, mut listens_in_loops): (Vec<Arc<dyn RunListener>>, bool) = (Vec::new(), false);
    for node in 0..n as u32 {
        let of_node = plan.kernel_of(node).map_or(&[][..], |kernel| kernel.listeners());
        for listener in of_node {
            if !listeners.iter().any(|other| std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(listener))) {
                listeners.push(Arc::clone(listener));
            }
            listens_in_loops |= plan.loops.iter().any(|looped| looped.first < node && node < looped.end);
        }
    }
    if listeners.iter().any(|listener| listener.holds_outputs()) {
        hold_outputs(&mut plan)?;
    }
    let compiled = Compiled {
        listeners,
        listens_in_loops,
        learned: Learned::new(&plan, &flat.costs),
        plan,
        figures: options.statistics.then(|| NodeFigures::new(n)),
        tallies: Arc::default(),
        admission: Admission::create(options.max_concurrent_runs),
        frames: None,
        explained: Explained::default(),
    };
    Ok((compiled, facts))
}

/// Gives the outputs in the host's memory a place behind the values.
fn hold_outputs(plan: &mut Plan) -> Result<()> {
    let is_on_host = |port: &Port| port.engine.as_ref().is_none_or(|engine| engine.accelerator().is_none());
    for (output, port) in plan.outputs.iter().enumerate() {
        // One whose shape a run decides is a value of the run in any case.
        if !port.desc.is_concrete() || !is_on_host(port) {
            continue;
        }
        let bytes = port.desc.bytes()?;
        let offset = memory::rounded(plan.arena_bytes).ok_or_else(memory::too_large)?;
        plan.arena_bytes = offset.checked_add(bytes).ok_or_else(memory::too_large)?;
        plan.held.push(HeldOutput { output, offset, bytes });
    }
    Ok(())
}

/// The edges in rows, by the node that they leave: deliveries, so that nothing is behind a node before it has
/// delivered; then the loose ones, then those that somebody waits for (`entries`). Where each row begins, one more for
/// the end of the last; and where the last part of each begins.
fn rows(
    n: usize,
    flat: &Flat,
    deliveries: &[(u32, Edge)],
    first_leaf: u32,
    counters: u32,
) -> (Vec<u32>, Vec<u32>, Vec<Edge>) {
    let mut first = vec![0u32; n + 1];
    deliveries.iter().chain(&flat.edges).for_each(|(from, _)| first[*from as usize + 1] += 1);
    for i in 0..n {
        first[i + 1] += first[i];
    }
    let mut at = first.clone();
    let mut rows = vec![Edge { target: 0, counter: DIRECT }; deliveries.len() + flat.edges.len()];
    let mut put = |(from, edge): &(u32, Edge), at: &mut [u32]| {
        let place = &mut at[*from as usize];
        rows[*place as usize] =
            Edge { target: edge.target, counter: Joins::number(edge.counter, first_leaf, counters) };
        *place += 1;
    };
    deliveries.iter().for_each(|edge| put(edge, &mut at));
    let loose = || flat.loose.iter().map(|range| range.start as usize..range.end as usize);
    loose().for_each(|range| flat.edges[range].iter().for_each(|edge| put(edge, &mut at)));
    let firm = at.clone();
    let mut done = 0;
    for range in loose().chain(std::iter::once(flat.edges.len()..0)) {
        flat.edges[done..range.start].iter().for_each(|edge| put(edge, &mut at));
        done = range.end;
    }
    (first, firm, rows)
}

/// How many nodes there are that nobody waits for, a cond's ends counted once.
fn ends(flat: &Flat, degree: &dyn Fn(u32) -> u32) -> u32 {
    let mut ends = 0;
    for (node, body) in flat.bodies.iter().enumerate() {
        let counts = match body {
            Body::Call(..) | Body::Task(_) | Body::Kernel(_) | Body::Async(_) | Body::Switch(_) | Body::Merge(_) => {
                degree(node as u32) == 0
            }
            Body::Dynamic(_) | Body::Move(_) => degree(node as u32) == 0,
            Body::Select(i) => flat.selects[*i as usize].uncounted == 1,
            Body::Enter(i) => flat.loops[*i as usize].uncounted == 1,
            Body::End => flat.end == Some(node as u32),
            Body::Test(_) | Body::Next(_) | Body::Guard(_) | Body::Retire(_) => false,
        };
        ends += u32::from(counts);
    }
    ends
}

/// The nodes of kernels; and the scratch that some want.
fn kernels(flat: &Flat, views: &PlanViews) -> Result<(Vec<KernelNode>, Vec<usize>)> {
    let mut scratch = Vec::new();
    let mut asked = ScratchAnswers { flat, index: HashIndex::default(), bytes: Vec::new() };
    let mut nodes = heap::room(flat.kernels.len(), "the kernels of a program")?;
    for (number, (node, &ViewLists { inputs, outputs, picks })) in flat.kernels.iter().zip(&views.lists).enumerate() {
        let bytes = asked.scratch_bytes(number as u32)?;
        nodes.push(KernelNode {
            call: flat.kernel_of(node).call(),
            kernel: node.kernel,
            inputs,
            outputs,
            picks,
            num_inputs: node.num_inputs,
            num_outputs: node.num_outputs,
            scratch: if bytes > 0 { scratch.len() as u32 } else { NO_SCRATCH },
        });
        scratch.extend((bytes > 0).then_some(bytes));
    }
    Ok((nodes, scratch))
}

/// The scratch that kernels have asked for, for nodes with a kernel and shapes that another one has, too.
struct ScratchAnswers<'a> {
    flat: &'a Flat,
    /// By index in the next.
    index: HashIndex,
    /// A node that was asked for, and the answer.
    bytes: Vec<(u32, usize)>,
}

impl ScratchAnswers<'_> {
    fn scratch_bytes(&mut self, number: u32) -> Result<usize> {
        let flat = self.flat;
        let args = |number: u32| {
            let node = &flat.kernels[number as usize];
            &flat.args[node.args as usize..][..usize::from(node.num_inputs + node.num_outputs)]
        };
        let node = &flat.kernels[number as usize];
        let hash = args(number).iter().fold(u64::from(node.kernel), |hash, arg| mix(hash, arg.desc.into()));
        let is_alike = |other: u32| {
            let other = self.bytes[other as usize].0;
            let (a, b) = (args(other).iter(), args(number).iter());
            flat.kernels[other as usize].kernel == node.kernel && a.map(|arg| arg.desc).eq(b.map(|arg| arg.desc))
        };
        if let Some(found) = self.index.find(hash, is_alike) {
            return Ok(self.bytes[found as usize].1);
        }
        let descs: Vec<Desc> = args(number).iter().map(|arg| *flat.descs.get(arg.desc)).collect();
        let (inputs, outputs) = descs.split_at(usize::from(node.num_inputs));
        let bytes = flat.kernel_of(node).scratch_bytes(inputs, outputs);
        self.index.reserve("the kernels of a program")?;
        self.index.insert(hash, self.bytes.len() as u32);
        self.bytes.push((number, bytes));
        Ok(bytes)
    }
}

fn port(name: &str, desc: Desc, home: Option<&Ref<Engine>>) -> Port {
    // Engines of the host's have one memory.
    let engine = home.filter(|home| home.accelerator().is_some()).cloned();
    Port { name: name.to_owned(), desc, engine }
}
