//! Programs that are one device's alone, run on streams of it, under its checker.

use crate::control::{drawn, swapping};
use crate::kit::emulated::Emulated;
use crate::kit::integers::Builder;
use crate::kit::random::Random;
use crate::kit::run::{cpu, fact, run};
use crate::ports::{emulated, number, races, read, run_on, stream_of};
use crate::wrapped::{Mistake, engine as wrapped};
use crate::{INPUTS, Plan, checked, extent, mix, on_the_device, reports};
use weir_core::base::{Code, Error, Ref};
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Graph, Program, ReportFormat, RunOptions, ValueId};

/// These tests have one device, one after the other.
static DEVICE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    DEVICE.lock().unwrap_or_else(|broken| broken.into_inner())
}

/// All of the plan on an engine, as are inputs and outputs; its first node reads a constant, too.
fn compile(plan: &Plan, engine: &Ref<Engine>, options: &CompileOptions) -> Ref<Program> {
    let (mut builder, mut values) = Builder::of("alone", INPUTS);
    let seven = builder.constant(7);
    builder.engine = engine.clone();
    for (i, (_, reads)) in plan.nodes.iter().enumerate() {
        let reads = reads.iter().map(|&read| values[read]);
        let reads: Vec<ValueId> = if i == 0 { reads.chain([seven]).collect() } else { reads.collect() };
        values.push(builder.op(&reads, mix));
    }
    plan.outputs.iter().for_each(|&output| builder.output(values[output]));
    (0..INPUTS).for_each(|i| builder.graph.set_input_engine(i, Some(engine.clone())).unwrap());
    (0..plan.outputs.len()).for_each(|o| builder.graph.set_output_engine(o, Some(engine.clone())).unwrap());
    Program::compile(&builder.graph, vec![cpu(), engine.clone()], options).unwrap()
}

fn expected(plan: &Plan, inputs: &[i32]) -> i32 {
    let mut values = inputs.to_vec();
    for (i, (_, reads)) in plan.nodes.iter().enumerate() {
        let reads = reads.iter().map(|&read| values[read]);
        values.push(mix(&if i == 0 { reads.chain([7]).collect::<Vec<_>>() } else { reads.collect() }));
    }
    values[plan.outputs[0]]
}

fn why(program: &Program) -> String {
    let report = program.report(ReportFormat::Text);
    let line = report.lines().find_map(|line| line.strip_prefix("  runs on a stream go to it as kernels do: "));
    line.unwrap().to_owned()
}

#[test]
fn runs_on_several_streams_have_no_races_whatever_the_order() {
    let _alone = alone();
    let (graphs, seeds) = extent();
    for graph in 0..graphs / 5 {
        let plan = on_the_device(graph);
        for seed in 1..=1 + seeds / 3 {
            let engine = emulated(7, checked(seed), 1 + (graph + seed) as u32 % 3);
            let program = compile(&plan, &engine, &CompileOptions::default());
            assert_eq!(why(&program), "yes, on streams of its engine");
            let lines: Vec<_> = (0..3).map(|_| stream_of(&engine)).collect();
            let mut random = Random::new(graph * 100 + seed);
            let mut runs = Vec::new();
            for round in 0..10 {
                let line = &lines[random.below(3)];
                let given = [round, 7 - round, seed as i32];
                let inputs = given.iter().map(|&value| number(&engine, Some(line), value)).collect();
                let output = [number(&engine, Some(line), -99)];
                // What was given to the stream before comes before.
                run_on(&program, Some(line), inputs, &output, &RunOptions::default()).unwrap();
                if random.once_in(4) {
                    line.synchronize(u64::MAX).unwrap();
                }
                let [output] = output;
                runs.push((line, output, expected(&plan, &given)));
            }
            for (line, output, expected) in runs {
                assert_eq!(read(&output, Some(line)), expected, "graph {graph}, seed {seed}");
            }
            assert_eq!(["direct_runs", "replayed_runs", "issued_runs"].map(|key| fact(&program, key)), [10, 0, 0]);
            assert_eq!(races(&engine), Vec::<String>::new(), "graph {graph}, seed {seed}");
        }
    }
}

#[test]
fn a_run_takes_no_event_no_wait_and_no_memory() {
    let _alone = alone();
    let engine = emulated(7, checked(1), 2);
    let (device, line) = (Emulated::of(engine.device()).unwrap(), stream_of(&engine));
    let plan = on_the_device(3);
    let program = compile(&plan, &engine, &CompileOptions::default());
    let inputs: Vec<_> = (0..INPUTS as i32).map(|i| number(&engine, Some(&line), i)).collect();
    let output = [number(&engine, Some(&line), 0)];
    let go = || run_on(&program, Some(&line), inputs.clone(), &output, &RunOptions::default()).unwrap();
    (0..2).for_each(|_| go());
    line.synchronize(u64::MAX).unwrap();
    let before = device.counters();
    (0..3).for_each(|_| go());
    let after = device.counters();
    assert_eq!(after.replays - before.replays, 3);
    assert_eq!((after.launches - before.launches) as usize, 3 * plan.nodes.len());
    let none = [after.copies - before.copies, after.waits - before.waits, after.records - before.records];
    assert_eq!((none, after.allocations - before.allocations), ([0; 3], 0));
    assert_eq!(read(&output[0], Some(&line)), expected(&plan, &[0, 1, 2]));
}

