//! The host captures a stream of its own, as torch.cuda.graph does: what weir is given for that stream becomes part of
//! the graph, as often as the host launches it and as long as it is there.

use crate::bench::{Bench, LEN, number, values};
use crate::direct::{chain, check, enter, floats, run};
use crate::gather::Lookup;
use crate::kit::{eventually, fake, raw, with_driver};
use crate::loops::There;
use crate::products::{Matrix, WITH, blas, matmul};
use std::ffi::c_void;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use weir_core::base::{Code, Ref, Result};
use weir_core::device::{DeviceKind, Waiting};
use weir_core::engine::{Engine, EngineAttr, Extent, Stream, StreamAttr, sync_all};
use weir_core::graph::RunOptions;
use weir_core::kernel::Task;

type Pointer = *mut c_void;

const GLOBAL: i32 = 0;

/// A stream of the host's that weir has, too.
struct Theirs {
    raw: Pointer,
    stream: Option<Ref<Stream>>,
}

/// What was captured, ready to be launched.
struct Graph {
    graph: Pointer,
    exec: Pointer,
}

impl Theirs {
    fn new(engine: &Ref<Engine>) -> Theirs {
        enter(engine);
        let mut raw: Pointer = std::ptr::null_mut();
        raw!(cuStreamCreate(&raw mut raw, 1): *mut Pointer, u32);
        let mut attr = StreamAttr::new(engine.kind());
        attr.wrapped = Some(raw as u64);
        attr.name = "theirs".to_owned();
        Theirs { raw, stream: Some(Stream::create(engine.clone(), attr).unwrap()) }
    }

    fn stream(&self) -> &Ref<Stream> {
        self.stream.as_ref().unwrap()
    }

    fn begin(&self) {
        raw!(cuStreamBeginCapture_v2(self.raw, GLOBAL): Pointer, i32);
    }

    fn end(&self) -> Graph {
        let (mut graph, mut exec): (Pointer, Pointer) = (std::ptr::null_mut(), std::ptr::null_mut());
        raw!(cuStreamEndCapture(self.raw, &raw mut graph): Pointer, *mut Pointer);
        raw!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0): *mut Pointer, Pointer, u64);
        Graph { graph, exec }
    }

    fn capture(&self, give: impl FnOnce(&Ref<Stream>) -> Result<()>) -> Graph {
        self.begin();
        give(self.stream()).unwrap();
        self.end()
    }

    fn launch(&self, graph: &Graph) {
        raw!(cuGraphLaunch(graph.exec, self.raw): Pointer, Pointer);
    }

    fn wait(&self) {
        raw!(cuStreamSynchronize(self.raw): Pointer);
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        drop(self.stream.take());
        raw!(cuStreamDestroy_v2(self.raw): Pointer);
        raw!(cuCtxSetCurrent(std::ptr::null_mut()): Pointer);
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        raw!(cuGraphExecDestroy(self.exec): Pointer);
        raw!(cuGraphDestroy(self.graph): Pointer);
    }
}

