//! Drawn graphs on several streams of a CUDA engine, in a hundred orders of the driver's, under its checker: what they
//! give has the processor's bits, and nothing is used without order. And what keeps the order is left out, one by one:
//! the checker reports each.

use crate::kit::{fake, raw, with_driver};
use crate::programs::{bound, cpu, floats, gpu, run, words};
use crate::random::Random;
use std::ffi::c_void;
use weir_core::base::{Desc, Ref, dtype};
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Graph, Program, ValueId};
use weir_core::ops::{Binary, weir_binary_op_value as Op};

const LEN: i64 = 64;
const OPS: [Op; 4] = [Op::WEIR_BINARY_ADD, Op::WEIR_BINARY_SUB, Op::WEIR_BINARY_MUL, Op::WEIR_BINARY_MAX];

/// A graph of functions of two arrays; each is on the device or, one in `host`, on the host.
fn drawn(random: &mut Random, engine: &Ref<Engine>, host: usize) -> Graph {
    let mut graph = Graph::new("drawn");
    let desc = Desc::new(dtype::F32, &[LEN]);
    let mut values: Vec<ValueId> = (0..2).map(|i| graph.add_input(&format!("input {i}"), desc).unwrap()).collect();
    for i in 0..3 + random.below(12) {
        let op = OPS[random.below(OPS.len())];
        let on = if random.once_in(host) { cpu() } else { engine.clone() };
        let kernel = bound::<Binary>(&on, Binary::desc(op));
        let inputs = [(); 2].map(|()| values[values.len() - 1 - random.below(values.len().min(5))]);
        values.push(graph.add_kernel(&format!("n{i}"), kernel, &inputs, 1).unwrap().output(0));
    }
    for (i, &value) in values[2..].iter().rev().take(3).enumerate() {
        graph.add_output(&format!("output {i}"), value).unwrap();
    }
    graph
}

fn compile(graph: &Graph, engine: &Ref<Engine>, without_segments: bool) -> Ref<Program> {
    let mut engines = vec![cpu()];
    if engine.kind() != engines[0].kind() {
        engines.push(engine.clone());
    }
    let options = CompileOptions { without_segments, ..CompileOptions::default() };
    Program::compile(graph, engines, &options).unwrap()
}

/// The outputs of so many runs, each with inputs of its own.
fn results(program: &Ref<Program>, runs: usize) -> Vec<Vec<u32>> {
    let host = cpu();
    let outputs: Vec<_> = program.outputs().iter().map(|_| floats(&host, &[LEN], &[0.0; LEN as usize])).collect();
    let input = |by: f32, round: usize| {
        let values: Vec<f32> = (0..LEN).map(|i| (i as f32 - 20.0) * by + round as f32).collect();
        floats(&host, &[LEN], &values)
    };
    let mut found = Vec::new();
    for round in 0..runs {
        let inputs = [input(0.25, round), input(-0.5, round)];
        run(program, &inputs[..program.inputs().len()], &outputs);
        found.extend(outputs.iter().map(words));
    }
    found
}

/// Issued, recorded and replayed; the driver does one thing after the other, whatever may be first.
#[test]
fn drawn_graphs_have_the_processors_bits_in_a_hundred_orders() {
    for version in ["12000", "12040", "13000"] {
        let ran = with_driver(&[("VERSION", version), ("SEED", "1")], || {
            // The kernels stay loaded.
            let _kept = gpu(1);
            let mut replays = 0;
            for seed in 0..100 {
                fake::reseed(seed);
                let (streams, host) = (1 + seed as u32 % 4, 2 + seed as usize % 9);
                let graph = |engine: &Ref<Engine>| drawn(&mut Random::new(seed / 4), engine, host);
                let results =
                    [cpu(), gpu(streams)].map(|engine| results(&compile(&graph(&engine), &engine, seed % 5 == 4), 3));
                assert_eq!(results[1], results[0], "seed {seed}, {streams} streams");
                replays = fake::count("cuGraphLaunch");
            }
            assert!(replays > 50, "{replays}");
        });
        if ran.is_none() {
            return;
        }
    }
}

