//! A device queue: items are *issued* to a stream of the device, in order, and *completed* when the device is known to
//! have executed them.
//!
//! # Issuing
//!
//! The submitting thread issues at once, unless another thread is issuing or the first item cannot be issued yet: it
//! waits for an event that no stream of this device will reach, or for one recorded in a queue that is itself blocked,
//! or it is a host function, which runs when the device has reached it. Then the queue is parked as any queue is
//! (`queue`), holds no thread, and the thread that reaches that event continues issuing. A wait for an event of the
//! same device is issued to the device; no thread waits for it here.
//!
//! # Completing
//!
//! The device does not report each item. *Fences* (`fences`) are events behind items: those that the host records
//! itself, one behind every 64 items, and one wherever a thread asks for it (`ask`). A waiter waits for the first fence
//! that covers its target; a look queries the oldest. Then the items up to there are released, with the tensors that
//! they hold, and count as completed.
//!
//! A call that is resubmitted while an earlier submission is in flight is only a number: its resources are held
//! already, and stay in the table until its last submission is over (`resubmit_table`). Nothing is added to the items
//! in flight, and no lock is taken, unless a fence is wanted (`note`). One thread at a time completes items, so that
//! they complete in order; others leave it to that one, which looks again for them, and wait for the count.
//!
//! A thread that waits for items which are not issued yet leaves a request (`asked`), and the fence is recorded right
//! behind them. So a wait covers all earlier submissions, and ends although others go on submitting.
//!
//! A failure is found with the fence behind it: the queue has failed from then on, and later submissions are skipped.
//! Items issued in between were skipped by the device itself.
//!
//! # The end
//!
//! A queue may be released while its items are in flight. Then the device is asked to report the last item's
//! completion, and that callback holds the queue until then (`see_off`).
//!
//! # Refusals
//!
//! A device may refuse an event. Then nobody knows when the items behind the last fence end, and they do not count as
//! completed: the stream has failed, each look asks for an event again, and a wait ends with the refusal if that goes
//! on. A released queue then holds itself until a wait for everything finds it completed (`keep`).
#![forbid(unsafe_code)]

use super::dedicated_thread::Drainable;
use super::fences::{Fence, FenceRequest, Fences};
use super::resubmit_table::{ResubmitTable, Resubmitter};
use crate::base::time::Deadline;
use crate::base::{Error, Result};
use crate::device::{Device, DeviceEvent, DeviceStream, DeviceStreamAttr, Reached, Then, traced_stream};
use crate::sync::{EventCount, Mutex, MutexGuard, OnceLock};
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*, fence};

/// Back-pressure: the submitter looks for completed items once so many are in flight, and after as many again. A query
/// of the device may cost as much as an item.
const LOOK_FROM: u64 = 192;
const LOOK_EVERY: u64 = 64;

/// A device queue of items `I`; those that may be resubmitted are `W`.
#[derive(Debug)]
pub struct DeviceQueue<I, W> {
    device: Arc<dyn Device>,
    stream: Box<dyn DeviceStream>,
    /// Whether the device can report a stream as idle.
    pub(super) tells_idle: bool,
    /// Items issued or skipped.
    issued: EventCount,
    flight: Mutex<InFlight<I>>,
    /// Calls that may be resubmitted; and whether a thread waits for a fence that is not recorded yet, see `note`.
    resubmits: Arc<ResubmitTable<W>>,
    has_wishes: AtomicBool,
    /// The point behind which the first item, a host function or run, begins. Created on first use.
    halt: OnceLock<Arc<Halt>>,
    /// The first item is such a one; it has begun. ORDERING: Relaxed, both; used by the holder of the drain lock or a
    /// thread called to take it, and the lock orders them.
    is_at_host: AtomicBool,
    is_begun: AtomicBool,
    /// The item that last made the stream take part in a capture. ORDERING: Relaxed; waiters poll it.
    joined: AtomicU64,
    /// The host has released the queue.
    is_abandoned: AtomicBool,
}

/// A point of the stream at which a host function runs.
struct Halt {
    event: Arc<dyn DeviceEvent>,
    /// The queue to resume. While the device has not reached it, or nobody has looked yet, `is_ahead`.
    queue: Mutex<Option<Arc<dyn Drainable>>>,
    is_ahead: AtomicBool,
    /// The item behind it was skipped. ORDERING: Relaxed, both; used by the holder of the drain lock.
    is_stale: AtomicBool,
}

impl Debug for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Halt(ahead: {})", self.is_ahead.load(Relaxed))
    }
}

impl Reached for Halt {
    fn reached(&self) {
        let queue = self.queue.lock().take();
        if let Some(queue) = queue {
            queue.resume();
        }
    }
}

pub(super) type Event = Arc<dyn DeviceEvent>;

