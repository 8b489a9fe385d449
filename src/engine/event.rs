//! An event: the last mark recorded in a stream for it.
#![forbid(unsafe_code)]

use super::engine::Engine;
use super::stream::Stream;
use crate::base::object::tag;
use crate::base::time::Deadline;
use crate::base::{Error, Kind, Object, Ref, Result, live};
use crate::memory::heap;
use crate::stream::{Listener, Mark, Notice, QueueItem, until_reached};
use crate::sync::Mutex;
use crate::threadpool::ThreadPoolAttr;
use std::sync::Arc;

#[derive(Debug)]
pub struct Event {
    engine: Ref<Engine>,
    timing: bool,
    mark: Mutex<Option<Arc<Mark>>>,
}

impl Kind for Event {
    const TAG: u32 = tag::EVENT;
    const NAME: &'static str = "event";
    const COUNTER: live::Counter = live::Counter::Events;
}

impl Event {
    pub fn create(engine: Ref<Engine>, timing: bool) -> Ref<Event> {
        Object::shared(Event { engine, timing, mark: Mutex::new(None) })
    }

    pub fn engine(&self) -> &Ref<Engine> {
        &self.engine
    }

    /// The event's last record; `None` = never recorded.
    pub fn last_mark(&self) -> Option<Arc<Mark>> {
        self.mark.lock().clone()
    }

    pub fn record(&self, stream: &Stream) -> Result<()> {
        if !self.engine.is_same_device(stream.engine()) {
            return Err(Error::invalid(format!(
                "event is of engine {}, stream '{}' is on engine {}",
                self.engine.label(),
                stream.queue().name(),
                stream.engine().label()
            )));
        }
        let mark = Mark::new(stream.queue(), self.timing);
        // Submitted first: a synchronous stream may refuse it, and then the event stays unchanged.
        stream.queue().submit(QueueItem::Record(Arc::clone(&mark)))?;
        *self.mark.lock() = Some(mark);
        Ok(())
    }

    pub fn is_reached(&self) -> bool {
        self.last_mark().is_none_or(|mark| mark.is_reached())
    }

    /// Waits, and returns the failure of the recording stream.
    pub fn synchronize(&self, timeout_ns: u64) -> Result<()> {
        let Some(mark) = self.last_mark() else { return Ok(()) };
        until_reached(&mark, ThreadPoolAttr::default().spin_ns, Deadline::after(timeout_ns))?;
        mark.failure().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Tells the listener when the last record is reached, or now.
    pub fn notify(&self, listener: Listener) -> Result<()> {
        let notice = match self.engine.accelerator() {
            Some(_) => self.engine.account().notice(listener)?,
            None => Notice::by_drainer(listener),
        };
        heap::check()?;
        match self.last_mark() {
            Some(mark) => mark.notify(notice),
            None => {
                notice.adopt();
                notice.tell_here(None, None);
                Ok(())
            }
        }
    }

    /// The last record, which was reached.
    fn reached(&self, argument: &str) -> Result<Arc<Mark>> {
        if !self.timing {
            return Err(Error::precondition(format!("{argument} was created without WEIR_EVENT_TIMING")));
        }
        let mark = self.last_mark().ok_or_else(|| Error::precondition(format!("{argument} was never recorded")))?;
        if !mark.is_reached() {
            return Err(Error::precondition(format!("{argument} has not been reached yet")));
        }
        Ok(mark)
    }

    /// Nanoseconds from `start` to `end`.
    pub fn elapsed_ns(start: &Event, end: &Event) -> Result<i64> {
        let (start, end) = (start.reached("start")?, end.reached("end")?);
        match end.elapsed_on_device(&start) {
            Some(elapsed) => elapsed,
            None => Ok(end.time_ns().wrapping_sub(start.time_ns()) as i64),
        }
    }
}
