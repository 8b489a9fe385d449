//! Why a run took as long as it did: identities in whole nanoseconds, on drawn graphs whose edges the test knows.

use crate::kit::integers::Builder;
use crate::kit::pools;
use crate::kit::random::Random;
use crate::kit::run::{all_pools, on, run};
use crate::{Draws, alone, of_everything};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use weir_core::base::Ref;
use weir_core::graph::{Program, RunOptions, ValueId};
use weir_core::trace::{PathPart, RunAnalysis, Timeline, Trace, TraceEvent, TraceSpan, analyses, analysis_of};

/// Holds for any run: the path tiles the run's time, its nodes are nodes in the order of time, and no sum of nodes
/// along edges is longer than the run.
fn check_analysis(timeline: &Timeline, analysis: &RunAnalysis) {
    let run = &analysis.run;
    let mut at = run.begin_ns;
    for segment in &analysis.path {
        assert_eq!(segment.begin_ns, at, "a hole before {segment:?}");
        assert!(segment.end_ns >= segment.begin_ns);
        at = segment.end_ns;
        if segment.part == PathPart::Body {
            let span = &timeline.spans[segment.span as usize];
            assert_eq!((span.event, span.frame), (TraceEvent::Node, run.frame));
            assert_eq!((segment.begin_ns, segment.end_ns), (span.begin_ns, span.end_ns), "a part of a node");
        }
    }
    assert_eq!(at, run.end_ns, "the path ends with the run");
    let parts: u64 = PathPart::ALL.iter().map(|&part| analysis.on_path(part)).sum();
    assert_eq!(parts, analysis.wall_ns());
    assert_eq!(analysis.shares.sum(), analysis.threads * analysis.wall_ns());
    assert_eq!(analysis.busy.iter().map(|(_, ns)| ns).sum::<u64>(), analysis.shares.body);
    assert_eq!(analysis.busy.len() as u64, analysis.threads);
    let (longest, spans) = analysis.longest.as_ref().expect("the edges are known");
    assert!(*longest <= analysis.wall_ns());
    let spans: Vec<&TraceSpan> = spans.iter().map(|&span| &timeline.spans[span as usize]).collect();
    assert!(spans.windows(2).all(|two| two[0].end_ns <= two[1].begin_ns), "one after the other");
    assert_eq!(spans.iter().map(|span| span.length_ns()).sum::<u64>(), *longest);
    let replay = analysis.replay_ns.unwrap();
    assert!(replay >= *longest, "a replay has all nodes of the longest path in it");
    for saving in &analysis.savings {
        assert!(saving.saves_ns <= replay && saving.on_path_ns <= saving.body_ns, "{saving:?}");
    }
    assert!(analysis.savings.is_empty() || analysis.is_replay_close());
}

fn each_run(timeline: &Timeline) -> Vec<RunAnalysis> {
    timeline.runs.iter().filter_map(|run| analysis_of(timeline, run.frame).unwrap()).collect()
}

#[test]
fn the_path_of_a_run_tiles_its_time() {
    let _alone = alone();
    let mut gaps: HashMap<PathPart, usize> = HashMap::new();
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let draws = Draws::new();
        let program = draws.program(&mut random);
        for pool in all_pools() {
            let ways = [on(pool.as_ref()), RunOptions { finish_independent: true, ..on(pool.as_ref()) }];
            for options in &ways {
                let trace = of_everything();
                (0..3).for_each(|input| drop(run(&program, &[input, 5], options).unwrap()));
                trace.stop();
                let timeline = trace.timeline().unwrap();
                let runs = each_run(&timeline);
                assert_eq!(runs.len(), 3, "each run is told of");
                for analysis in &runs {
                    check_analysis(&timeline, analysis);
                    analysis.path.iter().for_each(|segment| *gaps.entry(segment.part).or_default() += 1);
                }
                let told = analyses(&timeline).unwrap();
                assert_eq!(
                    told.iter().map(|one| (one.of_runs, one.is_slowest)).collect::<Vec<_>>(),
                    [(3, false), (3, true)]
                );
                assert!(told[0].wall_ns() <= told[1].wall_ns());
                assert!(runs.iter().all(|one| one.wall_ns() <= told[1].wall_ns()));
            }
        }
    }
    for part in [PathPart::Body, PathPart::HandOver, PathPart::Start, PathPart::End] {
        assert!(gaps.contains_key(&part), "no run has {part:?}: {gaps:?}");
    }
}

fn spin(ns: u64) {
    let begin = Instant::now();
    while (begin.elapsed().as_nanos() as u64) < ns {
        std::hint::spin_loop();
    }
}

/// A graph whose edges are known: of each node, by name, those before it.
struct Known {
    builder: Builder,
    before: Vec<(String, Vec<String>)>,
    names: Vec<(ValueId, String)>,
}

impl Known {
    fn new(name: &str) -> (Known, ValueId) {
        let (builder, inputs) = Builder::of(name, 1);
        (Known { builder, before: Vec::new(), names: Vec::new() }, inputs[0])
    }

