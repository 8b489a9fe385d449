//! What a trace costs: the same runs while none is recorded, and while one is. Each round makes every variant once, in
//! turn, and the table shows medians over the rounds: `cargo bench --bench traces`, with the number of rounds as an
//! optional argument. Then what saving ten million records takes, in each format that has spans, to nowhere.
//!
//! With the arguments `page FILE` nothing is measured: the file becomes a page of a million spans, for
//! `bench/trace_page.py`.

#[path = "shapes.rs"]
mod shapes;

use shapes::{
    Body, Shape, bm_executor, build, chain, empty, fanout, half_microsecond, microsecond, side_by_side, tree, wide,
};
use std::path::Path;
use std::time::Instant;
use weir_core::base::{Error, Ref};
use weir_core::graph::{Program, RunOptions};
use weir_core::threadpool::{ThreadPool, ThreadPoolOptions};
use weir_core::trace::{Filter, Settings, Trace, TraceFormat};

fn run(program: &Ref<Program>, options: &RunOptions) {
    let none = |_: usize| Err(Error::internal("the shapes have no tensors"));
    Program::bind(program, (0, &none), (0, &none)).unwrap().run(None, Some(options)).unwrap();
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn flight_recorder() -> Ref<Trace> {
    let (records, threads) = (1 << 16, 8);
    Trace::start(Settings { filter: Filter::Asked, keeps: None, keeps_last: true, records, threads }).unwrap()
}

/// Nanoseconds per node: off and on, by the caller alone and with one pool thread.
fn measure(shape: &Shape, body: Body, rounds: usize, pool: &Ref<ThreadPool>) -> [f64; 4] {
    let built = build(shape, body);
    let alone = RunOptions { deterministic: true, ..RunOptions::default() };
    let with_pool = RunOptions { threadpool: Some(Ref::clone(pool)), ..RunOptions::default() };
    let mut times = [const { Vec::new() }; 4];
    let trace = flight_recorder();
    // The ring's memory is there from the second time around.
    while trace.thread(0).is_ok_and(|thread| thread.lost == 0) || trace.figures().records == 0 {
        run(&built.program, &RunOptions { trace: Some(trace.id()), ..with_pool.clone() });
    }
    for round in 0..2 * rounds {
        let is_on = round % 2 == 1;
        // Runs ask for the trace one by one, so that its rings stay the same from round to round.
        let asked = is_on.then(|| trace.id());
        for (way, options) in [&alone, &with_pool].into_iter().enumerate() {
            let options = RunOptions { trace: asked, ..options.clone() };
            let start = Instant::now();
            run(&built.program, &options);
            times[2 * way + usize::from(is_on)].push(start.elapsed().as_nanos() as f64 / shape.nodes as f64);
        }
    }
    times.map(|mut times| median(&mut times))
}

/// Saves a trace of a chain, of ten million nodes.
fn save() {
    const NODES: usize = 10_000_000;
    let shape = chain();
    let built = build(&shape, empty);
    let settings = Settings { filter: Filter::Asked, keeps: None, keeps_last: false, records: 1 << 24, threads: 1 };
    let trace = Trace::start(settings).unwrap();
    let options = RunOptions { deterministic: true, trace: Some(trace.id()), ..RunOptions::default() };
    (0..NODES.div_ceil(shape.nodes)).for_each(|_| run(&built.program, &options));
    trace.stop();
    assert_eq!(trace.figures().lost, 0);
    let spans = trace.timeline().unwrap().spans.len();
    println!("a trace of {spans} spans");
    for format in [TraceFormat::Perfetto, TraceFormat::Chrome, TraceFormat::Folded, TraceFormat::Html] {
        let (start, mut bytes) = (Instant::now(), 0);
        let mut count = |piece: &[u8]| {
            bytes += piece.len();
            Ok(())
        };
        trace.write(format, &mut count).unwrap();
        let (seconds, each) = (start.elapsed().as_secs_f64(), bytes as f64 / spans as f64);
        println!("{:22} {seconds:9.2} s {each:9.1} bytes a span", format!("{format:?}"));
    }
}

/// The page of a trace of a million nodes on two threads, side by side and short.
fn write_page(file: &str) {
    const NODES: usize = 1_000_000;
    let (shape, pool) = (wide(), pool());
    let built = build(&shape, half_microsecond);
    let settings = Settings { filter: Filter::Asked, keeps: None, keeps_last: false, records: 1 << 20, threads: 2 };
    let trace = Trace::start(settings).unwrap();
    let options = RunOptions { trace: Some(trace.id()), threadpool: Some(pool), ..RunOptions::default() };
    (0..NODES.div_ceil(shape.nodes)).for_each(|_| run(&built.program, &options));
    trace.stop();
    assert_eq!(trace.figures().lost, 0);
    trace.save(Path::new(file), TraceFormat::Html).unwrap();
}

fn pool() -> Ref<ThreadPool> {
    ThreadPool::builtin(&ThreadPoolOptions { num_threads: Some(1), ..ThreadPoolOptions::default() }).unwrap()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "page") {
        return write_page(&arguments[at + 1]);
    }
    // cargo passes --bench; any number is the count of rounds.
    let rounds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(301);
    let pool = pool();
    let executor = bm_executor("BM_executor(16,1024)", 16, 1024);
    let shapes = [chain(), wide(), side_by_side("wide, of 1,024", 1024), fanout(), tree(), executor];
    let bodies: [(&str, Body); 3] = [
        ("empty bodies", empty),
        ("bodies of about half a microsecond", half_microsecond),
        ("bodies of about a microsecond", microsecond),
    ];
    for (title, body) in bodies {
        println!("{title}, ns per node, medians of {rounds} rounds");
        println!(
            "{:22} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "", "walk", "traced", "costs", "shared", "traced", "costs"
        );
        for shape in &shapes {
            let [off, on, shared_off, shared_on] = measure(shape, body, rounds, &pool);
            println!(
                "{:22} {off:9.2} {on:9.2} {:9.2} {shared_off:9.2} {shared_on:9.2} {:9.2}",
                shape.name,
                on - off,
                shared_on - shared_off
            );
        }
    }
    save();
}
