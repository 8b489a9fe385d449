//! Loops inside of other things, and what programs say of them.

use super::pipeline::*;
use crate::kit::pools;
use weir_core::graph::{CompileOptions, Graph, Program, ReportFormat};

#[test]
fn the_report_says_what_was_chosen_and_why() {
    // All of an iteration is one chain with the next one's.
    let mut condition = Builder::new("condition");
    let x = condition.inputs(1);
    let less = condition.op(&x, |x| i32::from(x[0] < 5));
    let condition = condition.giving(&[less]);
    let mut body = Builder::new("body");
    let x = body.inputs(1);
    let next = body.op(&x, |x| x[0] + 1);
    let body = body.giving(&[next]);
    let mut main = Builder::new("main");
    let n = main.input();
    let looped = main.graph.add_while("chained", &condition, &body, &[n], &[], 4).unwrap();
    let program = compile(&main.giving(&[looped.output(0)]));
    assert_eq!((fact(&program, "overlapping"), fact(&program, "held_back")), (0, 1));
    let line = "loop 'chained': 1 of at most 4 iterations at once, each iteration depends on all of the one before";
    assert!(program.report(ReportFormat::Text).contains(line), "{}", program.report(ReportFormat::Text));
    assert_eq!(run(&program, &[0], &on(&Some(pools::of(2)))).unwrap(), [5]);

    let program = compile(&pipeline(3, |i| Ok(i + 1), |i| Ok(7 * i)));
    let text = program.report(ReportFormat::Text);
    assert!(text.contains("loop 'loop': 3 of at most 3 iterations at once, as asked"), "{text}");
    assert_eq!(fact(&program, "slots"), 3 * 7);
    // No host asks for this many; the copies are bounded all the same.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let _alone = ALONE.lock();
    for (how, most) in [(later(), 64), (How::default(), (2 * processors).clamp(4, 64))] {
        let program = compile(&pipeline_of(how, u32::MAX, |i| Ok(i + 1), |i| Ok(7 * i)));
        let chosen = format!("\"at_once\":{most},\"asked\":4294967295");
        assert!(program.report(ReportFormat::Json).contains(&chosen), "{chosen}");
        for pool in &all_pools() {
            assert_eq!(run(&program, &[100], &on(pool)).unwrap(), [100, summed(100)]);
        }
    }
}

/// In each of n rounds adds what a pipeline of so many iterations makes, if the round is even; else 1.
fn nested(outer: u32, inner: u32) -> Graph {
    let mut then = Builder::new("then");
    let x = then.inputs(2);
    let (zero, made) = (then.constant(0), pipeline_parts(inner));
    let looped = then.graph.add_while("inner", &made.0, &made.1, &[zero, x[1]], &[x[0]], inner).unwrap();
    let then = then.giving(&[looped.output(1)]);
    let mut otherwise = Builder::new("otherwise");
    let x = otherwise.inputs(2);
    let sum = otherwise.op(&[x[1]], |x| x[0].wrapping_add(1));
    let otherwise = otherwise.giving(&[sum]);
    let mut condition = Builder::new("condition");
    let x = condition.inputs(3);
    let less = condition.op(&[x[0], x[2]], |x| i32::from(x[0] < x[1]));
    let condition = condition.giving(&[less]);
    let mut body = Builder::new("body");
    let x = body.inputs(3);
    let next = body.op(&[x[0]], |x| x[0] + 1);
    let even = body.op(&[x[0]], |x| i32::from(x[0] % 2 == 0));
    let chosen = body.graph.add_cond("chosen", even, &then, &otherwise, &[x[0], x[1]]).unwrap();
    let body = body.giving(&[next, chosen.output(0)]);
    let mut main = Builder::new("main");
    let n = main.input();
    let zero = main.constant(0);
    let looped = main.graph.add_while("outer", &condition, &body, &[zero, zero], &[n], outer).unwrap();
    main.giving(&[looped.output(1)])
}

fn pipeline_parts(_: u32) -> (Graph, Graph) {
    let mut condition = Builder::new("condition");
    let x = condition.inputs(3);
    let less = condition.op(&[x[0], x[2]], |x| i32::from(x[0] < x[1]));
    let mut body = Builder::new("body");
    let x = body.inputs(3);
    let next = body.op(&[x[0]], |x| x[0] + 1);
    let made = body.op(&[x[0]], |x| 7 * x[0]);
    let sum = body.op(&[x[1], made], |x| x[0].wrapping_mul(31).wrapping_add(x[1]));
    (condition.giving(&[less]), body.giving(&[next, sum]))
}

