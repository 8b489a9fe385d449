//! Graphs whose nodes are on several engines: they compute what they compute on one.

use crate::by_hand::{ByHand, device};
use crate::kit::integers::Builder;
use crate::kit::random::Random;
use crate::kit::run::{all_pools, cpu, execute, fact, on, run, tensor};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use weir_core::base::{Code, Error, Ref};
use weir_core::device::Device;
use weir_core::engine::{Engine, EngineAttr, MemoryMode};
use weir_core::graph::{CompileOptions, NodeId, Program, RunOptions, ValueId};

/// A device that works by itself.
struct Worked {
    device: Arc<ByHand>,
    engine: Ref<Engine>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Worked {
    fn new(name: &str, max_streams: usize) -> Worked {
        let (kind, device) = device(name);
        let mut attr = EngineAttr::new(kind);
        attr.max_streams = max_streams;
        attr.memory_mode = Some(MemoryMode::Direct);
        let engine = Engine::create(kind, 0, Some(&attr)).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let (device, stop) = (device.clone(), stop.clone());
            move || {
                while !stop.load(SeqCst) {
                    device.run();
                    std::thread::sleep(Duration::from_micros(20));
                }
            }
        });
        Worked { device, engine, stop, thread: Some(thread) }
    }
}

impl Drop for Worked {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn compile(builder: &Builder, devices: &[&Worked]) -> Ref<Program> {
    let engines = [cpu()].into_iter().chain(devices.iter().map(|device| device.engine.clone())).collect();
    Program::compile(&builder.graph, engines, &CompileOptions::default()).unwrap()
}

/// Mixes its inputs so that their order and every one of them counts.
fn mix(x: &[i32]) -> i32 {
    x.iter().fold(17, |sum: i32, &x| sum.wrapping_mul(31).wrapping_add(x))
}

/// What nodes do: by the engine's number, and what they read.
struct Plan {
    nodes: Vec<(usize, Vec<usize>)>,
    outputs: Vec<usize>,
}

fn draw(random: &mut Random, inputs: usize, engines: usize) -> Plan {
    let n = 1 + random.below(30);
    let nodes = (0..n)
        .map(|i| {
            let count = 1 + random.below(3);
            (random.below(engines), (0..count).map(|_| random.below(inputs + i)).collect())
        })
        .collect();
    let outputs = (0..1 + random.below(4)).map(|_| random.below(inputs + n)).collect();
    Plan { nodes, outputs }
}

fn expected(plan: &Plan, inputs: &[i32]) -> Vec<i32> {
    let mut values = inputs.to_vec();
    for (_, reads) in &plan.nodes {
        let next = mix(&reads.iter().map(|&read| values[read]).collect::<Vec<_>>());
        values.push(next);
    }
    plan.outputs.iter().map(|&output| values[output]).collect()
}

fn build(plan: &Plan, inputs: usize, engines: &[Ref<Engine>]) -> Builder {
    let (mut builder, mut values) = Builder::of("random", inputs);
    for (engine, reads) in &plan.nodes {
        builder.engine = engines[*engine].clone();
        let reads: Vec<ValueId> = reads.iter().map(|&read| values[read]).collect();
        values.push(builder.op(&reads, mix));
    }
    plan.outputs.iter().for_each(|&output| builder.output(values[output]));
    builder
}

#[test]
fn random_graphs_on_three_engines_compute_the_same() {
    let mut random = Random::new(7);
    for streams in 0..=4 {
        let a = Worked::new(&format!("graphs-a{streams}"), streams);
        let b = Worked::new(&format!("graphs-b{streams}"), 5 - streams.max(1));
        let engines = [cpu(), a.engine.clone(), b.engine.clone()];
        for _ in 0..15 {
            let plan = draw(&mut random, 3, engines.len());
            let builder = build(&plan, 3, &engines);
            let program = compile(&builder, &[&a, &b]);
            for round in 0..3 {
                let inputs = [round, 5 - round, 11 * round];
                let pool = all_pools()[random.below(6)].clone();
                assert_eq!(
                    run(&program, &inputs, &on(pool.as_ref())).unwrap(),
                    expected(&plan, &inputs),
                    "{streams} streams"
                );
            }
        }
        // The last to let go of a program may be a thread of a pool that is on its way out of a run.
        let begun = std::time::Instant::now();
        while a.device.blocks_in_use() + b.device.blocks_in_use() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(20), "memory of programs that are gone");
            std::thread::yield_now();
        }
    }
}

