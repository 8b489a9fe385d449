//! A page to look at, and the numbers behind it as JSON.
//!
//! The page (`page.html`) is one file without a network: it draws what is said here and in `analysis` and `sums`, and
//! computes none of it. Spans are in it as arrays in base64, by row. A row is a thread and a depth, or a stream, and
//! its spans do not overlap; spans deeper than `MOST_DEPTH` lie in those around them. More spans than `MOST_SPANS` are
//! merged: neighbours in a row that are short, and shorter than what is between others.
#![forbid(unsafe_code)]

use super::analysis::{RunAnalysis, analyses};
use super::output::{Quoted, TraceOutput};
use super::record::{NONE, TraceEvent};
use super::run_graph::PathPart;
use super::shares::Shares;
use super::sums::{ProgramSums, programs};
use super::timeline::{Timeline, room};
use crate::base::Result;
use std::fmt::{Display, Write as _};

const PAGE: &str = include_str!("page.html");
/// Spans that are drawn at most.
const MOST_SPANS: usize = 2_000_000;
/// Spans of a thread inside of one another that are drawn.
const MOST_DEPTH: u32 = 16;
/// Nodes of a program in the table.
const LISTED: usize = 200;
/// Nodes of the graph's longest path that are listed one by one.
const MOST_OF_LONGEST: usize = 1000;

/// Writes a list, with `each` for its elements.
fn list<T>(output: &mut TraceOutput<'_>, all: impl IntoIterator<Item = T>, each: impl Fn(&mut TraceOutput<'_>, T)) {
    output.put(b"[");
    for (number, one) in all.into_iter().enumerate() {
        output.put(if number == 0 { b"\n" } else { b",\n" });
        each(output, one);
    }
    output.put(b"]");
}

fn texts<'a>(output: &mut TraceOutput<'_>, all: impl IntoIterator<Item = &'a str>) {
    list(output, all, |output, text| {
        let _ = write!(output, "\"{}\"", Quoted(text));
    });
}

/// Sums of time, by what they are of.
fn times(output: &mut TraceOutput<'_>, all: impl IntoIterator<Item = (&'static str, u64)>) {
    list(output, all, |output, (what, ns)| {
        let _ = write!(output, "{{\"what\":\"{}\",\"ns\":{ns}}}", Quoted(what));
    });
}

/// A key and a value; `value` may be JSON as text.
fn entry(output: &mut TraceOutput<'_>, key: &str, value: impl Display) {
    let _ = write!(output, ",\"{key}\":{value}");
}

