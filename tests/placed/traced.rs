//! The work of a device is in traces, at the times that it is done, also by a clock that is not the host's.

use crate::control::{swapping, ways};
use crate::kit::emulated::Emulation;
use crate::kit::integers::Builder;
use crate::kit::run::{cpu, fact, run};
use crate::ports::{number, run_on, stream_of};
use crate::wrapped::{Mistake, engine};
use crate::{mix, reports};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_core::base::Ref;
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Program, RunOptions};
use weir_core::trace::{Filter, PathPart, Settings, Timeline, Trace, TraceEvent, TraceFormat, TraceSpan, analysis_of};

const KERNEL_NS: u64 = 300_000;
const CHAINS: usize = 2;
const LENGTH: usize = 4;

/// Chains side by side on the engine, and their sum.
fn program(engine: &Ref<Engine>, options: &CompileOptions) -> Ref<Program> {
    let (mut builder, x) = Builder::of("chains", 1);
    builder.engine = engine.clone();
    let chain = |builder: &mut Builder, chain: usize| {
        (0..LENGTH).fold(x[0], |value, at| {
            builder.named(&format!("link {chain}.{at}"), &[value], move |x| Ok(mix(x) ^ chain as i32))
        })
    };
    let ends: Vec<_> = (0..CHAINS).map(|number| chain(&mut builder, number)).collect();
    let sum = builder.sum(&ends);
    builder.output(sum);
    Program::compile(&builder.graph, vec![cpu(), engine.clone()], options).unwrap()
}

/// Runs a program so many times, and gives what the trace of these runs says.
fn traced(program: &Ref<Program>, inputs: &[i32], runs: usize) -> Timeline {
    let settings = Settings { filter: Filter::Asked, keeps: None, keeps_last: false, records: 1 << 12, threads: 64 };
    let trace = Trace::start(settings).unwrap();
    let options = RunOptions { trace: Some(trace.id()), ..RunOptions::default() };
    let found: Vec<_> = (0..runs).map(|_| run(program, inputs, &options).unwrap()).collect();
    assert!(found.iter().all(|result| *result == found[0]), "{found:?}");
    trace.stop();
    trace.timeline().unwrap()
}

fn on_devices(timeline: &Timeline) -> Vec<&TraceSpan> {
    timeline.spans.iter().filter(|span| span.event == TraceEvent::Device).collect()
}

/// Holds of any clock: each piece is on a track of its device, in its run, and not before a thread could have issued
/// it, nor behind the run by more than the trace says that it may be off; pieces of one stream do not overlap.
fn check(timeline: &Timeline, has_jumps: bool) {
    assert_eq!((timeline.lost(), timeline.cut), (0, 0), "{}", timeline.remark());
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    for span in on_devices(timeline) {
        assert!(timeline.threads[span.thread as usize].is_track);
        let run = timeline.run(span.frame).expect("a piece of a run");
        let first = timeline.spans.iter().filter(|node| node.event == TraceEvent::Node && node.frame == span.frame);
        let issued = first.map(|node| node.begin_ns).min().unwrap();
        assert!(issued <= span.begin_ns, "{span:?} of {run:?}");
        assert!(has_jumps || span.end_ns <= run.end_ns + span.ready_ns + 1000, "{span:?} of {run:?}");
        let last = last.entry(span.thread).or_default();
        assert!(*last <= span.begin_ns, "{span:?} begins before the one in front of it ends");
        *last = span.end_ns;
    }
}

fn count(timeline: &Timeline) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for span in on_devices(timeline) {
        *counts.entry(timeline.name(span.label).into_owned()).or_default() += 1;
    }
    counts
}

fn precise() -> Emulation {
    let flags = Emulation::CHECK | Emulation::PRECISE;
    Emulation { kernel_ns: KERNEL_NS, flags, ..Emulation::default() }
}

