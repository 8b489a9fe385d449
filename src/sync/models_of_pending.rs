//! loom models of calls that complete later, and their broken twins.

use super::atomic::{AtomicU32, Ordering::*};
use super::pending::{DONE, Rendezvous, Returns};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A call's result, written by one thread and read by another one.
struct PendingCall {
    meeting: Rendezvous,
    result: UnsafeCell<u32>,
    taken_up: AtomicU32,
}

fn complete(call: &PendingCall, generation: u32) {
    if call.meeting.claim(generation) {
        // SAFETY: claimed by this thread, and not done.
        call.result.with_mut(|result| unsafe { *result = 7 });
        if call.meeting.done() {
            take_up(call);
        }
    }
}

fn take_up(call: &PendingCall) {
    // SAFETY: the call is done, and this thread continues after it.
    call.result.with(|result| assert_eq!(unsafe { *result }, 7));
    assert_eq!(call.taken_up.fetch_add(1, Relaxed), 0, "taken up twice");
}

fn meet(returned: fn(&PendingCall) -> bool) {
    let call =
        Arc::new(PendingCall { meeting: Rendezvous::new(), result: UnsafeCell::new(0), taken_up: AtomicU32::new(0) });
    let generation = call.meeting.begin();
    // Two threads report it done.
    let others: Vec<_> = (0..2)
        .map(|_| {
            let call = Arc::clone(&call);
            thread::spawn(move || complete(&call, generation))
        })
        .collect();
    if returned(&call) {
        take_up(&call);
    }
    others.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(call.taken_up.load(Relaxed), 1, "nobody goes on");
}

/// Starter and completers race: one continues, and it sees the result.
#[test]
fn models_meeting_goes_on_once() {
    loom::model(|| meet(|call| call.meeting.returned()));
}

/// If the starter looks before it marks its return, nobody continues.
#[test]
#[should_panic(expected = "nobody goes on")]
fn models_broken_meeting_looks_first() {
    loom::model(|| {
        meet(|call| {
            let done = call.meeting.0.load(Acquire) & DONE != 0;
            let _ = call.meeting.returned();
            done
        });
    });
}

/// A sleeping owner, and completers that push: `told` is the word that the owner sleeps on.
struct PendingRun {
    returns: Returns,
    links: [AtomicU32; 2],
    told: super::models::Futex,
}

const NONE: u32 = u32::MAX;

impl PendingRun {
    fn push(&self, number: u32) {
        if self.returns.push(number, |next| self.links[number as usize].store(next.unwrap_or(NONE), Relaxed)) {
            use super::lock::Word;
            self.told.fetch_add(1, Release);
            self.told.wake(u32::MAX);
        }
    }

    fn take(&self) -> u32 {
        let mut count = 0;
        let mut next = self.returns.take().unwrap_or(NONE);
        while next != NONE {
            count += 1;
            next = self.links[next as usize].load(Relaxed);
        }
        count
    }
}

fn own(sleep: fn(&PendingRun) -> bool) {
    use super::lock::Word;
    let run = std::sync::Arc::new(PendingRun {
        returns: Returns::new(),
        links: [AtomicU32::new(0), AtomicU32::new(0)],
        told: super::models::Futex::new(),
    });
    let others: Vec<_> = (0..2)
        .map(|number| {
            let run = std::sync::Arc::clone(&run);
            thread::spawn(move || run.push(number))
        })
        .collect();
    let mut taken = 0;
    while taken < 2 {
        let seen = run.told.load(Acquire);
        taken += run.take();
        if taken < 2 && sleep(&run) {
            run.told.sleep(seen);
            run.returns.wake();
        }
    }
    others.into_iter().for_each(|other| other.join().unwrap());
}

/// Two calls complete while the owner goes to sleep: it takes both.
#[test]
fn models_returns_wake_the_owner() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| own(|run| run.returns.sleep()));
}

/// An owner that sleeps without marking it is not woken.
#[test]
#[should_panic(expected = "deadlock")]
fn models_broken_returns_tell_nobody() {
    loom::model(|| own(|run| !run.returns.any()));
}
