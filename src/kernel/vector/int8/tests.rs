//! int8 products against their definition in wide integers, with every instruction set of the machine.

use super::finish::{Offset, Rule};
use super::{Int8Product, compute};
use crate::base::Ref;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::site::{Matrix, MatrixMut};
use crate::kernel::vector::standalone;
use crate::threadpool::{ThreadPool, ThreadPoolOptions};

/// The initial value of C, and of its guards.
const GUARD: i32 = 0x7171_7171;

fn random(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum CaseOffset {
    Fixed(i32),
    Row,
    Column,
}

/// A product with its operands. Strides are `gap` more than the minimum.
#[derive(Clone, Debug)]
struct Int8Case {
    m: usize,
    n: usize,
    k: usize,
    a: Vec<u8>,
    b: Vec<u8>,
    c: Vec<i32>,
    offsets: Vec<i32>,
    gap: usize,
    transpose_a: bool,
    transpose_b: bool,
    signed_a: bool,
    zero_a: i32,
    zero_b: i32,
    alpha: f32,
    beta: f32,
    add: CaseOffset,
}

impl Int8Case {
    fn new(m: usize, n: usize, k: usize) -> Int8Case {
        let mut case = Int8Case {
            m,
            n,
            k,
            a: Vec::new(),
            b: Vec::new(),
            c: Vec::new(),
            offsets: (0..m.max(n)).map(|i| 1000 - 37 * i as i32).collect(),
            gap: 0,
            transpose_a: false,
            transpose_b: false,
            signed_a: false,
            zero_a: 0,
            zero_b: 0,
            alpha: 1.0,
            beta: 0.0,
            add: CaseOffset::Fixed(0),
        };
        case.fill();
        case
    }

    /// Random operands of the current shape.
    fn fill(&mut self) {
        self.a = random(self.rows_of_a() * self.lda(), 1);
        self.b = random(self.rows_of_b() * self.ldb(), 2);
        self.c = (0..self.m * self.ldc()).map(|i| (i as i32 * 7919) % 100_003 - 50_000).collect();
    }

    fn with(mut self, change: impl FnOnce(&mut Int8Case)) -> Int8Case {
        change(&mut self);
        self.fill();
        self
    }

    fn rows_of_a(&self) -> usize {
        if self.transpose_a { self.k } else { self.m }
    }

    fn rows_of_b(&self) -> usize {
        if self.transpose_b { self.n } else { self.k }
    }

    fn lda(&self) -> usize {
        (if self.transpose_a { self.m } else { self.k }) + self.gap
    }

    fn ldb(&self) -> usize {
        (if self.transpose_b { self.k } else { self.n }) + self.gap
    }

    fn ldc(&self) -> usize {
        self.n + self.gap
    }

    /// The resulting C, with the gaps between its rows.
    fn compute(&self, isa: Isa, pool: Option<&Ref<ThreadPool>>) -> Vec<i32> {
        let mut c = self.c.clone();
        if self.beta == 0.0 {
            c.fill(GUARD);
        }
        // SAFETY: C has this shape and stride, and is exclusive.
        let out = unsafe { MatrixMut::new(c.as_mut_ptr(), self.m, self.n, self.ldc()) };
        standalone::bytes_with(isa, pool, &self.product(), out).unwrap();
        c
    }

    fn product(&self) -> Int8Product<'_> {
        let offset = match self.add {
            CaseOffset::Fixed(value) => Offset::Fixed(value),
            CaseOffset::Row => Offset::Row(&self.offsets[..self.n]),
            CaseOffset::Column => Offset::Column(&self.offsets[..self.m]),
        };
        // SAFETY: the operands have these shapes and strides.
        let (a, b) = unsafe {
            (
                Matrix::new(self.a.as_ptr(), self.rows_of_a(), self.lda() - self.gap, self.lda()),
                Matrix::new(self.b.as_ptr(), self.rows_of_b(), self.ldb() - self.gap, self.ldb()),
            )
        };
        Int8Product {
            m: self.m,
            n: self.n,
            k: self.k,
            a,
            transpose_a: self.transpose_a,
            signed_a: self.signed_a,
            b,
            transpose_b: self.transpose_b,
            packed_b: None,
            zero_a: self.zero_a,
            zero_b: self.zero_b,
            rule: Rule { alpha: self.alpha, beta: self.beta, offset },
        }
    }

    fn reference(&self) -> Vec<i32> {
        let mut c = self.c.clone();
        if self.beta == 0.0 {
            c.fill(GUARD);
        }
        let number = |a: u8, signed: bool| if signed { i32::from(a as i8) } else { i32::from(a) };
        // Along K, without zero points.
        let row_of_a = |i: usize| -> Vec<i32> {
            let at = |l: usize| if self.transpose_a { l * self.lda() + i } else { i * self.lda() + l };
            (0..self.k).map(|l| number(self.a[at(l)], self.signed_a) - self.zero_a).collect()
        };
        let column_of_b = |j: usize| -> Vec<i32> {
            let at = |l: usize| if self.transpose_b { j * self.ldb() + l } else { l * self.ldb() + j };
            (0..self.k).map(|l| number(self.b[at(l)], true) - self.zero_b).collect()
        };
        let columns_of_b: Vec<_> = (0..self.n).map(column_of_b).collect();
        for i in 0..self.m {
            let a = row_of_a(i);
            for (j, b) in columns_of_b.iter().enumerate() {
                // The fastest code without optimisation.
                let (mut sum, mut l) = (0i64, 0);
                while l < self.k {
                    sum += i64::from(a[l] * b[l]);
                    l += 1;
                }
                let sum = i128::from(sum);
                let add = match self.add {
                    CaseOffset::Fixed(value) => value,
                    CaseOffset::Row => self.offsets[j],
                    CaseOffset::Column => self.offsets[i],
                };
                let at = i * self.ldc() + j;
                let whole = [0.0, 1.0];
                c[at] = if whole.contains(&self.alpha) && whole.contains(&self.beta) {
                    let (alpha, beta) = (self.alpha as i128, self.beta as i128);
                    let old = if beta == 0 { 0 } else { i128::from(self.c[at]) };
                    (alpha * sum + beta * old + i128::from(add)).clamp(i32::MIN.into(), i32::MAX.into()) as i32
                } else {
                    let old = if self.beta == 0.0 { 0.0 } else { f64::from(self.beta) * f64::from(self.c[at]) };
                    let value = f64::from(self.alpha) * sum as f64 + old + f64::from(add);
                    value.round_ties_even() as i32
                };
            }
        }
        c
    }

    /// Compares the results of all instruction sets with the definition.
    fn check(&self) {
        let want = self.reference();
        for isa in Isa::available() {
            let got = self.compute(isa, None);
            let wrong = got.iter().zip(&want).position(|(got, want)| got != want);
            if let Some(at) = wrong {
                let Int8Case { m, n, k, .. } = *self;
                let (row, column) = (at / self.ldc(), at % self.ldc());
                panic!(
                    "{} {m} x {n} x {k}, gap {}, A {} {}, B {}, zeros {} {}, alpha {}, beta {}, {:?}: \
                     C[{row}, {column}] is {}, expected {}",
                    isa.name().unwrap(),
                    self.gap,
                    if self.transpose_a { "transposed" } else { "straight" },
                    if self.signed_a { "signed" } else { "unsigned" },
                    if self.transpose_b { "transposed" } else { "straight" },
                    self.zero_a,
                    self.zero_b,
                    self.alpha,
                    self.beta,
                    self.add,
                    got[at],
                    want[at],
                );
            }
        }
    }
}

