//! What traces say, against what is known to have run: random graphs of kernels that note their calls, with conds and
//! loops, failures and deadlines, on every kind of pool.

mod analysis;
mod formats;
#[path = "../kit/mod.rs"]
mod kit;

use kit::integers::Builder;
use kit::random::Random;
use kit::run::{all_pools, cpu, on, run};
use std::any::Any;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use weir_core::base::{Code, Error, Ref};
use weir_core::graph::{CompileOptions, Program, RunOptions, ValueId};
use weir_core::trace::{
    self, CANCELLED, FAILED, Filter, NO_NUMBER, Settings, Timeline, Trace, TraceEvent, TraceFormat, TraceSpan,
};

/// A process has few traces at once, and these tests look for what they alone have run.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn settings(filter: Filter) -> Settings {
    Settings { filter, keeps: None, keeps_last: false, records: 1 << 14, threads: 64 }
}

fn of_everything() -> Ref<Trace> {
    Trace::start(settings(Filter::Everything)).unwrap()
}

/// The iterations in which each node has run, by its name; -1 outside of loops.
type Calls = HashMap<String, Vec<i64>>;

/// What the spans of nodes say.
fn told(timeline: &Timeline) -> Calls {
    let mut told = Calls::new();
    for span in timeline.spans.iter().filter(|span| span.event == TraceEvent::Node) {
        let name = timeline.name(span.label);
        let own = name.rsplit('/').next().unwrap().to_owned();
        let number = if span.number == NO_NUMBER { -1 } else { span.number as i64 };
        told.entry(own).or_default().push(number);
    }
    told
}

fn sorted(mut calls: Calls) -> Vec<(String, Vec<i64>)> {
    calls.values_mut().for_each(|iterations| iterations.sort_unstable());
    let mut all: Vec<_> = calls.into_iter().collect();
    all.sort();
    all
}

/// What must hold of every timeline.
fn check_shape(timeline: &Timeline) {
    assert_eq!((timeline.lost(), timeline.cut), (0, 0), "{}", timeline.remark());
    let mut around: Vec<usize> = Vec::new();
    let mut ran = vec![0; timeline.spans.len()];
    for (at, span) in timeline.spans.iter().enumerate() {
        assert!(span.begin_ns <= span.end_ns);
        around.retain(|outer| timeline.spans[*outer].thread == span.thread);
        around.truncate(span.depth as usize);
        assert_eq!(around.len(), span.depth as usize);
        if let Some(outer) = around.last().map(|outer| &timeline.spans[*outer]) {
            assert!(outer.begin_ns <= span.begin_ns && span.end_ns <= outer.end_ns, "{span:?} in {outer:?}");
            assert!((outer.event, span.event) != (TraceEvent::Node, TraceEvent::Node), "{span:?} in {outer:?}");
        }
        if span.event == TraceEvent::Node {
            let is_stay = |outer: &TraceSpan| outer.event == TraceEvent::Stay && outer.frame == span.frame;
            let stay = around.iter().rev().find(|outer| is_stay(&timeline.spans[**outer]));
            ran[*stay.unwrap_or_else(|| panic!("{span:?} in no stay"))] += 1;
            let run = timeline.run(span.frame).unwrap();
            assert!(run.begin_ns <= span.begin_ns && span.end_ns <= run.end_ns, "{span:?} of {run:?}");
        }
        around.push(at);
    }
    for (stay, ran) in timeline.spans.iter().zip(ran).filter(|(span, _)| span.event == TraceEvent::Stay) {
        assert_eq!(ran, stay.other, "a stay says how many nodes its thread has run: {stay:?}");
    }
    // What made a node ready was over when it was.
    for (from, to) in timeline.arrows().unwrap() {
        let (from, to) = (&timeline.spans[from as usize], &timeline.spans[to as usize]);
        assert!(from.end_ns <= to.begin_ns && from.thread != to.thread && from.frame == to.frame);
    }
}

/// The time of each run is divided among its threads without a rest.
fn check_shares(timeline: &Timeline) {
    let all = trace::shares(timeline).unwrap();
    assert_eq!(all.len(), timeline.runs.iter().filter(|run| run.begin_ns > 0).count());
    for (run, shares, threads) in all {
        assert_eq!(shares.sum(), threads * (run.end_ns - run.begin_ns), "{shares:?} of {run:?}");
        let is_of =
            |span: &&TraceSpan| matches!(span.event, TraceEvent::Node | TraceEvent::Round) && span.frame == run.frame;
        let nodes: u64 = timeline.spans.iter().filter(is_of).map(|span| span.length_ns()).sum();
        assert_eq!(shares.body, nodes, "{shares:?} of {run:?}");
    }
}

