//! Copying a part of a matrix into a panel: `depth` rows of `count` floats, `stride` apart. What a row lacks to
//! whole vectors is filled up with zeros: nobody uses what is computed there, but leftovers in memory could be slow
//! to compute with, or trap.

use super::isa::Isa;
use super::lanes::Vector;
use super::movement::Transpose;

/// Columns of a transposed source that are read side by side, a cache line of the panel. More of them, a power of two apart,
/// would push each other out of the cache.
const GROUP: usize = 16;
/// Rows of a source that are read side by side: processors fetch several long runs ahead faster than one.
const ROWS: usize = 8;
/// Floats of a cache line.
const LINE: usize = 16;

/// Copies `depth` rows of `count` floats that are `source_stride` apart, and fills each up with zeros to `padded`.
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
    // SAFETY: passed on. The widths of whole panels are known to the compiler, which then copies in registers.
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

/// Panels `width` wide and `pitch` apart, side by side: some rows of the source for all panels, and then the next ones, so that
/// far apart rows are read in long runs.
#[derive(Clone, Copy)]
pub struct Beside {
    pub width: usize,
    pub pitch: usize,
}

/// Copies `depth` rows of `count` floats into panels, and fills the last one up with zeros to `padded` columns in all.
///
/// # Safety
/// As `rows`, for all panels; the width is a multiple of the level's registers.
pub unsafe fn beside(
    isa: Isa,
    source: *const f32,
    source_stride: usize,
    (depth, count, padded): (usize, usize, usize),
    panels: *mut f32,
    to: Beside,
) {
    assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
    let whole = count - count % to.width;
    // SAFETY: passed on; the level was compared. The last panel, if it is narrower, is copied by itself.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => x86::avx512(source, source_stride, (depth, whole), panels, to),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => x86::avx2(source, source_stride, (depth, whole), panels, to),
            _ => {
                for first in (0..whole).step_by(to.width) {
                    let panel = panels.add(first / to.width * to.pitch);
                    rows(source.add(first), source_stride, (depth, to.width, to.width), panel, to.width);
                }
            }
        }
        if whole < count {
            let panel = panels.add(whole / to.width * to.pitch);
            rows(source.add(whole), source_stride, (depth, count - whole, padded - whole), panel, to.width);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::thin_turned::Turn;
    use super::{Beside, LINE, in_registers};
    use std::arch::x86_64::{__m256, __m512, _mm512_setzero_ps, _mm512_storeu_ps};

    /// # Safety
    /// As `in_registers`.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn avx512(source: *const f32, stride: usize, size: (usize, usize), panels: *mut f32, to: Beside) {
        // SAFETY: passed on.
        unsafe { in_registers::<__m512>(source, stride, size, panels, to) }
    }

    /// # Safety
    /// As `in_registers`.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn avx2(source: *const f32, stride: usize, size: (usize, usize), panels: *mut f32, to: Beside) {
        // SAFETY: passed on.
        unsafe { in_registers::<__m256>(source, stride, size, panels, to) }
    }

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
            // SAFETY: as demanded of the caller; places along K below the depth.
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

/// # Safety
/// As `beside`, with whole panels, on a processor with the instructions of V.
#[inline(always)]
unsafe fn in_registers<V: Vector>(
    source: *const f32,
    source_stride: usize,
    (depth, count): (usize, usize),
    panels: *mut f32,
    to: Beside,
) {
    for group in (0..depth).step_by(ROWS) {
        for first in (0..count).step_by(to.width) {
            for k in group..depth.min(group + ROWS) {
                // SAFETY: as demanded of the caller; whole registers of whole panels.
                unsafe {
                    let from = source.add(k * source_stride + first);
                    let panel = panels.add(first / to.width * to.pitch + k * to.width);
                    for lane in (0..to.width).step_by(V::LANES) {
                        V::load(from.add(lane)).store(panel.add(lane));
                    }
                }
            }
        }
    }
}

/// The same of a transposed source: `count` columns of `depth` floats, `source_stride` apart.
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
    assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
    const FLOAT: usize = size_of::<f32>();
    let Some(turn) = Transpose::of(isa, FLOAT) else { unreachable!("floats have a size that registers hold") };
    // SAFETY: as demanded of the caller; all indices are below depth and count.
    unsafe {
        for first in (0..count).step_by(GROUP) {
            let columns = GROUP.min(count - first);
            let (source, panel) = (source.add(first * source_stride), panel.add(first));
            #[cfg(target_arch = "x86_64")]
            if columns == LINE && isa >= Isa::Avx512 && depth >= LINE {
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
