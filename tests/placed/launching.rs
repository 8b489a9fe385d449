//! Who launches an engine's part of programs: whoever runs the program, or a thread of the engine's or of its kind.

use crate::kit::pools;
use crate::kit::random::Random;
use crate::kit::run::{cpu, on, run};
use crate::ports::emulated_as;
use crate::wrapped::{Mistake, Wrapped, engine_in};
use crate::{Plan, checked, on_the_device, reports};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_core::abi::weir_thread_info;
use weir_core::base::Ref;
use weir_core::device::DeviceKind;
use weir_core::engine::{Engine, EngineAttr, ThreadMode};
use weir_core::graph::RunOptions;
use weir_core::sync::thread;
use weir_core::threadpool::ThreadPool;

/// Threads that work for this owner.
fn threads(owner: &str) -> usize {
    let of = |info: &weir_thread_info| info.owner.iter().map(|&c| c as u8 as char).collect::<String>();
    let infos: Vec<_> = thread::running().iter().map(|thread| thread.info()).collect();
    let is_pool = |info: &weir_thread_info| info.pool != 0;
    infos.iter().filter(|info| is_pool(info) && of(info).trim_end_matches('\0') == owner).count()
}

fn ended(owner: &str) {
    let begun = Instant::now();
    while threads(owner) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the thread of {owner} does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// As many kinds of pools as there are for a run.
fn all_pools() -> [Option<Ref<ThreadPool>>; 4] {
    [None, Some(ThreadPool::inline()), Some(pools::of(1)), Some(pools::of(3))]
}

/// All runs of a graph give what they should; then, who has issued.
fn issuers(kind: &'static str, mode: Option<ThreadMode>, graph: u64) -> (Arc<Wrapped>, Ref<Engine>, Vec<String>) {
    let mut plan = on_the_device(graph);
    plan.nodes.iter_mut().rev().skip(2).step_by(3).for_each(|node| node.0 = false);
    let (device, engine) = engine_in(kind, checked(graph), Mistake::None, 1 + graph as u32 % 3, mode);
    let program = plan.compile(&engine);
    for (number, pool) in all_pools().iter().enumerate() {
        for round in 0..3 {
            let inputs = [round, 7 - round, graph as i32];
            let found = run(&program, &inputs, &on(pool.as_ref())).unwrap();
            assert_eq!(found, plan.expected(&inputs), "graph {graph}, {mode:?}, pool {number}");
        }
    }
    assert_eq!(reports(&device), Vec::<String>::new());
    let names = device.issuers();
    (device, engine, names)
}

#[test]
fn a_thread_of_the_engines_launches_everything_and_ends_with_it() {
    let owner = "placed-private:0";
    for graph in 0..12 {
        let (device, engine) = engine_in("placed-private", checked(1), Mistake::None, 1, Some(ThreadMode::Private));
        assert_eq!((threads(owner), engine.info().thread_count), (0, 0), "nobody has compiled anything");
        drop((device, engine));
        let (device, engine, names) = issuers("placed-private", Some(ThreadMode::Private), graph);
        assert!(names.len() == 1 && names[0].starts_with("weir-placed"), "graph {graph}: {names:?}");
        assert_eq!((threads(owner), engine.info().thread_count), (1, 1));
        assert_eq!(engine.info().thread_mode, ThreadMode::Private.value());
        drop((device, engine));
        ended(owner);
    }
}

#[test]
fn in_the_other_modes_whoever_runs_the_program_launches() {
    for mode in [None, Some(ThreadMode::Global), Some(ThreadMode::Caller)] {
        for graph in 0..6 {
            let (_device, engine, names) = issuers("placed-global", mode, graph);
            assert!(!names.is_empty() && names.iter().all(|name| !name.starts_with("weir-placed")), "{names:?}");
            assert_eq!(engine.info().thread_count, 0);
        }
    }
    assert_eq!(threads("placed-global:0"), 0);
}

#[test]
fn all_engines_of_a_kind_have_one_thread_that_launches() {
    let engine = |index| {
        crate::kit::emulated::register();
        let mut attr = EngineAttr::new(DeviceKind::EMULATED);
        attr.set_thread_mode(ThreadMode::Kind).unwrap();
        emulated_as(index, &attr)
    };
    let engines = [engine(4), engine(5)];
    assert_eq!(threads("emulated"), 0);
    let plan = Plan::draw(&mut Random::new(3), 4);
    let programs = engines.each_ref().map(|engine| plan.compile(engine));
    assert_eq!(threads("emulated"), 1);
    for program in &programs {
        assert_eq!(run(program, &[1, 2, 3], &RunOptions::default()).unwrap(), plan.expected(&[1, 2, 3]));
    }
    drop((engines, programs));
    ended("emulated");
}

/// Several threads run a program, each on a pool of one thread or none, and the engine is let go of meanwhile.
#[test]
fn runs_side_by_side_share_the_thread() {
    let plan = Plan::draw(&mut Random::new(7), 3);
    let (_device, engine) = engine_in("placed-shared", checked(2), Mistake::None, 2, Some(ThreadMode::Private));
    let program = plan.compile(&engine);
    drop(engine);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (program, plan) = (&program, &plan);
            scope.spawn(move || {
                let pool = (thread % 2 == 0).then(|| pools::of(1));
                for round in 0..20 {
                    let inputs = [round, thread, 5];
                    let found = run(program, &inputs, &on(pool.as_ref())).unwrap();
                    assert_eq!(found, plan.expected(&inputs), "thread {thread}, round {round}");
                }
            });
        }
    });
    assert_eq!(cpu().info().thread_count, 0);
    drop(program);
    ended("placed-shared:0");
}
