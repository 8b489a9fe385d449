//! Branches that begin before all of their inputs are there.

use super::build::{AtDoor, Builder, Door, check, fact, node_of};
use std::sync::Arc;
use weir_core::graph::ValueId;

#[test]
fn a_slow_input_holds_back_only_who_uses_it() {
    // then: the second node needs what is late, the first one lets it come. else: no node needs it.
    let door = Arc::new(Door::default());
    let (mut then, x) = Builder::of("then", 2);
    let first = then.opening(&[x[0]], &door);
    let second = then.op(&[first, x[1]], |x| x[0] * 10 + x[1]);
    let then = then.giving(&[second]);
    let (mut otherwise, x) = Builder::of("otherwise", 2);
    let only = otherwise.opening(&[x[0]], &door);
    let otherwise = otherwise.giving(&[only]);
    let (mut main, x) = Builder::of("main", 3);
    let late = main.late(&[x[2]], &door);
    let chosen = main.graph.add_cond("chosen", x[0], &then, &otherwise, &[x[1], late]).unwrap();
    let behind = main.sum(&[chosen.output(0)]);
    main.output(behind);
    let program = main.compile_shared();
    assert_eq!(fact(&program, "early"), 1);
    check(&program, &[(&[1, 3, 4], &[34]), (&[0, 3, 4], &[3])]);
}

#[test]
fn an_untaken_branch_delays_nobody_and_the_run_waits_for_the_late() {
    // Only behind the cond is the door opened.
    let door = Arc::new(Door::default());
    let (mut then, x) = Builder::of("then", 1);
    let next = then.sum(&[x[0], x[0]]);
    let then = then.giving(&[next]);
    let (otherwise, _) = Builder::of("otherwise", 1);
    let (mut otherwise, seven) = (otherwise, 7);
    let value = otherwise.op(&[], move |_| seven);
    let otherwise = otherwise.giving(&[value]);
    let (mut main, x) = Builder::of("main", 2);
    let late = main.late(&[x[1]], &door);
    let chosen = main.graph.add_cond("chosen", x[0], &then, &otherwise, &[late]).unwrap();
    let behind = main.opening(&[chosen.output(0)], &door);
    main.output(behind);
    let program = main.compile_shared();
    check(&program, &[(&[0, 5], &[7])]);
    let holds = door.0.lock().unwrap();
    assert!(holds.0 == 0 && holds.1.is_empty(), "every run was over behind its late kernel");
}

#[test]
fn a_control_edge_from_the_cond_does_not_wait_for_what_was_not_needed() {
    let door = Arc::new(Door::default());
    let (mut then, x) = Builder::of("then", 2);
    let next = then.sum(&[x[0], x[1]]);
    let then = then.giving(&[next]);
    let (otherwise, x) = Builder::of("otherwise", 2);
    let otherwise = otherwise.giving(&[x[1]]);
    let (mut main, x) = Builder::of("main", 3);
    let late = main.late(&[x[1]], &door);
    let chosen = main.graph.add_cond("chosen", x[0], &then, &otherwise, &[late, x[2]]).unwrap();
    let behind = main.opening(&[x[2]], &door);
    main.graph.add_control_edge(chosen, node_of(behind)).unwrap();
    main.output(behind);
    main.output(chosen.output(0));
    check(&main.compile_shared(), &[(&[0, 5, 6], &[6, 6])]);
}

#[test]
fn a_branch_gives_a_late_input_as_it_is() {
    let door = Arc::new(Door::default());
    let (mut then, x) = Builder::of("then", 2);
    let first = then.opening(&[x[0]], &door);
    let then = then.giving(&[first, x[1]]);
    let (mut otherwise, x) = Builder::of("otherwise", 2);
    let first = otherwise.opening(&[x[0]], &door);
    let otherwise = otherwise.giving(&[x[1], first]);
    let (mut main, x) = Builder::of("main", 3);
    let late = main.late(&[x[2]], &door);
    let chosen = main.graph.add_cond("chosen", x[0], &then, &otherwise, &[x[1], late]).unwrap();
    main.output(chosen.output(0));
    main.output(chosen.output(1));
    check(&main.compile_shared(), &[(&[1, 3, 4], &[3, 4]), (&[0, 3, 4], &[4, 3])]);
}

