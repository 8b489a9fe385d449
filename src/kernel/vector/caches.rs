//! The sizes of the caches that blocks of data are made for. They change how work is divided, never a result.
#![forbid(unsafe_code)]

use crate::sync::OnceLock;

/// Bytes of a core's caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    pub l1: usize,
    pub l2: usize,
}

impl Caches {
    /// Those of most processors, where nothing better is known.
    const USUAL: Caches = Caches { l1: 32 << 10, l2: 512 << 10 };
    /// Divisions are made for caches in these ranges.
    const L1: [usize; 2] = [16 << 10, 128 << 10];
    const L2: [usize; 2] = [128 << 10, 4 << 20];

    /// Those of this machine; constant.
    pub fn of_machine() -> &'static Caches {
        static FOUND: OnceLock<Caches> = OnceLock::new();
        FOUND.get_or_init(|| {
            let Caches { l1, l2 } = found().unwrap_or(Caches::USUAL);
            Caches { l1: l1.clamp(Caches::L1[0], Caches::L1[1]), l2: l2.clamp(Caches::L2[0], Caches::L2[1]) }
        })
    }

    /// Floats of a part of the L1 cache.
    pub fn floats_of_l1(&self, part: usize) -> usize {
        self.l1 / size_of::<f32>() / part
    }

    /// Floats of a part of the L2 cache.
    pub fn floats_of_l2(&self, part: usize) -> usize {
        self.l2 / size_of::<f32>() / part
    }
}

/// The processor's own answer: the leaf of "deterministic cache parameters", which AMD has under another number (Intel
/// SDM volume 2, CPUID 4; AMD64 Architecture Programmer's Manual volume 3, CPUID 8000_001D). A cache that several cores
/// share counts in equal parts; two threads of a core count as one core.
#[cfg(target_arch = "x86_64")]
fn found() -> Option<Caches> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const AMD: u32 = 0x8000_001D;
    let highest = __cpuid(0);
    let amd = highest.ebx == u32::from_le_bytes(*b"Auth") || highest.ebx == u32::from_le_bytes(*b"Hygo");
    let leaf = match amd {
        true if __cpuid(0x8000_0000).eax >= AMD && __cpuid(0x8000_0001).ecx & 1 << 22 != 0 => AMD,
        false if highest.eax >= 4 => 4,
        _ => return None,
    };
    let (mut l1, mut l2) = (None, None);
    for number in 0..8 {
        let cache = __cpuid_count(leaf, number);
        let (kind, level) = (cache.eax & 31, cache.eax >> 5 & 7);
        if kind == 0 {
            break;
        }
        let part = |from: u32, bits: u32| ((cache.ebx >> from & ((1 << bits) - 1)) + 1) as usize;
        let bytes = part(22, 10) * part(12, 10) * part(0, 12) * (cache.ecx as usize + 1);
        let threads = ((cache.eax >> 14 & 0xFFF) + 1) as usize;
        match (kind, level) {
            (1 | 3, 1) => l1 = Some(bytes),
            (1 | 3, 2) => l2 = Some(bytes / threads.div_ceil(2)),
            _ => {}
        }
    }
    Some(Caches { l1: l1?, l2: l2? })
}

/// The system's answer for the first processor.
#[cfg(not(target_arch = "x86_64"))]
fn found() -> Option<Caches> {
    let read = |number: usize, what: &str| {
        std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{number}/{what}")).ok()
    };
    let (mut l1, mut l2) = (None, None);
    for number in 0..8 {
        let Some(kind) = read(number, "type") else { break };
        let size = read(number, "size")?;
        let bytes = size.trim().strip_suffix('K')?.parse::<usize>().ok()? << 10;
        match (kind.trim(), read(number, "level")?.trim()) {
            ("Data" | "Unified", "1") => l1 = Some(bytes),
            ("Data" | "Unified", "2") => l2 = Some(bytes),
            _ => {}
        }
    }
    Some(Caches { l1: l1?, l2: l2? })
}
