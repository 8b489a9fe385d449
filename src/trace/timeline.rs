//! The contents of a trace's rings, as spans with names on one timeline.
#![forbid(unsafe_code)]

use super::clock::{self, ClockScale};
use super::names;
use super::record::{COMPILED, FAILED, KNOWN, LAST, LATER, NONE, TraceEvent, TraceRecord, Words};
use super::recorder::Recorder;
use super::sort::sort_nearly;
use super::table::{NodeOfTable, Table};
use super::track::table_of;
use crate::base::{Error, Result};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::mem::take;
use std::sync::Arc;

/// An empty vector with room for `len` elements.
pub(super) fn room<T>(len: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(len).map_err(|_| Error::exhausted("a saved trace", len.saturating_mul(size_of::<T>())))?;
    Ok(all)
}

/// A thread that has written, or a track of what no thread does.
pub struct TracedThread {
    /// The system's number of the thread. For a track a number that no thread has.
    pub os_id: u64,
    pub is_track: bool,
    pub name: String,
    /// Records that are not here.
    pub lost: u64,
}

/// A run that has begun or ended, or has had a thread in it.
#[derive(Clone, Copy, Debug)]
pub struct RunOfTrace {
    pub frame: u32,
    /// The program's number.
    pub program: u32,
    /// How many runs this state of the program had had.
    pub number: u64,
    /// The frame of the run around it, or 0.
    pub around: u32,
    /// 0 if not known.
    pub begin_ns: u64,
    pub end_ns: u64,
    /// FAILED or CANCELLED.
    pub flags: u8,
}

/// Something that took time, or an instant (`end_ns` is `begin_ns`).
#[derive(Clone, Copy, Debug)]
pub struct TraceSpan {
    pub event: TraceEvent,
    pub flags: u8,
    pub carrier: u16,
    pub thread: u32,
    /// Its place among the thread's records.
    pub place: u32,
    pub begin_ns: u64,
    pub end_ns: u64,
    pub object: u32,
    pub other: u32,
    pub frame: u32,
    /// Of a node: how long it was ready before it began, if that is known. Of a device's work: how far its times may be
    /// off.
    pub ready_ns: u64,
    /// Of a node in a loop, of a mark, of an item: its number; or NO_NUMBER.
    pub number: u64,
    /// Among `Timeline::labels`.
    pub label: u32,
    /// How many spans of the thread are around it.
    pub depth: u32,
}

pub const NO_NUMBER: u64 = u64::MAX;

/// Numbers from here on are of tracks, not of threads.
const FIRST_TRACK: u64 = 1 << 32;

impl TraceSpan {
    pub fn length_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }

    /// The node that made this one ready, if it is known.
    pub fn last_edge(&self) -> Option<u32> {
        (self.event == TraceEvent::Node && self.flags & KNOWN != 0 && self.other != NONE).then_some(self.other)
    }
}

/// A thing with one name: a kind, an object, and the table that has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    pub event: TraceEvent,
    pub table: u32,
    pub object: u32,
}

/// Labels that are found at once among those that came before.
const KNOWN_LABELS: usize = 1 << 16;

impl Label {
    /// Its place among the known ones: neighbouring objects have different ones.
    fn slot(&self) -> usize {
        let of_table = self.table.wrapping_mul(0x9E37_79B1).wrapping_add((self.event as u32) << 12);
        (of_table ^ self.object) as usize % KNOWN_LABELS
    }
}

pub struct Timeline {
    pub threads: Vec<TracedThread>,
    /// By thread, and by their beginning; of two that begin together the outer one first.
    pub spans: Vec<TraceSpan>,
    /// By thread and time.
    pub instants: Vec<TraceSpan>,
    /// By frame.
    pub runs: Vec<RunOfTrace>,
    pub labels: Vec<Label>,
    tables: Vec<Arc<Table>>,
    names: Vec<Arc<str>>,
    pub begin_ns: u64,
    pub end_ns: u64,
    pub clock: &'static str,
    pub error_ns: u64,
    /// Records of threads that found no ring.
    pub lost_without_ring: u64,
    /// Spans that did not lie in those around them, and were cut.
    pub cut: u64,
}

