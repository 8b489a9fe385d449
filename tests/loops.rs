//! Loops that run several iterations at once, and loops that compile unrolls.

mod pools;

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::*};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use weir::base::{Code, Desc, Error, Ref, Result, dtype};
use weir::device::DeviceKind;
use weir::engine::{BoundKernel, Engine, KernelAttr, Tensor};
use weir::graph::{CompileOptions, Graph, Program, ReportFormat, RunOptions, ValueId};
use weir::kernel::{Completion, Kernel, KernelContext, Task};
use weir::threadpool::ThreadPool;

fn scalar() -> Desc {
    Desc::new(dtype::S32, &[1])
}

fn cpu() -> Ref<Engine> {
    Engine::create(DeviceKind::Cpu, 0, None).unwrap()
}

type Function = dyn Fn(&[i32]) -> Result<i32> + Send + Sync;

#[derive(Clone, Copy, PartialEq)]
enum How {
    Here,
    /// A result of constants is known by compile.
    Pure,
    Later,
}

/// One integer from several.
struct Op {
    inputs: usize,
    cost_ns: u64,
    how: How,
    f: Box<Function>,
}

/// Kernels that were started and are not done, and the most that there were.
static PENDING: AtomicI64 = AtomicI64::new(0);
static MOST_PENDING: AtomicI64 = AtomicI64::new(0);

impl Kernel for Op {
    fn name(&self) -> &str {
        "op"
    }
    fn num_inputs(&self) -> usize {
        self.inputs
    }
    fn num_outputs(&self) -> usize {
        1
    }
    fn infer(&self, _: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![scalar()])
    }
    fn is_pure(&self) -> bool {
        self.how == How::Pure
    }
    fn cost_ns(&self, _: &[Desc], _: &[Desc]) -> u64 {
        self.cost_ns
    }
    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        let inputs: Vec<i32> = context.inputs().iter().map(|view| view.read_integer()).collect();
        context.outputs()[0].write_integer((self.f)(&inputs)?);
        Ok(())
    }
    fn is_async(&self) -> bool {
        self.how == How::Later
    }
    fn start(&self, context: &KernelContext<'_>, done: Completion) -> Result<()> {
        let result = self.compute(context);
        MOST_PENDING.fetch_max(PENDING.fetch_add(1, SeqCst) + 1, SeqCst);
        // The later ones take longer than what leads to the next iteration.
        let ms = if self.cost_ns > 50_000 && context.inputs()[0].read_integer() % 2 == 1 { 1 } else { 3 };
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(ms));
            PENDING.fetch_sub(1, SeqCst);
            done.done(result).unwrap();
        });
        Ok(())
    }
}

struct Builder {
    engine: Ref<Engine>,
    graph: Graph,
    nodes: usize,
    how: How,
    cost_ns: u64,
}

impl Builder {
    fn new(name: &str) -> Builder {
        Builder { engine: cpu(), graph: Graph::new(name), nodes: 0, how: How::Here, cost_ns: 100_000 }
    }

    fn pure(name: &str) -> Builder {
        Builder { how: How::Pure, ..Builder::new(name) }
    }

    fn name(&mut self) -> String {
        self.nodes += 1;
        format!("n{}", self.nodes)
    }

    fn input(&mut self) -> ValueId {
        let name = self.name();
        self.graph.add_input(&name, scalar()).unwrap()
    }

    fn inputs(&mut self, count: usize) -> Vec<ValueId> {
        (0..count).map(|_| self.input()).collect()
    }

    fn constant(&mut self, value: i32) -> ValueId {
        let tensor = tensor(&self.engine, value);
        let name = self.name();
        self.graph.add_constant(&name, tensor).unwrap()
    }

    fn named(
        &mut self,
        name: &str,
        inputs: &[ValueId],
        f: impl Fn(&[i32]) -> Result<i32> + Send + Sync + 'static,
    ) -> ValueId {
        let kernel = Op { inputs: inputs.len(), cost_ns: self.cost_ns, how: self.how, f: Box::new(f) };
        let kernel = BoundKernel::create(self.engine.clone(), Arc::new(kernel), &KernelAttr::default());
        self.graph.add_kernel(name, kernel, inputs, 1).unwrap().output(0)
    }

