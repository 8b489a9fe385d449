//! Streams whose work a device does, on a device that the test works by hand.

mod by_hand;
mod domains;
mod graphs;
#[path = "../kit/mod.rs"]
mod kit;
mod refused;
mod strict;
mod turns;

use by_hand::{ByHand, device};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use weir_core::abi::WEIR_TIMEOUT_INFINITE as FOREVER;
use weir_core::base::{Code, Desc, Ref, Result};
use weir_core::device::DeviceKind;
use weir_core::engine::{
    BoundKernel, Engine, EngineAttr, Event, KernelOptions, MemoryMode, Stream, StreamAttr, Tensor,
};
use weir_core::kernel::Task;
use weir_core::kernel::builtin::Builtin;
use weir_core::kernel::vector::activation::Activation;
use weir_core::ops::{Eltwise, Matmul, weir_eltwise_op_value as Op};

struct Bench {
    device: Arc<ByHand>,
    engine: Ref<Engine>,
    cpu: Ref<Engine>,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let (kind, device) = device(name);
        // So that the device sees each tensor.
        let mut attr = EngineAttr::new(kind);
        attr.memory_mode = Some(MemoryMode::Direct);
        let engine = Engine::create(kind, 0, Some(&attr)).unwrap();
        Bench { device, engine, cpu: Engine::create(DeviceKind::CPU, 0, None).unwrap() }
    }

    /// Waits while the device works.
    fn wait<R: Send + 'static>(&self, f: impl FnOnce() -> R + Send + 'static) -> R {
        wait_while(|| self.device.run(), f)
    }

    fn synchronize(&self, stream: &Ref<Stream>) -> Result<()> {
        let stream = stream.clone();
        self.wait(move || stream.synchronize(FOREVER))
    }

    fn stream(&self) -> Ref<Stream> {
        Stream::create(self.engine.clone(), StreamAttr::new(self.engine.kind())).unwrap()
    }

    fn host_stream(&self) -> Ref<Stream> {
        let mut attr = StreamAttr::new(DeviceKind::CPU);
        attr.asynchronous = true;
        Stream::create(self.cpu.clone(), attr).unwrap()
    }

    fn on_device(&self) -> Ref<Tensor> {
        Tensor::create(self.engine.clone(), desc()).unwrap()
    }

    fn on_host(&self, values: [f32; 4]) -> Ref<Tensor> {
        let tensor = Tensor::create(self.cpu.clone(), desc()).unwrap();
        // SAFETY: four floats of a tensor that nobody uses yet.
        unsafe { tensor.data().cast::<[f32; 4]>().write(values) };
        tensor
    }

    fn square(&self) -> Ref<BoundKernel> {
        let kernel = Arc::new(Builtin::new(Eltwise { op: Op::WEIR_ELTWISE_SQUARE, alpha: 0.0, beta: 0.0 }));
        BoundKernel::create(self.engine.clone(), kernel, &KernelOptions::default()).unwrap()
    }
}

fn desc() -> Desc {
    Desc::new(weir_core::base::dtype::F32, &[4])
}

fn values(tensor: &Tensor) -> [f32; 4] {
    // SAFETY: four floats of a tensor on the host that no work uses any more.
    unsafe { tensor.data().cast::<[f32; 4]>().read() }
}

struct Count(Arc<AtomicUsize>);

impl Task for Count {
    fn run(&self) -> Result<()> {
        self.0.fetch_add(1, SeqCst);
        Ok(())
    }
}

/// Runs something in a thread that may block, and tells when it is over.
fn apart<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> mpsc::Receiver<R> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(f()));
    told
}

/// The same, while this thread does something again and again.
fn wait_while<R: Send + 'static>(meanwhile: impl Fn(), f: impl FnOnce() -> R + Send + 'static) -> R {
    let waits = apart(f);
    let begun = std::time::Instant::now();
    loop {
        meanwhile();
        match waits.recv_timeout(Duration::from_millis(1)) {
            Ok(result) => return result,
            Err(_) => assert!(begun.elapsed() < LONG, "a wait has not ended"),
        }
    }
}

