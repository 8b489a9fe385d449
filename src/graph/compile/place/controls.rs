//! Pieces of an engine's work that are branches or loops: their memory, and what they become.
#![forbid(unsafe_code)]

use super::placer::Placer;
use super::region::{OnDevice, Region};
use crate::base::{Desc, Result};
use crate::graph::build::contents::{NodeBody, Value};
use crate::graph::carry::device::control::DeviceControl;
use crate::graph::carry::device::device_frame::ValuePlace;
use crate::graph::plan::jumps::JumpProgram;
use std::sync::Arc;

/// Alignment of the places of tensors of the runs' own in a piece's memory.
const ALIGNMENT: usize = 256;

/// Where a piece's inputs, or outputs, are.
type Sources = [(ValuePlace, Desc)];

impl Placer {
    /// The control flow of a piece that is a branch or a loop.
    pub(in crate::graph) fn control(
        &mut self,
        region: &Region<'_>,
        on: &OnDevice,
        (node, inputs, outputs): (usize, &Sources, &Sources),
    ) -> Result<Option<Arc<DeviceControl>>> {
        let Some((lowered, by_device)) = region.taken.get(&node) else { return Ok(None) };
        let old = &region.old.nodes[node];
        // A run's own tensors have places in the piece's memory, in the order in which `memory_of` counts.
        let memory = on.places.get(&(node, old.num_outputs())).copied().unwrap_or(0);
        let mut end = lowered.bytes;
        let mut settle = |all: &Sources, copied: &mut Vec<(usize, usize)>| -> Result<Vec<ValuePlace>> {
            let mut sources = Vec::with_capacity(all.len());
            for (number, (source, desc)) in all.iter().enumerate() {
                sources.push(match source {
                    ValuePlace::Arena(_) | ValuePlace::Fixed(_) => *source,
                    ValuePlace::Input(_) | ValuePlace::Output(_) => {
                        let (place, bytes) = (end.next_multiple_of(ALIGNMENT), desc.bytes()?);
                        end = place + bytes;
                        if bytes > 0 {
                            copied.push((number, bytes));
                        }
                        ValuePlace::Arena(memory + place)
                    }
                });
            }
            Ok(sources)
        };
        let (mut copied_in, mut copied_out) = (Vec::new(), Vec::new());
        let inputs = settle(inputs, &mut copied_in)?;
        let outputs = settle(outputs, &mut copied_out)?;
        let can_record = self.devices[on.engine].accelerator().is_some_and(|accelerator| accelerator.can_record());
        let plan = JumpProgram::of(&lowered.list);
        let controls = &mut self.needs[on.engine].controls;
        controls.push([plan.blocks.len(), plan.slots]);
        Ok(Some(Arc::new(DeviceControl {
            engine: on.engine,
            number: controls.len() - 1,
            name: format!("node '{}'", old.name),
            memory,
            lowered: Arc::clone(lowered),
            by_device: *by_device,
            is_recorded: self.wants_segments && can_record,
            inputs,
            outputs,
            copied_in,
            copied_out,
            plan,
        })))
    }
}

impl Region<'_> {
    /// How much memory a branch or a loop has beside its outputs, on the engine that it is on.
    pub fn memory_of(&self, engine: usize, node: usize) -> Result<usize> {
        let mut bytes = self.taken.get(&node).map_or(0, |(lowered, _)| lowered.bytes);
        let is_own = |value: &Value| {
            let is_port =
                matches!(self.old.nodes[value.0].body, NodeBody::Input(_)) || self.in_place.contains_key(value);
            is_port && self.device[value.0] == Some(engine)
        };
        let old = &self.old.nodes[node];
        let outputs = (0..old.num_outputs()).map(|output| (node, output));
        for value in old.inputs().iter().copied().chain(outputs).filter(is_own) {
            bytes = bytes.next_multiple_of(ALIGNMENT) + self.verified.desc(value).bytes()?;
        }
        Ok(bytes)
    }
}
