//! Micro-kernels: the innermost loop of a matrix product, which keeps a small tile of the result in registers.
//!
//! They come from `gemm-f32`, one set per instruction set; the set is chosen at run time. What the driver builds
//! on, and `gemm_tests` checks: an element of the tile is the chain `x = a[k] * b[k] + x` from zero and in the
//! order of k, in every micro-kernel of a set, whole tile or remainder. So the bits of an element do not depend on
//! where in a tile it lies.

use super::isa::Isa;
use gemm_common::microkernel::MicroKernelFn;
use gemm_f32::microkernel;

type Function = MicroKernelFn<f32>;

/// The micro-kernels of one instruction set.
#[derive(Clone, Copy)]
pub struct MicroKernels {
    pub isa: Isa,
    /// Floats in a vector register.
    pub lanes: usize,
    /// Most columns of a tile, a multiple of `lanes`.
    pub width: usize,
    /// Most rows of a tile.
    pub rows: usize,
    /// Whether rows of A are read well only if neighbours along M are neighbours in memory.
    pub packs_a: bool,
    /// One function per number of vectors and number of rows; the rows count fastest.
    pub table: &'static [Function],
}

/// Where a matrix begins and how far its steps are.
#[derive(Clone, Copy)]
pub struct Strided {
    pub data: *const f32,
    /// Distance between neighbours along k.
    pub depth: usize,
    /// Distance between neighbours along the other dimension.
    pub across: usize,
}

/// What a product and what it is added to are multiplied with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    pub alpha: f32,
    pub beta: f32,
}

macro_rules! set {
    ($name:ident, $isa:ident, $lanes:expr, $packs_a:expr, $module:ident) => {
        fn $name() -> MicroKernels {
            use microkernel::$module::f32::{MR_DIV_N, NR, UKR};
            static TABLE: [[Function; NR]; MR_DIV_N] = UKR;
            MicroKernels {
                isa: Isa::$isa,
                lanes: $lanes,
                width: $lanes * MR_DIV_N,
                rows: NR,
                packs_a: $packs_a,
                table: TABLE.as_flattened(),
            }
        }
    };
}

set!(scalar, Portable, 1, false, scalar);
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
set!(fma, Avx2, 8, false, fma);
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
set!(avx512, Avx512, 16, false, avx512f);
#[cfg(target_arch = "aarch64")]
set!(neon, Neon, 4, true, neon);

impl MicroKernels {
    /// The set of this process.
    pub fn best() -> MicroKernels {
        Self::of(Isa::best())
    }

    /// The set for a level that the processor has.
    pub fn of(isa: Isa) -> MicroKernels {
        assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
        match isa {
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => avx512(),
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Isa::Avx2 => fma(),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon(),
            _ => scalar(),
        }
    }

    /// Computes a tile of C: `scale.beta` * C + `scale.alpha` * A * B. With a beta of zero C is not read.
    ///
    /// # Safety
    /// `1 <= rows <= self.rows` and `1 <= columns <= self.width`. `c` has `rows` rows of `columns` writable floats,
    /// `c_stride` apart. `a` has `rows` times `depth` readable floats. `b` has `depth` times `columns` rounded up
    /// to whole vectors (`lanes`), and neighbouring columns of it are neighbours in memory (`b.across` is 1).
    #[expect(clippy::too_many_arguments, reason = "the operands of a product")]
    pub unsafe fn multiply(
        &self,
        rows: usize,
        columns: usize,
        depth: usize,
        a: Strided,
        b: Strided,
        c: *mut f32,
        c_stride: usize,
        scale: Scale,
    ) {
        debug_assert!((1..=self.rows).contains(&rows) && (1..=self.width).contains(&columns) && b.across == 1);
        let function = self.table[(columns.div_ceil(self.lanes) - 1) * self.rows + rows - 1];
        // What becomes of the old C: 0 nothing, 1 it is added to, 2 it is scaled first.
        let old = if scale.beta == 0.0 { 0 } else { 2 - (scale.beta == 1.0) as u8 };
        // The micro-kernels speak of column-major tiles: their rows are our columns, and their left operand is our B.
        // SAFETY: as demanded of the caller; a set is given out only where its instructions exist (`of`).
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
}
