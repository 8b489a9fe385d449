//! Regions: what a device makes one kernel of gives the same as node after node, without races, also in branches and
//! loops, where the device takes all, some or nothing of what it is offered.

use crate::control::{compile, drawn, ways};
use crate::kit::emulated::{Emulated, Emulation};
use crate::kit::integers::Builder;
use crate::kit::random::Random;
use crate::kit::run::{cpu, execute, fact, run};
use crate::ports::{emulated, number, races, read, run_on, stream_of};
use crate::wrapped::{Mistake, engine};
use crate::{INPUTS, Plan, checked, extent, mix, on_the_device, reports};
use weir_core::base::{Code, Error, Ref};
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Graph, Program, ReportFormat, RunOptions};

fn taking(regions: u64, seed: u64) -> Emulation {
    Emulation { regions, ..checked(seed) }
}

fn all(seed: u64) -> Emulation {
    taking(Emulation::ALL_REGIONS, seed)
}

fn without() -> CompileOptions {
    CompileOptions { without_regions: true, ..CompileOptions::default() }
}

fn line(program: &Program, words: &str) -> Option<String> {
    let report = program.report(ReportFormat::Text);
    let found = report.lines().find_map(|line| line.trim().strip_prefix(words));
    found.map(|rest| rest.trim_start_matches(": ").to_owned())
}

#[test]
fn random_graphs_give_the_same_with_regions_and_without() {
    let (graphs, seeds) = extent();
    let mut regions = [0; 2];
    for graph in 0..graphs {
        let mut random = Random::new(graph);
        let plan = Plan::draw(&mut random, 2 + graph as usize % 5);
        for seed in 1..=1 + seeds / 3 {
            let takes = [Emulation::ALL_REGIONS, Emulation::SOME_REGIONS][(graph + seed) as usize % 2];
            let streams = 1 + (graph + seed) as u32 % 4;
            let (device, engine) = engine("placed-regions", taking(takes, seed), Mistake::None, streams);
            let program = plan.compile(&engine);
            regions[usize::from(takes == Emulation::SOME_REGIONS)] += fact(&program, "regions");
            for round in 0..4 {
                let inputs = [round, 7 - round, seed as i32];
                let found = run(&program, &inputs, &RunOptions::default()).unwrap();
                assert_eq!(found, plan.expected(&inputs), "graph {graph}, seed {seed}, {streams} streams");
            }
            assert_eq!(reports(&device), Vec::<String>::new(), "graph {graph}, seed {seed}, {streams} streams");
        }
    }
    assert!(regions.iter().all(|&regions| regions as u64 > graphs / 4), "{regions:?}");
}

#[test]
fn random_branches_and_loops_give_the_same_in_all_ways() {
    let (graphs, mut regions) = (extent().0 / 2, 0);
    for graph in 0..graphs {
        let expected = compile(&drawn(graph, &cpu()), &cpu(), &CompileOptions::default());
        for (way, options) in ways().iter().enumerate() {
            let takes = [Emulation::ALL_REGIONS, Emulation::SOME_REGIONS][(graph as usize + way) % 2];
            let emulation = taking(takes, 1 + graph);
            let (device, engine) = engine("placed-regions-control", emulation, Mistake::None, 1 + graph as u32 % 3);
            let program = compile(&drawn(graph, &engine), &engine, options);
            regions += fact(&program, "regions");
            for round in 0..3 {
                let inputs = [round, 7 - round, 3];
                let found = run(&program, &inputs, &RunOptions::default());
                let found = found.unwrap_or_else(|error| panic!("graph {graph}, way {way}: {error}"));
                let wanted = run(&expected, &inputs, &RunOptions::default()).unwrap();
                assert_eq!(found, wanted, "graph {graph}, way {way}, round {round}");
            }
            assert_eq!(reports(&device), Vec::<String>::new(), "graph {graph}, way {way}");
        }
    }
    assert!(regions as u64 > graphs, "{regions}");
}

/// first -> second -> last, and first -> aside -> last, where `aside` is on another engine.
fn around(there: &Ref<Engine>, aside: &Ref<Engine>) -> Graph {
    let (mut builder, x) = Builder::of("around", 1);
    builder.engine = there.clone();
    let first = builder.named("first", &[x[0]], |x| Ok(x[0] + 1));
    let second = builder.named("second", &[first], |x| Ok(x[0] * 3));
    builder.engine = aside.clone();
    let other = builder.named("aside", &[first], |x| Ok(x[0] * 100));
    builder.engine = there.clone();
    let last = builder.named("last", &[second, other], |x| Ok(x[0] + x[1]));
    let end = builder.named("end", &[last], |x| Ok(x[0] * 2));
    builder.output(end);
    builder.graph
}