/// Copies, fills, kernels and runs of programs, whatever else goes on with the same program; and nothing that they use
/// goes before the graph does.
#[test]
fn what_is_given_becomes_part_of_the_graph() {
    for seed in ["1", "2", "3", ""] {
        let ran = with_driver(&[("SEED", seed)], || {
            let bench = Bench::new();
            let theirs = Theirs::new(&bench.engine);
            let (x, y, z) = (floats(&bench, 0.0), bench.on_device().unwrap(), bench.on_device().unwrap());
            let sum = bench.on_device().unwrap();
            let (input, output) = (bench.on_host(|i| (i as f32).to_bits() as i32), bench.on_host(|_| 0));
            let program = chain(&bench, 3, true);
            // Captured before it has ever run.
            let graph = theirs.capture(|stream| {
                stream.enqueue_copy(input.clone(), x.clone())?;
                stream.enqueue_fill(z.clone(), 9)?;
                run(&program, stream, &x, &y)?;
                run(&program, stream, &y, &z)?;
                stream.enqueue(bench.add()?, vec![y.clone(), z.clone()], vec![sum.clone()])?;
                stream.enqueue_copy(sum.clone(), output.clone())
            });
            let once = |x: f32| x + 100.0 + 2.0 * x;
            let expected = move |x: f32| once(once(x)) + once(x);
            // Nothing of it is done yet, nor does anybody wait for it.
            sync_all(Extent::Everything, u64::MAX).unwrap();
            assert_eq!(values(&output), vec![0; LEN]);
            let (others, mine) = (bench.stream("other"), floats(&bench, 5.0));
            let (out, mut from) = (bench.on_device().unwrap(), 0.0);
            for _ in 0..4 {
                theirs.launch(&graph);
                run(&program, &others, &mine, &out).unwrap();
                theirs.wait();
                for (i, bits) in values(&output).into_iter().enumerate() {
                    assert_eq!(f32::from_bits(bits as u32), expected(from + i as f32), "{i}");
                }
                others.synchronize(u64::MAX).unwrap();
                check(&bench, &out, |x| once(x + 5.0));
                from += 1.0;
                for i in 0..LEN {
                    // SAFETY: an array of so many numbers that no work uses now.
                    unsafe { input.data().cast::<f32>().add(i).write(from + i as f32) };
                }
            }
            // And outside of the capture, on the same stream.
            run(&program, theirs.stream(), &x, &y).unwrap();
            theirs.stream().synchronize(u64::MAX).unwrap();
            drop((program, x, y, z, sum, mine, out, others));
            bench.engine.trim(0);
            theirs.launch(&graph);
            theirs.wait();
            assert_eq!(f32::from_bits(values(&output)[1] as u32), expected(from + 1.0));
            // The kernels are the graph's alone.
            let modules = fake::live(Some("module"));
            assert!(modules > 0);
            drop(graph);
            eventually("what the graph kept is let go of", || {
                bench.engine.trim(0);
                fake::live(Some("module")) < modules
            });
        });
        if ran.is_none() {
            return;
        }
    }
}

/// Others are those of a library, in the capture too.
#[test]
fn products_are_those_of_the_library() {
    with_driver(&[WITH, ("SEED", "2")], || {
        let bench = Bench::new();
        let theirs = Theirs::new(&bench.engine);
        let kernel = matmul(&bench, &[]).unwrap();
        let [a, b, want, c, d] = [1, 2, 3, 4, 5].map(|seed| Matrix::on(&bench, &[20, 20], seed));
        let multiply = |stream: &Ref<Stream>, to: &Matrix| {
            stream.enqueue(kernel.clone(), vec![a.tensor.clone(), b.tensor.clone()], vec![to.tensor.clone()])
        };
        multiply(&bench.stream, &want).unwrap();
        bench.wait().unwrap();
        let before = blas::count("cublasLtMatmul");
        let graph = theirs.capture(|stream| multiply(stream, &c).and_then(|()| multiply(stream, &d)));
        assert_eq!(blas::count("cublasLtMatmul"), before + 2);
        for _ in 0..2 {
            theirs.launch(&graph);
            // One beside it has another workspace.
            multiply(&bench.stream, &want).unwrap();
            theirs.wait();
            bench.wait().unwrap();
            assert!(c.read(&bench) == want.read(&bench) && d.read(&bench) == want.read(&bench));
        }
    });
}

struct Nothing;

