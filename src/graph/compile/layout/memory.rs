//! Places of the storages: which share memory, and which are taken over in place.
//!
//! A run has an order only along edges, so two storages may share memory only if all nodes that touch the first come
//! before the writer of the second *by edges*. Therefore memory travels along them. In each graph, in the order of the
//! array, a node has the blocks that its predecessors gave to it. Its outputs are cut from them; then the blocks of
//! storages that nobody touches any more are added; then each block is given to one of the nodes that wait for this
//! one. A block has one owner at a time, which comes behind all nodes that touched it. One that reaches no further node
//! is not used again.
//!
//! A storage with several readers is free where all of them are known to be done: each reader has a share of it, shares
//! travel as blocks do, and the node with all of them has the block.
//!
//! Blocks stay in the graph (the outermost, a branch, a part of a loop) in which they were made. The nodes inside of a
//! loop count as done by its Enter: a node behind the loop is behind everything in it. Not so a cond: its outputs
//! arrive one by one while the rest of the branch may still run. So a storage that a branch reads and that was made
//! outside stays until the run is over; one that branches only write, an output of the cond, counts as written by the
//! Select.
//!
//! The branches of one cond have the same memory (`overlay`). A merge that does not wait for all of its inputs hands on
//! nothing that comes with them, and they stay.
//!
//! The tensors that one communication takes or gives lie behind one another (`buckets`), in memory that nobody had
//! before: they are written by nodes that have no order.
//!
//! In place: an output of a kernel that can work so takes over the storage of an input with the same number of bytes,
//! if the kernel is the last that touches it. If the output is one of the run's, what the input's maker writes goes
//! there too.
#![forbid(unsafe_code)]

use super::accesses::{self, Subgraphs};
use super::buckets::Buckets;
use super::flat::{Flat, FlatKernel, StorageKind};
use super::held::{HeldMemory, WINDOW};
use super::overlay::Overlay;
use crate::base::{Error, Result};
use crate::graph::build::options::Forwarding;
use crate::graph::plan::arena::FreeBlock;
use crate::graph::plan::{Body, Edge, NO_BIT, Place};
use crate::memory::ALIGNMENT;

const NONE: u32 = u32::MAX;
pub(super) struct Places {
    pub of: Vec<Place>,
    pub arena_bytes: usize,
}

/// The liveness of a storage in the arena.
#[derive(Clone, Copy)]
struct Liveness {
    /// The innermost graph that all its users are in; NONE: it has no users.
    home: u32,
    /// Its one writer there; NONE if there are several.
    writer: u32,
    written: bool,
    /// How many nodes there read it.
    readers: u32,
    /// Whether it is known where it ends.
    ends: bool,
    /// The storage whose memory it took over.
    from: u32,
    placed: bool,
}

struct Planner<'a> {
    flat: &'a Flat,
    regions: Subgraphs,
    lives: Vec<Liveness>,
    /// The reads of each node, in rows.
    first_read: Vec<u32>,
    reads: Vec<u32>,
    /// The writes of each node to the arena, in rows.
    first_write: Vec<u32>,
    writes: Vec<u32>,
    held: Vec<HeldMemory>,
    /// How many edges the longest way to each node has.
    levels: Vec<u32>,
    of: Vec<Place>,
    /// Where memory begins that nobody has.
    fresh_at: usize,
    buckets: Buckets,
    forwarded: usize,
}

/// The rows of edges that keep an order.
pub(super) struct EdgeRows<'a> {
    pub edges: &'a [Edge],
    pub starts: &'a [u32],
    pub ends: &'a [u32],
}

impl EdgeRows<'_> {
    fn of(&self, node: usize) -> &[Edge] {
        &self.edges[self.starts[node] as usize..self.ends[node] as usize]
    }
}

pub(super) fn places(flat: &mut Flat, rows: &EdgeRows<'_>) -> Result<Places> {
    let mut of = Vec::with_capacity(flat.storages.len());
    let (mut unshared, mut has_arena) = (0usize, false);
    for storage in &flat.storages {
        of.push(match storage.kind {
            StorageKind::Arena => {
                unshared =
                    rounded(storage.bytes).and_then(|bytes| unshared.checked_add(bytes)).ok_or_else(too_large)?;
                has_arena = true;
                Place::Arena(0)
            }
            StorageKind::Constant(i) => Place::Constant(i),
            StorageKind::Input(i) => Place::Input(i),
            StorageKind::Slot(i) => Place::Slot(i),
            StorageKind::Output(i) => Place::Output(i),
        });
    }
    flat.facts.arena_bytes_unshared = unshared;
    if !has_arena {
        check_reserved_without_arena(flat)?;
        return Ok(Places { of, arena_bytes: 0 });
    }
    let mut planner = Planner::new(flat, of);
    let arena_bytes = planner.plan(rows)?;
    let Planner { of, forwarded, .. } = planner;
    flat.facts.forwarded = forwarded;
    Ok(Places { of, arena_bytes })
}

