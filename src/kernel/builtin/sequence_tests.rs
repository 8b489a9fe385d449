//! Sequences against their formulas in f64 and against cells, and the same bits on all pools and with packed weights.
#![forbid(unsafe_code)]

use super::fixture::{WordTensor, call, pools, prepared, refusal};
use super::{Builtin, BuiltinOperation};
use crate::base::{Desc, dtype};
use crate::kernel::Kernel;
use crate::kernel::vector::isa::Isa;
use crate::ops::weir_gate_order_value::*;
use crate::ops::weir_sequence_direction_value::*;
use crate::ops::{Gru, GruSequence, Lstm, LstmSequence, Sequence};

/// Steps, rows, inputs, hidden units.
type Sizes = (usize, usize, usize, usize);

const PLAIN: Sequence = Sequence {
    order: WEIR_GATES_ONNX,
    direction: WEIR_SEQUENCE_FORWARD,
    bias: false,
    lengths: false,
    initial: false,
    batch_first: false,
    clip: f32::INFINITY,
};

/// The inputs of an operator with these settings.
fn operands(of: &Sequence, (steps, rows, inputs, hidden): Sizes, gates: usize, peepholes: bool) -> Vec<WordTensor> {
    let (d, all) = (of.directions(), gates * hidden);
    let dims = |dims: [usize; 3]| dims.map(|dim| dim as i64);
    let (x, state) = match of.batch_first {
        true => (dims([rows, steps, inputs]), dims([rows, d, hidden])),
        false => (dims([steps, rows, inputs]), dims([d, rows, hidden])),
    };
    let mut tensors = vec![
        WordTensor::random(&x, 1),
        WordTensor::random(&dims([d, all, inputs]), 2),
        WordTensor::random(&dims([d, all, hidden]), 3),
    ];
    if of.bias {
        tensors.push(WordTensor::random(&[d as i64, 2 * all as i64], 4));
    }
    if of.lengths {
        let lengths: Vec<i32> = (0..rows).map(|row| ((row * 5 + 2) % (steps + 3)) as i32 - 1).collect();
        tensors.push(WordTensor::s32(&[rows as i64], &lengths));
    }
    let states = if of.initial { gates - 2 } else { 0 };
    tensors.extend((0..states).map(|i| WordTensor::random(&state, 5 + i as u64)));
    if peepholes {
        tensors.push(WordTensor::random(&[d as i64, 3 * hidden as i64], 7));
    }
    tensors
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// All outputs of an LSTM (4 gates) or a GRU (3), as the formulas say.
fn reference(
    of: &Sequence,
    (steps, rows, inputs, hidden): Sizes,
    tensors: &[WordTensor],
    (gates, linear, peepholes): (usize, bool, bool),
) -> Vec<Vec<f64>> {
    let (d, all) = (of.directions(), gates * hidden);
    let floats = |i: usize| tensors[i].floats().into_iter().map(f64::from).collect::<Vec<_>>();
    let (x, w, r) = (floats(0), floats(1), floats(2));
    let mut at = 3;
    let mut next = |there: bool| {
        at += usize::from(there);
        there.then_some(at - 1)
    };
    let bias = next(of.bias).map(floats);
    let lengths: Vec<usize> = match next(of.lengths) {
        Some(i) => tensors[i].integers().into_iter().map(|len| len.clamp(0, steps as i32) as usize).collect(),
        None => vec![steps; rows],
    };
    let initial = [next(of.initial), next(of.initial && gates == 4)].map(|i| i.map(floats));
    let peepholes = next(peepholes).map(floats);
    let mut outputs = vec![vec![0.0; steps * d * rows * hidden]];
    outputs.resize(gates - 1, vec![0.0; d * rows * hidden]);
    let [input, output, forget, cell] = if of.order == WEIR_GATES_ONNX { [0, 1, 2, 3] } else { [0, 3, 1, 2] };
    let [update, reset, new] = if of.order == WEIR_GATES_ONNX { [0, 1, 2] } else { [1, 0, 2] };
    for (k, n) in (0..d).flat_map(|k| (0..rows).map(move |n| (k, n))) {
        let place = |j: usize| if of.batch_first { (n * d + k) * hidden + j } else { (k * rows + n) * hidden + j };
        let state = |i: usize| -> Vec<f64> {
            (0..hidden).map(|j| initial[i].as_ref().map_or(0.0, |state| state[place(j)])).collect()
        };
        let (mut h, mut c) = (state(0), state(1));
        let back = of.direction == WEIR_SEQUENCE_REVERSE || k == 1;
        for step in 0..lengths[n] {
            let t = if back { lengths[n] - 1 - step } else { step };
            let line = if of.batch_first { n * steps + t } else { t * rows + n };
            let of_w = |gate: usize, j: usize| {
                let row = (k * all + gate * hidden + j) * inputs;
                let sum: f64 = (0..inputs).map(|i| x[line * inputs + i] * w[row + i]).sum();
                sum + bias.as_ref().map_or(0.0, |bias| bias[k * 2 * all + gate * hidden + j])
            };
            let of_r = |h: &[f64], gate: usize, j: usize| {
                let row = (k * all + gate * hidden + j) * hidden;
                let sum: f64 = (0..hidden).map(|i| h[i] * r[row + i]).sum();
                sum + bias.as_ref().map_or(0.0, |bias| bias[(k * 2 + 1) * all + gate * hidden + j])
            };
            let clip = |x: f64| x.clamp(-f64::from(of.clip), f64::from(of.clip));
            if gates == 4 {
                let peep = |which: usize, j: usize, c: f64| {
                    peepholes.as_ref().map_or(0.0, |p| p[(3 * k + which) * hidden + j] * c)
                };
                let (old_h, old_c) = (h.clone(), c.clone());
                for j in 0..hidden {
                    let sum = |gate: usize| of_w(gate, j) + of_r(&old_h, gate, j);
                    let i = sigmoid(clip(sum(input) + peep(0, j, old_c[j])));
                    let f = sigmoid(clip(sum(forget) + peep(2, j, old_c[j])));
                    c[j] = f * old_c[j] + i * clip(sum(cell)).tanh();
                    h[j] = sigmoid(clip(sum(output) + peep(1, j, c[j]))) * c[j].tanh();
                }
            } else {
                let old = h.clone();
                let resets: Vec<f64> =
                    (0..hidden).map(|j| sigmoid(clip(of_w(reset, j) + of_r(&old, reset, j)))).collect();
                let scaled: Vec<f64> = resets.iter().zip(&old).map(|(reset, h)| reset * h).collect();
                for j in 0..hidden {
                    let z = sigmoid(clip(of_w(update, j) + of_r(&old, update, j)));
                    let of_h = if linear { resets[j] * of_r(&old, new, j) } else { of_r(&scaled, new, j) };
                    h[j] = (1.0 - z) * clip(of_w(new, j) + of_h).tanh() + z * old[j];
                }
            }
            for j in 0..hidden {
                let at = if of.batch_first { (n * steps + t) * d + k } else { (t * d + k) * rows + n };
                outputs[0][at * hidden + j] = h[j];
            }
        }
        for j in 0..hidden {
            outputs[1][place(j)] = h[j];
            if gates == 4 {
                outputs[2][place(j)] = c[j];
            }
        }
    }
    outputs
}

fn run<K: Kernel>(kernel: &K, tensors: &[WordTensor], pool: Option<usize>) -> Vec<WordTensor> {
    let descs: Vec<_> = tensors.iter().map(|tensor| tensor.desc).collect();
    assert_eq!(descs.len(), kernel.num_inputs());
    let outputs = kernel.infer(&descs).unwrap();
    assert!(kernel.cost_ns(&descs, &outputs) >= 100);
    let scratch = kernel.scratch_bytes(&descs, &outputs);
    let pools = pools();
    let pool = pool.map(|i| &pools[i].1);
    call(tensors, &outputs, scratch, pool, |context, outputs| kernel.compute(context, outputs)).unwrap()
}

/// Compares with the formulas; bits are the same on all pools, and with packed weights.
fn check<K: Kernel + BuiltinOperation>(
    kernel: &K,
    of: &Sequence,
    sizes: Sizes,
    tensors: &[WordTensor],
    cell: (usize, bool, bool),
    everywhere: bool,
) {
    let (got, want) = (run(kernel, tensors, None), reference(of, sizes, tensors, cell));
    let what = format!("{sizes:?} {cell:?} {of:?}");
    assert_eq!(got.len(), want.len());
    for (number, (got, want)) in got.iter().zip(&want).enumerate() {
        assert_eq!(got.floats().len(), want.len(), "{what}");
        for (i, (got, want)) in got.floats().into_iter().zip(want).enumerate() {
            assert!((f64::from(got) - want).abs() < 1e-5, "{what}: output {number}, {i}: {got} for {want}");
        }
    }
    let same = |other: &[WordTensor], how: &str| {
        assert!(other.iter().zip(&got).all(|(a, b)| a.bits() == b.bits()), "{what}: other bits {how}");
    };
    let packed = prepared(kernel, tensors, &[1, 2]).unwrap();
    same(&run(&packed, tensors, None), "with packed weights");
    if everywhere {
        for pool in 0..pools().len() {
            same(&run(kernel, tensors, Some(pool)), "on a pool");
            same(&run(&packed, tensors, Some(pool)), "packed, on a pool");
        }
    }
}

const SIZES: [Sizes; 8] = [
    (1, 1, 1, 1),
    (5, 3, 7, 17),
    (4, 1, 40, 70),
    (3, 35, 5, 16),
    (2, 2, 0, 3),
    (0, 2, 3, 4),
    (101, 1, 3, 5),
    (7, 8, 33, 40),
];

/// Settings of every kind.
fn settings() -> Vec<Sequence> {
    let all = Sequence { bias: true, lengths: true, initial: true, ..PLAIN };
    vec![
        PLAIN,
        Sequence { order: WEIR_GATES_TORCH, bias: true, direction: WEIR_SEQUENCE_REVERSE, ..PLAIN },
        Sequence { direction: WEIR_SEQUENCE_BIDIRECTIONAL, clip: 0.4, ..all },
        Sequence { direction: WEIR_SEQUENCE_BIDIRECTIONAL, batch_first: true, ..all },
        Sequence { direction: WEIR_SEQUENCE_REVERSE, lengths: true, batch_first: true, ..PLAIN },
    ]
}

#[test]
fn lstm_sequences_are_their_formulas() {
    for (number, sizes) in SIZES.into_iter().enumerate() {
        for sequence in settings() {
            for peepholes in [false, true] {
                for isa in Isa::levels() {
                    let kernel = Builtin::on(LstmSequence { sequence, peepholes }, isa);
                    let tensors = operands(&sequence, sizes, 4, peepholes);
                    let everywhere = isa == Isa::best() && (number % 3 == 1 || number == 7);
                    check(&kernel, &sequence, sizes, &tensors, (4, false, peepholes), everywhere);
                }
            }
        }
    }
}

#[test]
fn gru_sequences_are_their_formulas() {
    for (number, sizes) in SIZES.into_iter().enumerate() {
        for sequence in settings() {
            for linear in [false, true] {
                for isa in Isa::levels() {
                    let kernel = Builtin::on(GruSequence { sequence, linear_before_reset: linear }, isa);
                    let tensors = operands(&sequence, sizes, 3, false);
                    let everywhere = isa == Isa::best() && (number % 3 == 1 || number == 7);
                    check(&kernel, &sequence, sizes, &tensors, (3, linear, false), everywhere);
                }
            }
        }
    }
}

/// Each step is one of a cell; only the order of sums differs.
#[test]
fn sequences_agree_with_cells() {
    let (steps, rows, inputs, hidden) = (6, 5, 19, 37);
    let sequence = Sequence { bias: true, initial: true, ..PLAIN };
    for gates in [3, 4] {
        let tensors = operands(&sequence, (steps, rows, inputs, hidden), gates, false);
        let (lstm, gru) = (
            Builtin::new(LstmSequence { sequence, peepholes: false }),
            Builtin::new(GruSequence { sequence, linear_before_reset: true }),
        );
        let all = if gates == 4 { run(&lstm, &tensors, None) } else { run(&gru, &tensors, None) };
        let (x, bias) = (tensors[0].floats(), tensors[3].floats());
        let matrix = |rows: usize, columns: usize, of: &[f32]| WordTensor::f32(&[rows as i64, columns as i64], of);
        let mut states: Vec<_> = tensors[4..].iter().map(|state| matrix(rows, hidden, &state.floats())).collect();
        for step in 0..steps {
            let mut now = vec![matrix(rows, inputs, &x[step * rows * inputs..][..rows * inputs])];
            now.extend(states);
            now.push(matrix(gates * hidden, inputs, &tensors[1].floats()));
            now.push(matrix(gates * hidden, hidden, &tensors[2].floats()));
            now.extend(bias.chunks(gates * hidden).map(|bias| WordTensor::f32(&[bias.len() as i64], bias)));
            states = match gates {
                4 => run(&Builtin::new(Lstm { order: WEIR_GATES_ONNX, bias: true }), &now, None),
                _ => {
                    let cell = Gru { order: WEIR_GATES_ONNX, bias: true, linear_before_reset: true };
                    run(&Builtin::new(cell), &now, None)
                }
            };
            let of_step = &all[0].floats()[step * rows * hidden..][..rows * hidden];
            for (got, want) in of_step.iter().zip(states[0].floats()) {
                assert!((got - want).abs() < 2e-6, "{gates} gates, step {step}: {got} for {want}");
            }
        }
        for (got, want) in all[1..].iter().zip(&states) {
            assert!(got.floats().iter().zip(want.floats()).all(|(got, want)| (got - want).abs() < 2e-6));
        }
    }
}

#[test]
fn shapes_may_be_open_and_what_does_not_fit_is_refused() {
    let f32s = |dims: &[i64]| Desc::new(dtype::F32, dims);
    let sequence = Sequence { bias: true, lengths: true, initial: true, ..PLAIN };
    let kernel = Builtin::new(LstmSequence { sequence, peepholes: true });
    let good = [
        f32s(&[-1, -1, 3]),
        f32s(&[1, 20, 3]),
        f32s(&[1, 20, 5]),
        f32s(&[1, 40]),
        Desc::new(dtype::S32, &[-1]),
        f32s(&[1, -1, 5]),
        f32s(&[1, 2, 5]),
        f32s(&[1, 15]),
    ];
    let outputs = kernel.infer(&good).unwrap();
    assert_eq!(outputs, [f32s(&[-1, 1, 2, 5]), f32s(&[1, 2, 5]), f32s(&[1, 2, 5])]);
    let cases = [
        (0, f32s(&[4, 3]), "input 0: expected f32[?,?,?], got f32[4,3]"),
        (1, f32s(&[2, 20, 3]), "input 1: expected f32[1,?,3], got f32[2,20,3]"),
        (1, f32s(&[1, 21, 3]), "input 1: expected f32[1,a multiple of 4,?], got f32[1,21,3]"),
        (2, f32s(&[1, 20, 6]), "input 2: expected f32[1,20,5], got f32[1,20,6]"),
        (3, f32s(&[1, 20]), "input 3: expected f32[1,40], got f32[1,20]"),
        (4, f32s(&[2]), "input 4: expected s32[2], got f32[2]"),
        (5, f32s(&[1, 3, 5]), "input 6: expected f32[1,3,5], got f32[1,2,5]"),
        (6, f32s(&[1, 2, 4]), "input 6: expected f32[1,2,5], got f32[1,2,4]"),
        (7, f32s(&[1, 20]), "input 7: expected f32[1,15], got f32[1,20]"),
    ];
    for (at, desc, message) in cases {
        let mut inputs = good;
        inputs[at] = desc;
        assert_eq!(refusal(&kernel, &inputs), message);
    }
    let gru = Builtin::new(GruSequence { sequence: PLAIN, linear_before_reset: false });
    let inputs = [f32s(&[4, 2, 3]), f32s(&[1, 15, 3]), f32s(&[1, 18, 5])];
    assert_eq!(refusal(&gru, &inputs), "input 2: expected f32[1,15,5], got f32[1,18,5]");
}
