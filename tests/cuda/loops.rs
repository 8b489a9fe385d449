//! Branches and loops of programs on drivers with conditional nodes and without: the same bits, and what is asked of
//! the driver.

use crate::direct::{LOOK, allocates_nothing_later, asked, calls, enter};
use crate::kit::{eventually, fake, is_fake, with_driver};
use crate::programs::{bound, cpu, floats, gpu, lend, run, words};
use weir_core::base::{Code, Desc, Ref, Result, dtype};
use weir_core::engine::{BoundKernel, Engine, Stream, StreamAttr, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program, ReportFormat, RunOptions};
use weir_core::memory::heap;
use weir_core::ops::{Binary, weir_binary_op_value as Op};

pub fn of(engine: &Ref<Engine>, op: Op) -> Ref<BoundKernel> {
    bound::<Binary>(engine, Binary::desc(op))
}

const LEN: usize = 8;

/// while (i < n) { i = i + 1; h, old = |h| < limit ? h * w + x : x, h; }, with w and 1 as constants.
fn recurrent(on: &Ref<Engine>) -> Graph {
    let (one, row) = (Desc::new(dtype::F32, &[1]), Desc::new(dtype::F32, &[LEN as i64]));
    let (less, add, mul) = (of(on, Op::WEIR_BINARY_LT), of(on, Op::WEIR_BINARY_ADD), of(on, Op::WEIR_BINARY_MUL));
    let inputs = |graph: &mut Graph| {
        [("i", one), ("h", row), ("old", row), ("n", one), ("x", row)]
            .map(|(name, desc)| graph.add_input(name, desc).unwrap())
    };
    let mut condition = Graph::new("more");
    let [i, _, _, n, _] = inputs(&mut condition);
    let more = condition.add_kernel("less", less.clone(), &[i, n], 1).unwrap().output(0);
    condition.add_output("more", more).unwrap();

    let mut branches = ["scaled", "fresh"].map(Graph::new);
    for (taken, branch) in branches.iter_mut().enumerate() {
        let (h, x) = (branch.add_input("h", row).unwrap(), branch.add_input("x", row).unwrap());
        let w = branch.add_constant("w", floats(&cpu(), &[LEN as i64], &[0.75; LEN])).unwrap();
        let scaled = branch.add_kernel("scale", mul.clone(), &[h, w], 1).unwrap().output(0);
        let sum = branch.add_kernel("sum", add.clone(), &[scaled, x], 1).unwrap().output(0);
        branch.add_output("h", if taken == 0 { sum } else { x }).unwrap();
    }
    let mut body = Graph::new("body");
    let [i, h, _, n, x] = inputs(&mut body);
    let by = body.add_constant("one", floats(&cpu(), &[1], &[1.0])).unwrap();
    let half = body.add_constant("half", floats(&cpu(), &[1], &[0.5])).unwrap();
    let middle = body.add_kernel("middle", mul.clone(), &[n, half], 1).unwrap().output(0);
    let is_late = body.add_kernel("is late", less, &[middle, i], 1).unwrap().output(0);
    let [scaled, fresh] = &branches;
    let chosen = body.add_cond("choice", is_late, scaled, fresh, &[h, x]).unwrap();
    let next = body.add_kernel("count", add, &[i, by], 1).unwrap().output(0);
    body.add_output("i", next).unwrap();
    body.add_output("h", chosen.output(0)).unwrap();
    body.add_output("old", h).unwrap();

    let mut graph = Graph::new("recurrent");
    let values = inputs(&mut graph);
    let looped = graph.add_while("loop", &condition, &body, &values[..3], &values[3..], 1).unwrap();
    (0..3).for_each(|output| graph.add_output(["i", "h", "old"][output], looped.output(output)).unwrap());
    graph
}

fn tensors(n: usize) -> Vec<Ref<Tensor>> {
    let host = cpu();
    let row = |from: f32| -> Vec<f32> { (0..LEN).map(|i| from + i as f32 / 3.0).collect() };
    let row = |from| floats(&host, &[LEN as i64], &row(from));
    vec![floats(&host, &[1], &[0.0]), row(1.0), row(2.0), floats(&host, &[1], &[n as f32]), row(0.5)]
}

/// The bits of all outputs for `n` iterations.
fn outputs(program: &Ref<Program>, n: usize) -> Vec<u32> {
    let host = cpu();
    let outputs = [floats(&host, &[1], &[-1.0]), floats(&host, &[LEN as i64], &[-1.0; LEN])];
    let outputs = [outputs[0].clone(), outputs[1].clone(), floats(&host, &[LEN as i64], &[-1.0; LEN])];
    run(program, &tensors(n), &outputs);
    outputs.iter().flat_map(words).collect()
}

