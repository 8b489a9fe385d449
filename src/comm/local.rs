//! Ranks in one process: each is a communicator of its own, in a thread of its own or in one thread with others.
//!
//! A send waits for its receive, as a large message does between processes. The k-th collective of each rank belongs
//! together, whatever it is; if they differ, all fail. Reductions are in rank order. The last rank that comes moves the
//! bytes of all, under the fabric's lock.

use super::kernel::{by, name_of};
use super::reduce::fold;
use super::transport::{
    Capabilities, CommOperation, MESSAGE_BYTES, Message, Part, Token, Transport, TransportFailure, TransportInfo,
};
use crate::abi::{weir_comm_flags as Flag, weir_comm_op_value as Op};
use crate::base::{Code, Error, Result, dtype};
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

const ALL_BITS: u64 = (1 << 10) - 2;

/// A started operation that is not over.
struct Posted {
    operation: CommOperation,
    token: usize,
}

enum TokenState {
    Open,
    Over(Result<(), TransportFailure>),
}

/// Each rank's fabric, and its number there.
type Places = Vec<Option<(Arc<Fabric>, usize)>>;

/// Why ranks meet: what each has said, and the fabric that came of it, with the ranks' numbers there.
struct Gathering {
    said: Vec<Option<(i32, i32)>>,
    made: Option<Places>,
}

struct FabricState {
    /// Unmatched sends and receives, by (from, to, tag).
    sends: BTreeMap<(usize, usize, i32), VecDeque<Posted>>,
    recvs: BTreeMap<(usize, usize, i32), VecDeque<Posted>>,
    /// How many collectives each rank has begun, and those that not all have.
    begun: Vec<u64>,
    rounds: BTreeMap<u64, Vec<Option<Posted>>>,
    outcomes: Vec<TokenState>,
    free: Vec<usize>,
    control: Vec<VecDeque<(usize, Message)>>,
    /// Ranks that have given up or are gone.
    gone: Vec<bool>,
    left: Vec<bool>,
    /// Meetings, and how many of them each rank has been to.
    meetings: Vec<Gathering>,
    been: Vec<usize>,
}

pub struct Fabric {
    size: usize,
    state: Mutex<FabricState>,
    met: Condvar,
}

fn bytes_of(part: &Option<Part>) -> usize {
    part.as_ref().map_or(0, |part| part.bytes.len())
}

/// # Safety
/// The part is of an operation that is open, so its memory is the fabric's.
unsafe fn read(part: &Option<Part>) -> &[u8] {
    // SAFETY: as demanded of the caller; the fabric's lock is held.
    part.as_ref().map_or(&[], |part| unsafe { part.block.slice(&part.bytes) })
}

/// # Safety
/// As of `read`.
unsafe fn write(part: &Option<Part>, at: usize, bytes: &[u8]) {
    if let Some(part) = part {
        let to = part.bytes.start + at..part.bytes.start + at + bytes.len();
        // SAFETY: as demanded of the caller.
        unsafe { part.block.slice_mut(&to) }.copy_from_slice(bytes);
    }
}

