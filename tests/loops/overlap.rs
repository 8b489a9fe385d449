//! What comes out, and how many iterations are in flight.

use super::pipeline::*;
use crate::kit::pools;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::*};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use weir_core::base::{Code, Error};

#[test]
fn overlapping_iterations_give_what_others_give() {
    for parallel in 1..=4 {
        let program = compile(&pipeline(parallel, |i| Ok(i + 1), |i| Ok(7 * i)));
        assert_eq!(fact(&program, "overlapping"), usize::from(parallel > 1));
        for pool in &all_pools() {
            for n in [0, 1, 2, 3, 4, 5, 17, 40, 1] {
                let got = run(&program, &[n], &on(pool)).unwrap();
                assert_eq!(got, [n.max(0), summed(n)], "{parallel} at once, {n} iterations, {pool:?}");
            }
        }
    }
}

/// Where kernels of different iterations meet.
#[derive(Default)]
struct Meeting {
    there: Mutex<u32>,
    changed: Condvar,
}

impl Meeting {
    /// Waits for the other one; false if it does not come.
    fn meet(&self) -> bool {
        let mut there = self.there.lock().unwrap();
        *there += 1;
        self.changed.notify_all();
        let (there, _) = self.changed.wait_timeout_while(there, Duration::from_secs(20), |there| *there < 2).unwrap();
        *there >= 2
    }
}

#[test]
fn two_iterations_are_in_flight_at_once() {
    // Iteration 0 is not over before iteration 1 is in the same kernel.
    let meeting = Arc::new(Meeting::default());
    let (met, late) = (Arc::new(AtomicU64::new(0)), Arc::clone(&meeting));
    let count = Arc::clone(&met);
    let program = compile(&pipeline(
        2,
        |i| Ok(i + 1),
        move |i| {
            count.fetch_add(u64::from(late.meet()), Relaxed);
            Ok(7 * i)
        },
    ));
    let pool = pools::named("", 2);
    assert_eq!(run(&program, &[2], &on(&Some(pool))).unwrap(), [2, summed(2)]);
    assert_eq!(met.load(Relaxed), 2, "one iteration waits for the other");
}

#[test]
fn an_iteration_s_early_part_overlaps_the_late_part_of_the_one_before() {
    // `early` of iteration 1 meets `late` of iteration 0.
    let meeting = Arc::new(Meeting::default());
    let (first, second) = (Arc::clone(&meeting), Arc::clone(&meeting));
    let program = compile(&pipeline(
        2,
        move |i| if i != 1 || first.meet() { Ok(i + 1) } else { Err(Error::new(Code::Aborted, "alone")) },
        move |i| if i != 0 || second.meet() { Ok(7 * i) } else { Err(Error::new(Code::Aborted, "alone")) },
    ));
    assert_eq!(run(&program, &[3], &on(&Some(pools::named("", 2)))).unwrap(), [3, summed(3)]);
}

#[test]
fn never_more_iterations_are_in_flight_than_asked_for() {
    for parallel in [2, 3] {
        // An iteration is in flight from its first kernel to its last.
        let (now, most) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
        let mut condition = Builder::new("condition");
        let x = condition.inputs(3);
        let less = condition.op(&[x[0], x[2]], |x| i32::from(x[0] < x[1]));
        let condition = condition.giving(&[less]);
        let mut body = Builder::new("body");
        let x = body.inputs(3);
        let (count, seen) = (Arc::clone(&now), Arc::clone(&most));
        let next = body.op(&[x[0]], move |x| {
            seen.fetch_max(count.fetch_add(1, SeqCst) + 1, SeqCst);
            x[0] + 1
        });
        let made = body.op(&[next], |x| {
            std::thread::sleep(Duration::from_micros(300));
            7 * (x[0] - 1)
        });
        let count = Arc::clone(&now);
        let sum = body.op(&[x[1], made], move |x| {
            count.fetch_sub(1, SeqCst);
            x[0].wrapping_mul(31).wrapping_add(x[1])
        });
        let body = body.giving(&[next, sum]);
        let mut main = Builder::new("main");
        let n = main.input();
        let zero = main.constant(0);
        let looped = main.graph.add_while("loop", &condition, &body, &[zero, zero], &[n], parallel).unwrap();
        let program = compile(&main.giving(&[looped.output(1)]));
        assert_eq!(fact(&program, "overlapping"), 1);
        let pool = Some(pools::named("", 4));
        for _ in 0..20 {
            assert_eq!(run(&program, &[30], &on(&pool)).unwrap(), [summed(30)]);
        }
        let most = most.load(SeqCst);
        assert!(1 < most && most <= i64::from(parallel), "{most} in flight, asked for {parallel}");
    }
}

#[test]
fn kernels_that_complete_later_overlap_in_one_thread() {
    let _alone = ALONE.lock();
    for (parallel, expected) in [(1, 2), (4, 5)] {
        // `early` and `late` of one iteration are on their way together; of several iterations, several `late`.
        let program = compile(&pipeline_of(later(), parallel, |i| Ok(i + 1), |i| Ok(7 * i)));
        for n in [0, 1, 2, 9, 3] {
            for pool in [None, Some(pools::of(2))] {
                assert_eq!(run(&program, &[n], &on(&pool)).unwrap(), [n, summed(n)]);
            }
        }
        MOST_PENDING.store(0, SeqCst);
        // On a busy machine the threads that complete them may take turns with this one.
        for _ in 0..20 {
            run(&program, &[40], &on(&None)).unwrap();
            if parallel == 1 || MOST_PENDING.load(SeqCst) > 2 {
                break;
            }
        }
        let most = MOST_PENDING.load(SeqCst);
        assert!(most <= expected && (parallel == 1 || most > 2), "{most} pending, {parallel} at once");
    }
}
