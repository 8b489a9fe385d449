//! What engines on a CUDA device do.

use crate::bench::{Bench, LEN, values};
use crate::kit::{fake, with_driver};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use weir_core::base::{Code, Desc, dtype};
use weir_core::device::cuda::CudaDevice;
use weir_core::device::{DeviceKind, Then};
use weir_core::engine::{Engine, EngineAttr, Event, MemoryMode, Stream, StreamAttr, Tensor};
use weir_core::threadpool::conformance::Options;

/// The oldest driver that is taken, the first with what can be missing, and a new one.
const VERSIONS: [&str; 4] = ["12000", "12040", "12080", "13000"];

fn each_version(body: impl Fn() + Copy) {
    // The child finds its version in the environment.
    for version in VERSIONS {
        if with_driver(&[("VERSION", version)], body).is_none() {
            return;
        }
    }
}

#[test]
fn bytes_go_there_and_back_in_order() {
    each_version(|| {
        let bench = Bench::new();
        let (x, y) = (bench.on_device().unwrap(), bench.on_device().unwrap());
        let (from, to) = (bench.on_host(|i| i as i32), bench.on_host(|_| 0));
        bench.stream.enqueue_copy(from, x.clone()).unwrap();
        bench.stream.enqueue_copy(x.clone(), y.clone()).unwrap();
        bench.stream.enqueue_fill(x.clone(), 7).unwrap();
        bench.stream.enqueue_copy(y, to.clone()).unwrap();
        bench.wait().unwrap();
        assert_eq!(values(&to), (0..LEN as i32).collect::<Vec<_>>());
        assert_eq!(bench.read(&x).unwrap(), vec![0x0707_0707; LEN]);
    });
}

#[test]
fn the_device_says_what_it_is() {
    each_version(|| {
        assert_eq!(weir_core::engine::count(DeviceKind::CUDA), 1);
        let error = Engine::create(DeviceKind::CUDA, 1, None).unwrap_err();
        assert_eq!(error.code(), Code::OutOfRange);
        let bench = Bench::new();
        let facts = CudaDevice::of(bench.engine.device()).unwrap().facts().clone();
        assert!(!facts.name.is_empty() && facts.pci_bus_id.contains(':') && facts.uuid != [0; 16]);
        if let Ok(version) = std::env::var("FAKE_CUDA_VERSION") {
            assert_eq!(facts.driver_version.to_string(), version);
        }
        assert!(facts.driver_version >= 12_000);
        assert!(facts.capability[0] > 0 && facts.multiprocessors > 0 && facts.max_threads_per_block >= 1024);
        let info = bench.engine.info();
        assert_eq!((info.kind, info.alignment, info.memory_bytes), (2, 256, facts.memory_bytes));
    });
}

#[test]
fn streams_wait_for_one_another_without_the_host() {
    each_version(|| {
        let bench = Bench::new();
        let (other, event) = (bench.stream("other"), bench.event());
        let x = bench.on_device().unwrap();
        let syncs = || fake::counted("cuEventSynchronize") + fake::counted("cuStreamSynchronize");
        let before = syncs();
        bench.stream.enqueue_fill(x.clone(), 1).unwrap();
        event.record(&bench.stream).unwrap();
        other.wait_event(&event).unwrap();
        other.enqueue_fill(x.clone(), 2).unwrap();
        let (back, host) = (bench.event(), bench.on_host(|_| 0));
        back.record(&other).unwrap();
        bench.stream.wait_event(&back).unwrap();
        bench.stream.enqueue_copy(x, host.clone()).unwrap();
        assert_eq!(syncs(), before);
        bench.wait().unwrap();
        assert_eq!(values(&host), vec![0x0202_0202; LEN]);
    });
}

#[test]
fn events_tell_time_and_call_back() {
    each_version(|| {
        let bench = Bench::new();
        let [start, end] = [(); 2].map(|()| Event::create(bench.engine.clone(), true));
        let x = bench.on_device().unwrap();
        start.record(&bench.stream).unwrap();
        bench.stream.enqueue_fill(x, 3).unwrap();
        end.record(&bench.stream).unwrap();
        end.synchronize(u64::MAX).unwrap();
        assert!(Event::elapsed_ns(&start, &end).unwrap() >= 0);
        let device = bench.engine.accelerator().unwrap();
        let (event, called) = (device.event(false).unwrap(), Arc::new(AtomicUsize::new(0)));
        bench.stream.queue().device_queue().unwrap().stream().record(&event).unwrap();
        for _ in 0..3 {
            let called = Arc::clone(&called);
            device.when_reached(&event, Then::once(move || _ = called.fetch_add(1, SeqCst)));
        }
        crate::kit::eventually("three calls", || called.load(SeqCst) == 3);
    });
}