    fn op(&mut self, inputs: &[ValueId], f: impl Fn(&[i32]) -> i32 + Send + Sync + 'static) -> ValueId {
        let name = self.name();
        self.named(&name, inputs, move |x| Ok(f(x)))
    }

    fn gives(mut self, outputs: &[ValueId]) -> Graph {
        for &output in outputs {
            let name = self.name();
            self.graph.add_output(&name, output).unwrap();
        }
        self.graph
    }
}

fn compile(graph: &Graph) -> Ref<Program> {
    let options = CompileOptions { hop_ns: Some(1000), ..CompileOptions::default() };
    Program::compile(graph, vec![cpu()], &options).unwrap()
}

fn tensor(engine: &Ref<Engine>, value: i32) -> Ref<Tensor> {
    let tensor = Tensor::create(engine.clone(), scalar()).unwrap();
    tensor.view().write_integer(value);
    tensor
}

fn run(program: &Ref<Program>, inputs: &[i32], outputs: usize, options: &RunOptions) -> Result<Vec<i32>> {
    let engine = cpu();
    let inputs: Vec<_> = inputs.iter().map(|&value| tensor(&engine, value)).collect();
    let outputs: Vec<_> = (0..outputs).map(|_| tensor(&engine, -99)).collect();
    // SAFETY: the copies are never dropped, and do not outlive the vectors.
    let borrow = |tensor: &Ref<Tensor>| Ok(ManuallyDrop::new(unsafe { std::ptr::read(tensor) }));
    let (get_in, get_out) = (|i: usize| borrow(&inputs[i]), |i: usize| borrow(&outputs[i]));
    Program::bind(program, (inputs.len(), &get_in), (outputs.len(), &get_out))?.run(None, Some(options))?;
    Ok(outputs.iter().map(|tensor| tensor.view().read_integer()).collect())
}

fn on(pool: &Option<Ref<ThreadPool>>) -> RunOptions {
    RunOptions { threadpool: pool.clone(), ..RunOptions::default() }
}

fn all_pools() -> [Option<Ref<ThreadPool>>; 5] {
    let seeded = ThreadPool::seeded(5, 3).unwrap();
    [None, Some(ThreadPool::inline()), Some(seeded), Some(pools::of(2)), Some(pools::of(1))]
}