pub(super) fn rounded(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(ALIGNMENT)
}

/// Whether a node reads what may come when it is long over.
fn is_barrier(flat: &Flat, node: u32) -> bool {
    matches!(flat.bodies[node as usize], Body::Merge(merge) if flat.merges[merge as usize].shape.is_some())
}

pub(super) fn too_large() -> Error {
    Error::out_of_range("the program's values are larger than memory can hold")
}

fn check_reserved_without_arena(flat: &Flat) -> Result<()> {
    let reserved = |kernel: &&FlatKernel| kernel.forwarding.iter().any(|f| matches!(f, (_, Forwarding::Reserved(_))));
    match flat.kernels.iter().find(reserved) {
        Some(kernel) => Err(refusal(flat, kernel, "the input is not memory of the program's own")),
        None => Ok(()),
    }
}

fn refusal(flat: &Flat, kernel: &FlatKernel, why: &str) -> Error {
    let which = kernel.forwarding.iter().find_map(|&(output, forwarding)| match forwarding {
        Forwarding::Reserved(input) => Some((output, input)),
        _ => None,
    });
    let (output, input) = which.unwrap_or_default();
    Error::invalid(format!(
        "node '{}': output {output} cannot take over the memory of input {input}: {why}",
        flat.names.get(kernel.node as usize)
    ))
}

/// Whether a kernel that works in place may write an output over a storage: each of its inputs there allows it.
pub(super) fn may_write_over(flat: &Flat, kernel: &FlatKernel, storage: u32) -> bool {
    let inputs = &flat.args[kernel.args as usize..][..usize::from(kernel.num_inputs)];
    inputs.iter().enumerate().all(|(i, arg)| arg.storage != storage || flat.kernel_of(kernel).in_place_of(i))
}

