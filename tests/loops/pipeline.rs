//! Loops whose iterations overlap: what later iterations need is there early, what they do not need comes late.

pub use crate::kit::integers::{Builder, How};
pub use crate::kit::run::{POOLS, all_pools, cpu, fact, run};
use std::sync::atomic::{AtomicI64, Ordering::*};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_core::base::{Ref, Result};
use weir_core::graph::{CompileOptions, Graph, Program, RunOptions};
use weir_core::threadpool::ThreadPool;

/// For tests with kernels that complete later, which are counted all together.
pub static ALONE: Mutex<()> = Mutex::new(());
/// Kernels that were started and are not done, and the most that there were.
pub static PENDING: AtomicI64 = AtomicI64::new(0);

pub static MOST_PENDING: AtomicI64 = AtomicI64::new(0);

/// Completes in a thread of its own after a while, which differs between iterations.
pub fn later() -> How {
    How {
        later: Some(Arc::new(|context, done, result| {
            MOST_PENDING.fetch_max(PENDING.fetch_add(1, SeqCst) + 1, SeqCst);
            // SAFETY: the call has done all it does, and is only to be told of.
            let first = unsafe { context.inputs()[0].as_bytes() }.read_integer();
            let ms = if first % 2 == 1 { 1 } else { 3 };
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(ms));
                PENDING.fetch_sub(1, SeqCst);
                done.done(result).unwrap();
            });
        })),
        ..How::default()
    }
}

/// A graph whose ops compile may compute.
pub fn pure(name: &str) -> Builder {
    let mut builder = Builder::new(name);
    builder.how.is_pure = true;
    builder
}

pub fn compile(graph: &Graph) -> Ref<Program> {
    let options = CompileOptions { hop_ns: Some(1000), ..CompileOptions::default() };
    Program::compile(graph, vec![cpu()], &options).unwrap()
}

pub fn on(pool: &Option<Ref<ThreadPool>>) -> RunOptions {
    crate::kit::run::on(pool.as_ref())
}

/// while i < n: (i, sum) = (i + 1, sum + late(i)), where `late` is what iterations need not wait for.
pub fn pipeline(
    parallel: u32,
    early: impl Fn(i32) -> Result<i32> + Send + Sync + 'static,
    late: impl Fn(i32) -> Result<i32> + Send + Sync + 'static,
) -> Graph {
    pipeline_of(How::default(), parallel, early, late)
}

pub fn pipeline_of(
    how: How,
    parallel: u32,
    early: impl Fn(i32) -> Result<i32> + Send + Sync + 'static,
    late: impl Fn(i32) -> Result<i32> + Send + Sync + 'static,
) -> Graph {
    let mut condition = Builder::new("condition");
    let x = condition.inputs(3);
    condition.how.cost_ns = 1000;
    let less = condition.named("less", &[x[0], x[2]], |x| Ok(i32::from(x[0] < x[1])));
    let condition = condition.giving(&[less]);
    let mut body = Builder::new("body");
    body.how = how;
    let x = body.inputs(3);
    let next = body.named("early", &[x[0]], move |x| early(x[0]));
    let made = body.named("late", &[x[0]], move |x| late(x[0]));
    body.how = How { cost_ns: 1000, ..How::default() };
    let sum = body.named("sum", &[x[1], made], |x| Ok(x[0].wrapping_mul(31).wrapping_add(x[1])));
    let body = body.giving(&[next, sum]);
    let mut main = Builder::new("main");
    let n = main.input();
    let zero = main.constant(0);
    let looped = main.graph.add_while("loop", &condition, &body, &[zero, zero], &[n], parallel).unwrap();
    let after = main.named("after", &[looped.output(1)], |x| Ok(x[0]));
    main.giving(&[looped.output(0), after])
}

pub fn summed(n: i32) -> i32 {
    (0..n).fold(0i32, |sum, i| sum.wrapping_mul(31).wrapping_add(7 * i))
}
