//! Recordings with branches and loops, made from a seed or by hand, and what comes of them: a model that does one step
//! after the other.
//!
//! Memory is cells, each an array of 32-bit integers that are all equal. So a cell has one value, and its first bytes
//! are an integer of any type.

use super::random::Random;
use std::sync::Arc;
use weir_core::base::{Desc, Reach, Result, dtype};
use weir_core::device::{
    Accelerator, Comparison, DeviceKernel, Executable, Fill, Integer, Launch, Location, Predicate, RecordedBranch,
    RecordedLoop, RecordedStep, RecordedWork, Recording, Relation, Transfer,
};
use weir_core::memory::View;

/// So many integers are in each cell.
pub const LEN: usize = 64;
pub const BYTES: usize = LEN * 4;

/// The cell that is 0 for good.
pub const ZERO: usize = 0;

/// A cell's first integer, of some type.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    pub cell: usize,
    pub dtype: u32,
}

#[derive(Clone, Debug)]
pub enum Does {
    /// out = a + b + salt
    Sum {
        a: usize,
        b: usize,
        out: usize,
        salt: i32,
    },
    Copy {
        to: usize,
        from: usize,
    },
    /// All bytes.
    Fill {
        cell: usize,
        value: u8,
    },
    Branch {
        choice: Number,
        is_cond: bool,
        lists: Vec<Vec<Node>>,
    },
    Loop {
        predicate: Number,
        /// The number is compared with a cell's, and not with 0.
        than: Option<(Relation, usize)>,
        body: Vec<Node>,
        /// Where `connect` says what of the body the predicate is read behind.
        behind: Option<Vec<usize>>,
    },
}

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub does: Does,
    pub after: Vec<usize>,
}

/// Salts of sums.
pub const SALTS: [i32; 6] = [-1, 0, 1, 2, 3, 5];

pub fn word(cell: usize) -> Number {
    Number { cell, dtype: dtype::S32 }
}

pub fn node(name: &str, does: Does, after: &[usize]) -> Node {
    Node { name: name.to_owned(), does, after: after.to_vec() }
}

pub fn sum(a: usize, b: usize, out: usize, salt: i32, after: &[usize]) -> Node {
    node(&format!("{out} = {a} + {b} + {salt}"), Does::Sum { a, b, out, salt }, after)
}

/// The cell, less one.
pub fn less(cell: usize, after: &[usize]) -> Node {
    sum(cell, ZERO, cell, -1, after)
}

pub fn repeat(name: &str, predicate: Number, body: Vec<Node>, after: &[usize]) -> Node {
    node(name, Does::Loop { predicate, than: None, body, behind: None }, after)
}

/// As long as a cell is above another one; read again as soon as may be.
pub fn while_above(name: &str, cell: usize, than: usize, body: Vec<Node>, after: &[usize]) -> Node {
    let than = Some((Relation::Gt, than));
    node(name, Does::Loop { predicate: word(cell), than, body, behind: Some(Vec::new()) }, after)
}

/// Whether a loop goes on.
fn holds(predicate: Number, than: Option<(Relation, usize)>, cells: &[i32]) -> bool {
    let Some((relation, other)) = than else { return predicate.read(cells) != 0 };
    let (a, b) = (cells[predicate.cell], cells[other]);
    match relation {
        Relation::Eq => a == b,
        Relation::Ne => a != b,
        Relation::Lt => a < b,
        Relation::Le => a <= b,
        Relation::Gt => a > b,
        Relation::Ge => a >= b,
    }
}

pub fn switch(name: &str, choice: Number, lists: Vec<Vec<Node>>, after: &[usize]) -> Node {
    node(name, Does::Branch { choice, is_cond: false, lists }, after)
}

/// `lists`: if it is 0, if it is not.
pub fn cond(name: &str, choice: Number, lists: [Vec<Node>; 2], after: &[usize]) -> Node {
    node(name, Does::Branch { choice, is_cond: true, lists: lists.into() }, after)
}

impl Number {
    fn read(self, cells: &[i32]) -> i64 {
        let value = cells[self.cell];
        match self.dtype {
            dtype::S32 => value.into(),
            dtype::S8 => (value as i8).into(),
            _ => (value as u8).into(),
        }
    }
}