#[test]
fn what_comes_back_from_elsewhere_is_no_part_of_the_same_region() {
    for seed in 1..6 {
        let (device, engine) = engine("placed-regions-convex", all(seed), Mistake::None, 2);
        // On the host, and as a whole.
        for (aside, regions, nodes) in [(cpu(), 2, 4), (engine.clone(), 1, 5)] {
            let program = compile(&around(&engine, &aside), &engine, &CompileOptions::default());
            assert_eq!(
                ["regions_offered", "regions", "region_nodes"].map(|key| fact(&program, key)),
                [regions, regions, nodes]
            );
            assert_eq!(line(&program, "regions").as_deref(), Some("yes, where a device takes them"));
            let before = device.inner.counters().launches;
            for x in 0..4 {
                let expected = ((x + 1) * 3 + (x + 1) * 100) * 2;
                assert_eq!(run(&program, &[x], &RunOptions::default()).unwrap(), [expected]);
            }
            assert_eq!(device.inner.counters().launches - before, 4 * regions as u64);
        }
        assert_eq!(reports(&device), Vec::<String>::new());
    }
}

#[test]
fn two_sets_that_wait_for_one_another_do_not_both_become_one() {
    let (device, engine) = engine("placed-regions-circle", all(4), Mistake::None, 2);
    let (mut builder, x) = Builder::of("circle", 2);
    builder.engine = engine.clone();
    let (a, b) = (builder.op(&[x[0]], |x| x[0] + 1), builder.op(&[x[1]], |x| x[0] + 2));
    builder.engine = cpu();
    let (over, back) = (builder.op(&[a], |x| x[0] * 10), builder.op(&[b], |x| x[0] * 20));
    builder.engine = engine.clone();
    let c = builder.op(&[a, back], |x| x[0] + x[1]);
    let d = builder.op(&[b, over], |x| x[0] + x[1]);
    [c, d].into_iter().for_each(|value| builder.output(value));
    let program = compile(&builder.graph, &engine, &CompileOptions::default());
    assert_eq!(["regions", "region_nodes"].map(|key| fact(&program, key)), [1, 2]);
    for x in 0..3 {
        let (a, b) = (x + 1, 7 + 2);
        assert_eq!(run(&program, &[x, 7], &RunOptions::default()).unwrap(), [a + b * 20, b + a * 10]);
    }
    assert_eq!(reports(&device), Vec::<String>::new());
}

/// while (left > 0) (left, sum) = (left - 1, more(more(sum, left on the host))).
fn looped(there: &Ref<Engine>, at_once: u32) -> Graph {
    let (mut condition, x) = Builder::of("more", 2);
    let more = condition.op(&[x[0]], |x| i32::from(x[0] > 0));
    let condition = condition.giving(&[more]);
    let (mut body, x) = Builder::of("body", 2);
    let left = body.op(&[x[0]], |x| x[0] - 1);
    let mine = body.op(&[x[0]], |x| x[0] * 7);
    body.engine = there.clone();
    let once = body.op(&[x[1], mine], |x| x[0].wrapping_mul(3).wrapping_add(x[1]));
    let twice = body.op(&[once, x[1]], |x| x[0].wrapping_mul(5).wrapping_sub(x[1]));
    let body = body.giving(&[left, twice]);
    let (mut builder, x) = Builder::of("looped", 2);
    let node = builder.graph.add_while("loop", &condition, &body, &x, &[], at_once).unwrap();
    (0..2).for_each(|output| builder.output(node.output(output)));
    builder.graph
}

#[test]
fn iterations_that_overlap_have_regions() {
    for seed in 0..8 {
        let (device, engine) = engine("placed-regions-overlap", all(seed), Mistake::None, 1 + seed as u32 % 3);
        let options = CompileOptions { without_segments: seed % 2 == 0, ..CompileOptions::default() };
        let program = compile(&looped(&engine, 4), &engine, &options);
        assert_eq!(["regions", "region_nodes"].map(|key| fact(&program, key)), [1, 2]);
        assert!(program.report(ReportFormat::Text).contains("loop 'loop': 4 of at most 4 iterations at once"));
        for (left, sum) in [(0, 4), (1, 5), (13, 6), (13, 6)] {
            let (mut x, mut y) = (left, sum);
            while x > 0 {
                let once = i32::wrapping_mul(y, 3).wrapping_add(x * 7);
                (x, y) = (x - 1, once.wrapping_mul(5).wrapping_sub(y));
            }
            assert_eq!(run(&program, &[left, sum], &RunOptions::default()).unwrap(), [0, y], "seed {seed}");
        }
        assert_eq!(reports(&device), Vec::<String>::new(), "seed {seed}");
    }
}