/// A number in the JSON of a program's report.
fn reported(program: &Program, key: &str) -> u64 {
    let text = program.report(ReportFormat::Json);
    let at = text.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key} in {text}")) + key.len() + 3;
    text[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// while i < n: (i, sum) = (i + 1, sum + late(i)), where `late` is what iterations need not wait for.
fn pipeline(
    parallel: u32,
    early: impl Fn(i32) -> Result<i32> + Send + Sync + 'static,
    late: impl Fn(i32) -> Result<i32> + Send + Sync + 'static,
) -> Graph {
    pipeline_of(How::Here, parallel, early, late)
}

fn pipeline_of(
    how: How,
    parallel: u32,
    early: impl Fn(i32) -> Result<i32> + Send + Sync + 'static,
    late: impl Fn(i32) -> Result<i32> + Send + Sync + 'static,
) -> Graph {
    let mut condition = Builder::new("condition");
    let x = condition.inputs(3);
    condition.cost_ns = 1000;
    let less = condition.named("less", &[x[0], x[2]], |x| Ok(i32::from(x[0] < x[1])));
    let condition = condition.gives(&[less]);
    let mut body = Builder { how, ..Builder::new("body") };
    let x = body.inputs(3);
    let next = body.named("early", &[x[0]], move |x| early(x[0]));
    let made = body.named("late", &[x[0]], move |x| late(x[0]));
    body.cost_ns = 1000;
    body.how = How::Here;
    let sum = body.named("sum", &[x[1], made], |x| Ok(x[0].wrapping_mul(31).wrapping_add(x[1])));
    let body = body.gives(&[next, sum]);
    let mut main = Builder::new("main");
    let n = main.input();
    let zero = main.constant(0);
    let looped = main.graph.add_while("loop", &condition, &body, &[zero, zero], &[n], parallel).unwrap();
    let after = main.named("after", &[looped.output(1)], |x| Ok(x[0]));
    main.gives(&[looped.output(0), after])
}

fn summed(n: i32) -> i32 {
    (0..n).fold(0i32, |sum, i| sum.wrapping_mul(31).wrapping_add(7 * i))
}

#[test]
fn overlapping_iterations_give_what_others_give() {
    for parallel in 1..=5 {
        let program = compile(&pipeline(parallel, |i| Ok(i + 1), |i| Ok(7 * i)));
        assert_eq!(reported(&program, "overlapping"), u64::from(parallel > 1));
        for pool in &all_pools() {
            for n in [0, 1, 2, 3, 4, 5, 17, 40, 1] {
                let got = run(&program, &[n], 2, &on(pool)).unwrap();
                assert_eq!(got, [n.max(0), summed(n)], "{parallel} at once, {n} iterations, {pool:?}");
            }
        }
    }
}

/// Where kernels of different iterations meet.
#[derive(Default)]
struct Meeting {
    there: Mutex<u32>,
    changed: Condvar,
}

impl Meeting {
    /// Waits for the other one; false if it does not come.
    fn meet(&self) -> bool {
        let mut there = self.there.lock().unwrap();
        *there += 1;
        self.changed.notify_all();
        let (there, _) = self.changed.wait_timeout_while(there, Duration::from_secs(20), |there| *there < 2).unwrap();
        *there >= 2
    }
}

#[test]
fn two_iterations_are_in_flight_at_once() {
    // Iteration 0 is not over before iteration 1 is in the same kernel.
    let meeting = Arc::new(Meeting::default());
    let (met, late) = (Arc::new(AtomicU64::new(0)), Arc::clone(&meeting));
    let count = Arc::clone(&met);
    let program = compile(&pipeline(2, |i| Ok(i + 1), move |i| {
        count.fetch_add(u64::from(late.meet()), Relaxed);
        Ok(7 * i)
    }));
    let pool = pools::named("", 2);
    assert_eq!(run(&program, &[2], 2, &on(&Some(pool))).unwrap(), [2, summed(2)]);
    assert_eq!(met.load(Relaxed), 2, "one iteration waits for the other");
}

#[test]
fn an_iteration_s_early_part_overlaps_the_late_part_of_the_one_before() {
    // `early` of iteration 1 meets `late` of iteration 0.
    let meeting = Arc::new(Meeting::default());
    let (first, second) = (Arc::clone(&meeting), Arc::clone(&meeting));
    let program = compile(&pipeline(
        2,
        move |i| if i != 1 || first.meet() { Ok(i + 1) } else { Err(Error::new(Code::Aborted, "alone")) },
        move |i| if i != 0 || second.meet() { Ok(7 * i) } else { Err(Error::new(Code::Aborted, "alone")) },
    ));
    assert_eq!(run(&program, &[3], 2, &on(&Some(pools::named("", 2)))).unwrap(), [3, summed(3)]);
}

#[test]
fn never_more_iterations_are_in_flight_than_asked_for() {
    for parallel in [2, 3] {
        // An iteration is in flight from its first kernel to its last.
        let (now, most) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
        let mut condition = Builder::new("condition");
        let x = condition.inputs(3);
        let less = condition.op(&[x[0], x[2]], |x| i32::from(x[0] < x[1]));
        let condition = condition.gives(&[less]);
        let mut body = Builder::new("body");
        let x = body.inputs(3);
        let (count, seen) = (Arc::clone(&now), Arc::clone(&most));
        let next = body.op(&[x[0]], move |x| {
            seen.fetch_max(count.fetch_add(1, SeqCst) + 1, SeqCst);
            x[0] + 1
        });
        let made = body.op(&[next], |x| {
            std::thread::sleep(Duration::from_micros(300));
            7 * (x[0] - 1)
        });
        let count = Arc::clone(&now);
        let sum = body.op(&[x[1], made], move |x| {
            count.fetch_sub(1, SeqCst);
            x[0].wrapping_mul(31).wrapping_add(x[1])
        });
        let body = body.gives(&[next, sum]);
        let mut main = Builder::new("main");
        let n = main.input();
        let zero = main.constant(0);
        let looped = main.graph.add_while("loop", &condition, &body, &[zero, zero], &[n], parallel).unwrap();
        let program = compile(&main.gives(&[looped.output(1)]));
        assert_eq!(reported(&program, "overlapping"), 1);
        let pool = Some(pools::named("", 4));
        for _ in 0..20 {
            assert_eq!(run(&program, &[30], 1, &on(&pool)).unwrap(), [summed(30)]);
        }
        let most = most.load(SeqCst);
        assert!(1 < most && most <= i64::from(parallel), "{most} in flight, asked for {parallel}");
    }
}

#[test]
fn kernels_that_complete_later_overlap_in_one_thread() {
    for (parallel, expected) in [(1, 2), (4, 5)] {
        // `early` and `late` of one iteration are on their way together; of several iterations, several `late`.
        let program = compile(&pipeline_of(How::Later, parallel, |i| Ok(i + 1), |i| Ok(7 * i)));
        for n in [0, 1, 2, 9, 3] {
            for pool in [None, Some(pools::of(2))] {
                assert_eq!(run(&program, &[n], 2, &on(&pool)).unwrap(), [n, summed(n)]);
            }
        }
        MOST_PENDING.store(0, SeqCst);
        run(&program, &[40], 2, &on(&None)).unwrap();
        let most = MOST_PENDING.load(SeqCst);
        assert!(most <= expected && (parallel == 1 || most > 2), "{most} pending, {parallel} at once");
    }
}

/// while i < n: (i, sum) = (i + step, 31 sum + x), all of it pure; `effect` runs in each iteration if there is one.
fn counted(n: i32, step: i32, parallel: u32, effect: Option<Arc<dyn Task>>) -> Graph {
    let mut condition = Builder::pure("condition");
    let x = condition.inputs(3);
    let bound = condition.constant(n);
    let less = condition.op(&[x[0], bound], |x| i32::from(x[0] < x[1]));
    let condition = condition.gives(&[less]);
    let mut body = Builder::pure("body");
    let x = body.inputs(3);
    let next = body.op(&[x[0]], move |x| x[0] + step);
    body.how = How::Here;
    let sum = body.named("sum", &[x[1], x[2]], |x| match x[1] {
        -5 => Err(Error::new(Code::DataLoss, "asked to fail")),
        more => Ok(x[0].wrapping_mul(31).wrapping_add(more)),
    });
    if let Some(effect) = effect {
        body.graph.add_task("effect", effect, 0).unwrap();
    }
    let body = body.gives(&[next, sum]);
    let mut main = Builder::new("main");
    let given = main.input();
    let zero = main.constant(0);
    let looped = main.graph.add_while("loop", &condition, &body, &[zero, zero], &[given], parallel).unwrap();
    main.gives(&[looped.output(0), looped.output(1)])
}

#[test]
fn short_loops_of_known_length_are_written_out() {
    for (n, step, trips) in [(1, 1, 1), (3, 1, 3), (16, 1, 16), (30, 2, 15), (7, 3, 3)] {
        let program = compile(&counted(n, step, 1, None));
        assert_eq!(reported(&program, "unrolled"), 1, "{n} by {step}");
        assert_eq!(reported(&program, "loops"), 0);
        let sum = (0..trips).fold(0i32, |sum, _| sum.wrapping_mul(31).wrapping_add(9));
        for pool in &all_pools() {
            assert_eq!(run(&program, &[9], 2, &on(pool)).unwrap(), [trips * step, sum]);
        }
        assert!(program.report(ReportFormat::Text).contains("1 loops that are written out"));
    }
    for (n, step) in [(17, 1), (-1, -1), (1, 0)] {
        let program = compile(&counted(n, step, 1, None));
        let expected = u64::from(n > 0);
        assert_eq!((reported(&program, "unrolled"), reported(&program, "loops")), (0, expected), "{n} by {step}");
    }
}

#[test]
fn a_failure_in_what_was_written_out_names_its_iteration() {
    let program = compile(&counted(3, 1, 1, None));
    let error = run(&program, &[-5], 2, &on(&None)).unwrap_err();
    assert_eq!(error.message(), "node 'loop/0/sum': asked to fail");
    let left_out: Vec<&str> = error.run().unwrap().left_out.iter().map(|name| &**name).collect();
    assert!(left_out.contains(&"loop/1/sum") && left_out.contains(&"loop/2/sum"), "{left_out:?}");
    assert_eq!(run(&program, &[0], 2, &on(&None)).unwrap(), [3, 0]);
}

/// Says how many are at it at once.
#[derive(Default)]
struct Effect {
    now: AtomicI64,
    most: AtomicI64,
    calls: AtomicU64,
}

impl Task for Effect {
    fn run(&self) -> Result<()> {
        self.most.fetch_max(self.now.fetch_add(1, SeqCst) + 1, SeqCst);
        std::thread::sleep(Duration::from_micros(200));
        self.now.fetch_sub(1, SeqCst);
        self.calls.fetch_add(1, SeqCst);
        Ok(())
    }
}

#[test]
fn effects_of_what_was_written_out_overlap_as_far_as_iterations_may() {
    for parallel in 1..=3 {
        let effect = Arc::new(Effect::default());
        let program = compile(&counted(9, 1, parallel, Some(Arc::clone(&effect) as Arc<dyn Task>)));
        assert_eq!(reported(&program, "unrolled"), 1);
        for _ in 0..5 {
            run(&program, &[1], 2, &on(&Some(pools::named("", 4)))).unwrap();
        }
        let most = effect.most.load(SeqCst);
        assert!(most <= i64::from(parallel) && (parallel == 1 || most > 1), "{most} at once, {parallel} may");
        assert_eq!(effect.calls.load(SeqCst), 45);
    }
}

#[test]
fn loops_that_cannot_be_written_out_are_left_alone() {
    // The bound is an input; the counter is not pure; the condition has an effect.
    let program = compile(&pipeline(1, |i| Ok(i + 1), |i| Ok(7 * i)));
    assert_eq!((reported(&program, "unrolled"), reported(&program, "loops")), (0, 1));
    let effect = Arc::new(Effect::default());
    let mut condition = Builder::pure("condition");
    let x = condition.inputs(1);
    let less = condition.op(&x, |x| i32::from(x[0] < 3));
    condition.graph.add_task("effect", Arc::clone(&effect) as Arc<dyn Task>, 0).unwrap();
    let condition = condition.gives(&[less]);
    let mut body = Builder::pure("body");
    let x = body.inputs(1);
    let next = body.op(&x, |x| x[0] + 1);
    let body = body.gives(&[next]);
    let mut main = Builder::new("main");
    let zero = main.constant(0);
    let looped = main.graph.add_while("loop", &condition, &body, &[zero], &[], 1).unwrap();
    let program = compile(&main.gives(&[looped.output(0)]));
    assert_eq!((reported(&program, "unrolled"), reported(&program, "loops")), (0, 1));
    assert_eq!(run(&program, &[], 1, &on(&None)).unwrap(), [3]);
    assert_eq!(effect.calls.load(SeqCst), 4);
}

#[test]
fn the_report_says_what_was_chosen_and_why() {
    // All of an iteration is one chain with the next one's.
    let mut condition = Builder::new("condition");
    let x = condition.inputs(1);
    let less = condition.op(&x, |x| i32::from(x[0] < 5));
    let condition = condition.gives(&[less]);
    let mut body = Builder::new("body");
    let x = body.inputs(1);
    let next = body.op(&x, |x| x[0] + 1);
    let body = body.gives(&[next]);
    let mut main = Builder::new("main");
    let n = main.input();
    let looped = main.graph.add_while("chained", &condition, &body, &[n], &[], 4).unwrap();
    let program = compile(&main.gives(&[looped.output(0)]));
    assert_eq!((reported(&program, "overlapping"), reported(&program, "held_back")), (0, 1));
    let line = "loop 'chained': 1 of at most 4 iterations at once, each iteration depends on all of the one before";
    assert!(program.report(ReportFormat::Text).contains(line), "{}", program.report(ReportFormat::Text));
    assert_eq!(run(&program, &[0], 1, &on(&Some(pools::of(2)))).unwrap(), [5]);

    let program = compile(&pipeline(3, |i| Ok(i + 1), |i| Ok(7 * i)));
    let text = program.report(ReportFormat::Text);
    assert!(text.contains("loop 'loop': 3 of at most 3 iterations at once, as asked"), "{text}");
    assert_eq!(reported(&program, "slots"), 3 * 7);
    // No host asks for this many; the copies are bounded all the same.
    let program = compile(&pipeline(u32::MAX, |i| Ok(i + 1), |i| Ok(7 * i)));
    assert!(program.report(ReportFormat::Json).contains("\"at_once\":64,\"asked\":4294967295"));
    for pool in &all_pools() {
        assert_eq!(run(&program, &[200], 2, &on(pool)).unwrap(), [200, summed(200)]);
    }
}

#[test]
fn a_failure_in_one_of_several_iterations_says_which() {
    let program = compile(&pipeline(3, |i| Ok(i + 1), |i| match i {
        6 => Err(Error::new(Code::DataLoss, "asked to fail")),
        _ => Ok(7 * i),
    }));
    for pool in &all_pools() {
        for _ in 0..5 {
            let error = run(&program, &[40], 2, &on(pool)).unwrap_err();
            assert_eq!(error.message(), "node 'loop/body/late', iteration 6 of 'loop': asked to fail");
            let failure = error.run().unwrap();
            assert_eq!(failure.node.as_deref(), Some("loop/body/late"));
            assert_eq!(failure.iteration, Some(("loop".into(), 6)));
            let left_out: Vec<&str> = failure.left_out.iter().map(|name| &**name).collect();
            assert!(left_out.contains(&"after"), "{left_out:?}");
            let mut once = left_out.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), left_out.len(), "named twice: {left_out:?}");
            // Whole again at once.
            assert_eq!(run(&program, &[6], 2, &on(pool)).unwrap(), [6, summed(6)]);
        }
    }
}