/// What a recording does to the cells; gives how many steps it took, with each reading of a branch or loop.
pub fn run(nodes: &[Node], cells: &mut [i32]) -> u64 {
    let mut steps = 0;
    for node in nodes {
        steps += 1;
        match &node.does {
            Does::Sum { a, b, out, salt } => cells[*out] = cells[*a].wrapping_add(cells[*b]).wrapping_add(*salt),
            Does::Copy { to, from } => cells[*to] = cells[*from],
            Does::Fill { cell, value } => cells[*cell] = i32::from_le_bytes([*value; 4]),
            Does::Branch { choice, is_cond, lists } => {
                let choice = choice.read(cells);
                let last = lists.len() as i64 - 1;
                let list = match is_cond {
                    true => i64::from(choice != 0),
                    false if choice < 0 => last,
                    false => choice.min(last),
                };
                steps += run(&lists[list as usize], cells);
            }
            Does::Loop { predicate, than, body, .. } => {
                while holds(*predicate, *than, cells) {
                    steps += run(body, cells) + 1;
                    assert!(steps < 100_000, "a loop without end");
                }
            }
        }
    }
    steps
}

/// The cells that it reads and writes.
pub fn uses(node: &Node, reads: &mut Vec<usize>, writes: &mut Vec<usize>) {
    match &node.does {
        Does::Sum { a, b, out, .. } => {
            reads.extend([a, b]);
            writes.push(*out);
        }
        Does::Copy { to, from } => {
            reads.push(*from);
            writes.push(*to);
        }
        Does::Fill { cell, .. } => writes.push(*cell),
        Does::Branch { choice, lists, .. } => {
            reads.push(choice.cell);
            lists.iter().flatten().for_each(|node| uses(node, reads, writes));
        }
        Does::Loop { predicate, than, body, .. } => {
            reads.push(predicate.cell);
            reads.extend(than.map(|(_, cell)| cell));
            body.iter().for_each(|node| uses(node, reads, writes));
        }
    }
}

/// Puts in the edges that the uses of cells need, without those that others imply.
pub fn connect(nodes: &mut [Node]) {
    let mut reach = Reach::new(nodes.len());
    let all: Vec<_> = nodes
        .iter()
        .map(|node| {
            let (mut reads, mut writes) = (Vec::new(), Vec::new());
            uses(node, &mut reads, &mut writes);
            (reads, writes)
        })
        .collect();
    let meets = |a: &[usize], b: &[usize]| a.iter().any(|cell| b.contains(cell));
    for (at, node) in nodes.iter_mut().enumerate() {
        let (reads, writes) = &all[at];
        node.after = (0..at)
            .filter(|&before| {
                let (r, w) = &all[before];
                meets(reads, w) || meets(writes, w) || meets(writes, r)
            })
            .collect();
        reach.add(at, &mut node.after);
        match &mut node.does {
            Does::Branch { lists, .. } => lists.iter_mut().for_each(|list| connect(list)),
            Does::Loop { predicate, than, body, behind } => {
                connect(body);
                let cells = [Some(predicate.cell), than.map(|(_, cell)| cell)];
                if let Some(behind) = behind {
                    *behind = writers(body, cells.into_iter().flatten());
                }
            }
            Does::Sum { .. } | Does::Copy { .. } | Does::Fill { .. } => {}
        }
    }
}

/// The last nodes that write any of these cells, without those that others imply.
fn writers(nodes: &[Node], cells: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut reach = Reach::new(nodes.len() + 1);
    let mut writes = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        reach.add(at, &mut node.after.clone());
        let (mut read, mut written) = (Vec::new(), Vec::new());
        uses(node, &mut read, &mut written);
        writes.push(written);
    }
    let last = |cell| writes.iter().rposition(|written| written.contains(&cell));
    let mut behind = cells.filter_map(last).collect();
    reach.add(nodes.len(), &mut behind);
    behind
}

/// A recording by a seed: its nodes, and how many cells it uses.
pub struct Drawn {
    pub nodes: Vec<Node>,
    pub cells: usize,
}

