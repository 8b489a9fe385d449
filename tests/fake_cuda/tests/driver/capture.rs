//! Stream capture and its rules.

use crate::cuda::*;
use crate::{call, ok};
use fake_cuda::abi::Handle;
use fake_cuda::testing::Driver;
use std::ffi::c_void;

const GLOBAL: i32 = 0;
const THREAD_LOCAL: i32 = 1;
const RELAXED: i32 = 2;

#[test]
fn captured_work_becomes_a_graph() {
    let Some(run) = Driver::new().set("SEED", 3).child("capture::captured_work_becomes_a_graph") else {
        start();
        let (a, b) = (stream(), stream());
        let module = module(&["fill", "add"]);
        let (fill, add) = (named(module, "fill"), named(module, "add"));
        let [x, y, sum] = [memory(64), memory(64), memory(64)];
        let (fork, join) = (event(), event());
        ok!(cuStreamBeginCapture_v2(a, THREAD_LOCAL));
        let mut status = 9i32;
        ok!(cuStreamIsCapturing(a, out(&mut status)));
        assert_eq!(status, 1);
        ok!(cuEventRecord(fork, a));
        ok!(cuStreamWaitEvent(b, fork, 0u32));
        assert_eq!(launch(fill, a, &[x, 16, u64::from(1f32.to_bits())]), 0);
        assert_eq!(launch(fill, b, &[y, 16, u64::from(2f32.to_bits())]), 0);
        ok!(cuEventRecord(join, b));
        assert_eq!(call!(cuEventQuery(join)), 900, "unsafe here, and spoils the capture");
        let mut graph = Handle::NULL;
        assert_eq!(call!(cuStreamEndCapture(a, out(&mut graph))), 901);
        assert!(graph.is_null());
        // Again, without.
        ok!(cuStreamBeginCapture_v2(a, THREAD_LOCAL));
        ok!(cuEventRecord(fork, a));
        ok!(cuStreamWaitEvent(b, fork, 0u32));
        assert_eq!(launch(fill, a, &[x, 16, u64::from(1f32.to_bits())]), 0);
        assert_eq!(launch(fill, b, &[y, 16, u64::from(2f32.to_bits())]), 0);
        ok!(cuEventRecord(join, b));
        ok!(cuStreamWaitEvent(a, join, 0u32));
        assert_eq!(launch(add, a, &[sum, x, y, 16]), 0);
        assert_eq!(call!(cuStreamEndCapture(b, out(&mut graph))), 903);
        ok!(cuStreamEndCapture(a, out(&mut graph)));
        ok!(cuStreamIsCapturing(b, out(&mut status)));
        assert_eq!(status, 0);
        let mut count = 0usize;
        ok!(cuGraphGetNodes(graph, std::ptr::null_mut::<Handle>(), out(&mut count)));
        assert_eq!(count, 3);
        ok!(cuMemsetD32_v2(sum, 0u32, 16usize));
        ok!(cuGraphLaunch(instantiate(graph), a));
        ok!(cuStreamSynchronize(a));
        assert_eq!(read(sum, 1), [3f32.to_bits()]);
        return;
    };
    run.succeeds();
}

#[test]
fn what_is_not_joined_spoils_a_capture() {
    let Some(run) = Driver::new().child("capture::what_is_not_joined_spoils_a_capture") else {
        start();
        let (a, b, fill, fork) = (stream(), stream(), function("fill"), event());
        let address = memory(64);
        let mut graph = Handle::NULL;
        ok!(cuStreamBeginCapture_v2(a, RELAXED));
        ok!(cuEventRecord(fork, a));
        ok!(cuStreamWaitEvent(b, fork, 0u32));
        assert_eq!(launch(fill, b, &[address, 16, 1]), 0);
        assert_eq!(call!(cuStreamEndCapture(a, out(&mut graph))), 904);
        // An event from outside.
        ok!(cuEventRecord(fork, b));
        ok!(cuStreamBeginCapture_v2(a, RELAXED));
        assert_eq!(call!(cuStreamWaitEvent(a, fork, 0u32)), 905);
        assert_eq!(launch(fill, a, &[address, 16, 1]), 901);
        assert_eq!(call!(cuStreamEndCapture(a, out(&mut graph))), 901);
        // Two captures do not become one.
        ok!(cuStreamBeginCapture_v2(a, RELAXED));
        ok!(cuStreamBeginCapture_v2(b, RELAXED));
        ok!(cuEventRecord(fork, a));
        assert_eq!(call!(cuStreamWaitEvent(b, fork, 0u32)), 902);
        assert_eq!(call!(cuStreamEndCapture(a, out(&mut graph))), 901);
        assert_eq!(call!(cuStreamEndCapture(b, out(&mut graph))), 901);
        ok!(cuStreamSynchronize(a));
        return;
    };
    run.succeeds();
}