/// The shapes that conformance suites use, M x N x K.
const SHAPES: &[(usize, usize, usize)] = &[
    (1, 1, 1),
    (10, 1, 30),
    (1, 20, 30),
    (10, 20, 1),
    (1, 1, 300),
    (1, 200, 1),
    (100, 1, 1),
    (10, 20, 30),
    (2, 47, 30),
    (10, 16, 30),
    (30, 20, 10),
    (31, 21, 11),
    (100, 100, 2),
    (2, 100, 100),
    (2, 2, 10_000),
    (2000, 1, 1000),
    (1, 3000, 2000),
    (2, 48, 83),
    (2, 48, 200),
    (2, 16, 251),
    (2, 16, 256),
    (5, 65, 17),
    (26, 65, 17),
    (97, 130, 70),
    (0, 5, 5),
    (5, 0, 5),
    (5, 5, 0),
    (0, 0, 0),
];

#[test]
fn the_products_of_four_numbers_do_not_saturate() {
    for isa in Isa::available() {
        let mut case = Int8Case::new(1, 1, 2);
        (case.a, case.b) = (vec![255; 2], vec![127; 2]);
        assert_eq!(case.compute(isa, None), [64_770], "{}", isa.name().unwrap());
        let mut case = Int8Case::new(13, 33, 4);
        (case.a, case.b) = (vec![255; 13 * 4], vec![128; 4 * 33]);
        assert_eq!(case.compute(isa, None), [-130_560; 13 * 33], "{}", isa.name().unwrap());
    }
}

