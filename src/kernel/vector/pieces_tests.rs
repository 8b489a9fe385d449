//! Products in pieces of any size, order and slot: the same bits as in one piece, and no scratch memory except the
//! slot's.

use super::finish::ProductEpilogue;
use super::gemm::{self, GemmBatch, GemmShape, OperandB, Operands};
use super::int8::{self, Offset, Rule};
use super::isa::Isa;
use super::micro::{MicroKernels, Scale};
use super::site::{Matrix, MatrixMut, Site};
use crate::base::Result;
use crate::sync::Claim;
use crate::threadpool::Span;
use std::cell::UnsafeCell;

const SLOTS: usize = 3;
/// A NaN, and a value that no sum could need.
const GARBAGE: u64 = 0xFFFF_FFF7_FFFF_FFF7;
const GUARDS: usize = 64;

/// Runs a region in the calling thread, piece by piece.
pub(super) struct Cutter {
    /// 0 = in one piece.
    seed: u64,
    words: usize,
    slots: Vec<UnsafeCell<Vec<u64>>>,
}

// SAFETY: used by one thread.
unsafe impl Sync for Cutter {}

fn random(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % n
}

impl Cutter {
    pub(super) fn new(seed: u64, bytes: usize) -> Cutter {
        let words = bytes.div_ceil(64) * 8;
        // One of them is aligned to 64 bytes.
        let slot = || UnsafeCell::new(vec![GARBAGE; words + GUARDS + 8]);
        Cutter { seed, words, slots: (0..SLOTS).map(|_| slot()).collect() }
    }

    pub(super) fn check_guards(self) {
        for slot in self.slots {
            let slot = slot.into_inner();
            let first = slot.as_ptr().align_offset(64);
            assert!(slot[first + self.words..].iter().all(|&word| word == GARBAGE), "beyond the scratch memory");
        }
    }
}

