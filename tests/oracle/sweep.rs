//! Many seeds, on as many threads as there are processors; and what to say when one fails, or never ends.
//!
//! `WEIR_ORACLE_GRAPHS` is the number of graphs, `WEIR_ORACLE_FIRST` the first seed. A sweep takes its share of the
//! number.

use super::build::Lowering;
use super::examine::{Diligence, examine};
use super::faults::{endure, silence_planned_panics};
use super::generate::{Profile, generate};
use super::shrink::shrink;
use super::spec::Spec;
use super::stage::Stage;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

/// Graphs of all sweeps together, unless the environment has its say: some seconds in a build that is not optimised.
const GRAPHS: u64 = 1_000;
/// With another pool in the place of all, the same is done several times.
const GRAPHS_REPLACED: u64 = 200;
/// Of so many graphs one is gone through in whole.
const WHOLE: u64 = 25;
/// What no graph takes, on any machine.
const LONGEST: Duration = Duration::from_secs(60);

fn diligence(spec: &Spec) -> Diligence {
    if spec.seed.is_multiple_of(WHOLE) { Diligence::Whole } else { Diligence::Brief }
}

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is '{text}', expected a number")),
        Err(_) => default,
    }
}

/// The seeds of a sweep whose share of the graphs is so many in a hundred.
pub fn seeds(share: u64) -> std::ops::Range<u64> {
    let default = if std::env::var_os("WEIR_TEST_POOL").is_some() { GRAPHS_REPLACED } else { GRAPHS };
    let first = number("WEIR_ORACLE_FIRST", 0);
    first..first + (number("WEIR_ORACLE_GRAPHS", default) * share).div_ceil(100)
}

/// Asks `look` about the graph of every seed; at the first complaint, shrinks the graph and fails.
fn sweep(
    what: &str,
    profile: Profile,
    seeds: std::ops::Range<u64>,
    look: impl Fn(&Spec, &Stage) -> Result<(), String> + Sync,
) {
    let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(seeds.start);
    let complaint: Mutex<Option<(Spec, String)>> = Mutex::new(None);
    let stop = AtomicBool::new(false);
    // What each thread is at, and since when.
    let now: Vec<Mutex<Option<(Spec, Instant)>>> = (0..threads).map(|_| Mutex::new(None)).collect();
    let worker = |index: usize| {
        let stage = Stage::new();
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= seeds.end || stop.load(Relaxed) {
                return;
            }
            let spec = generate(seed, profile);
            *now[index].lock().unwrap() = Some((spec.clone(), Instant::now()));
            let result = guarded(&spec, &stage, &look);
            *now[index].lock().unwrap() = None;
            if let Err(text) = result {
                stop.store(true, Relaxed);
                complaint.lock().unwrap().get_or_insert((spec, text));
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|index| {
                let worker = &worker;
                scope.spawn(move || worker(index))
            })
            .collect();
        while !workers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            now.iter().for_each(|now| watch(what, profile, now));
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    if let Some((spec, text)) = complaint.into_inner().unwrap() {
        let full = spec.to_string();
        let (seed, before) = (spec.seed, text.clone());
        let (small, small_text) = shrink(spec, text, |candidate| still_fails(candidate, &before, &look));
        panic!(
            "{what}, {profile:?}: seed {seed} {before}\n\
             WEIR_ORACLE_FIRST={seed} WEIR_ORACLE_GRAPHS=1 repeats it\n{full}\n\
             smaller, {small_text}:\n{small}"
        );
    }
}

/// What `look` says; a panic is a complaint too.
fn guarded(
    spec: &Spec,
    stage: &Stage,
    look: &(impl Fn(&Spec, &Stage) -> Result<(), String> + Sync),
) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| look(spec, stage))).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned()));
        Err(format!("panics: {}", text.unwrap_or_default()))
    })
}

/// What sort of complaint it is.
fn form(text: &str) -> Option<&'static str> {
    const FORMS: [&str; 7] = ["is refused", "panics", "ended well", "expected one of", "failed: ", "Tally", "output "];
    FORMS.into_iter().find(|form| text.contains(form))
}

/// Several tries: what depends on timing fails now and then only.
fn still_fails(
    spec: &Spec,
    before: &str,
    look: &(impl Fn(&Spec, &Stage) -> Result<(), String> + Sync),
) -> Option<String> {
    // A graph that shrinking has made illegal is no example for one that went wrong, and so on.
    let alike = |text: &String| form(text) == form(before);
    let usable = super::compare::Expected::of(spec).is_ok();
    let stage = usable.then(Stage::new)?;
    (0..5).find_map(|_| guarded(spec, &stage, look).err().filter(alike))
}

/// Ends the process when a graph does not end; in no other way would it be seen which one it is.
fn watch(what: &str, profile: Profile, now: &Mutex<Option<(Spec, Instant)>>) {
    let guard = now.lock().unwrap();
    let Some((spec, since)) = guard.as_ref() else { return };
    if since.elapsed() > LONGEST {
        give_up(&format!("{what}, {profile:?}"), spec);
    }
}

fn give_up(what: &str, spec: &Spec) -> ! {
    // Not by a panic, which would wait for the thread that does not end.
    let _ = writeln!(std::io::stderr(), "{what}: a graph does not end, {spec}");
    std::process::abort();
}

/// Does something with a graph by hand, which must end as well.
pub fn watched<T>(spec: &Spec, work: impl FnOnce() -> T) -> T {
    let (done, waits) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if waits.recv_timeout(LONGEST) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                give_up("by hand", spec);
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// A sweep of `examine`.
pub fn examine_all(what: &str, profile: Profile, lowering: Lowering, seeds: std::ops::Range<u64>) {
    sweep(what, profile, seeds, |spec, stage| examine(spec, stage, lowering, diligence(spec)));
}

/// Everything about one graph.
pub fn examine_past(profile: Profile, seed: u64) {
    silence_planned_panics();
    sweep("past", profile, seed..seed + 1, |spec, stage| {
        examine(spec, stage, Lowering::Regions, Diligence::Whole)?;
        endure(spec, stage, Lowering::Regions, Diligence::Whole)
    });
}

/// A sweep of `endure`.
pub fn endure_all(what: &str, profile: Profile, lowering: Lowering, seeds: std::ops::Range<u64>) {
    silence_planned_panics();
    sweep(what, profile, seeds, |spec, stage| endure(spec, stage, lowering, diligence(spec)));
}