/// In a branch of a branch: what is late comes when a node of the inner branch has run.
#[test]
fn branches_in_branches_begin_early_as_well() {
    let door = Arc::new(Door::default());
    // inputs: selector of the inner one, x, late
    let (mut inner_then, x) = Builder::of("inner then", 2);
    let first = inner_then.opening(&[x[0]], &door);
    let second = inner_then.op(&[first, x[1]], |x| x[0] * 10 + x[1]);
    let inner_then = inner_then.giving(&[second]);
    let (mut inner_else, x) = Builder::of("inner else", 2);
    let first = inner_else.opening(&[x[0]], &door);
    let inner_else = inner_else.giving(&[first]);
    let (mut then, x) = Builder::of("then", 3);
    let selector = then.sum(&[x[0]]);
    let chosen = then.graph.add_cond("inner", selector, &inner_then, &inner_else, &[x[1], x[2]]).unwrap();
    let then = then.giving(&[chosen.output(0)]);
    let (mut otherwise, x) = Builder::of("otherwise", 3);
    let first = otherwise.opening(&[x[1]], &door);
    let second = otherwise.op(&[first, x[2]], |x| x[0] * 100 + x[1]);
    let otherwise = otherwise.giving(&[second]);
    let (mut main, x) = Builder::of("main", 4);
    let late = main.late(&[x[3]], &door);
    let chosen = main.graph.add_cond("chosen", x[0], &then, &otherwise, &[x[1], x[2], late]).unwrap();
    main.output(chosen.output(0));
    let program = main.compile_shared();
    assert_eq!(fact(&program, "early"), 2);
    let cases: [(&[i32], &[i32]); 4] =
        [(&[1, 1, 3, 4], &[34]), (&[0, 1, 3, 4], &[304]), (&[1, 0, 3, 4], &[3]), (&[0, 0, 3, 4], &[304])];
    check(&program, &cases);
}

/// sum = 0; for i in 0..n: sum += i odd ? 10 + late(i) : i, where late(i) comes when the branch has begun.
#[test]
fn an_early_branch_in_a_loop_begins_anew_in_each_iteration() {
    let door = Arc::new(Door::default());
    let (mut then, x) = Builder::of("then", 2);
    let first = then.opening(&[x[0]], &door);
    let second = then.op(&[first, x[1]], |x| x[1] - x[0] + x[0] + 10);
    let then = then.giving(&[second]);
    let (mut otherwise, x) = Builder::of("otherwise", 2);
    let first = otherwise.opening(&[x[0]], &door);
    let otherwise = otherwise.giving(&[first]);
    let (mut condition, x) = Builder::of("condition", 3);
    let less = condition.op(&[x[0], x[2]], |x| i32::from(x[0] < x[1]));
    let condition = condition.giving(&[less]);
    let (mut body, x) = Builder::of("body", 3);
    let late = body.late(&[x[0]], &door);
    let odd = body.op(&[x[0]], |x| x[0] & 1);
    let chosen = body.graph.add_cond("chosen", odd, &then, &otherwise, &[x[0], late]).unwrap();
    let sum = body.sum(&[x[1], chosen.output(0)]);
    let next = body.op(&[x[0]], |x| x[0] + 1);
    let body = body.giving(&[next, sum]);
    let (mut main, x) = Builder::of("main", 2);
    let looped = main.graph.add_while("loop", &condition, &body, &[x[0], x[0]], &[x[1]], 1).unwrap();
    main.output(looped.output(1));
    let sum = |n: i32| (0..n).map(|i| if i & 1 == 1 { 10 + i } else { i }).sum::<i32>();
    check(&main.compile_shared(), &[(&[0, 30], &[sum(30)]), (&[0, 1], &[0]), (&[0, 7], &[sum(7)])]);
}

