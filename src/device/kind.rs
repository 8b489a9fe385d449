//! Kinds of devices, by number and by name. The first few are the library's; a plug-in's kind gets a number when its
//! name is first registered, and keeps it for the life of the process.
#![forbid(unsafe_code)]

use crate::abi::{WEIR_ENGINE_PLUGIN_FIRST, weir_engine_kind, weir_engine_kind_value as K};
use crate::base::{Error, Result};
use crate::sync::{Global, fork};
use std::ffi::{CStr, CString};

/// A kind of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceKind(weir_engine_kind);

/// The kinds that every build knows by name.
const OWN: [(DeviceKind, &CStr); 3] =
    [(DeviceKind::CPU, c"cpu"), (DeviceKind::CUDA, c"cuda"), (DeviceKind::EMULATED, c"emulated")];

/// Names of the others: number `WEIR_ENGINE_PLUGIN_FIRST + i` has the name at `i`.
static OTHERS: Global<Vec<&'static CStr>> = Global::new(Vec::new);

/// Bytes of the longest name.
const LONGEST: usize = 32;

impl DeviceKind {
    pub const CPU: DeviceKind = DeviceKind(K::WEIR_ENGINE_CPU as weir_engine_kind);
    pub const CUDA: DeviceKind = DeviceKind(K::WEIR_ENGINE_CUDA as weir_engine_kind);
    pub const EMULATED: DeviceKind = DeviceKind(K::WEIR_ENGINE_EMULATED as weir_engine_kind);

    pub fn value(self) -> weir_engine_kind {
        self.0
    }

    pub fn from_value(value: weir_engine_kind) -> Result<DeviceKind> {
        let others = OTHERS.lock().len();
        let is_other = value.checked_sub(WEIR_ENGINE_PLUGIN_FIRST).is_some_and(|i| (i as usize) < others);
        if is_other || OWN.iter().any(|(kind, _)| kind.0 == value) {
            return Ok(DeviceKind(value));
        }
        if value >= WEIR_ENGINE_PLUGIN_FIRST {
            // A forked child does not know the names that it inherited, and could not use their devices.
            fork::check()?;
        }
        Err(Error::invalid(format!("kind is {value}, which is no engine kind")))
    }

    /// The kind with this name, if there is one.
    pub fn from_name(name: &str) -> Option<DeviceKind> {
        if let Some((kind, _)) = OWN.iter().find(|row| row.1.to_bytes() == name.as_bytes()) {
            return Some(*kind);
        }
        let at = OTHERS.lock().iter().position(|other| other.to_bytes() == name.as_bytes())?;
        Some(DeviceKind(WEIR_ENGINE_PLUGIN_FIRST + at as u32))
    }

    /// The kind with this name, which is a new one if need be.
    pub fn named(name: &str) -> Result<DeviceKind> {
        let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_' || c == b'-';
        if !(1..=LONGEST).contains(&name.len())
            || !name.bytes().all(fits)
            || !name.starts_with(|c: char| c.is_ascii_lowercase())
        {
            return Err(Error::invalid(format!(
                "name is '{name}', expected 1 to {LONGEST} of a-z, 0-9, '_' and '-', the first one a letter"
            )));
        }
        if let Some(kind) = DeviceKind::from_name(name) {
            return Ok(kind);
        }
        let text = CString::new(name).map_err(|_| Error::internal("a name with a NUL"))?;
        let mut others = OTHERS.lock();
        if !others.contains(&text.as_c_str()) {
            others.push(Box::leak(text.into_boxed_c_str()));
        }
        drop(others);
        DeviceKind::from_name(name).ok_or_else(|| Error::internal("a kind was registered and is not there"))
    }

    pub fn name(self) -> &'static str {
        self.c_name().to_str().unwrap_or("unknown")
    }

    pub fn c_name(self) -> &'static CStr {
        if let Some((_, name)) = OWN.iter().find(|row| row.0 == self) {
            return name;
        }
        let at = self.0.wrapping_sub(WEIR_ENGINE_PLUGIN_FIRST) as usize;
        OTHERS.lock().get(at).copied().unwrap_or(c"unknown")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number() {
        let first = DeviceKind::named("kind-test").unwrap();
        assert_eq!(DeviceKind::named("kind-test").unwrap(), first);
        assert_eq!(DeviceKind::from_value(first.value()).unwrap(), first);
        assert_eq!(first.name(), "kind-test");
        assert_eq!(DeviceKind::named("cpu").unwrap(), DeviceKind::CPU);
        assert!(DeviceKind::from_value(4).is_err());
        assert!(DeviceKind::from_name("kind-none").is_none());
        for bad in ["", "A", "1a", "a b", "a234567890123456789012345678901234"] {
            assert!(DeviceKind::named(bad).is_err(), "{bad}");
        }
    }
}