#[test]
fn every_kernel_of_a_loop_may_fail_in_every_iteration() {
    for parallel in [2, 3] {
        // The call that fails: of `early`, then of `late`.
        let at = Arc::new(AtomicI64::new(-1));
        let (first, second) = (Arc::clone(&at), Arc::clone(&at));
        let fails = |at: &AtomicI64, call: i64| match at.load(Relaxed) == call {
            true => Err(Error::new(Code::DataLoss, "asked to fail")),
            false => Ok(()),
        };
        let program = compile(&pipeline(
            parallel,
            move |i| fails(&first, i64::from(i)).map(|()| i + 1),
            move |i| fails(&second, 100 + i64::from(i)).map(|()| 7 * i),
        ));
        for pool in &all_pools() {
            for call in (0..8).chain(100..108) {
                at.store(call, Relaxed);
                let error = run(&program, &[8], 2, &on(pool)).unwrap_err();
                let (name, iteration) = (if call < 100 { "early" } else { "late" }, call % 100);
                let expected = format!("node 'loop/body/{name}', iteration {iteration} of 'loop': asked to fail");
                assert_eq!(error.message(), expected);
                at.store(-1, Relaxed);
                assert_eq!(run(&program, &[8], 2, &on(pool)).unwrap(), [8, summed(8)]);
            }
        }
    }
}

