//! Graphs by hand with results by hand: what the interpreter must say, and the library too.

use super::build::Lowering;
use super::examine::{Diligence, examine};
use super::faults::{endure, silence_planned_panics};
use super::interpret::interpret;
use super::random::Random;
use super::sketch::{Drawn, Sketch, input, spec};
use super::spec::{Effort, Graph, Kind, Manner, Op, Spec, Type, Value};
use super::stage::Stage;
use super::sweep::watched;

use Type::{Bool, Byte, Int, Small};

const ABSENT: Option<i32> = None;

/// What each output begins with and how often nodes ran, with input set `set`.
fn expect(spec: &Spec, set: usize, outputs: &[Option<i32>], calls: &[(Drawn, u64)]) {
    let outcome = interpret(spec, set).unwrap();
    assert!(outcome.conflicts.is_empty());
    let got: Vec<Option<i32>> = outcome.outputs.iter().map(|data| data.as_ref().map(|data| data.items[0])).collect();
    assert_eq!(got, outputs, "set {set} of {spec}");
    for (node, calls) in calls {
        assert_eq!(outcome.tallies[node.id].calls, *calls, "node {} with set {set} of {spec}", node.id);
    }
}

/// The library does the same, also when things go wrong.
fn hold(spec: &Spec) {
    silence_planned_panics();
    let has_dead = spec.graph.any(|node| matches!(node.kind, Kind::Switch | Kind::Merge));
    for &lowering in Lowering::ALL.iter().filter(|lowering| **lowering == Lowering::Regions || !has_dead) {
        let result = watched(spec, || {
            let stage = Stage::new();
            examine(spec, &stage, lowering, Diligence::Whole)
                .and_then(|()| endure(spec, &stage, lowering, Diligence::Whole))
        });
        result.unwrap_or_else(|text| panic!("{lowering:?}: {text}\n{spec}"));
    }
}

/// A graph that sums its inputs.
fn summing(inputs: &[Type]) -> (Graph, Drawn) {
    let mut graph = Sketch::of(inputs);
    let values: Vec<Value> = (0..inputs.len()).map(input).collect();
    let sum = graph.sum(&values);
    (graph.gives(&[sum.out(0)]), sum)
}

/// A loop's condition: goes on while variable 0 is not zero. And without a node of its own.
fn until_zero(inputs: &[Type]) -> Graph {
    Sketch::of(inputs).gives(&[input(0)])
}

#[test]
fn a_sum() {
    let (graph, sum) = summing(&[Int, Int]);
    let spec = spec(graph, &[&[1, 2], &[i32::MAX, 1]]);
    expect(&spec, 0, &[Some(3)], &[(sum, 1)]);
    expect(&spec, 1, &[Some(i32::MIN)], &[(sum, 1)]);
    hold(&spec);
}

#[test]
fn ten_doublings_with_two_edges_between_the_same_nodes() {
    let mut graph = Sketch::of(&[Int]);
    let last = (0..10).fold(input(0), |value, _| graph.sum(&[value, value]).out(0));
    let spec = spec(graph.gives(&[last]), &[&[1], &[-3]]);
    expect(&spec, 0, &[Some(1024)], &[]);
    expect(&spec, 1, &[Some(-3072)], &[]);
    hold(&spec);
}

#[test]
fn a_random_tree() {
    let mut graph = Sketch::of(&[Int]);
    let mut random = Random::new(4096);
    let mut open: Vec<Value> = (0..4096).map(|_| input(0)).collect();
    while open.len() > 1 {
        let pair = [0, 1].map(|_| open.swap_remove(random.below(open.len())));
        open.push(graph.sum(&pair).out(0));
    }
    let spec = spec(graph.gives(&open), &[&[1]]);
    expect(&spec, 0, &[Some(4096)], &[]);
    watched(&spec, || examine(&spec, &Stage::new(), Lowering::Regions, Diligence::Whole)).unwrap();
}

#[test]
fn many_effects_and_tasks_that_wait_for_nothing() {
    let mut graph = Sketch::of(&[]);
    for _ in 0..500 {
        graph.task();
        graph.effect(&[]);
    }
    let spec = spec(graph.gives(&[]), &[&[]]);
    expect(&spec, 0, &[], &[]);
    watched(&spec, || examine(&spec, &Stage::new(), Lowering::Regions, Diligence::Whole)).unwrap();
}

