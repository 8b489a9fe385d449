//! Perfetto's format (`perfetto.protos.Trace`), for ui.perfetto.dev and trace_processor.
//!
//! Each thread is a sequence of packets and a track. Times are differences on a clock of the sequence's own, names are
//! numbers after their first use: a bare span takes about 28 bytes. Runs lie on tracks of their own, on as many as
//! there are runs at once. An arrow leads to a node from the one that made it ready if that ran on another thread. What
//! the reader would drop without a word is not written: an end without a beginning, spans that overlap on one track,
//! state that was not cleared.
#![forbid(unsafe_code)]

use super::output::TraceOutput;
use super::proto::Message;
use super::record::{CANCELLED, FAILED, LATER, TraceEvent};
use super::timeline::{NO_NUMBER, Timeline, TraceSpan, room};
use crate::base::Result;
use std::fmt::Write as _;

// Of the messages in protos/perfetto/trace.
const PACKET: u32 = 1;
mod packet {
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED: u32 = 12;
    pub const FLAGS: u32 = 13;
    pub const DEFAULTS: u32 = 59;
    pub const TRACK: u32 = 60;
}
/// Values of `FLAGS`.
const CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
mod event {
    pub const CATEGORY: u32 = 3;
    pub const ANNOTATION: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME: u32 = 10;
    pub const TRACK: u32 = 11;
    pub const COUNTER: u32 = 30;
    pub const FLOW: u32 = 47;
    pub const LAST_FLOW: u32 = 48;
    pub const CORRELATION: u32 = 52;
}
/// Values of `TYPE`.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// CLOCK_MONOTONIC; and a clock of each sequence, whose times are differences.
const MONOTONIC: u64 = 3;
const OWN_CLOCK: u64 = 64;

/// Numbers of tracks: small ones take few bytes. Counters of memory come behind all others.
const PROCESS: u64 = 1;
const RUNS: u64 = 2;
const WORKING: u64 = 3;
const TRACKS: u64 = 4;
const READY: u64 = 5;
const FIRST_THREAD: u64 = 6;
const MEMORY: u64 = 1 << 32;
/// Sequences of packets.
const OTHERS: u64 = 1;
const FIRST_SEQUENCE: u64 = 2;

/// Nodes that are ready for a shorter time are not counted: a value takes a dozen bytes.
const READY_APART_NS: u64 = 1000;

/// Annotations, by their interned names.
const ANNOTATIONS: [&str; 8] =
    ["iteration", "waited_ns", "end", "number", "engine", "nodes", "bytes", "clock_error_ns"];
const ITERATION: u64 = 1;
const WAITED: u64 = 2;
const HOW: u64 = 3;
const NUMBER: u64 = 4;
const ENGINE: u64 = 5;
const NODES: u64 = 6;
const BYTES: u64 = 7;
const CLOCK_ERROR: u64 = 8;

/// Categories, by their interned names.
const CATEGORIES: [&str; 11] =
    ["node", "run", "stream", "region", "host", "end", "schedule", "device", "memory", "kernel", "comm"];

/// Writes packets of one sequence.
struct Sequence<'o, 'w> {
    output: &'o mut TraceOutput<'w>,
    number: u64,
    last_ns: u64,
    head: Message,
    packet: Message,
    event: Message,
}

impl<'o, 'w> Sequence<'o, 'w> {
    /// Begins it, for events that are usually on this track.
    fn begin(output: &'o mut TraceOutput<'w>, number: u64, track: u64, begin_ns: u64) -> Self {
        let (head, packet, event) = (Message::new(), Message::new(), Message::new());
        let mut sequence = Sequence { output, number, last_ns: begin_ns, head, packet, event };
        sequence.packet.varint(packet::FLAGS, CLEARED);
        sequence.packet.nested(packet::DEFAULTS, |defaults| {
            defaults.varint(58, OWN_CLOCK).nested(11, |event| {
                event.varint(event::TRACK, track);
            });
        });
        sequence.packet.nested(packet::CLOCK_SNAPSHOT, |snapshot| {
            snapshot.nested(1, |clock| {
                clock.varint(1, OWN_CLOCK).varint(2, 0).varint(3, 1);
            });
            snapshot.nested(1, |clock| {
                clock.varint(1, MONOTONIC).varint(2, begin_ns);
            });
            snapshot.varint(2, MONOTONIC);
        });
        sequence.packet.nested(packet::INTERNED, |interned| {
            for (number, name) in (1..).zip(CATEGORIES) {
                interned.nested(1, |entry| {
                    entry.varint(1, number).text(2, name);
                });
            }
            for (number, name) in (1..).zip(ANNOTATIONS) {
                interned.nested(3, |entry| {
                    entry.varint(1, number).text(2, name);
                });
            }
        });
        sequence.put();
        sequence
    }