#[test]
fn what_a_cond_gives_may_come_late_to_another_one() {
    let door = Arc::new(Door::default());
    let (mut slow, x) = Builder::of("slow", 1);
    let late = slow.late(&[x[0]], &door);
    let slow = slow.giving(&[late]);
    let (mut fast, x) = Builder::of("fast", 1);
    let opened = fast.opening(&[x[0]], &door);
    let gone = fast.late(&[opened], &door);
    let fast = fast.giving(&[gone]);
    let (mut then, x) = Builder::of("then", 2);
    let first = then.sum(&[x[0]]);
    let second = then.op(&[first, x[1]], |x| x[0] * 10 + x[1]);
    let then = then.giving(&[second]);
    let (otherwise, x) = Builder::of("otherwise", 2);
    let otherwise = otherwise.giving(&[x[0]]);
    let (mut main, x) = Builder::of("main", 4);
    let one = main.graph.add_cond("one", x[0], &slow, &fast, &[x[2]]).unwrap();
    let two = main.graph.add_cond("two", x[1], &then, &otherwise, &[x[3], one.output(0)]).unwrap();
    main.output(two.output(0));
    // Whatever was chosen in the first one, the door is opened once more than it was gone through; but only here if it
    // was `slow`.
    let opens = main.op(&[x[0]], {
        let door = Arc::clone(&door);
        move |x| {
            (0..x[0]).for_each(|_| door.open());
            0
        }
    });
    main.output(opens);
    let program = main.compile_shared();
    assert_eq!(fact(&program, "early"), 1);
    let cases: [(&[i32], &[i32]); 4] =
        [(&[1, 1, 4, 3], &[34, 0]), (&[0, 1, 4, 3], &[34, 0]), (&[1, 0, 4, 3], &[3, 0]), (&[0, 0, 4, 3], &[3, 0])];
    check(&program, &cases);
}

/// More late inputs than a join takes elsewhere without leaves.
#[test]
fn a_node_may_wait_for_many_late_inputs() {
    const MANY: usize = 100;
    let door = Arc::new(Door::default());
    let (mut then, x) = Builder::of("then", MANY);
    let first = then.op(&[], {
        let door = Arc::clone(&door);
        move |_| {
            (0..MANY).for_each(|_| door.open());
            1000
        }
    });
    let all: Vec<ValueId> = x.iter().copied().chain([first]).collect();
    let sum = then.sum(&all);
    let without = then.sum(&x);
    let then = then.giving(&[sum, without]);
    let (mut otherwise, _) = Builder::of("otherwise", MANY);
    let first = otherwise.op(&[], {
        let door = Arc::clone(&door);
        move |_| {
            (0..MANY).for_each(|_| door.open());
            7
        }
    });
    let otherwise = otherwise.giving(&[first, first]);
    let (mut main, x) = Builder::of("main", 2);
    let late: Vec<ValueId> = (0..MANY).map(|_| main.late(&[x[1]], &door)).collect();
    let chosen = main.graph.add_cond("chosen", x[0], &then, &otherwise, &late).unwrap();
    main.output(chosen.output(0));
    main.output(chosen.output(1));
    check(&main.compile_shared(), &[(&[1, 2], &[1200, 200]), (&[0, 2], &[7, 7])]);
}

#[test]
fn what_all_of_a_branch_needs_is_waited_for_in_one_place() {
    // f(x, y) or g(x, y): nothing can begin before both are there.
    let (mut then, x) = Builder::of("then", 2);
    let sum = then.sum(&x);
    let then = then.giving(&[sum]);
    let (mut otherwise, x) = Builder::of("otherwise", 2);
    let less = otherwise.op(&x, |x| x[0] - x[1]);
    let again = otherwise.sum(&[less, x[0]]);
    let otherwise = otherwise.giving(&[again]);
    let (mut main, x) = Builder::of("main", 3);
    let (a, b) = (main.sum(&[x[1]]), main.sum(&[x[2]]));
    let chosen = main.graph.add_cond("chosen", x[0], &then, &otherwise, &[a, b]).unwrap();
    main.output(chosen.output(0));
    let program = main.compile_shared();
    assert_eq!(fact(&program, "early"), 0);
    check(&program, &[(&[1, 3, 4], &[7]), (&[0, 3, 4], &[2])]);

    // What the predicate was computed from is there before it.
    let (mut then, x) = Builder::of("then", 2);
    let (one, other) = (then.sum(&[x[0]]), then.sum(&[x[1]]));
    let then = then.giving(&[one, other]);
    let (otherwise, x) = Builder::of("otherwise", 2);
    let otherwise = otherwise.giving(&[x[1], x[0]]);
    let (mut main, x) = Builder::of("main", 2);
    let (a, b) = (main.sum(&[x[0]]), main.sum(&[x[1]]));
    let sum = main.sum(&[a, b]);
    let predicate = main.op(&[sum], |x| i32::from(x[0] > 5));
    let chosen = main.graph.add_cond("chosen", predicate, &then, &otherwise, &[a, b]).unwrap();
    main.output(chosen.output(0));
    main.output(chosen.output(1));
    let program = main.compile_shared();
    assert_eq!(fact(&program, "early"), 0);
    check(&program, &[(&[3, 4], &[3, 4]), (&[3, 1], &[1, 3])]);
}