#[test]
fn outputs_that_nobody_computes() {
    let mut graph = Sketch::of(&[Int, Bool]);
    let constant = graph.constant(Int, 7);
    let spec = spec(graph.gives(&[input(0), input(0), constant, input(1), constant]), &[&[5, 1]]);
    expect(&spec, 0, &[Some(5), Some(5), Some(7), Some(1), Some(7)], &[]);
    hold(&spec);
}

#[test]
fn a_cond_runs_one_side() {
    for kind in Type::PREDICATES {
        let mut graph = Sketch::of(&[kind, Int]);
        let mut then = Sketch::of(&[Int]);
        let doubled = then.sum(&[input(0), input(0)]);
        let effect = then.task();
        let then = then.gives(&[doubled.out(0), input(0)]);
        let mut otherwise = Sketch::of(&[Int]);
        let constant = otherwise.constant(Int, 9);
        let other = otherwise.task();
        let otherwise = otherwise.gives(&[input(0), constant]);
        let cond = graph.cond(then, otherwise, &[input(0), input(1)]);
        let after = graph.task();
        graph.wait(after, cond);
        let spec = spec(graph.gives(&[cond.out(0), cond.out(1)]), &[&[1, 21], &[0, 21]]);
        expect(&spec, 0, &[Some(42), Some(21)], &[(doubled, 1), (effect, 1), (other, 0), (after, 1)]);
        expect(&spec, 1, &[Some(21), Some(9)], &[(doubled, 0), (effect, 0), (other, 1), (after, 1)]);
        hold(&spec);
    }
}

#[test]
fn a_case_takes_the_last_branch_for_what_is_out_of_range() {
    let mut graph = Sketch::of(&[Small]);
    let branch = |value: i32| {
        let mut branch = Sketch::of(&[]);
        let value = branch.constant(Int, value);
        branch.gives(&[value])
    };
    let case = graph.case((0..3).map(|i| branch(10 + i)).collect(), &[input(0)]);
    let spec = spec(graph.gives(&[case.out(0)]), &[&[0], &[1], &[2], &[3], &[-1], &[-128]]);
    for (set, expected) in [10, 11, 12, 12, 12, 12].into_iter().enumerate() {
        expect(&spec, set, &[Some(expected)], &[]);
    }
    hold(&spec);
}

/// Triangular numbers: sum += i, i -= 1.
fn triangle(inputs: usize) -> (Graph, Drawn) {
    let mut body = Sketch::of(&vec![Int; inputs]);
    let less = body.leaf(Op::Less, &[input(0)], Int);
    let sum = body.sum(&[input(0), input(1)]);
    (body.gives(&[less.out(0), sum.out(0)]), sum)
}

#[test]
fn a_while_goes_round_as_often_as_its_data_say() {
    for parallel_iterations in 1..=4 {
        let mut graph = Sketch::of(&[Int, Int]);
        let (body, sum) = triangle(2);
        let looping = graph.looping(until_zero(&[Int, Int]), body, &[input(0), input(1)], parallel_iterations);
        let spec = spec(graph.gives(&[looping.out(0), looping.out(1)]), &[&[0, 5], &[1, 5], &[7, 5], &[40, 0]]);
        for (set, (trips, total)) in [(0, 5), (1, 6), (7, 33), (40, 820)].into_iter().enumerate() {
            expect(&spec, set, &[Some(0), Some(total)], &[(sum, trips)]);
        }
        hold(&spec);
    }
}

