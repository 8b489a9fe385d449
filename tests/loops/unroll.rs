//! Loops that are written out, and what else constants decide.

use super::pipeline::*;
use crate::kit::pools;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::*};
use std::time::Duration;
use weir_core::base::{Code, Error, Result};
use weir_core::graph::{Graph, ReportFormat};
use weir_core::kernel::Task;

/// while i < n: (i, sum) = (i + step, 31 sum + x), all of it pure; `effect` runs in each iteration if there is one.
fn counted(n: i32, step: i32, parallel: u32, effect: Option<Arc<dyn Task>>) -> Graph {
    let mut condition = pure("condition");
    let x = condition.inputs(3);
    let bound = condition.constant(n);
    let less = condition.op(&[x[0], bound], |x| i32::from(x[0] < x[1]));
    let condition = condition.giving(&[less]);
    let mut body = pure("body");
    let x = body.inputs(3);
    let next = body.op(&[x[0]], move |x| x[0] + step);
    body.how = How::default();
    let sum = body.named("sum", &[x[1], x[2]], |x| match x[1] {
        -5 => Err(Error::new(Code::DataLoss, "asked to fail")),
        more => Ok(x[0].wrapping_mul(31).wrapping_add(more)),
    });
    if let Some(effect) = effect {
        body.graph.add_task("effect", effect, 0).unwrap();
    }
    let body = body.giving(&[next, sum]);
    let mut main = Builder::new("main");
    let given = main.input();
    let zero = main.constant(0);
    let looped = main.graph.add_while("loop", &condition, &body, &[zero, zero], &[given], parallel).unwrap();
    main.giving(&[looped.output(0), looped.output(1)])
}

#[test]
fn short_loops_of_known_length_are_written_out() {
    for (n, step, trips) in [(1, 1, 1), (3, 1, 3), (16, 1, 16), (30, 2, 15), (7, 3, 3)] {
        let program = compile(&counted(n, step, 1, None));
        assert_eq!(fact(&program, "unrolled"), 1, "{n} by {step}");
        assert_eq!(fact(&program, "loops"), 0);
        let sum = (0..trips).fold(0i32, |sum, _| sum.wrapping_mul(31).wrapping_add(9));
        for pool in &all_pools() {
            assert_eq!(run(&program, &[9], &on(pool)).unwrap(), [trips * step, sum]);
        }
        assert!(program.report(ReportFormat::Text).contains("1 loops that are written out"));
    }
    for (n, step) in [(17, 1), (-1, -1), (1, 0)] {
        let program = compile(&counted(n, step, 1, None));
        let expected = usize::from(n > 0);
        assert_eq!((fact(&program, "unrolled"), fact(&program, "loops")), (0, expected), "{n} by {step}");
    }
}

#[test]
fn a_failure_in_what_was_written_out_names_its_iteration() {
    let program = compile(&counted(3, 1, 1, None));
    let error = run(&program, &[-5], &on(&None)).unwrap_err();
    assert_eq!(error.message(), "node 'loop/0/sum': asked to fail");
    let left_out: Vec<&str> = error.run().unwrap().left_out.iter().map(|name| &**name).collect();
    assert!(left_out.contains(&"loop/1/sum") && left_out.contains(&"loop/2/sum"), "{left_out:?}");
    assert_eq!(run(&program, &[0], &on(&None)).unwrap(), [3, 0]);
}

/// Says how many are at it at once.
#[derive(Default)]
struct Effect {
    now: AtomicI64,
    most: AtomicI64,
    calls: AtomicU64,
}

impl Task for Effect {
    fn run(&self) -> Result<()> {
        self.most.fetch_max(self.now.fetch_add(1, SeqCst) + 1, SeqCst);
        std::thread::sleep(Duration::from_micros(200));
        self.now.fetch_sub(1, SeqCst);
        self.calls.fetch_add(1, SeqCst);
        Ok(())
    }
}

#[test]
fn effects_of_what_was_written_out_overlap_as_far_as_iterations_may() {
    for parallel in 1..=3 {
        let effect = Arc::new(Effect::default());
        let program = compile(&counted(9, 1, parallel, Some(Arc::clone(&effect) as Arc<dyn Task>)));
        assert_eq!(fact(&program, "unrolled"), 1);
        for _ in 0..5 {
            run(&program, &[1], &on(&Some(pools::named("", 4)))).unwrap();
        }
        let most = effect.most.load(SeqCst);
        assert!(most <= i64::from(parallel) && (parallel == 1 || most > 1), "{most} at once, {parallel} may");
        assert_eq!(effect.calls.load(SeqCst), 45);
    }
}

