//! Contexts, streams and events that the host has besides.

use crate::bench::{Bench, LEN, values};
use crate::kit::{fake, is_fake, raw, with_driver};
use std::ffi::c_void;
use weir_core::base::Code;
use weir_core::device::DeviceKind;
use weir_core::engine::{Engine, EngineAttr, Stream, StreamAttr};

type Pointer = *mut c_void;

fn current() -> Pointer {
    let mut context = std::ptr::null_mut();
    raw!(cuCtxGetCurrent(&raw mut context): *mut Pointer);
    context
}

/// A context of the host's own, which is current from now on.
fn new_context() -> Pointer {
    let mut context = std::ptr::null_mut();
    raw!(cuInit(0): u32);
    raw!(cuCtxCreate_v2(&raw mut context, 0, 0): *mut Pointer, u32, i32);
    assert_eq!(current(), context);
    context
}

fn use_it(bench: &Bench) {
    let x = bench.on_device().unwrap();
    bench.stream.enqueue(bench.fill(9), vec![], vec![x.clone()]).unwrap();
    assert_eq!(bench.read(&x).unwrap(), vec![9; LEN]);
}

#[test]
fn the_current_context_of_the_host_stays_what_it_is() {
    with_driver(&[], || {
        raw!(cuInit(0): u32);
        assert!(current().is_null());
        let bench = Bench::new();
        assert!(current().is_null());
        use_it(&bench);
        assert!(current().is_null(), "a thread without a context has none afterwards");
        let own = new_context();
        use_it(&bench);
        assert_eq!(current(), own);
        let error = bench.stream.queue().device_queue().unwrap().stream().native_handle();
        assert!(error.is_ok());
        drop(bench);
        assert_eq!(current(), own);
        raw!(cuCtxDestroy_v2(own): Pointer);
    });
}

#[test]
fn calls_in_the_right_context_do_not_change_it() {
    with_driver(&[], || {
        let bench = Bench::new();
        let x = bench.on_device().unwrap();
        let primary = bench.engine.native_handle().unwrap() as usize as Pointer;
        raw!(cuCtxSetCurrent(primary): Pointer);
        let before = fake::count("cuCtxSetCurrent");
        bench.stream.enqueue_fill(x, 1).unwrap();
        bench.wait().unwrap();
        assert_eq!(fake::count("cuCtxSetCurrent"), before);
        raw!(cuCtxSetCurrent(std::ptr::null_mut()): Pointer);
    });
}

#[test]
fn the_primary_context_is_retained_and_its_flags_are_left_alone() {
    with_driver(&[("ALONE", "")], || {
        raw!(cuInit(0): u32);
        raw!(cuDevicePrimaryCtxSetFlags_v2(0, 4): i32, u32);
        let state = || {
            let (mut flags, mut active) = (0, 0);
            raw!(cuDevicePrimaryCtxGetState(0, &raw mut flags, &raw mut active): i32, *mut u32, *mut i32);
            (flags, active)
        };
        assert_eq!(state(), (4, 0));
        let bench = Bench::new();
        use_it(&bench);
        assert_eq!(state(), (4, 1));
        drop(bench);
        assert_eq!(state(), (4, 0), "released with the last of the engine");
        use_it(&Bench::new());
    });
}

#[test]
fn an_engine_in_a_context_of_the_hosts() {
    with_driver(&[("DEVICES", "2")], || {
        let own = new_context();
        raw!(cuCtxSetCurrent(std::ptr::null_mut()): Pointer);
        let mut attr = EngineAttr::new(DeviceKind::CUDA);
        attr.context = Some(own as u64);
        let bench = Bench::with(Some(&attr)).unwrap();
        assert_eq!(bench.engine.native_handle().unwrap(), own as u64);
        use_it(&bench);
        let error = Engine::create(DeviceKind::CUDA, 1, Some(&attr)).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains("the host's context is of another device than engine cuda:1"), "{error}");
        let error = Engine::create(DeviceKind::CUDA, 0, None).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        drop(bench);
        assert_eq!(fake::count("cuDevicePrimaryCtxRetain"), 0);
        raw!(cuCtxDestroy_v2(own): Pointer);
    });
}