/// As many threads of the driver's as there is work for.
#[test]
fn drawn_graphs_have_the_processors_bits_on_the_drivers_threads() {
    with_driver(&[], || {
        let _kept = gpu(1);
        for seed in 0..20 {
            let graph = |engine: &Ref<Engine>| drawn(&mut Random::new(seed), engine, 2 + seed as usize % 9);
            let results =
                [cpu(), gpu(2 + seed as u32 % 3)].map(|engine| results(&compile(&graph(&engine), &engine, false), 3));
            assert_eq!(results[1], results[0], "seed {seed}");
        }
    });
}

/// All on the device, and one output that depends on all: a host that waits in between, or sees that something is done
/// before it goes on issuing, orders things, too.
fn on_the_device(seed: u64, engine: &Ref<Engine>) -> Graph {
    let random = &mut Random::new(seed);
    let add = bound::<Binary>(engine, Binary::desc(OPS[0]));
    let mut graph = Graph::new("device");
    let of = Desc::new(dtype::F32, &[LEN]);
    let mut values: Vec<ValueId> = vec![graph.add_input("input", of).unwrap()];
    let mut loose: Vec<ValueId> = values.clone();
    let mut add = |inputs: [ValueId; 2], values: &mut Vec<ValueId>| {
        let name = format!("n{}", values.len());
        values.push(graph.add_kernel(&name, add.clone(), &inputs, 1).unwrap().output(0));
        values[values.len() - 1]
    };
    for _ in 0..4 + random.below(6) {
        let inputs = [(); 2].map(|()| values[values.len() - 1 - random.below(values.len().min(4))]);
        let made = add(inputs, &mut values);
        loose.retain(|value| !inputs.contains(value));
        loose.push(made);
    }
    let end = loose.into_iter().reduce(|left, right| add([left, right], &mut values));
    graph.add_output("end", end.unwrap()).unwrap();
    graph
}

/// What the checker finds in a program's runs, each of which is the `run`-th of a lane of its own, if the n-th call of
/// a function in it is left out; n goes up to how many there are in such a run, but for the `last` ones. Gives how many
/// there were.
fn every_one_is_missed(function: &str, without_segments: bool, run: usize, last: u64) -> u64 {
    let _kept = gpu(1);
    let mut tried = 0;
    for seed in 0..4 {
        for streams in 2..=3 {
            let engine = gpu(streams);
            let graph = on_the_device(seed, &engine);
            let mut counted = None;
            for call in 0..=100 {
                if call + last > counted.unwrap_or(100) {
                    break;
                }
                fake::reseed(seed);
                let program = compile(&graph, &engine, without_segments);
                drop(results(&program, run - 1));
                let (before, calls) = (fake::races(), fake::count(function));
                if call > 0 {
                    fake::fail(function, call, 0);
                }
                drop(results(&program, 1));
                // Whoever replays may do so in another order now.
                (0..20).take_while(|_| call > 0 && fake::races() == before).for_each(|_| drop(results(&program, 1)));
                let found = fake::races() - before;
                // What nobody waits for any more is to be over before its memory goes.
                let context = engine.accelerator().unwrap().native_handle().unwrap();
                raw!(cuCtxSetCurrent(context as usize as *mut c_void): *mut c_void);
                raw!(cuCtxSynchronize():);
                match counted {
                    None => {
                        assert_eq!(found, 0);
                        counted = Some(fake::count(function) - calls);
                    }
                    Some(_) => {
                        assert!(found > 0, "seed {seed}, {streams} streams: nobody misses {function} {call}");
                        tried += 1;
                    }
                }
            }
        }
    }
    tried
}

#[test]
fn every_wait_that_is_left_out_is_reported() {
    with_driver(&[("SEED", "1"), ("RACES", "report")], || {
        let tried = every_one_is_missed("cuStreamWaitEvent", true, 1, 0);
        assert!(tried > 30, "{tried}");
    });
}

#[test]
fn every_record_that_is_left_out_is_reported() {
    with_driver(&[("SEED", "1"), ("RACES", "report")], || {
        // The last one tells the host.
        let tried = every_one_is_missed("cuEventRecord", true, 1, 1);
        assert!(tried > 30, "{tried}");
    });
}

#[test]
fn every_edge_of_a_graph_that_is_left_out_is_reported() {
    with_driver(&[("SEED", "1"), ("RACES", "report")], || {
        let tried = every_one_is_missed("edge", false, 2, 0);
        assert!(tried > 50, "{tried}");
    });
}
