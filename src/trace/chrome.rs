//! The Trace Event Format (JSON) of Chrome, for chrome://tracing and many other readers.
#![forbid(unsafe_code)]

use super::output::{Quoted, TraceOutput};
use super::record::{CANCELLED, FAILED, LATER, TraceEvent};
use super::timeline::{NO_NUMBER, Timeline, TraceSpan};
use crate::base::Result;
use std::fmt::{self, Write as _};

/// Microseconds, to a nanosecond.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

fn put(timeline: &Timeline, output: &mut TraceOutput<'_>, pid: u32, span: &TraceSpan, is_instant: bool) {
    let (name, category) = (timeline.name(span.label), Timeline::category(span.event));
    let tid = timeline.threads[span.thread as usize].os_id;
    let _ = write!(
        output,
        ",\n{{\"name\":\"{}\",\"cat\":\"{category}\",\"pid\":{pid},\"tid\":{tid},\"ts\":{},",
        Quoted(&name),
        Micros(span.begin_ns)
    );
    let _ = match is_instant {
        true => output.write_str("\"ph\":\"i\",\"s\":\"t\",\"args\":{"),
        false => write!(output, "\"ph\":\"X\",\"dur\":{},\"args\":{{", Micros(span.length_ns())),
    };
    let mut comma = "";
    let mut arg = |output: &mut TraceOutput<'_>, name: &str, value: &dyn fmt::Display| {
        let _ = write!(output, "{comma}\"{name}\":{value}");
        comma = ",";
    };
    if span.frame != 0 {
        arg(output, "frame", &span.frame);
    }
    let number = match span.event {
        TraceEvent::Node => "iteration",
        TraceEvent::Device | TraceEvent::Comm => "bytes",
        _ => "number",
    };
    if span.number != NO_NUMBER {
        arg(output, number, &span.number);
    }
    if span.event == TraceEvent::Device {
        arg(output, "clock_error_ns", &span.ready_ns);
    }
    if span.last_edge().is_some() {
        arg(output, "waited_ns", &span.ready_ns);
    }
    if span.event == TraceEvent::Stay {
        arg(output, "nodes", &span.other);
    }
    if let Some(engine) = timeline.engine(span.label) {
        arg(output, "engine", &format_args!("\"{}\"", Quoted(engine)));
    }
    for (flag, text) in [(FAILED, "\"failed\""), (CANCELLED, "\"cancelled\""), (LATER, "\"later\"")] {
        if span.flags & flag != 0 {
            arg(output, "end", &text);
            break;
        }
    }
    output.put(b"}}");
}

/// Writes a timeline.
pub fn write(timeline: &Timeline, output: &mut TraceOutput<'_>) -> Result<()> {
    let pid = std::process::id();
    let _ = write!(
        output,
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"remark\":\"{}\",\"lost_records\":{},\"clock\":\"{}\"}},\n\
         \"traceEvents\":[\n{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{pid},\"args\":{{\"name\":\"weir\"}}}}",
        Quoted(&timeline.remark()),
        timeline.lost(),
        timeline.clock
    );
    for thread in &timeline.threads {
        let _ = write!(
            output,
            ",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{pid},\"tid\":{},\"args\":{{\"name\":\"{}\",\
             \"lost_records\":{}}}}}",
            thread.os_id,
            Quoted(&thread.name),
            thread.lost
        );
    }
    for span in &timeline.spans {
        put(timeline, output, pid, span, false);
    }
    for instant in &timeline.instants {
        put(timeline, output, pid, instant, true);
    }
    for (number, (begin, end)) in timeline.arrows()?.into_iter().enumerate() {
        for (at, step) in [(begin, "\"ph\":\"s\""), (end, "\"ph\":\"f\",\"bp\":\"e\"")] {
            let span = &timeline.spans[at as usize];
            let tid = timeline.threads[span.thread as usize].os_id;
            let _ = write!(
                output,
                ",\n{{\"name\":\"edge\",\"cat\":\"edge\",{step},\"id\":{number},\"pid\":{pid},\"tid\":{tid},\
                 \"ts\":{}}}",
                Micros(span.begin_ns)
            );
        }
    }
    output.put(b"\n]}\n");
    Ok(())
}
