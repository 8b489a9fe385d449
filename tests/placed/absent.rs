//! Switches and merges around work on engines: the same as an interpreter that knows neither engines nor graphs.

use crate::kit::emulated::Emulation;
use crate::kit::integers::Builder;
use crate::kit::random::Random;
use crate::kit::run::{cpu, execute, fact};
use crate::ports::{node_of, number, read, stream_of};
use crate::wrapped::{Mistake, engine};
use crate::{checked, control, extent, mix, reports};
use weir_core::base::{Code, Ref, Result};
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Graph, NodeId, Program, ReportFormat, RunOptions, ValueId};

#[derive(Clone)]
enum Kind {
    /// Whether it is on the engine, and whether it makes 0 or 1.
    Op {
        is_there: bool,
        is_bit: bool,
    },
    /// The value, the predicate.
    Switch,
    Merge,
    /// x[1] + x[0] & 1 times 7, by a cond whose branches are on the engine or on the host.
    Cond {
        is_there: bool,
    },
}

#[derive(Clone)]
struct Node {
    kind: Kind,
    reads: Vec<usize>,
    /// Nodes that it waits for without data.
    after: Vec<usize>,
}

const INPUTS: usize = 3;

/// Values are those of the inputs, then two for each node, of which most nodes have no second one.
#[derive(Clone, Default)]
struct Drawn {
    nodes: Vec<Node>,
    outputs: Vec<usize>,
}

fn first(node: usize) -> usize {
    INPUTS + 2 * node
}

impl Drawn {
    fn draw(random: &mut Random) -> Drawn {
        let mut drawn = Drawn::default();
        let mut values: Vec<usize> = (0..INPUTS).collect();
        for _ in 0..4 + random.below(16) {
            drawn.add(random, &mut values);
        }
        drawn.outputs = (0..1 + random.below(4)).map(|_| values[values.len() - 1 - random.below(4)]).collect();
        drawn
    }

    fn push(&mut self, kind: Kind, reads: Vec<usize>, after: Vec<usize>) -> usize {
        self.nodes.push(Node { kind, reads, after });
        first(self.nodes.len() - 1)
    }

    fn add(&mut self, random: &mut Random, values: &mut Vec<usize>) {
        let read = |random: &mut Random, values: &[usize]| match random.once_in(3) {
            true => values[random.below(values.len())],
            false => values[values.len() - 1 - random.below(values.len().min(6))],
        };
        let is_there = !random.once_in(3);
        let after = |random: &mut Random, nodes: usize| match nodes > 0 && random.once_in(8) {
            true => vec![random.below(nodes)],
            false => Vec::new(),
        };
        match random.below(8) {
            0 | 1 => {
                let (value, source) = (read(random, values), read(random, values));
                let predicate = self.push(Kind::Op { is_there, is_bit: true }, vec![source], Vec::new());
                let switch = self.push(Kind::Switch, vec![value, predicate], Vec::new());
                values.extend([switch, switch + 1]);
                // Something on each side, and mostly both sides together again.
                let sides = [0, 1].map(|side| {
                    let other = if random.once_in(2) { Vec::new() } else { vec![read(random, values)] };
                    let reads = [vec![switch + side], other].concat();
                    self.push(Kind::Op { is_there: !random.once_in(3), is_bit: false }, reads, Vec::new())
                });
                values.extend(sides);
                if !random.once_in(4) {
                    values.push(self.push(Kind::Merge, sides.to_vec(), Vec::new()));
                }
            }
            2 => {
                let reads: Vec<usize> = (0..2 + random.below(2)).map(|_| read(random, values)).collect();
                let mut tried = self.clone();
                tried.push(Kind::Merge, reads.clone(), Vec::new());
                // Few whose inputs are there together.
                let is_error = rounds().any(|inputs| tried.interpret(&inputs).is_none());
                if !is_error || random.once_in(20) {
                    let merge = self.push(Kind::Merge, reads, after(random, self.nodes.len()));
                    values.extend([merge, merge + 1]);
                }
            }
            3 => {
                let reads = vec![read(random, values), read(random, values)];
                values.push(self.push(Kind::Cond { is_there }, reads, after(random, self.nodes.len())));
            }
            _ => {
                let reads = (0..1 + random.below(3)).map(|_| read(random, values)).collect();
                values.push(self.push(Kind::Op { is_there, is_bit: false }, reads, after(random, self.nodes.len())));
            }
        }
    }

