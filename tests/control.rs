//! Control flow: cond, case, while, switch and merge, inside one another, alone and on pools.

#[path = "kit/mod.rs"]
mod kit;

use kit::integers::Builder;
use kit::pools;
use kit::run::{RUNS_OF_CHECK, check, on, run};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};
use weir_core::base::{Code, Error, Result};
use weir_core::graph::{Graph, ValueId};
use weir_core::kernel::Task;

/// The same tests with kernels that complete later, some before their start returns: tests/control_later.rs.
fn builder(name: &str) -> Builder {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let mut builder = Builder::new(name);
    if module_path!().starts_with("control_later") {
        builder.how.later = Some(Arc::new(|_, done, result| {
            let complete = move || {
                done.done(result).unwrap();
                assert!(done.done(Ok(())).is_err());
            };
            if CALLS.fetch_add(1, Relaxed).is_multiple_of(3) {
                std::thread::spawn(complete);
            } else {
                complete();
            }
        }));
    }
    builder
}

#[test]
fn a_cond_runs_the_branch_that_the_predicate_says() {
    let mut then = builder("then");
    let x = then.input();
    let y = then.op(&[x], |x| x[0] + 1);
    let z = then.op(&[x], |x| x[0] * 10);
    then.output(y);
    then.output(z);
    let mut otherwise = builder("otherwise");
    let x = otherwise.input();
    let y = otherwise.op(&[x], |x| x[0] - 1);
    otherwise.output(y);
    otherwise.output(x);
    let mut main = builder("main");
    let (p, x) = (main.input(), main.input());
    let chosen = main.graph.add_cond("chosen", p, &then.graph, &otherwise.graph, &[x]).unwrap();
    let sum = main.op(&[chosen.output(0), chosen.output(1), x], |x| x[0] + 100 * x[1] + 10_000 * x[2]);
    main.output(sum);
    main.output(chosen.output(1));
    main.output(chosen.output(1));
    let program = main.compile();
    check(&program, &[1, 5], &[6 + 5000 + 50_000, 50, 50]);
    check(&program, &[0, 5], &[4 + 500 + 50_000, 5, 5]);
}

#[test]
fn a_case_out_of_range_is_the_last() {
    let branches: Vec<Builder> = (0..4)
        .map(|i| {
            let mut branch = builder("branch");
            let x = branch.input();
            let y = branch.op(&[x], move |x| x[0] * 10 + i);
            branch.output(y);
            branch
        })
        .collect();
    let mut main = builder("main");
    let (index, x) = (main.input(), main.input());
    let graphs: Vec<&Graph> = branches.iter().map(|branch| &branch.graph).collect();
    let chosen = main.graph.add_case("chosen", index, &graphs, &[x]).unwrap();
    main.output(chosen.output(0));
    let program = main.compile();
    for (index, expected) in [(0, 70), (1, 71), (2, 72), (3, 73), (4, 73), (-1, 73)] {
        check(&program, &[index, 7], &[expected]);
    }
}

/// while i < n: (i, a, b) = (i + 1, b, a + b), n an invariant.
fn fibonacci(main: &mut Builder, name: &str, n: ValueId, parallel: u32) -> ValueId {
    let mut condition = builder("condition");
    let inputs: Vec<_> = (0..4).map(|_| condition.input()).collect();
    let less = condition.op(&[inputs[0], inputs[3]], |x| i32::from(x[0] < x[1]));
    condition.output(less);
    let mut body = builder("body");
    let inputs: Vec<_> = (0..4).map(|_| body.input()).collect();
    let i = body.op(&[inputs[0]], |x| x[0] + 1);
    let sum = body.op(&[inputs[1], inputs[2]], |x| x[0].wrapping_add(x[1]));
    body.output(i);
    body.output(inputs[2]);
    body.output(sum);
    let (zero, a, b) = (main.constant(0), main.constant(0), main.constant(1));
    let looped = main.graph.add_while(name, &condition.graph, &body.graph, &[zero, a, b], &[n], parallel).unwrap();
    looped.output(1)
}

#[test]
fn a_loop_carries_its_variables() {
    let mut main = builder("main");
    let n = main.input();
    let f = fibonacci(&mut main, "fibonacci", n, 1);
    main.output(f);
    let program = main.compile();
    for (n, expected) in [(0, 0), (1, 1), (2, 1), (3, 2), (10, 55), (40, 102_334_155)] {
        check(&program, &[n], &[expected]);
    }
}

