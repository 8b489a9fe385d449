//! Threads that the library starts: named, counted, listed.
//!
//! A thread enters the list with its start and removes itself as its last step, both under the list's lock; in between
//! nobody touches the entry, so work pays nothing for it. The lock is held across the start itself: a thread that could
//! not be started was never on the list, and one that runs finds itself there.
//!
//! Threads are the C library's own, not std's: std asks for the record of a thread past the library's allocator, and
//! ends the process when there is no memory for it. For the same reason nothing in the library calls
//! `std::thread::current`; `me` tells threads apart.

use super::{Global, MutexGuard, fork};
use crate::abi::{weir_thread_info, weir_thread_origin, weir_thread_origin_value as V};
use crate::base::text;
use std::cell::Cell;
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why a thread was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadOrigin {
    BuiltinPool,
    Lane,
    EnginePool,
    KindPool,
    Conformance,
    Watch,
}

const ORIGINS: usize = ThreadOrigin::Watch as usize + 1;

impl ThreadOrigin {
    fn value(self) -> weir_thread_origin {
        let value = match self {
            ThreadOrigin::BuiltinPool => V::WEIR_THREAD_ORIGIN_BUILTIN_POOL,
            ThreadOrigin::Lane => V::WEIR_THREAD_ORIGIN_LANE,
            ThreadOrigin::EnginePool => V::WEIR_THREAD_ORIGIN_ENGINE_POOL,
            ThreadOrigin::KindPool => V::WEIR_THREAD_ORIGIN_KIND_POOL,
            ThreadOrigin::Conformance => V::WEIR_THREAD_ORIGIN_CONFORMANCE,
            ThreadOrigin::Watch => V::WEIR_THREAD_ORIGIN_WATCH,
        };
        value as weir_thread_origin
    }
}

/// The common data of threads that belong together.
#[derive(Debug)]
pub struct ThreadGroup {
    pub origin: ThreadOrigin,
    /// "weir-pool3"; a thread's name is this and its index.
    pub name: String,
    /// The stream, engine or kind that they serve; "" for a pool that the host made.
    pub owner: String,
    /// The pool's id; 0 for none.
    pub pool: u64,
}

/// A thread on the list.
#[derive(Debug)]
pub struct Thread {
    group: Arc<ThreadGroup>,
    /// None for a thread that is alone in its group.
    index: Option<usize>,
    /// 0 until the thread itself has run.
    os_id: AtomicU64,
}

#[derive(Debug)]
struct ThreadList {
    started: u64,
    running: Vec<Arc<Thread>>,
}

static LIST: Global<ThreadList> = Global::new(|| ThreadList { started: 0, running: Vec::new() });

fn list() -> MutexGuard<'static, ThreadList> {
    LIST.lock()
}

/// How many threads were started and are running.
#[derive(Clone, Copy, Debug)]
pub struct ThreadCounts {
    pub started: u64,
    pub alive: u64,
    by_origin: [u64; ORIGINS],
}

impl ThreadCounts {
    /// Threads of this origin that are running.
    pub fn alive_of(&self, origin: ThreadOrigin) -> u64 {
        self.by_origin[origin as usize]
    }
}

/// All counts, as of one moment.
pub fn counts() -> ThreadCounts {
    let list = list();
    let mut by_origin = [0; ORIGINS];
    list.running.iter().for_each(|thread| by_origin[thread.group.origin as usize] += 1);
    ThreadCounts { started: list.started, alive: list.running.len() as u64, by_origin }
}

/// The threads that are running now, in the order of their start.
pub fn running() -> Vec<Arc<Thread>> {
    list().running.clone()
}

/// Starts a thread. It is on the list when this returns, and until `run` has returned.
pub fn spawn(group: &Arc<ThreadGroup>, index: Option<usize>, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    fork::check().map_err(io::Error::other)?;
    let thread = Arc::new(Thread { group: Arc::clone(group), index, os_id: AtomicU64::new(0) });
    let itself = Arc::clone(&thread);
    let body = move || {
        let entry = ThreadRecord(itself);
        // ORDERING: Relaxed; a number for people, no data depends on it.
        entry.0.os_id.store(os_id(), Relaxed);
        IS_OWN.set(true);
        run();
    };
    let mut list = list();
    list.running.try_reserve(1).map_err(|_| io::ErrorKind::OutOfMemory)?;
    start(thread.os_name(), body)?;
    list.started += 1;
    list.running.push(thread);
    Ok(())
}