/// All of a plan on an engine, with a constant there, inputs and outputs in its memory.
fn alone(plan: &Plan, engine: &Ref<Engine>, options: &CompileOptions) -> Ref<Program> {
    let (mut builder, mut values) = Builder::of("alone", INPUTS);
    let line = stream_of(engine);
    let constant = number(engine, Some(&line), 7);
    line.synchronize(u64::MAX).unwrap();
    builder.engine = engine.clone();
    let seven = builder.graph.add_constant("seven", constant).unwrap();
    for (i, (_, reads)) in plan.nodes.iter().enumerate() {
        let mut reads: Vec<_> = reads.iter().map(|&read| values[read]).collect();
        reads.extend((i == 0).then_some(seven));
        values.push(builder.op(&reads, mix));
    }
    plan.outputs.iter().for_each(|&output| builder.output(values[output]));
    (0..INPUTS).for_each(|i| builder.graph.set_input_engine(i, Some(engine.clone())).unwrap());
    (0..plan.outputs.len()).for_each(|o| builder.graph.set_output_engine(o, Some(engine.clone())).unwrap());
    Program::compile(&builder.graph, vec![cpu(), engine.clone()], options).unwrap()
}

#[test]
fn direct_runs_launch_a_region_take_no_memory_and_keep_its_constants() {
    for graph in 0..10 {
        let plan = on_the_device(graph);
        let engine = emulated(6, all(1 + graph), 2);
        let (device, line) = (Emulated::of(engine.device()).unwrap(), stream_of(&engine));
        let plain = alone(&plan, &engine, &without());
        assert_eq!(["regions_offered", "regions"].map(|key| fact(&plain, key)), [0, 0]);
        // Graph and constant are gone, but for the program.
        let program = alone(&plan, &engine, &CompileOptions::default());
        assert_eq!(["regions", "region_nodes"].map(|key| fact(&program, key)), [1, plan.nodes.len()]);
        let inputs: Vec<_> = (0..INPUTS as i32).map(|i| number(&engine, Some(&line), i)).collect();
        let outputs = [number(&engine, Some(&line), 0), number(&engine, Some(&line), 1)];
        let go = |program: &Ref<Program>, at: usize| {
            run_on(program, Some(&line), inputs.clone(), &outputs[at..=at], &RunOptions::default()).unwrap();
        };
        (0..2).for_each(|_| go(&program, 0));
        line.synchronize(u64::MAX).unwrap();
        let before = device.counters();
        (0..3).for_each(|_| go(&program, 0));
        let after = device.counters();
        assert_eq!((after.launches - before.launches, after.allocations - before.allocations), (3, 0));
        assert_eq!(fact(&program, "direct_runs"), 5);
        go(&plain, 1);
        assert_eq!(read(&outputs[0], Some(&line)), read(&outputs[1], Some(&line)), "graph {graph}");
        assert_eq!(races(&engine), Vec::<String>::new(), "graph {graph}");
    }
}

#[test]
fn later_runs_allocate_nothing_on_the_device() {
    for options in &ways() {
        let (device, engine) = engine("placed-regions-later", all(0), Mistake::None, 1);
        let program = compile(&around(&engine, &cpu()), &engine, options);
        (0..2).for_each(|x| drop(run(&program, &[x], &RunOptions::default()).unwrap()));
        let before = device.inner.counters().allocations;
        (0..5).for_each(|x| drop(run(&program, &[x], &RunOptions::default()).unwrap()));
        assert_eq!(device.inner.counters().allocations, before);
    }
}

#[test]
fn what_a_device_declines_is_done_node_by_node_and_the_report_says_why() {
    let of = |regions| {
        let (device, engine) = engine("placed-regions-declined", taking(regions, 3), Mistake::None, 1);
        let program = compile(&around(&engine, &engine), &engine, &CompileOptions::default());
        for x in 0..4 {
            assert_eq!(run(&program, &[x], &RunOptions::default()).unwrap(), [((x + 1) * 103) * 2]);
        }
        assert_eq!(device.inner.counters().launches, 20);
        assert_eq!(["regions_offered", "regions", "region_nodes"].map(|key| fact(&program, key)), [1, 0, 0]);
        assert_eq!(line(&program, "regions").as_deref(), Some("no, the devices decline them"));
        line(&program, "why a region was declined").unwrap()
    };
    let none = "placed-regions-declined:0 takes none of the nodes of region of 5 nodes from 'first' to 'end'";
    assert_eq!(of(Emulation::NO_REGIONS), none);
    let declined = "emulated:0: region of 5 nodes from 'first' to 'end' is declined, as asked";
    assert_eq!(of(Emulation::DECLINED_REGIONS), declined);
}

