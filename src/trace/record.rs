//! The record: 32 bytes, of which each kind says what the fields mean.
//!
//! | word | low half            | high half                                            |
//! |------|---------------------|------------------------------------------------------|
//! | 0    | `begin`, in ticks   |                                                      |
//! | 1    | `length`, in ticks  | `ready`: ticks between being ready and beginning     |
//! | 2    | `object`            | `other`                                              |
//! | 3    | `frame`             | kind, flags (one byte each), carrier (two)           |
//!
//! A length or a wait that needs more than 32 bits has its upper half in an `Extend` just before the record.
#![forbid(unsafe_code)]

/// The kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum TraceEvent {
    /// The upper halves of the next record's `length` and `ready`.
    Extend = 1,
    /// A node of a program ran. `object`: the node; `other`: the node that made it ready, or NONE.
    Node,
    /// A round of a node that completes later, after its first.
    Round,
    /// A node that completes later is over, and was taken up. `object`: the node.
    Return,
    /// A run began. `object`: the program; `other`: the frame of the run around it, or 0; words 1: its number.
    RunBegin,
    RunEnd,
    /// An iteration begins. `object`: where the run counts it; word 1: its number.
    Iteration,
    /// A thread's stay in a run. `object`: the program; `other`: the nodes that it ran; `carrier`: how it came.
    Stay,
    /// The run asked its pool for a helper; `other` is 0 if none comes.
    Ask,
    /// Nodes were put where others may take them. `object`: the first.
    Offer,
    /// Nodes were taken from where others had put them. `object`: the first.
    Take,
    /// The run was stopped from outside.
    Cancel,
    /// The run's first failure. `object`: the node, or NONE.
    Failure,
    /// An item of a stream ran. `object`: the stream; `other`: its number; `carrier`: what it was.
    Item,
    /// An item was submitted. `object` and `other`: as of `Item`.
    Submit,
    /// The first item of a stream waits, and no thread with it. `object`: the stream.
    Park,
    /// A loop shared by threads of a pool: the calling thread's part. `other`: the helpers asked for.
    Region,
    /// A helper's part in a region.
    Help,
    /// A mark of the host's. `object`: its name; word 1: its value.
    Mark,
    /// A span of the host's begins, and ends. `object`: its name.
    SpanBegin,
    SpanEnd,
    /// An engine's memory has grown or shrunk. `object`: its name; word 1: its bytes now.
    Memory,
    /// A kernel was made, since none like it was there. `object`: its name; `carrier`: `COMPILED` if by a device.
    Make,
    /// A device did a piece of work. On a track of its stream, with times in nanoseconds, not in ticks. `object`: its
    /// name; `other`: its bytes, if they are known; `ready`: how far the times may be off.
    Device,
    /// An operation of a communicator, from its start to its end. On a track, in nanoseconds. `object`: its name;
    /// `other`: its bytes.
    Comm,
}

const EVENTS: [TraceEvent; 25] = [
    TraceEvent::Extend,
    TraceEvent::Node,
    TraceEvent::Round,
    TraceEvent::Return,
    TraceEvent::RunBegin,
    TraceEvent::RunEnd,
    TraceEvent::Iteration,
    TraceEvent::Stay,
    TraceEvent::Ask,
    TraceEvent::Offer,
    TraceEvent::Take,
    TraceEvent::Cancel,
    TraceEvent::Failure,
    TraceEvent::Item,
    TraceEvent::Submit,
    TraceEvent::Park,
    TraceEvent::Region,
    TraceEvent::Help,
    TraceEvent::Mark,
    TraceEvent::SpanBegin,
    TraceEvent::SpanEnd,
    TraceEvent::Memory,
    TraceEvent::Make,
    TraceEvent::Device,
    TraceEvent::Comm,
];

impl TraceEvent {
    fn of(byte: u8) -> Option<TraceEvent> {
        EVENTS.get(usize::from(byte).checked_sub(1)?).copied()
    }
}

/// The carrier of a stay: a thread that the pool has sent.
pub const HELPER: u16 = 4;

/// The carrier of a kernel's making: a device compiled it.
pub const COMPILED: u16 = 1;

/// No object.
pub const NONE: u32 = u32::MAX;

/// The node or the run failed.
pub const FAILED: u8 = 1;
/// The run was cancelled, or its time was over.
pub const CANCELLED: u8 = 2;
/// The node has begun, and completes later. Of the end of a run: it ends with a device's work for it.
pub const LATER: u8 = 4;
/// `ready` and `other` are known.
pub const KNOWN: u8 = 8;
/// An `Extend` comes before.
pub const LONG: u8 = 16;
/// A device's work is the end of its run.
pub const LAST: u8 = 32;

