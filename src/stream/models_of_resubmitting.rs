//! loom models of work that is resubmitted while in flight (`ResubmitTable`), and their broken twins.
//!
//! One thread submits the same work as items 1 to 3, and counts each; another one sweeps completed items, here all that
//! count as issued.

use super::resubmit_table::{ResubmitTable, Resubmitter};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

/// A call's resources. They must be there during submission, and be released once.
struct ModelWork(UnsafeCell<bool>);

// SAFETY: loom checks the cell.
unsafe impl Sync for ModelWork {}
// SAFETY: as above.
unsafe impl Send for ModelWork {}

impl ModelWork {
    fn give(&self) {
        // SAFETY: none: loom reports a concurrent release.
        assert!(self.0.with(|is_there| unsafe { *is_there }), "work is given that was let go of");
    }

    fn let_go(&self) {
        // SAFETY: as above.
        self.0.with_mut(|is_there| assert!(std::mem::replace(unsafe { &mut *is_there }, false), "let go of twice"));
    }
}

const ITEMS: u64 = 3;

/// `Queue::submit_again`, and `issue_now` where the table has no entry.
fn give(resubmitter: &mut Resubmitter<Arc<ModelWork>>, item: u64, put: &AtomicU64) {
    if let Some(work) = resubmitter.again(&[7], item) {
        work.give();
        return;
    }
    let work = Arc::new(ModelWork(UnsafeCell::new(true)));
    work.give();
    // A slot that is being emptied takes nothing; then the work is held as an item is.
    if resubmitter.put(&[7], work, item).is_ok() {
        put.fetch_add(1, Relaxed);
    }
}

/// All work that was put is released: beside the resubmitter, or by the last sweep. `early`: items count before they
/// are submitted.
fn give_beside(early: bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let (mut resubmitter, resubmits) = ResubmitTable::<Arc<ModelWork>>::new();
        let (issued, put) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let sweeper = thread::spawn({
            let issued = Arc::clone(&issued);
            move || {
                let mut out = 0;
                loop {
                    let upto = issued.load(Acquire);
                    resubmits.sweep(upto, |work| {
                        work.let_go();
                        out += 1;
                    });
                    if upto == ITEMS {
                        return out;
                    }
                    thread::yield_now();
                }
            }
        });
        for item in 1..=ITEMS {
            if early {
                issued.fetch_add(1, Release);
            }
            give(&mut resubmitter, item, &put);
            if !early {
                issued.fetch_add(1, Release);
            }
        }
        assert_eq!(sweeper.join().unwrap(), put.load(Relaxed), "work is held for ever");
    });
}

#[test]
fn models_standing_work_is_let_go_of_once_and_not_while_it_is_given() {
    give_beside(false);
}

/// Counting an item before its number is in the table leaves it to a sweep that is over.
#[test]
#[should_panic(expected = "held for ever")]
fn models_broken_standing_work_counts_too_soon() {
    give_beside(true);
}
