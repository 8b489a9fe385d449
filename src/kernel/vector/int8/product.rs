//! An int8 product, and a running piece of one.
#![forbid(unsafe_code)]

use super::finish::Rule;
use super::panels::BytePanels;
use crate::kernel::vector::held::HeldPanels;
use crate::kernel::vector::isa::{Isa, SimdLevel};
use crate::kernel::vector::site::Matrix;

/// Shorter products gain nothing from small numbers.
const LEAST_LOW: usize = 32;

/// A product to compute.
#[derive(Clone, Copy, Debug)]
pub struct Int8Product<'a> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// [M, K], or [K, M] if it is transposed. Unsigned, or signed as `signed_a` says.
    pub a: Matrix<'a, u8>,
    pub transpose_a: bool,
    pub signed_a: bool,
    /// [K, N], or [N, K] if it is transposed. Signed.
    pub b: Matrix<'a, u8>,
    pub transpose_b: bool,
    /// B packed before; `b` is then ignored.
    pub packed_b: Option<&'a BytePanels>,
    /// Zero points, subtracted from each element of A and of B. Each is a value of the element's type.
    pub zero_a: i32,
    pub zero_b: i32,
    pub rule: Rule<'a>,
}

impl Int8Product<'_> {
    /// Whether the products of any two neighbours along K add up to at most 16 bits, because all numbers of A or of B
    /// are small. As near misses are rare, it reads little of a matrix that is not.
    pub fn is_low(&self) -> bool {
        let (Int8Product { m, n, k, a, b, .. }, flip) = (*self, if self.signed_a { 128 } else { 0 });
        // 2 * 127 * 128.
        let low_a = |byte: u8| byte ^ flip < 128;
        // From -64 to 64: 2 * 255 * 64.
        let low_b = |byte: u8| byte.wrapping_add(64) <= 128;
        self.rule.alpha != 0.0
            && k >= LEAST_LOW
            && (a.all(if self.transpose_a { (k, m) } else { (m, k) }, low_a)
                || b.all(if self.transpose_b { (n, k) } else { (k, n) }, low_b))
    }

    /// Estimated time of `compute` on one thread.
    pub fn cost_ns(&self, isa: Isa) -> u64 {
        // Operations per nanosecond; 10 GB/s.
        let rate = match isa {
            Isa { amx: true, .. } => 1000.0,
            Isa { avx512_vnni: true, .. } => 500.0,
            Isa { avx_vnni: true, .. } => 250.0,
            _ if isa.level >= SimdLevel::Avx2 => 100.0,
            _ => 15.0,
        };
        let [m, n, k] = [self.m, self.n, self.k].map(|size| size as f64);
        (2.0 * m * n * k / rate + (m * k + k * n + 4.0 * m * n) / 10.0) as u64
    }

    /// The zero point of A as packed.
    pub fn packed_zero_a(&self) -> i32 {
        self.zero_a + if self.signed_a { 128 } else { 0 }
    }
}

/// The parameters of the algorithms without blocks (`thin`, `dots`) for a piece.
pub struct Int8Piece<'a> {
    pub product: &'a Int8Product<'a>,
    /// Whether `dots` holds A.
    pub holds_a: bool,
    pub scratch: *mut u8,
    pub held: &'a HeldPanels,
    pub c: *mut i32,
    pub c_stride: usize,
}
