//! The records of a queue for traces: which item ran where and when, from submission to its end.
#![forbid(unsafe_code)]

use super::queue::{DeviceQueue, Queue, QueueItem};
use crate::trace::{self, FAILED, Filter, LATER, Nodes, Tape, TraceEvent, TraceRecord};

/// An item while a thread is at it.
pub(super) struct TracedItem<'a> {
    queue: &'a Queue,
    tape: Tape,
    number: u64,
    kind: u16,
    begin: u64,
}

fn kind_of(item: &QueueItem) -> u16 {
    match item {
        QueueItem::Work(_) => 0,
        QueueItem::Task(_) => 1,
        QueueItem::Record(_) => 2,
        QueueItem::Wait(_) => 3,
    }
}

impl Queue {
    /// For the traces that want to know of this queue.
    #[cold]
    fn tape(&self) -> Tape {
        let tape = Tape::of(&|filter| match *filter {
            Filter::Everything => true,
            Filter::Domain(domain) => self.domain().number() == domain,
            Filter::Engine(account) => std::ptr::from_ref(self.account()).addr() == account,
            Filter::Program(_) | Filter::Asked => false,
        });
        tape.explain(self.explained(), &|| Some((format!("stream {}", self.label()), Nodes::default())));
        tape
    }

    /// The first item is about to run, or to go on.
    #[inline]
    pub(super) fn trace_item(&self, item: &QueueItem) -> Option<TracedItem<'_>> {
        if trace::is_on() { self.begin_trace(item) } else { None }
    }

    #[cold]
    fn begin_trace(&self, item: &QueueItem) -> Option<TracedItem<'_>> {
        let tape = self.tape();
        if tape.is_blank() {
            return None;
        }
        let number = 1 + self.device_queue().map_or_else(|| self.completed(), DeviceQueue::issued);
        Some(TracedItem { queue: self, tape, number, kind: kind_of(item), begin: trace::now() })
    }

    /// Item number `number` was submitted.
    #[inline]
    pub(super) fn trace_submit(&self, number: u64) {
        if trace::is_on() {
            let object = self.explained().number();
            self.tape().note(TraceEvent::Submit, |record| TraceRecord { object, other: number as u32, ..record });
        }
    }

    /// "stream 3" has only its number.
    fn label(&self) -> &str {
        self.name().strip_prefix("stream ").unwrap_or(self.name())
    }
}

impl TracedItem<'_> {
    /// The same traces have all that this thread does for the item.
    pub fn work(&self) -> trace::Working {
        self.tape.work()
    }

    /// The thread leaves the item.
    #[cold]
    pub fn end(self, failed: bool, pending: bool) {
        let flags = if failed { FAILED } else { 0 } | if pending { LATER } else { 0 };
        let object = self.queue.explained().number();
        let length = trace::now().wrapping_sub(self.begin);
        let record = TraceRecord {
            length,
            object,
            other: self.number as u32,
            flags,
            carrier: self.kind,
            ..TraceRecord::new(TraceEvent::Item, self.tape.frame(), self.begin)
        };
        self.tape.record(record);
        if pending {
            self.tape.note(TraceEvent::Park, |record| TraceRecord { object, ..record });
        }
    }
}
