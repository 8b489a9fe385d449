//! Hooks: what a host's tracer, or a tool, is told of work while it is done.
//!
//! Hooks stand at a *place*, as a trace does, and are kept there by the same protocol (`post`). What begins (a run, a
//! region) *enters* all places that there are at this moment, tells these hooks of all that it does, in whatever
//! thread, and leaves them when it is over; so each end is told to those that were told of the beginning. Threads that
//! work for it borrow what it has entered (`Told`), and are out of it before it leaves.
//!
//! Hooks that are taken away are told of what is under way, and of nothing that begins later. The last to leave lets
//! them go: nobody waits for that.

use super::active::{self, ActivePlace};
use super::post::Post;
use super::program_names::ProgramNames;
use crate::abi::weir_status;
use crate::base::{Code, Error, Result, process};
use crate::sync::{Global, ambient};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

/// The owner of hooks: each has at most one set of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HooksOf {
    Host,
    Nvtx,
    Itt,
}

/// A run, as hooks are told of it.
#[derive(Clone, Copy)]
pub struct HookedRun<'a> {
    pub names: &'a ProgramNames,
    /// No other run that is under way has it.
    pub number: u32,
    /// The number of the run around it, or 0.
    pub outer: u32,
}

/// The functions that are called. `flags`: as weir_trace_node_flags has them.
pub trait Hooks: Send + Sync {
    fn run_begin(&self, _run: &HookedRun<'_>) {}
    fn run_end(&self, _run: &HookedRun<'_>, _status: weir_status) {}
    fn stay_begin(&self, run: &HookedRun<'_>);
    fn stay_end(&self, run: &HookedRun<'_>);
    fn node_begin(&self, run: &HookedRun<'_>, node: u32, flags: u32);
    fn node_end(&self, run: &HookedRun<'_>, node: u32, flags: u32);
    fn region_begin(&self, number: u32, is_help: bool);
    fn region_end(&self, number: u32, is_help: bool);
    /// Nobody will call it again.
    fn release(&self) {}
}

/// How many places there are. One owner has several while runs under way keep those that were taken away.
const MOST: usize = 8;

struct HookPlace {
    post: Post,
    hooks: AtomicPtr<Box<dyn Hooks>>,
    /// The process that uses it.
    born: AtomicU32,
}

#[cfg(not(loom))]
static PLACES: [HookPlace; MOST] =
    [const { HookPlace { post: Post::new(), hooks: AtomicPtr::new(ptr::null_mut()), born: AtomicU32::new(0) } }; MOST];

/// Models are of other things than the places of this process.
#[cfg(loom)]
static PLACES: [HookPlace; 0] = [];

/// The place of each owner.
static PLACE_OF: Global<[Option<usize>; 3]> = Global::new(|| [None; 3]);

/// Hooks as a place has them, which is one pointer.
pub type BoxedHooks = Box<Box<dyn Hooks>>;

/// From here on the owners' hooks are these, or none. On an error nothing has changed, and nothing is released.
pub fn set<const N: usize>(all: [(HooksOf, Option<BoxedHooks>); N]) -> Result<()> {
    let (mut places, mut new, mut over) = (PLACE_OF.lock(), [None; N], [None; N]);
    let mut owners = [HooksOf::Host; N];
    for (i, (of, hooks)) in all.into_iter().enumerate() {
        owners[i] = of;
        match hooks.map(put).transpose() {
            Ok(at) => new[i] = at,
            Err(error) => {
                new.iter().flatten().for_each(|&at| drop(take(at)));
                return Err(error);
            }
        }
    }
    for (i, of) in owners.into_iter().enumerate() {
        // The old ones go before the new ones are there: nothing begins with both.
        if let Some(old) = std::mem::replace(&mut places[of as usize], new[i]) {
            ActivePlace::Hooks(old).clear();
            over[i] = PLACES[old].post.leave_to_writers().then_some(old);
        }
        if let Some(at) = new[i] {
            PLACES[at].post.open();
            ActivePlace::Hooks(at).set();
        }
    }
    drop(places);
    over.iter().flatten().for_each(|&at| free(at));
    Ok(())
}

/// At a free place, which is not open yet.
fn put(hooks: BoxedHooks) -> Result<usize> {
    let generation = process::generation();
    for (at, place) in PLACES.iter().enumerate() {
        // A child of fork has none of its parent's hooks.
        let born = place.born.load(Relaxed);
        if born != generation && place.born.compare_exchange(born, generation, Relaxed, Relaxed).is_ok() {
            ActivePlace::Hooks(at).clear();
            place.post.forget();
        }
        if place.post.take() {
            // ORDERING: Relaxed; `open` publishes it.
            place.hooks.store(Box::into_raw(hooks), Relaxed);
            return Ok(at);
        }
    }
    Err(Error::new(Code::ResourceExhausted, format!("runs under way keep {MOST} hooks that were taken away")))
}

/// Makes a place free that nobody uses.
fn take(at: usize) -> Option<BoxedHooks> {
    let hooks = PLACES[at].hooks.swap(ptr::null_mut(), Relaxed);
    // SAFETY: from `Box::into_raw`, taken out once. The post, or the owner of a place that was never open, says that
    // nobody is here.
    let hooks = (!hooks.is_null()).then(|| unsafe { Box::from_raw(hooks) });
    PLACES[at].post.free();
    hooks
}

/// The last user is gone.
fn free(at: usize) {
    if let Some(hooks) = take(at) {
        ambient::call(|| hooks.release());
    }
}

/// The hooks that something has entered, by their places as bits; they are there until it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told(u32);

impl Told {
    pub fn bits(self) -> u32 {
        self.0
    }

    pub fn of_bits(bits: u32) -> Told {
        Told(bits)
    }

    #[inline]
    pub fn is_nobody(self) -> bool {
        self.0 == 0
    }

    /// Enters all that there are.
    pub fn enter() -> Told {
        let entered = active::hooks().filter(|&at| {
            let Some(place) = PLACES.get(at) else { return false };
            if place.born.load(Relaxed) != process::generation() {
                // Of the process that this one was forked from.
                ActivePlace::Hooks(at).clear();
                return false;
            }
            let is_there = place.post.enter();
            if !is_there {
                leave(at);
            }
            is_there
        });
        Told(entered.fold(0, |bits, at| bits | 1 << at))
    }

    /// Of what has entered, once, when nobody tells them anything more.
    pub fn leave(self) {
        (0..MOST).filter(|at| self.0 >> at & 1 == 1).for_each(leave);
    }

    fn each(self, call: impl Fn(&dyn Hooks)) {
        let _calling = ambient::calling();
        let mut left = self.0;
        while let Some(place) = PLACES.get(left.trailing_zeros() as usize) {
            left &= left - 1;
            // SAFETY: entered by the run or region that the calling thread works for, which leaves behind it: so the
            // post has kept what was put here, and `enter` has seen it.
            call(&**unsafe { &*place.hooks.load(Relaxed) });
        }
    }

    #[cold]
    pub fn run_begin(self, run: &HookedRun<'_>) {
        self.each(|hooks| hooks.run_begin(run));
    }

    #[cold]
    pub fn run_end(self, run: &HookedRun<'_>, status: weir_status) {
        self.each(|hooks| hooks.run_end(run, status));
    }

    #[cold]
    pub fn stay_begin(self, run: &HookedRun<'_>) {
        self.each(|hooks| hooks.stay_begin(run));
    }

    #[cold]
    pub fn stay_end(self, run: &HookedRun<'_>) {
        self.each(|hooks| hooks.stay_end(run));
    }

    #[cold]
    pub fn node_begin(self, run: &HookedRun<'_>, node: u32, flags: u32) {
        self.each(|hooks| hooks.node_begin(run, node, flags));
    }

    #[cold]
    pub fn node_end(self, run: &HookedRun<'_>, node: u32, flags: u32) {
        self.each(|hooks| hooks.node_end(run, node, flags));
    }

    pub fn region_begin(self, number: u32, is_help: bool) {
        if !self.is_nobody() {
            self.each(|hooks| hooks.region_begin(number, is_help));
        }
    }

    pub fn region_end(self, number: u32, is_help: bool) {
        if !self.is_nobody() {
            self.each(|hooks| hooks.region_end(number, is_help));
        }
    }
}

fn leave(at: usize) {
    if PLACES[at].post.leave() {
        free(at);
    }
}
