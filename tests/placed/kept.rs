//! Branches and loops of which engines do a part and the host does another: what stays on an engine, and what comes and
//! goes.

use crate::control::{Draws, compile, ways};
use crate::kit::emulated::Emulation;
use crate::kit::integers::Builder;
use crate::kit::random::Random;
use crate::kit::run::{cpu, execute, fact, on, run};
use crate::ports::{number, read, stream_of};
use crate::wrapped::{Mistake, engine};
use crate::{checked, extent, reports};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use weir_core::base::{Ref, Result};
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Graph, Program, RunOptions};

/// A run with each tensor where the program wants it.
fn run_at_home(program: &Ref<Program>, inputs: &[i32], options: &RunOptions) -> Result<Vec<i32>> {
    let tensors = |ports: &[weir_core::graph::Port], values: &[i32]| -> Vec<_> {
        let tensor = |(port, &value): (&weir_core::graph::Port, &i32)| match &port.engine {
            None => (number(&cpu(), None, value), None),
            Some(engine) => {
                let stream = stream_of(engine);
                let tensor = number(engine, Some(&stream), value);
                stream.synchronize(u64::MAX).unwrap();
                (tensor, Some(stream))
            }
        };
        ports.iter().zip(values).map(tensor).collect()
    };
    let given = tensors(program.inputs(), inputs);
    let taken = tensors(program.outputs(), &vec![-99; program.outputs().len()]);
    let only = |all: &[(Ref<_>, Option<_>)]| all.iter().map(|(tensor, _)| Ref::clone(tensor)).collect::<Vec<_>>();
    execute(program, &only(&given), &only(&taken), options)?;
    Ok(taken.iter().map(|(tensor, stream)| read(tensor, stream.as_ref())).collect())
}

fn drawn(graph: u64, on: Vec<Ref<Engine>>) -> Graph {
    let mut random = Random::new(31_000 + graph);
    Draws { random: &mut random, on }.graph("mixed", 3, 3, 3)
}

#[test]
fn random_mixes_of_the_host_and_engines_are_right_and_have_no_races() {
    let (graphs, seeds) = extent();
    for graph in 0..2 * graphs {
        let expected = compile(&drawn(graph, vec![cpu(), cpu(), cpu()]), &cpu(), &CompileOptions::default());
        for seed in 0..1 + seeds / 4 {
            let streams = 1 + (graph + seed) as u32 % 4;
            let (first, one) = engine("placed-kept", checked(seed), Mistake::None, streams);
            let (second, two) = engine("placed-kept-too", checked(seed + 1), Mistake::None, 1 + streams % 3);
            // Of two engines in one half, of one in the other.
            let other = if graph % 2 == 0 { cpu() } else { two.clone() };
            let mut there = drawn(graph, vec![cpu(), one.clone(), other]);
            let options = CompileOptions { without_segments: graph % 3 == 0, ..CompileOptions::default() };
            // Tensors of the runs' own there, too.
            let homes = [None, Some(&one), Some(&two), Some(&one)][graph as usize % 4];
            there.set_output_engine(1, homes.cloned()).unwrap();
            there.set_input_engine(0, homes.cloned()).unwrap();
            let pool = (graph % 3 == 1).then(|| crate::kit::pools::seeded(graph, 2));
            let program = Program::compile(&there, vec![cpu(), one.clone(), two.clone()], &options).unwrap();
            for round in 0..3 {
                let inputs = [round, 7 - round, seed as i32];
                let found = run_at_home(&program, &inputs, &on(pool.as_ref()));
                let found = found.unwrap_or_else(|error| panic!("graph {graph}, seed {seed}: {error}"));
                let wanted = run(&expected, &inputs, &RunOptions::default()).unwrap();
                assert_eq!(found, wanted, "graph {graph}, seed {seed}, round {round}");
            }
            for device in [&first, &second] {
                assert_eq!(reports(device), Vec::<String>::new(), "graph {graph}, seed {seed}");
            }
        }
    }
}

