//! Compares the checker with reachability in a program's graph: random programs of queues, events, and a host that
//! looks at some of these.
#![forbid(unsafe_code)]

use super::checker::{Checker, Clash, Point, Ranges};
use super::schedule::Scheduler;
use std::collections::BTreeSet;
use std::ops::Range;

const QUEUES: usize = 4;
const EVENTS: usize = 5;
const BYTES: usize = 12;

/// A step of a program, with the steps that it comes after.
struct ProgramStep {
    after: Vec<usize>,
    /// Queue, number, reads, writes.
    operation: Option<(usize, u64, Range<usize>, Range<usize>)>,
}

/// The graph, with all predecessors of each node.
#[derive(Default)]
struct ProgramGraph {
    nodes: Vec<ProgramStep>,
    behind: Vec<Vec<bool>>,
}

impl ProgramGraph {
    fn add(&mut self, after: &[Option<usize>], operation: Option<(usize, u64, Range<usize>, Range<usize>)>) -> usize {
        let after: Vec<usize> = after.iter().copied().flatten().collect();
        let mut behind = vec![false; self.nodes.len()];
        let mut open = after.clone();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut behind[node], true) {
                open.extend(&self.nodes[node].after);
            }
        }
        self.nodes.push(ProgramStep { after, operation });
        self.behind.push(behind);
        self.nodes.len() - 1
    }

    fn is_ordered(&self, earlier: usize, later: usize) -> bool {
        self.behind[later][earlier]
    }
}

/// The expected hits for the newest node: for each byte the last write, and each queue's last read since then.
fn expected(graph: &ProgramGraph, newest: usize) -> BTreeSet<(u8, usize, u64)> {
    let (_, _, reads, writes) = graph.nodes[newest].operation.clone().unwrap();
    let mut found = BTreeSet::new();
    for byte in 0..BYTES {
        let (mut last, mut readers): (Option<usize>, Vec<usize>) = (None, Vec::new());
        for (at, node) in graph.nodes[..newest].iter().enumerate() {
            let Some((queue, _, reads, writes)) = &node.operation else { continue };
            if reads.contains(&byte) {
                readers.retain(|&other| graph.nodes[other].operation.as_ref().unwrap().0 != *queue);
                readers.push(at);
            }
            if writes.contains(&byte) {
                (last, readers) = (Some(at), Vec::new());
            }
        }
        let mut find = |clash: Clash, other: usize| {
            if !graph.is_ordered(other, newest) {
                let (queue, number, ..) = graph.nodes[other].operation.clone().unwrap();
                found.insert((clash as u8, queue, number));
            }
        };
        if reads.contains(&byte) {
            last.into_iter().for_each(|other| find(Clash::ReadAfterWrite, other));
        }
        if writes.contains(&byte) {
            last.into_iter().for_each(|other| find(Clash::WriteAfterWrite, other));
            readers.into_iter().for_each(|other| find(Clash::WriteAfterRead, other));
        }
    }
    found
}

/// Whether two unordered operations use the same byte, and one of them writes it.
fn has_race(graph: &ProgramGraph) -> bool {
    let meets = |a: &Range<usize>, b: &Range<usize>| a.start.max(b.start) < a.end.min(b.end);
    (0..graph.nodes.len()).any(|later| {
        let Some((_, _, reads, writes)) = &graph.nodes[later].operation else { return false };
        (0..later).any(|earlier| {
            let Some((_, _, other_reads, other_writes)) = &graph.nodes[earlier].operation else { return false };
            let clash = meets(reads, other_writes) || meets(writes, other_reads) || meets(writes, other_writes);
            clash && !graph.is_ordered(earlier, later)
        })
    })
}

fn ranges(range: &Range<usize>) -> Ranges {
    if range.is_empty() { Ranges::new() } else { Ranges::from_iter([range.clone()]) }
}

