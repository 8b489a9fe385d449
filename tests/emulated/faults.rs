//! Faults on request.

use crate::devices::{Emulated, Emulation};
use crate::kit::{BYTES, Count, Device, LEN, code, download, fill, launch, upload};
use weir_core::base::Code;
use weir_core::base::time::Deadline;
use weir_core::device::{DeviceSettings, DeviceStreamAttr};

/// The fifth of ten operations fails: those before it were done, those behind it not, on its stream and on one that
/// waits for it.
#[test]
fn an_operation_fails_late() {
    for seed in [0, 3] {
        let d = Device::new(Emulation { seed, fail_operation: 5, ..Emulation::default() });
        let (s, t) = (d.stream("s"), d.stream("t"));
        let before = d.event();
        for salt in 1..=10 {
            if salt == 5 {
                s.record(&before).unwrap();
            }
            launch(&*s, &format!("kernel 'k{salt}'"), &d.sum(salt), &[], &[]).unwrap();
        }
        let (event, other) = (d.event(), d.event());
        s.record(&event).unwrap();
        t.wait(&event).unwrap();
        launch(&*t, "kernel 'other'", &d.sum(100), &[], &[]).unwrap();
        t.record(&other).unwrap();
        let error = event.synchronize(Deadline::NEVER).unwrap_err();
        assert_eq!(error.code(), Code::Internal);
        assert_eq!(error.message(), "emulated:0, stream 's', operation 5: kernel 'k5' failed, as asked");
        let derived = other.synchronize(Deadline::NEVER).unwrap_err();
        assert_eq!(derived.code(), Code::Aborted);
        assert_eq!(
            derived.message(),
            "emulated:0, stream 't': waited for event 2 of a failed stream: emulated:0, stream 's', operation 5: kernel \
             'k5' failed, as asked"
        );
        assert!(before.is_reached().unwrap());
        assert_eq!(*d.ran.lock(), [1, 2, 3, 4]);
        assert_eq!(code(d.finish(&*s)), Code::Internal, "it stays");
        launch(&*s, "passed over", &d.sum(11), &[], &[]).unwrap();
        s.clear_error();
        launch(&*s, "done", &d.sum(12), &[], &[]).unwrap();
        d.finish(&*s).unwrap();
        assert_eq!(*d.ran.lock(), [1, 2, 3, 4, 12]);
        assert_eq!(code(d.finish(&*t)), Code::Aborted);
        t.clear_error();
        d.finish(&*t).unwrap();
        assert_eq!(d.device.counters().completed, 13);
    }
}

#[test]
fn a_copy_fails_and_an_allocation() {
    let d = Device::new(Emulation { fail_copy: 2, fail_allocation: 3, ..Emulation::default() });
    let (s, a, b) = (d.stream("s"), d.memory("a"), d.memory("b"));
    let error = d.device.allocate(BYTES, "tensor c").unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert_eq!(error.message(), "emulated:0: out of memory, as asked: tensor c needs 256 bytes (allocation 3)");
    d.device.allocate(BYTES, "tensor c").unwrap();
    let (host, mut back) = ([5; LEN], [0; LEN]);
    upload(&*s, a, &host).unwrap();
    fill(&*s, b, 0).unwrap();
    launch(&*s, "kernel", &d.sum(0), &[a], &[b]).unwrap();
    download(&*s, &mut back, b).unwrap();
    let error = d.finish(&*s).unwrap_err();
    assert_eq!(error.message(), "emulated:0, stream 's', operation 4: download failed, as asked");
    assert_eq!(back, [0; LEN]);
    s.clear_error();
    download(&*s, &mut back, b).unwrap();
    d.finish(&*s).unwrap();
    assert_eq!(back, [5; LEN]);
}

#[test]
fn memory_ends_where_it_is_said_to() {
    let d = Device::new(Emulation { memory_bytes: 10_000, ..Emulation::default() });
    let first = d.device.allocate(6_000, "tensor a").unwrap();
    let error = d.device.allocate(6_000, "tensor b").unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert_eq!(
        error.message(),
        "emulated:0: out of memory: tensor b needs 6000 bytes, 6144 of 10000 are in use, the largest free piece has 3856; \
         tensor a has 6000"
    );
    d.device.deallocate(first, 6_000);
    assert_eq!(d.device.allocate(6_000, "tensor b").unwrap(), first, "addresses come back");
    assert_eq!(d.device.counters().peak_bytes, 6144);
}

