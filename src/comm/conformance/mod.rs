//! The conformance kit for transports: does one keep its side of docs/ranks.md?
//!
//! All ranks call it, and go through the clauses in step: behind each one they exchange a byte, so that no rank is in
//! another clause. Within a clause what is checked follows from what a rank has told another one by a message, and not
//! from time, except whether a call blocks. An operation that is not over within the budget ends the examination on
//! all ranks: it still has its memory, which is kept for good, and the clauses behind it are not checked.

mod collective;
mod on_device;
mod probe;

use super::algorithm;
use super::kernel::name_of;
use super::transport::{FIRST_OWN_TAG, Message, Transport};
use crate::abi::{weir_comm_flags as Flag, weir_comm_op_value as Op};
use crate::base::time::now_ns;
use crate::base::{Error, dtype};
use crate::threadpool::conformance::{ClauseVerdict, Options, ReportLine};
use collective::{OPS, TYPES, collective, offered};
use probe::{BLOCKED_NS, Checked, GO_TAG, LOOKS, Probe, ProbedOperation, UNTOUCHED, Wrong, broken, failed, plain};
use std::time::Duration;

/// Bytes of a message that every transport takes in one piece.
const SOME: usize = 50;

/// A clause that was not found to be broken.
enum Finding {
    Pass(String),
    NotOffered(String),
}

struct Examination<'a> {
    probe: Probe<'a>,
    lines: Vec<ReportLine>,
    stuck: Option<String>,
}

/// Examines a transport; all ranks call it. A line for each clause in order, and then notes.
pub fn examine(transport: &dyn Transport, options: Options) -> Vec<ReportLine> {
    let mut subject = Examination { probe: Probe { transport, options }, lines: Vec::new(), stuck: None };
    subject.clause("T1", "messages arrive whole, and nothing else is written", messages);
    subject.clause("T2", "messages of one tag come in the order of their sends, and tags do not mix", tags);
    subject.clause("T3", "a message that was not sent has not arrived", early);
    subject.clause("T4", "start does not wait for another rank", blocking);
    subject.clause("T5", "collectives have the right result, for each type and reduction", collectives);
    subject.clause("T6", "several collectives are under way at once", at_once);
    subject.clause("T7", "a barrier waits for all ranks", barrier);
    subject.clause("T8", "control messages arrive whole, once, and in order", control);
    subject.clause("T9", "a duplicate's messages are its own", duplicate);
    subject.clause("T10", "a split has its ranks in the order of their keys", split);
    subject.clause("T11", "abort releases memory, if the flags say so", abort);
    subject.clause("T12", "operations on a device keep to the order of its stream", device_operations);
    subject.clause("T13", "the streams of a device go on after abort", device_abort);
    subject.notes();
    subject.lines
}

impl Examination<'_> {
    fn clause(
        &mut self,
        clause: &'static str,
        title: &'static str,
        check: impl FnOnce(&Probe<'_>) -> Checked<Finding>,
    ) {
        let (verdict, text) = match &self.stuck {
            Some(stuck) => (ClauseVerdict::NotChecked, stuck.clone()),
            None => {
                let outcome = check(&self.probe);
                // Only a rank without open operations can meet the others.
                let meeting = if let Err(Wrong::Stuck(_)) = outcome { Ok(()) } else { self.probe.meet() };
                let (verdict, text) = match outcome {
                    Ok(Finding::Pass(text)) => (ClauseVerdict::Pass, text),
                    Ok(Finding::NotOffered(text)) => (ClauseVerdict::NotOffered, text),
                    Err(Wrong::Broken(text)) => (ClauseVerdict::Fail, text),
                    Err(Wrong::Stuck(text)) => {
                        self.stuck = Some("an operation is not over".to_owned());
                        (ClauseVerdict::Fail, text)
                    }
                };
                match meeting {
                    Ok(()) => (verdict, text),
                    Err(Wrong::Broken(why) | Wrong::Stuck(why)) => {
                        self.stuck = Some("the ranks are not in the same clause".to_owned());
                        let is_fail = verdict == ClauseVerdict::Fail;
                        (
                            ClauseVerdict::Fail,
                            if is_fail { text } else { format!("the ranks did not meet behind it: {why}") },
                        )
                    }
                }
            }
        };
        self.lines.push(ReportLine { clause, title, verdict, text });
    }

    fn notes(&mut self) {
        let info = self.probe.transport.info();
        let built = algorithm::built(info);
        let names: Vec<&str> = OPS.iter().filter(|&&op| built >> op as u32 & 1 != 0).map(|&op| name_of(op)).collect();
        let built = if names.is_empty() { "no operation".to_owned() } else { names.join(", ") };
        let types: Vec<String> = TYPES
            .iter()
            .filter(|&&of| info.on_host.dtypes >> of & 1 == 0)
            .map(|&of| dtype::name(of).to_string())
            .collect();
        let types = if types.is_empty() { "no type".to_owned() } else { types.join(", ") };
        let recovers = if info.can_recover { "has recover" } else { "has no recover" };
        let lines = [
            ("N1", "the transport", format!("{}, rank {} of {}, {recovers}", info.name, info.rank, info.size)),
            ("N2", "what weir builds of messages", format!("{built}; it reduces {types} itself")),
        ];
        let note = |(clause, title, text)| ReportLine { clause, title, verdict: ClauseVerdict::Note, text };
        self.lines.extend(lines.map(note));
    }
}