/// The beginning of an iteration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct IterationMark {
    frame: u32,
    counted_at: u32,
    begin: u64,
    thread: u32,
    place: u32,
    number: u64,
}

/// The records of one thread.
struct Log {
    records: Vec<TraceRecord>,
}

impl Timeline {
    /// Copies what is there now. The trace goes on.
    pub fn of(recorder: &Recorder) -> Result<Timeline> {
        recorder.collect(true);
        let scale = ClockScale::new(recorder.begin, recorder.end_anchor());
        let tables = recorder.tables.lock().clone();
        let stop = recorder.end().unwrap_or(u64::MAX);
        let stop_ns = if stop == u64::MAX { stop } else { scale.at_ns(stop) };
        let mut words: Vec<Words> = Vec::new();
        let (mut threads, mut logs) = (Vec::new(), Vec::new());
        for ring in recorder.rings() {
            // Its thread has the ring and has not said so.
            let Some((owner, name)) = ring.owner() else { continue };
            let mut lost = ring.read(&mut words)?;
            let mut records = room(words.len())?;
            lost += TraceRecord::all(&words, &mut records);
            let stop = if table_of(owner).is_some() { stop_ns } else { stop };
            records.retain(|record| record.begin <= stop);
            logs.push(Log { records });
            threads.push(match table_of(owner) {
                None => TracedThread { os_id: owner, is_track: false, name, lost },
                Some(number) => {
                    let table = tables.iter().find(|table| table.number == number);
                    let name = table.map_or_else(|| "a track".to_owned(), |table| table.name.clone());
                    TracedThread { os_id: FIRST_TRACK + u64::from(number), is_track: true, name, lost }
                }
            });
        }
        drop(words);
        let mut timeline = Timeline {
            threads,
            spans: Vec::new(),
            instants: Vec::new(),
            runs: Vec::new(),
            labels: Vec::new(),
            tables,
            names: names::all(),
            begin_ns: recorder.begin.ns,
            end_ns: scale.at_ns(recorder.end_anchor().stamp.min(stop)),
            clock: clock::name(),
            error_ns: scale.error_ns(),
            lost_without_ring: recorder.lost_without_ring(),
            cut: 0,
        };
        timeline.find_runs(&logs, &scale)?;
        let turns = turns(&logs)?;
        timeline.find_spans(&logs, &scale, &turns)?;
        timeline.end_runs_of_devices();
        timeline.nest();
        timeline.find_labels()?;
        Ok(timeline)
    }

    fn find_runs(&mut self, logs: &[Log], scale: &ClockScale) -> Result<()> {
        let is_of_run = |event| matches!(event, TraceEvent::RunBegin | TraceEvent::RunEnd | TraceEvent::Stay);
        let all = || logs.iter().flat_map(|log| &log.records).filter(|record| is_of_run(record.event));
        let mut runs: Vec<RunOfTrace> = room(all().count())?;
        for record in all() {
            let at_ns = scale.at_ns(record.begin);
            let is_begin = record.event == TraceEvent::RunBegin;
            let is_end = record.event == TraceEvent::RunEnd;
            runs.push(RunOfTrace {
                frame: record.frame,
                program: record.object,
                number: if is_begin { record.number() } else { NO_NUMBER },
                around: if is_begin { record.other } else { 0 },
                begin_ns: if is_begin { at_ns } else { 0 },
                end_ns: if is_end { at_ns } else { 0 },
                flags: if is_end { record.flags } else { 0 },
            });
        }
        runs.sort_by_key(|run| run.frame);
        runs.dedup_by(|next, run| {
            let same = next.frame == run.frame;
            if same {
                run.number = run.number.min(next.number);
                run.around = run.around.max(next.around);
                run.begin_ns = run.begin_ns.max(next.begin_ns);
                run.end_ns = run.end_ns.max(next.end_ns);
                run.flags |= next.flags;
            }
            same
        });
        self.runs = runs;
        Ok(())
    }

