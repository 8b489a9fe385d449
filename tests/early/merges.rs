//! Merges that go on with the first value that comes.

use super::build::{AtDoor, Builder, Door, all_pools, check, in_time, node_of, run};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use weir_core::base::{Code, Error, Ref};
use weir_core::graph::{RunOptions, ValueId};

fn switched(builder: &mut Builder, predicate: ValueId, value: ValueId) -> [ValueId; 2] {
    let name = builder.name();
    let switch = builder.graph.add_switch(&name, value, predicate).unwrap();
    [switch.output(0), switch.output(1)]
}

fn merged(builder: &mut Builder, inputs: &[ValueId]) -> [ValueId; 2] {
    let name = builder.name();
    let merge = builder.graph.add_merge(&name, inputs).unwrap();
    [merge.output(0), merge.output(1)]
}

/// The value plus one, or the value plus what is late, by the predicate; whoever is dead waits for the latecomer.
fn diamond(builder: &mut Builder, predicate: ValueId, value: ValueId, late: ValueId) -> [ValueId; 2] {
    let [no, yes] = switched(builder, predicate, value);
    let fast = builder.op(&[no], |x| x[0] + 1);
    let slow = builder.sum(&[yes, late]);
    merged(builder, &[slow, fast])
}

#[test]
fn a_merge_does_not_wait_for_the_dead() {
    let door = Arc::new(Door::default());
    let mut main = Builder::new("main");
    let [p, x] = [(); 2].map(|()| main.input());
    let late = main.late(&[x], &door);
    let [value, index] = diamond(&mut main, p, x, late);
    let behind = main.opening(&[value], &door);
    main.output(behind);
    main.output(index);
    check(&main.compile_shared(), &[(&[0, 3], &[4, 1])]);
    assert!(door.0.lock().unwrap().1.is_empty(), "a run is not over before what was dead and late");

    // On the other side it is the late one that lives.
    let mut main = Builder::new("main");
    let [p, x] = [(); 2].map(|()| main.input());
    let first = main.opening(&[x], &door);
    let late = main.late(&[first], &door);
    let [value, index] = diamond(&mut main, p, x, late);
    main.output(value);
    main.output(index);
    check(&main.compile_shared(), &[(&[1, 3], &[6, 0]), (&[0, 3], &[4, 1])]);
}

#[test]
fn a_merge_in_a_loop_begins_anew_in_each_iteration() {
    // for i in 0..n: sum += i + 1, while the dead side comes late; what is late comes when the sum is there.
    let door = Arc::new(Door::default());
    let (mut condition, x) = Builder::of("condition", 3);
    let less = condition.op(&[x[0], x[2]], |x| i32::from(x[0] < x[1]));
    let condition = condition.giving(&[less]);
    let (mut body, x) = Builder::of("body", 3);
    let late = body.late(&[x[0]], &door);
    let never = body.op(&[x[0]], |_| 0);
    let [value, _] = diamond(&mut body, never, x[0], late);
    let sum = body.opening(&[x[1], value], &door);
    let next = body.op(&[x[0]], |x| x[0] + 1);
    let body = body.giving(&[next, sum]);
    let (mut main, x) = Builder::of("main", 2);
    let looped = main.graph.add_while("loop", &condition, &body, &[x[0], x[0]], &[x[1]], 1).unwrap();
    main.output(looped.output(1));
    check(&main.compile_shared(), &[(&[0, 0], &[0]), (&[0, 1], &[1]), (&[0, 30], &[465])]);
}

#[test]
fn a_dead_merge_is_a_dead_input_of_the_next_one() {
    let door = Arc::new(Door::default());
    let mut main = Builder::new("main");
    let [p, x] = [(); 2].map(|()| main.input());
    let late = main.late(&[x], &door);
    let [no, yes] = switched(&mut main, p, x);
    // Dead as a whole when p is false, and known to be so when the latecomer is there.
    let (inner, both) = (main.sum(&[yes, late]), main.sum(&[yes]));
    let predicate = main.sum(&[p]);
    let [one, other] = switched(&mut main, predicate, both);
    let left = main.sum(&[one, inner]);
    let right = main.sum(&[other, inner]);
    let [dead, _] = merged(&mut main, &[left, right]);
    let live = main.sum(&[no]);
    let [value, index] = merged(&mut main, &[dead, live]);
    let behind = main.opening(&[value], &door);
    main.output(behind);
    main.output(index);
    check(&main.compile_shared(), &[(&[0, 3], &[3, 1])]);
}

