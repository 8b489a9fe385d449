//! Names that the host gives to its marks and spans, for the whole process.
#![forbid(unsafe_code)]

use crate::base::{Code, Error, Result};
use crate::sync::Global;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// More names than this are no names.
const MOST: usize = 1 << 16;

static NAMES: Global<Vec<Arc<str>>> = Global::new(Vec::new);
/// How many names there are. ORDERING: Relaxed; who has a name's number got it behind this.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The number of a name: the same for the same text.
pub fn intern(name: &str) -> Result<u32> {
    let mut names = NAMES.lock();
    if let Some(known) = names.iter().position(|known| **known == *name) {
        return Ok(known as u32);
    }
    if names.len() >= MOST {
        return Err(Error::new(Code::ResourceExhausted, format!("{MOST} names are in use")));
    }
    names.try_reserve(1).map_err(|_| Error::exhausted("a name", name.len()))?;
    names.push(Arc::from(name));
    COUNT.store(names.len() as u32, Relaxed);
    Ok(names.len() as u32 - 1)
}

/// Whether a number is that of a name.
pub fn is_known(number: u32) -> bool {
    number < COUNT.load(Relaxed)
}

pub(super) fn all() -> Vec<Arc<str>> {
    NAMES.lock().clone()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_number() {
        let (a, b) = (intern("frame of a game").unwrap(), intern("read of a file").unwrap());
        assert!(a != b && intern("frame of a game").unwrap() == a && is_known(b));
        assert_eq!(&*all()[b as usize], "read of a file");
    }
}