/// while (left > 0) (left, a, b) = (left - 1, f(a, b), a + left), with `a` made on one engine and the rest elsewhere.
fn counted(there: &Ref<Engine>, rest: &Ref<Engine>) -> Graph {
    let (mut condition, x) = Builder::of("more", 3);
    let more = condition.op(&[x[0]], |x| i32::from(x[0] > 0));
    let condition = condition.giving(&[more]);
    let (mut body, x) = Builder::of("body", 3);
    let left = body.op(&[x[0]], |x| x[0] - 1);
    body.engine = there.clone();
    let a = body.op(&[x[1], x[2]], |x| x[0].wrapping_mul(3).wrapping_add(x[1]));
    body.engine = rest.clone();
    let b = body.op(&[x[1], x[0]], |x| x[0].wrapping_add(x[1]));
    let body = body.giving(&[left, a, b]);
    let (mut builder, x) = Builder::of("counted", 3);
    let looped = builder.graph.add_while("loop", &condition, &body, &x, &[], 1).unwrap();
    (0..3).for_each(|output| builder.output(looped.output(output)));
    builder.graph
}

fn counted_by_hand(mut x: [i32; 3]) -> [i32; 3] {
    while x[0] > 0 {
        x = [x[0] - 1, x[1].wrapping_mul(3).wrapping_add(x[2]), x[1].wrapping_add(x[0])];
    }
    x
}

#[test]
fn what_an_engine_makes_for_the_next_iteration_stays_there() {
    let (device, there) = engine("placed-stays", checked(3), Mistake::None, 2);
    let program = compile(&counted(&there, &there), &there, &CompileOptions::default());
    for inputs in [[0, 1, 2], [1, 5, -7], [40, 3, 9]] {
        let found = run(&program, &inputs, &RunOptions::default()).unwrap();
        assert_eq!(found, counted_by_hand(inputs));
    }
    // The first values of both go there, and the last ones come back; the counter goes there in each iteration.
    assert_eq!([fact(&program, "uploads"), fact(&program, "fetches")], [3, 2]);
    assert_eq!(reports(&device), Vec::<String>::new());
}

#[test]
fn what_two_engines_make_for_one_another_is_right() {
    for seed in 0..20 {
        let (first, one) = engine("placed-to", checked(seed), Mistake::None, 2);
        let (second, two) = engine("placed-fro", checked(seed + 100), Mistake::None, 2);
        let program =
            Program::compile(&counted(&one, &two), vec![cpu(), one, two], &CompileOptions::default()).unwrap();
        for inputs in [[0, 1, 2], [1, 5, -7], [9, 3, 9]] {
            assert_eq!(run(&program, &inputs, &RunOptions::default()).unwrap(), counted_by_hand(inputs), "seed {seed}");
        }
        assert_eq!([reports(&first), reports(&second)], [Vec::<String>::new(), Vec::new()], "seed {seed}");
    }
}

#[test]
fn a_loop_that_waits_for_nothing_does_not_fill_the_devices_queue_without_end() {
    let slow = Emulation { kernel_ns: 20_000, ..checked(0) };
    let (device, there) = engine("placed-pace", slow, Mistake::None, 1);
    let (mut condition, x) = Builder::of("more", 2);
    let more = condition.op(&[x[0]], |x| i32::from(x[0] > 0));
    let condition = condition.giving(&[more]);
    let (mut body, x) = Builder::of("body", 2);
    let (most, seen) = (Arc::new(AtomicU64::new(0)), Arc::clone(&device));
    let most_queued = Arc::clone(&most);
    let left = body.op(&[x[0]], move |x| {
        let counters = seen.inner.counters();
        most_queued.fetch_max(counters.operations - counters.completed, Relaxed);
        x[0] - 1
    });
    body.engine = there.clone();
    // The device does nothing until the host is well ahead, however slow the host's thread is.
    let far_ahead = Arc::clone(&most);
    let next = body.op(&[x[1]], move |x| {
        let patience = Instant::now();
        while far_ahead.load(Relaxed) < 64 && patience.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_micros(100));
        }
        x[0].wrapping_add(5)
    });
    let body = body.giving(&[left, next]);
    let (mut builder, x) = Builder::of("paced", 2);
    let looped = builder.graph.add_while("loop", &condition, &body, &x, &[], 1).unwrap();
    (0..2).for_each(|output| builder.output(looped.output(output)));
    let program = compile(&builder.graph, &there, &CompileOptions::default());
    for _ in 0..2 {
        assert_eq!(run(&program, &[2000, 3], &RunOptions::default()).unwrap(), [0, 10_003]);
    }
    let most = most.load(Relaxed);
    assert!((64..600).contains(&most), "{most} in the queue");
    assert_eq!(reports(&device), Vec::<String>::new());
}