/// Draws graphs of kernels that note each of their calls.
#[derive(Clone)]
struct Draws {
    calls: Arc<Mutex<Calls>>,
    /// The one that fails, counted down by each call; below 0 none.
    fails_in: Arc<AtomicI64>,
    names: Arc<AtomicU64>,
}

impl Draws {
    fn new() -> Draws {
        Draws { calls: Arc::default(), fails_in: Arc::new(AtomicI64::new(-1)), names: Arc::default() }
    }

    /// A kernel; in a loop its first input is the number of the iteration.
    fn kernel(&self, random: &mut Random, builder: &mut Builder, inputs: &[ValueId], in_loop: bool) -> ValueId {
        let name = format!("k{}", self.names.fetch_add(1, Relaxed));
        let (draws, own) = (self.clone(), name.clone());
        let ns = random.of(&[0, 0, 500, 20_000]);
        builder.how.cost_ns = random.of(&[0, 200, 30_000]);
        builder.named(&name, inputs, move |values| {
            let iteration = if in_loop { i64::from(values[0]) } else { -1 };
            draws.calls.lock().unwrap().entry(own.clone()).or_default().push(iteration);
            let begin = Instant::now();
            while (begin.elapsed().as_nanos() as u64) < ns {
                std::hint::spin_loop();
            }
            match draws.fails_in.fetch_sub(1, Relaxed) {
                0 => Err(Error::new(Code::DataLoss, "as planned")),
                _ => Ok(values.iter().fold(1, |sum: i32, value| sum.wrapping_mul(31).wrapping_add(*value))),
            }
        })
    }

    /// Kernels of these values, and what they lead to; all of them begin with the first value in a loop.
    fn region(
        &self,
        random: &mut Random,
        builder: &mut Builder,
        values: &mut Vec<ValueId>,
        count: usize,
        in_loop: bool,
    ) {
        let first = values[0];
        for _ in 0..count {
            let mut inputs = vec![first];
            (0..random.below(3)).for_each(|_| inputs.push(values[random.below(values.len())]));
            let value = self.kernel(random, builder, &inputs, in_loop);
            values.push(value);
        }
    }

    fn cond(&self, random: &mut Random, main: &mut Builder, values: &mut Vec<ValueId>, in_loop: bool) {
        let branches = [0, 1].map(|_| {
            let (mut branch, mut inside) = Builder::of("branch", 2);
            let count = 1 + random.below(4);
            self.region(random, &mut branch, &mut inside, count, in_loop);
            branch.giving(&[*inside.last().unwrap()])
        });
        let (predicate, other) = (values[random.below(values.len())], values[random.below(values.len())]);
        let odd = main.op(&[predicate], |x| x[0] & 1);
        let name = format!("cond{}", self.names.fetch_add(1, Relaxed));
        let inputs = [values[0], other];
        let chosen = main.graph.add_cond(&name, odd, &branches[0], &branches[1], &inputs).unwrap();
        values.push(chosen.output(0));
    }

    /// Three iterations or so of some kernels, several at once if they are drawn so.
    fn looped(&self, random: &mut Random, main: &mut Builder, values: &mut Vec<ValueId>) {
        let (mut condition, inside) = Builder::of("condition", 3);
        let goes_on = condition.op(&[inside[0], inside[2]], |x| i32::from(x[0] < x[1] & 3));
        let condition = condition.giving(&[goes_on]);
        let (mut body, mut inside) = Builder::of("body", 3);
        let count = 1 + random.below(5);
        self.region(random, &mut body, &mut inside, count, true);
        if random.once_in(2) {
            self.cond(random, &mut body, &mut inside, true);
        }
        let next = body.op(&[inside[0]], |x| x[0] + 1);
        let body = body.giving(&[next, *inside.last().unwrap()]);
        let (zero, n) = (main.constant(0), values[random.below(values.len())]);
        let name = format!("while{}", self.names.fetch_add(1, Relaxed));
        let inputs = [zero, values[random.below(values.len())]];
        let parallel = random.of(&[1, 1, 3]);
        let looped = main.graph.add_while(&name, &condition, &body, &inputs, &[n], parallel).unwrap();
        values.push(looped.output(1));
    }

