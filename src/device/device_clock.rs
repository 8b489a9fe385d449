//! A device's clock beside the host's, for traces.
//!
//! The two are aligned by events with timing (`DeviceAnchor`) in a stream that has no other work: the device reaches
//! each at once, between two looks of the host at its own clock. Work is timed from the last anchor before it, and is
//! put on the host's clock between that one and one behind it; so a device's clock may run at a rate of its own.
//! Anchors are taken at most `APART_NS` apart while work is issued: the resolution of such times becomes worse with
//! their length.
#![forbid(unsafe_code)]

use super::{Device, DeviceEvent, DeviceStream, DeviceStreamAttr, Then, label};
use crate::base::reserve;
use crate::base::time::{Deadline, now_ns};
use crate::sync::{Global, Mutex, fork};
use std::sync::{Arc, Weak};

/// Anchors are at most so far apart.
const APART_NS: u64 = 2_000_000_000;
/// Two anchors that are nearer than this tell no rate.
const LEAST_NS: u64 = 10_000_000;
/// The most that a thread waits for an anchor when it issues work, and when a trace is read; and how long a thread that
/// issues work puts off the next try when it was not reached.
const PATIENCE_NS: u64 = 20_000_000;
const LONG_PATIENCE_NS: u64 = 1_000_000_000;
const PAUSE_NS: u64 = 1_000_000_000;
/// The rates of two clocks differ by at most so much. One that jumps is not believed.
const MOST_DRIFT: f64 = 0.01;
/// Tries for an anchor, until one is as narrow as this; the narrowest counts.
const TRIES: u32 = 4;
const NARROW_NS: u64 = 20_000;

/// An event that the device has reached at a known time of the host's.
#[derive(Debug)]
pub(super) struct DeviceAnchor {
    event: Arc<dyn DeviceEvent>,
    at_ns: u64,
    /// How far it may be off.
    pub slack_ns: u64,
}

/// A stream without other work.
#[derive(Debug)]
struct ClockStream {
    stream: Box<dyn DeviceStream>,
    /// Those that were not reached in time live until a later one is.
    unreached: Vec<Arc<dyn DeviceEvent>>,
}

#[derive(Debug)]
pub(super) struct DeviceClock {
    device: Arc<dyn Device>,
    state: Mutex<ClockState>,
}

/// Not locked while the device is asked: it may do work of others to answer.
#[derive(Debug, Default)]
struct ClockState {
    last: Option<Arc<DeviceAnchor>>,
    /// Away while a thread takes an anchor.
    stream: Option<ClockStream>,
    is_taking: bool,
    /// No anchor is tried before.
    not_before_ns: u64,
    /// The device keeps no times.
    has_none: bool,
}

type Clocks = Vec<(usize, Weak<DeviceClock>)>;
static CLOCKS: Global<Clocks> = Global::new(Vec::new);

fn address(device: &Arc<dyn Device>) -> usize {
    Arc::as_ptr(device).addr()
}

impl DeviceClock {
    /// The clock of a device, one for all of its streams.
    pub fn of(device: &Arc<dyn Device>) -> Option<Arc<DeviceClock>> {
        let mut clocks = CLOCKS.lock();
        clocks.retain(|(_, clock)| clock.strong_count() > 0);
        // A clock keeps its device, so the address is that of no other.
        let known = clocks.iter().find(|(known, _)| *known == address(device));
        if let Some(clock) = known.and_then(|(_, clock)| clock.upgrade()) {
            return Some(clock);
        }
        clocks.try_reserve(1).ok()?;
        let clock = DeviceClock { device: Arc::clone(device), state: Mutex::default() };
        let clock = reserve::whole(|| Ok(Arc::new(clock))).ok()?;
        clocks.push((address(device), Arc::downgrade(&clock)));
        Some(clock)
    }

    /// Whether the device may keep times.
    pub fn is_there(&self) -> bool {
        !self.state.lock().has_none
    }

