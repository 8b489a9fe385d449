//! Micro-kernels over vector registers: a tile of C, rows times whole registers of columns, stays in registers while A
//! and B pass.
//!
//! B comes from a panel, or from the matrix itself, where the last register of a row may be partial. A matrix that is
//! far away is copied on the way: the first rows of a product multiply it in place, and store it in panels for the
//! others. The copy costs two instructions beside a dozen or more multiplications, and waits for memory overlap with
//! them.
//!
//! In all of them an element is the chain defined in `micro`.

use super::isa::{Isa, SimdLevel};
use super::lanes::{Baseline, Vector};
use super::step::{From, LINE, MicroTile};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256, __m512};
use std::sync::atomic::{Ordering, compiler_fence};

/// Rows whose elements of A are as many as the registers beside the sums of two registers of columns.
const MANY_ROWS: usize = 10;
/// Unrolled steps along K.
const STEPS: usize = 2;
/// Rows of B that are prefetched ahead: the latency of the L3 cache in steps.
const AHEAD: usize = 16;

const PANEL: u8 = 0;
const PLACE: u8 = 1;
const COPY: u8 = 2;
const PLACES: u8 = 3;

type Function = unsafe fn(&MicroTile);

macro_rules! table {
    ($name:ident, $from:expr, [$($registers:literal: $($rows:literal)*;)*]) => {
        [$([$($name::<$rows, $registers, $from> as Function),*]),*]
    };
}

/// The functions for as many vector registers as there are, or `few` of them.
macro_rules! functions {
    ($name:ident, 32) => {
        functions!($name: [
            1: 1 2 3 4 5 6 7 8 9 10 11 12;
            2: 1 2 3 4 5 6 7 8 9 10 11 12;
            3: 1 2 3 4 5 6 7 8 8 8 8 8;
            4: 1 2 3 4 5 6 6 6 6 6 6 6;
        ])
    };
    ($name:ident, 16) => {
        functions!($name: [
            1: 1 2 3 4 5 6 7 8 9 10 11 12;
            2: 1 2 3 4 5 6 6 6 6 6 6 6;
        ])
    };
    ($name:ident, few) => {
        functions!($name: [
            1: 1 2 3 4 4 4 4 4 4 4 4 4;
            2: 1 2 3 4 4 4 4 4 4 4 4 4;
        ])
    };
    ($name:ident: $rows:tt) => {
        [
            table!($name, PANEL, $rows),
            table!($name, PLACE, $rows),
            table!($name, COPY, $rows),
            table!($name, PLACES, $rows),
        ]
    };
}

/// The tiles of an instruction set.
#[derive(Clone, Copy)]
pub struct Tiles {
    /// Floats in a register.
    pub lanes: usize,
    /// Maximum rows of a tile, by registers of columns: the accumulators that fit beside B's registers and one of A's.
    rows: &'static [usize],
    /// By how B is read, registers of columns, and rows.
    functions: [&'static [[Function; MOST_ROWS]]; 4],
}

/// With 32 registers, and with 16.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const ROWS_OF_32: [usize; 4] = [12, 12, 8, 6];
#[cfg(any(all(test, not(loom)), target_arch = "x86_64"))]
const ROWS_OF_16: [usize; 2] = [12, 6];

const MOST_ROWS: usize = 12;

impl Tiles {
    /// Those of a level that the processor has.
    pub fn of(isa: Isa) -> Tiles {
        isa.assert_detected();
        match isa.level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => Tiles { lanes: 16, rows: &ROWS_OF_32, functions: AVX512.each_ref().map(|f| &f[..]) },
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => Tiles { lanes: 8, rows: &ROWS_OF_16, functions: AVX2.each_ref().map(|f| &f[..]) },
            _ => Tiles { lanes: Baseline::LANES, rows: &BASELINE_ROWS, functions: BASELINE.each_ref().map(|f| &f[..]) },
        }
    }

    /// Those in plain Rust, which other targets than this one have as their baseline.
    #[cfg(all(test, not(loom)))]
    pub fn plain() -> Tiles {
        unsafe fn plain<const R: usize, const W: usize, const FROM: u8>(tile: &MicroTile) {
            // SAFETY: passed on.
            unsafe { run::<Four, R, W, FROM>(tile, finish::<Four>) }
        }
        use super::lanes::four::Four;
        static PLAIN: [[[Function; MOST_ROWS]; 2]; 4] = functions!(plain, 16);
        Tiles { lanes: Four::LANES, rows: &ROWS_OF_16, functions: PLAIN.each_ref().map(|f| &f[..]) }
    }

