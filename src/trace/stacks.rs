//! Spans that lie in one another, summed up by what they lie in; and the two formats of such sums.
#![forbid(unsafe_code)]

use super::output::TraceOutput;
use super::proto::Message;
use super::record::{NONE, TraceEvent};
use super::shares::{Shares, Stretch, shares_by_node};
use super::timeline::{Label, Timeline, room};
use crate::base::Result;
use crate::base::index::{HashIndex, mix};
use std::fmt::Write as _;

const WHAT: &str = "a saved trace";

fn hash(around: u32, label: u32) -> u64 {
    mix(u64::from(around), u64::from(label))
}

/// All spans of one name that lie in spans of the same names.
#[derive(Clone, Copy, Debug)]
struct StackPlace {
    label: u32,
    /// Its place; NONE: at the bottom of a thread.
    around: u32,
    thread: u32,
    count: u64,
    /// Without what lies inside.
    own_ns: u64,
    waited_ns: u64,
    /// The thread's time between the node before each of these and its end. At a program: that behind its last node.
    shares: Shares,
}

struct StackPlaces {
    all: Vec<StackPlace>,
    /// The bottom of each thread.
    bottoms: Vec<u32>,
    /// By what is around, and the label.
    index: HashIndex,
}

impl StackPlaces {
    fn of(timeline: &Timeline) -> Result<StackPlaces> {
        let bottoms = room(timeline.threads.len())?;
        let mut places = StackPlaces { all: Vec::new(), bottoms, index: HashIndex::default() };
        for thread in 0..timeline.threads.len() {
            let bottom = places.add(NONE, NONE, thread as u32)?;
            places.bottoms.push(bottom);
            // The places of the spans around.
            let mut around: Vec<u32> = Vec::new();
            for span in &timeline.spans[timeline.of_thread(thread).0] {
                around.truncate(span.depth as usize);
                let outer = around.last().copied().unwrap_or(bottom);
                let at = places.inside(outer, span.label, thread as u32)?;
                let place = &mut places.all[at as usize];
                place.count += 1;
                place.own_ns += span.length_ns();
                if span.event == TraceEvent::Node {
                    place.waited_ns += span.ready_ns;
                }
                let outer = &mut places.all[outer as usize];
                // The outer one's own time is in there already, as it began before.
                outer.own_ns = outer.own_ns.saturating_sub(span.length_ns());
                around.push(at);
            }
        }
        Ok(places)
    }

    /// Adds what threads did in runs, at the program with the node that they came to.
    fn add_shares(&mut self, timeline: &Timeline) -> Result<()> {
        shares_by_node(timeline, |run, &Stretch { thread, node, shares }| {
            let program = Label { event: TraceEvent::Stay, table: run.program, object: NONE };
            let mut at = self.bottoms[thread as usize];
            for label in [timeline.labels.binary_search(&program).ok(), node.map(|node| node.label as usize)] {
                at = label.map_or(Ok(at), |label| self.inside(at, label as u32, thread))?;
            }
            self.all[at as usize].shares.add(&shares);
            Ok(())
        })?;
        Ok(())
    }

    fn add(&mut self, around: u32, label: u32, thread: u32) -> Result<u32> {
        self.index.reserve(WHAT)?;
        if self.all.len() == self.all.capacity() {
            let mut more = room(2 * self.all.len().max(64))?;
            more.append(&mut self.all);
            self.all = more;
        }
        let number = self.all.len() as u32;
        self.all.push(StackPlace {
            label,
            around,
            thread,
            count: 0,
            own_ns: 0,
            waited_ns: 0,
            shares: Shares::default(),
        });
        self.index.insert(hash(around, label), number);
        Ok(number)
    }

    /// The place of this name inside of another one.
    fn inside(&mut self, outer: u32, label: u32, thread: u32) -> Result<u32> {
        let all = &self.all;
        let is = |at: u32| (all[at as usize].around, all[at as usize].label) == (outer, label);
        match self.index.find(hash(outer, label), is) {
            Some(at) => Ok(at),
            None => self.add(outer, label, thread),
        }
    }

    /// The places around one, and itself, from the bottom up. Without the thread.
    fn path(&self, mut at: u32) -> Vec<u32> {
        let mut path = Vec::new();
        while self.all[at as usize].around != NONE {
            path.push(at);
            at = self.all[at as usize].around;
        }
        path.reverse();
        path
    }
}

