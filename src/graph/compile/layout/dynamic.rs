//! Values whose shape only a run knows: their slots, and the nodes that have to do with them (`graph::dynamics`).
#![forbid(unsafe_code)]

use super::flat::{Flat, FlatStorage, StorageKind};
use crate::base::{Code, Desc, Error, Result};
use crate::graph::build::options::Forwarding;
use crate::graph::plan::Body;
use crate::graph::plan::{DynamicMerge, DynamicNode, Write};

impl Flat {
    /// A storage in a slot. `kind` says whose it is.
    pub fn slot(&mut self, desc: &Desc, kind: StorageKind) -> u32 {
        let (dynamics, storage) = (&mut self.dynamics, self.storages.len() as u32);
        let slot = dynamics.slots.len();
        dynamics.slots.push(*desc);
        match kind {
            StorageKind::Input(i) => dynamics.inputs.push((i as u32, slot as u32)),
            StorageKind::Output(i) => dynamics.outputs.push((i as u32, slot as u32)),
            StorageKind::Arena | StorageKind::Constant(_) | StorageKind::Slot(_) => {}
        }
        self.storages.push(FlatStorage { bytes: 0, kind: StorageKind::Slot(slot) });
        storage
    }

    /// The slot of a storage, if it has one.
    pub fn slot_of(&self, storage: u32) -> Option<u32> {
        match self.storages[storage as usize].kind {
            StorageKind::Slot(slot) => Some(slot as u32),
            _ => None,
        }
    }
}

/// Finds the nodes with arguments in slots, and refuses what can't have any. Before the arena is planned.
pub(super) fn mark(flat: &mut Flat) -> Result<()> {
    if flat.dynamics.is_empty() {
        return Ok(());
    }
    let refuse = |node: u32, what: &str| {
        let name = flat.names.get(node as usize);
        Err(Error::new(Code::Unimplemented, format!("node '{name}': {what} with a shape that only a run knows")))
    };
    let in_slot = |view: u32| flat.slot_of(flat.args[view as usize].storage).is_some();
    for (node, body) in flat.bodies.iter().enumerate() {
        let node = node as u32;
        match *body {
            // One element, and it goes out of a branch where another branch leaves another shape.
            Body::Select(i) if in_slot(flat.selects[i as usize].selector) => return refuse(node, "a selector"),
            Body::Test(i) if in_slot(flat.loops[i as usize].predicate) => return refuse(node, "a predicate"),
            Body::Switch(i) if in_slot(flat.switches[i as usize].predicate) => return refuse(node, "a predicate"),
            _ => {}
        }
    }
    let mut read = vec![false; flat.dynamics.slots.len()];
    flat.dynamics.outputs.iter().for_each(|&(_, slot)| read[slot as usize] = true);
    flat.dynamics.moves.iter().flatten().for_each(|&(a, b)| (read[a as usize], read[b as usize]) = (true, true));
    let merges = merges(flat, &mut read);
    let mut nodes = Vec::new();
    for (number, kernel) in flat.kernels.iter().enumerate() {
        let inputs = usize::from(kernel.num_inputs);
        let args = kernel.args..kernel.args + u32::from(kernel.num_inputs + kernel.num_outputs);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (i, arg) in args.enumerate() {
            let Some(slot) = flat.slot_of(flat.args[arg as usize].storage) else { continue };
            if i < inputs {
                read[slot as usize] = true;
                reads.push((arg, slot));
            } else {
                writes.push(Write { output: (i - inputs) as u16, is_unused: false, arg, slot });
            }
        }
        if reads.is_empty() && writes.is_empty() {
            continue;
        }
        if kernel.forwarding.iter().any(|(_, how)| matches!(how, Forwarding::Reserved(_))) {
            return refuse(kernel.node, "an output that takes over memory, and arguments");
        }
        match flat.bodies[kernel.node as usize] {
            Body::Kernel(_) => {}
            _ => {
                return refuse(
                    kernel.node,
                    "a kernel that completes later or may block is given its arguments and their memory when the graph is \
                     compiled, and it has some",
                );
            }
        }
        nodes.push(DynamicNode { kernel: number as u32, node: kernel.node, reads, writes });
    }
    for (index, node) in nodes.iter_mut().enumerate() {
        node.writes.iter_mut().for_each(|write| write.is_unused = !read[write.slot as usize]);
        flat.bodies[node.node as usize] = Body::Dynamic(index as u32);
    }
    flat.dynamics.nodes = nodes;
    for (number, (merge, _)) in merges.iter().enumerate() {
        flat.merges[*merge].open = number as u32;
    }
    flat.dynamics.merges = merges.into_iter().map(|(_, merge)| merge).collect();
    Ok(())
}

/// The merges that have to do with slots; on the way in, `read` says which slots are handed on with their memory, on
/// the way out also which ones merges read.
fn merges(flat: &Flat, read: &mut [bool]) -> Vec<(usize, DynamicMerge)> {
    let slot = |view: u32| flat.slot_of(flat.args[view as usize].storage);
    let mut merges = Vec::new();
    for (number, merge) in flat.merges.iter().enumerate() {
        let inputs: Vec<Option<u32>> = merge.inputs.iter().map(|input| slot(input.view)).collect();
        let (value, index) = (slot(merge.value), slot(merge.index));
        if inputs.iter().chain([&value, &index]).any(Option::is_some) {
            let is_handed_on = value.is_some_and(|value| read[value as usize]);
            merges.push((number, DynamicMerge { inputs, value, index, is_handed_on }));
        }
    }
    let inputs = merges.iter().flat_map(|(_, merge)| &merge.inputs).flatten();
    inputs.for_each(|&slot| read[slot as usize] = true);
    merges
}
