//! Branches and loops that are work of one engine: decided by the device, by the host on the device's data, and as on
//! the CPU.

use crate::kit::emulated::Emulation;
use crate::kit::integers::Builder;
use crate::kit::random::Random;
use crate::kit::run::{cpu, execute, fact, run};
use crate::ports::{number, read, stream_of};
use crate::wrapped::{Mistake, engine};
use crate::{LeftOut, checked, extent, mix, reports, without_each_edge};
use weir_core::base::{Code, Ref, Result};
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Graph, Program, ReportFormat, RunOptions, ValueId};

/// Options for the ways: the device decides where it can; the host does, with recordings and without.
pub fn ways() -> [CompileOptions; 3] {
    let by_host = CompileOptions { without_device_control: true, ..CompileOptions::default() };
    let issued = CompileOptions { without_segments: true, ..CompileOptions::default() };
    [CompileOptions::default(), by_host, issued]
}

pub fn compile(graph: &Graph, engine: &Ref<Engine>, options: &CompileOptions) -> Ref<Program> {
    Program::compile(graph, vec![cpu(), engine.clone()], options).unwrap()
}

/// A graph of nodes on `on`, of several engines any, with branches and loops inside of one another down to `depth`.
pub struct Draws<'a> {
    pub random: &'a mut Random,
    pub on: Vec<Ref<Engine>>,
}

impl Draws<'_> {
    fn engine(&mut self) -> Ref<Engine> {
        match &self.on[..] {
            [only] => only.clone(),
            all => all[self.random.below(all.len())].clone(),
        }
    }

    /// A graph with so many inputs and outputs.
    pub fn graph(&mut self, name: &str, inputs: usize, outputs: usize, depth: u32) -> Graph {
        let (mut builder, mut values) = Builder::of(name, inputs);
        builder.engine = self.engine();
        for _ in 0..self.random.below(4) + usize::from(depth > 0) {
            self.node(&mut builder, &mut values, depth);
        }
        let outputs: Vec<ValueId> = (0..outputs).map(|_| self.read(&values)).collect();
        builder.giving(&outputs)
    }

    fn read(&mut self, values: &[ValueId]) -> ValueId {
        let last = values.len().min(4);
        match self.random.once_in(3) {
            true => values[self.random.below(values.len())],
            false => values[values.len() - 1 - self.random.below(last)],
        }
    }

    fn reads(&mut self, values: &[ValueId], count: usize) -> Vec<ValueId> {
        (0..count).map(|_| self.read(values)).collect()
    }

    fn node(&mut self, builder: &mut Builder, values: &mut Vec<ValueId>, depth: u32) {
        let kind = if depth == 0 { 0 } else { self.random.below(6) };
        let name = builder.name();
        builder.engine = self.engine();
        match kind {
            1 => {
                let count = 1 + self.random.below(3);
                let (inputs, outputs) = (1 + self.random.below(3), 1 + self.random.below(2));
                let branches: Vec<Graph> =
                    (0..count.max(2)).map(|i| self.graph(&format!("{name} {i}"), inputs, outputs, depth - 1)).collect();
                let (choice, inputs) = (self.read(values), self.reads(values, inputs));
                let is_cond = self.random.once_in(2);
                let choice = builder.op(&[choice], move |x| if is_cond { x[0] & 1 } else { x[0] % 4 });
                let node = match is_cond {
                    true => builder.graph.add_cond(&name, choice, &branches[0], &branches[1], &inputs),
                    false => {
                        let all: Vec<&Graph> = branches.iter().collect();
                        builder.graph.add_case(&name, choice, &all, &inputs)
                    }
                };
                values.extend((0..outputs).map(|output| node.as_ref().unwrap().output(output)));
            }
            2 | 3 => {
                let (variables, invariants) = (1 + self.random.below(3), self.random.below(2));
                let (mut condition, x) = Builder::of(&format!("{name} condition"), variables + invariants);
                condition.engine = self.engine();
                let more = condition.op(&[x[0]], |x| i32::from(x[0] > 0));
                let condition = condition.giving(&[more]);
                let body = self.body(&format!("{name} body"), variables, invariants, depth - 1);
                let count = self.read(values);
                let count = builder.op(&[count], |x| x[0] & 3);
                let mut first = vec![count];
                first.extend(self.reads(values, variables - 1));
                let shared = self.reads(values, invariants);
                let at_once = 1 + values.len() as u32 % 5;
                let node = builder.graph.add_while(&name, &condition, &body, &first, &shared, at_once).unwrap();
                values.extend((0..variables).map(|output| node.output(output)));
            }
            _ if self.random.once_in(8) => {
                // Half of them in the engine's memory.
                let value = self.random.below(1000) as i32;
                let engine = if value % 2 == 0 { cpu() } else { self.engine() };
                let stream = engine.accelerator().map(|_| stream_of(&engine));
                let constant = number(&engine, stream.as_ref(), value);
                stream.iter().for_each(|stream| stream.synchronize(u64::MAX).unwrap());
                let name = builder.name();
                values.push(builder.graph.add_constant(&name, constant).unwrap());
            }
            _ => {
                let count = 1 + self.random.below(3);
                let reads = self.reads(values, count);
                values.push(builder.op(&reads, mix));
            }
        }
    }

    /// A loop's: the first variable is counted down, the others are anything.
    fn body(&mut self, name: &str, variables: usize, invariants: usize, depth: u32) -> Graph {
        let (mut builder, mut values) = Builder::of(name, variables + invariants);
        builder.engine = self.engine();
        let left = builder.op(&[values[0]], |x| x[0] - 1);
        for _ in 0..self.random.below(4) {
            self.node(&mut builder, &mut values, depth);
        }
        let mut outputs = vec![left];
        for variable in 1..variables {
            // Mostly what was computed, and often variables that change places.
            let other = 1 + (variable - 1 + self.random.below(variables - 1)) % (variables - 1);
            outputs.push(if self.random.once_in(3) { values[other] } else { self.read(&values) });
        }
        builder.giving(&outputs)
    }
}

