//! Resources that were still referenced when their engine ended, by name, until they end too.
#![forbid(unsafe_code)]

use super::Resource;
use crate::base::{Object, Ref};
use crate::sync::Global;
use std::sync::Weak;

struct Leak {
    /// "engine cpu:0: variable 'x' of container 'default'"
    text: String,
    resource: Weak<Object<Resource>>,
}

static LEAKS: Global<Vec<Leak>> = Global::new(Vec::new);

/// The engine is about to release a resource that others hold.
pub(super) fn note(engine: &str, resource: &Ref<Resource>) {
    let leak = Leak { text: format!("{engine}: {}", resource.text()), resource: Ref::downgrade(resource) };
    let mut leaks = LEAKS.lock();
    leaks.retain(|leak| leak.resource.strong_count() > 0);
    leaks.push(leak);
}

fn with_those_alive<R>(f: impl Fn(&[Leak]) -> R) -> R {
    let mut leaks = LEAKS.lock();
    leaks.retain(|leak| leak.resource.strong_count() > 0);
    f(&leaks)
}

/// Current number of leaks.
pub fn count() -> usize {
    with_those_alive(<[Leak]>::len)
}

/// One line for each: its description, and its current number of references.
pub fn report() -> String {
    with_those_alive(|leaks| {
        let mut lines: Vec<String> =
            leaks.iter().map(|leak| format!("{} ({} references)\n", leak.text, leak.resource.strong_count())).collect();
        lines.sort_unstable();
        lines.concat()
    })
}