    /// Nodes that an output needs; all, as long as there are none.
    fn needed(&self) -> Vec<bool> {
        let mut needed = vec![self.outputs.is_empty(); self.nodes.len()];
        let node_of = |value: usize| value.checked_sub(INPUTS).map(|value| value / 2);
        self.outputs.iter().filter_map(|&output| node_of(output)).for_each(|node| needed[node] = true);
        for (index, node) in self.nodes.iter().enumerate().rev().filter(|_| !self.outputs.is_empty()) {
            if needed[index] {
                let before = node.reads.iter().filter_map(|&read| node_of(read)).chain(node.after.iter().copied());
                before.for_each(|before| needed[before] = true);
            }
        }
        needed
    }

    /// The outputs, of which those are None that are absent; or None if a merge has two inputs that are there.
    fn interpret(&self, inputs: &[i32]) -> Option<Vec<Option<i32>>> {
        let mut values: Vec<Option<i32>> = inputs.iter().copied().map(Some).collect();
        let (needed, mut was_run) = (self.needed(), Vec::new());
        for node in &self.nodes {
            let given: Option<Vec<i32>> = node.reads.iter().map(|&read| values[read]).collect();
            let waited = node.after.iter().all(|&before| was_run[before]);
            let of = |values: [Option<i32>; 2], ran: bool| (values, ran);
            let (made, ran) = match (&node.kind, given.filter(|_| waited)) {
                (Kind::Merge, _) => {
                    let inputs = node.reads.iter().enumerate();
                    let mut there = inputs.filter_map(|(i, &read)| Some((i as i32, values[read]?)));
                    match (there.next(), there.next()) {
                        (_, Some(_)) if needed[was_run.len()] => return None,
                        (Some((index, value)), _) => of([Some(value), Some(index)], true),
                        (None, _) => of([None; 2], false),
                    }
                }
                (_, None) => of([None; 2], false),
                (Kind::Op { is_bit, .. }, Some(x)) => {
                    of([Some(if *is_bit { mix(&x) & 1 } else { mix(&x) }), None], true)
                }
                (Kind::Switch, Some(x)) => of(if x[1] != 0 { [None, Some(x[0])] } else { [Some(x[0]), None] }, true),
                (Kind::Cond { .. }, Some(x)) => of([Some(x[1].wrapping_add((x[0] & 1) * 7)), None], true),
            };
            values.extend(made);
            was_run.push(ran);
        }
        Some(self.outputs.iter().map(|&output| values[output]).collect())
    }

    /// Values that are there whatever the inputs are, as far as a few of these say, and mostly late ones.
    fn always(&self, random: &mut Random) -> Vec<usize> {
        let all: Vec<usize> = (0..INPUTS).chain((0..self.nodes.len()).map(first)).collect();
        let of = Drawn { nodes: self.nodes.clone(), outputs: all.clone() };
        let found: Vec<_> = rounds().filter_map(|inputs| of.interpret(&inputs)).collect();
        let there: Vec<usize> = (0..all.len()).filter(|&i| found.iter().all(|found| found[i].is_some())).collect();
        (0..INPUTS).map(|_| all[there[there.len() - 1 - random.below(there.len().min(5))]]).collect()
    }

    /// As a graph whose nodes are on this engine or on the host.
    fn graph(&self, on: &Ref<Engine>) -> Graph {
        let (mut builder, inputs) = Builder::of("random", INPUTS);
        let outputs = self.build(&mut builder, &inputs, on);
        builder.giving(&outputs)
    }

    fn build(&self, builder: &mut Builder, inputs: &[ValueId], on: &Ref<Engine>) -> Vec<ValueId> {
        let mut values = inputs.to_vec();
        let mut nodes: Vec<NodeId> = Vec::new();
        let place = |is_there: bool| if is_there { on.clone() } else { cpu() };
        for node in &self.nodes {
            let reads: Vec<ValueId> = node.reads.iter().map(|&read| values[read]).collect();
            let name = builder.name();
            let made = match node.kind {
                Kind::Op { is_there, is_bit } => {
                    builder.engine = place(is_there);
                    let made = builder.op(&reads, move |x| if is_bit { mix(x) & 1 } else { mix(x) });
                    [made, made]
                }
                Kind::Switch => {
                    let switch = builder.graph.add_switch(&name, reads[0], reads[1]).unwrap();
                    [switch.output(0), switch.output(1)]
                }
                Kind::Merge => {
                    let merge = builder.graph.add_merge(&name, &reads).unwrap();
                    [merge.output(0), merge.output(1)]
                }
                Kind::Cond { is_there } => {
                    let branch = |what: &str, more: i32| {
                        let (mut inner, x) = Builder::of(&format!("{name} {what}"), 1);
                        inner.engine = place(is_there);
                        let sum = inner.op(&x, move |x| x[0].wrapping_add(more));
                        inner.giving(&[sum])
                    };
                    let (then, otherwise) = (branch("then", 7), branch("else", 0));
                    builder.engine = cpu();
                    let odd = builder.op(&reads[..1], |x| x[0] & 1);
                    let made = builder.graph.add_cond(&name, odd, &then, &otherwise, &reads[1..]).unwrap().output(0);
                    [made, made]
                }
            };
            let own = node_of(made[0]);
            node.after.iter().for_each(|&before| builder.graph.add_control_edge(nodes[before], own).unwrap());
            values.extend(made);
            nodes.push(own);
        }
        self.outputs.iter().map(|&output| values[output]).collect()
    }
}