#[test]
fn too_much_memory_is_refused_and_all_of_it_comes_back() {
    each_version(|| {
        let mut attr = EngineAttr::new(DeviceKind::CUDA);
        attr.memory_mode = Some(MemoryMode::Direct);
        let bench = Bench::with(Some(&attr)).unwrap();
        let device = CudaDevice::of(bench.engine.device()).unwrap();
        let free = device.free_bytes().unwrap();
        let error = Tensor::create(bench.engine.clone(), Desc::new(dtype::U8, &[1 << 50])).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
        let tensor = Tensor::create(bench.engine.clone(), Desc::new(dtype::U8, &[32 << 20])).unwrap();
        bench.wait().unwrap();
        assert!(device.free_bytes().unwrap() <= free - (32 << 20));
        drop(tensor);
    });
}

#[test]
fn priorities_are_the_drivers() {
    with_driver(&[], || {
        let bench = Bench::new();
        let primary = bench.engine.native_handle().unwrap() as usize;
        crate::kit::raw!(cuCtxSetCurrent(primary): usize);
        let stream = |priority| {
            let mut attr = StreamAttr::new(DeviceKind::CUDA);
            attr.priority = priority;
            let stream = Stream::create(bench.engine.clone(), attr).unwrap();
            let (raw, mut answer, mut flags) = (stream.native_handle().unwrap() as usize, 0i32, 0u32);
            crate::kit::raw!(cuStreamGetPriority(raw, &raw mut answer): usize, *mut i32);
            crate::kit::raw!(cuStreamGetFlags(raw, &raw mut flags): usize, *mut u32);
            assert_eq!(flags, 1, "a stream that waits for the legacy default stream");
            answer
        };
        assert!(stream(100) < stream(0));
        assert!(stream(-100) >= stream(0));
        crate::kit::raw!(cuCtxSetCurrent(0): usize);
    });
}

#[test]
fn conformance() {
    each_version(|| {
        // All rounds on one version, on others enough to see that each clause holds there, too.
        let few = std::env::var("FAKE_CUDA_VERSION").is_ok_and(|version| version != "13000");
        let all = Options::default();
        let rounds = if few { 4 } else { all.rounds };
        let options = Options { budget_ns: 10_000_000_000, rounds, ..all };
        let lines = weir_core::engine::examine_device(DeviceKind::CUDA, 0, options).unwrap();
        let failed: Vec<_> = lines
            .iter()
            .filter(|line| {
                !matches!(
                    line.verdict,
                    weir_core::threadpool::conformance::ClauseVerdict::Pass
                        | weir_core::threadpool::conformance::ClauseVerdict::NotOffered
                )
            })
            .map(|line| format!("{} {}: {:?} {}", line.clause, line.title, line.verdict, line.text))
            .collect();
        assert!(failed.is_empty(), "{failed:#?}");
    });
}

/// Straight where they reach each other's memory, whatever it comes from; through the host's where the machine does not
/// let them.
#[test]
fn two_devices_copy_to_one_another() {
    let settings: [(&[(&str, &str)], u64); 4] = [
        (&[("DEVICES", "2")], 0),
        (&[("DEVICES", "2"), ("WITHOUT", "cuMemPoolCreate")], 0),
        (&[("DEVICES", "2"), ("PEERS", "none")], 2),
        (&[("DEVICES", "2"), ("PEERS", "none"), ("WITHOUT", "cuMemPoolCreate")], 2),
    ];
    for (settings, staged) in settings {
        let ran = with_driver(settings, || {
            let bench = Bench::new();
            // One that is made anew is no other than before.
            drop(Engine::create(DeviceKind::CUDA, 1, None).unwrap());
            let second = Engine::create(DeviceKind::CUDA, 1, None).unwrap();
            let there = Tensor::create(second.clone(), crate::bench::desc()).unwrap();
            let (x, y) = (bench.on_device().unwrap(), bench.on_device().unwrap());
            bench.stream.enqueue_copy(bench.on_host(|i| 3 * i as i32), x.clone()).unwrap();
            bench.stream.enqueue_copy(x, there.clone()).unwrap();
            bench.stream.enqueue_copy(there, y.clone()).unwrap();
            assert_eq!(bench.read(&y).unwrap(), (0..LEN as i32).map(|i| 3 * i).collect::<Vec<_>>());
            assert_eq!(fake::count("cuMemcpyPeerAsync"), 2);
            println!("staged: {}", fake::count("staged copy"));
        });
        match ran {
            None => return,
            Some(output) => assert!(output.contains(&format!("staged: {staged}")), "{settings:?}: {output}"),
        }
    }
}
