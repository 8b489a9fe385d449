//! Data: random numbers, the same for the same seed, and the rules that make a tolerance mean something.

use crate::values::Values;
use weir_core::base::dtype;

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 on, below 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number of these.
    pub fn whole(&mut self, least: i64, greatest: i64) -> f64 {
        (least + (self.next() % (greatest - least + 1) as u64) as i64) as f64
    }

    pub fn sign(&mut self) -> f64 {
        if self.next() >> 63 == 0 { 1.0 } else { -1.0 }
    }
}

pub fn count(dims: &[i64]) -> usize {
    dims.iter().product::<i64>() as usize
}

/// Whole numbers.
pub fn whole(of: u32, dims: &[i64], (least, greatest): (i64, i64), seed: u64) -> Values {
    let mut random = Random::new(seed);
    Values::nearest(of, dims, (0..count(dims)).map(|_| random.whole(least, greatest)))
}

/// Ranges of the elements of A and B of a product with results of `digits` binary digits.
pub fn ranges(a: u32, wide: bool) -> ((i64, i64), (i64, i64)) {
    match a {
        dtype::F32 => ((-64, 64), (-128, 128)),
        dtype::F16 | dtype::BF16 => ((-4, 4), (-2, 2)),
        dtype::U8 if wide => ((0, 160), (-4, 4)),
        dtype::U8 => ((0, 8), (-4, 4)),
        _ => ((-4, 4), (-4, 4)),
    }
}

/// Which places along K may hold something else than 0, so that sums are exact with 24 binary digits.
pub fn mask(k: usize, a: (i64, i64), b: (i64, i64), digits: u32) -> Vec<bool> {
    let largest = |(least, greatest): (i64, i64)| least.abs().max(greatest.abs()) as usize;
    let most = (1usize << digits) / (largest(a) * largest(b));
    // Evenly spread, and so many at most.
    (0..k).map(|p| k <= most || p * most / k != (p + 1) * most / k).collect()
}

#[test]
fn masks_keep_as_many_as_are_exact() {
    let kept = |k| mask(k, (-64, 64), (-128, 128), 24).iter().filter(|&&kept| kept).count();
    assert_eq!([kept(5), kept(2048), kept(2049), kept(10_000)], [5, 2048, 2048, 2048]);
}
