//! loom models of calls that are made in rounds (`graph::exec::inner`), and their broken twins.
//!
//! `DrainLock`, `Meeting` and `Returns` together: the owner of an inner run works in rounds; one thread brings something
//! back to the run, another one closes it. Each may find the owner at work, about to park, parked, or on its way.

use super::atomic::{AtomicU32, Ordering::*};
use super::lock::Word;
use super::models::Futex;
use super::pending::{Meeting, Returns};
use super::{DrainGuard, DrainLock};
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

struct Call {
    returns: Returns,
    closed: AtomicU32,
    turn: DrainLock<()>,
    /// The handle of the round; the turn's.
    told: UnsafeCell<Option<u32>>,
    meeting: Meeting,
    /// The bed of the outer run's owner.
    brought: Futex,
}

// SAFETY: loom checks the cell.
unsafe impl Sync for Call {}
// SAFETY: as above.
unsafe impl Send for Call {}

impl Call {
    fn tell(&self) {
        if !self.turn.resume() {
            return;
        }
        // SAFETY: who finds the turn parked is alone with the handle.
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
        // SAFETY: by the holder of the turn.
        self.told.with_mut(|told| unsafe { *told = generation });
    }
}

/// Parks, and leaves the handle for who tells.
type Park = for<'a> fn(&'a Call, DrainGuard<'a, ()>, u32) -> Result<(), DrainGuard<'a, ()>>;

fn park<'a>(call: &'a Call, turn: DrainGuard<'a, ()>, generation: u32) -> Result<(), DrainGuard<'a, ()>> {
    call.set_told(Some(generation));
    turn.park().inspect_err(|_| call.set_told(None))
}

fn go_round(close: fn(&Call), park: Park) {
    let call = Arc::new(Call {
        returns: Returns::new(),
        closed: AtomicU32::new(0),
        turn: DrainLock::new(()),
        told: UnsafeCell::new(None),
        meeting: Meeting::new(),
        brought: Futex::new(),
    });
    let others: Vec<_> = [Call::come_back as fn(&Call), close]
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
        let mut turn = call.turn.hold().expect("the owner comes alone");
        let over = loop {
            call.returns.wake();
            loop {
                taken |= call.returns.take().is_some();
                if call.returns.sleep() {
                    break;
                }
            }
            if taken && call.closed.load(Acquire) == 1 {
                drop(turn);
                break true;
            }
            match park(&call, turn, generation) {
                Ok(()) => break false,
                Err(again) => turn = again,
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

fn close(call: &Call) {
    call.closed.store(1, Release);
    call.tell();
}

fn model(close: fn(&Call), park: Park) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || go_round(close, park));
}

/// Nothing that happens is missed, and every round is ended once.
#[test]
fn models_rounds_miss_nothing() {
    model(close, park);
}

/// A closer that tells before the run is closed leaves a parked owner behind.
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

/// An owner that parks and then leaves the handle has gone when it is looked for.
#[test]
#[should_panic]
fn models_broken_rounds_leave_the_handle_too_late() {
    model(close, |call, turn, generation| {
        turn.park()?;
        call.set_told(Some(generation));
        Ok(())
    });
}
