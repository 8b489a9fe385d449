//! Operations of the kit's own on a transport, with memory whose bytes are known, and within a budget.

use crate::abi::{weir_comm_flags as Flag, weir_comm_op_value as Op};
use crate::base::time::now_ns;
use crate::base::{Code, Error, Result, dtype};
use crate::comm::staging::Staging;
use crate::comm::transport::{CommOperation, FIRST_OWN_TAG, Part, Token, Transport, TransportFailure};
use crate::threadpool::conformance::Options;
use std::sync::Arc;

/// Bytes on both sides of what an operation receives, which it leaves alone.
pub const MARGIN: usize = 64;
pub const UNTOUCHED: u8 = 0xa5;
/// So often an operation that cannot be over is tested.
pub const LOOKS: usize = 100;
/// A call that takes longer while another rank sleeps waits for it. That one sleeps for a third longer.
pub const BLOCKED_NS: u64 = 300_000_000;
pub const MEETING_TAG: i32 = FIRST_OWN_TAG + 1;
pub const GO_TAG: i32 = FIRST_OWN_TAG + 2;

/// A finding.
pub enum Wrong {
    Broken(String),
    /// And operations are open.
    Stuck(String),
}

pub type Checked<T = ()> = std::result::Result<T, Wrong>;

/// The transport has these, and keeps their memory.
fn leave<T>(open: T, wrong: Wrong) -> Wrong {
    std::mem::forget(open);
    let (Wrong::Broken(text) | Wrong::Stuck(text)) = wrong;
    Wrong::Stuck(text)
}

pub fn broken<T>(text: impl Into<String>) -> Checked<T> {
    Err(Wrong::Broken(text.into()))
}

pub fn failed(what: &str) -> impl Fn(TransportFailure) -> Wrong {
    move |failure| {
        let rank = failure.rank.map_or(String::new(), |rank| format!("rank {rank}: "));
        Wrong::Broken(format!("{what} has failed: {rank}{}", failure.error.message()))
    }
}

pub fn unmade(what: &str) -> impl Fn(Error) -> Wrong {
    move |error| Wrong::Broken(format!("{what} has failed: {}", error.message()))
}

/// Memory of an operation, with margins.
pub struct Memory(Part);

impl Memory {
    pub fn holding(bytes: &[u8]) -> Checked<Memory> {
        let block = Staging::new(bytes.len() + 2 * MARGIN);
        block.use_own().map_err(unmade("memory"))?;
        // SAFETY: nobody else knows of it.
        let all = unsafe { block.slice_mut(&(0..block.bytes())) };
        all.fill(UNTOUCHED);
        all[MARGIN..MARGIN + bytes.len()].copy_from_slice(bytes);
        Ok(Memory(Part { block: Arc::new(block), bytes: MARGIN..MARGIN + bytes.len() }))
    }

    pub fn empty(bytes: usize) -> Checked<Memory> {
        Memory::holding(&vec![UNTOUCHED; bytes])
    }

    /// All of it, with the margins.
    pub fn whole(&self) -> (*mut u8, usize) {
        let bytes = self.0.block.bytes();
        (self.0.block.at(&(0..bytes)), bytes)
    }

    /// Whether it has these bytes, and the margins are as they were.
    pub fn expect(&self, bytes: &[u8], what: &str) -> Checked {
        // SAFETY: the operation is over or, where the transport breaks its promise, this reads something of both.
        let all = unsafe { self.0.block.slice(&(0..self.0.block.bytes())) };
        let (own, end) = (&all[self.0.bytes.clone()], self.0.bytes.end);
        if let Some(at) = own.iter().zip(bytes).position(|(got, expected)| got != expected) {
            return broken(format!(
                "{what}: byte {at} of {} is {:#04x}, expected {:#04x}",
                own.len(),
                own[at],
                bytes[at]
            ));
        }
        if all[..MARGIN].iter().chain(&all[end..]).any(|&byte| byte != UNTOUCHED) {
            return broken(format!("{what}: bytes beside the {} of it were written", own.len()));
        }
        Ok(())
    }
}

/// An operation, its memory, and what is in that when it is over.
pub struct ProbedOperation {
    pub what: String,
    pub raw: CommOperation,
    send: Option<(Memory, Vec<u8>)>,
    pub recv: Option<(Memory, Vec<u8>)>,
}

