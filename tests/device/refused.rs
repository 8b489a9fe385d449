//! A device refuses to record an event: nobody then takes its work to be over before it is, and nothing that the work
//! uses goes.

use super::kit::integers::Builder;
use super::kit::run::{cpu, on, run};
use super::strict::{Strict, strict};
use super::*;
use weir_core::engine::{Extent, sync_all};
use weir_core::graph::{CompileOptions, Program};
use weir_core::resource::{Resource, ResourceBody, Variable, VariableOperation, kernel};
use weir_testing::Emulation;

/// Each operation takes 30 ms.
const SLOW: Emulation = Emulation { latency_ns: 30_000_000, ..NO_EMULATION };
pub const NO_EMULATION: Emulation = Emulation {
    seed: 0,
    flags: 0,
    latency_ns: 0,
    bytes_per_us: 0,
    kernel_ns: 0,
    memory_bytes: 0,
    fail_operation: 0,
    fail_copy: 0,
    fail_allocation: 0,
    lose_operation: 0,
    replay_ns: 0,
    regions: 0,
    fail_region: 0,
};

struct Work {
    strict: &'static Strict,
    engine: Ref<Engine>,
    stream: Ref<Stream>,
    on_device: Ref<Tensor>,
    to: Ref<Tensor>,
}

impl Work {
    /// A fill, and a copy of it to the host, in flight.
    fn begin<const N: usize>() -> Work {
        let (strict, engine) = strict::<N>(SLOW);
        let cpu = Engine::create(DeviceKind::CPU, 0, None).unwrap();
        let stream = Stream::create(engine.clone(), StreamAttr::new(engine.kind())).unwrap();
        let (on_device, to) =
            (Tensor::create(engine.clone(), desc()).unwrap(), Tensor::create(cpu.clone(), desc()).unwrap());
        // SAFETY: four floats of a tensor that nobody uses yet.
        unsafe { to.data().cast::<[f32; 4]>().write([0.0; 4]) };
        stream.enqueue_fill(on_device.clone(), 0x40).unwrap();
        stream.enqueue_copy(on_device.clone(), to.clone()).unwrap();
        Work { strict, engine, stream, on_device, to }
    }

    fn is_done(&self) -> bool {
        values(&self.to) == [f32::from_ne_bytes([0x40; 4]); 4]
    }
}

#[test]
fn a_wait_ends_with_the_work_and_tells_of_the_refusal() {
    let work = Work::begin::<0>();
    work.strict.refuse(1);
    let error = work.stream.synchronize(FOREVER).unwrap_err();
    assert!(work.is_done(), "{error}");
    assert_eq!((error.code(), work.strict.refusals_left()), (Code::Unavailable, 0));
    assert!(work.stream.is_idle());
    work.stream.clear_error();
    work.stream.enqueue_fill(work.on_device.clone(), 1).unwrap();
    work.stream.synchronize(FOREVER).unwrap();
}

#[test]
fn a_query_says_no_while_the_device_works() {
    let work = Work::begin::<1>();
    work.strict.refuse(1);
    let mut is_idle = false;
    while !is_idle {
        is_idle = work.stream.is_idle();
        assert!(!is_idle || work.is_done());
    }
    assert_eq!(work.strict.refusals_left(), 0);
}

#[test]
fn a_device_that_refuses_for_good_ends_waits_and_no_work() {
    let work = Work::begin::<2>();
    work.strict.refuse(i64::MAX);
    for _ in 0..2 {
        let error = work.stream.synchronize(FOREVER).unwrap_err();
        assert_eq!(error.code(), Code::Unavailable);
        assert!(error.message().contains(work.stream.queue().name()), "{error}");
        assert_eq!(work.engine.synchronize(FOREVER).unwrap_err().code(), Code::Unavailable);
        assert!(!work.stream.is_idle());
    }
    work.strict.refuse(0);
    let _ = work.engine.synchronize(FOREVER);
    assert!(work.is_done() && work.stream.is_idle());
}

#[test]
fn a_released_stream_stays_until_its_work_is_over() {
    for refusals in [1, i64::MAX] {
        let Work { strict, engine, stream, on_device, to } = Work::begin::<3>();
        strict.refuse(refusals);
        drop((stream, on_device));
        assert!(engine.memory_info().in_use > 0, "the device is at it");
        std::thread::sleep(Duration::from_millis(100));
        strict.refuse(0);
        // What is left of it is still waited for.
        let _ = engine.synchronize(FOREVER);
        assert_eq!(values(&to), [f32::from_ne_bytes([0x40; 4]); 4]);
        while engine.memory_info().in_use > 0 {
            std::thread::yield_now();
        }
        assert_eq!(strict.early_ends(), 0, "{refusals} refusals");
    }
}

#[test]
fn an_event_is_reached_behind_the_work() {
    let work = Work::begin::<4>();
    let event = Event::create(work.engine.clone(), false);
    work.strict.refuse(1);
    event.record(&work.stream).unwrap();
    assert!(!event.is_reached());
    event.synchronize(FOREVER).unwrap();
    assert!(work.is_done());
    assert_eq!(work.stream.synchronize(FOREVER).unwrap_err().code(), Code::Unavailable);
}

