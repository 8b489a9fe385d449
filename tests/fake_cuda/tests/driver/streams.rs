//! Streams and events: what is ordered, what is not, and what the checker says of it.

use crate::cuda::*;
use crate::{call, ok};
use fake_cuda::abi::Handle;
use fake_cuda::testing::Driver;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::{Duration, Instant};

/// Many milliseconds: longer than the host needs to get to the next call.
const LONG_US: u64 = 300_000;

#[test]
fn streams_go_on_while_the_host_does() {
    let Some(run) = Driver::new().child("streams::streams_go_on_while_the_host_does") else {
        start();
        let (a, b, spin) = (stream(), stream(), function("spin"));
        let (done, begun) = (event(), Instant::now());
        assert_eq!(launch(spin, a, &[LONG_US]), 0);
        ok!(cuEventRecord(done, a));
        assert_eq!(call!(cuEventQuery(done)), 600, "it cannot be done yet");
        assert_eq!(call!(cuStreamQuery(a)), 600);
        ok!(cuStreamQuery(b));
        assert_eq!(launch(spin, b, &[LONG_US]), 0);
        ok!(cuStreamSynchronize(b));
        ok!(cuEventSynchronize(done));
        ok!(cuEventQuery(done));
        assert!(begun.elapsed() >= Duration::from_micros(LONG_US));
        // An event that was never recorded is done.
        ok!(cuEventQuery(event()));
        return;
    };
    run.succeeds();
}

#[test]
fn copies_of_pageable_memory_are_at_once() {
    let test = "streams::copies_of_pageable_memory_are_at_once";
    let Some(run) = Driver::new().set("RACES", "report").child(test) else {
        start();
        let (stream, spin) = (stream(), function("spin"));
        let (address, mut pageable, held) = (memory(4), vec![1u32], pinned(1));
        assert_eq!(launch(spin, stream, &[LONG_US]), 0);
        ok!(cuMemcpyHtoDAsync_v2(address, pageable.as_ptr(), 4usize, stream));
        pageable[0] = 2;
        assert_eq!(call!(cuStreamQuery(stream)), 600, "the copy waits for the kernel");
        ok!(cuStreamSynchronize(stream));
        assert_eq!(read(address, 1), [1], "as it was when the call returned");
        held[0] = 1;
        assert_eq!(launch(spin, stream, &[LONG_US]), 0);
        ok!(cuMemcpyHtoDAsync_v2(address, held.as_ptr(), 4usize, stream));
        held[0] = 2;
        ok!(cuStreamSynchronize(stream));
        assert_eq!(read(address, 1), [2], "as it is when the copy runs");
        assert_eq!(launch(spin, stream, &[LONG_US]), 0);
        ok!(cuMemcpyDtoHAsync_v2(pageable.as_mut_ptr(), address, 4usize, stream));
        assert_eq!(pageable[0], 2, "the call has waited");
        return;
    };
    run.succeeds();
}

#[test]
fn a_missing_wait_is_a_race_in_every_order() {
    let test = "streams::a_missing_wait_is_a_race_in_every_order";
    for seed in 0..4 {
        let Some(run) = Driver::new().set("RACES", "report").set("SEED", seed).child(test) else {
            start();
            let (a, b, done) = (stream(), stream(), event());
            let (fill, touch) = (function("fill"), function("touch"));
            let address = memory(64);
            assert_eq!(launch(fill, a, &[address, 16, 5]), 0);
            ok!(cuEventRecord(done, a));
            ok!(cuStreamWaitEvent(b, done, 0u32));
            assert_eq!(launch(touch, b, &[address, 64]), 0);
            ok!(cuStreamSynchronize(b));
            assert_eq!(races(), [""; 0], "ordered by the event");
            // The next writer does not wait for the reader.
            assert_eq!(launch(touch, b, &[address + 8, 8]), 0);
            assert_eq!(launch(fill, a, &[address, 16, 6]), 0);
            ok!(cuCtxSynchronize());
            let races = races();
            assert_eq!(races.len(), 1, "{races:?}");
            for part in ["bytes 8..16 of the 64 of cuMemAlloc #1", "cuLaunchKernel of fill", "cuLaunchKernel of touch"]
            {
                assert!(races[0].contains(part), "{races:?}");
            }
            return;
        };
        run.succeeds();
    }
}

#[test]
fn a_race_ends_the_process() {
    let Some(run) = Driver::new().child("streams::a_race_ends_the_process") else {
        start();
        let (a, b, fill) = (stream(), stream(), function("fill"));
        let address = memory(64);
        assert_eq!(launch(fill, a, &[address, 16, 5]), 0);
        assert_eq!(launch(fill, b, &[address, 16, 6]), 0);
        ok!(cuCtxSynchronize());
        return;
    };
    run.fails_with("nothing orders one behind the other");
}

