//! How long a run still takes, as it says itself: by the costs and the iterations that earlier runs have shown.

#[path = "kit/mod.rs"]
mod kit;

use kit::integers::Builder;
use kit::run::{on, run};
use std::any::Any;
use std::hint::black_box;
use std::sync::Mutex;
use weir_core::base::Ref;
use weir_core::graph::{CompileOptions, Program, RunOptions};
use weir_core::stream::{ProgressListener, ProgressReport};

/// What a run has told.
struct Heard {
    done: u64,
    total: u64,
    elapsed_ns: u64,
    remaining_ns: Option<u64>,
    node: String,
}

type Ear = Mutex<Vec<Heard>>;

fn hear(listener: &ProgressListener, report: &ProgressReport<'_>, run: Option<&dyn Any>) {
    assert!(run.is_none(), "a run here has no handle");
    // SAFETY: `follow` keeps it until the run is over.
    let ear = unsafe { &*listener.ctx.cast::<Ear>() };
    ear.lock().unwrap().push(Heard {
        done: report.nodes_done,
        total: report.nodes_total,
        elapsed_ns: report.elapsed_ns,
        remaining_ns: report.remaining_ns,
        node: report.node.to_owned(),
    });
}

/// Runs a program in this thread, and gives what it tells at each node.
fn follow(program: &Ref<Program>, inputs: &[i32]) -> Vec<Heard> {
    let mut ear = Ear::default();
    let ctx = (&raw mut ear).cast();
    let listener = ProgressListener { progress: None, ctx, interval_ns: 1, tell: hear };
    run(program, inputs, &RunOptions { progress: Some(listener), ..on(None) }).unwrap();
    ear.into_inner().unwrap()
}

/// Takes time in proportion to `amount`.
fn work(amount: u32) {
    for i in 0..amount * 2_000 {
        black_box(i);
    }
}

/// Whether a report's rest and what has passed are as these amounts of work, to a factor of three.
fn fits(heard: &Heard, done: u32, left: u32) -> bool {
    let remaining_ns = heard.remaining_ns.expect("the costs are known") as f64;
    let expected_ns = heard.elapsed_ns as f64 * f64::from(left) / f64::from(done);
    remaining_ns <= expected_ns * 3.0 && remaining_ns >= expected_ns / 3.0
}

/// An interrupted thread takes longer than its work: one of many runs must fit.
fn eventually(mut fits: impl FnMut() -> bool) {
    assert!((0..200).any(|_| fits()), "the rest is never as it should be");
}

#[test]
fn the_rest_of_a_chain_is_the_work_that_is_left() {
    let amounts = [1, 1, 2, 10, 1, 20, 3];
    let (mut builder, mut x) = {
        let (builder, inputs) = Builder::of("chain", 1);
        (builder, inputs[0])
    };
    for (i, amount) in amounts.into_iter().enumerate() {
        x = builder.named(&format!("work {i}"), &[x], move |x| {
            work(amount);
            Ok(x[0] + 1)
        });
    }
    builder.output(x);
    let program = builder.compile();
    eventually(|| {
        let heard = follow(&program, &[1]);
        assert_eq!(heard.len(), amounts.len());
        for (i, heard) in heard.iter().enumerate() {
            assert_eq!((heard.done, heard.total), (i as u64 + 1, amounts.len() as u64));
            assert_eq!(heard.node, format!("work {i}"));
        }
        assert_eq!(heard.last().unwrap().remaining_ns, Some(0));
        let sum = |amounts: &[u32]| amounts.iter().sum::<u32>();
        (2..amounts.len()).all(|i| fits(&heard[i - 1], sum(&amounts[..i]), sum(&amounts[i..])))
    });
}

#[test]
fn the_rest_of_a_loop_is_the_iterations_that_are_left() {
    for parallel in [1, 2] {
        let (mut condition, x) = Builder::of("condition", 3);
        let less = condition.named("less", &[x[0], x[2]], |x| Ok(i32::from(x[0] < x[1])));
        let condition = condition.giving(&[less]);
        let (mut body, x) = Builder::of("body", 3);
        let next = body.named("next", &[x[0]], |x| Ok(x[0] + 1));
        let sum = body.named("work", &[x[1], x[0]], |x| {
            work(5);
            Ok(x[0] + x[1])
        });
        let body = body.giving(&[next, sum]);
        let (mut main, n) = Builder::of("main", 1);
        let zero = main.constant(0);
        let looped = main.graph.add_while("loop", &condition, &body, &[zero, zero], &n, parallel).unwrap();
        let behind = main.named("behind", &[looped.output(1)], |x| Ok(x[0]));
        main.output(behind);
        let program = main.try_compile(&CompileOptions::default()).unwrap();
        let heard = follow(&program, &[20]);
        assert!(heard.iter().all(|heard| heard.remaining_ns.is_none()), "nobody knows how often it goes around");
        eventually(|| {
            let heard = follow(&program, &[20]);
            let last = heard.last().unwrap();
            assert_eq!((last.done, last.total, last.remaining_ns), (62, 62, Some(0)));
            assert!(heard.iter().all(|heard| heard.done <= heard.total));
            assert!(heard[0].total < 8, "iterations count when they begin");
            let works: Vec<_> = heard.iter().filter(|heard| heard.node.ends_with("work")).collect();
            assert_eq!(works.len(), 20);
            (2..20).all(|i| fits(works[i - 1], i as u32, 20 - i as u32))
        });
        // More of them than the last time: nothing is known to be left. Fewer: the rest ends with the loop.
        let heard = follow(&program, &[30]);
        assert_eq!(heard.last().unwrap().remaining_ns, Some(0));
        let heard = follow(&program, &[3]);
        assert_eq!(heard.last().unwrap().remaining_ns, Some(0));
        assert_eq!(heard.last().unwrap().total, 11);
    }
}