/// The items that the device may still be executing.
pub(super) struct InFlight<I> {
    pub(super) under_way: Fences<I, Event>,
    /// Events of past fences, for reuse.
    pub(super) spare: Vec<Event>,
    /// The queue itself, while the host has released it and the device refuses to tell when its work ends.
    kept: Option<Arc<dyn Drainable>>,
}

impl<I> Default for InFlight<I> {
    fn default() -> InFlight<I> {
        InFlight { under_way: Fences::default(), spare: Vec::new(), kept: None }
    }
}

impl<I> Debug for InFlight<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "under way behind item {}", self.under_way.over())
    }
}

impl<I, W> DeviceQueue<I, W> {
    /// A device queue on a new stream of the device, or on one of the host's; and the resubmitter, for the holder of
    /// the drain lock.
    pub(super) fn create(
        device: &Arc<dyn Device>,
        name: &str,
        priority: i32,
        wrapped: Option<u64>,
    ) -> Result<(DeviceQueue<I, W>, Resubmitter<W>)> {
        let stream = traced_stream(device, &DeviceStreamAttr { name, priority }, wrapped)?;
        let (resubmitter, resubmits) = ResubmitTable::new();
        let device_queue = DeviceQueue {
            device: Arc::clone(device),
            tells_idle: stream.tells_idle(),
            stream,
            issued: EventCount::new(),
            flight: Mutex::default(),
            resubmits,
            has_wishes: AtomicBool::new(false),
            halt: OnceLock::new(),
            is_at_host: AtomicBool::new(false),
            is_begun: AtomicBool::new(false),
            joined: AtomicU64::new(0),
            is_abandoned: AtomicBool::new(false),
        };
        Ok((device_queue, resubmitter))
    }

    pub fn stream(&self) -> &dyn DeviceStream {
        &*self.stream
    }

    /// Whether the completion of item `target` can be known although the host captures the stream.
    pub(super) fn is_foreseen(&self, target: u64) -> bool {
        let has_joined = target > 0 && self.joined.load(Relaxed) == target;
        self.fence_for(target - u64::from(has_joined)).is_some()
    }

    pub(super) fn joined(&self) -> &AtomicU64 {
        &self.joined
    }

    /// Whether the host captures the stream.
    #[inline]
    pub fn is_captured(&self) -> Result<bool> {
        if self.stream.may_be_captured() { self.stream.is_capturing() } else { Ok(false) }
    }

    /// Waits until `target` items are issued.
    pub(super) fn wait_issued(&self, target: u64, spin_ns: u64, deadline: Deadline) {
        self.issued.wait(target, spin_ns, deadline);
    }

    pub(super) fn issued_count(&self) -> &EventCount {
        &self.issued
    }

    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    pub(super) fn issued(&self) -> u64 {
        self.issued.reached()
    }

    /// Whether the first item is a host function or run.
    pub(super) fn is_at_host(&self) -> bool {
        self.is_at_host.load(Relaxed)
    }

