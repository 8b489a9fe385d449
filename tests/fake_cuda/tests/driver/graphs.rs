//! Graphs that are built node by node, their launches and updates, and control flow in them.

use crate::cuda::*;
use crate::{call, ok};
use fake_cuda::abi::{ExecUpdateResult, Handle, HostNodeParams};
use fake_cuda::testing::Driver;
use std::ffi::{CString, c_void};
use std::time::{Duration, Instant};

const NONE: *const Handle = std::ptr::null();

#[test]
fn nodes_run_behind_those_that_they_wait_for() {
    let test = "graphs::nodes_run_behind_those_that_they_wait_for";
    for seed in ["", "1", "2", "3"] {
        let Some(run) = Driver::new().set("SEED", seed).set("LEAKS", "abort").child(test) else {
            let context = start();
            let (stream, graph) = (stream(), graph());
            let module = module(&["fill", "add"]);
            let (fill, add) = (named(module, "fill"), named(module, "add"));
            let [a, b, sum, copied] = [memory(64), memory(64), memory(64), memory(64)];
            let set = memset(a, 2f32.to_bits(), 16);
            let mut first = Handle::NULL;
            ok!(cuGraphAddMemsetNode(out(&mut first), graph, NONE, 0usize, &raw const set, context));
            let second = add_kernel(graph, &[], fill, &[b, 16, u64::from(3f32.to_bits())]);
            let third = add_kernel(graph, &[first, second], add, &[sum, a, b, 16]);
            let params = copy(copied, sum, 64);
            let mut last = Handle::NULL;
            ok!(cuGraphAddMemcpyNode(out(&mut last), graph, &raw const third, 1usize, &raw const params, context));
            let mut count = 0usize;
            ok!(cuGraphGetEdges(graph, NONE.cast_mut(), NONE.cast_mut(), out(&mut count)));
            assert_eq!(count, 3);
            let exec = instantiate(graph);
            ok!(cuGraphDestroy(graph));
            for _ in 0..3 {
                ok!(cuGraphLaunch(exec, stream));
            }
            ok!(cuStreamSynchronize(stream));
            assert_eq!(read(copied, 16), [5f32.to_bits(); 16]);
            // Another value, without the second sum's copy.
            let four = memset(a, 4f32.to_bits(), 16);
            ok!(cuGraphExecMemsetNodeSetParams(exec, first, &raw const four, context));
            let mut values = Params::new(&[sum, a, a, 16]);
            let node = kernel_node(add, &mut values);
            ok!(cuGraphExecKernelNodeSetParams_v2(exec, third, &raw const node));
            ok!(cuGraphNodeSetEnabled(exec, last, 0u32));
            ok!(cuGraphLaunch(exec, stream));
            ok!(cuStreamSynchronize(stream));
            assert_eq!((read(sum, 1), read(copied, 1)), (vec![8f32.to_bits()], vec![5f32.to_bits()]));
            [a, b, sum, copied].iter().for_each(|address| ok!(cuMemFree_v2(*address)));
            ok!(cuGraphExecDestroy(exec));
            ok!(cuModuleUnload(module));
            ok!(cuStreamDestroy_v2(stream));
            end();
            return;
        };
        run.succeeds();
    }
}

#[test]
fn a_missing_edge_is_a_race() {
    let test = "graphs::a_missing_edge_is_a_race";
    let Some(run) = Driver::new().set("RACES", "report").set("SEED", 1).child(test) else {
        start();
        let (stream, graph, fill) = (stream(), graph(), function("fill"));
        let address = memory(64);
        add_kernel(graph, &[], fill, &[address, 16, 1]);
        add_kernel(graph, &[], fill, &[address + 32, 8, 2]);
        ok!(cuGraphLaunch(instantiate(graph), stream));
        ok!(cuStreamSynchronize(stream));
        let races = races();
        assert!(races.len() == 1 && races[0].contains("bytes 32..64 of the 64"), "{races:?}");
        return;
    };
    run.succeeds();
}

