//! Recordings: any order that the edges allow, the same results, and a missing edge is reported with both names.

use crate::devices::{Emulation, RaceKind};
use crate::kit::{BYTES, Device, LEN, code, download, launch, upload, view};
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_core::base::{Code, Result};
use weir_core::device::{
    DeviceKernel, DeviceStreamAttr, Executable, Fill, HostAddress, Launch, Location, RecordedStep, RecordedWork,
    Recording, Transfer,
};
use weir_core::memory::View;

/// A kernel's step.
struct Node {
    name: String,
    kernel: Arc<dyn DeviceKernel>,
    inputs: Vec<View>,
    outputs: Vec<View>,
    after: Vec<usize>,
}

fn node(d: &Device, salt: i32, inputs: &[usize], output: usize, after: &[usize]) -> Node {
    let views = |addresses: &[usize]| addresses.iter().map(|&address| view(address)).collect();
    let name = format!("node '{salt}'");
    Node { name, kernel: d.sum(salt), inputs: views(inputs), outputs: views(&[output]), after: after.to_vec() }
}

fn work(node: &Node) -> RecordedWork<'_> {
    let Node { name, kernel, inputs, outputs, .. } = node;
    RecordedWork::Launch(Launch { name, kernel, inputs, outputs })
}

fn record(d: &Device, nodes: &[Node]) -> Result<Arc<dyn Executable>> {
    let steps: Vec<RecordedStep<'_>> =
        nodes.iter().map(|node| RecordedStep { work: work(node), after: &node.after }).collect();
    d.device.record(&Recording { name: "recording 'r'", steps: &steps })
}

#[test]
fn any_order_that_the_edges_allow_and_no_other() {
    let (mut orders, expected) = (BTreeSet::new(), 1 + (2 + 1) + (3 + 1) + (4 + 1) + 5);
    for seed in 0..60 {
        let d = if seed == 0 { Device::checked() } else { Device::seeded(seed) };
        let (s, m) = (d.stream("s"), [0; 6].map(|_| d.memory("m")));
        let nodes = [
            node(&d, 1, &[], m[0], &[]),
            node(&d, 2, &[m[0]], m[1], &[0]),
            node(&d, 3, &[m[0]], m[2], &[0]),
            node(&d, 4, &[m[0]], m[3], &[0]),
            node(&d, 5, &[m[0], m[1], m[2], m[3]], m[4], &[1, 2, 3]),
        ];
        let executable = record(&d, &nodes).unwrap();
        for round in 0..3 {
            s.replay(&executable, "a recording").unwrap();
            launch(&*s, "behind", &d.sum(6), &[m[4]], &[m[5]]).unwrap();
            let mut found = [0; LEN];
            download(&*s, &mut found, m[5]).unwrap();
            d.finish(&*s).unwrap();
            assert_eq!(found, [expected + 6; LEN], "seed {seed}, round {round}");
            let ran: Vec<i32> = std::mem::take(&mut *d.ran.lock());
            assert_eq!((ran[0], &ran[4..]), (1, &[5, 6][..]), "seed {seed}: {ran:?}");
            orders.insert(ran[1..4].to_vec());
        }
        assert_eq!(d.texts(), [""; 0]);
        let counters = d.device.counters();
        assert_eq!((counters.replays, counters.launches, counters.operations), (3, 18, 21));
        assert_eq!(counters.completed, 21);
    }
    assert_eq!(orders.len(), 6, "three steps side by side have six orders");
}

/// Steps that read and write a few places; the edges that these need, without those that others imply.
fn random(d: &Device, draw: &mut impl FnMut(usize) -> usize) -> Vec<Node> {
    let memory = [0; 6].map(|_| d.memory("m"));
    let n = 3 + draw(12);
    let mut uses: Vec<(Vec<usize>, usize)> = Vec::new();
    let mut reach = weir_core::base::Reach::new(n);
    (0..n)
        .map(|at| {
            let inputs: Vec<usize> = (0..draw(3)).map(|_| draw(6)).collect();
            let output = draw(6);
            let mut after: Vec<usize> = (0..at)
                .filter(|&before| {
                    let (reads, write): &(Vec<usize>, usize) = &uses[before];
                    inputs.contains(write) || *write == output || reads.contains(&output)
                })
                .collect();
            reach.add(at, &mut after);
            let places: Vec<usize> = inputs.iter().map(|&input| memory[input]).collect();
            uses.push((inputs, output));
            node(d, at as i32, &places, memory[output], &after)
        })
        .collect()
}