/// A wait whose time is over leaves its event to the device.
#[test]
fn an_event_in_flight_is_not_destroyed() {
    let work = Work::begin::<5>();
    let held: Vec<_> = (0..4)
        .map(|_| {
            let event = Event::create(work.engine.clone(), false);
            event.record(&work.stream).unwrap();
            event
        })
        .collect();
    drop(held);
    assert_eq!(sync_all(Extent::Everything, 0).unwrap_err().code(), Code::DeadlineExceeded);
    let accelerator = work.engine.accelerator().unwrap();
    for _ in 0..3 {
        let aside = accelerator.event(false).unwrap();
        work.stream.queue().device_queue().unwrap().stream().record(&aside).unwrap();
    }
    work.stream.synchronize(FOREVER).unwrap();
    drop(work.stream);
    drop((work.on_device, work.engine));
    assert_eq!(work.strict.early_ends(), 0);
}

/// Two streams that nothing orders but a variable: the second one reads what the first has assigned, or fails.
#[test]
fn an_access_waits_for_the_one_before_it_or_fails() {
    for (refusals, is_read) in [(1, true), (i64::MAX, false)] {
        let work = Work::begin::<8>();
        work.strict.refuse(0);
        let engine = &work.engine;
        let device = (engine.device(), engine.memory());
        // SAFETY: without an initial value.
        let variable = unsafe { Variable::create_on(device.0, device.1, desc(), true, None) }.unwrap();
        let resource = Resource::create(engine.resources(), ResourceBody::Variable(variable)).unwrap();
        let bound = |operation| {
            let kernel = kernel(operation, engine.resources(), &resource, None).unwrap();
            BoundKernel::create(engine.clone(), kernel, &KernelOptions::default()).unwrap()
        };
        let (assign, read) = (bound(VariableOperation::Assign), bound(VariableOperation::Read));
        let other = Stream::create(engine.clone(), StreamAttr::new(engine.kind())).unwrap();
        let (y, to) = (Tensor::create(engine.clone(), desc()).unwrap(), work.to.clone());
        work.stream.synchronize(FOREVER).unwrap();
        work.stream.enqueue_fill(work.on_device.clone(), 0x41).unwrap();
        work.strict.refuse(refusals);
        work.stream.enqueue(assign, vec![work.on_device.clone()], vec![]).unwrap();
        work.strict.refuse(0);
        other.enqueue(read, vec![], vec![y.clone()]).unwrap();
        let _ = other.enqueue_copy(y, to.clone());
        let result = other.synchronize(FOREVER);
        assert_eq!(work.stream.synchronize(FOREVER).unwrap_err().code(), Code::Unavailable);
        match is_read {
            true => {
                result.unwrap();
                assert_eq!(values(&to), [f32::from_ne_bytes([0x41; 4]); 4]);
            }
            false => assert_eq!(result.unwrap_err().code(), Code::FailedPrecondition),
        }
    }
}

/// Whichever record of a program's runs is refused: a run that ends well has computed what it should.
#[test]
fn a_run_ends_well_or_tells_of_the_refusal() {
    let (strict, engine) = strict::<9>(Emulation { latency_ns: 50_000, ..NO_EMULATION });
    let sum = |x: &[i32]| x.iter().fold(7, |sum: i32, x| sum.wrapping_mul(3).wrapping_add(*x));
    let (mut builder, x) = Builder::of("refused", 2);
    let (here, there) = (cpu(), engine.clone());
    let seven = builder.constant(7);
    builder.engine = there.clone();
    let a = builder.op(&[x[0], seven], sum);
    let (b, c) = (builder.op(&[a, x[1]], sum), builder.op(&[x[1], a], sum));
    builder.engine = here.clone();
    let d = builder.op(&[b], sum);
    builder.engine = there.clone();
    let e = builder.op(&[b, c, d], sum);
    builder.output(e);
    builder.output(d);
    let program = Program::compile(&builder.graph, vec![here, there], &CompileOptions::default()).unwrap();
    let mut failed = 0;
    for at in 0..60 {
        strict.refuse_after(at, 1 + at % 2);
        for round in 0..4 {
            let (x, y) = (at as i32, round - at as i32);
            let a = sum(&[x, 7]);
            let (b, c) = (sum(&[a, y]), sum(&[y, a]));
            match run(&program, &[x, y], &on(None)) {
                Ok(outputs) => assert_eq!(outputs, [sum(&[b, c, sum(&[b])]), sum(&[b])], "refused at {at}"),
                Err(error) => {
                    assert_eq!(error.code(), Code::Unavailable, "{error}");
                    failed += 1;
                }
            }
        }
    }
    assert!(failed > 20, "{failed} runs failed");
    strict.refuse_after(0, 0);
    let weir_is_done = engine.synchronize(FOREVER);
    drop((program, builder, engine));
    weir_is_done.unwrap();
    assert_eq!(strict.early_ends(), 0);
}
