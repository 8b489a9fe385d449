//! What a device was given and nobody reads: a run ends behind it all the same, and so does whatever waits for
//! everything.

use crate::control::{Draws, ways};
use crate::kit::emulated::Emulation;
use crate::kit::integers::Builder;
use crate::kit::random::Random;
use crate::kit::run::{cpu, execute, integer, run, tensor};
use crate::wrapped::{Mistake, Wrapped, engine};
use crate::{checked, reports};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use weir_core::base::{Ref, Result};
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Graph, Program, RunOptions, ValueId};
use weir_core::kernel::Task;

/// A count of the kernels that a device has done, and a kernel that counts.
type Count = Arc<AtomicU64>;

fn counted(builder: &mut Builder, on: &Ref<Engine>, x: ValueId, count: &Count) -> ValueId {
    let count = Arc::clone(count);
    let host = std::mem::replace(&mut builder.engine, on.clone());
    let value = builder.op(&[x], move |x| {
        count.fetch_add(1, SeqCst);
        x[0] + 1
    });
    builder.engine = host;
    value
}

/// Two outputs: one of a device's, one of the host's.
fn branch(name: &str, on: &Ref<Engine>, count: &Count) -> Graph {
    let (mut builder, x) = Builder::of(name, 1);
    let there = counted(&mut builder, on, x[0], count);
    let here = builder.op(&[x[0]], |x| x[0] * 2);
    builder.giving(&[there, here])
}

struct Nothing;

impl Task for Nothing {
    fn run(&self) -> Result<()> {
        Ok(())
    }
}

/// Where the branch is whose first output nobody reads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Around {
    Cond,
    /// Nothing but a task waits for it.
    Task,
    Case,
    Loop,
    Nested,
    /// Behind a switch; and there where it cannot become a cond's, since somebody asks for the merge's index.
    Switched,
    Guarded,
}

fn graph(around: Around, on: &Ref<Engine>, count: &Count) -> Graph {
    let branches = || (branch("zero", on, count), branch("one", on, count));
    let (mut builder, x) = Builder::of("unused", 2);
    let (zero, one) = branches();
    let value = match around {
        Around::Cond => builder.graph.add_cond("choice", x[0], &zero, &one, &x[1..]).unwrap().output(1),
        Around::Case => builder.graph.add_case("choice", x[0], &[&zero, &one, &zero], &x[1..]).unwrap().output(1),
        Around::Task => {
            let choice = builder.graph.add_cond("choice", x[0], &zero, &one, &x[1..]).unwrap();
            let task = builder.graph.add_task("behind", Arc::new(Nothing), 0).unwrap();
            builder.graph.add_control_edge(choice, task).unwrap();
            builder.op(&[x[1]], |x| x[0] * 2)
        }
        Around::Loop => {
            let (mut more, y) = Builder::of("more", 2);
            let goes_on = more.op(&[y[0]], |y| i32::from(y[0] > 0));
            let more = more.giving(&[goes_on]);
            let (mut body, y) = Builder::of("body", 2);
            let choice = body.graph.add_cond("choice", y[0], &zero, &one, &y[1..]).unwrap();
            let left = body.op(&[y[0]], |y| y[0] - 1);
            let next = body.op(&[choice.output(1)], |y| y[0] % 1000);
            let body = body.giving(&[left, next]);
            let three = builder.op(&[x[0]], |x| 3 + x[0]);
            builder.graph.add_while("loop", &more, &body, &[three, x[1]], &[], 4).unwrap().output(1)
        }
        Around::Switched | Around::Guarded => {
            let switch = builder.graph.add_switch("switch", x[1], x[0]).unwrap();
            let choice = builder.graph.add_cond("choice", x[0], &zero, &one, &[switch.output(1)]).unwrap();
            let other = builder.op(&[switch.output(0)], |x| x[0] * 2);
            let merge = builder.graph.add_merge("merge", &[choice.output(1), other]).unwrap();
            match around {
                Around::Guarded => builder.sum(&[merge.output(0), merge.output(1)]),
                _ => merge.output(0),
            }
        }
        Around::Nested => {
            let nested = |name: &str| {
                let (mut builder, y) = Builder::of(name, 2);
                let (zero, one) = branches();
                let choice = builder.graph.add_cond("inner", y[0], &zero, &one, &y[1..]).unwrap();
                builder.giving(&[choice.output(0), choice.output(1)])
            };
            let (zero, one) = (nested("zero"), nested("one"));
            builder.graph.add_cond("outer", x[0], &zero, &one, &x).unwrap().output(1)
        }
    };
    builder.giving(&[value])
}

/// The device has done all that it was given, and found nothing wrong.
fn is_calm(device: &Wrapped, what: &dyn std::fmt::Debug) {
    let counters = device.inner.counters();
    assert_eq!(counters.completed, counters.operations, "{what:?}: work that nobody has waited for");
    assert_eq!(reports(device), Vec::<String>::new(), "{what:?}");
}