#[test]
fn each_launch_and_copy_is_there_once() {
    const RUNS: usize = 4;
    let (device, engine) = engine("traced-streams", precise(), Mistake::None, 2);
    let program = program(&engine, &CompileOptions { without_segments: true, ..CompileOptions::default() });
    let timeline = traced(&program, &[3], RUNS);
    check(&timeline, false);
    let counts = count(&timeline);
    let links = counts.iter().filter(|(name, _)| name.contains("link "));
    assert_eq!(links.clone().count(), CHAINS * LENGTH, "{counts:?}");
    assert!(links.clone().all(|(_, count)| *count == RUNS), "{counts:?}");
    // The sum, the input's copy to the device, and the output's from it.
    assert_eq!(counts.values().sum::<usize>(), RUNS * (CHAINS * LENGTH + 3), "{counts:?}");
    for span in on_devices(&timeline).iter().filter(|span| timeline.name(span.label).contains("link ")) {
        assert!(
            span.length_ns() + 2 * span.ready_ns + 1000 >= KERNEL_NS,
            "a kernel that takes less than its time: {span:?}"
        );
    }
    // The run waits for the device, and its path says so.
    let mut waited = Vec::new();
    for run in &timeline.runs {
        let told = analysis_of(&timeline, run.frame).unwrap().expect("a run whose records are all there");
        assert_eq!(told.shares.sum(), told.threads * told.wall_ns());
        assert_eq!(PathPart::ALL.iter().map(|&part| told.on_path(part)).sum::<u64>(), told.wall_ns());
        // The thread that issues may take longer than the first kernels.
        waited.push(told.on_path(PathPart::Device).min(told.shares.device));
    }
    assert!(waited.iter().any(|&ns| ns >= KERNEL_NS), "the most of {waited:?} ns is less than a kernel");
    let bytes = on_devices(&timeline).into_iter().filter(|span| span.number == 4).count();
    assert_eq!(bytes, 2 * RUNS, "copies say how many bytes they are");
    // A run over several engines is of each of them.
    let filter = Filter::Engine(Arc::as_ptr(engine.account()).addr());
    let of_engine =
        Trace::start(Settings { filter, keeps: None, keeps_last: false, records: 1 << 12, threads: 64 }).unwrap();
    run(&program, &[3], &RunOptions::default()).unwrap();
    of_engine.stop();
    let timeline = of_engine.timeline().unwrap();
    assert_eq!((timeline.runs.len(), on_devices(&timeline).len()), (1, CHAINS * LENGTH + 3));
    drop(of_engine);
    drop((program, engine));
    assert_eq!(reports(&device), Vec::<String>::new());
}

#[test]
fn a_recording_is_one_piece() {
    const RUNS: usize = 5;
    let (device, engine) = engine("traced-recordings", precise(), Mistake::None, 2);
    let program = program(&engine, &CompileOptions { without_trial: true, ..CompileOptions::default() });
    let timeline = traced(&program, &[3], RUNS);
    check(&timeline, false);
    // The first run issues one by one. A recording has the copy to the device in it.
    let counts = count(&timeline);
    assert_eq!(counts.values().filter(|count| **count == RUNS - 1).count(), 1, "{counts:?}");
    let all = CHAINS * LENGTH + 3 + (RUNS - 1) * 2;
    assert_eq!(counts.values().sum::<usize>(), all, "{counts:?}");
    drop((program, engine));
    assert_eq!(reports(&device), Vec::<String>::new());
}

/// Clocks that are fast, that go in steps, and that jump: nothing is before its submission or behind its run, and
/// kernels take about their time.
#[test]
fn a_clock_of_its_own_is_put_on_the_hosts() {
    for (number, ppm, step_ns, jump_ns) in [(0, 200, 500, 0), (1, -2000, 1, 0), (2, 0, 500, 7_000_000_000)] {
        let name = format!("traced-clock{number}");
        let (device, engine) = engine(&name, precise(), Mistake::Drift { ppm, step_ns, jump_ns }, 2);
        let program = program(&engine, &CompileOptions { without_segments: true, ..CompileOptions::default() });
        let timeline = traced(&program, &[3], 12);
        check(&timeline, jump_ns > 0);
        assert_eq!(count(&timeline).values().sum::<usize>(), 12 * (CHAINS * LENGTH + 3));
        drop((program, engine));
        assert_eq!(reports(&device), Vec::<String>::new());
    }
}

/// A device whose events have no times has no tracks, and runs as ever.
#[test]
fn a_device_without_times_has_no_tracks() {
    let (device, engine) = engine("traced-untimed", precise(), Mistake::NoTimes, 2);
    let program = program(&engine, &CompileOptions { without_trial: true, ..CompileOptions::default() });
    let timeline = traced(&program, &[3], 3);
    assert_eq!((on_devices(&timeline).len(), timeline.lost()), (0, 0), "{}", timeline.remark());
    drop((program, engine));
    assert_eq!(reports(&device), Vec::<String>::new());
}

