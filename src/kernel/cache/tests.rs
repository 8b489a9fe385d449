//! The cache in isolation: order, bounds, builders, and leftovers.

use super::*;
use crate::base::Desc;
use crate::kernel::{KernelContext, Outputs};
use crate::sync::{Condvar, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// A kernel that is a number, with a counter of its live instances.
struct NumberKernel {
    value: i64,
    identity: Option<Arc<u32>>,
    alive: Arc<AtomicUsize>,
}

impl Drop for NumberKernel {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, SeqCst);
    }
}

impl Kernel for NumberKernel {
    fn name(&self) -> &str {
        "number"
    }
    fn num_inputs(&self) -> usize {
        0
    }
    fn num_outputs(&self) -> usize {
        0
    }
    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }
    fn cost_ns(&self, _inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        self.value as u64
    }
    fn compute(&self, _context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        Ok(())
    }
}

impl NumberKernel {
    fn key(&self, place: [u32; 2]) -> KernelKey {
        KernelKey::new::<NumberKernel, _>(place, &self.value.to_ne_bytes(), self.identity.as_deref())
    }
}

/// A barrier for a number of threads.
struct Meeting {
    missing: Mutex<usize>,
    all_here: Condvar,
}

impl Meeting {
    fn of(threads: usize) -> Arc<Meeting> {
        Arc::new(Meeting { missing: Mutex::new(threads), all_here: Condvar::new() })
    }

    fn wait(&self) {
        let mut missing = self.missing.lock();
        *missing -= 1;
        if *missing == 0 {
            self.all_here.notify_all();
        }
        while *missing > 0 {
            missing = self.all_here.wait(missing);
        }
    }
}

struct CacheBench {
    cache: KernelCache,
    alive: Arc<AtomicUsize>,
}

impl CacheBench {
    fn new(capacity: usize) -> Arc<CacheBench> {
        let cache = KernelCache::new(|| Ok(DEFAULT));
        cache.set_capacity(capacity).unwrap();
        Arc::new(CacheBench { cache, alive: Arc::default() })
    }

    fn number(&self, value: i64, identity: Option<Arc<u32>>) -> NumberKernel {
        self.alive.fetch_add(1, SeqCst);
        NumberKernel { value, identity, alive: Arc::clone(&self.alive) }
    }

    fn get_with(
        &self,
        value: i64,
        identity: Option<Arc<u32>>,
        may_sleep: bool,
        before: impl FnOnce() -> Result<()>,
    ) -> Result<Arc<dyn Kernel>> {
        let kernel = self.number(value, identity);
        let key = kernel.key([1, 0]);
        let mut once = Some((before, kernel));
        self.cache.get(&key, &|| may_sleep, &mut || {
            let (before, kernel) = once.take().expect("is called once");
            before()?;
            Ok(Arc::new(kernel))
        })
    }

    fn get(&self, value: i64) -> Arc<dyn Kernel> {
        self.get_with(value, None, true, || Ok(())).unwrap()
    }

    fn counts(&self) -> CacheCounts {
        self.cache.figures().1
    }

    fn entries(&self) -> usize {
        self.cache.figures().0
    }
}

#[test]
fn the_same_settings_give_the_same_kernel() {
    let bench = CacheBench::new(8);
    let (one, two) = (bench.get(1), bench.get(2));
    assert!(Arc::ptr_eq(&one, &bench.get(1)) && !Arc::ptr_eq(&one, &two));
    let elsewhere = bench.number(1, None);
    let key = elsewhere.key([1, 1]);
    let elsewhere: Arc<dyn Kernel> = Arc::new(elsewhere);
    let other = bench.cache.get(&key, &|| true, &mut || Ok(elsewhere.clone())).unwrap();
    drop(elsewhere);
    assert!(!Arc::ptr_eq(&one, &other), "another device");
    assert_eq!(bench.counts(), CacheCounts { hits: 1, misses: 3, ..CacheCounts::default() });
    assert_eq!((bench.entries(), bench.alive.load(SeqCst)), (3, 3));
    drop((one, two, other));
    assert_eq!(bench.alive.load(SeqCst), 3, "the cache keeps them");
    bench.cache.clear();
    assert_eq!((bench.entries(), bench.alive.load(SeqCst)), (0, 0));
}

