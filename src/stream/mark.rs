//! One record of an event: a point in a queue that is reached once.
#![forbid(unsafe_code)]

use super::dedicated_thread::Drainable;
use super::notice::Notice;
use crate::base::time::{Deadline, now_ns};
use crate::base::{Error, Result};
use crate::device::{Device, DeviceEvent, Then, Waiting, in_a_capture};
use crate::sync::{EventCount, Mutex, OnceLock};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Arc, Weak};

/// A point in a queue of kind `Q`.
#[derive(Debug)]
pub struct Mark<Q> {
    /// `ISSUED` once a device knows of it, `REACHED` in the end.
    stage: EventCount,
    /// Whether the device records the time.
    timing: bool,
    /// Device queues only: the device's event.
    on_device: OnceLock<DeviceMark>,
    time_ns: AtomicU64,
    /// The failure of the queue that reached it.
    failure: OnceLock<Error>,
    waiters: Mutex<Waiters<Q>>,
    /// The queue that will reach it.
    queue: Weak<Q>,
}

const ISSUED: u64 = 1;
const REACHED: u64 = 2;

#[derive(Debug)]
struct DeviceMark {
    device: Arc<dyn Device>,
    event: Arc<dyn DeviceEvent>,
    waiting: Option<Waiting>,
}

#[derive(Debug)]
struct Waiters<Q> {
    /// Parked queues whose first item waits for this mark.
    queues: Vec<Arc<Q>>,
    notices: Vec<Notice>,
    /// The device was asked to say when it is reached.
    is_watched: bool,
}

impl<Q> Waiters<Q> {
    /// Whether to ask the device now for a report, given the mark's progress.
    fn must_watch(&mut self, reached: u64) -> bool {
        reached >= ISSUED && !std::mem::replace(&mut self.is_watched, true)
    }
}