fn one_rank(probe: &Probe<'_>) -> Option<Finding> {
    (probe.size() == 1).then(|| Finding::NotOffered("there is one rank".to_owned()))
}

fn messages(probe: &Probe<'_>) -> Checked<Finding> {
    if let Some(outcome) = one_rank(probe) {
        return Ok(outcome);
    }
    let most = probe.transport.info().max_bytes.min(1 << 20) as usize;
    let sizes: Vec<usize> = [0, 1, 3, 64, 1000, 65_536, most].into_iter().filter(|&bytes| bytes <= most).collect();
    let bytes_of = |from: usize, to: usize, bytes: usize| -> Vec<u8> {
        (0..bytes).map(|i| (i.wrapping_mul(131) + 7 * from + 31 * to + bytes) as u8).collect()
    };
    let rank = probe.rank();
    for &bytes in &sizes {
        let mut operations = Vec::new();
        for peer in probe.others() {
            operations.push(ProbedOperation::message(false, peer, 0, &bytes_of(peer, rank, bytes))?);
            operations.push(ProbedOperation::message(true, peer, 0, &bytes_of(rank, peer, bytes))?);
        }
        probe.run(operations)?;
    }
    Ok(Finding::Pass(format!("{} sizes up to {most} bytes, between all ranks", sizes.len())))
}