thread_local! {
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// Whether the library has started the calling thread.
pub fn is_own() -> bool {
    IS_OWN.get()
}

/// Created and dropped by the thread that it describes.
struct ThreadRecord(Arc<Thread>);

impl Drop for ThreadRecord {
    fn drop(&mut self) {
        list().running.retain(|thread| !Arc::ptr_eq(thread, &self.0));
    }
}

impl Thread {
    /// "weir-cpu0-1"
    fn name(&self) -> String {
        match self.index {
            Some(index) => format!("{}-{index}", self.group.name),
            None => self.group.name.clone(),
        }
    }

    /// The name for the system, which cuts names after 15 bytes: so it is cut here, and the index stays whole. Ends
    /// with a zero.
    fn os_name(&self) -> [u8; OS_NAME + 1] {
        let (mut name, mut index) = ([0; OS_NAME + 1], [0; OS_NAME]);
        let free = index.len();
        let mut rest = &mut index[..];
        if let Some(number) = self.index {
            // Digits that do not fit are left out: no thread has a number that long.
            let _ = write!(rest, "-{number}");
        }
        let len = free - rest.len();
        let head = text::head(&self.group.name, OS_NAME - len);
        name[..head.len()].copy_from_slice(head.as_bytes());
        name[head.len()..][..len].copy_from_slice(&index[..len]);
        name[..head.len()].iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b'?');
        name
    }

    pub fn info(&self) -> weir_thread_info {
        weir_thread_info {
            struct_size: 0,
            origin: self.group.origin.value(),
            index: self.index.unwrap_or(0) as u32,
            pool: self.group.pool,
            os_id: self.os_id.load(Relaxed),
            name: text::fixed(&self.name()),
            owner: text::fixed(&self.group.owner),
        }
    }
}

/// Longest name of a thread for the system.
const OS_NAME: usize = 15;

/// Panics are caught at the borders of the work itself; one that escapes them ends the thread, and not the process.
fn guarded(run: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
        std::mem::forget(payload);
    }
}

/// The smallest stack of a thread. It is as large as the process's other threads have it, if that is more: functions of
/// the host's run there that may have been written for such a stack.
#[cfg(unix)]
const LEAST_STACK_BYTES: usize = 2 << 20;

/// Starts a thread that nobody joins. None is started without memory for its closure or for the thread.
#[cfg(unix)]
fn start<F: FnOnce() + Send + 'static>(name: [u8; OS_NAME + 1], run: F) -> io::Result<()> {
    extern "C" fn main<F: FnOnce()>(arg: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: `start` has left it to this thread, which is given it once.
        let start = unsafe { Box::from_raw(arg.cast::<[(F, [u8; OS_NAME + 1]); 1]>()) };
        let [(run, name)] = *start;
        set_name(&name);
        guarded(run);
        std::ptr::null_mut()
    }
    let mut start = Vec::new();
    start.try_reserve_exact(1).map_err(|_| io::ErrorKind::OutOfMemory)?;
    start.push((run, name));
    let start = <Box<[_; 1]>>::try_from(start.into_boxed_slice()).map_err(|_| io::ErrorKind::Other)?;
    let start = Box::into_raw(start);
    // SAFETY: the attributes are initialised before use and destroyed after it; all pointers are to locals, except for
    // `start`, which belongs to the new thread, or to this one again if there is none.
    let code = unsafe {
        let mut attr = std::mem::MaybeUninit::uninit();
        let mut code = libc::pthread_attr_init(attr.as_mut_ptr());
        if code == 0 {
            let attr = attr.as_mut_ptr();
            code = libc::pthread_attr_setdetachstate(attr, libc::PTHREAD_CREATE_DETACHED);
            let mut stack_bytes = 0;
            if code == 0 {
                code = libc::pthread_attr_getstacksize(attr, &raw mut stack_bytes);
            }
            if code == 0 && stack_bytes < LEAST_STACK_BYTES {
                code = libc::pthread_attr_setstacksize(attr, LEAST_STACK_BYTES);
            }
            if code == 0 {
                let mut thread = std::mem::zeroed();
                code = libc::pthread_create(&raw mut thread, attr, main::<F>, start.cast());
            }
            libc::pthread_attr_destroy(attr);
        }
        if code != 0 {
            drop(Box::from_raw(start));
        }
        code
    };
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// Starts a thread that nobody joins.
#[cfg(not(unix))]
fn start<F: FnOnce() + Send + 'static>(name: [u8; OS_NAME + 1], run: F) -> io::Result<()> {
    let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
    std::thread::Builder::new().name(name).spawn(|| guarded(run)).map(drop)
}

