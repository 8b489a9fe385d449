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
}

/// The nodes of a program.
#[derive(Default)]
pub struct Nodes {
    text: String,
    /// Behind each node's name.
    ends: Vec<u32>,
    counted_at: Vec<u32>,
    engines: Vec<(u32, Arc<str>)>,
}

impl Nodes {
    /// False if there is no memory.
    pub fn push(&mut self, node: &NodeOfTable<'_>) -> bool {
        let number = self.ends.len() as u32;
        let room = self.text.try_reserve(node.name.len()).is_ok()
            && self.ends.try_reserve(1).is_ok()
            && self.counted_at.try_reserve(1).is_ok()
            && self.engines.try_reserve(1).is_ok();
        if room {
            self.text.push_str(node.name);
            self.ends.push(self.text.len() as u32);
            self.counted_at.push(node.counted_at.unwrap_or(u32::MAX));
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
        })
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_by_their_number() {
        let mut nodes = Nodes::default();
        let own = |name, counted_at| NodeOfTable { name, counted_at, engine: None };
        assert!(nodes.push(&own("a", None)) && nodes.push(&own("", Some(3))));
        assert!(nodes.push(&NodeOfTable { engine: Some("cuda:0"), ..own("copy", None) }));
        let of = |node| nodes.get(node).map(|node| (node.name, node.counted_at, node.engine));
        assert_eq!(of(0), Some(("a", None, None)));
        assert_eq!(of(1), Some(("", Some(3), None)));
        assert_eq!(of(2), Some(("copy", None, Some("cuda:0"))));
        assert_eq!(of(3), None);
    }
}