    /// An anchor that is at most `age_ns` old, or the last one if none can be taken now.
    fn anchor(&self, age_ns: u64, is_patient: bool) -> Option<Arc<DeviceAnchor>> {
        let mut state = self.state.lock();
        let now = now_ns();
        let is_young = state.last.as_ref().is_some_and(|anchor| now.saturating_sub(anchor.at_ns) <= age_ns);
        if is_young || state.has_none || state.is_taking || !is_patient && now < state.not_before_ns {
            return state.last.clone();
        }
        state.is_taking = true;
        let mut stream = state.stream.take();
        drop(state);
        let mut has_none = false;
        let mut taken: Option<DeviceAnchor> = None;
        for _ in 0..TRIES {
            let Some(next) = self.take(&mut stream, &mut has_none, is_patient) else { break };
            let is_narrow = next.slack_ns <= NARROW_NS;
            if taken.as_ref().is_none_or(|taken| next.slack_ns < taken.slack_ns) {
                taken = Some(next);
            }
            if is_narrow {
                break;
            }
        }
        let mut state = self.state.lock();
        (state.stream, state.is_taking, state.has_none) = (stream, false, has_none);
        match taken {
            Some(anchor) => state.last = reserve::whole(|| Ok(Arc::new(anchor))).ok(),
            None => state.not_before_ns = now_ns() + PAUSE_NS,
        }
        state.last.clone()
    }

    /// One for work that is issued now.
    pub fn before(&self) -> Option<Arc<DeviceAnchor>> {
        self.anchor(APART_NS, false)
    }

    /// One behind work that is over.
    pub fn behind(&self, is_patient: bool) -> Option<Arc<DeviceAnchor>> {
        self.anchor(0, is_patient)
    }

    fn take(&self, stream: &mut Option<ClockStream>, has_none: &mut bool, is_patient: bool) -> Option<DeviceAnchor> {
        let accelerator = self.device.accelerator()?;
        if stream.is_none() {
            let name = format!("clock of {}", label(&*self.device));
            let made = accelerator.stream(&DeviceStreamAttr { name: &name, priority: 0 }).ok()?;
            *stream = Some(ClockStream { stream: made, unreached: Vec::new() });
        }
        let ClockStream { stream, unreached } = stream.as_mut()?;
        let event = accelerator.event(true).ok()?;
        let before = now_ns();
        stream.record(&event).ok()?;
        let patience_ns = if is_patient { LONG_PATIENCE_NS } else { PATIENCE_NS };
        if !event.synchronize(Deadline::after(patience_ns)).ok()? {
            unreached.push(event);
            return None;
        }
        unreached.clear();
        let slack_ns = (now_ns() - before) / 2 + 1;
        *has_none = event.elapsed_ns(&*event).is_err();
        (!*has_none).then(|| DeviceAnchor { event, at_ns: before + slack_ns, slack_ns })
    }
}

/// A stream is destroyed when its work is done: events that the device has still to reach keep it until then.
impl Drop for DeviceClock {
    fn drop(&mut self) {
        let Some(ClockStream { stream, unreached }) = self.state.lock().stream.take() else { return };
        if let (Some(last), Some(accelerator), false) = (unreached.last(), self.device.accelerator(), fork::forked()) {
            let last = Arc::clone(last);
            accelerator.when_reached(&last, Then::once(move || drop((stream, unreached))));
        }
    }
}

impl DeviceAnchor {
    /// Nanoseconds of the device's clock from here to an event.
    fn to(&self, event: &dyn DeviceEvent) -> Option<i64> {
        event.elapsed_ns(&*self.event).ok()
    }

    /// The host's times of two events that the device has reached; `later`: an anchor behind them, perhaps this one.
    pub fn times(&self, later: &DeviceAnchor, events: [&dyn DeviceEvent; 2]) -> Option<[u64; 2]> {
        let [begin, end] = [self.to(events[0])?, self.to(events[1])?];
        let host = later.at_ns.saturating_sub(self.at_ns) as f64;
        let device = if host > 0.0 { self.to(&*later.event)? as f64 } else { 0.0 };
        let (rate, origin) = match host / device {
            rate if host >= LEAST_NS as f64 && (rate - 1.0).abs() < MOST_DRIFT => (rate, 0.0),
            // Too near for a rate.
            _ if host < LEAST_NS as f64 => (1.0, 0.0),
            // The clock has jumped: the anchor behind the work is nearer to it.
            _ => (1.0, host - device),
        };
        let at = |device: i64| self.at_ns.saturating_add_signed((device as f64 * rate + origin) as i64);
        Some([at(begin), at(end.max(begin))])
    }
}