#[test]
fn a_while_swaps_keeps_and_reads_invariants() {
    for parallel_iterations in 1..=4 {
        let mut graph = Sketch::of(&[Int]);
        let (a, b, c) = (graph.constant(Int, 100), graph.constant(Int, 200), graph.constant(Int, 3));
        let kinds = [Int, Int, Int, Int, Int];
        // counter, first, second, kept; the invariant c is added to what moves from first to second.
        let mut body = Sketch::of(&kinds);
        let less = body.leaf(Op::Less, &[input(0)], Int);
        let moved = body.sum(&[input(1), input(4)]);
        let body = body.gives(&[less.out(0), input(2), moved.out(0), input(3)]);
        let variables = [input(0), a, b, a, c];
        let looping = graph.looping(until_zero(&kinds), body, &variables, parallel_iterations);
        let outputs: Vec<Value> = (0..4).map(|o| looping.out(o)).collect();
        let spec = spec(graph.gives(&outputs), &[&[0], &[1], &[2], &[5]]);
        expect(&spec, 0, &[Some(0), Some(100), Some(200), Some(100)], &[(moved, 0)]);
        expect(&spec, 1, &[Some(0), Some(200), Some(103), Some(100)], &[(moved, 1)]);
        expect(&spec, 2, &[Some(0), Some(103), Some(203), Some(100)], &[(moved, 2)]);
        expect(&spec, 3, &[Some(0), Some(206), Some(109), Some(100)], &[(moved, 5)]);
        hold(&spec);
    }
}

#[test]
fn a_while_in_a_while_in_a_cond() {
    // In each of n rounds, the inner loop adds up n, n-1, .. to the total.
    let (inner_body, sum) = triangle(2);
    let mut body = Sketch::of(&[Int, Int]);
    let inner = body.looping(until_zero(&[Int, Int]), inner_body, &[input(0), input(1)], 2);
    let less = body.leaf(Op::Less, &[input(0)], Int);
    let body = body.gives(&[less.out(0), inner.out(1)]);
    let mut then = Sketch::of(&[Int, Int]);
    let outer = then.looping(until_zero(&[Int, Int]), body, &[input(0), input(1)], 3);
    let then = then.gives(&[outer.out(1)]);
    let otherwise = Sketch::of(&[Int, Int]).gives(&[input(0)]);
    let mut graph = Sketch::of(&[Byte, Int, Int]);
    let cond = graph.cond(then, otherwise, &[input(0), input(1), input(2)]);
    let spec = spec(graph.gives(&[cond.out(0)]), &[&[200, 4, 1], &[0, 4, 1], &[1, 0, 1]]);
    // 10 + 6 + 3 + 1 and the 1 that was there; 4 + 3 + 2 + 1 additions.
    expect(&spec, 0, &[Some(21)], &[(sum, 10)]);
    expect(&spec, 1, &[Some(4)], &[(sum, 0)]);
    expect(&spec, 2, &[Some(1)], &[(sum, 0)]);
    hold(&spec);
}

#[test]
fn a_switch_makes_one_side_dead_through_several_nodes() {
    let mut graph = Sketch::of(&[Bool, Int]);
    let switch = graph.switch(input(1), input(0));
    let no = graph.sum(&[switch.out(0), input(1)]);
    let no_more = graph.sum(&[no.out(0), no.out(0)]);
    let yes = graph.sum(&[switch.out(1)]);
    let merge = graph.merge(&[no_more.out(0), yes.out(0)]);
    let behind = graph.task();
    graph.wait(behind, no);
    let by_the_way = graph.task();
    graph.wait(by_the_way, switch);
    let outputs = [merge.out(0), merge.out(1), no.out(0), switch.out(1)];
    let spec = spec(graph.gives(&outputs), &[&[0, 5], &[1, 5]]);
    let calls = [(no, 1), (no_more, 1), (yes, 0), (behind, 1), (by_the_way, 1), (merge, 1)];
    expect(&spec, 0, &[Some(20), Some(0), Some(10), ABSENT], &calls);
    let calls = [(no, 0), (no_more, 0), (yes, 1), (behind, 0), (by_the_way, 1), (merge, 1)];
    expect(&spec, 1, &[Some(5), Some(1), ABSENT, Some(5)], &calls);
    hold(&spec);
}