    fn program(&self, random: &mut Random) -> Ref<Program> {
        let (mut main, mut values) = Builder::of("drawn", 2);
        for _ in 0..1 + random.below(5) {
            let count = random.below(12);
            self.region(random, &mut main, &mut values, count, false);
            match random.below(3) {
                0 => self.cond(random, &mut main, &mut values, false),
                1 => self.looped(random, &mut main, &mut values),
                _ => {}
            }
        }
        // All values count, so that nothing is stripped.
        let all = main.sum(&values[2..]);
        main.output(all);
        main.compile()
    }

    /// What has run since the last time, by what the kernels themselves say.
    fn take(&self) -> Vec<(String, Vec<i64>)> {
        sorted(std::mem::take(&mut *self.calls.lock().unwrap()))
    }
}

/// Of what traces tell, the kernels that note their calls.
fn kernels(told: Calls) -> Vec<(String, Vec<i64>)> {
    let is_ours = |name: &str| name.starts_with('k') && name[1..].parse::<u32>().is_ok();
    sorted(told.into_iter().filter(|(name, _)| is_ours(name)).collect())
}

#[test]
fn each_node_that_ran_has_one_span_and_its_iteration() {
    let _alone = alone();
    let mut shared = 0;
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let draws = Draws::new();
        let program = draws.program(&mut random);
        for pool in all_pools() {
            let ways = [
                on(pool.as_ref()),
                RunOptions { deterministic: true, ..on(pool.as_ref()) },
                RunOptions { deadline_ns: 60_000_000_000, ..on(pool.as_ref()) },
                RunOptions { finish_independent: true, ..on(pool.as_ref()) },
            ];
            for (way, options) in ways.iter().enumerate() {
                for fails in [false, true] {
                    draws.take();
                    let trace = of_everything();
                    draws.fails_in.store(if fails { random.below(20) as i64 } else { -1 }, Relaxed);
                    for input in 0..3 {
                        let _ = run(&program, &[input, 5], options);
                    }
                    trace.stop();
                    // Not of the trace any more.
                    draws.fails_in.store(-1, Relaxed);
                    let expected = draws.take();
                    run(&program, &[1, 2], options).unwrap();
                    draws.take();
                    let timeline = trace.timeline().unwrap();
                    let context = format!("seed {seed}, way {way}, fails {fails}, {:?}", pool.is_some());
                    assert_eq!(kernels(told(&timeline)), expected, "{context}");
                    check_shape(&timeline);
                    check_shares(&timeline);
                    let runs: Vec<_> = timeline.runs.iter().filter(|run| run.begin_ns > 0).collect();
                    assert_eq!(runs.len(), 3, "{context}");
                    let failed =
                        timeline.spans.iter().filter(|span| span.event == TraceEvent::Node && span.flags & FAILED != 0);
                    assert_eq!(failed.count(), runs.iter().filter(|run| run.flags & FAILED != 0).count(), "{context}");
                    shared += u64::from(timeline.threads.len() > 1);
                }
            }
        }
    }
    assert!(shared > 0, "no trace has more than one thread");
}

#[test]
fn a_cancelled_run_has_spans_of_what_ran() {
    let _alone = alone();
    let draws = Draws::new();
    let (mut main, inputs) = Builder::of("cancelled", 1);
    let mut values = inputs.clone();
    draws.region(&mut Random::new(3), &mut main, &mut values, 40, false);
    let all = main.sum(&values);
    main.output(all);
    let program = main.compile();
    for pool in all_pools() {
        let trace = of_everything();
        draws.take();
        let options = RunOptions { deadline_ns: 1, ..on(pool.as_ref()) };
        let error = run(&program, &[1], &options).unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded);
        let timeline = trace.timeline().unwrap();
        assert_eq!(kernels(told(&timeline)), draws.take());
        check_shape(&timeline);
        assert!(timeline.runs.iter().all(|run| run.flags & CANCELLED != 0) && timeline.runs.len() == 1);
        assert!(timeline.instants.iter().any(|instant| instant.event == TraceEvent::Failure));
    }
}

fn chain(length: usize) -> Ref<Program> {
    let (mut main, inputs) = Builder::of("chain", 1);
    let last = (0..length).fold(inputs[0], |value, _| main.op(&[value], |x| x[0] + 1));
    main.output(last);
    main.compile()
}

fn nodes(trace: &Trace) -> usize {
    trace.timeline().unwrap().spans.iter().filter(|span| span.event == TraceEvent::Node).count()
}

