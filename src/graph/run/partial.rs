//! Runs that compute a part of a program's outputs, and the parts that a program keeps compiled for them.
//!
//! A part is a program of its own (`create`), made when a run first asks for its list of outputs, and found
//! again by that list. Finding it takes no lock: the places are cells that many may read (`sync::RcuCell`), and
//! each says by a mark whether it is worth a look. Who finds nothing compiles, outside of any lock, since compiling
//! asks the host's kernels; of two threads that compile the same part one puts it in, and the other takes it over. When
//! all places are full a part goes that was not asked for since the hand came by last (the clock algorithm); runs of it
//! that go on hold it until they end.
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
struct Part<P> {
    outputs: Box<[usize]>,
    program: P,
}

struct Place<P> {
    /// Of the list that is in it; 0 = empty. ORDERING: Relaxed here and for `asked_for`; a hint, the list itself is
    /// compared.
    mark: AtomicU64,
    /// Since the hand came by.
    asked_for: AtomicBool,
    part: RcuCell<Part<P>>,
}

impl<P> Default for Place<P> {
    fn default() -> Place<P> {
        Place { mark: AtomicU64::new(0), asked_for: AtomicBool::new(false), part: RcuCell::default() }
    }
}

/// What a program keeps for runs of its parts, each a `P`.
pub(in crate::graph) struct Parts<P> {
    pub graph: Contents,
    pub engines: Vec<Ref<Engine>>,
    pub options: CompileOptions,
    places: Box<[Place<P>]>,
    /// The place that is emptied next. Held by who changes places.
    hand: Mutex<usize>,
}

/// Most parts that a program keeps: they are looked through one by one.
pub const MOST_PARTS: usize = 256;

impl<P: Clone> Parts<P> {
    /// None if the options ask for none.
    pub fn new(graph: &Contents, engines: &[Ref<Engine>], options: &CompileOptions) -> Result<Option<Parts<P>>> {
        if options.partial_runs == 0 {
            return Ok(None);
        }
        let places = heap::filled(options.partial_runs, "a program's parts", Place::default)?;
        // The figures are the whole program's.
        let options = CompileOptions { statistics: false, partial_runs: 0, max_concurrent_runs: 0, ..options.clone() };
        Ok(Some(Parts { graph: graph.clone(), engines: engines.to_vec(), options, places, hand: Mutex::new(0) }))
    }

    /// The part of these outputs, if it is kept.
    pub fn get(&self, outputs: &[usize]) -> Option<P> {
        self.find(outputs, mark(outputs))
    }

    /// Shows each part that is kept, in no order.
    pub fn each<T>(&self, show: impl Fn(&[usize], &P) -> T) -> Vec<T> {
        let shown = |part: &Part<P>| show(&part.outputs, &part.program);
        self.places.iter().filter_map(|place| place.part.read(shown)).collect()
    }

    fn find(&self, outputs: &[usize], mark: u64) -> Option<P> {
        self.places.iter().filter(|place| place.mark.load(Relaxed) == mark).find_map(|place| {
            let program = |part: &Part<P>| (*part.outputs == *outputs).then(|| part.program.clone());
            let found = place.part.read(program).flatten()?;
            if !place.asked_for.load(Relaxed) {
                place.asked_for.store(true, Relaxed);
            }
            Some(found)
        })
    }

    /// Keeps a part, unless somebody else has compiled it meanwhile. Gives the one to run.
    pub fn keep(&self, outputs: &[usize], program: P) -> P {
        let mark = mark(outputs);
        let mut part = Part { outputs: outputs.into(), program: program.clone() };
        let mut hand = self.hand.lock();
        if let Some(other) = self.find(outputs, mark) {
            return other;
        }
        let count = self.places.len();
        let empty = self.places.iter().position(|place| place.mark.load(Relaxed) == 0);
        // Twice around: the first round may find that all were asked for. If all are being read just now, this run has
        // the part for itself.
        for i in 0..2 * count {
            let at = empty.unwrap_or((*hand + i) % count);
            let place = &self.places[at];
            if empty.is_none() && place.asked_for.swap(false, Relaxed) {
                continue;
            }
            match place.part.replace(part) {
                Ok(old) => {
                    place.mark.store(mark, Relaxed);
                    *hand = (at + 1) % count;
                    drop(hand);
                    // It may be the last one who knows the host's kernels.
                    drop(old);
                    break;
                }
                Err(back) => part = back,
            }
        }
        program
    }
}

/// A number for a list, never 0.
fn mark(outputs: &[usize]) -> u64 {
    let state = |hash: u64, &output: &usize| (hash ^ output as u64).wrapping_mul(0x0000_0100_0000_01b3);
    outputs.iter().fold(0xcbf2_9ce4_8422_2325, state).max(1)
}
