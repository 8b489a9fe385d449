//! The host's thread pool, as a vtable of C functions.
//!
//! Chapter: Thread pool.
use std::ffi::c_void;

/// One closure of weir's: call it as task(arg, i). It never unwinds, never blocks on another closure of weir's, and may
/// call back into the pool it runs on.
pub type weir_task_fn = Option<unsafe extern "C" fn(arg: *mut c_void, i: i32)>;

/// Processes a piece of a region: the items begin <= i < end. `slot` (0 <= slot < the region's number of slots) is held
/// by no other piece that runs at the same time, so it may index scratch memory. Returns WEIR_OK, or a status that
/// stops the pieces that have not started.
pub type weir_range_fn = Option<unsafe extern "C" fn(arg: *mut c_void, begin: i64, end: i64, slot: i32) -> i32>;

/// Processes a box of a region over several dimensions: the points with begin[d] <= i[d] < end[d] in each dimension d.
/// Both arrays have as many members as the region has dimensions, and are valid during the call. `slot` and the result
/// are as for weir_range_fn.
pub type weir_box_fn =
    Option<unsafe extern "C" fn(arg: *mut c_void, begin: *const i64, end: *const i64, slot: i32) -> i32>;

/// Runs once after all pieces of a region, in the thread that leaves the region last, and not at all if a piece has
/// failed. Returns WEIR_OK, or the status that the region then returns.
pub type weir_epilogue_fn = Option<unsafe extern "C" fn(arg: *mut c_void) -> i32>;

/// Releases what a callback's context holds. Runs exactly once, after the last use, on any thread.
pub type weir_destroy_fn = Option<unsafe extern "C" fn(ctx: *mut c_void)>;

/// Properties of a pool. Fixed for the life of the pool object.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_threadpool_flags {
    /// parallel_for may return before its tasks ran; weir waits with a counter of its own.
    WEIR_THREADPOOL_ASYNCHRONOUS = 1,
    /// Small pieces of a region are welcome, four per thread or more (Eigen, oneTBB). Without it (OpenMP) there are
    /// about two per thread, the first ones large.
    WEIR_THREADPOOL_AUTO_BALANCING = 2,
    /// A parallel_for that waits may be called from inside a task. Without it, and without schedule, a region that
    /// starts inside a task of the same pool runs in its caller. (schedule, and an asynchronous parallel_for, may
    /// always be called from inside a task.)
    WEIR_THREADPOOL_NESTED = 4,
    /// Only the pool's own threads run work that was given to it. Without this flag a thread that waits for such work,
    /// wherever it waits, runs the part that has not begun. Requires in_parallel. Work that the pool refuses still runs
    /// in the thread that offered it.
    WEIR_THREADPOOL_OWN_THREADS_ONLY = 8,
}

/// Hints for a closure handed to schedule. They never change a result.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_task_hint {
    /// sizeof(weir_task_hint), set by weir.
    pub struct_size: usize,
    /// Estimated run time in nanoseconds; 0 = unknown.
    pub cost_ns: u64,
    /// Priority of the stream that submitted the work: below 0 = low, 0 = normal, above 0 = high.
    pub priority: i32,
    /// Reserved, 0.
    pub flags: u32,
}

/// The host's thread pool. A host provides parallel_for, schedule, or both; weir derives the other.
///
/// Copied by weir_threadpool_create. All functions may be called from any thread, several at a time, and from inside
/// tasks of the pool. They must not throw, longjmp or unwind. weir holds no lock while it calls them.
/// docs/threadpool.md is the full contract.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_threadpool_vtable {
    /// sizeof(weir_threadpool_vtable) of the host's header. Members beyond it read as NULL.
    pub struct_size: usize,
    /// OR of weir_threadpool_flags.
    pub flags: u64,
    /// Required. Threads that can run tasks at once, not counting the caller of weir. May change between calls;
    /// values below 1 count as 1.
    pub num_threads: Option<unsafe extern "C" fn(ctx: *mut c_void) -> i32>,
    /// Calls task(arg, i) exactly once for each 0 <= i < n, on any threads, in any order, at once or one after the
    /// other. Returns 0 when all have returned (with WEIR_THREADPOOL_ASYNCHRONOUS: when all are accepted), nonzero if
    /// none was and will be called.
    pub parallel_for:
        Option<unsafe extern "C" fn(ctx: *mut c_void, n: i32, task: weir_task_fn, arg: *mut c_void) -> i32>,
    /// Calls task(arg, 0) exactly once, on any thread, at any time, even before it returns. Returns 0, or nonzero if
    /// it refuses: then task is never called and weir does the work elsewhere.
    pub schedule: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            task: weir_task_fn,
            arg: *mut c_void,
            hint: *const weir_task_hint,
        ) -> i32,
    >,
    /// Optional: nonzero if the calling thread belongs to this pool. Without it weir only knows the tasks that it
    /// submitted itself.
    pub in_parallel: Option<unsafe extern "C" fn(ctx: *mut c_void) -> i32>,
    /// Optional: the calling thread's index in the pool, -1 for a foreign thread.
    pub thread_index: Option<unsafe extern "C" fn(ctx: *mut c_void) -> i32>,
    /// Optional: runs one queued task of the pool in the calling thread; 0 if there was none.
    pub help: Option<unsafe extern "C" fn(ctx: *mut c_void) -> i32>,
    /// Optional: called exactly once, when the last task has done its work (the thread that ran it may still be on its
    /// way out of it) and the last reference is gone. Never called inside a task of this pool: if the last reference
    /// goes inside one, the next call of weir from elsewhere makes the call. Never called in a forked child.
    pub release: Option<unsafe extern "C" fn(ctx: *mut c_void)>,
    /// Optional: an upper bound of num_threads for the life of the pool; bounds scratch memory. Without it weir uses
    /// the value of num_threads when scratch is first allocated.
    pub max_threads: Option<unsafe extern "C" fn(ctx: *mut c_void) -> i32>,
}

