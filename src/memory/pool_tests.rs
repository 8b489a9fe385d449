//! A pool against an oracle: no two users of a byte at once, consistent figures, and everything is returned.

use super::pool::{MemoryBlock, Pool, PoolAttr, StreamCache};
use super::source::Source;
use super::tag::Tag;
use super::{ProcessMemory, Progress};
use crate::base::{Code, Error, Result};
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Addresses without memory, like those of a device: an access would fault.
#[derive(Debug, Default)]
struct Numbers {
    next: AtomicUsize,
    out: Mutex<BTreeMap<usize, usize>>,
    calls: AtomicU64,
    is_empty: AtomicBool,
}

#[derive(Debug)]
struct TestDevice(Arc<Numbers>);

// SAFETY: numbers that are never used as pointers.
unsafe impl Source for TestDevice {
    fn allocate(&self, bytes: usize, alignment: usize, _: &Tag) -> Result<usize> {
        self.0.calls.fetch_add(1, Relaxed);
        if self.0.is_empty.load(Relaxed) {
            return Err(Error::new(Code::ResourceExhausted, "the device has no more memory"));
        }
        let address = (self.0.next.fetch_add(bytes + alignment, Relaxed) + alignment).next_multiple_of(alignment);
        self.0.out.lock().insert(address, bytes);
        Ok(address)
    }
    unsafe fn deallocate(&self, address: usize, bytes: usize, _: usize) {
        assert_eq!(self.0.out.lock().remove(&address), Some(bytes), "not a region that was given");
    }
    fn is_zeroed(&self) -> bool {
        false
    }
    unsafe fn fill_zero(&self, _: usize, _: usize) -> Result<()> {
        Ok(())
    }
}

fn pool(alignment: usize, limit: usize, direct: bool) -> (Arc<Pool>, Arc<Numbers>) {
    let numbers = Arc::new(Numbers::default());
    let attr = PoolAttr { name: "engine test:0".to_owned(), alignment, limit, direct };
    (Pool::new(attr, Box::new(TestDevice(Arc::clone(&numbers)))), numbers)
}

#[derive(Default)]
struct TestClock(AtomicU64);