/// Slow enough that nothing is done by chance when a run ends.
fn slow() -> Emulation {
    Emulation { flags: Emulation::CHECK, kernel_ns: 2_000_000, ..Emulation::default() }
}

#[test]
fn a_run_ends_behind_the_work_of_a_branch_that_nobody_reads() {
    use Around::{Case, Cond, Guarded, Loop, Nested, Switched, Task};
    for around in [Cond, Task, Case, Loop, Nested, Switched, Guarded] {
        for (way, options) in ways().iter().enumerate() {
            let (device, engine) = engine("placed-unused", slow(), Mistake::None, 1 + way as u32);
            let count = Count::default();
            let program =
                Program::compile(&graph(around, &engine, &count), vec![cpu(), engine.clone()], options).unwrap();
            for round in 0..4 {
                let found = run(&program, &[round % 2, 21 + round], &RunOptions::default());
                assert!(found.is_ok(), "{around:?}, way {way}, run {round}: {found:?}");
                is_calm(&device, &(around, way, round));
            }
            let least = if matches!(around, Switched | Guarded) { 2 } else { 4 };
            assert!(count.load(SeqCst) >= least, "{around:?}: what is not read was not computed");
        }
    }
}

/// The same graph on these engines, with as many inputs and outputs as are read by few of its nodes.
fn drawn(graph: u64, on: &[&Ref<Engine>]) -> Graph {
    let mut random = Random::new(0x00D0_0000 + graph);
    let mut draws = Draws { random: &mut random, on: on.iter().map(|&engine| engine.clone()).collect() };
    draws.graph("random", 3, 2, 2)
}

/// How many graphs: WEIR_TEST_UNUSED=20000 takes a while; WEIR_TEST_UNUSED_FIRST=<seed> begins elsewhere.
fn graphs() -> std::ops::Range<u64> {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let first = number("WEIR_TEST_UNUSED_FIRST", 0);
    first..first + number("WEIR_TEST_UNUSED", 150)
}

#[test]
fn random_graphs_leave_nothing_under_way_whatever_is_read_of_them() {
    let mut late = Vec::new();
    for graph in graphs() {
        let host = cpu();
        let settings = Emulation { kernel_ns: if graph.is_multiple_of(3) { 20_000 } else { 0 }, ..checked(graph % 5) };
        let (first, a) = engine("placed-unused-a", settings, Mistake::None, 1 + graph as u32 % 3);
        let (second, b) = engine("placed-unused-b", settings, Mistake::None, 1);
        // One device, or two; and the host does something in most of them.
        let on = match graph % 4 {
            0 => [&a, &host, &host],
            1 => [&a, &a, &host],
            2 => [&a, &b, &host],
            _ => [&a, &b, &a],
        };
        let options = CompileOptions { partial_runs: 4, ..ways()[graph as usize / 4 % 3].clone() };
        let engines = vec![cpu(), a.clone(), b.clone()];
        let program = Program::compile(&drawn(graph, &on), engines, &options).unwrap();
        let expected = Program::compile(&drawn(graph, &[&host; 3]), vec![cpu()], &CompileOptions::default()).unwrap();
        let parts = [None, None, Some(vec![0]), None, Some(vec![1]), Some(vec![0])];
        for (round, outputs) in parts.into_iter().enumerate() {
            let inputs = [round as i32, 7 - round as i32, graph as i32 % 100];
            let wanted = run(&expected, &inputs, &RunOptions::default()).unwrap();
            let wanted = match &outputs {
                None => wanted,
                Some(outputs) => outputs.iter().map(|&output: &usize| wanted[output]).collect(),
            };
            let found = part(&program, &inputs, wanted.len(), outputs.as_deref());
            let what = (graph, round, outputs);
            match found {
                Ok(found) => assert_eq!(found, wanted, "{what:?}"),
                Err(error) => late.push(format!("{what:?}: {error}")),
            }
            for device in [&first, &second] {
                let counters = device.inner.counters();
                if counters.operations != counters.completed {
                    late.push(format!("{what:?}: {} of {} done", counters.completed, counters.operations));
                }
                late.extend(reports(device).into_iter().map(|text| format!("{what:?}: {text}")));
            }
        }
    }
    assert!(late.is_empty(), "{} finds, the first: {:#?}", late.len(), &late[..late.len().min(6)]);
}

/// A run that has so many outputs.
fn part(program: &Ref<Program>, inputs: &[i32], outputs: usize, wanted: Option<&[usize]>) -> Result<Vec<i32>> {
    let host = cpu();
    let inputs: Vec<_> = inputs.iter().map(|&value| tensor(&host, value)).collect();
    let outputs: Vec<_> = (0..outputs).map(|_| tensor(&host, -99)).collect();
    let part = wanted.map(|wanted| program.part(wanted)).transpose()?;
    execute(part.as_ref().unwrap_or(program), &inputs, &outputs, &RunOptions::default())?;
    Ok(outputs.iter().map(|tensor| integer(tensor)).collect())
}
