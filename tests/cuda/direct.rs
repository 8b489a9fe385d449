//! Programs that are the engine's alone, run on a stream of it: exactly what is asked of the driver, and what is
//! refused.

use crate::bench::{Bench, LEN, desc};
use crate::kit::{eventually, fake, is_fake, raw, with_driver};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use weir_core::base::{Code, Ref, Result};
use weir_core::engine::{Engine, Stream, StreamAttr, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program, ReportFormat, RunOptions};
use weir_core::memory::heap;

type Pointer = *mut c_void;

/// Of `length` sums of what came before and the input; all on the engine. With `constant`, the first one adds a
/// constant of the host's instead.
pub fn chain(bench: &Bench, length: usize, constant: bool) -> Ref<Program> {
    let add = bench.add().unwrap();
    let mut graph = Graph::new("chain");
    let x = graph.add_input("x", desc()).unwrap();
    let mut value = x;
    for i in 0..length {
        let by = match constant && i == 0 {
            true => graph.add_constant("hundred", bench.on_host(|_| 100f32.to_bits() as i32)).unwrap(),
            false => x,
        };
        value = graph.add_kernel(&format!("{i}"), add.clone(), &[value, by], 1).unwrap().output(0);
    }
    graph.add_output("y", value).unwrap();
    graph.set_input_engine(0, Some(bench.engine.clone())).unwrap();
    graph.set_output_engine(0, Some(bench.engine.clone())).unwrap();
    Program::compile(&graph, vec![bench.cpu.clone(), bench.engine.clone()], &CompileOptions::default()).unwrap()
}

pub fn run(program: &Ref<Program>, stream: &Ref<Stream>, x: &Ref<Tensor>, y: &Ref<Tensor>) -> Result<()> {
    run_with(program, stream, x, y, &RunOptions::default())
}

pub fn run_with(
    program: &Ref<Program>,
    stream: &Ref<Stream>,
    x: &Ref<Tensor>,
    y: &Ref<Tensor>,
    options: &RunOptions,
) -> Result<()> {
    // SAFETY: second owners that are never dropped; the first ones outlive the call.
    let lend = |tensor: &Ref<Tensor>| ManuallyDrop::new(unsafe { std::ptr::read(tensor) });
    let (get_in, get_out) = (|_: usize| Ok(lend(x)), |_: usize| Ok(lend(y)));
    Program::bind(program, (1, &get_in), (1, &get_out))?.run(Some(stream), Some(options))
}

pub fn floats(bench: &Bench, from: f32) -> Ref<Tensor> {
    let there = bench.on_device().unwrap();
    let here = bench.on_host(move |i| (from + i as f32).to_bits() as i32);
    bench.stream.enqueue_copy(here, there.clone()).unwrap();
    bench.wait().unwrap();
    there
}

pub fn check(bench: &Bench, y: &Ref<Tensor>, expected: impl Fn(f32) -> f32) {
    for (i, bits) in bench.read(y).unwrap().into_iter().enumerate() {
        assert_eq!(f32::from_bits(bits as u32), expected(i as f32), "{i}");
    }
}

/// The engine's context is this thread's from now on, as that of a program which works with the driver itself.
pub fn enter(engine: &Engine) {
    let context = engine.accelerator().unwrap().native_handle().unwrap() as Pointer;
    raw!(cuCtxSetCurrent(context): Pointer);
}

/// Calls of the driver, in order, since there were so many; none with a real driver.
pub fn calls(since: &mut usize) -> Vec<String> {
    if !is_fake() {
        return Vec::new();
    }
    let all = fake::log();
    let new = all[*since..].iter().map(|line| line.split('(').next().unwrap().to_owned()).collect();
    *since = all.len();
    new
}

/// That these calls were made since, and no others.
#[track_caller]
pub fn asked(since: &mut usize, expected: &[&str]) {
    let made = calls(since);
    assert!(made == expected || !is_fake(), "{made:?}, expected {expected:?}");
}

pub const LOOK: &str = "cuCtxGetCurrent";
const RELAX: &str = "cuThreadExchangeStreamCaptureMode";
const SET: &str = "cuGraphExecKernelNodeSetParams_v2";