#[test]
fn the_one_that_was_used_longest_ago_goes() {
    let bench = CacheBench::new(3);
    for value in [1, 2, 3, 1, 4] {
        bench.get(value); // 2 makes room for 4.
    }
    let before = bench.counts();
    assert_eq!(before, CacheCounts { hits: 1, misses: 4, evictions: 1, shared: 0 });
    for value in [1, 3, 4] {
        bench.get(value);
    }
    assert_eq!(bench.counts().hits, before.hits + 3);
    bench.get(2); // 1 goes.
    bench.get(1); // 3 goes.
    assert_eq!(bench.counts().misses, before.misses + 2);
    assert_eq!((bench.entries(), bench.alive.load(SeqCst)), (3, 3));
    bench.cache.set_capacity(1).unwrap();
    assert_eq!((bench.entries(), bench.alive.load(SeqCst)), (1, 1));
    let kept = bench.counts();
    bench.get(1);
    assert_eq!(bench.counts().hits, kept.hits + 1, "the newest is the one that stays");
    assert_eq!(kept.evictions, before.evictions + 4);
}

/// Against a list that is kept in order naively.
#[test]
fn random_walks_are_those_of_a_list() {
    for (capacity, values) in [(1, 3), (5, 9), (40, 60), (100, 90)] {
        let bench = CacheBench::new(capacity);
        let (mut list, mut hits, mut state) = (Vec::new(), 0, 7u64);
        for _ in 0..4000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let value = (state >> 33) as i64 % values;
            let kernel = bench.get(value);
            assert_eq!(kernel.cost_ns(&[], &[]), value as u64);
            match list.iter().position(|&other| other == value) {
                Some(at) => {
                    list.remove(at);
                    hits += 1;
                }
                None if list.len() == capacity => drop(list.remove(0)),
                None => {}
            }
            list.push(value);
            assert_eq!((bench.counts().hits, bench.entries()), (hits, list.len()));
        }
        assert_eq!(bench.alive.load(SeqCst), list.len());
    }
}

#[test]
fn without_capacity_there_is_no_cache() {
    let bench = CacheBench::new(0);
    assert!(!Arc::ptr_eq(&bench.get(1), &bench.get(1)));
    assert_eq!((bench.entries(), bench.counts()), (0, CacheCounts::default()));
    bench.cache.set_capacity(2).unwrap();
    bench.get(1);
    bench.cache.set_capacity(0).unwrap();
    assert_eq!((bench.entries(), bench.alive.load(SeqCst)), (0, 0));
    let text = bench.cache.set_capacity(MOST + 1).unwrap_err();
    assert_eq!(text.message(), "capacity is 1048577, expected 0 to 1048576");
}

#[test]
fn the_environment_says_a_number() {
    assert_eq!([parse("0"), parse(" 7 "), parse("1048576")], [Ok(0), Ok(7), Ok(MOST)]);
    for wrong in ["", "-1", "many", "1048577", "1e3"] {
        let text = parse(wrong).unwrap_err();
        let expected = format!("WEIR_KERNEL_CACHE_CAPACITY is '{wrong}', expected 0 to 1048576");
        assert!(text.contains(&expected), "{text}");
    }
    let cache = KernelCache::new(|| Err(Error::invalid("no number")));
    let alive = Arc::new(AtomicUsize::new(1));
    let number = NumberKernel { value: 1, identity: None, alive };
    let key = number.key([1, 0]);
    assert_eq!(cache.get(&key, &|| true, &mut || panic!("must not build")).err().unwrap().message(), "no number");
    assert_eq!(cache.capacity().unwrap_err().message(), "no number");
    cache.set_capacity(1).unwrap();
    let number: Arc<dyn Kernel> = Arc::new(number);
    assert!(cache.get(&key, &|| true, &mut || Ok(number.clone())).is_ok(), "what was set counts before it");
}

#[test]
fn a_kernel_with_weights_is_seen_and_not_kept() {
    let bench = CacheBench::new(8);
    let weights = Arc::new(7);
    let get = |weights: &Arc<u32>| bench.get_with(1, Some(Arc::clone(weights)), true, || Ok(())).unwrap();
    let kernel = get(&weights);
    assert!(Arc::ptr_eq(&kernel, &get(&weights)));
    assert!(!Arc::ptr_eq(&kernel, &get(&Arc::new(7))), "others that look alike");
    assert_eq!(Arc::strong_count(&weights), 2, "this and the kernel's");
    drop(kernel);
    assert_eq!((Arc::strong_count(&weights), bench.alive.load(SeqCst)), (1, 0));
    let hits = bench.counts().hits;
    get(&weights);
    assert_eq!(bench.counts().hits, hits, "it was gone, and is made again");
}

