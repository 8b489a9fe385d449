//! A frame's streams, and the known progress of a device in each: so the end of a run checks the work that the streams
//! were given, and does not rely on reports.
//!
//! A thread that gives a stream work locks its `FrameStream`, which counts the work. A frame stream keeps a *clock*:
//! for every frame stream of the engine, how much of that one's work comes before its own end. An event takes the clock
//! of the frame stream that records it (`EventMark`), and a frame stream that waits for it merges the event's. When a
//! node is told that an event was reached, the event's clock says which work is over (`FrameClock` of `DeviceFrame`).
//! So a frame stream is done when all work that it counted is over, whichever thread gave it, and whether or not that
//! very piece was waited for.
//!
//! ORDERING: Relaxed throughout; a frame stream's clock changes under its lock, the edges of a run order a record and
//! the wait for its event, and the report that an event was reached comes before the end of the run.
#![forbid(unsafe_code)]

use crate::base::{Code, Error, Result};
use crate::device::{Accelerator, DeviceEvent, DeviceStream};
use crate::sync::{Mutex, MutexGuard};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How often a device is asked for an event behind work that must not end unseen, and the pause between.
const ASKS: usize = 20;
const PAUSE: Duration = Duration::from_millis(1);

/// For each frame stream of an engine, the amount of its work.
#[derive(Debug)]
pub(in crate::graph) struct FrameClock(Box<[AtomicU64]>);

impl FrameClock {
    pub fn new(num_streams: usize) -> FrameClock {
        FrameClock((0..num_streams).map(|_| AtomicU64::new(0)).collect())
    }

    /// Takes the maximum with the other clock.
    pub fn merge(&self, other: &FrameClock) {
        for (mine, theirs) in self.0.iter().zip(&other.0) {
            mine.fetch_max(theirs.load(Relaxed), Relaxed);
        }
    }

    fn at(&self, number: usize) -> u64 {
        self.0[number].load(Relaxed)
    }
}

/// An event, and the work that is over when it is reached.
#[derive(Debug)]
pub(in crate::graph) struct EventMark {
    pub event: Arc<dyn DeviceEvent>,
    clock: FrameClock,
}

impl EventMark {
    pub fn new(accelerator: &dyn Accelerator, num_streams: usize) -> Result<EventMark> {
        Ok(EventMark { event: accelerator.event(false)?, clock: FrameClock::new(num_streams) })
    }

    /// The event was reached.
    pub fn tell(&self, done: &FrameClock) {
        done.merge(&self.clock);
    }
}

/// A stream, to which one thread at a time issues.
#[derive(Debug)]
pub(in crate::graph) struct FrameStream {
    stream: Mutex<Box<dyn DeviceStream>>,
    /// Its number among those of the engine.
    number: usize,
    clock: FrameClock,
    /// The last event that was recorded for a wait for everything, and the work before it.
    looked: Mutex<Option<(u64, Arc<dyn DeviceEvent>)>>,
}

/// A frame stream that is locked to give it work.
pub(in crate::graph) struct Giving<'a> {
    stream: MutexGuard<'a, Box<dyn DeviceStream>>,
    clock: &'a FrameClock,
}

impl Deref for Giving<'_> {
    type Target = dyn DeviceStream;

    fn deref(&self) -> &Self::Target {
        &**self.stream
    }
}

impl Giving<'_> {
    pub fn wait_for(&self, mark: &EventMark) -> Result<()> {
        self.stream.wait(&mark.event)?;
        self.clock.merge(&mark.clock);
        Ok(())
    }

    pub fn mark(&self, mark: &EventMark) -> Result<()> {
        self.stream.record(&mark.event)?;
        mark.clock.merge(self.clock);
        Ok(())
    }
}

