//! Segments of programs as graphs of the driver's: what is asked of the driver in each run, and the ways back.

use crate::bench::{Bench, LEN, values};
use crate::kit::{eventually, fake, is_fake, with_driver};
use crate::programs::bound;
use std::mem::ManuallyDrop;
use weir_core::base::{Code, Desc, Ref, Result, dtype};
use weir_core::device::{Fill, HostAddress, Location, RecordedStep, RecordedWork, Recording, Transfer};
use weir_core::engine::Tensor;
use weir_core::graph::{CompileOptions, Graph, Program, ReportFormat};

/// As `with_driver`; in the end everything has been given back, once the thread that has told of the last event lets go
/// of it, too. A real driver does not say.
pub fn on_driver(settings: &[(&str, &str)], body: impl FnOnce()) -> Option<String> {
    with_driver(settings, || {
        body();
        if is_fake() {
            eventually("everything is given back", || fake::live(None) == 0);
        }
    })
}

/// Chains side by side of sums of what came before and the input, and the sum of their ends.
pub fn chains(bench: &Bench, chains: usize, length: usize) -> Graph {
    let add = bench.add().unwrap();
    let mut graph = Graph::new("chains");
    let x = graph.add_input("x", crate::bench::desc()).unwrap();
    let mut sum = x;
    for chain in 0..chains {
        let mut value = x;
        for i in 0..length {
            value = graph.add_kernel(&format!("{chain}.{i}"), add.clone(), &[value, x], 1).unwrap().output(0);
        }
        sum = graph.add_kernel(&format!("sum {chain}"), add.clone(), &[sum, value], 1).unwrap().output(0);
    }
    graph.add_output("y", sum).unwrap();
    graph
}

/// What comes of it for one number.
fn expected(x: f32, chains: usize, length: usize) -> f32 {
    let end = (0..length).fold(x, |value, _| value + x);
    (0..chains).fold(x, |sum, _| sum + end)
}

fn compile(bench: &Bench, graph: &Graph, without_segments: bool) -> Ref<Program> {
    let options = CompileOptions { without_segments, ..CompileOptions::default() };
    Program::compile(graph, vec![bench.cpu.clone(), bench.engine.clone()], &options).unwrap()
}

pub fn run(program: &Ref<Program>, x: &Ref<Tensor>, y: &Ref<Tensor>) -> Result<()> {
    // SAFETY: second owners that are never dropped; the first ones outlive the call.
    let lend = |tensor: &Ref<Tensor>| ManuallyDrop::new(unsafe { std::ptr::read(tensor) });
    let (get_in, get_out) = (|_: usize| Ok(lend(x)), |_: usize| Ok(lend(y)));
    Program::bind(program, (1, &get_in), (1, &get_out))?.run(None, None)
}

pub fn floats(bench: &Bench, from: f32) -> Ref<Tensor> {
    bench.on_host(move |i| (from + i as f32).to_bits() as i32)
}

pub fn check(found: &[i32], from: f32, chains: usize, length: usize) {
    for (i, &bits) in found.iter().enumerate() {
        assert_eq!(f32::from_bits(bits as u32), expected(from + i as f32, chains, length), "{i}");
    }
}

