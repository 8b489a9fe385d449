//! Segments: recorded in the second run, submitted as one from then on, with the same results as issued one by one.

use crate::kit::emulated::{Emulated, Emulation};
use crate::kit::integers::Builder;
use crate::kit::random::Random;
use crate::kit::run::{cpu, execute, fact, run};
use crate::ports::{emulated, number, races, read, stream_of};
use crate::wrapped::{Mistake, engine};
use crate::{Plan, checked, extent, mix, on_the_device, reports};
use std::slice::from_ref;
use weir_core::base::{Ref, Result};
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Graph, Program, ReportFormat, RunOptions};

fn compile(graph: &Graph, engine: &Ref<Engine>, without_segments: bool) -> Ref<Program> {
    let options = CompileOptions { without_segments, without_trial: true, ..CompileOptions::default() };
    Program::compile(graph, vec![cpu(), engine.clone()], &options).unwrap()
}

fn replays(engine: &Ref<Engine>) -> u64 {
    Emulated::of(engine.device()).unwrap().counters().replays
}

#[test]
fn random_graphs_give_the_same_both_ways_without_races() {
    let (graphs, seeds) = extent();
    let (mut replayed, mut tried) = (0, 0);
    for graph in 0..graphs {
        let plan = Plan::draw(&mut Random::new(graph), 2 + graph as usize % 5);
        for seed in 0..seeds {
            let streams = 1 + (graph + seed) as u32 % 4;
            let (device, engine) = engine("placed-segments", checked(seed), Mistake::None, streams);
            let program = plan.compile(&engine);
            // Long enough for both ways to be tried.
            for round in 0..10 {
                let inputs = [round, 7 - round, seed as i32];
                let found = run(&program, &inputs, &RunOptions::default()).unwrap();
                assert_eq!(found, plan.expected(&inputs), "graph {graph}, seed {seed}, round {round}");
            }
            assert_eq!(reports(&device), Vec::<String>::new(), "graph {graph}, seed {seed}, {streams} streams");
            let (segments, runs) = (fact(&program, "segments"), fact(&program, "replayed_runs"));
            // With a seed nothing takes any time, and recordings are as good as streams; without one whatever was
            // faster is right.
            let is_right = if seed > 0 { [9, 6].contains(&runs) } else { (4..=9).contains(&runs) };
            assert!(segments == 0 || is_right, "graph {graph}, seed {seed}: {runs} of 10 submit segments");
            assert_eq!(device.inner.counters().replays, (runs * segments) as u64, "graph {graph}");
            (replayed, tried) = (replayed + segments as u64, tried + u64::from(runs == 6));
        }
    }
    assert!(replayed > graphs * seeds / 4, "{replayed}");
    assert!(tried > graphs * seeds / 10, "{tried}");
}

#[test]
fn every_edge_that_is_left_out_is_reported_with_both_names() {
    let mut tried = 0;
    for graph in 0..12 {
        let plan = on_the_device(graph);
        let broken = |edge| {
            let (device, engine) = engine("placed-no-edge", checked(1), Mistake::NoEdge(edge), 1 + edge as u32 % 3);
            let program = plan.compile(&engine);
            let _ = (0..2).map(|_| run(&program, &[1, 2, 3], &RunOptions::default())).collect::<Result<Vec<_>>>();
            (reports(&device), device.inner.races(), device.edges())
        };
        let (found, _, (edges, _)) = broken(0);
        assert!(found.is_empty(), "{found:?}");
        let mut edge = 1;
        loop {
            let (found, races, (_, left_out)) = broken(edge);
            let Some((first, second)) = left_out else { break };
            let is_both = races.iter().any(|race| race.first.name == first && race.second.name == second);
            assert!(is_both, "graph {graph}: nobody misses the edge from {first} to {second}: {found:?}");
            assert!(found.iter().all(|text| text.starts_with("missing edge: ")), "{found:?}");
            edge += 1;
            tried += 1;
        }
        assert!(edges == 0 || edge > 1);
    }
    assert!(tried > 100, "{tried}");
}

/// `chains` side by side, each of `length` nodes on the engine, then their sum.
fn chains(engine: &Ref<Engine>, chains: usize, length: usize) -> Builder {
    let (mut builder, x) = Builder::of("chains", 1);
    builder.engine = engine.clone();
    let ends: Vec<_> = (0..chains)
        .map(|chain| (0..length).fold(x[0], |value, _| builder.op(&[value], move |x| mix(x) ^ chain as i32)))
        .collect();
    let sum = builder.sum(&ends);
    builder.output(sum);
    builder
}