#[test]
fn default_streams_wait_for_blocking_ones() {
    let test = "streams::default_streams_wait_for_blocking_ones";
    let Some(run) = Driver::new().child(test) else {
        start();
        let fill = function("fill");
        let mut blocking = Handle::NULL;
        ok!(cuStreamCreate(out(&mut blocking), 0u32));
        let address = memory(64);
        for (value, stream) in [(1, blocking), (2, Handle::NULL), (3, blocking), (4, Handle::LEGACY)] {
            assert_eq!(launch(fill, stream, &[address, 16, value]), 0);
        }
        assert_eq!(read(address, 1), [4]);
        // The per-thread stream is a blocking one.
        assert_eq!(launch(fill, Handle::PER_THREAD, &[address, 16, 5]), 0);
        assert_eq!(read(address, 1), [5]);
        return;
    };
    run.succeeds();
}

#[test]
fn a_seed_gives_the_same_order_again() {
    let test = "streams::a_seed_gives_the_same_order_again";
    let body = || {
        start();
        let streams = [stream(), stream(), stream()];
        let (fill, address) = (function("fill"), memory(3 * 64));
        // A number for each launch, as its host function is called.
        static ORDER: AtomicU32 = AtomicU32::new(0);
        unsafe extern "C" fn called(data: *mut c_void) {
            print!(" {}", data as usize);
            ORDER.fetch_add(1, SeqCst);
        }
        print!("order:");
        for round in 0..6u64 {
            for (index, stream) in streams.iter().enumerate() {
                assert_eq!(launch(fill, *stream, &[address + 64 * index as u64, 16, round]), 0);
                let data = std::ptr::without_provenance_mut::<c_void>(round as usize * 10 + index);
                ok!(cuLaunchHostFunc(*stream, called as unsafe extern "C" fn(*mut c_void), data));
            }
            ok!(cuStreamSynchronize(streams[round as usize % 3]));
        }
        ok!(cuCtxSynchronize());
        println!(" end");
        assert_eq!(ORDER.load(SeqCst), 18);
    };
    let mut orders = Vec::new();
    for seed in [1, 1, 1, 2, 3] {
        let Some(run) = Driver::new().set("SEED", seed).child(test) else { return body() };
        run.succeeds();
        let order = run.output.split("order:").nth(1).and_then(|rest| rest.split(" end").next()).unwrap();
        orders.push(order.to_owned());
    }
    assert!(orders[0] == orders[1] && orders[1] == orders[2], "{orders:#?}");
    assert!(orders[0] != orders[3] || orders[0] != orders[4], "{orders:#?}");
}

