//! Running a program.
//!
//! # A run
//!
//! `Bound` checks a run's tensors. On a stream they travel in a `QueuedRun`, an item of the stream's queue; when it is
//! drained it takes a `RunState` and points it at them. The state is the run's memory: views of all arguments, the
//! arena, counters, queues. If helpers could not save what they cost, the calling thread (or the thread that drains the
//! stream) walks along the program's array (`serial`). Else it opens the state's `RunLatch` and works (`worker`), and
//! is joined by helpers from the pool, which come late or not at all. The last one out closes the run: if that is the
//! caller, it continues; else the caller is woken, or the stream resumed. Nodes do the same work in both cases (`ops`).

pub(in crate::graph) mod bind;
pub(in crate::graph) mod checkout_cell;
pub(in crate::graph) mod handle;
pub(in crate::graph) mod many;
#[cfg(all(test, loom))]
mod models;
pub(in crate::graph) mod nested;
pub(in crate::graph) mod on_stream;
pub(in crate::graph) mod partial;
pub(in crate::graph) mod pool;
pub(in crate::graph) mod program;
pub(in crate::graph) mod queued_run;
pub(in crate::graph) mod rcu_cell;
pub(in crate::graph) mod together;