/// Everybody is told: those who wait, those who are called, and all who come later.
#[test]
fn a_device_is_lost() {
    for seed in [0, 4] {
        let d = Device::new(Emulation { seed, lose_operation: 3, ..Emulation::default() });
        let (s, t) = (d.stream("s"), d.stream("t"));
        let (start, a, go, kernel) = (d.event(), d.memory("a"), Count::default(), d.sum(0));
        s.record(&start).unwrap();
        assert!(start.synchronize(Deadline::NEVER).unwrap());
        let held = go.clone();
        launch(
            &*s,
            "gate",
            &d.call(move || {
                held.wait(1);
                Ok(())
            }),
            &[],
            &[],
        )
        .unwrap();
        launch(&*s, "second", &d.sum(2), &[], &[]).unwrap();
        launch(&*s, "third", &d.sum(3), &[], &[]).unwrap();
        let (event, other) = (d.event(), d.event());
        s.record(&event).unwrap();
        t.wait(&event).unwrap();
        t.record(&other).unwrap();
        let called = Count::default();
        for event in [&event, &other] {
            let called = called.clone();
            d.device.when_reached(event, called.adder());
        }
        assert!(!d.device.device().is_lost());
        let error = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| other.synchronize(Deadline::NEVER).unwrap_err());
            go.add();
            waiter.join().unwrap()
        });
        assert_eq!(error.code(), Code::DeviceLost);
        assert_eq!(error.message(), "emulated:0 was lost, as asked, at operation 3 (third)");
        called.wait(2);
        assert!(d.device.device().is_lost());
        assert_eq!(*d.ran.lock(), [2]);
        let lost = Code::DeviceLost;
        assert_eq!(code(start.is_reached()), lost, "every event");
        assert_eq!(code(event.synchronize(Deadline::after(0))), lost);
        assert_eq!(code(other.elapsed_ns(&*start)), lost);
        assert_eq!(code(launch(&*s, "x", &kernel, &[], &[])), lost);
        assert_eq!(code(fill(&*s, a, 0)), lost);
        assert_eq!(code(s.record(&event)), lost);
        assert_eq!(code(t.wait(&event)), lost);
        assert_eq!(code(d.device.allocate(1, "b")), lost);
        assert_eq!(code(d.device.event(false)), lost);
        assert_eq!(code(d.device.stream(&DeviceStreamAttr { name: "u", priority: 0 })), lost);
        let late = called.clone();
        d.device.when_reached(&event, late.adder());
        assert_eq!(called.get(), 3);
        d.device.deallocate(a, BYTES);
        assert_eq!(d.device.counters().allocations_in_use, 0);
    }
}

/// Through the registry: engines on one device share it, with the same settings only, and after a loss there is a new
/// one.
#[test]
fn a_lost_device_is_replaced() {
    let settings = |lose_operation| DeviceSettings {
        attributes: Some(Emulation { lose_operation, memory_bytes: 1 << 20, ..Emulation::default() }.settings()),
        ..DeviceSettings::default()
    };
    let open =
        |settings: &DeviceSettings| weir_core::device::open(weir_core::device::DeviceKind::EMULATED, 6, settings);
    let first = open(&settings(1)).unwrap();
    assert_eq!(code(open(&settings(2))), Code::FailedPrecondition);
    assert!(std::sync::Arc::ptr_eq(&first, &open(&settings(1)).unwrap()));
    assert!(std::sync::Arc::ptr_eq(&first, &open(&DeviceSettings::default()).unwrap()));
    let emulated = Emulated::of(&first).unwrap();
    let stream = emulated.stream(&DeviceStreamAttr { name: "s", priority: 0 }).unwrap();
    let (address, event) = (emulated.allocate(BYTES, "a").unwrap(), emulated.event(false).unwrap());
    fill(&*stream, address, 1).unwrap();
    stream.record(&event).unwrap();
    assert_eq!(code(event.synchronize(Deadline::NEVER)), Code::DeviceLost);
    let second = open(&settings(0)).unwrap();
    assert!(!second.is_lost() && first.is_lost());
    assert_eq!(
        code(weir_core::device::open(weir_core::device::DeviceKind::EMULATED, 8, &DeviceSettings::default())),
        Code::OutOfRange
    );
    let odd = Emulation { flags: Emulation::STRICT, ..Emulation::default() };
    assert_eq!(code(Emulated::new(0, odd)), Code::InvalidArgument);
    assert_eq!(code(Emulated::new(0, Emulation { flags: 64, ..odd })), Code::InvalidArgument);
}

/// A kernel may panic: that is its stream's failure and nobody else's.
#[test]
fn a_panic_stays_with_its_stream() {
    let d = Device::default();
    let (s, t) = (d.stream("s"), d.stream("t"));
    launch(&*s, "bad", &d.call(|| panic!("of a kernel")), &[], &[]).unwrap();
    launch(&*t, "good", &d.sum(1), &[], &[]).unwrap();
    let error = d.finish(&*s).unwrap_err();
    assert_eq!(error.code(), Code::Internal);
    assert!(error.message().contains("of a kernel"), "{error}");
    d.finish(&*t).unwrap();
    assert_eq!(*d.ran.lock(), [1]);
}

/// What is submitted while the device is lost is refused or ended: a callback behind it comes.
#[test]
fn nothing_slips_in_behind_a_loss() {
    for round in 0..300 {
        let d = Device::new(Emulation { seed: 1 + round, lose_operation: 40, ..Emulation::default() });
        let (s, t, kernel) = (d.stream("s"), d.stream("t"), d.sum(0));
        let called = Count::default();
        let asked = std::thread::scope(|scope| {
            scope.spawn(|| {
                let go_on = || {
                    let event = d.event_or_lost()?;
                    t.record(&event).ok()?;
                    event.synchronize(Deadline::NEVER).ok()?;
                    launch(&*t, "t", &kernel, &[], &[]).ok()
                };
                while go_on().is_some() {}
            });
            let mut asked = 0;
            loop {
                let event = d.event_or_lost();
                let Some(event) = event.filter(|event| s.record(event).is_ok()) else { break asked };
                d.device.when_reached(&event, called.adder());
                asked += 1;
                if launch(&*s, "s", &kernel, &[], &[]).is_err() {
                    break asked;
                }
            }
        });
        called.wait(asked);
    }
}

/// The host releases everything then, and the checker has nothing to say about it.
#[test]
fn the_memory_of_a_lost_device_may_go() {
    let flags = Emulation::CHECK;
    let d = Device::new(Emulation { lose_operation: 2, flags, ..Emulation::default() });
    let (s, a, b) = (d.stream("s"), d.memory("a"), d.memory("b"));
    for _ in 0..3 {
        let _ = launch(&*s, "kernel", &d.sum(1), &[a], &[b]);
    }
    assert_eq!(code(d.finish(&*s)), Code::DeviceLost);
    d.device.deallocate(a, BYTES);
    d.device.deallocate(b, BYTES);
    assert_eq!(d.texts(), [""; 0]);
}
