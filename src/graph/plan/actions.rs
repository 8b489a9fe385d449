//! A branch or a loop as work of one engine: lists of actions inside of one another, with the order that they need and
//! the places of the values that only they use. Pure data and pure functions.
//!
//! *Order.* The actions of a list stand in an order that is right if they are done one after the other. The edges
//! follow from the places that actions touch: an action comes after those that wrote a place that it touches, and after
//! those that read a place that it writes. To a list, an action with lists of its own touches what any of these touch.
//! Edges of the graph's without data are added, and what others imply is left out.
//!
//! *Memory.* A value belongs to the list in which it is made. Values of a list share bytes where one is over when the
//! other begins by the edges that are there anyway (`arena`). The memory of the lists inside of an action is one more
//! value of its list's, and branches of which one runs share it.
#![forbid(unsafe_code)]

use super::arena::{self, StoredValue};
use crate::base::{Desc, Reach, Ref};
use crate::device::Relation;
use crate::engine::{BoundKernel, Tensor};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Where {
    /// In memory of the piece's own: the value with this number.
    Inner(usize),
    /// An input or an output of the node.
    Input(usize),
    Output(usize),
    /// At an address that stays; nobody writes there.
    Fixed(usize),
}

/// A predicate or an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    pub at: Where,
    pub desc: Desc,
}

/// The test of a loop: an integer, or how two numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    Integer(Selector),
    Comparison(Relation, [Selector; 2]),
}

impl Test {
    /// The numbers that are read for it.
    pub fn reads(&self) -> &[Selector] {
        match self {
            Test::Integer(selector) => std::slice::from_ref(selector),
            Test::Comparison(_, both) => both,
        }
    }
}

#[derive(Clone)]
pub enum What {
    Launch {
        kernel: Ref<BoundKernel>,
        inputs: Vec<(Where, Desc)>,
        outputs: Vec<(Where, Desc)>,
    },
    Copy {
        from: Where,
        to: Where,
        bytes: usize,
    },
    Branch {
        choice: Selector,
        is_cond: bool,
        branches: Vec<List>,
    },
    Loop {
        predicate: Test,
        body: List,
        /// Actions of the body behind which the predicate is read for the next time; laid with the edges.
        behind: Vec<usize>,
    },
}

#[derive(Clone)]
pub struct Action {
    /// For texts: "node 'step'".
    pub name: String,
    pub what: What,
    /// Those before it in the list that are over when it begins.
    pub after: Vec<usize>,
}

#[derive(Clone, Default)]
pub struct List {
    pub actions: Vec<Action>,
    /// Numbers of the values that are made here.
    pub values: Vec<usize>,
}

/// The work of a branch or a loop.
pub struct Lowered {
    pub list: List,
    /// Where each value is in the piece's memory, and how much that is.
    pub offsets: Vec<usize>,
    pub bytes: usize,
    /// Constants on the engine, which stay.
    pub _constants: Vec<Ref<Tensor>>,
    pub kernels: u32,
    pub loops: u32,
    pub branches: u32,
}

impl Action {
    /// The lists inside of it.
    pub fn lists(&self) -> &[List] {
        match &self.what {
            What::Launch { .. } | What::Copy { .. } => &[],
            What::Branch { branches, .. } => branches,
            What::Loop { body, .. } => std::slice::from_ref(body),
        }
    }

    fn lists_mut(&mut self) -> &mut [List] {
        match &mut self.what {
            What::Launch { .. } | What::Copy { .. } => &mut [],
            What::Branch { branches, .. } => branches,
            What::Loop { body, .. } => std::slice::from_mut(body),
        }
    }

    /// Whether it, or anything inside of it, reads or writes there.
    pub fn touches(&self, place: Where) -> bool {
        let (mut reads, mut writes) = (BTreeSet::new(), BTreeSet::new());
        self.touch(&mut reads, &mut writes);
        reads.contains(&place) || writes.contains(&place)
    }

