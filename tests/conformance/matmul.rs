//! Products of tensors: batches that broadcast, transposed operands, packed weights, open shapes. Exact.

use crate::data::whole;
use crate::kit::run::{execute, on};
use crate::product::{self, Pair, operands, reference, sizes, transposed, work};
use crate::rule::Rule;
use crate::suite::{Output, Suite};
use crate::values::{Values, engine, packed};
use std::sync::Arc;
use weir_core::base::{Desc, Ref, dtype};
use weir_core::engine::{BoundKernel, KernelOptions, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program};
use weir_core::kernel::builtin::Builtin;
use weir_core::kernel::vector::activation::Activation;
use weir_core::ops::Matmul;

const RULE: Rule = Rule { zeros: 90, ..Rule::EXACT };
const PLAIN: Matmul = Matmul {
    transpose_a: false,
    transpose_b: false,
    bias: false,
    sum: false,
    activation: Activation::NONE,
    wide: false,
    tf32: false,
    packed: None,
};

pub fn cases(suite: &mut Suite) {
    for (seed, pair) in product::all(suite).into_iter().enumerate() {
        if suite.takes(6 * work(pair)) {
            for of in [dtype::F32, dtype::F16, dtype::BF16] {
                of_pair(suite, pair, of, seed as u64);
            }
        }
    }
}

fn of_pair(suite: &mut Suite, pair: &Pair, of: u32, seed: u64) {
    let (a, b) = operands(pair, (of, of), true, seed);
    let c = reference(pair, &a, &b, (0.0, 0.0));
    let (turned_a, turned_b) = (transposed(&a), transposed(&b));
    let turned = [(false, false), (false, true), (true, false), (true, true)];
    for (transpose_a, transpose_b) in turned.into_iter().take(if work(pair) < 1 << 26 { 4 } else { 2 }) {
        let kernel = Builtin::new(Matmul { transpose_a, transpose_b, ..PLAIN });
        let inputs = vec![
            if transpose_a { turned_a.clone() } else { a.clone() },
            if transpose_b { turned_b.clone() } else { b.clone() },
        ];
        let name = format!("{pair:?} {} {transpose_a} {transpose_b}", dtype::name(of));
        suite.kernel(name, RULE, c.clone(), kernel, inputs);
    }
    finished(suite, pair, of, [&a, &b], &c, seed);
    let (_, k, n, batch) = sizes(pair);
    if batch.iter().zip(pair.1).all(|(_, &of_b)| of_b == 1) {
        // One matrix of weights: packed before.
        let b = Values::new(b.dtype, &[k as i64, n as i64], b.x.clone());
        for (transposed, b) in [(false, b.clone()), (true, transposed(&b))] {
            let weights = packed(&b.tensor(), transposed);
            let kernel = Builtin::with_weights(Matmul { packed: Some(weights.shape()), ..PLAIN }, Some(weights));
            let name = format!("{pair:?} {} packed {transposed}", dtype::name(of));
            suite.kernel(name, RULE, c.clone(), kernel, vec![a.clone()]);
        }
    }
}

/// With a bias, an addend and a rectifier, and with sums that are not narrowed.
fn finished(suite: &mut Suite, pair: &Pair, of: u32, [a, b]: [&Values; 2], c: &[f64], seed: u64) {
    let (m, _, n, mut dims) = sizes(pair);
    dims.extend([m as i64, n as i64]);
    for wide in [false, true] {
        let of_c = if wide { dtype::F32 } else { of };
        let bias = whole(of_c, &[n as i64], (1, 9), seed + 1);
        let addend = whole(of_c, &dims, (-9, 9), seed + 2);
        let reference = (0..c.len()).map(|i| (c[i] + bias.x[i % n] + addend.x[i]).max(0.0)).collect();
        let relu = Activation::RELU;
        let kernel = Builtin::new(Matmul { bias: true, sum: true, activation: relu, wide, ..PLAIN });
        let name = format!("{pair:?} {} finished, wide {wide}", dtype::name(of));
        // A row of one column can be below zero as a whole.
        let rule = RULE.zeros(if c.len() == 1 { 100 } else { 90 });
        suite.kernel(name, rule, reference, kernel, vec![a.clone(), b.clone(), bias, addend]);
    }
}

/// M is open, then M and K.
pub fn open_cases(suite: &mut Suite) {
    for (seed, pair) in product::all(suite).into_iter().enumerate() {
        if work(pair) > 1 << 24 || !suite.takes(2 * work(pair)) {
            continue;
        }
        let (a, b) = operands(pair, (dtype::F32, dtype::F32), true, seed as u64);
        let (m, _, n, batch) = sizes(pair);
        let (rank, c) = (pair.0.len(), reference(pair, &a, &b, (0.0, 0.0)));
        let mut shape = batch;
        shape.extend([m as i64, n as i64]);
        for open_k in [false, true] {
            let (mut of_a, mut of_b) = (a.desc(), b.desc());
            of_a.dims[rank - 2] = -1;
            if open_k {
                (of_a.dims[rank - 1], of_b.dims[rank - 2]) = (-1, -1);
            }
            let program = program(of_a, of_b);
            let (a, b, shape) = (a.clone(), b.clone(), shape.clone());
            suite.add(format!("{pair:?} open, K {open_k}"), RULE, c.clone(), move |site| {
                let inputs = [a.tensor(), b.tensor()];
                let output = Tensor::create_open(engine(), program.outputs()[0].desc).unwrap();
                execute(&program, &inputs, std::slice::from_ref(&output), &on(site.pool.as_ref())).unwrap();
                assert_eq!(output.desc().shape(), shape);
                Output::of(&output)
            });
        }
    }
}

fn program(a: Desc, b: Desc) -> Ref<Program> {
    let mut graph = Graph::new("product");
    let inputs = [graph.add_input("a", a).unwrap(), graph.add_input("b", b).unwrap()];
    let kernel = BoundKernel::create(engine(), Arc::new(Builtin::new(PLAIN)), &KernelOptions::default()).unwrap();
    let c = graph.add_kernel("c", kernel, &inputs, 1).unwrap().output(0);
    graph.add_output("c", c).unwrap();
    Program::compile(&graph, vec![engine()], &CompileOptions::default()).unwrap()
}
