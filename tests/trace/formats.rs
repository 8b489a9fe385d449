//! Saved traces, read by readers that know only the formats: a decoder of protocol buffers with the rules of Perfetto's
//! importer, one of profiles, and one of JSON that takes what Chrome's reader takes.

use crate::{Draws, alone, of_everything};
use std::collections::HashMap;
use weir_core::base::Ref;
use weir_core::trace::{Timeline, Trace, TraceEvent, TraceFormat};

use crate::kit::integers::Builder;
use crate::kit::random::Random;
use crate::kit::run::{all_pools, on, run};

/// A field of a message.
#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first().expect("a number without an end");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

/// The fields of a message, in order.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_at(8);
                bytes = rest;
                Value::Number(u64::from_le_bytes(number.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(inner)
            }
            kind => panic!("a field of kind {kind}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn number(fields: &[(u64, Value<'_>)], field: u64) -> Option<u64> {
    fields.iter().find_map(|(key, value)| match value {
        Value::Number(number) if *key == field => Some(*number),
        _ => None,
    })
}

fn all<'a>(fields: &[(u64, Value<'a>)], field: u64) -> Vec<&'a [u8]> {
    let of = |(key, value): &(u64, Value<'a>)| match value {
        Value::Bytes(bytes) if *key == field => Some(*bytes),
        _ => None,
    };
    fields.iter().filter_map(of).collect()
}

fn message<'a>(fields: &[(u64, Value<'a>)], field: u64) -> Option<Vec<(u64, Value<'a>)>> {
    all(fields, field).first().map(|bytes| super::formats::fields(bytes))
}

fn text(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).unwrap().to_owned()
}

/// A slice as Perfetto would have it.
#[derive(Debug)]
struct Slice {
    track: u64,
    name: String,
    begin_ns: u64,
    end_ns: u64,
    iteration: Option<u64>,
}

#[derive(Default)]
struct Read {
    slices: Vec<Slice>,
    flows: usize,
    /// The times and values of each counter, by its name.
    counters: HashMap<String, Vec<(u64, u64)>>,
    instants: usize,
    threads: HashMap<u64, (u64, String)>,
    remark: String,
}

/// What a sequence remembers.
#[derive(Default)]
struct State {
    at_ns: u64,
    track: u64,
    names: HashMap<u64, String>,
    categories: HashMap<u64, String>,
    annotations: HashMap<u64, String>,
    is_cleared: bool,
}

