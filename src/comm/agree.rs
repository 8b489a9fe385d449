//! Whether the programs of all ranks communicate in a way that can work.
//!
//! The collectives of all ranks must be the same, one after the other: that is compared by a digest, and a difference
//! is found by halves, so a large program costs a few small messages. Sends and receives are paired by rank and tag in
//! their order. Then nothing may wait for itself: an operation begins behind the one before it, and behind those that
//! are over before it begins; a receive ends behind the beginning of its send, a send behind that of its receive, a
//! collective behind the beginnings on all ranks.
#![forbid(unsafe_code)]

use super::algorithm::{self, Wanted};
use super::communicator::Communicator;
use super::kernel::Communication;
use super::message::{self, hash_on};
use super::request::{Request, SpareRequests};
use crate::abi::weir_comm_op_value as Op;
use crate::base::text::head;
use crate::base::time::{Deadline, now_ns};
use crate::base::{Code, Error, Result, dtype};
use crate::graph::Program;
use crate::sync::progress::nap_ns;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A communication of this rank's program.
#[derive(Clone, Debug, Default)]
struct ProgramOperation {
    path: String,
    nest: String,
    label: String,
    digest: u64,
    /// SEND = 1, RECV = 2, others 0.
    kind: u8,
    peer: u32,
    tag: i32,
    dtype: u32,
    bytes: u64,
    after: Vec<u32>,
}

/// Bytes of a text that all ranks exchange.
const TEXT: usize = 192;

impl ProgramOperation {
    fn text(&self) -> String {
        format!("node '{}' ({}{})", self.path, self.nest, self.label)
    }

    /// The hash of the collectives up to this one.
    fn hash_on(&self, before: u64, has_names: bool) -> u64 {
        let hash = hash_on(hash_on(before, self.nest.as_bytes()), &self.digest.to_le_bytes());
        if has_names { hash_on(hash, self.path.as_bytes()) } else { hash }
    }

    fn is_message(&self) -> bool {
        self.kind != 0
    }
}

/// The communications of a program on this communicator. `after` is by index in the result.
fn records(program: &Program, comm: &Communicator) -> Result<Vec<ProgramOperation>> {
    let mut number = BTreeMap::new();
    let mut records = Vec::new();
    for (index, found) in program.communications().iter().enumerate() {
        let of = found.kernel.as_any().and_then(|any| any.downcast_ref::<Communication>());
        let Some(of) = of.filter(|of| of.comm().number() == comm.number()) else { continue };
        let wanted = of.wanted(&found.inputs)?;
        number.insert(index as u32, records.len() as u32);
        records.push(ProgramOperation {
            path: found.path.clone(),
            nest: found.nest.clone(),
            label: of.label(&found.inputs),
            digest: message::digest(&wanted),
            kind: match wanted.op {
                Op::WEIR_COMM_SEND => 1,
                Op::WEIR_COMM_RECV => 2,
                _ => 0,
            },
            peer: wanted.peer as u32,
            tag: wanted.tag,
            dtype: wanted.dtype,
            bytes: (wanted.count * dtype::size(wanted.dtype)?) as u64,
            // Those of other communicators are not known to the other ranks.
            after: found.after.iter().filter_map(|at| number.get(at).copied()).collect(),
        });
    }
    Ok(records)
}

/// The exchanges of this rank with the others.
struct AgreementExchange<'a> {
    comm: &'a Communicator,
    deadline: Deadline,
    spare: Arc<SpareRequests>,
}