    fn put(&mut self) {
        self.packet.varint(packet::SEQUENCE, self.number);
        self.head.clear();
        self.head.head(PACKET, self.packet.bytes().len());
        self.output.put(self.head.bytes());
        self.output.put(self.packet.bytes());
        self.packet.clear();
    }

    /// The event that was filled, at this time.
    fn put_event(&mut self, at_ns: u64) {
        self.packet.varint(packet::TIMESTAMP, at_ns.saturating_sub(self.last_ns));
        self.last_ns = self.last_ns.max(at_ns);
        self.packet.varint(packet::FLAGS, NEEDS_STATE);
        self.packet.message(packet::TRACK_EVENT, &self.event);
        self.event.clear();
        self.put();
    }

    fn track(&mut self, number: u64, fill: impl FnOnce(&mut Message)) {
        self.packet.nested(packet::TRACK, |track| {
            track.varint(1, number);
            fill(track);
        });
        self.put();
    }
}

fn category(event: TraceEvent) -> u64 {
    let name = Timeline::category(event);
    CATEGORIES.iter().position(|category| *category == name).map_or(1, |at| at as u64 + 1)
}

fn annotate(event: &mut Message, name: u64, value: u64) {
    event.pair(event::ANNOTATION, (1, name), (3, value));
}

fn annotate_text(event: &mut Message, name: u64, value: &str) {
    event.nested(event::ANNOTATION, |annotation| {
        annotation.varint(1, name).text(6, value);
    });
}

/// How a node or a run ended, if not as ever.
fn end(flags: u8) -> Option<&'static str> {
    match flags {
        flags if flags & FAILED != 0 => Some("failed"),
        flags if flags & CANCELLED != 0 => Some("cancelled"),
        flags if flags & LATER != 0 => Some("later"),
        _ => None,
    }
}

fn describe(event: &mut Message, timeline: &Timeline, span: &TraceSpan) {
    event.varint(event::CATEGORY, category(span.event));
    match span.event {
        TraceEvent::Node | TraceEvent::Round => {
            if span.number != NO_NUMBER {
                annotate(event, ITERATION, span.number);
            }
            if span.last_edge().is_some() {
                annotate(event, WAITED, span.ready_ns);
            }
            if let Some(engine) = timeline.engine(span.label) {
                annotate_text(event, ENGINE, engine);
            }
        }
        TraceEvent::Comm => annotate(event, BYTES, u64::from(span.other)),
        TraceEvent::Stay => annotate(event, NODES, u64::from(span.other)),
        TraceEvent::Device => {
            if span.number != NO_NUMBER {
                annotate(event, BYTES, span.number);
            }
            annotate(event, CLOCK_ERROR, span.ready_ns);
        }
        _ if span.number != NO_NUMBER => annotate(event, NUMBER, span.number),
        _ => {}
    }
    if let Some(end) = end(span.flags) {
        annotate_text(event, HOW, end);
    }
    if span.frame != 0 {
        event.varint(event::CORRELATION, u64::from(span.frame));
    }
}

