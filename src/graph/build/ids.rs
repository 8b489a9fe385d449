//! The integers by which C names nodes and values of a graph under construction.
//!
//! ```text
//! | serial of the graph : 16 | node : 32 | output + 1 : 16 |      output + 1 = 0 means the node itself
//! ```
#![forbid(unsafe_code)]

/// A node of a graph under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeId(u64);

/// One output of one node of a graph under construction. C has an array of them as one of such numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct ValueId(u64);

const NODE_SHIFT: u32 = 16;
const SERIAL_SHIFT: u32 = 48;

impl NodeId {
    pub(in crate::graph) fn new(serial: u16, node: usize) -> NodeId {
        NodeId(u64::from(serial) << SERIAL_SHIFT | (node as u64) << NODE_SHIFT)
    }

    /// The node's output `output`.
    pub fn output(self, output: usize) -> ValueId {
        ValueId(self.0 | (output as u64 + 1))
    }

    /// The index in the graph with this serial; `None` for another graph's node, and for a value.
    pub(in crate::graph) fn index(self, serial: u16) -> Option<usize> {
        (self.0 >> SERIAL_SHIFT == u64::from(serial) && self.0 & 0xffff == 0)
            .then_some((self.0 >> NODE_SHIFT) as u32 as usize)
    }
}

impl ValueId {
    /// Node and output in the graph with this serial; `None` for another graph's value, and for a node.
    pub(in crate::graph) fn index(self, serial: u16) -> Option<(usize, usize)> {
        (self.0 >> SERIAL_SHIFT == u64::from(serial) && self.0 & 0xffff != 0)
            .then_some(((self.0 >> NODE_SHIFT) as u32 as usize, (self.0 & 0xffff) as usize - 1))
    }
}

impl From<u64> for NodeId {
    fn from(raw: u64) -> Self {
        NodeId(raw)
    }
}

impl From<NodeId> for u64 {
    fn from(id: NodeId) -> Self {
        id.0
    }
}

impl From<u64> for ValueId {
    fn from(raw: u64) -> Self {
        ValueId(raw)
    }
}

impl From<ValueId> for u64 {
    fn from(id: ValueId) -> Self {
        id.0
    }
}