impl Task for Nothing {
    fn run(&self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn what_cannot_be_part_of_a_graph_is_refused_and_harms_nothing() {
    with_driver(&[], || {
        let bench = Bench::new();
        let theirs = Theirs::new(&bench.engine);
        let stream = theirs.stream();
        let (x, y) = (floats(&bench, 0.0), bench.on_device().unwrap());
        let (program, again) = (chain(&bench, 3, false), There::new());
        let given = again.given();
        let refused = |result: Result<()>, text: &str| {
            let error = result.unwrap_err();
            assert!([Code::FailedPrecondition, Code::Unimplemented].contains(&error.code()), "{error}");
            assert!(error.message().contains("'theirs'"), "{error}");
            assert!(error.message().contains(text), "'{}', expected '{text}'", error.message());
        };
        theirs.begin();
        refused(stream.enqueue_task(Arc::new(Nothing)), "a function of the host's cannot be part of it");
        refused(stream.synchronize(u64::MAX), "is being captured");
        refused(again.run_on(stream, &given), "branches or loops that the device decides");
        let options = RunOptions { deadline_ns: 1 << 40, ..RunOptions::default() };
        refused(crate::direct::run_with(&program, stream, &x, &y, &options), "handle or options");
        stream.enqueue_fill(x.clone(), 1).unwrap();
        let graph = theirs.end();
        // It is not failed, and goes on.
        stream.enqueue_fill(y.clone(), 2).unwrap();
        stream.synchronize(u64::MAX).unwrap();
        theirs.launch(&graph);
        theirs.wait();
        assert_eq!(bench.read(&x).unwrap(), vec![0x0101_0101; LEN]);
        run(&program, stream, &x, &y).unwrap();
        stream.synchronize(u64::MAX).unwrap();
    });
}

/// A capture is no part of what a stream has to do: who waits behind it waits for what lies in the stream alone.
#[test]
fn a_long_capture_holds_nobody_up() {
    with_driver(&[], || {
        let bench = Bench::new();
        let theirs = Theirs::new(&bench.engine);
        let (x, y) = (bench.on_device().unwrap(), bench.on_device().unwrap());
        let stream = theirs.stream();
        for round in 0..3 {
            stream.enqueue_fill(y.clone(), round).unwrap();
            // What lies in the stream is known to be over, or is not.
            if round != 1 {
                stream.synchronize(u64::MAX).unwrap();
            }
            let graph = theirs.capture(|stream| (0..400).try_for_each(|i| stream.enqueue_fill(x.clone(), i as u8)));
            assert!(stream.error().is_none());
            stream.synchronize(u64::MAX).unwrap();
            sync_all(Extent::Everything, u64::MAX).unwrap();
            theirs.launch(&graph);
            theirs.wait();
            assert_eq!(bench.read(&x).unwrap()[0], i32::from_ne_bytes([399u32 as u8; 4]));
            assert_eq!(bench.read(&y).unwrap()[0], i32::from_ne_bytes([round; 4]));
        }
    });
}

/// A function that ends when it is told to.
struct EventCount(Mutex<Receiver<()>>);

impl Task for EventCount {
    fn run(&self) -> Result<()> {
        let _ = self.0.lock().unwrap().recv();
        Ok(())
    }
}

fn gate() -> (Arc<EventCount>, Sender<()>) {
    let (open, is_open) = channel();
    (Arc::new(EventCount(Mutex::new(is_open))), open)
}

fn spin(bench: &Bench, stream: &Ref<Stream>, us: u64) {
    let us = [us];
    let kernel = bench.kernel("spin", 0, &[number(&us)]).unwrap();
    stream.enqueue(kernel, vec![], vec![bench.on_device().unwrap()]).unwrap();
}

/// What waits for the host when a capture begins does not become part of it: the stream fails.
#[test]
fn what_was_given_before_does_not_become_part_of_a_graph() {
    with_driver(&[], || {
        let bench = Bench::new();
        let theirs = Theirs::new(&bench.engine);
        let (stream, x) = (theirs.stream(), bench.on_device().unwrap());
        let behind: [&dyn Fn() -> Result<()>; 3] = [
            &|| stream.enqueue_fill(x.clone(), 2),
            &|| stream.enqueue_fill(x.clone(), 2).and_then(|()| bench.event().record(stream)),
            &|| stream.enqueue_task(gate().0),
        ];
        for give in behind {
            bench.stream.enqueue_fill(x.clone(), 1).unwrap();
            bench.wait().unwrap();
            let (first, open) = gate();
            stream.enqueue_task(first).unwrap();
            give().unwrap();
            theirs.begin();
            drop(open);
            eventually("the stream has failed", || stream.error().is_some());
            let graph = theirs.end();
            let error = stream.synchronize(u64::MAX).unwrap_err();
            assert!(error.message().contains("had not been given all that came before"), "{error}");
            theirs.launch(&graph);
            theirs.wait();
            assert_eq!(bench.read(&x).unwrap()[0], 0x0101_0101);
            stream.clear_error();
            stream.enqueue_fill(x.clone(), 3).unwrap();
            stream.synchronize(u64::MAX).unwrap();
        }
    });
}

/// The graph has a part of it, which keeps what it uses.
#[test]
fn a_run_that_fails_half_way_leaves_a_graph_that_can_be_launched() {
    with_driver(&[("FAIL", "cuLaunchKernel:2:2")], || {
        let bench = Bench::new();
        let theirs = Theirs::new(&bench.engine);
        let (x, y) = (floats(&bench, 0.0), bench.on_device().unwrap());
        let program = chain(&bench, 3, true);
        theirs.begin();
        assert_eq!(run(&program, theirs.stream(), &x, &y).unwrap_err().code(), Code::ResourceExhausted);
        let graph = theirs.end();
        drop((program, x, y));
        bench.engine.trim(0);
        theirs.launch(&graph);
        theirs.wait();
    });
}

/// Streams may be let go of at any time: what they were given is done, and the capture goes on.
#[test]
fn streams_may_be_released_while_they_are_captured() {
    with_driver(&[WITH, ("DELAY", "1:3000,2:3000,3:3000")], || {
        let bench = Bench::new();
        let mut theirs = Theirs::new(&bench.engine);
        let kernel = matmul(&bench, &[]).unwrap();
        let [a, b, c] = [1, 2, 3].map(|seed| Matrix::on(&bench, &[20, 20], seed));
        // It has memory of its own.
        let side = bench.stream("side");
        side.enqueue(kernel, vec![a.tensor.clone(), b.tensor.clone()], vec![c.tensor.clone()]).unwrap();
        let (fork, join, x) = (bench.event(), bench.event(), bench.on_device().unwrap());
        (0..3).for_each(|_| spin(&bench, theirs.stream(), 20_000));
        theirs.stream().enqueue_fill(x.clone(), 2).unwrap();
        // The captured fill writes the kernel's output, and a launch comes behind nothing but its own stream.
        let computed = bench.event();
        computed.record(&side).unwrap();
        theirs.stream().wait_event(&computed).unwrap();
        theirs.begin();
        fork.record(theirs.stream()).unwrap();
        side.wait_event(&fork).unwrap();
        side.enqueue_fill(c.tensor.clone(), 1).unwrap();
        join.record(&side).unwrap();
        theirs.stream().wait_event(&join).unwrap();
        let of_before = Arc::downgrade(&x);
        drop((side, x, theirs.stream.take()));
        bench.engine.trim(0);
        let y = bench.on_device().unwrap();
        bench.stream.enqueue_fill(y.clone(), 7).unwrap();
        let graph = theirs.end();
        theirs.launch(&graph);
        theirs.wait();
        assert_eq!(bench.read(&y).unwrap()[0], 0x0707_0707);
        drop(graph);
        eventually("what the stream was given before is let go of", || {
            bench.engine.trim(0);
            of_before.strong_count() == 0
        });
    });
}

/// Also in a capture that has become invalid: then they are given back when it has ended.
#[test]
fn streams_may_be_released_while_a_capture_is_invalid() {
    with_driver(&[("OTHERS", "")], || {
        let bench = Bench::new();
        let mut theirs = Theirs::new(&bench.engine);
        let (side, fork, x) = (bench.stream("side"), bench.event(), bench.on_device().unwrap());
        theirs.stream().enqueue_fill(x.clone(), 2).unwrap();
        side.enqueue_fill(bench.on_device().unwrap(), 1).unwrap();
        theirs.begin();
        fork.record(theirs.stream()).unwrap();
        side.wait_event(&fork).unwrap();
        // A call that captures do not bear.
        type Query = unsafe extern "C" fn(Pointer) -> i32;
        // SAFETY: the driver's function with this name has this type.
        let query: Query = unsafe { std::mem::transmute(crate::kit::symbol("cuStreamQuery")) };
        // SAFETY: a stream.
        assert_ne!(unsafe { query(theirs.raw) }, 0);
        let of_before = Arc::downgrade(&x);
        drop((side, x, theirs.stream.take()));
        bench.engine.trim(0);
        type End = unsafe extern "C" fn(Pointer, *mut Pointer) -> i32;
        // SAFETY: as above.
        let end: End = unsafe { std::mem::transmute(crate::kit::symbol("cuStreamEndCapture")) };
        let mut graph: Pointer = std::ptr::null_mut();
        // SAFETY: a stream, and a place for the graph.
        assert_ne!(unsafe { end(theirs.raw, &raw mut graph) }, 0);
        eventually("what the stream was given before is let go of", || {
            bench.engine.trim(0);
            of_before.strong_count() == 0
        });
    });
}

/// Nobody can wait for an event of a capture, and everybody for one of before.
#[test]
fn waits_for_events_end_or_are_refused() {
    for yields in [false, true] {
        let ran = with_driver(&[("WEIR_TEST_YIELDS", if yields { "1" } else { "0" })], || {
            let mut attr = EngineAttr::new(DeviceKind::CUDA);
            let yields = std::env::var("WEIR_TEST_YIELDS").unwrap() == "1";
            attr.set_waiting(yields.then_some(Waiting { spin_ns: 0, yields })).unwrap();
            let bench = Bench::with(Some(&attr)).unwrap();
            let theirs = Theirs::new(&bench.engine);
            let (event, before, x) = (bench.event(), bench.event(), bench.on_device().unwrap());
            bench.stream.enqueue_fill(x.clone(), 1).unwrap();
            before.record(&bench.stream).unwrap();
            before.synchronize(u64::MAX).unwrap();
            let mut of_host = StreamAttr::new(DeviceKind::CPU);
            of_host.asynchronous = true;
            let host = Stream::create(bench.cpu.clone(), of_host).unwrap();
            theirs.begin();
            theirs.stream().wait_event(&before).unwrap();
            event.record(theirs.stream()).unwrap();
            let refused = || {
                assert!(!event.is_reached());
                for result in [event.synchronize(1_000_000_000), event.synchronize(u64::MAX), host.wait_event(&event)] {
                    let error = result.unwrap_err();
                    assert!(error.message().contains("recorded into a capture"), "{error}");
                }
            };
            refused();
            drop(theirs.end());
            refused();
            sync_all(Extent::Everything, u64::MAX).unwrap();
            event.record(&bench.stream).unwrap();
            event.synchronize(u64::MAX).unwrap();
        });
        if ran.is_none() {
            return;
        }
    }
}

/// Who waits for everything waits for all that can be waited for, and is told of what cannot.
#[test]
fn a_wait_for_everything_leaves_out_no_other_stream() {
    with_driver(&[], || {
        let bench = Bench::new();
        let theirs = Theirs::new(&bench.engine);
        let x = bench.on_device().unwrap();
        let waits_for_others = |is_known: bool| {
            let others = bench.stream("others");
            spin(&bench, &others, 30_000);
            let waited = sync_all(Extent::Everything, u64::MAX);
            assert!(others.is_idle());
            match waited {
                Ok(()) => assert!(is_known),
                Err(error) => assert!(!is_known && error.message().contains("'theirs' is being captured"), "{error}"),
            }
        };
        theirs.stream().enqueue_fill(x.clone(), 1).unwrap();
        theirs.wait();
        // weir has not been told that it is over.
        theirs.begin();
        waits_for_others(false);
        drop(theirs.end());
        theirs.stream().synchronize(u64::MAX).unwrap();
        // A stream of weir's that has joined in has nothing to do.
        let (side, fork, join) = (bench.stream("side"), bench.event(), bench.event());
        side.enqueue_fill(x.clone(), 2).unwrap();
        theirs.begin();
        fork.record(theirs.stream()).unwrap();
        side.wait_event(&fork).unwrap();
        waits_for_others(true);
        join.record(&side).unwrap();
        theirs.stream().wait_event(&join).unwrap();
        drop(theirs.end());
    });
}

/// Threads may give streams of one capture work at once, however long the process stands still meanwhile.
#[test]
fn several_threads_may_give() {
    with_driver(&[], || {
        let bench = Bench::new();
        let theirs = Theirs::new(&bench.engine);
        let stream = theirs.stream();
        let tensors = [(); 4].map(|()| bench.on_device().unwrap());
        let (was_stopped, me) = (AtomicBool::new(false), std::process::id());
        // As the other threads are no party to it otherwise.
        raw!(cuStreamBeginCapture_v2(theirs.raw, 2): Pointer, i32);
        std::thread::scope(|scope| {
            for x in &tensors {
                scope.spawn(|| {
                    loop {
                        stream.enqueue_fill(x.clone(), 5).unwrap();
                        if was_stopped.load(SeqCst) {
                            break;
                        }
                    }
                });
            }
            let stop = format!("sleep 0.01; kill -STOP {me}; sleep 1.1; kill -CONT {me}; sleep 0.01");
            let stopped = Command::new("sh").args(["-c", &stop]).status();
            was_stopped.store(true, SeqCst);
            assert!(stopped.unwrap().success());
        });
        let graph = theirs.end();
        theirs.launch(&graph);
        theirs.wait();
        tensors.iter().for_each(|x| assert_eq!(bench.read(x).unwrap()[0], 0x0505_0505));
    });
}

/// The program's memory that a captured stream had last is not waited for.
#[test]
fn runs_on_other_streams_take_no_part_in_a_capture() {
    with_driver(&[("DELAY", "1:3000,2:3000,3:3000")], || {
        let bench = Bench::new();
        let theirs = Theirs::new(&bench.engine);
        let (x, y) = (floats(&bench, 0.0), bench.on_device().unwrap());
        let program = chain(&bench, 3, true);
        // As many as there are lanes.
        let streams: Vec<_> = (0..31).map(|i| bench.stream(&format!("s{i}"))).collect();
        let outputs: Vec<_> = streams.iter().map(|_| bench.on_device().unwrap()).collect();
        run(&program, theirs.stream(), &x, &y).unwrap();
        for (stream, y) in streams.iter().zip(&outputs) {
            (0..3).for_each(|_| run(&program, stream, &x, y).unwrap());
        }
        theirs.wait();
        theirs.begin();
        let (last, z) = (bench.stream("last"), bench.on_device().unwrap());
        run(&program, &last, &x, &z).unwrap();
        drop(theirs.end());
        last.synchronize(u64::MAX).unwrap();
        streams.iter().for_each(|stream| stream.synchronize(u64::MAX).unwrap());
        theirs.stream().synchronize(u64::MAX).unwrap();
        check(&bench, &z, |x| x + 100.0 + 2.0 * x);
        check(&bench, &outputs[3], |x| x + 100.0 + 2.0 * x);
    });
}

/// What a graph lets go of may do anything, such as to use what is being captured.
#[test]
fn what_a_graph_lets_go_of_is_dropped_under_no_lock() {
    with_driver(&[WITH], || {
        let bench = Bench::new();
        let theirs = Theirs::new(&bench.engine);
        let kernel = matmul(&bench, &[]).unwrap();
        let [a, b, c] = [1, 2, 3].map(|seed| Matrix::on(&bench, &[20, 20], seed));
        let (again, other, was_let_go) = (kernel.clone(), bench.stream("other"), Arc::new(AtomicBool::new(false)));
        let (inputs, output, told) = (vec![a.tensor.clone(), b.tensor.clone()], c.tensor.clone(), was_let_go.clone());
        let last_words: Box<dyn FnOnce() + Send> = Box::new(move || {
            other.enqueue(again, inputs, vec![output]).unwrap();
            other.synchronize(u64::MAX).unwrap();
            told.store(true, SeqCst);
        });
        let x = bench.on_device().unwrap();
        drop(theirs.capture(|stream| stream.enqueue(bench.fill_with(3, last_words), vec![], vec![x.clone()])));
        eventually("the graph has let go", || {
            let inputs = vec![a.tensor.clone(), b.tensor.clone()];
            drop(theirs.capture(|stream| stream.enqueue(kernel.clone(), inputs, vec![c.tensor.clone()])));
            theirs.stream().synchronize(u64::MAX).unwrap();
            was_let_go.load(SeqCst)
        });
    });
}

/// A stream of weir's that waits for an event of a capture takes part in it.
#[test]
fn streams_of_weirs_join_in_by_events() {
    with_driver(&[("SEED", "3")], || {
        let bench = Bench::new();
        let theirs = Theirs::new(&bench.engine);
        let (x, y) = (floats(&bench, 0.0), bench.on_device().unwrap());
        let program = chain(&bench, 2, false);
        let mut event: Pointer = std::ptr::null_mut();
        raw!(cuEventCreate(&raw mut event, 2): *mut Pointer, u32);
        let (side, joined) = (bench.stream("side"), bench.event());
        run(&program, &side, &x, &y).unwrap();
        side.synchronize(u64::MAX).unwrap();
        let graph = theirs.capture(|stream| {
            stream.enqueue_fill(y.clone(), 3)?;
            raw!(cuEventRecord(event, theirs.raw): Pointer, Pointer);
            side.enqueue_foreign_event(event as u64, false)?;
            run(&program, &side, &x, &y)?;
            joined.record(&side)?;
            stream.wait_event(&joined)
        });
        for _ in 0..2 {
            theirs.launch(&graph);
            theirs.wait();
            check(&bench, &y, |x| 3.0 * x);
        }
        side.synchronize(u64::MAX).unwrap();
        run(&program, &side, &x, &y).unwrap();
        side.synchronize(u64::MAX).unwrap();
        raw!(cuEventDestroy_v2(event): Pointer);
    });
}

#[test]
fn an_index_outside_is_told_of_each_time() {
    with_driver(&[], || {
        let (lookup, stream) = Lookup::new();
        let theirs = Theirs::new(&lookup.engine);
        let there = lookup.indices(&stream, [4, 0, 2]).unwrap();
        stream.synchronize(u64::MAX).unwrap();
        let graph = theirs.capture(|stream| lookup.enqueue_from(stream, &there));
        theirs.launch(&graph);
        theirs.wait();
        lookup.check(&stream, [4, 0, 2]);
        for _ in 0..2 {
            lookup.set(&stream, &there, [4, 0, 9]);
            theirs.launch(&graph);
            // What weir gives the stream behind it waits for it.
            theirs.stream().enqueue_fill(there.clone(), 0).unwrap();
            let error = theirs.stream().synchronize(u64::MAX).unwrap_err();
            assert_eq!(error.code(), Code::OutOfRange, "{error}");
            theirs.stream().clear_error();
        }
    });
}