const A_WHILE: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_secs(20);

#[test]
fn work_is_issued_at_once_and_done_later() {
    let bench = Bench::new("later");
    let (stream, kernel) = (bench.stream(), bench.square());
    let (from, to) = (bench.on_host([1.0, 2.0, 3.0, 4.0]), bench.on_host([0.0; 4]));
    let (x, y) = (bench.on_device(), bench.on_device());
    stream.enqueue_copy(from, x.clone()).unwrap();
    stream.enqueue(kernel, vec![x.clone()], vec![y.clone()]).unwrap();
    stream.enqueue_copy(y.clone(), to.clone()).unwrap();
    assert_eq!(bench.device.log(), ["asked 0: copy", "asked 0: kernel 'square'", "asked 0: copy"]);
    assert!(!stream.is_idle());
    assert_eq!(stream.synchronize(0).unwrap_err().code(), Code::DeadlineExceeded);
    // The work keeps what it needs.
    drop((x, y));
    assert_eq!(bench.device.blocks_in_use(), 2);
    let waits = apart({
        let stream = stream.clone();
        move || stream.synchronize(FOREVER)
    });
    assert!(waits.recv_timeout(A_WHILE).is_err());
    bench.device.run();
    waits.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!(values(&to), [1.0, 4.0, 9.0, 16.0]);
    assert_eq!(bench.device.blocks_in_use(), 0);
    assert!(stream.is_idle());
}

#[test]
fn streams_of_one_device_wait_for_one_another_without_the_host() {
    let bench = Bench::new("together");
    let (first, second) = (bench.stream(), bench.stream());
    let (x, event) = (bench.on_device(), Event::create(bench.engine.clone(), false));
    first.enqueue_fill(x.clone(), 1).unwrap();
    event.record(&first).unwrap();
    second.wait_event(&event).unwrap();
    second.enqueue_fill(x, 2).unwrap();
    assert_eq!(bench.device.log(), ["asked 0: fill", "asked 1: wait", "asked 1: fill"]);
    assert!(!bench.device.step(1), "the second stream has to wait");
    assert!(!event.is_reached());
    bench.device.run();
    assert!(event.is_reached());
    assert_eq!(bench.device.log(), ["done fill", "done fill"]);
    bench.synchronize(&second).unwrap();
}

#[test]
fn streams_of_host_and_device_wait_for_one_another() {
    let bench = Bench::new("across");
    let (host, stream) = (bench.host_stream(), bench.stream());
    let (done, x) = (Arc::new(AtomicUsize::new(0)), bench.on_device());
    let (here, there) = (Event::create(bench.engine.clone(), false), Event::create(bench.cpu.clone(), false));
    // host: wait for the device, count, record; device: fill, record, then wait for the host, fill.
    stream.enqueue_fill(x.clone(), 1).unwrap();
    here.record(&stream).unwrap();
    host.wait_event(&here).unwrap();
    host.enqueue_task(Arc::new(Count(done.clone()))).unwrap();
    there.record(&host).unwrap();
    stream.wait_event(&there).unwrap();
    stream.enqueue_fill(x, 2).unwrap();
    std::thread::sleep(A_WHILE);
    assert_eq!(bench.device.log(), ["asked 0: fill"], "the second one cannot be issued yet");
    assert_eq!(done.load(SeqCst), 0);
    bench.device.run();
    host.synchronize(FOREVER).unwrap();
    assert_eq!(done.load(SeqCst), 1);
    bench.synchronize(&stream).unwrap();
    assert_eq!(bench.device.log(), ["done fill", "asked 0: fill", "done fill"]);
}

#[test]
fn a_function_of_the_hosts_runs_in_its_place() {
    let bench = Bench::new("task");
    let (stream, done, x) = (bench.stream(), Arc::new(AtomicUsize::new(0)), bench.on_device());
    stream.enqueue_fill(x.clone(), 1).unwrap();
    stream.enqueue_task(Arc::new(Count(done.clone()))).unwrap();
    stream.enqueue_fill(x, 2).unwrap();
    std::thread::sleep(A_WHILE);
    assert_eq!((done.load(SeqCst), bench.device.log()), (0, vec!["asked 0: fill".to_owned()]));
    bench.synchronize(&stream).unwrap();
    assert_eq!(done.load(SeqCst), 1);
    assert_eq!(bench.device.log(), ["done fill", "asked 0: fill", "done fill"]);
}

