//! Micro-kernels: the innermost loop of a matrix product, which keeps a small tile of accumulators in registers.
//!
//! One set per instruction set, chosen at run time: weir's own for AVX2 and AVX-512 (`tile`), those of `gemm-f32` for
//! others. The driver relies on one property, which `gemm_tests` checks: an element of the tile is the chain
//! `x = a[k] * b[k] + x` from zero and in the order of k, in every micro-kernel of a set, whole tile or remainder. So
//! the bits of an element do not depend on its position in a tile.

use super::isa::Isa;
pub use super::step::{From, MicroTile, Scale, Strided};
#[cfg(target_arch = "x86_64")]
use super::tile;
use gemm_common::microkernel::MicroKernelFn;
use gemm_f32::microkernel;

/// The micro-kernels of one instruction set.
#[derive(Clone, Copy)]
pub struct MicroKernels {
    pub isa: Isa,
    /// Floats in a vector register.
    pub lanes: usize,
    /// Maximum columns of a tile, a multiple of `lanes`.
    pub width: usize,
    /// Maximum rows of a tile of full width.
    pub rows: usize,
    /// Whether A should be packed if neighbours along M are not neighbours in memory.
    pub packs_a: bool,
    kind: MicroKernelKind,
}

#[derive(Clone, Copy)]
enum MicroKernelKind {
    /// weir's own.
    #[cfg(target_arch = "x86_64")]
    Own,
    /// One function per number of vectors and number of rows; the rows vary fastest.
    Table(&'static [MicroKernelFn<f32>]),
}

macro_rules! set {
    ($name:ident, $isa:ident, $lanes:expr, $packs_a:expr, $module:ident) => {
        fn $name() -> MicroKernels {
            use microkernel::$module::f32::{MR_DIV_N, NR, UKR};
            static TABLE: [[MicroKernelFn<f32>; NR]; MR_DIV_N] = UKR;
            MicroKernels {
                isa: Isa::$isa,
                lanes: $lanes,
                width: $lanes * MR_DIV_N,
                rows: NR,
                packs_a: $packs_a,
                kind: MicroKernelKind::Table(TABLE.as_flattened()),
            }
        }
    };
}

set!(scalar, Portable, 1, false, scalar);
#[cfg(target_arch = "aarch64")]
set!(neon, Neon, 4, true, neon);

#[cfg(target_arch = "x86_64")]
fn own(isa: Isa) -> MicroKernels {
    let (lanes, registers) = tile::registers(isa);
    let rows = tile::most_rows(isa, registers);
    MicroKernels { isa, lanes, width: lanes * registers, rows, packs_a: false, kind: MicroKernelKind::Own }
}

impl MicroKernels {
    /// The set of this process.
    pub fn best() -> MicroKernels {
        Self::of(Isa::best())
    }

    /// The set for a supported level.
    pub fn of(isa: Isa) -> MicroKernels {
        assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => own(Isa::Avx512),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => own(Isa::Avx2),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon(),
            _ => scalar(),
        }
    }

    /// Whether micro-kernels read B in place, partial registers included, and can copy it.
    pub fn reads_in_place(&self) -> bool {
        !matches!(self.kind, MicroKernelKind::Table(_))
    }

    /// Maximum rows of a tile with this many columns.
    pub fn rows_of(&self, columns: usize) -> usize {
        match self.kind {
            #[cfg(target_arch = "x86_64")]
            MicroKernelKind::Own => tile::most_rows(self.isa, columns.div_ceil(self.lanes)),
            MicroKernelKind::Table(_) => self.rows,
        }
    }

    /// Maximum columns of a tile with this many rows.
    pub fn columns_of(&self, rows: usize) -> usize {
        match self.kind {
            #[cfg(target_arch = "x86_64")]
            MicroKernelKind::Own => tile::most_registers(self.isa, rows) * self.lanes,
            MicroKernelKind::Table(_) => self.width,
        }
    }

    /// Computes a tile.
    ///
    /// # Safety
    /// At least one row and one column, at most `rows_of` and `width` of them. `c` has `rows` rows of `columns`
    /// writable floats, `c_stride` apart; `a` has `rows` times `depth` readable floats, `b` `depth` times `columns`, in
    /// a panel rounded up to whole vectors (`lanes`). The panel of a copy has `depth` rows of writable whole vectors.
    /// Writes overlap no reads.
    pub unsafe fn multiply(&self, tile: &MicroTile) {
        debug_assert!(
            (1..=self.width).contains(&tile.columns) && (1..=self.rows_of(tile.columns)).contains(&tile.rows)
        );
        debug_assert!(match tile.from {
            From::Panel => true,
            From::Place => self.reads_in_place() || tile.columns.is_multiple_of(self.lanes),
            From::Copy(..) => self.reads_in_place(),
        });
        match self.kind {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as demanded of the caller.
            MicroKernelKind::Own => unsafe { tile::compute(self.isa, tile) },
            MicroKernelKind::Table(table) => {
                let function = table[(tile.columns.div_ceil(self.lanes) - 1) * self.rows + tile.rows - 1];
                // SAFETY: as demanded of the caller; a set exists only where its instructions do (`of`).
                unsafe { call(function, tile) }
            }
        }
    }
}

/// # Safety
/// As `multiply`, with the function for such a tile.
unsafe fn call(function: MicroKernelFn<f32>, tile: &MicroTile) {
    let MicroTile { rows, columns, depth, a, b, c, c_stride, scale, .. } = *tile;
    // The role of the old C: 0 ignored, 1 added to, 2 scaled first.
    let old = if scale.beta == 0.0 { 0 } else { 2 - (scale.beta == 1.0) as u8 };
    // The micro-kernels use column-major tiles: their rows are our columns, and their left operand is our B. SAFETY: as
    // demanded of the caller.
    unsafe {
        function(
            columns,
            rows,
            depth,
            c,
            b.data,
            a.data,
            c_stride as isize,
            1,
            b.depth as isize,
            a.depth as isize,
            a.across as isize,
            scale.beta,
            scale.alpha,
            old,
            false,
            false,
            false,
            std::ptr::null(),
        );
    }
}
