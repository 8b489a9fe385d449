//! What an iteration of a loop takes: launches and copies, counted by the device, with the results of the CPU in all
//! ways; and every edge that keeps an old value until it was read is missed.

use crate::control::{compile, ways};
use crate::kit::integers::{Builder, How};
use crate::kit::run::{cpu, run};
use crate::wrapped::{Mistake, Wrapped, engine};
use crate::{LeftOut, checked, reports, without_each_edge};
use std::sync::Arc;
use weir_core::base::Ref;
use weir_core::engine::{BoundKernel, Engine, KernelOptions};
use weir_core::graph::{CompileOptions, Forwarding, Graph, NodeId, Program, RunOptions, ValueId};
use weir_core::kernel::builtin::Builtin;
use weir_core::ops::{Binary, weir_binary_op_value as Op};

/// The next values of variables, the first of which is counted down.
type Next = fn(&mut Builder, &[ValueId]) -> Vec<ValueId>;

const COUNT: fn(&[i32]) -> i32 = |x| x[0] - 1;
const SUM: fn(&[i32]) -> i32 = |x| x.iter().fold(0, |sum: i32, x| sum.wrapping_mul(3).wrapping_add(*x));

/// while (x[0] > 0) x = next(x), with variables first and then what stays; all variables are outputs.
fn looped(on: &Ref<Engine>, variables: usize, invariants: usize, next: Next) -> Graph {
    let all = variables + invariants;
    let (mut condition, x) = Builder::of("more", all);
    condition.engine = on.clone();
    let more = condition.op(&[x[0]], |x| i32::from(x[0] > 0));
    let condition = condition.giving(&[more]);
    let (mut body, x) = Builder::of("body", all);
    body.engine = on.clone();
    let next = next(&mut body, &x);
    let body = body.giving(&next);
    let (mut builder, x) = Builder::of("steps", all);
    let node = builder.graph.add_while("loop", &condition, &body, &x[..variables], &x[variables..], 1).unwrap();
    (0..variables).for_each(|output| builder.output(node.output(output)));
    builder.graph
}

/// Launches and copies of a run.
fn counted(device: &Wrapped, run: impl FnOnce()) -> [u64; 2] {
    let before = device.inner.counters();
    run();
    let after = device.inner.counters();
    [after.launches - before.launches, after.copies - before.copies]
}

/// Launches and copies that an iteration takes, the predicate's launch among them, and no copy of it to the host.
fn per_iteration(program: &Ref<Program>, device: &Wrapped, inputs: &[i32]) -> [u64; 2] {
    let run = |times: i32| {
        let inputs: Vec<i32> = [times].iter().chain(inputs).copied().collect();
        counted(device, || drop(crate::kit::run::run(program, &inputs, &RunOptions::default()).unwrap()))
    };
    // The first two runs of a lane may be others.
    (0..2).for_each(|_| {
        run(1);
    });
    let (few, many) = (run(2), run(6));
    [0, 1].map(|i| (many[i] - few[i]) / 4)
}

