//! Instruction sets: what the processor has, and what the inner loops use.
//!
//! An instruction set is a level of vectors and a few features beside it, which processors have in any mix: those that
//! multiply bytes. Loops over floats ask for the level alone. All kernels of a process use the same set, chosen once:
//! all that the processor has and that the environment variable WEIR_MAX_ISA allows. It never changes integer results;
//! floats may differ in the last bits. Tests choose sets themselves. AMX is only available to a process that has the
//! system's permission (`amx`).
#![forbid(unsafe_code)]

use crate::base::{Error, Result};
use crate::sync::OnceLock;

/// The instructions for vectors of floats. Each level has what those before it have, but for NEON, which belongs to
/// another architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SimdLevel {
    /// The baseline of the target.
    Portable,
    Neon,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512: F, BW and VL.
    Avx512,
}

/// The instructions that loops may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa {
    pub level: SimdLevel,
    /// Dot products of bytes in AVX2's registers (AVX-VNNI).
    pub avx_vnni: bool,
    /// Dot products of bytes in AVX-512's registers (AVX512-VNNI).
    pub avx512_vnni: bool,
    /// Tile products of bytes (AMX-INT8).
    pub amx: bool,
}

/// The sets with names. WEIR_MAX_ISA allows what the named one has.
const NAMES: [(&str, Isa); 7] = [
    ("portable", Isa::PORTABLE),
    ("neon", Isa::of(SimdLevel::Neon)),
    ("avx2", Isa::of(SimdLevel::Avx2)),
    ("avx_vnni", Isa { avx_vnni: true, ..Isa::of(SimdLevel::Avx2) }),
    ("avx512", Isa::of(SimdLevel::Avx512)),
    ("avx512_vnni", Isa { avx512_vnni: true, ..Isa::of(SimdLevel::Avx512) }),
    (AMX, Isa { avx_vnni: true, avx512_vnni: true, amx: true, ..Isa::of(SimdLevel::Avx512) }),
];

const VARIABLE: &str = "WEIR_MAX_ISA";
const AMX: &str = "amx";

fn named() -> Option<String> {
    std::env::var(VARIABLE).ok()
}

impl Isa {
    pub const PORTABLE: Isa = Isa::of(SimdLevel::Portable);

    /// Its name, if it has one.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|row| row.1 == self).map(|row| row.0)
    }

    /// A level alone.
    pub const fn of(level: SimdLevel) -> Isa {
        Isa { level, avx_vnni: false, avx512_vnni: false, amx: false }
    }

    /// The instructions that the processor has and the process may use; constant.
    pub fn detected() -> Isa {
        static DETECTED: OnceLock<Isa> = OnceLock::new();
        *DETECTED.get_or_init(Isa::detect)
    }

    #[cfg(target_arch = "x86_64")]
    fn detect() -> Isa {
        use std::arch::is_x86_feature_detected as has;
        let avx2 = has!("avx2") && has!("fma") && has!("f16c");
        let avx512 = avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512vl");
        let level = match (avx512, avx2) {
            (true, _) => SimdLevel::Avx512,
            (_, true) => SimdLevel::Avx2,
            _ => SimdLevel::Portable,
        };
        let avx512_vnni = avx512 && has!("avx512vnni");
        // Tests cover all sets.
        let asks = || cfg!(test) || named().is_some_and(|name| name.trim() == AMX);
        Isa { level, avx_vnni: avx2 && has!("avxvnni"), avx512_vnni, amx: avx512_vnni && super::amx::usable(asks()) }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detect() -> Isa {
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            return Isa::of(SimdLevel::Neon);
        }
        Isa::PORTABLE
    }

    /// Whether it has dot products of bytes.
    pub fn has_byte_products(self) -> bool {
        self.avx_vnni || self.avx512_vnni || self.amx
    }

    /// Whether it has all that another one has.
    pub fn has(self, other: Isa) -> bool {
        self.within(other) == other
    }

    /// What both have.
    fn within(self, other: Isa) -> Isa {
        let is_neon = |isa: Isa| isa.level == SimdLevel::Neon;
        Isa {
            // NEON and the levels of x86 have only the baseline in common.
            level: if is_neon(self) == is_neon(other) { self.level.min(other.level) } else { SimdLevel::Portable },
            avx_vnni: self.avx_vnni && other.avx_vnni,
            avx512_vnni: self.avx512_vnni && other.avx512_vnni,
            amx: self.amx && other.amx,
        }
    }

    /// Functions that are compiled for a set call it before they use it: others of its instructions end the process.
    pub fn assert_detected(self) {
        assert!(Isa::detected().has(self), "{self:?} on a processor with {:?}", Isa::detected());
    }

    /// The sets with names that the machine has, lowest first.
    pub fn available() -> impl Iterator<Item = Isa> {
        NAMES.iter().map(|row| row.1).filter(|&isa| Isa::detected().has(isa))
    }

    /// The levels that the machine has, lowest first: for loops that use nothing else.
    pub fn levels() -> impl Iterator<Item = Isa> {
        Isa::available().filter(|&isa| isa == Isa::of(isa.level))
    }

    /// The set of this process, or the error in WEIR_MAX_ISA.
    pub fn checked() -> Result<Isa> {
        static CHOICE: OnceLock<Result<Isa, String>> = OnceLock::new();
        let choice = CHOICE.get_or_init(|| choose(named().as_deref(), Isa::detected()));
        choice.clone().map_err(Error::invalid)
    }

    /// The set of this process. Calls that may fail use `checked`; this is not reached after a failure, and the
    /// portable set is always correct.
    pub fn best() -> Isa {
        Isa::checked().unwrap_or(Isa::PORTABLE)
    }
}

