//! The edges of a graph in rows, by their source node, and topological orders of its nodes.
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The successors of each node, one for each edge.
#[derive(Clone, Debug)]
pub struct Successors {
    /// The beginning of each row in the list, and the end of the last.
    starts: Vec<u32>,
    list: Vec<u32>,
}

impl Successors {
    /// From the number of nodes and the edges, which are iterated twice.
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

    /// A topological order of a set of nodes that is closed under successors: of the ready nodes, the one with the
    /// least key first. Nodes on a cycle, and those behind one, are left out.
    pub fn order<K: Ord>(&self, nodes: impl Iterator<Item = usize> + Clone, key: impl Fn(usize) -> K) -> Vec<u32> {
        let push = |ready: &mut BinaryHeap<_>, node| ready.push(Reverse((key(node as usize), node)));
        self.by_queue(nodes, BinaryHeap::new(), push, |ready| ready.pop().map(|Reverse((_, node))| node))
    }

    /// A topological order, first come, first served.
    pub fn first_come(&self, nodes: impl Iterator<Item = usize> + Clone) -> Vec<u32> {
        self.by_queue(nodes, VecDeque::new(), VecDeque::push_back, VecDeque::pop_front)
    }

    /// Kahn's algorithm.
    fn by_queue<Q>(
        &self,
        nodes: impl Iterator<Item = usize> + Clone,
        mut ready: Q,
        push: impl Fn(&mut Q, u32),
        pop: impl Fn(&mut Q) -> Option<u32>,
    ) -> Vec<u32> {
        let mut waiting = vec![0u32; self.starts.len() - 1];
        nodes.clone().for_each(|node| self.of(node).iter().for_each(|&next| waiting[next as usize] += 1));
        nodes.filter(|&node| waiting[node] == 0).for_each(|node| push(&mut ready, node as u32));
        let mut order = Vec::with_capacity(waiting.len());
        while let Some(node) = pop(&mut ready) {
            order.push(node);
            for &next in self.of(node as usize) {
                waiting[next as usize] -= 1;
                if waiting[next as usize] == 0 {
                    push(&mut ready, next);
                }
            }
        }
        order
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_order_follows_all_edges_and_leaves_out_a_cycle() {
        let edges = [(0, 3), (3, 1), (0, 1), (2, 1), (4, 5), (5, 4), (5, 6)];
        let successors = Successors::new(7, edges.into_iter());
        assert_eq!((successors.of(0), successors.of(6)), (&[3, 1][..], &[][..]));
        assert_eq!(successors.order(0..7, |node| node), [0, 2, 3, 1]);
        assert_eq!(successors.order(0..7, Reverse), [2, 0, 3, 1]);
        assert_eq!(successors.first_come(0..7), [0, 2, 3, 1]);
    }
}
