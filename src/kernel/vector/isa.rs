//! Instruction sets: those of the processor, and the one that the inner loops use.
//!
//! All kernels use one level, chosen once per process: the best one of the processor that the environment variable
//! WEIR_MAX_ISA allows. It never changes integer results; floats may differ in the last bits. Tests choose a level
//! themselves. AMX is only available to a process that has the system's permission (`amx`).
#![forbid(unsafe_code)]

use crate::base::{Error, Result};
use crate::sync::OnceLock;

/// Levels, each better than those before it. A level that belongs to another architecture is never detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// The baseline of the target.
    Portable,
    Neon,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512: F and BW.
    Avx512,
    /// AVX-512 with int8 dot products (VNNI).
    Avx512Vnni,
    /// AVX-512 with AMX int8 tile products.
    Amx,
}

const NAMES: [(&str, Isa); 6] = [
    ("portable", Isa::Portable),
    ("neon", Isa::Neon),
    ("avx2", Isa::Avx2),
    ("avx512", Isa::Avx512),
    ("avx512_vnni", Isa::Avx512Vnni),
    (AMX, Isa::Amx),
];

const VARIABLE: &str = "WEIR_MAX_ISA";
const AMX: &str = "amx";

fn named() -> Option<String> {
    std::env::var(VARIABLE).ok()
}

impl Isa {
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|row| row.1 == self).map_or("", |row| row.0)
    }

    /// The best level that the processor has and the process may use; constant.
    pub fn detected() -> Isa {
        static DETECTED: OnceLock<Isa> = OnceLock::new();
        *DETECTED.get_or_init(Isa::detect)
    }

    fn detect() -> Isa {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("fma") && has!("f16c");
            let avx512 = avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512vl");
            if avx512 && has!("avx512vnni") {
                // Tests cover all levels.
                #[cfg(target_arch = "x86_64")]
                if super::amx::usable(cfg!(test) || named().is_some_and(|name| name.trim() == AMX)) {
                    return Isa::Amx;
                }
                return Isa::Avx512Vnni;
            }
            if avx512 {
                return Isa::Avx512;
            }
            if avx2 {
                return Isa::Avx2;
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            return Isa::Neon;
        }
        Isa::Portable
    }

    /// The levels that this target supports and the machine has, lowest first.
    pub fn available() -> impl Iterator<Item = Isa> {
        let best = Isa::detected();
        let exists = move |isa: Isa| isa == Isa::Portable || (isa == Isa::Neon) == (best == Isa::Neon);
        NAMES.iter().map(|row| row.1).filter(move |&isa| isa <= best && exists(isa))
    }

    /// The level of this process, or the error in WEIR_MAX_ISA.
    pub fn checked() -> Result<Isa> {
        static CHOICE: OnceLock<Result<Isa, String>> = OnceLock::new();
        let choice = CHOICE.get_or_init(|| choose(named().as_deref(), Isa::detected()));
        choice.clone().map_err(Error::invalid)
    }

    /// The level of this process. Calls that may fail use `checked`; this is not reached after a failure, and the
    /// portable level is always correct.
    pub fn best() -> Isa {
        Isa::checked().unwrap_or(Isa::Portable)
    }
}

/// The best available level up to the one named.
fn choose(named: Option<&str>, detected: Isa) -> Result<Isa, String> {
    let Some(name) = named else { return Ok(detected) };
    match NAMES.iter().find(|row| row.0 == name.trim()) {
        // Neon and the x86 levels are not comparable.
        Some((_, Isa::Neon)) if detected != Isa::Neon => Ok(Isa::Portable),
        Some((_, level)) => Ok(detected.min(*level)),
        None => {
            let known: Vec<_> = NAMES.iter().map(|row| row.0).collect();
            Err(format!("the environment variable {VARIABLE} is '{name}', expected one of {}", known.join(", ")))
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_variable_only_lowers_the_level() {
        let on_vnni = |name| choose(Some(name), Isa::Avx512Vnni).unwrap();
        assert_eq!(choose(None, Isa::Avx2), Ok(Isa::Avx2));
        assert_eq!(choose(Some("avx512_vnni"), Isa::Avx2), Ok(Isa::Avx2));
        assert_eq!([on_vnni("portable"), on_vnni(" avx2 ")], [Isa::Portable, Isa::Avx2]);
        assert_eq!([on_vnni("avx512"), on_vnni("neon")], [Isa::Avx512, Isa::Portable]);
        assert_eq!(choose(Some("neon"), Isa::Neon), Ok(Isa::Neon));
        assert_eq!(choose(Some("portable"), Isa::Neon), Ok(Isa::Portable));
    }

    #[test]
    fn an_unknown_level_is_refused_by_name() {
        let text = choose(Some("AVX9"), Isa::Avx2).unwrap_err();
        assert!(text.contains("WEIR_MAX_ISA is 'AVX9', expected one of portable, neon, avx2"), "{text}");
        assert!(choose(Some(""), Isa::Avx2).is_err());
    }

    #[test]
    fn the_best_level_is_available() {
        let levels: Vec<_> = Isa::available().collect();
        assert_eq!(levels.first(), Some(&Isa::Portable));
        assert_eq!(levels.last(), Some(&Isa::detected()));
        assert!(levels.contains(&Isa::best()));
    }
}