#[test]
fn a_deadline_ends_overlapping_iterations() {
    let program = compile(&pipeline(3, |i| Ok(i + 1), |i| {
        std::thread::sleep(Duration::from_micros(200));
        Ok(7 * i)
    }));
    for pool in &all_pools() {
        let options = RunOptions { deadline_ns: 3_000_000, ..on(pool) };
        let error = run(&program, &[1_000_000], 2, &options).unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
        assert_eq!(run(&program, &[5], 2, &on(pool)).unwrap(), [5, summed(5)]);
        // In careful runs too, all is done that is to be done.
        let options = RunOptions { deadline_ns: 20_000_000_000, ..on(pool) };
        assert_eq!(run(&program, &[9], 2, &options).unwrap(), [9, summed(9)]);
    }
}

#[test]
fn runs_in_a_fixed_order_go_through_the_slots_one_by_one() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let (first, second) = (Arc::clone(&order), Arc::clone(&order));
    let program = compile(&pipeline(
        3,
        move |i| {
            first.lock().unwrap().push(i);
            Ok(i + 1)
        },
        move |i| {
            second.lock().unwrap().push(100 + i);
            Ok(7 * i)
        },
    ));
    let options = RunOptions { deterministic: true, ..on(&Some(pools::of(2))) };
    let mut orders = Vec::new();
    for _ in 0..3 {
        assert_eq!(run(&program, &[5], 2, &options).unwrap(), [5, summed(5)]);
        orders.push(std::mem::take(&mut *order.lock().unwrap()));
    }
    assert_eq!(orders[0], orders[1]);
    let iterations: Vec<i32> = orders[0].iter().map(|call| call % 100).collect();
    assert!(iterations.is_sorted(), "{:?}", orders[0]);
    let options = RunOptions { finish_independent: true, ..on(&Some(pools::of(2))) };
    assert_eq!(run(&program, &[5], 2, &options).unwrap(), [5, summed(5)]);
}

