//! Whose thread does what a device has brought back: never the device's own, which others wait for.

use crate::kit::emulated::Emulation;
use crate::kit::integers::Builder;
use crate::kit::pools;
use crate::kit::run::{cpu, integer, lend, run, tensor};
use crate::reports;
use crate::wrapped::{Mistake, engine};
use std::sync::{Arc, Mutex};
use weir_core::base::{Ref, Result};
use weir_core::device::DeviceKind;
use weir_core::engine::{Engine, Stream, StreamAttr};
use weir_core::graph::{CompileOptions, Program, RunOptions};
use weir_core::kernel::Task;
use weir_core::threadpool::ThreadPool;

type Names = Arc<Mutex<Vec<String>>>;

fn note(names: &Names) {
    names.lock().unwrap().push(std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default().trim().to_owned());
}

/// The host, the device, the host again; who does the host's part is noted.
fn program(on: &Ref<Engine>, names: &Names) -> Ref<Program> {
    let (mut builder, x) = Builder::of("hands", 1);
    let noted = |builder: &mut Builder, value| {
        let names = Arc::clone(names);
        builder.op(&[value], move |x| {
            note(&names);
            x[0] + 1
        })
    };
    let first = noted(&mut builder, x[0]);
    builder.engine = on.clone();
    let there = builder.op(&[first], |x| x[0] * 10);
    builder.engine = cpu();
    let last = noted(&mut builder, there);
    builder.output(last);
    Program::compile(&builder.graph, vec![cpu(), on.clone()], &CompileOptions::default()).unwrap()
}

/// Behind a run on a stream: runs a program on the device, to the end.
struct Inside {
    program: Ref<Program>,
    names: Names,
    found: Mutex<Option<Result<Vec<i32>>>>,
}

impl Task for Inside {
    fn run(&self) -> Result<()> {
        note(&self.names);
        *self.found.lock().unwrap() = Some(run(&self.program, &[6], &RunOptions::default()));
        Ok(())
    }
}

const LONG: u64 = 20_000_000_000;

fn goes_well(kind: &'static str, pool: Ref<ThreadPool>, task_may_wait: bool) {
    let settings = Emulation { kernel_ns: 3_000_000, flags: Emulation::CHECK, ..Emulation::default() };
    let (device, engine) = engine(kind, settings, Mistake::None, 1);
    let names = Names::default();
    let program = program(&engine, &names);
    let mut attr = StreamAttr::new(DeviceKind::CPU);
    attr.asynchronous = true;
    attr.set_threadpool(Some(pool));
    let stream = Stream::create(cpu(), attr).unwrap();
    let host = cpu();
    for round in 0..3 {
        let (input, output) = ([tensor(&host, round)], [tensor(&host, -99)]);
        let inside = Inside { program: program.clone(), names: names.clone(), found: Mutex::default() };
        let inside = Arc::new(inside);
        let (get_in, get_out) = (|i: usize| Ok(lend(&input[i])), |i: usize| Ok(lend(&output[i])));
        Program::bind(&program, (1, &get_in), (1, &get_out)).unwrap().run(Some(&stream), None).unwrap();
        stream.enqueue_task(inside.clone()).unwrap();
        stream.synchronize(LONG).unwrap();
        assert_eq!(integer(&output[0]), (round + 1) * 10 + 1);
        let found = inside.found.lock().unwrap().take().expect("the task was not called");
        match task_may_wait {
            true => assert_eq!(found.unwrap(), [71]),
            // In a worker of a pool such a run is refused, and does not hang.
            false => assert!(found.is_ok() || found.unwrap_err().message().contains("block a worker"), "round {round}"),
        }
    }
    let names = names.lock().unwrap().clone();
    assert!(names.iter().all(|name| !name.contains("emulated")), "{kind}: {names:?}");
    assert_eq!(reports(&device), Vec::<String>::new());
}

#[test]
fn a_pool_that_refuses_leaves_nothing_to_the_devices_thread() {
    goes_well("placed-hands-refusing", pools::host(1, |_| false), true);
}

#[test]
fn a_pool_that_runs_at_once_runs_nothing_on_the_devices_thread() {
    goes_well("placed-hands-inline", ThreadPool::inline(), false);
}

#[test]
fn a_pool_that_refuses_now_and_then_neither() {
    goes_well("placed-hands-half", pools::host(1, |offered| offered.is_multiple_of(2)), false);
}
