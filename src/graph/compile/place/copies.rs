//! Which copies to an engine a stream is behind, so that it does not wait for one twice.
#![forbid(unsafe_code)]

use crate::graph::build::contents::{Node, NodeBody};

/// A copy's place: in which order, and where in it, from 1.
pub(in crate::graph) type Turn = (usize, usize);

/// The order of copies that a value has a turn in.
pub(in crate::graph) fn order_of(node: &Node) -> Option<usize> {
    match node.body {
        NodeBody::Input(_) => Some(0),
        NodeBody::Constant(_) => Some(1),
        _ => None,
    }
}

/// Copies that a stream is behind: of those in an order how many, and the others one by one.
#[derive(Clone)]
pub(in crate::graph) struct CopiesSeen {
    ordered: [usize; 2],
    others: Vec<u64>,
}

impl CopiesSeen {
    pub fn new(count: usize) -> CopiesSeen {
        CopiesSeen { ordered: [0; 2], others: vec![0; count.div_ceil(64)] }
    }

    pub fn join(&mut self, other: &CopiesSeen) {
        self.ordered.iter_mut().zip(other.ordered).for_each(|(mine, theirs)| *mine = theirs.max(*mine));
        self.others.iter_mut().zip(&other.others).for_each(|(mine, theirs)| *mine |= theirs);
    }

    /// Whether it was behind this one already; it is from now on.
    pub fn meet(&mut self, position: usize, turn: Option<Turn>) -> bool {
        if let Some((order, turn)) = turn {
            let before = self.ordered[order];
            self.ordered[order] = before.max(turn);
            return before >= turn;
        }
        let (word, bit) = (position / 64, 1 << (position % 64));
        let before = self.others[word] & bit != 0;
        self.others[word] |= bit;
        before
    }
}
