//! TensorFlow's first control flow: random structured programs are lowered to its nodes, and what compile makes of these
//! computes what an interpreter of the programs does.

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
use weir::graph::CompileOptions;

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
