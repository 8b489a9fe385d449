//! Failures that only a kernel finds, such as an index out of its table's range.
//!
//! A kernel that can find one gets an *inbox*: a record in pinned host memory, which it writes only when it finds a
//! failure. Each stream has one, made by the first such launch, and so has each recording, because its parameters are
//! fixed. The first finding stays, with the launch's number, the launch's site and the values found (`Fault` in
//! gpu/kernels/gather.cu).
//!
//! Nobody waits for such a report: a stream keeps a list of inboxes that its work may have written to (`Reports`), an
//! event copies the list when it is recorded, a stream that waits for an event adds that to its own, and a thread that
//! finds an event reached reads the inboxes. Work behind such a failure was executed, with zeros for the missing rows.
//!
//! Programs without such kernels have empty lists, and pay one load for each record and wait.

use super::context::Context;
use super::plan::Check;
use crate::base::{Desc, Error, Result};
use crate::sync::Mutex;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Weak};

/// Most past findings kept for threads that have not looked yet.
const MOST_PAST: usize = 16;

/// `state` of an inbox that has been written.
const WRITTEN: u32 = 2;

/// As in gpu/kernels/gather.cu. The device writes it while the host does not look.
#[derive(Debug)]
#[repr(C)]
struct Fault {
    state: AtomicU32,
    site: AtomicU32,
    launch: AtomicU64,
    place: AtomicU64,
    index: AtomicI64,
}

/// The description of a launch, for error texts.
#[derive(Debug)]
struct Site {
    name: Box<str>,
    axis: usize,
    least: i64,
    table: Desc,
}

/// Receives the findings of kernels.
#[derive(Debug)]
pub(super) struct FaultInbox {
    context: Arc<Context>,
    address: usize,
    /// How often it was emptied, and the findings of those times.
    emptied: AtomicU64,
    past: Mutex<VecDeque<(u64, Error)>>,
    /// The number of counted launches.
    launches: AtomicU64,
    sites: Mutex<Vec<Site>>,
}

/// A launch's parameters for its inbox.
#[derive(Clone, Copy, Debug)]
pub(super) struct FaultTicket {
    pub address: usize,
    pub launch: u64,
    pub site: u32,
}

/// Gives out tickets.
pub(super) trait FaultTickets {
    fn ticket(&self, name: &str, check: &Check<'_>) -> Result<FaultTicket>;
}

impl FaultInbox {
    pub(super) fn new(context: &Arc<Context>) -> Result<Arc<FaultInbox>> {
        let address = context.pages().take(&super::host::CudaHostMemory(Arc::clone(context)))?;
        let inbox = FaultInbox {
            context: Arc::clone(context),
            address,
            emptied: AtomicU64::new(0),
            past: Mutex::default(),
            launches: AtomicU64::new(0),
            sites: Mutex::default(),
        };
        // ORDERING: Relaxed, here and in `empty`; the driver's call orders the next launch after this.
        inbox.fault().state.store(0, Relaxed);
        Ok(Arc::new(inbox))
    }

    fn fault(&self) -> &Fault {
        // SAFETY: pinned memory of this inbox alone, aligned to 64, which lives as long as the context.
        unsafe { &*std::ptr::with_exposed_provenance::<Fault>(self.address) }
    }

    /// Makes room for a new finding, while no kernel may write. A thread that has not looked yet finds the old one in
    /// `past`.
    pub(super) fn empty(&self) {
        let Some(found) = self.found(u64::MAX) else { return };
        let mut past = self.past.lock();
        if past.len() == MOST_PAST {
            past.pop_front();
        }
        past.push_back((self.emptied.load(Relaxed), found));
        self.emptied.fetch_add(1, Relaxed);
        self.fault().state.store(0, Relaxed);
    }

    /// For a launch; a recorded one has number 0 in all of its runs. Allocates for a site that is new.
    pub(super) fn ticket(&self, name: &str, check: &Check<'_>, is_recorded: bool) -> FaultTicket {
        let mut sites = self.sites.lock();
        let is_it = |site: &Site| {
            let is_alike = (site.axis, site.least) == (check.axis, check.least);
            *site.name == *name && is_alike && site.table == *check.table
        };
        let known = sites.iter().position(is_it);
        let site = known.unwrap_or_else(|| {
            sites.push(Site { name: name.into(), axis: check.axis, least: check.least, table: *check.table });
            sites.len() - 1
        });
        // ORDERING: Relaxed; one thread at a time issues.
        let launch = if is_recorded { 0 } else { self.launches.fetch_add(1, Relaxed) + 1 };
        FaultTicket { address: self.address, launch, site: site as u32 }
    }