#[test]
fn runs_at_once_do_not_meet() {
    let worked = Worked::new("graphs-at-once", 3);
    let engines = [cpu(), worked.engine.clone()];
    let mut random = Random::new(3);
    let plan = draw(&mut random, 3, 2);
    let program = compile(&build(&plan, 3, &engines), &[&worked]);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (program, plan) = (&program, &plan);
            scope.spawn(move || {
                for round in 0..40 {
                    let inputs = [thread, round, thread * round];
                    assert_eq!(run(program, &inputs, &RunOptions::default()).unwrap(), expected(plan, &inputs));
                }
            });
        }
    });
}

#[test]
fn branches_and_loops_have_nodes_on_engines() {
    let worked = Worked::new("graphs-control", 2);
    let there = |builder: &mut Builder| builder.engine = worked.engine.clone();
    // while (n > 0) { x = mix(x, n) on the device; n = n - 1 } with a cond inside that the device's value decides.
    let (mut condition, vars) = Builder::of("condition", 2);
    let goes_on = condition.op(&[vars[0]], |x| i32::from(x[0] > 0));
    condition.output(goes_on);
    let (mut body, vars) = Builder::of("body", 2);
    let next = body.op(&[vars[0]], |x| x[0] - 1);
    there(&mut body);
    let mixed = body.op(&[vars[1], vars[0]], mix);
    let odd = body.op(&[mixed], |x| x[0] & 1);
    let branch = |name: &str, by: i32| {
        let (mut branch, x) = Builder::of(name, 1);
        there(&mut branch);
        let first = branch.op(&x, move |x| x[0].wrapping_add(by));
        let second = branch.op(&[first], |x| x[0].wrapping_mul(3));
        branch.output(second);
        branch
    };
    let (then, otherwise) = (branch("then", 100), branch("otherwise", -7));
    let chosen = body.graph.add_cond("choice", odd, &then.graph, &otherwise.graph, &[mixed]).unwrap().output(0);
    body.output(next);
    body.output(chosen);
    let (mut main, x) = Builder::of("main", 2);
    there(&mut main);
    let start = main.op(&[x[1]], |x| x[0].wrapping_add(1));
    let looped = main.graph.add_while("loop", &condition.graph, &body.graph, &[x[0], start], &[], 4).unwrap();
    let last = main.op(&[looped.output(1)], |x| x[0].wrapping_sub(1));
    main.output(last);
    let program = compile(&main, &[&worked]);
    let reference = |n: i32, x: i32| {
        let (mut n, mut x) = (n, x.wrapping_add(1));
        while n > 0 {
            x = mix(&[x, n]);
            x = if x & 1 != 0 { x.wrapping_add(100) } else { x.wrapping_add(-7) }.wrapping_mul(3);
            n -= 1;
        }
        x.wrapping_sub(1)
    };
    for pool in all_pools() {
        for (n, x) in [(0, 3), (1, 4), (6, -9), (13, 77)] {
            assert_eq!(run(&program, &[n, x], &on(pool.as_ref())).unwrap(), [reference(n, x)], "{n} iterations");
        }
    }
}

#[test]
fn edges_without_data_hold_between_engines() {
    let worked = Worked::new("graphs-edges", 2);
    let seen = Arc::new(AtomicUsize::new(0));
    let (mut builder, x) = Builder::of("edges", 1);
    builder.engine = worked.engine.clone();
    let order = |at: usize, value: i32| {
        let seen = seen.clone();
        move |_: &[i32]| {
            assert_eq!(seen.fetch_add(1, SeqCst) % 3, at);
            value
        }
    };
    let first = builder.op(&x, order(0, 1));
    builder.engine = cpu();
    let second = builder.op(&x, order(1, 2));
    builder.engine = worked.engine.clone();
    let third = builder.op(&x, order(2, 3));
    // A value's number without its low bits is its node's.
    let node = |value: ValueId| NodeId::from(u64::from(value) & !0xffff);
    builder.graph.add_control_edge(node(first), node(second)).unwrap();
    builder.graph.add_control_edge(node(second), node(third)).unwrap();
    [first, second, third].into_iter().for_each(|value| builder.output(value));
    let program = compile(&builder, &[&worked]);
    for pool in all_pools() {
        assert_eq!(run(&program, &[0], &on(pool.as_ref())).unwrap(), [1, 2, 3]);
    }
}