/// What was asked of the driver since the last time.
pub struct Calls(Vec<(&'static str, u64)>);

impl Calls {
    const OF_A_RUN: [&'static str; 20] = [
        "cuGraphLaunch",
        "cuLaunchKernel",
        "cuEventRecord",
        "cuStreamWaitEvent",
        "cuMemcpyHtoDAsync_v2",
        "cuMemcpyDtoHAsync_v2",
        "cuMemcpyDtoDAsync_v2",
        "cuGraphExecKernelNodeSetParams_v2",
        "cuGraphCreate",
        "cuGraphAddKernelNode_v2",
        "cuGraphAddMemcpyNode",
        "cuGraphAddEmptyNode",
        "cuGraphInstantiateWithFlags",
        "cuStreamSynchronize",
        "cuCtxSynchronize",
        "cuStreamCreateWithPriority",
        "cuEventCreate",
        "cuMemAlloc_v2",
        "cuMemAllocFromPoolAsync",
        "cuMemHostAlloc",
    ];

    pub fn now() -> Calls {
        Calls(Self::OF_A_RUN.into_iter().map(|name| (name, fake::counted(name))).collect())
    }

    /// Those that were made; none with a real driver.
    pub fn since(&self) -> Vec<(&'static str, u64)> {
        let since = self.0.iter().map(|&(name, before)| (name, fake::counted(name) - before));
        since.filter(|&(_, count)| count > 0).collect()
    }
}

#[test]
fn a_replay_is_one_launch_and_what_its_end_needs() {
    for version in ["12000", "12040", "12080", "13000"] {
        let out = on_driver(&[("VERSION", version)], || {
            let bench = Bench::new();
            let program = compile(&bench, &chains(&bench, 3, 4), false);
            let (x, y) = (floats(&bench, 1.0), bench.on_host(|_| 0));
            run(&program, &x, &y).unwrap();
            check(&values(&y), 1.0, 3, 4);
            let calls = Calls::now();
            run(&program, &x, &y).unwrap();
            let made = calls.since();
            let of = |name| made.iter().find(|call| call.0 == name).map_or(0, |call| call.1);
            if is_fake() {
                assert_eq!(["cuGraphAddKernelNode_v2", "cuGraphAddMemcpyNode", "cuGraphLaunch"].map(of), [15, 1, 1]);
                assert_eq!(["cuGraphInstantiateWithFlags", "cuLaunchKernel"].map(of), [1, 0]);
            }
            for from in [2.0, 3.0, 4.0] {
                let x = floats(&bench, from);
                let calls = Calls::now();
                run(&program, &x, &y).unwrap();
                let launch = [("cuGraphLaunch", 1), ("cuEventRecord", 2), ("cuStreamWaitEvent", 1)];
                // The input's copy is in the graph; the end is recorded, and fetched behind it.
                if is_fake() {
                    assert_eq!(calls.since(), [&launch[..], &[("cuMemcpyDtoHAsync_v2", 1)]].concat());
                }
                check(&values(&y), from, 3, 4);
            }
        });
        if out.is_none() {
            return;
        }
    }
}

#[test]
fn other_tensors_are_other_parameters_and_nothing_else() {
    on_driver(&[("SEED", "3")], || {
        let bench = Bench::new();
        let mut graph = chains(&bench, 2, 4);
        graph.set_input_engine(0, Some(bench.engine.clone())).unwrap();
        graph.set_output_engine(0, Some(bench.engine.clone())).unwrap();
        let program = compile(&bench, &graph, false);
        let tensors: Vec<_> = (0..2).map(|_| (bench.on_device().unwrap(), bench.on_device().unwrap())).collect();
        for (i, (x, _)) in tensors.iter().enumerate() {
            bench.stream.enqueue_copy(floats(&bench, i as f32), x.clone()).unwrap();
        }
        bench.wait().unwrap();
        // All but the last one read the input; the last one writes the output.
        for (i, updates) in [(0, 0), (0, 0), (0, 0), (1, 10), (1, 0), (0, 10)] {
            let (x, y) = &tensors[i];
            let calls = Calls::now();
            run(&program, x, y).unwrap();
            let made = calls.since();
            let of = |name| made.iter().find(|call| call.0 == name).map_or(0, |call| call.1);
            assert!(of("cuGraphExecKernelNodeSetParams_v2") == updates || !is_fake(), "{made:?}");
            check(&bench.read(y).unwrap(), i as f32, 2, 4);
        }
        assert!(fake::counted("cuGraphInstantiateWithFlags") == 1 || !is_fake());
    });
}

#[test]
fn without_graphs_there_are_streams() {
    on_driver(&[("WITHOUT", "cuGraphLaunch")], || {
        let bench = Bench::new();
        let program = compile(&bench, &chains(&bench, 2, 4), false);
        let (x, y) = (floats(&bench, 1.0), bench.on_host(|_| 0));
        for _ in 0..3 {
            run(&program, &x, &y).unwrap();
            check(&values(&y), 1.0, 2, 4);
        }
        assert_eq!([fake::count("cuGraphCreate"), fake::count("cuLaunchKernel")], [0, 30]);
        assert!(program.report(ReportFormat::Json).contains("\"segments_why\":\"no, no engine records work\""));
    });
}

#[test]
fn who_wants_no_segments_has_streams() {
    on_driver(&[], || {
        let bench = Bench::new();
        let program = compile(&bench, &chains(&bench, 2, 4), true);
        let (x, y) = (floats(&bench, 1.0), bench.on_host(|_| 0));
        (0..3).for_each(|_| run(&program, &x, &y).unwrap());
        check(&values(&y), 1.0, 2, 4);
        if is_fake() {
            assert_eq!([fake::count("cuGraphCreate"), fake::count("cuLaunchKernel")], [0, 30]);
        }
    });
}

#[test]
fn what_the_driver_will_not_have_as_a_graph_is_issued() {
    on_driver(&[("FAIL", "cuGraphInstantiateWithFlags:*:801")], || {
        let bench = Bench::new();
        let program = compile(&bench, &chains(&bench, 2, 4), false);
        let (x, y) = (floats(&bench, 1.0), bench.on_host(|_| 0));
        for _ in 0..4 {
            run(&program, &x, &y).unwrap();
            check(&values(&y), 1.0, 2, 4);
        }
        assert_eq!([fake::count("cuGraphInstantiateWithFlags"), fake::count("cuLaunchKernel")], [1, 40]);
        assert_eq!(fake::count("cuGraphDestroy"), 1, "what was built of it is taken back");
        let report = program.report(ReportFormat::Text);
        assert!(report.contains("why a recording was refused: engine cuda:0: 10 nodes from '0.0' to"), "{report}");
        assert!(report.contains("cuGraphInstantiateWithFlags: CUDA_ERROR_NOT_SUPPORTED (801"), "{report}");
    });
}

#[test]
fn after_a_failure_a_run_issues_and_the_next_ones_replay() {
    on_driver(&[("SEED", "5")], || {
        let bench = Bench::new();
        let program = compile(&bench, &chains(&bench, 2, 4), false);
        let (x, y) = (floats(&bench, 1.0), bench.on_host(|_| 0));
        (0..2).for_each(|_| run(&program, &x, &y).unwrap());
        fake::fail("cuGraphLaunch", 1, 1);
        let error = run(&program, &x, &y).unwrap_err();
        assert!(error.message().contains("cuGraphLaunch: CUDA_ERROR_INVALID_VALUE (1"), "{error}");
        for launches in [1, 1, 2] {
            let before = fake::count("cuLaunchKernel");
            run(&program, &x, &y).unwrap();
            check(&values(&y), 1.0, 2, 4);
            let is_issued = fake::count("cuLaunchKernel") > before;
            assert_eq!(is_issued, launches == 1 && fake::count("cuGraphLaunch") == 2, "{launches}");
        }
        assert_eq!(fake::count("cuGraphInstantiateWithFlags"), 1);
    });
}

#[test]
fn a_device_that_is_lost_in_a_replay_fails_every_run() {
    // What a lost device has is not taken back.
    with_driver(&[("LEAKS", "off")], || {
        let bench = Bench::new();
        let program = compile(&bench, &chains(&bench, 2, 4), false);
        let (x, y) = (floats(&bench, 1.0), bench.on_host(|_| 0));
        (0..3).for_each(|_| run(&program, &x, &y).unwrap());
        fake::fail("cuGraphLaunch", 1, 700);
        for _ in 0..2 {
            assert_eq!(run(&program, &x, &y).unwrap_err().code(), Code::DeviceLost);
        }
    });
}

/// The chains' operations, whatever the driver does first: its checker ends the process if an edge is missing.
#[test]
fn any_order_that_the_edges_allow_is_right() {
    for seed in ["1", "2", "3", "4", "5", "6"] {
        let out = on_driver(&[("SEED", seed)], || {
            let bench = Bench::new();
            let program = compile(&bench, &chains(&bench, 4, 3), false);
            let (x, y) = (floats(&bench, 1.0), bench.on_host(|_| 0));
            for _ in 0..3 {
                run(&program, &x, &y).unwrap();
                check(&values(&y), 1.0, 4, 3);
            }
        });
        if out.is_none() {
            return;
        }
    }
}

/// Kernels that ship with the library, from their PTX.
#[test]
fn built_in_kernels_are_recorded_as_they_are_launched() {
    on_driver(&[("SEED", "2")], || {
        use weir_core::ops::{Eltwise, weir_eltwise_op_value::WEIR_ELTWISE_SQUARE};
        let bench = Bench::new();
        let square = bound::<Eltwise>(&bench.engine, Eltwise::desc(WEIR_ELTWISE_SQUARE, 0.0, 0.0));
        let f32s = Desc::new(dtype::F32, &[LEN as i64]);
        let mut graph = Graph::new("squares");
        let x = graph.add_input("x", f32s).unwrap();
        let end = (0..5).fold(x, |value, i| {
            graph.add_kernel(&format!("square {i}"), square.clone(), &[value], 1).unwrap().output(0)
        });
        graph.add_output("y", end).unwrap();
        let program = compile(&bench, &graph, false);
        let tensor = || Tensor::create(bench.cpu.clone(), f32s).unwrap();
        let (x, y) = (tensor(), tensor());
        for i in 0..LEN {
            // SAFETY: an array of so many numbers that nobody uses yet.
            unsafe { x.data().cast::<f32>().add(i).write(0.5 + i as f32 / 1000.0) };
        }
        for round in 0..3 {
            run(&program, &x, &y).unwrap();
            for i in 0..LEN {
                let of = 0.5 + i as f32 / 1000.0;
                // SAFETY: numbers that no work uses any more.
                let found = unsafe { y.data().cast::<f32>().add(i).read() };
                assert_eq!(found, (0..5).fold(of, |x, _| x * x), "round {round}, {i}");
            }
        }
        assert!(fake::counted("cuGraphLaunch") == 2 || !is_fake());
    });
}

#[test]
fn copies_and_fills_are_steps_with_addresses_that_change() {
    on_driver(&[("SEED", "9")], || {
        let bench = Bench::new();
        let device = bench.engine.accelerator().unwrap();
        let tensors: Vec<_> = (0..3).map(|_| bench.on_device().unwrap()).collect();
        let address = |i: usize| tensors[i].data() as usize;
        let (from, bytes) = ([bench.on_host(|i| i as i32), bench.on_host(|i| -(i as i32))], LEN * 4);
        let copy = |of: usize, to: usize| {
            // SAFETY: the tensor is there until the copy is done.
            let from = Location::Host(unsafe { HostAddress::new(from[of].data() as usize) });
            RecordedWork::Copy(Transfer { name: "copy", to: Location::Device(address(to)), from, bytes })
        };
        let half = |to: usize, value: u8| {
            RecordedWork::Fill(Fill { name: "half", address: address(to), bytes: bytes / 2, value })
        };
        let steps = [RecordedStep { work: copy(0, 0), after: &[] }, RecordedStep { work: half(0, 1), after: &[0] }];
        let executable = device.record(&Recording { name: "both", steps: &steps }).unwrap();
        let stream = device.stream(&weir_core::device::DeviceStreamAttr { name: "s", priority: 0 }).unwrap();
        let wait = || {
            let event = device.event(false).unwrap();
            stream.record(&event).unwrap();
            assert!(event.synchronize(weir_core::base::time::Deadline::NEVER).unwrap());
        };
        let found = |i: usize, sign: i32, byte: i32| {
            let numbers = bench.read(&tensors[i]).unwrap();
            assert!(numbers[..LEN / 2].iter().all(|&number| number == byte * 0x0101_0101));
            assert!((LEN / 2..LEN).all(|at| numbers[at] == sign * at as i32));
        };
        stream.replay(&executable, "a recording").unwrap();
        wait();
        found(0, 1, 1);
        executable.update(0, &copy(1, 1)).unwrap();
        executable.update(1, &half(1, 2)).unwrap();
        stream.replay(&executable, "a recording").unwrap();
        wait();
        found(0, 1, 1);
        found(1, -1, 2);
        assert_eq!(executable.update(2, &half(1, 2)).unwrap_err().code(), Code::InvalidArgument);
        let steps = [RecordedStep { work: half(2, 1), after: &[1] }, RecordedStep { work: half(2, 1), after: &[] }];
        assert_eq!(device.record(&Recording { name: "r", steps: &steps }).unwrap_err().code(), Code::InvalidArgument);
        drop((executable, stream));
    });
}
