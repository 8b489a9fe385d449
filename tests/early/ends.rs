//! Runs that fail, or that end before everything has run.

use super::build::{AtDoor, Builder, Door, all_pools, fact, in_time, run};
use std::sync::Arc;
use std::time::Duration;
use weir_core::base::{Code, Error, Ref};
use weir_core::graph::RunOptions;

/// A cond in a cond in a loop of which anything may fail: the next run is whole.
fn fragile(door: &Arc<Door>) -> Builder {
    let fail_at = |at: i32| {
        move |x: &[i32]| if x[0] == at { Err(Error::new(Code::DataLoss, "asked to fail")) } else { Ok(x.iter().sum()) }
    };
    let (mut inner_then, x) = Builder::of("inner then", 2);
    let first = inner_then.try_op(&[x[0]], fail_at(4));
    let second = inner_then.sum(&[first, x[1]]);
    let inner_then = inner_then.giving(&[second]);
    let (inner_else, x) = Builder::of("inner else", 2);
    let inner_else = inner_else.giving(&[x[0]]);
    let (mut then, x) = Builder::of("then", 2);
    let selector = then.try_op(&[x[0]], fail_at(6));
    let chosen = then.graph.add_cond("inner", selector, &inner_then, &inner_else, &[x[0], x[1]]).unwrap();
    let then = then.giving(&[chosen.output(0)]);
    let (mut otherwise, x) = Builder::of("otherwise", 2);
    let first = otherwise.try_op(&[x[0]], fail_at(3));
    let otherwise = otherwise.giving(&[first]);
    let (mut condition, x) = Builder::of("condition", 3);
    let less = condition.op(&[x[0], x[2]], |x| i32::from(x[0] < x[1]));
    let condition = condition.giving(&[less]);
    let (mut body, x) = Builder::of("body", 3);
    let late = body.try_late(&[x[0]], door, fail_at(8));
    let even = body.try_op(&[x[0]], |x| {
        if x[0] == 9 { Err(Error::new(Code::DataLoss, "asked to fail")) } else { Ok(1 - (x[0] & 1)) }
    });
    let chosen = body.graph.add_cond("chosen", even, &then, &otherwise, &[x[0], late]).unwrap();
    let sum = body.sum(&[x[1], chosen.output(0)]);
    let next = body.op(&[x[0]], |x| x[0] + 1);
    let body = body.giving(&[next, sum]);
    let (mut main, x) = Builder::of("main", 3);
    let looped = main.graph.add_while("loop", &condition, &body, &[x[0], x[2]], &[x[1]], 1).unwrap();
    main.output(looped.output(1));
    main
}

#[test]
fn a_run_that_fails_anywhere_leaves_all_counters_whole() {
    let door = Arc::new(Door::default());
    let main = fragile(&door);
    let program = main.compile_shared();
    assert_eq!(fact(&program, "early"), 2);
    for pool in all_pools() {
        let (program, door) = (Ref::clone(&program), Arc::clone(&door));
        in_time(move || {
            // The door stands open.
            door.open_wide();
            let options = RunOptions { threadpool: pool, ..RunOptions::default() };
            for (from, fails) in
                [(3, true), (4, true), (5, true), (6, true), (7, true), (8, true), (9, true), (10, false)]
            {
                let result = run(&program, &[from, from + 2, 0], &options);
                match result {
                    Err(error) if fails => assert_eq!(error.code(), Code::DataLoss, "from {from}: {error}"),
                    result => assert!(!fails || from == 5 || from == 7, "from {from}: {result:?}"),
                }
                // 10: even, the inner one with 10 and late 10; 11: odd.
                assert_eq!(run(&program, &[10, 12, 0], &options).unwrap(), [31], "behind {from}");
            }
        });
    }
}

#[test]
fn a_deadline_in_an_early_branch_leaves_all_counters_whole() {
    let door = Arc::new(Door::default());
    let main = fragile(&door);
    let program = main.compile_shared();
    for pool in all_pools() {
        let (program, door) = (Ref::clone(&program), Arc::clone(&door));
        in_time(move || {
            let options = RunOptions { threadpool: pool, ..RunOptions::default() };
            for us in [1, 5, 20, 50, 100, 1000] {
                door.open_wide();
                let hurried = RunOptions { deadline_ns: us * 1000, ..options.clone() };
                if let Err(error) = run(&program, &[10, 60, 0], &hurried) {
                    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
                }
                // What is late comes when the time is over.
                door.0.lock().unwrap().0 = 0;
                let other = Arc::clone(&door);
                let opener = std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_micros(us + 200));
                    other.open_wide();
                });
                let hurried = RunOptions { deadline_ns: us * 1000, ..options.clone() };
                let error = run(&program, &[10, 12, 0], &hurried).err();
                opener.join().unwrap();
                door.open_wide();
                assert!(error.is_none_or(|error| error.code() == Code::DeadlineExceeded));
                assert_eq!(run(&program, &[10, 12, 0], &options).unwrap(), [31]);
            }
        });
    }
}

/// A failure in what only the untaken branch needs: everything else is run, if that is asked for.
#[test]
fn finish_independent_runs_a_branch_that_does_without_what_failed() {
    let (mut then, x) = Builder::of("then", 2);
    let both = then.sum(&x);
    let then = then.giving(&[both]);
    let (mut otherwise, x) = Builder::of("otherwise", 2);
    let one = otherwise.sum(&[x[0]]);
    let otherwise = otherwise.giving(&[one]);
    let (mut main, x) = Builder::of("main", 2);
    let bad = main.try_op(&[x[1]], |_| Err(Error::new(Code::DataLoss, "asked to fail")));
    let chosen = main.graph.add_cond("chosen", x[0], &then, &otherwise, &[x[1], bad]).unwrap();
    let behind = main.sum(&[chosen.output(0)]);
    main.output(behind);
    let program = main.compile_shared();
    let options = RunOptions { finish_independent: true, ..RunOptions::default() };
    for (selector, expected) in [(0, &[][..]), (1, &["chosen/then/n3", "n4"][..])] {
        let error = run(&program, &[selector, 5], &options).unwrap_err();
        let left_out: Vec<&str> = error.run().unwrap().left_out.iter().map(|name| &**name).collect();
        assert_eq!(left_out, expected, "{selector}");
    }
}