fn tags(probe: &Probe<'_>) -> Checked<Finding> {
    if let Some(outcome) = one_rank(probe) {
        return Ok(outcome);
    }
    const ROUNDS: u8 = 8;
    let tags = [0, 5, FIRST_OWN_TAG - 1, 32_767];
    let (rank, size) = (probe.rank(), probe.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut operations = Vec::new();
    for round in 0..ROUNDS {
        for (at, &tag) in tags.iter().enumerate() {
            operations.push(ProbedOperation::message(true, next, tag, &[round, at as u8])?);
        }
    }
    for (at, &tag) in tags.iter().enumerate().rev() {
        for round in 0..ROUNDS {
            operations.push(ProbedOperation::message(false, previous, tag, &[round, at as u8])?);
        }
    }
    let count = operations.len() / 2;
    probe.run(operations)?;
    Ok(Finding::Pass(format!("{count} messages with {} tags", tags.len())))
}

fn early(probe: &Probe<'_>) -> Checked<Finding> {
    if let Some(outcome) = one_rank(probe) {
        return Ok(outcome);
    }
    for (is_first, peer) in probe.turns() {
        if !is_first {
            probe.tell(false, peer, GO_TAG, &[1])?;
            probe.tell(true, peer, 0, &[7; SOME])?;
            continue;
        }
        let operation = ProbedOperation::message(false, peer, 0, &[7; SOME])?;
        let token = probe.start(&operation)?;
        let seen = probe.is_open(&operation, token).and_then(|()| match &operation.recv {
            Some((memory, _)) => memory.expect(&[UNTOUCHED; SOME], "the memory of a message that was not sent"),
            None => Ok(()),
        });
        probe.tell(true, peer, GO_TAG, &[1])?;
        if let Err(wrong) = seen {
            std::mem::forget(operation);
            return Err(wrong);
        }
        probe.finish(probe.transport, vec![(operation, token)])?;
    }
    Ok(Finding::Pass(format!("it was asked {LOOKS} times before the send")))
}

fn blocking(probe: &Probe<'_>) -> Checked<Finding> {
    if let Some(outcome) = one_rank(probe) {
        return Ok(outcome);
    }
    let bytes = vec![3; probe.transport.info().max_bytes.min(1 << 20) as usize];
    let mut longest = 0;
    for is_send in [true, false] {
        for (is_first, peer) in probe.turns() {
            if !is_first {
                std::thread::sleep(Duration::from_nanos(BLOCKED_NS / 3 * 4));
                probe.tell(!is_send, peer, 0, &bytes)?;
                continue;
            }
            let operation = ProbedOperation::message(is_send, peer, 0, &bytes)?;
            let begun = now_ns();
            let token = probe.start(&operation)?;
            let is_over = probe.transport.test(token).map_err(failed(&operation.what))?;
            longest = longest.max(now_ns() - begun);
            if is_over {
                operation.check()?;
            } else {
                probe.finish_within(probe.longest_ns(), probe.transport, vec![(operation, token)])?;
            }
        }
    }
    if longest > BLOCKED_NS {
        return broken(format!(
            "start and test of a message took {} ms while the other rank slept",
            longest / 1_000_000
        ));
    }
    Ok(Finding::Pass(format!("start and test took {} us at most while the other rank slept", longest / 1000)))
}

fn collectives(probe: &Probe<'_>) -> Checked<Finding> {
    let (offered, counts) = (offered(&probe.transport.info().on_host), [0, 1, 7, 300]);
    for (at, &(op, reduction, of)) in offered.iter().enumerate() {
        let most = probe.transport.info().max_bytes / (8 * probe.size() as u64);
        for count in counts.into_iter().filter(|&count| count as u64 <= most) {
            probe.run(vec![collective(probe, op, reduction, of, count, at + count)?])?;
        }
    }
    match offered.len() {
        0 => Ok(Finding::NotOffered("weir builds them of messages".to_owned())),
        number => Ok(Finding::Pass(format!("{number} of them, with {counts:?} elements"))),
    }
}

fn at_once(probe: &Probe<'_>) -> Checked<Finding> {
    let offered = offered(&probe.transport.info().on_host);
    if offered.is_empty() {
        return Ok(Finding::NotOffered("weir builds them of messages".to_owned()));
    }
    const AT_ONCE: usize = 8;
    for round in 0..4 {
        let mut open = Vec::new();
        for at in 0..AT_ONCE {
            let (op, reduction, of) = offered[(7 * round + 5 * at) % offered.len()];
            let operation = collective(probe, op, reduction, of, 1 + at, round + at)?;
            let token = probe.start(&operation)?;
            open.push((operation, token));
        }
        // Those that begin last are asked first.
        open.reverse();
        probe.finish(probe.transport, open)?;
    }
    Ok(Finding::Pass(format!("{AT_ONCE} at once, asked in the reverse order")))
}

fn barrier(probe: &Probe<'_>) -> Checked<Finding> {
    if !probe.transport.info().takes(Op::WEIR_COMM_BARRIER) {
        return Ok(Finding::NotOffered("weir builds it of messages".to_owned()));
    }
    if let Some(outcome) = one_rank(probe) {
        return Ok(outcome);
    }
    for late in [0, probe.size() - 1] {
        let operation = ProbedOperation::new("a barrier", plain(Op::WEIR_COMM_BARRIER, 0, 0, dtype::U8), None, None)?;
        if probe.rank() == late {
            // The others have all asked often before this rank comes.
            let heard = probe.others().map(|peer| ProbedOperation::message(false, peer, GO_TAG, &[1]));
            probe.run(heard.collect::<Checked<_>>()?)?;
            probe.run(vec![operation])?;
            continue;
        }
        let token = probe.start(&operation)?;
        let seen = probe.is_open(&operation, token);
        probe.tell(true, late, GO_TAG, &[1])?;
        seen?;
        probe.finish(probe.transport, vec![(operation, token)])?;
    }
    Ok(Finding::Pass(format!("it was asked {LOOKS} times before the last rank came")))
}

fn control(probe: &Probe<'_>) -> Checked<Finding> {
    if !probe.transport.info().has_control {
        return Ok(Finding::NotOffered("it has no control_send and control_poll".to_owned()));
    }
    const MESSAGES: usize = 20;
    let message = |from: usize, number: usize| -> Message { std::array::from_fn(|i| (from + 3 * number + i) as u8) };
    for number in 0..MESSAGES {
        for peer in probe.others() {
            let sent = probe.transport.control_send(peer, &message(probe.rank(), number));
            sent.map_err(failed("control_send"))?;
        }
    }
    let (mut heard, end) = (vec![0; probe.size()], now_ns().saturating_add(probe.options.budget_ns));
    while probe.others().any(|peer| heard[peer] < MESSAGES) {
        let Some((peer, got)) = probe.transport.control_poll().map_err(failed("control_poll"))? else {
            if now_ns() >= end {
                let lost = probe.others().find(|&peer| heard[peer] < MESSAGES).unwrap_or(0);
                return broken(format!("{} of {MESSAGES} messages of rank {lost} have come", heard[lost]));
            }
            std::thread::yield_now();
            continue;
        };
        if heard[peer] >= MESSAGES || got != message(peer, heard[peer]) {
            return broken(format!("message {} of rank {peer} is another one", heard[peer]));
        }
        heard[peer] += 1;
    }
    for _ in 0..LOOKS {
        if let Some((peer, _)) = probe.transport.control_poll().map_err(failed("control_poll"))? {
            return broken(format!("rank {peer} has sent {MESSAGES} messages, and one more has come"));
        }
    }
    Ok(Finding::Pass(format!("{MESSAGES} between all ranks")))
}

fn duplicate(probe: &Probe<'_>) -> Checked<Finding> {
    if let Some(outcome) = one_rank(probe) {
        return Ok(outcome);
    }
    let Some(other) = probe.made("duplicate", probe.transport.duplicate())? else {
        return Ok(Finding::NotOffered("it has no duplicate".to_owned()));
    };
    if (other.info().rank, other.info().size) != (probe.rank(), probe.size()) {
        return broken(format!("it has rank {} of {}", other.info().rank, other.info().size));
    }
    probe.around(&[probe.transport, &*other])?;
    Ok(Finding::Pass("messages with one tag on both".to_owned()))
}

fn split(probe: &Probe<'_>) -> Checked<Finding> {
    let (rank, size) = (probe.rank(), probe.size());
    // Even and odd ranks apart, in the reverse order.
    let made = probe.transport.split((rank & 1) as i32, -(rank as i32));
    let made = made.and_then(|made| made.ok_or_else(|| Error::internal("it has made nothing for a color of 0 or 1")));
    let Some(other) = probe.made("split", made)? else {
        return Ok(Finding::NotOffered("it has no split".to_owned()));
    };
    let members: Vec<usize> = (0..size).rev().filter(|member| member & 1 == rank & 1).collect();
    let expected = (members.iter().position(|&member| member == rank).unwrap_or(0), members.len());
    if (other.info().rank, other.info().size) != expected {
        let (at, of) = (other.info().rank, other.info().size);
        return broken(format!("rank {rank} is rank {at} of {of}, expected {} of {}", expected.0, expected.1));
    }
    if expected.1 > 1 {
        probe.around(&[&*other])?;
    }
    Ok(Finding::Pass("even and odd ranks, in the reverse order".to_owned()))
}

fn abort(probe: &Probe<'_>) -> Checked<Finding> {
    if !probe.transport.info().has(Flag::WEIR_COMM_ABORT_RELEASES) {
        return Ok(Finding::NotOffered("it does not say so; weir keeps the memory for good".to_owned()));
    }
    if let Some(outcome) = one_rank(probe) {
        return Ok(outcome);
    }
    let Some(other) = probe.made("duplicate", probe.transport.duplicate())? else {
        return Ok(Finding::NotOffered("it has no duplicate to abort".to_owned()));
    };
    let Some(peer) = probe.pair() else { return Ok(Finding::NotOffered("this rank has no partner".to_owned())) };
    let operation = ProbedOperation::message(probe.rank() & 1 == 1, peer, 0, &[5; SOME])?;
    if probe.rank() & 1 == 1 {
        // Sends to a rank that has given the message up: whether that fails or not, nothing arrives.
        probe.tell(false, peer, GO_TAG, &[1])?;
        if let Ok(token) = other.start(&operation.raw) {
            (0..LOOKS).take_while(|_| matches!(other.test(token), Ok(false))).for_each(|_| std::thread::yield_now());
        }
        probe.tell(true, peer, GO_TAG, &[2])?;
        probe.tell(false, peer, GO_TAG, &[3])?;
        other.abort();
        return Ok(Finding::Pass("the memory of a receive stayed as it was".to_owned()));
    }
    other.start(&operation.raw).map_err(failed(&operation.what))?;
    // Kept for good: the flags may be wrong.
    let operation = std::mem::ManuallyDrop::new(operation);
    other.abort();
    probe.tell(true, peer, GO_TAG, &[1])?;
    probe.tell(false, peer, GO_TAG, &[2])?;
    let kept = operation
        .recv
        .as_ref()
        .map_or(Ok(()), |(memory, _)| memory.expect(&[UNTOUCHED; SOME], "the memory of a receive that was given up"));
    probe.tell(true, peer, GO_TAG, &[3])?;
    kept?;
    Ok(Finding::Pass("the memory of a receive stayed as it was".to_owned()))
}

fn device_operations(probe: &Probe<'_>) -> Checked<Finding> {
    match probe.transport.info().on_device {
        None => Ok(Finding::NotOffered("it takes no memory of devices".to_owned())),
        Some(on) => on_device::operations(probe, on).map(Finding::Pass),
    }
}

fn device_abort(probe: &Probe<'_>) -> Checked<Finding> {
    let Some(on) = probe.transport.info().on_device else {
        return Ok(Finding::NotOffered("it takes no memory of devices".to_owned()));
    };
    if let Some(outcome) = one_rank(probe) {
        return Ok(outcome);
    }
    let Some(other) = probe.made("duplicate", probe.transport.duplicate())? else {
        return Ok(Finding::NotOffered("it has no duplicate to abort".to_owned()));
    };
    let found = on_device::abort(probe, on, &*other)?;
    Ok(found.map_or_else(|| Finding::NotOffered("it has no all_reduce to give up".to_owned()), Finding::Pass))
}
