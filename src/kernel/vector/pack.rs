//! Copying a part of a matrix into a panel: `depth` rows of `count` floats, `stride` apart.

/// A transposed source is turned in squares with this side: four vector registers.
const SIDE: usize = 4;
const GROUP: usize = 64;
const HEIGHT: usize = 4;

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
    // SAFETY: passed on. The usual widths are known to the compiler, which then copies in registers.
    unsafe {
        match count {
            4 => fixed::<4>(source, source_stride, depth, panel, stride),
            6 => fixed::<6>(source, source_stride, depth, panel, stride),
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
    let (whole_depth, whole_count) = (depth / HEIGHT * HEIGHT, count / SIDE * SIDE);
    // SAFETY: as demanded of the caller; all indices are below depth and count.
    unsafe {
        let copy = |k: usize, j: usize| *panel.add(k * stride + j) = *source.add(j * source_stride + k);
        for group in (0..whole_count).step_by(GROUP) {
            for k in (0..whole_depth).step_by(HEIGHT) {
                for j in (group..whole_count.min(group + GROUP)).step_by(SIDE) {
                    for k in (k..k + HEIGHT).step_by(SIDE) {
                        square(source.add(j * source_stride + k), source_stride, panel.add(k * stride + j), stride);
                    }
                }
            }
        }
        for k in 0..depth {
            (if k < whole_depth { whole_count } else { 0 }..count).for_each(|j| copy(k, j));
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