#[test]
fn a_trace_is_of_what_it_was_asked_for() {
    let _alone = alone();
    let (a, b) = (chain(3), chain(5));
    let other =
        |filter, keeps: Option<Arc<dyn Any + Send + Sync>>| Trace::start(Settings { keeps, ..settings(filter) });
    let all = of_everything();
    let of_a = other(Filter::Program(a.identity()), Some(a.clone())).unwrap();
    let asked = other(Filter::Asked, None).unwrap();
    let of_engine = other(Filter::Engine(Arc::as_ptr(b.engine().account()).addr()), None).unwrap();
    let fifth = other(Filter::Asked, None).unwrap_err();
    assert_eq!(fifth.code(), Code::ResourceExhausted);
    run(&a, &[1], &RunOptions::default()).unwrap();
    run(&b, &[1], &RunOptions { trace: Some(asked.id()), ..RunOptions::default() }).unwrap();
    run(&b, &[1], &RunOptions::default()).unwrap();
    assert_eq!([&all, &of_a, &asked, &of_engine].map(|trace| nodes(trace)), [13, 3, 5, 10]);
    drop(all);
    of_a.stop();
    run(&a, &[1], &RunOptions::default()).unwrap();
    assert_eq!([&of_a, &asked, &of_engine].map(|trace| nodes(trace)), [3, 5, 10]);
    // Its place is free again.
    let again = of_everything();
    run(&a, &[1], &RunOptions { trace: Some(asked.id()), ..RunOptions::default() }).unwrap();
    assert_eq!([&again, &asked].map(|trace| nodes(trace)), [3, 8]);
    let names = told(&asked.timeline().unwrap());
    assert!(names.contains_key("n2") && names.len() == 5, "{names:?}");
    assert!(!trace::is_on() || nodes(&again) == 3);
}

#[test]
fn a_full_ring_loses_the_first_or_the_last_and_says_so() {
    let _alone = alone();
    let program = chain(10);
    for keeps_last in [false, true] {
        let of_runs = settings(Filter::Program(program.identity()));
        let trace = Trace::start(Settings { keeps_last, records: 64, ..of_runs }).unwrap();
        for _ in 0..20 {
            run(&program, &[1], &RunOptions::default()).unwrap();
        }
        let timeline = trace.timeline().unwrap();
        // Ten nodes, a beginning, an end, and a stay.
        let kept = if keeps_last { 63 } else { 64 };
        assert_eq!(timeline.lost(), 20 * 13 - kept);
        assert_eq!((trace.figures().records, trace.figures().lost), (kept, 20 * 13 - kept));
        let numbers: Vec<u64> =
            timeline.runs.iter().filter(|run| run.number != NO_NUMBER).map(|run| run.number).collect();
        let first = program_runs_before(&numbers, keeps_last);
        assert!(numbers.len() >= 4 && first, "{numbers:?}");
        assert!(timeline.remark().contains(&format!("{} records lost", timeline.lost())));
        drop(trace);
    }
    // Two threads, and a ring for one.
    let of_runs = settings(Filter::Program(program.identity()));
    let trace = Trace::start(Settings { threads: 1, ..of_runs }).unwrap();
    run(&program, &[1], &RunOptions::default()).unwrap();
    std::thread::spawn(move || run(&program, &[1], &RunOptions::default()).unwrap()).join().unwrap();
    assert_eq!((trace.figures().threads, trace.figures().lost, trace.figures().lost_without_ring), (1, 0, 13));
    assert_eq!(trace.timeline().unwrap().lost(), 13);
}

/// Of twenty runs, whether these are the first or the last.
fn program_runs_before(numbers: &[u64], keeps_last: bool) -> bool {
    let least = numbers.iter().min().unwrap() % 20;
    if keeps_last { least >= 14 } else { least == 0 }
}

#[test]
fn a_save_that_fails_takes_nothing_away() {
    let _alone = alone();
    let program = chain(30);
    let trace = of_everything();
    run(&program, &[1], &RunOptions::default()).unwrap();
    trace.stop();
    for format in [
        TraceFormat::Perfetto,
        TraceFormat::Chrome,
        TraceFormat::Folded,
        TraceFormat::Pprof,
        TraceFormat::Report,
        TraceFormat::Html,
        TraceFormat::Json,
    ] {
        let bytes = |trace: &Trace| {
            let mut all = Vec::new();
            let mut collect = |bytes: &[u8]| {
                all.extend_from_slice(bytes);
                Ok(())
            };
            trace.write(format, &mut collect).unwrap();
            all
        };
        let before = bytes(&trace);
        assert!(before.len() > 30);
        let mut passed = 0;
        let failed = trace.write(format, &mut |bytes| {
            passed += bytes.len();
            Err(Error::new(Code::ResourceExhausted, "no room"))
        });
        assert_eq!(failed.unwrap_err().code(), Code::ResourceExhausted);
        #[cfg(target_os = "linux")]
        assert_eq!(trace.save(Path::new("/dev/full"), format).unwrap_err().code(), Code::ResourceExhausted);
        assert_eq!(trace.save(Path::new("/no/such/place"), format).unwrap_err().code(), Code::NotFound);
        assert_eq!(bytes(&trace), before, "{format:?}");
    }
}