#[test]
fn a_late_failure_sticks_and_is_told_once() {
    let bench = Bench::new("failure");
    let (stream, other, x) = (bench.stream(), bench.stream(), bench.on_device());
    let event = Event::create(bench.engine.clone(), false);
    stream.enqueue_fill(x.clone(), 1).unwrap();
    bench.device.fail_next(0, "a bit has tipped over");
    stream.enqueue_fill(x.clone(), 2).unwrap();
    event.record(&stream).unwrap();
    other.wait_event(&event).unwrap();
    other.enqueue_fill(x.clone(), 3).unwrap();
    bench.device.run();
    let error = bench.synchronize(&stream).unwrap_err();
    assert_eq!(error.code(), Code::DataLoss);
    assert!(error.message().contains("a bit has tipped over"), "{error}");
    assert!(error.message().starts_with("stream 'stream "), "{error}");
    bench.synchronize(&stream).unwrap();
    assert_eq!(stream.enqueue_fill(x.clone(), 4).unwrap_err().code(), Code::FailedPrecondition);
    assert_eq!(event.synchronize(FOREVER).unwrap_err().code(), Code::DataLoss);
    assert_eq!(bench.synchronize(&other).unwrap_err().code(), Code::Aborted);
    let engine = bench.engine.clone();
    assert_eq!(bench.wait(move || engine.synchronize(FOREVER)).unwrap_err().code(), Code::DataLoss);
    stream.clear_error();
    stream.enqueue_fill(x, 5).unwrap();
    bench.device.run();
    bench.synchronize(&stream).unwrap();
    let done = bench.device.log().iter().filter(|line| line.starts_with("done fill")).count();
    assert_eq!(done, 2, "the first and the last");
}

#[test]
fn a_lost_device_ends_every_wait() {
    let bench = Bench::new("lost");
    let (stream, host, x) = (bench.stream(), bench.host_stream(), bench.on_device());
    let event = Event::create(bench.engine.clone(), false);
    let done = Arc::new(AtomicUsize::new(0));
    stream.enqueue_fill(x.clone(), 1).unwrap();
    event.record(&stream).unwrap();
    host.wait_event(&event).unwrap();
    stream.enqueue_task(Arc::new(Count(done.clone()))).unwrap();
    stream.enqueue_fill(x.clone(), 2).unwrap();
    let waits = apart({
        let stream = stream.clone();
        move || stream.synchronize(FOREVER)
    });
    assert!(waits.recv_timeout(A_WHILE).is_err());
    bench.device.lose();
    assert_eq!(waits.recv_timeout(LONG).unwrap().unwrap_err().code(), Code::DeviceLost);
    assert_eq!(host.synchronize(FOREVER).unwrap_err().code(), Code::Aborted);
    assert_eq!(event.synchronize(FOREVER).unwrap_err().code(), Code::DeviceLost);
    assert!(stream.is_idle());
    assert_eq!(done.load(SeqCst), 0);
    drop((x, stream));
    assert_eq!(bench.device.blocks_in_use(), 0);
}

#[test]
fn a_device_that_records_nothing_ends_no_work_early() {
    let bench = Bench::new("records");
    let (stream, x) = (bench.stream(), bench.on_device());
    stream.enqueue_fill(x.clone(), 1).unwrap();
    bench.device.take_no_records(true);
    let error = stream.synchronize(FOREVER).unwrap_err();
    assert_eq!(error.code(), Code::Internal);
    assert!(error.message().contains("no more events"), "{error}");
    assert!(!stream.is_idle());
    drop(x);
    assert_eq!(bench.device.blocks_in_use(), 1, "the device may still be at it");
    bench.device.take_no_records(false);
    stream.clear_error();
    stream.enqueue_fill(bench.on_device(), 2).unwrap();
    bench.synchronize(&stream).unwrap();
    assert_eq!(bench.device.blocks_in_use(), 0);
}

