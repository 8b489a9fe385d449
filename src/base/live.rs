//! Process-wide counters of live objects by kind.
//!
//! A counter falls when the object is gone, not when its end begins: a host that reads zero may unload the code that
//! the objects have called.
#![forbid(unsafe_code)]

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// The kinds of objects counted.
#[derive(Clone, Copy, Debug)]
pub enum Counter {
    Threadpools,
    Engines,
    Streams,
    Events,
    Tensors,
    Kernels,
    Graphs,
    Programs,
    Runs,
    Attrs,
    PackedWeights,
    Allocators,
    Buffers,
    Resources,
    Domains,
    Traces,
    Comms,
    Calls,
}

const KINDS: usize = Counter::Calls as usize + 1;
static ALIVE: [AtomicU64; KINDS] = [const { AtomicU64::new(0) }; KINDS];

/// Live objects, by kind.
#[derive(Clone, Copy, Debug)]
pub struct LiveCounts {
    pub threadpools: u64,
    pub engines: u64,
    pub streams: u64,
    pub events: u64,
    pub tensors: u64,
    pub kernels: u64,
    pub graphs: u64,
    pub programs: u64,
    pub runs: u64,
    pub attrs: u64,
    pub packed_weights: u64,
    pub allocators: u64,
    pub buffers: u64,
    pub resources: u64,
    pub domains: u64,
    pub traces: u64,
    pub comms: u64,
    pub calls: u64,
}

/// Counts one object until it is dropped.
#[derive(Debug)]
pub struct Counted(Counter);

impl Counted {
    pub fn new(counter: Counter) -> Counted {
        // ORDERING: Relaxed; any thread that may ask about the object has its handle from the thread that created it.
        ALIVE[counter as usize].fetch_add(1, Relaxed);
        Counted(counter)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // ORDERING: Release pairs with the Acquire in `counts`: a reader of the lower count sees all effects of the
        // object's end.
        ALIVE[self.0 as usize].fetch_sub(1, Release);
    }
}

/// In a child of fork: the parent's objects do not count here.
pub fn begin_anew() {
    // ORDERING: Relaxed; the child has one thread.
    ALIVE.iter().for_each(|alive| alive.store(0, Relaxed));
}

pub fn counts() -> LiveCounts {
    // ORDERING: Acquire, see `Counted`. The counters are read one after another, each as of some recent moment.
    let of = |counter: Counter| ALIVE[counter as usize].load(Acquire);
    LiveCounts {
        threadpools: of(Counter::Threadpools),
        engines: of(Counter::Engines),
        streams: of(Counter::Streams),
        events: of(Counter::Events),
        tensors: of(Counter::Tensors),
        kernels: of(Counter::Kernels),
        graphs: of(Counter::Graphs),
        programs: of(Counter::Programs),
        runs: of(Counter::Runs),
        attrs: of(Counter::Attrs),
        packed_weights: of(Counter::PackedWeights),
        allocators: of(Counter::Allocators),
        buffers: of(Counter::Buffers),
        resources: of(Counter::Resources),
        domains: of(Counter::Domains),
        traces: of(Counter::Traces),
        comms: of(Counter::Comms),
        calls: of(Counter::Calls),
    }
}