fn rounds() -> impl Iterator<Item = [i32; INPUTS]> {
    (0..6).map(|round| [round, 7 - 3 * round, round * round])
}

/// What is in an output that is absent: as before.
const BEFORE: i32 = -99;

fn run_on(program: &Ref<Program>, at: Option<&Ref<Engine>>, inputs: &[i32]) -> Result<Vec<i32>> {
    let stream = at.map(stream_of);
    let home = at.cloned().unwrap_or_else(cpu);
    let of = |value: i32| number(&home, stream.as_ref(), value);
    let inputs: Vec<_> = inputs.iter().map(|&value| of(value)).collect();
    let outputs: Vec<_> = program.outputs().iter().map(|_| of(BEFORE)).collect();
    stream.iter().for_each(|stream| stream.synchronize(u64::MAX).unwrap());
    execute(program, &inputs, &outputs, &RunOptions::default())?;
    Ok(outputs.iter().map(|output| read(output, stream.as_ref())).collect())
}

fn allowing(options: CompileOptions) -> CompileOptions {
    CompileOptions { allow_absent: true, ..options }
}

/// Every third graph's device makes kernels of several nodes.
fn with_regions(seed: u64, graph: u64) -> Emulation {
    Emulation { regions: u64::from(graph.is_multiple_of(3)), ..checked(seed) }
}

#[test]
fn random_switches_and_merges_are_as_interpreted_without_races() {
    let (graphs, seeds) = extent();
    let (mut absent, mut errors, mut conds) = (0, 0, 0);
    for graph in 0..graphs * 2 {
        let drawn = Drawn::draw(&mut Random::new(91_000 + graph));
        for seed in 0..1 + seeds / 16 {
            for (way, options) in control::ways().into_iter().enumerate() {
                let what = format!("graph {graph}, seed {seed}, way {way}");
                let streams = 1 + (graph + seed) as u32 % 3;
                let (device, engine) = engine("placed-absent", with_regions(seed, graph), Mistake::None, streams);
                let mut there = drawn.graph(&engine);
                let is_there = graph % 3 == 1;
                if is_there {
                    (0..INPUTS).for_each(|input| there.set_input_engine(input, Some(engine.clone())).unwrap());
                    (0..drawn.outputs.len())
                        .for_each(|output| there.set_output_engine(output, Some(engine.clone())).unwrap());
                }
                let engines = vec![cpu(), engine.clone()];
                let program = Program::compile(&there, engines, &allowing(options)).expect(&what);
                for inputs in rounds() {
                    let found = run_on(&program, is_there.then_some(&engine), &inputs);
                    match drawn.interpret(&inputs) {
                        None => {
                            errors += 1;
                            assert_eq!(found.unwrap_err().code(), Code::FailedPrecondition, "{what}");
                        }
                        Some(expected) => {
                            absent += expected.iter().filter(|value| value.is_none()).count();
                            let expected: Vec<i32> = expected.iter().map(|value| value.unwrap_or(BEFORE)).collect();
                            let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
                            assert_eq!(found, expected, "{what}, inputs {inputs:?}");
                        }
                    }
                }
                assert_eq!(reports(&device), Vec::<String>::new(), "{what}");
                conds += usize::from(program.report(ReportFormat::Text).contains("by the device"));
            }
        }
    }
    println!("{absent} absent outputs, {errors} merges of two values, {conds} programs with conds by the device");
    assert!(absent > 100 && errors > 0 && conds > 0);
}

/// A loop of so many iterations whose body is this, at most `at_once` at a time.
fn repeated(drawn: &Drawn, on: &Ref<Engine>, at_once: u32) -> Graph {
    let (mut condition, x) = Builder::of("more", 1 + INPUTS);
    let more = condition.op(&[x[0]], |x| i32::from(x[0] > 0));
    let condition = condition.giving(&[more]);
    let (mut body, x) = Builder::of("body", 1 + INPUTS);
    let left = body.op(&[x[0]], |x| x[0] - 1);
    let outputs = drawn.build(&mut body, &x[1..], on);
    let body = body.giving(&[&[left], &outputs[..]].concat());
    let (mut main, x) = Builder::of("main", 1 + INPUTS);
    let looped = main.graph.add_while("loop", &condition, &body, &x, &[], at_once).unwrap();
    (1..=INPUTS).for_each(|output| main.output(looped.output(output)));
    main.graph
}