#[test]
fn loops_that_cannot_be_written_out_are_left_alone() {
    // The bound is an input; the counter is not pure; the condition has an effect.
    let program = compile(&pipeline(1, |i| Ok(i + 1), |i| Ok(7 * i)));
    assert_eq!((fact(&program, "unrolled"), fact(&program, "loops")), (0, 1));
    let effect = Arc::new(Effect::default());
    let mut condition = pure("condition");
    let x = condition.inputs(1);
    let less = condition.op(&x, |x| i32::from(x[0] < 3));
    condition.graph.add_task("effect", Arc::clone(&effect) as Arc<dyn Task>, 0).unwrap();
    let condition = condition.giving(&[less]);
    let mut body = pure("body");
    let x = body.inputs(1);
    let next = body.op(&x, |x| x[0] + 1);
    let body = body.giving(&[next]);
    let mut main = Builder::new("main");
    let zero = main.constant(0);
    let looped = main.graph.add_while("loop", &condition, &body, &[zero], &[], 1).unwrap();
    let program = compile(&main.giving(&[looped.output(0)]));
    assert_eq!((fact(&program, "unrolled"), fact(&program, "loops")), (0, 1));
    assert_eq!(run(&program, &[], &on(&None)).unwrap(), [3]);
    assert_eq!(effect.calls.load(SeqCst), 4);
}

struct Slow(Arc<AtomicU64>);

impl Task for Slow {
    fn run(&self) -> Result<()> {
        std::thread::sleep(Duration::from_millis(2));
        self.0.fetch_add(1, Relaxed);
        Ok(())
    }
}

#[test]
fn what_waits_for_a_cond_that_a_constant_chose_waits_for_all_of_it() {
    // In the branch that is chosen: a cond with a slow task, of which a kernel uses what is there early.
    let slow = Arc::new(AtomicU64::new(0));
    let mut inner = Builder::new("inner");
    let x = inner.input();
    let y = inner.op(&[x], |x| x[0] + 1);
    inner.graph.add_task("slow", Arc::new(Slow(Arc::clone(&slow))) as Arc<dyn Task>, 1_000_000).unwrap();
    let inner = inner.giving(&[y]);
    let mut other = Builder::new("other");
    let x = other.input();
    let other = other.giving(&[x]);
    let mut chosen = Builder::new("chosen");
    let (p, x) = (chosen.input(), chosen.input());
    let cond = chosen.graph.add_cond("cond", p, &inner, &other, &[x]).unwrap();
    let y = chosen.op(&[cond.output(0)], |x| x[0] * 2);
    let chosen = chosen.giving(&[y]);
    let mut main = Builder::new("main");
    let (p, x, one) = (main.input(), main.input(), main.constant(1));
    let case = main.graph.add_case("case", one, &[&chosen, &chosen], &[p, x]).unwrap();
    let seen = Arc::clone(&slow);
    let look = main.op(&[x], move |_| seen.swap(0, Relaxed) as i32);
    let node = weir_core::graph::NodeId::from(u64::from(look) & !0xffff);
    main.graph.add_control_edge(case, node).unwrap();
    let program = compile(&main.giving(&[case.output(0), look]));
    for pool in &all_pools() {
        for (p, expected) in [(1, [12, 1]), (0, [10, 0])] {
            assert_eq!(run(&program, &[p, 5], &on(pool)).unwrap(), expected, "{pool:?}");
        }
    }
}

/// Whether `slow` has run.
struct Look(Arc<AtomicU64>, Arc<AtomicU64>);

impl Task for Look {
    fn run(&self) -> Result<()> {
        self.1.fetch_add(u64::from(self.0.swap(0, Relaxed) == 0), Relaxed);
        Ok(())
    }
}

/// Later iterations wait for an effect of the first one, and so does what waits for the loop, although constants leave
/// nothing in them that has effects.
#[test]
fn what_waits_for_a_loop_that_was_written_out_waits_for_its_first_iteration() {
    for parallel in 1..=3 {
        let (slow, early) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut condition = pure("condition");
        let x = condition.inputs(2);
        let less = condition.op(&[x[0]], |x| i32::from(x[0] < 4));
        let condition = condition.giving(&[less]);
        let mut then = Builder::new("then");
        then.input();
        then.graph.add_task("slow", Arc::new(Slow(Arc::clone(&slow))) as Arc<dyn Task>, 1_000_000).unwrap();
        let (then, mut other) = (then.giving(&[]), Builder::new("other"));
        other.input();
        let other = other.giving(&[]);
        let mut body = pure("body");
        let x = body.inputs(2);
        let is_first = body.op(&[x[0]], |x| i32::from(x[0] == 0));
        body.graph.add_cond("if first", is_first, &then, &other, &[x[1]]).unwrap();
        let (i, y) = (body.op(&[x[0]], |x| x[0] + 1), body.op(&[x[1]], |x| x[0] + 1));
        let body = body.giving(&[i, y]);
        let mut main = Builder::new("main");
        let (x, zero) = (main.input(), main.constant(0));
        let looped = main.graph.add_while("loop", &condition, &body, &[zero, x], &[], parallel).unwrap();
        let look = Arc::new(Look(Arc::clone(&slow), Arc::clone(&early)));
        let look = main.graph.add_task("look", look as Arc<dyn Task>, 0).unwrap();
        main.graph.add_control_edge(looped, look).unwrap();
        let program = compile(&main.giving(&[looped.output(1)]));
        assert_eq!(fact(&program, "unrolled"), 1);
        for pool in &all_pools() {
            for _ in 0..10 {
                assert_eq!(run(&program, &[5], &on(pool)).unwrap(), [9]);
            }
        }
        assert_eq!(early.load(Relaxed), 0, "{parallel} at once");
    }
}