/// Cells that steps read and write; behind them are counters of loops.
const DATA: usize = 6;

pub fn draw(random: &mut Random) -> Drawn {
    let mut cells = 1 + DATA;
    let mut nodes = list(random, &mut cells, 3, 0);
    connect(&mut nodes);
    Drawn { nodes, cells }
}

fn list(random: &mut Random, cells: &mut usize, most: usize, depth: usize) -> Vec<Node> {
    let mut nodes = Vec::new();
    for _ in 0..random.below(most + 2) {
        let mut cell = || 1 + random.below(DATA);
        let (a, b, out) = (cell(), cell(), cell());
        let salt = random.of(&SALTS);
        let types = [dtype::S32, dtype::S8, dtype::U8, dtype::BOOL];
        let name = |what: &str| format!("{what} {depth}.{}", nodes.len());
        match random.below(if depth < 3 { 9 } else { 5 }) {
            0 => nodes.push(node(&name("copy"), Does::Copy { to: out, from: a }, &[])),
            1 => nodes.push(node(&name("fill"), Does::Fill { cell: out, value: random.of(&[0, 1, 2, 3, 0x80]) }, &[])),
            2..=4 => nodes.push(node(&name("sum"), Does::Sum { a, b, out, salt }, &[])),
            5 | 6 => {
                let is_cond = random.once_in(2);
                let lists = if is_cond { 2 } else { 1 + random.below(4) };
                let choice = Number { cell: a, dtype: random.of(&types) };
                let name = name("branch");
                let lists = (0..lists).map(|_| list(random, cells, most, depth + 1)).collect();
                nodes.push(node(&name, Does::Branch { choice, is_cond, lists }, &[]));
            }
            _ => {
                let counter = *cells;
                *cells += 1;
                let predicate = Number { cell: counter, dtype: random.of(&types) };
                let (first, name) = (name("count"), name("loop"));
                let times = random.of(&[0, 1, 2, 3]);
                nodes.push(node(&first, Does::Sum { a: ZERO, b: ZERO, out: counter, salt: times }, &[]));
                let mut body = list(random, cells, most, depth + 1);
                let at = random.below(body.len() + 1);
                body.insert(at, node(&format!("less {name}"), less(counter, &[]).does, &[]));
                // The same in other words: above 0, not 0.
                let relation = random.of(&[None, Some(Relation::Gt), Some(Relation::Ne)]);
                let than = relation.map(|relation| (relation, ZERO));
                let predicate = if than.is_some() { word(counter) } else { predicate };
                let behind = random.once_in(2).then(Vec::new);
                nodes.push(node(&name, Does::Loop { predicate, than, body, behind }, &[]));
            }
        }
    }
    nodes
}

/// Branches and a loop that go by an integer of some type and value: the cells, the nodes, and what the cells are then.
pub fn of_integers() -> Vec<(Vec<i32>, Vec<Node>, Vec<i32>)> {
    // Whether it counts as not 0, and as which index of four lists.
    let rows = [
        (0x100, dtype::BOOL, false, 0),
        (1, dtype::BOOL, true, 1),
        (0x100, dtype::U8, false, 0),
        (0x102, dtype::U8, true, 2),
        (0xff, dtype::U8, true, 3),
        (0x100, dtype::S8, false, 0),
        (0x01, dtype::S8, true, 1),
        (0x80, dtype::S8, true, 3),
        (0x100, dtype::S32, true, 3),
        (2, dtype::S32, true, 2),
        (3, dtype::S32, true, 3),
        (4, dtype::S32, true, 3),
        (-1, dtype::S32, true, 3),
        (i32::MIN, dtype::S32, true, 3),
    ];
    let case = |(value, of, is_set, index): (i32, u32, bool, i32)| {
        let choice = Number { cell: 1, dtype: of };
        let put = |value| vec![sum(ZERO, ZERO, 3, value, &[])];
        // Once, since the body ends it.
        let once = vec![node("end", Does::Fill { cell: 1, value: 0 }, &[]), sum(4, 4, 4, 1, &[])];
        let nodes = vec![
            cond("cond", choice, [vec![sum(ZERO, ZERO, 2, 1, &[])], vec![sum(ZERO, ZERO, 2, 2, &[])]], &[]),
            switch("switch", choice, vec![put(0), put(1), put(2), put(3)], &[]),
            repeat("loop", choice, once, &[0, 1]),
        ];
        let set = i32::from(is_set);
        (vec![0, value, 0, 0, 0], nodes, vec![0, if is_set { 0 } else { value }, 1 + set, index, set])
    };
    rows.map(case).into()
}