/// Names the calling thread for the system. A thread without its name works as well.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_name(name: &[u8; OS_NAME + 1]) {
    // SAFETY: the calling thread, and a name that ends with a zero.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), name.as_ptr().cast()) };
}

/// Names the calling thread for the system. A thread without its name works as well.
#[cfg(target_vendor = "apple")]
fn set_name(name: &[u8; OS_NAME + 1]) {
    // SAFETY: a name that ends with a zero.
    unsafe { libc::pthread_setname_np(name.as_ptr().cast()) };
}

/// Names the calling thread for the system: here threads have none.
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android", target_vendor = "apple"))))]
fn set_name(_name: &[u8; OS_NAME + 1]) {}

/// A number of the calling thread, never used by another one.
pub fn me() -> u64 {
    thread_local! {
        static ME: Cell<u64> = const { Cell::new(0) };
    }
    static NEXT: AtomicU64 = AtomicU64::new(1);
    ME.with(|me| {
        if me.get() == 0 {
            // ORDERING: Relaxed; it only has to be unique.
            me.set(NEXT.fetch_add(1, Relaxed));
        }
        me.get()
    })
}

/// The calling thread's number in the system's lists.
#[cfg(target_os = "linux")]
pub fn os_id() -> u64 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::gettid() as u64 }
}

/// The calling thread's number in the system's lists.
#[cfg(target_os = "macos")]
pub fn os_id() -> u64 {
    let mut id = 0;
    // SAFETY: pthread 0 is the calling thread, and `id` is writable.
    unsafe { libc::pthread_threadid_np(0, &mut id) };
    id
}

/// The calling thread's number in the system's lists: this system has none.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub fn os_id() -> u64 {
    0
}

/// The calling thread's name for the system, which ends with a zero; empty where threads have none.
pub fn name() -> [u8; OS_NAME + 1] {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let mut name = [0; OS_NAME + 1];
        // SAFETY: writes at most 16 bytes, its end included, and cannot fail with room for so many.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr(), 0, 0, 0) };
        name[OS_NAME] = 0;
        name
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    [0; OS_NAME + 1]
}

/// Makes the calling thread's timed sleeps end on time, where the system would otherwise coalesce them (Linux: 50 us).
pub fn sleep_precisely() {
    #[cfg(target_os = "linux")]
    // SAFETY: sets a number of the calling thread's; the unused arguments are 0 as the call demands.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong, 0, 0, 0);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn thread(name: &str, index: Option<usize>) -> Thread {
        let group =
            ThreadGroup { origin: ThreadOrigin::KindPool, name: name.to_owned(), owner: "cpu".to_owned(), pool: 1 };
        Thread { group: Arc::new(group), index, os_id: AtomicU64::new(0) }
    }

    #[test]
    fn the_systems_name_keeps_the_index() {
        let name = |name, index| {
            let bytes = thread(name, index).os_name();
            assert_eq!(bytes[OS_NAME], 0);
            String::from_utf8(bytes.into_iter().take_while(|&byte| byte != 0).collect()).unwrap()
        };
        assert_eq!(name("weir-kind-cpu", Some(0)), "weir-kind-cpu-0");
        assert_eq!(name("weir-kind-cpu", Some(255)), "weir-kind-c-255");
        assert_eq!(thread("weir-kind-cpu", Some(255)).name(), "weir-kind-cpu-255");
        assert_eq!(name("weir-lane-transfers", None), "weir-lane-trans");
        assert_eq!(name("weir-lane-abcdé", None), "weir-lane-abcd");
        assert_eq!(name("weir-lane-a\0b", None), "weir-lane-a?b");
    }
}
