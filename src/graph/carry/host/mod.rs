//! Threads of the host carry a run: one alone along the plan, or several that share it by arrivals.
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

pub(in crate::graph) mod dynamic;
pub(in crate::graph) mod execute;
pub(in crate::graph) mod independent;
pub(in crate::graph) mod inner;
pub(in crate::graph) mod one_by_one;
pub(in crate::graph) mod ops;
pub(in crate::graph) mod overlap;
pub(in crate::graph) mod pending;
pub(in crate::graph) mod role;
pub(in crate::graph) mod serial;
pub(in crate::graph) mod share;
pub(in crate::graph) mod shown;
pub(in crate::graph) mod visit;
pub(in crate::graph) mod worker;