/// A switch and a loop in a loop, a loop that never runs, a cond; the cells, the nodes, and what the cells are then.
pub fn nested() -> (Vec<i32>, Vec<Node>, Vec<i32>) {
    let lists = vec![
        vec![],
        vec![sum(5, 5, 5, 1, &[])],
        vec![repeat("never", word(2), vec![sum(5, 5, 5, 5, &[])], &[])],
        vec![cond("cond", word(3), [vec![sum(5, 5, 5, 2, &[])], vec![sum(4, 5, 4, 3, &[])]], &[])],
    ];
    let body = vec![
        sum(1, ZERO, 2, 0, &[]),
        // As often as the outer one has still to go.
        repeat("inner", word(2), vec![sum(3, 2, 3, 0, &[]), less(2, &[])], &[]),
        switch("switch", word(1), lists, &[]),
        less(1, &[]),
    ];
    let mut nodes = vec![repeat("outer", word(1), body, &[])];
    connect(&mut nodes);
    (vec![0, 5, 0, 0, 0, 7], nodes, vec![0, 0, 0, 35, 30, 15])
}

/// Where the cells of a device are, and its kernels for sums, by their salts.
pub struct Site<'a> {
    pub device: &'a dyn Accelerator,
    pub cells: Vec<usize>,
    pub kernels: Vec<(i32, Arc<dyn DeviceKernel>)>,
}

fn view(address: usize) -> View {
    // SAFETY: the device's memory, which lives as long as the test; the host only hands the address on.
    unsafe { View::new(address as *mut u8, BYTES, Desc::new(dtype::S32, &[LEN as i64])) }
}

type Then<'a> = &'a mut dyn FnMut(&[RecordedStep<'_>]);

fn added<'a>(mut steps: Vec<RecordedStep<'a>>, work: RecordedWork<'a>, after: &'a [usize]) -> Vec<RecordedStep<'a>> {
    steps.push(RecordedStep { work, after });
    steps
}