#[test]
fn a_replay_is_one_call_and_the_event_that_the_end_needs() {
    let engine = emulated(2, Emulation { flags: Emulation::CHECK, ..Emulation::default() }, 3);
    let program = compile(&chains(&engine, 3, 8).graph, &engine, false);
    let device = Emulated::of(engine.device()).unwrap();
    let first = run(&program, &[3], &RunOptions::default()).unwrap();
    for _ in 0..3 {
        let before = device.counters();
        assert_eq!(run(&program, &[3], &RunOptions::default()).unwrap(), first);
        let after = device.counters();
        assert_eq!(after.replays - before.replays, 1);
        assert_eq!(after.launches - before.launches, 25);
        assert_eq!(after.copies - before.copies, 2, "the input's, which is in the recording, and the fetch");
        assert_eq!((after.waits - before.waits, after.records - before.records), (1, 2), "those of the fetch");
        assert_eq!(after.allocations, before.allocations);
    }
    assert_eq!(races(&engine), Vec::<String>::new());
    let facts = ["segments", "segment_nodes", "segment_copies", "recordings", "replayed_runs", "issued_runs"];
    assert_eq!(facts.map(|name| fact(&program, name)), [1, 25, 1, 1, 3, 1]);
    // The copy to each chain's first, along the chains, and to the sum.
    assert_eq!(fact(&program, "segment_edges"), 3 + 3 * 7 + 3);
    let report = program.report(ReportFormat::Json);
    assert!(report.contains("\"segments_why\":\"yes, ") && report.contains("\"refusal\":null"), "{report}");
}

#[test]
fn there_are_none_where_nothing_is_won_or_nobody_wants_them() {
    let engine = emulated(3, Emulation::default(), 1);
    let why = |program: &Program| {
        let report = program.report(ReportFormat::Text);
        let lines = report.lines().filter_map(|line| line.strip_prefix("  segments: "));
        lines.map(str::to_owned).collect::<Vec<_>>().join(";")
    };
    let off = compile(&chains(&engine, 2, 8).graph, &engine, true);
    let short = compile(&chains(&engine, 1, 2).graph, &engine, false);
    let on_host = compile(&chains(&cpu(), 1, 9).graph, &engine, false);
    for program in [&off, &short, &on_host] {
        (0..3).for_each(|_| drop(run(program, &[3], &RunOptions::default()).unwrap()));
        assert_eq!(["segments", "replayed_runs"].map(|name| fact(program, name)), [0, 0]);
    }
    assert_eq!(replays(&engine), 0);
    assert_eq!(why(&off), "no, the compile options say so");
    assert_eq!(why(&short), "no, nowhere are there four nodes of an engine's with nothing between them");
    assert_eq!(why(&on_host), "no, there are no other engines");
}

#[test]
fn a_device_that_will_not_record_is_issued_to() {
    let (device, engine) = engine("placed-refusing", checked(3), Mistake::NoRecording, 2);
    let program = compile(&chains(&engine, 2, 6).graph, &engine, false);
    let found: Vec<_> = (0..4).map(|_| run(&program, &[3], &RunOptions::default()).unwrap()).collect();
    assert!(found.iter().all(|result| *result == found[0]));
    assert_eq!(reports(&device), Vec::<String>::new());
    assert_eq!(device.inner.counters().replays, 0);
    assert_eq!(["recordings", "replayed_runs", "issued_runs"].map(|name| fact(&program, name)), [0, 1, 3]);
    let text = program.report(ReportFormat::Text);
    assert!(
        text.contains("why a recording was refused: engine placed-refusing:0: 13 nodes from 'n2' to 'n14': "),
        "{text}"
    );
    assert!(text.contains("no recordings today"), "{text}");
}

#[test]
fn after_a_failure_a_run_issues_and_the_next_ones_replay() {
    // Of 26 operations in a run the 60th is in the third, and in the recording.
    let settings = Emulation { seed: 7, flags: Emulation::CHECK, fail_operation: 60, ..Emulation::default() };
    let engine = emulated(4, settings, 2);
    let program = compile(&chains(&engine, 2, 12).graph, &engine, false);
    let found: Vec<_> = (0..6).map(|_| run(&program, &[3], &RunOptions::default())).collect();
    let text = found[2].as_ref().unwrap_err().message().to_owned();
    assert!(text.contains("engine emulated:4: ") && text.contains("failed, as asked"), "{text}");
    assert!(
        found.iter().enumerate().all(|(i, result)| i == 2 || result.as_ref().unwrap() == found[0].as_ref().unwrap())
    );
    assert_eq!(["recordings", "replayed_runs", "issued_runs"].map(|name| fact(&program, name)), [1, 4, 2]);
    assert_eq!(races(&engine), Vec::<String>::new());
}

