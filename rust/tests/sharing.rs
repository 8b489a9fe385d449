//! Tensors between streams, late failures, domains, and values that are dropped in any order.

mod kit;

use kit::{Random, desc, engines, numbers};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::time::Duration;
use weir::{
    Domain, Engine, EngineKind, Error, ErrorKind, Event, Graph, Kernel, RunOptions, Stream, Tensor, TensorDesc,
    sync_devices,
};

/// A device whose memory the host cannot access.
fn emulated() -> Engine {
    assert_eq!(weir_testing::weir_emulated_register(), 0);
    Engine::builder(EngineKind::from_name("emulated").unwrap()).build().unwrap()
}

/// Output = input + 1, slowly, element by element.
fn slow_next(cpu: &Engine, len: usize) -> Kernel {
    Kernel::from_fn(cpu, "next", &[desc(len)], &[desc(len)], |call| {
        let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
        for (y, x) in y.iter_mut().zip(x) {
            *y = x + 1.0;
            std::hint::spin_loop();
        }
        Ok(())
    })
    .unwrap()
}

#[test]
fn streams_that_share_tensors_wait_for_one_another() {
    for cpu in engines() {
        let streams: Vec<_> = (0..3).map(|_| Stream::asynchronous(&cpu).unwrap()).collect();
        let next = slow_next(&cpu, 1000);
        let (mut a, mut b) = (numbers(&cpu, &[0.0; 1000]), numbers(&cpu, &[0.0; 1000]));
        let mut random = Random::new(7);
        for _ in 0..100 {
            streams[random.below(3)].enqueue(&next, &[&a], &mut [&mut b]).unwrap();
            streams[random.below(3)].enqueue(&next, &[&b], &mut [&mut a]).unwrap();
        }
        assert_eq!(a.as_slice::<f32>().unwrap(), [200.0; 1000]);
        assert_eq!(b.as_slice::<f32>().unwrap(), [199.0; 1000]);
    }
}

#[test]
fn a_slice_waits_for_readers_too() {
    let cpu = Engine::cpu().unwrap();
    let stream = Stream::asynchronous(&cpu).unwrap();
    let next = slow_next(&cpu, 10_000);
    let (mut x, mut y) = (numbers(&cpu, &[1.0; 10_000]), numbers(&cpu, &[0.0; 10_000]));
    for round in 0..20 {
        stream.enqueue(&next, &[&x], &mut [&mut y]).unwrap();
        x.as_slice_mut::<f32>().unwrap().fill(5.0);
        let expected = if round == 0 { 2.0 } else { 6.0 };
        assert_eq!(y.as_slice::<f32>().unwrap(), [expected; 10_000]);
    }
}

/// Threads that share a stream and a tensor note what they have queued in any order.
#[test]
fn a_slice_waits_for_the_readers_of_all_threads() {
    let cpu = Engine::cpu().unwrap();
    let stream = Stream::asynchronous(&cpu).unwrap();
    let next = slow_next(&cpu, 2000);
    let mut x = numbers(&cpu, &[0.0; 2000]);
    let mut copies: Vec<_> = (0..4).map(|_| numbers(&cpu, &[0.0; 2000])).collect();
    for round in 0..500_u16 {
        let now = f32::from(round);
        x.as_slice_mut::<f32>().unwrap().fill(now);
        std::thread::scope(|scope| {
            for copy in &mut copies {
                let (stream, next, x) = (&stream, &next, &x);
                scope.spawn(move || stream.enqueue(next, &[x], &mut [copy]).unwrap());
            }
        });
        x.as_slice_mut::<f32>().unwrap().fill(-1.0);
        for copy in &copies {
            assert_eq!(copy.as_slice::<f32>().unwrap(), [now + 1.0; 2000], "round {round}");
        }
    }
}

