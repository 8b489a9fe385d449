//! How threads wait for a device is an engine's to say: by the driver's own wait, by looking, or by looking and
//! yielding.

use crate::bench::{Bench, number};
use crate::kit::{fake, with_driver};
use weir_core::device::{DeviceKind, Waiting};
use weir_core::engine::{EngineAttr, Extent, sync_all};

const LONG_NS: u64 = 1_000_000_000;

/// Waits for a kernel of 5 ms in each way; how often the driver's own wait was called.
fn blocking_waits(waiting: Option<Waiting>) -> u64 {
    let mut attr = EngineAttr::new(DeviceKind::CUDA);
    attr.set_waiting(waiting).unwrap();
    assert_eq!(attr.waiting().unwrap(), waiting);
    let bench = Bench::with(Some(&attr)).unwrap();
    let us = [5_000u64];
    let (kernel, x) = (bench.kernel("spin", 0, &[number(&us)]).unwrap(), bench.on_device().unwrap());
    let event = bench.event();
    bench.wait().unwrap();
    let before = fake::count("cuEventSynchronize");
    let ways: [&dyn Fn(); 4] = [
        &|| bench.wait().unwrap(),
        &|| event.synchronize(u64::MAX).unwrap(),
        &|| bench.engine.synchronize(u64::MAX).unwrap(),
        &|| sync_all(Extent::Everything, u64::MAX).unwrap(),
    ];
    for wait in ways {
        bench.stream.enqueue(kernel.clone(), vec![], vec![x.clone()]).unwrap();
        event.record(&bench.stream).unwrap();
        wait();
        assert!(event.is_reached());
    }
    fake::count("cuEventSynchronize") - before
}

#[test]
fn threads_wait_as_their_engine_says() {
    with_driver(&[], || {
        let of = |spin_ns, yields| Some(Waiting { spin_ns, yields });
        assert_eq!(blocking_waits(None), 4, "each sleeps in the driver");
        assert_eq!(blocking_waits(of(0, false)), 4, "at once");
        assert_eq!(blocking_waits(of(LONG_NS, false)), 0, "it was over before");
        assert_eq!(blocking_waits(of(0, true)), 0, "never");
        // Two engines on one device have each its own.
        let _other = Bench::new();
        assert_eq!(blocking_waits(of(0, true)), 0);
    });
}

#[test]
fn an_engine_of_the_host_has_no_device_to_wait_for() {
    let mut attr = EngineAttr::new(DeviceKind::CPU);
    let error = attr.set_waiting(Some(Waiting { spin_ns: 0, yields: true })).unwrap_err();
    assert!(error.message().contains("cpu engine, which has no device to wait for"), "{error}");
    let mut attr = EngineAttr::new(DeviceKind::CUDA);
    assert!(attr.set_waiting(Some(Waiting { spin_ns: LONG_NS + 1, yields: false })).is_err());
}
