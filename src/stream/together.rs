//! Synchronisation of all engines with an answer for each, scopes, and time.

use super::account::{Account, all};
use super::queue::Queue;
use super::snapshot::Snapshot;
use crate::base::time::{Deadline, now_ns};
use crate::base::{Code, Error, Result};
use crate::sync::ambient;
use std::sync::Arc;

/// One engine, and how its synchronisation ended.
#[derive(Debug)]
pub struct Synced {
    /// "engine cpu:0"
    pub engine: String,
    pub result: Result<()>,
}

/// Refuses a wait for everything where the thread works for a stream, a run or a region, or is in a function that the library has
/// called: that is part of everything. Always, and not only where it would hang: the answer must not depend on the thread that an item
/// happened to come to.
pub(super) fn refuse_inside(what: &str) -> Result<()> {
    match ambient::is_inside() {
        false => Ok(()),
        true => Err(Error::precondition(format!(
            "{what} would wait for itself here: it was called from inside of a kernel, a task or a callback; wait in another thread, or for one stream or event"
        ))),
    }
}

/// As `sync_all`, with an answer for each engine, in the order in which they were made. All targets are taken before the first
/// wait, so the engines go on while one is waited for; those that the deadline leaves behind say so, the others have ended.
/// With more engines than `most` nothing is waited for, and the answer is how many there are.
pub fn sync_each(timeout_ns: u64, most: usize) -> Result<std::result::Result<Vec<Synced>, usize>> {
    refuse_inside("synchronising all engines")?;
    let deadline = Deadline::after(timeout_ns);
    let accounts = all();
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
        let result = snapshot.wait(deadline).and_then(|()| account.tell().map_or(Ok(()), Err));
        Synced { engine: account.label().to_owned(), result }
    };
    Ok(Ok(taken.into_iter().map(end).collect()))
}

/// A stretch of a program whose asynchronous failures are its own.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Failures have numbers; those from this one on are the scope's.
    first: u64,
}

impl Scope {
    pub fn begin() -> Scope {
        Scope { first: super::account::failures() }
    }

    pub fn number(self) -> u64 {
        self.first
    }

    /// The scope with this number.
    pub fn of(number: u64) -> Scope {
        Scope { first: number }
    }

    /// Waits for all that was queued on any engine, and gives the first failure since the scope began; the others are told with it.
    /// Failures from before stay for who synchronises devices. None of them is told if the time is over.
    pub fn end(self, timeout_ns: u64) -> Result<()> {
        refuse_inside("ending an asynchronous scope")?;
        let deadline = Deadline::after(timeout_ns);
        let accounts = all();
        let mut snapshot = Snapshot::default();
        accounts.iter().for_each(|account| snapshot.add(account));
        snapshot.taken().wait(deadline)?;
        let mut failures: Vec<_> = accounts.iter().flat_map(|account| account.take_since(self.first)).collect();
        failures.sort_by_key(|failure| failure.0);
        let Some((first, rest)) = failures.split_first() else { return Ok(()) };
        let more = rest.iter().map(|(_, error)| format!("; {}", error.message())).collect::<String>();
        Err(Error::new(first.1.code(), format!("{}{more}", first.1.message())))
    }
}

/// Times `call`, so often as there are places: from a moment when the stream (all streams without one) is idle to one when it is
/// again. No time without that: work of the call's that another stream has not done by then is a failure.
pub fn time_ns(queue: Option<&Arc<Queue>>, times: &mut [u64], mut call: impl FnMut() -> Result<()>) -> Result<()> {
    refuse_inside("timing")?;
    let settle = || match queue {
        Some(queue) => queue.synchronize(crate::abi::WEIR_TIMEOUT_INFINITE),
        None => super::sync_all(crate::abi::WEIR_TIMEOUT_INFINITE),
    };
    for time in times {
        settle()?;
        let before: Vec<(u64, u64)> = all().iter().flat_map(|account| account.submitted()).collect();
        let start = now_ns();
        call()?;
        settle()?;
        *time = now_ns() - start;
        let mut others = Vec::new();
        all().iter().for_each(|account| account.each_queue(|queue| others.push(queue)));
        for other in others {
            let seen = before.iter().find(|(id, _)| *id == other.id()).map_or(0, |(_, submitted)| *submitted);
            let target = other.submitted();
            if target > seen && !other.has_completed(target) {
                return Err(Error::new(
                    Code::FailedPrecondition,
                    format!(
                        "work was queued on stream '{}' meanwhile and is not done, and that is not the stream that was waited for: time all streams (NULL)",
                        other.name()
                    ),
                ));
            }
        }
    }
    Ok(())
}