/// A run with tensors on the engine.
fn run_there(program: &Ref<Program>, engine: &Ref<Engine>, inputs: &[i32]) -> Result<Vec<i32>> {
    let stream = stream_of(engine);
    let inputs: Vec<_> = inputs.iter().map(|&value| number(engine, Some(&stream), value)).collect();
    let outputs: Vec<_> = program.outputs().iter().map(|_| number(engine, Some(&stream), -99)).collect();
    stream.synchronize(u64::MAX).unwrap();
    execute(program, &inputs, &outputs, &RunOptions::default())?;
    Ok(outputs.iter().map(|output| read(output, Some(&stream))).collect())
}

/// The same graph on an engine or another.
pub fn drawn(graph: u64, on: &Ref<Engine>) -> Graph {
    let mut random = Random::new(7000 + graph);
    Draws { random: &mut random, on: vec![on.clone()] }.graph("random", 3, 3, 3)
}

#[test]
fn random_branches_and_loops_give_the_same_in_all_ways_without_races() {
    let (graphs, seeds) = extent();
    let (mut kept, seeds) = (0, 1 + seeds / 8);
    for graph in 0..graphs {
        let expected = compile(&drawn(graph, &cpu()), &cpu(), &CompileOptions::default());
        for seed in 0..seeds {
            for (way, options) in ways().iter().enumerate() {
                let streams = 1 + (graph + seed) as u32 % 3;
                let (device, engine) = engine("placed-control", checked(seed), Mistake::None, streams);
                let mut there = drawn(graph, &engine);
                let is_there = graph % 2 == 1;
                if is_there {
                    (0..3).for_each(|input| there.set_input_engine(input, Some(engine.clone())).unwrap());
                    (0..3).for_each(|output| there.set_output_engine(output, Some(engine.clone())).unwrap());
                }
                let program = compile(&there, &engine, options);
                for round in 0..3 {
                    let inputs = [round, 7 - round, seed as i32];
                    let found = match is_there {
                        true => run_there(&program, &engine, &inputs),
                        false => run(&program, &inputs, &RunOptions::default()),
                    };
                    let found = found.unwrap_or_else(|error| panic!("graph {graph}, seed {seed}: {error}"));
                    let wanted = run(&expected, &inputs, &RunOptions::default()).unwrap();
                    assert_eq!(found, wanted, "graph {graph}, seed {seed}, way {way}, round {round}");
                }
                assert_eq!(reports(&device), Vec::<String>::new(), "graph {graph}, seed {seed}, way {way}");
                let report = program.report(ReportFormat::Text);
                let who = ["by the device", "by the host: the compile", "by the host: the compile"][way];
                kept += u64::from(report.contains(&format!("placed-control:0: {who}")));
                assert!(!report.contains("why a recording was refused"), "{report}");
            }
        }
    }
    assert!(kept > graphs * seeds, "{kept}");
}

