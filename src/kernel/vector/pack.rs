//! Copying a part of a matrix into a panel: `depth` rows of `count` floats, `stride` apart. What a row lacks to
//! whole vectors is filled up with zeros: nobody uses what is computed there, but leftovers in memory could be slow
//! to compute with, or trap.

/// A transposed source is turned in squares with this side: four vector registers.
const SIDE: usize = 4;
/// Columns that are read side by side. More of them, a power of two apart, would push each other out of the cache.
const GROUP: usize = 8;

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

/// The same of a transposed source: `count` columns of `depth` floats, `source_stride` apart.
///
/// # Safety
/// As `rows`.
pub unsafe fn columns(
    source: *const f32,
    source_stride: usize,
    (depth, count, padded): (usize, usize, usize),
    panel: *mut f32,
    stride: usize,
) {
    let (whole_depth, whole_count) = (depth / SIDE * SIDE, count / SIDE * SIDE);
    // SAFETY: as demanded of the caller; all indices are below depth and count.
    unsafe {
        for group in (0..whole_count).step_by(GROUP) {
            for k in (0..whole_depth).step_by(SIDE) {
                for j in (group..whole_count.min(group + GROUP)).step_by(SIDE) {
                    square(source.add(j * source_stride + k), source_stride, panel.add(k * stride + j), stride);
                }
            }
        }
        for k in 0..depth {
            for j in if k < whole_depth { whole_count } else { 0 }..count {
                *panel.add(k * stride + j) = *source.add(j * source_stride + k);
            }
            panel.add(k * stride + count).write_bytes(0, padded - count);
        }
    }
}

/// Turns SIDE columns of SIDE floats into rows.
///
/// # Safety
/// As `rows`, with these sizes.
#[inline(always)]
unsafe fn square(source: *const f32, source_stride: usize, panel: *mut f32, stride: usize) {
    // SAFETY: as demanded of the caller; arrays of floats have the alignment of a float.
    unsafe {
        let columns: [[f32; SIDE]; SIDE] = std::array::from_fn(|j| *source.add(j * source_stride).cast());
        for i in 0..SIDE {
            *panel.add(i * stride).cast::<[f32; SIDE]>() = columns.map(|column| column[i]);
        }
    }
}
