//! A queue whose work a device does: items are *issued* to a stream of the device, in order, and *completed* when the
//! device is known to have done them.
//!
//! # Issuing
//!
//! Whoever submits issues, at once, unless another thread is at it or the first item cannot be issued yet: it waits for
//! an event that no stream of this device will reach, or for one whose record lies in a queue that is itself held up,
//! or it is a function of the host's, which runs when the device has got there. Then the queue is parked as any queue
//! is (`queue`), holds no thread, and whoever reaches that event goes on issuing. A wait for an event of the same
//! device is issued to the device, and nobody waits for it here.
//!
//! # Completing
//!
//! Nobody is told of each item. *Fences* (`sync::Fences`) are events behind items: those that the host records
//! itself, one behind every 64 items, and one wherever a thread wants to know (`ask`). Who waits, waits for the first
//! milestone that covers what it waits for; who looks, asks the oldest. Then the items up to there are let go, with the
//! tensors that they hold, and count as completed.
//!
//! A call that is given again while an earlier time of it is under way is a number and no more: what it uses is held
//! already, and stands where it is until its last time is over (`sync::ResubmitTable`). Nothing is added to what is under
//! way, and no lock is taken, unless a milestone is wanted (`note`). One thread at a time does that, so that items
//! complete in order; others leave it to that one, which looks again for them, and wait for the count.
//!
//! A thread that wants to know about items which are not issued yet leaves word (`asked`), and the milestone is
//! recorded right behind them. So a wait covers what was submitted before it, and ends although others go on
//! submitting.
//!
//! A failure is found with the milestone behind it: the queue has failed from then on, and what is submitted later is
//! skipped. What was issued in between the device has skipped itself.
//!
//! # The end
//!
//! A queue may be released while the device works for it. Then the device is asked to say when the last item is done,
//! and the answer holds the queue until then (`see_off`).
#![forbid(unsafe_code)]

use super::dedicated_thread::Called;
use super::fences::{Asked, Fence, Fences};
use super::resubmit_table::{Issuer, ResubmitTable};
use crate::base::time::Deadline;
use crate::base::{Error, Result};
use crate::device::{Device, DeviceEvent, DeviceStream, Reached, StreamAttr, Then};
use crate::sync::{EventCount, Mutex, MutexGuard, OnceLock};
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*, fence};

/// So many items may be under way before their submitter looks which are done, and that many lie between two looks: a
/// question to the device may cost as much as an item.
const LOOK_FROM: u64 = 192;
const LOOK_EVERY: u64 = 64;

/// Of items `I`, of which those that may be given again are `W`.
#[derive(Debug)]
pub struct DeviceQueue<I, W> {
    device: Arc<dyn Device>,
    stream: Box<dyn DeviceStream>,
    /// Whether the device can say that nothing of a stream is left.
    pub(super) tells_idle: bool,
    /// Items issued or skipped.
    issued: EventCount,
    flight: Mutex<InFlight<I>>,
    /// Calls that may be given again; and whether somebody waits for a milestone that is not there, see `note`.
    standing: Arc<ResubmitTable<W>>,
    has_wishes: AtomicBool,
    /// What the first item, a function or a run of the host's, begins behind. Made once it is needed.
    halt: OnceLock<Arc<Halt>>,
    /// The first item is such a one; it has begun. ORDERING: Relaxed, both; by who has the queue's turn or was called
    /// to take it, and the turn orders them.
    is_at_host: AtomicBool,
    is_begun: AtomicBool,
    /// The item that last made the stream take part in a capture. ORDERING: Relaxed; who waits looks again and again.
    joined: AtomicU64,
    /// The host has let go of the queue.
    is_abandoned: AtomicBool,
}