#[test]
fn branches_run_at_the_same_time() {
    let Some(run) = Driver::new().child("graphs::branches_run_at_the_same_time") else {
        start();
        let (stream, graph, spin) = (stream(), graph(), function("spin"));
        // Longer than the machine is ever late.
        for _ in 0..8 {
            add_kernel(graph, &[], spin, &[500_000]);
        }
        let begun = Instant::now();
        ok!(cuGraphLaunch(instantiate(graph), stream));
        ok!(cuStreamSynchronize(stream));
        assert!(begun.elapsed() < Duration::from_millis(3500), "{:?}", begun.elapsed());
        return;
    };
    run.succeeds();
}

#[test]
fn a_graph_becomes_another_of_the_same_shape() {
    let test = "graphs::a_graph_becomes_another_of_the_same_shape";
    let Some(run) = Driver::new().child(test) else {
        start();
        let (stream, fill) = (stream(), function("fill"));
        let address = memory(64);
        let chain = |values: &[u64]| {
            let graph = graph();
            let mut last = Vec::new();
            for value in values {
                last = vec![add_kernel(graph, &last, fill, &[address, 16, *value])];
            }
            graph
        };
        let exec = instantiate(chain(&[1, 2]));
        let mut result = ExecUpdateResult { result: 9, error_node: Handle::NULL, error_from_node: Handle::NULL };
        ok!(cuGraphExecUpdate_v2(exec, chain(&[3, 4]), out(&mut result)));
        assert_eq!(result.result, 0);
        assert_eq!(call!(cuGraphExecUpdate_v2(exec, chain(&[5, 6, 7]), out(&mut result))), 910);
        assert_eq!(result.result, 2, "another shape");
        // Memory of another sort.
        let (one, context) = (graph(), start());
        let (from, held) = (memory(64), pinned(16));
        let (to, mut node) = (copy(address, from, 64), Handle::NULL);
        ok!(cuGraphAddMemcpyNode(out(&mut node), one, NONE, 0usize, &raw const to, context));
        let copies = instantiate(one);
        let mut other = copy(held.as_mut_ptr() as u64, from, 64);
        other.dst_type = 4;
        assert_eq!(call!(cuGraphExecMemcpyNodeSetParams(copies, node, &raw const other, context)), 1);
        let other = copy(address + 32, from, 32);
        ok!(cuGraphExecMemcpyNodeSetParams(copies, node, &raw const other, context));
        ok!(cuGraphLaunch(exec, stream));
        ok!(cuStreamSynchronize(stream));
        assert_eq!(read(address, 1), [4]);
        return;
    };
    run.succeeds();
}

#[test]
fn children_events_and_host_functions_are_nodes() {
    let test = "graphs::children_events_and_host_functions_are_nodes";
    let Some(run) = Driver::new().child(test) else {
        start();
        let (a, b, fill) = (stream(), stream(), function("fill"));
        let (address, done) = (memory(64), event());
        let child = graph();
        add_kernel(child, &[], fill, &[address, 16, 7]);
        let outer = graph();
        let mut node = Handle::NULL;
        ok!(cuGraphAddChildGraphNode(out(&mut node), outer, NONE, 0usize, child));
        ok!(cuGraphDestroy(child));
        let mut recorded = Handle::NULL;
        ok!(cuGraphAddEventRecordNode(out(&mut recorded), outer, &raw const node, 1usize, done));
        unsafe extern "C" fn count(data: *mut c_void) {
            // SAFETY: the test's number, which only this uses until the graph has ended.
            unsafe { *data.cast::<u32>() += 1 };
        }
        let mut calls = 0u32;
        let params = HostNodeParams { function: Some(count), data: (&raw mut calls).cast() };
        let mut called = Handle::NULL;
        ok!(cuGraphAddHostNode(out(&mut called), outer, &raw const recorded, 1usize, &raw const params));
        let exec = instantiate(outer);
        ok!(cuGraphLaunch(exec, a));
        ok!(cuGraphLaunch(exec, a));
        // Another stream waits for the event in the graph.
        ok!(cuStreamWaitEvent(b, done, 0u32));
        assert_eq!(launch(fill, b, &[address, 16, 8]), 0);
        ok!(cuCtxSynchronize());
        assert_eq!((read(address, 1), calls), (vec![8], 2));
        let path = std::env::temp_dir().join(format!("fake-cuda-{}.dot", std::process::id()));
        let text = CString::new(path.to_str().unwrap()).unwrap();
        ok!(cuGraphDebugDotPrint(outer, text.as_ptr(), 0u32));
        let dot = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(dot.contains("kernel fill") && dot.contains("record of event#1"), "{dot}");
        return;
    };
    run.succeeds();
}

