//! Failures of the driver: which are kept, who is told, and that a device that is lost is asked for nothing.

use crate::bench::{Bench, number, output, output_elements, values};
use crate::kit::{eventually, fake, is_fake, with_driver};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use weir_core::base::{Code, Result};
use weir_core::device::{DeviceKind, Then};
use weir_core::engine::{Engine, Stream, StreamAttr};

/// All that weir asks of the driver, in one number.
fn calls() -> u64 {
    [
        "cuCtxGetCurrent",
        "cuLaunchKernel",
        "cuMemsetD8Async",
        "cuEventQuery",
        "cuEventRecord",
        "cuStreamSynchronize",
        "cuMemFreeAsync",
    ]
    .iter()
    .map(|name| fake::count(name))
    .sum()
}

/// A kernel that fails when it runs, with 700.
fn fail(bench: &Bench) -> Result<()> {
    let out = bench.on_device()?;
    let kernel = bench.kernel("fail", 0, &[])?;
    bench.stream.enqueue(kernel, vec![], vec![out])
}

#[test]
fn a_failed_kernel_loses_the_device_and_everybody_is_told() {
    with_driver(&[("LEAKS", "off")], || {
        let bench = Bench::new();
        let (other, event) = (bench.stream("other"), bench.event());
        let x = bench.on_device().unwrap();
        let called = Arc::new(AtomicUsize::new(0));
        // Something to wait for while the kernel is still to fail.
        let spin = [50_000u64];
        let spin = bench.kernel("spin", 0, &[number(&spin)]).unwrap();
        bench.stream.enqueue(spin, vec![], vec![x.clone()]).unwrap();
        fail(&bench).unwrap();
        event.record(&bench.stream).unwrap();
        other.wait_event(&event).unwrap();
        let device = bench.engine.accelerator().unwrap();
        let behind = device.event(false).unwrap();
        bench.stream.queue().device_queue().unwrap().stream().record(&behind).unwrap();
        let count = Arc::clone(&called);
        device.when_reached(&behind, Then::once(move || _ = count.fetch_add(1, SeqCst)));
        let waiter = std::thread::spawn({
            let event = event.clone();
            move || event.synchronize(u64::MAX)
        });
        let error = bench.wait().unwrap_err();
        assert_eq!(error.code(), Code::DeviceLost, "{error}");
        assert!(error.message().contains("engine cuda:0 is lost: "), "{error}");
        assert!(error.message().contains("CUDA_ERROR_ILLEGAL_ADDRESS (700, "), "{error}");
        assert_eq!(waiter.join().unwrap().unwrap_err().code(), Code::DeviceLost);
        eventually("the callback", || called.load(SeqCst) == 1);
        // From now on nothing is asked of the driver.
        let before = calls();
        bench.stream.clear_error();
        for result in [
            bench.stream.enqueue_fill(x.clone(), 1).and_then(|()| bench.wait()),
            bench.engine.accelerator().unwrap().allocate(1 << 20, "a block").map(drop),
            bench.engine.accelerator().unwrap().event(false).map(drop),
            bench.kernel("fill", 0, &[output(0), output_elements(0)]).map(drop),
        ] {
            assert_eq!(result.map(|()| "done").unwrap_err().code(), Code::DeviceLost);
        }
        drop((x, event, other, behind));
        assert_eq!(calls(), before);
        // The context ends with the last of it, and the next engine has a new one.
        drop(bench);
        // A thread that has told somebody may hold the last of it for a moment longer.
        eventually("a new context", || Bench::with(None).is_ok());
        let bench = Bench::new();
        let x = bench.on_device().unwrap();
        bench.stream.enqueue(bench.fill(3), vec![], vec![x.clone()]).unwrap();
        assert_eq!(bench.read(&x).unwrap()[0], 3);
    });
}

/// On a real driver, too: the device is lost for this process, the text says what that means, and all that is the
/// host's goes on.
#[test]
fn a_kernel_that_traps_loses_the_device_for_the_process() {
    with_driver(&[("LEAKS", "off")], || {
        let bench = Bench::new();
        let (x, event) = (bench.on_device().unwrap(), bench.event());
        let stop = bench.kernel("stop", 0, &[]).unwrap();
        bench.stream.enqueue(stop, vec![], vec![x.clone()]).unwrap();
        event.record(&bench.stream).unwrap();
        let check = |result: Result<()>| {
            let error = result.unwrap_err();
            assert_eq!(error.code(), Code::DeviceLost, "{error}");
            assert!(error.message().contains("engine cuda:0 is lost: "), "{error}");
            assert!(error.message().ends_with("; the process must end before it uses CUDA again"), "{error}");
        };
        check(bench.wait());
        check(event.synchronize(u64::MAX));
        bench.stream.clear_error();
        check(bench.stream.enqueue_fill(x, 1).and_then(|()| bench.wait()));
        let (from, to) = (bench.on_host(|i| i as i32), bench.on_host(|_| 0));
        let stream = Stream::create(bench.cpu.clone(), StreamAttr::new(DeviceKind::CPU)).unwrap();
        stream.enqueue_copy(from, to.clone()).unwrap();
        stream.synchronize(u64::MAX).unwrap();
        assert_eq!(values(&to)[7], 7);
    });
}

