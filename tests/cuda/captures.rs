//! Another library in the process captures a stream, as torch.cuda.graph does: whatever is called of weir meanwhile,
//! the capture ends well and nothing of weir's fails.

use crate::bench::{Bench, LEN, number, values};
use crate::direct::{chain, check, floats, run};
use crate::kit::{eventually, exchange, fake, raw, with_driver};
use crate::products::programs::recorded_as_issued;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use weir_core::base::time::Deadline;
use weir_core::base::{Desc, dtype};
use weir_core::device::Then;
use weir_core::engine::{Event, Extent, Stream, StreamAttr, Tensor, sync_all};

type Pointer = *mut c_void;

const GLOBAL: i32 = 0;

/// Calls `f` while another thread captures a stream of its own, in the mode that forbids other threads the most.
fn while_another_captures(context: u64, what: &str, f: impl FnOnce()) {
    let (begun, has_begun) = channel();
    let (done, is_done) = channel::<()>();
    let what = what.to_owned();
    let capturing = std::thread::spawn(move || {
        let (mut stream, mut graph): (Pointer, Pointer) = (std::ptr::null_mut(), std::ptr::null_mut());
        raw!(cuCtxSetCurrent(context as Pointer): Pointer);
        raw!(cuStreamCreate(&raw mut stream, 1): *mut Pointer, u32);
        raw!(cuStreamBeginCapture_v2(stream, GLOBAL): Pointer, i32);
        begun.send(()).unwrap();
        // Also if `f` ends with a panic: an open capture would harm other tests.
        let _ = is_done.recv();
        let ended = {
            type End = unsafe extern "C" fn(Pointer, *mut Pointer) -> i32;
            // SAFETY: the driver's function with this name has this type.
            let end: End = unsafe { std::mem::transmute(crate::kit::symbol("cuStreamEndCapture")) };
            // SAFETY: the stream that captures, and a place for the graph.
            unsafe { end(stream, &raw mut graph) }
        };
        assert_eq!(ended, 0, "the capture of another thread during: {what}");
        raw!(cuGraphDestroy(graph): Pointer);
        raw!(cuStreamDestroy_v2(stream): Pointer);
    });
    has_begun.recv().unwrap();
    assert_eq!(exchange(GLOBAL), GLOBAL, "a thread has the mode that it had");
    f();
    assert_eq!(exchange(GLOBAL), GLOBAL, "a thread has the mode that it had");
    done.send(()).unwrap();
    capturing.join().unwrap();
}

fn spin(bench: &Bench, us: u64) {
    let us = [us];
    let kernel = bench.kernel("spin", 0, &[number(&us)]).unwrap();
    bench.stream.enqueue(kernel, vec![], vec![bench.on_device().unwrap()]).unwrap();
}

#[test]
fn waits_do_not_harm_a_capture_and_are_not_harmed() {
    with_driver(&[("DELAY", "1:3000,2:3000,3:3000")], || {
        let bench = Bench::new();
        let context = bench.engine.native_handle().unwrap();
        let (x, host, event) = (bench.on_device().unwrap(), bench.on_host(|_| 0), bench.event());
        type Wait<'a> = (&'static str, &'a dyn Fn(&Event));
        let waits: [Wait<'_>; 5] = [
            ("an event is asked for until it is reached", &|event| eventually("the event", || event.is_reached())),
            ("a wait for an event", &|event| event.synchronize(u64::MAX).unwrap()),
            ("a wait for an event, with a limit", &|event| event.synchronize(20_000_000_000).unwrap()),
            ("a wait for a stream", &|_| bench.wait().unwrap()),
            ("a stream is asked whether it is idle", &|_| eventually("idle", || bench.stream.is_idle())),
        ];
        for (what, wait) in waits {
            while_another_captures(context, what, || {
                spin(&bench, 500);
                bench.stream.enqueue_fill(x.clone(), 7).unwrap();
                bench.stream.enqueue_copy(x.clone(), host.clone()).unwrap();
                event.record(&bench.stream).unwrap();
                wait(&event);
                event.synchronize(0).unwrap();
            });
            event.synchronize(u64::MAX).unwrap();
            bench.wait().unwrap();
            assert_eq!(values(&host), vec![0x0707_0707; LEN], "{what}");
        }
        let device = bench.engine.accelerator().unwrap();
        let called = Arc::new(AtomicUsize::new(0));
        while_another_captures(context, "somebody is called when an event is reached", || {
            spin(&bench, 500);
            let reached = device.event(false).unwrap();
            bench.stream.queue().device_queue().unwrap().stream().record(&reached).unwrap();
            let count = Arc::clone(&called);
            device.when_reached(&reached, Then::once(move || _ = count.fetch_add(1, SeqCst)));
            eventually("the call", || called.load(SeqCst) == 1);
        });
    });
}