fn put_run(timeline: &Timeline, output: &mut TraceOutput<'_>, analysis: &RunAnalysis) {
    let run = &analysis.run;
    let program = timeline.table(run.program).map_or("?", |table| table.shown_name());
    let _ = write!(output, "{{\"program\":\"{}\"", Quoted(program));
    entry(output, "which", if analysis.is_slowest { "\"the slowest\"" } else { "\"the median\"" });
    entry(output, "of_runs", analysis.of_runs);
    entry(output, "number", run.number);
    entry(output, "begin_ns", run.begin_ns - timeline.begin_ns);
    entry(output, "wall_ns", analysis.wall_ns());
    entry(output, "threads", analysis.threads);
    entry(output, "nodes", analysis.nodes);
    entry(output, "time_of_threads", "");
    times(output, analysis.shares.parts());
    entry(output, "busy", "");
    list(output, &analysis.busy, |output, (thread, ns)| {
        let _ = write!(output, "{{\"thread\":{thread},\"ns\":{ns}}}");
    });
    entry(output, "path_sums", "");
    times(output, PathPart::ALL.map(|part| (part.text(), analysis.on_path(part))));
    entry(output, "path", "");
    list(output, &analysis.path, |output, segment| {
        let (begin, end) = (segment.begin_ns - timeline.begin_ns, segment.end_ns - timeline.begin_ns);
        let _ = write!(output, "{{\"part\":\"{}\",\"begin_ns\":{begin},\"end_ns\":{end}", Quoted(segment.part.text()));
        let _ = match timeline.spans.get(segment.span as usize) {
            None => write!(output, ",\"node\":null}}"),
            Some(span) => {
                let name = timeline.name(span.label);
                let (thread, depth) = (span.thread, span.depth.min(MOST_DEPTH - 1));
                write!(output, ",\"node\":\"{}\",\"thread\":{thread},\"depth\":{depth}}}", Quoted(&name))
            }
        };
    });
    entry(output, "longest", "");
    match &analysis.longest {
        None => output.put(b"null"),
        Some((ns, spans)) => {
            let _ = write!(output, "{{\"ns\":{ns},\"count\":{},\"nodes\":", spans.len());
            list(output, spans.iter().take(MOST_OF_LONGEST), |output, &span| {
                let span = &timeline.spans[span as usize];
                let _ = write!(
                    output,
                    "{{\"node\":\"{}\",\"ns\":{}}}",
                    Quoted(&timeline.name(span.label)),
                    span.length_ns()
                );
            });
            output.put(b"}");
        }
    }
    entry(output, "replay", "");
    match analysis.replay_ns.zip(analysis.replay_error()) {
        None => output.put(b"null"),
        Some((ns, off)) => {
            let is_close = analysis.is_replay_close();
            let _ = write!(output, "{{\"ns\":{ns},\"off_thousandths\":{off},\"is_close\":{is_close}}}");
        }
    }
    entry(output, "savings", "");
    list(output, &analysis.savings, |output, saving| {
        let _ = write!(output, "{{\"node\":\"{}\"", Quoted(&timeline.name(saving.label)));
        entry(output, "count", saving.count);
        entry(output, "body_ns", saving.body_ns);
        entry(output, "on_path_ns", saving.on_path_ns);
        entry(output, "saves_ns", saving.saves_ns);
        output.put(b"}");
    });
    entry(output, "graph", "");
    list(output, &analysis.graph, |output, node| {
        let _ = write!(output, "{{\"node\":\"{}\"", Quoted(&timeline.name(node.label)));
        entry(output, "count", node.count);
        entry(output, "ns", node.body_ns);
        entry(output, "is_on_path", node.is_on_path);
        entry(output, "before", "");
        list(output, &node.before, |output, before| {
            let _ = write!(output, "{before}");
        });
        output.put(b"}");
    });
    output.put(b"}");
}

fn put_program(timeline: &Timeline, output: &mut TraceOutput<'_>, sums: &ProgramSums) {
    let name = timeline.table(sums.program).map_or("?", |table| table.shown_name());
    let _ = write!(output, "{{\"name\":\"{}\"", Quoted(name));
    entry(output, "runs", sums.runs);
    entry(output, "failed", sums.failed);
    entry(output, "cancelled", sums.cancelled);
    entry(output, "wall_ns", sums.wall);
    entry(output, "least_ns", sums.least);
    entry(output, "most_ns", sums.most);
    entry(output, "time_of_threads", "");
    times(output, sums.shares.parts());
    entry(output, "more_nodes", sums.nodes.len().saturating_sub(LISTED));
    entry(output, "nodes", "");
    list(output, sums.nodes.iter().take(LISTED), |output, node| {
        let _ = write!(output, "{{\"node\":\"{}\"", Quoted(&timeline.name(node.label)));
        entry(output, "count", node.count);
        entry(output, "all_ns", node.all);
        entry(output, "longest_ns", node.longest);
        entry(output, "waited_ns", node.waited);
        output.put(b"}");
    });
    entry(output, "on_devices", "");
    list(output, sums.on_devices.iter().take(LISTED), |output, piece| {
        let _ = write!(output, "{{\"what\":\"{}\"", Quoted(&timeline.name(piece.label)));
        entry(output, "count", piece.count);
        entry(output, "all_ns", piece.all);
        entry(output, "longest_ns", piece.longest);
        output.put(b"}");
    });
    output.put(b"}");
}

