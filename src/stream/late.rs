//! The failures of an engine's queues, until every reporter has reported them.
//!
//! # Reporters
//!
//! | reporter              | asked by                                  | tells                                      |
//! |-----------------------|-------------------------------------------|--------------------------------------------|
//! | the queue's own latch | `weir_stream_synchronize`                 | its failure, once (`latch`)                |
//! | the engine            | `weir_engine_synchronize`                 | the first failure that it has not told     |
//! | the domain            | `weir_sync_domain`, scopes of the domain  | per engine, the first that it has not told |
//! | everything            | `weir_sync_devices`, scopes               | per engine, the first that it has not told |
//!
//! Each has its own mark on each failure, so that none takes a failure away from another. Reporting a failure marks all
//! of that engine's as reported: they usually follow from it, and their streams keep their own.
//!
//! # What is kept
//!
//! A failure is dropped when all have reported it, and when its queue is cleared. A live queue has at most one. Of the
//! failures of dead queues, the first that a reporter has not reported is kept for that reporter, and the latest `KEPT`
//! for scopes that began after the first; so a host that never asks does not fill its memory.
#![forbid(unsafe_code)]

use crate::base::Error;
use crate::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A reporter of late failures beside the queues themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reporter {
    Engine,
    Domain,
    Everything,
}

impl Reporter {
    const ALL: [Reporter; 3] = [Reporter::Engine, Reporter::Domain, Reporter::Everything];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// All have reported it.
const TOLD: u8 = (1 << Reporter::ALL.len()) - 1;

/// Kept failures of dead queues, beside the first for each reporter.
const KEPT: usize = 64;

#[derive(Debug)]
struct Late {
    /// Later failures have larger numbers, on all engines.
    number: u64,
    queue: u64,
    /// The queue has died, so nobody can clear this failure any more.
    is_final: bool,
    /// The reporters that have reported it, as bits.
    told: u8,
    error: Error,
}

/// The number of failures on all engines so far. ORDERING: Relaxed; the queue's completion orders a failure and its
/// reporter, or nothing does.
static FAILURES: AtomicU64 = AtomicU64::new(0);

/// The number that the next failure gets.
pub(super) fn failures() -> u64 {
    FAILURES.load(Relaxed)
}

/// One engine's failures, in the order in which its queues failed. They are recorded when a queue fails, not when it
/// dies: the thread that ran it may hold it for longer than one that failed later.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<Vec<Late>>);

impl Failures {
    /// Queue number `queue` has failed.
    pub fn add(&self, queue: u64, error: Error) {
        let mut late = self.0.lock();
        // Under the lock, so that the list is in the order of the numbers.
        let number = FAILURES.fetch_add(1, Relaxed);
        late.push(Late { number, queue, is_final: false, told: 0, error });
    }

    /// Its failure was cleared.
    pub fn clear(&self, queue: u64) {
        self.0.lock().retain(|late| late.queue != queue);
    }

    /// The queue is gone.
    pub fn end(&self, queue: u64) {
        let mut late = self.0.lock();
        late.iter_mut().filter(|late| late.queue == queue).for_each(|late| late.is_final = true);
        let mut surplus = late.iter().filter(|late| late.is_final).count().saturating_sub(KEPT);
        let mut has_first = 0;
        late.retain(|late| {
            let news = !late.told & TOLD & !has_first;
            if !late.is_final || surplus == 0 {
                return true;
            }
            has_first |= news;
            surplus -= 1;
            news != 0
        });
    }

    /// The unreported failures from number `first` on, with their numbers; marks all of them as reported.
    pub fn tell(&self, reporter: Reporter, first: u64) -> Vec<(u64, Error)> {
        let mut late = self.0.lock();
        let mut news = Vec::new();
        for late in late.iter_mut().filter(|late| late.number >= first && late.told & reporter.bit() == 0) {
            late.told |= reporter.bit();
            news.push((late.number, late.error.clone()));
        }
        late.retain(|late| late.told != TOLD);
        news
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use Reporter::*;

    fn failing(queue: u64) -> Error {
        Error::invalid(format!("failure {queue}"))
    }

    fn first(failures: &Failures, reporter: Reporter) -> Option<String> {
        failures.tell(reporter, 0).first().map(|(_, error)| error.message().to_owned())
    }

    #[test]
    fn the_first_to_fail_is_told_whoever_dies_first() {
        let failures = Failures::default();
        (1..=4).for_each(|queue| failures.add(queue, failing(queue)));
        failures.clear(1);
        [3, 2, 4].into_iter().for_each(|queue| failures.end(queue));
        assert_eq!(first(&failures, Everything).unwrap(), "failure 2");
        assert_eq!(first(&failures, Everything), None);
    }

    #[test]
    fn no_reporter_takes_a_failure_from_another() {
        let failures = Failures::default();
        failures.add(1, failing(1));
        assert_eq!(first(&failures, Everything).unwrap(), "failure 1");
        failures.add(2, failing(2));
        assert_eq!(first(&failures, Domain).unwrap(), "failure 1");
        assert_eq!(first(&failures, Domain), None);
        assert_eq!(first(&failures, Everything).unwrap(), "failure 2");
        assert_eq!(first(&failures, Engine).unwrap(), "failure 1");
        assert!(failures.0.lock().is_empty(), "all have told all");
    }

    #[test]
    fn who_begins_later_leaves_what_was_before() {
        let failures = Failures::default();
        failures.add(1, failing(1));
        let begin = super::failures();
        failures.add(2, failing(2));
        failures.add(3, failing(3));
        let told: Vec<_> = failures.tell(Domain, begin).into_iter().map(|(_, error)| error).collect();
        assert_eq!(told.iter().map(Error::message).collect::<Vec<_>>(), ["failure 2", "failure 3"]);
        assert_eq!(first(&failures, Domain).unwrap(), "failure 1");
        assert_eq!(first(&failures, Domain), None);
    }

    #[test]
    fn what_nobody_asks_for_is_bounded_and_each_reporters_first_is_kept() {
        let failures = Failures::default();
        let fail = |queue: u64| {
            failures.add(queue, failing(queue));
            failures.end(queue);
        };
        (1..=1000).for_each(fail);
        assert_eq!(first(&failures, Domain).unwrap(), "failure 1");
        (1001..=2000).for_each(fail);
        assert_eq!(first(&failures, Everything).unwrap(), "failure 1");
        let begin = super::failures();
        (2001..=3000).for_each(fail);
        assert!(failures.0.lock().len() <= KEPT + Reporter::ALL.len());
        let news = failures.tell(Domain, begin);
        assert_eq!(news.len(), 1 + KEPT, "a scope finds the latest, and what is kept for another reporter");
        assert_eq!(news.last().map(|(_, error)| error.message()), Some("failure 3000"));
        assert_eq!(first(&failures, Domain).unwrap(), "failure 1001");
        assert_eq!(first(&failures, Everything).unwrap(), "failure 2001");
        assert_eq!(first(&failures, Engine).unwrap(), "failure 1");
    }
}