#[test]
fn overlapping_loops_lie_in_branches_of_overlapping_loops() {
    let expected = |n: i32| {
        (0..n).fold(0i32, |sum, i| match i % 2 {
            0 => (0..i).fold(sum, |sum, j| sum.wrapping_mul(31).wrapping_add(7 * j)),
            _ => sum.wrapping_add(1),
        })
    };
    for (outer, inner) in [(1, 2), (2, 1), (2, 2), (3, 4)] {
        let program = compile(&nested(outer, inner));
        assert_eq!(fact(&program, "loops"), 2);
        assert_eq!(fact(&program, "overlapping"), usize::from(outer > 1) + usize::from(inner > 1));
        for pool in &all_pools() {
            for n in [0, 1, 2, 3, 9, 12, 2] {
                assert_eq!(run(&program, &[n], &on(pool)).unwrap(), [expected(n)], "{outer} x {inner}, {n}");
            }
        }
    }
}

#[test]
fn joins_too_wide_for_one_counter_are_whole_after_each_loop() {
    // 100 variables, added up in each iteration: 150 arrivals from the iteration before and from this one.
    const WIDE: usize = 100;
    let mut condition = Builder::new("condition");
    let x = condition.inputs(WIDE + 2);
    let less = condition.op(&[x[0], x[WIDE + 1]], |x| i32::from(x[0] < x[1]));
    let condition = condition.giving(&[less]);
    let mut body = Builder::new("body");
    let x = body.inputs(WIDE + 2);
    let next = body.op(&[x[0]], |x| x[0] + 1);
    let sum = body.op(&x[1..=WIDE], |x| x.iter().fold(0i32, |sum, x| sum.wrapping_mul(3).wrapping_add(*x)));
    let mut outputs = vec![next];
    for (i, &variable) in x[1..WIDE].iter().enumerate() {
        outputs.push(body.op(&[variable], move |x| x[0].wrapping_add(i as i32)));
    }
    outputs.push(sum);
    let body = body.giving(&outputs);
    let mut main = Builder::new("main");
    let n = main.input();
    let zero = main.constant(0);
    let looped = main.graph.add_while("loop", &condition, &body, &[zero; WIDE + 1], &[n], 3).unwrap();
    let program = compile(&main.giving(&[looped.output(WIDE)]));
    assert!(fact(&program, "wide_joins") > 0 && fact(&program, "overlapping") == 1);
    let expected = |n: i32| {
        let mut x = vec![0i32; WIDE];
        for _ in 0..n {
            let sum = x.iter().fold(0i32, |sum, x| sum.wrapping_mul(3).wrapping_add(*x));
            x.iter_mut().enumerate().for_each(|(i, x)| *x = x.wrapping_add(i as i32));
            x[WIDE - 1] = sum;
        }
        x[WIDE - 1]
    };
    for pool in &all_pools() {
        for n in [0, 1, 5, 0, 12] {
            assert_eq!(run(&program, &[n], &on(pool)).unwrap(), [expected(n)], "{n}");
        }
    }
}

#[test]
fn figures_of_all_slots_are_one_node_s() {
    let options = CompileOptions { hop_ns: Some(1000), statistics: true, ..CompileOptions::default() };
    let graph = pipeline(3, |i| Ok(i + 1), |i| Ok(7 * i));
    let program = Program::compile(&graph, vec![cpu()], &options).unwrap();
    for pool in &all_pools() {
        assert_eq!(run(&program, &[10], &on(pool)).unwrap(), [10, summed(10)]);
    }
    let figures: Vec<_> = (0..program.num_nodes()).map(|node| program.node_stats(node).unwrap()).collect();
    for (name, calls) in [("loop/body/early", 10), ("loop/body/late", 10), ("loop/condition/less", 11)] {
        let counts: Vec<u64> = figures.iter().filter(|f| f.name == name).map(|f| f.count).collect();
        assert_eq!((counts.len(), counts[0], counts[1..].iter().sum::<u64>()), (4, calls * POOLS as u64, 0), "{name}");
    }
    let profile = program.save_costs();
    assert_eq!(profile.lines().filter(|line| line.ends_with("loop/body/late")).count(), 1, "{profile}");
    assert!(profile.lines().any(|line| line.ends_with(" 10 loop")), "{profile}");
}

#[test]
fn what_a_loop_costs_is_what_all_its_iterations_cost() {
    for parallel in [1, 3] {
        let late = |i: i32| {
            std::thread::sleep(std::time::Duration::from_micros(100));
            Ok(7 * i)
        };
        let program = compile(&pipeline(parallel, |i| Ok(i + 1), late));
        for _ in 0..3 {
            run(&program, &[60], &on(&None)).unwrap();
        }
        let total = fact(&program, "total_ns");
        assert!(total > 60 * 100_000, "{total} ns, {parallel} at once");
        let longest = fact(&program, "longest_ns");
        // Of `late` nothing but the last few is on the longest path of overlapping iterations.
        assert_eq!(longest < total / 2, parallel > 1, "{longest} of {total} ns, {parallel} at once");
    }
}
