//! Cond, case and while: the nodes around the graphs inside of them.

use super::{GraphLayout, LaidGraph, WantedPlace, lay};
use crate::base::Result;
use crate::graph::build::contents::{Contents, NodeBody, Value};
use crate::graph::compile::layout::flat::{ArrivalSource, StorageKind, Val};
use crate::graph::compile::layout::overlap::{OverlapChoice, choose};
use crate::graph::plan::{Body, Branch, Select};
use std::collections::HashMap;
use std::sync::Arc;

/// The places of a loop's next values, the copies behind its body as pairs of views, and the moves.
type NextValues = (Vec<WantedPlace>, Vec<(u32, u32)>, Moves);

/// The storage of each variable of a loop, and whether a node copies the first value there; and these nodes.
type Variables = (Vec<(u32, bool)>, Vec<ArrivalSource>);

/// Pairs of slots that change places.
type Moves = Vec<(u32, u32)>;

impl GraphLayout<'_> {
    pub(super) fn add_case(&mut self, index: usize, branches: &[Arc<Contents>], is_cond: bool) -> Result<()> {
        let node = &self.graph.nodes[index];
        let number = self.flat.selects.len();
        let id = self.push(Body::Select(number as u32), index);
        let late = self.late_inputs(index, branches);
        self.arrive_but_for(id, node, &late);
        let bit = self.skip_bit(id, index);
        let selector = node.inputs()[0];
        let selector = self.flat.arg(self.verified.desc(selector), self.value(selector).storage)?;
        self.flat.selects.push(Select {
            selector,
            branches: Vec::new(),
            end: 0,
            uncounted: 0,
            is_cond,
            is_early: false,
        });

        let inside = |value: &Value| match self.value(*value) {
            val if late.contains(value) => val.late(),
            val => val.inside(),
        };
        let inputs: Vec<Val> = node.inputs()[1..].iter().map(inside).collect();
        let mut want = Vec::new();
        for (output, desc) in self.verified.descs[index].iter().enumerate() {
            let value = (index, output);
            let is_used = self.used[self.at(value)];
            want.push(if is_used { WantedPlace::In(self.storage_of(value, desc)?) } else { WantedPlace::Nothing });
        }
        let (mut regions, mut drops) = (Vec::with_capacity(branches.len()), Vec::with_capacity(branches.len()));
        for (i, (graph, verified)) in branches.iter().zip(&self.verified.inner[&index]).enumerate() {
            let name = match (is_cond, i) {
                (true, 0) => format!("{}/else", node.name),
                (true, _) => format!("{}/then", node.name),
                (false, i) => format!("{}/{i}", node.name),
            };
            let scope = self.scope.inside(&name);
            let since = self.flat.entries.len();
            let region = lay(self.flat, graph, verified, &inputs, &want, &scope)?;
            drops.push(self.flat.drops(since, region.nodes.start));
            regions.push(region);
        }
        let ends = self.add_ends(index, &regions, want.iter().all(|want| matches!(want, WantedPlace::Nothing)));
        let mut laid = Vec::with_capacity(regions.len());
        for (i, region) in regions.iter().enumerate() {
            let mut first = region.roots.clone();
            if let Some(ends) = &ends {
                first.extend(ends[i].1.then_some(ends[i].0));
            }
            laid.push(Branch {
                nodes: region.nodes.clone(),
                release: self.flat.release(&first),
                guards: self.flat.guards(&region.guards),
                drops: drops[i].clone(),
                args: region.args.clone(),
                bound: 0..0,
            });
        }
        let end = self.flat.bodies.len() as u32;
        let select = &mut self.flat.selects[number];
        (select.branches, select.end) = (laid, end);

        for (output, want) in want.iter().enumerate() {
            let WantedPlace::In(storage) = *want else { continue };
            let sources: Vec<ArrivalSource> = regions.iter().map(|region| region.outputs[output].source).collect();
            let source = self.flat.one_of(&sources, &[id]);
            self.set((index, output), Val { storage, source, bit });
        }
        let done = match &ends {
            Some(ends) => {
                let ends: Vec<ArrivalSource> = ends.iter().map(|end| ArrivalSource::Node(end.0)).collect();
                self.flat.one_of(&ends, &[id])
            }
            None => self.flat.one_of(&[], &[id]),
        };
        self.done[index] = done;
        if ends.is_some() && !self.followed[index] {
            self.open_ends.push(done);
        }
        Ok(())
    }

    /// A node behind each branch, if something waits for the whole of it, or would be waited for by nobody. With each:
    /// whether it waits for nothing but the choice.
    fn add_ends(&mut self, index: usize, regions: &[LaidGraph], has_no_outputs: bool) -> Option<Vec<(u32, bool)>> {
        let followed = self.followed[index];
        if !followed && !has_no_outputs && regions.iter().all(|region| region.dangling.is_empty()) {
            return None;
        }
        let mut ends = Vec::with_capacity(regions.len());
        for region in regions {
            let id = self.push(Body::End, index);
            let mut sources = region.dangling.clone();
            if followed {
                sources.extend(region.outputs.iter().map(|output| output.source));
            }
            let waits = self.flat.wait_for(id, &mut sources);
            ends.push((id, !waits));
        }
        Some(ends)
    }

    pub(super) fn add_while(&mut self, index: usize, num_variables: usize, parallel_iterations: u32) -> Result<()> {
        let graph = self.graph;
        let node = &graph.nodes[index];
        let graphs: Vec<&Contents> = node.inner().map(|graph| &**graph).collect();
        let (condition, body) = (graphs[0], graphs[1]);
        let inner = &self.verified.inner[&index];
        let choice = match graphs.len() / 2 {
            1 => choose(condition, body, inner, num_variables, parallel_iterations, self.scope.copies),
            slots => OverlapChoice::given(slots, parallel_iterations),
        };
        if choice.parallel > 1 {
            return self.add_overlapped(index, graphs, num_variables, choice);
        }
        let (storages, copied) = self.variables(index, num_variables)?;
        let (number, enter, bit) = self.add_enter(index, choice, copied);
        let mut inputs: Vec<Val> = node.inputs().iter().map(|value| self.value(*value).inside()).collect();
        let mut first_values = Vec::with_capacity(num_variables);
        for (i, input) in inputs.iter_mut().enumerate().take(num_variables) {
            let (storage, is_copied) = storages[i];
            if !is_copied {
                let desc = self.verified.desc(node.inputs()[i]);
                first_values.push((self.flat.arg(desc, input.storage)?, self.flat.arg(desc, storage)?));
            }
            input.storage = storage;
        }
        let [inner_condition, inner_body] = &self.verified.inner[&index][..] else {
            unreachable!("a loop has two graphs")
        };

        let scope = self.scope.inside(&format!("{}/condition", node.name));
        let tested = lay(self.flat, condition, inner_condition, &inputs, &[WantedPlace::Value], &scope)?;
        let test = self.push(Body::Test(number as u32), index);
        let mut sources = tested.dangling.clone();
        sources.push(tested.outputs[0].source);
        let waits = self.flat.wait_for(test, &mut sources);
        let mut roots = tested.roots.clone();
        roots.extend((!waits).then_some(test));
        let release_condition = self.flat.release(&roots);
        let predicate = self.flat.arg(inner_condition.desc(condition.outputs[0].1), tested.outputs[0].storage)?;

        let (want, next_values, moves) = self.next_values(body, &inputs, num_variables)?;
        let scope = self.scope.inside(&format!("{}/body", node.name));
        let mut run = lay(self.flat, body, inner_body, &inputs, &want, &scope)?;
        self.add_move(index, &mut run, moves);
        let next = self.push(Body::Next(number as u32), index);
        let mut sources = run.dangling.clone();
        sources.extend(run.outputs.iter().map(|output| output.source));
        let waits = self.flat.wait_for(next, &mut sources);
        let mut roots = run.roots.clone();
        roots.extend((!waits).then_some(next));
        let release_body = self.flat.release(&roots);

        let stop = self.flat.release(&[test]).first;
        let end = self.flat.bodies.len() as u32;
        let looped = &mut self.flat.loops[number];
        looped.stop = stop;
        looped.enter = first_values;
        looped.next = next_values;
        looped.predicate = predicate;
        (looped.condition, looped.body) = (tested.nodes, run.nodes);
        (looped.release_condition, looped.release_body) = (release_condition, release_body);
        looped.end = end;

        let source = self.flat.one_of(&[ArrivalSource::Node(test)], &[enter]);
        for (i, input) in inputs.iter().enumerate().take(num_variables) {
            self.set((index, i), Val { storage: input.storage, source, bit });
        }
        self.done[index] = source;
        Ok(())
    }

    /// Where the body writes the variables' next values, and which must be copied behind it. A variable that the body
    /// gives back unchanged stays where it is. One that nothing in the body reads, or only the kernel that computes its
    /// next value and can do so in place, is written at once.
    fn next_values(&mut self, body: &Contents, inputs: &[Val], num_variables: usize) -> Result<NextValues> {
        let ports: Vec<usize> = body.inputs().collect();
        let mut readers: HashMap<usize, Vec<usize>> = HashMap::new();
        for (reader, node) in body.nodes.iter().enumerate() {
            node.inputs().iter().for_each(|value| readers.entry(value.0).or_default().push(reader));
        }
        let outputs = |of: usize| body.outputs.iter().filter(move |(_, value)| value.0 == of).count();
        let (mut want, mut copies, mut moves) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..num_variables {
            let (port, (maker, output)) = (ports[i], body.outputs[i].1);
            let NodeBody::Input(desc) = &body.nodes[port].body else { unreachable!("ports are inputs") };
            if maker == port {
                want.push(WantedPlace::Nothing);
                continue;
            }
            if let Some(to) = self.flat.slot_of(inputs[i].storage) {
                let storage = self.flat.slot(desc, StorageKind::Arena);
                moves.extend(self.flat.slot_of(storage).map(|from| (from, to)));
                want.push(WantedPlace::In(storage));
                continue;
            }
            let none = Vec::new();
            let read_by = readers.get(&port).unwrap_or(&none);
            let is_sole_reader = || read_by.iter().all(|&reader| reader == maker);
            let in_place = matches!(body.nodes[maker].body, NodeBody::Kernel { .. })
                && outputs(port) == 0
                && outputs(maker) == 1
                && (read_by.is_empty()
                    || is_sole_reader() && body.may_write_over((maker, output), |value| *value == (port, 0)));
            if in_place {
                self.flat.facts.in_place += 1;
                want.push(WantedPlace::In(inputs[i].storage));
                continue;
            }
            let storage = self.flat.storage(desc, StorageKind::Arena)?;
            want.push(WantedPlace::In(storage));
            copies.push((self.flat.arg(desc, storage)?, self.flat.arg(desc, inputs[i].storage)?));
        }
        Ok((want, copies, moves))
    }

    /// Where a loop's variables are. A node copies the first value there if one of the two is in a slot.
    fn variables(&mut self, index: usize, num_variables: usize) -> Result<Variables> {
        let node = &self.graph.nodes[index];
        let (mut storages, mut copied) = (Vec::with_capacity(num_variables), Vec::new());
        for i in 0..num_variables {
            let storage = self.storage_of((index, i), &self.verified.descs[index][i])?;
            let value = node.inputs()[i];
            let from = self.value(value);
            let is_copied = [storage, from.storage].into_iter().any(|storage| self.flat.slot_of(storage).is_some());
            if is_copied {
                let name = format!("{}/copy to variable {i}", node.name);
                copied.push(self.add_copy_of(&name, value, from, storage)?.source);
            }
            storages.push((storage, is_copied));
        }
        Ok((storages, copied))
    }

    /// A node behind a loop's body that moves next values to variables.
    fn add_move(&mut self, index: usize, body: &mut LaidGraph, moves: Moves) {
        if moves.is_empty() {
            return;
        }
        let number = self.flat.dynamics.moves.len() as u32;
        self.flat.dynamics.moves.push(moves);
        let id = self.push(Body::Move(number), index);
        let mut sources = std::mem::take(&mut body.dangling);
        sources.extend(body.outputs.iter().map(|output| output.source));
        if !self.flat.wait_for(id, &mut sources) {
            body.roots.push(id);
        }
        body.nodes.end = id + 1;
        // The Next waits for this alone.
        body.dangling.push(ArrivalSource::Node(id));
        body.outputs.iter_mut().for_each(|output| output.source = ArrivalSource::Nobody);
    }
}
