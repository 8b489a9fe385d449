//! Collectives on small numbers, with their results.
#![forbid(unsafe_code)]

use super::probe::{Checked, Probe, ProbedOperation, plain, unmade};
use crate::abi::{weir_comm_op_value as Op, weir_comm_reduction_value as Reduction};
use crate::base::dtype;
use crate::comm::kernel::name_of;
use crate::comm::reduce::fold;
use crate::comm::transport::{Capabilities, CommOperation};
use crate::kernel::vector::convert::Stored;
use crate::memory::{Bf16, F16};

pub const TYPES: [u32; 8] =
    [dtype::F32, dtype::F16, dtype::BF16, dtype::S8, dtype::U8, dtype::S32, dtype::S64, dtype::BOOL];

pub const REDUCTIONS: [Reduction; 4] =
    [Reduction::WEIR_COMM_SUM, Reduction::WEIR_COMM_PRODUCT, Reduction::WEIR_COMM_MIN, Reduction::WEIR_COMM_MAX];

pub const OPS: [Op; 7] = [
    Op::WEIR_COMM_BROADCAST,
    Op::WEIR_COMM_REDUCE,
    Op::WEIR_COMM_ALL_REDUCE,
    Op::WEIR_COMM_ALL_GATHER,
    Op::WEIR_COMM_REDUCE_SCATTER,
    Op::WEIR_COMM_ALL_TO_ALL,
    Op::WEIR_COMM_BARRIER,
];

/// A small number in this type.
pub fn encoded(number: usize, of: u32) -> Vec<u8> {
    match of {
        dtype::F32 => (number as f32).to_ne_bytes().to_vec(),
        dtype::F16 => F16::narrowed(number as f32).0.to_ne_bytes().to_vec(),
        dtype::BF16 => Bf16::narrowed(number as f32).0.to_ne_bytes().to_vec(),
        dtype::S32 => (number as i32).to_ne_bytes().to_vec(),
        dtype::S64 => (number as i64).to_ne_bytes().to_vec(),
        dtype::BOOL => vec![u8::from(number > 1)],
        _ => vec![number as u8],
    }
}
/// A collective on the numbers that each rank has, with its result.
pub fn collective(
    probe: &Probe<'_>,
    op: Op,
    reduction: Option<Reduction>,
    of: u32,
    count: usize,
    salt: usize,
) -> Checked<ProbedOperation> {
    let (rank, size) = (probe.rank(), probe.size());
    let root = salt % size;
    let parts = if matches!(op, Op::WEIR_COMM_REDUCE_SCATTER | Op::WEIR_COMM_ALL_TO_ALL) { size } else { 1 };
    let bytes_of = |rank: usize| -> Vec<u8> {
        let number = |i: usize| match reduction {
            // Products and sums of small types stay what they are.
            Some(Reduction::WEIR_COMM_PRODUCT) => 1 + usize::from(i % size == rank),
            _ => (7 * rank + 3 * i + salt) % 4,
        };
        (0..count * parts).flat_map(|i| encoded(number(i), of)).collect()
    };
    let all: Vec<Vec<u8>> = (0..size).map(bytes_of).collect();
    let sent = all[rank].clone();
    let element = sent.len().checked_div(count * parts).unwrap_or(0);
    let part = |bytes: &[u8], at: usize| bytes[at * count * element..(at + 1) * count * element].to_vec();
    let reduced = || -> Checked<Vec<u8>> {
        let mut sum = vec![0; sent.len()];
        let parts: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        fold(reduction.unwrap_or(Reduction::WEIR_COMM_SUM), of, &parts, &mut sum).map_err(unmade("a sum"))?;
        Ok(sum)
    };
    let (send, recv) = match op {
        Op::WEIR_COMM_SEND | Op::WEIR_COMM_RECV | Op::WEIR_COMM_BARRIER => (None, None),
        Op::WEIR_COMM_BROADCAST if rank == root => (Some(sent), None),
        Op::WEIR_COMM_BROADCAST => (None, Some(all[root].clone())),
        Op::WEIR_COMM_REDUCE if rank != root => (Some(sent), None),
        Op::WEIR_COMM_REDUCE | Op::WEIR_COMM_ALL_REDUCE => (Some(sent.clone()), Some(reduced()?)),
        Op::WEIR_COMM_REDUCE_SCATTER => (Some(sent.clone()), Some(part(&reduced()?, rank))),
        Op::WEIR_COMM_ALL_GATHER => (Some(sent), Some(all.concat())),
        Op::WEIR_COMM_ALL_TO_ALL => (Some(sent), Some(all.iter().flat_map(|of| part(of, rank)).collect())),
    };
    let name = name_of(op);
    let by = reduction.map_or(String::new(), |by| format!(" by {by:?}"));
    let raw = CommOperation { reduction, ..plain(op, root, count, of) };
    let is_rooted = matches!(op, Op::WEIR_COMM_BROADCAST | Op::WEIR_COMM_REDUCE);
    let raw = CommOperation { peer: if is_rooted { root } else { 0 }, ..raw };
    ProbedOperation::new(format!("{name}{by} of {count} {}", dtype::name(of)), raw, send, recv)
}

/// The collectives that a transport offers, each with its reduction, if it reduces.
pub fn offered(by: &Capabilities) -> Vec<(Op, Option<Reduction>, u32)> {
    let mut all = Vec::new();
    for op in [Op::WEIR_COMM_BROADCAST, Op::WEIR_COMM_ALL_GATHER, Op::WEIR_COMM_ALL_TO_ALL] {
        all.extend(TYPES.iter().filter(|_| by.takes(op)).map(|&of| (op, None, of)));
    }
    for op in [Op::WEIR_COMM_REDUCE, Op::WEIR_COMM_ALL_REDUCE, Op::WEIR_COMM_REDUCE_SCATTER] {
        for reduction in REDUCTIONS {
            let types = TYPES.iter().filter(|&&of| by.takes(op) && by.reduces(of, reduction));
            all.extend(types.map(|&of| (op, Some(reduction), of)));
        }
    }
    all
}