/// A user of a loop's values comes behind what the loop waits for.
#[test]
fn a_loop_that_waits_is_not_written_out() {
    for effect in [None, Some(Arc::new(Effect::default()) as Arc<dyn Task>)] {
        let has_effect = effect.is_some();
        let slow = Arc::new(AtomicU64::new(0));
        let mut condition = pure("condition");
        let x = condition.inputs(2);
        let less = condition.op(&[x[0]], |x| i32::from(x[0] < 2));
        let condition = condition.giving(&[less]);
        let mut body = pure("body");
        let x = body.inputs(2);
        let (i, y) = (body.op(&[x[0]], |x| x[0] + 1), body.op(&[x[1]], |x| x[0] + 1));
        if let Some(effect) = effect {
            body.graph.add_task("effect", effect, 0).unwrap();
        }
        let body = body.giving(&[i, y]);
        let mut main = Builder::new("main");
        let (x, zero) = (main.input(), main.constant(0));
        let first = main.graph.add_task("slow", Arc::new(Slow(Arc::clone(&slow))) as Arc<dyn Task>, 0).unwrap();
        let looped = main.graph.add_while("loop", &condition, &body, &[zero, x], &[], 1).unwrap();
        main.graph.add_control_edge(first, looped).unwrap();
        let seen = main.op(&[looped.output(1)], move |x| x[0] + 100 * slow.swap(0, Relaxed) as i32);
        let program = compile(&main.giving(&[seen]));
        for pool in &all_pools() {
            assert_eq!(run(&program, &[5], &on(pool)).unwrap(), [107], "{has_effect}");
        }
    }
}

/// Which pure nodes are run does not depend on how many iterations may overlap: effects wait for those that are run.
#[test]
fn nodes_that_nothing_needs_are_left_out_however_many_iterations_overlap() {
    for (parallel, waits) in (1..=5).flat_map(|parallel| [(parallel, false), (parallel, true)]) {
        let (calls, effect) = (Arc::new(AtomicU64::new(0)), Arc::new(Effect::default()));
        let mut condition = pure("condition");
        let x = condition.inputs(3);
        let less = condition.op(&[x[0]], |x| i32::from(x[0] < 6));
        let condition = condition.giving(&[less]);
        let mut body = pure("body");
        let x = body.inputs(3);
        let i = body.op(&[x[0]], |x| x[0] + 1);
        let y = body.op(&[x[1]], |x| x[0] + 1);
        let counted = |calls: &Arc<AtomicU64>| {
            let calls = Arc::clone(calls);
            move |x: &[i32]| {
                calls.fetch_add(1, Relaxed);
                x[0] + 1
            }
        };
        // A variable that nobody takes behind the loop, and what nobody takes at all.
        let unused = body.op(&[x[2]], counted(&calls));
        let dead = body.op(&[y], counted(&calls));
        body.op(&[dead], counted(&calls));
        body.graph.add_task("effect", Arc::clone(&effect) as Arc<dyn Task>, 0).unwrap();
        let body = body.giving(&[i, y, unused]);
        let mut main = pure("main");
        let (x, zero) = (main.input(), main.constant(0));
        let made = main.op(&[x], counted(&calls));
        let looped = main.graph.add_while("loop", &condition, &body, &[zero, x, made], &[], parallel).unwrap();
        if waits {
            let last = main.graph.add_task("last", Arc::clone(&effect) as Arc<dyn Task>, 0).unwrap();
            main.graph.add_control_edge(looped, last).unwrap();
        }
        let program = compile(&main.giving(&[looped.output(1)]));
        assert_eq!(fact(&program, "unrolled"), 1);
        assert_eq!(run(&program, &[5], &on(&None)).unwrap(), [11]);
        assert_eq!(effect.calls.load(SeqCst), 6 + u64::from(waits));
        assert_eq!(calls.load(Relaxed), 0, "{parallel} at once");
    }
}
