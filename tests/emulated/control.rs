//! Branches and loops in recordings: what they compute, in any order that the edges allow; what the checker finds in
//! them; failures inside; numbers and times.

use crate::devices::{Emulation, RaceKind};
use crate::kit::{Device, code, download, upload};
use crate::random::Random;
use crate::recordings::{
    BYTES, Does, Drawn, LEN, Node, SALTS, Site, cond, draw, has, less, nested, node, of_integers, repeat, run, sum,
    switch, without_each_edge, word,
};
use std::collections::BTreeSet;
use weir_core::base::time::Deadline;
use weir_core::base::{Code, dtype};
use weir_core::device::{
    Comparison, DeviceStream, Fill, HostAddress, Integer, Location, Predicate, RecordedBranch, RecordedLoop,
    RecordedStep, RecordedWork, Recording, Relation, Transfer,
};

/// A device with cells that have values.
struct Bench {
    d: Device,
    s: Box<dyn DeviceStream>,
    cells: Vec<i32>,
    addresses: Vec<usize>,
}

impl Bench {
    fn new(d: Device, cells: &[i32]) -> Bench {
        let s = d.stream("s");
        let addresses: Vec<usize> = (0..cells.len()).map(|i| d.memory(&format!("cell {i}"))).collect();
        let mut bench = Bench { d, s, cells: cells.to_vec(), addresses };
        bench.set(cells);
        bench
    }

    fn site(&self) -> Site<'_> {
        let kernels = SALTS.iter().map(|&salt| (salt, self.d.sum(salt))).collect();
        Site { device: &*self.d.device, cells: self.addresses.clone(), kernels }
    }

    fn set(&mut self, cells: &[i32]) {
        let arrays: Vec<[i32; LEN]> = cells.iter().map(|&value| [value; LEN]).collect();
        for (array, &address) in arrays.iter().zip(&self.addresses) {
            upload(&*self.s, address, array).unwrap();
        }
        self.d.finish(&*self.s).unwrap();
        self.cells = cells.to_vec();
    }

    fn read(&self) -> Vec<i32> {
        let mut found = vec![[0; LEN]; self.cells.len()];
        for (found, &address) in found.iter_mut().zip(&self.addresses) {
            download(&*self.s, found, address).unwrap();
        }
        self.d.finish(&*self.s).unwrap();
        found
            .iter()
            .map(|found| {
                assert!(found.iter().all(|&value| value == found[0]), "{found:?}");
                found[0]
            })
            .collect()
    }

    /// The recording does what the model says, each of some times; and is in order.
    fn check(&mut self, nodes: &[Node], times: usize) {
        let executable = self.site().record("recording 'r'", nodes).unwrap();
        for time in 0..times {
            let before = self.d.device.counters();
            self.s.replay(&executable, "a recording").unwrap();
            self.d.finish(&*self.s).unwrap();
            let after = self.d.device.counters();
            let steps = run(nodes, &mut self.cells);
            assert_eq!(self.read(), self.cells, "time {time}: {nodes:?}");
            assert_eq!(after.operations - before.operations, steps, "time {time}: {nodes:?}");
            assert_eq!(after.operations, after.completed);
        }
        assert_eq!(self.d.texts(), [""; 0], "{nodes:?}");
    }
}

fn checked(cells: &[i32]) -> Bench {
    Bench::new(Device::checked(), cells)
}

#[test]
fn a_loop_counts_and_may_not_run_at_all() {
    for seed in 0..20 {
        for times in [0, 1, 2, 9] {
            let d = if seed == 0 { Device::checked() } else { Device::seeded(seed) };
            let mut bench = Bench::new(d, &[0, times, 100]);
            let body = vec![sum(2, 1, 2, 0, &[]), less(1, &[0])];
            let nodes = [repeat("loop 'w'", word(1), body, &[]), sum(2, 2, 2, 1, &[0])];
            bench.check(&nodes, 3);
            assert_eq!(bench.cells[2], 4 * (2 * (100 + times * (times + 1) / 2) + 1) + 3);
        }
    }
}

