//! Packs a part of a matrix into a panel: `depth` rows of `count` floats, `stride` apart. Rows are padded with zeros to
//! whole vectors: nobody uses the results there, but leftovers in memory could be slow to compute with, or trap.

use super::isa::{Isa, SimdLevel};
use super::movement::TileTranspose;

/// Maximum length of a K block.
const MAX_DEPTH: usize = 512;
/// Columns of a transposed source that are read side by side, a cache line of the panel. More of them, a power of two
/// apart, would evict each other from the cache.
const GROUP: usize = 16;
/// Floats of a cache line.
const LINE: usize = 16;

/// Copies `depth` rows of `count` floats that are `source_stride` apart, and pads each with zeros to `padded`.
///
/// # Safety
/// The rows are readable; `panel` has `depth` rows of `padded` writable floats, `stride` apart; the two do not overlap.
pub unsafe fn rows(
    source: *const f32,
    source_stride: usize,
    (depth, count, padded): (usize, usize, usize),
    panel: *mut f32,
    stride: usize,
) {
    // SAFETY: passed on. The widths of whole panels are compile-time constants, so that the copy stays in registers.
    unsafe {
        match count {
            16 => fixed::<16>(source, source_stride, depth, panel, stride),
            64 => fixed::<64>(source, source_stride, depth, panel, stride),
            _ => {
                for k in 0..depth {
                    let (from, to) = (source.add(k * source_stride), panel.add(k * stride));
                    std::ptr::copy_nonoverlapping(from, to, count);
                    to.add(count).write_bytes(0, padded - count);
                }
            }
        }
    }
}

/// # Safety
/// As `rows`, with `count` = `padded` = WIDTH.
unsafe fn fixed<const WIDTH: usize>(
    source: *const f32,
    source_stride: usize,
    depth: usize,
    panel: *mut f32,
    stride: usize,
) {
    for k in 0..depth {
        // SAFETY: as demanded of the caller; arrays of floats have the alignment of a float.
        unsafe {
            *panel.add(k * stride).cast::<[f32; WIDTH]>() = *source.add(k * source_stride).cast::<[f32; WIDTH]>()
        };
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::thin_turned::TransposeLanes;
    use super::LINE;
    use std::arch::x86_64::{__m512, _mm512_setzero_ps, _mm512_storeu_ps};

    /// 16 columns of a transposed source, at least a cache line long: each line is read once, whole.
    ///
    /// # Safety
    /// As `columns`.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn columns_avx512(source: *const f32, across: usize, depth: usize, panel: *mut f32, stride: usize) {
        let mut k = 0;
        while k < depth {
            // The last line ends with the columns, and overlaps the one before.
            let at = k.min(depth - LINE);
            // SAFETY: as demanded of the caller; positions along K below the depth.
            unsafe {
                let mut pieces = [[_mm512_setzero_ps(); 4]; 4];
                for i in 0..4 {
                    for (p, piece) in pieces.iter_mut().enumerate() {
                        piece[i] = __m512::gather(|lane| source.add((i + 4 * lane) * across + at + 4 * p));
                    }
                }
                for (p, piece) in pieces.into_iter().enumerate() {
                    for (i, row) in __m512::turn(piece).into_iter().enumerate() {
                        _mm512_storeu_ps(panel.add((at + 4 * p + i) * stride), row);
                    }
                }
            }
            k += LINE;
        }
    }
}

/// As `rows`, for a transposed source: `count` columns of `depth` floats, `source_stride` apart.
///
/// # Safety
/// As `rows`, on a level that the processor has.
pub unsafe fn columns(
    isa: Isa,
    source: *const f32,
    source_stride: usize,
    (depth, count, padded): (usize, usize, usize),
    panel: *mut f32,
    stride: usize,
) {
    isa.assert_detected();
    const FLOAT: usize = size_of::<f32>();
    let Some(turn) = TileTranspose::of(isa, FLOAT) else { unreachable!("floats have a size that registers hold") };
    // SAFETY: as demanded of the caller; all indices are below depth and count.
    unsafe {
        for first in (0..count).step_by(GROUP) {
            let columns = GROUP.min(count - first);
            let (source, panel) = (source.add(first * source_stride), panel.add(first));
            #[cfg(target_arch = "x86_64")]
            if columns == LINE && isa.level >= SimdLevel::Avx512 && depth >= LINE {
                x86::columns_avx512(source, source_stride, depth, panel, stride);
                continue;
            }
            let from = (source.cast(), (source_stride * FLOAT) as isize);
            turn.run(from, (panel.cast(), (stride * FLOAT) as isize), columns, depth);
        }
        if count < padded {
            for k in 0..depth {
                panel.add(k * stride + count).write_bytes(0, padded - count);
            }
        }
    }
}

/// Length of the longest K block, and the number of blocks: from K alone, and at least one, so that with K = 0 the
/// result is zero, plus the bias.
pub(super) fn stretches(k: usize) -> (usize, usize) {
    let count = k.div_ceil(MAX_DEPTH).max(1);
    (k.div_ceil(count), count)
}