/// In each of n rounds adds what a pipeline of so many iterations makes, if the round is even; else 1.
fn nested(outer: u32, inner: u32) -> Graph {
    let mut then = Builder::new("then");
    let x = then.inputs(2);
    let (zero, made) = (then.constant(0), pipeline_parts(inner));
    let looped = then.graph.add_while("inner", &made.0, &made.1, &[zero, x[1]], &[x[0]], inner).unwrap();
    let then = then.gives(&[looped.output(1)]);
    let mut otherwise = Builder::new("otherwise");
    let x = otherwise.inputs(2);
    let sum = otherwise.op(&[x[1]], |x| x[0].wrapping_add(1));
    let otherwise = otherwise.gives(&[sum]);
    let mut condition = Builder::new("condition");
    let x = condition.inputs(3);
    let less = condition.op(&[x[0], x[2]], |x| i32::from(x[0] < x[1]));
    let condition = condition.gives(&[less]);
    let mut body = Builder::new("body");
    let x = body.inputs(3);
    let next = body.op(&[x[0]], |x| x[0] + 1);
    let even = body.op(&[x[0]], |x| i32::from(x[0] % 2 == 0));
    let chosen = body.graph.add_cond("chosen", even, &then, &otherwise, &[x[0], x[1]]).unwrap();
    let body = body.gives(&[next, chosen.output(0)]);
    let mut main = Builder::new("main");
    let n = main.input();
    let zero = main.constant(0);
    let looped = main.graph.add_while("outer", &condition, &body, &[zero, zero], &[n], outer).unwrap();
    main.gives(&[looped.output(1)])
}