#[test]
fn integers_of_every_type_are_read_as_they_are() {
    for (cells, nodes, expected) in of_integers() {
        let mut bench = checked(&cells);
        bench.check(&nodes, 1);
        assert_eq!(bench.cells, expected, "{nodes:?}");
    }
}

#[test]
fn loops_and_branches_inside_of_one_another() {
    for seed in 0..20 {
        let d = if seed == 0 { Device::checked() } else { Device::seeded(seed) };
        let (cells, nodes, expected) = nested();
        let mut bench = Bench::new(d, &cells);
        bench.check(&nodes, 2);
        assert_eq!(bench.cells, expected);
    }
}

#[test]
fn random_recordings_compute_what_one_step_after_the_other_does() {
    let (mut steps, mut shapes) = (0, BTreeSet::new());
    for seed in 0..60 {
        let Drawn { nodes, cells } = draw(&mut Random::new(seed));
        let d = if seed % 4 == 0 { Device::checked() } else { Device::seeded(seed) };
        let values: Vec<i32> = (0..cells as i32).map(|i| if i % 3 == 2 { -i } else { i % 4 }).collect();
        let mut bench = Bench::new(d, &values);
        bench.check(&nodes, 2);
        steps += run(&nodes, &mut values.clone());
        shapes.insert(nodes.len());
    }
    assert!(steps > 500, "{steps} steps, {shapes:?}");
}

