//! How an operation is done: phases of the transport's operations, with weir's own arithmetic behind them.
//!
//! An operation that the transport has is one phase of one operation. The others are built of sends and receives;
//! reductions that it has not, or that are to have the same bits everywhere, exchange parts (all_to_all), are added up
//! in rank order, and are gathered again.
#![forbid(unsafe_code)]

use super::staging::Staging;
use super::transport::{CommOperation, FIRST_OWN_TAG, Part, TransportInfo};
use crate::abi::{weir_comm_op_value as Op, weir_comm_reduction_value as Reduction};
use crate::base::{Error, Result, dtype};
use std::ops::Range;
use std::sync::Arc;

/// An operation, as every rank sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub op: Op,
    pub reduction: Option<Reduction>,
    pub dtype: u32,
    /// SEND, RECV, BROADCAST, REDUCE.
    pub peer: usize,
    pub tag: i32,
    /// Elements, as of `weir_comm_operation`.
    pub count: usize,
    pub is_deterministic: bool,
    /// In a device's memory.
    pub is_on_device: bool,
    /// Which nodes of a program it is inside of, hashed.
    pub nest: u64,
    /// The types and shapes of its tensors, hashed.
    pub descs: u64,
}

impl Wanted {
    pub fn is_message(&self) -> bool {
        matches!(self.op, Op::WEIR_COMM_SEND | Op::WEIR_COMM_RECV)
    }

    /// Whether its input has a part for each rank, which `count` is the size of.
    pub fn has_parts(&self) -> bool {
        matches!(self.op, Op::WEIR_COMM_REDUCE_SCATTER | Op::WEIR_COMM_ALL_TO_ALL)
    }
}

/// Bytes that this rank copies to itself when a phase is over.
#[derive(Clone, Debug)]
pub struct OwnCopy {
    pub from: Part,
    pub to: Part,
}

/// A reduction in rank order.
#[derive(Clone, Debug)]
pub struct Fold {
    pub reduction: Reduction,
    pub dtype: u32,
    pub parts: Vec<Part>,
    pub to: Part,
}

/// Operations that are under way at once, and what this rank does when they are over.
#[derive(Clone, Debug, Default)]
pub struct Phase {
    pub operations: Vec<CommOperation>,
    pub copies: Vec<OwnCopy>,
    pub fold: Option<Fold>,
}

/// An operation with its memory.
#[derive(Debug)]
pub struct Procedure {
    pub phases: Vec<Phase>,
    /// The call's inputs are copied to the one, and its outputs from the other.
    pub send: Part,
    pub recv: Part,
    /// All its memory.
    pub bytes: usize,
}

struct Builder<'a> {
    info: &'a TransportInfo,
    wanted: Wanted,
    element: usize,
    bytes: usize,
}

fn part_of(part: &Part, range: Range<usize>) -> Part {
    let start = part.bytes.start;
    Part { block: Arc::clone(&part.block), bytes: start + range.start..start + range.end }
}

/// Whether this rank gives the transport memory to send from, and to receive into.
pub fn sides(op: Op, is_root: bool) -> [bool; 2] {
    match op {
        Op::WEIR_COMM_SEND => [true, false],
        Op::WEIR_COMM_RECV => [false, true],
        Op::WEIR_COMM_BROADCAST => [is_root, !is_root],
        Op::WEIR_COMM_REDUCE => [true, is_root],
        Op::WEIR_COMM_BARRIER => [false, false],
        _ => [true, true],
    }
}

/// Whether the transport does it by itself.
pub fn is_native(info: &TransportInfo, wanted: &Wanted, bytes: usize) -> bool {
    let reduces = wanted.reduction.is_none_or(|by| !wanted.is_deterministic && info.reduces(wanted.dtype, by));
    info.takes(wanted.op) && reduces && bytes as u64 <= info.max_bytes
}