    /// The places that it and all inside of it read, and write.
    fn touch(&self, reads: &mut BTreeSet<Where>, writes: &mut BTreeSet<Where>) {
        match &self.what {
            What::Launch { inputs, outputs, .. } => {
                reads.extend(inputs.iter().map(|(at, _)| *at));
                writes.extend(outputs.iter().map(|(at, _)| *at));
            }
            What::Copy { from, to, .. } => {
                reads.insert(*from);
                writes.insert(*to);
            }
            What::Branch { choice, .. } => {
                reads.insert(choice.at);
            }
            What::Loop { predicate, .. } => reads.extend(predicate.reads().iter().map(|read| read.at)),
        }
        let inside = self.lists().iter().flat_map(|list| &list.actions);
        inside.for_each(|action| action.touch(reads, writes));
    }
}

impl List {
    /// Whether anything in it writes there.
    pub fn writes(&self, place: Where) -> bool {
        !self.writers([place].into_iter()).is_empty()
    }

    /// How many actions there are, those inside of others too.
    pub fn len(&self) -> usize {
        let inside = |action: &Action| action.lists().iter().map(List::len).sum::<usize>();
        self.actions.iter().map(|action| 1 + inside(action)).sum()
    }

    /// Actions that none comes after.
    pub fn last(&self) -> Vec<usize> {
        let mut is_last = vec![true; self.actions.len()];
        self.actions.iter().flat_map(|action| &action.after).for_each(|&before| is_last[before] = false);
        (0..is_last.len()).filter(|&at| is_last[at]).collect()
    }

    /// The last ones that write these places, without those that others imply. The edges are laid.
    pub fn writers(&self, places: impl Iterator<Item = Where>) -> Vec<usize> {
        let mut reach = Reach::new(self.actions.len() + 1);
        let mut last: HashMap<Where, usize> = HashMap::new();
        for (at, action) in self.actions.iter().enumerate() {
            let (mut reads, mut writes) = (BTreeSet::new(), BTreeSet::new());
            action.touch(&mut reads, &mut writes);
            last.extend(writes.into_iter().map(|place| (place, at)));
            reach.add(at, &mut action.after.clone());
        }
        let mut writers = places.filter_map(|place| last.get(&place).copied()).collect();
        reach.add(self.actions.len(), &mut writers);
        writers
    }