#[test]
fn every_edge_that_is_left_out_inside_or_outside_is_reported() {
    let mut tried = 0;
    for seed in 0..40 {
        let Drawn { nodes, cells } = draw(&mut Random::new(seed));
        // What a seed draws only runs on demand: what is submitted is checked, and never runs.
        let bench = Bench::new(Device::seeded(1 + seed), &vec![0; cells]);
        let site = bench.site();
        for _ in 0..2 {
            bench.s.replay(&site.record("whole", &nodes).unwrap(), "a recording").unwrap();
        }
        assert_eq!(bench.d.texts(), [""; 0]);
        without_each_edge(&nodes, &mut |changed, before, then| {
            bench.s.replay(&site.record("less", changed).unwrap(), "a recording").unwrap();
            let races = bench.d.device.races();
            let is_it = |first: &str, second: &str| has(before, first) && has(then, second);
            let found = races.iter().find(|race| is_it(&race.first.name, &race.second.name));
            let Some(found) = found else { panic!("{} before {}: {:?}", before.name, then.name, bench.d.texts()) };
            assert!(found.text.starts_with("missing edge: "), "{}", found.text);
            bench.d.device.clear_races();
            tried += 1;
        });
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn a_report_names_the_branch_or_loop_or_what_is_inside() {
    let bench = checked(&[0; 5]);
    let (site, mut number) = (bench.site(), bench.d.device.counters().operations);
    let mut find = |nodes: &[Node]| {
        bench.s.replay(&site.record("r", nodes).unwrap(), "a recording").unwrap();
        bench.d.finish(&*bench.s).unwrap();
        let texts = bench.d.texts();
        bench.d.device.clear_races();
        let first = std::mem::replace(&mut number, bench.d.device.counters().operations) + 1;
        (texts, first)
    };
    // The predicate is read while somebody writes it.
    let (texts, n) = find(&[sum(2, 2, 1, 0, &[]), repeat("loop 'w'", word(1), vec![less(1, &[])], &[])]);
    let text = format!(
        "missing edge: loop 'w' (operation {}, stream 's') reads bytes 0 to 4 of cell 1 while 1 = 2 + 2 + 0 (operation {n}, \
         stream 's') may still write them",
        n + 1
    );
    assert_eq!(texts[0], text);
    assert_eq!(texts.len(), 3, "its body reads and writes it, too: {texts:?}");
    // What is behind the branch uses what one of its lists writes; inside counts as the branch.
    let lists = vec![vec![sum(2, 2, 3, 0, &[])], vec![sum(2, 2, 4, 1, &[])]];
    let (texts, n) = find(&[switch("switch 's'", word(1), lists, &[]), sum(4, 4, 2, 1, &[])]);
    assert_eq!(texts.len(), 2, "{texts:?}");
    let text = format!(
        "missing edge: 2 = 4 + 4 + 1 (operation {}, stream 's') reads bytes 0 to 256 of cell 4 while 4 = 2 + 2 + 1 (operation \
         {n}, stream 's') may still write them",
        n + 1
    );
    assert!(texts.contains(&text), "{text}: {texts:?}");
    // Two lists of one branch never run both, and a loop's times follow one another.
    let lists = [vec![sum(2, 2, 3, 0, &[])], vec![sum(3, 3, 3, 1, &[]), sum(3, 3, 4, 1, &[0])]];
    let body = vec![sum(3, 4, 2, 0, &[]), cond("cond", word(1), lists, &[0]), less(1, &[1])];
    assert_eq!(find(&[repeat("loop", word(1), body, &[])]).0, [""; 0]);
}

#[test]
fn others_are_ordered_with_what_is_inside_by_waits() {
    let bench = checked(&[0, 2, 0]);
    let (site, t) = (bench.site(), bench.d.stream("t"));
    let nodes = [repeat("loop", word(1), vec![less(1, &[]), sum(2, 2, 2, 1, &[])], &[])];
    let executable = site.record("r", &nodes).unwrap();
    let mut found = [0; LEN];
    bench.s.replay(&executable, "a recording").unwrap();
    let event = bench.d.event();
    bench.s.record(&event).unwrap();
    t.wait(&event).unwrap();
    download(&*t, &mut found, bench.addresses[2]).unwrap();
    bench.d.finish(&*t).unwrap();
    assert_eq!((bench.d.texts(), found), (vec![], [3; LEN]));
    bench.s.replay(&executable, "a recording").unwrap();
    download(&*t, &mut found, bench.addresses[2]).unwrap();
    bench.d.finish(&*t).unwrap();
    bench.d.finish(&*bench.s).unwrap();
    let races = bench.d.device.races();
    assert_eq!((races.len(), races[0].kind, races[0].second.name.as_str()), (1, RaceKind::ReadAfterWrite, "download"));
    assert!(races[0].text.starts_with("missing wait: "), "{}", races[0].text);
    bench.d.device.clear_races();
    bench.s.replay(&executable, "a recording").unwrap();
    bench.d.device.deallocate(bench.addresses[2], BYTES);
    assert_eq!(bench.d.device.races()[0].kind, RaceKind::FreedInUse);
    bench.d.finish(&*bench.s).unwrap();
}

#[test]
fn strict_devices_fail_what_is_inside_when_it_begins() {
    for seed in [0, 3] {
        let flags = Emulation::CHECK | Emulation::STRICT;
        let bench = Bench::new(Device::new(Emulation { seed, flags, ..Emulation::default() }), &[0, 3, 0, 0]);
        let body = vec![sum(2, 2, 2, 1, &[]), sum(2, 2, 3, 0, &[]), less(1, &[0, 1])];
        let list = vec![repeat("loop", word(1), body, &[])];
        let executable = bench.site().record("r", &[cond("cond", word(1), [vec![], list], &[])]).unwrap();
        bench.s.replay(&executable, "a recording").unwrap();
        let error = bench.d.finish(&*bench.s).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(error.message().contains("missing edge: 3 = 2 + 2 + 0"), "{}", error.message());
    }
}

#[test]
fn a_failure_inside_ends_the_launch() {
    // The cond, the loop's look, 3 times: two steps and the look; what follows.
    let steps = |k: u64| k + 4;
    for seed in [0, 1, 2] {
        for k in 1..=12 {
            let d = Device::new(Emulation { seed, fail_operation: steps(k), ..Emulation::default() });
            let mut bench = Bench::new(d, &[0, 3, 0, 0]);
            let body = vec![sum(2, 2, 2, 1, &[]), less(1, &[0])];
            let list = vec![repeat("loop 'w'", word(1), body, &[])];
            let nodes = [cond("cond 'c'", word(1), [vec![], list], &[]), sum(2, 2, 3, 0, &[0])];
            let executable = bench.site().record("r", &nodes).unwrap();
            bench.s.replay(&executable, "a recording").unwrap();
            let error = bench.d.finish(&*bench.s).unwrap_err().message().to_owned();
            // Those of the recording's own list have the first two numbers.
            let [cond, end, look, add, count] = ["cond 'c'", "3 = 2", "loop 'w'", "2 = 2", "1 = 1"];
            let names = [cond, end, look, add, count, look, add, count, look, add, count, look];
            let expected = format!("operation {}: {}", steps(k), names[k as usize - 1]);
            assert!(error.contains(&expected) && error.contains("failed, as asked"), "{k}: {error}");
            assert_eq!(bench.d.device.counters().completed, bench.d.device.counters().operations);
            bench.s.clear_error();
            let values = [0, 2, 1, 0];
            bench.set(&values);
            bench.check(&nodes, 2);
        }
    }
    let bench = Bench::new(Device::new(Emulation { lose_operation: 4, ..Emulation::default() }), &[0, 1]);
    let executable = bench.site().record("r", &[repeat("loop", word(1), vec![less(1, &[])], &[])]).unwrap();
    let event = bench.d.event();
    bench.s.replay(&executable, "a recording").unwrap();
    let lost = bench.s.record(&event).and_then(|()| event.synchronize(Deadline::NEVER));
    assert_eq!(code(lost), Code::DeviceLost);
    assert_eq!(code(bench.d.device.event(false)), Code::DeviceLost);
}

#[test]
fn counts_are_of_what_was_done() {
    let bench = checked(&[0, 2, 1, 0, 0]);
    let body = vec![
        less(1, &[]),
        cond(
            "cond",
            word(2),
            [
                vec![sum(3, 3, 3, 1, &[]), sum(3, 3, 3, 1, &[0])],
                vec![
                    node("copy", Does::Copy { to: 4, from: 3 }, &[]),
                    node("fill", Does::Fill { cell: 3, value: 1 }, &[0]),
                ],
            ],
            &[],
        ),
    ];
    let nodes = [repeat("loop", word(1), body, &[]), sum(3, 4, 3, 0, &[0])];
    let executable = bench.site().record("r", &nodes).unwrap();
    let before = bench.d.device.counters();
    bench.s.replay(&executable, "a recording").unwrap();
    bench.d.finish(&*bench.s).unwrap();
    let after = bench.d.device.counters();
    let less = |a: u64, b: u64| a - b;
    // The loop's looks 3, and in each of 2 times less, cond, copy, fill; and the last sum.
    assert_eq!(less(after.operations, before.operations), 3 + 2 * 4 + 1);
    assert_eq!(less(after.launches, before.launches), 3);
    assert_eq!(less(after.copies, before.copies), 2);
    assert_eq!(less(after.fills, before.fills), 2);
    assert_eq!(less(after.replays, before.replays), 1);
    assert_eq!(after.pageable_copies, before.pageable_copies);
}

#[test]
fn times_of_a_loop_pass_one_after_the_other() {
    const MS: u64 = 1_000_000;
    let emulation = Emulation { kernel_ns: 2 * MS, latency_ns: MS, ..Emulation::default() };
    let took = || {
        let bench = Bench::new(Device::new(emulation), &[0, 4, 0, 0, 0, 0]);
        let body = vec![less(1, &[]), sum(2, 2, 2, 1, &[]), sum(3, 3, 3, 1, &[]), sum(4, 4, 4, 1, &[])];
        let nodes = [repeat("loop", word(1), body, &[]), sum(5, 5, 5, 1, &[])];
        let executable = bench.site().record("r", &nodes).unwrap();
        let (begin, end) = (bench.d.event(), bench.d.event());
        bench.s.record(&begin).unwrap();
        bench.s.replay(&executable, "a recording").unwrap();
        bench.s.record(&end).unwrap();
        bench.d.finish(&*bench.s).unwrap();
        end.elapsed_ns(&*begin).unwrap()
    };
    // Five looks, and four times what runs side by side. Who submits may be held up between the calls: once is enough.
    let least = (5 + 4 * 3) * MS as i64;
    let met =
        (0..20).map(|_| took()).inspect(|&took| assert!(took >= least)).find(|&took| took < least + 9 * MS as i64);
    assert!(met.is_some(), "one step of the body after the other takes 41 ms");
}

#[test]
fn an_update_is_for_steps_outside() {
    let mut bench = checked(&[0, 2, 0, 40]);
    let nodes = [sum(3, 3, 2, 0, &[]), repeat("loop", word(1), vec![less(1, &[]), sum(2, 2, 2, 1, &[])], &[0])];
    let executable = bench.site().record("r", &nodes).unwrap();
    let other = [sum(3, 3, 2, 1, &[]), repeat("loop", word(2), vec![less(2, &[])], &[0])];
    bench.site().with(&other, Vec::new(), &mut |steps| {
        executable.update(0, &steps[0].work).unwrap();
        executable.update(1, &steps[1].work).unwrap();
        assert_eq!(code(executable.update(1, &steps[0].work)), Code::InvalidArgument);
        assert_eq!(code(executable.update(0, &steps[1].work)), Code::InvalidArgument);
    });
    bench.s.replay(&executable, "a recording").unwrap();
    run(&[other[0].clone(), nodes[1].clone()], &mut bench.cells);
    assert_eq!(bench.read(), bench.cells);
    assert_eq!(bench.cells[2], (81 * 2 + 1) * 2 + 1);
}

#[test]
fn what_means_nothing_is_refused() {
    let d = Device::default();
    d.device.control_flow().unwrap();
    let (m, mut page) = (d.memory("m"), [0u8; 64]);
    let integer = Integer { address: m, dtype: dtype::S32 };
    let refused = |work: RecordedWork<'_>| {
        let steps = [RecordedStep { work, after: &[] }];
        d.device.record(&Recording { name: "recording 'r'", steps: &steps }).unwrap_err().message().to_owned()
    };
    let again = |predicate: Integer, body| {
        let predicate = predicate.into();
        RecordedWork::Loop(RecordedLoop { name: "loop 'w'", predicate, body, behind: None })
    };
    fn choose<'a>(choice: Integer, is_cond: bool, branches: &'a [&'a [RecordedStep<'a>]]) -> RecordedWork<'a> {
        RecordedWork::Branch(RecordedBranch { name: "switch 's'", choice, is_cond, branches })
    }
    let fill = RecordedWork::Fill(Fill { name: "fill", address: m, bytes: 4, value: 0 });
    let late = [RecordedStep { work: fill, after: &[] }, RecordedStep { work: fill, after: &[1] }];
    assert_eq!(
        refused(again(Integer { dtype: dtype::F32, ..integer }, &[])),
        "engine emulated:0: recording 'r': loop 'w': its predicate is of f32, expected bool, u8, s8 or s32"
    );
    let text = refused(again(Integer { address: m + 2, ..integer }, &[]));
    assert!(text.contains("its predicate at 0x") && text.ends_with(" is not aligned as s32 is"), "{text}");
    let text = refused(again(Integer { address: 64, ..integer }, &[]));
    assert!(text.contains("loop 'w': its predicate is 4 bytes at 0x40, which are not in the memory"), "{text}");
    let compare = |dtype, addresses, behind| {
        let predicate = Predicate::Comparison(Comparison { relation: Relation::Lt, dtype, addresses });
        refused(RecordedWork::Loop(RecordedLoop { name: "loop 'w'", predicate, body: &[], behind }))
    };
    assert_eq!(
        compare(dtype::F16, [m, m], None),
        "engine emulated:0: recording 'r': loop 'w': its predicate compares numbers of f16, expected f32 or s32"
    );
    let text = compare(dtype::F32, [m, m + 1], None);
    assert!(text.contains("its predicate at 0x") && text.ends_with(" is not aligned as f32 is"), "{text}");
    let text = compare(dtype::S32, [m, 64], None);
    assert!(text.contains("loop 'w': its predicate is 4 bytes at 0x40, which are not in the memory"), "{text}");
    assert_eq!(
        compare(dtype::S32, [m, m], Some(&[0])),
        "engine emulated:0: recording 'r': loop 'w': it is read behind step 0 of 0"
    );
    assert_eq!(
        refused(choose(integer, false, &[])),
        "engine emulated:0: recording 'r': switch 's': it has 0 branches, expected 1 or more"
    );
    assert_eq!(
        refused(choose(integer, true, &[&[]])),
        "engine emulated:0: recording 'r': switch 's': it has 1 branches, expected 2"
    );
    assert_eq!(
        refused(choose(integer, false, &[&[], &late])),
        "engine emulated:0: recording 'r': switch 's': step 1, fill, comes after step 1"
    );
    // SAFETY: refused.
    let host = Location::Host(unsafe { HostAddress::new(page.as_mut_ptr() as usize) });
    let copy = RecordedWork::Copy(Transfer { name: "copy", to: host, from: Location::Device(m), bytes: 64 });
    let text = refused(again(integer, &[RecordedStep { work: copy, after: &[] }]));
    let expected = "copy: a copy inside of a branch or loop must be between bytes of the device's or of pinned memory";
    assert!(text.ends_with(expected), "{text}");
    // Of pinned memory it may be.
    let pinning = d.device.pinning().unwrap();
    let pinned = pinning.allocate_host(64, "pinned").unwrap();
    // SAFETY: memory that is there until the end.
    let (s, to) = (d.stream("s"), Location::Host(unsafe { HostAddress::new(pinned) }));
    let copy = RecordedWork::Copy(Transfer { name: "copy", to, from: Location::Device(m), bytes: 64 });
    let fill = RecordedWork::Fill(Fill { name: "fill", address: m, bytes: 64, value: 7 });
    let lists: [&[RecordedStep<'_>]; 1] =
        [&[RecordedStep { work: fill, after: &[] }, RecordedStep { work: copy, after: &[0] }]];
    let steps = [RecordedStep { work: choose(integer, false, &lists), after: &[] }];
    s.replay(&d.device.record(&Recording { name: "r", steps: &steps }).unwrap(), "a recording").unwrap();
    d.finish(&*s).unwrap();
    // SAFETY: so many bytes that were allocated above, and what writes them is done.
    page = unsafe { std::ptr::with_exposed_provenance::<[u8; 64]>(pinned).read() };
    assert_eq!(page, [7; 64]);
    pinning.deallocate_host(pinned, 64);
}

#[test]
fn a_loop_without_end_holds_up_its_stream_alone() {
    let bench = checked(&[0, 1, 0]);
    let executable = bench.site().record("r", &[repeat("loop", word(1), vec![sum(2, 2, 2, 1, &[])], &[])]).unwrap();
    bench.s.replay(&executable, "a recording").unwrap();
    let (event, t) = (bench.d.event(), bench.d.stream("t"));
    bench.s.record(&event).unwrap();
    assert!(!event.synchronize(Deadline::after(20_000_000)).unwrap());
    let mut found = [0; LEN];
    download(&*t, &mut found, bench.addresses[1]).unwrap();
    bench.d.finish(&*t).unwrap();
    assert_eq!(found, [1; LEN]);
}
