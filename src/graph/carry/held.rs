//! Outputs that a run holds until it has ended well.
//!
//! A run that communicates may fail on all ranks at any time, and many iterations or nodes too late for the tensors of
//! the host's to be as they were. So it makes its outputs in its own memory, behind its values, and gives them to their
//! tensors at its end. Operations use them there like values, without a copy; what a transport still has after a
//! failure is then no tensor of the host's. A run inside of another one makes values of that.

use super::state::RunState;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

impl RunState {
    /// Puts places in the arena into the places of the outputs that this run holds; else it holds none of them.
    #[cold]
    pub(super) fn hold_outputs(&self, outputs: &[AtomicPtr<u8>], is_outermost: bool) {
        // One that finishes what does not depend on a failure keeps what it has made.
        let holds = is_outermost && !self.is_independent();
        for (held, tensor) in self.plan().held.iter().zip(&self.held) {
            let place = &outputs[held.output];
            // ORDERING: Relaxed; published with the run, as what is bound.
            let to = if holds { place.swap(self.arena.at(held.offset), Relaxed) } else { std::ptr::null_mut() };
            tensor.store(to, Relaxed);
        }
    }

    /// The tensors get the outputs that the run has held. By its owner, when it is closed and has ended well.
    pub(super) fn give_outputs(&self) {
        for (held, tensor) in self.plan().held.iter().zip(&self.held) {
            let to = tensor.load(Relaxed);
            if !to.is_null() && !self.is_absent(self.plan().output_bits[held.output]) {
                // SAFETY: a place in the arena, which the run has written, and the memory of an output's tensor, which
                // is of this size and the run's until it is over (`bind`).
                unsafe { std::ptr::copy_nonoverlapping(self.arena.at(held.offset), to, held.bytes) };
            }
        }
    }
}