/// Writes a timeline.
pub fn write(timeline: &Timeline, output: &mut TraceOutput<'_>) -> Result<()> {
    let mut name = String::new();
    let _ = write!(name, "{}", timeline.remark());
    let mut others = Sequence::begin(output, OTHERS, RUNS, timeline.begin_ns);
    let pid = u64::from(std::process::id());
    others.track(PROCESS, |track| {
        track.nested(3, |process| {
            process.varint(1, pid).text(6, &name);
        });
    });
    others.track(RUNS, |track| {
        track.text(2, "runs").varint(5, PROCESS);
    });
    if timeline.threads.iter().any(|thread| thread.is_track) {
        others.track(TRACKS, |track| {
            track.text(2, "devices and communicators").varint(5, PROCESS);
        });
    }
    for (number, thread) in (FIRST_THREAD..).zip(&timeline.threads) {
        others.track(number, |track| {
            if thread.is_track {
                track.text(2, &thread.name).varint(5, TRACKS);
            } else {
                track.varint(5, PROCESS).nested(4, |of| {
                    of.varint(1, pid).varint(2, thread.os_id).text(5, &thread.name);
                });
            }
        });
    }
    write_runs(timeline, &mut others)?;
    write_counts(timeline, output)?;
    write_memory(timeline, output)?;
    let arrows = timeline.arrows()?;
    let mut to: Vec<u64> = room(timeline.spans.len())?;
    to.resize(timeline.spans.len(), 0);
    let mut from: Vec<(u32, u64)> = room(arrows.len())?;
    for (number, (begin, end)) in (1..).zip(&arrows) {
        to[*end as usize] = number;
        from.push((*begin, number));
    }
    from.sort_unstable();
    let mut seen: Vec<u32> = room(timeline.labels.len())?;
    seen.resize(timeline.labels.len(), u32::MAX);
    for thread in 0..timeline.threads.len() {
        let track = FIRST_THREAD + thread as u64;
        let mut sequence = Sequence::begin(output, FIRST_SEQUENCE + thread as u64, track, timeline.begin_ns);
        let mut name = |sequence: &mut Sequence<'_, '_>, label: u32| {
            let number = u64::from(label) + 1;
            if seen[label as usize] != thread as u32 {
                seen[label as usize] = thread as u32;
                sequence.packet.nested(packet::INTERNED, |interned| {
                    interned.nested(2, |entry| {
                        entry.varint(1, number).text(2, &timeline.name(label));
                    });
                });
            }
            sequence.event.varint(event::NAME, number);
        };
        let (spans, instants) = timeline.of_thread(thread);
        let mut instants = timeline.instants[instants].iter().peekable();
        let mut open: Vec<u64> = Vec::new();
        let ends = spans.end;
        for at in spans.chain([ends]) {
            let next = (at < ends).then(|| &timeline.spans[at]);
            let until_ns = next.map_or(u64::MAX, |span| span.begin_ns);
            // Events before the next span: ends, and instants between them.
            loop {
                let closes = open.len() > next.map_or(0, |span| span.depth as usize);
                let end_ns = open.last().copied().filter(|_| closes).unwrap_or(until_ns);
                if let Some(instant) = instants.next_if(|instant| instant.begin_ns < end_ns) {
                    sequence.event.varint(event::TYPE, INSTANT);
                    name(&mut sequence, instant.label);
                    describe(&mut sequence.event, timeline, instant);
                    sequence.put_event(instant.begin_ns);
                } else if closes {
                    sequence.event.varint(event::TYPE, END);
                    sequence.put_event(end_ns);
                    open.pop();
                } else {
                    break;
                }
            }
            let Some(span) = next else { break };
            sequence.event.varint(event::TYPE, BEGIN);
            name(&mut sequence, span.label);
            describe(&mut sequence.event, timeline, span);
            if to[at] != 0 {
                sequence.event.fixed64(event::LAST_FLOW, to[at]);
            }
            let first = from.partition_point(|(begin, _)| (*begin as usize) < at);
            for (_, number) in from[first..].iter().take_while(|(begin, _)| *begin as usize == at) {
                sequence.event.fixed64(event::FLOW, *number);
            }
            sequence.put_event(span.begin_ns);
            open.push(span.end_ns);
        }
        if sequence.output.has_failed() {
            break;
        }
    }
    Ok(())
}

/// Runs, each from its beginning to its end, on the first track that has no other then.
fn write_runs(timeline: &Timeline, others: &mut Sequence<'_, '_>) -> Result<()> {
    let first_track = FIRST_THREAD + timeline.threads.len() as u64;
    let mut runs: Vec<(u64, u64, usize)> = room(timeline.runs.len())?;
    for (at, run) in timeline.runs.iter().enumerate().filter(|(_, run)| run.begin_ns > 0) {
        let end_ns = if run.end_ns > 0 { run.end_ns } else { timeline.end_ns };
        runs.push((run.begin_ns, end_ns.max(run.begin_ns), at));
    }
    runs.sort_unstable();
    // The end of what each track has.
    let mut tracks: Vec<u64> = Vec::new();
    // Time, whether it begins, its run, its track.
    let mut events: Vec<(u64, bool, usize, u64)> = room(2 * runs.len())?;
    for (begin_ns, end_ns, at) in runs {
        let free = tracks.iter().position(|end| *end < begin_ns).unwrap_or(tracks.len());
        if free == tracks.len() {
            tracks.push(0);
            others.track(first_track + free as u64, |track| {
                track.text(2, "run").varint(5, RUNS);
            });
        }
        tracks[free] = end_ns;
        // One that takes no time ends behind its beginning.
        events.push((begin_ns, true, at, first_track + free as u64));
        events.push((end_ns.max(begin_ns + 1), false, at, first_track + free as u64));
    }
    events.sort_unstable();
    let mut seen: Vec<u32> = Vec::new();
    for (at_ns, begins, at, track) in events {
        let run = &timeline.runs[at];
        if begins {
            let number = u64::from(run.program) + 1;
            if !seen.contains(&run.program) {
                seen.push(run.program);
                let name = timeline.table(run.program).map_or("a program", |table| table.shown_name());
                others.packet.nested(packet::INTERNED, |interned| {
                    interned.nested(2, |entry| {
                        entry.varint(1, number).text(2, name);
                    });
                });
            }
            others.event.varint(event::TYPE, BEGIN).varint(event::NAME, number);
            others.event.varint(event::CATEGORY, category(TraceEvent::Stay));
            others.event.varint(event::CORRELATION, u64::from(run.frame));
            if run.number != NO_NUMBER {
                annotate(&mut others.event, NUMBER, run.number);
            }
            if let Some(end) = end(run.flags) {
                annotate_text(&mut others.event, HOW, end);
            }
        } else {
            others.event.varint(event::TYPE, END);
        }
        others.event.varint(event::TRACK, track);
        others.put_event(at_ns);
    }
    Ok(())
}