#[test]
fn small_numbers_alone_and_almost_alone_are_exact() {
    let pool =
        ThreadPool::builtin(&ThreadPoolOptions { num_threads: Some(3), ..ThreadPoolOptions::default() }).unwrap();
    // Bounds of A and B, and whether no two products exceed 16 bits.
    let ends: [(&[u8], &[u8], bool); 6] = [
        (&[0, 127], &[127, 128], true),
        (&[0, 255], &[64, 192], true),
        (&[127], &[128], true),
        (&[255], &[192], true),
        (&[128], &[65], false),
        (&[255], &[127, 128], false),
    ];
    for (m, n, k) in [(9, 40, 61), (60, 70, 130), (14, 20, 2100)] {
        for (a, b, low) in ends {
            for flags in 0..4 {
                let mut case = Int8Case::new(m, n, k).with(|case| {
                    (case.transpose_a, case.transpose_b, case.gap) = (flags & 1 != 0, flags & 2 != 0, flags);
                    (case.zero_a, case.zero_b) = (flags as i32 * 50, flags as i32 - 2);
                });
                case.a.iter_mut().for_each(|byte| *byte = a[usize::from(*byte) % a.len()]);
                case.b.iter_mut().for_each(|byte| *byte = b[usize::from(*byte) % b.len()]);
                assert_eq!(case.product().is_low(), low, "{a:?} {b:?}");
                case.check();
                for isa in Isa::available() {
                    assert!(case.compute(isa, Some(&pool)) == case.compute(isa, None), "{}", isa.name().unwrap());
                }
                // The last two neighbours of the last row, set to the worst values.
                let (row, lda, ldb) = (m - 1, case.lda(), case.ldb());
                for l in k - 2..k {
                    case.a[if case.transpose_a { l * lda + row } else { row * lda + l }] = 255;
                    case.b[if case.transpose_b { l } else { l * ldb }] = 127;
                }
                assert!(!case.product().is_low());
                case.check();
            }
        }
    }
    // Packing makes signed numbers 128 greater.
    let mut signed = Int8Case::new(20, 20, 40).with(|case| case.signed_a = true);
    signed.a.fill(255);
    assert!(signed.product().is_low());
    signed.check();
    signed.a[799] = 0;
    assert!(!signed.product().is_low());
    signed.check();
}