/// while (left > 0) (left, a, b) = (left - 1, b, a); with a scale that stays.
pub fn swapping(on: &Ref<Engine>) -> Graph {
    let (mut condition, x) = Builder::of("more", 4);
    condition.engine = on.clone();
    let more = condition.op(&[x[0]], |x| i32::from(x[0] > 0));
    let condition = condition.giving(&[more]);
    let (mut body, x) = Builder::of("swap", 4);
    body.engine = on.clone();
    let left = body.op(&[x[0], x[3]], |x| x[0] - x[1]);
    let body = body.giving(&[left, x[2], x[1]]);
    let (mut builder, x) = Builder::of("swapping", 4);
    let looped = builder.graph.add_while("loop", &condition, &body, &x[..3], &x[3..], 1).unwrap();
    (0..3).for_each(|output| builder.output(looped.output(output)));
    builder.graph
}

#[test]
fn variables_change_places_and_loops_may_not_run_at_all() {
    for (way, options) in ways().iter().enumerate() {
        let (device, engine) = engine("placed-control-swap", checked(3), Mistake::None, 2);
        let program = compile(&swapping(&engine), &engine, options);
        for left in [0, 1, 2, 7, 0] {
            let found = run(&program, &[left, 10, 20, 1], &RunOptions::default()).unwrap();
            let (a, b) = if left % 2 == 0 { (10, 20) } else { (20, 10) };
            assert_eq!(found, [0, a, b], "way {way}, {left} iterations");
        }
        assert_eq!(reports(&device), Vec::<String>::new());
    }
}

#[test]
fn tensors_of_the_runs_own_are_copied_before_and_behind() {
    for (way, options) in ways().iter().enumerate() {
        let (device, engine) = engine("placed-control-own", checked(5), Mistake::None, 1);
        let stream = stream_of(&engine);
        let mut graph = swapping(&engine);
        (0..4).for_each(|input| graph.set_input_engine(input, Some(engine.clone())).unwrap());
        (0..3).for_each(|output| graph.set_output_engine(output, Some(engine.clone())).unwrap());
        let program = compile(&graph, &engine, options);
        for round in 0..6 {
            let inputs = [round, 5, 6, 1].map(|value| number(&engine, Some(&stream), value));
            let outputs = [-1; 3].map(|value| number(&engine, Some(&stream), value));
            stream.synchronize(u64::MAX).unwrap();
            execute(&program, &inputs, &outputs, &RunOptions::default()).unwrap();
            let found: Vec<i32> = outputs.iter().map(|output| read(output, Some(&stream))).collect();
            let expected = if round % 2 == 0 { [0, 5, 6] } else { [0, 6, 5] };
            assert_eq!(found, expected, "way {way}, round {round}");
        }
        assert_eq!(reports(&device), Vec::<String>::new(), "way {way}");
    }
}

/// What the report says of the node.
fn said(program: &Program, node: &str) -> String {
    let report = program.report(ReportFormat::Text);
    let line = report.lines().find(|line| line.starts_with(&format!("  '{node}' ")));
    line.unwrap_or_else(|| panic!("nothing of '{node}' in {report}")).to_owned()
}

