//! Loops of which engines do a part and the host does another, and whose iterations overlap.

use crate::control::compile;
use crate::kit::emulated::Emulation;
use crate::kit::integers::Builder;
use crate::kit::run::{cpu, on, run};
use crate::wrapped::{Mistake, Wrapped, engine};
use crate::{checked, reports};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use weir_core::base::{Code, Error, Ref};
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Graph, Program, ReportFormat, RunOptions};

/// The host's work in each iteration, with the counter.
type Work = Arc<dyn Fn(i32) -> Result<(), Error> + Send + Sync>;

/// while (left > 0) (left, sum, seen) = (left - 1, there(sum, here(left)), here(seen, there(left))): the host's part
/// of an iteration and the device's need nothing of one another in the next one.
fn shared(there: &Ref<Engine>, at_once: u32, work: Work, told: impl Fn(i32) + Send + Sync + 'static) -> Graph {
    let (mut condition, x) = Builder::of("more", 3);
    let more = condition.op(&[x[0]], |x| i32::from(x[0] > 0));
    let condition = condition.giving(&[more]);
    let (mut body, x) = Builder::of("body", 3);
    let left = body.op(&[x[0]], |x| x[0] - 1);
    let mine = body.named("here", &[x[0]], move |x| work(x[0]).map(|()| x[0] * 7));
    body.engine = there.clone();
    let sum = body.op(&[x[1], mine], move |x| {
        told(x[0]);
        x[0].wrapping_mul(3).wrapping_add(x[1])
    });
    let yours = body.op(&[x[0]], |x| x[0] * 11);
    body.engine = cpu();
    let seen = body.op(&[x[2], yours], |x| x[0].wrapping_mul(5).wrapping_add(x[1]));
    let body = body.giving(&[left, sum, seen]);
    let (mut builder, x) = Builder::of("shared", 3);
    let looped = builder.graph.add_while("loop", &condition, &body, &x, &[], at_once).unwrap();
    (0..3).for_each(|output| builder.output(looped.output(output)));
    builder.graph
}

fn shared_by_hand(mut x: [i32; 3]) -> [i32; 3] {
    while x[0] > 0 {
        let sum = x[1].wrapping_mul(3).wrapping_add(x[0] * 7);
        x = [x[0] - 1, sum, x[2].wrapping_mul(5).wrapping_add(x[0] * 11)];
    }
    x
}

fn nothing() -> Work {
    Arc::new(|_| Ok(()))
}

fn at_once(program: &Ref<Program>) -> String {
    let report = program.report(ReportFormat::Text);
    let line = report.lines().find(|line| line.trim().starts_with("loop 'loop'"));
    line.unwrap_or("loop 'loop': 1 of").trim().to_owned()
}

#[test]
fn iterations_overlap_as_far_as_was_asked_and_the_values_are_right() {
    for asked in 1..=4 {
        for seed in 0..8 {
            let (device, there) = engine("placed-overlap", checked(seed), Mistake::None, 1 + seed as u32 % 3);
            let options = CompileOptions { without_segments: seed % 2 == 0, ..CompileOptions::default() };
            let program = compile(&shared(&there, asked, nothing(), |_| ()), &there, &options);
            assert!(at_once(&program).starts_with(&format!("loop 'loop': {asked} of")), "{}", at_once(&program));
            let pool = (seed % 4 > 1).then(|| crate::kit::pools::seeded(seed, 1 + seed as usize % 3));
            for inputs in [[0, 1, 2], [1, 5, -7], [2, 0, 0], [23, 3, 9], [23, 3, 9]] {
                let found = run(&program, &inputs, &on(pool.as_ref())).unwrap();
                assert_eq!(found, shared_by_hand(inputs), "{asked} at once, seed {seed}");
            }
            assert_eq!(reports(&device), Vec::<String>::new(), "{asked} at once, seed {seed}");
        }
    }
}

/// Most iterations whose part on the host had begun, and whose part on the device had not.
fn most_under_way(asked: u32) -> u64 {
    let slow = Emulation { kernel_ns: 300_000, ..checked(0) };
    let (device, there) = engine("placed-under-way", slow, Mistake::None, 1);
    let counts: [Arc<AtomicU64>; 3] = Default::default();
    let [begun, done, most] = counts.clone();
    let work: Work = Arc::new(move |_| {
        let under_way = begun.fetch_add(1, Relaxed) + 1 - done.load(Relaxed);
        most.fetch_max(under_way, Relaxed);
        Ok(())
    });
    let [_, done, most] = counts;
    let told = move |_| {
        done.fetch_add(1, Relaxed);
    };
    let program = compile(&shared(&there, asked, work, told), &there, &CompileOptions::default());
    assert_eq!(run(&program, &[40, 1, 2], &RunOptions::default()).unwrap(), shared_by_hand([40, 1, 2]));
    assert_eq!(reports(&device), Vec::<String>::new());
    most.load(Relaxed)
}

#[test]
fn the_host_begins_iterations_while_the_device_is_at_others() {
    assert!(most_under_way(1) <= 1);
    assert!((2..=5).contains(&most_under_way(4)));
}