/// Runs one program; gives whether it has a race, and the number of operations with hits.
fn program(seed: u64) -> (bool, usize) {
    let mut random = Scheduler::new(seed);
    let mut checker = Checker::default();
    let slots: Vec<usize> = (0..QUEUES).map(|i| checker.open(1, &format!("q{i}"))).collect();
    let mut points: Vec<Option<(Point, usize)>> = vec![None; EVENTS];
    let mut graph = ProgramGraph::default();
    let (mut tails, mut host, mut number, mut finds) = ([None; QUEUES], None, 0, 0);
    // Some programs are short, or wait often, or use few queues.
    let (waits, queues, steps) = (2 + random.draw(6), 1 + random.draw(QUEUES), 4 + random.draw(50));
    for _ in 0..steps {
        let queue = random.draw(queues);
        match random.draw(2 + waits) {
            0 | 1 => {
                let mut range = || {
                    let start = random.draw(BYTES);
                    start..(start + random.draw(5)).min(BYTES)
                };
                let (reads, writes) = (range(), range());
                number += 1;
                let node = graph.add(&[tails[queue], host], Some((queue, number, reads.clone(), writes.clone())));
                tails[queue] = Some(node);
                let hits = checker.operation(slots[queue], number, "op", (&ranges(&reads), &ranges(&writes)), None);
                for hit in &hits {
                    assert!(hit.bytes.start < hit.bytes.end && hit.bytes.end <= BYTES, "seed {seed}");
                }
                let got: BTreeSet<_> = hits
                    .iter()
                    .map(|hit| (hit.clash as u8, hit.other.slot as usize, checker.who(&hit.other).number))
                    .collect();
                assert_eq!(got, expected(&graph, node), "seed {seed}, operation {number}");
                finds += usize::from(!got.is_empty());
            }
            2 => {
                let node = graph.add(&[tails[queue], host], None);
                tails[queue] = Some(node);
                let mut point = Point::default();
                checker.record(slots[queue], &mut point);
                points[random.draw(EVENTS)] = Some((point, node));
            }
            3 => {
                if let Some((point, record)) = &points[random.draw(EVENTS)] {
                    host = Some(graph.add(&[host, Some(*record)], None));
                    checker.observe(point);
                }
            }
            _ => {
                if let Some((point, record)) = &points[random.draw(EVENTS)] {
                    tails[queue] = Some(graph.add(&[tails[queue], host, Some(*record)], None));
                    checker.wait(slots[queue], point);
                }
            }
        }
    }
    assert_eq!(has_race(&graph), finds > 0, "seed {seed}");
    (finds > 0, finds)
}

#[test]
fn finds_what_reachability_says_and_nothing_else() {
    let programs = if cfg!(debug_assertions) { 3_000 } else { 30_000 };
    let results: Vec<_> = (1..=programs).map(program).collect();
    let racy = results.iter().filter(|result| result.0).count();
    assert!(
        racy > results.len() / 5 && racy < results.len() * 4 / 5,
        "{racy} of {} programs have races",
        results.len()
    );
}

/// Operations that the host knows to be done are forgotten when there are many; all races are found nevertheless.
#[test]
fn what_the_host_has_seen_is_forgotten() {
    let mut checker = Checker::default();
    let (a, b) = (checker.open(1, "a"), checker.open(1, "b"));
    let mut point = Point::default();
    for number in 1..20_000 {
        let start = number as usize * 100;
        assert!(checker.operation(a, number, "op", (&Ranges::new(), &ranges(&(start..start + 50))), None).is_empty());
        checker.record(a, &mut point);
        checker.observe(&point);
    }
    assert!(checker.cells() < 1000, "{}", checker.cells());
    assert!(checker.operation(b, 20_000, "op", (&ranges(&(0..2_000_000)), &Ranges::new()), None).is_empty());
    checker.operation(a, 20_001, "late", (&Ranges::new(), &ranges(&(5..6))), None);
    let hits = checker.operation(b, 20_002, "op", (&ranges(&(0..10)), &Ranges::new()), None);
    assert_eq!(hits.len(), 1);
    assert_eq!(checker.who(&hits[0].other).name, "late");
}

/// A queue that has ended may leave its slot to another one, which knows nothing of it.
#[test]
fn a_place_is_taken_over_only_when_its_past_is_known() {
    let mut checker = Checker::default();
    let a = checker.open(1, "a");
    checker.operation(a, 1, "first", (&Ranges::new(), &ranges(&(0..4))), None);
    checker.close(a);
    let b = checker.open(1, "b");
    assert_ne!(a, b);
    assert_eq!(checker.operation(b, 2, "second", (&ranges(&(0..4)), &Ranges::new()), None).len(), 1);
    let mut point = Point::default();
    checker.record(b, &mut point);
    checker.observe(&point);
    checker.close(b);
    let c = checker.open(1, "c");
    assert_eq!(c, b, "the host has seen its end");
    assert_eq!(
        checker.operation(c, 3, "third", (&Ranges::new(), &ranges(&(2..8))), None).len(),
        1,
        "the first, not the second"
    );
    // Another device's numbers begin at 1 again.
    checker.forget(1);
    let d = checker.open(2, "d");
    assert_eq!(d, a);
    let e = checker.open(2, "e");
    checker.operation(d, 1, "of another device", (&Ranges::new(), &ranges(&(0..4))), None);
    let hits = checker.operation(e, 2, "too", (&ranges(&(0..4)), &Ranges::new()), None);
    assert_eq!(hits.len(), 1);
    assert_eq!(checker.who(&hits[0].other).number, 1);
}
