//! Streams, events, copies and callbacks do what they say.

use crate::kit::{BYTES, Count, Device, LEN, code, download, fill, launch, upload};
use std::sync::Arc;
use weir_core::base::time::Deadline;
use weir_core::base::{Code, Error};
use weir_core::device::{DeviceEvent, HostAddress, Location, Then, Transfer};

#[test]
fn a_stream_does_its_work_in_order() {
    let d = Device::default();
    let s = d.stream("s");
    let (a, b) = (d.memory("a"), d.memory("b"));
    let host: [i32; LEN] = std::array::from_fn(|i| i as i32);
    let mut back = [0; LEN];
    upload(&*s, a, &host).unwrap();
    for salt in 0..200 {
        launch(&*s, "sum", &d.sum(salt), &[a], &[b]).unwrap();
        launch(&*s, "sum", &d.sum(0), &[b], &[a]).unwrap();
    }
    download(&*s, &mut back, a).unwrap();
    d.finish(&*s).unwrap();
    let total: i32 = (0..200).sum();
    assert_eq!(back, std::array::from_fn(|i| i as i32 + total));
    fill(&*s, b, 1).unwrap();
    download(&*s, &mut back, b).unwrap();
    d.finish(&*s).unwrap();
    assert_eq!(back, [0x0101_0101; LEN]);
    let counters = d.device.counters();
    assert_eq!((counters.launches, counters.copies, counters.fills), (400, 3, 1));
    assert_eq!((counters.operations, counters.completed, counters.records), (404, 404, 2));
    assert_eq!((counters.allocations_in_use, counters.bytes_in_use), (2, 2 * BYTES as u64));
}

#[test]
fn calls_return_before_the_work_is_done() {
    let d = Device::default();
    let (s, t) = (d.stream("s"), d.stream("t"));
    let (begun, go) = (Count::default(), Count::default());
    let kernel = {
        let (begun, go) = (begun.clone(), go.clone());
        d.call(move || {
            begun.add();
            go.wait(1);
            Ok(())
        })
    };
    launch(&*s, "gate", &kernel, &[], &[]).unwrap();
    let event = d.event();
    s.record(&event).unwrap();
    t.wait(&event).unwrap();
    launch(&*t, "after", &d.sum(7), &[], &[]).unwrap();
    begun.wait(1);
    assert!(!event.is_reached().unwrap());
    assert!(!event.synchronize(Deadline::after(2_000_000)).unwrap());
    assert!(d.ran.lock().is_empty());
    go.add();
    d.finish(&*t).unwrap();
    assert!(event.is_reached().unwrap());
    assert_eq!(*d.ran.lock(), [7]);
}

#[test]
fn an_event_counts_as_recorded_last() {
    let d = Device::default();
    let s = d.stream("s");
    let event = d.event();
    assert!(event.is_reached().unwrap(), "never recorded");
    assert!(event.synchronize(Deadline::after(0)).unwrap());
    for salt in 0..100 {
        launch(&*s, "sum", &d.sum(salt), &[], &[]).unwrap();
        s.record(&event).unwrap();
        assert!(event.synchronize(Deadline::NEVER).unwrap());
        assert_eq!(d.ran.lock().len(), salt as usize + 1);
    }
    let go = Count::default();
    let waiting = go.clone();
    launch(
        &*s,
        "gate",
        &d.call(move || {
            waiting.wait(1);
            Ok(())
        }),
        &[],
        &[],
    )
    .unwrap();
    s.record(&event).unwrap();
    assert_eq!(code(s.record(&event)), Code::FailedPrecondition);
    go.add();
    d.finish(&*s).unwrap();
}

#[test]
fn callbacks_come_once_and_for_failures_too() {
    let d = Device::default();
    let s = d.stream("s");
    let called = Count::default();
    let then = || {
        let called = called.clone();
        Then::once(move || {
            called.add();
        })
    };
    let (event, never) = (d.event(), d.event());
    d.device.when_reached(&never, then());
    assert_eq!(called.get(), 1, "never recorded: at once");
    let go = Count::default();
    let waiting = go.clone();
    launch(
        &*s,
        "gate",
        &d.call(move || {
            waiting.wait(1);
            Err(Error::internal("broken"))
        }),
        &[],
        &[],
    )
    .unwrap();
    s.record(&event).unwrap();
    (0..10).for_each(|_| d.device.when_reached(&event, then()));
    assert_eq!(called.get(), 1);
    go.add();
    called.wait(11);
    let error = event.is_reached().unwrap_err();
    assert_eq!(error.message(), "emulated:0, stream 's', operation 1: gate: broken");
    d.device.when_reached(&event, then());
    assert_eq!(called.get(), 12);
}

