//! The set of micro-kernels for an instruction set.
#![forbid(unsafe_code)]

use super::micro::MicroKernelSet;
use crate::kernel::vector::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::kernel::vector::isa::SimdLevel;

/// The set for the processor's instructions.
pub fn of(isa: Isa) -> &'static MicroKernelSet {
    isa.assert_detected();
    #[cfg(target_arch = "x86_64")]
    return match isa {
        Isa { amx: true, .. } => &super::amx::SET,
        Isa { avx512_vnni: true, .. } => &super::vnni::SET,
        Isa { avx_vnni: true, .. } => &super::avx_vnni::SET,
        _ if isa.level >= SimdLevel::Avx2 => &super::avx2::SET,
        _ => &super::portable::SET,
    };
    #[cfg(not(target_arch = "x86_64"))]
    &super::portable::SET
}

/// Another set for them, for operands in which the products of any two neighbours along K add up to at
/// most 16 bits.
pub fn low(isa: Isa) -> Option<&'static MicroKernelSet> {
    #[cfg(target_arch = "x86_64")]
    if isa.level >= SimdLevel::Avx2 && !isa.has_byte_products() {
        return Some(&super::avx2_low::SET);
    }
    _ = isa;
    None
}