#[test]
fn tensors_of_the_runs_own_are_new_addresses_and_not_new_recordings() {
    let engine = emulated(5, checked(9), 1);
    let stream = stream_of(&engine);
    let mut builder = chains(&engine, 2, 6);
    builder.graph.set_input_engine(0, Some(engine.clone())).unwrap();
    builder.graph.set_output_engine(0, Some(engine.clone())).unwrap();
    let program = compile(&builder.graph, &engine, false);
    let expected = |x: i32| {
        let host = compile(&chains(&cpu(), 2, 6).graph, &engine, false);
        run(&host, &[x], &RunOptions::default()).unwrap()[0]
    };
    let tensors: Vec<_> =
        (0..3).map(|i| (number(&engine, Some(&stream), i), number(&engine, Some(&stream), -1))).collect();
    stream.synchronize(u64::MAX).unwrap();
    for i in [0, 1, 1, 2, 2, 2, 0] {
        let (input, output) = &tensors[i];
        execute(&program, from_ref(input), from_ref(output), &RunOptions::default()).unwrap();
        assert_eq!(read(output, Some(&stream)), expected(i as i32));
    }
    assert_eq!(races(&engine), Vec::<String>::new());
    // Two chains begin with the input, one sum is the output; three runs have other tensors than the one before, of
    // which one records.
    assert_eq!(["recordings", "replayed_runs", "updated_steps"].map(|name| fact(&program, name)), [1, 6, 6]);
}

#[test]
fn bodies_of_branches_and_loops_have_segments_of_their_own() {
    let engine = emulated(6, checked(2), 2);
    let graph = |on: &Ref<Engine>| {
        let (mut body, x) = Builder::of("body", 1);
        body.engine = on.clone();
        let end = (0..6).fold(x[0], |value, _| body.op(&[value], mix));
        let body = body.giving(&[end]);
        let (mut condition, x) = Builder::of("condition", 1);
        let more = condition.op(&[x[0]], |x| i32::from(x[0] % 7 != 0));
        let condition = condition.giving(&[more]);
        let (mut builder, x) = Builder::of("loop", 1);
        let looped = builder.graph.add_while("while", &condition, &body, &[x[0]], &[], 4).unwrap();
        builder.output(looped.output(0));
        builder.graph
    };
    let (here, there) = (compile(&graph(&cpu()), &engine, false), compile(&graph(&engine), &engine, false));
    for x in [1, 2, 3, 4] {
        let options = RunOptions::default();
        assert_eq!(run(&there, &[x], &options).unwrap(), run(&here, &[x], &options).unwrap());
    }
    assert!(replays(&engine) >= 3, "an iteration or more in each of three runs");
    assert_eq!(races(&engine), Vec::<String>::new());
}

/// A constant comes to the device when a run first needs it, and that may be one that submits segments.
#[test]
fn a_branch_that_a_later_run_takes_first_waits_for_its_constants() {
    for seed in 0..20 {
        let engine = emulated(7, checked(seed), 1 + seed as u32 % 3);
        let branch = |salt: i32| {
            let (mut branch, x) = Builder::of("branch", 1);
            let constants = [salt, salt + 1].map(|value| branch.constant(value));
            branch.engine = engine.clone();
            let end = (0..5).fold(x[0], |value, i| branch.op(&[value, constants[i % 2]], mix));
            // With a node of the host's the branch is none of the engine's as a whole.
            branch.engine = cpu();
            let end = branch.op(&[end], |x| x[0]);
            branch.giving(&[end])
        };
        let expected = |x: i32, salt: i32| (0..5).fold(x, |value, i| mix(&[value, salt + i % 2]));
        let (mut builder, x) = Builder::of("cond", 2);
        let taken = builder.graph.add_cond("cond", x[0], &branch(10), &branch(20), &[x[1]]).unwrap();
        builder.output(taken.output(0));
        let program = compile(&builder.graph, &engine, false);
        for (taken, salt) in [(1, 10), (1, 10), (0, 20), (0, 20), (1, 10), (0, 20)] {
            assert_eq!(run(&program, &[taken, 5], &RunOptions::default()).unwrap(), [expected(5, salt)], "seed {seed}");
        }
        assert_eq!(races(&engine), Vec::<String>::new(), "seed {seed}");
        assert_eq!(["issued_runs", "recordings"].map(|name| fact(&program, name)), [1, 2]);
    }
}