impl Fabric {
    fn new(size: usize) -> Arc<Fabric> {
        let state = FabricState {
            sends: BTreeMap::new(),
            recvs: BTreeMap::new(),
            begun: vec![0; size],
            rounds: BTreeMap::new(),
            outcomes: Vec::new(),
            free: Vec::new(),
            control: vec![VecDeque::new(); size],
            gone: vec![false; size],
            left: vec![false; size],
            meetings: Vec::new(),
            been: vec![0; size],
        };
        Arc::new(Fabric { size, state: Mutex::new(state), met: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, FabricState> {
        self.state.lock()
    }

    /// The `index`-th meeting of this rank, once all ranks that are there have come.
    fn meet(&self, rank: usize, said: (i32, i32), waits: bool) -> Result<Option<(Arc<Fabric>, usize)>> {
        let mut state = self.lock();
        let index = state.been[rank];
        state.been[rank] += 1;
        while state.meetings.len() <= index {
            state.meetings.push(Gathering { said: vec![None; self.size], made: None });
        }
        state.meetings[index].said[rank] = Some(said);
        if !waits {
            // A duplicate: known without the others.
            let made = state.meetings[index].made.get_or_insert_with(|| {
                let fabric = Fabric::new(self.size);
                (0..self.size).map(|rank| Some((Arc::clone(&fabric), rank))).collect()
            });
            return Ok(made[rank].clone());
        }
        loop {
            let is_there = |rank: usize| !state.left[rank];
            if state.meetings[index].made.is_none()
                && (0..self.size).all(|rank| !is_there(rank) || state.meetings[index].said[rank].is_some())
            {
                let there: Vec<usize> = (0..self.size).filter(|&rank| is_there(rank)).collect();
                let made = self.divided(&state.meetings[index].said, &there);
                state.meetings[index].made = Some(made);
                self.met.notify_all();
            }
            if let Some(made) = &state.meetings[index].made {
                return Ok(made[rank].clone());
            }
            state = self.met.wait(state);
        }
    }

    /// New fabrics by color, ordered by key and rank.
    fn divided(&self, said: &[Option<(i32, i32)>], there: &[usize]) -> Places {
        let mut colors: BTreeMap<i32, Vec<(i32, usize)>> = BTreeMap::new();
        for &rank in there {
            if let Some((color, key)) = said[rank].filter(|(color, _)| *color >= 0) {
                colors.entry(color).or_default().push((key, rank));
            }
        }
        let mut made = vec![None; self.size];
        for members in colors.values_mut() {
            members.sort_unstable();
            let fabric = Fabric::new(members.len());
            members.iter().enumerate().for_each(|(at, &(_, rank))| made[rank] = Some((Arc::clone(&fabric), at)));
        }
        made
    }
}

impl FabricState {
    fn token(&mut self) -> usize {
        if let Some(token) = self.free.pop() {
            self.outcomes[token] = TokenState::Open;
            return token;
        }
        self.outcomes.push(TokenState::Open);
        self.outcomes.len() - 1
    }

    fn end(&mut self, token: usize, outcome: Result<(), TransportFailure>) {
        self.outcomes[token] = TokenState::Over(outcome);
    }

    /// The bytes go from a send to its receive.
    fn deliver(&mut self, from: usize, send: &Posted, recv: &Posted) {
        let (sent, wanted) = (bytes_of(&send.operation.send), bytes_of(&recv.operation.recv));
        self.end(send.token, Ok(()));
        if sent != wanted {
            let text = format!("rank {from} has sent {sent} bytes, and {wanted} were expected");
            let failure = TransportFailure { error: Error::new(Code::DataLoss, text), rank: Some(from) };
            return self.end(recv.token, Err(failure));
        }
        // SAFETY: both operations are open until now.
        unsafe { write(&recv.operation.recv, 0, read(&send.operation.send)) };
        self.end(recv.token, Ok(()));
    }

    fn post(&mut self, rank: usize, operation: &CommOperation) -> Result<usize, TransportFailure> {
        let peer = operation.peer;
        let is_p2p = matches!(operation.op, Op::WEIR_COMM_SEND | Op::WEIR_COMM_RECV);
        let gone = |state: &FabricState| match is_p2p {
            true => state.gone[peer].then_some(peer),
            false => (0..state.gone.len()).find(|&rank| state.gone[rank]),
        };
        if let Some(gone) = gone(self) {
            let text = "it has left";
            return Err(TransportFailure { error: Error::new(Code::Unavailable, text), rank: Some(gone) });
        }
        let token = self.token();
        let posted = Posted { operation: operation.clone(), token };
        match operation.op {
            Op::WEIR_COMM_SEND => {
                let key = (rank, peer, operation.tag);
                match self.recvs.get_mut(&key).and_then(VecDeque::pop_front) {
                    Some(recv) => self.deliver(rank, &posted, &recv),
                    None => self.sends.entry(key).or_default().push_back(posted),
                }
            }
            Op::WEIR_COMM_RECV => {
                let key = (peer, rank, operation.tag);
                match self.sends.get_mut(&key).and_then(VecDeque::pop_front) {
                    Some(send) => self.deliver(peer, &send, &posted),
                    None => self.recvs.entry(key).or_default().push_back(posted),
                }
            }
            _ => {
                let number = self.begun[rank];
                self.begun[rank] += 1;
                let size = self.begun.len();
                let round = self.rounds.entry(number).or_insert_with(|| (0..size).map(|_| None).collect());
                round[rank] = Some(posted);
                if round.iter().all(Option::is_some) {
                    let round: Vec<Posted> = self.rounds.remove(&number).into_iter().flatten().flatten().collect();
                    let result = exchange(&round);
                    round.iter().for_each(|posted| self.end(posted.token, result.clone()));
                }
            }
        }
        Ok(token)
    }

    /// The operations of a rank end without a result, and those that need it fail.
    fn leave(&mut self, rank: usize) {
        if std::mem::replace(&mut self.gone[rank], true) {
            return;
        }
        let failure = || TransportFailure { error: Error::new(Code::Unavailable, "it has left"), rank: Some(rank) };
        let mut failed = Vec::new();
        for (is_send, waiting) in [(true, &mut self.sends), (false, &mut self.recvs)] {
            for (&(from, to, _), posted) in waiting.iter_mut().filter(|((from, to, _), _)| [*from, *to].contains(&rank))
            {
                let owner = if is_send { from } else { to };
                posted.drain(..).for_each(|posted| failed.push((owner, posted.token)));
            }
        }
        for round in std::mem::take(&mut self.rounds).into_values() {
            failed.extend(round.into_iter().enumerate().filter_map(|(owner, posted)| Some((owner, posted?.token))));
        }
        for (_, token) in failed {
            self.end(token, Err(failure()));
        }
    }
}

fn is_same(a: &CommOperation, b: &CommOperation) -> bool {
    (a.op, a.reduction, a.dtype, a.peer, a.count, a.element_bytes)
        == (b.op, b.reduction, b.dtype, b.peer, b.count, b.element_bytes)
}

/// `all_reduce of maxima, 1000 x f32`
fn shown(operation: &CommOperation) -> String {
    let CommOperation { op, reduction, count, peer, .. } = *operation;
    let root = match op {
        Op::WEIR_COMM_BROADCAST | Op::WEIR_COMM_REDUCE => format!(", root {peer}"),
        _ => String::new(),
    };
    format!("{}{}, {count} x {}{root}", name_of(op), by(reduction), dtype::name(operation.dtype))
}

/// Does a collective, with the operations of all ranks, which are open.
fn exchange(round: &[Posted]) -> Result<(), TransportFailure> {
    let first = &round[0].operation;
    if let Some(other) = round.iter().position(|posted| !is_same(&posted.operation, first)) {
        let text = format!("it does {}, and rank 0 does {}", shown(&round[other].operation), shown(first));
        return Err(TransportFailure { error: Error::new(Code::DataLoss, text), rank: Some(other) });
    }
    let operations = || round.iter().map(|posted| &posted.operation);
    let part = first.count as usize * first.element_bytes;
    // SAFETY: here and below: operations that are open, under the fabric's lock.
    let sent = |rank: usize| unsafe { read(&round[rank].operation.send) };
    match first.op {
        Op::WEIR_COMM_BARRIER | Op::WEIR_COMM_SEND | Op::WEIR_COMM_RECV => {}
        Op::WEIR_COMM_BROADCAST => {
            // SAFETY: as above.
            operations().for_each(|to| unsafe { write(&to.recv, 0, sent(first.peer)) });
        }
        Op::WEIR_COMM_ALL_GATHER => {
            for (to, rank) in operations().flat_map(|to| (0..round.len()).map(move |rank| (to, rank))) {
                // SAFETY: as above.
                unsafe { write(&to.recv, rank * part, sent(rank)) };
            }
        }
        Op::WEIR_COMM_ALL_TO_ALL => {
            for (at, to) in operations().enumerate() {
                for rank in 0..round.len() {
                    // SAFETY: as above.
                    unsafe { write(&to.recv, rank * part, &sent(rank)[at * part..(at + 1) * part]) };
                }
            }
        }
        Op::WEIR_COMM_REDUCE | Op::WEIR_COMM_ALL_REDUCE | Op::WEIR_COMM_REDUCE_SCATTER => {
            let Some(reduction) = first.reduction else { return Ok(()) };
            let all: Vec<&[u8]> = (0..round.len()).map(sent).collect();
            let mut sum = vec![0; all[0].len()];
            fold(reduction, first.dtype, &all, &mut sum).map_err(|error| TransportFailure { error, rank: None })?;
            for (rank, to) in operations().enumerate() {
                let of_rank = match first.op {
                    Op::WEIR_COMM_REDUCE_SCATTER => &sum[rank * part..(rank + 1) * part],
                    Op::WEIR_COMM_REDUCE if rank != first.peer => &[],
                    _ => &sum[..],
                };
                // SAFETY: as above.
                unsafe { write(&to.recv, 0, of_rank) };
            }
        }
    }
    Ok(())
}

pub struct LocalTransport {
    fabric: Arc<Fabric>,
    rank: usize,
    info: TransportInfo,
}

impl LocalTransport {
    /// A transport for each of `size` ranks.
    pub fn create(size: usize) -> Vec<LocalTransport> {
        let fabric = Fabric::new(size);
        (0..size).map(|rank| LocalTransport::of(&fabric, rank)).collect()
    }

    fn of(fabric: &Arc<Fabric>, rank: usize) -> LocalTransport {
        let dtypes = [dtype::F32, dtype::F16, dtype::BF16, dtype::S8, dtype::U8, dtype::S32, dtype::S64, dtype::BOOL];
        let info = TransportInfo {
            rank,
            size: fabric.size,
            flags: Flag::WEIR_COMM_FIXED_ORDER as u64 | Flag::WEIR_COMM_ABORT_RELEASES as u64,
            on_host: Capabilities {
                ops: ALL_BITS,
                dtypes: dtypes.iter().fold(0, |bits, dtype| bits | 1 << dtype),
                reductions: 0b11110,
            },
            on_device: None,
            max_tag: i32::MAX,
            max_bytes: u64::MAX,
            name: "local".to_owned(),
            has_control: true,
            can_recover: true,
        };
        LocalTransport { fabric: Arc::clone(fabric), rank, info }
    }

    fn met(&self, said: (i32, i32), waits: bool) -> Result<Option<Arc<dyn Transport>>> {
        let made = self.fabric.meet(self.rank, said, waits)?;
        Ok(made.map(|(fabric, rank)| Arc::new(LocalTransport::of(&fabric, rank)) as Arc<dyn Transport>))
    }
}

impl Transport for LocalTransport {
    fn info(&self) -> &TransportInfo {
        &self.info
    }

    fn start(&self, operation: &CommOperation) -> Result<Token, TransportFailure> {
        self.fabric.lock().post(self.rank, operation).map(Token)
    }

    fn test(&self, token: Token) -> Result<bool, TransportFailure> {
        let mut state = self.fabric.lock();
        let Some(TokenState::Over(_)) = state.outcomes.get(token.0) else { return Ok(false) };
        state.free.push(token.0);
        match std::mem::replace(&mut state.outcomes[token.0], TokenState::Open) {
            TokenState::Over(result) => result.map(|()| true),
            TokenState::Open => Ok(false),
        }
    }

    fn control_send(&self, peer: usize, message: &Message) -> Result<(), TransportFailure> {
        const { assert!(MESSAGE_BYTES == 64) };
        self.fabric.lock().control[peer].push_back((self.rank, *message));
        Ok(())
    }

    fn control_poll(&self) -> Result<Option<(usize, Message)>, TransportFailure> {
        Ok(self.fabric.lock().control[self.rank].pop_front())
    }

    fn abort(&self) {
        self.fabric.lock().leave(self.rank);
    }

    fn duplicate(&self) -> Result<Arc<dyn Transport>> {
        self.met((0, 0), false)?.ok_or_else(|| Error::internal("a duplicate without a fabric"))
    }

    fn split(&self, color: i32, key: i32) -> Result<Option<Arc<dyn Transport>>> {
        self.met((color, key), true)
    }

    fn recover(&self) -> Result<Arc<dyn Transport>> {
        self.met((0, self.rank as i32), true)?.ok_or_else(|| Error::internal("a recovery without a fabric"))
    }
}

impl Drop for LocalTransport {
    fn drop(&mut self) {
        let mut state = self.fabric.lock();
        state.leave(self.rank);
        state.left[self.rank] = true;
        drop(state);
        self.fabric.met.notify_all();
    }
}
