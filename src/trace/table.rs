//! The meaning of the numbers in records: programs with their nodes, streams.
#![forbid(unsafe_code)]

use std::sync::Arc;

/// The name of a node, and where the run counts the iterations of the innermost loop around it.
#[derive(Clone, Copy, Debug)]
pub struct NodeOfTable<'a> {
    pub name: &'a str,
    pub counted_at: Option<u32>,
    /// The engine whose work it is, if not the program's own.
    pub engine: Option<&'a str>,
    /// Whether there is a record when it has run. There is none of nodes that only lead to others.
    pub is_told: bool,
}

/// The nodes of a program.
#[derive(Default)]
pub struct Nodes {
    text: String,
    /// Behind each node's name.
    ends: Vec<u32>,
    counted_at: Vec<u32>,
    engines: Vec<(u32, Arc<str>)>,
    told: Vec<bool>,
    /// The nodes that each one waits for: where its list begins; one more closes the last. Empty if not known.
    first_before: Vec<u32>,
    before: Vec<u32>,
}

impl Nodes {
    /// False if there is no memory.
    pub fn push(&mut self, node: &NodeOfTable<'_>) -> bool {
        let number = self.ends.len() as u32;
        let room = self.text.try_reserve(node.name.len()).is_ok()
            && self.ends.try_reserve(1).is_ok()
            && self.counted_at.try_reserve(1).is_ok()
            && self.engines.try_reserve(1).is_ok()
            && self.told.try_reserve(1).is_ok();
        if room {
            self.text.push_str(node.name);
            self.ends.push(self.text.len() as u32);
            self.counted_at.push(node.counted_at.unwrap_or(u32::MAX));
            self.told.push(node.is_told);
            if let Some(engine) = node.engine {
                let last = self.engines.last().filter(|(_, last)| **last == *engine);
                let engine = last.map_or_else(|| Arc::from(engine), |(_, last)| Arc::clone(last));
                self.engines.push((number, engine));
            }
        }
        room
    }

    pub fn get(&self, node: u32) -> Option<NodeOfTable<'_>> {
        let end = *self.ends.get(node as usize)? as usize;
        let begin = node.checked_sub(1).map_or(0, |before| self.ends[before as usize] as usize);
        let counted_at = self.counted_at[node as usize];
        let engine = self.engines.binary_search_by_key(&node, |(number, _)| *number).ok();
        Some(NodeOfTable {
            name: &self.text[begin..end],
            counted_at: (counted_at != u32::MAX).then_some(counted_at),
            engine: engine.map(|at| &*self.engines[at].1),
            is_told: self.told[node as usize],
        })
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The edges, behind the last node. `each` gives all of them, from and to, to a function, the same each time.
    /// False if there is no memory.
    pub fn set_edges(&mut self, each: impl Fn(&mut dyn FnMut(u32, u32))) -> bool {
        let (mut first, mut before) = (Vec::new(), Vec::new());
        if first.try_reserve_exact(self.len() + 1).is_err() {
            return false;
        }
        first.resize(self.len() + 1, 0u32);
        each(&mut |_, to| first[to as usize] += 1);
        let mut sum = 0;
        for count in &mut first {
            sum += *count;
            *count = sum;
        }
        if before.try_reserve_exact(sum as usize).is_err() {
            return false;
        }
        before.resize(sum as usize, 0);
        each(&mut |from, to| {
            let at = &mut first[to as usize];
            *at -= 1;
            before[*at as usize] = from;
        });
        (self.first_before, self.before) = (first, before);
        true
    }

    /// The nodes that a node waits for, in any order. In a loop a node may wait for later ones.
    pub fn before(&self, node: u32) -> &[u32] {
        match self.first_before.get(node as usize..node as usize + 2) {
            Some(&[first, end]) => &self.before[first as usize..end as usize],
            _ => &[],
        }
    }
}

/// The meaning of the records of one object.
pub struct Table {
    /// Of the object, never that of another one.
    pub number: u32,
    /// "digits", "stream 3"
    pub name: String,
    /// Of a program.
    pub nodes: Nodes,
}

impl Table {
    /// The name in what people read: a program has none if its graph has none.
    pub fn shown_name(&self) -> &str {
        if self.name.is_empty() { "program" } else { &self.name }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_by_their_number() {
        let mut nodes = Nodes::default();
        let own = |name, counted_at| NodeOfTable { name, counted_at, engine: None, is_told: !name.is_empty() };
        assert!(nodes.push(&own("a", None)) && nodes.push(&own("", Some(3))));
        assert!(nodes.push(&NodeOfTable { engine: Some("cuda:0"), ..own("copy", None) }));
        let of = |node| nodes.get(node).map(|node| (node.name, node.counted_at, node.engine));
        assert_eq!(of(0), Some(("a", None, None)));
        assert_eq!(of(1), Some(("", Some(3), None)));
        assert_eq!(of(2), Some(("copy", None, Some("cuda:0"))));
        assert_eq!(of(3), None);
        assert_eq!([0, 1, 2].map(|node| nodes.get(node).unwrap().is_told), [true, false, true]);
        assert_eq!(nodes.before(2), []);
        assert!(nodes.set_edges(|edge| [(0, 2), (2, 1), (1, 2)].iter().for_each(|&(from, to)| edge(from, to))));
        let mut both = nodes.before(2).to_vec();
        both.sort_unstable();
        assert_eq!(
            (nodes.before(0), nodes.before(1), &both[..], nodes.before(3)),
            (&[][..], &[2][..], &[0, 1][..], &[][..])
        );
    }
}
