//! Running a program.
//!
//! # A run
//!
//! `Bound` checks a run's tensors. On a stream they travel in a `Flight`, a piece of the stream's work; when its turn
//! comes it takes a `Step` and points it at them. The step is the run's memory: views of all arguments, the arena,
//! counters, queues. If helpers could not save what they cost, the calling thread (or the thread that drains the
//! stream) walks along the program's array (`serial`). Else it opens the step's `Tokens` and works (`worker`), and is
//! joined by helpers from the pool, which come late or not at all. The last one out closes the run: if that is the
//! caller, it goes on; else the caller is woken, or the stream resumed. What nodes do is the same in both (`ops`).
//!
//! # Propagation
//!
//! When a node is finished, each of its edges makes an arrival. A target with one arrival to wait for is ready at once
//! (no counter). Others have a counter, a 64-bit word that starts at the number of arrivals; who takes it to zero owns
//! the node, and sets it back to the start value before it runs the node. That is safe because all arrivals of this
//! turn have come, and the next turn begins behind the node: in the next iteration of a loop, which its Next begins
//! when all of this one is done, or in the next run. So nothing is copied or cleared.
//!
//! The nodes that wait for nothing inside of a branch or a loop are released by the node in front of them. A run is
//! over when all its ends are reached, nodes that nobody waits for. A node that is skipped, because the run has failed
//! or was cancelled or because something that it needs is absent, makes its arrivals all the same; a cond or loop that
//! is skipped makes those of all that is in it (`After::Nothing`). So counters are whole after every run.
//!
//! # Scheduling
//!
//! The finishing thread goes on with the first successor that is ready, the one with the longest path to the end. The
//! others go onto its own list, which costs two plain stores per node. A list has a worth: the costs of its nodes and
//! of all that is handed over directly behind them, without nodes that are too cheap to be worth a thread. What of it
//! others are given, and when, is in `share`; when it is worth a hop the pool is asked for one more helper, unless as
//! many are out as it has threads. Work that is worth less stays where it is: with cheap nodes a run is as fast on many
//! threads as on one. A helper that found too little to do makes the next question dearer.
//!
//! A worker without work takes from its own queue, then from the others'; then it looks around for a bounded time,
//! and leaves. It never waits.
//!
//! # Costs
//!
//! A node's cost is the host's hint or the kernel's estimate, else a prior of a microsecond. The first run of a
//! program measures each node and replaces the prior; the next three, and then one in 512, measure again: a smaller
//! figure counts at once, a larger one by half at most, since an interrupted thread measures far too much. Costs
//! decide who runs what, never what comes out.

mod admission;
mod bind;
mod counters;
mod direct;
mod dynamic;
mod flight;
mod hands;
mod independent;
mod inner;
mod merged;
mod one_by_one;
mod ops;
mod orders;
mod overlap;
mod pending;
mod queue;
mod role;
mod run;
mod serial;
mod share;
mod shown;
mod step;
mod together;
mod visit;
mod worker;

pub(super) use admission::{Admission, Asks};
pub use bind::Bound;
pub(super) use counters::Counters;
pub(super) use direct::Stock;
pub(super) use flight::Flight;
pub(super) use orders::Orders;
pub use run::{Outer, Run};
pub(super) use shown::MOST_SORTED;
pub(super) use step::Step;
pub(super) use together::Together;
