//! Clauses about the order of work.
#![forbid(unsafe_code)]

use super::bench::{DeviceBench, Finding, Seen, of_work_under_way, under_way};
use super::keep::told;
use crate::base::Code;
use crate::base::time::{Deadline, now_ns};
use crate::device::{self, Location, Then, plugin};
use crate::sync::thread::{self, ThreadGroup, ThreadOrigin};
use crate::sync::{EventCount, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::time::Duration;

/// One stream; each step depends on the one before.
fn chain(bench: &DeviceBench, rounds: usize) -> Result<(), String> {
    let mut field = bench.field(1)?;
    let bytes = 3000 + bench.draw(200_000);
    // Keeps several of the first steps in flight at a time.
    field.burden(0, 1)?;
    let (a, b, c) = (field.block(bytes)?, field.block(bytes)?, field.block(bytes)?);
    for _ in 0..rounds {
        let (first, second) = (bench.bytes(bytes), bench.bytes(bytes));
        field.upload(0, a, &first)?;
        field.copy(0, Location::Device(b), Location::Device(a), bytes)?;
        field.upload(0, a, &second)?;
        field.copy(0, Location::Device(c), Location::Device(a), bytes)?;
        field.fill(0, a, bytes, 7)?;
        field.fill(0, a, 100, 8)?;
        let landings = [field.download(0, a, bytes)?, field.download(0, b, bytes)?, field.download(0, c, bytes)?];
        field.fill(0, b, bytes, 9)?;
        field.fill(0, c, bytes, 9)?;
        field.finish(0)?;
        let mut third = vec![7; bytes];
        third[..100].fill(8);
        for (landing, expected) in landings.into_iter().zip([third, first, second]) {
            field.expect(landing, &expected, "work was not done in the order in which it was given")?;
        }
    }
    field.take_down()
}

pub(super) fn in_order(bench: &DeviceBench) -> Finding {
    chain(bench, bench.rounds())?;
    Ok(Seen::Kept(format!("{} chains of 11", bench.rounds())))
}

pub(super) fn events(bench: &DeviceBench) -> Finding {
    let mut field = bench.field(1)?;
    let fresh = field.event(false)?;
    if !matches!(fresh.is_reached(), Ok(true)) {
        return Err("an event that was never recorded is not reached".to_owned());
    }
    let met = under_way(bench.rounds().div_ceil(4), |weight| {
        let (from, expected) = field.burden(0, weight)?;
        let landing = field.download_aside(0, from, expected.len())?;
        let event = field.mark(0)?;
        let deadline = bench.deadline();
        let is_valid = matches!(event.is_reached(), Ok(false));
        while matches!(event.is_reached(), Ok(false)) {
            if deadline.is_past() {
                return Err(format!("an event was not reached in {}", bench.budget()));
            }
            std::hint::spin_loop();
        }
        field.expect(landing, &expected, "an event was reached before the work in front of it was done")?;
        field.finish(0)?;
        Ok(is_valid)
    })?;
    let count = bench.rounds() * 16;
    let small = field.block(64)?;
    for number in 0..count {
        field.fill(0, small, 64, number as u8)?;
        field.record(0, &fresh)?;
        field.reach(&fresh).map_err(|text| format!("{text}, as recorded for the {}th time", number + 1))?;
    }
    field.take_down()?;
    of_work_under_way(met, format!("{count} records"))
}

pub(super) fn timeouts(bench: &DeviceBench) -> Finding {
    let mut field = bench.field(1)?;
    let mut round = 0;
    let short = under_way(bench.rounds().div_ceil(4), |weight| {
        let (from, expected) = field.burden(0, weight)?;
        let landing = field.download_aside(0, from, expected.len())?;
        let event = field.mark(0)?;
        let timeout = [0, 1_000, 100_000][round % 3];
        round += 1;
        let begin = now_ns();
        let reached = event.synchronize(Deadline::after(timeout));
        let took = now_ns() - begin;
        if took > timeout + bench.budget_ns() {
            return Err(format!("a wait of {timeout} ns took {} ms", took / 1_000_000));
        }
        let was_reached = matches!(reached, Ok(true));
        if was_reached {
            field.expect(landing, &expected, "a wait said that an event was reached, and it was not")?;
        }
        field.reach(&event)?;
        field.expect(landing, &expected, "a wait said that an event was reached, and it was not")?;
        field.finish(0)?;
        Ok(!was_reached)
    })?;
    field.take_down()?;
    of_work_under_way(short, format!("{short} waits ended before the work"))
}

/// A device that ignores waits is caught only while the work in front is under way, which a late thread may miss: more
/// probes than of other clauses.
pub(super) fn waits(bench: &DeviceBench) -> Finding {
    let met = under_way(bench.rounds(), |weight| {
        let mut field = bench.field(3)?;
        let (from, expected) = field.burden(0, weight)?;
        let first = field.mark(0)?;
        // Through a third stream, which has no other work.
        field.stream(1).wait(&first).map_err(super::keep::told)?;
        let second = field.mark(1)?;
        field.stream(2).wait(&second).map_err(super::keep::told)?;
        let landing = field.download_aside(2, from, expected.len())?;
        let is_valid = matches!(first.is_reached(), Ok(false));
        field.finish(2)?;
        if matches!(first.is_reached(), Ok(false)) {
            return Err("a stream was done with what lies behind an event, which is not reached".to_owned());
        }
        field.expect(landing, &expected, "a stream went on before the event that it waits for")?;
        field.take_down()?;
        Ok(is_valid)
    })?;
    of_work_under_way(met, format!("{met} times across three streams"))
}

pub(super) fn callbacks(bench: &DeviceBench) -> Finding {
    let count = (bench.rounds() / 2).max(4);
    let strays = plugin::stray_callbacks();
    let called = Arc::new(AtomicUsize::new(0));
    let early = Arc::new(Mutex::new(0));
    let mut field = bench.field(1)?;
    for number in 0..count {
        let event = match number % 4 {
            // So much that the work is in flight when it is queried, even if this thread is delayed before.
            0 | 2 => {
                field.burden(0, 8)?;
                field.mark(0)?
            }
            1 => {
                let reached = field.mark(0)?;
                field.reach(&reached)?;
                reached
            }
            _ => field.mark(0)?,
        };
        let (count, seen, asked) = (Arc::clone(&called), Arc::clone(&early), Arc::clone(&event));
        bench.accelerator()?.when_reached(
            &event,
            Then::once(move || {
                *seen.lock() += usize::from(matches!(asked.is_reached(), Ok(false)));
                count.fetch_add(1, SeqCst);
            }),
        );
        if number % 8 == 7 {
            field.finish(0)?;
        }
    }
    field.finish(0)?;
    let deadline = bench.deadline();
    while called.load(SeqCst) < count && !deadline.is_past() {
        std::thread::sleep(Duration::from_micros(100));
    }
    std::thread::sleep(Duration::from_millis(5));
    let (got, early) = (called.load(SeqCst), *early.lock());
    if got < count {
        return Err(format!("{} of {count} were not called in {}", count - got, bench.budget()));
    }
    if early > 0 {
        return Err(format!("{early} of {count} were called before their event was reached"));
    }
    match plugin::stray_callbacks() - strays {
        0 => field.take_down().map(|()| Seen::Kept(format!("{count} times"))),
        more => Err(format!("{more} of {count} were called once more")),
    }
}

pub(super) fn time(bench: &DeviceBench) -> Finding {
    let mut field = bench.field(1)?;
    let mut longest = 0;
    for _ in 0..bench.rounds().div_ceil(4) {
        let (start, end) = (field.event(true)?, field.event(true)?);
        let begin = now_ns();
        field.record(0, &start)?;
        field.burden(0, 1)?;
        field.record(0, &end)?;
        field.reach(&end)?;
        let host = now_ns() - begin;
        match end.elapsed_ns(&*start) {
            Ok(ns) if ns < 0 => return Err(format!("{ns} ns from one event to a later one")),
            Ok(ns) if ns as u64 > host + host / 10 => {
                return Err(format!("{ns} ns on the device while {host} ns passed on the host"));
            }
            Ok(ns) => longest = longest.max(ns),
            Err(error) if error.code() == Code::Unimplemented => {
                field.take_down()?;
                return Ok(Seen::NotOffered("events keep no time".to_owned()));
            }
            Err(error) => return Err(super::keep::told(error)),
        }
    }
    field.take_down()?;
    Ok(Seen::Kept(format!("up to {} us", longest / 1000)))
}

/// As many streams as programs may use at once, each with work that waits for the one before.
pub(super) fn streams(bench: &DeviceBench) -> Finding {
    /// If the device leaves it to the library.
    const USUAL: usize = 4;
    const MOST: usize = 64;
    /// For copies from and to the host.
    const BESIDES: usize = 2;
    const BYTES: usize = 1000;
    let says = bench.accelerator()?.max_streams();
    let count = if says == 0 { USUAL } else { says.min(MOST) } + BESIDES;
    let field = bench.field(count);
    let mut field = field.map_err(|why| format!("{count} streams, and it says {says}: {why}"))?;
    let blocks = (0..count).map(|_| field.block(BYTES)).collect::<Result<Vec<_>, _>>()?;
    for round in 0..bench.rounds().div_ceil(4) {
        let bytes = bench.bytes(BYTES);
        field.upload(0, blocks[0], &bytes)?;
        // A ring, against the order in which the streams were made, in every other round.
        let ring: Vec<usize> = if round % 2 == 0 { (0..count).collect() } else { reversed(count) };
        for pair in ring.windows(2) {
            field.fill(pair[1], blocks[pair[1]], BYTES, 7)?;
            let event = field.mark(pair[0])?;
            field.stream(pair[1]).wait(&event).map_err(told)?;
            field.copy(pair[1], Location::Device(blocks[pair[1]]), Location::Device(blocks[pair[0]]), BYTES)?;
        }
        let last = ring[count - 1];
        let landing = field.download(last, blocks[last], BYTES)?;
        (0..count).try_for_each(|stream| field.finish(stream))?;
        field.expect(landing, &bytes, &format!("work of {count} streams, each behind the one before"))?;
    }
    field.take_down()?;
    Ok(Seen::Kept(format!("{count} streams, and it says {says}")))
}

/// The first stream, and then the others from the last one on.
fn reversed(count: usize) -> Vec<usize> {
    std::iter::once(0).chain((1..count).rev()).collect()
}

pub(super) fn threads(bench: &DeviceBench) -> Finding {
    const THREADS: usize = 4;
    let group = Arc::new(ThreadGroup {
        origin: ThreadOrigin::Conformance,
        name: "weir-chain".to_owned(),
        owner: device::label(&*bench.device),
        pool: 0,
    });
    let ended = Arc::new((Mutex::new(Vec::new()), EventCount::new()));
    let mut refused = None;
    let mut started = 0;
    while started < THREADS && refused.is_none() {
        let (own, report) = (bench.another(), Arc::clone(&ended));
        let run = move || {
            let result = catch_unwind(AssertUnwindSafe(|| chain(&own, own.rounds().div_ceil(2))));
            drop(own);
            report.0.lock().push(result.unwrap_or_else(|_| Err("a probe panicked".to_owned())));
            report.1.advance(1);
        };
        match thread::spawn(&group, Some(started), run) {
            Ok(()) => started += 1,
            Err(error) => refused = Some(format!("no thread could be started: {error}")),
        }
    }
    ended.1.wait(started as u64, 0, Deadline::NEVER);
    ended.0.lock().drain(..).collect::<Result<Vec<()>, _>>()?;
    refused.map_or(Ok(Seen::Kept(format!("{THREADS} threads"))), Err)
}

/// Overlaps batches of two threads, each with work on streams of its own.
pub(super) fn batches(bench: &DeviceBench) -> Finding {
    let one = |bench: &DeviceBench| -> Result<(), String> {
        let mut field = bench.field(2)?;
        let blocks = [field.block(256)?, field.block(256)?];
        for round in 0..bench.rounds() {
            let value = round as u8 ^ 0x5a;
            let mut landing = None;
            let mut issued: Result<(), String> = Ok(());
            let accelerator = bench.accelerator()?;
            let batch = accelerator.within(&mut || {
                issued = (|| {
                    field.fill(0, blocks[0], 256, value)?;
                    let event = field.mark(0)?;
                    field.stream(1).wait(&event).map_err(told)?;
                    field.copy(1, Location::Device(blocks[1]), Location::Device(blocks[0]), 256)?;
                    landing = Some(field.download(1, blocks[1], 256)?);
                    Ok(())
                })();
                Ok(())
            });
            batch.map_err(told)?;
            issued?;
            field.finish(1)?;
            let landing = landing.ok_or("nothing was issued")?;
            field.expect(landing, &[value; 256], "work of a batch")?;
        }
        field.take_down()
    };
    let other = bench.another();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| one(&other));
        one(bench)?;
        other.join().map_err(|_| "a thread of the check has panicked".to_owned())?
    })?;
    Ok(Seen::Kept(format!("{} batches on each of two threads", bench.rounds())))
}
