//! The AMX micro-kernels: registers of 16 rows of 64 bytes, and products of two of them.
//!
//! The panels of B are those of AVX-512. A tile of 32 x 32 uses four accumulator registers, two for A, and two for B.
//! The registers keep one shape throughout, so rows of A come in sixteens and groups in sixteens, padded with zeros.
//!
//! A thread uses the registers from `enter` to `leave`, which releases them: their contents are 8 KiB that the system
//! saves whenever it deschedules the thread. Nothing else here uses them, nor does the compiler.

use super::micro::MicroKernelSet;
use super::tile::{CellRows, MAX_COLUMNS, MAX_ROWS, Panel, Terms, Tile, TileOutput};
use super::vnni;
use std::arch::asm;

/// Rows of a register.
const SIDE: usize = 16;
/// Tiles with fewer rows use AVX-512.
const LEAST: usize = 5;

static TILES: [Tile; MAX_ROWS] = {
    let mut tiles: [Tile; MAX_ROWS] = [tile::<2>; MAX_ROWS];
    let mut rows = 1;
    while rows <= SIDE {
        tiles[rows - 1] = if rows < LEAST { vnni::TILES[rows - 1] } else { tile::<1> };
        rows += 1;
    }
    tiles
};

pub static SET: MicroKernelSet = MicroKernelSet {
    rows: MAX_ROWS,
    step: SIDE,
    whole_rows: SIDE,
    free_rows: LEAST - 1,
    tiles: &TILES,
    enter,
    leave,
    ..vnni::SET
};

/// The shapes of all registers, in the format of the instruction.
#[repr(C, align(64))]
struct TileShapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes: [u16; 16],
    rows: [u8; 16],
}

static SHAPES: TileShapes = {
    let (mut bytes, mut rows) = ([0; 16], [0; 16]);
    let mut i = 0;
    while i < 8 {
        (bytes[i], rows[i]) = (64, SIDE as u8);
        i += 1;
    }
    TileShapes { palette: 1, start_row: 0, reserved: [0; 14], bytes, rows }
};

fn enter() {
    // SAFETY: only processors with AMX, with the system's permission, have this level (`sets::of`). The shapes are
    // valid.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &SHAPES, options(nostack, readonly, preserves_flags)) };
}

fn leave() {
    // SAFETY: as above.
    unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
}

/// Accumulators of a tile, on separate cache lines.
#[repr(align(64))]
struct SumTile([i32; MAX_ROWS * MAX_COLUMNS]);

/// HEIGHT registers of rows, two of columns.
///
/// # Safety
/// As the portable one, on a processor with AMX, between `enter` and `leave`; A and `out` have HEIGHT * SIDE rows, and
/// `groups` is a multiple of SIDE.
unsafe fn tile<const HEIGHT: usize>(groups: usize, a: CellRows, b: Panel, terms: Option<Terms>, out: TileOutput) {
    // SAFETY: as demanded of the caller.
    unsafe {
        if terms.is_none() && !out.adds {
            multiply::<HEIGHT>(groups, a, b.data, out.data, out.stride);
            return;
        }
        let mut sums = std::mem::MaybeUninit::<SumTile>::uninit();
        let from = (&raw mut (*sums.as_mut_ptr()).0).cast::<i32>();
        multiply::<HEIGHT>(groups, a, b.data, from, MAX_COLUMNS);
        add::<HEIGHT>(from, terms, out);
    }
}

/// # Safety
/// As `tile`.
#[target_feature(enable = "avx512f")]
unsafe fn add<const HEIGHT: usize>(from: *const i32, terms: Option<Terms>, out: TileOutput) {
    // SAFETY: as demanded of the caller of `tile`.
    unsafe {
        for row in 0..HEIGHT * SIDE {
            let sums = &*from.add(row * MAX_COLUMNS).cast::<[i32; MAX_COLUMNS]>();
            let to = &mut *out.data.add(row * out.stride).cast::<[i32; MAX_COLUMNS]>();
            let mut line = *sums;
            if let Some(terms) = terms {
                let (row, columns) = (*terms.rows.add(row), &*terms.columns.cast::<[i32; MAX_COLUMNS]>());
                line.iter_mut()
                    .zip(columns)
                    .for_each(|(sum, column)| *sum = sum.wrapping_add(row).wrapping_add(*column));
            }
            if out.adds {
                line.iter_mut().zip(to.iter()).for_each(|(sum, before)| *sum = sum.wrapping_add(*before));
            }
            *to = line;
        }
    }
}

/// # Safety
/// As `tile`, for the sums alone.
#[inline]
unsafe fn multiply<const HEIGHT: usize>(groups: usize, a: CellRows, b: *const u32, out: *mut i32, stride: usize) {
    const STEP_OF_B: usize = SIDE * MAX_COLUMNS * size_of::<u32>();
    let steps = groups / SIDE;
    let below = SIDE * a.stride;
    // SAFETY: as demanded of the caller: each step reads 64 bytes of each row of A and SIDE groups of the panel.
    unsafe {
        if HEIGHT == 1 {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "test {steps}, {steps}",
                "jz 3f",
                "2:",
                "tileloadd tmm4, [{a} + {a_stride}*1]",
                "tileloadd tmm6, [{b} + {b_stride}*1]",
                "tileloadd tmm7, [{b} + {b_stride}*1 + 64]",
                "tdpbusd tmm0, tmm4, tmm6",
                "tdpbusd tmm1, tmm4, tmm7",
                "add {a}, 64",
                "add {b}, {step_of_b}",
                "dec {steps}",
                "jnz 2b",
                "3:",
                "tilestored [{out} + {stride}*1], tmm0",
                "tilestored [{out} + {stride}*1 + 64], tmm1",
                a = inout(reg) a.data => _,
                a_stride = in(reg) a.stride,
                b = inout(reg) b => _,
                b_stride = in(reg) MAX_COLUMNS * size_of::<u32>(),
                steps = inout(reg) steps => _,
                step_of_b = const STEP_OF_B,
                out = in(reg) out,
                stride = in(reg) stride * size_of::<i32>(),
                out("tmm0") _, out("tmm1") _, out("tmm4") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        } else {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "test {steps}, {steps}",
                "jz 3f",
                "2:",
                "tileloadd tmm6, [{b} + {b_stride}*1]",
                "tileloadd tmm4, [{a} + {a_stride}*1]",
                "tdpbusd tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b} + {b_stride}*1 + 64]",
                "tdpbusd tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{low} + {a_stride}*1]",
                "tdpbusd tmm2, tmm5, tmm6",
                "tdpbusd tmm3, tmm5, tmm7",
                "add {a}, 64",
                "add {low}, 64",
                "add {b}, {step_of_b}",
                "dec {steps}",
                "jnz 2b",
                "3:",
                "tilestored [{out} + {stride}*1], tmm0",
                "tilestored [{out} + {stride}*1 + 64], tmm1",
                "tilestored [{out_low} + {stride}*1], tmm2",
                "tilestored [{out_low} + {stride}*1 + 64], tmm3",
                a = inout(reg) a.data => _,
                low = inout(reg) a.data.add(below) => _,
                a_stride = in(reg) a.stride,
                b = inout(reg) b => _,
                b_stride = in(reg) MAX_COLUMNS * size_of::<u32>(),
                steps = inout(reg) steps => _,
                step_of_b = const STEP_OF_B,
                out = in(reg) out,
                out_low = in(reg) out.add(SIDE * stride),
                stride = in(reg) stride * size_of::<i32>(),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }
}
