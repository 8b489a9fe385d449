//! Products in programs: with segments and without, and inside of loops.

use super::*;

/// Products of an input with itself, several of them side by side.
fn powers(bench: &Bench) -> Graph {
    let kernel = matmul(bench, &[]).unwrap();
    let mut graph = Graph::new("powers");
    let x = graph.add_input("x", Desc::new(dtype::F32, &[20, 20])).unwrap();
    let mut product =
        |name: &str, a, b| graph.add_kernel(name, kernel.clone(), &[a, b], 1).map(|node| node.output(0)).unwrap();
    let square = product("square", x, x);
    let (left, right) = (product("left", square, x), product("right", x, square));
    let (third, fourth) = (product("third", left, right), product("fourth", right, left));
    let end = product("end", third, fourth);
    graph.add_output("y", end).unwrap();
    graph.set_input_engine(0, Some(bench.engine.clone())).unwrap();
    graph.set_output_engine(0, Some(bench.engine.clone())).unwrap();
    graph
}

fn run(program: &Ref<Program>, x: &Matrix, y: &Matrix) {
    run_on(program, None, x, y);
}

fn run_on(program: &Ref<Program>, stream: Option<&Ref<Stream>>, x: &Matrix, y: &Matrix) {
    // SAFETY: second owners that are never dropped; the first ones outlive the call.
    let lend = |tensor: &Ref<Tensor>| ManuallyDrop::new(unsafe { std::ptr::read(tensor) });
    let (get_in, get_out) = (|_: usize| Ok(lend(&x.tensor)), |_: usize| Ok(lend(&y.tensor)));
    Program::bind(program, (1, &get_in), (1, &get_out)).unwrap().run(stream.map(|stream| &**stream), None).unwrap();
}

/// A program gives the same bits by recordings as without, whatever its tensors.
pub fn recorded_as_issued(bench: &Bench) {
    let matrix = |seed| Matrix::on(bench, &[20, 20], seed);
    let (inputs, outputs) = ([matrix(1), matrix(2)], [matrix(3), matrix(4)]);
    let compile = |without_segments| {
        let options = CompileOptions { without_segments, ..CompileOptions::default() };
        Program::compile(&powers(bench), vec![bench.cpu.clone(), bench.engine.clone()], &options).unwrap()
    };
    let (issued, recorded) = (compile(true), compile(false));
    for (x, y) in [(0, 0), (0, 1), (1, 0), (1, 1), (0, 0)] {
        run(&issued, &inputs[x], &outputs[y]);
        let want = outputs[y].read(bench);
        run(&recorded, &inputs[x], &outputs[y]);
        assert!(outputs[y].read(bench) == want);
    }
    assert!(are_numbers(&outputs[0].read(bench)));
}

#[test]
fn programs_have_the_same_bits_with_segments_and_without() {
    for (streams, seed) in [("1", "1"), ("3", "2"), ("3", "3"), ("3", "")] {
        let out = with_driver(&[WITH, ("SEED", seed), ("FAKE_STREAMS", streams)], || {
            let mut attr = EngineAttr::new(weir_core::device::DeviceKind::CUDA);
            attr.set_max_streams(std::env::var("FAKE_STREAMS").unwrap().parse().unwrap()).unwrap();
            let bench = Bench::with(Some(&attr)).unwrap();
            needs_the_library(&bench);
            recorded_as_issued(&bench);
            if is_fake() {
                assert_eq!(fake::count("cuGraphInstantiateWithFlags"), 1);
                assert!(fake::count("cuGraphExecChildGraphNodeSetParams") > 0);
                assert_eq!(fake::count("cuGraphAddChildGraphNode"), 6);
            }
        });
        if out.is_none() {
            return;
        }
    }
}