#[test]
fn a_run_is_one_look_and_one_launch() {
    for version in ["12000", "13000"] {
        let ran = with_driver(&[("VERSION", version)], || {
            let bench = Bench::new();
            let (x, other, y) = (floats(&bench, 0.0), floats(&bench, 0.0), bench.on_device().unwrap());
            let add = bench.add().unwrap();
            enter(&bench.engine);
            let mut at = 0;
            for length in [1, 2, 10, 100] {
                let launch = if length == 1 { "cuLaunchKernel" } else { "cuGraphLaunch" };
                let program = chain(&bench, length, false);
                let stream = bench.stream("own");
                // The second one records.
                (0..2).for_each(|_| run(&program, &stream, &x, &y).unwrap());
                stream.synchronize(u64::MAX).unwrap();
                calls(&mut at);
                for _ in 0..3 {
                    run(&program, &stream, &x, &y).unwrap();
                    asked(&mut at, &[LOOK, launch]);
                }
                // All read the input.
                run(&program, &stream, &other, &y).unwrap();
                let sets = if length == 1 { 0 } else { length };
                let expected = [&[LOOK][..], &vec![SET; sets], &[launch]].concat();
                asked(&mut at, &expected);
                stream.synchronize(u64::MAX).unwrap();
                calls(&mut at);
                (0..3).for_each(|_| stream.synchronize(u64::MAX).unwrap());
                // Nothing is left to be asked for.
                asked(&mut at, &[]);
                stream.enqueue(add.clone(), vec![x.clone(), x.clone()], vec![y.clone()]).unwrap();
                asked(&mut at, &[LOOK, "cuLaunchKernel"]);
                run(&program, &stream, &other, &y).unwrap();
                stream.synchronize(u64::MAX).unwrap();
                check(&bench, &y, |x| (0..length).fold(x, |value, _| value + x));
                let report = program.report(ReportFormat::Json);
                let expected = "\"direct_why\":\"yes, on streams of its engine\",\"direct_runs\":7,";
                assert!(report.contains(expected), "{report}");
                calls(&mut at);
            }
            // Where another context is current, or none, it is put back.
            let (program, stream) = (chain(&bench, 2, false), bench.stream("other"));
            (0..2).for_each(|_| run(&program, &stream, &x, &y).unwrap());
            raw!(cuCtxSetCurrent(std::ptr::null_mut()): Pointer);
            calls(&mut at);
            run(&program, &stream, &other, &y).unwrap();
            asked(&mut at, &[LOOK, "cuCtxSetCurrent", SET, SET, "cuGraphLaunch", "cuCtxSetCurrent"]);
            let mut current = 1 as Pointer;
            raw!(cuCtxGetCurrent(&raw mut current): *mut Pointer);
            assert!(current.is_null());
            stream.synchronize(u64::MAX).unwrap();
        });
        if ran.is_none() {
            return;
        }
    }
}

/// What runs under way at once need is made when there are first so many. How many there are is the driver's; with a
/// seed the third round has no more than those before.
pub fn allocates_nothing_later(go: &dyn Fn() -> u64) {
    let mut took = vec![go(), go(), go()];
    while took[took.len() - 1] != 0 && took.len() < 20 && !is_fake() {
        took.push(go());
    }
    assert_eq!(took[took.len() - 1], 0, "{took:?}");
}

#[test]
fn later_runs_allocate_nothing() {
    with_driver(&[("SEED", "6")], || {
        let bench = Bench::new();
        let (x, y) = (floats(&bench, 0.0), bench.on_device().unwrap());
        for length in [1, 10] {
            let program = chain(&bench, length, true);
            let stream = bench.stream("s");
            let go = || {
                let before = heap::allocations();
                (0..200).for_each(|_| run(&program, &stream, &x, &y).unwrap());
                stream.synchronize(u64::MAX).unwrap();
                heap::allocations() - before
            };
            allocates_nothing_later(&go);
        }
    });
}

/// Who waits for short work asks the driver whether it is over, and has no event recorded.
#[test]
fn a_short_wait_takes_no_event() {
    with_driver(&[], || {
        let bench = Bench::new();
        let (x, y) = (floats(&bench, 0.0), bench.on_device().unwrap());
        let program = chain(&bench, 3, false);
        let mut attr = StreamAttr::new(bench.engine.kind());
        attr.spin_ns = 30_000_000_000;
        let stream = Stream::create(bench.engine.clone(), attr).unwrap();
        for _ in 0..5 {
            run(&program, &stream, &x, &y).unwrap();
            let mut at = 0;
            calls(&mut at);
            stream.synchronize(u64::MAX).unwrap();
            let made = calls(&mut at);
            let is_a_look = |call: &String| [LOOK, "cuCtxSetCurrent", "cuStreamQuery", RELAX].contains(&&**call);
            assert!(made.iter().all(is_a_look), "{made:?}");
        }
        check(&bench, &y, |x| 4.0 * x);
    });
}

