//! The product against its definition in f64, with every instruction set that the machine has.
#![forbid(unsafe_code)]

use super::caches::Caches;
use super::gemm::{GemmProduct, GemmShape, compute_with};
use super::isa::Isa;
use super::micro::{MicroKernels, Scale};
use super::site::{Matrix, MatrixMut};
use crate::base::{Desc, dtype};
use crate::kernel::builtin::fixture::{WordTensor, call};

/// A product with its operands.
struct GemmCase {
    shape: GemmShape,
    a: WordTensor,
    b: WordTensor,
    bias: Option<WordTensor>,
    relu: bool,
}

impl GemmCase {
    /// A random product; `flags`: transpose A, transpose B, bias, relu.
    fn new(m: usize, n: usize, k: usize, flags: usize) -> GemmCase {
        let shape = GemmShape { m, n, k, transpose_a: flags & 1 != 0, transpose_b: flags & 2 != 0 };
        let dims = |transposed: bool, rows: usize, columns: usize| {
            if transposed { [columns as i64, rows as i64] } else { [rows as i64, columns as i64] }
        };
        GemmCase {
            shape,
            a: WordTensor::random(&dims(shape.transpose_a, m, k), 11),
            b: WordTensor::random(&dims(shape.transpose_b, k, n), 12),
            bias: (flags & 4 != 0).then(|| WordTensor::random(&[n as i64], 13)),
            relu: flags & 8 != 0,
        }
    }

    fn compute(&self, micro: MicroKernels) -> WordTensor {
        let inputs: Vec<_> = [&self.a, &self.b].into_iter().chain(&self.bias).cloned().collect();
        let c = Desc::new(dtype::F32, &[self.shape.m as i64, self.shape.n as i64]);
        let scratch = self.shape.scratch_bytes_with(&micro);
        let outputs = call(&inputs, &[c], scratch, None, |context, outputs| {
            let read = |i: usize| context.input(i).read::<f32>();
            let GemmShape { m, n, k, transpose_a, transpose_b } = self.shape;
            let matrix = |i: usize, rows: usize, columns: usize, transposed: bool| {
                let (rows, columns) = if transposed { (columns, rows) } else { (rows, columns) };
                Matrix::dense(read(i), rows, columns)
            };
            let product = GemmProduct {
                shape: self.shape,
                a: matrix(0, m, k, transpose_a),
                b: matrix(1, k, n, transpose_b),
                scale: Scale { alpha: 1.0, beta: 0.0 },
                bias: self.bias.is_some().then(|| read(2)),
                relu: self.relu,
            };
            compute_with(micro, &product, MatrixMut::output(outputs.only(), m, n), context)
        });
        outputs.unwrap().remove(0)
    }

    /// Each element by its definition, and the bound of its rounding error for any order of summation.
    fn reference(&self) -> Vec<(f64, f64)> {
        let GemmShape { m, n, k, transpose_a, transpose_b } = self.shape;
        let (a, b) = (self.a.floats(), self.b.floats());
        let bias = self.bias.as_ref().map(WordTensor::floats);
        let mut elements = Vec::new();
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let mut sum = bias.as_ref().map_or(0.0, |bias| f64::from(bias[j]));
            let mut size = sum.abs();
            for l in 0..k {
                let a = a[if transpose_a { l * m + i } else { i * k + l }];
                let b = b[if transpose_b { j * k + l } else { l * n + j }];
                sum += f64::from(a) * f64::from(b);
                size += f64::from(a * b).abs();
            }
            elements.push((if self.relu { sum.max(0.0) } else { sum }, size * (k + 2) as f64 * 6e-8));
        }
        elements
    }

    /// Compares the results of all instruction sets with the definition.
    fn check(&self) {
        let reference = self.reference();
        for micro in sets() {
            let c = self.compute(micro).floats();
            assert_eq!(c.len(), reference.len());
            for (at, (got, (want, bound))) in c.into_iter().zip(&reference).enumerate() {
                let error = (f64::from(got) - want).abs();
                assert!(error <= *bound, "{:?}, {} lanes, element {at}: {got} for {want}", self.shape, micro.lanes);
            }
        }
    }
}