#[test]
fn what_an_inner_branch_made_is_fetched_though_the_outer_one_hands_on_something_else() {
    let (device, engine) = engine("placed-kept-nested", checked(1), Mistake::None, 2);
    let (mut twice, x) = Builder::of("twice", 1);
    let value = twice.op(&x, |x| x[0]);
    twice.engine = engine.clone();
    let value = twice.op(&[value], |x| x[0] * 2);
    let twice = twice.giving(&[value]);
    let (mut once, x) = Builder::of("once", 1);
    let value = once.op(&x, |x| x[0] + 1);
    let inner = once.graph.add_cond("inner", x[0], &twice, &twice, &[value]).unwrap().output(0);
    once.engine = engine.clone();
    let thrice = once.op(&[value], |x| x[0] * 3);
    // The outer node has the second output on the engine, and not the first.
    let once = once.giving(&[inner, thrice]);
    let (mut other, x) = Builder::of("other", 1);
    let here = other.op(&x, |x| x[0] + 5);
    other.engine = engine.clone();
    let kept = other.op(&x, |x| x[0] + 6);
    let other = other.giving(&[here, kept]);
    let (mut main, x) = Builder::of("main", 2);
    let outer = main.graph.add_cond("outer", x[0], &once, &other, &x[1..]).unwrap();
    (0..2).for_each(|output| main.output(outer.output(output)));
    for options in ways() {
        let program = compile(&main.graph, &engine, &options);
        for (inputs, expected) in [([1, 7], [16, 24]), ([0, 7], [12, 13]), ([1, 9], [20, 30])] {
            assert_eq!(run(&program, &inputs, &RunOptions::default()).unwrap(), expected);
        }
    }
    assert_eq!(reports(&device), Vec::<String>::new());
}

#[test]
fn what_comes_and_goes_one_after_the_other_takes_no_waits_of_streams() {
    let (device, there) = engine("placed-in-line", checked(0), Mistake::None, 2);
    let (mut condition, x) = Builder::of("more", 2);
    let more = condition.op(&[x[0]], |x| i32::from(x[0] > 0));
    let condition = condition.giving(&[more]);
    let (mut body, x) = Builder::of("body", 2);
    let left = body.op(&[x[0]], |x| x[0] - 1);
    body.engine = there.clone();
    let first = body.op(&[x[1]], |x| x[0].wrapping_mul(3));
    body.engine = cpu();
    let here = body.op(&[first], |x| x[0].wrapping_add(1));
    body.engine = there.clone();
    let second = body.op(&[here, first], |x| x[0] ^ x[1]);
    body.engine = cpu();
    let next = body.op(&[second], |x| x[0].wrapping_sub(5));
    let body = body.giving(&[left, next]);
    let (mut builder, x) = Builder::of("in line", 2);
    let looped = builder.graph.add_while("loop", &condition, &body, &x, &[], 1).unwrap();
    (0..2).for_each(|output| builder.output(looped.output(output)));
    let program = compile(&builder.graph, &there, &CompileOptions::default());
    let by_hand = |count: i32, value: i32| {
        (0..count).fold(value, |value, _| {
            let first = value.wrapping_mul(3);
            (first.wrapping_add(1) ^ first).wrapping_sub(5)
        })
    };
    let mut waits = Vec::new();
    for count in [3, 40] {
        let before = device.inner.counters().waits;
        assert_eq!(run(&program, &[count, 7], &RunOptions::default()).unwrap(), [0, by_hand(count, 7)]);
        waits.push(device.inner.counters().waits - before);
    }
    assert_eq!(waits[0], waits[1], "no iteration takes any");
    assert_eq!(reports(&device), Vec::<String>::new());
}
