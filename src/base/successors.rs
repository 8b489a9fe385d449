//! The edges of a graph in rows, by the node that they leave, and topological orders of its nodes.
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The successors of each node: one for each edge.
#[derive(Clone, Debug)]
pub struct Successors {
    /// Where each row begins in the list; one more for the end of the last.
    starts: Vec<u32>,
    list: Vec<u32>,
}

impl Successors {
    /// Of so many nodes, by edges from one to another. The edges are gone through twice.
    pub fn new(nodes: usize, edges: impl Iterator<Item = (usize, usize)> + Clone) -> Successors {
        let mut starts = vec![0u32; nodes + 1];
        edges.clone().for_each(|(from, _)| starts[from + 1] += 1);
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut list = vec![0u32; starts[nodes] as usize];
        edges.for_each(|(from, to)| {
            list[next[from] as usize] = to as u32;
            next[from] += 1;
        });
        Successors { starts, list }
    }

    pub fn of(&self, node: usize) -> &[u32] {
        &self.list[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// A topological order of some nodes, which all edges from them lead to, by Kahn's algorithm: of the nodes that are
    /// ready, the one with the least key first. A node is asked for its key once, when it becomes ready. Nodes on a
    /// cycle, and those behind one, are left out.
    pub fn order<K: Ord>(
        &self,
        nodes: impl Iterator<Item = usize> + Clone,
        mut key: impl FnMut(usize) -> K,
    ) -> Vec<u32> {
        let mut waiting = vec![0u32; self.starts.len() - 1];
        nodes.clone().for_each(|node| self.of(node).iter().for_each(|&next| waiting[next as usize] += 1));
        let free = nodes.filter(|&node| waiting[node] == 0);
        let mut ready: BinaryHeap<_> = free.map(|node| Reverse((key(node), node as u32))).collect();
        let mut order = Vec::new();
        while let Some(Reverse((_, node))) = ready.pop() {
            order.push(node);
            for &next in self.of(node as usize) {
                waiting[next as usize] -= 1;
                if waiting[next as usize] == 0 {
                    ready.push(Reverse((key(next as usize), next)));
                }
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_follows_all_edges_and_leaves_out_a_cycle() {
        let edges = [(0, 3), (3, 1), (0, 1), (2, 1), (4, 5), (5, 4), (5, 6)];
        let successors = Successors::new(7, edges.into_iter());
        assert_eq!((successors.of(0), successors.of(6)), (&[3, 1][..], &[][..]));
        assert_eq!(successors.order(0..7, |node| node), [0, 2, 3, 1]);
        assert_eq!(successors.order(0..7, |node| Reverse(node)), [2, 0, 3, 1]);
        let mut turn = 0;
        let first_come = successors.order(0..4, |_| {
            turn += 1;
            turn
        });
        assert_eq!(first_come, [0, 2, 3, 1]);
    }
}