#[test]
fn a_loop_has_the_same_bits_in_all_ways_and_is_one_launch_where_the_device_decides() {
    let expected = expected();
    for version in ["12000", "12040", "12080", "13000"] {
        let ran = with_driver(&[("VERSION", version)], || {
            for way in 0..3 {
                let options = CompileOptions {
                    without_device_control: way == 1,
                    without_segments: way == 2,
                    ..CompileOptions::default()
                };
                check(&options, way, &expected);
            }
            if is_fake() {
                eventually("everything is given back", || fake::live(None) == 0);
            }
        });
        if ran.is_none() {
            return;
        }
    }
}

/// Runs on the driver that there is.
fn check(options: &CompileOptions, way: usize, expected: &[Vec<u32>]) {
    let engine = gpu(1);
    let program = Program::compile(&recurrent(&engine), vec![cpu(), engine.clone()], options).unwrap();
    let report = program.report(ReportFormat::Text);
    let is_by_device = way == 0 && engine.accelerator().unwrap().control_flow().is_ok();
    let who = if is_by_device { "'loop' on cuda:0: by the device\n" } else { "'loop' on cuda:0: by the host: " };
    assert!(report.contains(who), "way {way}: {report}");
    for n in [3, 5, 0, 7, 1] {
        let names = ["cuGraphLaunch", "cuLaunchKernel", "cuStreamSynchronize", "cuMemAlloc_v2"];
        let before = names.map(fake::counted);
        assert_eq!(outputs(&program, n), expected[n], "way {way}, {n} iterations");
        let calls: Vec<u64> = names.iter().zip(before).map(|(name, before)| fake::counted(name) - before).collect();
        if is_by_device && is_fake() {
            assert_eq!(calls[..2], [1, 0], "{n} iterations");
        }
        if n != 3 {
            assert_eq!(calls[2..], [0, 0], "way {way}, {n} iterations");
        }
    }
    assert!(!program.report(ReportFormat::Text).contains("why a recording was refused"));
}

/// The loop with all tensors on the engine, for runs on streams of it.
pub struct There {
    engine: Ref<Engine>,
    stream: Ref<Stream>,
    program: Ref<Program>,
}

/// A run's tensors.
pub struct Given {
    inputs: Vec<Ref<Tensor>>,
    outputs: Vec<Ref<Tensor>>,
}

impl There {
    pub fn new() -> There {
        let engine = gpu(1);
        let mut graph = recurrent(&engine);
        (0..5).for_each(|input| graph.set_input_engine(input, Some(engine.clone())).unwrap());
        (0..3).for_each(|output| graph.set_output_engine(output, Some(engine.clone())).unwrap());
        let program = Program::compile(&graph, vec![cpu(), engine.clone()], &CompileOptions::default()).unwrap();
        let stream = Stream::create(engine.clone(), StreamAttr::new(engine.kind())).unwrap();
        There { engine, stream, program }
    }

    pub fn given(&self) -> Given {
        let there = |tensor: &Ref<Tensor>| Tensor::create(self.engine.clone(), *tensor.desc()).unwrap();
        let inputs: Vec<_> = tensors(0).iter().map(there).collect();
        Given { outputs: inputs[..3].iter().map(there).collect(), inputs }
    }

    /// What the tensors hold in front of a run with so many iterations.
    fn fill(&self, given: &Given, n: usize) {
        let copies = tensors(n).into_iter().zip(&given.inputs);
        copies.for_each(|(here, there)| self.stream.enqueue_copy(here, there.clone()).unwrap());
        self.stream.synchronize(u64::MAX).unwrap();
    }

    fn run(&self, given: &Given) -> Result<()> {
        self.run_on(&self.stream, given)
    }

    pub fn run_on(&self, stream: &Ref<Stream>, given: &Given) -> Result<()> {
        let Given { inputs, outputs } = given;
        let (get_in, get_out) = (|i: usize| Ok(lend(&inputs[i])), |o: usize| Ok(lend(&outputs[o])));
        Program::bind(&self.program, (5, &get_in), (3, &get_out))?.run(Some(stream), Some(&RunOptions::default()))
    }

    fn read(&self, given: &Given) -> Vec<u32> {
        let here = |there: &Ref<Tensor>| {
            let here = Tensor::create(cpu(), *there.desc()).unwrap();
            self.stream.enqueue_copy(there.clone(), here.clone()).unwrap();
            here
        };
        let here: Vec<_> = given.outputs.iter().map(here).collect();
        self.stream.synchronize(u64::MAX).unwrap();
        here.iter().flat_map(words).collect()
    }

    /// A run, and what it gives.
    fn gives(&self, given: &Given, n: usize) -> Vec<u32> {
        self.fill(given, n);
        self.run(given).unwrap();
        self.read(given)
    }