impl<'a> Planner<'a> {
    fn new(flat: &'a Flat, of: Vec<Place>) -> Planner<'a> {
        let n = flat.bodies.len();
        let regions = Subgraphs::new(flat);
        let untouched =
            Liveness { home: NONE, writer: NONE, written: false, readers: 0, ends: true, from: NONE, placed: false };
        let mut planner = Planner {
            flat,
            regions,
            lives: vec![untouched; flat.storages.len()],
            first_read: vec![0; n + 1],
            reads: Vec::new(),
            first_write: vec![0; n + 1],
            writes: Vec::new(),
            held: Vec::new(),
            levels: vec![0; n],
            of,
            fresh_at: 0,
            buckets: Buckets::default(),
            forwarded: 0,
        };
        planner.held.resize_with(n, HeldMemory::default);
        planner.find_homes();
        planner.find_lives();
        planner.find_buckets();
        planner
    }

    fn find_homes(&mut self) {
        let Planner { flat, regions, lives, of, .. } = self;
        accesses::each(flat, |node, storage, _| {
            if matches!(of[storage as usize], Place::Arena(_)) {
                let region = regions.of[node as usize];
                let home = &mut lives[storage as usize].home;
                *home = if *home == NONE { region } else { regions.common(*home, region) };
            }
        });
    }

    /// The accesses as its home sees them: writers, readers, ends.
    fn find_lives(&mut self) {
        let Planner { flat, regions, lives, of, .. } = self;
        let mut all: Vec<(u32, u32, bool)> = Vec::with_capacity(flat.args.len());
        accesses::each(flat, |node, storage, writes| {
            if !matches!(of[storage as usize], Place::Arena(_)) {
                return;
            }
            let life = &mut lives[storage as usize];
            let (mut at, mut writes) = (regions.speaker(node), writes);
            let mut both = at != node;
            // Behind a merge nobody is behind its inputs.
            let mut known = writes || !is_barrier(flat, node);
            let mut region = regions.of[node as usize];
            while region != life.home {
                let inside = regions.list[region as usize];
                // A loop does both, any number of times, and is over as a whole; a branch may go on behind what it
                // reads.
                (known, both) = if inside.is_loop { (true, true) } else { (known && writes && !both, both) };
                (at, region) = (inside.owner, inside.outer);
            }
            life.ends &= known;
            writes |= both;
            if writes {
                let other = life.written && life.writer != at;
                (life.writer, life.written) = (if other { NONE } else { at }, true);
                life.ends &= !other;
                all.push((at, storage, true));
            }
            if !writes || both {
                all.push((at, storage, false));
            }
        });
        self.first_write = self.rows(&mut all, true);
        self.first_read = self.rows(&mut all, false);
    }

    /// Puts the writes or the reads of each node into rows, each storage once.
    fn rows(&mut self, all: &mut [(u32, u32, bool)], writes: bool) -> Vec<u32> {
        let mut first = vec![0u32; self.flat.bodies.len() + 1];
        let chosen = || all.iter().filter(|access| access.2 == writes);
        chosen().for_each(|access| first[access.0 as usize + 1] += 1);
        for i in 1..first.len() {
            first[i] += first[i - 1];
        }
        let mut at = first.clone();
        let mut list = vec![NONE; *first.last().unwrap_or(&0) as usize];
        for &(node, storage, _) in chosen() {
            let (begin, end) = (first[node as usize] as usize, &mut at[node as usize]);
            // Twice the same is one; what follows the list's end stays NONE. Only a short look back: a longer list is a
            // loop's.
            let known = list[begin..*end as usize].iter().rev().take(WINDOW).any(|&known| known == storage);
            if !known || writes {
                list[*end as usize] = storage;
                *end += 1;
            }
        }
        if writes {
            self.writes = list;
        } else {
            // Those that the look back missed.
            for node in 0..first.len() - 1 {
                let row = &mut list[first[node] as usize..first[node + 1] as usize];
                if row.len() > WINDOW {
                    row.sort_unstable();
                    for i in (1..row.len()).rev() {
                        if row[i] == row[i - 1] {
                            row[i] = NONE;
                        }
                    }
                }
            }
            list.iter().filter(|&&s| s != NONE).for_each(|&s| self.lives[s as usize].readers += 1);
            self.reads = list;
        }
        first
    }

    /// Finds all places; gives what the arena needs.
    fn plan(&mut self, rows: &EdgeRows<'_>) -> Result<usize> {
        let n = self.flat.bodies.len();
        for node in 0..n {
            for edge in rows.of(node) {
                let level = self.levels[edge.target as usize].max(self.levels[node] + 1);
                self.levels[edge.target as usize] = level;
            }
        }
        let mut ending = Vec::new();
        let mut overlay = Overlay::default();
        for node in 0..n {
            self.fresh_at = overlay.at(self.flat, node, self.fresh_at);
            let mut held = std::mem::take(&mut self.held[node]);
            ending.clear();
            for i in self.first_read[node]..self.first_read[node + 1] {
                let storage = self.reads[i as usize];
                if storage != NONE
                    && self.lives[storage as usize].ends
                    && held.has_all(storage, self.lives[storage as usize].readers)
                {
                    ending.push(storage);
                }
            }
            if let Some(kernel) = self.flat.kernel_at(node) {
                self.forward(node, kernel, rows, &mut ending, &mut held)?;
            }
            for i in self.first_write[node]..self.first_write[node + 1] {
                let storage = self.writes[i as usize] as usize;
                let life = &mut self.lives[storage];
                if life.writer != node as u32 || std::mem::replace(&mut life.placed, true) {
                    continue;
                }
                let life = *life;
                let bytes = rounded(self.flat.storages[storage].bytes).ok_or_else(too_large)?;
                let at = match self.buckets.place(storage as u32, &mut self.fresh_at)? {
                    Some(at) => at,
                    None => match held.cut(bytes) {
                        Some(at) => at,
                        None => self.fresh(bytes)?,
                    },
                };
                self.of[storage] = Place::Arena(at);
                // Behind a Select its branches have not written yet.
                if life.readers == 0 && life.ends && !matches!(self.flat.bodies[node], Body::Select(_)) {
                    ending.push(storage as u32);
                }
            }
            if let Body::Select(select) = self.flat.bodies[node] {
                overlay.open(select as usize, self.fresh_at);
            }
            held.free.extend(ending.iter().filter_map(|&storage| self.block(storage)));
            self.pass_on(node, held, rows.of(node));
        }
        // Those with several writers are nobody else's.
        self.fresh_at = overlay.at(self.flat, n, self.fresh_at);
        for storage in 0..self.lives.len() {
            let life = self.lives[storage];
            if matches!(self.of[storage], Place::Arena(_)) && !life.placed {
                let bytes = rounded(self.flat.storages[storage].bytes).ok_or_else(too_large)?;
                self.of[storage] = Place::Arena(self.fresh(bytes)?);
            }
        }
        // The last block may have been given up for a place in an output.
        let end = |storage: usize| self.block(storage as u32).map_or(0, |block| block.at + block.bytes);
        Ok((0..self.lives.len()).map(end).max().unwrap_or(0))
    }

    /// The tensors that one communication takes or gives, if they are made in its graph and by kernels, each in one
    /// place: those may lie behind one another.
    fn find_buckets(&mut self) {
        for node in 0..self.flat.bodies.len() {
            let Some(kernel) = self.flat.kernel_at(node).filter(|kernel| self.flat.kernel_of(kernel).is_first_half())
            else {
                continue;
            };
            let inputs = usize::from(kernel.num_inputs);
            let args = &self.flat.args[kernel.args as usize..][..inputs + usize::from(kernel.num_outputs)];
            for args in [&args[..inputs], &args[inputs + 1..]] {
                let storages: Vec<(u32, usize)> =
                    args.iter().map(|arg| (arg.storage, self.flat.storages[arg.storage as usize].bytes)).collect();
                if storages.iter().all(|&(storage, _)| self.may_be_in_bucket(node, storage)) {
                    self.buckets.add(&storages);
                }
            }
        }
    }

    fn may_be_in_bucket(&self, node: usize, storage: u32) -> bool {
        let life = self.lives[storage as usize];
        let region = self.regions.of[node];
        let is_plain = |writer: usize| self.flat.kernel_at(writer).is_some_and(|kernel| kernel.forwarding.is_empty());
        self.flat.storages[storage as usize].kind == StorageKind::Arena
            && life.writer != NONE
            && life.home == region
            && self.regions.of[life.writer as usize] == region
            && is_plain(life.writer as usize)
    }

    fn fresh(&mut self, bytes: usize) -> Result<usize> {
        let at = self.fresh_at;
        self.fresh_at = at.checked_add(bytes).ok_or_else(too_large)?;
        Ok(at)
    }

    /// Lets outputs take over inputs that end here; those are no longer in `ending` then.
    fn forward(
        &mut self,
        node: usize,
        kernel: &FlatKernel,
        rows: &EdgeRows<'_>,
        ending: &mut Vec<u32>,
        held: &mut HeldMemory,
    ) -> Result<()> {
        let inputs = usize::from(kernel.num_inputs);
        let args = &self.flat.args[kernel.args as usize..][..inputs + usize::from(kernel.num_outputs)];
        for output in 0..usize::from(kernel.num_outputs) {
            let how = kernel.forwarding.iter().find(|(of, _)| usize::from(*of) == output);
            let to = args[inputs + output].storage;
            match how.map_or(Forwarding::ByLastUse, |&(_, how)| how) {
                Forwarding::Never => {}
                Forwarding::ByLastUse => {
                    let taken = self.flat.kernel_of(kernel).takes_over(output);
                    let may = self.flat.kernel_of(kernel).in_place() && (kernel.num_outputs == 1 || taken.is_some());
                    if ending.is_empty() || !may || self.buckets.has(to) {
                        continue;
                    }
                    let fits = |arg: &&crate::graph::compile::layout::flat::FlatArg| {
                        may_write_over(self.flat, kernel, arg.storage)
                            && self.why_not(node, ending.contains(&arg.storage), arg.storage, to).is_none()
                    };
                    let wanted = taken.map_or(0..inputs, |input| input..input + 1);
                    if let Some(from) = args[wanted].iter().find(fits).map(|arg| arg.storage) {
                        self.take_over(from, to, ending, held);
                    }
                }
                Forwarding::Reserved(input) => {
                    let from = args[usize::from(input)].storage;
                    if from == to {
                        // A variable of a loop that is written in place already.
                        continue;
                    }
                    // Shares may have gone another way than to the node that must have them all.
                    let is_last = ending.contains(&from) || self.is_behind_all(node, from, rows);
                    let why = match self.flat.kernel_of(kernel).in_place() {
                        true if may_write_over(self.flat, kernel, from) => self.why_not(node, is_last, from, to),
                        true => Some("the kernel does not work in the place of this input"),
                        false => Some("the kernel does not work in place"),
                    };
                    if let Some(why) = why {
                        return Err(refusal(self.flat, kernel, why));
                    }
                    if !ending.contains(&from) {
                        held.forget(from);
                        let life = &mut self.lives[from as usize];
                        (life.ends, life.readers) = (false, u32::MAX);
                    }
                    self.take_over(from, to, ending, held);
                }
            }
        }
        Ok(())
    }

    /// Whether all other nodes that read a storage come before this one.
    fn is_behind_all(&self, node: usize, storage: u32, rows: &EdgeRows<'_>) -> bool {
        let life = self.lives[storage as usize];
        let region = self.regions.of[node];
        if !life.ends || life.home != region {
            return false;
        }
        let reads = |other: usize| {
            let row = self.first_read[other] as usize..self.first_read[other + 1] as usize;
            self.reads[row].contains(&storage)
        };
        let readers: Vec<usize> = (0..self.flat.bodies.len()).filter(|&other| other != node && reads(other)).collect();
        let Some(&first) = readers.first() else { return true };
        // The array has an order: from the back to the front, a node comes before this one if a successor does.
        let mut is_before = vec![false; self.flat.bodies.len()];
        is_before[node] = true;
        for other in (first..node).rev().filter(|&other| self.regions.of[other] == region) {
            is_before[other] = rows.of(other).iter().any(|edge| is_before[edge.target as usize]);
        }
        readers.iter().all(|&reader| is_before[reader])
    }

    fn why_not(&self, node: usize, is_last: bool, from: u32, to: u32) -> Option<&'static str> {
        let (input, output) = (self.flat.storages[from as usize], self.flat.storages[to as usize]);
        let life = self.lives[to as usize];
        if input.bytes != output.bytes {
            return Some("they differ in size");
        }
        if input.kind != StorageKind::Arena {
            return Some("the input is not memory of the program's own");
        }
        let own = match output.kind {
            StorageKind::Arena => life.writer == node as u32 && !life.placed,
            _ => self.regions.of[node] == 0 && self.flat.absence.own.get(node).is_none_or(|&bit| bit == NO_BIT),
        };
        if !own {
            return Some("the output is a variable of a loop, or an output of a cond or of a node that may be skipped");
        }
        if !is_last {
            return Some("others may use the input at the same time or later");
        }
        None
    }