/// What was detected, up to the set that was named.
fn choose(named: Option<&str>, detected: Isa) -> Result<Isa, String> {
    let Some(name) = named else { return Ok(detected) };
    match NAMES.iter().find(|row| row.0 == name.trim()) {
        Some(&(_, most)) => Ok(detected.within(most)),
        None => {
            let known: Vec<_> = NAMES.iter().map(|row| row.0).collect();
            Err(format!("the environment variable {VARIABLE} is '{name}', expected one of {}", known.join(", ")))
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn by_name(name: &str) -> Isa {
        NAMES.iter().find(|row| row.0 == name).unwrap().1
    }

    #[test]
    fn the_variable_only_takes_away() {
        let on = |detected: Isa, name| choose(Some(name), detected).unwrap();
        let [avx2, avx_vnni, avx512, vnni, amx] = ["avx2", "avx_vnni", "avx512", "avx512_vnni", AMX].map(by_name);
        let neon = Isa::of(SimdLevel::Neon);
        assert_eq!(choose(None, avx2), Ok(avx2));
        assert_eq!(on(avx2, "avx512_vnni"), avx2);
        assert_eq!([on(vnni, "portable"), on(vnni, " avx2 ")], [Isa::PORTABLE, avx2]);
        assert_eq!([on(vnni, "avx512"), on(vnni, "neon")], [avx512, Isa::PORTABLE]);
        assert_eq!([on(neon, "neon"), on(neon, "portable"), on(neon, "avx2")], [neon, Isa::PORTABLE, Isa::PORTABLE]);
        // Features come in any mix: AVX512-VNNI without AVX-VNNI, and the other way round.
        assert_eq!([on(vnni, "avx_vnni"), on(avx_vnni, "avx512_vnni"), on(avx_vnni, AMX)], [avx2, avx2, avx_vnni]);
        assert_eq!([on(amx, "avx_vnni"), on(amx, "avx512_vnni")], [avx_vnni, vnni]);
        assert!(amx.has(vnni) && amx.has(avx_vnni) && !vnni.has(avx_vnni) && !avx_vnni.has(avx512) && !amx.has(neon));
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let text = choose(Some("AVX9"), by_name("avx2")).unwrap_err();
        assert!(text.contains("WEIR_MAX_ISA is 'AVX9', expected one of portable, neon, avx2, avx_vnni"), "{text}");
        assert!(choose(Some(""), by_name("avx2")).is_err());
    }

    #[test]
    fn the_best_set_is_detected() {
        assert_eq!(Isa::available().next(), Some(Isa::PORTABLE));
        assert_eq!(Isa::levels().last(), Some(Isa::of(Isa::detected().level)));
        assert!(Isa::detected().has(Isa::best()));
        Isa::best().assert_detected();
    }
}