impl AgreementExchange<'_> {
    /// The same number of bytes of all ranks.
    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let wanted = Wanted {
            op: Op::WEIR_COMM_ALL_GATHER,
            reduction: None,
            dtype: dtype::U8,
            peer: 0,
            tag: 0,
            count: bytes.len(),
            is_deterministic: false,
            is_on_device: false,
            nest: message::hash(b""),
            descs: message::hash(b""),
        };
        let procedure = algorithm::procedure(self.comm.info(), &wanted)?;
        let request = Request::new(wanted, "the agreement".to_owned(), procedure, &self.spare);
        request.fill(std::iter::once(bytes))?;
        self.comm.submit(&request, 0)?;
        let mut since = now_ns();
        loop {
            if self.comm.drive() {
                since = now_ns();
            }
            if let Some(received) = request.received() {
                return Ok(received?.chunks(bytes.len()).map(<[u8]>::to_vec).collect());
            }
            if self.deadline.is_past() {
                let text = format!("{}: not all ranks have come to the agreement in time", self.comm.label());
                self.comm.give_up(Error::new(Code::DeadlineExceeded, text));
                // The request ends now, if nobody else drives; else in a moment.
                if let Some(received) = request.received() {
                    received?;
                }
            }
            // Ranks may be more than processors.
            match nap_ns(now_ns() - since, 0) {
                Some(nap) => {
                    let nap = Duration::from_nanos(nap);
                    std::thread::sleep(self.deadline.left().map_or(nap, |left| nap.min(left)));
                }
                None => std::thread::yield_now(),
            }
        }
    }

    fn numbers(&self, number: u64) -> Result<Vec<u64>> {
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[..8]);
            u64::from_le_bytes(word)
        };
        Ok(self.gather(&number.to_le_bytes())?.iter().map(|bytes| word(bytes)).collect())
    }

    /// Bytes of any number of all ranks.
    fn texts(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let lens = self.numbers(bytes.len() as u64)?;
        let most = lens.iter().copied().max().unwrap_or(0).max(1) as usize;
        let mut padded = bytes.to_vec();
        padded.resize(most, 0);
        let mut all = self.gather(&padded)?;
        all.iter_mut().zip(&lens).for_each(|(bytes, len)| bytes.truncate(*len as usize));
        Ok(all)
    }
}

/// Compares the programs of all ranks; all of them must call it.
pub fn agree(program: &Program, comm: &Communicator, limit_ns: u64) -> Result<()> {
    comm.check_thread()?;
    let records = records(program, comm)?;
    let exchange = AgreementExchange { comm, deadline: Deadline::after(limit_ns), spare: Arc::default() };
    let collectives: Vec<&ProgramOperation> = records.iter().filter(|record| !record.is_message()).collect();
    let lens = exchange.numbers(collectives.len() as u64)?;
    // The same names in another order are operations that are swapped. Other names say nothing: they may have numbers
    // that are a rank's own.
    // Hashed twice: sums of one pass of FNV are the same for names that differ in their last letter.
    let name = |record: &ProgramOperation| message::hash(&message::hash(record.path.as_bytes()).to_le_bytes());
    let names = collectives.iter().fold(0u64, |sum, record| sum.wrapping_add(name(record)));
    let names = exchange.numbers(names)?;
    let has_names = names.iter().all(|hash| *hash == names[0]);
    let mut prefixes = vec![0xcbf2_9ce4_8422_2325u64];
    for record in &collectives {
        prefixes.push(record.hash_on(prefixes[prefixes.len() - 1], has_names));
    }
    let hashes = exchange.numbers(prefixes[prefixes.len() - 1])?;
    if lens.iter().any(|len| *len != lens[0]) || hashes.iter().any(|hash| *hash != hashes[0]) {
        return Err(difference(&exchange, &collectives, [&prefixes, &lens], has_names)?);
    }
    let has_messages = exchange.numbers(u64::from(records.iter().any(ProgramOperation::is_message)))?;
    if has_messages.iter().all(|has| *has == 0) {
        return Ok(());
    }
    let all: Vec<Vec<ProgramOperation>> = exchange
        .texts(&encoded(&records))?
        .iter()
        .map(|bytes| decoded(bytes))
        .collect::<Option<_>>()
        .ok_or_else(|| Error::internal(format!("{}: the agreement cannot be read", comm.label())))?;
    let pairs = paired(&all).map_err(|text| Error::precondition(format!("{}: {text}", comm.label())))?;
    cycle(&all, &pairs).map_or(Ok(()), |text| Err(Error::precondition(format!("{}: {text}", comm.label()))))
}