/// Everything may be submitted from a callback; a wait there is refused.
#[test]
fn a_callback_may_submit() {
    let d = Arc::new(Device::default());
    let (s, done) = (d.stream("s"), Count::default());
    let event = d.event();
    launch(&*s, "first", &d.sum(1), &[], &[]).unwrap();
    // Not before the callback is there: it would be called here, where a wait is allowed.
    let go = Count::default();
    let waiting = go.clone();
    let gate = d.call(move || {
        waiting.wait(1);
        Ok(())
    });
    launch(&*s, "gate", &gate, &[], &[]).unwrap();
    s.record(&event).unwrap();
    let (inner, told, seen) = (Arc::clone(&d), done.clone(), Arc::clone(&event));
    d.device.when_reached(
        &event,
        Then::once(move || {
            let s = inner.stream("t");
            launch(&*s, "second", &inner.sum(2), &[], &[]).unwrap();
            let event = inner.event();
            s.record(&event).unwrap();
            assert!(seen.synchronize(Deadline::NEVER).unwrap(), "reached: no wait");
            assert_eq!(code(event.synchronize(Deadline::NEVER)), Code::FailedPrecondition);
            inner.device.when_reached(&event, told.adder());
        }),
    );
    go.add();
    done.wait(1);
    assert_eq!(*d.ran.lock(), [1, 2]);
}

#[test]
fn devices_copy_to_each_other() {
    let (d, e) = (Device::checked(), Device::checked());
    let (s, a, b) = (d.stream("s"), d.memory("a"), e.memory("b"));
    let host: [i32; LEN] = std::array::from_fn(|i| 3 * i as i32);
    let mut back = [0; LEN];
    upload(&*s, a, &host).unwrap();
    let to = Location::Peer(&*e.device, b);
    s.copy(&Transfer { name: "across", to, from: Location::Device(a), bytes: BYTES }).unwrap();
    d.finish(&*s).unwrap();
    let t = e.stream("t");
    download(&*t, &mut back, b).unwrap();
    e.finish(&*t).unwrap();
    assert_eq!(back, host);
    assert_eq!(e.texts(), [""; 0], "the host waited in between");
    fill(&*s, a, 9).unwrap();
    s.copy(&Transfer { name: "across", to: Location::Device(a), from: Location::Peer(&*e.device, b), bytes: BYTES })
        .unwrap();
    fill(&*t, b, 0).unwrap();
    let text = "missing wait: fill (operation 2, stream 't') writes bytes 0 to 256 of b while across (operation 4, stream 's') \
                may still read them";
    assert_eq!(e.texts(), [text]);
    d.finish(&*s).unwrap();
    e.finish(&*t).unwrap();
}

#[test]
fn what_is_not_the_devices_is_refused() {
    let (d, e) = (Device::default(), Device::default());
    let (s, a, b) = (d.stream("s"), d.memory("a"), e.memory("b"));
    let mut host = [0; LEN];
    assert_eq!(code(launch(&*s, "sum", &d.sum(1), &[b], &[a])), Code::InvalidArgument);
    let error = launch(&*s, "kernel 'x'", &d.sum(1), &[a], &[a, 4096]).unwrap_err();
    assert!(error.message().starts_with("output 1: 256 bytes at 0x1000 are not in the memory of emulated:0"));
    assert_eq!(code(download(&*s, &mut host, b)), Code::InvalidArgument);
    assert_eq!(code(fill(&*s, host.as_ptr() as usize, 1)), Code::InvalidArgument);
    let copy = |to, from| s.copy(&Transfer { name: "copy", to, from, bytes: BYTES });
    // SAFETY: refused, because it is not the host's.
    let host = |address| Location::Host(unsafe { HostAddress::new(address) });
    assert_eq!(code(copy(host(a), Location::Device(a))), Code::InvalidArgument);
    assert_eq!(code(copy(host(b), Location::Device(a))), Code::InvalidArgument);
    assert_eq!(code(copy(Location::Device(a), Location::Peer(&*e.device, 64))), Code::InvalidArgument);
    assert_eq!(code(s.record(&e.event())), Code::InvalidArgument);
    assert_eq!(code(s.wait(&e.event())), Code::InvalidArgument);
    assert_eq!(code(e.event().elapsed_ns(&*d.event())), Code::InvalidArgument);
    assert_eq!(d.device.counters().operations, 0);
    assert_eq!(d.device.device().memory_bytes(), 1 << 30);
}

#[test]
fn times_need_timing_and_an_end() {
    let d = Device::default();
    let s = d.stream("s");
    let (start, end, plain) = (d.event(), d.event(), d.device.event(false).unwrap());
    assert_eq!(code(end.elapsed_ns(&*start)), Code::FailedPrecondition);
    for event in [&start, &plain, &end] {
        s.record(event).unwrap();
        event.synchronize(Deadline::NEVER).unwrap();
    }
    assert!(end.elapsed_ns(&*start).unwrap() >= 0);
    assert_eq!(code(end.elapsed_ns(&*plain)), Code::FailedPrecondition);
    let held: Arc<dyn DeviceEvent> = Arc::clone(&end);
    assert_eq!(end.elapsed_ns(&*held).unwrap(), 0);
}
