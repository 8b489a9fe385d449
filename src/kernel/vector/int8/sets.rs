//! The set of micro-kernels for a level.
#![forbid(unsafe_code)]

use super::micro::MicroKernelSet;
use super::portable;
use crate::kernel::vector::isa::Isa;

/// The set for a supported level.
pub fn of(isa: Isa) -> &'static MicroKernelSet {
    assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Amx => &super::amx::SET,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Vnni => &super::vnni::SET,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Avx512 => &super::avx2::SET,
        _ => &portable::SET,
    }
}

/// Another set for a supported level, for operands in which the products of any two neighbours along K add up to at
/// most 16 bits.
pub fn low(isa: Isa) -> Option<&'static MicroKernelSet> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Avx512 => Some(&super::avx2_low::SET),
        _ => None,
    }
}