    /// Runs that a device's work ends, which it does behind what their threads did for them. The end of one whose work
    /// was not over is not known.
    fn end_runs_of_devices(&mut self) {
        for span in self.spans.iter().filter(|span| span.flags & LAST != 0) {
            if let Ok(at) = self.runs.binary_search_by_key(&span.frame, |run| run.frame) {
                let run = &mut self.runs[at];
                run.end_ns = run.end_ns.max(span.end_ns);
                run.flags = run.flags & !LATER | span.flags & FAILED;
            }
        }
        for run in self.runs.iter_mut().filter(|run| run.flags & LATER != 0) {
            (run.end_ns, run.flags) = (0, run.flags & !LATER);
        }
    }

    pub fn run(&self, frame: u32) -> Option<&RunOfTrace> {
        self.runs.binary_search_by_key(&frame, |run| run.frame).ok().map(|at| &self.runs[at])
    }

    pub fn table(&self, number: u32) -> Option<&Table> {
        self.tables.iter().find(|table| table.number == number).map(|table| &**table)
    }

    fn node(&self, frame: u32, node: u32) -> Option<NodeOfTable<'_>> {
        self.table(self.run(frame)?.program)?.nodes.get(node)
    }

    fn find_spans(&mut self, logs: &[Log], scale: &ClockScale, turns: &[IterationMark]) -> Result<()> {
        let total = logs.iter().map(|log| log.records.len()).sum();
        let (mut spans, mut instants) = (room(total)?, room(total)?);
        for (thread, log) in logs.iter().enumerate() {
            // The host's spans that have begun, by their places in `spans`.
            let mut open: Vec<usize> = Vec::new();
            let mut last_ns = self.begin_ns;
            for (place, record) in log.records.iter().enumerate() {
                let is_span = takes_time(record.event);
                let at_ns = |stamp| if is_in_ns(record.event) { stamp } else { scale.at_ns(stamp) };
                let begin_ns = at_ns(record.begin);
                let end_ns = if is_span { at_ns(record.begin.wrapping_add(record.length)) } else { begin_ns };
                last_ns = last_ns.max(end_ns);
                let mut span = TraceSpan {
                    event: record.event,
                    flags: record.flags,
                    carrier: record.carrier,
                    thread: thread as u32,
                    place: place as u32,
                    begin_ns,
                    end_ns,
                    object: record.object,
                    other: record.other,
                    frame: record.frame,
                    // The difference of two times, as all lengths are: then ends and beginnings meet to a nanosecond.
                    ready_ns: match is_span && record.ready > 0 {
                        true if record.event == TraceEvent::Device => record.ready,
                        true => begin_ns.saturating_sub(scale.at_ns(record.begin.saturating_sub(record.ready))),
                        false => 0,
                    },
                    number: NO_NUMBER,
                    label: 0,
                    depth: 0,
                };
                match record.event {
                    TraceEvent::Extend | TraceEvent::RunBegin | TraceEvent::RunEnd | TraceEvent::Iteration => continue,
                    TraceEvent::SpanBegin => open.push(spans.len()),
                    TraceEvent::SpanEnd => {
                        if let Some(begun) = open.pop() {
                            let begun: &mut TraceSpan = &mut spans[begun];
                            begun.end_ns = end_ns;
                        }
                        continue;
                    }
                    TraceEvent::Node | TraceEvent::Round if !turns.is_empty() => {
                        let counted_at = self.node(record.frame, record.object).and_then(|node| node.counted_at);
                        if let Some(counted_at) = counted_at {
                            span.number = turn_of(turns, counted_at, thread as u32, place as u32, record);
                        }
                    }
                    TraceEvent::Mark | TraceEvent::Memory => span.number = record.number(),
                    TraceEvent::Device | TraceEvent::Comm if record.other != NONE => {
                        span.number = u64::from(record.other)
                    }
                    TraceEvent::Item | TraceEvent::Submit => span.number = u64::from(record.other),
                    _ => {}
                }
                if is_span || record.event == TraceEvent::SpanBegin { spans.push(span) } else { instants.push(span) }
            }
            for begun in open {
                spans[begun].end_ns = last_ns;
            }
        }
        // A thread records a span when it ends, behind those that lie in it.
        sort_nearly(&mut spans, |span| (span.thread, span.begin_ns, Reverse(span.end_ns), Reverse(span.place)));
        sort_nearly(&mut instants, |span| (span.thread, span.begin_ns, span.place));
        (self.spans, self.instants) = (spans, instants);
        Ok(())
    }

    /// Finds how deep each span is. Those that end behind the one around them are cut.
    fn nest(&mut self) {
        let mut around: Vec<(u32, u64, TraceEvent)> = Vec::new();
        for span in &mut self.spans {
            around.retain(|(thread, ..)| *thread == span.thread);
            // One that takes no time lies in what ends then, but a node in no other node.
            let is_behind = |&(_, end_ns, event): &(u32, u64, TraceEvent)| {
                let is_over = end_ns < span.end_ns || (event, span.event) == (TraceEvent::Node, TraceEvent::Node);
                end_ns <= span.begin_ns && is_over
            };
            while around.last().is_some_and(is_behind) {
                around.pop();
            }
            if let Some((_, end_ns, _)) = around.last()
                && span.end_ns > *end_ns
            {
                span.end_ns = *end_ns;
                self.cut += 1;
            }
            span.depth = around.len() as u32;
            around.push((span.thread, span.end_ns, span.event));
        }
    }

    /// The label of a span in a run of this program, if it is known.
    fn label_of(span: &TraceSpan, program: Option<u32>) -> Label {
        let of = |table, object| Label { event: span.event, table, object };
        match span.event {
            TraceEvent::Node | TraceEvent::Round | TraceEvent::Return | TraceEvent::Failure => {
                of(program.unwrap_or(NONE), span.object)
            }
            TraceEvent::Stay | TraceEvent::Submit | TraceEvent::Park => of(span.object, NONE),
            TraceEvent::Item => of(span.object, u32::from(span.carrier)),
            TraceEvent::SpanBegin | TraceEvent::Mark | TraceEvent::Device | TraceEvent::Comm | TraceEvent::Memory => {
                of(NONE, span.object)
            }
            TraceEvent::Make => of(u32::from(span.carrier), span.object),
            _ => of(NONE, NONE),
        }
    }

    fn find_labels(&mut self) -> Result<()> {
        let (mut spans, mut instants) = (take(&mut self.spans), take(&mut self.instants));
        // Labels as they come, most of them once: a slot knows the last one that fell on it.
        let mut known: Vec<Option<(Label, u32)>> = room(KNOWN_LABELS)?;
        known.resize(KNOWN_LABELS, None);
        let mut labels: Vec<(Label, u32)> = Vec::new();
        let mut run: Option<&RunOfTrace> = None;
        for span in spans.iter_mut().chain(&mut instants) {
            if run.is_none_or(|run| run.frame != span.frame) {
                run = self.run(span.frame);
            }
            let label = Self::label_of(span, run.map(|run| run.program));
            let slot = &mut known[label.slot()];
            span.label = match *slot {
                Some((of_slot, place)) if of_slot == label => place,
                _ => {
                    let place = labels.len() as u32;
                    labels.try_reserve(1).map_err(|_| Error::exhausted("a saved trace", size_of_val(&labels[..])))?;
                    labels.push((label, place));
                    slot.insert((label, place)).1
                }
            };
        }
        labels.sort_unstable();
        let (mut sorted, mut numbers): (Vec<Label>, Vec<u32>) = (room(labels.len())?, room(labels.len())?);
        numbers.resize(labels.len(), 0);
        for (label, place) in labels {
            if sorted.last() != Some(&label) {
                sorted.push(label);
            }
            numbers[place as usize] = sorted.len() as u32 - 1;
        }
        for span in spans.iter_mut().chain(&mut instants) {
            span.label = numbers[span.label as usize];
        }
        (self.spans, self.instants, self.labels) = (spans, instants, sorted);
        Ok(())
    }

    /// The name of what a label is of.
    pub fn name(&self, label: u32) -> Cow<'_, str> {
        let Label { event, table: number, object } = self.labels[label as usize];
        let table = || self.table(number);
        let text = || match self.names.get(object as usize) {
            Some(name) => Cow::from(&**name),
            None => Cow::from(format!("name {object}")),
        };
        let named = |what: &str| match table() {
            Some(table) => Cow::from(format!("{what} {}", table.name)),
            None => Cow::from(what.to_owned()),
        };
        match event {
            TraceEvent::Node | TraceEvent::Round | TraceEvent::Return => {
                match table().and_then(|table| table.nodes.get(object)) {
                    Some(node) => Cow::from(node.name),
                    None => Cow::from(format!("node {object}")),
                }
            }
            TraceEvent::Failure => match table().and_then(|table| table.nodes.get(object)) {
                Some(node) => Cow::from(format!("failure of {}", node.name)),
                None => Cow::from("failure"),
            },
            TraceEvent::Stay => table().map_or(Cow::from("a program"), |table| Cow::from(table.shown_name())),
            TraceEvent::Item => named(ITEMS.get(object as usize).copied().unwrap_or("item")),
            TraceEvent::Submit => named("submit to"),
            TraceEvent::Park => named("park"),
            TraceEvent::SpanBegin | TraceEvent::Mark | TraceEvent::Device | TraceEvent::Comm => text(),
            TraceEvent::Memory => Cow::from(format!("memory of {}", text())),
            TraceEvent::Make if number == u32::from(COMPILED) => Cow::from(format!("compile {}", text())),
            TraceEvent::Make => Cow::from(format!("make {}", text())),
            TraceEvent::Region => Cow::from("region"),
            TraceEvent::Help => Cow::from("help in a region"),
            TraceEvent::Ask => Cow::from("asks for a helper"),
            TraceEvent::Offer => Cow::from("offers nodes"),
            TraceEvent::Take => Cow::from("takes nodes"),
            TraceEvent::Cancel => Cow::from("cancel"),
            TraceEvent::Extend
            | TraceEvent::RunBegin
            | TraceEvent::RunEnd
            | TraceEvent::Iteration
            | TraceEvent::SpanEnd => Cow::from("?"),
        }
    }

    /// The engine whose work a node is, if it is not its program's.
    pub fn engine(&self, label: u32) -> Option<&str> {
        let Label { event, table, object } = self.labels[label as usize];
        if event != TraceEvent::Node { None } else { self.table(table)?.nodes.get(object)?.engine }
    }

    /// The kind of a span, in one word.
    pub fn category(event: TraceEvent) -> &'static str {
        match event {
            TraceEvent::Node | TraceEvent::Round | TraceEvent::Return => "node",
            TraceEvent::Stay => "run",
            TraceEvent::Item | TraceEvent::Submit | TraceEvent::Park => "stream",
            TraceEvent::Region | TraceEvent::Help => "region",
            TraceEvent::SpanBegin | TraceEvent::Mark => "host",
            TraceEvent::Device => "device",
            TraceEvent::Comm => "comm",
            TraceEvent::Memory => "memory",
            TraceEvent::Make => "kernel",
            TraceEvent::Failure | TraceEvent::Cancel => "end",
            _ => "schedule",
        }
    }

    /// The records that are lost, of all threads.
    pub fn lost(&self) -> u64 {
        self.threads.iter().map(|thread| thread.lost).sum::<u64>() + self.lost_without_ring
    }

    /// One line about the trace for those who read a file.
    pub fn remark(&self) -> String {
        let tracks = self.threads.iter().filter(|thread| thread.is_track).count();
        let mut more = String::new();
        if tracks > 0 {
            more = format!(" and {tracks} tracks of devices and communicators");
        }
        let off = self.spans.iter().filter(|span| span.event == TraceEvent::Device).map(|span| span.ready_ns).max();
        let off = off.map_or_else(String::new, |off| format!(", times of devices to {off} ns"));
        format!(
            "weir trace: {} spans of {} threads{more}, {} records lost, clock {} to {} ns{off}",
            self.spans.len(),
            self.threads.len() - tracks,
            self.lost(),
            self.clock,
            self.error_ns
        )
    }

    /// For each span that an edge from another thread has made ready: the span where that edge begins.
    pub fn arrows(&self) -> Result<Vec<(u32, u32)>> {
        if self.threads.len() < 2 {
            return Ok(Vec::new());
        }
        let mut by_node: Vec<(u32, u32, u64, u32)> = room(self.spans.len())?;
        for (at, span) in self.spans.iter().enumerate() {
            if span.event == TraceEvent::Node && span.flags & FAILED == 0 {
                by_node.push((span.frame, span.object, span.end_ns, at as u32));
            }
        }
        by_node.sort_unstable();
        let mut arrows = room(self.spans.len())?;
        for (at, span) in self.spans.iter().enumerate() {
            let Some(from) = span.last_edge() else { continue };
            let behind = by_node.partition_point(|&(frame, node, end_ns, _)| {
                (frame, node, end_ns) <= (span.frame, from, span.begin_ns)
            });
            let before = behind.checked_sub(1).map(|before| by_node[before]);
            if let Some((frame, node, _, begin)) = before
                && (frame, node) == (span.frame, from)
                && self.spans[begin as usize].thread != span.thread
            {
                arrows.push((begin, at as u32));
            }
        }
        Ok(arrows)
    }

    /// The changes of engines' memory, in the order of time.
    pub fn memory(&self) -> Result<Vec<TraceSpan>> {
        let all = || self.instants.iter().filter(|instant| instant.event == TraceEvent::Memory);
        let mut changes = room(all().count())?;
        changes.extend(all().copied());
        changes.sort_unstable_by_key(|change| (change.begin_ns, change.thread, change.place));
        Ok(changes)
    }

    /// The spans of one thread.
    pub fn of_thread(&self, thread: usize) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let of = |list: &[TraceSpan]| {
            let first = list.partition_point(|span| (span.thread as usize) < thread);
            first..list.partition_point(|span| span.thread as usize <= thread)
        };
        (of(&self.spans), of(&self.instants))
    }
}

