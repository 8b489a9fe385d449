//! Loops whose iterations overlap: condition and body once for each slot (`graph::overlap`).

use super::{GraphLayout, GraphScope, LaidGraph, WantedPlace, lay};
use crate::base::{Desc, Result};
use crate::graph::build::contents::Contents;
use crate::graph::compile::layout::BYTES_PER_NODE;
use crate::graph::compile::layout::flat::{ArrivalSource, StorageKind, Val};
use crate::graph::compile::layout::overlap::OverlapChoice;
use crate::graph::plan::{Body, DIRECT, Edge, Release};
use crate::graph::plan::{Overlap, OverlapWhy, Slot, Start};
use crate::memory::heap;
use std::collections::HashMap;
use std::ops::Range;

/// A loop under construction.
struct LoopSlots<'a> {
    index: usize,
    /// Condition and body, of the only slot that is known or of each.
    graphs: Vec<&'a Contents>,
    /// The loop's inputs, as both see them.
    given: Vec<Val>,
    /// The storages of each variable, by slot.
    storages: Vec<Vec<u32>>,
    /// Variables that the body gives back as they are, which have one storage.
    kept: Vec<bool>,
    /// The loop's slots.
    slots: Range<u32>,
}

/// A slot that was laid out.
struct LaidSlot {
    condition: LaidGraph,
    body: LaidGraph,
    predicate: u32,
    /// The condition's nodes that wait for nothing.
    roots: Vec<u32>,
    /// Arrivals from elsewhere: in the condition, in the body.
    in_condition: Vec<(ArrivalSource, Edge)>,
    in_body: Vec<(ArrivalSource, Edge)>,
    /// The Retire, and the counter that its arrivals go to.
    retire: Edge,
}

impl GraphScope {
    fn of_body(mut self) -> GraphScope {
        self.is_guarded = true;
        self
    }

    fn of_slots(mut self, count: u32) -> GraphScope {
        self.copies *= count as usize;
        self
    }
}

