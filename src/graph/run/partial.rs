//! Runs that compute a part of a program's outputs, and the parts that a program keeps compiled for them.
//!
//! A part is a program of its own (`create`), made when a run first asks for its list of outputs, and found again by
//! that list. A lookup takes no lock: the entries are cells with many readers (`RcuCell`), and each has a hash that
//! says whether it is worth a look. On a miss the caller compiles without a lock (compiling calls host kernels). If two
//! threads race, the first result is kept and both use it. When all entries are full, one is replaced that was not used
//! since the clock hand last passed it (the clock algorithm); runs of the replaced part hold it until they end.
#![forbid(unsafe_code)]

use super::rcu_cell::RcuCell;
use crate::base::{Ref, Result};
use crate::engine::Engine;
use crate::graph::build::contents::Contents;
use crate::graph::build::options::CompileOptions;
use crate::memory::heap;
use crate::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A list of outputs, and the program that computes them.
struct PartialProgram<P> {
    outputs: Box<[usize]>,
    program: P,
}

struct PartSlot<P> {
    /// The hash of its list; 0 = empty. ORDERING: Relaxed here and for `used`; a hint, the list itself is compared.
    hash: AtomicU64,
    /// Since the clock hand last passed.
    used: AtomicBool,
    part: RcuCell<PartialProgram<P>>,
}

impl<P> Default for PartSlot<P> {
    fn default() -> PartSlot<P> {
        PartSlot { hash: AtomicU64::new(0), used: AtomicBool::new(false), part: RcuCell::default() }
    }
}

/// The partial programs that a program keeps, each a `P`.
pub(in crate::graph) struct PartialPrograms<P> {
    pub graph: Contents,
    pub engines: Vec<Ref<Engine>>,
    pub options: CompileOptions,
    slots: Box<[PartSlot<P>]>,
    /// The entry that is replaced next. The lock is held while entries change.
    clock_hand: Mutex<usize>,
}

/// The most parts that a program keeps: a lookup is linear.
pub const MOST_PARTS: usize = 256;

impl<P: Clone> PartialPrograms<P> {
    /// `None` if the options ask for none.
    pub fn new(
        graph: &Contents,
        engines: &[Ref<Engine>],
        options: &CompileOptions,
    ) -> Result<Option<PartialPrograms<P>>> {
        if options.partial_runs == 0 {
            return Ok(None);
        }
        let slots = heap::filled(options.partial_runs, "a program's parts", PartSlot::default)?;
        // The whole program keeps the statistics.
        let options = CompileOptions { statistics: false, partial_runs: 0, max_concurrent_runs: 0, ..options.clone() };
        Ok(Some(PartialPrograms {
            graph: graph.clone(),
            engines: engines.to_vec(),
            options,
            slots,
            clock_hand: Mutex::new(0),
        }))
    }

    /// The part of these outputs, if it is kept.
    pub fn get(&self, outputs: &[usize]) -> Option<P> {
        self.find(outputs, hash(outputs))
    }

    /// Calls `show` for each part that is kept, in no order.
    pub fn each<T>(&self, show: impl Fn(&[usize], &P) -> T) -> Vec<T> {
        let shown = |part: &PartialProgram<P>| show(&part.outputs, &part.program);
        self.slots.iter().filter_map(|slot| slot.part.read(shown)).collect()
    }

    fn find(&self, outputs: &[usize], hash: u64) -> Option<P> {
        self.slots.iter().filter(|slot| slot.hash.load(Relaxed) == hash).find_map(|slot| {
            let program = |part: &PartialProgram<P>| (*part.outputs == *outputs).then(|| part.program.clone());
            let found = slot.part.read(program).flatten()?;
            if !slot.used.load(Relaxed) {
                slot.used.store(true, Relaxed);
            }
            Some(found)
        })
    }

    /// Keeps a part, unless another thread has compiled it meanwhile. Returns the one to run.
    pub fn keep(&self, outputs: &[usize], program: P) -> P {
        let hash = hash(outputs);
        let mut part = PartialProgram { outputs: outputs.into(), program: program.clone() };
        let mut clock_hand = self.clock_hand.lock();
        if let Some(other) = self.find(outputs, hash) {
            return other;
        }
        let count = self.slots.len();
        let empty = self.slots.iter().position(|slot| slot.hash.load(Relaxed) == 0);
        // Twice around: the first round may find that all were used. If all are being read just now, this run has the
        // part for itself.
        for i in 0..2 * count {
            let at = empty.unwrap_or((*clock_hand + i) % count);
            let slot = &self.slots[at];
            if empty.is_none() && slot.used.swap(false, Relaxed) {
                continue;
            }
            match slot.part.replace(part) {
                Ok(old) => {
                    slot.hash.store(hash, Relaxed);
                    *clock_hand = (at + 1) % count;
                    drop(clock_hand);
                    // It may hold the last reference to the host's kernels.
                    drop(old);
                    break;
                }
                Err(back) => part = back,
            }
        }
        program
    }
}

/// The hash of a list, never 0.
fn hash(outputs: &[usize]) -> u64 {
    let state = |hash: u64, &output: &usize| (hash ^ output as u64).wrapping_mul(0x0000_0100_0000_01b3);
    outputs.iter().fold(0xcbf2_9ce4_8422_2325, state).max(1)
}
