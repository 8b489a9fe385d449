//! Opaque handle types. The objects behind them live in the rooms; `ffi` does the casts.
//!
//! Chapter: Objects.
#![forbid(unsafe_code)]

/// A thread pool of the host (or one of the reference pools). All CPU work runs on such a pool or in the calling
/// thread. Shared: create, retain, release.
pub struct weir_threadpool {
    _opaque: [u8; 0],
}
/// Tasks that are spawned while others run, and waited for together. Shared: create, retain, release.
///
/// Chapter: Task group.
pub struct weir_task_group {
    _opaque: [u8; 0],
}
/// One user of the library among others in the process: a set of engines with its own waits and errors. Shared: create,
/// retain, release.
pub struct weir_domain {
    _opaque: [u8; 0],
}
/// A device that runs kernels and owns memory. Shared: create, retain, release.
pub struct weir_engine {
    _opaque: [u8; 0],
}
/// Settings for weir_engine_create. Owned: create, destroy.
pub struct weir_engine_attr {
    _opaque: [u8; 0],
}
/// A host-provided allocator that engines take their memory from. Shared: create, retain, release.
///
/// Chapter: Memory.
pub struct weir_allocator {
    _opaque: [u8; 0],
}
/// An in-order queue of work on one engine. Shared: create, retain, release.
pub struct weir_stream {
    _opaque: [u8; 0],
}
/// Settings for weir_stream_create. Owned: create, destroy.
pub struct weir_stream_attr {
    _opaque: [u8; 0],
}
/// A point in a stream that other streams and threads can wait for. Shared: create, retain, release.
pub struct weir_event {
    _opaque: [u8; 0],
}
/// A range of an engine's memory, or of the caller's own, that tensors can lie in. Shared: create, retain, release.
pub struct weir_buffer {
    _opaque: [u8; 0],
}
/// A dense array of numbers in an engine's memory, or over memory of the caller's own. Shared: create, retain, release.
pub struct weir_tensor {
    _opaque: [u8; 0],
}
/// A function over tensors with a checked signature. Shared: create, retain, release.
pub struct weir_kernel {
    _opaque: [u8; 0],
}
/// A kernel with its tensors on a stream, checked once and enqueued as often as needed. Shared: create, retain,
/// release.
pub struct weir_call {
    _opaque: [u8; 0],
}
/// Weights of matrix products, packed once for all kernels and threads that use them. Shared: create, retain, release.
///
/// Chapter: Matrix products.
pub struct weir_packed_weights {
    _opaque: [u8; 0],
}
/// A running call as the kernel's compute function sees it. Valid only during that call.
pub struct weir_kernel_context {
    _opaque: [u8; 0],
}
/// A call of an asynchronous kernel, until weir_completion_done is called for it. Not an object: it is neither retained
/// nor released.
pub struct weir_completion {
    _opaque: [u8; 0],
}
/// A dataflow graph under construction. Owned: create, destroy; one thread at a time.
pub struct weir_graph {
    _opaque: [u8; 0],
}
/// A compiled graph: immutable and re-entrant, any number of runs at once. Shared: create (by compile), retain,
/// release.
pub struct weir_program {
    _opaque: [u8; 0],
}
/// One run of a program that was started with weir_program_start. Shared: create (by start), retain, release.
pub struct weir_run {
    _opaque: [u8; 0],
}
/// A timeline of nodes, runs and streams, from weir_trace_start (weir/trace.h) on. Shared: create (by start), retain,
/// release.
pub struct weir_trace {
    _opaque: [u8; 0],
}
/// Ranks that exchange values over a transport of the host's (weir/comm.h). Shared: create, retain, release.
///
/// Chapter: Communicator.
pub struct weir_comm {
    _opaque: [u8; 0],
}
/// An object that an engine keeps by name: a variable, a lookup table, a host object. Shared: create or look up,
/// retain, release.
///
/// Chapter: Resources.
pub struct weir_resource {
    _opaque: [u8; 0],
}