#[test]
fn a_host_that_waits_elsewhere_is_not_stuck() {
    let test = "streams::a_host_that_waits_elsewhere_is_not_stuck";
    let Some(run) = Driver::new().set("SEED", 5).child(test) else {
        start();
        let stream = stream();
        static CALLED: AtomicU32 = AtomicU32::new(0);
        unsafe extern "C" fn called(_: *mut c_void) {
            CALLED.store(1, SeqCst);
        }
        let none = std::ptr::null_mut::<c_void>();
        ok!(cuLaunchHostFunc(stream, called as unsafe extern "C" fn(*mut c_void), none));
        while CALLED.load(SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Queries alone also get there.
        let done = event();
        ok!(cuEventRecord(done, stream));
        while call!(cuEventQuery(done)) == 600 {}
        return;
    };
    run.succeeds();
}

#[test]
fn a_host_function_must_not_call_the_driver() {
    let test = "streams::a_host_function_must_not_call_the_driver";
    let Some(run) = Driver::new().child(test) else {
        start();
        unsafe extern "C" fn called(_: *mut c_void) {
            ok!(cuCtxSynchronize());
        }
        let none = std::ptr::null_mut::<c_void>();
        ok!(cuLaunchHostFunc(stream(), called as unsafe extern "C" fn(*mut c_void), none));
        ok!(cuCtxSynchronize());
        return;
    };
    run.fails_with("a host function calls cuCtxSynchronize");
}

#[test]
fn memory_is_the_streams_that_allocated_it() {
    let test = "streams::memory_is_the_streams_that_allocated_it";
    let Some(run) = Driver::new().set("RACES", "report").child(test) else {
        start();
        let (a, b, fill) = (stream(), stream(), function("fill"));
        let mut address = 0u64;
        ok!(cuMemAllocAsync(out(&mut address), 64usize, a));
        // Another stream does not wait for the allocation, and the free does not wait for it.
        assert_eq!(launch(fill, b, &[address, 16, 1]), 0);
        ok!(cuStreamSynchronize(b));
        ok!(cuStreamSynchronize(a));
        assert_eq!(races().len(), 1, "{:?}", races());
        assert_eq!(launch(fill, b, &[address, 16, 1]), 0);
        ok!(cuMemFreeAsync(address, a));
        let _ = call!(cuStreamSynchronize(b));
        let _ = call!(cuStreamSynchronize(a));
        // Either the free came first, then the kernel has failed; or the kernel did, then it is a race.
        let failed = call!(cuCtxSynchronize());
        assert!(failed == 700 || races().len() == 2, "{failed} {:?}", races());
        return;
    };
    run.succeeds();
}

#[test]
fn memory_that_was_freed_is_known() {
    let test = "streams::memory_that_was_freed_is_known";
    let Some(run) = Driver::new().child(test) else {
        start();
        let (a, fill) = (stream(), function("fill"));
        let mut address = 0u64;
        ok!(cuMemAllocAsync(out(&mut address), 64usize, a));
        ok!(cuMemFreeAsync(address, a));
        memory(64);
        assert_eq!(launch(fill, a, &[address, 16, 1]), 0);
        assert_eq!(call!(cuStreamSynchronize(a)), 700);
        return;
    };
    run.succeeds();
    assert!(run.output.contains("bytes 0..4 of the 64 of cuMemAllocAsync #1, which was freed"), "{}", run.output);
}

#[test]
fn pinned_memory_in_flight_must_not_be_freed() {
    let test = "streams::pinned_memory_in_flight_must_not_be_freed";
    let Some(run) = Driver::new().set("RACES", "report").child(test) else {
        start();
        let (stream, held, address) = (stream(), pinned(16), memory(64));
        ok!(cuMemcpyDtoHAsync_v2(held.as_mut_ptr(), address, 64usize, stream));
        while call!(cuStreamQuery(stream)) == 600 {}
        ok!(cuMemcpyDtoHAsync_v2(held.as_mut_ptr(), address, 64usize, stream));
        // Long enough for the copy, but that is not an order.
        std::thread::sleep(Duration::from_millis(100));
        ok!(cuMemFreeHost(held.as_mut_ptr()));
        let races = races();
        assert!(
            races.len() == 1 && races[0].contains("cuMemFreeHost gives back bytes 0..64 of 64 pinned"),
            "{races:?}"
        );
        return;
    };
    run.succeeds();
}

#[test]
fn a_stream_can_be_slow() {
    let Some(run) = Driver::new().set("DELAY", "2:200000").child("streams::a_stream_can_be_slow") else {
        start();
        let (_, slow) = (stream(), stream());
        let begun = Instant::now();
        ok!(cuMemsetD8Async(memory(4), 0u8, 4usize, slow));
        ok!(cuStreamSynchronize(slow));
        assert!(begun.elapsed() >= Duration::from_millis(200));
        return;
    };
    run.succeeds();
}

#[test]
fn a_host_that_touches_pinned_memory_too_soon_is_told() {
    let test = "streams::a_host_that_touches_pinned_memory_too_soon_is_told";
    let words = 3 * 4096 / 4;
    for (case, text) in [(0, ""), (1, "cuMemcpyDtoHAsync"), (2, "cuMemcpyHtoDAsync")] {
        let driver = Driver::new().set("PINNED", "guard").variable("CASE", case);
        let Some(run) = driver.child(test) else {
            start();
            let (stream, held, address) = (stream(), pinned(words), memory(words * 4));
            let case = std::env::var("CASE").unwrap();
            ok!(cuMemsetD32Async(address, 5u32, words, stream));
            ok!(cuMemcpyDtoHAsync_v2(held.as_mut_ptr(), address, words * 4, stream));
            if case != "1" {
                ok!(cuStreamSynchronize(stream));
            }
            assert_eq!(held[words / 2], 5);
            ok!(cuMemcpyHtoDAsync_v2(address, held.as_ptr(), words * 4, stream));
            assert_eq!(held[words / 2], 5, "reading is fine");
            if case == "2" {
                held[words / 2] = 6;
            }
            let done = event();
            ok!(cuEventRecord(done, stream));
            while call!(cuEventQuery(done)) == 600 {}
            held.fill(7);
            ok!(cuMemFreeHost(held.as_mut_ptr()));
            return;
        };
        match case {
            0 => run.succeeds(),
            _ => run.fails_with(text).fails_with("it has not waited for that"),
        };
    }
}

#[test]
fn a_wait_that_is_left_out_is_found() {
    let test = "streams::a_wait_that_is_left_out_is_found";
    for left_out in [false, true] {
        let driver = if left_out { Driver::new().set("FAIL", "cuStreamWaitEvent:2:0") } else { Driver::new() };
        let Some(run) = driver.child(test) else {
            start();
            let (streams, done, fill) = ([stream(), stream()], event(), function("fill"));
            let address = memory(64);
            for round in 0..4 {
                let stream = streams[round % 2];
                assert_eq!(launch(fill, stream, &[address, 16, round as u64]), 0);
                ok!(cuEventRecord(done, stream));
                ok!(cuStreamWaitEvent(streams[1 - round % 2], done, 0u32));
            }
            ok!(cuCtxSynchronize());
            assert_eq!(read(address, 1), [3]);
            return;
        };
        match left_out {
            true => run.fails_with("nothing orders one behind the other"),
            false => run.succeeds(),
        };
    }
}
