//! A frame's streams, and how far a device is known to have got in each: so the end of a run looks at what the streams
//! were given, and not at who says that he is done.
//!
//! Whoever gives a stream work locks its *line*, which counts that. A line keeps a *clock*: for every line of the
//! engine, behind how much of it this one is. An event takes the clock of the line that records it (`Mark`), and a line
//! that waits for it takes the event's. When a node is told that an event was reached, the event's clock says what is
//! over (`Clock` of `DeviceFrame`). So a line is done when all that it counted is over, whoever gave it, and whether or
//! not somebody waited for that very piece.
//!
//! ORDERING: Relaxed throughout; a line's clock changes under its lock, the edges of a run order a record and who waits
//! for its event, and whoever was told that an event was reached comes before the end of the run.
#![forbid(unsafe_code)]

use crate::base::{Error, Result};
use crate::device::{Accelerator, DeviceEvent, DeviceStream};
use crate::sync::{Mutex, MutexGuard};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// For each line of an engine, how much that was given to it.
#[derive(Debug)]
pub(in crate::graph) struct Clock(Box<[AtomicU64]>);

impl Clock {
    pub fn new(lines: usize) -> Clock {
        Clock((0..lines).map(|_| AtomicU64::new(0)).collect())
    }

    /// Takes over what the other one is behind.
    pub fn merge(&self, other: &Clock) {
        for (mine, theirs) in self.0.iter().zip(&other.0) {
            mine.fetch_max(theirs.load(Relaxed), Relaxed);
        }
    }

    fn at(&self, line: usize) -> u64 {
        self.0[line].load(Relaxed)
    }
}

/// An event, and what the device has done when it is reached.
#[derive(Debug)]
pub(in crate::graph) struct Mark {
    pub event: Arc<dyn DeviceEvent>,
    clock: Clock,
}

impl Mark {
    pub fn new(accelerator: &dyn Accelerator, lines: usize) -> Result<Mark> {
        Ok(Mark { event: accelerator.event(false)?, clock: Clock::new(lines) })
    }

    /// It was reached.
    pub fn tell(&self, done: &Clock) {
        done.merge(&self.clock);
    }
}

/// A stream, to which one thread at a time issues.
#[derive(Debug)]
pub(in crate::graph) struct FrameStream {
    stream: Mutex<Box<dyn DeviceStream>>,
    /// Among those of the engine.
    number: usize,
    clock: Clock,
}

/// A line whose stream is given work.
pub(in crate::graph) struct Giving<'a> {
    stream: MutexGuard<'a, Box<dyn DeviceStream>>,
    clock: &'a Clock,
}

impl Deref for Giving<'_> {
    type Target = dyn DeviceStream;

    fn deref(&self) -> &Self::Target {
        &**self.stream
    }
}

impl Giving<'_> {
    pub fn wait_for(&self, mark: &Mark) -> Result<()> {
        self.stream.wait(&mark.event)?;
        self.clock.merge(&mark.clock);
        Ok(())
    }

    pub fn mark(&self, mark: &Mark) -> Result<()> {
        self.stream.record(&mark.event)?;
        mark.clock.merge(self.clock);
        Ok(())
    }
}

impl FrameStream {
    /// `number` of so many.
    pub fn new(stream: Box<dyn DeviceStream>, (number, lines): (usize, usize)) -> FrameStream {
        FrameStream { stream: Mutex::new(stream), number, clock: Clock::new(lines) }
    }

    /// For who may give it work.
    pub fn lock(&self) -> Giving<'_> {
        let stream = self.stream.lock();
        self.clock.0[self.number].fetch_add(1, Relaxed);
        Giving { stream, clock: &self.clock }
    }

    /// For who gives it no work, and at most records an event.
    pub fn look(&self) -> MutexGuard<'_, Box<dyn DeviceStream>> {
        self.stream.lock()
    }

    /// Whether a device that has got so far has done all of it.
    pub fn is_done(&self, done: &Clock) -> bool {
        self.clock.at(self.number) <= done.at(self.number)
    }

    /// An event behind all of it; `clears` has the stream work again after a failure first.
    pub fn behind(&self, accelerator: &dyn Accelerator, clears: bool) -> Result<Mark> {
        let mark = Mark::new(accelerator, self.clock.0.len())?;
        let stream = self.stream.lock();
        if clears {
            stream.clear_error();
        }
        stream.record(&mark.event)?;
        mark.clock.merge(&self.clock);
        Ok(mark)
    }
}

/// Puts the engine in front of what went wrong.
pub(in crate::graph) fn of(label: &str) -> impl FnOnce(Error) -> Error {
    move |error| error.within(format_args!("engine {label}"))
}

pub(in crate::graph) fn mark_of(mark: &Option<Arc<Mark>>) -> Result<&Arc<Mark>> {
    mark.as_ref().ok_or_else(|| Error::internal("a wait for work that records nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceStreamAttr;
    use crate::device::emulated::{Emulated, Emulation};

    #[test]
    fn a_line_is_done_when_an_event_behind_it_was_reached_and_not_before() {
        let device = Emulated::new(7, Emulation::default()).unwrap();
        let accelerator = &*device;
        let line = |number| {
            let stream = accelerator.stream(&DeviceStreamAttr { name: "line", priority: 0 }).unwrap();
            FrameStream::new(stream, (number, 3))
        };
        let lines = [line(0), line(1), line(2)];
        let (done, marks) = (Clock::new(3), [0, 1].map(|_| Mark::new(accelerator, 3).unwrap()));
        assert!(lines.iter().all(|line| line.is_done(&done)));
        // The second is behind the first, the third by itself; and the first goes on.
        lines[0].lock().mark(&marks[0]).unwrap();
        let second = lines[1].lock();
        second.wait_for(&marks[0]).unwrap();
        second.mark(&marks[1]).unwrap();
        drop(second);
        drop(lines[2].lock());
        assert!(!lines.iter().any(|line| line.is_done(&done)));
        marks[1].tell(&done);
        assert_eq!([0, 1, 2].map(|at: usize| lines[at].is_done(&done)), [true, true, false]);
        drop(lines[0].lock());
        assert!(!lines[0].is_done(&done));
        lines[0].behind(accelerator, false).unwrap().tell(&done);
        assert!(lines[0].is_done(&done));
    }
}
