//! Branches and merges inside of loops whose iterations overlap, and such loops inside of branches that begin early.

use super::build::{AtDoor, Builder, Door, check, fact};
use std::sync::Arc;
use weir_core::graph::Graph;

/// i < n, of i, sum and n.
fn condition() -> Graph {
    let (mut condition, x) = Builder::of("condition", 3);
    let less = condition.op(&[x[0], x[2]], |x| i32::from(x[0] < x[1]));
    condition.giving(&[less])
}

/// Adds 7 * i to the sum, in two kernels beside the counter.
fn body() -> Graph {
    let (mut body, x) = Builder::of("body", 3);
    let next = body.op(&[x[0]], |x| x[0] + 1);
    let made = body.op(&[x[0]], |x| 7 * x[0]);
    let sum = body.sum(&[x[1], made]);
    body.giving(&[next, sum])
}

fn sum_of(n: i32) -> i32 {
    (0..n).map(|i| 7 * i).sum()
}

#[test]
fn a_cond_begins_before_an_overlapping_loop_is_over() {
    let door = Arc::new(Door::default());
    let (mut then, x) = Builder::of("then", 2);
    let first = then.opening(&[x[0]], &door);
    let second = then.op(&[first, x[1]], |x| x[0] * 1000 + x[1]);
    let then = then.giving(&[second]);
    let (mut otherwise, x) = Builder::of("otherwise", 2);
    let only = otherwise.opening(&[x[0]], &door);
    let otherwise = otherwise.giving(&[only]);
    let (mut main, x) = Builder::of("main", 3);
    let zero = main.op(&[x[2]], |_| 0);
    // The loop does not begin before the branch has run, and is waited for if nobody needs it.
    let n = main.late(&[x[2]], &door);
    let looped = main.graph.add_while("looped", &condition(), &body(), &[zero, zero], &[n], 4).unwrap();
    let chosen = main.graph.add_cond("chosen", x[0], &then, &otherwise, &[x[1], looped.output(1)]).unwrap();
    main.output(chosen.output(0));
    let program = main.compile_shared();
    assert_eq!((fact(&program, "early"), fact(&program, "overlapping")), (1, 1));
    let taken = 3000 + sum_of(6);
    check(&program, &[(&[1, 3, 6], &[taken]), (&[0, 3, 6], &[3]), (&[1, 3, 0], &[3000]), (&[0, 4, 0], &[4])]);
}

#[test]
fn an_overlapping_loop_in_a_branch_waits_for_what_is_late() {
    let door = Arc::new(Door::default());
    let (mut then, x) = Builder::of("then", 2);
    let first = then.opening(&[x[0]], &door);
    let zero = then.op(&[first], |_| 0);
    let looped = then.graph.add_while("looped", &condition(), &body(), &[zero, zero], &[x[1]], 4).unwrap();
    let then = then.giving(&[looped.output(1)]);
    // Here it waits for nothing but the choice and what is late.
    let (mut otherwise, x) = Builder::of("otherwise", 2);
    let first = otherwise.opening(&[x[0]], &door);
    let looped = otherwise.graph.add_while("looped", &condition(), &body(), &[x[1], x[0]], &[x[1]], 4).unwrap();
    let sum = otherwise.sum(&[first, looped.output(1)]);
    let otherwise = otherwise.giving(&[sum]);
    let (mut main, x) = Builder::of("main", 3);
    let late = main.late(&[x[2]], &door);
    let chosen = main.graph.add_cond("chosen", x[0], &then, &otherwise, &[x[1], late]).unwrap();
    main.output(chosen.output(0));
    let program = main.compile_shared();
    assert_eq!((fact(&program, "early"), fact(&program, "overlapping")), (1, 2));
    check(&program, &[(&[1, 3, 9], &[sum_of(9)]), (&[0, 3, 9], &[6]), (&[1, 3, 0], &[0])]);
}

/// In each iteration a cond, one of whose inputs comes later than the other, and a merge of two sides. Nothing of it
/// begins early.
#[test]
fn branches_and_merges_in_overlapping_iterations_wait_for_all_inputs() {
    let (mut then, x) = Builder::of("then", 2);
    let first = then.op(&[x[0]], |x| x[0] + 1);
    let second = then.op(&[first, x[1]], |x| x[0] * 10 + x[1]);
    let then = then.giving(&[second]);
    let (mut otherwise, x) = Builder::of("otherwise", 2);
    let only = otherwise.op(&[x[0]], |x| x[0] * 2);
    let otherwise = otherwise.giving(&[only]);
    let (mut body, x) = Builder::of("body", 3);
    let next = body.op(&[x[0]], |x| x[0] + 1);
    let odd = body.op(&[x[0]], |x| x[0] % 2);
    let slow = body.op(&[x[0]], |x| x[0] * 3);
    let slow = body.op(&[slow], |x| x[0] + 1);
    let chosen = body.graph.add_cond("chosen", odd, &then, &otherwise, &[x[0], slow]).unwrap();
    let sides = body.graph.add_switch("sides", slow, odd).unwrap();
    let (no, yes) = (sides.output(0), sides.output(1));
    let (no, yes) = (body.op(&[no], |x| x[0] + 100), body.op(&[yes], |x| x[0] + 200));
    let merged = body.graph.add_merge("merged", &[no, yes]).unwrap();
    let sum = body.op(&[x[1], chosen.output(0), merged.output(0)], |x| {
        x[0].wrapping_mul(31).wrapping_add(x[1]).wrapping_add(x[2])
    });
    let body = body.giving(&[next, sum]);
    let (mut main, x) = Builder::of("main", 1);
    let zero = main.op(&[x[0]], |_| 0);
    let looped = main.graph.add_while("looped", &condition(), &body, &[zero, zero], &[x[0]], 4).unwrap();
    main.output(looped.output(1));
    let program = main.compile_shared();
    assert_eq!((fact(&program, "early"), fact(&program, "overlapping")), (0, 1));
    let expected = |n: i32| {
        (0..n).fold(0i32, |sum, i| {
            let slow = 3 * i + 1;
            let (chosen, merged) = if i % 2 == 1 { ((i + 1) * 10 + slow, slow + 200) } else { (2 * i, slow + 100) };
            sum.wrapping_mul(31).wrapping_add(chosen).wrapping_add(merged)
        })
    };
    let cases: Vec<([i32; 1], [i32; 1])> = [0, 1, 2, 5, 6, 13, 40].map(|n| ([n], [expected(n)])).to_vec();
    let cases: Vec<(&[i32], &[i32])> = cases.iter().map(|(x, y)| (&x[..], &y[..])).collect();
    check(&program, &cases);
}
