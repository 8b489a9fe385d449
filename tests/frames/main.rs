//! TensorFlow's first control flow: random structured programs are lowered to its nodes, and what compile makes of
//! these computes what an interpreter of the programs does.

mod broken;
#[path = "../kit/mod.rs"]
mod kit;
mod lower;
mod program;
mod tokens;

use kit::random::Random;
use kit::{pools, run};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use weir_core::graph::CompileOptions;

/// A number of programs, or what the environment says.
fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn random_programs_compute_what_they_say() {
    let pool = pools::of(2);
    let first = from_environment("WEIR_FRAMES_FIRST", 1);
    let (mut loops, mut switches, mut left) = (0, 0, 0);
    for seed in first..first + from_environment("WEIR_FRAMES_PROGRAMS", 10_000) {
        let mut random = Random::new(seed);
        let (num_inputs, is_pure) = (1 + random.below(3), random.once_in(2));
        let block = program::draw(&mut random, num_inputs, is_pure);
        let flat = lower::lower(&block, num_inputs, &mut random);
        loops += flat.nodes.iter().filter(|node| matches!(node.kind, lower::Kind::LoopCond)).count();
        switches += flat.nodes.iter().filter(|node| matches!(node.kind, lower::Kind::Switch)).count();
        let calls = Arc::new(AtomicI64::new(i64::MAX));
        let builder = flat.build(is_pure, &calls).unwrap();
        let program = builder.try_compile(&CompileOptions::default());
        let program = program.unwrap_or_else(|error| panic!("seed {seed}: {}\n{flat}", error.message()));
        left += run::fact(&program, "switches");
        for turn in 0..2 {
            let inputs: Vec<i32> = (0..num_inputs).map(|_| random.below(12) as i32 - 4).collect();
            let expected = program::run(&block, &inputs);
            for pool in [None, Some(&pool)] {
                let got = run::run(&program, &inputs, &run::on(pool));
                let got = got.unwrap_or_else(|error| panic!("seed {seed}: {}\n{flat}", error.message()));
                assert_eq!(got, expected, "seed {seed}, turn {turn}, inputs {inputs:?}\n{flat}");
            }
        }
    }
    println!("{loops} loops, {switches} switches, {left} left in the programs");
    assert!(left * 10 < switches, "conds become conds");
}

/// Loops in loops, each of which goes round twice: how often the innermost one does.
fn nested(depth: usize) -> kit::integers::Builder {
    let (mut builder, inputs) = kit::integers::Builder::of("nested", 2);
    let (mut value, mut zero, mut open) = (inputs[0], inputs[1], Vec::new());
    for i in 0..depth {
        let frame = format!("loop {i}");
        let mut variable = |what: &str, from| {
            let enter = builder.graph.add_enter(&format!("{what} enter {i}"), from, &frame, false, 1).unwrap();
            builder.graph.add_loop_merge(&format!("{what} merge {i}"), enter.output(0)).unwrap()
        };
        let (count, sum) = (variable("count", zero), variable("sum", value));
        let less = builder.op(&[count.output(0)], |x| i32::from(x[0] < 2));
        let cond = builder.graph.add_loop_cond(&format!("cond {i}"), less).unwrap().output(0);
        let at_count = builder.graph.add_switch(&format!("count switch {i}"), count.output(0), cond).unwrap();
        let at_sum = builder.graph.add_switch(&format!("sum switch {i}"), sum.output(0), cond).unwrap();
        let more = builder.op(&[at_count.output(1)], |x| x[0] + 1);
        let next = builder.graph.add_next_iteration(&format!("count next {i}"), more).unwrap();
        builder.graph.set_back_edge(count, next.output(0)).unwrap();
        zero = builder.op(&[at_count.output(1)], |_| 0);
        value = at_sum.output(1);
        open.push((sum, at_sum));
    }
    value = builder.op(&[value], |x| x[0] + 1);
    for (i, (merge, switch)) in open.into_iter().enumerate().rev() {
        let next = builder.graph.add_next_iteration(&format!("sum next {i}"), value).unwrap();
        builder.graph.set_back_edge(merge, next.output(0)).unwrap();
        value = builder.graph.add_exit(&format!("exit {i}"), switch.output(0)).unwrap().output(0);
    }
    builder.output(value);
    builder
}

#[test]
fn loops_lie_in_loops_as_deep_as_graphs_may() {
    let begun = std::time::Instant::now();
    assert_eq!(run::run(&nested(10).compile(), &[0, 0], &run::on(None)).unwrap(), [1024]);
    nested(31).compile();
    assert!(begun.elapsed().as_secs() < 20);
    for depth in [32, 400] {
        let refusal = nested(depth).refusal();
        assert!(refusal.ends_with("more than 32 graphs lie inside one another"), "{refusal}");
    }
}

#[test]
fn many_loops_and_conds_side_by_side() {
    let begun = std::time::Instant::now();
    let mut builder = nested(1);
    let input = builder.input();
    let mut value = input;
    for i in 0..2_000 {
        let switch = builder.graph.add_switch(&format!("switch {i}"), value, input).unwrap();
        let more = builder.op(&[switch.output(1)], |x| x[0] + 1);
        value = builder.graph.add_merge(&format!("merge {i}"), &[switch.output(0), more]).unwrap().output(0);
    }
    builder.output(value);
    assert_eq!(run::run(&builder.compile(), &[5, 0, 1], &run::on(None)).unwrap(), [7, 2001]);
    assert!(begun.elapsed().as_secs() < 20);
}