/// A record, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    pub begin: u64,
    pub length: u64,
    pub ready: u64,
    pub object: u32,
    pub other: u32,
    pub frame: u32,
    pub event: TraceEvent,
    pub flags: u8,
    pub carrier: u16,
}

/// As a ring has it.
pub type Words = [u64; 4];

const fn halves(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

impl TraceRecord {
    pub fn new(event: TraceEvent, frame: u32, begin: u64) -> TraceRecord {
        TraceRecord { begin, length: 0, ready: 0, object: NONE, other: NONE, frame, event, flags: 0, carrier: 0 }
    }

    /// For the kinds whose word 1 is a number.
    pub fn with_number(self, number: u64) -> TraceRecord {
        TraceRecord { length: number & u64::from(u32::MAX), ready: number >> 32, ..self }
    }

    pub fn number(&self) -> u64 {
        self.length | self.ready << 32
    }

    #[inline]
    pub fn is_long(&self) -> bool {
        (self.length | self.ready) >> 32 != 0
    }

    #[inline]
    pub fn words(&self) -> Words {
        let kind = self.event as u32 | u32::from(self.flags) << 8 | u32::from(self.carrier) << 16;
        [
            self.begin,
            halves(self.length as u32, self.ready as u32),
            halves(self.object, self.other),
            halves(self.frame, kind),
        ]
    }

    /// The record in front of one that is too long.
    #[cold]
    pub fn extend(&self) -> Words {
        let upper = TraceRecord { length: self.length >> 32, ready: self.ready >> 32, ..*self };
        TraceRecord { event: TraceEvent::Extend, flags: 0, ..upper }.words()
    }

    pub fn of(words: Words) -> Option<TraceRecord> {
        let [begin, spans, objects, kind] = words;
        let bits = (kind >> 32) as u32;
        Some(TraceRecord {
            begin,
            length: spans & u64::from(u32::MAX),
            ready: spans >> 32,
            object: objects as u32,
            other: (objects >> 32) as u32,
            frame: kind as u32,
            event: TraceEvent::of(bits as u8)?,
            flags: (bits >> 8) as u8,
            carrier: (bits >> 16) as u16,
        })
    }

    /// All records of a ring. One whose upper halves were lost is left out; how many.
    pub fn all(ring: &[Words], into: &mut Vec<TraceRecord>) -> u64 {
        let (mut upper, mut left_out): (Option<TraceRecord>, u64) = (None, 0);
        for record in ring.iter().filter_map(|words| TraceRecord::of(*words)) {
            if record.event == TraceEvent::Extend {
                upper = Some(record);
                continue;
            }
            match (record.flags & LONG != 0, upper.take()) {
                (false, _) => into.push(record),
                (true, None) => left_out += 1,
                (true, Some(upper)) => into.push(TraceRecord {
                    length: record.length | upper.length << 32,
                    ready: record.ready | upper.ready << 32,
                    flags: record.flags & !LONG,
                    ..record
                }),
            }
        }
        left_out
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_what_was_put_into_its_words() {
        assert_eq!(size_of::<Words>(), 32);
        for (i, event) in EVENTS.into_iter().enumerate() {
            assert_eq!(event as usize, i + 1);
            let record = TraceRecord {
                begin: u64::MAX - 5,
                length: 7,
                ready: u64::from(u32::MAX),
                object: 3,
                other: NONE,
                frame: 77,
                event,
                flags: FAILED | KNOWN,
                carrier: 40_000,
            };
            assert_eq!(TraceRecord::of(record.words()), Some(record));
        }
        assert_eq!(TraceRecord::of([0; 4]), None);
        let mark = TraceRecord::new(TraceEvent::Mark, 0, 1).with_number(1 << 40 | 9);
        assert_eq!(TraceRecord::of(mark.words()).unwrap().number(), 1 << 40 | 9);
    }

    #[test]
    fn a_long_record_takes_two_and_is_left_out_if_the_first_is_lost() {
        let long = TraceRecord { length: 5 << 32 | 3, ready: 1 << 33, ..TraceRecord::new(TraceEvent::Node, 1, 10) };
        assert!(long.is_long());
        let ring = [long.extend(), TraceRecord { flags: LONG, ..long }.words()];
        let mut all = Vec::new();
        assert_eq!(TraceRecord::all(&ring, &mut all), 0);
        assert_eq!(all, [long]);
        all.clear();
        assert_eq!(TraceRecord::all(&ring[1..], &mut all), 1);
        assert!(all.is_empty());
    }
}