/// The old way is taken where a run is told something, or has to be counted.
#[test]
fn who_needs_the_executor_has_it() {
    let _alone = alone();
    let (engine, plan) = (emulated(7, checked(1), 1), on_the_device(1));
    let line = stream_of(&engine);
    let go = |program: &Ref<Program>, options: &RunOptions| {
        let inputs = (0..INPUTS as i32).map(|i| number(&engine, Some(&line), i)).collect();
        let output = [number(&engine, Some(&line), 0)];
        run_on(program, Some(&line), inputs, &output, options).unwrap();
        assert_eq!(read(&output[0], Some(&line)), expected(&plan, &[0, 1, 2]));
        fact(program, "direct_runs")
    };
    let plain = compile(&plan, &engine, &CompileOptions::default());
    assert_eq!(go(&plain, &RunOptions::default()), 1);
    assert_eq!(go(&plain, &RunOptions { deadline_ns: 60_000_000_000, ..RunOptions::default() }), 1);
    let figures = compile(&plan, &engine, &CompileOptions { statistics: true, ..CompileOptions::default() });
    assert_eq!(go(&figures, &RunOptions::default()), 0);
    let few = compile(&plan, &engine, &CompileOptions { max_concurrent_runs: 1, ..CompileOptions::default() });
    assert_eq!(go(&few, &RunOptions::default()), 0);
    let unrecorded = compile(&plan, &engine, &CompileOptions { without_segments: true, ..CompileOptions::default() });
    assert_eq!(go(&unrecorded, &RunOptions::default()), 1);
    assert_eq!(races(&engine), Vec::<String>::new());
}

#[test]
fn why_a_program_is_not_one_engines_alone() {
    let _alone = alone();
    let engine = emulated(7, checked(1), 4);
    let build = |host_node: bool, home: bool, twice: bool, without_segments: bool| {
        let (mut builder, x) = Builder::of("why", 1);
        let first = if host_node { builder.op(&x, mix) } else { x[0] };
        builder.engine = engine.clone();
        let ends = [0; 2].map(|_| (0..3).fold(first, |value, _| builder.op(&[value], mix)));
        let end = builder.op(&ends, mix);
        builder.output(end);
        builder.graph.set_output_engine(0, home.then(|| engine.clone())).unwrap();
        if twice {
            builder.output(end);
            builder.graph.set_output_engine(1, Some(engine.clone())).unwrap();
        }
        builder.graph.set_input_engine(0, (!host_node).then(|| engine.clone())).unwrap();
        let options = CompileOptions { without_segments, ..CompileOptions::default() };
        why(&Program::compile(&builder.graph, vec![cpu(), engine.clone()], &options).unwrap())
    };
    assert_eq!(build(false, true, false, false), "yes, on streams of its engine");
    assert_eq!(build(true, true, false, false), "no, the host does some of it, or an output is a copy");
    assert_eq!(build(false, false, false, false), "no, not all inputs and outputs are in the engine's memory");
    assert_eq!(build(false, true, true, false), "no, the host does some of it, or an output is a copy");
    assert_eq!(build(false, true, false, true), "no, its work is spread over several streams and not recorded");
}