    /// Maximum registers of columns of a tile.
    pub fn registers(&self) -> usize {
        self.rows.len()
    }

    /// Maximum rows of a tile with this many registers of columns.
    pub fn most_rows(&self, registers: usize) -> usize {
        self.rows[registers - 1]
    }

    /// Maximum registers of columns of a tile with this many rows.
    pub fn most_registers(&self, rows: usize) -> usize {
        self.rows.iter().filter(|&&most| most >= rows).count()
    }

    /// Computes a tile.
    ///
    /// # Safety
    /// As `MicroKernels::multiply`.
    pub unsafe fn compute(&self, tile: &MicroTile) {
        let registers = tile.columns.div_ceil(self.lanes);
        assert!((1..=self.most_rows(registers)).contains(&tile.rows), "{} rows", tile.rows);
        let from = match tile.from {
            From::Panel => PANEL,
            From::Place => PLACE,
            From::Copy(..) => COPY,
            From::Places(_) => PLACES,
        };
        // SAFETY: passed on; the processor has the level, and the rows and the columns were compared.
        unsafe { self.functions[from as usize][registers - 1][tile.rows - 1](tile) }
    }
}

#[cfg(target_arch = "x86_64")]
static AVX512: [[[Function; MOST_ROWS]; 4]; 4] = functions!(avx512, 32);
#[cfg(target_arch = "x86_64")]
static AVX2: [[[Function; MOST_ROWS]; 2]; 4] = functions!(avx2, 16);
#[cfg(target_arch = "aarch64")]
const BASELINE_ROWS: [usize; 4] = ROWS_OF_32;
#[cfg(target_arch = "aarch64")]
static BASELINE: [[[Function; MOST_ROWS]; 4]; 4] = functions!(baseline, 32);
// Only processors without AVX2 come here: few shapes do, which is less to compile and to load.
#[cfg(not(target_arch = "aarch64"))]
const BASELINE_ROWS: [usize; 2] = [4, 4];
#[cfg(not(target_arch = "aarch64"))]
static BASELINE: [[[Function; MOST_ROWS]; 2]; 4] = functions!(baseline, few);

/// # Safety
/// As `compute`, with R rows and W registers of columns.
unsafe fn baseline<const R: usize, const W: usize, const FROM: u8>(tile: &MicroTile) {
    // SAFETY: passed on.
    unsafe { run::<Baseline, R, W, FROM>(tile, finish::<Baseline>) }
}

/// # Safety
/// As `compute`, with R rows and W registers of columns.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512<const R: usize, const W: usize, const FROM: u8>(tile: &MicroTile) {
    // SAFETY: passed on.
    unsafe { run::<__m512, R, W, FROM>(tile, finish_avx512) }
}

/// # Safety
/// As `compute`, with R rows and W registers of columns.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<const R: usize, const W: usize, const FROM: u8>(tile: &MicroTile) {
    // SAFETY: passed on.
    unsafe { run::<__m256, R, W, FROM>(tile, finish_avx2) }
}