/// The first collective that differs, and the ranks.
fn difference(
    exchange: &AgreementExchange<'_>,
    own: &[&ProgramOperation],
    [prefixes, lens]: [&[u64]; 2],
    has_names: bool,
) -> Result<Error> {
    let (mut same, mut differs) = (0, lens.iter().copied().min().unwrap_or(0) as usize + 1);
    // Up to `same` all agree; with `differs` collectives they do not.
    while differs - same > 1 {
        let middle = usize::midpoint(same, differs);
        let hashes = exchange.numbers(prefixes[middle.min(prefixes.len() - 1)])?;
        if hashes.iter().all(|hash| *hash == hashes[0]) { same = middle } else { differs = middle }
    }
    let text = own.get(same).map_or("no operation".to_owned(), |record| record.text());
    let texts = exchange.texts(head(&text, TEXT).as_bytes())?;
    let texts: Vec<String> = texts.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
    let nests = exchange.numbers(own.get(same).map_or(0, |record| record.hash_on(0, has_names)))?;
    let other = nests.iter().position(|hash| *hash != nests[0]).unwrap_or(nests.len() - 1);
    let text = format!(
        "{}: the ranks' programs differ at collective {}: rank 0 has {}, rank {other} has {}",
        exchange.comm.label(),
        same + 1,
        texts[0],
        texts[other]
    );
    Ok(Error::precondition(text))
}

fn encoded(records: &[ProgramOperation]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let text = |bytes: &mut Vec<u8>, text: &str| {
        let text = head(text, TEXT);
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
    };
    for record in records {
        text(&mut bytes, &record.path);
        text(&mut bytes, &record.nest);
        text(&mut bytes, &record.label);
        bytes.push(record.kind);
        bytes.extend(record.peer.to_le_bytes());
        bytes.extend(record.tag.to_le_bytes());
        bytes.extend(record.dtype.to_le_bytes());
        bytes.extend(record.bytes.to_le_bytes());
        bytes.extend((record.after.len() as u32).to_le_bytes());
        record.after.iter().for_each(|at| bytes.extend(at.to_le_bytes()));
    }
    bytes
}

fn decoded(mut bytes: &[u8]) -> Option<Vec<ProgramOperation>> {
    fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
        let (first, rest) = bytes.split_first_chunk::<N>()?;
        *bytes = rest;
        Some(*first)
    }
    fn text(bytes: &mut &[u8]) -> Option<String> {
        let len = u32::from_le_bytes(take(bytes)?) as usize;
        let (text, rest) = bytes.split_at_checked(len)?;
        *bytes = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    }
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let (path, nest, label) = (text(&mut bytes)?, text(&mut bytes)?, text(&mut bytes)?);
        let [kind] = take(&mut bytes)?;
        let (peer, tag) = (u32::from_le_bytes(take(&mut bytes)?), i32::from_le_bytes(take(&mut bytes)?));
        let (dtype, size) = (u32::from_le_bytes(take(&mut bytes)?), u64::from_le_bytes(take(&mut bytes)?));
        let after = (0..u32::from_le_bytes(take(&mut bytes)?)).map(|_| Some(u32::from_le_bytes(take(&mut bytes)?)));
        let after = after.collect::<Option<Vec<u32>>>()?;
        records.push(ProgramOperation { path, nest, label, digest: 0, kind, peer, tag, dtype, bytes: size, after });
    }
    Some(records)
}

/// A rank's operation.
type At = (usize, usize);

