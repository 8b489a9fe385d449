//! Names of the host's marks and spans, and of what devices do, for the whole process.
#![forbid(unsafe_code)]

use crate::base::{Code, Error, Result, reserve};
use crate::sync::Global;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// More names than this are no names.
const MOST: usize = 1 << 16;

#[derive(Default)]
struct Names {
    by_number: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

static NAMES: Global<Names> = Global::new(Names::default);
/// How many names there are. ORDERING: Relaxed; who has a name's number got it behind this.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The number of a name: the same for the same text.
pub fn intern(name: &str) -> Result<u32> {
    let mut names = NAMES.lock();
    if let Some(known) = names.numbers.get(name) {
        return Ok(*known);
    }
    let number = names.by_number.len();
    if number >= MOST {
        return Err(Error::new(Code::ResourceExhausted, format!("{MOST} names are in use")));
    }
    let exhausted = || Error::exhausted("a name", name.len());
    names.by_number.try_reserve(1).map_err(|_| exhausted())?;
    names.numbers.try_reserve(1).map_err(|_| exhausted())?;
    let name: Arc<str> = reserve::whole(|| Ok(Arc::from(name)))?;
    names.by_number.push(Arc::clone(&name));
    names.numbers.insert(name, number as u32);
    COUNT.store(number as u32 + 1, Relaxed);
    Ok(number as u32)
}

/// Whether a number is that of a name.
pub fn is_known(number: u32) -> bool {
    number < COUNT.load(Relaxed)
}

pub(super) fn all() -> Vec<Arc<str>> {
    NAMES.lock().by_number.clone()
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