fn pipeline_parts(_: u32) -> (Graph, Graph) {
    let mut condition = Builder::new("condition");
    let x = condition.inputs(3);
    let less = condition.op(&[x[0], x[2]], |x| i32::from(x[0] < x[1]));
    let mut body = Builder::new("body");
    let x = body.inputs(3);
    let next = body.op(&[x[0]], |x| x[0] + 1);
    let made = body.op(&[x[0]], |x| 7 * x[0]);
    let sum = body.op(&[x[1], made], |x| x[0].wrapping_mul(31).wrapping_add(x[1]));
    (condition.gives(&[less]), body.gives(&[next, sum]))
}

#[test]
fn overlapping_loops_lie_in_branches_of_overlapping_loops() {
    let expected = |n: i32| {
        (0..n).fold(0i32, |sum, i| match i % 2 {
            0 => (0..i).fold(sum, |sum, j| sum.wrapping_mul(31).wrapping_add(7 * j)),
            _ => sum.wrapping_add(1),
        })
    };
    for (outer, inner) in [(1, 2), (2, 1), (2, 2), (3, 4)] {
        let program = compile(&nested(outer, inner));
        assert_eq!(reported(&program, "loops"), 2);
        assert_eq!(reported(&program, "overlapping"), u64::from(outer > 1) + u64::from(inner > 1));
        for pool in &all_pools() {
            for n in [0, 1, 2, 3, 9, 12, 2] {
                assert_eq!(run(&program, &[n], 1, &on(pool)).unwrap(), [expected(n)], "{outer} x {inner}, {n}");
            }
        }
    }
}