impl Builder<'_> {
    /// Memory that each call decides on.
    fn open_block(&mut self, bytes: usize) -> Part {
        self.bytes += bytes;
        Part { block: Arc::new(Staging::new(bytes)), bytes: 0..bytes }
    }

    /// Memory of the operation's own.
    fn block(&mut self, bytes: usize) -> Result<Part> {
        let part = self.open_block(bytes);
        part.block.use_own()?;
        Ok(part)
    }

    fn operation(&self, op: Op, peer: usize, count: usize, send: Option<Part>, recv: Option<Part>) -> CommOperation {
        let Wanted { reduction, dtype, tag, .. } = self.wanted;
        let reduction = reduction
            .filter(|_| matches!(op, Op::WEIR_COMM_REDUCE | Op::WEIR_COMM_ALL_REDUCE | Op::WEIR_COMM_REDUCE_SCATTER));
        CommOperation { op, reduction, dtype, element_bytes: self.element, peer, tag, count: count as u64, send, recv }
    }

    /// A message, in pieces that the transport takes.
    fn message(&self, is_send: bool, peer: usize, tag: i32, part: &Part, to: &mut Vec<CommOperation>) {
        let most = (self.info.max_bytes / self.element as u64).min(usize::MAX as u64 / 2) as usize * self.element;
        let bytes = part.bytes.len();
        for at in (0..bytes.max(1)).step_by(most.max(1)) {
            let piece = part_of(part, at..bytes.min(at + most));
            let count = piece.bytes.len() / self.element;
            let (op, send, recv) = match is_send {
                true => (Op::WEIR_COMM_SEND, Some(piece), None),
                false => (Op::WEIR_COMM_RECV, None, Some(piece)),
            };
            to.push(CommOperation { tag, ..self.operation(op, peer, count, send, recv) });
        }
    }

    fn own(&self, is_send: bool, peer: usize, part: &Part, to: &mut Vec<CommOperation>) {
        self.message(is_send, peer, FIRST_OWN_TAG, part, to);
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        // Each rank begins with its neighbour, so that not all send to rank 0 first.
        let (rank, size) = (self.info.rank, self.info.size);
        (1..size).map(move |step| (rank + step) % size)
    }

    /// to[i * bytes ..] = the `bytes` that rank i has in `from`.
    fn all_gather(&self, from: &Part, to: &Part) -> Phase {
        let (bytes, rank, mut phase) = (from.bytes.len(), self.info.rank, Phase::default());
        let at = |rank: usize| part_of(to, rank * bytes..(rank + 1) * bytes);
        if self.info.takes(Op::WEIR_COMM_ALL_GATHER) && to.bytes.len() as u64 <= self.info.max_bytes {
            let (op, count) = (Op::WEIR_COMM_ALL_GATHER, bytes / self.element);
            phase.operations.push(self.operation(op, 0, count, Some(from.clone()), Some(to.clone())));
            return phase;
        }
        self.others().for_each(|other| self.own(false, other, &at(other), &mut phase.operations));
        self.others().for_each(|other| self.own(true, other, from, &mut phase.operations));
        phase.copies.push(OwnCopy { from: from.clone(), to: at(rank) });
        phase
    }

    /// Part i of `to` = part `rank` of what rank i has in `from`; both have one part for each rank.
    fn all_to_all(&self, from: &Part, to: &Part) -> Phase {
        let (bytes, rank, mut phase) = (from.bytes.len() / self.info.size, self.info.rank, Phase::default());
        let at = |part: &Part, rank: usize| part_of(part, rank * bytes..(rank + 1) * bytes);
        if self.info.takes(Op::WEIR_COMM_ALL_TO_ALL) && from.bytes.len() as u64 <= self.info.max_bytes {
            let (op, count) = (Op::WEIR_COMM_ALL_TO_ALL, bytes / self.element);
            phase.operations.push(self.operation(op, 0, count, Some(from.clone()), Some(to.clone())));
            return phase;
        }
        self.others().for_each(|other| self.own(false, other, &at(to, other), &mut phase.operations));
        self.others().for_each(|other| self.own(true, other, &at(from, other), &mut phase.operations));
        phase.copies.push(OwnCopy { from: at(from, rank), to: at(to, rank) });
        phase
    }

    /// The reduction of what is in the parts of `from`, one for each rank.
    fn fold(&self, from: &Part, to: &Part) -> Result<Fold> {
        let reduction = self.wanted.reduction.ok_or_else(|| Error::internal("a fold without a reduction"))?;
        let bytes = to.bytes.len();
        let parts = (0..self.info.size).map(|rank| part_of(from, rank * bytes..(rank + 1) * bytes)).collect();
        Ok(Fold { reduction, dtype: self.wanted.dtype, parts, to: to.clone() })
    }

    fn build(mut self) -> Result<Procedure> {
        let Wanted { op, peer, tag, count, .. } = self.wanted;
        let (rank, size, element) = (self.info.rank, self.info.size, self.element);
        let bytes = count.checked_mul(element).and_then(|bytes| bytes.checked_mul(size).map(|_| bytes));
        let bytes = bytes.ok_or_else(|| Error::out_of_range(format!("{count} elements on {size} ranks")))?;
        let whole = bytes * size;
        let (sent, received) = match op {
            Op::WEIR_COMM_SEND => (bytes, 0),
            Op::WEIR_COMM_RECV => (0, bytes),
            Op::WEIR_COMM_BROADCAST | Op::WEIR_COMM_REDUCE | Op::WEIR_COMM_ALL_REDUCE => (bytes, bytes),
            Op::WEIR_COMM_ALL_GATHER => (bytes, whole),
            Op::WEIR_COMM_REDUCE_SCATTER => (whole, bytes),
            Op::WEIR_COMM_ALL_TO_ALL => (whole, whole),
            Op::WEIR_COMM_BARRIER => (0, 0),
        };
        let is_root = rank == peer;
        let is_native = is_native(self.info, &self.wanted, sent.max(received));
        // An exchange of slices needs room for slices of one size.
        let slice = count.div_ceil(size) * element;
        let is_sliced = op == Op::WEIR_COMM_ALL_REDUCE && !is_native;
        let room = |bytes: usize| if is_sliced { slice * size } else { bytes };
        let (send, recv) = (self.open_block(room(sent)), self.open_block(room(received)));
        let used = |part: &Part, bytes: usize| part_of(part, 0..bytes);
        let mut phases = Vec::new();
        match op {
            _ if is_native && !matches!(op, Op::WEIR_COMM_SEND | Op::WEIR_COMM_RECV) => {
                let [sends, receives] = sides(op, is_root);
                let parts =
                    ((sends && sent > 0).then(|| send.clone()), (receives && received > 0).then(|| recv.clone()));
                phases.push(Phase {
                    operations: vec![self.operation(op, peer, count, parts.0, parts.1)],
                    ..Phase::default()
                });
            }
            Op::WEIR_COMM_SEND | Op::WEIR_COMM_RECV => {
                let mut phase = Phase::default();
                let part = if op == Op::WEIR_COMM_SEND { &send } else { &recv };
                self.message(op == Op::WEIR_COMM_SEND, peer, tag, part, &mut phase.operations);
                phases.push(phase);
            }
            Op::WEIR_COMM_BROADCAST => {
                let mut phase = Phase::default();
                if is_root {
                    self.others().for_each(|other| self.own(true, other, &send, &mut phase.operations));
                } else {
                    self.own(false, peer, &recv, &mut phase.operations);
                }
                phases.push(phase);
            }
            Op::WEIR_COMM_REDUCE => {
                let mut phase = Phase::default();
                if is_root {
                    let all = self.block(whole)?;
                    let at = |rank: usize| part_of(&all, rank * bytes..(rank + 1) * bytes);
                    self.others().for_each(|other| self.own(false, other, &at(other), &mut phase.operations));
                    phase.copies.push(OwnCopy { from: send.clone(), to: at(rank) });
                    phase.fold = Some(self.fold(&all, &recv)?);
                } else {
                    self.own(true, peer, &send, &mut phase.operations);
                }
                phases.push(phase);
            }
            Op::WEIR_COMM_ALL_REDUCE => {
                let (parts, sum) = (self.block(slice * size)?, self.block(slice)?);
                let mut first = self.all_to_all(&send, &parts);
                first.fold = Some(self.fold(&parts, &sum)?);
                phases.push(first);
                phases.push(self.all_gather(&sum, &recv));
            }
            Op::WEIR_COMM_REDUCE_SCATTER => {
                let parts = self.block(whole)?;
                let mut phase = self.all_to_all(&send, &parts);
                phase.fold = Some(self.fold(&parts, &recv)?);
                phases.push(phase);
            }
            Op::WEIR_COMM_ALL_GATHER => phases.push(self.all_gather(&send, &recv)),
            Op::WEIR_COMM_ALL_TO_ALL => phases.push(self.all_to_all(&send, &recv)),
            Op::WEIR_COMM_BARRIER => {
                let (one, all) = (self.block(1)?, self.block(size)?);
                phases.push(self.all_gather(&one, &all));
            }
        }
        // The root's output of a broadcast is its input, and so is that of the others of a reduction.
        let recv = match op {
            Op::WEIR_COMM_BROADCAST if is_root => send.clone(),
            Op::WEIR_COMM_REDUCE if !is_root => send.clone(),
            _ => recv,
        };
        let (send, recv) = (used(&send, sent), used(&recv, received));
        Ok(Procedure { phases, send, recv, bytes: self.bytes })
    }
}

impl Procedure {
    /// That of an operation in a device's memory: nothing is left to do, and there is no memory of the host's.
    pub fn on_device() -> Procedure {
        let nothing = || Part { block: Arc::new(Staging::new(0)), bytes: 0..0 };
        Procedure { phases: Vec::new(), send: nothing(), recv: nothing(), bytes: 0 }
    }
}

/// The phases of an operation, and memory for it.
pub fn procedure(info: &TransportInfo, wanted: &Wanted) -> Result<Procedure> {
    let element = if wanted.op == Op::WEIR_COMM_BARRIER { 1 } else { dtype::size(wanted.dtype)? };
    Builder { info, wanted: *wanted, element, bytes: 0 }.build()
}

/// The operations that are built of sends and receives, whatever their type, by bit.
pub fn built(info: &TransportInfo) -> u64 {
    const ALL: u64 = (1 << (Op::WEIR_COMM_BARRIER as u32 + 1)) - 2;
    if info.on_host.ops == 0 { 0 } else { ALL & !info.on_host.ops }
}