#[test]
fn a_run_on_a_stream_of_the_hosts_asks_whether_it_is_captured() {
    with_driver(&[("SEED", "4")], || {
        let bench = Bench::new();
        let (x, y) = (floats(&bench, 0.0), bench.on_device().unwrap());
        enter(&bench.engine);
        let mut raw_stream: Pointer = std::ptr::null_mut();
        raw!(cuStreamCreate(&raw mut raw_stream, 1): *mut Pointer, u32);
        let mut attr = StreamAttr::new(bench.engine.kind());
        attr.wrapped = Some(raw_stream as u64);
        attr.name = "theirs".to_owned();
        let stream = Stream::create(bench.engine.clone(), attr).unwrap();
        let program = chain(&bench, 3, false);
        (0..3).for_each(|_| run(&program, &stream, &x, &y).unwrap());
        let mut at = 0;
        calls(&mut at);
        run(&program, &stream, &x, &y).unwrap();
        asked(&mut at, &[LOOK, "cuStreamIsCapturing", LOOK, "cuGraphLaunch"]);
        stream.synchronize(u64::MAX).unwrap();
        check(&bench, &y, |x| 4.0 * x);
        drop(stream);
        raw!(cuStreamDestroy_v2(raw_stream): Pointer);
    });
}

/// Whatever the driver does first: its checker ends the process where two runs use the same memory and nothing orders
/// them.
#[test]
fn runs_on_many_streams_have_memory_of_their_own_or_wait_on_the_device() {
    for seed in ["1", "2", "3", ""] {
        let ran = with_driver(&[("SEED", seed)], || {
            let bench = Bench::new();
            let program = chain(&bench, 4, true);
            let x = floats(&bench, 0.0);
            // More than there are lanes for.
            let streams: Vec<_> = (0..40).map(|i| bench.stream(&format!("s{i}"))).collect();
            let outputs: Vec<_> = streams.iter().map(|_| bench.on_device().unwrap()).collect();
            for _ in 0..3 {
                streams.iter().zip(&outputs).for_each(|(stream, y)| run(&program, stream, &x, y).unwrap());
            }
            streams.iter().for_each(|stream| stream.synchronize(u64::MAX).unwrap());
            outputs.iter().for_each(|y| check(&bench, y, |x| x + 100.0 + 3.0 * x));
            let waits = fake::counted("cuStreamWaitEvent");
            assert!(seed_is_empty() || waits >= 8, "{waits}");
            // Nothing is under way: one is found that is free.
            let (late, y) = (bench.stream("late"), bench.on_device().unwrap());
            run(&program, &late, &x, &y).unwrap();
            late.synchronize(u64::MAX).unwrap();
            check(&bench, &y, |x| x + 100.0 + 3.0 * x);
            assert_eq!(fake::counted("cuStreamWaitEvent"), waits);
            program.trim();
            run(&program, &late, &x, &y).unwrap();
            late.synchronize(u64::MAX).unwrap();
            check(&bench, &y, |x| x + 100.0 + 3.0 * x);
        });
        if ran.is_none() {
            return;
        }
    }
}

fn seed_is_empty() -> bool {
    std::env::var("FAKE_CUDA_SEED").unwrap_or_default().is_empty()
}

#[test]
fn constants_are_copied_once_and_again_after_a_failure() {
    with_driver(&[("SEED", "8")], || {
        let bench = Bench::new();
        let (x, y, program) = (floats(&bench, 0.0), bench.on_device().unwrap(), chain(&bench, 3, true));
        let copies = || fake::count("cuMemcpyHtoDAsync_v2");
        let before = copies();
        // The first run's launch fails behind the copy.
        fake::fail("cuLaunchKernel", 2, 1);
        run(&program, &bench.stream, &x, &y).unwrap();
        let error = bench.wait().unwrap_err();
        assert!(error.message().contains("program 'chain': engine cuda:0: node '1': "), "{error}");
        assert_eq!(run(&program, &bench.stream, &x, &y).unwrap_err().code(), Code::FailedPrecondition);
        bench.stream.clear_error();
        assert_eq!(copies() - before, 1);
        for _ in 0..3 {
            run(&program, &bench.stream, &x, &y).unwrap();
        }
        bench.wait().unwrap();
        check(&bench, &y, |x| x + 100.0 + x + x);
        assert_eq!(copies() - before, 2);
        // It is known to be there, for another stream too.
        let other = bench.stream("other");
        run(&program, &other, &x, &y).unwrap();
        other.synchronize(u64::MAX).unwrap();
        check(&bench, &y, |x| x + 100.0 + x + x);
        assert_eq!(copies() - before, 2);
    });
}