#[test]
fn joins_too_wide_for_one_counter_are_whole_after_each_loop() {
    // 100 variables, added up in each iteration: 150 arrivals from the iteration before and from this one.
    const WIDE: usize = 100;
    let mut condition = Builder::new("condition");
    let x = condition.inputs(WIDE + 2);
    let less = condition.op(&[x[0], x[WIDE + 1]], |x| i32::from(x[0] < x[1]));
    let condition = condition.gives(&[less]);
    let mut body = Builder::new("body");
    let x = body.inputs(WIDE + 2);
    let next = body.op(&[x[0]], |x| x[0] + 1);
    let sum = body.op(&x[1..=WIDE], |x| x.iter().fold(0i32, |sum, x| sum.wrapping_mul(3).wrapping_add(*x)));
    let mut outputs = vec![next];
    for (i, &variable) in x[1..WIDE].iter().enumerate() {
        outputs.push(body.op(&[variable], move |x| x[0].wrapping_add(i as i32)));
    }
    outputs.push(sum);
    let body = body.gives(&outputs);
    let mut main = Builder::new("main");
    let n = main.input();
    let zero = main.constant(0);
    let looped = main.graph.add_while("loop", &condition, &body, &[zero; WIDE + 1], &[n], 3).unwrap();
    let program = compile(&main.gives(&[looped.output(WIDE)]));
    assert!(reported(&program, "wide_joins") > 0 && reported(&program, "overlapping") == 1);
    let expected = |n: i32| {
        let mut x = vec![0i32; WIDE];
        for _ in 0..n {
            let sum = x.iter().fold(0i32, |sum, x| sum.wrapping_mul(3).wrapping_add(*x));
            x.iter_mut().enumerate().for_each(|(i, x)| *x = x.wrapping_add(i as i32));
            x[WIDE - 1] = sum;
        }
        x[WIDE - 1]
    };
    for pool in &all_pools() {
        for n in [0, 1, 5, 0, 12] {
            assert_eq!(run(&program, &[n], 1, &on(pool)).unwrap(), [expected(n)], "{n}");
        }
    }
}

#[test]
fn figures_of_all_slots_are_one_node_s() {
    let options = CompileOptions { hop_ns: Some(1000), statistics: true, ..CompileOptions::default() };
    let graph = pipeline(3, |i| Ok(i + 1), |i| Ok(7 * i));
    let program = Program::compile(&graph, vec![cpu()], &options).unwrap();
    for pool in &all_pools() {
        assert_eq!(run(&program, &[10], 2, &on(pool)).unwrap(), [10, summed(10)]);
    }
    let figures: Vec<_> = (0..program.num_nodes()).map(|node| program.node_stats(node).unwrap()).collect();
    for (name, calls) in [("loop/body/early", 50), ("loop/body/late", 50), ("loop/condition/less", 55)] {
        let counts: Vec<u64> = figures.iter().filter(|f| f.name == name).map(|f| f.count).collect();
        assert_eq!((counts.len(), counts[0], counts[1..].iter().sum::<u64>()), (4, calls, 0), "{name}");
    }
    let profile = program.save_profile();
    assert_eq!(profile.lines().filter(|line| line.ends_with("loop/body/late")).count(), 1, "{profile}");
    assert!(profile.lines().any(|line| line.ends_with(" 10 loop")), "{profile}");
}