#[test]
fn switches_in_switches_leave_one_of_four() {
    let mut graph = Sketch::of(&[Bool, Bool, Int]);
    let outer = graph.switch(input(2), input(0));
    let inner: Vec<Drawn> = (0..2).map(|side| graph.switch(outer.out(side), input(1))).collect();
    let inputs = [inner[1].out(1), inner[0].out(0), inner[1].out(0), inner[0].out(1)];
    let leaves: Vec<Value> = inputs.iter().map(|&value| graph.sum(&[value]).out(0)).collect();
    let flat = graph.merge(&leaves);
    let dead = graph.merge(&[inner[0].out(0), inner[0].out(1)]);
    let deader = graph.sum(&[dead.out(1)]);
    let spec = spec(
        graph.gives(&[flat.out(0), flat.out(1), deader.out(0)]),
        &[&[0, 0, 8], &[0, 1, 8], &[1, 0, 8], &[1, 1, 8]],
    );
    expect(&spec, 0, &[Some(8), Some(1), Some(0)], &[(deader, 1)]);
    expect(&spec, 1, &[Some(8), Some(3), Some(1)], &[(deader, 1)]);
    expect(&spec, 2, &[Some(8), Some(2), ABSENT], &[(deader, 0)]);
    expect(&spec, 3, &[Some(8), Some(0), ABSENT], &[(deader, 0)]);
    hold(&spec);
}

#[test]
fn a_merge_waits_for_dead_nodes_and_lives() {
    let mut graph = Sketch::of(&[Bool, Int]);
    let switch = graph.switch(input(1), input(0));
    let sides = [0, 1].map(|side| graph.sum(&[switch.out(side)]));
    let merge = graph.merge(&[sides[0].out(0), sides[1].out(0)]);
    let effects = [0, 1].map(|side| {
        let effect = graph.task();
        graph.wait(effect, sides[side]);
        effect
    });
    let late = graph.merge(&[sides[0].out(0), sides[1].out(0)]);
    graph.wait(late, effects[0]);
    graph.wait(late, effects[1]);
    let dead_and_live = graph.sum(&[merge.out(0), sides[0].out(0)]);
    let spec = spec(graph.gives(&[late.out(0), dead_and_live.out(0)]), &[&[0, 4], &[1, 4]]);
    expect(&spec, 0, &[Some(4), Some(8)], &[(effects[0], 1), (effects[1], 0)]);
    expect(&spec, 1, &[Some(4), ABSENT], &[(effects[0], 0), (effects[1], 1)]);
    hold(&spec);
}

#[test]
fn nothing_runs_inside_a_dead_region() {
    let mut graph = Sketch::of(&[Bool, Int]);
    let switch = graph.switch(input(1), input(0));
    let (body, sum) = triangle(3);
    // The dead value is an invariant that nobody reads, the last thing that the loop would wait for.
    let looping = graph.looping(until_zero(&[Int; 3]), body, &[input(1), input(1), switch.out(1)], 2);
    let (then, in_then) = summing(&[Int]);
    let (otherwise, in_otherwise) = summing(&[Int]);
    let dead_if_false = graph.sum(&[switch.out(1)]);
    let cond = graph.cond(then, otherwise, &[input(0), input(1)]);
    graph.wait(cond, dead_if_false);
    let default = graph.merge(&[looping.out(1), switch.out(0)]);
    let spec = spec(graph.gives(&[looping.out(1), cond.out(0), default.out(0)]), &[&[0, 3], &[1, 3]]);
    expect(&spec, 0, &[ABSENT, ABSENT, Some(3)], &[(sum, 0), (in_then, 0), (in_otherwise, 0)]);
    expect(&spec, 1, &[Some(9), Some(3), Some(9)], &[(sum, 3), (in_then, 1), (in_otherwise, 0)]);
    hold(&spec);
}

