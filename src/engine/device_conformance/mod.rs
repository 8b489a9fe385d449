//! The conformance kit for devices: does a device keep its side of docs/devices.md?
//!
//! Each probe answers for one clause. It works with the device's own functions, through the traits of room `device`, so it asks the same of a plug-in
//! as of what weir brings itself. A probe runs in a thread of its own and within a time budget: a device that hangs ends as a failed clause,
//! and what comes after is not checked. Devices that are out of order are only found out if they are slow enough, so probes put megabytes in
//! front of what they look at.
#![forbid(unsafe_code)]

mod bench;
mod failures;
mod kernels;
mod memory;
mod order;
mod pinned;

use crate::base::Result;
use crate::base::time::Deadline;
use crate::device::{self, Device, DeviceKind, Settings};
use crate::sync::thread::{self, Group, Origin};
use crate::sync::{Gate, Mutex};
use crate::threadpool::conformance::{Line, Options, Outcome, Verdict};
use bench::Bench;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a probe found: what was seen, or what is wrong.
type Finding = Result<Seen, String>;

/// What was seen of a clause that is kept, or why there is nothing to see.
enum Seen {
    Kept(String),
    NotOffered(String),
}

type Probe = fn(&Bench) -> Finding;

/// The clauses of docs/devices.md, in its order.
const PROBES: [(&str, &str, Probe); 17] = [
    ("D1", "facts are facts", memory::facts),
    ("D2", "memory is aligned, apart and stays", memory::apart),
    ("D3", "too much memory is refused", memory::limit),
    ("D4", "copies move all bytes, and no others", memory::copies),
    ("D5", "a fill sets all bytes, and no others", memory::fills),
    ("D6", "a stream works in order", order::in_order),
    ("D7", "an event is reached, and not early", order::events),
    ("D8", "a wait for an event ends in time, and says the truth", order::timeouts),
    ("D9", "a stream waits for an event of another", order::waits),
    ("D10", "what follows an event comes once, and not early", order::callbacks),
    ("D11", "time goes forwards", order::time),
    ("D12", "an unknown kernel is refused", kernels::unknown),
    ("D13", "kernels compute what weir's do", kernels::known),
    ("D14", "a failure is told, stops what follows, and is cleared", failures::late),
    ("D15", "threads work on streams of their own", order::threads),
    ("D16", "what is destroyed takes nothing with it", failures::destroy),
    ("D17", "devices of a kind copy to one another", memory::peers),
];

/// A probe that takes so many budgets is left behind.
const PROBE_BUDGETS: u64 = 5;

/// Examines a device, and gives one line for each clause. An error if it cannot be opened.
pub fn examine_device(kind: DeviceKind, index: u32, options: Options) -> Result<Vec<Line>> {
    let open = || device::open(kind, index, &Settings::default());
    let device = open()?;
    if device.accelerator().is_none() {
        return Err(device::unimplemented(&*device, "streams of a device: the host does its work"));
    }
    let threads = Arc::new(Group {
        origin: Origin::Conformance,
        name: "weir-probe".to_owned(),
        owner: device::label(&*device),
        pool: 0,
    });
    let mut lines = Vec::new();
    let mut stuck = false;
    let mut add = |clause, title, device: Result<Arc<dyn Device>>, probe: Probe| {
        let outcome = match device {
            _ if stuck => Outcome::Fail(String::new()),
            Ok(device) => run(&threads, Bench::new(device, options), probe, &mut stuck),
            Err(error) => Outcome::Fail(error.message().to_owned()),
        };
        let (verdict, text) = match outcome {
            Outcome::Pass(text) => (Verdict::Pass, text),
            Outcome::NotOffered(text) => (Verdict::NotOffered, text),
            Outcome::Fail(text) if text.is_empty() => {
                (Verdict::NotChecked, "a call before this one has not returned".to_owned())
            }
            Outcome::Fail(text) => (Verdict::Fail, text),
        };
        lines.push(Line { clause, title, verdict, text });
    };
    for (clause, title, probe) in PROBES {
        add(clause, title, Ok(Arc::clone(&device)), probe);
    }
    // The last reference, unless the host has an engine on it.
    drop(device);
    let again = open();
    let reopened = |bench: &Bench| memory::round_trip(bench, 4097);
    add("D18", "a device that was closed can be opened again", again.clone(), reopened);
    add("D19", "copies meet pinned memory when it is their turn", again, pinned::pinned);
    Ok(lines)
}

/// Runs a probe in a thread of its own.
fn run(threads: &Arc<Group>, bench: Bench, probe: Probe, stuck: &mut bool) -> Outcome {
    let limit_ns = bench.budget_ns().saturating_mul(PROBE_BUDGETS);
    let report = Arc::new((Mutex::new(None), Gate::new()));
    let done = Arc::clone(&report);
    let started = thread::spawn(threads, None, move || {
        let found = catch_unwind(AssertUnwindSafe(|| probe(&bench)));
        drop(bench);
        *done.0.lock() = found.ok();
        done.1.advance(1);
    });
    if let Err(error) = started {
        return Outcome::Fail(format!("no thread could be started: {error}"));
    }
    if !report.1.wait(1, 0, Deadline::after(limit_ns)) {
        *stuck = true;
        return Outcome::Fail(format!("a call of the device has not returned in {} ms", limit_ns / 1_000_000));
    }
    match report.0.lock().take() {
        Some(Ok(Seen::Kept(text))) => Outcome::Pass(text),
        Some(Ok(Seen::NotOffered(text))) => Outcome::NotOffered(text),
        Some(Err(text)) => Outcome::Fail(text),
        None => Outcome::Fail("a defect of weir: the probe panicked".to_owned()),
    }
}
