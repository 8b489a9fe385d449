//! loom models of calls that are made in rounds (`graph::run::inner`), and their broken twins.
//!
//! `DrainLock`, `Rendezvous` and `Returns` together: the owner of an inner run works in rounds; one thread returns a
//! completed call to the run, another one closes it. Each may find the owner at work, about to park, parked, or on its
//! way.

use super::atomic::{AtomicU32, Ordering::*};
use super::lock::Word;
use super::models::Futex;
use super::pending::{Rendezvous, Returns};
use super::{DrainGuard, DrainLock};
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

struct RoundCall {
    returns: Returns,
    closed: AtomicU32,
    lock: DrainLock<()>,
    /// The handle of the round; guarded by `lock`.
    told: UnsafeCell<Option<u32>>,
    meeting: Rendezvous,
    /// The word that the outer run's owner sleeps on.
    brought: Futex,
}

// SAFETY: loom checks the cell.
unsafe impl Sync for RoundCall {}
// SAFETY: as above.
unsafe impl Send for RoundCall {}

impl RoundCall {
    fn tell(&self) {
        if !self.lock.resume() {
            return;
        }
        // SAFETY: the thread that resumes a parked lock is alone with the handle.
        let generation = self.told.with_mut(|told| unsafe { (*told).take() }).expect("there is no handle");
        assert!(self.meeting.claim(generation), "the round was ended twice");
        if self.meeting.done() {
            self.brought.fetch_add(1, Release);
            self.brought.wake(u32::MAX);
        }
    }

    fn come_back(&self) {
        if self.returns.push(0, |_| {}) {
            self.tell();
        }
    }

    fn set_told(&self, generation: Option<u32>) {
        // SAFETY: called by the holder of the lock.
        self.told.with_mut(|told| unsafe { *told = generation });
    }
}

/// Parks, and leaves the handle for the thread that resumes.
type Park = for<'a> fn(&'a RoundCall, DrainGuard<'a, ()>, u32) -> Result<(), DrainGuard<'a, ()>>;

fn park<'a>(call: &'a RoundCall, lock: DrainGuard<'a, ()>, generation: u32) -> Result<(), DrainGuard<'a, ()>> {
    call.set_told(Some(generation));
    lock.park().inspect_err(|_| call.set_told(None))
}

fn go_round(close: fn(&RoundCall), park: Park) {
    let call = Arc::new(RoundCall {
        returns: Returns::new(),
        closed: AtomicU32::new(0),
        lock: DrainLock::new(()),
        told: UnsafeCell::new(None),
        meeting: Rendezvous::new(),
        brought: Futex::new(),
    });
    let others: Vec<_> = [RoundCall::come_back as fn(&RoundCall), close]
        .into_iter()
        .map(|f| {
            let call = Arc::clone(&call);
            thread::spawn(move || f(&call))
        })
        .collect();
    let mut taken = false;
    loop {
        let generation = call.meeting.begin();
        let seen = call.brought.load(Acquire);
        let mut lock = call.lock.hold().expect("the owner comes alone");
        let over = loop {
            call.returns.wake();
            loop {
                taken |= call.returns.take().is_some();
                if call.returns.sleep() {
                    break;
                }
            }
            if taken && call.closed.load(Acquire) == 1 {
                drop(lock);
                break true;
            }
            match park(&call, lock, generation) {
                Ok(()) => break false,
                Err(again) => lock = again,
            }
        };
        if over {
            break;
        }
        if !call.meeting.returned() {
            while call.brought.load(Acquire) == seen {
                call.brought.sleep(seen);
            }
        }
    }
    others.into_iter().for_each(|other| other.join().unwrap());
}

fn close(call: &RoundCall) {
    call.closed.store(1, Release);
    call.tell();
}

fn model(close: fn(&RoundCall), park: Park) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || go_round(close, park));
}

/// No event is missed, and every round is ended once.
#[test]
fn models_rounds_miss_nothing() {
    model(close, park);
}

/// A closer that resumes before the run is closed leaves a parked owner behind.
#[test]
#[should_panic(expected = "deadlock")]
fn models_broken_rounds_tell_too_early() {
    model(
        |call| {
            call.tell();
            call.closed.store(1, Release);
        },
        park,
    );
}

/// An owner that parks before it stores the handle leaves none for the resuming thread.
#[test]
#[should_panic]
fn models_broken_rounds_leave_the_handle_too_late() {
    model(close, |call, lock, generation| {
        lock.park()?;
        call.set_told(Some(generation));
        Ok(())
    });
}
