//! Regions on the built-in pool, as ratios: what an empty one costs, whether one is ever slower than the serial loop,
//! and how well two threads share bodies of uneven cost. Its C++ twin, bench/peers, does the same on the pools of
//! others.
//!
//! `cargo bench --bench pools`, with the number of rounds as an optional argument. Both sides run in turn; these are
//! medians.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use weir_core::base::Ref;
use weir_core::threadpool::{Span, ThreadPool, ThreadPoolOptions, parallel_for};

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A chain of dependent operations: no memory, no clock.
fn work(steps: u64) {
    let mut x = steps | 1;
    for _ in 0..steps {
        x = black_box(x.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (x >> 7));
    }
    black_box(x);
}

/// Steps per nanosecond.
fn calibrate() -> f64 {
    let runs = (0..51).map(|_| {
        let start = Instant::now();
        work(100_000);
        100_000.0 / start.elapsed().as_nanos() as f64
    });
    median(&mut runs.collect::<Vec<_>>())
}

/// Nanoseconds of one call, from a batch that lasts long enough for the clock.
fn time(batch: u32, mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..batch).for_each(|_| f());
    start.elapsed().as_nanos() as f64 / f64::from(batch)
}

fn overhead(pool: &Ref<ThreadPool>, rounds: usize, per_ns: f64) {
    let span = Span { items: 2, cost_ns: 1e6, ..Span::default() };
    let region = || parallel_for(Some(pool), &span, &|_| Ok(())).unwrap();
    let mut hot: Vec<_> = (0..rounds).map(|_| time(1000, region)).collect();
    let small = Span { items: 2, cost_ns: 10.0, ..Span::default() };
    let mut alone: Vec<_> =
        (0..rounds).map(|_| time(1000, || parallel_for(Some(pool), black_box(&small), &|_| Ok(())).unwrap())).collect();
    let mut apart: Vec<_> = (0..rounds)
        .map(|_| {
            work((500_000.0 * per_ns) as u64);
            time(1, region)
        })
        .collect();
    println!(
        "Empty region of two items, ns: alone {:.0}, shared back to back {:.0}, shared after 500 us {:.0}",
        median(&mut alone),
        median(&mut hot),
        median(&mut apart)
    );
}

const COSTS: [f64; 9] = [1e2, 3e2, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6];
const ITEMS: [usize; 11] = [1, 2, 3, 4, 7, 16, 33, 64, 256, 1024, 4096];

fn never_slower(pool: &Ref<ThreadPool>, rounds: usize, per_ns: f64) {
    println!("\nTime of a region / time of the serial loop, {rounds} rounds; with a cost hint, then without:\n");
    println!("| ns per item | {} |", ITEMS.map(|n| n.to_string()).join(" | "));
    println!("|---|{}", "---|".repeat(ITEMS.len()));
    let mut worst = (0.0, 0.0, 0, "");
    for cost in COSTS {
        let steps = (cost * per_ns) as u64;
        let mut cells = Vec::new();
        for items in ITEMS {
            let serial_ns = cost * items as f64;
            if serial_ns > 5e7 {
                cells.push(String::new());
                continue;
            }
            let body = |claim: weir_core::sync::Claim| {
                (claim.begin()..claim.end()).for_each(|_| work(steps));
                Ok(())
            };
            let hinted = Span { items, cost_ns: cost as f32, ..Span::default() };
            let blind = Span { items, ..Span::default() };
            let batch = (2e5 / serial_ns).clamp(1.0, 1000.0) as u32;
            let rounds = ((4e7 / serial_ns) as usize).clamp(5, rounds);
            let mut figures = [Vec::new(), Vec::new(), Vec::new()];
            for _ in 0..rounds {
                figures[0].push(time(batch, || (0..items).for_each(|_| work(black_box(steps)))));
                figures[1].push(time(batch, || parallel_for(Some(pool), black_box(&hinted), &body).unwrap()));
                figures[2].push(time(batch, || parallel_for(Some(pool), black_box(&blind), &body).unwrap()));
            }
            let [serial, hinted, blind] = figures.map(|mut f| median(&mut f));
            for (ratio, kind) in [(hinted / serial, "hint"), (blind / serial, "no hint")] {
                if ratio > worst.0 {
                    worst = (ratio, cost, items, kind);
                }
            }
            cells.push(format!("{:.2} {:.2}", hinted / serial, blind / serial));
        }
        println!("| {cost} | {} |", cells.join(" | "));
    }
    println!("\nworst: {:.3} at {} ns, {} items, {}", worst.0, worst.1, worst.2, worst.3);
}

fn efficiency(pool: &Ref<ThreadPool>, rounds: usize, per_ns: f64) {
    println!("\nBodies of uneven cost (1 to 50), two threads: ideal time / time, {rounds} rounds\n");
    println!("| mean us | items | ascending | descending | random | one block |\n|---|---|---|---|---|---|");
    for mean in [2e3, 2e4] {
        for items in [64usize, 256, 1000] {
            let shapes: [Vec<f64>; 4] = [
                (0..items).map(|i| 1.0 + 49.0 * i as f64 / items as f64).collect(),
                (0..items).map(|i| 50.0 - 49.0 * i as f64 / items as f64).collect(),
                (0..items).map(|i| 1.0 + ((i * 7919) % 50) as f64).collect(),
                (0..items).map(|i| if i < items / 10 { 50.0 } else { 1.0 }).collect(),
            ];
            let cells = shapes.map(|weights| {
                let sum: f64 = weights.iter().sum();
                let steps: Vec<u64> = weights.iter().map(|w| (w / sum * mean * items as f64 * per_ns) as u64).collect();
                let body = |claim: weir_core::sync::Claim| {
                    steps[claim.begin()..claim.end()].iter().for_each(|&s| work(s));
                    Ok(())
                };
                let span = Span { items, cost_ns: mean as f32, ..Span::default() };
                let (mut serial, mut shared) = (Vec::new(), Vec::new());
                for _ in 0..rounds {
                    serial.push(time(1, || steps.iter().for_each(|&s| work(black_box(s)))));
                    shared.push(time(1, || parallel_for(Some(pool), &span, &body).unwrap()));
                }
                format!("{:.3}", median(&mut serial) / 2.0 / median(&mut shared))
            });
            println!("| {} | {items} | {} |", mean / 1e3, cells.join(" | "));
        }
    }
}

fn main() {
    let rounds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(101);
    let attr = ThreadPoolOptions { num_threads: Some(1), ..ThreadPoolOptions::default() };
    let pool = ThreadPool::builtin(&attr).expect("a thread");
    let per_ns = calibrate();
    let threads = AtomicU64::new(0);
    parallel_for(Some(&pool), &Span { items: 8, cost_ns: 1e6, ..Span::default() }, &|_| {
        threads.fetch_add(1, Relaxed);
        Ok(())
    })
    .expect("a region");
    println!("costs: {:?}", pool.cost());
    overhead(&pool, rounds, per_ns);
    never_slower(&pool, rounds, per_ns);
    efficiency(&pool, rounds, per_ns);
    println!("costs: {:?}", pool.cost());
}