#[test]
fn a_failure_that_is_no_loss_is_the_streams_alone() {
    with_driver(&[], || {
        let bench = Bench::new();
        let (x, other) = (bench.on_device().unwrap(), bench.stream("other"));
        let kernel = bench.fill(8);
        // CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
        fake::fail("cuLaunchKernel", 1, 701);
        let submitted = bench.stream.enqueue(kernel.clone(), vec![], vec![x.clone()]);
        let error = submitted.and_then(|()| bench.wait()).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
        assert!(error.message().contains("kernel 'fill'"), "{error}");
        assert!(error.message().contains("cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701, "), "{error}");
        bench.stream.clear_error();
        for stream in [&other, &bench.stream] {
            stream.enqueue(kernel.clone(), vec![], vec![x.clone()]).unwrap();
            stream.synchronize(u64::MAX).unwrap();
        }
        assert_eq!(bench.read(&x).unwrap()[0], 8);
    });
}

#[test]
fn with_the_variable_set_the_culprit_is_named() {
    with_driver(&[("WEIR_CUDA_SYNC", "1"), ("LEAKS", "off")], || {
        let bench = Bench::new();
        let x = bench.on_device().unwrap();
        bench.stream.enqueue(bench.fill(8), vec![], vec![x.clone()]).unwrap();
        let error = fail(&bench).and_then(|()| bench.wait()).unwrap_err();
        assert_eq!(error.code(), Code::DeviceLost);
        assert!(error.message().contains("kernel 'fail'"), "{error}");
        assert!(error.message().contains(": CUDA_ERROR_ILLEGAL_ADDRESS (700, "), "{error}");
    });
}

#[test]
fn a_child_of_fork_asks_nothing_of_the_driver() {
    with_driver(&[], || {
        let bench = Bench::new();
        let x = bench.on_device().unwrap();
        // A real driver counts nothing.
        let calls = || if is_fake() { calls() } else { 0 };
        // SAFETY: the child calls what it may, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let before = calls();
            let refused = bench.stream.enqueue_fill(x.clone(), 1).and_then(|()| bench.wait()).is_err()
                && Engine::create(DeviceKind::CUDA, 0, None).is_err();
            drop((x, bench));
            let quiet = calls() == before;
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(!refused) + 2 * i32::from(!quiet)) };
        }
        let mut status = 0;
        // SAFETY: a child of this process.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 0));
        bench.stream.enqueue_fill(x, 1).unwrap();
        bench.wait().unwrap();
    });
}

/// Everything that a small program asks of the driver fails once, at each call: with a failure that is none of the
/// device's, and with its loss. Whatever happens ends with a status, in time, and nothing is left.
#[test]
fn each_call_fails_once() {
    const FUNCTIONS: &[(&str, u64)] = &[
        ("cuDevicePrimaryCtxRetain", 1),
        ("cuDeviceGetName", 1),
        ("cuDeviceTotalMem_v2", 1),
        ("cuMemPoolCreate", 1),
        ("cuCtxGetCurrent", 16),
        ("cuCtxSetCurrent", 16),
        ("cuCtxGetStreamPriorityRange", 1),
        ("cuStreamCreateWithPriority", 2),
        ("cuStreamSynchronize", 2),
        ("cuMemAllocFromPoolAsync", 2),
        ("cuModuleLoadDataEx", 1),
        ("cuModuleGetFunction", 1),
        ("cuFuncGetParamInfo", 4),
        ("cuFuncGetAttribute", 1),
        ("cuMemcpyHtoDAsync_v2", 1),
        ("cuMemsetD8Async", 1),
        ("cuLaunchKernel", 1),
        ("cuMemcpyDtoHAsync_v2", 1),
        ("cuEventCreate", 3),
        ("cuEventRecord", 3),
        ("cuStreamWaitEvent", 1),
        ("cuEventQuery", 4),
    ];
    with_driver(&[("LEAKS", "off"), ("RACES", "off")], || {
        let program = || -> Result<Vec<i32>> {
            let bench = Bench::with(None)?;
            let (x, y) = (bench.on_device()?, bench.on_device()?);
            bench.stream.enqueue_copy(bench.on_host(|i| i as i32), x.clone())?;
            let value = [5u32];
            let kernel = bench.kernel("fill", 0, &[output(0), output_elements(0), number(&value)])?;
            bench.stream.enqueue(kernel, vec![], vec![y.clone()])?;
            let event = bench.event();
            event.record(&bench.stream)?;
            bench.stream.wait_event(&event)?;
            bench.stream.enqueue_fill(x, 1)?;
            bench.read(&y)
        };
        assert_eq!(program().unwrap()[0], 5);
        let mut failures = 0;
        for (name, times) in FUNCTIONS {
            for call in 1..=*times {
                for code in [801, 700] {
                    let before = fake::count(name);
                    fake::fail(name, call, code);
                    let result = program();
                    let reached = fake::count(name) >= before + call;
                    match result {
                        Err(error) => {
                            failures += 1;
                            // What comes behind a failure of a stream is refused.
                            let expected = [Code::Unimplemented, Code::DeviceLost, Code::FailedPrecondition];
                            assert!(expected.contains(&error.code()), "{name} {call} {code}: {error}");
                        }
                        // A failure of taking back, or one that is asked for only to know.
                        Ok(values) => assert!(values[0] == 5, "{name} {call} {code}: {}", values[0]),
                    }
                    if !reached {
                        // The fake driver would give it later: have it now.
                        let _ = program();
                    }
                    // A thread that has told somebody may hold the last of a lost context for a moment longer.
                    let what = format!("{name} {call} {code}: the next ones work");
                    eventually(&what, || program().is_ok_and(|values| values[0] == 5));
                }
            }
        }
        assert!(failures > 60, "{failures} failures");
    });
}