#[test]
fn loops_lie_in_branches_and_branches_in_loops() {
    // then: fibonacci(x); else: while x < 100: x = x odd ? 3 x + 1 : x + 7
    let mut then = builder("then");
    let x = then.input();
    let f = fibonacci(&mut then, "f", x, 1);
    then.output(f);

    let mut odd = builder("odd");
    let x = odd.input();
    let y = odd.op(&[x], |x| 3 * x[0] + 1);
    odd.output(y);
    let mut even = builder("even");
    let x = even.input();
    let y = even.op(&[x], |x| x[0] + 7);
    even.output(y);
    let mut condition = builder("condition");
    let x = condition.input();
    let small = condition.op(&[x], |x| i32::from(x[0] < 100));
    condition.output(small);
    let mut body = builder("body");
    let x = body.input();
    let is_odd = body.op(&[x], |x| x[0] & 1);
    let next = body.graph.add_cond("step", is_odd, &odd.graph, &even.graph, &[x]).unwrap();
    body.output(next.output(0));
    let mut otherwise = builder("otherwise");
    let x = otherwise.input();
    let looped = otherwise.graph.add_while("grow", &condition.graph, &body.graph, &[x], &[], 1).unwrap();
    otherwise.output(looped.output(0));

    let mut main = builder("main");
    let (p, x) = (main.input(), main.input());
    let chosen = main.graph.add_cond("chosen", p, &then.graph, &otherwise.graph, &[x]).unwrap();
    let y = main.op(&[chosen.output(0)], |x| x[0]);
    main.output(y);
    let program = main.compile();
    check(&program, &[1, 12], &[144]);
    let grow = |mut x: i32| {
        while x < 100 {
            x = if x & 1 == 1 { 3 * x + 1 } else { x + 7 };
        }
        x
    };
    for x in [1, 2, 50, 99, 100, 101] {
        check(&program, &[0, x], &[grow(x)]);
    }
}

#[test]
fn a_nested_loop_begins_anew_in_each_iteration() {
    // i from 0 to n: sum += fibonacci(i)
    let mut condition = builder("condition");
    let (i, _, n) = (condition.input(), condition.input(), condition.input());
    let less = condition.op(&[i, n], |x| i32::from(x[0] < x[1]));
    condition.output(less);
    let mut body = builder("body");
    let (i, sum, _) = (body.input(), body.input(), body.input());
    let f = fibonacci(&mut body, "f", i, 1);
    let next = body.op(&[sum, f], |x| x[0] + x[1]);
    let i = body.op(&[i], |x| x[0] + 1);
    body.output(i);
    body.output(next);
    let mut main = builder("main");
    let n = main.input();
    let zero = main.constant(0);
    let looped = main.graph.add_while("outer", &condition.graph, &body.graph, &[zero, zero], &[n], 1).unwrap();
    main.output(looped.output(1));
    let program = main.compile();
    for (n, expected) in [(0, 0), (1, 0), (2, 1), (8, 33)] {
        check(&program, &[n], &[expected]);
    }
}

#[derive(Default)]
struct Count(AtomicU64);

impl Task for Count {
    fn run(&self) -> Result<()> {
        self.0.fetch_add(1, Relaxed);
        Ok(())
    }
}

#[test]
fn what_waits_for_a_cond_or_a_loop_waits_for_all_of_it() {
    let inner = Arc::new(Count::default());
    let mut then = builder("then");
    let x = then.input();
    for i in 0..5 {
        then.graph.add_task(&format!("t{i}"), Arc::clone(&inner) as Arc<dyn Task>, 50_000).unwrap();
    }
    then.output(x);
    let mut otherwise = builder("otherwise");
    let x = otherwise.input();
    otherwise.output(x);
    let mut main = builder("main");
    let (p, x) = (main.input(), main.input());
    let chosen = main.graph.add_cond("chosen", p, &then.graph, &otherwise.graph, &[x]).unwrap();
    let seen = Arc::clone(&inner);
    let look = main.op(&[x], move |_| seen.0.swap(0, Relaxed) as i32);
    main.output(look);
    // The kernel's node is the one of its value.
    let node = weir_core::graph::NodeId::from(u64::from(look) & !0xffff);
    main.graph.add_control_edge(chosen, node).unwrap();
    let program = main.compile();
    check(&program, &[1, 0], &[5]);
    check(&program, &[0, 0], &[0]);
}

#[test]
fn tasks_in_a_branch_run_though_nothing_waits_for_them() {
    let count = Arc::new(Count::default());
    let mut then = builder("then");
    for i in 0..3 {
        then.graph.add_task(&format!("t{i}"), Arc::clone(&count) as Arc<dyn Task>, 50_000).unwrap();
    }
    let otherwise = builder("otherwise");
    let mut main = builder("main");
    let p = main.input();
    main.graph.add_cond("chosen", p, &then.graph, &otherwise.graph, &[]).unwrap();
    let program = main.compile();
    check(&program, &[0], &[]);
    assert_eq!(count.0.swap(0, Relaxed), 0);
    check(&program, &[1], &[]);
    assert_eq!(count.0.swap(0, Relaxed), 3 * RUNS_OF_CHECK);
}