/// The device gets to a point at which the host does something.
struct Halt {
    event: Arc<dyn DeviceEvent>,
    /// Who is told. While it has not got there, or nobody has looked yet, `is_ahead`.
    queue: Mutex<Option<Arc<dyn Called>>>,
    is_ahead: AtomicBool,
    /// The item in front of which it was put was skipped. ORDERING: Relaxed, both; by the thread that has the queue's
    /// turn.
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

/// What the device may still be at.
pub(super) struct InFlight<I> {
    pub(super) under_way: Fences<I, Event>,
    /// Items that count as completed although nobody knows whether the device is done with them. They go with the next
    /// milestone that is reached, or behind the stream.
    pub(super) unknown: Vec<I>,
    /// Events of milestones that are behind us.
    pub(super) spare: Vec<Event>,
}

impl<I> Default for InFlight<I> {
    fn default() -> InFlight<I> {
        InFlight { under_way: Fences::default(), unknown: Vec::new(), spare: Vec::new() }
    }
}

impl<I> Debug for InFlight<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "under way behind item {}", self.under_way.over())
    }
}

impl<I, W> DeviceQueue<I, W> {
    /// A line to a stream of the device's, or to one of the host's; and who gives again what was given before, for the
    /// queue's turn.
    pub(super) fn create(
        device: &Arc<dyn Device>,
        name: &str,
        priority: i32,
        wrapped: Option<u64>,
    ) -> Result<(DeviceQueue<I, W>, Issuer<W>)> {
        let Some(accelerator) = device.accelerator() else {
            return Err(Error::internal("a line to a device without streams"));
        };
        let attr = StreamAttr { name, priority };
        let stream = match wrapped {
            Some(handle) => accelerator.wrap_stream(&attr, handle)?,
            None => accelerator.stream(&attr)?,
        };
        let (giver, standing) = ResubmitTable::new();
        let line = DeviceQueue {
            device: Arc::clone(device),
            tells_idle: stream.tells_idle(),
            stream,
            issued: EventCount::new(),
            flight: Mutex::default(),
            standing,
            has_wishes: AtomicBool::new(false),
            halt: OnceLock::new(),
            is_at_host: AtomicBool::new(false),
            is_begun: AtomicBool::new(false),
            joined: AtomicU64::new(0),
            is_abandoned: AtomicBool::new(false),
        };
        Ok((line, giver))
    }

    pub fn stream(&self) -> &dyn DeviceStream {
        &*self.stream
    }

    /// Whether it can be known when so many items are over, although the host captures the stream.
    pub(super) fn is_foreseen(&self, target: u64) -> bool {
        let has_joined = target > 0 && self.joined.load(Relaxed) == target;
        self.milestone_for(target - u64::from(has_joined)).is_some()
    }

    pub(super) fn joined(&self) -> &AtomicU64 {
        &self.joined
    }

    /// Whether the host captures the stream.
    #[inline]
    pub fn is_captured(&self) -> Result<bool> {
        if self.stream.may_be_captured() { self.stream.is_capturing() } else { Ok(false) }
    }

    /// Waits until so many items are issued.
    pub(super) fn wait_issued(&self, target: u64, spin_ns: u64, deadline: Deadline) {
        self.issued.wait(target, spin_ns, deadline);
    }

    pub(super) fn issued_gate(&self) -> &EventCount {
        &self.issued
    }

    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    pub(super) fn issued(&self) -> u64 {
        self.issued.reached()
    }

    /// Whether the first item is the host's to do.
    pub(super) fn is_at_host(&self) -> bool {
        self.is_at_host.load(Relaxed)
    }

