//! Several threads use one stream: the device is called by one at a time, and none does the others' work for long.

use super::refused::NO_EMULATION;
use super::strict::strict;
use super::*;
use std::sync::Barrier;
use std::time::Instant;

/// One thread issues while others ask for events behind what was issued.
#[test]
fn one_thread_at_a_time_calls_for_a_stream() {
    let (strict, engine) = strict::<6>(NO_EMULATION);
    let stream = Stream::create(engine.clone(), StreamAttr::new(engine.kind())).unwrap();
    let x = Tensor::create(engine, desc()).unwrap();
    strict.delay(50);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(SeqCst) {
                    stream.synchronize(FOREVER).unwrap();
                }
            });
        }
        (0..300).for_each(|i| stream.enqueue_fill(x.clone(), i as u8).unwrap());
        is_over.store(true, SeqCst);
    });
    assert_eq!(strict.meetings(), 0);
}

#[test]
fn who_submits_does_not_issue_for_ever_what_others_submit() {
    let (strict, engine) = strict::<7>(NO_EMULATION);
    let stream = Stream::create(engine.clone(), StreamAttr::new(engine.kind())).unwrap();
    let x = Tensor::create(engine, desc()).unwrap();
    strict.delay(500);
    let (start, begun) = (Barrier::new(3), Instant::now());
    let longest = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    let call = |i| {
                        let begun = Instant::now();
                        stream.enqueue_fill(x.clone(), i as u8).unwrap();
                        begun.elapsed()
                    };
                    (0..300).map(call).max().unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
    });
    stream.synchronize(FOREVER).unwrap();
    let all = begun.elapsed();
    assert!(longest < all / 4, "one call took {longest:?} of {all:?}");
    assert_eq!(strict.meetings(), 0);
}