    /// Lays the edges, and gives places to the values: offsets from the list's memory on, by number. `bytes` has the
    /// size of each. Gives the bytes of all of it.
    pub fn settle(&mut self, bytes: &[usize], offsets: &mut [usize], alignment: usize) -> usize {
        let inside: Vec<usize> = self
            .actions
            .iter_mut()
            .map(|action| {
                let lists = action.lists_mut().iter_mut();
                let end = lists.map(|list| list.settle(bytes, offsets, alignment)).max().unwrap_or(0);
                if let What::Loop { predicate, body, behind } = &mut action.what {
                    *behind = body.writers(predicate.reads().iter().map(|read| read.at));
                }
                end
            })
            .collect();
        let (reach, users) = self.link();
        let mut stored: BTreeMap<(usize, usize), StoredValue> = BTreeMap::new();
        for &value in &self.values {
            // The first that touches a value writes it, and all others come after that.
            let Some((&writer, readers)) = users.get(&Where::Inner(value)).and_then(|users| users.split_first()) else {
                continue;
            };
            let value_ =
                StoredValue { bytes: bytes[value], writer: Some(writer), readers: readers.to_vec(), is_kept: false };
            stored.insert((writer, value), value_);
        }
        for (at, &bytes) in inside.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            let memory = StoredValue { bytes, writer: Some(at), readers: Vec::new(), is_kept: false };
            stored.insert((at, usize::MAX), memory);
        }
        let values: Vec<StoredValue> = stored.values().cloned().collect();
        let arena = arena::places(&values, |before, then| reach.is_before(before, then), alignment);
        for (&(writer, value), &place) in stored.keys().zip(&arena.offsets) {
            match offsets.get_mut(value) {
                Some(offset) => *offset = place,
                None => self.actions[writer].lists().iter().for_each(|list| list.shift(place, offsets)),
            }
        }
        arena.bytes
    }

    /// The list's memory begins somewhere else.
    fn shift(&self, by: usize, offsets: &mut [usize]) {
        self.values.iter().for_each(|&value| offsets[value] += by);
        let inside = self.actions.iter().flat_map(Action::lists);
        inside.for_each(|list| list.shift(by, offsets));
    }

    /// Completes the edges by what the actions touch. Gives what comes before what, and who touches each value, in
    /// their order.
    fn link(&mut self) -> (Reach, HashMap<Where, Vec<usize>>) {
        let mut reach = Reach::new(self.actions.len());
        let mut users: HashMap<Where, Vec<usize>> = HashMap::new();
        let mut writer: HashMap<Where, usize> = HashMap::new();
        let mut readers: HashMap<Where, Vec<usize>> = HashMap::new();
        for (at, action) in self.actions.iter_mut().enumerate() {
            let (mut reads, mut writes) = (BTreeSet::new(), BTreeSet::new());
            action.touch(&mut reads, &mut writes);
            let mut after = std::mem::take(&mut action.after);
            after.extend(reads.union(&writes).filter_map(|place| writer.get(place)));
            for &place in &writes {
                after.extend(readers.remove(&place).into_iter().flatten());
                writer.insert(place, at);
            }
            for &place in reads.difference(&writes) {
                readers.entry(place).or_default().push(at);
            }
            reads.union(&writes).for_each(|&place| users.entry(place).or_default().push(at));
            reach.add(at, &mut after);
            action.after = after;
        }
        (reach, users)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn copy(from: Where, to: Where) -> Action {
        Action { name: format!("{from:?} to {to:?}"), what: What::Copy { from, to, bytes: 4 }, after: Vec::new() }
    }

    fn list(copies: &[(Where, Where)], values: &[usize]) -> List {
        let actions = copies.iter().map(|&(from, to)| copy(from, to)).collect();
        List { actions, values: values.to_vec() }
    }

    use Where::{Inner, Input, Output};

    #[test]
    fn edges_follow_from_what_is_touched() {
        // 0 and 1 side by side, 2 reads both of them in turn; 3 writes what 1 reads.
        let mut all = list(
            &[(Input(0), Inner(0)), (Output(0), Inner(1)), (Inner(0), Inner(2)), (Inner(1), Output(0))],
            &[0, 1, 2],
        );
        let mut offsets = vec![0; 3];
        all.settle(&[4; 3], &mut offsets, 64);
        let after: Vec<Vec<usize>> = all.actions.iter().map(|action| action.after.clone()).collect();
        assert_eq!(after, [vec![], vec![], vec![0], vec![1]]);
        assert_eq!(offsets, [0, 64, 128]);
    }

    #[test]
    fn a_chain_takes_two_places_and_a_loop_orders_all_that_its_body_touches() {
        let chain: Vec<(Where, Where)> = (0..6).map(|i| (Inner(i), Inner(i + 1))).collect();
        let body = list(&chain, &[1, 2, 3, 4, 5, 6]);
        let predicate = Test::Integer(Selector { at: Inner(0), desc: Desc::new(crate::base::dtype::S32, &[1]) });
        let what = What::Loop { predicate, body, behind: Vec::new() };
        let looped = Action { name: "loop".to_owned(), what, after: Vec::new() };
        let mut all = list(&[(Input(0), Inner(0)), (Input(1), Inner(7)), (Inner(0), Output(0))], &[0, 7]);
        all.actions.insert(2, looped);
        let mut offsets = vec![0; 8];
        let bytes = all.settle(&[4; 8], &mut offsets, 64);
        assert_eq!(all.actions[2].after, [0]);
        // The last one reads what the loop reads: they may go side by side.
        assert_eq!(all.actions[3].after, [0]);
        let places: BTreeSet<usize> = (1..7).map(|value| offsets[value]).collect();
        assert_eq!(places.len(), 2, "{offsets:?}");
        assert!(places.iter().all(|place| *place != offsets[0] && *place != offsets[7]));
        assert_eq!(bytes, 256);
    }

    #[test]
    fn branches_share_their_memory() {
        let branch = |value: usize| list(&[(Input(0), Inner(value)), (Inner(value), Output(0))], &[value]);
        let choice = Selector { at: Input(1), desc: Desc::new(crate::base::dtype::S32, &[1]) };
        let what = What::Branch { choice, is_cond: false, branches: vec![branch(0), branch(1)] };
        let mut all = List { actions: vec![Action { name: String::new(), what, after: Vec::new() }], values: vec![] };
        let mut offsets = vec![9; 2];
        assert_eq!(all.settle(&[4, 100], &mut offsets, 64), 128);
        assert_eq!(offsets, [0, 0]);
    }
}
