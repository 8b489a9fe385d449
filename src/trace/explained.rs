//! Objects whose numbers in records are explained by a table, and which traces have it.
#![forbid(unsafe_code)]

use super::program_names::ProgramNames;
use super::recorder::{MOST_TRACES, Visit};
use super::table::{Nodes, Table};
use crate::base::reserve;
use crate::sync::OnceLock;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A part of an object whose records are to be explained: its number, and which traces know it.
pub struct Explained {
    number: u32,
    table: OnceLock<Arc<Table>>,
    /// For hooks.
    names: OnceLock<ProgramNames>,
    /// The trace at each place that has the table. ORDERING: Relaxed; that of another trace only means to look.
    known: [AtomicU64; MOST_TRACES],
}

impl fmt::Debug for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Explained({})", self.number)
    }
}

/// A number for an object, never that of another one.
pub(super) fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Relaxed)
}

impl Default for Explained {
    fn default() -> Explained {
        Explained {
            number: next_number(),
            table: OnceLock::new(),
            names: OnceLock::new(),
            known: [const { AtomicU64::new(0) }; MOST_TRACES],
        }
    }
}

impl Explained {
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Gives the trace what explains the object, if it has not got it. `make` gives the name and the nodes, or nothing
    /// for want of memory: then records are numbers.
    pub(super) fn to(&self, visit: &Visit, make: &dyn Fn() -> Option<(String, Nodes)>) {
        let recorder = visit.recorder();
        let known = &self.known[visit.at()];
        if known.load(Relaxed) == recorder.id {
            return;
        }
        if let Some(table) = self.table(make)
            && recorder.explain(table)
        {
            known.store(recorder.id, Relaxed);
        }
    }

    fn table(&self, make: &dyn Fn() -> Option<(String, Nodes)>) -> Option<&Arc<Table>> {
        // The trace keeps it, to its end.
        let table = || {
            let made = make().map(|(name, nodes)| Arc::new(Table { number: self.number, name, nodes }));
            made.ok_or_else(reserve::short)
        };
        if self.table.get().is_none()
            && let Ok(table) = reserve::whole(table)
        {
            let _ = self.table.set(table);
        }
        self.table.get()
    }

    /// Makes the names that hooks are told, once. `make`: as of `to`.
    pub fn make_names(&self, make: &dyn Fn() -> Option<(String, Nodes)>) {
        if self.names.get().is_none()
            && let Some(names) = self.table(make).and_then(|table| ProgramNames::of(table))
        {
            let _ = self.names.set(names);
        }
    }

    /// The names, if they were made.
    pub fn names(&self) -> Option<&ProgramNames> {
        self.names.get()
    }
}