#[test]
fn every_instruction_set_is_exact_over_the_whole_range() {
    for k in [1, 2, 3, 4, 63, 64, 65, 1024] {
        for (m, n) in [(1, 1), (13, 35), (50, 70)] {
            for flags in 0..8 {
                let case = Int8Case::new(m, n, k).with(|case| {
                    (case.transpose_a, case.transpose_b, case.signed_a) =
                        (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
                });
                case.check();
            }
        }
    }
}

#[test]
fn every_shape_transpose_and_stride() {
    for (number, &(m, n, k)) in SHAPES.iter().enumerate() {
        for flags in 0..4 {
            let case = Int8Case::new(m, n, k).with(|case| {
                (case.transpose_a, case.transpose_b) = (flags & 1 != 0, flags & 2 != 0);
                case.gap = number % 3 * 30;
                (case.zero_a, case.zero_b) = (number as i32 % 2 * 200, number as i32 % 3 * -64);
            });
            case.check();
        }
    }
    // A small number of rows with typical layer weights.
    for (m, k) in [(4, 512), (5, 1536), (7, 512), (8, 512)] {
        Int8Case::new(m, 512, k).with(|case| case.transpose_b = true).check();
    }
}

#[test]
fn every_rule_on_every_kind_of_offset() {
    let zeros = [(0, 0), (1, 0), (0, -1), (255, -128), (128, 127)];
    for (alpha, beta) in
        [(1.0, 0.0), (1.0, 1.0), (0.0, 0.0), (0.0, 1.0), (2.0, 1.5), (-0.5, 0.0), (0.25, -1.0), (0.0, 0.5)]
    {
        for add in [CaseOffset::Fixed(0), CaseOffset::Fixed(-7), CaseOffset::Row, CaseOffset::Column] {
            for (zero_a, zero_b) in zeros {
                for signed_a in [false, true] {
                    let case = Int8Case::new(29, 67, 37).with(|case| {
                        (case.alpha, case.beta, case.add, case.gap) = (alpha, beta, add, 3);
                        (case.zero_a, case.zero_b) = (if signed_a { zero_a - 128 } else { zero_a }, zero_b);
                        case.signed_a = signed_a;
                    });
                    case.check();
                }
            }
        }
    }
}

#[test]
fn results_saturate_at_both_ends() {
    for beta in [1.0, 1.5] {
        for sign in [1, -1] {
            for isa in Isa::available() {
                let mut case = Int8Case::new(3, 40, 64);
                case.beta = beta;
                case.a.fill(255);
                case.b.fill(if sign > 0 { 127 } else { 128 });
                case.c.fill(sign * (i32::MAX - 100));
                case.add = CaseOffset::Fixed(sign * 50);
                let want = if sign > 0 { i32::MAX } else { i32::MIN };
                assert!(case.compute(isa, None).iter().all(|&c| c == want), "{}, beta {beta}", isa.name().unwrap());
            }
        }
    }
}

#[test]
fn sums_that_do_not_fit_in_32_bits_saturate_and_never_wrap() {
    for isa in Isa::available() {
        // 70000 * 255 * 127 = 2266950000.
        let mut case = Int8Case::new(2, 3, 70_000);
        case.a.fill(255);
        case.b.fill(127);
        assert_eq!(case.compute(isa, None), [i32::MAX; 6], "{}", isa.name().unwrap());
        case.add = CaseOffset::Fixed(i32::MIN);
        assert_eq!(case.compute(isa, None), [119_466_352; 6], "{}", isa.name().unwrap());
        case.b.fill(128);
        case.add = CaseOffset::Fixed(0);
        assert_eq!(case.compute(isa, None), [i32::MIN; 6], "{}", isa.name().unwrap());
        // The widest differences: 255 * 255 = 65025 each.
        let mut wide = Int8Case::new(1, 1, 40_000);
        wide.a.fill(255);
        wide.b.fill(127);
        (wide.zero_b, wide.add) = (-128, CaseOffset::Fixed(i32::MIN));
        assert_eq!(
            wide.compute(isa, None),
            [(40_000 * 65_025i64 + i64::from(i32::MIN)) as i32],
            "{}",
            isa.name().unwrap()
        );
    }
}

/// Several K blocks on each instruction set, or blocks of rows or columns, or both, with K blocks packed together and
/// one by one.
const SEVERAL: &[(usize, usize, usize)] = &[
    (3, 5, 4097),
    (60, 70, 2500),
    (7, 33, 12_289),
    (210, 1100, 40),
    (20, 600, 1024),
    (200, 40, 1100),
    (195, 9, 8200),
    (20, 16, 33_000),
];

#[test]
fn several_stretches_and_blocks_are_put_together() {
    for &(m, n, k) in SEVERAL {
        for flags in 0..4 {
            let case = Int8Case::new(m, n, k).with(|case| {
                (case.transpose_a, case.transpose_b) = (flags & 1 != 0, flags & 2 != 0);
                (case.zero_a, case.zero_b) = (17, -3);
                (case.alpha, case.beta) = [(1.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.5, 2.0)][flags];
                case.signed_a = flags == 1;
            });
            case.check();
        }
    }
}

#[test]
fn every_pool_gives_the_same() {
    let builtin = |threads| {
        ThreadPool::builtin(&ThreadPoolOptions { num_threads: Some(threads), ..ThreadPoolOptions::default() }).unwrap()
    };
    let mut pools: Vec<_> = [1, 2, 3, 7].into_iter().map(builtin).collect();
    pools.push(ThreadPool::inline());
    // Fewer without optimisation.
    #[cfg(not(loom))]
    let seeds = if cfg!(debug_assertions) { 4 } else { 20 };
    #[cfg(not(loom))]
    pools.extend((0..seeds).map(|seed| ThreadPool::seeded(seed, 1 + seed as usize % 5).unwrap()));
    for (m, n, k) in [(300, 70, 200), (90, 700, 130), (100, 130, 2100)] {
        let case = Int8Case::new(m, n, k).with(|case| (case.zero_a, case.zero_b, case.beta) = (3, 5, 0.75));
        for isa in Isa::available() {
            let alone = case.compute(isa, None);
            for pool in &pools {
                assert!(case.compute(isa, Some(pool)) == alone, "{} {m} x {n} x {k} on {pool:?}", isa.name().unwrap());
            }
        }
    }
}

#[test]
fn nothing_is_read_of_a_and_b_without_alpha() {
    let mut c = vec![7; 6];
    // SAFETY: with an alpha of zero the operands are not read; C has 2 x 3 elements.
    let (product, out) = unsafe {
        let nowhere = std::ptr::without_provenance(64);
        let product = Int8Product {
            m: 2,
            n: 3,
            k: 1_000_000,
            a: Matrix::new(nowhere, 2, 1_000_000, 1_000_000),
            transpose_a: false,
            signed_a: false,
            b: Matrix::new(nowhere, 1_000_000, 3, 3),
            transpose_b: false,
            packed_b: None,
            zero_a: 9,
            zero_b: 9,
            rule: Rule { alpha: 0.0, beta: 1.0, offset: Offset::Fixed(1) },
        };
        (product, MatrixMut::new(c.as_mut_ptr(), 2, 3, 3))
    };
    let call = standalone::StandaloneCall::new(None, 1, product.scratch_bytes(Isa::PORTABLE)).unwrap();
    compute(Isa::PORTABLE, &product, out, &call).unwrap();
    assert_eq!(c, [8; 6]);
}