#[test]
fn a_while_node_runs_until_its_condition_ends() {
    let test = "graphs::a_while_node_runs_until_its_condition_ends";
    for seed in ["", "1"] {
        let Some(run) = Driver::new().set("SEED", seed).child(test) else {
            start();
            let (stream, graph) = (stream(), graph());
            let module = module(&["count_down", "increment", "fill"]);
            let [count_down, increment, fill] = ["count_down", "increment", "fill"].map(|name| named(module, name));
            let (counter, sum) = (memory(4), memory(4));
            let first = add_kernel(graph, &[], fill, &[counter, 1, 10]);
            let going = handle(graph, Some(1));
            let body = conditional(graph, &[first], going, 1, 1).unwrap()[0];
            // Both run in each round, in any order.
            add_kernel(body, &[], increment, &[sum, 1, 3]);
            add_kernel(body, &[], count_down, &[going, counter]);
            let exec = instantiate(graph);
            ok!(cuMemsetD32_v2(sum, 0u32, 1usize));
            for round in 1..4 {
                ok!(cuGraphLaunch(exec, stream));
                ok!(cuStreamSynchronize(stream));
                assert_eq!(read(sum, 1), [30 * round]);
            }
            return;
        };
        run.succeeds();
    }
}

#[test]
fn if_and_switch_choose_bodies() {
    let test = "graphs::if_and_switch_choose_bodies";
    let body = || {
        start();
        let mut version = 0i32;
        ok!(cuDriverGetVersion(out(&mut version)));
        let (stream, module) = (stream(), module(&["fill", "set_conditional"]));
        let (fill, set) = (named(module, "fill"), named(module, "set_conditional"));
        let address = memory(4);
        let value_after = |kind: u32, bodies: u32, choice: u64| {
            let graph = graph();
            let handle = handle(graph, None);
            ok!(cuMemsetD32_v2(address, 99u32, 1usize));
            let first = add_kernel(graph, &[], set, &[handle, choice]);
            let bodies = conditional(graph, &[first], handle, kind, bodies)?;
            for (index, body) in bodies.into_iter().enumerate() {
                add_kernel(body, &[], fill, &[address, 1, index as u64]);
            }
            ok!(cuGraphLaunch(instantiate(graph), stream));
            ok!(cuStreamSynchronize(stream));
            Ok(read(address, 1)[0])
        };
        assert_eq!((value_after(0, 1, 1), value_after(0, 1, 0)), (Ok(0), Ok(99)));
        let new = [(0, 2, 0, 1), (0, 2, 5, 0), (2, 3, 2, 2), (2, 3, 3, 99)];
        for (kind, bodies, choice, expected) in new {
            let expected = if version >= 12_080 { Ok(expected) } else { Err(1) };
            assert_eq!(value_after(kind, bodies, choice), expected, "{kind} {bodies} {choice}");
        }
    };
    for version in [12_040, 13_000] {
        let Some(run) = Driver::new().version(version).child(test) else { return body() };
        run.succeeds();
    }
}

