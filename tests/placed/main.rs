//! Programs with nodes on an emulated device, under its checker: what compile makes of them has no races, whatever the
//! device does first; and a mistake in it would be reported.

mod absent;
mod asked;
mod constants;
mod control;
mod direct;
mod hands;
mod kept;
#[path = "../kit/mod.rs"]
mod kit;
mod launching;
mod overlapped;
mod ports;
mod regions;
mod segments;
mod serial;
mod staged;
mod steps;
mod traced;
mod unused;
mod ways;
mod wrapped;

use crate::kit::emulated::Emulation;
use kit::integers::Builder;
use kit::random::Random;
use kit::run::{cpu, run};
use weir_core::base::Ref;
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Program, RunOptions, ValueId};
use wrapped::{Mistake, Wrapped, engine};

fn mix(x: &[i32]) -> i32 {
    x.iter().fold(17, |sum: i32, &x| sum.wrapping_mul(31).wrapping_add(x))
}

/// For each node whether it is on the device, and what it reads; and the outputs.
struct Plan {
    nodes: Vec<(bool, Vec<usize>)>,
    outputs: Vec<usize>,
}

const INPUTS: usize = 3;

impl Plan {
    /// `host`: one node in so many is the host's.
    fn draw(random: &mut Random, host: usize) -> Plan {
        let n = 2 + random.below(25);
        let read = |i: usize, random: &mut Random| {
            // Mostly what was made lately, so that there are chains side by side.
            let all = INPUTS + i;
            if random.once_in(3) { random.below(all) } else { all - 1 - random.below(all.min(5)) }
        };
        let node = |i: usize, random: &mut Random| {
            let reads = (0..1 + random.below(3)).map(|_| read(i, random)).collect();
            (!random.once_in(host), reads)
        };
        let nodes: Vec<_> = (0..n).map(|i| node(i, random)).collect();
        let outputs = (0..1 + random.below(4)).map(|_| INPUTS + random.below(n)).collect();
        Plan { nodes, outputs }
    }

    fn expected(&self, inputs: &[i32]) -> Vec<i32> {
        let mut values = inputs.to_vec();
        for (_, reads) in &self.nodes {
            let next = mix(&reads.iter().map(|&read| values[read]).collect::<Vec<_>>());
            values.push(next);
        }
        self.outputs.iter().map(|&output| values[output]).collect()
    }

    fn compile(&self, device: &Ref<Engine>) -> Ref<Program> {
        let (mut builder, mut values) = Builder::of("random", INPUTS);
        for (is_there, reads) in &self.nodes {
            builder.engine = if *is_there { device.clone() } else { cpu() };
            let reads: Vec<ValueId> = reads.iter().map(|&read| values[read]).collect();
            values.push(builder.op(&reads, mix));
        }
        self.outputs.iter().for_each(|&output| builder.output(values[output]));
        Program::compile(&builder.graph, vec![cpu(), device.clone()], &CompileOptions::default()).unwrap()
    }
}

fn checked(seed: u64) -> Emulation {
    Emulation { seed, flags: Emulation::CHECK, ..Emulation::default() }
}

fn reports(device: &Wrapped) -> Vec<String> {
    device.inner.races().into_iter().map(|race| race.text).collect()
}

/// An edge of a recording that was left out, and what was reported then.
struct LeftOut {
    before: String,
    then: String,
    found: Vec<String>,
}

/// `runs` with all edges, of which nothing may be reported, and then without each in turn.
fn without_each_edge(name: &str, runs: impl Fn(&Ref<Engine>)) -> Vec<LeftOut> {
    let broken = |edge| {
        let (device, engine) = wrapped::engine(name, checked(1), Mistake::NoEdge(edge), 1);
        runs(&engine);
        (reports(&device), device.edges())
    };
    let (found, (edges, _)) = broken(0);
    assert!(found.is_empty(), "{name}: {found:?}");
    let left_out = (1..=edges).map(|edge| {
        let (found, (_, left_out)) = broken(edge);
        let (before, then) = left_out.expect("an edge less");
        LeftOut { before, then, found }
    });
    left_out.collect()
}

/// How many graphs, and seeds for each: WEIR_TEST_PLACED=1000,100 takes a while.
fn extent() -> (u64, u64) {
    let text = std::env::var("WEIR_TEST_PLACED").unwrap_or_else(|_| "100,10".to_owned());
    let (graphs, seeds) = text.split_once(',').expect("WEIR_TEST_PLACED=graphs,seeds");
    (graphs.parse().unwrap(), seeds.parse().unwrap())
}

