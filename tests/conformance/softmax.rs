//! Softmax and its logarithm along axes of all lengths. Of bytes it is a chain: dequantize, softmax, quantize.

use crate::data::{Random, count, whole};
use crate::rule::{Rule, epsilon};
use crate::suite::{Place, Stage, Suite};
use crate::values::Values;
use weir_core::base::dtype;
use weir_core::kernel::builtin::Builtin;
use weir_core::ops::{Quantize, Softmax};

/// Shapes, and the axes.
const SHAPES: [(&[i64], &[i32]); 13] = [
    (&[16, 16], &[0, 1]),
    (&[255, 10], &[0, 1]),
    (&[2, 19, 17, 13], &[0, 1]),
    (&[1, 16, 2, 12], &[0, 1]),
    (&[2, 113], &[0, 1]),
    (&[128, 365], &[0, 1]),
    (&[96, 1000], &[0, 1]),
    (&[1, 1, 4097], &[2]),
    (&[4, 3, 5600], &[2]),
    (&[8, 3, 8320], &[2]),
    (&[2, 3, 9999], &[2]),
    (&[8192, 64], &[1]),
    (&[8576, 67], &[1]),
];

/// Calls `body` with the places of each row along an axis.
fn rows(shape: &[i64], axis: usize, mut body: impl FnMut(usize, Vec<usize>)) {
    let (outer, len, inner) = (count(&shape[..axis]), shape[axis] as usize, count(&shape[axis + 1..]));
    for row in 0..outer * inner {
        let first = row / inner * len * inner + row % inner;
        body(row, (0..len).map(|i| first + i * inner).collect());
    }
}

pub fn cases(suite: &mut Suite) {
    for (seed, &(shape, axes)) in SHAPES.iter().enumerate() {
        if !suite.takes(count(shape) * 10) {
            continue;
        }
        for (&axis, log) in axes.iter().flat_map(|axis| [(axis, false), (axis, true)]) {
            let kernel = Softmax { axis, log };
            for of in [dtype::F32, dtype::BF16, dtype::F16] {
                let x = data(of, shape, axis as usize, seed as u64);
                let reference = reference(&x, axis as usize, log);
                let tolerance = match of {
                    dtype::F32 if log => 5.96e-6,
                    dtype::F32 => 10.0 * epsilon(of),
                    _ => epsilon(of),
                };
                // The logarithm of 1, the only element, is 0.
                let zeros = if shape[axis as usize] == 1 && log { 100 } else { 30 };
                let rule = Rule { absolute: f64::from(f32::EPSILON), ..Rule::with(tolerance).zeros(zeros) };
                let name = format!("{shape:?} axis {axis} log {log} {}", dtype::name(of));
                suite.kernel(name, rule, reference, Builtin::new(kernel), vec![x]);
            }
            if shape[axis as usize] <= 16 && shape[axis as usize] > 2 {
                bytes(suite, kernel, shape, seed as u64);
            }
        }
    }
}

/// Rows whose greatest elements, of which there are several, are far from 0 on either side: who does not subtract them
/// overflows, or has only zeros.
fn data(of: u32, shape: &[i64], axis: usize, seed: u64) -> Values {
    let mut random = Random::new(seed);
    let mut x = vec![0.0; count(shape)];
    let spread = if of == dtype::F32 { 20 } else { 8 };
    rows(shape, axis, |row, places| {
        let (below, greatest) = (row % 2 == 1, 3.min(places.len()));
        for &place in &places {
            let distance = random.whole(3, spread) + random.unit();
            x[place] = if below { -91.0 - distance } else { 88.0 - distance };
        }
        for (i, top) in (0..greatest).zip([89.0, 90.0, 88.0]) {
            let place = places[(row + i * places.len() / greatest) % places.len()];
            x[place] = if below { -top } else { top };
        }
    });
    Values::nearest(of, shape, x)
}

fn reference(x: &Values, axis: usize, log: bool) -> Vec<f64> {
    let mut y = vec![0.0; x.x.len()];
    rows(&x.dims, axis, |_, places| {
        let greatest = places.iter().map(|&i| x.x[i]).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = places.iter().map(|&i| (x.x[i] - greatest).exp()).sum();
        for &i in &places {
            let x = x.x[i] - greatest;
            y[i] = if log { x - sum.ln() } else { x.exp() / sum };
        }
    });
    y
}

fn bytes(suite: &mut Suite, kernel: Softmax, shape: &[i64], seed: u64) {
    let scale = |x: f64| Values::new(dtype::F32, &[1], vec![x]);
    for (of, range) in [(dtype::S8, (-16, 16)), (dtype::U8, (0, 32))] {
        if kernel.log && of == dtype::U8 {
            // All logarithms are negative.
            continue;
        }
        let x = whole(of, shape, range, seed);
        let (before, after) = (0.125, if kernel.log { 0.25 } else { 2f64.powi(-10) });
        let floats = Values::nearest(dtype::F32, shape, x.x.iter().map(|x| x * before));
        // The softmax is rounded before it is divided: a tie of either is one.
        let reference = self::reference(&floats, kernel.axis as usize, kernel.log).iter().map(|y| y / after).collect();
        let way = |dequantize, dtype| Builtin::new(Quantize { dequantize, dtype, zero_point: false, axis: -1 });
        let stages = vec![
            Stage::new(way(true, dtype::F32), vec![x, scale(before)]),
            Stage::new(Builtin::new(kernel), vec![]),
            Stage::new(way(false, of), vec![scale(after)]),
        ];
        let name = format!("{shape:?} axis {} log {} {}", kernel.axis, kernel.log, dtype::name(of));
        suite.stages(name, Rule::EXACT, reference, Place::Out, stages);
    }
}
