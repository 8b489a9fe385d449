//! Completion without holding a host thread: one thread for each device that has no callbacks for reached events. It
//! starts with the first request, and is counted.
//!
//! The thread polls all events for a short while, since most are reached soon; then it sleeps in the device's own wait
//! for the oldest, at first for `FIRST_NAP_NS` and then longer, for `LAST_NAP_NS` at most, because another one may be
//! reached first. Without events it sleeps until one comes. It ends when the watch is dropped and no event is left.
#![forbid(unsafe_code)]

use super::{DeviceEvent, Then};
use crate::base::time::{Deadline, now_ns};
use crate::sync::thread::{self, ThreadGroup, ThreadOrigin};
use crate::sync::{EventCount, Mutex, ambient};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::Duration;

const LOOK_NS: u64 = 30_000;
const FIRST_NAP_NS: u64 = 50_000;
const LAST_NAP_NS: u64 = 1_000_000;

/// A watched event and its continuation.
type Watched = (Arc<dyn DeviceEvent>, Then);

#[derive(Debug)]
pub struct DeviceWatch {
    shared: Arc<WatchShared>,
    /// "cuda:0"
    owner: String,
}

struct WatchShared {
    new: Mutex<WatchList>,
    called: EventCount,
    closed: AtomicBool,
}

#[derive(Default)]
struct WatchList {
    watched: Vec<Watched>,
    has_thread: bool,
}

impl std::fmt::Debug for WatchShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} new", self.new.lock().watched.len())
    }
}

impl DeviceWatch {
    pub fn new(owner: String) -> DeviceWatch {
        let shared = WatchShared { new: Mutex::default(), called: EventCount::new(), closed: AtomicBool::new(false) };
        DeviceWatch { shared: Arc::new(shared), owner }
    }

    /// Calls `then` once the event was reached. If no thread can be started, the caller waits.
    pub fn add(&self, event: &Arc<dyn DeviceEvent>, then: Then) {
        let has_thread = {
            let mut list = self.shared.new.lock();
            if !list.has_thread {
                let name = format!("weir-watch-{}", self.owner.replace(':', ""));
                let group = ThreadGroup { origin: ThreadOrigin::Watch, name, owner: self.owner.clone(), pool: 0 };
                let shared = Arc::clone(&self.shared);
                list.has_thread = thread::spawn(&Arc::new(group), None, move || shared.work()).is_ok();
            }
            if list.has_thread {
                list.watched.push((Arc::clone(event), then));
                None
            } else {
                Some(then)
            }
        };
        match has_thread {
            None => self.shared.called.advance(1),
            Some(then) => {
                let _ = event.synchronize(Deadline::NEVER);
                then.tell();
            }
        }
    }
}

impl Drop for DeviceWatch {
    fn drop(&mut self) {
        // ORDERING: Release pairs with the Acquire in `work`, which then sees the last events, too.
        self.shared.closed.store(true, Release);
        self.shared.called.advance(1);
    }
}

impl WatchShared {
    fn work(&self) {
        let mut watched: Vec<Watched> = Vec::new();
        let mut since = now_ns();
        let mut nap = FIRST_NAP_NS;
        loop {
            let seen = self.called.reached();
            let closed = self.closed.load(Acquire);
            let before = watched.len();
            watched.append(&mut self.new.lock().watched);
            if watched.len() > before {
                (since, nap) = (now_ns(), FIRST_NAP_NS);
            }
            let mut at = 0;
            while at < watched.len() {
                // A failure counts as reached: the receiver checks for itself.
                if watched[at].0.is_reached().unwrap_or(true) {
                    let (event, then) = watched.remove(at);
                    // A panic there must not lose the other watched events.
                    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| ambient::on_device_thread(|| then.tell()))) {
                        std::mem::forget(payload);
                    }
                    drop(event);
                    (since, nap) = (now_ns(), FIRST_NAP_NS);
                } else {
                    at += 1;
                }
            }
            match watched.first() {
                None if closed => return,
                None => {
                    self.called.wait(seen + 1, 0, Deadline::NEVER);
                }
                Some((oldest, _)) if now_ns() - since > LOOK_NS => {
                    if oldest.synchronize(Deadline::after(nap)).is_err() {
                        std::thread::sleep(Duration::from_nanos(nap));
                    }
                    nap = (nap * 2).min(LAST_NAP_NS);
                }
                Some(_) => std::hint::spin_loop(),
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::{Error, Result};
    use std::sync::atomic::AtomicI64;

    /// Reached on demand: 1; or failed: 2.
    #[derive(Debug, Default)]
    struct Flag(AtomicI64);

    impl DeviceEvent for Flag {
        fn is_reached(&self) -> Result<bool> {
            match self.0.load(SeqCst) {
                2 => Err(Error::internal("as planned")),
                state => Ok(state == 1),
            }
        }

        fn synchronize(&self, deadline: Deadline) -> Result<bool> {
            while !self.is_reached()? && !deadline.is_past() {
                std::thread::sleep(std::time::Duration::from_micros(10));
            }
            self.is_reached()
        }

        fn elapsed_ns(&self, _start: &dyn DeviceEvent) -> Result<i64> {
            Ok(0)
        }
    }

    fn eventually(condition: impl Fn() -> bool) {
        let deadline = Deadline::after(10_000_000_000);
        while !condition() {
            assert!(!deadline.is_past());
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    }

    #[test]
    fn whoever_is_reached_first_is_told_first() {
        let watch = DeviceWatch::new("test:0".to_owned());
        let told = Arc::new(Mutex::new(Vec::new()));
        let flags: Vec<Arc<Flag>> = (0..4).map(|_| Arc::default()).collect();
        for (i, flag) in flags.iter().enumerate() {
            let told = Arc::clone(&told);
            let event: Arc<dyn DeviceEvent> = Arc::<Flag>::clone(flag);
            watch.add(&event, Then::once(move || told.lock().push(i)));
        }
        std::thread::sleep(std::time::Duration::from_millis(3));
        assert!(told.lock().is_empty());
        for (count, i) in [2, 0, 3, 1].into_iter().enumerate() {
            flags[i].0.store(if i == 3 { 2 } else { 1 }, SeqCst);
            eventually(|| told.lock().len() == count + 1);
        }
        assert_eq!(*told.lock(), [2, 0, 3, 1]);
    }

    #[test]
    fn what_is_watched_is_told_also_when_the_watch_is_gone_and_others_fail() {
        let told = Arc::new(AtomicI64::new(0));
        let flag: Arc<Flag> = Arc::default();
        let event: Arc<dyn DeviceEvent> = Arc::<Flag>::clone(&flag);
        {
            let watch = DeviceWatch::new("test:1".to_owned());
            watch.add(&event, Then::once(|| panic!("as planned")));
            let count = Arc::clone(&told);
            watch.add(&event, Then::once(move || count.store(1, SeqCst)));
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(told.load(SeqCst), 0);
        flag.0.store(1, SeqCst);
        eventually(|| told.load(SeqCst) == 1 && Arc::strong_count(&event) == 2);
    }
}