fn switched(main: &mut Builder, p: ValueId, x: ValueId) -> (ValueId, ValueId) {
    let name = main.name();
    let switch = main.graph.add_switch(&name, x, p).unwrap();
    (switch.output(0), switch.output(1))
}

#[test]
fn a_merge_takes_the_side_that_is_there() {
    let mut main = builder("main");
    let (p, x) = (main.input(), main.input());
    let (on_false, on_true) = switched(&mut main, p, x);
    let a = main.op(&[on_false], |x| x[0] + 1);
    let a = main.op(&[a, x], |x| x[0] * x[1]);
    let b = main.op(&[on_true], |x| x[0] - 1);
    let merged = main.graph.add_merge("merged", &[a, b]).unwrap();
    main.output(merged.output(0));
    main.output(merged.output(1));
    let program = main.compile();
    check(&program, &[0, 7], &[56, 0]);
    check(&program, &[1, 7], &[6, 1]);
}

#[test]
fn deadness_goes_through_conds_loops_and_switches() {
    // On the true side: a second switch, a cond and a loop; merged step by step.
    let mut plus = builder("plus");
    let x = plus.input();
    let y = plus.op(&[x], |x| x[0] + 1000);
    plus.output(y);
    let mut minus = builder("minus");
    let x = minus.input();
    let y = minus.op(&[x], |x| x[0] - 1000);
    minus.output(y);
    let mut main = builder("main");
    let (p, q, x) = (main.input(), main.input(), main.input());
    let (on_false, on_true) = switched(&mut main, p, x);
    let (tf, tt) = switched(&mut main, q, on_true);
    let chosen = main.graph.add_cond("chosen", q, &plus.graph, &minus.graph, &[tt]).unwrap();
    let f = fibonacci(&mut main, "f", tf, 1);
    let inner = main.graph.add_merge("inner", &[f, chosen.output(0)]).unwrap();
    let outer = main.graph.add_merge("outer", &[on_false, inner.output(0)]).unwrap();
    main.output(outer.output(0));
    let program = main.compile();
    check(&program, &[0, 0, 9], &[9]);
    check(&program, &[0, 1, 9], &[9]);
    check(&program, &[1, 0, 9], &[34]);
    check(&program, &[1, 1, 9], &[1009]);
}

#[test]
fn two_live_inputs_of_a_merge_are_an_error_that_names_both() {
    let mut main = builder("main");
    let (p, x) = (main.input(), main.input());
    let (_, on_true) = switched(&mut main, p, x);
    let a = main.named("left", &[on_true], |x| Ok(x[0]));
    let b = main.named("right", &[x], |x| Ok(x[0]));
    let merged = main.graph.add_merge("merged", &[a, b]).unwrap();
    main.output(merged.output(0));
    let program = main.compile();
    check(&program, &[0, 3], &[3]);
    for pool in [None, Some(pools::of(2))] {
        let error = run(&program, &[1, 3], &on(pool.as_ref())).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        for part in ["node 'merged'", "node 'left'", "node 'right'"] {
            assert!(error.message().contains(part), "{}", error.message());
        }
    }
    check(&program, &[0, 3], &[3]);
}

#[test]
fn an_output_that_can_be_absent_is_refused() {
    let mut main = builder("main");
    let (p, x) = (main.input(), main.input());
    let (_, on_true) = switched(&mut main, p, x);
    let a = main.named("a", &[on_true], |x| Ok(x[0]));
    main.output(a);
    let refusal = main.refusal();
    assert!(refusal.contains("node 'a' can leave it absent"), "{refusal}");
}

#[test]
fn a_failure_in_a_loop_says_where_and_what_was_left_out() {
    let mut condition = builder("condition");
    let (i, n) = (condition.input(), condition.input());
    let less = condition.op(&[i, n], |x| i32::from(x[0] < x[1]));
    condition.output(less);
    let mut body = builder("body");
    let (i, _) = (body.input(), body.input());
    let next = body.named("step", &[i], |x| match x[0] {
        3 => Err(Error::new(Code::DataLoss, "asked to fail")),
        x => Ok(x + 1),
    });
    body.output(next);
    let mut main = builder("main");
    let n = main.input();
    let zero = main.constant(0);
    let looped = main.graph.add_while("count", &condition.graph, &body.graph, &[zero], &[n], 1).unwrap();
    let after = main.named("after", &[looped.output(0)], |x| Ok(x[0]));
    main.output(after);
    let program = main.compile();
    for pool in [None, Some(pools::of(2))] {
        let error = run(&program, &[10], &on(pool.as_ref())).unwrap_err();
        assert_eq!(error.message(), "node 'count/body/step', iteration 3 of 'count': asked to fail");
        let run = error.run().unwrap();
        assert_eq!(run.node.as_deref(), Some("count/body/step"));
        let left_out: Vec<&str> = run.left_out.iter().map(|name| &**name).collect();
        assert_eq!(left_out, ["after"]);
    }
    check(&program, &[3], &[3]);
}
