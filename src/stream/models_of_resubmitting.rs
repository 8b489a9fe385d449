//! loom models of work that is given again while it is under way (`ResubmitTable`), and their broken twins.
//!
//! One thread gives the same work as items 1 to 3, and counts each; another one lets go of what is over, which here is
//! all that counts as issued.

use super::resubmit_table::{Issuer, ResubmitTable};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

/// What a call holds. It must be there while it is given, and be let go of once.
struct Work(UnsafeCell<bool>);

// SAFETY: loom checks the cell.
unsafe impl Sync for Work {}
// SAFETY: as above.
unsafe impl Send for Work {}

impl Work {
    fn give(&self) {
        // SAFETY: none: loom says if somebody lets go of it meanwhile.
        assert!(self.0.with(|is_there| unsafe { *is_there }), "work is given that was let go of");
    }

    fn let_go(&self) {
        // SAFETY: as above.
        self.0.with_mut(|is_there| assert!(std::mem::replace(unsafe { &mut *is_there }, false), "let go of twice"));
    }
}

const ITEMS: u64 = 3;

/// `Queue::submit_again`, and `issue_now` where nothing stands.
fn give(giver: &mut Issuer<Arc<Work>>, item: u64, put: &AtomicU64) {
    if let Some(work) = giver.again(&[7], item) {
        work.give();
        return;
    }
    let work = Arc::new(Work(UnsafeCell::new(true)));
    work.give();
    // While the place is being emptied it takes nothing, and the work is held as an item is.
    if giver.put(&[7], work, item).is_ok() {
        put.fetch_add(1, Relaxed);
    }
}

/// All that was put is let go of: beside the giver, or behind it by who looks for the last time. `early`: items count
/// before they are given.
fn give_beside(early: bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let (mut giver, standing) = ResubmitTable::<Arc<Work>>::new();
        let (issued, put) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let sweeper = thread::spawn({
            let issued = Arc::clone(&issued);
            move || {
                let mut out = 0;
                loop {
                    let upto = issued.load(Acquire);
                    standing.sweep(upto, |work| {
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
            give(&mut giver, item, &put);
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

/// Who counts an item before it is written where it stands leaves it to a sweep that has been.
#[test]
#[should_panic(expected = "held for ever")]
fn models_broken_standing_work_counts_too_soon() {
    give_beside(true);
}