#[test]
fn streams_of_the_hosts() {
    with_driver(&[], || {
        let bench = Bench::new();
        let primary = bench.engine.native_handle().unwrap() as usize as Pointer;
        raw!(cuCtxSetCurrent(primary): Pointer);
        let mut own: Pointer = std::ptr::null_mut();
        raw!(cuStreamCreateWithPriority(&raw mut own, 1, 0): *mut Pointer, u32, i32);
        let wrap = |handle: Pointer| {
            let mut attr = StreamAttr::new(DeviceKind::CUDA);
            attr.wrapped = Some(handle as u64);
            Stream::create(bench.engine.clone(), attr)
        };
        let x = bench.on_device().unwrap();
        for handle in [own, std::ptr::null_mut(), 1 as Pointer, 2 as Pointer] {
            let stream = wrap(handle).unwrap();
            assert_eq!(stream.native_handle().unwrap(), handle as u64);
            let host = bench.on_host(|_| 0);
            stream.enqueue_fill(x.clone(), 5).unwrap();
            // The host's own work behind weir's, in the same stream.
            raw!(cuMemsetD8Async(x.data() as u64, 6, 4, handle): u64, u8, usize, Pointer);
            stream.enqueue_copy(x.clone(), host.clone()).unwrap();
            stream.synchronize(u64::MAX).unwrap();
            let values = values(&host);
            assert_eq!(values[..2], [0x0606_0606, 0x0505_0505]);
        }
        if is_fake() {
            assert_eq!(fake::live(Some("stream")), 1 + 2, "the host's, weir's, and that of its memory");
        }
        // A stream of another context.
        let other = {
            let mut context = std::ptr::null_mut();
            raw!(cuCtxCreate_v2(&raw mut context, 0, 0): *mut Pointer, u32, i32);
            context
        };
        let mut foreign: Pointer = std::ptr::null_mut();
        raw!(cuStreamCreateWithPriority(&raw mut foreign, 1, 0): *mut Pointer, u32, i32);
        let error = wrap(foreign).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        // The driver may refuse it before weir does.
        let text = error.message();
        assert!(text.contains("the CUstream is of another context") || text.contains("cuStreamGetCtx: "), "{error}");
        raw!(cuStreamDestroy_v2(foreign): Pointer);
        raw!(cuCtxDestroy_v2(other): Pointer);
        raw!(cuCtxSetCurrent(primary): Pointer);
        raw!(cuStreamDestroy_v2(own): Pointer);
        raw!(cuCtxSetCurrent(std::ptr::null_mut()): Pointer);
    });
}

#[test]
fn events_go_both_ways() {
    with_driver(&[], || {
        let bench = Bench::new();
        let primary = bench.engine.native_handle().unwrap() as usize as Pointer;
        raw!(cuCtxSetCurrent(primary): Pointer);
        let (mut own, mut event): (Pointer, Pointer) = (std::ptr::null_mut(), std::ptr::null_mut());
        raw!(cuStreamCreateWithPriority(&raw mut own, 1, 0): *mut Pointer, u32, i32);
        raw!(cuEventCreate(&raw mut event, 2): *mut Pointer, u32);
        let x = bench.on_device().unwrap();
        // weir, then the host, then weir again.
        bench.stream.enqueue_fill(x.clone(), 1).unwrap();
        bench.stream.enqueue_foreign_event(event as u64, true).unwrap();
        raw!(cuStreamWaitEvent(own, event, 0): Pointer, Pointer, u32);
        raw!(cuMemsetD8Async(x.data() as u64, 2, 4, own): u64, u8, usize, Pointer);
        raw!(cuEventRecord(event, own): Pointer, Pointer);
        bench.stream.enqueue_foreign_event(event as u64, false).unwrap();
        assert_eq!(bench.read(&x).unwrap()[..2], [0x0202_0202, 0x0101_0101]);
        // An event of weir's.
        let marker = bench.event();
        assert_eq!(marker.native_handle().unwrap_err().code(), Code::FailedPrecondition);
        bench.stream.enqueue_fill(x.clone(), 3).unwrap();
        marker.record(&bench.stream).unwrap();
        let handle = marker.native_handle().unwrap() as usize as Pointer;
        raw!(cuStreamWaitEvent(own, handle, 0): Pointer, Pointer, u32);
        raw!(cuMemsetD8Async(x.data() as u64, 4, 4, own): u64, u8, usize, Pointer);
        raw!(cuStreamSynchronize(own): Pointer);
        assert_eq!(bench.read(&x).unwrap()[..2], [0x0404_0404, 0x0303_0303]);
        raw!(cuEventDestroy_v2(event): Pointer);
        raw!(cuStreamDestroy_v2(own): Pointer);
        raw!(cuCtxSetCurrent(std::ptr::null_mut()): Pointer);
    });
}
