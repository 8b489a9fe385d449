//! Threads that the library starts: named, counted, listed.
//!
//! A thread gets onto the list with its start and takes itself off as the last thing that it does, both under the
//! list's lock; in between nobody touches it, so work pays nothing for it. The lock is held across the start itself:
//! a thread that could not be started was never on the list, and one that runs finds itself there.

use super::{Mutex, MutexGuard};
use crate::abi::{weir_thread_info, weir_thread_origin, weir_thread_origin_value as V};
use crate::base::text;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why a thread was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    BuiltinPool,
    SeededPool,
    Lane,
    EnginePool,
    KindPool,
    Conformance,
    Device,
    Watch,
}

const ORIGINS: usize = Origin::Watch as usize + 1;

impl Origin {
    fn value(self) -> weir_thread_origin {
        let value = match self {
            Origin::BuiltinPool => V::WEIR_THREAD_ORIGIN_BUILTIN_POOL,
            Origin::SeededPool => V::WEIR_THREAD_ORIGIN_SEEDED_POOL,
            Origin::Lane => V::WEIR_THREAD_ORIGIN_LANE,
            Origin::EnginePool => V::WEIR_THREAD_ORIGIN_ENGINE_POOL,
            Origin::KindPool => V::WEIR_THREAD_ORIGIN_KIND_POOL,
            Origin::Conformance => V::WEIR_THREAD_ORIGIN_CONFORMANCE,
            Origin::Device => V::WEIR_THREAD_ORIGIN_DEVICE,
            Origin::Watch => V::WEIR_THREAD_ORIGIN_WATCH,
        };
        value as weir_thread_origin
    }
}

/// What threads that belong together have in common.
#[derive(Debug)]
pub struct Group {
    pub origin: Origin,
    /// "weir-pool3"; a thread's name is this and its index.
    pub name: String,
    /// The stream, engine or kind that they work for; "" for a pool that the host made.
    pub owner: String,
    /// The pool's id; 0 for none.
    pub pool: u64,
}

/// A thread on the list.
#[derive(Debug)]
pub struct Thread {
    group: Arc<Group>,
    /// None for a thread that is alone in its group.
    index: Option<usize>,
    /// 0 until the thread itself has run.
    os_id: AtomicU64,
}

#[derive(Debug)]
struct List {
    started: u64,
    running: Vec<Arc<Thread>>,
}

static LIST: Mutex<List> = Mutex::new(List { started: 0, running: Vec::new() });

fn list() -> MutexGuard<'static, List> {
    LIST.lock()
}

/// How many threads there were and are.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub started: u64,
    pub alive: u64,
    by_origin: [u64; ORIGINS],
}

impl Counts {
    /// Threads of this origin that are running.
    pub fn alive_of(&self, origin: Origin) -> u64 {
        self.by_origin[origin as usize]
    }
}

/// All counts, as of one moment.
pub fn counts() -> Counts {
    let list = list();
    let mut by_origin = [0; ORIGINS];
    list.running.iter().for_each(|thread| by_origin[thread.group.origin as usize] += 1);
    Counts { started: list.started, alive: list.running.len() as u64, by_origin }
}

/// The threads that are running now, in the order of their start.
pub fn running() -> Vec<Arc<Thread>> {
    list().running.clone()
}

/// Starts a thread. It is on the list when this returns, and until `run` has returned.
pub fn spawn(group: &Arc<Group>, index: Option<usize>, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let thread = Arc::new(Thread { group: Arc::clone(group), index, os_id: AtomicU64::new(0) });
    let itself = Arc::clone(&thread);
    let body = move || {
        let entry = Entry(itself);
        // ORDERING: Relaxed; a number for people, nothing is read on the strength of it.
        entry.0.os_id.store(os_id(), Relaxed);
        run();
    };
    let mut list = list();
    drop(std::thread::Builder::new().name(thread.os_name()).spawn(body)?);
    list.started += 1;
    list.running.push(thread);
    Ok(())
}

/// Made and dropped by the thread that it stands for.
struct Entry(Arc<Thread>);

impl Drop for Entry {
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

    /// The name for the system, which cuts names after 15 bytes: so it is cut here, and the index stays whole.
    fn os_name(&self) -> String {
        const LENGTH: usize = 15;
        let index = self.index.map_or(String::new(), |index| format!("-{index}"));
        let name = text::head(&self.group.name, LENGTH - index.len().min(LENGTH));
        format!("{name}{index}").replace('\0', "?")
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

/// The calling thread's number in the system's lists.
#[cfg(target_os = "linux")]
fn os_id() -> u64 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::gettid() as u64 }
}

/// The calling thread's number in the system's lists.
#[cfg(target_os = "macos")]
fn os_id() -> u64 {
    let mut id = 0;
    // SAFETY: pthread 0 is the calling thread, and `id` is writable.
    unsafe { libc::pthread_threadid_np(0, &mut id) };
    id
}

/// The calling thread's number in the system's lists: this system has none.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn os_id() -> u64 {
    0
}

/// Has the calling thread's timed sleeps end on time, where the system would else gather them with others (Linux: 50 us).
pub fn sleep_precisely() {
    #[cfg(target_os = "linux")]
    // SAFETY: sets a number of the calling thread's; the unused arguments are 0 as the call demands.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong, 0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(name: &str, index: Option<usize>) -> Thread {
        let group = Group { origin: Origin::KindPool, name: name.to_owned(), owner: "cpu".to_owned(), pool: 1 };
        Thread { group: Arc::new(group), index, os_id: AtomicU64::new(0) }
    }

    #[test]
    fn the_systems_name_keeps_the_index() {
        assert_eq!(thread("weir-kind-cpu", Some(0)).os_name(), "weir-kind-cpu-0");
        assert_eq!(thread("weir-kind-cpu", Some(255)).os_name(), "weir-kind-c-255");
        assert_eq!(thread("weir-kind-cpu", Some(255)).name(), "weir-kind-cpu-255");
        assert_eq!(thread("weir-lane-transfers", None).os_name(), "weir-lane-trans");
        assert_eq!(thread("weir-lane-abcdé", None).os_name(), "weir-lane-abcd");
        assert_eq!(thread("weir-lane-a\0b", None).os_name(), "weir-lane-a?b");
    }
}
