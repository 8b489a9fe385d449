//! The conformance kit for devices: does a device keep the contract in docs/devices.md?
//!
//! Each probe checks one clause. It uses the device's own functions, through the traits of `device`, so it asks the
//! same of plug-ins and of weir's own devices. A probe runs in a thread of its own and within a time budget: a device
//! that hangs fails a clause, and the later ones are not checked. Devices that break the order are only found out if
//! they are slow enough, so probes put megabytes of copies in front of the work that they observe.

mod bench;
mod failures;
mod field;
mod keep;
mod kernels;
mod memory;
mod order;
mod pinned;
mod recordings;
mod regions;
mod scratch;
mod settings;

use crate::base::Result;
use crate::base::time::Deadline;
use crate::device::{self, Device, DeviceKind, DeviceSettings};
use crate::sync::thread::{self, ThreadGroup, ThreadOrigin};
use crate::sync::{EventCount, Mutex};
use crate::threadpool::conformance::{ClauseVerdict, Options, ReportLine};
use bench::{DeviceBench, Finding, Seen};
use keep::Keep;
use memory::round_trip;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

type Probe = fn(&DeviceBench) -> Finding;
type BoxedProbe = Box<dyn FnOnce(&DeviceBench) -> Finding + Send>;

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

/// Those that come after it was closed and opened.
const MORE_PROBES: [(&str, &str, Probe); 13] = [
    ("D19", "copies meet pinned memory when it is their turn", pinned::pinned),
    ("D20", "a stream is idle when its work is done, and not early", recordings::idle),
    ("D21", "a replay does its steps in order, as they were last", recordings::recordings),
    ("D22", "branches and loops go by what is in memory", recordings::control),
    ("D23", "what was prepared is what is launched", recordings::prepared),
    ("D24", "functions of the host's are called in order", kernels::of_the_host),
    ("D25", "what was issued in a batch is done", order::batches),
    ("D26", "a kernel of a region does what its nodes do", regions::regions),
    ("D27", "a launch needs no more scratch memory than it says", scratch::scratch),
    ("D28", "an output may lie where its input is", kernels::in_place),
    ("D29", "what is trimmed is what nobody has", memory::trimmed),
    ("D30", "as many streams as it wants work side by side", order::streams),
    ("D31", "a native handle stays the same", settings::handles),
];

/// The clauses about order, events, waits and destruction. A device that breaks one may still use memory that it says
/// to be done with.
const OF_ORDER: [&str; 12] = ["D6", "D7", "D8", "D9", "D10", "D14", "D15", "D16", "D19", "D20", "D21", "D30"];

/// How many budgets without progress a probe gets before it is left behind. It may take longer where others need the
/// processor too.
const PROBE_BUDGETS: u64 = 5;

/// Examines a device, and gives one line for each clause. An error if the device cannot be opened.
pub fn examine_device(kind: DeviceKind, index: u32, options: Options) -> Result<Vec<ReportLine>> {
    let open = || device::open(kind, index, &DeviceSettings::default());
    let device = open()?;
    if device.accelerator().is_none() {
        return Err(device::unimplemented(&device::label(&*device), "streams of a device: the host does its work"));
    }
    let threads = Arc::new(ThreadGroup {
        origin: ThreadOrigin::Conformance,
        name: "weir-probe".to_owned(),
        owner: device::label(&*device),
        pool: 0,
    });
    let keep = Arc::new(Keep::default());
    let mut lines = Vec::new();
    let mut stuck = false;
    let mut add = |clause, title, device: Result<Arc<dyn Device>>, probe: BoxedProbe| {
        let (verdict, text) = match device {
            _ if stuck => (ClauseVerdict::NotChecked, "a call before this one has not returned".to_owned()),
            Ok(device) => match run(&threads, DeviceBench::new(device, &keep, options), probe, &mut stuck) {
                Ok(Seen::Kept(text)) => (ClauseVerdict::Pass, text),
                Ok(Seen::NotOffered(text)) => (ClauseVerdict::NotOffered, text),
                Ok(Seen::NotMet(text)) => (ClauseVerdict::NotChecked, text),
                Err(text) => (ClauseVerdict::Fail, text),
            },
            Err(error) => (ClauseVerdict::Fail, error.message().to_owned()),
        };
        if matches!(verdict, ClauseVerdict::Fail) && OF_ORDER.contains(&clause) {
            keep.doubt();
        }
        lines.push(ReportLine { clause, title, verdict, text });
    };
    for (clause, title, probe) in PROBES {
        add(clause, title, Ok(Arc::clone(&device)), Box::new(probe));
    }
    // The last reference, unless the host has an engine on it.
    drop(device);
    let again = open();
    add(
        "D18",
        "a device that was closed can be opened again",
        again.clone(),
        Box::new(|bench| round_trip(bench, 4097)),
    );
    for (clause, title, probe) in MORE_PROBES {
        add(clause, title, again.clone(), Box::new(probe));
    }
    // Opened with the settings that it has given.
    let given = again.as_ref().ok().and_then(|device| device.settings());
    drop(again);
    let settings = DeviceSettings { attributes: given.clone(), ..DeviceSettings::default() };
    let again = device::open(kind, index, &settings);
    add("D32", "settings are what they were said to be", again, Box::new(|bench| settings::kept(bench, given)));
    Ok(lines)
}

/// Runs a probe in a thread of its own.
fn run(threads: &Arc<ThreadGroup>, bench: DeviceBench, probe: BoxedProbe, stuck: &mut bool) -> Finding {
    let limit_ns = bench.budget_ns().saturating_mul(PROBE_BUDGETS);
    let report = Arc::new((Mutex::new(None), EventCount::new()));
    let done = Arc::clone(&report);
    let steps = bench.steps();
    let started = thread::spawn(threads, None, move || {
        let found = catch_unwind(AssertUnwindSafe(|| probe(&bench)));
        drop(bench);
        *done.0.lock() = found.ok();
        done.1.advance(1);
    });
    if let Err(error) = started {
        return Err(format!("no thread could be started: {error}"));
    }
    let mut seen = None;
    while !report.1.wait(1, 0, Deadline::after(limit_ns)) {
        // ORDERING: Relaxed; a statistic.
        let now = Some(steps.load(Relaxed));
        if std::mem::replace(&mut seen, now) != now {
            continue;
        }
        *stuck = true;
        return Err(format!("a call of the device has not returned in {} ms", limit_ns / 1_000_000));
    }
    match report.0.lock().take() {
        Some(finding) => finding,
        None => Err("a defect of weir: the probe panicked".to_owned()),
    }
}