#[test]
fn all_who_ask_at_once_share_one_build() {
    let bench = CacheBench::new(8);
    let builds = Arc::new(AtomicUsize::new(0));
    let meeting = Meeting::of(4);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (bench, builds, meeting) = (Arc::clone(&bench), Arc::clone(&builds), Arc::clone(&meeting));
            std::thread::spawn(move || {
                meeting.wait();
                let build = || {
                    builds.fetch_add(1, SeqCst);
                    // Until the others have arrived, or at least for long.
                    std::thread::sleep(Duration::from_millis(30));
                    Ok(())
                };
                bench.get_with(1, None, true, build).unwrap()
            })
        })
        .collect();
    let kernels: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(builds.load(SeqCst), 1);
    assert!(kernels.iter().all(|kernel| Arc::ptr_eq(kernel, &kernels[0])));
    let CacheCounts { hits, misses, shared, .. } = bench.counts();
    assert_eq!((misses, hits + shared), (1, 3));
    assert_eq!(bench.alive.load(SeqCst), 1);
}

/// A build that cannot end before the worker's call has returned: a wait for it would never end.
#[test]
fn a_worker_does_not_wait_and_both_get_the_same() {
    let bench = CacheBench::new(8);
    let begun = Meeting::of(2);
    let over = Meeting::of(2);
    let slow = {
        let (bench, begun, over) = (Arc::clone(&bench), Arc::clone(&begun), Arc::clone(&over));
        std::thread::spawn(move || {
            let build = || {
                begun.wait();
                over.wait();
                Ok(())
            };
            bench.get_with(1, None, true, build).unwrap()
        })
    };
    begun.wait();
    // This one waits, and the worker releases it, not the slow build.
    let waiting = {
        let bench = Arc::clone(&bench);
        std::thread::spawn(move || bench.get(1))
    };
    let mine = bench.get_with(1, None, false, || Ok(())).unwrap();
    assert!(Arc::ptr_eq(&waiting.join().unwrap(), &mine));
    over.wait();
    assert!(Arc::ptr_eq(&slow.join().unwrap(), &mine), "the first that is finished counts");
    assert_eq!((bench.counts().misses, bench.alive.load(SeqCst)), (2, 1));
}

#[test]
fn a_build_that_fails_or_panics_leaves_the_others_to_build() {
    for panics in [false, true] {
        let bench = CacheBench::new(8);
        let begun = Meeting::of(2);
        let failing = {
            let (bench, begun) = (Arc::clone(&bench), Arc::clone(&begun));
            std::thread::spawn(move || {
                bench.get_with(1, None, true, || {
                    begun.wait();
                    std::thread::sleep(Duration::from_millis(10));
                    if panics { panic!("a build that panics") } else { Err(Error::invalid("a build that fails")) }
                })
            })
        };
        begun.wait();
        let kernel = bench.get(1);
        match failing.join() {
            Ok(result) => assert_eq!(result.err().unwrap().message(), "a build that fails"),
            Err(_) => assert!(panics),
        }
        assert!(Arc::ptr_eq(&kernel, &bench.get(1)), "the error was not kept");
        assert_eq!(bench.counts().misses, 2);
        assert!(bench.cache.state.lock().under_way.is_empty());
    }
}

#[test]
fn many_threads_at_a_small_cache() {
    let bench = CacheBench::new(6);
    let threads: Vec<_> = (0..4)
        .map(|t| {
            let bench = Arc::clone(&bench);
            std::thread::spawn(move || {
                let mut state = t as u64;
                for i in 0..3000 {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let value = (state >> 40) as i64 % 10;
                    let kernel = bench.get_with(value, None, t % 2 == 0, || Ok(())).unwrap();
                    assert_eq!(kernel.cost_ns(&[], &[]), value as u64);
                    match i % 500 {
                        0 => bench.cache.clear(),
                        250 => bench.cache.set_capacity(if t == 3 { 0 } else { 5 + t }).unwrap(),
                        _ => {}
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let (entries, _) = bench.cache.figures();
    assert_eq!(bench.alive.load(SeqCst), entries);
    assert!(entries <= 7 && bench.cache.state.lock().under_way.is_empty());
}
