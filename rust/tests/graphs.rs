//! Graphs and their programs: control flow, failures, runs in the background, partial runs.

mod kit;

use kit::{desc, engines, lifo, numbers};
use std::future::IntoFuture;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use weir::{
    CompileOptions, Engine, Error, ErrorKind, Graph, Kernel, Program, RunOptions, Stream, Tensor, TensorDesc,
    ThreadPool, Value, While, ops,
};

fn binary(cpu: &Engine, op: ops::BinaryOp) -> Kernel {
    Kernel::new(cpu, &ops::Binary::new(op)).unwrap()
}

/// A graph of two inputs of one number and one output, which is `op` of them.
fn of_two(cpu: &Engine, name: &str, op: ops::BinaryOp) -> Graph {
    let mut graph = Graph::new(name).unwrap();
    let (x, y) = (graph.input("x", desc(1)).unwrap(), graph.input("y", desc(1)).unwrap());
    let node = graph.kernel(name, &binary(cpu, op), &[x, y]).unwrap();
    graph.output("result", node[0]).unwrap();
    graph
}

/// x + 1, by a closure that waits for the signal.
fn waiting(cpu: &Engine, go: &Arc<AtomicBool>) -> Program {
    let go = Arc::clone(go);
    let wait = Kernel::from_fn(cpu, "wait", &[desc(1)], &[desc(1)], move |call| {
        while !go.load(Acquire) && !call.is_cancelled() {
            std::thread::yield_now();
        }
        call.output::<f32>(0)?[0] = call.input::<f32>(0)?[0] + 1.0;
        Ok(())
    });
    let mut graph = Graph::new("waiting").unwrap();
    let x = graph.input("x", desc(1)).unwrap();
    let first = graph.kernel("first", wait.as_ref().unwrap(), &[x]).unwrap();
    let second = graph.kernel("second", wait.as_ref().unwrap(), &[first[0]]).unwrap();
    graph.output("y", second[0]).unwrap();
    graph.compile(&[cpu]).unwrap()
}

#[test]
fn a_cond_takes_one_branch() {
    for cpu in engines() {
        let (sum, product) = (of_two(&cpu, "sum", ops::BinaryOp::Add), of_two(&cpu, "product", ops::BinaryOp::Mul));
        let mut graph = Graph::new("either").unwrap();
        let which = graph.input("which", TensorDesc::of::<bool>(&[1])).unwrap();
        let inputs = ["x", "y"].map(|name| graph.input(name, desc(1)).unwrap());
        let either = graph.cond("either", which, &sum, &product, &inputs).unwrap();
        graph.output("result", either[0]).unwrap();
        let program = graph.compile(&[&cpu]).unwrap();
        let (x, y) = (numbers(&cpu, &[3.0]), numbers(&cpu, &[4.0]));
        for (which, result) in [(true, 7.0), (false, 12.0)] {
            let which = Tensor::from_slice(&cpu, &[1], &[which]).unwrap();
            assert_eq!(program.run(&[&which, &x, &y]).unwrap()[0].as_slice::<f32>().unwrap(), [result]);
        }
    }
}

#[test]
fn a_case_takes_the_last_branch_for_other_numbers() {
    let cpu = Engine::cpu().unwrap();
    let branches = [ops::BinaryOp::Add, ops::BinaryOp::Sub, ops::BinaryOp::Mul].map(|op| of_two(&cpu, "op", op));
    let mut graph = Graph::new("one of three").unwrap();
    let which = graph.input("which", TensorDesc::of::<i32>(&[])).unwrap();
    let inputs = ["x", "y"].map(|name| graph.input(name, desc(1)).unwrap());
    let node = graph.case("case", which, &branches.iter().collect::<Vec<_>>(), &inputs).unwrap();
    graph.output("result", node[0]).unwrap();
    let program = graph.compile(&[&cpu]).unwrap();
    let (x, y) = (numbers(&cpu, &[3.0]), numbers(&cpu, &[4.0]));
    for (which, result) in [(0, 7.0), (1, -1.0), (2, 12.0), (-1, 12.0), (9, 12.0)] {
        let which = Tensor::from_slice(&cpu, &[], &[which]).unwrap();
        assert_eq!(program.run(&[&which, &x, &y]).unwrap()[0].as_slice::<f32>().unwrap(), [result]);
    }
}