    /// Whether the first item is a host function or run, and has begun.
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun.load(Relaxed)
    }

    /// The first item, a host function or run, begins.
    pub(super) fn begin(&self) {
        self.is_begun.store(true, Relaxed);
    }

    /// Whether the device has reached the first item, a host function or run. Until then the queue must be parked, and
    /// is resumed. `may_begin`: the caller begins it in that case.
    pub(super) fn has_got_to_host(&self, queue: impl FnOnce() -> Arc<dyn Drainable>, may_begin: bool) -> Result<bool> {
        self.is_at_host.store(true, Relaxed);
        if self.is_begun() {
            return Ok(true);
        }
        let Some(accelerator) = self.device.accelerator() else { return Ok(true) };
        if self.halt.get().is_none() {
            let event = self.new_event(false)?;
            let (is_ahead, is_stale) = (AtomicBool::new(false), AtomicBool::new(false));
            let _ = self.halt.set(Arc::new(Halt { event, queue: Mutex::default(), is_ahead, is_stale }));
        }
        let Some(halt) = self.halt.get() else { return Ok(true) };
        if halt.is_stale.load(Relaxed) {
            // It is in flight for an item that was skipped, and its completion resumes the queue.
            if let Ok(false) = halt.event.is_reached() {
                return Ok(false);
            }
            halt.is_stale.store(false, Relaxed);
        }
        if !halt.is_ahead.load(Relaxed) {
            self.stream.record(&halt.event)?;
            halt.is_ahead.store(true, Relaxed);
            *halt.queue.lock() = Some(queue());
            accelerator.when_reached(&halt.event, Then::shared(Arc::clone(halt) as Arc<dyn Reached>));
            return Ok(false);
        }
        let reached = halt.event.is_reached();
        // A caller that may not begin leaves it to others, which ask again.
        if reached.is_err() || (matches!(reached, Ok(true)) && may_begin) {
            halt.is_ahead.store(false, Relaxed);
        }
        reached
    }

    /// The first item is over, or skipped.
    pub(super) fn leave_host(&self) {
        if !self.is_at_host.load(Relaxed) {
            return;
        }
        self.is_at_host.store(false, Relaxed);
        let was_begun = self.is_begun.swap(false, Relaxed);
        if let Some(halt) = self.halt.get().filter(|_| !was_begun)
            && halt.is_ahead.swap(false, Relaxed)
        {
            halt.is_stale.store(true, Relaxed);
        }
    }

    pub(super) fn flight(&self) -> MutexGuard<'_, InFlight<I>> {
        self.flight.lock()
    }

    fn new_event(&self, timing: bool) -> Result<Arc<dyn DeviceEvent>> {
        match self.device.accelerator() {
            Some(accelerator) => accelerator.event(timing),
            None => Err(Error::internal("a queue on a device without streams")),
        }
    }

    /// Records an event for a mark. A separate one, since a waiter may keep it for long.
    pub(super) fn record_mark(&self, timing: bool) -> Result<Arc<dyn DeviceEvent>> {
        let event = self.new_event(timing)?;
        self.stream.record(&event)?;
        Ok(event)
    }

    /// An item was issued or skipped: `event` is the one that it recorded, and `op` is released when it is over, if
    /// there is any. By the holder of the drain lock.
    pub(super) fn note(&self, op: Option<I>, event: Option<Event>) -> Result<()> {
        let number = self.issued() + 1;
        let flight = (op.is_some() || event.is_some()).then(|| {
            let mut flight = self.flight();
            op.into_iter().for_each(|op| flight.under_way.add(number, op));
            event.into_iter().for_each(|event| flight.under_way.put(Fence { item: number, event, is_own: false }));
            flight
        });
        self.issued.advance(1);
        // ORDERING: Relaxed; the fence in `advance` pairs with that in `ask`: either this sees the flag, or the asking
        // thread sees the count.
        if flight.is_none() && !Fences::<I, Event>::is_stride(number) && !self.has_wishes.load(Relaxed) {
            return Ok(());
        }
        let mut flight = flight.unwrap_or_else(|| self.flight());
        let is_wanted = flight.under_way.is_wanted(number);
        self.has_wishes.store(flight.under_way.has_wishes(), Relaxed);
        if is_wanted { self.record_fence(&mut flight, number) } else { Ok(()) }
    }

    /// Records a fence behind item `item`, the last one that was issued.
    fn record_fence(&self, flight: &mut InFlight<I>, item: u64) -> Result<()> {
        // It would become part of the host's capture. The asking thread asks again.
        if self.is_captured()? {
            return Ok(());
        }
        let event = match flight.spare.pop() {
            Some(event) => event,
            None => self.new_event(false)?,
        };
        self.stream.record(&event)?;
        // The host may have begun a capture just now: then it is part of that, and is never reached.
        if !event.is_captured() {
            flight.under_way.put(Fence { item, event, is_own: true });
        }
        Ok(())
    }

    /// Ensures that there is a fence at or behind item `target`, or will be as soon as it is issued.
    pub(super) fn ask(&self, target: u64) -> Result<()> {
        let mut flight = self.flight();
        let announce = || {
            self.has_wishes.store(true, Relaxed);
            // ORDERING: pairs with the fence in `EventCount::advance`, see `note`.
            fence(SeqCst);
        };
        match flight.under_way.ask(target, || self.issued(), announce) {
            FenceRequest::Seen => Ok(()),
            FenceRequest::Wanted(issued) => self.record_fence(&mut flight, issued),
        }
    }

    /// The first fence at or behind item `target`.
    pub(super) fn fence_for(&self, target: u64) -> Option<Event> {
        self.flight().under_way.covering(target)
    }

    /// Calls that may be resubmitted.
    pub(super) fn resubmits(&self) -> &ResubmitTable<W> {
        &self.resubmits
    }

    /// The host has released the queue.
    pub(super) fn abandon(&self) {
        // ORDERING: Release pairs with the Acquire in `is_abandoned`, by the thread that continues issuing.
        self.is_abandoned.store(true, Release);
    }

    /// The queue holds itself.
    pub(super) fn keep(&self, queue: Arc<dyn Drainable>) {
        let before = self.flight().kept.replace(queue);
        drop(before);
    }

    /// All of its work is over. Not under a lock.
    pub(super) fn release_kept(&self) {
        let kept = self.flight().kept.take();
        drop(kept);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Acquire)
    }

    pub(super) fn is_retiring(&self) -> bool {
        self.flight().under_way.is_looking()
    }

    /// Whether to look for completed items: enough are in flight, and there may be a new fence since the last look.
    pub(super) fn is_crowded(&self) -> bool {
        let issued = self.issued();
        issued.is_multiple_of(LOOK_EVERY) && self.flight().under_way.count(issued) >= LOOK_FROM
    }
}
