//! Products of tensors: batches that broadcast, transposed operands, packed weights, open shapes. Exact.

use crate::kit::run::{execute, on};
use crate::product::{self, Pair, operands, reference, sizes, transposed, work};
use crate::rule::Rule;
use crate::suite::{Output, Suite};
use crate::values::{Values, engine};
use std::sync::Arc;
use weir::base::{Desc, Ref, dtype};
use weir::engine::{BoundKernel, KernelAttr, Tensor};
use weir::graph::{CompileOptions, Graph, Program};
use weir::kernel::builtin::{Matmul, Packed};
use weir::kernel::vector::activation::Activation;

const RULE: Rule = Rule { zeros: 90, ..Rule::EXACT };
const PLAIN: Matmul = Matmul {
    transpose_a: false,
    transpose_b: false,
    bias: false,
    sum: false,
    activation: Activation::None,
    weights: None,
};

pub fn cases(suite: &mut Suite) {
    for (seed, pair) in product::all(suite).into_iter().enumerate() {
        if suite.takes(6 * work(pair)) {
            of_pair(suite, pair, seed as u64);
        }
    }
}

fn of_pair(suite: &mut Suite, pair: &Pair, seed: u64) {
    let (a, b) = operands(pair, (dtype::F32, dtype::F32), true, seed);
    let c = reference(pair, &a, &b, (0.0, 0.0));
    let (turned_a, turned_b) = (transposed(&a), transposed(&b));
    let turned = [(false, false), (false, true), (true, false), (true, true)];
    for (transpose_a, transpose_b) in turned.into_iter().take(if work(pair) < 1 << 26 { 4 } else { 2 }) {
        let kernel = Matmul { transpose_a, transpose_b, ..PLAIN };
        let inputs = vec![
            if transpose_a { turned_a.clone() } else { a.clone() },
            if transpose_b { turned_b.clone() } else { b.clone() },
        ];
        suite.kernel(format!("{pair:?} {transpose_a} {transpose_b}"), RULE, c.clone(), kernel, inputs);
    }
    if let [k, n] = pair.1[pair.1.len() - 2..]
        && product::sizes(pair).3.iter().zip(pair.1).all(|(_, &of_b)| of_b == 1)
    {
        // One matrix of weights: packed before.
        let b = Values::new(b.dtype, &[k, n], b.x.clone());
        for (transposed, b) in [(false, b.clone()), (true, transposed(&b))] {
            let weights = Some(Arc::new(Packed::new(b.tensor().view(), transposed).unwrap()));
            let kernel = Matmul { weights, ..PLAIN };
            suite.kernel(format!("{pair:?} packed {transposed}"), RULE, c.clone(), kernel, vec![a.clone()]);
        }
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
    let kernel = BoundKernel::create(engine(), Arc::new(PLAIN), &KernelAttr::default());
    let c = graph.add_kernel("c", kernel, &inputs, 1).unwrap().output(0);
    graph.add_output("c", c).unwrap();
    Program::compile(&graph, vec![engine()], &CompileOptions::default()).unwrap()
}