/// Behind a failure the constants were not copied, whatever was issued.
#[test]
fn after_a_failure_the_constants_are_copied_again() {
    let _alone = alone();
    for seed in 1..=20 {
        let engine = emulated(7, checked(seed), 1);
        let line = stream_of(&engine);
        let (mut builder, x) = Builder::of("fails", 1);
        let seven = builder.constant(7);
        builder.engine = engine.clone();
        let bad = builder.try_op(&x, |x| if x[0] < 0 { Err(Error::invalid("no")) } else { Ok(mix(x)) });
        let end = (0..4).fold(bad, |value, _| builder.op(&[value, seven], mix));
        builder.output(end);
        builder.graph.set_input_engine(0, Some(engine.clone())).unwrap();
        builder.graph.set_output_engine(0, Some(engine.clone())).unwrap();
        let program =
            Program::compile(&builder.graph, vec![cpu(), engine.clone()], &CompileOptions::default()).unwrap();
        // On a stream that does not fail.
        let ready = stream_of(&engine);
        let go = |line, value| {
            let (input, output) = (number(&engine, Some(&ready), value), [number(&engine, Some(&ready), 0)]);
            ready.synchronize(u64::MAX).unwrap();
            run_on(&program, Some(line), vec![input], &output, &RunOptions::default()).map(|()| output)
        };
        let is = |value: i32| (0..4).fold(mix(&[value]), |value, _| mix(&[value, 7]));
        // In front of the first run the stream fails, and so its copies are not made.
        let breaks = builder_of_failure(&engine);
        let [input, output] = [-1, 0].map(|value| number(&engine, Some(&line), value));
        run_on(&breaks, Some(&line), vec![input], &[output], &RunOptions::default()).unwrap();
        let _ = (0..3).map(|value| go(&line, value)).collect::<Vec<_>>();
        let error = line.synchronize(u64::MAX).unwrap_err();
        assert!(error.message().contains("no"), "{error}");
        assert_eq!(go(&line, 1).unwrap_err().code(), Code::FailedPrecondition);
        line.clear_error();
        for value in 1..4 {
            let output = go(&line, value).unwrap();
            assert_eq!(read(&output[0], Some(&line)), is(value), "seed {seed}");
        }
        // Another stream takes the lane: the constants are known to be there.
        let other = stream_of(&engine);
        assert_eq!(read(&go(&other, 9).unwrap()[0], Some(&other)), is(9));
        go(&line, -1).unwrap();
        assert!(line.synchronize(u64::MAX).is_err());
        line.clear_error();
        assert_eq!(read(&go(&line, 5).unwrap()[0], Some(&line)), is(5));
        assert_eq!(races(&engine), Vec::<String>::new(), "seed {seed}");
    }
}

fn builder_of_failure(engine: &Ref<Engine>) -> Ref<Program> {
    let (mut builder, x) = Builder::of("breaks", 1);
    builder.engine = engine.clone();
    let end = builder.try_op(&x, |_| Err(Error::invalid("no")));
    builder.output(end);
    builder.graph.set_input_engine(0, Some(engine.clone())).unwrap();
    builder.graph.set_output_engine(0, Some(engine.clone())).unwrap();
    Program::compile(&builder.graph, vec![cpu(), engine.clone()], &CompileOptions::default()).unwrap()
}

/// All of a graph on an engine, with inputs and outputs.
fn home(mut graph: Graph, ports: [usize; 2], engine: &Ref<Engine>, options: &CompileOptions) -> Ref<Program> {
    (0..ports[0]).for_each(|input| graph.set_input_engine(input, Some(engine.clone())).unwrap());
    (0..ports[1]).for_each(|output| graph.set_output_engine(output, Some(engine.clone())).unwrap());
    Program::compile(&graph, vec![cpu(), engine.clone()], options).unwrap()
}

#[test]
fn branches_and_loops_that_the_device_decides_are_a_streams_own_work() {
    let _alone = alone();
    let (graphs, seeds) = extent();
    let (mut direct, seeds) = (0, 1 + seeds / 8);
    for graph in 0..graphs {
        let expected = Program::compile(&drawn(graph, &cpu()), vec![cpu()], &CompileOptions::default()).unwrap();
        for seed in 1..=seeds {
            let engine = emulated(7, checked(seed), 1 + (graph + seed) as u32 % 3);
            let program = home(drawn(graph, &engine), [3, 3], &engine, &CompileOptions::default());
            let why = why(&program);
            assert!(!why.contains("branches") && !why.contains("streams and"), "{why}");
            if !why.starts_with("yes") {
                // An output that is an input, or named twice; or nothing is left to do.
                assert!(
                    why.starts_with("no, the host does") || why.starts_with("no, no other"),
                    "graph {graph}: {why}"
                );
                continue;
            }
            let lines: Vec<_> = (0..2).map(|_| stream_of(&engine)).collect();
            let mut random = Random::new(graph * 100 + seed);
            let mut given: Vec<_> =
                lines.iter().map(|line| ([0; 3].map(|_| number(&engine, Some(line), 1)), [1; 3])).collect();
            let mut runs = Vec::new();
            for round in 0..8 {
                let at = random.below(2);
                if random.once_in(2) {
                    let values = [round, 7 - round, seed as i32];
                    given[at] = (values.map(|value| number(&engine, Some(&lines[at]), value)), values);
                }
                let (inputs, values) = &given[at];
                let outputs = [0; 3].map(|_| number(&engine, Some(&lines[at]), -99));
                run_on(&program, Some(&lines[at]), inputs.to_vec(), &outputs, &RunOptions::default()).unwrap();
                runs.push((at, outputs, *values));
            }
            for (at, outputs, values) in runs {
                let wanted = run(&expected, &values, &RunOptions::default()).unwrap();
                let found = outputs.map(|output| read(&output, Some(&lines[at])));
                assert_eq!(found[..], wanted, "graph {graph}, seed {seed}");
            }
            assert_eq!(fact(&program, "direct_runs"), 8);
            assert_eq!(races(&engine), Vec::<String>::new(), "graph {graph}, seed {seed}");
            direct += u64::from(fact(&program, "device_loops") + fact(&program, "device_branches") > 0);
        }
    }
    assert!(direct > graphs * seeds / 10, "{direct}");
}