    /// The finding of launches up to `last`, after it was emptied for the `emptied`-th time.
    fn failure(&self, last: u64, emptied: u64) -> Option<Error> {
        let past = self.past.lock();
        if self.emptied.load(Relaxed) == emptied {
            return self.found(last);
        }
        past.iter().find(|(time, _)| *time == emptied).map(|(_, found)| found.clone())
    }

    fn found(&self, last: u64) -> Option<Error> {
        let fault = self.fault();
        // ORDERING: Acquire; the device writes `state` last, and an event behind that was reached.
        if fault.state.load(Acquire) != WRITTEN || fault.launch.load(Relaxed) > last {
            return None;
        }
        let (place, index) = (fault.place.load(Relaxed), fault.index.load(Relaxed));
        let sites = self.sites.lock();
        let Site { name, axis, least, table } = sites.get(fault.site.load(Relaxed) as usize)?;
        let last = table.shape().get(*axis).map_or(0, |size| size - 1);
        Some(Error::out_of_range(format!(
            "{name}: input 1: element {place} is {index}, expected an index from {least} to {last} along axis {axis} \
             of input 0, {}",
            table.text()
        )))
    }
}

impl Drop for FaultInbox {
    /// The owner ensures that no kernel uses it any more.
    fn drop(&mut self) {
        self.context.pages().put(self.address);
    }
}

/// An inbox.
#[derive(Clone, Debug)]
enum Heard {
    Own(Arc<FaultInbox>),
    /// Of a capture of the host's, which keeps it.
    Captured(Weak<FaultInbox>),
}

/// An inbox, the number of the last launch that counts, and how often the inbox had been emptied.
type Upto = (Heard, u64, u64);

impl Heard {
    fn address(&self) -> *const FaultInbox {
        match self {
            Heard::Own(inbox) => Arc::as_ptr(inbox),
            Heard::Captured(inbox) => inbox.as_ptr(),
        }
    }

    fn is_there(&self) -> bool {
        match self {
            Heard::Own(_) => true,
            Heard::Captured(inbox) => inbox.strong_count() > 0,
        }
    }

    fn failure(&self, last: u64, emptied: u64) -> Option<Error> {
        match self {
            Heard::Own(inbox) => inbox.failure(last, emptied),
            Heard::Captured(inbox) => inbox.upgrade()?.failure(last, emptied),
        }
    }
}

/// Inboxes that work may have written to.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// ORDERING: Relaxed; the list's lock orders it, and recording or waiting for an event comes after the launch.
    any: AtomicBool,
    list: Mutex<SmallVec<[Upto; 2]>>,
}

impl Reports {
    pub(super) fn add(&self, inbox: &Arc<FaultInbox>, last: u64) {
        self.add_of(&Heard::Own(Arc::clone(inbox)), last, inbox.emptied.load(Relaxed));
    }

    /// Adds one that a capture of the host's keeps: all its launches.
    pub(super) fn add_captured(&self, inbox: &Arc<FaultInbox>) {
        self.add_of(&Heard::Captured(Arc::downgrade(inbox)), u64::MAX, inbox.emptied.load(Relaxed));
    }

    fn add_of(&self, inbox: &Heard, last: u64, emptied: u64) {
        let mut list = self.list.lock();
        list.retain(|(known, ..)| known.is_there());
        match list.iter_mut().find(|(known, _, time)| known.address() == inbox.address() && *time == emptied) {
            Some((_, known, _)) => *known = last.max(*known),
            None => list.push((inbox.clone(), last, emptied)),
        }
        self.any.store(true, Relaxed);
    }

    pub(super) fn has(&self, inbox: &Arc<FaultInbox>) -> bool {
        let emptied = inbox.emptied.load(Relaxed);
        let is_it = |(known, _, time): &Upto| known.address() == Arc::as_ptr(inbox) && *time == emptied;
        self.any.load(Relaxed) && self.list.lock().iter().any(is_it)
    }

    /// Adds those of another.
    pub(super) fn join(&self, other: &Reports) {
        if other.any.load(Relaxed) {
            let others = other.list.lock().clone();
            others.iter().for_each(|(inbox, last, emptied)| self.add_of(inbox, *last, *emptied));
        }
    }

    /// Becomes like another.
    pub(super) fn copy(&self, other: &Reports) {
        if self.any.load(Relaxed) {
            self.clear();
        }
        self.join(other);
    }

    pub(super) fn clear(&self) {
        self.list.lock().clear();
        self.any.store(false, Relaxed);
    }

    /// The first finding, for completed work.
    pub(super) fn failure(&self) -> Option<Error> {
        if !self.any.load(Relaxed) {
            return None;
        }
        self.list.lock().iter().find_map(|(heard, last, emptied)| heard.failure(*last, *emptied))
    }
}
