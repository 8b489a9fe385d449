//! Values whose shape only a run knows. A program without such values has nothing of this.
//!
//! Such a value has a slot in each step, and not a place in the arena. A node that reads or writes one is a
//! `Body::Dynamic`: before it runs it takes what its slots hold into the views of its arguments, and its kernel, or the
//! executor where the shape is known after all, allocates the outputs. Nodes without such arguments are what they are
//! in any other program.
//!
//! The other ways of a value need no code of their own: into a variable of a loop, and out of a branch that leaves a
//! fixed shape, it is copied by a node; what a loop's body has computed changes places with the variable
//! (`Body::Move`), behind all that read it and in front of the Next. A merge passes on where its value is, or copies it
//! where that would not last.
#![forbid(unsafe_code)]

use crate::base::Desc;

#[derive(Default)]
pub(in crate::graph) struct Dynamics {
    /// The shape of each slot's value, as far as it is known.
    pub slots: Vec<Desc>,
    pub nodes: Vec<DynamicNode>,
    pub merges: Vec<DynamicMerge>,
    /// Pairs of slots that change places.
    pub moves: Vec<Vec<(u32, u32)>>,
    /// The run's inputs that are in slots: input and slot.
    pub inputs: Vec<(u32, u32)>,
    /// The same of its outputs.
    pub outputs: Vec<(u32, u32)>,
}

/// A kernel with arguments in slots.
pub(in crate::graph) struct DynamicNode {
    /// Index in `Plan::kernels`, and in `Layout::bodies`.
    pub kernel: u32,
    pub node: u32,
    /// Arguments that it reads, as index in `Plan::args`, and their slots.
    pub reads: Vec<(u32, u32)>,
    pub writes: Vec<Write>,
}

/// A merge with values in slots; each place is a slot or nothing.
pub(in crate::graph) struct DynamicMerge {
    pub inputs: Vec<Option<u32>>,
    pub value: Option<u32>,
    pub index: Option<u32>,
    /// The value is handed to a tensor or to a loop's variable, together with its memory: a reference would not do.
    pub is_handed_on: bool,
}

/// An output in a slot.
#[derive(Clone, Copy)]
pub(in crate::graph) struct Write {
    pub output: u16,
    /// Whether it may be left out.
    pub is_unused: bool,
    pub arg: u32,
    pub slot: u32,
}

impl Dynamics {
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub fn bytes(&self) -> usize {
        fn of<T>(list: &Vec<T>) -> usize {
            list.capacity() * size_of::<T>()
        }
        let nodes: usize = self.nodes.iter().map(|node| of(&node.reads) + of(&node.writes)).sum();
        let moves: usize = self.moves.iter().map(of).sum();
        let merges: usize = self.merges.iter().map(|merge| of(&merge.inputs)).sum();
        let lists = of(&self.slots) + of(&self.nodes) + of(&self.merges) + of(&self.moves);
        lists + of(&self.inputs) + of(&self.outputs) + nodes + merges + moves
    }
}
