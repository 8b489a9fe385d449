//! Depth and idleness: chains that would overflow a stack if anything recursed, and pools that must not burn time.

#[path = "kit/mod.rs"]
mod kit;

use kit::integers::{Builder, How};
use kit::pools;
use kit::run::{all_pools, cpu, execute, on};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};
use weir_core::abi::WEIR_TIMEOUT_INFINITE;
use weir_core::base::{Ref, Result};
use weir_core::device::DeviceKind;
use weir_core::engine::{Event, Stream, StreamAttr};
use weir_core::graph::{CompileOptions, Graph, Program};
use weir_core::kernel::Task;
use weir_core::threadpool::{Span, ThreadPool, ThreadPoolOptions, parallel_for};

#[derive(Default)]
struct Count(AtomicU64);

impl Task for Count {
    fn run(&self) -> Result<()> {
        self.0.fetch_add(1, Relaxed);
        Ok(())
    }
}

fn run(program: &Ref<Program>, pool: &Ref<ThreadPool>) {
    execute(program, &[], &[], &on(Some(pool))).unwrap();
}

#[test]
fn a_chain_of_many_nodes_needs_no_stack() {
    const NODES: u64 = 200_000;
    let count = Arc::new(Count::default());
    let mut graph = Graph::new("chain");
    let mut last = None;
    for i in 0..NODES {
        let node = graph.add_task(&format!("n{i}"), Arc::clone(&count) as Arc<dyn Task>, 0).unwrap();
        if let Some(last) = last.replace(node) {
            graph.add_control_edge(last, node).unwrap();
        }
    }
    let program =
        Program::compile(&graph, vec![cpu()], &CompileOptions { hop_ns: Some(0), ..CompileOptions::default() })
            .unwrap();
    for pool in [ThreadPool::inline(), pools::seeded(1, 2), pools::of(2)] {
        count.0.store(0, Relaxed);
        run(&program, &pool);
        assert_eq!(count.0.load(Relaxed), NODES);
    }
}

#[test]
fn a_chain_of_streams_needs_no_stack() {
    const STREAMS: usize = 20_000;
    let engine = cpu();
    let pool = ThreadPool::inline();
    let mut attr = StreamAttr::new(DeviceKind::CPU);
    attr.asynchronous = true;
    attr.set_threadpool(Some(pool));
    let count = Arc::new(Count::default());
    let streams: Vec<_> = (0..STREAMS).map(|_| Stream::create(Ref::clone(&engine), attr.clone()).unwrap()).collect();
    // Each stream waits for the one after it, and the last one is held back by an event of a stream with a lane.
    let mut lane = StreamAttr::new(DeviceKind::CPU);
    lane.asynchronous = true;
    let gate = Stream::create(Ref::clone(&engine), lane).unwrap();
    struct Hold(std::sync::mpsc::Receiver<()>);
    impl Task for Held {
        fn run(&self) -> Result<()> {
            let _ = self.0.lock().unwrap().0.recv();
            Ok(())
        }
    }
    struct Held(std::sync::Mutex<Hold>);
    let (open, wait) = std::sync::mpsc::channel();
    gate.enqueue_task(Arc::new(Held(std::sync::Mutex::new(Hold(wait))))).unwrap();
    let mut before = Event::create(Ref::clone(&engine), false);
    before.record(&gate).unwrap();
    for stream in &streams {
        stream.wait_event(&before).unwrap();
        stream.enqueue_task(Arc::clone(&count) as Arc<dyn Task>).unwrap();
        before = Event::create(Ref::clone(&engine), false);
        before.record(stream).unwrap();
    }
    assert_eq!(count.0.load(Relaxed), 0);
    open.send(()).unwrap();
    before.synchronize(WEIR_TIMEOUT_INFINITE).unwrap();
    assert_eq!(count.0.load(Relaxed), STREAMS as u64);
}

#[test]
fn regions_inside_regions_end_on_every_pool() {
    let all = [ThreadPool::inline(), pools::of(1), pools::of(3), pools::seeded(5, 2)];
    fn nest(pool: &Ref<ThreadPool>, depth: usize, count: &AtomicU64) {
        let span = Span { items: 4, cost_ns: 1e6, ..Span::default() };
        parallel_for(Some(pool), &span, &|claim| {
            for _ in claim.begin()..claim.end() {
                match depth {
                    0 => drop(count.fetch_add(1, Relaxed)),
                    _ => nest(pool, depth - 1, count),
                }
            }
            Ok(())
        })
        .unwrap();
    }
    for pool in &all {
        let count = AtomicU64::new(0);
        nest(pool, 4, &count);
        assert_eq!(count.load(Relaxed), 4u64.pow(5));
    }
}

