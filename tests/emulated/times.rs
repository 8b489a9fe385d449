//! Modelled time: it passes as it should, queues pass it at once, and no processor is burnt.

use crate::devices::Emulation;
use crate::kit::{BYTES, Count, Device, LEN, launch, upload};
use std::time::{Duration, Instant};
use weir_core::base::time::Deadline;
use weir_core::device::DeviceStream;

/// What a program takes: `chains` of `length` kernels that take `kernel_ns`, dealt to `streams`.
fn chains(device: &Device, streams: usize, chains: usize, length: usize) -> Duration {
    let all: Vec<_> = (0..streams).map(|i| device.stream(&format!("s{i}"))).collect();
    let kernel = device.call(|| Ok(()));
    let start = Instant::now();
    for chain in 0..chains {
        for _ in 0..length {
            launch(&*all[chain % streams], "kernel", &kernel, &[], &[]).unwrap();
        }
    }
    all.iter().for_each(|stream| device.finish(&**stream).unwrap());
    start.elapsed()
}

#[test]
fn four_streams_are_nearly_four_times_as_fast() {
    let device = || Device::new(Emulation { kernel_ns: 100_000, ..Emulation::default() });
    let mut best = 0.0f64;
    // The machine may be busy: once is enough.
    for _ in 0..5 {
        let one = chains(&device(), 1, 40, 50);
        assert!(one >= Duration::from_millis(200), "2000 kernels of 100 us in {one:?}");
        let four = chains(&device(), 4, 40, 50);
        assert!(four >= Duration::from_millis(50), "500 kernels of 100 us in {four:?}");
        best = best.max(one.as_secs_f64() / four.as_secs_f64());
        if best >= 3.6 {
            println!("1 stream {one:?}, 4 streams {four:?}: {best:.2}");
            return;
        }
    }
    panic!("4 streams reach {best:.2} of 1");
}

#[test]
fn copies_take_latency_and_bytes() {
    let settings = Emulation { latency_ns: 2_000_000, bytes_per_us: 1, ..Emulation::default() };
    let d = Device::new(settings);
    let (s, a, host) = (d.stream("s"), d.memory("a"), [0; LEN]);
    let (start, end) = (d.event(), d.event());
    s.record(&start).unwrap();
    upload(&*s, a, &host).unwrap();
    upload(&*s, a, &host).unwrap();
    s.record(&end).unwrap();
    let clock = Instant::now();
    assert!(end.synchronize(Deadline::NEVER).unwrap());
    let expected = 2 * (2_000_000 + BYTES as i64 * 1000);
    assert!(clock.elapsed() > Duration::from_millis(4));
    let elapsed = end.elapsed_ns(&*start).unwrap();
    assert!((expected..expected + 100_000_000).contains(&elapsed), "{elapsed} ns, expected {expected}");
}

/// What one stream waits for ends the other's operation, not the moment at which a thread noticed.
#[test]
fn time_does_not_drift_along_a_chain_of_waits() {
    let d = Device::new(Emulation { kernel_ns: 50_000, ..Emulation::default() });
    let streams = [d.stream("a"), d.stream("b")];
    let kernel = d.call(|| Ok(()));
    let go = Count::default();
    let held = go.clone();
    let gate = d.call(move || {
        held.wait(1);
        Ok(())
    });
    launch(&*streams[0], "gate", &gate, &[], &[]).unwrap();
    let events: Vec<_> = (0..401).map(|_| d.event()).collect();
    streams[0].record(&events[0]).unwrap();
    for (i, pair) in events.windows(2).enumerate() {
        let stream = &streams[(i + 1) % 2];
        stream.wait(&pair[0]).unwrap();
        launch(&**stream, "kernel", &kernel, &[], &[]).unwrap();
        stream.record(&pair[1]).unwrap();
    }
    go.add();
    assert!(events[400].synchronize(Deadline::NEVER).unwrap());
    let elapsed = events[400].elapsed_ns(&*events[0]).unwrap();
    // To the nanosecond, unless the thread was kept from running for longer than a kernel takes while it ran one.
    assert!((20_000_000..40_000_000).contains(&elapsed), "{elapsed} ns for 400 kernels of 50 us");
}

#[test]
fn precise_ends_are_seen_within_microseconds() {
    let settings = Emulation { kernel_ns: 300_000, flags: Emulation::PRECISE, ..Emulation::default() };
    let d = Device::new(settings);
    let (s, kernel) = (d.stream("s"), d.call(|| Ok(())));
    let late = |_| {
        let start = Instant::now();
        launch(&*s, "kernel", &kernel, &[], &[]).unwrap();
        let event = d.event();
        s.record(&event).unwrap();
        while !event.is_reached().unwrap() {}
        start.elapsed().saturating_sub(Duration::from_nanos(300_000))
    };
    let best = (0..100).map(late).min().unwrap();
    assert!(best < Duration::from_micros(50), "{best:?}");
}

/// Threads named like this, and the processor time of each in nanoseconds.
#[cfg(target_os = "linux")]
fn processor_ns(name: &str) -> Vec<u64> {
    let mut times = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        let comm = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if comm.trim() == name {
            times.push(stat.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0));
        }
    }
    times
}

#[test]
#[cfg(target_os = "linux")]
fn a_device_that_waits_uses_no_processor() {
    let settings = Emulation { kernel_ns: 400_000_000, ..Emulation::default() };
    let d = Device { device: crate::devices::Emulated::new(7, settings).unwrap(), ran: Default::default() };
    let s: Box<dyn DeviceStream> = d.stream("s");
    launch(&*s, "kernel", &d.call(|| Ok(())), &[], &[]).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let before = processor_ns("weir-emulated7");
    assert_eq!(before.len(), 1, "one thread");
    // Once with a kernel under way, once with nothing at all.
    std::thread::sleep(Duration::from_millis(200));
    let during = processor_ns("weir-emulated7");
    assert!(during[0] - before[0] < 1_000_000, "{} ns of processor in 200 ms", during[0] - before[0]);
    d.finish(&*s).unwrap();
    std::thread::sleep(Duration::from_millis(10));
    let before = processor_ns("weir-emulated7");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(processor_ns("weir-emulated7"), before, "idle");
}
