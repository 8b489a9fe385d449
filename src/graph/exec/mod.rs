//! Running a program.
//!
//! # A run
//!
//! `Bound` checks a run's tensors. On a stream they travel in a `Flight`, a piece of the stream's work; when its turn
//! comes it takes a `RunState` and points it at them. The state is the run's memory: views of all arguments, the arena,
//! counters, queues. If helpers could not save what they cost, the calling thread (or the thread that drains the
//! stream) walks along the program's array (`serial`). Else it opens the state's `Tokens` and works (`worker`), and is
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
//! other cheap ones go onto its own list, which costs two plain stores per node; what of it others are given, and when,
//! is in `share`. Dear ones, of a few microseconds and more, are shown to all workers, by rank (`shown`), and whoever
//! goes into one leaves nothing on a list of his own. Who may be called for what is shown, and why nobody is missed, is
//! in `hands`. Work that is worth less than a hop stays where it is: with cheap nodes a run is as fast on many threads as
//! on one.
//!
//! # Costs
//!
//! A node's cost is the host's hint or the kernel's estimate, else a prior of a microsecond. The first run of a program
//! measures each node and replaces the prior; the next three, and then one in 509, measure again: a smaller figure counts
//! at once, a larger one by half at most, since an interrupted thread measures far too much. Runs that take much longer
//! or much less than they should lead to one that measures and is believed (`graph::ways`); and a run in one thread that
//! is late is gone on with by several (`RunState::promote`). Costs decide who runs what, never what comes out.

mod admission;
mod bind;
mod calls;
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
mod state;
mod together;
mod visit;
mod worker;

pub(super) use admission::{Admission, Asks};
pub use bind::Bound;
pub(super) use counters::Counters;
pub(super) use direct::{DirectRun, Stock};
pub(super) use flight::Flight;
pub(super) use orders::Orders;
pub use run::{Outer, Run};
pub(super) use state::{MOST_SORTED, RunState};
pub(super) use together::Together;