#[test]
fn a_failure_in_an_iteration_ends_the_run_and_the_next_run_is_right() {
    for asked in [1, 3, 4] {
        let (device, there) = engine("placed-overlap-fail", checked(7), Mistake::None, 2);
        let fails = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&fails);
        let work = move |left| match left == 5 && now.load(Relaxed) {
            true => Err(Error::out_of_range("five")),
            false => Ok(()),
        };
        let program = compile(&shared(&there, asked, Arc::new(work), |_| ()), &there, &CompileOptions::default());
        for round in 0..6 {
            fails.store(round % 2 == 1, Relaxed);
            let found = run(&program, &[9, 1, round], &RunOptions::default());
            if round % 2 == 0 {
                assert_eq!(found.unwrap(), shared_by_hand([9, 1, round]));
                continue;
            }
            let error = found.unwrap_err();
            assert_eq!(error.code(), Code::OutOfRange);
            assert!(error.message().contains("node 'loop/body/here'"), "{error}");
        }
        assert_eq!(reports(&device), Vec::<String>::new());
    }
}

/// A loop in a loop, both with work of both sides, and a branch in the inner one.
fn nested(there: &Ref<Engine>, outer: u32, inner: u32) -> Graph {
    let more = |name: &str, inputs: usize| {
        let (mut condition, x) = Builder::of(name, inputs);
        let more = condition.op(&[x[0]], |x| i32::from(x[0] > 0));
        condition.giving(&[more])
    };
    let side = |name: &str, engine: &Ref<Engine>, scale: i32| {
        let (mut branch, x) = Builder::of(name, 2);
        branch.engine = engine.clone();
        let end = branch.op(&x, move |x| x[0].wrapping_mul(scale).wrapping_add(x[1]));
        branch.giving(&[end])
    };
    let (mut lower, x) = Builder::of("lower", 3);
    let left = lower.op(&[x[0]], |x| x[0] - 1);
    let odd = lower.op(&[x[0]], |x| x[0] & 1);
    let (then, otherwise) = (side("then", there, 3), side("else", &cpu(), 5));
    let chosen = lower.graph.add_cond("choice", odd, &then, &otherwise, &[x[1], x[2]]).unwrap();
    lower.engine = there.clone();
    let value = lower.op(&[chosen.output(0), x[0]], |x| x[0].wrapping_add(x[1]));
    let lower = lower.giving(&[left, value]);
    let (mut upper, x) = Builder::of("upper", 3);
    let left = upper.op(&[x[0]], |x| x[0] - 1);
    let rounds = upper.op(&[x[0]], |x| x[0] % 4);
    let lower =
        upper.graph.add_while("inner", &more("more inside", 3), &lower, &[rounds, x[1]], &[x[2]], inner).unwrap();
    upper.engine = there.clone();
    let mixed = upper.op(&[lower.output(1), x[2]], |x| x[0].wrapping_mul(13).wrapping_add(x[1]));
    upper.engine = cpu();
    let kept = upper.op(&[x[2], mixed, left], |x| x[0].wrapping_add(x[1]).wrapping_mul(3).wrapping_add(x[2]));
    let upper = upper.giving(&[left, mixed, kept]);
    let (mut builder, x) = Builder::of("nested", 3);
    let looped = builder.graph.add_while("outer", &more("more", 3), &upper, &x, &[], outer).unwrap();
    (0..3).for_each(|output| builder.output(looped.output(output)));
    builder.graph
}

#[test]
fn loops_inside_of_loops_overlap_too() {
    let expected = compile(&nested(&cpu(), 1, 1), &cpu(), &CompileOptions::default());
    for seed in 0..16 {
        let (device, there) = engine("placed-overlap-nested", checked(seed), Mistake::None, 1 + seed as u32 % 2);
        let at_once = [(1, 4), (4, 1), (3, 3), (2, 4)][seed as usize % 4];
        let program = compile(&nested(&there, at_once.0, at_once.1), &there, &CompileOptions::default());
        let pool = (seed % 3 == 1).then(|| crate::kit::pools::seeded(seed, 2));
        for inputs in [[0, 1, 2], [9, 1, 2], [14, -5, 3]] {
            let wanted = run(&expected, &inputs, &RunOptions::default()).unwrap();
            assert_eq!(run(&program, &inputs, &on(pool.as_ref())).unwrap(), wanted, "seed {seed}, {at_once:?}");
        }
        assert_eq!(reports(&device), Vec::<String>::new(), "seed {seed}");
    }
}

/// Work that no iteration waits for is issued ahead, one iteration after the other.
#[test]
fn what_no_iteration_waits_for_takes_no_slots() {
    let (_device, there): (Arc<Wrapped>, _) = engine("placed-no-slots", checked(1), Mistake::None, 1);
    let (mut condition, x) = Builder::of("more", 2);
    let more = condition.op(&[x[0]], |x| i32::from(x[0] > 0));
    let condition = condition.giving(&[more]);
    let (mut body, x) = Builder::of("body", 2);
    let left = body.op(&[x[0]], |x| x[0] - 1);
    body.engine = there.clone();
    let next = body.op(&[x[1]], |x| x[0].wrapping_add(5));
    let body = body.giving(&[left, next]);
    let (mut builder, x) = Builder::of("ahead", 2);
    let looped = builder.graph.add_while("loop", &condition, &body, &x, &[], 4).unwrap();
    (0..2).for_each(|output| builder.output(looped.output(output)));
    let program = compile(&builder.graph, &there, &CompileOptions::default());
    assert!(at_once(&program).starts_with("loop 'loop': 1 of"), "{}", at_once(&program));
    assert_eq!(run(&program, &[30, 3], &RunOptions::default()).unwrap(), [0, 153]);
}