impl Giving<'_> {
    /// As `mark`, behind work that must not end unseen: a device that refuses is asked again for a while. Returns its
    /// first refusal. An error: nobody will know when that work is over, unless the device is lost.
    pub fn insist(&self, mark: &EventMark) -> Result<Option<Error>> {
        let mut refusal = None;
        for asked in 0.. {
            match self.mark(mark) {
                Ok(()) => break,
                Err(error) if error.code() == Code::DeviceLost || asked == ASKS => return Err(error),
                Err(error) => _ = refusal.get_or_insert(error),
            }
            if asked > 0 {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(refusal)
    }
}

impl FrameStream {
    /// Number `number` of `streams`.
    pub fn new(stream: Box<dyn DeviceStream>, (number, num_streams): (usize, usize)) -> FrameStream {
        let looked = Mutex::default();
        FrameStream { stream: Mutex::new(stream), number, clock: FrameClock::new(num_streams), looked }
    }

    /// For a thread that may give it work.
    pub fn lock(&self) -> Giving<'_> {
        let stream = self.stream.lock();
        self.clock.0[self.number].fetch_add(1, Relaxed);
        Giving { stream, clock: &self.clock }
    }

    /// For a thread that gives it no work, and at most records an event.
    pub fn look(&self) -> MutexGuard<'_, Box<dyn DeviceStream>> {
        self.stream.lock()
    }

    /// Whether a device with this progress has done all of its work.
    pub fn is_done(&self, done: &FrameClock) -> bool {
        self.clock.at(self.number) <= done.at(self.number)
    }

    /// An event behind all of its work, the same one until it is given more: so a wait that only looks, again and
    /// again, finds the event reached in the end.
    pub fn last(&self, accelerator: &dyn Accelerator) -> Result<Arc<dyn DeviceEvent>> {
        let stream = self.stream.lock();
        let (mut looked, work) = (self.looked.lock(), self.clock.at(self.number));
        if let Some((before, event)) = &*looked
            && *before == work
        {
            return Ok(Arc::clone(event));
        }
        let event = accelerator.event(false)?;
        stream.record(&event)?;
        *looked = Some((work, Arc::clone(&event)));
        Ok(event)
    }

    /// An event behind all of its work; `clears` first has the stream work again after a failure.
    pub fn behind(&self, accelerator: &dyn Accelerator, clears: bool) -> Result<EventMark> {
        let mark = EventMark::new(accelerator, self.clock.0.len())?;
        let stream = self.stream.lock();
        if clears {
            stream.clear_error();
        }
        stream.record(&mark.event)?;
        mark.clock.merge(&self.clock);
        Ok(mark)
    }
}

/// Prefixes an error with the engine.
pub(in crate::graph) fn of(label: &str) -> impl FnOnce(Error) -> Error {
    move |error| error.at_engine(label)
}

pub(in crate::graph) fn mark_of(mark: &Option<Arc<EventMark>>) -> Result<&Arc<EventMark>> {
    mark.as_ref().ok_or_else(|| Error::internal("a wait for work that records nothing"))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::device::plugin::Plugin;
    use crate::device::{DeviceSettings, DeviceStreamAttr, Factory};

    #[test]
    fn a_line_is_done_when_an_event_behind_it_was_reached_and_not_before() {
        let device = Plugin::emulated().open(7, &DeviceSettings::default()).unwrap();
        let accelerator = device.accelerator().unwrap();
        let stream = |number| {
            let stream = accelerator.stream(&DeviceStreamAttr { name: "line", priority: 0 }).unwrap();
            FrameStream::new(stream, (number, 3))
        };
        let streams = [stream(0), stream(1), stream(2)];
        let (done, marks) = (FrameClock::new(3), [0, 1].map(|_| EventMark::new(accelerator, 3).unwrap()));
        assert!(streams.iter().all(|stream| stream.is_done(&done)));
        // The second is behind the first, the third by itself; and the first gets more work.
        streams[0].lock().mark(&marks[0]).unwrap();
        let second = streams[1].lock();
        second.wait_for(&marks[0]).unwrap();
        second.mark(&marks[1]).unwrap();
        drop(second);
        drop(streams[2].lock());
        assert!(!streams.iter().any(|stream| stream.is_done(&done)));
        marks[1].tell(&done);
        assert_eq!([0, 1, 2].map(|at: usize| streams[at].is_done(&done)), [true, true, false]);
        drop(streams[0].lock());
        assert!(!streams[0].is_done(&done));
        streams[0].behind(accelerator, false).unwrap().tell(&done);
        assert!(streams[0].is_done(&done));
    }
}
