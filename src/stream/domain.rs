//! Domains: separate waits and failure reports for several users of the library in one process.
#![forbid(unsafe_code)]

use crate::base::object::tag;
use crate::base::{Code, Error, Kind, Object, Ref, Result, live};
use crate::sync::{Global, fork};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Bytes of a name that the host gives: a domain's and an engine's fit into weir_engine_sync together.
const MOST_OF_NAME: usize = 24;

/// Most domains of a process, the default one included: a scope's number has 24 bits for them, and all ones means none.
const MOST: u32 = (1 << 24) - 2;

/// Which domain an engine belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainId(u32);

impl DomainId {
    /// The domain of engines that were given none.
    pub const DEFAULT: DomainId = DomainId(0);

    pub fn of(domain: Option<&Ref<Domain>>) -> DomainId {
        domain.map_or(DomainId::DEFAULT, |domain| domain.id)
    }

    pub fn number(self) -> u32 {
        self.0
    }

    pub(super) fn from_number(number: u32) -> DomainId {
        DomainId(number)
    }
}

#[derive(Debug)]
pub struct Domain {
    id: DomainId,
    name: String,
}

/// The names of the live domains.
static NAMES: Global<Vec<String>> = Global::new(Vec::new);

impl Kind for Domain {
    const TAG: u32 = tag::DOMAIN;
    const NAME: &'static str = "domain";
    const COUNTER: live::Counter = live::Counter::Domains;
}

impl Domain {
    /// Makes a domain. If another live one has the name, a number is appended: two users need not know of each other.
    pub fn create(name: &str) -> Result<Ref<Domain>> {
        check_name(name)?;
        fork::arm();
        let id = new_id()?;
        let mut names = NAMES.lock();
        let name = numbered(name.to_owned(), |name| names.iter().any(|taken| taken == name));
        names.push(name.clone());
        drop(names);
        Ok(Object::shared(Domain { id, name }))
    }

    pub fn id(&self) -> DomainId {
        self.id
    }

    /// Unique among live domains.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let mut names = NAMES.lock();
        if let Some(at) = names.iter().position(|name| *name == self.name) {
            names.swap_remove(at);
        }
    }
}

/// The name with the first number appended that makes it unique.
pub(super) fn numbered(name: String, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(&name) {
        return name;
    }
    let mut number = 1;
    loop {
        number += 1;
        let unique = format!("{name}#{number}");
        if !is_taken(&unique) {
            return unique;
        }
    }
}

fn new_id() -> Result<DomainId> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    // ORDERING: Relaxed; only the number matters.
    let taken = NEXT.fetch_update(Relaxed, Relaxed, |next| (next < MOST).then_some(next + 1));
    taken
        .map(DomainId)
        .map_err(|_| Error::new(Code::ResourceExhausted, format!("this process has made {MOST} domains")))
}

/// Refuses invalid names of domains and engines: the library uses '/', ':' and '#' as separators.
pub fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("name is empty"));
    }
    if name.len() > MOST_OF_NAME {
        return Err(Error::invalid(format!("name has {} bytes, expected at most {MOST_OF_NAME}", name.len())));
    }
    let is_legal = |c: char| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c);
    if let Some(c) = name.chars().find(|&c| !is_legal(c)) {
        let c = c.escape_default();
        return Err(Error::invalid(format!(
            "name '{name}' has '{c}' in it, expected letters, digits, '.', '_' and '-'"
        )));
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_of_domains_alive_differ() {
        let first = Domain::create("twice").unwrap();
        let second = Domain::create("twice").unwrap();
        let third = Domain::create("twice").unwrap();
        assert_eq!([first.name(), second.name(), third.name()], ["twice", "twice#2", "twice#3"]);
        drop(second);
        let again = Domain::create("twice").unwrap();
        assert_eq!(again.name(), "twice#2");
        assert_ne!(again.id(), third.id());
    }

    #[test]
    fn names_are_letters_digits_and_few_signs() {
        for good in ["x", "torch-2.1_a", "0", &"n".repeat(MOST_OF_NAME)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for (bad, why) in
            [("", "empty"), ("a/b", "'/'"), ("cpu:0", "':'"), ("a#2", "'#'"), ("ä", "u{e4}"), ("a b", "' '")]
        {
            let error = check_name(bad).unwrap_err();
            assert!(error.message().contains(why), "{error}");
        }
        assert!(check_name(&"n".repeat(MOST_OF_NAME + 1)).is_err());
    }
}
