//! weir on rayon's threads: regions from outside, from inside, nested in both.

#[path = "../examples/rayon.rs"]
#[expect(dead_code, reason = "the program's own main")]
mod program;

use program::Rayon;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use weir::ThreadPool;

fn pools(threads: usize) -> (Arc<rayon::ThreadPool>, ThreadPool) {
    let rayon = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    let weir = ThreadPool::new(Rayon(Arc::clone(&rayon))).unwrap();
    (rayon, weir)
}

fn sum(pool: &ThreadPool, n: usize) -> u64 {
    let sum = AtomicU64::new(0);
    pool.parallel_for(n, 20_000.0, |items, _| {
        sum.fetch_add(items.map(|i| i as u64).sum::<u64>(), Relaxed);
    })
    .unwrap();
    sum.into_inner()
}

#[test]
fn regions_from_outside_and_from_inside() {
    for threads in [1, 2, 5] {
        let (rayon, weir) = pools(threads);
        assert_eq!(weir.num_threads().unwrap(), threads);
        assert!(!weir.in_parallel().unwrap());
        for _ in 0..200 {
            assert_eq!(sum(&weir, 1000), 499_500);
        }
        rayon.install(|| {
            assert!(weir.in_parallel().unwrap());
            assert_eq!(sum(&weir, 1000), 499_500);
        });
        let all = AtomicU64::new(0);
        rayon.scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|_| {
                    all.fetch_add(sum(&weir, 100), Relaxed);
                });
            }
        });
        assert_eq!(all.into_inner(), 64 * 4950);
    }
}

#[test]
fn rayon_inside_of_a_region() {
    let (rayon, weir) = pools(3);
    let total = AtomicU64::new(0);
    weir.parallel_for(20, 100_000.0, |items, _| {
        for _ in items {
            let (a, b) = rayon.join(|| sum(&weir, 100), || sum(&weir, 10));
            total.fetch_add(a + b, Relaxed);
        }
    })
    .unwrap();
    assert_eq!(total.into_inner(), 20 * (4950 + 45));
}

/// The work is really shared: a piece that waits for another thread to come sees one.
#[test]
fn helpers_come() {
    let (_rayon, weir) = pools(2);
    let here = std::thread::current().id();
    let came = AtomicBool::new(false);
    let start = std::time::Instant::now();
    weir.parallel_for(1000, 1_000_000.0, |_, _| {
        if std::thread::current().id() != here {
            came.store(true, Relaxed);
        }
        while !came.load(Relaxed) {
            assert!(start.elapsed().as_secs() < 60, "no helper came");
            std::thread::yield_now();
        }
    })
    .unwrap();
    assert!(came.into_inner());
}