#[test]
fn a_diamond_in_each_iteration() {
    // Counts down; the total doubles where the counter is even, and goes down by one where it is odd.
    for parallel_iterations in 1..=3 {
        let mut body = Sketch::of(&[Int, Int, Bool]);
        let less = body.leaf(Op::Less, &[input(0)], Int);
        let switch = body.switch(input(1), input(2));
        let halves = [body.sum(&[switch.out(0), switch.out(0)]), body.leaf(Op::Less, &[switch.out(1)], Int)];
        let merge = body.merge(&[halves[1].out(0), halves[0].out(0)]);
        // The next flag is the opposite: the winner's index, as a bool.
        let flag = body.leaf(Op::Sum, &[merge.out(1)], Bool);
        let body = body.gives(&[less.out(0), merge.out(0), flag.out(0)]);
        let mut graph = Sketch::of(&[Int, Int, Bool]);
        let looping =
            graph.looping(until_zero(&[Int, Int, Bool]), body, &[input(0), input(1), input(2)], parallel_iterations);
        let spec = spec(graph.gives(&[looping.out(1), looping.out(2)]), &[&[4, 10, 0], &[3, 10, 1], &[0, 10, 1]]);
        // 10 -> 20 -> 19 -> 38 -> 37
        expect(&spec, 0, &[Some(37), Some(0)], &[(halves[0], 2), (halves[1], 2)]);
        // 10 -> 9 -> 18 -> 17
        expect(&spec, 1, &[Some(17), Some(0)], &[(halves[0], 1), (halves[1], 2)]);
        expect(&spec, 2, &[Some(10), Some(1)], &[(halves[0], 0), (halves[1], 0)]);
        hold(&spec);
    }
}

#[test]
fn two_live_inputs_of_a_merge_are_an_error() {
    let mut graph = Sketch::of(&[Bool, Int]);
    let switch = graph.switch(input(1), input(0));
    let (yes, always) = (graph.sum(&[switch.out(1)]), graph.sum(&[input(1)]));
    let merge = graph.merge(&[yes.out(0), always.out(0)]);
    let spec = spec(graph.gives(&[merge.out(0)]), &[&[0, 6], &[1, 6], &[0, 7]]);
    expect(&spec, 0, &[Some(6)], &[(yes, 0)]);
    let outcome = interpret(&spec, 1).unwrap();
    let [conflict] = outcome.conflicts.as_slice() else { panic!("{:?}", outcome.conflicts) };
    assert_eq!(conflict.producers, [yes, always].map(|node| Some(format!("kernel{}", node.id))));
    hold(&spec);
}

/// A cond that a constant decides is gone: what it gave is not said to come from it.
#[test]
fn a_merge_of_what_a_constant_decided_is_an_error() {
    let mut graph = Sketch::of(&[]);
    let branch = || {
        let mut branch = Sketch::of(&[]);
        let value = branch.constant(Int, 3);
        branch.gives(&[value])
    };
    let predicate = graph.constant(Byte, 0);
    let cond = graph.cond(branch(), branch(), &[predicate]);
    let merge = graph.merge(&[cond.out(0), cond.out(0)]);
    let spec = spec(graph.gives(&[merge.out(0)]), &[&[]]);
    assert_eq!(interpret(&spec, 0).unwrap().conflicts.len(), 1);
    hold(&spec);
}

/// What waits for a cond that a constant decides waits for a cond inside of it too, also when one of its values is used
/// there.
#[test]
fn what_waits_for_a_decided_cond_waits_for_the_effects_in_it() {
    let mut inner = Sketch::of(&[Int]);
    let slow = Kind::Leaf { op: Op::Sum, effort: Effort::Spin(300), manner: Manner::Now, in_place: false, cost_ns: 0 };
    let (task, three) = (inner.add(slow, &[input(0)], &[]), inner.constant(Int, 3));
    let inner = inner.gives(&[three]);
    let mut otherwise = Sketch::of(&[Int]);
    let four = otherwise.constant(Int, 4);
    let otherwise = otherwise.gives(&[four]);
    let mut outer = Sketch::of(&[Bool, Int]);
    let cond = outer.cond(inner, otherwise, &[input(0), input(1)]);
    outer.effect(&[cond.out(0)]);
    let outer = outer.gives(&[]);
    let mut graph = Sketch::of(&[Bool, Int]);
    let always = graph.constant(Byte, 1);
    let decided = graph.cond(outer, Sketch::of(&[Bool, Int]).gives(&[]), &[always, input(0), input(1)]);
    let after = graph.task();
    graph.wait(after, decided);
    let spec = spec(graph.gives(&[]), &[&[1, 5], &[0, 5]]);
    expect(&spec, 0, &[], &[(task, 1), (after, 1)]);
    expect(&spec, 1, &[], &[(task, 0), (after, 1)]);
    hold(&spec);
}