/// A chain of so many nodes.
fn chain(engine: &Ref<Engine>, count: i32) -> Graph {
    let (mut builder, mut x) = Builder::of("chain", 1);
    builder.engine = engine.clone();
    for node in 1..=count {
        x[0] = builder.named(&format!("c{node}"), &x, move |x| Ok(x[0] * 2 + node));
    }
    builder.output(x[0]);
    builder.graph
}

#[test]
fn a_device_may_take_some_of_the_nodes() {
    let (device, engine) = engine("placed-regions-some", taking(Emulation::SOME_REGIONS, 3), Mistake::None, 1);
    // Three of each four, and from the ninth on for themselves: 1-3, 5-7, 9-11, 13.
    let program = compile(&chain(&engine, 13), &engine, &CompileOptions::default());
    assert_eq!(["regions_offered", "regions", "region_nodes"].map(|key| fact(&program, key)), [1, 3, 9]);
    let expected = |x| (1..=13).fold(x, |x, node| x * 2 + node);
    for x in 0..4 {
        assert_eq!(run(&program, &[x], &RunOptions::default()).unwrap(), [expected(x)]);
    }
    assert_eq!(device.inner.counters().launches, 4 * 7);
    assert_eq!(reports(&device), Vec::<String>::new());
}

#[test]
fn a_failure_to_compile_names_program_region_and_device() {
    let emulation = Emulation { fail_region: 1, ..all(0) };
    let (_, engine) = engine("placed-regions-fail", emulation, Mistake::None, 1);
    let go = |options: &CompileOptions| Program::compile(&chain(&engine, 3), vec![cpu(), engine.clone()], options);
    assert!(go(&without()).is_ok());
    let error = go(&CompileOptions::default()).err().unwrap();
    assert_eq!(error.code(), Code::Internal);
    let region = "program 'chain': engine placed-regions-fail:0: region of 3 nodes from 'c1' to 'c3': ";
    assert!(error.message().starts_with(region) && error.message().ends_with("as asked"), "{error}");
    assert!(go(&CompileOptions::default()).is_ok(), "the second one is compiled");
}

#[test]
fn a_failure_of_a_node_names_the_region_and_the_node_and_the_next_run_is_right() {
    let (_, engine) = engine("placed-regions-late", all(2), Mistake::None, 1);
    let (mut builder, x) = Builder::of("late", 1);
    builder.engine = engine.clone();
    let first = builder.named("first", &[x[0]], |x| Ok(x[0] + 1));
    let fails = builder.named("fails", &[first], |x| match x[0] {
        5 => Err(Error::out_of_range("five")),
        other => Ok(other),
    });
    let last = builder.named("last", &[fails], |x| Ok(x[0] * 2));
    builder.output(last);
    let program = compile(&builder.graph, &engine, &CompileOptions::default());
    for round in 0..6 {
        assert_eq!(run(&program, &[round], &RunOptions::default()).ok(), (round != 4).then(|| vec![(round + 1) * 2]));
        let error = run(&program, &[4], &RunOptions::default()).unwrap_err();
        assert_eq!(error.code(), Code::OutOfRange);
        for part in ["region of 3 nodes from 'first' to 'last'", "node 'fails'", "five"] {
            assert!(error.message().contains(part), "{error}");
        }
    }
}

#[test]
fn outputs_in_between_are_there_and_written_in_place() {
    let engine = emulated(5, all(9), 1);
    let (mut builder, x) = Builder::of("between", 1);
    builder.engine = engine.clone();
    let first = builder.op(&[x[0]], |x| x[0] + 1);
    let second = builder.op(&[first], |x| x[0] * 3);
    let third = builder.op(&[second, first], |x| x[0] - x[1]);
    [second, third, second].into_iter().for_each(|value| builder.output(value));
    builder.graph.set_output_engine(0, Some(engine.clone())).unwrap();
    let program = compile(&builder.graph, &engine, &CompileOptions::default());
    assert_eq!(fact(&program, "regions"), 1);
    let line = stream_of(&engine);
    for round in 0..4 {
        let there = number(&engine, Some(&line), -1);
        line.synchronize(u64::MAX).unwrap();
        let here = [number(&cpu(), None, -1), number(&cpu(), None, -1)];
        let outputs = [there, here[0].clone(), here[1].clone()];
        execute(&program, &[number(&cpu(), None, round)], &outputs, &RunOptions::default()).unwrap();
        let second = (round + 1) * 3;
        assert_eq!(read(&outputs[0], Some(&line)), second);
        assert_eq!(here.map(|tensor| read(&tensor, None)), [second - round - 1, second]);
    }
    assert_eq!(races(&engine), Vec::<String>::new());
}
