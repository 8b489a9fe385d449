//! What the threads of a run did with their time.
//!
//! The time of a run is divided among its threads without a rest: each nanosecond of each thread that was in the run
//! is one of seven things, and their sum is the number of threads times the time of the run (`Shares`). A thread that
//! is in the run and has no node in hand waits for the next one to become ready, and then takes some time to begin it.
//! Until then it is idle *beside ready nodes*, if a node of the run was ready somewhere; else it waits *for a device*,
//! if one was at work for the run, or is *starved*. A thread that is not in the run waits for a device, too, if
//! nothing was ready meanwhile; and a helper *wakes up* from when the run asked for it until it comes.
#![forbid(unsafe_code)]

use super::record::{HELPER, KNOWN, TraceEvent};
use super::timeline::{RunOfTrace, Timeline, TraceSpan, room};
use crate::base::Result;
use crate::base::sort::sort_by_key;

/// The time of threads that might have worked for a run, by what they did, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// In nodes.
    pub body: u64,
    /// Between a node's becoming ready, or the end of the one before, and its beginning.
    pub own: u64,
    /// In the run, with nothing ready.
    pub starved: u64,
    /// In the run or not, with nothing ready, while a device worked for the run.
    pub device: u64,
    /// In the run, with a node ready that nobody had begun.
    pub beside_ready: u64,
    /// Asked for, and not there yet.
    pub wake_up: u64,
    /// Not in the run for another reason: nobody has asked, the pool has not sent it, or it has gone.
    pub away: u64,
}

impl Shares {
    pub fn sum(&self) -> u64 {
        self.body + self.own + self.starved + self.device + self.beside_ready + self.wake_up + self.away
    }

    /// Each with its text. The first is the only one that is no waiting.
    pub fn parts(&self) -> [(&'static str, u64); 7] {
        [
            ("in nodes", self.body),
            ("weir's own, between nodes", self.own),
            ("starved: nothing was ready", self.starved),
            ("waiting for a device", self.device),
            ("idle beside ready nodes", self.beside_ready),
            ("wake-up of helpers", self.wake_up),
            ("not in the run", self.away),
        ]
    }

    pub fn add(&mut self, other: &Shares) {
        self.body += other.body;
        self.own += other.own;
        self.starved += other.starved;
        self.device += other.device;
        self.beside_ready += other.beside_ready;
        self.wake_up += other.wake_up;
        self.away += other.away;
    }
}

/// Spans of time that do not overlap, in order.
pub(super) struct Union(Vec<(u64, u64)>);

impl Union {
    pub fn of(mut spans: Vec<(u64, u64)>) -> Union {
        spans.sort_unstable();
        spans.dedup_by(|next, last| {
            let joins = next.0 <= last.1;
            if joins {
                last.1 = last.1.max(next.1);
            }
            joins
        });
        Union(spans)
    }

    /// Its parts between two times, in order.
    pub fn within(&self, begin: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let first = self.0.partition_point(|span| span.1 <= begin);
        let inside = self.0[first..].iter().take_while(move |span| span.0 < end);
        inside.map(move |span| (span.0.max(begin), span.1.min(end)))
    }

    /// How much of it lies between two times.
    fn between(&self, begin: u64, end: u64) -> u64 {
        self.within(begin, end).map(|(from, to)| to - from).sum()
    }
}

/// When devices were at work for a run.
pub(super) fn on_devices(timeline: &Timeline, frame: u32) -> Result<Union> {
    let of_run = || timeline.spans.iter().filter(|span| span.event == TraceEvent::Device && span.frame == frame);
    let mut spans = room(of_run().count())?;
    spans.extend(of_run().map(|span| (span.begin_ns, span.end_ns)));
    Ok(Union::of(spans))
}

/// When helpers were asked for, of those that have come: by their stays' beginnings.
fn asked(asks: &[&TraceSpan], spans: &[&TraceSpan]) -> Result<Vec<(u64, u64)>> {
    let mut comings: Vec<(u64, u64)> = room(spans.len())?;
    let is_helper = |span: &&&TraceSpan| span.event == TraceEvent::Stay && span.carrier == HELPER;
    comings.extend(spans.iter().filter(is_helper).map(|stay| (stay.begin_ns, stay.begin_ns)));
    comings.sort_unstable();
    let mut asks = asks.iter().flat_map(|ask| (0..ask.other).map(|_| ask.begin_ns)).peekable();
    for (came, asked) in &mut comings {
        // The one that was asked for first comes first.
        if let Some(at) = asks.next_if(|at| at <= came) {
            *asked = at;
        }
    }
    Ok(comings)
}

/// A thread's time in a run since its node before, up to the end of the next one.
pub(super) struct Stretch<'a> {
    pub thread: u32,
    /// `None` if the thread left the run without another one.
    pub node: Option<&'a TraceSpan>,
    pub shares: Shares,
}