#[test]
fn every_edge_that_is_left_out_is_reported_with_both_names() {
    let mut state = 7u64;
    let mut draw = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % n
    };
    let mut tried = 0;
    for graph in 0..40 {
        let d = Device::checked();
        let s = d.stream("s");
        let mut nodes = random(&d, &mut draw);
        let executable = record(&d, &nodes).unwrap();
        for _ in 0..2 {
            s.replay(&executable, "a recording").unwrap();
        }
        d.finish(&*s).unwrap();
        assert_eq!(d.texts(), [""; 0], "graph {graph}");
        for at in 0..nodes.len() {
            for edge in 0..nodes[at].after.len() {
                let before = nodes[at].after.remove(edge);
                let executable = record(&d, &nodes).unwrap();
                s.replay(&executable, "a recording").unwrap();
                d.finish(&*s).unwrap();
                let (first, second) = (format!("node '{before}'"), format!("node '{at}'"));
                let races = d.device.races();
                let of_both = races.iter().find(|race| race.first.name == first && race.second.name == second);
                let Some(race) = of_both else { panic!("graph {graph}: {before} before {at}: {:?}", d.texts()) };
                assert!(race.text.starts_with("missing edge: "), "{}", race.text);
                d.device.clear_races();
                nodes[at].after.insert(edge, before);
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

#[test]
fn a_race_with_another_stream_is_a_missing_wait() {
    let d = Device::checked();
    let (s, t, a, b) = (d.stream("s"), d.stream("t"), d.memory("tensor a"), d.memory("tensor b"));
    let executable = record(&d, &[node(&d, 1, &[], a, &[]), node(&d, 2, &[a], b, &[0])]).unwrap();
    s.replay(&executable, "a recording").unwrap();
    launch(&*t, "kernel 'use'", &d.sum(3), &[b], &[d.memory("c")]).unwrap();
    d.finish(&*s).unwrap();
    d.finish(&*t).unwrap();
    let text = "missing wait: kernel 'use' (operation 3, stream 't') reads bytes 0 to 256 of tensor b while node '2' \
                (operation 2, stream 's') may still write them";
    assert_eq!(d.texts(), [text]);
    d.device.clear_races();
    d.device.deallocate(a, BYTES);
    s.replay(&executable, "a recording").unwrap();
    d.finish(&*s).unwrap();
    assert!(d.device.races().iter().all(|race| race.kind == RaceKind::UseAfterFree), "{:?}", d.texts());
    assert_eq!(d.texts().len(), 2);
}

#[test]
fn steps_without_edges_pass_their_time_side_by_side() {
    let take = |is_chain: bool| {
        let d = Device::new(Emulation { kernel_ns: 10_000_000, ..Emulation::default() });
        let (s, begin, end) = (d.stream("s"), d.event(), d.event());
        let after = |i: usize| if is_chain && i > 0 { vec![i - 1] } else { Vec::new() };
        let nodes: Vec<Node> = (0..8).map(|i| node(&d, i as i32, &[], d.memory("m"), &after(i))).collect();
        let executable = record(&d, &nodes).unwrap();
        s.record(&begin).unwrap();
        s.replay(&executable, "a recording").unwrap();
        s.record(&end).unwrap();
        d.finish(&*s).unwrap();
        end.elapsed_ns(&*begin).unwrap()
    };
    assert!(take(true) >= 80_000_000);
    // Who submits may be held up between the calls, and what is modelled begins when it was submitted: once is enough.
    let wide =
        (0..20).map(|_| take(false)).inspect(|&took| assert!(took >= 10_000_000)).find(|&took| took < 40_000_000);
    assert!(wide.is_some(), "eight steps side by side take half of a chain's time");
}

#[test]
fn a_failure_ends_a_launch_and_the_next_one_works() {
    for seed in [0, 1, 2, 3] {
        let d = Device::new(Emulation { seed, fail_operation: 2, ..Emulation::default() });
        let (s, m) = (d.stream("s"), [0; 3].map(|_| d.memory("m")));
        let nodes = [node(&d, 1, &[], m[0], &[]), node(&d, 2, &[m[0]], m[1], &[0]), node(&d, 3, &[m[1]], m[2], &[1])];
        let executable = record(&d, &nodes).unwrap();
        s.replay(&executable, "a recording").unwrap();
        let error = d.finish(&*s).unwrap_err();
        assert!(error.message().contains("stream 's', operation 2: node '2' failed, as asked"), "{}", error.message());
        assert_eq!(*d.ran.lock(), [1]);
        s.replay(&executable, "a recording").unwrap();
        assert!(d.finish(&*s).is_err(), "passed over as long as the failure stays");
        s.clear_error();
        s.replay(&executable, "a recording").unwrap();
        d.finish(&*s).unwrap();
        assert_eq!(*d.ran.lock(), [1, 1, 2, 3]);
        assert_eq!(d.device.counters().completed, 9);
    }
    let d = Device::new(Emulation { lose_operation: 2, ..Emulation::default() });
    let (s, m) = (d.stream("s"), [0; 2].map(|_| d.memory("m")));
    let executable = record(&d, &[node(&d, 1, &[], m[0], &[]), node(&d, 2, &[m[0]], m[1], &[0])]).unwrap();
    let event = d.event();
    s.replay(&executable, "a recording").unwrap();
    let lost = s.record(&event).and_then(|()| event.synchronize(weir_core::base::time::Deadline::NEVER));
    assert_eq!(code(lost), Code::DeviceLost);
    assert_eq!(code(s.replay(&executable, "a recording")), Code::DeviceLost);
}

#[test]
fn an_update_changes_later_launches_and_none_that_was_made() {
    let d = Device::seeded(5);
    let (s, t, m) = (d.stream("s"), d.stream("t"), [0; 3].map(|_| d.memory("m")));
    let from = [[7; LEN], [70; LEN]];
    // SAFETY: the arrays are there until the end.
    let place = |i: usize| Location::Host(unsafe { HostAddress::new(from[i].as_ptr() as usize) });
    let copy =
        |i| RecordedWork::Copy(Transfer { name: "copy", to: Location::Device(m[0]), from: place(i), bytes: BYTES });
    let zero = |address| RecordedWork::Fill(Fill { name: "zero", address, bytes: BYTES, value: 0 });
    let sums = [node(&d, 1, &[m[0]], m[1], &[]), node(&d, 1, &[m[0]], m[2], &[])];
    let steps = [
        RecordedStep { work: zero(m[1]), after: &[] },
        RecordedStep { work: copy(0), after: &[] },
        RecordedStep { work: work(&sums[0]), after: &[0, 1] },
    ];
    let executable = d.device.record(&Recording { name: "r", steps: &steps }).unwrap();
    upload(&*t, m[2], &[0; LEN]).unwrap();
    d.finish(&*t).unwrap();
    let read = |address| {
        let mut found = [0; LEN];
        download(&*s, &mut found, address).unwrap();
        d.finish(&*s).unwrap();
        found[LEN - 1]
    };
    // Nothing was demanded yet: the first launch is under way as it changes.
    s.replay(&executable, "a recording").unwrap();
    executable.update(0, &zero(m[2])).unwrap();
    executable.update(1, &copy(1)).unwrap();
    executable.update(2, &work(&sums[1])).unwrap();
    assert_eq!((read(m[1]), read(m[2])), (8, 0));
    s.replay(&executable, "a recording").unwrap();
    assert_eq!((read(m[1]), read(m[2])), (8, 71));
    assert_eq!(code(executable.update(3, &copy(1))), Code::InvalidArgument);
    let error = executable.update(2, &copy(1)).unwrap_err();
    assert_eq!(error.message(), "step 2 cannot become copy");
    assert_eq!(d.texts(), [""; 0]);
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let (d, other) = (Device::default(), Device::default());
    let (s, a) = (d.stream("s"), d.memory("a"));
    let error = record(&d, &[node(&d, 1, &[], a, &[]), node(&d, 2, &[], a, &[1])]).unwrap_err();
    assert_eq!(error.message(), "engine emulated:0: recording 'r': step 1, node '2', comes after step 1");
    let error = record(&d, &[node(&d, 1, &[], 64, &[])]).unwrap_err();
    assert!(
        error.message().starts_with("emulated:0: recording 'r': node '1': output 0: 256 bytes at 0x40"),
        "{}",
        error.message()
    );
    let executable = record(&other, &[]).unwrap();
    assert_eq!(code(s.replay(&executable, "a recording")), Code::InvalidArgument);
    // One without steps does nothing.
    let t = other.device.stream(&DeviceStreamAttr { name: "t", priority: 0 }).unwrap();
    t.replay(&executable, "a recording").unwrap();
    other.finish(&*t).unwrap();
}