    fn take_over(&mut self, from: u32, to: u32, ending: &mut Vec<u32>, held: &mut HeldMemory) {
        self.forwarded += 1;
        ending.retain(|&storage| storage != from);
        if self.flat.storages[to as usize].kind == StorageKind::Arena {
            self.of[to as usize] = self.of[from as usize];
            let life = &mut self.lives[to as usize];
            (life.from, life.placed) = (from, true);
            if life.readers == 0 && life.ends {
                ending.push(to);
            }
            return;
        }
        // The other way round: what the input's maker writes goes into the run's output, and the block is not used by
        // it at all.
        held.free.extend(self.block(from));
        let (mut storage, place) = (from, self.of[to as usize]);
        while storage != NONE {
            self.of[storage as usize] = place;
            storage = self.lives[storage as usize].from;
        }
    }

    /// Gives what a node holds to those who wait for it in the same graph.
    fn pass_on(&mut self, node: usize, mut held: HeldMemory, edges: &[Edge]) {
        if held.free.is_empty() && held.shares.is_empty() {
            return;
        }
        let region = self.regions.of[node];
        let next = self.levels[node] + 1;
        let same = |&target: &u32| self.regions.of[target as usize] == region;
        // Those that also wait for something behind this node get it from there.
        let soon = |&target: &u32| same(&target) && self.levels[target as usize] == next;
        let mut targets = edges.iter().map(|edge| edge.target).filter(soon);
        let far = || edges.iter().map(|edge| edge.target).find(same);
        let Some(first) = targets.next().or_else(far) else { return };
        // Side by side each gets some: what follows them all has everything again.
        if held.free.len() > 1 {
            let mut turn = 1;
            let others: Vec<u32> = targets.take(WINDOW).collect();
            let end = held.free.len();
            for i in (end.saturating_sub(WINDOW)..end).rev() {
                if turn > 0 && turn <= others.len() {
                    let block = held.free.swap_remove(i);
                    self.held[others[turn - 1] as usize].free.push(block);
                }
                turn = if turn >= others.len() { 0 } else { turn + 1 };
            }
        }
        let met = self.held[first as usize].merge(held, &|storage| self.lives[storage as usize].readers);
        for storage in met {
            let block = self.block(storage);
            self.held[first as usize].free.extend(block);
        }
    }

    /// The memory of a storage whose end was found; None if it has none.
    fn block(&self, storage: u32) -> Option<FreeBlock<()>> {
        let bytes = rounded(self.flat.storages[storage as usize].bytes).filter(|&bytes| bytes > 0)?;
        match self.of[storage as usize] {
            Place::Arena(at) => Some(FreeBlock { at, bytes, users: () }),
            _ => None,
        }
    }
}