/// Writes folded stacks: a line for each place, "thread;program;node nanoseconds", for flame graphs.
pub fn write_folded(timeline: &Timeline, output: &mut TraceOutput<'_>) -> Result<()> {
    let places = StackPlaces::of(timeline)?;
    for (at, place) in places.all.iter().enumerate() {
        if place.around == NONE || place.count == 0 {
            continue;
        }
        let thread = &timeline.threads[place.thread as usize];
        let _ = write!(output, "{} {}", thread.name.replace([';', '\n'], ":"), thread.os_id);
        for around in places.path(at as u32) {
            let name = timeline.name(places.all[around as usize].label);
            let _ = write!(output, ";{}", name.replace([';', '\n'], ":"));
        }
        let _ = writeln!(output, " {}", place.own_ns);
    }
    Ok(())
}

/// The texts of a profile, by their numbers.
struct Texts(Vec<String>);

impl Texts {
    fn of(&mut self, text: &str) -> u64 {
        let known = self.0.iter().position(|known| known == text);
        known.unwrap_or_else(|| {
            self.0.push(text.to_owned());
            self.0.len() - 1
        }) as u64
    }
}

// Of the message `Profile` in pprof's proto/profile.proto.
mod profile {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING: u32 = 6;
    pub const TIME: u32 = 9;
    pub const DURATION: u32 = 10;
    pub const COMMENT: u32 = 13;
    pub const DEFAULT_TYPE: u32 = 14;
}

/// Writes a profile for pprof: for each place the time that it has taken without what lies inside, how often, and how
/// long it was ready before it began; and for each node what its threads waited for before it, by the cause.
pub fn write_pprof(timeline: &Timeline, output: &mut TraceOutput<'_>) -> Result<()> {
    let mut places = StackPlaces::of(timeline)?;
    places.add_shares(timeline)?;
    let mut texts = Texts(vec![String::new()]);
    let mut message = Message::new();
    let nanoseconds = "nanoseconds";
    for (kind, unit) in [("work", nanoseconds), ("count", "count"), ("waited", nanoseconds), ("waiting", nanoseconds)] {
        let (kind, unit) = (texts.of(kind), texts.of(unit));
        message.nested(profile::SAMPLE_TYPE, |of| {
            of.varint(1, kind).varint(2, unit);
        });
    }
    let (thread_key, cause_key) = (texts.of("thread"), texts.of("cause"));
    for (at, place) in places.all.iter().enumerate() {
        // The innermost first; a label is a location, and a function.
        let path = places.path(at as u32);
        let mut stack: Vec<u64> = Vec::new();
        stack.extend(path.iter().rev().map(|around| u64::from(places.all[*around as usize].label) + 1));
        let thread = &timeline.threads[place.thread as usize];
        let thread = texts.of(&format!("{} {}", thread.name, thread.os_id));
        let mut put = |values: [u64; 4], cause: Option<u64>| {
            message.nested(profile::SAMPLE, |sample| {
                sample.packed(1, &stack).packed(2, &values);
                for (key, text) in
                    [Some((thread_key, thread)), cause.map(|cause| (cause_key, cause))].into_iter().flatten()
                {
                    sample.nested(3, |label| _ = label.varint(1, key).varint(2, text));
                }
            });
        };
        if place.around != NONE && place.count > 0 {
            put([place.own_ns, place.count, place.waited_ns, 0], None);
        }
        for (cause, ns) in place.shares.parts().into_iter().skip(1).filter(|(_, ns)| *ns > 0) {
            put([0, 0, 0, ns], Some(texts.of(cause)));
        }
        output.put(message.bytes());
        message.clear();
    }
    let first = texts.0.len() as u64;
    for label in 0..timeline.labels.len() as u64 {
        message.nested(profile::LOCATION, |location| {
            location.varint(1, label + 1).nested(4, |line| {
                line.varint(1, label + 1);
            });
        });
        message.nested(profile::FUNCTION, |function| {
            function.varint(1, label + 1).varint(2, first + label).varint(3, first + label);
        });
        output.put(message.bytes());
        message.clear();
    }
    let default_type = texts.of("work");
    for text in &texts.0 {
        message.text(profile::STRING, text);
    }
    for label in 0..timeline.labels.len() as u32 {
        message.text(profile::STRING, &timeline.name(label));
    }
    message.text(profile::STRING, &timeline.remark());
    message.varint(profile::COMMENT, first + timeline.labels.len() as u64);
    message.varint(profile::TIME, timeline.begin_ns);
    message.varint(profile::DURATION, timeline.end_ns.saturating_sub(timeline.begin_ns));
    message.varint(profile::DEFAULT_TYPE, default_type);
    output.put(message.bytes());
    Ok(())
}