/// Sends with their receives; or what is wrong with them.
fn paired(all: &[Vec<ProgramOperation>]) -> Result<Vec<(At, At)>, String> {
    let mut sends: BTreeMap<(usize, usize, i32), Vec<At>> = BTreeMap::new();
    let mut recvs: BTreeMap<(usize, usize, i32), Vec<At>> = BTreeMap::new();
    for (rank, records) in all.iter().enumerate() {
        for (index, record) in records.iter().enumerate() {
            let peer = record.peer as usize;
            match record.kind {
                1 => sends.entry((rank, peer, record.tag)).or_default().push((rank, index)),
                2 => recvs.entry((peer, rank, record.tag)).or_default().push((rank, index)),
                _ => {}
            }
        }
    }
    let of = |at: &At| &all[at.0][at.1];
    let mut pairs = Vec::new();
    let keys: std::collections::BTreeSet<_> = sends.keys().chain(recvs.keys()).copied().collect();
    for key in keys {
        let (none, (from, to, tag)) = (Vec::new(), key);
        let (sends, recvs) = (sends.get(&key).unwrap_or(&none), recvs.get(&key).unwrap_or(&none));
        for i in 0..sends.len().max(recvs.len()) {
            match (sends.get(i), recvs.get(i)) {
                (Some(send), Some(recv)) => {
                    let (a, b) = (of(send), of(recv));
                    if a.bytes != b.bytes || a.dtype != b.dtype || a.nest != b.nest {
                        return Err(format!("{} of rank {from} is received by {} of rank {to}", a.text(), b.text()));
                    }
                    pairs.push((*send, *recv));
                }
                (Some(send), None) => {
                    return Err(format!("{} of rank {from}, tag {tag}, is not received by rank {to}", of(send).text()));
                }
                (None, Some(recv)) => {
                    return Err(format!("{} of rank {to}, tag {tag}, is not sent by rank {from}", of(recv).text()));
                }
                (None, None) => {}
            }
        }
    }
    Ok(pairs)
}

/// A circle of waits, as text; `None` if nothing does.
fn cycle(all: &[Vec<ProgramOperation>], pairs: &[(At, At)]) -> Option<String> {
    let firsts: Vec<usize> = all
        .iter()
        .scan(0, |at, records| {
            let first = *at;
            *at += records.len();
            Some(first)
        })
        .collect();
    let total: usize = all.iter().map(Vec::len).sum();
    // Two events of each operation, its beginning and its end; then one of each collective: all ranks have begun it.
    let begin = |(rank, index): At| 2 * (firsts[rank] + index);
    let end = |at: At| begin(at) + 1;
    let collectives = |rank: usize| (0..all[rank].len()).filter(move |&index| all[rank][index].kind == 0);
    let joint = |number: usize| 2 * total + number;
    let events = 2 * total + collectives(0).count();
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); events];
    for (rank, records) in all.iter().enumerate() {
        for (index, record) in records.iter().enumerate() {
            next[begin((rank, index))].push(end((rank, index)));
            if index > 0 {
                next[begin((rank, index - 1))].push(begin((rank, index)));
            }
            record.after.iter().for_each(|&before| next[end((rank, before as usize))].push(begin((rank, index))));
        }
        for (number, index) in collectives(rank).enumerate() {
            next[begin((rank, index))].push(joint(number));
            next[joint(number)].push(end((rank, index)));
        }
    }
    for &(send, recv) in pairs {
        next[begin(send)].push(end(recv));
        next[begin(recv)].push(end(send));
    }
    let mut waits = vec![0u32; events];
    next.iter().flatten().for_each(|&event| waits[event] += 1);
    let mut ready: Vec<usize> = (0..events).filter(|&event| waits[event] == 0).collect();
    while let Some(event) = ready.pop() {
        for &after in &next[event] {
            waits[after] -= 1;
            if waits[after] == 0 {
                ready.push(after);
            }
        }
    }
    // Backward from an event that never happens, along those that it waits for, until one comes again.
    let mut at = (0..events).find(|&event| waits[event] > 0)?;
    let mut seen = vec![at];
    let first = loop {
        at = (0..events).find(|&event| waits[event] > 0 && next[event].contains(&at))?;
        match seen.iter().position(|&event| event == at) {
            Some(first) => break first,
            None => seen.push(at),
        }
    };
    let mut names: Vec<String> = Vec::new();
    for &event in seen[first..].iter().filter(|&&event| event < 2 * total) {
        let rank = (0..all.len()).rev().find(|&rank| firsts[rank] <= event / 2 && !all[rank].is_empty())?;
        let name = format!("{} of rank {rank}", all[rank][event / 2 - firsts[rank]].text());
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    if names.len() > 1 && names.first() == names.last() {
        names.pop();
    }
    Some(format!("the ranks wait for one another in a circle: {}", names.join(", which waits for ")))
}
