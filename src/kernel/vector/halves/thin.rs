//! A few rows of A times a stretch of B, which is read as it is, several rows at a time in long runs. A panel of it
//! would be written and read once more, and its short rows, far apart, keep the processor from what the memory could
//! give.
//!
//! Panels are read once for some rows, whose sums stay in registers: elements are converted while others are
//! multiplied.
//!
//! Determinism: the chain of an element in a K block is that of a tile. A sum that is stored between two links is the
//! same.

use crate::kernel::vector::convert::Stored;
use crate::kernel::vector::isa::{Isa, SimdLevel};
use crate::kernel::vector::site::Matrix;
use std::ops::Range;

/// Adds the products of a stretch of K to the sums.
pub struct ThinHalves<'a, T> {
    /// 1 to 4 rows.
    pub rows: usize,
    /// The stretch of each row of A, one after the other.
    pub a: &'a [f32],
    pub b: Matrix<'a, T>,
    /// Rows and columns of B.
    pub depth: Range<usize>,
    pub columns: Range<usize>,
    pub sums: &'a mut [f32],
    /// Floats from one row of sums to the next.
    pub pitch: usize,
}

/// Adds the products of a stretch of K with neighbouring panels to the sums.
pub struct PanelHalves<'a, T> {
    /// Any number of rows.
    pub rows: usize,
    /// As of `ThinHalves`.
    pub a: &'a [f32],
    /// Whole panels.
    pub b: &'a [T],
    pub depth: usize,
    /// Rows of sums are as wide as the panels, at least.
    pub sums: &'a mut [f32],
    pub pitch: usize,
}

/// Whether a level has it.
pub fn is_there(isa: Isa) -> bool {
    cfg!(target_arch = "x86_64") && isa.level >= SimdLevel::Avx2
}

/// # Safety
/// The processor has the level, which has this, and B has these rows and columns.
pub unsafe fn add<T: Stored>(isa: Isa, mut thin: ThinHalves<'_, T>) {
    isa.assert_detected();
    assert!((1..=4).contains(&thin.rows));
    let (depth, columns) = (thin.depth.len(), thin.columns.len());
    assert!(thin.a.len() >= thin.rows * depth && thin.sums.len() >= (thin.rows - 1) * thin.pitch + columns);
    // SAFETY: as demanded of the caller.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        match isa.level {
            SimdLevel::Avx2 => x86::avx2(&mut thin),
            _ => x86::avx512(&mut thin),
        }
    }
}

