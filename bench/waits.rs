//! What waits for everything cost: with nothing to wait for, and on the path of those who queue work.
//!
//! `cargo bench --bench waits`, with the number of pairs as an optional argument. The second part is run in processes
//! of their own, in turn: one that has never waited for everything, and one that has done so ten thousand times. A
//! third one has another thread that does it without pause.

#[path = "../tests/kit/emulated.rs"]
mod emulated;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;
use weir_core::base::{Desc, Ref, Result, dtype};
use weir_core::device::DeviceKind;
use weir_core::engine::{BoundKernel, Engine, KernelOptions, Stream, StreamAttr, Tensor};
use weir_core::kernel::Task;
use weir_core::kernel::builtin::Builtin;
use weir_core::ops::{Eltwise, weir_eltwise_op_value as Op};

const ENGINES: u32 = 3;
const STREAMS: usize = 4;
/// Work that is queued before it is waited for.
const BURST: usize = 128;

#[allow(unsafe_code)]
mod c {
    use std::ffi::c_void;
    use std::ptr::null_mut;

    unsafe extern "C" {
        pub fn weir_sync_devices(timeout_ns: u64, results: *mut c_void, capacity: usize, out_count: *mut usize) -> i32;
    }
    /// As a host calls it.
    pub fn sync_devices() {
        // SAFETY: no results are wanted.
        assert_eq!(unsafe { weir_sync_devices(u64::MAX, null_mut(), 0, null_mut()) }, 0);
    }
}

struct Nothing;

impl Task for Nothing {
    fn run(&self) -> Result<()> {
        Ok(())
    }
}

struct Bench {
    streams: Vec<Ref<Stream>>,
    synchronous: Ref<Stream>,
    lane: Ref<Stream>,
    /// Of the host's engine and of the first device: kernel, input, output.
    here: (Ref<BoundKernel>, Ref<Tensor>, Ref<Tensor>),
    there: (Ref<BoundKernel>, Ref<Tensor>, Ref<Tensor>),
}

fn desc() -> Desc {
    Desc::new(dtype::F32, &[16])
}

fn with_kernel(engine: &Ref<Engine>) -> (Ref<BoundKernel>, Ref<Tensor>, Ref<Tensor>) {
    let square = Arc::new(Builtin::new(Eltwise { op: Op::WEIR_ELTWISE_SQUARE, alpha: 0.0, beta: 0.0 }));
    let kernel = BoundKernel::create(engine.clone(), square, &KernelOptions::default()).unwrap();
    let tensor = || Tensor::create(engine.clone(), desc()).unwrap();
    (kernel, tensor(), tensor())
}

impl Bench {
    fn new() -> Bench {
        let cpu = Engine::create(DeviceKind::CPU, 0, None).unwrap();
        emulated::register();
        let devices: Vec<_> = (0..ENGINES).map(|i| Engine::create(DeviceKind::EMULATED, i, None).unwrap()).collect();
        let stream = |engine: &Ref<Engine>, asynchronous| {
            let mut attr = StreamAttr::new(engine.kind());
            attr.asynchronous = asynchronous;
            Stream::create(engine.clone(), attr).unwrap()
        };
        let streams = devices.iter().flat_map(|engine| (0..STREAMS).map(|_| stream(engine, true))).collect();
        let bench = Bench {
            streams,
            synchronous: stream(&cpu, false),
            lane: stream(&cpu, true),
            here: with_kernel(&cpu),
            there: with_kernel(&devices[0]),
        };
        // All have had something to do.
        for stream in bench.streams.iter().filter(|stream| stream.engine().index() == 0) {
            bench.copy(stream);
        }
        bench.lane.enqueue_task(Arc::new(Nothing)).unwrap();
        bench.streams.iter().chain([&bench.lane]).for_each(|stream| stream.synchronize(u64::MAX).unwrap());
        bench
    }

    fn copy(&self, stream: &Stream) {
        stream.enqueue_copy(self.here.1.clone(), self.there.1.clone()).unwrap();
    }