impl ProbedOperation {
    pub fn new(
        what: impl Into<String>,
        raw: CommOperation,
        send: Option<Vec<u8>>,
        recv: Option<Vec<u8>>,
    ) -> Checked<ProbedOperation> {
        let send = send.map(|bytes| Ok((Memory::holding(&bytes)?, bytes))).transpose()?;
        let recv = recv.map(|bytes| Ok((Memory::empty(bytes.len())?, bytes))).transpose()?;
        let part = |side: &Option<(Memory, Vec<u8>)>| side.as_ref().map(|(memory, _)| memory.0.clone());
        let raw = CommOperation { send: part(&send), recv: part(&recv), ..raw };
        Ok(ProbedOperation { what: what.into(), raw, send, recv })
    }

    pub fn message(is_send: bool, peer: usize, tag: i32, bytes: &[u8]) -> Checked<ProbedOperation> {
        let (op, word) = if is_send { (Op::WEIR_COMM_SEND, "to") } else { (Op::WEIR_COMM_RECV, "from") };
        let raw = CommOperation { tag, ..plain(op, peer, bytes.len(), dtype::U8) };
        let what = format!("a message of {} bytes {word} rank {peer}", bytes.len());
        let bytes = Some(bytes.to_vec());
        if is_send {
            ProbedOperation::new(what, raw, bytes, None)
        } else {
            ProbedOperation::new(what, raw, None, bytes)
        }
    }

    /// The memory that it sends, and that which it receives.
    pub fn sides(&self) -> [Option<&Memory>; 2] {
        [&self.send, &self.recv].map(|side| side.as_ref().map(|(memory, _)| memory))
    }

    /// Whether all bytes are as they should be.
    pub fn check(&self) -> Checked {
        for (memory, bytes) in self.send.iter().chain(&self.recv) {
            memory.expect(bytes, &self.what)?;
        }
        Ok(())
    }
}

pub fn plain(op: Op, peer: usize, count: usize, dtype: u32) -> CommOperation {
    let element_bytes = if op == Op::WEIR_COMM_BARRIER { 1 } else { dtype::size(dtype).unwrap_or(1) };
    CommOperation {
        op,
        reduction: None,
        dtype,
        element_bytes,
        peer,
        tag: 0,
        count: count as u64,
        send: None,
        recv: None,
    }
}

pub fn late(operation: &ProbedOperation, limit_ns: u64) -> String {
    format!("{} is not over within {} ms", operation.what, limit_ns / 1_000_000)
}

/// A transport, and how long to wait for it.
pub struct Probe<'a> {
    pub transport: &'a dyn Transport,
    pub options: Options,
}