/// # Safety
/// The processor has the level, which has this.
pub unsafe fn add_panels<T: Stored>(isa: Isa, width: usize, mut call: PanelHalves<'_, T>) {
    let PanelHalves { rows, depth, pitch, .. } = call;
    let columns = call.b.len().checked_div(depth).unwrap_or(0);
    isa.assert_detected();
    assert!(columns.is_multiple_of(width) && call.b.len() == depth * columns);
    assert!(call.a.len() >= rows * depth && call.sums.len() >= rows.saturating_sub(1) * pitch + columns);
    // SAFETY: as demanded of the caller; the sizes were compared.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        match (isa.level, width) {
            (SimdLevel::Avx2, 16) => x86::panels_avx2(&mut call),
            (_, 64) => x86::panels_avx512(&mut call),
            _ => panic!("panels of {width} columns"),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{PanelHalves, Stored, ThinHalves};
    use crate::kernel::vector::convert::Converting;
    use std::arch::x86_64::{__m256, __m512};

    /// # Safety
    /// As of `add`.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub unsafe fn avx512<T: Stored>(thin: &mut ThinHalves<'_, T>) {
        // SAFETY: passed on.
        unsafe {
            match thin.rows {
                1 => rows::<T, __m512, 1, 8>(thin),
                2 => rows::<T, __m512, 2, 8>(thin),
                3 => rows::<T, __m512, 3, 6>(thin),
                _ => rows::<T, __m512, 4, 4>(thin),
            }
        }
    }

    /// # Safety
    /// As of `add`.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub unsafe fn avx2<T: Stored>(thin: &mut ThinHalves<'_, T>) {
        // SAFETY: passed on.
        unsafe {
            match thin.rows {
                1 => rows::<T, __m256, 1, 8>(thin),
                2 => rows::<T, __m256, 2, 4>(thin),
                3 => rows::<T, __m256, 3, 3>(thin),
                _ => rows::<T, __m256, 4, 2>(thin),
            }
        }
    }

    /// R rows of A, STEP rows of B at a time.
    ///
    /// # Safety
    /// As of `add`, on a processor with the instructions of V.
    #[inline(always)]
    unsafe fn rows<T: Stored, V: Converting, const R: usize, const STEP: usize>(thin: &mut ThinHalves<'_, T>) {
        let depth = thin.depth.len();
        let whole = depth - depth % STEP;
        // SAFETY: passed on.
        unsafe {
            for k in (0..whole).step_by(STEP) {
                line::<T, V, R, STEP>(thin, k);
            }
            for k in whole..depth {
                line::<T, V, R, 1>(thin, k);
            }
        }
    }

    /// # Safety
    /// As of `rows`.
    #[inline(always)]
    unsafe fn line<T: Stored, V: Converting, const R: usize, const STEP: usize>(
        thin: &mut ThinHalves<'_, T>,
        k: usize,
    ) {
        let (depth, count, pitch) = (thin.depth.len(), thin.columns.len(), thin.pitch);
        let b: [&[T]; STEP] =
            std::array::from_fn(|step| &thin.b.row(thin.depth.start + k + step)[thin.columns.clone()]);
        let a: [[f32; STEP]; R] = std::array::from_fn(|r| std::array::from_fn(|step| thin.a[r * depth + k + step]));
        let sums = thin.sums.as_mut_ptr();
        let in_registers = count - count % V::LANES;
        // SAFETY: the registers lie in the rows of B and of the sums.
        unsafe {
            let factors = a.map(|row| row.map(|x| V::splat(x)));
            for at in (0..in_registers).step_by(V::LANES) {
                let mut row: [V; R] = std::array::from_fn(|r| V::load(sums.add(r * pitch + at)));
                for (step, b) in b.iter().enumerate() {
                    let x = V::load_stored(b.as_ptr().add(at));
                    for (sum, factors) in row.iter_mut().zip(&factors) {
                        *sum = factors[step].mul_add(x, *sum);
                    }
                }
                for (r, sum) in row.into_iter().enumerate() {
                    sum.store(sums.add(r * pitch + at));
                }
            }
        }
        for at in in_registers..count {
            for (r, factors) in a.iter().enumerate() {
                let sum = &mut thin.sums[r * pitch + at];
                for (b, factor) in b.iter().zip(factors) {
                    *sum = factor.mul_add(b[at].widened(), *sum);
                }
            }
        }
    }

    /// # Safety
    /// As of `add_panels`.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub unsafe fn panels_avx512<T: Stored>(call: &mut PanelHalves<'_, T>) {
        // SAFETY: passed on.
        unsafe { panels::<T, __m512, 4>(call) }
    }

    /// # Safety
    /// As of `add_panels`.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub unsafe fn panels_avx2<T: Stored>(call: &mut PanelHalves<'_, T>) {
        // SAFETY: passed on.
        unsafe { panels::<T, __m256, 2>(call) }
    }

    /// Panels of PANEL registers, several at a time for one row or two: sums that nobody waits for. More rows go
    /// through each panel in groups of about the same size.
    ///
    /// # Safety
    /// As of `add_panels`, on a processor with the instructions of V.
    #[inline(always)]
    unsafe fn panels<T: Stored, V: Converting, const PANEL: usize>(call: &mut PanelHalves<'_, T>) {
        let number = call.b.len().checked_div(call.depth).unwrap_or(0) / (PANEL * V::LANES);
        let together = match call.rows {
            1 => 8 / PANEL,
            2 => 4 / PANEL,
            _ => usize::MAX,
        };
        let mut panel = 0;
        // SAFETY: passed on.
        unsafe {
            while number - panel >= together {
                match call.rows {
                    1 => panel_rows::<T, V, 1, PANEL, 8>(call, 0, panel),
                    _ => panel_rows::<T, V, 2, PANEL, 4>(call, 0, panel),
                }
                panel += together;
            }
            let groups = call.rows.div_ceil(6);
            for (panel, group) in (panel..number).flat_map(|panel| (0..groups).map(move |group| (panel, group))) {
                let (first, end) = (call.rows * group / groups, call.rows * (group + 1) / groups);
                match end - first {
                    1 => panel_rows::<T, V, 1, PANEL, PANEL>(call, first, panel),
                    2 => panel_rows::<T, V, 2, PANEL, PANEL>(call, first, panel),
                    3 => panel_rows::<T, V, 3, PANEL, PANEL>(call, first, panel),
                    4 => panel_rows::<T, V, 4, PANEL, PANEL>(call, first, panel),
                    5 => panel_rows::<T, V, 5, PANEL, PANEL>(call, first, panel),
                    _ => panel_rows::<T, V, 6, PANEL, PANEL>(call, first, panel),
                }
            }
        }
    }

    /// R rows of A from `first` on, with neighbouring panels of PANEL registers, so many that they are ALL.
    ///
    /// # Safety
    /// As of `panels`.
    #[inline(always)]
    unsafe fn panel_rows<T: Stored, V: Converting, const R: usize, const PANEL: usize, const ALL: usize>(
        call: &mut PanelHalves<'_, T>,
        first: usize,
        panel: usize,
    ) {
        let (depth, width) = (call.depth, PANEL * V::LANES);
        let a: [_; R] = std::array::from_fn(|r| call.a[(first + r) * depth..][..depth].as_ptr());
        let b = call.b[panel * width * depth..][..ALL / PANEL * width * depth].as_ptr();
        let sums = call.sums[first * call.pitch + panel * width..].as_mut_ptr();
        // SAFETY: the rows of A and the panels have `depth` elements and rows; the sums have R rows of ALL registers.
        unsafe {
            let at = |r: usize, i: usize| sums.add(r * call.pitch + i * V::LANES);
            let mut all: [[V; ALL]; R] =
                std::array::from_fn(|r| std::array::from_fn(|i| V::load(at(r, i).cast_const())));
            for k in 0..depth {
                let b = b.add(k * width);
                let x: [V; ALL] =
                    std::array::from_fn(|i| V::load_stored(b.add(i / PANEL * width * depth + i % PANEL * V::LANES)));
                for (row, a) in all.iter_mut().zip(&a) {
                    let factor = V::splat(*a.add(k));
                    for (sum, &x) in row.iter_mut().zip(&x) {
                        *sum = factor.mul_add(x, *sum);
                    }
                }
            }
            for (r, row) in all.into_iter().enumerate() {
                row.into_iter().enumerate().for_each(|(i, sum)| sum.store(at(r, i)));
            }
        }
    }
}
