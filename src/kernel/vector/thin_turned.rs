//! As `thin`, for a B whose rows lie along K: squares of it are transposed in registers, and multiplied there.
//!
//! A register has as many columns of C as it has lanes. B is processed in groups of four neighbours along K: lane l of
//! 16 bytes of register i is from row i + 4 l, and transposing the lanes of four registers gives four rows of the
//! transposed matrix.

use super::lanes::Vector;
use super::step::Thin;

/// Registers that are transposed in lanes of 16 bytes.
///
/// # Safety
/// As of `Vector`.
pub trait TransposeLanes: Vector {
    /// Lane l from `rows(l)`, 16 bytes.
    unsafe fn gather(rows: impl Fn(usize) -> *const f32) -> Self;
    /// Transposes four registers lane by lane.
    unsafe fn turn(four: [Self; 4]) -> [Self; 4];
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::TransposeLanes;
    use std::arch::x86_64::*;

    impl TransposeLanes for __m512 {
        #[inline(always)]
        unsafe fn gather(rows: impl Fn(usize) -> *const f32) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe {
                let one = _mm512_castps128_ps512(_mm_loadu_ps(rows(0)));
                let two = _mm512_insertf32x4::<1>(one, _mm_loadu_ps(rows(1)));
                let three = _mm512_insertf32x4::<2>(two, _mm_loadu_ps(rows(2)));
                _mm512_insertf32x4::<3>(three, _mm_loadu_ps(rows(3)))
            }
        }
        #[inline(always)]
        unsafe fn turn([a, b, c, d]: [Self; 4]) -> [Self; 4] {
            // SAFETY: as demanded of the caller.
            unsafe {
                let pairs = |x, y| {
                    let (x, y) = (_mm512_castps_pd(x), _mm512_castps_pd(y));
                    [_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)), _mm512_castpd_ps(_mm512_unpackhi_pd(x, y))]
                };
                let [first, second] = pairs(_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
                let [third, fourth] = pairs(_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
                [first, second, third, fourth]
            }
        }
    }

    impl TransposeLanes for __m256 {
        #[inline(always)]
        unsafe fn gather(rows: impl Fn(usize) -> *const f32) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe {
                let one = _mm256_castps128_ps256(_mm_loadu_ps(rows(0)));
                _mm256_insertf128_ps::<1>(one, _mm_loadu_ps(rows(1)))
            }
        }
        #[inline(always)]
        unsafe fn turn([a, b, c, d]: [Self; 4]) -> [Self; 4] {
            // SAFETY: as demanded of the caller.
            unsafe {
                let pairs = |x, y| {
                    let (x, y) = (_mm256_castps_pd(x), _mm256_castps_pd(y));
                    [_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)), _mm256_castpd_ps(_mm256_unpackhi_pd(x, y))]
                };
                let [first, second] = pairs(_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
                let [third, fourth] = pairs(_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
                [first, second, third, fourth]
            }
        }
    }
}

/// Neighbours along K in a group, groups that are read together (a cache line, so that it is read once), and maximum
/// lanes of a register.
const PIECE: usize = 4;
const MOST_LANES: usize = 16;

/// R rows; WIDE registers of columns at a time, to hide the latency of the additions; PIECES groups are read together.
///
/// # Safety
/// As `thin::sums`, where neighbours along K are neighbours in B; on a processor with the instructions of V.
#[inline(always)]
pub unsafe fn rows<V: TransposeLanes, const R: usize, const WIDE: usize, const PIECES: usize>(thin: &Thin) {
    let wide = WIDE * V::LANES;
    let in_blocks = thin.columns - thin.columns % wide;
    // SAFETY: passed on; columns below their number. Lanes behind the last column repeat it.
    unsafe {
        for first in (0..in_blocks).step_by(wide) {
            let from = thin.b.data.add(first * thin.b.across);
            let sums = registers::<V, R, WIDE, PIECES>(thin, |i| from.add(i * thin.b.across));
            for (w, sums) in sums.into_iter().enumerate() {
                for (r, sum) in sums.into_iter().enumerate() {
                    sum.store(thin.sums.add(r * thin.pitch + first + w * V::LANES));
                }
            }
        }
        for first in (in_blocks..thin.columns).step_by(V::LANES) {
            let count = V::LANES.min(thin.columns - first);
            let from = thin.b.data.add(first * thin.b.across);
            let [sums] = registers::<V, R, 1, PIECES>(thin, |i| from.add(i.min(count - 1) * thin.b.across));
            for (r, sum) in sums.into_iter().enumerate() {
                sum.store_part(thin.sums.add(r * thin.pitch + first), count);
            }
        }
    }
}

/// The sums of WIDE times as many columns as a register has lanes, whose rows of B are `row`.
///
/// # Safety
/// As `rows`.
#[inline(always)]
unsafe fn registers<V: TransposeLanes, const R: usize, const WIDE: usize, const PIECES: usize>(
    thin: &Thin,
    row: impl Fn(usize) -> *const f32,
) -> [[V; R]; WIDE] {
    let depth = thin.depth;
    let (in_lines, in_pieces) = (depth - depth % (PIECE * PIECES), depth - depth % PIECE);
    // SAFETY: as demanded of the caller; positions along K below the depth.
    unsafe {
        let mut sums = [[V::splat(0.0); R]; WIDE];
        let read = |k: usize, w: usize, i: usize| V::gather(|lane| row(w * V::LANES + i + PIECE * lane).add(k));
        for k in (0..in_lines).step_by(PIECE * PIECES) {
            for (w, sums) in sums.iter_mut().enumerate() {
                let mut pieces = [[V::splat(0.0); PIECE]; PIECES];
                for i in 0..PIECE {
                    for (p, piece) in pieces.iter_mut().enumerate() {
                        piece[i] = read(k + PIECE * p, w, i);
                    }
                }
                for (p, piece) in pieces.into_iter().enumerate() {
                    add(thin, k + PIECE * p, V::turn(piece), sums);
                }
            }
        }
        for k in (in_lines..in_pieces).step_by(PIECE) {
            for (w, sums) in sums.iter_mut().enumerate() {
                let mut piece = [V::splat(0.0); PIECE];
                for (i, lanes) in piece.iter_mut().enumerate() {
                    *lanes = read(k, w, i);
                }
                add(thin, k, V::turn(piece), sums);
            }
        }
        for k in in_pieces..depth {
            for (w, sums) in sums.iter_mut().enumerate() {
                let mut lanes = [0.0f32; MOST_LANES];
                for (i, lane) in lanes[..V::LANES].iter_mut().enumerate() {
                    *lane = *row(w * V::LANES + i).add(k);
                }
                add(thin, k, [V::load(lanes.as_ptr())], sums);
            }
        }
        sums
    }
}

/// Adds the contribution of N transposed rows from k on to the sums.
///
/// # Safety
/// As `rows`.
#[inline(always)]
unsafe fn add<V: Vector, const R: usize, const N: usize>(thin: &Thin, k: usize, of_b: [V; N], sums: &mut [V; R]) {
    for (n, of_b) in of_b.into_iter().enumerate() {
        for (r, sum) in sums.iter_mut().enumerate() {
            // SAFETY: as demanded of the caller.
            unsafe {
                let of_a = V::splat(*thin.a.data.add(r * thin.a.across + (k + n) * thin.a.depth));
                *sum = of_a.mul_add(of_b, *sum);
            }
        }
    }
}