/// while (i < n) { i = i + 1; x = x * w; }
fn repeated(bench: &Bench) -> Graph {
    let (one, square) = (Desc::new(dtype::F32, &[1]), Desc::new(dtype::F32, &[20, 20]));
    let inputs = |graph: &mut Graph| {
        [("i", one), ("x", square), ("n", one), ("w", square)].map(|(name, desc)| graph.add_input(name, desc).unwrap())
    };
    let number = |value: f32| crate::programs::floats(&bench.cpu, &[1], &[value]);
    let mut condition = Graph::new("more");
    let [i, _, n, _] = inputs(&mut condition);
    let less = condition.add_kernel("less", of(&bench.engine, Op::WEIR_BINARY_LT), &[i, n], 1).unwrap().output(0);
    condition.add_output("more", less).unwrap();
    let mut body = Graph::new("body");
    let [i, x, _, w] = inputs(&mut body);
    let by = body.add_constant("one", number(1.0)).unwrap();
    let next = body.add_kernel("count", of(&bench.engine, Op::WEIR_BINARY_ADD), &[i, by], 1).unwrap().output(0);
    let product = body.add_kernel("product", matmul(bench, &[]).unwrap(), &[x, w], 1).unwrap().output(0);
    body.add_output("i", next).unwrap();
    body.add_output("x", product).unwrap();
    let mut graph = Graph::new("repeated");
    let x = graph.add_input("x", square).unwrap();
    let [zero, n] = [("zero", 0.0), ("n", 5.0)].map(|(name, value)| graph.add_constant(name, number(value)).unwrap());
    let looped = graph.add_while("loop", &condition, &body, &[zero, x], &[n, x], 1).unwrap();
    graph.add_output("y", looped.output(1)).unwrap();
    graph.set_input_engine(0, Some(bench.engine.clone())).unwrap();
    graph.set_output_engine(0, Some(bench.engine.clone())).unwrap();
    graph
}

/// Decided by the device or by the host: the same bits, of the library's.
#[test]
fn products_inside_of_loops_have_the_same_bits() {
    for version in ["12000", "12040", "13000"] {
        let out = with_driver(&[WITH, ("VERSION", version), ("SEED", "4")], || {
            let bench = Bench::new();
            needs_the_library(&bench);
            let [x, other, y, want] = [1, 2, 3, 4].map(|seed| Matrix::on(&bench, &[20, 20], seed));
            let [device, host, issued] =
                [(false, false), (true, false), (false, true)].map(|(by_host, without_segments)| {
                    let options = CompileOptions {
                        without_device_control: by_host,
                        without_segments,
                        ..CompileOptions::default()
                    };
                    Program::compile(&repeated(&bench), vec![bench.cpu.clone(), bench.engine.clone()], &options)
                        .unwrap()
                });
            for x in [&x, &other, &x, &x] {
                run(&issued, x, &want);
                let want = want.read(&bench);
                assert!(are_numbers(&want));
                for program in [&device, &host] {
                    run(program, x, &y);
                    assert!(y.read(&bench) == want);
                }
            }
            // On a stream too, in one launch if the device decides.
            let before = [fake::counted("cuGraphLaunch"), blas::counted("cublasLtMatmul")];
            for _ in 0..3 {
                run_on(&device, Some(&bench.stream), &x, &y);
                assert!(y.read(&bench) == want.read(&bench));
            }
            let report = device.report(weir_core::graph::ReportFormat::Json);
            if device_decides(&bench) {
                assert!(fake::counted("cuGraphLaunch") - before[0] == 3 || !is_fake());
                assert!(report.contains("\"direct_runs\":3,"), "{report}");
            }
            assert!(blas::counted("cublasLtMatmul") >= before[1] && (before[1] > 0 || !is_fake()));
        });
        if out.is_none() {
            return;
        }
    }
}

fn device_decides(bench: &Bench) -> bool {
    bench.engine.accelerator().unwrap().control_flow().is_ok()
}

fn are_numbers(numbers: &[f32]) -> bool {
    numbers.iter().all(|number| number.is_finite()) && numbers.iter().any(|number| *number != 0.0)
}