impl Site<'_> {
    pub fn record(&self, name: &str, nodes: &[Node]) -> Result<Arc<dyn Executable>> {
        let mut made = None;
        self.with(nodes, Vec::new(), &mut |steps| made = Some(self.device.record(&Recording { name, steps })));
        made.unwrap()
    }

    fn integer(&self, number: Number) -> Integer {
        Integer { address: self.cells[number.cell], dtype: number.dtype }
    }

    /// Calls `then` with the steps of some nodes, behind those that there are.
    pub fn with(&self, nodes: &[Node], steps: Vec<RecordedStep<'_>>, then: Then<'_>) {
        let Some((node, rest)) = nodes.split_first() else { return then(&steps) };
        let (name, after) = (node.name.as_str(), node.after.as_slice());
        match &node.does {
            Does::Sum { a, b, out, salt } => {
                let (inputs, outputs) = ([*a, *b].map(|cell| view(self.cells[cell])), [view(self.cells[*out])]);
                let kernel = &self.kernels.iter().find(|kernel| kernel.0 == *salt).unwrap().1;
                let launch = Launch { name, kernel, inputs: &inputs, outputs: &outputs };
                self.with(rest, added(steps, RecordedWork::Launch(launch), after), then);
            }
            Does::Copy { to, from } => {
                let [to, from] = [to, from].map(|cell| Location::Device(self.cells[*cell]));
                let copy = Transfer { name, to, from, bytes: BYTES };
                self.with(rest, added(steps, RecordedWork::Copy(copy), after), then);
            }
            Does::Fill { cell, value } => {
                let fill = Fill { name, address: self.cells[*cell], bytes: BYTES, value: *value };
                self.with(rest, added(steps, RecordedWork::Fill(fill), after), then);
            }
            Does::Branch { choice, is_cond, lists } => self.with_lists(lists, Vec::new(), &mut |branches| {
                let branch = RecordedBranch { name, choice: self.integer(*choice), is_cond: *is_cond, branches };
                self.with(rest, added(steps.clone(), RecordedWork::Branch(branch), after), then);
            }),
            Does::Loop { predicate, than, body, behind } => self.with(body, Vec::new(), &mut |body| {
                let predicate = match *than {
                    None => self.integer(*predicate).into(),
                    Some((relation, other)) => {
                        let addresses = [self.cells[predicate.cell], self.cells[other]];
                        Predicate::Comparison(Comparison { relation, dtype: dtype::S32, addresses })
                    }
                };
                let again = RecordedLoop { name, predicate, body, behind: behind.as_deref() };
                self.with(rest, added(steps.clone(), RecordedWork::Loop(again), after), then);
            }),
        }
    }

    fn with_lists(
        &self,
        lists: &[Vec<Node>],
        made: Vec<&[RecordedStep<'_>]>,
        then: &mut dyn FnMut(&[&[RecordedStep<'_>]]),
    ) {
        let Some((list, rest)) = lists.split_first() else { return then(&made) };
        self.with(list, Vec::new(), &mut |steps| {
            let made = made.iter().copied().chain([steps]).collect();
            self.with_lists(rest, made, then);
        });
    }
}

/// Every edge of a recording, by the lists' places: calls `visit` with the nodes without it, and the names of both.
pub fn without_each_edge(nodes: &[Node], visit: &mut dyn FnMut(&[Node], &Node, &Node)) {
    let mut changed = nodes.to_vec();
    for at in 0..nodes.len() {
        for edge in 0..nodes[at].after.len() {
            let before = changed[at].after.remove(edge);
            visit(&changed, &nodes[before], &nodes[at]);
            changed[at].after.insert(edge, before);
        }
        let lists = match &nodes[at].does {
            Does::Branch { lists, .. } => lists.len(),
            Does::Loop { .. } => 1,
            Does::Sum { .. } | Does::Copy { .. } | Does::Fill { .. } => 0,
        };
        let behind = behind_of(&mut changed[at]).map_or(0, |behind| behind.len());
        for edge in 0..behind {
            let before = behind_of(&mut changed[at]).unwrap().remove(edge);
            visit(&changed, &inner(&nodes[at], 0)[before], &nodes[at]);
            behind_of(&mut changed[at]).unwrap().insert(edge, before);
        }
        for which in 0..lists {
            let list = inner(&nodes[at], which).clone();
            without_each_edge(&list, &mut |list, before, then| {
                let mut changed = changed.clone();
                *inner_mut(&mut changed[at], which) = list.to_vec();
                visit(&changed, before, then);
            });
        }
    }
}

fn behind_of(node: &mut Node) -> Option<&mut Vec<usize>> {
    match &mut node.does {
        Does::Loop { behind, .. } => behind.as_mut(),
        _ => None,
    }
}

fn inner(node: &Node, which: usize) -> &Vec<Node> {
    match &node.does {
        Does::Branch { lists, .. } => &lists[which],
        Does::Loop { body, .. } => body,
        _ => panic!("{node:?}"),
    }
}

fn inner_mut(node: &mut Node, which: usize) -> &mut Vec<Node> {
    match &mut node.does {
        Does::Branch { lists, .. } => &mut lists[which],
        Does::Loop { body, .. } => body,
        _ => panic!("not a branch or loop"),
    }
}

/// Whether the name is that of the node or of one inside of it.
pub fn has(node: &Node, name: &str) -> bool {
    let inside = match &node.does {
        Does::Branch { lists, .. } => lists.iter().flatten().any(|node| has(node, name)),
        Does::Loop { body, .. } => body.iter().any(|node| has(node, name)),
        Does::Sum { .. } | Does::Copy { .. } | Does::Fill { .. } => false,
    };
    node.name == name || inside
}
