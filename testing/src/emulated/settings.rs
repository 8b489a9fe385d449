//! How a device is emulated.

use crate::abi::weir_emulation;
use crate::abi::weir_emulation_flags as F;
use crate::abi::weir_emulation_regions_value as R;
use crate::base::{Error, Result};
use std::sync::Arc;

const MEMORY_BYTES: u64 = 1 << 30;

/// How a device is emulated; the members are described at `weir_emulation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emulation {
    pub seed: u64,
    pub flags: u64,
    pub latency_ns: u64,
    pub bytes_per_us: u64,
    pub kernel_ns: u64,
    pub memory_bytes: u64,
    pub fail_operation: u64,
    pub fail_copy: u64,
    pub fail_allocation: u64,
    pub lose_operation: u64,
    pub replay_ns: u64,
    pub regions: u64,
    pub fail_region: u64,
}

impl Emulation {
    pub const CHECK: u64 = F::WEIR_EMULATION_CHECK as u64;
    pub const STRICT: u64 = F::WEIR_EMULATION_STRICT as u64;
    pub const PRECISE: u64 = F::WEIR_EMULATION_PRECISE as u64;
    pub const NO_REGIONS: u64 = R::WEIR_EMULATION_REGIONS_NONE as u64;
    pub const ALL_REGIONS: u64 = R::WEIR_EMULATION_REGIONS_ALL as u64;
    pub const SOME_REGIONS: u64 = R::WEIR_EMULATION_REGIONS_SOME as u64;
    pub const DECLINED_REGIONS: u64 = R::WEIR_EMULATION_REGIONS_DECLINED as u64;

    /// Refuses invalid settings.
    pub fn check(&self) -> Result<()> {
        let known = Self::CHECK | Self::STRICT | Self::PRECISE;
        if self.flags & !known != 0 {
            return Err(Error::invalid(format!("flags has unknown bits {:#x}", self.flags & !known)));
        }
        if self.is_strict() && !self.checks() {
            return Err(Error::invalid("flags has WEIR_EMULATION_STRICT without WEIR_EMULATION_CHECK"));
        }
        if self.regions > Self::DECLINED_REGIONS {
            let text = format!("regions is {}, expected 0 to {}", self.regions, Self::DECLINED_REGIONS);
            return Err(Error::invalid(text));
        }
        Ok(())
    }

    /// With defaults filled in.
    pub(super) fn settled(self) -> Emulation {
        let memory_bytes = if self.memory_bytes == 0 { MEMORY_BYTES } else { self.memory_bytes };
        Emulation { memory_bytes, ..self }
    }

    pub(super) fn checks(&self) -> bool {
        self.flags & Self::CHECK != 0
    }

    pub(super) fn is_strict(&self) -> bool {
        self.flags & Self::STRICT != 0
    }

    pub(super) fn is_precise(&self) -> bool {
        self.flags & Self::PRECISE != 0
    }

    /// The modelled duration of an operation: of a copy or fill of `bytes`, or of a kernel if there are none.
    pub(super) fn duration_ns(&self, bytes: Option<usize>) -> u64 {
        let work = match bytes {
            None => self.kernel_ns,
            Some(_) if self.bytes_per_us == 0 => 0,
            Some(bytes) => (bytes as u64).saturating_mul(1000) / self.bytes_per_us,
        };
        self.latency_ns.saturating_add(work)
    }
}

impl Emulation {
    /// The settings as the device takes them: a weir_emulation.
    pub fn settings(self) -> Arc<Vec<u8>> {
        let given = weir_emulation::from(self);
        let (from, bytes) = ((&raw const given).cast::<u8>(), size_of::<weir_emulation>());
        // SAFETY: a struct without padding, since all of its members are of eight bytes.
        Arc::new(unsafe { std::slice::from_raw_parts(from, bytes) }.to_vec())
    }

    /// Reads settings; an empty slice gives the defaults.
    pub fn of_settings(settings: &[u8]) -> Result<Emulation> {
        let bytes = size_of::<weir_emulation>();
        match settings.len() {
            0 => Ok(Emulation::default()),
            given if given == bytes => {
                // SAFETY: so many bytes, and any are valid.
                let given = unsafe { settings.as_ptr().cast::<weir_emulation>().read_unaligned() };
                Ok(given.into())
            }
            given => Err(Error::invalid(format!("settings have {given} bytes, a weir_emulation has {bytes}"))),
        }
    }
}

impl From<weir_emulation> for Emulation {
    fn from(given: weir_emulation) -> Emulation {
        Emulation {
            seed: given.seed,
            flags: given.flags,
            latency_ns: given.latency_ns,
            bytes_per_us: given.bytes_per_us,
            kernel_ns: given.kernel_ns,
            memory_bytes: given.memory_bytes,
            fail_operation: given.fail_operation,
            fail_copy: given.fail_copy,
            fail_allocation: given.fail_allocation,
            lose_operation: given.lose_operation,
            replay_ns: given.replay_ns,
            regions: given.regions,
            fail_region: given.fail_region,
        }
    }
}

impl From<Emulation> for weir_emulation {
    fn from(set: Emulation) -> weir_emulation {
        weir_emulation {
            struct_size: size_of::<weir_emulation>(),
            seed: set.seed,
            flags: set.flags,
            latency_ns: set.latency_ns,
            bytes_per_us: set.bytes_per_us,
            kernel_ns: set.kernel_ns,
            memory_bytes: set.memory_bytes,
            fail_operation: set.fail_operation,
            fail_copy: set.fail_copy,
            fail_allocation: set.fail_allocation,
            lose_operation: set.lose_operation,
            replay_ns: set.replay_ns,
            regions: set.regions,
            fail_region: set.fail_region,
        }
    }
}
