//! Graphs of many nodes that hand values to each other: what a run's memory of them is, and that the values are right
//! where nodes have the same views, where they have none of their own, and where branches and loops lie between them.

#[path = "kit/mod.rs"]
mod kit;

use kit::integers::Builder;
use kit::random::Random;
use kit::run::{check, fact};
use weir_core::graph::ValueId;

/// Each node waits for up to `most` earlier ones, of the last `near`. Gives the values, and what each must be.
fn random_graph(builder: &mut Builder, nodes: usize, most: usize, near: usize, seed: u64) -> (Vec<ValueId>, Vec<i32>) {
    let mut random = Random::new(seed);
    let (mut values, mut expected): (Vec<ValueId>, Vec<i32>) = (Vec::new(), Vec::new());
    for node in 0..nodes {
        let count = if node == 0 { 0 } else { random.below(most + 1) };
        let from: Vec<usize> = (0..count).map(|_| node - 1 - random.below(near.min(node))).collect();
        let inputs: Vec<ValueId> = from.iter().map(|&from| values[from]).collect();
        let own = node as i32;
        let f = move |x: &[i32]| x.iter().fold(own, |sum, x| sum.wrapping_mul(31).wrapping_add(*x));
        expected.push(f(&from.iter().map(|&from| expected[from]).collect::<Vec<_>>()));
        values.push(builder.op(&inputs, f));
    }
    (values, expected)
}

fn check_random(nodes: usize, most: usize, near: usize, seed: u64) {
    let mut builder = Builder::new("data");
    builder.how.cost_ns = 1000;
    let (values, expected) = random_graph(&mut builder, nodes, most, near, seed);
    let mut random = Random::new(seed + 1);
    let chosen: Vec<usize> = (0..50).map(|_| random.below(nodes)).chain([nodes - 1]).collect();
    chosen.iter().for_each(|&node| builder.output(values[node]));
    let expected: Vec<i32> = chosen.iter().map(|&node| expected[node]).collect();
    check(&builder.compile(), &[], &expected);
}

#[test]
fn few_lists_of_arguments() {
    check_random(500, 3, 4, 1);
}

#[test]
fn more_lists_than_a_cache_holds() {
    check_random(20_000, 3, 300, 2);
}

#[test]
fn more_lists_and_long_ones() {
    check_random(10_000, 9, 300, 3);
}

#[test]
fn a_chain_of_one_shape_needs_hardly_any_memory_in_a_run() {
    let mut builder = Builder::new("chain");
    builder.how.in_place = false;
    let mut value = builder.constant(0);
    for _ in 0..20_000 {
        value = builder.op(&[value], |x| x[0] + 1);
    }
    builder.output(value);
    let program = builder.compile();
    // Links between nodes, and nothing for each argument.
    assert!(fact(&program, "step_bytes") <= 20_000 * 8, "{} bytes", fact(&program, "step_bytes"));
    check(&program, &[], &[20_000]);
}

#[test]
fn inputs_and_outputs_of_the_run_are_where_each_run_says() {
    let (mut builder, inputs) = Builder::of("ends", 3);
    let sums: Vec<ValueId> =
        (0..3000).map(|i| builder.op(&[inputs[i % 3], inputs[(i / 3) % 3]], |x| x[0] - x[1])).collect();
    let parts: Vec<ValueId> = sums.chunks(60).map(|part| builder.sum(part)).collect();
    let all = builder.sum(&parts);
    builder.output(all);
    builder.output(sums[2999]);
    builder.output(sums[2990]);
    let program = builder.compile();
    for x in [[1, 2, 3], [7, -5, 100]] {
        let sum = |i: usize| x[i % 3] - x[(i / 3) % 3];
        check(&program, &x, &[(0..3000).map(sum).sum(), sum(2999), sum(2990)]);
    }
}

#[test]
fn branches_and_loops_among_many_nodes() {
    let (mut builder, inputs) = Builder::of("mixed", 2);
    let (values, expected) = random_graph(&mut builder, 5000, 3, 300, 5);
    let (mut then, given) = Builder::of("then", 3);
    let sum = then.sum(&given);
    let doubled = then.op(&[sum, given[1]], |x| x[0].wrapping_mul(2).wrapping_add(x[1]));
    let then = then.giving(&[doubled]);
    let (mut otherwise, given) = Builder::of("otherwise", 3);
    let less = otherwise.op(&given, |x| x[0].wrapping_sub(x[2]));
    let otherwise = otherwise.giving(&[less]);
    let (node, input) = (values[4321], inputs[1]);
    let chosen =
        builder.graph.add_cond("cond", inputs[0], &then, &otherwise, &[input, node, inputs[0]]).unwrap().output(0);
    let (mut condition, given) = Builder::of("condition", 2);
    let goes_on = condition.op(&[given[0]], |x| i32::from(x[0] < 40));
    let condition = condition.giving(&[goes_on]);
    let (mut body, given) = Builder::of("body", 2);
    let counted = body.op(&[given[0]], |x| x[0] + 1);
    let added = body.op(&[given[1], given[0]], |x| x[0].wrapping_mul(3).wrapping_add(x[1]));
    let body = body.giving(&[counted, added]);
    let zero = builder.constant(0);
    let looped = builder.graph.add_while("loop", &condition, &body, &[zero, chosen], &[], 1).unwrap().output(1);
    builder.output(chosen);
    builder.output(looped);
    let program = builder.compile();
    for x in [[0i32, 5], [1, 5], [0, -3], [1, 77]] {
        let node = expected[4321];
        let chosen = if x[0] == 0 {
            x[1].wrapping_sub(x[0])
        } else {
            x[1].wrapping_add(node).wrapping_add(x[0]).wrapping_mul(2).wrapping_add(node)
        };
        let looped = (0..40).fold(chosen, |value: i32, i| value.wrapping_mul(3).wrapping_add(i));
        check(&program, &x, &[chosen, looped]);
    }
}
