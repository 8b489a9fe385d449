//! loom models of what programs share between their runs (see `models`).

use super::replaceable::Readers;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
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