impl Progress for TestClock {
    fn reached(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

fn next(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize
}

/// The users of a range: by address, its end, and the stream and mark of queued work (none: its owner alone).
type Users = Vec<(usize, usize, Option<(usize, u64)>)>;

fn add_user(users: &mut Users, clocks: &[Arc<TestClock>], block: &MemoryBlock, lane: Option<usize>) {
    let (begin, end) = (block.data() as usize, block.data() as usize + block.bytes());
    users.retain(|&(_, _, last)| last.is_none_or(|(lane, mark)| clocks[lane].reached() < mark));
    for &(other, other_end, last) in users.iter() {
        let may_share = matches!((last, lane), (Some((of, _)), Some(lane)) if of == lane);
        assert!(
            end <= other || other_end <= begin || may_share,
            "{begin:#x} is in use by {last:?}, wanted on {lane:?}"
        );
    }
    users.push((begin, end, None));
}

fn drop_user(users: &mut Users, block: &MemoryBlock, last: Option<(usize, u64)>) {
    let begin = block.data() as usize;
    let at = users.iter().position(|user| user.0 == begin && user.2.is_none()).unwrap();
    match last {
        Some(last) => users[at].2 = Some(last),
        None => drop(users.swap_remove(at)),
    }
}

#[test]
fn random_calls_never_give_a_byte_to_two_users() {
    for round in 0..24u64 {
        let mut seed = 77 + round;
        let direct = round % 6 == 5;
        let alignment = [64, 256, 4096][round as usize % 3];
        let (pool, numbers) = pool(alignment, [usize::MAX, 24 << 20][round as usize % 2], direct);
        let clocks: Vec<_> = (0..3).map(|_| Arc::new(TestClock::default())).collect();
        let mut marks = [0u64; 3];
        let lanes: Vec<StreamCache> = clocks.iter().map(|clock| pool.open_lane(Arc::clone(clock) as _)).collect();
        let (mut users, mut blocks): (Users, Vec<(MemoryBlock, Option<usize>)>) = Default::default();
        for _ in 0..4000 {
            match next(&mut seed) % 10 {
                0..=4 => {
                    let bytes = match next(&mut seed) % 8 {
                        0 => next(&mut seed) % (3 << 20),
                        1 | 2 => next(&mut seed) % 200_000,
                        _ => next(&mut seed) % 9000,
                    };
                    let lane = Some(next(&mut seed) % 4).filter(|&lane| lane < 3);
                    let got = match lane {
                        Some(lane) => lanes[lane].allocate(bytes, Tag::Fixed("work")),
                        None => pool.allocate(bytes, Tag::Fixed("tensor")),
                    };
                    match got {
                        Ok(block) => {
                            assert!((block.data() as usize).is_multiple_of(alignment));
                            add_user(&mut users, &clocks, &block, lane);
                            blocks.push((block, lane));
                        }
                        Err(error) => assert_eq!(error.code(), Code::ResourceExhausted),
                    }
                }
                5..=8 if !blocks.is_empty() => {
                    let (block, from) = blocks.swap_remove(next(&mut seed) % blocks.len());
                    let lane = next(&mut seed) % 5;
                    if lane < 3 {
                        // A block from a stream's cache returns to it.
                        let lane = from.unwrap_or(lane);
                        marks[lane] += 1;
                        drop_user(&mut users, &block, Some((lane, marks[lane])));
                        lanes[lane].take_back(block, marks[lane]);
                    } else {
                        drop_user(&mut users, &block, None);
                    }
                }
                _ => {
                    let lane = next(&mut seed) % 3;
                    let to = clocks[lane].reached() + next(&mut seed) as u64 % 9;
                    clocks[lane].0.store(to.min(marks[lane]), Relaxed);
                    if next(&mut seed).is_multiple_of(50) {
                        pool.trim(next(&mut seed) % (8 << 20));
                    }
                }
            }
            let usage = pool.usage();
            assert_eq!(usage.blocks, blocks.len());
            assert_eq!(usage.reserved, numbers.out.lock().values().sum::<usize>());
            assert_eq!(usage.regions, numbers.out.lock().len());
            assert!(usage.in_use <= usage.reserved && usage.reserved <= pool.limit());
            assert!(usage.largest_free <= usage.reserved - usage.in_use);
            assert!(usage.in_use >= blocks.iter().map(|(block, _)| block.bytes()).sum());
            assert!((0.0..=1.0).contains(&usage.fragmentation()));
        }
        drop(blocks);
        // Streams may end before their work.
        drop(lanes);
        for (clock, mark) in clocks.iter().zip(marks) {
            clock.0.store(mark, Relaxed);
        }
        pool.trim(0);
        assert_eq!((pool.usage().in_use, pool.usage().reserved), (0, 0));
        drop(pool);
        assert!(numbers.out.lock().is_empty());
    }
}

#[test]
fn the_steady_state_asks_the_source_for_nothing() {
    let (pool, numbers) = pool(64, usize::MAX, false);
    let round = || {
        let blocks: Vec<_> = (1..200).map(|i| pool.allocate(i * 777, Tag::Nothing).unwrap()).collect();
        blocks.into_iter().rev().step_by(2).for_each(drop);
    };
    round();
    let calls = numbers.calls.load(Relaxed);
    (0..50).for_each(|_| round());
    assert_eq!(numbers.calls.load(Relaxed), calls);
    assert!(calls < 12, "{calls} regions");
}

#[test]
fn a_stream_has_its_own_block_again_at_once_and_others_wait() {
    for bytes in [1000, 1 << 20] {
        let (pool, _) = pool(64, usize::MAX, false);
        let clocks = [0, 1].map(|_| Arc::new(TestClock::default()));
        let [mine, other] = [0, 1].map(|i: usize| pool.open_lane(Arc::clone(&clocks[i]) as _));
        let block = mine.allocate(bytes, Tag::Nothing).unwrap();
        let at = block.data();
        mine.take_back(block, 1);
        let apart = [other.allocate(bytes, Tag::Nothing).unwrap(), pool.allocate(bytes, Tag::Nothing).unwrap()];
        assert!(apart.iter().all(|block| block.data() != at));
        let again = mine.allocate(bytes, Tag::Nothing).unwrap();
        assert_eq!(again.data(), at);
        mine.take_back(again, 2);
        clocks[0].0.store(2, Relaxed);
        let all = [0; 3].map(|_| other.allocate(bytes, Tag::Nothing).unwrap());
        assert!(all.iter().any(|block| block.data() == at), "done, so it is everybody's");
    }
}

#[test]
fn regions_that_are_free_make_room_for_others() {
    let (pool, numbers) = pool(64, 8 << 20, false);
    drop(pool.allocate(5 << 20, Tag::Nothing).unwrap());
    assert_eq!(pool.usage().reserved, 5 << 20);
    // Too large for the space beside it.
    let block = pool.allocate(6 << 20, Tag::Nothing).unwrap();
    assert_eq!(numbers.out.lock().len(), 1);
    let error = pool.allocate(3 << 20, Tag::Fixed("the rest")).unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert_eq!(
        error.message(),
        "engine test:0: 3 MiB (3145728 bytes) for the rest: limit 8 MiB, in use 6 MiB, largest free block 0 bytes; \
         most is held by nothing (6 MiB)"
    );
    // The source is empty: free regions are returned, and the request is repeated.
    drop(block);
    numbers.is_empty.store(true, Relaxed);
    let error = pool.allocate(7 << 20, Tag::Fixed("all")).unwrap_err();
    assert!(error.message().contains("all: the device has no more memory; limit 8 MiB, in use 0 bytes"), "{error}");
    assert!(numbers.out.lock().is_empty());
    assert_eq!(pool.usage().reserved, 0);
}

#[test]
fn errors_name_what_holds_most() {
    let (pool, _) = pool(64, 4 << 20, false);
    let desc = |n| crate::base::Desc::new(crate::base::dtype::F32, &[n]);
    let tensors: Vec<_> = (0..3).map(|_| pool.allocate(1 << 18, Tag::Tensor(desc(1 << 16))).unwrap()).collect();
    let values = pool.allocate(1 << 21, Tag::text("values of program 'p'")).unwrap();
    let error = pool.allocate(3 << 20, Tag::Tensor(desc(786_432))).unwrap_err();
    let text = error.message();
    assert!(
        text.starts_with("engine test:0: 3 MiB (3145728 bytes) for tensor f32[786432]: limit 4 MiB, in use 2.7 MiB")
    );
    assert!(text.ends_with("most is held by values of program 'p' (2 MiB), 3 x tensor f32[65536] (768 KiB)"), "{text}");
    let dump = pool.dump().unwrap();
    for part in ["\"limit\":4194304", "\"for\":\"tensor f32[65536]\",\"blocks\":3", "\"state\":\"free\""] {
        assert!(dump.contains(part), "{part} in {dump}");
    }
    drop((tensors, values));
    assert!(pool.dump().unwrap().contains("\"uses\":[]"));
}

#[test]
fn new_memory_of_the_process_is_zero_once_and_cleared_after() {
    let attr = PoolAttr { name: String::new(), alignment: 64, limit: usize::MAX, direct: false };
    let pool = Pool::new(attr, Box::new(ProcessMemory));
    for _ in 0..3 {
        for bytes in [100, 70_000, 3 << 20] {
            let block = pool.allocate_zeroed(bytes, Tag::Nothing).unwrap();
            // SAFETY: as many bytes were asked for.
            let all = unsafe { std::slice::from_raw_parts_mut(block.data(), bytes) };
            assert!(all.iter().all(|&byte| byte == 0));
            all.fill(255);
        }
    }
}

#[test]
fn threads_share_a_pool() {
    let (pool, numbers) = pool(64, usize::MAX, false);
    let owners = Arc::new(Mutex::new(BTreeMap::new()));
    let work = |pool: Arc<Pool>, owners: Arc<Mutex<BTreeMap<usize, usize>>>, mut seed: u64| {
        let mut mine: Vec<MemoryBlock> = Vec::new();
        for _ in 0..3000 {
            if next(&mut seed).is_multiple_of(2) || mine.is_empty() {
                let block = pool.allocate(next(&mut seed) % 100_000, Tag::Nothing).unwrap();
                let (begin, end) = (block.data() as usize, block.data() as usize + block.bytes());
                let mut owners = owners.lock();
                let before = owners.range(..end).next_back().map(|(_, &end)| end);
                assert!(before.is_none_or(|before| before <= begin));
                owners.insert(begin, end);
                mine.push(block);
            } else {
                let block = mine.swap_remove(next(&mut seed) % mine.len());
                owners.lock().remove(&(block.data() as usize));
            }
        }
        for block in mine {
            owners.lock().remove(&(block.data() as usize));
        }
    };
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (pool, owners) = (Arc::clone(&pool), Arc::clone(&owners));
            scope.spawn(move || work(pool, owners, seed));
        }
    });
    assert_eq!(pool.usage().blocks, 0);
    drop(pool);
    assert!(numbers.out.lock().is_empty());
}
