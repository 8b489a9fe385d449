//! loom models of `promise`: waiters are woken, and read the winner's value.

use super::atomic::Ordering::*;
use super::lock::Word;
use super::models::Futex;
use super::promise::{AWAITED, SETTLED, UNDER_WAY, await_settled, claim, settle};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

struct ModelPromise {
    claims: Futex,
    word: Futex,
    value: UnsafeCell<u32>,
}

type Settle = fn(&Futex);
type Wait = fn(&Futex);
type Claim = fn(&Futex) -> bool;

/// `settlers` threads settle, each with a value of its own, and the model's own thread waits.
fn settle_and_wait(settlers: u32, claim: Claim, settle: Settle, wait: Wait) {
    let promise = Arc::new(ModelPromise { claims: Futex::new(), word: Futex::new(), value: UnsafeCell::new(0) });
    let threads: Vec<_> = (1..=settlers)
        .map(|value| {
            let promise = Arc::clone(&promise);
            thread::spawn(move || {
                let first = claim(&promise.claims);
                if first {
                    // SAFETY: claimed; loom checks that nobody reads meanwhile.
                    promise.value.with_mut(|place| unsafe { *place = value });
                    settle(&promise.word);
                }
                u32::from(first) * value
            })
        })
        .collect();
    wait(&promise.word);
    // SAFETY: settled; loom checks that the write is over, and ordered before this.
    let seen = promise.value.with(|place| unsafe { *place });
    let firsts: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|&value| value > 0).collect();
    assert_eq!(firsts, [seen], "one of them counts, and its value is read");
}

#[test]
fn models_promise_wait_against_settle() {
    loom::model(|| settle_and_wait(1, claim, settle, await_settled));
}

#[test]
fn models_promise_two_settle() {
    loom::model(|| settle_and_wait(2, claim, settle, await_settled));
}

/// A second waiter, so that all must be woken.
#[test]
fn models_promise_two_wait() {
    loom::model(|| {
        let word = std::sync::Arc::new(Futex::new());
        let other = std::sync::Arc::clone(&word);
        let waiter = thread::spawn(move || await_settled(&*other));
        let other = std::sync::Arc::clone(&word);
        let settler = thread::spawn(move || settle(&*other));
        await_settled(&*word);
        waiter.join().unwrap();
        settler.join().unwrap();
    });
}

/// Looks for waiters before it settles: they may come in between.
fn settle_in_two_steps(word: &Futex) {
    let before = word.load(Acquire);
    word.swap(SETTLED, Release);
    if before == AWAITED {
        word.wake(u32::MAX);
    }
}

#[test]
#[should_panic(expected = "deadlock")]
fn models_promise_broken_a_wake_is_lost() {
    loom::model(|| settle_and_wait(1, claim, settle_in_two_steps, await_settled));
}

/// Continues without having acquired the value.
fn await_relaxed(word: &Futex) {
    loop {
        match word.compare_exchange(UNDER_WAY, AWAITED, Relaxed, Relaxed) {
            Err(SETTLED) => return,
            _ => word.sleep(AWAITED),
        }
    }
}

#[test]
#[should_panic(expected = "Causality violation")]
fn models_promise_broken_the_value_is_not_acquired() {
    loom::model(|| settle_and_wait(1, claim, settle, await_relaxed));
}

/// Checks and then claims in two steps, so two may claim.
fn claim_in_two_steps(claims: &Futex) -> bool {
    let free = claims.load(Relaxed) == 0;
    claims.swap(1, Relaxed);
    free
}

#[test]
#[should_panic]
fn models_promise_broken_two_count() {
    loom::model(|| settle_and_wait(2, claim_in_two_steps, settle, await_settled));
}