#[test]
fn a_failure_is_cleared_between_submissions() {
    let cpu = Engine::cpu().unwrap();
    let (stream, other) = (Stream::asynchronous(&cpu).unwrap(), Stream::asynchronous(&cpu).unwrap());
    let next = slow_next(&cpu, 2000);
    let mut x = numbers(&cpu, &[0.0; 2000]);
    let mut y = numbers(&cpu, &[0.0; 2000]);
    let (is_over, mut wrong) = (AtomicBool::new(false), None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Acquire) {
                let _ = stream.task(|| Err(Error::new(ErrorKind::DataLoss, "gone")));
                let _ = stream.clear_error();
                std::thread::yield_now();
            }
        });
        wrong = (0..500_u16).find(|&round| {
            let now = f32::from(round);
            x.as_slice_mut::<f32>().unwrap().fill(now);
            other.enqueue(&next, &[&x], &mut [&mut y]).unwrap();
            let _ = stream.fill(&mut x, 0); // waits for the reader, is skipped, or is refused
            y.as_slice::<f32>().unwrap() != [now + 1.0; 2000]
        });
        is_over.store(true, Release);
    });
    assert_eq!(wrong, None);
    let _ = stream.synchronize();
    stream.clear_error().unwrap();
    stream.fill(&mut x, 0).unwrap();
    assert_eq!(x.as_slice::<f32>().unwrap(), [0.0; 2000]);
}

#[test]
fn a_stream_that_fails_and_skips_its_waits_hides_no_reader() {
    let cpu = Engine::cpu().unwrap();
    let (reading, failing) = (Stream::asynchronous(&cpu).unwrap(), Stream::asynchronous(&cpu).unwrap());
    let (go, fail) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let until = |flag: &Arc<AtomicBool>| {
        let flag = Arc::clone(flag);
        move || {
            while !flag.load(Acquire) {
                std::thread::yield_now();
            }
        }
    };
    let (wait_go, wait_fail) = (until(&go), until(&fail));
    let late = Kernel::from_fn(&cpu, "late", &[desc(1)], &[desc(1)], move |call| {
        wait_go();
        call.output::<f32>(0)?.copy_from_slice(call.input(0)?);
        Ok(())
    })
    .unwrap();
    let (mut x, mut y) = (numbers(&cpu, &[1.0]), numbers(&cpu, &[0.0]));
    reading.enqueue(&late, &[&x], &mut [&mut y]).unwrap();
    let task = move || {
        wait_fail();
        Err(Error::new(ErrorKind::DataLoss, "gone"))
    };
    failing.task(task).unwrap();
    failing.fill(&mut x, 7).unwrap();
    fail.store(true, Release);
    assert_eq!(failing.synchronize().unwrap_err().kind(), ErrorKind::DataLoss);
    // The fill is over, as it was skipped, and the reader is not.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            go.store(true, Release);
        });
        x.as_slice_mut::<f32>().unwrap()[0] = 9.0;
        assert!(go.load(Acquire));
    });
    assert_eq!(y.as_slice::<f32>().unwrap(), [1.0]);
}

#[test]
fn streams_of_a_device_wait_for_one_another() {
    let (cpu, device) = (Engine::cpu().unwrap(), emulated());
    let streams: Vec<_> = (0..3).map(|_| Stream::new(&device).unwrap()).collect();
    let mut random = Random::new(3);
    let (mut a, mut b) = (numbers(&cpu, &[0.0; 500]), numbers(&cpu, &[0.0; 500]));
    let mut there = Tensor::new(&device, desc(500)).unwrap();
    for round in 0..40_u8 {
        a.as_slice_mut::<f32>().unwrap().fill(f32::from(round));
        streams[random.below(3)].copy(&a, &mut there).unwrap();
        streams[random.below(3)].copy(&there, &mut b).unwrap();
        assert_eq!(b.as_slice::<f32>().unwrap(), [f32::from(round); 500]);
    }
}

