//! Runs that compute a part of a program's outputs, and the parts that a program keeps compiled for them.
//!
//! A part is a program of its own (`compile::part`), made when a run first asks for its list of outputs, and found
//! again by that list. Finding it takes no lock: the places are cells that many may read (`sync::Replaceable`), and
//! each says by a mark whether it is worth a look. Who finds nothing compiles, outside of any lock, since compiling
//! asks the host's kernels; of two threads that compile the same part one puts it in, and the other takes it over. When
//! all places are full a part goes that was not asked for since the hand came by last (the clock algorithm); runs of it
//! that go on hold it until they end.
#![forbid(unsafe_code)]

use super::compile::{check_outputs, compile_part};
use super::contents::Contents;
use super::options::{CompileOptions, RunOptions};
use super::program::Program;
use crate::base::{Error, Object, Ref, Result};
use crate::engine::Engine;
use crate::memory::heap;
use crate::sync::{Mutex, Replaceable};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A list of outputs, and the program that computes them.
struct Part {
    outputs: Box<[usize]>,
    program: Ref<Program>,
}

#[derive(Default)]
struct Place {
    /// Of the list that is in it; 0 = empty. ORDERING: Relaxed here and for `asked_for`; a hint, the list itself is
    /// compared.
    mark: AtomicU64,
    /// Since the hand came by.
    asked_for: AtomicBool,
    part: Replaceable<Part>,
}

/// What a program keeps for runs of its parts.
pub(super) struct Parts {
    graph: Contents,
    engines: Vec<Ref<Engine>>,
    options: CompileOptions,
    places: Box<[Place]>,
    /// The place that is emptied next. Held by who changes places.
    hand: Mutex<usize>,
}

/// Most parts that a program keeps: they are looked through one by one.
pub const MOST_PARTS: usize = 256;

impl Parts {
    /// None if the options ask for none.
    pub fn new(graph: &Contents, engines: &[Ref<Engine>], options: &CompileOptions) -> Result<Option<Parts>> {
        if options.partial_runs == 0 {
            return Ok(None);
        }
        let places = heap::filled(options.partial_runs, "a program's parts", Place::default)?;
        // The figures are the whole program's.
        let options = CompileOptions { statistics: false, partial_runs: 0, max_concurrent_runs: 0, ..options.clone() };
        Ok(Some(Parts { graph: graph.clone(), engines: engines.to_vec(), options, places, hand: Mutex::new(0) }))
    }

    fn find(&self, outputs: &[usize], mark: u64) -> Option<Ref<Program>> {
        self.places.iter().filter(|place| place.mark.load(Relaxed) == mark).find_map(|place| {
            let program = |part: &Part| (*part.outputs == *outputs).then(|| Ref::clone(&part.program));
            let found = place.part.read(program).flatten()?;
            if !place.asked_for.load(Relaxed) {
                place.asked_for.store(true, Relaxed);
            }
            Some(found)
        })
    }

    /// Keeps a part, unless somebody else has compiled it meanwhile. Gives the one to run.
    fn keep(&self, outputs: &[usize], mark: u64, program: Ref<Program>) -> Ref<Program> {
        let mut part = Part { outputs: outputs.into(), program: Ref::clone(&program) };
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

/// A part as it is told of.
pub(super) struct KeptPart {
    pub outputs: Box<[usize]>,
    pub nodes: usize,
    pub arena_bytes: usize,
}

impl Program {
    /// The program to run instead of this one, if the options ask for a part of its outputs.
    #[inline(always)]
    pub fn part(&self, options: Option<&RunOptions>) -> Result<Option<Ref<Program>>> {
        match options.and_then(|options| options.outputs.as_deref()) {
            None => Ok(None),
            Some(outputs) => self.part_of(outputs).map(Some),
        }
    }

    fn part_of(&self, outputs: &[usize]) -> Result<Ref<Program>> {
        let Some(parts) = &self.parts else {
            return Err(Error::precondition(format!(
                "program '{}' was compiled without partial runs (weir_compile_options_set_partial_runs)",
                self.name()
            )));
        };
        let mark = mark(outputs);
        if let Some(program) = parts.find(outputs, mark) {
            return Ok(program);
        }
        check_outputs(outputs, self.outputs().len())?;
        let compile = || compile_part(&parts.graph, &parts.engines, outputs, &self.compiled, &parts.options);
        let program = heap::whole(compile).map_err(|error| error.within(format_args!("outputs {outputs:?}")))?;
        Ok(parts.keep(outputs, mark, Object::shared(program)))
    }

    /// The parts that are kept, in no order.
    pub(super) fn kept_parts(&self) -> Vec<KeptPart> {
        let places = self.parts.iter().flat_map(|parts| &parts.places);
        let told = |part: &Part| KeptPart {
            outputs: part.outputs.clone(),
            nodes: part.program.num_nodes(),
            arena_bytes: part.program.plan().arena_bytes,
        };
        places.filter_map(|place| place.part.read(told)).collect()
    }
}
