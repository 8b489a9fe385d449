//! Products in recordings, and what comes of it where the library or a capture fails.

use super::*;
use weir_core::device::{Executable, RecordedStep, RecordedWork, Recording};

/// What is recorded: two products side by side, the product of what they give, and a sum with one of them that no edge
/// orders.
struct Recorded {
    kernel: Ref<BoundKernel>,
    add: Ref<BoundKernel>,
    a: Matrix,
    b: Matrix,
    results: [Matrix; 4],
}

impl Recorded {
    fn new(bench: &Bench) -> Recorded {
        let square = [20, 20];
        let matrix = |seed| Matrix::new(bench, square, 0, seed);
        Recorded {
            kernel: matmul(bench, &[]).unwrap(),
            add: matmul_with(bench, &[WEIR_MATMUL_SUM], weir_activation_value::WEIR_ACTIVATION_RELU).unwrap(),
            a: matrix(1),
            b: matrix(2),
            results: [3, 4, 5, 6].map(matrix),
        }
    }

    /// Inputs and outputs of each step.
    fn views(&self) -> [(Vec<View>, [View; 1]); 4] {
        let [p, q, r, s] = &self.results;
        let of = |inputs: &[&Matrix], output: &Matrix| (inputs.iter().map(|m| m.view()).collect(), [output.view()]);
        [
            of(&[&self.a, &self.b], p),
            of(&[&self.b, &self.a], q),
            of(&[p, q], r),
            // With an addend, and a rectifier behind it.
            of(&[p, &self.b, &self.a], s),
        ]
    }

    fn kernel(&self, step: usize) -> &Ref<BoundKernel> {
        if step == 3 { &self.add } else { &self.kernel }
    }

    fn record(&self, bench: &Bench) -> Result<Arc<dyn Executable>> {
        let views = self.views();
        let after: [&[usize]; 4] = [&[], &[], &[0, 1], &[0]];
        let steps = views.iter().zip(after).enumerate().map(|(i, ((inputs, outputs), after))| RecordedStep {
            work: RecordedWork::Launch(launch(self.kernel(i), inputs, outputs)),
            after,
        });
        device(bench).record(&Recording { name: "products", steps: &steps.collect::<Vec<_>>() })
    }

    /// One after the other.
    fn issue(&self, on: &dyn DeviceStream) {
        for (i, (inputs, outputs)) in self.views().iter().enumerate() {
            on.launch(&launch(self.kernel(i), inputs, outputs)).unwrap();
        }
    }

    fn read(&self, bench: &Bench) -> [Vec<f32>; 4] {
        self.results.each_ref().map(|result| result.read(bench))
    }
}

#[test]
fn in_recordings_they_are_children_of_the_graph() {
    for (version, seed) in [("12000", "1"), ("13000", "2"), ("13000", "3"), ("13000", "")] {
        let out = with_driver(&[WITH, ("VERSION", version), ("SEED", seed)], || {
            let bench = Bench::new();
            needs_the_library(&bench);
            let (mut all, stream) = (Recorded::new(&bench), stream(&bench));
            all.issue(&*stream);
            wait(&bench, &*stream).unwrap();
            let eager = all.read(&bench);
            let allocated = fake::counted("cuMemAllocFromPoolAsync");
            let executable = all.record(&bench).unwrap();
            // Two side by side, and the other two behind both or one of them: three at a time at most, and the third is
            // behind both.
            let workspaces = fake::counted("cuMemAllocFromPoolAsync") - allocated;
            if is_fake() {
                assert!((2..=3).contains(&workspaces), "{workspaces} workspaces");
                assert_eq!([fake::count("cuGraphAddChildGraphNode"), fake::count("cuGraphAddKernelNode_v2")], [4, 1]);
            }
            let before = [blas::counted("cublasLtMatmul"), fake::counted("cuMemAllocFromPoolAsync")];
            for _ in 0..3 {
                stream.replay(&executable, "a recording").unwrap();
                wait(&bench, &*stream).unwrap();
                assert!(all.read(&bench) == eager, "the same bits as outside of a recording");
            }
            assert_eq!([blas::counted("cublasLtMatmul"), fake::counted("cuMemAllocFromPoolAsync")], before);
            // Another result of the first step; then a factor that is less aligned, for which the library has another
            // form.
            all.results[0] = Matrix::new(&bench, [20, 20], 0, 9);
            for (step, (inputs, outputs)) in all.views().iter().enumerate() {
                executable.update(step, &RecordedWork::Launch(launch(all.kernel(step), inputs, outputs))).unwrap();
            }
            assert!(fake::counted("cuGraphExecChildGraphNodeSetParams") == 4 || !is_fake());
            stream.replay(&executable, "a recording").unwrap();
            wait(&bench, &*stream).unwrap();
            assert!(all.read(&bench) == eager);
            if !is_fake() {
                // What of another form is refused is the library's.
                return;
            }
            all.a = Matrix::new(&bench, [20, 20], 1, 7);
            let views = all.views();
            let (inputs, outputs) = &views[1];
            let refused =
                executable.update(1, &RecordedWork::Launch(launch(&all.kernel, inputs, outputs))).unwrap_err();
            assert!(refused.message().contains("cuGraphExecChildGraphNodeSetParams"), "{refused}");
            drop(executable);
            let anew = all.record(&bench).unwrap();
            stream.replay(&anew, "a recording").unwrap();
            wait(&bench, &*stream).unwrap();
            all.results[1].check(&bench, &all.b, &all.a);
            drop((anew, stream, all, bench));
            nothing_is_left();
        });
        if out.is_none() {
            return;
        }
    }
}