    fn call(&self, stream: &Stream, what: &(Ref<BoundKernel>, Ref<Tensor>, Ref<Tensor>)) {
        stream.enqueue(what.0.clone(), vec![what.1.clone()], vec![what.2.clone()]).unwrap();
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds of one call: the median of so many batches.
fn each(batches: usize, calls: usize, mut f: impl FnMut()) -> f64 {
    let batch = |_| {
        let start = Instant::now();
        (0..calls).for_each(|_| f());
        start.elapsed().as_secs_f64() * 1e9 / calls as f64
    };
    median((0..batches).map(batch).collect())
}

/// Nanoseconds to queue one thing; the wait for it is not counted.
fn queueing(stream: &Stream, f: impl Fn()) -> f64 {
    let burst = |_| {
        let start = Instant::now();
        (0..BURST).for_each(|_| f());
        let took = start.elapsed().as_secs_f64() * 1e9 / BURST as f64;
        stream.synchronize(u64::MAX).unwrap();
        took
    };
    median((0..400).map(burst).collect())
}

const PATHS: [&str; 4] = [
    "kernel, synchronous CPU stream",
    "function, CPU stream on a lane",
    "kernel, device stream",
    "copy, device stream",
];

/// A process of its own: prints what each path takes.
fn child(how: &str) {
    let bench = Bench::new();
    let stop = Arc::new(AtomicBool::new(false));
    if how == "after" {
        (0..10_000).for_each(|_| c::sync_devices());
    }
    let other = (how == "during").then(|| {
        let stop = stop.clone();
        std::thread::spawn(move || {
            while !stop.load(Relaxed) {
                c::sync_devices();
            }
        })
    });
    let device = &bench.streams[0];
    let times = [
        queueing(&bench.synchronous, || bench.call(&bench.synchronous, &bench.here)),
        queueing(&bench.lane, || bench.lane.enqueue_task(Arc::new(Nothing)).unwrap()),
        queueing(device, || bench.call(device, &bench.there)),
        queueing(device, || bench.copy(device)),
    ];
    stop.store(true, Relaxed);
    if let Some(other) = other {
        other.join().unwrap();
    }
    println!("{}", times.map(|time| format!("{time:.1}")).join(" "));
}

fn run(how: &str) -> Vec<f64> {
    let output = Command::new(std::env::current_exe().unwrap()).args(["--child", how]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().split_whitespace().map(|time| time.parse().unwrap()).collect()
}

fn idle() {
    let bench = Bench::new();
    let streams = bench.streams.len();
    println!("nothing to wait for: {ENGINES} emulated engines of {STREAMS} streams each, and the CPU's with 2");
    let sync = each(31, 2000, c::sync_devices);
    let status = each(31, 500, || {
        drop(weir_core::engine::sync_each(weir_core::engine::Extent::Everything, u64::MAX, 64).unwrap())
    });
    let engine = each(31, 2000, || bench.streams[0].engine().synchronize(u64::MAX).unwrap());
    let all = each(31, 2000, || bench.streams.iter().for_each(|stream| stream.synchronize(u64::MAX).unwrap()));
    println!("weir_sync_devices           {sync:6.0} ns");
    println!("with results                {status:6.0} ns, without the copy to C");
    println!("one engine                  {engine:6.0} ns");
    println!("the {streams} streams by hand      {all:6.0} ns");
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--child") {
        return child(&args[at + 1]);
    }
    let pairs = args.iter().filter_map(|arg| arg.parse().ok()).next().unwrap_or(5);
    idle();
    let mut times: [Vec<Vec<f64>>; 4] = Default::default();
    for _ in 0..pairs {
        for (how, times) in ["never", "after", "during", "never"].into_iter().zip(&mut times) {
            times.push(run(how));
        }
    }
    println!("to queue one thing, ns, medians of {pairs} processes each");
    println!("{:<32}{:>8}{:>8}{:>8}{:>8}", "", "never", "after", "during", "never");
    for (path, name) in PATHS.iter().enumerate() {
        let [never, after, during, again] =
            [0, 1, 2, 3].map(|how: usize| median(times[how].iter().map(|times| times[path]).collect()));
        println!(
            "{name:<32}{never:8.1}{after:8.1}{during:8.1}{again:8.1}   after / never {:.3}, never / never {:.3}",
            after / never,
            again / never
        );
    }
}
