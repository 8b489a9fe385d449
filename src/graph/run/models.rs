//! loom models of what programs share between their runs (see `models`).

use super::checkout_cell::{CheckoutCell, Lent};
use super::rcu_cell::Readers;
use crate::graph::carry::semaphore::Door;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::SeqCst;
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use loom::thread;

/// A cell with a value of two words that must not be seen half.
struct Cell {
    readers: Readers,
    value: UnsafeCell<[u32; 2]>,
}

/// Two readers and one that replaces; `claim` answers whether it may.
fn replace(claim: fn(&Readers) -> bool) {
    loom::model(move || {
        let cell = Arc::new(Cell { readers: Readers::new(), value: UnsafeCell::new([0, 0]) });
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let cell = Arc::clone(&cell);
                thread::spawn(move || {
                    if cell.readers.enter() {
                        // SAFETY: none: loom says if somebody writes meanwhile.
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

/// Who claims the cell without a look at its readers writes under their eyes.
#[test]
#[should_panic(expected = "Causality violation")]
fn models_broken_replaceable_claims_among_readers() {
    replace(|readers| {
        readers.claim_among_readers();
        true
    });
}

/// One place, and two that want it: the second in the line is called when the first leaves.
fn meet(join: fn(&Door) -> bool) {
    loom::model(move || {
        let door = Arc::new((Door::new(1), Mutex::new(0u32), AtomicU32::new(0)));
        let visit = move |shared: &(Door, Mutex<u32>, AtomicU32)| {
            let (door, line, inside) = shared;
            let entered = door.try_enter() || {
                let mut line = line.lock().unwrap();
                let entered = join(door);
                *line += u32::from(!entered);
                entered
            };
            if entered {
                assert_eq!(inside.fetch_add(1, SeqCst), 0, "two in one place");
                inside.fetch_sub(1, SeqCst);
                leave(door, line);
            }
        };
        let other = {
            let door = Arc::clone(&door);
            thread::spawn(move || visit(&door))
        };
        visit(&door);
        other.join().unwrap();
        assert_eq!(*door.1.lock().unwrap(), 0, "somebody waits for ever");
        assert_eq!(door.0.inside(), 0);
    });
}

/// Leaves, in turn for those whom the place is handed to.
fn leave(door: &Door, line: &Mutex<u32>) {
    while !door.try_leave() {
        let mut line = line.lock().unwrap();
        if *line > 0 {
            *line -= 1;
            door.left_the_line();
        }
    }
}

#[test]
fn models_a_place_is_handed_to_who_waits() {
    meet(Door::enter_or_join);
}

/// Who finds no place and then joins the line, in two steps, may join it when the last one has left.
#[test]
#[should_panic(expected = "somebody waits for ever")]
fn models_broken_places_look_and_join() {
    meet(|door| {
        let entered = door.try_enter();
        if !entered {
            door.join_without_a_look();
        }
        entered
    });
}

/// Borrowers of one value: each has it alone, and the last one's work is seen by the next.
fn lend(give_back: fn(&CheckoutCell<Arc<UnsafeCell<u32>>>, Arc<UnsafeCell<u32>>)) {
    loom::model(move || {
        let loan = Arc::new(CheckoutCell::default());
        let borrow = move |loan: &CheckoutCell<Arc<UnsafeCell<u32>>>| {
            let value = match loan.borrow() {
                Lent::Value(value) => value,
                Lent::Vacant => Arc::new(UnsafeCell::new(0)),
                Lent::Elsewhere => return 0,
            };
            // SAFETY: none: loom says if somebody else has it.
            value.with_mut(|value| unsafe { *value += 1 });
            give_back(loan, value);
            1
        };
        let others: Vec<_> = (0..2)
            .map(|_| {
                let loan = Arc::clone(&loan);
                thread::spawn(move || borrow(&loan))
            })
            .collect();
        let borrowed = borrow(&loan) + others.into_iter().map(|other| other.join().unwrap()).sum::<u32>();
        let last = loan.borrow();
        let Lent::Value(value) = last else { panic!("the value is lost: {last:?}") };
        // SAFETY: as above.
        assert_eq!(value.with(|value| unsafe { *value }), borrowed);
    });
}

#[test]
fn models_loan_has_one_borrower() {
    lend(|loan, value| loan.give_back(value));
}

/// A loan that is ended before the value is back: the next borrower makes a second one.
#[test]
#[should_panic]
fn models_broken_loan_ends_too_early() {
    lend(|loan, value| {
        loan.vacate();
        if let Lent::Vacant = loan.borrow() {
            loan.give_back(value);
        }
    });
}