#[test]
fn what_is_no_work_of_one_engine_goes_through_the_hosts_executor() {
    let (_, engine) = engine("placed-control-mixed", Emulation::default(), Mistake::None, 1);
    let (mut condition, x) = Builder::of("more", 1);
    let more = condition.named("print", &[x[0]], |x| Ok(i32::from(x[0] > 0)));
    let condition = condition.giving(&[more]);
    let (mut inner, x) = Builder::of("inner", 1);
    inner.engine = engine.clone();
    let end = inner.op(&[x[0]], |x| x[0] * 2);
    let inner = inner.giving(&[end]);
    let (mut body, x) = Builder::of("body", 1);
    body.engine = engine.clone();
    let left = body.op(&[x[0]], |x| x[0] - 1);
    let chosen = body.graph.add_cond("twice", left, &inner, &inner, &[left]).unwrap();
    let half = body.op(&[chosen.output(0)], |x| x[0] / 2);
    let body = body.giving(&[half]);
    let (mut builder, x) = Builder::of("mixed", 1);
    let looped = builder.graph.add_while("loop", &condition, &body, &x, &[], 1).unwrap();
    builder.output(looped.output(0));
    let program = compile(&builder.graph, &engine, &CompileOptions::default());
    for left in [3, 0, 2, 5] {
        assert_eq!(run(&program, &[left], &RunOptions::default()).unwrap(), [0]);
    }
    assert_eq!(said(&program, "loop"), "  'loop' through the host's executor: node 'print' is the host's");
    assert!(said(&program, "loop/twice").starts_with("  'loop/twice' on placed-control-mixed:0: by the "));
}

#[test]
fn the_report_says_who_decides_and_why() {
    let (_, engine) = engine("placed-control-said", Emulation::default(), Mistake::None, 1);
    let [by_device, by_host, issued] = ways().map(|options| compile(&swapping(&engine), &engine, &options));
    assert_eq!(said(&by_host, "loop"), "  'loop' on placed-control-said:0: by the host: the compile options say so");
    assert_eq!(
        said(&issued, "loop"),
        "  'loop' on placed-control-said:0: by the host: the compile options want nothing recorded"
    );
    assert_eq!(said(&by_device, "loop"), "  'loop' on placed-control-said:0: by the device");
    let facts = |program: &Program| ["device_loops", "device_branches", "inner_nodes"].map(|name| fact(program, name));
    assert_eq!((facts(&by_device), facts(&by_host)), ([1, 0, 3], [0, 0, 3]));
}

#[test]
fn a_failure_inside_names_the_node_and_the_engine() {
    for (way, options) in ways().iter().enumerate() {
        let (device, engine) = engine("placed-control-fail", checked(4), Mistake::None, 1);
        let (mut condition, x) = Builder::of("more", 1);
        condition.engine = engine.clone();
        let more = condition.op(&[x[0]], |x| i32::from(x[0] > 0));
        let condition = condition.giving(&[more]);
        let (mut body, x) = Builder::of("body", 1);
        body.engine = engine.clone();
        let next = body.named("divide", &[x[0]], |x| {
            if x[0] == 3 { Err(weir_core::base::Error::out_of_range("three")) } else { Ok(x[0] - 1) }
        });
        let body = body.giving(&[next]);
        let (mut builder, x) = Builder::of("failing", 1);
        let looped = builder.graph.add_while("loop", &condition, &body, &x, &[], 1).unwrap();
        builder.output(looped.output(0));
        let program = compile(&builder.graph, &engine, options);
        for start in [2, 5, 2, 2, 2, 4, 1] {
            let found = run(&program, &[start], &RunOptions::default());
            if start < 3 {
                assert_eq!(found.unwrap(), [0], "way {way}");
                continue;
            }
            let error = found.unwrap_err();
            assert_eq!(error.code(), Code::OutOfRange);
            let text = error.message();
            assert!(
                text.contains("placed-control-fail:0") && text.contains("node 'divide'") && text.contains("three"),
                "way {way}: {text}"
            );
        }
        assert_eq!(reports(&device), Vec::<String>::new());
    }
}