/// Each loop: its name, how many variables and others, what an iteration takes, and its body.
const LOOPS: [(&str, usize, usize, [u64; 2], Next); 13] = [
    ("counts", 1, 0, [2, 0], |body, x| vec![body.op(&[x[0]], COUNT)]),
    ("reads what stays", 1, 1, [3, 0], |body, x| {
        let by = body.op(&[x[1]], |x| x[0] & 1 | 1);
        vec![body.op(&[x[0], by], |x| x[0] - x[1])]
    }),
    ("the old value is read by another kernel", 2, 0, [3, 0], |body, x| {
        let left = body.op(&[x[0]], COUNT);
        vec![left, body.op(&[x[1], x[0]], SUM)]
    }),
    ("two readers, one behind the other", 2, 0, [4, 0], |body, x| {
        let left = body.op(&[x[0]], COUNT);
        let first = body.op(&[x[1], x[0]], SUM);
        vec![left, body.op(&[first, x[0]], SUM)]
    }),
    ("the kernel does not work in place", 1, 0, [2, 1], |body, x| {
        body.how = How { in_place: false, ..How::default() };
        vec![body.op(&[x[0]], COUNT)]
    }),
    ("one variable stays", 2, 0, [2, 0], |body, x| vec![body.op(&[x[0], x[1]], |x| x[0] - 1 - (x[1] & 1)), x[1]]),
    ("two change places", 3, 0, [2, 3], |body, x| vec![body.op(&[x[0]], COUNT), x[2], x[1]]),
    ("the sums of Fibonacci", 3, 0, [3, 2], |body, x| {
        vec![body.op(&[x[0]], COUNT), x[2], body.op(&[x[1], x[2]], |x| x[0].wrapping_add(x[1]))]
    }),
    ("the old value is wanted elsewhere, too", 3, 0, [3, 2], |body, x| {
        vec![body.op(&[x[0]], COUNT), x[2], body.op(&[x[2]], SUM)]
    }),
    // x' would come behind three kernels and has three behind it, so it is made beside them, and copied.
    ("an order would make a longer chain", 4, 0, [10, 1], |body, x| {
        let next = body.op(&[x[1]], SUM);
        let chain = |body: &mut Builder, from| (0..3).fold(from, |value, _| body.op(&[value], SUM));
        let last = chain(body, next);
        let other = chain(body, x[3]);
        vec![body.op(&[x[0]], COUNT), next, last, body.op(&[other, x[1]], SUM)]
    }),
    // Launched in the one list or in the other.
    ("a branch works in place", 2, 0, [4, 0], |body, x| {
        let [mut one, mut two] = ["one", "two"].map(|name| Builder::of(name, 2)).map(|(mut branch, x)| {
            branch.engine = body.engine.clone();
            (branch, x)
        });
        let sums = [one.0.op(&[one.1[0], one.1[1]], SUM), two.0.op(&[two.1[1], two.1[0]], SUM)];
        let [one, two] = [(one.0, sums[0]), (two.0, sums[1])].map(|(branch, sum)| branch.giving(&[sum]));
        let odd = body.op(&[x[0]], |x| x[0] & 1);
        let chosen = body.graph.add_cond("cond", odd, &one, &two, &[x[1], x[0]]).unwrap();
        vec![body.op(&[x[0]], COUNT), chosen.output(0)]
    }),
    ("a branch changes nothing", 2, 0, [3, 0], |body, x| {
        let (same, y) = Builder::of("same", 1);
        let same = same.giving(&[y[0]]);
        let odd = body.op(&[x[0]], |x| x[0] & 1);
        let chosen = body.graph.add_cond("cond", odd, &same, &same, &[x[1]]).unwrap();
        vec![body.op(&[x[0]], COUNT), chosen.output(0)]
    }),
    // Once inside: the predicate twice, the count and the sum; the first value of what counts is copied, and that of
    // the sum is there.
    ("a loop in the loop works in place", 2, 0, [7, 1], |body, x| {
        let (mut condition, y) = Builder::of("inner more", 2);
        condition.engine = body.engine.clone();
        let more = condition.op(&[y[0]], |x| i32::from(x[0] > 0));
        let condition = condition.giving(&[more]);
        let (mut inner, y) = Builder::of("inner", 2);
        inner.engine = body.engine.clone();
        let next = [inner.op(&[y[0]], COUNT), inner.op(&[y[1]], SUM)];
        let inner = inner.giving(&next);
        let times = body.op(&[x[0]], |x| x[0].min(1));
        let again = body.graph.add_while("again", &condition, &inner, &[times, x[1]], &[], 1).unwrap();
        vec![body.op(&[x[0]], COUNT), again.output(1)]
    }),
];

#[test]
fn an_iteration_takes_no_copies_that_it_does_not_need() {
    for (name, variables, invariants, expected, next) in LOOPS {
        for seed in 1..=6 {
            for (way, options) in ways().iter().enumerate() {
                let (device, engine) = engine("placed-steps", checked(seed), Mistake::None, 1 + seed as u32 % 2);
                let graph = |on: &Ref<Engine>| looped(on, variables, invariants, next);
                let program = compile(&graph(&engine), &engine, options);
                let by_cpu = compile(&graph(&cpu()), &cpu(), &CompileOptions::default());
                for times in [3, 1, 0, 8] {
                    let inputs: Vec<i32> = (0..variables + invariants).map(|i| times + 10 * i as i32).collect();
                    let [found, wanted] =
                        [&program, &by_cpu].map(|program| run(program, &inputs, &RunOptions::default()).unwrap());
                    assert_eq!(found, wanted, "{name}, way {way}, {times} iterations");
                }
                let rest: Vec<i32> = (1..variables + invariants).map(|i| 2 * i as i32).collect();
                let mut found = per_iteration(&program, &device, &rest);
                // The host is told each time, and of what is decided inside.
                let told = if way == 0 {
                    0
                } else {
                    1 + if name.starts_with("a loop") { 2 } else { u64::from(name.starts_with("a branch")) }
                };
                found[1] -= told;
                assert_eq!(found, expected, "{name}, way {way}");
                assert_eq!(reports(&device), Vec::<String>::new(), "{name}, way {way}, seed {seed}");
            }
        }
    }
}

/// The reader of the old value, and who writes the new one.
#[test]
fn an_edge_that_keeps_an_old_value_is_missed() {
    let mut found = Vec::new();
    for (name, variables, invariants, _, next) in LOOPS {
        let left_out = without_each_edge("placed-steps-edge", |engine| {
            let program = compile(&looped(engine, variables, invariants, next), engine, &CompileOptions::default());
            for times in [2, 3] {
                let inputs: Vec<i32> = (0..variables + invariants).map(|i| times + i as i32).collect();
                let _ = run(&program, &inputs, &RunOptions::default());
            }
        });
        for LeftOut { before, then, found: races } in left_out {
            assert!(!races.is_empty(), "{name}: nobody misses the edge from {before} to {then}");
            found.push((name, before, then));
        }
    }
    let is_wanted = |edge: &&(&str, String, String)| {
        edge.0 == "the old value is read by another kernel" && edge.1 == "node 'n4'" && edge.2 == "node 'n3'"
    };
    let readers: Vec<_> = found.iter().filter(is_wanted).collect();
    assert!(!readers.is_empty(), "{found:?}");
}