/// Every set of micro-kernels of this machine, with rows of A read in place, and copied, and with small caches.
fn sets() -> Vec<MicroKernels> {
    let mut sets: Vec<_> = Isa::levels().map(MicroKernels::of).collect();
    sets.dedup_by_key(|set| set.lanes);
    sets.push(MicroKernels::plain());
    sets.into_iter()
        .flat_map(|set| {
            [false, true].map(|packs_a| {
                let mut set = set;
                set.packs_a = packs_a;
                if packs_a {
                    set.caches = Caches { l1: 4 << 10, l2: 16 << 10 };
                }
                set
            })
        })
        .collect()
}

#[test]
fn every_instruction_set_computes_the_product() {
    let sizes = [0, 1, 2, 5, 6, 7, 13, 16, 17, 49, 64, 65, 130];
    let mut number = 0;
    for m in sizes {
        for n in sizes {
            // The depth and the flags cycle, so that all combinations occur over the loop.
            number += 1;
            GemmCase::new(m, n, sizes[number * 5 % sizes.len()], number % 16).check();
        }
    }
}

#[test]
fn long_and_flat_products_are_right_too() {
    for (m, n, k) in
        [(1, 1, 5000), (2, 3, 513), (7, 70, 1025), (300, 5, 40), (1, 700, 30), (60, 300, 512), (50, 64, 96)]
    {
        for flags in [0, 3, 5, 14] {
            GemmCase::new(m, n, k, flags).check();
        }
    }
}

/// Rows `rows` of a row-major matrix.
fn part(matrix: &WordTensor, rows: std::ops::Range<usize>) -> WordTensor {
    let columns = matrix.desc.dims[1];
    let range = rows.start * columns as usize..rows.end * columns as usize;
    WordTensor::f32(&[rows.len() as i64, columns], &matrix.floats()[range])
}

#[test]
fn the_bits_of_a_row_do_not_depend_on_the_other_rows() {
    for micro in sets() {
        for (m, n, k) in [(70, 130, 40), (150, 33, 700), (61, 64, 64), (13, 300, 1024), (40, 1, 600)] {
            for flags in [0, 14] {
                let whole = GemmCase::new(m, n, k, flags);
                let c = whole.compute(micro);
                for rows in [0..1, 1..2, 3..9, 5..12, 0..m - 1, m / 2..m, m - 1..m] {
                    let shape = GemmShape { m: rows.len(), ..whole.shape };
                    let (a, b, bias) = (part(&whole.a, rows.clone()), whole.b.clone(), whole.bias.clone());
                    let some = GemmCase { shape, a, b, bias, relu: whole.relu }.compute(micro);
                    assert!(some.bits() == part(&c, rows.clone()).bits(), "{:?}: rows {rows:?}", whole.shape);
                }
            }
        }
    }
}

#[test]
fn the_bits_do_not_depend_on_how_the_operands_lie() {
    for micro in sets() {
        let (m, n, k) = (67, 131, 600);
        let plain = GemmCase::new(m, n, k, 4);
        let want = plain.compute(micro);
        let transposed = |matrix: &WordTensor| {
            let (rows, columns) = (matrix.desc.dims[0], matrix.desc.dims[1]);
            let values = matrix.floats();
            let turned: Vec<f32> = (0..columns)
                .flat_map(|j| (0..rows).map(move |i| (i * columns + j) as usize))
                .map(|at| values[at])
                .collect();
            WordTensor::f32(&[columns, rows], &turned)
        };
        for flags in 1..4 {
            let shape = GemmShape { transpose_a: flags & 1 != 0, transpose_b: flags & 2 != 0, ..plain.shape };
            let a = if shape.transpose_a { transposed(&plain.a) } else { plain.a.clone() };
            let b = if shape.transpose_b { transposed(&plain.b) } else { plain.b.clone() };
            let case = GemmCase { shape, a, b, bias: plain.bias.clone(), relu: false };
            assert!(case.compute(micro).bits() == want.bits(), "{shape:?}");
        }
    }
}