#[test]
fn a_loop_goes_on_while_its_condition_holds() {
    for cpu in engines() {
        // x, limit -> x < limit; x, limit -> x + x.
        let small = of_two(&cpu, "less", ops::BinaryOp::Lt);
        let mut double = Graph::new("double").unwrap();
        let (x, _) = (double.input("x", desc(1)).unwrap(), double.input("limit", desc(1)).unwrap());
        let sum = double.kernel("sum", &binary(&cpu, ops::BinaryOp::Add), &[x, x]).unwrap();
        double.output("next", sum[0]).unwrap();
        let mut graph = Graph::new("powers").unwrap();
        let [x, limit] = ["x", "limit"].map(|name| graph.input(name, desc(1)).unwrap());
        let (variables, invariants) = ([x], [limit]);
        let told = While::new(&small, &double, &variables).invariants(&invariants).parallel_iterations(2);
        let last = graph.while_loop("loop", told).unwrap();
        graph.output("last", last[0]).unwrap();
        let program = graph.compile(&[&cpu]).unwrap();
        for (x, limit, last) in [(3.0, 100.0, 192.0), (5.0, 5.0, 5.0), (1.0, 1e6, 1_048_576.0)] {
            let outputs = program.run(&[&numbers(&cpu, &[x]), &numbers(&cpu, &[limit])]).unwrap();
            assert_eq!(outputs[0].as_slice::<f32>().unwrap(), [last]);
        }
    }
}

#[test]
fn a_failure_has_node_engine_and_iteration() {
    let cpu = Engine::builder(weir::EngineKind::Cpu).name("mixer").build().unwrap();
    let third = Kernel::from_fn(&cpu, "third", &[desc(1)], &[desc(1)], |call| {
        let x = call.input::<f32>(0)?[0];
        if x == 3.0 {
            return Err(Error::new(ErrorKind::OutOfRange, "three is too many"));
        }
        call.output::<f32>(0)?[0] = x + 1.0;
        Ok(())
    })
    .unwrap();
    let always = Kernel::from_fn(&cpu, "always", &[desc(1)], &[TensorDesc::of::<bool>(&[1])], |call| {
        call.output::<bool>(0)?[0] = true;
        Ok(())
    })
    .unwrap();
    let part = |kernel: &Kernel, name: &str| {
        let mut graph = Graph::new(name).unwrap();
        let x = graph.input("x", desc(1)).unwrap();
        let node = graph.kernel(name, kernel, &[x]).unwrap();
        graph.output("result", node[0]).unwrap();
        graph
    };
    let (condition, body) = (part(&always, "for ever"), part(&third, "step"));
    let mut graph = Graph::new("counting").unwrap();
    let x = graph.input("x", desc(1)).unwrap();
    let count = graph.while_loop("count", While::new(&condition, &body, &[x])).unwrap();
    let after = graph.kernel("after", &binary(&cpu, ops::BinaryOp::Add), &[count[0], count[0]]).unwrap();
    graph.output("y", after[0]).unwrap();
    let error = graph.compile(&[&cpu]).unwrap().run(&[&numbers(&cpu, &[0.0])]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    assert_eq!(error.node(), Some("count/body/step"));
    assert_eq!(error.engine(), Some("mixer"));
    assert_eq!(error.iteration(), Some(("count", 3)));
    assert!(error.not_run().iter().any(|name| name == "after"), "{:?}", error.not_run());
    assert!(
        error.message().contains("node 'count/body/step'") && error.message().contains("three is too many"),
        "{error}"
    );
}

#[test]
fn a_panic_in_a_node_ends_the_run_and_not_the_program() {
    for cpu in engines() {
        let armed = Arc::new(AtomicBool::new(true));
        let arm = Arc::clone(&armed);
        let kernel = Kernel::from_fn(&cpu, "fragile", &[desc(1)], &[desc(1)], move |call| {
            assert!(!arm.load(SeqCst), "it broke");
            call.output::<f32>(0)?.copy_from_slice(call.input(0)?);
            Ok(())
        })
        .unwrap();
        let mut graph = Graph::new("fragile").unwrap();
        let x = graph.input("x", desc(1)).unwrap();
        let node = graph.kernel("vase", &kernel, &[x]).unwrap();
        graph.output("y", node[0]).unwrap();
        let program = graph.compile(&[&cpu]).unwrap();
        let x = numbers(&cpu, &[5.0]);
        let error = program.run(&[&x]).unwrap_err();
        assert_eq!((error.kind(), error.node()), (ErrorKind::Unknown, Some("vase")));
        assert!(error.message().contains("it broke"), "{error}");
        armed.store(false, SeqCst);
        assert_eq!(program.run(&[&x]).unwrap()[0].as_slice::<f32>().unwrap(), [5.0]);
    }
}

#[test]
fn tasks_run_in_the_order_of_control_edges() {
    for cpu in engines() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut graph = Graph::new("steps").unwrap();
        let nodes = [3, 1, 2].map(|number| {
            let order = Arc::clone(&order);
            let name = format!("task {number}");
            let task = move || {
                order.lock().unwrap().push(number);
                Ok(())
            };
            graph.task(&name, task).unwrap()
        });
        graph.control_edge(&nodes[1], &nodes[2]).unwrap();
        graph.control_edge(&nodes[2], &nodes[0]).unwrap();
        let program = graph.compile(&[&cpu]).unwrap();
        drop(graph);
        program.run(&[]).unwrap();
        assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
        drop(program);
        assert_eq!(Arc::strong_count(&order), 1);
    }
}

