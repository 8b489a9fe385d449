//! The device's thread: it begins with the first stream, and ends by itself.

use crate::devices::{Emulated, Emulation};
use crate::kit::{Count, Device, launch};
use std::time::Duration;
use weir_core::base::time::Deadline;
use weir_core::device::Then;

/// Threads of the device with this index, by the system's list of names.
fn threads(index: u32) -> usize {
    let names = std::fs::read_dir("/proc/self/task").unwrap().filter_map(|task| {
        // A thread may end meanwhile.
        std::fs::read_to_string(task.unwrap().path().join("comm")).ok()
    });
    names.filter(|name| name.trim_end() == format!("weir-emulated{index}")).count()
}

fn device(index: u32, seed: u64) -> Device {
    let settings = Emulation { seed, ..Emulation::default() };
    Device { device: Emulated::new(index, settings).unwrap(), ran: Default::default() }
}

fn ended(index: u32) {
    let deadline = Deadline::after(20_000_000_000);
    while threads(index) > 0 {
        assert!(!deadline.is_past(), "the thread of emulated:{index} does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn one_thread_from_the_first_stream_to_the_end() {
    for seed in [0, 1] {
        let d = device(91, seed);
        assert_eq!(threads(91), 0);
        let (s, t) = (d.stream("s"), d.stream("t"));
        launch(&*s, "kernel", &d.sum(1), &[], &[]).unwrap();
        d.finish(&*s).unwrap();
        d.finish(&*t).unwrap();
        assert_eq!(threads(91), 1);
        drop((s, t));
        drop(d);
        ended(91);
    }
}

/// Streams and events may go after the last engine: the device works until they have gone, too.
#[test]
fn the_last_reference_may_go_anywhere() {
    for seed in [0, 1] {
        let d = device(92, seed);
        let s = d.stream("s");
        let (go, called) = (Count::default(), Count::default());
        let (held, told) = (go.clone(), called.clone());
        let gate = d.call(move || {
            held.wait(1);
            Ok(())
        });
        launch(&*s, "gate", &gate, &[], &[]).unwrap();
        let (event, behind) = (d.event(), d.event());
        s.record(&event).unwrap();
        launch(&*s, "behind", &d.sum(1), &[], &[]).unwrap();
        s.record(&behind).unwrap();
        d.device.when_reached(&event, told.adder());
        let ran = std::sync::Arc::clone(&d.ran);
        drop(d);
        go.add();
        called.wait(1);
        assert!(event.synchronize(Deadline::NEVER).unwrap() && behind.synchronize(Deadline::NEVER).unwrap());
        assert_eq!(*ran.lock(), [1]);
        assert_eq!(threads(92), 1);
        drop((s, gate, event, behind));
        ended(92);
    }
}

/// The device is dropped on its own thread, by whoever it calls.
#[test]
fn the_device_may_end_in_a_callback() {
    let d = device(93, 0);
    let s = d.stream("s");
    let (go, event) = (Count::default(), d.event());
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
    s.record(&event).unwrap();
    let (keep, take) = std::sync::mpsc::channel();
    d.device.when_reached(&event, Then::once(move || drop(take.recv())));
    keep.send((d, s, event)).unwrap();
    go.add();
    ended(93);
}