/// Programs of one device alone, on a stream of it: there is no executor, and each run is in the trace all the same,
/// with its nodes, the device's work for each of them, and its end, which is when the device was done.
#[test]
fn a_run_that_a_device_carries_alone_is_a_run_with_its_nodes() {
    const RUNS: usize = 6;
    for is_recorded in [false, true] {
        let name = format!("traced-alone{}", u8::from(is_recorded));
        let (device, engine) = engine(&name, precise(), Mistake::None, 1);
        let (mut builder, x) = Builder::of("alone", 1);
        builder.engine = engine.clone();
        let link = |value, at| builder.named(&format!("link {at}"), &[value], |x| Ok(mix(x)));
        let last = (0..LENGTH).fold(x[0], link);
        builder.output(last);
        builder.graph.set_input_engine(0, Some(engine.clone())).unwrap();
        builder.graph.set_output_engine(0, Some(engine.clone())).unwrap();
        let options = CompileOptions { without_segments: !is_recorded, ..CompileOptions::default() };
        let program = Program::compile(&builder.graph, vec![cpu(), engine.clone()], &options).unwrap();
        let line = stream_of(&engine);
        let (input, output) = (number(&engine, Some(&line), 3), [number(&engine, Some(&line), 0)]);
        let of_engine = Filter::Engine(Arc::as_ptr(engine.account()).addr());
        let filter = if is_recorded { of_engine } else { Filter::Program(program.identity()) };
        let settings = Settings { filter, keeps: None, keeps_last: false, records: 1 << 12, threads: 64 };
        let trace = Trace::start(settings).unwrap();
        for at in 0..RUNS {
            run_on(&program, Some(&line), vec![input.clone()], &output, &RunOptions::default()).unwrap();
            // Some runs are issued while the one before is under way, others behind it.
            if at % 2 == 0 {
                line.synchronize(u64::MAX).unwrap();
            }
        }
        line.synchronize(u64::MAX).unwrap();
        trace.stop();
        let timeline = trace.timeline().unwrap();
        assert_eq!(fact(&program, "direct_runs"), RUNS);
        assert_eq!((timeline.lost(), timeline.cut, timeline.runs.len()), (0, 0, RUNS), "{}", timeline.remark());
        let mut replayed = 0;
        for run in &timeline.runs {
            let of_run = |event| {
                let spans = timeline.spans.iter().filter(move |span| (span.event, span.frame) == (event, run.frame));
                let mut names: Vec<_> = spans.map(|span| timeline.name(span.label).into_owned()).collect();
                names.sort();
                names
            };
            let links: Vec<_> = (0..LENGTH).map(|at| format!("link {at}")).collect();
            let (nodes, pieces) = (of_run(TraceEvent::Node), of_run(TraceEvent::Device));
            assert_eq!(of_run(TraceEvent::Stay), ["alone"]);
            if is_recorded {
                // A segment is one node. Its first run issues one by one, and later ones submit a recording.
                assert_eq!(nodes.len(), 1, "{nodes:?}");
                assert!(pieces == links || pieces == nodes, "{pieces:?} of {nodes:?}");
                replayed += usize::from(pieces == nodes);
            } else {
                assert_eq!((&nodes, &pieces), (&links, &links));
            }
            let last = timeline.spans.iter().filter(|span| span.frame == run.frame).max_by_key(|span| span.end_ns);
            let last = last.unwrap();
            let is_devices = last.event == TraceEvent::Device;
            assert!(run.end_ns == last.end_ns || run.end_ns > last.end_ns && !is_devices, "{run:?}, {last:?}");
            assert!(run.end_ns - run.begin_ns >= LENGTH as u64 * (KERNEL_NS - 2000), "{run:?}");
            let told = analysis_of(&timeline, run.frame).unwrap().expect("a run whose records are all there");
            assert_eq!((told.shares.sum(), told.threads), (told.wall_ns(), 1));
            assert_eq!(PathPart::ALL.iter().map(|&part| told.on_path(part)).sum::<u64>(), told.wall_ns());
            assert!(told.on_path(PathPart::Device) > 0, "{:?}", told.path);
        }
        assert_eq!(replayed, if is_recorded { RUNS - 1 } else { 0 });
        let mut json = String::new();
        let mut collect = |bytes: &[u8]| {
            json.push_str(str::from_utf8(bytes).unwrap());
            Ok(())
        };
        trace.write(TraceFormat::Json, &mut collect).unwrap();
        let links = format!("\"what\":\"link 0\",\"count\":{}", RUNS - replayed);
        assert!(json.contains(&format!("\"runs\":{RUNS},")) && json.contains(&links), "{json}");
        drop((input, output, line, program, engine));
        assert_eq!(reports(&device), Vec::<String>::new());
    }
}

/// A loop on a device: its work is the run's, whoever decides on the next iteration. The host issues each iteration.
#[test]
fn the_pieces_of_a_loop_are_the_runs() {
    let mut driven = 0;
    for (number, options) in ways().iter().enumerate() {
        let (device, engine) = engine(&format!("traced-loop{number}"), precise(), Mistake::None, 2);
        let program = crate::control::compile(&swapping(&engine), &engine, options);
        let pieces = |iterations| {
            let timeline = traced(&program, &[iterations, 5, 7, 1], 3);
            check(&timeline, false);
            on_devices(&timeline).len()
        };
        // Behind the runs that make recordings.
        let _ = pieces(1);
        let (few, many) = (pieces(1), pieces(9));
        assert!(few > 0, "{options:?}");
        assert!(many >= few, "{few} and {many} pieces, {options:?}");
        driven += usize::from(many > few);
        drop((program, engine));
        assert_eq!(reports(&device), Vec::<String>::new());
    }
    assert!(driven > 0, "the host has driven no loop");
}
