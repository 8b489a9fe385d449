//! Synchronisation of all engines or of a domain's, with a result for each; scopes; timing.
#![forbid(unsafe_code)]

use super::account::{Account, Extent};
use super::domain::DomainId;
use super::late::Reporter;
use super::queue::Queue;
use super::snapshot::Snapshot;
use crate::base::time::{Deadline, now_ns};
use crate::base::{Code, Error, Result};
use crate::sync::ambient;
use std::sync::Arc;

/// One engine, and how its synchronisation ended.
#[derive(Debug)]
pub struct Synced {
    /// "engine cpu:0", "engine torch/cpu:0"
    pub engine: String,
    pub result: Result<()>,
}

/// Refuses a wait for everything on a thread that works for a stream, a run or a region, or is in a function that the
/// library called: that work is part of everything. Always, not only where it would deadlock: the result must not
/// depend on the thread that an item happens to run on.
fn refuse_inside(what: &str) -> Result<()> {
    match ambient::is_inside() {
        false => Ok(()),
        true => Err(Error::precondition(format!(
            "{what} would wait for itself here: it was called from inside of a kernel, a task or a callback; wait in \
             another thread, or for one stream or event"
        ))),
    }
}

/// Waits for everything queued on an engine so far.
pub fn sync_one(account: &Account, timeout_ns: u64) -> Result<()> {
    refuse_inside("synchronising an engine")?;
    let deadline = Deadline::after(timeout_ns);
    let mut snapshot = Snapshot::default();
    snapshot.add(account);
    snapshot.taken().wait(deadline)?;
    account.tell(Reporter::Engine).map_or(Ok(()), Err)
}

/// Waits for everything queued so far, on every queue of these engines. All targets are taken before the first wait.
/// Returns each engine's first error that this reporter has not reported yet, as one error with the first one's code.
pub fn sync_all(extent: Extent, timeout_ns: u64) -> Result<()> {
    refuse_inside(extent.synchronising())?;
    let deadline = Deadline::after(timeout_ns);
    let mut snapshot = Snapshot::default();
    let mut behind = 0;
    while let Some(account) = extent.next(&mut behind) {
        snapshot.add(&account);
    }
    snapshot.taken().wait(deadline)?;
    let mut behind = 0;
    let accounts = std::iter::from_fn(|| extent.next(&mut behind));
    Error::all_of(accounts.filter_map(|account| account.tell(extent.reporter())))
}

/// As `sync_all`, with a result for each engine, in order of creation. All targets are taken before the first wait, so
/// the engines proceed while one is waited for; engines that miss the deadline report it. With more engines than `most`
/// nothing is waited for, and the error is their number.
pub fn sync_each(extent: Extent, timeout_ns: u64, most: usize) -> Result<std::result::Result<Vec<Synced>, usize>> {
    refuse_inside(extent.synchronising())?;
    let deadline = Deadline::after(timeout_ns);
    let accounts = extent.accounts();
    if accounts.len() > most {
        return Ok(Err(accounts.len()));
    }
    let snapshots: Vec<_> = accounts
        .into_iter()
        .map(|account| {
            let mut snapshot = Snapshot::default();
            snapshot.add(&account);
            (account, snapshot)
        })
        .collect();
    let taken: Vec<_> = snapshots.into_iter().map(|(account, snapshot)| (account, snapshot.taken())).collect();
    let end = |(account, snapshot): (Arc<Account>, Snapshot)| {
        let result = snapshot.wait(deadline).and_then(|()| account.tell(extent.reporter()).map_or(Ok(()), Err));
        Synced { engine: account.label().to_owned(), result }
    };
    Ok(Ok(taken.into_iter().map(end).collect()))
}

/// A section of a program with its own asynchronous failures: a subset of those that synchronising the same engines
/// reports.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    extent: Extent,
    /// Failures have numbers; those from this one on are the scope's.
    first: u64,
}

/// A scope's number: the first failure in these bits, and its extent above them (0 = everything, else the domain's
/// number plus one).
const FIRST_BITS: u32 = 40;

impl Scope {
    pub fn begin(extent: Extent) -> Scope {
        Scope { extent, first: super::late::failures() }
    }

    pub fn number(self) -> u64 {
        let whose = match self.extent {
            Extent::Everything => 0,
            Extent::Domain(domain) => u64::from(domain.number()) + 1,
        };
        // After that many failures a scope reports some from before it, too.
        whose << FIRST_BITS | self.first.min((1 << FIRST_BITS) - 1)
    }

    /// The scope with this number.
    pub fn of(number: u64) -> Scope {
        let extent = match (number >> FIRST_BITS) as u32 {
            0 => Extent::Everything,
            whose => Extent::Domain(DomainId::from_number(whose - 1)),
        };
        Scope { extent, first: number & ((1 << FIRST_BITS) - 1) }
    }

    /// Waits for all work queued on these engines, and returns the first failure since the scope began; the others
    /// count as reported with it. Earlier failures stay for the engines' own synchronisation. None is reported on a
    /// time-out.
    pub fn end(self, timeout_ns: u64) -> Result<()> {
        refuse_inside("ending an asynchronous scope")?;
        let deadline = Deadline::after(timeout_ns);
        let accounts = self.extent.accounts();
        let mut snapshot = Snapshot::default();
        accounts.iter().for_each(|account| snapshot.add(account));
        snapshot.taken().wait(deadline)?;
        let mut failures: Vec<_> = accounts.iter().flat_map(|account| self.tell(account)).collect();
        failures.sort_by_key(|failure| failure.0);
        Error::all_of(failures.into_iter().map(|(_, error)| error))
    }

    fn tell(self, account: &Account) -> impl Iterator<Item = (u64, Error)> {
        let news = account.failures().tell(self.extent.reporter(), self.first);
        news.into_iter().map(|(number, error)| (number, error.at(account.label())))
    }
}

/// Times `call` once per element of `times`: from one moment when the stream (without one, all streams) is idle to the
/// next. It fails if another stream of the domain then still has work of the call in flight.
pub fn time_ns(queue: Option<&Arc<Queue>>, times: &mut [u64], mut call: impl FnMut() -> Result<()>) -> Result<()> {
    refuse_inside("timing")?;
    let settle = || match queue {
        Some(queue) => queue.synchronize(crate::abi::WEIR_TIMEOUT_INFINITE),
        None => sync_all(Extent::Everything, crate::abi::WEIR_TIMEOUT_INFINITE),
    };
    // Work that another user queues meanwhile does not belong to the call.
    let extent = queue.map_or(Extent::Everything, |queue| Extent::Domain(queue.domain()));
    for time in times {
        settle()?;
        let before: Vec<(u64, u64)> = extent.accounts().iter().flat_map(|account| account.submitted()).collect();
        let start = now_ns();
        call()?;
        settle()?;
        *time = now_ns() - start;
        let mut others = Vec::new();
        extent.accounts().iter().for_each(|account| account.each_queue(|queue| others.push(queue)));
        for other in others {
            let seen = before.iter().find(|(id, _)| *id == other.id()).map_or(0, |(_, submitted)| *submitted);
            let target = other.submitted();
            if target > seen && !other.has_completed(target) {
                return Err(Error::new(
                    Code::FailedPrecondition,
                    format!(
                        "work was queued on stream '{}' meanwhile and is not done, and that is not the stream that \
                         was waited for: time all streams (NULL)",
                        other.name()
                    ),
                ));
            }
        }
    }
    Ok(())
}