#[test]
fn a_late_failure_is_the_streams_and_the_tensors() {
    let cpu = Engine::cpu().unwrap();
    let domain = Domain::new("sharing").unwrap();
    let mine = Engine::builder(EngineKind::Cpu).domain(&domain).name("late").build().unwrap();
    let failing =
        Kernel::from_fn(&mine, "failing", &[], &[desc(1)], |_| Err(Error::new(ErrorKind::DataLoss, "gone"))).unwrap();
    let (stream, other) = (Stream::asynchronous(&mine).unwrap(), Stream::asynchronous(&mine).unwrap());
    let (mut x, mut y) = (numbers(&mine, &[1.0]), numbers(&mine, &[0.0]));
    stream.enqueue(&failing, &[], &mut [&mut x]).unwrap();
    assert_eq!(x.as_slice::<f32>().unwrap_err().kind(), ErrorKind::DataLoss);
    assert_eq!(x.as_slice::<f32>().unwrap_err().kind(), ErrorKind::DataLoss);
    // Work that would read it is refused, on other streams too.
    let next = slow_next(&mine, 1);
    assert_eq!(other.enqueue(&next, &[&x], &mut [&mut y]).unwrap_err().kind(), ErrorKind::DataLoss);
    assert_eq!(stream.synchronize().unwrap_err().kind(), ErrorKind::DataLoss);
    assert_eq!(mine.synchronize().unwrap_err().kind(), ErrorKind::DataLoss);
    let error = domain.synchronize(Some(Duration::from_secs(60))).unwrap_err();
    assert!(error.message().contains("sharing/late"), "{error}");
    assert!(domain.name().unwrap().starts_with("sharing"));
    stream.clear_error().unwrap();
    Stream::new(&mine).unwrap().fill(&mut x, 0).unwrap();
    assert_eq!(x.as_slice::<f32>().unwrap(), [0.0]);
    stream.fill(&mut x, 0).unwrap();
    other.enqueue(&next, &[&x], &mut [&mut y]).unwrap();
    assert_eq!(y.as_slice::<f32>().unwrap(), [1.0]);
    drop(cpu);
}

#[test]
fn tasks_events_and_waits() {
    for cpu in engines() {
        let (first, second) = (Stream::asynchronous(&cpu).unwrap(), Stream::asynchronous(&cpu).unwrap());
        let (start, end) = (Event::timing(&cpu).unwrap(), Event::timing(&cpu).unwrap());
        let count = Arc::new(AtomicUsize::new(0));
        start.record(&first).unwrap();
        for _ in 0..10 {
            let count = Arc::clone(&count);
            let task = move || {
                count.fetch_add(1, SeqCst);
                Ok(())
            };
            first.task(task).unwrap();
        }
        end.record(&first).unwrap();
        second.wait_event(&end).unwrap();
        let seen = Arc::clone(&count);
        let look = move || {
            assert!(seen.load(SeqCst) >= 10);
            Ok(())
        };
        second.task(look).unwrap();
        let told = Arc::clone(&count);
        end.on_done(move |result| assert!(result.is_ok() && told.fetch_add(1, SeqCst) >= 10)).unwrap();
        second.synchronize_timeout(Duration::from_secs(60)).unwrap();
        end.synchronize().unwrap();
        assert!(end.is_done().unwrap() && second.is_done().unwrap());
        assert!(Event::elapsed_ns(&start, &end).unwrap() >= 0);
    }
}