#[test]
fn whatever_is_made_and_given_back_does_not_harm_a_capture() {
    with_driver(&[], || {
        let holder = Bench::new();
        let context = holder.engine.native_handle().unwrap();
        let during = |what: &str, f: &dyn Fn()| while_another_captures(context, what, f);
        during("an engine, its streams, events, and their end", &|| {
            let bench = Bench::new();
            let (other, event) = (bench.stream("other"), bench.event());
            event.record(&other).unwrap();
            bench.stream.wait_event(&event).unwrap();
            bench.wait().unwrap();
        });
        during("memory, until there is none", &|| {
            let tensors: Vec<_> = [1 << 10, 3 << 20, 70 << 20]
                .map(|bytes| Tensor::create(holder.engine.clone(), Desc::new(dtype::U8, &[bytes])).unwrap())
                .into();
            let _ = Tensor::create(holder.engine.clone(), Desc::new(dtype::U8, &[1 << 50])).unwrap_err();
            drop(tensors);
            holder.engine.trim(0);
        });
        during("kernels and programs, alone and recorded", &|| {
            let bench = Bench::new();
            let (x, y) = (floats(&bench, 0.0), bench.on_device().unwrap());
            let program = chain(&bench, 4, true);
            for _ in 0..4 {
                run(&program, &bench.stream, &x, &y).unwrap();
                bench.wait().unwrap();
                check(&bench, &y, |x| x + 100.0 + 3.0 * x);
            }
            program.trim();
        });
        during("waits for everything", &|| {
            let x = holder.on_device().unwrap();
            holder.stream.enqueue_fill(x, 1).unwrap();
            holder.engine.synchronize(u64::MAX).unwrap();
            sync_all(Extent::Everything, u64::MAX).unwrap();
        });
    });
}

/// The other thread's mode costs two calls where something is asked or made, and nothing where work is issued.
#[test]
fn what_is_issued_pays_nothing() {
    with_driver(&[], || {
        let bench = Bench::new();
        let (x, y) = (floats(&bench, 0.0), bench.on_device().unwrap());
        let (program, add, event) = (chain(&bench, 4, false), bench.add().unwrap(), bench.event());
        let issue = || {
            run(&program, &bench.stream, &x, &y).unwrap();
            bench.stream.enqueue(add.clone(), vec![x.clone(), x.clone()], vec![y.clone()]).unwrap();
            bench.stream.enqueue_fill(y.clone(), 1).unwrap();
            event.record(&bench.stream).unwrap();
            bench.stream.wait_event(&event).unwrap();
        };
        (0..3).for_each(|_| issue());
        bench.wait().unwrap();
        let before = fake::count("cuThreadExchangeStreamCaptureMode");
        issue();
        assert_eq!(fake::count("cuThreadExchangeStreamCaptureMode"), before);
        bench.wait().unwrap();
    });
}

/// An event that was recorded into a capture stands for a node of a graph: it is not reached, has not failed, and is an
/// event as before when it is recorded again.
#[test]
fn an_event_in_a_capture_is_not_reached_and_has_not_failed() {
    with_driver(&[], || {
        let bench = Bench::new();
        let context = bench.engine.native_handle().unwrap();
        raw!(cuCtxSetCurrent(context as Pointer): Pointer);
        let (mut theirs, mut graph): (Pointer, Pointer) = (std::ptr::null_mut(), std::ptr::null_mut());
        raw!(cuStreamCreate(&raw mut theirs, 1): *mut Pointer, u32);
        let mut attr = StreamAttr::new(bench.engine.kind());
        attr.wrapped = Some(theirs as u64);
        let stream = Stream::create(bench.engine.clone(), attr).unwrap();
        let device = bench.engine.accelerator().unwrap();
        let event = device.event(false).unwrap();
        raw!(cuStreamBeginCapture_v2(theirs, GLOBAL): Pointer, i32);
        stream.queue().device_queue().unwrap().stream().record(&event).unwrap();
        assert!(!event.is_reached().unwrap());
        assert!(!event.synchronize(Deadline::after(0)).unwrap());
        for deadline in [Deadline::after(2_000_000), Deadline::NEVER] {
            let error = event.synchronize(deadline).unwrap_err();
            assert!(error.message().contains("recorded into a capture"), "{error}");
        }
        raw!(cuStreamEndCapture(theirs, &raw mut graph): Pointer, *mut Pointer);
        assert!(!event.is_reached().unwrap());
        stream.queue().device_queue().unwrap().stream().record(&event).unwrap();
        assert!(event.synchronize(Deadline::NEVER).unwrap());
        raw!(cuGraphDestroy(graph): Pointer);
        drop((stream, event));
        raw!(cuStreamDestroy_v2(theirs): Pointer);
        raw!(cuCtxSetCurrent(std::ptr::null_mut()): Pointer);
    });
}

/// The captures of products that weir makes for its recordings.
#[test]
fn products_are_recorded_while_others_capture() {
    with_driver(&[("BLAS", "13")], || {
        let bench = Bench::new();
        let context = bench.engine.native_handle().unwrap();
        while_another_captures(context, "a program of products", || recorded_as_issued(&bench));
    });
}
