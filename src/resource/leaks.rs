//! What was still referenced when its engine went, by name, until it goes too.
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

/// The engine is about to let go of a resource that others hold.
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

/// How many there are now.
pub fn count() -> usize {
    with_those_alive(<[Leak]>::len)
}

/// One line for each: who, and how many references there are now.
pub fn report() -> String {
    with_those_alive(|leaks| {
        let mut lines: Vec<String> =
            leaks.iter().map(|leak| format!("{} ({} references)\n", leak.text, leak.resource.strong_count())).collect();
        lines.sort_unstable();
        lines.concat()
    })
}