/// # Safety
/// As `compute`, with R rows and W registers of columns, on a processor with the instructions of V.
#[inline(always)]
unsafe fn run<V: Vector, const R: usize, const W: usize, const FROM: u8>(tile: &MicroTile, finish: Finish) {
    let MicroTile { columns, depth, a, ahead, b, c, c_stride, scale, epilogue, .. } = *tile;
    let (mut panel, pitch) = match tile.from {
        From::Copy(panel, pitch) => (panel, pitch),
        _ => (std::ptr::null_mut(), 0),
    };
    let mut places = if let From::Places(places) = tile.from { places } else { std::ptr::null() };
    let last = columns - (W - 1) * V::LANES;
    // SAFETY: rows, columns and steps of the tile.
    unsafe {
        let mut sums = [[V::splat(0.0); W]; R];
        // When a sum ends, the lines of the result, and of what is added to it, may be far away, each row in a page of
        // its own. They are asked for one by one: all at once would take the places in which B's lines are waited for.
        let (mut to, mut addend, mut addend_stride) = (c, epilogue.addend, epilogue.addend_stride);
        if addend.is_null() {
            (addend, addend_stride) = (c, c_stride);
        }
        let (mut line, mut rows_of_lines) = (0, R);
        if depth / STEPS < R * (W * V::LANES).div_ceil(LINE) {
            for column in (0..W * V::LANES).step_by(LINE) {
                for r in 0..R {
                    ask_to_write(c.wrapping_add(r * c_stride + column));
                    prefetch(addend.wrapping_add(r * addend_stride + column));
                }
            }
            rows_of_lines = 0;
        }
        let (mut of_a, mut of_b) = (a.data, b.data);
        let mut left = depth;
        while left >= STEPS {
            if rows_of_lines > 0 {
                ask_to_write(to.wrapping_add(line));
                prefetch(addend.wrapping_add(line));
                line += LINE;
                if line >= W * V::LANES {
                    (line, rows_of_lines) = (0, rows_of_lines - 1);
                    (to, addend) = (to.wrapping_add(c_stride), addend.wrapping_add(addend_stride));
                }
            }
            // The first condition divides the loop into two, of which one has neighbours in a row of A.
            if a.depth == 1 && (depth - left).is_multiple_of(LINE) {
                for r in 0..R {
                    prefetch(ahead.data.wrapping_add(r * ahead.stride + depth - left));
                }
            }
            for step in 0..STEPS {
                let row = if FROM == PLACES { of_b.add(*places.add(step)) } else { of_b.add(step * b.depth) };
                let to = panel.wrapping_add(step * pitch);
                one::<V, R, W, FROM>((a.across, b.depth), last, of_a.add(step * a.depth), row, to, &mut sums);
                // ORDERING: for the compiler alone, which else loads A's elements of all steps at once, as they are
                // neighbours, and has no registers left for the sums. It is for those whose sums do not settle.
                compiler_fence(Ordering::SeqCst);
            }
            // Not used behind the last row.
            of_a = of_a.wrapping_add(STEPS * a.depth);
            of_b = of_b.wrapping_add(STEPS * b.depth);
            places = places.wrapping_add(STEPS);
            panel = panel.wrapping_add(STEPS * pitch);
            left -= STEPS;
        }
        while left > 0 {
            let row = if FROM == PLACES { of_b.add(*places) } else { of_b };
            one::<V, R, W, FROM>((a.across, b.depth), last, of_a, row, panel, &mut sums);
            of_a = of_a.wrapping_add(a.depth);
            of_b = of_b.wrapping_add(b.depth);
            places = places.wrapping_add(1);
            panel = panel.wrapping_add(pitch);
            left -= 1;
        }
        let plain = scale.alpha == 1.0 && (scale.beta == 0.0 || scale.beta == 1.0);
        if plain && (last == V::LANES || V::HAS_MASKS) {
            if scale.beta == 1.0 {
                add_rows(&mut sums, c, c_stride, last);
            }
            if !epilogue.columns.is_null() {
                add_rows(&mut sums, epilogue.columns, 0, last);
            }
            if !epilogue.rows.is_null() {
                for (r, row) in sums.iter_mut().enumerate() {
                    let more = V::splat(*epilogue.rows.add(r));
                    row.iter_mut().for_each(|sum| *sum = sum.add(more));
                }
            }
            if !epilogue.addend.is_null() {
                add_rows(&mut sums, epilogue.addend, epilogue.addend_stride, last);
            }
            if epilogue.relu {
                sums.iter_mut().flatten().for_each(|sum| *sum = relu(*sum));
            }
            // By reference: arrays that are iterated by value are moved through memory, in pieces of other sizes.
            for (r, row) in sums.iter().enumerate() {
                for (w, sum) in row.iter().enumerate() {
                    let to = c.add(r * c_stride + w * V::LANES);
                    if V::HAS_MASKS && w + 1 == W && last != V::LANES {
                        sum.store_part(to, last)
                    } else {
                        sum.store(to)
                    }
                }
            }
        } else {
            // A copy: accumulators whose address escapes would live in memory.
            let copy = sums;
            finish(tile, copy.as_ptr().cast());
        }
    }
}

/// Adds rows that are `stride` apart, each with `last` floats for its last register.
///
/// # Safety
/// There are so many floats, and the processor has the instructions of V.
#[inline(always)]
unsafe fn add_rows<V: Vector, const R: usize, const W: usize>(
    sums: &mut [[V; W]; R],
    more: *const f32,
    stride: usize,
    last: usize,
) {
    for (r, row) in sums.iter_mut().enumerate() {
        for (w, sum) in row.iter_mut().enumerate() {
            // SAFETY: as demanded of the caller.
            unsafe {
                let from = more.add(r * stride + w * V::LANES);
                *sum = sum.add(if V::HAS_MASKS && w + 1 == W && last != V::LANES {
                    V::load_first(from, last)
                } else {
                    V::load(from)
                });
            }
        }
    }
}

