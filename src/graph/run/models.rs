//! loom models of the structures that runs of a program share (see `sync::models`).

use super::checkout_cell::{Checkout, CheckoutCell};
use super::rcu_cell::Readers;
use crate::graph::carry::semaphore::SemaphoreWord;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::SeqCst;
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use loom::thread;

/// A cell with a value of two words that must not be seen half written.
struct CellModel {
    readers: Readers,
    value: UnsafeCell<[u32; 2]>,
}

/// Two readers and one writer; `claim` answers whether it may write.
fn replace(claim: fn(&Readers) -> bool) {
    loom::model(move || {
        let cell = Arc::new(CellModel { readers: Readers::new(), value: UnsafeCell::new([0, 0]) });
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let cell = Arc::clone(&cell);
                thread::spawn(move || {
                    if cell.readers.enter() {
                        // SAFETY: none: loom reports a concurrent write.
                        let [a, b] = cell.value.with(|value| unsafe { *value });
                        assert_eq!(a, b);
                        cell.readers.leave();
                    }
                })
            })
            .collect();
        if claim(&cell.readers) {
            // SAFETY: as above.
            cell.value.with_mut(|value| unsafe { *value = [1, 1] });
            cell.readers.unclaim();
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert!(cell.readers.claim(), "a reader is counted that is gone");
    });
}

#[test]
fn models_a_value_is_replaced_while_nobody_reads() {
    replace(Readers::claim);
}

/// A writer that claims the cell without checking for readers writes while they read.
#[test]
#[should_panic(expected = "Causality violation")]
fn models_broken_rcu_cell_claims_among_readers() {
    replace(|readers| {
        readers.claim_among_readers();
        true
    });
}

/// One permit, and two threads that want it: the second, in the line, is called when the first leaves.
fn meet(join: fn(&SemaphoreWord) -> bool) {
    loom::model(move || {
        let semaphore = Arc::new((SemaphoreWord::new(1), Mutex::new(0u32), AtomicU32::new(0)));
        let visit = move |shared: &(SemaphoreWord, Mutex<u32>, AtomicU32)| {
            let (semaphore, line, inside) = shared;
            let entered = semaphore.try_enter() || {
                let mut line = line.lock().unwrap();
                let entered = join(semaphore);
                *line += u32::from(!entered);
                entered
            };
            if entered {
                assert_eq!(inside.fetch_add(1, SeqCst), 0, "two in one place");
                inside.fetch_sub(1, SeqCst);
                leave(semaphore, line);
            }
        };
        let other = {
            let semaphore = Arc::clone(&semaphore);
            thread::spawn(move || visit(&semaphore))
        };
        visit(&semaphore);
        other.join().unwrap();
        assert_eq!(*semaphore.1.lock().unwrap(), 0, "somebody waits for ever");
        assert_eq!(semaphore.0.inside(), 0);
    });
}

/// Leaves, and in turn for each waiter that gets the permit.
fn leave(semaphore: &SemaphoreWord, line: &Mutex<u32>) {
    while !semaphore.try_leave() {
        let mut line = line.lock().unwrap();
        if *line > 0 {
            *line -= 1;
            semaphore.left_the_line();
        }
    }
}

#[test]
fn models_a_permit_is_handed_to_a_waiter() {
    meet(SemaphoreWord::enter_or_join);
}

/// A thread that finds no permit and then joins the line, in two steps, may join it after the last one has left.
#[test]
#[should_panic(expected = "somebody waits for ever")]
fn models_broken_semaphore_looks_and_joins() {
    meet(|semaphore| {
        let entered = semaphore.try_enter();
        if !entered {
            semaphore.join_without_a_look();
        }
        entered
    });
}

/// Borrowers of one value: each has it alone, and the next one sees the last one's work.
fn check_out(give_back: fn(&CheckoutCell<Arc<UnsafeCell<u32>>>, Arc<UnsafeCell<u32>>)) {
    loom::model(move || {
        let cell = Arc::new(CheckoutCell::default());
        let borrow = move |cell: &CheckoutCell<Arc<UnsafeCell<u32>>>| {
            let value = match cell.borrow() {
                Checkout::Value(value) => value,
                Checkout::Vacant => Arc::new(UnsafeCell::new(0)),
                Checkout::Elsewhere => return 0,
            };
            // SAFETY: none: loom reports if another thread has it.
            value.with_mut(|value| unsafe { *value += 1 });
            give_back(cell, value);
            1
        };
        let others: Vec<_> = (0..2)
            .map(|_| {
                let cell = Arc::clone(&cell);
                thread::spawn(move || borrow(&cell))
            })
            .collect();
        let borrowed = borrow(&cell) + others.into_iter().map(|other| other.join().unwrap()).sum::<u32>();
        let last = cell.borrow();
        let Checkout::Value(value) = last else { panic!("the value is lost: {last:?}") };
        // SAFETY: as above.
        assert_eq!(value.with(|value| unsafe { *value }), borrowed);
    });
}

#[test]
fn models_loan_has_one_borrower() {
    check_out(|cell, value| cell.give_back(value));
}

/// A loan that is ended before the value is back: the next borrower makes a second value.
#[test]
#[should_panic]
fn models_broken_checkout_ends_too_early() {
    check_out(|cell, value| {
        cell.vacate();
        if let Checkout::Vacant = cell.borrow() {
            cell.give_back(value);
        }
    });
}
