//! Failures, deadlines, a fixed order.

use super::pipeline::*;
use crate::kit::pools;
use std::sync::atomic::{AtomicI64, Ordering::*};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_core::base::{Code, Error};
use weir_core::graph::RunOptions;

#[test]
fn a_failure_in_one_of_several_iterations_says_which() {
    let program = compile(&pipeline(
        3,
        |i| Ok(i + 1),
        |i| match i {
            6 => Err(Error::new(Code::DataLoss, "asked to fail")),
            _ => Ok(7 * i),
        },
    ));
    for pool in &all_pools() {
        for _ in 0..5 {
            let error = run(&program, &[40], &on(pool)).unwrap_err();
            assert_eq!(error.message(), "node 'loop/body/late', iteration 6 of 'loop': asked to fail");
            let failure = error.run().unwrap();
            assert_eq!(failure.node.as_deref(), Some("loop/body/late"));
            assert_eq!(failure.iteration, Some(("loop".into(), 6)));
            let left_out: Vec<&str> = failure.left_out.iter().map(|name| &**name).collect();
            assert!(left_out.contains(&"after"), "{left_out:?}");
            let mut once = left_out.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), left_out.len(), "named twice: {left_out:?}");
            // Whole again at once.
            assert_eq!(run(&program, &[6], &on(pool)).unwrap(), [6, summed(6)]);
        }
    }
}

#[test]
fn every_kernel_of_a_loop_may_fail_in_every_iteration() {
    for parallel in [2, 3] {
        // The call that fails: of `early`, then of `late`.
        let at = Arc::new(AtomicI64::new(-1));
        let (first, second) = (Arc::clone(&at), Arc::clone(&at));
        let fails = |at: &AtomicI64, call: i64| match at.load(Relaxed) == call {
            true => Err(Error::new(Code::DataLoss, "asked to fail")),
            false => Ok(()),
        };
        let program = compile(&pipeline(
            parallel,
            move |i| fails(&first, i64::from(i)).map(|()| i + 1),
            move |i| fails(&second, 100 + i64::from(i)).map(|()| 7 * i),
        ));
        for pool in &all_pools() {
            for call in (0..8).chain(100..108) {
                at.store(call, Relaxed);
                let error = run(&program, &[8], &on(pool)).unwrap_err();
                let (name, iteration) = (if call < 100 { "early" } else { "late" }, call % 100);
                let expected = format!("node 'loop/body/{name}', iteration {iteration} of 'loop': asked to fail");
                assert_eq!(error.message(), expected);
                for (deterministic, finish_independent) in [(true, false), (false, true)] {
                    let options = RunOptions { deterministic, finish_independent, ..on(pool) };
                    assert_eq!(run(&program, &[8], &options).unwrap_err().message(), expected);
                }
                at.store(-1, Relaxed);
                assert_eq!(run(&program, &[8], &on(pool)).unwrap(), [8, summed(8)]);
            }
        }
    }
}

#[test]
fn a_deadline_ends_overlapping_iterations() {
    let program = compile(&pipeline(
        3,
        |i| Ok(i + 1),
        |i| {
            std::thread::sleep(Duration::from_micros(200));
            Ok(7 * i)
        },
    ));
    for pool in &all_pools() {
        let options = RunOptions { deadline_ns: 3_000_000, ..on(pool) };
        let error = run(&program, &[1_000_000], &options).unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
        assert_eq!(run(&program, &[5], &on(pool)).unwrap(), [5, summed(5)]);
        // In careful runs too, all is done that is to be done.
        let options = RunOptions { deadline_ns: 20_000_000_000, ..on(pool) };
        assert_eq!(run(&program, &[9], &options).unwrap(), [9, summed(9)]);
    }
}

#[test]
fn runs_in_a_fixed_order_go_through_the_slots_one_by_one() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let (first, second) = (Arc::clone(&order), Arc::clone(&order));
    let program = compile(&pipeline(
        3,
        move |i| {
            first.lock().unwrap().push(i);
            Ok(i + 1)
        },
        move |i| {
            second.lock().unwrap().push(100 + i);
            Ok(7 * i)
        },
    ));
    let options = RunOptions { deterministic: true, ..on(&Some(pools::of(2))) };
    let mut orders = Vec::new();
    for _ in 0..3 {
        assert_eq!(run(&program, &[5], &options).unwrap(), [5, summed(5)]);
        orders.push(std::mem::take(&mut *order.lock().unwrap()));
    }
    assert_eq!(orders[0], orders[1]);
    let iterations: Vec<i32> = orders[0].iter().map(|call| call % 100).collect();
    assert!(iterations.is_sorted(), "{:?}", orders[0]);
    let options = RunOptions { finish_independent: true, ..on(&Some(pools::of(2))) };
    assert_eq!(run(&program, &[5], &options).unwrap(), [5, summed(5)]);
}
