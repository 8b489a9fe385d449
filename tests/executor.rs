//! What a defect in a kernel does to a run, and what runs find out about nodes. Random graphs, failures and cancels are
//! in `oracle`.

#[path = "kit/mod.rs"]
mod kit;

use kit::pools;
use kit::run::{cpu, execute, on};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::Duration;
use weir_core::base::{Code, Desc, Error, Ref, Result, dtype};
use weir_core::engine::{BoundKernel, KernelOptions, Tensor};
use weir_core::graph::{CompileOptions, DumpFormat, Graph, Program, RunOptions};
use weir_core::kernel::{Kernel, KernelContext, Outputs, Task};
use weir_core::threadpool::{Span, ThreadPool, ThreadPoolOptions};

fn desc() -> Desc {
    Desc::new(dtype::S32, &[5])
}

/// Panics where a kernel of the library must not: the run fails, the process and the program live.
struct Panics(AtomicBool);

impl Kernel for Panics {
    fn name(&self) -> &str {
        "panics"
    }
    fn num_inputs(&self) -> usize {
        0
    }
    fn num_outputs(&self) -> usize {
        1
    }
    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![desc()])
    }
    fn compute(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        let span = Span { items: 100, cost_ns: 1e4, ..Span::default() };
        let bad = self.0.load(Relaxed);
        context.parallel_for(&span, &|claim| {
            assert!(!bad || claim.end() < 80, "a defect");
            Ok(())
        })?;
        assert!(!bad, "another defect");
        Ok(())
    }
}

fn run(program: &Ref<Program>, output: &Ref<Tensor>, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
    execute(program, &[], std::slice::from_ref(output), &on(pool))
}

#[test]
fn a_panic_in_a_kernel_is_an_error_of_the_run() {
    let engine = cpu();
    let kernel = Arc::new(Panics(AtomicBool::new(true)));
    let bound =
        BoundKernel::create(Ref::clone(&engine), Arc::clone(&kernel) as Arc<dyn Kernel>, &KernelOptions::default())
            .unwrap();
    let mut graph = Graph::new("panics");
    let node = graph.add_kernel("k", bound, &[], 1).unwrap();
    graph.add_output("out", node.output(0)).unwrap();
    let program = Program::compile(&graph, vec![Ref::clone(&engine)], &CompileOptions::default()).unwrap();
    let output = Tensor::create(engine, desc()).unwrap();
    for pool in [None, Some(pools::of(2))] {
        kernel.0.store(true, Relaxed);
        let error = run(&program, &output, pool.as_ref()).expect_err("the kernel panicked");
        assert_eq!(error.code(), Code::Internal);
        assert!(error.message().contains("node 'k'") && error.message().contains("defect"), "{error}");
        kernel.0.store(false, Relaxed);
        assert!(run(&program, &output, pool.as_ref()).is_ok());
    }
}

/// Takes three milliseconds, and its author thinks one.
struct Slow;

impl Task for Slow {
    fn run(&self) -> Result<()> {
        std::thread::sleep(Duration::from_millis(3));
        Ok(())
    }
}

#[test]
fn nodes_are_measured_by_whoever_runs_them() {
    let engine = cpu();
    let mut graph = Graph::new("slow");
    for i in 0..12 {
        graph.add_task(&format!("n{i}"), Arc::new(Slow), 1_000_000).unwrap();
    }
    let program = Program::compile(&graph, vec![engine], &CompileOptions::default()).unwrap();
    let pool =
        ThreadPool::builtin(&ThreadPoolOptions { num_threads: Some(1), ..ThreadPoolOptions::default() }).unwrap();
    let options = RunOptions { threadpool: Some(pool), ..RunOptions::default() };
    let none = |_: usize| Err(Error::internal("no tensors"));
    for _ in 0..3 {
        Program::bind(&program, (0, &none), (0, &none)).unwrap().run(None, Some(&options)).unwrap();
    }
    let text = program.dump(DumpFormat::Json);
    let costs: Vec<u64> = text
        .split("\"cost_ns\":")
        .skip(1)
        .map(|rest| rest.trim_start_matches([' ', '"']).chars().take_while(char::is_ascii_digit).collect::<String>())
        .map(|digits| digits.parse().unwrap())
        .collect();
    assert_eq!(costs.len(), 12, "{text}");
    assert!(costs.iter().all(|&ns| ns >= 2_900_000), "measured: {costs:?}");
}