#[test]
fn a_task_is_dropped_once_wherever_it_ends() {
    let cpu = Engine::cpu().unwrap();
    let witness = Arc::new(());
    let task = |fails: bool| {
        let held = Arc::clone(&witness);
        move || {
            drop(held);
            if fails { Err(Error::new(ErrorKind::NotFound, "it")) } else { Ok(()) }
        }
    };
    let (now, later) = (Stream::new(&cpu).unwrap(), Stream::asynchronous(&cpu).unwrap());
    assert_eq!(now.task(task(true)).unwrap_err().kind(), ErrorKind::NotFound);
    now.task(task(false)).unwrap();
    later.task(task(true)).unwrap();
    let _ = later.task(task(false)); // skipped, or refused
    assert_eq!(later.synchronize().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(later.task(task(false)).unwrap_err().kind(), ErrorKind::FailedPrecondition);
    let panicking = now.task(|| panic!("in a task")).unwrap_err();
    assert_eq!(panicking.kind(), ErrorKind::Unknown);
    drop((now, later));
    sync_devices(None).ok();
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn a_constant_is_taken_and_shared_by_runs() {
    let cpu = Engine::cpu().unwrap();
    let stream = Stream::asynchronous(&cpu).unwrap();
    let mut weights = numbers(&cpu, &[0.0; 4]);
    stream.enqueue(&slow_next(&cpu, 4), &[&numbers(&cpu, &[1.0; 4])], &mut [&mut weights]).unwrap();
    let mut graph = Graph::new("constant").unwrap();
    let w = graph.constant("w", weights).unwrap();
    let node = graph.kernel("next", &slow_next(&cpu, 4), &[w]).unwrap();
    graph.output("y", node[0]).unwrap();
    let program = graph.compile(&[&cpu]).unwrap();
    assert_eq!(program.run(&[]).unwrap()[0].as_slice::<f32>().unwrap(), [3.0; 4]);
}

#[test]
fn an_emulated_device_copies_there_and_back() {
    let (cpu, device) = (Engine::cpu().unwrap(), emulated());
    let stream = Stream::new(&device).unwrap();
    let from = Tensor::from_vec(&cpu, &[100], (0..100).collect::<Vec<i32>>()).unwrap();
    let ints = TensorDesc::of::<i32>(&[100]);
    let mut there = Tensor::new(&device, ints).unwrap();
    let mut back = Tensor::new(&cpu, ints).unwrap();
    stream.copy(&from, &mut there).unwrap();
    stream.copy(&there, &mut back).unwrap();
    assert_eq!(back.as_slice::<i32>().unwrap(), from.as_slice::<i32>().unwrap());
    assert_eq!(there.as_slice::<i32>().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(there.engine().unwrap().info().unwrap().kind, EngineKind::from_name("emulated").unwrap());
    let refused = Tensor::from_slice(&device, &[1], &[1_i32]).unwrap_err();
    assert!(refused.message().contains("only copy"), "{refused}");
    let closure = Kernel::from_fn(&device, "closure", &[], &[], |_| Ok(())).unwrap_err();
    assert_eq!(closure.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn values_are_dropped_in_any_order() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let engines = engines();
        let cpu = engines[random.below(engines.len())].clone();
        drop(engines);
        let witness = Arc::new(());
        let held = Arc::clone(&witness);
        let kernel = Kernel::from_fn(&cpu, "held", &[desc(8)], &[desc(8)], move |call| {
            let _ = &held;
            call.output::<f32>(0)?.copy_from_slice(call.input(0)?);
            Ok(())
        })
        .unwrap();
        let mut graph = Graph::new("held").unwrap();
        let x = graph.input("x", desc(8)).unwrap();
        let node = graph.kernel("held", &kernel, &[x]).unwrap();
        graph.output("y", node[0]).unwrap();
        let program = graph.compile(&[&cpu]).unwrap();
        let stream = Stream::asynchronous(&cpu).unwrap();
        let event = Event::new(&cpu).unwrap();
        let (x, mut y, mut z) = (numbers(&cpu, &[1.0; 8]), numbers(&cpu, &[0.0; 8]), numbers(&cpu, &[0.0; 8]));
        stream.enqueue(&kernel, &[&x], &mut [&mut y]).unwrap();
        let run = program.start(&stream, &[&y], &mut [&mut z], &RunOptions::new()).unwrap();
        event.record(&stream).unwrap();
        let held = Arc::clone(&witness);
        let task = move || {
            drop(held);
            Ok(())
        };
        stream.task(task).unwrap();
        let mut values: Vec<Box<dyn std::any::Any + Send>> = vec![
            Box::new(cpu),
            Box::new(kernel),
            Box::new(graph),
            Box::new(program),
            Box::new(stream),
            Box::new(event),
            Box::new(x),
            Box::new(y),
            Box::new(z),
            Box::new(run),
        ];
        while !values.is_empty() {
            let value = values.swap_remove(random.below(values.len()));
            if random.below(4) == 0 {
                std::thread::spawn(move || drop(value)).join().unwrap();
            }
        }
        let begun = std::time::Instant::now();
        while Arc::strong_count(&witness) > 1 {
            assert!(begun.elapsed() < Duration::from_secs(60), "seed {seed}: something is left");
            // A pool that was let go of in one of its own tasks ends with the next call of weir.
            let _ = sync_devices(Some(Duration::from_millis(1)));
        }
    }
}