#[test]
fn a_lost_device_fails_the_stream_of_the_run() {
    with_driver(&[("LEAKS", "off")], || {
        let bench = Bench::new();
        let (x, y, program) = (floats(&bench, 0.0), bench.on_device().unwrap(), chain(&bench, 5, true));
        (0..3).for_each(|_| run(&program, &bench.stream, &x, &y).unwrap());
        bench.wait().unwrap();
        fake::fail("cuGraphLaunch", 1, 700);
        run(&program, &bench.stream, &x, &y).unwrap();
        assert_eq!(bench.wait().unwrap_err().code(), Code::DeviceLost);
        drop((x, y, program));
    });
}

#[test]
fn what_the_driver_will_not_record_is_issued_in_order() {
    with_driver(&[("FAIL", "cuGraphInstantiateWithFlags:*:801")], || {
        let bench = Bench::new();
        let (x, y, program) = (floats(&bench, 0.0), bench.on_device().unwrap(), chain(&bench, 5, false));
        (0..4).for_each(|_| run(&program, &bench.stream, &x, &y).unwrap());
        bench.wait().unwrap();
        check(&bench, &y, |x| 6.0 * x);
        assert_eq!([fake::count("cuGraphInstantiateWithFlags"), fake::count("cuLaunchKernel")], [1, 20]);
    });
}

/// Constants that are there already are read where they are.
#[test]
fn constants_in_the_devices_memory_are_not_copied() {
    with_driver(&[("SEED", "3")], || {
        let bench = Bench::new();
        let add = bench.add().unwrap();
        let (x, y, constant) = (floats(&bench, 0.0), bench.on_device().unwrap(), floats(&bench, 100.0));
        let holders = Arc::strong_count(&constant);
        let mut graph = Graph::new("there");
        let value = graph.add_input("x", desc()).unwrap();
        let constant_value = graph.add_constant("there", constant.clone()).unwrap();
        let sum = graph.add_kernel("sum", add.clone(), &[value, constant_value], 1).unwrap().output(0);
        let end = graph.add_kernel("end", add, &[sum, constant_value], 1).unwrap().output(0);
        graph.add_output("y", end).unwrap();
        graph.set_input_engine(0, Some(bench.engine.clone())).unwrap();
        graph.set_output_engine(0, Some(bench.engine.clone())).unwrap();
        let engines = vec![bench.cpu.clone(), bench.engine.clone()];
        let program = Program::compile(&graph, engines, &CompileOptions::default()).unwrap();
        drop(graph);
        assert_eq!(Arc::strong_count(&constant), holders + 1);
        enter(&bench.engine);
        let mut at = 0;
        calls(&mut at);
        for _ in 0..4 {
            run(&program, &bench.stream, &x, &y).unwrap();
        }
        assert!(!calls(&mut at).iter().any(|call| call.starts_with("cuMemcpy")));
        check(&bench, &y, |x| x + 2.0 * (x + 100.0));
        drop(program);
        eventually("the program is gone", || Arc::strong_count(&constant) == holders);
    });
}

/// Tensors that a run uses, and the memory of its program, stay until the device is done with them.
#[test]
fn what_a_run_uses_stays_until_it_is_over() {
    with_driver(&[("DELAY", "1:2000")], || {
        let bench = Bench::new();
        for _ in 0..3 {
            let (x, y, program) = (floats(&bench, 0.0), bench.on_device().unwrap(), chain(&bench, 4, true));
            for _ in 0..3 {
                run(&program, &bench.stream, &x, &y).unwrap();
            }
            drop((x, program));
            check(&bench, &y, |x| x + 100.0 + 3.0 * x);
        }
        assert_eq!(LEN, 1000);
    });
}