    /// Whether the first item is the host's, and has begun.
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun.load(Relaxed)
    }

    /// The first item, which is the host's, begins.
    pub(super) fn begin(&self) {
        self.is_begun.store(true, Relaxed);
    }

    /// The first item is the host's: whether the device has got there. Until then the queue is to be parked, and is
    /// resumed. `may_begin`: the caller begins it in that case.
    pub(super) fn has_got_to_host(&self, queue: impl FnOnce() -> Arc<dyn Called>, may_begin: bool) -> Result<bool> {
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
            // It is under way for an item that was skipped, and its end resumes the queue.
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
        // Who may not begin leaves it to others, who ask again.
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
            None => Err(Error::internal("a line to a device without streams")),
        }
    }

    /// Records an event of a mark's: an event of its own, since who waits for it may do so for long.
    pub(super) fn record_mark(&self, timing: bool) -> Result<Arc<dyn DeviceEvent>> {
        let event = self.new_event(timing)?;
        self.stream.record(&event)?;
        Ok(event)
    }

    /// An item was issued, or is skipped: `event` is the one that it recorded, and `op` what is to be let go when it is
    /// over, if anything is. By the thread that has the turn.
    pub(super) fn note(&self, op: Option<I>, event: Option<Event>) -> Result<()> {
        let number = self.issued() + 1;
        let flight = (op.is_some() || event.is_some()).then(|| {
            let mut flight = self.flight();
            op.into_iter().for_each(|op| flight.under_way.add(number, op));
            event.into_iter().for_each(|event| flight.under_way.put(Fence { item: number, event, is_own: false }));
            flight
        });
        self.issued.advance(1);
        // ORDERING: Relaxed; the fence in `advance` pairs with that in `ask`: either this sees the flag, or who asks
        // sees the count.
        if flight.is_none() && !Fences::<I, Event>::is_stride(number) && !self.has_wishes.load(Relaxed) {
            return Ok(());
        }
        let mut flight = flight.unwrap_or_else(|| self.flight());
        let is_wanted = flight.under_way.is_wanted(number);
        self.has_wishes.store(flight.under_way.has_wishes(), Relaxed);
        if is_wanted { self.milestone(&mut flight, number) } else { Ok(()) }
    }

    /// Records a milestone behind item `item`, the last one that was issued.
    fn milestone(&self, flight: &mut InFlight<I>, item: u64) -> Result<()> {
        // It would be a part of what the host captures. Who wants to know asks again.
        if self.is_captured()? {
            return Ok(());
        }
        let event = match flight.spare.pop() {
            Some(event) => event,
            None => self.new_event(false)?,
        };
        self.stream.record(&event)?;
        // The host may have begun just now: then it is a part of that, and is never reached.
        if !event.is_captured() {
            flight.under_way.put(Fence { item, event, is_own: true });
        }
        Ok(())
    }

    /// Sees to it that there is a milestone at or behind item `target`, or will be as soon as it is issued.
    pub(super) fn ask(&self, target: u64) -> Result<()> {
        let mut flight = self.flight();
        let announce = || {
            self.has_wishes.store(true, Relaxed);
            // ORDERING: pairs with the fence in `EventCount::advance`, see `note`.
            fence(SeqCst);
        };
        match flight.under_way.ask(target, || self.issued(), announce) {
            Asked::Seen => Ok(()),
            Asked::Wanted(issued) => self.milestone(&mut flight, issued),
        }
    }

    /// The first milestone at or behind item `target`.
    pub(super) fn milestone_for(&self, target: u64) -> Option<Event> {
        self.flight().under_way.covering(target)
    }

    /// Calls that may be given again.
    pub(super) fn standing(&self) -> &ResubmitTable<W> {
        &self.standing
    }

    /// The host has let go of the queue.
    pub(super) fn abandon(&self) {
        // ORDERING: Release pairs with the Acquire in `is_abandoned`, by whoever goes on issuing.
        self.is_abandoned.store(true, Release);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Acquire)
    }

    pub(super) fn is_retiring(&self) -> bool {
        self.flight().under_way.is_looking()
    }

    /// Whether to look which items are done: so many are under way, and there may be a milestone that was not there at
    /// the last look.
    pub(super) fn is_crowded(&self) -> bool {
        let issued = self.issued();
        issued.is_multiple_of(LOOK_EVERY) && self.flight().under_way.count(issued) >= LOOK_FROM
    }
}