/// What says never keeps a copy; what is reserved for the variable does not.
#[test]
fn forwarding_says_whether_a_value_is_written_in_place() {
    for (how, copies) in [(Forwarding::Never, 1), (Forwarding::Reserved(0), 0), (Forwarding::ByLastUse, 0)] {
        let (device, engine) = engine("placed-steps-forward", checked(2), Mistake::None, 1);
        let (mut condition, x) = Builder::of("more", 1);
        condition.engine = engine.clone();
        let more = condition.op(&[x[0]], |x| i32::from(x[0] > 0));
        let condition = condition.giving(&[more]);
        let (mut body, x) = Builder::of("body", 1);
        body.engine = engine.clone();
        let next = body.op(&[x[0]], COUNT);
        // A value's number is its node's, but for the lowest bits.
        body.graph.set_forwarding(NodeId::from(u64::from(next) & !0xffff), 0, how).unwrap();
        let body = body.giving(&[next]);
        let (mut builder, x) = Builder::of("forward", 1);
        let node = builder.graph.add_while("loop", &condition, &body, &x, &[], 1).unwrap();
        builder.output(node.output(0));
        let program = compile(&builder.graph, &engine, &CompileOptions::default());
        assert_eq!(per_iteration(&program, &device, &[]), [2, copies], "{how:?}");
    }
}

/// while (x > limit) (x, sum) = (x - 1, sum + x), with the comparison that weir has.
fn compared(on: &Ref<Engine>, op: Op) -> Graph {
    let kernel =
        BoundKernel::create(on.clone(), Arc::new(Builtin::new(Binary::of(op))), &KernelOptions::default()).unwrap();
    let (mut condition, x) = Builder::of("above", 3);
    let more = condition.graph.add_kernel("compare", kernel, &[x[0], x[2]], 1).unwrap().output(0);
    let condition = condition.giving(&[more]);
    let (mut body, x) = Builder::of("body", 3);
    body.engine = on.clone();
    let next = [body.named("count", &[x[0]], |x| Ok(x[0] - 1)), body.named("sum", &[x[1], x[0]], |x| Ok(SUM(x)))];
    let body = body.giving(&next);
    let (mut builder, x) = Builder::of("compared", 3);
    let node = builder.graph.add_while("loop", &condition, &body, &x[..2], &x[2..], 1).unwrap();
    (0..2).for_each(|output| builder.output(node.output(output)));
    builder.graph
}

/// The loop compares the numbers itself, or the host does, which is brought the one that changes.
#[test]
fn a_comparison_takes_no_launch() {
    for (op, limit) in
        [(Op::WEIR_BINARY_GT, 0), (Op::WEIR_BINARY_GE, 1), (Op::WEIR_BINARY_NE, 0), (Op::WEIR_BINARY_EQ, 9)]
    {
        for seed in 1..=8 {
            for (way, options) in ways().iter().enumerate() {
                let (device, engine) = engine("placed-steps-compare", checked(seed), Mistake::None, 1);
                let program = compile(&compared(&engine, op), &engine, options);
                let by_cpu = compile(&compared(&cpu(), op), &cpu(), &CompileOptions::default());
                for times in [4, 0, 1, 9] {
                    let [found, wanted] = [&program, &by_cpu]
                        .map(|program| run(program, &[times, 5, limit], &RunOptions::default()).unwrap());
                    assert_eq!(found, wanted, "{op:?}, way {way}, {times}");
                }
                if op != Op::WEIR_BINARY_EQ {
                    let expected = if way == 0 { [2, 0] } else { [2, 1] };
                    assert_eq!(per_iteration(&program, &device, &[5, limit]), expected, "{op:?}, way {way}");
                }
                assert_eq!(reports(&device), Vec::<String>::new(), "{op:?}, way {way}, seed {seed}");
            }
        }
    }
}

#[test]
fn every_edge_of_a_comparison_is_missed() {
    let left_out = without_each_edge("placed-steps-compare-edge", |engine| {
        let program = compile(&compared(engine, Op::WEIR_BINARY_GT), engine, &CompileOptions::default());
        (0..2).for_each(|_| drop(run(&program, &[3, 1, 0], &RunOptions::default())));
    });
    let mut read = 0;
    for LeftOut { before, then, found } in left_out {
        assert!(!found.is_empty(), "nobody misses the edge from {before} to {then}");
        read += usize::from(then.starts_with("the predicate of ") && before == "node 'count'");
    }
    assert!(read > 0, "the predicate is read behind what counts");
}
