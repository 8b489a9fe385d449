//! Recurrent cells.

use crate::create::*;
use crate::kit::{Distance, Tensor, check_outputs};
use weir_core::base::dtype;
use weir_core::ops::*;

/// x, states, W, R and the biases.
fn inputs(gates: i64, states: usize, sizes: [i64; 3], bias: bool) -> Vec<Tensor> {
    let [rows, inputs, hidden] = sizes;
    let tensor = |dims: &[i64], seed| Tensor::random(dtype::F32, dims, seed);
    let mut all = vec![tensor(&[rows, inputs], 1)];
    (0..states).for_each(|i| all.push(tensor(&[rows, hidden], 2 + i as u64)));
    all.extend([tensor(&[gates * hidden, inputs], 4), tensor(&[gates * hidden, hidden], 5)]);
    if bias {
        all.extend([tensor(&[gates * hidden], 6), tensor(&[gates * hidden], 7)]);
    }
    all
}

const SIZES: [[i64; 3]; 5] = [[1, 8, 8], [3, 5, 7], [2, 40, 33], [0, 3, 4], [2, 0, 3]];

#[test]
fn lstm() {
    for gate_order in [0, 1] {
        for bias in [false, true] {
            for sizes in SIZES {
                let desc = weir_lstm_desc {
                    struct_size: size_of::<weir_lstm_desc>(),
                    flags: bias.into(),
                    gate_order,
                    reserved: 0,
                };
                let inputs = inputs(4, 2, sizes, bias);
                check_outputs("lstm", weir_kernel_create_lstm, &desc, &inputs, 2, Distance::Near(1e-5));
            }
        }
    }
}

#[test]
fn gru() {
    for gate_order in [0, 1] {
        for flags in 0..4 {
            for sizes in SIZES {
                let desc = weir_gru_desc { struct_size: size_of::<weir_gru_desc>(), flags, gate_order, reserved: 0 };
                let inputs = inputs(3, 1, sizes, flags & 1 != 0);
                check_outputs("gru", weir_kernel_create_gru, &desc, &inputs, 1, Distance::Near(1e-5));
            }
        }
    }
}
