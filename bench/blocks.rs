//! Blocks of an engine's memory beside the system's malloc, in turn, medians of a request and its return:
//! `cargo bench --bench blocks`.

use std::alloc::{Layout, alloc, dealloc};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use weir_core::memory::{MemoryBlock, Pool, PoolAttr, ProcessMemory, Progress, Tag};

const ROUNDS: usize = 41;

struct Clock(AtomicU64);

impl Progress for Clock {
    fn reached(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds that one of `calls` takes.
fn ns(calls: usize, run: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    run();
    begin.elapsed().as_nanos() as f64 / calls as f64
}

fn next(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize
}

fn row(name: &str, sides: &mut [(&str, &mut dyn FnMut() -> f64)]) {
    let mut all = vec![Vec::new(); sides.len()];
    for _ in 0..ROUNDS {
        for (side, times) in sides.iter_mut().zip(&mut all) {
            times.push((side.1)());
        }
    }
    print!("{name:44}");
    for (side, times) in sides.iter().zip(&mut all) {
        print!("  {} {:7.1} ns", side.0, median(times));
    }
    println!();
}

fn main() {
    let attr = PoolAttr { name: "engine cpu:0".to_owned(), alignment: 64, limit: usize::MAX, direct: false };
    let pool = Pool::new(attr, Box::new(ProcessMemory));
    let clock = Arc::new(Clock(AtomicU64::new(0)));
    let lane = pool.open_lane(Arc::clone(&clock) as _);
    for bytes in [64, 4096, 65536, 1 << 20, 32 << 20] {
        let calls = 20_000;
        let layout = Layout::from_size_align(bytes, 64).unwrap();
        row(
            &format!("{bytes} bytes, and back"),
            &mut [
                ("block", &mut || {
                    ns(calls, || (0..calls).for_each(|_| drop(pool.allocate(bytes, Tag::Fixed("bench")).unwrap())))
                }),
                ("in stream order", &mut || {
                    ns(calls, || {
                        for _ in 0..calls {
                            let block = lane.allocate(bytes, Tag::Fixed("bench")).unwrap();
                            lane.take_back(block, u64::MAX - 1);
                        }
                    })
                }),
                ("malloc", &mut || {
                    ns(calls, || {
                        for _ in 0..calls {
                            // SAFETY: the layout's size is not 0, and the memory goes back with the same layout.
                            unsafe { dealloc(std::hint::black_box(alloc(layout)), layout) }
                        }
                    })
                }),
            ],
        );
        clock.0.store(u64::MAX, Relaxed);
        drop(lane.allocate(bytes, Tag::Nothing).unwrap());
        clock.0.store(0, Relaxed);
    }
    // Many blocks of all sizes are out, and one goes for each that comes.
    for most in [4096, 256 << 10, 8 << 20] {
        let calls = 20_000;
        let mut blocks: Vec<Option<MemoryBlock>> = (0..1000).map(|_| None).collect();
        let mut system: Vec<Option<(*mut u8, Layout)>> = vec![None; 1000];
        let (mut a, mut b) = (1u64, 1u64);
        row(
            &format!("1000 out, up to {most} bytes, a random one anew"),
            &mut [
                ("block", &mut || {
                    ns(calls, || {
                        for _ in 0..calls {
                            let (at, bytes) = (next(&mut a) % 1000, 1 + next(&mut a) % most);
                            blocks[at] = None;
                            blocks[at] = Some(pool.allocate(bytes, Tag::Fixed("bench")).unwrap());
                        }
                    })
                }),
                ("malloc", &mut || {
                    ns(calls, || {
                        for _ in 0..calls {
                            let (at, bytes) = (next(&mut b) % 1000, 1 + next(&mut b) % most);
                            let layout = Layout::from_size_align(bytes, 64).unwrap();
                            // SAFETY: as above; each address is given back once.
                            unsafe {
                                if let Some((data, layout)) = system[at].take() {
                                    dealloc(data, layout);
                                }
                                system[at] = Some((alloc(layout), layout));
                            }
                        }
                    })
                }),
            ],
        );
        // SAFETY: as above.
        system.into_iter().flatten().for_each(|(data, layout)| unsafe { dealloc(data, layout) });
    }
}