#[test]
fn a_released_stream_keeps_what_the_device_is_at() {
    let bench = Bench::new("released");
    let (stream, x) = (bench.stream(), bench.on_device());
    (0..3).for_each(|i| stream.enqueue_fill(x.clone(), i).unwrap());
    drop((stream, x));
    assert_eq!(bench.device.blocks_in_use(), 1);
    bench.device.run();
    assert_eq!(bench.device.blocks_in_use(), 0);
}

#[test]
fn a_wait_covers_what_was_queued_before_it_and_no_more() {
    let bench = Bench::new("covers");
    let (stream, x) = (bench.stream(), bench.on_device());
    (0..5).for_each(|i| stream.enqueue_fill(x.clone(), i).unwrap());
    let waits = apart({
        let engine = bench.engine.clone();
        move || engine.synchronize(FOREVER)
    });
    std::thread::sleep(A_WHILE);
    (5..9).for_each(|i| stream.enqueue_fill(x.clone(), i).unwrap());
    // Five fills, and the event behind them.
    (0..6).for_each(|_| assert!(bench.device.step(0)));
    waits.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!(bench.device.log().iter().filter(|line| line.starts_with("done")).count(), 5);
    assert!(!stream.is_idle());
    bench.synchronize(&stream).unwrap();
}

#[test]
fn a_long_queue_lets_go_of_what_is_done() {
    let bench = Bench::new("long");
    let stream = bench.stream();
    for i in 0..2000 {
        stream.enqueue_fill(bench.on_device(), (i % 256) as u8).unwrap();
        bench.device.run();
    }
    assert!(bench.device.blocks_in_use() < 300, "{} blocks", bench.device.blocks_in_use());
    bench.synchronize(&stream).unwrap();
    assert_eq!(bench.device.blocks_in_use(), 0);
}

#[test]
fn what_a_device_lacks_is_refused_by_name() {
    let bench = Bench::new("lacks");
    let matmul = Arc::new(Builtin::new(Matmul {
        transpose_a: false,
        transpose_b: false,
        bias: false,
        sum: false,
        activation: Activation::NONE,
        wide: false,
        tf32: false,
        packed: None,
    }));
    let error = BoundKernel::create(bench.engine.clone(), matmul, &KernelOptions::default()).err().unwrap();
    assert_eq!(
        (error.code(), error.message()),
        (Code::Unimplemented, "engine lacks:0: kernel 'matmul': no such kernel here")
    );
    let open = Desc::new(weir_core::base::dtype::F32, &[-1]);
    assert_eq!(Tensor::create_open(bench.engine.clone(), open).unwrap_err().code(), Code::Unimplemented);
    let (stream, x) = (bench.stream(), bench.on_host([0.0; 4]));
    assert_eq!(stream.enqueue_fill(x.clone(), 0).unwrap_err().code(), Code::InvalidArgument);
    let error = bench.host_stream().enqueue_copy(x, bench.on_device()).map(drop);
    assert!(error.is_err_and(|error| error.message().contains("cannot be made by stream")));
}

#[test]
fn several_threads_may_use_one_stream() {
    let bench = Bench::new("threads");
    let (stream, stop) = (bench.stream(), Arc::new(AtomicUsize::new(0)));
    let works = apart({
        let (device, stop) = (bench.device.clone(), stop.clone());
        move || {
            while stop.load(SeqCst) < 3 {
                device.run();
            }
            device.run();
        }
    });
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for i in 0..500 {
                    stream.enqueue_fill(bench.on_device(), 7).unwrap();
                    if i % 7 == 0 {
                        stream.synchronize(FOREVER).unwrap();
                    }
                }
                stop.fetch_add(1, SeqCst);
            });
        }
    });
    works.recv_timeout(LONG).unwrap();
    bench.synchronize(&stream).unwrap();
    assert_eq!(bench.device.blocks_in_use(), 0);
}