impl Probe<'_> {
    pub fn rank(&self) -> usize {
        self.transport.info().rank
    }

    pub fn size(&self) -> usize {
        self.transport.info().size
    }

    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (rank, size) = (self.rank(), self.size());
        (1..size).map(move |step| (rank + step) % size)
    }

    pub fn start(&self, operation: &ProbedOperation) -> Checked<Token> {
        self.transport.start(&operation.raw).map_err(failed(&format!("start of {}", operation.what)))
    }

    pub fn progress(&self, transport: &dyn Transport) -> Checked {
        if transport.info().has(Flag::WEIR_COMM_NEEDS_PROGRESS) {
            transport.progress().map_err(failed("progress"))?;
        }
        Ok(())
    }

    /// Waits until these are over, asked in this order, and looks at their bytes.
    pub fn finish(&self, transport: &dyn Transport, open: Vec<(ProbedOperation, Token)>) -> Checked {
        self.finish_within(self.options.budget_ns, transport, open)
    }

    /// Longer than another rank is at something else, with its pauses and its budget.
    pub fn longest_ns(&self) -> u64 {
        2 * self.options.budget_ns + 10 * BLOCKED_NS
    }

    pub fn finish_within(
        &self,
        limit_ns: u64,
        transport: &dyn Transport,
        open: Vec<(ProbedOperation, Token)>,
    ) -> Checked {
        let end = now_ns().saturating_add(limit_ns);
        let (mut wrong, mut left) = (None, open);
        loop {
            if let Err(wrong) = self.progress(transport) {
                return Err(leave(left, wrong));
            }
            let mut at = 0;
            while at < left.len() {
                let (operation, token) = &left[at];
                match transport.test(*token) {
                    Ok(false) => {
                        at += 1;
                        continue;
                    }
                    Ok(true) => wrong = wrong.or(operation.check().err()),
                    Err(failure) => wrong = wrong.or(Some(failed(&operation.what)(failure))),
                }
                left.remove(at);
            }
            let Some((operation, _)) = left.first() else { return wrong.map_or(Ok(()), Err) };
            if now_ns() >= end {
                let text = late(operation, limit_ns);
                return Err(leave(left, wrong.unwrap_or(Wrong::Stuck(text))));
            }
            std::thread::yield_now();
        }
    }

    pub fn run(&self, operations: Vec<ProbedOperation>) -> Checked {
        self.run_within(self.options.budget_ns, operations)
    }

    fn run_within(&self, limit_ns: u64, operations: Vec<ProbedOperation>) -> Checked {
        let mut open = Vec::new();
        for operation in operations {
            match self.start(&operation) {
                Ok(token) => open.push((operation, token)),
                Err(wrong) if open.is_empty() => return Err(wrong),
                Err(wrong) => return Err(leave(open, wrong)),
            }
        }
        self.finish_within(limit_ns, self.transport, open)
    }

    /// A message to or from another rank, with the bytes that it has.
    pub fn tell(&self, is_send: bool, peer: usize, tag: i32, bytes: &[u8]) -> Checked {
        self.run(vec![ProbedOperation::message(is_send, peer, tag, bytes)?])
    }

    /// Returns when all ranks are here. Another one may be in a clause still, with its pauses and its budget.
    pub fn meet(&self) -> Checked {
        let mut operations = Vec::new();
        for peer in self.others() {
            operations.push(ProbedOperation::message(false, peer, MEETING_TAG, &[1])?);
            operations.push(ProbedOperation::message(true, peer, MEETING_TAG, &[1])?);
        }
        self.run_within(self.longest_ns(), operations)
    }

    /// That the operation is not over, looked at often.
    pub fn is_open(&self, operation: &ProbedOperation, token: Token) -> Checked {
        for _ in 0..LOOKS {
            self.progress(self.transport)?;
            match self.transport.test(token) {
                Ok(false) => {}
                Ok(true) => return broken(format!("{} is over before it can be", operation.what)),
                Err(failure) => return Err(failed(&operation.what)(failure)),
            }
        }
        Ok(())
    }

    /// This rank's part in each round of a check by two: whether it is the first of them, and the other one. Each rank
    /// is the first once; the last of an odd number has rank 0 with it.
    pub fn turns(&self) -> Vec<(bool, usize)> {
        let (rank, last) = (self.rank(), self.size() - 1);
        let mut turns: Vec<(bool, usize)> = Vec::new();
        if let Some(peer) = self.pair() {
            turns.extend([(rank & 1 == 0, peer), (rank & 1 == 1, peer)]);
        }
        if last & 1 == 0 && last > 0 && [0, last].contains(&rank) {
            turns.push((rank == last, last - rank));
        }
        turns
    }

    /// The other rank of a pair; `None` for the last of an odd number.
    pub fn pair(&self) -> Option<usize> {
        let peer = self.rank() ^ 1;
        (peer < self.size()).then_some(peer)
    }

    /// The new transport, or `None` if there is none of the kind.
    pub fn made(&self, what: &str, made: Result<Arc<dyn Transport>>) -> Checked<Option<Arc<dyn Transport>>> {
        match made {
            Ok(made) => Ok(Some(made)),
            Err(error) if error.code() == Code::Unimplemented => Ok(None),
            Err(error) => Err(unmade(what)(error)),
        }
    }

    /// One message around, on several transports with the same ranks, sent first on the last of them.
    pub fn around(&self, transports: &[&dyn Transport]) -> Checked {
        let (rank, size) = (transports[0].info().rank, transports[0].info().size);
        let mut open = Vec::new();
        let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
        let receives = transports.iter().enumerate().map(|(at, &transport)| (false, previous, at, transport));
        let sends = transports.iter().enumerate().rev().map(|(at, &transport)| (true, next, at, transport));
        for (is_send, peer, at, transport) in receives.chain(sends) {
            let operation = ProbedOperation::message(is_send, peer, 3, &[at as u8, 9])?;
            match transport.start(&operation.raw) {
                Ok(token) => open.push((transport, operation, token)),
                Err(failure) => return Err(leave(open, failed(&operation.what)(failure))),
            }
        }
        // Each is asked in its turn, so that all of them go on.
        let end = now_ns().saturating_add(self.options.budget_ns);
        while let Some((transport, operation, token)) = open.first() {
            let tested = self.progress(*transport);
            match tested.and_then(|()| transport.test(*token).map_err(failed(&operation.what))) {
                Ok(true) => {
                    if let Err(wrong) = operation.check() {
                        return Err(leave(open, wrong));
                    }
                    open.remove(0);
                }
                Ok(false) if now_ns() >= end => {
                    let text = late(operation, self.options.budget_ns);
                    return Err(leave(open, Wrong::Stuck(text)));
                }
                Ok(false) => {
                    open.rotate_left(1);
                    std::thread::yield_now();
                }
                Err(wrong) => return Err(leave(open, wrong)),
            }
        }
        Ok(())
    }
}