/// Tells what the threads of a run did, and gives how many they were. `spans`: of this run, by thread and beginning,
/// those of devices last; `asks`: by their time.
fn tell_shares(
    run: &RunOfTrace,
    spans: &[&TraceSpan],
    asks: &[&TraceSpan],
    tell: &mut dyn FnMut(&Stretch<'_>) -> Result<()>,
) -> Result<u64> {
    let (spans, on_devices) = spans.split_at(spans.partition_point(|span| span.event != TraceEvent::Device));
    let mut devices = room(on_devices.len())?;
    devices.extend(on_devices.iter().map(|span| (span.begin_ns, span.end_ns)));
    let devices = Union::of(devices);
    let comings = asked(asks, spans)?;
    let mut ready = room(spans.len())?;
    let waited = spans.iter().filter(|span| span.event == TraceEvent::Node && span.flags & KNOWN != 0);
    ready.extend(waited.map(|span| (span.begin_ns - span.ready_ns.min(span.begin_ns), span.begin_ns)));
    let ready = Union::of(ready);
    // Of a stretch without a node in hand: what a device did while no node was ready.
    let on_device = |begin: u64, end: u64| -> u64 {
        devices.within(begin, end).map(|(from, to)| to - from - ready.between(from, to)).sum()
    };
    let idle = |begin: u64, end: u64| {
        let (beside_ready, device) = (ready.between(begin, end), on_device(begin, end));
        Shares { beside_ready, device, starved: end - begin - beside_ready - device, ..Shares::default() }
    };
    // Out of the run from `left` until it was asked for, and then until it has come.
    let out = |left: u64, asked: u64, came: u64| {
        let device = on_device(left, asked);
        Shares { device, away: asked - left - device, wake_up: came - asked, ..Shares::default() }
    };
    let mut threads = 0;
    for of_thread in spans.chunk_by(|a, b| a.thread == b.thread) {
        threads += 1;
        let thread = of_thread[0].thread;
        let mut stays: Vec<(u64, u64)> = room(of_thread.len())?;
        let within = |span: &TraceSpan| (span.begin_ns.max(run.begin_ns), span.end_ns.min(run.end_ns));
        let is_of_run = |span: &&&TraceSpan| within(span).0 < within(span).1;
        stays.extend(
            of_thread.iter().filter(|s| s.event == TraceEvent::Stay).filter(is_of_run).map(|span| within(span)),
        );
        let stays = Union::of(stays);
        let mut nodes =
            of_thread.iter().filter(|span| matches!(span.event, TraceEvent::Node | TraceEvent::Round)).peekable();
        let mut left = run.begin_ns;
        for &(begin, end) in &stays.0 {
            let asked = comings.binary_search_by_key(&begin, |(came, _)| *came).map_or(begin, |at| comings[at].1);
            let mut since = out(left, asked.clamp(left, begin), begin);
            left = end;
            let mut at = begin;
            while let Some(node) = nodes.next_if(|node| node.begin_ns < end) {
                let (from, to) = (node.begin_ns.max(at), node.end_ns.clamp(at, end));
                // Since when nothing but this thread kept it from beginning.
                let could_begin = match node.flags & KNOWN {
                    0 => at,
                    _ => (node.begin_ns - node.ready_ns.min(node.begin_ns)).clamp(at, from),
                };
                since.add(&Shares { own: from - could_begin, body: to - from, ..idle(at, could_begin) });
                tell(&Stretch { thread, node: Some(node), shares: std::mem::take(&mut since) })?;
                at = to;
            }
            since.add(&idle(at, end));
            tell(&Stretch { thread, node: None, shares: since })?;
        }
        tell(&Stretch { thread, node: None, shares: out(left, run.end_ns, run.end_ns) })?;
    }
    Ok(threads)
}

/// For each run that has begun and ended in the trace, what its threads did, and how many they were.
pub fn shares(timeline: &Timeline) -> Result<Vec<(RunOfTrace, Shares, u64)>> {
    shares_by_node(timeline, |_, _| Ok(()))
}

/// The same. `tell` is given all of it piece by piece, with the run.
pub(super) fn shares_by_node(
    timeline: &Timeline,
    mut tell: impl FnMut(&RunOfTrace, &Stretch<'_>) -> Result<()>,
) -> Result<Vec<(RunOfTrace, Shares, u64)>> {
    let mut spans: Vec<&TraceSpan> = room(timeline.spans.len())?;
    let is_of_run = |span: &&TraceSpan| {
        matches!(span.event, TraceEvent::Stay | TraceEvent::Node | TraceEvent::Round | TraceEvent::Device)
    };
    spans.extend(timeline.spans.iter().filter(is_of_run));
    sort_by_key(&mut spans, |span| {
        (span.frame, span.event == TraceEvent::Device, span.thread, span.begin_ns, span.depth)
    });
    let mut asks: Vec<&TraceSpan> = room(timeline.instants.len())?;
    asks.extend(timeline.instants.iter().filter(|instant| instant.event == TraceEvent::Ask));
    sort_by_key(&mut asks, |ask| (ask.frame, ask.begin_ns));
    let mut all = room(timeline.runs.len())?;
    for of_run in spans.chunk_by(|a, b| a.frame == b.frame) {
        let Some(run) = timeline.run(of_run[0].frame).filter(|run| run.begin_ns > 0 && run.end_ns > 0) else {
            continue;
        };
        let asks = &asks[asks.partition_point(|ask| ask.frame < run.frame)..];
        let asks = &asks[..asks.partition_point(|ask| ask.frame == run.frame)];
        let mut shares = Shares::default();
        let threads = tell_shares(run, of_run, asks, &mut |stretch| {
            shares.add(&stretch.shares);
            tell(run, stretch)
        })?;
        all.push((*run, shares, threads));
    }
    Ok(all)
}