    fn add(&mut self, name: &str, inputs: &[ValueId], ns: u64) -> ValueId {
        self.builder.how.cost_ns = ns.max(1);
        let value = self.builder.named(name, inputs, move |x| {
            spin(ns);
            Ok(x.iter().fold(1, |sum: i32, x| sum.wrapping_mul(31).wrapping_add(*x)))
        });
        let before =
            self.names.iter().filter(|(value, _)| inputs.contains(value)).map(|(_, name)| name.clone()).collect();
        self.before.push((name.to_owned(), before));
        self.names.push((value, name.to_owned()));
        value
    }

    fn compile(&mut self, outputs: &[ValueId]) -> Ref<Program> {
        outputs.iter().for_each(|&value| self.builder.output(value));
        self.builder.compile()
    }

    /// The longest path, by the spans of one run and the edges as the graph was built.
    fn longest(&self, timeline: &Timeline, frame: u32) -> u64 {
        let is_of_run = |span: &&TraceSpan| span.event == TraceEvent::Node && span.frame == frame;
        let took: HashMap<String, u64> = timeline
            .spans
            .iter()
            .filter(is_of_run)
            .map(|span| (timeline.name(span.label).into_owned(), span.length_ns()))
            .collect();
        assert_eq!(took.len(), self.before.len(), "each node ran once");
        let mut until: HashMap<&str, u64> = HashMap::new();
        for (name, before) in &self.before {
            let begin = before.iter().map(|before| until[&**before]).max().unwrap_or(0);
            until.insert(name, begin + took[name]);
        }
        *until.values().max().unwrap()
    }
}

/// Runs often enough for the executor to know the costs, then once in a trace.
fn traced(program: &Ref<Program>, options: &RunOptions, warm: usize) -> Ref<Trace> {
    (0..warm).for_each(|_| drop(run(program, &[1], options).unwrap()));
    let trace = of_everything();
    run(program, &[1], options).unwrap();
    trace.stop();
    trace
}

#[test]
fn the_longest_path_is_that_of_the_graph_as_it_was_built() {
    let _alone = alone();
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let (mut known, input) = Known::new("known");
        let mut values = vec![input];
        for i in 0..5 + random.below(40) {
            let inputs: Vec<ValueId> = (0..1 + random.below(3)).map(|_| values[random.below(values.len())]).collect();
            let ns = random.of(&[0, 0, 1_000, 30_000]);
            values.push(known.add(&format!("k{i}"), &inputs, ns));
        }
        let program = known.compile(&values[1..]);
        for pool in all_pools() {
            let timeline = traced(&program, &on(pool.as_ref()), 2).timeline().unwrap();
            let runs = each_run(&timeline);
            assert_eq!(runs.len(), 1);
            check_analysis(&timeline, &runs[0]);
            assert_eq!(runs[0].longest.as_ref().unwrap().0, known.longest(&timeline, runs[0].run.frame), "seed {seed}");
            assert_eq!(runs[0].nodes as usize, known.before.len());
        }
    }
}

/// What a node of this name would save.
fn saves(timeline: &Timeline, analysis: &RunAnalysis, name: &str) -> Option<(u64, u64)> {
    let found = analysis.savings.iter().find(|saving| timeline.name(saving.label) == name);
    found.map(|saving| (saving.saves_ns, saving.body_ns))
}

#[test]
fn in_a_chain_a_node_would_save_what_it_takes() {
    let _alone = alone();
    for pool in all_pools() {
        let (mut known, input) = Known::new("chain");
        let mut value = input;
        for i in 0..8 {
            value = known.add(&format!("k{i}"), &[value], 20_000 * (1 + i % 3));
        }
        let program = known.compile(&[value]);
        let timeline = traced(&program, &on(pool.as_ref()), 2).timeline().unwrap();
        let analysis = &each_run(&timeline)[0];
        check_analysis(&timeline, analysis);
        // All of the run is a node, before one, or behind the last one.
        assert_eq!(analysis.replay_error(), Some(0), "{} of {}", analysis.replay_ns.unwrap(), analysis.wall_ns());
        assert_eq!(analysis.savings.len(), 8);
        for i in 0..8 {
            let (saves, takes) = saves(&timeline, analysis, &format!("k{i}")).unwrap();
            assert!(saves == takes && takes >= 20_000, "{saves} of {takes}");
        }
    }
}

