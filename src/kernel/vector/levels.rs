//! Plain loops that the compiler vectorises, compiled once for each level.
//!
//! A loop is a value whose `run`, with everything that it calls in its inner part, is always inlined into a function
//! with the level's instructions. No operation is fused or reordered: all levels give the same bits.

use super::isa::{Isa, SimdLevel};

/// Work that is compiled for every level.
pub trait LevelLoop {
    type Output;

    /// Must be `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

/// Runs it with the instructions of a supported level.
pub fn on<L: LevelLoop>(isa: Isa, work: L) -> L::Output {
    isa.assert_detected();
    match isa.level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX-512.
        SimdLevel::Avx512 => unsafe { avx512(work) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX2 and FMA.
        SimdLevel::Avx2 => unsafe { avx2(work) },
        _ => work.run(),
    }
}

/// As `on`, with AVX2 at most: for loops that gain little by more, as those that memory holds up.
pub fn up_to_avx2<L: LevelLoop>(isa: Isa, work: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    if isa.level >= SimdLevel::Avx2 {
        isa.assert_detected();
        // SAFETY: the processor has AVX2 and FMA.
        return unsafe { avx2(work) };
    }
    _ = isa;
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn avx512<L: LevelLoop>(work: L) -> L::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<L: LevelLoop>(work: L) -> L::Output {
    work.run()
}
