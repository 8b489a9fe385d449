//! Merges that go on with the first value that comes.
//!
//! A merge waits for its control edges and for one live input, or for all of them to be dead (`sync::Merge`). So who
//! comes behind a merge does not come behind its inputs: their edges are loose (`compile::entries`), and what they
//! bring stays in memory until the run is over. Some merges wait for everything, as any other node does: those with one
//! source, with an input that is always there, or in a branch that begins before an input is there, or in a loop whose
//! iterations overlap.

use super::GraphLayout;
use crate::base::Result;
use crate::graph::build::contents::Value;
use crate::graph::compile::layout::flat::{ArrivalSource, Val};
use crate::graph::compile::layout::joins::Joins;
use crate::graph::plan::merge::MergeShape;
use crate::graph::plan::{Body, Merge, MergeEdge, MergeInput, NO_BIT, NOT_OPEN};

impl GraphLayout<'_> {
    pub(super) fn add_merge(&mut self, index: usize, inputs: &[Value]) -> Result<()> {
        let number = self.flat.merges.len() as u32;
        let id = self.push(Body::Merge(number), index);
        let mut sources: Vec<ArrivalSource> = inputs.iter().map(|value| self.value(*value).source).collect();
        let of_input = sources.clone();
        sources.sort_unstable();
        sources.dedup();
        let shape = self.arrive_at_merge(id, index, inputs, &sources);
        let bit = self.skip_bit(id, index);
        let mut from = Vec::with_capacity(inputs.len());
        for (value, source) in inputs.iter().zip(of_input) {
            let input = self.value(*value);
            let made_by = match input.source {
                ArrivalSource::Nobody | ArrivalSource::Carried(_) | ArrivalSource::Guard => NO_BIT,
                ArrivalSource::Node(node) => node,
                ArrivalSource::OneOf(list) => self.flat.alternatives[list as usize].last().copied().unwrap_or(NO_BIT),
            };
            let view = self.flat.arg(self.verified.desc(*value), input.storage)?;
            let group = sources.iter().position(|other| *other == source).unwrap_or(0) as u16;
            from.push(MergeInput { view, bit: input.bit, from: made_by, group });
        }
        let mut views = [0; 2];
        for (output, view) in views.iter_mut().enumerate() {
            let desc = *self.verified.desc((index, output));
            let storage = self.storage_of((index, output), &desc)?;
            *view = self.flat.arg(&desc, storage)?;
            self.set((index, output), Val { storage, source: ArrivalSource::Node(id), bit });
        }
        self.flat.merges.push(Merge {
            node: id,
            inputs: from,
            value: views[0],
            index: views[1],
            shape,
            open: NOT_OPEN,
        });
        self.done[index] = ArrivalSource::Node(id);
        Ok(())
    }

    /// Makes a merge wait; gives the shape of its word if it has one. `sources` are those of its inputs, each once.
    fn arrive_at_merge(
        &mut self,
        id: u32,
        index: usize,
        inputs: &[Value],
        sources: &[ArrivalSource],
    ) -> Option<MergeShape> {
        let node = &self.graph.nodes[index];
        let is_inside =
            |source: &ArrivalSource| *source != ArrivalSource::Nobody && self.flat.speaks(*source) >= self.first;
        let most = usize::from(MergeEdge::CONTROL);
        let is_too_wide = inputs.len() >= most || node.after.len() >= most;
        if sources.len() < 2 || is_too_wide || self.scope.is_copied() || !sources.iter().all(is_inside) {
            self.arrive(id, node);
            return None;
        }
        let mut controls = self.sources(&[], node);
        self.flat.only_needed(id, &mut controls);
        let merge = self.flat.merges.len() as u32;
        let first = self.flat.merge_edges.len() as u32;
        let groups = (0..sources.len() as u16).map(|group| MergeEdge { merge, group });
        let others = controls.iter().map(|_| MergeEdge { merge, group: MergeEdge::CONTROL });
        self.flat.merge_edges.extend(groups.chain(others));
        let begin = self.flat.edges.len() as u32;
        self.flat.link(id, sources, |_, i| Joins::at_merge(first + i as u32));
        self.flat.loose.push(begin..self.flat.edges.len() as u32);
        let first = first + sources.len() as u32;
        self.flat.link(id, &controls, |_, i| Joins::at_merge(first + i as u32));
        self.late.extend(inputs);
        Some(MergeShape { data: sources.len() as u16, controls: controls.len() as u16 })
    }
}