/// How many threads are in runs, and how many nodes are ready that nobody has begun.
fn write_counts(timeline: &Timeline, output: &mut TraceOutput<'_>) -> Result<()> {
    let stays = timeline.spans.iter().filter(|span| span.event == TraceEvent::Stay);
    let stays = stays.map(|stay| (stay.begin_ns, stay.end_ns));
    write_count(timeline, output, 0, WORKING, "threads in runs", 0, stays)?;
    let waits = timeline.spans.iter().filter(|span| span.event == TraceEvent::Node && span.ready_ns > 0);
    let waits = waits.map(|span| (span.begin_ns - span.ready_ns.min(span.begin_ns), span.begin_ns));
    write_count(timeline, output, 1, READY, "ready nodes", READY_APART_NS, waits)
}

/// A counter of how many stretches of time there are at a moment; values that last less than `apart_ns` are left out.
fn write_count(
    timeline: &Timeline,
    output: &mut TraceOutput<'_>,
    number: u64,
    track: u64,
    name: &str,
    apart_ns: u64,
    stretches: impl Iterator<Item = (u64, u64)> + Clone,
) -> Result<()> {
    let mut steps: Vec<(u64, bool)> = room(2 * stretches.clone().count())?;
    for (begin_ns, end_ns) in stretches {
        steps.push((begin_ns, true));
        steps.push((end_ns, false));
    }
    if steps.is_empty() {
        return Ok(());
    }
    steps.sort_unstable();
    let number = FIRST_SEQUENCE + timeline.threads.len() as u64 + number;
    let mut counts = Sequence::begin(output, number, track, timeline.begin_ns);
    counts.track(track, |of| {
        of.text(2, name).varint(5, PROCESS).nested(8, |_| ());
    });
    let mut count: u64 = 0;
    for (at, &(at_ns, begins)) in steps.iter().enumerate() {
        count = if begins { count + 1 } else { count.saturating_sub(1) };
        if steps.get(at + 1).is_none_or(|next| next.0 - at_ns >= apart_ns) {
            counts.event.varint(event::TYPE, COUNTER).varint(event::COUNTER, count);
            counts.put_event(at_ns);
        }
    }
    Ok(())
}

/// The bytes of each engine's memory, as they changed.
fn write_memory(timeline: &Timeline, output: &mut TraceOutput<'_>) -> Result<()> {
    let changes = timeline.memory()?;
    if changes.is_empty() {
        return Ok(());
    }
    let number = FIRST_SEQUENCE + timeline.threads.len() as u64 + 2;
    let mut counts = Sequence::begin(output, number, MEMORY, timeline.begin_ns);
    let mut labels: Vec<u32> = room(changes.len())?;
    labels.extend(changes.iter().map(|change| change.label));
    labels.sort_unstable();
    labels.dedup();
    for &label in &labels {
        // A counter whose unit is bytes.
        counts.track(MEMORY + u64::from(label), |track| {
            track.text(2, &timeline.name(label)).varint(5, PROCESS).nested(8, |counter| {
                counter.varint(3, 3);
            });
        });
    }
    for change in &changes {
        counts.event.varint(event::TYPE, COUNTER).varint(event::TRACK, MEMORY + u64::from(change.label));
        counts.event.varint(event::COUNTER, change.number);
        counts.put_event(change.begin_ns);
    }
    Ok(())
}
