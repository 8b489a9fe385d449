//! Operations of communicators are in traces: each once, on a lane that no other has meanwhile.

use super::*;
use kit::integers::Builder;
use kit::run::{on, run};
use std::collections::BTreeMap;
use weir_core::graph::RunOptions;
use weir_core::trace::{FAILED, Filter, Settings, Timeline, Trace, TraceEvent, TraceSpan};

const RUNS: usize = 5;
const SUMS: usize = 6;

fn operations(timeline: &Timeline) -> Vec<&TraceSpan> {
    timeline.spans.iter().filter(|span| span.event == TraceEvent::Comm).collect()
}

fn asked() -> Ref<Trace> {
    let settings = Settings { filter: Filter::Asked, keeps: None, keeps_last: false, records: 1 << 12, threads: 64 };
    Trace::start(settings).unwrap()
}

fn sum(builder: &mut Builder, comm: &Ref<Communicator>, of: weir_core::graph::ValueId) -> weir_core::graph::ValueId {
    let name = builder.name();
    builder.graph.add_kernel(&name, kernel(comm, SUM), &[of], 1).unwrap().output(0)
}

#[test]
fn each_operation_has_one_span_on_a_lane_of_its_own() {
    let comms = ranks(2, Offer::All, &named("dp"));
    let trace = asked();
    let id = trace.id();
    on_each(&comms, move |_, comm| {
        let (mut builder, values) = Builder::of("several", 1);
        let sums: Vec<_> = (0..SUMS).map(|_| sum(&mut builder, &comm, values[0])).collect();
        let all = builder.op(&sums, |x| x.iter().sum());
        builder.output(all);
        let program = builder.compile();
        let options = RunOptions { trace: Some(id), ..on(None) };
        for round in 0..RUNS as i32 {
            assert_eq!(run(&program, &[round], &options).unwrap(), [2 * round * SUMS as i32]);
        }
    });
    trace.stop();
    let timeline = trace.timeline().unwrap();
    assert_eq!((timeline.lost(), timeline.cut), (0, 0), "{}", timeline.remark());
    let mut by_run: BTreeMap<u32, usize> = BTreeMap::new();
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    for span in operations(&timeline) {
        assert!(timeline.threads[span.thread as usize].name.starts_with("communicator 'dp' (rank "));
        assert!(timeline.name(span.label).starts_with("all_reduce "), "{}", timeline.name(span.label));
        let run = timeline.run(span.frame).expect("an operation of a run");
        assert!(run.begin_ns <= span.begin_ns + timeline.error_ns && span.end_ns <= run.end_ns + timeline.error_ns);
        assert_eq!(span.flags, 0);
        *by_run.entry(span.frame).or_default() += 1;
        let last = last.entry(span.thread).or_default();
        assert!(*last <= span.begin_ns, "two operations on one lane at once");
        *last = span.end_ns;
    }
    assert_eq!(by_run.into_values().collect::<Vec<_>>(), [SUMS; 2 * RUNS]);
}

/// A rank that waits in vain: its operation has failed in the trace, and ends with the communicator.
#[test]
fn an_operation_that_is_given_up_has_failed() {
    let comms = ranks(2, Offer::All, &CommOptions { limit_ns: 5_000_000, ..named("dp") });
    let trace = asked();
    let id = trace.id();
    let (mut builder, values) = Builder::of("alone", 1);
    let summed = sum(&mut builder, &comms[0], values[0]);
    builder.output(summed);
    let _ = run(&builder.compile(), &[1], &RunOptions { trace: Some(id), ..on(None) }).unwrap_err();
    trace.stop();
    let timeline = trace.timeline().unwrap();
    let told: Vec<u8> = operations(&timeline).iter().map(|span| span.flags).collect();
    assert_eq!(told, [FAILED]);
    assert!(operations(&timeline)[0].length_ns() >= 5_000_000);
}