impl<Q: Drainable + 'static> Mark<Q> {
    pub fn new(queue: &Arc<Q>, timing: bool) -> Arc<Mark<Q>> {
        Arc::new(Mark {
            stage: EventCount::new(),
            timing,
            on_device: OnceLock::new(),
            time_ns: AtomicU64::new(0),
            failure: OnceLock::new(),
            waiters: Mutex::new(Waiters { queues: Vec::new(), notices: Vec::new(), is_watched: false }),
            queue: Arc::downgrade(queue),
        })
    }

    pub(super) fn has_timing(&self) -> bool {
        self.timing
    }

    /// The queue that will reach it.
    pub(super) fn queue(&self) -> Weak<Q> {
        Weak::clone(&self.queue)
    }

    pub fn is_reached(&self) -> bool {
        if self.stage.reached() >= REACHED {
            return true;
        }
        match self.on_device.get().map(|on| on.event.is_reached()) {
            None | Some(Ok(false)) => false,
            Some(reached) => {
                self.reach(reached.err());
                true
            }
        }
    }

    /// A device was told to record it, and will reach it.
    pub(super) fn issue(
        self: &Arc<Self>,
        device: &Arc<dyn Device>,
        event: Arc<dyn DeviceEvent>,
        waiting: Option<Waiting>,
    ) {
        let _ = self.on_device.set(DeviceMark { device: Arc::clone(device), event, waiting });
        let (queues, must_watch) = {
            let mut waiters = self.waiters.lock();
            if self.stage.reached() < ISSUED {
                self.stage.advance(ISSUED);
            }
            (std::mem::take(&mut waiters.queues), !waiters.notices.is_empty() && waiters.must_watch(ISSUED))
        };
        if must_watch {
            self.watch();
        }
        // Those on this device can continue; others subscribe again.
        queues.into_iter().for_each(Q::resume);
    }

    /// The device's event, for streams of that device.
    pub fn event_on(&self, device: &Arc<dyn Device>) -> Option<&Arc<dyn DeviceEvent>> {
        self.on_device.get().filter(|on| Arc::ptr_eq(&on.device, device)).map(|on| &on.event)
    }

    /// The device has reached it, and may have failed.
    pub(super) fn reach_on_device(&self) {
        if self.stage.reached() < REACHED {
            self.reach(self.on_device.get().and_then(|on| on.event.is_reached().err()));
        }
    }

    /// Nanoseconds from `start` to this, both reached, as the device measured them; `None` if it did not.
    pub fn elapsed_on_device(&self, start: &Mark<Q>) -> Option<Result<i64>> {
        let (end, start) = (self.on_device.get()?, start.on_device.get()?);
        Arc::ptr_eq(&end.device, &start.device).then(|| end.event.elapsed_ns(&*start.event))
    }

    /// The queue's failure when it was reached.
    pub fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    /// When it was reached, in nanoseconds of the monotonic clock.
    pub fn time_ns(&self) -> u64 {
        // ORDERING: Relaxed; callers have seen `is_reached`, whose Acquire covers it.
        self.time_ns.load(Relaxed)
    }

    /// The queue has reached it.
    pub(super) fn reach(&self, failure: Option<Error>) {
        // Under the lock, so that nobody subscribes after the list was taken; several threads may report a device's
        // mark.
        let (queues, notices) = {
            let mut waiters = self.waiters.lock();
            let before = self.stage.reached();
            if before >= REACHED {
                return;
            }
            self.time_ns.store(now_ns(), Relaxed);
            if let Some(error) = failure {
                let _ = self.failure.set(error);
            }
            self.stage.advance(REACHED - before);
            (std::mem::take(&mut waiters.queues), std::mem::take(&mut waiters.notices))
        };
        queues.into_iter().for_each(Q::resume);
        notices.into_iter().for_each(|notice| notice.tell(self.failure().cloned(), None));
    }

    /// Delivers the notice when the mark is reached, or now if it is.
    pub fn notify(self: &Arc<Self>, notice: Notice) -> Result<()> {
        if self.is_captured() {
            return Err(in_a_capture());
        }
        if !self.is_reached() {
            let mut waiters = self.waiters.lock();
            let reached = self.stage.reached();
            if reached < REACHED {
                waiters
                    .notices
                    .try_reserve(1)
                    .map_err(|_| Error::exhausted("the notices of an event", size_of::<Notice>()))?;
                notice.adopt();
                waiters.notices.push(notice);
                let must_watch = waiters.must_watch(reached);
                drop(waiters);
                if must_watch {
                    self.watch();
                }
                return Ok(());
            }
        }
        notice.adopt();
        notice.tell_here(self.failure().cloned(), None);
        Ok(())
    }

    /// Resumes the queue when the mark is reached, or, if both are on one device, when that was told to record it.
    /// False if that has happened.
    pub(super) fn subscribe(self: &Arc<Self>, queue: &Arc<Q>) -> bool {
        let mut waiters = self.waiters.lock();
        let reached = self.stage.reached();
        let is_ours = || queue.device().is_some_and(|device| self.event_on(device).is_some());
        if reached >= REACHED || reached >= ISSUED && is_ours() {
            return false;
        }
        if !waiters.queues.iter().any(|waiter| Arc::ptr_eq(waiter, queue)) {
            waiters.queues.push(Arc::clone(queue));
        }
        let must_watch = waiters.must_watch(reached);
        drop(waiters);
        if must_watch {
            self.watch();
        }
        true
    }

    /// Asks the device to report when it is reached.
    fn watch(self: &Arc<Self>) {
        if let Some(on) = self.on_device.get()
            && let Some(accelerator) = on.device.accelerator()
        {
            let mark = Arc::clone(self);
            accelerator.when_reached(&on.event, Then::once(move || mark.reach_on_device()));
        }
    }

    /// Whether a device knows of it.
    pub(super) fn is_on_device(&self) -> bool {
        self.on_device.get().is_some()
    }

    /// Sleeps until it is reached.
    pub(super) fn sleep(&self, spin_ns: u64, deadline: Deadline) -> bool {
        loop {
            if self.is_reached() {
                return true;
            }
            if deadline.is_past() {
                return false;
            }
            match self.on_device.get() {
                // A failure is found by the look.
                Some(on) => drop(on.event.wait(on.waiting, deadline)),
                None => drop(self.stage.wait(ISSUED, spin_ns, deadline)),
            }
        }
    }

    /// Whether it is part of a capture of the host's, and so is never reached.
    pub fn is_captured(&self) -> bool {
        self.on_device.get().is_some_and(|on| on.event.is_captured())
    }
}