#[test]
fn a_loop_that_the_host_drives_ends_between_two_iterations() {
    for options in &ways()[1..] {
        let (device, engine) = engine("placed-control-endless", Emulation::default(), Mistake::None, 1);
        let (mut condition, x) = Builder::of("for ever", 1);
        condition.engine = engine.clone();
        let more = condition.op(&[x[0]], |_| 1);
        let condition = condition.giving(&[more]);
        let (mut body, x) = Builder::of("body", 1);
        body.engine = engine.clone();
        let next = body.op(&[x[0]], |x| x[0].wrapping_add(1));
        let body = body.giving(&[next]);
        let (mut builder, x) = Builder::of("endless", 1);
        let looped = builder.graph.add_while("loop", &condition, &body, &x, &[], 1).unwrap();
        builder.output(looped.output(0));
        let program = compile(&builder.graph, &engine, options);
        for _ in 0..3 {
            let options = RunOptions { deadline_ns: 20_000_000, ..RunOptions::default() };
            let error = run(&program, &[1], &options).unwrap_err();
            assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
        }
        let launches = device.inner.counters().launches;
        assert!(launches > 6, "{launches}");
    }
}

#[test]
fn later_runs_allocate_nothing_on_the_device() {
    for options in &ways() {
        let (device, engine) = engine("placed-control-later", Emulation::default(), Mistake::None, 1);
        let program = compile(&swapping(&engine), &engine, options);
        (0..2).for_each(|_| drop(run(&program, &[3, 1, 2, 1], &RunOptions::default()).unwrap()));
        let before = device.inner.counters().allocations;
        (0..5).for_each(|left| drop(run(&program, &[left, 1, 2, 1], &RunOptions::default()).unwrap()));
        assert_eq!(device.inner.counters().allocations, before);
    }
}

#[test]
fn a_run_is_one_call_whatever_the_number_of_iterations() {
    let (device, engine) = engine("placed-control-one", checked(2), Mistake::None, 1);
    let program = compile(&swapping(&engine), &engine, &CompileOptions::default());
    let mut calls = Vec::new();
    for left in [3, 4, 5, 0, 50] {
        let before = device.inner.counters();
        assert_eq!(run(&program, &[left, 7, 8, 1], &RunOptions::default()).unwrap()[0], 0);
        let after = device.inner.counters();
        assert_eq!(after.replays - before.replays, 1);
        calls.push((after.waits - before.waits, after.records - before.records));
    }
    assert!(calls[2..].iter().all(|call| *call == calls[1]), "{calls:?}");
    assert_eq!(["recordings", "segments", "replayed_runs"].map(|name| fact(&program, name)), [2, 1, 4]);
    assert_eq!(reports(&device), Vec::<String>::new());
}

/// In the bodies of recordings, too. What comes before a branch or a loop comes before all of it: that may be more than
/// it needs.
#[test]
fn every_edge_inside_that_is_left_out_is_reported() {
    let (mut tried, mut missed) = (0, 0);
    for graph in [0, 1, 3, 5] {
        let left_out = without_each_edge("placed-control-edge", |engine| {
            let program = compile(&drawn(graph, engine), engine, &CompileOptions::default());
            for inputs in [[1, 2, 3], [2, 3, 1], [5, 0, 4]] {
                let _ = run(&program, &inputs, &RunOptions::default());
            }
        });
        for LeftOut { before, then, found } in left_out {
            if found.is_empty() {
                // Into a branch or a loop, for the sake of another part of it.
                assert!(graph != 0 && graph != 5, "graph {graph}: nobody misses the edge from {before} to {then}");
                missed += 1;
                continue;
            }
            assert!(found.iter().all(|text| text.contains("missing edge: ")), "{found:?}");
            tried += 1;
        }
    }
    assert!(tried > 30 && missed <= 3, "{tried}, and {missed} not");
}

#[test]
fn a_device_that_will_not_record_leaves_it_to_the_host() {
    let (device, engine) = engine("placed-control-refusing", checked(3), Mistake::NoRecording, 2);
    let program = compile(&swapping(&engine), &engine, &CompileOptions::default());
    for left in [3, 0, 4, 1] {
        let found = run(&program, &[left, 10, 20, 1], &RunOptions::default()).unwrap();
        let (a, b) = if left % 2 == 0 { (10, 20) } else { (20, 10) };
        assert_eq!(found, [0, a, b]);
    }
    assert_eq!(reports(&device), Vec::<String>::new());
    assert_eq!(["recordings", "replayed_runs", "issued_runs"].map(|name| fact(&program, name)), [0, 0, 4]);
    let text = program.report(ReportFormat::Text);
    assert!(text.contains("why a recording was refused: engine placed-control-refusing:0: node 'loop': "), "{text}");
}