#[test]
fn saving_while_threads_write() {
    let _alone = alone();
    let trace = Trace::start(Settings { keeps_last: true, records: 1 << 10, ..settings(Filter::Everything) }).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..4)
        .map(|i| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || {
                let program = chain(5 + i);
                let mut runs = 0;
                while !is_over.load(Relaxed) || runs == 0 {
                    assert_eq!(run(&program, &[0], &RunOptions::default()).unwrap(), [5 + i as i32]);
                    runs += 1;
                }
            })
        })
        .collect();
    // Until each thread has overwritten what it wrote first, on a machine that may have other work.
    let (begun, mut read) = (Instant::now(), 0);
    let is_overwritten = || (0..4).all(|thread| trace.thread(thread).is_ok_and(|thread| thread.lost > 0));
    while read < 100 || !is_overwritten() {
        assert!(begun.elapsed().as_secs() < 120, "four threads do not fill their rings");
        let timeline = trace.timeline().unwrap();
        read += 1;
        assert_eq!(timeline.cut, 0);
        for span in &timeline.spans {
            assert!(span.begin_ns <= span.end_ns && (span.thread as usize) < timeline.threads.len());
            if span.event == TraceEvent::Node {
                assert!(timeline.name(span.label).starts_with('n'), "{span:?}");
            }
        }
    }
    is_over.store(true, Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(trace.figures().lost > 0 && trace.figures().threads == 4);
}

/// The statistics of nodes are of the stamps that the trace has. With clocks of their own they would be off by some
/// tens of nanoseconds a node, which is much of a node that does nothing. The rate of the clock is that of a long node.
#[test]
fn statistics_of_a_traced_run_are_the_lengths_of_its_spans() {
    const RUNS: u64 = 300;
    let _alone = alone();
    let (mut builder, x) = Builder::of("measured", 1);
    let mut values: Vec<ValueId> = (0..6).map(|at| builder.op(&[x[0]], move |x| x[0] ^ at)).collect();
    let long = builder.named("long", &[x[0]], |x| {
        let begin = Instant::now();
        while begin.elapsed().as_micros() < 20 {
            std::hint::spin_loop();
        }
        Ok(x[0])
    });
    values.push(long);
    let sum = builder.sum(&values);
    builder.output(sum);
    for pool in all_pools() {
        for way in 0..4 {
            let options = CompileOptions { statistics: true, hop_ns: Some(1000), ..CompileOptions::default() };
            let program = Program::compile(&builder.graph, vec![cpu()], &options).unwrap();
            let options = match way {
                0 => on(pool.as_ref()),
                1 => RunOptions { deterministic: true, ..on(pool.as_ref()) },
                2 => RunOptions { deadline_ns: 60_000_000_000, ..on(pool.as_ref()) },
                _ => RunOptions { finish_independent: true, ..on(pool.as_ref()) },
            };
            let trace = of_everything();
            (0..RUNS).for_each(|_| drop(run(&program, &[1], &options).unwrap()));
            trace.stop();
            let timeline = trace.timeline().unwrap();
            let all = (0..program.num_nodes()).map(|node| program.node_stats(node).unwrap()).map(|figures| {
                let is_of_node =
                    |span: &&TraceSpan| span.event == TraceEvent::Node && timeline.name(span.label) == *figures.name;
                let spans = timeline.spans.iter().filter(is_of_node);
                let (count, ns) = spans.fold((0, 0), |(count, ns), span| (count + 1, ns + span.length_ns()));
                assert_eq!(count, figures.count, "{figures:?}");
                (figures, ns as f64)
            });
            let all: Vec<_> = all.collect();
            let (long, ns) = all.iter().find(|(figures, _)| figures.name == "long").unwrap();
            let rate = long.total_ns as f64 / ns;
            for (figures, ns) in &all {
                let off = (figures.total_ns as f64 - rate * ns).abs();
                assert!(
                    off <= 2.0 * figures.count as f64 + ns / 200.0,
                    "{figures:?}, its spans are {ns} ns, way {way}"
                );
            }
        }
    }
}
