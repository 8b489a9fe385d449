//! Runs of placed programs that are deterministic, or finish what does not depend on a failure: one thread, which waits
//! for the devices node by node.

use crate::control::{Draws, ways};
use crate::kit::integers::Builder;
use crate::kit::pools;
use crate::kit::random::Random;
use crate::kit::run::{cpu, execute, integer, lend, run, tensor};
use crate::wrapped::{Mistake, engine};
use crate::{checked, mix, reports};
use std::sync::{Arc, Mutex};
use weir_core::base::{Code, Error, Ref};
use weir_core::device::DeviceKind;
use weir_core::engine::{Engine, Stream, StreamAttr};
use weir_core::graph::{CompileOptions, Graph, Program, RunOptions};
use weir_core::threadpool::ThreadPool;

fn deterministic(pool: Option<&Ref<ThreadPool>>) -> RunOptions {
    RunOptions { deterministic: true, threadpool: pool.cloned(), ..RunOptions::default() }
}

fn drawn(graph: u64, on: &[&Ref<Engine>]) -> Graph {
    let mut random = Random::new(0x5E71_0000 + graph);
    let mut draws = Draws { random: &mut random, on: on.iter().map(|&engine| engine.clone()).collect() };
    draws.graph("serial", 3, 2, 2)
}

#[test]
fn random_graphs_give_the_same_in_one_thread() {
    for graph in 0..40 {
        let host = cpu();
        let (device, there) = engine("placed-serial", checked(graph % 4), Mistake::None, 1 + graph as u32 % 2);
        let compile = |on: &[&Ref<Engine>]| {
            let options = &ways()[graph as usize % 3];
            Program::compile(&drawn(graph, on), vec![cpu(), there.clone()], options).unwrap()
        };
        let (placed, expected) = (compile(&[&there, &host, &there]), compile(&[&host; 3]));
        let (one, many) = (deterministic(None), deterministic(Some(&pools::of(3))));
        let independent = RunOptions { finish_independent: true, ..RunOptions::default() };
        for (round, options) in [&one, &many, &independent, &RunOptions::default(), &one].into_iter().enumerate() {
            let inputs = [round as i32, 9 - round as i32, graph as i32];
            let found = run(&placed, &inputs, options).unwrap_or_else(|error| panic!("graph {graph}: {error}"));
            assert_eq!(found, run(&expected, &inputs, &RunOptions::default()).unwrap(), "graph {graph}, round {round}");
            let counters = device.inner.counters();
            assert_eq!(counters.completed, counters.operations, "graph {graph}, round {round}");
        }
        assert_eq!(reports(&device), Vec::<String>::new(), "graph {graph}");
    }
}

/// Several nodes of the host's behind several of the device's note their turns: always the same ones.
#[test]
fn nodes_meet_what_they_share_in_one_order() {
    let (_device, there) = engine("placed-serial-order", checked(0), Mistake::None, 3);
    let notes = Arc::new(Mutex::new(Vec::new()));
    let (mut builder, x) = Builder::of("order", 1);
    for node in 0..12 {
        builder.engine = there.clone();
        let value = builder.op(&[x[0]], mix);
        builder.engine = cpu();
        let notes = Arc::clone(&notes);
        let value = builder.op(&[value], move |x| {
            notes.lock().unwrap().push(node);
            x[0]
        });
        builder.output(value);
    }
    let program = Program::compile(&builder.graph, vec![cpu(), there], &CompileOptions::default()).unwrap();
    let mut first: Option<Vec<i32>> = None;
    for round in 0..20 {
        run(&program, &[round], &deterministic(Some(&pools::of(4)))).unwrap();
        let notes = std::mem::take(&mut *notes.lock().unwrap());
        assert_eq!(first.get_or_insert_with(|| notes.clone()), &notes, "round {round}");
    }
}

#[test]
fn what_does_not_depend_on_a_failure_of_the_devices_is_finished() {
    let (device, there) = engine("placed-serial-fails", checked(0), Mistake::None, 1);
    let (mut builder, x) = Builder::of("fails", 2);
    builder.engine = there.clone();
    let fails = |x: &[i32]| if x[0] == 0 { Err(Error::new(Code::OutOfRange, "as planned")) } else { Ok(x[0]) };
    let bad = builder.named("bad", &[x[0]], fails);
    builder.engine = cpu();
    let (bad, good) = (builder.op(&[bad], mix), builder.op(&[x[1]], |x| x[0] + 1));
    [bad, good].into_iter().for_each(|value| builder.output(value));
    let program = Program::compile(&builder.graph, vec![cpu(), there], &CompileOptions::default()).unwrap();
    let options = RunOptions { finish_independent: true, ..RunOptions::default() };
    let host = cpu();
    for round in 0..4 {
        let inputs = [round % 2, 40].map(|value| tensor(&host, value));
        let outputs = [-1, -1].map(|value| tensor(&host, value));
        let result = execute(&program, &inputs, &outputs, &options);
        match round % 2 {
            0 => assert!(result.unwrap_err().message().contains("as planned")),
            _ => {
                result.unwrap();
                assert_eq!(integer(&outputs[0]), mix(&[1]));
            }
        }
        assert_eq!(integer(&outputs[1]), 41, "round {round}");
    }
    assert_eq!(reports(&device), Vec::<String>::new());
}

#[test]
fn where_it_would_block_a_worker_it_is_refused_with_the_reason() {
    let (_device, there) = engine("placed-serial-refused", checked(0), Mistake::None, 1);
    let (mut builder, x) = Builder::of("refused", 1);
    builder.engine = there.clone();
    let value = builder.op(&[x[0]], mix);
    builder.output(value);
    let program = Program::compile(&builder.graph, vec![cpu(), there], &CompileOptions::default()).unwrap();
    let host = cpu();
    let (input, output) = ([tensor(&host, 5)], [tensor(&host, -1)]);
    let on = |pool: Option<Ref<ThreadPool>>| {
        let mut attr = StreamAttr::new(DeviceKind::CPU);
        attr.asynchronous = true;
        attr.set_threadpool(pool);
        let stream = Stream::create(cpu(), attr).unwrap();
        let (get_in, get_out) = (|i: usize| Ok(lend(&input[i])), |i: usize| Ok(lend(&output[i])));
        let bound = Program::bind(&program, (1, &get_in), (1, &get_out)).unwrap();
        let result = bound.run(Some(&stream), Some(&deterministic(None)));
        stream.synchronize(20_000_000_000).unwrap();
        result
    };
    let error = on(Some(pools::host(1, |_| true))).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    for part in ["program 'refused'", "work on a device", "would block a worker"] {
        assert!(error.message().contains(part), "{error}");
    }
    // Without a pool it is on a thread of the stream's own.
    on(None).unwrap();
    assert_eq!(integer(&output[0]), mix(&[5]));
}