#[test]
fn a_global_capture_forbids_waits_everywhere() {
    let test = "capture::a_global_capture_forbids_waits_everywhere";
    let Some(run) = Driver::new().child(test) else {
        let context = start();
        let (a, b) = (stream(), stream());
        let mut graph = Handle::NULL;
        for (mode, mine, others) in [(GLOBAL, 900, 900), (THREAD_LOCAL, 900, 0), (RELAXED, 0, 0)] {
            ok!(cuStreamBeginCapture_v2(a, mode));
            let other = std::thread::spawn(move || {
                ok!(cuCtxSetCurrent(context));
                call!(cuStreamSynchronize(b))
            });
            assert_eq!(other.join().unwrap(), others, "mode {mode}");
            let mut address = 0u64;
            assert_eq!(call!(cuMemAlloc_v2(out(&mut address), 4usize)), mine, "mode {mode}");
            let ended = if mine == 0 { 0 } else { 901 };
            assert_eq!(call!(cuStreamEndCapture(a, out(&mut graph))), ended, "mode {mode}");
        }
        // A thread can say that it knows what it does.
        ok!(cuStreamBeginCapture_v2(a, GLOBAL));
        let mut mode = RELAXED;
        ok!(cuThreadExchangeStreamCaptureMode(out(&mut mode)));
        assert_eq!(mode, GLOBAL);
        ok!(cuStreamSynchronize(b));
        assert_eq!(call!(cuStreamSynchronize(a)), 900, "not that");
        assert_eq!(call!(cuStreamEndCapture(a, out(&mut graph))), 901);
        // A capture of a thread's ends there.
        ok!(cuStreamBeginCapture_v2(a, THREAD_LOCAL));
        let other = std::thread::spawn(move || {
            ok!(cuCtxSetCurrent(context));
            let mut graph = Handle::NULL;
            call!(cuStreamEndCapture(a, out(&mut graph)))
        });
        assert_eq!(other.join().unwrap(), 908);
        ok!(cuStreamEndCapture(a, out(&mut graph)));
        // The legacy stream would wait for a blocking one that captures.
        let mut blocking = Handle::NULL;
        ok!(cuStreamCreate(out(&mut blocking), 0u32));
        ok!(cuStreamBeginCapture_v2(blocking, RELAXED));
        assert_eq!(call!(cuMemsetD8Async(memory(4), 0u8, 4usize, Handle::NULL)), 906);
        assert_eq!(call!(cuStreamEndCapture(blocking, out(&mut graph))), 901);
        return;
    };
    run.succeeds();
}

#[test]
fn a_capture_can_go_into_a_graph_that_is_there() {
    let test = "capture::a_capture_can_go_into_a_graph_that_is_there";
    let Some(run) = Driver::new().child(test) else {
        start();
        let (a, fill, graph) = (stream(), function("fill"), graph());
        let address = memory(64);
        let first = add_kernel(graph, &[], fill, &[address, 16, 1]);
        let none = std::ptr::null::<c_void>();
        ok!(cuStreamBeginCaptureToGraph(a, graph, &raw const first, none, 1usize, RELAXED));
        assert_eq!(launch(fill, a, &[address, 16, 2]), 0);
        let mut same = Handle::NULL;
        ok!(cuStreamEndCapture(a, out(&mut same)));
        assert_eq!(same, graph);
        let exec = instantiate(graph);
        // A launch in a capture is a node of that.
        ok!(cuStreamBeginCapture_v2(a, RELAXED));
        ok!(cuGraphLaunch(exec, a));
        assert_eq!(launch(fill, a, &[address + 32, 8, 3]), 0);
        let mut outer = Handle::NULL;
        ok!(cuStreamEndCapture(a, out(&mut outer)));
        ok!(cuGraphLaunch(instantiate(outer), a));
        ok!(cuStreamSynchronize(a));
        assert_eq!((read(address, 1), read(address + 32, 1)), (vec![2], vec![3]));
        return;
    };
    run.succeeds();
}