impl GraphLayout<'_> {
    pub(super) fn add_overlapped(
        &mut self,
        index: usize,
        graphs: Vec<&Contents>,
        num_variables: usize,
        choice: OverlapChoice,
    ) -> Result<()> {
        let node = &self.graph.nodes[index];
        let (condition, body) = (graphs[0], graphs[1]);
        let count = choice.parallel + 1;
        let nodes = (condition.num_nodes() + body.num_nodes()).saturating_mul(count as usize);
        heap::probe(nodes.saturating_mul(BYTES_PER_NODE), "the slots of a loop")?;
        let (number, enter, bit) = self.add_enter(index, choice, Vec::new());
        let first_slot = self.flat.slots.len() as u32;
        let mut parts = LoopSlots {
            index,
            graphs,
            given: node.inputs().iter().map(|value| self.value(*value).inside()).collect(),
            storages: Vec::with_capacity(num_variables),
            kept: Vec::with_capacity(num_variables),
            slots: first_slot..first_slot + count,
        };
        let descs: Vec<Desc> = node.inputs()[..num_variables].iter().map(|value| *self.verified.desc(*value)).collect();
        let ports: Vec<usize> = body.inputs().collect();
        let mut first_values = Vec::with_capacity(num_variables);
        for (i, desc) in descs.iter().enumerate() {
            let storage = self.storage_of((index, i), desc)?;
            first_values.push((self.flat.arg(desc, parts.given[i].storage)?, self.flat.arg(desc, storage)?));
            let mut storages = vec![storage; count as usize];
            let is_kept = body.outputs[i].1.0 == ports[i];
            for other in storages.iter_mut().skip(1).filter(|_| !is_kept) {
                *other = self.flat.storage(desc, StorageKind::Arena)?;
            }
            parts.storages.push(storages);
            parts.kept.push(is_kept);
        }
        self.reserve_slots(number as u32, count);
        let mut laid = Vec::with_capacity(count as usize);
        for slot in 0..count {
            // The facts are those of the first copy only.
            let facts = self.flat.facts.clone();
            laid.push(self.lay_slot(&parts, slot as usize)?);
            if slot > 0 {
                self.flat.facts = facts;
            }
        }
        let first = laid[0].condition.nodes.start;
        let end = self.flat.bodies.len() as u32;
        self.flat.facts.copied += (end - first - (end - first) / count) as usize;
        let exit = self.push(Body::End, index);
        let leave = self.start(&mut vec![Start { edge: Edge { target: exit, counter: DIRECT }, amount: 1 }]);
        let begin = self.connect(&parts, &laid, &descs, &first_values)?;
        let overlap = self.flat.loops[number].overlap as usize;
        self.flat.overlaps[overlap] =
            Overlap { slots: parts.slots.clone(), first, len: (end - first) / count, begin, exit, leave };
        debug_assert_eq!((end - first) % count, 0, "slots differ");
        let looped = &mut self.flat.loops[number];
        looped.enter = first_values;
        (looped.condition, looped.body) = (laid[0].condition.nodes.clone(), laid[0].body.nodes.clone());
        looped.end = exit + 1;
        let source = self.flat.one_of(&[ArrivalSource::Node(exit)], &[enter]);
        for (i, storages) in parts.storages.iter().enumerate() {
            self.set((index, i), Val { storage: storages[0], source, bit });
        }
        self.done[index] = source;
        Ok(())
    }

    /// Numbers for the loop's slots before those of loops inside of it.
    fn reserve_slots(&mut self, looped: u32, count: u32) {
        let overlap = self.flat.overlaps.len() as u32;
        self.flat.loops[looped as usize].overlap = overlap;
        let none = Release::default();
        self.flat.overlaps.push(Overlap { slots: 0..0, first: 0, len: 1, begin: none, exit: 0, leave: none });
        self.flat.slots.extend((0..count).map(|number| Slot {
            looped,
            overlap,
            number,
            predicate: 0,
            condition: 0..0,
            body: 0..0,
            open: none,
            retire: none,
            delivered: Vec::new(),
            leave: Vec::new(),
        }));
    }

    fn lay_slot(&mut self, parts: &LoopSlots<'_>, slot: usize) -> Result<LaidSlot> {
        let name = &self.graph.nodes[parts.index].name;
        let at = 2 * slot % parts.graphs.len();
        let ([graph_condition, graph_body], [inner_condition, inner_body]) =
            (&parts.graphs[at..at + 2], &self.verified.inner[&parts.index][at..at + 2])
        else {
            unreachable!("a slot has two graphs")
        };
        let (count, promised) = (parts.slots.len(), self.flat.promised.len());
        let mut inputs = parts.given.clone();
        for (i, input) in inputs.iter_mut().enumerate().take(parts.storages.len()) {
            input.storage = parts.storages[i][slot];
            if !parts.kept[i] {
                input.source = ArrivalSource::Carried(i as u32);
            }
        }
        let scope = self.scope.inside(&format!("{name}/condition")).of_slots(count as u32);
        let condition = lay(self.flat, graph_condition, inner_condition, &inputs, &[WantedPlace::Value], &scope)?;
        let guard = self.push(Body::Guard(parts.slots.start + slot as u32), parts.index);
        let mut sources = condition.dangling.clone();
        sources.push(condition.outputs[0].source);
        let waits = self.flat.wait_for(guard, &mut sources);
        let mut roots = condition.roots.clone();
        roots.extend((!waits).then_some(guard));
        let desc = inner_condition.desc(graph_condition.outputs[0].1);
        let predicate = self.flat.arg(desc, condition.outputs[0].storage)?;
        let in_condition = self.flat.promised.split_off(promised);

        let next = |i: usize| WantedPlace::In(parts.storages[i][(slot + 1) % count]);
        let want: Vec<WantedPlace> =
            parts.kept.iter().enumerate().map(|(i, kept)| if *kept { WantedPlace::Nothing } else { next(i) }).collect();
        let scope = self.scope.inside(&format!("{name}/body")).of_slots(count as u32).of_body();
        let body = lay(self.flat, graph_body, inner_body, &inputs, &want, &scope)?;
        let end = self.push(Body::End, parts.index);
        let mut sources = body.dangling.clone();
        sources.extend(body.outputs.iter().map(|output| output.source));
        scope.guard(&mut sources);
        self.flat.wait_for(end, &mut sources);
        let in_body = self.flat.promised.split_off(promised);
        let retire = self.push(Body::Retire(parts.slots.start + slot as u32), parts.index);
        // The End or the Guard, and the slot before.
        let retire = Edge { target: retire, counter: self.flat.joins.counter(0, 2) };
        self.flat.joins.close(2);
        self.flat.edges.push((end, retire));
        Ok(LaidSlot { condition, body, predicate, roots, in_condition, in_body, retire })
    }

    /// Ties the slots together. Returns the starts of the Enter.
    fn connect(
        &mut self,
        parts: &LoopSlots<'_>,
        laid: &[LaidSlot],
        descs: &[Desc],
        first_values: &[(u32, u32)],
    ) -> Result<Release> {
        let count = laid.len();
        let mut begin = Release::default();
        for (slot, here) in laid.iter().enumerate() {
            let (before, after) = (&laid[(slot + count - 1) % count], &laid[(slot + 1) % count]);
            let mut first = Vec::new();
            let mut open: Vec<Start> = directly(&after.roots);
            let mut delivered = Vec::new();
            for (is_body, list) in [(false, &here.in_condition), (true, &here.in_body)] {
                for &(source, edge) in list {
                    let ArrivalSource::Carried(variable) = source else {
                        open.push(Start { edge, amount: 1 });
                        continue;
                    };
                    self.deliver(before.body.outputs[variable as usize].source, edge);
                    first.push(Start { edge, amount: 1 });
                    if is_body {
                        delivered.push(edge.counter);
                    }
                }
            }
            delivered.sort_unstable();
            delivered.dedup();
            if slot == 0 {
                first.extend(directly(&here.roots));
                let mut first = added_up(first);
                // The token comes when everything else is there.
                first.insert(0, Start { edge: here.retire, amount: 1 });
                begin = self.start(&mut first);
            }
            let (open, retire) = (self.start(&mut open), self.start(&mut vec![Start { edge: here.retire, amount: 1 }]));
            let mut leave = Vec::new();
            // Through the views by which the values were made and the Enter writes: these are near at hand.
            let written = before.body.args.clone().map(|arg| (self.flat.args[arg as usize].storage, arg));
            let written: HashMap<u32, u32> = if slot > 0 { written.collect() } else { HashMap::new() };
            for (i, desc) in descs.iter().enumerate().filter(|(i, _)| slot > 0 && !parts.kept[*i]) {
                let storage = parts.storages[i][slot];
                let from = match written.get(&storage) {
                    Some(&from) => from,
                    None => self.flat.arg(desc, storage)?,
                };
                leave.push((from, first_values[i].1));
            }
            let own = &mut self.flat.slots[parts.slots.start as usize + slot];
            own.predicate = here.predicate;
            (own.condition, own.body) = (here.condition.nodes.clone(), here.body.nodes.clone());
            (own.open, own.retire, own.delivered, own.leave) = (open, retire, delivered, leave);
        }
        Ok(begin)
    }

    fn deliver(&mut self, maker: ArrivalSource, edge: Edge) {
        match maker {
            ArrivalSource::Node(from) => self.flat.deliveries.push((from, edge)),
            ArrivalSource::OneOf(list) => {
                let from = self.flat.alternatives[list as usize].iter().map(|&from| (from, edge));
                self.flat.deliveries.extend(from);
            }
            ArrivalSource::Nobody | ArrivalSource::Carried(_) | ArrivalSource::Guard => {
                unreachable!("a variable that nobody writes")
            }
        }
    }

    /// A list of starts, given with the most urgent first; who goes through it goes on with the last.
    fn start(&mut self, starts: &mut Vec<Start>) -> Release {
        let first = self.flat.starts.len() as u32;
        self.flat.starts.extend(starts.drain(..).rev());
        Release { first, end: self.flat.starts.len() as u32 }
    }

    /// The loop's first node, behind these too, and what is known of the loop: its index, the node, the bit.
    pub(super) fn add_enter(
        &mut self,
        index: usize,
        choice: OverlapChoice,
        copied: Vec<ArrivalSource>,
    ) -> (usize, u32, u32) {
        let number = self.flat.loops.len();
        let enter = self.push(Body::Enter(number as u32), index);
        self.arrive_behind(enter, &self.graph.nodes[index], copied);
        let bit = self.skip_bit(enter, index);
        self.flat.loops.push(choice.looped(enter));
        if choice.why != OverlapWhy::AsAsked {
            self.flat.facts.held_back += 1;
        }
        (number, enter, bit)
    }
}

fn directly(nodes: &[u32]) -> Vec<Start> {
    nodes.iter().map(|&target| Start { edge: Edge { target, counter: DIRECT }, amount: 1 }).collect()
}

/// One start for each counter.
fn added_up(starts: Vec<Start>) -> Vec<Start> {
    let mut sums: Vec<Start> = Vec::with_capacity(starts.len());
    let mut of: HashMap<u32, usize> = HashMap::new();
    for start in starts {
        let known = if start.edge.counter == DIRECT { None } else { of.get(&start.edge.counter) };
        match known {
            Some(&at) => sums[at].amount += start.amount,
            None => {
                of.insert(start.edge.counter, sums.len());
                sums.push(start);
            }
        }
    }
    sums
}