/// The kind of an item of a stream, by the carrier of its record.
const ITEMS: [&str; 4] = ["work on", "function on", "event of", "wait of"];

/// Whether its times are nanoseconds of the system's clock, not stamps.
fn is_in_ns(event: TraceEvent) -> bool {
    matches!(event, TraceEvent::Device | TraceEvent::Comm)
}

fn takes_time(event: TraceEvent) -> bool {
    use TraceEvent::{Comm, Device, Help, Item, Make, Node, Region, Round, Stay};
    matches!(event, Node | Round | Stay | Item | Region | Help | Make | Device | Comm)
}

fn turns(logs: &[Log]) -> Result<Vec<IterationMark>> {
    let all = logs.iter().enumerate().flat_map(|(thread, log)| {
        let records = log.records.iter().enumerate();
        records.filter(|(_, record)| record.event == TraceEvent::Iteration).map(move |(place, record)| IterationMark {
            frame: record.frame,
            counted_at: record.object,
            begin: record.begin,
            thread: thread as u32,
            place: place as u32,
            number: record.number(),
        })
    });
    let mut turns = room(all.clone().count())?;
    turns.extend(all);
    turns.sort_unstable();
    Ok(turns)
}

/// The iteration that a node is of: the last that had begun there.
fn turn_of(turns: &[IterationMark], counted_at: u32, thread: u32, place: u32, record: &TraceRecord) -> u64 {
    let key = (record.frame, counted_at);
    let mut at =
        turns.partition_point(|turn| (turn.frame, turn.counted_at, turn.begin) <= (key.0, key.1, record.begin));
    while let Some(before) = at.checked_sub(1) {
        let turn = &turns[before];
        if (turn.frame, turn.counted_at) != key {
            break;
        }
        // Stamps of one moment: the thread's own records have an order.
        if turn.begin < record.begin || turn.thread != thread || turn.place < place {
            return turn.number;
        }
        at = before;
    }
    NO_NUMBER
}