#[test]
fn each_call_of_the_library_may_fail() {
    let functions = [
        "cublasLtMatmulDescCreate",
        "cublasLtMatmulDescSetAttribute",
        "cublasLtMatrixLayoutCreate",
        "cublasLtMatmulPreferenceCreate",
        "cublasLtMatmulPreferenceSetAttribute",
        "cublasLtMatmulAlgoGetHeuristic",
        "cublasLtMatmul",
    ];
    with_driver(&[WITH], || {
        let bench = Bench::new();
        let [a, b, c] = triple(&bench, [7, 9, 40], 1);
        for function in functions {
            let (kernel, on) = (matmul(&bench, &[]).unwrap(), stream(&bench));
            for _ in 0..2 {
                blas::fail(function, 1, 14);
                let error = multiply(&*on, &kernel, &a, &b, &c).unwrap_err();
                let text = format!("{function}: CUBLAS_STATUS_INTERNAL_ERROR (14)");
                assert!(error.code() == Code::Internal && error.message().contains(&text), "{error}");
            }
            multiply(&*on, &kernel, &a, &b, &c).unwrap();
            wait(&bench, &*on).unwrap();
            c.check(&bench, &a, &b);
            // In a capture, which ends all the same.
            let views = ([a.view(), b.view()], [c.view()]);
            let steps = [RecordedStep { work: RecordedWork::Launch(launch(&kernel, &views.0, &views.1)), after: &[] }];
            let record = || device(&bench).record(&Recording { name: "r", steps: &steps });
            if function == "cublasLtMatmul" {
                blas::fail(function, 1, 14);
                assert!(record().unwrap_err().message().contains("cublasLtMatmul: CUBLAS_STATUS_INTERNAL_ERROR"));
            }
            let executable = record().unwrap();
            on.replay(&executable, "a recording").unwrap();
            wait(&bench, &*on).unwrap();
            c.check(&bench, &a, &b);
        }
        // What the library cannot do the built-in kernels do.
        let (kernel, on) = (matmul(&bench, &[]).unwrap(), stream(&bench));
        let before = blas::count("cublasLtMatmul");
        blas::fail("cublasLtMatmulAlgoGetHeuristic", 1, 15);
        (0..2).for_each(|_| multiply(&*on, &kernel, &a, &b, &c).unwrap());
        wait(&bench, &*on).unwrap();
        c.check(&bench, &a, &b);
        assert_eq!(blas::count("cublasLtMatmul"), before);
        drop((kernel, on, a, b, c, bench));
        nothing_is_left();
    });
}

#[test]
fn captures_of_products_may_fail() {
    with_driver(&[WITH], || {
        let bench = Bench::new();
        let all = Recorded::new(&bench);
        let on = stream(&bench);
        all.issue(&*on);
        wait(&bench, &*on).unwrap();
        let eager = all.read(&bench);
        for function in ["cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphAddChildGraphNode"] {
            for call in 1..=4 {
                fake::fail(function, call, 2);
                let error = all.record(&bench).unwrap_err();
                assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
            }
        }
        let executable = all.record(&bench).unwrap();
        on.replay(&executable, "a recording").unwrap();
        wait(&bench, &*on).unwrap();
        assert!(all.read(&bench) == eager);
        drop((executable, on, all, bench));
        nothing_is_left();
    });
}

#[test]
fn the_default_stream_of_each_thread_gets_the_built_in_kernels() {
    with_driver(&[WITH], || {
        let bench = Bench::new();
        let kernel = matmul(&bench, &[]).unwrap();
        let [a, b, c] = triple(&bench, [7, 9, 40], 1);
        // It is as many streams as there are threads.
        let each = device(&bench).wrap_stream(&DeviceStreamAttr { name: "each", priority: 0 }, 2).unwrap();
        multiply(&*each, &kernel, &a, &b, &c).unwrap();
        wait(&bench, &*each).unwrap();
        assert_eq!(blas::count("cublasLtMatmul"), 0);
        c.check(&bench, &a, &b);
        drop(each);
    });
}