// SAFETY: as said at `claim`, and slots have vectors of their own.
unsafe impl Site for Cutter {
    fn parallel_for(&self, span: &Span, body: &(dyn Fn(Claim) -> Result<()> + Sync)) -> Result<()> {
        // SAFETY: here and below each item is claimed once, and one claim exists at a time.
        let claim = |begin, end, slot| unsafe { Claim::new(begin, end, slot) };
        if self.seed == 0 {
            return body(claim(0, span.items, 0));
        }
        let mut state = self.seed;
        // Homes are traversed in small steps, by any slot, as by thieves and late helpers.
        let cuts = random(&mut state, 4) + 1;
        let mut homes: Vec<_> = (0..cuts).map(|i| (span.items * i / cuts, span.items * (i + 1) / cuts)).collect();
        while let Some(at) = (!homes.is_empty()).then(|| random(&mut state, homes.len())) {
            let slot = random(&mut state, SLOTS);
            // Some consecutive pieces, so that one continues where the last one ended.
            for _ in 0..=random(&mut state, 4) {
                let (begin, end) = homes[at];
                let next = end.min(begin + random(&mut state, 5) + 1);
                body(claim(begin, next, slot))?;
                homes[at].0 = next;
            }
            homes.retain(|(begin, end)| begin < end);
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.words * size_of::<u64>()
    }

    fn scratch(&self, slot: usize) -> *mut u8 {
        // SAFETY: one claim exists at a time, so nothing else uses the vector.
        let words = unsafe { &mut *self.slots[slot].get() };
        let first = words.as_ptr().align_offset(64);
        words[first..].as_mut_ptr().cast()
    }
}

fn floats(len: usize, mut state: u64) -> Vec<f32> {
    (0..len).map(|_| random(&mut state, 2001) as f32 / 1000.0 - 1.0).collect()
}

fn bytes(len: usize, mut state: u64) -> Vec<u8> {
    (0..len).map(|_| random(&mut state, 256) as u8).collect()
}

/// `count` products, each with a B of its own.
fn batch(micro: MicroKernels, shape: GemmShape, count: usize, seed: u64) -> Vec<u32> {
    let GemmShape { m, n, k, transpose_a, transpose_b } = shape;
    let (a, b) = (floats(count * m * k, 1), floats(count * k * n, 2));
    let mut c = vec![f32::NAN; count * m * n];
    let sides =
        |transposed: bool, rows: usize, columns: usize| if transposed { (columns, rows) } else { (rows, columns) };
    let cutter = Cutter::new(seed, shape.scratch_bytes_with(&micro).max(shape.batch_scratch_bytes(count)));
    let all = MatrixMut::dense(&mut c, count * m, n);
    let operands = |number: usize| {
        let ((rows_a, columns_a), (rows_b, columns_b)) = (sides(transpose_a, m, k), sides(transpose_b, k, n));
        Operands {
            a: Matrix::dense(&a[number * m * k..], rows_a, columns_a),
            b: OperandB::Matrix(Matrix::dense(&b[number * k * n..], rows_b, columns_b)),
            finish: ProductEpilogue::default(),
        }
    };
    let batch = GemmBatch { shape, count, scale: Scale { alpha: 1.0, beta: 0.0 }, operands: &operands };
    gemm::compute_batch_with(micro, &batch, all, &cutter).unwrap();
    cutter.check_guards();
    c.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn floats_do_not_depend_on_the_pieces() {
    let shapes = [
        // Kept panels of one K block and of several, panels too large to be kept, none at all, and few rows at the end.
        (300, 200, 100, 1),
        (130, 70, 1500, 1),
        (70, 100, 4000, 1),
        (50, 30, 20, 1),
        (57, 260, 600, 1),
        (40, 90, 700, 3),
    ];
    for micro in Isa::levels().map(MicroKernels::of) {
        for (m, n, k, count) in shapes {
            for flags in 0..4 {
                let shape = GemmShape { m, n, k, transpose_a: flags & 1 != 0, transpose_b: flags & 2 != 0 };
                let whole = batch(micro, shape, count, 0);
                for seed in 1..5 {
                    assert!(batch(micro, shape, count, seed) == whole, "{count} of {shape:?}, seed {seed}");
                }
            }
        }
    }
}

fn sums(isa: Isa, (m, n, k): (usize, usize, usize), flags: usize, seed: u64) -> Vec<i32> {
    let (transpose_a, transpose_b) = (flags & 1 != 0, flags & 2 != 0);
    let (a, b) = (bytes(m * k, 1), bytes(k * n, 2));
    let side =
        |transposed: bool, rows: usize, columns: usize| if transposed { (columns, rows) } else { (rows, columns) };
    let ((rows_a, columns_a), (rows_b, columns_b)) = (side(transpose_a, m, k), side(transpose_b, k, n));
    let product = int8::Int8Product {
        m,
        n,
        k,
        a: Matrix::dense(&a, rows_a, columns_a),
        transpose_a,
        signed_a: flags & 4 != 0,
        b: Matrix::dense(&b, rows_b, columns_b),
        transpose_b,
        packed_b: None,
        zero_a: if flags & 8 != 0 { 3 } else { 0 },
        zero_b: if flags & 8 != 0 { -5 } else { 0 },
        rule: Rule { alpha: 1.0, beta: 0.0, offset: Offset::Fixed(0) },
    };
    let mut c = vec![0x7171_7171; m * n];
    let cutter = Cutter::new(seed, product.scratch_bytes(isa));
    int8::compute(isa, &product, MatrixMut::dense(&mut c, m, n), &cutter).unwrap();
    cutter.check_guards();
    c
}

#[test]
fn bytes_do_not_depend_on_the_pieces() {
    for isa in Isa::available() {
        for shape in [
            (300, 200, 100),
            (130, 150, 1500),
            (100, 70, 9000),
            (60, 30, 4096),
            (57, 260, 601),
            (3, 300, 77),
            (300, 3, 70),
        ] {
            for flags in 0..16 {
                let whole = sums(isa, shape, flags, 0);
                for seed in 1..3 {
                    assert!(
                        sums(isa, shape, flags, seed) == whole,
                        "{} {shape:?} {flags:04b}, seed {seed}",
                        isa.name().unwrap()
                    );
                }
            }
        }
    }
}