/// Processor time of this process in nanoseconds.
#[cfg(target_os = "linux")]
fn processor_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is writable.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) }, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// In a process of its own, because the other tests use processor time.
#[test]
#[cfg(target_os = "linux")]
fn an_idle_pool_uses_no_processor() {
    const CHILD: &str = "WEIR_TEST_IDLE_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "an_idle_pool_uses_no_processor"])
            .env(CHILD, "1")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let pool =
        ThreadPool::builtin(&ThreadPoolOptions { num_threads: Some(4), ..ThreadPoolOptions::default() }).unwrap();
    let mut attr = StreamAttr::new(DeviceKind::CPU);
    attr.asynchronous = true;
    let lane = Stream::create(cpu(), attr).unwrap();
    let span = Span { items: 1000, cost_ns: 1e4, ..Span::default() };
    parallel_for(Some(&pool), &span, &|_| Ok(())).unwrap();
    lane.enqueue_task(Arc::new(Count::default())).unwrap();
    lane.synchronize(WEIR_TIMEOUT_INFINITE).unwrap();
    let (wall, before) = (std::time::Instant::now(), processor_ns());
    std::thread::sleep(std::time::Duration::from_millis(300));
    let (used, wall) = (processor_ns() - before, wall.elapsed().as_nanos() as u64);
    // Five threads that spun would use up to five times the wall time; the bound is one part in fifty.
    assert!(used * 50 < wall, "idle threads used {used} ns of processor time in {wall} ns");
}

/// Runs this in a thread with so many KiB of stack.
fn on_little_stack(kib: usize, f: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(kib << 10).spawn(f).unwrap().join().unwrap();
}

/// So many programs inside one another; each adds its input to what the one in it makes.
fn programs(depth: i32, how: &How) -> Ref<Program> {
    let (mut leaf, x) = Builder::of("leaf", 1);
    leaf.how = how.clone();
    let y = leaf.op(&x, |x| x[0] + 1);
    leaf.output(y);
    let mut program = leaf.compile();
    for _ in 1..depth {
        let (mut outer, x) = Builder::of("outer", 1);
        let inner = outer.graph.add_program("inner", &program, &x, 1).unwrap().output(0);
        let own = outer.op(&x, |x| x[0]);
        let sum = outer.sum(&[inner, own]);
        outer.output(sum);
        program = outer.compile();
    }
    program
}

#[test]
fn programs_lie_inside_one_another_as_deep_as_a_small_stack_can_run_them() {
    let later = How {
        later: Some(Arc::new(|_, done, result| {
            std::thread::spawn(move || done.done(result).unwrap());
        })),
        ..How::default()
    };
    for how in [How::default(), later] {
        on_little_stack(256, move || {
            let program = programs(16, &how);
            for (i, pool) in all_pools().iter().enumerate() {
                for run in 0..5 {
                    let got = kit::run::run(&program, &[3], &on(pool.as_ref())).unwrap();
                    assert_eq!(got, [4 + 15 * 3], "pool {i}, run {run}");
                }
            }
            // Also through a graph inside of the graph.
            let (mut branch, x) = Builder::of("branch", 1);
            let error = branch.graph.add_program("deeper", &program, &x, 1).unwrap_err();
            let expected = "node 'deeper': program 'outer': more than 16 programs lie inside one another";
            assert_eq!(error.message(), expected);
            let less = programs(15, &how);
            let y = branch.graph.add_program("as deep", &less, &x, 1).unwrap().output(0);
            branch.output(y);
            let (mut main, x) = Builder::of("main", 1);
            let cond = main.graph.add_cond("cond", x[0], &branch.graph, &branch.graph, &x).unwrap().output(0);
            main.output(cond);
            let (mut outer, x) = Builder::of("outer", 1);
            assert_eq!(outer.graph.add_program("inner", &main.compile(), &x, 1).unwrap_err().message(), {
                "node 'inner': program 'main': more than 16 programs lie inside one another"
            });
        });
    }
}

/// Conds and loops by turns, as deep as graphs may lie inside one another. Compile without optimisation takes most.
#[test]
fn graphs_inside_graphs_need_little_stack() {
    on_little_stack(512, || {
        let (mut inner, x) = Builder::of("innermost", 2);
        let y = inner.op(&x, |x| x[0] + x[1]);
        inner.output(y);
        let (mut other, x) = Builder::of("other", 2);
        other.output(x[0]);
        for depth in 1..32 {
            let (mut outer, x) = Builder::of("around", 2);
            let y = match depth % 3 {
                0 => {
                    let (mut condition, given) = Builder::of("condition", 2);
                    let less = condition.op(&given, |x| i32::from(x[0] < 10));
                    condition.output(less);
                    outer.graph.add_while("loop", &condition.graph, &inner.graph, &x[..1], &x[1..], 2).unwrap()
                }
                1 => outer.graph.add_cond("cond", x[1], &inner.graph, &other.graph, &x).unwrap(),
                _ => outer.graph.add_case("case", x[1], &[&other.graph, &inner.graph], &x).unwrap(),
            };
            outer.output(y.output(0));
            inner = outer;
        }
        let program = inner.compile();
        for (i, pool) in all_pools().iter().enumerate() {
            assert_eq!(kit::run::run(&program, &[0, 1], &on(pool.as_ref())).unwrap(), [10], "pool {i}");
        }
    });
}