#[test]
fn switches_in_loops_whose_iterations_overlap_are_as_interpreted_without_races() {
    let (graphs, _) = extent();
    let mut loops = 0;
    for graph in 0..graphs * 2 {
        let random = &mut Random::new(95_000 + graph);
        let mut drawn = Drawn::draw(random);
        drawn.outputs = drawn.always(random);
        let at_once = 1 + graph as u32 % 4;
        let (device, engine) =
            engine("placed-absent-loop", with_regions(graph, graph), Mistake::None, 1 + graph as u32 % 2);
        let engines = vec![cpu(), engine.clone()];
        let program = Program::compile(&repeated(&drawn, &engine, at_once), engines, &CompileOptions::default());
        let program = match program {
            Ok(program) => program,
            Err(error) => {
                assert!(error.message().contains("can leave it absent"), "graph {graph}: {error}");
                continue;
            }
        };
        loops += 1;
        for inputs in rounds() {
            let left = inputs[0] % 5;
            let expected = (0..left).try_fold(inputs.to_vec(), |values, _| {
                let values: Option<Vec<i32>> = drawn.interpret(&values)?.into_iter().collect();
                Some(values.expect("an output that cannot be absent"))
            });
            let found = run_on(&program, None, &[&[left], &inputs[..]].concat());
            match expected {
                None => assert_eq!(found.unwrap_err().code(), Code::FailedPrecondition, "graph {graph}"),
                Some(expected) => assert_eq!(found.unwrap(), expected, "graph {graph}, {inputs:?}"),
            }
        }
        assert_eq!(reports(&device), Vec::<String>::new(), "graph {graph}");
    }
    println!("{loops} loops");
    assert!(loops > graphs, "{loops}");
}

#[test]
fn conds_that_were_switches_stay_on_the_engine() {
    let (device, engine) = engine("placed-absent-cond", checked(1), Mistake::None, 1);
    let (mut builder, x) = Builder::of("main", 2);
    builder.engine = engine.clone();
    let odd = builder.op(&[x[0]], |x| x[0] & 1);
    let value = builder.op(&[x[1]], |x| x[0] * 10);
    let switch = builder.graph.add_switch("switch", value, odd).unwrap();
    let (no, yes) = (builder.op(&[switch.output(0)], |x| x[0] + 1), builder.op(&[switch.output(1)], |x| x[0] + 2));
    let merged = builder.graph.add_merge("merge", &[no, yes]).unwrap().output(0);
    let behind = builder.op(&[merged], |x| -x[0]);
    builder.output(behind);
    let program = Program::compile(&builder.graph, vec![cpu(), engine], &CompileOptions::default()).unwrap();
    for i in 0..4 {
        let found = run_on(&program, None, &[i, 7]).unwrap();
        assert_eq!(found, [-(71 + (i & 1))]);
    }
    let report = program.report(ReportFormat::Text);
    assert!(report.contains("'merge' on placed-absent-cond:0: by the device"), "{report}");
    assert_eq!(fact(&program, "fetches"), 1, "{report}");
    assert_eq!(reports(&device), Vec::<String>::new());
}

#[test]
fn which_side_a_merge_has_taken_stays_on_the_engine_too() {
    let (device, engine) = engine("placed-absent-index", checked(1), Mistake::None, 1);
    let (mut builder, x) = Builder::of("main", 2);
    builder.engine = engine.clone();
    let odd = builder.op(&[x[0]], |x| x[0] & 1);
    let value = builder.op(&[x[1]], |x| x[0] * 10);
    let switch = builder.graph.add_switch("switch", value, odd).unwrap();
    let (no, yes) = (builder.op(&[switch.output(0)], |x| x[0] + 1), builder.op(&[switch.output(1)], |x| x[0] + 2));
    // The true side first: its index is 0.
    let merge = builder.graph.add_merge("merge", &[yes, no]).unwrap();
    let both = builder.op(&[merge.output(0), merge.output(1)], |x| x[0] * 2 + x[1]);
    builder.output(both);
    let program = Program::compile(&builder.graph, vec![cpu(), engine], &CompileOptions::default()).unwrap();
    for i in 0..4 {
        let is_odd = i & 1;
        assert_eq!(run_on(&program, None, &[i, 7]).unwrap(), [(71 + is_odd) * 2 + 1 - is_odd]);
    }
    let report = program.report(ReportFormat::Text);
    assert!(report.contains("'merge' on placed-absent-index:0: by the device"), "{report}");
    assert_eq!(fact(&program, "fetches"), 1, "{report}");
    assert_eq!(reports(&device), Vec::<String>::new());
}