/// Writes the numbers as JSON: of each program its sums, and why its median and its slowest run took so long. Times are
/// in nanoseconds; those of runs and paths are from the trace's beginning on.
pub fn write_json(timeline: &Timeline, output: &mut TraceOutput<'_>) -> Result<()> {
    let (programs, analyses) = (programs(timeline)?, analyses(timeline)?);
    let _ = write!(output, "{{\"weir_trace\":1,\"remark\":\"{}\"", Quoted(&timeline.remark()));
    entry(output, "lost_records", timeline.lost());
    entry(output, "clock_error_ns", timeline.error_ns);
    entry(output, "begin_ns", timeline.begin_ns);
    entry(output, "length_ns", timeline.end_ns.saturating_sub(timeline.begin_ns));
    entry(output, "threads", "");
    list(output, &timeline.threads, |output, thread| {
        let name = Quoted(&thread.name);
        let _ = write!(output, "{{\"name\":\"{name}\",\"id\":{},\"lost\":{}}}", thread.os_id, thread.lost);
    });
    entry(output, "parts", "");
    texts(output, PathPart::ALL.map(PathPart::text));
    entry(output, "shares", "");
    texts(output, Shares::default().parts().map(|(what, _)| what));
    entry(output, "memory", "");
    list(output, &timeline.memory()?, |output, change| {
        let at = change.begin_ns.saturating_sub(timeline.begin_ns);
        let name = timeline.name(change.label);
        let _ = write!(output, "{{\"what\":\"{}\",\"at_ns\":{at},\"bytes\":{}}}", Quoted(&name), change.number);
    });
    entry(output, "runs", "");
    list(output, &analyses, |output, analysis| put_run(timeline, output, analysis));
    entry(output, "programs", "");
    list(output, &programs, |output, sums| put_program(timeline, output, sums));
    output.put(b"}");
    Ok(())
}

/// A rectangle of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DrawnSpan {
    lane: u32,
    depth: u32,
    begin: u64,
    end: u64,
    /// Among the timeline's labels; NONE: several.
    label: u32,
}

/// Merges neighbours until there are no more than `most`. Gives how many are gone.
fn merge(spans: &mut Vec<DrawnSpan>, most: usize) -> usize {
    let before = spans.len();
    let mut width = 1000;
    while spans.len() > most && width < u64::MAX / 2 {
        let is_short = |span: &DrawnSpan| span.label == NONE || span.end - span.begin < width;
        spans.dedup_by(|next, last| {
            let joins = (next.lane, next.depth) == (last.lane, last.depth)
                && is_short(next)
                && is_short(last)
                && next.begin.saturating_sub(last.end) < width;
            if joins {
                (last.end, last.label) = (last.end.max(next.end), NONE);
            }
            joins
        });
        width *= 2;
    }
    before - spans.len()
}

/// Bytes in base64.
fn base64(output: &mut TraceOutput<'_>, mut bytes: impl Iterator<Item = u8>) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    while let Some(first) = bytes.next() {
        let (second, third) = (bytes.next(), bytes.next());
        let word = u32::from(first) << 16 | u32::from(second.unwrap_or(0)) << 8 | u32::from(third.unwrap_or(0));
        let letter = |at: u32| LETTERS[(word >> (18 - 6 * at)) as usize & 63];
        let is_there = [true, true, second.is_some(), third.is_some()];
        let mut four = [b'='; 4];
        for (at, put) in four.iter_mut().enumerate().filter(|(at, _)| is_there[*at]) {
            *put = letter(at as u32);
        }
        output.put(&four);
    }
}

/// Writes the page.
pub fn write(timeline: &Timeline, output: &mut TraceOutput<'_>) -> Result<()> {
    // Streams have lanes behind those of the threads.
    let label = |number: u32| timeline.labels[number as usize];
    let mut streams: Vec<u32> = room(timeline.labels.len())?;
    streams.extend(timeline.labels.iter().filter(|label| label.event == TraceEvent::Item).map(|label| label.table));
    streams.sort_unstable();
    streams.dedup();
    let threads = timeline.threads.len();
    let mut spans: Vec<DrawnSpan> = room(2 * timeline.spans.len())?;
    let mut left_out = 0;
    for span in &timeline.spans {
        let begin = span.begin_ns.saturating_sub(timeline.begin_ns);
        let end = span.end_ns.saturating_sub(timeline.begin_ns).max(begin);
        let drawn = DrawnSpan { lane: span.thread, depth: span.depth, begin, end, label: span.label };
        if span.depth < MOST_DEPTH {
            spans.push(drawn);
        } else {
            left_out += 1;
        }
        if span.event == TraceEvent::Item
            && let Ok(stream) = streams.binary_search(&label(span.label).table)
        {
            spans.push(DrawnSpan { lane: (threads + stream) as u32, depth: 0, ..drawn });
        }
    }
    spans.sort_unstable();
    left_out += merge(&mut spans, MOST_SPANS);
    for piece in PAGE.split("{{").enumerate() {
        let (number, piece) = piece;
        let Some((key, rest)) = piece.split_once("}}").filter(|_| number > 0) else {
            output.put(piece.as_bytes());
            continue;
        };
        match key {
            "analysis" => write_json(timeline, output)?,
            "drawn" => put_drawn(timeline, output, &streams, &spans, left_out),
            "begins" => base64(output, spans.iter().flat_map(|span| (span.begin as f64).to_le_bytes())),
            "ends" => base64(output, spans.iter().flat_map(|span| (span.end as f64).to_le_bytes())),
            _ => base64(output, spans.iter().flat_map(|span| span.label.to_le_bytes())),
        }
        output.put(rest.as_bytes());
    }
    Ok(())
}

