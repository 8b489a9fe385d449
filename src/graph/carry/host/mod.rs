//! Threads of the host carry a run: one alone along the plan, or several that share it by arrivals.
//!
//! # Propagation
//!
//! When a node is finished, each of its edges makes an arrival. A successor that waits for one arrival is ready at once
//! (no counter). Others have an arrival counter, a 64-bit word that starts at the number of arrivals; the thread that
//! takes it to zero owns the node, and sets it back to the start value before it runs the node. That is safe because
//! all arrivals of this turn have come, and the next turn begins behind the node: in the next iteration of a loop,
//! which its Next begins when all of this one is done, or in the next run. So nothing is copied or cleared.
//!
//! The nodes inside of a branch or a loop that have no predecessors there are released by the node in front of them. A
//! run is over when all its ends are reached, that is, nodes without successors. A node that is skipped, because the
//! run has failed or was cancelled or because one of its inputs is absent, still makes its arrivals; a skipped cond or
//! loop makes those of all nodes in it (`After::Nothing`). So counters are whole after every run.
//!
//! # Scheduling
//!
//! The finishing thread continues with the first successor that is ready, the one with the longest path to the end. The
//! other cheap ones go onto its own list, which costs two plain stores per node; `share` describes which of it is given
//! to others, and when. Dear ones, of a few microseconds and more, are shown to all workers, by rank (`shown`), and a
//! worker that goes into one leaves nothing on its own list. Which threads may be called for shown nodes, and why no
//! node is missed, is in `helpers`. Work that is worth less than a hop stays where it is: with cheap nodes a run is as
//! fast on many threads as on one.
//!
//! # Costs
//!
//! A node's cost is the host's hint or the kernel's estimate, else a prior of a microsecond. The first run of a program
//! measures each node and replaces the prior; the next three, and then one in 509, measure again: a smaller figure
//! counts at once, a larger one by half at most, since an interrupted thread measures far too much. Runs that take much
//! longer or much less than expected lead to one that measures and replaces the costs (`carry::ways`); and a run in one
//! thread that is late is continued by several (`RunState::promote`). Costs affect only where and when nodes run, never
//! results.

pub(in crate::graph) mod dynamic;
pub(in crate::graph) mod execute;
pub(in crate::graph) mod independent;
pub(in crate::graph) mod inner;
pub(in crate::graph) mod one_by_one;
pub(in crate::graph) mod ops;
pub(in crate::graph) mod overlap;
pub(in crate::graph) mod pending;
pub(in crate::graph) mod role;
pub(in crate::graph) mod run_progress;
pub(in crate::graph) mod run_tape;
pub(in crate::graph) mod serial;
pub(in crate::graph) mod share;
pub(in crate::graph) mod shown;
pub(in crate::graph) mod visit;
pub(in crate::graph) mod walk_timer;
pub(in crate::graph) mod worker;
