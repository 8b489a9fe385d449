//! What the host does not wait for: mistakes that are made on purpose, each of which the driver must tell.

use crate::cuda::*;
use crate::ok;
use fake_cuda::abi::Handle;
use fake_cuda::testing::{Driver, Run};

/// Without a seed, and with some.
fn drivers() -> Vec<Driver> {
    let seeded = (0..4).map(|seed| Driver::new().set("SEED", seed));
    [Driver::new()].into_iter().chain(seeded).map(|driver| driver.set("UNWAITED", "list")).collect()
}

fn each(test: &str, body: impl Fn(), look: impl Fn(&Run)) {
    for driver in drivers() {
        match driver.child(test) {
            Some(run) => look(&run),
            None => return body(),
        }
    }
}

fn unwaited() -> u64 {
    // SAFETY: the driver's own function, with the type that it has.
    let count: extern "C" fn() -> u64 = unsafe { std::mem::transmute(symbol("fakeCudaUnwaited").unwrap()) };
    count()
}

/// Two runs of a copy and a kernel behind it, on two streams; the second copy waits for the first kernel if it
/// `is_ordered`.
fn two_runs(is_ordered: bool) -> (Handle, Handle) {
    start();
    let (copies, work, there, done) = (stream(), stream(), event(), event());
    let (address, touch, held) = (memory(64), function("touch"), pinned(16));
    for run in 0..2 {
        if is_ordered && run > 0 {
            ok!(cuStreamWaitEvent(copies, done, 0u32));
        }
        ok!(cuMemcpyHtoDAsync_v2(address, held.as_ptr(), 64usize, copies));
        ok!(cuEventRecord(there, copies));
        ok!(cuStreamWaitEvent(work, there, 0u32));
        assert_eq!(launch(touch, work, &[address, 64]), 0);
        ok!(cuEventRecord(done, work));
    }
    (work, done)
}

#[test]
fn a_copy_over_what_a_launch_may_read_is_a_race_though_nobody_waits_for_either() {
    let test = "waited::a_copy_over_what_a_launch_may_read_is_a_race_though_nobody_waits_for_either";
    let body = || {
        let _ = two_runs(false);
    };
    each(test, body, |run| {
        run.fails_with("nothing orders one behind the other");
    });
}

#[test]
fn what_is_ordered_and_waited_for_is_fine_to_the_end() {
    let test = "waited::what_is_ordered_and_waited_for_is_fine_to_the_end";
    for driver in drivers() {
        let Some(run) = driver.set("UNWAITED", "abort").child(test) else {
            let (work, done) = two_runs(true);
            ok!(cuEventSynchronize(done));
            assert_eq!(unwaited(), 0, "the copies are before the kernel");
            let fill = function("fill");
            assert_eq!(launch(fill, work, &[memory(64), 16, 1]), 0);
            assert_eq!(unwaited(), 1);
            ok!(cuStreamSynchronize(work));
            assert_eq!(unwaited(), 0);
            return;
        };
        run.succeeds();
    }
}

#[test]
fn work_that_nobody_waits_for_is_told_at_the_end_of_the_process() {
    let test = "waited::work_that_nobody_waits_for_is_told_at_the_end_of_the_process";
    for driver in drivers() {
        let Some(run) = driver.set("UNWAITED", "abort").child(test) else {
            let _ = two_runs(true);
            return;
        };
        run.fails_with("not waited for before the end of the process");
        assert!(run.output.contains("cuLaunchKernel of touch"), "{}", run.output);
    }
}

#[test]
fn work_that_nobody_waits_for_is_told_at_the_end_of_its_context() {
    let test = "waited::work_that_nobody_waits_for_is_told_at_the_end_of_its_context";
    for driver in drivers() {
        let Some(run) = driver.set("UNWAITED", "abort").child(test) else {
            let _ = two_runs(true);
            end();
            return;
        };
        run.fails_with("not waited for before the end of context#1");
    }
}

#[test]
fn pinned_memory_that_the_host_writes_too_soon_is_a_race() {
    let test = "waited::pinned_memory_that_the_host_writes_too_soon_is_a_race";
    for seed in 0..4 {
        let Some(run) = Driver::new().set("RACES", "report").set("SEED", seed).child(test) else {
            start();
            let (a, address, held) = (stream(), memory(64), pinned(16));
            held.fill(1);
            ok!(cuMemcpyHtoDAsync_v2(address, held.as_ptr(), 64usize, a));
            ok!(cuStreamSynchronize(a));
            held.fill(2);
            ok!(cuMemcpyHtoDAsync_v2(address, held.as_ptr(), 64usize, a));
            assert_eq!(races(), [""; 0], "the host has waited");
            // The next one is under way as it is written.
            held[3] = 3;
            ok!(cuStreamSynchronize(a));
            let found = races();
            assert_eq!(found.len(), 1, "{found:?}");
            for part in ["the host writes bytes 12..64 of 64 pinned ones", "cuMemcpyHtoDAsync (operation "] {
                assert!(found[0].contains(part), "{found:?}");
            }
            return;
        };
        run.succeeds();
    }
}

/// A graph that is launched over and over copies from the same memory: it is the host's between a wait and the next
/// launch.
#[test]
fn pinned_memory_that_a_graph_copies_from_is_looked_at_too() {
    let test = "waited::pinned_memory_that_a_graph_copies_from_is_looked_at_too";
    for seed in 0..4 {
        let Some(run) = Driver::new().set("RACES", "report").set("SEED", seed).child(test) else {
            let context = start();
            let (a, address, held) = (stream(), memory(64), pinned(16));
            let graph = graph();
            let mut params = copy(address, held.as_ptr() as u64, 64);
            (params.src_type, params.src_host, params.src_device) = (1, held.as_ptr().cast(), 0);
            let mut node = Handle::NULL;
            ok!(cuGraphAddMemcpyNode(
                out(&mut node),
                graph,
                std::ptr::null::<Handle>(),
                0usize,
                &raw const params,
                context
            ));
            let exec = instantiate(graph);
            for round in 0..3 {
                held.fill(round);
                ok!(cuGraphLaunch(exec, a));
                ok!(cuStreamSynchronize(a));
            }
            assert_eq!(races(), [""; 0]);
            ok!(cuGraphLaunch(exec, a));
            held.fill(9);
            ok!(cuGraphLaunch(exec, a));
            ok!(cuStreamSynchronize(a));
            assert!(
                races().iter().all(|race| race.contains("the host writes")) && !races().is_empty(),
                "{:?}",
                races()
            );
            return;
        };
        run.succeeds();
    }
}

#[test]
fn pinned_memory_that_ends_before_a_copy_has_run_is_told() {
    let test = "waited::pinned_memory_that_ends_before_a_copy_has_run_is_told";
    for seed in 0..4 {
        let Some(run) = Driver::new().set("RACES", "report").set("SEED", seed).child(test) else {
            start();
            let (a, address, held) = (stream(), memory(64), pinned(16));
            ok!(cuMemcpyHtoDAsync_v2(address, held.as_ptr(), 64usize, a));
            ok!(cuMemFreeHost(held.as_mut_ptr()));
            let found = races();
            assert!(
                found.iter().any(|race| race.contains("gives back") && race.contains("cuMemcpyHtoDAsync")),
                "{found:?}"
            );
            return;
        };
        run.succeeds();
    }
}
