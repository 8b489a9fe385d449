//! A cell whose value is lent to one borrower at a time.
//!
//! States: VACANT (no value yet), LENT, and HERE. The thread that turns VACANT or HERE into LENT is the borrower, and
//! only the borrower may leave LENT: to HERE with a value, or to VACANT without one. So giving back is a plain store; a
//! cell that any thread may fill (`Mailbox`) needs a second exchange. No thread waits: one that finds the value lent
//! goes elsewhere.

use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::*;
use std::cell::UnsafeCell;

const VACANT: u32 = 0;
const LENT: u32 = 1;
const HERE: u32 = 2;

#[derive(Debug)]
pub struct CheckoutCell<T> {
    state: AtomicU32,
    value: UnsafeCell<Option<T>>,
}

/// The result of a borrow.
#[derive(Debug, PartialEq, Eq)]
pub enum Checkout<T> {
    /// The value; `give_back` or `vacate` ends the loan.
    Value(T),
    /// No value yet, but the loan has begun: `give_back` brings the first value, or `vacate` ends it.
    Vacant,
    /// Another thread has it.
    Elsewhere,
}

// SAFETY: the value is only touched by the borrower, and there is one at a time.
unsafe impl<T: Send> Sync for CheckoutCell<T> {}

impl<T> Default for CheckoutCell<T> {
    fn default() -> Self {
        CheckoutCell { state: AtomicU32::new(VACANT), value: UnsafeCell::new(None) }
    }
}

impl<T> CheckoutCell<T> {
    #[inline]
    pub fn borrow(&self) -> Checkout<T> {
        let state = self.state.load(Relaxed);
        // ORDERING: Acquire pairs with the Release in `give_back` and `vacate`: the last borrower is done with it.
        if state == LENT || self.state.compare_exchange(state, LENT, Acquire, Relaxed).is_err() {
            return Checkout::Elsewhere;
        }
        // SAFETY: this thread is the borrower.
        unsafe { (*self.value.get()).take() }.map_or(Checkout::Vacant, Checkout::Value)
    }

    /// Ends the loan. Only for the borrower.
    #[inline]
    pub fn give_back(&self, value: T) {
        debug_assert_eq!(self.state.load(Relaxed), LENT, "given back without a loan");
        // SAFETY: this thread is the borrower, and what was here was taken out.
        unsafe { self.value.get().write(Some(value)) };
        // ORDERING: Release pairs with the Acquire in `borrow`.
        self.state.store(HERE, Release);
    }

    /// Ends the loan without a value. Only for the borrower.
    pub fn vacate(&self) {
        // ORDERING: Release pairs with the Acquire in `borrow`.
        self.state.store(VACANT, Release);
    }
}