/// The costs of bringing threads of a pool to a region, in nanoseconds. A region asks for helpers if they save more
/// than that.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_threadpool_costs {
    /// sizeof(weir_threadpool_costs), set by the caller.
    pub struct_size: usize,
    /// Time that the caller spends on each helper before it can work itself.
    pub submit_ns: f64,
    /// Time from the request until the helper begins.
    pub arrive_ns: f64,
    /// Time from the end of the last piece until the caller continues.
    pub join_ns: f64,
}

/// For weir_threadpool_options.spin_ns: threads without work sleep at once.
pub const WEIR_SPIN_NONE: u64 = u64::MAX;

/// Options of a new pool. All-zero, and NULL, is the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_threadpool_options {
    /// sizeof(weir_threadpool_options) of the caller's header.
    pub struct_size: usize,
    /// For weir_threadpool_create_builtin: the number of threads, 1 to 256; 0 = one for each processor that this
    /// process may use (affinity mask and cgroup limit), or WEIR_NUM_THREADS from the environment.
    pub num_threads: i32,
    /// For weir_threadpool_create: 1 = the pool is checked, 0 = not. A pool in checking mode is verified on the work
    /// that it gets anyway: a task run twice, lost, or run after refusal, a wrong index, a parallel_for that returns
    /// early, threads with a wrong in_parallel or thread_index. A faulty pool never affects weir's work: each piece is
    /// still done once. The first clause that it breaks is kept (weir_threadpool_get_broken_clause). From then on the
    /// pool gets no more work, the callers do all of it, and weir_parallel_for, weir_stream_synchronize,
    /// weir_run_synchronize, and calls on synchronous streams that use the pool return FAILED_PRECONDITION with the
    /// clause after finishing their work. A task that the pool accepted and has not begun after five seconds counts as
    /// lost, and a later call of weir runs it. Each task costs a few microseconds and an allocation more, also where
    /// later calls allocate nothing otherwise.
    pub checking: i32,
    /// For weir_threadpool_create_builtin: how long a thread without work spins before it sleeps, in nanoseconds, at
    /// most one second; 0 = 20 us, WEIR_SPIN_NONE = not at all.
    pub spin_ns: u64,
    /// The costs of the pool's threads, for a host that knows them; NULL = to be measured. Shared regions refine the
    /// figures all the same.
    pub costs: *const weir_threadpool_costs,
}

/// How weir_parallel_for and its variants split a region. Zero in a member means "you choose".
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_parallel_hint {
    /// sizeof(weir_parallel_hint) of the caller's header.
    pub struct_size: usize,
    /// Estimated nanoseconds per item (per point in several dimensions), fractions too. 0 = unknown: the caller begins
    /// alone, and asks for helpers when it has seen what an item costs; the measured cost of a range function is
    /// remembered.
    pub cost_ns: f64,
    /// Smallest piece worth handing out, in items; 0 = 1. Pieces begin at multiples of it. 0 in several dimensions,
    /// where the tile is the grain.
    pub grain: i64,
    /// Most slots (threads at once) to use; 0 = the pool's width and the caller.
    pub max_slots: i32,
    /// Reserved, 0.
    pub flags: u32,
    /// NULL, or a function to run after all pieces, with the same arg.
    pub epilogue: weir_epilogue_fn,
}