#[test]
fn a_node_off_the_path_saves_nothing_and_the_next_path_bounds_the_others() {
    let _alone = alone();
    // A long branch of 2 + 1 ms beside a short one of 500 us, and one that is nearly as long.
    let (mut known, input) = Known::new("branches");
    let long = known.add("long", &[input], 2_000_000);
    let longer = known.add("longer", &[long], 1_000_000);
    let short = known.add("short", &[input], 500_000);
    let program = known.compile(&[longer, short]);
    let pool = pools::named("", 3);
    // A machine with other work takes threads away: runs whose short branch came late show something else.
    let begun = Instant::now();
    let mut seen = 0;
    while seen < 3 {
        assert!(begun.elapsed() < Duration::from_secs(120), "no run had both branches at once");
        let timeline = traced(&program, &on(Some(&pool)), 1).timeline().unwrap();
        let analysis = &each_run(&timeline)[0];
        check_analysis(&timeline, analysis);
        let of = |name| saves(&timeline, analysis, name).unwrap();
        let is_short = |span: &&TraceSpan| span.event == TraceEvent::Node && timeline.name(span.label) == "short";
        let short = timeline.spans.iter().find(is_short).unwrap();
        let is_early = |takes: u64| short.end_ns - analysis.run.begin_ns < takes;
        if !analysis.is_replay_close() || !is_early(of("long").1) || !is_early(of("longer").1) {
            continue;
        }
        assert_eq!(of("short").0, 0, "{:?}", analysis.savings);
        // What is left is longer than the other branch.
        assert_eq!(of("long").0, of("long").1);
        assert_eq!(of("longer").0, of("longer").1);
        seen += 1;
    }
    // With the other branch behind it, a node saves no more than what that leaves.
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(120), "no run had both branches at once");
        let (mut known, input) = Known::new("alike");
        let values = [3_000_000, 2_500_000].map(|ns| known.add(&format!("k{ns}"), &[input], ns));
        let program = known.compile(&values);
        let timeline = traced(&program, &on(Some(&pool)), 1).timeline().unwrap();
        let analysis = &each_run(&timeline)[0];
        check_analysis(&timeline, analysis);
        let Some((saves, takes)) = saves(&timeline, analysis, "k3000000") else { continue };
        let other = analysis.savings.iter().find(|saving| timeline.name(saving.label) == "k2500000").unwrap();
        if analysis.threads < 2 || takes < other.body_ns + 100_000 {
            continue;
        }
        // A thread that came late comes late in the replay too.
        let is_it = |span: &&TraceSpan| span.event == TraceEvent::Node && timeline.name(span.label) == "k3000000";
        let late = timeline.spans.iter().find(is_it).unwrap().begin_ns - analysis.run.begin_ns;
        assert!(saves + other.body_ns <= takes + late, "{saves} of {takes}, beside {}", other.body_ns);
        break;
    }
}

#[test]
fn parts_of_the_path_are_what_they_are_called() {
    let _alone = alone();
    // More nodes at once than threads: all but the first ones of each thread are queued.
    let (mut known, input) = Known::new("queue");
    let values: Vec<ValueId> = (0..9).map(|i| known.add(&format!("k{i}"), &[input], 300_000)).collect();
    let last = known.add("last", &values, 10_000);
    let program = known.compile(&[last]);
    let pool = pools::named("", 2);
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(120), "no run had a node in a queue");
        let timeline = traced(&program, &on(Some(&pool)), 1).timeline().unwrap();
        let analysis = &each_run(&timeline)[0];
        check_analysis(&timeline, analysis);
        let name = |span: u32| timeline.name(timeline.spans[span as usize].label).into_owned();
        let body: Vec<String> =
            analysis.path.iter().filter(|s| s.part == PathPart::Body).map(|segment| name(segment.span)).collect();
        assert_eq!(body[body.len() - 1], "last");
        // One of the nine, which was ready all the time, and the one behind it. A machine with other work may hold up one
        // of the first, and a run that began as a walk has that in its path.
        if body.len() == 2 && analysis.on_path(PathPart::Queue) > 600_000 {
            break;
        }
    }
}

#[test]
fn a_run_with_lost_records_or_a_failure_is_not_explained() {
    let _alone = alone();
    let draws = Draws::new();
    let (mut main, inputs) = Builder::of("fails", 1);
    let mut values = inputs.clone();
    draws.region(&mut Random::new(3), &mut main, &mut values, 10, false);
    main.output(*values.last().unwrap());
    let program = main.compile();
    draws.fails_in.store(0, std::sync::atomic::Ordering::Relaxed);
    let trace = of_everything();
    let _ = run(&program, &[1], &RunOptions::default()).unwrap_err();
    let timeline = trace.timeline().unwrap();
    assert!(analyses(&timeline).unwrap().is_empty());
    drop(trace);
    let trace = Trace::start(weir_core::trace::Settings {
        records: 64,
        keeps_last: true,
        ..crate::settings(weir_core::trace::Filter::Everything)
    })
    .unwrap();
    let (mut known, input) = Known::new("long");
    let mut value = input;
    (0..100).for_each(|i| value = known.add(&format!("k{i}"), &[value], 0));
    let program = known.compile(&[value]);
    run(&program, &[1], &RunOptions::default()).unwrap();
    let timeline = trace.timeline().unwrap();
    assert!(timeline.lost() > 0 && analyses(&timeline).unwrap().is_empty());
}