/// What a lane's later run asks of the device; and a launch behind a loop is given other tensors in the same recording.
#[test]
fn a_run_of_a_loop_takes_no_event_no_wait_and_no_memory() {
    let _alone = alone();
    let engine = emulated(7, checked(1), 2);
    let (device, line) = (Emulated::of(engine.device()).unwrap(), stream_of(&engine));
    let (mut builder, x) = Builder::of("swaps", 4);
    builder.engine = engine.clone();
    let (mut condition, c) = Builder::of("more", 2);
    condition.engine = engine.clone();
    let more = condition.op(&[c[0]], |x| i32::from(x[0] > 0));
    let condition = condition.giving(&[more]);
    let (mut body, b) = Builder::of("body", 2);
    body.engine = engine.clone();
    let next = [body.op(&[b[0]], |x| x[0] - 1), body.op(&[b[1]], |x| x[0] + 3)];
    let body = body.giving(&next);
    let first = builder.op(&[x[1]], |x| x[0] * 2);
    let looped = builder.graph.add_while("loop", &condition, &body, &[x[0], first], &[], 1).unwrap();
    let end = builder.op(&[looped.output(1), x[2], x[3]], |x| x[0] * 100 + x[1] * 10 + x[2]);
    builder.output(end);
    let program = home(builder.graph, [4, 1], &engine, &CompileOptions::default());
    assert_eq!(why(&program), "yes, on streams of its engine");
    let tensors = |round: i32| {
        let inputs: Vec<_> = [round, 5, round + 1, round + 2].map(|value| number(&engine, Some(&line), value)).to_vec();
        (inputs, [number(&engine, Some(&line), -99)])
    };
    // All at addresses of their own.
    let all: Vec<_> = (0..4).map(tensors).collect();
    for (round, (inputs, output)) in (0..).zip(&all) {
        let go = || run_on(&program, Some(&line), inputs.clone(), output, &RunOptions::default()).unwrap();
        go();
        line.synchronize(u64::MAX).unwrap();
        let before = device.counters();
        (0..3).for_each(|_| go());
        let after = device.counters();
        let none = [after.waits - before.waits, after.records - before.records];
        assert_eq!((after.replays - before.replays, none, after.allocations - before.allocations), (3, [0; 2], 0));
        assert_eq!(read(&output[0], Some(&line)), (10 + 3 * round) * 100 + (round + 1) * 10 + round + 2);
    }
    assert_eq!(["recordings", "direct_runs"].map(|name| fact(&program, name)), [1, 16]);
    assert!(fact(&program, "updated_steps") > 0);
    assert_eq!(races(&engine), Vec::<String>::new());
}

#[test]
fn where_the_host_decides_a_program_is_not_direct() {
    let _alone = alone();
    let engine = emulated(7, checked(1), 1);
    let by_host = CompileOptions { without_device_control: true, ..CompileOptions::default() };
    let issued = CompileOptions { without_segments: true, ..CompileOptions::default() };
    for options in [by_host, issued] {
        let program = home(swapping(&engine), [4, 3], &engine, &options);
        assert_eq!(why(&program), "no, it has branches or loops that the host decides");
    }
}

#[test]
fn a_device_that_will_not_record_a_loop_leaves_it_to_the_host() {
    let (device, engine) = wrapped("placed-direct-refusing", checked(3), Mistake::NoRecording, 2);
    let line = stream_of(&engine);
    let program = home(swapping(&engine), [4, 3], &engine, &CompileOptions::default());
    for left in [3, 0, 4, 1] {
        let inputs = [left, 10, 20, 1].map(|value| number(&engine, Some(&line), value)).to_vec();
        let outputs = [0; 3].map(|_| number(&engine, Some(&line), -99));
        run_on(&program, Some(&line), inputs, &outputs, &RunOptions::default()).unwrap();
        let (a, b) = if left % 2 == 0 { (10, 20) } else { (20, 10) };
        assert_eq!(outputs.map(|output| read(&output, Some(&line))), [0, a, b]);
    }
    assert_eq!(reports(&device), Vec::<String>::new());
    assert_eq!(["recordings", "direct_runs", "issued_runs"].map(|name| fact(&program, name)), [0, 0, 4]);
    let text = program.report(ReportFormat::Text);
    let said = "why a recording was refused: engine placed-direct-refusing:0: loop: no recordings today";
    assert!(text.contains(said), "{text}");
}