#[test]
fn random_graphs_have_no_races_whatever_the_order() {
    let (graphs, seeds) = extent();
    for graph in 0..graphs {
        let mut random = Random::new(graph);
        let plan = Plan::draw(&mut random, 2 + graph as usize % 5);
        for seed in 1..=seeds {
            let streams = 1 + (graph + seed) as u32 % 4;
            let (device, engine) = engine("placed-random", checked(seed), Mistake::None, streams);
            let program = plan.compile(&engine);
            for round in 0..2 {
                let inputs = [round, 7 - round, seed as i32];
                let found = run(&program, &inputs, &RunOptions::default()).unwrap();
                assert_eq!(found, plan.expected(&inputs), "graph {graph}, seed {seed}, {streams} streams");
            }
            assert_eq!(reports(&device), Vec::<String>::new(), "graph {graph}, seed {seed}, {streams} streams");
        }
    }
}

/// All on the device, with one output that depends on all: a host that takes part in between, or sees some of it done
/// before it goes on issuing, orders things, too.
fn on_the_device(graph: u64) -> Plan {
    let mut plan = Plan::draw(&mut Random::new(graph), 2);
    plan.nodes.iter_mut().for_each(|node| node.0 = true);
    let is_read = |value: usize| plan.nodes.iter().any(|(_, reads)| reads.contains(&value));
    let ends = (INPUTS..INPUTS + plan.nodes.len()).filter(|&value| !is_read(value)).collect();
    plan.outputs = vec![INPUTS + plan.nodes.len()];
    plan.nodes.push((true, ends));
    plan
}

/// What the checker says of a run with a mistake; and how many waits and records there were in which one can be made.
fn with(kind: &str, plan: &Plan, mistake: Mistake, streams: u32) -> (Vec<String>, (usize, usize)) {
    let (device, engine) = engine(kind, checked(1), mistake, streams);
    let program = plan.compile(&engine);
    let _ = run(&program, &[1, 2, 3], &RunOptions::default()).unwrap();
    (reports(&device), device.counts())
}

#[test]
fn every_wait_that_is_left_out_is_reported() {
    let mut tried = 0;
    for graph in 0..15 {
        let plan = on_the_device(graph);
        for streams in 1..=4 {
            let (found, counts) = with("placed-no-wait", &plan, Mistake::None, streams);
            assert!(found.is_empty(), "{found:?}");
            for wait in 1..=counts.0 {
                let (found, _) = with("placed-no-wait", &plan, Mistake::NoWait(wait), streams);
                assert!(!found.is_empty(), "graph {graph}, {streams} streams: nobody misses wait {wait}");
                let names = |text: &String| {
                    text.contains("node 'n") || text.contains("copy of '") || text.contains("fetch of '")
                };
                assert!(found.iter().all(names), "{found:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn every_event_that_is_recorded_too_soon_is_reported() {
    let mut tried = 0;
    for graph in 0..15 {
        let plan = on_the_device(graph);
        for streams in 1..=4 {
            let (_, counts) = with("placed-early", &plan, Mistake::None, streams);
            for record in 1..=counts.1 {
                let (found, _) = with("placed-early", &plan, Mistake::EarlyRecord(record), streams);
                assert!(!found.is_empty(), "graph {graph}, {streams} streams: nobody misses record {record}");
                tried += 1;
            }
        }
    }
    assert!(tried > 150, "{tried}");
}

#[test]
fn a_block_that_is_used_again_too_soon_is_reported_with_both_names() {
    let mistake = Mistake::Alias { writer: "node 'b2'", over: "node 'a1'" };
    let (device, engine) = engine("placed-alias", checked(1), mistake, 2);
    let (mut builder, x) = Builder::of("alias", 2);
    builder.engine = engine.clone();
    // Two chains side by side, on two streams.
    let ends = ["a", "b"].map(|chain| {
        let start = x[usize::from(chain == "b")];
        (0..4).fold(start, |value, i| builder.named(&format!("{chain}{i}"), &[value], |x| Ok(mix(x))))
    });
    let end = builder.op(&ends, mix);
    builder.output(end);
    let program = Program::compile(&builder.graph, vec![cpu(), engine], &CompileOptions::default()).unwrap();
    // In the second run the device knows where all outputs are.
    for _ in 0..2 {
        run(&program, &[5, 6], &RunOptions::default()).unwrap();
    }
    let found = reports(&device);
    assert!(found.iter().any(|text| text.contains("node 'b2'") && text.contains("node 'a")), "{found:?}");
}
