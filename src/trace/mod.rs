//! Traces: what ran where and when, on one timeline, at no cost when nobody looks.
//!
//! # From a record to a file
//!
//! ```text
//! a worker ── Tape ──► RecordRing (one per thread) ──► Timeline ──► perfetto, chrome, stacks, report, page
//!             stamps   32-byte records                 spans with names, times in nanoseconds
//!                      Table: what the numbers mean ───┘
//! ```
//!
//! A *trace* (`Recorder`) has a stock of rings, made when it begins. A thread takes one with its first record; when
//! none is left, its records are lost and counted. Up to `MOST_TRACES` record at once, each with its own rings, so
//! that scopes overlap without any of them knowing of the others. Everything that is traced asks once when it begins
//! whether any trace records (`is_on`: one relaxed load, which also says whether there are hooks), and if so which of
//! them want it (`Traces::find`): by their filter, because they were asked for, or because the thread works for
//! something that they are of. Each thread that works for it then opens a `Tape`, writes with that, and closes it. An
//! open tape keeps the memory that it writes to (`post`).
//!
//! # What a record costs
//!
//! A stamp (`clock`), four stores, and the ring's head. No lock, no allocation, no call of the system; but a thread's
//! first record in a trace asks the system for the thread's number and name. In a walk along the plan a node takes one
//! stamp: its end is the next one's beginning. In a shared run it takes two, and one word in the run's state for when
//! it became ready and by which node.
//!
//! # Tracks
//!
//! A stream of a device and a communicator, which are no threads, have a `Track` each. It takes a ring as a thread
//! does, and one thread at a time writes to it. Its records come late, with times in nanoseconds, so it keeps the
//! traces that they are of (`KeptTraces`), and a trace asks for what is known before it is read (`Collect`).
//!
//! # Hooks
//!
//! Functions of a tracer of the host's (`host_hooks`), and markers for tools (`nvtx`, `itt`), are told of runs, nodes
//! and regions while they are made, beginnings too. `hooks` has their places. A run or region that enters some is of
//! the version that writes records, also if no trace wants it.
//!
//! # What is derived when it is read
//!
//! - *Iterations.* The beginning of each is a record of its own. A node's iteration is the last one that had begun, at
//!   the place where the run counts those of the innermost loop around the node (`NodeOfTable::counted_at`).
//! - *Nesting.* Spans of one thread are nested by their times alone, since all stamps of a thread come from one clock.
//! - *Names.* Records have numbers; a table that explains an object's numbers is given to a trace with the first record
//!   that needs it, and outlives the object.
//!
//! # Fork and end
//!
//! The environment may ask for a trace of the process (`environment`, `request`), and for markers (`markers`): the
//! border begins them in the first call, and saves the trace at the end (`ffi/environment.rs`).
//!
//! A trace that is stopped takes no new writers; those that are there write to the end of what they do, and what began
//! behind the stop is not read. A child of fork has no traces: the first look at a place that its parent used takes it
//! off the list.

mod active;
mod analysis;
mod chrome;
mod clock;
mod environment;
mod explained;
mod format;
mod handle;
mod hooks;
mod host_hooks;
#[cfg(target_os = "linux")]
mod itt;
mod markers;
#[cfg(all(test, loom))]
mod models_of_posts;
mod names;
#[cfg(target_os = "linux")]
mod nvtx;
mod output;
mod page;
mod perfetto;
mod post;
mod program_names;
mod proto;
mod record;
mod recorder;
mod replay;
mod report;
mod request;
mod ring;
mod run_graph;
mod shares;
mod sort;
mod stacks;
mod sums;
mod table;
mod tape;
mod timeline;
#[cfg(target_os = "linux")]
mod tool_library;
mod track;

pub use active::is_on;
pub use analysis::{NodeOfGraph, RunAnalysis, analyses, analysis_of};
pub use clock::{is_in_ticks, now};
pub use environment::ProcessTrace;
pub use explained::Explained;
pub use format::TraceFormat;
pub use handle::{ThreadFigures, Trace, TraceFigures};
pub use hooks::{BoxedHooks, HookedRun, HooksOf, Told, set as set_hooks};
pub use host_hooks::HostHooks;
pub use markers::{use_markers, use_markers_of_environment};
pub use names::{intern, is_known};
pub use program_names::ProgramNames;
pub use record::{CANCELLED, COMPILED, FAILED, HELPER, KNOWN, LAST, LATER, NONE, TraceEvent, TraceRecord};
pub use recorder::{Collect, Filter, MOST_TRACES, Recorder, Settings};
pub use replay::NodeSaving;
pub use run_graph::{PathPart, PathSegment};
pub use shares::{Shares, shares};
pub use table::{NodeOfTable, Nodes};
pub use tape::{Tape, Traces, Working, frame_around, made, memory};
pub use timeline::{NO_NUMBER, RunOfTrace, Timeline, TraceSpan};
pub use track::{KeptTraces, Track};