#[test]
fn bodies_do_not_hold_everything() {
    let Some(run) = Driver::new().child("graphs::bodies_do_not_hold_everything") else {
        start();
        let (stream, graph) = (stream(), graph());
        let handle = handle(graph, None);
        let body = conditional(graph, &[], handle, 0, 1).unwrap()[0];
        let mut node = Handle::NULL;
        assert_eq!(call!(cuGraphAddEventRecordNode(out(&mut node), body, NONE, 0usize, event())), 1);
        unsafe extern "C" fn nothing(_: *mut c_void) {}
        let params = HostNodeParams { function: Some(nothing), data: std::ptr::null_mut() };
        assert_eq!(call!(cuGraphAddHostNode(out(&mut node), body, NONE, 0usize, &raw const params)), 1);
        ok!(cuGraphAddEmptyNode(out(&mut node), body, NONE, 0usize));
        assert_eq!(conditional(graph, &[], handle, 0, 1), Err(1), "a handle is for one node");
        assert_eq!(conditional(body, &[], handle, 0, 1), Err(1), "also inside of it");
        let own = crate::cuda::handle(body, None);
        assert_eq!(conditional(graph, &[], own, 0, 1), Err(1), "it is of the body");
        assert_eq!(call!(cuGraphInstantiateWithFlags(out(&mut node), graph, 0u64)), 1, "a handle without a node");
        let inner = conditional(body, &[], own, 0, 1).unwrap()[0];
        assert_eq!(call!(cuGraphInstantiateWithFlags(out(&mut node), inner, 0u64)), 1, "it is a node's own");
        let (mut other, context) = (Handle::NULL, current());
        assert_eq!(call!(cuGraphConditionalHandleCreate(out(&mut 0u64), graph, Handle::NULL, 0u32, 0u32)), 1);
        ok!(cuCtxCreate_v2(out(&mut other), 0u32, 0i32));
        let foreign = named(module(&["fill"]), "fill");
        ok!(cuCtxSetCurrent(context));
        assert_eq!(add_any_kernel(inner, foreign), 1, "a kernel of another context");
        assert_eq!(add_any_kernel(inner, named(module(&["fail"]), "fail")), 0);
        ok!(cuCtxDestroy_v2(other));
        assert_eq!(call!(cuGraphDestroy(body)), 1, "it is the node's own");
        // Nobody sets the handle.
        ok!(cuGraphLaunch(instantiate(graph), stream));
        assert_eq!(call!(cuStreamSynchronize(stream)), 719);
        return;
    };
    run.succeeds();
    assert!(run.output.contains("nothing has set its handle"), "{}", run.output);
}

#[test]
fn what_is_beside_a_conditional_node_is_a_race() {
    let test = "graphs::what_is_beside_a_conditional_node_is_a_race";
    for seed in ["", "1", "2"] {
        let Some(run) = Driver::new().set("SEED", seed).set("RACES", "report").child(test) else {
            start();
            let (stream, module) = (stream(), module(&["set_conditional", "count_down", "fill", "increment"]));
            let [set, count, fill, increment] =
                ["set_conditional", "count_down", "fill", "increment"].map(|name| named(module, name));
            let (counter, sum) = (memory(4), memory(4));
            let races_of = |build: &dyn Fn(Handle, u64)| {
                let graph = graph();
                build(graph, handle(graph, Some(1)));
                ok!(cuMemsetD32_v2(counter, 3u32, 1usize));
                let before = races().len();
                ok!(cuGraphLaunch(instantiate(graph), stream));
                ok!(cuStreamSynchronize(stream));
                races().split_off(before)
            };
            let while_node = |graph, before: &[Handle], condition| {
                let body = conditional(graph, before, condition, 1, 1).unwrap()[0];
                let first = add_kernel(body, &[], increment, &[sum, 1, 1]);
                add_kernel(body, &[first], count, &[condition, counter]);
            };
            // Each time of the body is behind the one before.
            let found = races_of(&|graph, condition| {
                let first = add_kernel(graph, &[], set, &[condition, 1]);
                while_node(graph, &[first], condition);
            });
            assert_eq!(found, [""; 0]);
            let found = races_of(&|graph, condition| {
                add_kernel(graph, &[], set, &[condition, 1]);
                conditional(graph, &[], condition, 0, 1).unwrap();
            });
            assert!(found.len() == 1 && found[0].contains("the condition of a node"), "{found:?}");
            let found = races_of(&|graph, condition| {
                while_node(graph, &[], condition);
                add_kernel(graph, &[], fill, &[sum, 1, 5]);
            });
            assert!(found.iter().any(|race| race.contains("fill") && race.contains("increment")), "{found:?}");
            return;
        };
        run.succeeds();
    }
}

#[test]
fn a_graph_is_for_one_thread_at_a_time() {
    let Some(run) = Driver::new().child("graphs::a_graph_is_for_one_thread_at_a_time") else {
        start();
        let graph = graph();
        let begun = Instant::now();
        let add = move || {
            while begun.elapsed() < Duration::from_secs(20) {
                let mut node = Handle::NULL;
                ok!(cuGraphAddEmptyNode(out(&mut node), graph, NONE, 0usize));
            }
        };
        let other = std::thread::spawn(add);
        add();
        other.join().unwrap();
        return;
    };
    run.fails_with("two threads use graph#1 at the same time");
}