#[test]
fn a_task_fails_by_its_kind_and_a_refused_one_is_dropped() {
    let cpu = Engine::cpu().unwrap();
    let mut graph = Graph::new("failing").unwrap();
    graph.task("lost", || Err(Error::new(ErrorKind::DataLoss, "a text"))).unwrap();
    let witness = Arc::new(());
    let held = Arc::clone(&witness);
    let refused = move || {
        let _ = &held;
        Ok(())
    };
    let again = graph.task("lost", refused).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    assert_eq!(Arc::strong_count(&witness), 1);
    let error = graph.compile(&[&cpu]).unwrap().run(&[]).unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::DataLoss, Some("lost")));
}

#[test]
fn graphs_are_checked_when_they_are_built_and_compiled() {
    let cpu = Engine::cpu().unwrap();
    let (mut graph, mut other) = (Graph::new("one").unwrap(), Graph::new("other").unwrap());
    let x = graph.input("x", desc(2)).unwrap();
    let foreign: Value = other.input("x", desc(2)).unwrap();
    assert_eq!(graph.input("x", desc(2)).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(graph.input("x\0", desc(2)).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let add = binary(&cpu, ops::BinaryOp::Add);
    assert_eq!(graph.kernel("sum", &add, &[x, foreign]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(graph.kernel("sum", &add, &[x]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let product = graph.kernel("product", &Kernel::new(&cpu, &ops::Matmul::default()).unwrap(), &[x, x]).unwrap();
    graph.output("y", product[0]).unwrap();
    let error = graph.compile(&[&cpu]).unwrap_err();
    assert!(error.message().contains("node 'product'"), "{error}");
}

#[test]
fn a_program_is_a_node_and_both_are_named() {
    let cpu = Engine::cpu().unwrap();
    let inner = of_two(&cpu, "sum", ops::BinaryOp::Add).compile(&[&cpu]).unwrap();
    let mut graph = Graph::new("outer").unwrap();
    let x = graph.input("x", desc(1)).unwrap();
    let once = graph.program("once", &inner, &[x, x]).unwrap();
    let twice = graph.program("twice", &inner, &[once[0], once[0]]).unwrap();
    graph.output("y", twice[0]).unwrap();
    let program = graph.compile(&[&cpu]).unwrap();
    drop(inner);
    assert_eq!(program.run(&[&numbers(&cpu, &[3.0])]).unwrap()[0].as_slice::<f32>().unwrap(), [12.0]);
    assert_eq!(program.inputs().unwrap()[0].name, "x");
    assert_eq!(program.outputs().unwrap()[0].desc, desc(1));
    assert!(program.report().unwrap().contains("nodes"));
}

#[test]
fn many_threads_run_one_program() {
    for cpu in engines() {
        let program = of_two(&cpu, "sum", ops::BinaryOp::Add).compile(&[&cpu]).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let (program, cpu) = (&program, &cpu);
                scope.spawn(move || {
                    let (x, mut y) = (numbers(cpu, &[f32::from(thread)]), numbers(cpu, &[0.0]));
                    for _ in 0..200 {
                        program.run_into(&[&x, &x], &mut [&mut y], &RunOptions::new()).unwrap();
                        assert_eq!(y.as_slice::<f32>().unwrap(), [2.0 * f32::from(thread)]);
                    }
                });
            }
        });
    }
}

#[test]
fn a_run_ends_behind_its_deadline() {
    let cpu = Engine::cpu().unwrap();
    let slow = Kernel::from_fn(&cpu, "slow", &[desc(1)], &[desc(1)], |call| {
        while !call.is_cancelled() {
            std::thread::yield_now();
        }
        Ok(())
    })
    .unwrap();
    let mut graph = Graph::new("slow").unwrap();
    let x = graph.input("x", desc(1)).unwrap();
    let first = graph.kernel("first", &slow, &[x]).unwrap();
    let second = graph.kernel("second", &slow, &[first[0]]).unwrap();
    graph.output("y", second[0]).unwrap();
    let program = graph.compile(&[&cpu]).unwrap();
    let (x, mut y) = (numbers(&cpu, &[1.0]), numbers(&cpu, &[0.0]));
    let options = RunOptions::new().deadline(Duration::from_millis(5)).threadpool(&lifo(2));
    let error = program.run_into(&[&x], &mut [&mut y], &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    let none = RunOptions::new().deadline(Duration::ZERO);
    assert_eq!(program.run_into(&[&x], &mut [&mut y], &none).unwrap_err().kind(), ErrorKind::DeadlineExceeded);
    assert_eq!(y.as_slice_mut::<f32>().unwrap().len(), 1);
}

#[test]
fn a_cancelled_run_ends_and_tells() {
    let cpu = Engine::cpu().unwrap();
    let go = Arc::new(AtomicBool::new(false));
    let program = waiting(&cpu, &go);
    let stream = Stream::asynchronous(&cpu).unwrap();
    let (x, mut y) = (numbers(&cpu, &[1.0]), numbers(&cpu, &[0.0]));
    let run = program.start(&stream, &[&x], &mut [&mut y], &RunOptions::new()).unwrap();
    let (tell, told) = mpsc::channel();
    run.on_done(move |result| tell.send(result).unwrap()).unwrap();
    assert!(!run.is_done().unwrap());
    run.cancel().unwrap();
    assert_eq!(run.synchronize().unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(told.recv().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    // The tensor has the failure of the run that was to write it, until it is written anew.
    assert_eq!(y.as_slice::<f32>().unwrap_err().kind(), ErrorKind::Cancelled);
    stream.synchronize().unwrap();
    go.store(true, Release);
    program.start(&stream, &[&x], &mut [&mut y], &RunOptions::new()).unwrap();
    assert_eq!(y.as_slice::<f32>().unwrap(), [3.0]);
}

#[test]
fn a_run_tells_how_far_it_is_and_can_end_itself() {
    let cpu = Engine::cpu().unwrap();
    let go = Arc::new(AtomicBool::new(true));
    let program = waiting(&cpu, &go);
    let stream = Stream::asynchronous(&cpu).unwrap();
    let (x, mut y) = (numbers(&cpu, &[1.0]), numbers(&cpu, &[0.0]));
    let (tell, told) = mpsc::channel();
    let each = Duration::from_nanos(1);
    let options = RunOptions::new().progress(each, move |progress| {
        tell.send((progress.nodes_done(), progress.nodes_total(), progress.node())).unwrap();
        let error = progress.cancel().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "it has no handle");
        assert!(error.message().contains("Program::start"), "{error}");
        panic!("which is lost");
    });
    program.run_into(&[&x], &mut [&mut y], &options).unwrap();
    drop(options);
    let heard: Vec<_> = told.iter().collect();
    let (done, total, name) = heard.last().unwrap();
    assert!(done == total && !name.is_empty(), "{heard:?}");

    // The closure is kept as long as the run, and no longer.
    let kept = Arc::new(());
    let kept_by_run = Arc::clone(&kept);
    let options = RunOptions::new().progress(each, move |progress| {
        let _ = &kept_by_run;
        progress.cancel().unwrap();
    });
    let run = program.start(&stream, &[&x], &mut [&mut y], &options).unwrap();
    drop(options);
    assert_eq!(run.synchronize().unwrap_err().kind(), ErrorKind::Cancelled);
    while Arc::strong_count(&kept) > 1 {
        std::thread::yield_now();
    }
}

#[test]
fn a_run_can_be_awaited() {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let cpu = Engine::cpu().unwrap();
    let go = Arc::new(AtomicBool::new(false));
    let program = waiting(&cpu, &go);
    let stream = Stream::asynchronous(&cpu).unwrap();
    let (x, mut y) = (numbers(&cpu, &[1.0]), numbers(&cpu, &[0.0]));
    let run = program.start(&stream, &[&x], &mut [&mut y], &RunOptions::new()).unwrap();
    let mut run = std::pin::pin!(run.into_future());
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut polls = 0;
    loop {
        match run.as_mut().poll(&mut context) {
            std::task::Poll::Ready(result) => break result.unwrap(),
            std::task::Poll::Pending => {
                polls += 1;
                go.store(polls > 1, Release);
                if polls > 1 {
                    std::thread::park_timeout(Duration::from_secs(60));
                }
            }
        }
    }
    assert!(polls > 1);
    assert_eq!(y.as_slice::<f32>().unwrap(), [3.0]);
}

#[test]
fn a_run_may_compute_a_part() {
    let cpu = Engine::cpu().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let mut graph = Graph::new("two").unwrap();
    let x = graph.input("x", desc(1)).unwrap();
    for name in ["a", "b"] {
        let calls = Arc::clone(&calls);
        let kernel = Kernel::from_fn(&cpu, name, &[desc(1)], &[desc(1)], move |call| {
            calls.fetch_add(1, Relaxed);
            call.output::<f32>(0)?.copy_from_slice(call.input(0)?);
            Ok(())
        });
        let node = graph.kernel(name, &kernel.unwrap(), &[x]).unwrap();
        graph.output(name, node[0]).unwrap();
    }
    let options = CompileOptions::new().partial_runs(4).statistics().max_concurrent_runs(1);
    let program = graph.compile_with(&[&cpu], &options).unwrap();
    let (x, mut y) = (numbers(&cpu, &[7.0]), numbers(&cpu, &[0.0]));
    let part = RunOptions::new().outputs(&[1]).deterministic().no_wait().finish_independent();
    program.run_into(&[&x], &mut [&mut y], &part).unwrap();
    assert_eq!((calls.load(Relaxed), y.as_slice::<f32>().unwrap()), (1, &[7.0][..]));
}

#[test]
fn kernels_that_block_have_a_pool_of_their_own() {
    let cpu = Engine::cpu().unwrap();
    let (tell, told) = mpsc::channel::<f32>();
    let told = Mutex::new(told);
    let receive = Kernel::builder("receive")
        .outputs(&[desc(1)])
        .may_block()
        .build(&cpu, move |call| {
            call.output::<f32>(0)?[0] = told.lock().unwrap().recv().unwrap();
            Ok(())
        })
        .unwrap();
    let mut graph = Graph::new("receiving").unwrap();
    let node = graph.kernel("receive", &receive, &[]).unwrap();
    graph.output("y", node[0]).unwrap();
    assert_eq!(graph.compile(&[&cpu]).unwrap_err().kind(), ErrorKind::FailedPrecondition);
    let options = CompileOptions::new().blocking_threadpool(&ThreadPool::builtin(1).unwrap());
    let program = graph.compile_with(&[&cpu], &options).unwrap();
    let mut y = numbers(&cpu, &[0.0]);
    let stream = Stream::asynchronous(&cpu).unwrap();
    let run = program.start(&stream, &[], &mut [&mut y], &RunOptions::new()).unwrap();
    tell.send(9.0).unwrap();
    run.synchronize().unwrap();
    assert_eq!(y.as_slice::<f32>().unwrap(), [9.0]);
}