    fn says(&self, text: &str) {
        let report = self.program.report(ReportFormat::Json);
        assert!(report.contains(text), "no {text} in {report}");
    }
}

/// By the processor, for up to 7 iterations.
fn expected() -> Vec<Vec<u32>> {
    let host = Program::compile(&recurrent(&cpu()), vec![cpu()], &CompileOptions::default()).unwrap();
    (0..8).map(|n| outputs(&host, n)).collect()
}

#[test]
fn on_a_stream_a_loop_is_one_look_and_one_launch_whatever_the_iterations() {
    for version in ["12000", "12040", "12080", "13000"] {
        let ran = with_driver(&[("VERSION", version)], || {
            let (there, expected, mut at) = (There::new(), expected(), 0);
            let is_direct = there.engine.accelerator().unwrap().control_flow().is_ok();
            enter(&there.engine);
            let (first, second) = (there.given(), there.given());
            assert_eq!(there.gives(&first, 3), expected[3]);
            for n in [3, 5, 0, 7, 1, 4] {
                there.fill(&first, n);
                calls(&mut at);
                there.run(&first).unwrap();
                if is_direct {
                    asked(&mut at, &[LOOK, "cuGraphLaunch"]);
                }
                assert_eq!(there.read(&first), expected[n], "{n} iterations");
            }
            for n in [2, 6] {
                there.fill(&second, n);
                calls(&mut at);
                there.run(&second).unwrap();
                if is_direct && n == 2 && is_fake() {
                    // Other inputs and outputs, of which each has a copy of its own.
                    let made = calls(&mut at);
                    let sets = made.iter().filter(|call| *call == "cuGraphExecMemcpyNodeSetParams").count();
                    assert_eq!((sets, made.len(), made[made.len() - 1].as_str()), (8, 10, "cuGraphLaunch"), "{made:?}");
                } else if is_direct {
                    asked(&mut at, &[LOOK, "cuGraphLaunch"]);
                }
                assert_eq!(there.read(&second), expected[n], "{n} iterations");
            }
            match is_direct {
                true => there.says("\"direct_why\":\"yes, on streams of its engine\",\"direct_runs\":9,"),
                false => there
                    .says("\"direct_why\":\"no, it has branches or loops that the host decides\",\"direct_runs\":0,"),
            }
            if let Ok(version) = std::env::var("FAKE_CUDA_VERSION") {
                assert_eq!(is_direct, version != "12000");
            }
        });
        if ran.is_none() {
            return;
        }
    }
}

#[test]
fn later_runs_of_a_loop_on_a_stream_allocate_nothing() {
    with_driver(&[("SEED", "5")], || {
        let there = There::new();
        let given = there.given();
        there.fill(&given, 3);
        let go = || {
            let before = heap::allocations();
            (0..50).for_each(|_| there.run(&given).unwrap());
            there.stream.synchronize(u64::MAX).unwrap();
            heap::allocations() - before
        };
        allocates_nothing_later(&go);
        assert_eq!(there.read(&given), expected()[3]);
    });
}

#[test]
fn a_loop_that_is_not_recorded_is_driven_by_the_host() {
    with_driver(&[], || {
        let (there, expected) = (There::new(), expected());
        let given = there.given();
        fake::fail("cuGraphInstantiateWithFlags", 1, 801);
        [3, 5, 0, 7].into_iter().for_each(|n| assert_eq!(there.gives(&given, n), expected[n], "{n} iterations"));
        there.says("\"direct_runs\":0,");
        there.says("cuGraphInstantiateWithFlags");
        // In a later lane: that run fails, and those behind it are driven by the host.
        let there = There::new();
        let given = there.given();
        assert_eq!(there.gives(&given, 4), expected[4]);
        there.program.trim();
        there.fill(&given, 6);
        fake::fail("cuGraphInstantiateWithFlags", 1, 2);
        there.run(&given).unwrap();
        let error = there.stream.synchronize(u64::MAX).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
        let text = "program 'recurrent': engine cuda:0: ";
        assert!(error.message().contains(text) && error.message().contains("cuGraphInstantiate"), "{error}");
        there.stream.clear_error();
        [6, 1].into_iter().for_each(|n| assert_eq!(there.gives(&given, n), expected[n], "{n} iterations"));
        there.says("\"direct_runs\":2,");
    });
}

#[test]
fn a_device_that_is_lost_in_the_trial_is_the_runs_error() {
    with_driver(&[("LEAKS", "off")], || {
        let there = There::new();
        let given = there.given();
        there.fill(&given, 3);
        fake::fail("cuGraphInstantiateWithFlags", 1, 700);
        assert_eq!(there.run(&given).unwrap_err().code(), Code::DeviceLost);
        drop(given);
    });
}