#[test]
fn a_merge_waits_for_its_control_edges() {
    let (mut main, x) = Builder::of("main", 2);
    let seen = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&seen);
    let first = main.op(&[x[1]], move |x| {
        count.store(1, Relaxed);
        x[0]
    });
    let [no, yes] = switched(&mut main, x[0], x[1]);
    let (a, b) = (main.sum(&[no]), main.sum(&[yes]));
    let [value, index] = merged(&mut main, &[a, b]);
    main.graph.add_control_edge(node_of(first), node_of(value)).unwrap();
    let behind = main.op(&[value], move |x| x[0] * 10 + seen.swap(0, Relaxed) as i32);
    [first, behind, index].iter().for_each(|&value| main.output(value));
    check(&main.compile_shared(), &[(&[0, 3], &[3, 31, 0]), (&[1, 4], &[4, 41, 1])]);
}

#[test]
fn a_second_value_that_comes_late_is_an_error_that_names_both() {
    let door = Arc::new(Door::default());
    let mut main = Builder::new("main");
    let [p, x] = [(); 2].map(|()| main.input());
    let late = main.late(&[x], &door);
    let [no, yes] = switched(&mut main, p, x);
    let fast = main.sum(&[no]);
    let side = main.sum(&[yes]);
    let [value, _] = merged(&mut main, &[fast, late, side]);
    let behind = main.opening(&[value], &door);
    main.output(behind);
    let program = main.compile_shared();
    for pool in all_pools() {
        let program = Ref::clone(&program);
        in_time(move || {
            let options = RunOptions { threadpool: pool, ..RunOptions::default() };
            for round in 0..5 {
                let error = run(&program, &[round & 1, 3], &options).unwrap_err();
                assert_eq!(error.code(), Code::FailedPrecondition);
                let fast = ["node 'n5'", "node 'n6'"][round as usize & 1];
                for part in ["node 'n7'", "node 'n3'", fast, "a merge passes on one"] {
                    assert!(error.message().contains(part), "{}", error.message());
                }
            }
        });
    }
}

/// Whichever node fails, or when nobody does: the next run is whole.
#[test]
fn a_run_that_fails_leaves_all_merges_whole() {
    let mut main = Builder::new("main");
    let [p, x] = [(); 2].map(|()| main.input());
    let fails = |at: i32| {
        move |x: &[i32]| match x[0] == at {
            true => Err(Error::new(Code::DataLoss, "asked to fail")),
            false => Ok(x.iter().sum()),
        }
    };
    let first = main.try_op(&[x], fails(1));
    let [no, yes] = switched(&mut main, p, first);
    let (a, b) = (main.try_op(&[no], fails(2)), main.try_op(&[yes], fails(3)));
    let beside = main.try_op(&[x], fails(4));
    let [value, index] = merged(&mut main, &[a, b]);
    let [again, _] = diamond(&mut main, p, value, beside);
    let last = main.try_op(&[again], fails(6));
    main.output(last);
    main.output(index);
    let program = main.compile_shared();
    for pool in all_pools() {
        let program = Ref::clone(&program);
        in_time(move || {
            let options = RunOptions { threadpool: pool, ..RunOptions::default() };
            let serial = RunOptions { finish_independent: true, ..RunOptions::default() };
            for (p, x) in [(0, 1), (0, 2), (1, 3), (1, 4), (0, 4), (0, 5), (1, 2)] {
                let result = run(&program, &[p, x], &options);
                let (fails, y) = (![(1, 2)].contains(&(p, x)), if p == 0 { x + 1 } else { 2 * x });
                match result {
                    Err(error) => assert!(fails && error.code() == Code::DataLoss, "{p} {x}: {error}"),
                    Ok(outputs) => assert!(!fails && outputs == [y, p], "{p} {x}: {outputs:?}"),
                }
                assert_eq!(run(&program, &[1, 10], &options).unwrap(), [20, 1]);
                assert_eq!(run(&program, &[0, 10], &options).unwrap(), [11, 0]);
                assert_eq!(run(&program, &[0, 10], &serial).unwrap(), [11, 0]);
            }
        });
    }
}
