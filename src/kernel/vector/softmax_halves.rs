//! Softmax of 16-bit floats: that of f32 for rows that fit into a block. Longer rows and columns are converted to f32 a
//! block at a time, in each of three passes, so that no length needs extra memory: the exponentials are computed twice.
//! Each result is rounded once.

use super::columns::{Stripe, StripeRows, WIDTH};
use super::convert::{self, Stored};
use super::elements::ElementPair;
use super::isa::Isa;
use super::levels::{self, LevelLoop};
use super::softmax::{self, add_to, greatest};
use super::softmax_terms::{exp_of_difference, logarithm, scale};

/// Elements of a block, and partial sums of a row.
const BLOCK: usize = 1024;
const LANES: usize = 16;

/// exp(x - max) * 2^64, and the sums with it.
struct Exponentials<'a> {
    x: &'a mut [f32],
    /// One for all elements, or one for each.
    max: &'a [f32],
    sums: &'a mut [f64],
}

impl LevelLoop for Exponentials<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        if let &[max] = self.max {
            for x in self.x.iter_mut() {
                // SAFETY: plain floats need no instructions that a processor may lack.
                *x = unsafe { exp_of_difference(*x, max) };
            }
        } else {
            for (x, &max) in self.x.iter_mut().zip(self.max) {
                // SAFETY: as above.
                *x = unsafe { exp_of_difference(*x, max) };
            }
        }
        for x in self.x.chunks(self.sums.len()) {
            add_to(self.sums, x);
        }
    }
}

/// Computes results from x or its exponential, and the row's or each column's totals.
fn finish(isa: Isa, log: bool, x: &mut [f32], max: &[f32], last: &[f32]) {
    if !log {
        levels::on(isa, Exponentials { x: &mut *x, max, sums: &mut [0.0; WIDTH] });
    }
    levels::on(isa, SoftmaxFinish { log, x, max, last });
}

/// The exponential times `last`, or x minus the maximum and `last`.
struct SoftmaxFinish<'a> {
    log: bool,
    x: &'a mut [f32],
    max: &'a [f32],
    last: &'a [f32],
}

impl LevelLoop for SoftmaxFinish<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let x = self.x.iter_mut();
        match (self.log, self.max, self.last) {
            (true, &[max], &[last]) => x.for_each(|x| *x = *x - max - last),
            (true, max, last) => x.zip(max.iter().zip(last)).for_each(|(x, (max, last))| *x = *x - max - last),
            (false, _, &[last]) => x.for_each(|x| *x *= last),
            (false, _, last) => x.zip(last).for_each(|(x, last)| *x *= last),
        }
    }
}

/// As `softmax::rows`.
pub fn rows<T: Stored>(isa: Isa, log: bool, mut pair: ElementPair<'_, T, T>, len: usize) {
    let mut buffer = [0.0; BLOCK];
    if len <= BLOCK {
        return pair.for_chunks(BLOCK / len * len, |_, mut some| {
            let floats = &mut buffer[..some.num_elements()];
            convert::widen(isa, some.x(), floats);
            softmax::rows(isa, log, ElementPair::in_place(floats), len);
            convert::narrow(isa, floats, some.y());
        });
    }
    pair.for_chunks(len, |_, mut row| {
        let mut max = f32::NEG_INFINITY;
        for x in row.x().chunks(BLOCK) {
            let floats = &mut buffer[..x.len()];
            convert::widen(isa, x, floats);
            let of_block = greatest(floats);
            max = if of_block > max || of_block.is_nan() { of_block } else { max };
        }
        let mut sums = [0.0; LANES];
        for x in row.x().chunks(BLOCK) {
            let floats = &mut buffer[..x.len()];
            convert::widen(isa, x, floats);
            levels::on(isa, Exponentials { x: floats, max: &[max], sums: &mut sums });
        }
        let sum = sums.iter().sum();
        let last = if log { logarithm(max, sum) } else { scale(max, sum) };
        row.for_chunks(BLOCK, |_, mut block| {
            let floats = &mut buffer[..block.num_elements()];
            convert::widen(isa, block.x(), floats);
            finish(isa, log, floats, &[max], &[last]);
            convert::narrow(isa, floats, block.y());
        });
    });
}

/// As `softmax::columns`.
pub fn columns<T: Stored>(isa: Isa, log: bool, at: Stripe, rows: &mut StripeRows<'_, T>) {
    let width = at.width;
    let (mut max, mut sums, mut last) = ([f32::NEG_INFINITY; WIDTH], [0.0; WIDTH], [0.0; WIDTH]);
    let mut buffer = [0.0; WIDTH];
    let floats = &mut buffer[..width];
    for i in 0..at.len {
        convert::widen(isa, rows.row(i).x(), floats);
        for (max, &mut x) in max.iter_mut().zip(&mut *floats) {
            *max = if x > *max || (x.is_nan() && !max.is_nan()) { x } else { *max };
        }
    }
    // A single column is not a row.
    let max = &max[..width.max(2)];
    for i in 0..at.len {
        convert::widen(isa, rows.row(i).x(), floats);
        levels::on(isa, Exponentials { x: &mut *floats, max, sums: &mut sums });
    }
    for (last, (&max, &sum)) in last.iter_mut().zip(max.iter().zip(&sums)) {
        *last = if log { logarithm(max, sum) } else { scale(max, sum) };
    }
    for i in 0..at.len {
        convert::widen(isa, rows.row(i).x(), floats);
        finish(isa, log, floats, max, &last);
        convert::narrow(isa, floats, rows.row(i).y());
    }
}
