//! The host captures a stream of its own, as torch.cuda.graph does: what weir is given for that stream becomes part of
//! the graph, as often as the host launches it and as long as it is there.

use crate::bench::{Bench, LEN, values};
use crate::direct::{chain, check, enter, floats, run};
use crate::gather::Lookup;
use crate::kit::{eventually, fake, raw, with_driver};
use crate::loops::There;
use crate::products::{Matrix, WITH, blas, matmul};
use std::ffi::c_void;
use std::sync::Arc;
use weir::base::{Code, Ref, Result};
use weir::engine::{Engine, Extent, Stream, StreamAttr, sync_all};
use weir::graph::RunOptions;
use weir::kernel::Task;

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
