//! Cells against their formulas in f64, and the same bits on all pools.
#![forbid(unsafe_code)]

use super::Builtin;
use super::fixture::{WordTensor, call, check_pools, pools, refusal, run};
use crate::base::{Desc, dtype};
use crate::kernel::Kernel;
use crate::ops::weir_gate_order_value as GateOrder;
use crate::ops::{Gru, Lstm};

fn f32s(dims: &[i64]) -> Desc {
    Desc::new(dtype::F32, dims)
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Element (i, j) of x * W^T + bias, of gate `gate`.
fn product(
    x: &[f32],
    w: &[f32],
    bias: Option<&[f32]>,
    (i, j, k, hidden, gate): (usize, usize, usize, usize, usize),
) -> f64 {
    let row = gate * hidden + j;
    let dot: f64 = x[i * k..][..k].iter().zip(&w[row * k..][..k]).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
    dot + bias.map_or(0.0, |bias| f64::from(bias[row]))
}

/// x, the states, W, R and the biases.
fn operands(rows: i64, inputs: i64, hidden: i64, states: usize, gates: i64, bias: bool) -> Vec<WordTensor> {
    let mut all = vec![WordTensor::random(&[rows, inputs], 1)];
    all.extend((0..states).map(|i| WordTensor::random(&[rows, hidden], 2 + i as u64)));
    all.extend([WordTensor::random(&[gates * hidden, inputs], 7), WordTensor::random(&[gates * hidden, hidden], 8)]);
    if bias {
        all.extend([WordTensor::random(&[gates * hidden], 9), WordTensor::random(&[gates * hidden], 10)]);
    }
    all
}

const SHAPES: [(i64, i64, i64); 6] = [(1, 1, 1), (1, 128, 128), (3, 5, 17), (4, 40, 33), (35, 7, 16), (2, 0, 3)];

fn close(got: &[f32], want: &[f64], what: &str) {
    assert_eq!(got.len(), want.len());
    for (i, (&got, &want)) in got.iter().zip(want).enumerate() {
        assert!((f64::from(got) - want).abs() < 3e-6, "{what}: {i}: {got} for {want}");
    }
}

#[test]
fn lstm_is_its_formula() {
    for (rows, width, hidden) in SHAPES {
        for (order, [input, output, forget, cell]) in
            [(GateOrder::WEIR_GATES_ONNX, [0, 1, 2, 3]), (GateOrder::WEIR_GATES_TORCH, [0, 3, 1, 2])]
        {
            for bias in [false, true] {
                let kernel = Builtin::new(Lstm { order, bias });
                let all = operands(rows, width, hidden, 2, 4, bias);
                let values: Vec<_> = all.iter().map(WordTensor::floats).collect();
                let descs: Vec<_> = all.iter().map(|tensor| tensor.desc).collect();
                let outputs = kernel.infer(&descs).unwrap();
                assert_eq!(outputs, [f32s(&[rows, hidden]); 2]);
                let scratch = kernel.scratch_bytes(&descs, &outputs);
                let got =
                    call(&all, &outputs, scratch, None, |context, outputs| kernel.compute(context, outputs)).unwrap();
                let (width, hidden) = (width as usize, hidden as usize);
                let (mut h, mut c) = (vec![], vec![]);
                for (i, j) in (0..rows as usize).flat_map(|i| (0..hidden).map(move |j| (i, j))) {
                    let gate = |gate: usize| {
                        let biases = [5, 6].map(|at| bias.then(|| &values[at][..]));
                        product(&values[0], &values[3], biases[0], (i, j, width, hidden, gate))
                            + product(&values[1], &values[4], biases[1], (i, j, hidden, hidden, gate))
                    };
                    let new = sigmoid(gate(forget)) * f64::from(values[2][i * hidden + j])
                        + sigmoid(gate(input)) * gate(cell).tanh();
                    c.push(new);
                    h.push(sigmoid(gate(output)) * new.tanh());
                }
                let what = format!("{kernel:?} {rows} x {width} x {hidden}");
                close(&got[0].floats(), &h, &what);
                close(&got[1].floats(), &c, &what);
                for (name, pool) in pools() {
                    let on =
                        call(&all, &outputs, scratch, Some(&pool), |context, outputs| kernel.compute(context, outputs))
                            .unwrap();
                    assert!(on.iter().zip(&got).all(|(a, b)| a.bits() == b.bits()), "{what} on {name}");
                }
            }
        }
    }
}

#[test]
fn gru_is_its_formula() {
    for (rows, width, hidden) in SHAPES {
        for (order, [update, reset, new]) in
            [(GateOrder::WEIR_GATES_ONNX, [0, 1, 2]), (GateOrder::WEIR_GATES_TORCH, [1, 0, 2])]
        {
            for (bias, linear_before_reset) in [(false, false), (true, false), (false, true), (true, true)] {
                let kernel = Builtin::new(Gru { order, bias, linear_before_reset });
                let all = operands(rows, width, hidden, 1, 3, bias);
                let values: Vec<_> = all.iter().map(WordTensor::floats).collect();
                let (width, hidden) = (width as usize, hidden as usize);
                let biases = [4, 5].map(|at| bias.then(|| &values[at][..]));
                let of_x = |i, j, gate| product(&values[0], &values[2], biases[0], (i, j, width, hidden, gate));
                let of_h = |i, j, gate| product(&values[1], &values[3], biases[1], (i, j, hidden, hidden, gate));
                let gate = |i, j, gate| sigmoid(of_x(i, j, gate) + of_h(i, j, gate));
                let mut want = vec![];
                for i in 0..rows as usize {
                    let resets: Vec<_> = (0..hidden).map(|j| gate(i, j, reset)).collect();
                    let scaled: Vec<f64> =
                        (0..hidden).map(|j| resets[j] * f64::from(values[1][i * hidden + j])).collect();
                    for (j, reset) in resets.into_iter().enumerate() {
                        let recurrent = if linear_before_reset {
                            reset * of_h(i, j, new)
                        } else {
                            let row = &values[3][(new * hidden + j) * hidden..][..hidden];
                            scaled.iter().zip(row).map(|(h, r)| h * f64::from(*r)).sum::<f64>()
                                + biases[1].map_or(0.0, |bias| f64::from(bias[new * hidden + j]))
                        };
                        let candidate = (of_x(i, j, new) + recurrent).tanh();
                        let z = gate(i, j, update);
                        want.push((1.0 - z) * candidate + z * f64::from(values[1][i * hidden + j]));
                    }
                }
                close(&run(&kernel, &all).floats(), &want, &format!("{kernel:?} {rows} x {width} x {hidden}"));
                check_pools(&kernel, &all);
            }
        }
    }
}

#[test]
fn cells_keep_nan_and_survive_infinity() {
    let kernel = Builtin::new(Lstm { order: GateOrder::WEIR_GATES_ONNX, bias: false });
    let x = WordTensor::f32(&[3, 1], &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
    let state = WordTensor::f32(&[3, 1], &[0.5; 3]);
    let all = [x, state.clone(), state, WordTensor::f32(&[4, 1], &[1.0; 4]), WordTensor::f32(&[4, 1], &[1.0; 4])];
    let got =
        call(&all, &[f32s(&[3, 1]); 2], 1 << 14, None, |context, outputs| kernel.compute(context, outputs)).unwrap();
    let (h, c) = (got[0].floats(), got[1].floats());
    assert!(h[0].is_nan() && c[0].is_nan(), "{h:?} {c:?}");
    assert!((c[1] - 1.5).abs() < 1e-6 && (h[1] - 1.5f32.tanh()).abs() < 1e-6, "{h:?} {c:?}");
    assert!(c[2].abs() < 1e-6 && h[2].abs() < 1e-6, "{h:?} {c:?}");
}

#[test]
fn cells_refuse_what_does_not_fit() {
    let lstm = Builtin::new(Lstm { order: GateOrder::WEIR_GATES_ONNX, bias: true });
    let gru = Builtin::new(Gru { order: GateOrder::WEIR_GATES_ONNX, bias: false, linear_before_reset: false });
    let (x, h, w, r, b) = (f32s(&[2, 3]), f32s(&[2, 5]), f32s(&[20, 3]), f32s(&[20, 5]), f32s(&[20]));
    let cases: &[(&dyn Kernel, &[Desc], &str)] = &[
        (&lstm, &[f32s(&[2]), h, h, w, r, b, b], "input 0: expected f32[?,?], got f32[2]"),
        (&lstm, &[x, f32s(&[3, 5]), h, w, r, b, b], "input 1: expected f32[2,?], got f32[3,5]"),
        (&lstm, &[x, h, f32s(&[2, 4]), w, r, b, b], "input 2: expected f32[2,5], got f32[2,4]"),
        (&lstm, &[x, h, h, f32s(&[15, 3]), r, b, b], "input 3: expected f32[20,3], got f32[15,3]"),
        (&lstm, &[x, h, h, w, w, b, b], "input 4: expected f32[20,5], got f32[20,3]"),
        (&lstm, &[x, h, h, w, r, b, f32s(&[40])], "input 6: expected f32[20], got f32[40]"),
        (&gru, &[x, h, w, r], "input 2: expected f32[15,3], got f32[20,3]"),
    ];
    for (kernel, inputs, message) in cases {
        assert_eq!(refusal(*kernel, inputs), *message);
    }
}