/// The meaning of the arrays: names of labels, lanes with how deep they are, and rows of spans.
fn put_drawn(timeline: &Timeline, output: &mut TraceOutput<'_>, streams: &[u32], spans: &[DrawnSpan], left_out: usize) {
    let _ = write!(output, "{{\"merged\":{left_out},\"names\":");
    let labels = || 0..timeline.labels.len() as u32;
    list(output, labels(), |output, label| {
        let _ = write!(output, "\"{}\"", Quoted(&timeline.name(label)));
    });
    entry(output, "categories", "");
    texts(output, timeline.labels.iter().map(|label| Timeline::category(label.event)));
    entry(output, "lanes", "");
    let depth = |lane: usize| spans[..spans.partition_point(|span| span.lane as usize <= lane)].last();
    list(output, 0..timeline.threads.len() + streams.len(), |output, lane| {
        let depth = depth(lane).filter(|span| span.lane as usize == lane).map_or(0, |span| span.depth + 1);
        let thread = timeline.threads.get(lane);
        let _ = match thread {
            Some(thread) if thread.is_track => write!(output, "{{\"name\":\"{}\"", Quoted(&thread.name)),
            Some(thread) => write!(output, "{{\"name\":\"{} {}\"", Quoted(&thread.name), thread.os_id),
            None => {
                let stream = timeline.table(streams[lane - timeline.threads.len()]);
                write!(output, "{{\"name\":\"{}\"", Quoted(stream.map_or("a stream", |table| &table.name)))
            }
        };
        let _ = write!(output, ",\"is_thread\":{},\"depth\":{depth}}}", thread.is_some_and(|thread| !thread.is_track));
    });
    entry(output, "rows", "");
    let mut first = 0;
    let rows = spans.chunk_by(|a, b| (a.lane, a.depth) == (b.lane, b.depth)).map(|row| {
        let begin = first;
        first += row.len();
        (row[0], begin, first)
    });
    list(output, rows, |output, (span, first, end)| {
        let (lane, depth) = (span.lane, span.depth);
        let _ = write!(output, "{{\"lane\":{lane},\"depth\":{depth},\"first\":{first},\"end\":{end}}}");
    });
    output.put(b"}");
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        let of = |text: &str| {
            let mut all = Vec::new();
            let mut collect = |bytes: &[u8]| {
                all.extend_from_slice(bytes);
                Ok(())
            };
            let mut output = TraceOutput::new(&mut collect).unwrap();
            base64(&mut output, text.bytes());
            output.finish().unwrap();
            String::from_utf8(all).unwrap()
        };
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(of);
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    #[test]
    fn merged_spans_cover_what_was_there_and_leave_long_ones_alone() {
        let span = |lane, begin, length| DrawnSpan { lane, depth: 1, begin, end: begin + length, label: 7 };
        let mut spans: Vec<DrawnSpan> =
            (0..2).flat_map(|lane| (0..1000).map(move |i| span(lane, i * 100, 50))).collect();
        spans.push(span(1, 1 << 20, 1 << 40));
        let same = spans.clone();
        assert_eq!((merge(&mut spans, 2001), &spans), (0, &same));
        assert_eq!(merge(&mut spans, 10), 1998);
        let whole = |lane| DrawnSpan { end: 99_950, label: NONE, ..span(lane, 0, 0) };
        assert_eq!(spans, [whole(0), whole(1), span(1, 1 << 20, 1 << 40)]);
    }
}