/// max(x, 0); a NaN and a zero stay what they are.
///
/// # Safety
/// The processor has the instructions of V.
#[inline(always)]
unsafe fn relu<V: Vector>(x: V) -> V {
    // SAFETY: as demanded of the caller.
    unsafe { V::splat(0.0).max(x) }
}

/// One step along K.
///
/// # Safety
/// As `run`; `of_a`, `of_b` and `panel` are the step's.
#[inline(always)]
unsafe fn one<V: Vector, const R: usize, const W: usize, const FROM: u8>(
    (across_a, depth_b): (usize, usize),
    last: usize,
    of_a: *const f32,
    of_b: *const f32,
    panel: *mut f32,
    sums: &mut [[V; W]; R],
) {
    // SAFETY: as demanded of the caller.
    unsafe {
        if FROM == COPY {
            for column in (0..W * V::LANES).step_by(LINE) {
                ask_to_read(of_b.wrapping_add(AHEAD * depth_b + column));
            }
        }
        let mut row = [V::splat(0.0); W];
        for (w, lanes) in row.iter_mut().enumerate() {
            let from = of_b.add(w * V::LANES);
            *lanes = if FROM == PLACE && w + 1 == W { V::load_first(from, last) } else { V::load(from) };
        }
        if FROM == COPY {
            for (w, lanes) in row.into_iter().enumerate() {
                lanes.store(panel.add(w * V::LANES));
            }
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            let of_a = V::splat(*of_a.add(r * across_a));
            for (sum, of_b) in sums.iter_mut().zip(row) {
                *sum = of_a.mul_add(of_b, *sum);
            }
            // Of so many rows compilers else load A's elements at once, and have no registers left for the sums.
            if R >= MANY_ROWS && W > 1 {
                for sum in sums {
                    *sum = sum.settled();
                }
            }
        }
    }
}

/// Ends a tile with partial last registers, or with scaling. The accumulators are stored row after row.
type Finish = unsafe fn(&MicroTile, *const f32);

/// # Safety
/// As `compute`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn finish_avx512(tile: &MicroTile, sums: *const f32) {
    // SAFETY: passed on.
    unsafe { finish::<__m512>(tile, sums) }
}

/// # Safety
/// As `compute`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn finish_avx2(tile: &MicroTile, sums: *const f32) {
    // SAFETY: passed on.
    unsafe { finish::<__m256>(tile, sums) }
}

/// # Safety
/// As `compute`, on a processor with the instructions of V.
#[inline(always)]
unsafe fn finish<V: Vector>(tile: &MicroTile, sums: *const f32) {
    let MicroTile { rows, columns, c, c_stride, scale, epilogue, .. } = *tile;
    let width = columns.next_multiple_of(V::LANES);
    for (row, column) in (0..rows).flat_map(|row| (0..columns).step_by(V::LANES).map(move |column| (row, column))) {
        let count = V::LANES.min(columns - column);
        // SAFETY: positions in the tile and its accumulators.
        unsafe {
            let c = c.add(row * c_stride + column);
            let product = V::splat(scale.alpha).mul(V::load(sums.add(row * width + column)));
            let mut all = match scale.beta {
                0.0 => product,
                beta => V::splat(beta).mul_add(V::load_first(c, count), product),
            };
            if !epilogue.columns.is_null() {
                all = all.add(V::load_first(epilogue.columns.add(column), count));
            }
            if !epilogue.rows.is_null() {
                all = all.add(V::splat(*epilogue.rows.add(row)));
            }
            if !epilogue.addend.is_null() {
                all = all.add(V::load_first(epilogue.addend.add(row * epilogue.addend_stride + column), count));
            }
            if epilogue.relu {
                all = relu(all);
            }
            all.store_part(c, count);
        }
    }
}

/// Prefetches a line that will be read, into the L2 cache.
#[inline(always)]
pub fn prefetch(from: *const f32) {
    // SAFETY: a prefetch may use any address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(from.cast());
    }
    let _ = from;
}

/// Prefetches a line that will be written.
#[inline(always)]
fn ask_to_write(to: *mut f32) {
    // SAFETY: a prefetch may use any address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_ET0>(to.cast());
    }
    let _ = to;
}

/// Prefetches a line that will be read.
#[inline(always)]
pub fn ask_to_read(from: *const f32) {
    // SAFETY: a prefetch may use any address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(from.cast());
    }
    let _ = from;
}