#[test]
fn a_failure_names_node_and_engine_and_the_program_goes_on() {
    let worked = Worked::new("graphs-failure", 2);
    let (mut builder, x) = Builder::of("failure", 1);
    builder.engine = worked.engine.clone();
    let refuse = |x: &[i32]| if x[0] == 4 { Err(Error::new(Code::DataLoss, "four is too many")) } else { Ok(x[0] + 1) };
    let a = builder.named("counts", &x, refuse);
    let b = builder.op(&[a, x[0]], mix);
    builder.output(b);
    let program = compile(&builder, &[&worked]);
    for round in 0..20 {
        let result = run(&program, &[round % 5], &RunOptions::default());
        if round % 5 == 4 {
            let error = result.unwrap_err();
            assert_eq!(error.code(), Code::DataLoss, "{error}");
            assert!(error.message().contains("four is too many"), "{error}");
            assert!(error.message().contains("engine graphs-failure:0"), "{error}");
            assert_eq!(error.run().unwrap().engine.as_deref(), Some("graphs-failure:0"));
        } else {
            assert_eq!(result.unwrap(), [mix(&[round % 5 + 1, round % 5])]);
        }
    }
}

#[test]
fn a_lost_device_ends_the_run() {
    let worked = Worked::new("graphs-lost", 2);
    let (mut builder, x) = Builder::of("lost", 1);
    builder.engine = worked.engine.clone();
    let device = worked.device.clone();
    let a = builder.op(&x, move |x| {
        if x[0] == 1 {
            device.lose();
        }
        x[0]
    });
    let b = builder.op(&[a], mix);
    builder.output(b);
    let program = compile(&builder, &[&worked]);
    for pool in all_pools() {
        let lost = worked.device.is_lost();
        let result = run(&program, &[0], &on(pool.as_ref()));
        assert_eq!(result.is_err(), lost);
        let error = run(&program, &[1], &on(pool.as_ref())).unwrap_err();
        assert_eq!(error.code(), Code::DeviceLost, "{error}");
        assert!(error.message().contains("engine graphs-lost:0"), "{error}");
    }
}

#[test]
fn the_report_counts_copies_and_waits() {
    let worked = Worked::new("graphs-report", 0);
    let (mut builder, x) = Builder::of("report", 1);
    builder.engine = worked.engine.clone();
    // Four chains of five that read one input, and a join.
    let ends: Vec<ValueId> = (0..4).map(|_| (0..5).fold(x[0], |x, _| builder.op(&[x], mix))).collect();
    let join = builder.op(&ends, mix);
    builder.output(join);
    let program = compile(&builder, &[&worked]);
    let facts = ["nodes", "uploads", "fetches", "streams", "records", "waits"].map(|key| {
        let report = program.report(weir_core::graph::ReportFormat::Json);
        let group = &report[report.find("\"engines\":").unwrap()..];
        let at = group.find(&format!("\"{key}\":")).unwrap() + key.len() + 3;
        group[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse::<usize>().unwrap()
    });
    // One copy for four readers; each of four streams waits for it, and the join's for the three others.
    assert_eq!(facts, [21, 1, 1, 4, 3, 7]);
    assert!(fact(&program, "value_bytes") > fact(&program, "device_arena_bytes") / 64);
    let expected = mix(&[(0..5).fold(9, |x, _| mix(&[x])); 4]);
    assert_eq!(run(&program, &[9], &RunOptions::default()).unwrap(), [expected]);
}

#[test]
fn a_program_without_the_host_is_refused() {
    let worked = Worked::new("graphs-alone", 1);
    let (mut builder, x) = Builder::of("alone", 1);
    builder.engine = worked.engine.clone();
    let y = builder.op(&x, mix);
    builder.output(y);
    let error =
        Program::compile(&builder.graph, vec![worked.engine.clone()], &CompileOptions::default()).err().unwrap();
    assert!(error.message().contains("a program needs a cpu engine"), "{error}");
    let error = Program::compile(&builder.graph, vec![cpu()], &CompileOptions::default()).err().unwrap();
    assert!(error.message().contains("its engine graphs-alone:0 is not among the engines"), "{error}");
    let program = compile(&builder, &[&worked]);
    let there = weir_core::engine::Tensor::create(worked.engine.clone(), crate::kit::run::scalar()).unwrap();
    let error = execute(&program, &[there], &[tensor(&cpu(), 0)], &RunOptions::default()).unwrap_err();
    assert!(error.message().contains("input 0 is in the memory of engine graphs-alone:0"), "{error}");
}
