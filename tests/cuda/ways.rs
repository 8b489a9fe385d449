//! Streams or a graph of the driver's: what timing both asks of the driver, and that it is asked for nothing more once
//! one was picked.

use crate::bench::{Bench, values};
use crate::kit::fake;
use crate::segments::{Calls, chains, check, floats, on_driver, run};
use weir_core::base::Ref;
use weir_core::device::DeviceKind;
use weir_core::engine::EngineAttr;
use weir_core::graph::{CompileOptions, Program, ReportFormat};

const CHAINS: usize = 2;
const LENGTH: usize = 3;
/// Run by run: a cold one, one that makes the graph, and three of each way; the next one knows.
const TRIAL: usize = 8;

fn compile(bench: &Bench, segments: u32) -> Ref<Program> {
    let (without_segments, without_trial) = (segments == 0, segments == 2);
    let options = CompileOptions { without_segments, without_trial, ..CompileOptions::default() };
    let graph = chains(bench, CHAINS, LENGTH);
    Program::compile(&graph, vec![bench.cpu.clone(), bench.engine.clone()], &options).unwrap()
}

fn on_two_streams() -> Bench {
    let mut attr = EngineAttr::new(DeviceKind::CUDA);
    attr.set_max_streams(2).unwrap();
    Bench::with(Some(&attr)).unwrap()
}

/// What one run asks the driver for.
fn calls_of(bench: &Bench, program: &Ref<Program>) -> Vec<(&'static str, u64)> {
    let (x, y) = (floats(bench, 2.0), bench.on_host(|_| 0));
    let calls = Calls::now();
    run(program, &x, &y).unwrap();
    let made = calls.since();
    check(&values(&y), 2.0, CHAINS, LENGTH);
    made
}

fn count(calls: &[(&'static str, u64)], name: &str) -> u64 {
    calls.iter().find(|call| call.0 == name).map_or(0, |call| call.1)
}

/// The calls of runs until the program knows its way; those of the last one, too.
fn tried(bench: &Bench, program: &Ref<Program>) -> Vec<Vec<(&'static str, u64)>> {
    let mut trial = Vec::new();
    while trial.len() < 60 && program.report(ReportFormat::Text).contains("runs go by: not known yet") {
        trial.push(calls_of(bench, program));
    }
    assert!(trial.len() > TRIAL, "{} runs", trial.len());
    trial
}

/// Operations of a stream take 5 ms more: of the lane's first one, to which recordings go, the copy of the input, too;
/// or of its second one, which only streams use.
#[test]
fn the_calls_of_a_run_are_those_of_the_better_way_and_no_others() {
    for delay in ["3:5000", "4:5000"] {
        let out = on_driver(&[("DELAY", delay)], || {
            // The process of its own has the driver's settings, and the first of this list.
            let way = if std::env::var("FAKE_CUDA_DELAY").as_deref() == Ok("3:5000") { 0 } else { 2 };
            let bench = on_two_streams();
            let program = compile(&bench, 1);
            let trial = tried(&bench, &program);
            let report = program.report(ReportFormat::Text);
            let expected =
                if way == 0 { "runs go by: streams, they were" } else { "runs go by: recordings, streams were" };
            assert!(report.contains(expected), "{report}");

            let [streams, graph] = [0, 2].map(|way| {
                let program = compile(&bench, way);
                (0..3).for_each(|_| drop(calls_of(&bench, &program)));
                calls_of(&bench, &program)
            });
            assert_eq!([count(&streams, "cuLaunchKernel"), count(&graph, "cuLaunchKernel")], [8, 0]);
            assert_eq!([count(&streams, "cuGraphLaunch"), count(&graph, "cuGraphLaunch")], [0, 1]);
            let asked = || fake::count("cuEventElapsedTime") + fake::count("cuEventElapsedTime_v2");
            let before = asked();
            let found = trial.last().unwrap().clone();
            for made in [found].into_iter().chain((0..3).map(|_| calls_of(&bench, &program))) {
                assert_eq!(made, if way == 0 { &streams[..] } else { &graph[..] });
            }
            // Of three runs with an end on each of two streams, and three with one.
            assert_eq!([before, asked()], [9, 9]);
            // The cold one, the one that makes the graph, then both in turns: a record in front, and one behind on each
            // stream. Where an event was not reached as the next run began, that is the graph alone.
            for made in &trial[2..] {
                let is_timed = |own: &[(&str, u64)], records: u64| {
                    let more = |name: &str| if name == "cuEventRecord" { records } else { 0 };
                    made.len() == own.len() && own.iter().all(|(name, calls)| count(made, name) == calls + more(name))
                };
                let is_known = is_timed(&streams, 3) || is_timed(&graph, 2) || is_timed(&graph, 0) || *made == streams;
                assert!(is_known, "{made:?}, and no event or memory among it: {streams:?}, {graph:?}");
            }
        });
        if out.is_none() {
            return;
        }
    }
}

#[test]
fn a_driver_that_tells_no_time_leaves_the_graph() {
    let all = [("FAIL", "cuEventElapsedTime:*:400"), ("VERSION", "12040")];
    on_driver(&all, || {
        let bench = on_two_streams();
        let program = compile(&bench, 1);
        (0..TRIAL).for_each(|_| drop(calls_of(&bench, &program)));
        let report = program.report(ReportFormat::Text);
        assert!(report.contains("runs go by: recordings, no times of both ways"), "{report}");
        assert_eq!(fake::count("cuEventElapsedTime"), 1);
        assert_eq!(count(&calls_of(&bench, &program), "cuGraphLaunch"), 1);
    });
}

/// Whatever the driver does first: its checker ends the process if a way lacks an order that the other has.
#[test]
fn both_ways_in_turns_are_right_in_any_order() {
    for seed in ["1", "2", "3", "4"] {
        let out = on_driver(&[("SEED", seed)], || {
            let bench = on_two_streams();
            let program = compile(&bench, 1);
            (0..2 * TRIAL).for_each(|_| drop(calls_of(&bench, &program)));
        });
        if out.is_none() {
            return;
        }
    }
}