/// Reads a trace by the rules of the importer, and panics where that would drop something.
fn read_perfetto(bytes: &[u8]) -> Read {
    let mut read = Read::default();
    let mut states: HashMap<u64, State> = HashMap::new();
    let mut counters: HashMap<u64, String> = HashMap::new();
    // The slices that are open on each track, and the flows that have begun.
    let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
    let (mut begun, mut ended) = (HashMap::new(), HashMap::new());
    for (key, packet) in fields(bytes) {
        let Value::Bytes(packet) = packet else { panic!("no packet") };
        assert_eq!(key, 1);
        let packet = fields(packet);
        if let Some(track) = message(&packet, 60) {
            let uuid = number(&track, 1).unwrap();
            if let Some(thread) = message(&track, 4) {
                let name = text(all(&thread, 5)[0]);
                read.threads.insert(uuid, (number(&thread, 2).unwrap(), name));
            }
            if message(&track, 8).is_some() {
                counters.insert(uuid, text(all(&track, 2)[0]));
            }
            if let Some(process) = message(&track, 3) {
                read.remark = text(all(&process, 6)[0]);
            }
        }
        let state = states.entry(number(&packet, 10).expect("a packet of no sequence")).or_default();
        if number(&packet, 13) == Some(1) {
            *state = State { is_cleared: true, ..State::default() };
        }
        if let Some(defaults) = message(&packet, 59) {
            assert_eq!(number(&defaults, 58), Some(64));
            state.track = number(&message(&defaults, 11).unwrap(), 11).unwrap();
        }
        if let Some(snapshot) = message(&packet, 6) {
            let clocks: Vec<_> = all(&snapshot, 1).into_iter().map(fields).collect();
            assert!(number(&clocks[0], 1) == Some(64) && number(&clocks[0], 3) == Some(1));
            assert_eq!((number(&clocks[1], 1), number(&snapshot, 2)), (Some(3), Some(3)));
            state.at_ns = number(&clocks[1], 2).unwrap();
        }
        if let Some(interned) = message(&packet, 12) {
            let lists = [(1, &mut state.categories), (2, &mut state.names), (3, &mut state.annotations)];
            for (field, list) in lists {
                for entry in all(&interned, field) {
                    let entry = fields(entry);
                    list.insert(number(&entry, 1).unwrap(), text(all(&entry, 2)[0]));
                }
            }
        }
        let Some(event) = message(&packet, 11) else { continue };
        assert!(state.is_cleared && number(&packet, 13) == Some(2), "an event that needs state has none");
        state.at_ns += number(&packet, 8).expect("an event without a time");
        let track = number(&event, 11).unwrap_or(state.track);
        let name = || state.names[&number(&event, 10).expect("an event without a name")].clone();
        match number(&event, 9).unwrap() {
            1 => {
                assert!(state.categories.contains_key(&number(&event, 3).unwrap()));
                let annotations = all(&event, 4).into_iter().map(fields);
                let iteration = annotations
                    .filter(|one| state.annotations[&number(one, 1).unwrap()] == "iteration")
                    .find_map(|one| number(&one, 3));
                let at = read.slices.len();
                read.slices.push(Slice { track, name: name(), begin_ns: state.at_ns, end_ns: u64::MAX, iteration });
                open.entry(track).or_default().push(at);
                for (key, value) in &event {
                    let Value::Number(flow) = value else { continue };
                    match key {
                        47 => assert!(begun.insert(*flow, at).is_none(), "a flow begins twice"),
                        48 => assert!(ended.insert(*flow, at).is_none(), "a flow ends twice"),
                        _ => {}
                    }
                }
            }
            2 => {
                let at = open.get_mut(&track).and_then(Vec::pop).expect("an end without a beginning");
                read.slices[at].end_ns = state.at_ns;
            }
            3 => {
                let _ = name();
                read.instants += 1;
            }
            4 => {
                let values = read.counters.entry(counters[&track].clone()).or_default();
                values.push((state.at_ns, number(&event, 30).unwrap()));
            }
            kind => panic!("an event of type {kind}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "a beginning without an end");
    assert_eq!(begun.len(), ended.len());
    for (flow, from) in &begun {
        let (from, to) = (&read.slices[*from], &read.slices[ended[flow]]);
        assert!(from.end_ns <= to.begin_ns && from.track != to.track, "{from:?} {to:?}");
    }
    read.flows = begun.len();
    read
}

fn bytes(trace: &Trace, format: TraceFormat) -> Vec<u8> {
    let mut all = Vec::new();
    trace
        .write(format, &mut |bytes| {
            all.extend_from_slice(bytes);
            Ok(())
        })
        .unwrap();
    all
}

/// Traces of drawn graphs on all pools.
fn each_trace(visit: &mut dyn FnMut(&Timeline, &Ref<Trace>)) {
    let _alone = alone();
    for seed in 100..108 {
        let mut random = Random::new(seed);
        let draws = Draws::new();
        let program = draws.program(&mut random);
        for pool in all_pools() {
            let trace = of_everything();
            for input in 0..4 {
                run(&program, &[input, 3], &on(pool.as_ref())).unwrap();
            }
            trace.stop();
            visit(&trace.timeline().unwrap(), &trace);
        }
    }
}

#[test]
fn perfetto_has_each_span_and_each_arrow() {
    let (mut flows, mut ready, mut sizes, mut spans) = (0, 0, 0, 0);
    each_trace(&mut |timeline, trace| {
        let file = bytes(trace, TraceFormat::Perfetto);
        let read = read_perfetto(&file);
        let threads: Vec<u64> = {
            let mut tracks: Vec<_> = read.threads.keys().copied().collect();
            tracks.sort_unstable();
            tracks
        };
        assert_eq!(threads.len(), timeline.threads.len());
        for (track, thread) in threads.iter().zip(&timeline.threads) {
            assert_eq!(read.threads[track], (thread.os_id, thread.name.clone()));
        }
        assert_eq!(read.remark, timeline.remark());
        let of_threads = || read.slices.iter().filter(|slice| read.threads.contains_key(&slice.track));
        assert_eq!(of_threads().count(), timeline.spans.len());
        // The importer has them in the order of the file, thread by thread, as the timeline has.
        for (slice, span) in of_threads().zip(&timeline.spans) {
            assert_eq!(slice.track, threads[span.thread as usize]);
            assert_eq!((slice.begin_ns, slice.end_ns), (span.begin_ns, span.end_ns));
            assert_eq!(slice.name, timeline.name(span.label));
            if span.event == TraceEvent::Node {
                assert_eq!(slice.iteration, Some(span.number).filter(|number| *number != u64::MAX));
            }
        }
        assert_eq!(
            read.slices.len() - timeline.spans.len(),
            timeline.runs.iter().filter(|run| run.begin_ns > 0).count()
        );
        assert_eq!(read.flows, timeline.arrows().unwrap().len());
        assert_eq!(read.instants, timeline.instants.len());
        let stays = timeline.spans.iter().filter(|span| span.event == TraceEvent::Stay).count();
        let values = |name: &str| read.counters.get(name).cloned().unwrap_or_default();
        assert_eq!(values("threads in runs").len(), 2 * stays);
        let memory = read.counters.iter().filter(|(name, _)| name.starts_with("memory of "));
        assert_eq!(memory.map(|(_, values)| values.len()).sum::<usize>(), timeline.memory().unwrap().len());
        let waits = timeline.spans.iter().filter(|span| span.event == TraceEvent::Node && span.ready_ns > 0);
        let waits: Vec<_> = waits.map(|span| (span.begin_ns - span.ready_ns, span.begin_ns)).collect();
        for &(at, value) in &values("ready nodes") {
            let waiting = waits.iter().filter(|wait| wait.0 <= at && at < wait.1).count();
            assert_eq!(value, waiting as u64, "nodes that are ready at {at}");
        }
        assert_eq!(values("ready nodes").last().map_or(0, |last| last.1), 0);
        ready += values("ready nodes").len();
        flows += read.flows;
        sizes += file.len();
        spans += timeline.spans.len();
    });
    assert!(flows > 0, "no node was made ready by another thread");
    assert!(ready > 0, "no node was ready for a microsecond");
    println!("{} bytes a span, names and all", sizes / spans);
}

#[test]
fn a_profile_has_the_sums_of_the_spans() {
    each_trace(&mut |timeline, trace| {
        let file = bytes(trace, TraceFormat::Pprof);
        let profile = fields(&file);
        let strings: Vec<String> = all(&profile, 6).into_iter().map(text).collect();
        assert_eq!(strings[0], "");
        let types: Vec<_> = all(&profile, 1)
            .into_iter()
            .map(|one| strings[number(&fields(one), 1).unwrap() as usize].clone())
            .collect();
        assert_eq!(types, ["work", "count", "waited", "waiting"]);
        assert_eq!(strings[number(&profile, 14).unwrap() as usize], "work");
        let functions: HashMap<u64, String> = all(&profile, 5)
            .into_iter()
            .map(fields)
            .map(|one| (number(&one, 1).unwrap(), strings[number(&one, 2).unwrap() as usize].clone()))
            .collect();
        let locations: HashMap<u64, u64> = all(&profile, 4)
            .into_iter()
            .map(fields)
            .map(|one| (number(&one, 1).unwrap(), number(&message(&one, 4).unwrap(), 1).unwrap()))
            .collect();
        let packed = |one: &[(u64, Value<'_>)], field| {
            let mut list = all(one, field)[0];
            let mut numbers = Vec::new();
            while !list.is_empty() {
                numbers.push(varint(&mut list));
            }
            numbers
        };
        let label = |sample: &[(u64, Value<'_>)], key: &str| {
            let labels = all(sample, 3).into_iter().map(fields);
            let of = |one: &[(u64, Value<'_>)], field| &strings[number(one, field).unwrap() as usize];
            labels.into_iter().find(|one| of(one, 1) == key).map(|one| of(&one, 2).clone())
        };
        let (mut work, mut counts, mut waited) = (0, HashMap::new(), 0);
        let mut causes: HashMap<String, u64> = HashMap::new();
        for sample in all(&profile, 2).into_iter().map(fields) {
            let (stack, values) = (packed(&sample, 1), packed(&sample, 2));
            *counts.entry(functions[&locations[&stack[0]]].clone()).or_insert(0) += values[1];
            work += values[0];
            waited += values[2];
            let cause = label(&sample, "cause");
            assert!(label(&sample, "thread").is_some() && cause.is_some() == (values[3] > 0));
            cause.into_iter().for_each(|cause| *causes.entry(cause).or_default() += values[3]);
        }
        let mut expected = HashMap::new();
        for span in &timeline.spans {
            *expected.entry(timeline.name(span.label).into_owned()).or_insert(0) += 1;
        }
        counts.retain(|_, count| *count > 0);
        assert_eq!(counts, expected);
        let shares = weir_core::trace::shares(timeline).unwrap();
        let mut all_causes: HashMap<String, u64> = HashMap::new();
        for (what, ns) in shares.iter().flat_map(|(_, shares, _)| shares.parts()).filter(|part| part.0 != "in nodes") {
            *all_causes.entry(what.to_owned()).or_default() += ns;
        }
        all_causes.retain(|_, ns| *ns > 0);
        assert_eq!(causes, all_causes);
        let outer: u64 = timeline.spans.iter().filter(|span| span.depth == 0).map(|span| span.length_ns()).sum();
        assert_eq!(work, outer, "what lies in one another is counted once");
        let ready: u64 =
            timeline.spans.iter().filter(|span| span.event == TraceEvent::Node).map(|span| span.ready_ns).sum();
        assert_eq!(waited, ready);
    });
}

#[test]
fn folded_stacks_have_the_same_sums() {
    each_trace(&mut |timeline, trace| {
        let file = text(&bytes(trace, TraceFormat::Folded));
        let mut sum = 0;
        for line in file.lines() {
            let (stack, ns) = line.rsplit_once(' ').unwrap();
            let thread = stack.split(';').next().unwrap();
            assert!(timeline.threads.iter().any(|known| thread == format!("{} {}", known.name, known.os_id)), "{line}");
            assert!(stack.contains(";drawn") || stack.contains(";region") || stack.contains(";help"), "{line}");
            sum += ns.parse::<u64>().unwrap();
        }
        let outer: u64 = timeline.spans.iter().filter(|span| span.depth == 0).map(|span| span.length_ns()).sum();
        assert_eq!(sum, outer);
    });
}

/// A program without a name, since its graph has none.
#[test]
fn no_frame_of_a_folded_stack_is_empty() {
    let _alone = alone();
    let mut builder = Builder::new("");
    let input = builder.input();
    let sum = builder.sum(&[input, input]);
    builder.output(sum);
    let program = builder.compile();
    let trace = of_everything();
    run(&program, &[2], &on(None)).unwrap();
    trace.stop();
    let file = text(&bytes(&trace, TraceFormat::Folded));
    assert!(file.contains(";program;"), "{file}");
    assert!(file.lines().all(|line| !line.contains(";;") && !line.contains("; ")), "{file}");
}

/// Takes a value of JSON off the front; the numbers of objects and of strings go by.
fn skip_json(text: &mut &str) {
    let trimmed = text.trim_start();
    match trimmed.as_bytes()[0] {
        open @ (b'{' | b'[') => {
            let close = if open == b'{' { '}' } else { ']' };
            *text = trimmed[1..].trim_start();
            while !text.starts_with(close) {
                if open == b'{' {
                    skip_json(text);
                    *text = text.trim_start().strip_prefix(':').expect("no colon");
                }
                skip_json(text);
                *text = text.trim_start();
                if !text.starts_with(close) {
                    *text = text.strip_prefix(',').expect("no comma").trim_start();
                    assert!(!text.starts_with(close), "a comma too many");
                }
            }
            *text = &text[1..];
        }
        b'"' => {
            let mut end = 1;
            while trimmed.as_bytes()[end] != b'"' {
                end += if trimmed.as_bytes()[end] == b'\\' { 2 } else { 1 };
            }
            *text = &trimmed[end + 1..];
        }
        _ => {
            let end = trimmed.find([',', '}', ']', ' ', '\n']).unwrap_or(trimmed.len());
            assert!(["true", "false", "null"].contains(&&trimmed[..end]) || trimmed[..end].parse::<f64>().is_ok());
            *text = &trimmed[end..];
        }
    }
}

#[test]
fn chromes_json_has_each_span() {
    each_trace(&mut |timeline, trace| {
        let file = text(&bytes(trace, TraceFormat::Chrome));
        let mut rest = &file[..];
        skip_json(&mut rest);
        assert_eq!(rest.trim(), "");
        let count = |text: &str| file.matches(text).count();
        assert_eq!(count("\"ph\":\"X\""), timeline.spans.len());
        assert_eq!(count("\"ph\":\"i\""), timeline.instants.len());
        let arrows = timeline.arrows().unwrap().len();
        assert_eq!((count("\"ph\":\"s\""), count("\"ph\":\"f\"")), (arrows, arrows));
        assert!(file.contains("\"lost_records\":0"));
    });
}

/// What stands between two texts.
fn between<'a>(text: &'a str, open: &str, close: &str) -> &'a str {
    let (_, rest) = text.split_once(open).unwrap_or_else(|| panic!("no {open}"));
    rest.split_once(close).unwrap_or_else(|| panic!("{open} without {close}")).0
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("a letter {letter}"),
    };
    let mut bytes = Vec::new();
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let word = four.iter().fold(0u32, |word, &letter| word << 6 | u32::from(value(letter)));
        let word = word << (6 * (4 - four.len()));
        bytes.extend_from_slice(&word.to_be_bytes()[1..four.len()]);
    }
    bytes
}

#[test]
fn the_page_has_each_span_and_the_numbers_of_the_json() {
    each_trace(&mut |timeline, trace| {
        let json = text(&bytes(trace, TraceFormat::Json));
        let mut rest = &json[..];
        skip_json(&mut rest);
        assert_eq!(rest, "");
        let page = text(&bytes(trace, TraceFormat::Html));
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n") && !page.contains("{{"));
        assert_eq!(between(&page, "id=\"analysis\">", "</script>"), json);
        let mut drawn = between(&page, "id=\"drawn\">", "</script>");
        skip_json(&mut drawn);
        assert_eq!(drawn, "");
        let eights = |id: &str| -> Vec<u64> {
            let bytes = from_base64(between(&page, id, "</script>"));
            bytes.chunks(8).map(|eight| f64::from_le_bytes(eight.try_into().unwrap()) as u64).collect()
        };
        let (begins, ends) = (eights("id=\"begins\">"), eights("id=\"ends\">"));
        let labels = from_base64(between(&page, "id=\"labels\">", "</script>"));
        let labels = labels.chunks(4).map(|four| u32::from_le_bytes(four.try_into().unwrap()));
        let mut drawn: Vec<_> = begins.into_iter().zip(ends).zip(labels).collect();
        let from = timeline.begin_ns;
        let span = |span: &weir_core::trace::TraceSpan| ((span.begin_ns - from, span.end_ns - from), span.label);
        let mut spans: Vec<_> = timeline.spans.iter().map(span).collect();
        drawn.sort_unstable();
        spans.sort_unstable();
        assert_eq!(drawn, spans);
    });
}
