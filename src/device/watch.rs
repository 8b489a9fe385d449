//! Completion without holding a thread of the host's: one thread for each device that cannot tell by itself when an event
//! was reached. It starts with the first that asks, and is counted; without one there is none.
//!
//! The thread looks at all events for a short while, since most are reached soon; then it sleeps in the device's own wait for the
//! oldest, for `NAP_NS` at most, because another one may be reached first. With nothing to watch it sleeps until something comes.
//! It ends when the watch is dropped and nothing is left.
#![forbid(unsafe_code)]

use super::{DeviceEvent, Then};
use crate::base::time::{Deadline, now_ns};
use crate::sync::thread::{self, Group, Origin};
use crate::sync::{Gate, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

const LOOK_NS: u64 = 30_000;
const NAP_NS: u64 = 1_000_000;

/// What is watched: an event, and what follows.
type Watched = (Arc<dyn DeviceEvent>, Then);

#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    /// "cuda:0"
    owner: String,
}

struct Shared {
    new: Mutex<List>,
    called: Gate,
    closed: AtomicBool,
}

#[derive(Default)]
struct List {
    watched: Vec<Watched>,
    has_thread: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} new", self.new.lock().watched.len())
    }
}

impl Watch {
    pub fn new(owner: String) -> Watch {
        let shared = Shared { new: Mutex::default(), called: Gate::new(), closed: AtomicBool::new(false) };
        Watch { shared: Arc::new(shared), owner }
    }

    /// Has `then` called once the event was reached. Where no thread can be started, this one waits.
    pub fn add(&self, event: &Arc<dyn DeviceEvent>, then: Then) {
        let has_thread = {
            let mut list = self.shared.new.lock();
            if !list.has_thread {
                let name = format!("weir-watch-{}", self.owner.replace(':', ""));
                let group = Group { origin: Origin::Watch, name, owner: self.owner.clone(), pool: 0 };
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

impl Drop for Watch {
    fn drop(&mut self) {
        // ORDERING: Release pairs with the Acquire in `work`, which then sees the last events, too.
        self.shared.closed.store(true, Release);
        self.shared.called.advance(1);
    }
}

impl Shared {
    fn work(&self) {
        let mut watched: Vec<Watched> = Vec::new();
        let mut since = now_ns();
        loop {
            let seen = self.called.reached();
            let closed = self.closed.load(Acquire);
            watched.append(&mut self.new.lock().watched);
            let mut at = 0;
            while at < watched.len() {
                // A failure counts: who is told looks for itself.
                if watched[at].0.is_reached().unwrap_or(true) {
                    watched.remove(at).1.tell();
                    since = now_ns();
                } else {
                    at += 1;
                }
            }
            match watched.first() {
                None if closed => return,
                None => {
                    self.called.wait(seen + 1, 0, Deadline::NEVER);
                    since = now_ns();
                }
                Some((oldest, _)) if now_ns() - since > LOOK_NS => {
                    let _ = oldest.synchronize(Deadline::after(NAP_NS));
                }
                Some(_) => std::hint::spin_loop(),
            }
        }
    }
}
